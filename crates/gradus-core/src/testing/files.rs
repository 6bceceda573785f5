//! File tests: text in, text out, a folder for each stage of a compiler. Tests of this crate and of backends are made of it.
//!
//! A file has lines of explanation and directives that start with `#`, the input, a line `---`, and what is expected.
//! `GRADUS_BLESS=1` (or `cargo xtask bless`) writes what comes out as what is expected; look at the difference before
//! you commit it. A file that is empty or malformed, or one without a check, fails.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What a stage does with a file: gives its output, or says what is wrong.
pub type Run = fn(&Case) -> Result<String, String>;

/// A test file, taken apart.
#[derive(Debug)]
pub struct Case {
    /// The lines that start with `#`, as they stand.
    pub header: Vec<String>,
    /// What the stage is given.
    pub input: String,
    /// What it should give.
    pub expected: String,
}

impl Case {
    /// Takes a file apart; says what is wrong with one that is no test.
    pub fn read(text: &str) -> Result<Case, String> {
        let header: Vec<String> = text.lines().take_while(|l| l.starts_with('#')).map(str::to_owned).collect();
        if header.is_empty() {
            return Err("the file does not say what it shows: it has to start with a line `# ...`".into());
        }
        let rest: Vec<&str> = text.lines().skip(header.len()).collect();
        let marks: Vec<usize> = (0..rest.len()).filter(|i| rest[*i] == "---").collect();
        let [mark] = marks[..] else {
            return Err(format!("one line `---` between input and output is wanted, not {}", marks.len()));
        };
        let join = |lines: &[&str]| lines.iter().map(|l| format!("{l}\n")).collect::<String>();
        let case = Case { header, input: join(&rest[..mark]), expected: join(&rest[mark + 1..]) };
        if case.input.trim().is_empty() {
            return Err("there is no input before the line `---`".into());
        }
        Ok(case)
    }

    /// The file with this output as what is expected.
    pub fn write(&self, output: &str) -> String {
        let header: String = self.header.iter().map(|l| format!("{l}\n")).collect();
        format!("{header}{}---\n{output}", self.input)
    }

    /// What stands behind `# name` in the header, for each such line.
    pub fn directives<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.header
            .iter()
            .filter_map(move |l| l.strip_prefix("# ")?.strip_prefix(name)?.strip_prefix(' '))
            .map(str::trim)
    }

    /// The value of `key=value` in the directive of this name.
    pub fn setting(&self, name: &str, key: &str) -> Result<String, String> {
        let found =
            self.directives(name).flat_map(str::split_whitespace).find_map(|w| w.strip_prefix(key)?.strip_prefix('='));
        found.map(str::to_owned).ok_or_else(|| format!("the file needs a line `# {name} {key}=...`"))
    }

    /// The same as a list of flags, one for each input of a program.
    pub fn flags(&self, name: &str, key: &str, count: usize) -> Result<Vec<bool>, String> {
        let text = self.setting(name, key)?;
        let list = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).ok_or(format!("`{text}` is not a list"))?;
        let flags: Vec<bool> = list
            .split(',')
            .filter(|w| !w.is_empty())
            .map(|w| w.parse().map_err(|_| format!("`{w}` is neither true nor false")))
            .collect::<Result<_, String>>()?;
        match flags.len() == count {
            true => Ok(flags),
            false => Err(format!("{} flags for a program with {count} inputs", flags.len())),
        }
    }

    /// Whether a line of the header is these words.
    pub fn says(&self, words: &str) -> bool {
        self.header.iter().any(|l| l.strip_prefix("# ") == Some(words))
    }
}

/// Runs one file. What comes back is what is wrong with it.
pub fn run_file(path: &Path, run: Run, bless: bool) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let case = Case::read(&text)?;
    // Positions in error messages count in the input; places in this crate's source would change with every edit.
    let output: String = run(&case)?.lines().filter(|l| !l.starts_with("  at ")).map(|l| format!("{l}\n")).collect();
    if output.trim().is_empty() {
        return Err("the stage gave nothing to compare".into());
    }
    if bless {
        return std::fs::write(path, case.write(&output)).map_err(|e| e.to_string());
    }
    if case.expected.trim().is_empty() {
        return Err("the file expects nothing: it has no check (run with GRADUS_BLESS=1 to write one)".into());
    }
    match case.expected == output {
        true => Ok(()),
        false => Err(format!("- expected, + found\n{}", diff(&case.expected, &output))),
    }
}

/// Lines that differ, and those around them, by the longest common subsequence.
fn diff(old: &str, new: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut common = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i][j] = match a[i] == b[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, String::new());
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            let _ = writeln!(out, "  {}", a[i]);
            (i, j) = (i + 1, j + 1);
        } else if j >= b.len() || (i < a.len() && common[i + 1][j] >= common[i][j + 1]) {
            let _ = writeln!(out, "- {}", a[i]);
            i += 1;
        } else {
            let _ = writeln!(out, "+ {}", b[j]);
            j += 1;
        }
    }
    out
}

fn entries(path: &Path) -> Result<Vec<PathBuf>, String> {
    let all = std::fs::read_dir(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut all = all.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
    all.sort();
    Ok(all)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Runs every file of a stage's folder. What comes back is what is wrong with them.
pub fn run_stage(folder: &Path, stage: &str, run: Run) -> Result<(), String> {
    let bless = std::env::var_os("GRADUS_BLESS").is_some_and(|v| v == "1");
    let files = entries(&folder.join(stage))?;
    if files.is_empty() {
        return Err(format!("no files for the stage `{stage}`"));
    }
    let mut failures = String::new();
    for path in &files {
        let result = match path.extension().is_some_and(|e| e == "txt") {
            true => run_file(path, run, bless),
            false => Err("a test file ends in .txt".into()),
        };
        if let Err(what) = result {
            let _ = writeln!(failures, "{stage}/{}: {what}", name(path));
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures) }
}

/// Refuses folders that are no stage: nothing would run their files.
pub fn check_folders(folder: &Path, stages: &[&str]) -> Result<(), String> {
    match entries(folder)?.iter().map(|p| name(p)).find(|n| !stages.contains(&n.as_str())) {
        Some(other) => Err(format!("`{other}` is not a stage")),
        None => Ok(()),
    }
}

/// A test for each stage, `test_name "folder" function;`, over the folder `tests/files` of the crate, and one that no folder is left out.
#[macro_export]
macro_rules! file_tests {
    ($($name:ident $stage:literal $run:expr;)*) => {
        fn files_folder() -> std::path::PathBuf {
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("files")
        }

        $(
            #[test]
            fn $name() {
                if let Err(what) = $crate::testing::files::run_stage(&files_folder(), $stage, $run) {
                    // invariant: it stands in a test, which fails by it.
                    panic!("\n{what}");
                }
            }
        )*

        #[test]
        fn every_folder_is_a_stage() {
            // invariant: it stands in a test, which fails by it.
            $crate::testing::files::check_folders(&files_folder(), &[$($stage),*]).unwrap();
        }
    };
}

//! The house rules that neither the compiler, clippy nor rustfmt knows, checked over the whole workspace.

use std::fmt;
use std::path::Path;

use crate::rooms::Rooms;
use crate::source::{Source, words};
use crate::{files, links};

/// A file longer than this deserves a second look; one longer than `MAX_LINES` has to be split.
const MANY_LINES: usize = 800;
const MAX_LINES: usize = 1200;

/// The crates that need `unsafe`: machine code, foreign functions, and the benchmark, which calls the C it is compared
/// with.
const UNSAFE_CRATES: [&str; 3] = ["crates/gradus-cpu/", "crates/gradus-pjrt/", "crates/gradus-bench/"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Warning,
    Error,
}

/// One broken rule, shown as `file:line: message`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    severity: Severity,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let note = if self.severity == Severity::Warning { "warning: " } else { "" };
        write!(f, "{}:{}: {note}{}", self.path, self.line, self.message)
    }
}

/// Checks every file and prints what it finds. True when there is no error.
pub(crate) fn run(root: &Path) -> Result<bool, String> {
    let paths = files::listed(root)?;
    let mut rust = Vec::new();
    for path in paths.iter().filter(|p| is_ours(p)) {
        let text = files::read(root, path)?;
        let source = Source::new(&text);
        rust.push((path.as_str(), text, source));
    }
    let test_modules: Vec<String> =
        rust.iter().flat_map(|(path, _, source)| source.test_modules.iter().map(|m| module_path(path, m))).collect();
    let mut findings = Vec::new();
    for (path, text, source) in &rust {
        check_rust(path, text, source, is_in_modules(path, &test_modules), &mut findings);
    }
    let mut rooms = Rooms::default();
    rust.iter().filter(|(path, ..)| !is_in_modules(path, &test_modules)).for_each(|(path, _, s)| rooms.add(path, s));
    findings.extend(rooms.findings().into_iter().map(|(path, line, message)| Finding {
        path,
        line,
        severity: Severity::Error,
        message,
    }));
    let documents: Vec<&String> = paths.iter().filter(|p| is_document(p)).collect();
    for path in &documents {
        check_links(root, path, &files::read(root, path)?, &mut findings);
    }
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    let errors = findings.iter().filter(|f| f.severity == Severity::Error).count();
    println!(
        "tidy: {} Rust files, {} documents, {errors} errors, {} warnings",
        rust.len(),
        documents.len(),
        findings.len() - errors
    );
    Ok(errors == 0)
}

fn is_ours(path: &str) -> bool {
    path.ends_with(".rs") && (path.starts_with("crates/") || path.starts_with("xtask/"))
}

/// The documents at the top of the workspace, and all of `docs`.
fn is_document(path: &str) -> bool {
    path.ends_with(".md") && (path.starts_with("docs/") || !path.contains('/'))
}

/// `crates/<name>/src/…`: what users link, as opposed to tests, benches and examples.
fn is_library(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("crates") && parts.next().is_some() && parts.next() == Some("src")
}

/// Where the module `name`, declared in the file `path`, lives: this path with `.rs`, or the folder of that name.
fn module_path(path: &str, name: &str) -> String {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    match file {
        "lib.rs" | "main.rs" | "mod.rs" => format!("{folder}/{name}"),
        _ => format!("{}/{name}", path.trim_end_matches(".rs")),
    }
}

fn is_in_modules(path: &str, modules: &[String]) -> bool {
    modules.iter().any(|m| path.strip_prefix(m.as_str()).is_some_and(|rest| rest == ".rs" || rest.starts_with('/')))
}

fn check_rust(path: &str, text: &str, source: &Source, test_only: bool, findings: &mut Vec<Finding>) {
    let mut report = |line: usize, severity: Severity, message: String| {
        findings.push(Finding { path: path.to_owned(), line, severity, message });
    };
    let mut error = |line: usize, message: &str| report(line, Severity::Error, message.to_owned());

    let shebang = text.starts_with("#!") && !text.starts_with("#![");
    let first = text.lines().nth(usize::from(shebang)).unwrap_or_default();
    if first.strip_prefix("//!").is_none_or(|words| words.trim().is_empty()) {
        error(1 + usize::from(shebang), "the file does not open with a `//!` line that says why it exists");
    }
    for (index, line) in text.split('\n').enumerate() {
        if line.contains('\t') {
            error(index + 1, "tab");
        }
        if line.ends_with(char::is_whitespace) {
            error(index + 1, "trailing white space");
        }
    }
    let lines = text.lines().count();
    if !text.ends_with('\n') {
        error(lines.max(1), "no newline at the end of the file");
    }

    for name in ["todo!", "unimplemented!", "dbg!"] {
        for at in words(&source.code, name) {
            error(source.line_of(at), &format!("`{name}` left in the code"));
        }
    }
    for marker in ["FIXME", "XXX"] {
        for at in words(&source.code, marker).chain(words(&source.comments, marker)) {
            error(source.line_of(at), &format!("`{marker}` left behind: mend it, or open an issue"));
        }
    }
    if !UNSAFE_CRATES.iter().any(|c| path.starts_with(c)) {
        for at in words(&source.code, "unsafe") {
            error(
                source.line_of(at),
                "`unsafe` outside the crates that need it (gradus-cpu, gradus-pjrt, gradus-bench)",
            );
        }
    }
    for line in ignored_without_reason(source, text) {
        error(line, "an ignored test without a reason: write `#[ignore = \"why\"]`");
    }
    if is_library(path) && !test_only {
        for name in [".unwrap()", ".expect(", "panic!"] {
            for at in words(&source.code, name) {
                let line = source.line_of(at);
                if !source.is_test_only(at) && !states_invariant(source, line) {
                    error(
                        line,
                        &format!("`{name}` in library code: return an error, or say above it `// invariant: <why>`"),
                    );
                }
            }
        }
    }
    if lines > MAX_LINES {
        report(lines, Severity::Error, format!("{lines} lines, more than {MAX_LINES}: split the file"));
    } else if lines > MANY_LINES {
        report(lines, Severity::Warning, format!("{lines} lines, more than {MANY_LINES}"));
    }
}

/// The lines of `#[ignore]`, `#[ignore = ""]` and `#[cfg_attr(.., ignore)]`.
fn ignored_without_reason(source: &Source, text: &str) -> Vec<usize> {
    let is_attribute = |at: usize| {
        let start = source.code[..at].rfind('\n').map_or(0, |n| n + 1);
        let before = source.code[start..at].trim_start();
        before.ends_with("#[") || (before.contains("cfg_attr(") && before.trim_end().ends_with(','))
    };
    let has_reason = |at: usize| {
        // The code keeps the quotes of a literal but not what is between them, so that is read from the text.
        let after = text[at + "ignore".len()..].trim_start();
        let reason = after.strip_prefix('=').map(str::trim_start).and_then(|r| r.strip_prefix('"'));
        reason.and_then(|r| r.split('"').next()).is_some_and(|r| !r.trim().is_empty())
    };
    words(&source.code, "ignore")
        .filter(|&at| is_attribute(at) && !has_reason(at))
        .map(|at| source.line_of(at))
        .collect()
}

/// Whether the line, or the block of comments right above it, has a comment `// invariant: <reason>`.
fn states_invariant(source: &Source, line: usize) -> bool {
    let has_reason = |comment: &str| {
        comment.split_once("// invariant:").is_some_and(|(_, reason)| reason.contains(char::is_alphabetic))
    };
    let code: Vec<&str> = source.code.lines().take(line).collect();
    let comments: Vec<&str> = source.comments.lines().take(line).collect();
    has_reason(comments[line - 1])
        || (0..line - 1)
            .rev()
            .take_while(|i| code[*i].trim().is_empty() && !comments[*i].trim().is_empty())
            .any(|i| has_reason(comments[i]))
        || (line >= 2 && has_reason(comments[line - 2]))
}

fn check_links(root: &Path, path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (line, target) in links::targets(text) {
        let message = match links::resolve(path, &target) {
            None => continue,
            Some(Err(message)) => message,
            Some(Ok(resolved)) if root.join(&resolved).exists() => continue,
            Some(Ok(_)) => format!("link to `{target}`, which does not exist"),
        };
        findings.push(Finding { path: path.to_owned(), line, severity: Severity::Error, message });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: &str = "crates/gradus-core/src/a.rs";

    fn check(path: &str, text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check_rust(path, text, &Source::new(text), false, &mut findings);
        findings.iter().map(ToString::to_string).collect()
    }

    /// The lines of the findings for a body put below a good first line (so a body's first line is line 2).
    fn lines(path: &str, body: &str) -> Vec<String> {
        let found = check(path, &format!("//! Why.\n{body}"));
        found.iter().map(|f| f.split(':').nth(1).unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn a_tidy_file_has_no_findings() {
        assert_eq!(check(LIBRARY, "//! Why.\n\nfn a() {}\n"), [""; 0]);
        assert_eq!(check("xtask/src/a.rs", "#!/usr/bin/env run\n//! Why.\nfn main() {}\n"), [""; 0]);
    }

    #[test]
    fn a_file_says_why_it_exists() {
        for text in ["", "fn a() {}\n", "//!\nfn a() {}\n", "// Why.\n", "#![allow(x)]\n//! Why.\n"] {
            let found = check(LIBRARY, text);
            assert!(found.iter().any(|f| f.contains(":1: the file does not open")), "{text:?}: {found:?}");
        }
    }

    #[test]
    fn white_space_is_clean() {
        assert_eq!(lines(LIBRARY, "fn a() {} \n\tfn b() {}\nfn c() {}\r\nfn d() {}"), ["2", "3", "4", "5"]);
    }

    #[test]
    fn nothing_unfinished_stays() {
        assert_eq!(
            lines("crates/a/tests/b.rs", "todo!();\nunimplemented!();\ndbg!(1);\n// FIXME\n/* XXX */\n"),
            ["2", "3", "4", "5", "6"]
        );
        assert_eq!(lines(LIBRARY, "let a = \"FIXME todo!()\"; // XXXL, dbg! and todo!\n"), [""; 0]);
    }

    #[test]
    fn unsafe_has_its_crates() {
        assert_eq!(lines(LIBRARY, "#![forbid(unsafe_code)]\n// unsafe\nunsafe fn a() {}\n"), ["4"]);
        assert_eq!(lines("crates/gradus-cpu/src/a.rs", "unsafe fn a() {}\n"), [""; 0]);
        assert_eq!(lines("crates/gradus-pjrt/src/a.rs", "unsafe fn a() {}\n"), [""; 0]);
        assert_eq!(lines("crates/gradus-bench/src/a.rs", "unsafe fn a() {}\n"), [""; 0]);
        assert_eq!(lines("crates/gradus-cpus/src/a.rs", "unsafe fn a() {}\n"), ["2"]);
    }

    #[test]
    fn libraries_do_not_panic() {
        let body = "a.unwrap();\na.expect(\"b\");\npanic!(\"c\");\n";
        assert_eq!(lines(LIBRARY, body), ["2", "3", "4"]);
        for elsewhere in ["crates/a/tests/b.rs", "crates/a/examples/b.rs", "xtask/src/b.rs"] {
            assert_eq!(lines(elsewhere, body), [""; 0]);
        }
        assert_eq!(lines(LIBRARY, "a.unwrap_or(1);\na.expect_err(1);\n/// a.unwrap()\nfn b() {}\n"), [""; 0]);
        assert_eq!(
            lines(LIBRARY, "#[cfg(test)]\nmod tests {\n fn a() { b.unwrap() }\n}\nfn c() { d.unwrap() }\n"),
            ["6"]
        );
    }

    #[test]
    fn a_stated_invariant_is_enough() {
        assert_eq!(lines(LIBRARY, "a.unwrap(); // invariant: never empty\n"), [""; 0]);
        assert_eq!(lines(LIBRARY, "// invariant: never empty,\n// as checked above\na.unwrap();\n"), [""; 0]);
        assert_eq!(lines(LIBRARY, "// invariant:\na.unwrap();\n"), ["3"]);
        assert_eq!(lines(LIBRARY, "let a = \"// invariant: no\".b.unwrap();\n"), ["2"]);
        assert_eq!(lines(LIBRARY, "// invariant: of b alone\nb();\na.unwrap();\n"), ["4"]);
    }

    #[test]
    fn an_ignored_test_says_why() {
        assert_eq!(lines(LIBRARY, "#[ignore]\nfn a() {}\n#[ignore = \"slow\"]\nfn b() {}\n"), ["2"]);
        assert_eq!(lines(LIBRARY, "#[ignore = \" \"]\nfn a() {}\n#[cfg_attr(miri, ignore)]\nfn b() {}\n"), ["2", "4"]);
        assert_eq!(lines(LIBRARY, "fn a(ignore: bool) { b(c, ignore) }\n"), [""; 0]);
    }

    #[test]
    fn long_files_are_seen() {
        assert_eq!(check(LIBRARY, &"//! Why.\n".repeat(800)), [""; 0]);
        assert_eq!(
            check(LIBRARY, &"//! Why.\n".repeat(801)),
            [format!("{LIBRARY}:801: warning: 801 lines, more than 800")]
        );
        let long = check(LIBRARY, &"//! Why.\n".repeat(1201));
        assert_eq!(long, [format!("{LIBRARY}:1201: 1201 lines, more than 1200: split the file")]);
    }

    #[test]
    fn test_modules_in_files_of_their_own_are_tests() {
        let modules = [module_path("crates/a/src/lib.rs", "tests"), module_path("crates/a/src/b.rs", "checks")];
        assert_eq!(modules, ["crates/a/src/tests", "crates/a/src/b/checks"]);
        assert!(is_in_modules("crates/a/src/tests.rs", &modules));
        assert!(is_in_modules("crates/a/src/b/checks/deep.rs", &modules));
        assert!(!is_in_modules("crates/a/src/tests_of.rs", &modules));
    }

    #[test]
    fn links_must_lead_somewhere() {
        let root = files::workspace_root();
        let mut findings = Vec::new();
        check_links(
            &root,
            "docs/a.md",
            "[a](../Cargo.toml#x)\n[b](no/such.md)\n[c](https://example.org)\n",
            &mut findings,
        );
        let found: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["docs/a.md:2: link to `no/such.md`, which does not exist"]);
        assert!(is_document("README.md") && is_document("docs/decisions/0001.md") && !is_document("crates/a/x.md"));
    }
}

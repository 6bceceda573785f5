//! Every function of JAX has an answer: what it is here, or why it is not. The answers are in `docs/names`, whose names `scripts/reference/names.py` reads from
//! an installed JAX; the book shows them with their counts, and `GRADUS_BLESS=1` writes that page again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// The modules of JAX in the order of the page, and the prefix of their lines in `data/library.jsonl`.
const MODULES: [(&str, &str); 5] = [
    ("jax.numpy", "jnp"),
    ("jax.scipy.special", "special"),
    ("jax.scipy.stats", "stats"),
    ("jax.nn", "nn"),
    ("jax.lax", "lax"),
];

/// The share of names that are here, of all modules but `jax.lax`.
const LEAST: f64 = 0.9;

/// What is compared with JAX by tests of its own, `library_*.rs` and those of the primitives.
const ELSEWHERE: &[&str] =
    &["fft::", "signal::", "linalg::", "files::", "solvers::", "nn::attention", "nn::conv", "nn::reduce_window"];

/// What is here and not in `data/library.jsonl`: types, sizes and files are not numbers, and others are tested where they are.
const NOT_COMPARED: &[(&str, &str)] = &[
    ("Array::dtype", "a type"),
    ("Array::from", "where numbers come from"),
    ("Array::from_iter", "where numbers come from"),
    ("Array::from_vec", "where numbers come from"),
    ("Array::rank", "a size"),
    ("Array::shape", "a shape"),
    ("Array::size", "a size"),
    ("DType::promote", "types alone"),
];

#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Here(String),
    No(String),
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn answers(text: &str) -> BTreeMap<String, Answer> {
    let mut all = BTreeMap::new();
    for line in text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
        let parsed = match (line.split_once(" = "), line.split_once(" - ")) {
            (Some((name, path)), _) => (name, Answer::Here(path.to_string())),
            (None, Some((name, why))) => (name, Answer::No(why.to_string())),
            _ => panic!("`{line}` has no answer: write `name = path` or `name - why`"),
        };
        assert!(all.insert(parsed.0.to_string(), parsed.1).is_none(), "`{}` stands twice", parsed.0);
    }
    all
}

fn sources(folder: &str) -> String {
    let (mut folders, mut text) = (vec![root().join(folder)], String::new());
    while let Some(next) = folders.pop() {
        if next.is_file() {
            text += &fs::read_to_string(next).unwrap();
            continue;
        }
        let Ok(entries) = fs::read_dir(&next) else { continue };
        folders.extend(
            entries.map(|e| e.unwrap().path()).filter(|p| p.is_dir() || p.extension().is_some_and(|e| e == "rs")),
        );
    }
    text
}

/// Whether a text declares a public function of this name, itself or as a line of a table that becomes functions.
fn declares(text: &str, name: &str) -> bool {
    let function = [format!("pub fn {name}("), format!("pub fn {name}<")];
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let named = words.any(|w| w.trim_end_matches(';') == name);
        named
            && (line.contains(" = ") || line.trim_end().ends_with(';'))
            && !line.contains("let ")
            && !line.contains("use ")
            || line.trim_start().starts_with(&format!("{name}(")) && line.contains(" = ")
    };
    function.iter().any(|f| text.contains(f)) || text.lines().any(row)
}

/// Whether a text exports what another file has under this name.
fn exports(text: &str, name: &str) -> bool {
    let uses = text.lines().filter(|l| l.starts_with("pub use "));
    uses.flat_map(|l| l.split(|c: char| !c.is_alphanumeric() && c != '_')).any(|w| w == name)
}

struct Sources {
    arrays: String,
    dtypes: String,
    root: String,
    modules: BTreeMap<&'static str, String>,
}

impl Sources {
    fn read() -> Sources {
        let arrays =
            ["array", "control.rs", "integers.rs"].map(|f| sources(&format!("crates/gradus-core/src/{f}"))).concat();
        let module = |m: &'static str| {
            (m, sources(&format!("crates/gradus/src/{m}")) + &sources(&format!("crates/gradus/src/{m}.rs")))
        };
        Sources {
            arrays,
            dtypes: read("crates/gradus-core/src/types/dtype.rs"),
            root: read("crates/gradus/src/lib.rs"),
            modules: ["nn", "special", "stats", "random", "linalg", "fft", "signal", "solvers", "files"]
                .map(module)
                .into_iter()
                .collect(),
        }
    }

    fn has(&self, path: &str) -> bool {
        if let Some(operator) = path.strip_prefix("operator ") {
            return ["+", "-", "*", "/", "%", "&", "|", "^", "!", "<<", ">>"].contains(&operator);
        }
        match path.split("::").collect::<Vec<_>>()[..] {
            ["Array", "clone" | "from" | "from_iter"] => true,
            ["Array", name] => declares(&self.arrays, name),
            ["DType", name] => declares(&self.dtypes, name),
            ["gradus", name] => self.root.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == name),
            // What a module takes from another folder of the crate is its own to users.
            [module, name] => self.modules.get(module).is_some_and(|text| declares(text, name) || exports(text, name)),
            ["stats", distribution, name] => {
                let text = &self.modules["stats"];
                let inside = text.split("pub mod ").find(|m| m.starts_with(&format!("{distribution} {{")));
                inside.is_some_and(|m| declares(m, name))
            }
            _ => false,
        }
    }
}

fn elsewhere(path: &str) -> bool {
    ELSEWHERE.iter().any(|p| path.starts_with(p))
}

#[test]
fn every_name_that_is_here_exists() {
    let sources = Sources::read();
    let mut missing = Vec::new();
    for (module, _) in MODULES {
        for (name, answer) in answers(&read(&format!("docs/names/{module}.txt"))) {
            let Answer::Here(path) = answer else { continue };
            if !sources.has(&path) {
                missing.push(format!("{module}.{name} = {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "named and not here: {missing:#?}");
    assert!(
        !sources.has("Array::no_such_method")
            && !sources.has("stats::norm::no_such_function")
            && !sources.has("operator ~")
    );
}

/// Names that would lead a reader astray: what they are here is another thing, or the plain way of Rust.
const NO_ALIAS: &[&str] =
    &["Array::clone", "Array::dtype", "Array::from", "Array::from_iter", "Array::from_vec", "Array::scatter"];

#[test]
fn who_searches_for_a_name_of_jax_finds_ours() {
    let sources = Sources::read();
    let mut missing = Vec::new();
    for (module, _) in MODULES {
        for (name, answer) in answers(&read(&format!("docs/names/{module}.txt"))) {
            let Answer::Here(path) = answer else { continue };
            let Some((place, ours)) = path.split_once("::").filter(|_| !NO_ALIAS.contains(&path.as_str())) else {
                continue;
            };
            let text = match place {
                "Array" => &sources.arrays,
                "nn" | "special" => &sources.modules[place],
                _ => continue,
            };
            let found = ours == name || declares(text, &name) || text.contains(&format!("alias = \"{name}\""));
            if !found && !elsewhere(&path) {
                missing.push(format!("{name} = {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "no `doc(alias)`: {missing:#?}");
}

#[test]
fn what_is_here_is_compared_with_jax() {
    let data = read("crates/gradus/tests/data/library.jsonl");
    let compared: BTreeSet<String> = data
        .lines()
        .filter_map(|l| l.strip_prefix("{\"name\":\"")?.split(['"', ':']).next().map(str::to_string))
        .collect();
    // A function with several names is compared under one of them.
    let mut paths: BTreeMap<String, bool> = BTreeMap::new();
    for (module, prefix) in MODULES.iter().filter(|(m, _)| *m != "jax.lax") {
        for (name, answer) in answers(&read(&format!("docs/names/{module}.txt"))) {
            let Answer::Here(path) = answer else { continue };
            *paths.entry(path).or_default() |= compared.contains(&format!("{prefix}.{name}"));
        }
    }
    let excused = |path: &str| elsewhere(path) || NOT_COMPARED.iter().any(|(p, _)| *p == path);
    let alone: Vec<_> = paths.iter().filter(|(p, seen)| !**seen && !excused(p)).map(|(p, _)| p).collect();
    assert!(alone.is_empty(), "not compared with JAX: {alone:?}; see scripts/reference/library.py");
    let idle: Vec<_> = NOT_COMPARED.iter().filter(|(p, _)| paths.get(*p).copied().unwrap_or(true)).collect();
    assert!(idle.is_empty(), "compared, or not named at all: {idle:?}");
}

fn page() -> String {
    let mut text = String::from(
        "# Names\n\nWhat the functions of JAX are here. A function of one array is a method of `Array`; one of a list of arrays is an associated function; \
         others are in modules.\nThe numbers of the first four modules are compared with those of JAX, values and derivatives. The names are read from \
         JAX by a script, and a test holds the answers\nagainst the source.\n\n| module | names | here | not here |\n|---|---|---|---|\n",
    );
    let all: Vec<_> = MODULES.iter().map(|(m, _)| (*m, answers(&read(&format!("docs/names/{m}.txt"))))).collect();
    for (module, names) in &all {
        let here = names.values().filter(|a| matches!(a, Answer::Here(_))).count();
        let share = 100.0 * here as f64 / names.len() as f64;
        text += &format!("| `{module}` | {} | {here} ({share:.0} %) | {} |\n", names.len(), names.len() - here);
    }
    for (module, names) in &all {
        text += &format!("\n## {module}\n\n| name | here |\n|---|---|\n");
        for (name, answer) in names {
            text += &match answer {
                Answer::Here(path) => format!("| `{name}` | `{}` |\n", path.replace('|', "\\|")),
                Answer::No(why) => format!("| `{name}` | no: {why} |\n"),
            };
        }
    }
    text
}

#[test]
fn the_page_of_the_book_has_the_answers() {
    let (path, page) = (root().join("docs/book/src/names.md"), page());
    if std::env::var_os("GRADUS_BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap_or_default(), page, "run with GRADUS_BLESS=1");
}

#[test]
fn nine_of_ten_names_are_here() {
    for (module, _) in MODULES.iter().filter(|(m, _)| *m != "jax.lax") {
        let names = answers(&read(&format!("docs/names/{module}.txt")));
        let here = names.values().filter(|a| matches!(a, Answer::Here(_))).count();
        assert!(here as f64 >= LEAST * names.len() as f64, "{module}: {here} of {}", names.len());
    }
}

#[test]
#[should_panic(expected = "has no answer")]
fn a_name_without_an_answer_is_refused() {
    answers("sin = Array::sin\nnew_function ?\n");
}

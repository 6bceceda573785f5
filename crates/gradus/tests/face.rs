//! The face of the crate: what is exported at its root and in its prelude is what the documentation there lists, so that a
//! name is added on purpose and where a reader finds it.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// Names that code over iterators and the standard prelude has, and that must keep their meaning beside ours. `Result` is
/// ours on purpose: it takes a second parameter as the standard one does. Nobody imports `scan` from the standard library.
const TAKEN: &[&str] = &[
    "all",
    "any",
    "chain",
    "clone",
    "count",
    "cycle",
    "drop",
    "eq",
    "filter",
    "find",
    "flatten",
    "fold",
    "from",
    "from_fn",
    "into",
    "iter",
    "last",
    "map",
    "max",
    "min",
    "next",
    "nth",
    "once",
    "position",
    "product",
    "repeat",
    "rev",
    "size_of",
    "skip",
    "step",
    "step_by",
    "successors",
    "sum",
    "swap",
    "take",
    "unzip",
    "zip",
    "Box",
    "Clone",
    "Copy",
    "Default",
    "Drop",
    "Eq",
    "Err",
    "Fn",
    "From",
    "Into",
    "Iterator",
    "None",
    "Ok",
    "Option",
    "Ord",
    "Some",
    "String",
    "Vec",
];

/// The most names that are no modules: what somebody can look through. The number is a choice, to be changed on purpose.
const MOST: usize = 72;

fn source(file: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The last names of a `use`: of `a::{b, c::{self, d as e}}` those are `b`, `c` and `e`.
fn leaves(tree: &str, names: &mut BTreeSet<String>) {
    let tree = tree.trim();
    let Some((path, inside)) = tree.split_once('{') else {
        let name = tree.rsplit([':', ' ']).next().unwrap_or(tree);
        assert_ne!(name, "*", "`{tree}` hides what it brings");
        assert!(!name.is_empty(), "a `use` without a name: `{tree}`");
        assert!(names.insert(name.to_string()), "`{name}` is exported twice");
        return;
    };
    let module = path.trim_end_matches("::").rsplit(':').next().unwrap_or(path);
    let inside = inside.strip_suffix('}').unwrap_or_else(|| panic!("`{tree}` has no end"));
    let (mut depth, mut start) = (0, 0);
    let ends = inside.char_indices().chain([(inside.len(), ',')]).filter_map(|(at, c)| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => return Some(at),
            _ => {}
        }
        None
    });
    for end in ends {
        match inside[start..end].trim() {
            "" => {}
            "self" => leaves(module, names),
            part => leaves(part, names),
        }
        start = end + 1;
    }
}

/// What a file exports by `pub use` and `pub mod`, and which of these are modules of its own.
fn exported(text: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let code: String = text.lines().filter(|l| !l.trim_start().starts_with("//")).map(|l| format!("{l}\n")).collect();
    let (mut names, mut modules) = (BTreeSet::new(), BTreeSet::new());
    for item in code.split(';') {
        // What comes before on the same item, such as an attribute, does not matter.
        if let Some((_, tree)) = item.split_once("pub use ") {
            leaves(tree, &mut names);
        } else if let Some((_, name)) = item.split_once("pub mod ") {
            assert!(!name.contains('{'), "a module inside of the file: {name}");
            modules.insert(name.trim().to_string());
        } else {
            let other =
                ["pub fn ", "pub struct ", "pub enum ", "pub trait ", "pub type ", "pub const ", "macro_export"];
            assert!(!other.iter().any(|o| item.contains(o)), "the face only exports: {item}");
        }
    }
    names.extend(modules.iter().cloned());
    (names, modules)
}

/// Macros are at the root wherever they are written.
fn macros(file: &str) -> BTreeSet<String> {
    let text = source(file);
    let parts = text.split("#[macro_export]\nmacro_rules! ").skip(1);
    parts.filter_map(|p| p.split_whitespace().next()).filter(|n| !n.starts_with("__")).map(str::to_string).collect()
}

/// The names in the tables of a file's documentation: whatever is a link there.
fn listed(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for row in text.lines().filter_map(|l| l.strip_prefix("//! |")) {
        for link in row.split("[`").skip(1) {
            let name = link.split('`').next().unwrap_or(link);
            assert!(names.insert(name.to_string()), "`{name}` is listed twice");
        }
    }
    names
}

fn same(what: &str, exported: &BTreeSet<String>, listed: &BTreeSet<String>) {
    let unlisted: Vec<_> = exported.difference(listed).collect();
    let missing: Vec<_> = listed.difference(exported).collect();
    assert!(
        unlisted.is_empty() && missing.is_empty(),
        "{what}: exported and not in the list of its documentation: {unlisted:?}; in the list and not exported: {missing:?}"
    );
}

#[test]
fn the_root_exports_what_its_documentation_lists() {
    let text = source("lib.rs");
    let (mut names, modules) = exported(&text);
    names.extend(macros("effects.rs"));
    same("src/lib.rs", &names, &listed(&text));
    let others = names.len() - modules.len();
    assert!(others <= MOST, "{others} names at the root: what extenders need goes under `extend`");
    println!("{others} names and {} modules", modules.len());
}

#[test]
fn the_prelude_exports_what_its_documentation_lists_and_takes_no_name_of_std() {
    let text = source("prelude.rs");
    let (names, _) = exported(&text);
    same("src/prelude.rs", &names, &listed(&text));
    let taken: Vec<_> = TAKEN.iter().filter(|n| names.contains(**n)).collect();
    assert!(taken.is_empty(), "{taken:?} are names of the standard library");
}

#[test]
fn every_macro_is_counted() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![folder.clone()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") && path != folder.join("effects.rs") {
                let text = fs::read_to_string(&path).unwrap();
                assert!(!text.contains("#[macro_export]"), "{} exports a macro at the root", path.display());
            }
        }
    }
    assert_eq!(macros("effects.rs").len(), 2);
}

#[test]
fn a_name_that_nobody_listed_is_seen() {
    let text = "//! | for | [`b`], [`c`] |\npub use a::{b, c::{self, d as e}};\npub mod f;\n// pub use x::y;\nmod g;\n";
    let (names, modules) = exported(text);
    assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), ["b", "c", "e", "f"]);
    assert_eq!(modules.iter().map(String::as_str).collect::<Vec<_>>(), ["f"]);
    assert_eq!(listed(text).iter().map(String::as_str).collect::<Vec<_>>(), ["b", "c"]);
    assert!(std::panic::catch_unwind(|| same("here", &names, &listed(text))).is_err());
    assert!(std::panic::catch_unwind(|| exported("pub use a::*;")).is_err());
}

//! Which rooms of `gradus-core` import each other. A room is a folder or a file at the top of its sources. Data passes through them in one
//! direction; two that import each other are one room in disguise, unless there is a reason, and reasons are listed here.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, is_ident, words};

const ROOT: &str = "crates/gradus-core/src/";

/// Rooms that import each other, and why they do. One that no longer does is an error too, so that the list stays what it says.
const MUTUAL: [(&str, &str, &str); 12] = [
    ("array", "primitives", "methods of arrays apply operations, and the rules of operations are written with arrays"),
    ("array", "trace", "an array may stand for a value of a trace, and a trace records what is done with arrays"),
    ("backend", "oracle", "a backend says what may round otherwise, and the oracle watches the code that one made"),
    (
        "hunt",
        "optimize",
        "checks are woven in as a pass rewrites programs, and passes fold no constant that is hunted for",
    ),
    ("hunt", "primitives", "checks are operations that call the host, and a call asks whether someone looks"),
    ("interpret", "oracle", "the oracle interprets, and noise in sums is put in where they are computed"),
    ("interpret", "primitives", "the interpreter evaluates operations, and those that hold programs interpret them"),
    ("optimize", "transform", "what a transformation makes is simplified, and a pass batches the steps of a loop"),
    (
        "oracle",
        "pipeline",
        "a pipeline puts a watch around code, and who differs is found by its stages, one after the other",
    ),
    ("primitives", "program", "a program is made of operations, and an operation may hold programs"),
    ("primitives", "trace", "tracing records operations, and their rules are traced"),
    (
        "primitives",
        "transform",
        "transformations run rules, and operations that hold programs transform what they hold",
    ),
];

/// Which rooms each room imports: from where, at first.
#[derive(Default)]
pub(crate) struct Rooms<'a> {
    imports: BTreeMap<&'a str, BTreeMap<&'a str, (&'a str, usize)>>,
}

impl<'a> Rooms<'a> {
    /// Takes note of what a file imports outside of tests.
    pub(crate) fn add(&mut self, path: &'a str, source: &'a Source) {
        let Some(room) = room_of(path) else { return };
        for (at, other) in named(&source.code).filter(|(at, _)| !source.is_test_only(*at)) {
            self.imports.entry(room).or_default().entry(other).or_insert((path, source.line_of(at)));
        }
    }

    /// What is wrong: the file and line of an import, and a message.
    pub(crate) fn findings(&self) -> Vec<(String, usize, String)> {
        self.against(&MUTUAL)
    }

    fn against(&self, allowed: &[(&str, &str, &str)]) -> Vec<(String, usize, String)> {
        let found = self.mutual();
        let is_allowed = |a: &str, b: &str| allowed.iter().any(|(x, y, _)| (*x, *y) == (a, b));
        let new = found.iter().filter(|(a, b)| !is_allowed(a, b)).map(|(a, b)| {
            let [(path, line), (back, back_line)] = [self.imports[a][b], self.imports[b][a]];
            let message = format!(
                "`{a}` and `{b}` import each other (the other way: {back}:{back_line}): move what they share, or give the reason in \
                 xtask/src/rooms.rs"
            );
            (path.to_owned(), line, message)
        });
        let gone = allowed.iter().filter(|(a, b, _)| !found.contains(&(*a, *b))).map(|(a, b, _)| {
            let message = format!("`{a}` and `{b}` no longer import each other: take them off the list");
            ("xtask/src/rooms.rs".to_owned(), 1, message)
        });
        new.chain(gone).collect()
    }

    /// Pairs that import each other, each once, in the order of the alphabet.
    fn mutual(&self) -> BTreeSet<(&'a str, &'a str)> {
        let imports = |a: &str, b: &str| self.imports.get(a).is_some_and(|to| to.contains_key(b));
        let pairs = self.imports.iter().flat_map(|(a, to)| to.keys().map(move |b| (*a, *b)));
        pairs.filter(|(a, b)| a < b && imports(b, a)).collect()
    }
}

/// The room that a file is in; the crate's root is in none.
fn room_of(path: &str) -> Option<&str> {
    let first = path.strip_prefix(ROOT)?.split('/').next()?;
    let room = first.trim_end_matches(".rs");
    (room != "lib").then_some(room)
}

/// The rooms that code names, as in `crate::array::Array` or in `crate::{array, error}`.
fn named(code: &str) -> impl Iterator<Item = (usize, &str)> {
    words(code, "crate").flat_map(|at| {
        let rest = &code[at + "crate".len()..];
        let Some(rest) = rest.strip_prefix("::") else { return Vec::new() };
        let Some(group) = rest.strip_prefix('{') else { return vec![(at, word(rest))] };
        let mut depth = 0_usize;
        let mut start = true;
        let mut found = Vec::new();
        for (i, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                c if start && !c.is_whitespace() => {
                    found.push((at, word(&group[i..])));
                    start = false;
                }
                _ => {}
            }
        }
        found
    })
}

fn word(text: &str) -> &str {
    let end = text.bytes().position(|b| !is_ident(b)).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)], allowed: &[(&str, &str, &str)]) -> Vec<String> {
        let sources: Vec<(String, Source)> =
            files.iter().map(|(path, text)| (format!("{ROOT}{path}"), Source::new(text))).collect();
        let mut rooms = Rooms::default();
        sources.iter().for_each(|(path, source)| rooms.add(path, source));
        rooms.against(allowed).into_iter().map(|(path, line, message)| format!("{path}:{line}: {message}")).collect()
    }

    #[test]
    fn rooms_that_import_each_other_need_a_reason() {
        let files = [
            ("a/x.rs", "//! Why.\nuse crate::b::B;\n"),
            ("b.rs", "use crate::{\n    c::C,\n    a::{A, D},\n};\n"),
            ("c.rs", ""),
        ];
        let found = findings(&files, &[]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/gradus-core/src/a/x.rs:2: `a` and `b` import each other"), "{found:?}");
        assert!(found[0].contains("src/b.rs:1"), "{found:?}");
        assert_eq!(findings(&files, &[("a", "b", "because")]), [""; 0]);
        let gone = findings(&files[..1], &[("a", "b", "because")]);
        assert!(gone[0].contains("no longer"), "{gone:?}");
    }

    #[test]
    fn tests_comments_and_the_root_do_not_count() {
        let files = [
            ("a.rs", "use crate::b::B;\n"),
            ("b.rs", "// crate::a::A\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n"),
            ("lib.rs", "pub use crate::a::A;\n"),
        ];
        assert_eq!(findings(&files, &[]), [""; 0]);
        assert_eq!(room_of("crates/gradus-cpu/src/a.rs"), None);
        assert_eq!(word("array::Array"), "array");
    }
}

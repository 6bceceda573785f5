//! Promises and their proofs: each row of `docs/features.txt` against the tests named `row_<id>_<words>`.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::Path;

use crate::files;
use crate::source::{Source, is_ident, words};

const FEATURES: &str = "docs/features.txt";

/// A row's name: the letter of its table and its number there, `T1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    table: char,
    number: u32,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.table, self.number)
    }
}

impl Id {
    fn parse(text: &str) -> Option<Id> {
        let mut rest = text.chars();
        let table = rest.next().filter(char::is_ascii_alphabetic)?.to_ascii_uppercase();
        let digits = rest.as_str();
        // No sign and no leading zero: one row has one spelling.
        if digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        Some(Id { table, number: digits.parse().ok()? })
    }
}

struct Promise {
    id: Id,
    text: String,
}

/// Whether a function named after a row shows anything.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Runs,
    Ignored,
    /// There is no `#[test]` above it.
    NoTest,
}

#[derive(Debug, PartialEq)]
struct RowTest {
    id: Id,
    path: String,
    line: usize,
    name: String,
    state: State,
}

/// Prints every row with its tests. False when a test names a row that does not exist.
pub(crate) fn list(root: &Path) -> Result<bool, String> {
    let (promises, tests) = gather(root)?;
    print!("{}", table(&promises, &tests));
    let shown = promises.iter().filter(|p| proofs(p.id, &tests) > 0).count();
    println!("\n{shown} of {} rows have a test", promises.len());
    Ok(report(&strangers(&promises, &tests)))
}

/// Prints the wanted rows (all when none is named) with their tests. False when one of them has none.
pub(crate) fn check(root: &Path, wanted: &[&str]) -> Result<bool, String> {
    let (promises, tests) = gather(root)?;
    let ids = select(wanted, &promises)?;
    let mut problems = strangers(&promises, &tests);
    let promises: Vec<Promise> = promises.into_iter().filter(|p| ids.contains(&p.id)).collect();
    print!("{}", table(&promises, &tests));
    let missing = promises.iter().filter(|p| proofs(p.id, &tests) == 0);
    problems.extend(missing.map(|p| format!("{}: no test named row_{}_… ({})", p.id, lower(p.id), p.text)));
    if problems.is_empty() {
        println!("\nall {} rows have a test", promises.len());
    }
    Ok(report(&problems))
}

fn report(problems: &[String]) -> bool {
    for problem in problems {
        eprintln!("{problem}");
    }
    problems.is_empty()
}

fn gather(root: &Path) -> Result<(Vec<Promise>, Vec<RowTest>), String> {
    let promises = parse_features(&files::read(root, FEATURES)?)?;
    let mut tests = Vec::new();
    for path in files::listed(root)?.iter().filter(|p| p.starts_with("crates/") && p.ends_with(".rs")) {
        tests.extend(row_tests(path, &files::read(root, path)?));
    }
    Ok((promises, tests))
}

/// Lines `T1 | promise`; blank lines and lines that start with `#` are for the reader.
fn parse_features(text: &str) -> Result<Vec<Promise>, String> {
    let mut seen = BTreeMap::new();
    let mut promises = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (id, promise) = line
            .split_once('|')
            .ok_or_else(|| format!("{FEATURES}:{number}: expected `T1 | promise`, found `{line}`"))?;
        let (id, promise) = (id.trim(), promise.trim());
        let id = Id::parse(id).ok_or_else(|| format!("{FEATURES}:{number}: `{id}` is not a row's name like `T1`"))?;
        if promise.is_empty() {
            return Err(format!("{FEATURES}:{number}: {id} promises nothing"));
        }
        if let Some(before) = seen.insert(id, number) {
            return Err(format!("{FEATURES}:{number}: {id} is there already, on line {before}"));
        }
        promises.push(Promise { id, text: promise.to_owned() });
    }
    Ok(promises)
}

/// The rows that words like `S1` and `T1-T9` name.
fn select(wanted: &[&str], promises: &[Promise]) -> Result<Vec<Id>, String> {
    if wanted.is_empty() {
        return Ok(promises.iter().map(|p| p.id).collect());
    }
    let mut ids = Vec::new();
    for word in wanted {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let parsed = Id::parse(first).zip(Id::parse(last));
        let (first, last) =
            parsed.ok_or_else(|| format!("`{word}` is neither a row like `T1` nor a range like `T1-T9`"))?;
        if first.table != last.table || first.number > last.number {
            return Err(format!("the range `{word}` is empty"));
        }
        for number in first.number..=last.number {
            let id = Id { number, ..first };
            // Stops at the first gap, so that a range of a billion rows is an error and not a wait.
            if !promises.iter().any(|p| p.id == id) {
                return Err(format!("{id} is not a row of {FEATURES}"));
            }
            ids.push(id);
        }
    }
    Ok(ids)
}

/// The functions of a file that are named after a row: `fn row_t1_a_function_becomes_a_program`.
fn row_tests(path: &str, text: &str) -> Vec<RowTest> {
    let source = Source::new(text);
    let code = &source.code;
    let mut found = Vec::new();
    for at in words(code, "fn") {
        let rest = code[at + 2..].trim_start();
        let length = rest.bytes().take_while(|b| is_ident(*b)).count();
        let name = &rest[..length];
        let id = name.strip_prefix("row_").and_then(|n| n.split_once('_')).and_then(|(id, words)| {
            let lower_case = id.starts_with(|c: char| c.is_ascii_lowercase());
            if lower_case && !words.is_empty() { Id::parse(id) } else { None }
        });
        let Some(id) = id else { continue };
        // A function's attributes stand between it and the end of whatever comes before.
        let above = code[..at].rfind([';', '{', '}']).map_or(0, |end| end + 1);
        let attributes: String = code[above..at].split_whitespace().collect();
        let state = match (attributes.contains("#[test]"), attributes.contains("#[ignore")) {
            (false, _) => State::NoTest,
            (true, true) => State::Ignored,
            (true, false) => State::Runs,
        };
        found.push(RowTest { id, path: path.to_owned(), line: source.line_of(at), name: name.to_owned(), state });
    }
    found
}

/// How many tests show a row. One that is ignored or never runs shows nothing.
fn proofs(id: Id, tests: &[RowTest]) -> usize {
    tests.iter().filter(|t| t.id == id && t.state == State::Runs).count()
}

/// Tests that name a row which does not exist: most likely a slip of the pen, and a row that looks unproven elsewhere.
fn strangers(promises: &[Promise], tests: &[RowTest]) -> Vec<String> {
    let unknown = tests.iter().filter(|t| !promises.iter().any(|p| p.id == t.id));
    unknown.map(|t| format!("{}:{}: {}: {} is not a row of {FEATURES}", t.path, t.line, t.name, t.id)).collect()
}

fn table(promises: &[Promise], tests: &[RowTest]) -> String {
    let mut out = String::new();
    for promise in promises {
        // Writing to a `String` cannot fail.
        let _ = writeln!(out, "{:<4} {}", promise.id.to_string(), promise.text);
        let mut own = tests.iter().filter(|t| t.id == promise.id).peekable();
        if own.peek().is_none() {
            out.push_str("     -> no test\n");
        }
        for test in own {
            let note = match test.state {
                State::Runs => "",
                State::Ignored => " (ignored: does not count)",
                State::NoTest => " (no #[test] above it: does not count)",
            };
            let _ = writeln!(out, "     -> {}: {}{note}", test.path, test.name);
        }
    }
    out
}

fn lower(id: Id) -> String {
    id.to_string().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promises() -> Vec<Promise> {
        parse_features("# head\n\nT1 | one\nT2 | two\nT3 | three\nS1 | other\n").unwrap()
    }

    #[test]
    fn the_promises_of_the_workspace_are_well_formed() {
        let text = files::read(&files::workspace_root(), FEATURES).unwrap();
        let promises = parse_features(&text).unwrap();
        // Numbers run from 1 in each table: a row that is dropped leaves a hole that is seen.
        let mut last = BTreeMap::new();
        for promise in &promises {
            let before = last.insert(promise.id.table, promise.id.number).unwrap_or(0);
            assert_eq!(promise.id.number, before + 1, "{}", promise.id);
        }
        let want = [('A', 5), ('D', 9), ('E', 6), ('R', 7), ('S', 6), ('T', 10)];
        assert_eq!(last.into_iter().collect::<Vec<_>>(), want);
    }

    #[test]
    fn malformed_promises_are_named_by_line() {
        let why = |text| parse_features(text).err().unwrap_or_default();
        assert_eq!(why("T1 one"), "docs/features.txt:1: expected `T1 | promise`, found `T1 one`");
        assert_eq!(why("\nT01 | one"), "docs/features.txt:2: `T01` is not a row's name like `T1`");
        assert_eq!(why("T1 |"), "docs/features.txt:1: T1 promises nothing");
        assert_eq!(why("T1 | a\nT1 | b"), "docs/features.txt:2: T1 is there already, on line 1");
    }

    #[test]
    fn ranges_are_understood() {
        let ids = |wanted: &[&str]| {
            select(wanted, &promises()).map(|ids| ids.iter().map(Id::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(ids(&["T1-T3", "S1"]).as_deref(), Ok("T1 T2 T3 S1"));
        assert_eq!(ids(&["t2"]).as_deref(), Ok("T2"));
        assert_eq!(ids(&[]).as_deref(), Ok("T1 T2 T3 S1"));
        for (wrong, why) in [
            ("T3-T1", "the range `T3-T1` is empty"),
            ("T1-S1", "the range `T1-S1` is empty"),
            ("T2-T9", "T4 is not a row of docs/features.txt"),
            ("T", "`T` is neither a row like `T1` nor a range like `T1-T9`"),
            ("T1-", "`T1-` is neither a row like `T1` nor a range like `T1-T9`"),
        ] {
            assert_eq!(ids(&[wrong]).as_deref(), Err(&why.to_owned()), "{wrong}");
        }
    }

    #[test]
    fn tests_are_found_by_name_and_attribute() {
        let text = r##"
use x;
#[test]
fn row_t1_a_function_becomes_a_program() { "#[test] fn row_t2_text() {}"; }
// #[test]
fn row_t2_helper() {}
#[test]
#[ignore = "slow"]
fn row_t3_slow() {}
/// Words about it.
#[test]
#[should_panic(expected = "a; b")]
fn row_s1_more() {}
fn row_major() {}
#[test]
fn row_t1() {}
proptest! {
    #[test]
    fn row_t12_in_a_macro(a in 0..3) {}
}
"##;
        let found = row_tests("a.rs", text);
        let found: Vec<_> = found.iter().map(|t| (t.id.to_string(), t.line, t.name.as_str(), t.state)).collect();
        let want = [
            ("T1", 4, "row_t1_a_function_becomes_a_program", State::Runs),
            ("T2", 6, "row_t2_helper", State::NoTest),
            ("T3", 9, "row_t3_slow", State::Ignored),
            ("S1", 13, "row_s1_more", State::Runs),
            ("T12", 19, "row_t12_in_a_macro", State::Runs),
        ];
        assert_eq!(found, want.map(|(id, line, name, state)| (id.to_owned(), line, name, state)));
    }

    #[test]
    fn the_table_shows_what_counts() {
        let text =
            "#[test]\nfn row_t1_a() {}\n#[test]\n#[ignore = \"b\"]\nfn row_t2_b() {}\n#[test]\nfn row_t9_c() {}\n";
        let tests = row_tests("x.rs", text);
        assert_eq!(promises().iter().map(|p| proofs(p.id, &tests)).collect::<Vec<_>>(), [1, 0, 0, 0]);
        let shown = table(&promises()[..3], &tests);
        let want = "T1   one\n     -> x.rs: row_t1_a\nT2   two\n     -> x.rs: row_t2_b (ignored: does not count)\n\
                    T3   three\n     -> no test\n";
        assert_eq!(shown, want);
        assert_eq!(strangers(&promises(), &tests), ["x.rs:7: row_t9_c: T9 is not a row of docs/features.txt"]);
    }
}

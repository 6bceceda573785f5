//! The parser on texts that are not programs: every one is an error with a line and a column, or a program that
//! prints and reads back; never a panic, never a long wait.
//!
//! The texts are mutations of the file tests, made by a seeded generator, and a list of attacks by size and depth.
//! `GRADUS_SEEDS=100` tries a hundred times as many. `fuzz/` has the same properties as targets for a real fuzzer.

use std::path::Path;

use gradus_core::optimize::optimize;
use gradus_core::program::verify;
use gradus_core::testing::{RandomProgram, Source};
use gradus_core::{ErrorKind, Program};

/// Pieces of programs that mutations put in odd places.
const WORDS: &[&str] = &[
    "fn",
    "return",
    "x0",
    "x1",
    "x99999999999999999999",
    "x-1",
    "f64[]",
    "f64[B]",
    "i32[9223372036854775807]",
    "c128[2]",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    ",",
    ":",
    "=",
    "->",
    " where ",
    " does ",
    "print",
    "==",
    ">=",
    "%",
    "nan",
    "nan:",
    "nan:7",
    "-inf",
    "inf",
    "1e999",
    "-0.0",
    "0",
    "-1",
    "18446744073709551616",
    "true",
    "\"",
    "\\u{",
    "\\u{110000}",
    "max(",
    "floordiv(B,0)",
    "2*B+1",
    "B^99",
    "call{program=",
    "reduce_sum{axes=[0]}",
    "é",
    "\u{0}",
    "\r\n",
    "\n",
    "\t",
    "\u{2028}",
];

/// The inputs and outputs of all file tests, and some random programs.
fn corpus() -> Vec<String> {
    let mut texts = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    for stage in std::fs::read_dir(root).unwrap() {
        for file in std::fs::read_dir(stage.unwrap().path()).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let body: String = text.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect();
            texts.extend(body.split("---\n").map(str::to_owned));
        }
    }
    texts.sort();
    texts.extend((0..200).map(|seed| RandomProgram::from_seed(seed).program.to_string()));
    texts
}

fn mutate(source: &mut Source<'_>, corpus: &[String]) -> String {
    let mut bytes = source.pick(corpus).map(|t| t.clone().into_bytes()).unwrap_or_default();
    let changes = [1, 1, 1, 2, 4][source.below(5)];
    for _ in 0..changes {
        let mut at = source.below(bytes.len() + 1);
        if source.chance(30) {
            // Small changes to numbers leave the most programs, and the oddest ones.
            at = (at..bytes.len()).find(|i| bytes[*i].is_ascii_digit()).unwrap_or(at);
            if at < bytes.len() {
                bytes[at] = b"0123456789-."[source.below(12)];
                continue;
            }
        }
        let end = (at + source.below(20)).min(bytes.len());
        match source.below(10) {
            0 if at < bytes.len() => bytes[at] ^= 1 << source.below(8),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            3 => bytes.truncate(at),
            4 => {
                let other = source.pick(corpus).map(|t| t.as_bytes().to_vec()).unwrap_or_default();
                let from = source.below(other.len() + 1);
                bytes.splice(at.., other[from..].iter().copied());
            }
            5 => {
                // A line twice, or gone.
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let mut lines: Vec<&str> = text.lines().collect();
                let line = source.below(lines.len());
                if source.chance(50) && line < lines.len() {
                    lines.remove(line);
                } else if let Some(again) = lines.get(line).copied() {
                    lines.insert(line, again);
                }
                bytes = lines.join("\n").into_bytes();
            }
            6 if at < bytes.len() => bytes[at] = b"0123456789"[source.below(10)],
            7 if at < bytes.len() => bytes[at] = source.byte(),
            _ => {
                let word = source.pick(WORDS).copied().unwrap_or(" ");
                bytes.splice(at..if source.chance(50) { at } else { end }, word.bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Parses a text and checks whatever comes out. Whether it was a program.
fn check(text: &str) -> bool {
    match text.parse::<Program>() {
        Err(e) => {
            assert!(e.to_string().contains("at line "), "{e}\n{text}");
            false
        }
        Ok(p) => {
            verify(&p).unwrap_or_else(|e| panic!("it parses but does not verify: {e}\n{text}"));
            let printed = p.to_string();
            let back: Program = printed.parse().unwrap_or_else(|e| panic!("{e}\n{printed}"));
            assert_eq!(back, p, "{printed}");
            assert_eq!(back.to_string(), printed);
            assert_eq!(back.fingerprint(), p.fingerprint());
            let fast = optimize(&p).unwrap_or_else(|e| panic!("{e}\n{printed}"));
            verify(&fast).unwrap();
            true
        }
    }
}

#[test]
fn mutated_programs_never_panic() {
    let corpus = corpus();
    assert!(corpus.len() > 200);
    let times: u64 = std::env::var("GRADUS_SEEDS").ok().and_then(|v| v.parse().ok()).unwrap_or(1);
    let (mut tried, mut programs) = (0u64, 0u64);
    for text in &corpus {
        check(text);
    }
    for seed in 0..20_000 * times {
        let text = mutate(&mut Source::seed(seed), &corpus);
        let outcome = std::panic::catch_unwind(|| check(&text));
        let is_program = outcome.unwrap_or_else(|_| panic!("seed {seed}:\n{text}"));
        tried += 1;
        programs += u64::from(is_program);
    }
    println!("{tried} texts tried, {programs} of them programs");
    assert!(programs * 100 > tried, "too few mutations are still programs: {programs} of {tried}");
}

#[test]
fn random_bytes_never_panic() {
    for seed in 0..5_000 {
        let mut source = Source::seed(seed);
        let length = source.below(200);
        let bytes: Vec<u8> = (0..length).map(|_| source.byte()).collect();
        check(&String::from_utf8_lossy(&bytes));
        let words: String = (0..length).filter_map(|_| source.pick(WORDS).copied()).collect();
        check(&words);
    }
}

/// A text that is refused with a short message. A reader that takes more than linear time would not come back here.
fn refused(what: &str, text: &str) {
    let result = text.parse::<Program>();
    let e = result.err().unwrap_or_else(|| panic!("{what}: this is a program"));
    assert!(e.to_string().len() < 10_000, "{what}: a message of {} bytes", e.to_string().len());
}

const MILLION: usize = 1_000_000;

#[test]
fn a_million_brackets_are_an_error() {
    let minus = format!("fn f(x0: f64[{}1]) -> () {{\n  return\n}}", "-".repeat(MILLION));
    if let Ok(p) = minus.parse::<Program>() {
        assert_eq!(p.inputs()[0].shape(), [1], "an even number of minus signs");
    }
    for (open, close) in [("(", ")"), ("[", "]"), ("{", "}"), ("max(", ",1)"), ("fn f(", ")"), ("\"", "\"")] {
        let (opened, closed) = (open.repeat(MILLION), close.repeat(MILLION));
        for (before, after) in [
            ("", ""),
            ("fn f(", ")"),
            ("fn f(x0: f64[", "]) -> () {\n  return\n}"),
            ("fn f(x0: f64[2]) -> ", " {\n  return\n}"),
            ("fn f(x0: f64[2]) -> f64[2] where ", "==1 {\n  return x0\n}"),
            ("fn f(x0: f64[2]) -> f64[2] {\n  x1: f64[2] = cumsum{axis=", ", reverse=false} x0\n  return x1\n}"),
            ("fn f(x0: f64[2]) -> f64[2] {\n  x1: f64[2] = add x0 ", ":f64[2]\n  return x1\n}"),
            ("fn f(x0: f64[2]) -> f64[2] {\n  return ", "\n}"),
        ] {
            refused(&format!("{before}{open}{after}"), &format!("{before}{opened}{after}"));
            refused(&format!("{before}{open}..{close}{after}"), &format!("{before}{opened}1{closed}{after}"));
        }
    }
}

#[test]
fn programs_nested_too_deep_are_an_error() {
    let open = "fn f(x0: f64[]) -> f64[] {\n x1: f64[] = call{program=";
    let close = "} x0\n return x1\n}";
    let nested = |depth: usize| {
        let inner = "fn f(x0: f64[]) -> f64[] {\n return x0\n}";
        format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
    };
    assert!(check(&nested(60)));
    refused("100 calls", &nested(100));
    refused("50,000 calls", &nested(50_000));
}

#[test]
fn long_texts_are_read() {
    let many = |n: usize| {
        let mut text = String::from("fn f(x0: f64[]) -> f64[] {\n");
        for i in 0..n {
            text += &format!("  x{}: f64[] = add x{i} {i}.5:f64[]\n", i + 1);
        }
        text + &format!("  return x{n}\n}}\n")
    };
    let p: Program = many(30_000).parse().unwrap();
    assert_eq!(p.equations().len(), 30_000);
    let inputs: Vec<String> = (0..30_000).map(|i| format!("x{i}: f64[]")).collect();
    assert!(check(&format!("fn f({}) -> () {{\n  return\n}}\n", inputs.join(", "))));
    let numbers = vec!["1.5"; MILLION].join(",");
    assert!(check(&format!("fn f() -> f64[{MILLION}] {{\n  return [{numbers}]:f64[{MILLION}]\n}}\n")));
}

#[test]
fn long_tokens_are_an_error() {
    let program = |piece: &str| format!("fn f(x0: f64[2]) -> f64[2] {{\n  x1: f64[2] = {piece}\n  return x1\n}}\n");
    let long = |c: &str| c.repeat(MILLION);
    for (what, piece) in [
        ("a long name", long("a")),
        ("a long number", format!("add x0 {}:i64[2]", long("1"))),
        ("a long dimension", format!("reshape{{shape=[{}]}} x0", long("9"))),
        ("a long sum", format!("reshape{{shape=[{}1]}} x0", long("B+"))),
        ("a long product", format!("reshape{{shape=[{}1]}} x0", long("B*"))),
        ("a tower of powers", format!("reshape{{shape=[{}1]}} x0", long("B^"))),
        ("many operands", format!("add {}", long("x0 "))),
        ("many parameters", format!("cumsum{{{}}} x0", long("axis=0, "))),
        ("a text without end", format!("sin{{a=\"{}", long("b"))),
        ("spaces without end", long(" ")),
        ("a letter of many bytes", long("é")),
    ] {
        refused(what, &program(&piece));
        refused(what, &piece);
    }
    // A long number that is one all the same.
    assert!(check(&program(&format!("add x0 0.{}:f64[2]", "3".repeat(5000)))));
}

#[test]
fn names_that_are_no_words_do_not_break_the_text() {
    // Programs are named after Rust functions, which have paths and closures in them.
    for name in ["a b", "crate::f::{{closure}}", "", "1", "fn", "é", "x0"] {
        let p: Program = "fn f(x0: f64[]) -> f64[] {\n  return x0\n}\n".parse().unwrap();
        let p = p.with_name(name);
        let back: Program = p.to_string().parse().unwrap_or_else(|e| panic!("`{name}`: {e}\n{p}"));
        assert!(back.computes_same(&p));
        assert_eq!(back, p, "`{name}` became `{}`", back.name());
    }
}

#[test]
fn an_error_has_a_kind_that_says_whether_it_is_text_or_meaning() {
    let kind = |text: &str| text.parse::<Program>().unwrap_err().kind();
    assert_eq!(kind("fn"), ErrorKind::Parse);
    assert_eq!(kind("fn f(x0: f64[2]) -> f64[3] {\n  return x0\n}"), ErrorKind::Verify);
}

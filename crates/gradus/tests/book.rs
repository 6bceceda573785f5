//! Keeps the book true: every program on a page is what the library prints, and every other block of code is a doctest.
//!
//! A block that starts with three backticks and `program <name>` holds the program that `programs` gives for the name; one
//! with `kernels <name>` what the compiler makes of it.
//! `GRADUS_BLESS=1` rewrites the blocks; read the difference before you commit it. A block without a check and a check
//! without a block fail.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gradus::extend::optimize::{eliminate_dead_code, simplify};
use gradus::extend::transform;
use gradus::prelude::*;

// The functions of the page, as they stand there.

fn f(x: &Array, w: &Array) -> Array {
    let y = x * w;
    (y.sin() * y.cos()).sum()
}

fn outer(x: &Array) -> Array {
    jit(|x: &Array| (x * x).sin())(x).sum()
}

fn decay(x: &Array, rates: &Array) -> Array {
    scan(|h: &Array, r: &Array| ((h * r).sin(), ()), x.clone(), rates).0
}

fn softmax(x: &Array) -> Array {
    let e = (x - x.max_keep(-1)).exp();
    &e / e.sum_keep(-1)
}

fn sine(x: &Array) -> Array {
    x.sin().sum()
}

/// Every program that a page may show.
fn programs() -> Result<BTreeMap<&'static str, String>> {
    let (number, three) = (Array::spec("f64[]"), Array::spec("f64[3]"));
    let mut all = BTreeMap::new();
    let by_x = [true, false];
    let trace = jit(f).trace(&three, &three)?.program().clone();
    let (jvp, _) = transform::jvp(&trace, &by_x)?;
    let simplified = eliminate_dead_code(&simplify(&jvp)?, true);
    let forward = transform::linearize(&trace, &by_x)?;
    let backward = transform::vjp(&trace, &by_x)?;
    assert_eq!(forward.primal, backward.primal, "both modes have the same first half");
    // The page counts these.
    assert_eq!((jvp.equations().len(), simplified.equations().len()), (15, 13));
    assert_eq!(forward.residuals.len(), 3);
    all.insert("trace", trace);
    all.insert("jvp", jvp);
    all.insert("simplified", simplified);
    all.insert("primal", forward.primal);
    all.insert("linear", forward.linear);
    all.insert("pullback", backward.linear);
    all.insert("gradient", jit(grad(f)).trace(&three, &three)?.optimized());
    let cheap = transform::vjp(jit(sine).trace(&three)?.program(), &[true])?;
    all.insert("cheap-primal", cheap.primal);
    all.insert("cheap-pullback", cheap.linear);
    all.insert("call", jit(grad(outer)).trace(&three)?.optimized());
    let scan = jit(decay).trace(&number, &three)?.program().clone();
    let halves = transform::vjp(&scan, &[true, true])?;
    all.insert("scan", scan);
    all.insert("scan-primal", halves.primal);
    all.insert("scan-pullback", halves.linear);
    let mut all: BTreeMap<&'static str, String> =
        all.into_iter().map(|(name, p): (_, Program)| (name, p.to_string())).collect();
    // How a program becomes machine code: every phase of the page's function.
    let rows = Array::spec("f32[64,256]");
    for phase in jit(softmax).backend(gradus::cpu::Cpu::new().tier(gradus::cpu::Tier::Embedded)).phases(&rows)?.iter() {
        match phase.name {
            "trace" => drop(all.insert("machine-trace", phase.text.clone())),
            "strength" => drop(all.insert("machine-ready", phase.text.clone())),
            "lower" => drop(all.insert("machine-kernels", main_parts(&phase.text))),
            "plan memory" => drop(all.insert("machine-memory", phase.text.clone())),
            _ => {}
        }
    }
    let effects = jit(grad(shown)).trace(&number)?.optimized().to_string();
    all.insert("effects", with_number(&effects));
    let caught = jit(grad(roots)).hunt(Hunt::NanAndInf)(&Array::from([4.0_f64, 0.0])).ok().unwrap_err();
    all.insert("hunted", in_a_model(&caught));
    let read = jit(|x: &Array| x.item::<f64>().map_or_else(Array::from, Array::from));
    all.insert("no_number", in_a_model(&read(&Array::from(1.0_f64)).ok().unwrap_err()));
    Ok(all)
}

fn shown(x: &Array) -> Array {
    debug_print!("x is {}", x);
    x.sin()
}

fn roots(x: &Array) -> Array {
    x.sqrt().sum()
}

/// The number of a callback depends on what else the process has traced.
fn with_number(text: &str) -> String {
    let (before, after) = text.split_once("id=").expect("a callback");
    format!("{before}id=7{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// The line of an error as a reader would meet it.
fn in_a_model(e: &Error) -> String {
    let text = e.to_string().replace(&e.place().to_string(), "src/model.rs:12:24");
    // Other lines of this file are those of a program that uses the model.
    let mut parts = text.split(file!());
    let first = parts.next().unwrap_or_default().to_string();
    let place = |rest: &str| rest.trim_start_matches(|c: char| c == ':' || c.is_ascii_digit()).to_string();
    parts.fold(first, |text, rest| text + "src/main.rs:30:17" + &place(rest)) + "\n"
}

/// The kernels as a page shows them: a long run of arithmetic, an elementary function written out, is cut short.
fn main_parts(text: &str) -> String {
    let mut out = String::new();
    let mut run = 0;
    for line in text.lines() {
        let arithmetic =
            line.contains(" = ") && line.trim_start().starts_with('v') && !line.contains('[') && !line.contains('{');
        run = if arithmetic { run + 1 } else { 0 };
        match run {
            0..=6 => out.push_str(line),
            7 => out.push_str("      ..."),
            _ => continue,
        }
        out.push('\n');
    }
    out
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every page but the table of contents, with its name.
fn pages() -> Vec<(String, PathBuf)> {
    let folder = root().join("docs/book/src");
    let files = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut all: Vec<(String, PathBuf)> = files
        .map(|f| f.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path))
        // The pages on errors are in a folder of their own; each is what `gradus explain` prints.
        .filter(|(name, path)| name != "SUMMARY.md" && path.is_file())
        .collect();
    all.sort();
    all
}

fn read(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A page in pieces: text as it stands, and blocks of code with what stands behind the backticks.
#[derive(Debug, PartialEq)]
enum Piece {
    Text(String),
    Block { info: String, code: String },
}

const FENCE: &str = "```";

fn pieces(page: &str) -> Result<Vec<Piece>, String> {
    let mut all = Vec::new();
    let mut text = String::new();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.strip_prefix(FENCE) else {
            text.push_str(line);
            text.push('\n');
            continue;
        };
        all.push(Piece::Text(std::mem::take(&mut text)));
        let mut code = String::new();
        loop {
            match lines.next() {
                Some((_, FENCE)) => break,
                Some((_, line)) => {
                    code.push_str(line);
                    code.push('\n');
                }
                None => return Err(format!("the block of line {} has no end", number + 1)),
            }
        }
        all.push(Piece::Block { info: info.to_string(), code });
    }
    all.push(Piece::Text(text));
    Ok(all)
}

fn join(pieces: &[Piece]) -> String {
    let text = |p: &Piece| match p {
        Piece::Text(text) => text.clone(),
        Piece::Block { info, code } => format!("{FENCE}{info}\n{code}{FENCE}\n"),
    };
    pieces.iter().map(text).collect()
}

/// What is wrong with a page. The names of the blocks that were looked at are taken out of `left`; with `bless` the
/// blocks are rewritten.
fn check(page: &mut [Piece], left: &mut BTreeMap<&'static str, String>, bless: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for piece in page {
        let Piece::Block { info, code } = piece else { continue };
        match info.split_once(' ') {
            Some(("program" | "kernels", name)) => {
                let Some(want) = left.remove(name) else {
                    wrong.push(format!("the program `{name}` has no check, or stands there twice"));
                    continue;
                };
                if bless {
                    *code = want;
                } else if *code != want {
                    wrong.push(format!("the program `{name}` is printed as\n{want}and the page has\n{code}"));
                }
            }
            // Doctests, of which some must not compile.
            None if info == "rust" || info == "rust,compile_fail" => {}
            // What a reader types into a terminal, without what is printed there.
            None if info == "sh" => {}
            // The other side of an export, which runs in Python.
            None if info == "python" => {}
            // Settings that are recommended are those that the workspace has.
            None if info == "toml" => {
                if !read(&root().join("Cargo.toml")).contains(code.as_str()) {
                    wrong.push(format!("the workspace's Cargo.toml does not have\n{code}"));
                }
            }
            _ => wrong.push(format!("a block `{info}` is neither `rust`, which runs, nor `program <name>`")),
        }
    }
    wrong
}

#[test]
fn row_a5_every_program_in_the_book_is_what_the_library_prints() -> Result<()> {
    let bless = std::env::var_os("GRADUS_BLESS").is_some_and(|v| v == "1");
    let mut left = programs()?;
    let mut wrong = Vec::new();
    for (name, path) in pages() {
        let before = read(&path);
        let mut page = pieces(&before).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(join(&page), before, "{name}: a page that is read and written stays what it is");
        wrong.extend(check(&mut page, &mut left, bless).into_iter().map(|w| format!("{name}: {w}")));
        let after = join(&page);
        if after != before {
            std::fs::write(&path, after).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        }
    }
    wrong.extend(left.keys().map(|name| format!("no page shows the program `{name}`")));
    assert!(wrong.is_empty(), "{}\n(`GRADUS_BLESS=1` rewrites the programs)", wrong.join("\n"));
    Ok(())
}

#[test]
fn row_a5_every_page_is_listed_and_its_code_runs() {
    let summary = read(&root().join("docs/book/src/SUMMARY.md"));
    let doctests = read(&root().join("crates/gradus/src/book.rs"));
    let pages = pages();
    assert!(!pages.is_empty());
    for (name, path) in &pages {
        assert!(name.ends_with(".md"), "{name} is not a page");
        assert!(summary.contains(&format!("({name})")), "{name} is not in SUMMARY.md");
        assert!(doctests.contains(&format!("book/src/{name}\")]")), "{name} is not in crates/gradus/src/book.rs");
        assert!(read(path).starts_with("# "), "{name} has no title");
    }
    let errors = gradus::ErrorKind::ALL;
    for kind in errors {
        let page = root().join(format!("docs/book/src/errors/{}.md", kind.code()));
        let wanted = format!("{{{{#include ../../../../crates/gradus/src/errors/{}.md}}}}\n", kind.code());
        assert_eq!(read(&page), wanted);
        assert!(doctests.contains(&format!("\"errors/{}.md\")]", kind.code())), "{} is not in book.rs", kind.code());
    }
    let listed = summary.matches(".md)").count();
    assert_eq!(listed, pages.len() + errors.len(), "SUMMARY.md lists a page that is not there");
}

#[test]
fn the_functions_here_are_those_of_the_page() {
    let here = include_str!("book.rs");
    let page = read(&root().join("docs/book/src/how-differentiation-works.md"));
    for name in ["f", "outer", "decay"] {
        let start = here.find(&format!("\nfn {name}(")).unwrap() + 1;
        let end = start + here[start..].find("\n}\n").unwrap() + 3;
        assert!(page.contains(&here[start..end]), "the page does not have\n{}", &here[start..end]);
    }
}

#[test]
fn a_page_with_something_unchecked_fails() -> Result<()> {
    let page = "# Title\n\n```program trace\nold\n```\ntext\n```rust\nlet x = 1;\n```\n";
    let mut read = pieces(page).unwrap();
    assert_eq!(join(&read), page);
    let one = || BTreeMap::from([("trace", jit(sine).trace(&Array::spec("f64[3]")).unwrap().program().to_string())]);
    let mut left = one();
    assert!(check(&mut read, &mut left, false)[0].contains("the page has\nold"));
    assert!(left.is_empty());
    // Blessing mends it.
    assert_eq!(check(&mut read, &mut one(), true), Vec::<String>::new());
    assert_eq!(check(&mut read, &mut one(), false), Vec::<String>::new());
    assert!(join(&read).contains("```program trace\nfn sine("));
    let wrong = |page: &str| check(&mut pieces(page).unwrap(), &mut one(), false).join("\n");
    assert!(wrong("```program other\n```\n").contains("`other` has no check"));
    assert!(wrong("```\ncode\n```\n").contains("neither"));
    assert!(wrong("```rust,ignore\ncode\n```\n").contains("neither"));
    assert!(wrong("```toml\n[profile.none]\n```\n").contains("does not have"));
    assert!(pieces("```rust\nlet x = 1;\n").unwrap_err().contains("line 1 has no end"));
    Ok(())
}

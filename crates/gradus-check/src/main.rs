//! The command line: random programs, the enumeration, one program shown, one failure run again.

use std::path::{Path, PathBuf};
use std::process::exit;

use gradus_check::drive::{self, Campaign};
use gradus_check::{begin, case_of};

const USAGE: &str = "usage:
  gradus-check random [--programs N] [--seed S] [--seconds T] [--jobs J] [--out DIR] [--shrink K]
  gradus-check enumerate [--share K/N] [--seconds T] [--jobs J] [--out DIR] [--shrink K]
  gradus-check show [random|enumerate] NUMBER
  gradus-check replay FILE";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    begin();
    let code = match words[..] {
        ["random", ref rest @ ..] => random(rest),
        ["enumerate", ref rest @ ..] => enumerate(rest),
        ["show", number] => show("random", number),
        ["show", source, number] => show(source, number),
        ["replay", file] => Some(drive::replay(Path::new(file), false)),
        ["child-file", file] => Some(drive::replay(Path::new(file), true)),
        ["child", source, first, stride, from, to] => child(source, [first, stride, from, to]),
        _ => None,
    };
    exit(code.unwrap_or_else(|| {
        eprintln!("{USAGE}");
        2
    }));
}

fn child(source: &str, numbers: [&str; 4]) -> Option<i32> {
    let mut parsed = [0; 4];
    for (to, text) in parsed.iter_mut().zip(numbers) {
        *to = text.parse().ok()?;
    }
    Some(drive::be_child(source, parsed))
}

fn show(source: &str, number: &str) -> Option<i32> {
    match case_of(source, number.parse().ok()?) {
        Some(case) => println!("{case}"),
        None => println!("no case: the chain does not fit the shape"),
    }
    Some(0)
}

/// The value of an option, or what stands for it if it is not there.
fn option<T: std::str::FromStr>(words: &[&str], name: &str, otherwise: T) -> Option<T> {
    match words.iter().position(|w| *w == name) {
        Some(at) => words.get(at + 1)?.parse().ok(),
        None => Some(otherwise),
    }
}

fn plan(source: &'static str, words: &[&str]) -> Option<Campaign> {
    let known = ["--programs", "--seed", "--seconds", "--jobs", "--out", "--shrink", "--share", "--tries"];
    let names = words.iter().step_by(2);
    if !words.len().is_multiple_of(2) || names.clone().any(|w| !known.contains(w)) {
        return None;
    }
    let seconds: u64 = option(words, "--seconds", 0)?;
    Some(Campaign {
        source,
        first: option(words, "--seed", 0)?,
        count: option(words, "--programs", if seconds > 0 { u64::MAX / 2 } else { 10_000 })?,
        stride: 1,
        seconds: (seconds > 0).then_some(seconds),
        jobs: option(words, "--jobs", 2)?,
        out: option(words, "--out", PathBuf::from("target/check"))?,
        shrunk: option(words, "--shrink", 20)?,
        tries: option(words, "--tries", 300)?,
    })
}

fn random(words: &[&str]) -> Option<i32> {
    Some(if drive::run(&plan("random", words)?) { 0 } else { 1 })
}

/// The whole enumeration, or every so many-th place of it.
fn enumerate(words: &[&str]) -> Option<i32> {
    let share: String = option(words, "--share", "1/1".to_string())?;
    let (k, n) = share.split_once('/')?;
    let (k, n): (u64, u64) = (k.parse().ok()?, n.parse().ok()?);
    if k == 0 || k > n {
        return None;
    }
    let (first, count) = (k - 1, gradus_check::enumerate::count());
    let plan = Campaign { first, stride: n, count: (count - first).div_ceil(n), ..plan("enumerate", words)? };
    Some(if drive::run(&plan) { 0 } else { 1 })
}

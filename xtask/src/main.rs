//! Chores of the workspace as one program, so that they need nothing but cargo: run as `cargo xtask <command>`.

mod bless;
mod build_time;
mod files;
mod links;
mod rooms;
mod rows;
mod source;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  tidy                    check the house rules that neither the compiler nor rustfmt knows
  rows                    list the promises of docs/features.txt and the tests that show them
  rows --check [ROW ...]  fail unless each ROW (T1, or a range T1-T9; all when none is named) has a test
  build-time [MODE ...]   build a new crate that depends on gradus, in debug and release mode, and split the time by crate
  bless [ARG ...]         run `cargo test --workspace ARG ...` with GRADUS_BLESS=1, then show what changed
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let root = files::workspace_root();
    let done = match words.as_slice() {
        ["tidy"] => tidy::run(&root),
        ["rows"] => rows::list(&root),
        ["rows", "--check", wanted @ ..] => rows::check(&root, wanted),
        ["build-time", modes @ ..] => build_time::run(&root, modes),
        ["bless", rest @ ..] => bless::run(&root, rest),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(true)
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

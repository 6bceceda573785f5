//! Gradus as a tool of GradBench: reads messages from standard input, one a line, and answers each on standard output.
//!
//! The public runner starts it beside an evaluation: `gradbench run --eval EVAL --tool target/release/gradbench`.

use std::io::{BufRead, Write};

use gradus_bench::protocol::respond;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if !line.trim().is_empty() {
            writeln!(out, "{}", respond(&line))?;
            out.flush()?;
        }
    }
    Ok(())
}

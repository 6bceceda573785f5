//! Files in child processes: a crash costs one file, not the run.
//!
//! A child gets a chunk of files on its standard input, a line each, and answers with a line for each. If it ends before its last answer, each file without one is run again in
//! a process of its own: the one that ends it again is the one that failed.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gradus::extend::Backend;
use serde_json::{Value, json};

use super::find::Test;
use super::judge::judge;
use super::{Outcome, Status};
use crate::Answer;

/// What a child is called with.
pub const CHILD: &str = "--child";
/// Files of a child.
const CHUNK: usize = 64;
/// Children at a time.
const CHILDREN: usize = 2;
/// A file that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(300);
/// What begins an answer: a library may print lines of its own.
const ANSWER: &str = "gradus-conformance ";

/// What a child does: judges the files of its standard input.
pub fn serve(backend: &Arc<dyn Backend>) -> Answer {
    for line in std::io::stdin().lines() {
        let line = line.map_err(|e| format!("cannot read: {e}"))?;
        let test = Test::of_line(&line).ok_or_else(|| format!("not a test: {line}"))?;
        let started = Instant::now();
        let (status, reason) = judge(&test, backend);
        let answer = json!({
            "status": status.name(),
            "reason": reason,
            "seconds": started.elapsed().as_secs_f64(),
        });
        let mut out = std::io::stdout().lock();
        writeln!(out, "{ANSWER}{answer}").and_then(|()| out.flush()).map_err(|e| format!("cannot write: {e}"))?;
    }
    Ok(String::new())
}

/// Runs all files; gives what became of each, in their order.
pub fn all(files: Vec<Test>, backend: &str) -> Result<Vec<Outcome>, String> {
    let program = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    let chunks: VecDeque<Vec<Test>> = files.chunks(CHUNK).map(<[Test]>::to_vec).collect();
    let (chunks, done) = (Mutex::new(chunks), Mutex::new(Vec::new()));
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..CHILDREN {
            scope.spawn(|| {
                loop {
                    let next = chunks.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some(chunk) = next else { return };
                    match run_chunk(&program, backend, &chunk) {
                        Ok(outcomes) => done.lock().unwrap_or_else(PoisonError::into_inner).extend(outcomes),
                        Err(e) => *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(e),
                    }
                }
            });
        }
    });
    if let Some(e) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(e);
    }
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by(|a: &Outcome, b: &Outcome| a.file.cmp(&b.file));
    Ok(done)
}

/// A chunk in one child; what is left of it if that ends early, file by file.
fn run_chunk(program: &PathBuf, backend: &str, chunk: &[Test]) -> Result<Vec<Outcome>, String> {
    let (mut outcomes, _) = run_child(program, backend, chunk)?;
    for test in &chunk[outcomes.len()..] {
        let (alone, ended) = run_child(program, backend, std::slice::from_ref(test))?;
        outcomes.push(alone.into_iter().next().unwrap_or_else(|| Outcome {
            file: test.path.clone(),
            kind: test.kind.clone(),
            status: Status::Failed,
            reason: ended,
            seconds: 0.0,
        }));
    }
    Ok(outcomes)
}

/// The answers of a child, as far as they came, and how it ended.
fn run_child(program: &PathBuf, backend: &str, tests: &[Test]) -> Result<(Vec<Outcome>, String), String> {
    let mut child = Command::new(program)
        .args(["conformance", "--backend", backend, CHILD])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("cannot start a process: {e}"))?;
    let lines: String = tests.iter().map(|t| t.to_line() + "\n").collect();
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("a process without pipes".into());
    };
    // A child that is gone does not read: that is seen by its missing answers.
    let writer = std::thread::spawn(move || drop(stdin.write_all(lines.as_bytes())));
    let (send, answers) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    let mut outcomes = Vec::new();
    let mut late = false;
    while outcomes.len() < tests.len() {
        let line = match answers.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                late = true;
                break;
            }
        };
        let Some(answer) = line.strip_prefix(ANSWER).and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
            continue;
        };
        let test = &tests[outcomes.len()];
        outcomes.push(Outcome {
            file: test.path.clone(),
            kind: test.kind.clone(),
            status: answer["status"].as_str().and_then(Status::of).unwrap_or(Status::Failed),
            reason: answer["reason"].as_str().unwrap_or_default().into(),
            seconds: answer["seconds"].as_f64().unwrap_or(0.0),
        });
    }
    if late {
        // It may be gone already.
        let _ = child.kill();
    }
    let ended = child.wait().map_err(|e| format!("a process was lost: {e}"))?;
    let _ = (writer.join(), reader.join());
    let how = if late { format!("no answer in {PATIENCE:?}") } else { format!("the process ended: {ended}") };
    Ok((outcomes, how))
}

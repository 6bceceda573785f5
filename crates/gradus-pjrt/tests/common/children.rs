//! Work in processes of their own: XLA ends the process where it finds a fault in itself. Then that costs one piece of the work, and the test says which.

use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Set in a child: which pieces are its own, as `from..to`.
const PIECES: &str = "GRADUS_TEST_PIECES";
/// The starts of lines by which a child speaks. Others are read past.
const BEGINS: &str = "[piece begins] ";
const FAILS: &str = "[piece fails] ";
const NOTES: &str = "[piece notes] ";
const ENDS: &str = "[all pieces end]";
/// A piece that takes longer hangs: a loop that rounding keeps from its end, for one.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the children did.
#[derive(Debug, Default)]
pub struct Done {
    /// What is wrong, by the name of its piece.
    pub failed: Vec<String>,
    /// What pieces had to say.
    pub notes: Vec<String>,
}

/// A piece's answer: what it notes, or what is wrong.
pub type Answer = Result<Vec<String>, String>;

/// Work in pieces, for the test of this name, which must do nothing else that takes time.
pub struct Pieces<'a> {
    pub test: &'a str,
    /// What a child finds in its environment.
    pub variables: &'a [(&'a str, &'a str)],
    pub count: usize,
    /// How many a process does.
    pub at_once: usize,
    /// What a piece is called.
    pub name: &'a (dyn Fn(usize) -> String + Sync),
}

/// Has pieces of work done in children. In a child it does them and gives `None`: the test returns.
pub fn in_children(pieces: &Pieces<'_>, work: &dyn Fn(usize) -> Answer) -> Option<Done> {
    let Pieces { count, at_once, .. } = *pieces;
    if let Ok(own) = std::env::var(PIECES) {
        let (from, to) = own.split_once("..").unwrap();
        child(from.parse().unwrap()..to.parse().unwrap(), work);
        return None;
    }
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Done::default()));
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                loop {
                    let from = next.fetch_add(at_once, Ordering::Relaxed);
                    if from >= count {
                        return;
                    }
                    parent(pieces, from, (from + at_once).min(count), &done);
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.failed.sort();
    Some(done)
}

fn child(pieces: std::ops::Range<usize>, work: &dyn Fn(usize) -> Answer) {
    let say = |start: &str, i: usize, text: &str| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "\n{start}{i} {}", text.escape_debug()).unwrap();
        out.flush().unwrap();
    };
    for i in pieces {
        say(BEGINS, i, "");
        let panicked = |p: Box<dyn std::any::Any + Send>| {
            let text =
                p.downcast_ref::<String>().cloned().or_else(|| p.downcast_ref::<&str>().map(ToString::to_string));
            Err(format!("panicked: {}", text.unwrap_or_default()))
        };
        match catch_unwind(AssertUnwindSafe(|| work(i))).unwrap_or_else(panicked) {
            Ok(notes) => notes.iter().for_each(|n| say(NOTES, i, n)),
            Err(e) => say(FAILS, i, &e),
        }
    }
    say(ENDS, 0, "");
}

/// Has pieces done by as many children as it takes: one for all, and one more behind each piece that ends its process.
fn parent(pieces: &Pieces<'_>, mut from: usize, to: usize, done: &Mutex<Done>) {
    let name = pieces.name;
    while from < to {
        let mut run = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", pieces.test, "--nocapture", "--test-threads", "1"])
            .envs(pieces.variables.iter().copied())
            .env(PIECES, format!("{from}..{to}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (lines, said) = channel();
        let out = BufReader::new(run.stdout.take().unwrap());
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|l| lines.send(l)));
        let err = BufReader::new(run.stderr.take().unwrap());
        let last_words = std::thread::spawn(move || {
            let mut last: Vec<String> = Vec::new();
            for line in err.lines().map_while(Result::ok) {
                last.push(line);
                if last.len() > 8 {
                    last.remove(0);
                }
            }
            last.join("\n")
        });
        let (mut at, mut ended, mut hangs) = (from, false, false);
        loop {
            let line = match said.recv_timeout(PATIENCE) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    hangs = true;
                    run.kill().unwrap();
                    break;
                }
            };
            let numbered = |rest: &str| {
                let (i, text) = rest.split_once(' ').unwrap_or((rest, ""));
                (i.parse::<usize>().unwrap_or(at), text.replace("\\n", "\n").replace("\\\"", "\"").replace("\\'", "'"))
            };
            if let Some(rest) = line.strip_prefix(BEGINS) {
                at = numbered(rest).0;
            } else if let Some(rest) = line.strip_prefix(FAILS) {
                let (i, text) = numbered(rest);
                done.lock().unwrap().failed.push(format!("{}: {text}", name(i)));
            } else if let Some(rest) = line.strip_prefix(NOTES) {
                done.lock().unwrap().notes.push(numbered(rest).1);
            }
            ended |= line.starts_with(ENDS);
        }
        let status = run.wait().unwrap();
        let last_words = last_words.join().unwrap();
        if ended {
            return;
        }
        let how =
            if hangs { format!("took longer than {PATIENCE:?}") } else { format!("ended its process ({status})") };
        done.lock().unwrap().failed.push(format!("{}: {how}\n{last_words}", name(at)));
        from = at + 1;
    }
}

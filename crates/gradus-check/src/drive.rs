//! A run: child processes go through cases, so that a crash is one more failure and not the end; failures are run again alone, made
//! small and grouped.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::case::Case;
use crate::check::{Failure, Way};
use crate::shrink::shrink;

/// What a run is to do.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The word that tells a child where its cases come from: `random` or `enumerate`.
    pub source: &'static str,
    /// The first case.
    pub first: u64,
    /// How many cases.
    pub count: u64,
    /// Only every so many-th case.
    pub stride: u64,
    /// At most so long.
    pub seconds: Option<u64>,
    /// Child processes at once.
    pub jobs: usize,
    /// Where failures are written.
    pub out: PathBuf,
    /// Failures of one class that are made small.
    pub shrunk: usize,
    /// Cases tried to make one failure small.
    pub tries: usize,
}

/// Cases that a child goes through before another takes its place: memory that went wrong does not outlive it.
const CHUNK: u64 = 400;
/// A case that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// How a process ends that cannot read its file.
const UNREADABLE: i32 = 2;

/// A failure with all that is known of it.
#[derive(Clone, Debug)]
struct Found {
    number: u64,
    failure: Failure,
    small: Option<Case>,
}

#[derive(Default)]
struct Tally {
    cases: u64,
    tried: [u64; Way::ALL.len()],
    found: Vec<Found>,
    /// How many failures of a class have been made small.
    shrunk: BTreeMap<String, usize>,
}

/// What ended a child.
enum End {
    Done,
    /// A failure that it found; it stopped there, because what is wrong may have touched its memory.
    Failed(u64, Failure),
    Crashed(u64, String),
}

/// Runs a plan; true if nothing failed.
pub fn run(plan: &Campaign) -> bool {
    let started = Instant::now();
    let next = AtomicU64::new(0);
    let tally = Mutex::new(Tally::default());
    let over = || plan.seconds.is_some_and(|s| started.elapsed().as_secs() >= s);
    std::thread::scope(|scope| {
        for job in 0..plan.jobs.max(1) {
            let (next, tally, over) = (&next, &tally, &over);
            scope.spawn(move || {
                while !over() {
                    let from = next.fetch_add(CHUNK, Ordering::Relaxed);
                    if from >= plan.count {
                        break;
                    }
                    chunk(plan, job, from, (from + CHUNK).min(plan.count), tally, &over);
                    show_progress(&lock(tally), started);
                }
            });
        }
    });
    let tally = tally.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    report(plan, &tally, started.elapsed())
}

fn lock<T>(m: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    m.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Cases of a chunk, through as many children as it takes.
fn chunk(plan: &Campaign, job: usize, from: u64, to: u64, tally: &Mutex<Tally>, over: &dyn Fn() -> bool) {
    let mut at = from;
    while at < to && !over() {
        let (end, cases, tried) = child(plan, at, to);
        {
            let mut tally = lock(tally);
            tally.cases += cases;
            tally.tried.iter_mut().zip(tried).for_each(|(sum, n)| *sum += n);
        }
        let (number, failure) = match end {
            End::Done => return,
            End::Failed(number, failure) => (number, failure),
            End::Crashed(number, how) => (number, crash(&how)),
        };
        at = number + 1;
        settle(plan, job, number, failure, tally);
    }
}

fn crash(how: &str) -> Failure {
    Failure { way: "process".into(), class: format!("crash: {how}"), message: how.into() }
}

/// A failure is run again alone, made small if its class is new, and written down.
fn settle(plan: &Campaign, job: usize, number: u64, failure: Failure, tally: &Mutex<Tally>) {
    let wanted = {
        let mut tally = lock(tally);
        let count = tally.shrunk.entry(failure.class.clone()).or_default();
        *count += 1;
        *count <= plan.shrunk
    };
    let mut found = Found { number: plan.first + number * plan.stride, failure, small: None };
    if wanted && let Some(case) = crate::case_of(plan.source, found.number) {
        let file = scratch_file(job);
        // Alone, in a process of its own: what a neighbour did to memory is not this case's fault.
        match replayed(&file, &case) {
            None => found.failure.class += " (not alone)",
            Some(alone) => {
                let same = |f: &Failure| kind(&f.class) == kind(&alone.class);
                // An edit that the tool itself cannot make ends the search, not the run.
                let search = || shrink(&case, plan.tries, &mut |c| replayed(&file, c).is_some_and(|f| same(&f)));
                let small = catch_unwind(AssertUnwindSafe(search)).unwrap_or_else(|_| case.clone());
                found.failure = replayed(&file, &small).unwrap_or(alone);
                found.small = Some(small);
            }
        }
        drop(std::fs::remove_file(&file));
        show(plan, &found);
    }
    lock(tally).found.push(found);
}

/// The first words of a class: crashes and wrong numbers of one case may come in more than one form.
fn kind(class: &str) -> &str {
    if class.starts_with("wrong") || class.starts_with("crash") { "wrong" } else { class }
}

fn scratch_file(job: usize) -> PathBuf {
    std::env::temp_dir().join(format!("gradus-check-{}-{job}.txt", std::process::id()))
}

fn myself() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "gradus-check".into()));
    // Memory that is freed or not yet written does not look like numbers.
    command.env("MALLOC_PERTURB_", "165").stdin(Stdio::null());
    command
}

/// Runs a case in a process of its own: what fails, if anything does.
fn replayed(file: &Path, case: &Case) -> Option<Failure> {
    std::fs::write(file, case.to_string()).ok()?;
    let output = myself().arg("child-file").arg(file).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().find_map(failure_of) {
        Some((_, failure)) => Some(failure),
        None if output.status.success() => None,
        // A smaller program that cannot be read back is none.
        None if output.status.code() == Some(UNREADABLE) => None,
        None => Some(crash(&ending(output.status))),
    }
}

fn ending(status: std::process::ExitStatus) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        if let Some(signal) = status.signal() {
            return format!("signal {signal}");
        }
    }
    status.to_string()
}

/// A failure as one line, and back.
pub fn failure_line(number: u64, f: &Failure) -> String {
    let flat = |s: &str| s.replace(['\t', '\n'], " ");
    format!("fail\t{number}\t{}\t{}\t{}", flat(&f.way), flat(&f.class), flat(&f.message))
}

fn failure_of(line: &str) -> Option<(u64, Failure)> {
    let mut parts = line.strip_prefix("fail\t")?.splitn(4, '\t');
    let number = parts.next()?.parse().ok()?;
    let mut next = || parts.next().map(str::to_string);
    Some((number, Failure { way: next()?, class: next()?, message: next()? }))
}

fn child(plan: &Campaign, from: u64, to: u64) -> (End, u64, [u64; Way::ALL.len()]) {
    let mut tried = [0; Way::ALL.len()];
    let numbers = [plan.first, plan.stride, from, to].map(|n| n.to_string());
    let started =
        myself().arg("child").arg(plan.source).args(numbers).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(e) => return (End::Crashed(to, format!("cannot start: {e}")), 0, tried),
    };
    let (send, lines) = mpsc::channel::<String>();
    let reader = child.stdout.take().map(|out| {
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        })
    });
    let (mut begun, mut end, mut hung) = (from, None, false);
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                if let Some(number) = line.strip_prefix("begin\t").and_then(|n| n.parse().ok()) {
                    begun = number;
                } else if let Some((number, failure)) = failure_of(&line) {
                    end = Some(End::Failed(number, failure));
                } else if let Some(counts) = line.strip_prefix("tried\t") {
                    let numbers = counts.split(' ').filter_map(|n| n.parse::<u64>().ok());
                    tried.iter_mut().zip(numbers).for_each(|(t, n)| *t = n);
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                hung = true;
                drop(child.kill());
                break;
            }
        }
    }
    let status = child.wait();
    if let Some(reader) = reader {
        drop(reader.join());
    }
    let end = match (end, status) {
        (Some(end), _) => end,
        (None, _) if hung => End::Crashed(begun, format!("no answer in {} s", PATIENCE.as_secs())),
        (None, Ok(status)) if status.success() => return (End::Done, to - from, tried),
        (None, Ok(status)) => End::Crashed(begun, ending(status)),
        (None, Err(e)) => End::Crashed(begun, e.to_string()),
    };
    let last = match &end {
        End::Failed(n, _) | End::Crashed(n, _) => *n,
        End::Done => to,
    };
    (end, (last + 1).saturating_sub(from), tried)
}

/// What a child does: cases one after the other, up to the first failure.
pub fn be_child(source: &str, numbers: [u64; 4]) -> i32 {
    let [first, stride, from, to] = numbers;
    let mut out = std::io::stdout();
    let mut tried = [0; Way::ALL.len()];
    let mut code = 0;
    for k in from..to {
        drop(writeln!(out, "begin\t{k}").and_then(|()| out.flush()));
        let Some(case) = crate::case_of(source, first + k * stride) else { continue };
        if let Err(failure) = crate::check::check(&case, &mut tried) {
            drop(writeln!(out, "{}", failure_line(k, &failure)));
            code = 3;
            break;
        }
    }
    let counts: Vec<String> = tried.iter().map(u64::to_string).collect();
    drop(writeln!(out, "tried\t{}", counts.join(" ")).and_then(|()| out.flush()));
    code
}

fn show_progress(tally: &Tally, started: Instant) {
    let s = started.elapsed().as_secs_f64();
    eprintln!("{} cases, {:.0}/s, {} failures", tally.cases, tally.cases as f64 / s, tally.found.len());
}

/// Operations of a program, nested ones too: what a small failure is about.
fn operations(case: &Case) -> String {
    fn collect(p: &gradus_core::Program, names: &mut std::collections::BTreeSet<&'static str>) {
        for e in p.equations() {
            names.insert(e.op().name());
            e.op().programs().iter().for_each(|p| collect(p, names));
        }
    }
    let mut names = std::collections::BTreeSet::new();
    collect(&case.program, &mut names);
    names.into_iter().collect::<Vec<_>>().join(" ")
}

fn show(plan: &Campaign, found: &Found) {
    let f = &found.failure;
    let mut text = format!("\n{} {}: {} [{}]\n{}\n", plan.source, found.number, f.class, f.way, f.message);
    if let Some(small) = &found.small {
        text += &format!("{small}\n{}", crate::rust::snippet(&small.program));
        let file = plan.out.join(format!("{}-{}.txt", plan.source, found.number));
        let written = std::fs::create_dir_all(&plan.out).and_then(|()| std::fs::write(&file, small.to_string()));
        if written.is_ok() {
            text += &format!("replay: gradus-check replay {}\n", file.display());
        }
    }
    println!("{text}");
}

fn report(plan: &Campaign, tally: &Tally, time: Duration) -> bool {
    let s = time.as_secs_f64();
    println!("{}: {} cases in {s:.0} s, {:.0}/s", plan.source, tally.cases, tally.cases as f64 / s.max(1e-9));
    for (way, n) in Way::ALL.iter().zip(tally.tried) {
        println!("  {:24} {n}", way.name());
    }
    let mut classes: BTreeMap<String, Vec<&Found>> = BTreeMap::new();
    for f in &tally.found {
        let about = f.small.as_ref().map_or_else(|| "not made small".to_string(), operations);
        classes.entry(format!("{} | {about}", f.failure.class)).or_default().push(f);
    }
    println!("{} failures, {} classes", tally.found.len(), classes.len());
    for (class, found) in &classes {
        let first = found.iter().map(|f| f.number).min().unwrap_or_default();
        println!("  {:5} x {class} (first {first}, {})", found.len(), found[0].failure.way);
    }
    tally.found.is_empty()
}

/// Runs one file and says what fails; the exit code of the process.
pub fn replay(file: &Path, as_child: bool) -> i32 {
    let case = match std::fs::read_to_string(file).map_err(|e| e.to_string()).and_then(|t| Case::parse(&t)) {
        Ok(case) => case,
        Err(e) => {
            eprintln!("{}: {e}", file.display());
            return UNREADABLE;
        }
    };
    match crate::check::check(&case, &mut [0; Way::ALL.len()]) {
        Ok(()) => {
            if !as_child {
                println!("no difference");
            }
            0
        }
        Err(f) if as_child => {
            println!("{}", failure_line(0, &f));
            1
        }
        Err(f) => {
            println!("{} [{}]\n{}\n{}", f.class, f.way, f.message, crate::rust::snippet(&case.program));
            1
        }
    }
}

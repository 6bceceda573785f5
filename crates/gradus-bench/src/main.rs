//! Gradus beside hand-written C, JAX and NumPy: one command that builds the peers, runs every case on the same cores and
//! prints a table of ratios.
//!
//! The process that is started builds the peers and starts itself again for each number of cores, bound to them; its
//! children inherit that.

mod buffer;
mod cases;
mod check;
mod clock;
mod compare;
mod device;
mod measure;
mod peers;
mod sizes;
mod soak;
mod table;
#[cfg(test)]
mod tests;
mod tier;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use measure::{Bench, Effort};
use table::Row;
use tier::Tier;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "cargo run --release -p gradus-bench -- [--quick] [--only NAME] [--cores 1|all] [--tier NAME] [--cap SECONDS] [--json] [--write]

  --quick        every case at a small size, as a smoke test
  --only NAME    only cases whose name has NAME in it, several with commas between; `sizes`: only symbolic beside known sizes
  --cores 1|all  on one core or on all; both if not said
  --tier NAME    interpreter, embedded or llvm, several with commas between; all that this build has if not said
  --cap SECONDS  leave out calls of ours that are foreseen to take longer (5; with --quick 1)
  --json         print a line of JSON for each row instead of tables: medians, minima and the time of all cores
  --write        write BENCHMARKS.md at the top of the repository

cargo run --release -p gradus-bench -- compare BUILD [options]   another build of this program and this one, without peers
cargo run --release -p gradus-bench -- soak [--calls N]     millions of calls; fails if memory grows
cargo run --release -p gradus-bench -- device NAME [--quick] [--only NAME]   the device of a PJRT plugin, beside JAX on it
cargo run --release -p gradus-bench -- start                what comes before the first results, phase by phase";

/// The command line.
#[derive(Clone, Debug, Default)]
struct Options {
    quick: bool,
    only: Vec<String>,
    cores: Option<String>,
    tier: Option<String>,
    cap: Option<f64>,
    write: bool,
    json: bool,
    /// Without peers: to hold two builds against each other.
    alone: bool,
    /// The file that a process which measures writes its rows to; only this program says it.
    rows: Option<PathBuf>,
}

fn parse(arguments: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options::default();
    let mut arguments = arguments;
    while let Some(word) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("`{word}` needs a value\n\n{USAGE}"));
        match word.as_str() {
            "--quick" => options.quick = true,
            "--write" => options.write = true,
            "--json" => options.json = true,
            "--alone" => options.alone = true,
            "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
            "--cores" => options.cores = Some(value()?),
            "--tier" => options.tier = Some(value()?),
            "--cap" => options.cap = Some(value()?.parse()?),
            "--rows" => options.rows = Some(value()?.into()),
            _ => return Err(format!("`{word}` is not known\n\n{USAGE}").into()),
        }
    }
    if let Some(cores) = options.cores.as_deref().filter(|c| !["1", "all"].contains(c)) {
        return Err(format!("`--cores {cores}`: only `1` and `all`").into());
    }
    Ok(options)
}

/// The tiers that are asked for, or all there are.
fn tiers(options: &Options) -> Result<Vec<Tier>> {
    match &options.tier {
        None => Ok(Tier::ALL.into_iter().filter(|t| t.is_available()).collect()),
        Some(names) => names
            .split(',')
            .map(|name| match Tier::named(name) {
                Some(tier) if tier.is_available() => Ok(tier),
                Some(_) => Err(format!("the tier `{name}` is not in this build").into()),
                None => Err(format!("there is no tier `{name}`").into()),
            })
            .collect(),
    }
}

fn main() -> ExitCode {
    let run = || -> Result<bool> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["soak"] => return soak::run(10_000_000),
            ["soak", "--calls", n] => return soak::run(n.parse()?),
            ["start"] => return soak::start(),
            ["device", name, ..] => {
                let name = name.to_string();
                return device::run(&name, &parse(arguments.iter().skip(2).cloned())?);
            }
            ["compare", other, ..] => {
                let other = PathBuf::from(other);
                return compare::run(&other, &parse(arguments.iter().skip(2).cloned())?);
            }
            _ => {}
        }
        let options = parse(arguments.into_iter())?;
        match &options.rows {
            Some(file) => measure_all(&options, file),
            None => drive(&options),
        }
    };
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

/// More runnable processes than this, before any of ours is started, are others that will disturb.
const QUIET: f64 = 0.5;

/// How many processes wanted to run over the last minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

/// Builds the peers, has everything measured, and shows it. False if peers disagreed.
fn drive(options: &Options) -> Result<bool> {
    tiers(options)?;
    let started = Instant::now();
    let load = load();
    if load > QUIET {
        eprintln!("the machine is busy with other things (load {load}): the figures will be rough");
    }
    peers::build()?;
    let mut agreed = true;
    let mut rows = Vec::new();
    let mut by_size = Vec::new();
    let cores = options.cores.as_deref().map_or_else(|| vec!["1", "all"], |c| vec![c]);
    for cores in &cores {
        eprintln!("\n── {} ──", if *cores == "1" { "one core" } else { "all cores" });
        let file = peers::workshop().join(format!("rows-{cores}.txt"));
        std::fs::write(&file, "")?;
        std::fs::write(file.with_extension("sizes"), "")?;
        let mut command = bound(&std::env::current_exe()?, cores)?;
        command.arg("--rows").arg(&file).args(["--cores", cores]);
        command.args(options.quick.then_some("--quick"));
        if !options.only.is_empty() {
            command.arg("--only").arg(options.only.join(","));
        }
        if let Some(tier) = &options.tier {
            command.args(["--tier", tier]);
        }
        if let Some(cap) = options.cap {
            command.arg("--cap").arg(cap.to_string());
        }
        agreed &= command.status()?.success();
        rows.extend(std::fs::read_to_string(&file)?.lines().filter_map(Row::parse));
        by_size.extend(std::fs::read_to_string(file.with_extension("sizes"))?.lines().filter_map(sizes::Row::parse));
    }
    let text = document(options, &rows, load) + "\n" + &sizes::render(&by_size);
    if options.json {
        rows.iter().for_each(|row| println!("{}", row.json()));
    } else {
        println!("{text}");
    }
    eprintln!("{} rows in {:.0} s", rows.len(), started.elapsed().as_secs_f64());
    if options.write {
        let file = peers::root().join("BENCHMARKS.md");
        // What another machine measured stays: this one cannot make it again.
        let before = std::fs::read_to_string(&file).unwrap_or_default();
        let devices = before.find(device::MARK).map_or("", |at| &before[at..]);
        std::fs::write(file, text + devices)?;
    }
    Ok(agreed)
}

/// A build of this program, bound to the first core it may use or to none.
fn bound(this: &Path, cores: &str) -> Result<Command> {
    if cores != "1" {
        // Threads of OpenMP and of OpenBLAS wait by turning round and round, by default for longer than a turn, and would
        // take cores from whoever comes next. A millisecond is long beside the time between two calls.
        let mut command = Command::new(this);
        command.env("GOMP_SPINCOUNT", "100000").env("OPENBLAS_THREAD_TIMEOUT", "21");
        return Ok(command);
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    let allowed = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap_or("0");
    let first: String = allowed.trim().chars().take_while(char::is_ascii_digit).collect();
    let mut command = Command::new("taskset");
    command.args(["-c", &first]).arg(this);
    Ok(command)
}

/// Measures every case that is asked for and appends its rows to the file.
fn measure_all(options: &Options, file: &Path) -> Result<bool> {
    let cores = options.cores.as_deref().unwrap_or("all");
    let cap = options.cap.unwrap_or(if options.quick { 1.0 } else { 5.0 });
    let effort = Effort { quick: options.quick, cap: Duration::from_secs_f64(cap), pause: Duration::from_millis(2) };
    let mut bench = Bench::new(tiers(options)?, cores == "1", effort);
    bench.alone = options.alone;
    let mut out = std::fs::OpenOptions::new().append(true).create(true).open(file)?;
    for family in cases::all() {
        if !options.only.is_empty() && !options.only.iter().any(|o| family.name.contains(o.as_str())) {
            continue;
        }
        for dtype in family.dtypes {
            for size in if options.quick { family.quick } else { family.full } {
                for mut row in bench.rows(&family, size, *dtype)? {
                    row.cores = cores.to_owned();
                    eprintln!("{}", row.progress());
                    writeln!(out, "{}", row.line())?;
                }
            }
        }
    }
    let mut out = std::fs::OpenOptions::new().append(true).create(true).open(file.with_extension("sizes"))?;
    let agreed =
        sizes::measure(&tiers(options)?, &options.only, cores, effort, |row| Ok(writeln!(out, "{}", row.line())?))?;
    if !options.alone {
        let [jax, numpy] = bench.versions();
        std::fs::write(peers::workshop().join("versions.txt"), format!("{jax}; {numpy}"))?;
    }
    for text in &bench.disagreements {
        eprintln!("DISAGREEMENT: {text}");
    }
    Ok(agreed && bench.disagreements.is_empty())
}

/// The tables, below what they were made with.
fn document(options: &Options, rows: &[Row], load: f64) -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or("unknown");
    let model = model.trim_start_matches(['\t', ' ', ':']);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let python = std::fs::read_to_string(peers::workshop().join("versions.txt")).unwrap_or_default();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let quick = if options.quick { "\nThis was a smoke test: sizes are small and rounds are short.\n" } else { "" };
    format!(
        "# Benchmarks\n\n\
         Made by `cargo run --release -p gradus-bench{}{}`.\n{quick}\n\
         - Machine: {model}, {cores} cores; its load before: {load}\n\
         - C: {}, `gcc {} {}`, exact C without the last; with `-fopenmp` for all cores\n\
         - {python}\n\n\
         Times are of one call whose code is ready, with results in memory when it returns: medians of rounds in which\n\
         everyone has a turn. Ratios are medians of each round's ratio, ours over theirs: below 1 we are faster. In\n\
         brackets is the target, and whether it is reached. Where others use the machine, too, the ratio of the least times\n\
         is the steadier one: `least` is ours over the best of C and JAX. Its compiler may change what C computes; `exact C` is\n\
         the same source without that, as ours is, and `least/exact` is ours over the best of it and JAX. `CPU` is the time of all cores over that on the\n\
         wall. C writes into memory that it is given; ours and JAX make new\n\
         arrays. A first result is timed from a function that was never seen; the start of JAX itself is not in it. Every\n\
         case first checks that all results agree.\n\n{}",
        if words.is_empty() { "" } else { " -- " },
        words.join(" "),
        peers::c_version(),
        peers::C_FLAGS.join(" "),
        peers::FAST,
        table::render(rows)
    )
}

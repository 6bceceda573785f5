//! Two builds of this program beside each other: what a change of the compiler costs or gains, case by case.
//!
//! Each family is measured by one build and then by the other, several times, and the least time of each row counts: what disturbs the machine
//! only ever adds to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::table::{Row, time};
use crate::{Options, Result, bound, cases, peers, sizes};

/// Turns of each build.
const ROUNDS: usize = 3;
/// A row that takes so many times longer is named.
const SLOWER: f64 = 1.05;

/// The least nanoseconds of each row, by build: the other one, and this one.
type Times = BTreeMap<String, [f64; 2]>;

/// Measures another build of this program and this one; true if no row is slower.
pub fn run(other: &Path, options: &Options) -> Result<bool> {
    let builds = [other.to_path_buf(), std::env::current_exe()?];
    std::fs::create_dir_all(peers::workshop())?;
    let file = peers::workshop().join("compare.txt");
    let mut times = Times::new();
    let named = |name: &str| options.only.is_empty() || options.only.iter().any(|o| name.contains(o.as_str()));
    let mut names: Vec<&str> = cases::all().iter().map(|f| f.name).filter(|n| named(n)).collect();
    // A name that is a part of another one is measured with it.
    let all = names.clone();
    names.retain(|n| !all.iter().any(|m| m != n && n.contains(m)));
    let cores = options.cores.as_deref().map_or_else(|| vec!["1", "all"], |c| vec![c]);
    for cores in cores {
        for name in &names {
            for _ in 0..ROUNDS {
                for (k, build) in builds.iter().enumerate() {
                    one(build, &file, cores, name, options)?;
                    for (row, ns) in rows(&file)? {
                        let least = times.entry(row).or_insert([f64::INFINITY; 2]);
                        least[k] = least[k].min(ns);
                    }
                }
            }
            eprintln!("{name}, {cores}: done");
        }
    }
    Ok(report(&times))
}

fn one(build: &Path, file: &Path, cores: &str, name: &str, options: &Options) -> Result<()> {
    for file in [file.to_path_buf(), sizes_file(file)] {
        std::fs::write(file, "")?;
    }
    let mut command = bound(build, cores)?;
    command.args(["--alone", "--cores", cores, "--only", name, "--rows"]).arg(file);
    command.args(options.quick.then_some("--quick"));
    command.args(["--tier", options.tier.as_deref().unwrap_or("embedded,llvm")]);
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("{}: {}", build.display(), String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(())
}

fn sizes_file(file: &Path) -> PathBuf {
    file.with_extension("sizes")
}

/// Every row of a run by its name: calls, first results, and calls with symbolic sizes.
fn rows(file: &Path) -> Result<Vec<(String, f64)>> {
    let mut all = Vec::new();
    for row in std::fs::read_to_string(file)?.lines().filter_map(Row::parse) {
        let name = [&row.cores, &row.tier, &row.family, &row.size, &row.dtype].map(|s| &s[..]).join(" ");
        all.extend(row.times[0].map(|ns| (name.clone(), ns)));
        all.extend(row.first[0].map(|ns| (format!("{name}, first result"), ns)));
    }
    for row in std::fs::read_to_string(sizes_file(file))?.lines().filter_map(sizes::Row::parse) {
        all.push(row.symbolic());
    }
    Ok(all)
}

fn report(times: &Times) -> bool {
    let mut ratios: Vec<(f64, &str, [f64; 2])> =
        times.iter().map(|(name, t)| (t[1] / t[0], &name[..], *t)).filter(|(r, ..)| r.is_finite()).collect();
    ratios.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (part, wanted) in [("calls", false), ("first results", true)] {
        let of_part = || ratios.iter().filter(move |(_, name, _)| name.ends_with("first result") == wanted);
        let slower = of_part().filter(|(r, ..)| *r > SLOWER).count();
        let mean = of_part().map(|(r, ..)| r.ln()).sum::<f64>() / of_part().count().max(1) as f64;
        println!(
            "{part}: {} rows, geometric mean {:.3}, {slower} slower by more than 5 %",
            of_part().count(),
            mean.exp()
        );
        for (ratio, name, [before, after]) in of_part().filter(|(r, ..)| *r > SLOWER || *r < 1.0 / SLOWER) {
            println!("  {ratio:.2}  {name}: {} -> {}", time(*before), time(*after));
        }
    }
    ratios.iter().all(|(r, ..)| *r <= SLOWER)
}

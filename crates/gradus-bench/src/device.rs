//! A device beside JAX on the same device: the section of BENCHMARKS.md that another machine makes, one with an accelerator.
//!
//! Such a machine may have no Rust and no network. `GRADUS_BENCH_PYTHON` says which Python has JAX there, `GRADUS_BENCH_PEERS` where the scripts of the peers are.

use std::time::{Duration, Instant};

use crate::measure::{Bench, Effort};
use crate::tier::{PLUGIN, plugin};
use crate::{Options, Result, cases, table};

/// Where the part of BENCHMARKS.md begins that devices have.
pub const MARK: &str = "# Devices\n";

/// Measures what devices are for on the plugin of a name, and prints the table. False if JAX disagrees.
pub fn run(name: &str, options: &Options) -> Result<bool> {
    PLUGIN.get_or_init(|| name.to_owned());
    let device = plugin()?;
    let started = Instant::now();
    let mut bench = Bench::of_device(Effort {
        quick: options.quick,
        cap: Duration::from_secs_f64(options.cap.unwrap_or(1e9)),
        pause: Duration::ZERO,
    });
    let mut rows = Vec::new();
    for family in cases::devices::families() {
        if !options.only.is_empty() && !options.only.iter().any(|o| family.name.contains(o.as_str())) {
            continue;
        }
        for dtype in family.dtypes {
            for size in if options.quick { family.quick } else { family.full } {
                for mut row in bench.rows(&family, size, *dtype)? {
                    row.cores = "all".to_owned();
                    eprintln!("{}", row.progress());
                    rows.push(row);
                }
            }
        }
    }
    let [jax, _] = bench.versions();
    let kind = device.devices()?.first().map_or(name, |d| d.kind());
    println!("## {kind}\n\nMade by `gradus-bench device {name}`; {jax}.\n");
    println!("{}", table::section_of(&rows));
    eprintln!("{} rows in {:.0} s", rows.len(), started.elapsed().as_secs_f64());
    for text in &bench.disagreements {
        eprintln!("DISAGREEMENT: {text}");
    }
    Ok(bench.disagreements.is_empty())
}

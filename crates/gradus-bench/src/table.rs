//! Rows of measurements: kept as lines of text between processes, and shown as tables.

use std::fmt::Write;

use gradus::DType;
use serde_json::{Value, json};

use crate::cases::{Family, Group, Measure, Targets, all, devices, size_text};
use crate::tier::Tier;

/// Who is measured, in the order of a row's times.
const NAMES: [&str; 5] = ["ours", "C", "JAX", "NumPy", "XLA"];

/// What was measured of a case. Times are in nanoseconds of one call.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub cores: String,
    pub tier: String,
    pub family: String,
    pub size: String,
    pub dtype: String,
    /// Ours, C, JAX, NumPy, XLA.
    pub times: [Option<f64>; 5],
    /// The least of the rounds, of the same.
    pub least: [Option<f64>; 5],
    /// The time of all cores together, of the same.
    pub cpu: [Option<f64>; 5],
    /// Ours over C, JAX, NumPy, XLA: medians of the ratios of each round.
    pub ratios: [Option<f64>; 4],
    /// From a fresh function to its first result: ours, JAX.
    pub first: [Option<f64>; 2],
    /// Scratch bytes: ours, JAX.
    pub scratch: [Option<f64>; 2],
    /// Bytes of the results.
    pub results: Option<f64>,
    /// C whose compiler rounds as it is written: median, least, the time of all cores, ours over it.
    pub exact: [Option<f64>; 4],
    pub note: String,
}

/// C whose compiler rounds as it is written.
const EXACT_C: &str = "exact C";

impl Row {
    /// A row that nothing was measured for yet.
    pub fn new(family: &Family, size: &[usize], dtype: DType) -> Row {
        let width = if dtype == DType::F32 { 4 } else { 8 };
        Row {
            family: family.name.to_owned(),
            size: size_text(size),
            dtype: dtype.to_string(),
            results: Some(((family.outputs)(size).iter().sum::<usize>() * width) as f64),
            ..Row::default()
        }
    }

    /// One line of fields between tabs.
    pub fn line(&self) -> String {
        let numbers =
            self.times.iter().chain(&self.ratios).chain(&self.first).chain(&self.scratch).chain([&self.results]);
        let text = |n: &Option<f64>| n.map_or("-".to_owned(), |n| n.to_string());
        let numbers = numbers.map(text);
        // Behind the note, where builds that did not have them yet look for nothing.
        let others: Vec<String> = self.least.iter().chain(&self.cpu).chain(&self.exact).map(text).collect();
        let texts =
            [&self.cores, &self.tier, &self.family, &self.size, &self.dtype].map(|t| t.replace(['\t', '\n'], " "));
        let note = self.note.replace(['\t', '\n'], " ");
        texts.into_iter().chain(numbers).chain([note]).chain(others).collect::<Vec<_>>().join("\t")
    }

    /// Reads what `line` wrote.
    pub fn parse(line: &str) -> Option<Row> {
        let fields: Vec<&str> = line.split('\t').collect();
        let text = |i: usize| fields.get(i).map(|t| (*t).to_owned());
        let number = |i: usize| fields.get(i).and_then(|t| t.parse().ok());
        Some(Row {
            cores: text(0)?,
            tier: text(1)?,
            family: text(2)?,
            size: text(3)?,
            dtype: text(4)?,
            times: [5, 6, 7, 8, 9].map(number),
            ratios: [10, 11, 12, 13].map(number),
            first: [14, 15].map(number),
            scratch: [16, 17].map(number),
            results: number(18),
            note: text(19)?,
            least: [20, 21, 22, 23, 24].map(number),
            cpu: [25, 26, 27, 28, 29].map(number),
            exact: [30, 31, 32, 33].map(number),
        })
    }

    /// Our least time over that of the best peer which takes no liberties with numbers, and over that of the best of all: on a busy machine the steadiest figures
    /// there are.
    fn least_ratios(&self) -> [Option<f64>; 2] {
        let over = |peers: &[Option<f64>]| {
            let best = peers.iter().flatten().copied().min_by(f64::total_cmp)?;
            Some(self.least[0]? / best)
        };
        let exact = self.exact[1].and_then(|exact| over(&[Some(exact), self.least[2]]));
        [exact, over(&self.least[1..3])]
    }

    /// Everything that is known, as a line of JSON. Times are nanoseconds.
    pub fn json(&self) -> String {
        let named = |names: &[&str], values: &[Option<f64>]| -> Value {
            let all = names.iter().zip(values).filter_map(|(name, v)| Some(((*name).to_owned(), Value::from((*v)?))));
            Value::Object(all.collect())
        };
        let with_exact = |names: &[&str], values: &[Option<f64>], exact: Option<f64>| -> Value {
            named(&[names, &[EXACT_C]].concat(), &[values, &[exact]].concat())
        };
        let [median, least, cpu, ratio] = self.exact;
        let [exact_ratio, least_ratio] = self.least_ratios();
        json!({
            "case": self.family, "size": self.size, "dtype": self.dtype, "cores": self.cores, "tier": self.tier,
            "median": with_exact(&NAMES, &self.times, median), "least": with_exact(&NAMES, &self.least, least),
            "cpu": with_exact(&NAMES, &self.cpu, cpu), "ratio": with_exact(&NAMES[1..], &self.ratios, ratio),
            "least_ratio_to_best": least_ratio, "least_ratio_to_best_exact": exact_ratio,
            "first": named(&["ours", "JAX"], &self.first), "scratch_bytes": named(&["ours", "JAX"], &self.scratch),
            "note": self.note,
        })
        .to_string()
    }

    /// A line for someone who waits.
    pub fn progress(&self) -> String {
        let times = NAMES.iter().zip(self.times).filter_map(|(n, t)| Some(format!("{n} {}", time(t?))));
        let first = ["ours", "JAX"].iter().zip(self.first).filter_map(|(n, t)| Some(format!("{n} {}", time(t?))));
        let (times, first) = (times.collect::<Vec<_>>().join(", "), first.collect::<Vec<_>>().join(", "));
        let least =
            self.least_ratios()[1].map_or_else(String::new, |r| format!("  [least: {} of the best]", digits(r)));
        let note = if self.note.is_empty() { String::new() } else { format!("  ({})", self.note) };
        format!("{:<16} {:<18} {}  {times}{least}  [first: {first}]{note}", self.family, self.size, self.dtype)
    }
}

/// Nanoseconds in the unit that suits them.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        _ if ns < 1e3 => (ns, "ns"),
        _ if ns < 1e6 => (ns / 1e3, "µs"),
        _ if ns < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", digits(value))
}

/// Three digits that count.
fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A number with the target beside it, and whether it is reached.
fn against(text: String, value: f64, target: Option<(f64, String)>) -> String {
    match target {
        Some((t, shown)) => format!("{text} (≤ {shown} {})", if value <= t { "✓" } else { "✗" }),
        None => text,
    }
}

fn ratio_cell(value: Option<f64>, target: Option<f64>) -> String {
    value.map_or_else(String::new, |v| against(digits(v), v, target.map(|t| (t, t.to_string()))))
}

/// The geometric mean, if there are two or more.
fn geometric(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let logs: Vec<f64> = values.flatten().map(f64::ln).collect();
    (logs.len() > 1).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

/// A markdown table without the columns that would be empty.
fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let shown: Vec<usize> = (0..headings.len()).filter(|i| rows.iter().any(|r| !r[*i].is_empty())).collect();
    let mut out = String::new();
    let mut line = |cells: Vec<&str>| {
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    };
    line(shown.iter().map(|i| headings[*i]).collect());
    line(shown.iter().map(|i| if *i < 3 || headings[*i] == "note" { "---" } else { "---:" }).collect());
    for row in rows {
        line(shown.iter().map(|i| row[*i].as_str()).collect());
    }
    out + "\n"
}

/// All tables of these rows.
pub fn render(rows: &[Row]) -> String {
    let mut out = String::new();
    for cores in ["1", "all"] {
        for tier in Tier::ALL.into_iter().chain([Tier::Xla]) {
            let some: Vec<&Row> = rows.iter().filter(|r| r.cores == cores && r.tier == tier.name()).collect();
            if some.is_empty() {
                continue;
            }
            let cores = if cores == "1" { "One core" } else { "All cores" };
            let _ = writeln!(out, "## {cores}, {}\n", tier.name());
            section(&mut out, &some, tier);
        }
    }
    out
}

/// The tables of a device, without headings of their own.
pub fn section_of(rows: &[Row]) -> String {
    let mut out = String::new();
    section(&mut out, &rows.iter().collect::<Vec<_>>(), Tier::Xla);
    out
}

fn section(out: &mut String, rows: &[&Row], tier: Tier) {
    let mut families = all();
    families.extend(devices::families());
    let family = |row: &Row| families.iter().find(|f| f.name == row.family);
    for group in Group::ALL {
        let some: Vec<(&Row, &Family)> = rows.iter().filter_map(|r| Some((*r, family(r)?))).collect();
        let some: Vec<(&Row, &Family)> = some.into_iter().filter(|(_, f)| f.group == group).collect();
        let Some((_, first)) = some.first() else { continue };
        let _ = writeln!(out, "### {}\n", group.title());
        if first.measure == Measure::FirstResult {
            out.push_str(&compile_times(&some, tier));
        } else {
            out.push_str(&calls(&some, tier));
        }
    }
    let first: Vec<&Row> = rows
        .iter()
        .filter(|r| family(r).is_some_and(|f| f.measure != Measure::FirstResult) && r.first.iter().any(Option::is_some))
        .copied()
        .collect();
    if !first.is_empty() {
        out.push_str("### Time from a fresh function to its first result\n\n");
        out.push_str(&first_results(&first, tier));
    }
    let scratch: Vec<&Row> = rows.iter().filter(|r| r.scratch.iter().any(Option::is_some)).copied().collect();
    if !scratch.is_empty() {
        out.push_str("### Peak scratch memory\n\n");
        out.push_str(
            "XLA puts what it needs meanwhile into the memory of results where it can, so the ratio is of both.\n\n",
        );
        let bytes = |b: Option<f64>| b.map_or_else(|| "not yet".to_owned(), |b| format!("{} kB", digits(b / 1024.0)));
        let lines = scratch.iter().map(|r| {
            let all = r.scratch.map(|b| Some(b? + r.results?));
            let ratio = all[0].zip(all[1]).map(|(a, b)| a / b);
            let mut cells = vec![r.family.clone(), r.size.clone(), r.dtype.clone()];
            cells.extend(r.scratch.map(bytes));
            cells.extend([bytes(r.results), ratio_cell(ratio, None)]);
            cells
        });
        let headings = ["case", "size", "dtype", "ours", "JAX", "results", "ours/JAX"];
        out.push_str(&table(&headings, &lines.collect::<Vec<_>>()));
    }
}

fn least_cells(row: &Row, target: Option<f64>) -> [String; 2] {
    let [exact, all] = row.least_ratios();
    [ratio_cell(exact, target), ratio_cell(all, None)]
}

/// How many cores we kept busy: on one that is one.
fn busy_cell(row: &Row) -> String {
    let busy = row.cpu[0].zip(row.times[0]).filter(|_| row.cores != "1");
    busy.map_or_else(String::new, |(cpu, wall)| digits(cpu / wall))
}

/// Nanoseconds of an element, where cases are one operation on elements.
fn element_cell(row: &Row, family: &Family) -> String {
    let size: Vec<usize> = row.size.split('x').filter_map(|n| n.parse().ok()).collect();
    let ns = row.times[0].filter(|_| family.group == Group::Indexing);
    ns.map_or_else(String::new, |ns| digits(ns / (family.work)(&size)))
}

fn calls(rows: &[(&Row, &Family)], tier: Tier) -> String {
    let targets = |t: &Targets| [t.c, t.jax, t.numpy, None].map(|pair| Targets::of(pair, tier));
    let mut lines: Vec<Vec<String>> = rows
        .iter()
        .map(|(r, f)| {
            let ours = r.times[0].map_or_else(String::new, |ns| {
                against(time(ns), ns, f.targets.ns.map(|target| (target, time(target))))
            });
            let others = [r.exact[0], r.times[1], r.times[2], r.times[3], r.times[4]];
            let others = others.map(|t| t.map_or_else(String::new, time));
            let wanted = targets(&f.targets);
            let exact = ratio_cell(r.exact[3], Targets::of(f.targets.exact, tier));
            let ratios = std::iter::once(exact).chain([0, 1, 2, 3].map(|i| ratio_cell(r.ratios[i], wanted[i])));
            let mut cells = vec![r.family.clone(), r.size.clone(), r.dtype.clone(), ours];
            cells.extend(others.into_iter().chain(ratios));
            cells.extend(least_cells(r, Targets::of(f.targets.exact, tier)));
            cells.extend([busy_cell(r), element_cell(r, f), r.note.clone()]);
            cells
        })
        .collect();
    if let Some((_, f)) = rows.first() {
        let means = [0, 1, 2, 3].map(|i| geometric(rows.iter().map(|(r, _)| r.ratios[i])));
        // A mean is compared where all cases of the group have the same target.
        let wanted = targets(&f.targets);
        let common = |i: usize| wanted[i].filter(|w| rows.iter().all(|(_, f)| targets(&f.targets)[i] == Some(*w)));
        if means.iter().any(Option::is_some) {
            let mut cells = vec!["**geometric mean**".to_owned()];
            cells.resize(9, String::new());
            cells.push(ratio_cell(geometric(rows.iter().map(|(r, _)| r.exact[3])), None));
            cells.extend([0, 1, 2, 3].map(|i| ratio_cell(means[i], common(i))));
            cells.resize(lines[0].len(), String::new());
            lines.push(cells);
        }
    }
    let headings = [
        "case",
        "size",
        "dtype",
        "ours",
        EXACT_C,
        "C",
        "JAX",
        "NumPy",
        "XLA",
        "ours/exact C",
        "ours/C",
        "ours/JAX",
        "ours/NumPy",
        "ours/XLA",
        "least/exact",
        "least",
        "CPU",
        "ns/element",
        "note",
    ];
    table(&headings, &lines)
}

/// JAX's target for the time to a first result, for the embedded tier and for LLVM.
const FIRST: [f64; 2] = [0.1, 0.7];

fn first_results(rows: &[&Row], tier: Tier) -> String {
    // On a device both sides wait for the same compiler.
    let target = (tier != Tier::Xla).then(|| Targets::of(Some(FIRST), tier)).flatten();
    let ratio = |r: &Row| Some(r.first[0]? / r.first[1]?);
    let shown = |t: Option<f64>| t.map_or_else(String::new, time);
    let mut lines: Vec<Vec<String>> = rows
        .iter()
        .map(|r| {
            let names = [&r.family, &r.size, &r.dtype].map(Clone::clone);
            let times = r.first.map(shown);
            names.into_iter().chain(times).chain([ratio_cell(ratio(r), target)]).collect()
        })
        .collect();
    if let Some(mean) = geometric(rows.iter().map(|r| ratio(r))) {
        let mut cells = vec!["**geometric mean**".to_owned()];
        cells.resize(5, String::new());
        cells.push(ratio_cell(Some(mean), target));
        lines.push(cells);
    }
    table(&["case", "size", "dtype", "ours", "JAX", "ours/JAX"], &lines)
}

/// Times and times for each operation, which stay the same where compilation is linear.
fn compile_times(rows: &[(&Row, &Family)], tier: Tier) -> String {
    let shown = |t: Option<f64>| t.map_or_else(String::new, time);
    let operations = |r: &Row| r.size.parse::<f64>().unwrap_or(f64::NAN);
    let lines: Vec<Vec<String>> = rows
        .iter()
        .map(|(r, f)| {
            let each = r.first.map(|t| shown(t.map(|t| t / operations(r))));
            let ratio = r.first[0].zip(r.first[1]).map(|(a, b)| a / b);
            let mut cells = vec![r.family.clone(), r.size.clone(), r.dtype.clone()];
            cells.extend(r.first.map(shown).into_iter().chain(each));
            cells.push(ratio_cell(ratio, Targets::of(f.targets.jax, tier)));
            cells.push(r.note.clone());
            cells
        })
        .collect();
    let headings = ["case", "size", "dtype", "ours", "JAX", "ours/operation", "JAX/operation", "ours/JAX", "note"];
    table(&headings, &lines)
}

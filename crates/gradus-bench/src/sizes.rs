//! One program for every size beside the program made for that size: what it costs not to know sizes when code is made.

use std::fmt::Write as _;

use gradus::DType;

use crate::Result;
use crate::cases::{Call, Family, all, size_text};
use crate::check::{Described, distance};
use crate::clock::timed;
use crate::measure::{Effort, median};
use crate::table::time;
use crate::tier::{Tier, declaring};

/// What is declared of the arguments of a family; the others have no size that varies.
fn declaration(family: &str) -> Option<&'static str> {
    Some(match family {
        "polynomial" | "tanh" | "gelu_erf" | "gelu_tanh" | "sum_exp" => "_[N]",
        "softmax" => "_[R, C], _[R, C]",
        "layer_norm" => "(_[R, _], _, _), _[R, _]",
        "logsumexp" => "_[R, C], _[R]",
        "matmul" => "_[N, N], _[N, N]",
        "perceptron" => "_, _, _, (_[B, _], _[B, _])",
        "lstm" => "_, _[T, B, _]",
        "nbody" => "_[N, 3], _[N]",
        "chain3" | "chain4" => "_[N, _]",
        "take" | "scatter_add" => "_[N], _[M]",
        "take_rows" | "scatter_add_rows" => "_[N, W], _[M]",
        "argmin_rows" | "argmax_columns" | "cumsum_last" | "cumsum_first" | "sort_rows" => "_[R, C]",
        "sort" => "_[N]",
        "pad" | "transpose" => "_[R, C]",
        "stack" => "_[N], _[N]",
        "concatenate" => "_[R, C], _[R, C]",
        // Coordinates are a width: how many a point has is known, how many points and centres there are is not.
        "kmeans" | "kmeans_cost" => "_[K, _], _[N, _]",
        _ => return None,
    })
}

/// Nanoseconds of a call of both, and the median of the ratios of each round.
#[derive(Clone, Debug)]
pub struct Row {
    cores: String,
    tier: String,
    case: String,
    times: [f64; 2],
    ratio: f64,
}

impl Row {
    /// One line of fields between tabs.
    pub fn line(&self) -> String {
        let [a, b] = self.times;
        [&self.cores, &self.tier, &self.case, &a.to_string(), &b.to_string(), &self.ratio.to_string()]
            .map(|s| &s[..])
            .join("\t")
    }

    /// Its name, and the nanoseconds of a call with symbolic sizes.
    pub fn symbolic(&self) -> (String, f64) {
        (format!("{} {} {}, symbolic", self.cores, self.tier, self.case), self.times[0])
    }

    /// Reads what `line` wrote.
    pub fn parse(line: &str) -> Option<Row> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [cores, tier, case, a, b, ratio] = fields[..] else { return None };
        let [cores, tier, case] = [cores, tier, case].map(str::to_owned);
        Some(Row { cores, tier, case, times: [a.parse().ok()?, b.parse().ok()?], ratio: ratio.parse().ok()? })
    }
}

/// Measures every family whose sizes can vary; gives each row to `out`, and whether all results agreed.
pub fn measure(
    tiers: &[Tier],
    only: &[String],
    cores: &str,
    effort: Effort,
    mut out: impl FnMut(&Row) -> Result<()>,
) -> Result<bool> {
    let mut agreed = true;
    for family in all() {
        let Some(text) = declaration(family.name) else { continue };
        let named = |o: &String| family.name.contains(o.as_str()) || o == "sizes";
        if !only.is_empty() && !only.iter().any(named) {
            continue;
        }
        let dtype = family.dtypes[0];
        for size in if effort.quick { family.quick } else { family.full } {
            for &tier in tiers.iter().filter(|t| **t != Tier::Interpreter) {
                let case = format!("{} {} {dtype}", family.name, size_text(size));
                let fixed = call(&family, size, dtype, tier);
                let symbolic = declaring(text, || call(&family, size, dtype, tier));
                if let Some(far) = apart(&symbolic, &fixed) {
                    eprintln!("DISAGREEMENT: {case} with symbolic sizes: {far}");
                    agreed = false;
                }
                let row =
                    Row { cores: cores.into(), tier: tier.name().into(), case, ..compare(&symbolic, &fixed, effort) };
                eprintln!("sizes: {} {} {:.2}", row.tier, row.case, row.ratio);
                out(&row)?;
            }
        }
    }
    Ok(agreed)
}

fn call(family: &Family, size: &[usize], dtype: DType, tier: Tier) -> Call {
    (family.build)(tier, size, family.arrays(size, dtype))
}

/// What is wrong with the first of two results, if anything is.
fn apart(a: &Call, b: &Call) -> Option<String> {
    let described = |call: &Call| -> std::result::Result<Vec<Described>, String> {
        call.outputs().iter().map(|a| Described::of_array(a).map_err(|e| e.to_string())).collect()
    };
    match (described(a), described(b)) {
        (Ok(a), Ok(b)) if a.len() == b.len() => {
            let far = distance(&a, &b);
            (far > 1e-3).then(|| format!("they are {far} apart"))
        }
        (Ok(_), Ok(_)) => Some("they have different results".into()),
        (Err(e), _) | (_, Err(e)) => Some(e),
    }
}

/// Both in turns.
fn compare(symbolic: &Call, fixed: &Call, effort: Effort) -> Row {
    let reps = |call: &Call| {
        let once = timed(3, || call.run()).wall.max(1.0);
        (effort.turn_ns() / once).ceil().max(1.0) as u64
    };
    let (n, m) = (reps(symbolic), reps(fixed));
    let rounds: Vec<[f64; 2]> =
        (0..effort.rounds()).map(|_| [timed(n, || symbolic.run()).wall, timed(m, || fixed.run()).wall]).collect();
    let median = |f: fn(&[f64; 2]) -> f64| median(rounds.iter().map(f)).unwrap_or(f64::NAN);
    Row {
        cores: String::new(),
        tier: String::new(),
        case: String::new(),
        times: [median(|r| r[0]), median(|r| r[1])],
        ratio: median(|r| r[0] / r[1]),
    }
}

/// The ratio that is wanted.
const TARGET: f64 = 1.2;

/// The tables.
pub fn render(rows: &[Row]) -> String {
    let mut text = String::new();
    if rows.is_empty() {
        return text;
    }
    text += "## One program for every size\n\nThe program compiled once with symbolic sizes, beside the one compiled for exactly this size; every size that varies in\n\
             use is a symbol: elements, rows and columns, batches, lengths, bodies; widths of layers are known. Wanted: at most 1.2 times as long.\n\n";
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for r in rows {
        if !kinds.contains(&(&*r.cores, &*r.tier)) {
            kinds.push((&*r.cores, &*r.tier));
        }
    }
    for (cores, tier) in kinds {
        let rows: Vec<&Row> = rows.iter().filter(|r| r.cores == cores && r.tier == tier).collect();
        let mean = (rows.iter().map(|r| r.ratio.ln()).sum::<f64>() / rows.len() as f64).exp();
        let _ = writeln!(
            text,
            "### {}, {tier}: geometric mean {mean:.2}\n",
            if cores == "1" { "One core" } else { "All cores" }
        );
        text += "| case | symbolic | for this size | ratio |\n| --- | ---: | ---: | ---: |\n";
        for r in rows {
            let mark = if r.ratio <= TARGET { "✓" } else { "✗" };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:.2} (≤ {TARGET} {mark}) |",
                r.case,
                time(r.times[0]),
                time(r.times[1]),
                r.ratio
            );
        }
        text.push('\n');
    }
    text
}

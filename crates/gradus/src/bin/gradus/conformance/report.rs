//! What became of all files: a table by kind, the reasons, and the same as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Outcome, Status};

/// Files that are named for one reason; the others are in the JSON.
const NAMED: usize = 3;

/// What became of all files.
pub struct Report {
    backend: String,
    folder: PathBuf,
    outcomes: Vec<Outcome>,
}

impl Report {
    /// Of a run.
    pub fn new(backend: &str, folder: &Path, outcomes: Vec<Outcome>) -> Report {
        Report { backend: backend.into(), folder: folder.into(), outcomes }
    }

    /// Whether nothing failed.
    pub fn is_good(&self) -> bool {
        !self.outcomes.iter().any(|o| o.status == Status::Failed)
    }

    /// How many files of each kind have each status, and the seconds that they took.
    fn counts(&self) -> BTreeMap<&str, ([usize; 4], f64)> {
        let mut counts: BTreeMap<&str, ([usize; 4], f64)> = BTreeMap::new();
        for o in &self.outcomes {
            let (by_status, seconds) = counts.entry(&o.kind).or_default();
            by_status[o.status as usize] += 1;
            *seconds += o.seconds;
        }
        counts
    }

    fn shown<'a>(&self, file: &'a Path) -> std::path::Display<'a> {
        file.strip_prefix(&self.folder).ok().filter(|p| !p.as_os_str().is_empty()).unwrap_or(file).display()
    }

    /// The same for programs.
    pub fn json(&self) -> String {
        let named = |counts: &[usize; 4]| -> Value {
            Status::ALL
                .iter()
                .map(|s| (s.name().to_string(), json!(counts[*s as usize])))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let kinds: serde_json::Map<String, Value> =
            self.counts().iter().map(|(kind, (counts, _))| (kind.to_string(), named(counts))).collect();
        let file = |o: &Outcome| {
            json!({
                "file": self.shown(&o.file).to_string(),
                "kind": o.kind,
                "status": o.status.name(),
                "reason": o.reason,
                "seconds": o.seconds,
            })
        };
        let files: Vec<Value> = self.outcomes.iter().map(file).collect();
        let whole = json!({ "backend": self.backend, "kinds": kinds, "files": files });
        serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n"
    }
}

/// A reason without what differs from file to file: the first line, and of that what is behind the place.
fn essence(reason: &str, file: &Path) -> String {
    let first = reason.lines().next().unwrap_or_default().replace(&*file.to_string_lossy(), "FILE");
    // Numbers of lines, columns and elements would make every reason its own.
    let mut text = String::new();
    let mut digits = false;
    for c in first.chars() {
        match c.is_ascii_digit() {
            true if digits => {}
            true => text.push('#'),
            false => text.push(c),
        }
        digits = c.is_ascii_digit();
    }
    text
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} on `{}`", self.folder.display(), self.backend)?;
        writeln!(
            f,
            "{:<12}{:>8}{:>8}{:>8}{:>8}{:>9}{:>9}",
            "kind", "files", "passed", "failed", "refused", "disabled", "seconds"
        )?;
        let counts = self.counts();
        let row = |f: &mut fmt::Formatter<'_>, name: &str, counts: &[usize; 4], seconds: f64| {
            let [passed, failed, refused, disabled] = counts;
            let all: usize = counts.iter().sum();
            writeln!(f, "{name:<12}{all:>8}{passed:>8}{failed:>8}{refused:>8}{disabled:>9}{seconds:>9.1}")
        };
        let mut total = ([0; 4], 0.0);
        for (kind, (counts, seconds)) in &counts {
            row(f, kind, counts, *seconds)?;
            total.0.iter_mut().zip(counts).for_each(|(t, n)| *t += n);
            total.1 += seconds;
        }
        if counts.len() > 1 {
            row(f, "all", &total.0, total.1)?;
        }
        for status in [Status::Failed, Status::Refused, Status::Disabled, Status::Passed] {
            let mut reasons: BTreeMap<String, Vec<&Outcome>> = BTreeMap::new();
            for o in self.outcomes.iter().filter(|o| o.status == status && !o.reason.is_empty()) {
                reasons.entry(essence(&o.reason, &o.file)).or_default().push(o);
            }
            let mut reasons: Vec<(String, Vec<&Outcome>)> = reasons.into_iter().collect();
            reasons.sort_by_key(|(_, files)| std::cmp::Reverse(files.len()));
            if !reasons.is_empty() {
                let remark = if status == Status::Passed { ", with a remark" } else { "" };
                writeln!(f, "\n{}{remark}:", status.name())?;
            }
            for (_, files) in reasons {
                let first = files[0].reason.lines().next().unwrap_or_default();
                writeln!(f, "{:>5} {first}", files.len())?;
                for o in files.iter().take(NAMED) {
                    writeln!(f, "        {}", self.shown(&o.file))?;
                }
            }
        }
        Ok(())
    }
}

//! `gradus conformance DIR`: runs a folder of StableHLO test files and of exported programs with their inputs and results, and counts what passed, what
//! failed and what was refused, with the reason of each.
//!
//! `find` says which files there are and what is known of them, `drive` gives them to child processes chunk by chunk, `judge` is what a child does with one file,
//! `report` counts.

mod drive;
mod find;
mod judge;
mod report;

use std::path::PathBuf;

use super::Answer;

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Every check holds; or, where there is none, it was read, printed and read again.
    Passed,
    /// A number is another one, or Gradus is at fault.
    Failed,
    /// Gradus does not take it, and says why.
    Refused,
    /// Upstream does not run it.
    Disabled,
}

impl Status {
    /// All of them, in the order of the table.
    pub const ALL: [Status; 4] = [Status::Passed, Status::Failed, Status::Refused, Status::Disabled];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::Refused => "refused",
            Status::Disabled => "disabled",
        }
    }

    fn of(name: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|s| s.name() == name)
    }
}

/// What is known of a file once it was run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Where it stands.
    pub file: PathBuf,
    /// Which sort of file it is: `static`, `dynamic`, `exported`, ...
    pub kind: String,
    /// What became of it.
    pub status: Status,
    /// Why, or what else is to be said.
    pub reason: String,
    /// How long it took.
    pub seconds: f64,
}

/// Runs the command, in the parent or in a child.
pub fn run(arguments: &[&str]) -> Answer {
    let (mut folder, mut backend, mut json, mut child) = (None, "native".to_string(), None, false);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = |name: &str| rest.next().map(ToString::to_string).ok_or(format!("`{name}` wants a value"));
        match *argument {
            "--backend" => backend = value("--backend")?,
            "--json" => json = Some(PathBuf::from(value("--json")?)),
            drive::CHILD => child = true,
            flag if flag.starts_with("--") => {
                return Err(format!("there is no option `{flag}` of `gradus conformance`"));
            }
            path if folder.is_none() => folder = Some(PathBuf::from(path)),
            more => return Err(format!("one folder is run at a time, and `{more}` is a second one")),
        }
    }
    // An unknown backend is said once, not for each file.
    let runs_on = gradus::devices::backend(&backend).map_err(|e| e.to_string())?;
    if child {
        return drive::serve(&runs_on);
    }
    drop(runs_on);
    let Some(folder) = folder else { return Err("name a folder".into()) };
    let files = find::files(&folder)?;
    let outcomes = drive::all(files, &backend)?;
    let report = report::Report::new(&backend, &folder, outcomes);
    if let Some(path) = json {
        std::fs::write(&path, report.json()).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    if report.is_good() { Ok(report.to_string()) } else { Err(report.to_string()) }
}

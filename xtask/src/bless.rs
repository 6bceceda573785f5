//! Rewrites the golden files: the test suite run with the bless switch on, then a summary of what it changed.

use std::path::Path;
use std::process::Command;

/// Runs the tests in blessing mode and shows the changed and the new files. True when every test passed.
pub(crate) fn run(root: &Path, extra: &[&str]) -> Result<bool, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // One failing suite must not keep the golden files of the next from being rewritten.
    let status = Command::new(cargo)
        .current_dir(root)
        .env("GRADUS_BLESS", "1")
        .args(["test", "--workspace", "--no-fail-fast"])
        .args(extra)
        .status()
        .map_err(|e| format!("cannot run cargo: {e}"))?;
    git(root, &["diff", "--stat"])?;
    // A golden file written for the first time is in no diff yet.
    git(root, &["status", "--short", "--untracked-files=all"])?;
    Ok(status.success())
}

fn git(root: &Path, args: &[&str]) -> Result<(), String> {
    println!("$ git {}", args.join(" "));
    let status = Command::new("git").arg("--no-pager").args(args).current_dir(root).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("git {}: {status}", args.join(" "))),
        Err(e) => Err(format!("cannot run git: {e}")),
    }
}

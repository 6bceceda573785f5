//! Which files the checks look at: those that git tracks or would track, as paths relative to the workspace root.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder that holds the workspace's `Cargo.toml`.
pub(crate) fn workspace_root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let manifest = PathBuf::from(manifest);
    manifest.parent().map(Path::to_path_buf).unwrap_or(manifest)
}

/// All files below the root that git does not ignore, sorted, with `/` between the parts.
///
/// Outside a git checkout (an unpacked archive) every file counts, apart from hidden ones and build output.
pub(crate) fn listed(root: &Path) -> Result<Vec<String>, String> {
    let mut paths = match from_git(root) {
        Some(paths) => paths,
        None => {
            let mut paths = Vec::new();
            walk(root, "", &mut paths)?;
            paths
        }
    };
    // The index may still name a file that was deleted from the disk.
    paths.retain(|p| root.join(p).is_file());
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// A file's text, or an error that names it.
pub(crate) fn read(root: &Path, path: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(path)).map_err(|e| format!("{path}: {e}"))
}

fn from_git(root: &Path) -> Option<Vec<String>> {
    let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(args).current_dir(root).output().ok()?;
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.split('\0').filter(|p| !p.is_empty()).map(str::to_owned).collect())
}

fn walk(root: &Path, under: &str, into: &mut Vec<String>) -> Result<(), String> {
    let folder = root.join(under);
    let fail = |e: std::io::Error| format!("{}: {e}", folder.display());
    for entry in std::fs::read_dir(&folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if under.is_empty() { name.clone() } else { format!("{under}/{name}") };
        let kind = entry.file_type().map_err(fail)?;
        if kind.is_file() {
            into.push(path);
        } else if kind.is_dir() && !name.starts_with('.') && path != "target" {
            walk(root, &path, into)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_and_the_walk_both_find_this_file() -> Result<(), String> {
        let root = workspace_root();
        let mut walked = Vec::new();
        walk(&root, "", &mut walked)?;
        assert!(walked.contains(&"xtask/src/files.rs".to_owned()));
        assert!(listed(&root)?.contains(&"xtask/src/files.rs".to_owned()));
        Ok(())
    }
}

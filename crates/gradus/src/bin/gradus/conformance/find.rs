//! Which files a folder has, and what the `INDEX.json` beside or above them says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// A file to be run.
#[derive(Clone, Debug)]
pub struct Test {
    /// Where it stands.
    pub path: PathBuf,
    /// Which sort of file it is.
    pub kind: String,
    /// The inputs and results of an exported program.
    pub numbers: Option<PathBuf>,
    /// Which of the inputs the module takes; all if nothing is said.
    pub kept: Option<Vec<usize>>,
    /// How far off results may be, of their size.
    pub tolerance: f64,
}

/// Unless the index says otherwise.
const TOLERANCE: f64 = 1e-5;

impl Test {
    /// As a line, for a child.
    pub fn to_line(&self) -> String {
        json!({
            "path": self.path.to_string_lossy(),
            "kind": self.kind,
            "numbers": self.numbers.as_ref().map(|p| p.to_string_lossy().into_owned()),
            "kept": self.kept,
            "tolerance": self.tolerance,
        })
        .to_string()
    }

    /// From a line.
    pub fn of_line(line: &str) -> Option<Test> {
        let v: Value = serde_json::from_str(line).ok()?;
        Some(Test {
            path: v["path"].as_str()?.into(),
            kind: v["kind"].as_str()?.into(),
            numbers: v["numbers"].as_str().map(PathBuf::from),
            kept: indices(&v["kept"]),
            tolerance: v["tolerance"].as_f64()?,
        })
    }
}

fn indices(v: &Value) -> Option<Vec<usize>> {
    v.as_array()?.iter().map(|i| i.as_u64().and_then(|i| usize::try_from(i).ok())).collect()
}

/// All files below a folder, in the order of their paths; a file stands for itself.
pub fn files(folder: &Path) -> Result<Vec<Test>, String> {
    let mut paths = Vec::new();
    if folder.is_file() {
        paths.push(folder.to_path_buf());
    } else {
        walk(folder, &mut paths)?;
    }
    paths.sort();
    if paths.is_empty() {
        return Err(format!("{} has no `.mlir` file", folder.display()));
    }
    let mut indices = Indices::default();
    Ok(paths.into_iter().map(|path| test(path, &mut indices)).collect())
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("cannot read {}: {e}", folder.display()))?;
    for entry in entries {
        let entry = entry.map_err(|e| format!("cannot read {}: {e}", folder.display()))?;
        let (path, kind) = (entry.path(), entry.file_type());
        // Links are not followed: they may go round in a circle.
        match kind {
            Ok(kind) if kind.is_dir() => walk(&path, found)?,
            Ok(kind) if kind.is_file() && is_program(&path) => found.push(path),
            _ => {}
        }
    }
    Ok(())
}

/// Text, and bytecode by the endings that are in use.
fn is_program(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    [".mlir", ".mlirbc", ".mlir.bc", ".stablehlo"].iter().any(|ending| name.ends_with(ending))
}

fn test(path: PathBuf, indices: &mut Indices) -> Test {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    // `f.mlir`, `f.lowered.mlir` and `f.mlirbc` share `f.npz`.
    let stem = name.split('.').next().unwrap_or_default().to_string();
    let numbers = Some(path.with_file_name(format!("{stem}.npz"))).filter(|p| p.is_file());
    let entry = indices.entry(&path, &stem);
    let said = entry.as_ref().and_then(|e| e["kind"].as_str().map(ToString::to_string));
    let kind = said.unwrap_or_else(|| if numbers.is_some() { "exported".into() } else { guessed(&path) });
    let tolerance = entry.as_ref().and_then(|e| e["rtol"].as_f64()).unwrap_or(TOLERANCE);
    Test { kind, numbers, kept: entry.and_then(|e| self::indices(&e["kept"])), tolerance, path }
}

/// The sort of a file that no index knows, by the folders of StableHLO's repository.
fn guessed(path: &Path) -> String {
    let folders = ["dynamic", "quantized", "interpret"];
    let has = |name: &str| path.components().any(|c| c.as_os_str() == name);
    match folders.into_iter().find(|f| has(f)) {
        Some(folder) => folder.into(),
        None if path.file_name().is_some_and(|n| n.to_string_lossy().contains("chlo")) => "chlo".into(),
        None => "static".into(),
    }
}

/// The entries of every `INDEX.json` that was met, by name or by the end of the path.
#[derive(Default)]
struct Indices {
    read: BTreeMap<PathBuf, Option<BTreeMap<String, Value>>>,
}

impl Indices {
    fn entry(&mut self, path: &Path, stem: &str) -> Option<Value> {
        for folder in path.ancestors().skip(1) {
            let index = self.read.entry(folder.to_path_buf()).or_insert_with(|| read_index(&folder.join("INDEX.json")));
            let Some(index) = index else { continue };
            if let Some(found) = index.get(stem) {
                return Some(found.clone());
            }
            // Paths there are from the root of a repository, of which the folder may be any part.
            let mut end = path.file_name().map(PathBuf::from)?;
            for parent in path.ancestors().skip(1) {
                if let Some(found) = index.get(&*end.to_string_lossy()) {
                    return Some(found.clone());
                }
                let Some(name) = parent.file_name() else { break };
                end = Path::new(name).join(end);
            }
        }
        None
    }
}

fn read_index(path: &Path) -> Option<BTreeMap<String, Value>> {
    let entries: Value = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
    let named = |e: &Value| Some((e["file"].as_str().or(e["name"].as_str())?.to_string(), e.clone()));
    Some(entries.as_array()?.iter().filter_map(named).collect())
}

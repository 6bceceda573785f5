//! How long a newcomer waits: a new crate that depends on `gradus` is built from nothing, and the time is split by crate.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// One unit that cargo built.
#[derive(Debug, PartialEq)]
struct Unit {
    name: String,
    seconds: f64,
}

const MAIN: &str = "use gradus::prelude::*;\n\nfn main() {\n    let df = jit(grad(|x: &Array| (x * x).sum()));\n    println!(\"{:?}\", df(&Array::from([1.0_f64, 2.0])));\n}\n";

/// Builds the crate in debug and in release mode, or in one of them.
pub fn run(root: &Path, modes: &[&str]) -> Result<bool, String> {
    let modes = if modes.is_empty() { &["debug", "release"] } else { modes };
    for mode in modes {
        if !["debug", "release"].contains(mode) {
            return Err(format!("`{mode}` is neither debug nor release"));
        }
        measure(root, mode)?;
    }
    Ok(true)
}

fn measure(root: &Path, mode: &str) -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("gradus-build-time-{}", std::process::id()));
    let made = (|| {
        let gradus = root.join("crates/gradus");
        let manifest = format!(
            "[package]\nname = \"newcomer\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\ngradus = {{ path = {:?} }}\n\n[workspace]\n",
            gradus
        );
        fs::create_dir_all(folder.join("src"))?;
        fs::write(folder.join("Cargo.toml"), manifest)?;
        fs::write(folder.join("src/main.rs"), MAIN)?;
        // The same versions of what it depends on as here.
        fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).map(drop)
    })();
    made.map_err(|e: std::io::Error| format!("{}: {e}", folder.display()))?;
    let done = build(&folder, mode);
    // What cannot be removed is left to the system, as all temporary files are.
    let _ = fs::remove_dir_all(&folder);
    done
}

fn build(folder: &Path, mode: &str) -> Result<(), String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--timings"]).current_dir(folder).env_remove("CARGO_TARGET_DIR");
    if mode == "release" {
        cargo.arg("--release");
    }
    let start = Instant::now();
    let status = cargo.status().map_err(|e| format!("cargo: {e}"))?;
    let wall = start.elapsed().as_secs_f64();
    if !status.success() {
        return Err(format!("cargo build {mode} failed"));
    }
    let report = folder.join("target/cargo-timings/cargo-timing.html");
    let report = fs::read_to_string(&report).map_err(|e| format!("{}: {e}", report.display()))?;
    let mut units = units(&report).ok_or("the report of cargo has no units")?;
    units.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let all: f64 = units.iter().map(|u| u.seconds).sum();
    println!("{mode}: {wall:.0} s, {all:.0} s of all units together");
    for unit in units.iter().take(12) {
        println!("  {:6.1} s  {}", unit.seconds, unit.name);
    }
    let binary = folder.join("target").join(mode).join("newcomer");
    let bytes = fs::metadata(&binary).map_err(|e| format!("{}: {e}", binary.display()))?.len();
    println!("  {:6.1} MB  the program, not stripped", bytes as f64 / 1e6);
    let stripped = Command::new("strip").arg(&binary).status().is_ok_and(|s| s.success());
    match fs::metadata(&binary) {
        Ok(m) if stripped => println!("  {:6.1} MB  stripped", m.len() as f64 / 1e6),
        _ => println!("          there is no `strip` here"),
    }
    Ok(())
}

/// The units in cargo's report, a list of objects behind `UNIT_DATA`.
fn units(report: &str) -> Option<Vec<Unit>> {
    let list = report.split_once("UNIT_DATA = [")?.1.split_once("];")?.0;
    let field = |object: &str, name: &str| -> Option<String> {
        let rest = object.split_once(&format!("\"{name}\":"))?.1.trim_start();
        let value = match rest.strip_prefix('"') {
            Some(text) => text.split('"').next()?,
            None => rest.split([',', '}', '\n']).next()?,
        };
        Some(value.trim().to_string())
    };
    let unit = |object: &str| {
        let what = field(object, "target").unwrap_or_default();
        let name = [field(object, "name")?, what].join(" ");
        Some(Unit { name: name.trim().to_string(), seconds: field(object, "duration")?.parse().ok()? })
    };
    let found: Vec<Unit> = list.split("\"i\":").skip(1).filter_map(unit).collect();
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_from_the_report() {
        let report = "<script>\nconst UNIT_DATA = [\n  {\n    \"i\": 0,\n    \"name\": \"gradus-core\",\n    \"version\": \"0.1.0\",\n    \"target\": \"\",\n    \"start\": 0.1,\n    \"duration\": 12.5,\n    \"unblocked_units\": []\n  },\n  {\n    \"i\": 1,\n    \"name\": \"rayon\",\n    \"target\": \" build script\",\n    \"duration\": 0.25\n  }\n];\n</script>";
        let found = units(report).unwrap();
        assert_eq!(found[0], Unit { name: "gradus-core".into(), seconds: 12.5 });
        assert_eq!(found[1], Unit { name: "rayon build script".into(), seconds: 0.25 });
        assert!(units("nothing").is_none());
    }
}

//! Where an LLVM may be: what the user says, the Rust toolchain, the system.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::api::OLDEST;

/// The variable that names a library or its folder, or turns the tier off.
pub(super) const VARIABLE: &str = "GRADUS_LLVM";

/// What the user asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Wish {
    /// Nothing: look everywhere.
    Anywhere,
    /// No LLVM at all.
    Off,
    /// This one and no other.
    Only(PathBuf),
}

/// Reads the variable's value.
pub(super) fn wish(setting: Option<&OsStr>) -> Wish {
    match setting {
        None => Wish::Anywhere,
        Some(s) if s.is_empty() => Wish::Anywhere,
        Some(s) if s.eq_ignore_ascii_case("off") => Wish::Off,
        Some(s) => Wish::Only(PathBuf::from(s)),
    }
}

/// The libraries to try for a wish, in order.
pub(super) fn candidates(wish: &Wish) -> Result<Vec<PathBuf>, String> {
    match wish {
        Wish::Off => Err(format!("{VARIABLE} is off")),
        Wish::Only(path) if path.is_dir() => match in_folder(path, 0) {
            found if found.is_empty() => Err(format!("{VARIABLE} names {}, which holds no LLVM", path.display())),
            found => Ok(found),
        },
        Wish::Only(path) if path.exists() => Ok(vec![path.clone()]),
        Wish::Only(path) => Err(format!("{VARIABLE} names {}, which is not there", path.display())),
        Wish::Anywhere => {
            let found = everywhere();
            match found.is_empty() {
                true => Err(format!("no libLLVM of version {OLDEST} or newer was found")),
                false => Ok(found),
            }
        }
    }
}

/// The version in a file name such as `libLLVM.so.22.1-rust-1.95.0-stable`, `libLLVM-17.so.1` or `libLLVM-14.0.6.so`.
fn version(name: &str) -> Option<(u32, u32)> {
    let rest = name.trim_start_matches("lib").strip_prefix("LLVM")?;
    let rest = rest.split("-rust").next().unwrap_or(rest);
    let start = rest.find(|c: char| c.is_ascii_digit())?;
    // `libLLVM-17.so.1`: the digits after `.so` are not part of it.
    let mut numbers = rest[start..].split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().ok());
    Some((numbers.next()??, numbers.next().flatten().unwrap_or(0)))
}

/// Whether a file name is that of the one library with everything.
fn is_library(name: &str) -> bool {
    let shared = name.contains(".so") || name.ends_with(".dylib") || name.ends_with(".dll");
    let after = name.trim_start_matches("lib").strip_prefix("LLVM");
    shared && after.is_some_and(|rest| rest.starts_with(['.', '-']))
}

/// The libraries in a folder, newest first, none older than `oldest` by its name. A name without a version comes last.
fn in_folder(folder: &Path, oldest: u32) -> Vec<PathBuf> {
    // Beside the library some distributions put a text for the linker, of a few bytes.
    const SMALLEST: u64 = 1 << 20;
    let mut found: Vec<((u32, u32), PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if !is_library(name) || !std::fs::metadata(entry.path()).is_ok_and(|m| m.is_file() && m.len() >= SMALLEST) {
            continue;
        }
        match version(name) {
            Some(v) if v.0 < oldest => {}
            v => found.push((v.unwrap_or((0, 0)), entry.path())),
        }
    }
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, path)| path).collect()
}

/// The libraries of several folders, newest first.
fn in_folders(folders: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = folders.flat_map(|f| in_folder(&f, OLDEST)).collect();
    let key = |p: &PathBuf| p.file_name().and_then(OsStr::to_str).and_then(version);
    found.sort_by_key(|p| std::cmp::Reverse(key(p)));
    found
}

/// The folders in a folder whose name begins so, each with `then` behind it.
fn folders(parent: &str, prefix: &str, then: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    entries.filter(|e| e.file_name().to_string_lossy().starts_with(prefix)).map(|e| e.path().join(then)).collect()
}

fn everywhere() -> Vec<PathBuf> {
    let mut found = Vec::new();
    // The compiler in use first: its LLVM is the one most likely to be recent and complete.
    if let Ok(out) = Command::new("rustc").args(["--print", "sysroot"]).output()
        && let Ok(sysroot) = String::from_utf8(out.stdout)
        && !sysroot.trim().is_empty()
    {
        found.extend(in_folder(&Path::new(sysroot.trim()).join("lib"), OLDEST));
    }
    let home = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
    if let Some(home) = home.or_else(|| std::env::home_dir().map(|h| h.join(".rustup"))) {
        found.extend(in_folders(folders(&home.join("toolchains").to_string_lossy(), "", "lib").into_iter()));
    }
    let mut system = folders("/usr/lib", "llvm-", "lib");
    system.extend(folders("/usr/lib", "llvm", "lib64"));
    for parent in ["/opt/homebrew/opt", "/usr/local/opt"] {
        system.extend(folders(parent, "llvm", "lib"));
    }
    for plain in ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"]
    {
        system.push(PathBuf::from(plain));
    }
    if cfg!(windows) {
        system.push(PathBuf::from(r"C:\Program Files\LLVM\bin"));
    }
    found.extend(in_folders(system.into_iter()));
    // A library is often reached by several names.
    let mut seen = rustc_hash::FxHashSet::default();
    found.retain(|p| seen.insert(p.canonicalize().unwrap_or_else(|_| p.clone())));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_names() {
        assert_eq!(version("libLLVM.so.22.1-rust-1.95.0-stable"), Some((22, 1)));
        assert_eq!(version("libLLVM-22-rust-1.95.0-stable.so"), Some((22, 0)));
        assert_eq!(version("libLLVM-14.0.6.so"), Some((14, 0)));
        assert_eq!(version("libLLVM-17.so.1").map(|v| v.0), Some(17));
        assert_eq!(version("libLLVM.dylib"), None);
        assert!(is_library("libLLVM.so.19.1"));
        assert!(!is_library("libLLVMCore.a"));
        assert!(!is_library("libLLVMSomething.so"));
    }

    #[test]
    fn wishes() {
        assert_eq!(wish(None), Wish::Anywhere);
        assert_eq!(wish(Some(OsStr::new("OFF"))), Wish::Off);
        assert_eq!(wish(Some(OsStr::new("/a/b"))), Wish::Only(PathBuf::from("/a/b")));
    }
}

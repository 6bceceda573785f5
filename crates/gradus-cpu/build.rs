//! Names the build: a hash of this crate's source, so that machine code on disk is only used by the generators that made it. And says whether Cranelift is in it: by
//! choice, or because our own assembler does not know the processor.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=Cargo.toml");
    println!("cargo::rustc-check-cfg=cfg(has_cranelift)");
    let elsewhere = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch != "x86_64");
    if elsewhere || env::var_os("CARGO_FEATURE_CRANELIFT").is_some() {
        println!("cargo::rustc-cfg=has_cranelift");
    }
    let mut files = Vec::new();
    list(Path::new("src"), &mut files)?;
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in &files {
        file.hash(&mut hasher);
        fs::read(file)?.hash(&mut hasher);
    }
    fs::read("Cargo.toml")?.hash(&mut hasher);
    // Debug builds of the generators check more, and may one day do something else.
    let profile = env::var("PROFILE").unwrap_or_default();
    println!(
        "cargo::rustc-env=GRADUS_BUILD_ID={} {profile} {:016x}",
        env::var("CARGO_PKG_VERSION").unwrap_or_default(),
        hasher.finish()
    );
    Ok(())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => list(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

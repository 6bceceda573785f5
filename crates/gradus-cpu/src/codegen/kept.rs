//! Machine code from disk where it is kept, made and put there otherwise.

use super::{embedded, llvm, perf, x86};
use crate::disk;
use crate::error::Result;
use crate::ir::Module;

/// Code, and whether it came from disk.
pub(crate) struct Kept<T> {
    pub code: T,
    pub loaded: bool,
}

/// The embedded tier's code of a module.
pub(crate) fn embedded(module: &Module, text: bool, isa: Option<x86::Isa>) -> Result<Kept<embedded::Compiled>> {
    // Texts are made with the code: who wants one wants it made. What is on disk is for the machine as it is.
    let image = !text && !perf::is_on() && isa == x86::detect() && disk::is_on();
    let key = if image { disk::embedded_key(module, isa) } else { None };
    if let Some(code) = key.and_then(|k| disk::load(&k, |image| embedded::load(image, isa).ok())) {
        return Ok(Kept { code, loaded: true });
    }
    let code = embedded::compile(module, isa, text, image)?;
    if let (Some(key), Some(image)) = (key, code.image()) {
        disk::store(&key, image);
    }
    Ok(Kept { code, loaded: false })
}

/// The optimizing tier's code of a module, with its texts if they are wanted. The error says why there is none.
pub(crate) fn optimized(module: &Module, texts: bool) -> std::result::Result<Kept<llvm::Compiled>, String> {
    let llvm = llvm::available().map_err(str::to_string)?;
    let image = !texts && !perf::is_on() && disk::is_on();
    let options = llvm::Options { image, llvm_ir: texts, assembly: texts, ..llvm::Options::default() };
    let key = if options.image { disk::optimized_key(module, &options) } else { None };
    if let Some(code) = key.and_then(|k| disk::load(&k, |image| llvm.load_image(image).ok())) {
        return Ok(Kept { code, loaded: true });
    }
    let mut code = llvm.compile(module, &options).map_err(|e| e.to_string())?;
    if let (Some(key), Some(image)) = (key, code.take_image()) {
        disk::store(&key, &image);
    }
    Ok(Kept { code, loaded: false })
}

/// The optimizing tier's code of a module, if it is on disk: then a program need not be called often to get it.
pub(crate) fn optimized_before(module: &Module) -> Option<llvm::Compiled> {
    if !disk::is_on() || perf::is_on() {
        return None;
    }
    let key = disk::optimized_key(module, &llvm::Options { image: true, ..llvm::Options::default() })?;
    // Loading LLVM takes longer than making code for a small program.
    if !disk::may_have(&key) {
        return None;
    }
    let llvm = llvm::available().ok()?;
    disk::load(&key, |image| llvm.load_image(image).ok())
}

/// Whether the optimizing tier's code of a module was the faster one, if that was found out before.
pub(crate) fn winner(module: &Module) -> Option<bool> {
    let key = disk::is_on().then(|| disk::winner_key(module)).flatten()?;
    if !disk::may_have(&key) {
        return None;
    }
    disk::load(&key, |note| match note {
        b"optimized" => Some(true),
        b"embedded" => Some(false),
        _ => None,
    })
}

/// Notes whether the optimizing tier's code of a module was the faster one.
pub(crate) fn win(module: &Module, optimized: bool) {
    if let Some(key) = disk::is_on().then(|| disk::winner_key(module)).flatten() {
        disk::store(&key, if optimized { b"optimized" } else { b"embedded" });
    }
}

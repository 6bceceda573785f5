//! Names of generated functions for `perf`, which knows code that no file has by a list in `/tmp`. With `GRADUS_PERF` set to anything, the list is written.

use std::fs::File;
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The variable that asks for the list.
const VARIABLE: &str = "GRADUS_PERF";

static LIST: LazyLock<Option<Mutex<File>>> = LazyLock::new(|| {
    std::env::var_os(VARIABLE).filter(|v| !v.is_empty())?;
    File::create(format!("/tmp/perf-{}.map", std::process::id())).ok().map(Mutex::new)
});

/// Whether functions are named. Then code is made and not loaded: what is on disk has no names.
pub(crate) fn is_on() -> bool {
    LIST.is_some()
}

/// Names functions: the address of each, its bytes, and what it is called. What cannot be written is left out.
pub(crate) fn name(functions: impl IntoIterator<Item = (usize, usize, String)>) {
    let Some(list) = &*LIST else { return };
    let lines = functions.into_iter().map(|(address, bytes, name)| format!("{address:x} {bytes:x} {name}\n"));
    let text: String = lines.collect();
    drop(list.lock().unwrap_or_else(PoisonError::into_inner).write_all(text.as_bytes()));
}

/// A function of an object file.
#[derive(Debug, PartialEq)]
pub(crate) struct Function {
    pub start: usize,
    pub bytes: usize,
    pub name: String,
}

/// The functions of an object file in the format of Linux, ELF with 64 bits. None if it is something else.
pub(crate) fn functions(object: &[u8]) -> Option<Vec<Function>> {
    const SYMBOLS: u64 = 2;
    const FUNCTION: u64 = 2;
    if !object.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let number = |at: usize, bytes: usize| {
        let mut all = [0; 8];
        all[..bytes].copy_from_slice(object.get(at..at.checked_add(bytes)?)?);
        Some(u64::from_le_bytes(all))
    };
    let place = |at: usize, bytes: usize| number(at, bytes).and_then(|n| usize::try_from(n).ok());
    let (sections, entry, count) = (place(0x28, 8)?, place(0x3A, 2)?, place(0x3C, 2)?);
    let section = |i: usize| sections.checked_add(i.checked_mul(entry)?);
    let mut all = Vec::new();
    for at in (0..count).map_while(section) {
        if number(at + 4, 4)? != SYMBOLS {
            continue;
        }
        let (start, size, names) = (place(at + 0x18, 8)?, place(at + 0x20, 8)?, section(place(at + 0x28, 4)?)?);
        let names = object.get(place(names + 0x18, 8)?..)?;
        for symbol in (start..start.checked_add(size)?).step_by(24) {
            if number(symbol + 4, 1)? & 0xF != FUNCTION {
                continue;
            }
            let name = names.get(place(symbol, 4)?..)?;
            let name = name.split(|b| *b == 0).next().unwrap_or_default();
            let name = String::from_utf8_lossy(name).into_owned();
            all.push(Function { start: place(symbol + 8, 8)?, bytes: place(symbol + 16, 8)?, name });
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest object with one function: a header, its sections (nothing, symbols, names), two symbols, two names.
    fn object() -> Vec<u8> {
        let mut o = vec![0; 0x40 + 3 * 0x40 + 2 * 24];
        o[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let mut put = |at: usize, n: u64, bytes: usize| o[at..at + bytes].copy_from_slice(&n.to_le_bytes()[..bytes]);
        [(0x28, 0x40, 8), (0x3A, 0x40, 2), (0x3C, 3, 2)].into_iter().for_each(|(at, n, b)| put(at, n, b));
        let (symbols, names) = (0x80, 0xC0);
        [(4, 2, 4), (0x18, 0x100, 8), (0x20, 48, 8), (0x28, 2, 4)]
            .into_iter()
            .for_each(|(at, n, b)| put(symbols + at, n, b));
        [(4, 3, 4), (0x18, 0x130, 8)].into_iter().for_each(|(at, n, b)| put(names + at, n, b));
        [(0, 1, 4), (4, 2, 1), (8, 0x30, 8), (16, 7, 8)].into_iter().for_each(|(at, n, b)| put(0x118 + at, n, b));
        o.extend_from_slice(b"\0main\0");
        o
    }

    #[test]
    fn functions_of_an_object_are_found() {
        let found = functions(&object()).unwrap();
        assert_eq!(found, [Function { start: 0x30, bytes: 7, name: "main".into() }]);
        assert!(functions(b"something else").is_none());
        for n in 0..object().len() {
            // Torn, it is no object or has fewer functions, and nothing worse.
            drop(functions(&object()[..n]));
        }
    }
}

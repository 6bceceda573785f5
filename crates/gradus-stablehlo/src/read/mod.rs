//! Text becomes the tree. One reader takes the generic syntax of every dialect and the pretty forms of StableHLO, CHLO and the dialects beside them.
//!
//! `cursor` steps over words and signs, `types`, `attributes`, `structs` and `dense` read those, `operations` reads modules, functions, regions and generic
//! operations, `pretty` has the table of pretty forms
//! and `own` those that fit no table.
//!
//! *Invariants.* Time is linear in the text. Nesting is bounded, so that no text overflows the stack. What the text says of the types of operands is checked.

mod attributes;
mod cursor;
mod dense;
mod names;
mod operations;
mod own;
mod pretty;
mod structs;
mod types;

use std::sync::Arc;

use gradus_core::error::{Error, ErrorKind, Result};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::module::{Attribute, Function, Module, Operation, Place, Type, Value};
use cursor::{Cursor, advanced};

pub(crate) use dense::{float_bits, float_of_bits};
pub(crate) use names::known;
pub(crate) use types::{name_of, storage_range};

/// How deep regions, lists and types may nest in each other. JAX's deepest files stay below 30.
const DEEPEST: u32 = 100;

/// Reads all modules of a text: a file may hold several, behind each other or separated by lines `// -----`. Functions that stand outside of modules form one
/// without a name. `source` is the name that errors give the text.
pub fn read(source: &str, text: &str) -> Result<Vec<Module>> {
    let mut modules = Vec::new();
    let (mut from, mut place) = (0, Place { line: 1, column: 1 });
    while from < text.len() {
        let to = next_mark(text, from);
        let mut reader = Reader::new(Cursor::new(source, text, (from, place), to));
        let end = reader.file_resources(text, from, to)?;
        reader.cur.shorten(end);
        reader.file(&mut modules)?;
        (from, place) = (to, advanced(place, &text.as_bytes()[from..to]));
    }
    Ok(modules)
}

/// Reads a text that holds exactly one module.
pub fn read_one(source: &str, text: &str) -> Result<Module> {
    let mut modules = read(source, text)?;
    match (modules.pop(), modules.len()) {
        (Some(module), 0) => Ok(module),
        (None, _) => {
            Err(Error::new(ErrorKind::Parse, format!("{source}: there is no module and no function in this text")))
        }
        (_, n) => Err(Error::new(ErrorKind::Parse, format!("{source}: {} modules where one is wanted", n + 1))
            .help("`read` gives all modules of a text")),
    }
}

/// Reads one attribute that stands alone.
pub(crate) fn read_attribute(source: &str, text: &str) -> Result<Attribute> {
    alone(source, text, |reader| reader.attribute())
}

/// Reads one type that stands alone.
pub(crate) fn read_type(source: &str, text: &str) -> Result<Type> {
    alone(source, text, |reader| reader.ty())
}

fn alone<T>(source: &str, text: &str, read: impl FnOnce(&mut Reader) -> Result<T>) -> Result<T> {
    let start = Place { line: 1, column: 1 };
    let mut reader = Reader::new(Cursor::new(source, text, (0, start), text.len()));
    let found = read(&mut reader)?;
    if reader.cur.at() != text.len() {
        return Err(reader.cur.expected("the end"));
    }
    Ok(found)
}

/// Where the next line `// -----` starts, or the text ends.
fn next_mark(text: &str, from: usize) -> usize {
    const MARK: &str = "// -----";
    let mut at = from;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find(MARK)) {
        let start = at + found;
        if start > from && text.as_bytes()[start - 1] == b'\n' {
            return start;
        }
        at = start + MARK.len();
    }
    text.len()
}

/// A name of values, and since when it is visible.
#[derive(Clone, Copy)]
struct Named {
    first: Value,
    count: u32,
    scope: u32,
}

/// What is read of one part of a file.
struct Reader<'a> {
    cur: Cursor<'a>,
    source: Arc<str>,
    aliases: FxHashMap<&'a str, Attribute>,
    type_aliases: FxHashMap<&'a str, Type>,
    bounds_aliases: FxHashMap<String, SmallVec<[Option<u64>; 4]>>,
    /// Where the bytes of resources stand, and what they are.
    resources: FxHashMap<String, (usize, &'a str)>,
    /// The values that can be named here.
    names: FxHashMap<&'a str, Named>,
    /// What to undo when regions end: a name, and what it meant outside.
    undo: Vec<(&'a str, Option<Named>)>,
    /// How many regions are open, and which of them sees nothing from outside.
    scope: u32,
    isolated: u32,
    /// The types of the function's values.
    values: Vec<Type>,
    depth: u32,
}

impl<'a> Reader<'a> {
    fn new(cur: Cursor<'a>) -> Reader<'a> {
        Reader {
            source: cur.source().into(),
            cur,
            aliases: FxHashMap::default(),
            type_aliases: FxHashMap::default(),
            bounds_aliases: FxHashMap::default(),
            resources: FxHashMap::default(),
            names: FxHashMap::default(),
            undo: Vec::new(),
            scope: 0,
            isolated: 0,
            values: Vec::new(),
            depth: 0,
        }
    }

    /// Goes down a level, which is refused where it is too deep.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEEPEST {
            return Err(self.cur.error_at(self.cur.at(), &format!("this nests more than {DEEPEST} levels deep")));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Items between commas up to a closing sign, which is stepped over. The opening one is behind the cursor.
    fn list<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut all = Vec::new();
        if self.cur.eat(close) {
            return Ok(all);
        }
        loop {
            all.push(item(self)?);
            if !self.cur.eat(",") {
                self.cur.take(close)?;
                return Ok(all);
            }
        }
    }
}

/// What one top level holds.
#[derive(Default)]
struct Top {
    functions: Vec<Function>,
    others: Vec<Operation>,
}

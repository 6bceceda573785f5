//! Attributes and types by their number: read when they are first asked for, kept, and handed out as copies whose total size is bounded.
//!
//! Entries refer to one another, so a small file can describe a tree that no memory holds. What is handed out is therefore counted, and a file that
//! asks for far more than its own size is refused.

use gradus_core::{Error, Result};

use super::cursor::{Cursor, error};
use super::sections::{Entry, File, pick};
use super::{builtin, native, sdy, vhlo};
use crate::module::{Attribute, Element, Place, Type};

/// How deep attributes and types may hold one another.
const DEPTH: u32 = 64;

/// The state of an entry.
enum Slot<T> {
    Unread,
    Reading,
    Read(T, u64),
}

/// All attributes and types of a file.
pub(super) struct Entries<'a> {
    /// The tables.
    pub(super) file: File<'a>,
    attributes: Vec<Slot<Attribute>>,
    types: Vec<Slot<Type>>,
    places: Vec<Option<Place>>,
    depth: u32,
    budget: u64,
}

impl<'a> Entries<'a> {
    /// The entries of a file of so many bytes.
    pub(super) fn new(file: File<'a>, bytes: usize) -> Entries<'a> {
        let attributes = file.attributes.iter().map(|_| Slot::Unread).collect();
        let types = file.types.iter().map(|_| Slot::Unread).collect();
        let places = vec![None; file.attributes.len()];
        Entries { file, attributes, types, places, depth: 0, budget: 64 * bytes as u64 + (1 << 20) }
    }

    /// The attribute that the next number refers to.
    pub(super) fn attribute(&mut self, cursor: &mut Cursor) -> Result<Attribute> {
        let at = cursor.at();
        let index = cursor.number()?;
        self.attribute_of(at, index)
    }

    /// The attribute of a number that stands at `at`.
    pub(super) fn attribute_of(&mut self, at: usize, index: u64) -> Result<Attribute> {
        let entry = *pick(&self.file.attributes, at, index, "attribute")?;
        let index = index as usize;
        if let Slot::Unread = self.attributes[index] {
            self.attributes[index] = Slot::Reading;
            let read = self.nested(at, |entries| entries.read_attribute(entry))?;
            let weight = attribute_weight(&read);
            self.attributes[index] = Slot::Read(read, weight);
        }
        let Slot::Read(value, weight) = &self.attributes[index] else {
            return Err(error(at, format!("attribute {index} holds itself")));
        };
        spend(&mut self.budget, at, *weight)?;
        Ok(value.clone())
    }

    /// The type that the next number refers to.
    pub(super) fn ty(&mut self, cursor: &mut Cursor) -> Result<Type> {
        let at = cursor.at();
        let index = cursor.number()?;
        self.type_of(at, index)
    }

    /// The type of a number that stands at `at`.
    pub(super) fn type_of(&mut self, at: usize, index: u64) -> Result<Type> {
        let entry = *pick(&self.file.types, at, index, "type")?;
        let index = index as usize;
        if let Slot::Unread = self.types[index] {
            self.types[index] = Slot::Reading;
            let read = self.nested(at, |entries| entries.read_type(entry))?;
            let weight = type_weight(&read);
            self.types[index] = Slot::Read(read, weight);
        }
        let Slot::Read(value, weight) = &self.types[index] else {
            return Err(error(at, format!("type {index} holds itself")));
        };
        spend(&mut self.budget, at, *weight)?;
        Ok(value.clone())
    }

    fn nested<T>(&mut self, at: usize, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH {
            return Err(error(at, format!("attributes and types hold one another more than {DEPTH} deep")));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn read_attribute(&mut self, entry: Entry<'a>) -> Result<Attribute> {
        let mut cursor = entry.content;
        let read = match (entry.encoded, entry.dialect) {
            (false, _) => return builtin::attribute_text(&mut cursor),
            (true, "builtin") => builtin::attribute(self, &mut cursor)?,
            (true, "vhlo") => vhlo::attribute(self, &mut cursor)?,
            (true, "stablehlo") => native::attribute(self, &mut cursor)?,
            (true, "chlo") => native::chlo_attribute(&mut cursor)?,
            (true, "sdy") => sdy::attribute(self, &mut cursor)?,
            (true, dialect) => return Err(unknown_dialect(&cursor, dialect, "an attribute")),
        };
        cursor.finished("an attribute")?;
        Ok(read)
    }

    fn read_type(&mut self, entry: Entry<'a>) -> Result<Type> {
        let mut cursor = entry.content;
        let read = match (entry.encoded, entry.dialect) {
            (false, _) => return builtin::type_text(&mut cursor),
            (true, "builtin") => builtin::ty(self, &mut cursor)?,
            (true, "vhlo") => vhlo::ty(self, &mut cursor)?,
            (true, "stablehlo") => native::ty(self, &mut cursor)?,
            (true, "quant") => native::quantized_type(self, &mut cursor)?,
            (true, dialect) => return Err(unknown_dialect(&cursor, dialect, "a type")),
        };
        cursor.finished("a type")?;
        Ok(read)
    }

    /// Attributes, with their count in front.
    pub(super) fn attributes(&mut self, cursor: &mut Cursor) -> Result<Vec<Attribute>> {
        (0..cursor.count("attributes")?).map(|_| self.attribute(cursor)).collect()
    }

    /// Types, with their count in front.
    pub(super) fn types(&mut self, cursor: &mut Cursor) -> Result<Vec<Type>> {
        (0..cursor.count("types")?).map(|_| self.ty(cursor)).collect()
    }

    /// A type that elements can have.
    pub(super) fn element(&mut self, cursor: &mut Cursor) -> Result<Element> {
        let at = cursor.at();
        match self.ty(cursor)? {
            Type::Scalar(element) => Ok(element),
            other => Err(error(at, format!("{other:?} where the type of an element is expected"))),
        }
    }

    /// A text, through the attribute that holds it.
    pub(super) fn text(&mut self, cursor: &mut Cursor) -> Result<String> {
        let at = cursor.at();
        match self.attribute(cursor)? {
            Attribute::String(bytes) => String::from_utf8(bytes).map_err(|_| error(at, "a name that is no text")),
            other => Err(error(at, format!("{other:?} where a text is expected"))),
        }
    }

    /// The line that a location points to: that of the innermost call, which is a line of the program that was exported. Zeros if it says none.
    pub(super) fn place(&mut self, cursor: &mut Cursor) -> Result<Place> {
        let at = cursor.at();
        let index = cursor.number()?;
        if let Some(place) = pick(&self.places, at, index, "location")? {
            return Ok(*place);
        }
        let place = self.line_of(index).unwrap_or_default();
        self.places[index as usize] = Some(place);
        Ok(place)
    }

    /// Follows names and calls to a line. A location that cannot be read is no reason to refuse a program.
    fn line_of(&self, mut index: u64) -> Option<Place> {
        for _ in 0..DEPTH {
            let entry = self.file.attributes.get(usize::try_from(index).ok()?)?;
            if !entry.encoded || entry.dialect != "builtin" {
                return None;
            }
            let mut cursor = entry.content;
            match cursor.number().ok()? {
                builtin::CALL => index = cursor.number().ok()?,
                code @ (builtin::LINE | builtin::LINES) => {
                    cursor.number().ok()?;
                    if code == builtin::LINES {
                        cursor.number().ok()?;
                    }
                    let mut next = || cursor.number().ok().and_then(|n| u32::try_from(n).ok());
                    return Some(Place { line: next()?, column: next()? });
                }
                builtin::FUSED | builtin::FUSED_WITH => {
                    cursor.number().ok()?;
                    index = cursor.number().ok()?;
                }
                builtin::NAMED => {
                    cursor.number().ok()?;
                    index = cursor.number().ok()?;
                }
                _ => return None,
            }
        }
        None
    }
}

fn spend(budget: &mut u64, at: usize, weight: u64) -> Result<()> {
    match budget.checked_sub(weight) {
        Some(left) => {
            *budget = left;
            Ok(())
        }
        None => Err(error(at, "attributes that are used over and over grow far beyond the size of the file")),
    }
}

fn unknown_dialect(cursor: &Cursor, dialect: &str, what: &str) -> Error {
    cursor.error(format!("{what} of the dialect `{dialect}` in an encoding of its own, which is not known here"))
}

/// About how many words an attribute takes.
fn attribute_weight(attribute: &Attribute) -> u64 {
    8 + match attribute {
        Attribute::String(bytes) => bytes.len() as u64 / 8,
        Attribute::Opaque(text) => text.len() as u64 / 8,
        Attribute::Array(items) => items.iter().map(attribute_weight).sum(),
        Attribute::Dictionary(all) | Attribute::Struct(_, all) => {
            all.iter().map(|(name, a)| 4 + name.len() as u64 / 8 + attribute_weight(a)).sum()
        }
        Attribute::Type(ty) => type_weight(ty),
        Attribute::Symbol(names) => names.iter().map(|n| 3 + n.len() as u64 / 8).sum(),
        // Their bytes are shared.
        Attribute::Dense(dense) => dense.ty.dims.len() as u64,
        Attribute::Numbers(_, values) => values.len() as u64,
        Attribute::Unit | Attribute::Bool(_) | Attribute::Integer(..) | Attribute::Float(..) | Attribute::Enum(..) => 0,
    }
}

/// About how many words a type takes.
fn type_weight(ty: &Type) -> u64 {
    8 + match ty {
        Type::Tensor(t) => (t.dims.len() + t.bounds.len()) as u64,
        Type::Tuple(types) => types.iter().map(type_weight).sum(),
        Type::Function(takes, gives) => takes.iter().chain(gives).map(type_weight).sum(),
        Type::Opaque(text) => text.len() as u64 / 8,
        Type::Scalar(_) | Type::Token | Type::None => 0,
    }
}

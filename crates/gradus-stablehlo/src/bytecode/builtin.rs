//! What MLIR itself defines, in its own encoding: lists, dictionaries, texts, numbers, dense arrays, integer, float and tensor types.

use gradus_core::Result;
use smallvec::SmallVec;

use super::cursor::{Cursor, error};
use super::entries::Entries;
use super::sections::pick;
use crate::module::{Attribute, Attributes, Dense, Element, Float, Name, Tensor, Type};
use crate::read::{float_of_bits, known, read_attribute, read_type};

/// The code of a call's location.
pub(super) const CALL: u64 = 10;
/// The code of a line's.
pub(super) const LINE: u64 = 11;
/// The code of several in one.
pub(super) const FUSED: u64 = 12;
/// The same with something said of them.
pub(super) const FUSED_WITH: u64 = 13;
/// The code of one with a name.
pub(super) const NAMED: u64 = 14;
/// The code of a range of columns or lines.
pub(super) const LINES: u64 = 22;

/// Reads an attribute.
pub(super) fn attribute(entries: &mut Entries, cursor: &mut Cursor) -> Result<Attribute> {
    let at = cursor.at();
    Ok(match cursor.number()? {
        0 => Attribute::Array(entries.attributes(cursor)?),
        1 => {
            let count = cursor.count("named attributes")?;
            let pairs = (0..count).map(|_| Ok((known(&entries.text(cursor)?), entries.attribute(cursor)?)));
            Attribute::Dictionary(dictionary(pairs.collect::<Result<_>>()?))
        }
        2 => Attribute::String(entries.file.string(cursor)?.to_vec()),
        3 => {
            let text = entries.file.string(cursor)?.to_vec();
            entries.ty(cursor)?;
            Attribute::String(text)
        }
        4 => Attribute::Symbol(vec![entries.text(cursor)?]),
        5 => {
            let mut path = vec![entries.text(cursor)?];
            for nested in entries.attributes(cursor)? {
                match nested {
                    Attribute::Symbol(names) => path.extend(names),
                    other => return Err(error(at, format!("{other:?} in the path of a symbol"))),
                }
            }
            Attribute::Symbol(path)
        }
        6 => Attribute::Type(entries.ty(cursor)?),
        7 => Attribute::Unit,
        8 => {
            let element = entries.element(cursor)?;
            integer(cursor, element)?
        }
        9 => {
            let element = entries.element(cursor)?;
            float(cursor, element)?
        }
        16 => {
            let tensor = tensor_of(at, entries.ty(cursor)?)?;
            let handle = cursor.at();
            let index = cursor.number()?;
            match pick(&entries.file.resources, handle, index, "resource")? {
                Some(blob) => dense(at, tensor, blob)?,
                None => {
                    return Err(error(at, format!("resource {index} has no content")).help(
                        "the numbers of `dense_resource` were left out when the file was written; write it with them",
                    ));
                }
            }
        }
        17 => {
            let element = entries.element(cursor)?;
            let count = cursor.number()?;
            let length = cursor.number()?;
            let bytes = cursor.bytes(length)?;
            numbers(at, element, count, bytes)?
        }
        18 => {
            let tensor = tensor_of(at, entries.ty(cursor)?)?;
            let length = cursor.number()?;
            dense(at, tensor, cursor.bytes(length)?)?
        }
        CALL..=NAMED | 15 | LINES => return Err(error(at, "a location where an attribute is expected")),
        19 => return Err(error(at, "`dense` of texts, which no operation of StableHLO has")),
        20 => return Err(error(at, "a `sparse` attribute, which no operation of StableHLO has")),
        21 => return Err(error(at, "a `distinct` attribute, which no operation of StableHLO has")),
        code => return Err(error(at, format!("builtin attribute {code}, which is not known here"))),
    })
}

/// Named attributes; of a name that comes twice the last one.
pub(super) fn dictionary(mut pairs: Vec<(Name, Attribute)>) -> Attributes {
    // In the order of names every insertion is at the end.
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    pairs.into_iter().collect()
}

/// Reads a type.
pub(super) fn ty(entries: &mut Entries, cursor: &mut Cursor) -> Result<Type> {
    let at = cursor.at();
    Ok(match cursor.number()? {
        0 => {
            let raw = cursor.number()?;
            integer_type(raw >> 2, raw & 3).ok_or_else(|| error(at, format!("integers of {} bits", raw >> 2)))?
        }
        1 => Type::Scalar(Element::Index),
        2 => Type::Function(entries.types(cursor)?, entries.types(cursor)?),
        3 => Type::Scalar(Element::Float(Float::BF16)),
        4 => Type::Scalar(Element::Float(Float::F16)),
        5 => Type::Scalar(Element::Float(Float::F32)),
        6 => Type::Scalar(Element::Float(Float::F64)),
        9 => complex(entries, cursor)?,
        12 => Type::None,
        13 => tensor(entries, cursor, SmallVec::new())?,
        14 => {
            let encoding = entries.attribute(cursor)?;
            tensor(entries, cursor, bounds(at, encoding)?)?
        }
        15 => Type::Tuple(entries.types(cursor)?),
        21 => Type::Scalar(Element::Float(Float::TF32)),
        22 => Type::Scalar(Element::Float(Float::F8E5M2)),
        23 => Type::Scalar(Element::Float(Float::F8E4M3)),
        24 => Type::Scalar(Element::Float(Float::F8E4M3FN)),
        25 => Type::Scalar(Element::Float(Float::F8E5M2FNUZ)),
        26 => Type::Scalar(Element::Float(Float::F8E4M3FNUZ)),
        27 => Type::Scalar(Element::Float(Float::F8E4M3B11FNUZ)),
        28 => Type::Scalar(Element::Float(Float::F8E3M4)),
        29 => Type::Scalar(Element::Float(Float::F4E2M1FN)),
        30 => Type::Scalar(Element::Float(Float::F6E2M3FN)),
        31 => Type::Scalar(Element::Float(Float::F6E3M2FN)),
        32 => Type::Scalar(Element::Float(Float::F8E8M0FNU)),
        7 => return Err(error(at, "the type `f80`, which StableHLO does not have")),
        8 => return Err(error(at, "the type `f128`, which StableHLO does not have")),
        10 | 11 | 16 | 17 => {
            return Err(error(at, "a `memref` of MLIR: buffers are only read from portable artifacts"));
        }
        18 => return Err(error(at, "a tensor of unknown rank, which StableHLO does not have")),
        19 | 20 => return Err(error(at, "a `vector`, which StableHLO does not have")),
        code => return Err(error(at, format!("builtin type {code}, which is not known here"))),
    })
}

fn integer_type(width: u64, signedness: u64) -> Option<Type> {
    use Element::{I1, I2, I4, I8, I16, I32, I64, U2, U4, U8, U16, U32, U64};
    Some(Type::Scalar(match (signedness, width) {
        (0, 1) => I1,
        (0, 2) => I2,
        (0, 4) => I4,
        (0, 8) => I8,
        (0, 16) => I16,
        (0, 32) => I32,
        (0, 64) => I64,
        (2, 2) => U2,
        (2, 4) => U4,
        (2, 8) => U8,
        (2, 16) => U16,
        (2, 32) => U32,
        (2, 64) => U64,
        // `si32` stands in no tensor of StableHLO, only in attributes of others.
        (1, width) if width <= 64 => return Some(Type::Opaque(format!("si{width}"))),
        _ => return None,
    }))
}

/// A complex type, of the type that follows.
pub(super) fn complex(entries: &mut Entries, cursor: &mut Cursor) -> Result<Type> {
    let at = cursor.at();
    match entries.element(cursor)? {
        Element::Float(part) => Ok(Type::Scalar(Element::Complex(part))),
        other => Err(error(at, format!("complex numbers of {other:?}"))),
    }
}

/// A tensor: its dimensions and the type of its elements follow.
pub(super) fn tensor(entries: &mut Entries, cursor: &mut Cursor, bounds: SmallVec<[Option<u64>; 4]>) -> Result<Type> {
    let at = cursor.at();
    let dims = dimensions(at, &cursor.signed_list()?)?;
    let element = entries.element(cursor)?;
    if !bounds.is_empty() && bounds.len() != dims.len() {
        return Err(error(at, format!("{} bounds of {} dimensions", bounds.len(), dims.len())));
    }
    Ok(Type::Tensor(Tensor { dims, element, bounds }))
}

/// Dimensions: the least number stands for an unknown one.
pub(super) fn dimensions(at: usize, raw: &[i64]) -> Result<SmallVec<[Option<u64>; 4]>> {
    let one = |d: &i64| match *d {
        i64::MIN => Ok(None),
        d => u64::try_from(d).map(Some).map_err(|_| error(at, format!("a dimension of {d}"))),
    };
    raw.iter().map(one).collect()
}

/// The bounds that the encoding of a tensor's type says.
pub(super) fn bounds(at: usize, encoding: Attribute) -> Result<SmallVec<[Option<u64>; 4]>> {
    match encoding {
        Attribute::Struct(kind, fields) if kind == "stablehlo.bounds" => {
            dimensions(at, &fields.integers("bounds").unwrap_or_default())
        }
        other => Err(error(at, format!("a tensor with the encoding {other:?}, which is not known here"))),
    }
}

/// An integer attribute, of which the value follows.
pub(super) fn integer(cursor: &mut Cursor, element: Element) -> Result<Attribute> {
    let width = match element {
        Element::I1 => return Ok(Attribute::Bool(cursor.byte()? & 1 == 1)),
        Element::I2 | Element::U2 => 2,
        Element::I4 | Element::U4 => 4,
        _ => match element.integer_bytes() {
            Some(bytes) => 8 * bytes as u32,
            None => return Err(cursor.error(format!("an integer of the type {element:?}"))),
        },
    };
    let raw = cursor.bits(width)? << (64 - width);
    let value =
        if element.is_signed() { i128::from(raw as i64 >> (64 - width)) } else { i128::from(raw >> (64 - width)) };
    Ok(Attribute::Integer(value, Type::Scalar(element)))
}

/// A float attribute, of which the bits follow.
pub(super) fn float(cursor: &mut Cursor, element: Element) -> Result<Attribute> {
    let Element::Float(format) = element else {
        return Err(cursor.error(format!("a float of the type {element:?}")));
    };
    let at = cursor.at();
    let bits = match format {
        // Written are the 19 bits that it has, which are the upper ones of an `f32`.
        Float::TF32 => cursor.bits(19)?.checked_shl(13).unwrap_or(u64::MAX),
        format => cursor.bits(8 * format.bytes() as u32)?,
    };
    match float_of_bits(bits, format) {
        Some(value) => Ok(Attribute::Float(value, Type::Scalar(element))),
        None => Err(error(at, format!("the bits {bits:#x} are too many for {format:?}"))),
    }
}

/// `array<..>` of integers or booleans.
fn numbers(at: usize, element: Element, count: u64, bytes: &[u8]) -> Result<Attribute> {
    let Some(width) = element.integer_bytes() else {
        return Err(error(at, format!("`array` of {element:?}, which no operation of StableHLO has")));
    };
    let tensor = Tensor::new([count], element.clone());
    if bytes.len() as u64 != count.saturating_mul(width as u64) {
        return Err(error(at, format!("{} bytes for {count} elements of {width}", bytes.len())));
    }
    let values = Dense { ty: tensor, bytes: bytes.into(), splat: false }.integers().unwrap_or_default();
    Ok(Attribute::Numbers(element, values))
}

/// A tensor's type, where one must be.
pub(super) fn tensor_of(at: usize, ty: Type) -> Result<Tensor> {
    match ty {
        Type::Tensor(tensor) => Ok(tensor),
        other => Err(error(at, format!("`dense` of {other:?}, which is no tensor"))),
    }
}

/// The numbers of `dense` from the bytes of a file. There, booleans may be packed eight to a byte, and one element may stand for all.
pub(super) fn dense(at: usize, ty: Tensor, raw: &[u8]) -> Result<Attribute> {
    let Some(count) = ty.count() else {
        return Err(error(at, "`dense` of a tensor whose size is not known"));
    };
    if count == 0 {
        // One element may be there even so, which stands for all of none.
        return Ok(Attribute::Dense(Dense::new(ty, [])));
    }
    let width = ty.element.bytes();
    let wrong = || error(at, format!("{} bytes for {count} elements of {width}", raw.len()));
    if ty.element == Element::I1 {
        let packed = count.div_ceil(8);
        let bytes: Vec<u8> = if raw == [0xff] {
            vec![1]
        } else if raw.len() == packed && raw.len() != count {
            // Bounded by eight times the bytes that are there.
            (0..count).map(|i| raw[i / 8] >> (i % 8) & 1).collect()
        } else if raw.len() == count || raw.len() == 1 {
            raw.iter().map(|b| u8::from(*b != 0)).collect()
        } else {
            return Err(wrong());
        };
        return Ok(Attribute::Dense(Dense::new(ty, bytes)));
    }
    let all = count.checked_mul(width).is_some_and(|n| n == raw.len());
    if !all && raw.len() != width {
        return Err(wrong());
    }
    let narrow: Option<fn(&u8) -> u8> = match ty.element {
        // Elements below a byte are written without their sign.
        Element::I4 => Some(|b| ((b << 4) as i8 >> 4) as u8),
        Element::I2 => Some(|b| ((b << 6) as i8 >> 6) as u8),
        Element::U4 => Some(|b| b & 15),
        Element::U2 => Some(|b| b & 3),
        _ => None,
    };
    Ok(Attribute::Dense(match narrow {
        Some(narrow) => Dense::new(ty, raw.iter().map(narrow).collect::<Vec<_>>()),
        None => Dense::new(ty, raw),
    }))
}

/// An attribute that is written as text.
pub(super) fn attribute_text(cursor: &mut Cursor) -> Result<Attribute> {
    assembly(cursor, "an attribute", read_attribute)
}

/// A type that is written as text: floats that have no code of their own, and types of dialects without an encoding.
pub(super) fn type_text(cursor: &mut Cursor) -> Result<Type> {
    assembly(cursor, "a type", read_type)
}

fn assembly<T>(cursor: &mut Cursor, what: &str, read: fn(&str, &str) -> Result<T>) -> Result<T> {
    let at = cursor.at();
    let text = std::str::from_utf8(cursor.text()?).map_err(|_| error(at, format!("{what} that is no text")))?;
    cursor.finished(what)?;
    read("its text", text).map_err(|e| e.within(format!("byte {at}: {what} is written as `{text}`; ")))
}

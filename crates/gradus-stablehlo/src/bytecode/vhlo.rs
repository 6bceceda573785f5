//! Attributes and types of VHLO, the dialect of portable artifacts, read as what StableHLO has in their place.

use std::sync::Arc;

use gradus_core::Result;

use super::builtin::{self, bounds, complex, dense, dictionary, tensor, tensor_of};
use super::cursor::{Cursor, error};
use super::entries::Entries;
use super::native::{self, record};
use crate::module::{Attribute, Element, Float, Quantized, Type};
use crate::read::known;

/// Reads an attribute.
pub(super) fn attribute(entries: &mut Entries, cursor: &mut Cursor) -> Result<Attribute> {
    let at = cursor.at();
    Ok(match cursor.number()? {
        1 => Attribute::Array(entries.attributes(cursor)?),
        2 => match cursor.number()? {
            bit @ (0 | 1) => Attribute::Bool(bit == 1),
            other => return Err(error(at, format!("the boolean {other}"))),
        },
        3 => native::word(cursor, "stablehlo.comparison_direction", native::DIRECTIONS)?,
        4 => native::word(cursor, "stablehlo.comparison_type", native::COMPARISONS)?,
        // StableHLO has these as plain integers.
        5 => match cursor.number()? {
            version @ 0..=4 => Attribute::Integer(version.into(), Type::Scalar(Element::I32)),
            other => return Err(error(at, format!("version {other} of custom calls"))),
        },
        6 => {
            let count = cursor.count("named attributes")?;
            let pairs = (0..count).map(|_| Ok((known(&entries.text(cursor)?), entries.attribute(cursor)?)));
            Attribute::Dictionary(dictionary(pairs.collect::<Result<_>>()?))
        }
        7 => native::word(cursor, "stablehlo.fft_type", native::TRANSFORMS)?,
        8 => {
            let element = entries.element(cursor)?;
            builtin::float(cursor, element)?
        }
        9 => {
            let element = entries.element(cursor)?;
            builtin::integer(cursor, element)?
        }
        10 => native::alias(cursor)?,
        11 => native::word(cursor, "stablehlo.precision", native::PRECISIONS)?,
        12 => native::word(cursor, "stablehlo.rng_algorithm", native::GENERATORS)?,
        13 => native::word(cursor, "stablehlo.rng_distribution", native::DISTRIBUTIONS)?,
        14 => Attribute::String(entries.file.string(cursor)?.to_vec()),
        15 => {
            let ty = tensor_of(at, entries.ty(cursor)?)?;
            let length = cursor.number()?;
            dense(at, ty, cursor.bytes(length)?)?
        }
        16 => native::word(cursor, "stablehlo.transpose", native::TRANSPOSES)?,
        17 => Attribute::Type(entries.ty(cursor)?),
        18 => record("stablehlo.bounds", [("bounds", Attribute::numbers(cursor.signed_list()?))]),
        19 => native::word(cursor, "stablehlo.result_accuracy_mode", native::MODES)?,
        20 => native::accuracy(entries, cursor)?,
        21 => native::sub_axis(cursor)?,
        22 => {
            let name = entries.text(cursor)?;
            let part = if cursor.number()? == 0 { None } else { Some(entries.attribute(cursor)?) };
            native::axis(at, &name, part)?
        }
        23 => {
            let mesh = match entries.attribute(cursor)? {
                Attribute::String(name) => Attribute::Symbol(vec![
                    String::from_utf8(name).map_err(|_| error(at, "a mesh whose name is no text"))?,
                ]),
                other => other,
            };
            record("stablehlo.replica_group_mesh_axes", [("mesh", mesh), ("axes", entries.attribute(cursor)?)])
        }
        24 => {
            let name = entries.text(cursor)?;
            native::mesh_axis(&name, cursor.signed()?)
        }
        25 => {
            let axes = entries.attribute(cursor)?;
            let devices = cursor.at();
            let (index, there) = cursor.flagged()?;
            let devices = if there { Some(entries.attribute_of(devices, index)?) } else { None };
            native::mesh(at, axes, devices)?
        }
        code => {
            return Err(error(
                at,
                format!("VHLO attribute {code}, which is not known here: the file is newer than this reader"),
            ));
        }
    })
}

/// Reads a type.
pub(super) fn ty(entries: &mut Entries, cursor: &mut Cursor) -> Result<Type> {
    let at = cursor.at();
    let code = cursor.number()?;
    if let Some(element) = element(code) {
        return Ok(Type::Scalar(element));
    }
    Ok(match code {
        1 => complex(entries, cursor)?,
        8 => Type::Function(entries.types(cursor)?, entries.types(cursor)?),
        20 => tensor(entries, cursor, Default::default())?,
        21 => {
            let encoding = entries.attribute(cursor)?;
            tensor(entries, cursor, bounds(at, encoding)?)?
        }
        22 => Type::Token,
        23 => Type::Tuple(entries.types(cursor)?),
        24 => quantized(entries, cursor)?,
        30 => quantized_along(entries, cursor)?,
        33 => Type::None,
        42 => native::future(&entries.types(cursor)?),
        25 => return Err(error(at, "a tensor of unknown rank, which StableHLO does not have")),
        26 => return Err(error(at, "a `shape.witness`, which StableHLO does not have")),
        41 => native::buffer(tensor(entries, cursor, Default::default())?),
        code => {
            return Err(error(
                at,
                format!("VHLO type {code}, which is not known here: the file is newer than this reader"),
            ));
        }
    })
}

fn element(code: u64) -> Option<Element> {
    Some(match code {
        0 => Element::I1,
        2 => Element::Float(Float::BF16),
        3 => Element::Float(Float::F16),
        4 => Element::Float(Float::F32),
        5 => Element::Float(Float::F64),
        6 => Element::Float(Float::F8E4M3FN),
        7 => Element::Float(Float::F8E5M2),
        9 => Element::Index,
        10 => Element::I4,
        11 => Element::I8,
        12 => Element::I16,
        13 => Element::I32,
        14 => Element::I64,
        15 => Element::U4,
        16 => Element::U8,
        17 => Element::U16,
        18 => Element::U32,
        19 => Element::U64,
        27 => Element::Float(Float::F8E4M3FNUZ),
        28 => Element::Float(Float::F8E5M2FNUZ),
        29 => Element::Float(Float::F8E4M3B11FNUZ),
        31 => Element::I2,
        32 => Element::U2,
        34 => Element::Float(Float::TF32),
        35 => Element::Float(Float::F8E4M3),
        36 => Element::Float(Float::F8E3M4),
        37 => Element::Float(Float::F4E2M1FN),
        38 => Element::Float(Float::F6E2M3FN),
        39 => Element::Float(Float::F6E3M2FN),
        40 => Element::Float(Float::F8E8M0FNU),
        _ => return None,
    })
}

/// What stands in front of both kinds of quantized types: the stored integers and the floats they stand for.
fn storage(entries: &mut Entries, cursor: &mut Cursor) -> Result<(Element, Float)> {
    let at = cursor.at();
    let signed = cursor.number()? & 1 == 1;
    let storage = entries.element(cursor)?;
    let storage = match (signed, storage) {
        (true, Element::U4) | (true, Element::I4) => Element::I4,
        (true, Element::U8) | (true, Element::I8) => Element::I8,
        (true, Element::U16) | (true, Element::I16) => Element::I16,
        (true, Element::U32) | (true, Element::I32) => Element::I32,
        (true, Element::U2) | (true, Element::I2) => Element::I2,
        (false, Element::U2) | (false, Element::I2) => Element::U2,
        (false, Element::U4) | (false, Element::I4) => Element::U4,
        (false, Element::U8) | (false, Element::I8) => Element::U8,
        (false, Element::U16) | (false, Element::I16) => Element::U16,
        (false, Element::U32) | (false, Element::I32) => Element::U32,
        (_, other) => return Err(error(at, format!("quantized numbers that are stored as {other:?}"))),
    };
    match entries.element(cursor)? {
        Element::Float(expressed) => Ok((storage, expressed)),
        other => Err(error(at, format!("quantized numbers that stand for {other:?}"))),
    }
}

fn double(cursor: &mut Cursor) -> Result<f64> {
    cursor.bits(64).map(f64::from_bits)
}

/// A quantized type with one scale.
pub(super) fn quantized(entries: &mut Entries, cursor: &mut Cursor) -> Result<Type> {
    let (storage, expressed) = storage(entries, cursor)?;
    let scales = vec![double(cursor)?];
    let zero_points = vec![cursor.signed()?];
    let (storage_min, storage_max) = (cursor.signed()?, cursor.signed()?);
    let quantized = Quantized { storage, expressed, storage_min, storage_max, axis: None, scales, zero_points };
    Ok(Type::Scalar(Element::Quantized(Arc::new(quantized))))
}

/// A quantized type with a scale for each place of an axis.
pub(super) fn quantized_along(entries: &mut Entries, cursor: &mut Cursor) -> Result<Type> {
    let (storage, expressed) = storage(entries, cursor)?;
    let at = cursor.at();
    let axis = Some(usize::try_from(cursor.number()?).map_err(|_| error(at, "an axis that is no axis"))?);
    let (storage_min, storage_max) = (cursor.signed()?, cursor.signed()?);
    let scales = (0..cursor.count("scales")?).map(|_| double(cursor)).collect::<Result<Vec<_>>>()?;
    let zero_points = cursor.signed_list()?;
    if scales.len() != zero_points.len() {
        return Err(error(at, format!("{} scales and {} zero points", scales.len(), zero_points.len())));
    }
    let quantized = Quantized { storage, expressed, storage_min, storage_max, axis, scales, zero_points };
    Ok(Type::Scalar(Element::Quantized(Arc::new(quantized))))
}

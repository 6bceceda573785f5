//! Attributes and types of StableHLO, CHLO and the quantization dialect in their own encodings, and the records that VHLO's become.

use gradus_core::Result;

use super::cursor::{Cursor, error};
use super::entries::Entries;
use super::vhlo;
use crate::module::{Attribute, Element, Float, Name, Type};
use crate::words;

/// The words of a kind of attribute, with their numbers.
pub(super) type Words = &'static [(u64, &'static str)];

pub(super) const DIRECTIONS: Words = &[(0, "EQ"), (1, "NE"), (2, "GE"), (3, "GT"), (4, "LE"), (5, "LT")];
pub(super) const COMPARISONS: Words = &[(0, "NOTYPE"), (1, "FLOAT"), (2, "TOTALORDER"), (3, "SIGNED"), (4, "UNSIGNED")];
pub(super) const TRANSFORMS: Words = &[(0, "FFT"), (1, "IFFT"), (2, "RFFT"), (3, "IRFFT")];
pub(super) const PRECISIONS: Words = &[(0, "DEFAULT"), (1, "HIGH"), (2, "HIGHEST")];
pub(super) const GENERATORS: Words = &[(0, "DEFAULT"), (1, "THREE_FRY"), (2, "PHILOX")];
pub(super) const DISTRIBUTIONS: Words = &[(1, "UNIFORM"), (2, "NORMAL")];
pub(super) const TRANSPOSES: Words = &[(0, "TRANSPOSE_INVALID"), (1, "NO_TRANSPOSE"), (2, "TRANSPOSE"), (3, "ADJOINT")];
pub(super) const MODES: Words = &[(0, "DEFAULT"), (1, "HIGHEST"), (2, "TOLERANCE")];

/// Reads an attribute of StableHLO.
pub(super) fn attribute(entries: &mut Entries, cursor: &mut Cursor) -> Result<Attribute> {
    let at = cursor.at();
    Ok(match cursor.number()? {
        1 => fields(cursor, "stablehlo.channel_handle", &["handle", "type"])?,
        2 => word(cursor, "stablehlo.comparison_direction", DIRECTIONS)?,
        3 => word(cursor, "stablehlo.comparison_type", COMPARISONS)?,
        4 => fields(
            cursor,
            "stablehlo.conv",
            &[
                "input_batch_dimension",
                "input_feature_dimension",
                "input_spatial_dimensions[]",
                "kernel_input_feature_dimension",
                "kernel_output_feature_dimension",
                "kernel_spatial_dimensions[]",
                "output_batch_dimension",
                "output_feature_dimension",
                "output_spatial_dimensions[]",
            ],
        )?,
        5 => fields(
            cursor,
            "stablehlo.dot",
            &[
                "lhs_batching_dimensions[]",
                "rhs_batching_dimensions[]",
                "lhs_contracting_dimensions[]",
                "rhs_contracting_dimensions[]",
            ],
        )?,
        6 => word(cursor, "stablehlo.fft_type", TRANSFORMS)?,
        7 => fields(
            cursor,
            "stablehlo.gather",
            &[
                "offset_dims[]",
                "collapsed_slice_dims[]",
                "operand_batching_dims[]",
                "start_indices_batching_dims[]",
                "start_index_map[]",
                "index_vector_dim",
            ],
        )?,
        8 => word(cursor, "stablehlo.precision", PRECISIONS)?,
        9 => word(cursor, "stablehlo.rng_algorithm", GENERATORS)?,
        10 => word(cursor, "stablehlo.rng_distribution", DISTRIBUTIONS)?,
        11 => fields(
            cursor,
            "stablehlo.scatter",
            &[
                "update_window_dims[]",
                "inserted_window_dims[]",
                "input_batching_dims[]",
                "scatter_indices_batching_dims[]",
                "scatter_dims_to_operand_dims[]",
                "index_vector_dim",
            ],
        )?,
        12 => word(cursor, "stablehlo.transpose", TRANSPOSES)?,
        13 => fields(cursor, "stablehlo.bounds", &["bounds[]"])?,
        14 => alias(cursor)?,
        15 => record(
            "stablehlo.dot_algorithm",
            [
                ("lhs_precision_type", Attribute::Type(entries.ty(cursor)?)),
                ("rhs_precision_type", Attribute::Type(entries.ty(cursor)?)),
                ("accumulation_type", Attribute::Type(entries.ty(cursor)?)),
                ("lhs_component_count", integer(cursor.signed()?)),
                ("rhs_component_count", integer(cursor.signed()?)),
                ("num_primitive_operations", integer(cursor.signed()?)),
                ("allow_imprecise_accumulation", Attribute::Bool(cursor.byte()? != 0)),
            ],
        ),
        16 => word(cursor, "stablehlo.result_accuracy_mode", MODES)?,
        17 => accuracy(entries, cursor)?,
        18 => record(
            "stablehlo.replica_group_mesh_axes",
            [("mesh", entries.attribute(cursor)?), ("axes", Attribute::Array(entries.attributes(cursor)?))],
        ),
        19 => sub_axis(cursor)?,
        20 => {
            let name = name(entries, cursor)?;
            let part = if cursor.byte()? == 0 { None } else { Some(entries.attribute(cursor)?) };
            axis(at, &name, part)?
        }
        21 => {
            let name = name(entries, cursor)?;
            mesh_axis(&name, cursor.signed()?)
        }
        22 => {
            let axes = entries.attribute(cursor)?;
            let devices = if cursor.byte()? == 0 { None } else { Some(entries.attribute(cursor)?) };
            mesh(at, axes, devices)?
        }
        code => return Err(error(at, format!("StableHLO attribute {code}, which is not known here"))),
    })
}

/// Reads an attribute of CHLO.
pub(super) fn chlo_attribute(cursor: &mut Cursor) -> Result<Attribute> {
    let at = cursor.at();
    match cursor.number()? {
        0 => word(cursor, "chlo.comparison_direction", DIRECTIONS),
        1 => word(cursor, "chlo.comparison_type", COMPARISONS),
        code => Err(error(at, format!("CHLO attribute {code}, which is not known here"))),
    }
}

/// Reads a type of StableHLO.
pub(super) fn ty(entries: &mut Entries, cursor: &mut Cursor) -> Result<Type> {
    let at = cursor.at();
    match cursor.number()? {
        0 => Ok(Type::Token),
        1 => Ok(future(&entries.types(cursor)?)),
        code => Err(error(at, format!("StableHLO type {code}, which is not known here"))),
    }
}

/// Reads a type of the quantization dialect.
pub(super) fn quantized_type(entries: &mut Entries, cursor: &mut Cursor) -> Result<Type> {
    let at = cursor.at();
    match cursor.number()? {
        4 => vhlo::quantized(entries, cursor),
        5 => vhlo::quantized_along(entries, cursor),
        code => Err(error(at, format!("quantized type {code}: only `!quant.uniform` is read"))),
    }
}

/// One of a few words.
pub(super) fn word(cursor: &mut Cursor, kind: &'static str, words: Words) -> Result<Attribute> {
    let at = cursor.at();
    let code = cursor.number()?;
    match words.iter().find(|(number, _)| *number == code) {
        Some((_, word)) => Ok(Attribute::Enum(Name::from(kind), Name::from(*word))),
        None => Err(error(at, format!("`{kind}` of number {code}, which is not known here"))),
    }
}

/// A record from its fields.
pub(super) fn record<const N: usize>(kind: &'static str, fields: [(&'static str, Attribute); N]) -> Attribute {
    Attribute::Struct(Name::from(kind), fields.into_iter().map(|(n, a)| (Name::from(n), a)).collect())
}

/// A record of signed numbers, in the order of their names; `[]` behind a name says that it is a list.
fn fields(cursor: &mut Cursor, kind: &'static str, names: &[&'static str]) -> Result<Attribute> {
    let one = |name: &&'static str| {
        Ok(match name.strip_suffix("[]") {
            Some(name) => (Name::from(name), Attribute::numbers(cursor.signed_list()?)),
            None => (Name::from(*name), integer(cursor.signed()?)),
        })
    };
    let fields = names.iter().map(one).collect::<Result<_>>()?;
    Ok(Attribute::Struct(Name::from(kind), fields))
}

/// An integer of 64 bits, as records have it.
pub(super) fn integer(value: i64) -> Attribute {
    Attribute::Integer(value.into(), Type::Scalar(Element::I64))
}

/// Which result is which operand.
pub(super) fn alias(cursor: &mut Cursor) -> Result<Attribute> {
    let names = ["output_tuple_indices[]", "operand_index", "operand_tuple_indices[]"];
    fields(cursor, "stablehlo.output_operand_alias", &names)
}

/// How exact a result must be.
pub(super) fn accuracy(entries: &mut Entries, cursor: &mut Cursor) -> Result<Attribute> {
    let mut tolerance = || -> Result<Attribute> {
        let value = f64::from_bits(cursor.bits(64)?);
        Ok(Attribute::Float(value, Type::Scalar(Element::Float(Float::F64))))
    };
    let (atol, rtol) = (tolerance()?, tolerance()?);
    let ulps = integer(cursor.signed()?);
    let mode = entries.attribute(cursor)?;
    Ok(record("stablehlo.result_accuracy", [("atol", atol), ("rtol", rtol), ("ulps", ulps), ("mode", mode)]))
}

fn name(entries: &Entries, cursor: &mut Cursor) -> Result<String> {
    Ok(String::from_utf8_lossy(entries.file.string(cursor)?).into_owned())
}

/// A part of an axis of a mesh, as text writes it: `(1)2`.
pub(super) fn sub_axis(cursor: &mut Cursor) -> Result<Attribute> {
    Ok(Attribute::Opaque(format!("stablehlo.sub_axis_info<({}){}>", cursor.signed()?, cursor.signed()?)))
}

/// An axis of a mesh that is named, or a part of it, as text writes it.
pub(super) fn axis(at: usize, name: &str, part: Option<Attribute>) -> Result<Attribute> {
    let part = match part {
        None => String::new(),
        Some(Attribute::Opaque(text)) => {
            match text.strip_prefix("stablehlo.sub_axis_info<").and_then(|t| t.strip_suffix('>')) {
                Some(part) => format!(", sub_axis_info = {part}"),
                None => return Err(error(at, format!("`{text}` where a part of an axis is expected"))),
            }
        }
        Some(other) => return Err(error(at, format!("{other:?} where a part of an axis is expected"))),
    };
    Ok(Attribute::Opaque(format!("stablehlo.axis_ref<name = {name:?}{part}>")))
}

/// An axis of a mesh with its size.
pub(super) fn mesh_axis(name: &str, size: i64) -> Attribute {
    record("stablehlo.mesh_axis", [("name", Attribute::of_text(name)), ("size", integer(size))])
}

/// A mesh, as text writes it.
pub(super) fn mesh(at: usize, axes: Attribute, devices: Option<Attribute>) -> Result<Attribute> {
    let Attribute::Array(axes) = axes else {
        return Err(error(at, format!("a mesh whose axes are {axes:?}")));
    };
    let axis = |axis: &Attribute| match axis {
        Attribute::Struct(_, fields) => {
            Some(format!("#stablehlo.mesh_axis<name = {:?}, size = {}>", fields.text("name")?, fields.integer("size")?))
        }
        _ => None,
    };
    let Some(axes) = axes.iter().map(axis).collect::<Option<Vec<_>>>() else {
        return Err(error(at, "a mesh whose axes are no axes"));
    };
    let devices = match devices.map(|d| d.integers()) {
        None => String::new(),
        Some(Some(devices)) => format!(", device_ids = dense<{devices:?}> : tensor<{}xi64>", devices.len()),
        Some(None) => return Err(error(at, "a mesh whose devices are no numbers")),
    };
    Ok(Attribute::Opaque(format!("stablehlo.mesh<axes = [{}]{devices}>", axes.join(", "))))
}

/// What an operation that was only started will give, as text writes it.
pub(super) fn future(types: &[Type]) -> Type {
    let texts: Vec<String> = types.iter().map(words::of_type).collect();
    Type::Opaque(format!("stablehlo.future<{}>", texts.join(", ")))
}

/// A buffer, as text writes it, from the tensor of the same shape.
pub(super) fn buffer(tensor: Type) -> Type {
    Type::Opaque(words::of_type(&tensor).replacen("tensor", "memref", 1))
}

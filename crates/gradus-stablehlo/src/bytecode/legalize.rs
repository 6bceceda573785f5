//! Attributes of VHLO's operations as StableHLO has them: records put together from their parts, lists of integers as arrays, and defaults left out.
//!
//! VHLO says everything, also what is not said in StableHLO because it is the default. That is taken away here, so that a program gives the same tree from
//! bytecode as from text. Older versions of an operation differ from the newest one in what they do not say, which is a default as well.

use gradus_core::Result;

use super::cursor::error;
use super::native::{integer, record};
use crate::module::{Attribute, Attributes, Element, Type};

/// Turns the attributes of VHLO's operation into those of the StableHLO operation `name`.
pub(super) fn legalize(at: usize, name: &str, mut all: Attributes) -> Result<Attributes> {
    let Some(short) = name.strip_prefix("stablehlo.") else {
        if name == "func.call" {
            symbol(at, &mut all, "callee")?;
        }
        return Ok(all);
    };
    match short {
        "all_gather"
        | "all_reduce"
        | "all_to_all"
        | "collective_broadcast"
        | "collective_permute"
        | "collective_reduce"
        | "reduce_scatter" => {
            if let Some(id) = all.remove("channel_id").and_then(|id| id.integer()).filter(|id| *id != 0) {
                all.set(
                    "channel_handle",
                    record("stablehlo.channel_handle", [("handle", integer(id)), ("type", integer(0))]),
                );
            }
            flag(&mut all, "use_global_device_ids");
            flag(&mut all, "has_dynamic_root");
        }
        "broadcast" => arrays(at, &mut all, &["broadcast_sizes"])?,
        "broadcast_in_dim" => arrays(at, &mut all, &["broadcast_dimensions"])?,
        "cholesky" => drop_if(&mut all, "lower", is_false),
        "compare" => drop_if(&mut all, "compare_type", |a| is_word(a, "NOTYPE")),
        "composite" => {
            drop_if(&mut all, "version", |a| a.integer() == Some(0));
            drop_if(&mut all, "composite_attributes", is_empty);
            symbol(at, &mut all, "decomposition")?;
        }
        "convolution" | "dynamic_conv" => convolution(at, short, &mut all)?,
        "custom_call" => custom_call(at, &mut all)?,
        "dot" => drop_if(&mut all, "precision_config", is_default_precision),
        "dot_general" => dot_general(at, &mut all)?,
        "dynamic_broadcast_in_dim" => {
            let known = ["known_expanding_dimensions", "known_nonexpanding_dimensions"];
            arrays(at, &mut all, &known)?;
            arrays(at, &mut all, &["broadcast_dimensions"])?;
            known.iter().for_each(|name| drop_if(&mut all, name, is_empty));
        }
        "dynamic_slice" => arrays(at, &mut all, &["slice_sizes"])?,
        "fft" => arrays(at, &mut all, &["fft_length"])?,
        "gather" | "dynamic_gather" => {
            let lists = [
                "offset_dims",
                "collapsed_slice_dims",
                "operand_batching_dims",
                "start_indices_batching_dims",
                "start_index_map",
            ];
            implode(at, &mut all, "dimension_numbers", "stablehlo.gather", &lists, &["index_vector_dim"])?;
            drop_if(&mut all, "indices_are_sorted", is_false);
            if short == "gather" {
                arrays(at, &mut all, &["slice_sizes"])?;
            }
        }
        "infeed" => {
            drop_if(&mut all, "infeed_config", is_empty);
            drop_if(&mut all, "layout", is_empty);
        }
        "outfeed" => drop_if(&mut all, "outfeed_config", is_empty),
        "map" | "reduce" | "reverse" => arrays(at, &mut all, &["dimensions"])?,
        "pad" => arrays(at, &mut all, &["edge_padding_low", "edge_padding_high", "interior_padding"])?,
        "recv" | "send" => {
            let (id, kind) = (number(at, &mut all, "channel_id")?, number(at, &mut all, "channel_type")?);
            all.set("channel_handle", record("stablehlo.channel_handle", [("handle", id), ("type", kind)]));
            drop_if(&mut all, "is_host_transfer", is_false);
            drop_if(&mut all, "source_target_pairs", is_empty);
        }
        "reduce_window" => {
            drop_if(&mut all, "padding", |a| is_all(a, 0));
            for name in ["window_strides", "base_dilations", "window_dilations"] {
                drop_if(&mut all, name, |a| is_all(a, 1));
            }
            arrays(at, &mut all, &["window_dimensions", "window_strides", "base_dilations", "window_dilations"])?;
        }
        "scatter" => {
            let lists = [
                "update_window_dims",
                "inserted_window_dims",
                "input_batching_dims",
                "scatter_indices_batching_dims",
                "scatter_dims_to_operand_dims",
            ];
            implode(at, &mut all, "scatter_dimension_numbers", "stablehlo.scatter", &lists, &["index_vector_dim"])?;
            drop_if(&mut all, "indices_are_sorted", is_false);
            drop_if(&mut all, "unique_indices", is_false);
        }
        "select_and_scatter" => {
            drop_if(&mut all, "padding", |a| is_all(a, 0));
            drop_if(&mut all, "window_strides", |a| is_all(a, 1));
            arrays(at, &mut all, &["window_dimensions", "window_strides"])?;
        }
        "slice" => arrays(at, &mut all, &["start_indices", "limit_indices", "strides"])?,
        "sort" => {
            drop_if(&mut all, "dimension", |a| a.integer() == Some(-1));
            drop_if(&mut all, "is_stable", is_false);
        }
        "transpose" => arrays(at, &mut all, &["permutation"])?,
        _ => drop_if(&mut all, "result_accuracy", is_default_accuracy),
    }
    Ok(all)
}

fn convolution(at: usize, name: &str, all: &mut Attributes) -> Result<()> {
    let lists = ["input_spatial_dimensions", "kernel_spatial_dimensions", "output_spatial_dimensions"];
    let numbers = [
        "input_batch_dimension",
        "input_feature_dimension",
        "kernel_input_feature_dimension",
        "kernel_output_feature_dimension",
        "output_batch_dimension",
        "output_feature_dimension",
    ];
    implode(at, all, "dimension_numbers", "stablehlo.conv", &lists, &numbers)?;
    for name in ["window_strides", "lhs_dilation", "rhs_dilation"] {
        drop_if(all, name, |a| is_all(a, 1));
    }
    drop_if(all, "window_reversal", |a| is_all(a, 0));
    // Version 1 of the dynamic one had a padding that nothing used: its operand says it.
    drop_if(all, "padding", |a| name == "dynamic_conv" || is_all(a, 0));
    drop_if(all, "precision_config", is_default_precision);
    arrays(at, all, &["window_strides", "lhs_dilation", "rhs_dilation", "window_reversal"])
}

fn custom_call(at: usize, all: &mut Attributes) -> Result<()> {
    drop_if(all, "has_side_effect", is_false);
    drop_if(all, "backend_config", is_empty);
    drop_if(all, "api_version", |a| a.integer() == Some(1));
    drop_if(all, "output_operand_aliases", is_empty);
    drop_if(all, "result_tilings", is_empty);
    drop_if(all, "called_computations", is_empty);
    let layouts = ["operand_layouts", "result_layouts"];
    if layouts.iter().all(|name| all.get(name).is_none_or(is_empty)) {
        layouts.iter().for_each(|name| drop(all.remove(name)));
    }
    if let Some(Attribute::Array(names)) = all.remove("called_computations") {
        let symbols = names.into_iter().map(|n| to_symbol(at, n)).collect::<Result<_>>()?;
        all.set("called_computations", Attribute::Array(symbols));
    }
    Ok(())
}

fn dot_general(at: usize, all: &mut Attributes) -> Result<()> {
    let lists = [
        "lhs_batching_dimensions",
        "rhs_batching_dimensions",
        "lhs_contracting_dimensions",
        "rhs_contracting_dimensions",
    ];
    implode(at, all, "dot_dimension_numbers", "stablehlo.dot", &lists, &[])?;
    drop_if(all, "precision_config", is_default_precision);
    let parts = [
        "lhs_precision_type",
        "rhs_precision_type",
        "accumulation_type",
        "lhs_component_count",
        "rhs_component_count",
        "num_primitive_operations",
        "allow_imprecise_accumulation",
    ];
    let found: Vec<_> = parts.iter().filter_map(|name| all.remove(name).map(|a| (*name, a))).collect();
    let said: Vec<_> = found.into_iter().filter(|(_, a)| *a != Attribute::Type(Type::None)).collect();
    match said.len() {
        0 => {}
        n if n == parts.len() => {
            let fields = said.into_iter().map(|(n, a)| (n.into(), a)).collect();
            all.set("algorithm", Attribute::Struct("stablehlo.dot_algorithm".into(), fields));
        }
        _ => return Err(error(at, "an algorithm of `dot_general` of which only a part is said")),
    }
    Ok(())
}

/// Puts a record together from lists and numbers. A list that an older version does not have is empty.
fn implode(
    at: usize,
    all: &mut Attributes,
    into: &'static str,
    kind: &'static str,
    lists: &[&'static str],
    numbers: &[&'static str],
) -> Result<()> {
    let mut fields = Attributes::default();
    for name in lists {
        let values = match all.remove(name) {
            Some(list) => list.integers().ok_or_else(|| error(at, format!("`{name}` is no list of integers")))?,
            None => Vec::new(),
        };
        fields.set(*name, Attribute::numbers(values));
    }
    for name in numbers {
        fields.set(*name, number(at, all, name)?);
    }
    all.set(into, Attribute::Struct(kind.into(), fields));
    Ok(())
}

fn number(at: usize, all: &mut Attributes, name: &str) -> Result<Attribute> {
    match all.remove(name).and_then(|a| a.integer()) {
        Some(value) => Ok(integer(value)),
        None => Err(error(at, format!("the integer `{name}` is missing"))),
    }
}

/// Tensors of integers or booleans that StableHLO has as arrays.
fn arrays(at: usize, all: &mut Attributes, names: &[&'static str]) -> Result<()> {
    for name in names {
        if let Some(tensor) = all.remove(name) {
            let element = match &tensor {
                Attribute::Dense(dense) if dense.ty.element == Element::I1 => Element::I1,
                _ => Element::I64,
            };
            let values = tensor.integers().ok_or_else(|| error(at, format!("`{name}` is no list of integers")))?;
            all.set(*name, Attribute::Numbers(element, values));
        }
    }
    Ok(())
}

/// A boolean that StableHLO has as something that is there or not.
fn flag(all: &mut Attributes, name: &'static str) {
    if let Some(Attribute::Bool(said)) = all.get(name) {
        if *said {
            all.set(name, Attribute::Unit);
        } else {
            all.remove(name);
        }
    }
}

/// A text that StableHLO has as the name of a function.
fn symbol(at: usize, all: &mut Attributes, name: &'static str) -> Result<()> {
    if let Some(text) = all.remove(name) {
        all.set(name, to_symbol(at, text)?);
    }
    Ok(())
}

fn to_symbol(at: usize, text: Attribute) -> Result<Attribute> {
    match text.text() {
        Some(name) => Ok(Attribute::Symbol(vec![name.to_owned()])),
        None => Err(error(at, format!("{text:?} where the name of a function is expected"))),
    }
}

fn drop_if(all: &mut Attributes, name: &str, default: impl Fn(&Attribute) -> bool) {
    if all.get(name).is_some_and(default) {
        all.remove(name);
    }
}

fn is_false(a: &Attribute) -> bool {
    *a == Attribute::Bool(false)
}

fn is_word(a: &Attribute, word: &str) -> bool {
    matches!(a, Attribute::Enum(_, w) if w == word)
}

fn is_empty(a: &Attribute) -> bool {
    match a {
        Attribute::String(text) => text.is_empty(),
        Attribute::Array(items) => items.is_empty(),
        Attribute::Dictionary(all) => all.is_empty(),
        Attribute::Numbers(_, values) => values.is_empty(),
        Attribute::Dense(dense) => dense.bytes.is_empty(),
        _ => false,
    }
}

/// Whether a tensor has this number in every place, and a place.
fn is_all(a: &Attribute, value: i64) -> bool {
    a.integers().is_some_and(|all| !all.is_empty() && all.iter().all(|v| *v == value))
}

fn is_default_precision(a: &Attribute) -> bool {
    matches!(a, Attribute::Array(items) if items.iter().all(|a| is_word(a, "DEFAULT")))
}

fn is_default_accuracy(a: &Attribute) -> bool {
    let Attribute::Struct(_, fields) = a else { return false };
    let zero = |name: &str| matches!(fields.get(name), Some(Attribute::Float(v, _)) if *v == 0.0);
    zero("atol")
        && zero("rtol")
        && fields.integer("ulps") == Some(0)
        && fields.get("mode").is_some_and(|m| is_word(m, "DEFAULT"))
}

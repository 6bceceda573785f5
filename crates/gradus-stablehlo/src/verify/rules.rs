//! The table `operation → how many operands, results and regions it has, and the rule of its types`, and the rules of what works element by element.

use gradus_core::error::Result;

use super::{At, Dims, arrays, control, either, products, same_dims, same_element, windows};
use crate::module::{Attribute, Element, Tensor, Type};
use crate::words;

/// A rule of types.
type Rule = fn(&At<'_>) -> Result<()>;

/// How many there may be: from, to.
type Count = (usize, usize);

const ANY: Count = (0, usize::MAX);
const NO: Count = (0, 0);
const ONE: Count = (1, 1);
const TWO: Count = (2, 2);
const THREE: Count = (3, 3);
const SOME: Count = (1, usize::MAX);

/// Which elements an operation takes.
#[derive(Clone, Copy)]
pub(super) struct Takes(u8);

const BOOL: u8 = 1;
const INT: u8 = 2;
const FLOAT: u8 = 4;
const COMPLEX: u8 = 8;
const QUANT: u8 = 16;

fn kind(element: &Element) -> u8 {
    match element {
        Element::I1 => BOOL,
        Element::Float(_) => FLOAT,
        Element::Complex(_) => COMPLEX,
        Element::Quantized(_) => QUANT,
        _ => INT,
    }
}

/// Operations whose operands and result have one type, with the elements they take.
const ELEMENTWISE: &[(&str, usize, Takes)] = &[
    ("stablehlo.add", 2, Takes(BOOL | INT | FLOAT | COMPLEX | QUANT)),
    ("stablehlo.and", 2, Takes(BOOL | INT)),
    ("stablehlo.atan2", 2, Takes(FLOAT | COMPLEX | QUANT)),
    ("stablehlo.cbrt", 1, Takes(FLOAT | COMPLEX | QUANT)),
    ("stablehlo.ceil", 1, Takes(FLOAT | QUANT)),
    ("stablehlo.cosine", 1, Takes(FLOAT | COMPLEX | QUANT)),
    ("stablehlo.count_leading_zeros", 1, Takes(INT)),
    ("stablehlo.divide", 2, Takes(INT | FLOAT | COMPLEX | QUANT)),
    ("stablehlo.exponential", 1, Takes(FLOAT | COMPLEX | QUANT)),
    ("stablehlo.exponential_minus_one", 1, Takes(FLOAT | COMPLEX | QUANT)),
    ("stablehlo.floor", 1, Takes(FLOAT | QUANT)),
    ("stablehlo.log", 1, Takes(FLOAT | COMPLEX | QUANT)),
    ("stablehlo.log_plus_one", 1, Takes(FLOAT | COMPLEX | QUANT)),
    ("stablehlo.logistic", 1, Takes(FLOAT | COMPLEX | QUANT)),
    ("stablehlo.maximum", 2, Takes(BOOL | INT | FLOAT | COMPLEX | QUANT)),
    ("stablehlo.minimum", 2, Takes(BOOL | INT | FLOAT | COMPLEX | QUANT)),
    ("stablehlo.multiply", 2, Takes(BOOL | INT | FLOAT | COMPLEX | QUANT)),
    ("stablehlo.negate", 1, Takes(INT | FLOAT | COMPLEX | QUANT)),
    ("stablehlo.not", 1, Takes(BOOL | INT)),
    ("stablehlo.or", 2, Takes(BOOL | INT)),
    ("stablehlo.popcnt", 1, Takes(INT)),
    ("stablehlo.power", 2, Takes(INT | FLOAT | COMPLEX | QUANT)),
    ("stablehlo.reduce_precision", 1, Takes(FLOAT | QUANT)),
    ("stablehlo.remainder", 2, Takes(INT | FLOAT | COMPLEX | QUANT)),
    ("stablehlo.round_nearest_afz", 1, Takes(FLOAT | QUANT)),
    ("stablehlo.round_nearest_even", 1, Takes(FLOAT | QUANT)),
    ("stablehlo.rsqrt", 1, Takes(FLOAT | COMPLEX | QUANT)),
    ("stablehlo.shift_left", 2, Takes(INT)),
    ("stablehlo.shift_right_arithmetic", 2, Takes(INT)),
    ("stablehlo.shift_right_logical", 2, Takes(INT)),
    ("stablehlo.sign", 1, Takes(INT | FLOAT | COMPLEX | QUANT)),
    ("stablehlo.sine", 1, Takes(FLOAT | COMPLEX | QUANT)),
    ("stablehlo.sqrt", 1, Takes(FLOAT | COMPLEX | QUANT)),
    ("stablehlo.subtract", 2, Takes(INT | FLOAT | COMPLEX | QUANT)),
    ("stablehlo.tan", 1, Takes(FLOAT | COMPLEX | QUANT)),
    ("stablehlo.tanh", 1, Takes(FLOAT | COMPLEX | QUANT)),
    ("stablehlo.xor", 2, Takes(BOOL | INT)),
    ("chlo.acos", 1, Takes(FLOAT | COMPLEX)),
    ("chlo.acosh", 1, Takes(FLOAT | COMPLEX)),
    ("chlo.asin", 1, Takes(FLOAT | COMPLEX)),
    ("chlo.asinh", 1, Takes(FLOAT | COMPLEX)),
    ("chlo.atan", 1, Takes(FLOAT | COMPLEX)),
    ("chlo.atanh", 1, Takes(FLOAT | COMPLEX)),
    ("chlo.bessel_i1e", 1, Takes(FLOAT | COMPLEX)),
    ("chlo.cosh", 1, Takes(FLOAT | COMPLEX)),
    ("chlo.digamma", 1, Takes(FLOAT)),
    ("chlo.erf", 1, Takes(FLOAT)),
    ("chlo.erf_inv", 1, Takes(FLOAT)),
    ("chlo.erfc", 1, Takes(FLOAT)),
    ("chlo.lgamma", 1, Takes(FLOAT)),
    ("chlo.mulhi", 2, Takes(INT)),
    ("chlo.next_after", 2, Takes(FLOAT)),
    ("chlo.polygamma", 2, Takes(FLOAT)),
    ("chlo.sinh", 1, Takes(FLOAT | COMPLEX)),
    ("chlo.square", 1, Takes(FLOAT | COMPLEX)),
    ("chlo.tan", 1, Takes(FLOAT | COMPLEX)),
    ("chlo.zeta", 2, Takes(FLOAT)),
];

/// All other operations: operands, results, regions, rule.
const OTHERS: &[(&str, Count, Count, Count, Rule)] = &[
    ("stablehlo.abs", ONE, ONE, NO, part),
    ("stablehlo.real", ONE, ONE, NO, part),
    ("stablehlo.imag", ONE, ONE, NO, part),
    ("stablehlo.complex", TWO, ONE, NO, complex),
    ("stablehlo.convert", ONE, ONE, NO, same_shape),
    ("stablehlo.uniform_quantize", ONE, ONE, NO, same_shape),
    ("stablehlo.uniform_dequantize", ONE, ONE, NO, same_shape),
    ("stablehlo.is_finite", ONE, ONE, NO, predicate),
    ("chlo.is_inf", ONE, ONE, NO, predicate),
    ("chlo.is_neg_inf", ONE, ONE, NO, predicate),
    ("chlo.is_pos_inf", ONE, ONE, NO, predicate),
    ("stablehlo.compare", TWO, ONE, NO, compare),
    ("stablehlo.select", THREE, ONE, NO, select),
    ("stablehlo.clamp", THREE, ONE, NO, clamp),
    ("stablehlo.constant", NO, ONE, NO, constant),
    ("stablehlo.optimization_barrier", ANY, ANY, NO, pairwise),
    ("stablehlo.bitcast_convert", ONE, ONE, NO, arrays::bitcast),
    ("stablehlo.broadcast", ONE, ONE, NO, arrays::broadcast),
    ("stablehlo.broadcast_in_dim", ONE, ONE, NO, arrays::broadcast_in_dim),
    ("stablehlo.dynamic_broadcast_in_dim", TWO, ONE, NO, arrays::broadcast_in_dim),
    ("stablehlo.concatenate", SOME, ONE, NO, arrays::concatenate),
    ("stablehlo.dynamic_iota", ONE, ONE, NO, arrays::iota),
    ("stablehlo.iota", NO, ONE, NO, arrays::iota),
    ("stablehlo.dynamic_reshape", TWO, ONE, NO, arrays::reshape),
    ("stablehlo.reshape", ONE, ONE, NO, arrays::reshape),
    ("stablehlo.dynamic_slice", SOME, ONE, NO, arrays::dynamic_slice),
    ("stablehlo.dynamic_update_slice", (2, usize::MAX), ONE, NO, arrays::dynamic_update_slice),
    ("stablehlo.real_dynamic_slice", (4, 4), ONE, NO, arrays::same_rank),
    ("stablehlo.dynamic_pad", (5, 5), ONE, NO, arrays::same_rank),
    ("stablehlo.get_dimension_size", ONE, ONE, NO, arrays::get_dimension_size),
    ("stablehlo.set_dimension_size", TWO, ONE, NO, arrays::set_dimension_size),
    ("stablehlo.pad", TWO, ONE, NO, arrays::pad),
    ("stablehlo.reverse", ONE, ONE, NO, arrays::reverse),
    ("stablehlo.slice", ONE, ONE, NO, arrays::slice),
    ("stablehlo.transpose", ONE, ONE, NO, arrays::transpose),
    ("stablehlo.gather", TWO, ONE, NO, arrays::gather),
    ("stablehlo.dynamic_gather", THREE, ONE, NO, arrays::gather),
    ("stablehlo.scatter", THREE_OR_MORE, SOME, ONE, arrays::scatter),
    ("stablehlo.sort", SOME, SOME, ONE, control::sort),
    ("chlo.top_k", ONE, TWO, NO, arrays::top_k),
    ("stablehlo.dot_general", TWO, ONE, NO, products::dot_general),
    ("stablehlo.dot", TWO, ONE, NO, products::dot),
    ("stablehlo.convolution", TWO, ONE, NO, products::convolution),
    ("stablehlo.dynamic_conv", THREE, ONE, NO, products::convolution),
    ("stablehlo.cholesky", ONE, ONE, NO, products::cholesky),
    ("stablehlo.triangular_solve", TWO, ONE, NO, products::triangular_solve),
    ("stablehlo.fft", ONE, ONE, NO, products::fft),
    ("stablehlo.batch_norm_grad", (5, 5), THREE, NO, products::batch_norm),
    ("stablehlo.batch_norm_inference", (5, 5), ONE, NO, products::batch_norm),
    ("stablehlo.batch_norm_training", THREE, THREE, NO, products::batch_norm),
    ("stablehlo.reduce", (2, usize::MAX), SOME, ONE, windows::reduce),
    ("stablehlo.reduce_window", (2, usize::MAX), SOME, ONE, windows::reduce_window),
    ("stablehlo.select_and_scatter", THREE, ONE, TWO, windows::select_and_scatter),
    ("stablehlo.if", ONE, ANY, TWO, control::branches),
    ("stablehlo.case", ONE, ANY, SOME, control::branches),
    ("stablehlo.while", ANY, ANY, TWO, control::while_loop),
    ("stablehlo.map", SOME, ONE, ONE, control::map),
    ("stablehlo.all_reduce", SOME, SOME, ONE, control::all_reduce),
    ("stablehlo.all_gather", SOME, SOME, NO, control::along),
    ("stablehlo.all_to_all", SOME, SOME, NO, control::along),
    ("stablehlo.reduce_scatter", ONE, ONE, ONE, control::along),
    ("stablehlo.collective_permute", ANY, ANY, NO, pairwise),
    ("stablehlo.collective_broadcast", SOME, SOME, NO, control::along),
    ("stablehlo.partition_id", NO, ONE, NO, nothing),
    ("stablehlo.replica_id", NO, ONE, NO, nothing),
    ("stablehlo.rng", THREE, ONE, NO, control::rng),
    ("stablehlo.rng_bit_generator", ONE, TWO, NO, control::rng_bit_generator),
    ("stablehlo.tuple", ANY, ONE, NO, control::tuple),
    ("stablehlo.get_tuple_element", ONE, ONE, NO, control::get_tuple_element),
    ("stablehlo.after_all", ANY, ONE, NO, nothing),
    ("stablehlo.create_token", NO, ONE, NO, nothing),
    ("stablehlo.infeed", ONE, SOME, NO, nothing),
    ("stablehlo.outfeed", SOME, ONE, NO, nothing),
    ("stablehlo.send", SOME, ONE, NO, nothing),
    ("stablehlo.recv", ONE, SOME, NO, nothing),
    ("stablehlo.custom_call", ANY, ANY, NO, control::custom_call),
    ("stablehlo.composite", ANY, ANY, ANY, control::composite),
    ("stablehlo.return", ANY, NO, NO, nothing),
    ("func.return", ANY, NO, NO, nothing),
    ("func.call", ANY, ANY, NO, control::call),
    ("chlo.scan", SOME, SOME, ONE, nothing),
    ("check.expect_eq", TWO, NO, NO, nothing),
    ("check.expect_close", TWO, NO, NO, nothing),
    ("check.expect_almost_eq", TWO, NO, NO, nothing),
    ("check.expect_eq_const", ONE, NO, NO, constant_operand),
    ("check.expect_almost_eq_const", ONE, NO, NO, constant_operand),
];

const THREE_OR_MORE: Count = (3, usize::MAX);

/// Checks one operation.
pub(super) fn check(at: &At<'_>) -> Result<()> {
    let name = &*at.operation.name;
    if let Some((_, count, takes)) = table().elementwise(name) {
        counts(at, (*count, *count), ONE, NO)?;
        return elementwise(at, *takes);
    }
    match table().other(name) {
        Some((_, operands, results, regions, rule)) => {
            counts(at, *operands, *results, *regions)?;
            rule(at)
        }
        None if name.starts_with("stablehlo.") && !REMOVED.contains(&name) => {
            Err(at.wrong("there is no such operation"))
        }
        None => Ok(()),
    }
}

/// Operations of older versions, which have no rule here.
const REMOVED: &[&str] = &[
    "stablehlo.einsum",
    "stablehlo.unary_einsum",
    "stablehlo.torch_index_select",
    "stablehlo.cross-replica-sum",
    "stablehlo.trace",
    "stablehlo.compute_reshape_shape",
    "stablehlo.cstr_reshapable",
    "stablehlo.collective_reduce",
    "stablehlo.async_start",
    "stablehlo.async_done",
];

/// The tables by name.
struct Table {
    elementwise: rustc_hash::FxHashMap<&'static str, &'static (&'static str, usize, Takes)>,
    others: rustc_hash::FxHashMap<&'static str, &'static (&'static str, Count, Count, Count, Rule)>,
}

impl Table {
    fn elementwise(&self, name: &str) -> Option<&'static (&'static str, usize, Takes)> {
        self.elementwise.get(name).copied()
    }

    fn other(&self, name: &str) -> Option<&'static (&'static str, Count, Count, Count, Rule)> {
        self.others.get(name).copied()
    }
}

fn table() -> &'static Table {
    static TABLE: std::sync::OnceLock<Table> = std::sync::OnceLock::new();
    TABLE.get_or_init(|| Table {
        elementwise: ELEMENTWISE.iter().map(|row| (row.0, row)).collect(),
        others: OTHERS.iter().map(|row| (row.0, row)).collect(),
    })
}

fn counts(at: &At<'_>, operands: Count, results: Count, regions: Count) -> Result<()> {
    let o = at.operation;
    for (is, (least, most), what) in [
        (o.operands.len(), operands, "operand"),
        (o.results.len(), results, "result"),
        (o.regions.len(), regions, "region"),
    ] {
        at.holds(is >= least && is <= most, || {
            let wanted = match (least, most) {
                (a, b) if a == b => a.to_string(),
                (a, usize::MAX) => format!("at least {a}"),
                (a, b) => format!("{a} to {b}"),
            };
            format!("it has {} where {wanted} is wanted", gradus_core::error::counted(is, what))
        })?;
    }
    Ok(())
}

/// Operands and result have one shape and one element.
fn elementwise(at: &At<'_>, takes: Takes) -> Result<()> {
    let first = at.tensor(0)?;
    at.holds(kind(&first.element) & takes.0 != 0, || format!("it does not take {}", words::of_tensor(first)))?;
    let mut dims: Dims = first.dims.to_vec();
    for i in 1..at.operand_count() {
        let other = at.tensor(i)?;
        // Quantized operands may have different scales, and some differ in what is stored.
        let both = matches!((&first.element, &other.element), (Element::Quantized(_), Element::Quantized(_)));
        at.holds(same_dims(&dims, &other.dims) && (both || first.element == other.element), || {
            format!("operands 1 and {} are {} and {}", i + 1, words::of_tensor(first), words::of_tensor(other))
        })?;
        dims = dims.iter().zip(&other.dims).map(|(a, b)| either(*a, *b)).collect();
    }
    let result = at.result_tensor(0)?;
    let element =
        if kind(&first.element) == QUANT && kind(&result.element) == QUANT { &result.element } else { &first.element };
    at.gives(0, &dims, element)
}

/// `abs`, `real`, `imag`: complex numbers give their parts' type.
fn part(at: &At<'_>) -> Result<()> {
    let t = at.tensor(0)?;
    let element = match &t.element {
        Element::Complex(part) => Element::Float(*part),
        other => other.clone(),
    };
    at.gives(0, &t.dims, &element)
}

fn complex(at: &At<'_>) -> Result<()> {
    let (a, b) = (at.tensor(0)?, at.tensor(1)?);
    let Element::Float(part) = a.element else { return Err(at.wrong("its operands are not floats")) };
    at.holds(a.element == b.element && same_dims(&a.dims, &b.dims), || "its operands differ in type".into())?;
    at.gives(0, &a.dims, &Element::Complex(part))
}

fn same_shape(at: &At<'_>) -> Result<()> {
    let result = at.result_tensor(0)?;
    at.gives(0, &at.tensor(0)?.dims, &result.element)
}

fn predicate(at: &At<'_>) -> Result<()> {
    at.gives(0, &at.tensor(0)?.dims, &Element::I1)
}

fn compare(at: &At<'_>) -> Result<()> {
    let (a, b) = (at.tensor(0)?, at.tensor(1)?);
    at.holds(same_dims(&a.dims, &b.dims) && same_element(&a.element, &b.element), || {
        format!("its operands are {} and {}", words::of_tensor(a), words::of_tensor(b))
    })?;
    let Some(Attribute::Enum(_, direction)) = at.operation.attributes.get("comparison_direction") else {
        return Err(at.wrong("it has no attribute `comparison_direction`"));
    };
    let direction = &**direction;
    at.holds(["EQ", "NE", "GE", "GT", "LE", "LT"].contains(&direction), || {
        format!("there is no direction `{direction}`")
    })?;
    let unordered = kind(&a.element) != COMPLEX || matches!(direction, "EQ" | "NE");
    at.holds(unordered, || "complex numbers have no order: only `EQ` and `NE`".into())?;
    if let Some(Attribute::Enum(_, how)) = at.operation.attributes.get("compare_type") {
        let right = match &a.element {
            Element::Float(_) => matches!(&**how, "FLOAT" | "TOTALORDER" | "NOTYPE"),
            Element::Complex(_) => matches!(&**how, "FLOAT" | "NOTYPE"),
            Element::Quantized(_) => true,
            e if e.is_signed() => matches!(&**how, "SIGNED" | "NOTYPE"),
            _ => matches!(&**how, "UNSIGNED" | "NOTYPE"),
        };
        at.holds(right, || format!("{} are not compared as `{how}`", words::of_tensor(a)))?;
    }
    let dims: Dims = a.dims.iter().zip(&b.dims).map(|(a, b)| either(*a, *b)).collect();
    at.gives(0, &dims, &Element::I1)
}

fn select(at: &At<'_>) -> Result<()> {
    let (p, a, b) = (at.tensor(0)?, at.tensor(1)?, at.tensor(2)?);
    at.holds(p.element == Element::I1, || format!("its predicate is {}", words::of_tensor(p)))?;
    at.holds(same_dims(&a.dims, &b.dims) && same_element(&a.element, &b.element), || {
        format!("it chooses between {} and {}", words::of_tensor(a), words::of_tensor(b))
    })?;
    at.holds(p.dims.is_empty() || same_dims(&p.dims, &a.dims), || {
        format!("its predicate is {} for {}", words::of_tensor(p), words::of_tensor(a))
    })?;
    let dims: Dims = a.dims.iter().zip(&b.dims).map(|(a, b)| either(*a, *b)).collect();
    at.gives(0, &dims, &a.element)
}

fn clamp(at: &At<'_>) -> Result<()> {
    let x = at.tensor(1)?;
    for i in [0, 2] {
        let bound = at.tensor(i)?;
        at.holds(
            (bound.dims.is_empty() || same_dims(&bound.dims, &x.dims)) && same_element(&bound.element, &x.element),
            || format!("the bound {} for {}", words::of_tensor(bound), words::of_tensor(x)),
        )?;
    }
    at.gives(0, &x.dims, &x.element)
}

fn constant(at: &At<'_>) -> Result<()> {
    let Some(Attribute::Dense(dense)) = at.operation.attributes.get("value") else {
        return Err(at.wrong("it has no attribute `value`"));
    };
    whole(at, &dense.ty, dense)?;
    let result = at.result_tensor(0)?;
    // A constant of quantized numbers may be written by the integers that are stored.
    let stored = matches!(&result.element, Element::Quantized(q) if q.storage == dense.ty.element);
    at.gives(0, &dense.ty.dims, if stored { &result.element } else { &dense.ty.element })
}

fn constant_operand(at: &At<'_>) -> Result<()> {
    match at.operation.attributes.get("value") {
        Some(Attribute::Dense(dense)) => whole(at, &dense.ty, dense),
        _ => Err(at.wrong("it has no attribute `value`")),
    }
}

/// As many bytes as elements need.
fn whole(at: &At<'_>, ty: &Tensor, dense: &crate::module::Dense) -> Result<()> {
    let count = if dense.splat { Some(1) } else { ty.count() };
    at.holds(count.and_then(|n| n.checked_mul(ty.element.bytes())) == Some(dense.bytes.len()), || {
        format!("{} bytes for {}", dense.bytes.len(), words::of_tensor(ty))
    })
}

/// Each result has the type of its operand.
fn pairwise(at: &At<'_>) -> Result<()> {
    at.holds(at.operand_count() == at.operation.results.len(), || "it has not as many results as operands".into())?;
    for i in 0..at.operand_count() {
        let (is, from): (&Type, &Type) = (at.result(i)?, at.operand(i)?);
        at.holds(super::fits(is, from), || {
            format!("result {} is {}, and its operand {}", i + 1, words::of_type(is), words::of_type(from))
        })?;
    }
    Ok(())
}

fn nothing(_: &At<'_>) -> Result<()> {
    Ok(())
}

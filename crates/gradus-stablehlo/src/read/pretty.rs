//! The pretty forms: a table `operation → how its own syntax reads`. What they give has the names of the generic form.
//!
//! Nearly all of them are one form: operands, then `key = value`, then attributes in braces, then types in one of a few short notations. The others have a
//! function of their own.

use std::sync::OnceLock;

use gradus_core::error::Result;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::names::known;
use super::operations::Parsed;
use super::structs::{self, integer};
use super::{Reader, own};
use crate::module::{Attribute, Element, Float, Operation, Place, Tensor, Type};
use crate::words;

/// The types of results.
pub(super) type Types = SmallVec<[Type; 1]>;

/// How the types behind the colon are shortened. The whole form `(a, b) -> c` is taken everywhere.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Short {
    /// Not at all.
    No,
    /// One type: that of all operands and of the result.
    Same,
    /// One complex type: that of the result; operands have its parts.
    Complex,
    /// The predicate's type, and that of all others.
    Select,
    /// A tuple: the result; operands are its elements.
    Tuple,
    /// The types of operands, which are those of the results.
    Pairwise,
    /// The types of results.
    Results,
    /// The types of operands; there are no results.
    Operands,
    /// One type: that of all operands; there are no results.
    Equal,
}

/// What stands behind `key =`.
#[derive(Clone, Copy)]
pub(super) enum Holds {
    Integers,
    I64,
    I32,
    U64,
    Bool,
    Float,
    Text,
    Enum(&'static str),
    Precision,
    Algorithm,
    /// `e5m10`.
    Format,
}

/// A key, the name of its attribute, and what it holds.
pub(super) type Key = (&'static str, &'static str, Holds);

#[derive(Clone, Copy)]
enum Form {
    Listed(&'static [Key], Short),
    Own(for<'a> fn(&mut Reader<'a>, &mut Operation) -> Result<Types>),
}

use Form::{Listed, Own};
use Short::{Complex, Equal, No, Operands, Pairwise, Results, Same, Select, Tuple};

const DIMS: &[Key] = &[("dims", "broadcast_dimensions", Holds::Integers)];
const DIM: &[Key] = &[("dim", "dimension", Holds::I64)];
const EINSUM: &[Key] = &[("config", "einsum_config", Holds::Text)];
const PRECISION: &[Key] =
    &[("precision", "precision_config", Holds::Precision), ("algorithm", "algorithm", Holds::Algorithm)];
const ULPS: &[Key] = &[
    ("max_ulp_difference", "max_ulp_difference", Holds::U64),
    ("min_ulp_difference", "min_ulp_difference", Holds::U64),
];
const PAD: &[Key] = &[
    ("low", "edge_padding_low", Holds::Integers),
    ("high", "edge_padding_high", Holds::Integers),
    ("interior", "interior_padding", Holds::Integers),
];
const FFT: &[Key] =
    &[("type", "fft_type", Holds::Enum("stablehlo.fft_type")), ("length", "fft_length", Holds::Integers)];
const PROBE: &[Key] = &[("probe_id", "probe_id", Holds::Text), ("iter", "iteration", Holds::I32)];

const FORMS: &[(&str, Form)] = &[
    ("stablehlo.abs", Listed(&[], Same)),
    ("stablehlo.add", Listed(&[], Same)),
    ("stablehlo.after_all", Listed(&[], Same)),
    ("stablehlo.and", Listed(&[], Same)),
    ("stablehlo.atan2", Listed(&[], Same)),
    ("stablehlo.bitcast_convert", Listed(&[], No)),
    ("stablehlo.broadcast", Listed(&[("sizes", "broadcast_sizes", Holds::Integers)], No)),
    ("stablehlo.broadcast_in_dim", Listed(DIMS, No)),
    ("stablehlo.cbrt", Listed(&[], Same)),
    ("stablehlo.ceil", Listed(&[], Same)),
    ("stablehlo.cholesky", Listed(&[("lower", "lower", Holds::Bool)], Same)),
    ("stablehlo.clamp", Listed(&[], Same)),
    ("stablehlo.compare", Own(own::compare)),
    ("stablehlo.complex", Listed(&[], Complex)),
    ("stablehlo.composite", Own(own::composite)),
    ("stablehlo.concatenate", Listed(DIM, No)),
    ("stablehlo.constant", Own(own::constant)),
    ("stablehlo.convert", Listed(&[], Same)),
    ("stablehlo.convolution", Own(own::convolution)),
    ("stablehlo.cosine", Listed(&[], Same)),
    ("stablehlo.count_leading_zeros", Listed(&[], Same)),
    ("stablehlo.create_token", Listed(&[], Results)),
    ("stablehlo.custom_call", Own(own::custom_call)),
    ("stablehlo.divide", Listed(&[], Same)),
    ("stablehlo.dot", Listed(PRECISION, No)),
    ("stablehlo.dot_general", Listed(PRECISION, No)),
    ("stablehlo.dynamic_broadcast_in_dim", Listed(DIMS, No)),
    ("stablehlo.dynamic_iota", Listed(&[("dim", "iota_dimension", Holds::I64)], No)),
    ("stablehlo.dynamic_pad", Listed(&[], No)),
    ("stablehlo.dynamic_reshape", Listed(&[], No)),
    ("stablehlo.dynamic_slice", Listed(&[("sizes", "slice_sizes", Holds::Integers)], No)),
    ("stablehlo.dynamic_update_slice", Listed(&[], No)),
    ("stablehlo.einsum", Listed(EINSUM, No)),
    ("stablehlo.exponential", Listed(&[], Same)),
    ("stablehlo.exponential_minus_one", Listed(&[], Same)),
    ("stablehlo.fft", Listed(FFT, No)),
    ("stablehlo.floor", Listed(&[], Same)),
    ("stablehlo.get_dimension_size", Listed(DIM, No)),
    ("stablehlo.get_tuple_element", Own(own::get_tuple_element)),
    ("stablehlo.imag", Listed(&[], Same)),
    ("stablehlo.iota", Listed(&[("dim", "iota_dimension", Holds::I64)], Results)),
    ("stablehlo.is_finite", Listed(&[], No)),
    ("stablehlo.log", Listed(&[], Same)),
    ("stablehlo.log_plus_one", Listed(&[], Same)),
    ("stablehlo.logistic", Listed(&[], Same)),
    ("stablehlo.maximum", Listed(&[], Same)),
    ("stablehlo.minimum", Listed(&[], Same)),
    ("stablehlo.multiply", Listed(&[], Same)),
    ("stablehlo.negate", Listed(&[], Same)),
    ("stablehlo.not", Listed(&[], Same)),
    ("stablehlo.optimization_barrier", Own(own::optimization_barrier)),
    ("stablehlo.or", Listed(&[], Same)),
    ("stablehlo.pad", Listed(PAD, No)),
    ("stablehlo.partition_id", Listed(&[], Results)),
    ("stablehlo.popcnt", Listed(&[], Same)),
    ("stablehlo.power", Listed(&[], Same)),
    ("stablehlo.real", Listed(&[], Same)),
    ("stablehlo.real_dynamic_slice", Listed(&[], No)),
    ("stablehlo.reduce", Own(own::reduce)),
    ("stablehlo.reduce_precision", Listed(&[("format", "", Holds::Format)], Same)),
    ("stablehlo.remainder", Listed(&[], Same)),
    ("stablehlo.replica_id", Listed(&[], Results)),
    ("stablehlo.reshape", Listed(&[], No)),
    ("stablehlo.return", Listed(&[], Operands)),
    ("stablehlo.reverse", Listed(&[("dims", "dimensions", Holds::Integers)], Same)),
    ("stablehlo.rng", Listed(&[("distribution", "rng_distribution", Holds::Enum("stablehlo.rng_distribution"))], No)),
    (
        "stablehlo.rng_bit_generator",
        Listed(&[("algorithm", "rng_algorithm", Holds::Enum("stablehlo.rng_algorithm"))], No),
    ),
    ("stablehlo.round_nearest_afz", Listed(&[], Same)),
    ("stablehlo.round_nearest_even", Listed(&[], Same)),
    ("stablehlo.rsqrt", Listed(&[], Same)),
    ("stablehlo.select", Listed(&[], Select)),
    ("stablehlo.set_dimension_size", Listed(DIM, No)),
    ("stablehlo.shift_left", Listed(&[], Same)),
    ("stablehlo.shift_right_arithmetic", Listed(&[], Same)),
    ("stablehlo.shift_right_logical", Listed(&[], Same)),
    ("stablehlo.sign", Listed(&[], Same)),
    ("stablehlo.sine", Listed(&[], Same)),
    ("stablehlo.slice", Own(own::slice)),
    ("stablehlo.sqrt", Listed(&[], Same)),
    ("stablehlo.subtract", Listed(&[], Same)),
    ("stablehlo.tan", Listed(&[], Same)),
    ("stablehlo.tanh", Listed(&[], Same)),
    ("stablehlo.transpose", Listed(&[("dims", "permutation", Holds::Integers)], No)),
    ("stablehlo.tuple", Listed(&[], Tuple)),
    ("stablehlo.unary_einsum", Listed(EINSUM, No)),
    ("stablehlo.uniform_dequantize", Listed(&[], Same)),
    ("stablehlo.uniform_quantize", Listed(&[], Same)),
    ("stablehlo.while", Own(own::while_loop)),
    ("stablehlo.xor", Listed(&[], Same)),
    ("chlo._asin_acos_kernel", Listed(&[], Same)),
    ("chlo.acos", Listed(&[], Same)),
    ("chlo.acosh", Listed(&[], Same)),
    ("chlo.asin", Listed(&[], Same)),
    ("chlo.asinh", Listed(&[], Same)),
    ("chlo.atan", Listed(&[], Same)),
    ("chlo.atanh", Listed(&[], Same)),
    ("chlo.bessel_i1e", Listed(&[], Same)),
    ("chlo.broadcast_add", Listed(&[], No)),
    ("chlo.broadcast_and", Listed(&[], No)),
    ("chlo.broadcast_atan2", Listed(&[], No)),
    ("chlo.broadcast_compare", Listed(&[], No)),
    ("chlo.broadcast_complex", Listed(&[], No)),
    ("chlo.broadcast_divide", Listed(&[], No)),
    ("chlo.broadcast_maximum", Listed(&[], No)),
    ("chlo.broadcast_minimum", Listed(&[], No)),
    ("chlo.broadcast_multiply", Listed(&[], No)),
    ("chlo.broadcast_next_after", Listed(&[], No)),
    ("chlo.broadcast_or", Listed(&[], No)),
    ("chlo.broadcast_polygamma", Listed(&[], No)),
    ("chlo.broadcast_power", Listed(&[], No)),
    ("chlo.broadcast_remainder", Listed(&[], No)),
    ("chlo.broadcast_select", Listed(&[], No)),
    ("chlo.broadcast_shift_left", Listed(&[], No)),
    ("chlo.broadcast_shift_right_arithmetic", Listed(&[], No)),
    ("chlo.broadcast_shift_right_logical", Listed(&[], No)),
    ("chlo.broadcast_subtract", Listed(&[], No)),
    ("chlo.broadcast_xor", Listed(&[], No)),
    ("chlo.broadcast_zeta", Listed(&[], No)),
    ("chlo.conj", Listed(&[], Same)),
    ("chlo.constant", Own(own::constant)),
    ("chlo.cosh", Listed(&[], Same)),
    ("chlo.digamma", Listed(&[], Same)),
    ("chlo.erf", Listed(&[], Same)),
    ("chlo.erf_inv", Listed(&[], Same)),
    ("chlo.erfc", Listed(&[], Same)),
    ("chlo.is_inf", Listed(&[], No)),
    ("chlo.is_neg_inf", Listed(&[], No)),
    ("chlo.is_pos_inf", Listed(&[], No)),
    ("chlo.lgamma", Listed(&[], Same)),
    ("chlo.mulhi", Listed(&[], Same)),
    ("chlo.next_after", Listed(&[], Same)),
    ("chlo.polygamma", Listed(&[], Same)),
    ("chlo.scan", Own(own::scan)),
    ("chlo.sinh", Listed(&[], Same)),
    ("chlo.square", Listed(&[], Same)),
    ("chlo.tan", Listed(&[], Same)),
    ("chlo.top_k", Own(own::top_k)),
    ("chlo.zeta", Listed(&[], Same)),
    ("arith.constant", Own(own::constant)),
    ("check.expect_almost_eq", Listed(&[("tolerance", "tolerance", Holds::Float)], Equal)),
    ("check.expect_almost_eq_const", Own(own::expect_const)),
    ("check.expect_close", Listed(ULPS, Operands)),
    ("check.expect_eq", Listed(&[], Equal)),
    ("check.expect_eq_const", Own(own::expect_const)),
    ("check.expect_serialized_eq", Listed(PROBE, Operands)),
    ("func.call", Own(own::call)),
    ("func.return", Listed(&[], Operands)),
    ("interpreter.print", Listed(&[], Operands)),
    ("interpreter.probe", Listed(PROBE, Same)),
    ("sdy.constant", Own(own::constant)),
    ("sdy.manual_computation", Own(own::manual_computation)),
    ("sdy.mesh", Own(own::mesh)),
    ("sdy.reshard", Own(own::sharding)),
    ("sdy.return", Listed(&[], Operands)),
    ("sdy.sharding_constraint", Own(own::sharding)),
];

/// The operations that the table has.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FORMS.iter().map(|(name, _)| *name)
}

/// Whether the regions of an operation see no values from outside.
pub(super) fn is_isolated(name: &str) -> bool {
    matches!(name, "chlo.scan" | "sdy.manual_computation" | "stablehlo.async_start")
}

fn find(name: &str) -> Option<(&'static str, Form)> {
    static ALL: OnceLock<FxHashMap<&'static str, (&'static str, Form)>> = OnceLock::new();
    let all = ALL.get_or_init(|| FORMS.iter().map(|(name, form)| (*name, (*name, *form))).collect());
    let full = match name {
        "return" => "func.return",
        "call" => "func.call",
        _ => name,
    };
    all.get(full).copied()
}

impl<'a> Reader<'a> {
    /// An operation in a form of its own.
    pub(super) fn pretty(&mut self, place: Place) -> Result<Parsed> {
        let at = self.cur.at();
        let word = self.cur.word("an operation")?;
        let Some((name, form)) = find(word) else {
            return Err(self
                .cur
                .error_at(at, &format!("`{word}` is not an operation whose own syntax is known"))
                .help("the generic syntax, `\"name\"(operands) {attributes} : types`, is read for every operation"));
        };
        let mut operation = Operation { name: name.into(), place, ..Operation::default() };
        let results = match form {
            Listed(keys, short) => self.listed(&mut operation, keys, short)?,
            Own(read) => read(self, &mut operation)?,
        };
        Ok(Parsed { operation, results })
    }

    fn listed(&mut self, operation: &mut Operation, keys: &[Key], short: Short) -> Result<Types> {
        // Keys may follow operands only behind a comma, and stand first where there are no operands.
        let mut more = self.operands(operation)?
            || (operation.operands.is_empty() && !keys.is_empty() && !self.cur.peek_word().is_empty());
        while more {
            self.key(operation, keys)?;
            more = self.cur.eat(",");
        }
        self.ending(operation, short)
    }

    /// Operands between commas; whether there is a comma and something else behind them.
    pub(super) fn operands(&mut self, operation: &mut Operation) -> Result<bool> {
        while self.cur.peek() == b'%' {
            operation.operands.push(self.value()?);
            if !self.cur.eat(",") {
                return Ok(false);
            }
            if self.cur.peek() != b'%' {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// `key = value`.
    pub(super) fn key(&mut self, operation: &mut Operation, keys: &[Key]) -> Result<()> {
        let at = self.cur.at();
        if matches!(self.cur.peek_word(), "batching_dims" | "contracting_dims")
            && operation.name == "stablehlo.dot_general"
        {
            let value = self.dot_dimensions()?;
            operation.attributes.set("dot_dimension_numbers", value);
            return Ok(());
        }
        let names = || keys.iter().map(|(key, ..)| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        let word = self.cur.peek_word();
        let Some((_, attribute, holds)) = keys.iter().find(|(key, ..)| *key == word).copied() else {
            return Err(self.cur.expected(&match keys.is_empty() {
                true => "an operand".to_owned(),
                false => names(),
            }));
        };
        self.cur.word("")?;
        self.cur.take("=")?;
        let value = match holds {
            Holds::Integers => Attribute::numbers(self.integers()?),
            Holds::I64 => integer(self.cur.i64()?),
            Holds::I32 => Attribute::Integer(self.cur.integer()?, Type::Scalar(Element::I32)),
            Holds::U64 => Attribute::Integer(self.cur.integer()?, Type::Scalar(Element::U64)),
            Holds::Bool => match self.cur.word("`true` or `false`")? {
                "true" => Attribute::Bool(true),
                "false" => Attribute::Bool(false),
                _ => return Err(self.cur.error_at(at, &format!("`{word}` is `true` or `false`"))),
            },
            Holds::Float => {
                let minus = self.cur.eat("-");
                let (span, _) = self.cur.number_span();
                let Ok(value) = span.parse::<f64>() else { return Err(self.cur.expected("a float")) };
                self.cur.go(self.cur.at() + span.len());
                Attribute::Float(if minus { -value } else { value }, Type::Scalar(Element::Float(Float::F64)))
            }
            Holds::Text => Attribute::String(self.cur.string()?.into_owned()),
            Holds::Enum(kind) => {
                Attribute::Enum(kind.into(), known(self.cur.word("one of the words of this attribute")?))
            }
            Holds::Precision => {
                self.cur.take("[")?;
                Attribute::Array(self.list("]", |r| {
                    Ok(Attribute::Enum("stablehlo.precision".into(), known(r.cur.word("a precision")?)))
                })?)
            }
            Holds::Algorithm => match structs::find("stablehlo.dot_algorithm") {
                Some(fields) if self.cur.peek() == b'<' => self.record("stablehlo.dot_algorithm".into(), fields)?,
                _ => self.attribute()?,
            },
            Holds::Format => {
                let format = self.cur.word("a format such as `e5m10`")?;
                let parts = format
                    .strip_prefix('e')
                    .and_then(|f| f.split_once('m'))
                    .and_then(|(e, m)| Some((e.parse::<i32>().ok()?, m.parse::<i32>().ok()?)));
                let Some((exponent, mantissa)) = parts else {
                    return Err(self.cur.error_at(at, &format!("expected a format such as `e5m10`, found `{format}`")));
                };
                operation
                    .attributes
                    .set("exponent_bits", Attribute::Integer(exponent.into(), Type::Scalar(Element::I32)));
                operation
                    .attributes
                    .set("mantissa_bits", Attribute::Integer(mantissa.into(), Type::Scalar(Element::I32)));
                return Ok(());
            }
        };
        match operation.attributes.set(attribute, value) {
            None => Ok(()),
            Some(_) => Err(self.cur.error_at(at, &format!("`{word}` is given twice"))),
        }
    }

    /// The end of a pretty form: attributes in braces, a colon, types.
    pub(super) fn ending(&mut self, operation: &mut Operation, short: Short) -> Result<Types> {
        self.dictionary_if(&mut operation.attributes)?;
        if operation.operands.is_empty() && short == Operands && self.cur.peek() != b':' {
            return Ok(Types::new());
        }
        self.cur.take(":")?;
        self.dictionary_if(&mut operation.attributes)?;
        self.signature(operation, short)
    }

    /// The types behind the colon.
    pub(super) fn signature(&mut self, operation: &Operation, short: Short) -> Result<Types> {
        let at = self.cur.at();
        if self.cur.peek() == b'(' {
            let inputs = self.type_list()?;
            self.cur.take("->")?;
            self.check_operands(at, operation, &inputs)?;
            return Ok(self.results()?.into());
        }
        let first = self.ty()?;
        let mut types: Types = smallvec![first];
        while self.cur.eat(",") {
            types.push(self.ty()?);
        }
        if self.cur.eat("->") {
            self.check_operands(at, operation, &types)?;
            return Ok(self.results()?.into());
        }
        let count = operation.operands.len();
        let one = types.len() == 1;
        match short {
            Same | Equal if one => {
                self.check_same(at, operation, &types[0])?;
                Ok(if short == Same { types } else { Types::new() })
            }
            Complex if one => {
                let Type::Tensor(Tensor { dims, element: Element::Complex(part), bounds }) = &types[0] else {
                    return Err(self.cur.error_at(at, "expected a tensor of complex numbers"));
                };
                let part =
                    Type::Tensor(Tensor { dims: dims.clone(), element: Element::Float(*part), bounds: bounds.clone() });
                self.check_operands(at, operation, &vec![part; count])?;
                Ok(types)
            }
            Select if types.len() == 2 && count == 3 => {
                self.check_operands(at, operation, &[types[0].clone(), types[1].clone(), types[1].clone()])?;
                Ok(types.into_iter().skip(1).collect())
            }
            Tuple if one => {
                let Type::Tuple(parts) = &types[0] else { return Err(self.cur.error_at(at, "expected a tuple")) };
                self.check_operands(at, operation, parts)?;
                Ok(types)
            }
            Pairwise => {
                self.check_operands(at, operation, &types)?;
                Ok(types)
            }
            Results => Ok(types),
            Operands => {
                self.check_operands(at, operation, &types)?;
                Ok(Types::new())
            }
            _ => Err(self.cur.expected("`->` and the types of the results")),
        }
    }

    /// All operands have one type.
    pub(super) fn check_same(&self, at: usize, operation: &Operation, ty: &Type) -> Result<()> {
        for (i, value) in operation.operands.iter().enumerate() {
            if self.type_of(*value) != Some(ty) {
                let is = self.type_of(*value).map(words::of_type).unwrap_or_default();
                let message = format!(
                    "operand {} of `{}` is {is}, and the text says {}",
                    i + 1,
                    operation.name,
                    words::of_type(ty)
                );
                return Err(self.cur.error_at(at, &message));
            }
        }
        Ok(())
    }

    /// A region whose arguments the operation names before it.
    pub(super) fn region_with(&mut self, operation: &mut Operation, names: &[(&'a str, Type)]) -> Result<()> {
        let mark = self.undo.len();
        self.scope += 1;
        let arguments =
            names.iter().map(|(name, ty)| self.define(name, 1, [ty.clone()])).collect::<Result<Vec<_>>>()?;
        operation.regions.push(self.region(arguments)?);
        self.scope -= 1;
        self.forget(mark);
        Ok(())
    }

    /// Text in brackets at the cursor, as it was written.
    pub(super) fn bracketed(&mut self) -> Result<&'a str> {
        let start = self.cur.at();
        if !matches!(self.cur.peek(), b'<' | b'[' | b'{' | b'(') {
            return Err(self.cur.expected("a bracket"));
        }
        let end = self.cur.balanced()?;
        self.cur.go(end);
        Ok(self.cur.between(start, end))
    }
}

//! Bits, uniform numbers, and what is one formula away from them.

use gradus_core::primitives::Op;
use gradus_core::primitives::random::RandomBits;
use gradus_core::trace::bind;
use gradus_core::types::{bf16, f16};
use gradus_core::{
    Array, DType, Dim, Element, Error, ErrorKind, IntoShape, Operand, OperandValue, Result, Scalar, Shape,
};

use super::formulas::{erf, erf_inv, fused, log, log1p};
use super::{Key, drawing, parameter, want_float};

/// Random bits: unsigned integers, every value equally likely.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// // What JAX gives for `jax.random.bits(jax.random.key(0), (3,))`.
/// assert_eq!(random::bits::<u32>(Key::new(0), [3]).to_vec::<u32>()?, [4070199207, 4202968722, 1427181096]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn bits<T: Element>(key: Key, shape: impl IntoShape) -> Array {
    let shape = shape.into_shape();
    drawing(key, |key| {
        if !T::DTYPE.is_unsigned() {
            let message = format!("random bits are unsigned integers, not {}", T::DTYPE);
            return Err(Error::new(ErrorKind::DType, message).help("draw bits of the same size and `.bitcast` them"));
        }
        draw_bits(key, &shape, T::DTYPE)
    })
}

pub(super) fn draw_bits(key: &Array, shape: &Shape, dtype: DType) -> Result<Array> {
    bind(Op::new(RandomBits { dtype, shape: shape.clone() }), std::slice::from_ref(key)).ok()
}

/// New keys along a last axis of each key.
pub(super) fn split_keys<const N: usize>(keys: &Array) -> Result<[Array; N]> {
    let all =
        bind(Op::new(RandomBits { dtype: DType::Key, shape: [N].into_shape() }), std::slice::from_ref(keys)).ok()?;
    let parts: Vec<Array> = all.split(N, -1).into_iter().map(|k| k.squeeze(-1)).collect();
    parts.try_into().map_err(|_| Error::new(ErrorKind::Rule, "a split into another number of parts"))
}

/// How a float dtype gets its random digits: the bits that are drawn, how far they are moved down, and the exponent of 1.
fn mantissa(dtype: DType) -> Result<(DType, Scalar, Scalar)> {
    Ok(match dtype {
        DType::F16 => (DType::U16, Scalar::U16(6), Scalar::U16(f16::ONE.to_bits())),
        // Seven digits come from eight bits.
        DType::BF16 => (DType::U8, Scalar::U16(1), Scalar::U16(bf16::ONE.to_bits())),
        DType::F32 => (DType::U32, Scalar::U32(9), Scalar::U32(1.0_f32.to_bits())),
        DType::F64 => (DType::U64, Scalar::U64(12), Scalar::U64(1.0_f64.to_bits())),
        other => return Err(Error::new(ErrorKind::DType, format!("uniform numbers are floats, not {other}"))),
    })
}

/// Numbers of [0, 1), one draw for each key: random digits behind the exponent of 1, less 1.
pub(super) fn unit(keys: &Array, shape: &Shape, dtype: DType) -> Result<Array> {
    let (drawn, down, one) = mantissa(dtype)?;
    let digits = draw_bits(keys, shape, drawn)?.cast(one.dtype()).shift_right_logical(down);
    let from_one = (digits | one).bitcast(dtype);
    (from_one - Scalar::one(dtype)).ok()
}

/// Numbers of [low, high): arrays of the draw's whole shape.
pub(super) fn between(keys: &Array, shape: &Shape, low: &Array, high: &Array) -> Result<Array> {
    let unit = unit(keys, shape, low.dtype())?;
    let width = high - low;
    fused(&unit, &width, low).maximum(low).ok()
}

/// Uniform numbers of [0, 1).
#[track_caller]
pub fn uniform<T: Element>(key: Key, shape: impl IntoShape) -> Array {
    let shape = shape.into_shape();
    drawing(key, |key| {
        want_float("uniform", T::DTYPE)?;
        unit(key, &shape, T::DTYPE)
    })
}

/// Uniform numbers of [low, high). Bounds are numbers or arrays that broadcast to the shape; derivatives go through them.
#[track_caller]
pub fn uniform_between<T: Element>(key: Key, shape: impl IntoShape, low: impl Operand, high: impl Operand) -> Array {
    let shape = shape.into_shape();
    drawing(key, |key| {
        want_float("uniform", T::DTYPE)?;
        let low = parameter("a lower bound", low, T::DTYPE, &shape)?;
        let high = parameter("an upper bound", high, T::DTYPE, &shape)?;
        between(key, &shape, &low, &high)
    })
}

/// √2 in a float dtype.
fn root_of_two(dtype: DType) -> Scalar {
    Scalar::F64(std::f64::consts::SQRT_2).cast(dtype)
}

/// Numbers of the standard normal distribution, one draw for each key.
pub(super) fn standard_normal(keys: &Array, shape: &Shape, dtype: DType) -> Result<Array> {
    // (-1, 1): the inverse of the error function has poles at both ends.
    let low = match dtype {
        DType::F16 => Scalar::F16(f16::from_bits(f16::NEG_ONE.to_bits() - 1)),
        DType::BF16 => Scalar::BF16(bf16::from_bits(bf16::NEG_ONE.to_bits() - 1)),
        DType::F32 => Scalar::F32((-1.0_f32).next_up()),
        _ => Scalar::F64((-1.0_f64).next_up()),
    };
    let whole: Shape = keys.shape().iter().chain(shape.iter()).cloned().collect();
    let low = Array::full_scalar(whole.clone(), low);
    let high = Array::full_scalar(whole, Scalar::one(dtype));
    (erf_inv(&between(keys, shape, &low, &high)?)? * root_of_two(dtype)).ok()
}

/// Numbers of the standard normal distribution; complex ones have a variance of 1 in all.
#[track_caller]
pub fn normal<T: Element>(key: Key, shape: impl IntoShape) -> Array {
    let shape = shape.into_shape();
    drawing(key, |key| {
        if T::DTYPE.is_complex() {
            let part = T::DTYPE.real_part();
            let [re, im] = split_keys::<2>(key)?;
            let (re, im) = (standard_normal(&re, &shape, part)?, standard_normal(&im, &shape, part)?);
            return (Array::complex(&re, &im) / root_of_two(T::DTYPE)).ok();
        }
        want_float("normal", T::DTYPE)?;
        standard_normal(key, &shape, T::DTYPE)
    })
}

/// Numbers of the standard normal distribution between two bounds, which are numbers or arrays that broadcast to the shape.
#[track_caller]
pub fn truncated_normal<T: Element>(key: Key, shape: impl IntoShape, low: impl Operand, high: impl Operand) -> Array {
    let shape = shape.into_shape();
    drawing(key, |key| {
        let dtype = T::DTYPE;
        want_float("truncated_normal", dtype)?;
        let low = parameter("a lower bound", low, dtype, &shape)?;
        let high = parameter("an upper bound", high, dtype, &shape)?;
        let root = root_of_two(dtype);
        let (a, b) = (erf(&(&low / root))?, erf(&(&high / root))?);
        let out = erf_inv(&between(key, &shape, &a, &b)?)? * root;
        // Rounding must not reach the bounds.
        let infinity = Scalar::highest(dtype);
        let inside = |bound: &Array, toward: Scalar| bound.stop_gradient().nextafter(toward);
        out.clamp(inside(&low, infinity), inside(&high, Scalar::lowest(dtype))).ok()
    })
}

/// `true` with probability `p`, a number or an array of floats that broadcasts to the shape.
#[track_caller]
pub fn bernoulli(key: Key, p: impl Operand, shape: impl IntoShape) -> Array {
    let shape = shape.into_shape();
    drawing(key, |key| {
        let p = p.into_operand();
        let dtype = match &p {
            OperandValue::Number(n) => n.dtype(),
            OperandValue::Dim(_) => DType::I64,
            OperandValue::Array(a) => a.ty()?.dtype(),
        };
        want_float("a probability of `bernoulli`", dtype)?;
        let p = parameter("a probability", p, dtype, &shape)?;
        unit(key, &shape, dtype)?.lt(p).ok()
    })
}

/// Whole numbers of [low, high), which are numbers or arrays of the dtype that broadcast to the shape. Where `high <= low`
/// all are `low`.
#[track_caller]
pub fn randint<T: Element>(key: Key, shape: impl IntoShape, low: impl Operand, high: impl Operand) -> Array {
    let shape = shape.into_shape();
    drawing(key, |key| {
        let dtype = T::DTYPE;
        if !dtype.is_int() {
            let message = format!("`randint` gives integers, not {dtype}");
            return Err(Error::new(ErrorKind::DType, message).help("`uniform` gives floats"));
        }
        let low = Bound::new("a lower bound", low, dtype, &shape)?;
        let high = Bound::new("an upper bound", high, dtype, &shape)?;
        whole_numbers(key, &shape, dtype, low, high)
    })
}

/// Whole numbers of [0, n), with n at most the range of `i32`: the dtype in which JAX chooses places.
pub(super) fn whole_below(key: &Array, shape: &Shape, n: &Dim) -> Result<Array> {
    if n.constant() == Some(0) {
        return Err(Error::new(ErrorKind::Value, "there is nothing to choose from"));
    }
    let high = Array::from_dim(n, DType::I32).broadcast_to(shape);
    let low = Bound { value: high.zeros_like(), past: None };
    whole_numbers(key, shape, DType::I32, low, Bound { value: high, past: None })
}

/// A bound of whole numbers, in the dtype that is drawn. One past the largest number is a bound too.
struct Bound {
    value: Array,
    /// Where it is past the largest number; never, if there is no answer.
    past: Option<bool>,
}

impl Bound {
    fn new(what: &str, bound: impl Operand, dtype: DType, shape: &Shape) -> Result<Bound> {
        let bound = bound.into_operand();
        let drawn = drawn(dtype);
        if let OperandValue::Number(n) = &bound {
            let highest = Scalar::highest(dtype);
            let past = match (n.to_i64(), highest.to_i64()) {
                (Some(n), Some(highest)) => n.checked_sub(1) == Some(highest),
                _ => false,
            };
            if past {
                // Narrow numbers are drawn in 32 bits, where the bound is a number like any other.
                return Ok(match drawn == dtype {
                    true => Bound { value: Array::full_scalar(shape.clone(), highest), past: Some(true) },
                    false => Bound { value: Array::full_scalar(shape.clone(), n.cast(drawn)), past: None },
                });
            }
        }
        let value = parameter(what, bound, dtype, shape)?;
        Ok(Bound { value: value.cast(drawn), past: None })
    }
}

/// The dtype that numbers are drawn in: narrow ones in 32 bits, so that the remainders below favour none.
fn drawn(dtype: DType) -> DType {
    if dtype.size() < 4 { DType::I32 } else { dtype }
}

fn whole_numbers(key: &Array, shape: &Shape, dtype: DType, low: Bound, high: Bound) -> Result<Array> {
    let drawn = drawn(dtype);
    let bits = if drawn.size() == 4 { DType::U32 } else { DType::U64 };
    let unsigned = |x: &Array| if x.dtype() == bits { x.clone() } else { x.bitcast(bits) };
    let [first, second] = split_keys::<2>(key)?;
    let (upper, lower) = (draw_bits(&first, shape, bits)?, draw_bits(&second, shape, bits)?);
    let is_range = high.value.gt(&low.value);
    let one = Scalar::one(bits);
    let mut span = is_range.select(unsigned(&(&high.value - &low.value)), one);
    if high.past == Some(true) {
        // All numbers of the dtype are one more than it holds, and a remainder by 0 is the number itself.
        span = is_range.select(&span + one, &span);
    }
    // The remainder of a number of twice the bits: (a·2^n + b) mod s = ((a mod s)·(2^n mod s) + (b mod s)) mod s.
    let rem = |x: &Array| x % &span;
    let half = Array::full_scalar(shape.clone(), Scalar::U64(1 << (4 * bits.size())).cast(bits));
    let half = rem(&half);
    let multiplier = rem(&(&half * &half));
    let offset = rem(&(rem(&upper) * multiplier + rem(&lower)));
    let offset = if drawn == bits { offset } else { offset.bitcast(drawn) };
    (low.value + offset).cast(dtype).ok()
}

/// Numbers of the exponential distribution of rate 1.
#[track_caller]
pub fn exponential<T: Element>(key: Key, shape: impl IntoShape) -> Array {
    let shape = shape.into_shape();
    drawing(key, |key| {
        want_float("exponential", T::DTYPE)?;
        standard_exponential(key, &shape, T::DTYPE)
    })
}

pub(super) fn standard_exponential(keys: &Array, shape: &Shape, dtype: DType) -> Result<Array> {
    // log(1 - u) and not log u: u may be 0 and is never 1.
    (-log1p(&-unit(keys, shape, dtype)?)?).ok()
}

/// Numbers of the standard Gumbel distribution.
#[track_caller]
pub fn gumbel<T: Element>(key: Key, shape: impl IntoShape) -> Array {
    let shape = shape.into_shape();
    drawing(key, |key| {
        want_float("gumbel", T::DTYPE)?;
        standard_gumbel(key, &shape, T::DTYPE)
    })
}

pub(super) fn standard_gumbel(key: &Array, shape: &Shape, dtype: DType) -> Result<Array> {
    let least = match dtype {
        DType::F16 => Scalar::F16(f16::MIN_POSITIVE),
        DType::BF16 => Scalar::BF16(bf16::MIN_POSITIVE),
        DType::F32 => Scalar::F32(f32::MIN_POSITIVE),
        _ => Scalar::F64(f64::MIN_POSITIVE),
    };
    let low = Array::full_scalar(shape.clone(), least);
    let high = Array::full_scalar(shape.clone(), Scalar::one(dtype));
    (-log(&-log(&between(key, shape, &low, &high)?)?)?).ok()
}

//! Operations that treat every element alike.

use gradus_core::error::Result;
use gradus_core::primitives::elementwise::{self as p, Compare, Direction};
use gradus_core::primitives::shaping::Broadcast;
use gradus_core::primitives::{Op, Primitive};
use gradus_core::trace::bind;
use gradus_core::{Array, DType, Scalar, Shape};

use super::{Answer, On, one};

/// An operation without parameters on arrays.
pub(super) fn apply(primitive: &'static dyn Primitive, operands: &[Array]) -> Array {
    bind(Op::fixed(primitive), operands)
}

/// An array without axes in every place of a shape.
pub(super) fn spread(x: &Array, shape: &Shape) -> Array {
    if x.rank() == 0 && shape.rank() > 0 {
        bind(Op::new(Broadcast { shape: shape.clone(), axes: vec![] }), std::slice::from_ref(x))
    } else {
        x.clone()
    }
}

/// A number in every place of an array like this one.
pub(super) fn like(x: &Array, value: f64) -> Array {
    Array::full_scalar(x.shape().clone(), Scalar::F64(value).cast(x.dtype()))
}

/// A whole number in every place of an array like this one.
pub(super) fn whole(x: &Array, value: i64) -> Array {
    Array::full_scalar(x.shape().clone(), Scalar::I64(value).cast(x.dtype()))
}

/// The bits of floats as signed integers that are ordered as `totalOrder` orders the floats.
pub(super) fn total_order(x: &Array) -> Array {
    let bits = match x.dtype() {
        DType::F16 | DType::BF16 => DType::I16,
        DType::F32 => DType::I32,
        DType::F64 => DType::I64,
        _ => return x.clone(),
    };
    let bits = x.bitcast(bits);
    let highest = Array::full_scalar(x.shape().clone(), Scalar::highest(bits.dtype()));
    // Of negative numbers all bits but the sign are turned: the larger ones become the smaller.
    let flipped = &bits ^ &highest;
    bits.lt(whole(&bits, 0)).select(&flipped, &bits)
}

/// To the nearest whole number, halves away from zero.
fn round_away(x: &Array) -> Array {
    let whole = x.trunc();
    let rest = (x - &whole).abs();
    let away = &whole + &apply(&p::Sign, std::slice::from_ref(x));
    // An infinity has no rest, so it stays; a zero keeps the sign of what was rounded.
    rest.ge(like(x, 0.5)).select(&away, &whole)
}

/// The lesser or greater of complex numbers by real part, then by imaginary part.
fn extremum(name: &str, a: &Array, b: &Array) -> Array {
    let (ar, br, ai, bi) = (a.real(), b.real(), a.imag(), b.imag());
    let (first, second) = if name == "maximum" { (ar.gt(&br), ai.ge(&bi)) } else { (ar.lt(&br), ai.le(&bi)) };
    (first | (ar.eq(&br) & second)).select(a, b)
}

/// The complex angle of points, which for real numbers is the angle in the plane.
fn complex_angle(y: &Array, x: &Array) -> Array {
    let re = like(&y.real(), 0.0);
    let i = Array::complex(&re, &like(&re, 1.0));
    let along = (x + &(&i * y)) / (x * x + y * y).sqrt();
    -(&i * along.log())
}

/// The comparisons by their names.
pub(super) fn direction(word: &str) -> Option<Direction> {
    Some(match word {
        "EQ" => Direction::Eq,
        "NE" => Direction::Ne,
        "LT" => Direction::Lt,
        "LE" => Direction::Le,
        "GT" => Direction::Gt,
        "GE" => Direction::Ge,
        _ => return None,
    })
}

/// The same numbers in another dtype, by the specification: from floats to integers toward zero, to bools whether they are not zero, of complex ones the real
/// part.
pub(super) fn convert(x: &Array, to: DType) -> Array {
    match x.dtype() {
        from if from == to => x.clone(),
        from if from.is_complex() && !to.is_complex() => convert(&x.real(), to),
        _ => x.cast(to),
    }
}

impl On<'_, '_> {
    pub(super) fn elementwise(&mut self, name: &str) -> Answer {
        let unary: Option<&'static dyn Primitive> = match name {
            "abs" => Some(&p::Abs),
            "cbrt" => Some(&p::Cbrt),
            "ceil" => Some(&p::Ceil),
            "cosine" => Some(&p::Cos),
            "count_leading_zeros" => Some(&p::CountLeadingZeros),
            "exponential" => Some(&p::Exp),
            "exponential_minus_one" => Some(&p::Expm1),
            "floor" => Some(&p::Floor),
            "is_finite" => Some(&p::IsFinite),
            "log" => Some(&p::Log),
            "log_plus_one" => Some(&p::Log1p),
            "logistic" => Some(&p::Logistic),
            "negate" => Some(&p::Neg),
            "not" => Some(&p::Not),
            "popcnt" => Some(&p::Popcount),
            "round_nearest_even" => Some(&p::Round),
            "rsqrt" => Some(&p::Rsqrt),
            "sign" => Some(&p::Sign),
            "sine" => Some(&p::Sin),
            "sqrt" => Some(&p::Sqrt),
            "tan" => Some(&p::Tan),
            "tanh" => Some(&p::Tanh),
            _ => None,
        };
        if let Some(primitive) = unary {
            let x = self.x(0)?;
            return one(match name {
                "cbrt" if x.dtype().is_complex() => x.pow(like(&x, 1.0 / 3.0)),
                _ => apply(primitive, &[x]),
            });
        }
        let binary: Option<&'static dyn Primitive> = match name {
            "add" => Some(&p::Add),
            "and" => Some(&p::And),
            "atan2" => Some(&p::Atan2),
            "divide" => Some(&p::Div),
            "maximum" => Some(&p::Max),
            "minimum" => Some(&p::Min),
            "multiply" => Some(&p::Mul),
            "or" => Some(&p::Or),
            "power" => Some(&p::Pow),
            "remainder" => Some(&p::Rem),
            "shift_left" => Some(&p::ShiftLeft),
            "shift_right_arithmetic" => Some(&p::ShiftRightArithmetic),
            "shift_right_logical" => Some(&p::ShiftRightLogical),
            "subtract" => Some(&p::Sub),
            "xor" => Some(&p::Xor),
            _ => None,
        };
        if let Some(primitive) = binary {
            let (a, b) = (self.x(0)?, self.x(1)?);
            let dtype = a.dtype();
            return one(match name {
                "add" | "maximum" if dtype == DType::Bool => a | b,
                "multiply" | "minimum" if dtype == DType::Bool => a & b,
                "maximum" | "minimum" if dtype.is_complex() => extremum(name, &a, &b),
                "atan2" if dtype.is_complex() => complex_angle(&a, &b),
                _ => apply(primitive, &[a, b]),
            });
        }
        match name {
            "compare" => self.compare(),
            "select" => {
                let (mask, a, b) = (self.x(0)?, self.x(1)?, self.x(2)?);
                one(apply(&p::Select, &[spread(&mask, a.shape()), a, b]))
            }
            "clamp" => {
                let (low, x, high) = (self.x(0)?, self.x(1)?, self.x(2)?);
                let (low, high) = (spread(&low, x.shape()), spread(&high, x.shape()));
                if x.dtype().is_complex() {
                    return one(extremum("minimum", &extremum("maximum", &low, &x), &high));
                }
                one(if x.dtype() == DType::Bool { (x | low) & high } else { apply(&p::Clamp, &[low, x, high]) })
            }
            "complex" => one(Array::complex(&self.x(0)?, &self.x(1)?)),
            "real" | "imag" => {
                let x = self.x(0)?;
                one(match (name, x.dtype().is_complex()) {
                    ("real", true) => x.real(),
                    ("imag", true) => x.imag(),
                    ("real", false) => x,
                    _ => like(&x, 0.0),
                })
            }
            "round_nearest_afz" => one(round_away(&self.x(0)?)),
            "convert" => one(convert(&self.x(0)?, self.result_dtype()?)),
            "reduce_precision" => self.reduce_precision(),
            _ => Ok(None),
        }
    }

    fn compare(&mut self) -> Answer {
        let (mut a, mut b) = (self.x(0)?, self.x(1)?);
        let word = self.word("comparison_direction").unwrap_or_default();
        let Some(direction) = direction(word) else {
            return Err(self.wrong(format!("there is no comparison `{word}`")));
        };
        if self.word("compare_type") == Some("TOTALORDER") && a.dtype().is_float() {
            (a, b) = (total_order(&a), total_order(&b));
        }
        if a.dtype().is_complex() && !matches!(direction, Direction::Eq | Direction::Ne) {
            let (ar, br, ai, bi) = (a.real(), b.real(), a.imag(), b.imag());
            let strict = match direction {
                Direction::Lt | Direction::Le => Direction::Lt,
                _ => Direction::Gt,
            };
            let of = |d, x: &Array, y: &Array| bind(Op::new(Compare { direction: d }), &[x.clone(), y.clone()]);
            return one(of(strict, &ar, &br) | (ar.eq(&br) & of(direction, &ai, &bi)));
        }
        one(bind(Op::new(Compare { direction }), &[a, b]))
    }

    /// Fewer bits of exponent and mantissa, rounded to nearest even; the steps of the specification's interpreter, on bits.
    fn reduce_precision(&mut self) -> Answer {
        let x = self.x(0)?;
        let (exponent, mantissa) = (self.index("exponent_bits")?, self.index("mantissa_bits")?);
        one(reduced_precision(&x, exponent as u32, mantissa as u32)?)
    }
}

/// How many bits a float's exponent and mantissa have, and the unsigned integer of its size.
pub(super) fn float_format(dtype: DType) -> Option<(u32, u32, DType)> {
    match dtype {
        DType::F16 => Some((5, 10, DType::U16)),
        DType::BF16 => Some((8, 7, DType::U16)),
        DType::F32 => Some((8, 23, DType::U32)),
        DType::F64 => Some((11, 52, DType::U64)),
        _ => None,
    }
}

fn reduced_precision(x: &Array, exponent: u32, mantissa: u32) -> Result<Array> {
    let Some((has_exponent, has_mantissa, bits_type)) = float_format(x.dtype()) else { return Ok(x.clone()) };
    let mut bits = x.bitcast(bits_type);
    let constant = |bits: &Array, v: u64| Array::full_scalar(bits.shape().clone(), Scalar::U64(v).cast(bits_type));
    if mantissa < has_mantissa {
        let dropped = has_mantissa - mantissa;
        let last = 1u64 << dropped;
        let last_bit = (&bits & &constant(&bits, last)).shift_right_logical(constant(&bits, u64::from(dropped)));
        let bias = last_bit + &constant(&bits, (last >> 1) - 1);
        bits = (&bits + &bias) & &constant(&bits, !(last - 1));
    }
    if exponent < has_exponent {
        let mask = ((1u64 << has_exponent) - 1) << has_mantissa;
        let sign = 1u64 << (has_exponent + has_mantissa);
        let (bias, reduced) = ((1u64 << (has_exponent - 1)) - 1, (1u64 << exponent.saturating_sub(1)) - 1);
        let power = &bits & &constant(&bits, mask);
        let too_large = power.gt(constant(&bits, (bias + reduced) << has_mantissa));
        let too_small = power.le(constant(&bits, (bias - reduced) << has_mantissa));
        let zero = &bits & &constant(&bits, sign);
        let infinite = &zero | &constant(&bits, mask);
        bits = too_large.select(&infinite, &bits);
        bits = too_small.select(&zero, &bits);
    }
    let rounded = bits.bitcast(x.dtype());
    let not_a_number = x.ne(x);
    let instead = if mantissa > 0 { x.clone() } else { like(x, f64::INFINITY) };
    not_a_number.select(&instead, &rounded).ok()
}

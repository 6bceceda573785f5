//! Functions of each element or each pair: remainders, lengths, logarithms of sums, signs, closeness.

use crate::array::operand::{broadcast_pair, checked};
use crate::array::{Array, Operand};
use crate::error::{Result, error};
use crate::types::{DType, Decision, Scalar};

/// Functions of two operands that broadcast together and have one dtype.
macro_rules! of_pairs {
    ($($(#[$doc:meta])* $name:ident = $core:ident;)*) => {
        impl Array {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, other: impl Operand) -> Array {
                match broadcast_pair(self, other) {
                    Ok((a, b)) => $core(&a, &b),
                    Err(e) => checked(Err(e.in_operation(stringify!($name)))),
                }
            }
        )*}
    };
}
of_pairs! {
    /// The remainder with the sign of the divisor; `%` has that of the dividend.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let x = Array::from([-7, 7]);
    /// assert_eq!(x.modulo(3).to_vec::<i32>().unwrap(), [2, 1]);
    /// assert_eq!((x % 3).to_vec::<i32>().unwrap(), [-1, 1]);
    /// ```
    #[doc(alias = "mod")]
    #[doc(alias = "remainder")]
    modulo = floored_remainder;
    /// The quotient rounded down to a whole number. Its derivative is zero. Of an infinity it is NaN, as the remainder is.
    #[doc(alias = "floor_divide")]
    floor_div = floored_quotient;
    /// The length of the vector of both, without overflow. At the origin its derivative is zero. That of an infinity and whatever is beside it, be it NaN, is infinite.
    hypot = length;
    /// The logarithm of the sum of both exponentials, without overflow. Its derivatives are right to any order, also where both are equal.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let x = Array::from(1000.0_f64);
    /// assert_eq!(x.logaddexp(1000.0).item::<f64>().unwrap(), 1000.0 + 2f64.ln());
    /// ```
    logaddexp = log_of_sum;
    /// As [`Array::logaddexp`], with powers of two.
    logaddexp2 = log2_of_sum;
    /// This with the sign of another, that of a zero too.
    copysign = signed_as;
    /// The larger of each pair; of NaN and a number, the number.
    fmax = larger_number;
    /// The smaller of each pair; of NaN and a number, the number.
    fmin = smaller_number;
    /// 0 where negative, 1 where positive, and the other where zero.
    heaviside = step_at_zero;
    /// Where both are true, or not zero.
    logical_and = both;
    /// Where one or both are true, or not zero.
    logical_or = either;
    /// Where one is true, or not zero, and the other is not.
    logical_xor = one_of_two;
}

#[track_caller]
fn floored_remainder(a: &Array, b: &Array) -> Array {
    let rest = a % b;
    if rest.dtype().is_unsigned() {
        return rest;
    }
    let across = rest.ne(0i32) & rest.lt(0i32).ne(b.lt(0i32));
    across.select(&rest + b, &rest)
}

#[track_caller]
fn floored_quotient(a: &Array, b: &Array) -> Array {
    let dtype = a.dtype();
    if dtype.is_unsigned() {
        return a / b;
    }
    let rest = a % b;
    let across = rest.ne(0i32) & rest.lt(0i32).ne(b.lt(0i32));
    if dtype.is_int() {
        let quotient = a / b;
        return across.select(&quotient - 1i32, &quotient);
    }
    // Without the remainder the quotient is a whole number up to its rounding: 1 / 0.1 is 10, but 0.1 fits into 1 nine times.
    let whole = ((a - &rest) / b).round();
    let lower = across.select(&whole - 1i32, &whole);
    // By zero the remainder is NaN, and the quotient infinite.
    b.eq(0i32).select(a / b, lower).stop_gradient()
}

#[track_caller]
fn length(a: &Array, b: &Array) -> Array {
    let (a_infinite, b_infinite) = (a.is_infinite(), b.is_infinite());
    let infinite = &a_infinite | &b_infinite;
    let (x, y) = (infinite.select(a.zeros_like(), a), infinite.select(b.zeros_like(), b));
    // The result does not depend on what is taken out: its derivatives would cancel.
    let size = x.abs().maximum(y.abs()).stop_gradient();
    let none = size.eq(0i32);
    let unit = (&none | size.is_nan()).select(size.ones_like(), &size);
    let (x, y) = (x / &unit, y / &unit);
    let square = &x * &x + &y * &y;
    let length = none.select(square.zeros_like(), none.select(square.ones_like(), &square).sqrt() * unit);
    // Each infinity is taken alone, since NaN beside it has no slope.
    let alone = |x: &Array, infinite: &Array| infinite.select(x, x.zeros_like()).abs();
    a_infinite.select(alone(a, &a_infinite), b_infinite.select(alone(b, &b_infinite), length))
}

/// Where `a` is larger the difference is taken from it, elsewhere to it. Each branch is smooth and right beyond the place where they meet, so derivatives
/// are right at that place too.
#[track_caller]
fn log_of_sum(a: &Array, b: &Array) -> Array {
    let larger = a.gt(b);
    // Equal infinities have no difference.
    let apart = (a.eq(b) & !a.is_finite()).select(a.zeros_like(), a - b);
    larger.select(a, b) + larger.select(-&apart, &apart).exp().log1p()
}

#[track_caller]
fn log2_of_sum(a: &Array, b: &Array) -> Array {
    log_of_sum(&(a * std::f64::consts::LN_2), &(b * std::f64::consts::LN_2)) * std::f64::consts::LOG2_E
}

#[track_caller]
fn signed_as(a: &Array, b: &Array) -> Array {
    // As a product, so that the derivative at zero has the sign too.
    let same = a.is_sign_negative().eq(b.is_sign_negative());
    same.select(a, -a)
}

#[track_caller]
fn larger_number(a: &Array, b: &Array) -> Array {
    let (a, b) = (a.is_nan().select(b, a), b.is_nan().select(a, b));
    a.maximum(b)
}

#[track_caller]
fn smaller_number(a: &Array, b: &Array) -> Array {
    let (a, b) = (a.is_nan().select(b, a), b.is_nan().select(a, b));
    a.minimum(b)
}

#[track_caller]
fn step_at_zero(a: &Array, b: &Array) -> Array {
    let one = a.ones_like();
    let side = a.lt(0i32).select(a.zeros_like(), a.gt(0i32).select(&one, b));
    a.is_nan().select(a, side)
}

#[track_caller]
fn both(a: &Array, b: &Array) -> Array {
    a.is_true() & b.is_true()
}

#[track_caller]
fn either(a: &Array, b: &Array) -> Array {
    a.is_true() | b.is_true()
}

#[track_caller]
fn one_of_two(a: &Array, b: &Array) -> Array {
    a.is_true() ^ b.is_true()
}

impl Array {
    /// Where true, or not zero.
    #[track_caller]
    pub(super) fn is_true(&self) -> Array {
        if self.dtype() == DType::Bool { self.clone() } else { self.ne(Array::scalar(Scalar::zero(self.dtype()))) }
    }

    /// Where false, or zero.
    #[track_caller]
    pub fn logical_not(&self) -> Array {
        !self.is_true()
    }

    /// Both [`Array::floor_div`] and [`Array::modulo`].
    #[doc(alias = "divmod")]
    #[track_caller]
    pub fn div_mod(&self, other: impl Operand) -> (Array, Array) {
        let other = other.into_operand().into_array();
        (self.floor_div(&other), self.modulo(&other))
    }

    /// sin(πx) / (πx), which is 1 at 0, with its derivatives there.
    #[track_caller]
    pub fn sinc(&self) -> Array {
        let x = self * std::f64::consts::PI;
        // Near zero by its series: the quotient has no derivative there. Six terms are exact to the last place below 0.1.
        let near = x.abs().lt(0.1_f64);
        let safe = near.select(x.ones_like(), &x);
        let small = near.select(&x, x.zeros_like());
        let square = &small * &small;
        let mut series = square.zeros_like();
        for c in [-1.0 / 39916800.0, 1.0 / 362880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0, 1.0_f64] {
            series = series * &square + c;
        }
        near.select(series, safe.sin() / safe)
    }

    /// Two to this power.
    #[track_caller]
    pub fn exp2(&self) -> Array {
        if !self.dtype().is_inexact() {
            return self.exp();
        }
        // By `pow`, which is exact at whole numbers; the product with ln 2 is not.
        self.full_like(2.0_f64).pow(self)
    }

    /// Degrees as radians.
    #[doc(alias = "deg2rad")]
    #[doc(alias = "radians")]
    #[track_caller]
    pub fn to_radians(&self) -> Array {
        self * (std::f64::consts::PI / 180.0)
    }

    /// Radians as degrees.
    #[doc(alias = "rad2deg")]
    #[doc(alias = "degrees")]
    #[track_caller]
    pub fn to_degrees(&self) -> Array {
        self * (180.0 / std::f64::consts::PI)
    }

    /// Where infinite, of either sign.
    #[doc(alias = "isinf")]
    #[track_caller]
    pub fn is_infinite(&self) -> Array {
        if !self.dtype().is_inexact() {
            return self.ne(self);
        }
        !self.is_finite() & !self.is_nan()
    }

    /// Where plus infinity.
    #[doc(alias = "isposinf")]
    #[track_caller]
    pub fn is_positive_infinity(&self) -> Array {
        self.is_infinite() & self.gt(0i32)
    }

    /// Where minus infinity.
    #[doc(alias = "isneginf")]
    #[track_caller]
    pub fn is_negative_infinity(&self) -> Array {
        self.is_infinite() & self.lt(0i32)
    }

    /// Where the sign is minus, that of a zero or a NaN too.
    #[doc(alias = "signbit")]
    #[track_caller]
    pub fn is_sign_negative(&self) -> Array {
        let signed = match self.dtype() {
            DType::F64 => DType::I64,
            DType::F32 => DType::I32,
            DType::F16 | DType::BF16 => DType::I16,
            _ => return self.lt(0i32),
        };
        self.bitcast(signed).lt(0i32)
    }

    /// Where the imaginary part is zero.
    #[doc(alias = "iscomplex")]
    #[doc(alias = "isreal")]
    #[track_caller]
    pub fn is_real(&self) -> Array {
        self.imag().eq(0i32)
    }

    /// Numbers in place of what is not finite: 0 for NaN, and the largest and lowest finite number for infinities.
    #[track_caller]
    pub fn nan_to_num(&self) -> Array {
        if !self.dtype().is_float() {
            return self.clone();
        }
        let most = Scalar::highest_finite(self.dtype());
        let (high, low) = (self.full_like(most), -self.full_like(most));
        let x = self.is_nan().select(self.zeros_like(), self);
        x.is_positive_infinity().select(high, x.is_negative_infinity().select(low, &x))
    }

    /// The whole part and the rest, which both have the sign of the number. The rest of an infinity is zero, as in C and NumPy.
    #[track_caller]
    pub fn modf(&self) -> (Array, Array) {
        let whole = self.trunc();
        let rest = self.is_infinite().select(self.zeros_like(), self - &whole);
        (rest.copysign(self), whole)
    }

    /// This times two to a whole power. Large powers are taken in two steps, so that neither overflows before the product does.
    #[track_caller]
    pub fn ldexp(&self, exponent: &Array) -> Array {
        let half = exponent.floor_div(2i32);
        let rest = (exponent - &half).cast(self.dtype());
        self * rest.exp2() * half.cast(self.dtype()).exp2()
    }

    /// A fraction of size between a half and one, and the power of two that it is multiplied with, as `i32`.
    #[track_caller]
    pub fn frexp(&self) -> (Array, Array) {
        checked_pair(self.try_frexp())
    }

    #[track_caller]
    fn try_frexp(&self) -> Result<(Array, Array)> {
        let ty = self.ty()?;
        if !ty.dtype().is_float() {
            return Err(
                error!(DType, "`frexp` takes floats apart, not {ty}").help("cast first, as in `x.cast(DType::F64)`")
            );
        }
        if ty.dtype() != DType::F64 {
            let (fraction, exponent) = self.try_cast(DType::F64)?.try_frexp()?;
            return Ok((fraction.try_cast(ty.dtype())?, exponent));
        }
        // A subnormal number is made a normal one first, by a power that comes off again.
        let subnormal = self.abs().lt(f64::MIN_POSITIVE);
        let x = subnormal.select(self * 2f64.powi(54), self);
        let exponent = ((x.bitcast(DType::I64) >> 52i64) & 0x7ffi64) - 1022i64 - subnormal.select(54i64, 0i64);
        let plain = self.is_finite() & self.ne(0.0_f64);
        let exponent = plain.select(exponent, 0i64).stop_gradient();
        let half = exponent.floor_div(2i64);
        let (first, second) = ((-&half).cast(DType::F64).exp2(), (half - &exponent).cast(DType::F64).exp2());
        let fraction = plain.select(self * first * second, self);
        Ok((fraction.ok()?, exponent.cast(DType::I32).ok()?))
    }

    /// The distance to the next number further from zero.
    #[track_caller]
    pub fn spacing(&self) -> Array {
        let away = self.abs();
        let next = away.nextafter(f64::INFINITY) - &away;
        next.copysign(self)
    }

    /// Where two numbers differ by at most `atol + rtol * |other|`. Equal infinities are close, NaN is close to nothing.
    #[doc(alias = "isclose")]
    #[track_caller]
    pub fn is_close(&self, other: impl Operand, rtol: f64, atol: f64) -> Array {
        match broadcast_pair(self, other) {
            Ok((a, b)) => close(&a, &b, rtol, atol),
            Err(e) => checked(Err(e.in_operation("is_close"))),
        }
    }

    /// Whether all numbers are close, as [`Array::is_close`] says it.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let x = Array::from([1.0_f64, 2.0]);
    /// assert!(x.all_close(&(&x + 1e-12), 1e-9, 0.0).item::<bool>().unwrap());
    /// ```
    #[doc(alias = "allclose")]
    #[track_caller]
    pub fn all_close(&self, other: impl Operand, rtol: f64, atol: f64) -> Array {
        self.is_close(other, rtol, atol).all()
    }

    /// Whether two arrays have one shape and equal elements. NaN is equal to nothing.
    #[track_caller]
    pub fn array_equal(&self, other: &Array) -> Array {
        checked(self.try_array_equal(other))
    }

    #[track_caller]
    fn try_array_equal(&self, other: &Array) -> Result<Array> {
        let (a, b) = (self.ty()?.shape(), other.ty()?.shape());
        let differ = a.iter().zip(b.iter()).any(|(x, y)| x.equals(y) == Decision::No);
        if a.rank() != b.rank() || differ {
            return Ok(Array::from(false));
        }
        self.eq(other).all().ok()
    }

    /// Whether two arrays are equal after broadcasting.
    #[track_caller]
    pub fn array_equiv(&self, other: &Array) -> Array {
        match crate::array::operand::broadcast_shapes(self.shape(), other.shape()) {
            Some(_) => self.eq(other).all(),
            None => Array::from(false),
        }
    }
}

#[track_caller]
fn close(a: &Array, b: &Array, rtol: f64, atol: f64) -> Array {
    if !a.dtype().is_inexact() {
        return close(&a.cast(DType::F64), &b.cast(DType::F64), rtol, atol);
    }
    let near = (a - b).abs().le(b.abs() * rtol + atol);
    // An infinite bound would let every number pass.
    a.eq(b) | (near & b.abs().is_finite())
}

/// Both results of a function of two, or the error in both.
#[track_caller]
pub(super) fn checked_pair(result: Result<(Array, Array)>) -> (Array, Array) {
    match result {
        Ok(both) => both,
        Err(e) => {
            let failed = checked(Err(e));
            (failed.clone(), failed)
        }
    }
}

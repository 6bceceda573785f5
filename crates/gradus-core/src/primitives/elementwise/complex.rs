//! Complex functions that hold everywhere: their textbook formulas overflow, cancel or lose the smaller part.
//!
//! The inverse functions follow Hull, Fairgrieve and Tang, "Implementing the complex arcsine and arccosine functions
//! using exception handling" (1997). Signs of zeros choose the side of a branch cut, as in C. Numbers of two `f32` are
//! computed in `f64`, where none of this is difficult, and rounded.

use std::f64::consts::{FRAC_PI_2, LN_2, PI};

use super::number::Number;
use crate::math::{self, Plain};
use crate::types::Complex;

/// What the complex crate lacks, or has with formulas that fail.
pub(crate) trait ComplexSpecial: Sized {
    fn expm1_(self) -> Self;
    fn log_(self) -> Self;
    fn log1p_(self) -> Self;
    fn logistic_(self) -> Self;
    fn sin_(self) -> Self;
    fn cos_(self) -> Self;
    fn sinh_(self) -> Self;
    fn cosh_(self) -> Self;
    fn rsqrt_(self) -> Self;
    fn tan_(self) -> Self;
    fn tanh_(self) -> Self;
    fn asin_(self) -> Self;
    fn acos_(self) -> Self;
    fn atan_(self) -> Self;
    fn asinh_(self) -> Self;
    fn acosh_(self) -> Self;
    fn atanh_(self) -> Self;
    /// By the principal logarithm; 0^0 is 1, and 0 to a power with positive real part is 0.
    fn complex_power(self, other: Self) -> Self;
}

macro_rules! through_f64 {
    ($($name:ident),*) => {$(
        fn $name(self) -> Self {
            narrow(wide(self).$name())
        }
    )*};
}

fn wide(z: Complex<f32>) -> Complex<f64> {
    Complex::new(z.re as f64, z.im as f64)
}

fn narrow(z: Complex<f64>) -> Complex<f32> {
    Complex::new(z.re as f32, z.im as f32)
}

impl ComplexSpecial for Complex<f32> {
    through_f64!(
        expm1_, log_, log1p_, logistic_, sin_, cos_, sinh_, cosh_, rsqrt_, tan_, tanh_, asin_, acos_, atan_, asinh_,
        acosh_, atanh_
    );
    fn complex_power(self, other: Self) -> Self {
        narrow(wide(self).complex_power(wide(other)))
    }
}

/// What compiled code does on parts, in the same steps: see `pairs`.
pub(crate) trait ByParts: Sized {
    type Part;
    /// e to a power.
    fn exp_(self) -> Self;
    /// The absolute value.
    fn length(self) -> Self::Part;
}

macro_rules! by_parts {
    ($($t:ident),*) => {$(
        impl ByParts for Complex<$t> {
            type Part = $t;
            fn exp_(self) -> Self {
                let (re, im) = (self.re, self.im);
                if re == $t::NEG_INFINITY && !im.is_finite() {
                    return Complex::new(0.0, 0.0);
                }
                if re == $t::INFINITY && (im == 0.0 || !im.is_finite()) {
                    return Complex::new(re, if im.is_infinite() { $t::NAN } else { im });
                }
                if re.is_nan() && im == 0.0 {
                    return self;
                }
                let m = &mut Plain::<$t>::default();
                let size = math::exp(m, re);
                Complex::new(size * math::cos(m, im), size * math::sin(m, im))
            }
            fn length(self) -> $t {
                let (a, b) = (self.re.abs(), self.im.abs());
                if a.is_infinite() || b.is_infinite() {
                    return $t::INFINITY;
                }
                let (large, small) = if a > b { (a, b) } else { (b, a) };
                // Beside NaN a zero is the larger one, so both are asked.
                if a + b == 0.0 {
                    return 0.0;
                }
                let ratio = small / large;
                large * (1.0 + ratio * ratio).sqrt()
            }
        }
    )*};
}
by_parts!(f32, f64);

/// From here on a number this large, one added to its square changes nothing.
const LARGE: f64 = 1e16;

/// The logarithm of |x + iy|.
fn log_modulus(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        // An infinity beside it has infinite length all the same.
        return x.hypot(y);
    }
    let (large, small) = (x.abs().max(y.abs()), x.abs().min(y.abs()));
    if large > 1e300 && large.is_finite() {
        // The length itself may overflow.
        return (large / 2.0).hypot(small / 2.0).ln() + LN_2;
    }
    if !(0.5..2.0).contains(&large) {
        return large.hypot(small).ln();
    }
    // |z|² - 1 by squares with their rounding errors, so that little is lost beside the unit circle.
    let (p, q) = (large * large, small * small);
    let errors = large.mul_add(large, -p) + small.mul_add(small, -q);
    ((p - 1.0) + q + errors).ln_1p() / 2.0
}

/// The product of a sine or cosine and a hyperbolic one: on an axis there is nothing of it, however far out.
fn on_axis(turn: f64, growth: f64) -> f64 {
    if turn == 0.0 && growth.is_infinite() { turn * growth.signum() } else { turn * growth }
}

/// The parts of asin and acos of `x + iy` for `x, y >= 0`: both real parts, and the imaginary part of asin, which acos
/// has with the other sign.
fn arc(x: f64, y: f64) -> (f64, f64, f64) {
    if x.max(y) > LARGE || x.is_nan() || y.is_nan() {
        return (x.atan2(y), y.atan2(x), log_modulus(x, y) + LN_2);
    }
    if y <= f64::EPSILON / 2.0 * (x - 1.0).abs() || (x == 1.0 && y == 0.0) {
        // So near to the real axis that the imaginary part is a first-order correction.
        return if x <= 1.0 {
            let slope = if y == 0.0 { y } else { y / ((1.0 - x) * (1.0 + x)).sqrt() };
            (x.asin(), x.acos(), slope)
        } else {
            let beyond = ((x - 1.0) * (x + 1.0)).sqrt();
            (FRAC_PI_2, y / beyond, ((x - 1.0) + beyond).ln_1p())
        };
    }
    // The sum of the distances to the foci ±1 is 2a, and Re asin = asin(x/a), Im asin = acosh(a).
    let (r, s) = ((x + 1.0).hypot(y), (x - 1.0).hypot(y));
    let a = ((r + s) / 2.0).max(1.0);
    // (distance - difference) / 2 without cancellation: y² = (s - d)(s + d) for the legs d and y.
    let gap = |s: f64, d: f64| if d > 0.0 { y * (y / (s + d)) / 2.0 } else { (s - d) / 2.0 };
    let b = x / a;
    let (asin, acos) = if b <= 0.6417 {
        (b.asin(), b.acos())
    } else {
        let beside = ((a + x) * (gap(r, x + 1.0) + gap(s, x - 1.0))).sqrt();
        (x.atan2(beside), beside.atan2(x))
    };
    let im = if a <= 1.5 {
        let over = gap(r, x + 1.0) + gap(s, 1.0 - x);
        (over + (over * (a + 1.0)).sqrt()).ln_1p()
    } else {
        (a + ((a - 1.0) * (a + 1.0)).sqrt()).ln()
    };
    (asin, acos, im)
}

impl ComplexSpecial for Complex<f64> {
    fn expm1_(self) -> Self {
        // e^(a+ib) - 1 = expm1(a) cos b - 2 sin²(b/2) + i e^a sin b, without cancellation.
        let half = (self.im / 2.0).sin();
        Complex::new(self.re.exp_m1() * self.im.cos() - 2.0 * half * half, self.re.exp() * self.im.sin())
    }
    fn log_(self) -> Self {
        Complex::new(log_modulus(self.re, self.im), self.im.atan2(self.re))
    }
    fn log1p_(self) -> Self {
        let one = self + 1.0;
        // |1+z|² - 1 = a (2 + a) + b², without cancellation for small z.
        let re = if self.norm() < 0.5 {
            (self.re * (2.0 + self.re) + self.im * self.im).ln_1p() / 2.0
        } else {
            log_modulus(one.re, one.im)
        };
        Complex::new(re, one.im.atan2(one.re))
    }
    fn logistic_(self) -> Self {
        // The power that does not overflow.
        let one = Complex::new(1.0, 0.0);
        if self.re >= 0.0 {
            return one.over((-self).exp() + one);
        }
        let power = self.exp();
        power.over(power + one)
    }
    fn sin_(self) -> Self {
        let (x, y) = (self.re, self.im);
        Complex::new(on_axis(x.sin(), y.cosh()), on_axis(x.cos(), y.sinh()))
    }
    fn cos_(self) -> Self {
        let (x, y) = (self.re, self.im);
        Complex::new(on_axis(x.cos(), y.cosh()), -on_axis(x.sin(), y.sinh()))
    }
    fn sinh_(self) -> Self {
        let (x, y) = (self.re, self.im);
        Complex::new(on_axis(y.cos(), x.sinh()), on_axis(y.sin(), x.cosh()))
    }
    fn cosh_(self) -> Self {
        let (x, y) = (self.re, self.im);
        Complex::new(on_axis(y.cos(), x.cosh()), on_axis(y.sin(), x.sinh()))
    }
    fn rsqrt_(self) -> Self {
        Complex::new(1.0, 0.0).over(self.sqrt())
    }
    fn tan_(self) -> Self {
        // tan z = -i tanh iz.
        let w = Complex::new(-self.im, self.re).tanh_();
        Complex::new(w.im, -w.re)
    }
    fn tanh_(self) -> Self {
        let (x, y) = (self.re, self.im);
        if x.abs() > 22.0 {
            // 1 to the last digit; the rest of the imaginary part is 4 sin y cos y e^(-2|x|).
            let small = (-x.abs()).exp();
            let turn = if y.is_infinite() { 0.0 } else { y.sin() * y.cos() };
            return Complex::new(1f64.copysign(x), 4.0 * turn * small * small);
        }
        // With t = tan y: (1 + t²) sinh x cosh x / (1 + (1 + t²) sinh² x), and t over the same.
        let (t, s) = (y.tan(), x.sinh());
        let square = 1.0 + t * t;
        let below = 1.0 + square * s * s;
        Complex::new(square * s * x.cosh() / below, t / below)
    }
    fn asin_(self) -> Self {
        let (asin, _, im) = arc(self.re.abs(), self.im.abs());
        Complex::new(asin.copysign(self.re), im.copysign(self.im))
    }
    fn acos_(self) -> Self {
        let (_, acos, im) = arc(self.re.abs(), self.im.abs());
        let re = if self.re.is_sign_negative() { PI - acos } else { acos };
        Complex::new(re, -im.copysign(self.im))
    }
    fn atan_(self) -> Self {
        // atan z = -i atanh iz.
        let w = Complex::new(-self.im, self.re).atanh_();
        Complex::new(w.im, -w.re)
    }
    fn asinh_(self) -> Self {
        // asinh z = -i asin iz.
        let (asin, _, im) = arc(self.im.abs(), self.re.abs());
        Complex::new(im.copysign(self.re), asin.copysign(self.im))
    }
    fn acosh_(self) -> Self {
        // acosh z = ±i acos z, with the sign that makes the real part positive.
        let w = self.acos_();
        Complex::new(w.im.abs(), w.re.copysign(self.im))
    }
    fn atanh_(self) -> Self {
        let (x, y) = (self.re.abs(), self.im.abs());
        if (x.is_nan() || y.is_nan()) && !y.is_infinite() {
            // On the real axis, and infinitely far from it, at least the real part is known.
            let re = if x == 0.0 || x.is_infinite() { 0_f64.copysign(self.re) } else { f64::NAN };
            return Complex::new(re, f64::NAN);
        }
        let (re, im) = if x.max(y) > LARGE {
            // 1/z and a quarter turn.
            let length = x.hypot(y);
            (if length.is_infinite() { 0.0 } else { x / length / length }, FRAC_PI_2)
        } else {
            let near = (1.0 - x).hypot(y);
            let ratio = 4.0 * x / (near * near);
            // Beside the pole the square of a small distance vanishes; its logarithm does not.
            let re = if ratio < 1e8 {
                ratio.ln_1p() / 4.0
            } else {
                (log_modulus(1.0 + x, y) - log_modulus(1.0 - x, y)) / 2.0
            };
            (re, (2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y) / 2.0)
        };
        Complex::new(re.copysign(self.re), im.copysign(self.im))
    }
    fn complex_power(self, other: Self) -> Self {
        let zero = Complex::new(0.0, 0.0);
        if other == zero {
            return Complex::new(1.0, 0.0);
        }
        if self == zero {
            return if other.re > 0.0 { zero } else { Complex::new(f64::NAN, f64::NAN) };
        }
        (self.log_() * other).exp()
    }
}

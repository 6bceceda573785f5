//! Integrals that have names: of sine and cosine, of exponentials, of logarithms, of the normal distribution.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use gradus_core::{Array, DType, Operand};

use super::exp1;
use super::series::{self, nested, polynomial};
use crate::formula::{computed, formulas, nan, number, undefined};

formulas! {
    /// The complementary error function times e^(x²), which does not vanish.
    erfcx(x) = {
        // Long before e^(x²) is no number any more, and as late as the series has all digits.
        let edge = if x.dtype() == DType::F64 { 10.0 } else { 4.5 };
        let far = x.gt(edge);
        let near = far.select(number(x, 0.0), x);
        let inside = (&near * &near).exp() * near.erfc();
        // 1 / (x √π) (1 - 1/(2x²) + 1·3/(2x²)² - …)
        let large = far.select(x, number(x, edge));
        let square = 0.5_f64 / (&large * &large);
        let beyond = nested(&square, (1..14).map(|k| -f64::from(2 * k - 1))) / (large * PI.sqrt());
        far.select(beyond, inside)
    };
    /// The integral of Dawson, e^(-x²) times that of e^(t²) from 0 to x.
    #[doc(alias = "dawson")]
    dawsn(x) = {
        let far = x.abs().gt(6i32);
        let near = far.select(number(x, 0.0), x);
        // e^(-x²) Σ x^(2k+1) / (k! (2k+1)): no term has another sign.
        let square = &near * &near;
        let sum = series::exponential(&square, |k| 1i32 / (k * 2i32 + 1i32));
        let inside = (-&square).exp() * &near * sum;
        let large = far.select(x, number(x, 6.0));
        let inverse = 0.5_f64 / (&large * &large);
        let beyond = nested(&inverse, (1..28).map(|k| f64::from(2 * k - 1))) * 0.5_f64 / large;
        far.select(beyond, inside)
    };
    /// The exponential integral Ei(x), of e^t / t from minus infinity to x.
    expi(x) = {
        let above = x.gt(0i32);
        let below = exp1(above.select(number(x, 1.0), -x));
        let far = x.gt(40i32);
        let near = (&above & !&far).select(x, number(x, 1.0));
        // γ + log x + Σ x^k / (k k!)
        let sum = series::exponential(&near, |k| {
            let first = k.eq(0i32);
            first.select(number(k, 0.0), 1i32 / first.select(number(k, 1.0), k))
        });
        let inside = near.log() + 0.577_215_664_901_532_9_f64 + sum;
        let large = far.select(x, number(x, 50.0));
        let beyond = large.exp() / &large * nested(&(1i32 / &large), (1..38).map(f64::from));
        let positive = far.select(beyond, inside);
        let value = above.select(positive, -below);
        x.eq(0i32).select(number(x, f64::NEG_INFINITY), value)
    };
    /// The integral of log t / (1 - t) from 1 to x, the dilogarithm of 1 - x, for x that are not negative.
    spence(x) = {
        let below = x.lt(0i32);
        let zero = x.eq(0i32);
        let x0 = (&below | &zero).select(number(x, 1.0), x);
        // Above 1.5 by the reciprocal, below 0.5 by the reflection; the series takes what is between.
        let large = x.gt(1.5_f64);
        let y = large.select(1i32 / &x0, &x0);
        let near = y.lt(0.5_f64);
        let z = near.select(1i32 - &y, &y);
        let u = -z.log();
        let square = &u * &u;
        let terms = [
            1.0,
            2.777_777_777_777_777_6e-2,
            -2.777_777_777_777_778e-4,
            4.724_111_866_969_01e-6,
            -9.185_773_074_661_964e-8,
            1.897_886_998_897_1e-9,
            -4.064_761_645_144_226e-11,
            8.921_691_020_456_453e-13,
            -1.993_929_586_072_108e-14,
            4.518_980_029_619_918e-16,
            -1.035_651_761_218_124_7e-17,
        ];
        let series = &u * polynomial(&square, terms.into_iter()) - &square * 0.25_f64;
        let other = near.select(1i32 - &z, number(x, 0.5));
        let reflected = PI * PI / 6.0 - other.log() * (-&other).log1p() - &series;
        let inner = near.select(reflected, series);
        let log = x0.log();
        let value = large.select(&log * &log * -0.5_f64 - &inner, inner);
        below.select(nan(x), zero.select(number(x, PI * PI / 6.0), value))
    };
    /// The function T(h, a) of Owen: the integral of e^(-h²(1+t²)/2) / (1+t²) from 0 to a, divided by 2π.
    owens_t(h, a) = {
        let (size, slope) = (h.abs(), a.abs());
        let upright = slope.eq(f64::INFINITY);
        let slope = upright.select(number(a, 1.0), slope);
        let steep = slope.gt(1i32);
        let inner = steep.select(1i32 / steep.select(&slope, number(a, 1.0)), &slope);
        let height = steep.select(&size * steep.select(&slope, number(a, 1.0)), &size);
        let part = quadrature(&upright.select(number(h, 0.0), &height), &inner);
        // For a steep line what it leaves of both tails.
        let (p, q) = ((&size * FRAC_1_SQRT_2).erfc() * 0.5_f64, (&height * FRAC_1_SQRT_2).erfc() * 0.5_f64);
        let other = (&p + &q) * 0.5_f64 - &p * q - &part;
        // An upright line leaves half of a tail.
        let value = upright.select(p * 0.5_f64, steep.select(other, part));
        a.lt(0i32).select(-&value, value)
    };
}

/// The integral by the rule of Gauss and Legendre, whose points all elements share.
fn quadrature(h: &Array, a: &Array) -> Array {
    let square = h * h * -0.5_f64;
    let mut sum = number(h, 0.0);
    for (point, weight) in gauss(40) {
        let t = a * (0.5 * (point + 1.0));
        let one = &t * &t + 1i32;
        sum += (&square * &one).exp() / one * weight;
    }
    sum * a * (0.25 / PI)
}

/// Points and weights of the rule of Gauss and Legendre with n points between -1 and 1, by Newton's method.
fn gauss(n: usize) -> Vec<(f64, f64)> {
    let point = |i: usize| {
        let mut x = (PI * (i as f64 + 0.75) / (n as f64 + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..8 {
            let (mut before, mut value) = (1.0, x);
            for k in 2..=n {
                let k = k as f64;
                (before, value) = (value, ((2.0 * k - 1.0) * x * value - (k - 1.0) * before) / k);
            }
            slope = n as f64 * (x * value - before) / (x * x - 1.0);
            x -= value / slope;
        }
        (x, 2.0 / ((1.0 - x * x) * slope * slope))
    };
    (0..n).map(point).collect()
}

/// The integrals of sin(πt²/2) and of cos(πt²/2) from 0 to x.
#[track_caller]
pub fn fresnel(x: &Array) -> (Array, Array) {
    (
        computed("fresnel", [x.into_operand()], |[x]| spiral(x).0),
        computed("fresnel", [x.into_operand()], |[x]| spiral(x).1),
    )
}

/// By power series up to 1.6, by the continued fraction of Γ(1/2, -iπx²/2) beyond.
fn spiral(x: &Array) -> (Array, Array) {
    let size = x.abs();
    let near = size.le(1.6_f64);
    let small = near.select(&size, number(x, 1.0));
    let angle = &small * &small * (PI / 2.0);
    let square = -(&angle * &angle);
    // Σ (-1)^k y^n / (n! (2n + 1)), over even n and over odd n.
    let coefficients = |odd: i32| {
        let term = |k: i32| {
            let n = 2 * k + odd;
            1.0 / ((1..=n).map(f64::from).product::<f64>() * f64::from(2 * n + 1))
        };
        (0..20).map(term).collect::<Vec<f64>>()
    };
    let cosine = &small * polynomial(&square, coefficients(0).into_iter());
    let sine = small * angle * polynomial(&square, coefficients(1).into_iter());
    let large = (&near | !size.is_finite()).select(number(x, 2.0), &size);
    let angle = &large * &large * (PI / 2.0);
    let turned = Array::complex(&angle.zeros_like(), &-&angle);
    let fraction = series::upper(&Array::from(0.5_f64).cast(turned.dtype()), &turned);
    let (c, s, f, g) = (angle.cos(), angle.sin(), fraction.real(), fraction.imag());
    let half = large * 0.5_f64;
    let far_cosine = 0.5_f64 - &half * (&c * &f - &s * &g);
    let far_sine = 0.5_f64 - half * (c * g + s * f);
    let end = size.eq(f64::INFINITY);
    let limit = number(x, 0.5);
    let sine = near.select(sine, end.select(&limit, far_sine)).copysign(x);
    let cosine = near.select(cosine, end.select(&limit, far_cosine)).copysign(x);
    let none = x.is_nan();
    let undefined = undefined(x, &none);
    (none.select(&undefined, sine), none.select(&undefined, cosine))
}

/// The integrals of sin t / t from 0 to x, and of cos t / t from infinity to x, for positive x.
#[track_caller]
pub fn sici(x: &Array) -> (Array, Array) {
    (computed("sici", [x.into_operand()], |[x]| both(x).0), computed("sici", [x.into_operand()], |[x]| both(x).1))
}

/// By power series up to 4, by the continued fraction of the exponential integral of ix beyond.
fn both(x: &Array) -> (Array, Array) {
    let size = x.abs();
    let near = size.le(4i32);
    let small = near.select(&size, number(x, 1.0));
    let square = -(&small * &small);
    // Σ (-x²)^k / ((2k+1) (2k+1)!) and Σ (-x²)^k / (2k (2k)!)
    let coefficients = |odd: i32| {
        let mut factorial = 1.0;
        let mut all = Vec::new();
        for k in 0..22 {
            let n = 2 * k + odd;
            if n > 0 {
                factorial *= if n == 1 { 1.0 } else { f64::from(n) * f64::from(n - 1) };
                all.push(1.0 / (f64::from(n) * factorial));
            } else {
                all.push(0.0);
            }
        }
        all
    };
    let sine = &small * polynomial(&square, coefficients(1).into_iter());
    let positive = small.gt(0i32).select(&small, number(x, 1.0));
    let cosine = positive.log() + 0.577_215_664_901_532_9_f64 + polynomial(&square, coefficients(0).into_iter());
    let cosine = small.gt(0i32).select(cosine, number(x, f64::NEG_INFINITY));
    let large = (near | !size.is_finite()).select(number(x, 8.0), &size);
    let turned = Array::complex(&large.zeros_like(), &large);
    let fraction = series::upper(&Array::from(0i32).cast(turned.dtype()), &turned);
    // e^(-ix) (f + ig)
    let (c, s, f, g) = (large.cos(), large.sin(), fraction.real(), fraction.imag());
    let (re, im) = (&c * &f + &s * &g, &c * &g - &s * &f);
    let near = size.le(4i32);
    let end = size.eq(f64::INFINITY);
    let sine = near.select(sine, end.select(number(x, PI / 2.0), im + PI / 2.0));
    let cosine = near.select(cosine, end.select(number(x, 0.0), -re));
    let cosine = x.lt(0i32).select(nan(x), cosine);
    let none = x.is_nan();
    let undefined = undefined(x, &none);
    let sine = x.lt(0i32).select(-&sine, &sine);
    (none.select(&undefined, sine), none.select(&undefined, cosine))
}

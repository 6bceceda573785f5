//! Real special functions in `f64` for the reference interpreter: the oracle needs them accurate and total.
//!
//! Every function answers every input (NaN, infinities, poles) without panicking. Accuracies are in units in the last
//! place of the exact result, measured against mpmath on dense random points; "absolute" is said where a function
//! crosses zero and the relative error is unbounded. The `_f32` versions evaluate in `f64` and round once.

use std::cmp::Ordering;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// `√π / 2`.
const HALF_SQRT_PI: f64 = 0.886226925452758;

/// AS 241, numerator for |x| ≤ 0.85.
const CENTRE_P: [f64; 8] = [
    3.3871328727963665,
    133.14166789178438,
    1971.5909503065513,
    13731.69376550946,
    45921.95393154987,
    67265.7709270087,
    33430.57558358813,
    2509.0809287301227,
];

/// AS 241, denominator for |x| ≤ 0.85.
const CENTRE_Q: [f64; 8] = [
    1.0,
    42.31333070160091,
    687.1870074920579,
    5394.196021424751,
    21213.794301586597,
    39307.89580009271,
    28729.085735721943,
    5226.495278852854,
];

/// AS 241, numerator for the tail to 1 - |x| = 2e⁻²⁵.
const NEAR_P: [f64; 8] = [
    1.4234371107496835,
    4.630337846156546,
    5.769497221460691,
    3.6478483247632045,
    1.2704582524523684,
    0.2417807251774506,
    0.022723844989269184,
    0.0007745450142783414,
];

/// AS 241, denominator for the tail to 1 - |x| = 2e⁻²⁵.
const NEAR_Q: [f64; 8] = [
    1.0,
    2.053191626637759,
    1.6763848301838038,
    0.6897673349851,
    0.14810397642748008,
    0.015198666563616457,
    0.0005475938084995345,
    1.0507500716444169e-09,
];

/// AS 241, numerator for the far tail.
const FAR_P: [f64; 8] = [
    6.657904643501103,
    5.463784911164114,
    1.7848265399172913,
    0.29656057182850487,
    0.026532189526576124,
    0.0012426609473880784,
    2.7115555687434876e-05,
    2.0103343992922881e-07,
];

/// AS 241, denominator for the far tail.
const FAR_Q: [f64; 8] = [
    1.0,
    0.599832206555888,
    0.1369298809227358,
    0.014875361290850615,
    0.0007868691311456133,
    1.8463183175100548e-05,
    1.421511758316446e-07,
    2.0442631033899397e-15,
];

/// Boost.Math, numerator of `ψ(x) / (x - root) - 0.9955…` in `x - 1`.
const DIGAMMA_P: [f64; 6] = [
    0.25479851061131553,
    -0.3255503118680449,
    -0.6503185377089651,
    -0.28919126444774784,
    -0.04525132144873906,
    -0.002071332116774595,
];

/// Boost.Math, denominator of `ψ(x) / (x - root) - 0.9955…` in `x - 1`.
const DIGAMMA_Q: [f64; 7] = [
    1.0,
    2.076711702373047,
    1.4606242909763516,
    0.43593529692665967,
    0.054151797245674226,
    0.0021284987017821146,
    -5.578984132167551e-07,
];

/// `B₂ⱼ / 2j` from `j = 1`.
const DIGAMMA_ASYMPTOTIC: [f64; 8] = [
    0.08333333333333333,
    -0.008333333333333333,
    0.003968253968253968,
    -0.004166666666666667,
    0.007575757575757576,
    -0.021092796092796094,
    0.08333333333333333,
    -0.4432598039215686,
];

/// `B₂ⱼ / (2j)!` from `j = 1`.
const ZETA_TAIL: [f64; 14] = [
    0.08333333333333333,
    -0.001388888888888889,
    3.306878306878307e-05,
    -8.267195767195768e-07,
    2.08767569878681e-08,
    -5.284190138687493e-10,
    1.3382536530684679e-11,
    -3.3896802963225827e-13,
    8.586062056277845e-15,
    -2.174868698558062e-16,
    5.5090028283602295e-18,
    -1.3954464685812522e-19,
    3.534707039629467e-21,
    -8.953517427037546e-23,
];

/// Evaluates `c[0] + c[1] x + c[2] x² + …` by Horner's rule.
fn poly(x: f64, c: &[f64]) -> f64 {
    c.iter().rev().fold(0.0, |acc, &k| acc * x + k)
}

/// Inverse error function; Wichura's rational approximations (AS 241, PPND16) to the normal quantile and one Newton
/// step, below 1.5 ulp.
///
/// `erf_inv(x) = Φ⁻¹((1 + x) / 2) / √2`. The centre is a rational function in `x` itself; the tails take `1 - |x|`,
/// which is exact there, so nothing cancels next to 0 or next to the ends.
pub fn erf_inv(x: f64) -> f64 {
    let a = x.abs();
    if a >= 1.0 {
        return if a == 1.0 { x * f64::INFINITY } else { f64::NAN };
    }
    if a < 1e-8 {
        // The next term of the series is smaller by πx²/12; this also keeps subnormals and the sign of zero.
        return x * HALF_SQRT_PI;
    }
    let tail = 1.0 - a;
    let y = if a <= 0.85 {
        // AS 241 works in q = x / 2.
        let r = 0.180625 - 0.25 * a * a;
        0.5 * a * poly(r, &CENTRE_P) / poly(r, &CENTRE_Q)
    } else {
        let r = (-(0.5 * tail).ln()).sqrt();
        if r <= 5.0 {
            poly(r - 1.6, &NEAR_P) / poly(r - 1.6, &NEAR_Q)
        } else {
            poly(r - 5.0, &FAR_P) / poly(r - 5.0, &FAR_Q)
        }
    };
    let y = y * FRAC_1_SQRT_2;
    // The rational functions alone are off by up to 5 ulp; what is left over is measured where it does not cancel.
    let short = if a <= 0.5 { a - libm::erf(y) } else { libm::erfc(y) - tail };
    (y + short * HALF_SQRT_PI * (y * y).exp()).copysign(x)
}

/// `ln|Γ(x)|`; `libm` (FreeBSD msun), below 2 ulp for `x > 0`; for `x < 0` absolute, some ulp of `ln Γ(1 - x)`.
///
/// Poles and both infinities give +∞.
pub fn lgamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// `ψ(x) = Γ'(x) / Γ(x)`; recurrence onto [1, 2], a rational function around the root there, the asymptotic series from
/// 10, reflection below 0; below 3.5 ulp for `x > 0` (the root included) and next to the poles,
/// around the negative roots absolute, a few ulp of `ψ(1 - x)`.
///
/// `ψ(±0) = ∓∞`; the poles at the negative integers have no one-sided sign to go by and give NaN, as does -∞.
pub fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return -1.0 / x;
    }
    if x > 0.0 {
        return digamma_positive(x);
    }
    // ψ(x) = ψ(1 - x) - π cot πx, and cot has period 1: the distance to the nearest pole is exact.
    let t = x - x.round();
    if t == 0.0 || !x.is_finite() {
        return f64::NAN;
    }
    digamma_positive(1.0 - x) - pi_cot_pi(t)
}

/// `π cot πt` for `0 < |t| ≤ 1/2`, to a few ulp up to the pole and down to the zero.
fn pi_cot_pi(t: f64) -> f64 {
    if t.abs() < 1e-8 {
        // Also keeps `πt` out of the subnormals, where it would lose digits.
        1.0 / t - PI * PI / 3.0 * t
    } else if t.abs() <= 0.25 {
        PI / (PI * t).tan()
    } else {
        // Near the zero at 1/2 the small quantity must be the argument, not the result of rounding `πt`.
        (PI * (PI * (0.5 - t.abs())).tan()).copysign(t)
    }
}

/// `ψ(x)` for `x > 0`.
fn digamma_positive(mut x: f64) -> f64 {
    if x >= 10.0 {
        let z = 1.0 / x / x;
        return x.ln() - (0.5 / x + z * poly(z, &DIGAMMA_ASYMPTOTIC));
    }
    let mut shift = 0.0;
    while x > 2.0 {
        x -= 1.0; // exact, and the reciprocals come smallest first
        shift += 1.0 / x;
    }
    if x < 1.0 {
        shift = -1.0 / x;
        x += 1.0;
    }
    // Boost.Math's form for [1, 2]: factoring out the root, held in three parts, keeps full relative accuracy at it.
    let g = x - 1569415565.0 / 1073741824.0 - 381566830.0 / 1073741824.0 / 1073741824.0 - 9.016312093258696e-20;
    let r = poly(x - 1.0, &DIGAMMA_P) / poly(x - 1.0, &DIGAMMA_Q);
    shift + (g * 0.995_581_626_892_089_8 + g * r)
}

/// `ψ⁽ⁿ⁾(x)`, the `n`-th derivative of [`digamma`] (`n = 0` is digamma itself); `n! ζ(n + 1, x)` with the Hurwitz zeta
/// below, below 3 ulp for `n ≤ 3`, 10 ulp for `n ≤ 170`, and relative error about `n ln n ε` beyond, where the
/// factorial takes logarithms. For `x < 0` and even `n`, which has roots there, absolute, in ulp of `n! 2ⁿ⁺¹`.
///
/// At its poles an odd `n` gives +∞; an even one gives ∓∞ at ±0 and NaN at the negative integers.
pub fn polygamma(n: u32, x: f64) -> f64 {
    if n == 0 {
        return digamma(x);
    }
    // ψ⁽ⁿ⁾(x) = (-1)ⁿ⁺¹ n! Σ_{k≥0} (x + k)⁻ⁿ⁻¹
    let odd = n % 2 == 1;
    let sign = if odd { 1.0 } else { -1.0 };
    if x > 0.0 {
        return sign * factorial_zeta(n, x);
    }
    if x.is_nan() || x == f64::NEG_INFINITY {
        return f64::NAN;
    }
    let t = x - x.round();
    if t == 0.0 {
        return match (odd, x == 0.0) {
            (true, _) => f64::INFINITY,
            (false, true) => -1.0 / x,
            (false, false) => f64::NAN,
        };
    }
    // Split the sum at the nearest pole: with x = r - m, 0 < r < 1, the terms at and right of r are ζ(s, r), and the
    // m terms left of it are, up to the sign (-1)ˢ, those of ζ(s, 1 - r) that are not in ζ(s, 1 - x). The smaller of
    // r and 1 - r, which carries the pole, is exact.
    let (right, left) = if t > 0.0 { (t, 1.0 - t) } else { (1.0 + t, -t) };
    let (right, left, rest) = (factorial_zeta(n, right), factorial_zeta(n, left), factorial_zeta(n, 1.0 - x));
    if odd {
        right + (left - rest)
    } else if right == left {
        -rest // by symmetry, also where both have overflowed
    } else {
        -((right - left) + rest)
    }
}

/// `n! ζ(n + 1, q)` for `n ≥ 1` and `q > 0`, finite whenever the product is, even where a factor is not.
fn factorial_zeta(n: u32, q: f64) -> f64 {
    if q == f64::INFINITY {
        return 0.0;
    }
    let s = f64::from(n) + 1.0;
    let sum = zeta_over_leading(s, q);
    if n > 170 {
        return (lgamma(s) - s * q.ln() + sum.ln()).exp();
    }
    let factorial = (2..=n).fold(1.0, |acc, k| acc * f64::from(k));
    let leading = q.powf(-s);
    if leading.is_normal() {
        leading * sum * factorial
    } else {
        let half = q.powf(-0.5 * s);
        half * factorial * sum * half
    }
}

/// `ζ(s, q) qˢ`, a sum that starts with 1, for finite `s > 1` and `q > 0`.
///
/// Euler–Maclaurin with `a = q + N`, everything divided by `q⁻ˢ`:
/// `Σ_{k<N} (q/(q+k))ˢ + (q/a)ˢ (a/(s-1) + 1/2 + Σ_j B₂ⱼ/(2j)! s(s+1)…(s+2j-2) / a²ʲ⁻¹)`.
/// The terms of the last sum shrink by about `((s + 2j) / 2πa)²`, hence `a ≥ s + 10`. The first sum is cut as soon as
/// all that follows is negligible, which bounds `N` by about 50 for any `s` and `q`.
fn zeta_over_leading(s: f64, q: f64) -> f64 {
    let power = |k: f64| {
        if k <= q {
            // For large q the quotient q/(q+k) would round k away, and s would magnify that.
            (-s * (k / q).ln_1p()).exp()
        } else {
            (q / (q + k)).powf(s)
        }
    };
    // Sum of the terms and what its roundings lost; each term is at most 1, so the running sum is always the larger.
    let (mut sum, mut lost) = (0.0, 0.0);
    let (mut k, mut a, mut term) = (0.0, q, 1.0);
    while a < s + 10.0 {
        let next = sum + term;
        lost += if k == 0.0 { 0.0 } else { term - (next - sum) };
        sum = next;
        k += 1.0;
        a = q + k;
        term = power(k);
        if term * (1.0 + a / (s - 1.0)) < 1e-18 * sum {
            return sum + lost;
        }
    }
    let mut factor = s / a;
    let mut tail = 0.0;
    for (j, c) in ZETA_TAIL.iter().enumerate() {
        let delta = c * factor;
        tail += delta;
        if delta.abs() < 1e-18 {
            break;
        }
        let i = (2 * j) as f64;
        factor *= (s + i + 1.0) / a * ((s + i + 2.0) / a);
    }
    sum + (lost + term * (a / (s - 1.0) + (0.5 + tail)))
}

/// [`erf_inv`] for `f32`, through `f64`, below 0.51 ulp.
pub fn erf_inv_f32(x: f32) -> f32 {
    erf_inv(f64::from(x)) as f32
}

/// [`lgamma`] for `f32`, through `f64`, below 0.51 ulp away from the roots at negative arguments.
pub fn lgamma_f32(x: f32) -> f32 {
    lgamma(f64::from(x)) as f32
}

/// [`digamma`] for `f32`, through `f64`, below 0.51 ulp away from the roots at negative arguments.
pub fn digamma_f32(x: f32) -> f32 {
    digamma(f64::from(x)) as f32
}

/// [`polygamma`] for `f32`, through `f64`, below 0.51 ulp for `x > 0` and `n ≤ 170`.
pub fn polygamma_f32(n: u32, x: f32) -> f32 {
    polygamma(n, f64::from(x)) as f32
}

/// The neighbour of `x` in the direction of `y`, C's `nextafter`; exact.
pub fn nextafter(x: f64, y: f64) -> f64 {
    f64::from_bits(nextafter_bits(x.to_bits(), y.to_bits(), 11, 52))
}

/// [`nextafter`] for `f32`; exact.
pub fn nextafter_f32(x: f32, y: f32) -> f32 {
    f32::from_bits(nextafter_bits(x.to_bits().into(), y.to_bits().into(), 8, 23) as u32)
}

/// [`nextafter`] on the bits of IEEE half precision; exact.
pub(crate) fn nextafter_f16(x: u16, y: u16) -> u16 {
    nextafter_bits(x.into(), y.into(), 5, 10) as u16
}

/// [`nextafter`] on the bits of bfloat16; exact.
pub(crate) fn nextafter_bf16(x: u16, y: u16) -> u16 {
    nextafter_bits(x.into(), y.into(), 8, 7) as u16
}

/// [`nextafter`] on the bits of any IEEE layout: a sign, then `exponent` bits, then `mantissa` bits, at most 64 in all.
///
/// Magnitudes order like their bits, so a neighbour is one integer step, across binades, into the subnormals and up to
/// infinity alike. Equal arguments give `y` (the sign of zero follows it) and a NaN comes back quiet.
pub(crate) fn nextafter_bits(x: u64, y: u64, exponent: u32, mantissa: u32) -> u64 {
    let sign = 1 << (exponent + mantissa);
    let infinity = ((1 << exponent) - 1) << mantissa;
    let magnitude = |v: u64| v & (sign - 1);
    if let Some(nan) = [x, y].into_iter().find(|&v| magnitude(v) > infinity) {
        return nan | 1 << (mantissa - 1);
    }
    let order = |v: u64| if v & sign == 0 { magnitude(v) as i64 } else { -(magnitude(v) as i64) };
    match (order(x).cmp(&order(y)), order(x).signum()) {
        (Ordering::Equal, _) => y,
        (_, 0) => y & sign | 1,
        (Ordering::Less, 1) | (Ordering::Greater, -1) => x + 1,
        _ => x - 1,
    }
}

#[cfg(test)]
#[allow(clippy::approx_constant)] // the tables hold numbers, some of which have names
mod tests;

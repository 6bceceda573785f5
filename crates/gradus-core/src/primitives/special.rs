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

/// Error function; `libm` (FreeBSD msun rational approximations), below 1 ulp.
pub(crate) fn erf(x: f64) -> f64 {
    libm::erf(x)
}

/// Complementary error function; `libm` (FreeBSD msun rational approximations), below 2.5 ulp.
pub(crate) fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}

/// Inverse error function; Wichura's rational approximations (AS 241, PPND16) to the normal quantile and one Newton
/// step, below 1.5 ulp.
///
/// `erf_inv(x) = Φ⁻¹((1 + x) / 2) / √2`. The centre is a rational function in `x` itself; the tails take `1 - |x|`,
/// which is exact there, so nothing cancels next to 0 or next to the ends.
pub(crate) fn erf_inv(x: f64) -> f64 {
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
    let short = if a <= 0.5 { a - erf(y) } else { erfc(y) - tail };
    (y + short * HALF_SQRT_PI * (y * y).exp()).copysign(x)
}

/// `ln|Γ(x)|`; `libm` (FreeBSD msun), below 2 ulp for `x > 0`; for `x < 0` absolute, some ulp of `ln Γ(1 - x)`.
///
/// Poles and both infinities give +∞.
pub(crate) fn lgamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// `ψ(x) = Γ'(x) / Γ(x)`; recurrence onto [1, 2], a rational function around the root there, the asymptotic series from
/// 10, reflection below 0; below 3.5 ulp for `x > 0` (the root included) and next to the poles,
/// around the negative roots absolute, a few ulp of `ψ(1 - x)`.
///
/// `ψ(±0) = ∓∞`; the poles at the negative integers have no one-sided sign to go by and give NaN, as does -∞.
pub(crate) fn digamma(x: f64) -> f64 {
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
pub(crate) fn polygamma(n: u32, x: f64) -> f64 {
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

/// Hurwitz zeta `ζ(s, q) = Σ_{k≥0} (q + k)⁻ˢ` for `s > 1`, `q > 0`; Euler–Maclaurin summation, below 3 ulp.
///
/// `s = 1` and `q = 0` are poles and give +∞; `s < 1` or `q < 0` gives NaN.
pub(crate) fn zeta(s: f64, q: f64) -> f64 {
    if s.is_nan() || q.is_nan() || s < 1.0 || q < 0.0 {
        return f64::NAN;
    }
    if s == 1.0 || q == 0.0 {
        return f64::INFINITY;
    }
    if s == f64::INFINITY || q == f64::INFINITY {
        // Only the first term can survive; for infinite q the sum is below q¹⁻ˢ / (s - 1) → 0.
        return if q == f64::INFINITY { 0.0 } else { q.powf(-s) };
    }
    let sum = zeta_over_leading(s, q);
    let leading = q.powf(-s);
    if leading.is_normal() {
        leading * sum
    } else {
        // q⁻ˢ may leave the range where the sum, about q / (s - 1), brings the product back.
        let half = q.powf(-0.5 * s);
        half * sum * half
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

/// `1 / (1 + e⁻ˣ)`; the exponential of `-|x|` only, so it neither overflows nor cancels, below 2 ulp.
pub(crate) fn logistic(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}

/// `ln(1 + x)`; std, below 1 ulp.
pub(crate) fn log1p(x: f64) -> f64 {
    x.ln_1p()
}

/// `eˣ - 1`; std, below 1 ulp.
pub(crate) fn expm1(x: f64) -> f64 {
    x.exp_m1()
}

/// Cube root; std, below 1 ulp.
pub(crate) fn cbrt(x: f64) -> f64 {
    x.cbrt()
}

/// [`erf`] for `f32`, through `f64`, below 0.51 ulp.
pub(crate) fn erf_f32(x: f32) -> f32 {
    erf(f64::from(x)) as f32
}

/// [`erfc`] for `f32`, through `f64`, below 0.51 ulp.
pub(crate) fn erfc_f32(x: f32) -> f32 {
    erfc(f64::from(x)) as f32
}

/// [`erf_inv`] for `f32`, through `f64`, below 0.51 ulp.
pub(crate) fn erf_inv_f32(x: f32) -> f32 {
    erf_inv(f64::from(x)) as f32
}

/// [`lgamma`] for `f32`, through `f64`, below 0.51 ulp away from the roots at negative arguments.
pub(crate) fn lgamma_f32(x: f32) -> f32 {
    lgamma(f64::from(x)) as f32
}

/// [`digamma`] for `f32`, through `f64`, below 0.51 ulp away from the roots at negative arguments.
pub(crate) fn digamma_f32(x: f32) -> f32 {
    digamma(f64::from(x)) as f32
}

/// [`polygamma`] for `f32`, through `f64`, below 0.51 ulp for `x > 0` and `n ≤ 170`.
pub(crate) fn polygamma_f32(n: u32, x: f32) -> f32 {
    polygamma(n, f64::from(x)) as f32
}

/// [`logistic`] for `f32`, through `f64`, below 0.51 ulp.
pub(crate) fn logistic_f32(x: f32) -> f32 {
    logistic(f64::from(x)) as f32
}

/// The neighbour of `x` in the direction of `y`, C's `nextafter`; exact.
pub(crate) fn nextafter(x: f64, y: f64) -> f64 {
    f64::from_bits(nextafter_bits(x.to_bits(), y.to_bits(), 11, 52))
}

/// [`nextafter`] for `f32`; exact.
pub(crate) fn nextafter_f32(x: f32, y: f32) -> f32 {
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
mod tests {
    use super::*;

    // Every table holds (arguments…, the float nearest to the exact value), by mpmath 1.4:
    //
    //     from mpmath import *; mp.dps = 400
    //     f = psi  # erf, erfc, erfinv, lambda x: re(loggamma(x)), digamma, zeta, lambda x: 1 / (1 + exp(-x)), log1p, …
    //     for t in points: print(*t, float(f(*map(mpf, t))))
    //
    // and the leading term where mpmath refuses a huge or tiny argument (erf(1e3) = 1, digamma(1e100) = ln 1e100, …)
    // and the reflection formula for psi at -1e6, where it takes too long.
    // A tolerance is in units in the last place of that value, a whole number because both sides are rounded.

    /// How many floats `got` is away from `want`; 0 for two NaN, and never small across NaN, infinity or a sign.
    fn ulps(got: f64, want: f64) -> u64 {
        if got.is_nan() || want.is_nan() {
            return if got.is_nan() && want.is_nan() { 0 } else { u64::MAX };
        }
        if got.is_infinite() != want.is_infinite() || got.is_sign_negative() != want.is_sign_negative() {
            return u64::MAX;
        }
        got.to_bits().abs_diff(want.to_bits())
    }

    fn check(name: &str, f: impl Fn(f64) -> f64, table: &[(f64, f64)], tolerance: u64) {
        for &(x, want) in table {
            let got = f(x);
            assert!(ulps(got, want) <= tolerance, "{name}({x:e}) = {got:e}, not {want:e}: {} ulp", ulps(got, want));
        }
    }

    fn check_odd(name: &str, f: impl Fn(f64) -> f64, table: &[(f64, f64)], tolerance: u64) {
        check(name, &f, table, tolerance);
        check(name, |x| -f(-x), table, tolerance);
        check(name, f, &[(0.0, 0.0), (-0.0, -0.0)], 0);
    }

    fn check_absolute(name: &str, f: impl Fn(f64) -> f64, table: &[(f64, f64)], tolerance: f64) {
        for &(x, want) in table {
            let got = f(x);
            assert!((got - want).abs() <= tolerance, "{name}({x:e}) = {got:e}, not {want:e}");
        }
    }

    #[test]
    fn erf_is_accurate() {
        check_odd("erf", erf, ERF, 1);
        check("erf", erf, &[(f64::INFINITY, 1.0), (f64::NEG_INFINITY, -1.0), (f64::NAN, f64::NAN)], 0);
    }

    #[test]
    fn erfc_is_accurate() {
        check("erfc", erfc, ERFC, 2);
        check("erfc", erfc, &[(f64::INFINITY, 0.0), (f64::NEG_INFINITY, 2.0), (f64::NAN, f64::NAN), (-0.0, 1.0)], 0);
    }

    #[test]
    fn erf_inv_is_accurate() {
        check_odd("erf_inv", erf_inv, ERF_INV, 2);
        check("erf_inv", erf_inv, &[(1.0, f64::INFINITY), (-1.0, f64::NEG_INFINITY)], 0);
        for x in [nextafter(1.0, 2.0), nextafter(-1.0, -2.0), 2.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            assert!(erf_inv(x).is_nan(), "{x}");
        }
    }

    #[test]
    fn lgamma_is_accurate() {
        check("lgamma", lgamma, LGAMMA, 4);
        check("lgamma", lgamma, &[(1.0, 0.0), (2.0, 0.0), (f64::NAN, f64::NAN)], 0);
        check_absolute("lgamma", lgamma, LGAMMA_ROOTS, 4e-15);
        for x in [0.0, -0.0, -1.0, -2.0, -171.0, -1e300, f64::INFINITY, f64::NEG_INFINITY, f64::MAX] {
            assert_eq!(lgamma(x), f64::INFINITY, "{x}");
        }
    }

    #[test]
    fn digamma_is_accurate() {
        check("digamma", digamma, DIGAMMA, 4);
        check_absolute("digamma", digamma, DIGAMMA_ROOTS, 4e-15);
        check("digamma", digamma, &[(0.0, f64::NEG_INFINITY), (-0.0, f64::INFINITY)], 0);
        check("digamma", digamma, &[(5e-324, f64::NEG_INFINITY), (-5e-324, f64::INFINITY)], 0);
        check("digamma", digamma, &[(f64::INFINITY, f64::INFINITY)], 0);
        for x in [-1.0, -2.0, -171.0, -1e300, f64::NEG_INFINITY, f64::NAN] {
            assert!(digamma(x).is_nan(), "{x}");
        }
    }

    #[test]
    fn polygamma_is_accurate() {
        for &(n, x, want) in POLYGAMMA {
            let tolerance = if n <= 3 { 3 } else { 10 };
            check(&format!("polygamma({n})"), |x| polygamma(n, x), &[(x, want)], tolerance);
        }
        for n in 1..200 {
            let odd = n % 2 == 1;
            for (x, even) in [(0.0, f64::NEG_INFINITY), (-0.0, f64::INFINITY), (-1.0, f64::NAN), (-1e300, f64::NAN)] {
                let want = if odd { f64::INFINITY } else { even };
                check(&format!("polygamma({n})"), |x| polygamma(n, x), &[(x, want)], 0);
            }
            assert_eq!(polygamma(n, f64::INFINITY), 0.0);
            assert!(polygamma(n, f64::NEG_INFINITY).is_nan() && polygamma(n, f64::NAN).is_nan());
        }
        check("polygamma(0)", |x| polygamma(0, x), DIGAMMA, 4);
    }

    /// Orders whose factorial overflows go through logarithms; the neighbouring orders tie them to the others.
    #[test]
    fn polygamma_is_continuous_in_the_order() {
        for n in [169, 170, 171, 500, 5000] {
            let x = f64::from(n);
            // ψ⁽ⁿ⁺¹⁾(x) / ψ⁽ⁿ⁾(x) = -(n + 1) ζ(n + 2, x) / ζ(n + 1, x), with ζ(s, x) xˢ as both may underflow
            let s = x + 1.0;
            let want = -(x + 1.0) / x * (zeta_over_leading(s + 1.0, x) / zeta_over_leading(s, x));
            let (low, high) = (polygamma(n, x), polygamma(n + 1, x));
            if low != 0.0 {
                assert!((high / low - want).abs() < 1e-10, "{n}: {} {want}", high / low);
            }
        }
        assert_eq!(polygamma(u32::MAX, 1.0), f64::INFINITY);
        assert_eq!(polygamma(u32::MAX, 1e300), 0.0);
    }

    #[test]
    fn zeta_is_accurate() {
        for &(s, q, want) in ZETA {
            check(&format!("zeta({s:e}, ·)"), |q| zeta(s, q), &[(q, want)], 3);
        }
        let inf = f64::INFINITY;
        for (s, q, want) in [(1.0, 2.0, inf), (2.0, 0.0, inf), (inf, 0.5, inf), (inf, 1.0, 1.0), (inf, 2.0, 0.0)] {
            assert_eq!(zeta(s, q), want, "{s} {q}");
        }
        assert_eq!(zeta(2.0, inf), 0.0);
        for (s, q) in [(0.5, 1.0), (-inf, 1.0), (2.0, -0.5), (2.0, -inf), (f64::NAN, 1.0), (2.0, f64::NAN)] {
            assert!(zeta(s, q).is_nan(), "{s} {q}");
        }
        // Sums in which q + k rounds k away still end.
        assert!(zeta(1e308, 1e308) == 0.0 && zeta(f64::MAX, f64::MAX) == 0.0 && zeta(1e17, 1e17) == 0.0);
        let geometric = 1.0 / (1.0 - (-1.0f64).exp()); // ζ(s, q) qˢ → Σ e⁻ᵏ for s = q → ∞
        assert!(ulps(zeta_over_leading(1e300, 1e300), geometric) <= 2);
    }

    #[test]
    fn logistic_is_accurate() {
        check("logistic", logistic, LOGISTIC, 2);
        check("logistic", logistic, &[(0.0, 0.5), (-0.0, 0.5), (f64::NAN, f64::NAN)], 0);
        check("logistic", logistic, &[(f64::INFINITY, 1.0), (f64::NEG_INFINITY, 0.0)], 0);
    }

    #[test]
    fn elementary_functions_are_accurate() {
        check("log1p", log1p, LOG1P, 1);
        check("log1p", log1p, &[(0.0, 0.0), (-0.0, -0.0), (-1.0, f64::NEG_INFINITY), (-1.5, f64::NAN)], 0);
        check(
            "log1p",
            log1p,
            &[(f64::INFINITY, f64::INFINITY), (f64::NEG_INFINITY, f64::NAN), (f64::NAN, f64::NAN)],
            0,
        );
        check("expm1", expm1, EXPM1, 1);
        check("expm1", expm1, &[(0.0, 0.0), (-0.0, -0.0), (f64::NEG_INFINITY, -1.0)], 0);
        check("expm1", expm1, &[(f64::INFINITY, f64::INFINITY), (f64::NAN, f64::NAN)], 0);
        check_odd("cbrt", cbrt, CBRT, 1);
        check("cbrt", cbrt, &[(f64::INFINITY, f64::INFINITY), (f64::NEG_INFINITY, f64::NEG_INFINITY)], 0);
        check("cbrt", cbrt, &[(f64::NAN, f64::NAN)], 0);
    }

    #[test]
    fn f32_versions_round_once() {
        for &(x, want) in F32 {
            let got = [
                erf_f32(x),
                erfc_f32(x),
                erf_inv_f32(x),
                lgamma_f32(x),
                digamma_f32(x),
                polygamma_f32(1, x),
                logistic_f32(x),
            ];
            for (i, (g, w)) in got.into_iter().zip(want).enumerate() {
                assert!(g == w || g.is_nan() && w.is_nan(), "column {i} at {x:e}: {g:e}, not {w:e}");
            }
        }
    }

    #[test]
    fn nextafter_of_f64_and_f32_agrees_with_std() {
        let xs = [0.0, 5e-324, 2.2250738585072014e-308, 1e-300, 0.1, 1.0, 1.5, 2.0, 1e10, f64::MAX, f64::INFINITY];
        for x in xs.into_iter().flat_map(|x| [x, -x]) {
            assert_eq!(nextafter(x, f64::INFINITY), x.next_up());
            assert_eq!(nextafter(x, f64::NEG_INFINITY), x.next_down());
            assert_eq!(nextafter(x, x).to_bits(), x.to_bits());
            assert!(nextafter(x, f64::NAN).is_nan() && nextafter(f64::NAN, x).is_nan());
            let x = x as f32;
            assert_eq!(nextafter_f32(x, f32::INFINITY), x.next_up());
            assert_eq!(nextafter_f32(x, f32::NEG_INFINITY), x.next_down());
            assert!(nextafter_f32(x, f32::NAN).is_nan() && nextafter_f32(f32::NAN, x).is_nan());
        }
        assert!(nextafter(0.0, -0.0).is_sign_negative() && nextafter(-0.0, 0.0).is_sign_positive());
        // Going up to zero from below keeps the sign, as in C.
        assert_eq!(nextafter(-5e-324, 1.0).to_bits(), (-0.0f64).to_bits());
        assert_eq!(nextafter(1.0, 0.5), 1.0 - 0.5 * f64::EPSILON);
    }

    /// Walking up from -∞ to +∞ meets every finite value once, in increasing order, and walking down returns.
    #[test]
    fn nextafter_walks_through_the_half_formats() {
        let bf16 = |b: u16| f64::from(f32::from_bits(u32::from(b) << 16));
        let f16 = |b: u16| {
            let (e, m) = (i32::from(b >> 10 & 31), f64::from(b & 1023));
            let v = match e {
                0 => m * 2f64.powi(-24),
                31 => f64::INFINITY,
                _ => (1024.0 + m) * 2f64.powi(e - 25),
            };
            if b >> 15 == 1 { -v } else { v }
        };
        type Half<'a> = (fn(u16, u16) -> u16, &'a dyn Fn(u16) -> f64, u16);
        for (next, value, infinity) in
            [(nextafter_f16 as _, &f16 as _, 0x7c00), (nextafter_bf16 as _, &bf16 as _, 0x7f80)] as [Half; 2]
        {
            let (mut x, mut steps) = (infinity | 0x8000, 0);
            while x != infinity {
                let up = next(x, infinity);
                assert!(value(up) > value(x), "{x:#x} {up:#x}");
                assert_eq!(value(next(up, x)), value(x), "{x:#x} {up:#x}");
                (x, steps) = (up, steps + 1);
            }
            assert_eq!(steps, 2 * u32::from(infinity)); // the two zeros count once
            let nan = infinity | 1;
            assert!(next(nan, 0) & 0x7fff > infinity && next(0, nan) & 0x7fff > infinity);
            assert_eq!((next(0, 0x8000), next(0x8000, 0), next(0x8000, infinity)), (0x8000, 0, 1));
        }
    }

    /// Bit patterns from a fixed linear congruential generator: every exponent, both signs, NaNs included.
    #[test]
    fn no_input_panics() {
        let mut bits = 1u64;
        let mut draw = || {
            bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            f64::from_bits(bits ^ bits >> 29)
        };
        for _ in 0..20_000 {
            let (x, y) = (draw(), draw());
            for f in [erf, erfc, erf_inv, lgamma, digamma, logistic, log1p, expm1, cbrt] {
                f(x);
            }
            for s in [y, 1.0 + y.abs(), 1e3 * (y % 1.0).abs()] {
                zeta(s, x);
                zeta(s, x.abs());
            }
            for n in [0, 1, 2, 3, 17, 170, 171, y.to_bits() as u32] {
                polygamma(n, x);
                polygamma(n, x % 50.0);
            }
            nextafter(x, y);
            nextafter_f32(x as f32, y as f32);
        }
    }

    const ERF: &[(f64, f64)] = &[
        (5e-324, 5e-324),
        (-1e-310, -1.1283791670955e-310),
        (f64::MIN_POSITIVE, 2.5107269871883543e-308),
        (1e-200, 1.1283791670955125e-200),
        (-3e-20, -3.385137501286538e-20),
        (1e-10, 1.1283791670955126e-10),
        (-2.5e-08, -2.8209479177387806e-08),
        (1e-05, 1.1283791670579e-05),
        (0.001, 0.0011283787909692365),
        (-0.01, -0.011283415555849618),
        (0.1, 0.1124629160182849),
        (0.3, 0.3286267594591274),
        (-0.5, -0.5204998778130465),
        (0.75, 0.7111556336535151),
        (0.84375, 0.7672256612323416),
        (0.8437500000000001, 0.7672256612323417),
        (1.0, 0.8427007929497149),
        (-1.2, -0.9103139782296353),
        (1.25, 0.9229001282564583),
        (1.5, 0.9661051464753108),
        (-2.0, -0.9953222650189527),
        (2.5, 0.999593047982555),
        (2.857142857142857, 0.9999466876886117),
        (3.0, 0.9999779095030014),
        (-4.0, -0.9999999845827421),
        (5.0, 0.9999999999984626),
        (5.9, 0.9999999999999999),
        (6.0, 1.0),
        (-7.0, -1.0),
        (1000.0, 1.0),
        (f64::MIN, -1.0),
    ];

    const ERFC: &[(f64, f64)] = &[
        (5e-324, 1.0),
        (-1e-310, 1.0),
        (1e-200, 1.0),
        (3e-17, 1.0),
        (-3e-17, 1.0),
        (1e-08, 0.9999999887162083),
        (0.001, 0.9988716212090307),
        (-0.01, 1.0112834155558497),
        (0.1, 0.887537083981715),
        (0.25, 0.7236736098317631),
        (0.3, 0.6713732405408726),
        (-0.5, 1.5204998778130465),
        (0.75, 0.28884436634648486),
        (0.84375, 0.23277433876765838),
        (1.0, 0.15729920705028513),
        (-1.2, 1.9103139782296354),
        (1.25, 0.07709987174354177),
        (1.5, 0.033894853524689274),
        (-2.0, 1.9953222650189528),
        (2.5, 0.0004069520174449589),
        (3.0, 2.209049699858544e-05),
        (-4.0, 1.999999984582742),
        (5.0, 1.537459794428035e-12),
        (6.0, 2.1519736712498913e-17),
        (-7.0, 2.0),
        (9.5, 3.7692144856548797e-41),
        (12.0, 1.3562611692059042e-64),
        (15.0, 7.212994172451207e-100),
        (20.0, 5.395865611607901e-176),
        (25.0, 8.300172571196523e-274),
        (26.5, 2.2109076642637343e-307),
        (27.0, 5.23705e-319),
        (27.2, 1e-323),
        (28.0, 0.0),
        (-30.0, 2.0),
        (f64::MAX, 0.0),
    ];

    const ERF_INV: &[(f64, f64)] = &[
        (5e-324, 5e-324),
        (-1e-310, -8.8622692545277e-311),
        (f64::MIN_POSITIVE, 1.9719203645301425e-308),
        (1e-200, 8.86226925452758e-201),
        (-3e-20, -2.6586807763582744e-20),
        (1e-10, 8.862269254527581e-11),
        (9.999999999999999e-09, 8.862269254527579e-09),
        (1e-08, 8.86226925452758e-09),
        (-1e-05, -8.862269254759594e-06),
        (0.001, 0.0008862271574665521),
        (-0.01, -0.008862501280950598),
        (0.1, 0.08885599049425769),
        (0.25, 0.2253120550121781),
        (-0.4, -0.37080715859355795),
        (0.5, 0.4769362762044699),
        (0.5000000000000001, 0.47693627620447),
        (0.6, 0.5951160814499948),
        (-0.75, -0.8134198475976185),
        (0.84, 0.9935356283473041),
        (0.85, 1.0179024648320276),
        (0.8500000000000001, 1.0179024648320278),
        (-0.9, -1.1630871536766743),
        (0.95, 1.3859038243496777),
        (0.99, 1.8213863677184494),
        (-0.999, -2.3267537655135246),
        (0.99999, 3.123413274341571),
        (0.9999999, 3.7665625816384707),
        (0.9999999999722241, 4.707849503323004),
        (0.99999999999, 4.812924058944833),
        (-0.999999999999, -5.042031898572696),
        (0.99999999999999, 5.4725525174145355),
        (0.9999999999999993, 5.710998125755054),
        (-0.9999999999999998, -5.805018683193453),
        (0.9999999999999999, 5.8635847487551676),
    ];

    const LGAMMA: &[(f64, f64)] = &[
        (5e-324, 744.4400719213812),
        (-5e-324, 744.4400719213812),
        (1e-310, 713.8013788281542),
        (-f64::MIN_POSITIVE, 708.3964185322641),
        (1e-200, 460.51701859880916),
        (-1e-20, 46.051701859880914),
        (1e-10, 23.025850929882736),
        (-1e-05, 11.512931237209125),
        (0.001, 6.907178885383853),
        (0.1, 2.252712651734206),
        (0.5, 0.5723649429247001),
        (0.9, 0.06637623973474295),
        (0.9999999999999999, 6.408381213480008e-17),
        (1.0000000000000002, -1.2816762426960008e-16),
        (1.0001, -5.771334222047127e-05),
        (1.25, -0.09827183642181316),
        (1.4616321449683622, -0.12148629053584961),
        (1.75, -0.08440112102048555),
        (1.9999999999999996, -1.8775396131086232e-16),
        (2.0000000000000004, 1.8775396131086244e-16),
        (2.5, 0.2846828704729192),
        (3.0, 0.6931471805599453),
        (5.5, 3.9578139676187165),
        (8.0, 8.525161361065415),
        (10.3, 13.482036786138359),
        (30.0, 71.25703896716801),
        (171.7, 710.171612940375),
        (100000.0, 1051287.7089736569),
        (10000000000.0, 220258509288.81058),
        (1e+100, 2.2925850929940456e+102),
        (2.5e+305, 1.7555118602376452e+308),
        (-0.5, 1.2655121234846454),
        (-1.5, 0.860047015376481),
        (-0.9999999999999999, 36.7368005696771),
        (-1.0000000000000002, 36.04365338911715),
        (-2.25, 0.5555015450206475),
        (-3.9999, 6.032437168735688),
        (-3.9999999999999996, 32.172452378209265),
        (-10.5, -15.147270590717842),
        (-30.25, -74.02239745035548),
        (-100.7, -365.61225576180533),
        (-100000.5, -1051303.8336357186),
        (-2251799813685247.8, -7.735046348042309e+16),
    ];

    const LGAMMA_ROOTS: &[(f64, f64)] = &[
        (-2.4570247382208006, 5.619192358950097e-17),
        (-2.7476826467274127, 1.733509244024501e-16),
        (-3.14358088834998, 1.6978655906121085e-15),
        (-3.955294284858598, -4.14382750757705e-16),
        (-4.039361839740536, 1.8130148902398562e-14),
        (-4.991544640560048, 1.7683619350849613e-14),
        (-5.008218168440123, -1.4498640704273863e-08),
    ];

    const DIGAMMA: &[(f64, f64)] = &[
        (1e-300, -9.999999999999999e+299),
        (6e-309, -1.6666666666666664e+308),
        (f64::MIN_POSITIVE, -4.49423283715579e+307),
        (-f64::MIN_POSITIVE, 4.49423283715579e+307),
        (-6e-309, 1.6666666666666664e+308),
        (-1e-300, 9.999999999999999e+299),
        (1e-20, -1e+20),
        (-1e-20, 1e+20),
        (1e-10, -10000000000.577215),
        (-1e-09, 999999999.4227843),
        (1e-05, -100000.57719921567),
        (0.001, -1000.5755719318103),
        (0.1, -10.423754940411076),
        (0.5, -1.9635100260214235),
        (0.9, -0.7549269499470513),
        (0.9999999999999999, -0.5772156649015331),
        (1.0, -0.5772156649015329),
        (1.0000000000000002, -0.5772156649015325),
        (1.2, -0.2890398965921884),
        (1.4, -0.06138454458511624),
        (1.46, -0.0015805619870834522),
        (1.4616, -3.110625123034165e-05),
        (1.46163214, -4.807746276832806e-09),
        (1.461632144968362, -3.072790566546293e-16),
        (1.4616321449683622, -9.241265521729427e-17),
        (1.4616321449683625, 1.2245374622004068e-16),
        (1.46163215, 4.868976118553245e-09),
        (1.4617, 6.56593922936765e-05),
        (1.47, 0.008066489011364869),
        (1.7, 0.2085478748734939),
        (2.0, 0.42278433509846713),
        (2.0000000000000004, 0.4227843350984674),
        (2.5, 0.7031566406452432),
        (3.0, 0.9227843350984671),
        (5.7, 1.65018976707859),
        (9.999, 2.2516474172057355),
        (10.0, 2.251752589066721),
        (12.5, 2.4851956512749123),
        (30.0, 3.384438132685525),
        (1000.0, 6.907255195648812),
        (100000000.0, 18.420680738952367),
        (1000000000000000.0, 34.538776394910684),
        (1e+100, 230.25850929940458),
        (f64::MAX, 709.782712893384),
        (-0.1, 9.245073050052948),
        (-0.25, 2.9141391202135276),
        (-0.75, -2.894120200042932),
        (-0.3, 2.113309779635399),
        (-0.9, -9.312643829299969),
        (-0.9999999999999999, -9007199254740992.0),
        (-1.0000000000000002, 4503599627370496.0),
        (-1.0001, 10000.422519840771),
        (-3.9999, -9998.493575456188),
        (-2.25, 4.158583564657972),
        (-10.1, 12.030052248548309),
        (-49.99999999999999, -140737488355324.08),
        (-1000.125, 14.492855717113763),
        (-100000.25, 14.654525618536063),
        (-10000000000.0001, 10105.487063095401),
    ];

    const DIGAMMA_ROOTS: &[(f64, f64)] = &[
        (-0.504083008264455, 4.042965717222496e-15),
        (-1.57349847316239, 4.571416811227789e-15),
        (-2.610720868444144, 8.563223935627966e-15),
        (-3.635293366436901, -6.354883894064686e-16),
        (-4.653237761743142, 3.1533529982387494e-15),
        (-10.7044, 0.06711049216945272),
        (-100.62, 3.3724674814176447),
        (-1000.6, 5.888089385308408),
    ];

    const LOGISTIC: &[(f64, f64)] = &[
        (5e-324, 0.5),
        (-5e-324, 0.5),
        (1e-300, 0.5),
        (-1e-20, 0.5),
        (1e-10, 0.500000000025),
        (-1e-05, 0.49999750000000004),
        (0.001, 0.5002499999791666),
        (-0.01, 0.497500020833125),
        (0.1, 0.52497918747894),
        (-0.5, 0.37754066879814546),
        (0.5, 0.6224593312018546),
        (1.0, 0.7310585786300049),
        (-1.0, 0.2689414213699951),
        (2.0, 0.8807970779778824),
        (-3.0, 0.04742587317756678),
        (5.0, 0.9933071490757152),
        (-8.0, 0.0003353501304664781),
        (12.0, 0.9999938558253978),
        (20.0, 0.9999999979388464),
        (-20.0, 2.0611536181902037e-09),
        (36.0, 0.9999999999999998),
        (37.0, 0.9999999999999999),
        (-37.0, 8.533047625744065e-17),
        (40.0, 1.0),
        (-100.0, 3.720075976020836e-44),
        (-300.0, 5.148200222412013e-131),
        (-600.0, 2.6503965530043108e-261),
        (-708.0, 3.307553003638408e-308),
        (-709.5, 7.38014831401258e-309),
        (-720.0, 2.0322308024e-313),
        (-740.0, 4.2e-322),
        (-745.0, 5e-324),
        (-746.0, 0.0),
        (-10000.0, 0.0),
        (710.0, 1.0),
        (1e+300, 1.0),
    ];

    const LOG1P: &[(f64, f64)] = &[
        (5e-324, 5e-324),
        (-5e-324, -5e-324),
        (1e-310, 1e-310),
        (-f64::MIN_POSITIVE, -2.2250738585072014e-308),
        (1e-200, 1e-200),
        (-1e-20, -1e-20),
        (1e-16, 1e-16),
        (-1e-16, -1e-16),
        (1e-10, 9.999999999500001e-11),
        (-1e-08, -1.0000000050000001e-08),
        (1e-05, 9.999950000333332e-06),
        (-0.001, -0.0010005003335835335),
        (0.01, 0.009950330853168083),
        (-0.1, -0.10536051565782631),
        (0.25, 0.22314355131420976),
        (-0.25, -0.2876820724517809),
        (0.4142, 0.3465640001880034),
        (-0.2929, -0.3465831803719419),
        (0.5, 0.4054651081081644),
        (-0.5, -0.6931471805599453),
        (-0.9, -2.302585092994046),
        (1.0, 0.6931471805599453),
        (-0.999, -6.907755278982136),
        (-0.9999999999999998, -36.04365338911715),
        (-0.9999999999999999, -36.7368005696771),
        (1.718281828459045, 1.0),
        (5.0, 1.791759469228055),
        (100.0, 4.61512051684126),
        (10000000000.0, 23.025850930040455),
        (1e+100, 230.25850929940458),
        (f64::MAX, 709.782712893384),
    ];

    const EXPM1: &[(f64, f64)] = &[
        (5e-324, 5e-324),
        (-5e-324, -5e-324),
        (1e-310, 1e-310),
        (-f64::MIN_POSITIVE, -2.2250738585072014e-308),
        (1e-200, 1e-200),
        (-1e-20, -1e-20),
        (1e-16, 1e-16),
        (-1e-16, -1e-16),
        (1e-10, 1.00000000005e-10),
        (-1e-08, -9.999999950000001e-09),
        (1e-05, 1.0000050000166668e-05),
        (-0.001, -0.0009995001666250085),
        (0.01, 0.010050167084168058),
        (-0.1, -0.09516258196404043),
        (0.25, 0.2840254166877415),
        (-0.25, -0.22119921692859512),
        (0.3466, 0.41425091185052865),
        (-0.5, -0.3934693402873666),
        (0.5, 0.6487212707001282),
        (-1.0, -0.6321205588285577),
        (1.0, 1.7182818284590453),
        (-2.5, -0.9179150013761012),
        (5.0, 147.4131591025766),
        (-10.0, -0.9999546000702375),
        (-36.0, -0.9999999999999998),
        (-38.0, -1.0),
        (-10000.0, -1.0),
        (40.0, 2.3538526683702e+17),
        (100.0, 2.6881171418161356e+43),
        (500.0, 1.4035922178528375e+217),
        (709.7, 1.6549840276802644e+308),
        (710.0, f64::INFINITY),
    ];

    const CBRT: &[(f64, f64)] = &[
        (5e-324, 1.7031839360032603e-108),
        (-5e-324, -1.7031839360032603e-108),
        (1e-310, 4.641588833612774e-104),
        (-f64::MIN_POSITIVE, -2.812644285236262e-103),
        (1e-300, 1e-100),
        (-1e-200, -2.1544346900318838e-67),
        (1e-100, 4.641588833612779e-34),
        (-1e-20, -2.1544346900318838e-07),
        (1e-10, 0.0004641588833612779),
        (-0.001, -0.1),
        (0.008, 0.2),
        (0.1, 0.4641588833612779),
        (-0.125, -0.5),
        (0.3, 0.6694329500821695),
        (0.5, 0.7937005259840998),
        (-0.7, -0.8879040017426006),
        (0.9999999999999999, 1.0),
        (1.0, 1.0),
        (1.0000000000000002, 1.0),
        (-2.0, -1.2599210498948732),
        (3.0, 1.4422495703074083),
        (8.0, 2.0),
        (-10.0, -2.154434690031884),
        (27.0, 3.0),
        (100.0, 4.641588833612779),
        (1000.0, 10.0),
        (-10000000000.0, -2154.4346900318837),
        (1e+100, 2.1544346900318838e+33),
        (1e+300, 1e+100),
        (f64::MAX, 5.643803094122362e+102),
        (f64::MIN, -5.643803094122362e+102),
    ];

    const POLYGAMMA: &[(u32, f64, f64)] = &[
        (1, 5e-324, f64::INFINITY),
        (1, 1e-150, 1e+300),
        (1, 1e-20, 1.0000000000000002e+40),
        (1, 0.001, 1000001.6425331958),
        (1, 0.5, 4.934802200544679),
        (1, 1.0, 1.6449340668482264),
        (1, 1.4616321449683622, 0.9676722454476212),
        (1, 2.5, 0.49035775610023485),
        (1, 10.0, 0.10516633568168575),
        (1, 11.5, 0.09084666127454623),
        (1, 1000.0, 0.0010005001666666333),
        (1, 10000000000.0, 1.00000000005e-10),
        (1, 1e+155, 1e-155),
        (1, 1e+300, 1e-300),
        (1, f64::MAX, 5.562684646268003e-309),
        (1, -1e-150, 1e+300),
        (1, -1e-08, 1.0000000000000002e+16),
        (1, -0.3, 13.945160267805722),
        (1, -0.5, 8.934802200544679),
        (1, -0.9999999999999999, 8.112963841460668e+31),
        (1, -1.0000000000000002, 2.028240960365167e+31),
        (1, -2.7, 14.769375845132314),
        (1, -10.49, 9.788422512184262),
        (1, -1000000.125, 67.39387340291358),
        (2, 1e-102, -2.0000000000000003e+306),
        (2, 0.01, -2000002.340398677),
        (2, 1.0, -2.4041138063191885),
        (2, 3.7, -0.09539530872855403),
        (2, 12.0, -0.007547205368998912),
        (2, 100000.0, -1.00001000005e-10),
        (2, 1e+120, -1.0000000000000001e-240),
        (2, -1e-100, 1.9999999999999998e+300),
        (2, -0.25, 122.69736678366236),
        (2, -0.7, -69.44163279863854),
        (2, -1.9, -1998.8263854583738),
        (2, -1.9999999999999998, -1.8268770466636286e+47),
        (2, -2.0000000000000004, 2.283596308329536e+46),
        (2, -5.125, 1022.2630312128207),
        (2, -1000000.125, 1022.2943908844677),
        (3, 1e-70, 6e+280),
        (3, 0.2, 3753.244994864725),
        (3, 1.0, 6.493939402266829),
        (3, 4.4, 0.03266600934708502),
        (3, 13.5, 0.0009076528049134051),
        (3, 10000000.0, 2.00000030000002e-21),
        (3, 1e+90, 2e-270),
        (3, -1e-70, 6e+280),
        (3, -0.5, 193.40909103400244),
        (3, -1.3, 768.7206571990426),
        (3, -2.9999999999999996, 1.5426605224886307e+62),
        (3, -4.01, 600000012.9788545),
        (3, -20.6, 283.60208741451584),
        (3, -1000000.125, 24591.00232455982),
        (4, 0.3, -9883.46855549699),
        (5, 2.25, 1.0564876812920458),
        (5, -2.25, 492231.1355044701),
        (8, 1e-20, -4.032000000000002e+184),
        (10, 7.0, -0.002430965555111675),
        (12, -3.125, 2.6333391445903983e+20),
        (20, 1.5, -487772949462609.9),
        (22, 40.0, -3.778898298796049e-16),
        (40, 100000000.0, -2.039788616077414e-274),
        (60, 20.0, -380.41928433280077),
        (100, 100.0, -1.477102169174167e-44),
        (150, 50.0, -1717510.4520846582),
        (170, 100.0, -8.884119378185605e-36),
        (170, 3000.0, -3.4038259143618424e-287),
    ];

    const ZETA: &[(f64, f64, f64)] = &[
        (1.0000000000000002, 1.0, 4503599627370497.0),
        (1.0000000001, 0.001, 10000000173.17193),
        (1.001, 1e-20, 1.0471285480508944e+20),
        (1.1, 1.0, 10.584448464950801),
        (1.5, 1e-200, 1e+300),
        (1.5, 0.25, 10.213055360466601),
        (1.5, 3.0, 1.2588219580922146),
        (1.6, 1e+200, 1.6666666666665982e-120),
        (2.0, 5e-324, f64::INFINITY),
        (2.0, 1e-100, 1e+200),
        (2.0, 0.5, 4.934802200544679),
        (2.0, 1.0, 1.6449340668482264),
        (2.0, 12.5, 0.08328522460157838),
        (2.0, 10000000000.0, 1.00000000005e-10),
        (2.0, 1e+300, 1e-300),
        (2.5, 2.0, 0.34148725725091716),
        (3.0, 1.0, 1.2020569031595942),
        (3.0, 0.75, 2.6513166081688198),
        (3.0, 7.5, 0.010152626268322333),
        (4.0, 1.0, 1.0823232337111381),
        (5.5, 30.0, 5.3960294110093156e-08),
        (7.0, 0.1, 10000000.519141393),
        (10.0, 1.0, 1.000994575127818),
        (10.0, 9.9, 1.8602363658884106e-10),
        (20.0, 1.0, 1.0000009539620338),
        (20.0, 25.0, 2.068897860548341e-28),
        (33.3, 40.0, 8.097261581053016e-54),
        (50.0, 3.0, 1.3929563579707038e-24),
        (60.0, 1.0, 1.0),
        (100.0, 90.0, 5.646466610254065e-196),
        (100.0, 1000.0, 1.060934200387493e-299),
        (300.0, 0.5, 2.037035976334486e+90),
        (1000.0, 1.0, 1.0),
        (1000.0, 1.5, 8.104774656527566e-177),
        (10000.0, 1.05, 1.2794087029988344e-212),
        (1000.0, 2.0, 9.332636185032189e-302),
        (1e+308, 1.0, 1.0),
    ];

    const F32: &[(f32, [f32; 7])] = &[
        (1e-45, [1e-45, 1.0, 1e-45, 103.27893, f32::NEG_INFINITY, f32::INFINITY, 0.5]),
        (-1e-45, [-1e-45, 1.0, -1e-45, 103.27893, f32::INFINITY, f32::INFINITY, 0.5]),
        (1e-40, [1.12837e-40, 1.0, 8.8622e-41, 92.10341, f32::NEG_INFINITY, f32::INFINITY, 0.5]),
        (-2e-39, [-2.256759e-39, 1.0, -1.772455e-39, 89.10767, f32::INFINITY, f32::INFINITY, 0.5]),
        (1e-30, [1.1283791e-30, 1.0, 8.862269e-31, 69.07755, -1e+30, f32::INFINITY, 0.5]),
        (-1e-20, [-1.1283791e-20, 1.0, -8.862269e-21, 46.0517, 1e+20, f32::INFINITY, 0.5]),
        (1e-10, [1.1283792e-10, 1.0, 8.862269e-11, 23.02585, -1e+10, 9.999999e+19, 0.5]),
        (-1e-06, [-1.1283792e-06, 1.0000011, -8.862269e-07, 13.815511, 999999.44, 1e+12, 0.49999976]),
        (0.001, [0.0011283788, 0.9988716, 0.0008862272, 6.907179, -1000.5755, 1000001.56, 0.50025]),
        (-0.01, [-0.011283415, 1.0112834, -0.008862501, 4.611025, 99.40622, 10001.67, 0.49750003]),
        (0.1, [0.112462915, 0.88753706, 0.08885599, 2.2527127, -10.423755, 101.4333, 0.5249792]),
        (-0.2, [-0.2227026, 1.2227026, -0.17914346, 1.7614976, 4.0349913, 27.299473, 0.45016602]),
        (0.3, [0.32862678, 0.67137325, 0.27246273, 1.0957979, -3.5025241, 12.245363, 0.5744425]),
        (0.5, [0.5204999, 0.47950011, 0.47693628, 0.5723649, -1.96351, 4.934802, 0.62245935]),
        (-0.6, [-0.6038561, 1.6038561, -0.59511614, 1.3075035, -0.8947181, 10.053135, 0.35434368]),
        (0.75, [0.71115565, 0.28884438, 0.8134198, 0.20328096, -1.0858608, 2.5418797, 0.6791787]),
        (-0.9, [-0.7969082, 1.7969083, -1.1630871, 2.358073, -9.312641, 102.667816, 0.2890505]),
        (0.99, [0.83850807, 0.16149193, 1.8213866, 0.0058548013, -0.5937863, 1.6693041, 0.72908795]),
        (0.99999994, [0.8427008, 0.15729924, 3.832507, 3.440474e-08, -0.5772158, 1.6449342, 0.73105854]),
        (-0.99999994, [-0.8427008, 1.8427007, -3.832507, 16.635532, -16777216.0, 2.8147498e+14, 0.26894143]),
        (1.0000001, [0.84270084, 0.15729916, f32::NAN, -6.8809456e-08, -0.5772155, 1.6449338, 0.7310586]),
        (1.4616321, [0.9612715, 0.0387285, f32::NAN, -0.12148629, -1.2036052e-08, 0.9676722, 0.8117822]),
        (1.5, [0.96610516, 0.03389485, f32::NAN, -0.12078224, 0.036489975, 0.9348022, 0.8175745]),
        (-1.3, [-0.93400794, 1.9340079, f32::NAN, 1.2024759, 2.8825412, 14.53688, 0.21416503]),
        (2.5, [0.999593, 0.00040695202, f32::NAN, 0.28468287, 0.70315665, 0.49035776, 0.9241418]),
        (-2.7, [-0.99986565, 1.9998657, f32::NAN, -0.071407035, -1.1153479, 14.769379, 0.06297335]),
        (4.0001, [1.0, 1.5404547e-08, f32::NAN, 1.7918853, 1.2561461, 0.28381494, 0.98201555]),
        (-5.5, [-1.0, 2.0, f32::NAN, -4.5178323, 1.7929113, 9.70332, 0.0040701376]),
        (9.0, [1.0, 4.1370317e-37, f32::NAN, 10.604603, 2.1406415, 0.11751202, 0.9998766]),
        (10.5, [1.0, 0.0, f32::NAN, 13.940625, 2.303001, 0.09991696, 0.99997246]),
        (-30.25, [-1.0, 2.0, f32::NAN, -74.0224, 6.567527, 19.706692, 7.2877244e-14]),
        (5e+01, [1.0, 0.0, f32::NAN, 144.56575, 3.9019897, 0.020201333, 1.0]),
        (-100.1, [-1.0, 2.0, f32::NAN, -361.88132, 14.280142, 103.348946, 3.4e-44]),
        (1e+04, [1.0, 0.0, f32::NAN, 82099.72, 9.21029, 0.000100005, 1.0]),
        (3e+09, [1.0, 0.0, f32::NAN, 6.2465634e+10, 21.821878, 3.3333333e-10, 1.0]),
        (1e+30, [1.0, 0.0, f32::NAN, 6.8077553e+31, 69.07755, 1e-30, 1.0]),
    ];
}

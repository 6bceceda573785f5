//! Elementary functions as JAX's compiler writes them for the CPU, operation by operation.
//!
//! Arrays have all of these, and most of theirs are closer to the true value. But the numbers of a key are to be those of JAX,
//! to the last bit, and what is one bit off before a cancellation or a comparison is anywhere after it. So the same polynomials
//! are evaluated in the same order, with the same fused products. Logarithms of `f64` are the array's own, which are within
//! one unit of the last place of the true value, as are JAX's. Half precision goes by way of `f32`.

use gradus_core::{Array, DType, Result, Scalar};

/// Runs a formula for `f32` and `f64`; half precision by way of `f32`.
fn in_single(x: &Array, formula: impl Fn(&Array) -> Result<Array>) -> Result<Array> {
    match x.dtype() {
        DType::F32 | DType::F64 => formula(x),
        half => formula(&x.cast(DType::F32))?.cast(half).ok(),
    }
}

/// A polynomial, highest power first: one fused product for each coefficient.
fn polynomial(x: &Array, coefficients: &[f64]) -> Array {
    let Some((first, rest)) = coefficients.split_first() else { return x.zeros_like() };
    rest.iter().fold(x.full_like(number(*first, x)), |sum, c| sum.mul_add(x, number(*c, x)))
}

/// `x * y + z` with one rounding, as JAX's compiler has it. Half precision is rounded after each operation there too.
pub(super) fn fused(x: &Array, y: &Array, z: &Array) -> Array {
    if x.dtype().size() >= 4 { x.mul_add(y, z) } else { x * y + z }
}

/// A number in an array's dtype.
pub(super) fn number(v: f64, like: &Array) -> Scalar {
    Scalar::F64(v).cast(like.dtype())
}

/// A number in one of two polynomials.
fn choose(which: &Array, a: f64, b: &Array, like: &Array) -> Array {
    which.select(number(a, like), b)
}

/// The natural logarithm of a number that is not negative and finite. Of `f32`: the polynomial of the Cephes library, in the order
/// of JAX's compiler.
pub(super) fn log(x: &Array) -> Result<Array> {
    in_single(x, |x| match x.dtype() {
        DType::F32 => log_f32(x),
        _ => x.log().ok(),
    })
}

fn log_f32(x: &Array) -> Result<Array> {
    let n = |v: f64| Scalar::F32(v as f32);
    let normal = x.maximum(Scalar::F32(f32::MIN_POSITIVE));
    let bits = normal.bitcast(DType::U32);
    // x = 2^e · m with m in [1/2, 1); below √½ once more doubled.
    let e = (bits.shift_right_logical(23_u32).cast(DType::I32) - 0x7f_i32).cast(DType::F32) + n(1.0);
    let m = ((bits & 0x007f_ffff_u32) | 0x3f00_0000_u32).bitcast(DType::F32);
    let low = m.lt(n(std::f64::consts::FRAC_1_SQRT_2));
    let e = e - low.select(n(1.0), n(0.0));
    let m = (&m - n(1.0)) + low.select(&m, n(0.0));
    let square = &m * &m;
    let cube = &square * &m;
    let three = |a: f64, b: f64, c: f64| m.full_like(n(a)).mul_add(&m, n(b)).mul_add(&m, n(c));
    let p = three(7.0376836292E-2, -1.1514610310E-1, 1.1676998740E-1);
    let q = three(-1.2420140846E-1, 1.4249322787E-1, -1.6668057665E-1);
    let r = three(2.0000714765E-1, -2.4999993993E-1, 3.3333331174E-1);
    let tail = p.mul_add(&cube, q).mul_add(&cube, r);
    // ln 2 in two parts, the smaller one first.
    let y = tail.mul_add(&cube, &e * n(-2.12194440e-4));
    let sum = square.mul_add(n(-0.5), &m) + y;
    let log = e.mul_add(n(0.693359375), sum);
    x.eq(n(0.0)).select(n(f64::NEG_INFINITY), log).ok()
}

/// log(1 + x) of a number above -1.
pub(super) fn log1p(x: &Array) -> Result<Array> {
    /// Where the rational function of the Cephes library ends: √2 - 1. It is meant for more than -0.3, and is less exact below.
    const SMALL: f64 = std::f64::consts::SQRT_2 - 1.0;
    const ABOVE: [f64; 7] = [
        4.52700008624452e-05,
        0.49854102823193375,
        6.578732594206104,
        29.911919328553072,
        60.94966798098779,
        57.11296359058554,
        20.039553499201283,
    ];
    const BELOW: [f64; 7] = [
        1.0,
        15.062909083469192,
        83.04756596796722,
        221.76239823732857,
        309.09872225312057,
        216.42788614495947,
        60.11866049760384,
    ];
    in_single(x, |x| {
        let large = log(&(x + Scalar::one(x.dtype())))?;
        let square = x * x;
        let ratio = polynomial(x, &ABOVE) / polynomial(x, &BELOW);
        let third = x * &square * ratio;
        let small = x + square.mul_add(number(-0.5, x), third);
        x.abs().lt(number(SMALL, x)).select(small, large).ok()
    })
}

/// The error function. Of `f64` the array's own.
pub(super) fn erf(x: &Array) -> Result<Array> {
    const ABOVE: [f64; 5] =
        [0.00022905065861350646, 0.0034082910107109507, 0.05095569506238086, 0.18520832239976145, 1.128379143519084];
    const BELOW: [f64; 7] = [
        -1.1791602954361697e-07,
        2.3547966471313183e-05,
        0.0010179625278914884,
        0.014070470171167667,
        0.11098505178285362,
        0.49746925110067536,
        1.0,
    ];
    /// Beyond, the function is 1 in `f32`.
    const END: f64 = 3.832506856900711;
    in_single(x, |x| match x.dtype() {
        DType::F64 => x.erf().ok(),
        _ => {
            let x = x.clamp(number(-END, x), number(END, x));
            let square = &x * &x;
            (&x * polynomial(&square, &ABOVE) / polynomial(&square, &BELOW)).ok()
        }
    })
}

/// The inverse of the error function inside (-1, 1): the polynomials in w = -log(1 - x²) of M. Giles, "Approximating the erfinv
/// function", 2010.
pub(super) fn erf_inv(x: &Array) -> Result<Array> {
    in_single(x, |x| {
        let w = -log1p(&(x * -x))?;
        let factor = if x.dtype() == DType::F32 { factor_f32(&w) } else { factor_f64(&w) };
        (factor * x).ok()
    })
}

fn factor_f32(w: &Array) -> Array {
    const CENTRE: [f64; 9] = [
        2.81022636e-08,
        3.43273939e-07,
        -3.5233877e-06,
        -4.39150654e-06,
        0.00021858087,
        -0.00125372503,
        -0.00417768164,
        0.246640727,
        1.50140941,
    ];
    const TAIL: [f64; 9] = [
        -0.000200214257,
        0.000100950558,
        0.00134934322,
        -0.00367342844,
        0.00573950773,
        -0.0076224613,
        0.00943887047,
        1.00167406,
        2.83297682,
    ];
    let central = w.lt(number(5.0, w));
    let at = central.select(w - number(2.5, w), w.sqrt() - number(3.0, w));
    let pairs = CENTRE.iter().zip(&TAIL).map(|(a, b)| choose(&central, *a, &w.full_like(number(*b, w)), w));
    pairs.reduce(|sum, c| sum.mul_add(&at, c)).unwrap_or_else(|| w.zeros_like())
}

fn factor_f64(w: &Array) -> Array {
    const CENTRE: [f64; 23] = [
        -3.64441206401782e-21,
        -1.6850591381820166e-19,
        1.28584807152564e-18,
        1.1157877678025181e-17,
        -1.333171662854621e-16,
        2.0972767875968562e-17,
        6.637638134358324e-15,
        -4.054566272975207e-14,
        -8.151934197605472e-14,
        2.6335093153082323e-12,
        -1.2975133253453532e-11,
        -5.415412054294628e-11,
        1.0512122733215323e-09,
        -4.112633980346984e-09,
        -2.9070369957882005e-08,
        4.2347877827932404e-07,
        -1.3654692000834679e-06,
        -1.3882523362786469e-05,
        0.00018673420803405714,
        -0.000740702534166267,
        -0.006033670871430149,
        0.24015818242558962,
        1.6536545626831027,
    ];
    const MIDDLE: [f64; 19] = [
        2.2137376921775787e-09,
        9.075656193888539e-08,
        -2.7517406297064545e-07,
        1.8239629214389228e-08,
        1.5027403968909828e-06,
        -4.013867526981546e-06,
        2.9234449089955446e-06,
        1.2475304481671779e-05,
        -4.7318229009055734e-05,
        6.828485145957318e-05,
        2.4031110387097894e-05,
        -0.0003550375203628475,
        0.0009532893797373805,
        -0.0016882755560235047,
        0.002491442096107851,
        -0.003751208507569241,
        0.005370914553590064,
        1.0052589676941592,
        3.0838856104922208,
    ];
    const TAIL: [f64; 17] = [
        -2.7109920616438573e-11,
        -2.555641816996525e-10,
        1.5076572693500548e-09,
        -3.789465440126737e-09,
        7.61570120807834e-09,
        -1.496002662714924e-08,
        2.914795345090108e-08,
        -6.771199775845234e-08,
        2.2900482228026655e-07,
        -9.9298272942317e-07,
        4.526062597223154e-06,
        -1.968177810553167e-05,
        7.599527703001776e-05,
        -0.00021503011930044477,
        -0.00013871931833623122,
        1.0103004648645344,
        4.849906401408584,
    ];
    let root = w.sqrt();
    let central = polynomial(&(w - number(3.125, w)), &CENTRE);
    let middle = polynomial(&(&root - number(3.25, w)), &MIDDLE);
    let tail = polynomial(&(&root - number(5.0, w)), &TAIL);
    w.lt(number(6.25, w)).select(central, w.lt(number(16.0, w)).select(middle, tail))
}

/// The logarithm of the gamma function of `f32` from 1/2 on: the approximation of C. Lanczos.
pub(super) fn lgamma(x: &Array) -> Result<Array> {
    const TERMS: [f32; 8] =
        [676.520_4, -1_259.139_2, 771.323_4, -176.615_04, 12.507_343, -0.138_571_1, 9.984_369e-6, 1.505_632_7e-7];
    let z = x - 1.0_f32;
    let terms = TERMS.iter().zip(1u8..).map(|(term, i)| x.full_like(*term) / (&z + f32::from(i)));
    let sum = terms.fold(x.full_like(1.0_f32), |sum, term| sum + term);
    let log_t = log1p(&(&z * 0.133_333_34_f32))? + 2.014_903_f32;
    let power = &z + 0.5_f32 - (&z + 7.5_f32) / &log_t;
    (power.mul_add(&log_t, 0.918_938_5_f32) + log(&sum)?).ok()
}

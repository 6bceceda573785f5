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
        4.5270000862445199635215E-5,
        4.9854102823193375972212E-1,
        6.5787325942061044846969E0,
        2.9911919328553073277375E1,
        6.0949667980987787057556E1,
        5.7112963590585538103336E1,
        2.0039553499201281259648E1,
    ];
    const BELOW: [f64; 7] = [
        1.0,
        1.5062909083469192043167E1,
        8.3047565967967209469434E1,
        2.2176239823732856465394E2,
        3.0909872225312059774938E2,
        2.1642788614495947685003E2,
        6.0118660497603843919306E1,
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
        [0.00022905065861350646, 0.0034082910107109506, 0.050955695062380861, 0.18520832239976145, 1.128379143519084];
    const BELOW: [f64; 7] = [
        -1.1791602954361697e-7,
        0.000023547966471313185,
        0.0010179625278914885,
        0.014070470171167667,
        0.11098505178285362,
        0.49746925110067538,
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
        -3.6444120640178196996e-21,
        -1.685059138182016589e-19,
        1.2858480715256400167e-18,
        1.115787767802518096e-17,
        -1.333171662854620906e-16,
        2.0972767875968561637e-17,
        6.6376381343583238325e-15,
        -4.0545662729752068639e-14,
        -8.1519341976054721522e-14,
        2.6335093153082322977e-12,
        -1.2975133253453532498e-11,
        -5.4154120542946279317e-11,
        1.051212273321532285e-09,
        -4.1126339803469836976e-09,
        -2.9070369957882005086e-08,
        4.2347877827932403518e-07,
        -1.3654692000834678645e-06,
        -1.3882523362786468719e-05,
        0.0001867342080340571352,
        -0.00074070253416626697512,
        -0.0060336708714301490533,
        0.24015818242558961693,
        1.6536545626831027356,
    ];
    const MIDDLE: [f64; 19] = [
        2.2137376921775787049e-09,
        9.0756561938885390979e-08,
        -2.7517406297064545428e-07,
        1.8239629214389227755e-08,
        1.5027403968909827627e-06,
        -4.013867526981545969e-06,
        2.9234449089955446044e-06,
        1.2475304481671778723e-05,
        -4.7318229009055733981e-05,
        6.8284851459573175448e-05,
        2.4031110387097893999e-05,
        -0.0003550375203628474796,
        0.00095328937973738049703,
        -0.0016882755560235047313,
        0.0024914420961078508066,
        -0.0037512085075692412107,
        0.005370914553590063617,
        1.0052589676941592334,
        3.0838856104922207635,
    ];
    const TAIL: [f64; 17] = [
        -2.7109920616438573243e-11,
        -2.5556418169965252055e-10,
        1.5076572693500548083e-09,
        -3.7894654401267369937e-09,
        7.6157012080783393804e-09,
        -1.4960026627149240478e-08,
        2.9147953450901080826e-08,
        -6.7711997758452339498e-08,
        2.2900482228026654717e-07,
        -9.9298272942317002539e-07,
        4.5260625972231537039e-06,
        -1.9681778105531670567e-05,
        7.5995277030017761139e-05,
        -0.00021503011930044477347,
        -0.00013871931833623122026,
        1.0103004648645343977,
        4.8499064014085844221,
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

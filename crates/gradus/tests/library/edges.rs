//! Special functions at small, large and singular arguments, and derivatives where formulas meet.

use gradus::prelude::*;
use gradus::special;

// Every table holds arguments and the float nearest to the exact value, by mpmath 1.4 with 40 digits.

const GAMMAINC: &[([f64; 2], f64)] = &[
    ([0.001, 1e-10], 0.9778006565986258),
    ([0.5, 1e-08], 0.00011283791633342487),
    ([1.0, 2.0], 0.8646647167633873),
    ([10.0, 3.0], 0.0011024881301154798),
    ([100.0, 90.0], 0.15822098918643016),
    ([1000.0, 1010.0], 0.6276789447369947),
    ([3.0, 30.0], 0.9999999999549898),
    ([10000.0, 10000.0], 0.5013298083399552),
];
const GAMMAINCC: &[([f64; 2], f64)] = &[
    ([0.5, 20.0], 2.539628589470865e-10),
    ([1.0, 700.0], 9.85967654375977e-305),
    ([10.0, 40.0], 3.925932226286188e-09),
    ([100.0, 150.0], 5.924540335483916e-06),
    ([1000.0, 1100.0], 0.0010593232539299773),
    ([2.5, 0.0001], 0.9999999999699121),
];
const BETAINC: &[([f64; 3], f64)] = &[
    ([0.5, 0.5, 1e-06], 0.0006366198784709244),
    ([2.0, 3.0, 0.999], 0.999999996003),
    ([100.0, 200.0, 0.3], 0.10884306564490975),
    ([1000.0, 10.0, 0.98], 0.004207729512718629),
    ([0.1, 5.0, 0.2], 0.9766004939306011),
    ([5.0, 0.1, 0.9], 0.06095081354725478),
];
const ERFCX: &[([f64; 1], f64)] = &[
    ([-3.0], 16205.988853999586),
    ([0.0], 1.0),
    ([5.0], 0.11070463773306863),
    ([9.9], 0.05670245693883227),
    ([10.1], 0.055590487009239874),
    ([100.0], 0.005641613782989433),
    ([100000000.0], 5.641895835477562e-09),
];
const EXPI: &[([f64; 1], f64)] = &[
    ([-20.0], -9.835525290649882e-11),
    ([-1e-05], -10.935719800043696),
    ([1e-05], -10.935699800043695),
    ([0.372], -0.001977827624334298),
    ([30.0], 368973209407.2742),
    ([45.0], 7.943916035704454e+17),
    ([100.0], 2.71555274485388e+41),
];
const E1: &[([f64; 1], f64)] = &[
    ([1e-08], 17.84346508905083),
    ([0.5], 0.5597735947761608),
    ([2.0], 0.04890051070806112),
    ([2.1], 0.04261434150851506),
    ([50.0], 3.783264029550459e-24),
    ([600.0], 4.409989794509838e-264),
];
const DAWSN: &[([f64; 1], f64)] = &[
    ([1e-05], 9.999999999333333e-06),
    ([0.9], 0.5407243187262987),
    ([3.0], 0.1782710306105583),
    ([5.9], 0.08601968199264808),
    ([6.1], 0.08311633050835149),
    ([50.0], 0.010002001201201684),
];
const SPENCE: &[([f64; 1], f64)] = &[
    ([1e-09], 1.6449340451249606),
    ([0.3], 0.8893776242860387),
    ([1.0], 0.0),
    ([1.0001], -9.999750011109385e-05),
    ([3.0], -1.4367463668836808),
    ([100000.0], -67.9185353179729),
];
const SI: &[([f64; 1], f64)] = &[
    ([1e-05], 9.999999999944446e-06),
    ([3.9], 1.7765013604478055),
    ([4.1], 1.738743626491769),
    ([50.0], 1.551617072485936),
    ([1000.0], 1.5702331219687713),
];
const CI: &[([f64; 1], f64)] = &[
    ([1e-05], -10.935709800093695),
    ([3.9], -0.12349934920781512),
    ([4.1], -0.15616539182812106),
    ([50.0], -0.005628386324116306),
    ([1000.0], 0.0008263155110906822),
];
const FRESNEL_S: &[([f64; 1], f64)] = &[
    ([0.01], 5.235987746754931e-07),
    ([1.5], 0.6975049600820931),
    ([1.7], 0.5491959403215686),
    ([10.0], 0.46816997858488224),
    ([60.0], 0.4946948353546973),
];
const FRESNEL_C: &[([f64; 1], f64)] = &[
    ([0.01], 0.009999999975325989),
    ([1.5], 0.4452611760398215),
    ([1.7], 0.32382687600390025),
    ([10.0], 0.49989869420551575),
    ([60.0], 0.4999995309205011),
];
const I0E: &[([f64; 1], f64)] = &[
    ([0.0], 1.0),
    ([0.0001], 0.9999000074995833),
    ([5.0], 0.18354081260932836),
    ([19.9], 0.0900085888643896),
    ([20.1], 0.08955376362061344),
    ([500.0], 0.017845706500153168),
];
const I1E: &[([f64; 1], f64)] = &[
    ([0.0001], 4.999500031248542e-05),
    ([5.0], 0.16397226694454237),
    ([19.9], 0.0877171021317061),
    ([20.1], 0.08729685184320159),
    ([500.0], 0.017827851852898056),
];
const LOG_NDTR: &[([f64; 1], f64)] = &[
    ([-40.0], -804.6084420137538),
    ([-14.2], -104.39707979709809),
    ([-1.1], -1.997558846986297),
    ([-0.9], -1.6924928065613383),
    ([0.0], -std::f64::consts::LN_2),
    ([5.0], -2.866516129637636e-07),
];
const ZETA: &[([f64; 2], f64)] = &[
    ([1.01, 1.0], 100.57794333849678),
    ([2.0, 1.0], 1.6449340668482264),
    ([3.0, 0.001], 1000000001.1988161),
    ([50.0, 0.5], 1125899906842624.0),
    ([2.5, 10000.0], 6.6671666875e-07),
];
const OWENS_T: &[([f64; 2], f64)] = &[
    ([0.1, 0.5], 0.07339499712685262),
    ([3.0, 0.9], 0.0006723818218986225),
    ([1.0, 5.0], 0.07932762447189018),
    ([0.01, 100.0], 0.24767297891854384),
    ([6.0, 1.0], 4.932938220321714e-10),
];
const BETALN: &[([f64; 2], f64)] = &[
    ([0.5, 1000000.0], -6.335390211057437),
    ([10.0, 20.0], -19.115327299887046),
    ([1e-05, 3.0], 11.512910465032729),
    ([8.0, 8.0], -10.848948661710063),
    ([7.9, 100.0], -28.32264289462188),
];
const GAMMAINCC_BY_A: [f64; 2] = [0.2208254262118595, 0.14856186245701777];
const BETAINC_BY_B: [f64; 2] = [0.08302979254275528, 0.009452222589000334];

/// Holds a function against a table; the tolerance is relative.
#[track_caller]
fn near<const N: usize>(name: &str, table: &[([f64; N], f64)], tolerance: f64, f: impl Fn([Array; N]) -> Array) {
    for (arguments, want) in table {
        let have = f(arguments.map(Array::from)).item::<f64>().unwrap_or_else(|e| panic!("{name}{arguments:?}: {e}"));
        let off = (have - want).abs() / want.abs();
        assert!(off <= tolerance || have == *want, "{name}{arguments:?} is {have:e}, not {want:e}: {off:e}");
    }
}

#[test]
fn special_functions_keep_their_digits() {
    near("gammainc", GAMMAINC, 1e-13, |[a, x]| special::gammainc(a, x));
    near("gammaincc", GAMMAINCC, 1e-12, |[a, x]| special::gammaincc(a, x));
    near("betainc", BETAINC, 2e-12, |[a, b, x]| special::betainc(a, b, x));
    near("erfcx", ERFCX, 3e-14, |[x]| special::erfcx(x));
    // One argument is beside the root.
    near("expi", EXPI, 1e-12, |[x]| special::expi(x));
    near("exp1", E1, 1e-14, |[x]| special::exp1(x));
    near("dawsn", DAWSN, 1e-14, |[x]| special::dawsn(x));
    near("spence", SPENCE, 1e-13, |[x]| special::spence(x));
    near("si", SI, 1e-13, |[x]| special::sici(&x).0);
    near("ci", CI, 1e-12, |[x]| special::sici(&x).1);
    near("fresnel s", FRESNEL_S, 1e-12, |[x]| special::fresnel(&x).0);
    near("fresnel c", FRESNEL_C, 1e-12, |[x]| special::fresnel(&x).1);
    near("i0e", I0E, 1e-14, |[x]| special::i0e(x));
    near("i1e", I1E, 1e-14, |[x]| special::i1e(x));
    near("log_ndtr", LOG_NDTR, 1e-14, |[x]| special::log_ndtr(x));
    near("zeta", ZETA, 1e-13, |[s, q]| special::zeta(s, q));
    near("owens_t", OWENS_T, 1e-12, |[h, a]| special::owens_t(h, a));
    near("betaln", BETALN, 1e-13, |[a, b]| special::betaln(a, b));
}

#[test]
fn ends_and_poles_are_met() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let value = |x: Array| x.item::<f64>().unwrap();
    assert_eq!(value(special::gammainc(2.0, 0.0)), 0.0);
    assert_eq!(value(special::gammainc(2.0, inf)), 1.0);
    assert_eq!(value(special::gammaincc(2.0, inf)), 0.0);
    assert_eq!(value(special::betainc(2.0, 3.0, 1.0)), 1.0);
    assert_eq!(value(special::exp1(0.0)), inf);
    assert_eq!(value(special::expi(0.0)), -inf);
    assert_eq!(value(special::xlogy(0.0, 0.0)), 0.0);
    assert_eq!(value(special::entr(0.0)), 0.0);
    assert_eq!(value(special::rel_entr(1.0, 0.0)), inf);
    assert_eq!(value(special::ndtri(0.0)), -inf);
    assert_eq!(value(special::logit(1.0)), inf);
    assert_eq!(value(special::gamma(-0.0)), -inf);
    for bad in [
        special::gammainc(-1.0, 1.0),
        special::gammainc(1.0, nan),
        special::betainc(1.0, 1.0, 1.5),
        special::gamma(-1.0),
        special::zeta(0.5, 1.0),
        special::spence(-1.0),
        special::ndtri(1.5),
    ] {
        assert!(value(bad.clone()).is_nan(), "{bad:?}");
    }
    let words = special::gammainc(Array::from([1.0, 2.0]), Array::from([1.0, 2.0, 3.0]));
    assert!(words.error().is_some_and(|e| e.place().file() == Some(file!())), "{words:?}");
}

/// The first and the second derivative at a number.
fn derivatives(f: impl Fn(&Array) -> Array + Send + Sync + Clone + 'static, x: f64) -> [f64; 2] {
    let x = Array::from(x);
    [grad(f.clone())(&x), grad(grad(f))(&x)].map(|d| d.item::<f64>().unwrap())
}

#[test]
fn derivatives_are_right_where_formulas_meet() {
    use std::f64::consts::PI;
    let close = |have: [f64; 2], want: [f64; 2]| {
        let near = |h: f64, w: f64| (h - w).abs() <= 1e-12 * (1.0 + w.abs());
        assert!(near(have[0], want[0]) && near(have[1], want[1]), "{have:?} where {want:?} is expected");
    };
    close(derivatives(|x| x.sinc(), 0.0), [0.0, -PI * PI / 3.0]);
    close(derivatives(|x| x.logaddexp(0.0), 0.0), [0.5, 0.25]);
    close(derivatives(gradus::nn::softplus, 0.0), [0.5, 0.25]);
    close(derivatives(gradus::nn::log_sigmoid, 0.0), [0.5, -0.25]);
    close(derivatives(|x| x.hypot(0.0), 0.0), [0.0, 0.0]);
    close(derivatives(|x| special::boxcox(2.0, x), 0.0), [2f64.ln().powi(2) / 2.0, 2f64.ln().powi(3) / 3.0]);
    close(derivatives(|x| special::i1e(x), 0.0), [0.5, 0.0]);
    close(derivatives(|x| special::spence(x), 1.0), [-1.0, 0.5]);
    // By the first operand at a whole number, where the continued fraction ends early: Γ(a, 2) and its derivatives at 1, by mpmath.
    let q = |a: &Array| special::gammaincc(a, 2.0);
    close(derivatives(q, 1.0), [GAMMAINCC_BY_A[0], GAMMAINCC_BY_A[1]]);
    let i = |b: &Array| special::betainc(2.5, b, 0.25);
    close(derivatives(i, 3.0), [BETAINC_BY_B[0], BETAINC_BY_B[1]]);
}

/// Where functions have poles, ends, tails and seams.
const PLACES: &[f64] = &[
    f64::NEG_INFINITY,
    -1e300,
    -1e30,
    -100.0,
    -37.5,
    -10.5,
    -9.5,
    -6.5,
    -3.0,
    -2.5,
    -2.0,
    -1.5,
    -1.0,
    -0.5,
    -1e-8,
    -0.0,
    0.0,
    1e-300,
    1e-30,
    1e-8,
    0.1,
    0.25,
    0.5,
    0.75,
    1.0,
    1.5,
    1.6,
    2.0,
    3.0,
    4.0,
    4.5,
    6.0,
    8.0,
    9.5,
    10.0,
    10.5,
    20.0,
    37.5,
    40.5,
    100.0,
    1e5,
    1e30,
    1e300,
    f64::INFINITY,
    f64::NAN,
];
const FEW: &[f64] = &[
    f64::NEG_INFINITY,
    -2.5,
    -2.0,
    -0.5,
    -0.0,
    0.0,
    1e-15,
    0.25,
    0.5,
    1.0,
    2.0,
    3.5,
    10.0,
    100.0,
    1e30,
    f64::INFINITY,
    f64::NAN,
];

type One = fn(&Array) -> Array;
type Two = fn(&Array, &Array) -> Array;
type Three = fn(&Array, &Array, &Array) -> Array;

/// Whether two numbers are the same but for rounding; NaN is like NaN.
fn alike(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * (a.abs() + b.abs()).min(f64::MAX)
}

/// Both modes of a function of a vector, element by element.
fn modes(f: impl Fn(&Array) -> Array + Send + Sync + Clone + 'static, x: &Array) -> [Vec<f64>; 3] {
    let (y, forward) = jvp(f.clone(), x, &x.ones_like());
    let reverse = grad(move |x: &Array| f(x).sum())(x);
    [y, forward, reverse].map(|v| v.cast(DType::F64).to_vec::<f64>().unwrap())
}

fn disagreements(
    name: &str,
    f: impl Fn(&Array) -> Array + Send + Sync + Clone + 'static,
    x: &[f64],
    other: &[f64],
    all: &mut Vec<String>,
) {
    for (dtype, tolerance, rounding) in [(DType::F64, 1e-9, 1e-14), (DType::F32, 1e-3, 1e-5)] {
        let x = Array::from_vec(x.to_vec(), [x.len()]).cast(dtype);
        let [y, forward, reverse] = modes(f.clone(), &x);
        for (i, x) in x.cast(DType::F64).to_vec::<f64>().unwrap().into_iter().enumerate() {
            let (a, b) = (forward[i], reverse[i]);
            // What cancels leaves the rounding of numbers as large as the value.
            let size = if y[i].is_finite() { 1.0 + y[i].abs() } else { 1.0 };
            // At a pole neither is a number; which of infinity and NaN it is depends on the order of products.
            let at_pole = !y[i].is_finite() && !a.is_finite() && !b.is_finite();
            if !(alike(a, b, tolerance) || (a - b).abs() <= rounding * size || at_pole) {
                let with = other.get(i).map_or(String::new(), |o| format!(" with {o:e}"));
                all.push(format!("{name} {dtype} at {x:e}{with} is {:e}: {a:e} forward, {b:e} in reverse", y[i]));
            }
        }
    }
}

#[test]
fn both_modes_agree_at_poles_and_in_tails() {
    let mut all = Vec::new();
    let one: &[(&str, One)] = &[
        ("erf", |x| x.erf()),
        ("erfc", |x| x.erfc()),
        ("erf_inv", |x| x.erf_inv()),
        ("lgamma", |x| x.lgamma()),
        ("digamma", |x| x.digamma()),
        ("polygamma 1", |x| x.polygamma(1)),
        ("logistic", |x| x.logistic()),
        ("gamma", |x| special::gamma(x)),
        ("factorial", |x| special::factorial(x)),
        ("multigammaln", |x| special::multigammaln(x, 3)),
        ("exp1", |x| special::exp1(x)),
        ("expn 3", |x| special::expn(3, x)),
        ("dawsn", |x| special::dawsn(x)),
        ("erfcx", |x| special::erfcx(x)),
        ("expi", |x| special::expi(x)),
        ("fresnel s", |x| special::fresnel(x).0),
        ("fresnel c", |x| special::fresnel(x).1),
        ("si", |x| special::sici(x).0),
        ("ci", |x| special::sici(x).1),
        ("spence", |x| special::spence(x)),
        ("i0", |x| special::i0(x)),
        ("i0e", |x| special::i0e(x)),
        ("i1", |x| special::i1(x)),
        ("i1e", |x| special::i1e(x)),
        ("entr", |x| special::entr(x)),
        ("logit", |x| special::logit(x)),
        ("ndtr", |x| special::ndtr(x)),
        ("log_ndtr", |x| special::log_ndtr(x)),
        ("ndtri", |x| special::ndtri(x)),
        ("sinc", |x| x.sinc()),
        ("soft_sign", gradus::nn::soft_sign),
        ("relu6", gradus::nn::relu6),
        ("hard_sigmoid", gradus::nn::hard_sigmoid),
        ("hard_silu", gradus::nn::hard_silu),
        ("sparse_sigmoid", gradus::nn::sparse_sigmoid),
        ("sparse_plus", gradus::nn::sparse_plus),
        ("hard_tanh", gradus::nn::hard_tanh),
        ("softplus", gradus::nn::softplus),
        ("log_sigmoid", gradus::nn::log_sigmoid),
        ("silu", gradus::nn::silu),
        ("mish", gradus::nn::mish),
        ("gelu", gradus::nn::gelu),
        ("gelu_exact", gradus::nn::gelu_exact),
        ("log1mexp", gradus::nn::log1mexp),
        ("selu", gradus::nn::selu),
    ];
    for (name, f) in one {
        disagreements(name, *f, PLACES, &[], &mut all);
    }
    let two: &[(&str, Two)] = &[
        ("beta", |a, b| special::beta(a, b)),
        ("betaln", |a, b| special::betaln(a, b)),
        ("comb", |a, b| special::comb(a, b)),
        ("poch", |a, b| special::poch(a, b)),
        ("zeta", |a, b| special::zeta(a, b)),
        ("gammainc", |a, b| special::gammainc(a, b)),
        ("gammaincc", |a, b| special::gammaincc(a, b)),
        ("xlogy", |a, b| special::xlogy(a, b)),
        ("xlog1py", |a, b| special::xlog1py(a, b)),
        ("rel_entr", |a, b| special::rel_entr(a, b)),
        ("kl_div", |a, b| special::kl_div(a, b)),
        ("boxcox", |a, b| special::boxcox(a, b)),
        ("boxcox1p", |a, b| special::boxcox1p(a, b)),
        ("owens_t", |a, b| special::owens_t(a, b)),
        ("hypot", |a, b| a.hypot(b)),
        ("logaddexp", |a, b| a.logaddexp(b)),
    ];
    for (name, f) in two {
        // A shape of 1e-15 takes digits from the incomplete gamma function, and a slope of 1e30 from Owen's.
        let skips = |a: f64, b: f64| match *name {
            "gammainc" | "gammaincc" => a == 1e-15 || a.abs() == 1e30 || b.abs() == 1e30,
            "owens_t" => b == 1e30,
            // The square of 1e30 is no number in single precision, and derivatives in there have it.
            "beta" | "boxcox" => a == 1e30 || b == 1e30,
            _ => false,
        };
        let pairs = FEW.iter().flat_map(|&a| FEW.iter().map(move |&b| (a, b))).filter(|&(a, b)| !skips(a, b));
        let (first, second): (Vec<f64>, Vec<f64>) = pairs.unzip();
        let vector = |v: &[f64]| Array::from_vec(v.to_vec(), [v.len()]);
        let (f, a, b) = (*f, vector(&first), vector(&second));
        disagreements(
            &format!("{name} by the first"),
            move |x: &Array| f(x, &b.cast(x.dtype())),
            &first,
            &second,
            &mut all,
        );
        disagreements(
            &format!("{name} by the second"),
            move |x: &Array| f(&a.cast(x.dtype()), x),
            &second,
            &first,
            &mut all,
        );
    }
    let three: &[(&str, Three)] = &[("betainc", |a, b, x| special::betainc(a, b, x))];
    for (name, f) in three {
        for (p, q) in [(0.5, 0.5), (2.0, 3.0), (0.0, 1.0), (1.0, 0.0), (100.0, 0.25), (f64::NAN, 1.0), (-1.0, 0.5)] {
            let f = *f;
            let still = move |v: f64, like: &Array| Array::from(v).cast(like.dtype()).broadcast_to(like.shape());
            disagreements(
                &format!("{name} by a, with {p:e} and {q:e},"),
                move |x: &Array| f(x, &still(p, x), &still(q, x)),
                FEW,
                &[],
                &mut all,
            );
            disagreements(
                &format!("{name} by b, with {p:e} and {q:e},"),
                move |x: &Array| f(&still(p, x), x, &still(q, x)),
                FEW,
                &[],
                &mut all,
            );
            disagreements(
                &format!("{name} by x, with {p:e} and {q:e},"),
                move |x: &Array| f(&still(p, x), &still(q, x), x),
                FEW,
                &[],
                &mut all,
            );
        }
    }
    assert!(all.is_empty(), "{} do not agree:\n{}", all.len(), all.join("\n"));
}

#[test]
fn tails_and_poles_have_their_values_and_slopes() {
    let value = |x: Array| x.cast(DType::F64).item::<f64>().unwrap();
    let slope = |f: One, x: Array| value(grad(f)(&x));
    let near = |have: f64, want: f64, tolerance: f64| {
        assert!(alike(have, want, tolerance), "{have:e} where {want:e} is right")
    };
    // By SciPy.
    for (x, want) in [
        (4.4_f32, 0.1251416530),
        (4.6, 0.1199362622),
        (9.3, 0.0603207503),
        (9.5, 0.0590646784),
        (10.0, 0.056140992),
        (12.0, 0.046854221),
    ] {
        near(value(special::erfcx(Array::from(x))), want, 3e-6);
        near(value(special::erfcx(Array::from(x).cast(DType::F16))), want, 2e-3);
    }
    // dx/dp = 1/φ(x).
    for p in [1e-300, 1e-100, 1e-30, 1e-17, 1e-5, 0.3, 0.5, 0.9, 1.0 - 1e-10_f64] {
        let x = value(special::ndtri(p));
        let want = (2.0 * std::f64::consts::PI).sqrt() * (x * x / 2.0).exp();
        near(slope(|p| special::ndtri(p), Array::from(p)), want, 1e-9);
        near(slope(|p| gradus::stats::norm::ppf(p, 0.0, 1.0), Array::from(p)), want, 1e-9);
        let second = value(grad(grad(|p: &Array| special::ndtri(p)))(&Array::from(p)));
        if p > 1e-100 {
            near(second, x * want * want, 1e-8);
        }
    }
    assert_eq!(value(special::gamma(0.0)), f64::INFINITY);
    assert_eq!(value(special::gamma(-0.0)), f64::NEG_INFINITY);
    assert_eq!(slope(|x| special::gamma(x), Array::from(0.0_f64)), f64::NEG_INFINITY);
    assert!(slope(|x| special::gamma(x), Array::from(-1.0_f64)).is_nan());
    // As SciPy has them.
    for (h, a, want) in [
        (0.0, f64::INFINITY, 0.25),
        (0.0, f64::NEG_INFINITY, -0.25),
        (1.0, f64::INFINITY, 0.07932762696572854),
        (f64::INFINITY, f64::INFINITY, 0.0),
    ] {
        near(value(special::owens_t(h, a)), want, 1e-14);
    }
    assert!(
        value(special::owens_t(f64::NAN, f64::INFINITY)).is_nan() && value(special::owens_t(1.0, f64::NAN)).is_nan()
    );
    for (s, q) in [(1.0, 1.0), (1.0, 2.0), (2.0, 0.0), (2.0, -1.0)] {
        assert_eq!(value(special::zeta(s, q)), f64::INFINITY, "{s} {q}");
    }
    assert!(
        value(special::zeta(f64::NAN, 1.0)).is_nan()
            && value(special::zeta(1.0, f64::NAN)).is_nan()
            && value(special::zeta(2.0, f64::NAN)).is_nan()
    );
}

#[test]
fn kinks_of_activations_are_those_of_jax() {
    use gradus::nn;
    let inf = f64::INFINITY;
    let rows: &[(&str, One, &[(f64, f64)])] = &[
        ("relu6", nn::relu6, &[(-1.0, 0.0), (0.0, 0.0), (1.0, 1.0), (6.0, 0.0), (7.0, 0.0), (inf, 0.0)]),
        ("hard_sigmoid", nn::hard_sigmoid, &[(-3.0, 0.0), (0.0, 1.0 / 6.0), (3.0, 0.0), (-inf, 0.0)]),
        (
            "hard_silu",
            nn::hard_silu,
            &[(-inf, 0.0), (-3.0, 0.0), (-1.0, 1.0 / 6.0), (0.0, 0.5), (3.0, 1.0), (inf, 1.0)],
        ),
        ("sparse_sigmoid", nn::sparse_sigmoid, &[(-1.0, 0.25), (0.0, 0.5), (1.0, 0.25), (2.0, 0.0)]),
        ("hard_tanh", nn::hard_tanh, &[(-1.0, 1.0), (1.0, 1.0), (2.0, 0.0)]),
        // Where JAX loses the difference of two numbers: 1 / (1 + |x|)².
        (
            "soft_sign",
            nn::soft_sign,
            &[(0.0, 1.0), (1.0, 0.25), (-1.0, 0.25), (3.0, 1.0 / 16.0), (1e16, 1e-32), (-1e16, 1e-32), (inf, 0.0)],
        ),
    ];
    for (name, f, places) in rows {
        for &(x, want) in *places {
            let have = grad(*f)(&Array::from(x)).item::<f64>().unwrap();
            assert!(alike(have, want, 1e-12), "the slope of {name} at {x} is {have:e}, not {want:e}");
        }
        assert!(f(&Array::from(f64::NAN)).item::<f64>().unwrap().is_nan(), "{name} of NaN");
    }
}

#[test]
fn densities_of_nan_are_nan() {
    use gradus::stats::*;
    let nan = || Array::from(f64::NAN);
    let parts = || Array::from([f64::NAN, 0.5]);
    let rows: Vec<(&str, Array)> = vec![
        ("norm::logpdf", norm::logpdf(nan(), 0.0, 1.0)),
        ("norm::cdf", norm::cdf(nan(), 0.0, 1.0)),
        ("norm::logcdf", norm::logcdf(nan(), 0.0, 1.0)),
        ("norm::ppf", norm::ppf(nan(), 0.0, 1.0)),
        ("norm::isf", norm::isf(nan(), 0.0, 1.0)),
        ("norm::sf", norm::sf(nan(), 0.0, 1.0)),
        ("norm::logsf", norm::logsf(nan(), 0.0, 1.0)),
        ("cauchy::logpdf", cauchy::logpdf(nan(), 0.0, 1.0)),
        ("cauchy::cdf", cauchy::cdf(nan(), 0.0, 1.0)),
        ("cauchy::sf", cauchy::sf(nan(), 0.0, 1.0)),
        ("cauchy::logcdf", cauchy::logcdf(nan(), 0.0, 1.0)),
        ("cauchy::ppf", cauchy::ppf(nan(), 0.0, 1.0)),
        ("cauchy::isf", cauchy::isf(nan(), 0.0, 1.0)),
        ("laplace::logpdf", laplace::logpdf(nan(), 0.0, 1.0)),
        ("laplace::cdf", laplace::cdf(nan(), 0.0, 1.0)),
        ("logistic::logpdf", logistic::logpdf(nan(), 0.0, 1.0)),
        ("logistic::cdf", logistic::cdf(nan(), 0.0, 1.0)),
        ("logistic::ppf", logistic::ppf(nan(), 0.0, 1.0)),
        ("t::logpdf", t::logpdf(nan(), 2.0, 0.0, 1.0)),
        ("gennorm::logpdf", gennorm::logpdf(nan(), 2.0)),
        ("gennorm::cdf", gennorm::cdf(nan(), 2.0)),
        ("gumbel_l::logpdf", gumbel_l::logpdf(nan(), 0.0, 1.0)),
        ("gumbel_l::logcdf", gumbel_l::logcdf(nan(), 0.0, 1.0)),
        ("gumbel_l::cdf", gumbel_l::cdf(nan(), 0.0, 1.0)),
        ("gumbel_l::sf", gumbel_l::sf(nan(), 0.0, 1.0)),
        ("gumbel_l::ppf", gumbel_l::ppf(nan(), 0.0, 1.0)),
        ("gumbel_r::logpdf", gumbel_r::logpdf(nan(), 0.0, 1.0)),
        ("gumbel_r::logsf", gumbel_r::logsf(nan(), 0.0, 1.0)),
        ("gumbel_r::cdf", gumbel_r::cdf(nan(), 0.0, 1.0)),
        ("gumbel_r::sf", gumbel_r::sf(nan(), 0.0, 1.0)),
        ("gumbel_r::ppf", gumbel_r::ppf(nan(), 0.0, 1.0)),
        ("vonmises::logpdf", vonmises::logpdf(nan(), 2.0)),
        ("wrapcauchy::logpdf", wrapcauchy::logpdf(nan(), 0.5)),
        ("uniform::logpdf", uniform::logpdf(nan(), 0.0, 1.0)),
        ("uniform::logpdf by loc", uniform::logpdf(0.5, nan(), 1.0)),
        ("uniform::cdf", uniform::cdf(nan(), 0.0, 1.0)),
        ("uniform::ppf", uniform::ppf(nan(), 0.0, 1.0)),
        ("beta::logpdf", beta::logpdf(nan(), 2.0, 3.0, 0.0, 1.0)),
        ("beta::pdf", beta::pdf(nan(), 2.0, 3.0, 0.0, 1.0)),
        ("beta::cdf", beta::cdf(nan(), 2.0, 3.0, 0.0, 1.0)),
        ("beta::logcdf", beta::logcdf(nan(), 2.0, 3.0, 0.0, 1.0)),
        ("beta::sf", beta::sf(nan(), 2.0, 3.0, 0.0, 1.0)),
        ("beta::logsf", beta::logsf(nan(), 2.0, 3.0, 0.0, 1.0)),
        ("beta::logpdf by loc", beta::logpdf(0.5, 2.0, 3.0, nan(), 1.0)),
        ("beta::logpdf by scale", beta::logpdf(0.5, 2.0, 3.0, 0.0, nan())),
        ("dirichlet::logpdf", dirichlet::logpdf(parts(), Array::from([1.0, 2.0]))),
        ("truncnorm::logpdf", truncnorm::logpdf(nan(), -1.0, 1.0, 0.0, 1.0)),
        ("truncnorm::logcdf", truncnorm::logcdf(nan(), -1.0, 1.0, 0.0, 1.0)),
        ("truncnorm::cdf", truncnorm::cdf(nan(), -1.0, 1.0, 0.0, 1.0)),
        ("truncnorm::sf", truncnorm::sf(nan(), -1.0, 1.0, 0.0, 1.0)),
        ("expon::logpdf", expon::logpdf(nan(), 0.0, 1.0)),
        ("expon::cdf", expon::cdf(nan(), 0.0, 1.0)),
        ("expon::sf", expon::sf(nan(), 0.0, 1.0)),
        ("expon::logcdf", expon::logcdf(nan(), 0.0, 1.0)),
        ("expon::ppf", expon::ppf(nan(), 0.0, 1.0)),
        ("gamma::logpdf", gamma::logpdf(nan(), 2.0, 0.0, 1.0)),
        ("gamma::cdf", gamma::cdf(nan(), 2.0, 0.0, 1.0)),
        ("gamma::sf", gamma::sf(nan(), 2.0, 0.0, 1.0)),
        ("gamma::logcdf", gamma::logcdf(nan(), 2.0, 0.0, 1.0)),
        ("gamma::logpdf by a", gamma::logpdf(0.5, nan(), 0.0, 1.0)),
        ("gamma::logpdf by loc", gamma::logpdf(0.5, 2.0, nan(), 1.0)),
        ("chi2::logpdf", chi2::logpdf(nan(), 2.0, 0.0, 1.0)),
        ("chi2::cdf", chi2::cdf(nan(), 2.0, 0.0, 1.0)),
        ("chi2::sf", chi2::sf(nan(), 2.0, 0.0, 1.0)),
        ("pareto::logpdf", pareto::logpdf(nan(), 2.0, 0.0, 1.0)),
        ("pareto::cdf", pareto::cdf(nan(), 2.0, 0.0, 1.0)),
        ("pareto::sf", pareto::sf(nan(), 2.0, 0.0, 1.0)),
        ("pareto::logcdf", pareto::logcdf(nan(), 2.0, 0.0, 1.0)),
        ("pareto::logpdf by loc", pareto::logpdf(3.0, 2.0, nan(), 1.0)),
        ("bernoulli::logpmf", bernoulli::logpmf(nan(), 0.5, 0.0)),
        ("bernoulli::cdf", bernoulli::cdf(nan(), 0.5)),
        ("binom::logpmf", binom::logpmf(nan(), 3.0, 0.5, 0.0)),
        ("betabinom::logpmf", betabinom::logpmf(nan(), 3.0, 1.0, 2.0, 0.0)),
        ("geom::logpmf", geom::logpmf(nan(), 0.5, 0.0)),
        ("nbinom::logpmf", nbinom::logpmf(nan(), 3.0, 0.5, 0.0)),
        ("poisson::logpmf", poisson::logpmf(nan(), 3.0, 0.0)),
        ("poisson::cdf", poisson::cdf(nan(), 3.0, 0.0)),
        ("poisson::logpmf by mu", poisson::logpmf(2.0, nan(), 0.0)),
        ("multinomial::logpmf", multinomial::logpmf(parts(), 3.0, Array::from([0.5, 0.5]))),
    ];
    let wrong: Vec<String> = rows
        .into_iter()
        .filter_map(|(name, x)| {
            x.item::<f64>()
                .unwrap()
                .is_finite()
                .then(|| name.to_string())
                .or_else(|| (!x.item::<f64>().unwrap().is_nan()).then(|| format!("{name} (infinite)")))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn tails_of_cauchy_are_never_negative() {
    use gradus::stats::cauchy;
    for x in [f64::NEG_INFINITY, -1e300, -1e17, -1e16, -5.0, 0.0, 5.0] {
        let x = Array::from(x);
        let cdf = |x: &Array| cauchy::cdf(x, 0.0, 1.0);
        let log = |x: &Array| cauchy::logcdf(x, 0.0, 1.0);
        let above = |x: &Array| cauchy::sf(&-x, 0.0, 1.0);
        let at = x.item::<f64>().unwrap();
        // Far away it is 1 / (π |x|).
        let want =
            if at < -1e10 { 1.0 / (std::f64::consts::PI * at.abs()) } else { 0.5 + at.atan() / std::f64::consts::PI };
        for have in [cdf(&x), jit(cdf)(&x), above(&x), jit(above)(&x), jit(log)(&x).exp()] {
            let have = have.item::<f64>().unwrap();
            assert!(have >= 0.0 && alike(have, want, 1e-12), "{have:e} at {at:e}, where {want:e} is right");
        }
    }
    assert_eq!(cauchy::cdf(f64::INFINITY, 0.0, 1.0).item::<f64>().unwrap(), 1.0);
    let slope = grad(|x: &Array| cauchy::cdf(x, 0.0, 1.0))(&Array::from(f64::NEG_INFINITY)).item::<f64>().unwrap();
    assert_eq!(slope, 0.0);
    // The quantile is the way back, as far out as there are numbers.
    for q in [1e-300, 1e-20, 0.1, 0.25, 0.4, 0.5, 0.75, 0.9, 1.0 - 1e-10] {
        let x = cauchy::ppf(q, 0.0, 1.0);
        assert!(alike(cauchy::cdf(&x, 0.0, 1.0).item::<f64>().unwrap(), q, 1e-12), "{q} {x}");
        assert!(alike(cauchy::sf(cauchy::isf(q, 0.0, 1.0), 0.0, 1.0).item::<f64>().unwrap(), q, 1e-12), "{q}");
    }
    assert_eq!(cauchy::ppf(0.0, 0.0, 1.0).item::<f64>().unwrap(), f64::NEG_INFINITY);
    assert_eq!(cauchy::ppf(1.0, 0.0, 1.0).item::<f64>().unwrap(), f64::INFINITY);
    assert!(cauchy::ppf(-0.1, 0.0, 1.0).item::<f64>().unwrap().is_nan());
}

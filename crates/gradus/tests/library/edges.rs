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

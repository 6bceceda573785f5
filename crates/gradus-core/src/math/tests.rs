//! The elementary functions against exact values: `f32` against `f64` over all bit patterns in steps, `f64` against
//! mpmath at chosen points, and the special cases of IEEE 754.

use super::plain::*;

/// How many floats two results are apart; never few across NaN, or between zeros of different sign.
fn steps(have: u64, want: u64, sign: u64, nan_above: u64) -> u64 {
    let is_nan = |v: u64| v & !sign > nan_above;
    if is_nan(have) || is_nan(want) {
        return if is_nan(have) && is_nan(want) { 0 } else { u64::MAX };
    }
    if (have ^ want) & sign != 0 {
        return u64::MAX;
    }
    have.abs_diff(want)
}

fn steps_f32(have: f32, want: f32) -> u64 {
    steps(have.to_bits().into(), want.to_bits().into(), 1 << 31, f32::INFINITY.to_bits().into())
}

fn steps_f64(have: f64, want: f64) -> u64 {
    steps(have.to_bits(), want.to_bits(), 1 << 63, f64::INFINITY.to_bits())
}

const ALLOWED: u64 = 2;

type Narrow = fn(f32) -> f32;
type Wide = fn(f64) -> f64;

/// A function in both widths, and for the narrow one a reference that is exact enough in `f64`.
const UNARY: &[(&str, Narrow, Wide, Wide)] = &[
    ("exp", exp_f32, exp_f64, libm::exp),
    ("expm1", expm1_f32, expm1_f64, libm::expm1),
    ("log", log_f32, log_f64, libm::log),
    ("log1p", log1p_f32, log1p_f64, libm::log1p),
    ("logistic", logistic_f32, logistic_f64, |x| {
        if x < 0.0 { libm::exp(x) / (1.0 + libm::exp(x)) } else { 1.0 / (1.0 + libm::exp(-x)) }
    }),
    ("tanh", tanh_f32, tanh_f64, libm::tanh),
    ("sinh", sinh_f32, sinh_f64, libm::sinh),
    ("cosh", cosh_f32, cosh_f64, libm::cosh),
    ("sin", sin_f32, sin_f64, libm::sin),
    ("cos", cos_f32, cos_f64, libm::cos),
    ("tan", tan_f32, tan_f64, libm::tan),
    ("asin", asin_f32, asin_f64, libm::asin),
    ("acos", acos_f32, acos_f64, libm::acos),
    ("atan", atan_f32, atan_f64, libm::atan),
    ("asinh", asinh_f32, asinh_f64, libm::asinh),
    ("acosh", acosh_f32, acosh_f64, |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }),
    ("atanh", atanh_f32, atanh_f64, libm::atanh),
    ("cbrt", cbrt_f32, cbrt_f64, libm::cbrt),
    ("erf", erf_f32, erf_f64, libm::erf),
    ("erfc", erfc_f32, erfc_f64, libm::erfc),
    ("rsqrt", rsqrt_f32, rsqrt_f64, |x| 1.0 / x.sqrt()),
];

#[test]
fn narrow_functions_are_within_two_units_of_wide_ones() {
    for &(name, f, _, reference) in UNARY {
        // Prime steps, so that no bit of the fraction stays the same.
        for bits in (0..=u32::MAX).step_by(299_993) {
            let x = f32::from_bits(bits);
            let (have, want) = (f(x), reference(x.into()) as f32);
            assert!(steps_f32(have, want) <= ALLOWED, "{name}({x:e}) = {have:e}, not {want:e}");
        }
    }
}

/// The lines of the file: a function and its points, arguments and value.
fn points(arity: usize) -> Vec<(&'static str, Vec<Vec<f64>>)> {
    let text = include_str!("../../tests/data/math.txt");
    let line = |line: &'static str| {
        let mut words = line.split(' ');
        let name = words.next().unwrap();
        let all: Vec<f64> = words.map(|w| f64::from_bits(u64::from_str_radix(w, 16).unwrap())).collect();
        let size = if ["pow", "atan2"].contains(&name) { 3 } else { 2 };
        (size == arity + 1).then(|| (name, all.chunks(size).map(<[f64]>::to_vec).collect()))
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn wide_functions_are_within_two_units_of_exact_values() {
    let mut seen = 0;
    for (name, points) in points(1) {
        let Some(&(_, _, f, _)) = UNARY.iter().find(|u| u.0 == name) else { continue };
        seen += 1;
        assert!(points.len() > 100, "{name} has {} points", points.len());
        for p in points {
            let have = f(p[0]);
            assert!(steps_f64(have, p[1]) <= ALLOWED, "{name}({:e}) = {have:e}, not {:e}", p[0], p[1]);
        }
    }
    assert_eq!(seen, UNARY.len(), "every function has points");
}

#[test]
fn functions_of_two_numbers_are_within_two_units_of_exact_values() {
    for (name, points) in points(2) {
        let (narrow, wide): (fn(f32, f32) -> f32, fn(f64, f64) -> f64) = match name {
            "pow" => (pow_f32, pow_f64),
            "atan2" => (atan2_f32, atan2_f64),
            _ => panic!("no function {name}"),
        };
        let reference: fn(f64, f64) -> f64 = if name == "pow" { libm::pow } else { libm::atan2 };
        for p in points {
            let have = wide(p[0], p[1]);
            assert!(steps_f64(have, p[2]) <= ALLOWED, "{name}({:e}, {:e}) = {have:e}, not {:e}", p[0], p[1], p[2]);
            let (x, y) = (p[0] as f32, p[1] as f32);
            let (have, want) = (narrow(x, y), reference(x.into(), y.into()) as f32);
            assert!(steps_f32(have, want) <= ALLOWED, "{name}({x:e}, {y:e}) = {have:e}, not {want:e}");
        }
        let mut bits = 1u64;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let x = f32::from_bits((bits >> 32) as u32 & 0x7fff_ffff);
            // Exponents for which the result is neither zero nor infinite.
            let y = (((bits >> 8) as u16 as f64 / 65536.0) * 192.0 - 103.0) as f32 / x.ln();
            let (have, want) = (narrow(x, y), reference(x.into(), y.into()) as f32);
            assert!(steps_f32(have, want) <= ALLOWED, "{name}({x:e}, {y:e}) = {have:e}, not {want:e}");
        }
    }
}

/// Same value, sign and all; any NaN for a NaN.
#[track_caller]
fn same(name: &str, have: f64, want: f64, x: &[f64]) {
    assert!(steps_f64(have, want) == 0, "{name}({x:?}) = {have:e}, not {want:e}");
}

#[test]
fn special_values_are_exact() {
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    let table: &[(&str, &[(f64, f64)])] = &[
        ("exp", &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1e4, INF), (-1e4, 0.0)]),
        ("expm1", &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (1e4, INF), (-1e4, -1.0)]),
        ("log", &[(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-1.0, NAN), (-INF, NAN)]),
        ("log1p", &[(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (INF, INF), (-2.0, NAN), (-INF, NAN)]),
        ("logistic", &[(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (1e4, 1.0)]),
        ("tanh", &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (30.0, 1.0), (-30.0, -1.0)]),
        ("sinh", &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1e4, INF)]),
        ("cosh", &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (-1e4, INF)]),
        ("sin", &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)]),
        ("cos", &[(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)]),
        ("tan", &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)]),
        ("asin", &[(0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (-INF, NAN)]),
        ("acos", &[(1.0, 0.0), (1.5, NAN), (-1.5, NAN), (INF, NAN)]),
        ("atan", &[(0.0, 0.0), (-0.0, -0.0)]),
        ("asinh", &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)]),
        ("acosh", &[(1.0, 0.0), (INF, INF), (0.5, NAN), (-3.0, NAN), (-INF, NAN)]),
        ("atanh", &[(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (2.0, NAN), (-INF, NAN)]),
        ("cbrt", &[(0.0, 0.0), (-0.0, -0.0), (8.0, 2.0), (-27.0, -3.0), (INF, INF), (-INF, -INF)]),
        ("erf", &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (10.0, 1.0)]),
        ("erfc", &[(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (30.0, 0.0), (-30.0, 2.0)]),
        ("rsqrt", &[(4.0, 0.5), (0.0, INF), (INF, 0.0), (-1.0, NAN)]),
    ];
    assert_eq!(table.len(), UNARY.len());
    for &(name, f, g, _) in UNARY {
        let (_, values) = table.iter().find(|t| t.0 == name).unwrap();
        for &(x, want) in values.iter().chain(&[(NAN, NAN)]) {
            same(name, g(x), want, &[x]);
            same(name, f(x as f32).into(), want, &[x]);
        }
    }
}

#[test]
fn special_cases_of_two_numbers_are_those_of_ieee() {
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        -2.0,
        3.0,
        -3.0,
        0.5,
        -0.5,
        2.5,
        1e300,
        -1e300,
        1e-310,
        5e-324,
        f64::INFINITY,
        -f64::INFINITY,
        f64::NAN,
    ];
    for x in special {
        for y in special {
            let (a, b) = (x as f32, y as f32);
            let cases: [(&str, f64, f64, f32, f64); 2] = [
                ("pow", pow_f64(x, y), libm::pow(x, y), pow_f32(a, b), libm::pow(a.into(), b.into())),
                ("atan2", atan2_f64(x, y), libm::atan2(x, y), atan2_f32(a, b), libm::atan2(a.into(), b.into())),
            ];
            for (name, have, want, narrow, reference) in cases {
                assert!(steps_f64(have, want) <= 1, "{name}({x:e}, {y:e}) = {have:e}, not {want:e}");
                let want = reference as f32;
                assert!(steps_f32(narrow, want) <= 1, "{name}({a:e}, {b:e}) = {narrow:e}, not {want:e}");
            }
        }
    }
}

#[test]
fn results_do_not_pass_their_bounds() {
    let mut bits = 1u64;
    for _ in 0..100_000 {
        bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let small = (bits >> 11) as f64 / (1u64 << 53) as f64 * 1e-3;
        for x in [small, std::f64::consts::FRAC_PI_2 + small, small * 1e7] {
            for y in [sin_f64(x), cos_f64(x), tanh_f64(x), erf_f64(x)] {
                assert!(y.abs() <= 1.0, "beyond one at {x:e}");
            }
            let x = x as f32;
            for y in [sin_f32(x), cos_f32(x), tanh_f32(x), erf_f32(x)] {
                assert!(y.abs() <= 1.0, "beyond one at {x:e}");
            }
        }
    }
}

/// Pairs for remainders, of numbers that bits stand for up to infinity, `max`: special ones, any two, and those beside multiples, with quotients of every length.
fn pairs_for_remainders(of: fn(u64) -> f64, bits_of: fn(f64) -> u64, max: u64, check: &dyn Fn(f64, f64)) {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state ^ state >> 29
    };
    let ends = [0, 1, 2, 3, max / 2047, max / 2, max / 2 + 1, max - 2, max - 1, max, max + 1];
    let mut special: Vec<f64> = ends.iter().map(|b| of(*b)).collect();
    for k in [
        1.0,
        1.5,
        3.0,
        0.1,
        7.0,
        std::f64::consts::TAU,
        4194303.5,
        4194304.0,
        1e10,
        2251799813685247.5,
        2251799813685248.0,
    ] {
        let bits = bits_of(k);
        special.extend([of(bits - 1), of(bits), of(bits + 1)]);
    }
    for exponent in [
        -1074, -1073, -1023, -1022, -1021, -150, -149, -148, -127, -126, -125, 21, 22, 24, 51, 53, 125, 126, 127, 1021,
        1022, 1023,
    ] {
        let bits = bits_of(2f64.powi(exponent));
        special.extend([of(bits.max(1) - 1), of(bits), of(bits.min(max) + 1)]);
    }
    let signs = [(1.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (-1.0, -1.0)];
    let all = |x: f64, y: f64| signs.iter().for_each(|(s, t)| check(s * x, t * y));
    special.iter().for_each(|x| special.iter().for_each(|y| all(*x, *y)));
    for _ in 0..100_000 {
        let (a, b) = (next() % (max + 2), next() % (max + 2));
        check(of(a), of(b));
        // The quotient of numbers with exponents that are near.
        let y = of(b);
        let k = (next() >> (next() % 64)) as f64 * [1.0, 0.5][next() as usize % 2];
        let bits = bits_of((k * y).min(of(max - 1)));
        for d in 0..5 {
            check(of((bits + d).saturating_sub(2).min(max)), y);
        }
        special.iter().take(4).for_each(|x| check(*x, y));
    }
}

#[test]
fn remainders_are_exact() {
    let same = |have: u64, want: u64, nan: bool, x: f64, y: f64| {
        assert!(have == want || nan, "{x:e} % {y:e} is {have:#x}, not {want:#x}");
    };
    pairs_for_remainders(f64::from_bits, f64::to_bits, f64::INFINITY.to_bits(), &|x, y| {
        let (have, want) = (rem_f64(x, y), x % y);
        same(have.to_bits(), want.to_bits(), have.is_nan() && want.is_nan(), x, y);
    });
    let narrow = |bits: u64| f64::from(f32::from_bits(bits as u32));
    pairs_for_remainders(narrow, |x| u64::from((x as f32).to_bits()), f32::INFINITY.to_bits().into(), &|x, y| {
        let (have, want) = (rem_f32(x as f32, y as f32), x as f32 % y as f32);
        same(have.to_bits().into(), want.to_bits().into(), have.is_nan() && want.is_nan(), x, y);
    });
}

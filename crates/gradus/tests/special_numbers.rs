//! Numbers at the edge of their range, where systems differ: infinities and NaN in complex arithmetic, ties of rounding, places beyond every axis. What is
//! expected is what annex G of the C standard says, what JAX gives (0.10.2), or worked out by hand beside the test.

use gradus::prelude::*;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn complex(re: f64, im: f64) -> Array {
    Array::complex(&Array::from(re), &Array::from(im))
}

/// NaN is like NaN; signs of zero do not count.
#[track_caller]
fn same(have: &Array, (re, im): (f64, f64)) {
    let have = have.item::<Complex<f64>>().unwrap();
    let like = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() < 1e-14;
    assert!(like(have.re, re) && like(have.im, im), "{have:?} where {re} + {im} i is right");
}

#[test]
fn a_logarithm_keeps_nan() {
    for (re, im) in [(NAN, 1.0), (1.0, NAN), (NAN, NAN), (NAN, 0.0), (1e301, NAN)] {
        let z = complex(re, im);
        for (name, y) in [("log", z.log()), ("log1p", z.log1p()), ("asinh", z.asinh()), ("acosh", z.acosh())] {
            let y = y.item::<Complex<f64>>().unwrap();
            assert!(y.re.is_nan(), "{name} of {re} + {im} i: {y:?}");
        }
    }
    assert!(complex(1.0, NAN).atanh().real().item::<f64>().unwrap().is_nan());
    // The sign of a NaN means nothing, and nothing follows from it.
    for nan in [NAN, -NAN] {
        same(&complex(INF, nan).atanh(), (0.0, NAN));
        same(&complex(nan, INF).atanh(), (0.0, std::f64::consts::FRAC_PI_2));
        same(&complex(0.0, nan).atanh(), (0.0, NAN));
        same(&(complex(1.0, 1.0) / complex(INF, nan)), (0.0, 0.0));
        let zero = (complex(1.0, 1.0) / complex(INF, nan)).item::<Complex<f64>>().unwrap();
        assert!(zero.re.is_sign_positive() && zero.im.is_sign_positive(), "{zero:?}");
    }
    assert!(complex(NAN, 1.0).asin().imag().item::<f64>().unwrap().is_nan());
    // An infinity has infinite length, whatever is beside it.
    same(&complex(INF, NAN).log(), (INF, NAN));
    same(&complex(-INF, 0.0).log(), (INF, std::f64::consts::PI));
}

#[test]
fn quotients_with_infinities_and_zeros() {
    same(&(complex(2.0, 1.0) / complex(INF, 0.0)), (0.0, 0.0));
    same(&complex(INF, INF).recip(), (0.0, 0.0));
    same(&complex(INF, 0.0).rsqrt(), (0.0, 0.0));
    same(&(complex(2.0, 1.0) / complex(0.0, 0.0)), (INF, INF));
    same(&(complex(-2.0, 0.0) / complex(0.0, 0.0)), (-INF, NAN));
    same(&(complex(INF, 1.0) / complex(2.0, 0.0)), (INF, NAN));
    same(&complex(0.0, 1e-320).recip(), (0.0, -INF));
    same(&(complex(1e-320, 0.0) / complex(0.0, 1e-320)), (0.0, -1.0));
    same(&(complex(NAN, 1.0) / complex(2.0, 1.0)), (NAN, NAN));
    same(&(complex(3.0, 4.0) / complex(1.0, 2.0)), (2.2, -0.4));
    let narrow = complex(0.0, 1e-45).cast(DType::C64).recip().item::<Complex<f32>>().unwrap();
    assert_eq!((narrow.re, narrow.im), (0.0, f32::NEG_INFINITY));
}

#[test]
fn functions_on_an_axis_far_out() {
    same(&complex(0.0, INF).sin(), (0.0, INF));
    same(&complex(0.0, INF).cos(), (INF, 0.0));
    same(&complex(INF, 0.0).sinh(), (INF, 0.0));
    same(&complex(-INF, 0.0).cosh(), (INF, 0.0));
    same(&complex(INF, INF).tanh(), (1.0, 0.0));
    same(&complex(-INF, 1.0).tanh(), (-1.0, 0.0));
    same(&complex(1.0, 2.0).sin(), (3.165778513216168, 1.959601041421606));
    same(&complex(1.0, 2.0).cosh(), (-0.64214812471552, 1.0686074213827783));
}

/// A number just above the middle of two goes up, however it came to the half float.
#[test]
fn half_floats_are_rounded_once() {
    let up = 1.0 + 2_f64.powi(-8) + 2_f64.powi(-22);
    let bf16s = |a: &Array| a.cast(DType::BF16).item::<bf16>().unwrap().to_f64();
    let f16s = |a: &Array| a.cast(DType::F16).item::<f16>().unwrap().to_f64();
    let next = 1.0 + 2_f64.powi(-7);
    assert_eq!(bf16s(&Array::from(up as f32)), next);
    assert_eq!(bf16s(&Array::from(up)), next);
    assert_eq!(bf16s(&Array::from(-up)), -next);
    assert_eq!(bf16s(&Array::from(1.0 + 2_f64.powi(-8) + 2_f64.powi(-50))), next);
    assert_eq!(bf16s(&Array::from(1.0 + 2_f64.powi(-8))), 1.0);
    assert_eq!(bf16s(&Array::from(8_421_377_i32)), 8_454_144.0);
    assert_eq!(bf16s(&Array::from((1_i64 << 62) + (1 << 54) + 1)), 2_f64.powi(62) + 2_f64.powi(55));
    assert_eq!(bf16s(&Array::from(u64::MAX)), 2_f64.powi(64));
    assert_eq!(bf16s(&Array::from(1e300)), INF);
    assert_eq!(bf16s(&Array::from(-1e-300)), 0.0);
    assert!(bf16s(&Array::from(NAN)).is_nan());
    assert_eq!(f16s(&Array::from(1.0 + 2_f64.powi(-11) + 2_f64.powi(-40))), 1.0 + 2_f64.powi(-10));
    assert_eq!(f16s(&Array::from(65519.999999999)), 65504.0);
    assert_eq!(f16s(&Array::from(65520.0)), INF);
    assert_eq!(f16s(&Array::from(2_f64.powi(-25) + 2_f64.powi(-70))), 2_f64.powi(-24));
    assert_eq!(f16s(&Array::from(2_f64.powi(-25))), 0.0);
    let x = Array::from([bf16::ONE]);
    assert_eq!((&x * up).to_vec::<bf16>().unwrap()[0].to_f64(), next);
    let text = format!("fn f() -> bf16[] {{\n  return {up}:bf16[]\n}}\n");
    let program: Program = text.parse().unwrap();
    assert!(program.to_string().contains("1.0078125"), "{program}");
    // Every single float near a tie of bf16, against exact arithmetic.
    for k in 0..200_000_u32 {
        let bits = 0x3f80_0000 + k.wrapping_mul(2_654_435_761) % 0x0080_0000;
        let v = f32::from_bits(bits);
        let (low, half) = (f64::from(f32::from_bits(bits & 0xffff_0000)), f64::from(f32::from_bits(0x3b80_0000)));
        let above = f64::from(v) - low;
        let odd = bits & 0x1_0000 != 0;
        let want = if above > half || (above == half && odd) { low + 2.0 * half } else { low };
        assert_eq!(bf16s(&Array::from(v)), want, "{v}");
    }
}

#[test]
fn a_running_extremum_that_is_nan_has_its_derivative_at_the_nan() {
    let slopes = |x: [f64; 3]| grad(|x: &Array| x.cummax(0).sum())(&Array::from(x)).to_vec::<f64>().unwrap();
    assert_eq!(slopes([NAN, 1.0, 2.0]), [3.0, 0.0, 0.0]);
    assert_eq!(slopes([1.0, NAN, 2.0]), [1.0, 2.0, 0.0]);
    assert_eq!(slopes([1.0, NAN, NAN]), [1.0, 2.0, 0.0]);
    assert_eq!(slopes([1.0, 3.0, 2.0]), [1.0, 2.0, 0.0]);
}

#[test]
fn starts_beyond_every_axis_are_the_last_there_is() {
    let x = Array::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    for first in [Array::from(0_i32), Array::from(0_u64)] {
        let starts = [first, Array::from(u64::MAX)];
        assert_eq!(x.dynamic_slice(&starts, [1, 2]).to_vec::<f64>().unwrap(), [2.0, 3.0]);
        let y = x.dynamic_update_slice(&Array::from([[9.0, 9.0]]), &starts);
        assert_eq!(y.to_vec::<f64>().unwrap(), [1.0, 9.0, 9.0, 4.0, 5.0, 6.0]);
    }
}

/// An error says what failed, not who met it afterwards.
#[test]
fn an_error_is_named_after_the_operation_that_made_it() {
    let x = Array::from([1.0, 2.0]);
    let e = (x.index(3) * 2.0 + &x).ok().unwrap_err();
    assert!(e.message().starts_with("the index 3 is outside"), "{e}");
}

#[test]
fn a_limit_of_steps_may_be_as_large_as_it_likes() {
    let f = |x: &Array| {
        WhileOptions::new().history(History::Limit(usize::MAX)).while_loop(
            |x: &Array| x.lt(100.0),
            |x: &Array| x * 2.0,
            x.clone(),
        )
    };
    assert_eq!(jit(f)(&Array::from(3.0)).item::<f64>().unwrap(), 192.0);
}

#[test]
fn a_part_that_is_none_has_a_quantile_of_nan_where_it_is_traced() -> Result<()> {
    let x = Array::from([1.0_f64, 2.0, 4.0]);
    let parts = Array::from([-0.1, 0.0, 0.5, 1.0, 1.1, f64::NAN]);
    let seen = |y: Array| y.to_vec::<f64>().map(|v| v.iter().map(|q| format!("{q}")).collect::<Vec<_>>().join(" "));
    assert_eq!(seen(jit(|x: &Array, q: &Array| x.quantile(q))(&x, &parts))?, "NaN 1 2 4 NaN NaN");
    let hundredths = &parts * 100.0;
    assert_eq!(seen(jit(|x: &Array, q: &Array| x.nanpercentile(q))(&x, &hundredths))?, "NaN 1 2 4 NaN NaN");
    assert_eq!(seen(vmap(|q: &Array| Array::from([1.0_f64, 2.0, 4.0]).quantile(q))(&parts))?, "NaN 1 2 4 NaN NaN");
    // With axes of its own, in front of those that are left.
    let two = parts.index(..4).reshape([2, 2]);
    let rows = Array::stack([&x, &(&x * 10.0)], 0);
    let y = jit(|x: &Array, q: &Array| x.quantile_axes(q, 1))(&rows, &two);
    assert_eq!(y.shape(), [2, 2, 2]);
    assert_eq!(seen(y)?, "NaN NaN 1 10 2 20 4 40");
    // A part that is written down is known while tracing.
    let e = jit(|x: &Array| x.quantile(7.0))(&x).error().unwrap().to_string();
    assert!(e.contains("at 7") && e.contains("special_numbers.rs"), "{e}");
    assert_eq!(jit(|x: &Array| x.quantile(0.5))(&x).item::<f64>()?, 2.0);
    Ok(())
}

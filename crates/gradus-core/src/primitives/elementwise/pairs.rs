//! Complex arithmetic on parts that are arrays of their own, step by step as the interpreter does it on numbers: both give the same bits.

use crate::array::Array;
use crate::types::{DType, Scalar};

/// Real and imaginary part.
type Pair = [Array; 2];

fn number(value: f64, like: &Array) -> Array {
    Array::scalar(Scalar::F64(value).cast(like.dtype()))
}

pub(crate) fn product([a, b]: &Pair, [c, d]: &Pair) -> Pair {
    [a * c - b * d, a * d + b * c]
}

pub(crate) fn whole_power(x: &Pair, exponent: u64) -> Pair {
    let (mut base, mut n, mut made) = (x.clone(), exponent, None::<Pair>);
    while n > 0 {
        if n & 1 == 1 {
            made = Some(made.map_or_else(|| base.clone(), |p| product(&p, &base)));
        }
        n >>= 1;
        if n > 0 {
            base = product(&base, &base);
        }
    }
    made.unwrap_or_else(|| [x[0].ones_like(), x[1].zeros_like()])
}

/// The absolute value: the larger part times the length of what is left when it is one.
pub(crate) fn length([re, im]: &Pair) -> Array {
    let (a, b) = (re.abs(), im.abs());
    let first = a.gt(&b);
    let (large, small) = (first.select(&a, &b), first.select(&b, &a));
    let ratio = &small / &large;
    let length = &large * (number(1.0, re) + &ratio * &ratio).sqrt();
    let length = (&a + &b).eq(number(0.0, re)).select(number(0.0, re), length);
    let infinity = number(f64::INFINITY, re);
    (a.eq(&infinity) | b.eq(&infinity)).select(&infinity, length)
}

/// e to a power: the size of the real part, turned by the imaginary one.
pub(crate) fn exponential([re, im]: &Pair) -> Pair {
    let size = re.exp();
    let (zero, infinity, nan) = (number(0.0, re), number(f64::INFINITY, re), number(f64::NAN, re));
    let (turned, finite) = ([&size * im.cos(), &size * im.sin()], im.is_finite());
    let flat = im.eq(&zero);
    // What is infinitely large keeps its direction only on the axis, what is infinitely small has none.
    let vanished = re.eq(-&infinity) & !&finite;
    let grown = re.eq(&infinity) & (&flat | !&finite);
    let kept = &grown | (re.is_nan() & flat);
    let beside = (&grown & im.abs().eq(&infinity)).select(nan, im);
    let [x, y] = turned;
    [vanished.select(&zero, kept.select(re, x)), vanished.select(&zero, kept.select(beside, y))]
}

/// The quotient, scaled so that squares of large or small parts do not overflow; see the interpreter's `over`.
pub(crate) fn quotient(x: &Pair, y: &Pair) -> Pair {
    let dtype = y[0].dtype();
    let least = if dtype == DType::F32 { f64::from(f32::MIN_POSITIVE) } else { f64::MIN_POSITIVE };
    let (one, zero, infinity) = (number(1.0, &y[0]), number(0.0, &y[0]), number(f64::INFINITY, &y[0]));
    let largest = |y: &Pair| {
        let (a, b) = (y[0].abs(), y[1].abs());
        (a.ge(&b) | b.is_nan()).select(&a, &b)
    };
    let scale = largest(y);
    let none = scale.eq(&zero);
    // The reciprocal of a number that is hardly there may be none; that of its part above is one.
    let tiny = scale.lt(number(least, &y[0])) & !&none;
    let up = tiny.select(number((1_u64 << 60) as f64, &y[0]), &one);
    let y = [&y[0] * &up, &y[1] * &up];
    let scale = largest(&y);
    let d = [&y[0] / &scale, -(&y[1] / &scale)];
    let norm = &d[0] * &d[0] + &d[1] * &d[1];
    let [re, im] = product(&[&x[0] / &scale, &x[1] / &scale], &d).map(|part| part / &norm);
    let outside = none | !scale.lt(&infinity) | (re.is_nan() & im.is_nan());
    let edge = quotient_at_the_edge(x, &y);
    let chosen = [outside.select(&edge[0], re), outside.select(&edge[1], im)];
    chosen.map(|part| part * &up)
}

/// As the interpreter has it, by annex G of C: in `f64`, where numbers of either width have room.
fn quotient_at_the_edge(x: &Pair, y: &Pair) -> Pair {
    let dtype = y[0].dtype();
    let wide = |p: &Pair| p.each_ref().map(|v| v.cast(DType::F64));
    let (x, y) = (wide(x), wide(y));
    let (zero, one, infinity) = (number(0.0, &x[0]), number(1.0, &x[0]), number(f64::INFINITY, &x[0]));
    let is_infinite = |v: &Array| v.abs().eq(&infinity);
    // The number zero or one with the sign of another: a reciprocal tells that of a zero.
    let is_negative = |v: &Array| v.lt(&zero) | (v.eq(&zero) & (&one / v).lt(&zero));
    let side = |v: &Array| {
        let length = is_infinite(v).select(&one, &zero);
        v.is_nan().select(&zero, is_negative(v).select(-&length, &length))
    };
    let sides = |p: &Pair| p.each_ref().map(side);
    let turned =
        |a: &Pair, b: &Pair, by: &Array| [by * (&a[0] * &b[0] + &a[1] * &b[1]), by * (&a[1] * &b[0] - &a[0] * &b[1])];
    let choose = |c: &Array, a: &Pair, b: &Pair| [c.select(&a[0], &b[0]), c.select(&a[1], &b[1])];
    let any_infinite = |p: &Pair| is_infinite(&p[0]) | is_infinite(&p[1]);
    let all_finite = |p: &Pair| p[0].is_finite() & p[1].is_finite();
    let by_none = y[0].eq(&zero) & y[1].eq(&zero) & !(x[0].is_nan() & x[1].is_nan());
    let far = is_negative(&y[0]).select(-&infinity, &infinity);
    let over_none = [&far * &x[0], &far * &x[1]];
    let grown = turned(&sides(&x), &y, &infinity);
    let vanished = turned(&x, &sides(&y), &zero);
    let norm = &y[0] * &y[0] + &y[1] * &y[1];
    let plain = [(&x[0] * &y[0] + &x[1] * &y[1]) / &norm, (&x[1] * &y[0] - &x[0] * &y[1]) / &norm];
    let rest = choose(&(all_finite(&x) & any_infinite(&y)), &vanished, &plain);
    let rest = choose(&(any_infinite(&x) & all_finite(&y)), &grown, &rest);
    choose(&by_none, &over_none, &rest).map(|v| v.cast(dtype))
}

//! The inverses of sine, cosine and tangent.

use super::Arith;
use super::coefficients::{ASIN, ATAN};
use super::parts::{By, flipped_as, pairs, with_sign};

/// π/2 in two parts.
const HALF_PI: By<[f64; 2]> = By {
    narrow: [1.570_796_370_506_286_6, -4.371_138_828_673_793e-8],
    wide: [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17],
};

/// `t + t³ P(t²) + base`, where the base has two parts: what is small is added first.
fn odd_and_base<A: Arith>(m: &mut A, t: A::F, z: A::F, c: &[f64], base: [A::F; 2]) -> A::F {
    let z2 = m.mul(z, z);
    let q = pairs(m, z, z2, c);
    let tz = m.mul(t, z);
    let small = m.fma(tz, q, base[1]);
    let y = m.add(t, small);
    m.add(base[0], y)
}

/// The inverse tangent: of numbers above one it is `π/2 - arctan(1/x)`.
pub fn atan<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let a = m.abs(x);
    let (zero, one, minus) = (m.float(0.0), m.float(1.0), m.float(-1.0));
    let inverse = m.lt(one, a);
    let above = m.select(inverse, minus, a);
    let below = m.select(inverse, a, one);
    let t = m.div(above, below);
    let z = m.mul(t, t);
    let base = HALF_PI.of(m).map(|part| {
        let part = m.float(part);
        m.select(inverse, part, zero)
    });
    let c = ATAN.of(m);
    let y = odd_and_base(m, t, z, c, base);
    with_sign(m, y, x)
}

/// The angle of the point `(x, y)`: the inverse tangent of the smaller coordinate over the larger, counted from the
/// nearest half axis.
pub fn atan2<A: Arith>(m: &mut A, y: A::F, x: A::F) -> A::F {
    let (a, b) = (m.abs(y), m.abs(x));
    let (zero, one, two) = (m.float(0.0), m.float(1.0), m.float(2.0));
    let steep = m.lt(b, a);
    let above = m.select(steep, b, a);
    let below = m.select(steep, a, b);
    let t = m.div(above, below);
    // Two infinities are as good as equal numbers; of two zeros the angle is that of the half axis.
    let none = m.eq(below, zero);
    let same = m.select(none, zero, one);
    let equal = m.eq(above, below);
    let t = m.select(equal, same, t);
    let z = m.mul(t, t);
    let (bits, no_bits) = (m.to_bits(x), m.int(0));
    let left = m.ilt(bits, no_bits);
    // From the upper half axis: to the right the angle falls. From the left one it falls, too.
    let right = m.not(left);
    let falls_up = m.and(steep, right);
    let level = m.not(steep);
    let falls_left = m.and(level, left);
    let falls = m.or(falls_up, falls_left);
    let minus = m.neg(t);
    let t = m.select(falls, minus, t);
    let quarters = m.select(left, two, zero);
    let quarters = m.select(steep, one, quarters);
    let base = HALF_PI.of(m).map(|part| {
        let part = m.float(part);
        m.mul(part, quarters)
    });
    let c = ATAN.of(m);
    let angle = odd_and_base(m, t, z, c, base);
    flipped_as(m, angle, y, a)
}

/// `t`, `t²` and whether `|x|` is above ½: `t` is `|x|` or, above ½, `√((1 - |x|)/2)`, with which `arcsin |x|` is
/// `π/2 - 2 arcsin t`.
fn halved<A: Arith>(m: &mut A, a: A::F) -> (A::F, A::F, A::B) {
    let (half, minus) = (m.float(0.5), m.float(-0.5));
    let above = m.lt(half, a);
    let square = m.mul(a, a);
    let rest = m.fma(a, minus, half);
    let z = m.select(above, rest, square);
    let root = m.sqrt(rest);
    let t = m.select(above, root, a);
    (t, z, above)
}

/// The inverse sine.
pub fn asin<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let a = m.abs(x);
    let (t, z, above) = halved(m, a);
    let (zero, one, minus_two) = (m.float(0.0), m.float(1.0), m.float(-2.0));
    let z2 = m.mul(z, z);
    let c = ASIN.of(m);
    let q = pairs(m, z, z2, c);
    let tz = m.mul(t, z);
    let factor = m.select(above, minus_two, one);
    let base = HALF_PI.of(m).map(|part| {
        let part = m.float(part);
        m.select(above, part, zero)
    });
    let tz = m.mul(tz, factor);
    let small = m.fma(tz, q, base[1]);
    let y = m.fma(t, factor, small);
    let y = m.add(base[0], y);
    with_sign(m, y, x)
}

/// The inverse cosine: `π/2 - arcsin x`, and `2 arcsin t` or `π - 2 arcsin t` near the ends.
pub fn acos<A: Arith>(m: &mut A, x: A::F) -> A::F {
    let a = m.abs(x);
    let (t, z, above) = halved(m, a);
    let t = with_sign(m, t, x);
    let (zero, one, two) = (m.float(0.0), m.float(1.0), m.float(2.0));
    let z2 = m.mul(z, z);
    let c = ASIN.of(m);
    let q = pairs(m, z, z2, c);
    let tz = m.mul(t, z);
    let minus = m.float(-1.0);
    // Near the ends 2 arcsin t has the sign of x, so that it is added to π as well.
    let factor = m.select(above, two, minus);
    let negative = m.lt(x, zero);
    let quarters = m.select(negative, two, zero);
    let quarters = m.select(above, quarters, one);
    let base = HALF_PI.of(m).map(|part| {
        let part = m.float(part);
        m.mul(part, quarters)
    });
    let tz = m.mul(tz, factor);
    let small = m.fma(tz, q, base[1]);
    let y = m.fma(t, factor, base[0]);
    m.add(y, small)
}

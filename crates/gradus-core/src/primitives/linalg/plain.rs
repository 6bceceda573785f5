//! Loops over small matrices in rows: below some size they take less time than to ask a library. Where a pivot is zero they do
//! what LAPACK does.

use std::ops::{Add, Div, Mul, Sub};

use crate::primitives::elementwise::number::Number;
use crate::types::{Complex, Element};

/// Up to so many rows the loops here are used.
pub(super) const PLAIN: usize = 16;

/// Numbers that matrices are decomposed in.
pub(super) trait Field:
    Number
    + faer::traits::ComplexField<Real = Self::Part>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    /// The real numbers of the same width.
    type Part: Element + faer::traits::RealField + PartialOrd + Add<Output = Self::Part> + Mul<Output = Self::Part>;
    const NAN: Self;
    const ONE: Self;
    /// The sum of the sizes of its parts: what pivots are compared by, as in LAPACK.
    fn size(self) -> Self::Part;
    /// The absolute value.
    fn modulus(self) -> Self::Part;
    fn finite(self) -> bool;
    /// What of the largest singular value counts as zero, in a matrix of this size.
    fn tolerance(side: usize) -> Self::Part;
    fn conjugate(self) -> Self;
    fn part(self) -> Self::Part;
    fn of_part(part: Self::Part) -> Self;
    /// The number divided by its size; zero stays.
    fn direction(self) -> Self;
    /// The direction, with one for those that have none.
    fn phase(self) -> Self {
        let d = self.direction();
        if d.finite() && d != Self::default() { d } else { Self::ONE }
    }
    /// The root of a pivot, if it is positive.
    fn positive_root(self) -> Option<Self>;
    /// The larger absolute value of its parts, which cannot overflow as their length can. NaN if one of them is.
    fn largest_part(self) -> f64;
    /// The number times `2^power`, rounded once.
    fn times_power_of_two(self, power: i32) -> Self;
    /// Whether one over the number has all its digits. A zero counts too: what is divided by it is infinite either way.
    fn has_reciprocal(self) -> bool {
        let (size, least) = (self.largest_part(), 4.0 * Self::LEAST);
        size == 0.0 || (least..=least.recip()).contains(&size)
    }
    /// The least number that has all its digits.
    const LEAST: f64;
    /// The exponents of two between which squares, and sums of many of them, keep all their digits.
    const SAFE: std::ops::RangeInclusive<i32>;
}

macro_rules! fields {
    ($($t:ty),*) => {$(
        impl Field for $t {
            type Part = $t;
            const NAN: $t = <$t>::NAN;
            const ONE: $t = 1.0;
            fn size(self) -> $t {
                self.abs()
            }
            fn modulus(self) -> $t {
                self.abs()
            }
            fn finite(self) -> bool {
                self.is_finite()
            }
            fn tolerance(side: usize) -> $t {
                10.0 * side as $t * <$t>::EPSILON
            }
            fn conjugate(self) -> $t {
                self
            }
            fn part(self) -> $t {
                self
            }
            fn of_part(part: $t) -> $t {
                part
            }
            fn direction(self) -> $t {
                if self == 0.0 { self } else { self.signum() }
            }
            fn positive_root(self) -> Option<$t> {
                (self > 0.0).then(|| self.sqrt())
            }
            fn largest_part(self) -> f64 {
                f64::from(self.abs())
            }
            fn times_power_of_two(self, power: i32) -> $t {
                // In two steps, since a factor can be beyond all numbers where the product is not; the first of them is exact.
                let factor = |power: i32| f64::from_bits(((1023 + power) as u64) << 52) as $t;
                self * factor(power / 2) * factor(power - power / 2)
            }
            const LEAST: f64 = <$t>::MIN_POSITIVE as f64;
            // As in LAPACK: from √(least normal number) / ε on, and from its inverse down.
            const SAFE: std::ops::RangeInclusive<i32> = {
                let least = (<$t>::MIN_EXP - 1) / 2 + <$t>::MANTISSA_DIGITS as i32;
                least..=-least
            };
        }

        impl Field for Complex<$t> {
            type Part = $t;
            const NAN: Self = Complex::new(<$t>::NAN, <$t>::NAN);
            const ONE: Self = Complex::new(1.0, 0.0);
            fn size(self) -> $t {
                self.re.abs() + self.im.abs()
            }
            fn modulus(self) -> $t {
                self.re.hypot(self.im)
            }
            fn finite(self) -> bool {
                self.re.is_finite() && self.im.is_finite()
            }
            fn tolerance(side: usize) -> $t {
                <$t as Field>::tolerance(side)
            }
            fn conjugate(self) -> Self {
                self.conj()
            }
            fn part(self) -> $t {
                self.re
            }
            fn of_part(part: $t) -> Self {
                Complex::new(part, 0.0)
            }
            fn direction(self) -> Self {
                let size = self.re.hypot(self.im);
                if size == 0.0 { self } else { self / size }
            }
            fn positive_root(self) -> Option<Self> {
                (self.re > 0.0).then(|| Complex::new(self.re.sqrt(), 0.0))
            }
            fn largest_part(self) -> f64 {
                let (re, im) = (f64::from(self.re.abs()), f64::from(self.im.abs()));
                if re > im || re.is_nan() { re } else { im }
            }
            fn times_power_of_two(self, power: i32) -> Self {
                Complex::new(self.re.times_power_of_two(power), self.im.times_power_of_two(power))
            }
            const LEAST: f64 = <$t as Field>::LEAST;
            const SAFE: std::ops::RangeInclusive<i32> = <$t as Field>::SAFE;
        }
    )*};
}
fields!(f32, f64);

/// `Σ a·b`, in eight lanes that become vector instructions.
fn dot<T: Field>(a: &[T], b: &[T]) -> T {
    const LANES: usize = 8;
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut lanes = [T::default(); LANES];
    for (a, b) in a.iter().zip(b) {
        for (lane, (&a, &b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    let total = lanes.into_iter().fold(T::default(), |x, y| x + y);
    a_rest.iter().zip(b_rest).fold(total, |sum, (&a, &b)| sum + a * b)
}

/// `a -= factor·b`.
fn subtract<T: Field>(a: &mut [T], factor: T, b: &[T]) {
    a.iter_mut().zip(b).for_each(|(a, &b)| *a -= factor * b);
}

/// The factor of a positive definite matrix over its lower triangle, zeros above; whether there is one.
pub(super) fn cholesky<T: Field>(a: &mut [T], n: usize) -> bool {
    for i in 0..n {
        let (above, row) = a.split_at_mut(i * n);
        for j in 0..i {
            let other = &above[j * n..j * n + n];
            let sum = row[..j].iter().zip(other).fold(row[j], |s, (&x, &y)| s - x * y.conjugate());
            row[j] = sum.over(other[j]);
        }
        let pivot = row[..i].iter().fold(row[i], |s, &x| s - x * x.conjugate());
        let Some(root) = pivot.positive_root() else { return false };
        row[i] = root;
        row[i + 1..n].fill(T::default());
    }
    true
}

/// The factors of a matrix in its place, L below the diagonal and U from it on; `order` becomes the rows that were chosen.
pub(super) fn lu<T: Field>(a: &mut [T], rows: usize, columns: usize, order: &mut [usize]) {
    order.iter_mut().enumerate().for_each(|(i, o)| *o = i);
    for k in 0..rows.min(columns) {
        let mut best = k;
        for i in k + 1..rows {
            if a[i * columns + k].size() > a[best * columns + k].size() {
                best = i;
            }
        }
        if best != k {
            order.swap(k, best);
            let (above, below) = a.split_at_mut(best * columns);
            above[k * columns..(k + 1) * columns].swap_with_slice(&mut below[..columns]);
        }
        let (above, below) = a.split_at_mut((k + 1) * columns);
        let pivot_row = &above[k * columns..];
        let pivot = pivot_row[k];
        // Below a pivot of zero there are only zeros.
        if pivot == T::default() {
            continue;
        }
        for row in below.chunks_exact_mut(columns) {
            row[k] = row[k].over(pivot);
            let factor = row[k];
            subtract(&mut row[k + 1..], factor, &pivot_row[k + 1..]);
        }
    }
}

/// Which triangle of a matrix a system is, and which way round.
#[derive(Clone, Copy)]
pub(super) struct Triangle {
    pub(super) lower: bool,
    pub(super) transpose: bool,
    pub(super) unit: bool,
}

/// Solves a triangular system in the place of its right-hand sides. What is known is taken off in the order in which it was solved, as
/// small systems in vectors of matrices do it, so that both give the same bits; only long rows are summed in lanes first.
pub(super) fn triangular<T: Field>(a: &[T], x: &mut [T], n: usize, k: usize, t: Triangle) {
    // A transposed lower triangle is solved from its end, as an upper one is.
    let forward = t.lower != t.transpose;
    for step in 0..n {
        let i = if forward { step } else { n - 1 - step };
        let row = &a[i * n..(i + 1) * n];
        if !t.transpose && k == 1 && n > PLAIN {
            let sum = if forward { dot(&row[..i], &x[..i]) } else { dot(&row[i + 1..], &x[i + 1..]) };
            x[i] -= sum;
        } else if !t.transpose && k == 1 {
            let less = |x: T, (&a, &known): (&T, &T)| x - a * known;
            x[i] = if forward {
                row[..i].iter().zip(&*x).fold(x[i], less)
            } else {
                row[i + 1..].iter().zip(&x[i + 1..]).rev().fold(x[i], less)
            };
        } else if !t.transpose {
            for known in 0..step {
                let j = if forward { known } else { n - 1 - known };
                let (to, from) = two_rows(x, i, j, k);
                subtract(to, row[j], from);
            }
        }
        if !t.unit {
            x[i * k..(i + 1) * k].iter_mut().for_each(|v| *v = v.over(row[i]));
        }
        if !t.transpose {
            continue;
        }
        if k == 1 {
            let solved = x[i];
            if t.lower {
                subtract(&mut x[..i], solved, &row[..i])
            } else {
                subtract(&mut x[i + 1..], solved, &row[i + 1..])
            }
        } else {
            for j in if t.lower { 0..i } else { i + 1..n } {
                let (to, from) = two_rows(x, j, i, k);
                subtract(to, row[j], from);
            }
        }
    }
}

/// Row `i` to be written and row `j` to be read, of rows of `k` elements.
fn two_rows<T>(x: &mut [T], i: usize, j: usize, k: usize) -> (&mut [T], &[T]) {
    if i < j {
        let (low, high) = x.split_at_mut(j * k);
        (&mut low[i * k..(i + 1) * k], &high[..k])
    } else {
        let (low, high) = x.split_at_mut(i * k);
        (&mut high[..k], &low[j * k..(j + 1) * k])
    }
}

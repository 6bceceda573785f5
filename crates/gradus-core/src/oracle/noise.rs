//! What rounding can do to a program: it is interpreted again and again with noise in the last places of every sum, and how far
//! its results move says how far apart two right runs may be.
//!
//! Sums are where right runs part: compiled code contracts a product into a sum, adds up in another order, and leaves products of
//! matrices to a library. So are decompositions, which are exact for a matrix near the one they were given. Elementwise functions have the same bits in
//! every tier and get no noise, unless a compiler that is not ours makes them ([`Freedom::Functions`]). So a result without sums is exact,
//! one that cancels may move by what was added, one behind a jump (`floor`, a comparison) by the whole of it, and a sum that leaves
//! the range of its dtype in one order may stay in it in another.

use std::cell::Cell;

use super::Run;
use super::compare::{epsilon, size, sizes, smallest};
use crate::array::{Array, Concrete};
use crate::error::{Result, error};
use crate::primitives::convert::{Bitcast, Convert};
use crate::primitives::convolve::Convolve;
use crate::primitives::cumulative::{CumProd, CumSum};
use crate::primitives::dot::DotGeneral;
use crate::primitives::effects::replay::Event;
use crate::primitives::elementwise::{
    Abs, Add, Ceil, Clamp, Complex, Conj, Digamma, Div, Floor, Imag, IntegerPow, Lgamma, Max, Min, Mul, MulAdd, Neg,
    Nextafter, Polygamma, Real, Rem, Round, Rsqrt, Select, Sign, Sqrt, Sub, Trunc,
};
use crate::primitives::index::{Scatter, ScatterKind};
use crate::primitives::reduce::{ReduceProd, ReduceSum};
use crate::primitives::reduce_window::{ReduceWindow, WindowKind};
use crate::primitives::{Op, Outputs};
use crate::program::Program;
use crate::types::{DType, Element, Scalar, Wide, dispatch_number};

/// So many runs with noise are asked before a difference is nobody's rounding. Where what is moved cancels again, only the roundings on the way are left, and
/// few of the runs show one; most differences are explained by the first.
const RUNS: std::ops::RangeInclusive<u64> = 4..=64;
/// A long program is asked less often: no more than so many equations in all, but for the least number of runs.
const PATIENCE: u64 = 4_000_000;
/// What is still in doubt then may be rare: two roundings that meet halfway, one sum of many that is not 0. A short program is asked as often as this, while no more
/// than so many equations have run.
const RARE: (u64, u64) = (2048, 100_000);
/// One sum in so many is moved where few are.
const FEW: f64 = 8.0;
/// A difference of so many times what noise does is explained by it.
const SPARE: f64 = 8.0;

/// Whether an operation is rounded once, as the standard says: two units are those of a compiler that writes quotients and powers otherwise.
fn is_arithmetic(op: &Op) -> bool {
    let roots = op.is::<Sqrt>() || op.is::<Rsqrt>() || op.is::<Abs>();
    op.is::<Mul>() || op.is::<Div>() || op.is::<IntegerPow>() || roots
}

/// How often a sum that noise could take to 0 is 0.
const NOTHING: f64 = 0.25;

/// What may round differently in two right runs of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Freedom {
    /// Products of matrices: the order of their sums is a library's.
    Products,
    /// Every sum of many terms: a pass may change its order.
    Sums,
    /// Sums of two terms, too: a product is contracted into them.
    Contraction,
    /// Functions of one element as well, which another library computes, and numbers below the smallest normal one, which may be 0: what a device does
    /// whose compiler is not ours.
    Functions,
}

/// How many units in the last place a function of another library may be off. XLA's are within 130 (`log1p` and `atanh` of f64 are the worst) but for `lgamma` and
/// `digamma` near their zeros.
const FUNCTION: f64 = 128.0;

impl Freedom {
    /// How many units in the last place of its terms an operation may move its result by.
    fn units(self, op: &Op, dtype: DType) -> Option<f64> {
        match Terms::of(op) {
            Some(Terms::Products) => Some(32.0),
            Some(Terms::Many | Terms::Factors) if self >= Freedom::Sums => Some(32.0),
            // A term is rounded once where two are added.
            Some(Terms::Two) if self >= Freedom::Contraction => Some(2.0),
            Some(_) => None,
            // Half floats are computed in wider ones; which roundings on the way are left out is the compiler's choice.
            None if self >= Freedom::Functions && dtype.size() == 2 => {
                (is_function(op) || op.is::<Convert>()).then_some(2.0)
            }
            None if self >= Freedom::Functions && is_function(op) => {
                Some(if is_arithmetic(op) { 2.0 } else { FUNCTION })
            }
            None => None,
        }
    }
}

/// Whether an operation rounds each element by itself: those that do not choose, move or cut numbers.
fn is_function(op: &Op) -> bool {
    let chooses = op.is::<Select>() || op.is::<Clamp>() || op.is::<Max>() || op.is::<Min>();
    let signs = op.is::<Neg>() || op.is::<Sign>() || op.is::<Conj>() || op.is::<Nextafter>();
    let cuts = op.is::<Floor>() || op.is::<Ceil>() || op.is::<Round>() || op.is::<Trunc>() || op.is::<Rem>();
    let parts = op.is::<Real>() || op.is::<Imag>() || op.is::<Complex>();
    op.is_elementwise() && !(chooses || signs || cuts || parts || op.is::<Convert>() || op.is::<Bitcast>())
}

/// What an operation adds up or multiplies, for each element of its result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Terms {
    /// Products of two numbers.
    Products,
    /// Numbers, as many as there are.
    Many,
    /// Two, of which one may be a product.
    Two,
    /// Factors.
    Factors,
}

impl Terms {
    fn of(op: &Op) -> Option<Terms> {
        // What is written over, or chosen from, is no sum.
        let scatters = op.downcast::<Scatter>().is_some_and(|s| matches!(s.kind, ScatterKind::Add | ScatterKind::Mul));
        let windows = |kind| op.downcast::<ReduceWindow>().is_some_and(|w| w.kind == kind);
        let many = op.is::<ReduceSum>() || op.is::<CumSum>() || scatters || windows(WindowKind::Sum);
        let two = op.is::<Add>() || op.is::<Sub>() || op.is::<MulAdd>();
        let factors = op.is::<ReduceProd>() || op.is::<CumProd>() || windows(WindowKind::Prod);
        match op.is::<DotGeneral>() || op.is::<Convolve>() {
            true => Some(Terms::Products),
            false if many => Some(Terms::Many),
            false if two => Some(Terms::Two),
            false => factors.then_some(Terms::Factors),
        }
    }
}

#[derive(Clone, Copy)]
struct Noise {
    freedom: Freedom,
    /// Every sum is moved the same way, or each element its own.
    way: Option<f64>,
    state: u64,
    /// Equations that may still run: noise must not make a loop endless.
    left: u64,
    /// Whether a product was whole by rounding alone: contracted into a sum it is not.
    rounded: bool,
    amplitude: f64,
    kind: Kind,
    /// Whether a sum was there to move.
    moves: bool,
    /// Whether numbers below the smallest normal one are 0.
    flushes: bool,
}

/// Which sums are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Each by itself.
    Each,
    /// Equal sums of equal terms alike, as where one loop computes them: the two halves of a symmetric matrix stay equal.
    Alike,
    /// A few; of the others, those that nearly cancel are 0, as most are in most orders, or of any size.
    Few,
}

impl Kind {
    /// The first runs, which are all that a long program has, move each sum by itself.
    fn of(run: u64) -> Kind {
        match run {
            _ if run < *RUNS.start() => Kind::Each,
            _ if run % 2 == 1 => Kind::Alike,
            _ if run >= *RUNS.end() && run % 4 == 2 => Kind::Few,
            _ => Kind::Each,
        }
    }
}

thread_local! {
    static NOISE: Cell<Option<Noise>> = const { Cell::new(None) };
}

/// What a function gives with noise, and what was left of the noise.
fn within<T>(noise: Noise, f: impl FnOnce() -> T) -> (T, Noise) {
    /// Puts back what was there even if the function panics.
    struct Restore(Option<Noise>);
    impl Drop for Restore {
        fn drop(&mut self) {
            NOISE.set(self.0);
        }
    }
    let _restore = Restore(NOISE.replace(Some(noise)));
    let out = f();
    (out, NOISE.get().unwrap_or(noise))
}

/// Results of an operation, with noise if someone asks what it does.
pub(crate) fn disturbed(op: &Op, operands: &[Array], outputs: Outputs) -> Result<Outputs> {
    let Some(mut noise) = NOISE.get() else { return Ok(outputs) };
    noise.left = noise.left.checked_sub(1).ok_or_else(|| error!(Value, "noise makes a loop endless"))?;
    let contracts = noise.freedom >= Freedom::Contraction && op.is::<Mul>();
    noise.rounded |= contracts && outputs.iter().all(is_whole) && !operands.iter().all(is_whole);
    NOISE.set(Some(noise));
    let outputs = if noise.flushes { noise.flushed(op, operands, outputs)? } else { outputs };
    let outputs = noise.without_holes(op, operands, outputs)?;
    #[cfg(feature = "linalg")]
    if noise.amplitude != 0.0 && crate::primitives::linalg::is_decomposition(op) {
        let moved = operands.iter().map(|a| noise.near(a)).collect::<Vec<_>>();
        noise.moves = true;
        NOISE.set(Some(noise));
        return op.evaluate(&moved);
    }
    if noise.amplitude == 0.0 || outputs.len() != 1 {
        return Ok(outputs);
    }
    let y = &outputs[0];
    let Some(units) = noise.freedom.units(op, y.dtype()).filter(|_| y.dtype().is_inexact()) else { return Ok(outputs) };
    // Sums of small whole numbers are exact in every order; a product of many leaves the range in one order and is 0 in another.
    let rounded = noise.rounded && Terms::of(op) == Some(Terms::Two);
    let exact = !is_product(op) && !rounded && operands.iter().chain([y]).all(is_whole);
    let Some(c) = y.concrete().filter(|_| !exact) else { return Ok(outputs) };
    let mut terms = terms(op, operands, y);
    if Terms::of(op) == Some(Terms::Two) {
        // A product that leaves the range by itself may stay in it with the sum that it is contracted into.
        for a in operands {
            let infinite = |v: &f64| v.is_infinite();
            let Some(numbers) = first(Ok([a.abs()].into_iter().collect())) else { continue };
            terms.iter_mut().zip(&numbers).filter(|(_, v)| infinite(v)).for_each(|(t, _)| *t = f64::INFINITY);
        }
    }
    // Many terms, one after the other, are off by as many roundings.
    let units = units.max(roundings(op, operands, y));
    let (relative, dtype) = (units * epsilon(y.dtype()), y.dtype());
    let step = Step { relative, least: relative * smallest(dtype), most: Scalar::highest_finite(dtype).to_f64() };
    let still = as_they_were(op, operands, y);
    noise.moves = true;
    let moved: Array = dispatch_number!(c.ty().dtype(), T => {
        let values = c.values::<T>();
        let values = values.iter().zip(&terms).enumerate().map(|(i, (v, scale))| T::from_wide(match v.to_wide() {
            as_it_was if still.as_ref().is_some_and(|still| still[i]) => as_it_was,
            Wide::Real(x) => Wide::Real(noise.moved(x, &step, *scale)),
            Wide::Complex(re, im) if noise.freedom >= Freedom::Functions && !(re.is_finite() && im.is_finite()) => {
                Wide::Complex(noise.lost(re), noise.lost(im))
            }
            Wide::Complex(re, im) => Wide::Complex(noise.moved(re, &step, *scale), noise.moved(im, &step, *scale)),
            other => other,
        }));
        Concrete::dense(c.ty().clone(), values.collect()).into()
    }, else y.clone());
    NOISE.set(Some(noise));
    Ok([moved].into_iter().collect())
}

/// Which elements of a result were not computed: those of a scatter to which nothing is added, and of other operations than sums those that are one of their operands,
/// up to the sign. None if all were.
fn as_they_were(op: &Op, operands: &[Array], result: &Array) -> Option<Vec<bool>> {
    if Terms::of(op).is_none() {
        let made = sizes(result);
        let mut still = vec![false; made.len()];
        for given in operands.iter().filter(|a| a.shape() == result.shape()).map(sizes) {
            still.iter_mut().zip(made.iter().zip(&given)).for_each(|(still, (y, x))| *still |= y == x);
        }
        return Some(still);
    }
    let scatter = op.downcast::<Scatter>()?;
    added_to(scatter, operands).map(|added| added.iter().map(|n| *n == 0.0).collect())
}

/// How much is added to each element of a scatter's operand, if everything that is added were 1: where it is nothing, no sum was made.
fn added_to(scatter: &Scatter, operands: &[Array]) -> Option<Vec<f64>> {
    let [operand, indices, updates] = operands else { return None };
    let ones = |a: &Array, one: f64| of_size(a, |_| one);
    let adds = Op::new(Scatter { kind: ScatterKind::Add, ..scatter.clone() });
    first(adds.evaluate(&[ones(operand, 0.0), indices.clone(), ones(updates, 1.0)]))
}

/// A part of how many terms an operation adds up for each element: sums of equal terms go wrong in one direction.
fn roundings(op: &Op, operands: &[Array], result: &Array) -> f64 {
    let count = |a: &Array| a.concrete().map_or(1, Concrete::count).max(1) as f64;
    let reduces = op.is::<ReduceSum>() || op.is::<ReduceProd>();
    let runs = op.is::<CumSum>() || op.is::<CumProd>();
    let terms = match operands {
        [a, b] if op.is::<DotGeneral>() => (count(a) * count(b) / count(result)).sqrt(),
        // The places and features of a kernel, for each of its results.
        [_, w] if op.is::<Convolve>() => count(w) / w.dim(-1).as_usize().unwrap_or(1).max(1) as f64,
        [a] if reduces => count(a) / count(result),
        [a] if runs => count(a),
        _ => 1.0,
    };
    terms / 8.0
}

/// How far a number is moved: by a part of what it is made of, and at least by some of the smallest numbers there are.
struct Step {
    relative: f64,
    least: f64,
    /// The largest number there is.
    most: f64,
}

impl Noise {
    fn new(freedom: Freedom, run: u64) -> Noise {
        let left = u64::MAX / 2;
        let kind = Kind::of(run);
        // Moves keep what arithmetic makes 0, so some runs keep all.
        let flushes = freedom >= Freedom::Functions && run % 3 != 1;
        Noise { freedom, way: None, state: run, left, rounded: false, amplitude: 1.0, kind, moves: false, flushes }
    }

    /// What a convolution gives in half of the runs, whose image has zeros between its elements: they are multiplied or left out, which an infinite kernel shows.
    fn without_holes(&mut self, op: &Op, operands: &[Array], outputs: Outputs) -> Result<Outputs> {
        let (Some(convolve), [x, w]) = (op.downcast::<Convolve>(), operands) else { return Ok(outputs) };
        if self.freedom < Freedom::Sums || convolve.image_dilation.iter().all(|d| *d == 1) || self.random() < 0.0 {
            return Ok(outputs);
        }
        NOISE.set(None);
        let parts = convolve.quick_parts(x, w);
        self.moves = true;
        NOISE.set(Some(*self));
        Ok([parts?].into_iter().collect())
    }

    /// What an operation gives where numbers below the smallest normal one are 0, among its operands and its results. What it holds is flushed as it runs.
    fn flushed(&mut self, op: &Op, operands: &[Array], outputs: Outputs) -> Result<Outputs> {
        if op.holds_programs() || !op.effects().is_pure() {
            return Ok(outputs);
        }
        let taken: Vec<Option<Array>> = operands.iter().map(without_small).collect();
        let outputs = if taken.iter().any(Option::is_some) {
            let pairs = taken.into_iter().zip(operands);
            op.evaluate(&pairs.map(|(small, a)| small.unwrap_or_else(|| a.clone())).collect::<Vec<_>>())?
        } else {
            let given: Vec<Option<Array>> = outputs.iter().map(without_small).collect();
            if given.iter().all(Option::is_none) {
                return Ok(outputs);
            }
            given.into_iter().zip(outputs).map(|(small, y)| small.unwrap_or(y)).collect()
        };
        self.moves = true;
        NOISE.set(Some(*self));
        Ok(outputs.into_iter().map(|y| without_small(&y).unwrap_or(y)).collect())
    }

    /// A number between -1 and 1. splitmix64: any sequence will do.
    fn random(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    /// Numbers in the neighbourhood of those of a matrix: what a decomposition gives is exact for one of them, and which one is the library's choice.
    #[cfg(feature = "linalg")]
    fn near(&mut self, a: &Array) -> Array {
        let Some(c) = a.concrete().filter(|_| a.dtype().is_inexact()) else { return a.clone() };
        let largest = sizes(a).into_iter().fold(0.0, f64::max);
        let relative = 32.0 * epsilon(a.dtype());
        let step = Step { relative, least: 0.0, most: Scalar::highest_finite(a.dtype()).to_f64() };
        dispatch_number!(c.ty().dtype(), T => {
            let values = c.values::<T>();
            let values = values.iter().map(|v| T::from_wide(match v.to_wide() {
                Wide::Real(x) => Wide::Real(self.moved(x, &step, largest)),
                Wide::Complex(re, im) => Wide::Complex(self.moved(re, &step, largest), self.moved(im, &step, largest)),
                other => other,
            }));
            Concrete::dense(c.ty().clone(), values.collect()).into()
        }, else a.clone())
    }

    /// What a part of a complex number is that is not finite: of infinite operands some libraries keep the infinity, and others have NaN.
    fn lost(&mut self, x: f64) -> f64 {
        match self.random() {
            fate if fate < -0.5 => f64::NAN,
            fate if fate < 0.0 => f64::INFINITY.copysign(self.random()),
            _ => x,
        }
    }

    fn moved(&mut self, x: f64, step: &Step, scale: f64) -> f64 {
        let mut source = *self;
        if self.kind == Kind::Alike {
            source.state ^= x.to_bits().rotate_left(17) ^ scale.to_bits();
        }
        let moved = source.moved_by_chance(x, step, scale);
        if self.kind != Kind::Alike {
            self.state = source.state;
        }
        moved
    }

    fn moved_by_chance(&mut self, x: f64, step: &Step, scale: f64) -> f64 {
        let by = self.random();
        if !scale.is_finite() {
            // Terms that leave the range together: the order decides whether they do, and to which side.
            let fate = self.random();
            return match self.way {
                Some(way) => way * f64::INFINITY,
                None if fate < -0.8 => f64::NAN,
                None if fate < 0.0 => by * step.most,
                None if fate < 0.7 => by.signum() * f64::INFINITY,
                None => x,
            };
        }
        if !x.is_finite() {
            return x;
        }
        let most = step.least.max(step.relative * scale) * self.amplitude;
        if self.kind == Kind::Few {
            return match self.random() {
                // Of what cancels any size may be left, and what is made of it may be large only for some of them.
                fate if x.abs() <= most && fate < 0.0 => by.signum() * most * (53.0 * fate).exp2(),
                fate if fate.abs() * FEW < 1.0 => x + by * most,
                _ if x.abs() <= most => 0.0_f64.copysign(by),
                _ => x,
            };
        }
        if self.way.is_none() && x.abs() <= most && by.abs() < NOTHING {
            // What nearly cancels may cancel: another order finds exactly nothing, and who divides by it an infinity.
            return 0.0_f64.copysign(by);
        }
        x + self.way.unwrap_or(by) * most
    }
}

/// An array with zeros in place of numbers below the smallest normal one, if it has any.
fn without_small(a: &Array) -> Option<Array> {
    let c = a.concrete().filter(|_| a.dtype().is_inexact())?;
    let least = smallest(a.dtype());
    let small = |x: f64| x != 0.0 && x.abs() < least;
    let flushed = |x: f64| if small(x) { 0.0_f64.copysign(x) } else { x };
    dispatch_number!(c.ty().dtype(), T => {
        let values = c.values::<T>();
        let any = values.iter().any(|v| match v.to_wide() {
            Wide::Real(x) => small(x),
            Wide::Complex(re, im) => small(re) || small(im),
            Wide::Int(_) | Wide::UInt(_) => false,
        });
        any.then(|| {
            let values = values.iter().map(|v| T::from_wide(match v.to_wide() {
                Wide::Real(x) => Wide::Real(flushed(x)),
                Wide::Complex(re, im) => Wide::Complex(flushed(re), flushed(im)),
                other => other,
            }));
            Concrete::dense(c.ty().clone(), values.collect()).into()
        })
    }, else None)
}

/// Whether all numbers are whole and small: then sums of them are exact.
fn is_whole(a: &Array) -> bool {
    // Far from the last whole number that has no gap behind it.
    let large = (0.0625 / epsilon(a.dtype())).min(f64::from(1_u32 << 20)).max(16.0);
    let small = |x: f64| x == x.trunc() && x.abs() < large;
    let Some(c) = a.concrete() else { return false };
    dispatch_number!(c.ty().dtype(), T => {
        c.values::<T>().iter().all(|v| match v.to_wide() {
            Wide::Real(x) => small(x),
            Wide::Complex(re, im) => small(re) && small(im),
            Wide::Int(_) | Wide::UInt(_) => true,
        })
    }, else true)
}

/// What each element of a result is made of, in size: where terms cancel, the result is smaller than its rounding. Not finite where finite terms leave
/// the range of the dtype together.
pub(super) fn terms(op: &Op, operands: &[Array], result: &Array) -> Vec<f64> {
    let dtype = result.dtype();
    if op.holds_programs() {
        // Inside of a loop there is more than can be seen from here.
        let all = sizes(result);
        let largest = all.iter().copied().fold(0.0, f64::max);
        return vec![largest; all.len()];
    }
    if is_product(op) {
        return factors(op, operands, result);
    }
    if op.is::<Lgamma>() || op.is::<Digamma>() || op.is::<Polygamma>() {
        // Beside their zeros they are differences of larger numbers.
        let of = operands.first().map(sizes).unwrap_or_default();
        return sizes(result).into_iter().zip(of).map(|(y, x)| 1.0 + x + y).collect();
    }
    if Terms::of(op).is_none() || !dtype.is_inexact() {
        return sizes(result);
    }
    let sized: Vec<Array> = operands.iter().map(|a| of_size(a, |x| x)).collect();
    let added = if op.is::<Sub>() { Op::fixed(&Add).evaluate(&sized) } else { op.evaluate(&sized) };
    first(added).unwrap_or_else(|| sizes(result))
}

fn is_product(op: &Op) -> bool {
    Terms::of(op) == Some(Terms::Factors)
}

/// The size of a product; not finite where the large factors alone, or the small ones, leave the range of the dtype.
fn factors(op: &Op, operands: &[Array], result: &Array) -> Vec<f64> {
    let of = |f: fn(f64) -> f64| {
        let sized: Vec<Array> = operands.iter().map(|a| of_size(a, f)).collect();
        first(op.evaluate(&sized))
    };
    let small = |x: f64| if x == 0.0 { 1.0 } else { x.min(1.0) };
    let (Some(large), Some(small)) = (of(|x| x.max(1.0)), of(small)) else { return sizes(result) };
    let least = smallest(result.dtype());
    let size = |((size, large), small): ((f64, f64), f64)| {
        if large.is_finite() && small > least { size } else { f64::INFINITY }
    };
    sizes(result).into_iter().zip(large).zip(small).map(size).collect()
}

/// The numbers of the first result.
fn first(outputs: Result<Outputs>) -> Option<Vec<f64>> {
    outputs.ok()?.first()?.cast(DType::F64).to_vec::<f64>().ok()
}

/// Numbers by their size, as floats: those that are not finite say nothing. Whole numbers (places) stay.
fn of_size(a: &Array, f: impl Fn(f64) -> f64) -> Array {
    if !a.dtype().is_inexact() {
        return a.clone();
    }
    let part = a.dtype().real_part();
    let shape = a.shape().clone();
    let numbers: Vec<f64> = sizes(a).into_iter().map(f).collect();
    let count = numbers.len();
    Array::from_vec(numbers, [count]).cast(part).reshape(&shape)
}

/// An element that differs.
struct Doubt {
    array: usize,
    element: usize,
    have: Wide,
    want: Wide,
    /// How far noise moved it.
    moved: f64,
    /// Two units in its last place.
    least: f64,
    /// How far down and up the numbers go that noise makes of it, infinities too: what lies between them is within its reach.
    reach: (f64, f64),
    /// Whether it was NaN, and whether it was infinite, in any run.
    lost: (bool, bool),
}

impl Doubt {
    /// Takes in what noise made of it.
    fn seen(&mut self, now: Wide) {
        // What noise takes out of the range, rounding may take anywhere.
        self.moved = self.moved.max(distance(now, self.want).unwrap_or(f64::INFINITY));
        if let Wide::Real(now) = now {
            self.reach = (self.reach.0.min(now), self.reach.1.max(now));
            self.lost = (self.lost.0 | now.is_nan(), self.lost.1 | now.is_infinite());
        }
    }

    /// Where what leaves the range decides between NaN and an infinity, it decides between the infinities, too.
    fn is_lost(&self) -> bool {
        self.lost == (true, true) && matches!(self.have, Wide::Real(x) if !x.is_finite())
    }

    fn is_within_reach(&self) -> bool {
        matches!(self.have, Wide::Real(x) if self.reach.0 < x && x < self.reach.1)
    }
}

fn number(a: &Array, i: usize) -> Option<Wide> {
    let c = a.concrete()?;
    crate::types::dispatch!(c.ty().dtype(), T => c.element::<T>(i).ok().map(Element::to_wide))
}

/// The distance of two numbers; none if one is not finite.
fn distance(a: Wide, b: Wide) -> Option<f64> {
    let d = match (a, b) {
        (Wide::Real(a), Wide::Real(b)) => (a - b).abs(),
        (Wide::Complex(a, b), Wide::Complex(c, d)) => (a - c).abs().max((b - d).abs()),
        (Wide::Int(a), Wide::Int(b)) => a.abs_diff(b) as f64,
        (Wide::UInt(a), Wide::UInt(b)) => a.abs_diff(b) as f64,
        _ => f64::NAN,
    };
    d.is_finite().then_some(d)
}

/// Whether two numbers are alike where one was not finite: the same infinity, NaN, or finite both.
fn is_alike(a: Wide, b: Wide) -> bool {
    let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a.is_finite() && b.is_finite());
    match (a, b) {
        (Wide::Real(a), Wide::Real(b)) => same(a, b),
        (Wide::Complex(a, b), Wide::Complex(c, d)) => same(a, c) && same(b, d),
        _ => false,
    }
}

/// Which results change at all when sums are moved in their last places.
pub(super) fn touched(program: &Program, inputs: &[Array], want: &[Array], freedom: Freedom) -> Vec<bool> {
    let mut touched = vec![false; want.len()];
    for run in 0..*RUNS.start() {
        let noise = Noise::new(freedom, run);
        let (Ok(moved), _) = within(noise, || Run::interpreted(program, inputs, &[])) else { continue };
        touch(&mut touched, moved.outputs.iter().zip(want));
    }
    touched
}

/// Marks the arrays that noise has changed.
fn touch<'a>(touched: &mut [bool], arrays: impl Iterator<Item = (&'a Array, &'a Array)>) {
    for (seen, (now, want)) in touched.iter_mut().zip(arrays) {
        *seen = *seen || !now.concrete().zip(want.concrete()).is_some_and(|(a, b)| a.same_bits(b));
    }
}

/// The elements of `have` that rounding alone cannot make of a program whose run without noise gives `want`, as the number of an array and of its
/// element; `differs` says which differ at all.
pub(super) fn unexplained(
    program: &Program,
    (inputs, given): (&[Array], &[Event]),
    (have, want): (&[&Array], &[&Array]),
    freedom: Freedom,
    differs: &dyn Fn(&Array, &Array) -> Vec<usize>,
) -> Vec<(usize, usize)> {
    let mut doubts: Vec<Doubt> = Vec::new();
    for (array, (a, b)) in have.iter().zip(want).enumerate() {
        for element in differs(a, b) {
            // Arrays of other types, or that are none, are nobody's rounding.
            let (Some(have), Some(want)) = (number(a, element), number(b, element)) else {
                return vec![(array, element)];
            };
            let least = 2.0 * epsilon(b.dtype()) * size(want);
            let at = if let Wide::Real(x) = want { x } else { f64::NAN };
            let mut doubt =
                Doubt { array, element, have, want, moved: 0.0, least, reach: (at, at), lost: (false, false) };
            doubt.seen(want);
            doubts.push(doubt);
        }
    }
    if doubts.is_empty() {
        return Vec::new();
    }
    let quiet = Noise { amplitude: 0.0, flushes: false, ..Noise::new(freedom, 0) };
    let (_, after) = within(quiet, || Run::interpreted(program, inputs, given));
    let equations = quiet.left - after.left;
    let allowed = 1000 + 4 * equations;
    let runs = (PATIENCE / equations.max(1)).clamp(*RUNS.start(), *RUNS.end());
    // Arrays in which noise was seen at all.
    let mut touched = vec![false; have.len()];
    let mut spent = 0;
    for run in 0..RARE.0 {
        if run >= runs && spent > RARE.1 {
            break;
        }
        // The first two go one way in every sum.
        let way = [1.0, -1.0].get(run as usize).copied();
        let noise = Noise { way, left: allowed, ..Noise::new(freedom, run) };
        let (moved, after) = within(noise, || Run::interpreted(program, inputs, given));
        spent += allowed - after.left;
        if !after.moves {
            // Nothing was there to move, and nothing will be.
            break;
        }
        let Ok(moved) = moved else { continue };
        let moved = moved.arrays();
        touch(&mut touched, moved.iter().copied().zip(want.iter().copied()));
        doubts.retain_mut(|d| {
            let Some(now) = moved.get(d.array).and_then(|a| number(a, d.element)) else { return true };
            d.seen(now);
            match distance(d.have, d.want) {
                // A function of what was moved by less than its own rounding may still round the other way.
                Some(apart) => apart > (SPARE * d.moved).max(if touched[d.array] { d.least } else { 0.0 }),
                None => !is_alike(now, d.have) && !d.is_within_reach() && !d.is_lost(),
            }
        });
        if doubts.is_empty() {
            break;
        }
    }
    doubts.iter().map(|d| (d.array, d.element)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::compare::{Scale, differing};
    use super::*;
    use crate::interpret;

    /// Whether rounding explains that a program gave `have`.
    fn explained(text: &str, inputs: &[Array], have: impl Into<Array>) -> bool {
        explained_by(Freedom::Contraction, text, inputs, have)
    }

    fn explained_by(freedom: Freedom, text: &str, inputs: &[Array], have: impl Into<Array>) -> bool {
        let program: Program = text.parse().unwrap();
        let want = Run { outputs: interpret(&program, inputs).unwrap(), events: Vec::new() };
        let have = Run { outputs: vec![have.into()], events: Vec::new() };
        let differs =
            |a: &Array, b: &Array| differing(a.concrete().unwrap(), b.concrete().unwrap(), Scale::Each, false);
        let (have, want) = (have.arrays(), want.arrays());
        unexplained(&program, (inputs, &[]), (&have, &want), freedom, &differs).is_empty()
    }

    #[test]
    fn what_cancels_may_move_by_what_was_added() {
        let text =
            "fn f(x0: f64[], x1: f64[]) -> f64[] {\n  x2: f64[] = add x0 x1\n  x3: f64[] = sub x2 x0\n  return x3\n}\n";
        let inputs = [Array::from(0.1_f64), Array::from(1e-15_f64)];
        assert!(explained(text, &inputs, 0.9e-15_f64));
        assert!(!explained(text, &inputs, 1e-13_f64));
    }

    /// Functions have the same bits everywhere but on a device, where what they are off by is seen behind a difference of them.
    #[test]
    fn functions_of_another_library_may_be_off() {
        let text = "fn f(x0: f64[], x1: f64[]) -> f64[] {\n  x2: f64[] = sin x0\n  x3: f64[] = sin x1\n  x4: f64[] = sub x2 x3\n  return x4\n}\n";
        let inputs = [Array::from(0.5_f64), Array::from(0.5_f64 + 1e-12)];
        let want = 0.5_f64.sin() - (0.5_f64 + 1e-12).sin();
        let have = want + 1e-14;
        assert!(explained_by(Freedom::Functions, text, &inputs, have));
        assert!(!explained_by(Freedom::Contraction, text, &inputs, have));
        assert!(!explained_by(Freedom::Functions, text, &inputs, want + 1e-11));
        // What is only chosen or turned round is exact everywhere.
        let chosen = "fn f(x0: f64[], x1: f64[]) -> f64[] {\n  x2: f64[] = max x0 x1\n  x3: f64[] = neg x2\n  x4: f64[] = add x3 x1\n  return x4\n}\n";
        assert!(!explained_by(Freedom::Functions, chosen, &inputs, 1e-14_f64));
        // A quotient by the smallest numbers is infinite where they are taken for 0.
        let quotient = "fn f(x0: f32[]) -> f32[] {\n  x1: f32[] = mul x0 0.5:f32[]\n  x2: f32[] = div 1e-10:f32[] x1\n  return x2\n}\n";
        let small = [Array::from(f32::from_bits(0x0040_0000))];
        assert!(explained_by(Freedom::Functions, quotient, &small, f32::INFINITY));
        assert!(!explained_by(Freedom::Contraction, quotient, &small, f32::INFINITY));
    }

    /// Whoever multiplies zeros between the elements of an image gets a NaN of an infinite kernel, and whoever leaves them out does not.
    #[test]
    fn zeros_between_elements_may_be_left_out() {
        let text = |holes: usize| {
            format!(
                "fn f(x0: f64[1,3,1], x1: f64[2,1,1]) -> f64[] {{\n  x2: f64[1,{},1] = convolve{{strides=[1], low=[0], high=[0], image_dilation=[{holes}], kernel_dilation=[1], feature_groups=1, batch_groups=1}} x0 x1\n  x3: f64[] = reduce_sum{{axes=[0,1,2]}} x2\n  return x3\n}}\n",
                2 * holes
            )
        };
        let image = Array::from_vec(vec![1.0, 2.0, 3.0], [1, 3, 1]);
        let kernel = |at: f64| Array::from_vec(vec![at, 1.0], [2, 1, 1]);
        let of = |holes, at, have: f64| explained_by(Freedom::Sums, &text(holes), &[image.clone(), kernel(at)], have);
        // The last element is only met by the second of the kernel.
        assert!(of(2, f64::INFINITY, f64::INFINITY));
        assert!(!of(2, 0.5, f64::INFINITY));
        assert!(!of(1, f64::NAN, 1.0));
    }

    /// What cancels may be nothing at all, though noise never makes it that.
    #[test]
    fn what_leaves_the_range_to_both_sides_may_stay_in_it() {
        let text = "fn f(x0: f32[], x1: f32[]) -> f32[] {\n  x2: f32[] = add x0 x1\n  x3: f32[] = sub x2 x0\n  x4: f32[] = sub x3 x1\n  x5: f32[] = mul x4 1e38:f32[]\n  x6: f32[] = mul x5 1e38:f32[]\n  return x6\n}\n";
        let inputs = [Array::from(1e8_f32), Array::from(0.7_f32)];
        let p: Program = text.parse().unwrap();
        let want = interpret(&p, &inputs).unwrap()[0].item::<f32>().unwrap();
        assert!(want.is_infinite(), "{want}");
        assert!(explained(text, &inputs, 0.0_f32));
        assert!(!explained(text, &[Array::from(0.5_f32), Array::from(0.25_f32)], f32::NAN));
    }

    /// A sum that nearly cancels is 0 in another order, and a quotient by it is infinite.
    #[test]
    fn what_nearly_cancels_may_be_nothing_to_divide_by() {
        let text = "fn f(x0: f64[], x1: f64[], x2: f64[]) -> f64[] {\n  x3: f64[] = add x0 x1\n  x4: f64[] = sub x3 x2\n  x5: f64[] = div 1.0:f64[] x4\n  return x5\n}\n";
        let of = |last: f64| [Array::from(0.1_f64), Array::from(0.2_f64), Array::from(last)];
        let p: Program = text.parse().unwrap();
        let want = interpret(&p, &of(0.3)).unwrap()[0].item::<f64>().unwrap();
        assert!(want.is_finite() && want != 0.0, "{want}");
        assert!(explained(text, &of(0.3), f64::INFINITY));
        assert!(explained(text, &of(0.3), f64::NEG_INFINITY));
        // A sum far from 0 is never 0.
        assert!(!explained(text, &of(0.4), f64::INFINITY));
    }

    /// Several sums that leave the range, each to any side: their product may be anything that is not finite.
    #[test]
    fn several_that_leave_the_range_leave_it_each_their_own_way() {
        let text = "fn f(x0: f32[2,4]) -> f32[] {\n  x1: f32[2] = reduce_sum{axes=[1]} x0\n  x2: f32[] = reduce_prod{axes=[0]} x1\n  return x2\n}\n";
        let (m, row) = (f32::MAX, f32::MAX / 2.0);
        let inputs = [Array::from([[m, row, -m, -row], [m, m, -m, -row]])];
        for have in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            assert!(explained(text, &inputs, have), "{have}");
        }
        assert!(!explained(text, &[Array::from([[1.0_f32, 2.0, 3.5, 4.0]; 2])], f32::INFINITY));
    }

    /// The halves of a symmetric matrix are equal in most right runs: then what is found in one is found in the other.
    #[test]
    fn what_is_equal_may_stay_equal() {
        let text = "fn f(x0: f64[3,3]) -> f64[3,3] {\n  x1: f64[3,3] = dot_general{lhs_contract=[1], rhs_contract=[1], lhs_batch=[], rhs_batch=[]} x0 x0\n  return x1\n}\n";
        let program: Program = text.parse().unwrap();
        let x = Array::from([[0.3_f64, -0.7, 1.1], [-0.9, 0.6, -0.8], [0.2, 0.5, 0.4]]);
        let plain = interpret(&program, &[x.clone()]).unwrap()[0].to_vec::<f64>().unwrap();
        for kind in [Kind::Each, Kind::Alike] {
            let noise = Noise { kind, ..Noise::new(Freedom::Products, 5) };
            let (moved, _) = within(noise, || interpret(&program, &[x.clone()]));
            let y = moved.unwrap()[0].to_vec::<f64>().unwrap();
            assert_ne!(y, plain);
            assert_eq!([y[1], y[2], y[5]] == [y[3], y[6], y[7]], kind == Kind::Alike, "{y:?}");
        }
    }

    /// `(x + s) - s` is x but where the last places of s are half of one of x's: one sum in some hundred, and what that leaves of `- x` is not 0.
    #[test]
    fn what_rounding_does_rarely_is_rounding() {
        let text = "fn f(x0: f64[3], x1: f64[3], x2: f64[]) -> f64[] {\n  x3: f64[] = dot_general{lhs_contract=[0], rhs_contract=[0], lhs_batch=[], rhs_batch=[]} x0 x1\n  x4: f64[] = add x2 x3\n  x5: f64[] = sub x4 x3\n  x6: f64[] = sub x5 x2\n  return x6\n}\n";
        let program: Program = text.parse().unwrap();
        let inputs = [Array::from([0.3_f64, -0.7, 1.1]), Array::from([0.2_f64, 0.3, 0.144]), Array::from(1.3_f64)];
        assert_eq!(interpret(&program, &inputs).unwrap()[0].item::<f64>().unwrap(), 0.0);
        assert!(products_explain(&program, &inputs, f64::EPSILON));
        assert!(!products_explain(&program, &inputs, 64.0 * f64::EPSILON));
    }

    fn products_explain(program: &Program, inputs: &[Array], have: f64) -> bool {
        let want = interpret(program, inputs).unwrap();
        let differs =
            |a: &Array, b: &Array| differing(a.concrete().unwrap(), b.concrete().unwrap(), Scale::Each, false);
        let have = Array::from(have);
        unexplained(program, (inputs, &[]), (&[&have], &[&want[0]]), Freedom::Products, &differs).is_empty()
    }

    /// Sums that are nothing in most orders: which of them is the largest is anyone's.
    #[test]
    fn a_few_sums_of_many_that_cancel_may_be_all_there_is() {
        let text = "fn f(x0: f64[40,3], x1: f64[40]) -> f64[40] {\n  x2: f64[40] = reduce_sum{axes=[1]} x0\n  x3: f64[40] = mul x2 x1\n  x4: f64[] = reduce_max{axes=[0]} x3\n  x5: f64[40] = broadcast{shape=[40], axes=[]} x4\n  x6: bool[40] = compare{direction=eq} x3 x5\n  x7: f64[40] = convert{dtype=f64} x6\n  return x7\n}\n";
        let rows = Array::from_vec([0.1, 0.2, -0.3_f64].repeat(40), [40, 3]);
        let mut weights = vec![1.0; 40];
        weights[7] = 0.05;
        let mut largest = vec![0.0; 40];
        largest[7] = 1.0;
        assert!(explained(
            text,
            &[rows, Array::from_vec(weights.clone(), [40])],
            Array::from_vec(largest.clone(), [40])
        ));
        // Sums that are no rounding have their order.
        let rows = Array::from_vec([0.1, 0.2, 0.3_f64].repeat(40), [40, 3]);
        assert!(!explained(text, &[rows, Array::from_vec(weights, [40])], Array::from_vec(largest, [40])));
    }

    /// Of what cancels any size may be left: a function may be large for a few of them.
    #[test]
    fn what_is_left_of_large_numbers_may_be_small() {
        let text = "fn f(x0: f64[6]) -> f64[] {\n  x1: f64[] = reduce_sum{axes=[0]} x0\n  x2: f64[] = mul x1 x1\n  x3: f64[] = add x2 1.0:f64[]\n  x4: f64[] = div x1 x3\n  return x4\n}\n";
        let large = 2.0_f64.powi(63);
        assert!(explained(text, &[Array::from([1.0, large, 0.5, 0.0, -large, 1.0])], 0.0_f64));
        assert!(explained(text, &[Array::from([1.0, large, 0.5, 0.0, -large, 0.0])], 0.5_f64));
        assert!(!explained(text, &[Array::from([1.0, 7.0, 0.5, 0.0, -7.0, 1.0])], 0.0_f64));
    }

    /// Many sums that leave the range meet in one number: noise finds it NaN and infinite, and hardly ever with the sign that it has.
    #[test]
    fn what_is_nan_or_infinite_by_the_order_may_be_either() {
        let text = "fn f(x0: f32[60,4]) -> f32[] {\n  x1: f32[60] = reduce_sum{axes=[1]} x0\n  x2: f32[] = reduce_max{axes=[0]} x1\n  x3: f32[] = reduce_min{axes=[0]} x1\n  x4: f32[] = mul x2 x3\n  return x4\n}\n";
        let (m, part) = (f32::MAX, f32::MAX / 2.0);
        let rows = |row: [f32; 4]| Array::from_vec(row.repeat(60), [60, 4]);
        for have in [f32::NEG_INFINITY, f32::INFINITY, f32::NAN] {
            assert!(explained(text, &[rows([m, part, -m, -part])], have), "{have}");
        }
        assert!(!explained(text, &[rows([1.0, 2.0, -2.5, 0.75])], f32::NEG_INFINITY));
    }

    /// A third of three is 1 by rounding; contracted into a sum it is not quite.
    #[test]
    fn a_product_that_is_whole_by_rounding_is_not_when_it_is_contracted() {
        let text = "fn f(x0: f64[], x1: f64[]) -> f64[] {\n  x2: f64[] = div 1.0:f64[] x0\n  x3: f64[] = mul x2 x0\n  x4: f64[] = sub x1 x3\n  return x4\n}\n";
        let inputs = [Array::from(3.0_f64), Array::from(1.0_f64)];
        let contracted = (-1.0_f64 / 3.0).mul_add(3.0, 1.0);
        assert!(contracted != 0.0 && explained(text, &inputs, contracted));
        assert!(!explained(text, &inputs, 1e-9_f64));
    }

    /// Only what a scatter adds to has a rounding of its own: the rest is still what it was.
    #[test]
    fn what_a_scatter_does_not_add_to_stays_as_it_is() {
        for kind in ["set", "add"] {
            let text = format!(
                "fn f(x0: f64[4], x1: f64[4]) -> f64[4] {{\n  x2: f64[4] = sub x0 x1\n  x3: f64[4] = scatter{{kind={kind}, update_window_dims=[], inserted_dims=[0], operand_batch_dims=[], index_batch_dims=[], index_map=[0], unique=false}} x2 2:i64[1] 1.0:f64[]\n  x4: bool[4] = compare{{direction=eq}} x3 x2\n  x5: f64[4] = select x4 x2 7.0:f64[4]\n  return x5\n}}\n"
            );
            let inputs = [Array::from([0.3_f64, 0.5, 0.7, 0.9]), Array::from([0.3_f64, 0.5, 0.7, 0.9])];
            assert!(explained(&text, &inputs, [5.6e-17_f64, 0.0, 7.0, 0.0]), "{kind}");
            assert!(!explained(&text, &inputs, [7.0_f64, 0.0, 7.0, 0.0]), "{kind}");
        }
    }

    #[test]
    fn a_jump_goes_both_ways_only_near_its_edge() {
        let text =
            "fn f(x0: f64[], x1: f64[]) -> f64[] {\n  x2: f64[] = add x0 x1\n  x3: f64[] = floor x2\n  return x3\n}\n";
        let near = [Array::from(0.1_f64), Array::from(0.9_f64)];
        assert!(explained(text, &near, 0.0_f64));
        assert!(!explained(text, &near, 3.0e3_f64));
        let far = [Array::from(0.1_f64), Array::from(0.5_f64)];
        assert!(!explained(text, &far, 1.0_f64));
        // Sums of whole numbers are exact, and functions that are no sums have the same bits everywhere.
        let whole = [Array::from(1.0_f64), Array::from(2.0_f64)];
        assert!(!explained(text, &whole, 2.0_f64));
        let text =
            "fn f(x0: f64[], x1: f64[]) -> f64[] {\n  x2: f64[] = mul x0 x1\n  x3: f64[] = floor x2\n  return x3\n}\n";
        assert!(!explained(text, &[Array::from(0.5_f64), Array::from(2.0_f64)], 0.0_f64));
    }

    #[test]
    fn a_product_of_whole_numbers_may_leave_the_range_on_the_way() {
        let text = "fn f(x0: f32[4]) -> f32[] {\n  x1: f32[] = reduce_prod{axes=[0]} x0\n  return x1\n}\n";
        // From the first to the last an infinity meets the 0.
        let large = f32::MAX.sqrt() * 2.0;
        assert!(explained(text, &[Array::from([0.0_f32, large, large, 3.0])], f32::NAN));
        assert!(explained(text, &[Array::from([large, large, 0.0_f32, 3.0])], 0.0_f32));
        assert!(!explained(text, &[Array::from([0.0_f32, 2.0, 2.0, 3.0])], f32::NAN));
        assert!(!explained(text, &[Array::from([1.0_f32, 2.0, 2.0, 3.0])], 13.0_f32));
    }

    #[test]
    fn noise_does_not_make_a_loop_endless() {
        let text = "fn f(x0: f64[]) -> f64[] {\n  x1: f64[] = while{condition=fn c(x0: f64[]) -> bool[] {\n    x1: bool[] = compare{direction=ne} x0 0.75:f64[]\n    return x1\n  }, body=fn b(x0: f64[]) -> f64[] {\n    x1: f64[] = add x0 0.25:f64[]\n    return x1\n  }, consts=0, limit=[], checkpoints=2} x0\n  return x1\n}\n";
        let parsed: std::result::Result<Program, _> = text.parse();
        assert!(parsed.is_ok(), "{parsed:?}");
        assert!(!explained(text, &[Array::from(0.0_f64)], 1.0_f64));
    }
}

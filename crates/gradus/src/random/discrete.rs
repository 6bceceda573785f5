//! Draws from what is there: categories, permutations, elements of arrays.

use gradus_core::{Array, DType, Dim, Error, ErrorKind, IntoShape, Result, Scalar, Shape};

use super::basic::{draw_bits, split_keys, standard_gumbel, unit, whole_below};
use super::formulas::log;
use super::{Key, drawing, want_float};
use crate::control::while_loop;

/// Numbers of categories, drawn with the probabilities `softmax(logits)` along an axis. One draw for each of the other axes, or
/// an array of them: the result has the shape of the draws, then that of the logits without the axis.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let logits = Array::from([[0.0_f32, 9.0, 0.0], [9.0, 0.0, 0.0]]);
/// assert_eq!(random::categorical(Key::new(1), &logits, -1, ()).to_vec::<i64>()?, [1, 0]);
/// assert_eq!(random::categorical(Key::new(1), &logits, -1, [100]).shape(), [100, 2]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn categorical(key: Key, logits: &Array, axis: isize, draws: impl IntoShape) -> Array {
    let draws = draws.into_shape();
    drawing(key, |key| {
        let ty = logits.ty()?;
        want_float("logits of `categorical`", ty.dtype()).map_err(|e| e.help("cast the logits to a float"))?;
        let axis = front_axis(axis, logits)?;
        let shape: Shape = draws.iter().chain(ty.shape().iter()).cloned().collect();
        // The largest of logits with Gumbel noise is a category with the wanted probability.
        let noise = standard_gumbel(key, &shape, ty.dtype())?;
        (noise + logits).argmax_axis((draws.rank() + axis) as isize).ok()
    })
}

/// An axis from the front.
fn front_axis(axis: isize, x: &Array) -> Result<usize> {
    let rank = x.ty()?.rank();
    let from_front = if axis < 0 { axis.checked_add_unsigned(rank) } else { Some(axis) };
    from_front
        .and_then(|a| usize::try_from(a).ok())
        .filter(|a| *a < rank)
        .ok_or_else(|| Error::new(ErrorKind::Axis, format!("axis {axis} of {}, which has {rank}", x.shape())))
}

/// The numbers 0 to n-1 in random order; n may be symbolic.
#[track_caller]
pub fn permutation(key: Key, n: impl Into<Dim>) -> Array {
    let n = n.into();
    drawing(key, |key| shuffled_places(key, &n))
}

fn shuffled_places(key: &Array, n: &Dim) -> Result<Array> {
    let shape: Shape = [n.clone()].into_iter().collect();
    sorted_rounds(key, Array::iota(DType::I64, shape, 0), 0)
}

/// An array with its slices along an axis in random order.
#[track_caller]
pub fn shuffle(key: Key, x: &Array, axis: isize) -> Array {
    drawing(key, |key| {
        let axis = front_axis(axis, x)?;
        let places = shuffled_places(key, &x.shape()[axis])?;
        x.take(&places, axis as isize).ok()
    })
}

/// An array with the elements along an axis in random order, each row in its own.
#[track_caller]
pub fn shuffle_independent(key: Key, x: &Array, axis: isize) -> Array {
    drawing(key, |key| {
        let axis = front_axis(axis, x)?;
        sorted_rounds(key, x.clone(), axis)
    })
}

/// Sorts by random bits, again and again: two elements with equal bits keep their order, so rounds are added until a pair that is
/// equal in all of them is less likely than 1 in n. Every round takes a part of the key.
fn sorted_rounds(key: &Array, x: Array, axis: usize) -> Result<Array> {
    // Rounds r suffice for n elements if n³ <= (2^32 - 1)^r.
    const MOST: [u64; 4] = [1, 1625, 2_642_245, u32::MAX as u64];
    fn round(key: &Array, x: &Array, axis: usize) -> Result<(Array, Array)> {
        let [key, part] = split_keys::<2>(key)?;
        let bits = draw_bits(&part, x.shape(), DType::U32)?;
        let (_, mut sorted) = Array::sort_by_keys([&bits], [x], axis as isize);
        Ok((key, sorted.pop().ok_or_else(|| Error::new(ErrorKind::Rule, "a sort without results"))?))
    }
    let size = x.size();
    if let Some(n) = size.as_usize() {
        let rounds = MOST.iter().filter(|most| n as u64 > **most).count();
        let mut state = (key.clone(), x);
        for _ in 0..rounds {
            state = round(&state.0, &state.1, axis)?;
        }
        return Ok(state.1);
    }
    // A symbolic number of elements has its rounds counted when the program runs.
    let n = Array::from_dim(&size, DType::I64);
    let rounds = MOST.iter().fold(Array::from(0_i64), |sum, most| sum + n.gt(*most as i64).cast(DType::I64));
    let state = while_loop(
        |(left, _, _): &(Array, Array, Array)| left.gt(0_i64),
        |(left, key, x)| match round(key, x, axis) {
            Ok((key, x)) => (left - 1_i64, key, x),
            Err(e) => (left.clone(), e.clone().into(), e.into()),
        },
        (rounds, key.clone(), x),
    );
    state.2.ok()
}

/// How elements are chosen. Its last method chooses.
#[derive(Clone, Debug)]
#[must_use = "options do nothing until `choice` is called on them"]
pub struct ChoiceOptions {
    axis: isize,
    replace: bool,
    probabilities: Option<Array>,
}

impl Default for ChoiceOptions {
    fn default() -> ChoiceOptions {
        ChoiceOptions { axis: 0, replace: true, probabilities: None }
    }
}

impl ChoiceOptions {
    /// What [`choice`] does: along the first axis, with putting back, each as likely as any other.
    pub fn new() -> ChoiceOptions {
        ChoiceOptions::default()
    }

    /// The axis of the array that is chosen along.
    pub fn axis(self, axis: isize) -> ChoiceOptions {
        ChoiceOptions { axis, ..self }
    }

    /// No element is chosen twice.
    pub fn without_replacement(self) -> ChoiceOptions {
        ChoiceOptions { replace: false, ..self }
    }

    /// The probability of each element along the axis. They are taken relative to their sum.
    pub fn probabilities(self, p: &Array) -> ChoiceOptions {
        ChoiceOptions { probabilities: Some(p.clone()), ..self }
    }

    /// [Chooses](choice()) in this way.
    #[track_caller]
    pub fn choice(&self, key: Key, x: &Array, shape: impl IntoShape) -> Array {
        let shape = shape.into_shape();
        drawing(key, |key| {
            let axis = front_axis(self.axis, x)?;
            let n = &x.shape()[axis];
            let places = match &self.probabilities {
                None if self.replace => whole_below(key, &shape, n)?,
                None => first_of(&shuffled_places(key, n)?, n, &shape)?,
                Some(p) => weighted(key, p, n, self.replace, &shape)?,
            };
            x.take(&places, axis as isize).ok()
        })
    }
}

/// Elements of an array along its first axis, each as likely as any other; [`ChoiceOptions`] choose otherwise.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let faces = Array::from([1, 2, 3, 4, 5, 6]);
/// assert_eq!(random::choice(Key::new(3), &faces, [2, 5]).shape(), [2, 5]);
/// let hand = random::ChoiceOptions::new().without_replacement().choice(Key::new(3), &faces, [6]);
/// assert_eq!(hand.sort(0).to_vec::<i32>()?, [1, 2, 3, 4, 5, 6]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn choice(key: Key, x: &Array, shape: impl IntoShape) -> Array {
    ChoiceOptions::new().choice(key, x, shape)
}

/// How many elements a draw without putting back has, which must be known and not more than there are.
fn drawn_of(n: &Dim, shape: &Shape) -> Result<usize> {
    let Some(wanted) = shape.count() else {
        return Err(Error::new(
            ErrorKind::NotConcrete,
            format!("how many are drawn without putting back is not known: {shape}"),
        )
        .help("give a shape of numbers"));
    };
    match n.as_usize() {
        Some(n) if n < wanted => Err(Error::new(
            ErrorKind::Value,
            format!("{wanted} elements cannot be drawn from {n} without putting back"),
        )),
        _ => Ok(wanted),
    }
}

/// The first elements of a list, in a shape.
fn first_of(places: &Array, n: &Dim, shape: &Shape) -> Result<Array> {
    places.index(0..drawn_of(n, shape)? as i64).reshape(shape).ok()
}

fn weighted(key: &Array, p: &Array, n: &Dim, replace: bool, shape: &Shape) -> Result<Array> {
    let ty = p.ty()?;
    want_float("probabilities of `choice`", ty.dtype()).map_err(|e| e.help("cast the probabilities to a float"))?;
    if ty.rank() != 1 || ty.shape()[0].equals(n) == gradus_core::Decision::No {
        let message = format!("there is one probability for each of {n} elements, not {ty}");
        return Err(Error::new(ErrorKind::Shape, message));
    }
    if !replace {
        // The largest of logarithms with Gumbel noise are a draw without putting back.
        let noisy = standard_gumbel(key, ty.shape(), ty.dtype())? + log(p)?;
        let (_, places) = noisy.top_k(drawn_of(n, shape)?);
        return places.reshape(shape).ok();
    }
    let sums = p.cumsum(0);
    let total = sums.index(-1);
    let at = (unit(key, shape, ty.dtype())? * -1.0_f64 + Scalar::one(ty.dtype())) * total;
    sums.searchsorted(&at).ok()
}

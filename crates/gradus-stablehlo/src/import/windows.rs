//! Windows: reductions of them, and what is scattered back to the element that each chose.

use gradus_core::control::{Steps, scan};
use gradus_core::error::Result;
use gradus_core::primitives::Op;
use gradus_core::primitives::cumulative::{CumMax, CumMin, CumProd, CumSum};
use gradus_core::primitives::reduce_window::{ReduceWindow, WindowKind};
use gradus_core::primitives::shaping::{Pad, Slice};
use gradus_core::primitives::windows::Windows;
use gradus_core::trace::{Traced, bind, trace_as_written};
use gradus_core::{Array, DType, Dim, Scalar, Shape};

use super::elementwise::{convert, spread, whole};
use super::reduce::{combine, is_all, neutral, reduce_by};
use super::regions::{Known, front, on_elements};
use super::scatter::{Combining, scattered};
use super::shaping::{iota, reshape};
use super::{Answer, On, many, one};

/// Windows of an operand, by the attributes that all such operations have.
#[derive(Clone)]
pub(super) struct Frame {
    pub(super) sizes: Vec<usize>,
    pub(super) strides: Vec<usize>,
    pub(super) low: Vec<Dim>,
    pub(super) high: Vec<Dim>,
    pub(super) base: Vec<usize>,
    pub(super) dilations: Vec<usize>,
}

impl Frame {
    /// The operand with a number around it and between its elements.
    pub(super) fn padded(&self, x: &Array, value: &Array) -> Array {
        let interior: Vec<usize> = self.base.iter().map(|d| d.saturating_sub(1)).collect();
        let zero = |d: &Dim| d.constant() == Some(0);
        if self.low.iter().chain(&self.high).all(zero) && interior.iter().all(|i| *i == 0) {
            return x.clone();
        }
        let pad = Pad { low: self.low.clone(), high: self.high.clone(), interior };
        bind(Op::new(pad), &[x.clone(), value.clone()])
    }

    /// The windows of a padded operand; the elements of a window are along the last axes.
    fn windows(&self, padded: &Array) -> Array {
        let op = Windows {
            axes: (0..self.sizes.len()).collect(),
            sizes: self.sizes.iter().map(|s| Dim::from(*s)).collect(),
            strides: self.strides.clone(),
            dilations: self.dilations.clone(),
        };
        bind(Op::new(op), std::slice::from_ref(padded))
    }

    /// For each place in a window, in row-major order, the element there of every window.
    pub(super) fn elements(&self, padded: &Array) -> Vec<Array> {
        let rank = self.sizes.len();
        let counts: Vec<Dim> = (0..rank)
            .map(|a| {
                let reach = Dim::from(self.sizes[a].saturating_sub(1) * self.dilations[a]); // invariant: a number for each axis
                (padded.dim(a as isize) - reach - 1usize).floor_div(&Dim::from(self.strides[a])) + 1usize // invariant: as above
            })
            .collect();
        let total: usize = self.sizes.iter().product();
        let at = |mut place: usize| {
            let mut start = vec![Dim::from(0usize); rank];
            for a in (0..rank).rev() {
                start[a] = Dim::from(place % self.sizes[a] * self.dilations[a]); // invariant: as above
                place /= self.sizes[a].max(1); // invariant: as above
            }
            let stop = |(a, first): (usize, &Dim)| first + (&counts[a] - 1usize) * Dim::from(self.strides[a]) + 1usize; // invariant: as above
            let limit = start.iter().enumerate().map(stop).collect();
            bind(Op::new(Slice { start, limit, step: self.strides.clone() }), std::slice::from_ref(padded))
        };
        (0..total).map(at).collect()
    }

    /// The axis along which a window over everything before or behind it runs, and whether it is behind.
    fn running(&self, x: &Array) -> Option<(usize, bool)> {
        let plain = |v: &[usize]| v.iter().all(|n| *n == 1);
        if !plain(&self.strides) || !plain(&self.base) || !plain(&self.dilations) {
            return None;
        }
        let mut long = (0..self.sizes.len()).filter(|a| self.sizes[*a] != 1); // invariant: a size for each axis
        let (Some(axis), None) = (long.next(), long.next()) else { return None };
        let others = (0..self.sizes.len()).filter(|a| *a != axis);
        let (low, high) = (&self.low, &self.high);
        let zero = |d: &Dim| d.constant() == Some(0);
        if !others.into_iter().all(|a| zero(&low[a]) && zero(&high[a])) {
            return None;
        }
        let n = x.dim(axis as isize).constant()?;
        let whole = usize::try_from(n).ok() == self.sizes.get(axis).copied();
        match (low[axis].constant()?, high[axis].constant()?) {
            (l, 0) if whole && l == n - 1 => Some((axis, false)),
            (0, h) if whole && h == n - 1 => Some((axis, true)),
            _ => None,
        }
    }
}

/// Windows of at most so many elements are written out element by element.
const WRITTEN_OUT: usize = 16;

/// Sums or products of windows, the elements of each in row-major order.
fn in_order(known: Known, x: &Array, frame: &Frame) -> Option<Array> {
    let padded = frame.padded(x, &Array::scalar(neutral(known, x.dtype())?));
    frame.elements(&padded).into_iter().reduce(|all, part| combine(known, &all, &part))
}

/// A known reduction of windows that are padded with what changes nothing.
fn known_windows(known: Known, x: &Array, frame: &Frame) -> Option<Array> {
    // Bools are ordered as their numbers are.
    if x.dtype() == DType::Bool {
        let kind = match known {
            Known::And => Known::Min,
            Known::Or => Known::Max,
            _ => return None,
        };
        return known_windows(kind, &convert(x, DType::U8), frame).map(|y| convert(&y, DType::Bool));
    }
    let kind = match known {
        Known::Sum => WindowKind::Sum,
        Known::Prod => WindowKind::Prod,
        Known::Max if !x.dtype().is_complex() => WindowKind::Max,
        Known::Min if !x.dtype().is_complex() => WindowKind::Min,
        _ => return None,
    };
    if let Some((axis, reverse)) = frame.running(x) {
        // Sums of halves are rounded at every step, as the text says.
        if matches!(x.dtype(), DType::F16 | DType::BF16) && matches!(kind, WindowKind::Sum | WindowKind::Prod) {
            return None;
        }
        let op = match kind {
            WindowKind::Sum => Op::new(CumSum { axis, reverse }),
            WindowKind::Prod => Op::new(CumProd { axis, reverse }),
            WindowKind::Max => Op::new(CumMax { axis, reverse }),
            WindowKind::Min => Op::new(CumMin { axis, reverse }),
        };
        return Some(bind(op, std::slice::from_ref(x)));
    }
    // Few terms are added in the order of the text, so that a short sum has the digits that it has elsewhere.
    let terms = frame.sizes.iter().try_fold(1usize, |n, s| n.checked_mul(*s));
    let rounds = x.dtype().is_inexact() && matches!(kind, WindowKind::Sum | WindowKind::Prod);
    if rounds && terms.is_some_and(|n| n <= WRITTEN_OUT) {
        return in_order(known, x, frame);
    }
    let op = ReduceWindow {
        kind,
        sizes: frame.sizes.iter().map(|s| Dim::from(*s)).collect(),
        strides: frame.strides.clone(),
        low: frame.low.clone(),
        high: frame.high.clone(),
        base_dilation: frame.base.clone(),
        window_dilation: frame.dilations.clone(),
    };
    Some(bind(Op::new(op), std::slice::from_ref(x)))
}

impl On<'_, '_> {
    pub(super) fn windowed(&mut self, name: &str) -> Answer {
        match name {
            "reduce_window" => self.reduce_window(),
            "select_and_scatter" => self.select_and_scatter(),
            _ => Ok(None),
        }
    }

    fn frame(&self, rank: usize) -> Result<Frame> {
        let (low, high) = self.padding(rank)?;
        Ok(Frame {
            sizes: self.counts_or("window_dimensions", rank, 1)?,
            strides: self.counts_or("window_strides", rank, 1)?,
            low,
            high,
            base: self.counts_or("base_dilations", rank, 1)?,
            dilations: self.counts_or("window_dilations", rank, 1)?,
        })
    }

    fn reduce_window(&mut self) -> Answer {
        let body = self.traced_as_said(0)?;
        let operands = self.xs()?;
        let (xs, inits) = operands.split_at(operands.len() / 2);
        let inits = self.as_inputs(&body, 0, inits)?;
        let xs = self.as_inputs(&body, inits.len(), xs)?;
        let rank = xs.first().map_or(0, Array::rank);
        let frame = self.frame(rank)?;
        // Where no window fits there is no result.
        if self.result(0)?.dims.contains(&Some(0)) {
            let shape = self.result_shape()?;
            return many(inits.iter().map(|i| spread(i, &shape)));
        }
        many(reduced_windows(&body, &xs, &inits, &frame)?)
    }

    fn select_and_scatter(&mut self) -> Answer {
        let (x, source, init) = (self.x(0)?, self.x(1)?, self.x(2)?);
        let (select, scatter) = (self.traced_as_said(0)?, self.traced_as_said(1)?);
        let frame = self.frame(x.rank())?;
        let chosen = chosen_places(&select, &x, &frame)?;
        // The specification combines each number with the initial one first.
        let source = convert(&source, init.dtype());
        let init_is_neutral =
            Known::of(&scatter).and_then(|k| neutral(k, init.dtype())).is_some_and(|n| is_all(&init, n));
        let source = if init_is_neutral {
            source
        } else {
            let all = [spread(&init, source.shape()), source.clone()];
            on_elements(&scatter, &all, source.shape())?.swap_remove(0)
        };
        let count = x.shape().size();
        let line = spread(&init, &[count].into_iter().collect());
        let combining = Combining { body: &scatter, swapped: true };
        let made = scattered(
            combining,
            &line,
            &reshape(&chosen, vec![source.shape().size()]),
            &reshape(&source, vec![source.shape().size()]),
        )?;
        one(reshape(&made, x.shape().clone()))
    }
}

/// The row-major place in the operand that each window's region chooses; places outside of the operand are never chosen.
fn chosen_places(select: &Traced, x: &Array, frame: &Frame) -> Result<Array> {
    let count: Shape = [x.shape().size()].into_iter().collect();
    let numbers = reshape(&iota(DType::I64, count, 0), x.shape().clone());
    let outside = Array::scalar(Scalar::I64(-1));
    let zero = Array::scalar(Scalar::zero(x.dtype()));
    let axes: Vec<usize> = (x.rank()..2 * x.rank()).collect();
    let values = front(&frame.windows(&frame.padded(x, &zero)), &axes);
    let places = front(&frame.windows(&frame.padded(&numbers, &outside)), &axes);
    let shape = values.shape().without(|a| a == 0);
    let start = [Array::full_scalar(shape.clone(), Scalar::zero(x.dtype())), Array::full(shape.clone(), -1i64)];
    let inputs = start.iter().chain([&values, &places]);
    let specs = inputs.map(|a| Ok(Array::of_type(a.ty()?.with_shape(shape.clone())))).collect::<Result<Vec<_>>>()?;
    let step = trace_as_written("choose", &specs, |xs| {
        let [best, at, value, place] = xs else { return Ok(Vec::new()) };
        let kept = on_elements(select, &[best.clone(), value.clone()], &shape)?.swap_remove(0);
        let inside = place.ge(whole(place, 0));
        let taken = inside & (at.lt(whole(at, 0)) | !kept);
        Ok(vec![taken.select(value, best), taken.select(place, at)])
    })?;
    let found = scan(&step, &start, &[values.clone(), places], &values.dim(0), false, 1, Steps::Keep)?;
    found.into_iter().nth(1).unwrap_or(outside).ok()
}

/// Whether initial numbers, combined with themselves, stay as they are: then padding with them changes nothing.
fn is_own_sum(body: &Traced, inits: &[Array]) -> Result<bool> {
    if !body.captures.is_empty() || inits.iter().any(|i| i.concrete().is_none()) {
        return Ok(false);
    }
    let twice = gradus_core::interpret(&body.program, &[inits, inits].concat())?;
    Ok(twice.iter().zip(inits).all(|(a, b)| a.is_identical(b)))
}

/// Windows over all that stands before an element, or behind it: one step for each element.
fn running(body: &Traced, xs: &[Array], inits: &[Array], axis: usize, reverse: bool) -> Result<Vec<Array>> {
    let sequences: Vec<Array> = xs.iter().map(|x| x.move_axis(axis as isize, 0)).collect();
    let Some(first) = sequences.first() else { return Ok(Vec::new()) };
    let shape = first.shape().without(|a| a == 0);
    let carries: Vec<Array> = inits.iter().map(|i| spread(i, &shape)).collect();
    let types = carries.iter().chain(&sequences).map(|a| a.ty().map(|t| t.with_shape(shape.clone())));
    let specs = types.map(|t| t.map(Array::of_type)).collect::<Result<Vec<_>>>()?;
    let step = trace_as_written("running", &specs, |all| {
        let next = on_elements(body, all, &shape)?;
        Ok([next.clone(), next].concat())
    })?;
    let made = scan(&step, &carries, &sequences, &first.dim(0), reverse, 1, Steps::Keep)?;
    made.iter().skip(carries.len()).map(|y| y.move_axis(0, axis as isize).ok()).collect()
}

/// Every window reduced by a region.
pub(super) fn reduced_windows(body: &Traced, xs: &[Array], inits: &[Array], frame: &Frame) -> Result<Vec<Array>> {
    let known = if xs.len() == 1 { Known::of(body) } else { None };
    if let (Some(known), [x], [init]) = (known, xs, inits) {
        let pads_with_init = neutral(known, x.dtype()).is_some_and(|n| is_all(init, n));
        let nothing = vec![Dim::from(0usize); frame.low.len()];
        let still = Frame { low: nothing.clone(), high: nothing, base: vec![1; frame.base.len()], ..frame.clone() };
        let (x, frame) = if pads_with_init { (x.clone(), frame) } else { (frame.padded(x, init), &still) };
        if let Some(all) = known_windows(known, &x, frame) {
            let with_init = |all: Array| combine(known, &spread(init, all.shape()), &all);
            return Ok(vec![if pads_with_init { all } else { with_init(all) }.ok()?]);
        }
    }
    if let Some((axis, reverse)) = xs.first().and_then(|x| frame.running(x))
        && is_own_sum(body, inits)?
    {
        return running(body, xs, inits, axis, reverse);
    }
    let rank = frame.sizes.len();
    let windows: Vec<Array> = xs.iter().zip(inits).map(|(x, i)| frame.windows(&frame.padded(x, i))).collect();
    let axes: Vec<usize> = (rank..2 * rank).collect();
    reduce_by(body, &windows, inits, &axes)
}

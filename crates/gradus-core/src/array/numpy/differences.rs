//! Differences, slopes, areas and lines between points along an axis.

use super::{at_caller, countable};
use crate::array::operand::{checked, resolve_axis};
use crate::array::shaping::common_dtype;
use crate::array::{Array, Operand};
use crate::error::{Result, fail};
use crate::types::{DType, Decision, Dim};

impl Array {
    /// Differences of neighbours along an axis, taken `n` times; the axis is shorter by `n`.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// assert_eq!(Array::from([1, 4, 9]).diff(1, 0).to_vec::<i32>().unwrap(), [3, 5]);
    /// ```
    #[track_caller]
    pub fn diff(&self, n: usize, axis: isize) -> Array {
        checked(self.try_diff(n, axis))
    }

    #[track_caller]
    fn try_diff(&self, n: usize, axis: isize) -> Result<Array> {
        let axis = resolve_axis(axis, self.ty()?.rank())?;
        // Once an axis is empty, it stays so.
        let rounds = self.dim(axis as isize).as_usize().map_or(n, |size| size.min(n));
        countable(rounds, "differences of differences")?;
        let mut x = self.clone();
        for _ in 0..rounds {
            let (before, after) = x.neighbours(axis)?;
            x = if x.dtype() == DType::Bool { after.ne(&before) } else { after - before }.ok()?;
        }
        Ok(x)
    }

    /// All elements but the last, and all but the first. Of an empty axis both are empty.
    #[track_caller]
    pub(super) fn neighbours(&self, axis: usize) -> Result<(Array, Array)> {
        let (zero, one) = (Dim::from(0usize), Dim::from(1usize));
        let n = self.dim(axis as isize);
        if n.equals(&zero) == Decision::Yes {
            return Ok((self.clone(), self.clone()));
        }
        Ok((self.slice_axis(axis, zero, &n - 1usize)?, self.slice_axis(axis, one, n)?))
    }

    /// Differences of neighbours of all elements in row-major order.
    #[track_caller]
    pub fn ediff1d(&self) -> Array {
        self.flatten().diff(1, 0)
    }

    /// Whole numbers and bools as floats, since what lies between two of them is none.
    #[track_caller]
    fn between_whole(&self, dtype: DType) -> Result<Array> {
        if self.ty()?.dtype().is_inexact() { Ok(self.clone()) } else { self.try_cast(dtype) }
    }

    /// The area under the elements along an axis, by trapezoids of width `dx`. Integers are taken as `f64`.
    #[doc(alias = "trapz")]
    #[track_caller]
    pub fn trapezoid(&self, dx: impl Operand, axis: isize) -> Array {
        let dx = dx.into_operand();
        let (before, after) = match self.between_whole(DType::F64).and_then(|y| y.axis_pair(axis)) {
            Ok(both) => both,
            Err(e) => return checked(Err(e)),
        };
        ((before + after) * 0.5_f64 * dx).sum_axes(axis)
    }

    /// The area under the elements along an axis, at the places `x`: a vector, or an array that broadcasts.
    #[track_caller]
    pub fn trapezoid_at(&self, x: &Array, axis: isize) -> Array {
        checked(self.try_trapezoid_at(x, axis))
    }

    #[track_caller]
    fn try_trapezoid_at(&self, x: &Array, axis: isize) -> Result<Array> {
        // With the axis in front of all others, moved last, a vector of places broadcasts.
        let y = self.between_whole(DType::F64)?.try_move_axis(axis, -1)?;
        // Differences of unsigned numbers would wrap.
        let x = x.between_whole(DType::F64)?;
        let x = if x.ty()?.rank() == self.rank() { x.try_move_axis(axis, -1)? } else { x.clone() };
        let ((y0, y1), (x0, x1)) = (y.axis_pair(-1)?, x.axis_pair(-1)?);
        ((y0 + y1) * (x1 - x0) * 0.5_f64).sum_axes(-1).ok()
    }

    #[track_caller]
    fn axis_pair(&self, axis: isize) -> Result<(Array, Array)> {
        self.neighbours(resolve_axis(axis, self.ty()?.rank())?)
    }

    /// The value at these places of the line through the points `(xp, fp)`, whose places increase. Beyond the ends it is that at the end. Integers are taken as `f64`,
    /// or as the floats among the other operands.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let (xp, fp) = (Array::from([0.0, 1.0, 2.0]), Array::from([0.0, 10.0, 0.0]));
    /// let y = Array::from([0.5, 1.75, 9.0]).interp(&xp, &fp);
    /// assert_eq!(y.to_vec::<f64>().unwrap(), [5.0, 2.5, 0.0]);
    /// ```
    #[track_caller]
    pub fn interp(&self, xp: &Array, fp: &Array) -> Array {
        checked(self.try_interp(xp, fp))
    }

    #[track_caller]
    fn try_interp(&self, xp: &Array, fp: &Array) -> Result<Array> {
        let (places, values) = (xp.ty()?, fp.ty()?);
        let ([n], [m]) = (places.shape().dims(), values.shape().dims()) else {
            fail!(Shape, "a line goes through places and values in two vectors, not in {places} and {values}");
        };
        if n.equals(m) == Decision::No {
            fail!(Shape, "a line goes through as many places as values, not through {places} and {values}");
        }
        if n.constant() == Some(0) {
            fail!(Shape, "a line through no points has no values");
        }
        let common = common_dtype(&[self.clone(), xp.clone(), fp.clone()]).ok();
        let float = common.filter(|c| c.is_inexact()).map_or(DType::F64, DType::real_part);
        let (x, xp, fp) = (&self.between_whole(float)?, &xp.between_whole(float)?, &fp.between_whole(float)?);
        let last = n - 1usize;
        let i = xp.searchsorted_right(x).clamp(1i64.min(last.constant().unwrap_or(1)), last);
        let before = &i - 1i64;
        let (x0, x1, f0, f1) = (xp.take(&before, 0), xp.take(&i, 0), fp.take(&before, 0), fp.take(&i, 0));
        let step = &x1 - &x0;
        let flat = step.eq(0i32);
        let along = (x - &x0) / flat.select(step.ones_like(), &step);
        let inside = flat.select(&f1, &f0 + along * (&f1 - &f0));
        let (first, end) = (xp.index(0), xp.index(-1));
        let y = x.lt(first).select(fp.index(0), inside);
        x.gt(end).select(fp.index(-1), y).ok()
    }

    /// Slopes along an axis with spacing 1: central differences inside, one-sided ones at both ends. Integers are taken as `f64`.
    #[track_caller]
    pub fn gradient(&self, axis: isize) -> Array {
        at_caller(|| self.try_gradient(axis))
    }

    #[track_caller]
    fn try_gradient(&self, axis: isize) -> Result<Array> {
        let axis = resolve_axis(axis, self.ty()?.rank())?;
        let n = self.dim(axis as isize);
        if n.at_least(&Dim::from(2usize)) == Decision::No {
            fail!(Shape, "slopes along axis {axis} of {} take two elements at least", self.ty()?);
        }
        let y = self.between_whole(DType::F64)?;
        let cut = |from: Dim, to: Dim| y.slice_axis(axis, from, to);
        let at = Dim::from;
        let first = (cut(at(1usize), at(2usize))? - cut(at(0usize), at(1usize))?).ok()?;
        let last = (cut(&n - 1usize, n.clone())? - cut(&n - 2usize, &n - 1usize)?).ok()?;
        let inside = ((cut(at(2usize), n.clone())? - cut(at(0usize), &n - 2usize)?) * 0.5_f64).ok()?;
        Array::concatenate([first, inside, last], axis as isize).ok()
    }

    /// Angles along an axis without jumps: where a step is larger than half a turn, whole turns are taken off what follows.
    #[doc(alias = "unwrap")]
    #[track_caller]
    pub fn unwrap_angles(&self, axis: isize) -> Array {
        checked(self.try_unwrap_angles(axis))
    }

    #[track_caller]
    fn try_unwrap_angles(&self, axis: isize) -> Result<Array> {
        use std::f64::consts::{PI, TAU};
        let axis = resolve_axis(axis, self.ty()?.rank())?;
        if self.dim(axis as isize).constant() == Some(0) {
            return Ok(self.clone());
        }
        let (before, after) = self.neighbours(axis)?;
        let step = after - before;
        let folded = (&step + PI).modulo(TAU) - PI;
        // A step of exactly half a turn keeps its direction.
        let folded = (folded.eq(-PI) & step.gt(0.0_f64)).select(folded.full_like(PI), &folded);
        let turn = step.abs().lt(PI).select(step.zeros_like(), folded - &step).stop_gradient();
        let zero = self.slice_axis(axis, Dim::from(0usize), Dim::from(1usize))?.zeros_like();
        (self + Array::concatenate([zero, turn.cumsum(axis as isize)], axis as isize)).ok()
    }
}

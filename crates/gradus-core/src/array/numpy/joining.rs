//! Arrays put together and taken apart: stacks of rows and columns, parts of unequal size, elements put in and left out, turns.

use super::{all_at_caller, at_caller, countable};
use crate::array::data::collected;
use crate::array::operand::{broadcast_shapes, resolve_axis};
use crate::array::shaping::{collect_arrays, value_as};
use crate::array::{Array, Operand};
use crate::error::{Result, error, fail};
use crate::types::{DType, Dim, IntoShape, Shape, Type};

/// Functions of lists of arrays, which are joined along an axis after each was given the axes it lacks.
macro_rules! stacks {
    ($($(#[$doc:meta])* $name:ident = |$x:ident| $axes:expr, along $axis:expr;)*) => {
        impl Array {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name<I>(arrays: I) -> Array
            where
                I: IntoIterator,
                I::Item: AsRef<Array>,
            {
                let arrays = collect_arrays(arrays);
                at_caller(|| {
                    let all: Vec<Array> = arrays?.iter().map(|$x| $axes).collect();
                    let axis: fn(usize) -> isize = $axis;
                    let rank = all.first().map_or(0, Array::rank);
                    Array::concatenate(&all, axis(rank)).ok()
                })
            }
        )*}
    };
}
stacks! {
    /// Arrays on top of each other, along the first axis; a vector is a row.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let x = Array::vstack([Array::from([1, 2]), Array::from([3, 4])]);
    /// assert_eq!(x.shape(), [2, 2]);
    /// ```
    #[doc(alias = "row_stack")]
    vstack = |x| x.atleast_2d(), along |_| 0;
    /// Arrays side by side, along the second axis; vectors along their only one.
    hstack = |x| x.atleast_1d(), along |rank| if rank == 1 { 0 } else { 1 };
    /// Arrays behind each other, along the third axis.
    dstack = |x| x.atleast_3d(), along |_| 2;
    /// Vectors as the columns of a matrix; matrices side by side.
    column_stack = |x| if x.rank() < 2 { x.reshape([-1, 1]) } else { x.clone() }, along |_| 1;
}

impl Array {
    /// A number as a vector of one; others as they are.
    #[track_caller]
    pub fn atleast_1d(&self) -> Array {
        if self.rank() == 0 { self.reshape([1]) } else { self.clone() }
    }

    /// A vector as a matrix of one row; others with two axes or more as they are.
    #[track_caller]
    pub fn atleast_2d(&self) -> Array {
        match self.rank() {
            0 => self.reshape([1, 1]),
            1 => self.expand_dims(0),
            _ => self.clone(),
        }
    }

    /// A vector of `n` with shape `[1, n, 1]`, a matrix with one more axis at its end.
    #[track_caller]
    pub fn atleast_3d(&self) -> Array {
        match self.rank() {
            0 => self.reshape([1, 1, 1]),
            1 => self.expand_dims([0, 2]),
            2 => self.expand_dims(2),
            _ => self.clone(),
        }
    }

    /// One array behind another along an axis.
    #[track_caller]
    pub fn append(&self, other: &Array, axis: isize) -> Array {
        Array::concatenate([self, other], axis)
    }

    /// Rows of blocks put together to one matrix; the blocks of a row have as many rows.
    #[track_caller]
    pub fn block<R, I>(rows: R) -> Array
    where
        R: IntoIterator<Item = I>,
        I: IntoIterator,
        I::Item: AsRef<Array>,
    {
        let rows: Vec<Result<Vec<Array>>> = rows.into_iter().map(collect_arrays).collect();
        at_caller(|| {
            let mut all = Vec::with_capacity(rows.len());
            for row in rows {
                let row: Vec<Array> = row?.iter().map(Array::atleast_2d).collect();
                all.push(Array::concatenate(&row, -1).ok()?);
            }
            Array::concatenate(&all, -2).ok()
        })
    }

    /// Cuts an axis into `parts` parts whose sizes differ by one at most; the larger ones come first.
    #[track_caller]
    pub fn array_split(&self, parts: usize, axis: isize) -> Vec<Array> {
        all_at_caller(carried(parts), || {
            let axis = resolve_axis(axis, self.ty()?.rank())?;
            let Some(n) = self.dim(axis as isize).as_usize() else {
                return Err(error!(NotConcrete, "axis {axis} of {} has no known size to be cut", self.ty()?)
                    .help("`split` cuts a symbolic axis into parts of equal size"));
            };
            if parts == 0 {
                fail!(Value, "an axis is cut into one part at least");
            }
            countable(parts, "parts of an axis")?;
            let mut places = Vec::with_capacity(parts);
            for i in 1..parts {
                places.push(i * (n / parts) + i.min(n % parts));
            }
            Ok(self.split_at(&places, axis as isize))
        })
    }

    /// The parts of an axis, which they do not have any more. Its size is known.
    #[track_caller]
    pub fn unstack(&self, axis: isize) -> Vec<Array> {
        let n = self.dim(axis).as_usize().unwrap_or(1);
        all_at_caller(carried(n), || {
            let at = resolve_axis(axis, self.ty()?.rank())?;
            if self.dim(at as isize).as_usize().is_none() {
                return Err(error!(NotConcrete, "axis {at} of {} has no known size", self.ty()?)
                    .help("`map` and `scan` go over an axis of any size"));
            }
            countable(n, "parts of an axis")?;
            let mut all = Vec::with_capacity(n);
            for i in 0..n {
                let part = self.slice_axis(at, Dim::from(i), Dim::from(i + 1))?;
                all.push(part.try_reshape(self.shape().without(|a| a == at))?);
            }
            Ok(all)
        })
    }

    /// Turned by quarters in the plane of two axes, from the first toward the second.
    #[track_caller]
    pub fn rot90(&self, quarters: isize, from: isize, to: isize) -> Array {
        match quarters.rem_euclid(4) {
            0 => self.clone(),
            1 => self.flip(to).swap_axes(from, to),
            2 => self.flip([from, to]),
            _ => self.flip(from).swap_axes(from, to),
        }
    }

    /// The columns of a matrix in reverse order.
    #[track_caller]
    pub fn fliplr(&self) -> Array {
        self.flip(1)
    }

    /// The rows in reverse order.
    #[track_caller]
    pub fn flipud(&self) -> Array {
        self.flip(0)
    }

    /// Another shape with as many elements as it takes: the elements again and again in row-major order.
    #[track_caller]
    pub fn resize(&self, shape: impl IntoShape) -> Array {
        let shape = shape.into_shape();
        at_caller(|| {
            let (have, want) = (self.ty()?.shape().count(), shape.count());
            let (Some(have), Some(want)) = (have, want) else {
                fail!(NotConcrete, "{} to {shape}: how often elements are repeated depends on the call", self.ty()?);
            };
            if have == 0 && want > 0 {
                fail!(Shape, "{} has no elements to fill {shape} with", self.ty()?);
            }
            let times = if have == 0 { 0 } else { want.div_ceil(have) };
            self.try_flatten()?.tile([times]).index(0..want as i64).ok()?.try_reshape(shape)
        })
    }

    /// Arrays seen in the one shape that they broadcast to.
    #[doc(alias = "broadcast_shapes")]
    #[track_caller]
    pub fn broadcast_arrays<I>(arrays: I) -> Vec<Array>
    where
        I: IntoIterator,
        I::Item: AsRef<Array>,
    {
        let arrays: Vec<Array> = arrays.into_iter().map(|a| a.as_ref().clone()).collect();
        all_at_caller(arrays.len().max(1), || {
            let mut shape = Shape::scalar();
            for a in &arrays {
                shape = broadcast_shapes(&shape, a.ty()?.shape())
                    .ok_or_else(|| error!(Shape, "{} does not broadcast with {shape}", a.shape()))?;
            }
            arrays.iter().map(|a| a.try_broadcast_to(shape.clone())).collect()
        })
    }

    /// The array without some places of an axis. They are numbers, because the size of the result follows from them; negative ones count from the end.
    #[track_caller]
    pub fn delete(&self, places: &[isize], axis: isize) -> Array {
        at_caller(|| {
            let (axis, n) = self.known_axis(axis)?;
            let gone = places.iter().map(|p| place_in(*p, n)).collect::<Result<Vec<usize>>>()?;
            let left = Array::from_iter((0..n).filter(|i| !gone.contains(i)).map(|i| i as i64));
            self.take(&left, axis as isize).ok()
        })
    }

    /// Values put in before a place of an axis. They broadcast to a shape with any size along it.
    #[track_caller]
    pub fn insert(&self, place: isize, values: impl Operand, axis: isize) -> Array {
        let values = values.into_operand();
        at_caller(|| {
            let (axis, n) = self.known_axis(axis)?;
            let values = value_as(values, self.dtype())?;
            let at = if place == n as isize { n } else { place_in(place, n)? };
            let count = if values.rank() == self.rank() { values.dim(axis as isize) } else { Dim::from(1usize) };
            let values = match values.rank() == self.rank() || values.rank() == 0 {
                true => values,
                false => values.expand_dims(axis as isize),
            };
            let middle = values.try_broadcast_to(self.shape().replaced(axis, count))?;
            let start = self.slice_axis(axis, Dim::from(0usize), Dim::from(at))?;
            let end = self.slice_axis(axis, Dim::from(at), Dim::from(n))?;
            Array::concatenate([start, middle, end], axis as isize).ok()
        })
    }

    fn known_axis(&self, axis: isize) -> Result<(usize, usize)> {
        let axis = resolve_axis(axis, self.ty()?.rank())?;
        let n = self.dim(axis as isize).as_usize().ok_or_else(|| {
            error!(NotConcrete, "axis {axis} of an array of shape {} has no known size", self.shape())
                .help("slices with symbolic bounds and `concatenate` take any size")
        })?;
        Ok((axis, n))
    }

    /// Zeros or another value around the array and between its elements: for each axis how many before, after, and between each two. Negative counts at the ends crop.
    #[track_caller]
    pub fn pad_interior(&self, counts: &[(i64, i64, usize)], value: impl Operand) -> Array {
        let value = value.into_operand();
        at_caller(|| {
            let ty = self.ty()?;
            if counts.len() != ty.rank() {
                fail!(Shape, "a pad of {ty} takes three counts for each axis, {} and not {}", ty.rank(), counts.len());
            }
            let value = value_as(value, ty.dtype())?;
            if value.rank() != 0 {
                fail!(Shape, "the value of a pad is one number, not {}", value.ty()?);
            }
            let low = counts.iter().map(|c| Dim::from(c.0)).collect();
            let high = counts.iter().map(|c| Dim::from(c.1)).collect();
            self.padded(low, high, counts.iter().map(|c| c.2).collect(), value)
        })
    }

    /// Puts the elements at the edges around the array: a pair of counts for each axis.
    #[track_caller]
    pub fn pad_edge(&self, counts: &[(usize, usize)]) -> Array {
        at_caller(|| self.pad_from(counts, |i, n| i.clamp(0, n - 1)))
    }

    /// Puts a mirror image around the array, without the elements at the edges: `[1, 2, 3]` goes on with `2, 1`.
    #[track_caller]
    pub fn pad_reflect(&self, counts: &[(usize, usize)]) -> Array {
        at_caller(|| {
            self.pad_from(counts, |i, n| {
                let around = i.rem_euclid((2 * n - 2).max(1));
                around.min((2 * n - 2 - around).max(0))
            })
        })
    }

    /// Puts a mirror image around the array, with the elements at the edges: `[1, 2, 3]` goes on with `3, 2`.
    #[track_caller]
    pub fn pad_symmetric(&self, counts: &[(usize, usize)]) -> Array {
        at_caller(|| {
            self.pad_from(counts, |i, n| {
                let around = i.rem_euclid(2 * n);
                around.min(2 * n - 1 - around)
            })
        })
    }

    /// Puts the array itself around it, as if it went on and on: `[1, 2, 3]` goes on with `1, 2`.
    #[track_caller]
    pub fn pad_wrap(&self, counts: &[(usize, usize)]) -> Array {
        at_caller(|| self.pad_from(counts, |i, n| i.rem_euclid(n)))
    }

    /// Each axis longer by counts before and after; `from` says where the element at a place comes from.
    fn pad_from(&self, counts: &[(usize, usize)], from: impl Fn(i64, i64) -> i64) -> Result<Array> {
        let ty = self.ty()?;
        if counts.len() != ty.rank() {
            fail!(Shape, "a pad of {ty} takes a pair of counts for each axis, {} and not {}", ty.rank(), counts.len());
        }
        let mut x = self.clone();
        for (axis, (low, high)) in counts.iter().enumerate().filter(|(_, c)| **c != (0, 0)) {
            let (_, n) = self.known_axis(axis as isize)?;
            if n == 0 {
                fail!(Shape, "axis {axis} of {ty} has no elements to repeat");
            }
            let too_long =
                || error!(Size, "{low} + {n} + {high} elements along axis {axis} are more than an array has");
            let all = low.checked_add(n).and_then(|all| all.checked_add(*high)).ok_or_else(too_long)?;
            let ty = Type::checked(ty.dtype(), x.shape().replaced(axis, Dim::from(all)))?;
            let (n, low) = (n as i64, *low as i64);
            // Where elements come from is a list as long as the axis.
            let places = collected(all, (0..all as i64).map(|i| from(i - low, n)))
                .map_err(|_| error!(Size, "there is no memory for a pad to {ty}"))?;
            x = x.take(&Array::from(places), axis as isize).ok()?;
        }
        Ok(x)
    }

    /// Vectors as index arrays of an open grid: each along an axis of its own, so that together they name all pairs.
    #[doc(alias = "ix_")]
    #[track_caller]
    pub fn open_grid<I>(vectors: I) -> Vec<Array>
    where
        I: IntoIterator,
        I::Item: AsRef<Array>,
    {
        let vectors: Vec<Array> = vectors.into_iter().map(|a| a.as_ref().clone()).collect();
        let rank = vectors.len();
        all_at_caller(rank.max(1), || {
            let mut all = Vec::with_capacity(rank);
            for (i, v) in vectors.iter().enumerate() {
                let [n] = v.ty()?.shape().dims() else {
                    fail!(Shape, "a grid is made from vectors, not from {}", v.ty()?)
                };
                let shape: Vec<Dim> = (0..rank).map(|a| if a == i { n.clone() } else { Dim::from(1usize) }).collect();
                all.push(v.try_reshape(shape.into())?);
            }
            Ok(all)
        })
    }

    /// The bits of all bytes, the highest of each first, as `u8`.
    #[track_caller]
    pub fn unpackbits(&self) -> Array {
        at_caller(|| {
            if self.ty()?.dtype() != DType::U8 {
                fail!(DType, "bits are unpacked from `u8`, not from {}", self.ty()?);
            }
            let shifts = Array::from([7u8, 6, 5, 4, 3, 2, 1, 0]);
            ((self.try_flatten()?.expand_dims(1) >> shifts) & 1u8).ok()?.try_flatten()
        })
    }

    /// Bits packed into bytes, the highest of each first; what is missing at the end is zero.
    #[track_caller]
    pub fn packbits(&self) -> Array {
        at_caller(|| {
            let bits = self.ty().map(|_| self.is_true())?.try_flatten()?.cast(DType::U8);
            let missing = (-bits.dim(0)).modulo(&Dim::from(8usize));
            let rows = bits.pad(&[(Dim::from(0usize), missing)], 0i32).reshape([-1, 8]);
            (rows << Array::from([7u8, 6, 5, 4, 3, 2, 1, 0])).sum_axes(1).ok()
        })
    }
}

/// How many of the results of a call that was to give so many carry its error: nobody names more by hand.
fn carried(n: usize) -> usize {
    n.clamp(1, 1024)
}

/// A place of an axis counted from the front.
fn place_in(place: isize, n: usize) -> Result<usize> {
    let from_front = if place < 0 { place + n as isize } else { place };
    match usize::try_from(from_front).ok().filter(|p| *p < n) {
        Some(p) => Ok(p),
        None => fail!(Index, "place {place} of an axis with {n}"),
    }
}

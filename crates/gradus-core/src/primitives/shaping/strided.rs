//! Loops over pairs of strided layouts, shared by all operations that copy or combine parts of arrays.

use crate::array::{Concrete, Dims, Strides, reserve};
use crate::error::Result;
use crate::types::{Element, Type};

/// A walk over two layouts of one shape, prepared once and run from many places.
///
/// Axes of size 1 are gone and neighbours that lie one behind the other in both layouts are joined, so that the
/// innermost run is as long as it can be.
pub(crate) struct StridedCopy {
    dims: Dims,
    from: Strides,
    to: Strides,
}

impl StridedCopy {
    /// The walk over `dims` with the strides of the source and of the target.
    pub(crate) fn new(dims: &[usize], from: &[isize], to: &[isize]) -> StridedCopy {
        let mut walk = StridedCopy { dims: Dims::new(), from: Strides::new(), to: Strides::new() };
        for ((&d, &f), &t) in dims.iter().zip(from).zip(to) {
            if d == 1 {
                continue;
            }
            match (walk.dims.last_mut(), walk.from.last_mut(), walk.to.last_mut()) {
                (Some(outer), Some(outer_from), Some(outer_to))
                    if *outer_from == f.wrapping_mul(d as isize) && *outer_to == t.wrapping_mul(d as isize) =>
                {
                    *outer = outer.saturating_mul(d);
                    (*outer_from, *outer_to) = (f, t);
                }
                _ => {
                    walk.dims.push(d);
                    walk.from.push(f);
                    walk.to.push(t);
                }
            }
        }
        walk
    }

    /// Calls `row(from, to, length)` for each innermost run, in row-major order.
    fn rows(&self, from: usize, to: usize, row: &mut dyn FnMut(usize, usize, usize)) {
        let Some((&inner, outer)) = self.dims.split_last() else { return row(from, to, 1) };
        if self.dims.contains(&0) {
            return;
        }
        let mut index: Dims = smallvec::smallvec![0; outer.len()];
        let (mut from, mut to) = (from as isize, to as isize);
        'rows: loop {
            row(from as usize, to as usize, inner);
            for ((at, &d), (&f, &t)) in index.iter_mut().zip(outer).zip(self.from.iter().zip(&self.to)).rev() {
                *at += 1;
                from += f;
                to += t;
                if *at < d {
                    continue 'rows;
                }
                from -= f * d as isize;
                to -= t * d as isize;
                *at = 0;
            }
            return;
        }
    }

    /// Calls `visit(from, to)` for each element, in row-major order.
    pub(crate) fn each(&self, from: usize, to: usize, visit: &mut dyn FnMut(usize, usize)) {
        let (f, t) = (self.from.last().copied().unwrap_or(0), self.to.last().copied().unwrap_or(0));
        self.rows(from, to, &mut |mut from, mut to, len| {
            for _ in 0..len {
                visit(from, to);
                from = from.wrapping_add_signed(f);
                to = to.wrapping_add_signed(t);
            }
        });
    }

    /// Applies `change(target, source)` to each pair of elements. Both layouts lie inside their buffers.
    pub(crate) fn merge<T: Copy>(
        &self,
        source: &[T],
        from: usize,
        target: &mut [T],
        to: usize,
        change: impl Fn(&mut T, T),
    ) {
        let (Some(&f), Some(&t)) = (self.from.last(), self.to.last()) else {
            // Single elements come by the million, out of a gather.
            return change(&mut target[to], source[from]); // invariant: layouts lie inside
        };
        self.rows(from, to, &mut |from, to, len| match (f, t) {
            (1, 1) => {
                let pairs = target[to..to + len].iter_mut().zip(&source[from..from + len]); // invariant: layouts lie inside
                for (t, s) in pairs {
                    change(t, *s);
                }
            }
            (0, 1) => {
                let value = source[from]; // invariant: layouts lie inside
                for t in &mut target[to..to + len] {
                    // invariant: layouts lie inside
                    change(t, value);
                }
            }
            _ => {
                let (mut from, mut to) = (from as isize, to as isize);
                for _ in 0..len {
                    change(&mut target[to as usize], source[from as usize]); // invariant: layouts lie inside
                    from += f;
                    to += t;
                }
            }
        });
    }

    /// Copies each element.
    pub(crate) fn copy<T: Copy>(&self, source: &[T], from: usize, target: &mut [T], to: usize) {
        self.merge(source, from, target, to, |t, s| *t = s);
    }
}

/// Memory for an array of a type, filled; an error if there is none.
pub(crate) fn buffer<T: Element>(ty: &Type, fill: T) -> Result<Vec<T>> {
    let mut values = reserve(ty)?;
    values.resize(ty.shape().count().unwrap_or(0), fill);
    Ok(values)
}

/// A copy of an array's elements in row-major order, to be written over; an error if there is no memory for it.
pub(crate) fn owned<T: Element>(x: &Concrete) -> Result<Vec<T>> {
    match x.splat_value().and_then(T::from_scalar) {
        Some(value) => buffer(x.ty(), value),
        None => x.try_to_vec(),
    }
}

/// Strides under which the same elements, in the same order, have other dimensions; `None` if that takes a copy.
///
/// The counts of both are equal and not zero.
pub(crate) fn restride(dims: &[usize], strides: &[isize], new: &[usize]) -> Option<Strides> {
    // Joined runs of the old axes; a new axis must divide the innermost run that is left.
    let walk = StridedCopy::new(dims, strides, strides);
    let mut runs = walk.dims.iter().copied().zip(walk.from.iter().copied()).rev();
    let (mut left, mut stride) = runs.next().unwrap_or((1, 1));
    let mut found: Strides = smallvec::smallvec![0; new.len()];
    for (&d, s) in new.iter().zip(&mut found).rev() {
        if d == 1 {
            *s = stride;
            continue;
        }
        if left == 1 {
            (left, stride) = runs.next()?;
        }
        if left % d != 0 {
            return None;
        }
        *s = stride;
        left /= d;
        stride = stride.wrapping_mul(d as isize);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_joined() {
        let walk = StridedCopy::new(&[2, 1, 3, 4], &[12, 99, 4, 1], &[24, 0, 8, 2]);
        assert_eq!((walk.dims.as_slice(), walk.from.as_slice(), walk.to.as_slice()), (&[24][..], &[1][..], &[2][..]));
        let walk = StridedCopy::new(&[2, 3], &[1, 2], &[3, 1]);
        assert_eq!(walk.dims.as_slice(), &[2, 3]);
    }

    #[test]
    fn reshapes_without_a_copy_are_found() {
        assert_eq!(restride(&[2, 3], &[3, 1], &[6]).as_deref(), Some(&[1][..]));
        assert_eq!(restride(&[2, 3], &[3, 1], &[3, 2, 1]).as_deref(), Some(&[2, 1, 1][..]));
        assert_eq!(restride(&[3, 2], &[1, 3], &[6]), None);
        assert_eq!(restride(&[3, 4], &[1, 3], &[3, 2, 2]).as_deref(), Some(&[1, 6, 3][..]));
        assert_eq!(restride(&[2, 3], &[0, 0], &[3, 2]).as_deref(), Some(&[0, 0][..]));
        assert_eq!(restride(&[], &[], &[1, 1]).map(|s| s.len()), Some(2));
        assert_eq!(restride(&[4, 2], &[4, 1], &[2, 4]), None);
    }
}

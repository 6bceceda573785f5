//! Strided views of buffers: the operations that only move elements cost nothing when they can be read off the strides.

use smallvec::SmallVec;

use crate::ir::{Buffer, Index};

/// Known dimensions.
pub(super) type Dims = SmallVec<[usize; 4]>;
/// Distances in elements.
pub(super) type Strides = SmallVec<[i64; 4]>;

/// An array in memory: where it begins and how far neighbours are apart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct View {
    pub buffer: Buffer,
    /// Where its first element is.
    pub base: Index,
    pub dims: Dims,
    pub strides: Strides,
}

/// The number of elements.
pub(super) fn count(dims: &[usize]) -> usize {
    dims.iter().product()
}

/// Strides of a dense row-major array.
pub(super) fn row_major(dims: &[usize]) -> Strides {
    let mut strides: Strides = smallvec::smallvec![1; dims.len()];
    for i in (1..dims.len()).rev() {
        strides[i - 1] = strides[i] * dims[i].max(1) as i64;
    }
    strides
}

impl View {
    /// A whole buffer.
    pub fn dense(buffer: Buffer, dims: &[usize]) -> View {
        View { buffer, base: Index::at(0), dims: dims.into(), strides: row_major(dims) }
    }

    /// Whether elements stand in row-major order without gaps.
    pub fn is_dense(&self) -> bool {
        let mut expect = 1;
        self.dims.iter().zip(&self.strides).rev().all(|(&d, &s)| {
            let fits = d == 1 || s == expect;
            expect *= d as i64;
            fits
        })
    }

    pub fn permuted(&self, order: &[usize]) -> View {
        View {
            dims: order.iter().map(|&a| self.dims[a]).collect(),
            strides: order.iter().map(|&a| self.strides[a]).collect(),
            ..self.clone()
        }
    }

    /// Axis `i` goes to `axes[i]`; along the others, and along axes of size 1 that grow, elements repeat.
    pub fn broadcast(&self, dims: &[usize], axes: &[usize]) -> View {
        let mut strides: Strides = smallvec::smallvec![0; dims.len()];
        for (i, &a) in axes.iter().enumerate() {
            if self.dims[i] == dims[a] {
                strides[a] = self.strides[i];
            }
        }
        View { dims: dims.into(), strides, ..self.clone() }
    }

    /// The same elements where each of `n` points has `inside` of them and those lie apart: first one of every point, then the
    /// next of every point. None if an axis runs over both.
    pub fn apart(&self, inside: usize, n: usize) -> Option<View> {
        let (inside, n) = (inside as i64, n as i64);
        let (first, point) = (self.base.offset.rem_euclid(inside), self.base.offset.div_euclid(inside));
        let (mut lowest, mut highest) = (first, first);
        let mut view = self.clone();
        for (s, d) in view.strides.iter_mut().zip(&self.dims).filter(|(_, d)| **d != 1) {
            if *s % inside == 0 {
                *s /= inside;
                continue;
            }
            let reach = *s * (*d as i64 - 1);
            (lowest, highest) = (lowest + reach.min(0), highest + reach.max(0));
            *s *= n;
        }
        view.base.offset = point + first * n;
        (self.base.terms.is_empty() && lowest >= 0 && highest < inside).then_some(view)
    }

    /// If this shows a dense array of `dims` with its axes in another order: where in `to`, which holds what is shown, the
    /// array's own elements lie.
    pub fn laid_out(&self, dims: &[usize], to: &View) -> Option<View> {
        let mut strides: Strides = smallvec::smallvec![0; dims.len()];
        let own = row_major(dims);
        let sized = |dims: &[usize]| dims.iter().filter(|d| **d != 1).count();
        if self.base != Index::at(0) || to.dims != self.dims || sized(dims) != sized(&self.dims) {
            return None;
        }
        for (a, &d) in dims.iter().enumerate().filter(|(_, d)| **d != 1) {
            let shown = (0..self.dims.len()).find(|b| self.strides[*b] == own[a] && self.dims[*b] == d)?;
            strides[a] = to.strides[shown];
        }
        Some(View { buffer: to.buffer, base: to.base.clone(), dims: dims.into(), strides })
    }

    pub fn sliced(&self, start: &[usize], dims: &[usize], step: &[usize]) -> View {
        let mut v = self.clone();
        for a in 0..dims.len() {
            v.base.offset += start[a] as i64 * self.strides[a];
            v.strides[a] = self.strides[a] * step[a] as i64;
        }
        v.dims = dims.into();
        v
    }

    pub fn reversed(&self, axes: &[usize]) -> View {
        let mut v = self.clone();
        for &a in axes {
            v.base.offset += (self.dims[a] as i64 - 1).max(0) * self.strides[a];
            v.strides[a] = -self.strides[a];
        }
        v
    }

    /// The same elements in other dimensions, if strides can say so.
    pub fn reshaped(&self, dims: &[usize]) -> Option<View> {
        if self.is_dense() {
            return Some(View { dims: dims.into(), strides: row_major(dims), ..self.clone() });
        }
        let mut strides: Strides = smallvec::smallvec![0; dims.len()];
        // Groups of axes on both sides that hold equally many elements; within a group the old axes must be one run.
        let (mut i, mut j) = (0, 0);
        while i < self.dims.len() && j < dims.len() {
            let (mut a, mut b) = (self.dims[i], dims[j]);
            let (i0, j0) = (i, j);
            while a != b {
                if a < b {
                    i += 1;
                    a *= *self.dims.get(i)?;
                } else {
                    j += 1;
                    b *= *dims.get(j)?;
                }
            }
            let mut run = None;
            for k in (i0..=i).rev().filter(|&k| self.dims[k] != 1) {
                match run {
                    None => run = Some((self.strides[k], self.dims[k] as i64 * self.strides[k])),
                    Some((inner, next)) if self.strides[k] == next => {
                        run = Some((inner, next * self.dims[k] as i64));
                    }
                    _ => return None,
                }
            }
            let mut s = run.map_or(0, |(inner, _)| inner);
            for k in (j0..=j).rev() {
                strides[k] = s;
                s *= dims[k] as i64;
            }
            (i, j) = (i + 1, j + 1);
        }
        // What is left on either side has size 1.
        let rest_is_one = self.dims[i..].iter().all(|&d| d == 1) && dims[j..].iter().all(|&d| d == 1);
        rest_is_one.then(|| View { dims: dims.into(), strides, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(v: &View, position: usize) -> i64 {
        let mut rest = position;
        let mut place = v.base.offset;
        for a in (0..v.dims.len()).rev() {
            place += (rest % v.dims[a]) as i64 * v.strides[a];
            rest /= v.dims[a];
        }
        place
    }

    #[test]
    fn elements_that_lie_apart_are_the_same_elements() {
        let (n, inside) = (12, 6);
        // In a dense array the element of a point; where they lie apart, the place of the same one.
        let moved = |at: i64| at % inside * n + at / inside;
        let base = View::dense(Buffer(0), &[3, 4, 2, 3]);
        let views = [
            base.clone(),
            base.permuted(&[1, 3, 0, 2]),
            base.sliced(&[0, 1, 1, 0], &[3, 2, 1, 2], &[1, 2, 1, 2]),
            base.reversed(&[0, 2, 3]),
            View::dense(Buffer(0), &[3, 4, 6]),
            View::dense(Buffer(0), &[12, 2, 3]).broadcast(&[12, 5, 2, 3], &[0, 2, 3]),
        ];
        for v in &views {
            let w = v.apart(inside as usize, n as usize).unwrap();
            assert!((0..count(&v.dims)).all(|i| moved(at(v, i)) == at(&w, i)), "{v:?}: {w:?}");
        }
        // Runs over points and their elements at once.
        assert_eq!(View::dense(Buffer(0), &[72]).apart(6, 12), None);
        assert_eq!(View::dense(Buffer(0), &[12, 6]).sliced(&[0, 3], &[11, 4], &[1, 1]).apart(6, 12), None);
    }

    #[test]
    fn reshapes_keep_the_order_of_elements() {
        let base = View::dense(Buffer(0), &[4, 6, 5]);
        let views = [
            base.clone(),
            base.permuted(&[1, 0, 2]),
            base.permuted(&[2, 0, 1]),
            base.sliced(&[0, 0, 0], &[4, 6, 3], &[1, 1, 1]),
            base.sliced(&[1, 0, 0], &[2, 6, 5], &[2, 1, 1]),
            base.reversed(&[0, 1, 2]),
            View::dense(Buffer(0), &[4, 5]).broadcast(&[4, 6, 5], &[0, 2]),
        ];
        let mut made = 0;
        for v in &views {
            let n = count(&v.dims);
            for dims in [&[n][..], &[2, n / 2], &[1, n, 1], &[4, n / 4], &[n / 5, 5], &[2, 2, n / 4], &[n / 3, 3]] {
                if count(dims) != n {
                    continue;
                }
                if let Some(w) = v.reshaped(dims) {
                    made += 1;
                    assert!((0..n).all(|i| at(v, i) == at(&w, i)), "{v:?} as {dims:?}: {w:?}");
                }
            }
        }
        assert!(made > 15, "only {made} reshapes were views");
    }
}

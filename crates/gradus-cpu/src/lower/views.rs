//! Strided views of buffers: the operations that only move elements cost nothing when they can be read off the strides. A view has two maps, where
//! its elements lie and which elements of which value they are; every operation does the same to both.

use smallvec::SmallVec;

pub(super) use crate::ir::meaning::At;
use crate::ir::meaning::{Meaning, Region, Tag};
use crate::ir::{Buffer, Value};
use crate::size::Size;

/// Dimensions.
pub(super) type Dims = SmallVec<[Size; 4]>;
/// Distances in elements.
pub(super) type Strides = SmallVec<[Size; 4]>;

/// An array in memory: where it begins and how far neighbours are apart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct View {
    pub buffer: Buffer,
    /// Where its first element is.
    pub base: At,
    pub dims: Dims,
    pub strides: Strides,
    /// Which elements these are.
    pub mean: Mean,
}

/// Elements of a value: the first, and how far neighbours are apart, in the value's row-major order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mean {
    pub tag: Tag,
    pub base: At,
    pub strides: Strides,
}

/// The number of elements.
pub(super) fn count(dims: &[Size]) -> Size {
    dims.iter().product()
}

/// Whether there are certainly no elements.
pub(super) fn is_empty(dims: &[Size]) -> bool {
    count(dims) == 0
}

/// Dimensions that are known, as numbers. What is written out element by element has no others.
pub(super) fn fixed(dims: &[Size]) -> SmallVec<[usize; 4]> {
    dims.iter().map(|d| d.written_out()).collect()
}

/// Strides of a dense row-major array.
pub(super) fn row_major(dims: &[Size]) -> Strides {
    let mut strides: Strides = smallvec::smallvec![Size::ONE; dims.len()];
    for i in (1..dims.len()).rev() {
        strides[i - 1] = if dims[i] == 0 { strides[i] } else { strides[i] * dims[i] };
    }
    strides
}

/// Where the elements of a small array lie, in row-major order, counted from the first. With large strides that may be known only
/// at run time.
pub(super) fn offsets(dims: &[Size], strides: &[Size]) -> Vec<Size> {
    // An axis of an empty array may be vast.
    if is_empty(dims) {
        return Vec::new();
    }
    let mut all = vec![Size::ZERO];
    for (d, s) in dims.iter().zip(strides) {
        let along = 0..d.written_out();
        all = all.iter().flat_map(|at| along.clone().map(move |i| *at + *s * i)).collect();
    }
    all
}

impl View {
    /// A whole buffer.
    pub fn dense(buffer: Buffer, dims: &[Size]) -> View {
        let strides = row_major(dims);
        let mean = Mean { tag: Tag::NONE, base: At::start(), strides: strides.clone() };
        View { buffer, base: At::start(), dims: dims.into(), strides, mean }
    }

    /// Whether its elements certainly lie where those of a view of the same dimensions lie.
    pub fn is_at(&self, other: &View) -> bool {
        let strides = self.strides.iter().zip(&other.strides).zip(&self.dims);
        self.buffer == other.buffer
            && self.base == other.base
            && self.dims == other.dims
            && strides.into_iter().all(|((a, b), d)| *d == 1 || a == b)
    }

    /// One number in every place.
    pub fn repeated(buffer: Buffer, dims: &[Size]) -> View {
        let mut view = View::dense(buffer, dims);
        view.strides.fill(Size::ZERO);
        view.mean.strides.fill(Size::ZERO);
        view
    }

    /// The same memory as the whole of a value.
    pub fn of(mut self, tag: Tag) -> View {
        self.mean = Mean { tag, base: At::start(), strides: row_major(&self.dims) };
        self
    }

    /// Where each element of a small view lies, and what it is, in row-major order.
    pub fn all(&self) -> Vec<(At, Meaning)> {
        let places = offsets(&self.dims, &self.strides).into_iter().map(|k| self.base.further(k));
        places.zip(self.meanings()).collect()
    }

    fn meanings(&self) -> impl Iterator<Item = Meaning> + use<> {
        let (tag, base) = (self.mean.tag, self.mean.base.clone());
        offsets(&self.dims, &self.mean.strides).into_iter().map(move |k| Meaning::of(tag, base.further(k)))
    }

    /// What the first element is.
    pub fn meaning(&self) -> Meaning {
        Meaning::of(self.mean.tag, self.mean.base.clone())
    }

    /// Where the first element lies, and what it is.
    pub fn first(&self) -> (At, Meaning) {
        (self.base.clone(), self.meaning())
    }

    /// The element of the first axis that a value says.
    pub fn step(&self, value: Value) -> View {
        self.index(Some((value, 1)), Size::ZERO)
    }

    /// The element of the first axis at `value·times + plus`.
    pub fn index(&self, along: Option<(Value, usize)>, plus: Size) -> View {
        let further = |base: &At, stride: Size| {
            let base = base.further(stride * plus);
            along.map_or(base.clone(), |(value, times)| base.plus(value, stride * times))
        };
        View {
            buffer: self.buffer,
            base: further(&self.base, self.strides[0]),
            dims: self.dims[1..].into(),
            strides: self.strides[1..].into(),
            mean: Mean {
                tag: self.mean.tag,
                base: further(&self.mean.base, self.mean.strides[0]),
                strides: self.mean.strides[1..].into(),
            },
        }
    }

    /// As those see it who check memory.
    pub fn region(&self, bytes: usize) -> Region {
        Region {
            buffer: self.buffer,
            dims: self.dims.clone(),
            place: (self.base.clone(), self.strides.clone()),
            element: (self.mean.base.clone(), self.mean.strides.clone()),
            tag: self.mean.tag,
            bytes,
        }
    }

    /// Whether elements certainly stand in row-major order without gaps.
    pub fn is_dense(&self) -> bool {
        is_dense(&self.dims, &self.strides)
    }

    pub fn permuted(&self, order: &[usize]) -> View {
        self.both(order.iter().map(|&a| self.dims[a]).collect(), |s| order.iter().map(|&a| s[a]).collect())
    }

    /// The same to both maps, which keep where they begin.
    pub fn both(&self, dims: Dims, f: impl Fn(&[Size]) -> Strides) -> View {
        let mean = Mean { strides: f(&self.mean.strides), ..self.mean.clone() };
        View { dims, strides: f(&self.strides), mean, buffer: self.buffer, base: self.base.clone() }
    }

    /// Axis `i` goes to `axes[i]`; along the others, and along axes of size 1 that grow, elements repeat.
    pub fn broadcast(&self, dims: &[Size], axes: &[usize]) -> View {
        self.both(dims.into(), |old| {
            let mut strides: Strides = smallvec::smallvec![Size::ZERO; dims.len()];
            for (i, &a) in axes.iter().enumerate() {
                // An axis that is not 1 for certain has the size of the one it becomes.
                if self.dims[i] != 1 || dims[a] == 1 {
                    strides[a] = old[i];
                }
            }
            strides
        })
    }

    /// The same elements where each of `n` points has `inside` of them and those lie apart: first one of every point, then the
    /// next of every point. None if an axis runs over both.
    pub fn apart(&self, inside: usize, n: Size) -> Option<View> {
        let inside = inside as i64;
        let offset = self.base.offset.constant()?;
        let (first, point) = (offset.rem_euclid(inside), offset.div_euclid(inside));
        let (mut lowest, mut highest) = (first, first);
        let mut view = self.clone();
        for (s, d) in view.strides.iter_mut().zip(&self.dims).filter(|(_, d)| **d != 1) {
            if let Some(points) = s.over(Size::Known(inside)) {
                *s = points;
                continue;
            }
            let reach = s.constant()? * (d.constant()? - 1);
            (lowest, highest) = (lowest + reach.min(0), highest + reach.max(0));
            *s = *s * n;
        }
        view.base.offset = n * first + point;
        (self.base.terms.is_empty() && lowest >= 0 && highest < inside).then_some(view)
    }

    /// If this shows all of a dense array of `dims`, with its axes in another order or several of them as one: where in `to`, which holds what is shown,
    /// the array's own elements lie.
    pub fn laid_out(&self, dims: &[Size], to: &View) -> Option<View> {
        if self.base != At::start() || to.dims != self.dims {
            return None;
        }
        let own = row_major(dims);
        let mut strides: Strides = smallvec::smallvec![Size::ZERO; dims.len()];
        // How much of each axis that is shown the array's axes have told.
        let mut told: Dims = smallvec::smallvec![Size::ONE; self.dims.len()];
        for (a, &d) in dims.iter().enumerate().filter(|(_, d)| **d != 1) {
            // An axis of the array is a digit of one that is shown: it steps over whole steps, and ends where whole ones end.
            let (shown, step) = (0..self.dims.len()).find_map(|b| {
                let (n, s) = (self.dims[b], self.strides[b]);
                (s * n).over(own[a] * d).filter(|_| n != 1)?;
                Some((b, own[a].over(s).filter(|step| !step.is_negative())?))
            })?;
            told[shown] = told[shown] * d;
            strides[a] = to.strides[shown] * step;
        }
        // Then no element is shown twice, and none is missing.
        (told == self.dims).then(|| View { base: to.base.clone(), strides, ..View::dense(to.buffer, dims) })
    }

    pub fn sliced(&self, start: &[Size], dims: &[Size], step: &[usize]) -> View {
        let mut v = self.both(dims.into(), |s| s.iter().zip(step).map(|(s, step)| *s * *step).collect());
        for (a, first) in start.iter().enumerate() {
            v.base.offset = v.base.offset + *first * self.strides[a];
            v.mean.base.offset = v.mean.base.offset + *first * self.mean.strides[a];
        }
        v
    }

    /// Windows along some axes: how far they are apart there, and on axes of their own, which come last, how far their elements are.
    pub fn windows(&self, axes: &[usize], apart: &[usize], inside: &[usize], dims: &[Size]) -> View {
        self.both(dims.into(), |old| {
            let mut strides: Strides = old.into();
            for (&axis, &step) in axes.iter().zip(apart) {
                strides[axis] = old[axis] * step;
            }
            strides.extend(axes.iter().zip(inside).map(|(&axis, &step)| old[axis] * step));
            strides
        })
    }

    pub fn reversed(&self, axes: &[usize]) -> View {
        let mut v = self.clone();
        for &a in axes {
            // Of an empty axis nothing is read.
            if self.dims[a] != 0 {
                let last = self.dims[a] - 1i64;
                v.base.offset = v.base.offset + last * self.strides[a];
                v.mean.base.offset = v.mean.base.offset + last * self.mean.strides[a];
            }
            v.strides[a] = -self.strides[a];
            v.mean.strides[a] = -self.mean.strides[a];
        }
        v
    }

    /// The same elements in other dimensions, if strides can say so.
    pub fn reshaped(&self, dims: &[Size]) -> Option<View> {
        let strides = reshaped(&self.dims, &self.strides, dims)?;
        let mean = Mean { strides: reshaped(&self.dims, &self.mean.strides, dims)?, ..self.mean.clone() };
        Some(View { dims: dims.into(), strides, mean, buffer: self.buffer, base: self.base.clone() })
    }
}

/// The strides of the same elements in other dimensions, if there are such.
fn reshaped(old: &[Size], from: &[Size], dims: &[Size]) -> Option<Strides> {
    if is_dense(old, from) {
        return Some(row_major(dims));
    }
    let mut strides: Strides = smallvec::smallvec![Size::ZERO; dims.len()];
    // Groups of axes on both sides that hold equally many elements; within a group the old axes must be one run.
    let (mut i, mut j) = (0, 0);
    while i < old.len() && j < dims.len() {
        let (i0, j0) = (i, j);
        (i, j) = smallest_group(old, dims, i, j)?;
        let mut run = None;
        for k in (i0..=i).rev().filter(|&k| old[k] != 1) {
            match run {
                None => run = Some((from[k], old[k] * from[k])),
                Some((inner, next)) if from[k] == next => {
                    run = Some((inner, next * old[k]));
                }
                _ => return None,
            }
        }
        let mut s = run.map_or(Size::ZERO, |(inner, _)| inner);
        for k in (j0..=j).rev() {
            strides[k] = s;
            s = s * dims[k];
        }
        (i, j) = (i + 1, j + 1);
    }
    // What is left on either side has size 1.
    let rest_is_one = old[i..].iter().all(|&d| d == 1) && dims[j..].iter().all(|&d| d == 1);
    rest_is_one.then_some(strides)
}

/// Whether elements with these strides certainly stand in row-major order without gaps.
fn is_dense(dims: &[Size], strides: &[Size]) -> bool {
    let mut expect = Size::ONE;
    dims.iter().zip(strides).rev().all(|(&d, &s)| {
        let fits = d == 1 || s == expect;
        expect = expect * d;
        fits
    })
}

/// The last axes of the smallest groups that begin at `i` and `j` and certainly hold equally many elements.
fn smallest_group(from: &[Size], to: &[Size], i: usize, j: usize) -> Option<(usize, usize)> {
    let products = |dims: &[Size]| -> SmallVec<[Size; 4]> {
        dims.iter()
            .scan(Size::ONE, |so_far, d| {
                *so_far = *so_far * *d;
                Some(*so_far)
            })
            .collect()
    };
    let (a, b) = (products(&from[i..]), products(&to[j..]));
    (0..a.len()).find_map(|x| b.iter().position(|y| *y == a[x]).map(|y| (i + x, j + y)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(v: &View, position: usize) -> i64 {
        let mut rest = position as i64;
        let mut place = v.base.offset.constant().unwrap();
        for (d, s) in v.dims.iter().zip(&v.strides).rev() {
            let d = d.constant().unwrap();
            place += rest % d * s.constant().unwrap();
            rest /= d;
        }
        place
    }

    fn sizes(numbers: &[usize]) -> Dims {
        numbers.iter().map(|n| Size::from(*n)).collect()
    }

    fn dense(dims: &[usize]) -> View {
        View::dense(Buffer(0), &sizes(dims))
    }

    fn known(dims: &[Size]) -> usize {
        count(dims).known().unwrap()
    }

    #[test]
    fn elements_that_lie_apart_are_the_same_elements() {
        let (n, inside) = (12i64, 6i64);
        // In a dense array the element of a point; where they lie apart, the place of the same one.
        let moved = |at: i64| at % inside * n + at / inside;
        let base = dense(&[3, 4, 2, 3]);
        let views = [
            base.clone(),
            base.permuted(&[1, 3, 0, 2]),
            base.sliced(&sizes(&[0, 1, 1, 0]), &sizes(&[3, 2, 1, 2]), &[1, 2, 1, 2]),
            base.reversed(&[0, 2, 3]),
            dense(&[3, 4, 6]),
            dense(&[12, 2, 3]).broadcast(&sizes(&[12, 5, 2, 3]), &[0, 2, 3]),
        ];
        for v in &views {
            let w = v.apart(inside as usize, n.into()).unwrap();
            assert!((0..known(&v.dims)).all(|i| moved(at(v, i)) == at(&w, i)), "{v:?}: {w:?}");
        }
        // Runs over points and their elements at once.
        assert_eq!(dense(&[72]).apart(6, 12usize.into()), None);
        assert_eq!(dense(&[12, 6]).sliced(&sizes(&[0, 3]), &sizes(&[11, 4]), &[1, 1]).apart(6, 12usize.into()), None);
    }

    #[test]
    fn what_is_laid_out_shows_the_same_elements() {
        let base = dense(&[4, 3, 5]);
        let shown = [
            base.permuted(&[2, 0, 1]),
            base.permuted(&[1, 2, 0]).reshaped(&sizes(&[15, 4])).unwrap(),
            base.permuted(&[2, 0, 1]).reshaped(&sizes(&[5, 12])).unwrap(),
            base.reshaped(&sizes(&[60])).unwrap(),
            base.permuted(&[1, 0, 2]).reshaped(&sizes(&[3, 1, 4, 5])).unwrap(),
        ];
        for view in &shown {
            let dims: Vec<usize> = view.dims.iter().map(|d| d.known().unwrap()).collect();
            // A window of something larger.
            let larger: Vec<usize> = dims.iter().map(|d| d + 2).collect();
            let to = dense(&larger).sliced(&vec![Size::ONE; dims.len()], &view.dims, &vec![1; dims.len()]);
            let laid = view.laid_out(&base.dims, &to).unwrap();
            // Element i of what is shown is element `at(view, i)` of the array, and lies where that one is laid.
            assert!((0..60).all(|i| at(&laid, at(view, i) as usize) == at(&to, i)), "{view:?}: {laid:?}");
        }
        // Backwards, only a part, repeated, or an axis of the array as two: strides of its own axes cannot say it.
        for view in [
            base.reversed(&[0]),
            base.sliced(&sizes(&[0, 0, 0]), &sizes(&[4, 3, 4]), &[1, 1, 1]),
            base.sliced(&sizes(&[1, 0, 0]), &sizes(&[3, 3, 5]), &[1, 1, 1]),
            base.broadcast(&sizes(&[4, 2, 3, 5]), &[0, 2, 3]),
            base.permuted(&[1, 2, 0]).reshaped(&sizes(&[3, 5, 2, 2])).unwrap(),
        ] {
            assert_eq!(view.laid_out(&base.dims, &View::dense(Buffer(0), &view.dims)), None, "{view:?}");
        }
    }

    #[test]
    fn reshapes_keep_the_order_of_elements() {
        let base = dense(&[4, 6, 5]);
        let views = [
            base.clone(),
            base.permuted(&[1, 0, 2]),
            base.permuted(&[2, 0, 1]),
            base.sliced(&sizes(&[0, 0, 0]), &sizes(&[4, 6, 3]), &[1, 1, 1]),
            base.sliced(&sizes(&[1, 0, 0]), &sizes(&[2, 6, 5]), &[2, 1, 1]),
            base.reversed(&[0, 1, 2]),
            dense(&[4, 5]).broadcast(&sizes(&[4, 6, 5]), &[0, 2]),
        ];
        let mut made = 0;
        for v in &views {
            let n = known(&v.dims);
            for dims in [&[n][..], &[2, n / 2], &[1, n, 1], &[4, n / 4], &[n / 5, 5], &[2, 2, n / 4], &[n / 3, 3]] {
                if dims.iter().product::<usize>() != n {
                    continue;
                }
                if let Some(w) = v.reshaped(&sizes(dims)) {
                    made += 1;
                    assert!((0..n).all(|i| at(v, i) == at(&w, i)), "{v:?} as {dims:?}: {w:?}");
                }
            }
        }
        assert!(made > 15, "only {made} reshapes were views");
    }
}

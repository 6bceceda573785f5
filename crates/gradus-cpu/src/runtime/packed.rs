//! Products of matrices whose left factor is a view that no two strides can tell, such as the windows of an image: it is copied together block by block, each
//! block small enough to stay in the cache until it has been multiplied. The whole of it, which is many times the image, is never in memory.

use gemm_common::Parallelism;
use gradus_core::DType;
use gradus_core::array::memory;
use rayon::prelude::*;
use smallvec::SmallVec;

use crate::cost::shares_product;
use crate::error::Result;
use crate::size::Size;

/// `c = a b`, where the rows and columns of `a` are several axes each; strides in elements, the result dense.
#[derive(Clone, Debug)]
pub struct Packed<N = i64> {
    /// The element type: f32 or f64.
    pub dtype: DType,
    /// For each axis of the rows of a: its size and its distance.
    pub rows: Vec<(N, N)>,
    /// For each axis that is summed over: its size and its distance in a.
    pub summed: Vec<(N, N)>,
    /// Columns of b.
    pub n: N,
    /// The distances of rows and columns of b.
    pub rhs: [N; 2],
}

impl Packed<Size> {
    /// With numbers for sizes.
    pub fn bind(&self, sizes: &[i64]) -> Packed {
        let number = |n: Size| n.in_table(sizes);
        let axes = |all: &[(Size, Size)]| all.iter().map(|(n, s)| (number(*n), number(*s))).collect();
        Packed {
            dtype: self.dtype,
            rows: axes(&self.rows),
            summed: axes(&self.summed),
            n: number(self.n),
            rhs: self.rhs.map(number),
        }
    }
}

/// Bytes of a block: it shares the second cache with a part of the other factor.
const BLOCK: usize = 1 << 19;
/// Rows or columns of a block that the other side of it never makes less.
const LEAST: usize = 32;
/// Along the shorter side a block has at most so many.
const MOST: usize = 1024;
/// Sums that are too long for one block, of too few rows to share, are made in so many parts, whatever the number of threads: the order is always the same.
const PARTS: usize = 8;

/// Axes that are walked as one: size and distance, the last fastest. Neighbours that lie in one run are one axis.
struct Walk(SmallVec<[(usize, isize); 6]>);

impl Walk {
    fn new(axes: &[(i64, i64)]) -> Walk {
        let mut all: SmallVec<[(usize, isize); 6]> = SmallVec::new();
        for &(n, s) in axes.iter().filter(|(n, _)| *n != 1) {
            let (n, s) = (n as usize, s as isize);
            match all.last_mut() {
                Some((outer, distance)) if *distance == s * n as isize => (*outer, *distance) = (*outer * n, s),
                _ => all.push((n, s)),
            }
        }
        Walk(all)
    }

    fn count(&self) -> usize {
        self.0.iter().map(|a| a.0).product()
    }

    /// The distance of neighbours along the last axis.
    fn last(&self) -> isize {
        self.0.last().map_or(1, |a| a.1)
    }

    /// Calls `run(place, distance, length)` for each run of the elements `from..to`.
    fn runs(&self, from: usize, to: usize, mut run: impl FnMut(isize, isize, usize)) {
        let Some((&(inner, step), outer)) = self.0.split_last() else { return run(0, 1, to - from) };
        let mut at = from;
        while at < to {
            let (mut rest, first) = (at / inner, at % inner);
            let length = (inner - first).min(to - at);
            let mut place = first as isize * step;
            for &(n, s) in outer.iter().rev() {
                place += (rest % n) as isize * s;
                rest /= n;
            }
            run(place, step, length);
            at += length;
        }
    }
}

/// A pointer that threads share: each writes rows of its own.
#[derive(Clone, Copy)]
struct Shared<T>(*mut T);
// SAFETY: whoever uses it says why no two threads write one place.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn get(self) -> *mut T {
        self.0
    }
}

/// The library's products, by type.
trait Float: Copy + Send + Sync + Default + std::ops::AddAssign {
    /// `c = a b`, or `c += a b`. Distances are those of rows and columns.
    ///
    /// # Safety
    /// The three matrices lie in memory, and nobody else writes `c`.
    unsafe fn multiply(
        m: usize,
        n: usize,
        k: usize,
        c: *mut Self,
        add: bool,
        a: (*const Self, [isize; 2]),
        b: (*const Self, [isize; 2]),
    );
}

macro_rules! floats {
    ($($t:ty, $gemm:expr;)*) => {$(
        impl Float for $t {
            unsafe fn multiply(m: usize, n: usize, k: usize, c: *mut Self, add: bool, a: (*const Self, [isize; 2]), b: (*const Self, [isize; 2])) {
                let (row, column) = (n as isize, 1);
                // The library prefers results whose columns are neighbours: c is row-major, so it is the transposed one of the factors in the other order.
                // SAFETY: the caller's promise.
                unsafe {
                    $gemm(
                        n, m, k, c, row, column, add,
                        b.0, b.1[0], b.1[1],
                        a.0, a.1[0], a.1[1],
                        1.0, 1.0, false, false, false, Parallelism::None,
                    )
                }
            }
        }
    )*};
}
floats! {
    f32, gemm_f32::gemm::f32::get_gemm_fn();
    f64, gemm_f64::gemm::f64::get_gemm_fn();
}

/// How a product is cut.
struct Cut {
    m: usize,
    n: usize,
    k: usize,
    /// Rows and summed elements of a block.
    rows: usize,
    deep: usize,
    /// Into how many parts sums are cut.
    parts: usize,
}

impl Cut {
    fn new(m: usize, n: usize, k: usize, bytes: usize) -> Cut {
        let room = BLOCK / bytes;
        let (rows, deep) = if m >= k {
            let deep = k.min(MOST);
            (m.min((room / deep).max(LEAST)), deep)
        } else {
            let rows = m.min(MOST);
            (rows, k.min((room / rows).max(LEAST)))
        };
        let few = m.div_ceil(rows) < 4 && k.div_ceil(deep) >= 2 * PARTS;
        Cut { m, n, k, rows, deep, parts: if few { PARTS } else { 1 } }
    }
}

/// The product.
///
/// # Safety
/// The factors and the result lie in memory as `p` says.
pub unsafe fn multiply(p: &Packed, a: *const u8, b: *const u8, c: *mut u8, threads: bool) -> Result<()> {
    // SAFETY: passed on.
    unsafe {
        match p.dtype {
            DType::F32 => typed::<f32>(p, a.cast(), b.cast(), c.cast(), threads),
            _ => typed::<f64>(p, a.cast(), b.cast(), c.cast(), threads),
        }
    }
}

unsafe fn typed<T: Float>(p: &Packed, a: *const T, b: *const T, c: *mut T, threads: bool) -> Result<()> {
    let (rows, summed) = (Walk::new(&p.rows), Walk::new(&p.summed));
    let (m, n, k) = (rows.count(), p.n as usize, summed.count());
    // Sizes that are symbols may turn out to be none: there is nothing to cut then.
    if m == 0 || n == 0 {
        return Ok(());
    }
    if k == 0 {
        // SAFETY: the whole of the result.
        unsafe { std::slice::from_raw_parts_mut(c, m * n).fill(T::default()) };
        return Ok(());
    }
    let cut = Cut::new(m, n, k, size_of::<T>());
    let results = cut.m * cut.n;
    let mut others: Vec<T> = memory((cut.parts - 1) * results)?;
    others.resize((cut.parts - 1) * results, T::default());
    // What threads copy together is asked for before they are.
    drop(memory::<T>(cut.rows * cut.deep)?);
    let (from, factor, to, more) = (Shared(a.cast_mut()), Shared(b.cast_mut()), Shared(c), Shared(others.as_mut_ptr()));
    let blocks = cut.m.div_ceil(cut.rows);
    let task = |buffer: &mut Vec<T>, task: usize| {
        let (block, part) = (task / cut.parts, task % cut.parts);
        let first = block * cut.rows;
        let many = cut.rows.min(cut.m - first);
        let each = cut.k.div_ceil(cut.parts);
        let (start, end) = ((part * each).min(cut.k), ((part + 1) * each).min(cut.k));
        // SAFETY: each block of rows of each part is one task's, and the factors are only read.
        unsafe {
            let c = match part {
                0 => to.get().add(first * cut.n),
                _ => more.get().add((part - 1) * results + first * cut.n),
            };
            for k in (start..end).step_by(cut.deep) {
                let deep = cut.deep.min(end - k);
                let a = pack(buffer, from.get(), (&rows, first, many), (&summed, k, deep));
                let b = (
                    factor.get().offset(k as isize * p.rhs[0] as isize).cast_const(),
                    [p.rhs[0] as isize, p.rhs[1] as isize],
                );
                T::multiply(many, cut.n, deep, c, k > start, a, b);
            }
            if part == 0 {
                // The library may begin a sum with its first term, so that one of nothing but -0 is -0.
                std::slice::from_raw_parts_mut(c, many * cut.n).iter_mut().for_each(|v| *v += T::default());
            }
        }
    };
    let tasks = blocks * cut.parts;
    if threads && tasks > 1 && shares_product(cut.m, cut.n, cut.k) {
        (0..tasks).into_par_iter().for_each_init(Vec::new, task);
    } else {
        let mut buffer = Vec::new();
        (0..tasks).for_each(|t| task(&mut buffer, t));
    }
    if cut.parts > 1 {
        // SAFETY: the whole of the result, which is written.
        let all = unsafe { std::slice::from_raw_parts_mut(c, results) };
        for part in others.chunks_exact(results) {
            all.iter_mut().zip(part).for_each(|(v, more)| *v += *more);
        }
    }
    Ok(())
}

/// A block of the left factor, one row after the other or one column after the other, whichever is how its elements lie; where it begins, and its distances.
///
/// # Safety
/// The block lies inside of the factor.
unsafe fn pack<T: Float>(
    buffer: &mut Vec<T>,
    a: *const T,
    (rows, first, many): (&Walk, usize, usize),
    (summed, k, deep): (&Walk, usize, usize),
) -> (*const T, [isize; 2]) {
    buffer.clear();
    buffer.reserve(many * deep);
    let by_columns =
        rows.last() == 1 && (summed.last() != 1 || rows.0.last().map(|a| a.0) > summed.0.last().map(|a| a.0));
    let (outer, inner) =
        if by_columns { ((summed, k, deep), (rows, first, many)) } else { ((rows, first, many), (summed, k, deep)) };
    outer.0.runs(outer.1, outer.1 + outer.2, |place, step, length| {
        for i in 0..length as isize {
            let base = place + i * step;
            inner.0.runs(inner.1, inner.1 + inner.2, |place, step, length| {
                // SAFETY: the caller's promise.
                unsafe {
                    let from = a.offset(base + place);
                    if step == 1 {
                        buffer.extend_from_slice(std::slice::from_raw_parts(from, length));
                    } else {
                        buffer.extend((0..length as isize).map(|j| *from.offset(j * step)));
                    }
                }
            });
        }
    });
    let distances = if by_columns { [1, many as isize] } else { [deep as isize, 1] };
    (buffer.as_ptr(), distances)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum that defines it.
    fn by_hand(p: &Packed, a: &[f64], b: &[f64]) -> Vec<f64> {
        let places = |axes: &[(i64, i64)]| -> Vec<i64> {
            axes.iter()
                .fold(vec![0], |all, (n, s)| all.iter().flat_map(|at| (0..*n).map(move |i| at + i * s)).collect())
        };
        let (rows, summed) = (places(&p.rows), places(&p.summed));
        let product = |r: i64, j: i64| {
            summed
                .iter()
                .enumerate()
                .map(|(k, s)| a[(r + s) as usize] * b[(k as i64 * p.rhs[0] + j * p.rhs[1]) as usize])
                .sum()
        };
        rows.iter().flat_map(|r| (0..p.n).map(move |j| (*r, j))).map(|(r, j)| product(r, j)).collect()
    }

    #[test]
    fn blocks_and_parts_are_the_whole_product() {
        // Windows of 3 x 3 of an image of 40 x 41 with 5 features, forward and as the derivative of the kernel has them; a view with odd distances.
        let (w, c) = (41, 5);
        let image = |rows: Vec<(i64, i64)>, summed: Vec<(i64, i64)>, n: i64, rhs: [i64; 2]| Packed {
            dtype: DType::F64,
            rows,
            summed,
            n,
            rhs,
        };
        let cases = [
            image(vec![(38, w * c), (39, c)], vec![(3, w * c), (3, c), (c, 1)], 7, [7, 1]),
            image(vec![(3, w * c), (3, c), (c, 1)], vec![(38, w * c), (39, c)], 7, [7, 1]),
            image(vec![(19, 2 * w * c), (2, 7), (3, 11)], vec![(5, 3), (4, 13)], 1, [1, 1]),
            image(vec![(1, 9)], vec![(8000, 1)], 3, [1, 8000]),
            image(vec![(2, 1), (2, 3)], vec![(1, 1)], 2, [2, 1]),
            image(vec![(2, 1), (0, 3)], vec![(4, 1)], 2, [2, 1]),
            image(vec![(2, 1), (2, 3)], vec![(4, 1), (0, 1)], 2, [2, 1]),
            image(vec![(2, 1)], vec![(4, 1)], 0, [0, 1]),
            image(vec![(0, 1)], vec![(0, 1)], 0, [0, 1]),
        ];
        let a: Vec<f64> = (0..40 * w * c).map(|i| (i as f64 * 0.37).sin()).collect();
        let b: Vec<f64> = (0..40_000).map(|i| (i as f64 * 0.73).cos()).collect();
        for p in &cases {
            let want = by_hand(p, &a, &b);
            for threads in [false, true] {
                let mut have = vec![f64::NAN; want.len()];
                // SAFETY: the views lie inside of the vectors.
                unsafe { typed(p, a.as_ptr(), b.as_ptr(), have.as_mut_ptr(), threads).unwrap() };
                for (h, w) in have.iter().zip(&want) {
                    assert!((h - w).abs() < 1e-10 * (1.0 + w.abs()), "{p:?}: {h} {w}");
                }
            }
        }
    }

    #[test]
    fn long_sums_of_few_rows_are_cut_and_wide_ones_are_not() {
        let cut = Cut::new(576, 64, 100_000, 4);
        assert_eq!((cut.rows, cut.parts), (576, PARTS));
        assert!(cut.rows * cut.deep * 4 <= BLOCK);
        let cut = Cut::new(100_000, 64, 576, 4);
        assert_eq!((cut.deep, cut.parts), (576, 1));
        assert!(cut.rows * cut.deep * 4 <= BLOCK && cut.rows >= LEAST);
    }
}

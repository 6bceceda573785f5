//! Averages with weights, covariances, counts in bins.

use super::{all_at_caller, at_caller};
use crate::array::data::collected;
use crate::array::{Array, IntoAxes};
use crate::error::{Result, error, fail};
use crate::types::{DType, Dim};

impl Array {
    /// The mean over some axes with a weight for each element; the weights broadcast.
    #[track_caller]
    pub fn average(&self, weights: &Array, axes: impl IntoAxes) -> Array {
        at_caller(|| {
            let axes = self.some_axes(axes)?;
            let (x, _) = self.widened()?;
            let weights = weights.try_cast(x.dtype())?.try_broadcast_to(self.shape().clone())?;
            ((x * &weights).sum_axes(axes.as_slice()) / weights.sum_axes(axes.as_slice())).ok()
        })
    }

    /// The covariances of the rows of a matrix, each a variable with one observation in each column, divided by their number less `ddof`
    /// (1 for an estimate without bias). Of a vector, its variance.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let x = Array::from([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]]);
    /// assert_eq!(x.cov(1).to_vec::<f64>().unwrap(), [1.0, -2.0, -2.0, 4.0]);
    /// ```
    #[track_caller]
    pub fn cov(&self, ddof: usize) -> Array {
        at_caller(|| self.covariances(ddof))
    }

    fn covariances(&self, ddof: usize) -> Result<Array> {
        let (x, dtype) = self.widened()?;
        if !(1..=2).contains(&x.rank()) {
            fail!(Shape, "covariances are of the rows of a matrix, not of {}", self.ty()?);
        }
        let n = self.dim(-1);
        let apart = &x - x.mean_keep(-1);
        let apart = if x.rank() == 1 { apart.expand_dims(0) } else { apart };
        let count = Array::from_dim(&(n - ddof).max(&Dim::from(0usize)), dtype.real_part()).try_cast(x.dtype())?;
        let all = apart.matmul(&apart.conj().t()) / count;
        (if x.rank() == 1 { all.reshape(()) } else { all }).ok()?.try_cast(dtype)
    }

    /// The correlations of the rows of a matrix: covariances divided by both standard deviations.
    #[track_caller]
    pub fn corrcoef(&self) -> Array {
        at_caller(|| {
            let all = self.covariances(1)?;
            if all.rank() == 0 {
                // A variable beside itself: 1, or NaN where it does not vary.
                return (all.recip() * all).ok();
            }
            let deviation = all.diagonal().real().sqrt().try_cast(all.dtype())?;
            let scaled = all / deviation.expand_dims(1) / deviation.expand_dims(0);
            // Rounding must not make a correlation larger than one.
            (if scaled.dtype().is_complex() { scaled } else { scaled.clamp(-1.0_f64, 1.0_f64) }).ok()
        })
    }

    /// How often each of `0..length` is among integers, as `i64`. Others are not counted.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// assert_eq!(Array::from([2, 0, 2, 9]).bincount(3usize).to_vec::<i64>().unwrap(), [1, 0, 2]);
    /// ```
    #[track_caller]
    pub fn bincount(&self, length: impl Into<Dim>) -> Array {
        let length = length.into();
        at_caller(|| {
            let ones = Array::from(1i64).try_broadcast_to(self.ty()?.shape().clone())?;
            self.counted_in(&ones, length)
        })
    }

    /// As [`Array::bincount`], where each integer counts as its weight.
    #[track_caller]
    pub fn bincount_weighted(&self, weights: &Array, length: impl Into<Dim>) -> Array {
        let length = length.into();
        at_caller(|| self.counted_in(&weights.try_broadcast_to(self.ty()?.shape().clone())?, length))
    }

    fn counted_in(&self, weights: &Array, length: Dim) -> Result<Array> {
        let weights = weights.try_flatten()?;
        weights.segments(&self.try_flatten()?, length, super::places::Fold::Sum)
    }

    /// Between which edges each number lies, as `i64`: `i` where `edges[i-1] <= x < edges[i]`. The edges increase.
    #[doc(alias = "bucketize")]
    #[track_caller]
    pub fn digitize(&self, edges: &Array) -> Array {
        edges.searchsorted_right(self)
    }

    /// As [`Array::digitize`], where the upper edge belongs to its bin: `edges[i-1] < x <= edges[i]`.
    #[track_caller]
    pub fn digitize_right(&self, edges: &Array) -> Array {
        edges.searchsorted(self)
    }

    /// The edges of `bins` bins of equal width from the smallest to the largest element.
    #[track_caller]
    pub fn histogram_bin_edges(&self, bins: usize) -> Array {
        at_caller(|| {
            let (x, _) = self.widened()?;
            let (low, high) = (x.min(), x.max());
            // Equal elements stand in the middle of a width of one.
            let none = low.eq(&high);
            let (low, high) = (none.select(&low - 0.5_f64, &low), none.select(&high + 0.5_f64, &high));
            let edges = bins.checked_add(1);
            let edges = edges.ok_or_else(|| error!(Size, "{bins} bins have more edges than can be counted"))?;
            Array::between(&low, &high, edges)
        })
    }

    /// How many elements lie in each of `bins` bins of equal width from the smallest to the largest, as `i64`, and the edges of the bins.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let (counts, edges) = Array::from([0.0, 1.0, 1.5, 4.0]).histogram(2);
    /// assert_eq!(counts.to_vec::<i64>().unwrap(), [3, 1]);
    /// assert_eq!(edges.to_vec::<f64>().unwrap(), [0.0, 2.0, 4.0]);
    /// ```
    #[track_caller]
    pub fn histogram(&self, bins: usize) -> (Array, Array) {
        let edges = self.histogram_bin_edges(bins);
        (self.histogram_in(&edges), edges)
    }

    /// How many elements lie between each pair of neighbouring edges, as `i64`. The last bin has its upper edge too.
    #[track_caller]
    pub fn histogram_in(&self, edges: &Array) -> Array {
        at_caller(|| {
            let ones = Array::from(1i64).try_broadcast_to(self.ty()?.shape().clone())?;
            self.binned(edges, &ones)
        })
    }

    /// As [`Array::histogram_in`], where each element counts as its weight.
    #[track_caller]
    pub fn histogram_weighted(&self, edges: &Array, weights: &Array) -> Array {
        at_caller(|| self.binned(edges, &weights.try_broadcast_to(self.ty()?.shape().clone())?))
    }

    fn binned(&self, edges: &Array, weights: &Array) -> Result<Array> {
        let bin = self.widened()?.0.try_flatten()?.bin_in(edges)?;
        bin.counted_in(weights, edges.dim(0) - 1usize)
    }

    /// The bin of each number; -1 outside of all.
    fn bin_in(&self, edges: &Array) -> Result<Array> {
        let [n] = edges.ty()?.shape().dims() else { fail!(Shape, "edges are a vector, not {}", edges.ty()?) };
        let edges = edges.try_cast(self.dtype())?;
        let bin = edges.searchsorted_right(self) - 1i64;
        let bin = self.eq(edges.index(-1)).select(&bin - 1i64, &bin);
        // NaN sorts behind all edges.
        (bin.ge(n - 1usize) | self.is_nan()).select(Array::from(-1i64), &bin).ok()
    }

    /// How many points, one in each row of a matrix, lie in each cell of a grid, as `i64`: a vector of edges for each column.
    #[track_caller]
    pub fn histogramdd<I>(&self, edges: I) -> Array
    where
        I: IntoIterator,
        I::Item: AsRef<Array>,
    {
        let edges: Vec<Array> = edges.into_iter().map(|a| a.as_ref().clone()).collect();
        at_caller(|| {
            let (x, _) = self.widened()?;
            let [_, d] = x.shape().dims() else { fail!(Shape, "points are the rows of a matrix, not {}", self.ty()?) };
            if d.as_usize() != Some(edges.len()) {
                fail!(Shape, "{} columns of points take as many lists of edges, not {}", d, edges.len());
            }
            let (mut cell, mut inside) = (Array::from(0i64), Array::from(true));
            let mut sizes = Vec::new();
            for (i, e) in edges.iter().enumerate() {
                let bin = x.index((.., i as i64)).bin_in(e)?;
                let size = e.dim(0) - 1usize;
                inside &= bin.ge(0i64);
                cell = cell * size.clone() + bin;
                sizes.push(size);
            }
            let shape: crate::types::Shape = sizes.into();
            let cell = inside.select(&cell, cell.full_like(-1i64)).ok()?;
            cell.bincount(shape.size()).ok()?.try_reshape(shape)
        })
    }

    /// How many points `(x, y)` lie in each cell of a grid, as `i64`; `x` goes down the rows.
    #[track_caller]
    pub fn histogram2d(&self, y: &Array, x_edges: &Array, y_edges: &Array) -> Array {
        Array::stack([&self.flatten(), &y.flatten()], 1).histogramdd([x_edges, y_edges])
    }

    /// Evenly spaced numbers between two that are computed, both included.
    pub(super) fn between(low: &Array, high: &Array, n: usize) -> Result<Array> {
        let steps = n.saturating_sub(1).max(1) as f64;
        let part = Array::from(collected(n, (0..n).map(|i| i as f64 / steps))?).try_cast(low.dtype())?;
        (low * (1i32 - &part) + high * &part).ok()
    }

    /// The element that is met most often in a vector, and how often. Of several the smallest.
    #[track_caller]
    pub fn mode(&self) -> (Array, Array) {
        let mut both = all_at_caller(2, || {
            let x = self.try_flatten()?.sort(0).ok()?;
            // In a sorted vector equal elements stand together: how many are up to the last of them, less how many are before.
            let count = x.searchsorted_right(&x) - x.searchsorted(&x);
            let place = count.argmax();
            Ok(vec![x.take(&place, 0), count.max()])
        })
        .into_iter();
        match (both.next(), both.next()) {
            (Some(value), Some(count)) => (value, count),
            (Some(failed), None) => (failed.clone(), failed),
            _ => (Array::from(0i64), Array::from(0i64)),
        }
    }

    /// The rank of each element among all, from 1, as `f64`; equal ones share the mean of their ranks. If one is NaN there is no order, and all ranks are NaN.
    #[track_caller]
    pub fn rankdata(&self) -> Array {
        at_caller(|| {
            let flat = self.try_flatten()?;
            let sorted = flat.sort(0);
            let (below, upto) = (sorted.searchsorted(&flat), sorted.searchsorted_right(&flat));
            let mut ranks = (below + upto + 1i64).cast(DType::F64) * 0.5_f64;
            if self.dtype().is_float() {
                ranks = flat.is_nan().any().select(f64::NAN, ranks);
            }
            ranks.ok()?.try_reshape(self.shape().clone())
        })
    }
}

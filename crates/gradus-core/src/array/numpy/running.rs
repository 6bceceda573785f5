//! What runs along an axis and is made of what came before: logarithms of running sums of exponentials.

use super::at_caller;
use crate::array::Array;
use crate::array::operand::resolve_axis;
use crate::error::{Result, error};
use crate::types::{Dim, Scalar};

impl Array {
    /// The logarithm of the sum of exponentials up to each place of an axis, without overflow. The size of the axis is known.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let y = Array::from([1000.0_f64, 1000.0]).cumlogsumexp(0);
    /// assert_eq!(y.to_vec::<f64>().unwrap(), [1000.0, 1000.0 + 2f64.ln()]);
    /// ```
    #[track_caller]
    pub fn cumlogsumexp(&self, axis: isize) -> Array {
        at_caller(|| self.running_logsumexp(axis))
    }

    /// In rounds: after the one of length `k` each place has the sum of the `2k` before it. Each round is one operation on all places.
    fn running_logsumexp(&self, axis: isize) -> Result<Array> {
        let (mut x, dtype) = self.widened()?;
        let axis = resolve_axis(axis, x.rank())?;
        let n = x.dim(axis as isize).as_usize().ok_or_else(|| {
            error!(NotConcrete, "axis {axis} of an array of shape {} has no known size", self.shape())
                .help("`scan` with `logaddexp` takes any size")
        })?;
        let mut length = 1;
        while length < n {
            let cut = |low: usize, high: usize| {
                let mut counts = vec![(Dim::from(0i64), Dim::from(0i64)); x.rank()];
                counts[axis] = (-Dim::from(low), -Dim::from(high)); // invariant: resolve_axis stays below the rank
                x.pad(&counts, Scalar::zero(x.dtype()))
            };
            // Nothing comes from before the axis, so the first places stay as they are, with their derivatives.
            let further = cut(length, 0).logaddexp(cut(0, length));
            x = Array::concatenate([cut(0, n - length), further], axis as isize).ok()?;
            length *= 2;
        }
        x.try_cast(dtype)
    }
}

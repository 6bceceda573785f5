//! Functions of whole numbers that take a loop: common divisors and multiples.

use crate::array::Array;
use crate::control::{History, while_loop};
use crate::error::{Location, Result, error};
use crate::trace::{Mode, at_place, caller_or_known, trace};
use crate::types::Type;

impl Array {
    /// The greatest common divisor of integers.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let x = Array::from([12, -18, 0]).gcd(&Array::from(8));
    /// assert_eq!(x.to_vec::<i32>().unwrap(), [4, 2, 8]);
    /// ```
    #[track_caller]
    pub fn gcd(&self, other: &Array) -> Array {
        let place = caller_or_known(Location::caller());
        Array::from(at_place(place, || divisor(self, other)).map_err(|e| e.at(place)))
    }

    /// The least common multiple of integers.
    #[track_caller]
    pub fn lcm(&self, other: &Array) -> Array {
        let common = self.gcd(other);
        let safe = common.eq(0i32).select(common.ones_like(), &common);
        self.abs() / safe * other.abs()
    }
}

/// Euclid's algorithm on all elements at once, until the last is done.
fn divisor(a: &Array, b: &Array) -> Result<Array> {
    let ty = a.ty()?;
    if !ty.dtype().is_int() {
        return Err(
            error!(DType, "integers have common divisors, not {ty}").help("cast first, as in `x.cast(DType::I64)`")
        );
    }
    let mut pair = Array::broadcast_arrays([a.abs(), b.abs()]);
    let (Some(b), Some(a)) = (pair.pop(), pair.pop()) else { return Err(error!(Rule, "a pair lost an array")) };
    let types = [a.ty()?, b.ty()?].map(|t: &Type| Array::of_type(t.clone()));
    let more = trace("divisible", &types, Mode::Abstract, |ab| vec![ab[1].ne(0i32).any()])?;
    let step = trace("euclid", &types, Mode::Abstract, |ab| {
        let (a, b) = (&ab[0], &ab[1]);
        let done = b.eq(0i32);
        let rest = a % done.select(b.ones_like(), b);
        vec![done.select(a, b), done.select(b, rest)]
    })?;
    let mut both = while_loop(&more, &step, &[a, b], History::default())?;
    both.truncate(1);
    both.pop().ok_or_else(|| error!(Rule, "a loop gave nothing"))
}

//! Arrays made from a rule instead of numbers: ranges, identities, triangles, diagonals, grids, and arrays like others.

use super::{apply, collect_arrays, value_as};
use crate::array::operand::{checked, resolve_axis};
use crate::array::{Array, Concrete, Operand, OperandValue};
use crate::error::{Result, error, fail};
use crate::primitives::shaping::{Iota, Slice};
use crate::types::{DType, Decision, Dim, Element, IntoShape, Scalar, Shape, Type};

/// A buffer of `n` elements; no memory is an error, not the end of the process.
fn filled<T: Element>(n: usize, value: impl Fn(usize) -> T) -> Result<Vec<T>> {
    let mut out = Vec::new();
    out.try_reserve_exact(n).map_err(|_| error!(Size, "no memory for {n} elements of {}", T::DTYPE))?;
    out.extend((0..n).map(value));
    Ok(out)
}

/// An integer of any dtype, exactly.
fn whole<T: Element>(value: T) -> i128 {
    // The bits of an unsigned number are its value; a signed one always fits in i64.
    if T::DTYPE.is_unsigned() { value.bits() as i128 } else { value.into_scalar().to_i64().unwrap_or_default().into() }
}

fn from_whole<T: Element>(value: i128) -> T {
    let scalar = if T::DTYPE.is_unsigned() { Scalar::U64(value as u64) } else { Scalar::I64(value as i64) };
    T::from_scalar(scalar.cast(T::DTYPE)).unwrap_or_default()
}

fn from_real<T: Element>(value: f64) -> T {
    T::from_scalar(Scalar::F64(value).cast(T::DTYPE)).unwrap_or_default()
}

fn try_arange<T: Element>(start: T, stop: T, step: T) -> Result<Array> {
    let too_long = || error!(Size, "a range from {start:?} to {stop:?} in steps of {step:?} is too long for an array");
    if T::DTYPE.is_int() {
        let (first, end, by) = (whole(start), whole(stop), whole(step));
        if by == 0 {
            fail!(Value, "a range in steps of 0 never ends");
        }
        // Rounded up: the last step may fall short of the end. i128 holds every difference of 64-bit integers.
        let n = ((end - first + by - by.signum()) / by).max(0);
        let n = usize::try_from(n).map_err(|_| too_long())?;
        let ty = Type::checked(T::DTYPE, [n].into_iter().collect())?;
        return Ok(Concrete::dense(ty, filled(n, |i| from_whole::<T>(first + i as i128 * by))?).into());
    }
    if !T::DTYPE.is_float() {
        fail!(DType, "a range has integers or floats, not {}", T::DTYPE);
    }
    let [first, end, by] = [start, stop, step].map(|v| v.into_scalar().to_f64());
    let n = ((end - first) / by).ceil();
    if by == 0.0 || !first.is_finite() || n.is_nan() {
        fail!(Value, "a range from {start:?} to {stop:?} in steps of {step:?} has no elements to name");
    }
    // Beyond 2^53 neighbouring elements could not be told apart, long before memory ends.
    if n > (1u64 << 53) as f64 {
        return Err(too_long());
    }
    let n = n.max(0.0) as usize;
    let ty = Type::checked(T::DTYPE, [n].into_iter().collect())?;
    Ok(Concrete::dense(ty, filled(n, |i| from_real::<T>(first + i as f64 * by))?).into())
}

fn try_linspace<T: Element>(start: T, stop: T, n: usize) -> Result<Array> {
    if !T::DTYPE.is_float() {
        return Err(error!(DType, "evenly spaced numbers are floats, not {}", T::DTYPE).help("`arange` takes integers"));
    }
    let [first, last] = [start, stop].map(|v| v.into_scalar().to_f64());
    let ty = Type::checked(T::DTYPE, [n].into_iter().collect())?;
    let steps = n.saturating_sub(1).max(1) as f64;
    let step = (last - first) / steps;
    let at = |i: usize| match step.is_finite() || !first.is_finite() || !last.is_finite() {
        true => first + i as f64 * step,
        // The way from one to the other is longer than any number.
        false => first * (1.0 - i as f64 / steps) + last * (i as f64 / steps),
    };
    let mut values = filled(n, |i| from_real::<T>(at(i)))?;
    // The end is met exactly, whatever the steps have been rounded to.
    if let ([_, .., end], true) = (values.as_mut_slice(), n > 1) {
        *end = stop;
    }
    Ok(Concrete::dense(ty, values).into())
}

/// How `min(a, b)` may be written; an error if only a call could tell.
fn smaller(a: Dim, b: Dim, what: &Type) -> Result<Dim> {
    match b.at_least(&a) {
        Decision::Yes => Ok(a),
        _ if a.at_least(&b) == Decision::Yes => Ok(b),
        _ => Err(error!(Shape, "how long the diagonal of {what} is depends on the call")
            .help("name the dimensions alike if they are equal")),
    }
}

/// Where the elements of the `k`-th diagonal stand in a row-major `n` by `m` matrix: the first, and how many. They are
/// `m + 1` apart.
fn diagonal_run(n: &Dim, m: &Dim, k: isize, ty: &Type) -> Result<(Dim, Dim)> {
    let k = k as i64;
    let (first, rows, columns) =
        if k >= 0 { (Dim::from(k), n.clone(), m - k) } else { (m * k.saturating_neg(), n + k, m.clone()) };
    let zero = Dim::from(0usize);
    let length = smaller(rows, columns, ty)?;
    if zero.at_least(&length) == Decision::Yes { Ok((zero.clone(), zero)) } else { Ok((first, length)) }
}

impl Array {
    /// Counts along one axis, the same along all others: `iota(I32, [2, 3], 1)` is `[[0, 1, 2], [0, 1, 2]]`.
    #[doc(alias = "broadcasted_iota")]
    #[track_caller]
    pub fn iota(dtype: DType, shape: impl IntoShape, axis: isize) -> Array {
        checked(Array::try_iota(dtype, shape.into_shape(), axis))
    }

    #[track_caller]
    pub(in crate::array) fn try_iota(dtype: DType, shape: Shape, axis: isize) -> Result<Array> {
        let axis = resolve_axis(axis, shape.rank())?;
        apply(Iota { dtype, shape, axis }, &[])
    }

    /// The numbers from `start` up to but without `stop`, in steps of `step`.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// assert_eq!(Array::arange(5, 0, -2).to_vec::<i32>().unwrap(), [5, 3, 1]);
    /// ```
    #[track_caller]
    pub fn arange<T: Element>(start: T, stop: T, step: T) -> Array {
        checked(try_arange(start, stop, step))
    }

    /// `n` evenly spaced numbers from `start` to `stop`, both included.
    #[track_caller]
    pub fn linspace<T: Element>(start: T, stop: T, n: usize) -> Array {
        checked(try_linspace(start, stop, n))
    }

    /// The identity matrix: `Array::eye::<f64>(3)`.
    #[doc(alias = "identity")]
    #[track_caller]
    pub fn eye<T: Element>(n: impl Into<Dim>) -> Array {
        checked(Array::try_eye(T::DTYPE, n.into()))
    }

    #[track_caller]
    fn try_eye(dtype: DType, n: Dim) -> Result<Array> {
        let shape: Shape = [n.clone(), n].into_iter().collect();
        let (rows, columns) = Array::coordinates(shape)?;
        rows.eq(&columns).cast(dtype).ok()
    }

    /// Row and column numbers of a matrix.
    #[track_caller]
    fn coordinates(shape: Shape) -> Result<(Array, Array)> {
        Ok((Array::try_iota(DType::I64, shape.clone(), 0)?, Array::try_iota(DType::I64, shape, 1)?))
    }

    /// Where a matrix is on or below its `k`-th diagonal.
    #[track_caller]
    fn lower(n: Dim, m: Dim, k: isize) -> Result<Array> {
        let (rows, columns) = Array::coordinates([n, m].into_iter().collect())?;
        // No matrix is that large; further out the difference below would wrap.
        let k = (k as i64).clamp(-(1 << 62), 1 << 62);
        rows.ge(columns - k).ok()
    }

    /// A matrix of ones on and below the `k`-th diagonal, zeros above.
    #[track_caller]
    pub fn tri<T: Element>(rows: impl Into<Dim>, columns: impl Into<Dim>, k: isize) -> Array {
        checked(Array::lower(rows.into(), columns.into(), k)).cast(T::DTYPE)
    }

    /// The part of the matrices (the last two axes) on and below the `k`-th diagonal, zeros above.
    #[track_caller]
    pub fn tril(&self, k: isize) -> Array {
        checked(self.triangle(k, true))
    }

    /// The part of the matrices (the last two axes) on and above the `k`-th diagonal, zeros below.
    #[track_caller]
    pub fn triu(&self, k: isize) -> Array {
        // On or above k is not on or below k - 1.
        checked(self.triangle(k.saturating_sub(1), false))
    }

    #[track_caller]
    fn triangle(&self, k: isize, below: bool) -> Result<Array> {
        let ty = self.ty()?;
        let [.., n, m] = ty.shape().dims() else { fail!(Shape, "a triangle is of a matrix, not of {ty}") };
        let mask = Array::lower(n.clone(), m.clone(), k)?;
        let zero = Array::scalar(Scalar::zero(ty.dtype()));
        if below { mask.select(self, &zero).ok() } else { mask.select(&zero, self).ok() }
    }

    /// The diagonal of the first two axes, which becomes the last axis. See [`Array::diagonal_axes`].
    #[track_caller]
    pub fn diagonal(&self) -> Array {
        checked(self.try_diagonal(0, 0, 1))
    }

    /// The `k`-th diagonal of two axes (above the main one for positive `k`). It becomes the last axis.
    #[track_caller]
    pub fn diagonal_axes(&self, k: isize, axis1: isize, axis2: isize) -> Array {
        checked(self.try_diagonal(k, axis1, axis2))
    }

    #[track_caller]
    pub(in crate::array) fn try_diagonal(&self, k: isize, axis1: isize, axis2: isize) -> Result<Array> {
        let ty = self.ty()?;
        if ty.rank() < 2 {
            fail!(Shape, "a diagonal is of a matrix, not of {ty}");
        }
        let (a, b) = (resolve_axis(axis1, ty.rank())?, resolve_axis(axis2, ty.rank())?);
        if a == b {
            fail!(Axis, "a diagonal runs along two axes, but {axis1} and {axis2} are one");
        }
        let mut order: Vec<usize> = (0..ty.rank()).filter(|i| *i != a && *i != b).collect();
        order.extend([a, b]);
        let x = self.permuted(order)?;
        let [outer @ .., n, m] = x.shape().dims() else { fail!(Rule, "a permutation changed the rank") };
        let (first, length) = diagonal_run(n, m, k, ty)?;
        let flat = x.try_reshape(outer.iter().cloned().chain([n * m]).collect())?;
        let last = outer.len();
        let result: Shape = outer.iter().cloned().chain([length.clone()]).collect();
        if length.constant() == Some(0) {
            return flat.slice_axis(last, Dim::from(0usize), Dim::from(0usize))?.try_reshape(result);
        }
        if let Some(step) = (m + 1usize).as_usize() {
            let mut start = vec![Dim::from(0usize); last];
            let mut limit = outer.to_vec();
            limit.push(&first + (&length - 1usize) * step + 1usize);
            start.push(first);
            let steps = (0..=last).map(|i| if i == last { step } else { 1 }).collect();
            return apply(Slice { start, limit, step: steps }, &[flat])?.try_reshape(result);
        }
        // A step has to be a number. With the run cropped or filled up to whole rows of m + 1, the diagonal is the
        // first column.
        let (zero, row) = (Dim::from(0usize), m + 1usize);
        let mut low = vec![zero.clone(); last];
        let mut high = low.clone();
        high.push(&length * &row - (n * m - &first));
        low.push(-first);
        let rows = flat.padded(low, high, vec![0; last + 1], Array::scalar(Scalar::zero(ty.dtype())))?;
        let rows = rows.try_reshape(outer.iter().cloned().chain([length, row]).collect())?;
        rows.slice_axis(last + 1, zero, Dim::from(1usize))?.try_reshape(result)
    }

    /// A vector as the `k`-th diagonal of a square matrix of zeros; of a matrix, its `k`-th diagonal.
    #[track_caller]
    pub fn diag(x: &Array, k: isize) -> Array {
        checked(x.try_diag(k))
    }

    #[track_caller]
    fn try_diag(&self, k: isize) -> Result<Array> {
        let ty = self.ty()?;
        let length = match ty.shape().dims() {
            [length] => length.clone(),
            [_, _] => return self.try_diagonal(k, 0, 1),
            _ => fail!(Shape, "a diagonal is made from a vector or taken from a matrix, not from {ty}"),
        };
        let n = &length + k.unsigned_abs();
        let first = if k >= 0 { Dim::from(k as i64) } else { &n * k.unsigned_abs() };
        let square: Shape = [n.clone(), n.clone()].into_iter().collect();
        square.check()?;
        // Each element at the start of a row of n + 1; the rows end to end, moved to where the diagonal starts.
        let (zero, one) = (Dim::from(0usize), Dim::from(1usize));
        let fill = Array::scalar(Scalar::zero(ty.dtype()));
        let column = self.try_reshape([length.clone(), one].into_iter().collect())?;
        let rows = column.padded(vec![zero.clone(), zero.clone()], vec![zero, n.clone()], vec![0, 0], fill.clone())?;
        let rest = &n * &n - &first - &length * (&n + 1usize);
        rows.try_flatten()?.padded(vec![first], vec![rest], vec![0], fill)?.try_reshape(square)
    }

    /// For each integer a row of `n` zeros with a one at its place; numbers outside `0..n` give zeros only.
    #[track_caller]
    pub fn one_hot(&self, n: impl Into<Dim>, dtype: DType) -> Array {
        checked(self.try_one_hot(n.into(), dtype))
    }

    #[track_caller]
    fn try_one_hot(&self, n: Dim, dtype: DType) -> Result<Array> {
        let ty = self.ty()?;
        if !ty.dtype().is_int() {
            return Err(
                error!(DType, "`one_hot` is of integers, not of {ty}").help("cast first, as in `x.cast(DType::I32)`")
            );
        }
        // In i64, because a small dtype would count round and round along a long axis.
        let wanted = self.try_cast(DType::I64)?.try_reshape(ty.shape().inserted(ty.rank(), Dim::from(1usize)))?;
        let places = Array::try_iota(DType::I64, [n].into_iter().collect(), 0)?;
        wanted.eq(&places).cast(dtype).ok()
    }

    /// Zeros of the same type.
    #[track_caller]
    pub fn zeros_like(&self) -> Array {
        checked(self.like(Scalar::zero(self.dtype())))
    }

    /// Ones of the same type.
    #[track_caller]
    pub fn ones_like(&self) -> Array {
        checked(self.like(Scalar::one(self.dtype())))
    }

    #[track_caller]
    fn like(&self, value: Scalar) -> Result<Array> {
        crate::array::operand::number_like(value, self.ty()?)
    }

    /// A value, broadcast to the same type.
    #[track_caller]
    pub fn full_like(&self, value: impl Operand) -> Array {
        checked(self.try_full_like(value.into_operand()))
    }

    #[track_caller]
    fn try_full_like(&self, value: OperandValue) -> Result<Array> {
        let ty = self.ty()?;
        value_as(value, ty.dtype())?.try_broadcast_to(ty.shape().clone())
    }

    /// Coordinate arrays of a grid from one vector for each axis. As in NumPy the first vector runs along axis 1 and
    /// the second along axis 0 (`x` to the right, `y` down); [`Array::meshgrid_ij`] keeps the order. On a mistake
    /// there is one array, which carries the error.
    #[track_caller]
    pub fn meshgrid<I>(vectors: I) -> Vec<Array>
    where
        I: IntoIterator,
        I::Item: AsRef<Array>,
    {
        match Array::try_meshgrid(collect_arrays(vectors), true) {
            Ok(all) => all,
            Err(e) => vec![checked(Err(e))],
        }
    }

    /// Coordinate arrays of a grid from one vector for each axis, in this order. On a mistake there is one array,
    /// which carries the error.
    #[track_caller]
    pub fn meshgrid_ij<I>(vectors: I) -> Vec<Array>
    where
        I: IntoIterator,
        I::Item: AsRef<Array>,
    {
        match Array::try_meshgrid(collect_arrays(vectors), false) {
            Ok(all) => all,
            Err(e) => vec![checked(Err(e))],
        }
    }

    #[track_caller]
    fn try_meshgrid(vectors: Result<Vec<Array>>, swapped: bool) -> Result<Vec<Array>> {
        let vectors = vectors?;
        let mut dims = Vec::with_capacity(vectors.len());
        for v in &vectors {
            match v.shape().dims() {
                [] => dims.push(Dim::from(1usize)),
                [d] => dims.push(d.clone()),
                _ => fail!(Shape, "a grid is made from vectors, not from {}", v.ty()?),
            }
        }
        let axis_of = |i: usize| if swapped && vectors.len() > 1 && i < 2 { 1 - i } else { i };
        let shape: Shape = (0..dims.len()).map(|i| dims[axis_of(i)].clone()).collect(); // invariant: axis_of permutes
        let mut all = Vec::with_capacity(vectors.len());
        for (i, v) in vectors.iter().enumerate() {
            let thin = (0..dims.len()).map(|a| if a == axis_of(i) { dims[i].clone() } else { Dim::from(1usize) });
            all.push(v.try_reshape(thin.collect())?.try_broadcast_to(shape.clone())?);
        }
        Ok(all)
    }
}

//! Decompositions that StableHLO lacks, as programs of basic operations: loops over columns and rotations, with the interpreter's conventions for what a
//! decomposition leaves open. Each is written for one matrix in the language of arrays; a batch of matrices is `vmap` of it.
//!
//! They are as exact as those of the interpreter up to rounding, and slower than a library: a program is exported with what every reader has.

use gradus_core::control::{History, Steps, scan, while_loop};
use gradus_core::primitives::Op;
use gradus_core::primitives::index::{Bounds, DynamicSlice, DynamicUpdateSlice, Gather};
use gradus_core::primitives::reduce::{ReduceAnd, ReduceMax, ReduceSum};
use gradus_core::trace::{Traced, bind, trace};
use gradus_core::{Array, DType, Dim, Error, Mode, Result, Scalar};

/// Sweeps of rotations after which nothing is left to rotate; each squares what is left, so ten are many.
const SWEEPS: usize = 40;

/// A number of a dtype.
fn number(value: f64, dtype: DType) -> Array {
    Array::scalar(Scalar::F64(value).cast(dtype))
}

fn place(value: usize) -> Array {
    Array::scalar(Scalar::I32(value as i32))
}

/// Places along an axis of a matrix.
fn places(rows: usize, columns: usize, axis: isize) -> Array {
    Array::iota(DType::I32, [rows, columns], axis)
}

fn adjoint(x: &Array) -> Array {
    x.swap_axes(-1, -2).conj()
}

fn identity(n: usize, dtype: DType) -> Array {
    Array::eye::<bool>(n).cast(dtype)
}

fn sum(x: &Array, axis: usize) -> Array {
    bind(Op::new(ReduceSum { axes: vec![axis] }), &[x.clone()])
}

/// A window of a matrix that starts at a row and a column.
fn window(x: &Array, row: &Array, column: &Array, sizes: [usize; 2]) -> Array {
    bind(Op::new(DynamicSlice { sizes: sizes.as_slice().into() }), &[x.clone(), row.clone(), column.clone()])
}

fn put(x: &Array, piece: &Array, row: &Array, column: &Array) -> Array {
    bind(Op::fixed(&DynamicUpdateSlice), &[x.clone(), piece.clone(), row.clone(), column.clone()])
}

/// Columns in another order.
fn columns_at(x: &Array, order: &Array, rows: usize) -> Array {
    let gather = Gather {
        offset_dims: vec![0],
        collapsed_dims: vec![1],
        operand_batch_dims: vec![],
        index_batch_dims: vec![],
        index_map: vec![1],
        sizes: [rows, 1].as_slice().into(),
        bounds: Bounds::Clip,
    };
    bind(Op::new(gather), &[x.clone(), order.expand_dims(-1)])
}

/// Traces a body on the types of arrays. What goes wrong inside travels with the arrays.
fn traced(name: &str, like: &[Array], body: impl FnOnce(&[Array]) -> Result<Vec<Array>>) -> Result<Traced> {
    let specs = like.iter().map(|a| a.ty().cloned().map(Array::of_type)).collect::<Result<Vec<_>>>()?;
    let failed = |e: Error| like.iter().map(|_| Array::from(e.clone())).collect();
    trace(name, &specs, Mode::Abstract, |inputs| body(inputs).unwrap_or_else(failed))
}

/// Runs a body for every number below `count`: it takes the carries and the number, and gives the next carries.
fn repeat(
    count: usize,
    carries: &[Array],
    body: impl FnOnce(&[Array], &Array) -> Result<Vec<Array>>,
) -> Result<Vec<Array>> {
    let mut like = carries.to_vec();
    like.push(place(0));
    let step = traced("step", &like, |inputs| match inputs.split_last() {
        Some((i, state)) => body(state, i),
        None => Ok(vec![]),
    })?;
    let numbers = Array::iota(DType::I32, [count], 0);
    scan(&step, carries, &[numbers], &Dim::from(count), false, 1, Steps::Keep)
}

/// Runs a body as long as its first carry, a bool, is true.
fn until_done(carries: &[Array], body: impl FnOnce(&[Array]) -> Result<Vec<Array>>) -> Result<Vec<Array>> {
    let condition = traced("more", carries, |state| Ok(state[..1].to_vec()))?; // invariant: the bool is first
    let body = traced("sweep", carries, body)?;
    while_loop(&condition, &body, carries, History::Limit(SWEEPS))
}

/// `P·A = L·U` with the largest of each column as its pivot: both factors in one, the exchanges, the order of the rows.
pub(super) fn lu(a: &Array, m: usize, n: usize) -> Result<Vec<Array>> {
    let (least, dtype) = (m.min(n), a.dtype());
    let (zero, order) = (place(0), Array::iota(DType::I32, [m, 1], 0));
    let pivots = Array::zeros::<i32>([least, 1]);
    let (rows, columns) = (places(m, 1, 0), places(1, n, 1));
    let done = repeat(least, &[a.clone(), pivots, order], |state, k| {
        let (a, pivots, order) = (&state[0], &state[1], &state[2]); // invariant: three carries
        let column = window(a, &zero, k, [m, 1]);
        let size = rows.ge(k).select(column.abs(), number(-1.0, dtype.real_part()));
        let pivot = size.reshape([m]).argmax().cast(DType::I32);
        let pivots = put(pivots, &pivot.reshape([1, 1]), k, &zero);
        let swapped = |x: &Array, width: usize| {
            let (upper, lower) = (window(x, k, &zero, [1, width]), window(x, &pivot, &zero, [1, width]));
            put(&put(x, &lower, k, &zero), &upper, &pivot, &zero)
        };
        let (a, order) = (swapped(a, n), swapped(order, 1));
        let column = window(&a, &zero, k, [m, 1]);
        let top = window(&a, k, k, [1, 1]);
        // A column of zeros has nothing to divide, and nothing to take away.
        let empty = top.eq(number(0.0, dtype));
        let factors = rows.gt(k).select(&column / empty.select(number(1.0, dtype), &top), number(0.0, dtype));
        let row = columns.gt(k).select(window(&a, k, &zero, [1, n]), number(0.0, dtype));
        let a = &a - &factors * &row;
        let kept = rows.gt(k).select(&factors, window(&a, &zero, k, [m, 1]));
        Ok(vec![put(&a, &kept, &zero, k), pivots, order])
    })?;
    Ok(vec![done[0].clone(), done[1].reshape([least]), done[2].reshape([m])]) // invariant: three carries
}

/// `A = Q·R` by reflections: a real diagonal of R, of complex matrices not negative. Q is square.
fn reflections(a: &Array, m: usize, n: usize) -> Result<[Array; 2]> {
    let dtype = a.dtype();
    let (real, zero) = (dtype.real_part(), place(0));
    let rows = places(m, 1, 0);
    let done = repeat(m.min(n), &[identity(m, dtype), a.clone()], |state, k| {
        let (q, a) = (&state[0], &state[1]); // invariant: two carries
        let column = rows.ge(k).select(window(a, &zero, k, [m, 1]), number(0.0, dtype));
        let alpha = window(&column, k, &zero, [1, 1]);
        let tail = rows.gt(k).select(column.abs(), number(0.0, real));
        // Squares of what is very large or small are taken of what is divided by the largest.
        let largest = bind(Op::new(ReduceMax { axes: vec![0] }), &[column.abs()]).reshape([1, 1]);
        let scale = largest.eq(number(0.0, real)).select(number(1.0, real), &largest);
        let part = column.abs() / &scale;
        let norm = sum(&(&part * &part), 0).reshape([1, 1]).sqrt() * &scale;
        let rest = bind(Op::new(ReduceMax { axes: vec![0] }), &[tail]).reshape([1, 1]);
        let beta = alpha.real().lt(number(0.0, real)).select(&norm, -&norm);
        // Nothing below the diagonal, and a real diagonal: it stays as it is.
        let still = rest.eq(number(0.0, real)) & alpha.eq(alpha.real().cast(dtype));
        let beta = still.select(alpha.real(), &beta).cast(dtype);
        let lead = &alpha - &beta;
        let safe = lead.eq(number(0.0, dtype)).select(number(1.0, dtype), &lead);
        let vector = rows.eq(k).select(number(1.0, dtype), &column / &safe);
        let divisor = beta.eq(number(0.0, dtype)).select(number(1.0, dtype), &beta);
        let tau = still.select(number(0.0, dtype), (&beta - &alpha) / divisor);
        // Aᴴ = A − τ̄·v·(vᴴ·A), and Q = Q − τ·(Q·v)·vᴴ.
        let moved = a - tau.conj() * vector.matmul(&adjoint(&vector).matmul(a));
        let turned = q - &tau * q.matmul(&vector).matmul(&adjoint(&vector));
        Ok(vec![turned, moved])
    })?;
    let (q, r) = (done[0].clone(), done[1].triu(0)); // invariant: two carries
    if !dtype.is_complex() {
        return Ok([q, r]);
    }
    let diagonal = places(m, n, 0).eq(places(m, n, 1)).select(r.real(), number(0.0, real));
    let below = sum(&diagonal, 1).lt(number(0.0, real));
    let signs = below.select(number(-1.0, real), number(1.0, real)).cast(dtype);
    Ok([q * signs.reshape([1, m]), r * signs.reshape([m, 1])])
}

/// `A = Q·R`.
pub(super) fn qr(a: &Array, m: usize, n: usize, full: bool) -> Result<Vec<Array>> {
    let [q, r] = reflections(a, m, n)?;
    let k = if full { m } else { m.min(n) };
    Ok(vec![window(&q, &place(0), &place(0), [m, k]), window(&r, &place(0), &place(0), [k, n])])
}

/// The cosine, the sine and the phase of the rotation that makes two numbers beside `off` independent: `off` is what couples them, of the size that is
/// worth it, and `gap` half the difference of the two.
fn rotation(off: &Array, gap: &Array, active: &Array) -> [Array; 3] {
    let (dtype, real) = (off.dtype(), gap.dtype());
    let size = off.abs();
    let active = active & size.gt(number(0.0, real));
    let safe = active.select(&size, number(1.0, real));
    let phase = active.select(off / safe.cast(dtype), number(1.0, dtype));
    let zeta = gap / &safe;
    let sign = zeta.lt(number(0.0, real)).select(number(-1.0, real), number(1.0, real));
    let one = number(1.0, real);
    // √(1 + ζ²) of a ζ whose square overflows is |ζ|.
    let large = zeta.abs().gt(number(1e15, real));
    let inner = large.select(&one, &zeta);
    let root = large.select(zeta.abs(), (&one + &inner * &inner).sqrt());
    let t = sign / (zeta.abs() + root);
    let c = &one / (&one + &t * &t).sqrt();
    let s = &t * &c;
    [active.select(&c, &one), active.select(&s, number(0.0, real)), phase]
}

/// Turns two columns: `x' = c·x − s·ȳ`, `y' = s·x + c·ȳ` with `ȳ = y·phase̅`.
fn turn_columns(x: &Array, [p, q]: [&Array; 2], rows: usize, [c, s, phase]: &[Array; 3]) -> Array {
    let dtype = x.dtype();
    let (zero, c, s) = (place(0), c.cast(dtype), s.cast(dtype));
    let (first, second) = (window(x, &zero, p, [rows, 1]), window(x, &zero, q, [rows, 1]) * phase.conj());
    let (new_first, new_second) = (&c * &first - &s * &second, &s * &first + &c * &second);
    // The second is written first: where a rotation is none, both may be one column.
    put(&put(x, &new_second, &zero, q), &new_first, &zero, p)
}

/// The epsilon of a real dtype.
fn epsilon(dtype: DType) -> f64 {
    if dtype == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON }
}

/// The pair of columns of a step: `k` counts all places of a square, of which those above its diagonal are pairs.
fn pair(k: &Array, n: usize) -> [Array; 3] {
    let n = place(n);
    let (p, q) = (k / &n, k % &n);
    let active = p.lt(&q);
    [p, q, active]
}

/// Whether all numbers are finite.
fn all_finite(x: &Array) -> Array {
    let finite = if x.dtype().is_complex() { x.real().is_finite() & x.imag().is_finite() } else { x.is_finite() };
    bind(Op::new(ReduceAnd { axes: (0..x.rank()).collect() }), &[finite])
}

/// NaN in every place unless a condition holds.
fn if_finite(finite: &Array, x: Array) -> Array {
    let nan = number(f64::NAN, x.dtype());
    finite.select(&x, nan)
}

/// Divides each column by a phase, so that its first component of at least half the size of the largest is real and positive; gives the phases too.
fn unit_phase(v: &Array, columns: usize) -> (Array, Array) {
    let dtype = v.dtype();
    let size = v.abs();
    let largest = bind(Op::new(ReduceMax { axes: vec![0] }), &[size.clone()]).reshape([1, columns]);
    let large = (&size + &size).ge(&largest);
    let leads = &large & large.cast(DType::I32).cumsum(0).eq(1_i32);
    let lead = sum(&leads.select(v, number(0.0, dtype)), 0).reshape([1, columns]);
    let length = lead.abs();
    let none = length.eq(number(0.0, dtype.real_part()));
    let phase =
        none.select(number(1.0, dtype), lead / none.select(number(1.0, dtype.real_part()), &length).cast(dtype));
    let turned = v * phase.conj();
    // What a rotation leaves of an imaginary part is rounding.
    let exact = turned.real().cast(dtype);
    (leads.select(&exact, &turned), phase)
}

/// The eigenvalues of a Hermitian matrix in ascending order and its eigenvectors, by Jacobi's rotations.
pub(super) fn eigh(a: &Array, n: usize, vectors: bool) -> Result<Vec<Array>> {
    let dtype = a.dtype();
    let real = dtype.real_part();
    let strict = a.tril(-1);
    let on = Array::eye::<bool>(n);
    let a = &strict + adjoint(&strict) + on.select(a.real(), number(0.0, real)).cast(dtype);
    let finite = all_finite(&a);
    let a = finite.select(&a, number(0.0, dtype));
    // Squares are safe where the largest element is near 1.
    let largest = bind(Op::new(ReduceMax { axes: vec![0, 1] }), &[a.abs()]);
    let scale = largest.eq(number(0.0, real)).select(number(1.0, real), &largest);
    let scaled = &a / scale.cast(dtype);
    let start = [Array::scalar(Scalar::Bool(n > 1)), scaled, identity(n, dtype)];
    let done = until_done(&start, |state| {
        let turned = repeat(n * n, &state[1..], |state, k| {
            let (a, v) = (&state[0], &state[1]); // invariant: two carries
            let [p, q, active] = pair(k, n);
            let at = |i: &Array, j: &Array| window(a, i, j, [1, 1]).reshape([0usize; 0]);
            let off = at(&p, &q);
            let gap = (at(&q, &q).real() - at(&p, &p).real()) / number(2.0, real);
            // What is left of rounding is not worth a rotation, and its phase is no number of size 1.
            let active = active & off.abs().gt(number(epsilon(real) / 2.0, real));
            let by = rotation(&off, &gap, &active);
            let columns = turn_columns(a, [&p, &q], n, &by);
            // The rows are turned as the columns of the adjoint.
            let both = adjoint(&turn_columns(&adjoint(&columns), [&p, &q], n, &by));
            Ok(vec![both, turn_columns(v, [&p, &q], n, &by)])
        })?;
        let off = on.select(number(0.0, real), turned[0].abs()); // invariant: two carries
        let left = bind(Op::new(ReduceMax { axes: vec![0, 1] }), &[off]);
        let more = left.gt(number(epsilon(real) * n as f64, real));
        Ok(vec![more, turned[0].clone(), turned[1].clone()]) // invariant: as above
    })?;
    let w = sum(&on.select(done[1].real(), number(0.0, real)), 0) * &scale; // invariant: three carries
    let order = w.argsort(-1).cast(DType::I32);
    let sorted = columns_at(&w.reshape([1, n]), &order, 1).reshape([n]);
    let mut made = vec![if_finite(&finite, sorted)];
    if vectors {
        let (v, _) = unit_phase(&columns_at(&done[2], &order, n), n); // invariant: as above
        made.push(if_finite(&finite, v));
    }
    Ok(made)
}

/// `A = U·diag(s)·Vᴴ` of a matrix with at least as many rows as columns, by rotating columns until they are orthogonal (Hestenes): U with as many columns as A,
/// s descending, V. Columns of U whose singular value is 0 are a completion.
fn tall_svd(a: &Array, m: usize, n: usize) -> Result<[Array; 3]> {
    let dtype = a.dtype();
    let real = dtype.real_part();
    let start = [Array::scalar(Scalar::Bool(n > 1)), a.clone(), identity(n, dtype)];
    let done = until_done(&start, |state| {
        let zero = number(0.0, real);
        let turned = repeat(n * n, &[state[1].clone(), state[2].clone(), zero], |state, k| {
            let (a, v, worst) = (&state[0], &state[1], &state[2]); // invariant: three carries
            let [p, q, active] = pair(k, n);
            let column = |j: &Array| window(a, &place(0), j, [m, 1]);
            let (x, y) = (column(&p), column(&q));
            let dot = |x: &Array, y: &Array| sum(&(x.conj() * y), 0).reshape([0usize; 0]);
            let (alpha, beta, off) = (dot(&x, &x).real(), dot(&y, &y).real(), dot(&x, &y));
            let size = (&alpha * &beta).sqrt();
            let coupled = off.abs() / size.gt(number(0.0, real)).select(&size, number(1.0, real));
            let active = active & coupled.gt(number(epsilon(real), real));
            let by = rotation(&off, &((&beta - &alpha) / number(2.0, real)), &active);
            let worst = active.select(worst.maximum(&coupled), worst);
            Ok(vec![turn_columns(a, [&p, &q], m, &by), turn_columns(v, [&p, &q], n, &by), worst])
        })?;
        let more = turned[2].gt(number(epsilon(real) * 4.0, real)); // invariant: as above
        Ok(vec![more, turned[0].clone(), turned[1].clone()]) // invariant: as above
    })?;
    let (a, v) = (&done[1], &done[2]); // invariant: three carries
    let norms = sum(&(a.conj() * a), 0).real().sqrt();
    let order = (-&norms).argsort(-1).cast(DType::I32);
    let s = columns_at(&norms.reshape([1, n]), &order, 1);
    let (a, v) = (columns_at(a, &order, m), columns_at(v, &order, n));
    let none = s.eq(number(0.0, real));
    let u = &a / none.select(number(1.0, real), &s).cast(dtype);
    let [q, _] = reflections(&u, m, n)?;
    let completion = window(&q, &place(0), &place(0), [m, n]);
    let u = none.broadcast_to([m, n]).select(&completion, &u);
    Ok([u, s.reshape([n]), v])
}

/// Columns that complete orthonormal ones to a square.
fn completed(u: &Array, m: usize, n: usize) -> Result<Array> {
    if m == n {
        return Ok(u.clone());
    }
    let [q, _] = reflections(u, m, n)?;
    let more = window(&q, &place(0), &place(n), [m, m - n]);
    Ok(Array::concatenate([u, &more], 1))
}

/// U, s and Vᴴ.
pub(super) fn svd(a: &Array, m: usize, n: usize, full: bool, vectors: bool) -> Result<Vec<Array>> {
    let dtype = a.dtype();
    let real = dtype.real_part();
    let finite = all_finite(a);
    let a = finite.select(a, number(0.0, dtype));
    let largest = bind(Op::new(ReduceMax { axes: vec![0, 1] }), &[a.abs()]);
    let scale = largest.gt(number(0.0, real)).select(&largest, number(1.0, real));
    let scaled = &a / scale.cast(dtype);
    let tall = m >= n;
    let [u, s, v] = if tall { tall_svd(&scaled, m, n)? } else { tall_svd(&adjoint(&scaled), n, m)? };
    let (u, v) = if tall { (u, v) } else { (v, u) };
    let s = if_finite(&finite, s * &scale);
    if !vectors {
        return Ok(vec![s]);
    }
    let k = m.min(n);
    // Both sides turn together.
    let (u, phase) = unit_phase(&u, k);
    let v = v * phase.conj();
    let (u, v) = if full { (completed(&u, m, k)?, completed(&v, n, k)?) } else { (u, v) };
    let u = if full && m > k { unit_phase(&u, m).0 } else { u };
    Ok(vec![if_finite(&finite, u), s, if_finite(&finite, adjoint(&v))])
}

/// The pseudo-inverse, from the singular values that count.
pub(super) fn pinv(a: &Array, m: usize, n: usize) -> Result<Vec<Array>> {
    let dtype = a.dtype();
    let real = dtype.real_part();
    let parts = svd(a, m, n, false, true)?;
    let (u, s, vh) = (&parts[0], &parts[1], &parts[2]); // invariant: three parts
    let largest = bind(Op::new(ReduceMax { axes: vec![0] }), &[s.clone()]);
    let cutoff = largest * number(10.0 * m.max(n) as f64 * epsilon(real), real);
    let counts = s.gt(&cutoff);
    let inverse = counts.select(number(1.0, real) / counts.select(s, number(1.0, real)), number(0.0, real));
    let odd = s.is_nan();
    let inverse = odd.select(s, &inverse).cast(dtype);
    Ok(vec![(adjoint(vh) * inverse.reshape([1, m.min(n)])).matmul(&adjoint(u))])
}

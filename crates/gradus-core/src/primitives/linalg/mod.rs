//! Decompositions of matrices, and systems that are solved by them. Matrices are in the last two axes, with any number of axes in
//! front: a batch is one more of those. `x_dot` is a tangent, `x_bar` a cotangent.
//!
//! Numbers come from loops of our own where matrices are small and from faer where they are not. Rules are written in the language of
//! arrays, so derivatives have derivatives. What a decomposition leaves open (the sign of an eigenvector) is fixed by `unit_phase`,
//! so that values do not depend on who computed them, and derivatives are those of the values.
//!
//! Decompositions square what they are given, so a matrix whose largest element is very large or small is taken times a power of two and its factors
//! back (`Scaled`), as in LAPACK. A power of two changes no digit, and matrices of ordinary size are left alone.
//!
//! *Invariants.* A matrix that has no decomposition gives NaN, never an error: whether it has one is only known when it runs.

mod cholesky;
mod eig;
mod eigh;
mod lu;
mod pinv;
mod plain;
mod qr;
mod schur;
mod slogdet;
mod small;
mod solve;
mod svd;
mod triangular;

use std::sync::LazyLock;

use faer::dyn_stack::{MemBuffer, StackReq};
use faer::{MatMut, MatRef};

pub use cholesky::Cholesky;
pub use eig::Eig;
pub use eigh::Eigh;
pub use lu::Lu;
pub use pinv::Pinv;
pub use qr::Qr;
pub use schur::Schur;
pub use slogdet::SlogDet;
pub use solve::Solve;
pub use svd::Svd;
pub use triangular::TriangularSolve;

use self::plain::Field;
use super::index::{Bounds, Gather};
use super::reduce::{ReduceMax, complex_wave, wave};
use super::{Batch, Batched, Entry, Infer, Limits, NotFinite, Op, entry};
use crate::array::{Array, Concrete, memory};
use crate::error::{Result, counted, error, fail};
use crate::trace::{bind, bind_all};
use crate::types::{DType, Decision, Dim, Element, Scalar, Shape, Type};

/// The operations of this folder.
pub(super) fn entries() -> Vec<Entry> {
    vec![
        entry::<Cholesky>("cholesky"),
        entry::<TriangularSolve>("triangular_solve"),
        entry::<Lu>("lu"),
        entry::<Solve>("solve"),
        entry::<SlogDet>("slogdet"),
        entry::<Pinv>("pinv"),
        entry::<Eigh>("eigh"),
        entry::<Svd>("svd"),
        entry::<Qr>("qr"),
        entry::<Eig>("eig"),
        entry::<Schur>("schur"),
    ]
}

/// Whether who computes it decides about its last places.
pub(crate) fn is_decomposition(op: &Op) -> bool {
    ENTRIES.iter().any(|e| e.is_of(op))
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(entries);

/// As `dispatch`, for the numbers that matrices are decomposed in.
macro_rules! dispatch_field {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::types::dispatch!(@ $dtype, $T => $body;
            F32 f32, F64 f64, C64 $crate::types::Complex<f32>, C128 $crate::types::Complex<f64>;
            $crate::error::fail!(DType, "matrices are decomposed in f32, f64, c64 and c128, not in {}", $dtype))
    };
}
use dispatch_field;

// Types.

/// The operand's type, its axes in front, and its matrices' rows and columns.
fn matrix(infer: &Infer<'_>, operand: usize) -> Result<(Type, Shape, Dim, Dim)> {
    let Some(ty) = infer.inputs.get(operand) else { fail!(Verify, "has no operand {operand}") };
    if !matches!(ty.dtype(), DType::F32 | DType::F64 | DType::C64 | DType::C128) {
        return Err(error!(DType, "wants matrices of f32, f64, c64 or c128, not {ty}")
            .help("cast first, as in `x.cast(DType::F64)`"));
    }
    let [front @ .., rows, columns] = ty.shape().dims() else {
        return Err(error!(Shape, "wants matrices in the last two axes, and {ty} has {}", counted(ty.rank(), "axis"))
            .help("a vector becomes a matrix of one column by `x.expand_dims(-1)`"));
    };
    Ok((ty.clone(), front.iter().cloned().collect(), rows.clone(), columns.clone()))
}

/// As [`matrix`], of square ones.
fn square(infer: &mut Infer<'_>, operand: usize) -> Result<(Type, Shape, Dim)> {
    let (ty, front, rows, columns) = matrix(infer, operand)?;
    if !infer.equal(&rows, &columns) {
        fail!(Shape, "wants square matrices, not {ty}");
    }
    Ok((ty, front, rows))
}

/// Dimensions behind the axes in front.
fn behind(front: &Shape, dims: &[&Dim]) -> Shape {
    front.iter().chain(dims.iter().copied()).cloned().collect()
}

/// The complex dtype of the same precision.
fn complex_of(dtype: DType) -> DType {
    if matches!(dtype, DType::F32 | DType::C64) { DType::C64 } else { DType::C128 }
}

/// Checks the operands of a system: square matrices and right-hand sides of as many rows. The type of the solution.
fn system(infer: &mut Infer<'_>) -> Result<Type> {
    infer.arity(2)?;
    let (a, front, n) = square(infer, 0)?;
    let (b, b_front, rows, _) = matrix(infer, 1)?;
    if a.dtype() != b.dtype() {
        fail!(DType, "operands of different dtypes: {a} and {b}");
    }
    if !infer.same_shape(&front, &b_front) || !infer.equal(&n, &rows) {
        return Err(error!(Shape, "a system of {a} has right-hand sides of as many rows, not {b}")
            .help("right-hand sides are the columns of a matrix [.., n, k], with the axes in front of the system"));
    }
    Ok(b)
}

// Numbers.

/// How many matrices there are, and their rows and columns.
fn sizes(x: &Concrete) -> [usize; 3] {
    match x.dims() {
        [front @ .., rows, columns] => [front.iter().product(), *rows, *columns],
        _ => [0, 0, 0],
    }
}

/// Matrices one after the other: chunks of so many elements, none if a matrix has none.
fn each<T>(elements: &[T], size: usize) -> impl Iterator<Item = &[T]> {
    elements.chunks_exact(size.max(1))
}

/// The same, to be written.
fn each_mut<T>(elements: &mut [T], size: usize) -> impl Iterator<Item = &mut [T]> {
    elements.chunks_exact_mut(size.max(1))
}

/// Memory filled with zeros; no memory is an error, not the end of the process.
fn zeroed<T: Element>(count: usize) -> Result<Vec<T>> {
    let mut out = memory(count)?;
    out.resize(count, T::default());
    Ok(out)
}

/// Scratch memory for faer.
fn scratch(need: StackReq) -> Result<MemBuffer> {
    MemBuffer::try_new(need).map_err(|_| error!(Size, "no memory for a decomposition"))
}

/// A matrix in rows, as faer sees it.
fn rows_of<T>(elements: &[T], rows: usize, columns: usize) -> MatRef<'_, T> {
    MatRef::from_row_major_slice(elements, rows, columns)
}

/// A matrix in columns, which is how faer likes them.
fn columns_of<T>(elements: &mut [T], rows: usize, columns: usize) -> MatMut<'_, T> {
    MatMut::from_column_major_slice_mut(elements, rows, columns)
}

/// Copies a matrix in columns to one in rows, block by block so that neither leaves the cache.
fn to_rows<T: Copy>(from: &[T], to: &mut [T], rows: usize, columns: usize) {
    const BLOCK: usize = 16;
    for i0 in (0..rows).step_by(BLOCK) {
        for j0 in (0..columns).step_by(BLOCK) {
            for i in i0..rows.min(i0 + BLOCK) {
                for j in j0..columns.min(j0 + BLOCK) {
                    to[i * columns + j] = from[j * rows + i];
                }
            }
        }
    }
}

/// Copies a matrix in rows to one in columns.
fn to_columns<T: Copy>(from: &[T], to: &mut [T], rows: usize, columns: usize) {
    // Rows of a matrix are columns of its transpose.
    to_rows(from, to, columns, rows);
}

/// The exponent of the power of two that a matrix is divided by, so that its largest element is near 1: 0 where squares are safe as it is, where it has
/// nothing but zeros, and where a number is not finite.
fn excess<'a, T: Field>(matrix: impl IntoIterator<Item = &'a T>) -> i32 {
    let mut largest = 0.0_f64;
    for v in matrix {
        let size = v.largest_part();
        if !size.is_finite() {
            return 0;
        }
        largest = largest.max(size);
    }
    // The logarithm of a subnormal number is one like any other.
    let exponent = if largest > 0.0 { largest.log2().floor() as i32 } else { 0 };
    if T::SAFE.contains(&exponent) { 0 } else { exponent }
}

/// All elements times `2^power`.
fn rescale<T: Field>(elements: &mut [T], power: i32) {
    if power != 0 {
        elements.iter_mut().for_each(|v| *v = v.times_power_of_two(power));
    }
}

/// Matrices of one size, one after the other, each as it is safe to decompose.
struct Scaled<T> {
    copy: Vec<T>,
}

impl<T: Field> Scaled<T> {
    fn new() -> Scaled<T> {
        Scaled { copy: Vec::new() }
    }

    /// A matrix divided by a power of two, and the power's exponent.
    fn of<'a>(&'a mut self, matrix: &'a [T]) -> Result<(&'a [T], i32)> {
        let power = excess(matrix);
        if power == 0 {
            return Ok((matrix, 0));
        }
        self.copy.clear();
        if self.copy.capacity() < matrix.len() {
            self.copy = memory(matrix.len())?;
        }
        self.copy.extend_from_slice(matrix);
        rescale(&mut self.copy, -power);
        Ok((&self.copy, power))
    }
}

fn all_finite<T: Field>(elements: &[T]) -> bool {
    elements.iter().all(|v| v.finite())
}

/// Makes the diagonal of a Hermitian matrix what it is: real.
fn real_diagonal<T: Field>(matrix: &mut [T], n: usize) {
    matrix.iter_mut().step_by(n + 1).for_each(|v| *v = T::of_part(v.part()));
}

/// Divides each column of a matrix (in columns) by a phase, so that its first component of at least half the size of the largest is real
/// and positive. Returns the phase of column `j` by `phase(j)` to who must turn something else with it.
fn unit_phase<T: Field>(matrix: &mut [T], rows: usize, mut phase: impl FnMut(usize, T)) {
    for (j, column) in each_mut(matrix, rows).enumerate() {
        let largest = column.iter().map(|v| v.modulus()).fold(T::Part::default(), |a, b| if b > a { b } else { a });
        let Some(lead) = column.iter().position(|v| v.modulus() + v.modulus() >= largest) else { continue };
        let turn = column[lead].phase();
        for v in column.iter_mut() {
            *v *= turn.conjugate();
        }
        // What a rotation leaves of its imaginary part is rounding.
        column[lead] = T::of_part(column[lead].part());
        phase(j, turn);
    }
}

// Rules.

/// The conjugate transpose of the last two axes.
fn adjoint(x: &Array) -> Array {
    x.swap_axes(-1, -2).conj()
}

/// The identity of a dtype.
fn identity(n: &Dim, dtype: DType) -> Array {
    Array::eye::<bool>(n.clone()).cast(dtype)
}

/// One number of a dtype.
fn number(value: f64, dtype: DType) -> Array {
    Array::scalar(Scalar::F64(value).cast(dtype))
}

/// The Hermitian matrix of which an operation reads the lower triangle.
fn hermitian(lower: &Array) -> Array {
    let strict = lower.tril(-1);
    let diagonal = identity(&lower.dim(-1), DType::Bool).select(lower.real(), number(0.0, lower.dtype().real_part()));
    &strict + adjoint(&strict) + diagonal.cast(lower.dtype())
}

/// The diagonal of the last two axes.
fn diagonal(x: &Array) -> Array {
    x.diagonal_axes(0, -2, -1)
}

/// The rows of matrices in another order: row `i` of the result is row `places[i]`.
fn rows_at(x: &Array, places: &Array) -> Array {
    let rank = x.rank();
    let Some(row) = rank.checked_sub(2) else { return x.clone() };
    let front: Vec<usize> = (0..row).collect();
    let mut sizes = vec![Dim::from(1usize); rank];
    sizes[rank - 1] = x.dim(-1);
    let gather = Gather {
        offset_dims: vec![rank - 1],
        collapsed_dims: vec![row],
        operand_batch_dims: front.clone(),
        index_batch_dims: front,
        index_map: vec![row],
        sizes: sizes.into(),
        // Out of an axis that may be empty nothing is taken; only filling has a meaning there.
        bounds: if x.dim(-2).at_least(&Dim::from(1usize)) == Decision::Yes { Bounds::Clip } else { Bounds::Fill },
    };
    bind(Op::new(gather), &[x.clone(), places.expand_dims(-1)])
}

/// The tangent of vectors (columns) whose phase [`unit_phase`] fixed: what turns all of a column is taken out, so that its leading component
/// stays real. Real vectors have no phase that could change.
fn keep_phase(v: &Array, v_dot: &Array) -> Array {
    turned_back(v, v_dot, &turn(v, v_dot))
}

/// How fast the phase of each column turns; none for real vectors.
fn turn(v: &Array, v_dot: &Array) -> Option<Array> {
    if !v.dtype().is_complex() {
        return None;
    }
    let size = v.abs();
    // The operation itself has a maximum of nothing; the method of arrays wants an element.
    let largest = bind(Op::new(ReduceMax { axes: vec![v.rank().saturating_sub(2)] }), &[size.clone()]).expand_dims(-2);
    let large = (&size + &size).ge(&largest);
    let leads = &large & large.cast(DType::I32).cumsum(-2).eq(1_i32);
    let at = |x: Array| leads.select(&x, number(0.0, x.dtype())).sum_keep(-2);
    Some(at(v_dot.imag()) / at(v.real()))
}

/// The tangent of vectors without what turns each of them.
fn turned_back(v: &Array, v_dot: &Array, turn: &Option<Array>) -> Array {
    match turn {
        Some(turn) => v_dot - v * Array::complex(&turn.zeros_like(), turn),
        None => v_dot.clone(),
    }
}

/// Reciprocals of the differences of a vector's elements, `1 / (w_j − w_i)`, with zeros on the diagonal.
fn gaps(w: &Array) -> Array {
    let (one, zero) = (number(1.0, w.dtype()), number(0.0, w.dtype()));
    let on = identity(&w.dim(-1), DType::Bool);
    let difference = w.expand_dims(-2) - w.expand_dims(-1);
    on.select(&zero, one / on.select(number(1.0, w.dtype()), difference))
}

/// What reports of NaN say of a decomposition.
fn limits(words: &'static str) -> Limits {
    Limits::NONE.making(NotFinite::Words(words))
}

/// The batching rule of an operation that takes any axes in front.
fn in_front(batch: &Batch<'_>, op: Op) -> Result<Batched> {
    Ok(Batched::Outputs(bind_all(op, &batch.all())))
}

/// The batching rule of a system: where only right-hand sides are many, they are more columns of the same system.
fn more_columns(batch: &Batch<'_>, op: Op) -> Result<Batched> {
    let ([a, b], &[false, true]) = (batch.inputs, batch.batched) else { return in_front(batch, op) };
    let rank = b.rank();
    let shape = b.shape().clone();
    // [batch, .., n, k] to [.., n, batch, k] to [.., n, batch·k], and back.
    let order: Vec<isize> = (1..rank as isize - 1).chain([0, rank as isize - 1]).collect();
    let back: Vec<isize> =
        std::iter::once(rank as isize - 2).chain(0..rank as isize - 2).chain([rank as isize - 1]).collect();
    let apart = b.transpose(order);
    let (k, apart_shape) = (shape[rank - 1].clone(), apart.shape().clone()); // invariant: the type rule wants two axes
    let wide: Shape = apart_shape.iter().take(rank - 2).cloned().chain([batch.size * &k]).collect();
    let x = bind(op, &[a.clone(), apart.reshape(&wide)]);
    Batched::one(x.reshape(&apart_shape).transpose(back))
}

// Samples.

/// Matrices whose decompositions are far from any that is not unique: distinct numbers, and a diagonal that grows.
fn matrices(dims: &[usize], seed: usize) -> Array {
    steep(wave(dims, seed) / 4.0_f64, dims)
}

/// The same with complex numbers.
fn complex_matrices(dims: &[usize], seed: usize) -> Array {
    steep(complex_wave(dims, seed) / Scalar::C128(crate::types::Complex::new(4.0, 0.0)), dims)
}

fn steep(x: Array, dims: &[usize]) -> Array {
    let (&[.., n, m], dtype) = (dims, x.dtype()) else { return x };
    let place = Array::iota(DType::I64, [n, m], 0);
    let on = place.eq(Array::iota(DType::I64, [n, m], 1));
    x + on.select(((place + 1_i64) * 2_i64).cast(dtype), number(0.0, dtype))
}

/// Positive definite ones: only the lower triangle counts, and the diagonal outweighs it.
fn definite(dims: &[usize], seed: usize) -> Array {
    matrices(dims, seed) + number(1.0, DType::F64) * identity(&Dim::from(*dims.last().unwrap_or(&0)), DType::F64)
}

//! Products of more than two matrices, and matrices made in a pattern.

use gradus_core::{Array, DType, Decision, Dim, ErrorKind, Index, Result, Shape};

use super::{front, number, wrong};
use crate::line::on_line;

/// The product of a chain of matrices, in the order that takes the fewest multiplications. The first and the last may be vectors.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let (a, x) = (Array::ones::<f64>([20, 20]), Array::ones::<f64>([20]));
/// // two products with a vector, none of two matrices
/// assert_eq!(linalg::multi_dot([&a, &a, &x]).to_vec::<f64>()?, [400.0; 20]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn multi_dot<I>(matrices: I) -> Array
where
    I: IntoIterator,
    I::Item: AsRef<Array>,
{
    let all: Vec<Array> = matrices.into_iter().map(|a| a.as_ref().clone()).collect();
    on_line(|| {
        let inner = all.len().saturating_sub(1);
        for (i, a) in all.iter().enumerate() {
            let ty = a.ty()?;
            if !(ty.rank() == 2 || ty.rank() == 1 && (i == 0 || i == inner)) {
                let message =
                    format!("`multi_dot` multiplies matrices, and vectors at its ends, not {ty} in place {i}");
                return wrong(ErrorKind::Shape, message, "`matmul` multiplies matrices with axes in front");
            }
        }
        let Some(last) = all.last() else {
            return wrong(ErrorKind::Value, "`multi_dot` of no matrices".to_string(), "give it at least one");
        };
        // Sizes between the matrices; a symbol counts as a large one.
        let size = |d: Dim| d.as_usize().map_or(1e3, |n| n as f64);
        let mut sizes: Vec<f64> =
            all.iter().map(|a| if a.rank() == 1 && all.len() > 1 { 1.0 } else { size(a.dim(0)) }).collect();
        if let (1, true) = (last.rank(), all.len() > 1) {
            // A vector at the end is a column.
            sizes.pop();
            sizes.push(size(last.dim(0)));
            sizes.push(1.0);
        } else {
            sizes.push(size(last.dim(-1)));
        }
        Ok(in_order(&all, 0, all.len(), &cuts(&sizes)))
    })
}

/// Where to cut the product of the matrices from `i` up to `j`, for the least work: the textbook's table.
fn cuts(sizes: &[f64]) -> Vec<Vec<usize>> {
    let n = sizes.len() - 1;
    let (mut work, mut cut) = (vec![vec![0.0_f64; n + 1]; n + 1], vec![vec![0; n + 1]; n + 1]);
    for length in 2..=n {
        for i in 0..=n - length {
            let j = i + length;
            work[i][j] = f64::INFINITY;
            for k in i + 1..j {
                let cost = work[i][k] + work[k][j] + sizes[i] * sizes[k] * sizes[j];
                if cost < work[i][j] {
                    (work[i][j], cut[i][j]) = (cost, k);
                }
            }
        }
    }
    cut
}

fn in_order(all: &[Array], i: usize, j: usize, cut: &[Vec<usize>]) -> Array {
    if j == i + 1 {
        return all[i].clone();
    }
    let k = cut[i][j].clamp(i + 1, j - 1);
    in_order(all, i, k, cut).matmul(&in_order(all, k, j, cut))
}

/// Kronecker's product: each element of `a` times all of `b`, as blocks. Arrays of fewer axes get axes of size 1 in front.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let k = linalg::kron(&Array::from([1.0_f64, 2.0]), &Array::from([1.0_f64, 1.0]));
/// assert_eq!(k.to_vec::<f64>()?, [1.0, 1.0, 2.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn kron(a: &Array, b: &Array) -> Array {
    on_line(|| {
        let (a, b) = (a.clone().ok()?, b.clone().ok()?);
        let rank = a.rank().max(b.rank());
        let filled = |x: &Array| -> Vec<Dim> {
            (x.rank()..rank).map(|_| Dim::from(1usize)).chain(x.shape().iter().cloned()).collect()
        };
        let (da, db) = (filled(&a), filled(&b));
        // [a0, 1, a1, 1, ..] times [1, b0, 1, b1, ..].
        let one = || Dim::from(1usize);
        let left: Shape = da.iter().flat_map(|d| [d.clone(), one()]).collect();
        let right: Shape = db.iter().flat_map(|d| [one(), d.clone()]).collect();
        let whole: Shape = da.iter().zip(&db).map(|(x, y)| x * y).collect();
        Ok((a.reshape(&left) * b.reshape(&right)).reshape(&whole))
    })
}

/// The cross product of vectors of three elements in the last axis; axes in front broadcast.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let z = linalg::cross(&Array::from([1.0_f64, 0.0, 0.0]), &Array::from([0.0_f64, 1.0, 0.0]));
/// assert_eq!(z.to_vec::<f64>()?, [0.0, 0.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn cross(a: &Array, b: &Array) -> Array {
    on_line(|| {
        for x in [a, b] {
            let ty = x.ty()?;
            if ty.rank() == 0 || x.dim(-1).equals(&Dim::from(3usize)) == Decision::No {
                return wrong(
                    ErrorKind::Shape,
                    format!("`cross` is of vectors of three elements, not of {ty}"),
                    "they are in the last axis",
                );
            }
        }
        let (x, y) = (|i: i64| a.index((Index::Ellipsis, i)), |i: i64| b.index((Index::Ellipsis, i)));
        let part = |i: i64, j: i64| x(i) * y(j) - x(j) * y(i);
        Ok(Array::stack([part(1, 2), part(2, 0), part(0, 1)], -1))
    })
}

/// The sum of products along the last axis, with the first vector conjugated; axes in front broadcast.
#[track_caller]
pub fn vecdot(a: &Array, b: &Array) -> Array {
    on_line(|| (a.conj() * b).sum_axes(-1).ok())
}

/// Matrices as blocks along the diagonal of one, with zeros elsewhere. A vector is a matrix of one row.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let d = linalg::block_diag([&Array::from([[1.0_f64]]), &Array::from([[2.0_f64, 3.0]])]);
/// assert_eq!(d.to_vec::<f64>()?, [1.0, 0.0, 0.0, 0.0, 2.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn block_diag<I>(blocks: I) -> Array
where
    I: IntoIterator,
    I::Item: AsRef<Array>,
{
    let all: Vec<Array> = blocks.into_iter().map(|a| a.as_ref().clone()).collect();
    on_line(|| {
        let mut matrices = Vec::with_capacity(all.len());
        for x in all {
            matrices.push(match x.ty()?.rank() {
                0 => x.expand_dims([0, 1]),
                1 => x.expand_dims(0),
                2 => x,
                _ => {
                    return wrong(
                        ErrorKind::Shape,
                        format!("`block_diag` is made of matrices, not of {}", x.ty()?),
                        "`vmap` it over axes in front",
                    );
                }
            });
        }
        let dtype = matrices.iter().try_fold(DType::Bool, |d, m| d.promote(m.dtype())).unwrap_or(DType::F64);
        let zero = Dim::from(0usize);
        let whole = matrices.iter().fold(zero.clone(), |n, m| n + m.dim(1));
        let mut before = zero.clone();
        let mut rows = Vec::with_capacity(matrices.len());
        for m in matrices {
            let next = &before + m.dim(1);
            let after = &whole - &next;
            rows.push(m.cast(dtype).pad(&[(zero.clone(), zero.clone()), (before, after)], number(0.0, dtype)));
            before = next;
        }
        if rows.is_empty() {
            return wrong(ErrorKind::Value, "`block_diag` of no matrices".to_string(), "give it at least one");
        }
        Array::concatenate(&rows, 0).ok()
    })
}

/// The matrix with one number along each diagonal: `column` is its first column and `row` its first row, of which the first element is not read.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let t = linalg::toeplitz(&Array::from([1.0_f64, 2.0]), &Array::from([0.0_f64, 3.0, 4.0]));
/// assert_eq!(t.to_vec::<f64>()?, [1.0, 3.0, 4.0, 2.0, 1.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn toeplitz(column: &Array, row: &Array) -> Array {
    on_line(|| {
        for x in [column, row] {
            if x.ty()?.rank() == 0 {
                return wrong(
                    ErrorKind::Shape,
                    format!("`toeplitz` is made of vectors, not of {}", x.ty()?),
                    "they are in the last axis",
                );
            }
        }
        let (n, m) = (column.dim(-1), row.dim(-1));
        // The column upwards, then the row: element (i, j) is in place n − 1 − i + j.
        let line = Array::concatenate([column.flip(-1), row.index((Index::Ellipsis, 1..))], -1);
        let shape: Shape = [n.clone(), m].into_iter().collect();
        let (i, j) = (Array::iota(DType::I64, &shape, 0), Array::iota(DType::I64, &shape, 1));
        let places = j - i + Array::from_dim(&(n - 1usize), DType::I64);
        let rank = front(&line, 1).rank() as isize;
        let picked: Result<Array> = line.take(&places, rank).ok();
        picked
    })
}

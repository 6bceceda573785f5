//! Systems of equations, inverses and determinants.

use gradus_core::primitives::Op;
use gradus_core::primitives::linalg::{Pinv, SlogDet, Solve, TriangularSolve};
use gradus_core::{Array, Decision, Dim, ErrorKind, Index, Result, Shape};

use super::{
    Triangle, called_for, front, identity, matrices, number, results, squares, times_power_of_two, unit_size, wrong,
};
use crate::control::scan;
use crate::line::on_line;

/// A system and its right-hand sides with one dtype and the same axes in front. A vector on the right is one column, and so is the solution.
fn with_system(what: &str, a: &Array, b: &Array, solve: impl FnOnce(&Array, &Array) -> Array) -> Result<Array> {
    squares(what, a)?;
    let (ta, tb) = (a.ty()?, b.ty()?);
    let Some(dtype) = ta.dtype().promote(tb.dtype()).filter(|d| d.is_inexact()) else {
        return wrong(
            ErrorKind::DType,
            format!("`{what}` of {ta} and {tb}, which have no dtype in common"),
            "cast one of them",
        );
    };
    let (a, b) = (a.cast(dtype), b.cast(dtype));
    let rows = if b.rank() == 1 { b.dim(0) } else { b.dim(-2) };
    if b.rank() == 0 || rows.equals(&a.dim(-1)) == Decision::No {
        let message =
            format!("`{what}` of {ta} and {tb}: a system has right-hand sides of as many rows as it has columns");
        return wrong(
            ErrorKind::Shape,
            message,
            "a right-hand side is a vector [n], or matrices [.., n, k] of columns",
        );
    }
    if b.rank() == 1 {
        let column = b.expand_dims(-1);
        let wanted: Shape = front(&a, 2).iter().cloned().chain(column.shape().iter().cloned()).collect();
        return solve(&a, &column.broadcast_to(&wanted)).squeeze(-1).ok();
    }
    if a.rank() == 2 && b.rank() > 2 {
        // One system for all: more columns.
        let apart = b.move_axis(-2, 0);
        let flat =
            apart.reshape([a.dim(-1), apart.shape().without(|axis| axis == 0).size()].into_iter().collect::<Shape>());
        return solve(&a, &flat).reshape(apart.shape()).move_axis(0, -2).ok();
    }
    // Sums broadcast their shapes; only their shape is wanted.
    let outer = |x: &Array| Array::of_type(x.ty().map_or(ta.clone(), Clone::clone).with_shape(front(x, 2)));
    let common = (outer(&a) + outer(&b)).ok()?.shape().clone();
    let spread = |x: &Array| {
        let last = x.shape().iter().skip(x.rank() - 2).cloned(); // invariant: both have two axes
        x.broadcast_to(common.iter().cloned().chain(last).collect::<Shape>())
    };
    solve(&spread(&a), &spread(&b)).ok()
}

/// The solution x of `a·x = b`. As in NumPy, `b` is a vector `[n]` or has its columns in the last two axes, `[.., n, k]`; axes in front broadcast.
///
/// Compiled, systems with one matrix share its factors, and small matrices are solved by vector code over the batch.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let x = linalg::solve(&Array::from([[2.0_f64, 0.0], [0.0, 4.0]]), &Array::from([2.0_f64, 2.0]));
/// assert_eq!(x.to_vec::<f64>()?, [1.0, 0.5]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn solve(a: &Array, b: &Array) -> Array {
    on_line(|| with_system("solve", a, b, |a, b| Solve { transpose: false }.of(a, b)))
}

/// The solution of `a·x = b`, where of `a` only one triangle is read.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let a = Array::from([[2.0_f64, 7.0], [1.0, 4.0]]);
/// let x = linalg::solve_triangular(&a, &Array::from([2.0_f64, 5.0]), linalg::Triangle::Lower);
/// assert_eq!(x.to_vec::<f64>()?, [1.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn solve_triangular(a: &Array, b: &Array, triangle: Triangle) -> Array {
    let op = if triangle == Triangle::Lower { TriangularSolve::lower() } else { TriangularSolve::upper() };
    on_line(|| with_system("solve_triangular", a, b, |a, b| op.of(a, b)))
}

/// The solution of `a·x = b` by the factor L that [`cholesky`](super::cholesky) gives of `a`.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let l = linalg::cholesky(&Array::from([[4.0_f64, 0.0], [0.0, 9.0]]));
/// assert_eq!(linalg::cho_solve(&l, &Array::from([8.0_f64, 9.0])).to_vec::<f64>()?, [2.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn cho_solve(factor: &Array, b: &Array) -> Array {
    let lower = TriangularSolve::lower();
    on_line(|| with_system("cho_solve", factor, b, |l, b| lower.transposed().of(&l.conj(), &lower.of(l, b))))
}

/// The inverse. To multiply by it, [`solve`] is faster and more exact.
#[track_caller]
pub fn inv(a: &Array) -> Array {
    on_line(|| {
        squares("inv", a)?;
        let eye = identity(&a.dim(-1), a.dtype()).broadcast_to(a.shape());
        Ok(Solve { transpose: false }.of(a, &eye))
    })
}

/// The pseudo-inverse of matrices of any shape. Singular values below `10·max(m, n)·ε` of the largest count as zero.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let p = linalg::pinv(&Array::from([[1.0_f64], [1.0]]));
/// assert!((p - 0.5_f64).abs().max().item::<f64>()? < 1e-12);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn pinv(a: &Array) -> Array {
    on_line(|| {
        matrices("pinv", a)?;
        Ok(gradus_core::trace::bind(Op::new(Pinv), &[a.clone()]))
    })
}

/// The x of least size among those for which `a·x − b` is least: the solution of systems with more or fewer equations than unknowns. `b` is a vector or
/// has its columns in the last two axes, as for [`solve`].
#[track_caller]
pub fn lstsq(a: &Array, b: &Array) -> Array {
    on_line(|| {
        matrices("lstsq", a)?;
        let (ta, tb) = (a.ty()?, b.ty()?);
        let rows = if tb.rank() == 1 { b.dim(0) } else { b.dim(-2) };
        if tb.rank() == 0 || rows.equals(&a.dim(-2)) == Decision::No {
            let message = format!("`lstsq` of {ta} and {tb}: there is a right-hand side for each row");
            return wrong(
                ErrorKind::Shape,
                message,
                "a right-hand side is a vector [m], or matrices [.., m, k] of columns",
            );
        }
        // The inverse of a small matrix is beyond all numbers long before the solution is.
        let (unit, power) = unit_size(a);
        let power = if tb.rank() == 1 { power.squeeze(-1) } else { power };
        times_power_of_two(&pinv(&unit).matmul(b), &-power).ok()
    })
}

/// The sign of the determinant, or its direction if it is complex, and the logarithm of its absolute value; 0 and -∞ for singular matrices.
#[track_caller]
pub fn slogdet(a: &Array) -> (Array, Array) {
    let [sign, log] = called_for(|| {
        squares("slogdet", a)?;
        results(Op::new(SlogDet), &[a.clone()])
    });
    (sign, log)
}

/// The determinant. For more than three rows it goes through [`slogdet`]: then the derivative of a singular matrix is not finite.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// assert_eq!(linalg::det(&Array::from([[1.0_f64, 2.0], [3.0, 4.0]])).item::<f64>()?, -2.0);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn det(a: &Array) -> Array {
    on_line(|| {
        squares("det", a)?;
        let e = |i: i64, j: i64| a.index((Index::Ellipsis, i, j));
        Ok(match a.dim(-1).as_usize() {
            Some(0) => number(1.0, a.dtype()).broadcast_to(front(a, 2)),
            Some(1) => e(0, 0),
            Some(2) => e(0, 0) * e(1, 1) - e(0, 1) * e(1, 0),
            Some(3) => {
                let minor = |i, j| e(1, i) * e(2, j) - e(1, j) * e(2, i);
                e(0, 0) * minor(1, 2) - e(0, 1) * minor(0, 2) + e(0, 2) * minor(0, 1)
            }
            _ => {
                let (sign, log) = slogdet(a);
                sign * log.exp().cast(a.dtype())
            }
        })
    })
}

/// The solution of tridiagonal systems: `lower`, `diagonal` and `upper` are the three diagonals, each `[.., n]`, of which the first of `lower` and the last of
/// `upper` are not read; `b` is `[.., n]`. By elimination without exchanges of rows, in n steps: for systems whose diagonal outweighs the rest.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let one = Array::from([1.0_f64, 1.0, 1.0]);
/// let x = linalg::solve_tridiagonal(&one, &(&one * 4.0_f64), &one, &Array::from([5.0_f64, 6.0, 5.0]));
/// assert!((x - &one).abs().max().item::<f64>()? < 1e-12);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "tridiagonal_solve")]
#[track_caller]
pub fn solve_tridiagonal(lower: &Array, diagonal: &Array, upper: &Array, b: &Array) -> Array {
    on_line(|| {
        let n = last(b)?;
        for x in [lower, diagonal, upper] {
            if last(x)?.equals(&n) == Decision::No {
                let message = format!("a tridiagonal system of {} and a right-hand side {}", x.ty()?, b.ty()?);
                return wrong(ErrorKind::Shape, message, "all three diagonals and the right-hand side are [.., n]");
            }
        }
        let all = (lower * diagonal * upper * b).ok()?;
        if n.constant() == Some(0) {
            // No equations have no unknowns.
            return Ok(all);
        }
        // Steps go along the leading axis.
        let first = |x: &Array| x.move_axis(-1, 0);
        let rows = (first(lower), first(diagonal), first(upper), first(b));
        let start = Array::zeros_like(&all.index((Index::Ellipsis, 0)));
        let eliminate = |(c, d): &(Array, Array), (l, m, u, b): &(Array, Array, Array, Array)| {
            let pivot = m - l * c;
            let (c, d) = (u / &pivot, (b - l * d) / &pivot);
            ((c.clone(), d.clone()), (c, d))
        };
        let (_, reduced) = scan(eliminate, (start.clone(), start.clone()), &rows);
        let back = |x: &Array, (c, d): &(Array, Array)| {
            let x = d - c * x;
            (x.clone(), x)
        };
        let (_, x) = crate::ScanOptions::new().reverse().scan(back, start, &reduced);
        x.move_axis(0, -1).ok()
    })
}

/// The size of the last axis.
fn last(x: &Array) -> Result<Dim> {
    match x.ty()?.shape().dims() {
        [.., n] => Ok(n.clone()),
        [] => wrong(ErrorKind::Shape, format!("a diagonal is a vector, not {}", x.ty()?), "diagonals are [.., n]"),
    }
}

/// The solution of `a·x = b` for a banded matrix with `lower` diagonals below and `upper` above the main one. `bands` is `[lower + upper + 1, n]` with one diagonal in
/// each row, the uppermost first, and `a[i, j]` in `bands[upper + i − j, j]`, as in SciPy's `solve_banded`; `b` is `[n]` or `[n, k]`. By elimination without exchanges of
/// rows, in n steps over `lower + 1` rows.
#[track_caller]
pub fn solve_banded(lower: usize, upper: usize, bands: &Array, b: &Array) -> Array {
    on_line(|| {
        let (ty, rhs) = (bands.ty()?, b.ty()?);
        let count = lower.checked_add(upper).and_then(|n| n.checked_add(1));
        let fits = ty.rank() == 2 && count.is_some() && bands.dim(0).as_usize() == count;
        if !fits || !(1..=2).contains(&rhs.rank()) || b.dim(0).equals(&bands.dim(1)) == Decision::No {
            let message =
                format!("a banded system of {ty} with {lower} + {upper} + 1 diagonals and a right-hand side {rhs}");
            return wrong(
                ErrorKind::Shape,
                message,
                "bands are [lower + upper + 1, n], a right-hand side [n] or [n, k]",
            );
        }
        if b.dim(0).constant() == Some(0) {
            // No equations have no unknowns.
            return (b * number(1.0, ty.dtype())).ok();
        }
        let columns = if rhs.rank() == 1 { b.expand_dims(-1) } else { b.clone() };
        let x = banded(lower, upper, bands, &columns)?;
        if rhs.rank() == 1 { x.squeeze(-1).ok() } else { Ok(x) }
    })
}

/// Rows of a banded matrix come in one after the other; the last `lower` of them, already reduced, eliminate what the next has left of its diagonal.
fn banded(lower: usize, upper: usize, bands: &Array, b: &Array) -> Result<Array> {
    let (dtype, k, n) = (bands.dtype(), b.dim(-1), bands.dim(1));
    let zero = number(0.0, dtype);
    // Row i of the matrix from column i − lower to i + upper: bands[upper + i − j, j] for each offset j − i, with zeros outside.
    let offsets: Vec<Array> = (0..lower + upper + 1)
        .map(|at| {
            let band = bands.index(((lower + upper - at) as i64, ..));
            let shift = at as i64 - lower as i64;
            let (low, high) = if shift < 0 { (-shift, 0) } else { (0, shift) };
            let padded = band.pad(&[(low, high)], &zero);
            padded.index(Dim::from(high)..(Dim::from(high) + &n))
        })
        .collect();
    let rows = Array::stack(&offsets, 1);
    let start = (
        // A row of ones on the diagonal eliminates nothing, because what comes in has zeros there.
        Array::concatenate(
            [Array::ones_like(&rows.index((..1, ..1))), Array::zeros_like(&rows.index((..1, ..upper as i64)))],
            1,
        )
        .broadcast_to([lower.max(1), upper + 1]),
        Array::zeros_like(&b.index(..1))
            .broadcast_to([Dim::from(lower.max(1)), k.clone()].into_iter().collect::<Shape>()),
    );
    let step = |(u, y): &(Array, Array), (row, b): &(Array, Array)| {
        let (mut row, mut b) = (row.clone(), b.clone());
        for j in 0..lower {
            // The row that has its diagonal in place j of this one.
            let (pivots, known) = (u.index((j as i64, ..)), y.index((j as i64, ..)));
            let factor = row.index(j as i64) / pivots.index(0);
            let taken = (&pivots * &factor).pad(&[(j as i64, (lower - j) as i64)], &zero);
            row -= taken;
            b -= known * factor;
        }
        let reduced = row.index(lower as i64..);
        let shift = |all: &Array, new: &Array| {
            if lower <= 1 { new.expand_dims(0) } else { Array::concatenate([all.index(1..), new.expand_dims(0)], 0) }
        };
        ((shift(u, &reduced), shift(y, &b)), (reduced, b))
    };
    let (_, (u, y)) = scan(step, start, &(rows, b.clone()));
    let solved =
        Array::zeros_like(&b.index(..1)).broadcast_to([Dim::from(upper.max(1)), k].into_iter().collect::<Shape>());
    let back = |x: &Array, (row, y): &(Array, Array)| {
        let mut sum = y.clone();
        for j in 0..upper {
            sum -= row.index(j as i64 + 1) * x.index((j as i64, ..));
        }
        let new = sum / row.index(0);
        let all =
            if upper <= 1 { new.expand_dims(0) } else { Array::concatenate([new.expand_dims(0), x.index(..-1)], 0) };
        (all, new)
    };
    crate::ScanOptions::new().reverse().scan(back, solved, &(u, y)).1.ok()
}

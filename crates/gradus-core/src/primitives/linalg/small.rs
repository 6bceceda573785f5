//! Small matrices as arithmetic on their elements: each element of a batch of matrices is an array of the batch's shape, so that ten thousand
//! systems are loops of vectors and no calls. The same steps as in the loops over one matrix, with choices for the rows that are exchanged.

use super::number;
use super::plain::Triangle;
use crate::array::Array;
use crate::primitives::shaping::{Concatenate, Reshape, Slice};
use crate::primitives::{Op, Outputs};
use crate::trace::bind;
use crate::types::{DType, Dim, Scalar, Shape, Type};

/// Matrices of up to so many rows.
const SMALL: usize = 8;

/// The size of an operand's matrices, if they are square, real and small.
pub(super) fn size(operands: &[Type]) -> Option<usize> {
    let ty = operands.first().filter(|ty| matches!(ty.dtype(), DType::F32 | DType::F64))?;
    let [.., m, n] = ty.shape().dims() else { return None };
    (m == n).then(|| n.as_usize()).flatten().filter(|n| (1..=SMALL).contains(n))
}

/// The size of a system and how many right-hand sides it has, if both are small.
pub(super) fn system(operands: &[Type]) -> Option<(usize, usize)> {
    let (n, [_, b]) = (size(operands)?, operands) else { return None };
    let k = b.shape().last()?.as_usize().filter(|k| (1..=SMALL).contains(k))?;
    Some((n, k))
}

/// Rows of elements.
type Rows = Vec<Vec<Array>>;

/// The axes in front of the matrices.
fn front(x: &Array) -> Shape {
    let shape = x.shape();
    shape.without(|axis| axis + 2 >= shape.rank())
}

/// The elements of matrices, or of vectors as one row of them: each has the shape of the axes in front.
fn taken(x: &Array, rows: usize, columns: usize, behind: usize) -> Rows {
    let shape = x.shape().clone();
    let outer = shape.without(|axis| axis + behind >= shape.rank());
    let element = |i: usize, j: usize| {
        let places = if behind == 2 { vec![i, j] } else { vec![j] };
        let zeros = (0..outer.rank()).map(|_| Dim::from(0usize));
        let start: Vec<Dim> = zeros.chain(places.iter().map(|&p| Dim::from(p))).collect();
        let limit: Vec<Dim> = outer.iter().cloned().chain(places.iter().map(|&p| Dim::from(p + 1))).collect();
        let piece = bind(Op::new(Slice { start, limit, step: vec![1; shape.rank()] }), &[x.clone()]);
        bind(Op::new(Reshape { shape: outer.clone() }), &[piece])
    };
    (0..rows).map(|i| (0..columns).map(|j| element(i, j)).collect()).collect()
}

/// Arrays side by side in a new last axis.
fn side_by_side(parts: &[Array]) -> Array {
    let parts: Vec<Array> = parts
        .iter()
        .map(|p| bind(Op::new(Reshape { shape: p.shape().inserted(p.rank(), Dim::from(1usize)) }), &[p.clone()]))
        .collect();
    match &parts[..] {
        [one] => one.clone(),
        [first, ..] => bind(Op::new(Concatenate { axis: first.rank() - 1 }), &parts),
        [] => Array::from(crate::error::error!(Rule, "a matrix without elements")),
    }
}

/// The matrices of these elements.
fn put(rows: &Rows) -> Array {
    let (m, n) = (rows.len(), rows.first().map_or(0, Vec::len));
    let flat = side_by_side(&rows.concat());
    let front = flat.shape().without(|axis| axis + 1 == flat.rank());
    let shape: Shape = front.iter().cloned().chain([Dim::from(m), Dim::from(n)]).collect();
    bind(Op::new(Reshape { shape }), &[flat])
}

pub(super) fn cholesky(a: &Array, n: usize) -> Array {
    let (mut l, front) = (taken(a, n, n, 2), front(a));
    let zero = Array::full_scalar(front, Scalar::zero(a.dtype()));
    let mut there: Option<Array> = None;
    for i in 0..n {
        for j in 0..=i {
            let sum = (0..j).fold(l[i][j].clone(), |s, k| s - &l[i][k] * &l[j][k]);
            l[i][j] = if j < i { sum / &l[j][j] } else { sum };
        }
        let positive = l[i][i].gt(number(0.0, a.dtype()));
        there = Some(there.map_or(positive.clone(), |all| all & positive));
        l[i][i] = l[i][i].sqrt();
        l[i][i + 1..].fill(zero.clone());
    }
    let nan = number(f64::NAN, a.dtype());
    for (i, row) in l.iter_mut().enumerate() {
        for v in &mut row[..=i] {
            *v = there.as_ref().map_or(v.clone(), |there| there.select(&*v, &nan));
        }
    }
    put(&l)
}

pub(super) fn triangular(a: &Array, b: &Array, n: usize, k: usize, t: Triangle) -> Array {
    let (a, mut x) = (taken(a, n, n, 2), taken(b, n, k, 2));
    let at = |i: usize, j: usize| if t.transpose { &a[j][i] } else { &a[i][j] };
    let forward = t.lower != t.transpose;
    let row = |step: usize| if forward { step } else { n - 1 - step };
    for step in 0..n {
        let i = row(step);
        let column = |c: usize| {
            let sum = (0..step).map(row).fold(x[i][c].clone(), |s, j| s - at(i, j) * &x[j][c]);
            if t.unit { sum } else { sum / at(i, i) }
        };
        x[i] = (0..k).map(column).collect();
    }
    put(&x)
}

/// Rows in the order of places, or back from it.
pub(super) fn ordered(x: &Array, order: &Array, n: usize, k: usize, back: bool) -> Array {
    let (rows, order) = (taken(x, n, k, 2), taken(order, 1, n, 1).concat());
    let row = |i: usize, c: usize| {
        (1..n).fold(rows[0][c].clone(), |other, j| {
            let here = if back { order[j].eq(i as i32) } else { order[i].eq(j as i32) };
            here.select(&rows[j][c], other)
        })
    };
    put(&(0..n).map(|i| (0..k).map(|c| row(i, c)).collect()).collect())
}

/// Factors in one, the exchanges and the order of rows, as [`Lu`](super::Lu) gives them.
pub(super) fn lu(a: &Array, n: usize) -> Outputs {
    let (mut a, front) = (taken(a, n, n, 2), front(a));
    let place = |i: usize| Array::full_scalar(front.clone(), Scalar::I32(i as i32));
    let mut order: Vec<Array> = (0..n).map(place).collect();
    let mut pivots = Vec::with_capacity(n);
    for k in 0..n {
        let (mut best, mut at) = (a[k][k].abs(), place(k));
        for (i, row) in a.iter().enumerate().skip(k + 1) {
            let size = row[k].abs();
            let larger = size.gt(&best);
            best = larger.select(size, &best);
            at = larger.select(i as i32, &at);
        }
        for i in k + 1..n {
            let here = at.eq(i as i32);
            let (above, below) = a.split_at_mut(i);
            for (x, y) in above[k].iter_mut().zip(&mut below[0]) {
                (*x, *y) = (here.select(&*y, &*x), here.select(&*x, &*y));
            }
            (order[k], order[i]) = (here.select(&order[i], &order[k]), here.select(&order[k], &order[i]));
        }
        pivots.push(at);
        let some = a[k][k].ne(number(0.0, a[k][k].dtype()));
        for i in k + 1..n {
            a[i][k] = some.select(&a[i][k] / &a[k][k], &a[i][k]);
            for j in k + 1..n {
                a[i][j] = &a[i][j] - &a[i][k] * &a[k][j];
            }
        }
    }
    smallvec::smallvec![put(&a), side_by_side(&pivots), side_by_side(&order)]
}

//! Steps that move, repeat, add up and pick elements. They are as good for smooth programs as for any.

use super::{Done, Maker, Recipe};
use crate::primitives::Op;
use crate::primitives::convert::Convert;
use crate::primitives::convolve::Convolve;
use crate::primitives::cumulative::CumSum;
use crate::primitives::dot::DotGeneral;
use crate::primitives::elementwise::{IntegerPow, Select};
use crate::primitives::index::{Bounds, DynamicSlice, DynamicUpdateSlice, Gather, Scatter, ScatterKind};
use crate::primitives::reduce::{ReduceMax, ReduceMin, ReduceProd, ReduceSum};
use crate::primitives::reduce_window::{ReduceWindow, WindowKind};
use crate::primitives::shaping::{Broadcast, Concatenate, Pad, Permute, Reshape, Reverse, Slice};
use crate::primitives::windows::Windows;
use crate::program::Atom;
use crate::types::{DType, Dim, Shape, Type};

/// Some of the axes, in increasing order.
pub(super) fn some_axes(m: &mut Maker<'_, '_>, rank: usize) -> Vec<usize> {
    (0..rank).filter(|_| m.source.chance(50)).collect()
}

pub(super) fn broadcast(m: &mut Maker<'_, '_>) -> Done {
    let x = m.any_of(|t| t.rank() < 3)?;
    let ty = m.ty(x);
    let mut shape: Vec<Dim> = ty.shape().to_vec();
    let mut axes: Vec<usize> = (0..ty.rank()).collect();
    for dim in shape.iter_mut().filter(|d| d.constant() == Some(1)) {
        if m.source.chance(50) {
            *dim = m.palette.dim(m.source);
        }
    }
    for _ in 0..1 + m.source.below(2) {
        let at = m.source.below(shape.len() + 1);
        shape.insert(at, m.palette.dim(m.source));
        axes.iter_mut().filter(|a| **a >= at).for_each(|a| *a += 1);
    }
    m.add(Op::new(Broadcast { shape: shape.into(), axes }), &[x]).map(|_| ())
}

pub(super) fn reshape(m: &mut Maker<'_, '_>) -> Done {
    let x = m.any()?;
    let ty = m.ty(x);
    let dims = ty.shape();
    let shape: Shape = match m.source.below(4) {
        0 => [dims.size()].into_iter().collect(),
        1 => dims.inserted(m.source.below(dims.rank() + 1), Dim::from(1usize)),
        2 => dims.without(|a| dims[a].constant() == Some(1)), // invariant: `without` asks of axes that are there
        _ => dims.iter().rev().cloned().collect(),
    };
    m.add(Op::new(Reshape { shape }), &[x]).map(|_| ())
}

pub(super) fn transpose(m: &mut Maker<'_, '_>) -> Done {
    let (x, ty, _) = m.with_axis(|t| t.rank() > 1)?;
    let mut axes: Vec<usize> = (0..ty.rank()).collect();
    let (a, b) = (m.source.below(axes.len()), m.source.below(axes.len()));
    axes.swap(a, b);
    axes.rotate_left(m.source.below(ty.rank()));
    m.add(Op::new(Permute { axes }), &[x]).map(|_| ())
}

pub(super) fn reverse(m: &mut Maker<'_, '_>) -> Done {
    let (x, ty, _) = m.with_axis(|_| true)?;
    let axes = some_axes(m, ty.rank());
    m.add(Op::new(Reverse { axes }), &[x]).map(|_| ())
}

pub(super) fn slice(m: &mut Maker<'_, '_>) -> Done {
    let (x, ty, _) = m.with_axis(|_| true)?;
    let (mut start, mut limit, mut step) = (Vec::new(), Vec::new(), Vec::new());
    for dim in ty.shape().iter() {
        let (from, to) = match dim.as_usize() {
            Some(n) => {
                let from = m.source.below(n + 1);
                (Dim::from(from), Dim::from(from + m.source.below(n - from + 1)))
            }
            None => (Dim::from(0usize), dim.clone()),
        };
        start.push(from);
        limit.push(to);
        step.push(1 + m.source.below(3));
    }
    m.add(Op::new(Slice { start, limit, step }), &[x]).map(|_| ())
}

pub(super) fn pad(m: &mut Maker<'_, '_>) -> Done {
    let x = m.any()?;
    let ty = m.ty(x);
    let mut amounts = |least: i64| -> Vec<Dim> {
        ty.shape()
            .iter()
            .map(|d| Dim::from(m.source.below(4) as i64 + if d.constant().is_some() { least } else { 0 }))
            .collect()
    };
    let (low, high) = (amounts(-1), amounts(-1));
    let interior = (0..ty.rank()).map(|_| m.source.below(6).saturating_sub(3)).collect();
    let value = m.of_type(&Type::scalar(ty.dtype()));
    m.add(Op::new(Pad { low, high, interior }), &[x, value]).map(|_| ())
}

pub(super) fn concatenate(m: &mut Maker<'_, '_>) -> Done {
    let (x, ty, axis) = m.with_axis(|_| true)?;
    let mut parts = vec![x];
    for _ in 0..m.source.below(3) {
        let dim = m.palette.dim(m.source);
        let other = ty.with_shape(ty.shape().replaced(axis, dim));
        parts.push(m.of_type(&other));
    }
    m.add(Op::new(Concatenate { axis }), &parts).map(|_| ())
}

pub(super) fn select(m: &mut Maker<'_, '_>) -> Done {
    let x = m.any_of(|t| !m_bool(t))?;
    let ty = m.ty(x);
    let y = m.of_type(&ty);
    let pred = m.of_type(&ty.with_dtype(DType::Bool));
    m.add(Op::new(Select), &[pred, x, y]).map(|_| ())
}

fn m_bool(t: &Type) -> bool {
    t.dtype() == DType::Bool
}

/// Whether the recipe allows this dtype where the order of a sum is free.
pub(super) fn may_sum(recipe: &Recipe, dtype: DType) -> bool {
    dtype.is_int() || (recipe.sums && dtype.is_inexact())
}

pub(super) fn reduce_sum(m: &mut Maker<'_, '_>) -> Done {
    let recipe = m.recipe;
    let x = m.any_of(|t| may_sum(&recipe, t.dtype()))?;
    let rank = m.ty(x).rank();
    let axes = some_axes(m, rank);
    m.add(Op::new(ReduceSum { axes }), &[x]).map(|_| ())
}

pub(super) fn cumsum(m: &mut Maker<'_, '_>) -> Done {
    let (x, _, axis) = m.with_axis(|t| t.dtype() != DType::Bool)?;
    let reverse = m.source.chance(50);
    m.add(Op::new(CumSum { axis, reverse }), &[x]).map(|_| ())
}

/// A second operand is made to measure: contracted and shared axes of the first, and one of its own.
pub(super) fn dot(m: &mut Maker<'_, '_>) -> Done {
    let recipe = m.recipe;
    let x = m.any_of(|t| may_sum(&recipe, t.dtype()))?;
    let ty = m.ty(x);
    let (mut lhs_contract, mut lhs_batch) = (Vec::new(), Vec::new());
    for axis in 0..ty.rank() {
        match m.source.below(4) {
            0 | 1 => lhs_contract.push(axis),
            2 => lhs_batch.push(axis),
            _ => {}
        }
    }
    let shared = lhs_batch.iter().chain(&lhs_contract).filter_map(|a| ty.shape().get(*a).cloned());
    let mut dims: Vec<Dim> = shared.collect();
    let rhs_batch: Vec<usize> = (0..lhs_batch.len()).collect();
    let rhs_contract: Vec<usize> = (lhs_batch.len()..dims.len()).collect();
    if m.source.chance(60) {
        dims.push(m.palette.dim(m.source));
    }
    let y = m.of_type(&ty.with_shape(dims));
    m.add(Op::new(DotGeneral { lhs_contract, rhs_contract, lhs_batch, rhs_batch }), &[x, y]).map(|_| ())
}

/// The size, the stride and the dilation of windows that fit an axis.
fn window(m: &mut Maker<'_, '_>, n: usize) -> Option<(usize, usize, usize)> {
    let dilation = 1 + m.source.below(2);
    let most = n.checked_sub(1)? / dilation + 1;
    Some((1 + m.source.below(most.min(3)), 1 + m.source.below(3), dilation))
}

/// What is linear in windows and in signals.
pub(super) fn over_windows(m: &mut Maker<'_, '_>) -> Done {
    match m.source.below(4) {
        0 => windows(m),
        1 => reduce_window(m, WindowKind::Sum),
        2 => convolve(m),
        _ => fft(m),
    }
}

fn windows(m: &mut Maker<'_, '_>) -> Done {
    let (x, ty, axis) = m.with_axis(|_| true)?;
    let (size, stride, dilation) = window(m, ty.shape().get(axis)?.as_usize()?)?;
    let op = Windows { axes: vec![axis], sizes: vec![size.into()], strides: vec![stride], dilations: vec![dilation] };
    m.add(Op::new(op), &[x]).map(|_| ())
}

/// Windows along one axis, with a little padding.
pub(super) fn reduce_window(m: &mut Maker<'_, '_>, kind: WindowKind) -> Done {
    let recipe = m.recipe;
    let ordered = matches!(kind, WindowKind::Max | WindowKind::Min);
    let (x, ty, axis) =
        m.with_axis(
            |t| {
                if ordered { t.dtype().is_int() || t.dtype().is_float() } else { may_sum(&recipe, t.dtype()) }
            },
        )?;
    let (size, stride, dilation) = window(m, ty.shape().get(axis)?.as_usize()?)?;
    let mut op = ReduceWindow {
        kind,
        sizes: vec![Dim::from(1usize); ty.rank()],
        strides: vec![1; ty.rank()],
        low: vec![Dim::from(0usize); ty.rank()],
        high: vec![Dim::from(0usize); ty.rank()],
        base_dilation: vec![1; ty.rank()],
        window_dilation: vec![1; ty.rank()],
    };
    // invariant: the axis is below the rank
    (op.sizes[axis], op.strides[axis], op.window_dilation[axis]) = (Dim::from(size), stride, dilation);
    (op.low[axis], op.high[axis]) = (Dim::from(m.source.below(3)), Dim::from(m.source.below(2)));
    op.base_dilation[axis] = 1 + m.source.below(2); // invariant: as above
    m.add(Op::new(op), &[x]).map(|_| ())
}

/// A kernel is made to measure for an image of three axes; an array of fewer gets axes of one behind.
fn convolve(m: &mut Maker<'_, '_>) -> Done {
    let recipe = m.recipe;
    let mut x = m.any_of(|t| (1..=3).contains(&t.rank()) && may_sum(&recipe, t.dtype()))?;
    let mut ty = m.ty(x);
    if ty.rank() < 3 {
        let front = usize::from(ty.rank() == 1);
        let ones = |n| std::iter::repeat_n(Dim::from(1usize), n);
        let shape = ones(front).chain(ty.shape().iter().cloned()).chain(ones(1)).collect();
        x = m.one(Op::new(Reshape { shape }), &[x])?;
        ty = m.ty(x);
    }
    let (size, stride, dilation) = window(m, ty.shape().get(1)?.as_usize()?)?;
    let features = ty.shape().get(2)?.clone();
    let results = m.palette.dim(m.source);
    let w = m.of_type(&ty.with_shape(vec![Dim::from(size), features, results]));
    let op = Convolve {
        strides: vec![stride],
        low: vec![Dim::from(m.source.below(3))],
        high: vec![Dim::from(m.source.below(2))],
        image_dilation: vec![1 + m.source.below(2)],
        kernel_dilation: vec![dilation],
        feature_groups: Dim::from(1usize),
        batch_groups: Dim::from(1usize),
    };
    m.add(Op::new(op), &[x, w]).map(|_| ())
}

/// The Fourier transform of the last axis, of whichever kind the numbers have.
#[cfg(feature = "fft")]
fn fft(m: &mut Maker<'_, '_>) -> Done {
    use crate::primitives::fft::{Fft, FftKind};
    let recipe = m.recipe;
    let floats = [DType::F32, DType::F64, DType::C64, DType::C128];
    let (x, ty, _) = m.with_axis(|t| floats.contains(&t.dtype()) && may_sum(&recipe, t.dtype()))?;
    let n = ty.shape().last()?.as_usize().filter(|n| *n > 0)?;
    let (kind, n) = match m.source.below(3) {
        _ if ty.dtype().is_float() => (FftKind::RealForward, n),
        0 => (FftKind::Forward, n),
        1 => (FftKind::Inverse, n),
        _ => (FftKind::RealInverse, 2 * n - 1),
    };
    m.add(Op::new(Fft { kind, lengths: vec![Dim::from(n)] }), &[x]).map(|_| ())
}

#[cfg(not(feature = "fft"))]
fn fft(_: &mut Maker<'_, '_>) -> Done {
    None
}

/// A decomposition of a matrix that is far from having none: numbers between -1 and 1 times their transpose, and ones on the diagonal.
#[cfg(feature = "linalg")]
pub(super) fn decomposition(m: &mut Maker<'_, '_>) -> Done {
    use crate::primitives::elementwise::{Compare, Direction};
    use crate::primitives::linalg::{Cholesky, Eig, Eigh, Lu, Pinv, Qr, Schur, SlogDet, Solve, Svd, TriangularSolve};
    use crate::primitives::shaping::Iota;
    let recipe = m.recipe;
    let wanted = |t: &Type| t.dtype() == DType::F64 && t.rank() >= 2 && may_sum(&recipe, t.dtype());
    let x = m.any_of(wanted)?;
    let x = m.named("tanh", &[x])?;
    let (ty, front) = (m.ty(x), (0..m.ty(x).rank() - 2).collect::<Vec<_>>());
    let last = ty.rank() - 1;
    let product =
        DotGeneral { lhs_contract: vec![last], rhs_contract: vec![last], lhs_batch: front.clone(), rhs_batch: front };
    let gram = m.one(Op::new(product), &[x, x])?;
    let shape = m.ty(gram).shape().clone();
    let count =
        |m: &mut Maker<'_, '_>, axis| m.one(Op::new(Iota { dtype: DType::I32, shape: shape.clone(), axis }), &[]);
    let (i, j) = (count(m, last - 1)?, count(m, last)?);
    let on = m.one(Op::new(Compare { direction: Direction::Eq }), &[i, j])?;
    let eye = m.one(Op::new(Convert { dtype: DType::F64 }), &[on])?;
    let a = m.named("add", &[gram, eye])?;
    // Where eigenvalues are equal, vectors follow the last places of the matrix: only values are asked for, and Schur's form of the identity.
    let kinds = if recipe.smooth { 5 } else { 11 };
    match m.source.below(kinds) {
        0 => m.add(Op::new(Cholesky), &[a]),
        1 => m.add(Op::new(SlogDet), &[a]),
        2 => m.add(Op::new(Qr { full: false }), &[a]),
        3 => m.add(Op::new(Pinv), &[a]),
        4 => m.add(Op::new(Solve { transpose: false }), &[a, x]),
        5 => m.add(Op::new(TriangularSolve::lower().unit()), &[eye, x]),
        6 => m.add(Op::new(Lu), &[a]),
        7 => m.add(Op::new(Svd { full: false, vectors: false }), &[a]),
        8 => m.add(Op::new(Eigh { vectors: false }), &[a]),
        9 => m.add(Op::new(Eig { vectors: false }), &[a]),
        _ => m.add(Op::new(Schur), &[eye]),
    }
    .map(|_| ())
}

/// A build without linear algebra has none.
#[cfg(not(feature = "linalg"))]
pub(super) fn decomposition(_: &mut Maker<'_, '_>) -> Done {
    None
}

fn starts(m: &mut Maker<'_, '_>, shape: &Shape) -> Option<Vec<Atom>> {
    shape.iter().map(|d| m.places(&Shape::scalar(), d.as_usize().unwrap_or(2))).collect()
}

pub(super) fn dynamic_slice(m: &mut Maker<'_, '_>) -> Done {
    let (x, ty, _) = m.with_axis(|_| true)?;
    let sizes = ty.shape().iter().map(|d| d.as_usize().map_or_else(|| d.clone(), |n| Dim::from(m.source.below(n + 1))));
    let sizes: Shape = sizes.collect();
    let mut operands = vec![x];
    operands.extend(starts(m, ty.shape())?);
    m.add(Op::new(DynamicSlice { sizes }), &operands).map(|_| ())
}

pub(super) fn dynamic_update_slice(m: &mut Maker<'_, '_>) -> Done {
    let (x, ty, _) = m.with_axis(|_| true)?;
    let sizes = ty.shape().iter().map(|d| d.as_usize().map_or_else(|| d.clone(), |n| Dim::from(m.source.below(n + 1))));
    let sizes: Shape = sizes.collect();
    let update = m.of_type(&ty.with_shape(sizes));
    let mut operands = vec![x, update];
    operands.extend(starts(m, ty.shape())?);
    m.add(Op::new(DynamicUpdateSlice), &operands).map(|_| ())
}

/// Index vectors along one axis of `x`, the others in whole windows, shared with the indices, or one element of them.
struct Picks {
    axis: usize,
    indices: Atom,
    /// The axes of the indices without the last.
    outer: Vec<Dim>,
    operand_batch: Vec<usize>,
    sizes: Vec<Dim>,
}

fn picks(m: &mut Maker<'_, '_>, ty: &Type, axis: usize) -> Option<Picks> {
    let n = ty.shape().get(axis)?.as_usize()?;
    let shared = m.source.chance(30).then(|| (0..ty.rank()).find(|a| *a != axis)).flatten();
    let mut outer: Vec<Dim> = shared.and_then(|a| ty.shape().get(a).cloned()).into_iter().collect();
    if m.source.chance(70) {
        outer.push(Dim::from(m.source.below(4)));
    }
    let vectors = Shape::from(outer.clone()).inserted(outer.len(), Dim::from(1usize));
    let indices = m.places(&vectors, n)?;
    let sizes = ty.shape().iter().enumerate();
    let sizes = sizes.map(|(a, d)| if a == axis || Some(a) == shared { Dim::from(1usize) } else { d.clone() });
    Some(Picks { axis, indices, outer, operand_batch: shared.into_iter().collect(), sizes: sizes.collect() })
}

pub(super) fn gather(m: &mut Maker<'_, '_>) -> Done {
    let (x, ty, axis) = m.with_axis(|_| true)?;
    let p = picks(m, &ty, axis)?;
    let shown = (0..ty.rank()).filter(|a| *a != axis && !p.operand_batch.contains(a)).count();
    let bounds = match m.recipe.smooth || m.source.chance(50) {
        true => Bounds::Clip,
        false => Bounds::Fill,
    };
    let op = Gather {
        offset_dims: (p.outer.len()..p.outer.len() + shown).collect(),
        collapsed_dims: vec![p.axis],
        index_batch_dims: (0..p.operand_batch.len()).collect(),
        operand_batch_dims: p.operand_batch,
        index_map: vec![p.axis],
        sizes: p.sizes.into(),
        bounds,
    };
    m.add(Op::new(op), &[x, p.indices]).map(|_| ())
}

pub(super) fn scatter(m: &mut Maker<'_, '_>) -> Done {
    let (x, ty, axis) = m.with_axis(|_| true)?;
    let p = picks(m, &ty, axis)?;
    let shown: Vec<Dim> = (0..ty.rank())
        .filter(|a| *a != axis && !p.operand_batch.contains(a))
        .filter_map(|a| p.sizes.get(a).cloned())
        .collect();
    let kinds: &[ScatterKind] = match ty.dtype() {
        DType::Bool => &[ScatterKind::Set],
        d if m.recipe.smooth || d.is_complex() => &[ScatterKind::Set, ScatterKind::Add, ScatterKind::Mul],
        _ => ScatterKind::ALL,
    };
    let kind = m.source.pick(kinds).copied()?;
    let updates: Vec<Dim> = p.outer.iter().cloned().chain(shown.iter().cloned()).collect();
    let updates = m.of_type(&ty.with_shape(updates));
    let op = Scatter {
        kind,
        update_window_dims: (p.outer.len()..p.outer.len() + shown.len()).collect(),
        inserted_dims: vec![p.axis],
        index_batch_dims: (0..p.operand_batch.len()).collect(),
        operand_batch_dims: p.operand_batch,
        index_map: vec![p.axis],
        unique: false,
    };
    m.add(Op::new(op), &[x, p.indices, updates]).map(|_| ())
}

/// The same operation on the same operands once more: what sharing is for.
pub(super) fn again(m: &mut Maker<'_, '_>) -> Done {
    let count = m.builder.program().equations().len();
    let at = m.source.below(count);
    let e = m.builder.program().equations().get(at)?.clone();
    let operands = m.builder.program().operands(&e).to_vec();
    m.add(e.op().clone(), &operands).map(|_| ())
}

/// An operation that changes nothing, or nothing but a special value: what rewrites are for.
pub(super) fn nothing(m: &mut Maker<'_, '_>) -> Done {
    let x = m.any_of(|t| !m_bool(t))?;
    let ty = m.ty(x);
    let rank = ty.rank();
    let constant = |m: &mut Maker<'_, '_>, v: f64| m.splat(&ty, v);
    match m.source.below(18) {
        0 => {
            let one = constant(m, 1.0);
            m.named("mul", &[one, x])
        }
        1 => {
            let one = constant(m, 1.0);
            m.named("mul", &[x, one])
        }
        2 => {
            let zero = constant(m, 0.0);
            m.named("mul", &[x, zero])
        }
        3 => {
            let zero = constant(m, 0.0);
            m.named("add", &[x, zero])
        }
        4 => {
            let zero = constant(m, -0.0);
            m.named("add", &[zero, x])
        }
        5 => {
            let zero = constant(m, 0.0);
            m.named("sub", &[x, zero])
        }
        6 => {
            let one = constant(m, 1.0);
            m.named("div", &[x, one])
        }
        7 => {
            let y = m.named("neg", &[x])?;
            m.named("neg", &[y])
        }
        8 => {
            let exponent = m.source.below(2) as i64;
            m.one(Op::new(IntegerPow { exponent }), &[x])
        }
        9 => {
            let pred = m.builder.constant(crate::program::Constant::splat(
                ty.with_dtype(DType::Bool),
                crate::types::Scalar::Bool(m.source.chance(50)),
            ));
            let y = m.of_type(&ty);
            m.one(Op::new(Select), &[pred, x, y])
        }
        10 => {
            let pred = m.of_type(&ty.with_dtype(DType::Bool));
            m.one(Op::new(Select), &[pred, x, x])
        }
        11 => m.one(Op::new(Convert { dtype: ty.dtype() }), &[x]),
        12 => {
            let flat = m.one(Op::new(Reshape { shape: [ty.shape().size()].into_iter().collect() }), &[x])?;
            m.one(Op::new(Reshape { shape: ty.shape().clone() }), &[flat])
        }
        13 => {
            let turned = m.one(Op::new(Permute { axes: (0..rank).rev().collect() }), &[x])?;
            m.one(Op::new(Permute { axes: (0..rank).rev().collect() }), &[turned])
        }
        14 => m.one(Op::new(Broadcast { shape: ty.shape().clone(), axes: (0..rank).collect() }), &[x]),
        15 => m.one(Op::new(Concatenate { axis: 0 }), &[x]),
        16 => m.one(Op::new(Reverse { axes: vec![] }), &[x]),
        _ => match m.source.below(4) {
            0 => m.one(Op::new(ReduceSum { axes: vec![] }), &[x]),
            1 => m.one(Op::new(ReduceProd { axes: vec![] }), &[x]),
            2 => m.one(Op::new(ReduceMax { axes: vec![] }), &[x]),
            _ => m.one(Op::new(ReduceMin { axes: vec![] }), &[x]),
        },
    }
    .map(|_| ())
}

//! Scatter: windows written into an array, one for each index vector. The opposite of gather.

use super::gather::{Bounds, Gather};
use super::products::of_the_others;
use super::windows::{Layout, Windows};
use crate::array::{Array, Concrete, row_major};
use crate::error::{Result, error, fail};
use crate::primitives::elementwise::kernel::{map, one_output, operand};
use crate::primitives::elementwise::number::{Number, Ordered};
use crate::primitives::rules::one;
use crate::primitives::shaping::strided::{StridedCopy, owned};
use crate::primitives::shaping::{Iota, Reshape, or_zeros, ramp, reals, transposed, zeros};
use crate::primitives::{
    Batch, Batched, Derivative, Halves, Infer, Jvp, Linear, Op, Outputs, Primitive, Sample, Transpose, Transposed,
    Types,
};
use crate::trace::bind;
use crate::types::{
    DType, Dim, Effects, Element, Scalar, Shape, Type, bf16, dispatch, dispatch_number, dispatch_real, f16,
};
use crate::{param_names, rules_of};

param_names! {
    /// What a scatter does with what is there and what comes.
    pub enum ScatterKind {
        /// Writes over it.
        Set = "set",
        /// Adds to it.
        Add = "add",
        /// Multiplies it.
        Mul = "mul",
        /// Keeps the smaller.
        Min = "min",
        /// Keeps the larger.
        Max = "max",
    }
}

/// The first operand with the third written into it, window by window, at the index vectors along the last axis of
/// the second. The axes have the meaning they have in StableHLO.
///
/// A window that does not lie inside the array is left out. Windows are written in the row-major order of the index
/// vectors, so that of several that are set to one place the last stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Scatter {
    /// How old and new are combined.
    pub kind: ScatterKind,
    /// Axes of the updates that run inside a window; increasing.
    pub update_window_dims: Vec<usize>,
    /// Axes of the operand in which windows have size 1 and which the updates do not have; increasing.
    pub inserted_dims: Vec<usize>,
    /// Axes of the operand that run together with axes of the indices; increasing.
    pub operand_batch_dims: Vec<usize>,
    /// The axes of the indices that those run with.
    pub index_batch_dims: Vec<usize>,
    /// The axis of the operand that each component of an index vector counts along.
    pub index_map: Vec<usize>,
    /// A promise that no place is written twice. Derivatives are cheaper with it, and wrong if it is broken.
    pub unique: bool,
}

/// How the elements of one window are combined with what lies under it: source and target, each with its place.
type Merge<T> = fn(&StridedCopy, &[T], usize, &mut [T], usize);

impl Scatter {
    pub(super) fn new(kind: ScatterKind, windows: Windows, unique: bool) -> Scatter {
        Scatter {
            kind,
            update_window_dims: windows.window_dims,
            inserted_dims: windows.dropped_dims,
            operand_batch_dims: windows.operand_batch_dims,
            index_batch_dims: windows.index_batch_dims,
            index_map: windows.index_map,
            unique,
        }
    }

    /// Numbers put at their places of a vector, each place once.
    pub(super) fn of_vector() -> Scatter {
        Scatter {
            kind: ScatterKind::Set,
            update_window_dims: vec![],
            inserted_dims: vec![0],
            operand_batch_dims: vec![],
            index_batch_dims: vec![],
            index_map: vec![0],
            unique: true,
        }
    }

    fn windows(&self) -> Windows {
        Windows {
            window_dims: self.update_window_dims.clone(),
            dropped_dims: self.inserted_dims.clone(),
            operand_batch_dims: self.operand_batch_dims.clone(),
            index_batch_dims: self.index_batch_dims.clone(),
            index_map: self.index_map.clone(),
        }
    }

    /// The same windows combined otherwise.
    fn with_kind(&self, kind: ScatterKind) -> Op {
        Op::new(Scatter { kind, ..self.clone() })
    }

    /// The size of a window along each axis of an operand of this rank: 1 for the axes the updates do not have.
    fn sizes(&self, rank: usize, updates: &[Dim]) -> Shape {
        let windows = self.windows();
        let mut inner = self.update_window_dims.iter().filter_map(|a| updates.get(*a).cloned());
        (0..rank)
            .map(|a| if windows.hides(a) { None } else { inner.next() })
            .map(|size| size.unwrap_or_else(|| Dim::from(1usize)))
            .collect()
    }

    /// The gather that reads the places this scatter writes.
    pub(super) fn reader(&self, x: &Type, updates: &Type) -> Gather {
        Gather::new(self.windows(), self.sizes(x.rank(), updates.shape()), Bounds::Fill)
    }

    /// Which updates are still there at the end, where several are set to one place: each writes its number, and
    /// finds it again or does not. An update out of range finds none.
    fn survivors(&self, x: &Type, indices: &Array, updates: &Type) -> Array {
        let count: Shape = [updates.shape().size()].into_iter().collect();
        let numbers = bind(Op::new(Iota { dtype: DType::I64, shape: count, axis: 0 }), &[]);
        let numbers = bind(Op::new(Reshape { shape: updates.shape().clone() }), &[numbers]);
        let nobody = Array::full(x.shape(), -1i64);
        let written = bind(self.with_kind(ScatterKind::Set), &[nobody, indices.clone(), numbers.clone()]);
        let found = bind(Op::new(self.reader(x, updates)), &[written, indices.clone()]);
        numbers.eq(found)
    }

    /// The tangent of `mul`: `y = x * u1 * u2 ...` at each place, so an update's tangent counts as often as `x` and
    /// the other updates of its place multiply to.
    fn jvp_mul(&self, jvp: &Jvp<'_>) -> Result<Array> {
        let ([x, indices, updates], [x_dot, _, u_dot]) = (jvp.primals, jvp.tangents) else {
            fail!(Rule, "wants three operands")
        };
        let from_x = match x_dot {
            Some(x_dot) => bind(Op::new(self.clone()), &[x_dot.clone(), indices.clone(), updates.clone()]),
            None => zeros(x.ty()?),
        };
        let Some(u_dot) = u_dot else { return Ok(from_x) };
        let reader = self.reader(x.ty()?, updates.ty()?);
        let mut factor = reader.or_zeros(x, indices)?;
        if !self.unique {
            factor *= of_the_others(&reader, x.ty()?, indices, updates)?;
        }
        Ok(bind(self.with_kind(ScatterKind::Add), &[from_x, indices.clone(), u_dot * factor]))
    }

    /// The tangent of `min` and `max`: whatever is equal to the result passes its tangent on, and ties share.
    fn jvp_extreme(&self, jvp: &Jvp<'_>) -> Result<Array> {
        let ([x, indices, updates], [x_dot, _, u_dot], [y]) = (jvp.primals, jvp.tangents, jvp.outputs()) else {
            fail!(Rule, "wants three operands")
        };
        let (x_ty, u_ty) = (x.ty()?, updates.ty()?);
        let ones = |ty: &Type| Array::full_scalar(ty.shape().clone(), Scalar::one(ty.dtype()));
        let read = Op::new(self.reader(x_ty, u_ty));
        let add = self.with_kind(ScatterKind::Add);
        // Out of range the result reads as NaN, which no update is equal to.
        let x_wins = x.eq(y);
        let u_wins = updates.eq(bind(read.clone(), &[y.clone(), indices.clone()]));
        let u_count = u_wins.select(ones(u_ty), zeros(u_ty));
        let count = bind(add.clone(), &[x_wins.select(ones(x_ty), zeros(x_ty)), indices.clone(), u_count]);
        let share = ones(x_ty) / &count;
        let u_share = bind(read, &[share.clone(), indices.clone()]);
        let from_x = match x_dot {
            Some(x_dot) => x_dot * x_wins.select(share, zeros(x_ty)),
            None => zeros(x_ty),
        };
        let Some(u_dot) = u_dot else { return Ok(from_x) };
        Ok(bind(add, &[from_x, indices.clone(), u_dot * u_wins.select(u_share, zeros(u_ty))]))
    }

    fn run<T: Element>(
        &self,
        x: &Concrete,
        indices: &Concrete,
        updates: &Concrete,
        merge: Merge<T>,
    ) -> Result<Concrete> {
        let mut out = owned::<T>(x)?;
        let strides = row_major(x.dims());
        let update_dims: Vec<Dim> = updates.dims().iter().map(|d| Dim::from(*d)).collect();
        let sizes = crate::primitives::shaping::known(&self.sizes(x.dims().len(), &update_dims))?;
        let layout = Layout {
            operand_dims: x.dims(),
            operand_strides: &strides,
            operand_offset: 0,
            windows_strides: updates.strides(),
            windows_offset: updates.offset(),
            sizes: &sizes,
        };
        let windows = self.windows();
        let (dims, to, from) = windows.inside(&layout);
        let inside = StridedCopy::new(&dims, &from, &to);
        let source = T::slice(updates.data()).unwrap_or_default();
        if updates.count() > 0 {
            windows.walk(&layout, &indices.try_dense()?, false, &mut |to, from| {
                if let Some(to) = to {
                    merge(&inside, source, from, &mut out, to);
                }
            });
        }
        Ok(Concrete::dense(x.ty().clone(), out))
    }

    fn combine(&self, x: &Concrete, indices: &Concrete, updates: &Concrete) -> Result<Concrete> {
        let dtype = x.ty().dtype();
        macro_rules! run {
            ($dispatch:ident, $change:expr) => {
                $dispatch!(dtype, T => self.run::<T>(x, indices, updates, |walk, s, from, t, to| walk.merge(s, from, t, to, $change)), else fail!(DType, "not of {dtype}"))
            };
        }
        match self.kind {
            ScatterKind::Set => dispatch!(dtype, T => self.run::<T>(x, indices, updates, StridedCopy::copy)),
            ScatterKind::Add => run!(dispatch_number, |t: &mut T, s| *t = t.plus(s)),
            ScatterKind::Mul => run!(dispatch_number, |t: &mut T, s| *t = t.times(s)),
            ScatterKind::Min => run!(dispatch_real, |t: &mut T, s| *t = Ordered::smaller(*t, s)),
            ScatterKind::Max => run!(dispatch_real, |t: &mut T, s| *t = Ordered::larger(*t, s)),
        }
    }
}

impl Primitive for Scatter {
    rules_of!("scatter"; kind, update_window_dims, inserted_dims, operand_batch_dims, index_batch_dims, index_map, unique);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(3)?;
        let inputs = infer.inputs;
        let [x, indices, updates] = inputs else { fail!(Verify, "wants three operands") };
        if x.dtype() != updates.dtype() {
            fail!(DType, "updates of type {updates} cannot be written into {x}");
        }
        let (wants, accepts): (_, fn(DType) -> bool) = match self.kind {
            ScatterKind::Set => ("anything", |_| true),
            ScatterKind::Add | ScatterKind::Mul => ("numbers", |d| d.is_number()),
            ScatterKind::Min | ScatterKind::Max => ("integers or floats", |d| d.is_int() || d.is_float()),
        };
        if !accepts(x.dtype()) {
            return Err(error!(DType, "`{}` wants {wants}, not {x}", self.kind.name()).help("cast, or use `set`"));
        }
        let windows = self.windows();
        windows.check(infer, x, indices, ["update_window_dims", "inserted_dims"])?;
        let rank = windows.rank(indices);
        if updates.rank() != rank {
            fail!(Shape, "updates for the indices {indices} must have rank {rank}, which {updates} has not");
        }
        for (axis, want) in windows.outer(rank).zip(indices.shape().iter()) {
            if updates.shape().get(axis).is_none_or(|have| !infer.equal(have, want)) {
                fail!(Shape, "axis {axis} of the updates {updates} must have {want} as the indices {indices} have");
            }
        }
        for (axis, to) in self.update_window_dims.iter().zip(windows.shown(x.rank())) {
            let (Some(size), Some(dim)) = (updates.shape().get(*axis), x.shape().get(to)) else { continue };
            if !infer.at_least(dim, size) {
                fail!(
                    Shape,
                    "windows of {size} along axis {axis} of the updates {updates} do not fit axis {to} of {x}"
                );
            }
        }
        one(x.clone())
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let (x, indices, updates) = (operand(inputs, 0)?, operand(inputs, 1)?, operand(inputs, 2)?);
        // Sums and products of half floats are taken in f32 and rounded once, as reductions do it.
        macro_rules! widened {
            ($half:ident) => {
                self.combine(&map(x, $half::to_f32)?, indices, &map(updates, $half::to_f32)?)
                    .and_then(|y| map(&y, $half::from_f32))
            };
        }
        one_output(match (x.ty().dtype(), self.kind) {
            (DType::F16, ScatterKind::Add | ScatterKind::Mul) => widened!(f16)?,
            (DType::BF16, ScatterKind::Add | ScatterKind::Mul) => widened!(bf16)?,
            _ => self.combine(x, indices, updates)?,
        })
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([x, indices, updates], [x_dot, _, u_dot]) = (jvp.primals, jvp.tangents) else {
            fail!(Rule, "wants three operands")
        };
        if x_dot.is_none() && u_dot.is_none() {
            return Ok(Derivative::Zero);
        }
        match (self.kind, x_dot) {
            // Adding a zero tangent changes nothing.
            (ScatterKind::Add, Some(x_dot)) if u_dot.is_none() => Derivative::one(x_dot.clone()),
            // Which update stays does not depend on its value, so `set` is linear, also where places are written twice.
            (ScatterKind::Set | ScatterKind::Add, _) => Derivative::one(bind(
                Op::new(self.clone()),
                &[or_zeros(x_dot, x)?, indices.clone(), or_zeros(u_dot, updates)?],
            )),
            (ScatterKind::Mul, _) => Derivative::one(self.jvp_mul(jvp)?),
            (ScatterKind::Min | ScatterKind::Max, _) => Derivative::one(self.jvp_extreme(jvp)?),
        }
    }
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        let [x, Linear::Known(indices), updates] = transpose.operands else { return Ok(Transposed::NotLinear) };
        let type_of = |operand: &Linear| match operand {
            Linear::Known(a) => a.ty().cloned(),
            Linear::Unknown(ty) => Ok(ty.clone()),
        };
        let (x_ty, u_ty) = (type_of(x)?, type_of(updates)?);
        let reader = self.reader(&x_ty, &u_ty);
        match self.kind {
            ScatterKind::Set => transposed(transpose, |i, y_bar, _| {
                if i == 0 {
                    // What was written over has no part in the result.
                    return Ok(bind(Op::new(self.clone()), &[y_bar.clone(), indices.clone(), zeros(&u_ty)]));
                }
                if self.unique {
                    return reader.or_zeros(y_bar, indices);
                }
                let read = bind(Op::new(reader.clone()), &[y_bar.clone(), indices.clone()]);
                Ok(self.survivors(&x_ty, indices, &u_ty).select(read, zeros(&u_ty)))
            }),
            ScatterKind::Add => {
                transposed(
                    transpose,
                    |i, y_bar, _| {
                        if i == 0 { Ok(y_bar.clone()) } else { reader.or_zeros(y_bar, indices) }
                    },
                )
            }
            // Linear in the operand alone: each place is multiplied by what falls on it.
            ScatterKind::Mul => match updates {
                Linear::Known(updates) => transposed(transpose, |_, y_bar, _| {
                    Ok(bind(Op::new(self.clone()), &[y_bar.clone(), indices.clone(), updates.clone()]))
                }),
                Linear::Unknown(_) => Ok(Transposed::NotLinear),
            },
            ScatterKind::Min | ScatterKind::Max => Ok(Transposed::NotLinear),
        }
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        let &[_, indices_batched, _] = batch.batched else { fail!(Rule, "wants three operands") };
        let Some(indices) = batch.inputs.get(1) else { fail!(Rule, "wants three operands") };
        let scatter = Scatter::new(self.kind, self.windows().batched(true, indices_batched), self.unique);
        Batched::one(bind(Op::new(scatter), &[batch.with_axis(0), indices.clone(), batch.with_axis(2)]))
    }
    fn is_total(&self) -> bool {
        true
    }
    fn halves(&self) -> Halves {
        if self.kind == ScatterKind::Set { Halves::Bits } else { Halves::Widened }
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        let ints = |dims: &[usize], v: &[i32]| Array::from(Concrete::from_vec(dims, v.to_vec()));
        let scatter = |kind, lists: [&[usize]; 5], unique| {
            let [window, inserted, operand_batch, index_batch, map] = lists.map(<[usize]>::to_vec);
            Scatter {
                kind,
                update_window_dims: window,
                inserted_dims: inserted,
                operand_batch_dims: operand_batch,
                index_batch_dims: index_batch,
                index_map: map,
                unique,
            }
        };
        let sample =
            |s: Scatter, x: Array, indices: Array, updates: Array| Sample::new(Op::new(s), vec![x, indices, updates]);
        // Numbers apart from those of `reals`, so that nothing ties.
        let others = |dims: &[usize]| reals(dims) * 1.5_f64 + 0.1_f64;
        let mut all = Vec::new();
        for &kind in ScatterKind::ALL {
            let elements = |unique| scatter(kind, [&[], &[0], &[], &[], &[0]], unique);
            all.extend([
                sample(elements(true), reals(&[5]), ints(&[3, 1], &[3, 0, 4]), others(&[3])),
                // Places written twice, and out of range on both sides.
                sample(elements(false), reals(&[4]), ints(&[5, 1], &[2, 0, 2, 3, 2]), others(&[5])),
                sample(elements(false), reals(&[3]), ints(&[4, 1], &[1, -1, 3, 1]), others(&[4])),
                // Rows; windows of two columns that overlap; the window axis in front.
                sample(
                    scatter(kind, [&[1], &[0], &[], &[], &[0]], true),
                    reals(&[3, 2]),
                    ints(&[2, 1], &[2, 0]),
                    others(&[2, 2]),
                ),
                sample(
                    scatter(kind, [&[1], &[0], &[], &[], &[0, 1]], false),
                    reals(&[2, 4]),
                    ints(&[3, 2], &[1, 0, 1, 1, 0, 3]),
                    others(&[3, 2]),
                ),
                sample(
                    scatter(kind, [&[0], &[], &[], &[], &[0]], false),
                    reals(&[5]),
                    ints(&[3, 1], &[0, 1, 3]),
                    others(&[2, 3]),
                ),
                // One element of each row of a batch.
                sample(
                    scatter(kind, [&[], &[1], &[0], &[0], &[1]], true),
                    reals(&[2, 3]),
                    ints(&[2, 1], &[2, 1]),
                    others(&[2]),
                ),
                sample(
                    scatter(kind, [&[1], &[], &[], &[], &[]], false),
                    reals(&[2]),
                    ints(&[3, 0], &[]),
                    others(&[3, 2]),
                ),
                sample(elements(false), reals(&[0]), ints(&[0, 1], &[]), others(&[0])),
                sample(elements(false), ramp(DType::I16, &[3]), ints(&[3, 1], &[1, 1, 2]), ramp(DType::I16, &[3])),
                sample(elements(false), ramp(DType::F16, &[3]), ints(&[3, 1], &[1, 1, 2]), ramp(DType::F16, &[3]))
                    .rough(),
            ]);
            if matches!(kind, ScatterKind::Set | ScatterKind::Add | ScatterKind::Mul) {
                let complex = |n| ramp(DType::C128, &[n]);
                all.push(sample(elements(false), complex(3), ints(&[3, 1], &[1, 1, 2]), complex(3)));
            }
        }
        let elements = |kind| scatter(kind, [&[], &[0], &[], &[], &[0]], false);
        let bools = |n| ramp(DType::Bool, &[n]);
        let (x, u) = (Array::from([1.0_f64, -2.0, 3.0]), Array::from([1.0_f64, 0.0, 0.0, 2.0]));
        all.extend([
            sample(elements(ScatterKind::Set), bools(4), ints(&[2, 1], &[3, 0]), bools(2)),
            // Zeros among the factors of one place; ties.
            sample(elements(ScatterKind::Mul), x.clone(), ints(&[4, 1], &[0, 1, 1, 1]), u.clone()),
            sample(elements(ScatterKind::Max), x, ints(&[4, 1], &[0, 1, 1, 2]), u).rough(),
        ]);
        all
    }
}

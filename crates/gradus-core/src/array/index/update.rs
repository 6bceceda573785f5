//! Changing places of an array: `x.at(..).set(v)` and its kin. A block becomes one slice update, marked or stepped
//! places a select, places picked by integers a scatter.

use super::At;
use super::plan::IndexPlan;
use crate::array::operand::checked;
use crate::array::shaping::{apply, value_as};
use crate::array::{Array, Operand, OperandValue};
use crate::error::{Error, Result, error};
use crate::primitives::index::{DynamicUpdateSlice, Scatter, ScatterKind};
use crate::types::{DType, Dim, Scalar, Shape};

/// A value in the shape of the places it goes to. Leading axes of size 1 may be too many, as in NumPy.
#[track_caller]
fn fitted(value: &Array, shape: &Shape) -> Result<Array> {
    let extra = value.rank().saturating_sub(shape.rank());
    let spare = value.shape().iter().take(extra).all(|d| d.constant() == Some(1));
    let value =
        if extra > 0 && spare { value.try_reshape(value.shape().without(|i| i < extra))? } else { value.clone() };
    value.try_broadcast_to(shape.clone())
}

#[track_caller]
fn combined(kind: ScatterKind, old: &Array, value: Array) -> Array {
    match kind {
        ScatterKind::Set => value,
        ScatterKind::Add => old + value,
        ScatterKind::Mul => old * value,
        ScatterKind::Min => old.minimum(value),
        ScatterKind::Max => old.maximum(value),
    }
}

#[cold]
fn help_for_mask(e: Error) -> Error {
    e.note("one value goes to all places that a bool array marks, however many there are")
        .help("for a value of its own at each place use `mask.select(&values, &x)`")
}

impl At<'_> {
    /// The array with these places replaced.
    #[track_caller]
    pub fn set(&self, value: impl Operand) -> Array {
        checked(self.update(ScatterKind::Set, value.into_operand()))
    }

    /// The array with a value added at these places.
    #[track_caller]
    pub fn add(&self, value: impl Operand) -> Array {
        checked(self.update(ScatterKind::Add, value.into_operand()))
    }

    /// The array with these places multiplied.
    #[track_caller]
    pub fn mul(&self, value: impl Operand) -> Array {
        checked(self.update(ScatterKind::Mul, value.into_operand()))
    }

    /// The array with the smaller of old and new at these places.
    #[track_caller]
    pub fn min(&self, value: impl Operand) -> Array {
        checked(self.update(ScatterKind::Min, value.into_operand()))
    }

    /// The array with the larger of old and new at these places.
    #[track_caller]
    pub fn max(&self, value: impl Operand) -> Array {
        checked(self.update(ScatterKind::Max, value.into_operand()))
    }

    #[track_caller]
    fn update(&self, kind: ScatterKind, value: OperandValue) -> Result<Array> {
        let ty = self.array.ty()?;
        let plan = IndexPlan::new(ty, &self.index)?;
        let value = value_as(value, ty.dtype())?;
        if plan.mask().is_some() {
            self.update_marked(&plan, kind, &value)
        } else if plan.arrays().is_empty() {
            self.update_window(&plan, kind, &value)
        } else {
            self.update_picked(&plan, kind, &value)
        }
    }

    /// Places of a slice.
    #[track_caller]
    fn update_window(&self, plan: &IndexPlan, kind: ScatterKind, value: &Array) -> Result<Array> {
        let window = plan.window_shape();
        let value = fitted(value, &plan.result_shape(&window, &Shape::scalar()))?;
        let value = value.try_reshape(window)?;
        // Of a symbolic axis the slice checks, when it runs, that the window is inside; the update alone would not.
        if kind == ScatterKind::Set && !self.array.shape().is_symbolic() {
            return self.write(plan, value);
        }
        let old = plan.window(self.array)?;
        self.write(plan, combined(kind, &old, value).ok()?)
    }

    /// Places picked by integers, inside a window.
    #[track_caller]
    fn update_picked(&self, plan: &IndexPlan, kind: ScatterKind, value: &Array) -> Result<Array> {
        let window = plan.window(self.array)?;
        let lookup = plan.lookup(&window)?;
        let value = fitted(value, &plan.result_shape(window.shape(), &lookup.shape))?;
        // New axes have size 1, so leaving them out keeps the order of elements.
        let window_axes = plan.window_axes(lookup.shape.rank());
        let sizes = plan.sizes(window.shape());
        let collapsed = plan.collapsed();
        let mut kept = sizes.iter().enumerate().filter(|(i, _)| !collapsed.contains(i)).map(|(_, d)| d.clone());
        let mut picked = lookup.shape.iter().cloned();
        let mut dims = Vec::new();
        for i in 0..window_axes.len() + lookup.shape.rank() {
            dims.extend(if window_axes.contains(&i) { kept.next() } else { picked.next() });
        }
        let updates = value.try_reshape(dims.into())?;
        if updates.shape().count() == Some(0) {
            return Ok(self.array.clone());
        }
        let scatter = Scatter {
            kind,
            update_window_dims: window_axes,
            inserted_dims: collapsed,
            operand_batch_dims: vec![],
            index_batch_dims: vec![],
            index_map: lookup.axes.clone(),
            unique: false,
        };
        // Places outside an empty axis: none can be inside, so nothing changes.
        if plan.arrays().iter().any(|(axis, _)| window.dim(*axis as isize).constant() == Some(0)) {
            return Ok(self.array.clone());
        }
        let changed = apply(scatter, &[window, lookup.stacked()?, updates])?;
        self.write(plan, changed)
    }

    /// Places marked by a mask, inside a window.
    #[track_caller]
    fn update_marked(&self, plan: &IndexPlan, kind: ScatterKind, value: &Array) -> Result<Array> {
        let Some((first, mask)) = plan.mask() else { return Ok(self.array.clone()) };
        let window = plan.window(self.array)?;
        // How many places are marked is not known, so the value has one element for all of them (but may vary along
        // the axes that the mask leaves alone).
        let one: Shape = [1usize].into_iter().collect();
        let value = fitted(value, &plan.result_shape(window.shape(), &one)).map_err(help_for_mask)?;
        let marked = |axis: usize| axis >= *first && axis - first < mask.rank();
        let pick = |keep: bool| -> Shape {
            let size = |(i, d): (usize, &Dim)| if marked(i) == keep { d.clone() } else { Dim::from(1usize) };
            window.shape().iter().enumerate().map(size).collect()
        };
        let value = value.try_reshape(pick(false))?;
        let mask = mask.try_reshape(pick(true))?;
        let changed = mask.select(combined(kind, &window, value), &window).ok()?;
        self.write(plan, changed)
    }

    /// The array with the window (in the order of the index) replaced.
    #[track_caller]
    fn write(&self, plan: &IndexPlan, window: Array) -> Result<Array> {
        let shape = self.array.shape();
        let window = plan.turned(window)?;
        if plan.is_whole() {
            return Ok(window);
        }
        if window.shape().count() == Some(0) {
            return Ok(self.array.clone());
        }
        if plan.is_block() {
            let mut inputs = vec![self.array.clone(), window];
            for start in &plan.start {
                inputs.push(Array::from_dim(start, DType::I64));
            }
            return apply(DynamicUpdateSlice {}, &inputs);
        }
        // Spread to the places it goes to, with a mask of these places beside.
        let (mut high, mut interior) = (Vec::new(), Vec::new());
        for (axis, (start, step)) in plan.start.iter().zip(&plan.step).enumerate() {
            let (Some(dim), Some(count)) = (shape.get(axis), window.shape().get(axis)) else {
                return Err(error!(Rule, "a window lost an axis"));
            };
            high.push(dim - start - (count - 1usize) * *step - 1usize);
            interior.push(step - 1);
        }
        let marks = Array::scalar(Scalar::Bool(true)).try_broadcast_to(window.shape().clone())?;
        let mask =
            marks.padded(plan.start.clone(), high.clone(), interior.clone(), Array::scalar(Scalar::Bool(false)))?;
        let fill = Array::scalar(Scalar::zero(window.dtype()));
        let spread = window.padded(plan.start.clone(), high, interior, fill)?;
        mask.select(&spread, self.array).ok()
    }
}

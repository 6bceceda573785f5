//! Functions of parameters as functions of one vector, with their derivatives at a point: what methods of second order are written in.

use gradus_core::{Array, Error, ErrorKind, Location, Mode, Program, Result, Scalar, Shape, trace, transform};

use crate::stage::trace_body;
use crate::transforms::basis;
use crate::tree::{Mapper, Segment, Tree, Visitor};

/// Where a minimization ended.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Minimum<P> {
    /// The parameters.
    pub point: P,
    /// What was minimized, there.
    pub value: Array,
    /// How many steps were taken.
    pub steps: Array,
    /// Whether it ended because there is nothing to gain, a bool: not because steps ran out, and not because the value or the slope is no finite number.
    pub converged: Array,
}

/// By hand: a derived one would ask parameters to be `Clone`.
impl<P: Tree> Tree for Minimum<P> {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.enter(Segment::Field("point"));
        self.point.visit(visitor);
        visitor.leave();
        for (name, array) in [("value", &self.value), ("steps", &self.steps), ("converged", &self.converged)] {
            visitor.enter(Segment::Field(name));
            array.visit(visitor);
            visitor.leave();
        }
    }

    fn map(&self, mapper: &mut dyn Mapper) -> Self {
        Minimum {
            point: self.point.map(mapper),
            value: self.value.map(mapper),
            steps: self.steps.map(mapper),
            converged: self.converged.map(mapper),
        }
    }
}

/// A function of a vector at a point: its value, and its derivative as programs.
pub(super) struct At {
    pub(super) value: Array,
    /// What derivatives take besides a direction.
    kept: Vec<Array>,
    linear: Program,
    varies: bool,
}

impl At {
    /// With the derivative backward: from what belongs to the value to what belongs to the point.
    pub(super) fn backward(f: &dyn Fn(&Array) -> Array, x: &Array, place: Location) -> Result<At> {
        At::new(f, x, place, transform::vjp)
    }

    /// With the derivative forward.
    pub(super) fn forward(f: &dyn Fn(&Array) -> Array, x: &Array, place: Location) -> Result<At> {
        At::new(f, x, place, transform::linearize)
    }

    fn new(
        f: &dyn Fn(&Array) -> Array,
        x: &Array,
        place: Location,
        halve: fn(&Program, &[bool]) -> Result<transform::Linearized>,
    ) -> Result<At> {
        let spec = Array::of_type(x.ty()?.clone());
        let (traced, _) =
            trace_body("objective", &[spec], Mode::Abstract, place, |xs| f(&xs[0])).map_err(|(e, _)| e)?;
        let active: Vec<bool> = (0..traced.program.inputs().len()).map(|i| i == 0).collect();
        let parts = halve(&traced.program, &active)?;
        let inputs: Vec<Array> = std::iter::once(x).chain(&traced.captures).cloned().collect();
        let mut outputs = trace::inline(&parts.primal, &inputs)?;
        let kept = outputs.split_off(1);
        let value = outputs.pop().unwrap_or_else(|| Array::from(0.0_f64));
        Ok(At { value, kept, varies: parts.varies.contains(&true), linear: parts.linear })
    }

    /// The derivative along a direction; zeros of `like` where nothing varies.
    pub(super) fn along(&self, direction: &Array, like: &Array) -> Result<Array> {
        if !self.varies {
            return Ok(like.zeros_like());
        }
        let inputs: Vec<Array> = self.kept.iter().chain([direction]).cloned().collect();
        let mut found = trace::inline(&self.linear, &inputs)?;
        found.pop().ok_or_else(|| Error::new(ErrorKind::Rule, "a derivative gave no result"))
    }

    /// The derivative as a matrix: a row for each number of the value. Made forward, one column for each number of the point.
    pub(super) fn matrix(&self, x: &Array) -> Result<Array> {
        let (n, m) = (x.dim(0), self.value.dim(0));
        if !self.varies {
            return Ok(Array::full_scalar([m, n].into_iter().collect::<Shape>(), Scalar::zero(x.dtype())));
        }
        let eye = basis(x.shape(), x.dtype(), &self.kept)?;
        let inputs: Vec<Array> = self.kept.iter().chain([&eye]).cloned().collect();
        let flags: Vec<bool> = (0..inputs.len()).map(|i| i + 1 == inputs.len()).collect();
        let (columns, batched) = transform::vmap_on(&self.linear, &inputs, &flags, &n)?;
        let Some(columns) = columns.into_iter().next() else { return self.value.clone().ok() };
        let columns = if batched[0] { columns } else { columns.broadcast_to([n, m].into_iter().collect::<Shape>()) };
        columns.t().ok()
    }
}

/// Refuses parameters that are no vector of floats, and objectives that are no number.
pub(super) fn check_vector(x: &Array) -> Result<()> {
    let ty = x.ty()?;
    if ty.dtype().is_float() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::DType, format!("parameters of floats, not of {}", ty.dtype()))
        .help("leave integers, complex numbers and keys out of what is minimized: capture them"))
}

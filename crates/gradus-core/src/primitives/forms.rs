//! Scalar forms of operations: what [`Primitive::scalar`] writes, found for an operation, applied inside of another, and collected from the
//! whole list.

use std::sync::LazyLock;

use smallvec::SmallVec;

use super::{BUILT_IN, Halves, Op, Primitive};
use crate::error::{Result, error};
use crate::scalar::{self, Form, Half, Local, Math, Scalars, Step, Ty};
use crate::types::DType;

impl Form {
    /// The form of an operation on elements of these types, if it has one; an error if what it says does not fit together. That of one on half floats
    /// takes and gives their bits.
    pub fn of(op: &Op, from: &[DType], to: DType) -> Result<Option<Form>> {
        let types = from.iter().map(|d| Ty::holding(*d)).collect::<Option<SmallVec<[Ty; 3]>>>();
        let Some((types, out)) = types.zip(Ty::holding(to)) else { return Ok(None) };
        let has_halves = from.iter().chain([&to]).any(|d| Half::of(*d).is_some());
        let written = Form::written(&types, out, |s| match op.halves() {
            Halves::Widened if has_halves => widened(op, from, to, s),
            Halves::Whole if has_halves => None,
            _ => op.scalar(s),
        });
        written.map_err(|e| {
            error!(MissingRule, "the scalar form of `{}` does not fit together: {}", op.name(), e.message())
                .help("hold the primitive against its rules with `testing::check_samples`")
        })
    }
}

/// The form of an operation on 32-bit floats, between half floats.
fn widened(op: &Op, from: &[DType], to: DType, s: &mut Scalars) -> Option<Local> {
    let mut args = s.operands();
    for (x, dtype) in args.iter_mut().zip(from) {
        if let Some(half) = Half::of(*dtype) {
            *x = s.op(scalar::Op::Widen(half), &[*x]);
        }
    }
    let Some(half) = Half::of(to) else { return s.nested(op.name(), &args, s.to(), |s| op.scalar(s)) };
    let made = s.nested(op.name(), &args, Ty::F32, |s| op.scalar(s))?;
    Some(s.op(scalar::Op::Narrow(half), &[made]))
}

impl Scalars {
    /// What another operation makes of numbers, by its own form: `s.apply(&Sin, &[x], s.ty(x))`. None if it has none for them.
    pub fn apply(&mut self, operation: &dyn Primitive, args: &[Local], to: Ty) -> Option<Local> {
        self.nested(operation.name(), args, to, |s| operation.scalar(s))
    }
}

impl Math {
    /// The elementary functions of the built-in operations, in the order of their list.
    pub fn all() -> &'static [Math] {
        static ALL: LazyLock<Vec<Math>> = LazyLock::new(Math::collect);
        &ALL
    }

    /// The elementary function that is called this in texts.
    pub fn named(name: &str) -> Option<Math> {
        Math::all().iter().copied().find(|m| m.name == name)
    }

    fn collect() -> Vec<Math> {
        let mut all = Vec::new();
        for entry in BUILT_IN.iter() {
            let Some(sample) = (entry.samples)().into_iter().next() else { continue };
            let from = vec![DType::F64; sample.inputs.len()];
            let Ok(Some(form)) = Form::of(&sample.op, &from, DType::F64) else { continue };
            for (_, step) in form.steps() {
                if let Step::Op(scalar::Op::Math(m), _) = step
                    && !all.contains(m)
                {
                    all.push(*m);
                }
            }
        }
        all
    }
}

//! Scalar forms of operations: what [`Primitive::scalar`] writes, found for an operation, applied inside of another, and collected from the
//! whole list.

use std::sync::LazyLock;

use super::{BUILT_IN, Op, Primitive};
use crate::error::{Result, error};
use crate::scalar::{self, Form, Local, Math, Scalars, Step, Ty};

impl Form {
    /// The form of an operation on elements of these types, if it has one; an error if what it says does not fit together.
    pub fn of(op: &Op, from: &[Ty], to: Ty) -> Result<Option<Form>> {
        Form::written(from, to, |s| op.scalar(s)).map_err(|e| {
            error!(MissingRule, "the scalar form of `{}` does not fit together: {}", op.name(), e.message())
                .help("hold the primitive against its rules with `testing::check_samples`")
        })
    }
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
            let from = vec![Ty::F64; sample.inputs.len()];
            let Ok(Some(form)) = Form::of(&sample.op, &from, Ty::F64) else { continue };
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

//! For those who extend Gradus: operations, backends and tools. Programs that only use it need nothing of this.
//!
//! | you write | look at |
//! |---|---|
//! | an operation | [`primitives`] has the trait with every rule, [`rules_of!`] and [`trace::bind`]; [`scalar`] and [`math`] are what compiled loops are made of; [`testing`] has the checks that built-in operations go through |
//! | a backend | [`Backend`] and [`Executable`]; a program comes as [`Passed`], after the passes that the backend asks for, and [`interpret`] says what it means; [`pipeline`] has the stages before it |
//! | a pass or a transformation | [`program`] (builder, text, verifier), [`transform`], [`optimize`] |
//! | a tool that shows or compares | [`phases`], [`oracle`], [`lint`], [`error_page`] |
//! | functions over arrays and functions of functions | [`array`](mod@array), [`types`], [`error`], [`Arguments`], [`Position`], [`HasJacobian`], [`Axes`] |
//!
//! These are the modules in which Gradus itself is written, and they change when it does; names at the root of the crate
//! are kept with more care.
//!
//! An operation is a struct with its rules. This one is x², with a derivative, a batching rule and a scalar form, by which it shares loops with its
//! neighbours when it is compiled:
//!
//! ```
//! use gradus::extend::primitives::{Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types, register};
//! use gradus::extend::types::Effects;
//! use gradus::extend::scalar::{self, Local, Scalars};
//! use gradus::extend::{rules_of, testing, trace};
//! use gradus::prelude::*;
//!
//! #[derive(Clone, Copy, Debug)]
//! struct Square;
//!
//! impl Primitive for Square {
//!     rules_of!("square_of_mine");
//!     fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
//!         infer.arity(1)?;
//!         infer.dtype(0, "f64", |d| d == DType::F64)?;
//!         infer.all_same().map(|t| [t].into_iter().collect())
//!     }
//!     fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
//!         Ok([&inputs[0] * &inputs[0]].into_iter().collect())
//!     }
//!     fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
//!         match &jvp.tangents[0] {
//!             Some(x_dot) => Derivative::one(x_dot * (&jvp.primals[0] * 2.0)),
//!             None => Ok(Derivative::Zero),
//!         }
//!     }
//!     fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
//!         Ok(Transposed::NotLinear)
//!     }
//!     fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
//!         batch.elementwise(Op::new(*self))
//!     }
//!     fn scalar(&self, s: &mut Scalars) -> Option<Local> {
//!         let x = s.operand(0);
//!         Some(s.op(scalar::Op::Mul, &[x, x]))
//!     }
//!     fn is_elementwise(&self) -> bool {
//!         true
//!     }
//!     fn effects(&self) -> Effects {
//!         Effects::PURE
//!     }
//!     fn samples() -> Vec<Sample> {
//!         vec![Sample::new(Op::new(Square), vec![Array::from([1.5, -2.0])])]
//!     }
//! }
//!
//! fn square(x: &Array) -> Array {
//!     trace::bind(Op::new(Square), std::slice::from_ref(x))
//! }
//!
//! # fn main() -> Result<()> {
//! assert_eq!(jit(grad(square))(&Array::from(3.0)).item::<f64>()?, 6.0);
//! // What the built-in ones go through: types, text, derivatives against differences, batches against a loop.
//! register::<Square>("square_of_mine")?;
//! assert_eq!(testing::check_samples(&Square::samples()).err(), None);
//! # Ok(())
//! # }
//! ```

pub use crate::arguments::{Arguments, Position};
pub use crate::error_pages::error_page;
pub use crate::transforms::{Axes, HasJacobian};
pub use gradus_core::{
    Backend, Executable, Facts, Passed, Usage, array, error, interpret, lint, math, optimize, oracle, param_names,
    phases, pipeline, primitives, program, rules_of, scalar, testing, trace, transform, types,
};

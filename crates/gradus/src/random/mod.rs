//! Randomness as a value: every function here takes a [`Key`] by value and gives the same numbers for it, always.
//!
//! Numbers are those that `jax.random` gives for the same key (Threefry-2x32, its default). The book's page on randomness says
//! which of them to the last bit, and how far the others are.

mod basic;
mod discrete;
mod formulas;
mod gamma;
mod key;
mod multivariate;
mod poisson;

pub use basic::{bernoulli, bits, exponential, gumbel, normal, randint, truncated_normal, uniform, uniform_between};
pub use discrete::{ChoiceOptions, categorical, choice, permutation, shuffle, shuffle_independent};
pub use gamma::{ball, beta, gamma, loggamma};
pub use key::Key;
pub(crate) use key::{Spending, spend_all};
pub use multivariate::multivariate_normal;
pub use poisson::poisson;

use gradus_core::array::dim_as;
use gradus_core::trace;
use gradus_core::{Array, Error, ErrorKind, Location, Operand, OperandValue, Result, Shape};
use gradus_core::{DType, Decision};

/// Runs the body of a function that draws from a key: on behalf of the user's line, with the array of the key.
#[track_caller]
fn drawing(key: Key, body: impl FnOnce(&Array) -> Result<Array>) -> Array {
    let place = trace::caller_or_known(Location::caller());
    let key = key.open(place);
    trace::at_place(place, || key::single(&key).and_then(|()| body(&key)).and_then(Array::ok))
        .map_err(|e| e.at(place))
        .into()
}

/// A parameter of a distribution as an array of its dtype and of the draw's shape.
fn parameter(what: &str, value: impl Operand, dtype: DType, shape: &Shape) -> Result<Array> {
    let array = match value.into_operand() {
        OperandValue::Number(n) => return Ok(Array::full_scalar(shape.clone(), n.literal_as(dtype)?)),
        OperandValue::Dim(d) => dim_as(&d, dtype)?,
        OperandValue::Array(a) => a.ok()?,
    };
    if array.dtype().promote(dtype) != Some(dtype) {
        let message = format!("{what} of {} does not fit numbers of {dtype}", array.dtype());
        return Err(Error::new(ErrorKind::DType, message).help("cast it, or draw numbers of another dtype"));
    }
    spread(what, &array.cast(dtype), shape)
}

/// An array broadcast to the shape of a draw.
fn spread(what: &str, array: &Array, shape: &Shape) -> Result<Array> {
    let own = array.shape();
    let fits = own.rank() <= shape.rank()
        && own
            .iter()
            .rev()
            .zip(shape.iter().rev())
            .all(|(a, b)| a.constant() == Some(1) || a.equals(b) != Decision::No);
    if !fits {
        let message = format!("{what} of shape {own} does not broadcast to {shape}");
        return Err(Error::new(ErrorKind::Shape, message).help("give the draw a shape that holds one for each"));
    }
    if own == shape { Ok(array.clone()) } else { array.broadcast_to(shape).ok() }
}

/// Refuses a dtype that is not a float.
fn want_float(what: &str, dtype: DType) -> Result<()> {
    match dtype.is_float() {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::DType, format!("{what} gives floats, not {dtype}"))
            .help("ask for a float, as in `random::uniform::<f32>(key, [3])`")),
    }
}

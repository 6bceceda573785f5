//! Numbers out of arrays. Here errors come out, and a traced value refuses.

use std::borrow::Cow;

use super::operand::checked;
use super::{Array, Concrete, Form};
use crate::error::{Location, Result, error};
use crate::trace;
use crate::types::{Element, Scalar};

fn same_dtype<T: Element>(c: &Concrete) -> Result<()> {
    if c.ty().dtype() != T::DTYPE {
        return Err(error!(DType, "the array is {}, but {} was asked for", c.ty(), T::DTYPE)
            .help(format!("read it as {}, or cast it first", c.ty().dtype())));
    }
    Ok(())
}

impl Array {
    /// The number of an array with one element.
    #[track_caller]
    pub fn item<T: Element>(&self) -> Result<T> {
        let place = Location::caller();
        let array = trace::read(self, "`item`", place)?;
        let c = array.on_host()?;
        if c.count() != 1 {
            return Err(error!(Shape, "`item` wants one element, and {} has {}", c.ty(), c.count())
                .at(place)
                .help("use `to_vec`, or index first"));
        }
        same_dtype::<T>(c).and_then(|()| c.element(0)).map_err(|e| e.at(place))
    }

    /// The number of an array with one element, with its dtype.
    #[track_caller]
    pub fn item_scalar(&self) -> Result<Scalar> {
        let place = Location::caller();
        let array = trace::read(self, "`item_scalar`", place)?;
        let c = array.on_host()?;
        if c.count() != 1 {
            return Err(error!(Shape, "`item_scalar` wants one element, and {} has {}", c.ty(), c.count()).at(place));
        }
        c.scalar_at(0).map_err(|e| e.at(place))
    }

    /// The elements in row-major order.
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let place = Location::caller();
        let array = trace::read(self, "`to_vec`", place)?;
        let c = array.on_host()?;
        same_dtype::<T>(c).map_err(|e| e.at(place))?;
        c.try_to_vec().map_err(|e| e.at(place))
    }

    /// The elements without a copy, if they stand in memory in row-major order.
    #[track_caller]
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        let place = Location::caller();
        let Some(c) = self.concrete() else {
            // Gives the right error, and leaves its mark on the trace.
            trace::read(self, "`as_slice`", place)?;
            return Err(error!(NotConcrete, "a traced value has no memory to borrow").at(place).help("use `to_vec`"));
        };
        same_dtype::<T>(c).map_err(|e| e.at(place))?;
        c.dense_slice().ok_or_else(|| {
            error!(Value, "the array is a view with strides {:?}, not one slice", c.strides())
                .at(place)
                .help("use `to_vec`, or make it dense with `to_dense` first")
        })
    }

    /// The elements in row-major order, borrowed where they stand that way.
    #[track_caller]
    pub fn values<T: Element>(&self) -> Result<Cow<'_, [T]>> {
        match self.as_slice::<T>() {
            Ok(slice) => Ok(Cow::Borrowed(slice)),
            Err(_) => self.to_vec::<T>().map(Cow::Owned),
        }
    }

    /// The same array, dense and row-major in memory.
    #[track_caller]
    pub fn to_dense(&self) -> Array {
        match self.form() {
            Form::Concrete(c) if !c.is_dense() => checked(c.try_dense().map(Array::from)),
            _ => self.clone(),
        }
    }

    /// The strides of a concrete array, in elements.
    pub fn strides(&self) -> Option<&[isize]> {
        self.concrete().map(Concrete::strides)
    }
}

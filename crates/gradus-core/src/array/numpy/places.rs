//! Places and what is put there: sums over segments, indices of marked elements, flat and many-axed places.

use super::{all_at_caller, at_caller};
use crate::array::Array;
use crate::array::operand::resolve_axis;
use crate::error::{Result, counted, error, fail};
use crate::types::{DType, Dim, IntoShape, Scalar, Shape};

/// What becomes of elements that go to one place.
#[derive(Clone, Copy)]
pub(super) enum Fold {
    Sum,
    Product,
    Largest,
    Smallest,
}

macro_rules! segments {
    ($($(#[$doc:meta])* $name:ident = $fold:ident;)*) => {
        impl Array {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, segments: &Array, count: impl Into<Dim>) -> Array {
                let count = count.into();
                at_caller(|| self.segments(segments, count, Fold::$fold))
            }
        )*}
    };
}
segments! {
    /// Sums of the elements along the leading axis that have the same number: `segments` says to which of `count` sums each belongs. Numbers
    /// outside of these are left out.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let x = Array::from([1.0, 2.0, 3.0]);
    /// assert_eq!(x.segment_sum(&Array::from([0, 1, 0]), 2usize).to_vec::<f64>().unwrap(), [4.0, 2.0]);
    /// ```
    segment_sum = Sum;
    /// As [`Array::segment_sum`], the products; of no elements 1.
    segment_prod = Product;
    /// As [`Array::segment_sum`], the largest; of no elements the lowest number of the dtype.
    segment_max = Largest;
    /// As [`Array::segment_sum`], the smallest; of no elements the highest number of the dtype.
    segment_min = Smallest;
}

impl Array {
    pub(super) fn segments(&self, segments: &Array, count: Dim, fold: Fold) -> Result<Array> {
        let (ty, places) = (self.ty()?, segments.ty()?);
        if !places.dtype().is_int() {
            return Err(error!(DType, "segments have whole numbers, not {places}")
                .help("cast first, as in `x.cast(DType::I64)`"));
        }
        if places.rank() > ty.rank() {
            fail!(Shape, "{places} has more axes than {ty}, whose elements it sorts into segments");
        }
        let dtype = ty.dtype();
        let start = match fold {
            Fold::Sum => Scalar::zero(dtype),
            Fold::Product => Scalar::one(dtype),
            Fold::Largest => Scalar::lowest(dtype),
            Fold::Smallest => Scalar::highest(dtype),
        };
        let rest = ty.shape().iter().skip(places.rank()).cloned();
        let shape = [count.clone()].into_iter().chain(rest).collect();
        // Negative numbers would count from the end: they go where nothing is.
        let places = segments.try_cast(DType::I64)?;
        let places = places.lt(0i64).select(Array::from_dim(&count, DType::I64), &places).ok()?;
        let empty = Array::scalar(start).try_broadcast_to(shape)?;
        let at = empty.at(&places);
        match fold {
            Fold::Sum => at.add(self),
            Fold::Product => at.mul(self),
            Fold::Largest => at.max(self),
            Fold::Smallest => at.min(self),
        }
        .ok()
    }

    /// The places of the first `size` elements in row-major order that are not zero, as `i64`. Where there are fewer, the rest is 0.
    #[track_caller]
    pub fn flatnonzero(&self, size: impl Into<Dim>) -> Array {
        let size = size.into();
        at_caller(|| self.marked(size, 0))
    }

    /// Places of elements that are not zero, filled up with a number.
    pub(super) fn marked(&self, size: Dim, fill: i64) -> Result<Array> {
        let mask = self.ty().map(|_| self.is_true())?.try_flatten()?;
        let n = mask.dim(0);
        let place = mask.cast(DType::I64).cumsum(0) - 1i64;
        // What is not marked goes behind the end, where nothing is.
        let place = mask.select(&place, Array::from_dim(&size, DType::I64)).ok()?;
        let empty = Array::from(fill).try_broadcast_to([size].into_iter().collect())?;
        empty.at(&place).set(Array::try_iota(DType::I64, [n].into_iter().collect(), 0)?).ok()
    }

    /// The places of the first `size` elements that are not zero, an array of `i64` for each axis. How many there are is not known before
    /// the program runs, so the size is given; where there are fewer, the rest is 0.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let places = Array::from([[0, 5], [7, 0]]).nonzero(2usize);
    /// assert_eq!(places[0].to_vec::<i64>().unwrap(), [0, 1]);
    /// assert_eq!(places[1].to_vec::<i64>().unwrap(), [1, 0]);
    /// ```
    #[track_caller]
    pub fn nonzero(&self, size: impl Into<Dim>) -> Vec<Array> {
        let size = size.into();
        all_at_caller(self.rank().max(1), || {
            let flat = self.marked(size, 0)?;
            if self.rank() == 0 {
                return Ok(vec![flat]);
            }
            flat.unravelled(self.shape())
        })
    }

    /// As [`Array::nonzero`], a row of a matrix for each place.
    #[track_caller]
    pub fn argwhere(&self, size: impl Into<Dim>) -> Array {
        Array::stack(self.nonzero(size), 1)
    }

    fn unravelled(&self, shape: &Shape) -> Result<Vec<Array>> {
        let mut rest = self.clone();
        let mut all = Vec::with_capacity(shape.rank());
        for dim in shape.iter().rev() {
            let size = dim.max(&Dim::from(1usize));
            all.push((&rest % size.clone()).ok()?);
            rest = (&rest / size).ok()?;
        }
        all.reverse();
        Ok(all)
    }

    /// Places in row-major order as places along each axis of a shape.
    #[track_caller]
    pub fn unravel_index(&self, shape: impl IntoShape) -> Vec<Array> {
        let shape = shape.into_shape();
        all_at_caller(shape.rank().max(1), || self.unravelled(&shape))
    }

    /// Places along each axis of a shape as places in row-major order. Those outside are clipped.
    #[track_caller]
    pub fn ravel_multi_index<I>(places: I, shape: impl IntoShape) -> Array
    where
        I: IntoIterator,
        I::Item: AsRef<Array>,
    {
        let shape = shape.into_shape();
        let places: Vec<Array> = places.into_iter().map(|a| a.as_ref().clone()).collect();
        at_caller(|| {
            if places.len() != shape.rank() {
                fail!(
                    Shape,
                    "{} of places for the {} of {shape}",
                    counted(places.len(), "array"),
                    counted(shape.rank(), "axis")
                );
            }
            let mut flat = Array::from(0i64);
            for (p, dim) in places.iter().zip(shape.iter()) {
                let p = p.try_cast(DType::I64)?.maximum(0i64).minimum(dim.clone() - 1usize);
                flat = flat * dim.clone() + p;
            }
            flat.ok()
        })
    }

    /// The elements along an axis where a vector of bools is true, the first `size` of them; where there are fewer, the rest is 0.
    #[track_caller]
    pub fn compress(&self, condition: &Array, axis: isize, size: impl Into<Dim>) -> Array {
        let size = size.into();
        at_caller(|| {
            let axis = resolve_axis(axis, self.ty()?.rank())?;
            let places = condition.marked(size.clone(), -1)?;
            let found = self.take(&places.maximum(0i64), axis as isize);
            let shape: Vec<Dim> =
                (0..self.rank()).map(|i| if i == axis { size.clone() } else { Dim::from(1usize) }).collect();
            places.ge(0i64).reshape(Shape::from(shape)).select(&found, found.zeros_like()).ok()
        })
    }

    /// As [`Array::compress`], of all elements in row-major order.
    #[track_caller]
    pub fn extract(&self, condition: &Array, size: impl Into<Dim>) -> Array {
        self.flatten().compress(&condition.flatten(), 0, size)
    }

    /// Changes places of each row: the reverse of [`Array::take_along_axis`].
    #[track_caller]
    pub fn put_along_axis(&self, places: &Array, values: &Array, axis: isize) -> Array {
        at_caller(|| {
            let (ty, at) = (self.ty()?, places.ty()?);
            let axis = resolve_axis(axis, ty.rank())?;
            if at.rank() != ty.rank() {
                fail!(Shape, "`put_along_axis` of {ty} wants places with as many axes, not {at}");
            }
            let values = values.try_broadcast_to(at.shape().clone())?;
            let mut index = Vec::with_capacity(ty.rank());
            for i in 0..ty.rank() {
                let along = if i == axis {
                    places.clone()
                } else {
                    Array::try_iota(DType::I64, at.shape().clone(), i as isize)?
                };
                index.push(crate::array::Index::Array(along));
            }
            self.at(index).set(values).ok()
        })
    }

    /// The array with elements in row-major order replaced. Of places named twice the last one stays, those outside are left out.
    #[track_caller]
    pub fn put(&self, places: &Array, values: &Array) -> Array {
        at_caller(|| {
            let values = values.try_flatten()?;
            self.try_flatten()?.at(&places.try_flatten()?).set(values).ok()?.try_reshape(self.shape().clone())
        })
    }

    /// The first element of a list of arrays whose condition is true there, `otherwise` where none is.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let x = Array::from([1, 5, 9]);
    /// let y = Array::select_first([x.lt(3), x.gt(6)], [&x, &-&x], 0);
    /// assert_eq!(y.to_vec::<i32>().unwrap(), [1, 0, -9]);
    /// ```
    #[doc(alias = "select")]
    #[doc(alias = "piecewise")]
    #[track_caller]
    pub fn select_first<C, V>(conditions: C, choices: V, otherwise: impl crate::array::Operand) -> Array
    where
        C: IntoIterator,
        C::Item: AsRef<Array>,
        V: IntoIterator,
        V::Item: AsRef<Array>,
    {
        let conditions: Vec<Array> = conditions.into_iter().map(|a| a.as_ref().clone()).collect();
        let choices: Vec<Array> = choices.into_iter().map(|a| a.as_ref().clone()).collect();
        let otherwise = otherwise.into_operand();
        at_caller(|| {
            let [rest @ .., (condition, choice)] = &conditions.iter().zip(&choices).collect::<Vec<_>>()[..] else {
                fail!(Value, "no conditions were given to choose by");
            };
            if conditions.len() != choices.len() {
                fail!(Value, "{} conditions for {} choices", conditions.len(), choices.len());
            }
            let mut found = condition.select(*choice, otherwise);
            for (condition, choice) in rest.iter().rev() {
                found = condition.select(*choice, &found);
            }
            found.ok()
        })
    }

    /// From a list of arrays the element that an integer names, place by place. Integers outside are clipped.
    #[track_caller]
    pub fn choose<I>(&self, choices: I) -> Array
    where
        I: IntoIterator,
        I::Item: AsRef<Array>,
    {
        let choices: Vec<Array> = choices.into_iter().map(|a| a.as_ref().clone()).collect();
        at_caller(|| {
            let Some((first, rest)) = choices.split_first() else {
                fail!(Value, "no arrays were given to choose from")
            };
            let mut found = first.clone();
            for (i, choice) in rest.iter().enumerate() {
                found = self.gt(i).select(choice, &found);
            }
            found.ok()
        })
    }

    /// The diagonal of a matrix replaced.
    #[track_caller]
    pub fn fill_diagonal(&self, value: impl crate::array::Operand) -> Array {
        let value = value.into_operand();
        at_caller(|| {
            let [n, m] = self.ty()?.shape().dims() else {
                fail!(Shape, "a diagonal is of a matrix, not of {}", self.ty()?)
            };
            let shape: Shape = [n.clone(), m.clone()].into_iter().collect();
            let (rows, columns) =
                (Array::try_iota(DType::I64, shape.clone(), 0)?, Array::try_iota(DType::I64, shape, 1)?);
            let value = crate::array::shaping::value_as(value, self.dtype())?;
            // A vector has an element for each row.
            let value = if value.rank() == 1 { value.expand_dims(1) } else { value };
            rows.eq(&columns).select(value, self).ok()
        })
    }
}

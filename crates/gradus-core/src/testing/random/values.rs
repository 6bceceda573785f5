//! Random numbers, constants and arrays: mostly small and plain, sometimes the ones that break things.

use super::{Maker, Source};
use crate::array::{Array, Concrete};
use crate::program::{Atom, Constant};
use crate::types::{Complex, DType, Scalar, Shape, Type, dispatch};

/// Numbers that operations get wrong first.
const SPECIAL: [f64; 10] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1e300, -1e300, 1e-320, 0.5, -0.5];

fn float(source: &mut Source<'_>, smooth: bool) -> f64 {
    if smooth {
        return 2.4 * source.unit() - 1.2;
    }
    match source.below(8) {
        0 => source.pick(&SPECIAL).copied().unwrap_or(0.0),
        1..5 => (source.below(33) as f64 - 16.0) * 0.25,
        _ => 8.0 * source.unit() - 4.0,
    }
}

pub(super) fn scalar(source: &mut Source<'_>, dtype: DType, smooth: bool) -> Scalar {
    if dtype == DType::Bool {
        return Scalar::Bool(source.byte() & 1 == 1);
    }
    if dtype.is_int() {
        return match source.below(12) {
            0 => Scalar::lowest(dtype),
            1 => Scalar::highest(dtype),
            2 => Scalar::one(dtype),
            3 => Scalar::zero(dtype),
            _ => Scalar::I64(source.below(14) as i64 - 4).cast(dtype),
        };
    }
    let re = float(source, smooth);
    if dtype.is_complex() {
        let im = float(source, smooth);
        return Scalar::C128(Complex::new(re, im)).cast(dtype);
    }
    Scalar::F64(re).cast(dtype)
}

fn dense(source: &mut Source<'_>, ty: &Type, smooth: bool) -> Concrete {
    let dims = ty.shape().known().unwrap_or_default();
    // Not the product of the dimensions: those of an empty array may overflow it.
    let count = ty.shape().count().unwrap_or(0);
    dispatch!(ty.dtype(), T => {
        let number = |_| <T as crate::types::Element>::from_scalar(scalar(source, ty.dtype(), smooth)).unwrap_or_default();
        Concrete::from_vec(&dims, (0..count).map(number).collect::<Vec<T>>())
    })
}

/// An array of a type with known dimensions. Some are views: turned, backwards, with gaps, one number repeated.
pub fn random_array(source: &mut Source<'_>, ty: &Type, smooth: bool) -> Array {
    let shape = ty.shape();
    let made = match source.below(8) {
        0 => {
            let turned = Type::new(ty.dtype(), shape.iter().rev().cloned().collect::<Shape>());
            Array::from(dense(source, &turned, smooth)).t()
        }
        1 => Array::from(dense(source, ty, smooth)).flip(()),
        2 if ty.rank() > 0 => {
            let wide = Type::new(ty.dtype(), shape.replaced(0, &shape[0] + &shape[0]));
            Array::from(dense(source, &wide, smooth)).index(crate::array::Index::step(.., 2))
        }
        3 if !smooth => Array::full_scalar(shape.clone(), scalar(source, ty.dtype(), smooth)),
        _ => dense(source, ty, smooth).into(),
    };
    // Whatever went wrong with a view, the caller gets an array of the type asked for.
    if made.ty().is_ok_and(|t| t == ty) { made } else { dense(source, ty, smooth).into() }
}

impl Maker<'_, '_> {
    /// A constant of a type: one number, or, where the size is known, many.
    pub(super) fn constant(&mut self, ty: &Type) -> Atom {
        let smooth = self.recipe.smooth;
        let many = ty.shape().count().is_some_and(|n| n <= 16) && self.source.chance(40);
        let constant = match many {
            true => Constant::array(&dense(self.source, ty, smooth)),
            false => Constant::splat(ty.clone(), scalar(self.source, ty.dtype(), smooth)),
        };
        self.builder.constant(constant)
    }

    /// One number in every place.
    pub(super) fn splat(&mut self, ty: &Type, value: f64) -> Atom {
        self.builder.constant(Constant::splat(ty.clone(), Scalar::F64(value)))
    }

    /// Integers as places along an axis of size `n`, some of them outside.
    pub(super) fn places(&mut self, shape: &Shape, n: usize) -> Option<Atom> {
        if !self.recipe.smooth
            && self.source.chance(40)
            && let Some(x) = self.any_of(|t| t.dtype().is_int() && t.shape() == shape)
        {
            return Some(x);
        }
        let dims = shape.known()?;
        let count = shape.count()?;
        let numbers: Vec<i32> = (0..count).map(|_| self.source.below(n + 2) as i32 - 1).collect();
        Some(self.builder.constant(Constant::array(&Concrete::from_vec(&dims, numbers))))
    }
}

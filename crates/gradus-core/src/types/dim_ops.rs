//! Arithmetic on dimensions in Rust's own notation: `2 * b + 1`, with numbers on either side.

use std::ops::{Add, Mul, Neg, Sub};

use super::dim::Dim;

macro_rules! operators {
    ($($op:ident $method:ident $inner:ident)*) => {$(
        operators!(@one $op $method $inner, Dim, Dim);
        operators!(@one $op $method $inner, Dim, &Dim);
        operators!(@one $op $method $inner, &Dim, Dim);
        operators!(@one $op $method $inner, &Dim, &Dim);
        operators!(@int $op $method $inner, usize);
        operators!(@int $op $method $inner, i64);
        operators!(@int $op $method $inner, i32);
    )*};
    (@one $op:ident $method:ident $inner:ident, $left:ty, $right:ty) => {
        impl $op<$right> for $left {
            type Output = Dim;
            #[inline]
            fn $method(self, other: $right) -> Dim {
                Dim::$inner(&self, &other)
            }
        }
    };
    (@int $op:ident $method:ident $inner:ident, $int:ty) => {
        operators!(@mixed $op $method $inner, Dim, $int);
        operators!(@mixed $op $method $inner, &Dim, $int);
    };
    (@mixed $op:ident $method:ident $inner:ident, $dim:ty, $int:ty) => {
        impl $op<$int> for $dim {
            type Output = Dim;
            #[inline]
            fn $method(self, other: $int) -> Dim {
                Dim::$inner(&self, &Dim::from(other))
            }
        }
        impl $op<$dim> for $int {
            type Output = Dim;
            #[inline]
            fn $method(self, other: $dim) -> Dim {
                Dim::$inner(&Dim::from(self), &other)
            }
        }
    };
}

operators!(Add add plus Sub sub minus Mul mul times);

impl Neg for &Dim {
    type Output = Dim;
    #[inline]
    fn neg(self) -> Dim {
        Dim::from(0i64) - self
    }
}

impl Neg for Dim {
    type Output = Dim;
    #[inline]
    fn neg(self) -> Dim {
        -&self
    }
}

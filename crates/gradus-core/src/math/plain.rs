//! The basic operations on single numbers: what the interpreter computes.

use std::marker::PhantomData;

use super::{Arith, Rare};

/// The basic operations on one number of type `T`, `f32` or `f64`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain<T>(PhantomData<T>);

macro_rules! plain {
    ($($t:ident $i:ident $u:ident $wide:literal $rare:ident;)*) => {$(
        impl Arith for Plain<$t> {
            type F = $t;
            type I = $i;
            type B = bool;

            fn wide(&self) -> bool { $wide }
            fn float(&mut self, v: f64) -> $t { v as $t }
            fn int(&mut self, v: i64) -> $i { v as $i }
            fn add(&mut self, a: $t, b: $t) -> $t { a + b }
            fn sub(&mut self, a: $t, b: $t) -> $t { a - b }
            fn mul(&mut self, a: $t, b: $t) -> $t { a * b }
            fn div(&mut self, a: $t, b: $t) -> $t { a / b }
            fn fma(&mut self, a: $t, b: $t, c: $t) -> $t { a.mul_add(b, c) }
            fn neg(&mut self, a: $t) -> $t { -a }
            fn abs(&mut self, a: $t) -> $t { a.abs() }
            fn sqrt(&mut self, a: $t) -> $t { a.sqrt() }
            fn round(&mut self, a: $t) -> $t { a.round_ties_even() }
            fn floor(&mut self, a: $t) -> $t { a.floor() }
            fn lesser(&mut self, a: $t, b: $t) -> $t { if a < b { a } else { b } }
            fn greater(&mut self, a: $t, b: $t) -> $t { if a > b { a } else { b } }
            fn lt(&mut self, a: $t, b: $t) -> bool { a < b }
            fn le(&mut self, a: $t, b: $t) -> bool { a <= b }
            fn eq(&mut self, a: $t, b: $t) -> bool { a == b }
            fn ne(&mut self, a: $t, b: $t) -> bool { a != b }
            fn ilt(&mut self, a: $i, b: $i) -> bool { a < b }
            fn and(&mut self, a: bool, b: bool) -> bool { a & b }
            fn or(&mut self, a: bool, b: bool) -> bool { a | b }
            fn not(&mut self, a: bool) -> bool { !a }
            fn select(&mut self, c: bool, a: $t, b: $t) -> $t { if c { a } else { b } }
            fn iselect(&mut self, c: bool, a: $i, b: $i) -> $i { if c { a } else { b } }
            fn to_bits(&mut self, a: $t) -> $i { a.to_bits() as $i }
            fn from_bits(&mut self, a: $i) -> $t { <$t>::from_bits(a as $u) }
            fn iadd(&mut self, a: $i, b: $i) -> $i { a.wrapping_add(b) }
            fn isub(&mut self, a: $i, b: $i) -> $i { a.wrapping_sub(b) }
            fn iand(&mut self, a: $i, b: $i) -> $i { a & b }
            fn ior(&mut self, a: $i, b: $i) -> $i { a | b }
            fn ixor(&mut self, a: $i, b: $i) -> $i { a ^ b }
            fn shl(&mut self, a: $i, n: u32) -> $i { a << n }
            fn shr(&mut self, a: $i, n: u32) -> $i { (a as $u >> n) as $i }
            fn sar(&mut self, a: $i, n: u32) -> $i { a >> n }
            fn rare(&mut self, f: Rare, a: $t, b: $t, when: bool) -> $t { if when { f.$rare(a, b) } else { a } }
        }
    )*};
}
plain! {
    f32 i32 u32 false of_f32;
    f64 i64 u64 true of_f64;
}

macro_rules! functions {
    ($($name:ident $narrow:ident $wide:ident ($($arg:ident),*);)*) => {
        $(
            #[doc = concat!("[`", stringify!($name), "`](super::", stringify!($name), ") in `f32`.")]
            pub fn $narrow($($arg: f32),*) -> f32 {
                super::$name(&mut Plain::<f32>::default(), $($arg),*)
            }

            #[doc = concat!("[`", stringify!($name), "`](super::", stringify!($name), ") in `f64`.")]
            pub fn $wide($($arg: f64),*) -> f64 {
                super::$name(&mut Plain::<f64>::default(), $($arg),*)
            }
        )*
    };
}
functions! {
    exp exp_f32 exp_f64 (x);
    expm1 expm1_f32 expm1_f64 (x);
    log log_f32 log_f64 (x);
    log1p log1p_f32 log1p_f64 (x);
    logistic logistic_f32 logistic_f64 (x);
    sinh sinh_f32 sinh_f64 (x);
    cosh cosh_f32 cosh_f64 (x);
    tanh tanh_f32 tanh_f64 (x);
    sin sin_f32 sin_f64 (x);
    cos cos_f32 cos_f64 (x);
    tan tan_f32 tan_f64 (x);
    asin asin_f32 asin_f64 (x);
    acos acos_f32 acos_f64 (x);
    atan atan_f32 atan_f64 (x);
    asinh asinh_f32 asinh_f64 (x);
    acosh acosh_f32 acosh_f64 (x);
    atanh atanh_f32 atanh_f64 (x);
    cbrt cbrt_f32 cbrt_f64 (x);
    erf erf_f32 erf_f64 (x);
    erfc erfc_f32 erfc_f64 (x);
    rsqrt rsqrt_f32 rsqrt_f64 (x);
    pow pow_f32 pow_f64 (x, y);
    rem rem_f32 rem_f64 (x, y);
    atan2 atan2_f32 atan2_f64 (y, x);
}

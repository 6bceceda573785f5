//! Single numbers of any dtype, the Rust types behind them, and the conversions between them.

use std::fmt;
use std::hash::{Hash, Hasher};

pub use half::{bf16, f16};
pub use num_complex::Complex;

use super::DType;
use super::Data;
use crate::error::{Result, error};

/// A number on its way from one dtype to another: the widest of each kind.
#[derive(Clone, Copy, Debug)]
pub enum Wide {
    /// Any signed integer.
    Int(i64),
    /// Any unsigned integer, and bool as 0 or 1.
    UInt(u64),
    /// Any float.
    Real(f64),
    /// Any complex number.
    Complex(f64, f64),
}

mod sealed {
    /// Only this crate can say that a type is an element: memory is read by what it says.
    pub trait Sealed {}
}

/// A Rust type that arrays can hold. Sealed: only the sixteen dtypes have one.
///
/// ```compile_fail,E0277
/// # use gradus_core::{DType, Element, Scalar, array::Data, types::Wide};
/// #[derive(Clone, Copy, Default, PartialEq, Debug)]
/// struct Mine;
/// impl Element for Mine {
///     const DTYPE: DType = DType::F64;
///     fn into_data(values: Vec<Mine>) -> Data { Data::I8(vec![0; values.len()]) }
///     fn slice(_: &Data) -> Option<&[Mine]> { None }
///     fn vec_mut(_: &mut Data) -> Option<&mut Vec<Mine>> { None }
///     fn into_scalar(self) -> Scalar { Scalar::I8(0) }
///     fn from_scalar(_: Scalar) -> Option<Mine> { None }
///     fn to_wide(self) -> Wide { Wide::Int(0) }
///     fn from_wide(_: Wide) -> Mine { Mine }
///     fn bits(self) -> u128 { 0 }
/// }
/// ```
pub trait Element: sealed::Sealed + Copy + Default + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// The dtype of this Rust type.
    const DTYPE: DType;
    /// Wraps a buffer.
    fn into_data(values: Vec<Self>) -> Data;
    /// The buffer as a slice, if it is of this type.
    fn slice(data: &Data) -> Option<&[Self]>;
    /// The buffer as a mutable slice, if it is of this type.
    fn slice_mut(data: &mut Data) -> Option<&mut [Self]> {
        Self::vec_mut(data).map(Vec::as_mut_slice)
    }
    /// The buffer itself, if it is of this type.
    fn vec_mut(data: &mut Data) -> Option<&mut Vec<Self>>;
    /// Wraps one number.
    fn into_scalar(self) -> Scalar;
    /// The number, if it is of this type.
    fn from_scalar(scalar: Scalar) -> Option<Self>;
    /// Widens.
    fn to_wide(self) -> Wide;
    /// Converts as Rust's `as` does: to nearest for floats, saturating for integers, NaN to 0, nonzero to `true`.
    fn from_wide(wide: Wide) -> Self;
    /// The bits, for exact comparison and hashing (NaN equals itself, 0.0 differs from -0.0).
    fn bits(self) -> u128;
}

macro_rules! elements {
    ($(($variant:ident, $rust:ty)),* $(,)?) => {
        /// One number with its dtype. Equality is by bits: a NaN equals itself, `0.0` differs from `-0.0`.
        #[derive(Clone, Copy)]
        #[allow(missing_docs)]
        pub enum Scalar { $($variant($rust)),* }

        impl Scalar {
            /// The dtype.
            pub fn dtype(self) -> DType {
                match self { $(Scalar::$variant(_) => DType::$variant),* }
            }

            fn to_wide(self) -> Wide {
                match self { $(Scalar::$variant(v) => v.to_wide()),* }
            }

            fn bits(self) -> u128 {
                match self { $(Scalar::$variant(v) => v.bits()),* }
            }

            fn from_wide(wide: Wide, dtype: DType) -> Scalar {
                match dtype { $(DType::$variant => Scalar::$variant(<$rust>::from_wide(wide))),* }
            }
        }

        $(impl From<$rust> for Scalar {
            fn from(value: $rust) -> Scalar { Scalar::$variant(value) }
        })*
    };
}
elements! {
    (Bool, bool), (I8, i8), (I16, i16), (I32, i32), (I64, i64), (U8, u8), (U16, u16), (U32, u32), (U64, u64),
    (F16, f16), (BF16, bf16), (F32, f32), (F64, f64), (C64, Complex<f32>), (C128, Complex<f64>),
    (Key, KeyBits),
}

macro_rules! element {
    ($variant:ident, $rust:ty, wide: $to:expr, from: $from:expr, bits: $bits:expr) => {
        impl sealed::Sealed for $rust {}

        impl Element for $rust {
            const DTYPE: DType = DType::$variant;
            #[inline]
            fn into_data(values: Vec<Self>) -> Data {
                Data::$variant(values)
            }
            #[inline]
            fn slice(data: &Data) -> Option<&[Self]> {
                if let Data::$variant(v) = data { Some(v) } else { None }
            }
            fn vec_mut(data: &mut Data) -> Option<&mut Vec<Self>> {
                if let Data::$variant(v) = data { Some(v) } else { None }
            }
            fn into_scalar(self) -> Scalar {
                Scalar::$variant(self)
            }
            fn from_scalar(scalar: Scalar) -> Option<Self> {
                if let Scalar::$variant(v) = scalar { Some(v) } else { None }
            }
            #[inline]
            fn to_wide(self) -> Wide {
                let to: fn($rust) -> Wide = $to;
                to(self)
            }
            #[inline]
            fn from_wide(wide: Wide) -> Self {
                let from: fn(Wide) -> $rust = $from;
                from(wide)
            }
            #[inline]
            fn bits(self) -> u128 {
                let bits: fn($rust) -> u128 = $bits;
                bits(self)
            }
        }
    };
}
macro_rules! int_elements {
    ($($variant:ident $rust:ident $kind:ident $wide:ident),*) => {$(
        element!($variant, $rust,
            wide: |v| Wide::$kind(v as $wide),
            from: |w| match w {
                Wide::Int(v) => v as $rust,
                Wide::UInt(v) => v as $rust,
                Wide::Real(v) | Wide::Complex(v, _) => v as $rust,
            },
            bits: |v| v as u128);
    )*};
}
int_elements!(I8 i8 Int i64, I16 i16 Int i64, I32 i32 Int i64, I64 i64 Int i64);
int_elements!(U8 u8 UInt u64, U16 u16 UInt u64, U32 u32 UInt u64, U64 u64 UInt u64);
element!(Bool, bool,
    wide: |v| Wide::UInt(v as u64),
    from: |w| match w {
        Wide::Int(v) => v != 0,
        Wide::UInt(v) => v != 0,
        Wide::Real(v) => v != 0.0,
        Wide::Complex(re, im) => re != 0.0 || im != 0.0,
    },
    bits: |v| v as u128);
/// A number in 32 bits, for half floats to be made of: toward zero, and with an odd last place where anything was lost. So the one rounding that follows, to far
/// fewer places, is that of the number itself; a tie is one only if the number is.
fn odd(x: f64) -> f32 {
    let y = x as f32;
    if x.is_nan() || f64::from(y) == x {
        return y;
    }
    let beyond = f64::from(y).abs() > x.abs();
    f32::from_bits((y.to_bits() - u32::from(beyond)) | 1)
}

/// The same of a whole number.
fn whole_odd(v: impl Into<i128>) -> f32 {
    let v = v.into();
    let y = v as f32;
    let back = y as i128;
    if back == v { y } else { f32::from_bits((y.to_bits() - u32::from(back.abs() > v.abs())) | 1) }
}

macro_rules! float_elements {
    ($($variant:ident $rust:ident $to:expr, $from_f64:expr, $from_i64:expr, $from_u64:expr;)*) => {$(
        element!($variant, $rust,
            wide: |v| Wide::Real($to(v)),
            from: |w| match w {
                Wide::Int(v) => $from_i64(v),
                Wide::UInt(v) => $from_u64(v),
                Wide::Real(v) | Wide::Complex(v, _) => $from_f64(v),
            },
            bits: |v| v.to_bits() as u128);
    )*};
}
float_elements! {
    F32 f32 |v| v as f64, |v| v as f32, |v| v as f32, |v| v as f32;
    F64 f64 |v| v, |v| v, |v| v as f64, |v| v as f64;
    F16 f16 f16::to_f64, |v| f16::from_f32(odd(v)), |v| f16::from_f32(whole_odd(v)), |v| f16::from_f32(whole_odd(v));
    BF16 bf16 bf16::to_f64, |v| bf16::from_f32(odd(v)), |v| bf16::from_f32(whole_odd(v)), |v| bf16::from_f32(whole_odd(v));
}
macro_rules! complex_elements {
    ($($variant:ident $part:ident),*) => {$(
        element!($variant, Complex<$part>,
            wide: |v| Wide::Complex(v.re as f64, v.im as f64),
            from: |w| match w {
                Wide::Complex(re, im) => Complex::new(re as $part, im as $part),
                real => Complex::new($part::from_wide(real), 0.0),
            },
            bits: |v| (v.re.to_bits() as u128) << 64 | v.im.to_bits() as u128);
    )*};
}
complex_elements!(C64 f32, C128 f64);

/// One element of an array of keys: two 32-bit words, the first in the high half. It is a number to the memory that holds
/// it only; no operation computes with it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct KeyBits(pub u64);

element!(Key, KeyBits,
    wide: |v| Wide::UInt(v.0),
    from: |w| KeyBits(u64::from_wide(w)),
    bits: |v| v.0 as u128);

impl Scalar {
    /// Zero of a dtype.
    pub fn zero(dtype: DType) -> Scalar {
        Scalar::from_wide(Wide::UInt(0), dtype)
    }

    /// One of a dtype.
    pub fn one(dtype: DType) -> Scalar {
        Scalar::from_wide(Wide::UInt(1), dtype)
    }

    /// The smallest number of a dtype: minus infinity where there is one.
    pub fn lowest(dtype: DType) -> Scalar {
        match dtype {
            _ if dtype.is_inexact() => Scalar::from_wide(Wide::Real(f64::NEG_INFINITY), dtype),
            _ if dtype.is_signed_int() => Scalar::from_wide(Wide::Int(i64::MIN >> (64 - 8 * dtype.size())), dtype),
            _ => Scalar::zero(dtype),
        }
    }

    /// The largest number of a dtype: infinity where there is one.
    pub fn highest(dtype: DType) -> Scalar {
        match dtype {
            DType::Bool => Scalar::Bool(true),
            _ if dtype.is_inexact() => Scalar::from_wide(Wide::Real(f64::INFINITY), dtype),
            _ if dtype.is_signed_int() => Scalar::from_wide(Wide::Int(i64::MAX >> (64 - 8 * dtype.size())), dtype),
            _ => Scalar::from_wide(Wide::UInt(u64::MAX >> (64 - 8 * dtype.size())), dtype),
        }
    }

    /// The largest finite number of a dtype.
    pub fn highest_finite(dtype: DType) -> Scalar {
        match dtype {
            DType::F16 => Scalar::F16(f16::MAX),
            DType::BF16 => Scalar::BF16(bf16::MAX),
            DType::F32 | DType::C64 => Scalar::F32(f32::MAX).cast(dtype),
            DType::F64 | DType::C128 => Scalar::F64(f64::MAX).cast(dtype),
            _ => Scalar::highest(dtype),
        }
    }

    /// Converts as Rust's `as` does.
    pub fn cast(self, dtype: DType) -> Scalar {
        if dtype == self.dtype() { self } else { Scalar::from_wide(self.to_wide(), dtype) }
    }

    /// The value as `f64`, real part only, to nearest.
    pub fn to_f64(self) -> f64 {
        f64::from_wide(self.to_wide())
    }

    /// The value as an integer, if it is one and fits.
    pub fn to_i64(self) -> Option<i64> {
        match self.to_wide() {
            Wide::Int(v) => Some(v),
            Wide::UInt(v) => i64::try_from(v).ok(),
            _ => None,
        }
    }

    /// The value as a bool, if it is one.
    pub fn to_bool(self) -> Option<bool> {
        bool::from_scalar(self)
    }

    /// The rule for a number literal beside an array: it takes the array's dtype when it loses nothing.
    ///
    /// A fraction written in decimal beside a narrower float (`x * 0.1` with `x: f32[]`) is rounded to nearest: the
    /// decimal was rounded when it became `f64` already, and no integer digit is lost. A fraction beside integers, a
    /// number out of range, or an integer that the float cannot hold is an error.
    pub fn literal_as(self, dtype: DType) -> Result<Scalar> {
        let cast = self.cast(dtype);
        let exact = match (self.to_wide(), cast.to_wide()) {
            (Wide::Real(v), Wide::Real(c)) | (Wide::Real(v), Wide::Complex(c, _)) => {
                // In range, and an integer stays that integer.
                v.is_finite() == c.is_finite() && (v.fract() != 0.0 || v == c || !v.is_finite())
            }
            (Wide::Complex(a, b), Wide::Complex(re, im)) => {
                a.is_finite() == re.is_finite() && b.is_finite() == im.is_finite()
            }
            (Wide::Int(v), Wide::Int(c)) => v == c,
            (Wide::Int(v), Wide::UInt(c)) => u64::try_from(v) == Ok(c),
            (Wide::UInt(v), Wide::Int(c)) => i64::try_from(v) == Ok(c),
            (Wide::UInt(v), Wide::UInt(c)) => v == c,
            (Wide::Int(v), Wide::Real(c) | Wide::Complex(c, _)) => c.abs() < 1e19 && c as i128 == v as i128,
            (Wide::UInt(v), Wide::Real(c) | Wide::Complex(c, _)) => c.abs() < 2e19 && c as i128 == v as i128,
            // A whole float beside integers is fine: `n * 2.0` is exact. So is nothing else.
            (Wide::Real(v), Wide::Int(c)) => v.fract() == 0.0 && c as f64 == v && v.abs() < 9.0e18,
            (Wide::Real(v), Wide::UInt(c)) => v.fract() == 0.0 && c as f64 == v && v.abs() < 1.8e19,
            (Wide::Complex(..), _) => false,
        };
        if !exact || (dtype == DType::Bool && self.dtype() != DType::Bool) {
            let wanted = match self.dtype() {
                // Only rounded: whoever wants that says it.
                d if dtype.is_float() && !d.is_complex() && cast.to_f64().is_finite() => {
                    let literal = match dtype {
                        DType::F32 | DType::F64 => format!("{cast}_{dtype}"),
                        _ => format!("{dtype}::from_f64({cast})"),
                    };
                    format!("write `{literal}`, which is the nearest that {dtype} has, or cast the array first")
                }
                d if d.promote(dtype).is_some() => {
                    format!("cast the array first, as in `x.cast(DType::{})`", d.rust_name())
                }
                _ => "cast the array, or write a number that its dtype holds".to_string(),
            };
            let from = self.dtype();
            return Err(error!(DType, "the number {self} ({from}) does not fit in {dtype} without loss").help(wanted));
        }
        Ok(cast)
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.dtype() == other.dtype() && self.bits() == other.bits()
    }
}

impl Eq for Scalar {}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.dtype() as u8, self.bits()).hash(state);
    }
}

/// Shortest text that reads back to the same bits: `3.0`, `1e-10`, `nan`, `-inf`, `(1.0,-2.0)` for complex numbers.
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A NaN with other bits than the usual one keeps them, so that text is lossless.
        fn float<T: Element + fmt::Debug>(f: &mut fmt::Formatter<'_>, v: T, wide: f64) -> fmt::Result {
            if wide.is_nan() {
                if v.bits() == T::from_wide(Wide::Real(f64::NAN)).bits() {
                    return f.write_str("nan");
                }
                return write!(f, "nan:{:x}", v.bits());
            }
            if wide.is_infinite() {
                return f.write_str(if wide < 0.0 { "-inf" } else { "inf" });
            }
            write!(f, "{v:?}")
        }
        match *self {
            Scalar::Bool(v) => write!(f, "{v}"),
            Scalar::I8(v) => write!(f, "{v}"),
            Scalar::I16(v) => write!(f, "{v}"),
            Scalar::I32(v) => write!(f, "{v}"),
            Scalar::I64(v) => write!(f, "{v}"),
            Scalar::U8(v) => write!(f, "{v}"),
            Scalar::U16(v) => write!(f, "{v}"),
            Scalar::U32(v) => write!(f, "{v}"),
            Scalar::U64(v) => write!(f, "{v}"),
            // Half floats print through f32, which holds them exactly and prints the fraction point always.
            Scalar::F16(v) => {
                if v.is_nan() {
                    float(f, v, f64::NAN)
                } else {
                    float(f, v.to_f32(), v.to_f64())
                }
            }
            Scalar::BF16(v) => {
                if v.is_nan() {
                    float(f, v, f64::NAN)
                } else {
                    float(f, v.to_f32(), v.to_f64())
                }
            }
            Scalar::F32(v) => float(f, v, v as f64),
            Scalar::F64(v) => float(f, v, v),
            Scalar::C64(v) => write!(f, "({},{})", Scalar::F32(v.re), Scalar::F32(v.im)),
            Scalar::C128(v) => write!(f, "({},{})", Scalar::F64(v.re), Scalar::F64(v.im)),
            Scalar::Key(v) => write!(f, "{}", v.0),
        }
    }
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}{}", self.dtype())
    }
}

/// Runs an expression with a type name bound to the Rust type of a dtype.
macro_rules! dispatch {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::types::dispatch!(@ $dtype, $T => $body;
            Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64,
            F16 $crate::types::f16, BF16 $crate::types::bf16, F32 f32, F64 f64,
            C64 $crate::types::Complex<f32>, C128 $crate::types::Complex<f64>, Key $crate::types::KeyBits; )
    };
    (@ $dtype:expr, $T:ident => $body:expr; $($variant:ident $rust:ty),*; $($other:expr)?) => {
        match $dtype {
            $($crate::types::DType::$variant => { #[allow(dead_code)] type $T = $rust; $body })*
            $(_ => $other)?
        }
    };
}
/// As `dispatch`, for numbers: everything but bools and keys.
macro_rules! dispatch_number {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::types::dispatch!(@ $dtype, $T => $body;
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64,
            F16 $crate::types::f16, BF16 $crate::types::bf16, F32 f32, F64 f64,
            C64 $crate::types::Complex<f32>, C128 $crate::types::Complex<f64>; $other)
    };
}
/// As `dispatch`, for numbers that have an order: integers and floats.
macro_rules! dispatch_real {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::types::dispatch!(@ $dtype, $T => $body;
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64,
            F16 $crate::types::f16, BF16 $crate::types::bf16, F32 f32, F64 f64; $other)
    };
}
/// As `dispatch`, for integers.
macro_rules! dispatch_int {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::types::dispatch!(@ $dtype, $T => $body;
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64; $other)
    };
}
/// As `dispatch`, for floats.
macro_rules! dispatch_float {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::types::dispatch!(@ $dtype, $T => $body;
            F16 $crate::types::f16, BF16 $crate::types::bf16, F32 f32, F64 f64; $other)
    };
}
pub(crate) use {dispatch, dispatch_float, dispatch_int, dispatch_number, dispatch_real};

//! Numbers as bytes and back, in the order that files have them.

use gradus_core::types::KeyBits;
use gradus_core::{Array, Complex, DType, Element, Result, Shape, Type, bf16, f16};

use super::bad;

/// A number that is so many bytes.
trait Stored: Element {
    fn append(self, out: &mut Vec<u8>);
    /// From bytes, the lowest first.
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! stored {
    ($($t:ty),*) => {$(
        impl Stored for $t {
            fn append(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn read(bytes: &[u8]) -> $t {
                let mut own = [0; size_of::<$t>()];
                own.copy_from_slice(bytes);
                <$t>::from_le_bytes(own)
            }
        }
    )*};
}
stored!(i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64);

impl Stored for bool {
    fn append(self, out: &mut Vec<u8>) {
        out.push(u8::from(self));
    }
    fn read(bytes: &[u8]) -> bool {
        bytes.iter().any(|b| *b != 0)
    }
}

impl Stored for KeyBits {
    fn append(self, out: &mut Vec<u8>) {
        self.0.append(out);
    }
    fn read(bytes: &[u8]) -> KeyBits {
        KeyBits(u64::read(bytes))
    }
}

macro_rules! complex {
    ($($t:ty),*) => {$(
        impl Stored for Complex<$t> {
            fn append(self, out: &mut Vec<u8>) {
                self.re.append(out);
                self.im.append(out);
            }
            fn read(bytes: &[u8]) -> Complex<$t> {
                let (re, im) = bytes.split_at(bytes.len() / 2);
                Complex::new(<$t>::read(re), <$t>::read(im))
            }
        }
    )*};
}
complex!(f32, f64);

macro_rules! of_dtype {
    ($dtype:expr, $t:ident => $body:expr) => {
        of_dtype!(@ $dtype, $t, $body, Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F16 f16,
            BF16 bf16, F32 f32, F64 f64, C64 (Complex<f32>), C128 (Complex<f64>), Key KeyBits)
    };
    (@ $dtype:expr, $t:ident, $body:expr, $($variant:ident $rust:tt),*) => {
        match $dtype { $(DType::$variant => { type $t = of_dtype!(@@ $rust); $body })* }
    };
    (@@ ($rust:ty)) => { $rust };
    (@@ $rust:ty) => { $rust };
}

/// The numbers of an array in row-major order, the lowest byte of each first.
#[track_caller]
pub(super) fn of_array(array: &Array) -> Result<Vec<u8>> {
    of_dtype!(array.ty()?.dtype(), T => {
        let values = array.values::<T>()?;
        let mut out = room(values.len().saturating_mul(size_of::<T>()))?;
        values.iter().for_each(|v| v.append(&mut out));
        Ok(out)
    })
}

/// An array of a type from the bytes of its numbers in row-major order, the lowest of each first.
pub(super) fn to_array(dtype: DType, dims: &[usize], bytes: &[u8]) -> Result<Array> {
    let (ty, wanted) = (ty_of(dtype, dims)?, byte_count(dtype, dims)?);
    if wanted != bytes.len() {
        return Err(bad(format!("{} bytes where an array {ty} has {wanted}", bytes.len())));
    }
    of_dtype!(dtype, T => {
        let mut values: Vec<T> = room(bytes.len() / size_of::<T>())?;
        values.extend(bytes.chunks_exact(size_of::<T>()).map(T::read));
        Array::from_vec(values, dims).ok()
    })
}

/// The type that a file claims, if there can be such an array.
pub(super) fn ty_of(dtype: DType, dims: &[usize]) -> Result<Type> {
    byte_count(dtype, dims)?;
    Type::checked(dtype, Shape::from(dims)).map_err(|_| bad(format!("claims sizes that no array has: {dims:?}")))
}

/// The bytes of an array of this type; an error if they cannot be counted.
pub(super) fn byte_count(dtype: DType, dims: &[usize]) -> Result<usize> {
    // A size of zero makes nothing of the others, however large; without it they must have a product.
    if dims.contains(&0) {
        return Ok(0);
    }
    let count = dims.iter().try_fold(dtype.size(), |n, d| n.checked_mul(*d));
    count.ok_or_else(|| bad(format!("claims an array {dtype}{dims:?}, which is more than any memory holds")))
}

/// Room for so many elements, or an error where there is no memory for them.
pub(super) fn room<T>(count: usize) -> Result<Vec<T>> {
    let mut all = Vec::new();
    all.try_reserve_exact(count).map_err(|_| bad(format!("no memory for {count} elements")))?;
    Ok(all)
}

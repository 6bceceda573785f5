//! Arrays of the host as the memory that plugins read and write: dtypes, addresses, and buffers to be filled.

use gradus_core::array::{Concrete, Data, memory, recycled};
use gradus_core::types::{Complex, KeyBits, bf16, f16};
use gradus_core::{DType, Element, Type};

use crate::error::Result;
use crate::sys::PJRT_Buffer_Type as T;

/// What plugins call a dtype. A key is its bits.
pub(crate) fn element_type(dtype: DType) -> u32 {
    match dtype {
        DType::Bool => T::PRED,
        DType::I8 => T::S8,
        DType::I16 => T::S16,
        DType::I32 => T::S32,
        DType::I64 => T::S64,
        DType::U8 => T::U8,
        DType::U16 => T::U16,
        DType::U32 => T::U32,
        DType::U64 | DType::Key => T::U64,
        DType::F16 => T::F16,
        DType::BF16 => T::BF16,
        DType::F32 => T::F32,
        DType::F64 => T::F64,
        DType::C64 => T::C64,
        DType::C128 => T::C128,
    }
}

/// The dtype of what plugins call so.
pub(crate) fn dtype(element_type: u32) -> Option<DType> {
    DType::VALUES.into_iter().find(|d| self::element_type(*d) == element_type)
}

/// Does the same with the Rust type of each dtype.
macro_rules! with_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        with_type!(@ $dtype, $T => $body; Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F16 f16, BF16 bf16,
            F32 f32, F64 f64, C64 Complex<f32>, C128 Complex<f64>, Key KeyBits)
    };
    (@ $dtype:expr, $T:ident => $body:expr; $($variant:ident $rust:ty),*) => {
        match $dtype {
            $(DType::$variant => {
                type $T = $rust;
                $body
            })*
        }
    };
}

/// Where the elements of a dense array begin. Nothing is to be read there if it has none.
pub(crate) fn address(array: &Concrete) -> *const u8 {
    fn start<E: Element>(array: &Concrete) -> *const u8 {
        array.dense_slice::<E>().map_or(std::ptr::null(), |s| s.as_ptr().cast())
    }
    with_type!(array.ty().dtype(), E => start::<E>(array))
}

/// A buffer of so many elements that something else fills: `fill` gets its address and its bytes, and has written them all when it says that it is done.
///
/// # Safety
///
/// If `fill` gives no error, it wrote every byte; for bools, zeros and ones.
pub(crate) unsafe fn filled(
    dtype: DType,
    count: usize,
    fill: impl FnOnce(*mut u8, usize) -> Result<()>,
) -> Result<Data> {
    with_type!(dtype, E => {
        let mut values: Vec<E> = match recycled::<E>(count) {
            Some(old) => old,
            None => memory::<E>(count)?,
        };
        fill(values.as_mut_ptr().cast(), count * size_of::<E>())?;
        // SAFETY: there is room for so many, and the caller says that they were written; every type but bool takes all bits, and bools are said to be right.
        unsafe { values.set_len(count) };
        Ok(E::into_data(values))
    })
}

/// A buffer as an array of a type that has as many elements.
pub(crate) fn dense(ty: Type, mut data: Data) -> Result<Concrete> {
    with_type!(ty.dtype(), E => Concrete::new::<E>(ty, E::vec_mut(&mut data).map(std::mem::take).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_has_its_name_and_its_size() {
        for d in DType::VALUES {
            assert_eq!(dtype(element_type(d)), Some(d));
            with_type!(d, E => assert_eq!((E::DTYPE, size_of::<E>()), (d, d.size())));
        }
        assert_eq!(dtype(0), None);
    }
}

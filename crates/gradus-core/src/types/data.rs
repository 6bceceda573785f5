//! Memory of numbers: a buffer for each dtype.

use super::{Complex, DType, Element, KeyBits, bf16, dispatch, f16};

/// A buffer of elements of one dtype.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Data {
    Bool(Vec<bool>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F16(Vec<f16>),
    BF16(Vec<bf16>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    C64(Vec<Complex<f32>>),
    C128(Vec<Complex<f64>>),
    Key(Vec<KeyBits>),
}

impl Data {
    /// The element type.
    pub fn dtype(&self) -> DType {
        macro_rules! each { ($($v:ident)*) => { match self { $(Data::$v(_) => DType::$v),* } } }
        each!(Bool I8 I16 I32 I64 U8 U16 U32 U64 F16 BF16 F32 F64 C64 C128 Key)
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        dispatch!(self.dtype(), T => T::slice(self).map_or(0, <[T]>::len))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

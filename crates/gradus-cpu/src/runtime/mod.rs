//! What machine code calls: special functions, threads, and the library of products, sorts and single primitives.

/// Code for a dtype's Rust type.
macro_rules! by_dtype {
    ($dtype:expr, $t:ident => $e:expr) => {{
        use gradus_core::DType;
        use gradus_core::types::{Complex, KeyBits, bf16, f16};
        match $dtype {
            DType::Bool => {
                type $t = bool;
                $e
            }
            DType::I8 => {
                type $t = i8;
                $e
            }
            DType::I16 => {
                type $t = i16;
                $e
            }
            DType::I32 => {
                type $t = i32;
                $e
            }
            DType::I64 => {
                type $t = i64;
                $e
            }
            DType::U8 => {
                type $t = u8;
                $e
            }
            DType::U16 => {
                type $t = u16;
                $e
            }
            DType::U32 => {
                type $t = u32;
                $e
            }
            DType::U64 => {
                type $t = u64;
                $e
            }
            DType::F16 => {
                type $t = f16;
                $e
            }
            DType::BF16 => {
                type $t = bf16;
                $e
            }
            DType::F32 => {
                type $t = f32;
                $e
            }
            DType::F64 => {
                type $t = f64;
                $e
            }
            DType::C64 => {
                type $t = Complex<f32>;
                $e
            }
            DType::C128 => {
                type $t = Complex<f64>;
                $e
            }
            DType::Key => {
                type $t = KeyBits;
                $e
            }
        }
    }};
}
pub(crate) use by_dtype;

mod library;
mod packed;
pub mod special;
mod threads;

pub use library::{Evaluate, Gemm, LibraryCall, Placed, Run, Stopped, call, call_entry};
pub use packed::Packed;
pub use threads::parallel;

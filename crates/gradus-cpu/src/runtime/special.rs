//! Functions of compiled Rust that machine code calls for elements it has no code of its own for.

use crate::abi::{Context, SpecialFn, native_fn};
use crate::ir::{Special, Ty};

/// What machine code finds in its context: the functions of f32 and of f64.
pub const FUNCTIONS: [SpecialFn; 2] = [special_f32, special_f64];

/// Where the context has the functions of a type, in bytes, and the parameter to pass for one of them.
pub fn entry(s: Special, ty: Ty) -> (i32, u64) {
    let first = std::mem::offset_of!(Context, special) as i32;
    (if ty == Ty::F32 { first } else { first + 8 }, s.code())
}

macro_rules! special {
    ($name:ident, $t:ty, $of:ident) => {
        native_fn! {
            fn $name(to: *mut u8, a: *const u8, b: *const u8, n: u64, code: u64) {
                // SAFETY: machine code passes three arrays of n elements; `to` may be one of the others.
                unsafe { each::<$t>(to.cast(), a.cast(), b.cast(), n as usize, |a, b| Special::of_code(code).$of(a, b)) }
            }
        }
    };
}
special!(special_f32, f32, of_f32);
special!(special_f64, f64, of_f64);

/// # Safety
/// The pointers are to `n` elements each.
unsafe fn each<T: Copy>(to: *mut T, a: *const T, b: *const T, n: usize, f: impl Fn(T, T) -> T) {
    for i in 0..n {
        // SAFETY: i < n. Elements are read before the same place is written.
        unsafe { to.add(i).write_unaligned(f(a.add(i).read_unaligned(), b.add(i).read_unaligned())) }
    }
}

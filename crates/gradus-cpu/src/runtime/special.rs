//! Functions of compiled Rust that machine code calls for elements it has no code of its own for.

use gradus_core::math;

use crate::abi::{Context, SpecialFn, native_fn};
use crate::ir::{Special, Ty};

fn of_f32(s: Special, a: f32, b: f32) -> f32 {
    match s {
        Special::ErfInv => math::erf_inv_f32(a),
        Special::Lgamma => math::lgamma_f32(a),
        Special::Digamma => math::digamma_f32(a),
        Special::Polygamma(n) => math::polygamma_f32(n, a),
        Special::Nextafter => math::nextafter_f32(a, b),
        Special::FloatRem => a % b,
        Special::Rare(r) => r.of_f32(a, b),
    }
}

fn of_f64(s: Special, a: f64, b: f64) -> f64 {
    match s {
        Special::ErfInv => math::erf_inv(a),
        Special::Lgamma => math::lgamma(a),
        Special::Digamma => math::digamma(a),
        Special::Polygamma(n) => math::polygamma(n, a),
        Special::Nextafter => math::nextafter(a, b),
        Special::FloatRem => a % b,
        Special::Rare(r) => r.of_f64(a, b),
    }
}

/// The function of numbers given by their bits.
pub fn of_bits(s: Special, ty: Ty, a: u64, b: u64) -> u64 {
    match ty {
        Ty::F32 => u64::from(of_f32(s, f32::from_bits(a as u32), f32::from_bits(b as u32)).to_bits()),
        _ => of_f64(s, f64::from_bits(a), f64::from_bits(b)).to_bits(),
    }
}

/// The functions by their code, which machine code passes as the parameter of the call.
const TABLE: &[Special] = &[Special::ErfInv, Special::Lgamma, Special::Digamma, Special::Nextafter, Special::FloatRem];

/// What machine code finds in its context: the functions of f32 and of f64.
pub const FUNCTIONS: [SpecialFn; 2] = [special_f32, special_f64];

/// Where the context has the functions of a type, in bytes, and the parameter to pass for one of them.
pub fn entry(s: Special, ty: Ty) -> (i32, u64) {
    let code = match s {
        Special::Polygamma(n) => 1 << 32 | u64::from(n),
        Special::Rare(r) => 2 << 32 | r as u64,
        s => TABLE.iter().position(|t| *t == s).unwrap_or_default() as u64,
    };
    let first = std::mem::offset_of!(Context, special) as i32;
    (if ty == Ty::F32 { first } else { first + 8 }, code)
}

fn decode(code: u64) -> Special {
    let low = code as u32;
    match code >> 32 {
        1 => Special::Polygamma(low),
        2 => Special::Rare(math::Rare::ALL[low as usize]),
        _ => TABLE[low as usize],
    }
}

macro_rules! special {
    ($name:ident, $t:ty, $of:ident) => {
        native_fn! {
            fn $name(to: *mut u8, a: *const u8, b: *const u8, n: u64, code: u64) {
                // SAFETY: machine code passes three arrays of n elements; `to` may be one of the others.
                unsafe { each::<$t>(to.cast(), a.cast(), b.cast(), n as usize, |a, b| $of(decode(code), a, b)) }
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

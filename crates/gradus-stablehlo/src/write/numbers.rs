//! Numbers of constants as text: decimal where it reads back to the same bits, hexadecimal bits elsewhere, one hexadecimal text for many.

use std::fmt::Write;

use half::{bf16, f16};

use crate::module::{Dense, Element, Float};

/// A whole number. Half of a text is numbers of values and of dimensions, so they do not go through the machinery of formatting.
pub(super) fn whole(out: &mut String, mut n: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.push_str(std::str::from_utf8(&digits[at..]).unwrap_or_default());
}

/// Constants of at most so many elements are lists of literals.
const LISTED: usize = 16;

/// What stands between the angle brackets of `dense<..>`.
pub(super) fn dense(out: &mut String, dense: &Dense) {
    let width = dense.ty.element.bytes();
    let count = dense.ty.count().unwrap_or(0);
    if dense.splat || (count == 1 && dense.ty.dims.is_empty()) {
        return element(out, &dense.ty.element, dense.bytes.get(..width).unwrap_or(&[]));
    }
    if count == 0 {
        return;
    }
    // What a byte of `i1` or of a number narrower than a byte means in a hexadecimal text has changed between versions.
    let whole = !matches!(dense.ty.element, Element::I1 | Element::I2 | Element::I4 | Element::U2 | Element::U4);
    if count > LISTED && whole {
        return hexadecimal(out, &dense.bytes);
    }
    let dims: Vec<usize> = dense.ty.dims.iter().map(|d| d.unwrap_or(0) as usize).collect();
    let mut elements = dense.bytes.chunks_exact(width);
    nested(out, &dims, &mut |out| element(out, &dense.ty.element, elements.next().unwrap_or(&[])));
}

fn nested(out: &mut String, dims: &[usize], next: &mut dyn FnMut(&mut String)) {
    let Some((n, inner)) = dims.split_first() else { return next(out) };
    out.push('[');
    for i in 0..*n {
        if i > 0 {
            out.push_str(", ");
        }
        nested(out, inner, next);
    }
    out.push(']');
}

/// Bytes as `"0x0123.."`.
fn hexadecimal(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.reserve(2 * bytes.len() + 4);
    out.push_str("\"0x");
    // A block at a time is made outside of the text: a character at a time is checked each time.
    let mut block = [0u8; 512];
    for piece in bytes.chunks(256) {
        for (two, byte) in block.chunks_exact_mut(2).zip(piece) {
            two[0] = DIGITS[usize::from(byte >> 4)];
            two[1] = DIGITS[usize::from(byte & 15)];
        }
        out.push_str(std::str::from_utf8(&block[..2 * piece.len()]).unwrap_or_default());
    }
    out.push('"');
}

/// One element.
fn element(out: &mut String, ty: &Element, bytes: &[u8]) {
    match ty {
        Element::I1 => out.push_str(if bytes.first() == Some(&1) { "true" } else { "false" }),
        Element::Float(f) => float(out, *f, bytes),
        Element::Complex(f) => {
            let (re, im) = bytes.split_at(bytes.len() / 2);
            out.push('(');
            float(out, *f, re);
            out.push_str(", ");
            float(out, *f, im);
            out.push(')');
        }
        Element::Quantized(q) => element(out, &q.storage, bytes),
        integer => {
            let mut wide =
                [if integer.is_signed() && bytes.last().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 }; 16];
            wide[..bytes.len().min(16)].copy_from_slice(&bytes[..bytes.len().min(16)]);
            let _ = write!(out, "{}", i128::from_le_bytes(wide)); // a text takes what is written
        }
    }
}

/// A float by its bytes.
fn float(out: &mut String, ty: Float, bytes: &[u8]) {
    let mut wide = [0u8; 8];
    wide[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
    let bits = u64::from_le_bytes(wide);
    let value = match ty {
        Float::F64 => f64::from_bits(bits),
        Float::F32 => f64::from(f32::from_bits(bits as u32)),
        Float::F16 => f16::from_bits(bits as u16).to_f64(),
        Float::BF16 => bf16::from_bits(bits as u16).to_f64(),
        _ => return bare(out, bits, 2 * ty.bytes()),
    };
    if !value.is_finite() || (value == 0.0 && value.is_sign_negative()) {
        return bare(out, bits, 2 * ty.bytes());
    }
    let start = out.len();
    match ty {
        Float::F64 => decimal(out, value, value),
        _ => decimal(out, value as f32, value),
    }
    // Others read a literal as a double and round it then: what that does not give back is written as bits.
    let read: f64 = out[start..].parse().unwrap_or(f64::NAN);
    let same = match ty {
        Float::F64 => read.to_bits() == bits,
        Float::F32 => (read as f32).to_bits() == bits as u32,
        Float::F16 => f16::from_f64(read).to_bits() == bits as u16,
        _ => bf16::from_f64(read).to_bits() == bits as u16,
    };
    if !same {
        out.truncate(start);
        bare(out, bits, 2 * ty.bytes());
    }
}

fn bare(out: &mut String, bits: u64, digits: usize) {
    let _ = write!(out, "0x{bits:0digits$X}"); // a text takes what is written
}

/// A float with the fewest digits that read back, always with a point, with an exponent where it is far from 1.
fn decimal<T: std::fmt::Display + std::fmt::LowerExp>(out: &mut String, shown: T, value: f64) {
    let start = out.len();
    let size = value.abs();
    if size == 0.0 || (1e-5..1e16).contains(&size) {
        let _ = write!(out, "{shown}"); // a text takes what is written
        if !out[start..].contains('.') {
            out.push_str(".0");
        }
    } else {
        let _ = write!(out, "{shown:e}"); // as above
        if let Some(at) = out[start..].find('e')
            && !out[start..start + at].contains('.')
        {
            out.insert_str(start + at, ".0");
        }
    }
}

/// A float attribute: `1.0 : f32`.
pub(super) fn float_attribute(out: &mut String, value: f64, ty: &Element) {
    let (float_ty, bytes) = match ty {
        Element::Float(Float::F32) => (Float::F32, u64::from((value as f32).to_bits())),
        Element::Float(Float::F16) => (Float::F16, u64::from(f16::from_f64(value).to_bits())),
        Element::Float(Float::BF16) => (Float::BF16, u64::from(bf16::from_f64(value).to_bits())),
        _ => (Float::F64, value.to_bits()),
    };
    float(out, float_ty, &bytes.to_le_bytes()[..float_ty.bytes()]);
}

//! The numbers of `dense<..>` and `dense_resource<..>`.
//!
//! The type stands behind the numbers. So the end of the numbers is looked for first, then the type is read, then the numbers go into bytes in one pass.

use std::sync::Arc;

use gradus_core::error::Result;

use super::Reader;

use crate::module::{Dense, Element, Float, Tensor, Type};

impl Reader<'_> {
    /// `dense<..> : tensor<..>`.
    pub(super) fn dense(&mut self) -> Result<Dense> {
        let start = self.cur.at();
        self.cur.take_word("dense")?;
        self.cur.take("<")?;
        let body = self.cur.at();
        if self.cur.peek() == b'"' {
            let rest = &self.cur.rest()[1..];
            let Some(n) = rest.iter().position(|b| *b == b'"') else {
                return Err(self.cur.error_at(body, "this text has no closing `\"`"));
            };
            self.cur.go(body + n + 2);
            self.cur.take(">")?;
            let ty = self.dense_type()?;
            let bytes = self.hex(body + 1, &rest[..n], &ty, 0)?;
            return Ok(Dense::new(ty, bytes));
        }
        let Some(n) = self.cur.rest().iter().position(|b| *b == b'>') else {
            return Err(self.cur.error_at(start, "`dense<` is not closed"));
        };
        self.cur.go(body + n);
        self.cur.take(">")?;
        let ty = self.dense_type()?;
        let after = self.cur.at();
        self.cur.go(body);
        let bytes = self.elements(&ty)?;
        if self.cur.at() != body + n {
            return Err(self.cur.expected("`>`"));
        }
        self.cur.go(after);
        Ok(Dense::new(ty, bytes))
    }

    /// `dense_resource<name> : tensor<..>`, whose bytes stand at the end of the file.
    pub(super) fn dense_resource(&mut self) -> Result<Dense> {
        self.cur.take_word("dense_resource")?;
        self.cur.take("<")?;
        let at = self.cur.at();
        let name = if self.cur.peek() == b'"' {
            self.cur.text()?
        } else {
            self.cur.word("the name of a resource")?.to_owned()
        };
        self.cur.take(">")?;
        let ty = self.dense_type()?;
        let Some((from, hex)) = self.resources.get(name.as_str()).copied() else {
            return Err(self.cur.error_at(
                at,
                &format!("the file has no resource `{name}` (in `{{-# dialect_resources: .. #-}}` at its end)"),
            ));
        };
        // In front of the numbers stands how they are aligned: four bytes.
        let bytes = self.hex(from, hex.as_bytes(), &ty, 4)?;
        Ok(Dense::new(ty, bytes))
    }

    /// `: tensor<2x3xf32>`, of known dimensions.
    fn dense_type(&mut self) -> Result<Tensor> {
        self.cur.take(":")?;
        let at = self.cur.at();
        match self.ty()? {
            Type::Tensor(ty) if ty.count().is_some() => Ok(ty),
            _ => Err(self.cur.error_at(at, "expected a tensor of known dimensions")),
        }
    }

    /// The bytes of `0x..`, of all elements or of one for all; `lead` bytes in front are left out.
    fn hex(&self, at: usize, text: &[u8], ty: &Tensor, lead: usize) -> Result<Arc<[u8]>> {
        let digits = match text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")) {
            Some(digits) if digits.len() % 2 == 0 && digits.len() >= 2 * lead => &digits[2 * lead..],
            _ => return Err(self.cur.error_at(at, "expected `0x` and two hex digits for each byte")),
        };
        let mut wrong = 0;
        let bytes: Arc<[u8]> = digits
            .chunks_exact(2)
            .map(|pair| {
                let (high, low) = (HEX[usize::from(pair[0])], HEX[usize::from(pair[1])]);
                wrong |= high | low;
                high << 4 | (low & 15)
            })
            .collect();
        if wrong & 0x80 != 0 {
            return Err(self.cur.error_at(at, "there is something else than hex digits in these bytes"));
        }
        let (count, one) = (ty.count().unwrap_or(0), ty.element.bytes());
        if count.checked_mul(one) == Some(bytes.len()) {
            let bytes =
                if ty.element == Element::I1 { bytes.iter().map(|b| u8::from(*b != 0)).collect() } else { bytes };
            return Ok(bytes);
        }
        if ty.element == Element::I1 && bytes.len() == count.div_ceil(8) {
            // Older files have eight booleans in a byte, the first one in its lowest bit.
            return Ok((0..count).map(|i| bytes[i / 8] >> (i % 8) & 1).collect());
        }
        if bytes.len() == one && count > 0 {
            let bytes = if ty.element == Element::I1 { [u8::from(bytes[0] != 0)].into() } else { bytes };
            return Ok(bytes);
        }
        Err(self.cur.error_at(at, &format!("{} bytes for {count} elements of {one} bytes each", bytes.len())))
    }

    /// One element for all, or lists as deep as the tensor has axes.
    fn elements(&mut self, ty: &Tensor) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let dims: Vec<u64> = ty.dims.iter().map(|d| d.unwrap_or(0)).collect();
        if self.cur.peek() == b'>' {
            if ty.count() != Some(0) {
                return Err(self.cur.expected("numbers"));
            }
            return Ok(bytes);
        }
        if self.cur.peek() != b'[' {
            self.element_value(&ty.element, &mut bytes)?;
            return Ok(if ty.count() == Some(0) { Vec::new() } else { bytes });
        }
        // At most as many bytes as the text has room for, whatever the type says.
        let room = self.cur.rest().len();
        bytes.reserve(ty.count().and_then(|n| n.checked_mul(ty.element.bytes())).unwrap_or(0).min(room));
        self.nested(&dims, &ty.element, &mut bytes)?;
        Ok(bytes)
    }

    /// The list of one axis and of those behind it.
    fn nested(&mut self, dims: &[u64], element: &Element, bytes: &mut Vec<u8>) -> Result<()> {
        let Some((first, inner)) = dims.split_first() else { return self.element_value(element, bytes) };
        let start = self.cur.at();
        self.deeper(|r| {
            r.cur.take("[")?;
            let mut n = 0u64;
            if !r.cur.eat("]") {
                loop {
                    if inner.is_empty() {
                        r.element_value(element, bytes)?
                    } else {
                        r.nested(inner, element, bytes)?
                    }
                    n += 1;
                    if !r.cur.eat(",") {
                        break r.cur.take("]")?;
                    }
                }
            }
            match n == *first {
                true => Ok(()),
                false => Err(r.cur.error_at(start, &format!("{n} items where the type has {first}"))),
            }
        })
    }

    /// One element, in its bytes.
    fn element_value(&mut self, element: &Element, bytes: &mut Vec<u8>) -> Result<()> {
        match element {
            Element::Complex(part) => {
                self.cur.take("(")?;
                self.float_value(*part, bytes)?;
                self.cur.take(",")?;
                self.float_value(*part, bytes)?;
                self.cur.take(")")
            }
            Element::Float(kind) => self.float_value(*kind, bytes),
            Element::Quantized(q) => self.element_value(&q.storage, bytes),
            integer => self.integer_value(integer, bytes),
        }
    }

    fn float_value(&mut self, kind: Float, bytes: &mut Vec<u8>) -> Result<()> {
        let start = self.cur.at();
        let minus = self.cur.eat("-");
        let (span, float) = self.cur.number_span();
        let bits = if float {
            let value: f64 = span.parse().unwrap_or(f64::NAN);
            float_bits(if minus { -value } else { value }, kind)
        } else if let Some(hex) = span.strip_prefix("0x") {
            let bits = u64::from_str_radix(hex, 16)
                .ok()
                .filter(|b| !minus && kind.bytes() == 8 || *b < 1 << (8 * kind.bytes() as u32 % 64));
            let Some(bits) = bits.filter(|_| !minus) else {
                return Err(self.cur.error_at(start, "these bits do not fit the float"));
            };
            bits
        } else {
            self.cur.go(start);
            return Err(self.cur.expected("a float, with a point or by its bits `0x..`"));
        };
        bytes.extend_from_slice(&bits.to_le_bytes()[..kind.bytes()]);
        self.cur.go(self.cur.at() + span.len());
        Ok(())
    }

    fn integer_value(&mut self, element: &Element, bytes: &mut Vec<u8>) -> Result<()> {
        let start = self.cur.at();
        let value = match self.cur.peek() {
            b't' if self.cur.eat_word("true") => 1,
            b'f' if self.cur.eat_word("false") => 0,
            _ => self.cur.integer()?,
        };
        let bits: u32 = match element {
            Element::I1 => 1,
            Element::I2 | Element::U2 => 2,
            Element::I4 | Element::U4 => 4,
            other => 8 * other.bytes() as u32,
        };
        // Integers without a sign in their type may be written by their bits: 255 of eight bits is -1.
        let (least, greatest) = if element.is_signed() || bits == 1 {
            (-(1i128 << (bits - 1)), (1i128 << bits) - 1)
        } else {
            (0, (1i128 << bits) - 1)
        };
        if value < least || value > greatest {
            return Err(self.cur.error_at(start, &format!("{value} does not fit {bits} bits")));
        }
        let mut value = value as u128;
        if element.is_signed() && value >> (bits - 1) & 1 == 1 {
            value |= u128::MAX << (bits - 1);
        }
        if bits == 1 {
            value &= 1;
        }
        bytes.extend_from_slice(&value.to_le_bytes()[..element.bytes()]);
        Ok(())
    }

    /// Finds `{-# dialect_resources: {builtin: {name: "0x.."}} #-}` at the end of a text; gives where the text ends without it.
    pub(super) fn file_resources(&mut self, text: &str, from: usize, end: usize) -> Result<usize> {
        let Some(start) = text.get(from..end).and_then(|part| part.rfind("{-#")).map(|at| from + at) else {
            return Ok(end);
        };
        let back = self.cur.at();
        self.cur.go(start);
        self.cur.take("{-#")?;
        while !self.cur.eat("#-}") {
            let section = self.cur.word("the name of a section")?;
            self.cur.take(":")?;
            if section == "dialect_resources" {
                self.braced(|r, _| {
                    r.braced(|r, name| {
                        let from = r.cur.at();
                        r.cur.string()?;
                        let inner = r.cur.between(from + 1, r.cur.at());
                        let n = inner.find('"').unwrap_or(inner.len());
                        r.resources.insert(name, (from + 1, &inner[..n]));
                        Ok(())
                    })
                })?;
            } else {
                let end = self.cur.balanced()?;
                self.cur.go(end);
            }
            self.cur.eat(",");
        }
        self.cur.go(back);
        Ok(start)
    }

    /// `{name: .., name: ..}`.
    fn braced(&mut self, mut item: impl FnMut(&mut Self, String) -> Result<()>) -> Result<()> {
        self.cur.take("{")?;
        self.list("}", |r| {
            let name = if r.cur.peek() == b'"' { r.cur.text()? } else { r.cur.word("a name")?.to_owned() };
            r.cur.take(":")?;
            item(r, name)
        })?;
        Ok(())
    }
}

/// Values of hex digits; 0x80 for what is none.
const HEX: [u8; 256] = {
    let mut table = [0x80; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        if b.is_ascii_digit() {
            table[i] = b - b'0';
        } else if b >= b'a' && b <= b'f' {
            table[i] = b - b'a' + 10;
        } else if b >= b'A' && b <= b'F' {
            table[i] = b - b'A' + 10;
        }
        i += 1;
    }
    table
};

/// A format of few bits: bits of the exponent and of the fraction, the bias, and which bits are not finite.
struct Small {
    exponent: u32,
    fraction: u32,
    bias: i32,
    kind: Special,
}

/// How a small format says what is not finite.
#[derive(Clone, Copy, PartialEq)]
enum Special {
    /// As IEEE 754 does it: the last exponent is infinity and NaN.
    Ieee,
    /// Only all ones is NaN; no infinity.
    Nan,
    /// Only what would be -0 is NaN; no infinity, no -0.
    Unsigned,
    /// Neither: too large numbers become the largest.
    Finite,
}

fn small(kind: Float) -> Option<Small> {
    let (exponent, fraction, bias, kind) = match kind {
        Float::F4E2M1FN => (2, 1, 1, Special::Finite),
        Float::F6E2M3FN => (2, 3, 1, Special::Finite),
        Float::F6E3M2FN => (3, 2, 3, Special::Finite),
        Float::F8E3M4 => (3, 4, 3, Special::Ieee),
        Float::F8E4M3 => (4, 3, 7, Special::Ieee),
        Float::F8E4M3FN => (4, 3, 7, Special::Nan),
        Float::F8E4M3FNUZ => (4, 3, 8, Special::Unsigned),
        Float::F8E4M3B11FNUZ => (4, 3, 11, Special::Unsigned),
        Float::F8E5M2 => (5, 2, 15, Special::Ieee),
        Float::F8E5M2FNUZ => (5, 2, 16, Special::Unsigned),
        _ => return None,
    };
    Some(Small { exponent, fraction, bias, kind })
}

/// The bits of the float of a format that is nearest to a number, ties to even. Literals go through `f64`, as they do in MLIR.
pub(crate) fn float_bits(value: f64, kind: Float) -> u64 {
    match kind {
        Float::F64 => value.to_bits(),
        Float::F32 => u64::from((value as f32).to_bits()),
        Float::F16 => u64::from(half::f16::from_f64(value).to_bits()),
        Float::BF16 => u64::from(half::bf16::from_f64(value).to_bits()),
        Float::TF32 => {
            let bits = (value as f32).to_bits();
            // Thirteen bits of the fraction fall away, to even.
            let rounded = if value.is_finite() { bits.wrapping_add(0xFFF + (bits >> 13 & 1)) & !0x1FFF } else { bits };
            u64::from(rounded)
        }
        Float::F8E8M0FNU => match value {
            _ if value.is_nan() || value <= 0.0 || value.is_infinite() => 255,
            _ => {
                // Powers of two only: the nearest one, the even exponent's of two that are as near.
                let (low, last) = (value.log2().floor(), (value.log2().floor() as i64) & 1);
                let part = value / low.exp2();
                let up = part > 1.5 || (part == 1.5 && last == 0);
                (low + f64::from(u8::from(up)) + 127.0).clamp(0.0, 254.0) as u64
            }
        },
        _ => match small(kind) {
            Some(format) => small_bits(value, &format),
            None => 0,
        },
    }
}

fn small_bits(value: f64, f: &Small) -> u64 {
    let total = f.exponent + f.fraction;
    let sign = u64::from(value.is_sign_negative()) << total;
    let last = (1u64 << f.exponent) - 1;
    let nan = match f.kind {
        Special::Ieee => sign | last << f.fraction | 1 << (f.fraction - 1),
        Special::Nan => sign | ((1 << total) - 1),
        Special::Unsigned => 1 << total,
        Special::Finite => sign | ((1 << total) - 1),
    };
    let greatest = match f.kind {
        Special::Ieee => (last << f.fraction) - 1,
        Special::Nan => (1 << total) - 2,
        Special::Unsigned | Special::Finite => (1 << total) - 1,
    };
    let overflow = match f.kind {
        Special::Ieee => sign | last << f.fraction,
        Special::Nan | Special::Unsigned => nan,
        Special::Finite => sign | greatest,
    };
    if value.is_nan() {
        return nan;
    }
    let size = value.abs();
    if size == 0.0 {
        return if f.kind == Special::Unsigned { 0 } else { sign };
    }
    if size.is_infinite() {
        return overflow;
    }
    // The unit of the last place where the number stands; subnormals share that of the least exponent.
    let exponent = (size.log2().floor() as i32).max(1 - f.bias);
    let unit = f64::from(exponent - f.fraction as i32).exp2();
    // `log2` may be off by one just below a power of two; then the count below is twice as fine or reaches the next power, both of which add up right.
    let count = (size / unit).round_ties_even() as u64;
    let bits = if exponent == 1 - f.bias { count } else { (((exponent + f.bias - 1) as u64) << f.fraction) + count };
    match bits {
        _ if bits > greatest => overflow,
        0 if f.kind == Special::Unsigned => 0,
        _ => sign | bits,
    }
}

/// The number that bits of a format are; none if they do not fit it.
pub(crate) fn float_of_bits(bits: u64, kind: Float) -> Option<f64> {
    if kind.bytes() < 8 && bits >> (8 * kind.bytes()) != 0 {
        return None;
    }
    Some(match kind {
        Float::F64 => f64::from_bits(bits),
        Float::F32 | Float::TF32 => f64::from(f32::from_bits(bits as u32)),
        Float::F16 => half::f16::from_bits(bits as u16).to_f64(),
        Float::BF16 => half::bf16::from_bits(bits as u16).to_f64(),
        Float::F8E8M0FNU => {
            if bits == 255 {
                f64::NAN
            } else {
                (bits as f64 - 127.0).exp2()
            }
        }
        _ => {
            let f = small(kind)?;
            let total = f.exponent + f.fraction;
            let size = bits & ((1 << total) - 1);
            let (exponent, fraction) = ((size >> f.fraction) as i32, size & ((1 << f.fraction) - 1));
            let last = exponent == (1 << f.exponent) - 1;
            let value = match f.kind {
                Special::Ieee if last && fraction == 0 => f64::INFINITY,
                Special::Ieee if last => f64::NAN,
                Special::Nan if size == (1 << total) - 1 => f64::NAN,
                Special::Unsigned if bits == 1 << total => f64::NAN,
                _ if exponent == 0 => fraction as f64 * f64::from(1 - f.bias - f.fraction as i32).exp2(),
                _ => ((1 << f.fraction) + fraction) as f64 * f64::from(exponent - f.bias - f.fraction as i32).exp2(),
            };
            if bits >> total & 1 == 1 { -value } else { value }
        }
    })
}

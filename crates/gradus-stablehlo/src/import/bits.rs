//! `bitcast_convert`: the same bits as elements of another size, down to single bits.

use gradus_core::error::Result;
use gradus_core::primitives::Op;
use gradus_core::primitives::reduce::ReduceSum;
use gradus_core::primitives::shaping::Slice;
use gradus_core::trace::bind;
use gradus_core::{Array, DType, Dim};

use super::elementwise::{convert, whole};
use super::narrow::{low_bits, wrapped};
use super::shaping::{broadcast_in_dim, concatenate, iota, reshape};
use super::{On, types};
use crate::module::{Element, Float};

/// How many bits an element has, for those that are not complex.
fn width(element: &Element) -> Result<u32> {
    Ok(match (element, types::narrow_bits(element)) {
        (Element::I1, _) => 1,
        (_, Some(bits)) => bits,
        _ => 8 * types::dtype(element)?.size() as u32,
    })
}

/// The unsigned integer that holds so many bits.
fn word(bits: u32) -> DType {
    match bits {
        ..=8 => DType::U8,
        16 => DType::U16,
        32 => DType::U32,
        _ => DType::U64,
    }
}

/// Elements as unsigned integers with no bits but their own.
fn to_word(x: &Array, bits: u32) -> Array {
    match x.dtype() {
        DType::Bool => convert(x, DType::U8),
        _ if bits < 8 => low_bits(&x.bitcast(DType::U8), bits),
        _ => x.bitcast(word(bits)),
    }
}

fn from_word(x: &Array, bits: u32, to: DType) -> Array {
    match to {
        DType::Bool => convert(x, DType::Bool),
        _ if bits < 8 => wrapped(&x.bitcast(to), bits),
        _ => x.bitcast(to),
    }
}

impl On<'_, '_> {
    /// The same bits as elements of another size: a last axis appears or goes. The first of several small ones are the low bits.
    pub(super) fn bitcast(&mut self) -> Result<Array> {
        let x = self.x(0)?;
        let Some(operand) = self.op.operands.first() else { return Err(self.wrong("it lacks its operand")) };
        let (from, to) = (&types::tensor(self.scope.ty(*operand)?)?.element, &self.result(0)?.element);
        let part = |f: &Float| Element::Float(*f);
        // A complex number is its two parts, one behind the other.
        match (from, to) {
            (a, b) if a == b => Ok(x),
            (Element::Complex(f), Element::Complex(g)) => {
                let (f, g) = (part(f), part(g));
                let parts = pairs(&x);
                // Of several narrow numbers that become one, the parts follow each other.
                let parts = match parts.rank().checked_sub(2).filter(|_| f.bytes() < g.bytes()) {
                    Some(last) => {
                        let all = parts.dim(last as isize) * Dim::from(2usize);
                        reshape(&parts, parts.shape().without(|a| a == last + 1).replaced(last, all))
                    }
                    None => parts,
                };
                Ok(from_pairs(&self.bits(&parts, &f, &g, false)?))
            }
            (Element::Complex(f), b) if part(f) == *b => Ok(pairs(&x)),
            (Element::Complex(f), b) => self.bits(&pairs(&x), &part(f), b, true),
            (a, Element::Complex(f)) if part(f) == *a => Ok(from_pairs(&x)),
            (a, Element::Complex(f)) => Ok(from_pairs(&self.bits(&x, a, &part(f), false)?)),
            (a, b) => self.bits(&x, a, b, false),
        }
    }

    /// Bits of real numbers. `join` says that the last axis of two belongs to one element of the operand.
    fn bits(&self, x: &Array, from: &Element, to: &Element, join: bool) -> Result<Array> {
        let (a, b, dtype) = (width(from)?, width(to)?, types::dtype(to)?);
        let bits = to_word(x, a);
        if a == b {
            return from_word(&bits, b, dtype).ok();
        }
        if a > b {
            let n = Dim::from((a / b) as usize);
            let shape = x.shape().inserted(x.rank(), n.clone());
            let wide = broadcast_in_dim(&bits, &shape, &Vec::from_iter(0..x.rank()));
            let places = iota(word(a), shape, x.rank());
            let moved = wide.shift_right_logical(&(&places * &whole(&places, b.into())));
            let parts = if b < 8 { &moved & &whole(&moved, (1 << b) - 1) } else { moved };
            let parts = from_word(&convert(&parts, word(b)), b, dtype);
            let Some(last) = x.rank().checked_sub(1).filter(|_| join) else { return parts.ok() };
            let all = parts.dim(last as isize) * n;
            return reshape(&parts, parts.shape().without(|i| i == last + 1).replaced(last, all)).ok();
        }
        let n = (b / a) as usize;
        let Some(last) = x.rank().checked_sub(1) else {
            return Err(self.wrong("there is no axis of parts that become one element"));
        };
        let wide = convert(&bits, word(b));
        // What stays of the last axis when so many parts are joined.
        let left = x.dim(last as isize).as_usize().map_or(1, |d| d / n);
        let cut = wide.shape().replaced(last, Dim::from(left)).inserted(last + 1, Dim::from(n));
        let (wide, axis) = if left > 1 { (reshape(&wide, cut), last + 1) } else { (wide, last) };
        let places = iota(word(b), wide.shape().clone(), axis);
        let moved = &wide << &(&places * &whole(&places, a.into()));
        // The parts have no bit in common, so their sum is their union.
        let joined = bind(Op::new(ReduceSum { axes: vec![axis] }), &[moved]);
        from_word(&joined, b, dtype).ok()
    }
}

/// Complex numbers as a last axis of two parts.
fn pairs(x: &Array) -> Array {
    let end = x.rank();
    let part = |p: Array| reshape(&p, p.shape().inserted(end, Dim::from(1usize)));
    concatenate(&[part(x.real()), part(x.imag())], end)
}

/// The complex numbers whose parts stand along the last axis.
fn from_pairs(x: &Array) -> Array {
    let last = x.rank().saturating_sub(1);
    let part = |k: usize| {
        let start = (0..x.rank()).map(|a| Dim::from(if a == last { k } else { 0 })).collect();
        let limit = x.shape().iter().enumerate();
        let limit = limit.map(|(a, d)| if a == last { Dim::from(k + 1) } else { d.clone() }).collect();
        let cut = bind(Op::new(Slice { start, limit, step: vec![1; x.rank()] }), std::slice::from_ref(x));
        reshape(&cut, cut.shape().without(|a| a == last))
    };
    Array::complex(&part(0), &part(1))
}

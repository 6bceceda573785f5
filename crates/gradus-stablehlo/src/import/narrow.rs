//! Integers of 2 and 4 bits: they are held in 8, and what an operation makes of them is brought back into their range.

use gradus_core::{Array, DType};

use super::elementwise::{convert, whole};
use super::{Answer, Item, On, one, types};
use crate::module::Element;

/// The low bits of integers, with their sign if they have one.
pub(super) fn wrapped(x: &Array, bits: u32) -> Array {
    let up = whole(x, i64::from(8 - bits));
    &(x << &up) >> &up
}

/// The low bits without a sign.
pub(super) fn low_bits(x: &Array, bits: u32) -> Array {
    x & &whole(x, (1 << bits) - 1)
}

fn element(on: &On<'_, '_>) -> Option<Element> {
    on.op.results.first().and_then(|r| on.scope.ty(*r).ok()).and_then(|t| t.tensor()).map(|t| t.element.clone())
}

impl<'m> On<'_, 'm> {
    /// Operations whose form for wide integers would see bits that narrow ones do not have.
    pub(super) fn narrow(&mut self, name: &'m str) -> Answer {
        let of_operand = self.op.operands.first().and_then(|v| self.scope.ty(*v).ok()).and_then(|t| t.tensor());
        let from = of_operand.and_then(|t| types::narrow_bits(&t.element));
        let to = element(self).as_ref().and_then(types::narrow_bits);
        if from.is_none() && to.is_none() {
            return Ok(None);
        }
        match (name, from, to) {
            ("popcnt", Some(bits), _) => one(low_bits(&self.x(0)?, bits).popcount()),
            ("count_leading_zeros", Some(bits), _) => {
                let x = low_bits(&self.x(0)?, bits);
                one(x.count_leading_zeros() - whole(&x, i64::from(8 - bits)))
            }
            ("shift_right_logical", Some(bits), _) => {
                let (x, n) = (low_bits(&self.x(0)?, bits), self.x(1)?);
                one(wrapped(&x.shift_right_logical(&n), bits))
            }
            ("convert", _, Some(bits)) => {
                let x = self.x(0)?;
                // Floats are held in range; integers keep their low bits.
                let held = self.result_dtype()?;
                let wide =
                    if x.dtype().is_inexact() { convert(&x, held) } else { convert(&convert(&x, DType::I64), held) };
                let made = if x.dtype() == DType::Bool { convert(&x, held) } else { wide };
                one(wrapped(&made, bits))
            }
            (
                "add" | "subtract" | "multiply" | "negate" | "abs" | "divide" | "shift_left" | "not" | "power",
                _,
                Some(bits),
            ) => {
                let made = self.elementwise(name)?;
                let Some([Item::Array(x)]) = made.as_deref() else { return Ok(made) };
                one(wrapped(x, bits))
            }
            ("iota", _, Some(bits)) => {
                let made = self.shaping(name)?;
                let Some([Item::Array(x)]) = made.as_deref() else { return Ok(made) };
                one(wrapped(x, bits))
            }
            _ => Ok(None),
        }
    }
}

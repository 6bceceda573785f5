//! Functions of compiled Rust for single elements: what has no straight line of basic operations, or one that needs no test where compiled Rust has it.

use super::{Form, Ty};
use crate::math::{self, Rare};

/// A function of compiled Rust, called for one element after the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Special {
    ErfInv,
    Lgamma,
    Digamma,
    Polygamma(u32),
    Nextafter,
    /// The remainder of floats, with the sign of the dividend.
    FloatRem,
    /// A rare case of an elementary function.
    Rare(Rare),
}

impl Special {
    /// Those without a parameter, in the order of their numbers.
    const PLAIN: &'static [Special] =
        &[Special::ErfInv, Special::Lgamma, Special::Digamma, Special::Nextafter, Special::FloatRem];

    /// In `f32`. Functions of one operand do not look at the second.
    pub fn of_f32(self, a: f32, b: f32) -> f32 {
        match self {
            Special::ErfInv => math::erf_inv_f32(a),
            Special::Lgamma => math::lgamma_f32(a),
            Special::Digamma => math::digamma_f32(a),
            Special::Polygamma(n) => math::polygamma_f32(n, a),
            Special::Nextafter => math::nextafter_f32(a, b),
            Special::FloatRem => a % b,
            Special::Rare(r) => r.of_f32(a, b),
        }
    }

    /// In `f64`.
    pub fn of_f64(self, a: f64, b: f64) -> f64 {
        match self {
            Special::ErfInv => math::erf_inv(a),
            Special::Lgamma => math::lgamma(a),
            Special::Digamma => math::digamma(a),
            Special::Polygamma(n) => math::polygamma(n, a),
            Special::Nextafter => math::nextafter(a, b),
            Special::FloatRem => a % b,
            Special::Rare(r) => r.of_f64(a, b),
        }
    }

    /// Of numbers given by their bits.
    pub fn of_bits(self, ty: Ty, a: u64, b: u64) -> u64 {
        match ty {
            Ty::F32 => u64::from(self.of_f32(f32::from_bits(a as u32), f32::from_bits(b as u32)).to_bits()),
            _ => self.of_f64(f64::from_bits(a), f64::from_bits(b)).to_bits(),
        }
    }

    /// What it is made of, for floats of this type, if that is more than a call.
    pub fn form(self, ty: Ty) -> Option<Form> {
        (self == Special::FloatRem).then(|| {
            Form::made(&[ty, ty], ty, |s| {
                let (a, b) = (s.operand(0), s.operand(1));
                math::rem(&mut s.floats(ty), a, b)
            })
        })
    }

    /// Its number: what machine code passes for it.
    pub fn code(self) -> u64 {
        match self {
            Special::Polygamma(n) => 1 << 32 | u64::from(n),
            Special::Rare(r) => 2 << 32 | r as u64,
            s => Special::PLAIN.iter().position(|t| *t == s).unwrap_or_default() as u64,
        }
    }

    /// The function with this number.
    pub fn of_code(code: u64) -> Special {
        let low = code as u32;
        match code >> 32 {
            1 => Special::Polygamma(low),
            2 => Special::Rare(Rare::ALL[low as usize]),
            _ => Special::PLAIN[low as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_a_number_of_its_own() {
        let mut all: Vec<Special> = Special::PLAIN.to_vec();
        all.extend([1, 2, 7].map(Special::Polygamma));
        all.extend(Rare::ALL.iter().copied().map(Special::Rare));
        for s in &all {
            assert_eq!(Special::of_code(s.code()), *s);
        }
    }
}

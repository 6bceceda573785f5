//! Elementary functions, written once for the interpreter and for compiled code.

pub use crate::primitives::special::{
    digamma, digamma_f32, erf_inv, erf_inv_f32, lgamma, lgamma_f32, nextafter, nextafter_f32, polygamma, polygamma_f32,
};

/// Scalar functions for rare arguments.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Rare {
    Sin,
    Cos,
    Tan,
}

impl Rare {
    /// In f32.
    pub fn of_f32(self, a: f32, _b: f32) -> f32 {
        match self {
            Rare::Sin => a.sin(),
            Rare::Cos => a.cos(),
            Rare::Tan => a.tan(),
        }
    }
    /// In f64.
    pub fn of_f64(self, a: f64, _b: f64) -> f64 {
        match self {
            Rare::Sin => a.sin(),
            Rare::Cos => a.cos(),
            Rare::Tan => a.tan(),
        }
    }
}

impl Rare {
    /// All of them, in the order of their numbers.
    pub const ALL: &'static [Rare] = &[Rare::Sin, Rare::Cos, Rare::Tan];
}

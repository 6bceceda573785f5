//! Operations that treat every element alike. A scalar function costs about six lines: its name, which numbers it
//! takes, where to sample it, its value, and its derivative.

mod binary;
mod complex;
mod fused;
pub(crate) mod kernel;
mod logical;
pub(crate) mod number;
pub(crate) mod pairs;
mod parts;
mod unary;

pub use binary::*;
pub use fused::MulAdd;
pub use logical::*;
pub use parts::*;
pub use unary::*;

use super::{Entry, Infer, Op, Sample, Types};
use crate::array::Array;
use crate::error::Result;
use crate::types::{DType, Scalar, Type};

/// Which dtypes an operation takes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Takes {
    Floats,
    Inexact,
    Reals,
    Numbers,
    Ints,
    Bits,
}

impl Takes {
    fn accepts(self, d: DType) -> bool {
        match self {
            Takes::Floats => d.is_float(),
            Takes::Inexact => d.is_inexact(),
            Takes::Reals => d.is_float() || d.is_int(),
            Takes::Numbers => d.is_number(),
            Takes::Ints => d.is_int(),
            Takes::Bits => d.is_int() || d == DType::Bool,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Takes::Floats => "floats",
            Takes::Inexact => "floats or complex numbers",
            Takes::Reals => "integers or floats",
            Takes::Numbers => "numbers",
            Takes::Ints => "integers",
            Takes::Bits => "integers or bools",
        }
    }

    fn help(self) -> &'static str {
        match self {
            Takes::Floats | Takes::Inexact => "cast first, as in `x.cast(DType::F64)`",
            Takes::Reals => "take the real part with `.real()`, or cast",
            _ => "cast first, as in `x.cast(DType::I32)`",
        }
    }
}

/// What to do instead of computing with keys.
pub(crate) const NOT_A_NUMBER: &str =
    "a key is no number: draw some from it, as in `random::uniform::<f32>(key, [3])`, or read its words";

/// The type rule of operations whose operands and result are of one type.
pub(crate) fn same_type(infer: &mut Infer<'_>, arity: usize, takes: Takes) -> Result<Type> {
    infer.arity(arity)?;
    let ty = infer.all_same()?;
    let help = if ty.dtype() == DType::Key { NOT_A_NUMBER } else { takes.help() };
    infer.dtype(0, takes.words(), |d| takes.accepts(d)).map_err(|e| e.help(help))?;
    Ok(ty)
}

pub(crate) fn same_type_one(infer: &mut Infer<'_>, arity: usize, takes: Takes) -> Result<Types> {
    same_type(infer, arity, takes).map(|ty| smallvec::smallvec![ty])
}

/// Samples of a function of `arity` operands at given points, in every kind of number it takes.
pub(crate) fn samples_at(op: &Op, arity: usize, takes: Takes, points: &[f64]) -> Vec<Sample> {
    let column = |k: usize, dtype: DType| {
        // Operand k is the list of points turned by k places, so that operands differ.
        let n = points.len();
        let turned: Vec<f64> = (0..n).map(|i| points[(i + k) % n]).collect();
        Array::from(turned).cast(dtype)
    };
    let operands = |dtype: DType| (0..arity).map(|k| column(k, dtype)).collect::<Vec<_>>();
    let mut all = Vec::new();
    if takes.accepts(DType::F64) {
        all.push(Sample::new(op.clone(), operands(DType::F64)));
        all.push(Sample::new(op.clone(), operands(DType::F32)).rough());
        all.push(Sample::new(op.clone(), operands(DType::F16)).rough());
        all.push(Sample::new(op.clone(), operands(DType::BF16)).rough());
        let first = |k: usize| Array::from(points[k % points.len()]);
        all.push(Sample::new(op.clone(), (0..arity).map(first).collect()));
        let empty = Array::from(Vec::<f64>::new()).reshape([0usize, 3]);
        all.push(Sample::new(op.clone(), vec![empty; arity]));
        let (infinity, tiny, huge) = (f64::INFINITY, 1e-320, 1e300);
        let special = [0.0, -0.0, f64::NAN, infinity, -infinity, 1.0, -1.0, tiny, huge, 2.5, -0.5, 1.5];
        let turned = |k: usize| Array::from((0..special.len()).map(|i| special[(i + k) % 12]).collect::<Vec<f64>>());
        all.push(Sample::new(op.clone(), (0..arity).map(turned).collect()).rough());
    }
    if takes.accepts(DType::C128) {
        let parts = |k: usize| Array::complex(&column(k, DType::F64), &(column(k + 1, DType::F64) * 0.5_f64));
        all.push(Sample::new(op.clone(), (0..arity).map(parts).collect()));
        all.push(Sample::new(op.clone(), (0..arity).map(|k| parts(k).cast(DType::C64)).collect()).rough());
        // Beside branch cuts, and where squares of the parts overflow or vanish.
        let re = [300.0, -20.0, 1e-200, 1e200, -2.0, 1e-9, 0.999_999, 0.25, -710.0];
        let im = [2.0, 0.3, 1e-200, -3e200, 1e-9, -2.0, 1e-7, 1e10, 1.0];
        let turned = |list: &[f64; 9], k: usize| Array::from((0..9).map(|i| list[(i + k) % 9]).collect::<Vec<f64>>());
        let special = |k: usize| Array::complex(&turned(&re, k), &turned(&im, k));
        all.push(Sample::new(op.clone(), (0..arity).map(special).collect()).rough());
    }
    if takes.accepts(DType::I32) {
        for dtype in [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64] {
            let low = Scalar::lowest(dtype);
            let edges = [low, Scalar::highest(dtype), Scalar::zero(dtype), Scalar::one(dtype)];
            let ints: Vec<Array> = (0..arity)
                .map(|k| {
                    let all: Vec<Array> = (0..8usize)
                        .map(|i| match i {
                            0..4 => edges[(i + k) % 4],
                            _ => Scalar::I64((i as i64 * 7 + k as i64 * 3) % 23 - 4).cast(dtype),
                        })
                        .map(|s| Array::scalar(s).reshape([1usize]))
                        .collect();
                    Array::concatenate(&all, 0)
                })
                .collect();
            all.push(Sample::new(op.clone(), ints));
        }
    }
    if takes.accepts(DType::Bool) {
        let bools = |k: usize| Array::from([true, false, k.is_multiple_of(2), true]);
        all.push(Sample::new(op.clone(), (0..arity).map(bools).collect()));
    }
    all
}

pub(crate) fn entries() -> Vec<Entry> {
    let mut list = unary::entries();
    list.extend(binary::entries());
    list.extend(logical::entries());
    list.extend(fused::entries());
    list.extend(parts::entries());
    list
}

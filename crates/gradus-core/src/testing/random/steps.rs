//! The steps of programs that need not be smooth: every primitive, on every dtype it takes.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::linear::{self, may_sum, some_axes};
use super::{Done, Maker, Step, control};
use crate::primitives::convert::{Bitcast, Convert};
use crate::primitives::cumulative::{CumMax, CumMin, CumProd};
use crate::primitives::elementwise::{self, Compare, Direction, IntegerPow, Polygamma, Select};
use crate::primitives::random::{FoldIn, RandomBits};
use crate::primitives::reduce::{ArgMax, ArgMin, ReduceAnd, ReduceMax, ReduceMin, ReduceOr, ReduceProd};
use crate::primitives::reduce_window::WindowKind;
use crate::primitives::shaping::Iota;
use crate::primitives::size::Size;
use crate::primitives::sort::{Sort, TopK};
use crate::primitives::{Infer, Op, Sample};
use crate::types::{DType, Dim, Type};

/// What a step does is picked from here; what stands twice comes up twice as often.
pub(super) const STEPS: &[Step] = &[
    unary,
    unary,
    unary,
    unary,
    binary,
    binary,
    binary,
    compare,
    compare,
    ternary,
    ternary,
    draw,
    convert,
    bitcast,
    linear::select,
    linear::select,
    linear::broadcast,
    linear::reshape,
    linear::transpose,
    linear::reverse,
    linear::slice,
    linear::pad,
    linear::concatenate,
    iota,
    linear::reduce_sum,
    reduce,
    reduce,
    arg,
    linear::cumsum,
    cumulative,
    linear::dot,
    linear::dot,
    over_windows,
    linear::decomposition,
    linear::decomposition,
    linear::dynamic_slice,
    linear::dynamic_update_slice,
    linear::gather,
    linear::gather,
    linear::scatter,
    linear::scatter,
    sort,
    sort,
    top_k,
    control::call,
    control::switch,
    control::scan,
    control::while_loop,
    control::checkpoint,
    control::custom,
    control::marks,
    linear::again,
    linear::again,
    linear::nothing,
    linear::nothing,
    size,
    complex,
    integer_pow,
];

/// The functions of so many elements, without parameters, that take numbers of a dtype: what is in the list of elementwise operations is used.
fn functions(arity: usize, dtype: DType) -> &'static [Op] {
    static ALL: LazyLock<FxHashMap<(usize, DType), Vec<Op>>> = LazyLock::new(|| {
        let mut all: FxHashMap<_, Vec<Op>> = FxHashMap::default();
        for entry in elementwise::entries() {
            let Some(Sample { op, inputs, .. }) = (entry.samples)().into_iter().next() else { continue };
            if !op.params().is_empty() {
                continue;
            }
            for dtype in DType::VALUES {
                let types = vec![Type::scalar(dtype); inputs.len()];
                if op.infer(&mut Infer { inputs: &types, constraints: &mut Vec::new() }).is_ok() {
                    all.entry((inputs.len(), dtype)).or_default().push(op.clone());
                }
            }
        }
        all
    });
    ALL.get(&(arity, dtype)).map_or(&[], Vec::as_slice)
}

fn unary(m: &mut Maker<'_, '_>) -> Done {
    let x = m.any()?;
    let op = m.source.pick(functions(1, m.ty(x).dtype()))?.clone();
    m.one(op, &[x]).map(|_| ())
}

fn binary(m: &mut Maker<'_, '_>) -> Done {
    let x = m.any()?;
    let ty = m.ty(x);
    let op = m.source.pick(functions(2, ty.dtype()))?.clone();
    let y = m.of_type(&ty);
    let operands = if m.source.chance(50) { [x, y] } else { [y, x] };
    m.one(op, &operands).map(|_| ())
}

fn integer_pow(m: &mut Maker<'_, '_>) -> Done {
    let x = m.any_of(|t| t.dtype() != DType::Bool)?;
    if m.ty(x).dtype().is_float() && m.source.chance(30) {
        let order = 1 + m.source.below(3) as u32;
        return m.add(Op::new(Polygamma { order }), &[x]).map(|_| ());
    }
    let exponent = m.source.below(9) as i64 - 3;
    m.add(Op::new(IntegerPow { exponent }), &[x]).map(|_| ())
}

fn compare(m: &mut Maker<'_, '_>) -> Done {
    let x = m.any()?;
    let ty = m.ty(x);
    let y = m.of_type(&ty);
    let direction = m.source.pick(Direction::ALL).copied()?;
    m.add(Op::new(Compare { direction }), &[x, y]).map(|_| ())
}

fn ternary(m: &mut Maker<'_, '_>) -> Done {
    let x = m.any()?;
    let ty = m.ty(x);
    let op = m.source.pick(functions(3, ty.dtype()))?.clone();
    let (y, z) = (m.of_type(&ty), m.of_type(&ty));
    m.one(op, &[x, y, z]).map(|_| ())
}

/// Bits of a key that is made of a number, or follows from one that is.
fn draw(m: &mut Maker<'_, '_>) -> Done {
    let word = m.of_type(&Type::scalar(DType::U64));
    let mut key = m.one(Op::new(Bitcast { dtype: DType::Key }), &[word])?;
    if m.source.chance(50) {
        let number = m.of_type(&Type::scalar(DType::U32));
        key = m.one(Op::fixed(&FoldIn), &[key, number])?;
    }
    let dtype = m.source.pick(&[DType::U8, DType::U16, DType::U32, DType::U64]).copied()?;
    let shape = m.palette.shape(m.source);
    m.add(Op::new(RandomBits { dtype, shape }), &[key]).map(|_| ())
}

fn convert(m: &mut Maker<'_, '_>) -> Done {
    let x = m.any()?;
    let dtype = match m.source.chance(70) {
        true => m.palette.dtype(m.source),
        false => m.source.pick(&DType::VALUES).copied()?,
    };
    m.add(Op::new(Convert { dtype }), &[x]).map(|_| ())
}

/// The bits of a NaN are nobody's promise: a rewrite may change them, so a program that is compared must not look.
fn bitcast(m: &mut Maker<'_, '_>) -> Done {
    let mut x = m.any_of(|t| t.dtype().is_int() || t.dtype().is_float())?;
    let ty = m.ty(x);
    let same_size = |d: &DType| d.size() == ty.dtype().size() && (d.is_int() || d.is_float());
    let choices: Vec<DType> = DType::VALUES.into_iter().filter(same_size).collect();
    let dtype = m.source.pick(&choices).copied()?;
    if ty.dtype().is_float() {
        let number = m.one(Op::new(Compare { direction: Direction::Eq }), &[x, x])?;
        let zero = m.splat(&ty, 0.0);
        x = m.one(Op::fixed(&Select), &[number, x, zero])?;
    }
    m.add(Op::new(Bitcast { dtype }), &[x]).map(|_| ())
}

fn iota(m: &mut Maker<'_, '_>) -> Done {
    let shape = m.palette.shape(m.source);
    let dtype = m.palette.dtype(m.source);
    let axis = m.source.below(shape.rank());
    m.add(Op::new(Iota { dtype, shape, axis }), &[]).map(|_| ())
}

fn reduce(m: &mut Maker<'_, '_>) -> Done {
    let x = m.any()?;
    let ty = m.ty(x);
    let axes = some_axes(m, ty.rank());
    let op = match m.source.below(5) {
        0 => Op::new(ReduceMax { axes }),
        1 => Op::new(ReduceMin { axes }),
        2 => Op::new(ReduceAnd { axes }),
        3 => Op::new(ReduceOr { axes }),
        _ if may_sum(&m.recipe, ty.dtype()) => Op::new(ReduceProd { axes }),
        _ => return None,
    };
    m.add(op, &[x]).map(|_| ())
}

/// Windows, their reductions, convolutions and Fourier transforms: one step of all of them, as there are so many others.
fn over_windows(m: &mut Maker<'_, '_>) -> Done {
    match m.source.below(3) {
        0 => {
            let kind = m.source.pick(&[WindowKind::Max, WindowKind::Min, WindowKind::Prod]).copied()?;
            linear::reduce_window(m, kind)
        }
        _ => linear::over_windows(m),
    }
}

fn arg(m: &mut Maker<'_, '_>) -> Done {
    let (x, _, axis) = m.with_axis(|t| !t.dtype().is_complex())?;
    let dtype = m.source.pick(&[DType::I32, DType::I64, DType::U8]).copied()?;
    let op = if m.source.chance(50) { Op::new(ArgMax { axis, dtype }) } else { Op::new(ArgMin { axis, dtype }) };
    m.add(op, &[x]).map(|_| ())
}

fn cumulative(m: &mut Maker<'_, '_>) -> Done {
    let (x, _, axis) = m.with_axis(|t| t.dtype() != DType::Bool)?;
    let reverse = m.source.chance(50);
    let op = match m.source.below(3) {
        0 => Op::new(CumProd { axis, reverse }),
        1 => Op::new(CumMax { axis, reverse }),
        _ => Op::new(CumMin { axis, reverse }),
    };
    m.add(op, &[x]).map(|_| ())
}

fn sort(m: &mut Maker<'_, '_>) -> Done {
    let (x, ty, axis) = m.with_axis(|_| true)?;
    let mut operands = vec![x];
    for _ in 0..m.source.below(3) {
        let dtype = m.palette.dtype(m.source);
        operands.push(m.of_type(&ty.with_dtype(dtype)));
    }
    let keys = 1 + m.source.below(operands.len());
    let descending = m.source.chance(50);
    m.add(Op::new(Sort { axis, keys, descending }), &operands).map(|_| ())
}

fn top_k(m: &mut Maker<'_, '_>) -> Done {
    let (x, ty, _) = m.with_axis(|t| !t.dtype().is_complex())?;
    let n = ty.shape().last().and_then(Dim::as_usize)?;
    let k = m.source.below(n + 1);
    m.add(Op::new(TopK { k }), &[x]).map(|_| ())
}

/// A dimension as a number; a sum of two, so that symbols are computed with.
fn size(m: &mut Maker<'_, '_>) -> Done {
    let dim = m.palette.dim(m.source) + m.palette.dim(m.source);
    let dtype = m.palette.dtype(m.source);
    m.add(Op::new(Size { dim, dtype }), &[]).map(|_| ())
}

fn complex(m: &mut Maker<'_, '_>) -> Done {
    let x = m.any_of(|t| t.dtype().complex_of().is_some())?;
    let ty = m.ty(x);
    let y = m.of_type(&ty);
    m.named("complex", &[x, y]).map(|_| ())
}

//! Operations on single vectors of 128 bits, the same meaning in each lane as on a scalar.

use cranelift_codegen::ir::{self, Endianness, InstBuilder, MemFlagsData, types};

use super::super::emit::Emitter;
use super::super::scalar;
use crate::ir::{Op, Ty};

/// Bytes of a vector.
pub(in super::super) const BYTES: usize = 16;

/// The vector of a type's lanes. Bools are masks and have none of their own.
pub(in super::super) fn vector_type(ty: Ty) -> ir::Type {
    match ty {
        Ty::F32 => types::F32X4,
        Ty::F64 => types::F64X2,
        ty => integers(ty.size()),
    }
}

/// The vector of integers of so many bytes.
pub(in super::super) fn integers(size: usize) -> ir::Type {
    match size {
        1 => types::I8X16,
        2 => types::I16X8,
        4 => types::I32X4,
        _ => types::I64X2,
    }
}

/// Whether [`vector`] has the operation. Operands and result are vectors of this type (bools: of any masks of one size),
/// but the results of comparisons are masks of its size.
pub(in super::super) fn has(op: Op, ty: Ty) -> bool {
    match op {
        Op::Add | Op::Sub | Op::Neg | Op::Abs | Op::Max | Op::Min => ty != Ty::Bool,
        Op::Mul => ty.size() > 1,
        Op::Div | Op::Fma | Op::Sqrt | Op::Floor | Op::Ceil | Op::Round | Op::Trunc | Op::Lesser | Op::Greater => {
            ty.is_float()
        }
        Op::And | Op::Or | Op::Xor | Op::Not => !ty.is_float(),
        Op::Popcount => ty.size() == 1,
        Op::Eq | Op::Ne | Op::Lt | Op::Le => true,
        _ => false,
    }
}

/// The same bits as another vector.
pub(in super::super) fn cast(e: &mut Emitter, to: ir::Type, x: ir::Value) -> ir::Value {
    match e.b.func.dfg.value_type(x) == to {
        true => x,
        false => e.b.ins().bitcast(to, MemFlagsData::new().with_endianness(Endianness::Little), x),
    }
}

/// Chooses lanes by a mask of the same lane size.
pub(in super::super) fn choose(e: &mut Emitter, mask: ir::Value, x: ir::Value, y: ir::Value) -> ir::Value {
    let mask = cast(e, e.b.func.dfg.value_type(x), mask);
    e.b.ins().bitselect(mask, x, y)
}

/// One operation that [`has`] allows.
pub(in super::super) fn vector(e: &mut Emitter, op: Op, ty: Ty, x: &[ir::Value]) -> ir::Value {
    match ty {
        Ty::F32 | Ty::F64 => scalar::float(e, op, x, choose),
        Ty::Bool => mask(e, op, x),
        ty => scalar::integer(e, op, ty, x),
    }
}

fn mask(e: &mut Emitter, op: Op, x: &[ir::Value]) -> ir::Value {
    match op {
        Op::And => e.b.ins().band(x[0], x[1]),
        Op::Or => e.b.ins().bor(x[0], x[1]),
        Op::Xor | Op::Ne => e.b.ins().bxor(x[0], x[1]),
        Op::Eq => {
            let differ = e.b.ins().bxor(x[0], x[1]);
            e.b.ins().bnot(differ)
        }
        // False before true.
        Op::Lt => {
            let not = e.b.ins().bnot(x[0]);
            e.b.ins().band(not, x[1])
        }
        Op::Le => {
            let not = e.b.ins().bnot(x[0]);
            e.b.ins().bor(not, x[1])
        }
        _ => e.b.ins().bnot(x[0]),
    }
}

/// A vector of the same bits in each lane.
pub(in super::super) fn constant(e: &mut Emitter, ty: Ty, bits: u64) -> ir::Value {
    let bytes: Vec<u8> = bits.to_le_bytes()[..ty.size()].iter().copied().cycle().take(BYTES).collect();
    literal(e, vector_type(ty), bytes)
}

/// A vector by its bytes.
pub(in super::super) fn literal(e: &mut Emitter, ty: ir::Type, bytes: Vec<u8>) -> ir::Value {
    let constant = e.b.func.dfg.constants.insert(bytes.into());
    e.b.ins().vconst(ty, constant)
}

/// Bytes of two vectors (the second has 16..32), as a vector of this type.
pub(in super::super) fn shuffle(
    e: &mut Emitter,
    to: ir::Type,
    x: ir::Value,
    y: ir::Value,
    byte: impl Fn(usize) -> usize,
) -> ir::Value {
    let mask: Vec<u8> = (0..BYTES).map(|i| byte(i) as u8).collect();
    let mask = e.b.func.dfg.immediates.push(mask.into());
    let (x, y) = (cast(e, types::I8X16, x), cast(e, types::I8X16, y));
    let v = e.b.ins().shuffle(x, y, mask);
    cast(e, to, v)
}

//! Operations on scalars, with exactly the meaning the evaluator gives them.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};

use super::emit::Emitter;
use super::machine_type;
use crate::error::Result;
use crate::ir::{Op, Special, Ty};

/// One operation.
pub(super) fn operation(e: &mut Emitter, op: Op, types: &[Ty], args: &[ir::Value]) -> Result<ir::Value> {
    let ty = types[0];
    Ok(match op {
        Op::Select => e.b.ins().select(args[0], args[1], args[2]),
        Op::Convert(to) => convert(e, ty, to, args[0]),
        Op::Bitcast(to) => bitcast(e, ty, to, args[0]),
        Op::Math(f) => e.elementary(f, ty, args)?,
        Op::Special(s) => special(e, s, ty, args),
        _ if ty.is_float() => float(e, op, args, |e, c, x, y| e.b.ins().select(c, x, y)),
        _ => integer(e, op, ty, args),
    })
}

/// Floats, alone or in vectors; `choose` takes the first where a comparison holds.
pub(super) fn float(
    e: &mut Emitter,
    op: Op,
    x: &[ir::Value],
    choose: impl Fn(&mut Emitter, ir::Value, ir::Value, ir::Value) -> ir::Value,
) -> ir::Value {
    match op {
        Op::Add => e.b.ins().fadd(x[0], x[1]),
        Op::Sub => e.b.ins().fsub(x[0], x[1]),
        Op::Mul => e.b.ins().fmul(x[0], x[1]),
        Op::Div => e.b.ins().fdiv(x[0], x[1]),
        Op::Fma => e.b.ins().fma(x[0], x[1], x[2]),
        Op::Sqrt => e.b.ins().sqrt(x[0]),
        Op::Floor => e.b.ins().floor(x[0]),
        Op::Ceil => e.b.ins().ceil(x[0]),
        Op::Round => e.b.ins().nearest(x[0]),
        Op::Trunc => e.b.ins().trunc(x[0]),
        Op::Abs => e.b.ins().fabs(x[0]),
        // NaN if either is and zeros in order: the same as WebAssembly has it.
        Op::Max => e.b.ins().fmax(x[0], x[1]),
        Op::Min => e.b.ins().fmin(x[0], x[1]),
        // These two are single instructions on x86-64 in exactly this form.
        Op::Lesser => {
            let less = e.b.ins().fcmp(FloatCC::LessThan, x[0], x[1]);
            choose(e, less, x[0], x[1])
        }
        Op::Greater => {
            let less = e.b.ins().fcmp(FloatCC::LessThan, x[1], x[0]);
            choose(e, less, x[0], x[1])
        }
        Op::Eq => e.b.ins().fcmp(FloatCC::Equal, x[0], x[1]),
        Op::Ne => e.b.ins().fcmp(FloatCC::NotEqual, x[0], x[1]),
        Op::Lt => e.b.ins().fcmp(FloatCC::LessThan, x[0], x[1]),
        Op::Le => e.b.ins().fcmp(FloatCC::LessThanOrEqual, x[0], x[1]),
        _ => e.b.ins().fneg(x[0]),
    }
}

/// Integers; those operations that need no constants are the same in vectors.
pub(super) fn integer(e: &mut Emitter, op: Op, ty: Ty, x: &[ir::Value]) -> ir::Value {
    let signed = ty.is_signed();
    let width = ty.size() as u64 * 8;
    match op {
        Op::Add => e.b.ins().iadd(x[0], x[1]),
        Op::Sub => e.b.ins().isub(x[0], x[1]),
        Op::Mul => e.b.ins().imul(x[0], x[1]),
        Op::Div | Op::Rem => divide(e, op, ty, x),
        Op::Neg => e.b.ins().ineg(x[0]),
        Op::Abs if signed => e.b.ins().iabs(x[0]),
        Op::Abs => x[0],
        Op::Max if signed => e.b.ins().smax(x[0], x[1]),
        Op::Max => e.b.ins().umax(x[0], x[1]),
        Op::Min if signed => e.b.ins().smin(x[0], x[1]),
        Op::Min => e.b.ins().umin(x[0], x[1]),
        Op::And => e.b.ins().band(x[0], x[1]),
        Op::Or => e.b.ins().bor(x[0], x[1]),
        Op::Xor => e.b.ins().bxor(x[0], x[1]),
        Op::Not if ty == Ty::Bool => {
            let one = e.constant(ty, 1);
            e.b.ins().bxor(x[0], one)
        }
        Op::Not => e.b.ins().bnot(x[0]),
        Op::Shl | Op::Shr => {
            // The machine takes counts modulo the width. Read as unsigned, a negative count is too large as well.
            let limit = e.constant(ty, width);
            let fits = e.b.ins().icmp(IntCC::UnsignedLessThan, x[1], limit);
            let zero = e.constant(ty, 0);
            let shifted = if op == Op::Shl { e.b.ins().ishl(x[0], x[1]) } else { e.b.ins().ushr(x[0], x[1]) };
            e.b.ins().select(fits, shifted, zero)
        }
        Op::Sar => {
            let most = e.constant(ty, width - 1);
            let by = e.b.ins().umin(x[1], most);
            e.b.ins().sshr(x[0], by)
        }
        Op::Rotl => e.b.ins().rotl(x[0], x[1]),
        Op::Popcount => e.b.ins().popcnt(x[0]),
        Op::LeadingZeros => e.b.ins().clz(x[0]),
        Op::Eq => e.b.ins().icmp(IntCC::Equal, x[0], x[1]),
        Op::Ne => e.b.ins().icmp(IntCC::NotEqual, x[0], x[1]),
        Op::Lt if signed => e.b.ins().icmp(IntCC::SignedLessThan, x[0], x[1]),
        Op::Lt => e.b.ins().icmp(IntCC::UnsignedLessThan, x[0], x[1]),
        _ if signed => e.b.ins().icmp(IntCC::SignedLessThanOrEqual, x[0], x[1]),
        _ => e.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, x[0], x[1]),
    }
}

/// Division is total here and traps on the machine: divisors that trap become one, and the result is chosen after.
fn divide(e: &mut Emitter, op: Op, ty: Ty, x: &[ir::Value]) -> ir::Value {
    let (zero, one, ones) = (e.constant(ty, 0), e.constant(ty, 1), e.constant(ty, u64::MAX));
    let by_zero = e.b.ins().icmp(IntCC::Equal, x[1], zero);
    let mut divisor = e.b.ins().select(by_zero, one, x[1]);
    if !ty.is_signed() {
        return if op == Op::Div {
            let q = e.b.ins().udiv(x[0], divisor);
            e.b.ins().select(by_zero, ones, q)
        } else {
            let r = e.b.ins().urem(x[0], divisor);
            e.b.ins().select(by_zero, x[0], r)
        };
    }
    let by_minus_one = e.b.ins().icmp(IntCC::Equal, x[1], ones);
    divisor = e.b.ins().select(by_minus_one, one, divisor);
    if op == Op::Div {
        let q = e.b.ins().sdiv(x[0], divisor);
        let negated = e.b.ins().ineg(x[0]);
        let q = e.b.ins().select(by_minus_one, negated, q);
        e.b.ins().select(by_zero, ones, q)
    } else {
        // By minus one and by one nothing remains.
        let r = e.b.ins().srem(x[0], divisor);
        e.b.ins().select(by_zero, x[0], r)
    }
}

fn convert(e: &mut Emitter, from: Ty, to: Ty, x: ir::Value) -> ir::Value {
    if from == to {
        return x;
    }
    let wide = machine_type(to);
    match (from.is_float(), to) {
        (true, Ty::F64) => e.b.ins().fpromote(types::F64, x),
        (true, Ty::F32) => e.b.ins().fdemote(types::F32, x),
        (true, Ty::Bool) => {
            let zero = e.constant(from, 0);
            e.b.ins().fcmp(FloatCC::NotEqual, x, zero)
        }
        (true, Ty::I32 | Ty::I64) => e.b.ins().fcvt_to_sint_sat(wide, x),
        (true, Ty::U32 | Ty::U64) => e.b.ins().fcvt_to_uint_sat(wide, x),
        (true, _) => {
            // Narrow integers: through 32 bits, and into their range.
            let width = to.size() as i64 * 8;
            let (lowest, highest) =
                if to.is_signed() { (-1 << (width - 1), (1 << (width - 1)) - 1) } else { (0, (1 << width) - 1) };
            let v = e.b.ins().fcvt_to_sint_sat(types::I32, x);
            let (lowest, highest) = (e.constant(Ty::I32, lowest as u64), e.constant(Ty::I32, highest as u64));
            let v = e.b.ins().smax(v, lowest);
            let v = e.b.ins().smin(v, highest);
            e.b.ins().ireduce(wide, v)
        }
        (false, Ty::F32 | Ty::F64) => {
            let v = match from.size() {
                1 | 2 => extend(e, from, types::I32, x),
                _ => x,
            };
            // A narrow unsigned number is a signed one of 32 bits, which is quicker.
            let signed = from.is_signed() || from.size() < 4;
            if signed { e.b.ins().fcvt_from_sint(wide, v) } else { e.b.ins().fcvt_from_uint(wide, v) }
        }
        (false, Ty::Bool) => {
            let zero = e.constant(from, 0);
            e.b.ins().icmp(IntCC::NotEqual, x, zero)
        }
        (false, _) => match to.size().cmp(&from.size()) {
            std::cmp::Ordering::Less => e.b.ins().ireduce(wide, x),
            std::cmp::Ordering::Equal => x,
            std::cmp::Ordering::Greater => extend(e, from, wide, x),
        },
    }
}

fn extend(e: &mut Emitter, from: Ty, to: ir::Type, x: ir::Value) -> ir::Value {
    if from.is_signed() { e.b.ins().sextend(to, x) } else { e.b.ins().uextend(to, x) }
}

fn bitcast(e: &mut Emitter, from: Ty, to: Ty, x: ir::Value) -> ir::Value {
    if to == Ty::Bool && from != Ty::Bool {
        let zero = e.constant(from, 0);
        return e.b.ins().icmp(IntCC::NotEqual, x, zero);
    }
    match machine_type(from) == machine_type(to) {
        true => x,
        false => e.b.ins().bitcast(machine_type(to), MemFlagsData::new(), x),
    }
}

/// A call of compiled Rust for one number. A rare case is only called where it is one.
fn special(e: &mut Emitter, s: Special, ty: Ty, args: &[ir::Value]) -> ir::Value {
    let result = machine_type(ty);
    let guard = match s {
        Special::Rare(_) => args.get(2).copied(),
        _ => None,
    };
    let join = guard.map(|guard| {
        let (call, join) = (e.b.create_block(), e.b.create_block());
        let out = e.b.append_block_param(join, result);
        e.b.ins().brif(guard, call, &[], join, &[args[0].into()]);
        e.b.seal_block(call);
        e.b.set_cold_block(call);
        e.b.switch_to_block(call);
        (join, out)
    });
    let room = e.room(24);
    let flags = MemFlagsData::trusted();
    let second = if args.len() > 1 { args[1] } else { args[0] };
    e.b.ins().store(flags, args[0], room, 0);
    e.b.ins().store(flags, second, room, 8);
    let (b, to) = (e.b.ins().iadd_imm_s(room, 8), e.b.ins().iadd_imm_s(room, 16));
    e.call_special(s, ty, [to, room, b], 1);
    let v = e.b.ins().load(result, flags, to, 0);
    match join {
        None => v,
        Some((join, out)) => {
            e.b.ins().jump(join, &[v.into()]);
            e.b.seal_block(join);
            e.b.switch_to_block(join);
            out
        }
    }
}

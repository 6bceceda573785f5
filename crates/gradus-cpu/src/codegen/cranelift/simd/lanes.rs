//! Values that differ between lanes, in as many vectors as their type needs, and what is done with them.

use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use smallvec::{SmallVec, smallvec};

use super::super::emit::Emitter;
use super::super::{machine_type, scalar};
use super::vector::{self, BYTES, cast, choose, constant, integers, shuffle, vector_type};
use crate::error::Result;
use crate::ir::{Op, Special, Ty};

/// The lanes of one value, the first in the low bytes of the first vector. Lanes that do not fill a vector leave its upper
/// bytes undefined.
#[derive(Clone, Debug)]
pub(in super::super) struct Lanes {
    /// Bytes of a lane. A bool is a mask, all bits set or none, as wide as what it was computed from.
    pub size: usize,
    pub parts: SmallVec<[ir::Value; 4]>,
}

/// An operand: one for all lanes, or one for each.
#[derive(Clone)]
pub(in super::super) enum Operand {
    Uniform(ir::Value),
    Varying(Lanes),
}

/// How wide things are.
#[derive(Clone, Copy)]
pub(in super::super) struct Width {
    /// How many lanes are computed at once.
    pub lanes: usize,
}

impl Width {
    /// How many vectors lanes of so many bytes take.
    pub fn parts(self, size: usize) -> usize {
        (self.lanes * size).div_ceil(BYTES)
    }

    /// The size of masks where nothing else decides: they fill a vector.
    pub fn mask(self) -> usize {
        (BYTES / self.lanes).max(1)
    }

    /// All lanes of an operand.
    pub fn spread(self, e: &mut Emitter, ty: Ty, x: &Operand) -> Lanes {
        match x {
            Operand::Varying(lanes) => lanes.clone(),
            Operand::Uniform(x) => {
                let (size, vector) = match ty {
                    Ty::Bool => {
                        let size = self.mask();
                        let x = widen_mask(e, *x, size);
                        (size, e.b.ins().splat(integers(size), x))
                    }
                    ty => (ty.size(), e.b.ins().splat(vector_type(ty), *x)),
                };
                Lanes { size, parts: smallvec![vector; self.parts(size)] }
            }
        }
    }

    /// One lane as a scalar.
    pub fn lane(self, e: &mut Emitter, ty: Ty, x: &Operand, lane: usize) -> ir::Value {
        match x {
            Operand::Uniform(x) => *x,
            Operand::Varying(lanes) => {
                let each = BYTES / lanes.size;
                let v = e.b.ins().extractlane(lanes.parts[lane / each], (lane % each) as u8);
                if ty != Ty::Bool {
                    return v;
                }
                let v = if lanes.size > 1 { e.b.ins().ireduce(types::I8, v) } else { v };
                e.b.ins().band_imm_s(v, 1)
            }
        }
    }

    /// Lanes from scalars.
    pub fn gather(self, e: &mut Emitter, ty: Ty, scalars: &[ir::Value]) -> Lanes {
        let size = if ty == Ty::Bool { self.mask() } else { ty.size() };
        let vector = if ty == Ty::Bool { integers(size) } else { vector_type(ty) };
        let lane = |e: &mut Emitter, x: ir::Value| if ty == Ty::Bool { widen_mask(e, x, size) } else { x };
        let parts = scalars.chunks(BYTES / size).map(|chunk| {
            let first = lane(e, chunk[0]);
            let mut v = if size < 4 {
                let wide = e.b.ins().uextend(types::I32, first);
                let v = e.b.ins().scalar_to_vector(types::I32X4, wide);
                cast(e, vector, v)
            } else {
                e.b.ins().scalar_to_vector(vector, first)
            };
            for (i, x) in chunk.iter().enumerate().skip(1) {
                let x = lane(e, *x);
                v = e.b.ins().insertlane(v, x, i as u8);
            }
            v
        });
        Lanes { size, parts: parts.collect() }
    }

    /// A mask in lanes of another size.
    pub fn mask_to(self, e: &mut Emitter, mut mask: Lanes, size: usize) -> Lanes {
        while mask.size < size {
            mask = self.widen(e, &mask, true);
        }
        while mask.size > size {
            mask = match mask.size {
                8 => self.narrow(e, &mask),
                // All bits or none stay so under saturation, which is one instruction.
                half => {
                    let parts = mask.parts.chunks(2).map(|p| e.b.ins().snarrow(p[0], p[p.len() - 1]));
                    Lanes { size: half / 2, parts: parts.collect() }
                }
            };
        }
        mask
    }

    /// Integers of twice the size.
    fn widen(self, e: &mut Emitter, x: &Lanes, signed: bool) -> Lanes {
        let size = x.size * 2;
        let mut parts = SmallVec::new();
        for p in &x.parts {
            parts.push(if signed { e.b.ins().swiden_low(*p) } else { e.b.ins().uwiden_low(*p) });
            if parts.len() < self.parts(size) {
                parts.push(if signed { e.b.ins().swiden_high(*p) } else { e.b.ins().uwiden_high(*p) });
            }
        }
        Lanes { size, parts }
    }

    /// The low halves of integers.
    fn narrow(self, e: &mut Emitter, x: &Lanes) -> Lanes {
        let size = x.size / 2;
        // Byte i of the result is byte i % size of lane i / size, and lanes lie `x.size` apart.
        let byte = |i: usize| i / size * x.size + i % size;
        let parts = x.parts.chunks(2).map(|pair| {
            let second = if pair.len() > 1 { pair[1] } else { pair[0] };
            shuffle(e, integers(size), pair[0], second, byte)
        });
        Lanes { size, parts: parts.collect() }
    }

    /// Integers in another size: low bits, or extended.
    fn resize(self, e: &mut Emitter, mut x: Lanes, signed: bool, size: usize) -> Lanes {
        while x.size < size {
            x = self.widen(e, &x, signed);
        }
        while x.size > size {
            x = self.narrow(e, &x);
        }
        x
    }

    fn each(self, e: &mut Emitter, x: &Lanes, size: usize, f: impl Fn(&mut Emitter, ir::Value) -> ir::Value) -> Lanes {
        Lanes { size, parts: x.parts.iter().map(|p| f(e, *p)).collect() }
    }

    /// Zeros and ones of a mask, as lanes of a type.
    fn ones_where(self, e: &mut Emitter, mask: Lanes, to: Ty) -> Lanes {
        let mask = self.mask_to(e, mask, to.size());
        let integer = to.bits_type();
        let one = constant(e, integer, crate::ir::one(to));
        self.each(e, &mask, to.size(), |e, p| {
            let v = e.b.ins().band(p, one);
            cast(e, vector_type(to), v)
        })
    }

    /// Where lanes are not zero.
    fn mask_of(self, e: &mut Emitter, x: &Lanes, from: Ty) -> Lanes {
        let zero = constant(e, from, 0);
        self.each(e, x, from.size(), |e, p| vector::vector(e, Op::Ne, from, &[p, zero]))
    }

    /// Bytes 0 and 1 for bools, as they are in memory.
    pub fn bytes(self, e: &mut Emitter, mask: Lanes) -> Lanes {
        self.ones_where(e, mask, Ty::U8)
    }

    /// Masks for bytes 0 and 1.
    pub fn truths(self, e: &mut Emitter, bytes: &Lanes) -> Lanes {
        self.mask_of(e, bytes, Ty::U8)
    }

    /// An operation. Those without an instruction go lane by lane.
    pub fn operation(self, e: &mut Emitter, op: Op, types: &[Ty], args: &[Operand]) -> Result<Lanes> {
        let ty = types[0];
        if !native(op, types, &args.iter().map(|a| matches!(a, Operand::Varying(_))).collect::<Vec<_>>()) {
            let mut out = Vec::with_capacity(self.lanes);
            for l in 0..self.lanes {
                let x: SmallVec<[ir::Value; 3]> =
                    args.iter().zip(types).map(|(a, ty)| self.lane(e, *ty, a, l)).collect();
                out.push(scalar::operation(e, op, types, &x)?);
            }
            return Ok(self.gather(e, op.result(types), &out));
        }
        if let (Op::Select, Operand::Uniform(condition)) = (op, &args[0]) {
            let mut x = self.spread(e, types[1], &args[1]);
            let mut y = self.spread(e, types[1], &args[2]);
            if types[1] == Ty::Bool {
                (x, y) = (self.mask_to(e, x, self.mask()), self.mask_to(e, y, self.mask()));
            }
            let parts = x.parts.iter().zip(&y.parts).map(|(x, y)| e.b.ins().select(*condition, *x, *y));
            return Ok(Lanes { size: x.size, parts: parts.collect() });
        }
        if let (Op::Shl | Op::Shr | Op::Sar, Some(Operand::Uniform(by))) = (op, args.get(1)) {
            let x = self.spread(e, ty, &args[0]);
            return Ok(self.shift(e, op, ty, &x, *by));
        }
        let mut x: SmallVec<[Lanes; 3]> = args.iter().zip(types).map(|(a, ty)| self.spread(e, *ty, a)).collect();
        Ok(match op {
            Op::Select => {
                let size = if types[1] == Ty::Bool { self.mask() } else { types[1].size() };
                if types[1] == Ty::Bool {
                    (x[1], x[2]) = (self.mask_to(e, x[1].clone(), size), self.mask_to(e, x[2].clone(), size));
                }
                let mask = self.mask_to(e, x[0].clone(), size);
                let parts = (0..self.parts(size)).map(|i| choose(e, mask.parts[i], x[1].parts[i], x[2].parts[i]));
                Lanes { size, parts: parts.collect() }
            }
            Op::Convert(to) => self.convert(e, ty, to, x.swap_remove(0)),
            Op::Bitcast(to) => match (ty, to) {
                (Ty::Bool, Ty::Bool) => x.swap_remove(0),
                (Ty::Bool, to) => self.ones_where(e, x.swap_remove(0), to),
                (ty, Ty::Bool) => self.mask_of(e, &x[0], ty),
                (_, to) => self.each(e, &x[0], to.size(), |e, p| cast(e, vector_type(to), p)),
            },
            Op::Special(s) => self.special(e, s, ty, &x),
            _ => {
                // Masks of two sizes meet in that of the first.
                let size = x[0].size;
                if ty == Ty::Bool {
                    for x in &mut x[1..] {
                        *x = self.mask_to(e, x.clone(), size);
                    }
                }
                let parts = (0..x[0].parts.len()).map(|i| {
                    let parts: SmallVec<[ir::Value; 3]> = x.iter().map(|x| x.parts[i]).collect();
                    vector::vector(e, op, ty, &parts)
                });
                Lanes { size, parts: parts.collect() }
            }
        })
    }

    /// By a count that all lanes share.
    fn shift(self, e: &mut Emitter, op: Op, ty: Ty, x: &Lanes, by: ir::Value) -> Lanes {
        let width = ty.size() as u64 * 8;
        let to_32 = |e: &mut Emitter, by: ir::Value| match ty.size() {
            8 => e.b.ins().ireduce(types::I32, by),
            4 => by,
            _ => e.b.ins().uextend(types::I32, by),
        };
        if op == Op::Sar {
            let most = e.constant(ty, width - 1);
            let by = e.b.ins().umin(by, most);
            let by = to_32(e, by);
            return self.each(e, x, ty.size(), |e, p| e.b.ins().sshr(p, by));
        }
        let limit = e.constant(ty, width);
        let fits = e.b.ins().icmp(ir::condcodes::IntCC::UnsignedLessThan, by, limit);
        let by = to_32(e, by);
        let zero = constant(e, ty, 0);
        self.each(e, x, ty.size(), |e, p| {
            let v = if op == Op::Shl { e.b.ins().ishl(p, by) } else { e.b.ins().ushr(p, by) };
            e.b.ins().select(fits, v, zero)
        })
    }

    fn convert(self, e: &mut Emitter, from: Ty, to: Ty, x: Lanes) -> Lanes {
        match (from, to) {
            (from, to) if from == to => x,
            (Ty::Bool, to) => self.ones_where(e, x, to),
            (from, Ty::Bool) => self.mask_of(e, &x, from),
            (Ty::F32, Ty::F64) => {
                let halves = self.halves(e, &x, types::F32X4, self.parts(8));
                let parts = halves.into_iter().map(|p| e.b.ins().fvpromote_low(p));
                Lanes { size: 8, parts: parts.collect() }
            }
            (Ty::F64, Ty::F32) => {
                let parts = x.parts.chunks(2).map(|pair| {
                    let low = e.b.ins().fvdemote(pair[0]);
                    if pair.len() < 2 {
                        return low;
                    }
                    let high = e.b.ins().fvdemote(pair[1]);
                    shuffle(e, types::F32X4, low, high, |i| if i < 8 { i } else { i + 8 })
                });
                Lanes { size: 4, parts: parts.collect() }
            }
            (Ty::F32, to) => {
                if to == Ty::U32 {
                    return self.each(e, &x, 4, |e, p| e.b.ins().fcvt_to_uint_sat(types::I32X4, p));
                }
                let mut v = self.each(e, &x, 4, |e, p| e.b.ins().fcvt_to_sint_sat(types::I32X4, p));
                if to.size() < 4 {
                    let width = to.size() as i64 * 8;
                    let (lowest, highest) = if to.is_signed() {
                        (-1 << (width - 1), (1 << (width - 1)) - 1)
                    } else {
                        (0, (1 << width) - 1)
                    };
                    let (lowest, highest) = (constant(e, Ty::I32, lowest as u64), constant(e, Ty::I32, highest as u64));
                    v = self.each(e, &v, 4, |e, p| {
                        let p = e.b.ins().smax(p, lowest);
                        e.b.ins().smin(p, highest)
                    });
                }
                self.resize(e, v, true, to.size())
            }
            (from, Ty::F32) => {
                let unsigned = from == Ty::U32;
                let v = self.resize(e, x, from.is_signed(), 4);
                self.each(e, &v, 4, |e, p| match unsigned {
                    true => e.b.ins().fcvt_from_uint(types::F32X4, p),
                    false => e.b.ins().fcvt_from_sint(types::F32X4, p),
                })
            }
            (Ty::I64, Ty::F64) => self.each(e, &x, 8, |e, p| e.b.ins().fcvt_from_sint(types::F64X2, p)),
            (from, Ty::F64) => {
                let unsigned = from == Ty::U32;
                let v = self.resize(e, x, from.is_signed(), 4);
                let halves = self.halves(e, &v, types::I32X4, self.parts(8));
                let parts = halves.into_iter().map(|p| {
                    if unsigned {
                        let wide = e.b.ins().uwiden_low(p);
                        e.b.ins().fcvt_from_uint(types::F64X2, wide)
                    } else {
                        let wide = e.b.ins().swiden_low(p);
                        e.b.ins().fcvt_from_sint(types::F64X2, wide)
                    }
                });
                Lanes { size: 8, parts: parts.collect() }
            }
            (from, to) => self.resize(e, x, from.is_signed(), to.size()),
        }
    }

    /// The low halves and the high halves of vectors, each in low bytes, so many in all.
    fn halves(self, e: &mut Emitter, x: &Lanes, ty: ir::Type, count: usize) -> Vec<ir::Value> {
        let mut out = Vec::new();
        for p in &x.parts {
            out.push(*p);
            out.push(shuffle(e, ty, *p, *p, |i| (i + 8) % BYTES));
        }
        out.truncate(count);
        out
    }

    /// Calls compiled Rust for all lanes. A rare case is only called if a lane is one.
    fn special(self, e: &mut Emitter, s: Special, ty: Ty, x: &[Lanes]) -> Lanes {
        let vector = vector_type(ty);
        let guard = match s {
            Special::Rare(_) => x.get(2),
            _ => None,
        };
        let join = guard.map(|guard| {
            let (call, join) = (e.b.create_block(), e.b.create_block());
            let out: SmallVec<[ir::Value; 4]> =
                x[0].parts.iter().map(|_| e.b.append_block_param(join, vector)).collect();
            let any = guard.parts[1..].iter().fold(guard.parts[0], |a, b| e.b.ins().bor(a, *b));
            let any = e.b.ins().vany_true(any);
            let same: Vec<ir::BlockArg> = x[0].parts.iter().map(|p| (*p).into()).collect();
            e.b.ins().brif(any, call, &[], join, &same);
            e.b.seal_block(call);
            e.b.set_cold_block(call);
            e.b.switch_to_block(call);
            (join, out)
        });
        let bytes = (x[0].parts.len() * BYTES) as i32;
        let room = e.room(3 * bytes as u32);
        let flags = MemFlagsData::new().with_notrap();
        let second = if x.len() > 1 { &x[1] } else { &x[0] };
        for (at, lanes) in [(0, &x[0]), (bytes, second)] {
            for (i, p) in lanes.parts.iter().enumerate() {
                e.b.ins().store(flags, *p, room, at + (i * BYTES) as i32);
            }
        }
        let b = e.b.ins().iadd_imm_s(room, i64::from(bytes));
        let to = e.b.ins().iadd_imm_s(room, i64::from(2 * bytes));
        e.call_special(s, ty, [to, room, b], self.lanes as i64);
        let parts: SmallVec<[ir::Value; 4]> =
            (0..x[0].parts.len()).map(|i| e.b.ins().load(vector, flags, to, (i * BYTES) as i32)).collect();
        let parts = match join {
            None => parts,
            Some((join, out)) => {
                let parts: Vec<ir::BlockArg> = parts.into_iter().map(Into::into).collect();
                e.b.ins().jump(join, &parts);
                e.b.seal_block(join);
                e.b.switch_to_block(join);
                out
            }
        };
        Lanes { size: ty.size(), parts }
    }
}

/// A scalar bool as an integer with all bits set or none.
fn widen_mask(e: &mut Emitter, x: ir::Value, size: usize) -> ir::Value {
    let x = e.b.ins().ineg(x);
    match size {
        1 => x,
        size => e.b.ins().sextend(integers(size).lane_type(), x),
    }
}

/// Whether an operation with these operands is done with vectors and not lane by lane.
pub(in super::super) fn native(op: Op, types: &[Ty], varying: &[bool]) -> bool {
    let ty = types[0];
    match op {
        Op::Select | Op::Bitcast(_) | Op::Special(_) => true,
        Op::Shl | Op::Shr | Op::Sar => !varying[1],
        Op::Convert(to) => match (ty, to) {
            (from, to) if from == to || from == Ty::Bool || to == Ty::Bool => true,
            (Ty::F32, Ty::F64) | (Ty::F64, Ty::F32) | (Ty::I64, Ty::F64) => true,
            (Ty::F32, to) => to.size() <= 4,
            (Ty::F64, _) => false,
            (from, Ty::F32 | Ty::F64) => from.size() <= 4,
            _ => true,
        },
        op => vector::has(op, ty),
    }
}

/// A scalar machine type for so many bytes.
pub(in super::super) fn word(bytes: usize) -> ir::Type {
    match bytes {
        1 => types::I8,
        2 => types::I16,
        4 => types::I32,
        _ => machine_type(Ty::I64),
    }
}

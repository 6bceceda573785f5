//! Loops of lanes in vectors of 128 bits.
//!
//! As many iterations run at once as lanes of the loop's most frequent type fill a vector; wider types take several vectors,
//! narrower ones a part of one. What is the same in all lanes stays a scalar. Iterations that are left over run one after the
//! other.

mod lanes;
mod shape;
mod vector;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, BlockArg, InstBuilder, MemFlagsData, types};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::emit::Emitter;
use super::machine_type;
use crate::error::Result;
use crate::ir::{Buffer, Expr, Fold, Index, Int, LANES, Loop, Stmt, Ty, Value};

use lanes::{Lanes, Operand, Width};
pub(super) use shape::Shape;
use vector::{BYTES, integers, literal, shuffle, vector_type};
pub(super) use vector::{constant, has, vector, vector_type as type_of};

/// Vectors may lie anywhere.
fn flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

impl<'a> Emitter<'a, '_> {
    /// Iterations `lo..hi` of a loop in vectors, as many as fill them. Gives the first that is left.
    pub fn vectors(
        &mut self,
        l: &'a Loop,
        shape: &Shape,
        unroll: usize,
        lo: ir::Value,
        hi: ir::Value,
        folds: &[ir::Value],
    ) -> Result<ir::Value> {
        let step = (shape.lanes * unroll) as i64;
        let (head, exit) = (self.b.create_block(), self.b.create_block());
        let var = self.b.append_block_param(head, types::I64);
        let left = self.b.append_block_param(exit, types::I64);
        let last = self.b.ins().iadd_imm_s(hi, 1 - step);
        let some = self.b.ins().icmp(IntCC::SignedLessThan, lo, last);
        self.b.ins().brif(some, head, &[lo.into()], exit, &[lo.into()]);
        self.b.switch_to_block(head);
        self.define(l.var, var);
        for copy in 0..unroll {
            let width = Width { lanes: shape.lanes };
            let mut v =
                Vectors { width, shape, var: l.var, shift: copy * shape.lanes, held: FxHashMap::default(), e: self };
            v.body(&l.body)?;
            for (f, lanes) in l.folds.iter().zip(folds) {
                v.fold(f, *lanes, var)?;
            }
        }
        let after = self.b.ins().iadd_imm_s(var, step);
        let more = self.b.ins().icmp(IntCC::SignedLessThan, after, last);
        self.b.ins().brif(more, head, &[after.into()], exit, &[after.into()]);
        self.b.seal_block(head);
        self.b.seal_block(exit);
        self.b.switch_to_block(exit);
        Ok(left)
    }
}

/// Where the lanes of an access lie.
enum Pattern {
    /// One behind the other.
    Contiguous,
    /// One before the other.
    Reversed,
    /// This many elements apart.
    Strided(Int),
    /// Anywhere.
    Scattered,
}

/// One copy of a loop's body.
struct Vectors<'x, 'a, 'f> {
    e: &'x mut Emitter<'a, 'f>,
    width: Width,
    shape: &'x Shape,
    /// The counter. As a scalar it is the iteration of the first lane of the first copy.
    var: Value,
    /// How many iterations this copy is further.
    shift: usize,
    held: FxHashMap<Value, Lanes>,
}

impl<'a> Vectors<'_, 'a, '_> {
    fn body(&mut self, body: &'a [Stmt]) -> Result<()> {
        body.iter().try_for_each(|s| self.statement(s))
    }

    fn varying(&self, v: Value) -> bool {
        self.shape.varying.contains(&v)
    }

    fn operand(&mut self, v: Value) -> Operand {
        if !self.varying(v) {
            return Operand::Uniform(self.e.get(v));
        }
        if let Some(lanes) = self.held.get(&v) {
            return Operand::Varying(lanes.clone());
        }
        // The counter itself.
        let first = self.e.get(self.var);
        let first = self.e.b.ins().splat(types::I64X2, first);
        let parts = (0..self.width.parts(8)).map(|p| {
            let bytes = (0..2).flat_map(|l| ((self.shift + 2 * p + l) as i64).to_le_bytes()).collect();
            let steps = literal(self.e, types::I64X2, bytes);
            self.e.b.ins().iadd(first, steps)
        });
        Operand::Varying(Lanes { size: 8, parts: parts.collect() })
    }

    /// A lane of a value as a scalar.
    fn lane(&mut self, v: Value, lane: usize) -> ir::Value {
        if v == self.var {
            let first = self.e.get(v);
            return self.e.b.ins().iadd_imm_s(first, (self.shift + lane) as i64);
        }
        let (ty, x) = (self.e.ty(v), self.operand(v));
        self.width.lane(self.e, ty, &x, lane)
    }

    fn statement(&mut self, s: &'a Stmt) -> Result<()> {
        match s {
            Stmt::Let(v, _) if !self.varying(*v) => self.e.statement(s),
            Stmt::Let(v, e) => {
                let lanes = match e {
                    Expr::Op(op, args) => {
                        let types: SmallVec<[Ty; 3]> = args.iter().map(|a| self.e.ty(*a)).collect();
                        let args: SmallVec<[Operand; 3]> = args.iter().map(|a| self.operand(*a)).collect();
                        self.width.operation(self.e, *op, &types, &args)?
                    }
                    Expr::Load(b, at) => self.load(*b, at),
                    // invariant: constants and sizes do not vary.
                    Expr::Const(_) | Expr::Size(_) => return self.e.statement(s),
                };
                self.held.insert(*v, lanes);
                Ok(())
            }
            Stmt::Store { buffer, at, value } => {
                self.store(*buffer, at, *value);
                Ok(())
            }
            Stmt::Loop(l) => self.serial(l),
            // invariant: the verifier lets nothing else stand in a loop of lanes.
            _ => Ok(()),
        }
    }

    /// A serial loop, the same in all lanes but for what it carries.
    fn serial(&mut self, l: &'a Loop) -> Result<()> {
        let hi = self.e.int(l.count);
        let lo = self.e.i64(0);
        let carried: Vec<(Ty, bool)> = l.carried.iter().map(|c| (self.e.ty(c.param), self.varying(c.param))).collect();
        let (head, exit) = (self.e.b.create_block(), self.e.b.create_block());
        let var = self.e.b.append_block_param(head, types::I64);
        for (ty, varying) in &carried {
            let (ty, n) = if *varying { lanes::carried_type(self.width, *ty) } else { (machine_type(*ty), 1) };
            for _ in 0..n {
                self.e.b.append_block_param(head, ty);
                self.e.b.append_block_param(exit, ty);
            }
        }
        let inits = self.arguments(&carried, l.carried.iter().map(|c| c.init));
        let some = self.e.b.ins().icmp(IntCC::SignedLessThan, lo, hi);
        let first: Vec<BlockArg> = std::iter::once(lo.into()).chain(inits.iter().copied()).collect();
        self.e.b.ins().brif(some, head, &first, exit, &inits);
        self.e.b.switch_to_block(head);
        self.e.define(l.var, var);
        let params = self.e.b.block_params(head)[1..].to_vec();
        self.bind(&carried, l.carried.iter().map(|c| c.param), &params);
        self.body(&l.body)?;
        let nexts = self.arguments(&carried, l.carried.iter().map(|c| c.next));
        let after = self.e.b.ins().iadd_imm_s(var, 1);
        let more = self.e.b.ins().icmp(IntCC::SignedLessThan, after, hi);
        let again: Vec<BlockArg> = std::iter::once(after.into()).chain(nexts.iter().copied()).collect();
        self.e.b.ins().brif(more, head, &again, exit, &nexts);
        self.e.b.seal_block(head);
        self.e.b.seal_block(exit);
        self.e.b.switch_to_block(exit);
        let results = self.e.b.block_params(exit).to_vec();
        self.bind(&carried, l.carried.iter().map(|c| c.result), &results);
        Ok(())
    }

    /// Values as arguments of a block: vectors where what is carried varies.
    fn arguments(&mut self, carried: &[(Ty, bool)], values: impl Iterator<Item = Value>) -> Vec<BlockArg> {
        let mut out = Vec::new();
        for ((ty, varying), v) in carried.iter().zip(values) {
            let x = self.operand(v);
            match (x, varying) {
                (Operand::Uniform(x), false) => out.push(x.into()),
                (x, _) => {
                    let mut lanes = self.width.spread(self.e, *ty, &x);
                    if *ty == Ty::Bool {
                        lanes = self.width.mask_to(self.e, lanes, self.width.mask());
                    }
                    out.extend(lanes.parts.iter().map(|p| BlockArg::from(*p)));
                }
            }
        }
        out
    }

    /// Parameters of a block as values.
    fn bind(&mut self, carried: &[(Ty, bool)], values: impl Iterator<Item = Value>, mut params: &[ir::Value]) {
        for ((ty, varying), v) in carried.iter().zip(values) {
            let n = if *varying { lanes::carried_type(self.width, *ty).1 } else { 1 };
            let (own, rest) = params.split_at(n);
            params = rest;
            if *varying {
                let size = if *ty == Ty::Bool { self.width.mask() } else { ty.size() };
                self.held.insert(v, Lanes { size, parts: own.into() });
            } else {
                self.e.define(v, own[0]);
            }
        }
    }

    fn pattern(&self, at: &Index) -> Pattern {
        self.shape.pattern(self.var, at)
    }

    /// The address of the first lane of this copy, where strides are the same for all lanes.
    fn first(&mut self, b: Buffer, at: &Index) -> (ir::Value, i32) {
        let mut at = at.clone();
        match at.stride(self.var) {
            Int::Const(s) => {
                at.offset += s * self.shift as i64;
                self.e.address(b, &at)
            }
            Int::Value(s) => {
                let (address, offset) = self.e.address(b, &at);
                let size = self.e.module().buffers[b.index()].ty.size();
                let s = self.e.get(s);
                let further = self.e.b.ins().imul_imm_s(s, (self.shift * size) as i64);
                (self.e.b.ins().iadd(address, further), offset)
            }
        }
    }

    /// The addresses of all lanes.
    fn addresses(&mut self, b: Buffer, at: &Index, pattern: &Pattern) -> Vec<(ir::Value, i32)> {
        let size = self.e.module().buffers[b.index()].ty.size() as i64;
        match pattern {
            Pattern::Scattered => {
                let (same, apart): (Vec<_>, Vec<_>) =
                    at.terms.iter().partition(|(v, s)| !self.varying(*v) && !self.varying_int(*s));
                let (address, offset) =
                    self.e.address(b, &Index { offset: at.offset, terms: same.into(), means: at.means });
                (0..self.width.lanes)
                    .map(|lane| {
                        let mut address = address;
                        for (v, stride) in &apart {
                            let v = self.lane(*v, lane);
                            let by = match stride {
                                Int::Const(s) => self.e.b.ins().imul_imm_s(v, s * size),
                                Int::Value(s) => {
                                    let s = self.lane(*s, lane);
                                    let by = self.e.b.ins().imul(v, s);
                                    self.e.b.ins().imul_imm_s(by, size)
                                }
                            };
                            address = self.e.b.ins().iadd(address, by);
                        }
                        (address, offset)
                    })
                    .collect()
            }
            Pattern::Strided(Int::Value(stride)) => {
                let (mut address, offset) = self.first(b, at);
                let stride = self.e.get(*stride);
                let stride = self.e.b.ins().imul_imm_s(stride, size);
                let mut out = vec![(address, offset)];
                while out.len() < self.width.lanes {
                    address = self.e.b.ins().iadd(address, stride);
                    out.push((address, offset));
                }
                out
            }
            pattern => {
                let stride = match pattern {
                    Pattern::Strided(Int::Const(s)) => *s,
                    Pattern::Reversed => -1,
                    _ => 1,
                };
                let (address, offset) = self.first(b, at);
                (0..self.width.lanes as i64)
                    .map(|lane| match i32::try_from(i64::from(offset) + lane * stride * size) {
                        Ok(offset) => (address, offset),
                        Err(_) => (self.e.b.ins().iadd_imm_s(address, lane * stride * size), offset),
                    })
                    .collect()
            }
        }
    }

    fn varying_int(&self, i: Int) -> bool {
        matches!(i, Int::Value(v) if self.varying(v))
    }

    fn load(&mut self, b: Buffer, at: &Index) -> Lanes {
        let ty = self.e.module().buffers[b.index()].ty;
        let pattern = self.pattern(at);
        let held = match pattern {
            Pattern::Contiguous => {
                let (address, offset) = self.first(b, at);
                self.load_row(ty, address, offset)
            }
            Pattern::Reversed => {
                let last = self.addresses(b, at, &pattern)[self.width.lanes - 1];
                let lanes = self.load_row(ty, last.0, last.1);
                self.reverse(ty, lanes)
            }
            _ => {
                let scalars: Vec<ir::Value> = self
                    .addresses(b, at, &pattern)
                    .into_iter()
                    .map(|(address, offset)| self.e.b.ins().load(machine_type(ty), flags(), address, offset))
                    .collect();
                return self.width.gather(self.e, ty, &scalars);
            }
        };
        if ty == Ty::Bool { self.width.truths(self.e, &held) } else { held }
    }

    /// Lanes that lie one behind the other. Bools stay bytes.
    fn load_row(&mut self, ty: Ty, address: ir::Value, offset: i32) -> Lanes {
        let size = ty.size();
        let bytes = self.width.lanes * size;
        let vector = if ty == Ty::Bool { types::I8X16 } else { vector_type(ty) };
        let b = &mut self.e.b;
        let parts = if bytes >= BYTES {
            (0..bytes / BYTES).map(|p| b.ins().load(vector, flags(), address, offset + (p * BYTES) as i32)).collect()
        } else {
            let word = b.ins().load(lanes::word(bytes), flags(), address, offset);
            let (word, held) = match bytes {
                2 => (b.ins().uextend(types::I32, word), types::I32X4),
                bytes => (word, integers(bytes)),
            };
            let v = b.ins().scalar_to_vector(held, word);
            std::iter::once(vector::cast(self.e, vector, v)).collect()
        };
        Lanes { size, parts }
    }

    fn store(&mut self, b: Buffer, at: &Index, value: Value) {
        let ty = self.e.ty(value);
        let pattern = self.pattern(at);
        let x = self.operand(value);
        if !matches!(pattern, Pattern::Contiguous | Pattern::Reversed) {
            let places = self.addresses(b, at, &pattern);
            for (lane, (address, offset)) in places.into_iter().enumerate() {
                let v = self.width.lane(self.e, ty, &x, lane);
                self.e.b.ins().store(flags(), v, address, offset);
            }
            return;
        }
        let mut lanes = self.width.spread(self.e, ty, &x);
        if ty == Ty::Bool {
            lanes = self.width.bytes(self.e, lanes);
        }
        let (address, offset) = match pattern {
            Pattern::Reversed => {
                lanes = self.reverse(ty, lanes);
                self.addresses(b, at, &pattern)[self.width.lanes - 1]
            }
            _ => self.first(b, at),
        };
        self.store_row(ty, &lanes, address, offset);
    }

    fn store_row(&mut self, ty: Ty, lanes: &Lanes, address: ir::Value, offset: i32) {
        let bytes = self.width.lanes * ty.size();
        if bytes >= BYTES {
            for (p, v) in lanes.parts.iter().enumerate() {
                self.e.b.ins().store(flags(), *v, address, offset + (p * BYTES) as i32);
            }
        } else {
            let v = vector::cast(self.e, integers(bytes), lanes.parts[0]);
            let word = self.e.b.ins().extractlane(v, 0);
            self.e.b.ins().store(flags(), word, address, offset);
        }
    }

    /// The last lane first.
    fn reverse(&mut self, ty: Ty, lanes: Lanes) -> Lanes {
        let size = lanes.size;
        let each = (BYTES / size).min(self.width.lanes);
        let vector = if ty == Ty::Bool { types::I8X16 } else { vector_type(ty) };
        let byte = |i: usize| (each - 1).saturating_sub(i / size) * size + i % size;
        let parts = lanes.parts.iter().rev().map(|p| shuffle(self.e, vector, *p, *p, byte));
        Lanes { size, parts: parts.collect() }
    }

    /// Takes the lanes of this copy into those of a fold, which lie in memory.
    fn fold(&mut self, f: &Fold, lanes: ir::Value, var: ir::Value) -> Result<()> {
        let ty = self.e.ty(f.value);
        // Bools are bytes in memory, and `and` and `or` of bytes 0 and 1 are what they are of bools.
        let held = if ty == Ty::Bool { Ty::U8 } else { ty };
        let at = self.e.b.ins().band_imm_s(var, LANES as i64 - 1);
        let at = self.e.b.ins().imul_imm_s(at, ty.size() as i64);
        let at = self.e.b.ins().iadd(lanes, at);
        let offset = (self.shift * ty.size()) as i32;
        let old = self.load_row(held, at, offset);
        let x = self.operand(f.value);
        let mut x = self.width.spread(self.e, ty, &x);
        if ty == Ty::Bool {
            x = self.width.bytes(self.e, x);
        }
        let args = [Operand::Varying(old), Operand::Varying(x)];
        let new = self.width.operation(self.e, f.op.op(), &[held, held], &args)?;
        self.store_row(held, &new, at, offset);
        Ok(())
    }
}

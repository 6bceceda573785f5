//! Kernels: the vector language, in vectors of 128 bits.
//!
//! Lanes of wide types take several vectors, those of narrow ones a part of one. What is the same in all lanes stays a scalar.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, BlockArg, InstBuilder, MemFlagsData, types};
use smallvec::SmallVec;

use super::emit::{Emitter, field};
use super::simd::{self, BYTES, Held, Operand, Width, integers, literal, shuffle, type_of};
use super::{Simd, machine_type, scalar};
use crate::error::{Result, fail};
use crate::ir::{Buffer, Carried, Index, Int, Kernel, LANES, Ty, Value};
use crate::vector::{self, Access, Code, Expr, Loop, Machine, Memory, Rest, Spread, Stmt, vectorize};

/// Vectors may lie anywhere.
fn flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

/// What kernels are vectorized for.
pub fn machine(simd: Simd) -> Machine {
    Machine {
        bytes: if simd == Simd::Never { 0 } else { BYTES },
        registers: if cfg!(target_arch = "aarch64") { 32 } else { 16 },
        even: false,
        masks: false,
        rest: Rest::Serial,
        short: [16, 32],
        once: usize::MAX,
        repeated: 64,
        native: (simd == Simd::Worthwhile).then_some(simd::native),
    }
}

impl Emitter<'_, '_> {
    /// A kernel as a function of context, env, lo and hi.
    pub fn kernel(&mut self, k: &Kernel, params: &[ir::Value]) -> Result<()> {
        let code = vectorize(self.module(), k, &machine(self.shared.simd));
        let (env, flags) = (params[1], MemFlagsData::trusted());
        let mut w = Kernels { held: vec![None; code.types.len()], code: &code, locals: Vec::new(), e: self };
        w.buffers();
        for ty in &code.locals {
            let slot = w.e.stack((LANES * ty.size()) as u32);
            let at = w.e.b.ins().stack_addr(types::I64, slot, 0);
            w.locals.push(at);
        }
        for (i, v) in code.inputs.iter().enumerate() {
            let value = w.e.b.ins().load(machine_type(code.ty(*v)), flags, env, i as i32 * 8);
            w.set(*v, value);
        }
        if let Some((lo, hi)) = code.range {
            w.set(lo, params[2]);
            w.set(hi, params[3]);
        }
        w.block(&code.body)?;
        for (i, v) in code.outputs.iter().enumerate() {
            let value = w.scalar(*v);
            w.e.b.ins().store(flags, value, env, (code.inputs.len() + i) as i32 * 8);
        }
        self.b.ins().return_(&[]);
        Ok(())
    }
}

/// One kernel on its way into Cranelift.
struct Kernels<'x, 'a, 'f> {
    e: &'x mut Emitter<'a, 'f>,
    code: &'x Code,
    held: Vec<Option<Operand>>,
    /// Where the arrays of the kernel's own are.
    locals: Vec<ir::Value>,
}

impl Kernels<'_, '_, '_> {
    /// Reads the addresses of the buffers that the kernel uses.
    fn buffers(&mut self) {
        fn of(body: &[Stmt], out: &mut Vec<Buffer>) {
            for s in body {
                match s {
                    Stmt::Let(_, Expr::Load(Access { memory: Memory::Buffer(b), .. }))
                    | Stmt::Store(Access { memory: Memory::Buffer(b), .. }, _) => out.push(*b),
                    Stmt::Loop(l) => of(&l.body, out),
                    _ => {}
                }
            }
        }
        let mut used = Vec::new();
        of(&self.code.body, &mut used);
        used.sort();
        used.dedup();
        let table = self.e.table();
        for b in used {
            let pointer = self.e.b.ins().load(types::I64, self.e.of_table, table, b.0 as i32 * 8);
            self.e.pointers.push((b, pointer));
        }
    }

    fn set(&mut self, v: Value, to: ir::Value) {
        self.held[v.index()] = Some(Operand::Uniform(to));
    }

    fn operand(&self, v: Value) -> Operand {
        // invariant: the vectorizer defines values before it uses them.
        self.held[v.index()].clone().unwrap()
    }

    fn scalar(&mut self, v: Value) -> ir::Value {
        let (ty, x) = (self.code.ty(v), self.operand(v));
        Width { lanes: 1 }.lane(self.e, ty, &x, 0)
    }

    fn int(&mut self, i: Int) -> ir::Value {
        match i {
            Int::Const(n) => self.e.i64(n),
            Int::Value(v) => self.scalar(v),
        }
    }

    /// The lanes of a value; 1: it is a scalar here, though it may be the last lane of a fold.
    fn width(&self, v: Value) -> Width {
        Width { lanes: usize::from(self.code.shape(v).lanes) }
    }

    fn block(&mut self, body: &[Stmt]) -> Result<()> {
        body.iter().try_for_each(|s| match s {
            Stmt::Let(v, e) => {
                let made = self.expression(*v, e)?;
                self.held[v.index()] = Some(made);
                Ok(())
            }
            Stmt::Store(access, v) => {
                self.store(access, *v);
                Ok(())
            }
            Stmt::Loop(l) => self.loop_(l),
            Stmt::Main(_) => fail!(Rule, "a kernel has a step of a main body"),
        })
    }

    fn expression(&mut self, v: Value, e: &Expr) -> Result<Operand> {
        let (ty, width) = (self.code.ty(v), self.width(v));
        Ok(match e {
            Expr::Const(bits) => Operand::Uniform(self.e.constant(ty, *bits)),
            Expr::Size(i) => {
                let flags = MemFlagsData::trusted().with_readonly();
                let table = self.e.b.ins().load(types::I64, flags, self.e.context, field::SIZES);
                Operand::Uniform(self.e.b.ins().load(types::I64, flags, table, *i as i32 * 8))
            }
            Expr::Op(op, args) => {
                let types: SmallVec<[Ty; 3]> = args.iter().map(|a| self.code.ty(*a)).collect();
                if width.lanes == 1 {
                    let args: SmallVec<[ir::Value; 3]> = args.iter().map(|a| self.scalar(*a)).collect();
                    return Ok(Operand::Uniform(scalar::operation(self.e, *op, &types, &args)?));
                }
                let args: SmallVec<[Operand; 3]> = args.iter().map(|a| self.operand(*a)).collect();
                Operand::Varying(width.operation(self.e, *op, &types, &args)?)
            }
            Expr::Load(access) => self.load(access, ty),
            Expr::Ramp(from, by) => {
                let (size, each) = (ty.size(), BYTES / ty.size());
                let number = |l: usize| from.wrapping_add(by.wrapping_mul(l as i64)).to_le_bytes();
                let part = |p: usize| (0..each).flat_map(|l| number(p * each + l).into_iter().take(size)).collect();
                let parts = (0..width.parts(size)).map(|p| literal(self.e, type_of(ty), part(p)));
                Operand::Varying(Held { size, parts: parts.collect() })
            }
            Expr::Half(of, upper) => self.half(*of, *upper, width),
            Expr::First(of) => Operand::Uniform(self.scalar(*of)),
            // invariant: what is left over runs one after the other, so all lanes are active.
            Expr::Active(_) => Operand::Uniform(self.e.constant(Ty::Bool, 1)),
        })
    }

    /// The upper or lower half of a vector.
    fn half(&mut self, of: Value, upper: bool, half: Width) -> Operand {
        let (ty, x) = (self.code.ty(of), self.operand(of));
        let first = if upper { half.lanes } else { 0 };
        if half.lanes == 1 {
            return Operand::Uniform(self.width(of).lane(self.e, ty, &x, first));
        }
        let Held { size, parts } = self.width(of).spread(self.e, ty, &x);
        let n = half.parts(size);
        let parts = match (parts.len() > 1, upper) {
            (true, false) => parts[..n].into(),
            (true, true) => parts[n..].into(),
            (false, false) => parts,
            (false, true) => {
                let by = half.lanes * size;
                std::iter::once(shuffle(self.e, type_of(ty), parts[0], parts[0], |i| (i + by) % BYTES)).collect()
            }
        };
        Operand::Varying(Held { size, parts })
    }

    fn loop_(&mut self, l: &Loop) -> Result<()> {
        let (lo, hi) = (self.int(l.from), self.int(l.to));
        let (head, exit) = (self.e.b.create_block(), self.e.b.create_block());
        let var = self.e.b.append_block_param(head, types::I64);
        let left = self.e.b.append_block_param(exit, types::I64);
        for c in &l.carried {
            let (ty, n) = self.carried_type(c);
            for _ in 0..n {
                self.e.b.append_block_param(head, ty);
                self.e.b.append_block_param(exit, ty);
            }
        }
        let inits = self.arguments(&l.carried, |c| c.init);
        let first: Vec<BlockArg> = std::iter::once(lo.into()).chain(inits).collect();
        let some = self.e.b.ins().icmp(IntCC::SignedLessThan, lo, hi);
        self.e.b.ins().brif(some, head, &first, exit, &first);
        self.e.b.switch_to_block(head);
        self.set(l.var, var);
        let params = self.e.b.block_params(head)[1..].to_vec();
        self.bind(&l.carried, |c| c.param, &params);
        self.block(&l.body)?;
        let nexts = self.arguments(&l.carried, |c| c.next);
        let after = self.e.b.ins().iadd_imm_s(var, l.step);
        let more = self.e.b.ins().icmp(IntCC::SignedLessThan, after, hi);
        let again: Vec<BlockArg> = std::iter::once(after.into()).chain(nexts).collect();
        self.e.b.ins().brif(more, head, &again, exit, &again);
        self.e.b.seal_block(head);
        self.e.b.seal_block(exit);
        self.e.b.switch_to_block(exit);
        let results = self.e.b.block_params(exit)[1..].to_vec();
        self.bind(&l.carried, |c| c.result, &results);
        l.left.into_iter().for_each(|v| self.set(v, left));
        Ok(())
    }

    /// The machine type of a carried value, with how many there are.
    fn carried_type(&self, c: &Carried) -> (ir::Type, usize) {
        let (ty, width) = (self.code.ty(c.param), self.width(c.param));
        match ty {
            ty if width.lanes == 1 => (machine_type(ty), 1),
            Ty::Bool => (integers(width.mask()), width.parts(width.mask())),
            ty => (type_of(ty), width.parts(ty.size())),
        }
    }

    /// Values as arguments of a block: vectors where what is carried is one.
    fn arguments(&mut self, carried: &[Carried], of: impl Fn(&Carried) -> Value) -> Vec<BlockArg> {
        let mut out = Vec::new();
        for c in carried {
            let (ty, width) = (self.code.ty(c.param), self.width(c.param));
            if width.lanes == 1 {
                out.push(self.scalar(of(c)).into());
                continue;
            }
            let x = self.operand(of(c));
            let mut lanes = width.spread(self.e, ty, &x);
            if ty == Ty::Bool {
                lanes = width.mask_to(self.e, lanes, width.mask());
            }
            out.extend(lanes.parts.iter().map(|p| BlockArg::from(*p)));
        }
        out
    }

    /// Parameters of a block as values.
    fn bind(&mut self, carried: &[Carried], of: impl Fn(&Carried) -> Value, mut params: &[ir::Value]) {
        for c in carried {
            let (own, rest) = params.split_at(self.carried_type(c).1);
            params = rest;
            let (ty, width) = (self.code.ty(c.param), self.width(c.param));
            self.held[of(c).index()] = Some(match width.lanes {
                1 => Operand::Uniform(own[0]),
                _ => {
                    let size = if ty == Ty::Bool { width.mask() } else { ty.size() };
                    Operand::Varying(Held { size, parts: own.into() })
                }
            });
        }
    }

    /// The address of the first element, with what is left to add in the instruction.
    fn address(&mut self, memory: Memory, at: &Index, ty: Ty) -> (ir::Value, i32) {
        let size = ty.size() as i64;
        let mut address = match memory {
            Memory::Buffer(b) => self.e.pointer(b),
            Memory::Local(n) => self.locals[n as usize],
        };
        // Outer counters first: their sum does not change in the inner loops.
        let mut terms = at.terms.clone();
        terms.sort_by_key(|(v, _)| v.0);
        for (v, stride) in terms {
            let v = self.scalar(v);
            let by = self.times(v, stride, size);
            address = self.e.b.ins().iadd(address, by);
        }
        match i32::try_from(at.offset.wrapping_mul(size)) {
            Ok(offset) => (address, offset),
            Err(_) => (self.e.b.ins().iadd_imm_s(address, at.offset.wrapping_mul(size)), 0),
        }
    }

    /// A number of strides in bytes.
    fn times(&mut self, v: ir::Value, stride: Int, size: i64) -> ir::Value {
        match stride {
            Int::Const(s) if s.wrapping_mul(size) == 1 => v,
            Int::Const(s) => self.e.b.ins().imul_imm_s(v, s.wrapping_mul(size)),
            Int::Value(s) => {
                let s = self.scalar(s);
                let term = self.e.b.ins().imul(v, s);
                self.e.b.ins().imul_imm_s(term, size)
            }
        }
    }

    /// The addresses of all lanes.
    fn addresses(&mut self, access: &Access, lanes: &vector::Lanes, ty: Ty) -> Vec<(ir::Value, i32)> {
        let (size, n) = (ty.size() as i64, usize::from(lanes.shape.lanes));
        let (address, offset) = self.address(access.memory, &access.at, ty);
        match lanes.spread {
            Spread::Scattered(by) => {
                let x = self.operand(by);
                (0..n)
                    .map(|lane| {
                        let by = Width { lanes: n }.lane(self.e, Ty::I64, &x, lane);
                        let by = self.e.b.ins().imul_imm_s(by, size);
                        (self.e.b.ins().iadd(address, by), offset)
                    })
                    .collect()
            }
            Spread::Strided(Int::Value(by)) => {
                let by = self.scalar(by);
                let by = self.e.b.ins().imul_imm_s(by, size);
                let mut out = vec![(address, offset)];
                while out.len() < n {
                    let address = self.e.b.ins().iadd(out[out.len() - 1].0, by);
                    out.push((address, offset));
                }
                out
            }
            Spread::Strided(Int::Const(by)) => (0..n as i64)
                .map(|lane| match i32::try_from(i64::from(offset) + lane * by * size) {
                    Ok(offset) => (address, offset),
                    Err(_) => (self.e.b.ins().iadd_imm_s(address, lane * by * size), offset),
                })
                .collect(),
        }
    }

    fn load(&mut self, access: &Access, ty: Ty) -> Operand {
        let Some(lanes) = &access.lanes else {
            let (address, offset) = self.address(access.memory, &access.at, ty);
            return Operand::Uniform(self.e.b.ins().load(machine_type(ty), flags(), address, offset));
        };
        let width = Width { lanes: usize::from(lanes.shape.lanes) };
        let places = self.addresses(access, lanes, ty);
        let held = match lanes.spread {
            Spread::Strided(Int::Const(1)) => self.load_row(width, ty, places[0]),
            Spread::Strided(Int::Const(-1)) => {
                let lanes = self.load_row(width, ty, places[width.lanes - 1]);
                self.reverse(width, ty, lanes)
            }
            _ => {
                let load = |(address, offset): &(ir::Value, i32)| {
                    self.e.b.ins().load(machine_type(ty), flags(), *address, *offset)
                };
                let scalars: Vec<ir::Value> = places.iter().map(load).collect();
                return Operand::Varying(width.gather(self.e, ty, &scalars));
            }
        };
        Operand::Varying(if ty == Ty::Bool { width.truths(self.e, &held) } else { held })
    }

    /// Lanes that lie one behind the other. Bools stay bytes.
    fn load_row(&mut self, width: Width, ty: Ty, (address, offset): (ir::Value, i32)) -> Held {
        let size = ty.size();
        let bytes = width.lanes * size;
        let vector = if ty == Ty::Bool { types::I8X16 } else { type_of(ty) };
        let b = &mut self.e.b;
        let parts = if bytes >= BYTES {
            (0..bytes / BYTES).map(|p| b.ins().load(vector, flags(), address, offset + (p * BYTES) as i32)).collect()
        } else {
            let word = b.ins().load(simd::word(bytes), flags(), address, offset);
            let (word, held) = match bytes {
                2 => (b.ins().uextend(types::I32, word), types::I32X4),
                bytes => (word, integers(bytes)),
            };
            let v = b.ins().scalar_to_vector(held, word);
            std::iter::once(simd::cast(self.e, vector, v)).collect()
        };
        Held { size, parts }
    }

    fn store(&mut self, access: &Access, value: Value) {
        let ty = self.code.ty(value);
        let Some(lanes) = &access.lanes else {
            let v = self.scalar(value);
            let (address, offset) = self.address(access.memory, &access.at, ty);
            self.e.b.ins().store(flags(), v, address, offset);
            return;
        };
        let width = Width { lanes: usize::from(lanes.shape.lanes) };
        let x = self.operand(value);
        let places = self.addresses(access, lanes, ty);
        let near = matches!(lanes.spread, Spread::Strided(Int::Const(1 | -1)));
        if !near {
            for (lane, (address, offset)) in places.into_iter().enumerate() {
                let v = width.lane(self.e, ty, &x, lane);
                self.e.b.ins().store(flags(), v, address, offset);
            }
            return;
        }
        let mut held = width.spread(self.e, ty, &x);
        if ty == Ty::Bool {
            held = width.bytes(self.e, held);
        }
        match lanes.spread {
            Spread::Strided(Int::Const(-1)) => {
                held = self.reverse(width, ty, held);
                self.store_row(width, ty, &held, places[width.lanes - 1]);
            }
            _ => self.store_row(width, ty, &held, places[0]),
        }
    }

    fn store_row(&mut self, width: Width, ty: Ty, held: &Held, (address, offset): (ir::Value, i32)) {
        let bytes = width.lanes * ty.size();
        if bytes >= BYTES {
            for (p, v) in held.parts.iter().enumerate() {
                self.e.b.ins().store(flags(), *v, address, offset + (p * BYTES) as i32);
            }
        } else {
            let v = simd::cast(self.e, integers(bytes), held.parts[0]);
            let word = self.e.b.ins().extractlane(v, 0);
            self.e.b.ins().store(flags(), word, address, offset);
        }
    }

    /// The last lane first.
    fn reverse(&mut self, width: Width, ty: Ty, held: Held) -> Held {
        let size = held.size;
        let each = (BYTES / size).min(width.lanes);
        let vector = if ty == Ty::Bool { types::I8X16 } else { type_of(ty) };
        let byte = |i: usize| (each - 1).saturating_sub(i / size) * size + i % size;
        let parts = held.parts.iter().rev().map(|p| shuffle(self.e, vector, *p, *p, byte));
        Held { size, parts: parts.collect() }
    }
}

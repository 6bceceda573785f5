//! From the vector language to machine instructions: where values live, constants, and loops.
//!
//! Scalars that are 64-bit integers or bools (0 or -1) are in general registers, all other scalars in all lanes of a vector register, so that scalar
//! code is the same instructions as vector code. A vector is in as many registers as its shape says; a vector of bools is a mask register or, with
//! AVX2, a vector of masks for each of them.
//!
//! Code is made for the place where it stands and, for what does not change in a loop (addresses, constants, broadcasts),
//! for the place before that loop. Level 0 is the kernel itself, level n the body of the n-th loop around.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::Isa;
use super::address::Families;
use super::bounded::Bounded;
use super::encode::{Cond, Enc, Label, Len};
use super::fill::Filled;
use super::held::Held;
use super::lir::{Alu, Class, Function, Info, Inst, Mem, Reg, Ri, Rm, Size, Test, Unary};
use super::opcodes as op;
use super::small::{is_small, lane_bits, lane_type};
use crate::ir::{Buffer, Carried, Int, Op, Ty, Value};
use crate::vector::{Access, Code, Expr, Loop, Shape, Stmt, each_use};

/// The most registers of a vector.
pub(super) const TOGETHER: usize = 4;

/// Where a value is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Val {
    /// Nowhere yet.
    Unset,
    /// Known.
    Const(u64),
    /// A scalar in a general register.
    General(Reg),
    /// A scalar in all lanes.
    Uniform(Reg),
    /// A vector.
    Lanes([Reg; TOGETHER]),
}

/// What is made once for a level.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Once {
    Buffer(u32),
    Buffers,
    Sizes,
    Size(u32),
    General(i64),
    Pool(u32),
    /// A scalar in all lanes.
    Vector(Value),
    /// A scalar bool as a mask.
    Mask(Value),
    /// The mask of a comparison of scalars of so many bytes, which its bool was made of.
    Compared(Value, usize),
    /// The address of the sum of terms in a buffer.
    Address(u32, SmallVec<[(Value, Int); 3]>),
    /// A value times a stride.
    Scaled(Value, Int),
    /// The low bits set, as many as a number says.
    Bits(Int),
    /// Which lanes of a register are among the first so many: where its lanes begin, and their bytes.
    Active(Int, usize, u8),
}

/// The code of a level.
#[derive(Default)]
pub(super) struct Scope {
    /// Before the loop: belongs to the level below.
    pub pre: Vec<Inst>,
    pub body: Vec<Inst>,
    /// At the end of each iteration.
    pub bumps: Vec<Inst>,
    pub cache: FxHashMap<Once, Reg>,
    /// The counter of a serial loop, and where it starts (None: 0).
    pub var: Option<(Value, Option<Reg>)>,
}

pub(super) struct Select<'a> {
    pub code: &'a Code,
    pub isa: Isa,
    pub f: Function,
    pub values: Vec<Val>,
    pub levels: Vec<u32>,
    pub scopes: Vec<Scope>,
    /// Where values that go around a loop are made: in the registers of those before them.
    forced: FxHashMap<Value, Val>,
    /// Loads that were made with others before.
    pub ready: FxHashSet<Value>,
    constants: FxHashMap<Vec<u8>, u32>,
    /// Constants in all lanes, by their bits and size: most are asked for many times.
    splats: FxHashMap<(u64, usize), Reg>,
    pub context: Reg,
    /// The comparison of scalars that was just made: its mask, and the bytes of what it compares.
    pub compared: Option<(Reg, usize)>,
    /// Buffers whose addresses change while the function runs.
    pub swapped: Option<&'a FxHashSet<Buffer>>,
    /// The vector that is made now, if it is one, and which of its registers.
    pub now: Option<Shape>,
    pub part: usize,
    /// Only so many of its lanes are loaded or stored.
    pub active: Option<Int>,
    /// The comparisons that bools in general registers are made by.
    pub tests: FxHashMap<Value, Test>,
    /// Where values were read since something was last written.
    pub read: FxHashMap<Value, Access>,
    /// Places that share a pointer.
    pub families: Families,
    /// Indices that were held in range.
    pub held: Held,
    /// How large floats can be.
    pub bounded: Bounded,
    /// How often each value is used.
    pub used: Vec<u32>,
    /// What is known to hold where code is made.
    pub holds: Option<Value>,
}

/// Whether uniform values of a type are in general registers.
pub(super) fn is_general(ty: Ty) -> bool {
    matches!(ty, Ty::I64 | Ty::U64 | Ty::Bool)
}

/// The machine instructions of a kernel.
pub(super) fn select(code: &Code, isa: Isa) -> Option<Function> {
    let mut s = Select::new(code, isa);
    let (env, lo, hi) = (s.general_reg(), s.general_reg(), s.general_reg());
    s.emit(Inst::Entry { context: s.context, env, lo, hi });
    for (i, v) in code.inputs.iter().enumerate() {
        let from = Mem::at(env, 8 * i as i32);
        s.values[v.index()] = s.load_uniform(code.ty(*v), from);
    }
    if let Some((first, end)) = code.range {
        s.values[first.index()] = Val::General(lo);
        s.values[end.index()] = Val::General(hi);
    }
    s.locals();
    s.block(&code.body)?;
    for (j, v) in code.outputs.iter().enumerate() {
        let bits = s.bits(*v)?;
        s.emit(Inst::Store { size: Size::Quad, src: bits, to: Mem::at(env, 8 * (code.inputs.len() + j) as i32) });
    }
    s.finish()
}

impl<'a> Select<'a> {
    pub fn new(code: &'a Code, isa: Isa) -> Select<'a> {
        let entry = match (code.has_vectors(), isa) {
            (false, _) => 16,
            (true, Isa::Avx2) => 32,
            (true, Isa::Avx512) => 64,
        };
        let n = code.types.len();
        let mut s = Select {
            code,
            isa,
            f: Function { entry, ..Function::default() },
            values: vec![Val::Unset; n],
            levels: vec![0; n],
            scopes: vec![Scope::default()],
            forced: FxHashMap::default(),
            ready: FxHashSet::default(),
            constants: FxHashMap::default(),
            splats: FxHashMap::default(),
            context: Reg(0),
            compared: None,
            swapped: None,
            now: None,
            part: 0,
            active: None,
            tests: FxHashMap::default(),
            read: FxHashMap::default(),
            families: Families::of(code),
            held: if isa == Isa::Avx512 { Held::of(code) } else { Held::default() },
            bounded: Bounded::of(code),
            used: vec![0; n],
            holds: None,
        };
        each_use(&code.body, &mut |v| s.used[v.index()] += 1);
        code.outputs.iter().for_each(|v| s.used[v.index()] += 1);
        s.context = s.general_reg();
        s
    }

    pub fn finish(mut self) -> Option<Function> {
        let Scope { body, .. } = self.scopes.pop()?;
        self.f.code = body;
        self.f.drop_unused();
        Some(self.f)
    }
}

impl Select<'_> {
    fn reg(&mut self, class: Class, lane: u8) -> Reg {
        self.f.regs.push(Info { class, constant: None, lane });
        Reg(self.f.regs.len() as u32 - 1)
    }

    pub fn general_reg(&mut self) -> Reg {
        self.reg(Class::General, 0)
    }

    pub fn vector_reg(&mut self) -> Reg {
        self.reg(Class::Vector, 0)
    }

    /// A register for a mask of lanes of so many bytes.
    pub fn mask_reg(&mut self, lane: u8) -> Reg {
        match self.isa {
            Isa::Avx512 => self.reg(Class::Mask, 0),
            Isa::Avx2 => self.reg(Class::Vector, lane),
        }
    }

    pub fn lane_of(&self, mask: Reg) -> u8 {
        self.f.regs[mask.0 as usize].lane
    }

    pub fn label(&mut self) -> Label {
        self.f.labels += 1;
        Label(self.f.labels - 1)
    }

    /// Bytes of the frame's arrays that must be there.
    pub fn room(&mut self, bytes: usize) {
        self.f.room = self.f.room.max(bytes as u32);
    }

    /// The current level.
    pub fn level(&self) -> usize {
        self.scopes.len() - 1
    }

    pub fn emit(&mut self, inst: Inst) {
        self.emit_at(self.level(), inst);
    }

    /// Code of this level, or of one around: then it runs before the loop that leads here.
    pub fn emit_at(&mut self, level: usize, inst: Inst) {
        let top = self.level();
        match level >= top {
            true => self.scopes[top].body.push(inst),
            false => self.scopes[level + 1].pre.push(inst),
        }
    }

    /// Makes something once for a level.
    pub fn once(&mut self, level: usize, key: Once, make: impl FnOnce(&mut Self) -> (Reg, Vec<Inst>)) -> Reg {
        if let Some(r) = self.scopes[level].cache.get(&key) {
            return *r;
        }
        let (r, code) = make(self);
        code.into_iter().for_each(|i| self.emit_at(level, i));
        self.scopes[level].cache.insert(key, r);
        r
    }

    pub fn vec(&mut self, enc: Enc, len: Len, dst: Reg, a: Option<Reg>, b: impl Into<Rm>, imm: Option<u8>) {
        self.emit(Inst::Vec { enc, len, dst, a, b: b.into(), imm, mask: None });
    }

    /// A new register with the result of a vector instruction.
    pub fn made(&mut self, enc: Enc, len: Len, a: Option<Reg>, b: impl Into<Rm>, imm: Option<u8>) -> Reg {
        let dst = self.vector_reg();
        self.vec(enc, len, dst, a, b, imm);
        dst
    }

    pub fn alu(&mut self, op: Alu, dst: Reg, a: Reg, b: impl Into<Ri>) {
        self.emit(Inst::Alu { op, dst, a, b: b.into() });
    }

    /// The length of a register with elements of so many bytes, of what is made now.
    pub fn len(&self, size: usize) -> Len {
        self.now.map_or(self.whole(), |s| Len((s.width() * size).max(16) as u8))
    }

    /// Lanes of a register of what is made now.
    pub fn width(&self) -> usize {
        self.now.map_or(1, Shape::width)
    }

    /// Whether 64-bit types fill the registers of what is made now.
    pub fn wide(&self) -> bool {
        self.width() * 8 == self.f.entry
    }

    pub fn whole(&self) -> Len {
        Len(self.f.entry as u8)
    }

    /// The entry of the constants with these bytes over and over.
    pub fn pool(&mut self, pattern: &[u8]) -> u32 {
        let bytes: Vec<u8> = pattern.iter().copied().cycle().take(self.f.entry).collect();
        if let Some(entry) = self.constants.get(&bytes) {
            return *entry;
        }
        let entry = self.f.pool.len() as u32;
        self.f.pool.push(bytes.clone());
        self.constants.insert(bytes, entry);
        entry
    }

    /// A constant vector.
    pub fn pattern(&mut self, pattern: &[u8]) -> Reg {
        let entry = self.pool(pattern);
        let len = self.whole();
        self.once(0, Once::Pool(entry), |s| {
            let dst = s.vector_reg();
            s.f.regs[dst.0 as usize].constant = Some(entry);
            (
                dst,
                vec![Inst::Vec { enc: op::load(false), len, dst, a: None, b: Rm::Pool(entry), imm: None, mask: None }],
            )
        })
    }

    /// A constant in all lanes.
    pub fn splat(&mut self, bits: u64, size: usize) -> Reg {
        if let Some(r) = self.splats.get(&(bits, size)) {
            return *r;
        }
        let r = self.pattern(&bits.to_le_bytes()[..size]);
        self.splats.insert((bits, size), r);
        r
    }

    /// A 64-bit constant in a general register.
    pub fn general_const(&mut self, value: i64) -> Reg {
        self.once(0, Once::General(value), |s| {
            let dst = s.general_reg();
            (dst, vec![Inst::Const { dst, value }])
        })
    }

    pub fn const_of(&self, v: Value) -> Option<u64> {
        match self.values[v.index()] {
            Val::Const(bits) => Some(bits),
            _ => None,
        }
    }

    /// A uniform 64-bit integer or bool in a general register.
    pub fn general(&mut self, v: Value) -> Option<Reg> {
        match self.values[v.index()] {
            Val::General(r) => Some(r),
            Val::Const(bits) if self.code.ty(v) == Ty::Bool => Some(self.general_const(-i64::from(bits != 0))),
            Val::Const(bits) => Some(self.general_const(bits as i64)),
            _ => None,
        }
    }

    /// The same as an operand that may be an immediate.
    pub fn general_or_imm(&mut self, v: Value) -> Option<Ri> {
        if let (Some(bits), true) = (self.const_of(v), self.code.ty(v) != Ty::Bool)
            && let Ok(imm) = i32::try_from(bits as i64)
        {
            return Some(Ri::Imm(imm));
        }
        self.general(v).map(Ri::Reg)
    }

    /// A number that is known or in a general register.
    pub fn int(&mut self, i: Int) -> Option<Ri> {
        match i {
            Int::Const(c) => Some(match i32::try_from(c) {
                Ok(imm) => Ri::Imm(imm),
                Err(_) => Ri::Reg(self.general_const(c)),
            }),
            Int::Value(v) => self.general_or_imm(v),
        }
    }

    /// The broadcast of a general register.
    pub fn broadcast_code(&mut self, dst: Reg, src: Reg, wide: bool) -> Vec<Inst> {
        let len = self.whole();
        match self.isa {
            Isa::Avx512 => vec![Inst::ToVec { enc: op::broadcast_general(wide), len, dst, src, merged: false }],
            Isa::Avx2 => {
                let enc = op::broadcast(wide);
                vec![
                    Inst::ToVec { enc: op::from_general(wide), len: Len(16), dst, src, merged: false },
                    Inst::Vec { enc, len, dst, a: None, b: dst.into(), imm: None, mask: None },
                ]
            }
        }
    }

    /// A value (no bool) as a vector: the k-th of those that are worked on.
    pub fn vector(&mut self, v: Value, k: usize) -> Option<Reg> {
        let ty = self.code.ty(v);
        match self.values[v.index()] {
            Val::Unset => None,
            Val::Const(bits) => Some(self.splat(lane_bits(ty, bits), lane_type(ty).size())),
            Val::Uniform(r) => Some(r),
            Val::Lanes(regs) => Some(regs[k]),
            Val::General(src) => {
                let level = self.levels[v.index()] as usize;
                Some(self.once(level, Once::Vector(v), |s| {
                    let dst = s.vector_reg();
                    (dst, s.broadcast_code(dst, src, true))
                }))
            }
        }
    }

    /// A bool as a mask.
    pub fn mask(&mut self, v: Value, k: usize) -> Option<Reg> {
        if let Val::Lanes(regs) = self.values[v.index()] {
            return Some(regs[k]);
        }
        let level = match self.values[v.index()] {
            Val::Const(_) => 0,
            _ => self.levels[v.index()] as usize,
        };
        let src = self.general(v)?;
        Some(self.once(level, Once::Mask(v), |s| {
            let dst = s.mask_reg(0);
            let code = match s.isa {
                Isa::Avx512 => vec![Inst::MaskFrom { dst, src }],
                Isa::Avx2 => s.broadcast_code(dst, src, false),
            };
            (dst, code)
        }))
    }

    /// A scalar bool as a mask for elements of so many bytes. If it is a comparison of such elements, that is its mask, and its way through a general register is
    /// saved; but for vectors it has too few lanes.
    pub fn mask_of_scalar(&mut self, v: Value, size: usize) -> Option<Reg> {
        let level = self.levels[v.index()] as usize;
        match self.scopes.get(level).and_then(|s| s.cache.get(&Once::Compared(v, size))) {
            Some(mask) if self.f.entry == 16 => Some(*mask),
            _ => self.mask(v, 0),
        }
    }

    /// The bits of a uniform value in a general register, as the main body wants them.
    pub fn bits(&mut self, v: Value) -> Option<Reg> {
        if let Val::Const(bits) = self.values[v.index()] {
            return Some(self.general_const(bits as i64));
        }
        let dst = self.general_reg();
        match (self.code.ty(v), self.values[v.index()]) {
            (Ty::Bool, Val::General(r)) => self.alu(Alu::And, dst, r, Ri::Imm(1)),
            (_, Val::General(r)) => return Some(r),
            (ty, Val::Uniform(src)) if is_small(ty) => return Some(self.small_bits(ty, src)),
            (ty, Val::Uniform(src)) => self.emit(Inst::FromVec { enc: op::to_general(ty.size() == 8), dst, src }),
            _ => return None,
        }
        Some(dst)
    }

    pub fn load_uniform(&mut self, ty: Ty, from: Mem) -> Val {
        if is_general(ty) {
            let dst = self.general_reg();
            self.load_general(ty, dst, from);
            Val::General(dst)
        } else {
            let dst = self.vector_reg();
            self.load_same(ty, dst, from);
            Val::Uniform(dst)
        }
    }

    pub fn load_general(&mut self, ty: Ty, dst: Reg, from: Mem) {
        if ty == Ty::Bool {
            let byte = self.general_reg();
            self.emit(Inst::Load { size: Size::Byte, dst: byte, from });
            self.emit(Inst::Unary { op: Unary::Neg, dst, a: byte });
        } else {
            self.emit(Inst::Load { size: Size::Quad, dst, from });
        }
    }

    fn table(&mut self, key: Once, offset: i32) -> Reg {
        let context = self.context;
        self.once(0, key, |s| {
            let dst = s.general_reg();
            (dst, vec![Inst::Load { size: Size::Quad, dst, from: Mem::at(context, offset) }])
        })
    }

    fn entry(&mut self, table: Once, offset: i32, key: Once, at: u32) -> Reg {
        if let Some(r) = self.scopes[0].cache.get(&key) {
            return *r;
        }
        let table = self.table(table, offset);
        self.once(0, key, |s| {
            let dst = s.general_reg();
            (dst, vec![Inst::Load { size: Size::Quad, dst, from: Mem::at(table, 8 * at as i32) }])
        })
    }

    /// The address of a buffer.
    pub fn buffer(&mut self, b: u32) -> Reg {
        if !self.is_swapped(b) {
            return self.entry(Once::Buffers, 0, Once::Buffer(b), b);
        }
        let (dst, from) = (self.general_reg(), self.buffer_entry(b));
        self.emit(Inst::Load { size: Size::Quad, dst, from });
        dst
    }

    /// Whether the address of a buffer has to be asked for each time.
    pub fn is_swapped(&self, b: u32) -> bool {
        self.swapped.is_some_and(|s| s.contains(&Buffer(b)))
    }

    /// Where the address of a buffer is.
    pub fn buffer_entry(&mut self, b: u32) -> Mem {
        Mem::at(self.table(Once::Buffers, 0), 8 * b as i32)
    }

    fn size(&mut self, i: u32) -> Reg {
        self.entry(Once::Sizes, 8, Once::Size(i), i)
    }

    /// Sets where a value is, at the current level.
    pub fn set(&mut self, v: Value, to: Val) {
        self.values[v.index()] = to;
        self.levels[v.index()] = self.level() as u32;
    }

    /// A register for a new value of what is made now: its own, or that of what it replaces.
    pub fn target(&mut self, v: Value) -> Val {
        if let Some(forced) = self.forced.get(&v) {
            return *forced;
        }
        self.fresh(v)
    }

    pub fn fresh(&mut self, v: Value) -> Val {
        let (ty, shape) = (self.code.ty(v), self.code.shape(v));
        match shape.is_vector() {
            true => {
                let mut regs = [Reg(0); TOGETHER];
                let lane = if shape.width() * 8 == self.f.entry { 8 } else { 4 };
                for r in &mut regs[..usize::from(shape.registers)] {
                    *r = if ty == Ty::Bool { self.mask_reg(lane) } else { self.vector_reg() };
                }
                Val::Lanes(regs)
            }
            false if is_general(ty) => Val::General(self.general_reg()),
            false => Val::Uniform(self.vector_reg()),
        }
    }

    pub fn block(&mut self, body: &[Stmt]) -> Option<()> {
        // Where nothing is guarded statements are seen as one run: what is done together may reach beyond a store.
        let (mut from, mut at) = (0, 0);
        while at < body.len() {
            if let Some(g) = self.guarded(&body[at..]) {
                self.statements(&body[from..at])?;
                self.guard(&g)?;
                at += g.end;
                from = at;
                continue;
            }
            at += body[at..].iter().position(|s| !matches!(s, Stmt::Let(..))).map_or(body.len() - at, |k| k + 1);
        }
        self.statements(&body[from..])
    }

    /// Statements one after the other, or together with those behind them.
    pub fn statements(&mut self, body: &[Stmt]) -> Option<()> {
        let mut rest = body;
        while let Some(first) = rest.first() {
            let done = match self.increment(rest)? {
                0 => self.together(rest)?,
                done => done,
            };
            let done = match done {
                0 => {
                    self.stmt(first)?;
                    1
                }
                done => done,
            };
            rest[..done].iter().for_each(|s| self.remember(s));
            rest = &rest[done..];
        }
        Some(())
    }

    /// Whether a value is made in the register of one that it replaces.
    pub fn is_forced(&self, v: Value) -> bool {
        self.forced.contains_key(&v)
    }

    /// Whether something is made in a register that another value is in.
    pub fn is_renewed(&self, r: Reg) -> bool {
        self.forced.values().any(|to| *to == Val::General(r))
    }

    /// Whether another value will be made in the registers of one: it must be read before.
    pub fn is_replaced(&self, v: Value) -> bool {
        let there = self.values[v.index()];
        there != Val::Unset && self.forced.values().any(|to| *to == there)
    }

    pub(super) fn stmt(&mut self, s: &Stmt) -> Option<()> {
        match s {
            Stmt::Let(v, Expr::Const(bits)) => {
                self.values[v.index()] = Val::Const(*bits);
                self.levels[v.index()] = 0;
            }
            Stmt::Let(v, Expr::Size(i)) => {
                self.values[v.index()] = Val::General(self.size(*i));
                self.levels[v.index()] = 0;
            }
            Stmt::Let(v, Expr::Load(access)) => {
                let to = self.load(*v, access)?;
                self.set(*v, to);
            }
            Stmt::Let(v, Expr::Op(Op::Select, args)) if self.holds == Some(args[0]) => {
                self.values[v.index()] = self.values[args[1].index()];
                self.levels[v.index()] = self.levels[args[1].index()];
            }
            Stmt::Let(v, Expr::Op(op, args)) => {
                // They are written out before.
                (!matches!(op, Op::Math(_))).then_some(())?;
                let to = self.target(*v);
                match to {
                    Val::Lanes(regs) => {
                        self.each_register(*v, |s, k| s.vector_op(*op, *v, args, k, regs[k]))?;
                    }
                    Val::Uniform(r) => self.vector_op(*op, *v, args, 0, r)?,
                    Val::General(r) => {
                        self.general_op(*op, args, r)?;
                        if let Some(Inst::Set { dst, test }) = self.scopes[self.level()].body.last()
                            && *dst == r
                        {
                            self.tests.insert(*v, *test);
                        }
                    }
                    _ => return None,
                }
                self.set(*v, to);
                if let Some((mask, size)) = self.compared.take() {
                    let top = self.level();
                    self.scopes[top].cache.insert(Once::Compared(*v, size), mask);
                }
            }
            Stmt::Let(v, Expr::Ramp(from, by)) => {
                let (mut regs, size, width) =
                    ([Reg(0); TOGETHER], self.code.ty(*v).size(), self.code.shape(*v).width());
                for (k, r) in regs.iter_mut().enumerate().take(usize::from(self.code.shape(*v).registers)) {
                    *r = self.ramp(from + (k * width) as i64 * by, *by, size);
                }
                self.set(*v, Val::Lanes(regs));
            }
            Stmt::Let(v, Expr::Active(n)) => {
                let mut regs = [Reg(0); TOGETHER];
                self.each_register(*v, |s, k| {
                    let lane = if s.wide() { 8 } else { 4 };
                    regs[k] = s.first_lanes(*n, lane)?;
                    Some(())
                })?;
                self.set(*v, Val::Lanes(regs));
            }
            Stmt::Let(v, Expr::Half(of, upper)) => {
                let to = self.half(*of, *upper)?;
                self.set(*v, to);
            }
            Stmt::Let(v, Expr::First(of)) => {
                let to = self.first(*of)?;
                self.set(*v, to);
            }
            Stmt::Store(access, value) => self.store(access, *value)?,
            Stmt::Loop(l) => self.loop_(l)?,
            Stmt::Main(m) => self.main(m)?,
        }
        Some(())
    }

    /// Does something for each register of a vector that is made.
    pub fn each_register(&mut self, v: Value, mut f: impl FnMut(&mut Self, usize) -> Option<()>) -> Option<()> {
        self.each_part(self.code.shape(v), |s, k| f(s, k))
    }

    /// The same for a vector by its shape.
    pub fn each_part(&mut self, shape: Shape, mut f: impl FnMut(&mut Self, usize) -> Option<()>) -> Option<()> {
        self.now = Some(shape);
        for k in 0..usize::from(shape.registers) {
            self.part = k;
            f(self, k)?;
        }
        (self.now, self.part) = (None, 0);
        Some(())
    }

    /// Copies what a value is to where another is, which has a shape.
    pub fn assign(&mut self, from: Value, to: Val, shape: Shape, moves: &mut Vec<(Reg, Reg)>) -> Option<()> {
        match to {
            Val::General(dst) => moves.push((dst, self.general(from)?)),
            Val::Uniform(dst) => moves.push((dst, self.vector(from, 0)?)),
            Val::Lanes(regs) => {
                self.each_part(shape, |s, k| {
                    let src = match s.code.ty(from) {
                        Ty::Bool => {
                            let mask = s.mask(from, k)?;
                            let lane = s.lane_of(regs[k]);
                            s.mask_as(mask, lane)
                        }
                        _ => s.vector(from, k)?,
                    };
                    moves.push((regs[k], src));
                    Some(())
                })?;
            }
            _ => return None,
        }
        Some(())
    }

    /// All at once: one may be another's source.
    pub fn moves(&mut self, moves: Vec<(Reg, Reg)>) {
        let written: Vec<Reg> = moves.iter().map(|m| m.0).collect();
        let mut late = Vec::new();
        for (dst, mut src) in moves {
            if dst == src {
                continue;
            }
            if written.contains(&src) {
                let class = self.f.regs[src.0 as usize].class;
                let lane = self.lane_of(src);
                let spare = self.reg(class, lane);
                self.emit(Inst::Copy { dst: spare, src });
                src = spare;
            }
            late.push(Inst::Copy { dst, src });
        }
        late.into_iter().for_each(|i| self.emit(i));
    }

    /// What goes around a loop, in registers of its own.
    pub fn start(&mut self, carried: &[Carried]) -> Option<()> {
        let mut start = Vec::new();
        for Carried { init, param, .. } in carried {
            let to = self.fresh(*param);
            self.assign(*init, to, self.code.shape(*param), &mut start)?;
            self.values[param.index()] = to;
        }
        self.moves(start);
        Some(())
    }

    /// Inside of the loop: what can be made in the register of the one before it is.
    pub fn renew(&mut self, carried: &[Carried], body: &[Stmt]) {
        let nexts: Vec<Value> = carried.iter().map(|c| c.next).collect();
        for c in carried {
            self.levels[c.param.index()] = self.level() as u32;
            // Masks in vectors may have other lanes than where they go.
            let mask = self.code.ty(c.param) == Ty::Bool && self.code.shape(c.param).is_vector();
            let same = self.code.shape(c.param) == self.code.shape(c.next);
            if !mask && same && renewable(body, c.param, c.next, &nexts) {
                self.forced.insert(c.next, self.values[c.param.index()]);
            }
        }
    }

    /// At the end of an iteration: what is next takes the place of what was.
    pub fn go_on(&mut self, carried: &[Carried]) -> Option<()> {
        let mut next = Vec::new();
        for c in carried {
            self.assign(c.next, self.values[c.param.index()], self.code.shape(c.param), &mut next)?;
            self.forced.remove(&c.next);
        }
        self.moves(next);
        Some(())
    }

    fn loop_(&mut self, l: &Loop) -> Option<()> {
        let to = self.int(l.to)?;
        self.start(&l.carried)?;
        let counter = self.general_reg();
        let filled = self.fill(l, counter)?;
        // What the loop makes once is not there where memory was filled instead.
        let top = self.level();
        let made = matches!(filled, Filled::IfLong(_)).then(|| (self.scopes[top].cache.clone(), self.splats.clone()));
        if l.trips() != Some(0) && !matches!(filled, Filled::All) {
            let from = match l.from {
                Int::Const(0) => None,
                Int::Const(n) => Some(self.general_const(n)),
                Int::Value(v) => Some(self.general(v)?),
            };
            // An address that goes with the counter pays where nothing else needs it.
            let var = (l.step == 1).then_some((l.var, from));
            self.scopes.push(Scope { var, ..Scope::default() });
            self.set(l.var, Val::General(counter));
            self.renew(&l.carried, &l.body);
            self.read.clear();
            self.block(&l.body)?;
            self.go_on(&l.carried)?;
            let Scope { pre, body, bumps, .. } = self.scopes.pop()?;
            pre.into_iter().for_each(|i| self.emit(i));
            self.emit(match from {
                Some(src) => Inst::Copy { dst: counter, src },
                None => Inst::Const { dst: counter, value: 0 },
            });
            let (head, done) = (self.label(), self.label());
            let more = Test { cond: Cond::L, a: counter, b: to };
            if l.trips().is_none() {
                self.emit(Inst::Branch(Test { cond: Cond::Ge, ..more }, done));
            }
            self.emit(Inst::LoopStart(head));
            body.into_iter().chain(bumps).for_each(|i| self.emit(i));
            self.alu(Alu::Add, counter, counter, Ri::Imm(i32::try_from(l.step).ok()?));
            self.emit(Inst::LoopEnd(Some(more), head));
            self.emit(Inst::Label(done));
        }
        if let Filled::IfLong(done) = filled {
            self.emit(Inst::Label(done));
        }
        if let Some((cache, splats)) = made {
            (self.scopes[top].cache, self.splats) = (cache, splats);
        }
        for c in &l.carried {
            self.set(c.result, self.values[c.param.index()]);
        }
        if let Some(left) = l.left {
            self.set(left, Val::General(counter));
        }
        Some(())
    }
}

/// Whether a value that goes around a loop may be made in the register of the one before: its parameter is not needed any more when it is made.
fn renewable(body: &[Stmt], param: Value, next: Value, nexts: &[Value]) -> bool {
    let Some(at) = body.iter().position(|s| matches!(s, Stmt::Let(v, Expr::Op(..)) if *v == next)) else {
        return false;
    };
    nexts.iter().filter(|n| **n == next).count() == 1 && !nexts.contains(&param) && !reads(&body[at + 1..], param)
}

fn reads(body: &[Stmt], v: Value) -> bool {
    let mut found = false;
    crate::vector::each_use(body, &mut |u| found |= u == v);
    found
}

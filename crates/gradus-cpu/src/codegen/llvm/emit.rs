//! A whole module as LLVM text: the main body and its control flow; kernels are in `kernels.rs`.
//!
//! Scalars are values in static single assignment form here as there, so nothing but the heads of loops needs thought.
//! Loops test their condition at the end, behind a test that they run at all: no pass has to turn them around.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Result, error};
use crate::ir::{
    Buffer, Call, Carried, Expr, Index, Int, Kernel, LANES, Loop, Module, Op, Stmt, Switch, Ty, Value, While,
};
use crate::vector::Machine;

use super::ops::{line, put};
use super::text::{Hole, Operand, Shape, Text, int, scalar_name, stored};

/// The convention of calls between machine code and Rust, where it is not the platform's own.
pub(super) const CONVENTION: &str = if cfg!(all(windows, target_arch = "x86_64")) { "x86_64_sysvcc " } else { "" };

/// The first piece of memory for arrays of a kernel's own: those before pass values to calls.
const LOCAL_SLOT: usize = 2;

/// Buffers of the main body up to this number have their addresses read once, at the start.
const FEW_BUFFERS: usize = 24;

/// The function that is written now.
pub(super) struct Function {
    pub(super) text: Text,
    /// The block that is written to.
    pub(super) block: u32,
    /// What is computed once, at the start.
    entry: Hole,
    /// Constants: in all lanes, or growing from lane to lane.
    constants: FxHashMap<(Ty, u32, u64), Operand>,
    constant_names: FxHashSet<u32>,
    ramps: FxHashMap<(Ty, u32, i64, i64), Operand>,
    /// Addresses of buffers that are read at the start.
    pointers: FxHashMap<Buffer, Operand>,
    /// Memory that calls look at: bytes of each piece.
    slots: Vec<usize>,
    /// Whether it is the main body.
    main: bool,
}

pub(super) struct Emitter<'a> {
    pub(super) module: &'a Module,
    pub(super) machine: Machine,
    pub(super) f: Function,
    names: u32,
    labels: u32,
    /// The scalar that a value is now.
    pub(super) scalars: Vec<Operand>,
    declarations: FxHashSet<String>,
    functions: String,
    swapped: FxHashSet<Buffer>,
    /// Whether scalars are divided.
    pub(super) divides: bool,
}

/// A module in LLVM's language.
pub(super) struct Written {
    pub(super) text: String,
    /// Whether scalars are divided.
    pub(super) divides: bool,
}

/// Loops of known length whose iterations are at most so many statements together are written as their iterations.
/// (LLVM's own pass for it takes very long for functions of many loops.)
pub(super) const UNROLL: i64 = 40;

/// How many statements a body is if all loops in it are written as iterations; none for bodies that are not plain.
fn unrolled(body: &[Stmt]) -> Option<usize> {
    let mut sum = 1usize;
    for s in body {
        sum = sum.saturating_add(match s {
            Stmt::Let(..) | Stmt::Store { .. } => 1,
            Stmt::Loop(l) => match l.count {
                Int::Const(n) => unrolled(&l.body)?.saturating_mul(n.max(0) as usize),
                Int::Value(_) => return None,
            },
            _ => return None,
        });
    }
    Some(sum)
}

pub(super) fn function(main: bool) -> Function {
    let mut text = Text::new();
    let entry = text.hole();
    Function {
        text,
        block: 0,
        entry,
        constants: FxHashMap::default(),
        constant_names: FxHashSet::default(),
        ramps: FxHashMap::default(),
        pointers: FxHashMap::default(),
        slots: Vec::new(),
        main,
    }
}

/// The text of a module whose main body is called `name`.
pub(super) fn module(module: &Module, machine: Machine, name: &str) -> Result<Written> {
    let n = module.types.len();
    let mut e = Emitter {
        module,
        machine,
        f: function(true),
        names: 0,
        labels: 1,
        scalars: vec![Operand::None; n],
        declarations: FxHashSet::default(),
        functions: String::new(),
        swapped: module.swapped(),
        divides: false,
    };
    for (i, f) in module.functions.iter().enumerate() {
        e.define_elementary(i, f)?;
    }
    for (i, piece) in module.pieces.iter().enumerate() {
        e.main_body(piece, &format!("define internal fastcc i64 @piece{i}(ptr %context) #0 noinline"))?;
    }
    e.main_body(&module.main, &format!("define {CONVENTION}i64 @{name}(ptr %context) #0"))?;
    let (mut out, divides) = (e.functions, e.divides);
    let mut declarations: Vec<String> = e.declarations.into_iter().collect();
    declarations.sort_unstable();
    for d in declarations {
        out.push_str(&d);
        out.push('\n');
    }
    let width = machine.bytes * 8;
    out.push_str(&format!(
        // Stacks of many pages are touched page by page: the one behind the stack is met and not jumped over.
        "attributes #0 = {{ nounwind \"probe-stack\"=\"inline-asm\" \"prefer-vector-width\"=\"{width}\" \"min-legal-vector-width\"=\"{width}\" }}\n\
         attributes #1 = {{ nounwind }}\n\
         attributes #2 = {{ nounwind willreturn memory(argmem: readwrite) }}\n\
         !0 = !{{}}\n\
         !1 = !{{!1, !\"context\"}}\n\
         !2 = !{{!2, !1, !\"table of buffers\"}}\n\
         !3 = !{{!2}}\n\
         !4 = !{{!\"branch_weights\", i32 1, i32 100000}}\n"
    ));
    Ok(Written { text: out, divides })
}

impl Emitter<'_> {
    pub(super) fn fresh(&mut self) -> u32 {
        self.names += 1;
        self.names
    }

    pub(super) fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    /// Begins a block.
    pub(super) fn start(&mut self, label: u32) {
        line!(self, "L{label}:");
        self.f.block = label;
    }

    pub(super) fn declare(&mut self, declaration: String) {
        self.declarations.insert(declaration);
    }

    /// Runs `f` with the text going into a hole. It must not begin blocks.
    pub(super) fn inside<R>(&mut self, hole: Hole, f: impl FnOnce(&mut Self) -> R) -> R {
        let back = self.f.text.go(hole);
        let result = f(self);
        self.f.text.back(back);
        result
    }

    /// Closes the function: what its entry block does is known only now.
    pub(super) fn finish(&mut self, head: &str) {
        let f = std::mem::replace(&mut self.f, function(true));
        let out = &mut self.functions;
        out.push_str(head);
        out.push_str(" {\nL0:\n");
        for (i, bytes) in f.slots.iter().enumerate() {
            out.push_str(&format!("%slot{i} = alloca [{bytes} x i8], align 64\n"));
        }
        // The table's own address never changes, so reading it costs nothing where it is not used.
        out.push_str("%table = load ptr, ptr %context, align 8, !invariant.load !0\n");
        f.text.append_to(out);
        out.push_str("}\n");
    }

    /// Memory of at least `bytes`, to pass values to a call. One number is one piece, for all calls of the function.
    pub(super) fn slot(&mut self, number: usize, bytes: usize) -> String {
        let slots = &mut self.f.slots;
        if slots.len() <= number {
            slots.resize(number + 1, 8);
        }
        slots[number] = slots[number].max(bytes);
        format!("%slot{number}")
    }

    /// A constant in all lanes of a vector, made at the start of the function.
    pub(super) fn splat_literal(&mut self, s: Shape, bits: u64) -> Operand {
        if let Some(found) = self.f.constants.get(&(s.ty, s.lanes, bits)) {
            return *found;
        }
        let made = self.inside(self.f.entry, |e| e.splat(s, Operand::Literal(s.ty, bits)));
        self.f.constants.insert((s.ty, s.lanes, bits), made);
        if let Operand::Name(n) = made {
            self.f.constant_names.insert(n);
        }
        made
    }

    /// Whether a vector is a constant in all lanes.
    pub(super) fn is_constant(&self, a: Operand) -> bool {
        a == Operand::Zero || matches!(a, Operand::Name(n) if self.f.constant_names.contains(&n))
    }

    /// A scalar in all lanes of a vector, made here.
    pub(super) fn splat(&mut self, s: Shape, a: Operand) -> Operand {
        let scalar = scalar_name(s.ty);
        let one = put!(self, "insertelement {s} poison, {scalar} {a}, i64 0");
        put!(self, "shufflevector {s} {one}, {s} poison, <{} x i32> zeroinitializer", s.lanes)
    }

    /// Whole numbers: the first, and by how much each lane is more than the one before it.
    pub(super) fn ramp(&mut self, s: Shape, from: i64, by: i64) -> Operand {
        if let Some(found) = self.f.ramps.get(&(s.ty, s.lanes, from, by)) {
            return *found;
        }
        let number = |l: u32| Operand::Literal(s.ty, from.wrapping_add(by.wrapping_mul(i64::from(l))) as u64);
        let name = scalar_name(s.ty);
        let numbers: Vec<String> = (0..s.lanes).map(|l| format!("{name} {}", number(l))).collect();
        let made = self.inside(self.f.entry, |e| put!(e, "or {s} zeroinitializer, <{}>", numbers.join(", ")));
        self.f.ramps.insert((s.ty, s.lanes, from, by), made);
        made
    }

    /// The address of an array of the kernel's own.
    pub(super) fn local(&mut self, number: usize, ty: Ty) -> Operand {
        let slot = self.slot(LOCAL_SLOT + number, LANES * ty.size());
        self.inside(self.f.entry, |e| put!(e, "getelementptr i8, ptr {slot}, i64 0"))
    }

    /// A dimension that is known at run time.
    pub(super) fn size(&mut self, i: u32) -> Operand {
        let at = put!(self, "getelementptr i8, ptr %context, i64 8");
        let sizes = put!(self, "load ptr, ptr {at}, align 8, !invariant.load !0");
        let at = put!(self, "getelementptr i64, ptr {sizes}, i64 {i}");
        put!(self, "load i64, ptr {at}, align 8, !invariant.load !0")
    }

    /// Lanes of two vectors: which ones, counted through both; none: whatever.
    pub(super) fn shuffle(
        &mut self,
        s: Shape,
        a: Operand,
        b: Operand,
        which: impl Iterator<Item = Option<u32>>,
    ) -> Operand {
        let which: Vec<String> = which.map(|l| l.map_or("i32 poison".into(), |l| format!("i32 {l}"))).collect();
        let b = if b == Operand::None { "poison".to_string() } else { b.to_string() };
        put!(self, "shufflevector {s} {a}, {s} {b}, <{} x i32> <{}>", which.len(), which.join(", "))
    }

    pub(super) fn int(&self, i: Int) -> Operand {
        match i {
            Int::Const(v) => int(v),
            Int::Value(v) => self.scalars[v.index()],
        }
    }

    /// The address of a buffer.
    pub(super) fn pointer(&mut self, b: Buffer) -> Operand {
        if let Some(found) = self.f.pointers.get(&b) {
            return *found;
        }
        let swapped = self.swapped.contains(&b);
        let read = |e: &mut Self| {
            // Nothing writes the table while a module runs, but for `Swap`; and no array lies in it.
            let note = if swapped { "!alias.scope !3" } else { "!invariant.load !0" };
            let at = put!(e, "getelementptr ptr, ptr %table, i64 {}", b.0);
            put!(e, "load ptr, ptr {at}, align 8, {note}")
        };
        if self.f.main && (swapped || self.module.buffers.len() > FEW_BUFFERS) {
            return read(self);
        }
        let made = self.inside(self.f.entry, read);
        self.f.pointers.insert(b, made);
        made
    }

    /// What accesses to arrays say of themselves.
    pub(super) fn note(&self) -> &'static str {
        if self.swapped.is_empty() { "" } else { ", !noalias !3" }
    }

    /// The sum of an index's terms that pass a test, and its offset.
    pub(super) fn place(&mut self, at: &Index, keep: impl Fn(&Self, Value) -> bool) -> Operand {
        let mut offset = at.offset;
        let mut sum = None;
        for (v, stride) in &at.terms {
            if !keep(self, *v) {
                continue;
            }
            let term = match (self.scalars[v.index()], self.int(*stride)) {
                (Operand::Literal(_, v), Operand::Literal(_, stride)) => {
                    offset = offset.wrapping_add((v as i64).wrapping_mul(stride as i64));
                    continue;
                }
                (v, Operand::Literal(_, 1)) => v,
                (v, stride) => put!(self, "mul i64 {v}, {stride}"),
            };
            sum = Some(match sum {
                None => term,
                Some(sum) => put!(self, "add i64 {sum}, {term}"),
            });
        }
        match sum {
            None => int(offset),
            Some(sum) if offset == 0 => sum,
            Some(sum) => put!(self, "add i64 {sum}, {offset}"),
        }
    }

    /// The address of an element.
    fn address(&mut self, buffer: Buffer, at: &Index) -> Operand {
        let place = self.place(at, |_, _| true);
        self.element(buffer, place)
    }

    /// The address of the element at a place.
    pub(super) fn element(&mut self, buffer: Buffer, place: Operand) -> Operand {
        let pointer = self.pointer(buffer);
        match place {
            Operand::Literal(_, 0) => pointer,
            place => {
                let ty = scalar_name(stored(self.module.buffers[buffer.index()].ty));
                put!(self, "getelementptr {ty}, ptr {pointer}, i64 {place}")
            }
        }
    }

    pub(super) fn load_scalar(&mut self, buffer: Buffer, at: &Index) -> Operand {
        let ty = self.module.buffers[buffer.index()].ty;
        let pointer = self.address(buffer, at);
        let note = self.note();
        let raw = put!(self, "load {}, ptr {pointer}, align {}{note}", scalar_name(stored(ty)), ty.size());
        self.unpack(Shape { ty, lanes: 1 }, raw)
    }

    pub(super) fn store_scalar(&mut self, buffer: Buffer, at: &Index, value: Operand) {
        let ty = self.module.buffers[buffer.index()].ty;
        let value = self.pack(Shape { ty, lanes: 1 }, value);
        let pointer = self.address(buffer, at);
        let note = self.note();
        line!(self, "store {} {value}, ptr {pointer}, align {}{note}", scalar_name(stored(ty)), ty.size());
    }

    pub(super) fn block(&mut self, body: &[Stmt]) -> Result<()> {
        body.iter().try_for_each(|s| self.stmt(s))
    }

    /// A value that is a scalar.
    pub(super) fn scalar(&mut self, v: Value, e: &Expr) -> Result<()> {
        let ty = self.module.ty(v);
        self.scalars[v.index()] = match e {
            Expr::Const(bits) => Operand::Literal(ty, *bits),
            Expr::Size(i) => self.size(*i),
            Expr::Load(b, at) => self.load_scalar(*b, at),
            Expr::Op(op, args) => {
                let types: smallvec::SmallVec<[Ty; 3]> = args.iter().map(|a| self.module.ty(*a)).collect();
                let args: smallvec::SmallVec<[Operand; 3]> = args.iter().map(|a| self.scalars[a.index()]).collect();
                match op {
                    Op::Special(s) => self.special(*s, Shape { ty: types[0], lanes: 1 }, &args),
                    Op::Math(f) => self.elementary(*f, types[0], &args)?,
                    op => self.op(*op, &types, &args, 1)?,
                }
            }
        };
        Ok(())
    }

    pub(super) fn stmt(&mut self, s: &Stmt) -> Result<()> {
        match s {
            Stmt::Let(v, e) => self.scalar(*v, e),
            Stmt::Store { buffer, at, value } => {
                self.store_scalar(*buffer, at, self.scalars[value.index()]);
                Ok(())
            }
            Stmt::Loop(l) => {
                let range = (int(0), self.int(l.count));
                self.serial(l, range)
            }
            Stmt::While(w) => self.while_(w),
            Stmt::Switch(s) => self.switch(s),
            Stmt::Kernel(k) => self.run(*k),
            Stmt::Call(c) => self.call(c),
            Stmt::Swap(a, b) => {
                let (pa, pb) = (self.pointer(*a), self.pointer(*b));
                for (to, p) in [(a, pb), (b, pa)] {
                    let at = put!(self, "getelementptr ptr, ptr %table, i64 {}", to.0);
                    line!(self, "store ptr {p}, ptr {at}, align 8, !alias.scope !3");
                }
                Ok(())
            }
            Stmt::Piece(p) => {
                self.run_piece(*p);
                Ok(())
            }
            Stmt::Note(_) => Ok(()),
        }
    }

    /// A loop of one iteration after the other.
    fn serial(&mut self, l: &Loop, (from, to): (Operand, Operand)) -> Result<()> {
        let inits: Vec<Operand> = l.carried.iter().map(|c| self.scalars[c.init.index()]).collect();
        let always = match (from, to) {
            (Operand::Literal(_, from), Operand::Literal(_, to)) => Some((from as i64) < to as i64),
            _ => None,
        };
        if always == Some(false) {
            l.carried.iter().zip(inits).for_each(|(c, init)| self.scalars[c.result.index()] = init);
            return Ok(());
        }
        if let (Operand::Literal(_, from), Operand::Literal(_, to)) = (from, to)
            && let Some(cost) = unrolled(&l.body)
            && (to as i64 - from as i64).saturating_mul(cost as i64) <= UNROLL
        {
            return self.unroll(l, from as i64..to as i64, inits);
        }
        let (body, exit) = (self.label(), self.label());
        let before = self.f.block;
        match always {
            Some(_) => line!(self, "br label %L{body}"),
            None => {
                let runs = put!(self, "icmp slt i64 {from}, {to}");
                line!(self, "br i1 {runs}, label %L{body}, label %L{exit}");
            }
        }
        self.start(body);
        let phis = self.f.text.hole();
        let var = Operand::Name(self.fresh());
        self.scalars[l.var.index()] = var;
        for c in &l.carried {
            self.scalars[c.param.index()] = Operand::Name(self.fresh());
        }
        let params: Vec<Operand> = l.carried.iter().map(|c| self.scalars[c.param.index()]).collect();
        self.block(&l.body)?;
        let nexts: Vec<Operand> = l.carried.iter().map(|c| self.scalars[c.next.index()]).collect();
        let next = put!(self, "add nuw nsw i64 {var}, 1");
        let more = put!(self, "icmp slt i64 {next}, {to}");
        line!(self, "br i1 {more}, label %L{body}, label %L{exit}");
        let last = self.f.block;
        self.inside(phis, |e| {
            line!(e, "{var} = phi i64 [ {from}, %L{before} ], [ {next}, %L{last} ]");
            for (i, c) in l.carried.iter().enumerate() {
                let ty = scalar_name(e.module.ty(c.param));
                line!(e, "{} = phi {ty} [ {}, %L{before} ], [ {}, %L{last} ]", params[i], inits[i], nexts[i]);
            }
        });
        self.start(exit);
        for (i, c) in l.carried.iter().enumerate() {
            self.scalars[c.result.index()] = match always {
                Some(_) => nexts[i],
                None => {
                    let ty = scalar_name(self.module.ty(c.param));
                    put!(self, "phi {ty} [ {}, %L{before} ], [ {}, %L{last} ]", inits[i], nexts[i])
                }
            };
        }
        Ok(())
    }

    /// A short loop as its iterations, one behind the other.
    fn unroll(&mut self, l: &Loop, range: std::ops::Range<i64>, mut values: Vec<Operand>) -> Result<()> {
        for i in range {
            self.scalars[l.var.index()] = int(i);
            l.carried.iter().zip(&values).for_each(|(c, value)| self.scalars[c.param.index()] = *value);
            self.block(&l.body)?;
            values = l.carried.iter().map(|c| self.scalars[c.next.index()]).collect();
        }
        l.carried.iter().zip(values).for_each(|(c, value)| self.scalars[c.result.index()] = value);
        Ok(())
    }

    fn while_(&mut self, w: &While) -> Result<()> {
        let inits: Vec<Operand> = w.carried.iter().map(|c| self.scalars[c.init.index()]).collect();
        let (head, body, exit) = (self.label(), self.label(), self.label());
        let before = self.f.block;
        line!(self, "br label %L{head}");
        self.start(head);
        let phis = self.f.text.hole();
        for c in &w.carried {
            self.scalars[c.param.index()] = Operand::Name(self.fresh());
        }
        let params: Vec<Operand> = w.carried.iter().map(|c| self.scalars[c.param.index()]).collect();
        self.block(&w.before)?;
        line!(self, "br i1 {}, label %L{body}, label %L{exit}", self.scalars[w.condition.index()]);
        self.start(body);
        self.block(&w.body)?;
        line!(self, "br label %L{head}");
        let last = self.f.block;
        self.inside(phis, |e| {
            for (i, Carried { next, param, .. }) in w.carried.iter().enumerate() {
                let (ty, next) = (scalar_name(e.module.ty(*param)), e.scalars[next.index()]);
                line!(e, "{} = phi {ty} [ {}, %L{before} ], [ {next}, %L{last} ]", params[i], inits[i]);
            }
        });
        self.start(exit);
        w.carried.iter().zip(params).for_each(|(c, p)| self.scalars[c.result.index()] = p);
        Ok(())
    }

    fn switch(&mut self, s: &Switch) -> Result<()> {
        let cases: Vec<u32> = s.cases.iter().map(|_| self.label()).collect();
        let exit = self.label();
        // The first takes what is below, the last what is above.
        let index = self.scalars[s.index.index()];
        let i64s = Shape { ty: Ty::I64, lanes: 1 };
        let index = self.op(Op::Max, &[Ty::I64; 2], &[index, int(0)], i64s.lanes)?;
        let table: String = cases.iter().enumerate().map(|(i, l)| format!(" i64 {i}, label %L{l}")).collect();
        line!(self, "switch i64 {index}, label %L{} [{table} ]", cases[cases.len() - 1]);
        let mut ends: Vec<(Vec<Operand>, u32)> = Vec::with_capacity(cases.len());
        for (label, (body, values)) in cases.iter().zip(&s.cases) {
            self.start(*label);
            self.block(body)?;
            ends.push((values.iter().map(|v| self.scalars[v.index()]).collect(), self.f.block));
            line!(self, "br label %L{exit}");
        }
        self.start(exit);
        for (i, r) in s.results.iter().enumerate() {
            let from: Vec<String> = ends.iter().map(|(v, block)| format!("[ {}, %L{block} ]", v[i])).collect();
            self.scalars[r.index()] = put!(self, "phi {} {}", scalar_name(self.module.ty(*r)), from.join(", "));
        }
        Ok(())
    }

    /// A scalar as the 64 bits that a kernel finds in memory.
    fn wide(&mut self, v: Value) -> Operand {
        let (ty, a) = (self.module.ty(v), self.scalars[v.index()]);
        match ty {
            Ty::I64 | Ty::U64 => a,
            Ty::F64 => put!(self, "bitcast double {a} to i64"),
            Ty::F32 => {
                let bits = put!(self, "bitcast float {a} to i32");
                put!(self, "zext i32 {bits} to i64")
            }
            ty => put!(self, "zext {} {a} to i64", scalar_name(ty)),
        }
    }

    /// The function at an offset of the context.
    pub(super) fn of_context(&mut self, offset: usize) -> Operand {
        let at = put!(self, "getelementptr i8, ptr %context, i64 {offset}");
        put!(self, "load ptr, ptr {at}, align 8, !invariant.load !0")
    }

    fn call(&mut self, c: &Call) -> Result<()> {
        let arrays = self.slot(0, c.buffers.len() * 8);
        for (i, (b, at)) in c.buffers.iter().enumerate() {
            let pointer = self.address(*b, at);
            let to = put!(self, "getelementptr ptr, ptr {arrays}, i64 {i}");
            line!(self, "store ptr {pointer}, ptr {to}, align 8");
        }
        let f = self.of_context(16);
        let status = put!(self, "call {CONVENTION}i64 {f}(ptr %context, i64 {}, ptr {arrays}) #1", c.entry);
        self.check(status);
        Ok(())
    }

    /// Ends the run if a call failed.
    fn check(&mut self, status: Operand) {
        let failed = put!(self, "icmp ne i64 {status}, 0");
        let (leave, on) = (self.label(), self.label());
        line!(self, "br i1 {failed}, label %L{leave}, label %L{on}, !prof !4");
        self.start(leave);
        line!(self, "ret i64 {status}");
        self.start(on);
    }

    /// The main body or a piece of it as a function.
    fn main_body(&mut self, body: &[Stmt], head: &str) -> Result<()> {
        self.block(body)?;
        line!(self, "ret i64 0");
        self.finish(head);
        Ok(())
    }

    fn run_piece(&mut self, number: u32) {
        let status = put!(self, "call fastcc i64 @piece{number}(ptr %context) #1");
        if self.module.pieces.get(number as usize).is_some_and(|p| p.iter().any(Stmt::can_fail)) {
            self.check(status);
        }
    }

    /// What a kernel gives back.
    pub(super) fn outputs(&self, k: &Kernel) -> String {
        let types: Vec<&str> = k.outputs.iter().map(|v| scalar_name(self.module.ty(*v))).collect();
        if types.is_empty() { "void".into() } else { format!("{{ {} }}", types.join(", ")) }
    }

    pub(super) fn call_kernel(&mut self, k: &Kernel, name: &str) -> Result<()> {
        let mut args = vec!["ptr %context".to_string()];
        for v in &k.inputs {
            args.push(format!("{} {}", scalar_name(self.module.ty(*v)), self.scalars[v.index()]));
        }
        let (ret, args) = (self.outputs(k), args.join(", "));
        if k.outputs.is_empty() {
            line!(self, "call fastcc void @{name}({args}) #1");
            return Ok(());
        }
        let all = put!(self, "call fastcc {ret} @{name}({args}) #1");
        for (i, v) in k.outputs.iter().enumerate() {
            self.scalars[v.index()] = put!(self, "extractvalue {ret} {all}, {i}");
        }
        Ok(())
    }

    pub(super) fn call_parallel(&mut self, k: &Kernel, number: u32, name: &str) -> Result<()> {
        let env = self.slot(0, k.inputs.len() * 8);
        for (i, v) in k.inputs.iter().enumerate() {
            let bits = self.wide(*v);
            let to = put!(self, "getelementptr i64, ptr {env}, i64 {i}");
            line!(self, "store i64 {bits}, ptr {to}, align 8");
        }
        let Some((steps, count)) = k.count() else {
            return Err(error!(Verify, "kernel {} is parallel without a loop", k.name));
        };
        steps.into_iter().try_for_each(|(v, e)| self.scalar(v, e))?;
        let count = self.int(count);
        let f = self.of_context(24);
        line!(self, "call {CONVENTION}void {f}(ptr %context, ptr @{name}, i64 {number}, ptr {env}, i64 {count}) #1");
        Ok(())
    }
}

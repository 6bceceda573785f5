//! From the kernel language to the vector language.
//!
//! A loop of lanes becomes a loop of whole steps and what is left over; its body is written for each, with names of its own. What is the same in all
//! iterations is computed before.

mod folds;
mod main;
mod steps;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::kept;
use super::varying::Varying;
use super::{Access, Code, Expr, Loop, Machine, Memory, Shape, Stmt};
use crate::ir::{self, Buffer, Carried, Index, Int, Kernel, Kind, Module, Op, Ty, Value};

pub use main::scalars;

/// A kernel with its loops of lanes written out for a machine.
pub fn vectorize(module: &Module, kernel: &Kernel, machine: &Machine) -> Code {
    let mut w = Writer::new(module, machine);
    for v in &kernel.inputs {
        let name = w.fresh(module.ty(*v), Shape::SCALAR);
        w.names.insert(*v, name);
        w.code.inputs.push(name);
    }
    let last = kernel.body.len().wrapping_sub(1);
    for (i, s) in kernel.body.iter().enumerate() {
        match s {
            ir::Stmt::Loop(l) if kernel.parallel && i == last => {
                let (lo, hi) = (w.fresh(Ty::I64, Shape::SCALAR), w.fresh(Ty::I64, Shape::SCALAR));
                w.code.range = Some((lo, hi));
                w.any_loop(l, lo.into(), hi.into());
            }
            s => w.stmt(s),
        }
    }
    w.code.outputs = kernel.outputs.iter().map(|v| w.name(*v)).collect();
    let mut code = w.finish();
    kept::keep(&mut code);
    code
}

struct Writer<'a> {
    module: &'a Module,
    machine: &'a Machine,
    code: Code,
    /// What values of the kernel are called here, in the copy of a body that is written.
    names: FxHashMap<Value, Value>,
    /// All constants are made first, each once.
    constants: Vec<Stmt>,
    constant: FxHashMap<(Ty, u64), Value>,
    bits: FxHashMap<Value, u64>,
    /// The body that is written.
    body: Vec<Stmt>,
    /// What was computed before the loop that it stands in.
    hoisted: FxHashSet<Value>,
    /// What is computed before everything else, of numbers that the kernel is given.
    early: FxHashMap<(Op, Int, i64), Value>,
    /// How many serial loops are around.
    depth: usize,
}

impl<'a> Writer<'a> {
    fn new(module: &'a Module, machine: &'a Machine) -> Writer<'a> {
        Writer {
            module,
            machine,
            code: Code::default(),
            names: FxHashMap::default(),
            constants: Vec::new(),
            constant: FxHashMap::default(),
            bits: FxHashMap::default(),
            body: Vec::new(),
            hoisted: FxHashSet::default(),
            early: FxHashMap::default(),
            depth: 0,
        }
    }

    fn finish(mut self) -> Code {
        self.constants.append(&mut self.body);
        self.code.body = self.constants;
        self.code
    }
}

impl Writer<'_> {
    fn fresh(&mut self, ty: Ty, shape: Shape) -> Value {
        self.code.value(ty, shape)
    }

    fn name(&self, v: Value) -> Value {
        // Only a kernel that was not verified has values that nobody defines.
        self.names.get(&v).copied().unwrap_or(Value(0))
    }

    /// What a value of the kernel is, if that is known.
    fn known(&self, v: Value) -> Option<u64> {
        self.names.get(&v).and_then(|name| self.bits.get(name)).copied()
    }

    fn push(&mut self, ty: Ty, shape: Shape, e: Expr) -> Value {
        let v = self.fresh(ty, shape);
        self.body.push(Stmt::Let(v, e));
        v
    }

    fn constant(&mut self, ty: Ty, bits: u64) -> Value {
        if let Some(v) = self.constant.get(&(ty, bits)) {
            return *v;
        }
        let v = self.fresh(ty, Shape::SCALAR);
        self.constants.push(Stmt::Let(v, Expr::Const(bits)));
        self.constant.insert((ty, bits), v);
        self.bits.insert(v, bits);
        v
    }

    /// A number as an operand.
    fn operand(&mut self, i: Int) -> Value {
        match i {
            Int::Const(n) => self.constant(Ty::I64, n as u64),
            Int::Value(v) => v,
        }
    }

    fn op(&mut self, op: Op, ty: Ty, shape: Shape, args: &[Value]) -> Value {
        self.push(ty, shape, Expr::Op(op, SmallVec::from_slice(args)))
    }

    /// An operation on two whole numbers.
    fn int_op(&mut self, op: Op, a: Int, b: Int) -> Int {
        if let (Int::Const(a), Int::Const(b)) = (a, b) {
            let types = [Ty::I64; 2];
            return Int::Const(gradus_core::scalar::evaluate(op, &types, &[a as u64, b as u64]) as i64);
        }
        let (a, b) = (self.operand(a), self.operand(b));
        self.op(op, Ty::I64, Shape::SCALAR, &[a, b]).into()
    }

    /// An operation on a number that the kernel is given and one that is known, before everything else.
    fn early(&mut self, op: Op, a: Int, b: i64) -> Int {
        let v = match self.early.get(&(op, a, b)) {
            Some(v) => *v,
            None => {
                let args = SmallVec::from_slice(&[self.operand(a), self.operand(Int::Const(b))]);
                let v = self.fresh(Ty::I64, Shape::SCALAR);
                self.constants.push(Stmt::Let(v, Expr::Op(op, args)));
                self.early.insert((op, a, b), v);
                v
            }
        };
        v.into()
    }

    /// A name of the kernel as it is called here; a constant if it is one.
    fn int(&self, i: Int) -> Int {
        match i {
            Int::Const(_) => i,
            Int::Value(v) => self.known(v).map_or_else(|| self.name(v).into(), |bits| Int::Const(bits as i64)),
        }
    }

    /// Adds `v·stride` (names of here) to a place.
    fn add_term(&mut self, at: &mut Index, v: Int, stride: Int) {
        let (v, stride) = match (v, stride) {
            (Int::Const(v), Int::Const(s)) => {
                at.offset = at.offset.wrapping_add(v.wrapping_mul(s));
                return;
            }
            (Int::Value(v), s) | (s, Int::Value(v)) => (v, s),
        };
        if stride == Int::Const(0) {
            return;
        }
        match at.terms.iter().position(|(u, _)| *u == v) {
            None => at.terms.push((v, stride)),
            Some(k) => {
                at.terms[k].1 = self.int_op(Op::Add, at.terms[k].1, stride);
                if at.terms[k].1 == Int::Const(0) {
                    at.terms.remove(k);
                }
            }
        }
    }

    /// A place of scalars.
    fn index(&mut self, at: &Index) -> Index {
        let mut out = Index::at(at.offset);
        for (v, stride) in &at.terms {
            let (v, stride) = (self.int((*v).into()), self.int(*stride));
            self.add_term(&mut out, v, stride);
        }
        out
    }

    fn element(&mut self, buffer: Buffer, at: &Index) -> Access {
        Access { memory: Memory::Buffer(buffer), at: self.index(at), lanes: None }
    }

    /// A definition of a scalar.
    fn scalar(&mut self, v: Value, e: &ir::Expr) {
        let ty = self.module.ty(v);
        let name = match e {
            ir::Expr::Const(bits) => self.constant(ty, *bits),
            ir::Expr::Size(i) => self.push(ty, Shape::SCALAR, Expr::Size(*i)),
            ir::Expr::Op(op, args) => {
                let args: SmallVec<[Value; 3]> = args.iter().map(|a| self.name(*a)).collect();
                match self.function(*op, &args) {
                    Some(number) => self.run_function(number, ty, &args),
                    None => self.push(ty, Shape::SCALAR, Expr::Op(*op, args)),
                }
            }
            ir::Expr::Load(b, at) => {
                let access = self.element(*b, at);
                self.push(ty, Shape::SCALAR, Expr::Load(access))
            }
        };
        self.names.insert(v, name);
    }

    fn stmt(&mut self, s: &ir::Stmt) {
        match s {
            ir::Stmt::Let(v, _) if self.hoisted.contains(v) => {}
            ir::Stmt::Let(v, e) => self.scalar(*v, e),
            ir::Stmt::Store { buffer, at, value } => {
                let (access, value) = (self.element(*buffer, at), self.name(*value));
                self.body.push(Stmt::Store(access, value));
            }
            ir::Stmt::Loop(l) => {
                let to = self.int(l.count);
                self.any_loop(l, Int::Const(0), to);
            }
            s => self.main(s),
        }
    }

    fn any_loop(&mut self, l: &ir::Loop, from: Int, to: Int) {
        match l.kind {
            Kind::Serial => self.serial(l, (from, to), |w| l.body.iter().for_each(|s| w.stmt(s)), |_| Shape::SCALAR),
            Kind::Lanes => self.lanes(l, from, to),
        }
    }

    /// A loop of one iteration after the other; `shape` says what a carried value is.
    fn serial(
        &mut self,
        l: &ir::Loop,
        (from, to): (Int, Int),
        body: impl FnOnce(&mut Self),
        shape: impl Fn(&Carried) -> Shape,
    ) {
        let var = self.fresh(Ty::I64, Shape::SCALAR);
        self.names.insert(l.var, var);
        let mut carried = self.enter(&l.carried, shape);
        self.depth += 1;
        let inner = self.within(body);
        self.depth -= 1;
        self.leave(&l.carried, &mut carried);
        self.body.push(Stmt::Loop(Box::new(Loop { var, from, to, step: 1, left: None, carried, body: inner })));
    }

    /// What goes around a loop, as it is called in it; `shape` says what a value is.
    fn enter(&mut self, carried: &[Carried], shape: impl Fn(&Carried) -> Shape) -> Vec<Carried> {
        let mut here: Vec<Carried> = Vec::with_capacity(carried.len());
        for c in carried {
            let (ty, shape) = (self.module.ty(c.param), shape(c));
            let (param, result) = (self.fresh(ty, shape), self.fresh(ty, shape));
            here.push(Carried { init: self.name(c.init), param, next: param, result });
        }
        carried.iter().zip(&here).for_each(|(c, here)| {
            self.names.insert(c.param, here.param);
        });
        here
    }

    /// The same after its body: what is next, and what it is called behind the loop.
    fn leave(&mut self, carried: &[Carried], here: &mut [Carried]) {
        for (c, here) in carried.iter().zip(here) {
            here.next = self.name(c.next);
            self.names.insert(c.result, here.result);
        }
    }

    /// What is written to a body of its own.
    fn within(&mut self, f: impl FnOnce(&mut Self)) -> Vec<Stmt> {
        let outer = std::mem::take(&mut self.body);
        f(self);
        std::mem::replace(&mut self.body, outer)
    }

    /// Computes before a loop of lanes what is the same in all its iterations. Operations are total, so it does no harm where the loop
    /// does not come to them; an element is read before only if the loop runs (`runs`) and does not write that buffer. (Another buffer may lie at the same
    /// place, but iterations are independent: none writes what another reads.)
    fn hoist(&mut self, l: &ir::Loop, varying: &Varying, runs: bool) {
        let (mut inside, mut stored) = (FxHashSet::default(), FxHashSet::default());
        inside.insert(l.var);
        defined(&l.body, &mut inside, &mut stored);
        self.hoist_from(&l.body, varying, (&mut inside, &stored), runs);
    }

    fn hoist_from(
        &mut self,
        body: &[ir::Stmt],
        varying: &Varying,
        (inside, stored): (&mut FxHashSet<Value>, &FxHashSet<Buffer>),
        runs: bool,
    ) {
        for s in body {
            match s {
                ir::Stmt::Let(v, _) if varying.contains(*v) || varying.same.contains(v) => {}
                ir::Stmt::Let(v, e) => {
                    let outer = |i: &Int| !matches!(i, Int::Value(v) if inside.contains(v));
                    let early = match e {
                        ir::Expr::Const(_) | ir::Expr::Size(_) => true,
                        ir::Expr::Op(Op::Special(_), _) => false,
                        ir::Expr::Op(_, args) => args.iter().all(|a| !inside.contains(a)),
                        ir::Expr::Load(b, at) => {
                            let known = at.terms.iter().all(|(v, s)| !inside.contains(v) && outer(s));
                            runs && !stored.contains(b) && known
                        }
                    };
                    if early {
                        self.scalar(*v, e);
                        inside.remove(v);
                        self.hoisted.insert(*v);
                    }
                }
                ir::Stmt::Loop(l) => self.hoist_from(&l.body, varying, (inside, stored), false),
                _ => {}
            }
        }
    }
}

/// What a body defines, and which buffers it writes to.
fn defined(body: &[ir::Stmt], values: &mut FxHashSet<Value>, stored: &mut FxHashSet<Buffer>) {
    for s in body {
        match s {
            ir::Stmt::Let(v, _) => drop(values.insert(*v)),
            ir::Stmt::Store { buffer, .. } => drop(stored.insert(*buffer)),
            ir::Stmt::Loop(l) => {
                values.insert(l.var);
                l.carried.iter().for_each(|c| values.extend([c.param, c.result]));
                defined(&l.body, values, stored);
            }
            _ => {}
        }
    }
}

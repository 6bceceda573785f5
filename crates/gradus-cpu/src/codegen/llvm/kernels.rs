//! Kernels: the vector language as LLVM text.
//!
//! LLVM is not asked to move anything out of loops. What is the same in all iterations of one (a scalar in all lanes, the part of an address that does not
//! change, a mask) is written before it, at the level of the loop in which what it is made of is defined.

use rustc_hash::FxHashMap;

use crate::error::{Result, error, fail};
use crate::ir::{Carried, Int, Kernel, Op, Ty, Value};
use crate::vector::{Code, Expr, Loop, Shape as Lanes, Stmt, vectorize};

use super::emit::{CONVENTION, Emitter, UNROLL, function};
use super::ops::{line, put};
use super::text::{Hole, Operand, Shape, int, scalar_name, stored};

/// The kernel that is written.
pub(super) struct Writing<'a> {
    pub(super) code: &'a Code,
    pub(super) values: Vec<Operand>,
    /// In how many loops each value is defined.
    levels: Vec<u32>,
    /// Before each of the loops around.
    before: Vec<Hole>,
    /// Scalars in all lanes.
    splats: FxHashMap<(Value, u32), Operand>,
    pub(super) masks: FxHashMap<(Int, u32, Mask), Operand>,
    /// Masks of the first lanes whose number is known.
    firsts: FxHashMap<Value, u32>,
}

/// What a mask is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Mask {
    /// Loads and stores.
    Memory,
    /// Choices between values. It says the same, and must not be the same: where both are one, LLVM 22 and 23 turn a choice of what was loaded into
    /// another load, behind stores that came between (llvm/llvm-project#215453).
    Values,
}

fn shape(ty: Ty, lanes: Lanes) -> Shape {
    Shape { ty, lanes: u32::from(lanes.lanes) }
}

/// How many statements a body is if all loops in it are written as iterations; none if one of them cannot be.
fn unrolled(body: &[Stmt]) -> Option<usize> {
    let mut sum = 1usize;
    for s in body {
        sum = sum.saturating_add(match s {
            Stmt::Let(..) | Stmt::Store(..) => 1,
            Stmt::Loop(l) => unrolled(&l.body)?.saturating_mul(usize::try_from(l.trips()?).ok()?),
            Stmt::Main(_) => return None,
        });
    }
    Some(sum)
}

impl<'a> Emitter<'a> {
    /// Writes a kernel's function and its call.
    pub(super) fn run(&mut self, number: u32) -> Result<()> {
        let module = self.module;
        let k = module.kernels.get(number as usize).ok_or_else(|| error!(Verify, "there is no kernel {number}"))?;
        let clean: String = k.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let name = format!("k{number}_{clean}");
        let code = vectorize(module, k, &self.machine);
        let outer = std::mem::replace(&mut self.f, function(false));
        let made = Kernels { e: self, w: Writing::new(&code) }.function(k, &name);
        self.f = outer;
        made?;
        if k.parallel { self.call_parallel(k, number, &name) } else { self.call_kernel(k, &name) }
    }
}

impl<'a> Writing<'a> {
    fn new(code: &'a Code) -> Writing<'a> {
        let n = code.types.len();
        Writing {
            code,
            values: vec![Operand::None; n],
            levels: vec![0; n],
            before: Vec::new(),
            splats: FxHashMap::default(),
            masks: FxHashMap::default(),
            firsts: FxHashMap::default(),
        }
    }
}

/// Writes a kernel.
pub(super) struct Kernels<'e, 'm, 'c> {
    pub(super) e: &'e mut Emitter<'m>,
    pub(super) w: Writing<'c>,
}

impl Kernels<'_, '_, '_> {
    fn function(&mut self, k: &Kernel, name: &str) -> Result<()> {
        match k.parallel {
            true => self.parallel(name),
            false => self.alone(k, name),
        }
    }

    /// A kernel that only the main body calls: scalars come and go in registers.
    fn alone(&mut self, k: &Kernel, name: &str) -> Result<()> {
        let code = self.w.code;
        let mut params = vec!["ptr %context".to_string()];
        for v in &code.inputs {
            let p = self.e.fresh();
            params.push(format!("{} %t{p}", scalar_name(code.ty(*v))));
            self.w.values[v.index()] = Operand::Name(p);
        }
        self.block(&code.body)?;
        let ret = self.e.outputs(k);
        let mut all = "poison".to_string();
        for (i, v) in code.outputs.iter().enumerate() {
            let (ty, a) = (scalar_name(code.ty(*v)), self.w.values[v.index()]);
            all = put!(self.e, "insertvalue {ret} {all}, {ty} {a}, {i}").to_string();
        }
        match code.outputs.is_empty() {
            true => line!(self.e, "ret void"),
            false => line!(self.e, "ret {ret} {all}"),
        }
        self.e.finish(&format!("define internal fastcc {ret} @{name}({}) #0", params.join(", ")));
        Ok(())
    }

    /// A kernel that threads call: scalars come in memory, and a range of the outermost loop.
    fn parallel(&mut self, name: &str) -> Result<()> {
        let code = self.w.code;
        for (i, v) in code.inputs.iter().enumerate() {
            let s = Shape { ty: code.ty(*v), lanes: 1 };
            let at = put!(self.e, "getelementptr i64, ptr %env, i64 {i}");
            let raw = put!(self.e, "load {}, ptr {at}, align 8", scalar_name(stored(s.ty)));
            self.w.values[v.index()] = self.e.unpack(s, raw);
        }
        if let Some((lo, hi)) = code.range {
            // Names for the parameters, which have fixed ones in the head.
            self.w.values[lo.index()] = put!(self.e, "add i64 %lo, 0");
            self.w.values[hi.index()] = put!(self.e, "add i64 %hi, 0");
        }
        self.block(&code.body)?;
        line!(self.e, "ret void");
        self.e
            .finish(&format!("define internal {CONVENTION}void @{name}(ptr %context, ptr %env, i64 %lo, i64 %hi) #0"));
        Ok(())
    }

    /// In how many loops this is.
    pub(super) fn level(&self) -> u32 {
        self.w.before.len() as u32
    }

    pub(super) fn level_of(&self, i: Int) -> u32 {
        match i {
            Int::Const(_) => 0,
            Int::Value(v) => self.w.levels[v.index()],
        }
    }

    pub(super) fn int(&self, i: Int) -> Operand {
        match i {
            Int::Const(n) => int(n),
            Int::Value(v) => self.w.values[v.index()],
        }
    }

    /// Writes something where a level of loops is: here, or before the loop that leads here. It must not begin blocks.
    pub(super) fn at_level<R>(&mut self, level: u32, f: impl FnOnce(&mut Self) -> R) -> R {
        let Some(hole) = self.w.before.get(level as usize).copied() else { return f(self) };
        let back = self.e.f.text.go(hole);
        let result = f(self);
        self.e.f.text.back(back);
        result
    }

    /// A value in so many lanes.
    pub(super) fn lanes(&mut self, v: Value, lanes: u32) -> Operand {
        let (ty, a) = (self.w.code.ty(v), self.w.values[v.index()]);
        if lanes == 1 || self.w.code.shape(v).is_vector() {
            return a;
        }
        let s = Shape { ty, lanes };
        if let Operand::Literal(ty, bits) = a {
            return self.e.constant(s.with(ty), bits);
        }
        if let Some(found) = self.w.splats.get(&(v, lanes)) {
            return *found;
        }
        let made = self.at_level(self.w.levels[v.index()], |k| k.e.splat(s, a));
        self.w.splats.insert((v, lanes), made);
        made
    }

    fn set(&mut self, v: Value, to: Operand) {
        self.w.levels[v.index()] = self.level();
        if std::mem::replace(&mut self.w.values[v.index()], to) != Operand::None {
            // In another iteration that is written out it was another value.
            self.w.splats.retain(|(u, _), _| *u != v);
            self.w.masks.retain(|(n, ..), _| *n != Int::Value(v));
        }
    }

    fn block(&mut self, body: &[Stmt]) -> Result<()> {
        body.iter().try_for_each(|s| self.stmt(s))
    }

    fn stmt(&mut self, s: &Stmt) -> Result<()> {
        match s {
            Stmt::Let(v, e) => {
                let to = self.expression(*v, e)?;
                self.set(*v, to);
                if matches!(e, Expr::Const(_)) {
                    self.w.levels[v.index()] = 0;
                }
                Ok(())
            }
            Stmt::Store(access, v) => {
                self.store(access, *v);
                Ok(())
            }
            Stmt::Loop(l) => self.loop_(l),
            Stmt::Main(_) => fail!(Rule, "a kernel has a step of a main body"),
        }
    }

    fn expression(&mut self, v: Value, e: &Expr) -> Result<Operand> {
        let ty = self.w.code.ty(v);
        let s = shape(ty, self.w.code.shape(v));
        Ok(match e {
            Expr::Const(bits) => Operand::Literal(ty, *bits),
            Expr::Size(i) => self.e.size(*i),
            Expr::Op(op, args) => self.operation(*op, args, s)?,
            Expr::Load(access) => self.load(access, ty),
            Expr::Ramp(from, by) => self.e.ramp(s, *from, *by),
            Expr::Active(n) => {
                if let Int::Const(n) = n {
                    self.w.firsts.insert(v, *n as u32);
                }
                self.mask(*n, s.lanes, Mask::Values)
            }
            Expr::Half(of, upper) => {
                let (whole, a) = (shape(ty, self.w.code.shape(*of)), self.w.values[of.index()]);
                let from = if *upper { s.lanes } else { 0 };
                match s.lanes {
                    1 => put!(self.e, "extractelement {whole} {a}, i64 {from}"),
                    n => self.e.shuffle(whole, a, Operand::None, (from..from + n).map(Some)),
                }
            }
            // A vector of one lane is a scalar here.
            Expr::First(of) => self.w.values[of.index()],
        })
    }

    fn operation(&mut self, op: Op, args: &[Value], s: Shape) -> Result<Operand> {
        let types: smallvec::SmallVec<[Ty; 3]> = args.iter().map(|a| self.w.code.ty(*a)).collect();
        if let (Op::Select, Some(n)) = (op, self.w.firsts.get(&args[0]).copied()) {
            let (a, b) = (self.lanes(args[1], s.lanes), self.lanes(args[2], s.lanes));
            return Ok(self.e.shuffle(s, a, b, (0..s.lanes).map(|l| Some(if l < n { l } else { l + s.lanes }))));
        }
        let args: smallvec::SmallVec<[Operand; 3]> = args.iter().map(|a| self.lanes(*a, s.lanes)).collect();
        match op {
            Op::Special(which) => Ok(self.e.special(which, Shape { ty: types[0], lanes: s.lanes }, &args)),
            Op::Math(f) => self.e.elementary(f, types[0], &args),
            op => self.e.op(op, &types, &args, s.lanes),
        }
    }

    /// Which lanes are among the first so many.
    pub(super) fn mask(&mut self, n: Int, lanes: u32, to: Mask) -> Operand {
        if let Some(found) = self.w.masks.get(&(n, lanes, to)) {
            return *found;
        }
        // Counters that fill a register of 16 bytes: LLVM 22 forgets to clear the mask's lanes behind the last one where it has to widen the
        // comparison, and a store of bytes takes them for active.
        let (memory, values) = match lanes {
            16.. => (Ty::U8, Ty::U16),
            8..16 => (Ty::U16, Ty::U32),
            4..8 => (Ty::U32, Ty::U64),
            _ => (Ty::U64, Ty::U32),
        };
        let s = Shape { ty: if to == Mask::Memory { memory } else { values }, lanes };
        let made = self.at_level(self.level_of(n), |k| {
            let numbers = k.e.ramp(s, 0, 1);
            let all = match k.int(n) {
                Operand::Literal(_, n) => k.e.constant(s, n),
                n => {
                    let small = if s.ty == Ty::U64 { n } else { put!(k.e, "trunc i64 {n} to {}", scalar_name(s.ty)) };
                    k.e.splat(s, small)
                }
            };
            put!(k.e, "icmp ult {s} {numbers}, {all}")
        });
        self.w.masks.insert((n, lanes, to), made);
        made
    }

    fn carried_shape(&self, c: &Carried) -> Shape {
        shape(self.w.code.ty(c.param), self.w.code.shape(c.param))
    }

    fn loop_(&mut self, l: &Loop) -> Result<()> {
        let shapes: Vec<Shape> = l.carried.iter().map(|c| self.carried_shape(c)).collect();
        let trips = l.trips();
        if trips == Some(0)
            || matches!((trips, unrolled(&l.body)), (Some(n), Some(cost)) if n.saturating_mul(cost as i64) <= UNROLL)
        {
            return self.unroll(l, &shapes, trips.unwrap_or(0));
        }
        let inits: Vec<Operand> = l.carried.iter().zip(&shapes).map(|(c, s)| self.lanes(c.init, s.lanes)).collect();
        let (from, to) = (self.int(l.from), self.int(l.to));
        let hole = self.e.f.text.hole();
        let (body, exit) = (self.e.label(), self.e.label());
        let before = self.e.f.block;
        match trips {
            Some(_) => line!(self.e, "br label %L{body}"),
            None => {
                let runs = put!(self.e, "icmp slt i64 {from}, {to}");
                line!(self.e, "br i1 {runs}, label %L{body}, label %L{exit}");
            }
        }
        self.e.start(body);
        let phis = self.e.f.text.hole();
        self.w.before.push(hole);
        let var = Operand::Name(self.e.fresh());
        self.set(l.var, var);
        for c in &l.carried {
            let name = Operand::Name(self.e.fresh());
            self.set(c.param, name);
        }
        let params: Vec<Operand> = l.carried.iter().map(|c| self.w.values[c.param.index()]).collect();
        self.block(&l.body)?;
        let nexts: Vec<Operand> = l.carried.iter().zip(&shapes).map(|(c, s)| self.lanes(c.next, s.lanes)).collect();
        self.w.before.pop();
        let next = put!(self.e, "add nsw i64 {var}, {}", l.step);
        let more = put!(self.e, "icmp slt i64 {next}, {to}");
        line!(self.e, "br i1 {more}, label %L{body}, label %L{exit}");
        let last = self.e.f.block;
        self.e.inside(phis, |e| {
            line!(e, "{var} = phi i64 [ {from}, %L{before} ], [ {next}, %L{last} ]");
            for (i, s) in shapes.iter().enumerate() {
                line!(e, "{} = phi {s} [ {}, %L{before} ], [ {}, %L{last} ]", params[i], inits[i], nexts[i]);
            }
        });
        self.e.start(exit);
        for (i, c) in l.carried.iter().enumerate() {
            let result = match trips {
                Some(_) => nexts[i],
                None => put!(self.e, "phi {} [ {}, %L{before} ], [ {}, %L{last} ]", shapes[i], inits[i], nexts[i]),
            };
            self.set(c.result, result);
        }
        if let Some(left) = l.left {
            let after = match trips {
                Some(_) => next,
                None => put!(self.e, "phi i64 [ {from}, %L{before} ], [ {next}, %L{last} ]"),
            };
            self.set(left, after);
        }
        Ok(())
    }

    /// A short loop as its iterations, one behind the other. (LLVM's own pass for it takes very long for functions of many loops.)
    fn unroll(&mut self, l: &Loop, shapes: &[Shape], trips: i64) -> Result<()> {
        let mut values: Vec<Operand> = l.carried.iter().zip(shapes).map(|(c, s)| self.lanes(c.init, s.lanes)).collect();
        let from = if let Int::Const(from) = l.from { from } else { 0 };
        for i in 0..trips {
            self.set(l.var, int(from + i * l.step));
            for (c, value) in l.carried.iter().zip(&values) {
                self.set(c.param, *value);
            }
            self.block(&l.body)?;
            values = l.carried.iter().zip(shapes).map(|(c, s)| self.lanes(c.next, s.lanes)).collect();
        }
        for (c, value) in l.carried.iter().zip(values) {
            self.set(c.result, value);
        }
        if let Some(left) = l.left {
            self.set(left, int(from + trips * l.step));
        }
        Ok(())
    }
}

//! The verifier of the kernel language: types, scopes, and what may stand where.

use crate::error::{Error, Result, error, fail};

use super::{Carried, Expr, Function, Index, Int, Kernel, Kind, Loop, Module, Stmt, Ty, Value};

/// Where a statement stands.
#[derive(Clone, Copy, PartialEq)]
enum Body {
    Main,
    Piece,
    Kernel,
    Lanes,
}

struct Verifier<'a> {
    module: &'a Module,
    /// Whether a value is visible here.
    visible: Vec<bool>,
    /// The last function that defined a value: each does it once at most.
    defined: Vec<u32>,
    /// The function that is looked at: a piece or, as the last one, the main function.
    function: u32,
    /// Which kernels were run: each is run in one place.
    ran: Vec<bool>,
    /// What a body made visible, to be hidden at its end.
    scope: Vec<Value>,
}

/// Checks a module; an error says what is wrong with it.
pub fn verify(module: &Module) -> Result<()> {
    let n = module.types.len();
    let ran = vec![false; module.kernels.len()];
    let mut v = Verifier { module, visible: vec![false; n], defined: vec![0; n], function: 1, ran, scope: Vec::new() };
    module.functions.iter().try_for_each(|f| v.function(f))?;
    for piece in &module.pieces {
        v.function += 1;
        v.scoped(|v| v.block(piece, Body::Piece))?;
    }
    v.function += 1;
    v.block(&module.main, Body::Main)
}

impl Verifier<'_> {
    fn function(&mut self, f: &Function) -> Result<()> {
        let op = f.of.name;
        if f.params.len() != f.of.arity || !f.ty.is_float() {
            fail!(Verify, "a function for {op} of {} does not take {} operands", f.ty, f.params.len());
        }
        self.scoped(|this| {
            for p in &f.params {
                this.define(*p)?;
                this.typed(*p, f.ty, "an operand of a function")?;
            }
            if f.body.iter().any(|s| !matches!(s, Stmt::Let(_, Expr::Const(_) | Expr::Op(..)))) {
                fail!(Verify, "a function for {op} does more than to compute");
            }
            this.block(&f.body, Body::Kernel)?;
            this.typed(f.result, f.ty, "the result of a function")
        })
    }

    fn define(&mut self, v: Value) -> Result<()> {
        let Some(seen) = self.defined.get_mut(v.index()) else { fail!(Verify, "{v} has no type") };
        if std::mem::replace(seen, self.function) == self.function {
            fail!(Verify, "{v} is defined twice");
        }
        self.visible[v.index()] = true;
        self.scope.push(v);
        Ok(())
    }

    fn used(&self, v: Value) -> Result<Ty> {
        match self.visible.get(v.index()) {
            Some(true) => Ok(self.module.ty(v)),
            _ => Err(error!(Verify, "{v} is used where it is not defined")),
        }
    }

    fn typed(&self, v: Value, ty: Ty, what: &str) -> Result<()> {
        match self.used(v)? {
            t if t == ty => Ok(()),
            t => Err(error!(Verify, "{what}: {v} is {t} where {ty} is wanted")),
        }
    }

    fn int(&self, i: Int, what: &str) -> Result<()> {
        match i {
            Int::Const(_) => Ok(()),
            Int::Value(v) => self.typed(v, Ty::I64, what),
        }
    }

    fn index(&self, at: &Index) -> Result<()> {
        for (k, (v, stride)) in at.terms.iter().enumerate() {
            self.typed(*v, Ty::I64, "an index")?;
            // Who asks for the stride of a value takes the first.
            if at.terms[..k].iter().any(|(before, _)| before == v) {
                fail!(Verify, "{v} stands twice in the place {at}");
            }
            self.int(*stride, "a stride")?;
        }
        Ok(())
    }

    fn block(&mut self, body: &[Stmt], place: Body) -> Result<()> {
        body.iter().try_for_each(|s| self.stmt(s, place))
    }

    /// Runs `f` with definitions that end with it; those of `keep` stay visible... they are named by the caller.
    fn scoped(&mut self, f: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let start = self.scope.len();
        f(self)?;
        for v in self.scope.drain(start..) {
            self.visible[v.index()] = false;
        }
        Ok(())
    }

    fn begin_carried(&mut self, carried: &[Carried]) -> Result<()> {
        for c in carried {
            let ty = self.used(c.init)?;
            for v in [c.param, c.next, c.result] {
                if self.module.types.get(v.index()) != Some(&ty) {
                    fail!(Verify, "{v} and {} go around one loop with two types", c.init);
                }
            }
        }
        carried.iter().try_for_each(|c| self.define(c.param))
    }

    fn stmt(&mut self, s: &Stmt, place: Body) -> Result<()> {
        let main = matches!(place, Body::Main | Body::Piece);
        match s {
            Stmt::Let(v, e) => {
                self.expr(*v, e)?;
                self.define(*v)
            }
            Stmt::Store { buffer, at, value } => {
                let Some(info) = self.module.buffers.get(buffer.index()) else { fail!(Verify, "there is no {buffer}") };
                self.index(at)?;
                self.typed(*value, info.ty, "a store")
            }
            Stmt::Loop(l) => self.loop_(l, place),
            Stmt::While(w) if main => {
                self.scoped(|this| {
                    this.begin_carried(&w.carried)?;
                    this.block(&w.before, place)?;
                    this.typed(w.condition, Ty::Bool, "a condition")?;
                    this.block(&w.body, place)?;
                    w.carried.iter().try_for_each(|c| this.used(c.next).map(|_| ()))
                })?;
                w.carried.iter().try_for_each(|c| self.define(c.result))
            }
            Stmt::Switch(s) if main => {
                self.typed(s.index, Ty::I64, "a switch")?;
                if s.cases.is_empty() {
                    fail!(Verify, "a switch has no cases");
                }
                for (body, ends) in &s.cases {
                    self.scoped(|this| {
                        this.block(body, place)?;
                        if ends.len() != s.results.len() {
                            fail!(Verify, "a case gives {} values, not {}", ends.len(), s.results.len());
                        }
                        ends.iter().zip(&s.results).try_for_each(|(e, r)| this.typed(*e, this.module.ty(*r), "a case"))
                    })?;
                }
                s.results.iter().try_for_each(|r| self.define(*r))
            }
            Stmt::Kernel(k) if main => {
                let Some(kernel) = self.module.kernels.get(*k as usize) else {
                    fail!(Verify, "there is no kernel {k}")
                };
                if std::mem::replace(&mut self.ran[*k as usize], true) {
                    fail!(Verify, "kernel {} is run in two places", kernel.name);
                }
                self.kernel(kernel)
            }
            Stmt::Call(c) if main => {
                for (b, at) in &c.buffers {
                    if b.index() >= self.module.buffers.len() {
                        fail!(Verify, "there is no {b}");
                    }
                    self.index(at)?;
                }
                Ok(())
            }
            Stmt::Swap(a, b) if main => {
                if a.index().max(b.index()) >= self.module.buffers.len() {
                    fail!(Verify, "there is no buffer to swap");
                }
                Ok(())
            }
            Stmt::Piece(p) if place == Body::Main => match self.module.pieces.get(*p as usize) {
                Some(_) => Ok(()),
                None => Err(error!(Verify, "there is no piece {p}")),
            },
            Stmt::Note(_) if main => Ok(()),
            Stmt::While(_) => Err(outside("a `while`")),
            Stmt::Switch(_) => Err(outside("a `switch`")),
            Stmt::Kernel(_) => Err(outside("a kernel's run")),
            Stmt::Call(_) => Err(outside("a call")),
            Stmt::Swap(..) => Err(outside("a swap")),
            Stmt::Piece(_) => Err(error!(Verify, "a piece can only be run by the main body, and not by another piece")),
            Stmt::Note(_) => Err(outside("a note")),
        }
    }

    fn kernel(&mut self, k: &Kernel) -> Result<()> {
        for v in &k.inputs {
            self.used(*v)?;
        }
        // A kernel sees its inputs and nothing else of the main body.
        let outside = std::mem::take(&mut self.visible);
        self.visible = vec![false; outside.len()];
        k.inputs.iter().for_each(|v| self.visible[v.index()] = true);
        let start = self.scope.len();
        if k.parallel {
            let loops = k.body.iter().filter(|s| !matches!(s, Stmt::Let(..))).count();
            let Some(Stmt::Loop(l)) = k.body.last() else {
                fail!(Verify, "kernel {} is parallel without a loop", k.name)
            };
            if loops != 1 || !l.carried.is_empty() || !l.folds.is_empty() || !k.outputs.is_empty() {
                fail!(Verify, "kernel {} is parallel but its iterations depend on each other", k.name);
            }
        }
        self.block(&k.body, Body::Kernel)?;
        for v in &k.outputs {
            self.used(*v)?;
        }
        self.scope.truncate(start);
        self.visible = outside;
        for v in &k.outputs {
            self.visible[v.index()] = true;
            self.scope.push(*v);
        }
        Ok(())
    }

    fn loop_(&mut self, l: &Loop, place: Body) -> Result<()> {
        self.int(l.count, "the count of a loop")?;
        let inside = match (l.kind, place) {
            (Kind::Serial, place) => place,
            (Kind::Lanes, Body::Kernel) => Body::Lanes,
            (Kind::Lanes, _) => fail!(Verify, "a loop of lanes stands in the main body or in another"),
        };
        if self.module.types.get(l.var.index()) != Some(&Ty::I64) {
            fail!(Verify, "the counter {} is no i64", l.var);
        }
        match l.kind {
            Kind::Lanes if !l.carried.is_empty() => fail!(Verify, "a loop of lanes carries values"),
            Kind::Serial if !l.folds.is_empty() => fail!(Verify, "a serial loop folds values"),
            _ => {}
        }
        self.scoped(|this| {
            this.define(l.var)?;
            this.begin_carried(&l.carried)?;
            this.block(&l.body, inside)?;
            l.carried.iter().try_for_each(|c| this.used(c.next).map(|_| ()))?;
            l.folds.iter().try_for_each(|f| this.typed(f.value, this.module.ty(f.result), "a fold"))
        })?;
        l.carried.iter().try_for_each(|c| self.define(c.result))?;
        l.folds.iter().try_for_each(|f| self.define(f.result))
    }

    fn expr(&self, v: Value, e: &Expr) -> Result<()> {
        let Some(&ty) = self.module.types.get(v.index()) else { fail!(Verify, "{v} has no type") };
        match e {
            Expr::Const(_) => Ok(()),
            Expr::Size(i) if *i < self.module.sizes && ty == Ty::I64 => Ok(()),
            Expr::Size(_) => Err(error!(Verify, "{v}: no such size")),
            Expr::Load(b, at) => {
                self.index(at)?;
                match self.module.buffers.get(b.index()) {
                    Some(info) if info.ty == ty => Ok(()),
                    _ => Err(error!(Verify, "{v} is {ty} and cannot be read from {b}")),
                }
            }
            Expr::Op(op, args) => {
                let types = args.iter().map(|a| self.used(*a)).collect::<Result<Vec<_>>>()?;
                if !op.accepts(&types) {
                    fail!(Verify, "{v}: {op} does not take {types:?}");
                }
                if op.result(&types) != ty {
                    fail!(Verify, "{v} is {ty} where {op} gives {}", op.result(&types));
                }
                Ok(())
            }
        }
    }
}

/// The error of what stands in a kernel.
fn outside(what: &str) -> Error {
    error!(Verify, "{what} can only stand in the main body")
}

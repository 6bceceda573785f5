//! Elementary functions written out as basic operations, the same for every code generator and for the interpreter; where a
//! main body has one very often, once for all its uses.

use std::convert::Infallible;

use gradus_core::scalar::{Half, Writer};
use rustc_hash::FxHashMap;

use super::rewrite::{Renames, Rewriter, rewrite};
use super::{Expr, Function, Math, Module, Op, Stmt, Ty, Value};

/// A function that stands more often than this in the main body is called there instead of written out.
///
/// Written out, a function is up to a hundred operations, and code for it takes up to two milliseconds. A call costs about a
/// nanosecond, but what is written out a few times LLVM still makes vectors of: up to about this number (the elements of
/// small arrays in a loop) that is worth two thirds of the time. Beyond it calls are as fast or faster, because the code
/// stays in the cache.
pub const OFTEN: usize = 64;

/// Replaces every elementary function by what it is made of, or, if the main body has it more than [`OFTEN`], by a function
/// of the module, which gives the same bits. Kernels have all of them written out: their lanes are vectors.
pub fn expand(module: Module) -> Module {
    expand_with(module, OFTEN)
}

/// As [`expand`], with another number of uses from which on a function is called.
pub fn expand_with(mut module: Module, often: usize) -> Module {
    // What is cut is done.
    if !module.pieces.is_empty() {
        return module;
    }
    let mut uses = Vec::new();
    count(&module, &module.main, &mut uses);
    for (of, ty, n) in uses {
        if n > often {
            let params: Vec<Value> = (0..of.arity).map(|_| module.value(ty)).collect();
            let mut body = Vec::new();
            let result = of.form(ty).write(&mut Recorder { module: &mut module, out: &mut body }, &params);
            module.functions.push(Function { of, ty, params, body, result });
        }
    }
    let called = module.functions.iter().map(|f| (f.of, f.ty)).collect();
    match rewrite(module, &mut Expander { called, narrowed: FxHashMap::default(), open: Vec::new(), main: true }) {
        Ok(m) => m,
        Err(never) => match never {},
    }
}

/// Counts the uses of each function, in the order in which they are met.
fn count(m: &Module, body: &[Stmt], uses: &mut Vec<(Math, Ty, usize)>) {
    for s in body {
        match s {
            Stmt::Let(v, Expr::Op(Op::Math(f), _)) => {
                let ty = m.ty(*v);
                match uses.iter_mut().find(|(g, t, _)| g == f && *t == ty) {
                    Some((_, _, n)) => *n += 1,
                    None => uses.push((*f, ty, 1)),
                }
            }
            Stmt::Loop(l) => count(m, &l.body, uses),
            Stmt::While(w) => [&w.before, &w.body].into_iter().for_each(|b| count(m, b, uses)),
            Stmt::Switch(s) => s.cases.iter().for_each(|(b, _)| count(m, b, uses)),
            _ => {}
        }
    }
}

struct Expander {
    /// The functions that the main body calls.
    called: Vec<(Math, Ty)>,
    /// What half floats of the bodies that are around were made of.
    narrowed: FxHashMap<Value, (Half, Value)>,
    /// The half floats that each body around makes.
    open: Vec<Vec<Value>>,
    /// Whether this is the main body, which comes first.
    main: bool,
}

impl Rewriter<Infallible> for Expander {
    fn define(
        &mut self,
        module: &mut Module,
        renames: &mut Renames,
        out: &mut Vec<Stmt>,
        v: Value,
        e: Expr,
    ) -> Result<(), Infallible> {
        let ty = module.ty(v);
        match &e {
            Expr::Op(Op::Math(f), args) if !(self.main && self.called.contains(&(*f, ty))) => {
                let result = f.form(ty).write(&mut Recorder { module, out }, args);
                renames.set(v, result);
            }
            // Rounded and wide again: what lies between is not made. Where the half float is used too, both begin with the same steps.
            Expr::Op(Op::Widen(half), args)
                if let Some((_, x)) = self.narrowed.get(&args[0]).filter(|n| n.0 == *half) =>
            {
                renames.set(v, half.rounding().write(&mut Recorder { module, out }, &[*x]));
            }
            Expr::Op(Op::Widen(half), args) => {
                renames.set(v, half.widening().write(&mut Recorder { module, out }, args));
            }
            Expr::Op(Op::Narrow(half), args) => {
                let narrow = half.narrowing().write(&mut Recorder { module, out }, args);
                renames.set(v, narrow);
                self.narrowed.insert(narrow, (*half, args[0]));
                self.open.last_mut().unwrap_or(&mut Vec::new()).push(narrow);
            }
            Expr::Op(Op::Special(s), args) if let Some(form) = s.form(ty) => {
                renames.set(v, form.write(&mut Recorder { module, out }, args));
            }
            _ => out.push(Stmt::Let(v, e)),
        }
        Ok(())
    }

    fn enter(&mut self) {
        self.open.push(Vec::new());
    }

    fn leave(&mut self) {
        for v in self.open.pop().unwrap_or_default() {
            // A kernel is given what the main body computed, and not what that was computed of.
            self.narrowed.remove(&v);
        }
        self.main &= !self.open.is_empty();
    }
}

/// Writes what a function is made of.
struct Recorder<'a> {
    module: &'a mut Module,
    out: &'a mut Vec<Stmt>,
}

impl Recorder<'_> {
    fn define(&mut self, ty: Ty, e: Expr) -> Value {
        let v = self.module.value(ty);
        self.out.push(Stmt::Let(v, e));
        v
    }
}

impl Writer for Recorder<'_> {
    type Value = Value;

    fn number(&mut self, ty: Ty, bits: u64) -> Value {
        self.define(ty, Expr::Const(bits))
    }

    fn op(&mut self, op: Op, ty: Ty, args: &[Value]) -> Value {
        self.define(ty, Expr::Op(op, args.into()))
    }
}

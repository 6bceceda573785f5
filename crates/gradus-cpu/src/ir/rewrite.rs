//! Walking over all bodies of a module, with values renamed on the way.

use std::convert::Infallible;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::smallvec;

use super::{Carried, Expr, Index, Int, Module, Op, Stmt, Ty, Value};

/// Values that stand for others.
#[derive(Debug, Default)]
pub(super) struct Renames(FxHashMap<Value, Value>);

impl Renames {
    pub fn set(&mut self, from: Value, to: Value) {
        self.0.insert(from, to);
    }

    /// The value that took the place of one, and of that, and so on: a kernel may turn what the main body made another value into.
    pub fn get(&self, mut v: Value) -> Value {
        while let Some(other) = self.0.get(&v) {
            v = *other;
        }
        v
    }

    fn int(&self, i: &mut Int) {
        if let Int::Value(v) = i {
            *v = self.get(*v);
        }
    }

    /// A place with values renamed. Where two turn out to be the same they become one, with the sum of their strides: whoever asks for the stride
    /// of a value is given one. `out` is the body before the place.
    fn index(&self, m: &mut Module, out: &mut Vec<Stmt>, at: &mut Index) {
        for (v, s) in &mut at.terms {
            *v = self.get(*v);
            self.int(s);
        }
        let mut k = 1;
        while k < at.terms.len() {
            let (v, stride) = at.terms[k];
            let Some(same) = at.terms[..k].iter().position(|(u, _)| *u == v) else {
                k += 1;
                continue;
            };
            at.terms.remove(k);
            at.terms[same].1 = sum(m, out, at.terms[same].1, stride);
            if at.terms[same].1 == Int::Const(0) {
                at.terms.remove(same);
                k -= 1;
            }
        }
    }

    fn ends(&self, carried: &mut [Carried]) {
        carried.iter_mut().for_each(|c| c.next = self.get(c.next));
    }
}

/// The sum of two strides.
fn sum(m: &mut Module, out: &mut Vec<Stmt>, a: Int, b: Int) -> Int {
    if let (Int::Const(a), Int::Const(b)) = (a, b) {
        return Int::Const(a.wrapping_add(b));
    }
    let mut define = |e: Expr| {
        let v = m.value(Ty::I64);
        out.push(Stmt::Let(v, e));
        v
    };
    let [a, b] = [a, b].map(|x| match x {
        Int::Const(n) => define(Expr::Const(n as u64)),
        Int::Value(v) => v,
    });
    Int::Value(define(Expr::Op(Op::Add, smallvec![a, b])))
}

/// What is done with a module's definitions, in order.
pub(super) trait Rewriter<E> {
    /// Is given the module, the renames, a value and its (renamed) expression, and writes what takes the place of its `Let`.
    fn define(&mut self, m: &mut Module, r: &mut Renames, out: &mut Vec<Stmt>, v: Value, e: Expr) -> Result<(), E>;

    /// A body begins: what is defined from here on is seen only in it.
    fn enter(&mut self) {}

    /// The body ends.
    fn leave(&mut self) {}
}

impl<E, F: FnMut(&mut Module, &mut Renames, &mut Vec<Stmt>, Value, Expr) -> Result<(), E>> Rewriter<E> for F {
    fn define(&mut self, m: &mut Module, r: &mut Renames, out: &mut Vec<Stmt>, v: Value, e: Expr) -> Result<(), E> {
        self(m, r, out, v, e)
    }
}

/// Rewrites every `Let`.
pub(super) fn rewrite<E>(module: Module, f: &mut dyn Rewriter<E>) -> Result<Module, E> {
    let mut m = module;
    let mut renames = Renames::default();
    let main = std::mem::take(&mut m.main);
    let mut kernels = std::mem::take(&mut m.kernels);
    m.main = body(&mut m, &mut renames, main, f)?;
    // The main body comes first, so that the inputs of kernels are renamed already.
    for k in &mut kernels {
        let mut seen = FxHashSet::default();
        k.inputs = k.inputs.iter().map(|v| renames.get(*v)).filter(|v| seen.insert(*v)).collect();
        let stmts = std::mem::take(&mut k.body);
        k.body = body(&mut m, &mut renames, stmts, f)?;
        // What turns out to be an input, or the same as another output, the main body has already.
        k.outputs = k.outputs.iter().map(|v| renames.get(*v)).filter(|v| seen.insert(*v)).collect();
    }
    m.kernels = kernels;
    let mut functions = std::mem::take(&mut m.functions);
    for x in &mut functions {
        let stmts = std::mem::take(&mut x.body);
        x.body = body(&mut m, &mut renames, stmts, f)?;
        x.result = renames.get(x.result);
    }
    m.functions = functions;
    // What a kernel gives may have another name now, and the main body reads it.
    let main = std::mem::take(&mut m.main);
    m.main = renamed(&mut m, &renames, main);
    Ok(m)
}

fn body<E>(m: &mut Module, renames: &mut Renames, stmts: Vec<Stmt>, f: &mut dyn Rewriter<E>) -> Result<Vec<Stmt>, E> {
    let mut out = Vec::with_capacity(stmts.len());
    f.enter();
    for s in stmts {
        match s {
            Stmt::Let(v, mut e) => {
                match &mut e {
                    Expr::Op(_, args) => args.iter_mut().for_each(|a| *a = renames.get(*a)),
                    Expr::Load(_, at) => renames.index(m, &mut out, at),
                    Expr::Const(_) | Expr::Size(_) => {}
                }
                f.define(m, renames, &mut out, v, e)?;
            }
            Stmt::Store { buffer, mut at, value } => {
                renames.index(m, &mut out, &mut at);
                out.push(Stmt::Store { buffer, at, value: renames.get(value) });
            }
            Stmt::Loop(mut l) => {
                renames.int(&mut l.count);
                l.carried.iter_mut().for_each(|c| c.init = renames.get(c.init));
                l.body = body(m, renames, l.body, f)?;
                renames.ends(&mut l.carried);
                l.folds.iter_mut().for_each(|x| x.value = renames.get(x.value));
                out.push(Stmt::Loop(l));
            }
            Stmt::While(mut w) => {
                w.carried.iter_mut().for_each(|c| c.init = renames.get(c.init));
                w.before = body(m, renames, w.before, f)?;
                w.condition = renames.get(w.condition);
                w.body = body(m, renames, w.body, f)?;
                renames.ends(&mut w.carried);
                out.push(Stmt::While(w));
            }
            Stmt::Switch(mut s) => {
                s.index = renames.get(s.index);
                for (stmts, ends) in &mut s.cases {
                    *stmts = body(m, renames, std::mem::take(stmts), f)?;
                    ends.iter_mut().for_each(|v| *v = renames.get(*v));
                }
                out.push(Stmt::Switch(s));
            }
            Stmt::Call(mut c) => {
                c.buffers.iter_mut().for_each(|(_, at)| renames.index(m, &mut out, at));
                out.push(Stmt::Call(c));
            }
            s @ (Stmt::Kernel(_) | Stmt::Swap(..) | Stmt::Piece(_) | Stmt::Note(_)) => out.push(s),
        }
    }
    f.leave();
    Ok(out)
}

/// The same statements with values renamed.
fn renamed(m: &mut Module, renames: &Renames, stmts: Vec<Stmt>) -> Vec<Stmt> {
    let mut again = Renames(renames.0.clone());
    let mut keep = |_: &mut Module, _: &mut Renames, out: &mut Vec<Stmt>, v, e| -> Result<(), Infallible> {
        out.push(Stmt::Let(v, e));
        Ok(())
    };
    match body(m, &mut again, stmts, &mut keep) {
        Ok(stmts) => stmts,
        Err(never) => match never {},
    }
}

/// Every kernel has the constants that it uses, and is not given them: what is known of a number is known of what is computed with it.
pub(super) fn own_constants(mut m: Module) -> Module {
    fn constants(stmts: &[Stmt], known: &mut FxHashMap<Value, u64>) {
        for s in stmts {
            match s {
                Stmt::Let(v, Expr::Const(bits)) => drop(known.insert(*v, *bits)),
                Stmt::Loop(l) => constants(&l.body, known),
                Stmt::While(w) => [&w.before, &w.body].into_iter().for_each(|b| constants(b, known)),
                Stmt::Switch(s) => s.cases.iter().for_each(|(b, _)| constants(b, known)),
                _ => {}
            }
        }
    }
    let mut known = FxHashMap::default();
    constants(&m.main, &mut known);
    let mut kernels = std::mem::take(&mut m.kernels);
    for k in &mut kernels {
        let mut renames = Renames::default();
        let mut own = Vec::new();
        k.inputs.retain(|v| {
            let Some(bits) = known.get(v) else { return true };
            let ty = m.ty(*v);
            let new = m.value(ty);
            renames.set(*v, new);
            own.push(Stmt::Let(new, Expr::Const(*bits)));
            false
        });
        if !own.is_empty() {
            let stmts = std::mem::take(&mut k.body);
            own.extend(renamed(&mut m, &renames, stmts));
            k.body = own;
        }
    }
    m.kernels = kernels;
    m
}

/// Calls a function with every value that a body uses.
pub(crate) fn each_use_of(body: &[Stmt], f: &mut dyn FnMut(Value)) {
    for s in body {
        match s {
            Stmt::Let(_, e) => each_use(e, f),
            Stmt::Kernel(_) | Stmt::Swap(..) | Stmt::Piece(_) | Stmt::Note(_) => {}
            Stmt::Store { at, value, .. } => {
                each_in(at, f);
                f(*value);
            }
            Stmt::Loop(l) => {
                if let Int::Value(v) = l.count {
                    f(v);
                }
                each_use_of(&l.body, f);
                l.carried.iter().for_each(|c| [c.init, c.next].into_iter().for_each(&mut *f));
                l.folds.iter().for_each(|fold| f(fold.value));
            }
            Stmt::While(w) => {
                each_use_of(&w.before, f);
                each_use_of(&w.body, f);
                f(w.condition);
                w.carried.iter().for_each(|c| [c.init, c.next].into_iter().for_each(&mut *f));
            }
            Stmt::Switch(s) => {
                f(s.index);
                for (body, ends) in &s.cases {
                    each_use_of(body, f);
                    ends.iter().for_each(|v| f(*v));
                }
            }
            Stmt::Call(c) => c.buffers.iter().for_each(|(_, at)| each_in(at, f)),
        }
    }
}

/// How often each value is used.
pub(super) fn uses(m: &Module) -> Vec<u32> {
    let mut n = vec![0; m.types.len()];
    let mut count = |v: Value| n[v.index()] += 1;
    each_use_of(&m.main, &mut count);
    for k in &m.kernels {
        each_use_of(&k.body, &mut count);
        k.inputs.iter().chain(&k.outputs).for_each(|v| count(*v));
    }
    for f in &m.functions {
        each_use_of(&f.body, &mut count);
        count(f.result);
    }
    n
}

/// Drops every definition that nothing uses.
pub(super) fn sweep(mut m: Module) -> Module {
    fn body(stmts: &mut Vec<Stmt>, n: &mut [u32]) {
        let mut kept: Vec<Stmt> = Vec::with_capacity(stmts.len());
        // From the end, so that what only a dropped one used goes too.
        while let Some(mut s) = stmts.pop() {
            match &mut s {
                Stmt::Let(v, e) if n[v.index()] == 0 => {
                    each_use(e, &mut |u| n[u.index()] -= 1);
                    continue;
                }
                Stmt::Loop(l) => body(&mut l.body, n),
                Stmt::While(w) => {
                    body(&mut w.body, n);
                    body(&mut w.before, n);
                }
                Stmt::Switch(s) => s.cases.iter_mut().for_each(|(stmts, _)| body(stmts, n)),
                _ => {}
            }
            kept.push(s);
        }
        kept.reverse();
        *stmts = kept;
    }
    let mut n = uses(&m);
    // What kernels use of the main body is known before that is looked at.
    for k in &mut m.kernels {
        body(&mut k.body, &mut n);
    }
    for f in &mut m.functions {
        body(&mut f.body, &mut n);
    }
    body(&mut m.main, &mut n);
    m
}

pub(super) fn each_use(e: &Expr, f: &mut dyn FnMut(Value)) {
    match e {
        Expr::Op(_, args) => args.iter().for_each(|a| f(*a)),
        Expr::Load(_, at) => each_in(at, f),
        Expr::Const(_) | Expr::Size(_) => {}
    }
}

fn each_in(at: &Index, f: &mut dyn FnMut(Value)) {
    for (v, s) in &at.terms {
        f(*v);
        if let Int::Value(s) = s {
            f(*s);
        }
    }
}

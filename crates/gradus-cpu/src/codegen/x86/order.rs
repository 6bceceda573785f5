//! Bools next to where they are used.
//!
//! There are few mask registers. A comparison that only one later operation of the same body uses is made just before that
//! one: what it compares is in vector registers, of which there are more.

use crate::ir::{Expr, Index, Int, Kernel, Module, Stmt, Ty, Value};

/// The kernel with its bools in another order.
pub fn ordered(module: &Module, kernel: &Kernel) -> Kernel {
    let uses = uses(module, kernel);
    let body = block(module, &kernel.body, &uses);
    kernel.with_body(body)
}

/// How often each value of a kernel is used; twice where it must stay as it is.
pub fn uses(module: &Module, kernel: &Kernel) -> Vec<u32> {
    let mut uses = vec![0u32; module.types.len()];
    count(&kernel.body, &mut uses);
    kernel.outputs.iter().for_each(|v| uses[v.index()] += 2);
    uses
}

fn count(body: &[Stmt], uses: &mut [u32]) {
    let index = |at: &Index, uses: &mut [u32]| {
        for (v, s) in &at.terms {
            uses[v.index()] += 1;
            if let Int::Value(s) = s {
                uses[s.index()] += 1;
            }
        }
    };
    for s in body {
        match s {
            Stmt::Let(_, Expr::Op(_, args)) => args.iter().for_each(|a| uses[a.index()] += 1),
            Stmt::Let(_, Expr::Load(_, at)) => index(at, uses),
            Stmt::Store { at, value, .. } => {
                index(at, uses);
                uses[value.index()] += 2;
            }
            Stmt::Loop(l) => {
                l.carried.iter().for_each(|c| [c.init, c.next].iter().for_each(|v| uses[v.index()] += 2));
                l.folds.iter().for_each(|f| uses[f.value.index()] += 2);
                count(&l.body, uses);
            }
            _ => {}
        }
    }
}

/// A statement, after those bools that wait for it.
fn place(s: Stmt, waiting: &mut Vec<(Value, Stmt)>, out: &mut Vec<Stmt>) {
    if let Stmt::Let(_, Expr::Op(_, args)) = &s {
        for a in args {
            if let Some(i) = waiting.iter().position(|(v, _)| v == a) {
                let (_, bool) = waiting.swap_remove(i);
                place(bool, waiting, out);
            }
        }
    }
    out.push(s);
}

fn place_all(waiting: &mut Vec<(Value, Stmt)>, out: &mut Vec<Stmt>) {
    while let Some((_, s)) = waiting.pop() {
        place(s, waiting, out);
    }
}

fn block(module: &Module, body: &[Stmt], uses: &[u32]) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(body.len());
    let mut waiting: Vec<(Value, Stmt)> = Vec::new();
    for s in body {
        match s {
            Stmt::Let(v, Expr::Op(..)) if module.ty(*v) == Ty::Bool && uses[v.index()] == 1 => {
                waiting.push((*v, s.clone()));
            }
            Stmt::Loop(l) => {
                // What is used in a loop is made before it.
                place_all(&mut waiting, &mut out);
                let mut l = l.clone();
                l.body = block(module, &l.body, uses);
                out.push(Stmt::Loop(l));
            }
            s => place(s.clone(), &mut waiting, &mut out),
        }
    }
    place_all(&mut waiting, &mut out);
    out
}

//! Products that only a sum takes in are rounded together with it, as every C compiler does it by default. It is a pass over
//! the kernel language, so that all code generators give the same bits.

use std::convert::Infallible;

use rustc_hash::FxHashMap;
use smallvec::smallvec;

use super::rewrite::{Renames, rewrite, uses};
use super::{Expr, Module, Op, Stmt, Value};

/// a·b + c in one rounding, where the product has no other use.
pub fn contract(module: Module) -> Module {
    let uses = uses(&module);
    // Products that may be taken in, with their factors.
    let mut products: FxHashMap<Value, (Value, Value)> = FxHashMap::default();
    let mut take_in = |m: &mut Module, _: &mut Renames, out: &mut Vec<Stmt>, v: Value, e| -> Result<(), Infallible> {
        let once = |x: Value| uses.get(x.index()) == Some(&1);
        if let Expr::Op(op, args) = &e
            && m.ty(v).is_float()
        {
            let product = |x: Value| products.get(&x).copied().filter(|_| once(x) && last_body_has(out, x));
            match op {
                Op::Mul => {
                    products.insert(v, (args[0], args[1]));
                }
                Op::Add => {
                    let found = product(args[1])
                        .map(|p| (p, args[0], args[1]))
                        .or(product(args[0]).map(|p| (p, args[1], args[0])));
                    if let Some(((a, b), c, gone)) = found {
                        remove(out, gone);
                        out.push(Stmt::Let(v, Expr::Op(Op::Fma, smallvec![a, b, c])));
                        return Ok(());
                    }
                }
                Op::Sub => {
                    // c - a·b
                    if let Some((a, b)) = product(args[1]) {
                        remove(out, args[1]);
                        let negated = m.value(m.ty(v));
                        out.push(Stmt::Let(negated, Expr::Op(Op::Neg, smallvec![a])));
                        out.push(Stmt::Let(v, Expr::Op(Op::Fma, smallvec![negated, b, args[0]])));
                        return Ok(());
                    }
                    // a·b - c
                    if let Some((a, b)) = product(args[0]) {
                        remove(out, args[0]);
                        let negated = m.value(m.ty(v));
                        out.push(Stmt::Let(negated, Expr::Op(Op::Neg, smallvec![args[1]])));
                        out.push(Stmt::Let(v, Expr::Op(Op::Fma, smallvec![a, b, negated])));
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        out.push(Stmt::Let(v, e));
        Ok(())
    };
    match rewrite(module, &mut take_in) {
        Ok(m) => m,
        Err(never) => match never {},
    }
}

/// How far back a product may stand.
const WINDOW: usize = 64;

fn position(out: &[Stmt], x: Value) -> Option<usize> {
    let from = out.len().saturating_sub(WINDOW);
    out[from..].iter().rposition(|s| matches!(s, Stmt::Let(v, _) if *v == x)).map(|i| from + i)
}

fn last_body_has(out: &[Stmt], x: Value) -> bool {
    position(out, x).is_some()
}

fn remove(out: &mut Vec<Stmt>, x: Value) {
    if let Some(i) = position(out, x) {
        out.remove(i);
    }
}

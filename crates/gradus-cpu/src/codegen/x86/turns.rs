//! Two shifts that are one turn of the bits: AVX-512 has an instruction for it, and a random hash is made of twenty.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::smallvec;

use super::order;
use crate::ir::{Expr, Kernel, Module, Op, Stmt, Ty, Value};

/// The kernel with `x << n | x >> (32 - n)` as one operation, where the shifts have no other use.
pub fn turned(module: &Module, kernel: &Kernel) -> Kernel {
    let uses = order::uses(module, kernel);
    let mut known = FxHashMap::default();
    constants(&kernel.body, &mut known);
    let body = block(module, &kernel.body, &uses, &known);
    kernel.with_body(body)
}

fn constants(body: &[Stmt], known: &mut FxHashMap<Value, u64>) {
    for s in body {
        match s {
            Stmt::Let(v, Expr::Const(bits)) => {
                known.insert(*v, *bits);
            }
            Stmt::Loop(l) => constants(&l.body, known),
            _ => {}
        }
    }
}

fn block(module: &Module, body: &[Stmt], uses: &[u32], known: &FxHashMap<Value, u64>) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(body.len());
    // Shifts of this body that only one operation takes: the operation, what is shifted, the count.
    let mut shifts: FxHashMap<Value, (Op, Value, Value)> = FxHashMap::default();
    let mut gone: FxHashSet<Value> = FxHashSet::default();
    for s in body {
        match s {
            Stmt::Let(v, Expr::Op(op @ (Op::Shl | Op::Shr), args)) if uses[v.index()] == 1 => {
                shifts.insert(*v, (*op, args[0], args[1]));
                out.push(s.clone());
            }
            Stmt::Let(v, Expr::Op(Op::Or, args)) if matches!(module.ty(*v), Ty::I32 | Ty::U32) => {
                match turn(&shifts, known, args[0], args[1]).or_else(|| turn(&shifts, known, args[1], args[0])) {
                    Some((x, by)) => {
                        gone.extend([args[0], args[1]]);
                        out.push(Stmt::Let(*v, Expr::Op(Op::Rotl, smallvec![x, by])));
                    }
                    None => out.push(s.clone()),
                }
            }
            Stmt::Loop(l) => {
                let mut l = l.clone();
                l.body = block(module, &l.body, uses, known);
                out.push(Stmt::Loop(l));
            }
            s => out.push(s.clone()),
        }
    }
    out.retain(|s| !matches!(s, Stmt::Let(v, _) if gone.contains(v)));
    out
}

/// What is turned by how much, if the first is shifted up and the second down by the rest.
fn turn(
    shifts: &FxHashMap<Value, (Op, Value, Value)>,
    known: &FxHashMap<Value, u64>,
    up: Value,
    down: Value,
) -> Option<(Value, Value)> {
    let (&(Op::Shl, x, n), &(Op::Shr, y, m)) = (shifts.get(&up)?, shifts.get(&down)?) else { return None };
    let (n_bits, m_bits) = (known.get(&n)?, known.get(&m)?);
    (x == y && (1..32).contains(n_bits) && n_bits + m_bits == 32).then_some((x, n))
}

//! Sums on the units that multiply: where a loop has more to add than to multiply, some of its sums are made as `a·1 + b`.
//!
//! Most processors add and multiply in different units, and those that multiply can do both. The product by one is exact and the sum is rounded once, so the bits are
//! those of the sum.

use rustc_hash::FxHashSet;
use smallvec::smallvec;

use crate::ir::{Op, Ty, Value, one};
use crate::vector::{Code, Expr, Loop, Shape, Stmt};

/// A quotient or a root keeps a unit that multiplies busy for so long.
const LONG: usize = 8;

/// The code with its innermost loops of vectors balanced.
pub fn balanced(mut code: Code) -> Code {
    let mut body = std::mem::take(&mut code.body);
    block(&mut code, &mut body);
    code.body = body;
    code
}

fn block(code: &mut Code, body: &mut [Stmt]) {
    for s in body {
        if let Stmt::Loop(l) = s {
            match l.body.iter().any(|s| matches!(s, Stmt::Loop(_) | Stmt::Main(_))) {
                true => block(code, &mut l.body),
                false => balance(code, l),
            }
        }
    }
}

/// Makes so many sums of a loop products that both kinds of units have about as much to do.
fn balance(code: &mut Code, l: &mut Loop) {
    let (mut adding, mut multiplying) = (0, 0);
    // What depends on the iteration before is waited for, and a product takes longer than a sum.
    let mut awaited: FxHashSet<Value> = l.carried.iter().map(|c| c.param).collect();
    let (mut sums, mut all) = (Vec::new(), 0);
    for (at, s) in l.body.iter().enumerate() {
        let Stmt::Let(v, Expr::Op(op, args)) = s else { continue };
        let late = args.iter().any(|a| awaited.contains(a));
        if late {
            awaited.insert(*v);
        }
        let ty = code.ty(args[args.len() - 1]);
        if !matches!(ty, Ty::F32 | Ty::F64) || !code.shape(*v).is_vector() {
            continue;
        }
        let registers = usize::from(code.shape(*v).registers);
        let (a, m) = units(*op);
        adding += a * registers;
        multiplying += m * registers;
        if *op == Op::Add && !late {
            sums.push((at, registers));
            all += registers;
        }
    }
    // One of each type, at the start: a constant is brought to its register before the loop.
    let mut ones: Vec<(Ty, Value)> = Vec::new();
    // Both kinds of units are wanted all along the loop, so those that change are spread evenly.
    let wanted = (adding.saturating_sub(multiplying) / 2).min(all);
    let mut due = 0;
    for (at, registers) in sums {
        due += wanted * registers;
        if due < all * registers {
            continue;
        }
        due -= all * registers;
        let Stmt::Let(v, Expr::Op(op, args)) = &mut l.body[at] else { continue };
        let ty = code.ty(*v);
        let unit = match ones.iter().find(|(t, _)| *t == ty) {
            Some((_, unit)) => *unit,
            None => {
                ones.push((ty, code.value(ty, Shape::SCALAR)));
                ones[ones.len() - 1].1
            }
        };
        (*op, *args) = (Op::Fma, smallvec![args[0], unit, args[1]]);
    }
    l.body.splice(0..0, ones.into_iter().map(|(ty, unit)| Stmt::Let(unit, Expr::Const(one(ty)))));
}

/// How long an operation keeps the units that add and those that multiply.
fn units(op: Op) -> (usize, usize) {
    match op {
        Op::Add | Op::Sub | Op::Lesser | Op::Greater => (1, 0),
        Op::Round | Op::Floor | Op::Ceil | Op::Trunc => (1, 0),
        Op::Max | Op::Min => (1, 1),
        Op::Mul | Op::Fma | Op::Eq | Op::Ne | Op::Lt | Op::Le => (0, 1),
        Op::Div | Op::Sqrt => (0, LONG),
        _ => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Isa, machine};
    use super::*;
    use crate::ir::Module;
    use crate::vector::vectorize;

    /// How many sums and how many products with a sum the longest loop of a kernel has.
    fn counts(lines: &str) -> (usize, usize) {
        let text = format!(
            "b0: f64 = input 0\nb1: f64 = output 0\nkernel k() {{\n  lanes v0 < 640 {{\n    v1: f64 = b0[v0]\n    v2: f64 = b0[v0 + 640]\n{lines}    \
             b1[v0] = v9\n  }}\n}}\nmain f {{\n  run k()\n}}\n"
        );
        let m: Module = text.parse().unwrap();
        let code = balanced(vectorize(&m, &m.kernels[0], &machine(Isa::Avx512)));
        let body = code.body.iter().find_map(|s| if let Stmt::Loop(l) = s { Some(&l.body) } else { None }).unwrap();
        let count = |op: Op| body.iter().filter(|s| matches!(s, Stmt::Let(_, Expr::Op(o, _)) if *o == op)).count();
        (count(Op::Add), count(Op::Fma))
    }

    #[test]
    fn half_of_many_sums_are_products() {
        let sums =
            "    v3: f64 = add v1 v2\n    v4: f64 = add v3 v1\n    v5: f64 = add v4 v2\n    v9: f64 = add v5 v3\n";
        let (adds, products) = counts(sums);
        assert!(adds > 0 && adds == products, "{adds} {products}");
    }

    #[test]
    fn what_multiplies_as_much_as_it_adds_stays() {
        let mixed =
            "    v3: f64 = add v1 v2\n    v4: f64 = mul v3 v1\n    v5: f64 = add v4 v2\n    v9: f64 = mul v5 v3\n";
        assert_eq!(counts(mixed).1, 0);
    }

    /// A sum is what it was, for zeros of both signs, infinities and what is too small to be normal.
    #[test]
    fn a_product_by_one_has_the_bits_of_the_sum() {
        let all = [0.0, -0.0, 1.5, -1.5, f64::INFINITY, f64::NEG_INFINITY, 5e-324, -2.5e-310, f64::MAX, 0.1, 1e-20];
        for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b))) {
            let (sum, product) = (a + b, a.mul_add(1.0, b));
            assert!(sum.to_bits() == product.to_bits() || sum.is_nan() && product.is_nan(), "{a:?} {b:?}");
        }
    }
}

//! Simplifies scalar code: what is known is computed, what is computed twice is computed once, what nothing uses goes. Unrolled
//! arrays are full of zeros and ones that only show here.

use std::convert::Infallible;

use gradus_core::optimize::Exactness;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::rewrite::{Renames, Rewriter, own_constants, rewrite, sweep};
use super::{Expr, Module, Op, Stmt, Ty, Value, one};
use gradus_core::scalar::evaluate as scalar;

/// Simplifies every body. Exact rules keep every bit; relaxed ones keep what [`Exactness::Relaxed`] promises.
pub fn fold(module: Module, exactness: Exactness) -> Module {
    // What is cut is done.
    if !module.pieces.is_empty() {
        return module;
    }
    let relaxed = exactness == Exactness::Relaxed;
    let mut folder = Folder { relaxed, ..Folder::default() };
    if relaxed {
        folder.count_divisors(&module);
    }
    match rewrite(module, &mut folder) {
        Ok(m) => sweep(own_constants(m)),
        Err(never) => match never {},
    }
}

/// Sums of sums are looked at so deep.
const DEEPEST: usize = 8;

#[derive(Default)]
struct Folder {
    relaxed: bool,
    /// Constants by value.
    known: FxHashMap<Value, u64>,
    /// What was computed in the bodies that are open, with its type: constants have none of their own.
    made: FxHashMap<(Ty, Expr), Value>,
    /// What each open body put there.
    scopes: Vec<Vec<(Ty, Expr, Value)>>,
    /// How values of the bodies that are open were computed, of what is there where they are.
    how: FxHashMap<Value, (Op, SmallVec<[Value; 3]>)>,
    /// How often a value divides.
    divisors: FxHashMap<Value, u32>,
}

/// What takes the place of an expression.
enum Simpler {
    Value(Value),
    Expr(Expr),
}

impl Folder {
    fn count_divisors(&mut self, m: &Module) {
        fn walk(body: &[Stmt], n: &mut FxHashMap<Value, u32>) {
            for s in body {
                match s {
                    Stmt::Let(_, Expr::Op(Op::Div, args)) => *n.entry(args[1]).or_default() += 1,
                    Stmt::Loop(l) => walk(&l.body, n),
                    Stmt::While(w) => {
                        walk(&w.before, n);
                        walk(&w.body, n);
                    }
                    Stmt::Switch(s) => s.cases.iter().for_each(|(stmts, _)| walk(stmts, n)),
                    _ => {}
                }
            }
        }
        walk(&m.main, &mut self.divisors);
        m.kernels.iter().for_each(|k| walk(&k.body, &mut self.divisors));
    }

    /// A value for an expression: one that is there already, or a new one.
    fn value_for(&mut self, m: &mut Module, out: &mut Vec<Stmt>, ty: Ty, e: Expr) -> Value {
        if let Some(v) = self.made.get(&(ty, e.clone())) {
            return *v;
        }
        let v = m.value(ty);
        self.remember(ty, v, &e);
        out.push(Stmt::Let(v, e));
        v
    }

    fn remember(&mut self, ty: Ty, v: Value, e: &Expr) {
        if let Expr::Const(bits) = e {
            self.known.insert(v, *bits);
        }
        if let Expr::Op(op, args) = e {
            self.how.insert(v, (*op, args.clone()));
        }
        self.made.insert((ty, e.clone()), v);
        if let Some(scope) = self.scopes.last_mut() {
            scope.push((ty, e.clone(), v));
        }
    }

    fn is_zero(&self, v: Value) -> bool {
        self.known.get(&v) == Some(&0)
    }

    fn is_minus_zero(&self, v: Value, ty: Ty) -> bool {
        self.known.get(&v) == Some(&(1 << (ty.size() * 8 - 1)))
    }

    fn is_one(&self, v: Value, ty: Ty) -> bool {
        self.known.get(&v) == Some(&one(ty))
    }

    /// What a value is the negative of, if it was computed so.
    fn negated(&self, v: Value) -> Option<Value> {
        match self.how.get(&v)? {
            (Op::Neg, args) => Some(args[0]),
            _ => None,
        }
    }

    /// The least and the largest number that a whole number may be, if more is known than its type.
    fn range(&self, m: &Module, v: Value, depth: usize) -> Option<(i128, i128)> {
        let ty = m.ty(v);
        if ty.is_float() || ty == Ty::Bool {
            return None;
        }
        if let Some(bits) = self.known.get(&v) {
            let above = 64 - 8 * ty.size() as u32;
            let n = if ty.is_signed() { i128::from((bits << above) as i64 >> above) } else { i128::from(*bits) };
            return Some((n, n));
        }
        // What fits into the type is what it was before.
        let of = |v: Value| self.range(m, v, depth - 1).or_else(|| whole(m.ty(v)));
        match self.how.get(&v).filter(|_| depth > 0)? {
            (Op::Convert(_) | Op::Bitcast(_), args) => {
                let (least, most) = of(args[0])?;
                let (lowest, highest) = whole(ty)?;
                (lowest <= least && most <= highest).then_some((least, most))
            }
            (op @ (Op::Max | Op::Min), args) => {
                let ((a, b), (c, d)) = (of(args[0])?, of(args[1])?);
                Some(if *op == Op::Max { (a.max(c), b.max(d)) } else { (a.min(c), b.min(d)) })
            }
            _ => None,
        }
    }

    /// What a whole number is compared with or held by, where that is beyond all that it may be.
    fn in_range(&self, m: &Module, op: Op, x: &[Value]) -> Option<Simpler> {
        let [a, b] = x[..] else { return None };
        if !matches!(op, Op::Lt | Op::Max | Op::Min) {
            return None;
        }
        let ((a_least, a_most), (b_least, b_most)) = (self.range(m, a, DEEPEST)?, self.range(m, b, DEEPEST)?);
        match op {
            Op::Lt if a_most < b_least => Some(Simpler::Expr(Expr::Const(1))),
            Op::Lt if a_least >= b_most => Some(Simpler::Expr(Expr::Const(0))),
            Op::Max if a_least >= b_most => Some(Simpler::Value(a)),
            Op::Max if b_least >= a_most => Some(Simpler::Value(b)),
            Op::Min if a_most <= b_least => Some(Simpler::Value(a)),
            Op::Min if b_most <= a_least => Some(Simpler::Value(b)),
            _ => None,
        }
    }

    /// Whether a float is certainly no -0: a sum is that only of two, a square never.
    fn has_no_minus_zero(&self, v: Value, ty: Ty, depth: usize) -> bool {
        if self.known.contains_key(&v) {
            return !self.is_minus_zero(v, ty);
        }
        match self.how.get(&v) {
            Some((Op::Add, args)) if depth > 0 => args.iter().any(|a| self.has_no_minus_zero(*a, ty, depth - 1)),
            Some((Op::Mul, args)) => args[0] == args[1],
            Some((Op::Abs, _)) => true,
            _ => false,
        }
    }

    /// The number of an operation whose operands are known. NaN stays an operation: its bits are the machine's business.
    fn computed(&self, m: &Module, ty: Ty, op: Op, args: &[Value]) -> Option<u64> {
        if matches!(op, Op::Math(_) | Op::Special(_)) {
            return None;
        }
        let numbers: SmallVec<[u64; 3]> = args.iter().map(|a| self.known.get(a).copied()).collect::<Option<_>>()?;
        let types: SmallVec<[Ty; 3]> = args.iter().map(|a| m.ty(*a)).collect();
        let bits = scalar(op, &types, &numbers);
        let nan = match ty {
            Ty::F32 => f32::from_bits(bits as u32).is_nan(),
            Ty::F64 => f64::from_bits(bits).is_nan(),
            _ => false,
        };
        (!nan).then_some(bits)
    }

    /// Rules that keep every bit.
    fn exact(&self, ty: Ty, op: Op, x: &[Value]) -> Option<Simpler> {
        use Simpler::{Expr as E, Value as V};
        let float = ty.is_float();
        // x + -y = x - y and x - -y = x + y
        let negated = |of: usize, op: Op, other: usize| Some((op, x[other], self.negated(x[of])?));
        let signs = match op {
            Op::Add => negated(1, Op::Sub, 0).or_else(|| negated(0, Op::Sub, 1)),
            Op::Sub => negated(1, Op::Add, 0),
            _ => None,
        };
        if let Some((op, a, b)) = signs {
            return Some(E(Expr::Op(op, smallvec![a, b])));
        }
        Some(match op {
            // x·1 = x
            Op::Mul if self.is_one(x[0], ty) => V(x[1]),
            Op::Mul if self.is_one(x[1], ty) => V(x[0]),
            // x/1 = x
            Op::Div if self.is_one(x[1], ty) => V(x[0]),
            // 1·x + y = x + y
            Op::Fma if self.is_one(x[0], ty) => E(Expr::Op(Op::Add, smallvec![x[1], x[2]])),
            Op::Fma if self.is_one(x[1], ty) => E(Expr::Op(Op::Add, smallvec![x[0], x[2]])),
            // x·y - 0 = x·y
            Op::Fma if self.is_minus_zero(x[2], ty) => E(Expr::Op(Op::Mul, smallvec![x[0], x[1]])),
            // x - 0 = x and x + -0 = x, also for -0
            Op::Sub if self.is_zero(x[1]) => V(x[0]),
            Op::Add if float && self.is_minus_zero(x[0], ty) => V(x[1]),
            Op::Add if float && self.is_minus_zero(x[1], ty) => V(x[0]),
            // x + 0 = x where x is not -0
            Op::Add if float && self.is_zero(x[0]) && self.has_no_minus_zero(x[1], ty, DEEPEST) => V(x[1]),
            Op::Add if float && self.is_zero(x[1]) && self.has_no_minus_zero(x[0], ty, DEEPEST) => V(x[0]),
            // Whole numbers: x + 0 = x, 0·x = 0
            Op::Add if !float && self.is_zero(x[0]) => V(x[1]),
            Op::Add if !float && self.is_zero(x[1]) => V(x[0]),
            Op::Mul if !float && self.is_zero(x[0]) => V(x[0]),
            Op::Mul if !float && self.is_zero(x[1]) => V(x[1]),
            // Of bools: what holds and x = x
            Op::And if ty == Ty::Bool && self.is_one(x[0], ty) => V(x[1]),
            Op::And if ty == Ty::Bool && self.is_one(x[1], ty) => V(x[0]),
            // What is chosen is known
            Op::Select if self.known.contains_key(&x[0]) => V(x[if self.is_zero(x[0]) { 2 } else { 1 }]),
            _ => return None,
        })
    }

    /// Rules that take infinities, NaN and the sign of zero lightly.
    fn relaxed(&self, ty: Ty, op: Op, x: &[Value]) -> Option<Simpler> {
        use Simpler::{Expr as E, Value as V};
        let zero = |v: Value| self.is_zero(v) || self.is_minus_zero(v, ty);
        Some(match op {
            // 0·x = 0 and 0/x = 0
            Op::Mul | Op::Div if zero(x[0]) => V(x[0]),
            Op::Mul if zero(x[1]) => V(x[1]),
            // 0·x + y = y
            Op::Fma if zero(x[0]) || zero(x[1]) => V(x[2]),
            // x·y + 0 = x·y
            Op::Fma if zero(x[2]) => E(Expr::Op(Op::Mul, smallvec![x[0], x[1]])),
            // x + 0 = x and 0 - x = -x
            Op::Add if zero(x[0]) => V(x[1]),
            Op::Add | Op::Sub if zero(x[1]) => V(x[0]),
            Op::Sub if zero(x[0]) => E(Expr::Op(Op::Neg, smallvec![x[1]])),
            _ => return None,
        })
    }
}

/// The least and the largest whole number of a type.
fn whole(ty: Ty) -> Option<(i128, i128)> {
    if ty.is_float() || ty == Ty::Bool {
        return None;
    }
    let bits = 8 * ty.size();
    Some(if ty.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) })
}

impl Rewriter<Infallible> for Folder {
    fn define(
        &mut self,
        m: &mut Module,
        renames: &mut Renames,
        out: &mut Vec<Stmt>,
        v: Value,
        mut e: Expr,
    ) -> Result<(), Infallible> {
        let ty = m.ty(v);
        if let Expr::Op(op, args) = &e
            && let Some(bits) = self.computed(m, ty, *op, args)
        {
            e = Expr::Const(bits);
        }
        // Each rule makes the expression smaller, so this ends.
        while let Expr::Op(op, args) = &e {
            let simpler = match self.exact(ty, *op, args).or_else(|| self.in_range(m, *op, args)) {
                None if self.relaxed && ty.is_float() => self.relaxed(ty, *op, args),
                found => found,
            };
            match simpler {
                Some(Simpler::Value(same)) => {
                    renames.set(v, same);
                    return Ok(());
                }
                Some(Simpler::Expr(simpler)) => e = simpler,
                None => break,
            }
        }
        // x/y = x·(1/y), where several are divided by y
        if self.relaxed
            && ty.is_float()
            && let Expr::Op(Op::Div, args) = &e
            && !self.is_one(args[0], ty)
            && (self.divisors.get(&args[1]).is_some_and(|n| *n > 1) || self.known.contains_key(&args[1]))
        {
            let args = args.clone();
            let unit = self.value_for(m, out, ty, Expr::Const(one(ty)));
            let inverse = self.value_for(m, out, ty, Expr::Op(Op::Div, smallvec![unit, args[1]]));
            e = Expr::Op(Op::Mul, smallvec![args[0], inverse]);
        }
        // What is loaded may have been written in between.
        if !matches!(e, Expr::Load(..)) {
            if let Some(same) = self.made.get(&(ty, e.clone())) {
                renames.set(v, *same);
                return Ok(());
            }
            self.remember(ty, v, &e);
        }
        out.push(Stmt::Let(v, e));
        Ok(())
    }

    fn enter(&mut self) {
        self.scopes.push(Vec::new());
    }

    fn leave(&mut self) {
        for (ty, e, v) in self.scopes.pop().unwrap_or_default() {
            self.made.remove(&(ty, e));
            // A kernel is given what the main body computed, and not what that was computed of.
            self.how.remove(&v);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::random::{self, Config};
    use crate::ir::{Buffer, BufferInfo, Index, Role, evaluate, verify};

    #[test]
    fn random_modules_keep_every_bit() {
        let mut smaller = 0;
        for seed in 0..300 {
            let (module, memory) = random::module(seed, &Config::default());
            let folded = fold(module.clone(), Exactness::Exact);
            verify(&folded).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{module}\n{folded}"));
            let (mut expected, mut got) = (memory.clone(), memory);
            evaluate(&module, &mut expected).unwrap();
            evaluate(&folded, &mut got).unwrap();
            if let Some(difference) = random::difference(&module, &expected, &got) {
                panic!("seed {seed}: {difference}\n{module}\n{folded}");
            }
            smaller += usize::from(folded.to_string().len() < module.to_string().len());
        }
        assert!(smaller > 100, "only {smaller} modules became smaller");
    }

    /// `out[0] = e(x)` for the number in `in[0]`, with zero and one at hand.
    fn of_one(e: impl Fn(&mut dyn FnMut(Op, &[Value]) -> Value, Value, Value, Value) -> Value) -> Module {
        let mut m = Module { name: "f".into(), ..Module::default() };
        m.buffers.push(BufferInfo { ty: Ty::F64, role: Role::Input(0) });
        m.buffers.push(BufferInfo { ty: Ty::F64, role: Role::Output(0) });
        let mut body = Vec::new();
        let [x, zero, unit] = [0, 1, 2].map(|_| m.value(Ty::F64));
        body.push(Stmt::Let(x, Expr::Load(Buffer(0), Index::at(0))));
        body.push(Stmt::Let(zero, Expr::Const(0)));
        body.push(Stmt::Let(unit, Expr::Const(one(Ty::F64))));
        let mut op = |op: Op, args: &[Value]| {
            let v = m.value(Ty::F64);
            body.push(Stmt::Let(v, Expr::Op(op, args.into())));
            v
        };
        let value = e(&mut op, x, zero, unit);
        body.push(Stmt::Store { buffer: Buffer(1), at: Index::at(0), value });
        m.main = body;
        m
    }

    fn operations(m: &Module) -> Vec<Op> {
        m.main.iter().filter_map(|s| if let Stmt::Let(_, Expr::Op(op, _)) = s { Some(*op) } else { None }).collect()
    }

    #[test]
    fn zeros_go_only_where_that_is_allowed() {
        let product = of_one(|op, x, zero, unit| {
            let none = op(Op::Fma, &[zero, x, zero]);
            op(Op::Fma, &[unit, x, none])
        });
        assert_eq!(operations(&fold(product.clone(), Exactness::Exact)), [Op::Fma, Op::Add]);
        assert_eq!(operations(&fold(product, Exactness::Relaxed)), []);
    }

    #[test]
    fn several_quotients_share_a_reciprocal_only_where_that_is_allowed() {
        let quotients = of_one(|op, x, _, unit| {
            let y = op(Op::Add, &[x, unit]);
            let a = op(Op::Div, &[x, y]);
            let b = op(Op::Div, &[a, y]);
            op(Op::Sub, &[a, b])
        });
        assert_eq!(operations(&fold(quotients.clone(), Exactness::Exact)), [Op::Add, Op::Div, Op::Div, Op::Sub]);
        let relaxed = operations(&fold(quotients, Exactness::Relaxed));
        assert_eq!(relaxed, [Op::Add, Op::Div, Op::Mul, Op::Mul, Op::Sub]);
    }

    #[test]
    fn what_is_computed_twice_is_computed_once() {
        let twice = of_one(|op, x, _, _| {
            let (a, b) = (op(Op::Sqrt, &[x]), op(Op::Sqrt, &[x]));
            op(Op::Add, &[a, b])
        });
        assert_eq!(operations(&fold(twice, Exactness::Exact)), [Op::Sqrt, Op::Add]);
    }
}

//! Elementary functions written out as basic operations, the same for every code generator and for the interpreter; where a
//! main body has one very often, once for all its uses.

use gradus_core::math::{self, Arith, Rare};
use smallvec::SmallVec;

use std::convert::Infallible;

use super::rewrite::{Renames, Rewriter, rewrite};
use super::{Expr, Function, Math, Module, Op, Special, Stmt, Ty, Value};

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
    let mut uses = Vec::new();
    count(&module, &module.main, &mut uses);
    for (of, ty, n) in uses {
        if n > often {
            let params: Vec<Value> = (0..Op::Math(of).arity()).map(|_| module.value(ty)).collect();
            let mut body = Vec::new();
            let result = apply(&mut Recorder { module: &mut module, out: &mut body, ty }, of, &params);
            module.functions.push(Function { of, ty, params, body, result });
        }
    }
    let called = module.functions.iter().map(|f| (f.of, f.ty)).collect();
    match rewrite(module, &mut Expander { called, open: 0, main: true }) {
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
    /// How many bodies are around.
    open: usize,
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
                let result = apply(&mut Recorder { module, out, ty }, *f, args);
                renames.set(v, result);
            }
            _ => out.push(Stmt::Let(v, e)),
        }
        Ok(())
    }

    fn enter(&mut self) {
        self.open += 1;
    }

    fn leave(&mut self) {
        self.open -= 1;
        self.main &= self.open > 0;
    }
}

fn apply(r: &mut Recorder<'_>, f: Math, x: &[Value]) -> Value {
    match f {
        Math::Exp => math::exp(r, x[0]),
        Math::Expm1 => math::expm1(r, x[0]),
        Math::Log => math::log(r, x[0]),
        Math::Log1p => math::log1p(r, x[0]),
        Math::Tanh => math::tanh(r, x[0]),
        Math::Logistic => math::logistic(r, x[0]),
        Math::Sin => math::sin(r, x[0]),
        Math::Cos => math::cos(r, x[0]),
        Math::Sinh => math::sinh(r, x[0]),
        Math::Cosh => math::cosh(r, x[0]),
        Math::Erf => math::erf(r, x[0]),
        Math::Erfc => math::erfc(r, x[0]),
        Math::Pow => math::pow(r, x[0], x[1]),
        Math::Rsqrt => math::rsqrt(r, x[0]),
        Math::Tan => math::tan(r, x[0]),
        Math::Asin => math::asin(r, x[0]),
        Math::Acos => math::acos(r, x[0]),
        Math::Atan => math::atan(r, x[0]),
        Math::Asinh => math::asinh(r, x[0]),
        Math::Acosh => math::acosh(r, x[0]),
        Math::Atanh => math::atanh(r, x[0]),
        Math::Cbrt => math::cbrt(r, x[0]),
        Math::Atan2 => math::atan2(r, x[0], x[1]),
    }
}

/// Records the basic operations of a function.
struct Recorder<'a> {
    module: &'a mut Module,
    out: &'a mut Vec<Stmt>,
    ty: Ty,
}

impl Recorder<'_> {
    fn define(&mut self, ty: Ty, e: Expr) -> Value {
        let v = self.module.value(ty);
        self.out.push(Stmt::Let(v, e));
        v
    }

    fn op(&mut self, op: Op, args: &[Value]) -> Value {
        let types: SmallVec<[Ty; 3]> = args.iter().map(|a| self.module.ty(*a)).collect();
        self.define(op.result(&types), Expr::Op(op, args.into()))
    }

    fn shift(&mut self, op: Op, a: Value, n: u32) -> Value {
        let n = self.int(i64::from(n));
        self.op(op, &[a, n])
    }
}

macro_rules! record {
    ($($name:ident($($arg:ident),*) = $op:expr;)*) => {
        $(fn $name(&mut self, $($arg: Value),*) -> Value { self.op($op, &[$($arg),*]) })*
    };
}

impl Arith for Recorder<'_> {
    type F = Value;
    type I = Value;
    type B = Value;

    fn wide(&self) -> bool {
        self.ty == Ty::F64
    }

    fn float(&mut self, v: f64) -> Value {
        let bits = if self.wide() { v.to_bits() } else { u64::from((v as f32).to_bits()) };
        self.define(self.ty, Expr::Const(bits))
    }

    fn int(&mut self, v: i64) -> Value {
        let ty = self.ty.bits_type();
        let bits = if self.wide() { v as u64 } else { u64::from(v as u32) };
        self.define(ty, Expr::Const(bits))
    }

    record! {
        add(a, b) = Op::Add;
        sub(a, b) = Op::Sub;
        mul(a, b) = Op::Mul;
        div(a, b) = Op::Div;
        fma(a, b, c) = Op::Fma;
        neg(a) = Op::Neg;
        abs(a) = Op::Abs;
        sqrt(a) = Op::Sqrt;
        round(a) = Op::Round;
        floor(a) = Op::Floor;
        lesser(a, b) = Op::Lesser;
        greater(a, b) = Op::Greater;
        lt(a, b) = Op::Lt;
        le(a, b) = Op::Le;
        eq(a, b) = Op::Eq;
        ne(a, b) = Op::Ne;
        ilt(a, b) = Op::Lt;
        and(a, b) = Op::And;
        or(a, b) = Op::Or;
        not(a) = Op::Not;
        select(c, a, b) = Op::Select;
        iselect(c, a, b) = Op::Select;
        iadd(a, b) = Op::Add;
        isub(a, b) = Op::Sub;
        iand(a, b) = Op::And;
        ior(a, b) = Op::Or;
        ixor(a, b) = Op::Xor;
    }

    fn to_bits(&mut self, a: Value) -> Value {
        self.op(Op::Bitcast(self.ty.bits_type()), &[a])
    }

    fn from_bits(&mut self, a: Value) -> Value {
        self.op(Op::Bitcast(self.ty), &[a])
    }

    fn shl(&mut self, a: Value, n: u32) -> Value {
        self.shift(Op::Shl, a, n)
    }

    fn shr(&mut self, a: Value, n: u32) -> Value {
        self.shift(Op::Shr, a, n)
    }

    fn sar(&mut self, a: Value, n: u32) -> Value {
        self.shift(Op::Sar, a, n)
    }

    fn rare(&mut self, f: Rare, a: Value, b: Value, when: Value) -> Value {
        self.op(Op::Special(Special::Rare(f)), &[a, b, when])
    }
}

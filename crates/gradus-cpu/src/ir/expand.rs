//! Elementary functions written out as basic operations, the same for every code generator and for the interpreter.

use gradus_core::math::{self, Arith, Rare};
use smallvec::SmallVec;

use super::rewrite::{Renames, rewrite};
use super::{Expr, Math, Module, Op, Special, Stmt, Ty, Value};
use crate::error::{Error, Result};

/// Replaces every elementary function by what it is made of.
pub fn expand(module: Module) -> Result<Module> {
    let mut write_out = |module: &mut Module, renames: &mut Renames, out: &mut Vec<Stmt>, v, e| {
        let Expr::Op(Op::Math(f), args) = &e else {
            out.push(Stmt::Let(v, e));
            return Ok(());
        };
        let ty = module.ty(v);
        let mut recorder = Recorder { module, out, ty };
        let result = apply(&mut recorder, *f, args);
        renames.set(v, result);
        Ok::<(), Error>(())
    };
    rewrite(module, &mut write_out)
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

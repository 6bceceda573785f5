//! How large floats can be of which it is known from how they are made: what is certainly inside of a type of whole numbers is converted to it as it is, without a test. Quotients of whole
//! numbers by known ones are made of such.

use rustc_hash::FxHashMap;

use crate::ir::{Op, Ty, Value};
use crate::vector::{Code, Expr, Stmt};

/// The size that floats do not exceed, and none of them is no number. Others are not there.
#[derive(Debug, Default)]
pub(super) struct Bounded(FxHashMap<Value, f64>);

impl Bounded {
    pub fn of(code: &Code) -> Bounded {
        let mut all = Bounded::default();
        all.body(code, &code.body);
        all
    }

    /// Whether it is a number less than 2^`bits` and greater than its negative.
    pub fn is_below(&self, v: Value, bits: i32) -> bool {
        self.0.get(&v).is_some_and(|most| *most < 2f64.powi(bits))
    }

    fn body(&mut self, code: &Code, body: &[Stmt]) {
        for s in body {
            match s {
                Stmt::Let(v, e) => {
                    if let Some(most) = self.size(code, *v, e).filter(|most| most.is_finite()) {
                        self.0.insert(*v, most);
                    }
                }
                Stmt::Loop(l) => self.body(code, &l.body),
                _ => {}
            }
        }
    }

    fn size(&self, code: &Code, v: Value, e: &Expr) -> Option<f64> {
        let ty = code.ty(v);
        let of = |v: &Value| self.0.get(v).copied();
        match e {
            Expr::Const(bits) if ty == Ty::F64 => Some(f64::from_bits(*bits).abs()),
            Expr::Const(bits) if ty == Ty::F32 => Some(f32::from_bits(*bits as u32).abs().into()),
            Expr::Op(Op::Convert(_), args) if ty.is_float() => match code.ty(args[0]) {
                // A power of two: rounding does not go beyond it.
                from if from.is_int() => Some(2f64.powi(from.size() as i32 * 8 - i32::from(from.is_signed()))),
                Ty::F32 => of(&args[0]),
                _ => None,
            },
            Expr::Op(Op::Neg | Op::Abs, args) if ty.is_float() => of(&args[0]),
            // Rounding keeps order, so the rounded product of the sizes is not exceeded. It is that of the wider type.
            Expr::Op(Op::Mul, args) if ty == Ty::F64 => Some(of(&args[0])? * of(&args[1])?),
            _ => None,
        }
    }
}

//! The scalar form of an operation, arithmetic on one element, as operations on whole arrays: how a user's primitive is exported that says nothing else,
//! and how Gradus's own elementary functions are written out.

use gradus_core::math::Rare;
use gradus_core::primitives::Op;
use gradus_core::scalar::{self, Form, Math, Special, Ty, Writer};
use gradus_core::{DType, Result, Scalar, Shape, Type};

use super::emit::{Emit, no_attributes};
use super::error;
use crate::module::Value;

/// The dtype of a scalar type.
fn dtype(ty: Ty) -> DType {
    match ty {
        Ty::Bool => DType::Bool,
        Ty::I8 => DType::I8,
        Ty::I16 => DType::I16,
        Ty::I32 => DType::I32,
        Ty::I64 => DType::I64,
        Ty::U8 => DType::U8,
        Ty::U16 => DType::U16,
        Ty::U32 => DType::U32,
        Ty::U64 => DType::U64,
        Ty::F32 => DType::F32,
        Ty::F64 => DType::F64,
    }
}

impl Emit<'_> {
    /// An operation by its scalar form; none if it has none, or if operands and result are not of one shape.
    pub fn by_scalar_form(&mut self, op: &Op, operands: &[Value], results: &[Type]) -> Result<Option<Value>> {
        let [to] = results else { return Ok(None) };
        let types: Vec<Type> = operands.iter().map(|v| self.ty(*v)).collect();
        if types.is_empty() || types.iter().any(|t| t.shape() != to.shape()) {
            return Ok(None);
        }
        let computing = |t: &Type| Ty::computing(t.dtype());
        let (Some(from), Some(out)) = (types.iter().map(computing).collect::<Option<Vec<_>>>(), computing(to)) else {
            return Ok(None);
        };
        let Some(form) = Form::written(&from, out, |s| op.scalar(s))? else { return Ok(None) };
        self.form(&form, operands, to.shape()).map(Some)
    }

    fn form(&mut self, form: &Form, operands: &[Value], shape: &Shape) -> Result<Value> {
        let mut writer = Arrays { emit: self, shape, fault: None };
        let made = form.write(&mut writer, operands);
        match writer.fault {
            Some(fault) => Err(fault),
            None => Ok(made),
        }
    }
}

/// Writes steps on whole arrays of one shape.
struct Arrays<'a, 'b, 'c> {
    emit: &'a mut Emit<'b>,
    shape: &'c Shape,
    fault: Option<gradus_core::Error>,
}

impl Writer for Arrays<'_, '_, '_> {
    type Value = Value;

    fn number(&mut self, ty: Ty, bits: u64) -> Value {
        let made = self.emit.splat(&Type::new(dtype(ty), self.shape.clone()), number(ty, bits));
        self.kept(made, Value(0))
    }

    fn op(&mut self, op: scalar::Op, ty: Ty, args: &[Value]) -> Value {
        let made = self.step(op, ty, args);
        self.kept(made, args.first().copied().unwrap_or(Value(0)))
    }
}

impl Arrays<'_, '_, '_> {
    /// The first fault stays; what follows it is not used.
    fn kept(&mut self, made: Result<Value>, instead: Value) -> Value {
        made.unwrap_or_else(|e| {
            self.fault.get_or_insert(e);
            instead
        })
    }

    fn step(&mut self, op: scalar::Op, ty: Ty, args: &[Value]) -> Result<Value> {
        use scalar::Op;
        let e = &mut *self.emit;
        let plain = |op: Op| {
            Some(match op {
                Op::Add => "stablehlo.add",
                Op::Sub => "stablehlo.subtract",
                Op::Mul => "stablehlo.multiply",
                Op::Div => "stablehlo.divide",
                Op::Rem => "stablehlo.remainder",
                Op::Neg => "stablehlo.negate",
                Op::Sqrt => "stablehlo.sqrt",
                Op::Floor => "stablehlo.floor",
                Op::Ceil => "stablehlo.ceil",
                Op::Round => "stablehlo.round_nearest_even",
                Op::Max => "stablehlo.maximum",
                Op::Min => "stablehlo.minimum",
                Op::And => "stablehlo.and",
                Op::Or => "stablehlo.or",
                Op::Xor => "stablehlo.xor",
                Op::Not => "stablehlo.not",
                Op::Shl => "stablehlo.shift_left",
                Op::Shr => "stablehlo.shift_right_logical",
                Op::Sar => "stablehlo.shift_right_arithmetic",
                Op::Popcount => "stablehlo.popcnt",
                Op::LeadingZeros => "stablehlo.count_leading_zeros",
                _ => return None,
            })
        };
        if let Some(name) = plain(op) {
            return e.same(name, args);
        }
        match (op, args) {
            (Op::Abs, [a]) if e.dtype(*a).is_unsigned() => Ok(*a),
            (Op::Abs, [_]) => e.same("stablehlo.abs", args),
            (Op::Fma, [a, b, c]) => e.mul_add(*a, *b, *c),
            (Op::Trunc, [a]) => {
                let zero = e.like(*a, 0.0)?;
                let below = e.compare("LT", *a, zero)?;
                let (up, down) = (e.same("stablehlo.ceil", args)?, e.same("stablehlo.floor", args)?);
                e.select(below, up, down)
            }
            (Op::Lesser, [a, b]) => {
                let p = e.compare("LT", *a, *b)?;
                e.select(p, *a, *b)
            }
            (Op::Greater, [a, b]) => {
                let p = e.compare("GT", *a, *b)?;
                e.select(p, *a, *b)
            }
            (Op::Rotl, [a, n]) => {
                let bits = 8.0 * e.dtype(*a).size() as f64;
                let (mask, width) = (e.like(*a, bits - 1.0)?, e.like(*a, bits)?);
                let up = e.same("stablehlo.and", &[*n, mask])?;
                let down = e.same("stablehlo.subtract", &[width, up])?;
                let high = e.same("stablehlo.shift_left", &[*a, up])?;
                let low = e.same("stablehlo.shift_right_logical", &[*a, down])?;
                e.same("stablehlo.or", &[high, low])
            }
            (Op::Eq, [a, b]) => e.compare("EQ", *a, *b),
            (Op::Ne, [a, b]) => e.compare("NE", *a, *b),
            (Op::Lt, [a, b]) => e.compare("LT", *a, *b),
            (Op::Le, [a, b]) => e.compare("LE", *a, *b),
            (Op::Select, [p, a, b]) => e.select(*p, *a, *b),
            (Op::Convert(to), [a]) => e.converted(*a, dtype(to)),
            (Op::Bitcast(to), [a]) => e.bitcast(*a, dtype(to)),
            (Op::Math(math), _) => self.math(math, ty, args),
            (Op::Special(special), _) => self.special(special, ty, args),
            _ => Err(error!(Internal, "the scalar operation {op} has no form in StableHLO")),
        }
    }

    /// An elementary function is what it is made of.
    fn math(&mut self, math: Math, ty: Ty, args: &[Value]) -> Result<Value> {
        self.emit.form(&math.form(ty), args, self.shape)
    }

    fn special(&mut self, special: Special, _: Ty, args: &[Value]) -> Result<Value> {
        let e = &mut *self.emit;
        let of = |e: &mut Emit<'_>, name: &'static str, args: &[Value]| {
            let ty = args.first().map(|a| e.ty(*a)).ok_or_else(|| error!(Internal, "`{name}` of nothing"))?;
            e.op(name, args, no_attributes(), &ty)
        };
        match (special, args) {
            (Special::ErfInv, _) => of(e, "chlo.erf_inv", args),
            (Special::Lgamma, _) => of(e, "chlo.lgamma", args),
            (Special::Digamma, _) => of(e, "chlo.digamma", args),
            (Special::Polygamma(n), [x]) => {
                let order = e.like(*x, f64::from(n))?;
                of(e, "chlo.polygamma", &[order, *x])
            }
            (Special::FloatRem, _) => of(e, "stablehlo.remainder", args),
            (Special::Nextafter, [x, y]) => e.next_after(*x, *y),
            (Special::Rare(rare), [x, y, _]) => match rare {
                Rare::Sin => of(e, "stablehlo.sine", &[*x]),
                Rare::Cos => of(e, "stablehlo.cosine", &[*x]),
                Rare::Tan => of(e, "stablehlo.tan", &[*x]),
                Rare::Log => of(e, "stablehlo.log", &[*x]),
                Rare::Log1p => of(e, "stablehlo.log_plus_one", &[*x]),
                Rare::Pow => of(e, "stablehlo.power", &[*x, *y]),
                Rare::Rem => of(e, "stablehlo.remainder", &[*x, *y]),
            },
            _ => Err(error!(Internal, "a special function of {} operands", args.len())),
        }
    }
}

/// A number by its bits.
fn number(ty: Ty, bits: u64) -> Scalar {
    match ty {
        Ty::Bool => Scalar::Bool(bits & 1 == 1),
        Ty::I8 => Scalar::I8(bits as i8),
        Ty::I16 => Scalar::I16(bits as i16),
        Ty::I32 => Scalar::I32(bits as i32),
        Ty::I64 => Scalar::I64(bits as i64),
        Ty::U8 => Scalar::U8(bits as u8),
        Ty::U16 => Scalar::U16(bits as u16),
        Ty::U32 => Scalar::U32(bits as u32),
        Ty::U64 => Scalar::U64(bits),
        Ty::F32 => Scalar::F32(f32::from_bits(bits as u32)),
        Ty::F64 => Scalar::F64(f64::from_bits(bits)),
    }
}

//! Functions of two numbers. In a derivative `x`, `y` are the operands, `z` the result and `t` the tangent of one.

use super::complex::ComplexSpecial;
use super::kernel::{one_output, operand, zip};
use super::number::{Number, Ordered};
use super::unary::elementwise_rules;
use super::{Takes, same_type_one, samples_at};
use crate::array::Array;
use crate::error::{Result, fail};
use crate::math::plain::{atan2_f32, atan2_f64};
use crate::math::special;
use crate::primitives::{
    Batch, Batched, Derivative, Entry, Infer, Jvp, Limits, Linear, NotFinite, Op, Outputs, Primitive, Sample,
    Transpose, Transposed, Types, entry,
};
use crate::rules_of;
use crate::scalar::{self, Local, Scalars, elementary};
use crate::types::{Complex, DType, Effects, bf16, dispatch_float, dispatch_number, dispatch_real, f16};

/// The sum of what each operand's tangent contributes; zero if none varies.
pub(super) fn sum_rule(parts: [Option<Array>; 2]) -> Result<Derivative> {
    match parts {
        [Some(a), Some(b)] => Derivative::one(a + b),
        [Some(a), None] | [None, Some(a)] => Derivative::one(a),
        [None, None] => Ok(Derivative::Zero),
    }
}

macro_rules! functions {
    ($(
        $(#[$doc:meta])* $name:ident = $text:literal, $takes:ident via $dispatch:ident, at $points:expr,
        |$a:ident, $b:ident| $value:expr, scalar |$s:ident| $scalar:expr, $(limits $limits:expr,)? $(halves $halves:ident,)?
        d |$x:ident, $y:ident, $z:ident, $t:ident| ($dx:expr, $dy:expr),
        transpose |$ops:ident, $bar:ident| $transpose:expr;
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default)]
            pub struct $name;

            impl Primitive for $name {
                rules_of!($text);
                fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
                    same_type_one(infer, 2, Takes::$takes)
                }
                fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
                    let (a, b) = (operand(inputs, 0)?, operand(inputs, 1)?);
                    one_output($dispatch!(a.ty().dtype(), T => zip(a, b, |$a: T, $b: T| -> T { $value }),
                        else fail!(DType, "no numbers for {}", a.ty())))
                }
                #[allow(unused_variables)]
                fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
                    let ([$x, $y], [x_dot, y_dot], [$z]) = (jvp.primals, jvp.tangents, jvp.outputs()) else {
                        fail!(Rule, "wants two operands");
                    };
                    sum_rule([
                        x_dot.as_ref().map(|$t| -> Array { $dx }),
                        y_dot.as_ref().map(|$t| -> Array { $dy }),
                    ])
                }
                fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
                    let [Some(y_bar)] = transpose.cotangents else {
                        return Ok(Transposed::Cotangents(smallvec::smallvec![None, None]));
                    };
                    let rule: fn(&[Linear], &Array) -> Option<[Option<Array>; 2]> = |$ops, $bar| $transpose;
                    Ok(match rule(transpose.operands, y_bar) {
                        Some(parts) => Transposed::Cotangents(parts.into_iter().collect()),
                        None => Transposed::NotLinear,
                    })
                }
                fn scalar(&self, $s: &mut Scalars) -> Option<Local> {
                    Some($scalar)
                }
                $(fn limits(&self) -> Limits {
                    $limits
                })?
                elementwise_rules!($($halves)?);
                fn samples() -> Vec<Sample> {
                    samples_at(&Op::new($name), 2, Takes::$takes, $points)
                }
            }
        )*

        pub(super) fn entries() -> Vec<Entry> {
            vec![$(entry::<$name>($text),)* entry::<Pow>("pow")]
        }
    };
}

/// Which of two operands the operation is linear in.
fn unknown(operands: &[Linear], i: usize) -> bool {
    matches!(operands.get(i), Some(Linear::Unknown(_)))
}

const WIDE: &[f64] = &[0.3, -1.2, 2.5, -0.7, 4.1];
const POSITIVE: &[f64] = &[0.3, 1.2, 2.5, 0.7, 4.1];

/// Sums and products leave the range.
const RANGE: Limits = Limits::NONE.making(NotFinite::Range);

functions! {
    /// Sum.
    Add = "add", Numbers via dispatch_number, at WIDE, |a, b| a.plus(b), scalar |s| s.op(scalar::Op::Add, &s.operands()), limits RANGE,
        d |x, y, z, t| (t.clone(), t.clone()),
        transpose |ops, bar| Some([0, 1].map(|i| unknown(ops, i).then(|| bar.clone())));
    /// Difference.
    Sub = "sub", Numbers via dispatch_number, at WIDE, |a, b| a.minus(b), scalar |s| s.op(scalar::Op::Sub, &s.operands()), limits RANGE,
        d |x, y, z, t| (t.clone(), -t),
        transpose |ops, bar| Some([unknown(ops, 0).then(|| bar.clone()), unknown(ops, 1).then(|| -bar)]);
    /// Product.
    Mul = "mul", Numbers via dispatch_number, at WIDE, |a, b| a.times(b), scalar |s| s.op(scalar::Op::Mul, &s.operands()), limits RANGE,
        d |x, y, z, t| (t * y, x * t),
        transpose |ops, bar| match ops {
            [Linear::Unknown(_), Linear::Known(y)] => Some([Some(bar * y), None]),
            [Linear::Known(x), Linear::Unknown(_)] => Some([None, Some(x * bar)]),
            _ => None,
        };
    /// Quotient; of integers toward zero, by zero all bits set.
    Div = "div", Numbers via dispatch_number, at WIDE, |a, b| a.over(b), scalar |s| s.op(scalar::Op::Div, &s.operands()),
        limits Limits { operand: Some(1), ..Limits::at("where the divisor is 0").written("y / x").making(NotFinite::ByZero) },
        // Transposed, both sides have the quotient of the cotangent by y: it is taken once.
        d |x, y, z, t| (t / y, -(z * t) / y),
        transpose |ops, bar| match ops {
            [Linear::Unknown(_), Linear::Known(y)] => Some([Some(bar / y), None]),
            _ => None,
        };
    /// Remainder with the sign of the dividend; of integers by zero, the dividend.
    Rem = "rem", Reals via dispatch_real, at WIDE, |a, b| a.remainder(b),
        scalar |s| {
            let float = s.ty(s.operand(0)).is_float();
            s.op(if float { scalar::Op::Special(scalar::Special::FloatRem) } else { scalar::Op::Rem }, &s.operands())
        },
        limits Limits { operand: None, ..Limits::at("where the divisor is 0").making(NotFinite::ByZero) },
        d |x, y, z, t| (t.clone(), -(t * (x / y).trunc())),
        transpose |_ops, _bar| None;
    /// The larger; NaN if either is. Where both are equal, each has half the derivative.
    Max = "max", Reals via dispatch_real, at WIDE, |a, b| a.larger(b), scalar |s| s.op(scalar::Op::Max, &s.operands()),
        d |x, y, z, t| (t * winner(x, y, z), t * winner(y, x, z)),
        transpose |_ops, _bar| None;
    /// The smaller; NaN if either is. Where both are equal, each has half the derivative.
    Min = "min", Reals via dispatch_real, at WIDE, |a, b| a.smaller(b), scalar |s| s.op(scalar::Op::Min, &s.operands()),
        d |x, y, z, t| (t * winner(x, y, z), t * winner(y, x, z)),
        transpose |_ops, _bar| None;
    /// The angle of the point (second, first) in the plane.
    Atan2 = "atan2", Floats via dispatch_float, at WIDE, |a, b| a.angle(b),
        scalar |s| s.op(elementary!(atan2(y, x), 4.0), &s.operands()),
        d |x, y, z, t| (t * (y / (x * x + y * y)), t * (-x / (x * x + y * y))),
        transpose |_ops, _bar| None;
    /// The next number from the first toward the second. Its derivative is that of the first.
    Nextafter = "nextafter", Floats via dispatch_float, at WIDE, |a, b| a.next_toward(b),
        // The next half float is not the next number of 32 bits.
        scalar |s| s.op(scalar::Op::Special(scalar::Special::Nextafter), &s.operands()), halves Whole,
        d |x, y, z, t| (t.clone(), t.zeros_like()),
        transpose |_ops, _bar| None;
}

/// One where `x` is the result, half where `y` is too, zero elsewhere.
fn winner(x: &Array, y: &Array, z: &Array) -> Array {
    let one = x.ones_like();
    x.eq(z).select(y.eq(z).select(&one * 0.5_f64, &one), x.zeros_like())
}

/// What floats of each width do bit by bit.
trait FloatBits: Sized {
    fn angle(self, other: Self) -> Self;
    fn next_toward(self, other: Self) -> Self;
}

impl FloatBits for f32 {
    fn angle(self, other: f32) -> f32 {
        atan2_f32(self, other)
    }
    fn next_toward(self, other: f32) -> f32 {
        special::nextafter_f32(self, other)
    }
}

impl FloatBits for f64 {
    fn angle(self, other: f64) -> f64 {
        atan2_f64(self, other)
    }
    fn next_toward(self, other: f64) -> f64 {
        special::nextafter(self, other)
    }
}

impl FloatBits for f16 {
    fn angle(self, other: f16) -> f16 {
        f16::from_f32(atan2_f32(self.to_f32(), other.to_f32()))
    }
    fn next_toward(self, other: f16) -> f16 {
        f16::from_bits(special::nextafter_f16(self.to_bits(), other.to_bits()))
    }
}

impl FloatBits for bf16 {
    fn angle(self, other: bf16) -> bf16 {
        bf16::from_f32(atan2_f32(self.to_f32(), other.to_f32()))
    }
    fn next_toward(self, other: bf16) -> bf16 {
        bf16::from_bits(special::nextafter_bf16(self.to_bits(), other.to_bits()))
    }
}

/// A power. Of integers by repeated squaring; a negative integer power rounds toward zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pow;

impl Primitive for Pow {
    rules_of!("pow");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        same_type_one(infer, 2, Takes::Numbers)
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let (a, b) = (operand(inputs, 0)?, operand(inputs, 1)?);
        one_output(match a.ty().dtype() {
            DType::C64 => zip(a, b, |a: Complex<f32>, b: Complex<f32>| a.complex_power(b)),
            DType::C128 => zip(a, b, |a: Complex<f64>, b: Complex<f64>| a.complex_power(b)),
            d => dispatch_real!(d, T => zip(a, b, |a: T, b: T| a.power(b)), else fail!(DType, "not a number")),
        })
    }
    /// d(x^y) = y x^(y-1) dx + log(x) x^y dy. At x = y = 0 the first is 0: the power of 0 must not turn it into NaN. Elsewhere it stays as it is, also where
    /// y = 0 makes it 0, because its own derivative there is not. At x = 0 the second is 0, which its limit is for y > 0.
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([x, y], [x_dot, y_dot], [z]) = (jvp.primals, jvp.tangents, jvp.outputs()) else {
            fail!(Rule, "wants two operands");
        };
        let by_base = x_dot.as_ref().map(|t| {
            let both = x.eq(0.0_f64) & y.eq(0.0_f64);
            let less = both.select(y.ones_like(), y - 1.0_f64);
            t * (y * x.pow(less))
        });
        let by_power = y_dot.as_ref().map(|t| {
            let safe = x.eq(0.0_f64).select(x.ones_like(), x);
            t * (safe.log() * z)
        });
        sum_rule([by_base, by_power])
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    /// Of integers it is a loop.
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        s.to().is_float().then(|| s.op(elementary!(pow(x, y), 4.0), &s.operands()))
    }
    fn limits(&self) -> Limits {
        Limits::at("at 0").written("x.pow(y)").making(NotFinite::Power)
    }
    elementwise_rules!();
    fn samples() -> Vec<Sample> {
        let mut all = samples_at(&Op::new(Pow), 2, Takes::Numbers, POSITIVE);
        all.push(
            Sample::new(Op::new(Pow), vec![Array::from([-1.5_f64, 2.0, 0.0]), Array::from([3.0_f64, -2.0, 2.0])])
                .rough(),
        );
        all
    }
}

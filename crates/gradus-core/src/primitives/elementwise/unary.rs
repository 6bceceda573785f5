//! Functions of one number: value and derivative side by side. In a derivative `x` is the operand, `y` the result and
//! `t` the tangent of `x`. Many tangents may go through a rule at a time, so what it takes of `x` and `y` is one factor where no digit is lost by that, and `t` is multiplied last.

use super::complex::{ByParts, ComplexSpecial};
use super::kernel::{map, one_output, operand};
use super::number::{Number, Ordered, Special};
use super::{Takes, same_type_one, samples_at};
use crate::array::Array;
use crate::error::{Result, fail};
use crate::primitives::{
    Batch, Batched, Derivative, Entry, Infer, Jvp, Limits, NotFinite, Op, Outputs, Primitive, Sample, Transpose,
    Transposed, Types, entry,
};
use crate::rules_of;
use crate::scalar::{self, Local, Scalars, elementary};
use crate::types::{Complex, DType, Effects, bf16, dispatch_number, dispatch_real, f16};

/// The rules that all functions of one element share.
macro_rules! elementwise_rules {
    () => {
        elementwise_rules!(Widened);
    };
    ($halves:ident) => {
        fn is_elementwise(&self) -> bool {
            true
        }
        fn halves(&self) -> $crate::primitives::Halves {
            $crate::primitives::Halves::$halves
        }
        fn is_total(&self) -> bool {
            true
        }
        fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
            batch.elementwise(Op::new(*self))
        }
        fn effects(&self) -> Effects {
            Effects::PURE
        }
    };
}
pub(super) use elementwise_rules;

/// The tangent of a function of one operand, or zero if the operand does not vary.
pub(super) fn chain(jvp: &Jvp<'_>, tangent: impl Fn(&Array, &Array, &Array) -> Option<Array>) -> Result<Derivative> {
    match (jvp.primals, jvp.tangents, jvp.outputs()) {
        ([x], [Some(t)], [y]) => {
            Ok(tangent(x, y, t).map_or(Derivative::Zero, |t| Derivative::Tangents(smallvec::smallvec![Some(t)])))
        }
        _ => Ok(Derivative::Zero),
    }
}

/// The value of a function: `math f cost` is an elementary function written over basic operations; others say what compiled Rust computes.
macro_rules! value {
    (math $f:ident $cost:literal, $v:ident: f32) => {
        $crate::math::$f(&mut $crate::math::Plain::<f32>::default(), $v)
    };
    (math $f:ident $cost:literal, $v:ident: f64) => {
        $crate::math::$f(&mut $crate::math::Plain::<f64>::default(), $v)
    };
    ($how:ident $op:ident |$w:ident| $real:expr, $v:ident: $t:ident) => {{
        let $w: $t = $v;
        $real
    }};
}

/// The same as an operation on scalars.
macro_rules! scalar {
    (math $f:ident $cost:literal) => {
        elementary!($f(x), $cost)
    };
    (op $op:ident |$v:ident| $real:expr) => {
        scalar::Op::$op
    };
    (special $f:ident |$v:ident| $real:expr) => {
        scalar::Op::Special(scalar::Special::$f)
    };
}

/// A tangent divided by a number that has a reciprocal wherever it is not 0. That is a factor of the value's shape, which is there once, however many tangents go
/// through the rule at a time: a product for each of them costs a tenth of a division. `div` and `log` divide by what may be so small that its reciprocal
/// is infinite, and zero times that is no number. Of half floats with five bits of exponent too few numbers have a reciprocal.
fn over(t: &Array, x: &Array) -> Array {
    if x.dtype() == DType::F16 { t / x } else { t * x.recip() }
}

macro_rules! functions {
    ($(
        $(#[$doc:meta])* $name:ident = $text:literal, $takes:ident, at $points:expr,
        [$($how:tt)*], $(complex |$v:ident| $complex:expr,)? $(limits $limits:expr,)?
        d |$x:ident, $y:ident, $t:ident| $d:expr;
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default)]
            pub struct $name;

            impl Primitive for $name {
                rules_of!($text);
                fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
                    same_type_one(infer, 1, Takes::$takes)
                }
                fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
                    let a = operand(inputs, 0)?;
                    one_output(match a.ty().dtype() {
                        DType::F32 => map(a, |v: f32| -> f32 { value!($($how)*, v: f32) }),
                        DType::F64 => map(a, |v: f64| -> f64 { value!($($how)*, v: f64) }),
                        DType::F16 => map(a, |h: f16| { let v = h.to_f32(); f16::from_f32(value!($($how)*, v: f32)) }),
                        DType::BF16 => map(a, |h: bf16| { let v = h.to_f32(); bf16::from_f32(value!($($how)*, v: f32)) }),
                        $(
                            DType::C64 => map(a, |$v: Complex<f32>| -> Complex<f32> { $complex }),
                            DType::C128 => map(a, |$v: Complex<f64>| -> Complex<f64> { $complex }),
                        )?
                        other => fail!(DType, "no numbers for {other}"),
                    })
                }
                fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
                    chain(jvp, |$x, $y, $t| $d)
                }
                fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
                    Ok(Transposed::NotLinear)
                }
                fn scalar(&self, s: &mut Scalars) -> Option<Local> {
                    Some(s.op(scalar!($($how)*), &s.operands()))
                }
                $(fn limits(&self) -> Limits {
                    $limits
                })?
                elementwise_rules!();
                fn samples() -> Vec<Sample> {
                    samples_at(&Op::new($name), 1, Takes::$takes, $points)
                }
            }
        )*

        pub(super) fn entries() -> Vec<Entry> {
            vec![
                $(entry::<$name>($text),)*
                entry::<Neg>("neg"), entry::<Abs>("abs"), entry::<Sign>("sign"),
                entry::<IntegerPow>("integer_pow"), entry::<Polygamma>("polygamma"),
            ]
        }
    };
}

/// 1 - x²: where x is near to one as a product, which loses no digits there; where it is near to zero as it stands, because the slope of the product loses those of x.
fn beside_one(x: &Array) -> Array {
    x.abs().lt(0.5_f64).select(1.0_f64 - x * x, (1.0_f64 - x) * (x + 1.0_f64))
}

const WIDE: &[f64] = &[0.3, -1.2, 2.5, -0.7, 4.1];
const POSITIVE: &[f64] = &[0.3, 1.2, 2.5, 0.07, 14.1];
const UNIT: &[f64] = &[0.3, -0.2, 0.75, -0.9, 0.05];

functions! {
    /// The largest whole number not above.
    Floor = "floor", Floats, at WIDE, [op Floor |v| v.floor()], d |_x, _y, _t| None;
    /// The smallest whole number not below.
    Ceil = "ceil", Floats, at WIDE, [op Ceil |v| v.ceil()], d |_x, _y, _t| None;
    /// The nearest whole number, halves to even.
    Round = "round", Floats, at &[0.3, -1.2, 2.6, -0.7, 4.1], [op Round |v| v.round_even()], d |_x, _y, _t| None;
    /// The whole part.
    Trunc = "trunc", Floats, at WIDE, [op Trunc |v| v.trunc()], d |_x, _y, _t| None;
    /// e to a power.
    Exp = "exp", Inexact, at WIDE, [math exp 1.2], complex |v| v.exp_(), limits Limits::NONE.making(NotFinite::Exponent), d |_x, y, t| Some(t * y);
    /// e to a power, less one, exact for small arguments.
    Expm1 = "expm1", Inexact, at WIDE, [math expm1 1.2], complex |v| v.expm1_(), limits Limits::NONE.making(NotFinite::Exponent),
        d |_x, y, t| Some(t * (y + 1.0_f64));
    /// The natural logarithm.
    Log = "log", Inexact, at POSITIVE, [math log 1.2], complex |v| v.log_(), limits Limits::at("at 0").outside(), d |x, _y, t| Some(t / x);
    /// The natural logarithm of one more, exact for small arguments.
    Log1p = "log1p", Inexact, at POSITIVE, [math log1p 1.2], complex |v| v.log1p_(), limits Limits::at("at -1").outside(),
        d |x, _y, t| Some(over(t, &(x + 1.0_f64)));
    /// The square root.
    Sqrt = "sqrt", Inexact, at POSITIVE, [op Sqrt |v| v.sqrt()], complex |v| v.sqrt(), limits Limits::at("at 0").outside(),
        d |_x, y, t| Some(t * 0.5_f64 / y);
    /// One over the square root.
    Rsqrt = "rsqrt", Inexact, at POSITIVE, [math rsqrt 0.6], complex |v| v.rsqrt_(), limits Limits::at("at 0").outside(),
        d |x, y, t| Some(t * (y / x * -0.5_f64));
    /// The cube root.
    Cbrt = "cbrt", Floats, at WIDE, [math cbrt 4.0], limits Limits::at("at 0"), d |_x, y, t| Some(over(t, &(y * y * 3.0_f64)));
    /// Sine.
    Sin = "sin", Inexact, at WIDE, [math sin 1.2], complex |v| v.sin_(), d |x, _y, t| Some(t * x.cos());
    /// Cosine.
    Cos = "cos", Inexact, at WIDE, [math cos 1.2], complex |v| v.cos_(), d |x, _y, t| Some(t * -x.sin());
    /// Tangent: y' = 1 + y².
    Tan = "tan", Inexact, at UNIT, [math tan 4.0], complex |v| v.tan_(), d |_x, y, t| Some(t * (y * y + 1.0_f64));
    /// Inverse sine.
    Asin = "asin", Inexact, at UNIT, [math asin 4.0], complex |v| v.asin_(), limits Limits::at("at -1 and 1").safe("0.0").outside(),
        d |x, _y, t| Some(t * beside_one(x).rsqrt());
    /// Inverse cosine.
    Acos = "acos", Inexact, at UNIT, [math acos 4.0], complex |v| v.acos_(), limits Limits::at("at -1 and 1").safe("0.0").outside(),
        d |x, _y, t| Some(t * -beside_one(x).rsqrt());
    /// Inverse tangent.
    Atan = "atan", Inexact, at WIDE, [math atan 1.2], complex |v| v.atan_(), d |x, _y, t| Some(over(t, &(x * x + 1.0_f64)));
    /// Hyperbolic sine.
    Sinh = "sinh", Inexact, at WIDE, [math sinh 4.0], complex |v| v.sinh_(), limits Limits::NONE.making(NotFinite::Exponent),
        d |x, _y, t| Some(t * x.cosh());
    /// Hyperbolic cosine.
    Cosh = "cosh", Inexact, at WIDE, [math cosh 4.0], complex |v| v.cosh_(), limits Limits::NONE.making(NotFinite::Exponent),
        d |x, _y, t| Some(t * x.sinh());
    /// Hyperbolic tangent: y' = 1 - y².
    Tanh = "tanh", Inexact, at WIDE, [math tanh 1.2], complex |v| v.tanh_(), d |_x, y, t| Some(t * (1.0_f64 - y * y));
    /// Inverse hyperbolic sine.
    Asinh = "asinh", Inexact, at WIDE, [math asinh 4.0], complex |v| v.asinh_(), d |x, _y, t| Some(t * (x * x + 1.0_f64).rsqrt());
    /// Inverse hyperbolic cosine.
    Acosh = "acosh", Inexact, at &[1.3, 2.2, 7.5], [math acosh 4.0], complex |v| v.acosh_(), limits Limits::at("at 1").safe("2.0").outside(),
        d |x, _y, t| Some(t * ((x - 1.0_f64).rsqrt() * (x + 1.0_f64).rsqrt()));
    /// Inverse hyperbolic tangent.
    Atanh = "atanh", Inexact, at UNIT, [math atanh 4.0], complex |v| v.atanh_(), limits Limits::at("at -1 and 1").safe("0.0").outside(),
        d |x, _y, t| Some(over(t, &beside_one(x)));
    /// 1 / (1 + e^-x): y' = y (1 - y).
    Logistic = "logistic", Inexact, at WIDE, [math logistic 1.2], complex |v| v.logistic_(), d |_x, y, t| Some(t * (y * (1.0_f64 - y)));
    /// The error function: y' = 2/√π e^(-x²).
    Erf = "erf", Floats, at WIDE, [math erf 1.2], d |x, _y, t| Some(t * ((-(x * x)).exp() * std::f64::consts::FRAC_2_SQRT_PI));
    /// One less the error function.
    Erfc = "erfc", Floats, at WIDE, [math erfc 1.2], d |x, _y, t| Some(t * ((-(x * x)).exp() * -std::f64::consts::FRAC_2_SQRT_PI));
    /// The inverse of the error function: y' = √π/2 e^(y²).
    ErfInv = "erf_inv", Floats, at UNIT, [special ErfInv |v| v.erf_inv_()],
        d |_x, y, t| Some(t * ((y * y).exp() * (1.0 / std::f64::consts::FRAC_2_SQRT_PI)));
    /// The logarithm of the absolute value of the gamma function.
    Lgamma = "lgamma", Floats, at POSITIVE, [special Lgamma |v| v.lgamma_()], limits Limits::NONE.outside(), d |x, _y, t| Some(t * x.digamma());
    /// The derivative of the logarithm of the gamma function.
    Digamma = "digamma", Floats, at POSITIVE, [special Digamma |v| v.digamma_()], limits Limits::NONE.outside(), d |x, _y, t| Some(t * x.polygamma(1));
}

/// Minus.
#[derive(Clone, Copy, Debug, Default)]
pub struct Neg;

impl Primitive for Neg {
    rules_of!("neg");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        same_type_one(infer, 1, Takes::Numbers)
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let a = operand(inputs, 0)?;
        one_output(dispatch_number!(a.ty().dtype(), T => map(a, |v: T| v.negated()), else fail!(DType, "not a number")))
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        Derivative::linear(Op::fixed(&Neg), jvp)
    }
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        match transpose.cotangents {
            [Some(y_bar)] => Transposed::one(-y_bar),
            _ => Ok(Transposed::Cotangents(smallvec::smallvec![None])),
        }
    }
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        Some(s.op(scalar::Op::Neg, &s.operands()))
    }
    elementwise_rules!();
    fn samples() -> Vec<Sample> {
        samples_at(&Op::new(Neg), 1, Takes::Numbers, WIDE)
    }
}

/// The absolute value; of a complex number, its length, a real number.
#[derive(Clone, Copy, Debug, Default)]
pub struct Abs;

impl Primitive for Abs {
    rules_of!("abs");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        let types = same_type_one(infer, 1, Takes::Numbers)?;
        Ok(types.into_iter().map(|t| t.with_dtype(t.dtype().real_part())).collect())
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let a = operand(inputs, 0)?;
        one_output(match a.ty().dtype() {
            DType::C64 => map(a, |v: Complex<f32>| v.length()),
            DType::C128 => map(a, |v: Complex<f64>| v.length()),
            d => dispatch_real!(d, T => map(a, |v: T| v.absolute()), else fail!(DType, "not a number")),
        })
    }
    /// Real: t·sign(x), which is 0 at 0. Complex: d|x| = (Re x Re t + Im x Im t) / |x|, taken as 0 at 0.
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        chain(jvp, |x, y, t| {
            if !x.dtype().is_complex() {
                return Some(t * x.sign());
            }
            let safe = y.eq(0.0_f64).select(y.ones_like(), y);
            Some((x.real() * t.real() + x.imag() * t.imag()) / safe)
        })
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        Some(s.op(scalar::Op::Abs, &s.operands()))
    }
    elementwise_rules!();
    fn samples() -> Vec<Sample> {
        samples_at(&Op::new(Abs), 1, Takes::Numbers, WIDE)
    }
}

/// -1, 0 or 1; of a complex number, the number of length one in its direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sign;

impl Primitive for Sign {
    rules_of!("sign");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        same_type_one(infer, 1, Takes::Numbers)
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let a = operand(inputs, 0)?;
        one_output(match a.ty().dtype() {
            DType::C64 => map(a, |v: Complex<f32>| if v.norm() == 0.0 { v } else { v / v.norm() }),
            DType::C128 => map(a, |v: Complex<f64>| if v.norm() == 0.0 { v } else { v / v.norm() }),
            d => dispatch_real!(d, T => map(a, |v: T| v.sign_of()), else fail!(DType, "not a number")),
        })
    }
    /// Real: zero. Complex, with y = x/|x|: dy = (t - y Re(conj(y) t)) / |x|.
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        chain(jvp, |x, y, t| {
            if !x.dtype().is_complex() {
                return None;
            }
            let along = y.real() * t.real() + y.imag() * t.imag();
            let length = x.abs();
            let safe = length.eq(0.0_f64).select(length.ones_like(), &length);
            Some((t - y * along.cast(x.dtype())) / safe.cast(x.dtype()))
        })
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    /// A float's zero keeps its sign, and NaN stays.
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        let x = s.operand(0);
        let ty = s.ty(x);
        let (zero, plus) = (s.number(ty, 0.0), s.number(ty, 1.0));
        // Nothing without a sign is below zero, but the choice is there.
        let minus = if ty.is_float() { s.number(ty, -1.0) } else { s.bits(ty, u64::MAX) };
        let above = s.op(scalar::Op::Lt, &[zero, x]);
        let below = s.op(scalar::Op::Lt, &[x, zero]);
        let low = s.op(scalar::Op::Select, &[below, minus, x]);
        Some(s.op(scalar::Op::Select, &[above, plus, low]))
    }
    elementwise_rules!();
    fn samples() -> Vec<Sample> {
        samples_at(&Op::new(Sign), 1, Takes::Numbers, WIDE)
    }
}

/// A whole power, by repeated squaring.
#[derive(Clone, Copy, Debug)]
pub struct IntegerPow {
    /// The power; negative ones divide.
    pub exponent: i64,
}

impl Primitive for IntegerPow {
    rules_of!("integer_pow"; exponent);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        if self.exponent < 0 && infer.inputs.first().is_some_and(|t| t.dtype().is_int()) {
            fail!(DType, "a negative power of integers is not an integer");
        }
        same_type_one(infer, 1, Takes::Numbers)
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let (a, n) = (operand(inputs, 0)?, self.exponent);
        one_output(match a.ty().dtype() {
            // Half floats multiply in f32 and round once.
            DType::F16 => map(a, |v: f16| f16::from_f32(v.to_f32().integer_power(n))),
            DType::BF16 => map(a, |v: bf16| bf16::from_f32(v.to_f32().integer_power(n))),
            d => dispatch_number!(d, T => map(a, |v: T| v.integer_power(n)), else fail!(DType, "not a number")),
        })
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let n = self.exponent;
        chain(jvp, |x, _y, t| match n {
            0 => None,
            1 => Some(t.clone()),
            2 => Some(t * (x * 2.0_f64)),
            _ => Some(t * (x.powi(n.saturating_sub(1)) * n as f64)),
        })
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    /// In the order of `Number::integer_power`.
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        let x = s.operand(0);
        let ty = s.ty(x);
        let (mut base, mut n, mut product) = (x, self.exponent.unsigned_abs(), None);
        while n > 0 {
            if n & 1 == 1 {
                product = Some(product.map_or(base, |p| s.op(scalar::Op::Mul, &[p, base])));
            }
            n >>= 1;
            if n > 0 {
                base = s.op(scalar::Op::Mul, &[base, base]);
            }
        }
        let power = product.unwrap_or_else(|| s.number(ty, 1.0));
        if self.exponent >= 0 {
            return Some(power);
        }
        let one = s.number(ty, 1.0);
        Some(s.op(scalar::Op::Div, &[one, power]))
    }
    fn limits(&self) -> Limits {
        let operand = (self.exponent < 0).then_some(0);
        Limits { operand, ..Limits::at("at 0").written("x.powi(n)") }
    }
    elementwise_rules!();
    fn samples() -> Vec<Sample> {
        let powers = [0, 1, 2, 3, 5, -1, -3];
        let mut all: Vec<Sample> = powers
            .into_iter()
            .flat_map(|n| {
                let takes = if n < 0 { Takes::Inexact } else { Takes::Numbers };
                samples_at(&Op::new(IntegerPow { exponent: n }), 1, takes, WIDE)
            })
            .collect();
        // Higher powers leave half precision quickly; the loop is the same.
        all.retain(|s| s.inputs.iter().all(|a| a.dtype().size() > 2));
        all
    }
}

/// The polygamma function of an order of at least one: derivatives of the digamma function.
#[derive(Clone, Copy, Debug)]
pub struct Polygamma {
    /// How often the digamma function is differentiated.
    pub order: u32,
}

impl Primitive for Polygamma {
    rules_of!("polygamma"; order);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        if self.order == 0 {
            fail!(Value, "order 0 is `digamma`; `polygamma` starts at order 1");
        }
        same_type_one(infer, 1, Takes::Floats)
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let (a, n) = (operand(inputs, 0)?, self.order);
        one_output(match a.ty().dtype() {
            DType::F32 => map(a, |v: f32| v.polygamma_(n)),
            DType::F64 => map(a, |v: f64| v.polygamma_(n)),
            DType::F16 => map(a, |v: f16| f16::from_f32(v.to_f32().polygamma_(n))),
            DType::BF16 => map(a, |v: bf16| bf16::from_f32(v.to_f32().polygamma_(n))),
            other => fail!(DType, "no numbers for {other}"),
        })
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let order = self.order;
        chain(jvp, |x, _y, t| Some(t * x.polygamma(order.saturating_add(1))))
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        Some(s.op(scalar::Op::Special(scalar::Special::Polygamma(self.order)), &s.operands()))
    }
    elementwise_rules!();
    fn samples() -> Vec<Sample> {
        let mut all: Vec<Sample> = [1, 2]
            .into_iter()
            .flat_map(|order| samples_at(&Op::new(Polygamma { order }), 1, Takes::Floats, POSITIVE))
            .collect();
        all.retain(|s| s.inputs.iter().all(|a| a.dtype().size() > 2));
        all
    }
}

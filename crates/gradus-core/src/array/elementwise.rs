//! Operators, and the methods that treat every element alike.

use std::ops::{
    Add, AddAssign, BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Div, DivAssign, Mul, MulAssign,
    Neg, Not, Rem, RemAssign, Shl, ShlAssign, Shr, ShrAssign, Sub, SubAssign,
};

use super::operand::{binary, broadcast, broadcast_pair, broadcast_shapes, checked, dim_as, number_like};
use super::{Array, Operand, OperandValue};
use crate::error::{Result, error};
use crate::primitives::Op;
use crate::primitives::elementwise as p;
use crate::primitives::elementwise::{Compare, Direction, IntegerPow, Polygamma};
use crate::trace::bind;
use crate::types::{Complex, DType, Scalar, bf16, f16};

/// The primitive of an operator beside an array. What comes in above depends on whether the number has a sign.
macro_rules! primitive {
    (ShiftRight, $array:expr) => {
        if $array.dtype().is_signed_int() {
            &p::ShiftRightArithmetic as &'static dyn crate::primitives::Primitive
        } else {
            &p::ShiftRightLogical
        }
    };
    ($primitive:ident, $array:expr) => {
        &p::$primitive
    };
}
macro_rules! operators {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident $primitive:ident),*) => {$(
        impl<R: Operand> $trait<R> for &Array {
            type Output = Array;
            #[track_caller]
            fn $method(self, other: R) -> Array {
                binary(primitive!($primitive, self), self, other)
            }
        }
        impl<R: Operand> $trait<R> for Array {
            type Output = Array;
            #[track_caller]
            fn $method(self, other: R) -> Array {
                binary(primitive!($primitive, self), &self, other)
            }
        }
        /// The array becomes the result; other clones of it stay as they are.
        impl<R: Operand> $assign<R> for Array {
            #[track_caller]
            fn $assign_method(&mut self, other: R) {
                *self = binary(primitive!($primitive, self), self, other);
            }
        }
        // Of the types that a literal can have, one float and one integer, the ones that Rust itself falls back to: with two of them
        // `(1.0 - x).log()` would not know which is meant. Numbers of other types stand on the right, or are made arrays.
        left_numbers!($trait $method $primitive: bool i32 f16 bf16 f64, Complex<f32>, Complex<f64>);
    )*};
}
macro_rules! left_numbers {
    ($trait:ident $method:ident $primitive:ident: $($t:ident)*, $($c:ty),*) => {
        $(left_numbers!(@ $trait $method $primitive $t);)*
        $(left_numbers!(@ $trait $method $primitive $c);)*
    };
    (@ $trait:ident $method:ident $primitive:ident $t:ty) => {
        impl $trait<&Array> for $t {
            type Output = Array;
            #[track_caller]
            fn $method(self, other: &Array) -> Array {
                number_first(primitive!($primitive, other), Scalar::from(self), other)
            }
        }
        impl $trait<Array> for $t {
            type Output = Array;
            #[track_caller]
            fn $method(self, other: Array) -> Array {
                number_first(primitive!($primitive, other), Scalar::from(self), &other)
            }
        }
    };
}
operators!(
    Add add AddAssign add_assign Add, Sub sub SubAssign sub_assign Sub, Mul mul MulAssign mul_assign Mul,
    Div div DivAssign div_assign Div, Rem rem RemAssign rem_assign Rem, BitAnd bitand BitAndAssign bitand_assign And,
    BitOr bitor BitOrAssign bitor_assign Or, BitXor bitxor BitXorAssign bitxor_assign Xor,
    Shl shl ShlAssign shl_assign ShiftLeft, Shr shr ShrAssign shr_assign ShiftRight
);

/// A number on the left of an operator: it takes the dtype of the array on its right.
#[track_caller]
fn number_first(primitive: &'static dyn crate::primitives::Primitive, number: Scalar, array: &Array) -> Array {
    let ty = match array.ty() {
        Ok(ty) => ty,
        Err(e) => return e.into(),
    };
    match number_like(number, ty) {
        Ok(left) => bind(Op::fixed(primitive), &[left, array.clone()]),
        Err(e) => checked(Err(e.in_operation(primitive.name()))),
    }
}

impl Neg for &Array {
    type Output = Array;
    #[track_caller]
    fn neg(self) -> Array {
        unary(&p::Neg, self)
    }
}

impl Neg for Array {
    type Output = Array;
    #[track_caller]
    fn neg(self) -> Array {
        unary(&p::Neg, &self)
    }
}

impl Not for &Array {
    type Output = Array;
    #[track_caller]
    fn not(self) -> Array {
        unary(&p::Not, self)
    }
}

impl Not for Array {
    type Output = Array;
    #[track_caller]
    fn not(self) -> Array {
        unary(&p::Not, &self)
    }
}

#[track_caller]
fn unary(primitive: &'static dyn crate::primitives::Primitive, x: &Array) -> Array {
    bind(Op::fixed(primitive), std::slice::from_ref(x))
}

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $method:ident $primitive:ident;)*) => {
        impl Array {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $method(&self) -> Array {
                unary(&p::$primitive, self)
            }
        )*}
    };
}
unary_methods! {
    /// The absolute value; of complex numbers, the length.
    #[doc(alias = "absolute")]
    #[doc(alias = "fabs")]
    abs Abs;
    /// -1, 0 or 1; of complex numbers, the direction.
    sign Sign;
    /// Down to a whole number.
    floor Floor;
    /// Up to a whole number.
    ceil Ceil;
    /// To the nearest whole number, halves to even.
    #[doc(alias = "around")]
    #[doc(alias = "rint")]
    round Round;
    /// The whole part.
    trunc Trunc;
    /// e to this power.
    exp Exp;
    /// e to this power less one.
    expm1 Expm1;
    /// The natural logarithm.
    log Log;
    /// The natural logarithm of one more.
    log1p Log1p;
    /// The square root.
    sqrt Sqrt;
    /// One over the square root.
    rsqrt Rsqrt;
    /// The cube root.
    cbrt Cbrt;
    /// Sine.
    sin Sin;
    /// Cosine.
    cos Cos;
    /// Tangent.
    tan Tan;
    /// Inverse sine.
    #[doc(alias = "arcsin")]
    asin Asin;
    /// Inverse cosine.
    #[doc(alias = "arccos")]
    acos Acos;
    /// Inverse tangent.
    #[doc(alias = "arctan")]
    atan Atan;
    /// Hyperbolic sine.
    sinh Sinh;
    /// Hyperbolic cosine.
    cosh Cosh;
    /// Hyperbolic tangent.
    tanh Tanh;
    /// Inverse hyperbolic sine.
    #[doc(alias = "arcsinh")]
    asinh Asinh;
    /// Inverse hyperbolic cosine.
    #[doc(alias = "arccosh")]
    acosh Acosh;
    /// Inverse hyperbolic tangent.
    #[doc(alias = "arctanh")]
    atanh Atanh;
    /// 1 / (1 + e^-x), the logistic function.
    #[doc(alias = "expit")]
    #[doc(alias = "sigmoid")]
    logistic Logistic;
    /// The error function.
    erf Erf;
    /// One less the error function.
    erfc Erfc;
    /// The inverse of the error function.
    #[doc(alias = "erfinv")]
    erf_inv ErfInv;
    /// The logarithm of the absolute value of the gamma function.
    #[doc(alias = "gammaln")]
    #[doc(alias = "loggamma")]
    lgamma Lgamma;
    /// The derivative of `lgamma`.
    digamma Digamma;
    /// Whether neither infinite nor NaN.
    #[doc(alias = "isfinite")]
    is_finite IsFinite;
    /// The number of set bits.
    #[doc(alias = "population_count")]
    #[doc(alias = "bitwise_count")]
    popcount Popcount;
    /// The number of zero bits before the first set one.
    #[doc(alias = "clz")]
    count_leading_zeros CountLeadingZeros;
}

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $method:ident $primitive:ident;)*) => {
        impl Array {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $method(&self, other: impl Operand) -> Array {
                binary(&p::$primitive, self, other)
            }
        )*}
    };
}
binary_methods! {
    /// This to a power, element by element.
    #[doc(alias = "float_power")]
    #[doc(alias = "power")]
    pow Pow;
    /// The angle of the points (other, self) in the plane.
    #[doc(alias = "arctan2")]
    atan2 Atan2;
    /// The larger of each pair; NaN if either is.
    maximum Max;
    /// The smaller of each pair; NaN if either is.
    minimum Min;
    /// The next number toward another.
    nextafter Nextafter;
    /// Bits moved down with zeros coming in (`>>` brings in the sign of a number that has one).
    shift_right_logical ShiftRightLogical;
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $method:ident $direction:ident;)*) => {
        impl Array {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $method(&self, other: impl Operand) -> Array {
                self.compare(Direction::$direction, other)
            }
        )*}
    };
}
comparisons! {
    /// Where equal. NaN is equal to nothing.
    #[doc(alias = "equal")]
    eq Eq;
    /// Where different.
    #[doc(alias = "not_equal")]
    ne Ne;
    /// Where less.
    #[doc(alias = "less")]
    lt Lt;
    /// Where less or equal.
    #[doc(alias = "less_equal")]
    le Le;
    /// Where greater.
    #[doc(alias = "greater")]
    gt Gt;
    /// Where greater or equal.
    #[doc(alias = "greater_equal")]
    ge Ge;
}

impl Array {
    #[track_caller]
    fn compare(&self, direction: Direction, other: impl Operand) -> Array {
        match broadcast_pair(self, other) {
            Ok((a, b)) => bind(Op::new(Compare { direction }), &[a, b]),
            Err(e) => checked(Err(e.in_operation("compare"))),
        }
    }

    /// A whole power, by repeated squaring.
    #[doc(alias = "integer_pow")]
    #[track_caller]
    pub fn powi(&self, exponent: i64) -> Array {
        bind(Op::new(IntegerPow { exponent }), std::slice::from_ref(self))
    }

    /// The square.
    #[track_caller]
    pub fn square(&self) -> Array {
        self * self
    }

    /// One over this.
    #[doc(alias = "reciprocal")]
    #[track_caller]
    pub fn recip(&self) -> Array {
        1i32 / self
    }

    /// The polygamma function of an order of at least one.
    #[track_caller]
    pub fn polygamma(&self, order: u32) -> Array {
        bind(Op::new(Polygamma { order }), std::slice::from_ref(self))
    }

    /// The larger of this and zero. At zero its derivative is zero, where that of `maximum(0)` is a half.
    #[track_caller]
    pub fn relu(&self) -> Array {
        // This way round, so that NaN stays NaN.
        self.le(0i32).select(self.zeros_like(), self)
    }

    /// log2 by the natural logarithm.
    #[track_caller]
    pub fn log2(&self) -> Array {
        self.log() * std::f64::consts::LOG2_E
    }

    /// log10 by the natural logarithm.
    #[track_caller]
    pub fn log10(&self) -> Array {
        self.log() * std::f64::consts::LOG10_E
    }

    /// `self * factor + summand`, rounded once. Of `f32` and `f64`, in arrays of one shape; numbers take it.
    #[track_caller]
    pub fn mul_add(&self, factor: impl Operand, summand: impl Operand) -> Array {
        match (self.fit_to(factor.into_operand()), self.fit_to(summand.into_operand())) {
            (Ok(factor), Ok(summand)) => bind(Op::fixed(&p::MulAdd), &[self.clone(), factor, summand]),
            (Err(e), _) | (_, Err(e)) => checked(Err(e.in_operation("mul_add"))),
        }
    }

    /// An operand in this array's shape, and of its dtype.
    #[track_caller]
    fn fit_to(&self, x: OperandValue) -> Result<Array> {
        match x {
            OperandValue::Number(n) => number_like(n, self.ty()?),
            OperandValue::Dim(d) => broadcast(&dim_as(&d, self.ty()?.dtype())?, self.shape()).ok(),
            OperandValue::Array(a) if a.ty()? == self.ty()? => Ok(a),
            OperandValue::Array(a) if a.rank() > self.rank() => {
                Err(error!(Shape, "{} beside {}, whose shape the result has", a.ty()?, self.ty()?)
                    .help("give the array the shape of the others first, with `broadcast_to`"))
            }
            OperandValue::Array(a) if a.dtype() == self.dtype() => broadcast(&a, self.shape()).ok(),
            OperandValue::Array(a) => {
                Err(error!(DType, "{} beside {}", a.ty()?, self.ty()?).help("cast one of them first"))
            }
        }
    }

    /// Held between two bounds.
    #[doc(alias = "clip")]
    #[track_caller]
    pub fn clamp(&self, low: impl Operand, high: impl Operand) -> Array {
        match (self.fit_to(low.into_operand()), self.fit_to(high.into_operand())) {
            (Ok(low), Ok(high)) => bind(Op::fixed(&p::Clamp), &[low, self.clone(), high]),
            (Err(e), _) | (_, Err(e)) => checked(Err(e.in_operation("clamp"))),
        }
    }

    /// `on_true` where this is true, `on_false` elsewhere. All three broadcast together.
    ///
    /// Both choices are computed. Where one of them is undefined (a division by zero, the root of a negative
    /// number), make its operand safe before, as [`guarded`](Array::guarded) does; otherwise derivatives are NaN.
    #[doc(alias = "select_n")]
    #[doc(alias = "where")]
    #[track_caller]
    pub fn select(&self, on_true: impl Operand, on_false: impl Operand) -> Array {
        match self.fit_choices(on_true.into_operand(), on_false.into_operand()) {
            Ok(inputs) => bind(Op::fixed(&p::Select), &inputs),
            Err(e) => checked(Err(e.in_operation("select"))),
        }
    }

    /// A function of `x` where this mask is true, `otherwise` elsewhere, with a derivative that is right in both places.
    ///
    /// Where the mask is false the function sees `safe` instead of `x`: a number at which it has a finite slope.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let x = Array::from([4.0_f64, 0.0]);
    /// let root = x.gt(0.0_f64).guarded(&x, 1.0_f64, |x| x.sqrt(), 0.0_f64);
    /// assert_eq!(root.to_vec::<f64>().unwrap(), [2.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn guarded(
        &self,
        x: &Array,
        safe: impl Operand,
        f: impl FnOnce(&Array) -> Array,
        otherwise: impl Operand,
    ) -> Array {
        self.select(f(&self.select(x, safe)), otherwise)
    }

    #[track_caller]
    fn fit_choices(&self, a: OperandValue, b: OperandValue) -> Result<[Array; 3]> {
        let (a, b) = match (a, b) {
            (OperandValue::Array(a), b) => broadcast_pair(&a, b)?,
            (number, OperandValue::Array(b)) => {
                let (b, a) = broadcast_pair(&b, number)?;
                (a, b)
            }
            (a, b) => broadcast_pair(&a.into_array(), b)?,
        };
        let (tp, ta) = (self.ty()?, a.ty()?);
        let shape = broadcast_shapes(tp.shape(), ta.shape())
            .ok_or_else(|| error!(Shape, "{tp} and {ta} do not broadcast together"))?;
        Ok([broadcast(self, &shape).ok()?, broadcast(&a, &shape).ok()?, broadcast(&b, &shape).ok()?])
    }

    /// Where NaN.
    #[doc(alias = "isnan")]
    #[track_caller]
    pub fn is_nan(&self) -> Array {
        self.ne(self)
    }

    /// A complex array from its parts, which are f32 or f64.
    #[track_caller]
    pub fn complex(re: &Array, im: &Array) -> Array {
        binary(&p::Complex, re, im)
    }

    /// The real part; of real numbers, themselves.
    #[track_caller]
    pub fn real(&self) -> Array {
        if self.dtype().is_complex() { unary(&p::Real, self) } else { self.clone() }
    }

    /// The imaginary part; of real numbers, zeros.
    #[track_caller]
    pub fn imag(&self) -> Array {
        if self.dtype().is_complex() || self.error().is_some() { unary(&p::Imag, self) } else { self.zeros_like() }
    }

    /// The complex conjugate; of real numbers, themselves.
    #[doc(alias = "conjugate")]
    #[track_caller]
    pub fn conj(&self) -> Array {
        if self.dtype().is_complex() { unary(&p::Conj, self) } else { self.clone() }
    }

    /// The angle of complex numbers.
    #[track_caller]
    pub fn angle(&self) -> Array {
        self.imag().atan2(self.real())
    }

    /// Whether every element is of a dtype that derivatives exist for.
    pub fn is_differentiable(&self) -> bool {
        self.dtype().is_inexact() && self.dtype() != DType::Bool
    }
}

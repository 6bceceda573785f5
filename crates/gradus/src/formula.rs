//! How functions of several numbers are written: each parameter is an array or a number, numbers take the dtype of the arrays, and every operation
//! inside stands for the line of the caller.

use gradus_core::trace::{at_place, caller_or_known};
use gradus_core::{Array, DType, Error, ErrorKind, Location, OperandValue, Result, Scalar};

/// Functions of operands that broadcast together. The body sees them as arrays of one float dtype.
macro_rules! formulas {
    ($($(#[$doc:meta])* $name:ident($($x:ident),*) = $body:expr;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name($($x: impl ::gradus_core::Operand),*) -> ::gradus_core::Array {
            let operands = [$($x.into_operand()),*];
            $crate::formula::computed(stringify!($name), operands, |[$($x),*]| $body)
        }
    )*};
}
pub(crate) use formulas;

/// The result of a formula, or what is wrong with its operands.
#[track_caller]
pub(crate) fn computed<const N: usize>(
    name: &str,
    operands: [OperandValue; N],
    f: impl Fn(&[Array; N]) -> Array,
) -> Array {
    let place = caller_or_known(Location::caller());
    at_place(place, || {
        let (arrays, dtype) = floats(operands).map_err(|e| e.in_operation(name))?;
        f(&arrays).cast(dtype).ok()
    })
    .map_err(|e| e.at(place))
    .into()
}

/// The operands in the float dtype that holds those which are arrays, and that dtype; integers are taken as `f64`. Half floats are computed with as `f32`.
fn floats<const N: usize>(operands: [OperandValue; N]) -> Result<([Array; N], DType)> {
    let mut common: Option<DType> = None;
    for operand in &operands {
        let OperandValue::Array(a) = operand else { continue };
        let dtype = a.ty()?.dtype();
        let dtype = if dtype.is_inexact() { dtype } else { DType::F64 };
        common = Some(match common {
            None => dtype,
            Some(other) => other.promote(dtype).ok_or_else(|| {
                Error::new(ErrorKind::DType, format!("no dtype holds every value of both {other} and {dtype}"))
                    .help(format!("cast one of them, as in `x.cast(DType::{})`", other.rust_name()))
            })?,
        });
    }
    let dtype = common.unwrap_or(DType::F64);
    if !dtype.is_float() {
        return Err(Error::new(ErrorKind::DType, format!("takes real numbers, not {dtype}")));
    }
    let wide = if dtype.size() < 4 { DType::F32 } else { dtype };
    let one = |operand: OperandValue| match operand {
        OperandValue::Array(a) => a.cast(wide).ok(),
        OperandValue::Number(n) => n.literal_as(wide).map(Array::scalar),
        OperandValue::Dim(d) => Array::from_dim(&d, wide).ok(),
    };
    let mut all = Vec::with_capacity(N);
    for operand in operands {
        all.push(one(operand)?);
    }
    let all = all.try_into().map_err(|_| Error::new(ErrorKind::Rule, "an operand was lost"))?;
    Ok((all, dtype))
}

/// A number in every place of an array like another.
pub(crate) fn number(like: &Array, value: f64) -> Array {
    Array::scalar(Scalar::F64(value).cast(like.dtype()))
}

/// A number that an option gives, in the dtype of an array: the nearest that it has, and the largest finite one where that is too small.
/// A literal in its place would be refused where the dtype does not have it.
pub(crate) fn option(like: &Array, value: f64) -> Array {
    let most = match like.dtype().real_part() {
        DType::F16 => 65_504.0,
        DType::BF16 => 3.389_531_389_251_535_5e38,
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    };
    number(like, value.clamp(-most, most))
}

/// Minus infinity, the logarithm of what is impossible.
pub(crate) fn impossible(like: &Array) -> Array {
    number(like, f64::NEG_INFINITY)
}

/// NaN at some places, where its derivative is NaN too; elsewhere nothing depends on it.
pub(crate) fn undefined(x: &Array, places: &Array) -> Array {
    // The choice comes first, so that what flows back through the product is taken at these places only.
    places.select(x, number(x, 0.0)) * nan(x)
}

/// What has no value.
pub(crate) fn nan(like: &Array) -> Array {
    number(like, f64::NAN)
}

//! Operations that treat every element alike.

use gradus_core::primitives::Op;
use gradus_core::primitives::convert::{Bitcast, Convert};
use gradus_core::primitives::elementwise::{Compare, Direction, IntegerPow, Polygamma};
use gradus_core::{DType, Result, Scalar, Type};

use super::emit::{Emit, is_half, no_attributes};
use super::{Accuracy, Target, fail};
use crate::module::Value;

/// Operations whose operands and result have one type and that mean the same here and there.
fn direct(name: &str) -> Option<&'static str> {
    Some(match name {
        "add" => "stablehlo.add",
        "sub" => "stablehlo.subtract",
        "mul" => "stablehlo.multiply",
        "div" => "stablehlo.divide",
        "rem" => "stablehlo.remainder",
        "neg" => "stablehlo.negate",
        "max" => "stablehlo.maximum",
        "min" => "stablehlo.minimum",
        "floor" => "stablehlo.floor",
        "ceil" => "stablehlo.ceil",
        "round" => "stablehlo.round_nearest_even",
        "not" => "stablehlo.not",
        "and" => "stablehlo.and",
        "or" => "stablehlo.or",
        "xor" => "stablehlo.xor",
        "popcount" => "stablehlo.popcnt",
        "count_leading_zeros" => "stablehlo.count_leading_zeros",
        "shift_left" => "stablehlo.shift_left",
        "shift_right_logical" => "stablehlo.shift_right_logical",
        "shift_right_arithmetic" => "stablehlo.shift_right_arithmetic",
        "clamp" => "stablehlo.clamp",
        _ => return None,
    })
}

/// Elementary and special functions, which everyone rounds as they can.
fn function(name: &str) -> Option<&'static str> {
    Some(match name {
        "exp" => "stablehlo.exponential",
        "expm1" => "stablehlo.exponential_minus_one",
        "log" => "stablehlo.log",
        "log1p" => "stablehlo.log_plus_one",
        "sqrt" => "stablehlo.sqrt",
        "rsqrt" => "stablehlo.rsqrt",
        "cbrt" => "stablehlo.cbrt",
        "sin" => "stablehlo.sine",
        "cos" => "stablehlo.cosine",
        "tan" => "stablehlo.tan",
        "tanh" => "stablehlo.tanh",
        "logistic" => "stablehlo.logistic",
        "atan2" => "stablehlo.atan2",
        "asin" => "chlo.asin",
        "acos" => "chlo.acos",
        "atan" => "chlo.atan",
        "sinh" => "chlo.sinh",
        "cosh" => "chlo.cosh",
        "asinh" => "chlo.asinh",
        "acosh" => "chlo.acosh",
        "atanh" => "chlo.atanh",
        "erf" => "chlo.erf",
        "erfc" => "chlo.erfc",
        "erf_inv" => "chlo.erf_inv",
        "lgamma" => "chlo.lgamma",
        "digamma" => "chlo.digamma",
        _ => return None,
    })
}

impl Emit<'_> {
    /// The rule of an elementwise operation, if it is one.
    pub fn elementwise(&mut self, op: &Op, operands: &[Value], results: &[Type]) -> Result<Option<Vec<Value>>> {
        let name = op.name();
        if let Some(other) = direct(name) {
            return self.same(other, operands).map(|v| Some(vec![v]));
        }
        if let Some(other) = function(name) {
            let Some(ty) = results.first() else { fail!(Internal, "a function without a result") };
            if self.shared.options.accuracy == Accuracy::Gradus
                && name != "sqrt"
                && let Some(made) = self.by_scalar_form(op, operands, results)?
            {
                return Ok(Some(vec![made]));
            }
            if let ([x], Target::Plugin(_)) = (operands, &self.shared.options.target)
                && ty.dtype().is_complex()
                && let Some(made) = self.by_parts(name, *x)?
            {
                return Ok(Some(vec![made]));
            }
            let made = self.op(other, operands, no_attributes(), ty)?;
            return match (name, operands) {
                ("digamma", [x]) => self.at_pole(*x, false, made).map(|v| Some(vec![v])),
                _ => Ok(Some(vec![made])),
            };
        }
        let made = match (name, operands) {
            ("pow", [x, y]) => self.power(*x, *y)?,
            ("integer_pow", [x]) => {
                let Some(IntegerPow { exponent }) = op.downcast() else { return Ok(None) };
                self.integer_power(*x, *exponent)?
            }
            ("mul_add", [x, y, z]) => self.mul_add(*x, *y, *z)?,
            ("abs", [x]) => match self.dtype(*x) {
                d if d.is_unsigned() => *x,
                d => {
                    let ty = self.ty(*x).with_dtype(d.real_part());
                    self.op("stablehlo.abs", &[*x], no_attributes(), &ty)?
                }
            },
            ("sign", [x]) if self.dtype(*x).is_unsigned() => {
                let one = self.like(*x, 1.0)?;
                self.same("stablehlo.minimum", &[*x, one])?
            }
            ("sign", [x]) => self.same("stablehlo.sign", &[*x])?,
            ("trunc", [x]) => {
                let zero = self.like(*x, 0.0)?;
                let below = self.compare("LT", *x, zero)?;
                let (up, down) = (self.same("stablehlo.ceil", &[*x])?, self.same("stablehlo.floor", &[*x])?);
                self.select(below, up, down)?
            }
            ("polygamma", [x]) => {
                let Some(Polygamma { order }) = op.downcast() else { return Ok(None) };
                let (odd, order) = (order % 2 == 1, self.like(*x, f64::from(*order))?);
                let made = self.same("chlo.polygamma", &[order, *x])?;
                let (infinity, zero) = (self.like(*x, f64::INFINITY)?, self.like(*x, 0.0)?);
                let far = self.compare("EQ", *x, infinity)?;
                let made = self.select(far, zero, made)?;
                self.at_pole(*x, odd, made)?
            }
            ("nextafter", [x, y]) => self.next_after(*x, *y)?,
            ("is_finite", [x]) => {
                let ty = self.ty(*x).with_dtype(DType::Bool);
                self.op("stablehlo.is_finite", &[*x], no_attributes(), &ty)?
            }
            ("compare", [x, y]) => {
                let Some(Compare { direction }) = op.downcast() else { return Ok(None) };
                self.compare(direction_word(*direction), *x, *y)?
            }
            ("own_step", [x, y]) => self.compare("LT", *x, *y)?,
            ("select", [p, yes, no]) => self.select(*p, *yes, *no)?,
            ("complex", [re, im]) => {
                let Some(ty) = results.first() else { return Ok(None) };
                self.op("stablehlo.complex", &[*re, *im], no_attributes(), ty)?
            }
            ("real", [x]) => self.part("stablehlo.real", *x)?,
            ("imag", [x]) => self.part("stablehlo.imag", *x)?,
            ("conj", [x]) => {
                let (re, im) = (self.part("stablehlo.real", *x)?, self.part("stablehlo.imag", *x)?);
                let minus = self.same("stablehlo.negate", &[im])?;
                let ty = self.ty(*x);
                self.op("stablehlo.complex", &[re, minus], no_attributes(), &ty)?
            }
            ("convert", [x]) => {
                let Some(Convert { dtype }) = op.downcast() else { return Ok(None) };
                self.converted(*x, *dtype)?
            }
            ("bitcast", [x]) => {
                let Some(Bitcast { dtype }) = op.downcast() else { return Ok(None) };
                self.bitcast(*x, *dtype)?
            }
            ("stop_gradient" | "name" | "batch_most", [x]) => *x,
            _ => return Ok(None),
        };
        Ok(Some(vec![made]))
    }

    /// A derivative of the logarithm of the gamma function with its value at 0, where XLA has NaN: an infinity, whose sign is that of the side unless the
    /// pole is of even order.
    fn at_pole(&mut self, x: Value, even: bool, made: Value) -> Result<Value> {
        let (zero, minus) = (self.like(x, 0.0)?, self.like(x, -1.0)?);
        let at = self.compare("EQ", x, zero)?;
        let pole = if even { self.like(x, f64::INFINITY)? } else { self.same("stablehlo.divide", &[minus, x])? };
        self.select(at, pole, made)
    }

    /// Functions of complex numbers made of real ones: where a part is small, XLA's own have none of its digits.
    fn by_parts(&mut self, name: &str, z: Value) -> Result<Option<Value>> {
        let hyperbolic = match name {
            "sin" | "cos" => false,
            "sinh" | "cosh" => true,
            _ => return Ok(None),
        };
        let ty = self.ty(z);
        let (re, im) = (self.part("stablehlo.real", z)?, self.part("stablehlo.imag", z)?);
        // One part is in the exponential, the other goes around.
        let (grows, turns) = if hyperbolic { (re, im) } else { (im, re) };
        let (sinh, cosh) = (self.same("chlo.sinh", &[grows])?, self.same("chlo.cosh", &[grows])?);
        let (sin, cos) = (self.same("stablehlo.sine", &[turns])?, self.same("stablehlo.cosine", &[turns])?);
        let parts = match name {
            "sin" => [(sin, cosh), (cos, sinh)],
            "cos" => [(cos, cosh), (sin, sinh)],
            "sinh" => [(sinh, cos), (cosh, sin)],
            _ => [(cosh, cos), (sinh, sin)],
        };
        let [(a, b), (c, d)] = parts;
        let (re, im) = (self.same("stablehlo.multiply", &[a, b])?, self.same("stablehlo.multiply", &[c, d])?);
        let im = if name == "cos" { self.same("stablehlo.negate", &[im])? } else { im };
        self.op("stablehlo.complex", &[re, im], no_attributes(), &ty).map(Some)
    }

    /// The real or imaginary part.
    pub fn part(&mut self, name: &'static str, x: Value) -> Result<Value> {
        let ty = self.ty(x);
        self.op(name, &[x], no_attributes(), &ty.with_dtype(ty.dtype().real_part()))
    }

    /// A conversion by Gradus's rules: see `convert` among the primitives.
    pub fn converted(&mut self, x: Value, to: DType) -> Result<Value> {
        let from = self.dtype(x);
        if from == to {
            return Ok(x);
        }
        if to == DType::Bool {
            let zero = self.like(x, 0.0)?;
            return self.compare("NE", x, zero);
        }
        if from.is_complex() && !to.is_complex() {
            let re = self.part("stablehlo.real", x)?;
            return self.converted(re, to);
        }
        if from.is_float() && to.is_int() && !self.shared.options.target.saturates() {
            return self.saturated(x, to);
        }
        self.convert(x, to)
    }

    /// A float as an integer: the nearest toward zero that there is, and NaN as 0. What is out of range is not left to who converts.
    fn saturated(&mut self, x: Value, to: DType) -> Result<Value> {
        // Bounds of integers are no numbers of half precision.
        let x = if is_half(self.dtype(x)) { self.convert(x, DType::F32)? } else { x };
        let ty = self.ty(x);
        let bits = 8 * to.size() as i32;
        let (low, above) =
            if to.is_signed_int() { (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1)) } else { (0.0, 2f64.powi(bits)) };
        let (low, above) = (self.like(x, low)?, self.like(x, above)?);
        let zero = self.like(x, 0.0)?;
        let small = self.compare("LE", x, low)?;
        let large = self.compare("GE", x, above)?;
        let odd = self.compare("NE", x, x)?;
        let outside = self.same("stablehlo.or", &[small, large])?;
        let outside = self.same("stablehlo.or", &[outside, odd])?;
        let inside = self.select(outside, zero, x)?;
        let whole = self.convert(inside, to)?;
        let int = ty.with_dtype(to);
        let (least, most) = (self.splat(&int, Scalar::lowest(to))?, self.splat(&int, Scalar::highest(to))?);
        let made = self.select(small, least, whole)?;
        self.select(large, most, made)
    }

    /// The next number from `x` toward `y`, on the bits.
    pub fn next_after(&mut self, x: Value, y: Value) -> Result<Value> {
        let ty = self.ty(x);
        let bits = match ty.dtype().size() {
            2 => DType::I16,
            4 => DType::I32,
            _ => DType::I64,
        };
        let int = ty.with_dtype(bits);
        let (a, b) = (self.bitcast(x, bits)?, self.bitcast(y, bits)?);
        let (zero, one) = (self.splat(&int, Scalar::I64(0))?, self.splat(&int, Scalar::I64(1))?);
        let magnitude = self.splat(&int, Scalar::highest(bits))?;
        let sign = self.splat(&int, Scalar::lowest(bits))?;
        let (a_size, b_size) =
            (self.same("stablehlo.and", &[a, magnitude])?, self.same("stablehlo.and", &[b, magnitude])?);
        let (a_sign, b_sign) = (self.same("stablehlo.and", &[a, sign])?, self.same("stablehlo.and", &[b, sign])?);
        // From zero: the smallest number with the sign of the other. Elsewhere: one step of the size, up if the other is farther out on the same side.
        let smallest = self.same("stablehlo.or", &[b_sign, one])?;
        let other_side = self.compare("NE", a_sign, b_sign)?;
        let farther = self.compare("GT", a_size, b_size)?;
        let inward = self.same("stablehlo.or", &[other_side, farther])?;
        let minus = self.splat(&int, Scalar::I64(-1))?;
        let step = self.select(inward, minus, one)?;
        let stepped = self.same("stablehlo.add", &[a, step])?;
        let is_zero = self.compare("EQ", a_size, zero)?;
        let moved = self.select(is_zero, smallest, stepped)?;
        let moved = self.bitcast(moved, ty.dtype())?;
        let equal = self.compare("EQ", x, y)?;
        let moved = self.select(equal, y, moved)?;
        let (x_odd, y_odd) = (self.compare("NE", x, x)?, self.compare("NE", y, y)?);
        let odd = self.same("stablehlo.or", &[x_odd, y_odd])?;
        let nan = self.splat(&ty, Scalar::F64(f64::NAN))?;
        self.select(odd, nan, moved)
    }
}

fn direction_word(direction: Direction) -> &'static str {
    match direction.name() {
        "eq" => "EQ",
        "ne" => "NE",
        "lt" => "LT",
        "le" => "LE",
        "gt" => "GT",
        _ => "GE",
    }
}

//! Powers of integers and products that are rounded once: what StableHLO has no operation for.

use gradus_core::{DType, Result, Scalar};

use super::emit::{Emit, is_half, no_attributes};
use crate::module::Value;

impl Emit<'_> {
    /// `x` to the power `y`.
    pub fn power(&mut self, x: Value, y: Value) -> Result<Value> {
        if !self.dtype(x).is_int() {
            return self.same("stablehlo.power", &[x, y]);
        }
        let powered = self.squarings(x, y)?;
        if self.dtype(x).is_unsigned() {
            return Ok(powered);
        }
        // 1 / x^|y| toward zero: of 1 it is 1, of -1 its sign, of 0 all bits set, of the others 0.
        let [zero, one, minus] = [self.like(x, 0.0)?, self.like(x, 1.0)?, self.like(x, -1.0)?];
        let odd = self.same("stablehlo.and", &[y, one])?;
        let is_odd = self.compare("NE", odd, zero)?;
        let sign = self.select(is_odd, x, one)?;
        let of_minus = self.compare("EQ", x, minus)?;
        let of_one = self.compare("EQ", x, one)?;
        let of_zero = self.compare("EQ", x, zero)?;
        let inverse = self.select(of_zero, minus, zero)?;
        let inverse = self.select(of_one, one, inverse)?;
        let inverse = self.select(of_minus, sign, inverse)?;
        let below = self.compare("LT", y, zero)?;
        self.select(below, inverse, powered)
    }

    /// `x` to the power `y` of integers, by squaring until no bit of any `y` is left. A negative `y` counts as none.
    fn squarings(&mut self, x: Value, y: Value) -> Result<Value> {
        let ty = self.ty(x);
        let (zero, one) = (self.like(x, 0.0)?, self.like(x, 1.0)?);
        let left = self.same("stablehlo.maximum", &[y, zero])?;
        let types = [ty.clone(), ty.clone(), ty.clone()];
        let condition = self.region(&types, |e, args| {
            let zero = e.like(args[0], 0.0)?; // invariant: a loop over three
            let some = e.compare("NE", args[0], zero)?; // invariant: as above
            let none = e.splat(&gradus_core::Type::scalar(DType::Bool), Scalar::Bool(false))?;
            let all: Vec<usize> = (0..e.ty(some).rank()).collect();
            Ok(vec![if all.is_empty() { some } else { e.reduced("stablehlo.or", some, none, &all)? }])
        })?;
        let body = self.region(&types, |e, args| {
            let (n, base, product) = (args[0], args[1], args[2]); // invariant: as above
            let (zero, one) = (e.like(n, 0.0)?, e.like(n, 1.0)?);
            let bit = e.same("stablehlo.and", &[n, one])?;
            let is_set = e.compare("NE", bit, zero)?;
            let more = e.same("stablehlo.multiply", &[product, base])?;
            let product = e.select(is_set, more, product)?;
            let n = e.same("stablehlo.shift_right_logical", &[n, one])?;
            let base = e.same("stablehlo.multiply", &[base, base])?;
            Ok(vec![n, base, product])
        })?;
        let made =
            self.operation("stablehlo.while", &[left, x, one], no_attributes(), vec![condition, body], &types)?;
        Ok(made[2]) // invariant: a loop over three
    }

    /// A whole power, in the order of the interpreter.
    pub fn integer_power(&mut self, x: Value, exponent: i64) -> Result<Value> {
        let dtype = self.dtype(x);
        if is_half(dtype) {
            let wide = self.convert(x, DType::F32)?;
            let powered = self.integer_power(wide, exponent)?;
            return self.convert(powered, dtype);
        }
        let power = self.whole_power(x, exponent.unsigned_abs())?;
        if exponent >= 0 {
            return Ok(power);
        }
        let one = self.like(x, 1.0)?;
        let inverse = self.same("stablehlo.divide", &[one, power])?;
        if !dtype.is_complex() {
            return Ok(inverse);
        }
        // A power that overflows has no parts to divide by: the reciprocal is taken first.
        let first = self.same("stablehlo.divide", &[one, x])?;
        let vanished = self.whole_power(first, exponent.unsigned_abs())?;
        let (re, im) = (self.part("stablehlo.real", power)?, self.part("stablehlo.imag", power)?);
        let flags = self.ty(re).with_dtype(DType::Bool);
        let re = self.op("stablehlo.is_finite", &[re], no_attributes(), &flags)?;
        let im = self.op("stablehlo.is_finite", &[im], no_attributes(), &flags)?;
        let finite = self.same("stablehlo.and", &[re, im])?;
        self.select(finite, inverse, vanished)
    }

    fn whole_power(&mut self, x: Value, exponent: u64) -> Result<Value> {
        let (mut base, mut n, mut product) = (x, exponent, None);
        while n > 0 {
            if n & 1 == 1 {
                product = Some(match product {
                    Some(p) => self.same("stablehlo.multiply", &[p, base])?,
                    None => base,
                });
            }
            n >>= 1;
            if n > 0 {
                base = self.same("stablehlo.multiply", &[base, base])?;
            }
        }
        match product {
            Some(p) => Ok(p),
            None => self.like(x, 1.0),
        }
    }

    /// `x·y + z`, rounded once.
    ///
    /// Of `f32` the product is exact in `f64`; the sum there is rounded to odd (Boldo and Melquiond 2008), so that the second rounding is right. Of `f64` the
    /// product is split into two numbers by Dekker's method, and the rest of all sums is rounded to odd before the last.
    pub fn mul_add(&mut self, x: Value, y: Value, z: Value) -> Result<Value> {
        let dtype = self.dtype(x);
        if dtype == DType::F32 {
            let [a, b, c] = [self.convert(x, DType::F64)?, self.convert(y, DType::F64)?, self.convert(z, DType::F64)?];
            let product = self.same("stablehlo.multiply", &[a, b])?;
            let (sum, rest) = self.two_sum(product, c)?;
            let odd = self.rounded_to_odd(sum, rest)?;
            return self.convert(odd, DType::F32);
        }
        let product = self.same("stablehlo.multiply", &[x, y])?;
        let plain = self.same("stablehlo.add", &[product, z])?;
        let low = self.product_rest(x, y, product)?;
        let (t_high, t_low) = self.two_sum(z, low)?;
        let (v_high, v_low) = self.two_sum(product, t_high)?;
        let (sum, rest) = self.two_sum(t_low, v_low)?;
        let rest = self.rounded_to_odd(sum, rest)?;
        let exact = self.same("stablehlo.add", &[v_high, rest])?;
        // Where a part overflows, or there is nothing finite, one rounding is as good as two.
        let flags = self.ty(x).with_dtype(DType::Bool);
        let finite = self.op("stablehlo.is_finite", &[exact], no_attributes(), &flags)?;
        // A sum of nothing but zeros keeps the sign that the plain sum has.
        let zero = self.like(x, 0.0)?;
        let nonzero = self.compare("NE", exact, zero)?;
        let usable = self.same("stablehlo.and", &[finite, nonzero])?;
        self.select(usable, exact, plain)
    }

    /// A sum and what rounding left of it (Knuth).
    fn two_sum(&mut self, a: Value, b: Value) -> Result<(Value, Value)> {
        let sum = self.same("stablehlo.add", &[a, b])?;
        let b_part = self.same("stablehlo.subtract", &[sum, a])?;
        let a_part = self.same("stablehlo.subtract", &[sum, b_part])?;
        let b_rest = self.same("stablehlo.subtract", &[b, b_part])?;
        let a_rest = self.same("stablehlo.subtract", &[a, a_part])?;
        Ok((sum, self.same("stablehlo.add", &[a_rest, b_rest])?))
    }

    /// What rounding left of a product (Dekker).
    fn product_rest(&mut self, x: Value, y: Value, product: Value) -> Result<Value> {
        let (x1, x2) = self.halves(x)?;
        let (y1, y2) = self.halves(y)?;
        let mut rest = self.same("stablehlo.negate", &[product])?;
        for (a, b) in [(x1, y1), (x1, y2), (x2, y1), (x2, y2)] {
            let part = self.same("stablehlo.multiply", &[a, b])?;
            rest = self.same("stablehlo.add", &[rest, part])?;
        }
        Ok(rest)
    }

    /// A double as the sum of two with half of its digits: the upper ones rounded on the bits, so that what is left has a sign and a digit less.
    fn halves(&mut self, x: Value) -> Result<(Value, Value)> {
        let bits = self.bitcast(x, DType::I64)?;
        let ty = self.ty(bits);
        let (half, upper) = (self.splat(&ty, Scalar::I64(1 << 26))?, self.splat(&ty, Scalar::I64(-1 << 27))?);
        let rounded = self.same("stablehlo.add", &[bits, half])?;
        let cut = self.same("stablehlo.and", &[rounded, upper])?;
        let high = self.bitcast(cut, DType::F64)?;
        let low = self.same("stablehlo.subtract", &[x, high])?;
        Ok((high, low))
    }

    /// A sum of doubles whose last digit says that something was left: an even one moves toward the rest.
    fn rounded_to_odd(&mut self, sum: Value, rest: Value) -> Result<Value> {
        let bits = self.bitcast(sum, DType::I64)?;
        let ty = self.ty(bits);
        let (zero, one) = (self.splat(&ty, Scalar::I64(0))?, self.splat(&ty, Scalar::I64(1))?);
        let minus = self.splat(&ty, Scalar::I64(-1))?;
        let last = self.same("stablehlo.and", &[bits, one])?;
        let even = self.compare("EQ", last, zero)?;
        let nothing = self.like(rest, 0.0)?;
        let left = self.compare("NE", rest, nothing)?;
        let flags = self.ty(left);
        let finite = self.op("stablehlo.is_finite", &[sum], no_attributes(), &flags)?;
        let moves = self.same("stablehlo.and", &[even, left])?;
        let moves = self.same("stablehlo.and", &[moves, finite])?;
        // Away from zero if both have one sign.
        let (sum_below, rest_below) = (self.compare("LT", sum, nothing)?, self.compare("LT", rest, nothing)?);
        let apart = self.same("stablehlo.xor", &[sum_below, rest_below])?;
        let step = self.select(apart, minus, one)?;
        let moved = self.same("stablehlo.add", &[bits, step])?;
        let made = self.select(moves, moved, bits)?;
        self.bitcast(made, DType::F64)
    }
}

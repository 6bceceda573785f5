//! The dialect `chlo`: functions beyond the basic ones, and forms that broadcast.

use gradus_core::control::{Steps, scan};
use gradus_core::error::Result;
use gradus_core::primitives::elementwise::{self as p, Polygamma};
use gradus_core::primitives::sort::TopK;
use gradus_core::primitives::{Op, Primitive};
use gradus_core::trace::{bind, bind_all};
use gradus_core::{Array, DType, Dim, Scalar, Shape};

use super::elementwise::{apply, convert, like, whole};
use super::shaping::{broadcast_in_dim, permute};
use super::special::{bessel_i1e, zeta};
use super::{Answer, On, many, one, types};
use crate::module::Attribute;

/// The functions of one number that are primitives.
fn function(name: &str) -> Option<&'static dyn Primitive> {
    Some(match name {
        "acos" => &p::Acos,
        "acosh" => &p::Acosh,
        "asin" => &p::Asin,
        "asinh" => &p::Asinh,
        "atan" => &p::Atan,
        "atanh" => &p::Atanh,
        "cosh" => &p::Cosh,
        "digamma" => &p::Digamma,
        "erf" => &p::Erf,
        "erf_inv" => &p::ErfInv,
        "erfc" => &p::Erfc,
        "lgamma" => &p::Lgamma,
        "sinh" => &p::Sinh,
        "tan" => &p::Tan,
        _ => return None,
    })
}

/// The shape that both are broadcast to, equal axes at the end.
fn common(a: &Shape, b: &Shape) -> Option<Shape> {
    let (long, short) = if a.rank() >= b.rank() { (a, b) } else { (b, a) };
    let skip = long.rank() - short.rank();
    let is_one = |d: &Dim| d.constant() == Some(1);
    let dims = long.iter().enumerate().map(|(i, d)| match i.checked_sub(skip).and_then(|j| short.get(j)) {
        None => Some(d.clone()),
        Some(e) if is_one(d) => Some(e.clone()),
        Some(e) if is_one(e) || d == e => Some(d.clone()),
        // A symbol against a number or another symbol: which of them is 1 is not known before the call.
        Some(e) if d.constant().is_none() || e.constant().is_none() => Some(d.clone()),
        Some(_) => None,
    });
    dims.collect::<Option<Vec<_>>>().map(Shape::from)
}

fn to_shape(x: &Array, shape: &Shape) -> Array {
    if x.shape() == shape {
        return x.clone();
    }
    let skip = shape.rank() - x.rank();
    broadcast_in_dim(x, shape, &Vec::from_iter(skip..shape.rank()))
}

/// Sine and cosine of hyperbolas in `f32` by the dialect's own decomposition, `e^(x + log ½) ∓ e^(-x + log ½)`, whose digits everyone else gives; near zero
/// the sine is exact.
fn hyperbolic(x: &Array, sine: bool) -> Array {
    let half = like(x, 0.5).log();
    let (up, down) = ((x + &half).exp(), (&half - x).exp());
    if !sine {
        return up + down;
    }
    x.abs().lt(like(x, 1.0)).select(apply(&p::Sinh, std::slice::from_ref(x)), &(up - down))
}

impl<'m> On<'_, 'm> {
    pub(super) fn chlo(&mut self, name: &'m str) -> Answer {
        if let Some(primitive) = function(name) {
            let x = self.x(0)?;
            return one(match name {
                "sinh" | "cosh" if x.dtype() == DType::F32 => hyperbolic(&x, name == "sinh"),
                _ => apply(primitive, &[x]),
            });
        }
        if let Some(plain) = name.strip_prefix("broadcast_") {
            return self.broadcasting(plain);
        }
        match name {
            "square" => {
                let x = self.x(0)?;
                one(&x * &x)
            }
            "conj" => one(self.x(0)?.conj()),
            "next_after" => one(apply(&p::Nextafter, &[self.x(0)?, self.x(1)?])),
            "bessel_i1e" => one(bessel_i1e(&self.x(0)?)),
            "zeta" => one(zeta(&self.x(0)?, &self.x(1)?)?),
            "polygamma" => self.polygamma(),
            "is_inf" | "is_pos_inf" | "is_neg_inf" => {
                let x = self.x(0)?;
                let x = if name == "is_inf" { x.abs() } else { x };
                let end = if name == "is_neg_inf" { f64::NEG_INFINITY } else { f64::INFINITY };
                one(x.eq(like(&x, end)))
            }
            "constant" => self.constant(),
            "constant_like" => {
                let x = self.x(0)?;
                let value = match self.op.attributes.get("value") {
                    Some(Attribute::Float(v, _)) => Scalar::F64(*v),
                    Some(Attribute::Integer(v, _)) => match i64::try_from(*v) {
                        Ok(v) => Scalar::I64(v),
                        Err(_) => Scalar::U64(*v as u64),
                    },
                    Some(Attribute::Bool(b)) => Scalar::Bool(*b),
                    _ => return Err(self.refused("its value is no number", "give a number")),
                };
                let to = types::dtype(&self.result(0)?.element)?;
                one(Array::full_scalar(x.shape().clone(), value.cast(to)))
            }
            "mulhi" => one(self.mulhi()?),
            "top_k" => {
                let k = self.index("k")?;
                let largest = self.op.attributes.get("largest").is_none() || self.flag("largest");
                self.top_k(k, largest)
            }
            "ragged_dot" => self.ragged_dot(),
            "scan" => self.scan(),
            _ => Ok(None),
        }
    }

    /// The largest of each row with their places; the first of equals first.
    pub(super) fn top_k(&mut self, k: usize, largest: bool) -> Answer {
        let x = self.x(0)?;
        let places = match self.op.results.get(1) {
            Some(_) => types::dtype(&self.result(1)?.element)?,
            None => DType::I32,
        };
        // The smallest are the largest of the opposites.
        let ranked = if largest { x.clone() } else { -&x };
        let found = bind_all(Op::new(TopK { k }), &[ranked]);
        match found.as_slice() {
            [values, at] => {
                let values = if largest { values.clone() } else { -values };
                many([values, convert(at, places)].into_iter().take(self.op.results.len()))
            }
            _ => match found.first().and_then(Array::error) {
                Some(e) => Err(e.clone()),
                None => Err(self.wrong("it gives two results")),
            },
        }
    }

    fn polygamma(&mut self) -> Answer {
        let (n, x) = (self.x(0)?, self.x(1)?);
        let known = self.op.operands.first().and_then(|v| self.scope.splat(*v)).map(Scalar::to_f64);
        match known.filter(|n| n.fract() == 0.0 && (0.0..=64.0).contains(n)) {
            Some(0.0) => one(apply(&p::Digamma, &[x])),
            Some(order) => one(bind(Op::new(Polygamma { order: order as u32 }), &[x])),
            // (-1)ⁿ⁺¹·n!·ζ(n + 1, x); what is no whole number from 0 on has no value.
            None => {
                let up = &n + &like(&n, 1.0);
                let even = (&n * 0.5_f64).floor().eq(&(&n * 0.5_f64));
                let sign = even.select(like(&n, -1.0), like(&n, 1.0));
                let value = sign * up.lgamma().exp() * zeta(&up, &x)?;
                let value = n.eq(like(&n, 0.0)).select(x.digamma(), &value);
                let proper = n.floor().eq(&n) & n.ge(like(&n, 0.0));
                one(proper.select(&value, like(&n, f64::NAN)))
            }
        }
    }

    /// The operation of a name on operands that are broadcast to one shape.
    fn broadcasting(&mut self, name: &'m str) -> Answer {
        let xs = self.xs()?;
        let mut shape = Shape::scalar();
        for x in &xs {
            shape = common(&shape, x.shape()).ok_or_else(|| self.wrong("the shapes do not broadcast"))?;
        }
        let written = self.op.attributes.integers("broadcast_dimensions");
        let wide = |x: &Array| -> Result<Array> {
            match &written {
                Some(axes) if axes.len() == x.rank() && x.rank() < shape.rank() => {
                    let axes =
                        axes.iter().map(|a| self.natural("broadcast_dimensions", *a)).collect::<Result<Vec<_>>>()?;
                    Ok(broadcast_in_dim(x, &shape, &axes))
                }
                _ => Ok(to_shape(x, &shape)),
            }
        };
        let wide = xs.iter().map(wide).collect::<Result<Vec<_>>>()?;
        // The operands stand for those of the plain operation while it is imported.
        let before: Vec<_> = self.op.operands.iter().map(|v| self.scope.get(*v)).collect::<Result<_>>()?;
        for (value, x) in self.op.operands.iter().zip(wide) {
            self.scope.set(*value, super::Item::Array(x))?;
        }
        let result = match name {
            "next_after" | "zeta" | "polygamma" => self.chlo(name),
            _ => self.elementwise(name),
        };
        for (value, item) in self.op.operands.iter().zip(before) {
            self.scope.set(*value, item)?;
        }
        result
    }

    /// The high half of products.
    fn mulhi(&mut self) -> Result<Array> {
        let (a, b) = (self.x(0)?, self.x(1)?);
        let dtype = a.dtype();
        let bits = 8 * dtype.size() as i64;
        let doubled = match (bits, dtype.is_signed_int()) {
            (8, true) => DType::I16,
            (8, false) => DType::U16,
            (16, true) => DType::I32,
            (16, false) => DType::U32,
            (32, true) => DType::I64,
            (32, false) => DType::U64,
            _ => return mulhi_wide(&a, &b).ok(),
        };
        let product = convert(&a, doubled) * convert(&b, doubled);
        convert(&(&product >> &whole(&product, bits)), dtype).ok()
    }

    /// A matrix product in which rows of the left operand, terms of the sums, or batches belong to groups.
    fn ragged_dot(&mut self) -> Answer {
        super::linear_ragged::ragged_dot(self)
    }

    fn scan(&mut self) -> Answer {
        let body = {
            let region = self.region(0)?;
            let inputs = region.arguments.iter().map(|v| types::ty(types::tensor(self.scope.ty(*v)?)?));
            let inputs = inputs.collect::<Result<Vec<_>>>()?;
            self.traced(region, &inputs)?
        };
        let (operands, axis) = (self.xs()?, self.index("dimension")?);
        let segments = self.op.attributes.integers("operandSegmentSizes");
        let count = match segments.as_deref() {
            Some([inputs, _]) => self.natural("operandSegmentSizes", *inputs)?,
            // Those whose rank is one more than that of the region's argument are the inputs.
            _ => operands.iter().zip(body.program.inputs()).filter(|(x, t)| x.rank() == t.rank() + 1).count(),
        };
        if count > operands.len() {
            return Err(self.wrong("it has fewer operands than inputs"));
        }
        let (xs, inits) = operands.split_at(count);
        let front = |x: &Array| permute(x, [axis].into_iter().chain((0..x.rank()).filter(|a| *a != axis)).collect());
        let sequences: Vec<Array> = xs.iter().map(front).collect();
        let length = match (sequences.first(), self.op.attributes.integer("scan_dim_size")) {
            (Some(x), _) => x.dim(0),
            (None, Some(n)) => Dim::from(n),
            (None, None) => return Err(self.wrong("nothing says how many steps it takes")),
        };
        // The region takes elements before carries and gives outputs before carries; ours has the carries in front.
        let outputs = body.program.outputs().len().saturating_sub(inits.len());
        let specs: Vec<_> = body.program.inputs().iter().cloned().map(Array::of_type).collect();
        let (element, carry) = specs.split_at(count.min(specs.len()));
        let turned = [&carry[..inits.len().min(carry.len())], element].concat();
        let step = gradus_core::trace::trace_as_written("scan", &turned, |args| {
            let (carries, elements) = args.split_at(inits.len());
            let all = [elements, carries, &body.captures].concat();
            let mut made = gradus_core::trace::inline(&body.program, &all)?;
            let carries = made.split_off(outputs);
            Ok([carries, made].concat())
        })?;
        let made = scan(&step, inits, &sequences, &length, self.flag("is_reverse"), 1, Steps::Keep)?;
        let (carries, stacked) = made.split_at(inits.len());
        let back = |x: &Array| {
            let mut order: Vec<usize> = (1..x.rank()).collect();
            order.insert(axis.min(order.len()), 0);
            permute(x, order)
        };
        many(stacked.iter().map(back).chain(carries.iter().cloned()))
    }
}

/// The high half of 64-bit products, by halves of the factors.
fn mulhi_wide(a: &Array, b: &Array) -> Array {
    let (ua, ub) = (a.bitcast(DType::U64), b.bitcast(DType::U64));
    let (half, mask) = (whole(&ua, 32), whole(&ua, 0xffff_ffff));
    let parts = |x: &Array| (x.shift_right_logical(&half), x & &mask);
    let ((ah, al), (bh, bl)) = (parts(&ua), parts(&ub));
    let low = &al * &bl;
    let (cross, other) = (&ah * &bl, &al * &bh);
    let carried = low.shift_right_logical(&half) + (&cross & &mask) + (&other & &mask);
    let high = &ah * &bh
        + cross.shift_right_logical(&half)
        + other.shift_right_logical(&half)
        + carried.shift_right_logical(&half);
    if !a.dtype().is_signed_int() {
        return high;
    }
    // A negative factor counts 2^64 too much of the other.
    let zero = whole(&ua, 0);
    let less = |sign: &Array, other: &Array| sign.lt(whole(sign, 0)).select(other, &zero);
    (high - less(a, &ub) - less(b, &ua)).bitcast(a.dtype())
}

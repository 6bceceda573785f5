//! Reductions of windows: the sum, the product or an extremum of every window of an array. Pooling is this.
//!
//! It is a reduction of the view that [`Windows`] gives, and so are its derivatives: no operation of its own is needed to go back. `x_dot` is a tangent,
//! `y_bar` a cotangent.

use super::convolve::{at_once, recorded};
use super::elementwise::{Compare, Direction};
use super::reduce::{ReduceMax, ReduceMin, ReduceProd, ReduceSum, complex_wave, wave};
use super::rules::one;
use super::shaping::pieces::dilated;
use super::shaping::{Broadcast, Pad, prepended, transposed, zeros};
use super::windows::{Windows, reach, windows_along};
use super::{
    Batch, Batched, Derivative, Expansion, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::array::{Array, Concrete};
use crate::error::{Result, error, fail};
use crate::trace::bind;
use crate::types::{DType, Dim, Effects, Scalar, Shape, Type};
use crate::{param_names, rules_of};

param_names! {
    /// What is made of the elements of a window. Padding is what changes nothing: 0, 1, or the number beyond all others.
    pub enum WindowKind {
        /// Their sum.
        Sum = "sum",
        /// Their product.
        Prod = "prod",
        /// The largest; NaN if there is one. The first of equals has the derivative.
        Max = "max",
        /// The smallest; NaN if there is one. The first of equals has the derivative.
        Min = "min",
    }
}

/// One number for each window of the operand; every list has an entry for each axis.
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceWindow {
    /// What is made of a window.
    pub kind: WindowKind,
    /// How many elements a window has; 1 along axes without windows.
    pub sizes: Vec<Dim>,
    /// How far apart windows begin; at least 1.
    pub strides: Vec<usize>,
    /// How much is put before the operand; negative to crop.
    pub low: Vec<Dim>,
    /// How much is put behind it.
    pub high: Vec<Dim>,
    /// How far apart the elements of the operand are; at least 1.
    pub base_dilation: Vec<usize>,
    /// How far apart the elements of a window are; at least 1.
    pub window_dilation: Vec<usize>,
}

type Apply = fn(Op, &[Array]) -> Result<Array>;

impl ReduceWindow {
    /// The number that changes nothing.
    fn identity(&self, dtype: DType) -> Scalar {
        match self.kind {
            WindowKind::Sum => Scalar::zero(dtype),
            WindowKind::Prod => Scalar::one(dtype),
            WindowKind::Max => Scalar::lowest(dtype),
            WindowKind::Min => Scalar::highest(dtype),
        }
    }

    fn pad(&self) -> Pad {
        let interior = self.base_dilation.iter().map(|d| d.saturating_sub(1)).collect();
        Pad { low: self.low.clone(), high: self.high.clone(), interior }
    }

    /// The windows of the padded operand, along the axes that have any.
    fn windows(&self) -> Windows {
        let has = |a: &usize| self.sizes[*a].constant() != Some(1) || self.strides[*a] != 1; // invariant: lists are as long as the rank
        let axes: Vec<usize> = (0..self.sizes.len()).filter(has).collect();
        Windows {
            sizes: axes.iter().map(|a| self.sizes[*a].clone()).collect(), // invariant: as above
            strides: axes.iter().map(|a| self.strides[*a]).collect(),     // invariant: as above
            dilations: axes.iter().map(|a| self.window_dilation[*a]).collect(), // invariant: as above
            axes,
        }
    }

    /// The windows of an operand that has `fill` around it and between its elements.
    fn shown(&self, x: &Array, fill: Scalar, apply: Apply) -> Result<Array> {
        let pad = self.pad();
        let zero = |d: &Dim| d.constant() == Some(0);
        let still = pad.low.iter().chain(&pad.high).all(zero) && pad.interior.iter().all(|i| *i == 0);
        let x = if still { x.clone() } else { apply(Op::new(pad), &[x.clone(), Array::scalar(fill)])? };
        let windows = self.windows();
        if windows.axes.is_empty() { Ok(x) } else { apply(Op::new(windows), &[x]) }
    }

    /// The axes inside of windows: those behind the operand's own.
    fn inside(&self) -> Vec<usize> {
        let rank = self.sizes.len();
        (rank..rank + self.windows().axes.len()).collect()
    }

    fn reduction(&self) -> Op {
        let axes = self.inside();
        match self.kind {
            WindowKind::Sum => Op::new(ReduceSum { axes }),
            WindowKind::Prod => Op::new(ReduceProd { axes }),
            WindowKind::Max => Op::new(ReduceMax { axes }),
            WindowKind::Min => Op::new(ReduceMin { axes }),
        }
    }

    fn parts(&self, x: &Array, apply: Apply) -> Result<Array> {
        let shown = self.shown(x, self.identity(x.dtype()), apply)?;
        if self.inside().is_empty() { Ok(shown) } else { apply(self.reduction(), &[shown]) }
    }

    /// The shape of the result, for an operand that fits.
    fn shape(&self, x: &Shape) -> Shape {
        let along = |(a, n): (usize, &Dim)| {
            let [stride, base, dilation] = [&self.strides, &self.base_dilation, &self.window_dilation].map(|l| l[a]); // invariant: lists are as long as the rank
            let padded = &self.low[a] + dilated(n, base - 1) + &self.high[a]; // invariant: as above
            (padded - reach(&self.sizes[a], dilation)).floor_div(&Dim::from(stride)) + 1usize // invariant: as above
        };
        x.iter().enumerate().map(along).collect()
    }

    /// One number for each window, seen by all of its elements.
    fn spread(&self, y: &Array, shape: &Shape) -> Array {
        let axes = (0..self.sizes.len()).collect();
        bind(Op::new(Broadcast { shape: shape.clone(), axes }), std::slice::from_ref(y))
    }

    /// The tangent of an extremum: that of the first element of its window that is it, or the first NaN.
    fn chosen_tangent(&self, x: &Array, y: &Array, x_dot: &Array) -> Result<Array> {
        let (inside, rank) = (self.inside(), self.sizes.len());
        let dots = self.shown(x_dot, Scalar::zero(x.dtype()), recorded)?;
        if inside.is_empty() {
            return Ok(dots);
        }
        let shown = self.shown(x, self.identity(x.dtype()), recorded)?;
        let shape = shown.shape().clone();
        // Where an element stands in its window, in row-major order.
        let mut place = Array::iota(DType::I32, shape.clone(), rank as isize);
        for axis in inside.iter().skip(1) {
            let along = Array::iota(DType::I32, shape.clone(), *axis as isize);
            let n = Array::from_dim(&shown.dim(*axis as isize), DType::I32);
            place = place * n + along;
        }
        let unequal = bind(Op::new(Compare { direction: Direction::Ne }), &[shown.clone(), shown.clone()]);
        let is_it = shown.eq(self.spread(y, &shape)) | unequal;
        let far = Array::scalar(Scalar::highest(DType::I32));
        let first = bind(Op::new(ReduceMin { axes: inside.clone() }), &[is_it.select(&place, far)]);
        let chosen = place.eq(self.spread(&first, &shape));
        let dots = chosen.select(&dots, Array::scalar(Scalar::zero(x.dtype())));
        bind(Op::new(ReduceSum { axes: inside }), &[dots]).ok()
    }
}

impl Primitive for ReduceWindow {
    rules_of!("reduce_window"; kind, sizes, strides, low, high, base_dilation, window_dilation);

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        let inputs = infer.inputs;
        let Some(x) = inputs.first() else { fail!(Verify, "wants an operand") };
        match self.kind {
            WindowKind::Sum | WindowKind::Prod => infer.dtype(0, "numbers", |d| d.is_number())?,
            _ => infer.dtype(0, "integers or floats", |d| d.is_int() || d.is_float())?,
        }
        let lists = [self.strides.len(), self.base_dilation.len(), self.window_dilation.len()];
        let dims = [self.sizes.len(), self.low.len(), self.high.len()];
        if lists != [x.rank(); 3] || dims != [x.rank(); 3] {
            return Err(error!(
                Axis,
                "windows of {x} have a size, a stride, padding and dilations for each axis, and it has {}",
                x.rank()
            )
            .help("an axis without windows has size 1 and stride 1"));
        }
        for (a, n) in x.shape().iter().enumerate() {
            if self.base_dilation[a] == 0 {
                fail!(Value, "the dilation of {x} along axis {a} is 0, and must be at least 1");
            }
            let padded = &self.low[a] + dilated(n, self.base_dilation[a] - 1) + &self.high[a];
            // Along an axis without windows nothing has to fit, and it may be empty.
            if self.sizes[a].constant() == Some(1) && self.strides[a] == 1 {
                if !infer.at_least(&padded, &Dim::from(0usize)) {
                    return Err(error!(Shape, "axis {a} of {x} would have {padded} elements")
                        .help("negative padding must not crop more than there is"));
                }
                continue;
            }
            windows_along(infer, &padded, (&self.sizes[a], self.strides[a], self.window_dilation[a]), a, x)?;
        }
        one(x.with_shape(self.shape(x.shape())))
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let [x] = inputs else { fail!(Rule, "wants an operand") };
        Ok(smallvec::smallvec![self.parts(x, at_once)?])
    }

    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let ([x], [Some(x_dot)]) = (jvp.primals, jvp.tangents) else { return Ok(Derivative::Zero) };
        if !x.dtype().is_inexact() {
            return Ok(Derivative::Zero);
        }
        match self.kind {
            WindowKind::Sum => Derivative::linear(Op::new(self.clone()), jvp),
            WindowKind::Prod => {
                let shown = [self.shown(x, self.identity(x.dtype()), recorded)?];
                let dots = [Some(self.shown(x_dot, Scalar::zero(x.dtype()), recorded)?)];
                let op = self.reduction();
                op.jvp(&Jvp::new(&op, &shown, &dots))
            }
            WindowKind::Max | WindowKind::Min => {
                let [y] = jvp.outputs() else { fail!(Rule, "wants one result") };
                Derivative::one(self.chosen_tangent(x, y, x_dot)?)
            }
        }
    }

    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        if self.kind != WindowKind::Sum {
            return Ok(Transposed::NotLinear);
        }
        transposed(transpose, |_, y_bar, x| {
            if x.shape().iter().any(|n| n.constant() == Some(0)) {
                return Ok(zeros(x));
            }
            let pad = self.pad();
            let padded = pad.shape(x.shape());
            let windows = self.windows();
            let shape = y_bar.shape().iter().cloned().chain(windows.sizes.iter().cloned()).collect();
            let all = windows.back(&self.spread(y_bar, &shape), &padded)?;
            pad.crop(&super::shaping::fit(all, &padded)).ok()
        })
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        let none = Dim::from(0usize);
        let op = ReduceWindow {
            kind: self.kind,
            sizes: prepended(Dim::from(1usize), &self.sizes),
            strides: prepended(1, &self.strides),
            low: prepended(none.clone(), &self.low),
            high: prepended(none, &self.high),
            base_dilation: prepended(1, &self.base_dilation),
            window_dilation: prepended(1, &self.window_dilation),
        };
        Batched::one(bind(Op::new(op), batch.inputs))
    }

    fn expand(&self, _: &[Type]) -> Option<Expansion<'_>> {
        Some(Box::new(|inputs| {
            let [x] = inputs else { fail!(Rule, "wants an operand") };
            Ok(smallvec::smallvec![self.parts(x, recorded)?])
        }))
    }

    fn is_total(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        samples()
    }
}

/// Windows for samples: for each axis the size, the stride, the padding before and behind, the dilations of operand and window.
fn sampled(kind: WindowKind, along: &[(usize, usize, i64, i64, usize, usize)]) -> Op {
    Op::new(ReduceWindow {
        kind,
        sizes: along.iter().map(|a| Dim::from(a.0)).collect(),
        strides: along.iter().map(|a| a.1).collect(),
        low: along.iter().map(|a| Dim::from(a.2)).collect(),
        high: along.iter().map(|a| Dim::from(a.3)).collect(),
        base_dilation: along.iter().map(|a| a.4).collect(),
        window_dilation: along.iter().map(|a| a.5).collect(),
    })
}

fn samples() -> Vec<Sample> {
    let plain = (1, 1, 0, 0, 1, 1);
    let make = |op: Op, x: Array| Sample::new(op, vec![x]);
    let nothing = |dims: &[usize]| -> Array { Concrete::splat(Type::new(DType::F64, dims), Scalar::F64(0.0)).into() };
    let mut all = Vec::new();
    for kind in WindowKind::ALL.iter().copied() {
        all.push(make(sampled(kind, &[(3, 1, 0, 0, 1, 1)]), wave(&[6], 1)));
        all.push(make(sampled(kind, &[(2, 2, 1, 1, 1, 1)]), wave(&[6], 2)));
        all.push(make(sampled(kind, &[(2, 1, -1, 1, 1, 2)]), wave(&[6], 3)));
        all.push(make(sampled(kind, &[plain, (2, 2, 0, 0, 1, 1), (2, 1, 1, 0, 1, 1), plain]), wave(&[2, 4, 3, 2], 4)));
        all.push(make(sampled(kind, &[(2, 3, 0, 0, 1, 1), (3, 2, 1, 1, 1, 1)]), wave(&[5, 4], 5)));
        all.push(make(sampled(kind, &[plain, plain]), wave(&[2, 2], 6)));
        all.push(make(sampled(kind, &[]), wave(&[], 7)));
        all.push(make(sampled(kind, &[plain, (2, 1, 0, 0, 1, 1)]), nothing(&[0, 3])));
        all.push(make(sampled(kind, &[(2, 1, 0, 0, 1, 1)]), wave(&[4], 8).cast(DType::F32)).rough());
        all.push(make(sampled(kind, &[(2, 1, 1, 0, 1, 1)]), wave(&[4], 9).cast(DType::F16)).rough());
        all.push(make(sampled(kind, &[(2, 2, 1, 1, 1, 1)]), wave(&[4], 10).cast(DType::I32)));
        all.push(make(sampled(kind, &[(2, 1, 0, 0, 1, 1)]), wave(&[4], 11).abs().cast(DType::U8)));
    }
    all.push(make(sampled(WindowKind::Sum, &[(2, 1, 1, 0, 2, 1)]), wave(&[4], 12)));
    all.push(make(sampled(WindowKind::Sum, &[(2, 1, 0, 0, 1, 1)]), complex_wave(&[4], 13)));
    all.push(make(sampled(WindowKind::Max, &[(2, 1, 1, 0, 2, 1)]), wave(&[4], 14)).rough());
    let special = Array::from([1.0_f64, f64::NAN, 2.0, 2.0, f64::NEG_INFINITY, f64::INFINITY]);
    for kind in [WindowKind::Max, WindowKind::Min] {
        all.push(make(sampled(kind, &[(2, 1, 0, 0, 1, 1)]), special.clone()).rough());
        // The first of equals has the derivative.
        all.push(make(sampled(kind, &[(3, 1, 1, 1, 1, 1)]), Array::from([2.0_f64, 2.0, 1.0, 1.0, 2.0])).rough());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn windows_are_reduced() {
        let x = Array::from([3.0_f64, 1.0, 4.0, 1.0, 5.0]);
        let of = |kind| bind(sampled(kind, &[(2, 2, 1, 0, 1, 1)]), std::slice::from_ref(&x)).to_vec::<f64>().unwrap();
        assert_eq!(of(WindowKind::Sum), [3.0, 5.0, 6.0]);
        assert_eq!(of(WindowKind::Prod), [3.0, 4.0, 5.0]);
        assert_eq!(of(WindowKind::Max), [3.0, 4.0, 5.0]);
        assert_eq!(of(WindowKind::Min), [3.0, 1.0, 1.0]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let kind = |along: &[(usize, usize, i64, i64, usize, usize)], x: &str| {
            bind(sampled(WindowKind::Max, along), &[Array::spec(x)]).ok().unwrap_err().kind()
        };
        assert_eq!(kind(&[(4, 1, 0, 0, 1, 1)], "f64[3]"), ErrorKind::Shape);
        assert_eq!(kind(&[(2, 0, 0, 0, 1, 1)], "f64[3]"), ErrorKind::Value);
        assert_eq!(kind(&[(2, 1, 0, 0, 0, 1)], "f64[3]"), ErrorKind::Value);
        assert_eq!(kind(&[(2, 1, 0, 0, 1, 0)], "f64[3]"), ErrorKind::Value);
        assert_eq!(kind(&[(0, 1, 0, 0, 1, 1)], "f64[3]"), ErrorKind::Value);
        assert_eq!(kind(&[(1, 1, -4, 0, 1, 1)], "f64[3]"), ErrorKind::Shape);
        assert_eq!(kind(&[(2, 1, 0, 0, 1, 1)], "f64[3,3]"), ErrorKind::Axis);
        assert_eq!(kind(&[(2, 1, 0, 0, 1, 1)], "c128[3]"), ErrorKind::DType);
        assert_eq!(kind(&[(2, 1, 0, 0, 1, 1)], "bool[3]"), ErrorKind::DType);
    }
}

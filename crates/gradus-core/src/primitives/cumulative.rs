//! Cumulative sums, products and extrema along an axis: every result is a reduction of what stands before it.
//!
//! The four share their type rule, batching rule and loop; each brings how two numbers combine, and its derivative.
//! `x_dot` is a tangent, `y_bar` a cotangent.

use super::elementwise::kernel::{one_output, operand};
use super::elementwise::number::{Number, Ordered};
use super::elementwise::{Compare, Direction};
use super::reduce::{around, array, check_axis, complex_wave, dispatch_wide, elements, sum, wave, widened};
use super::rules::one;
use super::shaping::{Broadcast, Iota, Pad, Reverse};
use super::sort::{index_dtype, take_along};
use super::{Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types};
use crate::array::{Array, Concrete};
use crate::error::Result;
use crate::rules_of;
use crate::trace::bind;
use crate::types::{DType, Dim, Effects, Element, Scalar};

macro_rules! cumulatives {
    ($(
        $(#[$doc:meta])* $name:ident = $text:literal, $wants:literal if |$d:ident| $accepts:expr,
        numbers |$op:ident, $v:ident| $numbers:expr,
        d |$o:ident, $x:ident, $y:ident, $t:ident| $tangent:expr,
        transpose |$to:ident, $bar:ident| $transpose:expr,
        samples $samples:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            /// The axis along which results accumulate.
            pub axis: usize,
            /// Whether they accumulate from the end.
            pub reverse: bool,
        }

        impl Primitive for $name {
            rules_of!($text; axis, reverse);
            fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
                infer.arity(1)?;
                infer.dtype(0, $wants, |$d: DType| $accepts)?;
                let ty = &infer.inputs[0]; // invariant: the arity was checked
                check_axis(self.axis, ty)?;
                one(ty.clone())
            }
            fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
                let ($op, $v) = (self, operand(inputs, 0)?);
                one_output($numbers)
            }
            #[allow(unused_variables)]
            fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
                match (jvp.primals, jvp.tangents, jvp.outputs()) {
                    ([$x], [Some($t)], [$y]) => {
                        let $o = self;
                        Derivative::one($tangent)
                    }
                    _ => Ok(Derivative::Zero),
                }
            }
            #[allow(unused_variables)]
            fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
                match (transpose.operands, transpose.cotangents) {
                    ([x], [Some($bar)]) if x.unknown().is_some() => {
                        let $to = self;
                        $transpose
                    }
                    ([_], [None]) => Ok(Transposed::Cotangents(smallvec::smallvec![None])),
                    _ => Ok(Transposed::NotLinear),
                }
            }
            fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
                batch.elementwise(Op::new($name { axis: self.axis + 1, reverse: self.reverse }))
            }
            fn effects(&self) -> Effects {
                Effects::PURE
            }
            fn samples() -> Vec<Sample> {
                let make = |axis, reverse, x| Sample::new(Op::new($name { axis, reverse }), vec![x]);
                let mut all = vec![
                    make(0, false, wave(&[5], 1)),
                    make(0, true, wave(&[6], 2)),
                    make(0, false, wave(&[3, 4], 3)),
                    make(1, true, wave(&[3, 4], 4)),
                    make(1, false, wave(&[2, 3, 2], 5)),
                    make(0, false, wave(&[1, 2], 6)),
                    make(0, false, array::<f64>(&[0, 2], vec![])),
                    make(1, true, array::<f64>(&[0, 2], vec![])),
                    make(0, false, array(&[4], vec![1.0, f64::NAN, 3.0, f64::INFINITY])).rough(),
                    make(0, false, wave(&[5], 7).cast(DType::F32)).rough(),
                    make(0, true, wave(&[5], 8).cast(DType::F16)).rough(),
                    make(0, false, wave(&[5], 9).cast(DType::BF16)).rough(),
                    make(0, false, array(&[4], vec![100i8, 27, 1, -3])),
                    make(1, true, array(&[2, 2], vec![7u64, 2, 9, 4])),
                ];
                let extra: fn(&dyn Fn(usize, bool, Array) -> Sample) -> Vec<Sample> = $samples;
                all.extend(extra(&make));
                all
            }
        }
    )*};
}

cumulatives! {
    /// Sums of all elements up to each place. Half floats are added in `f32`, integers wrap.
    CumSum = "cumsum", "numbers" if |d| d.is_number(),
        numbers |op, x| widened(x, |x| {
            dispatch_wide!(number x.ty().dtype(), T => accumulate::<T>(x, op.axis, op.reverse, Number::plus))
        })?,
        d |op, x, y, x_dot| bind(Op::new(op.clone()), &[x_dot.clone()]),
        transpose |op, y_bar| {
            Transposed::one(bind(Op::new(CumSum { axis: op.axis, reverse: !op.reverse }), &[y_bar.clone()]))
        },
        samples |make| vec![make(0, true, complex_wave(&[4], 10))];
    /// Products of all elements up to each place. Half floats are multiplied in `f32`, integers wrap.
    CumProd = "cumprod", "numbers" if |d| d.is_number(),
        numbers |op, x| widened(x, |x| {
            dispatch_wide!(number x.ty().dtype(), T => accumulate::<T>(x, op.axis, op.reverse, Number::times))
        })?,
        d |op, x, y, x_dot| op.tangent(x, x_dot),
        transpose |op, y_bar| Ok(Transposed::NotLinear),
        samples |make| vec![
            make(0, false, complex_wave(&[4], 10)),
            make(0, false, array(&[5], vec![2.0, 0.0, -3.0, 0.5, 4.0])),
            make(0, true, array(&[5, 1], vec![2.0, 0.0, -3.0, 0.0, 4.0])),
        ];
    /// The maximum of all elements up to each place; NaN from the first NaN on. The first of equals has the derivative.
    CumMax = "cummax", "integers or floats" if |d| d.is_int() || d.is_float(),
        numbers |op, x| widened(x, |x| {
            dispatch_wide!(real x.ty().dtype(), T => accumulate::<T>(x, op.axis, op.reverse, Ordered::larger))
        })?,
        d |op, x, y, x_dot| winner_tangent(op.axis, op.reverse, y, x_dot),
        transpose |op, y_bar| Ok(Transposed::NotLinear),
        samples |make| vec![make(0, false, array(&[5], vec![1.0, 1.0, 0.5, 2.0, 2.0])).rough()];
    /// The minimum of all elements up to each place; NaN from the first NaN on. The first of equals has the derivative.
    CumMin = "cummin", "integers or floats" if |d| d.is_int() || d.is_float(),
        numbers |op, x| widened(x, |x| {
            dispatch_wide!(real x.ty().dtype(), T => accumulate::<T>(x, op.axis, op.reverse, Ordered::smaller))
        })?,
        d |op, x, y, x_dot| winner_tangent(op.axis, op.reverse, y, x_dot),
        transpose |op, y_bar| Ok(Transposed::NotLinear),
        samples |make| vec![make(0, true, array(&[5], vec![2.0, 1.0, 0.5, 2.0, 2.0])).rough()];
}

fn accumulate<T: Element>(x: &Concrete, axis: usize, reverse: bool, f: impl Fn(T, T) -> T) -> Result<Concrete> {
    if x.dims().contains(&0) {
        return Ok(x.clone());
    }
    let [_, n, inner] = around(x.dims(), axis);
    let mut values = elements::<T>(x)?.into_owned();
    for block in values.chunks_exact_mut(n * inner) {
        if inner == 1 {
            // The running value stays in a register.
            let mut run = None;
            let mut step = |v: &mut T| {
                *v = run.map_or(*v, |r| f(r, *v));
                run = Some(*v);
            };
            if reverse {
                block.iter_mut().rev().for_each(&mut step)
            } else {
                block.iter_mut().for_each(&mut step)
            }
            continue;
        }
        for i in 1..n {
            let (to, from) = if reverse { (n - 1 - i, n - i) } else { (i, i - 1) };
            let (low, high) = block.split_at_mut(to.max(from) * inner);
            let (low, high) = (&mut low[to.min(from) * inner..], &mut high[..inner]);
            let (to, from) = if reverse { (low, high) } else { (high, low) };
            to.iter_mut().zip(from.iter()).for_each(|(v, &r)| *v = f(r, *v));
        }
    }
    Ok(Concrete::dense(x.ty().clone(), values))
}

/// Elements moved `by` places along an axis (backwards if negative); `fill` comes in.
pub(super) fn shift(x: &Array, axis: usize, by: i64, fill: Scalar) -> Array {
    let mut low = vec![Dim::from(0usize); x.rank()];
    let mut high = low.clone();
    if let (Some(l), Some(h)) = (low.get_mut(axis), high.get_mut(axis)) {
        (*l, *h) = (Dim::from(by), Dim::from(-by));
    }
    bind(Op::new(Pad { low, high, interior: vec![0; x.rank()] }), &[x.clone(), Array::scalar(fill)])
}

impl CumProd {
    /// `yᵢ' = Σ_{j≤i} xⱼ' Π_{k≤i, k≠j} x_k`, made of sums and products only: zeros are no exception, and the rule can
    /// be differentiated again.
    fn tangent(&self, x: &Array, x_dot: &Array) -> Array {
        match x.shape().get(self.axis).and_then(Dim::as_usize) {
            Some(n) => self.tangent_by_doubling(x, x_dot, n),
            None => self.tangent_by_matrix(x, x_dot),
        }
    }

    /// The product and its derivative over the last 1, 2, 4, ... places: `(p, d)` behind `(p₀, d₀)` is
    /// `(p₀p, d₀p + p₀d)`. The number of equations grows with the logarithm of the length.
    fn tangent_by_doubling(&self, x: &Array, x_dot: &Array, n: usize) -> Array {
        let (mut p, mut d) = (x.clone(), x_dot.clone());
        let mut by = 1usize;
        while by < n {
            let back = if self.reverse { -(by as i64) } else { by as i64 };
            let p0 = shift(&p, self.axis, back, Scalar::one(x.dtype()));
            let d0 = shift(&d, self.axis, back, Scalar::zero(x.dtype()));
            d = d0 * &p + &p0 * &d;
            by = by.saturating_mul(2);
            if by < n {
                p = p0 * p;
            }
        }
        d
    }

    /// For a length that is not known: row `j` of a matrix is `∂yᵢ/∂xⱼ`, the cumulative product of
    /// `1, ..., 1, Π_{k<j} x_k, x_{j+1}, ..., x_n` from place `j` on.
    fn tangent_by_matrix(&self, x: &Array, x_dot: &Array) -> Array {
        let (j, i) = (self.axis, self.axis + 1);
        let n = x.dim(self.axis as isize);
        let shape = x.shape().inserted(i, n);
        let along = |x: &Array, missing: usize| {
            let axes = (0..shape.rank()).filter(|a| *a != missing).collect();
            bind(Op::new(Broadcast { shape: shape.clone(), axes }), &[x.clone()])
        };
        let place = |axis| bind(Op::new(Iota { dtype: DType::I64, shape: shape.clone(), axis }), &[]);
        let behind = if self.reverse { Direction::Lt } else { Direction::Gt };
        let (place_i, place_j) = (place(i), place(j));
        let behind = bind(Op::new(Compare { direction: behind }), &[place_i.clone(), place_j.clone()]);
        let here = bind(Op::new(Compare { direction: Direction::Eq }), &[place_i, place_j]);
        let through = bind(Op::new(self.clone()), &[x.clone()]);
        let before = shift(&through, self.axis, if self.reverse { -1 } else { 1 }, Scalar::one(x.dtype()));
        let before = along(&before, i);
        let factors = behind.select(along(x, j), here.select(&before, before.ones_like()));
        let partial = bind(Op::new(CumProd { axis: i, reverse: self.reverse }), &[factors]);
        let terms = partial * along(x_dot, i);
        sum(&(behind | here).select(&terms, terms.zeros_like()), &[j])
    }
}

/// The tangent at the place that holds the extremum so far: a place holds it from where the running result changed.
fn winner_tangent(axis: usize, reverse: bool, y: &Array, x_dot: &Array) -> Array {
    let turned = |x: &Array| match reverse {
        true => bind(Op::new(Reverse { axes: vec![axis] }), &[x.clone()]),
        false => x.clone(),
    };
    let y = turned(y);
    let n = y.shape().get(axis).cloned().unwrap_or_else(|| Dim::from(1usize));
    let places = bind(Op::new(Iota { dtype: index_dtype(&n), shape: y.shape().clone(), axis }), &[]);
    // What comes in at the front does not matter: the first place is 0 whether it counts as changed or not.
    let changed = y.ne(shift(&y, axis, 1, Scalar::zero(y.dtype())));
    let since = bind(Op::new(CumMax { axis, reverse: false }), &[changed.select(&places, places.zeros_like())]);
    turned(&take_along(&turned(x_dot), &since, axis))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn floats(op: impl Primitive, x: Array) -> Vec<f64> {
        bind(Op::new(op), &[x]).to_vec().unwrap()
    }

    #[test]
    fn results_accumulate_along_the_axis_from_either_end() {
        let x = || array(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(floats(CumSum { axis: 1, reverse: false }, x()), [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
        assert_eq!(floats(CumSum { axis: 1, reverse: true }, x()), [6.0, 5.0, 3.0, 15.0, 11.0, 6.0]);
        assert_eq!(floats(CumSum { axis: 0, reverse: false }, x()), [1.0, 2.0, 3.0, 5.0, 7.0, 9.0]);
        assert_eq!(floats(CumProd { axis: 0, reverse: true }, x()), [4.0, 10.0, 18.0, 4.0, 5.0, 6.0]);
        assert_eq!(floats(CumSum { axis: 0, reverse: false }, array::<f64>(&[0, 2], vec![])), []);
        let deep = array(&[3, 2], vec![1.0, 10.0, 2.0, 20.0, 3.0, 30.0]);
        assert_eq!(floats(CumSum { axis: 0, reverse: true }, deep), [6.0, 60.0, 5.0, 50.0, 3.0, 30.0]);
    }

    #[test]
    fn extrema_run_and_nan_stays() {
        let x = || array(&[5], vec![1.0, 3.0, 2.0, f64::NAN, 9.0]);
        let max = floats(CumMax { axis: 0, reverse: false }, x());
        assert_eq!(max[..3], [1.0, 3.0, 3.0]);
        assert!(max[3].is_nan() && max[4].is_nan());
        let min = floats(CumMin { axis: 0, reverse: true }, x());
        assert!(min[..4].iter().all(|v| v.is_nan()) && min[4] == 9.0);
        let wrapped = bind(Op::new(CumSum { axis: 0, reverse: false }), &[array(&[2], vec![127i8, 1])]);
        assert_eq!(wrapped.to_vec::<i8>().unwrap(), [127, -128]);
    }

    #[test]
    fn both_derivatives_of_products_agree_at_zeros() {
        let x = array(&[2, 5], vec![2.0, 0.0, -3.0, 0.5, 4.0, 0.0, 1.5, 0.0, -2.0, 1.0]);
        let x_dot = wave(&[2, 5], 3);
        for reverse in [false, true] {
            let op = CumProd { axis: 1, reverse };
            let doubling: Vec<f64> = op.tangent_by_doubling(&x, &x_dot, 5).to_vec().unwrap();
            let matrix: Vec<f64> = op.tangent_by_matrix(&x, &x_dot).to_vec().unwrap();
            for (a, b) in doubling.iter().zip(&matrix) {
                assert!((a - b).abs() < 1e-12, "{doubling:?} {matrix:?}");
            }
        }
        // d(x0 x1)/dx1 = x0 though the product is zero.
        let one = array(&[3], vec![0.0, 1.0, 0.0]);
        let op = CumProd { axis: 0, reverse: false };
        let dot = op.tangent(&array(&[3], vec![2.0, 0.0, 5.0]), &one);
        assert_eq!(dot.to_vec::<f64>().unwrap(), [0.0, 2.0, 10.0]);
    }

    #[test]
    fn the_first_of_equals_has_the_derivative() {
        let x = array(&[5], vec![1.0, 1.0, 0.5, 2.0, 2.0]);
        let x_dot = array(&[5], vec![10.0, 20.0, 30.0, 40.0, 50.0]);
        for (reverse, want) in [(false, [10.0, 10.0, 10.0, 40.0, 40.0]), (true, [50.0, 50.0, 50.0, 50.0, 50.0])] {
            let y = bind(Op::new(CumMax { axis: 0, reverse }), &[x.clone()]);
            assert_eq!(winner_tangent(0, reverse, &y, &x_dot).to_vec::<f64>().unwrap(), want);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let kind = |op: Op, spec: &str| bind(op, &[Array::spec(spec)]).ok().unwrap_err().kind();
        assert_eq!(kind(Op::new(CumSum { axis: 1, reverse: false }), "f64[3]"), ErrorKind::Axis);
        assert_eq!(kind(Op::new(CumSum { axis: 0, reverse: false }), "f64[]"), ErrorKind::Axis);
        assert_eq!(kind(Op::new(CumSum { axis: 0, reverse: false }), "bool[3]"), ErrorKind::DType);
        assert_eq!(kind(Op::new(CumMax { axis: 0, reverse: false }), "c128[3]"), ErrorKind::DType);
        let symbolic = bind(Op::new(CumMax { axis: 0, reverse: true }), &[Array::spec("f32[B,2]")]);
        assert_eq!(symbolic.ty().unwrap().to_string(), "f32[B,2]");
    }
}

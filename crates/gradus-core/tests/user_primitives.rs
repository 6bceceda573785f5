//! A primitive written outside the crate passes the checks of the built-in ones, and what is wrong with one is found.

use gradus_core::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, ParamReader, ParamValue, Params, Primitive, Sample, Transpose,
    Transposed, Types, register,
};
use gradus_core::testing::check_samples;
use gradus_core::{Array, DType, Effects, Element, Result};

const NOTHING: usize = 0;
const JVP: usize = 1;
const BATCH: usize = 2;
const TYPE: usize = 3;
const LAYOUT: usize = 4;
const NO_JVP: usize = 5;
const NO_BATCH: usize = 6;

/// `factor * x²` of f64, with a fault at choice.
#[derive(Clone, Debug)]
struct Square<const FAULT: usize> {
    factor: f64,
}

impl<const FAULT: usize> Primitive for Square<FAULT> {
    fn name(&self) -> &'static str {
        ["square", "square_jvp", "square_batch", "square_type", "square_layout", "square_no_jvp", "square_no_batch"]
            [FAULT]
    }
    fn params(&self) -> Params {
        vec![("factor", self.factor.to_param())]
    }
    fn from_params(params: &mut ParamReader<'_>) -> Result<Self> {
        Ok(Square { factor: params.take("factor")? })
    }
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        infer.dtype(0, "f64", |d| d == DType::F64)?;
        let ty = infer.all_same()?;
        Ok([if FAULT == TYPE { ty.with_dtype(DType::F32) } else { ty }].into_iter().collect())
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let x = &inputs[0];
        let memory = || x.concrete().and_then(|c| f64::slice(c.data()));
        let values = match FAULT {
            // Takes the memory for the elements, whatever the strides.
            LAYOUT => memory().unwrap_or_default().iter().copied().take(x.shape().count().unwrap_or(0)).collect(),
            _ => x.to_vec::<f64>()?,
        };
        let squares = values.iter().map(|v| self.factor * v * v).collect();
        Ok([Array::from_vec(squares, x.shape())].into_iter().collect())
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        match jvp.tangents {
            [Some(_)] if FAULT == NO_JVP => Ok(Derivative::Missing("use `powi`")),
            [Some(t)] => {
                let slope = if FAULT == JVP { self.factor } else { 2.0 * self.factor };
                Derivative::one(&jvp.primals[0] * t * slope)
            }
            _ => Ok(Derivative::Zero),
        }
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        match FAULT {
            NO_BATCH => Ok(Batched::Missing("")),
            BATCH => Batched::one(batch.inputs[0].clone()),
            _ => batch.elementwise(Op::new(self.clone())),
        }
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        let op = Op::new(Square::<FAULT> { factor: 0.5 });
        let matrix = Array::from([[1.5_f64, -0.25, 3.0], [0.5, 2.0, -1.0]]);
        vec![Sample::new(op.clone(), vec![matrix]), Sample::new(op, vec![Array::from(0.75_f64)])]
    }
}

/// What the checks say of the samples of a faulty one.
fn failure<const FAULT: usize>() -> String {
    check_samples(&Square::<FAULT>::samples()).expect_err("a fault that no check finds")
}

#[test]
fn a_primitive_of_a_user_passes_the_checks() {
    let unknown = check_samples(&Square::<NOTHING>::samples()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(unknown.missing.into_iter().collect::<Vec<_>>(), [("square".to_string(), "not registered".to_string())]);
    register::<Square<NOTHING>>("square").unwrap_or_else(|e| panic!("{e}"));
    let known = check_samples(&Square::<NOTHING>::samples()).unwrap_or_else(|e| panic!("{e}"));
    assert!(known.missing.is_empty(), "{:?}", known.missing);
    assert!(known.comparisons > unknown.comparisons);
}

#[test]
fn a_wrong_rule_of_a_user_is_found() {
    assert!(failure::<JVP>().contains("where differences give"), "{}", failure::<JVP>());
    assert!(failure::<BATCH>().contains("Batching of `square_batch`"), "{}", failure::<BATCH>());
    assert!(failure::<TYPE>().contains("gave f64[2,3] where its type rule says f32[2,3]"), "{}", failure::<TYPE>());
    assert!(failure::<LAYOUT>().contains("operands with strides"), "{}", failure::<LAYOUT>());
}

#[test]
fn a_missing_rule_of_a_user_is_listed() {
    let missing = |samples: Vec<Sample>| {
        let tally = check_samples(&samples).unwrap_or_else(|e| panic!("{e}"));
        tally.missing.into_iter().map(|(_, what)| what).collect::<Vec<_>>()
    };
    assert_eq!(missing(Square::<NO_JVP>::samples()), ["`square_no_jvp` has no derivative rule", "not registered"]);
    assert_eq!(missing(Square::<NO_BATCH>::samples()), ["`square_no_batch` has no batching rule", "not registered"]);
}

/// sin(x)/x with the limit at 0, and its derivatives by quotients of their own; those are 0/0 at 0, where the first has its limit 0. With
/// `RIGHT` the second has its limit there too, -1/3.
#[derive(Clone, Copy, Debug)]
struct Sinc<const RIGHT: bool>;

impl<const RIGHT: bool> Primitive for Sinc<RIGHT> {
    fn name(&self) -> &'static str {
        if RIGHT { "sinc" } else { "sinc_flat" }
    }
    fn params(&self) -> Params {
        Vec::new()
    }
    fn from_params(_: &mut ParamReader<'_>) -> Result<Self> {
        Ok(Sinc)
    }
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        infer.dtype(0, "f64", |d| d == DType::F64)?;
        infer.all_same().map(|t| [t].into_iter().collect())
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let quotients = inputs[0].to_vec::<f64>()?.iter().map(|v| if *v == 0.0 { 1.0 } else { v.sin() / v }).collect();
        Ok([Array::from_vec(quotients, inputs[0].shape())].into_iter().collect())
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        let [Some(t)] = jvp.tangents else { return Ok(Derivative::Zero) };
        let x = &jvp.primals[0];
        // Near zero the quotient has no digits; -x/3 + x³/30 has all of them.
        let near = if RIGHT { x.abs().lt(1e-2_f64) } else { x.eq(0.0_f64) };
        let series = if RIGHT { x * (x * x * (1.0 / 30.0) - 1.0 / 3.0) } else { x.zeros_like() };
        let slope = |x: &Array| (x.cos() - x.sin() / x) / x;
        Derivative::one(t * near.select(series, slope(&near.select(x.ones_like(), x))))
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        batch.elementwise(Op::new(*self))
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        vec![Sample::new(Op::new(Sinc::<RIGHT>), vec![Array::from([0.5_f64, -1.25, 3.0])])]
    }
}

#[test]
fn a_rule_that_is_wrong_only_where_its_quotient_has_a_limit_is_found() {
    check_samples(&Sinc::<true>::samples()).unwrap_or_else(|e| panic!("{e}"));
    let found = check_samples(&Sinc::<false>::samples()).expect_err("no check looks at 0");
    assert!(found.contains("PlainPoints of `sinc_flat`") && found.contains("where differences give"), "{found}");
}

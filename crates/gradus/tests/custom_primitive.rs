//! A primitive written outside the crate, through the same trait as the built-in ones: it takes part in staging,
//! derivatives and batching, and a rule it lacks is a clear error.

use gradus::extend::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types, register,
};
use gradus::extend::trace::bind;
use gradus::extend::{rules_of, types::Effects};
use gradus::prelude::*;

/// x² by a primitive of its own.
#[derive(Clone, Copy, Debug)]
struct Square;

impl Primitive for Square {
    rules_of!("test_square");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        infer.all_same().map(|t| [t].into_iter().collect())
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        Ok([&inputs[0] * &inputs[0]].into_iter().collect())
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        match &jvp.tangents[0] {
            Some(t) => Derivative::one(t * (&jvp.primals[0] * 2.0_f64)),
            None => Ok(Derivative::Zero),
        }
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
        vec![Sample::new(Op::new(Square), vec![Array::from([1.5_f64, -2.0])])]
    }
}

/// Shows something, and has neither a derivative nor a batching rule.
#[derive(Clone, Copy, Debug)]
struct Shout;

impl Primitive for Shout {
    rules_of!("test_shout");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.all_same().map(|t| [t].into_iter().collect())
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        Ok(inputs.iter().cloned().collect())
    }
    fn jvp(&self, _: &Jvp<'_>) -> Result<Derivative> {
        Ok(Derivative::Missing("shouting is not differentiable: take it out of the function"))
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    fn batch(&self, _: &Batch<'_>) -> Result<Batched> {
        Ok(Batched::Missing("shout once, outside of `vmap`"))
    }
    fn effects(&self) -> Effects {
        Effects::PRINT
    }
    fn samples() -> Vec<Sample> {
        Vec::new()
    }
}

fn square(x: &Array) -> Array {
    bind(Op::fixed(&Square), std::slice::from_ref(x))
}

fn shout(x: &Array) -> Array {
    bind(Op::fixed(&Shout), std::slice::from_ref(x))
}

#[test]
fn row_d8_a_primitive_from_outside_takes_part_in_everything() -> Result<()> {
    let x = Array::from(3.0_f64);
    assert_eq!(square(&x).item::<f64>()?, 9.0);
    assert_eq!(jit(square)(&x).item::<f64>()?, 9.0);
    assert_eq!(jit(grad(square))(&x).item::<f64>()?, 6.0);
    assert_eq!(grad(grad(square))(&x).item::<f64>()?, 2.0);
    let batch = jit(vmap(grad(square)))(&Array::from([1.0_f64, 2.0]));
    assert_eq!(batch.to_vec::<f64>()?, [2.0, 4.0]);
    register::<Square>("test_square")?;
    let program = jit(square).trace(&x)?.program().clone();
    assert_eq!(program.to_string().parse::<Program>()?, program);
    // Once more changes nothing; another type, or another name, is refused.
    register::<Square>("test_square")?;
    assert!(register::<Shout>("test_square").is_err());
    assert!(register::<Square>("test_rectangle").is_err());
    Ok(())
}

#[test]
fn a_missing_rule_names_primitive_and_rule_and_still_runs_eagerly() -> Result<()> {
    let x = Array::from(3.0_f64);
    assert_eq!(jit(shout)(&x).item::<f64>()?, 3.0);
    let e = grad(shout)(&x).ok().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::MissingRule);
    let text = e.to_string();
    assert!(
        text.contains("test_shout") && text.contains("derivative") && text.contains("custom_primitive.rs:"),
        "{text}"
    );
    let e = vmap(shout)(&Array::from([1.0_f64])).ok().unwrap_err().to_string();
    assert!(e.contains("test_shout") && e.contains("batching") && e.contains("outside of `vmap`"), "{e}");
    Ok(())
}

#[test]
fn an_effect_is_never_dropped() -> Result<()> {
    let program = jit(|x: &Array| {
        shout(x);
        x * 2.0_f64
    })
    .trace(&Array::spec("f64[]"))?
    .optimized();
    assert_eq!(program.count("test_shout"), 1);
    assert!(program.to_string().contains("does print"), "{program}");
    Ok(())
}

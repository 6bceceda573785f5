//! A user's operation is what its type says, whatever it is called: no pass, no compiler and no cache takes it for a built-in one of the same name. What
//! it says of itself (its scalar form, its parts, its limits) makes it as good as a built-in one.

use gradus::Interpreter;
use gradus::extend::primitives::elementwise::{Add, Exp};
use gradus::extend::primitives::{
    Batch, Batched, Derivative, Expansion, Infer, Jvp, Limits, NotFinite, Op, Outputs, Primitive, Sample, Transpose,
    Transposed, Types,
};
use gradus::extend::scalar::{self, Local, Scalars, Ty};
use gradus::extend::testing::check_samples;
use gradus::extend::trace::bind;
use gradus::extend::{rules_of, types::Effects};
use gradus::prelude::*;

/// An operation on f64 that evaluates to a function of each element, with the rules that a test wants on top.
macro_rules! operation {
    ($type:ident = $name:literal, |$x:ident| $value:expr $(; $($rule:item)*)?) => {
        #[derive(Clone, Copy, Debug)]
        struct $type;

        impl Primitive for $type {
            rules_of!($name);
            fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
                infer.arity(1)?;
                infer.dtype(0, "f64", |d| d == DType::F64)?;
                infer.all_same().map(|t| [t].into_iter().collect())
            }
            fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
                let values = inputs[0].to_vec::<f64>()?.into_iter().map(|$x| $value).collect();
                Ok([Array::from_vec::<f64>(values, inputs[0].shape())].into_iter().collect())
            }
            fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
                Ok(Derivative::Tangents([jvp.tangents[0].clone()].into_iter().collect()))
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
                vec![Sample::new(Op::new($type), vec![Array::from([0.5_f64, -2.0, 3.0])])]
            }
            $($($rule)*)?
        }
    };
}

operation!(Sign = "sign", |x| x + 100.0);
operation!(Name = "name", |x| x * 2.0);
operation!(Clamp = "clamp", |x| x - 7.0);
operation!(StopGradient = "stop_gradient", |x| x * 3.0);
operation!(Sin = "sin", |x| x + 1.0);
operation!(Broadcast = "broadcast", |x| x + 2.0);
operation!(Convert = "convert", |x| x + 3.0);
operation!(ReduceSum = "reduce_sum", |x| x + 4.0);

fn apply(op: &Op, x: &Array) -> Array {
    bind(op.clone(), std::slice::from_ref(x))
}

/// What the checks of an operation's rules say of its samples. Derivatives are none of these tests' business.
fn failures(samples: &[Sample]) -> String {
    check_samples(samples).err().unwrap_or_default()
}

fn all() -> [(Op, fn(f64) -> f64); 8] {
    [
        (Op::fixed(&Sign), |x| x + 100.0),
        (Op::fixed(&Name), |x| x * 2.0),
        (Op::fixed(&Clamp), |x| x - 7.0),
        (Op::fixed(&StopGradient), |x| x * 3.0),
        (Op::fixed(&Sin), |x| x + 1.0),
        (Op::fixed(&Broadcast), |x| x + 2.0),
        (Op::fixed(&Convert), |x| x + 3.0),
        (Op::fixed(&ReduceSum), |x| x + 4.0),
    ]
}

#[test]
fn row_d8_an_operation_is_not_taken_for_another_of_its_name() -> Result<()> {
    // In registers, in one vector, in many.
    for n in [1_usize, 3, 40, 5000] {
        let numbers: Vec<f64> = (0..n).map(|i| i as f64 * 0.5 - 3.0).collect();
        let x = Array::from(numbers.clone());
        for (op, value) in all() {
            let want: Vec<f64> = numbers.iter().map(|v| value(*v)).collect();
            assert_eq!(apply(&op, &x).to_vec::<f64>()?, want, "{}, eager", op.name());
            let wrapped = op.clone();
            let f = move |x: &Array| apply(&wrapped, x);
            for tier in [Tier::Embedded, Tier::Llvm] {
                assert_eq!(jit(f.clone()).tier(tier)(&x).to_vec::<f64>()?, want, "{}, {tier:?}", op.name());
            }
            assert_eq!(jit(f.clone()).backend(Interpreter)(&x).to_vec::<f64>()?, want, "{}", op.name());
            let batch = jit(vmap(f.clone()))(&x);
            assert_eq!(batch.to_vec::<f64>()?, want, "{}, a batch", op.name());
            let both = jit(vmap(value_and_grad(f)))(&x);
            assert_eq!(both.0.to_vec::<f64>()?, want, "{}, with a derivative", op.name());
        }
    }
    Ok(())
}

#[test]
fn two_operations_of_one_name_in_one_program_stay_two() -> Result<()> {
    let x = Array::from([-2.0_f64, 0.5, 3.0]);
    let f = |x: &Array| apply(&Op::fixed(&Sign), x) - x.sign();
    for n in 0..2 {
        // The second time from the cache.
        assert_eq!(jit(f)(&x).to_vec::<f64>()?, [99.0, 99.5, 102.0], "{n}");
    }
    let mine = jit(|x: &Array| apply(&Op::fixed(&Sin), x));
    let theirs = jit(|x: &Array| x.sin());
    assert_eq!(mine(&x).to_vec::<f64>()?, [-1.0, 1.5, 4.0]);
    assert_eq!(theirs(&x).to_vec::<f64>()?, x.sin().to_vec::<f64>()?);
    assert_eq!(theirs.stats().shared, 0, "the code of another operation");
    assert_ne!(Op::fixed(&Sin), Op::fixed(&gradus::extend::primitives::elementwise::Sin));
    assert_eq!(Op::fixed(&Sin), Op::new(Sin));
    Ok(())
}

// e^x + x², by basic operations and a built-in function.
operation!(Curve = "test_curve", |x| x.mul_add(x, gradus::extend::math::plain::exp_f64(x));
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        let x = s.operand(0);
        let e = s.apply(&Exp, &[x], s.ty(x))?;
        Some(s.op(scalar::Op::Fma, &[x, x, e]))
    }
    fn is_elementwise(&self) -> bool {
        true
    }
    fn is_total(&self) -> bool {
        true
    }
);

#[test]
fn row_d8_an_operation_with_a_scalar_form_is_fused() -> Result<()> {
    let f = |x: &Array| (apply(&Op::fixed(&Curve), x) * 2.0 + 1.0).tanh();
    let x = Array::from_vec::<f64>((0..1000).map(|i| i as f64 / 500.0 - 1.0).collect(), [1000]);
    let want = jit(f).backend(Interpreter)(&x).to_vec::<f64>()?;
    for tier in [Tier::Embedded, Tier::Llvm] {
        let close = jit(f).tier(tier)(&x).to_vec::<f64>()?;
        for (h, w) in close.iter().zip(&want) {
            assert!((h - w).abs() <= 1e-15 * w.abs(), "{tier:?}: {h} is not {w}");
        }
    }
    let phases = jit(f).phases(&x)?.to_string();
    assert_eq!(phases.matches("\nkernel ").count(), 1, "{phases}");
    assert!(!phases.contains("call test_curve"), "{phases}");
    // Bits of the form are those of the evaluation, and the checks look.
    let failures = failures(&Curve::samples());
    assert!(!failures.contains("scalar form"), "{failures}");
    Ok(())
}

operation!(Wrong = "test_wrong", |x| x + 1.0;
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        let (x, two) = (s.operand(0), s.number(Ty::F64, 2.0));
        Some(s.op(scalar::Op::Add, &[x, two]))
    }
);

operation!(Misfit = "test_misfit", |x| x + 1.0;
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        let (x, one) = (s.operand(0), s.number(Ty::F32, 1.0));
        Some(s.op(scalar::Op::Add, &[x, one]))
    }
);

operation!(Half = "test_half", |x| x + 0.5;
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        let half = s.number(Ty::I64, 0.5);
        Some(s.convert(half, Ty::F64))
    }
);

operation!(Nowhere = "test_nowhere", |x| x + 1.0;
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        s.apply(&Add, &[s.operand(0), s.operand(5)], Ty::F64)
    }
);

operation!(Itself = "test_itself", |x| x;
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        s.apply(self, &[s.operand(0)], Ty::F64)
    }
);

// Rotations by known counts of any size; compiled in registers, in one vector and in many.
#[derive(Clone, Debug)]
struct Turn {
    count: i64,
}

impl Primitive for Turn {
    rules_of!("test_turn"; count);
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        infer.dtype(0, "i64", |d| d == DType::I64)?;
        infer.all_same().map(|t| [t].into_iter().collect())
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let by = self.count.rem_euclid(64) as u32;
        let values = inputs[0].to_vec::<i64>()?.into_iter().map(|v| v.rotate_left(by)).collect();
        Ok([Array::from_vec::<i64>(values, inputs[0].shape())].into_iter().collect())
    }
    fn jvp(&self, _: &Jvp<'_>) -> Result<Derivative> {
        Ok(Derivative::Zero)
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        batch.elementwise(Op::new(self.clone()))
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        let by = s.bits(Ty::I64, self.count as u64);
        Some(s.op(scalar::Op::Rotl, &[s.operand(0), by]))
    }
    fn samples() -> Vec<Sample> {
        [-3, 5, 64, 1 << 40].map(|count| Sample::new(Op::new(Turn { count }), vec![Array::from([-3_i64, 77])])).to_vec()
    }
}

#[test]
fn bits_go_around_by_any_known_count() -> Result<()> {
    for count in [-3, 0, 1, 16, 63, 64, 65, 80, (1 << 32) + 5, 2_720_807_590_828_602_448] {
        for n in [1_i64, 8, 38, 1000] {
            let x = Array::from((0..n).map(|i| i * 7919 - 3).collect::<Vec<i64>>());
            let op = Op::new(Turn { count });
            let want = apply(&op, &x).to_vec::<i64>()?;
            for tier in [Tier::Embedded, Tier::Llvm] {
                let op = op.clone();
                let have = jit(move |x: &Array| apply(&op, x)).tier(tier)(&x).to_vec::<i64>()?;
                assert_eq!(have, want, "{count}, {n}, {tier:?}");
            }
        }
    }
    Ok(())
}

// What evaluates to something else than its type rule says.
macro_rules! liar {
    ($type:ident = $name:literal, $gives:expr) => {
        #[derive(Clone, Copy, Debug)]
        struct $type;
        impl Primitive for $type {
            rules_of!($name);
            fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
                infer.all_same().map(|t| [t].into_iter().collect())
            }
            fn evaluate(&self, _: &[Array]) -> Result<Outputs> {
                Ok([$gives].into_iter().collect())
            }
            fn jvp(&self, _: &Jvp<'_>) -> Result<Derivative> {
                Ok(Derivative::Zero)
            }
            fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
                Ok(Transposed::NotLinear)
            }
            fn batch(&self, _: &Batch<'_>) -> Result<Batched> {
                Ok(Batched::Missing("none"))
            }
            fn effects(&self) -> Effects {
                Effects::PURE
            }
            fn samples() -> Vec<Sample> {
                Vec::new()
            }
        }
    };
}
liar!(TooLong = "test_too_long", Array::zeros::<f64>([4096]));
liar!(TooShort = "test_too_short", Array::zeros::<f64>([1]));
liar!(OtherNumbers = "test_other_numbers", Array::zeros::<f32>([8]));
liar!(AnError = "test_an_error", Array::zeros::<f64>([2]) + Array::zeros::<f64>([3]));

#[test]
fn row_e4_what_is_not_of_its_type_goes_no_further() {
    let x = Array::ones::<f64>([8]);
    for op in [Op::fixed(&TooLong), Op::fixed(&TooShort), Op::fixed(&OtherNumbers), Op::fixed(&AnError)] {
        let name = op.name();
        let f = move |x: &Array| (apply(&op, &(x + 1.0)) + x).sin();
        for (way, have) in [
            ("eager", f(&x)),
            ("interpreted", jit(f.clone()).backend(Interpreter)(&x)),
            ("compiled", jit(f.clone())(&x)),
        ] {
            // An error that it gave is told as it is.
            let e = have.ok().unwrap_err().to_string();
            assert!(e.contains(if name == "test_an_error" { "do not broadcast" } else { name }), "{way}: {e}");
        }
    }
}

#[test]
fn a_scalar_form_that_is_wrong_is_found() -> Result<()> {
    let failures = failures(&Wrong::samples());
    assert!(failures.contains("scalar form") && failures.contains("test_wrong"), "{failures}");
    let x = Array::from([1.0_f64, 2.0]);
    // Who verifies calls is told whom to ask.
    let e = jit(|x: &Array| apply(&Op::fixed(&Wrong), x)).verify()(&x).ok().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Mismatch);
    assert!(e.to_string().contains("hold `test_wrong`"), "{e}");
    for (op, says) in [
        (Op::fixed(&Misfit), "F32"),
        (Op::fixed(&Nowhere), "never made"),
        (Op::fixed(&Half), "0.5 is no i64"),
        (Op::fixed(&Itself), "inside of itself"),
    ] {
        let name = op.name();
        let e = jit(move |x: &Array| apply(&op, x))(&x).ok().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::MissingRule, "{e}");
        let text = e.to_string();
        assert!(text.contains(name) && text.contains("scalar form") && text.contains(says), "{text}");
        assert!(text.contains("operations_by_identity.rs:"), "{text}");
    }
    Ok(())
}

// A variance, made of other operations.
#[derive(Clone, Copy, Debug)]
struct Spread;

fn spread(x: &Array) -> Array {
    let away = x - x.mean_axes(0);
    (&away * &away).mean_axes(0)
}

impl Primitive for Spread {
    rules_of!("test_spread");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        Ok([Type::scalar(infer.inputs[0].dtype())].into_iter().collect())
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        Ok([spread(&inputs[0])].into_iter().collect())
    }
    fn jvp(&self, _: &Jvp<'_>) -> Result<Derivative> {
        Ok(Derivative::Missing("none"))
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    fn batch(&self, _: &Batch<'_>) -> Result<Batched> {
        Ok(Batched::Missing("none"))
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn expand(&self, _: &[Type]) -> Option<Expansion<'_>> {
        Some(Box::new(|x| Ok([spread(&x[0])].into_iter().collect())))
    }
    fn samples() -> Vec<Sample> {
        vec![Sample::new(Op::new(Spread), vec![Array::from([0.5_f64, -2.0, 3.0])])]
    }
}

#[test]
fn row_d8_an_operation_made_of_others_is_compiled_as_them() -> Result<()> {
    let f = |x: &Array| apply(&Op::fixed(&Spread), &x.sin()) + 1.0;
    let x = Array::from_vec::<f64>((0..300).map(f64::from).collect(), [300]);
    let (have, want) = (jit(f)(&x).item::<f64>()?, jit(f).backend(Interpreter)(&x).item::<f64>()?);
    assert!((have - want).abs() <= 1e-14, "{have} is not {want}");
    let text = jit(f).phases(&x)?.to_string();
    assert!(!text.contains("call test_spread"), "{text}");
    // One program for every size, too.
    let every = jit(f).symbolic("f64[N]");
    assert!((every(&x).item::<f64>()? - want).abs() <= 1e-14);
    let failures = failures(&Spread::samples());
    assert!(!failures.contains("made of"), "{failures}");
    Ok(())
}

// An operation that is made of itself, for ever.
operation!(Circle = "test_circle", |x| x;
    fn expand(&self, _: &[Type]) -> Option<Expansion<'_>> {
        Some(Box::new(|x| Ok([apply(&Op::fixed(&Circle), &x[0])].into_iter().collect())))
    }
);

#[test]
fn an_operation_that_is_made_of_itself_is_an_error() {
    let e = jit(|x: &Array| apply(&Op::fixed(&Circle), x))(&Array::from(1.0_f64)).ok().unwrap_err();
    assert!(e.to_string().contains("test_circle") && e.to_string().contains("made of"), "{e}");
}

// 1/(x - 3), which has something to say of its edges.
operation!(Pole = "test_pole", |x| 1.0 / (x - 3.0);
    fn is_elementwise(&self) -> bool {
        true
    }
    fn limits(&self) -> Limits {
        Limits::at("at 3").written("pole(x)").making(NotFinite::Words("keep away from 3"))
    }
);

#[test]
fn row_d8_an_operation_speaks_of_its_own_edges() -> Result<()> {
    let pole = |x: &Array| apply(&Op::fixed(&Pole), x);
    let guarded = move |x: &Array| x.gt(3.0).select(pole(x), x.zeros_like()).sum();
    let lints = jit(guarded).trace(&Array::spec("f64[4]"))?.lints();
    assert_eq!(lints.len(), 1, "{lints:?}");
    let text = lints[0].to_string();
    assert!(text.contains("test_pole") && text.contains("pole(x)"), "{text}");
    let e = jit(pole).hunt(Hunt::NanAndInf)(&Array::from([1.0_f64, 3.0])).ok().unwrap_err().to_string();
    assert!(e.contains("test_pole") && e.contains("keep away from 3"), "{e}");
    Ok(())
}

//! Programs go out and come back: every primitive's samples compute the same bits after export, text, reader and importer; what cannot go out says so.

use gradus_core::primitives::effects::{Callback, Host, Kind};
use gradus_core::primitives::{BUILT_IN, Op, Sample};
use gradus_core::program::{Atom, Builder};
use gradus_core::testing::{RandomProgram, Recipe, canonical};
use gradus_core::transform::{jvp, vjp};
use gradus_core::{Array, DType, Location, Program, Type, interpret};
use gradus_stablehlo::{Accuracy, Export, Precision, Target, exported, import, read_one, stablehlo_text, write};

fn program_of(op: &Op, inputs: &[Array]) -> Program {
    let mut b = Builder::new(op.name());
    let inputs: Vec<Atom> = inputs.iter().map(|x| b.input(x.ty().unwrap().clone()).unwrap().into()).collect();
    let results = b.equation(op.clone(), &inputs, Location::unknown()).unwrap().results();
    let results: Vec<Atom> = results.map(Atom::from).collect();
    b.finish(results)
}

/// What no program can do that StableHLO has operations for.
const REFUSED: &[&str] = &["eig", "schur"];

/// Operations whose results are rounded by who computes them: they come back as loops of basic operations, or in another order.
fn is_rounded(name: &str) -> bool {
    // `chlo.sinh` and `chlo.cosh` of f32 come in by the formula of chlo.
    matches!(name, "lu" | "qr" | "eigh" | "svd" | "pinv" | "solve" | "slogdet" | "sinh" | "cosh")
}

/// What differs between two lists of arrays, if anything does. A key comes back as its bits.
fn difference(want: &[Array], have: &[Array], rounded: bool) -> Option<String> {
    if want.len() != have.len() {
        return Some(format!("{} results for {}", have.len(), want.len()));
    }
    for (i, (w, h)) in want.iter().zip(have).enumerate() {
        let (Some(w), Some(h)) = (w.concrete(), h.concrete()) else {
            return Some(format!("result {i} has no numbers"));
        };
        if w.dims() != h.dims() {
            return Some(format!("result {i} is {} for {}", h.ty(), w.ty()));
        }
        for k in 0..w.count() {
            let (a, b) = (w.scalar_at(k).unwrap(), h.scalar_at(k).unwrap());
            let (a, b) = (canonical(a), canonical(b));
            let bits = |s: gradus_core::Scalar| match s {
                gradus_core::Scalar::Key(k) => gradus_core::Scalar::U64(k.0),
                other => other,
            };
            let near = || {
                let real = |s: gradus_core::Scalar| Array::scalar(s).real().cast(DType::F64).item::<f64>().unwrap();
                let part = |s: gradus_core::Scalar| {
                    if s.dtype().is_complex() {
                        Array::scalar(s).imag().cast(DType::F64).item::<f64>().unwrap()
                    } else {
                        0.0
                    }
                };
                let bound = if matches!(w.ty().dtype(), DType::F32 | DType::C64) { 1e-4 } else { 1e-9 };
                let close =
                    |x: f64, y: f64| x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= bound * (1.0 + x.abs());
                close(real(a), real(b)) && close(part(a), part(b))
            };
            if bits(a) != bits(b) && !(rounded && near()) {
                return Some(format!("result {i}[{k}] is {b} for {a}"));
            }
        }
    }
    None
}

/// The program again, from its text.
fn returned(program: &Program, options: &Export) -> Result<Program, String> {
    let text = stablehlo_text(program, options).map_err(|e| format!("export: {e}"))?;
    let module = read_one("exported", &text).map_err(|e| format!("read: {e}\n{text}"))?;
    if write::write(&module) != text {
        return Err(format!("the text reads back as another:\n{text}\n{}", write::write(&module)));
    }
    let imported = import(&module).map_err(|e| format!("import: {e}\n{text}"))?;
    Ok((*imported.program).clone())
}

fn round_trip(program: &Program, inputs: &[Array], rounded: bool) -> Result<(), String> {
    let want = interpret(program, inputs).map_err(|e| format!("interpret: {e}"))?;
    let again = returned(program, &Export::default())?;
    let keys = |(x, t): (&Array, &Type)| if x.dtype() == t.dtype() { x.clone() } else { x.bitcast(t.dtype()) };
    let inputs: Vec<Array> = inputs.iter().zip(again.inputs()).map(keys).collect();
    let have = interpret(&again, &inputs).map_err(|e| format!("interpret again: {e}"))?;
    match difference(&want, &have, rounded) {
        None => Ok(()),
        Some(words) => Err(format!("{words}\n{}", stablehlo_text(program, &Export::default()).unwrap())),
    }
}

#[test]
fn every_primitive_goes_out_and_comes_back_with_its_bits() {
    let mut faults = Vec::new();
    let mut count = 0;
    for entry in BUILT_IN.iter() {
        let samples: Vec<Sample> = (entry.samples)();
        assert!(!samples.is_empty(), "`{}` has no samples", entry.name);
        for (i, sample) in samples.iter().enumerate() {
            let program = program_of(&sample.op, &sample.inputs);
            count += 1;
            if REFUSED.contains(&entry.name) {
                let e = stablehlo_text(&program, &Export::default()).unwrap_err().to_string();
                assert!(e.contains(entry.name) && e.contains("StableHLO"), "{e}");
                continue;
            }
            if let Err(e) = round_trip(&program, &sample.inputs, is_rounded(entry.name)) {
                faults.push(format!("{}-{i}: {e}", entry.name));
            }
        }
    }
    let shown: Vec<String> = faults.iter().map(|f| f.chars().take(1500).collect()).collect();
    assert!(faults.is_empty(), "{} of {count} samples:\n{}", faults.len(), shown.join("\n"));
}

/// Whether a program has an operation that comes back as arithmetic that is rounded elsewhere.
fn has_rounded(program: &Program) -> bool {
    BUILT_IN.iter().filter(|e| is_rounded(e.name)).any(|e| program.count(e.name) > 0)
}

fn has_refused(program: &Program) -> bool {
    REFUSED.iter().any(|name| program.count(name) > 0)
}

fn random_programs(symbolic: bool, seeds: std::ops::Range<u64>) {
    let mut faults = Vec::new();
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let recipe = Recipe { symbolic, equations: 24, ..Recipe::default() };
        let RandomProgram { program, inputs, symbol } = RandomProgram::from_recipe(seed, recipe);
        // As in JAX, a symbol of an exported program stands for a size of at least 1.
        // Decompositions are loops over known sizes.
        if has_refused(&program) || (symbolic && (symbol == 0 || has_rounded(&program))) {
            continue;
        }
        if let Err(e) = round_trip(&program, &inputs, has_rounded(&program)) {
            faults.push(format!("seed {seed}: {}\n{program}\n{e}", e.lines().next().unwrap_or_default()));
        }
    }
    let shown: Vec<String> = faults.iter().take(4).map(|f| f.chars().take(9000).collect()).collect();
    assert!(faults.is_empty(), "{} of {count} programs:\n{}", faults.len(), shown.join("\n"));
}

#[test]
fn random_programs_come_back_with_their_bits() {
    random_programs(false, 0..300);
}

/// Both modes: a program with tangents, one that keeps what its linear half needs, and that half.
#[test]
fn derivatives_come_back_with_their_bits() {
    let (mut faults, mut count) = (Vec::new(), 0);
    for seed in 0..100 {
        let recipe = Recipe { smooth: true, equations: 2 + (seed % 13) as usize, ..Recipe::default() };
        let r = RandomProgram::from_recipe(seed, recipe);
        let active = vec![true; r.inputs.len()];
        let both: Vec<Array> = r.inputs.iter().cloned().chain(r.more_inputs(seed + 1, true)).collect();
        let back = vjp(&r.program, &active).unwrap();
        let values = interpret(&back.primal, &r.inputs).unwrap();
        let (outputs, residuals) = values.split_at(r.program.outputs().len());
        let bars = outputs.iter().zip(&back.varies).filter(|(_, varies)| **varies).map(|(y, _)| y.ones_like());
        let late: Vec<Array> = residuals.iter().cloned().chain(bars).collect();
        let forward = jvp(&r.program, &active).unwrap().0;
        for (program, inputs) in [(forward, both), (back.primal, r.inputs), (back.linear, late)] {
            if has_refused(&program) {
                continue;
            }
            count += 1;
            if let Err(e) = round_trip(&program, &inputs, has_rounded(&program)) {
                faults.push(format!("seed {seed}: {e}\n{program}"));
            }
        }
    }
    let shown: Vec<String> = faults.iter().take(4).map(|f| f.chars().take(9000).collect()).collect();
    assert!(faults.is_empty() && count > 200, "{} of {count} programs:\n{}", faults.len(), shown.join("\n"));
}

#[test]
fn random_programs_with_symbols_come_back_with_their_bits() {
    random_programs(true, 1000..1200);
}

/// A program from its text.
fn program(text: &str) -> Program {
    text.parse().unwrap()
}

fn text_of(p: &Program) -> String {
    stablehlo_text(p, &Export::default()).unwrap()
}

#[test]
fn a_sine_of_a_product_and_its_gradient() {
    let p = program("fn f(x0: f32[3]) -> f32[3] {\n  x1: f32[3] = mul x0 x0\n  x2: f32[3] = sin x1\n  return x2\n}");
    let want = "module @f {
  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<3xf32>
    %1 = stablehlo.sine %0 : tensor<3xf32>
    return %1 : tensor<3xf32>
  }
}
";
    assert_eq!(text_of(&p), want);
    assert_eq!(text_of(&p), want, "the same program, the same text");
    let vjp = gradus_core::transform::vjp(&p, &[true]).unwrap();
    assert!(text_of(&vjp.primal).contains("stablehlo.cosine"), "{}", text_of(&vjp.primal));
}

#[test]
fn constants_are_splats_lists_or_bits() {
    let p = program(
        "fn f(x0: f32[2]) -> (f32[2], f32[2], f64[]) {\n  x1: f32[2] = add x0 0.1:f32[2]\n  x2: f32[2] = add x0 nan:f32[2]\n  x3: f64[] = add -0.0:f64[] 1e-300:f64[]\n  return x1, x2, x3\n}",
    );
    let text = text_of(&p);
    for part in [
        "dense<0.1> : tensor<2xf32>",
        "dense<0x7FC00000> : tensor<2xf32>",
        "dense<0x8000000000000000> : tensor<f64>",
        "dense<1.0e-300> : tensor<f64>",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn calls_are_functions_made_once() {
    let g = "fn g(x0: f32[]) -> f32[] {\n    x1: f32[] = sin x0\n    return x1\n  }";
    let p = program(&format!(
        "fn f(x0: f32[]) -> f32[] {{\n  x1: f32[] = call{{program={g}}} x0\n  x2: f32[] = call{{program={g}}} x1\n  return x2\n}}"
    ));
    let want = "module @f {
  func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
    %0 = call @g(%arg0) : (tensor<f32>) -> tensor<f32>
    %1 = call @g(%0) : (tensor<f32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @g(%arg0: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %arg0 : tensor<f32>
    return %0 : tensor<f32>
  }
}
";
    assert_eq!(text_of(&p), want);
}

#[test]
fn a_loop_ends_where_it_says() {
    let body = "fn b(x0: f32[]) -> f32[] {\n    x1: f32[] = add x0 1.0:f32[]\n    return x1\n  }";
    let test = "fn c(x0: f32[]) -> bool[] {\n    x1: bool[] = compare{direction=lt} x0 10.0:f32[]\n    return x1\n  }";
    let p = program(&format!(
        "fn f(x0: f32[]) -> f32[] {{\n  x1: f32[] = while{{condition={test}, body={body}, consts=0, limit=[], checkpoints=32}} x0\n  return x1\n}}"
    ));
    let want = "module @f {
  func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.while(%arg1 = %arg0) : tensor<f32>
    cond {
      %1 = stablehlo.constant dense<10.0> : tensor<f32>
      %2 = stablehlo.compare LT, %arg1, %1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %3 = stablehlo.constant dense<1.0> : tensor<f32>
      %4 = stablehlo.add %arg1, %3 : tensor<f32>
      stablehlo.return %4 : tensor<f32>
    }
    return %0 : tensor<f32>
  }
}
";
    assert_eq!(text_of(&p), want);
}

#[test]
fn sizes_that_are_symbols_are_read_checked_and_passed_on() {
    let p = program("fn f(x0: f32[B,4]) -> f32[B,4] {\n  x1: f32[B,4] = add x0 1.0:f32[B,4]\n  return x1\n}");
    let text = text_of(&p);
    for part in [
        "module @f attributes {jax.uses_shape_polymorphism = true} {",
        "func.func public @main(%arg0: tensor<?x4xf32>) -> tensor<?x4xf32> {",
        "%0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>",
        "stablehlo.custom_call @shape_assertion(",
        "func.func private @_wrapped_f(%arg0: tensor<i32> {jax.global_constant = \"B\"}, %arg1: tensor<?x4xf32>) -> tensor<?x4xf32> {",
        "stablehlo.dynamic_broadcast_in_dim",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn precision_is_the_highest_unless_less_is_asked_for() {
    let p = program(
        "fn f(x0: f32[2,2]) -> f32[2,2] {\n  x1: f32[2,2] = dot_general{lhs_contract=[1], rhs_contract=[0], lhs_batch=[], rhs_batch=[]} x0 x0\n  return x1\n}",
    );
    assert!(text_of(&p).contains("precision = [HIGHEST, HIGHEST]"));
    let less = Export { precision: Precision::Default, ..Export::default() };
    assert!(stablehlo_text(&p, &less).unwrap().contains("precision = [DEFAULT, DEFAULT]"));
}

#[test]
fn a_function_of_the_host_stays_in_the_process() {
    let host = Host::new(Location::caller(), |xs: &[Array]| Ok(xs.to_vec()));
    let ty = Type::scalar(DType::F32);
    let op = Op::new(Callback::giving(Kind::Pure, host, vec![ty], false));
    let p = program_of(&op, &[Array::from(1.0_f32)]);
    let e = stablehlo_text(&p, &Export::default()).unwrap_err().to_string();
    assert!(e.contains("a function of the host cannot leave the process") && e.contains("export.rs"), "{e}");
    let here = Export { target: Target::Plugin("cpu".into()), ..Export::default() };
    let made = exported(&p, &here).unwrap();
    assert_eq!(made.callbacks.len(), 1);
    let text = write::write(&made.module);
    assert!(text.contains("stablehlo.custom_call @gradus_host(%arg0) {api_version = 4 : i32, backend_config = {id = 0 : i64}, has_side_effect = false} : (tensor<f32>) -> tensor<f32>"), "{text}");
}

/// Operations of a user's: one says what it is, one its scalar form, one nothing.
mod own {
    use gradus_core::primitives::{
        Batch, Batched, Derivative, Foreign, Infer, Jvp, Outputs, Primitive, Sample, Transpose, Transposed, Types,
    };
    use gradus_core::scalar::{self, Local, Scalars};
    use gradus_core::{Array, Effects, Result, Type, rules_of};

    macro_rules! operation {
        ($name:ident, $text:literal; $($more:tt)*) => {
            #[derive(Clone, Copy, Debug)]
            pub struct $name;
            impl Primitive for $name {
                rules_of!($text);
                fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
                    Ok(infer.inputs.iter().cloned().collect())
                }
                fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
                    Ok(inputs.iter().map(|x| x * x + 1.0_f64).collect())
                }
                fn jvp(&self, _: &Jvp<'_>) -> Result<Derivative> {
                    Ok(Derivative::Zero)
                }
                fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
                    Ok(Transposed::NotLinear)
                }
                fn batch(&self, _: &Batch<'_>) -> Result<Batched> {
                    Ok(Batched::Missing("nothing"))
                }
                fn effects(&self) -> Effects {
                    Effects::PURE
                }
                fn samples() -> Vec<Sample> {
                    vec![]
                }
                $($more)*
            }
        };
    }

    operation!(Named, "named"; fn stablehlo(&self, _: &[Type]) -> Option<Foreign> {
        Some(Foreign::custom_call("my_kernel").with("has_side_effect", false))
    });
    operation!(Written, "written"; fn scalar(&self, s: &mut Scalars) -> Option<Local> {
        let x = s.operand(0);
        let (ty, square) = (s.ty(x), s.op(scalar::Op::Mul, &[x, x]));
        let one = s.number(ty, 1.0);
        Some(s.op(scalar::Op::Add, &[square, one]))
    });
    operation!(Mute, "mute";);
}

#[test]
fn operations_of_users_say_what_they_are() {
    let x = [Array::from([1.5_f64, -2.0])];
    let named = text_of(&program_of(&Op::new(own::Named), &x));
    assert!(named.contains("%0 = stablehlo.custom_call @my_kernel(%arg0) {api_version = 4 : i32, has_side_effect = false} : (tensor<2xf64>) -> tensor<2xf64>"), "{named}");
    let written = program_of(&Op::new(own::Written), &x);
    assert!(text_of(&written).contains("stablehlo.multiply %arg0, %arg0"), "{}", text_of(&written));
    let have = interpret(&returned(&written, &Export::default()).unwrap(), &x).unwrap();
    assert_eq!(have[0].to_vec::<f64>().unwrap(), [3.25, 5.0]);
    let e = stablehlo_text(&program_of(&Op::new(own::Mute), &x), &Export::default()).unwrap_err().to_string();
    assert!(e.contains("`mute`") && e.contains("`expand`"), "{e}");
}

#[test]
fn functions_of_gradus_are_written_out_where_that_is_asked_for() {
    let exact = Export { accuracy: Accuracy::Gradus, ..Export::default() };
    let mut faults = Vec::new();
    for name in ["exp", "log", "sin", "tanh", "atanh", "log1p", "sinh", "erfc", "cbrt", "atan2"] {
        let entry = BUILT_IN.iter().find(|e| e.name == name).unwrap();
        for sample in (entry.samples)().iter().filter(|s| matches!(s.inputs[0].dtype(), DType::F32 | DType::F64)) {
            let p = program_of(&sample.op, &sample.inputs);
            let again = returned(&p, &exact).unwrap();
            let (want, have) = (interpret(&p, &sample.inputs).unwrap(), interpret(&again, &sample.inputs).unwrap());
            faults.extend(difference(&want, &have, false).map(|d| format!("{name}: {d}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn operations_say_the_users_line_if_asked() {
    let x = Array::spec("f32[3]");
    let traced = gradus_core::trace::trace("f", &[x], gradus_core::Mode::Abstract, |xs| vec![xs[0].sin()]).unwrap();
    let options = Export { locations: true, ..Export::default() };
    let text = stablehlo_text(&traced.program, &options).unwrap();
    assert!(text.contains("tensor<3xf32> loc(\"") && text.contains("export.rs\":"), "{text}");
    assert!(read_one("exported", &text).is_ok());
}

#[test]
fn a_checkpoint_is_kept_apart() {
    let g = "fn g(x0: f32[]) -> f32[] {\n    x1: f32[] = sin x0\n    return x1\n  }";
    let text = format!(
        "fn f(x0: f32[]) -> f32[] {{\n  x1: f32[] = checkpoint{{program={g}, policy=nothing}} x0\n  return x1\n}}"
    );
    let Ok(p) = text.parse::<Program>() else { panic!("{:?}", text.parse::<Program>()) };
    assert!(
        text_of(&p).contains("%0 = stablehlo.optimization_barrier %arg0 : tensor<f32>\n    %1 = call @g(%0)"),
        "{}",
        text_of(&p)
    );
}

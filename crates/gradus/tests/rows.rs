//! The promises of staging, one test or more for each row of the table of features.

use std::sync::atomic::{AtomicUsize, Ordering};

use gradus::cache::{ExecutableStats, executable_stats};
use gradus::prelude::*;

fn f(x: &Array) -> Array {
    (x * x).sin()
}

#[test]
fn row_t1_a_function_is_captured_as_a_typed_program() -> Result<()> {
    let program = jit(f).trace(&Array::spec("f64[3]"))?.program().clone();
    let text = "fn f(x0: f64[3]) -> f64[3] {\n  x1: f64[3] = mul x0 x0\n  x2: f64[3] = sin x1\n  return x2\n}\n";
    assert_eq!(program.to_string(), text);
    assert_eq!(text.parse::<Program>()?, program);
    Ok(())
}

#[test]
fn row_t2_every_phase_is_separate_and_can_be_looked_at() -> Result<()> {
    let phases = jit(grad(f)).phases(&Array::from(1.5_f64))?;
    let names: Vec<&str> = phases.iter().map(|p| p.name).collect();
    let wanted = [
        "specialize",
        "trace",
        "differentiate",
        "partially evaluate",
        "transpose",
        "optimize",
        "inline",
        "simplify",
        "dead code",
        "checkpoints",
        "fission",
        "layout",
        "loops",
        "steps",
        "again",
        "boxes",
        "sum by rows",
        "expand",
        "strength",
        "dead code",
        "contract",
        "lower",
        "plan memory",
        "generate code",
        "compile",
        "execute",
    ];
    assert_eq!(names, wanted);
    for optimized in &phases[5..21] {
        assert!(optimized.equations > 0 && optimized.bytes > 0);
        assert!(optimized.text.parse::<Program>().is_ok());
    }
    assert!(phases[21].text.contains("main grad_f"), "{}", phases[21].text);
    assert!(phases[22].text.contains("arena"));
    assert!(phases[25].text.contains("f64[]"));
    Ok(())
}

#[test]
fn row_t2_the_command_line_shows_the_phases() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let run = |arguments: &[&str], input: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_gradus"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    let program = "fn f(x0: f64[]) -> f64[] {\n  x1: f64[] = sin x0\n  return x1\n}\n";
    let (ok, out, _) = run(&["phases", "-", "--vjp"], program);
    assert!(ok);
    for name in ["== parse", "== differentiate", "== partially evaluate", "== transpose", "== optimize", "== compile"] {
        assert!(out.contains(name), "{name}\n{out}");
    }
    let (ok, _, err) = run(&["phases", "-"], "fn f(x0: f64[]) -> f64[] {\n  x1: f64[] = sine x0\n");
    assert!(!ok && err.contains("sine") && err.contains("line 2"), "{err}");
    assert!(run(&[], "").2.contains("usage"));
}

#[test]
fn row_t3_a_tracer_has_an_identity_and_a_type_but_no_number() -> Result<()> {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let s = seen.clone();
    let g = jit(move |x: &Array| {
        let y = x * x;
        *s.lock().unwrap() = format!("{y:?} {y}");
        y
    });
    g(&Array::from([1.0_f64, 2.0, 3.0])).to_vec::<f64>()?;
    assert_eq!(*seen.lock().unwrap(), "Tracer(x1: f64[3]) Tracer(x1: f64[3])");
    Ok(())
}

fn absolute(x: &Array) -> Array {
    match x.item::<f64>() {
        Ok(v) if v > 0.0 => x * 1.0_f64,
        _ => -x,
    }
}

#[test]
fn row_t4_concrete_tracing_guards_what_it_read() -> Result<()> {
    let g = jit(absolute).mode(Mode::Concrete);
    assert_eq!(g(&Array::from(3.0_f64)).item::<f64>()?, 3.0);
    assert_eq!(g(&Array::from(-3.0_f64)).item::<f64>()?, 3.0);
    assert_eq!(g.stats().traces, 2);
    // Each way through is kept; a value that was read is a guard, so 4.0 is another trace.
    assert_eq!(g(&Array::from(3.0_f64)).item::<f64>()?, 3.0);
    assert_eq!((g.stats().traces, g.stats().hits), (2, 1));
    assert_eq!(g(&Array::from(4.0_f64)).item::<f64>()?, 4.0);
    assert_eq!(g.stats().traces, 3);
    let why = g.explain(&Array::from(5.0_f64)).to_string();
    assert!(why.contains("rows.rs:") && why.contains("read at"), "{why}");
    Ok(())
}

#[test]
fn row_t4_a_guard_on_a_comparison_serves_all_values_on_its_side() -> Result<()> {
    let g = jit(|x: &Array| if x.gt(0.0_f64).item::<bool>().unwrap_or(false) { x * 2.0_f64 } else { -x })
        .mode(Mode::Concrete);
    for v in [1.0, 2.0, 3.0] {
        assert_eq!(g(&Array::from(v)).item::<f64>()?, 2.0 * v);
        assert_eq!(g(&Array::from(-v)).item::<f64>()?, v);
    }
    assert_eq!((g.stats().traces, g.stats().hits), (2, 4));
    Ok(())
}

#[test]
fn row_t4_abstract_tracing_refuses_the_same_code() {
    let e = jit(absolute)(&Array::from(3.0_f64)).item::<f64>().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotConcrete);
    let text = e.to_string();
    assert!(text.contains("Tracer(x0: f64[])") && text.contains("rows.rs:") && text.contains("`cond`"), "{text}");
}

#[test]
fn row_t5_eager_and_staged_give_the_same_numbers() -> Result<()> {
    let x = Array::from([0.5_f64, -1.5]);
    assert_eq!(f(&x).to_vec::<f64>()?, jit(f)(&x).to_vec::<f64>()?);
    let loss = |x: &Array| f(x).sum();
    let tape = grad(loss);
    let stored = jit(grad(loss));
    for _ in 0..3 {
        assert_eq!(tape(&x).to_vec::<f64>()?, stored(&x).to_vec::<f64>()?);
    }
    assert_eq!((tape.stats().traces, tape.stats().compiles), (3, 0));
    assert_eq!((stored.stats().traces, stored.stats().compiles, stored.stats().hits), (1, 1, 2));
    // On values, a host branch is taken.
    assert_eq!(grad(absolute)(&Array::from(-2.0_f64)).item::<f64>()?, -1.0);
    Ok(())
}

fn power(x: &Array, n: &Static<u32>) -> Array {
    let mut y = Array::from(1.0_f64);
    for _ in 0..**n {
        y = &y * x;
    }
    y
}

fn normalize(x: &Array, on: &Static<bool>) -> Array {
    let x = if **on { x / x.norm() } else { x.clone() };
    &x * &x
}

#[test]
fn row_t6_what_is_static_is_consumed_while_tracing() -> Result<()> {
    let p = jit(power);
    assert_eq!(p.trace(&Array::spec("f64[]"), &Static(3))?.program().count("mul"), 3);
    let n = jit(normalize);
    let off = n.trace(&Array::spec("f64[4]"), &Static(false))?.program().clone();
    assert_eq!((off.equations().len(), off.count("mul")), (1, 1));
    assert!(n.trace(&Array::spec("f64[4]"), &Static(true))?.program().count("div") == 1);
    for (v, want) in [(2, 9.0), (3, 27.0), (2, 9.0)] {
        assert_eq!(p(&Array::from(3.0_f64), &Static(v)).item::<f64>()?, want);
    }
    assert_eq!((p.stats().entries, p.stats().hits), (2, 1));
    Ok(())
}

#[test]
fn row_t7_derivatives_leave_no_zeros_behind() -> Result<()> {
    let p = jit(|x: &Array| x * 3.0_f64).trace(&Array::spec("f64[]"))?.program().clone();
    let (d, _) = gradus::extend::transform::jvp(&p, &[true])?;
    let d = gradus::extend::optimize::optimize(&d)?;
    assert!(d.to_string().contains("mul x1 3.0:f64[]"), "{d}");
    assert_eq!(d.equations().len(), 2, "{d}");
    // An argument without a tangent costs nothing: only x1 is active here.
    let two =
        jit(|x: &Array, y: &Array| x.sin() * y).trace(&Array::spec("f64[]"), &Array::spec("f64[]"))?.program().clone();
    let (d, _) = gradus::extend::transform::jvp(&two, &[false, true])?;
    assert_eq!((d.count("cos"), d.count("add"), d.inputs().len()), (0, 0, 3), "{d}");
    // Known and unknown are split: what does not depend on the unknown input is computed early.
    let split = gradus::extend::transform::partial_eval(&two, &[true, false])?;
    assert_eq!((split.known.count("sin"), split.unknown.count("sin"), split.residuals.len()), (1, 0, 1));
    Ok(())
}

#[derive(Clone, Tree)]
struct Model {
    weight: Array,
    scale: Num,
    #[tree(skip)]
    name: &'static str,
}

fn model() -> Model {
    Model { weight: Array::from([1.0_f64, 2.0]), scale: Num::from(3.0_f64), name: "first" }
}

fn apply(m: &Model) -> Array {
    let y = (&m.weight * &m.scale).sum();
    if m.name == "first" { y } else { -y }
}

#[test]
fn row_t8_a_frozen_value_is_part_of_the_key() -> Result<()> {
    let g = jit(apply);
    assert_eq!(g(&model()).item::<f64>()?, 9.0);
    assert_eq!(g(&Model { scale: Num::from(4.0_f64), ..model() }).item::<f64>()?, 12.0);
    assert_eq!(g(&Model { name: "second", ..model() }).item::<f64>()?, -9.0);
    assert_eq!(g(&model()).item::<f64>()?, 9.0);
    assert_eq!((g.stats().traces, g.stats().hits), (3, 1));
    // Zero and minus zero are different frozen values, though equal as numbers.
    let scaled = jit(|m: &Model| &m.weight * &m.scale);
    for zero in [0.0_f64, -0.0] {
        let signs = scaled(&Model { scale: Num::from(zero), ..model() }).to_vec::<f64>()?;
        assert!(signs.iter().all(|v| v.to_bits() == zero.to_bits()));
    }

    let compiled = g.compile(&model())?;
    let e = compiled.call(&Model { name: "second", ..model() }).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::Frozen);
    let text = e.to_string();
    assert!(text.contains("argument 0.name") && text.contains("\"first\"") && text.contains("\"second\""), "{text}");
    let e = compiled.call(&Model { weight: Array::from([1.0_f64]), ..model() }).err().unwrap().to_string();
    assert!(e.contains("argument 0.weight") && e.contains("f64[2]") && e.contains("f64[1]"), "{e}");
    Ok(())
}

#[test]
fn row_t9_numbers_are_frozen_or_tracked_by_choice() -> Result<()> {
    let inputs = |m: Model| jit(apply).compile(&m).map(|c| c.program().inputs().len());
    assert_eq!(inputs(model())?, 1);
    assert_eq!(inputs(model().track_numbers(TrackNumbers::All))?, 2);
    assert_eq!(inputs(model().track_numbers(TrackNumbers::Only(DType::F64)))?, 2);
    assert_eq!(inputs(model().track_numbers(TrackNumbers::Only(DType::F32)))?, 1);
    assert_eq!(inputs(model().track_numbers(TrackNumbers::All).track_numbers(TrackNumbers::None))?, 1);
    let g = jit(apply);
    for v in [3.0, 4.0, 5.0] {
        let m = Model { scale: Num::from(v), ..model() }.track_numbers(TrackNumbers::All);
        assert_eq!(g(&m).item::<f64>()?, 3.0 * v);
    }
    assert_eq!(g.stats().traces, 1);
    Ok(())
}

#[test]
fn row_t10_captured_arrays_are_hidden_inputs_and_share_code() -> Result<()> {
    let scaled = |by: f64| {
        let weights = Array::from((0..100).map(|i| by * i as f64).collect::<Vec<_>>());
        jit(move |x: &Array| (x * &weights).sum())
    };
    let (a, b) = (scaled(1.0), scaled(2.0));
    let x = Array::ones::<f64>([100]);
    assert_eq!(a(&x).item::<f64>()?, 4950.0);
    assert_eq!(b(&x).item::<f64>()?, 9900.0);
    let traced = a.trace(&x)?;
    assert_eq!((traced.program().inputs().len(), traced.captures().len()), (2, 1));
    assert_eq!(traced.captures()[0].shape(), [100]);
    assert_eq!((a.stats().compiles, b.stats().compiles, b.stats().shared), (1, 0, 1));
    // A small one is a constant of the program.
    let three = Array::from([1.0_f64, 2.0, 3.0]);
    assert_eq!(jit(move |x: &Array| x * &three).trace(&Array::spec("f64[3]"))?.captures().len(), 0);
    Ok(())
}

#[test]
fn row_s1_a_miss_says_which_part_of_the_key_differed() -> Result<()> {
    let g = jit(|w: &Array, batch: &Array| batch.dot(w));
    let w = Array::ones::<f32>([128]);
    let first = g.explain(&w, &Array::ones::<f32>([32, 128]));
    assert!(!first.is_hit() && first.differences().is_empty());
    g(&w, &Array::ones::<f32>([32, 128])).to_vec::<f32>()?;
    assert!(g.explain(&w, &Array::spec("f32[32,128]")).is_hit());
    let miss = g.explain(&w, &Array::ones::<f32>([64, 128]));
    assert_eq!(miss.differences().len(), 1);
    let d = &miss.differences()[0];
    assert_eq!((d.path(), d.before(), d.now()), ("argument 1", Some("f32[32,128]"), Some("f32[64,128]")));
    let text = miss.to_string();
    for component in
        ["argument 1: f32[32,128] → f32[64,128]", "jit(", "Abstract", "backend cpu", "device cpu", "layout"]
    {
        assert!(text.contains(component), "{component}\n{text}");
    }
    // Structure is part of the key too.
    let sum = jit(|xs: &Vec<Array>| xs.iter().fold(Array::from(0.0_f64), |s, x| s + x));
    sum(&vec![Array::from(1.0_f64); 2]).item::<f64>()?;
    let text = sum.explain(&vec![Array::from(1.0_f64); 3]).to_string();
    assert!(text.contains("len 2 → len 3"), "{text}");
    // Explaining neither traces nor counts.
    assert_eq!((sum.stats().traces, sum.stats().misses), (1, 1));
    Ok(())
}

#[test]
fn row_s3_caches_are_bounded_counted_and_cleared() -> Result<()> {
    let roomy = jit(power);
    for n in 0..20 {
        roomy(&Array::from(1.0_f64), &Static(n)).item::<f64>()?;
    }
    let s = roomy.stats();
    assert_eq!((s.entries, s.evictions, s.traces), (20, 0, 20));
    let tight = jit(power).cache_limit(s.bytes / 4);
    for n in 0..20 {
        tight(&Array::from(1.0_f64), &Static(n)).item::<f64>()?;
    }
    let t = tight.stats();
    assert!(t.entries < 20 && t.evictions == 20 - t.entries as u64 && t.bytes <= s.bytes / 4, "{t:?}");
    // The most recent is kept, the oldest is gone.
    assert!(tight.explain(&Array::from(1.0_f64), &Static(19)).is_hit());
    assert!(!tight.explain(&Array::from(1.0_f64), &Static(0)).is_hit());
    roomy.clear();
    assert_eq!((roomy.stats().entries, roomy.stats().bytes), (0, 0));
    assert_eq!(roomy(&Array::from(2.0_f64), &Static(3)).item::<f64>()?, 8.0);
    let ExecutableStats { entries, bytes, .. } = executable_stats();
    assert!(entries > 0 && bytes > 0);
    Ok(())
}

#[test]
fn row_s5_the_dtype_follows_the_rust_type() -> Result<()> {
    assert_eq!(Array::from(1.0_f64).dtype(), DType::F64);
    assert_eq!((Array::from(1.0_f32) * 2.0_f64).dtype(), DType::F32);
    assert_eq!((Array::from(1.0_f64) * Array::from(2.0_f32)).dtype(), DType::F64);
    assert_eq!((Array::from(1_i8) + Array::from(2_u8)).dtype(), DType::I16);
    // Nothing is narrowed: what would lose digits is an error.
    for bad in [
        Array::from(1_i64) + Array::from(1.0_f64),
        Array::from(1_u64) + Array::from(1_i64),
        Array::from(1_i32) * 0.5_f64,
        Array::from(1_i8) + 300,
        Array::from(1.0_f32) + 16_777_217,
        Array::from(1.0_f64.f16()) * 1e9_f64,
    ] {
        assert_eq!(bad.error().map(|e| e.kind()), Some(ErrorKind::DType), "{bad:?}");
    }
    for (text, dtype) in
        [("bool[]", DType::Bool), ("bf16[2]", DType::BF16), ("c64[1]", DType::C64), ("u16[]", DType::U16)]
    {
        assert_eq!(Array::spec(text).dtype(), dtype);
    }
    Ok(())
}

trait F16Literal {
    fn f16(self) -> f16;
}

impl F16Literal for f64 {
    fn f16(self) -> f16 {
        f16::from_f64(self)
    }
}

static ESCAPED: std::sync::Mutex<Option<Array>> = std::sync::Mutex::new(None);

#[test]
fn row_e5_an_escaped_tracer_is_found_at_its_first_use() -> Result<()> {
    let g = jit(|x: &Array| {
        let y = x * 2.0_f64;
        *ESCAPED.lock().unwrap() = Some(y.clone());
        y
    });
    g(&Array::from(1.0_f64)).item::<f64>()?;
    let leaked = ESCAPED.lock().unwrap().take().unwrap();
    let e = (&leaked + 1.0_f64).item::<f64>().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::EscapedTracer);
    // Both places: where it was used, and where it was made.
    assert_eq!(e.to_string().matches("rows.rs:").count(), 2, "{e}");
    assert_eq!(leaked.item::<f64>().unwrap_err().kind(), ErrorKind::EscapedTracer);
    // Inside another trace, as an argument of a staged call, and as its result.
    let stale = leaked.clone();
    let inside = jit(move |x: &Array| x + &stale);
    assert_eq!(inside(&Array::from(1.0_f64)).item::<f64>().unwrap_err().kind(), ErrorKind::EscapedTracer);
    assert_eq!(g(&leaked).item::<f64>().unwrap_err().kind(), ErrorKind::EscapedTracer);
    Ok(())
}

#[test]
fn row_e5_a_tracer_sent_to_another_thread_is_found() -> Result<()> {
    let g = jit(|x: &Array| {
        let x = x.clone();
        std::thread::spawn(move || &x + 1.0_f64).join().unwrap()
    });
    let e = g(&Array::from(1.0_f64)).item::<f64>().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::EscapedTracer);
    assert!(e.to_string().contains("another thread"), "{e}");
    Ok(())
}

#[test]
fn row_e4_errors_are_values_and_nothing_panics() -> Result<()> {
    let bad = Array::from([1.0_f64, 2.0]) + Array::from([1.0_f64, 2.0, 3.0]);
    let e = bad.sin().sum().item::<f64>().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Shape);
    assert!(e.place().file().is_some_and(|f| f.ends_with("rows.rs")));
    // It passes through staged calls, with the first place kept.
    let g = jit(|x: &Array| x.exp());
    assert_eq!(g(&bad).item::<f64>().unwrap_err(), e);
    assert_eq!(g.stats().traces, 0);
    // An error inside a staged function comes out of the call; other results of the same call carry it too.
    let h = jit(|x: &Array, y: &Array| (x + y, x.sin()));
    let (sum, sin) = h(&Array::from([1.0_f64]), &Array::from([1.0_f64, 2.0]));
    assert!(sum.to_vec::<f64>().is_ok() && sin.to_vec::<f64>().is_ok());
    let (sum, sin) = h(&Array::from([1.0_f64, 2.0]), &Array::from([1.0_f64, 2.0, 3.0]));
    assert_eq!(sum.to_vec::<f64>().unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(sin.to_vec::<f64>().unwrap_err().kind(), ErrorKind::Shape);
    Ok(())
}

#[test]
fn a_panic_in_the_users_function_leaves_no_trace_behind() -> Result<()> {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let g = jit(|x: &Array| {
        assert!(CALLS.fetch_add(1, Ordering::SeqCst) > 0, "the first call panics");
        x + 1.0_f64
    });
    let x = Array::from(1.0_f64);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| g(&x))).is_err());
    assert!(!gradus::extend::trace::is_tracing());
    assert_eq!((&x * 2.0_f64).item::<f64>()?, 2.0);
    assert_eq!(g(&x).item::<f64>()?, 2.0);
    Ok(())
}

#[test]
fn row_a1_structs_enums_and_containers_are_arguments_and_results() -> Result<()> {
    use std::collections::BTreeMap;

    #[derive(Clone, Tree)]
    enum Step {
        Scale { by: Array },
        Shift(Array),
        Nothing,
    }
    let run = jit(|steps: &Vec<Step>, x: &Array| {
        let mut y = x.clone();
        let mut log = BTreeMap::new();
        for (i, s) in steps.iter().enumerate() {
            y = match s {
                Step::Scale { by } => &y * by,
                Step::Shift(by) => &y + by,
                Step::Nothing => y,
            };
            log.insert(format!("step{i}"), y.clone());
        }
        (y, log, Some(x.clone()))
    });
    let steps = vec![Step::Scale { by: Array::from(3.0_f64) }, Step::Nothing, Step::Shift(Array::from(1.0_f64))];
    let (y, log, same) = run(&steps, &Array::from(2.0_f64));
    assert_eq!(y.item::<f64>()?, 7.0);
    assert_eq!(log["step0"].item::<f64>()?, 6.0);
    assert_eq!(same.unwrap().item::<f64>()?, 2.0);
    // Another variant is another key.
    run(&vec![Step::Nothing; 3], &Array::from(2.0_f64)).0.item::<f64>()?;
    assert_eq!(run.stats().traces, 2);

    let loss = |m: &Model, x: &Array| (x * &m.weight).sum() * &m.scale;
    let (l, g): (Array, Model) = jit(value_and_grad(loss))(&model(), &Array::from([4.0_f64, 5.0]));
    assert_eq!(l.item::<f64>()?, 42.0);
    assert_eq!(g.weight.to_vec::<f64>()?, [12.0, 15.0]);
    assert_eq!(g.name, "first");
    Ok(())
}

#[test]
fn functions_of_one_to_eight_arguments_can_be_staged_and_staged_again() -> Result<()> {
    type A = Array;
    let one = |v: f64| Array::from(v);
    let six = jit(|a: &A, b: &A, c: &A, d: &A, e: &A, g: &A| a + b + c + d + e + g);
    assert_eq!(six(&one(1.0), &one(2.0), &one(3.0), &one(4.0), &one(5.0), &one(6.0)).item::<f64>()?, 21.0);
    let eight = jit(jit(|a: &A, b: &A, c: &A, d: &A, e: &A, g: &A, h: &A, i: &A| a + b + c + d + e + g + h + i));
    let v = one(1.0);
    assert_eq!(eight(&v, &v, &v, &v, &v, &v, &v, &v).item::<f64>()?, 8.0);
    assert!(eight.trace(&v, &v, &v, &v, &v, &v, &v, &v)?.program().to_string().contains("call{program=fn"));
    Ok(())
}

#[test]
fn a_staged_function_is_called_from_many_threads() -> Result<()> {
    let g = std::sync::Arc::new(jit(|x: &Array| (x * x).sum()));
    let threads: Vec<_> = (0..4)
        .map(|t| {
            let g = g.clone();
            std::thread::spawn(move || {
                (1..50).map(|n| g(&Array::from(vec![t as f64; n])).item::<f64>().unwrap()).sum::<f64>()
            })
        })
        .collect();
    for (t, thread) in threads.into_iter().enumerate() {
        assert_eq!(thread.join().unwrap(), (1..50).sum::<i32>() as f64 * (t * t) as f64);
    }
    Ok(())
}

#[test]
fn a_cached_program_that_captured_an_outer_value_is_not_used_after_its_trace() -> Result<()> {
    let outer = jit(|x: &Array| {
        let captured = x.clone();
        let inner = jit(move |y: &Array| y * &captured);
        inner(&Array::from(2.0_f64)) + inner(&Array::from(3.0_f64))
    });
    assert_eq!(outer(&Array::from(5.0_f64)).item::<f64>()?, 25.0);
    assert_eq!(outer(&Array::from([1.0_f64, 2.0])).to_vec::<f64>()?, [5.0, 10.0]);
    Ok(())
}

#[test]
fn an_empty_array_with_huge_dimensions_has_no_elements() -> Result<()> {
    let x = Array::zeros::<f64>([1_usize << 40, 1 << 40, 0]);
    assert_eq!(x.to_vec::<f64>()?, [0.0; 0]);
    assert_eq!((x + 1.0_f64).to_vec::<f64>()?, [0.0; 0]);
    Ok(())
}

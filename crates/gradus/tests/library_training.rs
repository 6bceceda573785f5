//! Training: trees of parameters, optimizers against Optax, schedules, averages, and a step as one pass over the parameters.
//!
//! `scripts/reference/optim.py` computed the numbers in `data/optim.jsonl` and `data/schedules.jsonl`.

use std::collections::BTreeMap;

use gradus::prelude::*;
use serde_json::Value;

fn close(a: &Array, b: &[f64]) {
    let a = a.to_vec::<f64>().unwrap();
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= 1e-9 * (1.0 + y.abs()), "{a:?} {b:?}");
    }
}

#[derive(Tree, Clone, Debug)]
struct Parameters {
    w: Array,
    b: Array,
    /// Not trained, and not lost.
    steps: Array,
}

fn start() -> Parameters {
    Parameters {
        w: Array::from([0.3_f64, 1.0, -1.0, 2.0]),
        b: Array::from([[0.2_f64, -0.4], [1.0, 0.7]]),
        steps: Array::from(7_i32),
    }
}

fn loss(p: &Parameters) -> Array {
    let target = Array::from([1.0_f64, -2.0, 0.5, 3.0]);
    let stiffness = Array::from([1.0_f64, 0.1, 2.0, 0.5]);
    let away = (stiffness * (&p.w - target).square()).sum();
    away + p.b.sin().sum() * 0.5_f64 + p.w.sum() * p.b.square().sum() * 0.1_f64
}

/// The lines of a file of references by their names.
fn references(file: &str) -> BTreeMap<String, Value> {
    let path = format!("{}/tests/data/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let line = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        (value["name"].as_str().unwrap().to_string(), value)
    };
    text.lines().map(line).collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// Holds the steps of an optimizer against a reference, staged and not.
fn follows<R: optim::Rule>(all: &mut BTreeMap<String, Value>, name: &str, optimizer: optim::Optimizer<R>) {
    let reference = all.remove(name).unwrap_or_else(|| panic!("no reference {name}"));
    let (mut p, mut state) = (start(), optimizer.init(&start()));
    let eager = optimizer.step(&p, &grad(loss)(&p), &state).0;
    let step = jit({
        let optimizer = optimizer.clone();
        move |p: &Parameters, s: &optim::State<Parameters>| optimizer.step(p, &grad(loss)(p), s)
    });
    for n in 1..=100 {
        (p, state) = step(&p, &state);
        if let Some(wanted) = reference["steps"].get(n.to_string()) {
            for (have, want) in [(&p.w, &wanted["w"]), (&p.b, &wanted["b"])] {
                for (x, y) in have.to_vec::<f64>().unwrap().iter().zip(numbers(want)) {
                    assert!((x - y).abs() < 1e-9, "{name} after {n} steps: {x} and {y}");
                }
            }
        }
        if n == 1 {
            assert!(tree::all_close(&eager, &p, 1e-14).unwrap(), "{name}: eager and staged");
        }
    }
    assert_eq!(p.steps.item::<i32>().unwrap(), 7);
    assert_eq!(state.count().item::<i64>().unwrap(), 100);
    assert_eq!((step.stats().traces, step.stats().misses), (1, 1), "{name}");
}

#[test]
fn row_a2_optimizers_go_where_optax_goes() {
    let mut all = references("optim.jsonl");
    let each = &mut all;
    follows(each, "sgd", optim::sgd(0.05));
    follows(each, "sgd_momentum", optim::sgd(0.02).momentum(0.9));
    follows(each, "sgd_nesterov", optim::sgd(0.02).momentum(0.9).nesterov());
    follows(each, "adam", optim::adam(0.03));
    follows(each, "adam_options", optim::adam(0.03).betas(0.8, 0.95).epsilon(1e-4));
    follows(each, "nadam", optim::adam(0.03).nesterov());
    follows(each, "adamw", optim::adamw(0.03).weight_decay(0.1));
    follows(each, "adamw_mask", optim::adamw(0.03).weight_decay(0.1).decay_only(|path| path == "w"));
    follows(each, "lion", optim::lion(0.013));
    follows(each, "rmsprop", optim::rmsprop(0.01));
    follows(each, "rmsprop_centered", optim::rmsprop(0.01).centered());
    follows(each, "rmsprop_momentum", optim::rmsprop(0.003).momentum(0.9).nesterov());
    follows(each, "adagrad", optim::adagrad(0.3));
    follows(each, "adam_clip_norm", optim::adam(0.03).clip_norm(0.5));
    follows(each, "sgd_clip", optim::sgd(0.05).clip(0.5));
    follows(each, "sgd_cosine", optim::sgd(optim::Schedule::cosine(0.1, 80)));
    follows(each, "adam_warmup", optim::adam(optim::Schedule::cosine_to(0.1, 0.01, 80).warmup(10)));
    assert!(all.is_empty(), "references without a test: {:?}", all.keys());
}

#[test]
fn schedules_give_the_rates_of_optax() {
    use optim::Schedule;
    let mut all = references("schedules.jsonl");
    let each = [
        ("linear", Schedule::linear(0.3, 0.1, 50)),
        ("polynomial", Schedule::polynomial(0.3, 0.1, 2.5, 50)),
        ("cosine", Schedule::cosine(0.3, 50)),
        ("cosine_to", Schedule::cosine_to(0.3, 0.03, 50)),
        ("exponential", Schedule::exponential(0.3, 0.7, 10)),
        ("staircase", Schedule::staircase(0.3, 0.7, 10)),
        ("piecewise", Schedule::piecewise(0.3, [(10, 0.5), (50, 0.1)])),
        ("warmup", Schedule::cosine_to(0.3, 0.03, 50).warmup(10)),
    ];
    for (name, schedule) in each {
        let reference = all.remove(name).unwrap();
        let rates = jit(vmap(move |n: &Array| schedule.at(n)));
        let counts: Vec<i64> = numbers(&reference["counts"]).iter().map(|n| *n as i64).collect();
        let found = rates(&Array::from(counts)).to_vec::<f64>().unwrap();
        for (x, y) in found.iter().zip(numbers(&reference["rates"])) {
            assert!((x - y).abs() < 1e-15, "{name}: {found:?} {}", reference["rates"]);
        }
    }
    assert!(all.is_empty());
}

#[test]
fn a_step_is_one_pass_over_the_parameters() -> Result<()> {
    let adamw = optim::adamw(optim::Schedule::cosine(1e-3, 1000));
    let w = Array::zeros::<f32>([300, 40]);
    let state = adamw.init(&w);
    let step = jit(move |w: &Array, g: &Array, s: &optim::State<Array>| adamw.step(w, g, s));
    let phases = step.phases(&w, &w, &state)?;
    let lowered = phases.iter().find(|p| p.name == "lower").expect("the compiler lowers it");
    let kernels = lowered.text.lines().filter(|l| l.trim_start().starts_with("kernel ")).count();
    assert_eq!(kernels, 1, "{}", lowered.text);
    Ok(())
}

#[test]
fn a_step_in_a_loop_is_the_same_step() -> Result<()> {
    let adam = optim::adam(0.03);
    let (mut p, mut state) = (start(), adam.init(&start()));
    let looped = jit({
        let adam = adam.clone();
        move |p: &Parameters| {
            let adam = adam.clone();
            let step =
                move |_: &Array, (p, s): &(Parameters, optim::State<Parameters>)| adam.step(p, &grad(loss)(p), s);
            fori_loop(0, 20, step, (p.clone(), optim::adam(0.03).init(p))).0
        }
    });
    for _ in 0..20 {
        (p, state) = adam.step(&p, &grad(loss)(&p), &state);
    }
    assert!(tree::all_close(&looped(&start()), &p, 1e-12)?);
    assert_eq!(state.count().item::<i64>()?, 20);
    Ok(())
}

#[test]
fn half_and_single_parameters_keep_their_dtype() -> Result<()> {
    for dtype in [DType::F16, DType::BF16, DType::F32] {
        let w = Array::from([1.0_f64, -2.0]).cast(dtype);
        let adamw = optim::adamw(0.1).clip_norm(1.0);
        let (next, state) = adamw.step(&w, &w, &adamw.init(&w));
        assert_eq!([next.dtype(), state.moments()[1].dtype()], [dtype, dtype]);
        // Whatever the gradient, the first step of Adam is as long as the rate.
        let moved = next.cast(DType::F64).to_vec::<f64>()?;
        assert!((moved[0] - 0.9).abs() < 5e-3 && (moved[1] + 1.9).abs() < 5e-3, "{moved:?}");
    }
    Ok(())
}

#[test]
fn states_and_gradients_that_do_not_fit_are_named() {
    let (adam, sgd, p) = (optim::adam(0.1), optim::sgd(0.1), start());
    let says = |a: &Parameters, parts: &[&str]| {
        let e = a.w.error().expect("an error").to_string();
        assert!(parts.iter().all(|part| e.contains(part)), "{e}");
        assert!(e.contains("library_training.rs"), "{e}");
    };
    says(&adam.step(&p, &p, &sgd.init(&p)).0, &["0 trees of moments", "has 2", "`init`"]);
    let other = Parameters { w: Array::from([1.0_f64]), ..p.clone() };
    says(&sgd.step(&p, &other, &sgd.init(&p)).0, &["`w`", "f64[4]", "f64[1]"]);
    let maps = |names: &[&str]| names.iter().map(|n| (n.to_string(), Array::from(1.0_f64))).collect::<BTreeMap<_, _>>();
    let (a, b) = (maps(&["x", "y"]), maps(&["x"]));
    let e = sgd.step(&a, &b, &sgd.init(&a)).0["x"].error().unwrap().to_string();
    assert!(e.contains("only the first has an array `y`"), "{e}");
}

/// A state of another shape or dtype would broadcast, and change the parameters' type without a word.
#[test]
fn foreign_states_are_refused_by_every_optimizer() {
    fn refused<R: optim::Rule>(optimizer: optim::Optimizer<R>) {
        let p = (Array::from([1.0_f32]), Array::from(2.0_f32));
        for (other, ty) in [
            ((Array::from([1.0_f32, 2.0, 3.0]), p.1.clone()), "f32[3]"),
            ((Array::from([1.0_f64]), p.1.clone()), "f64[1]"),
            ((Array::from(1.0_f32), p.1.clone()), "f32[]"),
        ] {
            let (next, state) = optimizer.step(&p, &p, &optimizer.init(&other));
            let e = next.0.error().unwrap_or_else(|| panic!("a state {ty} is taken: {next:?}")).to_string();
            let parts = ["parameter `0`", "f32[1]", ty, "`init`", "library_training.rs"];
            assert!(parts.iter().all(|part| e.contains(part)), "{e}");
            assert!(state.count().error().is_some());
        }
    }
    refused(optim::sgd(0.1).momentum(0.9));
    refused(optim::adam(0.1));
    refused(optim::adamw(0.1));
    refused(optim::lion(0.1));
    refused(optim::rmsprop(0.1));
    refused(optim::adagrad(0.1));
    let (ema, x) = (optim::ema(0.9), Array::from([1.0_f32]));
    for other in [Array::from([1.0_f32, 2.0]), Array::from([1.0_f64])] {
        let e = ema.step(&x, &ema.init(&other)).0.error().expect("an error").to_string();
        assert!(e.contains("f32[1]") && e.contains("library_training.rs"), "{e}");
        assert!(e.contains(&other.ty().unwrap().to_string()), "{e}");
    }
    let f = |x: &Array| x.square().sum();
    let state = optim::lbfgs().init(f, &Array::from([1.0_f64]));
    let e = optim::lbfgs().step(f, &x, &state).0.error().expect("an error").to_string();
    assert!(e.contains("f64") && e.contains("f32") && e.contains("library_training.rs"), "{e}");
}

/// Where there is no number, nothing was found.
#[test]
fn what_is_not_finite_has_not_converged() -> Result<()> {
    let x = Array::from([-1.0_f64]);
    let ended = |found: optim::Minimum<Array>, what: &str| -> Result<()> {
        assert!(!found.converged.item::<bool>()?, "{what}: {found:?}");
        Ok(())
    };
    ended(optim::lbfgs().minimize(|x: &Array| x.log().sum(), &x), "lbfgs")?;
    ended(jit(|x: &Array| optim::lbfgs().minimize(|x: &Array| x.log().sum(), x))(&x), "lbfgs, staged")?;
    // A value that is none with a slope of zero.
    ended(optim::lbfgs().minimize(|x: &Array| (x * 0.0).sum() + f64::NAN, &x), "a constant NaN")?;
    ended(optim::lbfgs().minimize(|x: &Array| -x.exp().sum(), &Array::from([1.0_f64])), "without a least value")?;
    for method in [
        optim::levenberg_marquardt(),
        optim::levenberg_marquardt().matrix_free(),
        optim::gauss_newton(),
        optim::gauss_newton().matrix_free(),
    ] {
        ended(method.minimize(|x: &Array| x.log(), &x), "NaN residuals")?;
        ended(method.minimize(|x: &Array| x.sqrt() - 1.0, &Array::from([0.0_f64])), "an infinite slope")?;
        ended(method.minimize(|x: &Array| x * 0.0 + f64::NAN, &x), "a constant NaN")?;
    }
    // The system of a step has no solution; where the slope is zero none is needed.
    let flat = |x: &Array| x.sum().expand_dims(0) - 1.0;
    let found = optim::gauss_newton().minimize(flat, &Array::from([0.25_f64, 0.75]));
    assert!(found.converged.item::<bool>()?, "{found:?}");
    Ok(())
}

#[test]
fn trees_are_taken_apart_and_put_together() -> Result<()> {
    let p = start();
    assert_eq!(tree::paths(&p), ["w", "b", "steps"]);
    assert_eq!(tree::paths(&Array::from(1.0_f64)), [""]);
    let floats = (p.w.clone(), p.b.clone());
    let (vector, back) = tree::ravel(&floats);
    assert_eq!(vector.shape(), [8]);
    assert!(tree::all_close(&back.call(&vector), &floats, 0.0)?);
    let e = back.call(&Array::from([1.0_f64])).0.error().unwrap().to_string();
    assert!(e.contains("8 elements"), "{e}");
    // Staged, differentiated, batched.
    let norm = |t: &(Array, Array)| tree::ravel(t).0.square().sum().sqrt();
    assert!(tree::all_close(&jit(norm)(&floats), &tree::global_norm(&floats), 1e-15)?);
    let (g, h) = (jit(grad(norm))(&floats), grad(|t: &(Array, Array)| tree::global_norm(t))(&floats));
    assert!(tree::all_close(&g, &h, 1e-14)?);
    let many = Array::from([[1.0_f64, 2.0], [3.0, 4.0]]);
    let rows = vmap(|x: &Array| tree::dot(&(x.clone(), x.clone()), &(x.clone(), x * 2.0_f64)))(&many);
    assert_eq!(rows.to_vec::<f64>()?, [15.0, 75.0]);
    let mixed = (Array::from([1.5_f32]), Array::from([2.25_f64]));
    let (vector, back) = tree::ravel(&mixed);
    assert_eq!(vector.to_vec::<f64>()?, [1.5, 2.25]);
    assert_eq!(back.call(&vector).0.dtype(), DType::F32);
    let e = tree::ravel(&(Array::from(1_i64), Array::from(1.0_f64))).0.error().unwrap().to_string();
    assert!(e.contains("no dtype holds both"), "{e}");
    let close = |x: f64, y: f64| tree::all_close(&Array::from(x), &Array::from(y), 1e-6);
    assert!(close(f64::INFINITY, f64::INFINITY)? && !close(1.0, f64::INFINITY)? && !close(f64::NAN, f64::NAN)?);
    assert!(tree::all_close(&(Key::new(3), Array::from(true)), &(Key::new(3), Array::from(true)), 0.0)?);
    let e = tree::all_close(&p, &Parameters { b: Array::from(1.0_f32), ..p.clone() }, 0.0).unwrap_err().to_string();
    assert!(e.contains(".b") && e.contains("f64[2,2]") && e.contains("f32[]"), "{e}");
    Ok(())
}

#[test]
fn gradients_are_clipped_and_zero_stays_differentiable() -> Result<()> {
    let clipped = |g: &Array| optim::clip_norm(g, 2.0).square().sum();
    check_grads(clipped, &Array::from([3.0_f64, 4.0]), 2)?;
    check_grads(clipped, &Array::from([0.3_f64, 0.4]), 2)?;
    close(&optim::clip_norm(&Array::from([3.0_f64, 4.0]), 2.0), &[1.2, 1.6]);
    close(&optim::clip_norm(&Array::from([0.0_f64, 0.0]), 2.0), &[0.0, 0.0]);
    close(&optim::clip(&Array::from([3.0_f64, -0.5]), 1.0), &[1.0, -0.5]);
    // As Optax does: one NaN is the whole gradient's.
    let broken = optim::clip_norm(&(Array::from([f64::NAN, 1.0]), Array::from(2.0_f64)), 1.0);
    assert!(broken.0.is_nan().all().item::<bool>()? && broken.1.is_nan().item::<bool>()?, "{broken:?}");
    let halves = optim::clip_norm(&Array::from([300.0_f32, -400.0]).cast(DType::F16), 5.0);
    close(&halves.cast(DType::F64), &[3.0, -4.0]);
    Ok(())
}

fn rosenbrock(x: &Array) -> Array {
    let (a, b) = (x.index(..-1), x.index(1..));
    ((b - a.square()).square() * 100.0_f64 + (1.0_f64 - a).square()).sum()
}

#[test]
fn lbfgs_finds_the_end_of_the_valley() -> Result<()> {
    let start = Array::from([-1.2_f64, 1.0, -0.5, 2.0]);
    let all_at_once = jit(|x: &Array| optim::lbfgs().minimize(rosenbrock, x))(&start);
    assert!(all_at_once.converged.item::<bool>()?);
    assert!(tree::all_close(&all_at_once.point, &Array::ones::<f64>([4]), 1e-6)?, "{:?}", all_at_once);
    let steps = all_at_once.steps.item::<i64>()?;
    assert!(steps < 80, "{steps}");
    // The same steps, one by one, of a tree, staged.
    let method = optim::lbfgs().memory(10);
    let f = |(a, b): &(Array, Array)| rosenbrock(&Array::concatenate([a.clone(), b.clone()], 0));
    let mut x = (start.index(..1), start.index(1..));
    let mut state = method.init(f, &x);
    let step = jit(move |x: &(Array, Array), s: &optim::LbfgsState| method.step(f, x, s));
    let mut last = f64::INFINITY;
    for _ in 0..steps {
        (x, state) = step(&x, &state);
        let value = state.value().item::<f64>()?;
        assert!(value <= last, "{value} after {last}");
        last = value;
    }
    assert!(tree::all_close(&x, &(Array::ones::<f64>([1]), Array::ones::<f64>([3])), 1e-6)?);
    assert_eq!(state.count().item::<i64>()?, steps);
    // A function with an edge of what it is defined for: too long steps give NaN, and are halved.
    let edge = |x: &Array| (x - x.log()).sum();
    let found = optim::lbfgs().minimize(edge, &Array::from([1e-3_f64, 5.0]));
    assert!(tree::all_close(&found.point, &Array::ones::<f64>([2]), 1e-6)?, "{found:?}");
    let cut = optim::lbfgs().steps(3).minimize(rosenbrock, &start);
    assert!(!cut.converged.item::<bool>()? && cut.steps.item::<i64>()? == 3);
    Ok(())
}

/// Points on a damped wave, and the residuals of one.
fn wave(p: &(Array, Array)) -> Array {
    let t = Array::linspace(0.0_f64, 4.0, 40);
    let at = |size: &Array, rates: &Array| size * (-(&t * rates.index(0))).exp() * (&t * rates.index(1)).cos();
    at(&p.0, &p.1) - at(&Array::from(2.0_f64), &Array::from([0.4_f64, 3.0]))
}

#[test]
fn sums_of_squares_with_and_without_a_matrix() -> Result<()> {
    let start = (Array::from(1.5_f64), Array::from([0.1_f64, 2.8]));
    let wanted = (Array::from(2.0_f64), Array::from([0.4_f64, 3.0]));
    for method in [
        optim::levenberg_marquardt(),
        optim::levenberg_marquardt().matrix_free(),
        optim::gauss_newton(),
        optim::gauss_newton().matrix_free(),
    ] {
        let found = jit(move |p: &(Array, Array)| method.minimize(wave, p))(&start);
        assert!(tree::all_close(&found.point, &wanted, 1e-8)?, "{method:?} {found:?}");
        assert!(found.converged.item::<bool>()? && found.value.item::<f64>()? < 1e-16, "{method:?} {found:?}");
        assert!(found.steps.item::<i64>()? < 30, "{method:?} {found:?}");
    }
    // Far away Gauss and Newton promise too much; damping gets there. One parameter does nothing and stays.
    let bend = |p: &Array| Array::stack([(p.index(1) - p.index(0).square()) * 10.0_f64, 1.0_f64 - p.index(0)], 0);
    let found = optim::levenberg_marquardt().minimize(bend, &Array::from([-1.2_f64, 1.0, 7.0]));
    assert!(tree::all_close(&found.point, &Array::from([1.0_f64, 1.0, 7.0]), 1e-8)?, "{found:?}");
    Ok(())
}

#[test]
fn what_cannot_be_minimized_says_so() {
    let says = |found: Array, parts: &[&str]| {
        let e = found.error().expect("an error").to_string();
        assert!(parts.iter().all(|p| e.contains(p)) && e.contains("library_training.rs"), "{e}");
    };
    let x = Array::from([1.0_f64, 2.0]);
    says(optim::lbfgs().minimize(|x: &Array| x.clone(), &x).value, &["one number", "f64[2]"]);
    says(optim::lbfgs().minimize(|x: &Array| x.sum(), &Array::from([1_i32])).point, &["floats", "i32"]);
    says(optim::gauss_newton().minimize(|x: &Array| x.gt(0.0_f64), &x).point, &["residuals", "bool"]);
    let state = optim::lbfgs().init(|x: &Array| x.square().sum(), &x);
    let (next, _) = optim::lbfgs().memory(3).step(|x: &Array| x.square().sum(), &x, &state);
    says(next, &["memory of 3", "`init`"]);
}

//! Properties of every program, checked on thousands of random ones: text, verifier, optimizer, interpreter and
//! transformations must agree with each other.

use gradus_core::optimize::{Exactness, for_execution, optimize};
use gradus_core::primitives::BUILT_IN;
use gradus_core::program::verify;
use gradus_core::testing::{RandomProgram, Recipe, Source, Watcher, canonical, random_array, seeds};
use gradus_core::transform::{jvp, linearize, partial_eval, vjp, vmap};
use gradus_core::{Array, DType, Dim, Program, Scalar, Type, interpret, trace};

/// Says which seed was at work when a check failed.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the failing seed is {}", self.0);
        }
    }
}

fn scalars(a: &Array) -> Vec<Scalar> {
    let c = a.concrete().unwrap();
    (0..c.count()).map(|i| c.scalar_at(i).unwrap()).collect()
}

fn assert_same(a: &[Array], b: &[Array], context: &dyn Fn() -> String) {
    assert_eq!(a.len(), b.len(), "{}", context());
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        assert_eq!(x.ty().unwrap(), y.ty().unwrap(), "output {i}\n{}", context());
        let same = scalars(x).into_iter().zip(scalars(y)).all(|(x, y)| canonical(x) == canonical(y));
        assert!(same, "output {i}: {x:?} is not {y:?}\n{}", context());
    }
}

/// The elements as real numbers: complex ones are two.
fn reals(a: &Array) -> Vec<f64> {
    scalars(a)
        .into_iter()
        .flat_map(|s| match s {
            Scalar::C128(v) => vec![v.re, v.im],
            Scalar::C64(v) => vec![v.re as f64, v.im as f64],
            other => vec![other.to_f64()],
        })
        .collect()
}

fn near(x: f64, y: f64, tolerance: f64) -> bool {
    x == y || (x - y).abs() <= tolerance * (1.0 + x.abs()) || (x.is_nan() && y.is_nan())
}

/// Half of the seeds with symbolic dimensions, half with sums, in all combinations.
fn any(seed: u64) -> RandomProgram {
    let equations = 4 + (seed % 29) as usize;
    RandomProgram::from_recipe(
        seed,
        Recipe { equations, smooth: false, sums: seed & 2 == 0, symbolic: seed & 1 == 1, large: false },
    )
}

/// Programs whose results do not depend on the order of a sum.
fn exact(seed: u64) -> RandomProgram {
    let equations = 4 + (seed % 29) as usize;
    RandomProgram::from_recipe(
        seed,
        Recipe { equations, smooth: false, sums: false, symbolic: seed & 1 == 1, large: false },
    )
}

fn smooth(seed: u64) -> RandomProgram {
    let equations = 2 + (seed % 13) as usize;
    RandomProgram::from_recipe(
        seed,
        Recipe { equations, smooth: true, sums: true, symbolic: seed % 4 == 3, large: false },
    )
}

/// A part of a program with every symbol replaced: the sizes of a part may be those of inputs that it does not take.
fn sized(p: &Program, symbol: usize) -> Program {
    let p = p.map_dims(&|d| d.substitute(&|_| Some(Dim::from(symbol))));
    verify(&p).unwrap();
    p
}

#[test]
fn the_same_seed_gives_the_same_program_and_any_bytes_give_one() {
    for seed in 0..200 {
        let (a, b) = (any(seed), any(seed));
        assert_eq!(a.program, b.program);
        assert_same(&a.inputs, &b.inputs, &|| a.program.to_string());
        let bytes: Vec<u8> = (0..seed).map(|i| (i * 37 + seed * 101) as u8).collect();
        let random = RandomProgram::from_bytes(&bytes);
        verify(&random.program).unwrap();
        interpret(&random.program, &random.inputs).unwrap();
    }
}

#[test]
fn random_programs_use_every_primitive() {
    let mut seen = std::collections::BTreeMap::new();
    let mut equations = 0;
    for seed in seeds(2400) {
        let p = any(seed).program;
        equations += p.equations().len();
        for entry in BUILT_IN.iter() {
            *seen.entry(entry.name).or_insert(0) += p.count(entry.name);
        }
    }
    // What only the derivative of a loop without a limit asks for is seldom made by itself.
    let least = |name: &str| if ["batch_most", "own_step"].contains(&name) { 1 } else { 10 };
    let missing: Vec<_> = seen.iter().filter(|(name, n)| **n < least(name)).collect();
    assert!(missing.is_empty(), "seldom or never in {equations} equations: {missing:?}");
}

#[test]
fn text_reads_back_to_the_same_program() {
    for seed in seeds(1200) {
        let _seed = Seed(seed);
        let p = any(seed).program;
        verify(&p).unwrap();
        let text = p.to_string();
        let back: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(back, p, "{text}");
        assert_eq!(back.to_string(), text);
        assert_eq!(back.fingerprint(), p.fingerprint());
        assert_eq!(p.clone().with_name("other").fingerprint(), p.fingerprint());
        verify(&back).unwrap();
    }
}

#[test]
fn a_fingerprint_is_the_same_for_ever() {
    let text = "fn f(x0: f64[2,B]) -> f64[B] {\n  x1: f64[2,B] = sin x0\n  x2: f64[B] = reduce_sum{axes=[0]} x1\n  return x2\n}\n";
    let p: Program = text.parse().unwrap();
    assert_eq!(format!("{:032x}", p.fingerprint()), "983887f4060e41d267f2922a986286f9");
}

#[test]
fn the_interpreter_gives_what_the_types_say_and_what_eager_evaluation_gives() {
    for seed in seeds(1200) {
        let _seed = Seed(seed);
        let r = any(seed);
        let outputs = interpret(&r.program, &r.inputs).unwrap_or_else(|e| panic!("{e}\n{}", r.program));
        for (o, ty) in outputs.iter().zip(sized(&r.program, r.symbol).output_types()) {
            assert_eq!(*o.ty().unwrap(), ty, "{}", r.program);
        }
        if !r.program.is_symbolic() {
            let eager = trace::inline(&r.program, &r.inputs).unwrap_or_else(|e| panic!("{e}\n{}", r.program));
            assert_same(&outputs, &eager, &|| r.program.to_string());
        }
    }
}

#[test]
fn the_optimizer_keeps_every_bit() {
    let (mut before, mut after) = (0, 0);
    for seed in seeds(600) {
        let _seed = Seed(seed);
        let r = exact(seed);
        let fast = optimize(&r.program).unwrap_or_else(|e| panic!("{e}\n{}", r.program));
        verify(&fast).unwrap();
        before += r.program.equations().len();
        after += fast.equations().len();
        let (want, have) = (interpret(&r.program, &r.inputs).unwrap(), interpret(&fast, &r.inputs).unwrap());
        assert_same(&want, &have, &|| format!("{}\n{fast}\n{:?}", r.program, r.inputs));
        let twice = optimize(&fast).unwrap();
        assert!(twice.equations().len() <= fast.equations().len());
    }
    assert!(after < before, "{after} of {before} equations are left");
}

#[test]
fn what_a_compiler_is_given_keeps_every_bit() {
    for seed in seeds(600) {
        let _seed = Seed(seed);
        let r = exact(seed);
        let fast = for_execution(&r.program, Exactness::Exact).unwrap_or_else(|e| panic!("{e}\n{}", r.program));
        verify(&fast).unwrap();
        let want = interpret(&r.program, &r.inputs).unwrap();
        let have = interpret(&fast, &r.inputs).unwrap_or_else(|e| panic!("{e}\n{}\n{fast}", r.program));
        assert_same(&want, &have, &|| format!("{}\n{fast}\n{:?}", r.program, r.inputs));
        let marks = ["custom_jvp", "custom_vjp", "name", "stop_gradient", "batch_most", "own_step"];
        assert!(marks.iter().all(|m| fast.count(m) == 0), "{fast}");
    }
}

#[test]
fn what_a_compiler_is_given_differs_in_the_order_of_sums_at_most() {
    for seed in seeds(800) {
        let _seed = Seed(seed);
        let r = smooth(seed);
        let (derivative, _) = jvp(&r.program, &vec![true; r.inputs.len()]).unwrap();
        let inputs: Vec<Array> = r.inputs.iter().cloned().chain(r.more_inputs(seed + 1, true)).collect();
        for (program, inputs) in [(&r.program, &r.inputs), (&derivative, &inputs)] {
            for exactness in [Exactness::Exact, Exactness::Relaxed] {
                let fast = for_execution(program, exactness).unwrap_or_else(|e| panic!("{e}\n{program}"));
                let (want, have) = (interpret(program, inputs).unwrap(), interpret(&fast, inputs).unwrap());
                for (x, y) in want.iter().zip(&have) {
                    let close = reals(x).iter().zip(reals(y)).all(|(x, y)| near(*x, y, 1e-9) || !x.is_finite());
                    assert!(close, "{x:?} is not {y:?}\n{program}\n{fast}");
                }
            }
        }
    }
}

#[test]
fn partial_evaluation_computes_the_same_in_two_steps() {
    for seed in seeds(800) {
        let _seed = Seed(seed);
        let r = exact(seed);
        let known: Vec<bool> = (0..r.inputs.len()).map(|i| (seed >> (4 + i)) & 1 == 1).collect();
        let split = partial_eval(&r.program, &known).unwrap_or_else(|e| panic!("{e}\n{}", r.program));
        verify(&split.known).unwrap();
        verify(&split.unknown).unwrap();
        let (known_half, unknown_half) = (sized(&split.known, r.symbol), sized(&split.unknown, r.symbol));
        let side =
            |wanted: bool| r.inputs.iter().zip(&known).filter(move |(_, k)| **k == wanted).map(|(a, _)| a.clone());
        let early = interpret(&known_half, &side(true).collect::<Vec<_>>()).unwrap();
        let count = split.known_outputs.iter().filter(|k| **k).count();
        let (early, residuals) = early.split_at(count);
        let late: Vec<Array> = residuals.iter().cloned().chain(side(false)).collect();
        let late = interpret(&unknown_half, &late).unwrap();
        let (mut early, mut late) = (early.iter().cloned(), late.into_iter());
        let both: Vec<Array> =
            split.known_outputs.iter().map(|k| if *k { early.next() } else { late.next() }.unwrap()).collect();
        let whole = interpret(&r.program, &r.inputs).unwrap();
        assert_same(&whole, &both, &|| format!("{}\n{split:?}", r.program));
        // The law of every split, as one program.
        let joined = split.joined(r.program.inputs(), &known).unwrap_or_else(|e| panic!("{e}\n{}", r.program));
        verify(&joined).unwrap();
        let joined = interpret(&sized(&joined, r.symbol), &r.inputs).unwrap();
        assert_same(&whole, &joined, &|| format!("{}\n{split:?}", r.program));
    }
}

#[test]
fn vmap_is_a_loop() {
    for seed in seeds(800) {
        let _seed = Seed(seed);
        let r = exact(seed);
        let size = [2usize, 3, 1][(seed % 3) as usize];
        let mut batched: Vec<bool> = (0..r.inputs.len()).map(|i| (seed >> (3 + i)) & 1 == 1).collect();
        batched[0] |= !batched.contains(&true);
        // A batch of unknown size is as good.
        let dim = if seed % 5 == 0 { Dim::symbol("K").unwrap() } else { Dim::from(size) };
        let over = vmap(&r.program, &batched, &dim).unwrap_or_else(|e| panic!("{e}\n{}", r.program));
        verify(&over).unwrap();
        let examples: Vec<Vec<Array>> = (0..size)
            .map(|k| {
                let fresh = r.more_inputs(seed * 7 + k as u64, false);
                fresh
                    .into_iter()
                    .zip(&r.inputs)
                    .zip(&batched)
                    .map(|((f, a), on)| if *on { f } else { a.clone() })
                    .collect()
            })
            .collect();
        let inputs: Vec<Array> = (0..r.inputs.len())
            .map(|i| match batched[i] {
                true => Array::stack(examples.iter().map(|e| e[i].clone()).collect::<Vec<_>>(), 0),
                false => r.inputs[i].clone(),
            })
            .collect();
        let at_once = interpret(&over, &inputs).unwrap_or_else(|e| panic!("{e}\n{}\n{over}", r.program));
        let one_by_one: Vec<Vec<Array>> = examples.iter().map(|e| interpret(&r.program, e).unwrap()).collect();
        let looped: Vec<Array> = (0..at_once.len())
            .map(|o| Array::stack(one_by_one.iter().map(|outputs| outputs[o].clone()).collect::<Vec<_>>(), 0))
            .collect();
        assert_same(&at_once, &looped, &|| format!("{}\n{over}\n{inputs:?}", r.program));
    }
}

#[test]
fn a_batch_of_nothing_gives_nothing() {
    for seed in seeds(600) {
        let _seed = Seed(seed);
        let r = exact(seed);
        let dim = if seed % 2 == 0 { Dim::symbol("K").unwrap() } else { Dim::from(0usize) };
        let batched: Vec<bool> = (0..r.inputs.len()).map(|i| i == 0 || (seed >> (3 + i)) & 1 == 1).collect();
        let over = vmap(&r.program, &batched, &dim).unwrap_or_else(|e| panic!("{e}\n{}", r.program));
        // Examples that differ in what they choose ask for one at least if their number is not known.
        if !over.constraints().is_empty() {
            continue;
        }
        let none = |a: &Array| a.broadcast_to(a.shape().inserted(0, Dim::from(0usize)));
        let inputs: Vec<Array> =
            r.inputs.iter().zip(&batched).map(|(a, on)| if *on { none(a) } else { a.clone() }).collect();
        let outputs = interpret(&over, &inputs).unwrap_or_else(|e| panic!("{e}\n{}\n{over}", r.program));
        for (o, one) in outputs.iter().zip(interpret(&r.program, &r.inputs).unwrap()) {
            assert_eq!(o.ty().unwrap(), none(&one).ty().unwrap(), "{over}");
        }
    }
}

/// The inputs moved by `h` along the tangents.
fn moved(inputs: &[Array], tangents: &[Array], h: f64) -> Vec<Array> {
    inputs.iter().zip(tangents).map(|(x, t)| x + t * h).collect()
}

/// The derivative program of `p` by all its inputs, compared with slopes of `p` at `inputs`. How many slopes were
/// compared, and how many could not be trusted.
fn check_slopes(p: &Program, inputs: &[Array], tangents: &[Array]) -> (Program, usize, usize) {
    let (mut checked, mut unsure) = (0, 0);
    let (derivative, varies) = jvp(p, &vec![true; inputs.len()]).unwrap_or_else(|e| panic!("{e}\n{p}"));
    verify(&derivative).unwrap();
    let both: Vec<Array> = inputs.iter().chain(tangents).cloned().collect();
    let results = interpret(&derivative, &both).unwrap_or_else(|e| panic!("{e}\n{derivative}"));
    let (primal, dots) = results.split_at(p.outputs().len());
    assert_same(primal, &interpret(p, inputs).unwrap(), &|| p.to_string());
    let slope = |h: f64| -> Vec<Vec<f64>> {
        let up = interpret(p, &moved(inputs, tangents, h)).unwrap();
        let down = interpret(p, &moved(inputs, tangents, -h)).unwrap();
        let each = up.iter().zip(&down);
        each.map(|(u, d)| reals(u).iter().zip(reals(d)).map(|(u, d)| (u - d) / (2.0 * h)).collect()).collect()
    };
    let (coarse, fine) = (slope(2e-4), slope(1e-4));
    let mut dots = dots.iter();
    for (i, varies) in varies.iter().enumerate() {
        let dot = if *varies { reals(dots.next().unwrap()) } else { vec![0.0; fine[i].len()] };
        for ((c, f), have) in coarse[i].iter().zip(&fine[i]).zip(dot) {
            // One step of extrapolation; how far the two differ says how far to trust it.
            let (want, scale) = (f + (f - c) / 3.0, 1.0 + f.abs());
            if !want.is_finite() || (f - c).abs() > 1e-3 * scale || scale > 1e6 {
                unsure += 1;
                continue;
            }
            checked += 1;
            assert!((have - want).abs() < 2e-5 * scale, "output {i}: {have} is not {want}\n{p}\n{derivative}");
        }
    }
    (derivative, checked, unsure)
}

#[test]
fn jvp_is_the_limit_of_finite_differences() {
    let (mut checked, mut unsure) = (0, 0);
    for seed in seeds(1000) {
        let _seed = Seed(seed);
        let r = smooth(seed);
        let (_, sure, in_doubt) = check_slopes(&r.program, &r.inputs, &r.more_inputs(seed + 1, true));
        (checked, unsure) = (checked + sure, unsure + in_doubt);
    }
    assert!(checked > 10_000 && unsure * 20 < checked, "{checked} slopes checked, {unsure} in doubt");
}

#[test]
fn the_derivative_of_the_derivative_is_right() {
    let (mut checked, mut unsure) = (0, 0);
    for seed in seeds(400) {
        let _seed = Seed(seed);
        let r = smooth(seed);
        let once = jvp(&r.program, &vec![true; r.inputs.len()]).unwrap().0;
        let pick = |k: u64| r.more_inputs(seed + k, true);
        let inputs: Vec<Array> = r.inputs.iter().cloned().chain(pick(1)).collect();
        let tangents: Vec<Array> = pick(2).into_iter().chain(pick(3)).collect();
        let (_, sure, in_doubt) = check_slopes(&once, &inputs, &tangents);
        (checked, unsure) = (checked + sure, unsure + in_doubt);
    }
    assert!(checked > 2_000 && unsure * 10 < checked, "{checked} slopes checked, {unsure} in doubt");
}

#[test]
fn vmap_and_jvp_commute() {
    for seed in seeds(400) {
        let _seed = Seed(seed);
        let r = smooth(seed);
        let (n, size) = (r.inputs.len(), Dim::from(2usize));
        let each = vec![true; n];
        let (derivative, varies) = jvp(&r.program, &each).unwrap();
        let first = vmap(&derivative, &vec![true; 2 * n], &size).unwrap();
        let (second, also) = jvp(&vmap(&r.program, &each, &size).unwrap(), &each).unwrap();
        assert_eq!(varies, also, "{}", r.program);
        let stack =
            |a: Vec<Array>, b: Vec<Array>| a.iter().zip(&b).map(|(a, b)| Array::stack([a, b], 0)).collect::<Vec<_>>();
        let mut inputs = stack(r.inputs.clone(), r.more_inputs(seed + 1, true));
        inputs.extend(stack(r.more_inputs(seed + 2, true), r.more_inputs(seed + 3, true)));
        let (a, b) = (interpret(&first, &inputs).unwrap(), interpret(&second, &inputs).unwrap());
        for (x, y) in a.iter().zip(&b) {
            for (x, y) in reals(x).into_iter().zip(reals(y)) {
                assert!(near(x, y, 1e-8), "{x} {y}\n{}", r.program);
            }
        }
    }
}

/// The sum of products of real parts less that of imaginary parts: the pairing under which transposes are taken.
fn pairing(a: &[Array], b: &[Array]) -> (f64, f64) {
    let (mut sum, mut size) = (0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        let complex = x.dtype().is_complex();
        for (i, (x, y)) in reals(x).iter().zip(reals(y)).enumerate() {
            sum += if complex && i % 2 == 1 { -x * y } else { x * y };
            size += (x * y).abs();
        }
    }
    (sum, size)
}

/// Random arrays of small numbers.
fn arrays(types: &[Type], seed: u64) -> Vec<Array> {
    let mut source = Source::seed(seed);
    types.iter().map(|t| random_array(&mut source, t, true)).collect()
}

/// Reverse mode against forward mode, at `inputs` and along random directions; false if the numbers are too large to
/// tell.
fn check_reverse(p: &Program, inputs: &[Array], symbol: usize, active: &[bool], seed: u64) -> bool {
    let forward = linearize(p, active).unwrap_or_else(|e| panic!("{e}\n{p}"));
    let back = vjp(p, active).unwrap_or_else(|e| panic!("{e}\n{p}"));
    verify(&forward.linear).unwrap();
    verify(&back.linear).unwrap();
    assert_eq!(forward.varies, back.varies);
    let primal = sized(&forward.primal, symbol);
    let (linear, pullback) = (sized(&forward.linear, symbol), sized(&back.linear, symbol));
    let values = interpret(&primal, inputs).unwrap();
    let again = interpret(&sized(&back.primal, symbol), inputs).unwrap();
    assert_same(&values, &again, &|| p.to_string());
    let (outputs, residuals) = values.split_at(p.outputs().len());
    let v = arrays(&linear.inputs()[residuals.len()..], seed + 1);
    let w = arrays(&linear.output_types(), seed + 99);
    let with = |extra: &[Array]| residuals.iter().chain(extra).cloned().collect::<Vec<_>>();
    let jv = interpret(&linear, &with(&v)).unwrap();
    let jtw = interpret(&pullback, &with(&w)).unwrap();
    let fast = optimize(&pullback).unwrap_or_else(|e| panic!("{e}\n{pullback}"));
    for (a, b) in interpret(&fast, &with(&w)).unwrap().iter().zip(&jtw) {
        let close = reals(a).into_iter().zip(reals(b)).all(|(x, y)| near(x, y, 1e-9));
        assert!(close, "{a:?} is not {b:?}\n{pullback}\n{fast}");
    }
    // Forward mode in one piece says the same as in two.
    let (whole, varies) = jvp(p, active).unwrap();
    let mut whole = interpret(&whole, &inputs.iter().chain(&v).cloned().collect::<Vec<_>>()).unwrap();
    let dots = whole.split_off(outputs.len());
    let dots = dots.iter().zip((0..outputs.len()).filter(|i| varies[*i]));
    let dots = dots.filter(|(_, i)| forward.varies[*i]).map(|(dot, _)| dot);
    for (a, b) in jv.iter().zip(dots) {
        let (a, b) = (reals(a), reals(b));
        let size = 1.0 + a.iter().map(|x| x * x).sum::<f64>().sqrt();
        // Beside an overflow the size is no number, and equal is equal.
        let close = |(x, y): (&f64, &f64)| x == y || (x - y).abs() <= 1e-9 * size || !(x - y).is_finite();
        assert!(a.iter().zip(&b).all(close), "{a:?} is not {b:?}\n{p}\n{forward:?}");
    }
    let ((a, size_a), (b, size_b)) = (pairing(&jv, &w), pairing(&v, &jtw));
    let scale = 1.0 + size_a + size_b;
    if scale < 1e9 {
        assert!((a - b).abs() < 1e-9 * scale, "{a} is not {b}\n{p}\n{forward:?}\n{back:?}");
    }
    scale < 1e9
}

#[test]
fn reverse_mode_is_the_transpose_of_forward_mode() {
    let mut checked = 0;
    for seed in seeds(600) {
        let _seed = Seed(seed);
        let r = smooth(seed);
        let active: Vec<bool> = (0..r.inputs.len()).map(|i| i == 0 || (seed >> (2 + i)) & 1 == 1).collect();
        checked += usize::from(check_reverse(&r.program, &r.inputs, r.symbol, &active, seed));
    }
    assert!(checked > 300, "{checked}");
}

/// The pullback as a program of inputs and cotangents; none if nothing varies, or if a large constant would become an
/// input of its own.
fn pullback_of(p: &Program) -> Option<Program> {
    let back = vjp(p, &vec![true; p.inputs().len()]).unwrap_or_else(|e| panic!("{e}\n{p}"));
    let (outputs, n) = (p.outputs().len(), p.inputs().len());
    let bars = back.linear.inputs()[back.residuals.len()..].iter();
    let types: Vec<Array> = p.inputs().iter().chain(bars).cloned().map(Array::of_type).collect();
    let traced = trace::trace("pullback", &types, trace::Mode::Abstract, |xs| {
        let mut residuals = trace::inline(&back.primal, &xs[..n]).unwrap().split_off(outputs);
        residuals.extend_from_slice(&xs[n..]);
        trace::inline(&back.linear, &residuals).unwrap()
    });
    let traced = traced.unwrap();
    (back.varies.contains(&true) && traced.captures.is_empty()).then_some(traced.program)
}

#[test]
fn derivatives_of_gradients_are_right() {
    let (mut checked, mut unsure, mut reversed) = (0, 0, 0);
    for seed in seeds(250) {
        let _seed = Seed(seed);
        let r = smooth(seed);
        let Some(p) = pullback_of(&sized(&r.program, r.symbol)) else { continue };
        let (inputs, tangents) = (arrays(p.inputs(), seed + 5), arrays(p.inputs(), seed + 6));
        let (_, sure, in_doubt) = check_slopes(&p, &inputs, &tangents);
        (checked, unsure) = (checked + sure, unsure + in_doubt);
        reversed += usize::from(check_reverse(&p, &inputs, r.symbol, &vec![true; inputs.len()], seed));
    }
    assert!(checked > 1_000 && unsure * 10 < checked, "{checked} slopes checked, {unsure} in doubt");
    assert!(reversed > 150, "{reversed}");
}

#[test]
fn gradients_of_a_batch_are_gradients_of_its_examples() {
    for seed in seeds(300) {
        let _seed = Seed(seed);
        let r = smooth(seed);
        let Some(p) = pullback_of(&sized(&r.program, r.symbol)) else { continue };
        let over = vmap(&p, &vec![true; p.inputs().len()], &Dim::from(2usize)).unwrap_or_else(|e| panic!("{e}\n{p}"));
        verify(&over).unwrap();
        let (a, b) = (arrays(p.inputs(), seed + 5), arrays(p.inputs(), seed + 6));
        let both: Vec<Array> = a.iter().zip(&b).map(|(a, b)| Array::stack([a, b], 0)).collect();
        let at_once = interpret(&over, &both).unwrap_or_else(|e| panic!("{e}\n{p}\n{over}"));
        let (a, b) = (interpret(&p, &a).unwrap(), interpret(&p, &b).unwrap());
        for (i, have) in at_once.iter().enumerate() {
            let want = reals(&a[i]).into_iter().chain(reals(&b[i]));
            for (x, y) in reals(have).into_iter().zip(want) {
                assert!(near(x, y, 1e-8), "output {i}: {x} {y}\n{p}\n{over}");
            }
        }
    }
}

#[test]
fn sums_in_another_order_are_as_good() {
    // Programs with sums, optimized: the same up to rounding.
    for seed in seeds(1000) {
        let _seed = Seed(seed);
        let r = smooth(seed);
        let fast = optimize(&r.program).unwrap();
        let (want, have) = (interpret(&r.program, &r.inputs).unwrap(), interpret(&fast, &r.inputs).unwrap());
        for (x, y) in want.iter().zip(&have) {
            assert_eq!(x.ty().unwrap(), y.ty().unwrap());
            for (x, y) in reals(x).into_iter().zip(reals(y)) {
                assert!(near(x, y, 1e-9), "{x} {y}\n{}\n{fast}", r.program);
            }
        }
        assert!(have.iter().all(|a| matches!(a.dtype(), DType::F64 | DType::C128 | DType::Bool | DType::I32)));
    }
}

/// What a program shows when it is interpreted, and what it gives.
fn watched(watcher: &Watcher, p: &Program, inputs: &[Array]) -> (Vec<String>, Vec<Array>) {
    let outputs = interpret(p, inputs).unwrap_or_else(|e| panic!("{e}\n{p}"));
    (watcher.take(), outputs)
}

#[test]
fn row_e1_passes_keep_effects_and_their_order() {
    let mut effects = 0;
    for seed in seeds(500) {
        let _seed = Seed(seed);
        let r = exact(seed);
        let watcher = Watcher::default();
        let p = watcher.weave(&r.program, &mut Source::seed(seed), true).unwrap();
        verify(&p).unwrap();
        let (want, outputs) = watched(&watcher, &p, &r.inputs);
        effects += want.len();
        for optimized in [optimize(&p).unwrap(), for_execution(&p, Exactness::Exact).unwrap()] {
            verify(&optimized).unwrap();
            let (have, given) = watched(&watcher, &optimized, &r.inputs);
            assert_eq!(have, want, "{p}\n{optimized}");
            assert_same(&given, &outputs, &|| format!("{p}\n{optimized}"));
        }
        if !p.is_symbolic() {
            trace::inline(&p, &r.inputs).unwrap_or_else(|e| panic!("{e}\n{p}"));
            assert_eq!(watcher.take(), want, "{p}");
        }
    }
    assert!(effects > 1000, "only {effects} effects");
}

#[test]
fn row_e1_derivatives_and_batches_of_one_show_what_the_program_shows() {
    let (mut effects, mut batches) = (0, 0);
    for seed in seeds(800) {
        let _seed = Seed(seed);
        let r = smooth(seed);
        let watcher = Watcher::default();
        let p = sized(&watcher.weave(&r.program, &mut Source::seed(seed), false).unwrap(), r.symbol);
        let (want, outputs) = watched(&watcher, &p, &r.inputs);
        effects += want.len();
        let active: Vec<bool> = p.inputs().iter().map(|t| t.dtype().is_inexact()).collect();
        let (derivative, _) = jvp(&p, &active).unwrap();
        let dots = r.inputs.iter().filter(|a| a.dtype().is_inexact()).map(Array::ones_like);
        let inputs: Vec<Array> = r.inputs.iter().cloned().chain(dots).collect();
        assert_eq!(watched(&watcher, &derivative, &inputs).0, want, "jvp\n{p}\n{derivative}");
        let back = vjp(&p, &active).unwrap();
        let (have, primal) = watched(&watcher, &back.primal, &r.inputs);
        assert_eq!(have, want, "vjp\n{p}\n{}", back.primal);
        let residuals = primal[outputs.len()..].iter().cloned();
        let bars = outputs.iter().zip(&back.varies).filter(|(_, on)| **on).map(|(y, _)| y.ones_like());
        let (again, _) = watched(&watcher, &back.linear, &residuals.chain(bars).collect::<Vec<_>>());
        assert_eq!(again, Vec::<String>::new(), "the backward pass shows nothing\n{p}\n{}", back.linear);
        // A branch that examples take apart is refused; anything else goes on.
        let every = vec![true; p.inputs().len()];
        let Ok(batched) = vmap(&p, &every, &Dim::from(1usize)) else { continue };
        let in_front = |a: &Array| a.reshape(a.shape().inserted(0, Dim::from(1usize)));
        let inputs: Vec<Array> = r.inputs.iter().map(in_front).collect();
        assert_eq!(watched(&watcher, &batched, &inputs).0, want, "vmap\n{p}\n{batched}");
        batches += 1;
    }
    assert!(effects > 1000 && batches > 300, "only {effects} effects and {batches} batches");
}

//! Random numbers against JAX in every way a function runs, derivatives through them, and what keys refuse.

#[path = "random/vectors.rs"]
mod vectors;

use std::sync::Arc;

use gradus::prelude::*;
use vectors::{Line, bits_of, call, distance, limit, lines};

fn check(line: &Line, way: &str, y: &Array) {
    let ours = bits_of(y).unwrap_or_else(|e| panic!("{} {way}: {e}", line.name));
    assert_eq!(y.ty().unwrap(), &line.ty, "{} {way}", line.name);
    let (most, least) = limit(&line.name, line.ty.dtype());
    let far = distance(line.ty.dtype(), &ours, &line.bits, least);
    assert!(far <= most, "{} of {} {way}: {far} units from JAX for seed {}", line.name, line.ty, line.seed);
}

#[test]
fn row_e2_numbers_are_those_of_jax() {
    let lines = lines();
    assert!(lines.len() > 350);
    for line in &lines {
        check(line, "called", &call(line, Key::new(line.seed), &line.args));
    }
}

/// Lines of a thinned list: every way of running compiles each.
fn some_lines() -> Vec<Arc<Line>> {
    let mut seen = std::collections::BTreeMap::new();
    for line in lines() {
        let name = format!("{} {} {:?}", line.name, line.ty.dtype(), line.rest["axis"]);
        seen.entry(name).or_insert(line);
    }
    seen.into_values().map(Arc::new).collect()
}

#[test]
fn row_e2_compiled_numbers_are_those_of_jax() {
    for line in some_lines() {
        let shared = line.clone();
        let f = jit(move |key: &Key, args: &Vec<Array>| call(&shared, key.take(), args));
        check(&line, "compiled", &f(&Key::new(line.seed), &line.args));
    }
}

#[test]
fn row_e2_keys_are_batched() {
    for line in some_lines() {
        let shared = line.clone();
        let f = vmap(move |key: &Key, args: &Vec<Array>| call(&shared, key.take(), args)).axes((Some(0), None));
        let keys = || {
            let bits = Array::from([7_u64, line.seed, 12345]).bitcast(DType::Key);
            Key::from_array(bits)
        };
        let rows = f(&keys(), &line.args);
        check(&line, "in a batch", &rows.index(1_i64));
        let rows = jit(f)(&keys(), &line.args);
        check(&line, "in a compiled batch", &rows.index(1_i64));
    }
}

#[test]
fn row_e2_keys_pass_through_loops() {
    for line in some_lines() {
        let (shared, args) = (line.clone(), line.args.clone());
        let f = jit(move |keys: &Key| scan(|(), key: &Key| ((), call(&shared, key.take(), &args)), (), &keys.take()).1);
        let rows = f(&Key::from_array(Array::from([line.seed, 5]).bitcast(DType::Key)));
        check(&line, "in a scan", &rows.index(0_i64));
    }
    // A key as a carry, split in each step.
    let chain = jit(|key: &Key| {
        let step = |_: &Array, key: &Key| {
            let [next, _] = key.take().split();
            next
        };
        let key = fori_loop(0, 3, step, key.take());
        random::bits::<u32>(key, ())
    });
    let mut key = Key::new(9);
    for _ in 0..3 {
        [key, _] = key.split();
    }
    let want = random::bits::<u32>(key, ()).item::<u32>().unwrap();
    assert_eq!(chain(&Key::new(9)).item::<u32>().unwrap(), want);
}

#[test]
fn row_e2_a_draw_may_have_a_symbolic_shape() -> Result<()> {
    fn noisy(x: &Array, key: &Key) -> Array {
        let [a, b] = key.take().split();
        let noise = random::normal::<f32>(a, x.shape());
        let order = random::permutation(b, x.dim(0));
        (x + noise).take(&order, 0)
    }
    let program = jit(noisy).trace(&Array::spec("f32[B,3]"), &Key::spec("key[]"))?.program().clone();
    assert!(program.to_string().contains("random_bits{dtype=u32, shape=[B,3]}"), "{program}");
    for rows in [1usize, 2, 40] {
        let x = Array::zeros::<f32>([rows, 3]);
        let key = || Key::new(11);
        let got = gradus::extend::interpret(&program, &[x.clone(), key().into_array()])?;
        let want = noisy(&x, &key());
        assert_eq!(got[0].to_vec::<f32>()?, want.to_vec::<f32>()?);
    }
    // Enough for a second round of sorting.
    let places = jit(|x: &Array, key: &Key| random::permutation(key.take(), x.dim(0)));
    let program = places.trace(&Array::spec("f32[B]"), &Key::spec("key[]"))?.program().clone();
    let got = gradus::extend::interpret(&program, &[Array::zeros::<f32>([3000]), Key::new(42).into_array()])?;
    assert_eq!(got[0].to_vec::<i64>()?, random::permutation(Key::new(42), 3000usize).to_vec::<i64>()?);
    Ok(())
}

#[test]
fn row_e2_derivatives_are_those_of_jax() -> Result<()> {
    let mut seen = 0;
    for line in lines().into_iter().filter(|l| l.grad.is_some()).map(Arc::new) {
        let shared = line.clone();
        // By the covariance of vectors, by the first parameter of the others.
        let at = if line.name == "multivariate_normal" { 1 } else { 0 };
        let f = move |x: &Array, key: &Key| {
            let mut args = shared.args.clone();
            args[at] = x.clone();
            let y = call(&shared, key.take(), &args);
            if at == 1 { y.square().sum() } else { y.sum() }
        };
        let dtype = line.args[at].dtype();
        let tolerance = if dtype == DType::F64 { 1e-9 } else { 2e-3 };
        for slope in [grad(f.clone()), jit(grad(f))] {
            let slope = slope(&line.args[at], &Key::new(line.seed)).cast(DType::F64).to_vec::<f64>()?;
            let want = line.grad.as_ref().expect("a derivative").iter().map(|&bits| match dtype {
                DType::F64 => f64::from_bits(bits),
                _ => f64::from(f32::from_bits(bits as u32)),
            });
            for (a, b) in slope.into_iter().zip(want) {
                let far = (a - b).abs() / b.abs().max(1.0);
                assert!(far < tolerance, "{} of {dtype}: {a} and {b} for seed {}", line.name, line.seed);
            }
        }
        seen += 1;
    }
    assert!(seen >= 20);
    Ok(())
}

#[test]
fn bounds_have_derivatives() -> Result<()> {
    // u·(high - low) + low: the derivative by the upper bound is u.
    let u = random::uniform::<f64>(Key::new(4), [5]).to_vec::<f64>()?;
    let by_high = |high: &Array, key: &Key| random::uniform_between::<f64>(key.take(), [5], 1.0_f64, high).sum();
    let slope = grad(by_high)(&Array::from(3.0_f64), &Key::new(4)).item::<f64>()?;
    assert!((slope - u.iter().sum::<f64>()).abs() < 1e-12);
    // Against differences, in the smooth region.
    let f = |low: &Array| random::truncated_normal::<f64>(Key::new(4), [5], low, 2.0_f64).sum();
    let (slope, h) = (grad(f)(&Array::from(-0.5_f64)).item::<f64>()?, 1e-6);
    let at = |low: f64| f(&Array::from(low)).item::<f64>();
    let difference = (at(-0.5 + h)? - at(-0.5 - h)?) / (2.0 * h);
    assert!((slope - difference).abs() < 1e-6, "{slope} {difference}");
    Ok(())
}

/// A layer that drops half of its numbers.
fn dropout(x: &Array, key: Key) -> Array {
    random::bernoulli(key, 0.5_f64, x.shape()).select(x * 2.0_f64, 0.0_f64)
}

#[test]
fn row_e3_the_backward_pass_of_dropout_has_the_mask_of_the_forward_pass() -> Result<()> {
    let loss = |x: &Array, key: &Key| {
        let y = dropout(x, key.take());
        (y.sum(), y)
    };
    let x = Array::arange(1.0_f64, 41.0, 1.0);
    let ways = [value_and_grad_with_aux(loss), jit(value_and_grad_with_aux(loss))];
    for f in ways {
        let ((_, y), slope) = f(&x, &Key::new(3));
        let (y, slope) = (y.to_vec::<f64>()?, slope.to_vec::<f64>()?);
        assert!(y.contains(&0.0) && y.iter().any(|v| *v != 0.0));
        let want: Vec<f64> = y.iter().map(|v| if *v == 0.0 { 0.0 } else { 2.0 }).collect();
        assert_eq!(slope, want);
    }
    Ok(())
}

#[test]
fn row_e3_a_checkpoint_computes_the_same_mask_again() -> Result<()> {
    fn two_layers(x: &Array, key: Key) -> Array {
        let [a, b] = key.split();
        dropout(&(dropout(x, a).sin() * x), b).sum()
    }
    let x = Array::linspace(0.1_f64, 3.0, 50);
    let plain = jit(grad(|x: &Array, key: &Key| two_layers(x, key.take())));
    let kept = jit(grad(checkpoint(|x: &Array, key: &Key| two_layers(x, key.take()))));
    let want = plain(&x, &Key::new(8)).to_vec::<f64>()?;
    assert!(want.contains(&0.0) && want.iter().any(|v| *v != 0.0));
    assert_eq!(kept(&x, &Key::new(8)).to_vec::<f64>()?, want);
    // In a loop, whose backward pass goes over the steps again.
    let steps = |x: &Array, key: &Key| {
        let key = key.take();
        fori_loop(0, 4, |i, h: &Array| dropout(&(h.sin() * x), key.fold_in(i)), x.clone()).sum()
    };
    let by_hand = |x: &Array, key: &Key| {
        let key = key.take();
        (0..4_i64).fold(x.clone(), |h, i| dropout(&(h.sin() * x), key.fold_in(i))).sum()
    };
    let [looped, unrolled] = [jit(grad(steps))(&x, &Key::new(8)), jit(grad(by_hand))(&x, &Key::new(8))];
    for (a, b) in looped.to_vec::<f64>()?.into_iter().zip(unrolled.to_vec::<f64>()?) {
        assert!((a - b).abs() < 1e-12, "{a} {b}");
    }
    Ok(())
}

#[test]
fn a_key_behind_a_reference_is_used_once() {
    let said = |a: &Array| a.clone().ok().unwrap_err().to_string();
    let key = Key::new(1);
    let first = random::uniform::<f32>(key.take(), [2]);
    let second = random::uniform::<f32>(key.take(), [2]);
    assert!(first.ok().is_ok());
    assert!(said(&second).contains("used before") && said(&second).contains("random.rs"), "{}", said(&second));
    // Inside of a transformed function.
    let twice = jit(|key: &Key| random::uniform::<f32>(key.take(), ()) + random::uniform::<f32>(key.take(), ()));
    assert!(said(&twice(&Key::new(1))).contains("used before"));
    // Given to two calls.
    let f = jit(|key: &Key| random::uniform::<f32>(key.take(), ()));
    let key = Key::new(2);
    assert!(f(&key).ok().is_ok());
    assert!(said(&f(&key)).contains("used before"));
    assert!(said(&vmap(|key: &Key| random::uniform::<f32>(key.take(), ()))(&key)).contains("used before"));
    // What keys are derived from is not drawn from.
    let key = Key::new(3);
    assert!(random::uniform::<f32>(key.fold_in(1), ()).ok().is_ok());
    assert!(random::uniform::<f32>(key.fold_in(2), ()).ok().is_ok());
    assert!(said(&random::uniform::<f32>(key, ())).contains("fold_in"));
    let key = Key::new(4);
    let _spent = key.take();
    assert!(said(&random::uniform::<f32>(key.fold_in(1), ())).contains("used before"));
}

#[test]
fn keys_are_not_computed_with() {
    let said = |a: Array| a.ok().unwrap_err().to_string();
    let keys = || Key::new(1).split_n(4usize).into_array();
    for refused in [
        keys() + keys(),
        keys().eq(keys()),
        keys().sort(0),
        keys().sum(),
        keys().cast(DType::F32),
        Array::from([1.0_f64]).cast(DType::Key),
        keys().bitcast(DType::F64),
        keys() * 2,
    ] {
        assert!(said(refused).contains("key"));
    }
    assert!(said(random::uniform::<f32>(Key::new(1).split_n(4usize), ())).contains("vmap"));
    assert!(said(Key::from_array(Array::from(1.0_f64)).into_array()).contains("holds no keys"));
    // They are moved like anything else.
    let moved = Array::concatenate([keys().index(2..4), keys().index(0..2)], 0).reshape([2, 2]).index((1, 0));
    let [want, _, _, _] = Key::new(1).split();
    assert_eq!(Key::from_array(moved).to_words().unwrap(), want.to_words().unwrap());
}

/// A state with a key is a tree, and as little a copy as the key.
#[derive(Tree)]
struct Walk {
    at: Array,
    key: Key,
}

#[test]
fn a_state_may_hold_a_key() -> Result<()> {
    let step = jit(|walk: &Walk| {
        let [now, next] = walk.key.take().split();
        Walk { at: &walk.at + random::normal::<f32>(now, [2]), key: next }
    });
    let start = || Walk { at: Array::zeros::<f32>([2]), key: Key::new(12) };
    let two = step(&step(&start()));
    let looped = fori_loop(0, 2, |_, walk: &Walk| step(walk), start());
    // The product that ends a normal number may be fused with the sum, or not.
    for (a, b) in two.at.to_vec::<f32>()?.into_iter().zip(looped.at.to_vec::<f32>()?) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
    assert_eq!(two.key.to_words()?, looped.key.to_words()?);
    assert_eq!(step.stats().compiles, 1);
    Ok(())
}

#[test]
fn a_key_can_be_stored() -> Result<()> {
    let [_, key] = Key::new(77).split();
    let again = Key::from_words(key.to_words()?);
    assert_eq!(random::bits::<u64>(key, [4]).to_vec::<u64>()?, random::bits::<u64>(again, [4]).to_vec::<u64>()?);
    let parts = Key::new(5).split_n(3usize).unstack()?;
    assert_eq!(parts.len(), 3);
    let [a, b, c] = Key::new(5).split();
    for (x, y) in parts.into_iter().zip([a, b, c]) {
        assert_eq!(x.to_words()?, y.to_words()?);
    }
    Ok(())
}

#[test]
fn what_is_asked_for_wrongly_is_an_error() {
    let said = |a: Array| a.ok().unwrap_err().to_string();
    assert!(said(random::uniform::<i32>(Key::new(0), [3])).contains("floats"));
    assert!(said(random::bits::<i32>(Key::new(0), [3])).contains("unsigned"));
    assert!(said(random::randint::<f32>(Key::new(0), [3], 0, 5)).contains("integers"));
    assert!(said(random::randint::<u8>(Key::new(0), [3], 0, 300)).contains("300"));
    assert!(
        said(random::uniform_between::<f32>(Key::new(0), [3], Array::zeros::<f32>([2]), 1.0)).contains("broadcast")
    );
    assert!(said(random::choice(Key::new(0), &Array::from(1.0_f32), [3])).contains("axis"));
    let few = random::ChoiceOptions::new().without_replacement();
    assert!(said(few.choice(Key::new(0), &Array::from([1, 2]), [3])).contains("without putting back"));
    let singular =
        random::multivariate_normal(Key::new(0), &Array::zeros::<f32>([2]), &Array::zeros::<f32>([3, 3]), [2]);
    assert!(said(singular).contains("[.., n, n]"));
}

#[test]
fn row_e2_a_long_draw_compiled_has_the_bits_of_the_interpreter() -> Result<()> {
    fn draws(key: Key) -> Vec<Array> {
        let [a, b, c, d, e, f] = key.split();
        let n = 100_003usize;
        vec![
            random::bits::<u32>(a, [n]),
            random::bits::<u64>(b, [7, n / 7]),
            random::bits::<u8>(c, [n]),
            random::uniform::<f32>(d, [n]),
            random::normal::<f32>(e, [3, n / 3]),
            random::normal::<f64>(f, [n]),
        ]
    }
    let compiled = jit(|key: &Key| draws(key.take()));
    let (ours, plain) = (compiled(&Key::new(6)), draws(Key::new(6)));
    for (x, y) in ours.iter().zip(&plain) {
        assert!(x.is_identical(y), "{}", x.ty()?);
    }
    Ok(())
}

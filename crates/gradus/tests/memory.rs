//! Memory by choice: every policy gives the gradient of none, and the bytes are what the policy says. Peaks are counted
//! by the allocator of this test, so that they are those of the process and not of a model of it.

use std::sync::{Mutex, PoisonError};

use gradus::prelude::*;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Tests that count run one after the other.
static ALONE: Mutex<()> = Mutex::new(());

/// The most bytes that were live while `f` ran, beyond those that were live before.
fn peak<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = f();
    (result, ALLOCATOR.peak_usage().saturating_sub(before))
}

fn close(a: &Array, b: &Array) {
    let (a, b) = (a.to_vec::<f64>().unwrap(), b.to_vec::<f64>().unwrap());
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(&b) {
        assert!((x - y).abs() <= 1e-12 * (1.0 + y.abs()), "{a:?} {b:?}");
    }
}

fn block(w: &Array, x: &Array) -> Array {
    let h = x.dot(w).sin().checkpoint_name("hidden");
    (h.exp().tanh() * x).dot(w).cos()
}

fn policies() -> Vec<Policy> {
    let names = |list: &[&str]| Policy::Names(list.iter().map(|n| n.to_string()).collect());
    let budgets = [0, 100, 1000, 1 << 20].map(Policy::Bytes);
    let mut all =
        vec![Policy::Everything, Policy::Nothing, Policy::Dots, names(&["hidden"]), names(&[]), names(&["other"])];
    all.extend(budgets);
    all
}

#[test]
fn row_d7_every_policy_gives_the_gradient_of_none() -> Result<()> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let w = Array::from([[0.5_f64, -0.2, 0.1], [0.3, 0.8, -0.4], [-0.6, 0.2, 0.7]]);
    let x = Array::from([[0.1_f64, 0.2, 0.3], [1.0, -1.0, 0.5]]);
    let plain = |w: &Array, x: &Array| block(w, &block(w, x)).sum();
    let want = grad_all(plain)(&w, &x);
    let second = grad(move |w: &Array, x: &Array| grad(plain)(w, x).sin().sum())(&w, &x);
    for policy in policies() {
        let layer = checkpoint(block).policy(policy.clone());
        let f = move |w: &Array, x: &Array| layer(w, &layer(w, x)).sum();
        let f = std::sync::Arc::new(f);
        let g = f.clone();
        let call = move |w: &Array, x: &Array| g(w, x);
        let have = grad_all(call.clone())(&w, &x);
        close(&have.0, &want.0);
        close(&have.1, &want.1);
        let jitted = jit(grad_all(call.clone()))(&w, &x);
        close(&jitted.0, &want.0);
        close(&jitted.1, &want.1);
        let inner = call.clone();
        let again = jit(grad(move |w: &Array, x: &Array| grad(inner.clone())(w, x).sin().sum()))(&w, &x);
        close(&again, &second);
        let batched = vmap(grad_all(call)).axes((None, Some(0)));
        let xs = Array::stack([x.clone(), &x * 0.5_f64], 0);
        let (_, x_bars) = batched(&w, &xs);
        close(&x_bars.index(0), &want.1);
    }
    Ok(())
}

#[test]
fn row_d7_policies_save_what_they_say() -> Result<()> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let w = Array::from(vec![0.01_f64; 100 * 100]).reshape([100, 100]);
    let x = Array::from(vec![0.1_f64; 20 * 100]).reshape([20, 100]);
    let bytes = |policy: Option<Policy>| -> Result<usize> {
        let w = w.clone();
        let f = move |x: &Array| match &policy {
            Some(policy) => checkpoint(block).policy(policy.clone())(&w, x).sum(),
            None => block(&w, x).sum(),
        };
        Ok(vjp(f, &x).1.residual_bytes())
    };
    let (state, operands) = (20 * 100 * 8, (100 * 100 + 20 * 100) * 8);
    let nothing = bytes(Some(Policy::Nothing))?;
    assert_eq!(nothing, operands, "the operands and nothing else");
    assert_eq!(bytes(Some(Policy::Names(vec!["hidden".into()])))?, operands + state);
    assert_eq!(bytes(Some(Policy::Names(vec!["absent".into()])))?, operands);
    let dots = bytes(Some(Policy::Dots))?;
    assert!(dots > operands && dots <= operands + 2 * state, "{dots}");
    assert_eq!(bytes(Some(Policy::Everything))?, bytes(None)?);
    assert!(bytes(None)? >= operands + 3 * state);
    for budget in [0, state, 2 * state, 10 * state] {
        let have = bytes(Some(Policy::Bytes(budget)))?;
        assert!(have <= operands + budget, "{have} bytes with a budget of {budget}");
    }
    assert!(bytes(Some(Policy::Bytes(2 * state)))? > nothing);
    Ok(())
}

/// A loop over a large state, with a sequence and a constant.
fn run(steps: Steps) -> impl Fn(&Array, &Array, &Array) -> Array + Clone + Send + Sync + 'static {
    move |w: &Array, x: &Array, ts: &Array| {
        let options = ScanOptions::new().steps(steps);
        let step = |h: &Array, t: &Array| ((h * w + t).sin(), h.sum());
        let (last, sums) = options.scan(step, x.clone(), ts);
        (last * sums.sum()).sum()
    }
}

#[test]
fn row_d7_checkpointed_scans_give_the_same_gradient() -> Result<()> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let w = Array::from([0.9_f64, 0.3, -0.5]);
    let x = Array::from([0.1_f64, 0.2, 0.3]);
    for n in [0usize, 1, 2, 7, 8, 9, 64, 65, 100, 137] {
        let ts = Array::from_vec((0..n).map(|i| (i as f64).cos()).collect::<Vec<f64>>(), [n]);
        let want = jit(grad_all(run(Steps::Keep)))(&w, &x, &ts);
        for steps in [Steps::Every(1), Steps::Every(5), Steps::Every(64), Steps::Every(1000), Steps::Recursive] {
            let have = jit(grad_all(run(steps)))(&w, &x, &ts);
            close(&have.0, &want.0);
            close(&have.1, &want.1);
            close(&have.2, &want.2);
        }
    }
    // A body that uses its index, which is carried and not differentiated.
    let indexed = |steps: Steps| {
        move |x: &Array| {
            let options = ScanOptions::new().steps(steps).length(43);
            let step = |(i, h): &(Array, Array), (): &()| {
                let t = i.cast(DType::F64) * 0.1_f64;
                ((i + 1_i64, (h * t.cos() + x).sin()), (h * i.cast(DType::F64)).sin())
            };
            let ((_, h), all) = options.scan(step, (Array::from(3_i64), x.clone()), &());
            h + all.sum()
        }
    };
    let start = Array::from(0.4_f64);
    let want = jit(grad(indexed(Steps::Keep)))(&start);
    check_grads(indexed(Steps::Keep), &start, 1)?;
    for steps in [Steps::Every(6), Steps::Every(7), Steps::Recursive] {
        close(&jit(grad(indexed(steps)))(&start), &want);
        close(&grad(indexed(steps))(&start), &want);
    }
    // From the end to the start, and forward mode over reverse mode.
    let ts = Array::from_vec((0..29).map(|i| (i as f64).sin()).collect::<Vec<f64>>(), [29]);
    let back = |steps: Steps| {
        move |x: &Array, ts: &Array| {
            let options = ScanOptions::new().steps(steps).reverse();
            let (last, all) = options.scan(|h: &Array, t: &Array| ((h * 0.5_f64 + t).sin(), h * t), x.clone(), ts);
            last + (all * ts).sum()
        }
    };
    let x = Array::from(0.3_f64);
    let want = jit(grad_all(back(Steps::Keep)))(&x, &ts);
    for steps in [Steps::Every(4), Steps::Recursive] {
        let have = jit(grad_all(back(steps)))(&x, &ts);
        close(&have.0, &want.0);
        close(&have.1, &want.1);
        let curved = hessian(back(steps))(&x, &ts);
        close(&curved, &hessian(back(Steps::Keep))(&x, &ts));
    }
    Ok(())
}

#[test]
fn row_d7_memory_grows_slower_than_steps() -> Result<()> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let size = 4000;
    let state = size * 8;
    let (w, x) = (Array::from(vec![0.7_f64; size]), Array::from(vec![0.1_f64; size]));
    let measured = |steps: Steps, n: usize| -> Result<usize> {
        let ts = Array::from_vec((0..n).map(|i| (i as f64).cos()).collect::<Vec<f64>>(), [n]);
        let df = jit(grad(run(steps)));
        let compiled = df.compile(&w, &x, &ts)?;
        let (result, bytes) = peak(|| compiled.call(&w, &x, &ts));
        assert!(result?.to_vec::<f64>()?.iter().all(|v| v.is_finite()));
        Ok(bytes)
    };
    let (keep_short, keep_long) = (measured(Steps::Keep, 40)?, measured(Steps::Keep, 320)?);
    let (every_long, recursive_short, recursive_long) =
        (measured(Steps::Every(18), 320)?, measured(Steps::Recursive, 40)?, measured(Steps::Recursive, 320)?);
    println!(
        "peak in states: keep {}, {}; every {}; recursive {}, {}",
        keep_short / state,
        keep_long / state,
        every_long / state,
        recursive_short / state,
        recursive_long / state
    );
    assert!(keep_long > 6 * keep_short, "{keep_short} {keep_long}");
    // 18 saved carries, 18 steps between two of them with what each needs, and a few values in flight.
    assert!(every_long < 80 * state, "{} states", every_long / state);
    // Eight times the steps is one level more: eight states and a few values.
    assert!(
        recursive_long < recursive_short + 20 * state,
        "{} and {} states",
        recursive_short / state,
        recursive_long / state
    );
    assert!(4 * recursive_long < keep_long, "{recursive_long} {keep_long}");
    Ok(())
}

#[test]
fn row_d7_a_while_loop_keeps_as_many_states_as_it_is_told() -> Result<()> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let size = 20_000;
    let state = size * 8;
    let x = Array::from(vec![0.1_f64; size]);
    let f = |history: History| {
        move |x: &Array, n: &Array| {
            let n = n.clone();
            let step = |(i, h): &(Array, Array)| (i + 1_i64, (h * 1.1_f64).sin());
            WhileOptions::new()
                .history(history)
                .while_loop(|(i, _): &(Array, Array)| i.lt(&n), step, (Array::from(0_i64), x.clone()))
                .1
                .sum()
        }
    };
    let measured = |history: History, n: i64| -> Result<(Array, usize)> {
        let df = jit(grad(f(history)));
        let n = Array::from(n);
        let compiled = df.compile(&x, &n)?;
        let (result, bytes) = peak(|| compiled.call(&x, &n));
        Ok((result?, bytes))
    };
    let (want, all) = measured(History::Limit(200), 200)?;
    let (few, four) = measured(History::Checkpoints(4), 200)?;
    let (more, sixteen) = measured(History::Checkpoints(16), 200)?;
    println!(
        "peak in states: limit {}, 4 checkpoints {}, 16 checkpoints {}",
        all / state,
        four / state,
        sixteen / state
    );
    close(&few, &want);
    close(&more, &want);
    // The interpreter copies a stack when a state is put on it: a few stacks at a time, and a few values.
    assert!(four < (4 * 4 + 16) * state && sixteen < (4 * 16 + 16) * state, "{} {}", four / state, sixteen / state);
    assert!(all > 200 * state);
    Ok(())
}

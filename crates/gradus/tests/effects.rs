//! Effects are operations with an order: each test compares what the host saw with what it must have seen, on every
//! backend.

use std::sync::{Arc, Mutex};

use gradus::Interpreter;
use gradus::cpu::Cpu;
use gradus::prelude::*;

/// What the host saw, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<f64>>>);

impl Log {
    /// Notes a scalar under a number of its own, so that different effects can be told apart.
    #[track_caller]
    fn note(&self, tag: f64, x: &Array) {
        let log = self.0.clone();
        debug_callback(move |v| log.lock().unwrap().push(tag + v[0].item::<f64>().unwrap()), &[x]);
    }

    /// The same by an ordered call, which gives the value back.
    #[track_caller]
    fn pass(&self, tag: f64, x: &Array) -> Array {
        let log = self.0.clone();
        let f = move |v: &[Array]| {
            log.lock().unwrap().push(tag + v[0].item::<f64>()?);
            Ok(vec![v[0].clone()])
        };
        io_callback(f, &["f64[]".parse().unwrap()], &[x]).remove(0)
    }

    fn take(&self) -> Vec<f64> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn scalar(x: f64) -> Array {
    Array::from(x)
}

/// Runs a function on the interpreter and on both code generators; each must have the effects that are expected.
#[track_caller]
fn on_all(log: &Log, f: impl Fn(&Array) -> Array + Send + Sync + Clone + 'static, x: &Array, expected: &[f64]) {
    let staged = |backend: &str| match backend {
        "interpreter" => jit(f.clone()).backend(Interpreter),
        "embedded" => jit(f.clone()).backend(Cpu::new().tier(Tier::Embedded)),
        _ => jit(f.clone()).backend(Cpu::new().tier(Tier::Llvm)),
    };
    log.take();
    for backend in ["interpreter", "embedded", "llvm"] {
        let f = staged(backend);
        for round in 0..2 {
            f(x).ok().unwrap_or_else(|e| panic!("{backend}: {e}"));
            assert_eq!(log.take(), expected, "{backend}, call {round}");
        }
    }
}

#[test]
fn row_e1_outside_of_a_trace_effects_happen_at_once() -> Result<()> {
    let log = Log::default();
    log.note(0.0, &scalar(1.0));
    assert_eq!(log.pass(10.0, &scalar(2.0)).item::<f64>()?, 2.0);
    assert_eq!(log.take(), [1.0, 12.0]);
    Ok(())
}

#[test]
fn row_e1_order_is_kept_and_nothing_is_dropped() {
    let log = Log::default();
    let l = log.clone();
    // Nothing that is shown is used, and what is computed between is large and small.
    let f = move |x: &Array| {
        let wide = Array::iota(DType::F64, [1000], 0) * x;
        l.note(100.0, &wide.sum());
        l.note(200.0, x);
        let y = l.pass(300.0, &(x + 1.0_f64));
        l.note(400.0, &(&wide + &y).max());
        l.note(200.0, x);
        l.pass(500.0, &y);
        x * y
    };
    on_all(&log, f, &scalar(2.0), &[100.0 + 999_000.0, 202.0, 303.0, 400.0 + 2001.0, 202.0, 503.0]);
}

#[test]
fn row_e1_order_in_branches_loops_and_calls() {
    let log = Log::default();
    let l = log.clone();
    let branch = move |x: &Array| {
        let (a, b) = (l.clone(), l.clone());
        l.note(10.0, x);
        let y = cond(
            x.gt(0.0_f64),
            move |x: &Array| {
                a.note(20.0, x);
                x * 2.0_f64
            },
            move |x: &Array| {
                b.note(30.0, x);
                b.note(40.0, x);
                x.clone()
            },
            x,
        );
        l.note(50.0, &y);
        y
    };
    on_all(&log, branch.clone(), &scalar(1.0), &[11.0, 21.0, 52.0]);
    on_all(&log, branch, &scalar(-1.0), &[9.0, 29.0, 39.0, 49.0]);
    let l = log.clone();
    let looped = move |x: &Array| {
        let s = l.clone();
        let (y, _) = scan(
            move |c: &Array, e: &Array| {
                s.note(10.0, c);
                let d = s.pass(20.0, e);
                (c + d, ())
            },
            x.clone(),
            &Array::from([1.0_f64, 2.0, 3.0]),
        );
        l.note(50.0, &y);
        let w = l.clone();
        while_loop(
            |c: &Array| c.lt(20.0_f64),
            move |c: &Array| {
                w.note(60.0, c);
                c * 2.0_f64
            },
            y,
        )
    };
    on_all(&log, looped, &scalar(0.0), &[10.0, 21.0, 11.0, 22.0, 13.0, 23.0, 56.0, 66.0, 72.0]);
    let l = log.clone();
    let inner = jit(move |x: &Array| {
        l.note(10.0, x);
        x + 1.0_f64
    });
    let l = log.clone();
    let nested = Arc::new(inner);
    let calls = move |x: &Array| {
        l.note(0.0, x);
        let y = nested(x);
        let z = nested(&y);
        // Called on a number while the outer function is traced: it is part of the outer program all the same.
        let w = nested(&Array::from(5.0_f64));
        l.note(20.0, &z);
        z + w
    };
    on_all(&log, calls, &scalar(1.0), &[1.0, 11.0, 12.0, 15.0, 23.0]);
}

#[test]
fn row_e1_a_loop_of_nothing_but_effects_runs() {
    let log = Log::default();
    let l = log.clone();
    let f = move |x: &Array| {
        let s = l.clone();
        gradus::map(move |e: &Array| s.note(0.0, e), &Array::from([1.0_f64, 2.0]));
        let s = l.clone();
        cond(x.gt(0.0_f64), move |x: &Array| s.note(10.0, x), |_: &Array| (), x);
        x.clone()
    };
    let unit = |f: &dyn Fn(&Array) -> Array| f(&scalar(3.0));
    drop(unit(&f));
    assert_eq!(log.take(), [1.0, 2.0, 13.0]);
    on_all(&log, f, &scalar(3.0), &[1.0, 2.0, 13.0]);
}

/// What reverse mode has on each backend, staged and not: forward effects, once.
#[track_caller]
fn on_all_and_eager(log: &Log, f: impl Fn(&Array) -> Array + Send + Sync + Clone + 'static, x: f64, expected: &[f64]) {
    log.take();
    grad(f.clone())(&scalar(x)).ok().unwrap_or_else(|e| panic!("eager: {e}"));
    assert_eq!(log.take(), expected, "eager");
    let g = f.clone();
    let staged = move |x: &Array| grad(g.clone())(x);
    on_all(log, staged, &scalar(x), expected);
    let staged = move |x: &Array| jvp(f.clone(), x, &Array::from(1.0_f64)).1;
    on_all(log, staged, &scalar(x), expected);
}

#[test]
fn row_e1_derivatives_have_forward_effects_once() -> Result<()> {
    let log = Log::default();
    let l = log.clone();
    let plain = move |x: &Array| {
        l.note(10.0, x);
        let y = x.sin();
        l.note(20.0, &(&y * 0.0_f64));
        y * x
    };
    on_all_and_eager(&log, plain.clone(), 2.0, &[12.0, 20.0]);
    // The value passes by as if nothing looked.
    assert_eq!(
        grad(plain.clone())(&scalar(2.0)).item::<f64>()?,
        grad(|x: &Array| x.sin() * x)(&scalar(2.0)).item::<f64>()?
    );
    log.take();
    grad(grad(plain))(&scalar(2.0)).item::<f64>()?;
    assert_eq!(log.take(), [12.0, 20.0]);

    let l = log.clone();
    let branch = move |x: &Array| {
        let (a, b) = (l.clone(), l.clone());
        let yes = move |x: &Array| {
            a.note(20.0, x);
            x * x
        };
        let no = move |x: &Array| {
            b.note(30.0, x);
            x.sin()
        };
        cond(x.gt(0.0_f64), yes, no, x)
    };
    on_all_and_eager(&log, branch, 3.0, &[23.0]);

    let l = log.clone();
    let scanned = move |x: &Array| {
        let l = l.clone();
        let step = move |c: &Array, e: &Array| {
            l.note(10.0, e);
            let y = c * e;
            l.note(100.0, &(&y * 0.0_f64));
            (y.sin(), ())
        };
        scan(step, x.clone(), &Array::from([1.0_f64, 2.0])).0
    };
    on_all_and_eager(&log, scanned, 3.0, &[11.0, 100.0, 12.0, 100.0]);

    for (steps, unroll) in [(Steps::Every(2), 1), (Steps::Recursive, 1), (Steps::Keep, 2)] {
        let l = log.clone();
        let cut = move |x: &Array| {
            let l = l.clone();
            let step = move |c: &Array, e: &Array| {
                l.note(10.0, e);
                ((c * e).sin(), ())
            };
            let options = ScanOptions::new().steps(steps).unroll(unroll);
            options.scan(step, x.clone(), &Array::from([1.0_f64, 2.0, 3.0])).0
        };
        on_all_and_eager(&log, cut, 3.0, &[11.0, 12.0, 13.0]);
    }

    // A staged function inside: its call is split in two, and the first half shows.
    let l = log.clone();
    let inner = Arc::new(jit(move |x: &Array| {
        l.note(10.0, x);
        x.sin() * x
    }));
    on_all_and_eager(&log, move |x: &Array| inner(x) * 2.0_f64, 2.0, &[12.0]);

    for history in [History::Checkpoints(3), History::Limit(6)] {
        let l = log.clone();
        let looped = move |x: &Array| {
            let l = l.clone();
            let step = move |c: &Array| {
                l.note(10.0, c);
                c * c * 2.0_f64
            };
            WhileOptions::new().history(history).while_loop(|c: &Array| c.lt(1000.0_f64), step, x.clone())
        };
        on_all_and_eager(&log, looped, 1.0, &[11.0, 12.0, 18.0, 138.0]);
    }
    Ok(())
}

#[test]
fn row_e1_an_ordered_effect_in_a_derivative_happens_once_and_its_result_is_kept() -> Result<()> {
    let log = Log::default();
    let l = log.clone();
    let scaled = move |x: &Array| {
        let l = l.clone();
        let step = move |c: &Array, e: &Array| {
            let seen = l.pass(10.0, e);
            (c * seen, ())
        };
        scan(step, x.clone(), &Array::from([2.0_f64, 3.0])).0
    };
    on_all_and_eager(&log, scaled.clone(), 1.0, &[12.0, 13.0]);
    assert_eq!(jit(grad(scaled))(&scalar(1.0)).item::<f64>()?, 6.0);
    log.take();
    // A loop that is computed again cannot ask the host again; with a limit nothing is computed again.
    let by = |history: History, log: Log| {
        grad(move |x: &Array| {
            let log = log.clone();
            let step = move |(c, k): &(Array, Array)| (c * log.pass(0.0, &k.stop_gradient()), k + 1.0_f64);
            let more = |(_, k): &(Array, Array)| k.lt(4.0_f64);
            WhileOptions::new().history(history).while_loop(more, step, (x.clone(), Array::from(2.0_f64))).0
        })
    };
    let e = by(History::Checkpoints(4), log.clone())(&scalar(1.0)).item::<f64>().unwrap_err();
    assert!(e.to_string().contains("History::Limit") && e.to_string().contains("effects.rs:"), "{e}");
    assert_eq!(log.take(), Vec::<f64>::new());
    assert_eq!(by(History::Limit(4), log.clone())(&scalar(1.0)).item::<f64>()?, 6.0);
    assert_eq!(log.take(), [2.0, 3.0]);
    Ok(())
}

#[test]
fn row_e1_a_checkpoint_computes_again_and_shows_once() -> Result<()> {
    let log = Log::default();
    let l = log.clone();
    let layer = move |x: &Array| {
        l.note(10.0, x);
        x.sin().exp().tanh()
    };
    let (one, inner) = (layer.clone(), layer.clone());
    let twice = move |x: &Array| checkpoint(one.clone())(x) + checkpoint(inner.clone())(&(x + 1.0_f64));
    on_all_and_eager(&log, twice.clone(), 1.0, &[11.0, 12.0]);
    // It is still a checkpoint: what it computes is not kept.
    let silent = |x: &Array| checkpoint(|x: &Array| x.sin().exp().tanh())(x).sum();
    let shown = move |x: &Array| {
        let l = layer.clone();
        checkpoint(move |x: &Array| l(x))(x).sum()
    };
    let (_, with) = vjp(shown.clone(), &scalar(0.3));
    let (_, without) = vjp(silent, &scalar(0.3));
    assert_eq!(with.residual_bytes(), without.residual_bytes());
    log.take();
    let again = Policy::RepeatEffects(Box::new(Policy::Nothing));
    let repeated = move |x: &Array| checkpoint(shown.clone()).policy(again.clone())(x);
    let g = grad(repeated);
    g(&scalar(1.0)).item::<f64>()?;
    assert_eq!(log.take(), [11.0, 11.0]);
    let text = jit(move |x: &Array| twice(x)).trace(&scalar(1.0))?.program().to_string();
    assert!(text.contains("does print") && text.contains("debug_callback{id="), "{text}");
    Ok(())
}

#[test]
fn row_e1_a_batch_shows_its_examples_in_order() -> Result<()> {
    let log = Log::default();
    let l = log.clone();
    let f = move |x: &Array, scale: &Array| {
        l.note(10.0, x);
        l.note(20.0, &(x * scale));
        l.note(100.0, scale);
        x * scale
    };
    let (xs, scale) = (Array::from([1.0_f64, 2.0]), scalar(3.0));
    // What does not depend on the batch happens once.
    let expected = [11.0, 12.0, 23.0, 26.0, 103.0];
    vmap(f.clone()).axes((Some(0), None))(&xs, &scale).to_vec::<f64>()?;
    assert_eq!(log.take(), expected);
    let g = f.clone();
    on_all(&log, move |xs: &Array| vmap(g.clone()).axes((Some(0), None))(xs, &scalar(3.0)), &xs, &expected);
    // Batches of batches, and derivatives inside.
    let inner = move |row: &Array| vmap(f.clone()).axes((Some(0), None))(row, &scalar(3.0)).sum();
    let rows = Array::from([[1.0_f64, 2.0], [3.0, 4.0]]);
    let slopes = vmap(grad(inner))(&rows);
    assert_eq!(slopes.to_vec::<f64>()?, [3.0; 4]);
    assert_eq!(log.take(), [11.0, 12.0, 13.0, 14.0, 23.0, 26.0, 29.0, 32.0, 103.0]);
    Ok(())
}

#[test]
fn row_e1_ordered_effects_and_branches_by_example_are_refused_in_batches() {
    let log = Log::default();
    let l = log.clone();
    let e = vmap(move |x: &Array| l.pass(0.0, x))(&Array::from([1.0_f64])).ok().unwrap_err().to_string();
    assert!(e.contains("io_callback") && e.contains("batched by the `vmap` at") && e.contains("`gradus::map`"), "{e}");
    assert_eq!(e.matches("tests/effects.rs:").count(), 2, "both places: {e}");
    // Inside a loop, and on a value that is the same for all examples.
    let l = log.clone();
    let inside = move |x: &Array| {
        let l = l.clone();
        fori_loop(0, 2, move |_, y: &Array| y + l.pass(0.0, &Array::from(1.0_f64)), x.clone())
    };
    let e = vmap(inside)(&Array::from([1.0_f64])).ok().unwrap_err().to_string();
    assert!(e.contains("io_callback") && e.matches("tests/effects.rs:").count() == 2, "{e}");
    let l = log.clone();
    let branch = move |x: &Array| {
        let l = l.clone();
        let yes = move |x: &Array| {
            l.note(0.0, x);
            x.clone()
        };
        cond(x.gt(0.0_f64), yes, |x: &Array| x.clone(), x)
    };
    let e = vmap(branch)(&Array::from([1.0_f64, -1.0])).ok().unwrap_err().to_string();
    assert!(e.contains("for some examples and not for others"), "{e}");
    assert_eq!(log.take(), Vec::<f64>::new());
}

#[test]
fn row_e1_pure_callbacks_compute() -> Result<()> {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = calls.clone();
    let cube = move |v: &[Array]| {
        seen.lock().unwrap().push(v[0].shape().to_string());
        Ok(vec![&v[0] * &v[0] * &v[0]])
    };
    let one: Type = "f64[]".parse()?;
    let (c, ty) = (cube.clone(), one.clone());
    let f = move |x: &Array| pure_callback(c.clone(), std::slice::from_ref(&ty), &[x]).remove(0);
    assert_eq!(f(&scalar(2.0)).item::<f64>()?, 8.0);
    // Nobody uses it: it may vanish.
    let g = f.clone();
    calls.lock().unwrap().clear();
    jit(move |x: &Array| {
        g(x);
        x.clone()
    })(&scalar(2.0))
    .item::<f64>()?;
    assert!(calls.lock().unwrap().is_empty());
    let xs = Array::from([1.0_f64, 2.0, 3.0]);
    // The calls are counted, and a verified one may make them again.
    let each = jit(vmap(f.clone())).verify_calls(Verify::Off);
    assert_eq!(each(&xs).to_vec::<f64>()?, [1.0, 8.0, 27.0]);
    assert_eq!(*calls.lock().unwrap(), ["[]", "[]", "[]"]);
    calls.lock().unwrap().clear();
    let whole = move |x: &Array| {
        PureCallbackOptions::new().batched().pure_callback(cube.clone(), std::slice::from_ref(&one), &[x]).remove(0)
    };
    assert_eq!(jit(vmap(whole)).verify_calls(Verify::Off)(&xs).to_vec::<f64>()?, [1.0, 8.0, 27.0]);
    assert_eq!(*calls.lock().unwrap(), ["[3]"]);
    // A rule of the user's makes it differentiable.
    let e = grad(f.clone())(&scalar(2.0)).item::<f64>().unwrap_err().to_string();
    assert!(e.contains("custom_jvp") && e.contains("pure_callback"), "{e}");
    let h = f.clone();
    let with_rule = custom_jvp(f, move |x: &Array, x_dot: &Array| (h(x), x * x * 3.0_f64 * x_dot));
    assert_eq!(jit(grad(with_rule))(&scalar(2.0)).item::<f64>()?, 12.0);
    Ok(())
}

#[test]
fn row_e1_a_check_ends_the_run_with_an_error() -> Result<()> {
    let log = Log::default();
    let staged = |backend: usize| {
        let l = log.clone();
        let f = move |x: &Array| {
            l.note(0.0, &x.sum());
            debug_check!(x.ge(0.0_f64), "roots of {x:.1} and {k}", x = x, k = 7);
            l.note(100.0, &x.sum());
            x.sqrt()
        };
        match backend {
            0 => jit(f).backend(Interpreter),
            1 => jit(f).backend(Cpu::new().tier(Tier::Embedded)),
            _ => jit(f).backend(Cpu::new().tier(Tier::Llvm)),
        }
    };
    for backend in 0..3 {
        let f = staged(backend);
        assert_eq!(f(&Array::from([1.0_f64, 4.0])).to_vec::<f64>()?, [1.0, 2.0]);
        assert_eq!(log.take(), [5.0, 105.0]);
        let e = f(&Array::from([4.0_f64, -1.0])).to_vec::<f64>().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Check);
        let text = e.to_string();
        assert!(
            text.contains("[ 4.0 -1.0]") && text.contains("first at [1]") && text.contains("effects.rs:"),
            "{text}"
        );
        assert_eq!(log.take(), [3.0], "nothing happens after it");
    }
    Ok(())
}

#[test]
fn row_e1_prints_have_format_arguments() -> Result<()> {
    let f = jit(|x: &Array| {
        let loss = x.sum();
        debug_print!("starts");
        debug_print!("loss {} at step {}", loss, 3);
        debug_print!("{:?}, {:.2} and {mean:>8.1}|", &loss, x, mean = x.mean());
        debug_print!("{first} before {second:.1}", first = loss.clone(), second = x.index(0));
        loss
    });
    for _ in 0..2 {
        let (y, text) = capture_prints(|| f(&Array::from([0.5_f64, 0.25])).item::<f64>());
        assert_eq!(y?, 0.75);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["starts", "loss 0.75 at step 3"]);
        assert_eq!(lines[2], "Array(f64[]: 0.75), [0.50 0.25] and      0.4|");
        assert_eq!(lines[3..], ["0.75 before 0.5"]);
    }
    // A function that holds nothing is the same each time: a second staging finds the code of the first.
    fn shows(x: &Array) -> Array {
        debug_print!("{}", x);
        x * 3.0_f64
    }
    let (a, b) = (jit(shows), jit(shows));
    let (_, text) = capture_prints(|| (a(&scalar(1.0)), b(&scalar(2.0))));
    assert_eq!(text, "1.0\n2.0\n");
    assert_eq!((a.stats().compiles, b.stats().shared), (1, 1));
    Ok(())
}

#[test]
fn row_e1_a_host_effect_happens_once_for_each_trace() -> Result<()> {
    let traced = Arc::new(Mutex::new(0));
    let (count, log) = (traced.clone(), Log::default());
    let l = log.clone();
    let f = jit(move |x: &Array| {
        *count.lock().unwrap() += 1;
        l.note(0.0, x);
        x.clone()
    });
    for x in [1.0, 2.0, 3.0] {
        f(&scalar(x)).item::<f64>()?;
    }
    assert_eq!((*traced.lock().unwrap(), log.take()), (1, vec![1.0, 2.0, 3.0]));
    Ok(())
}

#[test]
fn row_e1_a_panic_is_an_error_of_the_call_and_nothing_else() -> Result<()> {
    let at_two = |x: &Array| {
        debug_callback(|v| assert!(v[0].item::<f64>().unwrap() < 2.0, "too many"), &[x]);
        x + 1.0_f64
    };
    let looped = move |x: &Array| fori_loop(0, 5, move |_, y: &Array| at_two(y), x.clone());
    let staged = [
        jit(looped).backend(Interpreter),
        jit(looped).backend(Cpu::new().tier(Tier::Embedded)),
        jit(looped).backend(Cpu::new().tier(Tier::Llvm)),
    ];
    for f in staged {
        for _ in 0..2 {
            let e = f(&scalar(0.0)).item::<f64>().unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Callback);
            let text = e.to_string();
            assert!(text.contains("panicked: too many") && text.contains("tests/effects.rs:"), "{text}");
        }
        assert_eq!(f(&scalar(-5.0)).item::<f64>()?, 0.0, "it goes on to work");
    }
    // From many threads at once.
    let f = jit(looped);
    std::thread::scope(|s| {
        for i in 0..8 {
            let f = &f;
            s.spawn(move || {
                assert_eq!(f(&scalar(if i % 2 == 0 { 0.0 } else { -9.0 })).item::<f64>().is_err(), i % 2 == 0)
            });
        }
    });
    // Outside of any trace.
    let e = debug_callback(|_| panic!("at once"), &[]).ok().unwrap_err();
    assert!(e.to_string().contains("at once") && e.place().line().is_some(), "{e}");
    let out = io_callback(|_| panic!("no numbers"), &["f64[2]".parse()?], &[]);
    assert!(out.len() == 1 && out[0].error().is_some());
    // An error that the host gives comes out as it is.
    let e = jit(|x: &Array| {
        io_callback(|v| Ok(vec![v[0].clone().reshape([7]).ok()?]), &["f64[7]".parse().unwrap()], &[x]).remove(0)
    });
    let e = e(&scalar(1.0)).ok().unwrap_err();
    assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("given by the `io_callback` at"), "{e}");
    Ok(())
}

#[test]
fn row_e1_checks_outside_of_a_trace_in_derivatives_and_in_batches() -> Result<()> {
    assert!(debug_check!(true).ok().is_ok());
    let x = Array::from([1.0_f64, -2.0]);
    let e = debug_check!(x.gt(0.0_f64), "not all of {} are positive", x).ok().unwrap_err();
    assert_eq!((e.kind(), e.place().file()), (ErrorKind::Check, Some(file!())));
    assert!(e.message() == "not all of [ 1.0 -2.0] are positive", "{e}");
    let e = debug_check!(x.clone()).ok().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::DType);
    let f = |x: &Array| {
        debug_check!(x.gt(0.0_f64), "{} is not positive", x);
        x.sqrt()
    };
    assert_eq!(jit(grad(f))(&scalar(4.0)).item::<f64>()?, 0.25);
    let e = jit(grad(f))(&scalar(-4.0)).item::<f64>().unwrap_err();
    assert_eq!(e.message(), "-4.0 is not positive");
    let e = grad(f)(&scalar(-4.0)).item::<f64>().unwrap_err();
    assert_eq!(e.message(), "-4.0 is not positive");
    let e = jit(vmap(f))(&Array::from([4.0_f64, -1.0, -2.0])).to_vec::<f64>().unwrap_err();
    assert!(e.message() == "-1.0 is not positive" && e.to_string().contains("in example 1 of the batch"), "{e}");
    let e = jit(vmap(vmap(f)))(&Array::from([[4.0_f64, 1.0], [1.0, -2.0]])).to_vec::<f64>().unwrap_err();
    assert!(e.to_string().contains("in example [1, 1] of the batches"), "{e}");
    Ok(())
}

#[test]
fn row_e1_errors_on_the_way_to_an_effect_are_not_lost() -> Result<()> {
    // What is shown carries an error, and nobody uses it.
    let bad = jit(|x: &Array| {
        debug_print!("{}", x.reshape([7]));
        x.clone()
    });
    let (e, text) = capture_prints(|| bad(&scalar(1.0)).item::<f64>().unwrap_err());
    assert_eq!((e.kind(), text.as_str()), (ErrorKind::Shape, ""));
    // A function that fails is run once more for the structure of its result; effects of that run do not happen.
    let failing = jit(|x: &Array| {
        debug_print!("never");
        x.item::<f64>().map_or_else(Array::from, Array::from)
    });
    let (e, text) = capture_prints(|| failing(&scalar(1.0)).item::<f64>().unwrap_err());
    assert_eq!((e.kind(), text.as_str()), (ErrorKind::NotConcrete, ""));
    // What the host gave has no number while tracing, even with values at hand.
    let read = grad(|x: &Array| {
        let y = io_callback(|v| Ok(v.to_vec()), &["f64[]".parse().unwrap()], &[&x.stop_gradient()]).remove(0);
        x * y.item::<f64>().unwrap_or(1.0)
    });
    assert_eq!(read(&scalar(1.0)).item::<f64>().unwrap_err().kind(), ErrorKind::NotConcrete);
    Ok(())
}

#[test]
fn row_e1_a_callback_in_program_text() -> Result<()> {
    let f = jit(vmap(|x: &Array| {
        debug_callback(|_| {}, &[x]);
        x.clone()
    }));
    let traced = f.trace(&Array::spec("f64[B]"))?;
    let p = traced.program();
    assert!(p.to_string().contains("batch=[[B,[true]]]"), "{p}");
    assert_eq!(p.to_string().parse::<Program>()?, *p, "while the function lives");
    gradus::extend::interpret(p, &[Array::from([1.0_f64, 2.0])])?;
    let gone = "fn f(x0: f64[]) -> f64[] does print {\n  debug_callback{id=987654321, batch=[]} x0\n  return x0\n}\n";
    let e = gone.parse::<Program>().unwrap_err().to_string();
    assert!(e.contains("function 987654321 of the host") && e.contains("trace the function again"), "{e}");
    Ok(())
}

#[test]
fn row_e1_gradients_pass_the_host_in_rules_of_users() -> Result<()> {
    // Cotangents are shown in the backward pass of a rule.
    let log = Log::default();
    let l = log.clone();
    let watched = move |x: &Array| {
        let l = l.clone();
        let back = move |_: &(), bar: &Array| {
            l.note(0.0, bar);
            bar.clone()
        };
        custom_vjp(|x: &Array| x.clone(), |x: &Array| (x.clone(), ()), back)(x) * 5.0_f64
    };
    assert_eq!(grad(watched.clone())(&scalar(1.0)).item::<f64>()?, 5.0);
    assert_eq!(jit(grad(watched))(&scalar(1.0)).item::<f64>()?, 5.0);
    assert_eq!(log.take(), [5.0, 5.0]);
    // A tangent cannot be shown in reverse mode, which has none.
    let l = log.clone();
    let by_tangent = move |x: &Array| {
        let l = l.clone();
        let rule = move |x: &Array, x_dot: &Array| {
            l.note(0.0, x_dot);
            (x.clone(), x_dot.clone())
        };
        custom_jvp(|x: &Array| x.clone(), rule)(x)
    };
    assert_eq!(jvp(by_tangent.clone(), &scalar(1.0), &scalar(7.0)).1.item::<f64>()?, 7.0);
    assert_eq!(log.take(), [7.0]);
    let e = grad(by_tangent)(&scalar(1.0)).item::<f64>().unwrap_err().to_string();
    assert!(e.contains("takes a tangent") && e.contains("custom_vjp"), "{e}");
    assert_eq!(log.take(), Vec::<f64>::new());
    Ok(())
}

#[test]
fn row_e1_order_between_loops_that_would_be_one() {
    // Rows, columns and totals of one array, which share a nest where nothing stands between them.
    let log = Log::default();
    let l = log.clone();
    let f = move |x: &Array| {
        let e = (x - x.max_keep(-1)).exp();
        l.note(1e6, &e.sum());
        let soft = &e / e.sum_keep(-1);
        let total = l.pass(2e6, &soft.sum());
        let columns = (&soft * &total).sum_axes(0);
        l.note(3e6, &columns.max());
        let again = l.pass(4e6, &(&soft * &e).sum());
        let rows = (&soft * &again).sum_axes(1);
        l.note(5e6, &rows.sum());
        rows.sum() + columns.sum() + total * again
    };
    let numbers: Vec<f64> = (0..64 * 256).map(|i| (i % 7) as f64).collect();
    let x = Array::from_vec(numbers, [64, 256]);
    let staged = [
        jit(f.clone()).backend(Interpreter),
        jit(f.clone()).backend(Cpu::new().tier(Tier::Embedded)),
        jit(f.clone()).backend(Cpu::new().tier(Tier::Llvm)),
    ];
    let seen = staged.map(|g| {
        g(&x).ok().unwrap();
        log.take()
    });
    f(&x).ok().unwrap();
    let want = log.take();
    assert_eq!(want.len(), 5);
    assert!(want.windows(2).all(|w| w[0] < w[1]), "{want:?}");
    for have in seen {
        // Products that only a sum takes in are rounded with it.
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-6;
        assert!(have.len() == 5 && have.iter().zip(&want).all(near), "{have:?} is not {want:?}");
    }
}

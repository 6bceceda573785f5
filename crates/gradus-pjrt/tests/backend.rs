//! Programs of Gradus on XLA's CPU plugin, through the pipeline: numbers against the interpreter, sizes, functions of the host, donation, disk.

mod common;

use std::sync::{Arc, Mutex};

use common::cpu;
use gradus_core::error::{Error, ErrorKind, Location};
use gradus_core::hunt::Hunt;
use gradus_core::oracle::Verify;
use gradus_core::pipeline::Pipeline;
use gradus_core::primitives::Op;
use gradus_core::primitives::effects::{Callback, Host, Kind};
use gradus_core::trace::{bind_all, trace};
use gradus_core::{Array, Backend, Executable, Mode, Program, Result, interpret};
use gradus_pjrt::{Compiled, Pjrt};

fn code(p: &Pjrt, program: &Program) -> Arc<dyn Executable> {
    Pipeline::on(p.clone()).code(program).unwrap_or_else(|e| panic!("{e}\n{program}"))
}

fn parsed(text: &str) -> Program {
    text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn traced(inputs: &[Array], f: impl FnOnce(&[Array]) -> Vec<Array>) -> Program {
    trace("f", inputs, Mode::Abstract, f).unwrap().program
}

#[test]
fn a_program_gives_what_the_interpreter_gives() {
    let Some(p) = cpu() else { return };
    let program = parsed(
        "fn f(x0: f64[3], x1: f64[3]) -> (f64[3], f64[], f64[3]) {\n  x2: f64[3] = mul x0 x1\n  x3: f64[] = reduce_sum{axes=[0]} x2\n  \
         x4: f64[3] = call{program=fn g(x0: f64[3]) -> f64[3] {\n    x1: f64[3] = neg x0\n    return x1\n  }} x0\n  return x2, x3, x4\n}\n",
    );
    let inputs = [Array::from([1.0, 2.0, 3.0]), Array::from([0.5, -2.0, 4.0])];
    let out = code(&p, &program).run(&inputs).unwrap();
    let want = interpret(&program, &inputs).unwrap();
    assert_eq!(out[1].item::<f64>().unwrap(), 8.5);
    for (have, want) in out.iter().zip(&want) {
        assert!(have.is_identical(want), "{have} {want}");
        assert_eq!(have.device().unwrap().name(), "cpu:0");
    }
}

#[test]
fn results_stay_on_the_device_and_go_into_the_next_call() {
    let Some(p) = cpu() else { return };
    let p = p.device_count(3);
    let f = code(&p, &parsed("fn f(x0: f32[1000]) -> f32[1000] {\n  x1: f32[1000] = add x0 x0\n  return x1\n}\n"));
    let client = p.client().unwrap();
    let mut x = Array::full([1000], 1.0f32);
    let before = client.traffic();
    for _ in 0..10 {
        x = f.run(&[x]).unwrap().remove(0);
    }
    let after = client.traffic();
    assert_eq!((after.up - before.up, after.down - before.down), (4000, 0), "one array up, nothing down");
    assert_eq!(x.to_vec::<f32>().unwrap(), [1024.0; 1000]);
    assert_eq!(client.traffic().down - before.down, 4000);
    // Another device of the client is reached without the host.
    let there = x.to(&p.clone().device(2).place().unwrap()).unwrap();
    assert_eq!(there.device().unwrap().name(), "cpu:2");
    let back = f.run(&[there]).unwrap();
    assert_eq!(back[0].to_vec::<f32>().unwrap(), [2048.0; 1000]);
    assert_eq!(client.traffic().up, after.up);
}

#[test]
fn sizes_are_compiled_once_each_and_kept_within_a_bound() {
    let Some(p) = cpu() else { return };
    let program = parsed(
        "fn f(x0: f64[N]) -> f64[] {\n  x1: f64[N] = mul x0 x0\n  x2: f64[] = reduce_sum{axes=[0]} x1\n  return x2\n}\n",
    );
    let f = code(&p, &program);
    let of = |n: usize| f.run(&[Array::full([n], 2.0f64)]).unwrap()[0].item::<f64>().unwrap();
    for n in [3, 5, 3, 0, 5, 3] {
        assert_eq!(of(n), 4.0 * n as f64);
    }
    let codes = |f: &Arc<dyn Executable>| f.clone().as_any().downcast::<Compiled>().unwrap().codes();
    assert_eq!((codes(&f).made, codes(&f).kept), (3, 3));
    for n in 10..50 {
        assert_eq!(of(n), 4.0 * n as f64);
    }
    let after = codes(&f);
    assert_eq!((after.made, after.kept, after.dropped), (43, 32, 11));
    assert!(f.run(&[Array::full([2, 2], 1.0f64)]).is_err());
    assert!(f.run(&[]).is_err());
}

#[test]
fn wrong_inputs_are_refused_before_the_device_sees_them() {
    let Some(p) = cpu() else { return };
    let f = code(&p, &parsed("fn f(x0: f64[3]) -> f64[3] {\n  x1: f64[3] = neg x0\n  return x1\n}\n"));
    let e = |inputs: &[Array]| f.run(inputs).unwrap_err();
    assert!(e(&[]).message().contains("takes 1 input, not 0"));
    assert!(e(&[Array::from([1.0f32; 3])]).message().contains("f32[3]"));
    assert!(e(&[Array::spec("f64[3]")]).message().contains("no numbers"));
    assert_eq!(e(&[Array::from(Error::new(ErrorKind::Axis, "mine"))]).kind(), ErrorKind::Axis);
}

type Log = Arc<Mutex<Vec<f64>>>;

/// A call of the host that notes the sum of what it is given, and the thread.
fn looking(log: &Log, kind: Kind) -> Op {
    let (log, thread) = (log.clone(), std::thread::current().id());
    let host = Host::new(Location::caller(), move |inputs| {
        assert_eq!(std::thread::current().id(), thread, "the thread that runs the program calls");
        log.lock().unwrap().push(inputs[0].to_vec::<f64>()?.iter().sum());
        Ok(Vec::new())
    });
    Op::new(Callback::watching(kind, host))
}

#[test]
fn functions_of_the_host_are_called_in_order_by_the_callers_thread() {
    let Some(p) = cpu() else { return };
    let log = Log::default();
    let program = traced(&[Array::spec("f64[4]")], |x| {
        for k in 1..=5 {
            bind_all(looking(&log, Kind::Debug), &[&x[0] * f64::from(k)]);
        }
        vec![&x[0] + 1.0]
    });
    let f = code(&p, &program);
    for _ in 0..20 {
        log.lock().unwrap().clear();
        let out = f.run(&[Array::from([1.0, 2.0, 3.0, 4.0])]).unwrap();
        assert_eq!(*log.lock().unwrap(), [10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!(out[0].to_vec::<f64>().unwrap(), [2.0, 3.0, 4.0, 5.0]);
    }
}

#[test]
fn functions_of_the_host_give_arrays_of_every_kind() {
    let Some(p) = cpu() else { return };
    let program = traced(&[Array::spec("f32[2,3]"), Array::spec("i64[]")], |x| {
        let host = Host::new(Location::caller(), |inputs: &[Array]| {
            let n = inputs[1].item::<i64>()?;
            Ok(vec![inputs[0].t().ok()?, Array::from([n > 2, n > 5]), Array::zeros::<f64>([0, n as usize])])
        });
        let results = ["f32[3,2]", "bool[2]", "f64[0,4]"].map(|t| t.parse().unwrap()).to_vec();
        bind_all(Op::new(Callback::giving(Kind::Pure, host, results, false)), x).into_vec()
    });
    let x = Array::from([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).reshape([2, 3]);
    let out = code(&p, &program).run(&[x, Array::from(4i64)]).unwrap();
    assert_eq!(out[0].to_vec::<f32>().unwrap(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(out[1].to_vec::<bool>().unwrap(), [true, false]);
    assert_eq!(out[2].known_dims().unwrap(), [0, 4]);
}

#[test]
fn an_error_of_the_host_comes_back_as_it_was() {
    let Some(p) = cpu() else { return };
    let place = Location::caller();
    let program = traced(&[Array::spec("f64[]")], |x| {
        let host = Host::new(place, |inputs: &[Array]| {
            let v = inputs[0].item::<f64>()?;
            if v < 0.0 { Err(Error::new(ErrorKind::Check, format!("{v} is negative"))) } else { Ok(Vec::new()) }
        });
        bind_all(Op::new(Callback::watching(Kind::Check, host)), x);
        vec![x[0].sqrt()]
    });
    let f = code(&p, &program);
    assert_eq!(f.run(&[Array::from(4.0)]).unwrap()[0].item::<f64>().unwrap(), 2.0);
    let e = f.run(&[Array::from(-4.0)]).unwrap_err();
    assert_eq!((e.kind(), e.message(), e.place()), (ErrorKind::Check, "-4 is negative", place));
    assert_eq!(f.run(&[Array::from(9.0)]).unwrap()[0].item::<f64>().unwrap(), 3.0, "the next run is not hurt");
}

#[test]
fn the_operation_that_makes_a_nan_is_found() {
    let Some(p) = cpu() else { return };
    let program = traced(&[Array::spec("f64[3]")], |x| vec![x[0].log() * 0.0]);
    let hunting = Pipeline { hunt: Hunt::Nan, ..Pipeline::on(p) };
    let f = hunting.code(&program).unwrap();
    assert_eq!(f.run(&[Array::from([1.0, 2.0, 3.0])]).unwrap()[0].to_vec::<f64>().unwrap(), [0.0; 3]);
    let e = f.run(&[Array::from([1.0, -2.0, 3.0])]).unwrap_err();
    assert!(e.kind() == ErrorKind::NotFinite && e.to_string().contains("log"), "{e}");
}

#[test]
fn a_run_that_is_verified_notes_what_the_host_gave() {
    let Some(p) = cpu() else { return };
    let count = Arc::new(Mutex::new(0.0));
    let counted = count.clone();
    let program = traced(&[Array::spec("f64[]")], |x| {
        let host = Host::new(Location::caller(), move |_: &[Array]| {
            *counted.lock().unwrap() += 1.0;
            Ok(vec![Array::from(*counted.lock().unwrap())])
        });
        let given = bind_all(Op::new(Callback::giving(Kind::Io, host, vec!["f64[]".parse().unwrap()], false)), &[]);
        vec![&x[0] + &given[0]]
    });
    let mut pipeline = Pipeline::on(p);
    pipeline.running.verify = Verify::Every;
    let (f, _) = pipeline.make_ready(&pipeline.optimize(&program).unwrap()).unwrap();
    for n in 1..4 {
        let out = f.run(&[Array::from(10.0)]).unwrap();
        assert_eq!(out[0].item::<f64>().unwrap(), 10.0 + f64::from(n));
    }
    assert_eq!(*count.lock().unwrap(), 3.0, "the run that is made to compare calls nobody");
}

#[test]
fn a_panic_of_the_host_is_an_error() {
    let Some(p) = cpu() else { return };
    let program = traced(&[Array::spec("f64[]")], |x| {
        let host = Host::new(Location::caller(), |_: &[Array]| -> Result<Vec<Array>> { panic!("too late") });
        bind_all(Op::new(Callback::watching(Kind::Io, host)), x);
        vec![x[0].clone()]
    });
    let e = code(&p, &program).run(&[Array::from(4.0)]).unwrap_err();
    assert!(e.kind() == ErrorKind::Callback && e.message().contains("too late"), "{e}");
}

#[test]
fn many_threads_call_the_host_each_for_itself() {
    let Some(p) = cpu() else { return };
    std::thread::scope(|s| {
        for t in 0..6 {
            let p = &p;
            s.spawn(move || {
                let log = Log::default();
                let program = traced(&[Array::spec("f64[3]")], |x| {
                    bind_all(looking(&log, Kind::Io), &[&x[0] * 2.0]);
                    vec![x[0].exp()]
                });
                let f = code(p, &program);
                for i in 0..50 {
                    let v = f64::from(t * i);
                    f.run(&[Array::from([v; 3])]).unwrap();
                    assert_eq!(log.lock().unwrap().pop(), Some(6.0 * v));
                }
            });
        }
    });
}

#[test]
fn what_is_given_away_is_written_over_and_what_is_held_is_not() {
    let Some(p) = cpu() else { return };
    let f = code(
        &p,
        &parsed("fn f(x0: f32[4096], x1: f32[4096]) -> f32[4096] {\n  x2: f32[4096] = add x0 x1\n  return x2\n}\n"),
    );
    let place = p.place().unwrap();
    let on = |v: f32| Array::full([4096], v).to(&place).unwrap();
    let (x, y) = (on(1.0), on(2.0));
    // Given away and held: nothing happens to it.
    let out = f.run_owned(vec![x.clone(), y.clone()]).unwrap();
    assert_eq!((out[0].to_vec::<f32>().unwrap()[0], x.to_vec::<f32>().unwrap()[0]), (3.0, 1.0));
    // A chain of calls that nobody else looks into.
    let mut z = on(0.0);
    for _ in 0..100 {
        z = f.run_owned(vec![z, y.clone()]).unwrap().remove(0);
    }
    assert_eq!(z.to_vec::<f32>().unwrap(), [200.0; 4096]);
    assert_eq!(y.to_vec::<f32>().unwrap(), [2.0; 4096]);
    // The same array twice is held twice.
    let out = f.run_owned(vec![z.clone(), z]).unwrap();
    assert_eq!(out[0].to_vec::<f32>().unwrap(), [400.0; 4096]);
}

#[test]
fn code_is_kept_on_disk_and_what_is_damaged_is_made_again() {
    let Some(p) = cpu() else { return };
    let folder = std::env::temp_dir().join(format!("gradus_pjrt_disk_{}", std::process::id()));
    gradus_cpu::set_disk_cache(&folder, 1 << 30).unwrap();
    let program =
        parsed("fn f(x0: f64[5]) -> f64[5] {\n  x1: f64[5] = cos x0\n  x2: f64[5] = mul x1 x0\n  return x2\n}\n");
    let first = code(&p, &program);
    assert!(!first.is_loaded());
    let again = code(&p, &program);
    assert!(again.is_loaded());
    let x = [Array::from([1.0, 2.0, 3.0, 4.0, 5.0])];
    assert!(again.run(&x).unwrap()[0].is_identical(&first.run(&x).unwrap()[0]));
    assert!(!code(&p.clone().flag("xla_cpu_multi_thread_eigen", false), &program).is_loaded(), "other options");
    for file in std::fs::read_dir(&folder).unwrap().flatten() {
        let bytes = std::fs::read(file.path()).unwrap();
        std::fs::write(file.path(), &bytes[..bytes.len() / 2]).unwrap();
    }
    let made = code(&p, &program);
    assert!(!made.is_loaded());
    assert!(made.run(&x).unwrap()[0].is_identical(&first.run(&x).unwrap()[0]));
    gradus_cpu::unset_disk_cache();
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_backend_says_what_it_is() {
    let Some(p) = cpu() else { return };
    assert_eq!(p.name(), "pjrt:cpu");
    let about = p.about();
    assert!(about.contains("PJRT 0.") && about.contains("bytes up") && about.contains("xla_cpu_pjrt"), "{about}");
    assert_ne!(p.key(), p.clone().device(1).key());
    assert_ne!(p.key(), p.clone().flag("xla_backend_optimization_level", 0i64).key());
    assert_eq!(p.key(), p.clone().key());
}

#[test]
fn random_numbers_are_the_same_bits() {
    let Some(p) = cpu() else { return };
    let program = parsed(
        "fn f(x0: key[3]) -> (u32[3,4], key[3]) {\n  x1: u32[3,4] = random_bits{dtype=u32, shape=[4]} x0\n  return x1, x0\n}\n",
    );
    let keys = interpret(
        &parsed("fn k(x0: u64[3]) -> key[3] {\n  x1: key[3] = bitcast{dtype=key} x0\n  return x1\n}\n"),
        &[Array::from([1u64, 2, u64::MAX])],
    )
    .unwrap();
    let want = interpret(&program, &keys).unwrap();
    let have = code(&p, &program).run(&keys).unwrap();
    for (have, want) in have.iter().zip(&want) {
        assert!(have.is_identical(want), "{have} {want}");
    }
}

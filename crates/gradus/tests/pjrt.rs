//! Functions on a device of a plugin, as users meet it: XLA's CPU, if its plugin is found. Without it each test prints a line that says so.

use gradus::devices::{Host, Pjrt, pjrt};
use gradus::prelude::*;

fn cpu() -> Option<Pjrt> {
    match pjrt("cpu") {
        Ok(found) => Some(found),
        Err(e) => {
            println!("NOT RUN: no CPU plugin of PJRT: {}", e.message());
            None
        }
    }
}

fn close(have: &[f64], want: &[f64]) {
    assert_eq!(have.len(), want.len());
    assert!(have.iter().zip(want).all(|(h, w)| (h - w).abs() <= 1e-12 * w.abs().max(1.0)), "{have:?} {want:?}");
}

fn loss(w: &Array, x: &Array) -> Array {
    (x.matmul(w).tanh() - 0.5).square().sum()
}

#[test]
fn a_gradient_runs_there_and_stays_there() {
    let Some(cpu) = cpu() else { return };
    let x = Array::from([[0.5, -1.0], [2.0, 0.25], [1.0, 1.5]]).to(&cpu).unwrap();
    let mut w = Array::from([0.1, -0.2]).to(&cpu).unwrap();
    let mut here = w.to(&Host).unwrap();
    let step = jit(|w: &Array, x: &Array| w - grad(loss)(w, x) * 0.05);
    let there = step.clone().backend(cpu.clone());
    for _ in 0..10 {
        w = there(&w, &x);
        here = step(&here, &x.to(&Host).unwrap());
    }
    assert_eq!(w.device().unwrap().name(), x.device().unwrap().name());
    assert_ne!(w.device().unwrap().name(), "host");
    close(&w.to_vec::<f64>().unwrap(), &here.to_vec::<f64>().unwrap());
    // Nothing went up but what was moved there by hand; two numbers came back.
    let stats = there.stats().device;
    assert_eq!((stats.uploaded, stats.downloaded, stats.sizes), (0, 16, 1));
    let told = there.explain(&w, &x).to_string();
    assert!(told.contains("backend pjrt:cpu") && told.contains("16 bytes back"), "{told}");
}

#[test]
fn what_xla_refuses_is_an_error_with_the_line() {
    let Some(cpu) = cpu() else { return };
    let line = line!() + 1;
    let f = jit(|x: &Array| x.sin()).backend(cpu.device(99));
    let e = f(&Array::from([1.0])).item::<f64>().unwrap_err();
    assert_eq!((e.kind(), e.place().line()), (ErrorKind::Device, Some(line)), "{e}");
}

#[test]
fn sizes_that_are_symbols_compile_once_for_each_that_is_met() {
    let Some(cpu) = cpu() else { return };
    let f = jit(|x: &Array| (x * x).sum_axes(0)).symbolic("f64[B, 2]").backend(cpu);
    for b in [1_usize, 3, 1, 3] {
        assert_eq!(f(&Array::ones::<f64>([b, 2])).to_vec::<f64>().unwrap(), [b as f64, b as f64]);
    }
    assert_eq!(f.stats().device.sizes, 2);
}

#[test]
fn verified_calls_hold_xla_against_the_interpreter() {
    let Some(cpu) = cpu() else { return };
    let f = jit(|x: &Array| (x.sinh().log1p() - x.tanh()).sum()).backend(cpu).verify();
    let x = Array::from((1..50).map(|i| f64::from(i) / 10.0).collect::<Vec<_>>());
    let want: f64 = (1..50).map(|i| f64::from(i) / 10.0).map(|x| x.sinh().ln_1p() - x.tanh()).sum();
    assert!((f(&x).item::<f64>().unwrap() - want).abs() < 1e-9);
}

#[test]
fn an_imported_program_runs_there() {
    let Some(cpu) = cpu() else { return };
    let text = jit(grad(loss)).stablehlo(&Array::spec("f64[2]"), &Array::spec("f64[3, 2]")).unwrap();
    let f = gradus::stablehlo::import(&text).unwrap().fun::<(Array, Array), Array>().unwrap();
    let (w, x) = (Array::from([0.1, -0.2]), Array::from([[0.5, -1.0], [2.0, 0.25], [1.0, 1.5]]));
    let there = jit(f).backend(cpu)(&w, &x);
    close(&there.to_vec::<f64>().unwrap(), &grad(loss)(&w, &x).to_vec::<f64>().unwrap());
}

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
fn row_r4_a_gradient_runs_on_a_device_and_stays_there() {
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

#[test]
fn what_is_given_away_may_be_written_over_and_what_is_held_is_not() {
    let Some(cpu) = cpu() else { return };
    let step = jit(|w: &Array, x: &Array| (w + x, w * 2.0)).backend(cpu.clone());
    let x = Array::from([1.0, 2.0]).to(&cpu).unwrap();
    let w = Array::from([10.0, 20.0]).to(&cpu).unwrap();
    let held = w.clone();
    step(&w, &x).0.wait().unwrap();
    let (first, twice) = step.consume((w, x.clone()));
    assert_eq!(held.to_vec::<f64>().unwrap(), [10.0, 20.0]);
    assert_eq!(twice.to_vec::<f64>().unwrap(), [20.0, 40.0]);
    let old = first.clone();
    let mut w = first;
    for _ in 0..5 {
        w = step.consume((w, x.clone())).0;
    }
    assert_eq!(w.to_vec::<f64>().unwrap(), [16.0, 32.0]);
    assert_eq!(old.to_vec::<f64>().unwrap(), [11.0, 22.0]);
    assert_eq!(x.to_vec::<f64>().unwrap(), [1.0, 2.0]);
    // One array in both places is held by the other one.
    let (sum, _) = step.consume((w.clone(), w));
    assert_eq!(sum.to_vec::<f64>().unwrap(), [32.0, 64.0]);
    assert_eq!(step.stats().traces, 1);
}

/// XLA's CPU compiler read such a table in another order until its fusion emitters were switched off.
#[test]
fn rows_of_a_constant_table_are_the_right_ones() {
    let Some(cpu) = cpu() else { return };
    let numbers: Vec<String> = (0..1000).map(|i| format!("{i}.0")).collect();
    let rows: Vec<String> = numbers.chunks(10).map(|r| format!("[{}]", r.join(", "))).collect();
    let planes: Vec<String> = rows.chunks(10).map(|p| format!("[{}]", p.join(", "))).collect();
    let text = format!(
        "func.func @main() -> tensor<10x2x2x1x10xf32> {{
  %table = stablehlo.constant dense<[{}]> : tensor<10x10x10xf32>
  %places = stablehlo.constant dense<[[[[0]], [[1]]], [[[3]], [[7]]]]> : tensor<2x2x1x1xi32>
  %0 = \"stablehlo.gather\"(%table, %places) <{{dimension_numbers = #stablehlo.gather<offset_dims = [0, 4], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 3>, slice_sizes = array<i64: 10, 1, 10>}}> : (tensor<10x10x10xf32>, tensor<2x2x1x1xi32>) -> tensor<10x2x2x1x10xf32>
  return %0 : tensor<10x2x2x1x10xf32>
}}",
        planes.join(", ")
    );
    let imported = gradus::stablehlo::import(&text).unwrap();
    let f = jit(move |zero: &Array| imported.call(&[]).unwrap()[0].clone() + zero).backend(cpu);
    let have = f(&Array::from(0.0_f32)).to_vec::<f32>().unwrap();
    let mut want = Vec::new();
    for plane in 0..10 {
        for row in [0, 1, 3, 7] {
            want.extend((0..10).map(|i| (plane * 100 + row * 10 + i) as f32));
        }
    }
    assert_eq!(have, want);
}

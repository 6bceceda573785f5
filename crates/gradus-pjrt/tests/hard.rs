//! What may end a process: each in a child of its own. A device without memory, and a process that ends while its device still works.

mod common;

use std::process::{Command, Output};

use common::cpu;
use gradus_core::pipeline::Pipeline;
use gradus_core::{Array, Program};

/// What a child process is told by.
const CHILD: &str = "GRADUS_PJRT_TEST_CHILD";

/// Runs a test of this file in a child; none if this is the child.
fn child(name: &str) -> Option<Output> {
    if std::env::var_os(CHILD).is_some() {
        return None;
    }
    let itself = std::env::current_exe().unwrap();
    Some(Command::new(itself).args(["--exact", name, "--nocapture"]).env(CHILD, "1").output().unwrap())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A hundred tebibytes are asked for. XLA's allocator gives an error where the system gives none; the process goes on.
#[test]
fn a_device_without_memory_is_an_error() {
    if cpu().is_none() {
        return;
    }
    if let Some(output) = child("a_device_without_memory_is_an_error") {
        let said = said(&output);
        assert!(output.status.success() && said.contains("the process goes on"), "{:?}\n{said}", output.status);
        return;
    }
    let Some(p) = cpu() else { return };
    let text = "func.func @main(%x: tensor<f32>) -> tensor<16384x1024x1048576xf32> {\n  %0 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> \
                tensor<16384x1024x1048576xf32>\n  return %0 : tensor<16384x1024x1048576xf32>\n}";
    let out = p
        .load(text.as_bytes())
        .and_then(|f| p.run(&f, &[Array::from(1.0f32)]))
        .and_then(|out| out[0].on_host().map(|_| ()));
    let e = out.unwrap_err();
    println!("{e}");
    let small = p.load(b"func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }").unwrap();
    assert_eq!(p.run(&small, &[Array::from(1.0f32)]).unwrap()[0].item::<f32>().unwrap(), 1.0);
    println!("the process goes on");
}

/// Results that nobody waits for: the process ends, and the threads of XLA with it.
#[test]
fn a_process_may_end_while_its_device_works() {
    if cpu().is_none() {
        return;
    }
    if let Some(output) = child("a_process_may_end_while_its_device_works") {
        assert!(output.status.success(), "{:?}\n{}", output.status, said(&output));
        return;
    }
    let Some(p) = cpu() else { return };
    let program: Program = "fn f(x0: f32[700,700]) -> f32[700,700] {\n  x1: f32[700,700] = dot_general{lhs_contract=[1], rhs_contract=[0], lhs_batch=[], rhs_batch=[]} x0 x0\n  x2: f32[700,700] = \
                            dot_general{lhs_contract=[1], rhs_contract=[0], lhs_batch=[], rhs_batch=[]} x1 x0\n  return x2\n}\n"
        .parse()
        .unwrap();
    let f = Pipeline::on(p).code(&program).unwrap();
    let mut x = Array::full([700, 700], 1e-3f32);
    for _ in 0..20 {
        x = f.run(&[x]).unwrap().remove(0);
    }
    std::process::exit(0);
}

//! Hand-written modules on XLA's CPU plugin: every dtype, sizes, errors, donation, threads. What is expected is computed here.

mod common;

use std::sync::Arc;

use common::cpu;

use gradus_core::array::Concrete;
use gradus_core::{Array, DType, Type};
use gradus_pjrt::{Buffer, Loaded, Pjrt, pjrt};

fn load(p: &Pjrt, body: &str) -> Loaded {
    p.load(body.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{body}"))
}

const SQUARE: &str = r"
module {
  func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.multiply %x, %x : tensor<4xf32>
    %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %0, %1 : tensor<4xf32>, tensor<f32>
  }
}";

#[test]
fn a_module_gives_its_numbers() {
    let Some(p) = cpu() else { return };
    let out = p.run(&load(&p, SQUARE), &[Array::from([1.0f32, 2.0, -3.0, 0.5])]).unwrap();
    assert_eq!(out[0].to_vec::<f32>().unwrap(), [1.0, 4.0, 9.0, 0.25]);
    assert_eq!(out[1].item::<f32>().unwrap(), 14.25);
    assert_eq!(out[1].ty().unwrap().to_string(), "f32[]");
}

#[test]
fn a_maximum_with_a_nan_is_a_nan() {
    let Some(p) = cpu() else { return };
    let text = "func.func @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {\n  %0 = stablehlo.maximum %x, %y : tensor<3xf32>\n  \
                return %0 : tensor<3xf32>\n}";
    let (x, y) = (Array::from([f32::NAN, 1.0, 2.0]), Array::from([1.0, f32::NAN, 3.0]));
    let out = p.run(&load(&p, text), &[x, y]).unwrap()[0].to_vec::<f32>().unwrap();
    assert!(out[0].is_nan() && out[1].is_nan() && out[2] == 3.0, "{out:?}");
}

/// The name of a dtype in StableHLO.
fn written(d: DType) -> &'static str {
    match d {
        DType::Bool => "i1",
        DType::I8 => "i8",
        DType::I16 => "i16",
        DType::I32 => "i32",
        DType::I64 => "i64",
        DType::U8 => "ui8",
        DType::U16 => "ui16",
        DType::U32 => "ui32",
        DType::U64 => "ui64",
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        DType::F32 => "f32",
        DType::F64 => "f64",
        DType::C64 => "complex<f32>",
        DType::C128 => "complex<f64>",
        DType::Key => unreachable!(),
    }
}

#[test]
fn every_dtype_goes_up_and_comes_down_as_it_was() {
    let Some(p) = cpu() else { return };
    for d in DType::VALUES {
        for shape in [vec![], vec![3], vec![2, 3], vec![0], vec![2, 0, 3], vec![5, 700, 3]] {
            let count: usize = shape.iter().product();
            let numbers = Array::from((0..count).map(|i| (i % 7) as f64).collect::<Vec<_>>());
            let x = numbers.cast(if d == DType::Bool { DType::F64 } else { d });
            let x = if d == DType::Bool { x.gt(Array::from(2.0)) } else { x };
            let x = x.reshape(shape.clone()).ok().unwrap();
            let there = p.upload(x.concrete().unwrap()).unwrap();
            let back = Array::on_device(Arc::new(there));
            assert!(back.is_identical(&x), "{d} {shape:?}");
            // Through a program too: a transpose of a transpose of it.
            let of: String = shape.iter().map(|n| format!("{n}x")).collect();
            let t = format!("tensor<{of}{}>", written(d));
            let text = format!("func.func @main(%x: {t}) -> {t} {{ return %x : {t} }}");
            let out = p.run(&load(&p, &text), std::slice::from_ref(&x)).unwrap();
            assert!(out[0].is_identical(&x), "{d} {shape:?} through a program");
        }
    }
}

#[test]
fn views_go_up_as_they_look() {
    let Some(p) = cpu() else { return };
    let x = Array::from((0..12).map(f64::from).collect::<Vec<_>>()).reshape([3, 4]);
    let splat = Array::full([3, 4], 2.5f64);
    for (view, want) in
        [(x.t(), (0..12).map(|i| f64::from(i % 3 * 4 + i / 3)).collect::<Vec<_>>()), (splat, vec![2.5; 12])]
    {
        let there = p.upload(view.concrete().unwrap()).unwrap();
        assert_eq!(Array::on_device(Arc::new(there)).to_vec::<f64>().unwrap(), want);
    }
}

#[test]
fn what_xla_refuses_is_an_error_with_its_text() {
    let Some(p) = cpu() else { return };
    let refused = |text: &str| p.load(text.as_bytes()).unwrap_err().to_string();
    let e = refused("module { func.func @main() { return");
    assert!(e.contains("xla_cpu_pjrt.so says") && e.contains("-:1:") && e.contains("expected"), "{e}");
    let e = refused(
        "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { %0 = stablehlo.add %x, %x : tensor<?xf32> return %0 : tensor<?xf32> }",
    );
    assert!(e.contains("dynamism"), "{e}");
    assert!(p.load(b"").is_err());
}

#[test]
fn a_device_that_is_not_there_is_named() {
    let Some(p) = cpu() else { return };
    let e = p.clone().device(3).load(SQUARE.as_bytes()).unwrap_err().to_string();
    assert!(e.contains("no device 3") && e.contains("there are 1"), "{e}");
    let two = p.device_count(2);
    assert_eq!(two.devices().unwrap().len(), 2);
    let second = two.clone().device(1);
    let out = second.run(&load(&second, SQUARE), &[Array::from([2.0f32; 4])]).unwrap();
    assert_eq!(out[1].item::<f32>().unwrap(), 16.0);
    assert_eq!(out[0].device().unwrap().name(), "cpu:1");
}

#[test]
fn a_file_that_is_no_plugin_is_refused() {
    let file = std::env::temp_dir().join(format!("gradus_no_plugin_{}.so", std::process::id()));
    std::fs::write(&file, b"this is no library").unwrap();
    let e = pjrt(&file.display().to_string()).unwrap_err().to_string();
    assert!(e.contains("cannot be loaded as a PJRT plugin"), "{e}");
    std::fs::remove_file(&file).unwrap();
    let e = pjrt("/no/such/plugin.so").unwrap_err().to_string();
    assert!(e.contains("/no/such/plugin.so"), "{e}");
    // A library, and no plugin.
    for libm in ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6"] {
        if std::path::Path::new(libm).exists() {
            let e = pjrt(libm).unwrap_err().to_string();
            assert!(e.contains("GetPjrtApi"), "{e}");
        }
    }
}

const DONATED: &str = r"
module {
  func.func @main(%x: tensor<1024xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<1024xf32>) -> tensor<1024xf32> {
    %0 = stablehlo.add %x, %y : tensor<1024xf32>
    return %0 : tensor<1024xf32>
  }
}";

fn upload(p: &Pjrt, v: f32) -> Buffer {
    p.upload(&Concrete::new(Type::new(DType::F32, &[1024][..]), vec![v; 1024]).unwrap()).unwrap()
}

fn first(b: &Buffer) -> f32 {
    let data = b.download().unwrap();
    gradus_core::Element::slice(&data).map(|s: &[f32]| s[0]).unwrap()
}

#[test]
fn a_donated_buffer_is_gone_and_a_kept_one_is_not() {
    let Some(p) = cpu() else { return };
    let f = load(&p, DONATED);
    let (x, y) = (upload(&p, 1.0), upload(&p, 2.0));
    let kept = f.run(&[&x, &y], &[0, 1]).unwrap();
    assert_eq!((first(&kept[0]), first(&x)), (3.0, 1.0));
    let given = f.run(&[&x, &y], &[1]).unwrap();
    assert_eq!((first(&given[0]), first(&y)), (3.0, 2.0));
    let e = x.download().unwrap_err().to_string();
    assert!(e.contains("deleted") || e.contains("donated"), "{e}");
    assert!(f.run(&[&x, &y], &[]).is_err());
    assert!(f.run(&[&y], &[]).is_err(), "too few");
}

#[test]
fn results_outlive_their_code_and_their_inputs() {
    let Some(p) = cpu() else { return };
    let mut kept = Vec::new();
    for i in 0..50 {
        let f = load(&p, &SQUARE.replace("multiply", if i % 2 == 0 { "multiply" } else { "add" }));
        kept.push(p.run(&f, &[Array::from([i as f32; 4])]).unwrap());
    }
    for (i, out) in kept.iter().enumerate() {
        let want = if i % 2 == 0 { (i * i) as f32 } else { (2 * i) as f32 };
        assert_eq!(out[0].to_vec::<f32>().unwrap(), [want; 4]);
    }
}

#[test]
fn threads_share_code_and_buffers() {
    let Some(p) = cpu() else { return };
    let f = load(&p, SQUARE);
    let shared = p.upload(Array::from([3.0f32; 4]).concrete().unwrap()).unwrap();
    std::thread::scope(|s| {
        for t in 0..8 {
            let (p, f, shared) = (&p, &f, &shared);
            s.spawn(move || {
                for i in 0..100 {
                    let mine = p.run(f, &[Array::from([(t * i) as f32; 4])]).unwrap();
                    assert_eq!(mine[0].to_vec::<f32>().unwrap(), [((t * i) * (t * i)) as f32; 4]);
                    let ours = f.run(&[shared], &[0]).unwrap();
                    assert_eq!(first(&ours[1]), 36.0);
                }
            });
        }
    });
}

#[test]
fn memory_that_is_aligned_is_not_copied() {
    let Some(p) = cpu() else { return };
    let n = 1 << 16;
    let whole = Concrete::new(Type::new(DType::F32, &[n + 16][..]), vec![1.5f32; n + 16]).unwrap();
    let start = whole.dense_slice::<f32>().unwrap().as_ptr().addr();
    let skip = (64 - start % 64) % 64 / 4;
    let view = |skip| Concrete::strided(Type::new(DType::F32, &[n][..]), &[1], skip, whole.data().clone()).unwrap();
    let aligned = p.upload(&view(skip)).unwrap();
    assert!(aligned.is_borrowed());
    assert!(!p.upload(&view((skip + 1) % 16)).unwrap().is_borrowed());
    assert_eq!(first(&aligned), 1.5);
    drop(whole);
    assert_eq!(first(&aligned), 1.5, "the device holds on to it");
}

#[test]
fn code_is_written_and_read() {
    let Some(p) = cpu() else { return };
    let bytes = load(&p, SQUARE).write().unwrap();
    let again = Loaded::read(p.client().unwrap(), 0, &bytes).unwrap();
    assert_eq!(again.outputs().len(), 2);
    let out = p.run(&again, &[Array::from([1.0f32, 2.0, 3.0, 4.0])]).unwrap();
    assert_eq!(out[1].item::<f32>().unwrap(), 30.0);
    assert!(Loaded::read(p.client().unwrap(), 0, b"no code").is_err());
}

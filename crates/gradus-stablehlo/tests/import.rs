//! Small texts become programs: what they compute, which operations of ours they become, and how what cannot be imported is refused.

use gradus_core::{Array, ErrorKind, interpret};
use gradus_stablehlo::{Imported, import, read_one};

fn imported(text: &str) -> Imported {
    import(&read_one("here.mlir", text).unwrap_or_else(|e| panic!("{e}"))).unwrap_or_else(|e| panic!("{e}"))
}

fn run(text: &str, inputs: &[Array]) -> Vec<Array> {
    interpret(&imported(text).program, inputs).unwrap_or_else(|e| panic!("{e}"))
}

fn refusal(text: &str) -> gradus_core::Error {
    let module = read_one("here.mlir", text).unwrap_or_else(|e| panic!("{e}"));
    import(&module).expect_err("it is refused")
}

#[test]
fn an_equation_has_the_line_of_its_text() {
    let text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.sine %x : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}";
    let program = imported(text).program;
    assert_eq!(program.equations()[0].place().to_string(), "here.mlir:2:3");
}

#[test]
fn what_is_refused_is_named_with_its_place_and_a_way_out() {
    let text = "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  %0 = stablehlo.custom_call @my_kernel(%x) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}";
    let e = refusal(text);
    assert_eq!(e.kind(), ErrorKind::MissingRule);
    assert!(e.message().contains("my_kernel"), "{e}");
    assert!(e.place().to_string().starts_with("here.mlir:2:"), "{e}");
    assert!(e.way_out().is_some(), "{e}");

    let text = "func.func @main(%x: tensor<f8E4M3FN>) -> tensor<f8E4M3FN> {\n  return %x : tensor<f8E4M3FN>\n}";
    assert!(refusal(text).message().contains("f8E4M3FN"), "{}", refusal(text));
}

#[test]
fn a_function_that_calls_itself_is_refused() {
    let text = "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  %0 = call @main(%x) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}";
    assert!(refusal(text).message().contains("calls itself"));
}

#[test]
fn a_called_function_is_one_program() {
    let text = "func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @twice(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @twice(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func private @twice(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %x, %x : tensor<f32>
  return %0 : tensor<f32>
}";
    let program = imported(text).program;
    let programs: Vec<_> = program.equations().iter().flat_map(|e| e.op().programs()).collect();
    assert!(std::sync::Arc::ptr_eq(&programs[0], &programs[1]));
    assert_eq!(run(text, &[Array::from(1.5_f32)])[0].item::<f32>().unwrap(), 6.0);
}

/// 0 + 1 + 2 + 3 + 4 by a counted loop: its number of steps is known, so that reverse mode keeps them.
#[test]
fn a_counted_loop_knows_its_steps() {
    let text = "func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<f32>
  cond {
    %c = stablehlo.compare LT, %i, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %f = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
    %t = stablehlo.add %s, %f : tensor<f32>
    %n = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %n, %t : tensor<i32>, tensor<f32>
  }
  return %r#1 : tensor<f32>
}";
    let program = imported(text).program;
    assert!(program.to_string().contains("limit=[5]"), "{program}");
    assert_eq!(run(text, &[Array::from(0.5_f32)])[0].item::<f32>().unwrap(), 10.5);
}

#[test]
fn a_branch_number_out_of_range_means_the_last() {
    let text = "func.func @main(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  %r = \"stablehlo.case\"(%i) ({
    %0 = stablehlo.negate %x : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }, {
    %0 = stablehlo.add %x, %x : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  return %r : tensor<f32>
}";
    for (i, want) in [(-1, 6.0), (0, -3.0), (1, 6.0), (7, 6.0)] {
        let got = run(text, &[Array::from(i), Array::from(3.0_f32)])[0].item::<f32>().unwrap();
        assert_eq!(got, want, "branch {i}");
    }
}

/// A region that no operation of ours is: a - b/2, from the left.
#[test]
fn a_reduction_by_any_region_goes_from_the_left() {
    let text = "func.func @main(%x: tensor<3x2xf32>) -> tensor<2xf32> {
  %init = stablehlo.constant dense<1.0> : tensor<f32>
  %r = \"stablehlo.reduce\"(%x, %init) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %half = stablehlo.constant dense<0.5> : tensor<f32>
    %h = stablehlo.multiply %b, %half : tensor<f32>
    %d = stablehlo.subtract %a, %h : tensor<f32>
    stablehlo.return %d : tensor<f32>
  }) : (tensor<3x2xf32>, tensor<f32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}";
    let x = Array::from([[2.0_f32, 4.0], [6.0, 8.0], [10.0, 12.0]]);
    assert_eq!(run(text, &[x])[0].to_vec::<f32>().unwrap(), [1.0 - 1.0 - 3.0 - 5.0, 1.0 - 2.0 - 4.0 - 6.0]);
}

/// Sorted by the distance from 3, which a comparator computes of each side; equals stay in their order.
#[test]
fn a_comparator_may_compute_its_keys() {
    let text = "func.func @main(%x: tensor<5xi32>) -> tensor<5xi32> {
  %r = \"stablehlo.sort\"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %three = stablehlo.constant dense<3> : tensor<i32>
    %0 = stablehlo.subtract %a, %three : tensor<i32>
    %1 = stablehlo.abs %0 : tensor<i32>
    %2 = stablehlo.subtract %b, %three : tensor<i32>
    %3 = stablehlo.abs %2 : tensor<i32>
    %4 = stablehlo.compare LT, %1, %3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  }) : (tensor<5xi32>) -> tensor<5xi32>
  return %r : tensor<5xi32>
}";
    let sorted = |text: &str| run(text, &[Array::from([5, 3, 1, 9, 4])])[0].to_vec::<i32>().unwrap();
    assert_eq!(sorted(text), [3, 4, 5, 1, 9]);
    // No keys: the sides are treated differently, so every pair is compared. Even numbers first, each half as it was.
    let odd = text.replace("%three = stablehlo.constant dense<3>", "%three = stablehlo.constant dense<1>");
    let odd = odd.replace("stablehlo.subtract %a, %three", "stablehlo.and %a, %three");
    let odd = odd.replace("stablehlo.abs %0", "stablehlo.add %0, %three");
    let odd = odd.replace("stablehlo.subtract %b, %three", "stablehlo.and %b, %three");
    let odd = odd.replace("stablehlo.abs %2", "stablehlo.add %three, %2");
    assert_eq!(sorted(&odd), [4, 5, 3, 1, 9]);
}

#[test]
fn argmax_is_recognized_and_keeps_the_first_of_equals() {
    let text = "func.func @main(%x: tensor<2x4xf32>) -> tensor<2xi32> {
  %i = stablehlo.iota dim = 1 : tensor<2x4xi32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%x init: %low), (%i init: %zero) across dimensions = [1] : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
   reducer(%a: tensor<f32>, %b: tensor<f32>) (%j: tensor<i32>, %k: tensor<i32>) {
    %2 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %3 = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %4 = stablehlo.or %2, %3 : tensor<i1>
    %5 = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %6 = stablehlo.compare LT, %j, %k, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %7 = stablehlo.and %5, %6 : tensor<i1>
    %8 = stablehlo.or %4, %7 : tensor<i1>
    %9 = stablehlo.select %4, %a, %b : tensor<i1>, tensor<f32>
    %10 = stablehlo.select %8, %j, %k : tensor<i1>, tensor<i32>
    stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
  }
  return %r#1 : tensor<2xi32>
}";
    assert_eq!(imported(text).program.count("argmax"), 1);
    let x = Array::from([[1.0_f32, 7.0, 7.0, 2.0], [3.0, f32::NAN, 9.0, f32::NAN]]);
    assert_eq!(run(text, &[x])[0].to_vec::<i32>().unwrap(), [1, 1]);
}

#[test]
fn a_question_mark_is_a_symbol_and_sizes_follow_it() {
    let text = "func.func @main(%x: tensor<?x3xf32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %m = stablehlo.multiply %n, %three : tensor<i32>
  %s = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %y = stablehlo.dynamic_reshape %x, %s : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}";
    let program = imported(text).program;
    assert_eq!(program.output_types()[0].to_string(), "f32[3*d0]");
    let x = Array::from([[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let bound = program.bind_symbols(&[x.ty().unwrap().clone()]).unwrap();
    assert_eq!(interpret(&bound, &[x]).unwrap()[0].to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}

/// 7 + 7 is -2 in four bits.
#[test]
fn narrow_integers_wrap_in_their_own_bits() {
    let text = "func.func @main() -> tensor<2xi4> {
  %x = stablehlo.constant dense<[7, -8]> : tensor<2xi4>
  %y = stablehlo.add %x, %x : tensor<2xi4>
  return %y : tensor<2xi4>
}";
    assert_eq!(run(text, &[])[0].to_vec::<i8>().unwrap(), [-2, 0]);
}

/// Values of scipy.special.i1e and scipy.special.zeta.
#[test]
fn special_functions_that_are_formulas_have_their_digits() {
    let text = "func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
  %y = chlo.bessel_i1e %x : tensor<4xf64> -> tensor<4xf64>
  return %y : tensor<4xf64>
}";
    let got = run(text, &[Array::from([0.5_f64, -3.0, 19.5, 40.0])])[0].to_vec::<f64>().unwrap();
    for (g, w) in got.iter().zip([0.15642080318487173, -0.19682671329730084, 0.08857608609431485, 0.06248222907444206])
    {
        assert!((g - w).abs() <= 1e-15 * w.abs(), "{g} and not {w}");
    }
    let text = "func.func @main(%x: tensor<3xf64>, %q: tensor<3xf64>) -> tensor<3xf64> {
  %y = chlo.zeta %x, %q : tensor<3xf64>, tensor<3xf64> -> tensor<3xf64>
  return %y : tensor<3xf64>
}";
    let inputs = [Array::from([2.0_f64, 3.5, 1.1]), Array::from([1.0_f64, 0.25, 7.0])];
    let got = run(text, &inputs)[0].to_vec::<f64>().unwrap();
    for (g, w) in got.iter().zip([1.6449340668482266, 128.54695896428433, 8.2920470568943]) {
        assert!((g - w).abs() <= 2e-15 * w.abs(), "{g} and not {w}");
    }
}

/// Factors by LAPACK's calls, as `jnp.linalg.qr` exports them, multiply to the matrix again: square, tall and wide.
#[test]
fn reflectors_multiply_to_the_matrix() {
    for (m, n) in [(3usize, 3usize), (5, 3), (5, 2), (4, 4), (3, 5)] {
        let k = m.min(n);
        let text = format!(
            "func.func @main(%a: tensor<{m}x{n}xf64>) -> (tensor<{m}x{n}xf64>, tensor<{m}x{k}xf64>) {{
  %0:2 = stablehlo.custom_call @lapack_dgeqrf_ffi(%a) {{api_version = 4 : i32}} : (tensor<{m}x{n}xf64>) -> (tensor<{m}x{n}xf64>, tensor<{k}xf64>)
  %1 = stablehlo.slice %0#0 [0:{m}, 0:{k}] : (tensor<{m}x{n}xf64>) -> tensor<{m}x{k}xf64>
  %2 = stablehlo.custom_call @lapack_dorgqr_ffi(%1, %0#1) {{api_version = 4 : i32}} : (tensor<{m}x{k}xf64>, tensor<{k}xf64>) -> tensor<{m}x{k}xf64>
  return %0#0, %2 : tensor<{m}x{n}xf64>, tensor<{m}x{k}xf64>
}}"
        );
        let numbers: Vec<f64> = (0..m * n).map(|i| ((i * i * 7 + 3 * i) % 11) as f64 / 5.0 - 0.9).collect();
        let out = run(&text, &[Array::from_vec(numbers.clone(), [m, n])]);
        let (factors, q) = (out[0].to_vec::<f64>().unwrap(), out[1].to_vec::<f64>().unwrap());
        for i in 0..m {
            for j in 0..n {
                let product: f64 = (0..k.min(j + 1)).map(|l| q[i * k + l] * factors[l * n + j]).sum();
                assert!((product - numbers[i * n + j]).abs() < 1e-12, "{m}x{n} at {i}, {j}: {product}");
            }
        }
    }
}

#[test]
fn singular_values_alone_are_given() {
    let text = "func.func @main(%a: tensor<2x2xf64>) -> tensor<2xf64> {
  %0:5 = stablehlo.custom_call @lapack_dgesdd_ffi(%a) {api_version = 4 : i32, mhlo.backend_config = {mode = 78 : ui8}} : (tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<2xf64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<i32>)
  return %0#1 : tensor<2xf64>
}";
    let out = run(text, &[Array::from([[3.0, 0.0], [0.0, -4.0]])]);
    assert_eq!(out[0].to_vec::<f64>().unwrap(), [4.0, 3.0]);
}

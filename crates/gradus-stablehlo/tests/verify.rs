//! What the verifier refuses, with its words.

use gradus_stablehlo::{read_one, verify};

/// Bodies of a function of `%a: tensor<2x3xf32>`, `%i: tensor<i32>`, `%s: tensor<f32>`, `%v: tensor<4xi32>`, and what is wrong with them.
const WRONG: &[(&str, &str)] = &[
    (
        r#"%0 = "stablehlo.add"(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>"#,
        "t:2:3: `stablehlo.add`: it has 1 operand where 2 is wanted",
    ),
    (
        "%0 = stablehlo.add %a, %s : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>",
        "t:2:3: `stablehlo.add`: operands 1 and 2 are tensor<2x3xf32> and tensor<f32>",
    ),
    ("%0 = stablehlo.and %a, %a : tensor<2x3xf32>", "`stablehlo.and`: it does not take tensor<2x3xf32>"),
    (
        "%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
        "`stablehlo.transpose`: result 1 is tensor<2x3xf32>, and follows as tensor<3x2xf32>",
    ),
    (
        "%0 = stablehlo.transpose %a, dims = [0, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
        "`permutation` has the axis 0 twice",
    ),
    ("%0 = stablehlo.reshape %a : (tensor<2x3xf32>) -> tensor<5xf32>", "tensor<2x3xf32> does not become tensor<5xf32>"),
    (
        "%0 = stablehlo.slice %a [0:3, 0:1] : (tensor<2x3xf32>) -> tensor<3x1xf32>",
        "0:3:1 is no range of axis 0 of tensor<2x3xf32>",
    ),
    (
        "%0 = stablehlo.broadcast_in_dim %a, dims = [0, 2] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
        "`broadcast_dimensions` has 2, which is no axis of rank 2",
    ),
    (
        "%0 = stablehlo.concatenate %a, %a, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x5xf32>",
        "result 1 is tensor<2x5xf32>, and follows as tensor<2x6xf32>",
    ),
    (
        "%0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [1] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<3x2xf32>",
        "axis 0 of tensor<2x3xf32> does not fit axis 1 of tensor<2x3xf32>",
    ),
    (
        "%0 = stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>",
        "result 1 is tensor<3xf32>, and follows as tensor<2xf32>",
    ),
    ("%0 = stablehlo.iota dim = 2 : tensor<2x3xi32>", "`iota_dimension` is 2, which is no axis of rank 2"),
    (
        "%0 = stablehlo.compare LESS, %a, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>",
        "there is no direction `LESS`",
    ),
    (
        "%0 = stablehlo.pad %a, %s, low = [0, -4], high = [0, 0], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x0xf32>",
        "axis 1 gets the size -1",
    ),
    (
        r#"%0 = "stablehlo.gather"(%a, %v) {slice_sizes = array<i64: 1, 3>} : (tensor<2x3xf32>, tensor<4xi32>) -> tensor<4x3xf32>"#,
        "it has no attribute `dimension_numbers` with a field `offset_dims`",
    ),
    (
        "%0 = stablehlo.while(%x = %i) : tensor<i32>\n cond {\n  stablehlo.return %x : tensor<i32>\n } do {\n  stablehlo.return %x : tensor<i32>\n }",
        "value 1 that region 1 returns is tensor<i32>, and follows as tensor<i1>",
    ),
    ("%0 = func.call @g(%a) : (tensor<2x3xf32>) -> tensor<f32>", "there is no function `@g` in this module"),
    ("%0 = func.call @f(%a) : (tensor<2x3xf32>) -> tensor<f32>", "`@f` has 4 arguments, and 1 are here"),
    (r#"%0 = "stablehlo.bogus"(%a) : (tensor<2x3xf32>) -> tensor<f32>"#, "there is no such operation"),
    (
        "%0 = stablehlo.fft %a, type = RFFT, length = [4] : (tensor<2x3xf32>) -> tensor<2x3xcomplex<f32>>",
        "the length 4 of tensor<2x3xf32>",
    ),
];

fn text(body: &str) -> String {
    format!(
        "func.func @f(%a: tensor<2x3xf32>, %i: tensor<i32>, %s: tensor<f32>, %v: tensor<4xi32>) {{\n  {body}\n  return\n}}"
    )
}

#[test]
fn what_is_wrong_is_said() {
    for (body, wanted) in WRONG {
        let module = read_one("t", &text(body)).unwrap_or_else(|e| panic!("{body}: {e}"));
        let error = verify(&module).expect_err(body);
        assert!(error.message().contains(wanted), "{body}\n  {}\n  {wanted}", error.message());
        assert!(error.message().starts_with("t:2:3: "), "{}", error.message());
    }
}

#[test]
fn unknown_dimensions_fit_all() {
    let body = "%0 = \"stablehlo.custom_call\"(%a) {call_target_name = \"x\"} : (tensor<2x3xf32>) -> tensor<?x3xf32>\n  %1 = stablehlo.add %a, %0 : (tensor<2x3xf32>, tensor<?x3xf32>) -> tensor<2x3xf32>";
    verify(&read_one("t", &text(body)).unwrap()).unwrap();
}

#[test]
fn a_function_returns_what_it_says() {
    let module = read_one("t", "func.func @f(%a: tensor<f32>) -> tensor<i32> {\n  return %a : tensor<f32>\n}").unwrap();
    let error = verify(&module).unwrap_err();
    assert_eq!(error.message(), "t:2:3: result 1 of `@f` is tensor<f32>, and its type says tensor<i32>");
    let twice = read_one("t", "func.func @f() {\n  return\n}\nfunc.func @f() {\n  return\n}").unwrap();
    assert_eq!(verify(&twice).unwrap_err().message(), "t:4:1: the function `@f` is defined twice");
}

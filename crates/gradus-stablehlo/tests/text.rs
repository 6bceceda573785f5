//! Text of StableHLO: what reads, what it gives, and that no text makes the reader panic.

use std::path::{Path, PathBuf};

use gradus_stablehlo::module::{Attribute, Element, Float, Module, Operation, Type, Visibility};
use gradus_stablehlo::{legalize_quantized, read, read_one, verify};

/// A text with most of what the syntax has.
const ALL: &str = r#"
#loc = loc("a.py":1:2)
#map = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>
!t = tensor<2x3xf32>
module @all attributes {mhlo.num_replicas = 1 : i32, jax.x = {a, "b c" = [1, -2.5, "t\0A\"", true, unit, @f::@g]}} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: !t {jax.buffer_donor = true} loc(#loc), %arg1: tensor<4xi32>) -> (tensor<3xf32> {jax.result_info = "r"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(callsite("x"("f":1:1) at fused<"q">["a", #loc]))
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [0] : (!t, tensor<f32>) -> tensor<3xf32>
    %1 = stablehlo.reduce(%arg0 init: %cst) across dimensions = [0] : (!t, tensor<f32>) -> tensor<3xf32>
     reducer(%x: tensor<f32>, %y: tensor<f32>) {
      %s = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }
    %2 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #map, slice_sizes = array<i64: 1, 3>}> : (!t, tensor<4xi32>) -> tensor<4x3xf32>
    %3:2 = stablehlo.while(%i = %0, %j = %1) : tensor<3xf32>, tensor<3xf32>
     cond {
      %c = stablehlo.constant dense<false> : tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %k = stablehlo.add %i, %j : tensor<3xf32>
      stablehlo.return %k, %i : tensor<3xf32>, tensor<3xf32>
    }
    %4 = call @inner(%3#1) : (tensor<3xf32>) -> tensor<3xf32>
    %5 = stablehlo.compare  LT, %4, %0,  FLOAT : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
    %6 = stablehlo.select %5, %4, %0 : tensor<3xi1>, tensor<3xf32>
    %7 = stablehlo.slice %arg0 [0:1, 0:3:2] : (!t) -> tensor<1x2xf32>
    %8 = stablehlo.custom_call @target(%7) {api_version = 4 : i32, backend_config = {n = 0x1F : i64}} : (tensor<1x2xf32>) -> tuple<tensor<f32>, !stablehlo.token>
    return %6 : tensor<3xf32>
  }
  func.func private @inner(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    return %arg0 : tensor<3xf32>
  }
}
"#;

fn operation<'m>(module: &'m Module, name: &str) -> &'m Operation {
    let found = module.functions.iter().flat_map(|f| &f.body.operations).find(|o| o.name == name);
    found.unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn a_module_gives_its_tree() {
    let module = read_one("all.mlir", ALL).unwrap();
    verify(&module).unwrap();
    assert_eq!(module.name.as_deref(), Some("all"));
    assert_eq!(module.attributes.integer("mhlo.num_replicas"), Some(1));
    let Some(Attribute::Dictionary(inner)) = module.attributes.get("jax.x") else { panic!("a dictionary") };
    assert_eq!(inner.get("a"), Some(&Attribute::Unit));
    let Some(Attribute::Array(items)) = inner.get("b c") else { panic!("a list") };
    assert_eq!(items[2].text(), Some("t\n\""));
    assert_eq!(items[5], Attribute::Symbol(vec!["f".into(), "g".into()]));
    assert_eq!(module.others[0].attributes.text("sym_name"), Some("mesh"));
    assert_eq!(
        module.others[0].attributes.get("mesh"),
        Some(&Attribute::Opaque("sdy.mesh<[\"x\"=2, \"y\"=4]>".into()))
    );
    let [main, inner] = module.functions.as_slice() else { panic!("two functions") };
    assert_eq!((main.visibility, inner.visibility), (Visibility::Public, Visibility::Private));
    assert_eq!((main.place.line, main.place.column), (7, 3));
    assert_eq!(main.arguments[0].get("jax.buffer_donor"), Some(&Attribute::Bool(true)));
    assert_eq!(main.results[0].1.text("jax.result_info"), Some("r"));
    let gather = operation(&module, "stablehlo.gather");
    assert_eq!((gather.place.line, gather.place.column), (15, 5));
    let Some(Attribute::Struct(kind, fields)) = gather.attributes.get("dimension_numbers") else { panic!("a record") };
    assert_eq!(kind, "stablehlo.gather");
    assert_eq!(fields.integers("offset_dims"), Some(vec![1]));
    assert_eq!(fields.integers("operand_batching_dims"), Some(vec![]), "what is not said has its default");
    let while_loop = operation(&module, "stablehlo.while");
    assert_eq!(while_loop.results.len(), 2);
    assert_eq!(operation(&module, "func.call").operands[0], while_loop.results[1]);
    let slice = operation(&module, "stablehlo.slice");
    assert_eq!(slice.attributes.integers("strides"), Some(vec![1, 2]));
    let Type::Tuple(parts) = &main.values[operation(&module, "stablehlo.custom_call").results[0].0 as usize] else {
        panic!("a tuple")
    };
    assert_eq!(parts[1], Type::Token);
}

#[test]
fn pretty_and_generic_forms_are_one_tree() {
    let pairs = [
        (
            "stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>",
            r#""stablehlo.broadcast_in_dim"(%a) {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<2x3xf32>"#,
        ),
        (
            "stablehlo.compare EQ, %a, %a, TOTALORDER : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>",
            r#""stablehlo.compare"(%a, %a) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>"#,
        ),
        (
            "stablehlo.dot_general %a, %a, contracting_dims = [0] x [0], precision = [HIGHEST, DEFAULT] : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>",
            r#""stablehlo.dot_general"(%a, %a) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>]} : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>"#,
        ),
        (
            "stablehlo.reduce_precision %a, format = e5m10 : tensor<3xf32>",
            r#""stablehlo.reduce_precision"(%a) {exponent_bits = 5 : i32, mantissa_bits = 10 : i32} : (tensor<3xf32>) -> tensor<3xf32>"#,
        ),
        (
            "stablehlo.custom_call @f(%a) {has_side_effect = true} : (tensor<3xf32>) -> tensor<3xf32>",
            r#""stablehlo.custom_call"(%a) {call_target_name = "f", has_side_effect = true} : (tensor<3xf32>) -> tensor<3xf32>"#,
        ),
        (
            "stablehlo.fft %a, type = RFFT, length = [3] : (tensor<3xf32>) -> tensor<2xcomplex<f32>>",
            r#""stablehlo.fft"(%a) {fft_length = array<i64: 3>, fft_type = #stablehlo<fft_type RFFT>} : (tensor<3xf32>) -> tensor<2xcomplex<f32>>"#,
        ),
        (
            "stablehlo.abs %a {x = #other.thing<[1, {a}]>} : tensor<3xf32>",
            r#""stablehlo.abs"(%a) {x = #other.thing<[1, {a}]>} : (tensor<3xf32>) -> tensor<3xf32>"#,
        ),
    ];
    for (pretty, generic) in pairs {
        let text = |op: &str| format!("func.func @f(%a: tensor<3xf32>) {{\n  %r = {op}\n  return\n}}");
        let [one, two] = [pretty, generic].map(|op| read_one("f", &text(op)).unwrap_or_else(|e| panic!("{op}: {e}")));
        assert_eq!(one.functions[0].body, two.functions[0].body, "{pretty}");
        assert_eq!(one.functions[0].values, two.functions[0].values, "{pretty}");
        verify(&one).unwrap_or_else(|e| panic!("{pretty}: {e}"));
    }
}

#[test]
fn a_convolution_names_each_axis() {
    let text = "func.func @f(%a: tensor<1x8x8x2xf32>, %k: tensor<3x3x2x4xf32>) -> tensor<1x4x4x4xf32> {\n  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 1], [0, 2]], reverse = [false, true]} {feature_group_count = 1 : i64} : (tensor<1x8x8x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x4x4x4xf32>\n  return %0 : tensor<1x4x4x4xf32>\n}";
    let module = read_one("c", text).unwrap();
    verify(&module).unwrap();
    let conv = operation(&module, "stablehlo.convolution");
    let Some(Attribute::Struct(_, fields)) = conv.attributes.get("dimension_numbers") else { panic!("a record") };
    assert_eq!(fields.integers("input_spatial_dimensions"), Some(vec![1, 2]));
    assert_eq!(fields.integer("kernel_output_feature_dimension"), Some(3));
    assert_eq!(conv.attributes.integers("padding"), Some(vec![1, 1, 0, 2]));
    assert_eq!(conv.attributes.get("window_reversal"), Some(&Attribute::Numbers(Element::I1, vec![0, 1])));
}

/// The bytes of a constant.
fn bytes(literal: &str) -> Vec<u8> {
    let text = format!("func.func @f() {{\n  %0 = stablehlo.constant {literal}\n  return\n}}");
    let module = read_one("f", &text).unwrap_or_else(|e| panic!("{literal}: {e}"));
    let Some(Attribute::Dense(dense)) = operation(&module, "stablehlo.constant").attributes.get("value") else {
        panic!("{literal}")
    };
    dense.bytes.to_vec()
}

#[test]
fn constants_have_the_bytes_that_ieee_754_says() {
    assert_eq!(bytes("dense<1.0> : tensor<f32>"), 1.0f32.to_le_bytes());
    assert_eq!(bytes("dense<0x7F800000> : tensor<f32>"), f32::INFINITY.to_le_bytes());
    assert_eq!(bytes("dense<[-1, 254]> : tensor<2xi8>"), [0xFF, 0xFE]);
    assert_eq!(bytes("dense<[true, false]> : tensor<2xi1>"), [1, 0]);
    assert_eq!(bytes("dense<-3> : tensor<i4>"), [0xFD]);
    assert_eq!(bytes("dense<[[1, 2], [3, 4]]> : tensor<2x2xui16>"), [1, 0, 2, 0, 3, 0, 4, 0]);
    assert_eq!(
        bytes("dense<(1.0, -2.0)> : tensor<complex<f32>>"),
        [1.0f32.to_le_bytes(), (-2.0f32).to_le_bytes()].concat()
    );
    assert_eq!(
        bytes("dense<\"0x0000803F000000C0\"> : tensor<2xf32>"),
        [1.0f32.to_le_bytes(), (-2.0f32).to_le_bytes()].concat()
    );
    assert_eq!(
        bytes("dense<\"0x05\"> : tensor<3xi1>"),
        [1, 0, 1],
        "eight booleans in a byte, as older files have them"
    );
    assert_eq!(bytes("dense<> : tensor<0x4xf32>"), []);
    // Known values of small formats: 448 is the largest f8E4M3FN, 57344 the largest f8E5M2, 2^-9 the least f8E4M3FN.
    assert_eq!(bytes("dense<[448.0, 0.001953125, 1.0, -0.0]> : tensor<4xf8E4M3FN>"), [0x7E, 0x01, 0x38, 0x80]);
    assert_eq!(bytes("dense<[57344.0, 1.0, 1.0e30]> : tensor<3xf8E5M2>"), [0x7B, 0x3C, 0x7C]);
    assert_eq!(bytes("dense<[6.0, 0.5]> : tensor<2xf4E2M1FN>"), [0x07, 0x01]);
    assert_eq!(bytes("dense<[1.0, 2.0]> : tensor<2xf8E8M0FNU>"), [127, 128]);
    assert_eq!(bytes("dense<65504.0> : tensor<f16>"), [0xFF, 0x7B]);
    assert_eq!(bytes("dense<1.0> : tensor<bf16>"), [0x80, 0x3F]);
}

#[test]
fn resources_stand_at_the_end_of_a_file() {
    let text = "func.func @f() {\n  %0 = stablehlo.constant dense_resource<w> : tensor<2xi16>\n  return\n}\n{-#\n  dialect_resources: {\n    builtin: {\n      w: \"0x0400000001000200\"\n    }\n  }\n#-}\n";
    let module = read_one("f", text).unwrap();
    let Some(Attribute::Dense(dense)) = operation(&module, "stablehlo.constant").attributes.get("value") else {
        panic!()
    };
    assert_eq!(dense.integers(), Some(vec![1, 2]));
}

#[test]
fn types_of_every_kind() {
    let text = "func.func private @f(tensor<?x4xf32, #stablehlo.bounds<8, ?>>, tensor<2x!quant.uniform<i8<-127:127>:f32:0, {0.1:3, 0.25}>>, tuple<>, !stablehlo.future<tensor<f32>>, tensor<0x0xindex>) -> (tensor<complex<f64>>)";
    let module = read_one("f", text).unwrap();
    let values = &module.functions[0].values;
    let Type::Tensor(bounded) = &values[0] else { panic!() };
    assert_eq!(
        (bounded.dims.as_slice(), bounded.bounds.as_slice()),
        ([None, Some(4)].as_slice(), [Some(8), None].as_slice())
    );
    let Type::Tensor(quantized) = &values[1] else { panic!() };
    let Element::Quantized(q) = &quantized.element else { panic!() };
    assert_eq!((q.storage_min, q.storage_max, q.axis, q.expressed), (-127, 127, Some(0), Float::F32));
    assert_eq!((q.scales.as_slice(), q.zero_points.as_slice()), ([0.1, 0.25].as_slice(), [3, 0].as_slice()));
    assert_eq!(values[3], Type::Opaque("stablehlo.future<tensor<f32>>".into()));
    let Type::Tensor(empty) = &values[4] else { panic!() };
    assert_eq!(empty.dims.as_slice(), [Some(0), Some(0)]);
}

#[test]
fn a_file_may_hold_several_modules() {
    let text =
        "func.func @a() {\n  return\n}\n// -----\nmodule {\n}\n// -----\nfunc.func @b() {\n  %0 = oops\n  return\n}\n";
    let error = read("m", text).unwrap_err();
    assert!(error.message().starts_with("m:9:8: `oops` is not an operation"), "{}", error.message());
    let modules = read("m", &text.replace("  %0 = oops\n", "")).unwrap();
    assert_eq!(modules.iter().map(|m| m.functions.len()).collect::<Vec<_>>(), [1, 0, 1]);
    assert!(read_one("m", "").unwrap_err().message().contains("no module"));
}

#[test]
fn errors_say_where_and_what() {
    let cases = [
        ("%0 = stablehlo.add %a, %b : tensor<3xf32>", "t:2:26: the value `%b` is not defined above"),
        (
            "%0 = stablehlo.add %a, %a : tensor<4xf32>",
            "t:2:31: operand 1 of `stablehlo.add` is tensor<3xf32>, and the text says tensor<4xf32>",
        ),
        ("%0, %1 = stablehlo.abs %a : tensor<3xf32>", "t:2:3: 2 names for the 1 results of `stablehlo.abs`"),
        ("%0 = stablehlo.constant dense<[1, 2]> : tensor<3xi32>", "t:2:33: 2 items where the type has 3"),
        ("%0 = stablehlo.constant dense<300> : tensor<i8>", "t:2:33: 300 does not fit 8 bits"),
        ("%0 = stablehlo.constant dense<\"0x00\"> : tensor<3xf32>", "t:2:34: 1 bytes for 3 elements of 4 bytes each"),
        ("%0 = stablehlo.abs %a : tensor<3xf33>", "t:2:36: there is no type `f33`"),
        ("%0 = stablehlo.abs %a : tensor<99999999999999999999xf32>", "t:2:34: this dimension is too large"),
        (
            "%0 = stablehlo.transpose %a, dim = [0] : (tensor<3xf32>) -> tensor<3xf32>",
            "t:2:32: expected `dims`, found `dim`",
        ),
        ("%0 = stablehlo.abs %a {x = \"open} : tensor<3xf32>", "t:2:30: this text has no closing `\"`"),
        (
            "%0 = \"stablehlo.abs\"(%a) {x = 1, x = 2} : (tensor<3xf32>) -> tensor<3xf32>",
            "t:2:36: the attribute `x` is given twice",
        ),
        ("%a = stablehlo.abs %a : tensor<3xf32>", "the value `%a` is defined twice"),
    ];
    for (line, wanted) in cases {
        let text = format!("func.func @f(%a: tensor<3xf32>) {{\n  {line}\n  return\n}}");
        let error = read("t", &text).unwrap_err();
        assert!(error.message().contains(wanted), "{line}\n  {}\n  {wanted}", error.message());
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let wrong = |text: String| {
        let error = read("deep", &text).unwrap_err();
        assert!(error.message().contains("levels deep"), "{}", error.message());
    };
    let n = 100_000;
    wrong(format!("#a = {}", "[".repeat(n)));
    wrong(format!("#a = {}", "{a = ".repeat(n)));
    wrong(format!("!a = {}", "tuple<".repeat(n)));
    wrong(format!("!a = {}", "(".repeat(n)));
    wrong(format!("func.func @f() {{ {}", "\"a.b\"() ({ ".repeat(n)));
    wrong(format!("func.func @f() {{ {}", "stablehlo.while() cond { ".repeat(n)));
    let attribute = "#stablehlo.replica_group_mesh_axes<mesh = ".repeat(300) + "1" + &">".repeat(300);
    wrong(format!("#a = {attribute}"));
    // Places are stepped over without going down, however deep they are.
    let text = format!("func.func @f() {{ return loc({}\"a\"{}) }}", "callsite(".repeat(n), ")".repeat(n));
    assert_eq!(read("deep", &text).unwrap().len(), 1);
}

#[test]
fn no_text_makes_the_reader_panic() {
    let texts = [
        ALL,
        "func.func @f() {\n  %0 = stablehlo.constant dense_resource<w> : tensor<2xi16>\n  return\n}\n{-#\n dialect_resources: { builtin: { w: \"0x0400000001000200\" } }\n#-}\n",
        "func.func @f(%a: tensor<2x!quant.uniform<u8:f32, 0.5:128>>) {\n  %0 = stablehlo.constant dense<[(1.0,0x7FC00000), (-2.5e-3, 0.0)]> : tensor<2xcomplex<f32>>\n  %1 = stablehlo.convolution(%a, %a) dim_numbers = [b, f]x[i, o]->[b, f], window = {pad = [[1, 2]]} : (tensor<2x!quant.uniform<u8:f32, 0.5:128>>) -> tensor<?xf32, #stablehlo.bounds<4>>\n  check.expect_close %0, %0, max_ulp_difference = 3 : tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>\n}\n",
        "\"builtin.module\"() ({\n  \"func.func\"() <{function_type = (tensor<f32>) -> tensor<f32>, sym_name = \"é\"}> ({\n  ^bb0(%a: tensor<f32>):\n    \"func.return\"(%a) : (tensor<f32>) -> ()\n  }) : () -> ()\n}) : () -> ()\n// -----\n",
    ];
    let try_it = |text: &str| {
        if let Ok(modules) = read("t", text) {
            for module in modules {
                let _ = verify(&module);
                let _ = legalize_quantized(module);
            }
        }
    };
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % n.max(1) as u64) as usize
    };
    let pieces = [
        "<",
        ">",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "%",
        "#",
        "!",
        "@",
        "\"",
        ",",
        ":",
        "->",
        "0x",
        "-",
        "9999999999",
        "dense",
        "x",
        "tensor",
        "loc",
        "?",
        "é",
    ];
    for text in texts {
        (0..text.len()).filter(|i| text.is_char_boundary(*i)).for_each(|i| try_it(&text[..i]));
        for _ in 0..3_000 {
            let mut changed = text.to_owned();
            for _ in 0..=random(3) {
                let [from, to] = [random(changed.len()), random(changed.len())];
                let near = from + random(8);
                if [from, to, near.min(changed.len())].iter().any(|i| !changed.is_char_boundary(*i)) {
                    continue;
                }
                match random(3) {
                    0 => changed.insert_str(from, pieces[random(pieces.len())]),
                    1 => changed.replace_range(from..near.min(changed.len()), ""),
                    _ => {
                        let part = changed[from..near.min(changed.len())].to_owned();
                        changed.insert_str(to, &part);
                    }
                }
            }
            try_it(&changed);
        }
    }
}

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, into);
        } else if path.extension().is_some_and(|e| e == "mlir") {
            into.push(path);
        }
    }
}

#[test]
fn public_files_read_and_are_modules() {
    for variable in ["GRADUS_STABLEHLO_DATA", "GRADUS_JAX_EXPORT"] {
        let Some(folder) = std::env::var_os(variable).map(PathBuf::from) else {
            println!("NOT RUN: {variable} does not name a folder of StableHLO files");
            continue;
        };
        let mut paths = Vec::new();
        files(&folder, &mut paths);
        assert!(!paths.is_empty(), "{variable} names a folder without files");
        for path in paths {
            let text = std::fs::read_to_string(&path).unwrap();
            let modules = read(&path.to_string_lossy(), &text).unwrap_or_else(|e| panic!("{e}"));
            assert!(!modules.is_empty(), "{}", path.display());
            for module in modules {
                verify(&module).unwrap_or_else(|e| panic!("{e}"));
                // Without quantized types it is a module again.
                let legal = legalize_quantized(module).unwrap_or_else(|e| panic!("{e}"));
                verify(&legal).unwrap_or_else(|e| panic!("{e}"));
            }
        }
    }
}

//! A golden file for every message a user can meet. `GRADUS_BLESS=1` rewrites them.

use std::path::PathBuf;

use gradus::extend::program::Builder;
use gradus::prelude::*;

/// Compares an error with its golden file. Lines and columns move when this file is edited, so they are masked.
fn golden(name: &str, error: &Error) {
    let text = mask(&format!("{error}\n"));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("GRADUS_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let want = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(!want.trim().is_empty(), "{} is empty", path.display());
    assert_eq!(text, want, "{}", path.display());
}

/// `crates/gradus/tests/errors.rs:12:9` becomes `errors.rs:LINE`.
fn mask(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("errors.rs:") {
        let start = rest[..at].rfind([' ', '\n']).map_or(0, |i| i + 1);
        out.push_str(&rest[..start]);
        out.push_str("errors.rs:LINE");
        let after = &rest[at + "errors.rs:".len()..];
        let end = after.find(|c: char| !(c.is_ascii_digit() || c == ':')).unwrap_or(after.len());
        rest = &after[end..];
    }
    out + rest
}

fn failed(array: Array) -> Error {
    array.ok().expect_err("the operation should fail")
}

fn vector(n: usize) -> Array {
    Array::from(vec![1.0_f64; n])
}

#[test]
fn row_e4_every_kind_of_error_has_a_golden_message() {
    use ErrorKind::*;
    let x = vector(2);
    let mut seen = Vec::new();
    let mut check = |name: &str, kind: ErrorKind, error: Error| {
        assert_eq!(error.kind(), kind, "{name}: {error}");
        golden(name, &error);
        seen.push(kind);
    };
    check("shapes_do_not_broadcast", Shape, failed(&x + vector(3)));
    check("reshape_changes_the_size", Shape, failed(x.reshape([3])));
    check("ragged_rows", Shape, failed(Array::from(vec![vec![1.0_f64], vec![1.0, 2.0]])));
    check("item_of_many", Shape, x.item::<f64>().unwrap_err());
    check("matrix_product_misfit", Shape, failed(Array::ones::<f64>([2, 3]).dot(&Array::ones::<f64>([2, 3]))));
    check("no_common_dtype", DType, failed(Array::from(1_i64) + Array::from(1.0_f64)));
    check("literal_loses_a_fraction", DType, failed(Array::from(1_i32) * 0.5_f64));
    check("literal_is_rounded", DType, failed(Array::from(1.0_f32).maximum(-1e30)));
    check("sine_of_integers", DType, failed(Array::from(1_i32).sin()));
    check("read_as_another_dtype", DType, x.to_vec::<f32>().unwrap_err());
    check("order_of_complex", DType, failed(Array::complex(&x, &x).lt(1.0_f64)));
    check("axis_out_of_range", Axis, failed(x.sum_axes(3)));
    check("axis_named_twice", Axis, failed(Array::ones::<f64>([2, 2]).sum_axes([0, -2])));
    check("index_out_of_range", Index, failed(x.index(5)));
    check("dimension_overflow", Size, failed(Array::zeros::<f64>([usize::MAX / 2, 1 << 20])));
    check("negative_dimension", Size, failed(Array::zeros::<f64>([-3])));
    check("read_of_a_spec", NotConcrete, Array::spec("f64[]").item::<f64>().unwrap_err());
    check("boolean_mask_of_unknown_size", Index, failed(x.index(x.gt(0.0_f64))));
    let read = jit(|x: &Array| if x.item::<f64>().unwrap_or(0.0) > 0.0 { x.clone() } else { -x });
    check("read_of_a_traced_value", NotConcrete, failed(read(&Array::from(1.0_f64))));
    let slot = std::sync::Arc::new(std::sync::Mutex::new(None));
    let s = slot.clone();
    let leak = jit(move |x: &Array| {
        *s.lock().unwrap() = Some(x.clone());
        x.clone()
    });
    leak(&x).to_vec::<f64>().unwrap();
    let leaked: Array = slot.lock().unwrap().take().unwrap();
    check("escaped_tracer", EscapedTracer, failed(leaked.sin()));
    check("bad_type_text", Parse, failed(Array::spec("f64[2")));
    check("bad_dtype_text", Parse, failed(Array::spec("float[2]")));
    check(
        "bad_program_text",
        Parse,
        "fn f(x0: f64[]) -> f64[] {\n  x1: f64[] = sine x0\n  return x1\n}".parse::<Program>().unwrap_err(),
    );
    check("bad_einsum", Parse, failed(Array::einsum("ij,?k->ik", &[x.clone(), x.clone()])));
    check(
        "wrong_type_in_text",
        Verify,
        "fn f(x0: f64[2]) -> f64[3] {\n  x1: f64[3] = sin x0\n  return x1\n}".parse::<Program>().unwrap_err(),
    );
    let mut late = Builder::new("late");
    late.input(Type::scalar(gradus::DType::F64)).unwrap();
    let first = late.equation(
        gradus::extend::primitives::Op::fixed(&gradus::extend::primitives::elementwise::Sin),
        &[gradus::extend::program::ValueId::new(0).into()],
        gradus::extend::error::Location::unknown(),
    );
    first.unwrap();
    check("input_after_an_equation", Verify, late.input(Type::scalar(gradus::DType::F64)).unwrap_err());

    let by_scale = jit(|x: &Array, n: &Static<i32>| x * **n);
    let compiled = by_scale.compile(&x, &Static(2)).unwrap();
    check("frozen_value_changed", Frozen, compiled.call(&x, &Static(3)).err().unwrap());
    let once = jit(|x: &Array| x.sum()).budget(1).on_budget(OnBudget::Error);
    assert!(once(&x).ok().is_ok());
    check("budget_exceeded", Budget, failed(once(&vector(3))));
    check("call_of_another_type", Signature, compiled.call(&vector(3), &Static(2)).err().unwrap());
    check("gradient_of_a_vector", Signature, failed(grad(|x: &Array| x.sin())(&x)));
    check("mapped_sizes_differ", Axis, failed(vmap(|a: &Array, b: &Array| a + b)(&vector(2), &vector(3))));
    check("nothing_to_map", Axis, failed(vmap(|a: &Array| a.sin())(&Array::from(1.0_f64))));
    let symbolic: Program =
        "fn f(x0: f64[A], x1: f64[B]) -> f64[A] where A==B {\n  x2: f64[A] = add x0 x1\n  return x2\n}"
            .parse()
            .unwrap();
    check(
        "constraint_violated",
        Constraint,
        gradus::extend::interpret(&symbolic, &[vector(2), vector(3)]).unwrap_err(),
    );
    let strided = Array::ones::<f64>([4]).index(gradus::Index::step(0..4, 2));
    check("slice_of_a_view", Value, strided.as_slice::<f64>().map(<[f64]>::len).unwrap_err());

    let checked = jit(|x: &Array| {
        debug_check!(x.lt(10.0_f64), "the largest is {:.2}", x.max());
        x.clone()
    });
    check("check_failed", Check, failed(checked(&Array::from([1.0_f64, 20.5, 3.0]))));
    let panics = jit(|x: &Array| {
        debug_callback(|_| panic!("the host has had enough"), &[x]);
        x.clone()
    });
    check("callback_panicked", Callback, failed(panics(&x)));
    let promised = jit(|x: &Array| pure_callback(|v| Ok(v.to_vec()), &["f32[2]".parse().unwrap()], &[x]).remove(0));
    check("callback_gave_another_type", Callback, failed(promised(&x)));

    check("unknown_kind_of_file", File, files::save("weights.txt", &x).unwrap_err());

    check("plugin_that_is_not_there", Device, gradus::devices::backend("pjrt:/no/such/plugin.so").unwrap_err());

    for kind in ErrorKind::ALL {
        // The first two come from primitives written outside the crate; `custom_primitive.rs` has their golden files,
        // `hunting.rs` has those of the third, and `verify.rs` looks at the last two.
        if !matches!(kind, MissingRule | Rule | NotFinite | Mismatch | Internal) {
            assert!(seen.contains(kind), "no golden message for {kind:?}");
        }
    }
}

#[test]
fn row_e4_errors_of_control_flow_and_custom_rules_have_golden_messages() {
    let x = Array::from(1.0_f64);
    let check = |name: &str, result: Array| golden(name, &failed(result));
    check("branches_differ", cond(true, |x: &Array| x.clone(), |x: &Array| x.cast(DType::F32), &x));
    let (_, b) = cond(
        x.gt(0.0_f64),
        |(a, b): &(Array, Array)| (a.clone(), b.clone()),
        |(a, b): &(Array, Array)| (a.clone(), b.reshape([1])),
        &(x.clone(), x.clone()),
    );
    check("branches_differ_inside", b);
    check("predicate_with_axes", cond(vector(2).gt(0.0_f64), |x: &Array| x.clone(), |x: &Array| -x, &x));
    check("condition_is_not_a_bool", while_loop(|x: &Array| x.clone(), |x: &Array| x.clone(), x.clone()));
    check("state_changes_its_type", while_loop(|x: &Array| x.gt(0.0_f64), |x: &Array| x.cast(DType::F32), x.clone()));
    check("carry_changes_its_type", scan(|c: &Array, x: &Array| (c.reshape([1]) + x, ()), x.clone(), &vector(2)).0);
    check("scan_of_a_scalar", gradus::map(|x: &Array| x.sin(), &x));
    check("sequences_of_two_lengths", gradus::map(|(a, b): &(Array, Array)| a + b, &(vector(2), vector(3))));
    check("scan_without_a_length", scan(|c: &Array, (): &()| (c.clone(), ()), x.clone(), &()).0);
    check("loop_bounds_are_floats", fori_loop(0, &x, |_, y: &Array| y.clone(), x.clone()));
    let zero = ScanOptions::new().steps(Steps::Every(0));
    check("checkpoint_every_zero_steps", zero.scan(|c: &Array, x: &Array| (c + x, ()), x.clone(), &vector(2)).0);
    let symbolic = jit(|x: &Array| {
        let options = ScanOptions::new().steps(Steps::Recursive);
        options.scan(|c: &Array, x: &Array| (c + x, ()), Array::from(0.0_f64), x).0
    });
    golden("checkpoints_of_a_symbolic_length", &symbolic.trace(&Array::spec("f64[B]")).unwrap_err());
    check(
        "one_checkpoint",
        WhileOptions::new().history(History::Checkpoints(1)).while_loop(
            |x: &Array| x.gt(0.0_f64),
            |x: &Array| x - 1.0_f64,
            x.clone(),
        ),
    );
    let read = fori_loop(0, 3, |i, y: &Array| y * Array::from(i.item::<i64>().unwrap_or(0) as f64), x.clone());
    check("read_in_a_loop", read);
    let clipped = custom_vjp(
        |x: &Array| x.clone(),
        |x: &Array| (x.clone(), ()),
        |_: &(), bar: &Array| bar.clamp(-1.0_f64, 1.0_f64),
    );
    golden("forward_mode_of_a_backward_pass", &failed(jvp(clipped, &x, &x).1));
    let captured = grad(|w: &Array| {
        let w = w.clone();
        custom_jvp(move |x: &Array| x * &w, |x: &Array, x_dot: &Array| (x.clone(), x_dot.clone()))(&Array::from(
            2.0_f64,
        ))
    });
    check("captured_and_differentiated", captured(&x));
    let tangent = custom_jvp(|x: &Array| x.sum(), |x: &Array, x_dot: &Array| (x.sum(), x_dot.clone()));
    check("tangent_of_another_type", grad(tangent)(&vector(2)));
    let cotangent = custom_vjp(|x: &Array| x.sum(), |x: &Array| (x.sum(), ()), |_: &(), bar: &Array| bar.clone());
    check("cotangent_of_another_type", grad(cotangent)(&vector(2)));
    let host = |x: &Array| pure_callback(|v| Ok(v.to_vec()), &["f64[]".parse().unwrap()], &[x]).remove(0);
    check("derivative_of_a_callback", grad(host)(&x));
    let ordered = |x: &Array| io_callback(|v| Ok(v.to_vec()), &["f64[]".parse().unwrap()], &[x]).remove(0);
    check("ordered_effect_in_a_batch", vmap(ordered)(&vector(2)));
    let each = gradus::map(ordered, &vector(2));
    assert_eq!(each.to_vec::<f64>().unwrap(), [1.0, 1.0]);
    let wrong = custom_jvp(|x: &Array| x.sin(), |x: &Array, x_dot: &Array| (x.sin(), x.sin() * x_dot));
    golden("check_grads_finds_a_wrong_rule", &check_grads(wrong, &x, 1).unwrap_err());
}

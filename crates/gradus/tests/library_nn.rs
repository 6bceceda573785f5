//! Parts of networks against JAX and Optax: values and gradients, `scripts/reference/nn.py` computed them; and what they say of wrong input.

use std::collections::BTreeMap;

use gradus::prelude::*;
use serde_json::Value;

fn array(value: &Value) -> Array {
    let numbers = |v: &Value| v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect::<Vec<_>>();
    let shape: Vec<usize> = numbers(&value["shape"]).iter().map(|d| *d as usize).collect();
    Array::from_vec(numbers(&value["data"]), shape.as_slice())
}

fn references() -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/nn.jsonl")).unwrap();
    let read = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        (value["name"].as_str().unwrap().to_string(), value)
    };
    text.lines().map(read).collect()
}

/// Value and gradients of a case, eager and staged.
fn holds(all: &mut BTreeMap<String, Value>, name: &str, f: impl Fn(&[Array]) -> Array + Clone + Send + Sync + 'static) {
    let case = all.remove(name).unwrap_or_else(|| panic!("no reference {name}"));
    let inputs: Vec<Array> = case["inputs"].as_array().unwrap().iter().map(array).collect();
    let near = |a: &Array, b: &Array, what: &str| {
        assert!(tree::all_close(a, b, 1e-12).unwrap(), "{what} of {name}: {a} {b}");
    };
    near(&f(&inputs), &array(&case["value"]), "value");
    let weighted = move |xs: &Vec<Array>| {
        let y = f(xs).flatten();
        let weights = Array::iota(DType::F64, [y.dim(0)], 0).cos();
        (y * weights).sum()
    };
    for (i, g) in jit(grad(weighted))(&inputs).iter().enumerate() {
        near(g, &array(&case["grads"][i]), "gradient");
    }
}

#[test]
fn row_a2_layers_losses_and_attention_are_those_of_jax() {
    let mut all = references();
    let mask = array(&all.remove("mask").unwrap()["inputs"][0]).ne(0.0_f64);
    let each = &mut all;
    holds(each, "layer_norm", |x| nn::layer_norm(&x[0], &x[1], &x[2], 1e-3));
    holds(each, "layer_norm_two_axes", |x| nn::layer_norm(&x[0], &x[1], &x[2], 1e-3));
    holds(each, "rms_norm", |x| nn::rms_norm(&x[0], &x[1], 1e-3));
    let plain = nn::Attention::default;
    holds(each, "attention", move |x| nn::attention(&x[0], &x[1], &x[2], plain()));
    holds(each, "attention_causal", move |x| nn::attention(&x[0], &x[1], &x[2], plain().causal()));
    holds(each, "attention_options", move |x| {
        nn::attention(&x[0], &x[1], &x[2], plain().bias(&x[3]).mask(&mask).scale(0.3))
    });
    holds(each, "attention_groups", move |x| nn::attention(&x[0], &x[1], &x[2], plain()));
    holds(each, "attention_single", move |x| nn::attention(&x[0], &x[1], &x[2], plain()));
    holds(each, "mse", |x| nn::mse(&x[0], &x[1]));
    holds(each, "huber", |x| nn::huber(&x[0], &x[1], 0.7));
    holds(each, "log_cosh", |x| nn::log_cosh(&x[0], &x[1]));
    holds(each, "softmax_cross_entropy", |x| nn::softmax_cross_entropy(&x[0], &x[1]));
    holds(each, "integer_labels", |x| {
        nn::softmax_cross_entropy_with_integer_labels(&x[0], &Array::from([2_i32, 0, 3]))
    });
    holds(each, "sigmoid_binary_cross_entropy", |x| nn::sigmoid_binary_cross_entropy(&x[0], &x[1]));
    holds(each, "hinge", |x| nn::hinge(&x[0], &x[1]));
    holds(each, "kl_divergence", |x| nn::kl_divergence(&x[0], &x[1]));
    holds(each, "cosine_similarity", |x| nn::cosine_similarity(&x[0], &x[1], 1e-8));
    holds(each, "label_smoothing", |x| nn::label_smoothing(&x[0], 0.1));
    let draws: [(&str, fn(Key, [usize; 3]) -> Array); 6] = [
        ("glorot_uniform", nn::init::glorot_uniform::<f64>),
        ("glorot_normal", nn::init::glorot_normal::<f64>),
        ("he_uniform", nn::init::he_uniform::<f64>),
        ("he_normal", nn::init::he_normal::<f64>),
        ("lecun_uniform", nn::init::lecun_uniform::<f64>),
        ("lecun_normal", nn::init::lecun_normal::<f64>),
    ];
    for (name, draw) in draws {
        let wanted = array(&all.remove(name).unwrap()["value"]);
        assert!(tree::all_close(&draw(Key::new(5), [2, 3, 4]), &wanted, 1e-9).unwrap(), "{name}");
    }
    let wanted = array(&all.remove("truncated_normal").unwrap()["value"]);
    assert!(tree::all_close(&nn::init::truncated_normal::<f64>(Key::new(5), [7], 0.3), &wanted, 1e-9).unwrap());
    assert!(all.is_empty(), "references without a test: {:?}", all.keys());
}

#[test]
fn extremes_stay_finite() -> Result<()> {
    let far = Array::from([-800.0_f64, 0.0, 800.0]);
    let no = far.zeros_like();
    let losses: [fn(&Array, &Array) -> Array; 4] =
        [nn::sigmoid_binary_cross_entropy, nn::log_cosh, nn::softmax_cross_entropy, |a, b| {
            nn::cosine_similarity(a, b, 1e-6)
        }];
    for loss in losses {
        let total = move |x: &Array, y: &Array| loss(x, y).sum();
        let (value, gradient) = value_and_grad(total)(&far, &no);
        assert!(value.item::<f64>()?.is_finite() && gradient.to_vec::<f64>()?.iter().all(|g| g.is_finite()));
        let (value, gradient) = value_and_grad(total)(&no, &no);
        assert!(value.item::<f64>()?.is_finite() && gradient.to_vec::<f64>()?.iter().all(|g| g.is_finite()));
    }
    // A query that may look nowhere.
    let x = Array::ones::<f32>([2, 1, 3]);
    let nowhere = nn::Attention::default().mask(&Array::from(false));
    assert_eq!(nn::attention(&x, &x, &x, nowhere).to_vec::<f32>()?, vec![1.0; 6]);
    // Squares of halves that no half holds.
    let large = Array::from([300.0_f32, -300.0]).cast(DType::F16);
    let one = large.ones_like();
    let y = nn::rms_norm(&large, &one, 1e-6).cast(DType::F64).to_vec::<f64>()?;
    assert_eq!(y, [1.0, -1.0]);
    Ok(())
}

#[test]
fn batches_normalize_and_sizes_may_be_symbols() -> Result<()> {
    let norm = nn::BatchNorm::over([0, 1]).epsilon(0.0).momentum(0.9);
    let x = Array::arange(0.0_f64, 24.0, 1.0).cos().reshape([3, 4, 2]);
    let stats = norm.init(&x);
    let (y, after) = jit({
        let norm = norm.clone();
        move |x: &Array, s: &nn::BatchStats| norm.train(x, s)
    })(&x, &stats);
    assert!(tree::all_close(&y.mean_axes([0, 1]), &Array::zeros::<f64>([2]), 1e-12)?);
    assert!(tree::all_close(&y.var_axes([0, 1], 0), &Array::ones::<f64>([2]), 1e-12)?);
    assert!(tree::all_close(&after.mean, &(x.mean_axes([0, 1]) * 0.1_f64), 1e-12)?);
    assert!(tree::all_close(&after.variance, &(x.var_axes([0, 1], 0) * 0.1_f64 + 0.9_f64), 1e-12)?);
    let still = norm.apply(&x, &nn::BatchStats { mean: x.mean_axes([0, 1]), variance: x.var_axes([0, 1], 0) });
    assert!(tree::all_close(&still, &y, 1e-12)?);
    let check = {
        let (norm, stats) = (norm.clone(), stats.clone());
        move |x: &Array| norm.train(x, &stats).0.sin()
    };
    check_grads(check, &x, 1)?;
    let model = |q: &Array| {
        let y = nn::attention(q, q, q, nn::Attention::default().causal());
        nn::mse(&nn::layer_norm(&y, &Array::ones::<f64>([4]), &Array::zeros::<f64>([4]), 1e-5), q)
    };
    let open = jit(grad(model)).symbolic("f64[T, 2, 4] where T >= 1");
    for t in [1_usize, 3, 7] {
        let q = Array::arange(0.0_f64, (t * 8) as f64, 1.0).sin().reshape([t, 2, 4]);
        assert!(tree::all_close(&open(&q), &grad(model)(&q), 1e-12)?);
    }
    assert_eq!(open.stats().compiles, 1);
    Ok(())
}

#[test]
fn dropout_is_drawn_by_keys() -> Result<()> {
    let x = Array::ones::<f64>([64]);
    let drop = |x: &Array, key: &Key| nn::dropout(key.take(), x, 0.5);
    let (a, b) = (jit(drop)(&x, &Key::new(1)), jit(drop)(&x, &Key::new(1)));
    assert!(a.is_identical(&b));
    assert!(!a.is_identical(&drop(&x, &Key::new(2))));
    let slopes = grad(move |x: &Array, key: &Key| drop(x, key).sum())(&x, &Key::new(1));
    assert!(slopes.is_identical(&a), "the slope is what a one became");
    assert_eq!(nn::dropout(Key::new(1), &x, 1.0).sum().item::<f64>()?, 0.0);
    assert_eq!(nn::dropout(Key::new(1), &x, 0.0).sum().item::<f64>()?, 64.0);
    Ok(())
}

/// What JAX's `bernoulli` draws for arrays of 32 bits: numbers of 32 bits.
#[test]
fn dropout_draws_in_the_dtype_of_its_array() -> Result<()> {
    let kept = |dtype: DType| nn::dropout(Key::new(3), &Array::ones::<f64>([64]).cast(dtype), 0.3).ne(0.0_f64);
    let drawn = gradus::random::bernoulli(Key::new(3), 0.7_f32, [64]);
    assert!(kept(DType::F32).is_identical(&drawn));
    assert!(kept(DType::F16).is_identical(&drawn) && kept(DType::BF16).is_identical(&drawn));
    assert!(kept(DType::F64).is_identical(&gradus::random::bernoulli(Key::new(3), 0.7_f64, [64])));
    Ok(())
}

/// `jnp.take_along_axis` in its mode `fill`, which Optax uses: no class, no loss. Negative numbers count from the end.
#[test]
fn labels_that_are_no_class_have_no_loss() -> Result<()> {
    let logits = Array::from([1.0_f64, 2.0, 4.0]).broadcast_to([5, 3]);
    let of = |labels: &Array| nn::softmax_cross_entropy_with_integer_labels(&logits, labels);
    let loss = of(&Array::from([3_i32, 0, -1, -4, 2])).to_vec::<f64>()?;
    assert_eq!(loss.iter().map(|l| l.is_nan()).collect::<Vec<_>>(), [true, false, false, true, false]);
    assert_eq!(loss[2], loss[4]);
    assert!(of(&Array::from([3_u8, 255, 3, 200, 7])).is_nan().all().item::<bool>()?);
    assert!(of(&Array::from([u64::MAX, 3, 1 << 63, 4, 5])).is_nan().all().item::<bool>()?);
    // The slope is what JAX gives: that of the normalization alone.
    let slope = grad(|l: &Array| nn::softmax_cross_entropy_with_integer_labels(l, &Array::from([3_i32])).sum());
    let one = Array::from([[1.0_f64, 2.0, 4.0]]);
    assert!(tree::all_close(&slope(&one), &one.softmax(-1), 1e-12)?);
    Ok(())
}

#[test]
fn what_does_not_fit_is_named() {
    let says = |found: Array, parts: &[&str]| {
        let e = found.error().expect("an error").to_string();
        assert!(parts.iter().all(|p| e.contains(p)) && e.contains("library_nn.rs"), "{parts:?} {e}");
    };
    let (x, y) = (Array::ones::<f32>([3, 4]), Array::ones::<f32>([3, 1]));
    says(nn::mse(&x, &y), &["`mse`", "f32[3,1]", "f32[3,4]"]);
    says(nn::softmax_cross_entropy(&x, &Array::from([1_i32])), &["labels", "i32[1]"]);
    says(nn::softmax_cross_entropy_with_integer_labels(&x, &y), &["integers", "f32[3,1]"]);
    says(nn::softmax_cross_entropy_with_integer_labels(&x, &Array::from([[1_i32]])), &["i32[1,1]", "one label"]);
    for labels in [Array::from([1_i32]), Array::from([0_i32, 1])] {
        let parts = ["`softmax_cross_entropy_with_integer_labels`", "f32[3,4]", "one label"];
        says(nn::softmax_cross_entropy_with_integer_labels(&x, &labels), &parts);
    }
    for stats in [nn::BatchNorm::over([0]).init(&y), nn::BatchNorm::over([0]).init(&x.cast(DType::F64))] {
        let parts = ["`batch_norm`: running numbers", "for a batch with f32[4]", "`init`"];
        says(nn::BatchNorm::over([0]).apply(&x, &stats), &parts);
        let (y, next) = nn::BatchNorm::over([0]).train(&x, &stats);
        says(y, &parts);
        says(next.mean, &parts);
    }
    says(nn::linear(&x, &Array::ones::<f32>([5, 2]), None), &["f32[3,4]"]);
    says(nn::linear(&x, &Array::ones::<f32>([4]), None), &["matrix", "f32[4]"]);
    says(nn::embedding(&x, &y), &["integers"]);
    says(nn::layer_norm(&x, &Array::from(1.0_f32), &Array::from(1.0_f32), 1e-5), &["scale", "f32[]"]);
    let (four, five) = (Array::ones::<f32>([4]), Array::ones::<f32>([5]));
    says(nn::layer_norm(&x, &five, &five, 1e-5), &["`layer_norm`", "scale", "f32[5]", "f32[3,4]"]);
    says(nn::layer_norm(&x, &four, &five, 1e-5), &["`layer_norm`", "offset", "f32[5]", "f32[3,4]"]);
    says(nn::rms_norm(&x, &five, 1e-5), &["`rms_norm`", "scale", "f32[5]", "f32[3,4]"]);
    says(nn::linear(&x, &Array::ones::<f32>([4, 2]), Some(&five)), &["`linear`", "bias", "f32[5]", "f32[3,2]"]);
    let stats = nn::BatchNorm::over([0]).init(&Array::ones::<f32>([3, 5]));
    says(nn::BatchNorm::over([0]).apply(&x, &stats), &["`batch_norm`", "f32[5]", "f32[3,4]"]);
    says(nn::dropout(Key::new(0), &x, 1.5), &["1.5"]);
    says(nn::attention(&x, &x, &x, nn::Attention::default()), &["f32[3,4]", "heads"]);
    let (q, k) = (Array::ones::<f32>([2, 3, 4]), Array::ones::<f32>([2, 2, 4]));
    says(nn::attention(&q, &k, &k, nn::Attention::default()), &["3 heads of queries", "2 of keys"]);
    says(nn::attention(&q, &q, &q, nn::Attention::default().mask(&q)), &["bools"]);
    says(nn::init::he_normal::<f32>(Key::new(0), [4]), &["he_normal", "[4]"]);
    says(nn::init::he_normal::<i32>(Key::new(0), [4, 4]), &["floats"]);
    says(nn::BatchNorm::over([5]).init(&x).mean, &["axis 5"]);
}

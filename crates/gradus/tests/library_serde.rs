//! Trees through Serde: every dtype, numbers that text has no word for, and what does not fit.

use gradus::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Tree, Serialize, Deserialize)]
struct Training {
    arrays: Vec<Array>,
    bias: Option<Array>,
    name: Static<String>,
    state: optim::State<Array>,
    key: Key,
}

#[test]
fn row_a3_trees_read_back_from_serde() -> Result<()> {
    let numbers = Array::from([[0.0_f64, 1.0, 2.0], [3.0, 4.0, 5.0]]);
    let mut arrays: Vec<Array> = DType::VALUES.iter().map(|d| numbers.cast(*d)).collect();
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.1, 5e-324];
    arrays.extend([Array::from(odd), Array::from(odd).cast(DType::F32), numbers.t(), Array::zeros::<f32>([0, 3])]);
    arrays.push(Array::from([Complex::new(f64::NAN, 1.5)]));
    let adam = optim::adam(0.1);
    let w = Array::from([1.0_f64, 2.0]);
    let state = adam.step(&w, &w, &adam.init(&w)).1;
    let whole = Training { arrays, bias: None, name: Static("first".to_string()), state, key: Key::new(u64::MAX) };
    let text = serde_json::to_string(&whole).unwrap();
    let again: Training = serde_json::from_str(&text).unwrap();
    for (x, y) in whole.leaves().iter().zip(again.leaves()) {
        assert!(x.is_identical(&y), "{x:?} {y:?}");
    }
    assert_eq!(*again.name, "first");
    assert!(again.bias.is_none());
    Ok(())
}

#[test]
fn an_array_is_readable_text() {
    let text = serde_json::to_string(&Array::from([[1.5_f32], [f32::NAN]])).unwrap();
    assert_eq!(text, r#"{"dtype":"f32","shape":[2,1],"data":[1.5,"nan"]}"#);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let cases = [
        (r#"{"dtype":"f32","shape":[2],"data":[1.0]}"#, "1 number cannot"),
        (r#"{"dtype":"f32","shape":[1],"data":[1.0, 2.0]}"#, "more numbers"),
        (r#"{"dtype":"f99","shape":[1],"data":[1.0]}"#, "f99"),
        (r#"{"dtype":"i8","shape":[1],"data":[300]}"#, "300"),
        (r#"{"dtype":"f32","shape":[1],"data":["one"]}"#, "one"),
        (r#"{"dtype":"f32","shape":[4611686018427387904, 8],"data":[]}"#, ""),
        (r#"{"dtype":"f64","shape":[1000000000000],"data":[]}"#, "0 numbers"),
        (r#"{"shape":[1],"data":[1.0]}"#, "before its `data`"),
        (r#"{"dtype":"f32","shape":[1]}"#, "data"),
        (r#"{"dtype":"f32","shape":[1],"data":[1.0],"more":1}"#, "more"),
        ("[1.0]", ""),
    ];
    for (text, part) in cases {
        let e = serde_json::from_str::<Array>(text).unwrap_err().to_string();
        assert!(e.contains(part), "{text}: {e}");
    }
    assert!(serde_json::from_str::<Key>(r#"{"dtype":"u64","shape":[],"data":[7]}"#).is_err());
    assert!(serde_json::to_string(&Array::spec("f32[2]")).is_err());
}

//! Samples of primitives as data that another program can read: what `examples/dump_samples.rs` prints, and what the
//! test of reference values compares its file with.

use gradus_core::primitives::{BUILT_IN, Param, Sample};
use gradus_core::{Array, Complex, DType};
use serde_json::{Value, json};

/// Operations that hold programs, or only say something about a value: another implementation has no such thing to
/// compare with. Whole functions with control flow are compared with JAX in the tests of `gradus`. Schur's form is not unique: a test of its own asks
/// whether the factors give the matrix back.
pub const NOT_COMPARED: &[&str] = &[
    "call",
    "checkpoint",
    "switch",
    "scan",
    "while",
    "custom_jvp",
    "custom_vjp",
    "custom_linear",
    "linear_solve",
    "root",
    "stop_gradient",
    "name",
    "batch_most",
    "own_step",
    "schur",
];

/// Every sample of every built-in primitive that is compared, in order.
pub fn all() -> Vec<Sample> {
    let compared = BUILT_IN.iter().filter(|entry| !NOT_COMPARED.contains(&entry.name));
    compared.flat_map(|entry| (entry.samples)()).collect()
}

/// A sample as data: the operation's name and parameters, and its operands in exact text.
pub fn describe(sample: &Sample) -> Value {
    let params: serde_json::Map<String, Value> =
        sample.op.params().iter().map(|(name, value)| (name.to_string(), param(value))).collect();
    let inputs: Vec<Value> = sample.inputs.iter().map(array).collect();
    let tangents: Vec<Value> = tangents(sample).iter().map(|t| t.as_ref().map_or(Value::Null, array)).collect();
    json!({ "op": sample.op.name(), "params": params, "inputs": inputs, "tangents": tangents })
}

/// A direction for each operand of 64-bit floats or complex numbers, in which its derivative is compared. None at all
/// for a sample with other operands that have derivatives, or with numbers that are not finite.
pub fn tangents(sample: &Sample) -> Vec<Option<Array>> {
    let wide = |d: DType| matches!(d, DType::F64 | DType::C128) || !d.is_inexact();
    let finite = |a: &Array| match a.dtype() {
        DType::F64 => a.to_vec::<f64>().is_ok_and(|v| v.iter().all(|v| v.is_finite())),
        DType::C128 => a.to_vec::<Complex<f64>>().is_ok_and(|v| v.iter().all(|v| v.is_finite())),
        _ => true,
    };
    if !sample.inputs.iter().all(|a| wide(a.dtype()) && finite(a)) {
        return vec![None; sample.inputs.len()];
    }
    // Short binary fractions, none of them zero.
    let number = |i: usize, k: usize| ((i * 5 + k * 3) % 13) as f64 / 8.0 - 0.6875;
    let direction = |k: usize, a: &Array| {
        let count = a.shape().count().unwrap_or(0);
        match a.dtype() {
            DType::F64 => Some(Array::from_vec((0..count).map(|i| number(i, k)).collect(), a.shape())),
            DType::C128 => {
                let both = |i| Complex::new(number(i, k), number(i, k + 2));
                Some(Array::from_vec((0..count).map(both).collect(), a.shape()))
            }
            _ => None,
        }
    };
    sample.inputs.iter().enumerate().map(|(k, a)| direction(k, a)).collect()
}

fn param(param: &Param) -> Value {
    match param {
        Param::Bool(v) => json!(v),
        Param::Int(v) => json!(v),
        Param::List(items) => items.iter().map(self::param).collect(),
        other => json!(other.to_string()),
    }
}

/// An array as its type and its elements, written so that they read back bit for bit.
pub fn array(array: &Array) -> Value {
    let text = array.concrete().map(|c| {
        let elements = (0..c.count()).map(|i| c.scalar_at(i).map_or_else(|e| e.to_string(), |s| s.to_string()));
        elements.collect::<Vec<_>>().join(" ")
    });
    json!({ "type": array.ty().map_or_else(|e| e.to_string(), |t| t.to_string()), "values": text })
}

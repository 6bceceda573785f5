//! Samples of primitives as data that another program can read: what `examples/dump_samples.rs` prints, and what the
//! test of reference values compares its file with.

use gradus_core::Array;
use gradus_core::primitives::{BUILT_IN, Param, Sample};
use serde_json::{Value, json};

/// Every sample of every built-in primitive, in order.
pub fn all() -> Vec<Sample> {
    BUILT_IN.iter().flat_map(|entry| (entry.samples)()).collect()
}

/// A sample as data: the operation's name and parameters, and its operands in exact text.
pub fn describe(sample: &Sample) -> Value {
    let params: serde_json::Map<String, Value> =
        sample.op.params().iter().map(|(name, value)| (name.to_string(), param(value))).collect();
    let inputs: Vec<Value> = sample.inputs.iter().map(array).collect();
    json!({ "op": sample.op.name(), "params": params, "inputs": inputs })
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

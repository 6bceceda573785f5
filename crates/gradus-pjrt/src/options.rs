//! Options: what a client is made with and what a program is compiled with, in the forms that plugins take.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::fmt;

use crate::sys::{PJRT_NamedValue, PJRT_NamedValue_Type, args};

/// A value of an option or an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A whole number.
    Int(i64),
    /// Whole numbers.
    Ints(Vec<i64>),
    /// A number.
    Float(f32),
    /// A switch.
    Bool(bool),
}

impl Value {
    /// Whole numbers as a version: `1.13.3`.
    pub(crate) fn dotted(&self) -> String {
        match self {
            Value::Ints(all) => all.iter().map(i64::to_string).collect::<Vec<_>>().join("."),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(v) => f.write_str(v),
            Value::Int(v) => write!(f, "{v}"),
            Value::Ints(v) => write!(f, "{v:?}"),
            Value::Float(v) => write!(f, "{v}"),
            Value::Bool(v) => write!(f, "{v}"),
        }
    }
}

impl From<&str> for Value {
    fn from(v: &str) -> Value {
        Value::Text(v.into())
    }
}
impl From<String> for Value {
    fn from(v: String) -> Value {
        Value::Text(v)
    }
}
impl From<i64> for Value {
    fn from(v: i64) -> Value {
        Value::Int(v)
    }
}
impl From<Vec<i64>> for Value {
    fn from(v: Vec<i64>) -> Value {
        Value::Ints(v)
    }
}
impl From<f32> for Value {
    fn from(v: f32) -> Value {
        Value::Float(v)
    }
}
impl From<bool> for Value {
    fn from(v: bool) -> Value {
        Value::Bool(v)
    }
}

/// Options by name, in one order.
pub(crate) type Named = BTreeMap<String, Value>;

/// Options as plugins take them. They point into the map.
pub(crate) fn named_values(options: &Named) -> Vec<PJRT_NamedValue> {
    let each = |(name, value): (&String, &Value)| {
        let mut n =
            args!(PJRT_NamedValue { name: name.as_ptr().cast::<c_char>(), name_size: name.len(), value_size: 1 });
        match value {
            Value::Text(v) => {
                n.kind = PJRT_NamedValue_Type::STRING;
                n.value.string_value = v.as_ptr().cast::<c_char>();
                n.value_size = v.len();
            }
            Value::Int(v) => {
                n.kind = PJRT_NamedValue_Type::INT64;
                n.value.int64_value = *v;
            }
            Value::Ints(v) => {
                n.kind = PJRT_NamedValue_Type::INT64_LIST;
                n.value.int64_array_value = v.as_ptr();
                n.value_size = v.len();
            }
            Value::Float(v) => {
                n.kind = PJRT_NamedValue_Type::FLOAT;
                n.value.float_value = *v;
            }
            Value::Bool(v) => {
                n.kind = PJRT_NamedValue_Type::BOOL;
                n.value.bool_value = *v;
            }
        }
        n
    };
    options.iter().map(each).collect()
}

/// The few fields of XLA's `CompileOptionsProto` that are used, as protocol buffers write them.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut v: u64) {
        while v >= 0x80 {
            self.0.push(v as u8 | 0x80);
            v >>= 7;
        }
        self.0.push(v as u8);
    }

    fn number(mut self, field: u32, v: i64) -> Message {
        self.varint(u64::from(field) << 3);
        self.varint(v as u64);
        self
    }

    fn double(mut self, field: u32, v: f64) -> Message {
        self.varint(u64::from(field) << 3 | 1);
        self.0.extend_from_slice(&v.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u32, v: &[u8]) -> Message {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(v.len() as u64);
        self.0.extend_from_slice(v);
        self
    }
}

/// Flags of XLA's compiler for CPUs that are set unless the user says otherwise, because numbers are wrong without: `max` and `min` lose NaNs, and fused loops over
/// constants of some layouts read them in another order (seen with gathers from a constant, by JAX on the same plugin too).
pub(crate) const SAFER: [(&str, bool); 2] =
    [("xla_cpu_enable_fast_min_max", false), ("xla_cpu_use_fusion_emitters", false)];

/// How a program for one device is compiled: `CompileOptionsProto` with its device and XLA's own options.
pub(crate) fn compile_options(device: Option<i64>, flags: &Named) -> Vec<u8> {
    // `ExecutableBuildOptionsProto`: no ordinal, one replica, one partition.
    let mut build = Message::default().number(1, -1).number(4, 1).number(5, 1);
    if let Some(id) = device {
        // `DeviceAssignmentProto`: one computation on one device.
        let mut ids = Message::default();
        ids.varint(id as u64);
        let devices = Message::default().bytes(1, &ids.0);
        let assignment = Message::default().number(1, 1).number(2, 1).bytes(3, &devices.0);
        build = build.bytes(9, &assignment.0);
    }
    let mut all = Message::default().bytes(3, &build.0);
    for (name, value) in flags {
        // `OptionOverrideProto` in a map: an entry has the key as field 1 and the value as field 2.
        let value = match value {
            Value::Text(v) => Message::default().bytes(1, v.as_bytes()),
            Value::Bool(v) => Message::default().number(2, i64::from(*v)),
            Value::Int(v) => Message::default().number(3, *v),
            Value::Float(v) => Message::default().double(4, f64::from(*v)),
            Value::Ints(v) => Message::default().bytes(1, format!("{v:?}").as_bytes()),
        };
        let entry = Message::default().bytes(1, name.as_bytes()).bytes(2, &value.0);
        all = all.bytes(7, &entry.0);
    }
    all.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_written_as_protocol_buffers_are() {
        // By hand: field 3 holds {1: -1 (ten bytes), 4: 1, 5: 1}.
        let head = [&[0x08][..], &[0xff; 9], &[0x01, 0x20, 1, 0x28, 1]].concat();
        assert_eq!(compile_options(None, &Named::new()), [&[0x1a, 15][..], &head].concat());
        // Device 300 is {9: {1: 1, 2: 1, 3: {1: packed [300]}}} behind that.
        let device = [0x4a, 10, 8, 1, 16, 1, 0x1a, 4, 0x0a, 2, 0xac, 2];
        assert_eq!(compile_options(Some(300), &Named::new()), [&[0x1a, 27][..], &head, &device].concat());
        let flags = Named::from([("a".into(), Value::Bool(true))]);
        let have = compile_options(None, &flags);
        assert_eq!(have[have.len() - 9..], [0x3a, 7, 0x0a, 1, b'a', 0x12, 2, 0x10, 1]);
    }
}

//! An operation of another language, as data: how a primitive says what it is outside of Gradus without knowing who asks.

use super::{Param, ParamValue};

/// An operation by its name there, with named attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign {
    /// Its whole name: `stablehlo.custom_call`, `chlo.bessel_i1e`.
    pub name: String,
    /// Its attributes by their names.
    pub attributes: Vec<(String, Param)>,
}

impl Foreign {
    /// An operation without attributes.
    pub fn new(name: impl Into<String>) -> Foreign {
        Foreign { name: name.into(), attributes: Vec::new() }
    }

    /// A call of a function that whoever runs the program knows by this name.
    pub fn custom_call(target: impl Into<String>) -> Foreign {
        Foreign::new("stablehlo.custom_call").with("call_target_name", target.into()).with("api_version", 4_i64)
    }

    /// The same with an attribute more.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl ParamValue) -> Foreign {
        self.attributes.push((name.into(), value.to_param()));
        self
    }
}

//! Which rule an operation is exported by: one of this folder, its own, what it is made of, or its scalar form.

use std::sync::Arc;

use gradus_core::primitives::{Op, Param};
use gradus_core::trace::{at_place, trace_closed};
use gradus_core::{Array, Program, Result, Type};

use super::emit::Emit;
use super::{error, fail};
use crate::module::{Attribute, Attributes, Element, Float, Type as TreeType, Value};

impl Emit<'_> {
    /// The values of an operation's results.
    pub fn rule(&mut self, op: &Op, operands: &[Value], results: &[Type]) -> Result<Vec<Value>> {
        if let Some(made) = self.built_in(op, operands, results)? {
            return Ok(made);
        }
        let types: Vec<Type> = operands.iter().map(|v| self.ty(*v)).collect();
        if let Some(own) = op.stablehlo(&types) {
            let mut more = Attributes::default();
            for (name, value) in &own.attributes {
                more.set(name.clone(), attribute(name, value)?);
            }
            return self.operation(own.name, operands, more, vec![], results);
        }
        if let Some(parts) = self.parts_of(op, &types)? {
            return self.program(&parts, operands);
        }
        if let Some(made) = self.by_scalar_form(op, operands, results)? {
            return Ok(vec![made]);
        }
        Err(error!(MissingRule, "`{}` has no form in StableHLO", op.name()).at(self.place).help(if op.is_built_in() {
            "compute it outside of what is exported, or by other operations"
        } else {
            "give the primitive `stablehlo` (an operation of StableHLO or a custom call), `expand` (what it is made of in other operations) or `scalar` (arithmetic on one element)"
        }))
    }

    /// A rule of this folder. A name tells a built-in operation from the others of its kind.
    fn built_in(&mut self, op: &Op, operands: &[Value], results: &[Type]) -> Result<Option<Vec<Value>>> {
        if !op.is_built_in() {
            return Ok(None);
        }
        let rules = [
            Self::elementwise,
            Self::shaping,
            Self::indexing,
            Self::reductions,
            Self::windowed,
            Self::control,
            #[cfg(feature = "linalg")]
            Self::linear_algebra,
        ];
        for rule in rules {
            if let Some(made) = rule(self, op, operands, results)? {
                return Ok(Some(made));
            }
        }
        Ok(None)
    }

    /// What an operation is made of, as a program of its operands.
    pub fn parts_of(&mut self, op: &Op, types: &[Type]) -> Result<Option<Arc<Program>>> {
        let Some(expand) = op.expand(types) else { return Ok(None) };
        let parts = self.traced(op.name(), types, |inputs| Ok(expand(inputs)?.to_vec()))?;
        Ok(Some(parts.into()))
    }

    /// A program written in the language of arrays.
    pub fn traced(
        &mut self,
        name: &str,
        types: &[Type],
        f: impl FnOnce(&[Array]) -> Result<Vec<Array>>,
    ) -> Result<Program> {
        let inputs: Vec<Array> = types.iter().cloned().map(Array::of_type).collect();
        at_place(self.place, || trace_closed(name, &inputs, f))
    }
}

/// An attribute that an operation says of itself.
fn attribute(name: &str, value: &Param) -> Result<Attribute> {
    Ok(match value {
        Param::Bool(b) => Attribute::Bool(*b),
        // The one integer of StableHLO's operations that is not of 64 bits.
        Param::Int(n) if name == "api_version" => Attribute::Integer(i128::from(*n), TreeType::Scalar(Element::I32)),
        Param::Int(n) => Attribute::Integer(i128::from(*n), TreeType::Scalar(Element::I64)),
        Param::Float(bits) => Attribute::Float(f64::from_bits(*bits), TreeType::Scalar(Element::Float(Float::F64))),
        Param::Text(text) | Param::Name(text) => Attribute::of_text(text.clone()),
        Param::DType(d) => Attribute::Type(TreeType::Scalar(super::emit::element(*d))),
        Param::List(items) if !items.is_empty() && items.iter().all(|i| matches!(i, Param::Int(_))) => {
            Attribute::numbers(items.iter().map(|i| if let Param::Int(n) = i { *n } else { 0 }))
        }
        Param::List(items) => Attribute::Array(items.iter().map(|i| attribute(name, i)).collect::<Result<_>>()?),
        Param::Dim(d) => fail!(Size, "the attribute `{name}` is the dimension {d}, and must be a number"),
        Param::Program(_) => fail!(Rule, "the attribute `{name}` is a program, which StableHLO has no attribute for"),
    })
}

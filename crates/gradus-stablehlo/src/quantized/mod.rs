//! Quantized types go away: every operation on `!quant.uniform` becomes ordinary arithmetic on the integers that are stored, by the formulas of the
//! StableHLO specification and in the order in which its reference implementation rounds, so that the same integers come out.
//!
//! | operations | become |
//! |---|---|
//! | `uniform_quantize`, `uniform_dequantize` | their formula |
//! | `add`, `dot`, `dot_general`, `convolution` of one scale | integer arithmetic of 32 bits, scaled once at the end |
//! | what moves elements | itself, on the stored integers |
//! | other arithmetic | dequantize, the operation on floats, quantize |
//!
//! *Invariants.* No type of the result is quantized. What the specification does not allow is refused by its name and line.

mod arithmetic;
mod products;

use std::sync::Arc;

use gradus_core::error::{Error, ErrorKind, Result};
use smallvec::SmallVec;

use crate::module::{Attribute, Element, Function, Module, Operation, Place, Quantized, Region, Tensor, Type, Value};

/// Operations that move elements, choose among them, or hold regions: they work on the stored integers as they do on others.
const STORED: &[&str] = &[
    "stablehlo.after_all",
    "stablehlo.all_gather",
    "stablehlo.all_to_all",
    "stablehlo.bitcast_convert",
    "stablehlo.broadcast",
    "stablehlo.broadcast_in_dim",
    "stablehlo.case",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_permute",
    "stablehlo.composite",
    "stablehlo.concatenate",
    "stablehlo.constant",
    "stablehlo.dynamic_broadcast_in_dim",
    "stablehlo.dynamic_gather",
    "stablehlo.dynamic_pad",
    "stablehlo.dynamic_reshape",
    "stablehlo.dynamic_slice",
    "stablehlo.dynamic_update_slice",
    "stablehlo.gather",
    "stablehlo.get_dimension_size",
    "stablehlo.get_tuple_element",
    "stablehlo.if",
    "stablehlo.optimization_barrier",
    "stablehlo.pad",
    "stablehlo.real_dynamic_slice",
    "stablehlo.reduce",
    "stablehlo.reduce_window",
    "stablehlo.reshape",
    "stablehlo.return",
    "stablehlo.reverse",
    "stablehlo.scatter",
    "stablehlo.select",
    "stablehlo.select_and_scatter",
    "stablehlo.slice",
    "stablehlo.sort",
    "stablehlo.transpose",
    "stablehlo.tuple",
    "stablehlo.while",
    "func.call",
    "func.return",
];

/// Operations that are done on the floats that are meant.
const FLOATS: &[&str] = &[
    "stablehlo.abs",
    "stablehlo.add",
    "stablehlo.atan2",
    "stablehlo.batch_norm_grad",
    "stablehlo.batch_norm_inference",
    "stablehlo.batch_norm_training",
    "stablehlo.cbrt",
    "stablehlo.ceil",
    "stablehlo.cholesky",
    "stablehlo.clamp",
    "stablehlo.compare",
    "stablehlo.convolution",
    "stablehlo.cosine",
    "stablehlo.divide",
    "stablehlo.dot",
    "stablehlo.dot_general",
    "stablehlo.exponential",
    "stablehlo.exponential_minus_one",
    "stablehlo.floor",
    "stablehlo.is_finite",
    "stablehlo.log",
    "stablehlo.log_plus_one",
    "stablehlo.logistic",
    "stablehlo.maximum",
    "stablehlo.minimum",
    "stablehlo.multiply",
    "stablehlo.negate",
    "stablehlo.power",
    "stablehlo.reduce_precision",
    "stablehlo.remainder",
    "stablehlo.round_nearest_afz",
    "stablehlo.round_nearest_even",
    "stablehlo.rsqrt",
    "stablehlo.sign",
    "stablehlo.sine",
    "stablehlo.sqrt",
    "stablehlo.subtract",
    "stablehlo.tan",
    "stablehlo.tanh",
    "stablehlo.triangular_solve",
];

/// Rewrites a module that uses quantized types; any other one stays as it is.
pub fn legalize_quantized(mut module: Module) -> Result<Module> {
    let source = module.source.clone();
    for function in &mut module.functions {
        if uses(function) {
            *function = rewrite(&source, std::mem::take(function))?;
        }
    }
    Ok(module)
}

/// Whether a module uses quantized types.
pub(crate) fn is_quantized(module: &Module) -> bool {
    module.functions.iter().any(uses)
}

fn uses(function: &Function) -> bool {
    function.values.iter().chain(function.results.iter().map(|(ty, _)| ty)).any(has_quantized)
}

/// Whether there is something quantized in a type.
fn has_quantized(ty: &Type) -> bool {
    match ty {
        Type::Tensor(tensor) => matches!(tensor.element, Element::Quantized(_)),
        Type::Tuple(parts) => parts.iter().any(has_quantized),
        _ => false,
    }
}

/// The type with integers in place of what they mean.
fn stored(ty: &Type) -> Type {
    match ty {
        Type::Tensor(tensor) => Type::Tensor(with(tensor, stored_element(&tensor.element))),
        Type::Tuple(parts) => Type::Tuple(parts.iter().map(stored).collect()),
        other => other.clone(),
    }
}

fn stored_element(element: &Element) -> Element {
    if let Element::Quantized(q) = element { q.storage.clone() } else { element.clone() }
}

/// A tensor with another element.
fn with(tensor: &Tensor, element: Element) -> Tensor {
    Tensor { element, ..tensor.clone() }
}

fn rewrite(source: &Arc<str>, mut function: Function) -> Result<Function> {
    let old = std::mem::take(&mut function.values);
    let count = old.len();
    let (new, map) = (Vec::with_capacity(count), vec![None; count]);
    let mut walk = Walk { source: source.clone(), old, new, map, out: Vec::new(), place: function.place };
    function.body = walk.region(function.body)?;
    function.values = walk.new;
    function.results.iter_mut().for_each(|(ty, _)| *ty = stored(ty));
    Ok(function)
}

/// The walk over a function: values get new numbers, operations go to `out`.
struct Walk {
    source: Arc<str>,
    old: Vec<Type>,
    new: Vec<Type>,
    map: Vec<Option<Value>>,
    out: Vec<Operation>,
    place: Place,
}

impl Walk {
    fn wrong(&self, operation: &str, message: &str) -> Error {
        let Place { line, column } = self.place;
        let at = if line == 0 { format!("{}: ", self.source) } else { format!("{}:{line}:{column}: ", self.source) };
        Error::new(ErrorKind::Verify, format!("{at}`{operation}`: {message}"))
    }

    fn region(&mut self, region: Region) -> Result<Region> {
        let outside = std::mem::take(&mut self.out);
        let mut arguments = Vec::with_capacity(region.arguments.len());
        for argument in region.arguments {
            let ty = stored(self.old_type(argument)?);
            let value = self.value(ty);
            self.bind(argument, value);
            arguments.push(value);
        }
        for operation in region.operations {
            self.operation(operation)?;
        }
        Ok(Region { arguments, operations: std::mem::replace(&mut self.out, outside) })
    }

    /// A new value.
    fn value(&mut self, ty: Type) -> Value {
        self.new.push(ty);
        Value(self.new.len() as u32 - 1)
    }

    fn bind(&mut self, old: Value, new: Value) {
        if let Some(slot) = self.map.get_mut(old.0 as usize) {
            *slot = Some(new);
        }
    }

    fn old_type(&self, value: Value) -> Result<&Type> {
        self.old.get(value.0 as usize).ok_or_else(|| self.wrong("value", "a value without a type"))
    }

    /// How a value was quantized.
    fn quantized(&self, value: Value) -> Option<Arc<Quantized>> {
        match self.old.get(value.0 as usize) {
            Some(Type::Tensor(Tensor { element: Element::Quantized(q), .. })) => Some(q.clone()),
            _ => None,
        }
    }

    /// The new value of an old one.
    fn mapped(&self, value: Value) -> Result<Value> {
        let found = self.map.get(value.0 as usize).copied().flatten();
        found.ok_or_else(|| self.wrong("value", "a value is used that is not defined above"))
    }

    fn operation(&mut self, operation: Operation) -> Result<()> {
        self.place = operation.place;
        let any = operation
            .operands
            .iter()
            .chain(&operation.results)
            .any(|v| self.old.get(v.0 as usize).is_some_and(has_quantized));
        let name = &*operation.name;
        if !any {
            return self.keep(operation);
        }
        let [first, ..] = operation.operands.as_slice() else { return self.keep(operation) };
        match name {
            "stablehlo.uniform_quantize" => {
                let result = self.only_result(&operation)?;
                let Some(to) = self.quantized(result) else {
                    return Err(self.wrong(name, "its result is not quantized"));
                };
                let x = self.mapped(*first)?;
                let value = match self.quantized(*first) {
                    Some(from) => self.requantize(x, &from, &to, to.storage.clone())?,
                    None => self.quantize(x, &to)?,
                };
                self.bind(result, value);
                Ok(())
            }
            "stablehlo.uniform_dequantize" => {
                let result = self.only_result(&operation)?;
                let Some(from) = self.quantized(*first) else {
                    return Err(self.wrong(name, "its operand is not quantized"));
                };
                let x = self.mapped(*first)?;
                let value = self.dequantize(x, &from)?;
                self.bind(result, value);
                Ok(())
            }
            "stablehlo.add" if self.add(&operation)? => Ok(()),
            "stablehlo.dot" | "stablehlo.dot_general" | "stablehlo.convolution" if self.product(&operation)? => Ok(()),
            "stablehlo.maximum" | "stablehlo.minimum" if self.is_one_scale(&operation) => self.keep(operation),
            _ if STORED.contains(&name) => self.keep(operation),
            _ if FLOATS.contains(&name) => self.on_floats(operation),
            _ if name.starts_with("check.") => self.keep(operation),
            _ => Err(self.wrong(name, "it does not take quantized numbers")),
        }
    }

    fn only_result(&self, operation: &Operation) -> Result<Value> {
        match operation.results.as_slice() {
            [one] => Ok(*one),
            _ => Err(self.wrong(&operation.name, "it has not one result")),
        }
    }

    /// Whether operands and result are quantized in one way, for all elements alike: then the stored integers have the order of the numbers.
    fn is_one_scale(&self, operation: &Operation) -> bool {
        let mut all = operation.operands.iter().chain(&operation.results).map(|v| self.quantized(*v));
        let Some(Some(first)) = all.next() else { return false };
        first.axis.is_none() && all.all(|q| q.as_ref() == Some(&first))
    }

    /// The operation itself, on the stored integers.
    fn keep(&mut self, mut operation: Operation) -> Result<()> {
        operation.operands = operation.operands.iter().map(|v| self.mapped(*v)).collect::<Result<SmallVec<_>>>()?;
        let regions = std::mem::take(&mut operation.regions);
        for region in regions {
            let region = self.region(region)?;
            operation.regions.push(region);
        }
        if let Some(Attribute::Dense(dense)) = operation.attributes.get("value") {
            let mut dense = dense.clone();
            dense.ty.element = stored_element(&dense.ty.element);
            operation.attributes.set("value", Attribute::Dense(dense));
        }
        let olds = std::mem::take(&mut operation.results);
        for old in olds {
            let ty = stored(self.old_type(old)?);
            let value = self.value(ty);
            self.bind(old, value);
            operation.results.push(value);
        }
        self.out.push(operation);
        Ok(())
    }

    /// Dequantize, the operation on floats, quantize.
    fn on_floats(&mut self, mut operation: Operation) -> Result<()> {
        let operands = std::mem::take(&mut operation.operands);
        for old in operands {
            let x = self.mapped(old)?;
            let x = match self.quantized(old) {
                Some(q) => self.dequantize(x, &q)?,
                None => x,
            };
            operation.operands.push(x);
        }
        // How integers were to be compared does not hold for floats.
        if operation.attributes.has("compare_type") {
            operation
                .attributes
                .set("compare_type", Attribute::Enum("stablehlo.comparison_type".into(), "FLOAT".into()));
        }
        let olds = std::mem::take(&mut operation.results);
        let mut after = Vec::new();
        for old in olds {
            let ty = match self.old_type(old)? {
                Type::Tensor(tensor) => match &tensor.element {
                    Element::Quantized(q) => Type::Tensor(with(tensor, Element::Float(q.expressed))),
                    _ => Type::Tensor(tensor.clone()),
                },
                other => other.clone(),
            };
            let value = self.value(ty);
            operation.results.push(value);
            after.push((old, value));
        }
        self.out.push(operation);
        for (old, value) in after {
            let value = match self.quantized(old) {
                Some(q) => self.quantize(value, &q)?,
                None => value,
            };
            self.bind(old, value);
        }
        Ok(())
    }
}

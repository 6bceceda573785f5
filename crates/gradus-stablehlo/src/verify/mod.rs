//! Whether a tree is a StableHLO module: every operation has the operands, results, regions and attributes that it needs, and its results have the types
//! that follow from them. Text and bytecode are checked here alike, so that who takes a tree apart need not ask again.
//!
//! Where a dimension is `?`, what it is compared with may be anything. Operations of dialects that are not known here are only asked for values that exist.
//!
//! *Invariants.* Nothing is changed, nothing panics, and an error names operation, line and column.

mod arrays;
mod control;
mod products;
mod rules;
mod windows;

use gradus_core::error::{Error, ErrorKind, Result};
use rustc_hash::FxHashMap;

use crate::module::{Attribute, Element, Function, Module, Operation, Place, Region, Tensor, Type, Value};
use crate::words;

/// Checks a whole module.
pub fn verify(module: &Module) -> Result<()> {
    let mut functions: FxHashMap<&str, &Function> = FxHashMap::default();
    for function in &module.functions {
        if functions.insert(&function.name, function).is_some() {
            return Err(wrong(module, function.place, &format!("the function `@{}` is defined twice", function.name)));
        }
    }
    for function in &module.functions {
        let mut check = Check { module, functions: &functions, function, seen: vec![false; function.values.len()] };
        check.function()?;
    }
    Ok(())
}

fn wrong(module: &Module, place: Place, message: &str) -> Error {
    let at = if place.line == 0 {
        format!("{}: ", module.source)
    } else {
        format!("{}:{}:{}: ", module.source, place.line, place.column)
    };
    Error::new(ErrorKind::Verify, at + message)
}

/// The walk over one function.
struct Check<'m> {
    module: &'m Module,
    functions: &'m FxHashMap<&'m str, &'m Function>,
    function: &'m Function,
    /// The values that can be used here.
    seen: Vec<bool>,
}

impl<'m> Check<'m> {
    fn function(&mut self) -> Result<()> {
        let f = self.function;
        let here = |message: &str| wrong(self.module, f.place, &format!("`@{}`: {message}", f.name));
        if f.arguments.len() != f.body.arguments.len() {
            return Err(here("it has not as many attributes of arguments as arguments"));
        }
        if f.body.operations.is_empty() {
            return Ok(());
        }
        self.region(&f.body)?;
        let last = f.body.operations.last();
        let Some(last) = last.filter(|o| matches!(&*o.name, "func.return" | "stablehlo.return")) else {
            return Err(here("it does not end with `return`"));
        };
        let given: Vec<&Type> = last.operands.iter().filter_map(|v| self.function.values.get(v.0 as usize)).collect();
        if given.len() != f.results.len() {
            let message = format!("`@{}` returns {} values and says {}", f.name, given.len(), f.results.len());
            return Err(wrong(self.module, last.place, &message));
        }
        for (i, (is, (said, _))) in given.into_iter().zip(&f.results).enumerate() {
            if !fits(is, said) {
                let message = format!(
                    "result {} of `@{}` is {}, and its type says {}",
                    i + 1,
                    f.name,
                    words::of_type(is),
                    words::of_type(said)
                );
                return Err(wrong(self.module, last.place, &message));
            }
        }
        Ok(())
    }

    /// Values of a region are gone behind it.
    fn region(&mut self, region: &'m Region) -> Result<()> {
        let mut defined = Vec::new();
        for value in &region.arguments {
            self.define(*value, self.function.place, &mut defined)?;
        }
        for operation in &region.operations {
            for value in &operation.operands {
                if !self.seen.get(value.0 as usize).copied().unwrap_or(false) {
                    let message =
                        format!("`{}` uses the value {} which is not defined above it", operation.name, value.0);
                    return Err(wrong(self.module, operation.place, &message));
                }
            }
            for region in &operation.regions {
                self.region(region)?;
            }
            for value in &operation.results {
                self.define(*value, operation.place, &mut defined)?;
            }
            rules::check(&At {
                module: self.module,
                functions: self.functions,
                values: &self.function.values,
                operation,
            })?;
        }
        for value in defined {
            self.seen[value.0 as usize] = false;
        }
        Ok(())
    }

    fn define(&mut self, value: Value, place: Place, defined: &mut Vec<Value>) -> Result<()> {
        match self.seen.get_mut(value.0 as usize) {
            Some(seen) if !*seen => {
                *seen = true;
                defined.push(value);
                Ok(())
            }
            _ => Err(wrong(self.module, place, &format!("the value {} is defined twice or has no type", value.0))),
        }
    }
}

/// Dimensions as types have them; `None` is `?`.
pub(super) type Dims = Vec<Option<u64>>;

/// An operation that is checked, with what is around it.
pub(super) struct At<'m> {
    module: &'m Module,
    functions: &'m FxHashMap<&'m str, &'m Function>,
    values: &'m [Type],
    pub(super) operation: &'m Operation,
}

impl<'m> At<'m> {
    /// An error at this operation.
    #[cold]
    pub(super) fn wrong(&self, message: &str) -> Error {
        wrong(self.module, self.operation.place, &format!("`{}`: {message}", self.operation.name))
    }

    /// An error, unless it holds.
    pub(super) fn holds(&self, condition: bool, message: impl FnOnce() -> String) -> Result<()> {
        if condition { Ok(()) } else { Err(self.wrong(&message())) }
    }

    pub(super) fn type_of(&self, value: Value) -> Result<&'m Type> {
        self.values.get(value.0 as usize).ok_or_else(|| self.wrong("it has a value without a type"))
    }

    pub(super) fn operand_count(&self) -> usize {
        self.operation.operands.len()
    }

    /// The type of an operand.
    pub(super) fn operand(&self, index: usize) -> Result<&'m Type> {
        match self.operation.operands.get(index) {
            Some(value) => self.type_of(*value),
            None => Err(self.wrong(&format!("operand {} is missing", index + 1))),
        }
    }

    /// The type of a result.
    pub(super) fn result(&self, index: usize) -> Result<&'m Type> {
        match self.operation.results.get(index) {
            Some(value) => self.type_of(*value),
            None => Err(self.wrong(&format!("result {} is missing", index + 1))),
        }
    }

    /// An operand that must be a tensor.
    pub(super) fn tensor(&self, index: usize) -> Result<&'m Tensor> {
        let ty = self.operand(index)?;
        ty.tensor().ok_or_else(|| self.wrong(&format!("operand {} is {}, not a tensor", index + 1, words::of_type(ty))))
    }

    /// A result that must be a tensor.
    pub(super) fn result_tensor(&self, index: usize) -> Result<&'m Tensor> {
        let ty = self.result(index)?;
        ty.tensor().ok_or_else(|| self.wrong(&format!("result {} is {}, not a tensor", index + 1, words::of_type(ty))))
    }

    /// A list of integers that must be there.
    pub(super) fn integers(&self, name: &str) -> Result<Vec<i64>> {
        self.integers_if(name)?.ok_or_else(|| self.wrong(&format!("it has no attribute `{name}`")))
    }

    /// A list of integers, if it is there.
    pub(super) fn integers_if(&self, name: &str) -> Result<Option<Vec<i64>>> {
        match self.operation.attributes.get(name) {
            None => Ok(None),
            Some(attribute) => match attribute.integers() {
                Some(all) => Ok(Some(all)),
                None => Err(self.wrong(&format!("the attribute `{name}` is no list of integers"))),
            },
        }
    }

    /// A list of integers, or so many of one where nothing is said.
    pub(super) fn integers_or(&self, name: &str, count: usize, default: i64) -> Result<Vec<i64>> {
        let all = self.integers_if(name)?.unwrap_or_else(|| vec![default; count]);
        self.holds(all.len() == count, || {
            format!("the attribute `{name}` has {} numbers where {count} are wanted", all.len())
        })?;
        Ok(all)
    }

    /// An integer that must be there.
    pub(super) fn integer(&self, name: &str) -> Result<i64> {
        let value = self.operation.attributes.integer(name);
        value.ok_or_else(|| self.wrong(&format!("it has no attribute `{name}` that is an integer")))
    }

    /// An axis of a rank that must be there.
    pub(super) fn axis(&self, name: &str, rank: usize) -> Result<usize> {
        let axis = self.integer(name)?;
        let found = usize::try_from(axis).ok().filter(|a| *a < rank);
        found.ok_or_else(|| self.wrong(&format!("`{name}` is {axis}, which is no axis of rank {rank}")))
    }

    /// Integers that are different axes of a rank.
    pub(super) fn as_axes(&self, name: &str, all: &[i64], rank: usize) -> Result<Vec<usize>> {
        let mut axes = Vec::with_capacity(all.len());
        for axis in all {
            match usize::try_from(*axis).ok().filter(|a| *a < rank) {
                Some(a) if !axes.contains(&a) => axes.push(a),
                Some(_) => return Err(self.wrong(&format!("`{name}` has the axis {axis} twice"))),
                None => return Err(self.wrong(&format!("`{name}` has {axis}, which is no axis of rank {rank}"))),
            }
        }
        Ok(axes)
    }

    /// A field of a record that holds axes.
    pub(super) fn field_axes(&self, record: &str, field: &str, rank: usize) -> Result<Vec<usize>> {
        let all = self.field(record, field)?.integers();
        let all = all.ok_or_else(|| self.wrong(&format!("`{record}` has no list `{field}`")))?;
        self.as_axes(field, &all, rank)
    }

    /// A field of a record that holds one integer.
    pub(super) fn field_integer(&self, record: &str, field: &str) -> Result<i64> {
        let value = self.field(record, field)?.integer();
        value.ok_or_else(|| self.wrong(&format!("`{record}` has no integer `{field}`")))
    }

    fn field(&self, record: &str, field: &str) -> Result<&'m Attribute> {
        let found = match self.operation.attributes.get(record) {
            Some(Attribute::Struct(_, fields)) => fields.get(field),
            _ => None,
        };
        found.ok_or_else(|| self.wrong(&format!("it has no attribute `{record}` with a field `{field}`")))
    }

    /// A result has these dimensions and elements.
    pub(super) fn gives(&self, index: usize, dims: &[Option<u64>], element: &Element) -> Result<()> {
        let is = self.result_tensor(index)?;
        self.holds(same_dims(&is.dims, dims) && same_element(&is.element, element), || {
            let wanted =
                Tensor { dims: dims.iter().copied().collect(), element: element.clone(), bounds: Default::default() };
            format!("result {} is {}, and follows as {}", index + 1, words::of_tensor(is), words::of_tensor(&wanted))
        })
    }

    /// A region has arguments of these types.
    pub(super) fn region_takes(&self, index: usize, types: &[Type]) -> Result<&'m Region> {
        let Some(region) = self.operation.regions.get(index) else {
            return Err(self.wrong(&format!("region {} is missing", index + 1)));
        };
        self.holds(region.arguments.len() == types.len(), || {
            format!("region {} takes {} values where {} are given", index + 1, region.arguments.len(), types.len())
        })?;
        for (i, (value, ty)) in region.arguments.iter().zip(types).enumerate() {
            let is = self.type_of(*value)?;
            self.holds(fits(is, ty), || {
                let (is, ty) = (words::of_type(is), words::of_type(ty));
                format!("argument {} of region {} is {is}, and follows as {ty}", i + 1, index + 1)
            })?;
        }
        Ok(region)
    }

    /// A region returns values of these types.
    pub(super) fn region_gives(&self, index: usize, types: &[Type]) -> Result<()> {
        let given = self.region_results(index)?;
        self.holds(given.len() == types.len(), || {
            format!("region {} returns {} values where {} are wanted", index + 1, given.len(), types.len())
        })?;
        for (i, (is, ty)) in given.into_iter().zip(types).enumerate() {
            self.holds(fits(is, ty), || {
                let (is, ty) = (words::of_type(is), words::of_type(ty));
                format!("value {} that region {} returns is {is}, and follows as {ty}", i + 1, index + 1)
            })?;
        }
        Ok(())
    }

    /// The types that a region returns.
    pub(super) fn region_results(&self, index: usize) -> Result<Vec<&'m Type>> {
        let last = self.operation.regions.get(index).and_then(|r| r.operations.last());
        let Some(last) = last.filter(|o| o.name.ends_with(".return")) else {
            return Err(self.wrong(&format!("region {} does not end with `stablehlo.return`", index + 1)));
        };
        last.operands.iter().map(|v| self.type_of(*v)).collect()
    }
}

/// Whether dimensions can be the same.
pub(super) fn same_dims(a: &[Option<u64>], b: &[Option<u64>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_dim(*a, *b))
}

/// Whether two dimensions can be the same.
pub(super) fn same_dim(a: Option<u64>, b: Option<u64>) -> bool {
    a.is_none() || b.is_none() || a == b
}

/// What is known of a dimension from two that are the same.
pub(super) fn either(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.or(b)
}

/// Whether elements are the same but for how they are quantized.
pub(super) fn same_element(a: &Element, b: &Element) -> bool {
    match (a, b) {
        (Element::Quantized(a), Element::Quantized(b)) => a.storage == b.storage && a.expressed == b.expressed,
        _ => a == b,
    }
}

/// Whether a value of one type can stand where the other is wanted.
pub(super) fn fits(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Tensor(a), Type::Tensor(b)) => same_dims(&a.dims, &b.dims) && same_element(&a.element, &b.element),
        (Type::Tuple(a), Type::Tuple(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| fits(a, b)),
        _ => a == b,
    }
}

/// A scalar of an element.
pub(super) fn scalar(element: &Element) -> Type {
    Type::Tensor(Tensor::new([], element.clone()))
}

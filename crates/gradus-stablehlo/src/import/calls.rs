//! Calls: a function becomes one program, which all who call it share. One whose shapes are not known is written where it is called.

use std::sync::Arc;

use gradus_core::error::Result;
use gradus_core::primitives::Op;
use gradus_core::primitives::control::Call;
use gradus_core::trace::bind_all;

use super::checks::Pending;
use super::{Answer, Callee, On, Scope, flat, unflat};
use crate::module::{Attribute, Attributes, Function, Type};

/// Whether a type has a dimension that is not known.
fn is_open(ty: &Type) -> bool {
    match ty {
        Type::Tensor(t) => !t.is_static(),
        Type::Tuple(types) => types.iter().any(is_open),
        _ => false,
    }
}

impl<'m> On<'_, 'm> {
    /// The function that an attribute names.
    pub(super) fn callee(&self, attribute: &str) -> Result<&'m Function> {
        let name = match self.op.attributes.get(attribute) {
            Some(Attribute::Symbol(path)) => path.last().map(String::as_str),
            Some(Attribute::String(bytes)) => std::str::from_utf8(bytes).ok(),
            _ => None,
        };
        let Some(name) = name else { return Err(self.wrong(format!("it lacks the name `{attribute}`"))) };
        let found = self.scope.importer.function(name);
        found.ok_or_else(|| self.wrong(format!("there is no function `@{name}` in the module")))
    }

    pub(super) fn call(&mut self) -> Answer {
        let function = self.callee("callee")?;
        self.call_of(function)
    }

    /// A composite is what its decomposition computes. One of `chlo` is the operation of that name: it has a derivative where the formula has none.
    pub(super) fn composite(&mut self) -> Answer {
        let said = match self.op.attributes.get("composite_attributes") {
            Some(Attribute::Dictionary(said)) => Some(said),
            _ => None,
        };
        let short = self.word("name").and_then(|n| n.strip_prefix("chlo."));
        if let Some(short) = short.filter(|_| said.is_none_or(Attributes::is_empty))
            && let Some(items) = self.chlo(short)?
        {
            return Ok(Some(items));
        }
        if let (Some("top_k"), Some(k)) = (short, said.and_then(|s| s.integer("k"))) {
            let largest = said.and_then(|s| s.integer("largest")).unwrap_or(1) != 0;
            let k = self.natural("k", k)?;
            return self.top_k(k, largest);
        }
        let function = self.callee("decomposition")?;
        self.call_of(function)
    }

    pub(super) fn call_of(&mut self, function: &'m Function) -> Answer {
        if function.body.operations.is_empty() {
            return Err(
                self.refused(format!("`@{}` is declared and not defined", function.name), "define it in the module")
            );
        }
        let sized = function.arguments.iter().any(|a| a.has("jax.global_constant"));
        if sized || function.values.iter().any(is_open) {
            return self.written_out(function);
        }
        let importer = self.scope.importer;
        let known = importer.functions.borrow().get(function.name.as_str()).cloned();
        let callee: Arc<Callee> = match known {
            Some(callee) => callee,
            None => {
                let inputs = super::dynamic::argument_types(importer, function)?;
                let made = Arc::new(importer.program(function, &inputs)?);
                importer.functions.borrow_mut().insert(function.name.clone(), made.clone());
                made
            }
        };
        let operands = (0..self.op.operands.len()).map(|i| self.item(i)).collect::<Result<Vec<_>>>()?;
        let outputs = bind_all(Op::new(Call { program: callee.program.clone() }), &flat(&operands));
        if let Some(e) = outputs.first().and_then(|o| o.error()) {
            return Err(e.clone());
        }
        let mut outputs = outputs.into_vec();
        let inside = outputs.clone();
        outputs.truncate(callee.results);
        for check in &callee.checks {
            let pending = Pending::again(check, &inside).ok_or_else(|| self.wrong("a check lost its values"))?;
            self.add_check(pending)?;
        }
        self.items(outputs).map(Some)
    }

    /// The body of a function in the place of its call.
    fn written_out(&mut self, function: &'m Function) -> Answer {
        let importer = self.scope.importer;
        if importer.open.borrow().contains(&function.name) {
            return Err(self.refused(format!("`@{}` calls itself", function.name), "write it as a `stablehlo.while`"));
        }
        let operands = (0..self.op.operands.len()).map(|i| self.item(i)).collect::<Result<Vec<_>>>()?;
        if operands.len() != function.body.arguments.len() {
            return Err(self.wrong(format!("`@{}` has {} arguments", function.name, function.body.arguments.len())));
        }
        let mut inner = Scope::of(importer, function);
        inner.closed = self.scope.closed;
        for (at, (&argument, item)) in function.body.arguments.iter().zip(operands).enumerate() {
            if let Some(sizes) = self.sizes_of(at) {
                inner.sizes.insert(argument, sizes);
            }
            inner.set(argument, item)?;
        }
        importer.open.borrow_mut().push(function.name.clone());
        let results = inner.run(&function.body);
        importer.open.borrow_mut().pop();
        let results = results?;
        // Sizes that a function computes are sizes for its caller.
        if let Some(end) = function.body.operations.last() {
            for (value, result) in end.operands.iter().zip(&self.op.results) {
                if let Some(sizes) = inner.sizes(*value) {
                    self.scope.sizes.insert(*result, sizes);
                }
            }
        }
        self.scope.checks.append(&mut inner.checks);
        let mut arrays = flat(&results).into_iter();
        let types = self.op.results.iter().map(|r| self.scope.ty(*r)).collect::<Result<Vec<_>>>()?;
        types.into_iter().map(|t| unflat(t, &mut arrays)).collect::<Result<_>>().map(Some)
    }
}

//! Modules, functions, regions, and operations in the generic syntax.

use gradus_core::error::Result;
use smallvec::SmallVec;

use super::names::known;
use super::{Named, Reader, Top, pretty};
use crate::module::{Attribute, Attributes, Function, Module, Operation, Place, Region, Type, Value, Visibility};
use crate::words;

/// What stands at the top of a part of a file.
enum Item {
    Function(Function),
    Module(Module),
    Other(Operation),
}

/// An operation and the types of its results, which are not numbered yet.
pub(super) struct Parsed {
    pub(super) operation: Operation,
    pub(super) results: SmallVec<[Type; 1]>,
}

impl<'a> Reader<'a> {
    /// All modules up to the end.
    pub(super) fn file(&mut self, modules: &mut Vec<Module>) -> Result<()> {
        let mut loose = Top::default();
        while !self.cur.is_end() {
            match self.item()? {
                None => {}
                Some(Item::Module(module)) => modules.push(module),
                Some(Item::Function(function)) => loose.functions.push(function),
                Some(Item::Other(other)) => loose.others.push(other),
            }
        }
        if !loose.functions.is_empty() || !loose.others.is_empty() {
            modules.push(self.module_of(loose));
        }
        Ok(())
    }

    fn module_of(&self, top: Top) -> Module {
        Module { source: self.source.clone(), functions: top.functions, others: top.others, ..Module::default() }
    }

    /// One thing of the top level; an alias gives none.
    fn item(&mut self) -> Result<Option<Item>> {
        let place = self.cur.place();
        match self.cur.peek() {
            b'#' => {
                let name = self.cur.sigil_name("the name of an alias")?;
                self.cur.take("=")?;
                if self.cur.peek_word() == "loc" {
                    self.location()?;
                } else if !self.bounds_alias(name)? {
                    let value = self.attribute()?;
                    self.aliases.insert(name, value);
                }
                return Ok(None);
            }
            b'!' => {
                let name = self.cur.sigil_name("the name of an alias")?;
                self.cur.take("=")?;
                let ty = self.ty()?;
                self.type_aliases.insert(name, ty);
                return Ok(None);
            }
            b'"' => {
                let start = self.cur.at();
                let name = self.cur.text()?;
                return match name.as_str() {
                    "builtin.module" => self.generic_module().map(|m| Some(Item::Module(m))),
                    "func.func" => self.generic_function(place).map(|f| Some(Item::Function(f))),
                    _ => {
                        self.cur.go(start);
                        self.other().map(Some)
                    }
                };
            }
            _ => {}
        }
        match self.cur.peek_word() {
            "module" | "builtin.module" => {
                self.cur.word("")?;
                self.pretty_module().map(|m| Some(Item::Module(m)))
            }
            "func.func" | "func" => {
                self.cur.word("")?;
                self.pretty_function(place).map(|f| Some(Item::Function(f)))
            }
            "" => Err(self.cur.expected("a module, a function or an alias")),
            _ => self.other().map(Some),
        }
    }

    /// An operation at the top: `sdy.mesh @mesh = <["x"=2]>`.
    fn other(&mut self) -> Result<Item> {
        let mut all = Vec::with_capacity(1);
        self.function_starts();
        self.operation(&mut all)?;
        all.pop().map(Item::Other).ok_or_else(|| self.cur.expected("an operation"))
    }

    fn top(&mut self, close: &str) -> Result<Top> {
        let mut top = Top::default();
        while !self.cur.eat(close) {
            let at = self.cur.at();
            match self.item()? {
                None => {}
                Some(Item::Function(function)) => top.functions.push(function),
                Some(Item::Other(other)) => top.others.push(other),
                Some(Item::Module(_)) => return Err(self.cur.error_at(at, "a module inside of a module")),
            }
        }
        Ok(top)
    }

    /// Behind `module`: `@name attributes {..} {..}`.
    fn pretty_module(&mut self) -> Result<Module> {
        let name = if self.cur.peek() == b'@' { Some(self.cur.symbol()?.into_owned()) } else { None };
        let mut attributes = Attributes::default();
        if self.cur.eat_word("attributes") {
            self.dictionary(&mut attributes)?;
        }
        self.cur.take("{")?;
        let top = self.top("}")?;
        self.location_if()?;
        Ok(Module { name, attributes, ..self.module_of(top) })
    }

    /// Behind `"builtin.module"`: `() <{..}> ({..}) {..} : () -> ()`.
    fn generic_module(&mut self) -> Result<Module> {
        let mut attributes = Attributes::default();
        self.cur.take("(")?;
        self.cur.take(")")?;
        self.properties(&mut attributes)?;
        self.cur.take("(")?;
        self.cur.take("{")?;
        if self.cur.peek() == b'^' {
            self.label()?;
        }
        let top = self.top("}")?;
        self.cur.take(")")?;
        self.dictionary_if(&mut attributes)?;
        self.cur.take(":")?;
        self.ty()?;
        self.location_if()?;
        let name = attributes.remove("sym_name").and_then(|n| n.text().map(str::to_owned));
        Ok(Module { name, attributes, ..self.module_of(top) })
    }

    fn function_starts(&mut self) {
        self.names.clear();
        self.undo.clear();
        self.values.clear();
        (self.scope, self.isolated) = (0, 0);
    }

    /// Behind `func.func`: `public @name(%a: tensor<f32> {..}) -> (tensor<f32> {..}) attributes {..} {..}`.
    fn pretty_function(&mut self, place: Place) -> Result<Function> {
        self.function_starts();
        let visibility = match self.cur.peek_word() {
            "public" => Visibility::Public,
            "private" | "nested" => Visibility::Private,
            _ => Visibility::Unsaid,
        };
        if visibility != Visibility::Unsaid {
            self.cur.word("")?;
        }
        let name = self.cur.symbol()?.into_owned();
        let mut function = Function { name, visibility, place, ..Function::default() };
        self.cur.take("(")?;
        let arguments = self.list(")", |r| {
            if r.cur.peek() == b'%' {
                let name = r.cur.sigil_name("a value")?;
                r.cur.take(":")?;
                let ty = r.ty()?;
                r.define(name, 1, [ty])?;
            } else {
                let ty = r.ty()?;
                r.values.push(ty);
            }
            let mut attributes = Attributes::default();
            r.dictionary_if(&mut attributes)?;
            r.location_if()?;
            Ok(attributes)
        })?;
        function.body.arguments = (0..self.values.len() as u32).map(Value).collect();
        function.arguments = arguments;
        if self.cur.eat("->") {
            let one = |r: &mut Self| {
                let ty = r.ty()?;
                let mut attributes = Attributes::default();
                r.dictionary_if(&mut attributes)?;
                r.location_if()?;
                Ok((ty, attributes))
            };
            function.results =
                if self.cur.eat("(") { self.list(")", one)? } else { vec![(self.ty()?, Attributes::default())] };
        }
        if self.cur.eat_word("attributes") {
            self.dictionary(&mut function.attributes)?;
        }
        if self.cur.peek() == b'{' {
            let arguments = std::mem::take(&mut function.body.arguments);
            function.body = self.region(arguments)?;
        }
        self.location_if()?;
        function.values = std::mem::take(&mut self.values);
        Ok(function)
    }

    /// Behind `"func.func"`: the generic form of a function.
    fn generic_function(&mut self, place: Place) -> Result<Function> {
        self.function_starts();
        let mut attributes = Attributes::default();
        self.cur.take("(")?;
        self.cur.take(")")?;
        self.properties(&mut attributes)?;
        self.cur.take("(")?;
        let body = if self.cur.peek() == b'{' { self.region(Vec::new())? } else { Region::default() };
        self.cur.take(")")?;
        self.dictionary_if(&mut attributes)?;
        self.cur.take(":")?;
        self.ty()?;
        self.location_if()?;
        let wrong = |r: &Self, what: &str| r.cur.error_in(place, what);
        let Some(name) = attributes.remove("sym_name").and_then(|n| n.text().map(str::to_owned)) else {
            return Err(wrong(self, "this function has no `sym_name`"));
        };
        let Some(Attribute::Type(Type::Function(inputs, outputs))) = attributes.remove("function_type") else {
            return Err(wrong(self, "this function has no `function_type`"));
        };
        let visibility = match attributes.remove("sym_visibility").as_ref().and_then(Attribute::text) {
            None => Visibility::Unsaid,
            Some("public") => Visibility::Public,
            Some(_) => Visibility::Private,
        };
        let mut listed = |name: &str, n: usize| match attributes.remove(name) {
            Some(Attribute::Array(items)) if items.len() == n => items
                .into_iter()
                .map(|a| if let Attribute::Dictionary(d) = a { d } else { Attributes::default() })
                .collect(),
            _ => vec![Attributes::default(); n],
        };
        let (arguments, said) = (listed("arg_attrs", inputs.len()), listed("res_attrs", outputs.len()));
        let mut body = body;
        if body.operations.is_empty() && body.arguments.is_empty() {
            self.values = inputs.clone();
            body.arguments = (0..inputs.len() as u32).map(Value).collect();
        }
        let values = std::mem::take(&mut self.values);
        if !body.arguments.iter().map(|v| &values[v.0 as usize]).eq(inputs.iter()) {
            return Err(wrong(self, "the arguments of this function's block are not those of its `function_type`"));
        }
        Ok(Function {
            name,
            visibility,
            attributes,
            arguments,
            results: outputs.into_iter().zip(said).collect(),
            body,
            values,
            place,
        })
    }

    /// Gives values their name.
    pub(super) fn define(&mut self, name: &'a str, count: u32, types: impl IntoIterator<Item = Type>) -> Result<Value> {
        let Ok(first) = u32::try_from(self.values.len()) else {
            return Err(self.cur.error_at(self.cur.at(), "too many values in one function"));
        };
        self.values.extend(types);
        let named = Named { first: Value(first), count, scope: self.scope };
        let before = self.names.insert(name, named);
        if before.is_some_and(|b| b.scope >= self.isolated) {
            return Err(self.cur.error_at(self.cur.at(), &format!("the value `%{name}` is defined twice")));
        }
        self.undo.push((name, before));
        Ok(named.first)
    }

    /// `{ ops }` or `{ ^bb0(%a: tensor<f32>): ops }`; arguments that the operation itself named are given.
    pub(super) fn region(&mut self, arguments: Vec<Value>) -> Result<Region> {
        self.cur.take("{")?;
        self.deeper(|r| {
            let mark = r.undo.len();
            r.scope += 1;
            let mut region = Region { arguments, operations: Vec::new() };
            if r.cur.peek() == b'^' {
                let at = r.cur.at();
                let given = r.label()?;
                if !region.arguments.is_empty() && !given.is_empty() {
                    return Err(r.cur.error_at(at, "this block has its arguments from its operation already"));
                }
                region.arguments.extend(given);
            }
            while !r.cur.eat("}") {
                if r.cur.peek() == b'^' {
                    return Err(r
                        .cur
                        .expected("`}` (a region has one block; branches between blocks are not part of StableHLO)"));
                }
                r.operation(&mut region.operations)?;
            }
            r.scope -= 1;
            // Names of a whole function are cleared at once when the next one starts.
            if r.scope > 0 {
                r.forget(mark);
            }
            Ok(region)
        })
    }

    /// Takes back the names that were given since `mark`.
    pub(super) fn forget(&mut self, mark: usize) {
        for (name, before) in self.undo.drain(mark.min(self.undo.len())..).rev() {
            match before {
                Some(before) => self.names.insert(name, before),
                None => self.names.remove(name),
            };
        }
    }

    /// `^bb0(%a: tensor<f32>, ..):`.
    fn label(&mut self) -> Result<Vec<Value>> {
        self.cur.sigil_name("the name of a block")?;
        let mut arguments = Vec::new();
        if self.cur.eat("(") {
            arguments = self.list(")", |r| r.argument())?;
        }
        self.cur.take(":")?;
        Ok(arguments)
    }

    /// `%a: tensor<f32> loc(..)`.
    pub(super) fn argument(&mut self) -> Result<Value> {
        let (name, ty) = self.typed_name()?;
        self.define(name, 1, [ty])
    }

    /// The same, not defined yet.
    pub(super) fn typed_name(&mut self) -> Result<(&'a str, Type)> {
        if self.cur.peek() != b'%' {
            return Err(self.cur.expected("an argument `%name: type`"));
        }
        let name = self.cur.sigil_name("a value")?;
        self.cur.take(":")?;
        let ty = self.ty()?;
        self.location_if()?;
        Ok((name, ty))
    }

    /// A value that was defined above: `%a`, `%a#1`.
    pub(super) fn value(&mut self) -> Result<Value> {
        let at = self.cur.at();
        if self.cur.peek() != b'%' {
            return Err(self.cur.expected("a value `%name`"));
        }
        let name = self.cur.sigil_name("a value")?;
        let mut index = 0;
        if self.cur.peek() == b'#' {
            self.cur.take("#")?;
            index = u32::try_from(self.cur.integer()?).unwrap_or(u32::MAX);
        }
        match self.names.get(name) {
            Some(named) if named.scope < self.isolated => Err(self
                .cur
                .error_at(at, &format!("`%{name}` is a value from outside, which this region does not see"))),
            Some(named) if index < named.count => Ok(Value(named.first.0 + index)),
            Some(named) => {
                Err(self.cur.error_at(at, &format!("`%{name}#{index}` where `%{name}` has {} values", named.count)))
            }
            None => Err(self.cur.error_at(at, &format!("the value `%{name}` is not defined above"))),
        }
    }

    /// The type of a value.
    pub(super) fn type_of(&self, value: Value) -> Option<&Type> {
        self.values.get(value.0 as usize)
    }

    /// `<{..}>`, if it is there.
    fn properties(&mut self, into: &mut Attributes) -> Result<()> {
        if self.cur.peek() == b'<' {
            self.cur.take("<")?;
            self.dictionary(into)?;
            self.cur.take(">")?;
        }
        Ok(())
    }

    /// An operation, at the end of a list of them.
    pub(super) fn operation(&mut self, into: &mut Vec<Operation>) -> Result<()> {
        let start = self.cur.at();
        let place = self.cur.place();
        let mut names: SmallVec<[(&'a str, u32); 2]> = SmallVec::new();
        if self.cur.peek() == b'%' {
            loop {
                let at = self.cur.at();
                if self.cur.peek() != b'%' {
                    return Err(self.cur.expected("a value `%name`"));
                }
                let name = self.cur.sigil_name("a value")?;
                let count = if self.cur.eat(":") { self.cur.integer()? } else { 1 };
                match u32::try_from(count) {
                    Ok(count @ 1..=0xFFFF) => names.push((name, count)),
                    _ => return Err(self.cur.error_at(at, &format!("{count} results of one operation"))),
                }
                if !self.cur.eat(",") {
                    break;
                }
            }
            self.cur.take("=")?;
        }
        let mut parsed = match self.cur.peek() {
            b'"' => self.generic(place)?,
            _ => self.pretty(place)?,
        };
        let wanted: usize = names.iter().map(|(_, n)| *n as usize).sum();
        if wanted != parsed.results.len() && !names.is_empty() {
            let message =
                format!("{wanted} names for the {} results of `{}`", parsed.results.len(), parsed.operation.name);
            return Err(self.cur.error_at(start, &message));
        }
        let first = self.values.len() as u32;
        parsed.operation.results = (0..parsed.results.len() as u32).map(|i| Value(first + i)).collect();
        let mut types = parsed.results.into_iter();
        for (name, count) in names {
            self.define(name, count, types.by_ref().take(count as usize))?;
        }
        self.values.extend(types);
        self.location_if()?;
        into.push(parsed.operation);
        Ok(())
    }

    /// `"stablehlo.add"(%a, %b) <{..}> ({..}) {..} : (a, b) -> c`.
    fn generic(&mut self, place: Place) -> Result<Parsed> {
        let name = self.cur.text()?;
        let mut operation = Operation { name: known(&name), place, ..Operation::default() };
        let before = self.isolated;
        if pretty::is_isolated(&name) {
            self.isolated = self.scope + 1;
        }
        self.generic_rest(&mut operation, before)
    }

    /// What stands behind the name of an operation in the generic form.
    pub(super) fn generic_rest(&mut self, operation: &mut Operation, isolated: u32) -> Result<Parsed> {
        self.cur.take("(")?;
        let inner = std::mem::replace(&mut self.isolated, isolated);
        operation.operands = self.list(")", |r| r.value())?.into();
        self.isolated = inner;
        if self.cur.peek() == b'[' {
            return Err(self.cur.expected("attributes or regions (branches between blocks are not part of StableHLO)"));
        }
        self.properties(&mut operation.attributes)?;
        if self.cur.eat("(") {
            operation.regions = self.list(")", |r| r.region(Vec::new()))?;
        }
        self.isolated = isolated;
        self.dictionary_if(&mut operation.attributes)?;
        self.cur.take(":")?;
        let at = self.cur.at();
        let inputs = self.type_list()?;
        self.cur.take("->")?;
        let results = self.results()?.into();
        self.check_operands(at, operation, &inputs)?;
        Ok(Parsed { operation: std::mem::take(operation), results })
    }

    /// What the text says of operands' types must be so.
    pub(super) fn check_operands(&self, at: usize, operation: &Operation, types: &[Type]) -> Result<()> {
        if operation.operands.len() != types.len() {
            let message =
                format!("`{}` has {} operands, and types of {}", operation.name, operation.operands.len(), types.len());
            return Err(self.cur.error_at(at, &message));
        }
        for (i, (value, said)) in operation.operands.iter().zip(types).enumerate() {
            let is = self.type_of(*value);
            if is != Some(said) {
                let is = is.map(words::of_type).unwrap_or_default();
                let message = format!(
                    "operand {} of `{}` is {is}, and the text says {}",
                    i + 1,
                    operation.name,
                    words::of_type(said)
                );
                return Err(self.cur.error_at(at, &message));
            }
        }
        Ok(())
    }
}

//! The operations of a file: modules, functions, blocks and what stands in them.

use std::rc::Rc;
use std::sync::Arc;

use gradus_core::Result;

use super::cursor::{Cursor, error};
use super::entries::Entries;
use super::layouts::{self, Found, Layout};
use super::legalize::legalize;
use super::sections::{PROPERTIES, REGION_SECTIONS, SHORT_ARGUMENTS, USE_ORDERS, pick};
use crate::module::{Attribute, Attributes, Function, Module, Name, Operation, Region, Type, Value, Visibility};

/// How deep regions may stand in one another.
const DEPTH: usize = 100;

/// The parts of an operation that are there.
mod parts {
    pub(super) const ATTRIBUTES: u8 = 1;
    pub(super) const RESULTS: u8 = 2;
    pub(super) const OPERANDS: u8 = 4;
    pub(super) const SUCCESSORS: u8 = 8;
    pub(super) const REGIONS: u8 = 16;
    pub(super) const USE_ORDERS: u8 = 32;
    pub(super) const PROPERTIES: u8 = 64;
}

/// Reads the module that a file holds.
pub(super) fn module(source: &str, entries: Entries) -> Result<Module> {
    let mut cursor = entries.file.operations_section;
    let known = vec![None; entries.file.operations.len()];
    let mut body = Body { entries, known, scopes: Vec::new(), values: Vec::new(), depth: 0, count: 0 };
    let (operations, arguments) = cursor.flagged()?;
    if operations != 1 || arguments {
        return Err(
            cursor.error(format!("{operations} operations at the top of the file, where one module is expected"))
        );
    }
    let at = cursor.at();
    let head = body.head(&mut cursor)?;
    if head.operation.name != "builtin.module" {
        return Err(error(at, format!("`{}` at the top of the file, where a module is expected", head.operation.name)));
    }
    let mut module = Module { source: Arc::from(source), ..Module::default() };
    module.attributes = head.operation.attributes.clone();
    if let Some(Attribute::String(name)) = module.attributes.remove("sym_name") {
        module.name = Some(String::from_utf8(name).map_err(|_| error(at, "a module whose name is no text"))?);
    }
    module.attributes.remove("sym_visibility");
    body.module_regions(&mut cursor, &head, &mut module)?;
    cursor.finished("the module")?;
    Ok(module)
}

/// What comes before the regions of an operation.
struct Head {
    at: usize,
    operation: Operation,
    layout: Option<Rc<Layout>>,
    types: Vec<Type>,
    regions: usize,
    isolated: bool,
}

/// The values that one region defines: their numbers in the file begin at `base`, and there are `announced` of them.
struct Frame {
    base: u64,
    announced: u64,
    defined: Vec<Value>,
}

struct Body<'a> {
    entries: Entries<'a>,
    /// What is known of the operations of the file's names, once one was met.
    known: Vec<Option<Found>>,
    /// The regions around the current operation. One that sees nothing of what is around it begins a new list.
    scopes: Vec<Vec<Frame>>,
    /// The types of the values of the current function.
    values: Vec<Type>,
    depth: usize,
    /// How many operations were read, for errors.
    count: usize,
}

impl<'a> Body<'a> {
    fn module_regions(&mut self, cursor: &mut Cursor<'a>, head: &Head, module: &mut Module) -> Result<()> {
        if head.regions != 1 {
            return Err(error(head.at, format!("a module with {} regions", head.regions)));
        }
        self.regions(cursor, head, |body, cursor| {
            let (arguments, operations) = body.block(cursor)?;
            if !arguments.is_empty() {
                return Err(error(head.at, "a module with arguments"));
            }
            for _ in 0..operations {
                let at = cursor.at();
                let nested = body.head(cursor)?;
                match &*nested.operation.name {
                    "func.func" => module.functions.push(body.function(cursor, nested)?),
                    "builtin.module" => return Err(error(at, "a module in a module: only one is read")),
                    _ => {
                        let operation = body.tail(cursor, nested, false)?;
                        module.others.push(operation);
                    }
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    fn function(&mut self, cursor: &mut Cursor<'a>, head: Head) -> Result<Function> {
        let at = head.at;
        let mut function = Function {
            attributes: head.operation.attributes.clone(),
            place: head.operation.place,
            ..Function::default()
        };
        let all = &mut function.attributes;
        match all.remove("sym_name") {
            Some(Attribute::String(name)) if std::str::from_utf8(&name).is_ok() => {
                function.name = String::from_utf8_lossy(&name).into_owned();
            }
            _ => return Err(error(at, "a function without a name")),
        }
        function.visibility = match all.remove("sym_visibility").as_ref().map(Attribute::text) {
            None | Some(Some("")) => Visibility::Unsaid,
            Some(Some("public")) => Visibility::Public,
            Some(Some("private" | "nested")) => Visibility::Private,
            Some(other) => return Err(error(at, format!("a function of the visibility {other:?}"))),
        };
        let Some(Attribute::Type(Type::Function(takes, gives))) = all.remove("function_type") else {
            return Err(error(at, format!("the function `{}` has no type", function.name)));
        };
        let mut each = |name: &str, count: usize| -> Result<Vec<Attributes>> {
            let said = match all.remove(name) {
                None => Vec::new(),
                Some(Attribute::Array(items)) => items,
                Some(other) => return Err(error(at, format!("`{name}` is {other:?}"))),
            };
            if said.is_empty() {
                return Ok(vec![Attributes::default(); count]);
            }
            let of_one = |a| match a {
                Attribute::Dictionary(all) => Ok(all),
                other => Err(error(at, format!("`{name}` holds {other:?}"))),
            };
            let said = said.into_iter().map(of_one).collect::<Result<Vec<_>>>()?;
            if said.len() == count {
                Ok(said)
            } else {
                Err(error(at, format!("`{name}` has {} of {count}", said.len())))
            }
        };
        function.arguments = each("arg_attrs", takes.len())?;
        let of_results = each("res_attrs", gives.len())?;
        function.results = gives.into_iter().zip(of_results).collect();
        self.values.clear();
        let mut regions = self.regions(cursor, &head, |body, cursor| body.region(cursor, true))?;
        function.body = match (regions.pop(), regions.len()) {
            (Some(body), 0) => body,
            _ => return Err(error(at, format!("the function `{}` has {} regions", function.name, head.regions))),
        };
        if function.body.operations.is_empty() && function.body.arguments.is_empty() {
            // A declaration: the arguments are values of it all the same.
            function.body.arguments = takes.into_iter().map(|ty| self.define(ty)).collect::<Result<_>>()?;
        } else {
            let have = function.body.arguments.iter().map(|v| &self.values[v.0 as usize]);
            if !have.eq(takes.iter()) {
                return Err(error(
                    at,
                    format!("the arguments of the function `{}` are not those of its type", function.name),
                ));
            }
        }
        function.values = std::mem::take(&mut self.values);
        Ok(function)
    }

    /// Numbers a value.
    fn define(&mut self, ty: Type) -> Result<Value> {
        let number = u32::try_from(self.values.len()).map_err(|_| error(0, "more than 4294967295 values"))?;
        self.values.push(ty);
        Ok(Value(number))
    }

    /// The regions of an operation, by a function for each.
    fn regions<T>(
        &mut self,
        cursor: &mut Cursor<'a>,
        head: &Head,
        mut read: impl FnMut(&mut Self, &mut Cursor<'a>) -> Result<T>,
    ) -> Result<Vec<T>> {
        if head.regions == 0 {
            return Ok(Vec::new());
        }
        if self.depth == DEPTH {
            return Err(error(head.at, format!("regions stand in one another more than {DEPTH} deep")));
        }
        let mut own = None;
        if head.isolated && self.entries.file.version >= REGION_SECTIONS {
            let at = cursor.at();
            let (id, section) = cursor.section()?;
            if id != 4 {
                return Err(error(
                    at,
                    format!("section {id} where the regions of `{}` are expected", head.operation.name),
                ));
            }
            own = Some(section);
        }
        if head.isolated || self.scopes.is_empty() {
            self.scopes.push(Vec::new());
        }
        self.depth += 1;
        let mut regions = Vec::new();
        for _ in 0..head.regions {
            regions.push(read(self, own.as_mut().unwrap_or(cursor))?);
        }
        self.depth -= 1;
        if head.isolated {
            self.scopes.pop();
        }
        if let Some(section) = own {
            section.finished("the regions of an operation")?;
        }
        Ok(regions)
    }

    /// The head of a region with its one block: the arguments, and how many operations follow. The values it defines are in a new frame, if it has a block.
    fn block(&mut self, cursor: &mut Cursor<'a>) -> Result<(Vec<Value>, usize)> {
        let at = cursor.at();
        let blocks = cursor.number()?;
        if blocks == 0 {
            return Ok((Vec::new(), 0));
        }
        if blocks > 1 {
            return Err(error(at, format!("a region of {blocks} blocks: jumps between blocks are not read")));
        }
        let announced = cursor.count("values")? as u64;
        if let Some(scope) = self.scopes.last_mut() {
            let base = scope.last().map_or(0, |f| f.base + f.announced);
            scope.push(Frame { base, announced, defined: Vec::new() });
        }
        let (operations, has_arguments) = cursor.flagged()?;
        let operations = cursor.fits(at, operations, "operations")?;
        let mut arguments = Vec::new();
        if has_arguments {
            for _ in 0..cursor.count("arguments")? {
                let at = cursor.at();
                let (ty, placed) = match self.entries.file.version {
                    SHORT_ARGUMENTS.. => cursor.flagged()?,
                    _ => (cursor.number()?, true),
                };
                let ty = self.entries.type_of(at, ty)?;
                if placed {
                    self.entries.place(cursor)?;
                }
                let value = self.define(ty)?;
                self.publish(at, value)?;
                arguments.push(value);
            }
            if self.entries.file.version >= USE_ORDERS && cursor.byte()? != 0 {
                use_orders(cursor, arguments.len())?;
            }
        }
        Ok((arguments, operations))
    }

    /// A region. An operation may stand in it that gives the values of a function.
    fn region(&mut self, cursor: &mut Cursor<'a>, of_function: bool) -> Result<Region> {
        let frames = self.scopes.last().map_or(0, Vec::len);
        let (arguments, count) = self.block(cursor)?;
        let mut operations = Vec::new();
        for _ in 0..count {
            let head = self.head(cursor)?;
            if !self.is_cast(&head)? {
                operations.push(self.tail(cursor, head, of_function)?);
            }
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.truncate(frames);
        }
        Ok(Region { arguments, operations })
    }

    /// Between VHLO and another dialect stand casts from its types to those of StableHLO and back. Here both are one type, so that a cast is what it takes.
    fn is_cast(&mut self, head: &Head) -> Result<bool> {
        let operation = &head.operation;
        let cast = operation.name == "builtin.unrealized_conversion_cast"
            && operation.operands.iter().map(|v| &self.values[v.0 as usize]).eq(&head.types);
        if cast {
            for value in &operation.operands {
                self.publish(head.at, *value)?;
            }
        }
        Ok(cast)
    }

    /// Gives a value the next number that the file has for it.
    fn publish(&mut self, at: usize, value: Value) -> Result<()> {
        match self.scopes.last_mut().and_then(|s| s.last_mut()) {
            Some(frame) if (frame.defined.len() as u64) < frame.announced => {
                frame.defined.push(value);
                Ok(())
            }
            _ => Err(error(at, "a region defines more values than it announces")),
        }
    }

    fn operand(&self, cursor: &mut Cursor) -> Result<Value> {
        let at = cursor.at();
        let number = cursor.number()?;
        let frames = self.scopes.last().map_or(&[][..], |s| &s[..]);
        let after = frames.partition_point(|f| f.base <= number);
        let frame = frames[..after].last();
        let value = frame.and_then(|f| f.defined.get(usize::try_from(number - f.base).ok()?));
        value.copied().ok_or_else(|| error(at, format!("value {number} is used here, and not defined before")))
    }

    /// An operation up to its regions. Its results are not defined yet.
    fn head(&mut self, cursor: &mut Cursor<'a>) -> Result<Head> {
        let at = cursor.at();
        let index = self.count;
        self.count += 1;
        let name = cursor.number()?;
        pick(&self.entries.file.operations, at, name, "operation name")?;
        let name = name as usize;
        self.parts(cursor, at, name)
            .map_err(|e| e.within(format!("operation {index}, `{}`, ", self.entries.file.operations[name])))
    }

    fn parts(&mut self, cursor: &mut Cursor<'a>, at: usize, name: usize) -> Result<Head> {
        let name_text = &self.entries.file.operations[name];
        let layout = match self.known[name].get_or_insert_with(|| layouts::find(name_text)) {
            Found::Layout(layout) => Some(layout.clone()),
            Found::Foreign => None,
            Found::Newer => {
                let producer = &self.entries.file.producer;
                let message = format!(
                    "VHLO has no operation of this name and version here: the file, of {producer}, is newer than this reader"
                );
                return Err(error(at, message)
                    .help("write it for an older version, such as `serialize_portable_artifact(module, \"1.0.0\")`"));
            }
        };
        let name = match &layout {
            Some(layout) => Name::from(layout.name),
            None => Name::from(name_text.clone()),
        };
        let mask = cursor.byte()?;
        let has = |part: u8| mask & part != 0;
        let mut operation = Operation { name, place: self.entries.place(cursor)?, ..Operation::default() };
        if has(parts::ATTRIBUTES) {
            match self.entries.attribute(cursor)? {
                Attribute::Dictionary(all) => operation.attributes = all,
                other => return Err(cursor.error(format!("{other:?} where a dictionary of attributes is expected"))),
            }
        }
        if has(parts::PROPERTIES) {
            if self.entries.file.version < PROPERTIES {
                return Err(cursor.error("properties, which this version of the format does not have"));
            }
            self.properties(cursor, layout.as_deref(), &mut operation.attributes)?;
        }
        if layout.as_ref().is_some_and(|l| l.versioned) {
            operation.attributes = legalize(at, &operation.name, operation.attributes)?;
        }
        let types = if has(parts::RESULTS) { self.entries.types(cursor)? } else { Vec::new() };
        if has(parts::OPERANDS) {
            for _ in 0..cursor.count("operands")? {
                operation.operands.push(self.operand(cursor)?);
            }
        }
        if has(parts::SUCCESSORS) {
            return Err(cursor.error("a jump to another block, which StableHLO does not have"));
        }
        if self.entries.file.version >= USE_ORDERS && has(parts::USE_ORDERS) {
            use_orders(cursor, types.len())?;
        }
        let (mut regions, mut isolated) = (0, false);
        if has(parts::REGIONS) {
            let at = cursor.at();
            let (count, alone) = cursor.flagged()?;
            (regions, isolated) = (cursor.fits(at, count, "regions")?, alone);
        }
        Ok(Head { at, operation, layout, types, regions, isolated })
    }

    /// The regions and results of an operation.
    fn tail(&mut self, cursor: &mut Cursor<'a>, head: Head, in_function: bool) -> Result<Operation> {
        // The file numbers results before what stands in the regions, the tree after it, as in text.
        let regions = self.regions(cursor, &head, |body, cursor| body.region(cursor, false))?;
        let Head { at, mut operation, layout, types, .. } = head;
        operation.regions = regions;
        for ty in types {
            let value = self.define(ty)?;
            self.publish(at, value)?;
            operation.results.push(value);
        }
        if in_function && layout.is_some_and(|l| l.versioned) && operation.name == "stablehlo.return" {
            operation.name = Name::from("func.return");
        }
        Ok(operation)
    }

    /// Reads the properties that an operation refers to.
    fn properties(&mut self, cursor: &mut Cursor<'a>, layout: Option<&Layout>, all: &mut Attributes) -> Result<()> {
        let at = cursor.at();
        let mut blob = *pick(&self.entries.file.properties, at, cursor.number()?, "record of properties")?;
        let start = blob.at();
        let mut numbers = Vec::new();
        while blob.left() > 0 {
            numbers.push((blob.at(), blob.number()?));
        }
        let Some(layout) = layout else {
            // Operations that the writer did not know either have one dictionary.
            if let [(at, index)] = numbers[..]
                && let Attribute::Dictionary(more) = self.entries.attribute_of(at, index)?
            {
                more.iter().for_each(|(name, a)| drop(all.set(name.to_owned(), a.clone())));
                return Ok(());
            }
            return Err(error(start, "properties of an operation of which nothing is known here"));
        };
        let Some(names) = layout.properties(numbers.len()) else {
            return Err(error(
                start,
                format!("{} properties, which no known version of this operation has", numbers.len()),
            ));
        };
        for ((at, number), &(name, optional)) in numbers.into_iter().zip(names) {
            if !optional {
                all.set(name, self.entries.attribute_of(at, number)?);
            } else if number & 1 == 1 {
                all.set(name, self.entries.attribute_of(at, number >> 1)?);
            }
        }
        Ok(())
    }
}

/// Skips the order in which uses were made, which no program depends on.
fn use_orders(cursor: &mut Cursor, values: usize) -> Result<()> {
    let count = if values > 1 { cursor.count("orders of uses")? } else { 1 };
    for _ in 0..count {
        if values > 1 {
            cursor.number()?;
        }
        let at = cursor.at();
        let (numbers, _) = cursor.flagged()?;
        for _ in 0..cursor.fits(at, numbers, "uses")? {
            cursor.number()?;
        }
    }
    Ok(())
}

//! Canonical text of a module: the same tree gives the same text, and every reader of StableHLO takes it.
//!
//! Operations that JAX prints in their own syntax are printed so (`pretty`), all others in the generic one, which every operation has. Values are `%0`,
//! `%1`, .. in the order of their definition, arguments of functions and regions `%arg0`, `%arg1`, ... An attribute named [`LOCATION`] is no part of an
//! operation: it is written behind it as `loc("file":line:column)`.

mod attributes;
mod numbers;
mod pretty;

use std::fmt::Write;

use self::attributes::{entries, function, list, quoted, symbol};
pub(crate) use self::attributes::{tensor, ty};
use self::numbers::whole;
use crate::module::{Attribute, Function, Module, Operation, Region, Type, Value, Visibility};

/// The attribute whose three values, file, line and column, say where in the user's source an operation comes from.
pub const LOCATION: &str = "gradus.location";

/// The text of a module.
pub fn write(module: &Module) -> String {
    let mut w = Writer::default();
    w.out.push_str("module");
    if let Some(name) = &module.name {
        w.out.push(' ');
        symbol(&mut w.out, name);
    }
    if !module.attributes.is_empty() {
        w.out.push_str(" attributes {");
        entries(&mut w.out, module.attributes.iter());
        w.out.push('}');
    }
    w.out.push_str(" {\n");
    w.depth = 1;
    for op in &module.others {
        w.types = &[];
        w.operation(op, false);
    }
    for f in &module.functions {
        w.function(f);
    }
    w.out.push_str("}\n");
    w.out
}

/// The text so far, and what the values of the function at hand are called.
#[derive(Default)]
struct Writer<'a> {
    out: String,
    depth: usize,
    types: &'a [Type],
    names: Vec<Shown>,
    results: u32,
    arguments: u32,
}

/// How a value is written.
#[derive(Clone, Copy)]
enum Shown {
    Argument(u32),
    /// The only result of an operation.
    Result(u32),
    /// One of several.
    Part(u32, u32),
}

impl<'a> Writer<'a> {
    fn indent(&mut self) {
        (0..self.depth).for_each(|_| self.out.push_str("  "));
    }

    fn function(&mut self, f: &'a Function) {
        self.types = &f.values;
        self.names.clear();
        self.names.resize(f.values.len(), Shown::Argument(u32::MAX));
        (self.results, self.arguments) = (0, 0);
        self.indent();
        self.out.push_str("func.func ");
        self.out.push_str(match f.visibility {
            Visibility::Unsaid => "",
            Visibility::Public => "public ",
            Visibility::Private => "private ",
        });
        symbol(&mut self.out, &f.name);
        self.out.push('(');
        for (i, value) in f.body.arguments.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            self.argument(*value);
            if let Some(more) = f.arguments.get(i).filter(|a| !a.is_empty()) {
                self.out.push_str(" {");
                entries(&mut self.out, more.iter());
                self.out.push('}');
            }
        }
        self.out.push(')');
        let plain = f.results.iter().all(|(_, a)| a.is_empty());
        match &f.results[..] {
            [] => {}
            [(one, _)] if plain => {
                self.out.push_str(" -> ");
                // A function as a result would read as the type of this one.
                ty(&mut self.out, one);
            }
            all => {
                self.out.push_str(" -> (");
                list(&mut self.out, all, |out, (t, more)| {
                    ty(out, t);
                    if !more.is_empty() {
                        out.push_str(" {");
                        entries(out, more.iter());
                        out.push('}');
                    }
                });
                self.out.push(')');
            }
        }
        if !f.attributes.is_empty() {
            self.out.push_str(" attributes {");
            entries(&mut self.out, f.attributes.iter());
            self.out.push('}');
        }
        if !f.body.operations.is_empty() {
            self.out.push_str(" {\n");
            self.operations(&f.body, true);
            self.indent();
            self.out.push('}');
        }
        self.out.push('\n');
    }

    /// Names an argument and writes it with its type.
    fn argument(&mut self, value: Value) {
        self.name_argument(value);
        self.value(value);
        self.out.push_str(": ");
        self.type_of(value);
    }

    fn name_argument(&mut self, value: Value) {
        let shown = Shown::Argument(self.arguments);
        self.arguments += 1;
        self.set(value, shown);
    }

    fn set(&mut self, value: Value, shown: Shown) {
        if let Some(name) = self.names.get_mut(value.0 as usize) {
            *name = shown;
        }
    }

    fn shown(&self, value: Value) -> Shown {
        self.names.get(value.0 as usize).copied().unwrap_or(Shown::Argument(u32::MAX))
    }

    fn value(&mut self, value: Value) {
        let (word, n, part) = match self.shown(value) {
            Shown::Argument(n) => ("%arg", n, None),
            Shown::Result(n) => ("%", n, None),
            Shown::Part(n, i) => ("%", n, Some(i)),
        };
        self.out.push_str(word);
        whole(&mut self.out, n.into());
        if let Some(part) = part {
            self.out.push('#');
            whole(&mut self.out, part.into());
        }
    }

    fn values(&mut self, values: &[Value]) {
        for (i, v) in values.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            self.value(*v);
        }
    }

    fn ty(&self, value: Value) -> &'a Type {
        self.types.get(value.0 as usize).unwrap_or(&Type::None)
    }

    fn type_of(&mut self, value: Value) {
        let t = self.ty(value);
        ty(&mut self.out, t);
    }

    /// ` : (..) -> ..`.
    fn signature(&mut self, op: &Operation) {
        let types = self.types;
        let of = |v: &Value| types.get(v.0 as usize).unwrap_or(&Type::None);
        self.out.push_str(" : ");
        function(&mut self.out, op.operands.iter().map(of), op.results.iter().map(of));
    }

    /// Types of values with commas between.
    fn types_of(&mut self, values: &[Value]) {
        for (i, v) in values.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            self.type_of(*v);
        }
    }

    fn operations(&mut self, region: &Region, in_function: bool) {
        self.depth += 1;
        region.operations.iter().for_each(|op| self.operation(op, in_function));
        self.depth -= 1;
    }

    /// An operation on its line.
    fn operation(&mut self, op: &Operation, in_function: bool) {
        self.indent();
        // Regions name values of their own before the results are named, and the results come first in the text.
        let number = self.results;
        if !op.results.is_empty() {
            self.results += 1;
            self.out.push('%');
            whole(&mut self.out, number.into());
            if op.results.len() > 1 {
                self.out.push(':');
                whole(&mut self.out, op.results.len() as u64);
            }
            self.out.push_str(" = ");
        }
        if !self.pretty(op, in_function) {
            self.generic(op);
        }
        for (i, v) in op.results.iter().enumerate() {
            let shown = if op.results.len() == 1 { Shown::Result(number) } else { Shown::Part(number, i as u32) };
            self.set(*v, shown);
        }
        if let Some(Attribute::Array(parts)) = op.attributes.get(LOCATION)
            && let [file, line, column] = &parts[..]
        {
            self.out.push_str(" loc(");
            quoted(&mut self.out, file.text().unwrap_or_default().as_bytes());
            // A text takes what is written.
            let _ = write!(self.out, ":{}:{})", line.integer().unwrap_or(0), column.integer().unwrap_or(0));
        }
        self.out.push('\n');
    }

    /// The syntax that every operation has. Attributes with a dot in their name belong to nobody in particular, the others to the operation.
    fn generic(&mut self, op: &Operation) {
        quoted(&mut self.out, op.name.as_bytes());
        self.out.push('(');
        self.values(&op.operands);
        self.out.push(')');
        let own = |(n, _): &(&str, &Attribute)| !n.contains('.');
        if op.attributes.iter().any(|a| own(&a)) {
            self.out.push_str(" <{");
            entries(&mut self.out, op.attributes.iter().filter(own));
            self.out.push_str("}>");
        }
        if !op.regions.is_empty() {
            self.out.push_str(" (");
            for (i, region) in op.regions.iter().enumerate() {
                self.out.push_str(if i > 0 { ", {\n" } else { "{\n" });
                if !region.arguments.is_empty() {
                    self.indent();
                    self.out.push_str("^bb0(");
                    for (k, v) in region.arguments.iter().enumerate() {
                        self.out.push_str(if k > 0 { ", " } else { "" });
                        self.argument(*v);
                    }
                    self.out.push_str("):\n");
                }
                self.operations(region, false);
                self.indent();
                self.out.push('}');
            }
            self.out.push(')');
        }
        self.extra(op, &|n| !n.contains('.'));
        self.signature(op);
    }

    /// ` {..}`: the attributes that were not written yet.
    fn extra(&mut self, op: &Operation, written: &dyn Fn(&str) -> bool) {
        let left = |(n, _): &(&str, &Attribute)| *n != LOCATION && !written(n);
        if op.attributes.iter().any(|a| left(&a)) {
            self.out.push_str(" {");
            entries(&mut self.out, op.attributes.iter().filter(left));
            self.out.push('}');
        }
    }
}

/// The location of an operation as its attribute.
pub(crate) fn location(file: &str, line: u32) -> Attribute {
    let number = |n: u32| Attribute::Integer(i128::from(n), Type::Scalar(crate::module::Element::I64));
    Attribute::Array(vec![Attribute::of_text(file), number(line), number(0)])
}

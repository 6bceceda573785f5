//! From the tree of a module to a Gradus program: the operations of a function run once on tracers, in their order.
//!
//! A called function becomes one program that all its callers share; a region becomes a program whose captures are operands. What cannot be imported is
//! refused by its name and place. Each operation's result is held against the type that the text gives it.

mod attributes;
mod bits;
mod calls;
mod checks;
mod chlo;
mod control;
mod custom_calls;
mod dynamic;
mod elementwise;
mod indexing;
mod linear;
mod linear_ragged;
mod narrow;
mod normalize;
mod random;
mod reduce;
#[cfg(feature = "linalg")]
mod reflectors;
mod regions;
mod scatter;
mod shaping;
mod sort;
mod special;
mod types;
mod windows;

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use gradus_core::array::Concrete;
use gradus_core::error::{Error, ErrorKind, Location, Result};
use gradus_core::location::Source;
use gradus_core::trace::{at_place, trace_as_written};
use gradus_core::{Array, Dim, Program, Scalar};
use rustc_hash::FxHashMap;

pub use checks::{Check, CheckKind, Expected};

use crate::module::{Attributes, Function, Module, Operation, Region, Type, Value, Visibility};
use crate::quantized::{is_quantized, legalize_quantized};
use crate::verify::verify;
use checks::Pending;

/// What a module becomes.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The program of the entry function. Behind the function's own results stand those that checks compare.
    pub program: Arc<Program>,
    /// What is said of each input.
    pub inputs: Vec<Attributes>,
    /// How many of the outputs are results of the function.
    pub results: usize,
    /// What the function wants compared, in its order.
    pub checks: Vec<Check>,
}

/// The program of a module's entry: `@main`, or else its only public function.
pub fn import(module: &Module) -> Result<Imported> {
    let main = module.functions.iter().find(|f| f.name == "main");
    let mut public = module.functions.iter().filter(|f| f.visibility != Visibility::Private);
    let only = || match (public.next(), public.next()) {
        (Some(f), None) => Some(f),
        _ => None,
    };
    let Some(entry) = main.or_else(only) else {
        return Err(Error::new(ErrorKind::Parse, format!("{}: there is no function `@main`", module.source))
            .help("name the function that is meant: `import_function(&module, name)`"));
    };
    import_function(module, &entry.name)
}

/// The program of a module's function of this name.
pub fn import_function(module: &Module, name: &str) -> Result<Imported> {
    let module = &*prepared(module)?;
    let Some(entry) = module.functions.iter().find(|f| f.name == name) else {
        let names = module.functions.iter().map(|f| format!("@{}", f.name)).collect::<Vec<_>>().join(", ");
        return Err(Error::new(ErrorKind::Parse, format!("{}: there is no function `@{name}`", module.source))
            .help(format!("its functions are {names}")));
    };
    Importer::new(module).entry(entry)
}

/// The module, verified and without quantized types.
fn prepared(module: &Module) -> Result<Cow<'_, Module>> {
    verify(module)?;
    match is_quantized(module) {
        true => legalize_quantized(module.clone()).map(Cow::Owned),
        false => Ok(Cow::Borrowed(module)),
    }
}

/// What is at hand for the whole module.
struct Importer<'m> {
    module: &'m Module,
    source: Source,
    /// The programs of functions that were called so far.
    functions: RefCell<FxHashMap<String, Arc<Callee>>>,
    /// The functions that are being imported, to find recursion.
    open: RefCell<Vec<String>>,
}

/// A function as a program.
struct Callee {
    program: Arc<Program>,
    /// How many of its outputs are the function's results, tuples taken apart.
    results: usize,
    checks: Vec<Check>,
}

/// What a value of the text is while it is imported.
#[derive(Clone)]
enum Item {
    Array(Array),
    /// Order between effects, of which programs have none.
    Token,
    Tuple(Vec<Item>),
}

/// The values of one function.
struct Scope<'m> {
    importer: &'m Importer<'m>,
    values: Vec<Option<Item>>,
    /// The type of each value in the text.
    types: &'m [Type],
    /// Which operation makes each value, for shapes that are computed.
    definitions: FxHashMap<Value, &'m Operation>,
    /// Arguments that are known as dimensions.
    sizes: FxHashMap<Value, Vec<Dim>>,
    checks: Vec<Pending>,
    /// How many regions around this one would not hand on a check.
    closed: usize,
}

impl<'m> Importer<'m> {
    fn new(module: &'m Module) -> Importer<'m> {
        let source = Source::named(&module.source);
        Importer { module, source, functions: RefCell::default(), open: RefCell::default() }
    }

    fn place(&self, place: crate::module::Place) -> Location {
        Location::in_text(self.source, place.line, place.column)
    }

    fn function(&self, name: &str) -> Option<&'m Function> {
        self.module.functions.iter().find(|f| f.name == name)
    }

    fn entry(&self, function: &'m Function) -> Result<Imported> {
        let inputs = dynamic::argument_types(self, function)?;
        let callee = self.program(function, &inputs)?;
        Ok(Imported {
            program: callee.program,
            inputs: function.arguments.clone(),
            results: callee.results,
            checks: callee.checks,
        })
    }

    /// The program of a function for arguments of these types, tuples taken apart.
    fn program(&self, function: &'m Function, inputs: &[gradus_core::Type]) -> Result<Callee> {
        let place = self.place(function.place);
        if self.open.borrow().contains(&function.name) {
            return Err(Error::new(ErrorKind::Value, format!("the function `@{}` calls itself", function.name))
                .at(place)
                .help("programs have no recursion: write it as a `stablehlo.while`"));
        }
        self.open.borrow_mut().push(function.name.clone());
        let specs: Vec<Array> = inputs.iter().cloned().map(Array::of_type).collect();
        let (mut results, mut checks) = (0, Vec::new());
        let traced = at_place(place, || {
            trace_as_written(&function.name, &specs, |arguments| {
                let mut scope = Scope::of(self, function);
                scope.enter(&function.body, arguments)?;
                let mut outputs = flat(&scope.run(&function.body)?);
                results = outputs.len();
                checks = checks::outputs(std::mem::take(&mut scope.checks), &mut outputs);
                Ok(outputs)
            })
        });
        self.open.borrow_mut().pop();
        let traced = traced.map_err(|e| e.at(place))?;
        if !traced.captures.is_empty() {
            return Err(Error::new(ErrorKind::Rule, format!("`@{}` is not closed", function.name)).at(place));
        }
        Ok(Callee { program: Arc::new(traced.program), results, checks })
    }
}

/// The arrays in items, in their order.
fn flat(items: &[Item]) -> Vec<Array> {
    fn collect(item: &Item, all: &mut Vec<Array>) {
        match item {
            Item::Array(a) => all.push(a.clone()),
            Item::Token => {}
            Item::Tuple(items) => items.iter().for_each(|i| collect(i, all)),
        }
    }
    let mut all = Vec::new();
    items.iter().for_each(|i| collect(i, &mut all));
    all
}

/// An item of a type, from the arrays in it.
fn unflat(ty: &Type, arrays: &mut impl Iterator<Item = Array>) -> Result<Item> {
    match ty {
        Type::Token => Ok(Item::Token),
        Type::Tuple(types) => types.iter().map(|t| unflat(t, arrays)).collect::<Result<_>>().map(Item::Tuple),
        Type::Tensor(_) => match arrays.next() {
            Some(a) => Ok(Item::Array(a)),
            None => Err(Error::new(ErrorKind::Signature, "there are fewer values than types")),
        },
        other => Err(Error::new(ErrorKind::DType, format!("a value of type {other:?} has no numbers"))),
    }
}

impl<'m> Scope<'m> {
    fn of(importer: &'m Importer<'m>, function: &'m Function) -> Scope<'m> {
        Scope {
            importer,
            values: vec![None; function.values.len()],
            types: &function.values,
            definitions: FxHashMap::default(),
            sizes: FxHashMap::default(),
            checks: Vec::new(),
            closed: 0,
        }
    }

    fn ty(&self, value: Value) -> Result<&'m Type> {
        self.types.get(value.0 as usize).ok_or_else(|| Error::new(ErrorKind::Verify, "a value that has no type"))
    }

    fn set(&mut self, value: Value, item: Item) -> Result<()> {
        match self.values.get_mut(value.0 as usize) {
            Some(slot) => *slot = Some(item),
            None => return Err(Error::new(ErrorKind::Verify, "a value that the function does not have")),
        }
        Ok(())
    }

    fn get(&self, value: Value) -> Result<Item> {
        let found = self.values.get(value.0 as usize).and_then(Clone::clone);
        found.ok_or_else(|| Error::new(ErrorKind::Verify, "a value is used before it is defined"))
    }

    /// The one number that a value is in every place, if that follows from a constant by moving it about.
    fn splat(&self, value: Value) -> Option<Scalar> {
        if let Ok(Item::Array(a)) = self.get(value)
            && let Some(number) = a.concrete().and_then(Concrete::splat_value)
        {
            return Some(number);
        }
        let op = self.definitions.get(&value)?;
        let moves = matches!(&*op.name, "stablehlo.broadcast_in_dim" | "stablehlo.reshape" | "stablehlo.transpose");
        op.operands.first().filter(|_| moves).and_then(|v| self.splat(*v))
    }

    /// Binds the arguments of a region to arrays, tuples put together again.
    fn enter(&mut self, region: &'m Region, arrays: &[Array]) -> Result<()> {
        let mut arrays = arrays.iter().cloned();
        for &argument in &region.arguments {
            let item = unflat(self.ty(argument)?, &mut arrays)?;
            self.set(argument, item)?;
        }
        if arrays.next().is_some() {
            return Err(Error::new(ErrorKind::Signature, "there are more values than the region has arguments"));
        }
        Ok(())
    }

    /// Runs the operations of a region; gives what it returns.
    fn run(&mut self, region: &'m Region) -> Result<Vec<Item>> {
        for op in &region.operations {
            let place = self.importer.place(op.place);
            if matches!(&*op.name, "func.return" | "stablehlo.return" | "sdy.return" | "mhlo.return") {
                return op.operands.iter().map(|v| self.get(*v)).collect::<Result<_>>().map_err(|e| e.at(place));
            }
            for &r in &op.results {
                self.definitions.insert(r, op);
            }
            let results = at_place(place, || self.operation(op)).map_err(|e| e.in_operation(&op.name).at(place))?;
            if results.len() != op.results.len() {
                let text = format!("`{}` has {} results and not {}", op.name, results.len(), op.results.len());
                return Err(Error::new(ErrorKind::Verify, text).at(place));
            }
            for (&value, item) in op.results.iter().zip(results) {
                if let Item::Array(array) = &item {
                    types::fits(array, self.ty(value)?).map_err(|e| e.in_operation(&op.name).at(place))?;
                }
                self.set(value, item)?;
            }
        }
        Ok(Vec::new())
    }

    fn operation(&mut self, op: &'m Operation) -> Result<Vec<Item>> {
        let mut on = On { scope: self, op };
        match on.dispatch()? {
            Some(items) => Ok(items),
            None => {
                Err(on
                    .refused("it is not among the operations that Gradus knows", "write it with others, or remove it"))
            }
        }
    }
}

/// An operation and where it is imported.
struct On<'s, 'm> {
    scope: &'s mut Scope<'m>,
    op: &'m Operation,
}

/// What importing an operation gives: its results, or nothing if it is not one of those that were asked.
type Answer = Result<Option<Vec<Item>>>;

fn one(array: Array) -> Answer {
    Ok(Some(vec![Item::Array(array.ok()?)]))
}

fn many(arrays: impl IntoIterator<Item = Array>) -> Answer {
    arrays.into_iter().map(|a| a.ok().map(Item::Array)).collect::<Result<Vec<_>>>().map(Some)
}

impl<'m> On<'_, 'm> {
    fn dispatch(&mut self) -> Answer {
        let name: &'m str = &self.op.name;
        let Some((dialect, short)) = name.split_once('.') else { return Ok(None) };
        match dialect {
            "stablehlo" | "mhlo" => self.stablehlo(short),
            "chlo" => self.chlo(short),
            "check" => self.check(short),
            "func" if short == "call" => self.call(),
            "func" if short == "constant" => Ok(None),
            "sdy" => self.sharding(short),
            "interpreter" if short == "print" => Ok(Some(Vec::new())),
            "interpreter" if short == "probe" => Ok(Some(vec![self.item(0)?])),
            "arith" if short == "constant" => self.constant(),
            "interpreter" => Err(self.refused("it runs programs on several devices", "run each program by itself")),
            _ => Ok(None),
        }
    }

    fn stablehlo(&mut self, name: &'m str) -> Answer {
        let narrowed = self.narrow(name)?;
        if narrowed.is_some() {
            return Ok(narrowed);
        }
        let parts: [fn(&mut Self, &'m str) -> Answer; 10] = [
            |on, name| on.elementwise(name),
            |on, name| on.shaping(name),
            |on, name| on.indexing(name),
            |on, name| on.reduction(name),
            |on, name| on.windowed(name),
            |on, name| on.linear(name),
            |on, name| on.control(name),
            |on, name| on.dynamic(name),
            |on, name| on.random(name),
            |on, name| on.other(name),
        ];
        for part in parts {
            if let Some(items) = part(self, name)? {
                return Ok(Some(items));
            }
        }
        Ok(None)
    }

    /// What has no arithmetic.
    fn other(&mut self, name: &str) -> Answer {
        Ok(Some(match name {
            "after_all" | "create_token" => vec![Item::Token],
            "optimization_barrier" => (0..self.op.operands.len()).map(|i| self.item(i)).collect::<Result<_>>()?,
            "tuple" => vec![Item::Tuple((0..self.op.operands.len()).map(|i| self.item(i)).collect::<Result<_>>()?)],
            "get_tuple_element" => match (self.item(0)?, self.index("index")?) {
                (Item::Tuple(items), at) if at < items.len() => vec![items[at].clone()],
                _ => return Err(self.refused("the tuple has no such element", "give an index of the tuple")),
            },
            "custom_call" => return self.custom_call(),
            "composite" => return self.composite(),
            "map" => return self.map_region(),
            "batch_norm_inference" | "batch_norm_training" | "batch_norm_grad" => return self.batch_norm(name),
            "infeed" | "outfeed" | "send" | "recv" => {
                return Err(
                    self.refused("programs have no streams", "pass what is read as an argument and return the rest")
                );
            }
            "all_gather"
            | "all_reduce"
            | "all_to_all"
            | "collective_broadcast"
            | "collective_permute"
            | "collective_reduce"
            | "reduce_scatter"
            | "partition_id"
            | "replica_id"
            | "cross-replica-sum"
            | "async_start"
            | "async_done" => {
                return Err(self.refused("it speaks with other devices", "export the program for one device"));
            }
            "set_dimension_size" => {
                return Err(
                    self.refused("arrays have no bounded dimensions", "pad and mask, or use a symbolic dimension")
                );
            }
            _ => return Ok(None),
        }))
    }

    /// Shardings say where numbers are, not what they are.
    fn sharding(&mut self, name: &str) -> Answer {
        match name {
            "sharding_constraint" | "reshard" | "propagation_barrier" => Ok(Some(vec![self.item(0)?])),
            "sharding_group" => Ok(Some(Vec::new())),
            _ => Ok(None),
        }
    }

    /// The refusal of this operation, with the reason and the way out.
    fn refused(&self, why: impl std::fmt::Display, out: impl Into<String>) -> Error {
        Error::new(ErrorKind::MissingRule, format!("`{}` cannot be imported: {why}", self.op.name))
            .at(self.scope.importer.place(self.op.place))
            .help(out)
    }

    /// What is wrong with an operation's operands or attributes.
    fn wrong(&self, what: impl std::fmt::Display) -> Error {
        Error::new(ErrorKind::Verify, format!("`{}`: {what}", self.op.name))
            .at(self.scope.importer.place(self.op.place))
    }

    fn item(&self, at: usize) -> Result<Item> {
        let Some(value) = self.op.operands.get(at) else { return Err(self.wrong(format!("it lacks operand {at}"))) };
        self.scope.get(*value)
    }

    /// An operand that is an array.
    fn x(&self, at: usize) -> Result<Array> {
        match self.item(at)? {
            Item::Array(a) => Ok(a),
            _ => Err(self.wrong(format!("operand {at} is no tensor"))),
        }
    }

    /// All operands, which are arrays.
    fn xs(&self) -> Result<Vec<Array>> {
        (0..self.op.operands.len()).map(|i| self.x(i)).collect()
    }

    fn region(&self, at: usize) -> Result<&'m Region> {
        self.op.regions.get(at).ok_or_else(|| self.wrong(format!("it lacks region {at}")))
    }
}

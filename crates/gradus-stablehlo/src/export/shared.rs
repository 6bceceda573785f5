//! What the functions of a module share: their names, which program each is, and the calls of the host.

use std::sync::Arc;

use gradus_core::primitives::Op;
use gradus_core::program::Atom;
use gradus_core::{DType, Program, Result, Type};
use rustc_hash::{FxHashMap, FxHashSet};

use super::control::turn_type;
use super::emit::{Emit, tensor};
use super::sizes::{entry, symbols_of};
use super::{Export, error, fail};
use crate::module::{Attribute, Attributes, Function, Value, Visibility};

/// The module under construction.
pub(super) struct Shared {
    pub options: Export,
    /// Functions that are done, in the order in which they were.
    functions: Vec<Function>,
    names: FxHashSet<String>,
    /// The function of a program, by its address and by what it is. The programs are held, so that an address stays one program's.
    by_address: FxHashMap<usize, (Arc<Program>, String)>,
    by_fingerprint: FxHashMap<u128, String>,
    pub callbacks: Vec<Op>,
    /// The symbols of the whole program.
    symbols: Vec<Arc<str>>,
    depth: usize,
}

/// Whether a symbol stands in a program, in its types or in what its operations say.
fn mentions_symbols(program: &Program) -> bool {
    program.is_symbolic() || program.equations().iter().any(|e| e.op().params().iter().any(|(_, p)| p.is_symbolic()))
}

/// Programs nest no deeper than this; the builder of programs sees to it.
const DEEPEST: usize = 256;

impl Shared {
    pub fn new(options: Export) -> Shared {
        Shared {
            options,
            functions: Vec::new(),
            names: ["main".to_string()].into_iter().collect(),
            by_address: FxHashMap::default(),
            by_fingerprint: FxHashMap::default(),
            callbacks: Vec::new(),
            symbols: Vec::new(),
            depth: 0,
        }
    }

    /// All functions of a program, the public one first.
    pub fn main(&mut self, program: &Program) -> Result<Vec<Function>> {
        let symbols = symbols_of(program);
        self.symbols = symbols.clone();
        let main = if symbols.is_empty() {
            if program.is_symbolic() {
                fail!(Signature, "`{}` computes with a dimension that its inputs do not determine", program.name());
            }
            self.function("main".into(), program, &[], Visibility::Public, false)?
        } else {
            let inner = self.unique(&format!("_wrapped_{}", program.name()));
            let wrapped = self.function(inner.clone(), program, &symbols, Visibility::Private, false)?;
            self.functions.push(wrapped);
            entry(self, program, &inner, &symbols)?
        };
        Ok(std::iter::once(main).chain(std::mem::take(&mut self.functions)).collect())
    }

    fn unique(&mut self, name: &str) -> String {
        let base = if name.is_empty() { "function" } else { name };
        let mut tried = base.to_string();
        let mut n = 0;
        while !self.names.insert(tried.clone()) {
            n += 1;
            tried = format!("{base}_{n}");
        }
        tried
    }

    /// The symbols that the function of a program is given: all or none, since a shape inside may have one that no input has.
    pub fn symbols_in(&self, program: &Program) -> Vec<Arc<str>> {
        if mentions_symbols(program) { self.symbols.clone() } else { Vec::new() }
    }

    /// The private function of a program, made at its first call. Its symbols come in front of its inputs; one that calls the host takes a turn behind them,
    /// and gives one behind its results.
    pub fn called(&mut self, program: &Arc<Program>) -> Result<String> {
        let address = Arc::as_ptr(program) as usize;
        if let Some((_, name)) = self.by_address.get(&address) {
            return Ok(name.clone());
        }
        // What a program computes is its own; what it calls itself is for readers.
        let fingerprint = program.fingerprint();
        let name = match self.by_fingerprint.get(&fingerprint) {
            Some(name) => name.clone(),
            None => {
                let name = self.unique(program.name());
                let (symbols, waits) = (self.symbols_in(program), !program.effects().is_pure());
                let made = self.function(name.clone(), program, &symbols, Visibility::Private, waits)?;
                self.functions.push(made);
                self.by_fingerprint.insert(fingerprint, name.clone());
                name
            }
        };
        self.by_address.insert(address, (program.clone(), name.clone()));
        Ok(name)
    }

    fn function(
        &mut self,
        name: String,
        program: &Program,
        symbols: &[Arc<str>],
        visibility: Visibility,
        waits: bool,
    ) -> Result<Function> {
        self.depth += 1;
        if self.depth > DEEPEST {
            fail!(Size, "calls nest more than {DEEPEST} deep, the last one is of `{}`", program.name());
        }
        let mut e = Emit::new(self);
        let mut arguments = Vec::new();
        let mut said = Vec::new();
        for s in symbols {
            let value = e.value(Type::scalar(DType::I32));
            e.symbols.insert(s.clone(), value);
            arguments.push(value);
            said.push(Attributes::default().with("jax.global_constant", Attribute::of_text(&**s)));
        }
        let inputs: Vec<Value> = program.inputs().iter().map(|t| e.value(t.clone())).collect();
        arguments.extend(&inputs);
        if waits {
            let turn = e.value(turn_type());
            arguments.push(turn);
            e.turn = Some(turn);
        }
        said.resize(arguments.len(), Attributes::default());
        let mut outputs = e.program(program, &inputs)?;
        let mut types = program.output_types();
        if waits {
            outputs.push(e.turn()?);
            types.push(turn_type());
        }
        let (body, values) = e.finish(arguments, &outputs)?;
        self.depth -= 1;
        let results = types.iter().map(|t| (tensor(t).into(), Attributes::default())).collect();
        Ok(Function { name, visibility, arguments: said, results, body, values, ..Function::default() })
    }
}

impl Emit<'_> {
    /// The equations of a program on these inputs; gives what it returns.
    pub fn program(&mut self, program: &Program, inputs: &[Value]) -> Result<Vec<Value>> {
        let mut values: Vec<Option<Value>> = vec![None; program.value_count()];
        for (slot, (value, ty)) in values.iter_mut().zip(inputs.iter().zip(program.inputs())) {
            *slot = Some(self.retyped(*value, ty)?);
        }
        let outer = self.place;
        for equation in program.equations() {
            // What has no line of its own belongs to who calls it.
            self.place = if equation.place().is_known() { equation.place() } else { outer };
            let place = self.place;
            let operands = program.operands(equation).iter().map(|a| self.atom(program, &values, *a));
            let operands = operands.collect::<Result<Vec<_>>>()?;
            let types: Vec<Type> = equation.results().map(|r| program.ty(r).clone()).collect();
            let name = equation.op().name();
            let made = self.rule(equation.op(), &operands, &types).map_err(|e| e.in_operation(name).at(place))?;
            if made.len() != types.len() {
                fail!(Internal, "`{name}` was exported with {} results, not {}", made.len(), types.len());
            }
            for ((r, value), ty) in equation.results().zip(made).zip(&types) {
                values[r.index()] = Some(self.retyped(value, ty)?); // invariant: as many as the program has
            }
        }
        self.place = outer;
        program.outputs().iter().map(|a| self.atom(program, &values, *a)).collect()
    }

    fn atom(&mut self, program: &Program, values: &[Option<Value>], atom: Atom) -> Result<Value> {
        if let Some(value) = atom.value() {
            let found = values.get(value.index()).copied().flatten();
            return found.ok_or_else(|| error!(Verify, "a value of `{}` is used before it is defined", program.name()));
        }
        let Some(constant) = program.constant(atom) else { fail!(Verify, "an operand that is nothing") };
        match constant.splat_value() {
            Some(value) => self.splat(constant.ty(), value),
            None => {
                let array = constant.to_array()?;
                let Some(concrete) = array.concrete() else { fail!(Internal, "a constant without numbers") };
                self.array(concrete)
            }
        }
    }
}

//! The program: typed equations in static single assignment form, in flat arenas with `u32` ids.
//!
//! A value is an input or a result of an equation and is named by its position: `x0`, `x1`, ... in the order of
//! definition. A constant is not a value: it stands where it is used.
//!
//! *Invariants.* A program is closed: an equation uses inputs, constants and earlier results, nothing else. Programs nest at most as deep
//! as the stack module says, so what goes down with them comes back. [`verify()`] checks all of it again.

mod builder;
mod edit;
mod parse;
mod print;
mod verify;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use builder::Builder;
pub(crate) use builder::infer;
pub use edit::eliminate_dead_code;
pub(crate) use parse::short;
pub use verify::{Verified, verify};

use crate::array::{Array, Concrete};
use crate::error::{Location, Result, error};
use crate::primitives::{Op, Param};
use crate::types::{Constraint, Dim, Effects, Scalar, Type};

/// A value of a program, by its position.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(u32);

impl ValueId {
    /// The value at a position.
    pub fn new(index: usize) -> ValueId {
        ValueId(index as u32)
    }

    /// The position.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ValueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.0)
    }
}

impl fmt::Debug for ValueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.0)
    }
}

/// Something an equation can take: a value or a constant. The top bit tells which.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Atom(u32);

const CONSTANT: u32 = 1 << 31;

impl Atom {
    pub(crate) fn constant(index: usize) -> Atom {
        Atom(index as u32 | CONSTANT)
    }

    /// The value, if it is one.
    pub fn value(self) -> Option<ValueId> {
        (self.0 & CONSTANT == 0).then_some(ValueId(self.0))
    }

    /// Which of the constants it is, if it is one.
    pub fn constant_index(self) -> Option<usize> {
        (self.0 & CONSTANT != 0).then_some((self.0 & !CONSTANT) as usize)
    }
}

impl From<ValueId> for Atom {
    fn from(value: ValueId) -> Atom {
        Atom(value.0)
    }
}

/// A constant of a program.
#[derive(Clone)]
pub struct Constant {
    ty: Type,
    content: Content,
}

#[derive(Clone)]
enum Content {
    /// One number in every place; the shape may be symbolic.
    Splat(Scalar),
    Dense(Arc<Concrete>),
    /// While tracing only: the hidden input of this number.
    Capture(usize),
}

impl Constant {
    pub(crate) fn capture(ty: Type, index: usize) -> Constant {
        Constant { ty, content: Content::Capture(index) }
    }

    pub(crate) fn capture_index(&self) -> Option<usize> {
        if let Content::Capture(i) = self.content { Some(i) } else { None }
    }

    /// One number in every place of a type. The number has the type's dtype.
    pub fn splat(ty: Type, value: Scalar) -> Constant {
        Constant { ty: ty.clone(), content: Content::Splat(value.cast(ty.dtype())) }
    }

    /// An array's numbers.
    pub fn array(concrete: &Concrete) -> Constant {
        let content = match concrete.splat_value() {
            Some(value) => Content::Splat(value),
            None => Content::Dense(Arc::new(concrete.to_dense())),
        };
        Constant { ty: concrete.ty().clone(), content }
    }

    /// The type.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// The one number that fills it, if it is made so.
    pub fn splat_value(&self) -> Option<Scalar> {
        if let Content::Splat(s) = self.content { Some(s) } else { None }
    }

    /// As an array with numbers; an error if the shape is symbolic.
    pub fn to_array(&self) -> Result<Array> {
        match &self.content {
            Content::Dense(c) => Ok(Array::from((**c).clone())),
            Content::Splat(s) if !self.ty.shape().is_symbolic() => Ok(Concrete::splat(self.ty.clone(), *s).into()),
            Content::Splat(_) | Content::Capture(_) => {
                Err(error!(NotConcrete, "a constant of type {} has no numbers yet", self.ty))
            }
        }
    }

    fn map_dims(&self, f: &dyn Fn(&Dim) -> Dim) -> Constant {
        Constant { ty: self.ty.map_dims(f), content: self.content.clone() }
    }

    /// Bytes it holds.
    pub fn bytes(&self) -> usize {
        match &self.content {
            Content::Splat(_) | Content::Capture(_) => 16,
            Content::Dense(c) => c.ty().bytes().unwrap_or(0),
        }
    }
}

impl PartialEq for Constant {
    fn eq(&self, other: &Constant) -> bool {
        self.ty == other.ty
            && match (&self.content, &other.content) {
                (Content::Splat(a), Content::Splat(b)) => a == b,
                (Content::Dense(a), Content::Dense(b)) => Arc::ptr_eq(a, b) || a.same_bits(b),
                (Content::Capture(a), Content::Capture(b)) => a == b,
                _ => false,
            }
    }
}

impl Eq for Constant {}

impl Hash for Constant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ty.hash(state);
        match &self.content {
            Content::Splat(s) => s.hash(state),
            Content::Capture(i) => i.hash(state),
            Content::Dense(c) => crate::types::dispatch!(c.ty().dtype(), T => {
                for v in c.values::<T>().iter() {
                    crate::types::Element::bits(*v).hash(state);
                }
            }),
        }
    }
}

/// One operation of a program with the ranges of its operands and results.
#[derive(Clone)]
pub struct Equation {
    op: Op,
    operands_start: u32,
    operands_len: u32,
    first_result: u32,
    results_len: u32,
    place: Location,
}

impl Equation {
    /// The operation.
    pub fn op(&self) -> &Op {
        &self.op
    }

    /// The results, which are consecutive values.
    pub fn results(&self) -> impl ExactSizeIterator<Item = ValueId> + use<> {
        (self.first_result..self.first_result + self.results_len).map(ValueId)
    }

    /// The first result.
    pub fn result(&self) -> ValueId {
        ValueId(self.first_result)
    }

    /// The user's line it comes from.
    pub fn place(&self) -> Location {
        self.place
    }
}

/// A typed program: inputs, equations, outputs.
#[derive(Clone, Default)]
pub struct Program {
    name: String,
    /// The type of each value: inputs first, then results in order.
    types: Vec<Type>,
    inputs: usize,
    equations: Vec<Equation>,
    operands: Vec<Atom>,
    constants: Vec<Constant>,
    outputs: Vec<Atom>,
    constraints: Vec<Constraint>,
    /// How deep calls nest inside.
    depth: usize,
    /// What its equations do. Kept as they are added: asking through calls of calls could take exponential time.
    effects: Effects,
}

impl Program {
    /// Its name: that of the function it was traced from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same program under another name. What cannot stand in a word of program text becomes an underscore.
    pub fn with_name(mut self, name: impl Into<String>) -> Program {
        self.name = as_word(name.into());
        self
    }

    /// The types of the inputs.
    pub fn inputs(&self) -> &[Type] {
        &self.types[..self.inputs]
    }

    /// Whether each input is read by an equation or is a result.
    pub fn read_inputs(&self) -> Vec<bool> {
        let mut read = vec![false; self.inputs];
        let operands = self.equations.iter().flat_map(|e| self.operands(e));
        for v in operands.chain(&self.outputs).filter_map(|a| a.value()) {
            if let Some(r) = read.get_mut(v.index()) {
                *r = true;
            }
        }
        read
    }

    /// The place of the first equation that reads an input.
    pub fn first_use(&self, input: usize) -> Option<Location> {
        let reads = |e: &&Equation| self.operands(e).iter().any(|a| a.value().is_some_and(|v| v.index() == input));
        self.equations.iter().find(reads).map(Equation::place)
    }

    /// The equations, in order.
    pub fn equations(&self) -> &[Equation] {
        &self.equations
    }

    /// What an equation takes.
    pub fn operands(&self, equation: &Equation) -> &[Atom] {
        let start = equation.operands_start as usize;
        &self.operands[start..start + equation.operands_len as usize]
    }

    /// What the program returns.
    pub fn outputs(&self) -> &[Atom] {
        &self.outputs
    }

    /// The types of what it returns.
    pub fn output_types(&self) -> Vec<Type> {
        self.outputs.iter().map(|&a| self.ty(a).clone()).collect()
    }

    /// The number of values.
    pub fn value_count(&self) -> usize {
        self.types.len()
    }

    /// The type of a value or constant.
    pub fn ty(&self, atom: impl Into<Atom>) -> &Type {
        let atom = atom.into();
        match atom.constant_index() {
            Some(c) => &self.constants[c].ty,
            None => &self.types[atom.0 as usize],
        }
    }

    /// The constant behind an atom, if it is one.
    pub fn constant(&self, atom: Atom) -> Option<&Constant> {
        atom.constant_index().map(|c| &self.constants[c])
    }

    /// All constants.
    pub fn constants(&self) -> &[Constant] {
        &self.constants
    }

    /// Conditions on symbolic dimensions that a call must meet.
    pub fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    /// How many equations apply the operation of this name, nested programs included.
    pub fn count(&self, name: &str) -> usize {
        self.equations
            .iter()
            .map(|e| {
                let nested = e.op.params().iter().map(|(_, p)| count_nested(p, name)).sum::<usize>();
                usize::from(e.op.name() == name) + nested
            })
            .sum()
    }

    /// What running it does besides computing.
    #[inline]
    pub fn effects(&self) -> Effects {
        self.effects
    }

    /// Whether a symbol stands anywhere at all, in conditions, parameters and nested programs too.
    pub(crate) fn mentions_symbols(&self) -> bool {
        self.constraints.iter().any(|c| !c.symbols().is_empty())
            || self.is_symbolic()
            || self.equations.iter().any(|e| e.op.params().iter().any(|(_, p)| p.is_symbolic()))
    }

    /// Whether the type of a value has a symbolic dimension.
    pub fn is_symbolic(&self) -> bool {
        // Every symbol of a verified program stands in an input's type.
        self.inputs().iter().any(|t| t.shape().is_symbolic())
            || self.types.iter().any(|t| t.shape().is_symbolic())
            || self.constants.iter().any(|c| c.ty.shape().is_symbolic())
    }

    /// Replaces symbolic dimensions everywhere.
    pub fn map_dims(&self, f: &dyn Fn(&Dim) -> Dim) -> Program {
        let mut p = self.clone();
        p.types.iter_mut().for_each(|t| *t = t.map_dims(f));
        p.constants.iter_mut().for_each(|c| *c = c.map_dims(f));
        for e in &mut p.equations {
            // Parameters that cannot be read back stay as they are; the verifier speaks of them.
            if let Ok(op) = e.op.map_dims(f) {
                e.op = op;
            }
        }
        p.constraints = p
            .constraints
            .iter()
            .map(|c| match c {
                Constraint::Equal(a, b) => Constraint::Equal(f(a), f(b)),
                Constraint::AtLeast(a, b) => Constraint::AtLeast(f(a), f(b)),
                Constraint::Multiple(a, n) => Constraint::Multiple(f(a), *n),
            })
            .collect();
        p
    }

    /// The program with more conditions on its dimensions.
    pub fn with_constraints(mut self, more: &[Constraint]) -> Program {
        self.require(more);
        self
    }

    fn require(&mut self, more: &[Constraint]) {
        for c in more {
            if !self.constraints.contains(c) {
                self.constraints.push(c.clone());
            }
        }
    }

    /// The program for given input types: symbols are solved for, constraints checked, everything known.
    pub fn bind_symbols(&self, types: &[Type]) -> Result<Program> {
        let bindings = self.solve_symbols(types)?;
        let p = self.map_dims(&|d| d.substitute(&|s| bindings.get(s).map(|v| Dim::from(*v))));
        if p.is_symbolic() {
            return Err(error!(
                Signature,
                "`{}` computes with a dimension that its inputs do not determine", self.name
            )
            .help("every symbol must stand in the shape of an input, alone or in a linear expression"));
        }
        Ok(p)
    }

    /// The numbers that input types give to the symbols of this program; an error names what does not fit.
    pub fn solve_symbols(&self, types: &[Type]) -> Result<FxHashMap<Arc<str>, i64>> {
        self.solve_symbols_of(types, &|i| format!("argument {i}"))
    }

    /// As [`solve_symbols`](Program::solve_symbols), with names for the inputs.
    pub fn solve_symbols_of(
        &self,
        types: &[Type],
        named: &dyn Fn(usize) -> String,
    ) -> Result<FxHashMap<Arc<str>, i64>> {
        let mut bindings = FxHashMap::default();
        let mut told: FxHashMap<Arc<str>, (usize, usize)> = FxHashMap::default();
        let misfit = |i: usize, have: &Type, want: &Type| {
            error!(Signature, "{} of `{}` is {have} where {want} is wanted", named(i), self.name)
        };
        // Symbols that stand alone, or in a linear expression of one symbol, say their number.
        for (i, (want, have)) in self.inputs().iter().zip(types).enumerate() {
            if want.dtype() != have.dtype() || want.rank() != have.rank() {
                return Err(misfit(i, have, want));
            }
            for (axis, (w, h)) in want.shape().iter().zip(have.shape().iter()).enumerate() {
                let Some(h) = h.constant() else { continue };
                if let Some((symbol, value)) = w.solve_for(h) {
                    told.entry(symbol.clone()).or_insert((i, axis));
                    bindings.entry(symbol).or_insert(value);
                }
            }
        }
        let lookup = |s: &str| bindings.get(s).copied();
        // Each symbol with its number and the dimension that gave it.
        let origins = |symbols: &[Arc<str>]| -> String {
            let one = |s: &Arc<str>| {
                let (i, axis) = told.get(s)?;
                Some(format!("{s}={} (dimension {axis} of {})", lookup(s)?, named(*i)))
            };
            symbols.iter().filter_map(one).collect::<Vec<_>>().join(", ")
        };
        for (i, (want, have)) in self.inputs().iter().zip(types).enumerate() {
            for (axis, (w, h)) in want.shape().iter().zip(have.shape().iter()).enumerate() {
                let evaluated = w.evaluate(&lookup).map_err(|e| misfit(i, have, want).note(e.to_string()))?;
                if h.constant() != Some(evaluated) {
                    let bound = origins(&w.symbols());
                    let e = misfit(i, have, want).note(format!("dimension {axis} is {h}, and {w} is {evaluated}"));
                    return Err(if bound.is_empty() { e } else { e.note(format!("with {bound}")) });
                }
            }
        }
        for constraint in &self.constraints {
            if !constraint.check(&lookup).map_err(|e| error!(Constraint, "{constraint}: {e}"))? {
                let bound = origins(&constraint.symbols());
                return Err(error!(Constraint, "`{}` wants {constraint}, but here {bound}", self.name)
                    .at(self.place_of_condition(constraint).unwrap_or_default())
                    .help("the program was traced for every size of these symbols, and what it does is possible only where this holds: give it arrays that fit, by padding or cutting, or declare the dimension as a number"));
            }
        }
        Ok(bindings)
    }

    /// The line of the first operation whose type rule asks for a condition, here or in a program inside. An operation that the optimizer
    /// dropped is not found.
    fn place_of_condition(&self, condition: &Constraint) -> Option<Location> {
        self.equations.iter().find_map(|e| {
            let types: Vec<Type> = self.operands(e).iter().map(|a| self.ty(*a).clone()).collect();
            let mut asked = Vec::new();
            let inside = || e.op().programs().iter().find_map(|p| p.place_of_condition(condition));
            let here = infer(e.op(), &types, &mut asked).is_ok() && asked.contains(condition);
            inside().or_else(|| here.then(|| e.place())).filter(|p| p.is_known())
        })
    }

    /// The program that returns some of the outputs, in the order given.
    pub fn select_outputs(mut self, keep: &[usize]) -> Program {
        self.outputs = keep.iter().filter_map(|i| self.outputs.get(*i).copied()).collect();
        self
    }

    /// Turns the captures of a finished trace into inputs after the first `inputs` ones: every later value moves up.
    pub(crate) fn with_captures(mut self, inputs: usize, captures: &[Type]) -> Program {
        if captures.is_empty() {
            return self;
        }
        let shift = captures.len() as u32;
        let moved: Vec<Option<Atom>> =
            self.constants.iter().map(|c| c.capture_index().map(|i| ValueId::new(inputs + i).into())).collect();
        let atoms = self.operands.iter_mut().chain(&mut self.outputs);
        for atom in atoms {
            *atom = match atom.constant_index() {
                Some(c) => moved[c].unwrap_or(*atom),
                None if atom.0 as usize >= inputs => Atom(atom.0 + shift),
                None => *atom,
            };
        }
        self.equations.iter_mut().for_each(|e| e.first_result += shift);
        self.types.splice(inputs..inputs, captures.iter().cloned());
        self.inputs += captures.len();
        self
    }

    /// A hash of what the program computes, the same in every process of a program; names of functions and source lines do not count.
    pub fn fingerprint(&self) -> u128 {
        // The canonical text is the program; hashing it cannot miss a parameter.
        let text = print::to_text(self, print::Names::Hidden);
        fnv128(text.as_bytes())
    }

    /// Bytes it takes in memory, roughly.
    pub fn bytes(&self) -> usize {
        size_of::<Program>()
            + self.types.len() * size_of::<Type>()
            + self.equations.len() * size_of::<Equation>()
            + self.operands.len() * size_of::<Atom>()
            + self.constants.iter().map(|c| size_of::<Constant>() + c.bytes()).sum::<usize>()
    }
}

/// A name that the parser reads as one word, so that the text of a program reads back whatever it was called.
fn as_word(name: String) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.is_empty() && name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit()) {
        return name;
    }
    let word: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit()) { format!("_{word}") } else { word }
}

fn count_nested(param: &Param, name: &str) -> usize {
    match param {
        Param::Program(p) => p.count(name),
        Param::List(items) => items.iter().map(|p| count_nested(p, name)).sum(),
        _ => 0,
    }
}

/// FNV-1a with 128 bits: small, fast enough, and stable for ever.
fn fnv128(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62272e07bb014262b821756295c58d, |h: u128, b| {
        (h ^ *b as u128).wrapping_mul(0x0000000001000000000000000000013b)
    })
}

/// Equal programs have the same canonical text; source lines do not count.
impl PartialEq for Program {
    fn eq(&self, other: &Program) -> bool {
        self.name == other.name && self.computes_same(other)
    }
}

impl Program {
    /// Whether two programs are the same but for their names.
    pub fn computes_same(&self, other: &Program) -> bool {
        let same_atom = |a: &Atom, b: &Atom| match (self.constant(*a), other.constant(*b)) {
            (Some(x), Some(y)) => x == y,
            (None, None) => a == b,
            _ => false,
        };
        let same_atoms = |a: &[Atom], b: &[Atom]| a.len() == b.len() && a.iter().zip(b).all(|(x, y)| same_atom(x, y));
        self.inputs == other.inputs
            && self.types == other.types
            && self.constraints == other.constraints
            && self.equations.len() == other.equations.len()
            && self.equations.iter().zip(&other.equations).all(|(a, b)| {
                a.results_len == b.results_len && same_atoms(self.operands(a), other.operands(b)) && a.op == b.op
            })
            && same_atoms(&self.outputs, &other.outputs)
    }
}

impl Eq for Program {}

impl Hash for Program {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint().hash(state);
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print::to_text(self, print::Names::Shown))
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

//! Sizes that are symbols: how a dimension is computed from the symbols of a function, and the function around it that reads them from its arguments, in
//! JAX's convention.

use std::sync::Arc;

use gradus_core::types::Constraint;
use gradus_core::{DType, Dim, Location, Program, Result, Scalar, Shape, Type};

use super::emit::{Emit, attributes, no_attributes, number, tensor};
use super::error;
use super::shared::Shared;
use crate::module::{Attribute, Attributes, Element, Function, Type as TreeType, Value, Visibility};

impl Emit<'_> {
    /// The size of a dimension, a scalar of `i32`.
    pub fn size(&mut self, dim: &Dim) -> Result<Value> {
        if let Some(n) = dim.constant() {
            return self.integer(DType::I32, n);
        }
        let text = dim.to_string();
        let terms =
            terms_of(&text).ok_or_else(|| error!(Size, "the dimension {dim} cannot be written as arithmetic"))?;
        self.term(&terms, dim)
    }

    fn term(&mut self, term: &Term, dim: &Dim) -> Result<Value> {
        Ok(match term {
            Term::Number(n) => self.integer(DType::I32, *n)?,
            Term::Symbol(s) => match self.symbols.get(&**s) {
                Some(value) => *value,
                None => {
                    return Err(error!(Size, "nothing says what `{s}` of the dimension {dim} is")
                        .help("every symbol must stand in the shape of an input, alone or in a linear expression"));
                }
            },
            Term::Of(op, a, b) => {
                let (a, b) = (self.term(a, dim)?, self.term(b, dim)?);
                match op {
                    Arithmetic::Add => self.same("stablehlo.add", &[a, b])?,
                    Arithmetic::Sub => self.same("stablehlo.subtract", &[a, b])?,
                    Arithmetic::Mul => self.same("stablehlo.multiply", &[a, b])?,
                    Arithmetic::Max => self.same("stablehlo.maximum", &[a, b])?,
                    Arithmetic::Min => self.same("stablehlo.minimum", &[a, b])?,
                    Arithmetic::FloorDiv => self.floor_div(a, b)?,
                    Arithmetic::Mod => {
                        let quotient = self.floor_div(a, b)?;
                        let whole = self.same("stablehlo.multiply", &[quotient, b])?;
                        self.same("stablehlo.subtract", &[a, whole])?
                    }
                }
            }
        })
    }

    /// The quotient rounded down, of a divisor that is positive.
    fn floor_div(&mut self, a: Value, b: Value) -> Result<Value> {
        let quotient = self.same("stablehlo.divide", &[a, b])?;
        let rest = self.same("stablehlo.remainder", &[a, b])?;
        let (zero, one) = (self.integer(DType::I32, 0)?, self.integer(DType::I32, 1)?);
        let below = self.compare("LT", rest, zero)?;
        let less = self.same("stablehlo.subtract", &[quotient, one])?;
        self.select(below, less, quotient)
    }

    /// A shape as a vector of `i32`.
    pub fn dims(&mut self, shape: &Shape) -> Result<Value> {
        let vector = |n: usize| Type::new(DType::I32, [n].as_slice());
        let mut parts = Vec::new();
        for d in shape.iter() {
            let size = self.size(d)?;
            parts.push(self.op("stablehlo.reshape", &[size], no_attributes(), &vector(1))?);
        }
        match parts.len() {
            0 => self.splat(&vector(0), Scalar::I32(0)),
            1 => Ok(parts[0]), // invariant: there is one
            n => self.op("stablehlo.concatenate", &parts, attributes([("dimension", number(0))]), &vector(n)),
        }
    }
}

/// A dimension as a tree. The text of a dimension is canonical, and says all there is.
enum Term {
    Number(i64),
    Symbol(String),
    Of(Arithmetic, Box<Term>, Box<Term>),
}

#[derive(Clone, Copy)]
enum Arithmetic {
    Add,
    Sub,
    Mul,
    FloorDiv,
    Mod,
    Max,
    Min,
}

/// Reads the text of a dimension: sums of products of numbers, symbols, powers and the functions `floordiv`, `mod`, `max`, `min`.
fn terms_of(text: &str) -> Option<Term> {
    let mut reader = Reader { text: text.as_bytes(), at: 0 };
    let term = reader.sum()?;
    reader.skip();
    (reader.at == reader.text.len()).then_some(term)
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn skip(&mut self) {
        while self.text.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
    }

    fn take(&mut self, c: u8) -> bool {
        self.skip();
        let found = self.text.get(self.at) == Some(&c);
        self.at += usize::from(found);
        found
    }

    fn sum(&mut self) -> Option<Term> {
        let mut all = if self.take(b'-') {
            Term::Of(Arithmetic::Sub, Box::new(Term::Number(0)), Box::new(self.product()?))
        } else {
            self.product()?
        };
        loop {
            let op = match () {
                () if self.take(b'+') => Arithmetic::Add,
                () if self.take(b'-') => Arithmetic::Sub,
                () => return Some(all),
            };
            all = Term::Of(op, Box::new(all), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Option<Term> {
        let mut all = self.factor()?;
        while self.take(b'*') {
            all = Term::Of(Arithmetic::Mul, Box::new(all), Box::new(self.factor()?));
        }
        Some(all)
    }

    fn factor(&mut self) -> Option<Term> {
        let start = self.at;
        let base = self.atom()?;
        let end = self.at;
        if !self.take(b'^') {
            return Some(base);
        }
        let Term::Number(n) = self.atom()? else { return None };
        let mut all = base;
        for _ in 1..n {
            let again = Reader { text: &self.text[..end], at: start }.atom()?;
            all = Term::Of(Arithmetic::Mul, Box::new(all), Box::new(again));
        }
        Some(all)
    }

    fn atom(&mut self) -> Option<Term> {
        self.skip();
        if self.take(b'(') {
            let inner = self.sum()?;
            return self.take(b')').then_some(inner);
        }
        let start = self.at;
        while self.text.get(self.at).is_some_and(|c| c.is_ascii_alphanumeric() || *c == b'_' || *c == b'\'') {
            self.at += 1;
        }
        let word = std::str::from_utf8(&self.text[start..self.at]).ok().filter(|w| !w.is_empty())?;
        if let Ok(n) = word.parse::<i64>() {
            return Some(Term::Number(n));
        }
        let op = match word {
            "floordiv" => Arithmetic::FloorDiv,
            "mod" => Arithmetic::Mod,
            "max" => Arithmetic::Max,
            "min" => Arithmetic::Min,
            symbol => return Some(Term::Symbol(symbol.to_string())),
        };
        if !self.take(b'(') {
            return Some(Term::Symbol(word.to_string()));
        }
        let mut all = self.sum()?;
        while self.take(b',') {
            all = Term::Of(op, Box::new(all), Box::new(self.sum()?));
        }
        self.take(b')').then_some(all)
    }
}

/// The symbols of a program, in the order in which its inputs have them.
pub(super) fn symbols_of(program: &Program) -> Vec<Arc<str>> {
    let mut all: Vec<Arc<str>> = Vec::new();
    for s in program.inputs().iter().flat_map(|t| t.shape().iter()).flat_map(Dim::symbols) {
        if !all.contains(&s) {
            all.push(s);
        }
    }
    all
}

/// The public function around a program with symbols: it reads each from the first argument that says it, asserts what the program relies on, and calls
/// `inner` with the symbols in front.
pub(super) fn entry(shared: &mut Shared, program: &Program, inner: &str, symbols: &[Arc<str>]) -> Result<Function> {
    let mut e = Emit::new(shared);
    let arguments: Vec<Value> = program.inputs().iter().map(|t| e.value(t.clone())).collect();
    // Sizes of the arguments, each read once.
    let mut read: Vec<(usize, usize, Value)> = Vec::new();
    for (i, t) in program.inputs().iter().enumerate() {
        for (axis, _) in t.shape().iter().enumerate().filter(|(_, d)| d.constant().is_none()) {
            let more = attributes([("dimension", number(axis))]);
            let size = e.op("stablehlo.get_dimension_size", &[arguments[i]], more, &Type::scalar(DType::I32))?; // invariant: as many as inputs
            read.push((i, axis, size));
        }
    }
    let dim_of = |i: usize, axis: usize| program.inputs().get(i).and_then(|t| t.shape().get(axis)).cloned();
    for s in symbols {
        let value = read.iter().find_map(|(i, axis, size)| {
            let dim = dim_of(*i, *axis)?;
            solve(&dim, s).map(|(factor, rest)| (*size, factor, rest))
        });
        let Some((size, factor, rest)) = value else {
            return Err(error!(Signature, "`{}` has a symbol `{s}` that no input says", program.name())
                .help("every symbol must stand in the shape of an input, alone or in a linear expression"));
        };
        let mut value = size;
        if rest != 0 {
            let rest = e.integer(DType::I32, rest)?;
            value = e.same("stablehlo.subtract", &[value, rest])?;
        }
        if factor != 1 {
            let by = e.integer(DType::I32, factor)?;
            let left = e.same("stablehlo.remainder", &[value, by])?;
            let zero = e.integer(DType::I32, 0)?;
            let whole = e.compare("EQ", left, zero)?;
            e.assert(whole, &[left], &format!("Division had remainder {{0}} when computing the value of '{s}'"))?;
            value = e.same("stablehlo.divide", &[value, by])?;
        }
        e.symbols.insert(s.clone(), value);
        let least = e.integer(DType::I32, 0)?;
        let fits = e.compare("GE", value, least)?;
        e.assert(fits, &[value], &format!("Expected value >= 0 for dimension variable '{s}', found {{0}}"))?;
    }
    for (i, axis, size) in &read {
        let Some(dim) =
            dim_of(*i, *axis).filter(|d| d.as_symbol().is_none() || first_use(program, d) != Some((*i, *axis)))
        else {
            continue;
        };
        let wanted = e.size(&dim)?;
        let same = e.compare("EQ", *size, wanted)?;
        e.assert(same, &[*size, wanted], &format!("args[{i}].shape[{axis}] is {{0}} and should be {dim} = {{1}}"))?;
    }
    for c in program.constraints() {
        e.place = Location::unknown();
        let (holds, shown) = match c {
            Constraint::Equal(a, b) => {
                let (a, b) = (e.size(a)?, e.size(b)?);
                (e.compare("EQ", a, b)?, vec![a, b])
            }
            Constraint::AtLeast(a, b) => {
                let (a, b) = (e.size(a)?, e.size(b)?);
                (e.compare("GE", a, b)?, vec![a, b])
            }
            Constraint::Multiple(a, n) => {
                let (a, n) = (e.size(a)?, e.integer(DType::I32, *n)?);
                let rest = e.same("stablehlo.remainder", &[a, n])?;
                let zero = e.integer(DType::I32, 0)?;
                (e.compare("EQ", rest, zero)?, vec![a])
            }
        };
        e.assert(holds, &shown, &format!("`{}` wants {c}", program.name()))?;
    }
    let mut operands: Vec<Value> = symbols.iter().filter_map(|s| e.symbols.get(s).copied()).collect();
    operands.extend(&arguments);
    let outputs = e.call(inner, &operands, &program.output_types())?;
    let count = arguments.len();
    let (body, values) = e.finish(arguments, &outputs)?;
    Ok(Function {
        name: "main".into(),
        visibility: Visibility::Public,
        arguments: vec![Attributes::default(); count],
        results: program.output_types().iter().map(|t| (tensor(t).into(), Attributes::default())).collect(),
        body,
        values,
        ..Function::default()
    })
}

/// Where a symbol stands alone first.
fn first_use(program: &Program, dim: &Dim) -> Option<(usize, usize)> {
    let at = |(i, t): (usize, &Type)| t.shape().iter().position(|d| d == dim).map(|axis| (i, axis));
    program.inputs().iter().enumerate().find_map(at)
}

/// The factor and the rest of a dimension that is linear in one symbol.
fn solve(dim: &Dim, symbol: &str) -> Option<(i64, i64)> {
    let at = |n: i64| dim.evaluate(&|s| (s == symbol).then_some(n)).ok();
    dim.solve_for(at(1)?).filter(|(s, _)| &**s == symbol)?;
    let rest = at(0)?;
    Some((at(1)? - rest, rest)).filter(|(factor, _)| *factor > 0)
}

impl Emit<'_> {
    /// What JAX's readers check before a program runs.
    fn assert(&mut self, holds: Value, shown: &[Value], message: &str) -> Result<()> {
        let more = attributes([
            ("call_target_name", Attribute::of_text("shape_assertion")),
            ("api_version", Attribute::Integer(2, TreeType::Scalar(Element::I32))),
            ("has_side_effect", Attribute::Bool(true)),
            ("error_message", Attribute::of_text(message)),
        ]);
        let operands: Vec<Value> = std::iter::once(holds).chain(shown.iter().copied()).collect();
        self.operation("stablehlo.custom_call", &operands, more, vec![], &[])?;
        Ok(())
    }

    /// Refuses a size that must be a number where it is not.
    pub fn known(&self, dim: &Dim, what: &str) -> Result<usize> {
        let Some(n) = dim.as_usize() else {
            return Err(error!(Size, "{what} is {dim}, and StableHLO wants a number there")
                .at(self.place)
                .help("give the size as a number: `Program::bind_symbols` makes the program for given sizes"));
        };
        Ok(n)
    }
}

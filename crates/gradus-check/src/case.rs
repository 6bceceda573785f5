//! One case: a program, the sizes of its symbols and how its inputs are filled. As text it is a file that can be run again.

use std::fmt;

use gradus_core::testing::{Source, random_array};
use gradus_core::{Array, Dim, Program, Type};

/// What the numbers of inputs are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Near one, all different.
    Plain,
    /// Small whole numbers: sums and products of them are exact in any order, and there are many ties.
    Whole,
    /// Plain ones, and those that operations get wrong first: NaN, infinities, signed zeros, the largest.
    Special,
}

impl Data {
    const ALL: [(Data, &'static str); 3] = [(Data::Plain, "plain"), (Data::Whole, "whole"), (Data::Special, "special")];

    fn name(self) -> &'static str {
        Data::ALL.iter().find(|(d, _)| *d == self).map_or("plain", |(_, n)| n)
    }
}

/// Numbers for the symbols of a program.
pub type Sizes = Vec<(String, i64)>;

/// A program and how to run it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Where it comes from, for reports: a seed, or a place in the enumeration.
    pub origin: String,
    /// The program. It passes the verifier.
    pub program: Program,
    /// What its symbols are, one set after the other; one empty set if there are none.
    pub sizes: Vec<Sizes>,
    /// What its inputs are like.
    pub data: Data,
    /// The seed of its inputs.
    pub seed: u64,
    /// Arrays of at most so many elements live in registers.
    pub small: usize,
    /// Whether the optimizing tier is tried too.
    pub llvm: bool,
    /// Whose turn it is of the vectors of the embedded tier; a case that was written down goes through all of them.
    pub turn: Option<u64>,
}

impl Case {
    /// A case without symbols.
    pub fn new(origin: impl Into<String>, program: Program, seed: u64) -> Case {
        Case {
            origin: origin.into(),
            program,
            sizes: vec![Vec::new()],
            data: Data::Plain,
            seed,
            small: gradus_cpu::Options::default().small,
            llvm: false,
            turn: None,
        }
    }

    /// The same case with another program.
    pub fn with_program(&self, program: Program) -> Case {
        Case { program, ..self.clone() }
    }

    /// Whether every input has dimensions at these sizes: what is one less than a symbol may be less than none.
    pub fn fits(&self, sizes: &Sizes) -> bool {
        let number = |s: &str| sizes.iter().find(|(n, _)| n == s).map(|(_, v)| *v);
        let mut dims = self.program.inputs().iter().flat_map(|t| t.shape().iter());
        dims.all(|d| d.evaluate(&number).is_ok_and(|n| n >= 0))
    }

    /// Inputs for one set of sizes; another `round` gives other numbers.
    pub fn inputs(&self, sizes: &Sizes, round: u64) -> Vec<Array> {
        let mut source = Source::seed(self.seed.wrapping_mul(31).wrapping_add(round));
        let number = |s: &str| sizes.iter().find(|(n, _)| n == s).map(|(_, v)| Dim::from(*v));
        let known = |t: &Type| t.map_dims(|d| d.substitute(&number));
        self.program.inputs().iter().map(|t| input(&mut source, &known(t), self.data)).collect()
    }

    /// Reads what [`Display`](fmt::Display) wrote; text without a head is a program alone.
    pub fn parse(text: &str) -> Result<Case, String> {
        let head: Vec<&str> = text.lines().take_while(|l| l.starts_with('#') || l.trim().is_empty()).collect();
        let body: String = text.lines().skip(head.len()).map(|l| format!("{l}\n")).collect();
        let program: Program = body.parse().map_err(|e: gradus_core::Error| e.to_string())?;
        gradus_core::program::verify(&program).map_err(|e| e.to_string())?;
        let mut case = Case::new("file", program, 1);
        for line in head {
            let Some((key, value)) = line.trim_start_matches('#').trim().split_once(": ") else { continue };
            let bad = |what: &str| format!("`{line}` has no {what}");
            match key {
                "origin" => case.origin = value.to_string(),
                "seed" => case.seed = value.parse().map_err(|_| bad("number"))?,
                "small" => case.small = value.parse().map_err(|_| bad("number"))?,
                "llvm" => case.llvm = value == "true",
                "data" => case.data = Data::ALL.iter().find(|(_, n)| *n == value).ok_or_else(|| bad("kind"))?.0,
                "sizes" => {
                    let one = |pair: &str| {
                        let (name, number) = pair.split_once('=')?;
                        Some((name.to_string(), number.parse().ok()?))
                    };
                    let set = |text: &str| text.split_whitespace().map(one).collect::<Option<Sizes>>();
                    case.sizes =
                        value.split(';').map(set).collect::<Option<Vec<Sizes>>>().ok_or_else(|| bad("sizes"))?;
                }
                _ => {}
            }
        }
        Ok(case)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# origin: {}\n# seed: {}\n# data: {}", self.origin, self.seed, self.data.name())?;
        writeln!(f, "# small: {}\n# llvm: {}", self.small, self.llvm)?;
        if self.program.is_symbolic() {
            let one = |s: &Sizes| s.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(" ");
            writeln!(f, "# sizes: {}", self.sizes.iter().map(one).collect::<Vec<_>>().join("; "))?;
        }
        write!(f, "{}", self.program)
    }
}

/// An array of a type. Some are views of others.
fn input(source: &mut Source<'_>, ty: &Type, data: Data) -> Array {
    let plain = random_array(source, ty, data != Data::Special);
    if data != Data::Whole || !ty.dtype().is_inexact() {
        return plain;
    }
    // As a view of its mirror image, so that strides stay a part of it.
    let whole = if ty.dtype().is_complex() { &plain * 4.0 } else { (&plain * 3.0).round() };
    match ty.dtype().is_complex() {
        true => plain,
        false => whole.flip(()).to_dense().flip(()),
    }
}

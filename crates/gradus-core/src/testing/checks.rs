//! Checks of a primitive's rules, generated from its samples, for the primitives of this crate and for those that
//! users write: `check_samples(&MyPrimitive::samples())`. Nothing here panics; what is wrong comes back as text.
//!
//! `v` and `x_dot` are tangents, `w` and `x_bar` cotangents.

mod batches;
mod derivatives;
mod numbers;
mod plain;

use std::collections::BTreeSet;
use std::fmt::Write;

use self::numbers::{near, repeated, scrambled};
use crate::array::Array;
use crate::error::{Error, ErrorKind, Location, Result, error};
use crate::interpret::interpret;
use crate::primitives::{Halves, Infer, Op, Sample};
use crate::program::{Builder, Program, verify};
use crate::scalar::{Form, Half};
use crate::trace::trace_closed;
use crate::types::{DType, Element, Type, bf16, dispatch, f16};

/// One of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Check {
    /// The type rule says what evaluation gives, however the operands lie in memory.
    Types,
    /// A program of the one operation prints, reads back, verifies, and interprets to the same bits.
    Text,
    /// Forward derivatives agree with differences of values, to second order, and to third for small operands.
    Forward,
    /// The same to second order, forward and reverse, at zero, halves and small whole numbers, wherever the values are smooth there.
    PlainPoints,
    /// Reverse derivatives are the transpose of forward ones, of first and second order in every mixture.
    Reverse,
    /// A batch gives what a loop gives, whichever operands are batched, nested, and together with derivatives.
    Batching,
    /// The same with a batch of unknown size.
    SymbolicBatch,
    /// Values and derivatives with every dimension of the operands unknown.
    SymbolicSizes,
}

impl Check {
    /// All of them.
    pub const ALL: &'static [Check] = &[
        Check::Types,
        Check::Text,
        Check::Forward,
        Check::PlainPoints,
        Check::Reverse,
        Check::Batching,
        Check::SymbolicBatch,
        Check::SymbolicSizes,
    ];
}

/// What checks found.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How many comparisons were made.
    pub comparisons: usize,
    /// Rules that a check asked for and that do not exist: the primitive of the sample, and what it lacks.
    pub missing: BTreeSet<(String, String)>,
    /// What is wrong, one text for each sample and check.
    pub failures: Vec<String>,
}

impl Tally {
    /// Takes over what another found.
    pub fn absorb(&mut self, other: Tally) {
        self.comparisons += other.comparisons;
        self.missing.extend(other.missing);
        self.failures.extend(other.failures);
    }

    /// The tally if nothing is wrong, and otherwise all that is.
    pub fn ok(self) -> std::result::Result<Tally, String> {
        if self.failures.is_empty() {
            return Ok(self);
        }
        let mut text = format!("{} checks failed", self.failures.len());
        for failure in &self.failures {
            let _ = write!(text, "\n\n{failure}");
        }
        Err(text)
    }
}

/// Runs every check on every sample. A missing rule is no failure: the tally lists it.
pub fn check_samples(samples: &[Sample]) -> std::result::Result<Tally, String> {
    let mut tally = Tally::default();
    for check in Check::ALL {
        tally.absorb(run_check(*check, samples));
    }
    tally.ok()
}

/// Runs one check on every sample.
pub fn run_check(check: Check, samples: &[Sample]) -> Tally {
    let mut tally = Tally::default();
    for sample in samples {
        let mut steps = Steps { sample, tally: &mut tally, check };
        match Case::of(sample).and_then(|case| case.agrees().map(|_| case)) {
            Ok(case) => steps.run(&case),
            Err(e) => steps.failed("the sample is refused", e.into()),
        }
    }
    tally
}

/// Why a comparison did not succeed.
enum Trouble {
    /// Two things differ that should not.
    Wrong(String),
    /// Something could not be computed at all.
    Error(Error),
}

impl From<Error> for Trouble {
    fn from(e: Error) -> Trouble {
        Trouble::Error(e)
    }
}

impl From<String> for Trouble {
    fn from(text: String) -> Trouble {
        Trouble::Wrong(text)
    }
}

/// How many comparisons were made, or why they failed.
type Outcome = std::result::Result<usize, Trouble>;

/// The checks of one sample.
struct Steps<'a> {
    sample: &'a Sample,
    tally: &'a mut Tally,
    check: Check,
}

/// A program at a point.
struct Case {
    program: Program,
    inputs: Vec<Array>,
}

impl Case {
    fn of(sample: &Sample) -> Result<Case> {
        Case::single(&sample.op, &sample.inputs)
    }

    /// The program of one operation, at its operands.
    fn single(op: &Op, inputs: &[Array]) -> Result<Case> {
        let mut builder = Builder::new("sample");
        let mut atoms = Vec::new();
        for input in inputs {
            atoms.push(builder.input(input.ty()?.clone())?.into());
        }
        let outputs = builder.equation(op.clone(), &atoms, Location::unknown())?.results().map(Into::into).collect();
        Ok(Case { program: builder.finish(outputs), inputs: inputs.to_vec() })
    }

    fn run(&self) -> Result<Vec<Array>> {
        interpret(&self.program, &self.inputs)
    }

    /// Refuses a sample whose evaluation gives other types than the type rule says: operations that take its results
    /// rely on the rule, and nothing else about it is worth checking.
    fn agrees(&self) -> Result<()> {
        let gave = self.run()?.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<Type>>>()?;
        let said = self.program.output_types();
        if gave != said {
            return Err(Error::new(ErrorKind::Rule, format!("the type rule says {said:?}, evaluation gives {gave:?}")));
        }
        Ok(())
    }
}

impl Steps<'_> {
    fn run(&mut self, case: &Case) {
        match self.check {
            Check::Types => self.types(),
            Check::Text => self.step("text", || text(self.sample, case)),
            Check::Forward => self.forward(case),
            Check::PlainPoints => self.plain_points(case),
            Check::Reverse => self.reverse(case),
            Check::Batching => self.batching(case),
            Check::SymbolicBatch => self.symbolic_batch(case),
            Check::SymbolicSizes => self.symbolic_sizes(case),
        }
    }

    fn step(&mut self, what: &str, f: impl FnOnce() -> Outcome) {
        match f() {
            Ok(count) => self.tally.comparisons += count,
            Err(trouble) => self.failed(what, trouble),
        }
    }

    /// The value of a preparation, if it succeeds.
    fn prepare<T>(&mut self, what: &str, f: impl FnOnce() -> Result<T>) -> Option<T> {
        f().map_err(|e| self.failed(what, e.into())).ok()
    }

    fn failed(&mut self, what: &str, trouble: Trouble) {
        let name = self.sample.op.name();
        let trouble = match trouble {
            Trouble::Error(e) if e.kind() == ErrorKind::MissingRule => {
                self.tally.missing.insert((name.to_string(), e.message().to_string()));
                return;
            }
            Trouble::Error(e) => e.to_string(),
            Trouble::Wrong(text) => text,
        };
        let mut text = format!("{:?} of `{name}`, {what}: {trouble}\n  of {name}", self.check);
        for (name, param) in self.sample.op.params() {
            let _ = write!(text, " {name}={param}");
        }
        for input in &self.sample.inputs {
            let _ = write!(text, "\n  on {input:?}");
        }
        self.tally.failures.push(text);
    }
}

impl Steps<'_> {
    fn types(&mut self) {
        let Sample { op, inputs, .. } = self.sample;
        let Some(outputs) = self.prepare("evaluation", || op.evaluate(inputs)) else { return };
        self.step("type rule", || {
            let types = inputs.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<Type>>>()?;
            let mut constraints = Vec::new();
            let said = op.infer(&mut Infer { inputs: &types, constraints: &mut constraints })?;
            let gave = outputs.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<Type>>>()?;
            if said[..] != gave[..] || !constraints.is_empty() {
                return Err(format!("the rule says {said:?} {constraints:?}, evaluation gives {gave:?}").into());
            }
            Ok(gave.len())
        });
        self.step("scalar form", || form(op, inputs, &outputs));
        self.step("half floats in 32 bits", || wide(op, inputs, &outputs));
        self.step("what it is made of", || parts(op, inputs, &outputs));
        self.step("operands with strides", || {
            let moved = inputs.iter().map(scrambled).collect::<Result<Vec<_>>>()?;
            // Another layout may be summed in another order.
            all_near(&op.evaluate(&moved)?, &outputs, if op.is_elementwise() { 0.0 } else { 8.0 })
        });
        for i in 0..inputs.len() {
            self.step("an operand of equal elements", || {
                let Some((splat, dense)) = repeated(&inputs[i])? else { return Ok(0) };
                let with =
                    |x: Array| inputs.iter().enumerate().map(|(j, a)| if i == j { &x } else { a }.clone()).collect();
                let (splat, dense): (Vec<_>, Vec<_>) = (with(splat), with(dense));
                let units = if op.is_elementwise() { 0.0 } else { 8.0 };
                all_near(&op.evaluate(&splat)?, &op.evaluate(&dense)?, units)
            });
        }
    }
}

/// The scalar form of an operation gives the bits of its evaluation, element by element; nothing to compare where it has none.
fn form(op: &Op, inputs: &[Array], outputs: &[Array]) -> Outcome {
    let [output] = outputs else { return Ok(0) };
    let from: Vec<DType> = inputs.iter().map(Array::dtype).collect();
    let to = output.dtype();
    let form = Form::of(op, &from, to).map_err(|e| Trouble::Wrong(e.to_string()))?;
    let Some(form) = form else { return Ok(0) };
    if inputs.iter().any(|a| a.shape() != output.shape()) {
        return Err("it has a scalar form, but operands of another shape than its result".to_string().into());
    }
    let bits = |a: &Array| -> Result<Vec<u64>> {
        let c = a.concrete().ok_or_else(|| error!(NotConcrete, "no numbers"))?;
        let mask = u64::MAX >> (64 - 8 * c.ty().dtype().size());
        Ok(dispatch!(c.ty().dtype(), T => c.values::<T>().iter().map(|v| v.bits() as u64 & mask).collect()))
    };
    let is_nan = |bits: u64| match to {
        DType::F16 => f16::from_bits(bits as u16).is_nan(),
        DType::BF16 => bf16::from_bits(bits as u16).is_nan(),
        DType::F32 => f32::from_bits(bits as u32).is_nan(),
        DType::F64 => f64::from_bits(bits).is_nan(),
        _ => false,
    };
    let operands = inputs.iter().map(bits).collect::<Result<Vec<_>>>()?;
    let wanted = bits(output)?;
    for (i, want) in wanted.iter().enumerate() {
        let of: Vec<u64> = operands.iter().map(|o| o[i]).collect();
        let have = form.evaluate(&of);
        if have != *want && !(is_nan(have) && is_nan(*want)) {
            return Err(format!("element {i} has bits {have:#x} by the scalar form and {want:#x} evaluated").into());
        }
    }
    Ok(wanted.len())
}

/// An operation that says so of itself does with half floats what it does with the same numbers in 32 bits, rounded once.
fn wide(op: &Op, inputs: &[Array], outputs: &[Array]) -> Outcome {
    let is_half = |a: &Array| Half::of(a.dtype()).is_some();
    if op.halves() != Halves::Widened || !inputs.iter().any(is_half) {
        return Ok(0);
    }
    let widened: Vec<Array> = inputs.iter().map(|a| if is_half(a) { a.cast(DType::F32) } else { a.clone() }).collect();
    let made = op.evaluate(&widened)?;
    let rounded: Vec<Array> = made.iter().zip(outputs).map(|(have, want)| have.cast(want.dtype())).collect();
    all_near(&rounded, outputs, 0.0)
}

/// What an operation is made of gives what it gives.
fn parts(op: &Op, inputs: &[Array], outputs: &[Array]) -> Outcome {
    let types = inputs.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<_>>>()?;
    let Some(expand) = op.expand(&types) else { return Ok(0) };
    let specs: Vec<Array> = types.iter().cloned().map(Array::of_type).collect();
    let program = trace_closed(op.name(), &specs, |xs| Ok(expand(xs)?.to_vec()))?;
    all_near(&interpret(&program, inputs)?, outputs, if op.is_elementwise() { 0.0 } else { 8.0 })
}

fn all_near(have: &[Array], want: &[Array], units: f64) -> Outcome {
    if have.len() != want.len() {
        return Err(format!("{} results where {} are expected", have.len(), want.len()).into());
    }
    for (i, (h, w)) in have.iter().zip(want).enumerate() {
        near(h, w, units).map_err(|e| format!("result {i}: {e}"))?;
    }
    Ok(have.len())
}

/// The program read back from its text, which must be the same. None if it has an operation that the parser does not
/// know: a primitive of a user is known once it is registered.
fn read_back(program: &Program) -> std::result::Result<Option<Program>, Trouble> {
    let text = program.to_string();
    let read: Program = match text.parse::<Program>() {
        Err(e) if e.message().starts_with("there is no operation") => return Ok(None),
        read => read?,
    };
    verify(&read)?;
    if read != *program {
        return Err(format!("the text reads back as another program:\n{text}{read}").into());
    }
    if read.to_string() != text || read.fingerprint() != program.fingerprint() {
        return Err(format!("the text changes when it is read:\n{text}{read}").into());
    }
    Ok(Some(read))
}

fn text(sample: &Sample, case: &Case) -> Outcome {
    let Some(read) = read_back(&case.program)? else {
        return Err(Error::new(ErrorKind::MissingRule, "not registered").into());
    };
    let (have, want) = (interpret(&read, &sample.inputs)?, sample.op.evaluate(&sample.inputs)?);
    for (h, w) in have.iter().zip(&want) {
        // Payloads of NaN count here: it is the same loop on the same bits.
        if !h.is_identical(w) {
            return Err(format!("interpreted {h:?}, evaluated {w:?}").into());
        }
    }
    Ok(2 + have.len())
}

//! Checks of a primitive's rules, generated from its samples, for the primitives of this crate and for those that
//! users write: `check_samples(&MyPrimitive::samples())`. Nothing here panics; what is wrong comes back as text.
//!
//! `v` and `x_dot` are tangents, `w` and `x_bar` cotangents.

mod numbers;

use std::collections::BTreeSet;
use std::fmt::Write;

use self::numbers::{
    Random, example, near, of_reals, pairing, precision, repeated, scrambled, stack, to_reals, vary, width,
};
use crate::array::Array;
use crate::error::{Error, ErrorKind, Place, Result};
use crate::interpret::interpret;
use crate::primitives::{Infer, Op, Sample};
use crate::program::{Builder, Program, verify};
use crate::trace::{inline, trace_closed};
use crate::transform::{jvp, linearize, vjp, vmap};
use crate::types::{Dim, Type};

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

impl Steps<'_> {
    fn run(&mut self, case: &Case) {
        match self.check {
            Check::Types => self.types(),
            Check::Text => self.step("text", || text(self.sample, case)),
            Check::Forward => self.forward(case),
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

// Types and text.

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
        self.step("operands with strides", || {
            let moved = inputs.iter().map(scrambled).collect::<Result<Vec<_>>>()?;
            // Another layout may be summed in another order.
            all_near(&op.evaluate(&moved)?, &outputs, if op_is_elementwise(op) { 0.0 } else { 8.0 })
        });
        for i in 0..inputs.len() {
            self.step("an operand of equal elements", || {
                let Some((splat, dense)) = repeated(&inputs[i])? else { return Ok(0) };
                let with =
                    |x: Array| inputs.iter().enumerate().map(|(j, a)| if i == j { &x } else { a }.clone()).collect();
                let (splat, dense): (Vec<_>, Vec<_>) = (with(splat), with(dense));
                let units = if op_is_elementwise(op) { 0.0 } else { 8.0 };
                all_near(&op.evaluate(&splat)?, &op.evaluate(&dense)?, units)
            });
        }
    }
}

fn op_is_elementwise(op: &Op) -> bool {
    crate::primitives::elementwise::is_elementwise(op)
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

// Derivatives.

/// Differences are taken of steps this long. With both a whole and a half step (Richardson) the error is of the
/// fourth power, about 1e-15, while rounding costs 1e-16/1e-4.
const STEP: f64 = 1.0 / 4096.0;

/// Small operands: third derivatives of them cost little.
const SMALL: usize = 8;

impl Case {
    fn of(sample: &Sample) -> Result<Case> {
        let mut builder = Builder::new("sample");
        let mut atoms = Vec::new();
        for input in &sample.inputs {
            atoms.push(builder.input(input.ty()?.clone())?.into());
        }
        let outputs =
            builder.equation(sample.op.clone(), &atoms, Place::unknown())?.results().map(Into::into).collect();
        Ok(Case { program: builder.finish(outputs), inputs: sample.inputs.clone() })
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

    /// A program made of this one, with the sizes that the point has.
    fn with_sizes(&self, part: &Program) -> Result<Program> {
        if !part.is_symbolic() {
            return Ok(part.clone());
        }
        let types = self.inputs.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<_>>>()?;
        let sizes = self.program.solve_symbols(&types)?;
        let part = part.map_dims(&|d| d.substitute(&|s| sizes.get(s).map(|n| Dim::from(*n))));
        verify(&part)?;
        Ok(part)
    }

    /// Which inputs have derivatives.
    fn inexact(&self) -> Vec<bool> {
        self.inputs.iter().map(|a| a.dtype().is_inexact()).collect()
    }

    /// All inputs that have derivatives, and if there are several each of them alone.
    fn active_sets(&self) -> Vec<Vec<bool>> {
        let all = self.inexact();
        let count = all.iter().filter(|on| **on).count();
        let alone = (0..all.len()).filter(|i| all[*i] && count > 1).take(7);
        let alone: Vec<Vec<bool>> = alone.map(|i| (0..all.len()).map(|j| i == j).collect()).collect();
        if count == 0 { Vec::new() } else { std::iter::once(all).chain(alone).collect() }
    }

    /// Directions as large as the inputs where those are small, so that a step stays on the same side of a pole.
    fn directions(&self, active: &[bool], random: &mut Random) -> Result<Vec<Array>> {
        let mut all = Vec::new();
        for (x, _) in self.inputs.iter().zip(active).filter(|(_, on)| **on) {
            let (w, reals) = (width(x.dtype()), to_reals(x)?);
            let mut v = Vec::with_capacity(reals.len());
            for element in reals.chunks(w) {
                let size = element.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
                let size = if size == 0.0 || !size.is_finite() { 1.0 } else { size.min(1.0) };
                v.extend(element.iter().map(|_| random.number() * size));
            }
            all.push(of_reals(x.ty()?, &v));
        }
        Ok(all)
    }

    /// The derivative by the active inputs as a program at a point: inputs and tangents to outputs and tangents.
    fn forward(&self, active: &[bool]) -> Result<(Case, Vec<bool>)> {
        let (program, varies) = jvp(&self.program, active)?;
        verify(&program)?;
        let mut inputs = self.inputs.clone();
        inputs.extend(self.directions(active, &mut Random::new(inputs.len() as u64))?);
        Ok((Case { program, inputs }, varies))
    }

    /// The pullback by the active inputs as a program at a point: inputs and cotangents of the outputs that vary to
    /// cotangents of the active inputs. None if no output varies.
    fn backward(&self, active: &[bool]) -> Result<Option<Case>> {
        let reverse = vjp(&self.program, active)?;
        let outputs = self.run()?;
        let mut random = Random::new(77);
        let mut inputs = self.inputs.clone();
        for (y, _) in outputs.iter().zip(&reverse.varies).filter(|(_, on)| **on) {
            inputs.push(random.like(y.ty()?));
        }
        if inputs.len() == self.inputs.len() {
            return Ok(None);
        }
        // Specs of the program's own types, which may be symbolic, and of the outputs'.
        let types = self.program.inputs().iter().cloned();
        let bars = self.program.output_types().into_iter().zip(&reverse.varies).filter(|(_, on)| **on).map(|(t, _)| t);
        let specs: Vec<Array> = types.chain(bars).map(Array::of_type).collect();
        let program = trace_closed("pullback", &specs, |xs| {
            let (xs, bars) = xs.split_at(self.inputs.len().min(xs.len()));
            let mut made = inline(&reverse.primal, xs)?;
            let mut residuals = made.split_off(outputs.len().min(made.len()));
            residuals.extend_from_slice(bars);
            inline(&reverse.linear, &residuals)
        })?;
        verify(&program)?;
        Ok(Some(Case { program, inputs }))
    }

    /// Whether differences say something here: numbers of 64 bits.
    fn is_precise(&self) -> bool {
        let wide = |t: &Type| !t.dtype().is_inexact() || precision(t.dtype()) < 1e-12;
        self.program.inputs().iter().all(wide) && self.program.output_types().iter().all(wide)
    }

    fn elements(&self) -> usize {
        self.inputs.iter().filter_map(|a| a.shape().count()).sum()
    }
}

/// The derivative by the active inputs against differences of values.
fn differences(case: &Case, active: &[bool]) -> Outcome {
    let (forward, varies) = case.forward(active)?;
    let mut made = forward.run()?;
    let mut tangents = made.split_off(varies.len().min(made.len())).into_iter();
    let directions = &forward.inputs[case.inputs.len()..];
    let moved = |by: f64| -> Result<Vec<Array>> {
        let mut directions = directions.iter();
        let mut inputs = Vec::new();
        for (x, on) in case.inputs.iter().zip(active) {
            inputs.push(match directions.next_if_some(*on) {
                Some(v) => {
                    let reals: Vec<f64> = to_reals(x)?.iter().zip(to_reals(v)?).map(|(x, v)| x + by * v).collect();
                    of_reals(x.ty()?, &reals)
                }
                None => x.clone(),
            });
        }
        interpret(&case.program, &inputs)
    };
    let at = [moved(STEP)?, moved(-STEP)?, moved(STEP / 2.0)?, moved(-STEP / 2.0)?];
    let mut count = 0;
    for (k, y) in made.iter().enumerate() {
        let y_dot = if varies[k] { tangents.next() } else { None };
        if !y.dtype().is_inexact() {
            continue;
        }
        let values = to_reals(y)?;
        let y_dot = y_dot.map_or_else(|| Ok(vec![0.0; values.len()]), |t| to_reals(&t))?;
        let [a, b, c, d] = [to_reals(&at[0][k])?, to_reals(&at[1][k])?, to_reals(&at[2][k])?, to_reals(&at[3][k])?];
        let largest = values.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        for i in 0..values.len() {
            let (whole, half) = ((a[i] - b[i]) / (2.0 * STEP), (c[i] - d[i]) / STEP);
            // Infinities that stay where they are have no differences.
            let still = [a[i], b[i], c[i], d[i]].iter().all(|v| *v == values[i]);
            let want = if still { 0.0 } else { (4.0 * half - whole) / 3.0 };
            // Rounding of the values, enlarged by the division; sums around an element round as the largest does.
            let allowed = 1e-8 * want.abs() + 1e-10 * values[i].abs() + 1e-11 * largest + 1e-13;
            if (y_dot[i] - want).abs() <= allowed {
                continue;
            }
            return Err(format!(
                "by inputs {active:?}, result {k}, element {}: derivative {:?} where differences give {want:?}\n{}",
                i / width(y.dtype()),
                y_dot[i],
                forward.program
            )
            .into());
        }
        count += 1;
    }
    Ok(count)
}

/// The next item if it is wanted.
trait NextIf: Iterator {
    fn next_if_some(&mut self, on: bool) -> Option<Self::Item> {
        if on { self.next() } else { None }
    }
}

impl<I: Iterator> NextIf for I {}

/// `⟨Jv, w⟩ = ⟨v, Jᵀw⟩`, the linear part against the derivative program, and the primal against the program itself.
fn transposition(case: &Case, active: &[bool]) -> Outcome {
    let (forward, varies) = case.forward(active)?;
    let mut made = forward.run()?;
    let tangents = made.split_off(varies.len().min(made.len()));
    let directions = &forward.inputs[case.inputs.len()..];
    let linear = linearize(&case.program, active)?;
    let reverse = vjp(&case.program, active)?;
    for p in [&linear.primal, &linear.linear, &reverse.primal, &reverse.linear] {
        verify(p)?;
    }
    // A linear program alone may lack the inputs that would tell it a size; the point is known here.
    let [forward_map, backward_map] = [case.with_sizes(&linear.linear)?, case.with_sizes(&reverse.linear)?];
    let mut primal = interpret(&reverse.primal, &case.inputs)?;
    let residuals = primal.split_off(made.len().min(primal.len()));
    let mut count = all_near(&primal, &made, 0.0)?;
    let apply = |p: &Program, more: &[Array]| interpret(p, &[&residuals, more].concat());

    // A tangent that is constant is zero and has no part in the linear program.
    let mut kept = Vec::new();
    for (k, y_dot) in varies.iter().enumerate().filter(|(_, on)| **on).map(|(k, _)| k).zip(&tangents) {
        if reverse.varies[k] {
            kept.push(y_dot.clone());
        } else if to_reals(y_dot)?.iter().any(|t| *t != 0.0) {
            return Err(format!("the tangent of result {k} is called constant and is {y_dot:?}").into());
        }
    }
    let units = 256.0;
    count += all_near(&apply(&forward_map, directions)?, &kept, units)?;

    let mut random = Random::new(5);
    let bars = kept.iter().map(|t| Ok(random.like(t.ty()?))).collect::<Result<Vec<_>>>()?;
    let pulled = apply(&backward_map, &bars)?;
    for (v, x_bar) in directions.iter().zip(&pulled) {
        if v.ty()? != x_bar.ty()? {
            return Err(format!("a cotangent {} of an input {}", x_bar.ty()?, v.ty()?).into());
        }
    }
    let (mut left, mut right, mut size, mut coarse) = (0.0, 0.0, 0.0, 0.0_f64);
    for (pairs, total) in [(kept.iter().zip(&bars), &mut left), (directions.iter().zip(&pulled), &mut right)] {
        for (a, b) in pairs {
            let (sum, around) = pairing(a, b)?;
            *total += sum;
            size += around;
            coarse = coarse.max(precision(a.dtype()));
        }
    }
    // At a pole there is nothing to compare.
    if left.is_finite() && right.is_finite() && (left - right).abs() > units * coarse * size {
        let pulled: Vec<String> = pulled.iter().map(|a| format!("{a:?}")).collect();
        return Err(format!(
            "by inputs {active:?}: ⟨Jv,w⟩ = {left:?}, ⟨v,Jᵀw⟩ = {right:?}\n  Jᵀw = {}\n{}",
            pulled.join(", "),
            reverse.linear
        )
        .into());
    }
    Ok(count + 1)
}

impl Steps<'_> {
    fn forward(&mut self, case: &Case) {
        let precise = self.sample.smooth && case.is_precise();
        let compare = |case: &Case, active: &[bool]| {
            if precise {
                differences(case, active)
            } else {
                case.forward(active)?.0.run().map(|_| 0).map_err(Trouble::from)
            }
        };
        for active in case.active_sets() {
            self.step("first derivative", || compare(case, &active));
        }
        let mut order = case.forward(&case.inexact()).ok();
        for what in ["second derivative", "third derivative"] {
            let Some((case, varies)) = &order else { return };
            // Linear operations on many elements have no third derivative worth its time.
            if !varies.contains(&true) || (what == "third derivative" && case.elements() > 4 * SMALL) {
                return;
            }
            self.step(what, || compare(case, &case.inexact()));
            order = case.forward(&case.inexact()).ok();
        }
    }

    fn reverse(&mut self, case: &Case) {
        let smooth = self.sample.smooth && case.is_precise();
        for active in case.active_sets() {
            self.step("reverse of first order", || transposition(case, &active));
        }
        let all = case.inexact();
        if !all.contains(&true) {
            return;
        }
        if let Ok((forward, varies)) = case.forward(&all)
            && varies.contains(&true)
        {
            self.step("reverse over forward", || transposition(&forward, &forward.inexact()));
        }
        if let Some(Some(backward)) = self.prepare("the pullback as a program", || case.backward(&all)) {
            if smooth {
                self.step("forward over reverse", || differences(&backward, &backward.inexact()));
            }
            self.step("reverse over reverse", || transposition(&backward, &backward.inexact()));
        }
    }
}

// Batches.

/// Sets of batched inputs: every one if there are few, otherwise all and each alone.
fn batched_sets(count: usize) -> Vec<Vec<bool>> {
    match count {
        0 => Vec::new(),
        1..=3 => (1..1usize << count).map(|set| (0..count).map(|i| set >> i & 1 == 1).collect()).collect(),
        _ => {
            let alone = (0..count.min(7)).map(|i| (0..count).map(|j| i == j).collect());
            std::iter::once(vec![true; count]).chain(alone).collect()
        }
    }
}

impl Case {
    /// The inputs of `size` examples, the first of which is this one.
    fn examples(&self, batched: &[bool], size: usize) -> Result<Vec<Vec<Array>>> {
        let each = |k| self.inputs.iter().zip(batched).map(move |(a, on)| if *on { vary(a, k) } else { Ok(a.clone()) });
        (0..size).map(|k| each(k).collect()).collect()
    }

    /// The batched program at the examples.
    fn batched(&self, batched: &[bool], size: usize, dim: &Dim) -> Result<Case> {
        let program = vmap(&self.program, batched, dim)?;
        verify(&program)?;
        let examples = self.examples(batched, size)?;
        let mut inputs = Vec::new();
        for (i, (x, on)) in self.inputs.iter().zip(batched).enumerate() {
            let column: Vec<Array> = examples.iter().filter_map(|e| e.get(i).cloned()).collect();
            inputs.push(if *on { stack(&column, x.ty()?)? } else { x.clone() });
        }
        Ok(Case { program, inputs })
    }
}

/// A batch against a loop.
fn batch_and_loop(case: &Case, batched: &[bool], size: usize, units: f64) -> Outcome {
    let together = case.batched(batched, size, &Dim::from(size))?.run()?;
    let types: Vec<Type> = case.run()?.iter().map(|a| a.ty().cloned()).collect::<Result<_>>()?;
    for (y, ty) in together.iter().zip(&types) {
        let want = ty.with_shape(ty.shape().inserted(0, Dim::from(size)));
        if *y.ty()? != want {
            return Err(format!("a batch of {size}, inputs {batched:?}: {} where {want} is expected", y.ty()?).into());
        }
    }
    for (k, inputs) in case.examples(batched, size)?.iter().enumerate() {
        let alone = interpret(&case.program, inputs)?;
        for (i, ((y, ty), want)) in together.iter().zip(&types).zip(&alone).enumerate() {
            near(&example(y, k, ty)?, want, units).map_err(|e| {
                let program = vmap(&case.program, batched, &Dim::from(size)).map_or(String::new(), |p| p.to_string());
                format!("example {k} of {size}, inputs {batched:?}, result {i}: {e}\n{program}")
            })?;
        }
    }
    Ok(types.len() * size.max(1))
}

impl Steps<'_> {
    fn batching(&mut self, case: &Case) {
        let units = if op_is_elementwise(&self.sample.op) { 0.0 } else { 64.0 };
        let all = vec![true; case.inputs.len()];
        for batched in batched_sets(case.inputs.len()) {
            self.step("a batch", || batch_and_loop(case, &batched, 3, units));
        }
        if all.is_empty() {
            return;
        }
        for size in [0, 1] {
            self.step("a batch", || batch_and_loop(case, &all, size, units));
        }
        let first: Vec<bool> = (0..all.len()).map(|i| i == 0).collect();
        let Some(outer) = self.prepare("a batch", || case.batched(&all, 2, &Dim::from(2usize))) else { return };
        for batched in [&all, &first] {
            self.step("a batch of batches", || batch_and_loop(&outer, batched, 3, units));
        }
        let inexact = case.inexact();
        if !inexact.contains(&true) {
            return;
        }
        self.step("reverse over a batch", || transposition(&outer, &outer.inexact()));
        if let Ok((forward, _)) = case.forward(&inexact) {
            let flags = vec![true; forward.inputs.len()];
            self.step("a batch of forward derivatives", || batch_and_loop(&forward, &flags, 2, 256.0));
        }
        if let Ok(Some(backward)) = case.backward(&inexact) {
            let only_bars: Vec<bool> = (0..backward.inputs.len()).map(|i| i >= case.inputs.len()).collect();
            for flags in [vec![true; backward.inputs.len()], only_bars] {
                self.step("a batch of reverse derivatives", || batch_and_loop(&backward, &flags, 2, 256.0));
            }
        }
    }

    fn symbolic_batch(&mut self, case: &Case) {
        for batched in batched_sets(case.inputs.len()) {
            self.step("a batch of unknown size", || {
                let b = Dim::symbol("B").map_err(|e| e.to_string())?;
                let mut count = 0;
                for size in [1, 3] {
                    let unknown = case.batched(&batched, size, &b)?;
                    let known = case.batched(&batched, size, &Dim::from(size))?;
                    read_back(&unknown.program)?;
                    let want = known.run()?;
                    count += all_near(&unknown.run()?, &want, 0.0)?;
                    let types = unknown.inputs.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<_>>>()?;
                    let bound = unknown.program.bind_symbols(&types)?;
                    verify(&bound)?;
                    if bound.is_symbolic() {
                        return Err(format!("symbols are left:\n{bound}").into());
                    }
                    count += all_near(&interpret(&bound, &unknown.inputs)?, &want, 0.0)?;
                }
                Ok(count)
            });
        }
        let inexact = case.inexact();
        if !inexact.contains(&true) {
            return;
        }
        let unknown = || -> Result<Case> {
            let b = Dim::symbol("B").map_err(|e| Error::new(ErrorKind::Size, e.to_string()))?;
            case.batched(&vec![true; case.inputs.len()], 3, &b)
        };
        let Some(unknown) = self.prepare("a batch of unknown size", unknown) else { return };
        self.step("reverse over a batch of unknown size", || transposition(&unknown, &inexact));
        if let Ok(Some(backward)) = case.backward(&inexact) {
            self.step("a batch of unknown size of reverse derivatives", || {
                let b = Dim::symbol("B").map_err(|e| e.to_string())?;
                let flags = vec![true; backward.inputs.len()];
                let want = backward.batched(&flags, 3, &Dim::from(3usize))?.run()?;
                all_near(&backward.batched(&flags, 3, &b)?.run()?, &want, 0.0)
            });
        }
    }

    fn symbolic_sizes(&mut self, known: &Case) {
        let symbolic = match Case::with_symbols(self.sample) {
            Ok(Some(case)) => case,
            Ok(None) => return,
            // That an operation wants to know its sizes is an answer; the list of those that do is in the tally.
            Err(e) => {
                return self.failed(
                    "",
                    Error::new(ErrorKind::MissingRule, format!("no symbolic sizes: {}", e.message())).into(),
                );
            }
        };
        self.step("values of unknown sizes", || {
            verify(&symbolic.program)?;
            read_back(&symbolic.program)?;
            all_near(&symbolic.run()?, &known.run()?, 0.0)
        });
        let all = known.inexact();
        if !all.contains(&true) {
            return;
        }
        let precise = self.sample.smooth && known.is_precise();
        for active in known.active_sets() {
            if precise {
                self.step("derivatives with unknown sizes", || differences(&symbolic, &active));
            }
            self.step("reverse with unknown sizes", || transposition(&symbolic, &active));
        }
        if let Some(Some(backward)) = self.prepare("the pullback with unknown sizes", || symbolic.backward(&all)) {
            if precise {
                self.step("forward over reverse with unknown sizes", || differences(&backward, &backward.inexact()));
            }
            self.step("reverse over reverse with unknown sizes", || transposition(&backward, &backward.inexact()));
        }
        self.step("a batch with unknown sizes", || batch_and_loop(&symbolic, &vec![true; all.len()], 2, 64.0));
    }
}

impl Case {
    /// The program with a symbol for each size of the operands but 1, which broadcasts: equal sizes have one symbol.
    /// None if there are no such sizes.
    fn with_symbols(sample: &Sample) -> Result<Option<Case>> {
        let mut builder = Builder::new("sample");
        let mut atoms = Vec::new();
        let name = |d: &Dim| match d.as_usize() {
            Some(n) if n != 1 => Dim::symbol(&format!("N{n}")).unwrap_or_else(|_| d.clone()),
            _ => d.clone(),
        };
        for input in &sample.inputs {
            let ty = input.ty()?;
            atoms.push(builder.input(ty.with_shape(ty.shape().map(name)))?.into());
        }
        if !builder.program().is_symbolic() {
            return Ok(None);
        }
        let outputs =
            builder.equation(sample.op.clone(), &atoms, Place::unknown())?.results().map(Into::into).collect();
        Ok(Some(Case { program: builder.finish(outputs), inputs: sample.inputs.clone() }))
    }
}

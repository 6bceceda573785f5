//! Loops whose length is part of the program: `scan`, `map`, `fori_loop`, `while_loop`, `associative_scan`.

use std::sync::atomic::{AtomicBool, Ordering};

use gradus_core::array::{OperandValue, dim_as};
use gradus_core::control::{self, History, Steps};
use gradus_core::primitives::Op;
use gradus_core::primitives::effects::{Callback, Host, Kind};
use gradus_core::trace::{self, Traced};
use gradus_core::transform::vmap_on;
use gradus_core::warnings::{Warning, WarningKind};
use gradus_core::{Array, DType, Decision, Dim, Error, ErrorKind, Index, Location, Operand, Result, Scalar, Type};

use super::{failed, same_types, trace_body, types_of};
use crate::random::spend_all;
use crate::stage::{fill, poison};
use crate::tree::Tree;

/// How a scan runs and what it keeps for reverse mode. Its last method runs it.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let sum = |c: &Array, x: &Array| (c + x, c + x);
/// let (_, sums) = ScanOptions::new().reverse().unroll(2).scan(sum, Array::from(0.0_f64), &Array::from([1.0_f64, 2.0, 3.0]));
/// assert_eq!(sums.to_vec::<f64>()?, [6.0, 5.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `scan` is called on them"]
pub struct ScanOptions {
    reverse: bool,
    unroll: usize,
    steps: Steps,
    length: Option<Dim>,
}

impl ScanOptions {
    /// What [`scan`] does: forward, one step at a time, with what every step needs in memory.
    pub fn new() -> ScanOptions {
        ScanOptions::default()
    }

    /// From the last element to the first.
    pub fn reverse(self) -> ScanOptions {
        ScanOptions { reverse: true, ..self }
    }

    /// How many steps stand in a row in one step of the loop; 0 and 1 mean one, as does a symbolic number of steps.
    pub fn unroll(self, steps: usize) -> ScanOptions {
        ScanOptions { unroll: steps, ..self }
    }

    /// What reverse mode keeps.
    pub fn steps(self, steps: Steps) -> ScanOptions {
        ScanOptions { steps, ..self }
    }

    /// The number of steps; needed only if there is no sequence to tell.
    pub fn length(self, steps: impl Into<Dim>) -> ScanOptions {
        ScanOptions { length: Some(steps.into()), ..self }
    }

    /// Runs a [scan](scan()) in this way.
    #[track_caller]
    pub fn scan<C: Tree, X: Tree, Y: Tree>(&self, f: impl Fn(&C, &X) -> (C, Y), init: C, xs: &X) -> (C, Y) {
        run_scan(self, f, init, xs, trace::caller_or_known(Location::caller()))
    }
}

/// Runs a function along the leading axis of every array of `xs`, with a carry from step to step. Gives the last carry
/// and the results of all steps, stacked. [`ScanOptions`] choose direction, unrolling and what reverse mode keeps.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let (last, sums) = scan(|sum: &Array, x: &Array| (sum + x, sum + x), Array::from(0.0_f64), &Array::from([1.0_f64, 2.0, 3.0]));
/// assert_eq!(last.item::<f64>()?, 6.0);
/// assert_eq!(sums.to_vec::<f64>()?, [1.0, 3.0, 6.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn scan<C: Tree, X: Tree, Y: Tree>(f: impl Fn(&C, &X) -> (C, Y), init: C, xs: &X) -> (C, Y) {
    run_scan(&ScanOptions::default(), f, init, xs, trace::caller_or_known(Location::caller()))
}

/// Applies a function to each element along the leading axis, one after the other; `vmap` does it at once.
///
/// It is not in the prelude: `gradus::map` says which `map` is meant.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let squares = gradus::map(|x: &Array| x * x, &Array::from([1.0_f64, 2.0, 3.0]));
/// assert_eq!(squares.to_vec::<f64>()?, [1.0, 4.0, 9.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn map<X: Tree, Y: Tree>(f: impl Fn(&X) -> Y, xs: &X) -> Y {
    let place = trace::caller_or_known(Location::caller());
    run_scan(&ScanOptions::default(), |(): &(), x: &X| ((), f(x)), (), xs, place).1
}

fn run_scan<C: Tree, X: Tree, Y: Tree>(
    options: &ScanOptions,
    f: impl Fn(&C, &X) -> (C, Y),
    init: C,
    xs: &X,
    place: Location,
) -> (C, Y) {
    let mut template = None;
    let result = try_scan(options, &f, &init, xs, place, &mut template);
    match (result, template) {
        (Ok(outputs), Some(template)) => fill(&template, outputs),
        (Err(e), Some(template)) => poison(&template, &e.at(place)),
        (result, None) => {
            let e = result.err().unwrap_or_else(|| Error::new(ErrorKind::Rule, "a step gave no result"));
            let e = e.at(place);
            // The carry has the structure that it starts with; only what a step gives besides may be unknown.
            let carry = poison(&init, &e);
            let given = failed(e, place, |e| f(&poison(&init, e), &poison(xs, e)).1);
            (carry, given)
        }
    }
}

fn try_scan<C: Tree, X: Tree, Y: Tree>(
    options: &ScanOptions,
    f: &impl Fn(&C, &X) -> (C, Y),
    init: &C,
    xs: &X,
    place: Location,
    template: &mut Option<(C, Y)>,
) -> Result<Vec<Array>> {
    let carries = types_of(init, place)?;
    let (length, elements) = elements_of(&types_of(xs, place)?, options.length.as_ref(), "scan")?;
    spend_all(init, place)?;
    spend_all(xs, place)?;
    let types: Vec<Type> = carries.iter().chain(&elements).cloned().collect();
    let made = trace_body("step", &types, place, |ts| {
        let (carry, element) = ts.split_at(carries.len());
        f(&fill(init, carry.to_vec()), &fill(xs, element.to_vec()))
    });
    let (traced, out) = made.map_err(|(e, out)| {
        *template = out;
        e
    })?;
    let (next, _) = template.insert(out);
    same_types(init, next, "the carry of a scan changes its type", ("before a step", "after it"), place)
        .map_err(|e| e.help("a carry has one type; cast or broadcast the first one or the next one"))?;
    trace::at_place(place, || {
        control::scan(&traced, &init.leaves(), &xs.leaves(), &length, options.reverse, options.unroll, options.steps)
    })
}

/// The number of steps and the types of elements along the leading axis.
fn elements_of(types: &[Type], length: Option<&Dim>, what: &str) -> Result<(Dim, Vec<Type>)> {
    let bad = |message: String| Error::new(ErrorKind::Shape, message);
    let mut length = length.cloned();
    let mut elements = Vec::with_capacity(types.len());
    for ty in types {
        let Some(n) = ty.shape().first() else {
            return Err(bad(format!("`{what}` runs along the leading axis of its arrays, and {ty} has none"))
                .help("capture what is the same in every step, or put it into the carry"));
        };
        match &length {
            Some(m) if m.equals(n) == Decision::No => {
                return Err(bad(format!("`{what}` runs along leading axes of {m} and of {n} elements ({ty})")).help(
                    "all sequences have one element for each step: cut or pad them, or capture what is not one",
                ));
            }
            Some(_) => {}
            None => length = Some(n.clone()),
        }
        elements.push(ty.with_shape(ty.shape().without(|axis| axis == 0)));
    }
    match length {
        Some(length) => Ok((length, elements)),
        None => Err(bad(format!("`{what}` has no array that tells the number of steps"))
            .help("use `fori_loop`, or say it: `ScanOptions::new().length(n).scan(..)`")),
    }
}

/// Runs a body for each number from `lower` to before `upper`, which are numbers or integer arrays.
///
/// With bounds that are known while tracing it is a [`scan`], and reverse mode keeps what each step needs; otherwise it
/// is a [`while_loop`].
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let factorial = fori_loop(1, 6, |i, p: &Array| p * i.cast(DType::F64), Array::from(1.0_f64));
/// assert_eq!(factorial.item::<f64>()?, 120.0);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn fori_loop<T: Tree>(lower: impl Operand, upper: impl Operand, body: impl Fn(&Array, &T) -> T, init: T) -> T {
    let place = trace::caller_or_known(Location::caller());
    let (low, high, dtype) = match bounds(lower.into_operand(), upper.into_operand()) {
        Ok(found) => found,
        Err(e) => return poison(&init, &e.at(place)),
    };
    // What the user wrote is neither a scan nor a pair.
    let body = |i: &Array, state: &T| {
        let next = body(i, state);
        // An error that is there already says more.
        if next.leaves().iter().any(|a| a.error().is_some()) {
            return next;
        }
        match same_state(state, &next, "`fori_loop`", place) {
            Ok(()) => next,
            Err(e) => poison(&next, &e),
        }
    };
    let number = |a: &Array| a.concrete().and_then(|c| c.scalar_at(0).ok()).and_then(Scalar::to_i64);
    if let (Some(first), Some(end)) = (number(&low), number(&high)) {
        let length = usize::try_from(end.saturating_sub(first)).unwrap_or(0);
        let options = ScanOptions::new().length(length);
        let one = Scalar::one(dtype);
        let step = |(i, state): &(Array, T), (): &()| ((i + Array::scalar(one), body(i, state)), ());
        return run_scan(&options, step, (low, init), &(), place).0.1;
    }
    let one = Scalar::one(dtype);
    let end = high;
    let goes_on = |(i, _): &(Array, T)| i.lt(&end);
    let step = |(i, state): &(Array, T)| (i + Array::scalar(one), body(i, state));
    run_while(History::default(), goes_on, step, (low, init), place).1
}

/// Both bounds as arrays of one integer dtype: that of an array, or `i64`.
fn bounds(lower: OperandValue, upper: OperandValue) -> Result<(Array, Array, DType)> {
    let of = |v: &OperandValue| if let OperandValue::Array(a) = v { a.ty().map(|t| Some(t.clone())) } else { Ok(None) };
    let ty = of(&lower)?.or(of(&upper)?).unwrap_or(Type::scalar(DType::I64));
    let bad = |ty: &Type| {
        Error::new(ErrorKind::DType, format!("a loop counts with one integer type without axes, not with {ty}"))
            .help("cast the bounds, as in `n.cast(DType::I64)`")
    };
    if !ty.dtype().is_int() || ty.rank() != 0 {
        return Err(bad(&ty));
    }
    let array = |v: OperandValue| match v {
        OperandValue::Number(n) => n.literal_as(ty.dtype()).map(Array::scalar),
        OperandValue::Dim(d) => dim_as(&d, ty.dtype()),
        OperandValue::Array(a) if *a.ty()? == ty => Ok(a),
        OperandValue::Array(a) => Err(bad(a.ty()?)),
    };
    Ok((array(lower)?, array(upper)?, ty.dtype()))
}

/// Runs a body while a condition on the state holds; the number of steps is known only to the values.
///
/// Both derivative modes pass through it. Reverse mode keeps a fixed number of states (32) and computes the steps
/// between them again; [`WhileOptions`] choose otherwise.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// // the square root of a, by Newton's iteration
/// let root = |a: &Array| while_loop(|x: &Array| (x * x - a).abs().gt(1e-12), |x| (x + a / x) * 0.5, Array::from(1.0));
/// let slope = jit(grad(root))(&Array::from(2.0)).item::<f64>()?;
/// assert!((slope - 0.5 / 2.0_f64.sqrt()).abs() < 1e-9);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn while_loop<T: Tree>(condition: impl Fn(&T) -> Array, body: impl Fn(&T) -> T, init: T) -> T {
    run_while(History::default(), condition, body, init, trace::caller_or_known(Location::caller()))
}

/// How reverse mode gets at the steps of a loop whose length only the values decide. Its last method runs it.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let f = |x: &Array| {
///     let options = WhileOptions::new().history(History::Limit(100));
///     options.while_loop(|y: &Array| y.lt(100.0_f64), |y: &Array| y * y, x.clone())
/// };
/// assert_eq!(grad(f)(&Array::from(4.0_f64)).item::<f64>()?, 256.0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `while_loop` is called on them"]
pub struct WhileOptions {
    history: History,
}

impl WhileOptions {
    /// What [`while_loop`] does: 32 states are kept.
    pub fn new() -> WhileOptions {
        WhileOptions::default()
    }

    /// A number of states in memory, or a limit of steps and all that each of them needs.
    pub fn history(self, history: History) -> WhileOptions {
        WhileOptions { history }
    }

    /// Runs a [loop](while_loop()) in this way.
    #[track_caller]
    pub fn while_loop<T: Tree>(&self, condition: impl Fn(&T) -> Array, body: impl Fn(&T) -> T, init: T) -> T {
        run_while(self.history, condition, body, init, trace::caller_or_known(Location::caller()))
    }
}

fn run_while<T: Tree>(
    history: History,
    condition: impl Fn(&T) -> Array,
    body: impl Fn(&T) -> T,
    init: T,
    place: Location,
) -> T {
    let result = traced_loop(&condition, &body, &init, place).and_then(|(condition, body)| {
        trace::at_place(place, || {
            let outputs = control::while_loop(&condition, &body, &init.leaves(), history)?;
            if let History::Limit(most) = history {
                warn_if_cut_off(most, &condition, &outputs, place)?;
            }
            Ok(outputs)
        })
    });
    match result {
        Ok(outputs) => fill(&init, outputs),
        Err(e) => poison(&init, &e.at(place)),
    }
}

/// Asks the condition once more: if it still holds, the limit ended the loop, and the result is not what the loop was for.
fn warn_if_cut_off(most: usize, condition: &Traced, outputs: &[Array], place: Location) -> Result<()> {
    let inputs: Vec<Array> = outputs.iter().chain(&condition.captures).cloned().collect();
    let goes_on = trace::inline(&condition.program, &inputs)?;
    let said = AtomicBool::new(false);
    let host = Host::new(place, move |values| {
        if values[0].any().item::<bool>()? && !said.swap(true, Ordering::Relaxed) {
            Warning::new(WarningKind::LoopCutOff, format!("a loop was ended by its limit of {most} steps"))
                .at(place)
                .note("its condition still holds: the result is that of the first steps, and so are its derivatives")
                .help("raise `History::Limit`, or use `History::Checkpoints`, which has no limit of steps")
                .emit();
        }
        Ok(Vec::new())
    });
    // One call for a whole batch.
    let look = Callback::giving(Kind::Debug, host, Vec::new(), true);
    trace::bind_all(Op::new(look), &goes_on).first().and_then(Array::error).map_or(Ok(()), |e| Err(e.clone()))
}

fn traced_loop<T: Tree>(
    condition: &impl Fn(&T) -> Array,
    body: &impl Fn(&T) -> T,
    init: &T,
    place: Location,
) -> Result<(Traced, Traced)> {
    let types = types_of(init, place)?;
    spend_all(init, place)?;
    let (asked, answer) =
        trace_body("condition", &types, place, |ts| condition(&fill(init, ts.to_vec()))).map_err(|(e, _)| e)?;
    let ty = answer.ty()?;
    if *ty != Type::scalar(DType::Bool) {
        return Err(Error::new(ErrorKind::DType, format!("the condition of a loop is one bool, not {ty}"))
            .help("compare, as in `x.lt(1.0)`, and reduce with `.any()` or `.all()`"));
    }
    let (step, next) = trace_body("step", &types, place, |ts| body(&fill(init, ts.to_vec()))).map_err(|(e, _)| e)?;
    same_state(init, &next, "a loop", place)?;
    Ok((asked, step))
}

/// Refuses a step after which the state has another type than before.
fn same_state<T: Tree>(state: &T, next: &T, whose: &str, place: Location) -> Result<()> {
    let what = format!("the state of {whose} changes its type");
    same_types(state, next, &what, ("before a step", "after it"), place)
        .map_err(|e| e.help("a state has one type; cast or broadcast the first one or the next one"))
}

/// All partial results of an associative function along the leading axis, in a logarithmic number of rounds: the result
/// at `i` is `f` of the elements `0..=i`.
///
/// The function takes single elements; it is batched here.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let products = associative_scan(|a: &Array, b: &Array| a * b, &Array::from([1.0_f64, 2.0, 3.0, 4.0]));
/// assert_eq!(products.to_vec::<f64>()?, [1.0, 2.0, 6.0, 24.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn associative_scan<T: Tree>(f: impl Fn(&T, &T) -> T, xs: &T) -> T {
    let place = trace::caller_or_known(Location::caller());
    let result = || -> Result<Vec<Array>> {
        let (length, elements) = elements_of(&types_of(xs, place)?, None, "associative_scan")?;
        spend_all(xs, place)?;
        let Some(n) = length.as_usize() else {
            return Err(Error::new(ErrorKind::NotConcrete, format!("an associative scan over {length} elements"))
                .help("its rounds follow from the number of elements, which must be known; `scan` takes any"));
        };
        let types: Vec<Type> = elements.iter().chain(&elements).cloned().collect();
        let made = trace_body("combine", &types, place, |ts| {
            let (a, b) = ts.split_at(elements.len());
            f(&fill(xs, a.to_vec()), &fill(xs, b.to_vec()))
        });
        let (traced, out) = made.map_err(|(e, _)| e)?;
        let single = fill(xs, elements.into_iter().map(Array::of_type));
        same_types(
            &single,
            &out,
            "an associative function changes the type",
            ("of an element", "of the result"),
            place,
        )?;
        trace::at_place(place, || prefixes(&traced, &xs.leaves(), n))
    };
    match result() {
        Ok(outputs) => fill(xs, outputs),
        Err(e) => poison(xs, &e.at(place)),
    }
}

/// Pairs are combined, their prefixes found, and the elements between filled in.
fn prefixes(f: &Traced, xs: &[Array], n: usize) -> Result<Vec<Array>> {
    if n < 2 {
        return Ok(xs.to_vec());
    }
    let every_other = |x: &Array, from: i64, to: i64| x.index(Index::step(from..to, 2));
    let end = n as i64;
    let left: Vec<Array> = xs.iter().map(|x| every_other(x, 0, end - 1)).collect();
    let right: Vec<Array> = xs.iter().map(|x| every_other(x, 1, end)).collect();
    let odd = prefixes(f, &combined(f, &left, &right, n / 2)?, n / 2)?;
    let even = if n > 2 {
        // The prefix at 2k is that at 2k-1 with element 2k.
        let count = (n - 1) / 2;
        let before: Vec<Array> = odd.iter().map(|y| y.index(0..count as i64)).collect();
        let next: Vec<Array> = xs.iter().map(|x| every_other(x, 2, end)).collect();
        combined(f, &before, &next, count)?
    } else {
        Vec::new()
    };
    let first = xs.iter().map(|x| x.index(0..1));
    let even = first.enumerate().map(|(i, x)| match even.get(i) {
        Some(rest) => Array::concatenate([x, rest.clone()], 0),
        None => x,
    });
    even.zip(&odd).map(|(even, odd)| interleaved(&even, odd, n).ok()).collect()
}

fn combined(f: &Traced, a: &[Array], b: &[Array], count: usize) -> Result<Vec<Array>> {
    let mut inputs: Vec<Array> = a.iter().chain(b).cloned().collect();
    let mut batched = vec![true; inputs.len()];
    inputs.extend(f.captures.iter().cloned());
    batched.resize(inputs.len(), false);
    let size = Dim::from(count);
    let (outputs, flags) = vmap_on(&f.program, &inputs, &batched, &size)?;
    let spread = |y: Array| y.broadcast_to(y.shape().inserted(0, size.clone()));
    outputs.into_iter().zip(flags).map(|(y, on)| if on { y.ok() } else { spread(y).ok() }).collect()
}

/// `even[0], odd[0], even[1], odd[1], ...`, of `n` elements together.
fn interleaved(even: &Array, odd: &Array, n: usize) -> Array {
    let pairs = n / 2;
    let both = Array::stack([even.index(0..pairs as i64), odd.clone()], 1);
    let mut shape = vec![Dim::from(2 * pairs)];
    shape.extend(odd.shape().iter().skip(1).cloned());
    let both = both.reshape(shape);
    if n.is_multiple_of(2) { both } else { Array::concatenate([both, even.index(pairs as i64..)], 0) }
}

//! Effects in programs: the host is called, values are shown, conditions are checked, when the program runs and in the
//! order in which it was written.
//!
//! Outside of any trace each happens at once. A `println!` in a traced function is no effect of the program: it happens
//! when the function is traced, once.

use std::cell::RefCell;
use std::slice::Iter;

use gradus_core::primitives::Op;
use gradus_core::primitives::effects::{Callback, Host, Kind};
use gradus_core::trace::{self, bind_all};
use gradus_core::{Array, DType, Error, ErrorKind, Location, Operand, Result, Type};

/// What became of an effect that gives nothing. In a trace it is recorded, and what goes wrong with it is an error of the
/// call that runs it. Outside of one it has happened, and [`ok`](Outcome::ok) says whether that went well.
#[derive(Clone, Debug)]
pub struct Outcome(Result<()>);

impl Outcome {
    /// Whether the effect was recorded, or has happened without an error.
    pub fn ok(self) -> Result<()> {
        self.0
    }

    fn of(outputs: &[Array]) -> Outcome {
        match outputs.first().and_then(Array::error) {
            // Nobody has to look at what comes back, so the trace ends with the error.
            Some(e) => Outcome(trace::fail(e.clone())),
            None => Outcome(Ok(())),
        }
    }
}

/// Calls a function of the host with the values of `args`, each time that the program runs.
///
/// It only looks: derivatives pass it by, `vmap` calls it for one example after the other, and a checkpoint does not call
/// it again. If it panics, the call that ran it gives an error.
///
/// ```
/// use gradus::prelude::*;
/// use std::sync::{Arc, Mutex};
///
/// # fn main() -> Result<()> {
/// let seen = Arc::new(Mutex::new(Vec::new()));
/// let log = seen.clone();
/// let f = jit(move |x: &Array| {
///     let log = log.clone();
///     debug_callback(move |v| log.lock().unwrap().push(v[0].item::<f64>().unwrap()), &[x]);
///     x * 2.0_f64
/// });
/// f(&Array::from(1.0_f64)).item::<f64>()?;
/// f(&Array::from(2.0_f64)).item::<f64>()?;
/// assert_eq!(*seen.lock().unwrap(), [1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn debug_callback(f: impl Fn(&[Array]) + Send + Sync + 'static, args: &[&Array]) -> Outcome {
    let host = Host::new(trace::caller_or_known(Location::caller()), move |values| {
        f(values);
        Ok(Vec::new())
    });
    Outcome::of(&bind_all(Op::new(Callback::watching(Kind::Debug, host)), &owned(args)))
}

/// Calls a function of the host that changes the world or reads it, and gives arrays of the types in `results`.
///
/// Calls happen exactly as often as written and in the order in which they were written, among all effects, and also if
/// nobody uses what they give. `vmap` cannot promise that and refuses; so do derivatives by what is given.
///
/// ```
/// use gradus::prelude::*;
/// use std::sync::atomic::{AtomicI64, Ordering};
///
/// # fn main() -> Result<()> {
/// static NEXT: AtomicI64 = AtomicI64::new(0);
/// let f = jit(|x: &Array| {
///     let number = io_callback(
///         |_| Ok(vec![Array::from(NEXT.fetch_add(1, Ordering::Relaxed))]),
///         &["i64[]".parse().unwrap()],
///         &[],
///     );
///     x + &number[0]
/// });
/// let x = Array::from(10_i64);
/// assert_eq!([f(&x).item::<i64>()?, f(&x).item::<i64>()?], [10, 11]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn io_callback(
    f: impl Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
    results: &[Type],
    args: &[&Array],
) -> Vec<Array> {
    let host = Host::new(trace::caller_or_known(Location::caller()), f);
    giving(Callback::giving(Kind::Io, host, results.to_vec(), false), results, args)
}

/// Calls a function of the host that computes: it gives the same for the same values and does nothing else.
///
/// So a call may be left out if nobody uses what it gives, shared, moved out of loops and made again. In a batch it is
/// called for each example; [`PureCallbackOptions::batched`] says otherwise. It has a derivative only inside of `custom_jvp`
/// or `custom_vjp`.
#[track_caller]
pub fn pure_callback(
    f: impl Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
    results: &[Type],
    args: &[&Array],
) -> Vec<Array> {
    PureCallbackOptions::new().pure_callback(f, results, args)
}

/// How a [`pure_callback`] is called. Its last method calls it.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let double = |x: &Array| {
///     let host = |values: &[Array]| Ok(vec![&values[0] * 2.0_f64]);
///     PureCallbackOptions::new().batched().pure_callback(host, &["f64[]".parse().unwrap()], &[x]).remove(0)
/// };
/// assert_eq!(vmap(double)(&Array::from([1.0_f64, 2.0])).to_vec::<f64>()?, [2.0, 4.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `pure_callback` is called on them"]
pub struct PureCallbackOptions {
    batched: bool,
}

impl PureCallbackOptions {
    /// What [`pure_callback`] does: in a batch the function is called for each example.
    pub fn new() -> PureCallbackOptions {
        PureCallbackOptions::default()
    }

    /// The function takes batches: under `vmap` it is called once with arrays that all have the batch axis in front, and what
    /// it gives has it, too.
    pub fn batched(self) -> PureCallbackOptions {
        PureCallbackOptions { batched: true }
    }

    /// [Calls the host](pure_callback()) in this way.
    #[track_caller]
    pub fn pure_callback(
        &self,
        f: impl Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
        results: &[Type],
        args: &[&Array],
    ) -> Vec<Array> {
        let host = Host::new(trace::caller_or_known(Location::caller()), f);
        giving(Callback::giving(Kind::Pure, host, results.to_vec(), self.batched), results, args)
    }
}

fn owned(args: &[&Array]) -> Vec<Array> {
    args.iter().map(|a| (*a).clone()).collect()
}

#[track_caller]
fn giving(callback: Callback, results: &[Type], args: &[&Array]) -> Vec<Array> {
    let outputs = bind_all(Op::new(callback), &owned(args));
    match outputs.first().and_then(Array::error) {
        Some(e) => {
            let e = e.clone();
            if results.is_empty() {
                // There is no array to carry it.
                drop(trace::fail(e.clone()));
            }
            results.iter().map(|_| Array::from(e.clone())).collect()
        }
        None => outputs.into_vec(),
    }
}

/// Shows a line of text with values in it, each time that the program runs: `debug_print!("loss {} at step {}", loss, step)`.
///
/// The text is that of `println!`, with precision (`{:.3}`), `{:?}` and names given after it (`"{loss}", loss = loss`); the
/// compiler checks it against the values. Values are arrays, references to them, or numbers.
///
/// It only looks, as [`debug_callback`](crate::effects::debug_callback) does.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let f = jit(|x: &Array| {
///     let y = x * x;
///     debug_print!("{} squared is {:.1}", x, y);
///     y
/// });
/// let (y, text) = capture_prints(|| f(&Array::from(3.0_f64)).item::<f64>());
/// assert_eq!((y?, text.as_str()), (9.0, "3.0 squared is 9.0\n"));
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! debug_print {
    ($($args:tt)*) => {
        $crate::__formatted!($crate::effects::print, (), $($args)*)
    };
}

/// Checks a condition each time that the program runs: `debug_check!(x.gt(0.0), "x is {}", x)`. Where it is false the run
/// stops, and the call gives an error with this line, the text and the values in it.
///
/// The condition is a bool or an array of bools, all of which must be true. In a batch every example is checked, and the
/// error names the first that fails. Outside of any trace the check happens at once, and [`Outcome::ok`] has the error.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let f = jit(|x: &Array| {
///     debug_check!(x.ge(0.0_f64), "a square root of {}", x);
///     x.sqrt()
/// });
/// assert_eq!(f(&Array::from(4.0_f64)).item::<f64>()?, 2.0);
/// let e = f(&Array::from(-4.0_f64)).item::<f64>().unwrap_err();
/// assert!(e.to_string().contains("a square root of -4.0"));
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! debug_check {
    ($condition:expr $(,)?) => {
        $crate::effects::check(&$condition, |_: &[$crate::Array]| {
            ::std::format!("`{}` does not hold", ::core::stringify!($condition))
        }, &[])
    };
    ($condition:expr, $($args:tt)*) => {
        $crate::__formatted!($crate::effects::check, ($condition), $($args)*)
    };
}

/// Hands a function that formats values, and the values, to another function. The arguments of the text are taken one by one,
/// because a name with a value would be read as an assignment.
#[doc(hidden)]
#[macro_export]
macro_rules! __formatted {
    (@ $to:tt $first:tt $format:tt [$($names:tt)*] [$($values:tt)*] $name:ident = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__formatted!(@ $to $first $format [$($names)* ($name)] [$($values)* ($value)] $($($rest)*)?)
    };
    (@ $to:tt $first:tt $format:tt [$($names:tt)*] [$($values:tt)*] $value:expr $(, $($rest:tt)*)?) => {
        $crate::__formatted!(@ $to $first $format [$($names)* ()] [$($values)* ($value)] $($($rest)*)?)
    };
    (@ [$to:path] ($($first:expr)?) [$format:literal] [$(($($name:ident)?))*] [$(($value:expr))*]) => {
        $to($(&$first,)? |values: &[$crate::Array]| {
            #[allow(unused_mut, unused_variables)]
            let mut values = values.iter();
            ::std::format!($format $(, $($name =)? $crate::effects::next(&mut values))*)
        }, &[$($crate::effects::value(&$value)),*])
    };
    ($to:path, $first:tt, $format:literal $(, $($rest:tt)*)?) => {
        $crate::__formatted!(@ [$to] $first [$format] [] [] $($($rest)*)?)
    };
}

/// The next value of a text.
#[doc(hidden)]
pub fn next(values: &mut Iter<'_, Array>) -> Array {
    let missing = || Array::from(Error::new(ErrorKind::Rule, "a text has more places than values"));
    values.next().cloned().unwrap_or_else(missing)
}

/// What a text shows, as an array.
#[doc(hidden)]
pub fn value<T: Operand + Clone>(value: &T) -> Array {
    value.clone().into_operand().into_array()
}

/// What `debug_print!` comes to.
#[doc(hidden)]
#[track_caller]
pub fn print<F>(format: F, values: &[Array]) -> Outcome
where
    F: Fn(&[Array]) -> String + Send + Sync + 'static,
{
    const { assert!(size_of::<F>() == 0, "values come after the text: write `{{x}}` with `x = x`, or `{{}}` with `x`") };
    let host = Host::new(trace::caller_or_known(Location::caller()), move |values| {
        show(&format(values));
        Ok(Vec::new())
    });
    Outcome::of(&bind_all(Op::new(Callback::watching(Kind::Debug, host)), values))
}

/// What `debug_check!` comes to.
#[doc(hidden)]
#[track_caller]
pub fn check<F>(condition: &(impl Operand + Clone), format: F, values: &[Array]) -> Outcome
where
    F: Fn(&[Array]) -> String + Send + Sync + 'static,
{
    const { assert!(size_of::<F>() == 0, "values come after the text: write `{{x}}` with `x = x`, or `{{}}` with `x`") };
    let place = trace::caller_or_known(Location::caller());
    let condition = value(condition);
    if condition.error().is_none() && condition.dtype() != DType::Bool {
        let message = format!("a check wants bools, not {}", condition.dtype());
        let e = Error::new(ErrorKind::DType, message).at(place).help("compare: `x.gt(0.0)`, `x.is_finite()`");
        return Outcome(trace::fail(e));
    }
    let host = Host::new(place, move |inputs| {
        let held = inputs[0].to_vec::<bool>()?;
        let failed = held.iter().filter(|ok| !**ok).count();
        if failed == 0 {
            return Ok(Vec::new());
        }
        let e = Error::new(ErrorKind::Check, format(&inputs[1..]));
        let first = held.iter().position(|ok| !ok).unwrap_or(0);
        Err(match held.len() {
            1 => e,
            n => e.note(format!("false in {failed} of {n} places, first at {:?}", place_in(&inputs[0], first))),
        })
    });
    let operands: Vec<Array> = std::iter::once(condition).chain(values.iter().cloned()).collect();
    Outcome::of(&bind_all(Op::new(Callback::watching(Kind::Check, host)), &operands))
}

/// The indices of an element by its number.
fn place_in(array: &Array, mut number: usize) -> Vec<usize> {
    let dims = array.known_dims().unwrap_or_default();
    let mut at: Vec<usize> = dims
        .iter()
        .rev()
        .map(|d| {
            let i = number % (*d).max(1);
            number /= (*d).max(1);
            i
        })
        .collect();
    at.reverse();
    at
}

thread_local! {
    static CAPTURED: RefCell<Option<String>> = const { RefCell::new(None) };
}

fn show(line: &str) {
    let kept = CAPTURED.with_borrow_mut(|text| match text {
        Some(text) => {
            text.push_str(line);
            text.push('\n');
            true
        }
        None => false,
    });
    if !kept {
        println!("{line}");
    }
}

/// Runs a function and gives what [`debug_print!`](crate::debug_print) showed on this thread meanwhile, instead of showing it.
pub fn capture_prints<T>(f: impl FnOnce() -> T) -> (T, String) {
    struct Restore(Option<String>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CAPTURED.set(self.0.take());
        }
    }
    let _restore = Restore(CAPTURED.replace(Some(String::new())));
    let out = f();
    (out, CAPTURED.take().unwrap_or_default())
}

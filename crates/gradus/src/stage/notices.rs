//! What is odd about a function, said once, when it is first traced: arguments that it never reads, large arrays that it
//! captures, and `select` over partial functions.

use std::cell::RefCell;

use gradus_core::lint::{Lint, lint};
use gradus_core::trace::Traced;
use gradus_core::warnings::{Warning, WarningKind, is_off};
use gradus_core::{Array, Location, Program, Type};

use super::key::CallKey;

/// A captured array of more bytes is worth a word.
const LARGE: usize = 1 << 20;

thread_local! {
    /// For each function that is being traced for the first time: what was found in functions differentiated inside, if any.
    static INSIDE: RefCell<Vec<Option<Vec<Lint>>>> = const { RefCell::new(Vec::new()) };
}

/// Runs the first trace of a function; gives what was found in functions that it differentiates.
pub(super) fn watch<R>(f: impl FnOnce() -> R) -> (R, Option<Vec<Lint>>) {
    /// Takes the list away even if the user's function panics.
    struct Watching;
    impl Drop for Watching {
        fn drop(&mut self) {
            INSIDE.with_borrow_mut(Vec::pop);
        }
    }
    INSIDE.with_borrow_mut(|stack| stack.push(None));
    let watching = Watching;
    let result = f();
    let found = INSIDE.with_borrow_mut(|stack| stack.last_mut().and_then(Option::take));
    drop(watching);
    (result, found)
}

/// Looks at a function that is about to be differentiated: its own program, not what becomes of it, has the user's `select`s.
fn differentiated(program: &Program) {
    let watched = !is_off(WarningKind::SelectOverPartial) && INSIDE.with_borrow(|stack| !stack.is_empty());
    if !watched {
        return;
    }
    let found = lint(program);
    INSIDE.with_borrow_mut(|stack| {
        if let Some(list) = stack.last_mut() {
            list.get_or_insert_default().extend(found);
        }
    });
}

/// Says what is odd about a function, by its first trace.
pub(super) fn give(
    name: &str,
    place: Location,
    key: &CallKey,
    (traced, optimized): (&Traced, &Program),
    inside: Option<Vec<Lint>>,
) {
    if !is_off(WarningKind::UnusedArgument) {
        unused(name, place, key, traced, optimized);
    }
    if !is_off(WarningKind::LargeConstant) {
        large(name, place, traced);
    }
    if !is_off(WarningKind::SelectOverPartial) {
        // A derivative has `select`s of its own, which know what they do.
        let found = inside.unwrap_or_else(|| lint(&traced.program));
        let mut said: Vec<Lint> = Vec::new();
        for l in found {
            if !said.contains(&l) && !is_ours(l.place) {
                l.to_warning().note(format!("in `{name}`")).emit();
                said.push(l);
            }
        }
    }
}

/// Whether a line is of this crate: a user can do nothing about it.
fn is_ours(place: Location) -> bool {
    let here = file!().strip_suffix("stage/notices.rs");
    place.file().zip(here).is_some_and(|(file, here)| file.starts_with(here))
}

fn unused(name: &str, place: Location, key: &CallKey, traced: &Traced, optimized: &Program) {
    // What the optimizer leaves is what is read; what a function inside reads was needed before it was transformed.
    let (needed, inside) = (optimized.read_inputs(), traced.inside_reads());
    let guards = traced.guard_program.read_inputs();
    let is_read = |i: usize| [&needed, &guards].iter().any(|p| p.get(i) == Some(&true)) || inside[i];
    let leaves = key.parts.iter().filter_map(|p| Some((p.path(), p.leaf()?))).take(inside.len()).enumerate();
    // An array with a symbolic dimension says what the symbol is, even if nobody reads its numbers.
    let paths: Vec<&str> =
        leaves.filter(|(i, (_, ty))| !is_read(*i) && !ty.shape().is_symbolic()).map(|(_, (path, _))| path).collect();
    let (first, are) = match paths.as_slice() {
        [] => return,
        [one] => (one.to_string(), "is"),
        all => (all.join(", "), "are"),
    };
    Warning::new(WarningKind::UnusedArgument, format!("{first} of `{name}` {are} never read"))
        .at(place)
        .note("its type is part of the key all the same: another shape makes another program")
        .help("leave it out, or take what is needed of it (a size, a flag) as a `Static`")
        .emit();
}

fn large(name: &str, place: Location, traced: &Traced) {
    let first = traced.program.inputs().len().saturating_sub(traced.captures.len());
    for (i, array) in traced.captures.iter().enumerate() {
        let Some(bytes) = array.ty().ok().and_then(Type::bytes).filter(|b| array.has_numbers() && *b > LARGE) else {
            continue;
        };
        let used = traced.program.first_use(first + i).filter(|p| p.is_known());
        let ty = array.ty().map(ToString::to_string).unwrap_or_default();
        Warning::new(WarningKind::LargeConstant, format!("`{name}` holds an array {ty} of {bytes} bytes that is none of its arguments"))
            .at(used.unwrap_or(place))
            .note(format!("it was captured, or made while the function was traced, and is kept as long as the function is; `{name}` was made at {place}"))
            .help("pass it as an argument: then it can change and be dropped, and derivatives can be taken by it")
            .emit();
    }
}

/// Passes on which arguments a function inside reads, and looks at what is about to be differentiated.
pub(crate) fn transformed(traced: &Traced, arguments: &[Array], derivative: bool) {
    traced.pass_reads_to(arguments);
    if derivative {
        differentiated(&traced.program);
    }
}

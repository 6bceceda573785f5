//! One file: read, printed and read again, imported, run, compared.
//!
//! What Gradus does not take is refused, with its words. A number that is another one, a text that does not come back, and a fault of Gradus are failures.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use gradus::extend::Backend;
use gradus::extend::pipeline::Pipeline;
use gradus::prelude::*;
use gradus_stablehlo::module::{Function, Module, Visibility};
use gradus_stablehlo::write::write;
use gradus_stablehlo::{Imported, import_function, is_bytecode, read as read_text, read_bytecode};

use super::Status;
use super::find::Test;

/// Why a file did not pass.
enum Obstacle {
    Refused(String),
    Failed(String),
}

impl From<Error> for Obstacle {
    fn from(e: Error) -> Obstacle {
        let text = e.to_string();
        match e.kind() {
            ErrorKind::Internal | ErrorKind::Rule | ErrorKind::Mismatch | ErrorKind::Verify => Obstacle::Failed(text),
            _ => Obstacle::Refused(text),
        }
    }
}

/// What becomes of a file, and why.
pub fn judge(test: &Test, backend: &Arc<dyn Backend>) -> (Status, String) {
    let bytes = match std::fs::read(&test.path) {
        Ok(bytes) => bytes,
        Err(e) => return (Status::Failed, format!("cannot be read: {e}")),
    };
    let run = || run(test, &bytes, backend);
    let found = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Obstacle::Failed(format!("a panic: {text}")))
    });
    let disabled = String::from_utf8_lossy(&bytes).lines().find_map(|l| {
        let rest = l.trim_start().strip_prefix("// RUN-DISABLED")?;
        Some(rest.split(')').next().unwrap_or_default().trim_start_matches('(').to_string())
    });
    match (disabled, found) {
        (Some(why), Ok(_)) => (Status::Disabled, format!("upstream: {why}; it passes here")),
        (Some(why), Err(Obstacle::Refused(text))) => {
            (Status::Disabled, format!("upstream: {why}; refused here: {text}"))
        }
        (Some(why), Err(Obstacle::Failed(text))) => (Status::Disabled, format!("upstream: {why}; not so here: {text}")),
        (None, Ok(said)) => (Status::Passed, said),
        (None, Err(Obstacle::Refused(text))) => (Status::Refused, text),
        (None, Err(Obstacle::Failed(text))) => (Status::Failed, text),
    }
}

fn run(test: &Test, bytes: &[u8], backend: &Arc<dyn Backend>) -> Result<String, Obstacle> {
    let source = test.path.to_string_lossy();
    let modules = if is_bytecode(bytes) {
        vec![read_bytecode(&source, bytes)?]
    } else {
        let text = std::str::from_utf8(bytes).map_err(|e| Obstacle::Refused(format!("no text: {e}")))?;
        read_text(&source, text)?
    };
    if modules.is_empty() {
        return Err(Obstacle::Failed("there is no module in it".into()));
    }
    let mut remarks = Vec::new();
    for module in &modules {
        printed_again(&source, module)?;
        for function in entries(module) {
            remarks.extend(run_function(test, module, function, backend)?);
        }
    }
    Ok(remarks.join("; "))
}

/// The text of a module reads back as the same text: nothing of it is lost or changed on the way.
fn printed_again(source: &str, module: &Module) -> Result<(), Obstacle> {
    let text = write(module);
    let again = read_text(&format!("{source}, printed"), &text)
        .map_err(|e| Obstacle::Failed(format!("what is printed cannot be read: {e}")))?;
    match again.as_slice() {
        [one] if write(one) == text => Ok(()),
        [_] => Err(Obstacle::Failed("what is printed and read is printed otherwise".into())),
        several => Err(Obstacle::Failed(format!("what is printed reads as {} modules", several.len()))),
    }
}

/// The functions that a module is run by: `@main`, or every public one.
fn entries(module: &Module) -> Vec<&Function> {
    match module.functions.iter().find(|f| f.name == "main") {
        Some(main) => vec![main],
        None => module.functions.iter().filter(|f| f.visibility != Visibility::Private).collect(),
    }
}

/// Runs a function and compares. One that takes what nobody gives is only imported; then that is the remark, also if it could not be.
fn run_function(
    test: &Test,
    module: &Module,
    function: &Function,
    backend: &Arc<dyn Backend>,
) -> Result<Option<String>, Obstacle> {
    let unfed = test.numbers.is_none() && !function.body.arguments.is_empty();
    let imported = match import_function(module, &function.name).map_err(Obstacle::from) {
        Ok(_) if unfed => return Ok(Some("imported, and not run: nobody gives its inputs".into())),
        Err(Obstacle::Refused(why)) if unfed => return Ok(Some(format!("read and printed, and no program: {why}"))),
        other => other?,
    };
    let program = &imported.program;
    let numbers = test.numbers.as_ref().map(files::load_all).transpose()?;
    let inputs = match &numbers {
        None => Vec::new(),
        Some(numbers) => inputs(test, &imported, numbers)?,
    };
    let code = Pipeline::new(backend.clone()).code(program)?;
    let outputs = code.run(&inputs)?;
    for output in &outputs {
        output.on_host()?;
    }
    for check in &imported.checks {
        if let Some(wrong) = check.compare(&outputs)? {
            return Err(Obstacle::Failed(format!("{}: {wrong}", check.place)));
        }
    }
    if let Some(numbers) = &numbers {
        for (i, have) in outputs[..imported.results].iter().enumerate() {
            let want = numbers.get(&format!("out{i}"));
            let want = want.ok_or_else(|| Obstacle::Failed(format!("there is no `out{i}` to compare with")))?;
            if let Some(wrong) = apart(have, want, test.tolerance)? {
                return Err(Obstacle::Failed(format!("result {i}: {wrong}")));
            }
        }
    }
    Ok(None)
}

type Numbers = std::collections::BTreeMap<String, Array>;

/// The inputs of a program among those that were saved, in its types: halves are saved as floats.
fn inputs(test: &Test, imported: &Imported, numbers: &Numbers) -> Result<Vec<Array>, Obstacle> {
    let wanted = imported.program.inputs();
    let saved = (0..).take_while(|i| numbers.contains_key(&format!("in{i}"))).count();
    let kept = test.kept.clone().unwrap_or_else(|| Vec::from_iter(0..saved));
    if kept.len() != wanted.len() {
        let message =
            format!("it takes {} inputs, and {} are kept of {saved} that were saved", wanted.len(), kept.len());
        return Err(Obstacle::Failed(message));
    }
    let one = |(i, ty): (&usize, &Type)| match numbers.get(&format!("in{i}")) {
        Some(a) if a.dtype() == ty.dtype() => Ok(a.clone()),
        Some(a) => Ok(a.cast(ty.dtype())),
        None => Err(Obstacle::Failed(format!("there is no `in{i}` among what was saved"))),
    };
    kept.iter().zip(wanted).map(one).collect()
}

/// What is wrong with a result: whole numbers are equal, others within `tolerance·(|want| + 0.001)` of what was saved.
fn apart(have: &Array, want: &Array, tolerance: f64) -> Result<Option<String>, Obstacle> {
    if have.shape() != want.shape() {
        return Ok(Some(format!("its shape is {} and not {}", have.shape(), want.shape())));
    }
    let (have, want) = (have.on_host()?, want.on_host()?);
    let parts = |s: gradus::extend::types::Scalar| -> [f64; 2] {
        use gradus::extend::types::Scalar::{C64, C128};
        match s {
            C64(v) => [v.re.into(), v.im.into()],
            C128(v) => [v.re, v.im],
            other => [other.to_f64(), 0.0],
        }
    };
    let exact = !want.ty().dtype().is_inexact();
    let close = |h: f64, w: f64| {
        h == w || (h.is_nan() && w.is_nan()) || (!exact && (h - w).abs() <= tolerance * (w.abs() + 1e-3))
    };
    let (mut wrong, mut first) = (0_usize, None);
    for i in 0..want.count() {
        let (h, w) = (have.scalar_at(i)?, want.scalar_at(i)?);
        let same = if exact && have.ty() == want.ty() {
            h == w
        } else {
            parts(h).iter().zip(parts(w)).all(|(h, w)| close(*h, w))
        };
        if !same {
            wrong += 1;
            first.get_or_insert((i, h, w));
        }
    }
    Ok(first.map(|(i, h, w)| format!("{wrong} of {} elements differ; element {i} is {h} and not {w}", want.count())))
}

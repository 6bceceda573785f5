//! One case through every way of running it, each held against the interpreter.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use gradus_core::oracle::Freedom;
use gradus_core::pipeline::Pipeline;
use gradus_core::program::{Verified, verify};
use gradus_core::{Array, Error, ErrorKind, Executable, Program, Result, interpret};
use gradus_cpu::exec::Evaluated;
use gradus_cpu::{Cpu, Native, Options, Tier, Vectors};

use crate::case::{Case, Data, Sizes};
use crate::compare::{Difference, differing, unexplained};
use crate::generate::elements;
use crate::prepared;

/// What went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The way of running that failed.
    pub way: String,
    /// What sort of failure it is: the same for failures of one cause, mostly.
    pub class: String,
    /// All there is to say.
    pub message: String,
}

/// A way of running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The passes of the optimizer, by the interpreter.
    Passes,
    /// The kernel language by its evaluator.
    Evaluator,
    /// Machine code.
    Native {
        /// The vectors of the embedded tier; None for the optimizing one.
        vectors: Option<Vectors>,
        /// Whether products are contracted into sums.
        contract: bool,
    },
}

impl Way {
    /// Every way, in the order in which they are tried.
    pub const ALL: [Way; 8] = [
        Way::Passes,
        Way::Evaluator,
        Way::Native { vectors: Some(Vectors::Best), contract: false },
        Way::Native { vectors: Some(Vectors::Avx2), contract: false },
        Way::Native { vectors: Some(Vectors::None), contract: false },
        Way::Native { vectors: Some(Vectors::Best), contract: true },
        Way::Native { vectors: None, contract: false },
        Way::Native { vectors: None, contract: true },
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Way::Passes => "passes",
            Way::Evaluator => "evaluator",
            Way::Native { vectors: Some(Vectors::Best), contract: false } => "embedded",
            Way::Native { vectors: Some(Vectors::Avx2), .. } => "embedded, AVX2",
            Way::Native { vectors: Some(Vectors::None), .. } => "embedded, Cranelift",
            Way::Native { vectors: Some(Vectors::Best), contract: true } => "embedded, contracted",
            Way::Native { vectors: None, contract: false } => "LLVM",
            Way::Native { vectors: None, contract: true } => "LLVM, contracted",
        }
    }

    fn is_tried(self, case: &Case) -> bool {
        match self {
            Way::Native { vectors: None, .. } => case.llvm,
            // Element by element, and every one is looked up: not for large arrays.
            Way::Evaluator => elements(&case.program) <= 100_000,
            // Each goes from the same kernels to machine code, so one of them at a time is enough for what kernels do wrong.
            Way::Native { vectors: Some(vectors), contract } => case.turn.is_none_or(|turn| {
                let turns =
                    [(Vectors::Best, false), (Vectors::Avx2, false), (Vectors::Best, true), (Vectors::None, false)];
                turns[turn as usize % turns.len()] == (vectors, contract)
            }),
            Way::Passes => true,
        }
    }
}

/// So many rounds of inputs are given to each program, the first one twice.
const ROUNDS: u64 = 3;

/// What is known of a program at one set of sizes: inputs of each round and what the interpreter makes of them.
struct Known {
    inputs: Vec<Vec<Array>>,
    want: Vec<Result<Vec<Array>>>,
}

/// Runs a case in every way. Counts the ways tried.
pub fn check(case: &Case, tried: &mut [u64; Way::ALL.len()]) -> Result<(), Failure> {
    let passes = |e: Error| failed(Way::Passes, &e, "");
    let given = Verified::new(case.program.clone()).map_err(passes)?;
    let ready = caught(Way::Passes, || pipeline(case, Way::Passes).pass(&given))?.map_err(passes)?;
    verify(&ready).map_err(passes)?;
    for p in [&case.program, &*ready] {
        let back: Program = p.to_string().parse().map_err(|e| failed(Way::Passes, &e, "in the text"))?;
        if back != *p {
            return Err(failed(Way::Passes, &Error::new(ErrorKind::Verify, "the text is of another program"), ""));
        }
    }
    let mut known = Vec::new();
    for sizes in case.sizes.iter().filter(|s| case.fits(s)) {
        tried[0] += 1;
        known.push(known_at(case, &ready, sizes)?);
    }
    for (k, way) in Way::ALL.into_iter().enumerate().skip(1) {
        if way.is_tried(case) {
            tried[k] += 1;
            run((case, &given), &ready, way, &known)?;
        }
    }
    Ok(())
}

/// The interpreter on the program as written and made ready.
fn known_at(case: &Case, ready: &Program, sizes: &Sizes) -> Result<Known, Failure> {
    let way = Way::Passes;
    let inputs: Vec<Vec<Array>> = (0..ROUNDS).map(|r| case.inputs(sizes, r)).collect();
    let want: Vec<_> = inputs.iter().map(|i| caught(way, || interpret(ready, i))).collect::<Result<_, Failure>>()?;
    match (caught(way, || interpret(&case.program, &inputs[0]))?, &want[0]) {
        (Ok(plain), Ok(want)) => {
            same((case, &case.program), want, &plain, &inputs[0], Freedom::Sums)
                .map_err(|d| wrong(way, &d, "as written"))?;
        }
        (Err(_), Err(_)) => {}
        (Ok(_), Err(e)) => return Err(failed(way, e, "only after passes")),
        (Err(e), Ok(_)) => return Err(failed(way, &e, "only before passes")),
    }
    Ok(Known { inputs, want })
}

/// Bit for bit, or as near as the freedom allows.
fn same(
    (case, p): (&Case, &Program),
    have: &[Array],
    want: &[Array],
    inputs: &[Array],
    freedom: Freedom,
) -> Result<(), Difference> {
    let Err(first) = differing(have, want) else { return Ok(()) };
    match unexplained(p, inputs, (have, want), freedom, case.data == Data::Special) {
        None => Err(first),
        Some(left) => left.map_or(Ok(()), Err),
    }
}

fn run((case, given): (&Case, &Verified), ready: &Program, way: Way, known: &[Known]) -> Result<(), Failure> {
    let freedom = match way {
        Way::Native { contract: true, .. } => Freedom::Contraction,
        // Sums over sizes that are symbols have the order of the loops that fit all sizes.
        _ if case.program.is_symbolic() => Freedom::Sums,
        _ => Freedom::Products,
    };
    let (code, native) = match caught(way, || compiled((case, given), ready, way))? {
        Ok(found) => found,
        Err(e) => return Err(failed(way, &e, "while compiling")),
    };
    // Results of earlier calls stay alive and are looked at again when all calls are done: no call may touch them.
    let mut kept: Vec<(usize, usize, Vec<Array>)> = Vec::new();
    let compare = |k: &Known, round: usize, have: &[Array], what: &str| match &k.want[round] {
        Ok(want) => same((case, ready), have, want, &k.inputs[round], freedom).map_err(|d| wrong(way, &d, what)),
        Err(e) => Err(failed(way, e, "in the interpreter alone")),
    };
    for (s, k) in known.iter().enumerate() {
        // The first inputs come again at the end, into memory that other numbers were in.
        let rounds = if way == Way::Evaluator { vec![0] } else { vec![0, 1, 2, 0] };
        for (n, round) in rounds.into_iter().enumerate() {
            match (caught(way, || code.run(&k.inputs[round]))?, &k.want[round]) {
                (Ok(have), Ok(_)) => {
                    compare(k, round, &have, if n == 3 { "on the first inputs again" } else { "" })?;
                    // One of them is dropped, so that its memory is used again.
                    if n != 1 {
                        kept.push((s, round, have.into_vec()));
                    }
                }
                (Err(_), Err(_)) => {}
                (Err(e), Ok(_)) => return Err(failed(way, &e, "while running")),
                (Ok(_), Err(e)) => return Err(failed(way, e, "in the interpreter alone")),
            }
        }
    }
    for (s, round, have) in &kept {
        compare(&known[*s], *round, have, "in a result kept from an earlier call")?;
    }
    let prepares = matches!(way, Way::Native { vectors: Some(Vectors::Best) | None, contract: false });
    if let Some(native) = native.filter(|_| prepares && !case.program.is_symbolic()) {
        for round in [0, 1] {
            let Ok(Some(have)) = caught(way, || prepared::run(&native, &known[0].inputs[round]))? else { break };
            if known[0].want[round].is_ok() {
                compare(&known[0], round, &have, "in a prepared call")?;
            }
        }
    }
    Ok(())
}

type Code = (Arc<dyn Executable>, Option<Arc<Native>>);

/// Whether code is planned for several threads: every other case is for one, which goes through memory less often.
fn shares(case: &Case) -> bool {
    case.seed.is_multiple_of(2)
}

/// The stages that a way of running takes a case through. What the interpreter and the evaluator run is not contracted.
fn pipeline(case: &Case, way: Way) -> Pipeline {
    let (vectors, contract) = match way {
        Way::Native { vectors, contract } => (vectors, contract),
        Way::Passes | Way::Evaluator => (Some(Vectors::Best), false),
    };
    Pipeline::on(Cpu::from(Options {
        tier: if vectors.is_some() { Tier::Embedded } else { Tier::Llvm },
        contract,
        small: case.small,
        threads: shares(case),
        vectors: vectors.unwrap_or_default(),
        fill: true,
        // Short pieces: main bodies of ordinary programs are cut, too.
        piece: if case.seed.is_multiple_of(3) { 7 } else { Options::default().piece },
    }))
}

fn compiled((case, given): (&Case, &Verified), ready: &Program, way: Way) -> Result<Code> {
    if !matches!(way, Way::Native { .. }) {
        let lowered = gradus_cpu::lower::lower_with(ready, case.small, shares(case))?;
        gradus_cpu::ir::verify(&lowered.module)?;
        return Ok((Arc::new(Evaluated { lowered, signature: case.program.clone() }), None));
    }
    let code = pipeline(case, way).compile(given)?;
    let native = code.clone().as_any().downcast::<Native>().ok();
    if matches!(way, Way::Native { vectors: None, .. })
        && let Some(Err(Some(why))) = native.as_ref().map(|n| n.tier())
    {
        return Err(Error::new(ErrorKind::Rule, format!("LLVM made no code: {why}")));
    }
    Ok((code, native))
}

/// Numbers and names of values are of one case; what is left says what sort of failure it is.
fn generic(message: &str) -> String {
    let mut out = String::new();
    let mut digit = false;
    for c in message.lines().next().unwrap_or("").chars() {
        if c.is_ascii_digit() {
            if !digit {
                out.push('#');
            }
            digit = true;
        } else {
            digit = false;
            out.push(c);
        }
    }
    out.chars().take(120).collect()
}

fn failed(way: Way, e: &Error, what: &str) -> Failure {
    let class = format!("error {}: {}", what, generic(e.message()));
    Failure { way: way.name().into(), class, message: format!("{what}: {e}") }
}

fn wrong(way: Way, d: &Difference, what: &str) -> Failure {
    let class = if what.is_empty() { "wrong numbers".to_string() } else { format!("wrong numbers {what}") };
    let message = format!("output {}: {} of {} elements differ; {} {what}", d.output, d.count.0, d.count.1, d.text);
    Failure { way: way.name().into(), class, message }
}

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Panics of this process are kept instead of shown: [`check`] reports them.
pub fn keep_panics() {
    std::panic::set_hook(Box::new(|info| {
        PANIC.with(|p| p.replace(info.to_string()));
    }));
}

fn caught<T>(way: Way, f: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|_| {
        let message = PANIC.with(|p| p.take()).replace('\n', " ");
        Failure { way: way.name().into(), class: format!("panic: {}", generic(&message)), message }
    })
}

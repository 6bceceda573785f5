//! From traced functions to control flow: arrays that a body captured become operands, carries that never change
//! become constants, views of constants are taken outside, and a scan that saves memory becomes scans of checkpoints.

mod views;

use std::sync::Arc;

use self::views::Outside;
use crate::array::{Array, Form};
use crate::error::{Location, Result, error, fail};
use crate::primitives::Op;
use crate::primitives::control::{
    Checkpoint, CustomJvp, CustomVjp, Groups, LinearSolve, Name, Policy, Root, Scan, StopGradient, Switch, While, apply,
};
use crate::program::{Atom, Builder, Program};
use crate::trace::{Traced, bind, trace_closed};
use crate::types::{DType, Dim, Type};

/// What a scan keeps for reverse mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Steps {
    /// What every step needs.
    #[default]
    Keep,
    /// The carries of every so many steps; what is between them is computed again. With the square root of the number
    /// of steps, memory is about twice that many carries.
    Every(usize),
    /// A few carries on each of several levels: memory grows with the logarithm of the number of steps, and each step
    /// is computed once more for each level.
    Recursive,
}

/// How many pieces a recursive checkpoint is cut into on each level: eight levels of eight are sixteen million steps.
const BRANCHING: usize = 8;

/// How a `while` loop gets at its steps in reverse mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// At most so many states in memory, at least two; steps between them are computed again, each at most r times, where r
    /// is the least number with C(states - 1 + r, r) at least the number of steps: 5 for a hundred thousand steps and 32
    /// states.
    Checkpoints(usize),
    /// The loop ends after so many steps at the latest, and what each of them needs is kept. One that would have gone on is
    /// warned of, once per program: [W0007](crate::warnings::WarningKind::LoopCutOff).
    Limit(usize),
}

impl Default for History {
    fn default() -> History {
        History::Checkpoints(While::CHECKPOINTS)
    }
}

/// What captured arrays of several functions become together.
struct Captures {
    arrays: Vec<Array>,
}

impl Captures {
    fn of<'a>(traced: impl IntoIterator<Item = &'a Traced>) -> Captures {
        let mut arrays: Vec<Array> = Vec::new();
        for a in traced.into_iter().flat_map(|t| &t.captures) {
            if !arrays.iter().any(|b| same(a, b)) {
                arrays.push(a.clone());
            }
        }
        Captures { arrays }
    }

    fn types(&self) -> Result<Vec<Type>> {
        self.arrays.iter().map(|a| a.ty().cloned()).collect()
    }

    fn position(&self, array: &Array) -> Result<usize> {
        let found = self.arrays.iter().position(|b| same(array, b));
        found.ok_or_else(|| error!(Rule, "a captured array was lost"))
    }

    /// A function's program with every capture as an input: before its own inputs (`front`) or behind them.
    fn widen(&self, traced: &Traced, front: bool) -> Result<Program> {
        let p = &traced.program;
        let own = p.inputs().len() - traced.captures.len();
        let captures = self.types()?;
        let mut b = Builder::new(p.name());
        let (first, behind) =
            if front { (captures.as_slice(), &p.inputs()[..own]) } else { (&p.inputs()[..own], captures.as_slice()) };
        let atoms: Vec<Atom> =
            first.iter().chain(behind).map(|t| b.input(t.clone()).map(Atom::from)).collect::<Result<_>>()?;
        let (start, shift) = if front { (self.arrays.len(), 0) } else { (0, own) };
        let mut inputs: Vec<Atom> = (0..own).map(|i| atoms[start + i]).collect();
        for a in &traced.captures {
            inputs.push(atoms[shift + self.position(a)?]);
        }
        let outputs = b.inline(p, &inputs, Location::unknown())?;
        Ok(b.finish(outputs))
    }
}

/// Whether two arrays are one.
fn same(a: &Array, b: &Array) -> bool {
    match (a.form(), b.form()) {
        (Form::Concrete(x), Form::Concrete(y)) => Arc::ptr_eq(x, y),
        (Form::Remote(x), Form::Remote(y)) => Arc::ptr_eq(x, y),
        (Form::Traced(x), Form::Traced(y)) => x.is_same(y),
        _ => false,
    }
}

fn joined(parts: &[&[Array]]) -> Vec<Array> {
    parts.concat()
}

/// Runs the branch of a number on arguments.
#[track_caller]
pub fn switch(index: &Array, branches: &[Traced], args: &[Array]) -> Result<Vec<Array>> {
    let captures = Captures::of(branches);
    let branches = branches.iter().map(|t| captures.widen(t, false)).collect::<Result<Vec<_>>>()?;
    let Outside { programs, given } = views::outside(branches, args.len(), captures.arrays)?;
    let operands = joined(&[std::slice::from_ref(index), args, &given]);
    apply(Op::new(Switch { branches: programs.into_iter().map(Arc::new).collect() }), &operands)
}

/// Which carries a body gives back as they came: for each, whether its output is its own input.
fn unchanged(body: &Program, consts: usize, carries: usize) -> Vec<bool> {
    (0..carries).map(|i| body.outputs()[i].value().is_some_and(|v| v.index() == consts + i)).collect()
}

/// The order of inputs after some carries were made constants, and the outputs that stay.
fn with_constants(consts: usize, fixed: &[bool], inputs: usize, outputs: usize) -> (Vec<usize>, Vec<usize>) {
    let on = |wanted: bool| (0..fixed.len()).filter(move |i| fixed[*i] == wanted);
    let order = (0..consts).chain(on(true).map(|i| consts + i)).chain(on(false).map(|i| consts + i));
    let order = order.chain(consts + fixed.len()..inputs).collect();
    (order, on(false).chain(fixed.len()..outputs).collect())
}

/// Puts results of carries that changed between those that did not.
fn merged(carries: &[Array], fixed: &[bool], results: Vec<Array>) -> Vec<Array> {
    let mut results = results.into_iter();
    let mut all: Vec<Array> = carries
        .iter()
        .zip(fixed)
        .filter_map(|(c, same)| if *same { Some(c.clone()) } else { results.next() })
        .collect();
    all.extend(results);
    all
}

/// Runs a body for each element of sequences. The body takes carries, then elements. `unroll` steps stand in a row in the
/// program, so that a step of the loop is longer and there are fewer of them.
#[track_caller]
pub fn scan(
    body: &Traced,
    carries: &[Array],
    sequences: &[Array],
    length: &Dim,
    reverse: bool,
    unroll: usize,
    steps: Steps,
) -> Result<Vec<Array>> {
    let captures = Captures::of([body]);
    let consts = captures.arrays.len();
    let wide = captures.widen(body, true)?;
    if wide.outputs().len() < carries.len() {
        fail!(Signature, "`{}` gives fewer results than there are carries", wide.name());
    }
    let fixed = unchanged(&wide, consts, carries.len());
    let (inputs, outputs) = with_constants(consts, &fixed, wide.inputs().len(), wide.outputs().len());
    let program = wide.rearranged(&inputs, &outputs)?;
    let count = fixed.iter().filter(|f| **f).count();
    let operands = joined(&[&captures.arrays, carries, sequences]);
    let mut constants: Vec<Array> = inputs.iter().map(|i| operands[*i].clone()).collect();
    let varying = constants.split_off(consts + count);
    let Outside { programs, given } = views::outside(vec![program], 0, constants)?;
    let [body] = <[Program; 1]>::try_from(programs).map_err(|_| error!(Rule, "a body was lost"))?;
    let op = Scan {
        body: Arc::new(body),
        consts: given.len(),
        carries: carries.len() - count,
        length: length.clone(),
        reverse,
    };
    let operands = joined(&[&given, &varying]);
    let results = match length.as_usize() {
        Some(n) => Pieces { scan: &op, unroll: unroll.max(1) }.run(&operands, n, &sizes(steps, n)?)?,
        None if steps != Steps::Keep => {
            return Err(error!(NotConcrete, "a scan of {length} steps cannot be cut into checkpoints").help(
                "checkpoints need a known number of steps; keep every step, or trace without a symbolic length",
            ));
        }
        None => apply(Op::new(op), &operands)?,
    };
    Ok(merged(carries, &fixed, results))
}

/// The sizes of pieces, large to small.
fn sizes(steps: Steps, n: usize) -> Result<Vec<usize>> {
    match steps {
        Steps::Keep => Ok(Vec::new()),
        Steps::Every(0) => {
            Err(error!(Value, "a checkpoint every 0 steps").help("give the number of steps between two"))
        }
        Steps::Every(k) => Ok(vec![k]),
        Steps::Recursive => {
            let powers = std::iter::successors(Some(BRANCHING), |m| m.checked_mul(BRANCHING));
            let mut sizes: Vec<usize> = powers.take_while(|m| *m < n).collect();
            sizes.reverse();
            Ok(sizes)
        }
    }
}

/// A scan that runs in pieces.
struct Pieces<'a> {
    scan: &'a Scan,
    unroll: usize,
}

impl Pieces<'_> {
    /// Runs `n` steps in pieces of the first size that is smaller, each a checkpoint that is cut in the same way; steps
    /// that are not cut run as they are, or some in a row.
    fn run(&self, operands: &[Array], n: usize, sizes: &[usize]) -> Result<Vec<Array>> {
        if let Some(at) = sizes.iter().position(|m| *m < n) {
            let piece = |m: usize| self.checkpoint(m, &sizes[at + 1..]);
            return self.in_chunks(operands, n, sizes[at], piece);
        }
        if self.unroll > 1 && n > 1 {
            return self
                .in_chunks(operands, n, self.unroll.min(n), |m| self.steps("in_a_row", m, |xs| self.in_a_row(xs, m)));
        }
        let op = Scan { length: Dim::from(n), ..self.scan.clone() };
        apply(Op::new(op), operands)
    }

    /// Runs `n` steps as a scan over chunks of `m`, and the rest, which does not fill a chunk, by itself.
    fn in_chunks(
        &self,
        operands: &[Array],
        n: usize,
        m: usize,
        chunk: impl Fn(usize) -> Result<Arc<Program>>,
    ) -> Result<Vec<Array>> {
        let scan = self.scan;
        let (whole, rest) = (n / m, n % m);
        let Groups { consts, carries: start, sequences } = scan.groups(operands);
        let with_leading = |x: &Array, leading: &[usize], skip: usize| {
            x.reshape(
                leading.iter().map(|d| Dim::from(*d)).chain(x.shape().iter().skip(skip).cloned()).collect::<Vec<_>>(),
            )
        };
        let cut = |x: &Array, from: usize, to: usize| x.split_at(&[from, to], 0).swap_remove(1);
        let apart = |mut out: Vec<Array>| {
            let ys = out.split_off(scan.carries);
            (out, ys)
        };
        let main = |carries: &[Array]| -> Result<(Vec<Array>, Vec<Array>)> {
            let chunks: Vec<Array> =
                sequences.iter().map(|x| with_leading(&cut(x, 0, whole * m), &[whole, m], 1)).collect();
            let op = Scan { body: chunk(m)?, length: Dim::from(whole), ..scan.clone() };
            let (carries, ys) = apart(apply(Op::new(op), &joined(&[consts, carries, &chunks]))?);
            Ok((carries, ys.iter().map(|y| with_leading(y, &[whole * m], 2)).collect()))
        };
        let tail = |carries: &[Array]| -> Result<(Vec<Array>, Vec<Array>)> {
            let last: Vec<Array> = sequences.iter().map(|x| cut(x, whole * m, n)).collect();
            Ok(apart(crate::trace::inline(&*chunk(rest)?, &joined(&[consts, carries, &last]))?))
        };
        // The last steps come last; from the end, they come first.
        let (carries, first, last) = match (rest, scan.reverse) {
            (0, _) => {
                let (carries, ys) = main(start)?;
                return Ok(joined(&[&carries, &ys]));
            }
            (_, false) => {
                let (carries, first) = main(start)?;
                let (carries, last) = tail(&carries)?;
                (carries, first, last)
            }
            (_, true) => {
                let (carries, last) = tail(start)?;
                let (carries, first) = main(&carries)?;
                (carries, first, last)
            }
        };
        let both = first.into_iter().zip(last).map(|(a, b)| Array::concatenate([a, b], 0).ok());
        Ok(joined(&[&carries, &both.collect::<Result<Vec<_>>>()?]))
    }

    /// A program over constants, carries, and sequences of `m` elements.
    fn steps(&self, name: &str, m: usize, f: impl FnOnce(&[Array]) -> Result<Vec<Array>>) -> Result<Arc<Program>> {
        let Groups { consts, carries, sequences } = self.scan.groups(self.scan.body.inputs());
        let sequences = sequences.iter().map(|t| t.with_shape(t.shape().inserted(0, Dim::from(m))));
        let specs: Vec<Array> = consts.iter().chain(carries).cloned().chain(sequences).map(Array::of_type).collect();
        trace_closed(name, &specs, f).map(Arc::new)
    }

    /// `m` steps as one checkpoint, cut into pieces itself.
    fn checkpoint(&self, m: usize, smaller: &[usize]) -> Result<Arc<Program>> {
        let program = self.steps("steps", m, |xs| self.run(xs, m, smaller))?;
        let op = Op::new(Checkpoint { program, policy: Policy::Nothing });
        self.steps("piece", m, |xs| apply(op, xs))
    }

    /// `m` steps, one after the other in one program.
    fn in_a_row(&self, xs: &[Array], m: usize) -> Result<Vec<Array>> {
        let scan = self.scan;
        let Groups { consts, carries: start, sequences } = scan.groups(xs);
        let mut carries = start.to_vec();
        let mut made: Vec<Vec<Array>> = Vec::with_capacity(m);
        for k in 0..m {
            let i = if scan.reverse { m - 1 - k } else { k };
            let elements: Vec<Array> = sequences.iter().map(|x| x.index(i as i64)).collect();
            carries = crate::trace::inline(&scan.body, &joined(&[consts, &carries, &elements]))?;
            made.push(carries.split_off(scan.carries));
        }
        if scan.reverse {
            made.reverse();
        }
        let ys = scan.body.outputs().len() - scan.carries;
        let stacked = (0..ys).map(|j| Array::stack(made.iter().map(|step| step[j].clone()), 0).ok());
        Ok(joined(&[&carries, &stacked.collect::<Result<Vec<_>>>()?]))
    }
}

/// Runs a body while a condition holds. Both take the carries.
#[track_caller]
pub fn while_loop(condition: &Traced, body: &Traced, carries: &[Array], history: History) -> Result<Vec<Array>> {
    let captures = Captures::of([condition, body]);
    let consts = captures.arrays.len();
    let (condition, body) = (captures.widen(condition, true)?, captures.widen(body, true)?);
    if body.outputs().len() != carries.len() {
        fail!(Signature, "`{}` gives {} results for {} carries", body.name(), body.outputs().len(), carries.len());
    }
    let fixed = unchanged(&body, consts, carries.len());
    let (inputs, outputs) = with_constants(consts, &fixed, body.inputs().len(), body.outputs().len());
    let count = fixed.iter().filter(|f| **f).count();
    let (limit, checkpoints) = match history {
        // Room for all of them is there before the first step, and with a million each step is computed twice at most.
        History::Checkpoints(n) => (None, n.min(1 << 20)),
        // More than can be counted are as good as any.
        History::Limit(most) => (Some(most.min(i64::MAX as usize)), While::CHECKPOINTS),
    };
    let programs = vec![condition.rearranged(&inputs, &[0])?, body.rearranged(&inputs, &outputs)?];
    let operands = joined(&[&captures.arrays, carries]);
    let mut constants: Vec<Array> = inputs.iter().map(|i| operands[*i].clone()).collect();
    let varying = constants.split_off(consts + count);
    let Outside { programs, given } = views::outside(programs, 0, constants)?;
    let [condition, body] = <[Program; 2]>::try_from(programs).map_err(|_| error!(Rule, "a body was lost"))?;
    let (condition, body) = (Arc::new(condition), Arc::new(body));
    let op = While { limit, checkpoints, ..While::plain(condition, body, given.len()) };
    let results = apply(Op::new(op), &joined(&[&given, &varying]))?;
    Ok(merged(carries, &fixed, results))
}

/// Runs a function whose derivative computes it again, but for what the policy saves.
#[track_caller]
pub fn checkpoint(function: &Traced, args: &[Array], policy: Policy) -> Result<Vec<Array>> {
    let op = Checkpoint { program: Arc::new(function.program.clone()), policy };
    apply(Op::new(op), &joined(&[args, &function.captures]))
}

fn inexact(types: &[Type]) -> Vec<Type> {
    types.iter().filter(|t| t.dtype().is_inexact()).cloned().collect()
}

/// Runs a function with a forward rule of its own. The rule takes arguments and tangents of those that have
/// derivatives, and gives results and tangents of those that have.
#[track_caller]
pub fn custom_jvp(function: &Traced, rule: &Traced, args: &[Array]) -> Result<Vec<Array>> {
    let captures = Captures::of([function, rule]);
    let count = captures.arrays.len();
    let function = captures.widen(function, false)?;
    let rule = captures.widen(rule, false)?;
    // The rule takes captures behind the arguments, and tangents of both at the end.
    let types = function.inputs().to_vec();
    let dots = inexact(&types[..args.len()]).len();
    let mut b = Builder::new(rule.name());
    let atoms: Vec<Atom> =
        types.iter().cloned().chain(inexact(&types)).map(|t| b.input(t).map(Atom::from)).collect::<Result<_>>()?;
    let (values, tangents) = atoms.split_at(types.len());
    let (own, captured) = values.split_at(args.len());
    let inputs: Vec<Atom> = own.iter().chain(&tangents[..dots]).chain(captured).copied().collect();
    let outputs = b.inline(&rule, &inputs, Location::unknown())?;
    let op = CustomJvp { function: Arc::new(function), rule: Arc::new(b.finish(outputs)), captures: count };
    apply(Op::new(op), &joined(&[args, &captures.arrays]))
}

/// Runs a function with a backward pass of its own. `forward` gives the results and what the backward pass needs;
/// `backward` takes that and cotangents of results that have derivatives, and gives cotangents of such arguments.
#[track_caller]
pub fn custom_vjp(function: &Traced, forward: &Traced, backward: &Traced, args: &[Array]) -> Result<Vec<Array>> {
    let captures = Captures::of([function, forward, backward]);
    let count = captures.arrays.len();
    let results = function.program.outputs().len();
    let function = captures.widen(function, false)?;
    let forward = captures.widen(forward, false)?;
    // Captures pass to the backward pass with what the forward pass saved.
    let types = function.inputs().to_vec();
    let residuals = forward.outputs().len().saturating_sub(results);
    let mut b = Builder::new(forward.name());
    let atoms: Vec<Atom> = types.iter().map(|t| b.input(t.clone()).map(Atom::from)).collect::<Result<_>>()?;
    let mut outputs = b.inline(&forward, &atoms, Location::unknown())?;
    outputs.extend_from_slice(&atoms[args.len()..]);
    let forward = b.finish(outputs);
    let wide = captures.widen(backward, false)?;
    let own = wide.inputs().len() - count;
    let order: Vec<usize> = (0..residuals).chain(own..own + count).chain(residuals..own).collect();
    let every: Vec<usize> = (0..wide.outputs().len()).collect();
    let turned = wide.rearranged(&order, &every)?;
    let mut b = Builder::new(turned.name());
    let atoms: Vec<Atom> = turned.inputs().iter().map(|t| b.input(t.clone()).map(Atom::from)).collect::<Result<_>>()?;
    let mut bars = b.inline(&turned, &atoms, Location::unknown())?;
    // Captures are not differentiated; the operation refuses to, so that their zeros are never used.
    for t in inexact(&types[args.len()..]) {
        let zero = crate::types::Scalar::zero(t.dtype());
        bars.push(b.constant(crate::program::Constant::splat(t, zero)));
    }
    let op = CustomVjp {
        function: Arc::new(function),
        forward: Arc::new(forward),
        backward: Arc::new(b.finish(bars)),
        captures: count,
    };
    apply(Op::new(op), &joined(&[args, &captures.arrays]))
}

/// The transpose of a linear function: from its captures and cotangents of its results to cotangents of its arguments.
#[track_caller]
pub fn transposed(map: &Traced) -> Result<Program> {
    let p = &map.program;
    let own = p.inputs().len() - map.captures.len();
    let linear: Vec<bool> = (0..p.inputs().len()).map(|i| i < own).collect();
    crate::transform::transpose(p, &linear).map_err(|e| {
        error!(Value, "the map of a linear system is not linear").note(e.to_string()).help(
            "it must be a sum of products with its argument, such as `a.matmul(x)`; solve other equations with `root`",
        )
    })
}

/// The solution of a linear system. All take arrays of the types of `b`: the map, a solver, and a solver of the transposed system.
#[track_caller]
pub fn linear_solve(map: &Traced, solve: &Traced, transposed_solve: &Traced, b: &[Array]) -> Result<Vec<Array>> {
    let captures = Captures::of([map, solve, transposed_solve]);
    let op = LinearSolve {
        map: Arc::new(captures.widen(map, true)?),
        solve: Arc::new(captures.widen(solve, true)?),
        transposed_solve: Arc::new(captures.widen(transposed_solve, true)?),
        consts: captures.arrays.len(),
    };
    apply(Op::new(op), &joined(&[&captures.arrays, b]))
}

/// An equation linearized in its first arguments: from all its arguments, its captures and a direction to what the equation changes by; and the transpose of that.
#[track_caller]
pub fn linearized(equation: &Traced, unknowns: usize) -> Result<(Arc<Program>, Program)> {
    let map = Root::map(&equation.program, unknowns)?;
    let known = equation.program.inputs().len();
    let linear: Vec<bool> = (0..map.inputs().len()).map(|i| i >= known).collect();
    let back = crate::transform::transpose(&map, &linear)?;
    Ok((map, back))
}

/// The root of an equation. The solver takes `args`, the equation the unknowns and `args`, the linear solvers those and a side.
#[track_caller]
pub fn root(
    solver: &Traced,
    equation: &Traced,
    (solve, transposed_solve): (&Traced, &Traced),
    args: &[Array],
) -> Result<Vec<Array>> {
    let captures = Captures::of([solver, equation, solve, transposed_solve]);
    // Captures stand behind the arguments, and a side behind them.
    let sided = |t: &Traced| -> Result<Arc<Program>> {
        let wide = captures.widen(t, false)?;
        let own = wide.inputs().len() - captures.arrays.len();
        let side = own - solver.program.outputs().len();
        let order: Vec<usize> = (0..side).chain(own..wide.inputs().len()).chain(side..own).collect();
        let every: Vec<usize> = (0..wide.outputs().len()).collect();
        wide.rearranged(&order, &every).map(Arc::new)
    };
    let op = Root {
        solver: Arc::new(captures.widen(solver, false)?),
        equation: Arc::new(captures.widen(equation, false)?),
        solve: sided(solve)?,
        transposed_solve: sided(transposed_solve)?,
    };
    apply(Op::new(op), &joined(&[args, &captures.arrays]))
}

impl Array {
    /// The same numbers, with a derivative of zero: gradients do not pass.
    #[track_caller]
    pub fn stop_gradient(&self) -> Array {
        bind(Op::new(StopGradient {}), std::slice::from_ref(self))
    }

    /// The same numbers under a name that a checkpoint's policy can ask for.
    #[track_caller]
    pub fn checkpoint_name(&self, name: &str) -> Array {
        bind(Op::new(Name { name: name.to_string() }), std::slice::from_ref(self))
    }
}

/// A predicate as the number of a branch.
#[track_caller]
pub fn branch_number(predicate: &Array) -> Result<Array> {
    /// More branches than anyone has.
    const FAR: i32 = i32::MAX;
    let ty = predicate.ty()?;
    if ty.rank() != 0 || ty.dtype().is_inexact() {
        return Err(error!(DType, "a branch is chosen by a bool or an integer without axes, not by {ty}")
            .help("reduce it with `.any()` or `.all()`; to choose element by element use `mask.select(a, b)`"));
    }
    // A position far outside stays outside: the low bits of a wide number would be any position.
    match ty.dtype() {
        DType::I64 | DType::U64 | DType::U32 => predicate.clamp(0, FAR).cast(DType::I32).ok(),
        _ => predicate.cast(DType::I32).ok(),
    }
}

/// A predicate as a bool: an integer is true where it is not 0.
pub fn truth(predicate: &Array) -> Array {
    match predicate.ty() {
        Ok(ty) if ty.dtype().is_int() => predicate.ne(0),
        _ => predicate.clone(),
    }
}

//! Steps that hold programs: calls, branches, loops, checkpoints and functions with rules of their own. What they hold
//! is made for the purpose, of the same steps, and every loop ends: a counter sees to that.

use std::sync::Arc;

use super::{DEEPEST, Done, Maker, Recipe};
use crate::error::Location;
use crate::primitives::Op;
use crate::primitives::control::{
    Call, Checkpoint, CustomJvp, CustomLinear, CustomVjp, LinearSolve, Name, Policy, Root, Scan, StopGradient, Switch,
    While,
};
use crate::primitives::convert::Convert;
use crate::primitives::elementwise::{Compare, Direction};
use crate::primitives::reduce::ReduceMax;
use crate::program::{Atom, Builder, Constant, Program, ValueId};
use crate::transform::{Linearized, jvp, vjp};
use crate::types::{DType, Dim, Scalar, Type};

/// The most steps of a loop, about.
const LONGEST: i64 = 6;
/// Names that values get and checkpoints ask for.
const NAMES: [&str; 3] = ["hidden", "state", "sum"];

impl<'b> Maker<'_, 'b> {
    /// A program that an operation holds.
    fn nested(
        &mut self,
        name: &str,
        inputs: &[Type],
        outputs: impl FnOnce(&mut Maker<'_, 'b>) -> Vec<Atom>,
    ) -> Arc<Program> {
        self.nested_by(self.recipe, name, inputs, outputs)
    }

    fn nested_by(
        &mut self,
        recipe: Recipe,
        name: &str,
        inputs: &[Type],
        outputs: impl FnOnce(&mut Maker<'_, 'b>) -> Vec<Atom>,
    ) -> Arc<Program> {
        let recipe = Recipe { equations: 1 + self.source.below(5), ..recipe };
        let name = format!("{name}{}", self.depth);
        Arc::new(Maker::run(self.source, recipe, self.palette, &name, inputs, self.depth + 1, outputs))
    }

    /// Operands, and a function of them.
    fn function(&mut self, recipe: Recipe) -> (Vec<Atom>, Arc<Program>) {
        let operands = self.some(1);
        let types = self.types(&operands);
        let program = self.nested_by(recipe, "inner", &types, |b| b.some_outputs());
        (operands, program)
    }

    /// A few values: up to two more than `least`.
    fn some(&mut self, least: usize) -> Vec<Atom> {
        (0..least + self.source.below(3)).filter_map(|_| self.any()).collect()
    }

    fn types(&self, atoms: &[Atom]) -> Vec<Type> {
        atoms.iter().map(|a| self.ty(*a)).collect()
    }

    /// A result of a wanted type. A late value most often, so that what the program computes matters.
    fn result(&mut self, ty: &Type) -> Atom {
        let fitting: Vec<Atom> = self.pool.iter().copied().filter(|a| self.builder.ty(*a) == ty).collect();
        let back = self.source.below(fitting.len().min(3));
        match fitting.iter().rev().nth(back) {
            Some(x) if self.source.chance(85) => *x,
            _ => self.of_type(ty),
        }
    }

    fn results(&mut self, types: &[Type]) -> Vec<Atom> {
        types.iter().map(|t| self.result(t)).collect()
    }

    /// What a loop carries on. Smooth programs keep it small: a few squares of squares are beyond all slopes.
    fn carried(&mut self, types: &[Type]) -> Vec<Atom> {
        let tame = |m: &mut Self, x: Atom| match m.recipe.smooth && m.ty(x).dtype() == DType::F64 {
            true => m.named("sin", &[x]).unwrap_or(x),
            false => x,
        };
        let results = self.results(types);
        results.into_iter().map(|x| tame(self, x)).collect()
    }

    /// Some number of the program, for decisions. Those of smooth programs are moved away from round numbers, where
    /// one rounding error would make another decision; the largest of nothing is infinite and not for them.
    fn scalar(&mut self) -> Option<Atom> {
        let smooth = self.recipe.smooth;
        let some = |t: &Type| !smooth || t.shape().count().is_some_and(|n| n > 0);
        let x = self.any_of(|t| !t.dtype().is_complex() && t.dtype() != DType::Bool && some(t))?;
        let axes: Vec<usize> = (0..self.ty(x).rank()).collect();
        let x = if axes.is_empty() { x } else { self.one(Op::new(ReduceMax { axes }), &[x])? };
        let ty = self.ty(x);
        if !smooth || !ty.dtype().is_float() {
            return Some(x);
        }
        let (times, more) = (self.splat(&ty, 1.37), self.splat(&ty, 0.613));
        let x = self.named("mul", &[x, times])?;
        self.named("add", &[x, more])
    }

    /// A number of this dtype, some outside of `0..n`.
    fn number(&mut self, dtype: DType, n: usize) -> Atom {
        let ty = Type::scalar(dtype);
        let there = match self.source.below(4) {
            0 => None,
            1 => self.any_of(|t| *t == ty),
            _ => self.scalar().and_then(|x| self.one(Op::new(Convert { dtype }), &[x])),
        };
        let value = self.source.below(n + 2) as f64 - if dtype.is_unsigned() { 0.0 } else { 1.0 };
        there.unwrap_or_else(|| self.splat(&ty, value))
    }

    /// Whether to go one program deeper: less often the deeper it is, or most of a program would be inside.
    fn may_nest(&mut self) -> Done {
        (self.depth < DEEPEST && (self.depth == 0 || self.source.chance(40))).then_some(())
    }
}

fn input(i: usize) -> Atom {
    ValueId::new(i).into()
}

/// Runs a program once, plainly.
pub(super) fn call(m: &mut Maker<'_, '_>) -> Done {
    m.may_nest()?;
    let (operands, program) = m.function(m.recipe);
    m.add(Op::new(Call { program }), &operands).map(|_| ())
}

pub(super) fn switch(m: &mut Maker<'_, '_>) -> Done {
    m.may_nest()?;
    let others = m.source.below(4);
    let mut operands = vec![m.number(DType::I32, others + 1)];
    operands.extend(m.some(1));
    let types = m.types(operands.get(1..)?);
    let first = m.nested("branch", &types, |b| b.some_outputs());
    let wanted = first.output_types();
    let mut branches = vec![first];
    for _ in 0..others {
        branches.push(m.nested("branch", &types, |b| b.results(&wanted)));
    }
    m.add(Op::new(Switch { branches }), &operands).map(|_| ())
}

pub(super) fn scan(m: &mut Maker<'_, '_>) -> Done {
    m.may_nest()?;
    let length = match m.source.below(4) {
        0 => Dim::from(m.source.below(5)),
        1 => m.palette.dim(m.source),
        _ => m.with_axis(|_| true).and_then(|(_, t, _)| t.shape().first().cloned())?,
    };
    if !length.evaluate(&|_| Some(3)).is_ok_and(|n| n <= LONGEST) {
        return None;
    }
    let (mut operands, carried) = (m.some(0), m.some(0));
    let (consts, carries) = (operands.len(), carried.len());
    operands.extend(carried);
    let mut elements = m.types(&operands);
    let carried = elements.get(consts..)?.to_vec();
    for _ in 0..m.source.below(3) {
        let there = m.any_of(|t| t.shape().first() == Some(&length));
        let x = there.filter(|_| m.source.chance(75)).unwrap_or_else(|| {
            let element = m.palette.ty(m.source, m.recipe);
            let sequence = element.with_shape(element.shape().inserted(0, length.clone()));
            m.of_type(&sequence)
        });
        let ty = m.ty(x);
        elements.push(ty.with_shape(ty.shape().without(|axis| axis == 0)));
        operands.push(x);
    }
    let made = m.source.below(3);
    let body = m.nested("step", &elements, |b| {
        let mut next = b.carried(&carried);
        next.extend((0..made).filter_map(|_| b.output()));
        next
    });
    let reverse = m.source.chance(40);
    let op = Scan { body, consts, carries, length, reverse };
    m.add(Op::new(op), &operands).map(|_| ())
}

/// A loop that goes on while a counter is small, and at times something else holds too.
pub(super) fn while_loop(m: &mut Maker<'_, '_>) -> Done {
    m.may_nest()?;
    let dtypes: &[DType] = if m.recipe.smooth { &[DType::I32] } else { &[DType::I32, DType::I64, DType::U8] };
    let counter = Type::scalar(m.source.pick(dtypes).copied()?);
    let start = m.number(counter.dtype(), 3);
    let (least, most) = (m.splat(&counter, 0.0), m.splat(&counter, 3.0));
    let start = m.named("clamp", &[least, start, most])?;
    let (mut operands, mut carried) = (m.some(0), m.some(0));
    let consts = operands.len();
    let at = m.source.below(carried.len() + 1);
    carried.insert(at, start);
    operands.extend(carried);
    let types = m.types(&operands);
    let carried = types.get(consts..)?.to_vec();
    let body = m.nested("step", &types, |b| {
        let mut next = b.carried(&carried);
        let one = b.splat(&counter, 1.0);
        if let (Some(slot), Some(count)) = (next.get_mut(at), b.named("add", &[input(consts + at), one])) {
            *slot = count;
        }
        next
    });
    let condition = m.nested("more", &types, |b| {
        let most = if b.depth > 1 { 4 } else { 12 };
        let bound = 1.0 + b.source.below(most) as f64;
        let bound = b.splat(&counter, bound);
        let few = b.one(Op::new(Compare { direction: Direction::Lt }), &[input(consts + at), bound]);
        let also = if b.source.chance(40) { b.question() } else { None };
        let both = few.zip(also).and_then(|(few, also)| b.named("and", &[few, also]));
        both.or(few).into_iter().collect()
    });
    let limit = if m.source.chance(30) { Some(m.source.below(5)) } else { None };
    let checkpoints = 2 + m.source.below(3);
    let op = While { limit, checkpoints, ..While::plain(condition, body, consts) };
    m.add(Op::new(op), &operands).map(|_| ())
}

impl Maker<'_, '_> {
    /// Whether some number is above another.
    fn question(&mut self) -> Option<Atom> {
        let x = self.scalar()?;
        let ty = self.ty(x);
        let y = self.splat(&ty, 0.0);
        self.one(Op::new(Compare { direction: Direction::Ge }), &[x, y])
    }
}

pub(super) fn checkpoint(m: &mut Maker<'_, '_>) -> Done {
    m.may_nest()?;
    let (operands, program) = m.function(m.recipe);
    let policy = match m.source.below(5) {
        0 => Policy::Nothing,
        1 => Policy::Dots,
        2 => {
            Policy::Names((0..m.source.below(3)).filter_map(|_| m.source.pick(&NAMES)).map(|n| n.to_string()).collect())
        }
        3 => Policy::Bytes(m.source.below(100)),
        _ => Policy::Everything,
    };
    m.add(Op::new(Checkpoint { program, policy }), &operands).map(|_| ())
}

/// A name, or an end of derivatives: of numbers that have none where finite differences look.
pub(super) fn marks(m: &mut Maker<'_, '_>) -> Done {
    if m.source.chance(50) {
        let x = m.any()?;
        let name = m.source.pick(&NAMES)?.to_string();
        return m.add(Op::new(Name { name }), &[x]).map(|_| ());
    }
    let smooth = m.recipe.smooth;
    let x = m.any_of(|t| !smooth || !t.dtype().is_inexact())?;
    m.add(Op::new(StopGradient {}), &[x]).map(|_| ())
}

/// A function with its own derivative as its rule, or given by an equation. The function is smooth, so that it has one.
pub(super) fn custom(m: &mut Maker<'_, '_>) -> Done {
    m.may_nest()?;
    let (operands, function) = m.function(Recipe { smooth: true, ..m.recipe });
    let active: Vec<bool> = function.inputs().iter().map(|t| t.dtype().is_inexact()).collect();
    // There is no derivative by a captured value.
    let captures = if m.recipe.smooth { 0 } else { m.source.below(operands.len() + 1) };
    // Maps twice as often: they are where derivatives of loops come from.
    let op = match m.source.below(6) {
        0 => {
            let rule = Arc::new(forward_rule(&function, &active)?);
            Op::new(CustomJvp { function, rule, captures })
        }
        1 => {
            let parts = vjp(&function, &active).ok()?;
            let backward = Arc::new(backward_rule(&function, &parts)?);
            Op::new(CustomVjp { function, forward: Arc::new(parts.primal), backward, captures })
        }
        2 => return system(m),
        3 => Op::new(root_of(&function)?),
        _ => return linear_map(m, &operands, &function, &active),
    };
    m.add(op, &operands).map(|_| ())
}

/// A diagonal linear system whose diagonal is never zero: `(c² + 1) x = b`.
fn system(m: &mut Maker<'_, '_>) -> Done {
    let c = m.any_of(|t| t.dtype().is_float())?;
    let ty = m.ty(c);
    let by = |name: &str, op: &str| -> Option<Arc<Program>> {
        let mut b = Builder::new(name);
        let (c, side) = (Atom::from(b.input(ty.clone()).ok()?), Atom::from(b.input(ty.clone()).ok()?));
        let one = b.constant(Constant::splat(ty.clone(), Scalar::one(ty.dtype())));
        let mut made = |op: &str, x: Atom, y: Atom| -> Option<Atom> {
            Some(b.equation(Op::from_text(op, &[]).ok()?, &[x, y], Location::unknown()).ok()?.result().into())
        };
        let square = made("mul", c, c)?;
        let diagonal = made("add", square, one)?;
        let result = made(op, side, diagonal)?;
        Some(Arc::new(b.finish(vec![result])))
    };
    let op = LinearSolve {
        map: by("map", "mul")?,
        solve: by("solve", "div")?,
        transposed_solve: by("transposed", "div")?,
        consts: 1,
    };
    let side = m.of_type(&ty);
    m.add(Op::new(op), &[c, side]).map(|_| ())
}

/// What a function gives, as the root of `x − f(a) = 0`: its derivative is that of the function, by another way.
fn root_of(function: &Arc<Program>) -> Option<Root> {
    let results = function.output_types();
    if results.iter().any(|t| !t.dtype().is_inexact()) {
        return None;
    }
    let start = |b: &mut Builder, types: &[Type]| -> Option<Vec<Atom>> {
        types.iter().map(|t| b.input(t.clone()).ok().map(Atom::from)).collect()
    };
    let mut b = Builder::new("equation");
    let (x, a) = (start(&mut b, &results)?, start(&mut b, function.inputs())?);
    let found = b.inline(function, &a, Location::unknown()).ok()?;
    let mut zeros = Vec::with_capacity(x.len());
    for (x, y) in x.iter().zip(found) {
        let op = Op::from_text("sub", &[]).ok()?;
        zeros.push(b.equation(op, &[*x, y], Location::unknown()).ok()?.result().into());
    }
    let equation = Arc::new(b.finish(zeros));
    let side = |name: &str| -> Option<Arc<Program>> {
        let mut b = Builder::new(name);
        start(&mut b, equation.inputs())?;
        let side = start(&mut b, &results)?;
        Some(Arc::new(b.finish(side)))
    };
    let (solve, transposed_solve) = (side("solve")?, side("transposed")?);
    Some(Root { solver: function.clone(), equation, solve, transposed_solve })
}

/// Zeros where a result has no tangent.
fn forward_rule(function: &Program, active: &[bool]) -> Option<Program> {
    let (derivative, varies) = jvp(function, active).ok()?;
    let mut b = Builder::like(&derivative);
    let inputs: Vec<Atom> = (0..derivative.inputs().len()).map(input).collect();
    let mut results = b.inline(&derivative, &inputs, Location::unknown()).ok()?;
    let mut dots = results.split_off(function.outputs().len()).into_iter();
    for (ty, varies) in function.output_types().into_iter().zip(varies) {
        if ty.dtype().is_inexact() {
            let zero = Constant::splat(ty.clone(), Scalar::zero(ty.dtype()));
            results.push(if varies { dots.next()? } else { b.constant(zero) });
        }
    }
    Some(b.finish(results))
}

/// A cotangent for every result that could have one, also those that do not vary.
fn backward_rule(function: &Program, parts: &Linearized) -> Option<Program> {
    let mut b = Builder::new(parts.linear.name());
    let mut inputs = Vec::new();
    for ty in &parts.residuals {
        inputs.push(b.input(ty.clone()).ok()?.into());
    }
    for (ty, varies) in function.output_types().into_iter().zip(&parts.varies) {
        if ty.dtype().is_inexact() {
            let bar: Atom = b.input(ty).ok()?.into();
            inputs.extend(varies.then_some(bar));
        }
    }
    let bars = b.inline(&parts.linear, &inputs, Location::unknown()).ok()?;
    Some(b.finish(bars))
}

/// The linear map of a function at a point. It is computed by transposing, which adds up in an order of its own: where
/// every bit counts, the map is a product with a value.
fn linear_map(m: &mut Maker<'_, '_>, operands: &[Atom], function: &Arc<Program>, active: &[bool]) -> Done {
    if !m.recipe.sums {
        let x = m.any_of(|t| t.dtype().is_inexact())?;
        let ty = m.ty(x);
        let mut b = Builder::new("backward");
        let inputs = [b.input(ty.clone()).ok()?.into(), b.input(ty.clone()).ok()?.into()];
        let product = b.equation(Op::from_text("mul", &[]).ok()?, &inputs, Location::unknown()).ok()?.result().into();
        let op = CustomLinear { backward: Arc::new(b.finish(vec![product])), residuals: 1 };
        let y = m.of_type(&ty);
        return m.add(Op::new(op), &[y, x]).map(|_| ());
    }
    let parts = vjp(function, active).ok()?;
    let (primal, backward) = (Arc::new(parts.primal), Arc::new(parts.linear));
    let given = m.add(Op::new(Call { program: primal }), operands)?;
    let mut inputs = given.get(function.outputs().len()..)?.to_vec();
    let dots: Vec<Type> = backward.output_types();
    inputs.extend(dots.iter().map(|t| m.of_type(t)));
    let op = CustomLinear { backward, residuals: parts.residuals.len() };
    m.add(Op::new(op), &inputs).map(|_| ())
}

//! Places where a program is right and its derivative may not be: a `select` that guards a partial function.
//!
//! Both sides of a `select` are computed. In `select(x > 0, sqrt(x), 0)` the value is right at 0, but the derivative of
//! the square root there is infinite, and reverse mode multiplies it by the zero of the side that was not chosen.

use std::fmt;

use crate::error::Location;
use crate::primitives::convert::Convert;
use crate::primitives::elementwise::{Abs, And, Compare, IntegerPow, Mul, Neg, Not, Or, Select, Xor};
use crate::primitives::shaping::{Slice, is_view};
use crate::program::{Atom, Equation, Program, ValueId};
use crate::warnings::{Warning, WarningKind};

/// A place worth a second look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lint {
    /// The line of the `select`.
    pub place: Location,
    /// The name of the operation that it guards.
    pub operation: &'static str,
    /// How that operation is written, with the operand that is tested as `x`; otherwise as a method of its name.
    pub written: Option<&'static str>,
    /// A number that the operation takes well, as it is written.
    pub safe: &'static str,
    /// The line of that operation.
    pub guarded: Location,
}

impl Lint {
    /// What is odd, why, and what to do.
    fn texts(&self) -> [String; 3] {
        let Lint { operation, guarded, written, safe, .. } = self;
        let call = written.map_or_else(|| format!("x.{operation}()"), str::to_string);
        [
            format!(
                "this `select` tests an operand of `{operation}` (at {guarded}), but both of its sides are computed"
            ),
            format!("where the slope of `{operation}` is infinite the derivative is zero times infinity, which is NaN"),
            format!(
                "keep bad operands away from it with `mask.guarded(&x, {safe}, |x| {call}, 0.0)`, or branch with `cond`"
            ),
        ]
    }

    /// The same as a warning.
    pub fn to_warning(&self) -> Warning {
        let [what, why, how] = self.texts();
        Warning::new(WarningKind::SelectOverPartial, what).at(self.place).note(why).help(how)
    }
}

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [what, why, how] = self.texts();
        write!(f, "at {}: {what}\n  note: {why}\n  help: {how}", self.place)
    }
}

/// Every such place of a program and of the programs in it, each once.
pub fn lint(program: &Program) -> Vec<Lint> {
    let mut found = Vec::new();
    look(program, &mut found);
    found
}

fn look(p: &Program, found: &mut Vec<Lint>) {
    let definitions = Definitions::of(p);
    for e in p.equations() {
        e.op().programs().iter().for_each(|inner| look(inner, found));
        if !e.op().is::<Select>() || !p.ty(e.result()).dtype().is_inexact() {
            continue;
        }
        let operands = p.operands(e);
        let tested = definitions.tested(operands[0]);
        for side in &operands[1..] {
            definitions.partial_functions(*side, &tested, |guarded| {
                let op = guarded.op();
                let limits = op.limits();
                let (operation, written, safe) = (op.name(), limits.written, limits.safe);
                let lint = Lint { place: e.place(), operation, written, safe, guarded: guarded.place() };
                // Both in one call: the `select` and what it guards are parts of one operation of a library, which knows what it does.
                let one_call = lint.place.is_known() && lint.place == lint.guarded;
                if !one_call && !found.contains(&lint) {
                    found.push(lint);
                }
            });
        }
    }
}

/// A program with the equation that defines each value.
struct Definitions<'a> {
    program: &'a Program,
    by_value: Vec<Option<&'a Equation>>,
    /// Whether a derivative by an input may reach a value: numbers that are drawn, or counted, have none.
    active: Vec<bool>,
}

impl<'a> Definitions<'a> {
    fn of(program: &'a Program) -> Definitions<'a> {
        let mut by_value = vec![None; program.value_count()];
        let mut active: Vec<bool> = program.inputs().iter().map(|t| t.dtype().is_inexact()).collect();
        active.resize(program.value_count(), false);
        for e in program.equations() {
            let reached = program.operands(e).iter().any(|a| a.value().is_some_and(|v| active[v.index()]));
            for r in e.results() {
                by_value[r.index()] = Some(e);
                active[r.index()] = reached && program.ty(r).dtype().is_inexact();
            }
        }
        Definitions { program, by_value, active }
    }

    fn definition(&self, atom: Atom) -> Option<&'a Equation> {
        self.by_value[atom.value()?.index()]
    }

    /// The value behind changes of shape, sign and scale: what a test of it says something about.
    fn base(&self, mut atom: Atom) -> Atom {
        while let Some(e) = self.definition(atom) {
            let (op, operands) = (e.op(), self.program.operands(e));
            let view = is_view(op) || op.is::<Slice>();
            let keeps = view || op.is::<Neg>() || op.is::<Abs>() || op.is::<Convert>() || op.is::<IntegerPow>();
            let scaled = op.is::<Mul>() && (operands[0] == operands[1] || self.program.constant(operands[1]).is_some());
            if !keeps && !scaled {
                break;
            }
            atom = operands[0];
        }
        atom
    }

    /// What the comparisons behind a mask are about.
    fn tested(&self, mask: Atom) -> Vec<Atom> {
        let (mut open, mut tested) = (vec![mask], Vec::new());
        while let Some(atom) = open.pop() {
            let Some(e) = self.definition(self.base(atom)) else { continue };
            let operands = self.program.operands(e);
            if e.op().is::<Compare>() {
                let values = operands.iter().filter(|a| a.value().is_some());
                tested.extend(values.map(|a| self.base(*a)));
            } else if e.op().is::<And>() || e.op().is::<Or>() || e.op().is::<Xor>() || e.op().is::<Not>() {
                open.extend_from_slice(operands);
            }
        }
        tested
    }

    /// The partial functions on the way to a value whose operand is among those tested.
    fn partial_functions(&self, from: Atom, tested: &[Atom], mut found: impl FnMut(&'a Equation)) {
        let mut seen: Vec<ValueId> = Vec::new();
        let mut open = vec![from];
        while let Some(atom) = open.pop() {
            let (Some(v), Some(e)) = (atom.value(), self.definition(atom)) else { continue };
            // Far enough for what people write in one expression.
            if seen.contains(&v) || seen.len() > 64 {
                continue;
            }
            seen.push(v);
            let operands = self.program.operands(e);
            if let Some(risky) = e.op().limits().operand
                && let Some(operand) = operands.get(risky)
                && operand.value().is_some_and(|v| self.active[v.index()])
                && tested.contains(&self.base(*operand))
            {
                found(e);
            }
            if (e.op().is_elementwise() && !e.op().is::<Select>()) || is_view(e.op()) {
                open.extend_from_slice(operands);
            }
        }
    }
}

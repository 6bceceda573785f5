//! Builds a program equation by equation, each checked by its type rule as it is added.

use rustc_hash::FxHashMap;

use super::{Atom, Constant, Equation, Program, ValueId, as_word};
use crate::error::{Location, Result, error, fail};
use crate::primitives::{Infer, Op, Types};
use crate::stack::DEEPEST;
use crate::types::{Constraint, Type};

/// A program under construction.
#[derive(Default)]
pub struct Builder {
    program: Program,
    constants: FxHashMap<Constant, Atom>,
}

/// More values than this and ids would run into the bit that marks constants.
const MOST_VALUES: usize = 1 << 31;

impl Builder {
    /// An empty program of this name; what cannot stand in a word becomes an underscore.
    pub fn new(name: impl Into<String>) -> Builder {
        Builder { program: Program { name: as_word(name.into()), ..Program::default() }, ..Builder::default() }
    }

    /// An empty program with the name, inputs and constraints of another.
    pub(crate) fn like(p: &Program) -> Builder {
        let mut b = Builder::new(p.name.clone());
        b.program.types.extend_from_slice(p.inputs());
        b.program.inputs = p.inputs;
        b.program.constraints = p.constraints.clone();
        b
    }

    /// The equation that defines a value; none for an input.
    pub(crate) fn definition(&self, value: ValueId) -> Option<&Equation> {
        let p = &self.program;
        let at = p.equations.partition_point(|e| e.first_result as usize <= value.index());
        p.equations[..at].last().filter(|e| e.results().any(|r| r == value))
    }

    /// Adds an input. Inputs come before equations.
    pub fn input(&mut self, ty: Type) -> Result<ValueId> {
        if !self.program.equations.is_empty() {
            return Err(error!(Verify, "an input cannot be added after an equation").help("add all inputs first"));
        }
        self.program.inputs += 1;
        self.program.types.push(ty);
        Ok(ValueId::new(self.program.types.len() - 1))
    }

    /// The atom of a constant; equal constants share one.
    pub fn constant(&mut self, constant: Constant) -> Atom {
        let index = self.program.constants.len();
        *self.constants.entry(constant).or_insert_with_key(|c| {
            self.program.constants.push(c.clone());
            Atom::constant(index)
        })
    }

    /// The type of an atom.
    pub fn ty(&self, atom: Atom) -> &Type {
        self.program.ty(atom)
    }

    /// The program as it stands.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Applies an operation: checks the operands by its type rule and adds the equation.
    pub fn equation(&mut self, op: Op, operands: &[Atom], place: Location) -> Result<&Equation> {
        let inputs: smallvec::SmallVec<[Type; 4]> = operands.iter().map(|a| self.ty(*a).clone()).collect();
        let types = infer(&op, &inputs, &mut self.program.constraints).map_err(|e| e.at(place))?;
        self.push(op, operands, types, place)
    }

    /// Adds an equation whose result types are known to be those of the type rule.
    pub(crate) fn push(&mut self, op: Op, operands: &[Atom], types: Types, place: Location) -> Result<&Equation> {
        let p = &mut self.program;
        if p.types.len() + types.len() >= MOST_VALUES || p.operands.len() + operands.len() >= MOST_VALUES {
            fail!(Size, "a program of more than {MOST_VALUES} values");
        }
        if op.holds_programs() {
            for nested in op.programs() {
                p.depth = p.depth.max(nested.depth + 1);
                if p.depth > DEEPEST {
                    return Err(error!(
                        Size,
                        "programs nest more than {DEEPEST} deep, the last one is `{}`",
                        nested.name()
                    )
                    .help(
                        "turn the recursion into a loop, or leave the inner functions unstaged: they are inlined then",
                    ));
                }
            }
        }
        p.effects = p.effects.union(op.effects());
        p.equations.push(Equation {
            op,
            operands_start: p.operands.len() as u32,
            operands_len: operands.len() as u32,
            first_result: p.types.len() as u32,
            results_len: types.len() as u32,
            place,
        });
        p.operands.extend_from_slice(operands);
        p.types.extend(types);
        p.equations.last().ok_or_else(|| error!(Rule, "no equation"))
    }

    /// Adds conditions on symbolic dimensions.
    pub fn require(&mut self, constraints: &[Constraint]) {
        self.program.require(constraints);
    }

    /// The finished program.
    pub fn finish(mut self, outputs: Vec<Atom>) -> Program {
        self.program.outputs = outputs;
        self.program.types.shrink_to_fit();
        self.program.equations.shrink_to_fit();
        self.program.operands.shrink_to_fit();
        self.program
    }
}

/// Runs an operation's type rule and names the operation in what it refuses.
pub(crate) fn infer(op: &Op, inputs: &[Type], constraints: &mut Vec<Constraint>) -> Result<Types> {
    let types = op.infer(&mut Infer { inputs, constraints }).map_err(|e| e.in_operation(op.name()))?;
    for ty in &types {
        ty.shape().check().map_err(|e| e.in_operation(op.name()))?;
    }
    Ok(types)
}

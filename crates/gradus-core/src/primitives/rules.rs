//! What each rule of a primitive is given, and the answers it can give. `x_dot` is a tangent, `x_bar` a cotangent.

use std::cell::OnceCell;

use smallvec::SmallVec;

use super::shaping::Broadcast;
use super::{Op, Outputs, Types};
use crate::array::{Array, Form};
use crate::error::{Result, fail};
use crate::program::Program;
use crate::trace::{bind_all, record};
use crate::types::{Constraint, DType, Decision, Dim, Shape, Type};

/// The operands of a type rule, and a place for what can only be checked at run time.
pub struct Infer<'a> {
    /// Types of the operands.
    pub inputs: &'a [Type],
    /// Conditions on symbolic dimensions that the call must check.
    pub constraints: &'a mut Vec<Constraint>,
}

impl Infer<'_> {
    /// Refuses another number of operands.
    pub fn arity(&self, wanted: usize) -> Result<()> {
        if self.inputs.len() != wanted {
            fail!(Verify, "takes {wanted} operand(s), not {}", self.inputs.len());
        }
        Ok(())
    }

    /// Whether two dimensions can be taken for equal: yes, or yes once the call has checked it.
    pub fn equal(&mut self, a: &Dim, b: &Dim) -> bool {
        match a.equals(b) {
            Decision::Yes => true,
            Decision::No => false,
            Decision::AtRunTime => {
                self.require(Constraint::Equal(a.clone(), b.clone()));
                true
            }
        }
    }

    /// Whether `a >= b`, or can be taken for so once the call has checked it.
    pub fn at_least(&mut self, a: &Dim, b: &Dim) -> bool {
        match a.at_least(b) {
            Decision::Yes => true,
            Decision::No => false,
            Decision::AtRunTime => {
                self.require(Constraint::AtLeast(a.clone(), b.clone()));
                true
            }
        }
    }

    /// Notes a condition for the call to check.
    pub fn require(&mut self, constraint: Constraint) {
        if !self.constraints.contains(&constraint) {
            self.constraints.push(constraint);
        }
    }

    /// Whether two shapes can be taken for equal.
    pub fn same_shape(&mut self, a: &Shape, b: &Shape) -> bool {
        a.rank() == b.rank() && a.iter().zip(b.iter()).all(|(x, y)| self.equal(x, y))
    }

    /// Refuses operands of different types; the common type otherwise.
    pub fn all_same(&mut self) -> Result<Type> {
        let (Some(first), rest) = (self.inputs.first(), self.inputs.get(1..).unwrap_or_default()) else {
            fail!(Verify, "takes at least one operand");
        };
        for other in rest {
            if first == other {
                continue;
            }
            if first.dtype() != other.dtype() {
                fail!(DType, "operands of different dtypes: {first} and {other}");
            }
            if !self.same_shape(first.shape(), other.shape()) {
                fail!(Shape, "operands of different shapes: {first} and {other}");
            }
        }
        Ok(first.clone())
    }

    /// Refuses an operand whose dtype `accept` does not hold for.
    pub fn dtype(&self, operand: usize, what: &str, accept: impl Fn(DType) -> bool) -> Result<()> {
        match self.inputs.get(operand) {
            Some(ty) if !accept(ty.dtype()) => fail!(DType, "wants {what}, not {ty}"),
            _ => Ok(()),
        }
    }
}

/// What a forward derivative starts from.
pub struct Jvp<'a> {
    /// The operands.
    pub primals: &'a [Array],
    /// Their tangents; `None` is a symbolic zero, which costs nothing.
    pub tangents: &'a [Option<Array>],
    op: &'a Op,
    outputs: OnceCell<Outputs>,
}

impl<'a> Jvp<'a> {
    /// The operands of an operation with their tangents.
    pub fn new(op: &'a Op, primals: &'a [Array], tangents: &'a [Option<Array>]) -> Jvp<'a> {
        Jvp { primals, tangents, op, outputs: OnceCell::new() }
    }

    /// The results. They are computed when they are first asked for: a rule that computes results and tangents
    /// together ([`Derivative::Whole`]) does not ask.
    pub fn outputs(&self) -> &[Array] {
        self.outputs.get_or_init(|| bind_all(self.op.clone(), self.primals))
    }

    /// The results, given up.
    pub(crate) fn into_outputs(self) -> Outputs {
        self.outputs();
        self.outputs.into_inner().unwrap_or_default()
    }
}

/// A forward derivative's answer.
pub enum Derivative {
    /// A tangent for each result; `None` is a symbolic zero.
    Tangents(SmallVec<[Option<Array>; 1]>),
    /// Results and tangents, computed together: for operations that hold programs.
    Whole {
        /// The results.
        outputs: Outputs,
        /// A tangent for each of them; `None` is a symbolic zero.
        tangents: SmallVec<[Option<Array>; 1]>,
    },
    /// The derivative is zero everywhere it exists.
    Zero,
    /// There is no rule; the text says what to do instead.
    Missing(&'static str),
}

impl Derivative {
    /// One result's tangent.
    pub fn one(tangent: Array) -> Result<Derivative> {
        Ok(Derivative::Tangents(smallvec::smallvec![Some(tangent)]))
    }

    /// The tangent of an operation that is linear in its one active operand: the operation itself.
    pub fn linear(op: Op, jvp: &Jvp<'_>) -> Result<Derivative> {
        match jvp.tangents.first() {
            Some(Some(x_dot)) => {
                let mut inputs: SmallVec<[Array; 4]> = SmallVec::from(jvp.primals);
                inputs[0] = x_dot.clone();
                Ok(Derivative::Tangents(bind_all(op, &inputs).into_iter().map(Some).collect()))
            }
            _ => Ok(Derivative::Zero),
        }
    }
}

/// An operand of a linear operation.
#[derive(Clone, Debug)]
pub enum Linear {
    /// It has a value: the operation is not differentiated by it.
    Known(Array),
    /// The operation is linear in it; only its type is known.
    Unknown(Type),
}

impl Linear {
    /// The value, if known.
    pub fn known(&self) -> Option<&Array> {
        if let Linear::Known(a) = self { Some(a) } else { None }
    }

    /// The type, if the operation is linear in this operand.
    pub fn unknown(&self) -> Option<&Type> {
        if let Linear::Unknown(t) = self { Some(t) } else { None }
    }
}

/// What a transpose starts from.
pub struct Transpose<'a> {
    /// The operands.
    pub operands: &'a [Linear],
    /// Cotangents of the results; `None` is a symbolic zero. At least one is not.
    pub cotangents: &'a [Option<Array>],
}

/// A transpose's answer.
pub enum Transposed {
    /// A cotangent for each operand; `None` for a known operand or a symbolic zero.
    Cotangents(SmallVec<[Option<Array>; 2]>),
    /// The operation is not linear in the operands that were asked for.
    NotLinear,
}

impl Transposed {
    /// The cotangent of the only operand.
    pub fn one(cotangent: Array) -> Result<Transposed> {
        Ok(Transposed::Cotangents(smallvec::smallvec![Some(cotangent)]))
    }
}

/// What a batching rule starts from. A batched operand has its batch axis in front.
pub struct Batch<'a> {
    /// The size of the batch axis.
    pub size: &'a Dim,
    /// The operands.
    pub inputs: &'a [Array],
    /// Which of them are batched; at least one is.
    pub batched: &'a [bool],
}

impl Batch<'_> {
    /// Operand `i` with a batch axis in front, repeated if it had none.
    #[track_caller]
    pub fn with_axis(&self, i: usize) -> Array {
        if self.batched[i] {
            return self.inputs[i].clone();
        }
        let x = &self.inputs[i];
        let shape = x.shape().inserted(0, self.size.clone());
        // Numbers that repeat cost nothing in a program; repeated now, they would be a capture of the whole batch's size.
        let numbers = match x.form() {
            Form::Concrete(c) => c.splat_value().is_none(),
            Form::Remote(_) => true,
            _ => false,
        };
        if numbers && self.inputs.iter().any(Array::is_traced) {
            let axes = (1..shape.rank()).collect();
            return record(Op::new(Broadcast { shape, axes }), std::slice::from_ref(x));
        }
        x.broadcast_to(&shape)
    }

    /// Every operand with a batch axis in front.
    pub fn all(&self) -> SmallVec<[Array; 4]> {
        (0..self.inputs.len()).map(|i| self.with_axis(i)).collect()
    }

    /// The answer of an operation that treats every element alike.
    pub fn elementwise(&self, op: Op) -> Result<Batched> {
        Ok(Batched::Outputs(bind_all(op, &self.all())))
    }
}

/// A batching rule's answer.
pub enum Batched {
    /// The results, each with the batch axis in front.
    Outputs(Outputs),
    /// The results, which are the same for every example and have no batch axis.
    Common(Outputs),
    /// There is no rule; the text says what to do instead.
    Missing(&'static str),
}

impl Batched {
    /// One result.
    pub fn one(output: Array) -> Result<Batched> {
        Ok(Batched::Outputs(smallvec::smallvec![output]))
    }
}

/// An operation that holds programs, split by which of its operands are known.
#[derive(Clone)]
pub struct Partition {
    /// Takes the known operands; gives the known results, then the residuals.
    pub known: Program,
    /// Takes the residuals, then the unknown operands; gives the other results.
    pub unknown: Program,
    /// Which results the known part gives.
    pub known_outputs: Vec<bool>,
}

/// An operation without the results that nobody uses, and without the operands that only those needed.
pub struct Pruned {
    /// What is left.
    pub op: Op,
    /// Which operands it takes.
    pub operands: Vec<bool>,
    /// Which results it gives.
    pub results: Vec<bool>,
}

/// One result type.
pub(crate) fn one(ty: Type) -> Result<Types> {
    Ok(smallvec::smallvec![ty])
}

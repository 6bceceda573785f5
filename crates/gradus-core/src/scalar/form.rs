//! What an operation makes of one element of each operand, as a list of basic operations: recorded once, written by any compiler into its loops.

use smallvec::SmallVec;

use super::{Math, Op, Special, Ty, evaluate};
use crate::error::{Error, Result, error};
use crate::math::{Arith, Rare};

/// A number in a form: an element of an operand, or what a step gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Local(u32);

/// A step of a form.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// A constant, by its bits in the low bytes.
    Number(u64),
    /// An operation on what was there before.
    Op(Op, SmallVec<[Local; 3]>),
}

/// The scalar form of an operation: one element of its result as arithmetic on one element of each operand. Its types fit: nothing else can be made.
#[derive(Clone, PartialEq, Debug)]
pub struct Form {
    /// Of the operands, then of what each step gives.
    types: SmallVec<[Ty; 6]>,
    steps: SmallVec<[Step; 4]>,
    result: Local,
}

/// Takes the steps of a form, one after the other.
pub trait Writer {
    /// How it holds a number.
    type Value: Copy;
    /// A constant of a type, by its bits.
    fn number(&mut self, ty: Ty, bits: u64) -> Self::Value;
    /// An operation, and the type of its result.
    fn op(&mut self, op: Op, ty: Ty, args: &[Self::Value]) -> Self::Value;
}

impl Form {
    /// The form that a rule writes for elements of these types, if it does; an error if what it says does not fit together.
    pub fn written(from: &[Ty], to: Ty, rule: impl FnOnce(&mut Scalars) -> Option<Local>) -> Result<Option<Form>> {
        let mut scalars = Scalars::new(from, to);
        let Some(result) = rule(&mut scalars) else { return Ok(None) };
        scalars.finish(result).map(Some)
    }

    /// A form whose rule fits together.
    pub(super) fn made(from: &[Ty], to: Ty, rule: impl FnOnce(&mut Scalars) -> Local) -> Form {
        let mut scalars = Scalars::new(from, to);
        let result = rule(&mut scalars);
        debug_assert!(scalars.fault.is_none() && scalars.ty(result) == to, "{:?}", scalars.fault);
        Form { types: scalars.types, steps: scalars.steps, result }
    }

    pub(super) fn of_function(m: Math, ty: Ty) -> Form {
        let types: SmallVec<[Ty; 3]> = std::iter::repeat_n(ty, m.arity).collect();
        Form::made(&types, ty, |s| {
            let operands = s.operands();
            (m.0.write)(&mut Floats { scalars: s, ty }, &operands)
        })
    }

    /// The steps with the types of what they give.
    pub fn steps(&self) -> impl Iterator<Item = (Ty, &Step)> {
        let operands = self.types.len() - self.steps.len();
        self.types[operands..].iter().copied().zip(&self.steps)
    }

    /// About how many nanoseconds an element takes on one core, in wide vectors.
    pub fn cost(&self) -> f32 {
        let cost = |step: &Step| if let Step::Op(op, _) = step { op.cost() } else { 0.0 };
        self.steps.iter().map(cost).sum()
    }

    /// Writes the steps, on these operands; gives the result.
    pub fn write<W: Writer>(&self, to: &mut W, operands: &[W::Value]) -> W::Value {
        let mut values: SmallVec<[W::Value; 8]> = operands.into();
        for (ty, step) in self.steps() {
            let value = match step {
                Step::Number(bits) => to.number(ty, *bits),
                Step::Op(op, args) => {
                    let args: SmallVec<[W::Value; 3]> = args.iter().map(|a| values[a.0 as usize]).collect();
                    to.op(*op, ty, &args)
                }
            };
            values.push(value);
        }
        values[self.result.0 as usize]
    }

    /// The result, of operands given by their bits.
    pub fn evaluate(&self, operands: &[u64]) -> u64 {
        struct Numbers;
        impl Writer for Numbers {
            type Value = (Ty, u64);
            fn number(&mut self, ty: Ty, bits: u64) -> (Ty, u64) {
                (ty, bits)
            }
            fn op(&mut self, op: Op, ty: Ty, args: &[(Ty, u64)]) -> (Ty, u64) {
                let (types, bits): (SmallVec<[Ty; 3]>, SmallVec<[u64; 3]>) = args.iter().copied().unzip();
                (ty, evaluate(op, &types, &bits))
            }
        }
        let operands: SmallVec<[(Ty, u64); 3]> = self.types.iter().copied().zip(operands.iter().copied()).collect();
        self.write(&mut Numbers, &operands).1
    }
}

/// Records a form: operations go in, numbers come out. What does not fit is remembered and is the form's error.
#[derive(Debug)]
pub struct Scalars {
    types: SmallVec<[Ty; 6]>,
    steps: SmallVec<[Step; 4]>,
    /// The operands of the operation whose form is recorded now.
    operands: SmallVec<[Local; 3]>,
    to: Ty,
    /// How many operations are applied inside of each other.
    depth: usize,
    fault: Option<Error>,
}

/// An operation made of operations that are made of others, so deep, goes around in a circle.
const DEEPEST: usize = 32;

impl Scalars {
    fn new(from: &[Ty], to: Ty) -> Scalars {
        let operands = (0..from.len() as u32).map(Local).collect();
        Scalars { types: from.into(), steps: SmallVec::new(), operands, to, depth: 0, fault: None }
    }

    fn finish(self, result: Local) -> Result<Form> {
        match self.types.get(result.0 as usize) {
            _ if self.fault.is_some() => {}
            Some(ty) if *ty == self.to => return Ok(Form { types: self.types, steps: self.steps, result }),
            Some(ty) => return Err(error!(Rule, "it gives {ty} where the type rule says {}", self.to)),
            None => {}
        }
        Err(self.fault.unwrap_or_else(|| error!(Rule, "it gives a number that was never made")))
    }

    /// The element of an operand.
    pub fn operand(&self, i: usize) -> Local {
        self.operands.get(i).copied().unwrap_or(Local(u32::MAX))
    }

    /// The elements of all operands.
    pub fn operands(&self) -> SmallVec<[Local; 3]> {
        self.operands.clone()
    }

    /// The type of a number.
    pub fn ty(&self, x: Local) -> Ty {
        self.types.get(x.0 as usize).copied().unwrap_or(Ty::F64)
    }

    /// The type that the result must have.
    pub fn to(&self) -> Ty {
        self.to
    }

    fn step(&mut self, ty: Ty, step: Step) -> Local {
        self.types.push(ty);
        self.steps.push(step);
        Local(self.types.len() as u32 - 1)
    }

    /// A constant by its bits.
    pub fn bits(&mut self, ty: Ty, bits: u64) -> Local {
        let bits = if ty == Ty::Bool { u64::from(bits != 0) } else { bits & (u64::MAX >> (64 - ty.size() * 8)) };
        self.step(ty, Step::Number(bits))
    }

    /// A constant: rounded to a float; one that an integer does not hold is the form's error.
    pub fn number(&mut self, ty: Ty, v: f64) -> Local {
        let fits = match ty {
            Ty::F32 | Ty::F64 => true,
            Ty::Bool => v == 0.0 || v == 1.0,
            t => {
                let bits = t.size() as i32 * 8;
                let (low, high) =
                    if t.is_signed() { (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1)) } else { (0.0, 2f64.powi(bits)) };
                v.fract() == 0.0 && (low..high).contains(&v)
            }
        };
        if !fits {
            self.fault.get_or_insert_with(|| error!(Rule, "{v} is no {ty}"));
        }
        let bits = match ty {
            Ty::F32 => u64::from((v as f32).to_bits()),
            Ty::F64 => v.to_bits(),
            Ty::Bool => u64::from(v != 0.0),
            Ty::U64 => v as u64,
            _ => v as i64 as u64,
        };
        self.bits(ty, bits)
    }

    /// A basic operation.
    pub fn op(&mut self, op: Op, args: &[Local]) -> Local {
        let types: Option<SmallVec<[Ty; 3]>> = args.iter().map(|a| self.types.get(a.0 as usize).copied()).collect();
        // Not every byte is a bool.
        let makes_bool = op == Op::Bitcast(Ty::Bool);
        match types {
            Some(types) if op.accepts(&types) && !makes_bool => self.step(op.result(&types), Step::Op(op, args.into())),
            types => {
                let of = types.map_or_else(|| "a number that was never made".into(), |t| format!("{t:?}"));
                self.fault.get_or_insert_with(|| error!(Rule, "{op} does not take {of}"));
                Local(u32::MAX)
            }
        }
    }

    /// A number as another type; the number itself if it is of that type.
    pub fn convert(&mut self, x: Local, to: Ty) -> Local {
        if self.ty(x) == to { x } else { self.op(Op::Convert(to), &[x]) }
    }

    /// What another rule writes with numbers of this form in the place of its operands. `name` is that of its operation.
    pub(crate) fn nested(
        &mut self,
        name: &str,
        args: &[Local],
        to: Ty,
        rule: impl FnOnce(&mut Scalars) -> Option<Local>,
    ) -> Option<Local> {
        if self.depth == DEEPEST {
            self.fault.get_or_insert_with(|| error!(Rule, "`{name}` is applied inside of itself"));
            return Some(Local(u32::MAX));
        }
        self.depth += 1;
        let outer = std::mem::replace(&mut self.operands, args.into());
        let wanted = std::mem::replace(&mut self.to, to);
        let result = rule(self);
        self.operands = outer;
        self.to = wanted;
        self.depth -= 1;
        if let Some(r) = result
            && self.fault.is_none()
            && self.ty(r) != to
        {
            self.fault = Some(error!(Rule, "`{name}` gives {} where {to} is wanted", self.ty(r)));
        }
        result
    }

    /// The basic operations on floats of one type, for functions that are written over [`Arith`].
    pub fn floats(&mut self, ty: Ty) -> Floats<'_> {
        Floats { scalars: self, ty }
    }
}

/// [`Arith`] that records.
#[derive(Debug)]
pub struct Floats<'a> {
    scalars: &'a mut Scalars,
    ty: Ty,
}

impl Floats<'_> {
    fn shift(&mut self, op: Op, a: Local, n: u32) -> Local {
        let n = self.int(i64::from(n));
        self.scalars.op(op, &[a, n])
    }
}

macro_rules! record {
    ($($name:ident($($arg:ident),*) = $op:expr;)*) => {
        $(fn $name(&mut self, $($arg: Local),*) -> Local { self.scalars.op($op, &[$($arg),*]) })*
    };
}

impl Arith for Floats<'_> {
    type F = Local;
    type I = Local;
    type B = Local;

    fn wide(&self) -> bool {
        self.ty == Ty::F64
    }

    fn float(&mut self, v: f64) -> Local {
        self.scalars.number(self.ty, v)
    }

    fn int(&mut self, v: i64) -> Local {
        self.scalars.bits(self.ty.bits_type(), v as u64)
    }

    record! {
        add(a, b) = Op::Add;
        sub(a, b) = Op::Sub;
        mul(a, b) = Op::Mul;
        div(a, b) = Op::Div;
        fma(a, b, c) = Op::Fma;
        neg(a) = Op::Neg;
        abs(a) = Op::Abs;
        sqrt(a) = Op::Sqrt;
        round(a) = Op::Round;
        floor(a) = Op::Floor;
        lesser(a, b) = Op::Lesser;
        greater(a, b) = Op::Greater;
        lt(a, b) = Op::Lt;
        le(a, b) = Op::Le;
        eq(a, b) = Op::Eq;
        ne(a, b) = Op::Ne;
        ilt(a, b) = Op::Lt;
        and(a, b) = Op::And;
        or(a, b) = Op::Or;
        not(a) = Op::Not;
        select(c, a, b) = Op::Select;
        iselect(c, a, b) = Op::Select;
        iadd(a, b) = Op::Add;
        isub(a, b) = Op::Sub;
        iand(a, b) = Op::And;
        ior(a, b) = Op::Or;
        ixor(a, b) = Op::Xor;
    }

    fn to_bits(&mut self, a: Local) -> Local {
        self.scalars.op(Op::Bitcast(self.ty.bits_type()), &[a])
    }

    fn from_bits(&mut self, a: Local) -> Local {
        self.scalars.op(Op::Bitcast(self.ty), &[a])
    }

    fn shl(&mut self, a: Local, n: u32) -> Local {
        self.shift(Op::Shl, a, n)
    }

    fn shr(&mut self, a: Local, n: u32) -> Local {
        self.shift(Op::Shr, a, n)
    }

    fn sar(&mut self, a: Local, n: u32) -> Local {
        self.shift(Op::Sar, a, n)
    }

    fn rare(&mut self, f: Rare, a: Local, b: Local, when: Local) -> Local {
        self.scalars.op(Op::Special(Special::Rare(f)), &[a, b, when])
    }
}

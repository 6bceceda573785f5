//! The kernel language: what lies between programs over arrays and machine code.
//!
//! A [`Module`] is one native function over numbered buffers. Its *main* body is scalar code with control flow; the loops over
//! arrays are [`Kernel`]s, functions of their own, so that they can be split over threads and made by another code
//! generator than the main body. All values are scalars in static single assignment form; an array lives in a buffer or,
//! if it is small, in one value for each element.

mod cut;
mod eval;
mod expand;
mod fold;
pub mod meaning;
mod parse;
mod print;
#[cfg(any(test, feature = "testing"))]
pub mod random;
mod rewrite;
mod strip;
mod verify;
mod watch;

pub use cut::{PIECE, cut};
pub use eval::{Library, Memory, Slots, evaluate, evaluate_checked, evaluate_with};
pub use expand::{OFTEN, expand, expand_with};
pub use fold::fold;
pub use parse::written;
pub use print::{constant_text, kernel_text};
pub(crate) use rewrite::each_use_of;
pub use strip::strip;
pub use verify::verify;
pub use watch::Shadow;

use std::hash::{Hash, Hasher};

use rustc_hash::FxHashSet;

pub use gradus_core::scalar::{Math, Op, Special, Ty};

use self::meaning::{Meanings, Means, Note, Region};

/// A scalar, by its number in the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Value(pub u32);

impl Value {
    /// Its number.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A buffer, by its number in the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Buffer(pub u32);

impl Buffer {
    /// Its number.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A whole number that is known when code is made, or a scalar of type `i64`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Int {
    Const(i64),
    Value(Value),
}

impl From<i64> for Int {
    fn from(v: i64) -> Int {
        Int::Const(v)
    }
}

impl From<Value> for Int {
    fn from(v: Value) -> Int {
        Int::Value(v)
    }
}

/// Where in a buffer: `offset + Σ value·stride`, in elements. The values are `i64`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Index {
    /// The part that does not depend on values.
    pub offset: i64,
    /// The others. No value stands twice.
    pub terms: smallvec::SmallVec<[(Value, Int); 3]>,
    /// What the lowering means to be there.
    pub means: Means,
}

impl Index {
    /// A fixed place.
    pub fn at(offset: i64) -> Index {
        Index { offset, ..Index::default() }
    }

    /// The same place, further by `value·stride`.
    pub fn plus(mut self, value: Value, stride: impl Into<Int>) -> Index {
        match stride.into() {
            Int::Const(0) => {}
            stride => self.terms.push((value, stride)),
        }
        self
    }

    /// The stride of a value; 0 if it does not stand here.
    pub fn stride(&self, value: Value) -> Int {
        self.terms.iter().find(|(v, _)| *v == value).map_or(Int::Const(0), |(_, s)| *s)
    }
}

/// How a scalar is made.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Expr {
    /// A constant of the value's type, by its bits in the low bytes.
    Const(u64),
    /// A dimension that is known at run time, from the table of sizes; `i64`.
    Size(u32),
    /// An operation.
    Op(Op, smallvec::SmallVec<[Value; 3]>),
    /// An element of a buffer. Bounds are the maker's business: a place outside is undefined behaviour.
    Load(Buffer, Index),
}

/// One step of a body.
#[derive(Clone, PartialEq, Debug, Hash)]
#[allow(missing_docs)]
pub enum Stmt {
    Let(Value, Expr),
    Store {
        buffer: Buffer,
        at: Index,
        value: Value,
    },
    Loop(Box<Loop>),
    /// Main body only.
    While(Box<While>),
    /// Main body only.
    Switch(Box<Switch>),
    /// Main body only: runs a kernel.
    Kernel(u32),
    /// Main body only: calls the library.
    Call(Box<Call>),
    /// Main body only: the buffers trade places in memory.
    Swap(Buffer, Buffer),
    /// Main body only: runs a piece of it.
    Piece(u32),
    /// Main body only: what memory holds, for those who check it. Nothing is done.
    Note(Box<Note>),
}

/// How the iterations of a loop are run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Kind {
    /// One after the other.
    Serial,
    /// Several at once, in vector lanes. Kernels only; the body holds only `Let`, `Store` and serial loops; nothing is carried but
    /// folds. Iterations are independent. Lanes loops do not nest.
    Lanes,
}

/// A loop with a count.
#[derive(Clone, PartialEq, Debug, Hash)]
pub struct Loop {
    /// The counter, `i64`, from 0.
    pub var: Value,
    /// How often; not negative.
    pub count: Int,
    /// How.
    pub kind: Kind,
    /// What goes from one iteration of a serial loop to the next.
    pub carried: Vec<Carried>,
    /// What a loop of lanes reduces.
    pub folds: Vec<Fold>,
    /// What is done each time.
    pub body: Vec<Stmt>,
}

/// A value that goes around a loop.
#[derive(Clone, Copy, PartialEq, Debug, Hash)]
pub struct Carried {
    /// Its value before the loop.
    pub init: Value,
    /// Its name in the body.
    pub param: Value,
    /// Its next value, defined in the body (or before).
    pub next: Value,
    /// Its name after the loop.
    pub result: Value,
}

/// How a loop of lanes reduces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[allow(missing_docs)]
pub enum FoldOp {
    Add,
    Mul,
    Max,
    Min,
    And,
    Or,
}

/// The reduction of a value over all iterations of a loop of lanes, in a fixed order: 32 lanes, lane l left-folds the
/// values of iterations l, l+32, ... (from the first); then for w = 16, 8, 4, 2, 1 lane l takes in lane l+w where that
/// is not empty; in the end `op(identity, lane 0)`. No iteration: the identity.
#[derive(Clone, Copy, PartialEq, Debug, Hash)]
pub struct Fold {
    /// How two combine.
    pub op: FoldOp,
    /// What is reduced, defined in the body (or before).
    pub value: Value,
    /// The outcome, after the loop.
    pub result: Value,
}

/// The lanes of a [`Fold`].
pub use gradus_core::primitives::reduce::LANES;

impl FoldOp {
    /// The same fold as it is written for a type: of bools the larger is `or`, the smaller `and`.
    pub fn on(self, ty: Ty) -> FoldOp {
        match (self, ty) {
            (FoldOp::Max | FoldOp::Add, Ty::Bool) => FoldOp::Or,
            (FoldOp::Min | FoldOp::Mul, Ty::Bool) => FoldOp::And,
            (f, _) => f,
        }
    }

    /// The operation on two scalars.
    pub fn op(self) -> Op {
        match self {
            FoldOp::Add => Op::Add,
            FoldOp::Mul => Op::Mul,
            FoldOp::Max => Op::Max,
            FoldOp::Min => Op::Min,
            FoldOp::And => Op::And,
            FoldOp::Or => Op::Or,
        }
    }

    /// What the result starts from: `op(identity, x)` is x, but for the sign of a zero in sums.
    pub fn identity(self, ty: Ty) -> u64 {
        match self {
            FoldOp::Add => 0,
            FoldOp::Mul => one(ty),
            FoldOp::Max => lowest(ty),
            FoldOp::Min => highest(ty),
            FoldOp::And => all_ones(ty),
            FoldOp::Or => 0,
        }
    }

    /// What an empty lane may hold: `op(neutral, x)` and `op(x, neutral)` are x, bit for bit.
    pub fn neutral(self, ty: Ty) -> u64 {
        match (self, ty) {
            (FoldOp::Add, Ty::F32) => u64::from((-0.0f32).to_bits()),
            (FoldOp::Add, Ty::F64) => (-0.0f64).to_bits(),
            _ => self.identity(ty),
        }
    }
}

/// The bits of one.
pub fn one(ty: Ty) -> u64 {
    match ty {
        Ty::F32 => u64::from(1f32.to_bits()),
        Ty::F64 => 1f64.to_bits(),
        _ => 1,
    }
}

fn lowest(ty: Ty) -> u64 {
    match ty {
        Ty::F32 => u64::from(f32::NEG_INFINITY.to_bits()),
        Ty::F64 => f64::NEG_INFINITY.to_bits(),
        t if t.is_signed() => 1 << (t.size() * 8 - 1),
        _ => 0,
    }
}

fn highest(ty: Ty) -> u64 {
    match ty {
        Ty::F32 => u64::from(f32::INFINITY.to_bits()),
        Ty::F64 => f64::INFINITY.to_bits(),
        Ty::Bool => 1,
        t if t.is_signed() => all_ones(t) >> 1,
        t => all_ones(t),
    }
}

fn all_ones(ty: Ty) -> u64 {
    match ty {
        Ty::Bool => 1,
        t => u64::MAX >> (64 - t.size() * 8),
    }
}

/// A loop until a condition fails.
#[derive(Clone, PartialEq, Debug, Hash)]
pub struct While {
    /// What goes around; `next` is defined in the body. The condition sees the params, too.
    pub carried: Vec<Carried>,
    /// Computes the condition.
    pub before: Vec<Stmt>,
    /// A bool, defined in `before`: false ends the loop.
    pub condition: Value,
    /// What is done each time.
    pub body: Vec<Stmt>,
}

/// A choice between bodies.
#[derive(Clone, PartialEq, Debug, Hash)]
pub struct Switch {
    /// An `i64`; below 0 is the first, above the last is the last.
    pub index: Value,
    /// The bodies, each with the values it ends with.
    pub cases: Vec<(Vec<Stmt>, Vec<Value>)>,
    /// Their names after the switch.
    pub results: Vec<Value>,
}

/// A call of the library: products, sorts, whatever has no loops of its own here.
#[derive(Clone, PartialEq, Debug, Hash)]
pub struct Call {
    /// Which entry of [`Module::calls`] it is.
    pub entry: u32,
    /// Where the arrays begin.
    pub buffers: Vec<(Buffer, Index)>,
    /// What it reads and (where true) writes, for those who check it.
    pub regions: Vec<(Region, bool)>,
}

/// A nest of loops as a function of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct Kernel {
    /// Its name in texts.
    pub name: String,
    /// Scalars of the main body that it uses.
    pub inputs: Vec<Value>,
    /// Scalars it defines that the main body uses. None if the first statement is split over threads.
    pub outputs: Vec<Value>,
    /// Whether the iterations of the outermost loop are independent, so that threads may share them. Then the body is that
    /// loop alone, perhaps with `Let`s before it, nothing is carried and nothing folded.
    pub parallel: bool,
    /// What it does.
    pub body: Vec<Stmt>,
}

impl Kernel {
    /// How often the loop runs that threads share, with what the kernel computes for that before the loop: who splits the loop computes it too.
    pub fn count(&self) -> Option<(Vec<(Value, &Expr)>, Int)> {
        let Some(Stmt::Loop(l)) = self.body.last() else { return None };
        let mut needed: FxHashSet<Value> = FxHashSet::default();
        if let Int::Value(count) = l.count {
            needed.insert(count);
        }
        let mut steps = Vec::new();
        for s in self.body.iter().rev() {
            if let Stmt::Let(v, e) = s
                && needed.contains(v)
            {
                rewrite::each_use(e, &mut |u| needed.extend([u]));
                steps.push((*v, e));
            }
        }
        steps.reverse();
        Some((steps, l.count))
    }

    /// The same kernel with another body.
    pub fn with_body(&self, body: Vec<Stmt>) -> Kernel {
        Kernel { body, name: self.name.clone(), inputs: self.inputs.clone(), outputs: self.outputs.clone(), ..*self }
    }
}

/// An elementary function that the main body calls wherever [`Op::Math`] stands for it.
#[derive(Clone, PartialEq, Debug, Hash)]
pub struct Function {
    /// Which one it is.
    pub of: Math,
    /// The type of its operands and its result.
    pub ty: Ty,
    /// Its operands.
    pub params: Vec<Value>,
    /// What it does: `Let`s alone.
    pub body: Vec<Stmt>,
    /// What it gives: a parameter, or defined in the body.
    pub result: Value,
}

/// Memory of a module.
#[derive(Clone, PartialEq, Debug, Hash)]
pub struct BufferInfo {
    /// How elements are read and written.
    pub ty: Ty,
    /// Who sees to it that it is there.
    pub role: Role,
}

/// What a buffer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[allow(missing_docs)]
pub enum Role {
    Input(u32),
    Output(u32),
    Constant(u32),
    Scratch,
}

/// A program as kernels: one native function.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Module {
    /// The program's name.
    pub name: String,
    /// The type of each value.
    pub types: Vec<Ty>,
    /// The buffers.
    pub buffers: Vec<BufferInfo>,
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// The elementary functions that the main body calls.
    pub functions: Vec<Function>,
    /// The main body.
    pub main: Vec<Stmt>,
    /// What the main body runs as functions of their own, if it is cut. They are main bodies that see no value of one another,
    /// nor of the one that runs them.
    pub pieces: Vec<Vec<Stmt>>,
    /// What the entries of calls are called, for texts.
    pub calls: Vec<String>,
    /// How many run-time sizes there are.
    pub sizes: u32,
    /// What loads and stores mean.
    pub meanings: Meanings,
}

impl Module {
    /// The type of a value.
    pub fn ty(&self, v: Value) -> Ty {
        self.types[v.index()]
    }

    /// A new value.
    pub fn value(&mut self, ty: Ty) -> Value {
        self.types.push(ty);
        Value(self.types.len() as u32 - 1)
    }

    /// The buffers that trade places.
    pub fn swapped(&self) -> FxHashSet<Buffer> {
        fn inside(body: &[Stmt], out: &mut FxHashSet<Buffer>) {
            for s in body {
                match s {
                    Stmt::Swap(a, b) => out.extend([*a, *b]),
                    Stmt::Loop(l) => inside(&l.body, out),
                    Stmt::While(w) => [&w.before, &w.body].into_iter().for_each(|b| inside(b, out)),
                    Stmt::Switch(s) => s.cases.iter().for_each(|(b, _)| inside(b, out)),
                    _ => {}
                }
            }
        }
        let mut out = FxHashSet::default();
        self.pieces.iter().chain([&self.main]).for_each(|body| inside(body, &mut out));
        out
    }

    /// The number of the function for an operation of the main body.
    pub fn function(&self, of: Math, ty: Ty) -> Option<usize> {
        self.functions.iter().position(|f| f.of == of && f.ty == ty)
    }
}

impl Stmt {
    /// Whether a call of the library in it may end the run.
    pub fn can_fail(&self) -> bool {
        match self {
            Stmt::Call(_) => true,
            Stmt::Loop(l) => l.body.iter().any(Stmt::can_fail),
            Stmt::While(w) => w.before.iter().chain(&w.body).any(Stmt::can_fail),
            Stmt::Switch(s) => s.cases.iter().flat_map(|(b, _)| b).any(Stmt::can_fail),
            Stmt::Let(..) | Stmt::Store { .. } | Stmt::Kernel(_) => false,
            Stmt::Swap(..) | Stmt::Piece(_) | Stmt::Note(_) => false,
        }
    }
}

impl Kernel {
    /// Whether it writes to a buffer.
    pub fn stores_to(&self, wanted: Buffer) -> bool {
        fn inside(body: &[Stmt], wanted: Buffer) -> bool {
            body.iter().any(|s| match s {
                Stmt::Store { buffer, .. } => *buffer == wanted,
                Stmt::Loop(l) => inside(&l.body, wanted),
                // The others are of the main body.
                _ => false,
            })
        }
        inside(&self.body, wanted)
    }
}

/// What code depends on: everything but names, which are for readers.
impl Hash for Module {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Module { name: _, types, buffers, kernels, functions, main, pieces, calls, sizes, meanings: _ } = self;
        (types, buffers, kernels, functions, main, pieces, calls.len(), sizes).hash(state);
    }
}

/// As for a module.
impl Hash for Kernel {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Kernel { name: _, inputs, outputs, parallel, body } = self;
        (inputs, outputs, parallel, body).hash(state);
    }
}

//! The vector language: kernels whose loops of lanes are written out, as the code generators print them.
//!
//! What varies between lanes, how they lie in memory, how many there are at once, what is done with those that are left over and how folds end is
//! decided here, once for every generator; what they can do, and how well, is a [`Machine`]. A value is a scalar or a vector. A loop has a step, and
//! what it carries may be vectors: nothing else of a loop of lanes is left.

#[cfg(any(test, feature = "testing"))]
pub mod eval;
mod kept;
mod plan;
mod print;
mod schedule;
#[cfg(test)]
mod tests;
mod varying;
mod write;

use crate::ir::{Buffer, Carried, Index, Int, Op, Ty, Value};

pub use plan::{FAR, Machine, Rest};
pub use schedule::scheduled;
pub use write::{scalars, vectorize};

/// How many numbers a value is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// Lanes; 1 for a scalar.
    pub lanes: u16,
    /// How many registers hold them, where all types have as many lanes to a register; 0 for a scalar. The last number of a fold is a vector of one
    /// lane, so that it need not leave its register.
    pub registers: u8,
}

impl Shape {
    /// One number.
    pub const SCALAR: Shape = Shape { lanes: 1, registers: 0 };

    /// Whether it is a vector.
    pub fn is_vector(self) -> bool {
        self.registers > 0
    }

    /// Half of the lanes.
    pub fn half(self) -> Shape {
        Shape { lanes: self.lanes / 2, registers: (self.registers / 2).max(1) }
    }

    /// Lanes of one register.
    pub fn width(self) -> usize {
        usize::from(self.lanes) / usize::from(self.registers.max(1))
    }
}

/// A kernel in the vector language. Its values have numbers of their own.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Code {
    /// The type of each value, or of its lanes.
    pub types: Vec<Ty>,
    /// How many numbers each value is.
    pub shapes: Vec<Shape>,
    /// Scalars it is given.
    pub inputs: Vec<Value>,
    /// Scalars it gives.
    pub outputs: Vec<Value>,
    /// If threads share it: the first iteration of a share, and the first behind it.
    pub range: Option<(Value, Value)>,
    /// Arrays of its own, for the lanes of folds: [`LANES`](crate::ir::LANES) elements each.
    pub locals: Vec<Ty>,
    /// What it does.
    pub body: Vec<Stmt>,
}

impl Code {
    /// The type of a value.
    pub fn ty(&self, v: Value) -> Ty {
        self.types[v.index()]
    }

    /// How many numbers a value is.
    pub fn shape(&self, v: Value) -> Shape {
        self.shapes[v.index()]
    }

    /// Whether anything in it is a vector. Where all lanes store one scalar, no value is.
    pub fn has_vectors(&self) -> bool {
        fn stores(body: &[Stmt]) -> bool {
            body.iter().any(|s| match s {
                Stmt::Store(access, _) => access.lanes.is_some(),
                Stmt::Loop(l) => stores(&l.body),
                Stmt::Let(..) | Stmt::Main(_) => false,
            })
        }
        self.shapes.iter().any(|s| s.is_vector()) || stores(&self.body)
    }

    /// A new value.
    pub(crate) fn value(&mut self, ty: Ty, shape: Shape) -> Value {
        self.types.push(ty);
        self.shapes.push(shape);
        Value(self.types.len() as u32 - 1)
    }
}

/// One step of a body.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum Stmt {
    Let(Value, Expr),
    Store(Access, Value),
    Loop(Box<Loop>),
    /// What only main bodies have; all values in those are scalars.
    Main(Box<Main>),
}

/// A step of a main body.
#[derive(Clone, PartialEq, Debug)]
pub enum Main {
    /// A loop until a condition fails.
    While(While),
    /// A choice between bodies.
    Switch(Switch),
    /// Another function runs.
    Run(Run),
    /// The buffers trade places in memory.
    Swap(Buffer, Buffer),
}

/// A loop until a condition fails.
#[derive(Clone, PartialEq, Debug)]
pub struct While {
    /// What goes around.
    pub carried: Vec<Carried>,
    /// Computes the condition.
    pub before: Vec<Stmt>,
    /// False ends the loop.
    pub condition: Value,
    /// What is done each time.
    pub body: Vec<Stmt>,
}

/// A choice between bodies.
#[derive(Clone, PartialEq, Debug)]
pub struct Switch {
    /// An `i64`; below 0 is the first, above the last is the last.
    pub index: Value,
    /// The bodies, each with the values it ends with.
    pub cases: Vec<(Vec<Stmt>, Vec<Value>)>,
    /// Their names after the switch.
    pub results: Vec<Value>,
}

/// Another function runs, with scalars that it is given and scalars that it gives.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Which one.
    pub callee: Callee,
    /// What it is given.
    pub inputs: Vec<Value>,
    /// What it gives.
    pub outputs: Vec<Value>,
}

/// What a main body can run.
#[derive(Clone, PartialEq, Debug)]
pub enum Callee {
    /// A kernel; if threads may share it, with how often its loop runs.
    Kernel(u32, Option<Int>),
    /// An elementary function of the module.
    Function(u32),
    /// A piece of the main body, and whether it may fail.
    Piece(u32, bool),
    /// An entry of the library, with where its arrays of a type begin. It may fail.
    Library(u32, Vec<(Ty, Access)>),
}

/// How a value is made.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// A constant scalar, by its bits.
    Const(u64),
    /// A dimension that is known at run time.
    Size(u32),
    /// An operation in each lane. An operand that is a scalar is the same in all of them.
    Op(Op, smallvec::SmallVec<[Value; 3]>),
    /// What is in memory.
    Load(Access),
    /// Whole numbers: the first, and by how much each is more than the one before it.
    Ramp(i64, i64),
    /// Which lanes are among the first so many.
    Active(Int),
    /// The lower half of the lanes or, where true, the upper one.
    Half(Value, bool),
    /// The first lane as a scalar.
    First(Value),
}

/// What a place is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Memory {
    /// A buffer of the module.
    Buffer(Buffer),
    /// An array of the kernel's own.
    Local(u32),
}

/// Elements in memory.
#[derive(Clone, PartialEq, Debug)]
pub struct Access {
    /// Where.
    pub memory: Memory,
    /// The element, or that of the first lane. Its values are scalars.
    pub at: Index,
    /// Those of the other lanes. None: it is one element.
    pub lanes: Option<Lanes>,
}

/// How the elements of lanes lie.
#[derive(Clone, PartialEq, Debug)]
pub struct Lanes {
    /// How many there are.
    pub shape: Shape,
    /// Where they are, seen from the first.
    pub spread: Spread,
    /// Only the first so many are touched; between none and all. What is loaded to the others is any number.
    pub active: Option<Int>,
}

/// Where lanes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    /// So many elements apart. Of those that are stored to one place the last stays.
    Strided(Int),
    /// Each so many elements from the place as a vector of `i64` says.
    Scattered(Value),
}

/// A loop: the counter goes from `from` in steps, as long as it is below `to`.
#[derive(Clone, PartialEq, Debug)]
pub struct Loop {
    /// The counter, `i64`.
    pub var: Value,
    /// Where it begins.
    pub from: Int,
    /// What it stays below.
    pub to: Int,
    /// How much more it is each time; positive.
    pub step: i64,
    /// The counter after the loop: the first that was not below.
    pub left: Option<Value>,
    /// What goes around.
    pub carried: Vec<Carried>,
    /// What is done each time.
    pub body: Vec<Stmt>,
}

impl Loop {
    /// How often it runs, if that is known.
    pub fn trips(&self) -> Option<i64> {
        trips(self.from, self.to, self.step)
    }
}

/// How often a loop runs, if that is known.
fn trips(from: Int, to: Int, step: i64) -> Option<i64> {
    match (from, to) {
        (Int::Const(from), Int::Const(to)) => {
            Some((to.saturating_sub(from).max(0) as u64).div_ceil(step as u64) as i64)
        }
        _ => None,
    }
}

/// Calls a function with every value that a body uses.
pub fn each_use(body: &[Stmt], f: &mut impl FnMut(Value)) {
    fn int(i: Int, f: &mut impl FnMut(Value)) {
        if let Int::Value(v) = i {
            f(v);
        }
    }
    fn access(a: &Access, f: &mut impl FnMut(Value)) {
        for (v, stride) in &a.at.terms {
            f(*v);
            int(*stride, f);
        }
        if let Some(l) = &a.lanes {
            match l.spread {
                Spread::Strided(by) => int(by, f),
                Spread::Scattered(by) => f(by),
            }
            l.active.into_iter().for_each(|n| int(n, f));
        }
    }
    for s in body {
        match s {
            Stmt::Let(_, e) => match e {
                Expr::Const(_) | Expr::Size(_) | Expr::Ramp(..) => {}
                Expr::Op(_, args) => args.iter().for_each(|a| f(*a)),
                Expr::Load(a) => access(a, f),
                Expr::Active(n) => int(*n, f),
                Expr::Half(v, _) | Expr::First(v) => f(*v),
            },
            Stmt::Store(a, v) => {
                access(a, f);
                f(*v);
            }
            Stmt::Loop(l) => {
                int(l.from, f);
                int(l.to, f);
                l.carried.iter().for_each(|c| [c.init, c.next].into_iter().for_each(&mut *f));
                each_use(&l.body, f);
            }
            Stmt::Main(m) => match &**m {
                Main::While(w) => {
                    w.carried.iter().for_each(|c| [c.init, c.next].into_iter().for_each(&mut *f));
                    [&w.before, &w.body].into_iter().for_each(|b| each_use(b, f));
                    f(w.condition);
                }
                Main::Switch(s) => {
                    f(s.index);
                    for (body, ends) in &s.cases {
                        each_use(body, f);
                        ends.iter().for_each(|v| f(*v));
                    }
                }
                Main::Run(r) => {
                    r.inputs.iter().for_each(|v| f(*v));
                    match &r.callee {
                        Callee::Kernel(_, count) => count.iter().for_each(|n| int(*n, f)),
                        Callee::Library(_, arrays) => arrays.iter().for_each(|(_, a)| access(a, f)),
                        Callee::Function(_) | Callee::Piece(..) => {}
                    }
                }
                Main::Swap(..) => {}
            },
        }
    }
}

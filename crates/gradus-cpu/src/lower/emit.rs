//! Writing statements: the body that is being written, and what scalar forms of operations cost there.

use gradus_core::DType;
use gradus_core::primitives::index::Gather;
use gradus_core::program::{Equation, Program};
use gradus_core::scalar::{Form, Writer};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::views::At;
use crate::check::Ranges;
use crate::error::Result;
use crate::ir::meaning::{Meaning, Means};
use crate::ir::{Buffer, Carried, Expr, Fold, Index, Int, Kind, Loop, Module, Op, Stmt, Ty, Value};
use crate::size::Size;

/// The module that is being made, with a stack of open bodies.
#[derive(Debug, Default)]
pub(super) struct Emitter {
    pub module: Module,
    open: Vec<Vec<Stmt>>,
    /// The scalars of sizes that are known at run time.
    sizes: FxHashMap<u32, Value>,
}

impl Emitter {
    pub fn begin(&mut self) {
        self.open.push(Vec::new());
    }

    pub fn end(&mut self) -> Vec<Stmt> {
        self.open.pop().unwrap_or_default()
    }

    pub fn push(&mut self, s: Stmt) {
        if let Some(body) = self.open.last_mut() {
            body.push(s);
        }
    }

    pub fn value(&mut self, ty: Ty) -> Value {
        self.module.value(ty)
    }

    pub fn ty(&self, v: Value) -> Ty {
        self.module.ty(v)
    }

    pub fn define(&mut self, ty: Ty, e: Expr) -> Value {
        let v = self.value(ty);
        self.push(Stmt::Let(v, e));
        v
    }

    pub fn constant(&mut self, ty: Ty, bits: u64) -> Value {
        self.define(ty, Expr::Const(bits))
    }

    pub fn int(&mut self, v: i64) -> Value {
        let value = self.constant(Ty::I64, v as u64);
        self.ranges().exactly(value, v.into());
        value
    }

    /// What is known of values that stand in places.
    pub fn ranges(&mut self) -> &mut Ranges {
        &mut self.module.meanings.ranges
    }

    /// A float or integer constant of a type.
    pub fn number(&mut self, ty: Ty, v: f64) -> Value {
        let bits = match ty {
            Ty::F32 => u64::from((v as f32).to_bits()),
            Ty::F64 => v.to_bits(),
            t => (v as i64 as u64) & (u64::MAX >> (64 - t.size() * 8)),
        };
        self.constant(ty, bits)
    }

    pub fn op(&mut self, op: Op, args: &[Value]) -> Value {
        let types: SmallVec<[Ty; 3]> = args.iter().map(|a| self.ty(*a)).collect();
        self.define(op.result(&types), Expr::Op(op, args.into()))
    }

    pub fn load(&mut self, buffer: Buffer, at: At, meaning: Meaning) -> Value {
        let ty = self.module.buffers[buffer.index()].ty;
        let at = self.meant(&at, meaning);
        self.define(ty, Expr::Load(buffer, at))
    }

    pub fn store(&mut self, buffer: Buffer, at: At, value: Value, meaning: Meaning) {
        let at = self.meant(&at, meaning);
        self.push(Stmt::Store { buffer, at, value });
    }

    fn meant(&mut self, at: &At, meaning: Meaning) -> Index {
        let all = &mut self.module.meanings.all;
        let means = Means(all.len() as u32);
        all.push(meaning);
        Index { means, ..self.index(at) }
    }

    /// A place as the kernel language writes it.
    pub fn index(&mut self, at: &At) -> Index {
        if let Size::Symbolic(_) = at.offset {
            let offset = At::start().plus(self.size(at.offset), Size::ONE);
            return self.index(&at.terms.iter().fold(offset, |all, (value, stride)| all.plus(*value, *stride)));
        }
        let mut index = Index::at(at.offset.constant().unwrap_or(0));
        for (value, stride) in &at.terms {
            let stride = self.count(*stride);
            index = index.plus(*value, stride);
        }
        index
    }

    /// A size as a scalar. One that is known at run time is read before everything else.
    pub fn size(&mut self, size: Size) -> Value {
        match size {
            Size::Known(n) => self.int(n),
            Size::Symbolic(n) => match self.sizes.get(&n) {
                Some(v) => *v,
                None => {
                    let v = self.value(Ty::I64);
                    self.sizes.insert(n, v);
                    self.ranges().exactly(v, size);
                    v
                }
            },
        }
    }

    /// A size as the count of a loop or a stride.
    pub fn count(&mut self, size: Size) -> Int {
        match size {
            Size::Known(n) => Int::Const(n),
            Size::Symbolic(_) => Int::Value(self.size(size)),
        }
    }

    /// A loop around a body that carries and folds nothing.
    pub fn counted(&mut self, kind: Kind, var: Value, count: Size, body: Vec<Stmt>) {
        match kind {
            Kind::Serial => self.serial(var, count, Vec::new(), body),
            Kind::Lanes => self.lanes(var, count, Vec::new(), body),
        }
    }

    /// A loop around a body, one iteration after the other.
    pub fn serial(&mut self, var: Value, count: impl Into<Size>, carried: Vec<Carried>, body: Vec<Stmt>) {
        let count = count.into();
        self.ranges().below(var, count);
        let count = self.count(count);
        self.push(Stmt::Loop(Box::new(Loop { var, count, kind: Kind::Serial, carried, folds: Vec::new(), body })));
    }

    /// A loop around a body in vector lanes.
    pub fn lanes(&mut self, var: Value, count: impl Into<Size>, folds: Vec<Fold>, body: Vec<Stmt>) {
        let count = count.into();
        self.ranges().below(var, count);
        let count = self.count(count);
        self.lanes_of(var, count, folds, body);
    }

    /// A loop of lanes whose count is a scalar; how far its variable goes is the caller's business.
    pub fn lanes_of(&mut self, var: Value, count: Int, folds: Vec<Fold>, body: Vec<Stmt>) {
        self.push(Stmt::Loop(Box::new(Loop { var, count, kind: Kind::Lanes, carried: Vec::new(), folds, body })));
    }

    /// The statements that read the sizes, and which expressions they are.
    pub fn take_sizes(&mut self) -> Vec<Stmt> {
        let mut all: Vec<(u32, Value)> = self.sizes.drain().collect();
        all.sort_unstable();
        all.into_iter().map(|(n, v)| Stmt::Let(v, Expr::Size(n))).collect()
    }

    /// A value as another type.
    pub fn convert(&mut self, v: Value, to: Ty) -> Value {
        if self.ty(v) == to { v } else { self.op(Op::Convert(to), &[v]) }
    }
}

/// Operations of loops that have no form: what is moved, counted, reduced.
pub(super) const PLAIN: f32 = 0.08;
/// An element at a place that is data.
const INDEXED: f32 = 1.0;

/// The scalar form of an equation, if it has one; an error if what it says does not fit together.
pub(super) fn form_of(p: &Program, e: &Equation) -> Result<Option<Form>> {
    if e.results().len() != 1 {
        return Ok(None);
    }
    let from: SmallVec<[DType; 3]> = p.operands(e).iter().map(|a| p.ty(*a).dtype()).collect();
    Form::of(e.op(), &from, p.ty(e.result()).dtype()).map_err(|err| err.at(e.place()))
}

/// About how many nanoseconds an element of an equation takes on one core, in wide vectors.
pub(super) fn cost(p: &Program, e: &Equation) -> f32 {
    if e.op().is::<Gather>() {
        return INDEXED;
    }
    form_of(p, e).ok().flatten().map_or(PLAIN, |f| f.cost().max(PLAIN))
}

/// Whether recomputing it costs more than reading it back from memory.
pub(super) fn is_expensive(p: &Program, e: &Equation) -> bool {
    cost(p, e) > 0.5
}

impl Writer for Emitter {
    type Value = Value;

    fn number(&mut self, ty: Ty, bits: u64) -> Value {
        self.constant(ty, bits)
    }

    fn op(&mut self, op: Op, ty: Ty, args: &[Value]) -> Value {
        self.define(ty, Expr::Op(op, args.into()))
    }
}

//! Main bodies of very many operations, cut into functions.
//!
//! LLVM's register allocator takes more than linear time in the length of a function. A long stretch of a main body without
//! control flow becomes a row of functions instead; values that cross from one to another go through memory, a *frame*
//! with a place for each.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::Result;
use crate::ir::{Expr, Index, Int, Stmt, Value};

use super::emit::{Emitter, function};
use super::ops::{line, put};
use super::text::{Operand, Shape, scalar_name, stored};

/// How many statements a function gets, if nothing else is asked for.
pub(super) const PIECE: usize = 2000;

/// What is known of values that cross.
#[derive(Default)]
pub(super) struct Frame {
    /// How often each value is used in the main body.
    uses: Vec<u32>,
    /// The places of values.
    places: FxHashMap<Value, usize>,
    /// Values that a function has put in their place: no one has to do it again.
    there: FxHashSet<Value>,
    /// How many functions there are.
    pieces: usize,
    /// How many statements one gets.
    cut: usize,
}

impl Frame {
    /// For functions of so many statements.
    pub(super) fn new(cut: usize) -> Frame {
        Frame { cut: cut.max(1), ..Frame::default() }
    }

    /// How many places there are.
    pub(super) fn size(&self) -> usize {
        self.places.len()
    }
}

fn simple(s: &Stmt) -> bool {
    matches!(s, Stmt::Let(..) | Stmt::Store { .. })
}

fn index(at: &Index, f: &mut impl FnMut(Value)) {
    for (v, stride) in &at.terms {
        f(*v);
        int(*stride, f);
    }
}

fn int(i: Int, f: &mut impl FnMut(Value)) {
    if let Int::Value(v) = i {
        f(v);
    }
}

impl Emitter<'_> {
    /// Whether a body has a stretch to cut.
    pub(super) fn is_long(&self, body: &[Stmt]) -> bool {
        let long = 2 * self.frame.cut;
        body.len() > long && body.split(|s| !simple(s)).any(|stretch| stretch.len() > long)
    }

    /// Every use of a value by a statement and what is in it.
    fn each_use(&self, s: &Stmt, f: &mut impl FnMut(Value)) {
        match s {
            Stmt::Let(_, Expr::Op(_, args)) => args.iter().for_each(|a| f(*a)),
            Stmt::Let(_, Expr::Load(_, at)) => index(at, f),
            Stmt::Let(_, Expr::Const(_) | Expr::Size(_)) | Stmt::Swap(..) | Stmt::Note(_) => {}
            Stmt::Store { at, value, .. } => {
                index(at, f);
                f(*value);
            }
            Stmt::Loop(l) => {
                int(l.count, f);
                l.carried.iter().for_each(|c| [c.init, c.next].into_iter().for_each(&mut *f));
                l.folds.iter().for_each(|fold| f(fold.value));
                l.body.iter().for_each(|s| self.each_use(s, f));
            }
            Stmt::While(w) => {
                f(w.condition);
                w.carried.iter().for_each(|c| [c.init, c.next].into_iter().for_each(&mut *f));
                w.before.iter().chain(&w.body).for_each(|s| self.each_use(s, f));
            }
            Stmt::Switch(s) => {
                f(s.index);
                for (body, ends) in &s.cases {
                    ends.iter().for_each(|v| f(*v));
                    body.iter().for_each(|s| self.each_use(s, f));
                }
            }
            Stmt::Kernel(k) => {
                if let Some(k) = self.module.kernels.get(*k as usize) {
                    k.inputs.iter().for_each(|v| f(*v));
                }
            }
            Stmt::Call(c) => c.buffers.iter().for_each(|(_, at)| index(at, f)),
        }
    }

    /// A body with long stretches.
    pub(super) fn long(&mut self, body: &[Stmt]) -> Result<()> {
        if self.frame.uses.is_empty() {
            let mut uses = vec![0; self.module.types.len()];
            self.module.main.iter().for_each(|s| self.each_use(s, &mut |v| uses[v.index()] += 1));
            self.frame.uses = uses;
        }
        for stretch in body.chunk_by(|a, b| simple(a) && simple(b)) {
            match stretch.len() > 2 * self.frame.cut {
                true => stretch.chunks(self.frame.cut).try_for_each(|piece| self.piece(piece))?,
                false => stretch.iter().try_for_each(|s| self.stmt(s))?,
            }
        }
        Ok(())
    }

    fn place_of(&mut self, v: Value) -> Operand {
        let next = self.frame.places.len();
        let place = *self.frame.places.entry(v).or_insert(next);
        put!(self, "getelementptr i64, ptr %frame, i64 {place}")
    }

    fn save(&mut self, v: Value) {
        let s = Shape { ty: self.module.ty(v), lanes: 1 };
        let a = self.pack(s, self.scalars[v.index()]);
        let place = self.place_of(v);
        line!(self, "store {} {a}, ptr {place}, align 8", scalar_name(stored(s.ty)));
    }

    fn restore(&mut self, v: Value) {
        let s = Shape { ty: self.module.ty(v), lanes: 1 };
        let place = self.place_of(v);
        let raw = put!(self, "load {}, ptr {place}, align 8", scalar_name(stored(s.ty)));
        self.scalars[v.index()] = self.unpack(s, raw);
    }

    /// Some statements as a function, and its call.
    fn piece(&mut self, body: &[Stmt]) -> Result<()> {
        let defined: FxHashSet<Value> =
            body.iter().filter_map(|s| if let Stmt::Let(v, _) = s { Some(*v) } else { None }).collect();
        // How often each value is used here; those from before in order.
        let mut uses: FxHashMap<Value, u32> = FxHashMap::default();
        let mut before = Vec::new();
        for s in body {
            self.each_use(s, &mut |v| {
                let n = uses.entry(v).or_insert(0);
                *n += 1;
                if *n == 1 && !defined.contains(&v) && !matches!(self.scalars[v.index()], Operand::Literal(..)) {
                    before.push(v);
                }
            });
        }
        for v in &before {
            if !self.frame.there.contains(v) {
                self.save(*v);
            }
        }
        let here: Vec<Operand> = before.iter().map(|v| self.scalars[v.index()]).collect();
        let mut waiting: FxHashSet<Value> = before.iter().copied().collect();
        let outer = std::mem::replace(&mut self.f, function(true));
        let mut after = Vec::new();
        for s in body {
            let mut wanted: smallvec::SmallVec<[Value; 8]> = smallvec::SmallVec::new();
            self.each_use(s, &mut |v| {
                if waiting.remove(&v) {
                    wanted.push(v);
                }
            });
            wanted.into_iter().for_each(|v| self.restore(v));
            self.stmt(s)?;
            let Stmt::Let(v, _) = s else { continue };
            let crosses = self.frame.uses[v.index()] > uses.get(v).copied().unwrap_or(0);
            if crosses && !matches!(self.scalars[v.index()], Operand::Literal(..)) {
                after.push(*v);
            }
        }
        for v in &after {
            self.save(*v);
            self.frame.there.insert(*v);
        }
        line!(self, "ret void");
        let name = format!("piece{}", self.frame.pieces);
        self.frame.pieces += 1;
        self.finish(&format!("define internal fastcc void @{name}(ptr %context, ptr noalias %frame) #0 noinline"), 0);
        self.f = outer;
        before.iter().zip(here).for_each(|(v, a)| self.scalars[v.index()] = a);
        line!(self, "call fastcc void @{name}(ptr %context, ptr %frame) #1");
        // The next function reads its own; those that nobody wants here go away.
        after.into_iter().for_each(|v| self.restore(v));
        Ok(())
    }
}

//! Equations that are done by themselves: copies, products, updates, and whatever the library does.

use gradus_core::DType;
use gradus_core::optimize::OnPairs;
use gradus_core::primitives::control::{Call, Checkpoint, CustomJvp, CustomVjp, Scan, Switch, While};
use gradus_core::primitives::dot::DotGeneral;
use gradus_core::primitives::index::{DynamicSlice, DynamicUpdateSlice, Gather, Scatter};
use gradus_core::primitives::shaping::{Concatenate, Pad};
use gradus_core::program::{Atom, Equation, Program};

use super::Lower;
use super::content::in_lanes;
use super::indexed::{as_place, held, is_small_gather};
use super::joined::Landing;
use super::values::{Repr, Root, Values, moves, storage};
use super::views::{At, Dims, Mean, View, count, is_empty, row_major};
use super::walk::{Part, Walk, in_tiles};
use crate::cost::{Doing, Work};
use crate::error::{Result, error};
use crate::ir::meaning::{Meaning, TagName};
use crate::ir::{Carried, Fold, FoldOp, Kind, Op, Stmt, Ty, Value};
use crate::runtime::{Evaluate, Gemm, LibraryCall, Packed, Placed};
use crate::size::Size;

/// Calls of programs that are larger than this are compiled by themselves.
const LARGEST_BODY: usize = 2000;
/// Sums of a matrix by a vector that are under way at the same time.
const AT_ONCE: usize = 4;
/// Factors of products of at most so many elements are copied as a whole: they stay in the cache anyway.
const COPIED_WHOLE: usize = 1 << 14;

impl Lower {
    pub(super) fn single(&mut self, p: &Program, values: &Values, e: &Equation) -> Result<()> {
        let op = e.op();
        if let Some(s) = op.downcast::<Scan>() {
            return self.scan(p, values, e, s);
        }
        if let Some(w) = op.downcast::<While>() {
            return self.while_loop(p, values, e, w);
        }
        if let Some(s) = op.downcast::<Switch>() {
            return self.switch(p, values, e, s);
        }
        let body = match (
            op.downcast::<Call>(),
            op.downcast::<Checkpoint>(),
            op.downcast::<CustomJvp>(),
            op.downcast::<CustomVjp>(),
        ) {
            (Some(c), ..) if c.program.equations().len() <= LARGEST_BODY || c.program.is_symbolic() => Some(&c.program),
            (_, Some(c), ..) => Some(&c.program),
            (_, _, Some(c), _) => Some(&c.function),
            (.., Some(c)) => Some(&c.function),
            _ => None,
        };
        if let Some(body) = body {
            return self.nested(p, values, e, body);
        }
        if let Some(s) = op.downcast::<gradus_core::primitives::size::Size>()
            && let Some(ty) = values.types[e.result().index()]
        {
            let number = self.emitter.size(Size::of(&s.dim));
            let number = self.emitter.convert(number, ty);
            self.frame.reprs[e.result().index()] = Some(Repr::Elements(vec![number]));
            return Ok(());
        }
        if let Some(d) = op.downcast::<DotGeneral>()
            && let Some(gemm) = self.product(p, values, e, d)?
        {
            return Ok(gemm);
        }
        // What only has effects gives nothing.
        let Some(v) = e.results().next().map(|v| v.index()) else { return self.evaluate(p, values, e) };
        let typed = e.results().all(|r| storage(p.ty(r).dtype()).is_some());
        if typed && !is_empty(&values.dims[v]) {
            if let Some(c) = op.downcast::<Concatenate>() {
                return self.concatenate(p, values, e, c);
            }
            if let Some(pad) = op.downcast::<Pad>()
                && let Some(landing) = Landing::new(pad, values.dims(p.operands(e)[0]), &values.dims[v])
            {
                return self.pad(p, values, e, &landing);
            }
            let as_many = || count(values.dims(p.operands(e)[0])) == count(&values.dims[v]);
            if moves(op) && as_many() {
                return self.moved(p, values, e);
            }
            if let Some(g) = op.downcast::<Gather>()
                && is_small_gather(p, values, e, g)
            {
                return self.small_gather(p, values, e, g);
            }
            if let Some(s) = op.downcast::<Scatter>()
                && self.scatter(p, values, e, s)?
            {
                return Ok(());
            }
            if self.cumulative(p, values, e)? {
                return Ok(());
            }
            if op.is::<DynamicSlice>() {
                return self.dynamic_slice(p, values, e);
            }
            if op.is::<DynamicUpdateSlice>() {
                return self.dynamic_update(p, values, e);
            }
        }
        self.evaluate(p, values, e)
    }

    /// A program in the place of an equation.
    fn nested(&mut self, p: &Program, values: &Values, e: &Equation, body: &Program) -> Result<()> {
        let inputs = self.arguments(p, values, p.operands(e), &in_lanes(body, self.small))?;
        let mut wanted: Vec<(Atom, Option<View>)> = Vec::new();
        for (r, a) in e.results().zip(body.outputs()) {
            wanted.push((*a, self.frame.wanted.get(&r.index()).cloned()));
        }
        let made = self.block(body, inputs, &wanted, Default::default())?;
        for (r, repr) in e.results().zip(made) {
            self.set(p, values, r.index(), repr)?;
        }
        Ok(())
    }

    /// A result as an inner block gives it. Views of it count on dense memory.
    pub(super) fn set(&mut self, p: &Program, values: &Values, v: usize, repr: Repr) -> Result<()> {
        let repr = match repr {
            Repr::Memory(view) if !view.is_dense() => {
                let to = self.place_for(p, values, v)?;
                self.copies
                    .push(format!("{} leaves a nested program as a view", p.ty(gradus_core::program::ValueId::new(v))));
                self.copy(&view, &to, p.ty(gradus_core::program::ValueId::new(v)).dtype())?;
                Repr::Memory(to)
            }
            Repr::Memory(view) => {
                let to = View { dims: values.dims[v].clone(), strides: row_major(&values.dims[v]), ..view.clone() };
                let to = to.of(values.tag(v));
                self.becomes(&view, &to, p.ty(gradus_core::program::ValueId::new(v)).dtype());
                Repr::Memory(to)
            }
            elements => elements,
        };
        self.frame.reprs[v] = Some(repr);
        Ok(())
    }

    /// Operands as an inner block takes them; `lanes`: those that it works on in lanes.
    pub(super) fn arguments(
        &mut self,
        p: &Program,
        values: &Values,
        operands: &[Atom],
        lanes: &[bool],
    ) -> Result<Vec<Repr>> {
        let each =
            operands.iter().zip(lanes).map(|(&a, lanes)| match self.is_small(p.ty(a), values.dims(a)) && !lanes {
                true => Ok(Repr::Elements(self.elements(p, values, a)?)),
                false => Ok(Repr::Memory(self.memory(p, values, a)?)),
            });
        each.collect()
    }

    // ---- copies ----

    /// A nest over given dimensions; `f` writes the point from the places of each array.
    fn over(&mut self, name: &str, dims: &[Size], arrays: &[&View], f: &mut dyn FnMut(&mut Self, &[(At, Meaning)])) {
        if is_empty(dims) {
            return;
        }
        self.emitter.begin();
        let walk = Walk::new(self, arrays, 0..dims.len());
        walk.open(self);
        let places: Vec<(At, Meaning)> = arrays.iter().enumerate().map(|(k, v)| walk.along(k, v.first())).collect();
        f(self, &places);
        walk.close(self, Kind::Lanes);
        let body = self.emitter.end();
        self.push_kernel(name, Vec::new(), Work::shared(count(dims), 0.2, Doing::Moving), body);
    }

    pub(super) fn copy(&mut self, from: &View, to: &View, dtype: DType) -> Result<()> {
        if storage(dtype).is_none() {
            let entry = LibraryCall::Copy {
                from: placed(dtype, &from.dims, &from.strides),
                to: placed(dtype, &to.dims, &to.strides),
            };
            self.call(entry, &[(from, false), (to, true)], dtype);
            return Ok(());
        }
        self.copy_into(from, to, false);
        Ok(())
    }

    /// Copies arrays, those of the same dimensions in one nest. None of the places is one that another is copied from.
    pub(super) fn copy_all(&mut self, mut copies: Vec<(View, View)>) {
        while let Some((_, first)) = copies.first() {
            let dims = first.dims.clone();
            let (same, rest): (Vec<_>, Vec<_>) = copies.into_iter().partition(|(_, to)| to.dims == dims);
            copies = rest;
            let views: Vec<&View> = same.iter().flat_map(|(from, to)| [from, to]).collect();
            self.over("copy", &dims, &views, &mut |l, at| {
                let values: Vec<Value> = same
                    .iter()
                    .zip(at.chunks(2))
                    .map(|((from, _), at)| l.emitter.load(from.buffer, at[0].0.clone(), at[0].1.clone()))
                    .collect();
                for (((_, to), at), x) in same.iter().zip(at.chunks(2)).zip(values) {
                    l.emitter.store(to.buffer, at[1].0.clone(), x, at[1].1.clone());
                }
            });
        }
    }

    /// Copies into a part of what is written already.
    pub(super) fn copy_again(&mut self, from: &View, to: &View) {
        self.copy_into(from, to, true);
    }

    fn copy_into(&mut self, from: &View, to: &View, again: bool) {
        let bytes = self.emitter.module.buffers[to.buffer.index()].ty.size();
        for Part { from, to, at_once } in in_tiles(from, to, bytes) {
            // So many elements are read before they are written.
            let n = at_once.and_then(|a| from.dims[a].known()).unwrap_or(1);
            let step =
                |view: &View| at_once.map_or((Size::ZERO, Size::ZERO), |a| (view.strides[a], view.mean.strides[a]));
            let steps = [step(&from), step(&to)];
            let [from, to] = [from, to].map(|view| at_once.map_or(view.clone(), |a| view.without(a)));
            self.over("copy", &to.dims.clone(), &[&from, &to], &mut |l, at| {
                let place = |k: usize, j: usize| {
                    let (at, meaning) = &at[k];
                    let element = meaning.element.further(steps[k].1 * j);
                    (at.further(steps[k].0 * j), Meaning { element, ..meaning.clone() })
                };
                let read = (0..n).map(|j| place(0, j));
                let read: Vec<Value> = read.map(|(at, meaning)| l.emitter.load(from.buffer, at, meaning)).collect();
                for (j, x) in read.into_iter().enumerate() {
                    let (at, meaning) = place(1, j);
                    l.emitter.store(to.buffer, at, x, Meaning { again, ..meaning });
                }
            });
        }
    }

    pub(super) fn fill(&mut self, to: &View, value: Value) -> Result<()> {
        self.fill_into(to, value, false);
        Ok(())
    }

    pub(super) fn fill_into(&mut self, to: &View, value: Value, again: bool) {
        self.over("fill", &to.dims.clone(), &[to], &mut |l, at| {
            let meaning = Meaning { again, ..at[0].1.clone() };
            l.emitter.store(to.buffer, at[0].0.clone(), value, meaning);
        });
    }

    /// Calls the library with arrays that it reads or (where true) writes.
    fn call(&mut self, entry: LibraryCall<Size>, arrays: &[(&View, bool)], dtype: DType) {
        let arrays: Vec<(&View, bool, DType)> = arrays.iter().map(|(view, writes)| (*view, *writes, dtype)).collect();
        self.call_with(entry, &arrays);
    }

    fn call_with(&mut self, entry: LibraryCall<Size>, arrays: &[(&View, bool, DType)]) {
        let index = self.entries.len() as u32;
        self.entries.push(entry);
        let regions = arrays.iter().map(|(view, writes, dtype)| (view.region(dtype.size()), *writes)).collect();
        let in_bytes = |at: At| At {
            offset: at.offset * 16usize,
            terms: at.terms.into_iter().map(|(v, s)| (v, s * 16usize)).collect(),
        };
        let buffers = arrays
            .iter()
            .map(|(view, ..)| {
                let at = view.base.clone();
                let at = if self.wide.contains(&view.buffer) { in_bytes(at) } else { at };
                (view.buffer, self.emitter.index(&at))
            })
            .collect();
        let call = crate::ir::Call { entry: index, buffers, regions };
        self.emitter.push(Stmt::Call(Box::new(call)));
    }

    /// A result in dense memory, at its wanted place if it has one.
    pub(super) fn dense_result(&mut self, p: &Program, values: &Values, v: usize) -> Result<View> {
        let view = self.place_for(p, values, v)?;
        self.frame.reprs[v] = Some(Repr::Memory(view.clone()));
        Ok(view)
    }

    /// Compiled Rust: the interpreter's own code for one primitive.
    fn evaluate(&mut self, p: &Program, values: &Values, e: &Equation) -> Result<()> {
        let on_pairs = e.op().downcast::<OnPairs>();
        let mut arrays = Vec::new();
        let mut inputs = Vec::new();
        for (i, &a) in p.operands(e).iter().enumerate() {
            let dtype = p.ty(a).dtype();
            if on_pairs.is_some_and(|o| o.complex[i]) {
                let view = self.dense_pairs(p, values, a)?;
                let Some(numbers) = dtype.complex_of() else {
                    return Err(error!(Rule, "{} are no pairs", p.ty(a)));
                };
                let (dims, strides) = (&view.dims[..view.dims.len() - 1], row_major(&view.dims[..view.dims.len() - 1]));
                inputs.push(placed(numbers, dims, &strides));
                arrays.push((view, false, dtype));
                continue;
            }
            let view = self.memory(p, values, a)?;
            inputs.push(placed(dtype, values.dims(a), &view.strides));
            arrays.push((view, false, dtype));
        }
        let mut outputs = Vec::new();
        for (i, r) in e.results().enumerate() {
            let view = self.dense_result(p, values, r.index())?;
            outputs.push(on_pairs.map_or_else(|| p.ty(r).clone(), |o| o.results[i].clone()));
            arrays.push((view, true, p.ty(r).dtype()));
        }
        let op = on_pairs.map_or_else(|| e.op().clone(), |o| o.op.clone());
        let entry = LibraryCall::Evaluate(Evaluate { op, place: e.place(), inputs, outputs });
        let arrays: Vec<_> = arrays.iter().map(|(view, writes, dtype)| (view, *writes, *dtype)).collect();
        self.call_with(entry, &arrays);
        Ok(())
    }

    /// Pairs as complex numbers lie in memory: one after the other.
    fn dense_pairs(&mut self, p: &Program, values: &Values, a: Atom) -> Result<View> {
        let view = self.memory(p, values, a)?;
        if view.is_dense() {
            return Ok(view);
        }
        let dtype = p.ty(a).dtype();
        let dims = values.dims(a).clone();
        let Some(ty) = storage(dtype) else { return Err(error!(Rule, "{} are no pairs", p.ty(a))) };
        let buffer = self.new_scratch(ty, count(&dims));
        let to = View::dense(buffer, &dims).of(self.tag(TagName::Copy));
        self.copies.push(format!("{} is copied: its parts do not lie side by side", p.ty(a)));
        self.copy(&view, &to, dtype)?;
        Ok(to)
    }

    // ---- windows ----

    /// A window of an array: every start held in range.
    fn window(&mut self, p: &Program, values: &Values, x: &View, window: &[Size], starts: &[Atom]) -> Result<View> {
        let mut view = View { dims: window.into(), ..x.clone() };
        for (a, &start) in starts.iter().enumerate() {
            let room = x.dims[a] - window[a];
            if room == 0 {
                continue;
            }
            let start = self.elements(p, values, start)?[0];
            let place = as_place(&mut self.emitter, start);
            let place = held(&mut self.emitter, place, room);
            view.base = view.base.plus(place, x.strides[a]);
            view.mean.base = view.mean.base.plus(place, x.mean.strides[a]);
        }
        Ok(view)
    }

    fn dynamic_slice(&mut self, p: &Program, values: &Values, e: &Equation) -> Result<()> {
        let v = e.result().index();
        let operands = p.operands(e);
        let x = self.memory(p, values, operands[0])?;
        let dims = values.dims[v].clone();
        let view = self.window(p, values, &x, &dims, &operands[1..])?;
        if !values.in_scalars(e.result().into()) {
            self.frame.reprs[v] = Some(Repr::Memory(view));
            return Ok(());
        }
        // A small one is read at once, element by element.
        if values.types[v].is_some() {
            let elements = self.load_all(&view);
            self.frame.reprs[v] = Some(Repr::Elements(elements));
            return Ok(());
        }
        let to = self.dense_result(p, values, v)?;
        self.copy(&view, &to, p.ty(e.result()).dtype())
    }

    /// Whether nothing but this equation needs the memory of an operand, so that it may be written.
    pub(super) fn may_overwrite(&self, values: &Values, a: Atom) -> Option<View> {
        let o = values.origin(a);
        let view = self.placed(values, a)?;
        let Root::Value(r) = o.root else { return None };
        let last = self.frame.uses.get(&o.root).copied().unwrap_or(0) <= 1;
        let whole = view.is_dense() && view.base == At::start() && count(&values.dims[r as usize]) == count(&view.dims);
        let shared = self.frame.reprs.iter().enumerate().any(|(i, repr)| {
            i != r as usize
                && matches!(repr, Some(Repr::Memory(v)) if v.buffer == view.buffer)
                && self.frame.uses.get(&Root::Value(i as u32)).copied().unwrap_or(0) > 0
        });
        (last && whole && !shared && self.frame.owned.contains(&view.buffer)).then_some(view)
    }

    /// The memory of an equation's result, holding its first operand, which it changes: the operand's own if nothing else needs it, otherwise a copy. `reads`: what is
    /// read while it is changed, and so lies elsewhere.
    pub(super) fn updated(&mut self, p: &Program, values: &Values, e: &Equation, reads: &[Atom]) -> Result<View> {
        let (v, x) = (e.result().index(), p.operands(e)[0]);
        let dims = values.dims[v].clone();
        let apart = |l: &Self, to: &View| {
            reads.iter().all(|a| l.placed(values, *a).is_none_or(|from| from.buffer != to.buffer))
        };
        if let Some(old) = self.may_overwrite(values, x).filter(|to| apart(self, to)) {
            let view = View { dims: dims.clone(), strides: row_major(&dims), ..old.clone() }.of(values.tag(v));
            self.becomes(&old, &view, p.ty(e.result()).dtype());
            self.frame.reprs[v] = Some(Repr::Memory(view.clone()));
            self.frame.loaded.clear();
            return Ok(view);
        }
        let to = self.dense_result(p, values, v)?;
        match self.splat_of(p, values, x) {
            Some(x) => self.fill(&to, x)?,
            None => {
                let from = self.memory(p, values, x)?;
                self.copies.push(format!("{} is copied before an update: it is needed later", p.ty(x)));
                self.copy(&from, &to, p.ty(x).dtype())?;
            }
        }
        Ok(to)
    }

    fn dynamic_update(&mut self, p: &Program, values: &Values, e: &Equation) -> Result<()> {
        let operands = p.operands(e);
        // What is put there may be a part of the array itself; a small one is read before anything is written.
        let small = values.in_scalars(operands[1]) && values.ty(operands[1]).is_some();
        let to = self.updated(p, values, e, if small { &[] } else { &operands[1..2] })?;
        let window = values.dims(operands[1]).clone();
        if is_empty(&window) {
            return Ok(());
        }
        let part = self.window(p, values, &to, &window, &operands[2..])?;
        if small {
            let elements = self.elements(p, values, operands[1])?;
            self.store_again(&part, &elements);
            return Ok(());
        }
        match self.splat_of(p, values, operands[1]) {
            Some(x) => self.fill_into(&part, x, true),
            None => {
                let from = self.memory(p, values, operands[1])?;
                self.copy_again(&from, &part);
            }
        }
        Ok(())
    }

    // ---- products ----

    /// `to[j] = Σ matrix[j, i]·vector[i]`.
    fn vector_product(&mut self, vector: &View, matrix: &View, to: &View) {
        let n = matrix.dims[0];
        // A lane for each result if neighbours of them are neighbours in the matrix, else lanes along the sum.
        if matrix.strides[0] == 1 || matrix.strides[1] != 1 {
            return self.product_by_results(vector, matrix, to);
        }
        let blocks = n.floor_div(AT_ONCE);
        let part = |v: &View, first: Size, count: Size| {
            let mut start: Dims = smallvec::smallvec![Size::ZERO; v.dims.len()];
            start[0] = first;
            let mut dims = v.dims.clone();
            dims[0] = count;
            v.sliced(&start, &dims, &vec![1; v.dims.len()])
        };
        for (rows, first, count) in [(AT_ONCE, Size::ZERO, blocks), (1, blocks * AT_ONCE, n.modulo(AT_ONCE))] {
            if count != 0 {
                let (matrix, to) = (part(matrix, first, count * rows), part(to, first, count * rows));
                self.product_by_rows(vector, &matrix, (rows, count), &to);
            }
        }
    }

    /// A product with a lane for each result. One sum after another would wait for each multiply-add to end.
    fn product_by_results(&mut self, x: &View, a: &View, to: &View) {
        let (n, k) = (a.dims[0], a.dims[1]);
        let ty = self.emitter.module.buffers[to.buffer.index()].ty;
        let (i, j) = (self.emitter.value(Ty::I64), self.emitter.value(Ty::I64));
        let sums = if k.guess() >= 2 * AT_ONCE { AT_ONCE } else { 1 };
        let column = a.step(j);
        // The term of the sum at `i·times + r`, or at `r`.
        let term = |l: &mut Self, along: Option<(Value, usize)>, r: Size, sum: Value| {
            let [u, v] = [x, &column].map(|view| {
                let at = view.index(along, r);
                l.emitter.load(at.buffer, at.base.clone(), at.meaning())
            });
            l.emitter.op(Op::Fma, &[u, v, sum])
        };
        self.emitter.begin();
        self.emitter.begin();
        let init = self.emitter.number(ty, 0.0);
        let params: Vec<Value> = (0..sums).map(|_| self.emitter.value(ty)).collect();
        self.emitter.begin();
        let next: Vec<Value> =
            params.iter().enumerate().map(|(r, sum)| term(self, Some((i, sums)), r.into(), *sum)).collect();
        let body = self.emitter.end();
        let mut totals: Vec<Value> = (0..sums).map(|_| self.emitter.value(ty)).collect();
        let carried = (0..sums).map(|r| Carried { init, param: params[r], next: next[r], result: totals[r] }).collect();
        self.emitter.serial(i, k.floor_div(sums), carried, body);
        match k.known() {
            Some(k) => {
                for (r, left) in (k / sums * sums..k).enumerate() {
                    totals[r] = term(self, None, left.into(), totals[r]);
                }
            }
            None => {
                let (i, param, result) = (self.emitter.value(Ty::I64), self.emitter.value(ty), self.emitter.value(ty));
                self.emitter.begin();
                let next = term(self, Some((i, 1)), k.floor_div(sums) * sums, param);
                let body = self.emitter.end();
                let carried = vec![Carried { init: totals[0], param, next, result }];
                self.emitter.serial(i, k.modulo(sums), carried, body);
                totals[0] = result;
            }
        }
        while totals.len() > 1 {
            let pairs = totals.chunks(2).map(|pair| self.emitter.op(Op::Add, pair));
            totals = pairs.collect();
        }
        let at = to.step(j);
        self.emitter.store(to.buffer, at.base.clone(), totals[0], at.meaning());
        let body = self.emitter.end();
        self.emitter.counted(Kind::Lanes, j, n, body);
        self.push_product(n, k);
    }

    /// A product with lanes along its sums, for several rows of the matrix at once: they share what is read of the vector.
    fn product_by_rows(&mut self, x: &View, a: &View, (rows, count): (usize, Size), to: &View) {
        let k = a.dims[1];
        let ty = self.emitter.module.buffers[to.buffer.index()].ty;
        let (i, j) = (self.emitter.value(Ty::I64), self.emitter.value(Ty::I64));
        self.emitter.begin();
        self.emitter.begin();
        self.emitter.begin();
        let u = x.step(i);
        let u = self.emitter.load(x.buffer, u.base.clone(), u.meaning());
        let mut folds = Vec::with_capacity(rows);
        for r in 0..rows {
            let v = a.index(Some((j, rows)), r.into()).step(i);
            let v = self.emitter.load(a.buffer, v.base.clone(), v.meaning());
            let value = self.emitter.op(Op::Mul, &[u, v]);
            folds.push(Fold { op: FoldOp::Add, value, result: self.emitter.value(ty) });
        }
        let body = self.emitter.end();
        self.emitter.lanes(i, k, folds.clone(), body);
        for (r, fold) in folds.iter().enumerate() {
            let at = to.index(Some((j, rows)), r.into());
            self.emitter.store(to.buffer, at.base.clone(), fold.result, at.meaning());
        }
        let body = self.emitter.end();
        self.emitter.counted(Kind::Serial, j, count, body);
        self.push_product(count, k * rows);
    }

    /// The kernel of a product whose outermost loop is open: so many steps, each of so many multiplications.
    fn push_product(&mut self, steps: Size, each: Size) {
        let body = self.emitter.end();
        self.push_kernel("product", Vec::new(), Work::shared(steps * each, 0.05, Doing::Arithmetic), body);
    }

    /// A factor of a product: its array, the same as a matrix with one free axis and one contracted axis, and the batches. It is copied if its axes are not in
    /// runs.
    fn factor(
        &mut self,
        p: &Program,
        values: &Values,
        a: Atom,
        contract: &[usize],
        batch: &[usize],
    ) -> Result<Option<(View, View, Vec<(Size, Size)>)>> {
        let dtype = p.ty(a).dtype();
        let dims = values.dims(a).clone();
        let free = free_axes(dims.len(), contract, batch);
        let view = self.memory(p, values, a)?;
        let (f, k, view) = match (run(&view, &free), run(&view, contract)) {
            (Some(f), Some(k)) => (f, k, view),
            _ => {
                // In the order of batches, free axes, contracted axes it can be told.
                let order: Vec<usize> = batch.iter().chain(&free).chain(contract).copied().collect();
                let from = view.permuted(&order);
                let ty = storage(dtype).ok_or_else(|| error!(Rule, "no storage"))?;
                let buffer = self.new_scratch(ty, count(&dims));
                let to = View::dense(buffer, &from.dims.clone()).of(self.tag(TagName::Copy));
                self.copies.push(format!("{} is copied for a product: its axes are not in runs", p.ty(a)));
                self.copy(&from, &to, dtype)?;
                let back: Vec<usize> =
                    (0..dims.len()).map(|a| order.iter().position(|o| *o == a).unwrap_or(a)).collect();
                let view = to.permuted(&back);
                let (Some(f), Some(k)) = (run(&view, &free), run(&view, contract)) else { return Ok(None) };
                (f, k, view)
            }
        };
        let size = |axes: &[usize]| -> Size { axes.iter().map(|a| dims[*a]).product() };
        let batches: Vec<(Size, Size)> = batch.iter().map(|a| (dims[*a], view.strides[*a])).collect();
        let matrix = View {
            dims: smallvec::smallvec![size(&free), size(contract)],
            strides: smallvec::smallvec![f.0, k.0],
            mean: Mean { strides: smallvec::smallvec![f.1, k.1], ..view.mean.clone() },
            ..view.clone()
        };
        Ok(Some((view, matrix, batches)))
    }

    /// A product whose left factor is large and a view whose axes are not in runs, such as windows: the library copies it together block by block. False if it is no
    /// such product.
    fn packed_product(&mut self, p: &Program, values: &Values, e: &Equation, d: &DotGeneral) -> Result<bool> {
        let (lhs, rhs) = (p.operands(e)[0], p.operands(e)[1]);
        let dims = values.dims(lhs).clone();
        if !d.lhs_batch.is_empty() || count(&dims).at_most(COPIED_WHOLE) {
            return Ok(false);
        }
        let free = free_axes(dims.len(), &d.lhs_contract, &[]);
        let view = self.memory(p, values, lhs)?;
        if run(&view, &free).is_some() && run(&view, &d.lhs_contract).is_some() {
            return Ok(false);
        }
        let Some((r, matrix, _)) = self.factor(p, values, rhs, &d.rhs_contract, &[])? else { return Ok(false) };
        let axes = |all: &[usize]| all.iter().map(|a| (dims[*a], view.strides[*a])).collect();
        let (rows, summed) = (axes(&free), axes(&d.lhs_contract));
        let to = self.dense_result(p, values, e.result().index())?;
        let dtype = p.ty(e.result()).dtype();
        let entry = Packed { dtype, rows, summed, n: matrix.dims[0], rhs: [matrix.strides[1], matrix.strides[0]] };
        self.call(LibraryCall::Packed(entry), &[(&view, false), (&r, false), (&to, true)], dtype);
        Ok(true)
    }

    /// A product by the library of matrix products, if its axes can be told as rows, columns and batches.
    fn product(&mut self, p: &Program, values: &Values, e: &Equation, d: &DotGeneral) -> Result<Option<()>> {
        let v = e.result().index();
        let dtype = p.ty(e.result()).dtype();
        if !matches!(dtype, DType::F32 | DType::F64) || is_empty(&values.dims[v]) {
            return Ok(None);
        }
        let operands = p.operands(e);
        if operands.iter().any(|a| is_empty(values.dims(*a))) {
            return Ok(None);
        }
        if self.packed_product(p, values, e, d)? {
            return Ok(Some(()));
        }
        let lhs = self.factor(p, values, operands[0], &d.lhs_contract, &d.lhs_batch)?;
        let rhs = self.factor(p, values, operands[1], &d.rhs_contract, &d.rhs_batch)?;
        let (Some((l, lm, lb)), Some((r, rm, rb))) = (lhs, rhs) else { return Ok(None) };
        let (m, n, k) = (lm.dims[0], rm.dims[0], lm.dims[1]);
        let to = self.dense_result(p, values, v)?;
        let vector = |v: &View| View {
            dims: v.dims[1..].into(),
            strides: v.strides[1..].into(),
            mean: Mean { strides: v.mean.strides[1..].into(), ..v.mean.clone() },
            ..v.clone()
        };
        // A vector of results, for a matrix of so many rows.
        let results = |n: Size| {
            let mean = Mean { strides: smallvec::smallvec![Size::ONE], ..to.mean.clone() };
            View { dims: smallvec::smallvec![n], strides: smallvec::smallvec![Size::ONE], mean, ..to.clone() }
        };
        if lb.iter().all(|b| b.0 == Size::ONE) && (m == Size::ONE || n == Size::ONE) {
            // A matrix by a vector: no blocks to choose, every element of the matrix is read once.
            let (x, matrix) = if m == Size::ONE { (vector(&lm), &rm) } else { (vector(&rm), &lm) };
            self.vector_product(&x, matrix, &results(matrix.dims[0]));
            return Ok(Some(()));
        }
        let one_batch = lb.iter().all(|b| b.0 == Size::ONE);
        let gemm = Gemm {
            dtype,
            m,
            n,
            k,
            lhs: [lm.strides[0], lm.strides[1]],
            rhs: [rm.strides[1], rm.strides[0]],
            batches: lb.iter().zip(&rb).map(|(a, b)| (a.0, a.1, b.1)).collect(),
        };
        let arrays = [(&l, false), (&r, false), (&to, true)];
        // What may turn out to be a vector is one or the other when it runs: a batch of one example is common.
        let (rows, x, matrix) = match (m.constant(), n.constant()) {
            (None, _) if one_batch => (m, vector(&lm), &rm),
            (_, None) if one_batch => (n, vector(&rm), &lm),
            _ => {
                self.call(LibraryCall::Gemm(gemm), &arrays, dtype);
                return Ok(Some(()));
            }
        };
        let (count, one) = (self.emitter.size(rows), self.emitter.int(1));
        let is_vector = self.emitter.op(Op::Eq, &[count, one]);
        let index = self.emitter.convert(is_vector, Ty::I64);
        self.emitter.ranges().ones.insert(index, rows);
        self.emitter.begin();
        self.call(LibraryCall::Gemm(gemm), &arrays, dtype);
        let by_library = self.emitter.end();
        self.emitter.begin();
        self.vector_product(&x, matrix, &results(matrix.dims[0]));
        let by_vector = self.emitter.end();
        let cases = vec![(by_library, Vec::new()), (by_vector, Vec::new())];
        self.emitter.push(Stmt::Switch(Box::new(crate::ir::Switch { index, cases, results: Vec::new() })));
        Ok(Some(()))
    }
}

/// The axes that are in neither list.
fn free_axes(rank: usize, contract: &[usize], batch: &[usize]) -> Vec<usize> {
    (0..rank).filter(|a| !contract.contains(a) && !batch.contains(a)).collect()
}

/// The distance of neighbours along axes that are walked as one, in memory and in the value; none if they are not in one run.
fn run(view: &View, axes: &[usize]) -> Option<(Size, Size)> {
    let sized: Vec<usize> = axes.iter().copied().filter(|a| view.dims[*a] != 1).collect();
    let joined = |s: &[Size]| sized.windows(2).all(|w| s[w[0]] == s[w[1]] * view.dims[w[1]]);
    let last = |s: &[Size]| sized.last().map_or(Size::ONE, |a| s[*a]);
    let both = joined(&view.strides) && joined(&view.mean.strides);
    both.then(|| (last(&view.strides), last(&view.mean.strides)))
}

/// An array in memory as a call sees it.
fn placed(dtype: DType, dims: &[Size], strides: &[Size]) -> Placed<Size> {
    Placed { dtype, dims: dims.to_vec(), strides: strides.to_vec() }
}

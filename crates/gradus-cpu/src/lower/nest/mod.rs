//! A cluster as a nest of loops.

mod abreast;
mod across;
mod columns;
mod gather;
mod rows;
mod totals;
mod turned;

use std::rc::Rc;

use gradus_core::primitives::dot::DotGeneral;
use gradus_core::primitives::index::Gather;
use gradus_core::primitives::shaping::{Concatenate, Iota, Pad};
use gradus_core::program::{Atom, Program};
use rustc_hash::{FxHashMap, FxHashSet};

use self::abreast::Abreast;
use super::Lower;
use super::fusion::{Class, Cluster, FusionPlan, Level, is_shared, lead, point_cost, reduction, seen};
use super::made::Made;
use super::scalars::{Inner, each, places, unroll};
use super::values::{Repr, Root, SMALL, Values, moves, storage};
use super::views::{At, Strides, View, count, offsets};
use crate::cost::{Doing, Work};
use crate::error::{Result, error};
use crate::ir::meaning::{Digit, Meaning, Tag};
use crate::ir::{Buffer, Kind, LANES, Op, Ty, Value};
use crate::size::{Size, unknown};

/// A loop of the nest: how often, and which of the cut dimensions it runs over.
#[derive(Clone, Debug)]
struct Group {
    extent: Size,
    /// The cut dimension whose stride is the loop's.
    inner: usize,
    /// How many of its steps an iteration takes.
    step: usize,
}

impl Group {
    /// A loop that takes one step at a time.
    fn new(extent: Size, inner: usize) -> Group {
        Group { extent, inner, step: 1 }
    }
}

/// How many leading dimensions of an array hold the points of a nest; none if all points share it, which is planned of arrays of a known size only.
fn leading(dims: &[Size], n: Size) -> usize {
    lead(dims, n).unwrap_or_else(|| {
        if count(dims).known().is_none() {
            unknown("an array has as many elements as its nest has points, or not: only the sizes tell");
        }
        0
    })
}

pub(super) struct Nest<'a, 'b> {
    lower: &'a mut Lower,
    p: &'b Program,
    values: &'b Values,
    plan: &'b FusionPlan,
    cluster: &'b Cluster,
    /// The cut dimensions, outermost first.
    cuts: Vec<Size>,
    /// The loop variables that are open: which cut dimension's stride each goes with, and by how much it is multiplied.
    open: Vec<(usize, Size, Value)>,
    /// Elements that are there: of rows, and of the current point.
    rows: FxHashMap<usize, Vec<Value>>,
    points: FxHashMap<usize, Vec<Value>>,
    /// Operands that are there.
    loaded: FxHashMap<(Buffer, At), (Value, Meaning)>,
    /// Index vectors of gathers that are made here or lie in memory, by equation.
    made: FxHashMap<usize, Rc<[Made]>>,
    /// Operands that were written anew for this nest, by equation and position.
    turned: FxHashMap<(usize, usize), View>,
    /// Where members are stored, that are.
    stored: FxHashMap<usize, View>,
    /// The names of running totals, and where they lie.
    partial: FxHashMap<usize, Tag>,
    running: FxHashMap<usize, (Buffer, At)>,
    /// Those of them that lie where another lies at another time.
    sharing: FxHashSet<usize>,
    /// Those of them whose memory is one row, the same for all rows (of a chunk).
    one_row: FxHashSet<usize>,
    /// The lane loop in which a member can first be computed.
    phases: FxHashMap<usize, usize>,
    phase: usize,
    /// A row that does not lie in one run.
    flat: Option<Flat>,
    /// The chunk that the current row is in, where totals go through more than one.
    chunk: Option<Value>,
    /// Whether the outermost loop is over chunks, which threads may share.
    by_chunk: bool,
    /// The rows that go through the lane loops together.
    abreast: Abreast,
}

/// A row whose loops are walked as one: the place in it, and the index along each loop once something asked for it.
#[derive(Clone)]
struct Flat {
    groups: Vec<Group>,
    /// The place is `var + start·times`.
    var: Value,
    start: Option<(Value, usize)>,
    /// The place, or the block of lanes that it is in.
    place: Option<Value>,
    indices: Vec<Option<Vec<(Value, usize)>>>,
}

/// Writes the nest of a cluster. What it makes is in `lower.reprs` after.
pub(super) fn emit(
    lower: &mut Lower,
    p: &Program,
    values: &Values,
    plan: &FusionPlan,
    cluster: &Cluster,
) -> Result<()> {
    let cuts = cluster.cuts.extents();
    let mut nest = Nest {
        lower,
        p,
        values,
        plan,
        cluster,
        cuts,
        open: Vec::new(),
        rows: FxHashMap::default(),
        points: FxHashMap::default(),
        loaded: FxHashMap::default(),
        made: FxHashMap::default(),
        turned: FxHashMap::default(),
        stored: FxHashMap::default(),
        partial: FxHashMap::default(),
        running: FxHashMap::default(),
        sharing: FxHashSet::default(),
        one_row: FxHashSet::default(),
        phases: FxHashMap::default(),
        phase: 0,
        flat: None,
        chunk: None,
        by_chunk: false,
        abreast: Abreast::default(),
    };
    nest.bring_to_memory()?;
    nest.reserve()?;
    if cluster.column {
        nest.columns()
    } else if cluster.k != 0 {
        nest.find_phases();
        nest.rows_or_across(|nest| {
            nest.turn_operands(nest.innermost());
            nest.rows()
        })
    } else {
        nest.turn_operands(nest.innermost());
        nest.plain()
    }
}

impl Nest<'_, '_> {
    fn result(&self, i: usize) -> usize {
        self.p.equations()[i].result().index()
    }

    fn level(&self, v: usize) -> Level {
        self.cluster.values.get(&v).copied().unwrap_or(Level::Point)
    }

    /// The points of a level.
    fn points_at(&self, at: Level) -> Size {
        if at == Level::Row { self.cluster.rows() } else { self.cluster.n }
    }

    /// Elements of a value at each of its points.
    fn inside(&self, v: usize) -> usize {
        count(&self.values.dims[v]).over(self.points_at(self.level(v))).map_or(0, Size::written_out)
    }

    /// The level at which an equation's operands are seen.
    fn works_at(&self, i: usize) -> Level {
        match self.plan.classes[i] {
            Class::Row | Class::Column => Level::Point,
            _ => self.level(self.result(i)),
        }
    }

    /// The operands of an equation, by position.
    fn operands(&self, i: usize) -> &[Atom] {
        self.p.operands(&self.p.equations()[i])
    }

    /// How many leading dimensions of an operand run over points; none of a small matrix that all points share.
    fn lead_of(&self, i: usize, slot: usize, at: Level) -> usize {
        if is_shared(self.p.equations()[i].op(), slot) {
            return 0;
        }
        leading(self.values.dims(self.operands(i)[slot]), self.points_at(at))
    }

    /// The member that an operand is, in place.
    fn member_of(&self, i: usize, slot: usize) -> Option<usize> {
        let at = self.works_at(i);
        seen(self.cluster, &self.plan.points, self.values, self.p, i, slot, at).map(|(r, _)| r)
    }

    /// The members that operands of an equation are, in place.
    fn members_of(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.operands(i).len()).filter_map(move |slot| self.member_of(i, slot))
    }

    /// Arrays in scalars that are read by place are written to memory first.
    fn bring_to_memory(&mut self) -> Result<()> {
        for &i in &self.cluster.members {
            let at = self.works_at(i);
            for (slot, &a) in self.p.operands(&self.p.equations()[i]).iter().enumerate() {
                if self.member_of(i, slot).is_some() {
                    continue;
                }
                if self.is_picked(i, slot) {
                    match slot {
                        1 => self.bring_indices(i)?,
                        _ => drop(self.lower.memory(self.p, self.values, a)?),
                    }
                    continue;
                }
                let o = self.values.origin(a);
                let l = self.lead_of(i, slot, at);
                let uniform = o.view.strides[..l]
                    .iter()
                    .zip(self.values.dims(a))
                    .all(|(s, d)| *s == Size::ZERO || *d == Size::ONE);
                match o.root {
                    Root::Value(r) if !uniform => {
                        self.lower.in_memory(self.p, self.values, r as usize)?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Memory for what must be there after the nest.
    fn reserve(&mut self) -> Result<()> {
        for &i in &self.cluster.members {
            let v = self.result(i);
            let whole = self.plan.classes[i] == Class::Row && (self.cluster.n == self.cluster.k || self.is_total(i));
            // Columns are summed up in memory, even those that nobody reads.
            let kept = self.plan.kept[v] || self.plan.classes[i] == Class::Column;
            if !kept || whole || self.lower.frame.reprs[v].is_some() {
                continue;
            }
            let moved = moves(self.p.equations()[i].op());
            let view = match self.lower.frame.laid.get(&v) {
                Some(view) if self.plan.classes[i] == Class::Point && !moved => view.clone(),
                _ if self.plan.apart[v] => {
                    let (inside, n) = (self.inside(v), self.plan.points[v]);
                    self.lower.frame.apart.insert(v, (inside, n));
                    let dense = View::dense(self.lower.scratch(self.p, v)?, &self.values.dims[v]);
                    let dense = dense.of(self.values.tag(v));
                    dense.apart(inside, n).ok_or_else(|| error!(Rule, "points have no elements to set apart"))?
                }
                _ => match self.own_place(i) {
                    Some(view) => view,
                    None => self.lower.place_for(self.p, self.values, v)?,
                },
            };
            self.stored.insert(v, view.clone());
            self.lower.frame.reprs[v] = Some(Repr::Memory(view));
        }
        Ok(())
    }

    /// The memory of what a loop carries, if a member is the next of it and nobody else takes the old one: each element is read before it is written.
    fn own_place(&self, i: usize) -> Option<View> {
        let (p, v, frame) = (self.p, self.result(i), &self.lower.frame);
        let view = frame.wanted.get(&v).filter(|view| frame.carried.contains(&view.buffer))?;
        let old = self.operands(i).iter().find(|a| {
            a.value().is_some_and(|x| x.index() < p.inputs().len()) && {
                self.lower.placed(self.values, **a).is_some_and(|old| old.is_at(view))
            }
        })?;
        let taken = p.equations().iter().flat_map(|e| p.operands(e)).chain(p.outputs()).filter(|a| *a == old).count();
        let nests = self.plan.clusters.iter().filter(|c| c.members.contains(&i)).count();
        let at_points = self.plan.classes[i] == Class::Point && self.level(v) == Level::Point && !self.cluster.column;
        (at_points && self.is_plain(i) && taken == 1 && nests == 1).then(|| view.clone())
    }

    // ---- accesses ----

    /// The strides of an operand along the cut dimensions, as seen by an equation that works at a level.
    fn strides(&self, strides: &[Size], dims: &[Size], l: usize, at: Level) -> Vec<Size> {
        let mut out = vec![Size::ZERO; self.cuts.len()];
        // From the innermost cut dimension of the level.
        let mut j = match at {
            Level::Point => self.cuts.len(),
            Level::Row => self.row_cuts(),
        };
        for a in (0..l).rev() {
            let mut left = dims[a];
            let mut stride = strides[a];
            while left != 1 && j > 0 {
                j -= 1;
                out[j] = stride;
                stride = stride * self.cuts[j];
                left = left.over(self.cuts[j]).unwrap_or(Size::ONE);
            }
        }
        out
    }

    /// How many of the cut dimensions run over rows.
    fn row_cuts(&self) -> usize {
        let mut product = Size::ONE;
        let mut j = self.cuts.len();
        while j > 0 && product != self.cluster.k && self.cluster.k != 0 {
            j -= 1;
            product = product * self.cuts[j];
        }
        j
    }

    /// All arrays that are read or written, as strides along the cut dimensions. A loop may stand for neighbouring dimensions only if all of
    /// them walk it as one.
    fn accesses(&self) -> Vec<Vec<Size>> {
        let mut all = Vec::new();
        for &i in &self.cluster.members {
            let e = &self.p.equations()[i];
            let at = self.works_at(i);
            all.extend(self.picks(i));
            for (slot, &a) in self.p.operands(e).iter().enumerate() {
                if self.member_of(i, slot).is_none() && !self.is_picked(i, slot) {
                    let view = self.turned.get(&(i, slot)).cloned().unwrap_or_else(|| self.real_view(a));
                    for strides in [&view.strides, &view.mean.strides] {
                        all.push(self.strides(strides, self.values.dims(a), self.lead_of(i, slot, at), at));
                    }
                }
            }
            if let Some(iota) = e.op().downcast::<Iota>() {
                all.push(self.counting(iota.axis, &self.values.dims[self.result(i)], at));
            }
        }
        all.extend(self.stored.keys().filter_map(|v| self.own_strides(*v)).map(|(strides, _)| strides));
        all
    }

    /// The index along one axis, as strides along the cut dimensions.
    fn counting(&self, axis: usize, dims: &[Size], at: Level) -> Vec<Size> {
        let strides: Strides = (0..dims.len()).map(|a| Size::from(i64::from(a == axis))).collect();
        self.strides(&strides, dims, leading(dims, self.points_at(at)), at)
    }

    /// The index along one axis at the current point.
    fn index_along(&mut self, axis: usize, dims: &[Size], at: Level) -> Value {
        let strides = self.counting(axis, dims, at);
        let mut terms: Vec<(Value, Size)> = Vec::new();
        if let Some(flat) = self.flat.clone() {
            for (k, g) in flat.groups.iter().enumerate().filter(|(_, g)| strides[g.inner] != Size::ZERO) {
                let along = self.flat_index(k).into_iter();
                terms.extend(along.map(|(i, times)| (i, strides[g.inner] * times)));
            }
        }
        terms.extend(self.open.iter().map(|(j, times, var)| (*var, strides[*j] * *times)));
        let mut index: Option<Value> = None;
        for (var, s) in terms.into_iter().filter(|(_, s)| *s != Size::ZERO) {
            let term = if s == 1 {
                var
            } else {
                let s = self.lower.emitter.size(s);
                self.lower.emitter.op(Op::Mul, &[var, s])
            };
            index = Some(match index {
                Some(i) => self.lower.emitter.op(Op::Add, &[i, term]),
                None => term,
            });
        }
        match index {
            Some(i) => i,
            None => self.lower.emitter.int(0),
        }
    }

    /// The view of an operand in memory, where it is there.
    fn real_view(&self, a: Atom) -> View {
        self.lower.placed(self.values, a).unwrap_or_else(|| self.values.origin(a).view.clone())
    }

    /// Joins neighbouring cut dimensions that every access walks as one.
    fn groups(&self, range: std::ops::Range<usize>, accesses: &[Vec<Size>]) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for j in range.rev() {
            if self.cuts[j] == 1 {
                continue;
            }
            if let Some(g) = groups.last_mut() {
                let together = accesses.iter().all(|s| s[j] == s[g.inner] * g.extent);
                if together {
                    g.extent = g.extent * self.cuts[j];
                    continue;
                }
            }
            groups.push(Group::new(self.cuts[j], j));
        }
        groups.reverse();
        groups
    }

    /// The place in a buffer that strides along the cut dimensions lead to.
    fn place(&mut self, base: &At, strides: &[Size], offset: Size) -> At {
        let mut at = base.further(offset);
        if let Some(flat) = &self.flat {
            let groups = flat.groups.clone();
            let (var, start) = (flat.var, flat.start);
            // Most arrays lie in one run all the same.
            let linear = groups.windows(2).all(|w| strides[w[0].inner] == strides[w[1].inner] * w[1].extent);
            let inner = groups.last().map_or(Size::ZERO, |g| strides[g.inner]);
            if linear && inner != 0 {
                at = at.plus(var, inner);
                if let Some((v, times)) = start {
                    at = at.plus(v, inner * times);
                }
            } else {
                for (k, g) in groups.iter().enumerate() {
                    if strides[g.inner] != 0 {
                        for (index, times) in self.flat_index(k) {
                            at = at.plus(index, strides[g.inner] * times);
                        }
                    }
                }
            }
        }
        for (j, times, var) in &self.open {
            let s = strides[*j] * *times;
            if s != 0 {
                at = at.plus(*var, s);
            }
        }
        at
    }

    /// The element of a value that strides along the cut dimensions lead to.
    fn meaning(&self, tag: Tag, base: &At, strides: &[Size], offset: Size) -> Meaning {
        let mut meaning = Meaning::of(tag, base.further(offset));
        if let Some(flat) = &self.flat {
            for (k, g) in flat.groups.iter().enumerate().filter(|(_, g)| strides[g.inner] != 0) {
                meaning.digits.push(Digit {
                    var: flat.var,
                    start: flat.start,
                    behind: flat.groups[k + 1..].iter().map(|g| g.extent).product(),
                    extent: g.extent,
                    stride: strides[g.inner],
                });
            }
        }
        for (j, times, var) in &self.open {
            meaning.element = meaning.element.plus(*var, strides[*j] * *times);
        }
        meaning
    }

    /// The index along one of the loops of a flat row, as values and what each is multiplied by.
    fn flat_index(&mut self, k: usize) -> Vec<(Value, usize)> {
        let Some(flat) = self.flat.clone() else { return Vec::new() };
        if let Some(terms) = &flat.indices[k] {
            return terms.clone();
        }
        let e = &mut self.lower.emitter;
        let last = flat.groups.len() - 1;
        // Blocks of lanes do not straddle the innermost loop: then all but the lane is the same in a block.
        let blocks = flat.groups[last].extent.is_multiple_of(LANES);
        let unit = if blocks { LANES } else { 1 };
        let at = flat.place.unwrap_or_else(|| {
            let var = if blocks {
                let shift = e.int(i64::from(LANES.trailing_zeros()));
                e.op(Op::Shr, &[flat.var, shift])
            } else {
                flat.var
            };
            match flat.start {
                None => var,
                Some((v, times)) => {
                    let times = e.int((times / unit) as i64);
                    let begin = e.op(Op::Mul, &[v, times]);
                    e.op(Op::Add, &[begin, var])
                }
            }
        });
        let in_units = |size: Size| size.over(Size::from(unit)).unwrap_or(size);
        let behind = flat.groups[k + 1..].iter().map(|g| g.extent).product::<Size>();
        let q = if k == last { at } else { quotient(e, at, in_units(behind)) };
        let extent = if k == last { in_units(flat.groups[k].extent) } else { flat.groups[k].extent };
        let index = if k == 0 {
            q
        } else if let Some(n) = extent.known().filter(|n| n.is_power_of_two()) {
            let mask = e.int(n as i64 - 1);
            e.op(Op::And, &[q, mask])
        } else {
            // q - (q / extent)·extent
            let rounds = quotient(e, q, extent);
            let extent = e.size(extent);
            let whole = e.op(Op::Mul, &[rounds, extent]);
            e.op(Op::Sub, &[q, whole])
        };
        let whole = flat.groups.iter().map(|g| g.extent).product();
        let digit = crate::check::Digit { counters: (flat.var, flat.start.map(|(v, _)| v)), whole };
        e.ranges().digit(index, extent, digit);
        let mut terms = vec![(index, 1)];
        if blocks && k == last {
            let mask = e.int(LANES as i64 - 1);
            let lane = e.op(Op::And, &[flat.var, mask]);
            e.ranges().digit(lane, LANES.into(), digit);
            terms = vec![(index, LANES), (lane, 1)];
        }
        if let Some(flat) = &mut self.flat {
            flat.place = Some(at);
            flat.indices[k] = Some(terms.clone());
        }
        terms
    }

    /// Where a member is stored, in the current chunk.
    fn home(&self, v: usize) -> Option<(Buffer, At)> {
        let View { buffer, base, .. } = self.stored.get(&v).cloned()?;
        if !self.one_row.contains(&v) {
            return Some((buffer, base));
        }
        let row = self.cluster.k * self.inside(v);
        let base = base.further(row * self.abreast.now);
        match self.chunk {
            Some(chunk) if self.by_chunk => Some((buffer, base.plus(chunk, row * self.abreast.most))),
            _ => Some((buffer, base)),
        }
    }

    /// Strides of a member's own memory, and where in it the elements of a point lie.
    fn own_strides(&self, v: usize) -> Option<(Vec<Size>, Vec<Size>)> {
        let view = self.stored.get(&v)?;
        let at = self.level(v);
        let one_row = self.one_row.contains(&v);
        // A dense array need not have the nest's dimensions: a reshape that is a copy has its operand's.
        if one_row || view.is_dense() {
            return Some(self.dense_strides(v, if one_row { self.row_cuts() } else { 0 }));
        }
        let l = lead(&view.dims, self.points_at(at))?;
        Some((self.strides(&view.strides, &view.dims, l, at), offsets(&view.dims[l..], &view.strides[l..])))
    }

    /// Which elements of a member a point has: strides along the cut dimensions, and the elements inside.
    fn own_elements(&self, v: usize) -> (Vec<Size>, Vec<Size>) {
        self.dense_strides(v, 0)
    }

    /// Strides of a member in row-major order along the cut dimensions from the `first` on.
    fn dense_strides(&self, v: usize, first: usize) -> (Vec<Size>, Vec<Size>) {
        let inside = self.inside(v);
        let mut s = Size::from(inside);
        let mut out = vec![Size::ZERO; self.cuts.len()];
        let last = if self.level(v) == Level::Row { self.row_cuts() } else { self.cuts.len() };
        for j in (first..last).rev() {
            out[j] = s;
            s = s * self.cuts[j];
        }
        (out, (0..inside).map(Size::from).collect())
    }

    /// Where the elements of a member at the current point lie, and what they are.
    fn own_places(&mut self, v: usize) -> Option<(Buffer, Vec<(At, Meaning)>)> {
        let (buffer, base) = self.home(v)?;
        let (strides, inside) = self.own_strides(v)?;
        let (elements, numbers) = self.own_elements(v);
        let tag = self.values.tag(v);
        let all = inside
            .into_iter()
            .zip(numbers)
            .map(|(k, e)| (self.place(&base, &strides, k), self.meaning(tag, &At::start(), &elements, e)));
        Some((buffer, all.collect()))
    }

    // ---- points ----

    /// The elements of an operand at the current point.
    fn operand(&mut self, i: usize, slot: usize) -> Result<Vec<Value>> {
        let at = self.works_at(i);
        let a = self.operands(i)[slot];
        let dims = self.values.dims(a).clone();
        let l = self.lead_of(i, slot, at);
        let o = self.values.origin(a).clone();
        let inside = View {
            base: At::start().further(o.view.base.offset),
            strides: o.view.strides[l..].into(),
            ..View::dense(o.view.buffer, &dims[l..])
        };
        if let Some(r) = self.member_of(i, slot) {
            let elements = self.member(r)?;
            return Ok(places(&inside).map(|k| elements[k as usize]).collect());
        }
        // An array in scalars, the same at every point.
        if let Some(elements) = self.lower.elements_at_hand(self.p, o.root)
            && o.view.strides[..l].iter().zip(&dims).all(|(s, d)| *s == Size::ZERO || *d == Size::ONE)
        {
            return Ok(places(&inside).map(|k| elements[k as usize]).collect());
        }
        if let Some(value) = self.lower.splat_of(self.p, self.values, a) {
            return Ok(vec![value; count(&inside.dims).written_out()]);
        }
        let view = self.turned.get(&(i, slot)).cloned().or_else(|| self.lower.placed(self.values, a));
        let view = view.ok_or_else(|| error!(Rule, "an operand is not in memory"))?;
        let [strides, elements] = [&view.strides, &view.mean.strides].map(|s| self.strides(s, &dims, l, at));
        let numbers = offsets(&inside.dims, &view.mean.strides[l..]);
        Ok(offsets(&inside.dims, &view.strides[l..])
            .into_iter()
            .zip(numbers)
            .map(|(k, e)| {
                let at = self.place(&view.base, &strides, k);
                let meaning = self.meaning(view.mean.tag, &view.mean.base, &elements, e);
                self.read(view.buffer, at, meaning)
            })
            .collect())
    }

    /// An element, loaded once at each point.
    fn read(&mut self, buffer: Buffer, at: At, meaning: Meaning) -> Value {
        if let Some((v, same)) = self.loaded.get(&(buffer, at.clone()))
            && *same == meaning
        {
            return *v;
        }
        let v = self.lower.emitter.load(buffer, at.clone(), meaning.clone());
        self.loaded.insert((buffer, at), (v, meaning));
        v
    }

    /// The elements of a member at the current point or row.
    fn member(&mut self, v: usize) -> Result<Vec<Value>> {
        if let Some(elements) = self.rows.get(&v).or_else(|| self.points.get(&v)) {
            return Ok(elements.clone());
        }
        let level = self.level(v);
        // Made in an earlier lane loop, and in memory: it is read back.
        if level == Level::Point
            && self.phases.get(&v).is_some_and(|p| *p < self.phase)
            && let Some((buffer, places)) = self.own_places(v)
        {
            let elements: Vec<Value> = places.into_iter().map(|(at, meaning)| self.read(buffer, at, meaning)).collect();
            self.points.insert(v, elements.clone());
            return Ok(elements);
        }
        let i = *self
            .cluster
            .members
            .iter()
            .find(|i| self.result(**i) == v)
            .ok_or_else(|| error!(Rule, "x{v} is not in its nest"))?;
        let elements = self.compute(i)?;
        if level == Level::Row {
            self.rows.insert(v, elements.clone());
        } else {
            self.points.insert(v, elements.clone());
        }
        Ok(elements)
    }

    fn compute(&mut self, i: usize) -> Result<Vec<Value>> {
        let (p, e) = (self.p, &self.p.equations()[i]);
        let v = self.result(i);
        let at = self.level(v);
        let ty =
            storage(p.ty(e.result()).dtype()).ok_or_else(|| error!(Rule, "{} has no scalar type", p.ty(e.result())))?;
        if let Some(iota) = e.op().downcast::<Iota>() {
            let dims = &self.values.dims[v];
            let l = leading(dims, self.points_at(at));
            if iota.axis >= l {
                return Ok(unroll(&mut self.lower.emitter, (p, e), l, &[], &dims[l..], ty));
            }
            let dims = dims.clone();
            let index = self.index_along(iota.axis, &dims, at);
            let value = self.lower.emitter.convert(index, ty);
            return Ok(vec![value; self.inside(v)]);
        }
        if let Some(gather) = e.op().downcast::<Gather>() {
            return self.gather(i, gather);
        }
        let mut operands = Vec::new();
        for slot in 0..p.operands(e).len() {
            operands.push(self.operand(i, slot)?);
        }
        if moves(e.op()) {
            return Ok(operands.swap_remove(0));
        }
        if self.is_plain(i) {
            let operands: Vec<&[Value]> = operands.iter().map(Vec::as_slice).collect();
            let n = self.inside(v);
            return Ok(each(&mut self.lower.emitter, (p, e), &operands, n));
        }
        // An operation inside the point.
        let n = self.points_at(at);
        let l = leading(&self.values.dims[v], n);
        let leads: Vec<usize> = (0..operands.len()).map(|slot| self.lead_of(i, slot, at)).collect();
        let inner: Vec<Inner<'_>> = operands
            .iter()
            .zip(p.operands(e))
            .zip(&leads)
            .map(|((elements, a), lead)| Inner { elements, dims: &self.values.dims(*a)[*lead..] })
            .collect();
        let lead = leads.first().copied().unwrap_or(l);
        Ok(unroll(&mut self.lower.emitter, (p, e), lead, &inner, &self.values.dims[v][l..], ty))
    }

    /// Whether an operation treats elements alike.
    fn is_plain(&self, i: usize) -> bool {
        let e = &self.p.equations()[i];
        reduction(e.op()).is_none() && !e.op().is::<DotGeneral>() && !e.op().is::<Concatenate>() && !e.op().is::<Pad>()
    }

    fn store(&mut self, v: usize, elements: &[Value]) {
        let Some((buffer, places)) = self.own_places(v) else { return };
        for ((at, meaning), x) in places.into_iter().zip(elements) {
            self.lower.emitter.store(buffer, at, *x, meaning);
        }
    }

    // ---- loops ----

    /// Loops around a body, the variable of each open inside.
    fn nested(
        &mut self,
        groups: &[Group],
        kinds: &[Kind],
        body: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let Some((g, rest)) = groups.split_first() else { return body(self) };
        let var = self.lower.emitter.value(Ty::I64);
        self.lower.emitter.begin();
        self.open.push((g.inner, g.step.into(), var));
        let inside = self.nested(rest, &kinds[1..], body);
        self.open.pop();
        let stmts = self.lower.emitter.end();
        self.lower.emitter.counted(kinds[0], var, g.extent, stmts);
        inside
    }

    fn clear_point(&mut self) {
        self.points.clear();
        self.loaded.clear();
    }

    /// Closes a kernel whose body was written since `begin`.
    fn finish_kernel(&mut self, work: Work, outputs: Vec<Value>) {
        let body = self.lower.emitter.end();
        let first = self.cluster.members.last().map_or("empty", |i| self.p.equations()[*i].op().name());
        self.lower.push_kernel(first, outputs, work, body);
    }

    /// The work of all points.
    fn work(&self) -> Work {
        Work::shared(self.cluster.n, point_cost(self.p, self.cluster), Doing::Arithmetic)
    }

    /// Puts loops in the order in which what is stored lies, if the most of it does not lie in its own: neighbours in memory are written one after the other.
    fn sort_by_stores(&self, groups: &mut [Group]) {
        let stored = self.cluster.members.iter().map(|i| self.result(*i));
        let strides = stored.filter_map(|v| Some((self.inside(v), self.own_strides(v)?.0)));
        let Some((_, most)) = strides.reduce(|a, b| if b.0 > a.0 { b } else { a }) else { return };
        // Loops that a result is not along stay where they are, and so does everything with them.
        if groups.iter().all(|g| most[g.inner] != Size::ZERO) {
            groups.sort_by_key(|g| std::cmp::Reverse(most[g.inner].guess()));
        }
    }

    /// Points without reductions.
    fn plain(&mut self) -> Result<()> {
        let accesses = self.accesses();
        let stored: Vec<usize> =
            self.cluster.members.iter().map(|i| self.result(*i)).filter(|v| self.stored.contains_key(v)).collect();
        let mut groups = self.groups(0..self.cuts.len(), &accesses);
        if groups.is_empty() {
            groups.push(Group::new(Size::ONE, 0));
            if self.cuts.is_empty() {
                self.cuts.push(Size::ONE);
            }
        }
        self.sort_by_stores(&mut groups);
        let lanes = if self.picks_runs(&groups) { groups.len() - 1 } else { lanes_of(&groups) };
        let lane = groups.remove(lanes);
        // Loops inside the lanes are those behind it.
        let behind = groups.split_off(lanes);
        let mut order = groups.clone();
        order.push(lane);
        order.extend(behind.iter().cloned());
        let kinds: Vec<Kind> = (0..order.len()).map(|i| if i == lanes { Kind::Lanes } else { Kind::Serial }).collect();
        self.lower.emitter.begin();
        self.nested(&order, &kinds, &mut |nest: &mut Self| {
            nest.clear_point();
            for v in &stored {
                let elements = nest.member(*v)?;
                nest.store(*v, &elements);
            }
            Ok(())
        })?;
        self.finish_kernel(self.work(), Vec::new());
        Ok(())
    }
}

/// `a / n` of numbers that are not negative: a shift, or a product with the reciprocal, which vectors can do; the half keeps
/// it exact below 2^50.
fn quotient(e: &mut super::emit::Emitter, a: Value, n: Size) -> Value {
    if n == 1 {
        return a;
    }
    if let Some(n) = n.known().filter(|n| n.is_power_of_two()) {
        let shift = e.int(i64::from(n.trailing_zeros()));
        return e.op(Op::Shr, &[a, shift]);
    }
    let x = e.convert(a, Ty::F64);
    let half = e.number(Ty::F64, 0.5);
    let inverse = match n {
        Size::Known(n) => e.number(Ty::F64, 1.0 / n as f64),
        n => {
            let (one, n) = (e.number(Ty::F64, 1.0), e.size(n));
            let n = e.convert(n, Ty::F64);
            e.op(Op::Div, &[one, n])
        }
    };
    let x = e.op(Op::Add, &[x, half]);
    let x = e.op(Op::Mul, &[x, inverse]);
    e.convert(x, Ty::I64)
}

/// Which loop runs in lanes: the innermost, unless it is short and another is long.
fn lanes_of(groups: &[Group]) -> usize {
    let last = groups.len() - 1;
    if groups[last].extent.guess() >= SMALL {
        return last;
    }
    (0..groups.len()).max_by_key(|i| (groups[*i].extent.guess().min(64), *i)).unwrap_or(last)
}

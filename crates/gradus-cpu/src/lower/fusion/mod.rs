//! Which equations share a nest of loops, and in which order everything is done.
//!
//! Every equation gets a *level*: a cluster's is one above that of the arrays it reads, so an array of a lower level
//! cannot depend on the cluster, and whatever depends on it has at least its level. An equation may join a cluster if
//! all its other operands have a lower level; so no cycle can arise, and the whole plan takes linear time.
//!
//! Effects happen in the order of the program: each waits for the one before it, and has at least its level, so that the levels
//! say of this order, too, what depends on what.

mod copies;
mod hosts;
mod indices;
mod points;
mod sink;
mod totals;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gradus_core::primitives::Op;
use gradus_core::primitives::dot::DotGeneral;
use gradus_core::primitives::index::{DynamicUpdateSlice, Gather, Scatter};
pub(super) use gradus_core::primitives::reduce::CHUNK;
use gradus_core::primitives::reduce::{
    ArgMax, ArgMin, NARROW, ReduceAnd, ReduceMax, ReduceMin, ReduceOr, ReduceProd, ReduceSum,
};
use gradus_core::primitives::shaping::Iota;
use gradus_core::program::{Atom, Equation, Program};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::emit::{cost, form_of};
use super::indexed::{Windows, is_held, is_small_gather};
use super::values::{Root, SMALL_OPERAND, Values, moves, storage};
use super::views::{count, is_empty, row_major};
use crate::ir::{FoldOp, LANES};
use crate::size::Size;

/// Rows longer than this are not walked twice in one nest: they do not stay in the first cache.
const LONGEST_ROW: usize = 16384;
/// Equations in one nest.
const LARGEST_CLUSTER: usize = 256;

/// How an equation is done.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Class {
    /// Nothing is done: its result is a view.
    View,
    /// Element by element, in scalars.
    Scalars,
    /// For every point of a nest of loops.
    Point,
    /// A reduction over the innermost loop, in lanes.
    Row,
    /// A reduction over outer loops, one lane for each result.
    Column,
    /// By itself: control flow, products, the library.
    Single,
    /// Where a window is found whose index it makes.
    Index,
}

/// Where a member's value stands in its nest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Level {
    /// One for each point.
    Point,
    /// One for each row.
    Row,
}

/// Products of trailing dimensions at which dimensions begin, from 1 to the number of points; each certainly divides the next.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cuts(Vec<Size>);

impl Cuts {
    fn new(n: Size) -> Cuts {
        if n == 1 { Cuts(vec![n]) } else { Cuts(vec![Size::ONE, n]) }
    }

    /// One more, if it can be.
    fn with(mut self, cut: Size) -> Option<Cuts> {
        if self.0.contains(&cut) {
            return Some(self);
        }
        let below = self.0.iter().rposition(|c| cut.over(*c).is_some())?;
        self.0.get(below + 1)?.over(cut)?;
        self.0.insert(below + 1, cut);
        Some(self)
    }

    fn union(&self, other: &Cuts) -> Option<Cuts> {
        other.0.iter().try_fold(self.clone(), |cuts, c| cuts.with(*c))
    }

    /// The dimensions between cuts, outermost first.
    pub fn extents(&self) -> Vec<Size> {
        self.0.windows(2).rev().filter_map(|w| w[1].over(w[0])).collect()
    }
}

/// Equations that share a nest.
#[derive(Debug)]
pub(super) struct Cluster {
    /// Points of the nest.
    pub n: Size,
    /// The length of a row; 0 if nothing is reduced.
    pub k: Size,
    /// Where some member's dimensions begin.
    pub cuts: Cuts,
    level: u32,
    /// Its equations, in program order.
    pub members: Vec<usize>,
    /// Its equations by their result.
    pub values: FxHashMap<usize, Level>,
    /// Whether it is the nest of a column reduction.
    pub column: bool,
    /// Those of its equations that are sums over all of its rows.
    pub totals: Vec<usize>,
}

/// What is done, in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unit {
    /// An equation by itself.
    Equation(usize),
    /// A nest.
    Cluster(usize),
}

/// The plan of a block.
pub(super) struct FusionPlan {
    pub classes: Vec<Class>,
    pub clusters: Vec<Cluster>,
    pub units: Vec<Unit>,
    /// Whether the value must be in memory (or, if it is small, in scalars) after its unit.
    pub kept: Vec<bool>,
    /// For each value, how many of its leading elements are points of nests; the rest of each point is unrolled.
    pub points: Vec<Size>,
    /// Whether the elements of a value's points may lie apart in memory: everything that reads it can say where they are.
    pub apart: Vec<bool>,
    /// What each unit reads from outside of itself.
    pub reads: Vec<Vec<Root>>,
    /// The equations that make values where windows are found, by value.
    pub makers: FxHashMap<usize, usize>,
    /// How many units read a root; the end of the block is one for each output.
    pub uses: FxHashMap<Root, u32>,
}

/// The reduction that a primitive is, with its axes.
pub(super) fn reduction(op: &Op) -> Option<(FoldOp, &[usize])> {
    macro_rules! first {
        ($($t:ty => $f:ident),*) => { $(if let Some(r) = op.downcast::<$t>() { return Some((FoldOp::$f, &r.axes)); })* };
    }
    first!(ReduceSum => Add, ReduceProd => Mul, ReduceMax => Max, ReduceMin => Min, ReduceAnd => And, ReduceOr => Or);
    None
}

/// The axes that a primitive reduces: to a number, or to a place.
pub(super) fn reduced_axes(op: &Op) -> Option<&[usize]> {
    let place = op.downcast::<ArgMax>().map(|a| &a.axis).or_else(|| op.downcast::<ArgMin>().map(|a| &a.axis));
    reduction(op).map(|(_, axes)| axes).or(place.map(std::slice::from_ref))
}

/// Whether an operand is one array that all points share: the small right matrix of a product, or what a gather picks from. The same array may be another
/// operand, too; so operands are told by their position.
pub(super) fn is_shared(op: &Op, slot: usize) -> bool {
    match slot {
        0 => op.is::<Gather>(),
        1 => op.downcast::<DotGeneral>().is_some_and(|d| d.lhs_batch.is_empty()),
        _ => false,
    }
}

/// Whether an operand of an equation lies at its points: each of them has elements of its own. Of indices that is one index vector.
pub(super) fn is_at_points(p: &Program, values: &Values, points: &[Size], i: usize, slot: usize) -> bool {
    let e = &p.equations()[i];
    let r = e.result().index();
    match e.op().downcast::<Gather>() {
        Some(g) => slot == 1 && Windows::from(g).are_points(&values.dims[r], points[r]),
        None => !is_shared(e.op(), slot),
    }
}

/// The operands of an equation that lie at its points.
pub(super) fn at_points<'a>(p: &'a Program, e: &'a Equation) -> impl Iterator<Item = Atom> + 'a {
    p.operands(e).iter().enumerate().filter(|(slot, _)| !is_shared(e.op(), *slot)).map(|(_, a)| *a)
}

/// How many leading dimensions hold `n` elements together.
pub(super) fn lead(dims: &[Size], n: Size) -> Option<usize> {
    let mut product = Size::ONE;
    for (i, d) in dims.iter().enumerate() {
        if product == n {
            return Some(i);
        }
        product = product * *d;
    }
    (product == n).then_some(dims.len())
}

/// How many elements a result is made of, if they are so few that they are all written out, and a few kept ones stand behind the run they are: rows of so few
/// elements leave most lanes of a fold idle, and the few are beside each other in memory.
pub(super) fn short_run(dims: &[Size], axes: &[usize]) -> Option<usize> {
    let sized: Vec<usize> = (0..dims.len()).filter(|a| dims[*a] != 1).collect();
    let reduced = |a: &&usize| axes.contains(a);
    let behind = sized.iter().rev().take_while(|a| !reduced(a)).count();
    let (front, behind) = sized.split_at(sized.len() - behind);
    let run = front.iter().rev().take_while(reduced).count();
    let alone = front.iter().filter(reduced).count() == run;
    let n = |axes: &[usize]| axes.iter().map(|a| dims[*a]).product::<Size>().known();
    let (k, behind) = (n(&front[front.len() - run..])?, n(behind)?);
    (alone && (2..2 * LANES).contains(&k) && (2..=NARROW).contains(&behind)).then_some(k)
}

struct Planner<'a> {
    p: &'a Program,
    threads: bool,
    values: &'a Values,
    classes: Vec<Class>,
    points: Vec<Size>,
    clusters: Vec<Cluster>,
    /// The cluster that first made each value.
    cluster: Vec<Option<usize>>,
    /// All clusters that make it.
    homes: Vec<SmallVec<[usize; 1]>>,
    levels: Vec<u32>,
    /// The equations that are done where a window is found, by their result.
    makers: FxHashMap<usize, usize>,
    /// Reductions that read their operand from memory at other points than it is made at: how many.
    reduced: FxHashMap<usize, Size>,
    /// The last cluster of a level and number of points.
    open: FxHashMap<(u32, Size), usize>,
}

/// Plans a block. `threads`: whether threads may share its nests.
pub(super) fn plan(p: &Program, values: &Values, threads: bool) -> FusionPlan {
    let mut planner = Planner {
        p,
        threads,
        values,
        classes: vec![Class::Single; p.equations().len()],
        points: values.dims.iter().map(|d| count(d)).collect(),
        clusters: Vec::new(),
        cluster: vec![None; p.value_count()],
        homes: vec![SmallVec::new(); p.value_count()],
        levels: vec![0; p.value_count()],
        makers: FxHashMap::default(),
        reduced: FxHashMap::default(),
        open: FxHashMap::default(),
    };
    planner.find_points();
    planner.classify();
    planner.find_indices();
    planner.spare_copies();
    planner.form_clusters();
    planner.host_points();
    planner.sink(|_| true);
    planner.join_totals();
    planner.join_columns();
    // What several nests of columns read has one reader now.
    planner.sink(|c| c.column);
    planner.make_again();
    // Nests that make the same again share it.
    planner.join_columns();
    planner.finish()
}

impl Planner<'_> {
    fn dims(&self, a: Atom) -> &[Size] {
        self.values.dims(a)
    }

    /// Whether results and operands have a scalar type.
    fn is_typed(&self, e: &Equation) -> bool {
        let mut from = self.p.operands(e).iter().map(|a| self.values.ty(*a));
        from.all(|ty| ty.is_some()) && self.values.types[e.result().index()].is_some()
    }

    fn is_map(&self, e: &Equation) -> bool {
        e.results().len() == 1
            && form_of(self.p, e).is_ok_and(|form| form.is_some())
            && self.p.operands(e).iter().all(|a| self.dims(*a) == &*self.values.dims[e.result().index()])
    }

    /// Elements at each point, if that is a known number.
    fn inside(&self, a: Atom, n: Size) -> Option<usize> {
        count(self.dims(a)).over(n)?.known()
    }

    fn point_count(&self, a: Atom) -> Size {
        a.value().map_or_else(|| count(self.dims(a)), |v| self.points[v.index()])
    }

    fn classify(&mut self) {
        for (i, e) in self.p.equations().iter().enumerate() {
            self.classes[i] = self.class(e);
            if let (Class::Single, Some((class, n))) = (self.classes[i], self.reduced_from_memory(e)) {
                self.classes[i] = class;
                self.reduced.insert(i, n);
            }
        }
    }

    fn class(&self, e: &Equation) -> Class {
        if e.op().holds_programs() || e.results().len() != 1 || !e.op().effects().is_pure() {
            return Class::Single;
        }
        let r = e.result().index();
        let operands = self.p.operands(e);
        let total = count(&self.values.dims[r]);
        let one_to = |n: Size, most: usize| n.known().is_some_and(|n| (1..=most).contains(&n));
        let small =
            one_to(total, self.values.small) && operands.iter().all(|a| one_to(count(self.dims(*a)), SMALL_OPERAND));
        let typed = self.is_typed(e);
        if self.values.is_view(r) {
            return Class::View;
        }
        if small && typed && self.in_scalars(e) {
            return Class::Scalars;
        }
        if total == 0 || operands.iter().any(|a| is_empty(self.dims(*a))) {
            return Class::Single;
        }
        if moves(e.op()) {
            // Strides could not say it: it is copied, point by point, unless only a condition says that there are as many.
            let as_many = count(self.dims(operands[0])) == total;
            let moved = as_many && storage(self.p.ty(e.result()).dtype()).is_some();
            return if moved { Class::Point } else { Class::Single };
        }
        if self.is_map(e) || self.is_inner(e) {
            return Class::Point;
        }
        if e.op().is::<Iota>() && typed {
            return Class::Point;
        }
        if let Some(g) = e.op().downcast::<Gather>() {
            let there = storage(self.p.ty(e.result()).dtype()).is_some() && is_held(g, self.dims(operands[0]));
            return if there && !is_small_gather(self.p, self.values, e, g) { Class::Point } else { Class::Single };
        }
        if let Some((op, axes)) = reduction(e.op())
            && typed
            && !axes.is_empty()
        {
            return self.reduction_class(e, op, axes, self.point_count(operands[0]));
        }
        if let Some(axes) = reduced_axes(e.op())
            && typed
        {
            // Places of rows are made of other operations, by the time this is asked.
            let class = self.reduction_class(e, FoldOp::Max, axes, self.point_count(operands[0]));
            return if class == Class::Column { class } else { Class::Single };
        }
        Class::Single
    }

    /// Whether an equation on few elements is written out for each of them.
    fn in_scalars(&self, e: &Equation) -> bool {
        let (operands, lanes) = (self.p.operands(e), self.values.in_lanes(e.result().into()));
        if self.is_map(e) {
            return !lanes;
        }
        if !super::scalars::unrolls(e.op(), &|i| self.dims(operands[i]).into()) {
            return false;
        }
        let mut from_lanes = operands.iter().map(|a| self.values.shows_lanes(*a));
        if reduction(e.op()).is_some() {
            // It joins the nest that makes what it reduces.
            return !from_lanes.any(|on| on);
        }
        // What is put together of scalars is in scalars first, whoever takes it.
        !lanes || (!operands.is_empty() && !from_lanes.any(|on| on))
    }

    /// A reduction that fits into no nest at the points of its operand, if it does at others: those of all elements, or those up to the last axis that is reduced. It
    /// reads its operand from memory.
    fn reduced_from_memory(&self, e: &Equation) -> Option<(Class, Size)> {
        let (op, axes) = reduction(e.op()).filter(|_| self.is_typed(e))?;
        let dims = self.dims(self.p.operands(e)[0]);
        if is_empty(dims) {
            return None;
        }
        let up_to_last: Size = dims[..=*axes.last()?].iter().product();
        let classes = [count(dims), up_to_last].map(|n| (self.reduction_class(e, op, axes, n), n));
        classes.into_iter().find(|(class, _)| *class != Class::Single)
    }

    /// Rows if the reduced axes are the last of these points of the operand, columns if the kept ones are.
    fn reduction_class(&self, e: &Equation, op: FoldOp, axes: &[usize], n: Size) -> Class {
        let (x, r) = (self.p.operands(e)[0], e.result().index());
        let rounds = matches!(op, FoldOp::Add | FoldOp::Mul) && self.p.ty(x).dtype().is_inexact();
        let dims = self.dims(x);
        let Some(lead) = lead(dims, n) else { return Class::Single };
        let sized: Vec<usize> = (0..lead).filter(|a| dims[*a] != 1).collect();
        if axes.iter().any(|a| *a >= lead && dims[*a] != 1) {
            return Class::Single;
        }
        let reduced = |a: &usize| axes.contains(a);
        let run = sized.iter().rev().take_while(|a| reduced(a)).count();
        let all = sized.iter().filter(|a| reduced(a)).count();
        let reduced_points: Size = axes.iter().map(|a| dims[*a]).product();
        let (Some(suffix), Some(kept_points)) = (count(dims).over(n), n.over(reduced_points)) else {
            return Class::Single;
        };
        if all == 0 {
            return Class::Single;
        }
        if run == all {
            let k: Size = sized[sized.len() - run..].iter().map(|a| dims[*a]).product();
            // The result has the same elements at each of its points.
            let fits =
                self.points[r] * k == n || (kept_points == 1 && count(&self.values.dims[r]).is_few(self.values.small));
            // A row is folded in lanes; what has more behind it than that is added up from the first to the last.
            let in_lanes = !rounds || suffix.at_most(NARROW);
            return if fits && in_lanes { Class::Row } else { Class::Single };
        }
        // Trailing kept dimensions of at most 16 elements are folded in lanes: rows. Of those known at run time it is guessed.
        let kept_behind: Size = sized.iter().rev().take_while(|a| !reduced(a)).map(|a| dims[*a]).product();
        let in_lanes = (kept_behind * suffix).guess() > NARROW || (suffix == 1 && short_run(dims, axes).is_some());
        if run == 0 && in_lanes && self.points[r] == kept_points { Class::Column } else { Class::Single }
    }

    /// How an operand stands in a cluster: the root's level there if it is seen where it is made.
    fn seen(&self, c: &Cluster, i: usize, slot: usize, at: Level) -> Option<Level> {
        seen(c, &self.points, self.values, self.p, i, slot, at).map(|(_, level)| level)
    }

    fn level_of(&self, a: Atom) -> u32 {
        match self.values.origin(a).root {
            Root::Value(r) => self.levels[r as usize],
            Root::Constant(_) => 0,
        }
    }

    fn form_clusters(&mut self) {
        let mut last_effect = 0;
        for (i, e) in self.p.equations().iter().enumerate() {
            let operands = self.p.operands(e);
            let mut highest = operands.iter().map(|a| self.level_of(*a)).max().unwrap_or(0);
            if !e.op().effects().is_pure() {
                highest = highest.max(last_effect);
                last_effect = highest;
            }
            match self.classes[i] {
                Class::View => {
                    // Level and cluster are those of the root.
                }
                Class::Scalars | Class::Single | Class::Index => {
                    for r in e.results() {
                        self.levels[r.index()] = highest;
                    }
                }
                Class::Point | Class::Row | Class::Column => self.place(i, highest),
            }
        }
    }

    /// The points an equation works on, and the length of the rows it makes.
    fn domain(&self, i: usize) -> (Size, Size) {
        let e = &self.p.equations()[i];
        let r = e.result().index();
        let reduced = || self.reduced.get(&i).copied().unwrap_or_else(|| self.point_count(self.p.operands(e)[0]));
        match self.classes[i] {
            Class::Row => {
                let n = reduced();
                let axes = reduction(e.op()).map_or(&[][..], |(_, a)| a);
                let dims = self.dims(self.p.operands(e)[0]);
                (n, axes.iter().map(|a| dims[*a]).product())
            }
            Class::Column => (reduced(), Size::ZERO),
            _ if moves(e.op()) => (count(&self.values.dims[r]), Size::ZERO),
            _ => (self.points[r], Size::ZERO),
        }
    }

    /// A cluster that an equation could begin.
    fn fresh(&self, i: usize, level: u32) -> Cluster {
        let (n, _) = self.domain(i);
        Cluster {
            n,
            k: Size::ZERO,
            cuts: Cuts::new(n),
            level,
            members: Vec::new(),
            values: FxHashMap::default(),
            column: self.classes[i] == Class::Column,
            totals: Vec::new(),
        }
    }

    /// Whether an equation's dimensions fit into loops, where no cluster is formed yet; otherwise it goes through the library.
    fn fits_alone(&mut self, i: usize) -> bool {
        let fresh = self.fresh(i, 1);
        self.clusters.push(fresh);
        let fits = self.may_join(i, self.clusters.len() - 1).is_some();
        self.clusters.pop();
        fits
    }

    fn place(&mut self, i: usize, highest: u32) {
        let e = &self.p.equations()[i];
        let r = e.result().index();
        let mut candidates = Vec::new();
        for a in self.p.operands(e) {
            if let Root::Value(v) = self.values.origin(*a).root
                && let Some(c) = self.cluster[v as usize]
                && self.clusters[c].level == highest
                && !candidates.contains(&c)
            {
                candidates.push(c);
            }
        }
        let (n, _) = self.domain(i);
        if candidates.is_empty()
            && self.classes[i] != Class::Column
            && let Some(&c) = self.open.get(&(highest + 1, n))
        {
            candidates.push(c);
        }
        for c in candidates {
            if let Some((level, cuts, k)) = self.may_join(i, c) {
                self.join(i, c, level, cuts, k);
                return;
            }
        }
        let (c, fresh) = (self.clusters.len(), self.fresh(i, highest + 1));
        if !fresh.column {
            self.open.insert((highest + 1, n), c);
        }
        self.clusters.push(fresh);
        match self.may_join(i, c) {
            Some((level, cuts, k)) => self.join(i, c, level, cuts, k),
            None => {
                // Its own dimensions do not fit into loops: it goes through the library.
                self.clusters[c].n = Size::ZERO;
                self.open.remove(&(highest + 1, n));
                self.classes[i] = Class::Single;
                self.levels[r] = highest;
            }
        }
    }

    fn join(&mut self, i: usize, c: usize, level: Level, cuts: Cuts, k: Size) {
        let r = self.p.equations()[i].result().index();
        let cluster = &mut self.clusters[c];
        cluster.cuts = cuts;
        cluster.k = if k == 0 { cluster.k } else { k };
        cluster.members.push(i);
        cluster.values.insert(r, level);
        self.levels[r] = cluster.level;
        self.cluster[r] = Some(c);
        self.homes[r].push(c);
    }

    /// The level of an equation's result in a cluster, the cuts and the row length it brings, if it may join.
    fn may_join(&self, i: usize, c: usize) -> Option<(Level, Cuts, Size)> {
        let cluster = &self.clusters[c];
        let e = &self.p.equations()[i];
        let r = e.result().index();
        if cluster.members.len() >= LARGEST_CLUSTER {
            return None;
        }
        let (n, k) = self.domain(i);
        let class = self.classes[i];
        // Points of the nest, or rows of it?
        let at = if n == cluster.n {
            Level::Point
        } else if cluster.has_rows() && n * cluster.k == cluster.n && class == Class::Point {
            Level::Row
        } else {
            return None;
        };
        // A column reduction has a nest of its own; what makes its operand may move there later.
        if cluster.column != (class == Class::Column) || (class == Class::Column && !cluster.members.is_empty()) {
            return None;
        }
        if class == Class::Row && (at != Level::Point || (cluster.k != 0 && cluster.k != k) || k.at_most(1)) {
            return None;
        }
        let mut sees_member = cluster.members.is_empty();
        for (slot, &a) in self.p.operands(e).iter().enumerate() {
            match self.seen(cluster, i, slot, at) {
                Some(level) => {
                    // What a whole nest reduces to is there only after the nest.
                    if level == Level::Row && !rows_stay(cluster) {
                        return None;
                    }
                    sees_member = true;
                }
                None if self.level_of(a) < cluster.level => {}
                None => return None,
            }
        }
        // A row's number joins the nest only for the rows' sake.
        if at == Level::Row && !sees_member {
            return None;
        }
        let mut cuts = cluster.cuts.clone();
        let unit = if at == Level::Row { cluster.k } else { Size::ONE };
        if k != 0 {
            cuts = with_cuts(cuts, cluster.n, &[n.over(k)?, k], Size::ONE)?;
        }
        let operands = self.p.operands(e);
        let shown: Vec<&[Size]> = match class {
            Class::Row | Class::Column => vec![self.dims(operands[0])],
            _ if moves(e.op()) => vec![self.dims(operands[0])],
            _ => {
                let mut all = vec![&self.values.dims[r][..]];
                // Operands with other dimensions than the result: those of operations inside points.
                all.extend(at_points(self.p, e).map(|a| self.dims(a)).filter(|d| *d != &self.values.dims[r][..]));
                all
            }
        };
        for dims in shown {
            if let Some(l) = lead(dims, n) {
                cuts = with_cuts(cuts, cluster.n, &dims[..l], unit)?;
            } else if class != Class::Point || !dims.is_empty() && !is_fewer(count(dims), n) {
                return None;
            }
        }
        let level = if class == Class::Row { Level::Row } else { at };
        Some((level, cuts, k))
    }

    /// Whether a cluster makes a value and sees it in place for a reader at one of its levels.
    fn reads_in_place(&self, c: usize, reader: usize, slot: usize) -> bool {
        let cluster = &self.clusters[c];
        let at = if self.domain(reader).0 == cluster.n { Level::Point } else { Level::Row };
        self.seen(cluster, reader, slot, at).is_some()
    }

    fn finish(mut self) -> FusionPlan {
        let p = self.p;
        let mut kept = vec![false; p.value_count()];
        let mut uses: FxHashMap<Root, u32> = FxHashMap::default();
        // The units: what reads what.
        let singles: Vec<usize> =
            (0..p.equations().len()).filter(|i| matches!(self.classes[*i], Class::Scalars | Class::Single)).collect();
        let mut units: Vec<Unit> = singles.iter().map(|i| Unit::Equation(*i)).collect();
        units.extend((0..self.clusters.len()).filter(|c| !self.clusters[*c].members.is_empty()).map(Unit::Cluster));
        let mut maker: Vec<Option<usize>> = vec![None; p.value_count()];
        for (u, unit) in units.iter().enumerate() {
            let equations: &[usize] = match unit {
                Unit::Equation(i) => std::slice::from_ref(i),
                Unit::Cluster(c) => &self.clusters[*c].members,
            };
            for i in equations {
                for r in p.equations()[*i].results() {
                    // Of copies in several nests any one is as good: none is kept.
                    maker[r.index()] = Some(u);
                }
            }
        }
        let mut waits: Vec<FxHashSet<usize>> = vec![FxHashSet::default(); units.len()];
        let mut priority: Vec<usize> = vec![0; units.len()];
        let mut reads: Vec<Vec<Root>> = Vec::with_capacity(units.len());
        for (u, unit) in units.iter().enumerate() {
            let (equations, cluster): (Vec<usize>, Option<usize>) = match unit {
                Unit::Equation(i) => (vec![*i], None),
                Unit::Cluster(c) => (self.clusters[*c].members.clone(), Some(*c)),
            };
            let mut read: FxHashSet<Root> = FxHashSet::default();
            for i in equations {
                // Updates come last: what reads the old array then needs no copy of it.
                let op = p.equations()[i].op();
                let updates = op.is::<DynamicUpdateSlice>() || op.is::<Scatter>();
                let late = if updates { p.equations().len() } else { 0 };
                priority[u] = priority[u].max(i + late);
                for (slot, &a) in p.operands(&p.equations()[i]).iter().enumerate() {
                    let root = self.values.origin(a).root;
                    if cluster.is_some_and(|c| self.reads_in_place(c, i, slot)) {
                        continue;
                    }
                    for root in self.roots_of(root) {
                        read.insert(root);
                        if let Root::Value(r) = root {
                            kept[r as usize] = true;
                            if let Some(m) = maker[r as usize]
                                && m != u
                            {
                                waits[u].insert(m);
                            }
                        }
                    }
                }
            }
            for root in &read {
                *uses.entry(*root).or_default() += 1;
            }
            reads.push(read.into_iter().collect::<Vec<Root>>());
        }
        // Units of equations stand in program order, and so do the effects among them.
        let has_effects =
            |unit: &Unit| matches!(unit, Unit::Equation(i) if !p.equations()[*i].op().effects().is_pure());
        let effects: Vec<usize> = (0..units.len()).filter(|u| has_effects(&units[*u])).collect();
        for pair in effects.windows(2) {
            waits[pair[1]].insert(pair[0]);
        }
        for a in p.outputs() {
            let root = self.values.origin(*a).root;
            *uses.entry(root).or_default() += 1;
            if let Root::Value(r) = root {
                kept[r as usize] = true;
            }
        }
        let apart = self.may_lie_apart();
        let order = in_order(&waits, &priority);
        let units = order.iter().map(|u| units[*u]).collect();
        let reads = order.iter().map(|u| std::mem::take(&mut reads[*u])).collect();
        for c in &mut self.clusters {
            c.members.sort_unstable();
        }
        FusionPlan {
            classes: self.classes,
            clusters: self.clusters,
            units,
            kept,
            points: self.points,
            apart,
            reads,
            makers: self.makers,
            uses,
        }
    }

    /// Lanes run over points: elements of one kind that are neighbours are read and written at once.
    fn may_lie_apart(&self) -> Vec<bool> {
        let p = self.p;
        let inside = |v: usize| count(&self.values.dims[v]).over(self.points[v]).and_then(Size::known).unwrap_or(1);
        let mut apart: Vec<bool> = vec![false; p.value_count()];
        for (i, e) in p.equations().iter().enumerate().filter(|(i, _)| self.classes[*i] == Class::Point) {
            let v = e.result().index();
            apart[v] = inside(v) > 1 && self.points[v].guess() >= LANES && !moves(p.equations()[i].op());
        }
        for (i, e) in p.equations().iter().enumerate().filter(|(i, _)| self.classes[*i] != Class::View) {
            let in_nest = matches!(self.classes[i], Class::Point | Class::Row | Class::Column);
            for a in p.operands(e) {
                let o = self.values.origin(*a);
                if let Root::Value(r) = o.root {
                    let r = r as usize;
                    apart[r] = apart[r] && in_nest && o.view.apart(inside(r), self.points[r]).is_some();
                }
            }
        }
        for a in p.outputs() {
            if let Root::Value(r) = self.values.origin(*a).root {
                apart[r as usize] = false;
            }
        }
        apart
    }
}

/// Whether one number is less than another: for certain, or as far as a guess can tell.
fn is_fewer(a: Size, b: Size) -> bool {
    match (a.constant(), b.constant()) {
        (Some(a), Some(b)) => a < b,
        _ => a.guess() < b.guess(),
    }
}

/// The cuts of a nest of `n` points together with those where these dimensions begin; none if the loops cannot be cut so.
/// `unit`: how many points lie behind one step of the last dimension.
fn with_cuts(mut cuts: Cuts, n: Size, dims: &[Size], unit: Size) -> Option<Cuts> {
    let mut product = unit;
    for d in dims.iter().rev() {
        cuts = cuts.with(product)?;
        product = product * *d;
    }
    if product == n { cuts.with(product) } else { None }
}

impl Cluster {
    /// Whether something is reduced along rows.
    fn has_rows(&self) -> bool {
        self.k != 0 && self.k != 1
    }

    /// How many rows there are.
    pub fn rows(&self) -> Size {
        if self.k == 0 { self.n } else { self.n.over(self.k).unwrap_or(Size::ONE) }
    }
}

/// Whether rows stay in the first cache, so that what they reduce to can be used in the same nest.
fn rows_stay(c: &Cluster) -> bool {
    c.has_rows() && c.k.guess() <= LONGEST_ROW && c.n != c.k
}

/// The member that an operand of an equation is, and its level, if the equation sees at a level just the point (or row) where it is made.
pub(super) fn seen(
    c: &Cluster,
    points: &[Size],
    values: &Values,
    p: &Program,
    i: usize,
    slot: usize,
    at: Level,
) -> Option<(usize, Level)> {
    let a = p.operands(&p.equations()[i])[slot];
    let Root::Value(r) = values.origin(a).root else { return None };
    let level = *c.values.get(&(r as usize))?;
    let in_place =
        is_at_points(p, values, points, i, slot) && seen_in_place(c, points, values, a, r as usize, level, at);
    in_place.then_some((r as usize, level))
}

/// Whether an operand that lies at points, seen by a member at a level, is the root's own point (or row) and nothing else.
fn seen_in_place(c: &Cluster, points: &[Size], values: &Values, a: Atom, root: usize, level: Level, at: Level) -> bool {
    let view = &values.origin(a).view;
    let dims = values.dims(a);
    let n = if at == Level::Row { c.rows() } else { c.n };
    let Some(l) = lead(dims, n) else { return false };
    let Some(inside) = count(&values.dims[root]).over(points[root]).and_then(Size::constant) else { return false };
    // The places inside a point.
    let steps = view.strides[l..].iter().zip(&dims[l..]).map(|(s, d)| Some(s.constant()? * (d.constant()? - 1)));
    let (Some(steps), Some(offset)) = (steps.collect::<Option<SmallVec<[i64; 4]>>>(), view.base.offset.constant())
    else {
        return false;
    };
    let lowest = offset + steps.iter().map(|s| *s.min(&0)).sum::<i64>();
    let highest = offset + steps.iter().map(|s| *s.max(&0)).sum::<i64>();
    if !view.base.terms.is_empty() || lowest < 0 || highest >= inside {
        return false;
    }
    let dense = row_major(&dims[..l]);
    match (level, at) {
        (Level::Point, Level::Point) | (Level::Row, Level::Row) => {
            points[root] == n && (0..l).all(|i| dims[i] == 1 || view.strides[i] == dense[i] * inside)
        }
        (Level::Row, Level::Point) => {
            let rows = c.rows();
            let Some(r) = lead(&dims[..l], rows) else { return false };
            let dense = row_major(&dims[..r]);
            points[root] == rows
                && (0..r).all(|i| dims[i] == 1 || view.strides[i] == dense[i] * inside)
                && (r..l).all(|i| dims[i] == 1 || view.strides[i] == 0)
        }
        (Level::Point, Level::Row) => false,
    }
}

/// Units in an order that respects what waits for what; otherwise that of the program.
fn in_order(waits: &[FxHashSet<usize>], priority: &[usize]) -> Vec<usize> {
    let mut left: Vec<usize> = waits.iter().map(FxHashSet::len).collect();
    let mut then: Vec<Vec<usize>> = vec![Vec::new(); waits.len()];
    for (u, w) in waits.iter().enumerate() {
        w.iter().for_each(|m| then[*m].push(u));
    }
    let mut ready: BinaryHeap<Reverse<(usize, usize)>> =
        (0..waits.len()).filter(|u| left[*u] == 0).map(|u| Reverse((priority[u], u))).collect();
    let mut out = Vec::with_capacity(waits.len());
    while let Some(Reverse((_, u))) = ready.pop() {
        out.push(u);
        for &t in &then[u] {
            left[t] -= 1;
            if left[t] == 0 {
                ready.push(Reverse((priority[t], t)));
            }
        }
    }
    debug_assert_eq!(out.len(), waits.len(), "the plan has a cycle");
    out
}

/// About how many nanoseconds a point of a cluster takes.
pub(super) fn point_cost(p: &Program, c: &Cluster) -> f32 {
    c.members.iter().map(|i| cost(p, &p.equations()[*i])).sum::<f32>() + 0.1
}

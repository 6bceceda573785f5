//! What is made in lanes for a loop that goes through it one by one, a scatter, is made a strip at a time just before: indices and updates are in the first cache when they
//! are read, and if nobody else reads them they are nowhere else.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Lower, free_values};
use crate::cost::Work;
use crate::ir::meaning::{At, Meaning, Means, Note};
use crate::ir::{Buffer, Expr, Index, Int, Kernel, Kind, Loop, Op, Role, Stmt, Ty, Value};
use crate::size::Size;

/// Elements of a strip: so many that what it takes to begin one does not count, few enough to stay in the first cache. Debug builds join what tests have, too.
const SHORTEST: usize = if cfg!(debug_assertions) { 32 } else { 512 };
const LONGEST: usize = 4 * SHORTEST;
const USUAL: usize = 2 * SHORTEST;
/// Rows of a nest are strips from so many elements on.
const SHORTEST_ROW: usize = SHORTEST / 4;
/// Bytes that the second cache does not hold: where it does, one loop after the other waits less.
const FAR: usize = if cfg!(debug_assertions) { 1 << 10 } else { 1 << 20 };

/// What makes elements in lanes, or takes them one by one: what is known before, the loops around, and what is done for each.
struct Nest<'a> {
    before: &'a [Stmt],
    loops: Vec<&'a Loop>,
}

/// What a statement reads and writes.
#[derive(Default)]
struct Touched {
    read: FxHashSet<Buffer>,
    written: FxHashSet<Buffer>,
}

/// How the counter of a loop is made of others: each with what it is multiplied by.
type Digits = Vec<(Value, Size)>;

/// Statements written again.
struct Copy<'a> {
    names: FxHashMap<Value, Value>,
    /// What stands for counters, everywhere and in memory that holds one strip.
    counters: FxHashMap<Value, Digits>,
    inside: FxHashMap<Value, Digits>,
    strips: &'a FxHashSet<Buffer>,
}

impl Lower {
    /// Joins kernels in a main body, and in the bodies in it.
    pub(super) fn in_strips(&mut self, mut main: Vec<Stmt>) -> Vec<Stmt> {
        // With several threads each kernel is shared for itself.
        if !crate::cost::is_for_one(f32::INFINITY, self.threads)
            || !self.emitter.module.kernels.iter().any(|k| serial(k).is_some())
        {
            return main;
        }
        let users = self.users(&main);
        let mut gone: FxHashSet<u32> = FxHashSet::default();
        self.join_in(&mut main, &users, &mut gone);
        if !gone.is_empty() {
            self.drop_kernels(&mut main, &gone);
        }
        main
    }

    /// Which kernels use a buffer; `None` is the main body.
    fn users(&self, main: &[Stmt]) -> FxHashMap<Buffer, FxHashSet<Option<u32>>> {
        let mut users: FxHashMap<Buffer, FxHashSet<Option<u32>>> = FxHashMap::default();
        for (k, kernel) in self.emitter.module.kernels.iter().enumerate() {
            let touched = touched(&kernel.body);
            for b in touched.read.iter().chain(&touched.written) {
                users.entry(*b).or_default().insert(Some(k as u32));
            }
        }
        each_of_main(main, &mut |b| {
            users.entry(b).or_default().insert(None);
        });
        users
    }

    fn join_in(
        &mut self,
        body: &mut Vec<Stmt>,
        users: &FxHashMap<Buffer, FxHashSet<Option<u32>>>,
        gone: &mut FxHashSet<u32>,
    ) {
        for s in body.iter_mut() {
            match s {
                Stmt::Loop(l) => self.join_in(&mut l.body, users, gone),
                Stmt::While(w) => self.join_in(&mut w.body, users, gone),
                Stmt::Switch(s) => s.cases.iter_mut().for_each(|(body, _)| self.join_in(body, users, gone)),
                _ => {}
            }
        }
        let mut at = 0;
        while at < body.len() {
            if let Stmt::Kernel(taker) = body[at]
                && let Some((from, joined)) = self.joined(body, at, taker, users)
            {
                if let Stmt::Kernel(maker) = body[from] {
                    gone.extend([maker, taker]);
                }
                let more = joined.len();
                body.splice(at..=at, joined);
                body.remove(from);
                at = at - 1 + more;
                continue;
            }
            at += 1;
        }
    }

    /// The kernel before this one that makes what it takes, and what takes the place of both, if they may be one.
    fn joined(
        &mut self,
        body: &[Stmt],
        at: usize,
        taker: u32,
        users: &FxHashMap<Buffer, FxHashSet<Option<u32>>>,
    ) -> Option<(usize, Vec<Stmt>)> {
        let takes = touched(&self.emitter.module.kernels[taker as usize].body);
        serial(&self.emitter.module.kernels[taker as usize])?;
        // What stands between is done before both.
        let mut between = Touched::default();
        for from in (0..at).rev() {
            if let Stmt::Kernel(maker) = body[from] {
                let makes = touched(&self.emitter.module.kernels[maker as usize].body);
                if !makes.written.is_disjoint(&takes.read) && makes.written.is_disjoint(&takes.written) {
                    let waits = makes.written.iter().chain(&makes.read).any(|b| between.written.contains(b))
                        || makes.written.iter().any(|b| between.read.contains(b));
                    let upset = makes.read.iter().any(|b| takes.written.contains(b));
                    let may = !waits && !upset;
                    return if may { Some((from, self.written(maker, taker, users)?)) } else { None };
                }
            }
            let stmt = touched_by_main(&body[from], &self.emitter.module.kernels)?;
            between.read.extend(stmt.read);
            between.written.extend(stmt.written);
        }
        None
    }

    /// Both kernels as one, and one more for what is left over, as statements that run them.
    fn written(
        &mut self,
        maker: u32,
        taker: u32,
        users: &FxHashMap<Buffer, FxHashSet<Option<u32>>>,
    ) -> Option<Vec<Stmt>> {
        let [m, t] = [maker, taker].map(|k| self.emitter.module.kernels[k as usize].clone());
        let (made, taken) = (lanes(&m)?, serial(&t)?);
        let (last, each) = (*made.loops.last()?, *taken.loops.last()?);
        let size = |i: Int| match i {
            Int::Const(n) => Some(Size::from(n)),
            Int::Value(v) => self.emitter.module.meanings.ranges.values.get(&v).filter(|r| r.lo == r.hi).map(|r| r.lo),
        };
        let counts: Vec<Size> = made.loops.iter().map(|l| size(l.count)).collect::<Option<_>>()?;
        let whole: Size = counts.iter().copied().product();
        if size(each.count)? != whole {
            return None;
        }
        // How many elements one step of each loop is.
        let steps: Vec<Size> = (0..counts.len()).map(|k| counts[k + 1..].iter().copied().product()).collect();
        let both =
            |b: &Buffer| users.get(b).is_some_and(|all| all.iter().all(|u| *u == Some(maker) || *u == Some(taker)));
        let (makes, takes) = (touched(&m.body), touched(&t.body));
        let mut strips: FxHashSet<Buffer> = FxHashSet::default();
        let mut strides: FxHashMap<Buffer, i64> = FxHashMap::default();
        let mut bytes = Size::ZERO;
        for b in makes.written.intersection(&takes.read) {
            let stores = places(&last.body, *b, true);
            let mut loads = places(&each.body, *b, false);
            loads.extend(places(&last.body, *b, false));
            let by = match each_stride(&stores, last.var)? {
                0 => return None,
                by => by,
            };
            // What one element is made of lies side by side, and what is read for it is what was written for it.
            let made_here = |at: &&Index| {
                (0..by).contains(&at.offset)
                    && at.terms.len() == made.loops.iter().filter(|l| at.stride(l.var) != Int::Const(0)).count()
                    && made.loops.iter().zip(&steps).all(|(l, n)| match (at.stride(l.var), (*n * by).constant()) {
                        (Int::Const(s), Some(n)) => s == n || l.count == Int::Const(1),
                        _ => false,
                    })
            };
            let taken_here = |at: &&Index| {
                let own = at.stride(each.var) == Int::Const(by) && at.terms.len() == 1;
                (0..by).contains(&at.offset) && own
            };
            let taken_there = places(&each.body, *b, false);
            if !stores.iter().all(made_here) || !taken_there.iter().all(taken_here) || loads.len() != taken_there.len()
            {
                return None;
            }
            let info = &self.emitter.module.buffers[b.index()];
            bytes = bytes + whole * by * info.ty.size();
            if both(b) && info.role == Role::Scratch {
                strips.insert(*b);
                strides.insert(*b, by);
            }
        }
        if bytes.known().is_some_and(|n| n < FAR) || !self.can_copy(&[last, each]) {
            return None;
        }
        let (strip, parts) = match counts.as_slice() {
            [n] => {
                let strip = n.known().map_or(USUAL, strip_of);
                // Nothing is in strips that has few.
                if n.known().is_some_and(|n| n < 2 * strip) {
                    return None;
                }
                let whole = n.floor_div(strip);
                (strip, vec![(None, whole, strip.into()), (Some(whole), Size::ONE, *n - whole * strip)])
            }
            _ => {
                let strip = counts.last()?.known().filter(|n| (SHORTEST_ROW..=LONGEST).contains(n))?;
                (strip, vec![(None, Size::ZERO, Size::ZERO)])
            }
        };
        for (b, by) in strides {
            self.bytes[b.index()] = Size::from(strip) * by * self.emitter.module.buffers[b.index()].ty.size();
        }
        let mut out = Vec::new();
        for (k, (at, times, length)) in parts.into_iter().enumerate() {
            if counts.len() == 1 && (times == Size::ZERO || length == Size::ZERO) {
                continue;
            }
            self.emitter.begin();
            let mut copy = Copy {
                names: FxHashMap::default(),
                counters: FxHashMap::default(),
                inside: FxHashMap::default(),
                strips: &strips,
            };
            self.copied(&mut copy, made.before);
            self.copied(&mut copy, taken.before);
            // The loops around strips.
            let mut around: Vec<(Value, Size)> = Vec::new();
            let mut digits: Digits = Vec::new();
            if counts.len() == 1 {
                let part = match at {
                    None => {
                        let part = self.emitter.value(Ty::I64);
                        around.push((part, times));
                        part
                    }
                    Some(at) => self.emitter.size(at),
                };
                digits.push((part, strip.into()));
            } else {
                for (k, l) in made.loops[..counts.len() - 1].iter().enumerate() {
                    let var = self.emitter.value(Ty::I64);
                    around.push((var, counts[k]));
                    digits.push((var, steps[k]));
                    copy.counters.insert(l.var, vec![(var, Size::ONE)]);
                    copy.inside.insert(l.var, Vec::new());
                }
            }
            let length = if counts.len() == 1 { length } else { strip.into() };
            around.iter().for_each(|_| self.emitter.begin());
            for (l, kind) in [(last, Kind::Lanes), (each, Kind::Serial)] {
                let var = self.emitter.value(Ty::I64);
                let own = (var, Size::ONE);
                // In a nest of several loops the counter of the innermost is its own.
                let all = if counts.len() == 1 || kind == Kind::Serial { digits.clone() } else { Vec::new() };
                copy.counters.insert(l.var, all.into_iter().chain([own]).collect());
                copy.inside.insert(l.var, vec![own]);
                self.emitter.begin();
                self.copied(&mut copy, &l.body);
                let body = self.emitter.end();
                self.emitter.counted(kind, var, length, body);
            }
            for (var, n) in around.into_iter().rev() {
                let body = self.emitter.end();
                self.emitter.serial(var, n, Vec::new(), body);
            }
            let body = self.emitter.end();
            let index = self.emitter.module.kernels.len() as u32;
            let name = format!(
                "{}_{}{}",
                m.name,
                t.name.trim_start_matches(|c| c != '_').trim_start_matches('_'),
                if k == 0 { "" } else { "_rest" }
            );
            self.work.push(Work::alone());
            let inputs = free_values(&body);
            self.emitter.module.kernels.push(Kernel { name, inputs, outputs: Vec::new(), parallel: false, body });
            out.push(Stmt::Kernel(index));
        }
        Some(out)
    }

    /// Whether bodies can be written again with counters made of others.
    fn can_copy(&self, loops: &[&Loop]) -> bool {
        let meanings = &self.emitter.module.meanings;
        let in_pair = |v: &Value| meanings.ranges.joint.iter().any(|j| j.at == *v || j.var == *v);
        loops.iter().all(|l| {
            let own = !in_pair(&l.var) && !meanings.ranges.steps.values().any(|v| *v == l.var);
            own && l.body.iter().all(|s| match s {
                Stmt::Let(v, e) => {
                    let plain = !meanings.ranges.digits.contains_key(v)
                        && !in_pair(v)
                        && !meanings.ranges.steps.contains_key(v);
                    plain
                        && match e {
                            Expr::Load(_, at) => meanings.get(at.means).is_none_or(|m| m.digits.is_empty()),
                            _ => true,
                        }
                }
                Stmt::Store { at, .. } => meanings.get(at.means).is_none_or(|m| m.digits.is_empty()),
                _ => false,
            })
        })
    }

    fn copied(&mut self, copy: &mut Copy<'_>, body: &[Stmt]) {
        for s in body {
            match s {
                Stmt::Let(v, e) => {
                    let e = match e {
                        Expr::Op(op, args) => {
                            let args = args.iter().map(|a| self.scalar(copy, *a)).collect();
                            Expr::Op(*op, args)
                        }
                        Expr::Load(b, at) => Expr::Load(*b, self.place(copy, *b, at)),
                        e => e.clone(),
                    };
                    let ty = self.emitter.ty(*v);
                    let name = self.emitter.define(ty, e);
                    let ranges = self.emitter.ranges();
                    if let Some(range) = ranges.values.get(v).copied() {
                        ranges.values.insert(name, range);
                    }
                    copy.names.insert(*v, name);
                }
                Stmt::Store { buffer, at, value } => {
                    let at = self.place(copy, *buffer, at);
                    let value = self.scalar(copy, *value);
                    self.emitter.push(Stmt::Store { buffer: *buffer, at, value });
                }
                // invariant: there are no others in what may be copied
                _ => {}
            }
        }
    }

    /// A value where it is written again; a counter is worked out.
    fn scalar(&mut self, copy: &mut Copy<'_>, v: Value) -> Value {
        if let Some(name) = copy.names.get(&v) {
            return *name;
        }
        let Some(digits) = copy.counters.get(&v).cloned() else { return v };
        let mut sum: Option<Value> = None;
        for (digit, times) in digits {
            let term = match times {
                Size::ONE => digit,
                times => {
                    let times = self.emitter.size(times);
                    self.emitter.op(Op::Mul, &[digit, times])
                }
            };
            sum = Some(match sum {
                Some(sum) => self.emitter.op(Op::Add, &[sum, term]),
                None => term,
            });
        }
        sum.unwrap_or(v)
    }

    fn place(&mut self, copy: &Copy<'_>, buffer: Buffer, at: &Index) -> Index {
        let name = |v: Value| copy.names.get(&v).copied().unwrap_or(v);
        let counters = if copy.strips.contains(&buffer) { &copy.inside } else { &copy.counters };
        let mut place = Index::at(at.offset);
        for (v, by) in &at.terms {
            match counters.get(v) {
                Some(digits) => {
                    for (digit, times) in digits {
                        let by = match (*by, *times) {
                            (by, Size::ONE) => by,
                            (Int::Const(by), times) => self.emitter.count(times * by),
                            (Int::Value(by), times) => {
                                let range = self.emitter.ranges().values.get(&by).copied();
                                // invariant: strides are one number each, which is checked of every module
                                self.emitter.count(times * range.map_or(Size::ONE, |r| r.lo))
                            }
                        };
                        place = place.plus(*digit, by);
                    }
                }
                None => place = place.plus(name(*v), *by),
            }
        }
        let all = &mut self.emitter.module.meanings.all;
        if let Some(meaning) = all.get(at.means.0 as usize).cloned() {
            let mut element = At::start().further(meaning.element.offset);
            for (v, by) in &meaning.element.terms {
                element = match copy.counters.get(v) {
                    Some(digits) => digits.iter().fold(element, |e, (digit, times)| e.plus(*digit, *times * *by)),
                    None => element.plus(name(*v), *by),
                };
            }
            place.means = Means(all.len() as u32);
            all.push(Meaning { element, ..meaning });
        }
        place
    }

    /// Leaves out kernels that nothing runs any more.
    fn drop_kernels(&mut self, main: &mut [Stmt], gone: &FxHashSet<u32>) {
        let mut number: Vec<u32> = Vec::new();
        let mut next = 0;
        for k in 0..self.emitter.module.kernels.len() as u32 {
            number.push(next);
            next += u32::from(!gone.contains(&k));
        }
        let mut k = 0;
        self.emitter.module.kernels.retain(|_| {
            k += 1;
            !gone.contains(&(k - 1))
        });
        k = 0;
        self.work.retain(|_| {
            k += 1;
            !gone.contains(&(k - 1))
        });
        renumber(main, &number);
    }
}

/// The elements of a strip of so many: a whole number of strips leaves nothing over.
fn strip_of(n: usize) -> usize {
    let even = |of: usize| (SHORTEST..=LONGEST).rev().find(|s| s % of == 0 && n.is_multiple_of(*s));
    even(32).or_else(|| even(8)).unwrap_or(USUAL)
}

fn renumber(body: &mut [Stmt], number: &[u32]) {
    for s in body {
        match s {
            Stmt::Kernel(k) => *k = number[*k as usize],
            Stmt::Loop(l) => renumber(&mut l.body, number),
            Stmt::While(w) => {
                renumber(&mut w.before, number);
                renumber(&mut w.body, number);
            }
            Stmt::Switch(s) => s.cases.iter_mut().for_each(|(body, _)| renumber(body, number)),
            _ => {}
        }
    }
}

fn is_plain(body: &[Stmt]) -> bool {
    body.iter().all(|s| matches!(s, Stmt::Let(..) | Stmt::Store { .. }))
}

/// A kernel that goes through elements one by one.
fn serial(k: &Kernel) -> Option<Nest<'_>> {
    let (Stmt::Loop(l), before) = k.body.split_last()? else { return None };
    let known = before.iter().all(|s| matches!(s, Stmt::Let(_, Expr::Const(_) | Expr::Op(..))));
    let fits = known && l.kind == Kind::Serial && l.carried.is_empty() && k.outputs.is_empty() && is_plain(&l.body);
    fits.then(|| Nest { before, loops: vec![l] })
}

/// A kernel that makes elements in lanes, perhaps with loops around.
fn lanes(k: &Kernel) -> Option<Nest<'_>> {
    let (Stmt::Loop(first), before) = k.body.split_last()? else { return None };
    let known = before.iter().all(|s| matches!(s, Stmt::Let(_, Expr::Const(_) | Expr::Op(..))));
    let mut loops = vec![&**first];
    while let l = loops[loops.len() - 1]
        && l.kind == Kind::Serial
    {
        let [Stmt::Loop(inner)] = &l.body[..] else { return None };
        loops.push(inner);
    }
    let plain = loops.iter().all(|l| l.carried.is_empty() && l.folds.is_empty());
    let last = loops[loops.len() - 1];
    (known && plain && k.outputs.is_empty() && is_plain(&last.body)).then_some(Nest { before, loops })
}

/// The places of a buffer that a body stores to, or loads from.
fn places(body: &[Stmt], wanted: Buffer, stores: bool) -> Vec<&Index> {
    body.iter()
        .filter_map(|s| match s {
            Stmt::Store { buffer, at, .. } if stores && *buffer == wanted => Some(at),
            Stmt::Let(_, Expr::Load(buffer, at)) if !stores && *buffer == wanted => Some(at),
            _ => None,
        })
        .collect()
}

/// How far the places of neighbours are apart, if that is the same for all.
fn each_stride(all: &[&Index], var: Value) -> Option<i64> {
    let Int::Const(first) = all.first()?.stride(var) else { return None };
    all.iter().all(|at| at.stride(var) == Int::Const(first)).then_some(first).filter(|s| *s > 0)
}

fn touched(body: &[Stmt]) -> Touched {
    fn inside(body: &[Stmt], all: &mut Touched) {
        for s in body {
            match s {
                Stmt::Let(_, Expr::Load(b, _)) => drop(all.read.insert(*b)),
                Stmt::Store { buffer, .. } => drop(all.written.insert(*buffer)),
                Stmt::Loop(l) => inside(&l.body, all),
                // The others are of the main body.
                _ => {}
            }
        }
    }
    let mut all = Touched::default();
    inside(body, &mut all);
    all
}

/// What a statement of the main body touches; none if it does more than that.
fn touched_by_main(s: &Stmt, kernels: &[Kernel]) -> Option<Touched> {
    match s {
        Stmt::Let(..) | Stmt::Store { .. } => Some(touched(std::slice::from_ref(s))),
        Stmt::Kernel(k) => Some(touched(&kernels[*k as usize].body)),
        Stmt::Note(note) => match &**note {
            // From there on it is another value.
            Note::Becomes(region, ..) => {
                let only = FxHashSet::from_iter([region.buffer]);
                Some(Touched { read: only.clone(), written: only })
            }
            Note::Step(_) => None,
        },
        _ => None,
    }
}

/// Every buffer that statements of a main body name.
fn each_of_main(body: &[Stmt], f: &mut dyn FnMut(Buffer)) {
    for s in body {
        match s {
            Stmt::Let(_, Expr::Load(b, _)) | Stmt::Store { buffer: b, .. } => f(*b),
            Stmt::Loop(l) => each_of_main(&l.body, f),
            Stmt::While(w) => {
                each_of_main(&w.before, f);
                each_of_main(&w.body, f);
            }
            Stmt::Switch(s) => s.cases.iter().for_each(|(body, _)| each_of_main(body, f)),
            Stmt::Call(c) => {
                c.buffers.iter().for_each(|(b, _)| f(*b));
                c.regions.iter().for_each(|(r, _)| f(r.buffer));
            }
            Stmt::Swap(a, b) => [a, b].into_iter().for_each(|b| f(*b)),
            Stmt::Note(note) => {
                if let Note::Becomes(region, ..) = &**note {
                    f(region.buffer);
                }
            }
            Stmt::Let(..) | Stmt::Kernel(_) | Stmt::Piece(_) => {}
        }
    }
}

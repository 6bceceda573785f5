//! The statements of lane loops in an order that keeps few values at once.
//!
//! Nests are written an equation at a time: where a point has many elements, all differences stand before all squares, and those before all sums. What waits in between
//! has no room in registers. Here each value is made where it is first wanted, if that takes fewer registers than the order in which it was written; what is stored
//! stays in its order, and no load passes a store. The numbers are the same.

use rustc_hash::FxHashMap;

use super::Machine;
use super::varying::{Reach, Varying};
use crate::ir::{Buffer, Expr, Int, Kernel, Kind, Loop, Module, Stmt, Ty, Value, each_use_of};

/// Neighbouring components of records that are loaded together: as many as a register has lanes.
const RECORD: i64 = 8;

/// A kernel whose lane loops keep few values at once.
pub fn scheduled(module: &Module, kernel: &Kernel, machine: &Machine) -> Kernel {
    let mut uses = vec![0u32; module.types.len()];
    each_use_of(&kernel.body, &mut |v| uses[v.index()] += 1);
    kernel.outputs.iter().for_each(|v| uses[v.index()] += 1);
    kernel.with_body(outside(module, machine, &uses, &kernel.body))
}

/// A body around lane loops.
fn outside(module: &Module, machine: &Machine, uses: &[u32], body: &[Stmt]) -> Vec<Stmt> {
    let each = |s: &Stmt| {
        let Stmt::Loop(l) = s else { return s.clone() };
        let body = match l.kind {
            Kind::Serial => outside(module, machine, uses, &l.body),
            Kind::Lanes => {
                let varying = Varying::new(l, None);
                let room = (machine.registers * 4 / 5).saturating_sub(l.folds.len());
                let order = Order { module, uses, varying: &varying, room, var: l.var };
                order.block(&l.body)
            }
        };
        with_body(l, body)
    };
    body.iter().map(each).collect()
}

fn with_body(l: &Loop, body: Vec<Stmt>) -> Stmt {
    Stmt::Loop(Box::new(Loop { body, carried: l.carried.clone(), folds: l.folds.clone(), ..*l }))
}

/// What is known of a lane loop while its bodies are put in order.
struct Order<'a> {
    module: &'a Module,
    /// How often each value is used in the whole kernel.
    uses: &'a [u32],
    varying: &'a Varying,
    /// Registers that values of the body may have.
    room: usize,
    var: Value,
}

/// Statements without loops among them, and what is known of each.
struct Run<'a> {
    body: &'a [Stmt],
    /// Which statement makes a value.
    made: FxHashMap<Value, usize>,
    /// How many registers it takes to make what a statement makes, if nothing is there yet.
    need: Vec<u16>,
    /// Loads of components of the same records, which are made together.
    records: FxHashMap<Record<'a>, Vec<usize>>,
    done: Vec<bool>,
    out: Vec<usize>,
}

/// A buffer, what varies of a place in it, and which components.
type Record<'a> = (Buffer, &'a [(Value, Int)], i64);

impl Order<'_> {
    fn block(&self, body: &[Stmt]) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(body.len());
        let mut rest = body;
        while !rest.is_empty() {
            let n = rest.iter().take_while(|s| matches!(s, Stmt::Let(..) | Stmt::Store { .. })).count();
            let (run, behind) = rest.split_at(n);
            out.extend(self.order(run).into_iter().map(|i| run[i].clone()));
            let Some((s, behind)) = behind.split_first() else { break };
            out.push(match s {
                Stmt::Loop(l) => with_body(l, self.block(&l.body)),
                s => s.clone(),
            });
            rest = behind;
        }
        out
    }

    /// The better order of these statements.
    fn order(&self, body: &[Stmt]) -> Vec<usize> {
        let written: Vec<usize> = (0..body.len()).collect();
        if body.len() <= self.room {
            return written;
        }
        let excess = self.excess(body, &written);
        if excess == 0 {
            return written;
        }
        let wanted = self.as_wanted(body);
        if self.excess(body, &wanted) < excess { wanted } else { written }
    }

    /// Whether a value is in a vector register while it is there.
    fn has_register(&self, v: Value) -> bool {
        self.varying.contains(v) && self.module.ty(v) != Ty::Bool
    }

    /// By how much the values that are there exceed the registers, summed over all statements: about how many are moved to memory and back.
    fn excess(&self, body: &[Stmt], order: &[usize]) -> usize {
        let n = order.len();
        // When each begins, when it is used last, and how often it is used here.
        let mut lives: FxHashMap<Value, (usize, usize, u32)> = FxHashMap::default();
        for (now, i) in order.iter().enumerate() {
            let s = &body[*i];
            each_use_of(std::slice::from_ref(s), &mut |v| {
                if self.has_register(v) {
                    let life = lives.entry(v).or_insert((0, 0, 0));
                    (life.1, life.2) = (now, life.2 + 1);
                }
            });
            if let Stmt::Let(v, _) = s
                && self.has_register(*v)
            {
                lives.insert(*v, (now, now, 0));
            }
        }
        let mut changes = vec![0isize; n + 1];
        for (v, (from, to, used)) in lives {
            let to = if self.uses[v.index()] > used { n } else { to };
            changes[from] += 1;
            changes[to] -= 1;
        }
        let room = self.room as isize;
        let mut live = 0;
        let over = changes[..n].iter().map(|change| {
            live += change;
            (live - room).max(0) as usize
        });
        over.sum()
    }

    /// Each value where it is first wanted: by stores in their order, then by what comes behind.
    fn as_wanted(&self, body: &[Stmt]) -> Vec<usize> {
        let mut run = Run {
            body,
            made: FxHashMap::default(),
            need: Vec::with_capacity(body.len()),
            records: FxHashMap::default(),
            done: vec![false; body.len()],
            out: Vec::with_capacity(body.len()),
        };
        let mut used = FxHashMap::default();
        for (i, s) in body.iter().enumerate() {
            let need = self.need(&run, s);
            run.need.push(need);
            each_use_of(std::slice::from_ref(s), &mut |v| *used.entry(v).or_insert(0) += 1);
            if let Stmt::Let(v, _) = s {
                run.made.insert(*v, i);
            }
            if let Some(record) = self.record(s) {
                run.records.entry(record).or_default().push(i);
            }
        }
        let mut loads: Vec<usize> =
            (0..body.len()).filter(|i| matches!(body[*i], Stmt::Let(_, Expr::Load(..)))).collect();
        loads.reverse();
        let mut i = 0;
        while i < body.len() {
            let n = body[i..].iter().take_while(|s| matches!(s, Stmt::Store { .. })).count();
            if n == 0 {
                i += 1;
                continue;
            }
            // A choice stays right before the store that takes it.
            let alone = match &body[i] {
                Stmt::Store { value, .. } if n == 1 => run.made.get(value).copied(),
                _ => None,
            };
            for s in &body[i..i + n] {
                each_use_of(std::slice::from_ref(s), &mut |v| {
                    if let Some(at) = run.made.get(&v).copied().filter(|at| Some(*at) != alone) {
                        self.want(&mut run, at, i);
                    }
                });
            }
            if let Some(at) = alone {
                run.operands(at).into_iter().for_each(|at| self.want(&mut run, at, i));
            }
            while let Some(load) = loads.pop_if(|load| *load < i) {
                self.want(&mut run, load, i);
            }
            alone.into_iter().for_each(|at| self.want(&mut run, at, i));
            run.out.extend(i..i + n);
            i += n;
        }
        // First what others behind take, in the order in which it was written.
        let behind = |v: Value| self.uses[v.index()] > used.get(&v).copied().unwrap_or(0);
        for last in [false, true] {
            for (i, s) in body.iter().enumerate() {
                if let Stmt::Let(v, _) = s
                    && (last || behind(*v))
                {
                    self.want(&mut run, i, body.len());
                }
            }
        }
        run.out
    }

    fn need(&self, run: &Run<'_>, s: &Stmt) -> u16 {
        let Stmt::Let(v, e) = s else { return 0 };
        if !self.varying.contains(*v) {
            return 0;
        }
        let Expr::Op(_, args) = e else { return 1 };
        let mut all: smallvec::SmallVec<[u16; 3]> =
            args.iter().map(|a| run.made.get(a).map_or(0, |at| run.need[*at])).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.iter()
            .enumerate()
            .map(|(k, n)| n.saturating_add(if *n > 0 { k as u16 } else { 0 }))
            .max()
            .unwrap_or(1)
            .max(1)
    }

    /// Makes what a statement makes, after what it takes; of statements before `end` alone.
    fn want(&self, run: &mut Run<'_>, at: usize, end: usize) {
        let mut open = vec![(at, false)];
        while let Some((at, ready)) = open.pop() {
            if run.done[at] {
                continue;
            }
            if ready {
                run.done[at] = true;
                run.out.push(at);
                continue;
            }
            let body = run.body;
            let beside = self.record(&body[at]).and_then(|record| run.records.get(&record));
            match beside {
                Some(all) => {
                    // A load is made of indices alone.
                    for at in all.iter().rev().copied().filter(|at| *at < end) {
                        open.push((at, true));
                        open.extend(run.operands(at).into_iter().map(|at| (at, false)));
                    }
                }
                None => {
                    open.push((at, true));
                    // What takes most registers comes first, while the fewest are taken: it is on top.
                    let mut operands = run.operands(at);
                    operands.reverse();
                    operands.sort_by_key(|at| run.need[*at]);
                    open.extend(operands.into_iter().map(|at| (at, false)));
                }
            }
        }
    }

    /// The record that a load is of, if it is of one: lanes side by side are none.
    fn record<'a>(&self, s: &'a Stmt) -> Option<Record<'a>> {
        let Stmt::Let(_, Expr::Load(buffer, at)) = s else { return None };
        match self.varying.reach(at, self.var, |i| i) {
            Reach::Uniform | Reach::Strided(Int::Const(1 | -1)) => None,
            Reach::Strided(_) | Reach::Scattered => Some((*buffer, &at.terms, at.offset.div_euclid(RECORD))),
        }
    }
}

impl Run<'_> {
    /// The statements that make what one takes.
    fn operands(&self, at: usize) -> Vec<usize> {
        let mut all = Vec::new();
        each_use_of(std::slice::from_ref(&self.body[at]), &mut |v| all.extend(self.made.get(&v)));
        all
    }
}

//! How many lanes of a loop are worked on at once: as many as fill registers, so many of them that latency is hidden, and no more than there are.

use rustc_hash::{FxHashMap, FxHashSet};

use super::varying::{Reach, Varying};
use crate::ir::{Expr, Index, Int, LANES, Loop, Module, Op, Stmt, Ty, Value};

/// What a code generator can do, and how well.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Bytes of a vector register; 0: there are none.
    pub bytes: usize,
    /// How many there are.
    pub registers: usize,
    /// Every type has as many lanes to a register: those of 64-bit types if there are any, otherwise of 32-bit ones.
    pub even: bool,
    /// Bools have registers of their own.
    pub masks: bool,
    /// What is done with iterations that do not fill a step.
    pub rest: Rest,
    /// Bodies of at most so many statements have four registers to a value, or two: wide steps hide the latency of short bodies, long ones only
    /// become longer.
    pub short: [usize; 2],
    /// A body with more statements is written once, with a mask in every step.
    pub once: usize,
    /// Bodies of folds are repeated for all 32 lanes up to so many statements; longer ones keep those lanes in memory.
    pub repeated: usize,
    /// Operations that are done in vectors and not lane by lane, by the types of operands and which of them vary. None: all, and vectors always pay.
    pub native: Option<fn(Op, &[Ty], &[bool]) -> bool>,
}

/// What is done with iterations that do not fill a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rest {
    /// A step in which only the first lanes are active.
    Masked,
    /// One after the other.
    Serial,
}

/// A stride of more elements is no constant for those who gather: displacements and 32-bit indices are of no use. The plan gives such a loop wide lanes.
pub const FAR: i64 = 1 << 20;

/// How a loop of lanes is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LanePlan {
    /// Lanes of a value; 1: one iteration after the other.
    pub lanes: usize,
    /// Lanes of a register.
    pub unit: usize,
    /// How many times the body stands in a step. More than one: so that a step has all lanes of its folds.
    pub copies: usize,
    /// The lanes of folds are in memory.
    pub in_memory: bool,
    /// Every step has a mask: the body is too long to be written twice.
    pub masked: bool,
}

impl LanePlan {
    pub const SERIAL: LanePlan = LanePlan { lanes: 1, unit: 1, copies: 1, in_memory: true, masked: false };
}

/// When values live, while a body is walked.
struct Liveness<'a> {
    module: &'a Module,
    machine: &'a Machine,
    varying: &'a Varying,
    l: &'a Loop,
    /// What a value is if it is known before the loop.
    known: &'a dyn Fn(Value) -> Option<u64>,
    /// How often something is done.
    statements: usize,
    /// Bytes of the widest lanes.
    widest: usize,
    /// Single bytes or pairs are read or written at scattered places, which no machine does well.
    scattered: bool,
    /// What differs between lanes is stored to one place.
    meets: bool,
    now: usize,
    lives: FxHashMap<Value, (usize, usize)>,
    /// Who was used since the loops around began.
    used: Vec<Value>,
    /// Values that are there for a moment: when, and bytes of a lane.
    moments: Vec<(usize, usize)>,
    defined: FxHashSet<Value>,
}

impl Liveness<'_> {
    fn resolve(&self, i: Int) -> Int {
        match i {
            Int::Value(v) => (self.known)(v).map_or(i, |bits| Int::Const(bits as i64)),
            i => i,
        }
    }

    fn widen(&mut self, ty: Ty) {
        self.widest = self.widest.max(ty.size());
    }

    /// A value is used as a vector.
    fn want(&mut self, v: Value) {
        // Constants are read where they are used.
        if !self.varying.contains(v) && (self.known)(v).is_some() {
            return;
        }
        self.widen(self.module.ty(v));
        let now = self.now;
        self.lives.entry(v).or_insert((now, now)).1 = now;
        self.used.push(v);
    }

    fn define(&mut self, v: Value) {
        self.defined.insert(v);
        if self.varying.contains(v) {
            self.widen(self.module.ty(v));
            self.lives.insert(v, (self.now, self.now));
        }
    }

    fn reach(&self, at: &Index) -> Reach {
        self.varying.reach(at, self.l.var, |i| self.resolve(i))
    }

    /// An access of a type, with how its lanes lie.
    fn place(&mut self, at: &Index, ty: Ty) -> Reach {
        let reach = self.reach(at);
        match reach {
            Reach::Uniform => {}
            // What lies so near is loaded as a whole and shuffled.
            Reach::Strided(Int::Const(s @ (-1 | 1..=4))) => {
                self.moments.push((self.now, ty.size() * s.unsigned_abs() as usize));
            }
            reach => {
                self.scattered |= ty.size() < 4;
                let near = matches!(reach, Reach::Strided(Int::Const(s)) if s.abs() <= FAR);
                if self.machine.even && !near {
                    self.widen(Ty::I64);
                }
                if reach == Reach::Scattered {
                    for term in at.terms.iter().filter(|t| self.varying.term(t)) {
                        self.want(term.0);
                        if let Int::Value(s) = term.1 {
                            self.want(s);
                        }
                    }
                }
            }
        }
        reach
    }

    fn block(&mut self, body: &[Stmt]) {
        for s in body {
            self.now += 1;
            match s {
                Stmt::Let(v, _) if self.varying.lane.contains(v) => self.define(*v),
                Stmt::Let(v, e) => {
                    if self.varying.contains(*v) {
                        self.statements += 1;
                        match e {
                            // The counter as 32 bits needs no more than those.
                            Expr::Op(op, args) if is_short_counter(self.l, *op, args) => {}
                            Expr::Op(_, args) => args.iter().for_each(|x| self.want(*x)),
                            Expr::Load(_, at) => {
                                self.place(at, self.module.ty(*v));
                            }
                            Expr::Const(_) | Expr::Size(_) => {}
                        }
                    }
                    self.define(*v);
                }
                Stmt::Store { at, value, .. } => {
                    self.statements += 1;
                    let ty = self.module.ty(*value);
                    let uniform = self.place(at, ty) == Reach::Uniform;
                    self.meets |= uniform && self.varying.contains(*value);
                    if !uniform || self.varying.contains(*value) {
                        self.widen(ty);
                        self.want(*value);
                    }
                }
                Stmt::Loop(l) => self.inner(l),
                _ => {}
            }
        }
    }

    fn inner(&mut self, l: &Loop) {
        let start = self.now;
        self.define(l.var);
        for c in &l.carried {
            if self.varying.contains(c.param) {
                self.want(c.init);
            }
            self.define(c.param);
        }
        // What a carry starts from, goes on as and ends as is in one register, unless one of them is used beside the next.
        let since = self.used.len();
        self.block(&l.body);
        self.now += 1;
        for c in &l.carried {
            if self.varying.contains(c.param) {
                self.want(c.next);
            }
            self.define(c.result);
        }
        // What the loop uses from before it lives to its end.
        let end = self.now;
        for v in &self.used[since..] {
            if let Some(life) = self.lives.get_mut(v)
                && life.0 <= start
            {
                life.1 = life.1.max(end);
            }
        }
    }

    /// Lanes of a register.
    fn unit(&self) -> usize {
        let widest = if self.machine.even { self.widest.max(4) } else { self.widest };
        self.machine.bytes / widest
    }

    /// Registers that so many lanes of so many bytes take.
    fn registers(&self, bytes: usize, lanes: usize) -> usize {
        match self.machine.even {
            true => lanes.div_ceil(self.unit()),
            false => (bytes * lanes).div_ceil(self.machine.bytes),
        }
    }

    /// The most registers that hold values at once if a value has so many lanes.
    fn pressure(&self, lanes: usize) -> usize {
        let mut events: Vec<(usize, isize)> = Vec::with_capacity(2 * (self.lives.len() + self.moments.len()));
        let mut add = |from: usize, to: usize, registers: usize| {
            events.extend([(from, registers as isize), (to.saturating_add(1), -(registers as isize))]);
        };
        for (v, (from, to)) in &self.lives {
            let bytes = match self.module.ty(*v) {
                Ty::Bool if self.machine.masks => continue,
                Ty::Bool => 4,
                ty => ty.size(),
            };
            // What comes from outside lives as long as the loop.
            let (from, to) = if self.defined.contains(v) { (*from, *to) } else { (0, usize::MAX - 1) };
            add(from, to, self.registers(bytes, lanes));
        }
        for (at, bytes) in &self.moments {
            add(*at, *at, self.registers(*bytes, lanes));
        }
        for f in &self.l.folds {
            let ty = self.module.ty(f.value);
            if ty != Ty::Bool || !self.machine.masks {
                add(0, usize::MAX - 1, self.registers(ty.size(), LANES));
            }
        }
        events.sort_unstable();
        let (mut now, mut most) = (0, 0);
        for (_, change) in events {
            now += change;
            most = most.max(now);
        }
        most as usize
    }

    /// Whether so many lanes at once take less than one after the other.
    fn pays(&self, lanes: usize, native: fn(Op, &[Ty], &[bool]) -> bool) -> bool {
        let (vectors, scalars) = self.costs(&self.l.body, lanes, native);
        let folds = 2 * self.l.folds.len();
        (vectors + folds) * 5 <= (scalars + folds) * lanes * 4
    }

    /// About how many instructions a step takes in vectors, and an iteration as scalars.
    fn costs(&self, body: &[Stmt], lanes: usize, native: fn(Op, &[Ty], &[bool]) -> bool) -> (usize, usize) {
        let parts = |ty: Ty| (lanes * ty.size()).div_ceil(self.machine.bytes);
        let access = |ty: Ty, at: &Index| match self.reach(at) {
            Reach::Uniform => 1,
            Reach::Strided(Int::Const(1)) => parts(ty),
            Reach::Strided(Int::Const(-1)) => 2 * parts(ty),
            Reach::Strided(_) => 2 * lanes,
            Reach::Scattered => 3 * lanes,
        };
        let mut sum = (0, 0);
        for s in body {
            let cost = match s {
                Stmt::Let(v, _) if !self.varying.contains(*v) => (1, 1),
                Stmt::Let(_, Expr::Op(op, args)) => {
                    let types: Vec<Ty> = args.iter().map(|a| self.module.ty(*a)).collect();
                    let varying: Vec<bool> = args.iter().map(|a| self.varying.contains(*a)).collect();
                    let wide = types.iter().map(|t| parts(*t)).max().unwrap_or(1);
                    match op {
                        // The call takes the same time either way.
                        Op::Special(_) => (8, 8),
                        op if native(*op, &types, &varying) => (wide, 1),
                        _ => (lanes * 4, 1),
                    }
                }
                Stmt::Let(v, Expr::Load(_, at)) => (access(self.module.ty(*v), at), 1),
                Stmt::Let(..) => (1, 1),
                Stmt::Store { at, value, .. } => (access(self.module.ty(*value), at), 1),
                Stmt::Loop(inner) => self.costs(&inner.body, lanes, native),
                _ => (0, 0),
            };
            sum = (sum.0 + cost.0, sum.1 + cost.1);
        }
        sum
    }

    fn plan(&self, count: Option<i64>) -> LanePlan {
        let unit = self.unit();
        let limit = if self.l.folds.is_empty() && !self.varying.has_blocks() { 2 * LANES } else { LANES };
        let most = match self.statements {
            n if n <= self.machine.short[0] => 4,
            n if n <= self.machine.short[1] => 2,
            _ => 1,
        };
        let budget = self.machine.registers * 4 / 5;
        let mut registers = most;
        while registers > 1 && (registers * unit > limit || self.pressure(registers * unit) > budget) {
            registers /= 2;
        }
        // What fills a few registers is done in one step, however long the body is: its iterations wait for the same latencies at the same time, and it is
        // written no more often than whole steps and a rest would be.
        if let (Rest::Masked, Some(n)) = (self.machine.rest, count) {
            let all = (n.max(1) as usize).div_ceil(unit);
            let once = (2..=4).contains(&all) && all.is_power_of_two() && all * unit <= limit;
            if once && self.pressure(all * unit) <= budget {
                registers = registers.max(all);
            }
        }
        let mut lanes = (registers * unit).clamp(2, limit);
        if self.scattered && !self.machine.even {
            lanes = lanes.min(16);
        }
        if let Some(n) = count {
            // No more lanes than iterations.
            let n = n.max(1) as usize;
            let enough = match self.machine.rest {
                Rest::Masked => n.next_power_of_two(),
                Rest::Serial => (n + 1).next_power_of_two() / 2,
            };
            // Where lanes are not moved between registers, one is the least.
            lanes = lanes.min(if self.machine.even { enough.max(unit) } else { enough });
        }
        let unit = unit.min(lanes);
        let masked = self.machine.rest == Rest::Masked && self.statements > self.machine.once;
        let copies = if self.l.folds.is_empty() { 1 } else { LANES / lanes };
        // A copy of which no lane is active has no last one to stay in a place, and none to stand for those that read or write scattered bytes.
        let whole = self.meets || (self.scattered && !self.machine.even);
        let apart = masked || whole || copies * self.statements > self.machine.repeated;
        let in_memory = copies > 1 && apart;
        let few = matches!((self.machine.rest, count), (Rest::Masked, Some(n)) if n <= lanes as i64);
        LanePlan {
            lanes,
            unit,
            // All that there is fits into the first lanes.
            copies: if in_memory || few { 1 } else { copies },
            in_memory: in_memory && !few,
            masked,
        }
    }
}

/// Whether the counter is made a number of 32 bits: then nobody needs it with 64.
pub(super) fn is_short_counter(l: &Loop, op: Op, args: &[Value]) -> bool {
    let counts = args.first() == Some(&l.var);
    match op {
        Op::Convert(Ty::I32 | Ty::U32) => counts,
        Op::Convert(Ty::F32) => counts && matches!(l.count, Int::Const(n) if n < 1 << 31),
        _ => false,
    }
}

/// How a loop of lanes is run. `known` says which values are constants before it, `count` how often it runs.
pub(super) fn plan(
    module: &Module,
    machine: &Machine,
    l: &Loop,
    varying: &Varying,
    known: &dyn Fn(Value) -> Option<u64>,
    count: Option<i64>,
) -> LanePlan {
    if machine.bytes == 0 || varying.uneven || count == Some(1) {
        return LanePlan::SERIAL;
    }
    let mut walk = Liveness {
        module,
        machine,
        varying,
        l,
        known,
        statements: 0,
        widest: 1,
        scattered: false,
        meets: false,
        now: 0,
        lives: FxHashMap::default(),
        used: Vec::new(),
        moments: Vec::new(),
        defined: FxHashSet::default(),
    };
    walk.block(&l.body);
    walk.now += 1;
    for f in &l.folds {
        walk.want(f.value);
        walk.widen(module.ty(f.value));
    }
    let plan = walk.plan(count);
    match machine.native {
        Some(native) if !walk.pays(plan.lanes, native) => LanePlan::SERIAL,
        _ => plan,
    }
}

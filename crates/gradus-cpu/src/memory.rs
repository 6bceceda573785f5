//! The memory plan: one arena for all scratch arrays of a program, shared by those that do not live at the same time.

use std::fmt;

use rustc_hash::FxHashMap;

use crate::error::{Result, fail};
use crate::ir::{Buffer, Expr, Index, Kernel, Module, Role, Stmt};

/// Arrays begin at multiples of this: a cache line, and the widest vector.
const ALIGN: usize = 64;
/// An arena may not be larger than this.
const LARGEST: usize = 1 << 46;

/// Where each scratch array of a module lies.
#[derive(Clone, Debug, Default)]
pub struct MemoryPlan {
    /// The place of each scratch buffer in the arena; none for the others.
    pub offsets: Vec<Option<usize>>,
    /// Bytes of the arena.
    pub bytes: usize,
    /// Bytes that would be needed if nothing were shared.
    pub unshared: usize,
    /// Buffers that overwrite another as they read it.
    pub in_place: Vec<(Buffer, Buffer)>,
}

impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "arena: {} bytes ({} without sharing)", self.bytes, self.unshared)?;
        for (i, at) in self.offsets.iter().enumerate() {
            if let Some(at) = at {
                writeln!(f, "  b{i} at {at}")?;
            }
        }
        for (x, y) in &self.in_place {
            writeln!(f, "  {y} overwrites {x}")?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
struct Span {
    first: usize,
    last: usize,
    /// The innermost loop around all touches.
    within: usize,
}

#[derive(Default)]
struct Walk {
    /// The parent, begin and end of every loop; the first stands for the whole main body.
    loops: Vec<(usize, usize, usize)>,
    current: usize,
    position: usize,
    touches: Vec<Vec<(usize, usize)>>,
    swaps: Vec<(Buffer, Buffer, usize)>,
    /// The kernel at a position.
    kernels: FxHashMap<usize, u32>,
}

impl Walk {
    fn touch(&mut self, b: Buffer) {
        let entry = (self.position, self.current);
        if self.touches[b.index()].last() != Some(&entry) {
            self.touches[b.index()].push(entry);
        }
    }

    fn body(&mut self, m: &Module, body: &[Stmt]) {
        for s in body {
            self.position += 1;
            match s {
                Stmt::Let(_, Expr::Load(b, _)) => self.touch(*b),
                Stmt::Let(..) => {}
                Stmt::Store { buffer, .. } => self.touch(*buffer),
                Stmt::Loop(l) => self.around(|w| w.body(m, &l.body)),
                Stmt::While(l) => self.around(|w| {
                    w.body(m, &l.before);
                    w.body(m, &l.body);
                }),
                Stmt::Switch(s) => s.cases.iter().for_each(|(b, _)| self.body(m, b)),
                Stmt::Kernel(k) => {
                    self.kernels.insert(self.position, *k);
                    let mut used = Vec::new();
                    buffers_of(&m.kernels[*k as usize].body, &mut used);
                    used.into_iter().for_each(|b| self.touch(b));
                }
                Stmt::Call(c) => c.buffers.iter().for_each(|(b, _)| self.touch(*b)),
                Stmt::Swap(a, b) => {
                    self.touch(*a);
                    self.touch(*b);
                    self.swaps.push((*a, *b, self.current));
                }
            }
        }
    }

    fn around(&mut self, inside: impl FnOnce(&mut Walk)) {
        let outer = self.current;
        self.loops.push((outer, self.position, 0));
        let this = self.loops.len() - 1;
        self.current = this;
        inside(self);
        self.position += 1;
        self.loops[this].2 = self.position;
        self.current = outer;
    }

    /// The innermost loop around both.
    fn common(&self, mut a: usize, mut b: usize) -> usize {
        while a != b {
            // A loop's number is larger than that of any loop around it.
            if a > b { a = self.loops[a].0 } else { b = self.loops[b].0 }
        }
        a
    }

    /// When a buffer lives: what is touched inside a loop and outside of it lives through the whole loop.
    fn span(&self, b: usize, extra: &[usize]) -> Option<Span> {
        let touches = &self.touches[b];
        let mut within = touches.first()?.1;
        for (_, l) in touches {
            within = self.common(within, *l);
        }
        for l in extra {
            within = self.common(within, self.loops[*l].0);
        }
        let (mut first, mut last) = (usize::MAX, 0);
        let mut cover = |mut at: usize, mut l: usize| {
            let mut end = at;
            while l != within {
                (at, end) = (self.loops[l].1, self.loops[l].2);
                l = self.loops[l].0;
            }
            first = first.min(at);
            last = last.max(end);
        };
        touches.iter().for_each(|(at, l)| cover(*at, *l));
        extra.iter().for_each(|l| cover(self.loops[*l].1, *l));
        Some(Span { first, last, within })
    }
}

fn buffers_of(body: &[Stmt], out: &mut Vec<Buffer>) {
    for s in body {
        match s {
            Stmt::Let(_, Expr::Load(b, _)) => out.push(*b),
            Stmt::Store { buffer, .. } => out.push(*buffer),
            Stmt::Loop(l) => buffers_of(&l.body, out),
            _ => {}
        }
    }
}

/// Plans the scratch memory of a module whose buffers have these sizes.
pub fn plan(m: &Module, bytes: &[usize]) -> Result<MemoryPlan> {
    let mut walk =
        Walk { loops: vec![(0, 0, usize::MAX)], touches: vec![Vec::new(); m.buffers.len()], ..Walk::default() };
    walk.body(m, &m.main);
    // Buffers that trade places live as one, through the loop in which they do.
    let mut partner: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    let mut around: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    for (a, b, l) in &walk.swaps {
        partner.entry(a.index()).or_default().push(b.index());
        partner.entry(b.index()).or_default().push(a.index());
        around.entry(a.index()).or_default().push(*l);
        around.entry(b.index()).or_default().push(*l);
    }
    let mut spans: Vec<Option<Span>> = (0..m.buffers.len())
        .map(|b| {
            let scratch = m.buffers[b].role == Role::Scratch;
            if scratch { walk.span(b, around.get(&b).map_or(&[], Vec::as_slice)) } else { None }
        })
        .collect();
    for (b, others) in &partner {
        let mut hull = spans[*b];
        for o in others {
            hull = match (hull, spans[*o]) {
                (Some(x), Some(y)) => {
                    Some(Span { first: x.first.min(y.first), last: x.last.max(y.last), within: x.within })
                }
                (x, y) => x.or(y),
            };
        }
        spans[*b] = hull;
        for o in others {
            spans[*o] = hull;
        }
    }
    place(m, bytes, &walk, &spans, &partner)
}

fn place(
    m: &Module,
    bytes: &[usize],
    walk: &Walk,
    spans: &[Option<Span>],
    partner: &FxHashMap<usize, Vec<usize>>,
) -> Result<MemoryPlan> {
    let mut order: Vec<usize> = (0..spans.len()).filter(|b| spans[*b].is_some()).collect();
    order.sort_by_key(|b| (spans[*b].map(|s| s.first), *b));
    let mut plan = MemoryPlan { offsets: vec![None; m.buffers.len()], ..MemoryPlan::default() };
    // What lives now, by its place: (offset, size, last, buffer).
    let mut alive: Vec<(usize, usize, usize, usize)> = Vec::new();
    for b in order {
        let Some(span) = spans[b] else { continue };
        let size = bytes[b].max(1).div_ceil(ALIGN) * ALIGN;
        plan.unshared += size;
        alive.retain(|(_, _, last, _)| *last >= span.first);
        // A kernel that reads an array for the last time may write its result over it.
        let over = alive.iter().position(|(_, have, last, x)| {
            *last == span.first
                && *have >= size
                && !partner.contains_key(x)
                && !partner.contains_key(&b)
                && walk.kernels.get(&span.first).is_some_and(|k| {
                    overwrites(&m.kernels[*k as usize], Buffer(*x as u32), Buffer(b as u32))
                        && m.buffers[*x].ty.size() == m.buffers[b].ty.size()
                })
        });
        if let Some(i) = over {
            let (at, have, _, x) = alive[i];
            plan.in_place.push((Buffer(x as u32), Buffer(b as u32)));
            plan.offsets[b] = Some(at);
            alive[i] = (at, have, span.last, b);
            continue;
        }
        let mut at = 0;
        for (offset, have, ..) in &alive {
            if at + size <= *offset {
                break;
            }
            at = at.max(offset + have);
        }
        plan.offsets[b] = Some(at);
        let i = alive.partition_point(|(o, ..)| *o < at);
        alive.insert(i, (at, size, span.last, b));
        plan.bytes = plan.bytes.max(at + size);
        if plan.bytes > LARGEST {
            fail!(Size, "`{}` needs {} bytes of scratch memory", m.name, plan.bytes);
        }
    }
    Ok(plan)
}

/// Whether a kernel reads `x` only at the place of `y` that it writes in the same iteration.
fn overwrites(k: &Kernel, x: Buffer, y: Buffer) -> bool {
    fn walk<'a>(
        body: &'a [Stmt],
        x: Buffer,
        y: Buffer,
        reads: &mut Vec<&'a Index>,
        writes: &mut Vec<&'a Index>,
        loops: &mut usize,
        ok: &mut bool,
    ) {
        for s in body {
            match s {
                Stmt::Let(_, Expr::Load(b, at)) if *b == x => reads.push(at),
                Stmt::Let(_, Expr::Load(b, _)) if *b == y => *ok = false,
                Stmt::Store { buffer, .. } if *buffer == x => *ok = false,
                Stmt::Store { buffer, at, .. } if *buffer == y => writes.push(at),
                Stmt::Loop(l) => {
                    *loops += 1;
                    walk(&l.body, x, y, reads, writes, loops, ok);
                }
                _ => {}
            }
        }
    }
    let (mut reads, mut writes, mut loops, mut ok) = (Vec::new(), Vec::new(), 0, true);
    walk(&k.body, x, y, &mut reads, &mut writes, &mut loops, &mut ok);
    // One place each, the same: an element is read in the iteration that overwrites it, and before.
    ok && writes.len() == 1 && !reads.is_empty() && reads.iter().all(|r| *r == writes[0])
}

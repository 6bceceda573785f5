//! The memory plan: one arena for all scratch arrays of a program, shared by those that do not live at the same time. Where a
//! result is not written yet, its memory serves too.

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
    /// The place of each scratch buffer; none for the others.
    pub places: Vec<Option<Slot>>,
    /// Bytes of the arena.
    pub bytes: usize,
    /// Bytes that would be needed if nothing were shared.
    pub unshared: usize,
    /// Buffers that overwrite another as they read it.
    pub in_place: Vec<(Buffer, Buffer)>,
}

/// Where a scratch array lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The output in whose memory it is, until that is written; none for the arena.
    pub output: Option<Buffer>,
    /// Bytes from the beginning.
    pub offset: usize,
}

impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "arena: {} bytes ({} without sharing)", self.bytes, self.unshared)?;
        for (i, place) in self.places.iter().enumerate() {
            match place {
                Some(Slot { output: None, offset }) => writeln!(f, "  b{i} at {offset}")?,
                Some(Slot { output: Some(o), offset }) => {
                    writeln!(f, "  b{i} at {offset} of {o}, which is written later")?;
                }
                None => {}
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
struct Lifetimes {
    /// The parent, begin and end of every loop; the first stands for the whole main body.
    loops: Vec<(usize, usize, usize)>,
    current: usize,
    position: usize,
    touches: Vec<Vec<(usize, usize)>>,
    swaps: Vec<(Buffer, Buffer, usize)>,
    /// The kernel at a position.
    kernels: FxHashMap<usize, u32>,
}

impl Lifetimes {
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
                Stmt::Let(..) | Stmt::Note(_) => {}
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
                Stmt::Piece(p) => self.body(m, &m.pieces[*p as usize]),
                Stmt::Call(c) => c.buffers.iter().for_each(|(b, _)| self.touch(*b)),
                Stmt::Swap(a, b) => {
                    self.touch(*a);
                    self.touch(*b);
                    self.swaps.push((*a, *b, self.current));
                }
            }
        }
    }

    fn around(&mut self, inside: impl FnOnce(&mut Lifetimes)) {
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

    /// When a buffer is first touched; if that is inside of loops, when the outermost begins.
    fn begin(&self, b: usize) -> Option<usize> {
        let outermost = |&(mut at, mut l): &(usize, usize)| {
            while l != 0 {
                (l, at, _) = self.loops[l];
            }
            at
        };
        self.touches[b].iter().map(outermost).min()
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

/// Plans the scratch memory of a module whose buffers have these sizes. `uncovered`: outputs that are cleared before the code runs, and lend nothing.
pub fn plan(m: &Module, bytes: &[usize], uncovered: &[Buffer]) -> Result<MemoryPlan> {
    let mut walk = Lifetimes {
        loops: vec![(0, 0, usize::MAX)],
        touches: vec![Vec::new(); m.buffers.len()],
        ..Lifetimes::default()
    };
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
    place(m, bytes, &walk, &spans, &partner, uncovered)
}

fn place(
    m: &Module,
    bytes: &[usize],
    walk: &Lifetimes,
    spans: &[Option<Span>],
    partner: &FxHashMap<usize, Vec<usize>>,
    uncovered: &[Buffer],
) -> Result<MemoryPlan> {
    let mut order: Vec<usize> = (0..spans.len()).filter(|b| spans[*b].is_some()).collect();
    order.sort_by_key(|b| (spans[*b].map(|s| s.first), *b));
    let mut plan = MemoryPlan { places: vec![None; m.buffers.len()], ..MemoryPlan::default() };
    let mut arena = Space { room: usize::MAX, end: usize::MAX, output: None, alive: Vec::new() };
    let mut hosts = hosts(m, bytes, walk);
    hosts.retain(|h| h.output.is_none_or(|o| !uncovered.contains(&o)));
    for b in order {
        let Some(span) = spans[b] else { continue };
        let new = Live { offset: 0, size: bytes[b].max(1).div_ceil(ALIGN) * ALIGN, last: span.last, buffer: b };
        plan.unshared += new.size;
        hosts.retain(|h| h.end >= span.first);
        // What a kernel reads for the last time it may write its result over.
        let written_over = |x: usize, y: usize, at: usize| {
            let same_size = m.buffers[x].ty.size() == m.buffers[y].ty.size();
            let alone = !partner.contains_key(&x) && !partner.contains_key(&y);
            let kernel = walk.kernels.get(&at).filter(|_| same_size && alone);
            kernel.is_some_and(|k| overwrites(&m.kernels[*k as usize], Buffer(x as u32), Buffer(y as u32)))
        };
        let over = |x: &Live| x.last == span.first && x.size >= new.size && written_over(x.buffer, b, span.first);
        let fits = |h: &Space| {
            let holds = |o: &Buffer| m.buffers[o.index()].ty.size() >= m.buffers[b].ty.size();
            h.output.as_ref().is_none_or(holds) && span.last < h.end
        };
        let spaces = hosts.iter_mut().filter(|h| fits(h));
        let space_over = spaces.chain([&mut arena]).find_map(|h| {
            h.alive.retain(|x| x.last >= span.first);
            h.alive.iter().position(&over).map(|i| (h, i))
        });
        if let Some((space, i)) = space_over {
            let old = space.alive[i];
            plan.in_place.push((Buffer(old.buffer as u32), Buffer(b as u32)));
            plan.places[b] = Some(Slot { output: space.output, offset: old.offset });
            space.alive[i] = Live { last: span.last, buffer: b, ..old };
            continue;
        }
        // The smallest result that has room, or that is written by the kernel which reads this for the last time.
        let host = hosts.iter_mut().find_map(|h| {
            h.alive.retain(|x| x.last >= span.first);
            let offset = h.gap(new.size);
            let over = |o: &Buffer| {
                let whole = offset == 0 && bytes[o.index()] == bytes[b];
                span.last == h.end && whole && written_over(b, o.index(), h.end)
            };
            let found = (fits(h) && offset + new.size <= h.room) || h.output.as_ref().is_some_and(over);
            found.then_some((h, offset))
        });
        let (space, offset) = host.unwrap_or_else(|| {
            let offset = arena.gap(new.size);
            plan.bytes = plan.bytes.max(offset + new.size);
            (&mut arena, offset)
        });
        if let Some(o) = space.output.filter(|_| span.last == space.end) {
            plan.in_place.push((Buffer(b as u32), o));
        }
        plan.places[b] = Some(Slot { output: space.output, offset });
        let i = space.alive.partition_point(|x| x.offset < offset);
        space.alive.insert(i, Live { offset, ..new });
        if plan.bytes > LARGEST {
            fail!(Size, "`{}` needs {} bytes of scratch memory", m.name, plan.bytes);
        }
    }
    Ok(plan)
}

/// An array that has its place.
#[derive(Clone, Copy, Debug)]
struct Live {
    offset: usize,
    size: usize,
    last: usize,
    buffer: usize,
}

/// Memory that arrays share: the arena, or an output's until something touches the output.
struct Space {
    room: usize,
    end: usize,
    output: Option<Buffer>,
    /// What lives now, by its place.
    alive: Vec<Live>,
}

impl Space {
    /// The first free place of a size.
    fn gap(&self, size: usize) -> usize {
        let mut at = 0;
        for x in &self.alive {
            if at + size <= x.offset {
                break;
            }
            at = at.max(x.offset + x.size);
        }
        at
    }
}

/// So many outputs lend their memory at most, the largest: every array is tried in each.
const MOST_HOSTS: usize = 64;

/// The outputs that can lend their memory, the smallest first.
fn hosts(m: &Module, bytes: &[usize], walk: &Lifetimes) -> Vec<Space> {
    let traded = |b: usize| walk.swaps.iter().any(|(x, y, _)| x.index() == b || y.index() == b);
    let mut all: Vec<usize> =
        (0..m.buffers.len()).filter(|b| matches!(m.buffers[*b].role, Role::Output(_)) && bytes[*b] >= ALIGN).collect();
    all.sort_by_key(|b| (std::cmp::Reverse(bytes[*b]), *b));
    all.truncate(MOST_HOSTS);
    all.reverse();
    all.into_iter()
        .filter(|b| !traded(*b))
        .filter_map(|b| {
            let output = Some(Buffer(b as u32));
            Some(Space { room: bytes[b], end: walk.begin(b)?, output, alive: Vec::new() })
        })
        .collect()
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
                // In the iteration that overwrites an element, it is read before.
                Stmt::Let(_, Expr::Load(b, _)) if *b == x && !writes.is_empty() => *ok = false,
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
    // One place each, the same.
    ok && writes.len() == 1 && !reads.is_empty() && reads.iter().all(|r| *r == writes[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::lower_with;

    /// A program of f32[32,32] arrays, planned: each of its buffers takes 4096 bytes.
    fn planned(body: &str) -> MemoryPlan {
        let text = format!("fn f(x0: f32[32,32], x1: f32[5,32,32]) -> {body}\n}}\n").replace("T =", "f32[32,32] =");
        let dot = "dot_general{lhs_contract=[1], rhs_contract=[0], lhs_batch=[], rhs_batch=[]}";
        let program: gradus_core::Program = text.replace("dot", dot).parse().unwrap_or_else(|e| panic!("{e}"));
        let lowered = lower_with(&program, crate::lower::SMALL, true).unwrap();
        let bytes = lowered.bind(&program, program.inputs()).unwrap().bytes;
        plan(&lowered.module, &bytes, &lowered.uncovered).unwrap()
    }

    #[test]
    fn a_result_may_be_written_over_what_its_kernel_reads() {
        let p = planned("f32[32,32] {\n  x2: T = dot x0 x0\n  x3: T = add x2 x0\n  return x3");
        assert_eq!((p.bytes, p.unshared, p.in_place.len()), (0, 4096, 1), "{p}");
    }

    #[test]
    fn what_is_read_while_a_result_is_written_lies_elsewhere() {
        let p = planned("f32[32,32] {\n  x2: T = dot x0 x0\n  x3: T = dot x2 x2\n  return x3");
        assert_eq!((p.bytes, p.unshared), (4096, 4096), "{p}");
        // Turned around, an element is not at its own place.
        let turned = "transpose{axes=[1,0]} x2\n  x4: T = add x3 x0\n  return x4";
        let p = planned(&format!("f32[32,32] {{\n  x2: T = dot x0 x0\n  x3: T = {turned}"));
        assert_eq!((p.bytes, p.unshared), (4096, 4096), "{p}");
    }

    #[test]
    fn what_ends_before_a_result_begins_lies_in_it() {
        let p = planned("f32[32,32] {\n  x2: T = dot x0 x0\n  x3: T = dot x2 x2\n  x4: T = dot x3 x3\n  return x4");
        assert_eq!((p.bytes, p.unshared), (4096, 8192), "{p}");
        assert!(p.to_string().contains("which is written later"), "{p}");
    }

    #[test]
    fn a_result_that_a_loop_writes_lends_nothing_inside_of_it() {
        let step = "fn step(x0: f32[32,32], x1: f32[32,32]) -> (f32[32,32], f32[32,32]) {\n    x2: T = dot x1 x1\n    \
            x3: T = dot x2 x1\n    x4: T = add x0 x3\n    return x4, x3\n  }";
        let p = planned(&format!(
            "(f32[32,32], f32[5,32,32]) {{\n  x2: f32[32,32], x3: f32[5,32,32] = scan{{body={step}, consts=0, carries=1, \
             length=5, reverse=false}} x0 x1\n  return x2, x3"
        ));
        // Results of earlier steps are in the stack when a step begins. The carry stays where it is, and its result is written after the loop.
        let inside: Vec<Option<Buffer>> = p.places.iter().flatten().map(|at| at.output).collect();
        assert_eq!(inside, [Some(Buffer(2)), None], "{p}");
    }
}

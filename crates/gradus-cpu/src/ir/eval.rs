//! The meaning of the kernel language: a plain evaluator that tests hold every code generator against. It can also watch memory: whether each
//! load finds what the lowering means to be there.

use gradus_core::scalar::evaluate as scalar;

use crate::error::{Result, error};

use super::meaning::{At, Meaning, Note, Region};
use super::{Buffer, Carried, Expr, FoldOp, Index, Int, Kind, LANES, Loop, Module, Shadow, Stmt, Ty, Value};

/// The bytes of each buffer, and the run-time sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// One for each buffer of the module.
    pub buffers: Vec<Vec<u8>>,
    /// The sizes.
    pub sizes: Vec<i64>,
}

/// Where each buffer lies: the block of memory, its first byte there, and how many bytes.
pub type Slots = Vec<(usize, usize, usize)>;

/// Does a library call: its entry, and the address of each array.
pub type Library<'a> = dyn FnMut(u32, &[*mut u8]) -> Result<()> + 'a;

struct Machine<'a> {
    module: &'a Module,
    library: &'a mut Library<'a>,
    memory: &'a mut Memory,
    slots: Slots,
    values: Vec<u64>,
    shadow: Option<Shadow>,
    /// The kernel that runs.
    kernel: Option<u32>,
}

/// Runs a module's main body. Library calls are not part of the language: a module with one is an error.
pub fn evaluate(module: &Module, memory: &mut Memory) -> Result<()> {
    evaluate_with(module, memory, &mut |_, _| Err(error!(Rule, "the evaluator has no library")))
}

/// Runs a module's main body with a library for its calls.
pub fn evaluate_with<'a>(module: &'a Module, memory: &'a mut Memory, library: &'a mut Library<'a>) -> Result<()> {
    let slots: Slots = memory.buffers.iter().enumerate().map(|(i, b)| (i, 0, b.len())).collect();
    let values = vec![0; module.types.len()];
    let mut machine = Machine { values, module, memory, library, slots, shadow: None, kernel: None };
    machine.block(&module.main)?;
    // Buffers that traded places keep their names.
    let slots = machine.slots;
    let mut blocks = std::mem::take(&mut memory.buffers);
    memory.buffers = slots.iter().map(|(i, ..)| std::mem::take(&mut blocks[*i])).collect();
    Ok(())
}

/// Runs a module's main body in blocks of memory that buffers share, and holds every load and store against what it means.
pub fn evaluate_checked<'a>(
    module: &'a Module,
    memory: &'a mut Memory,
    slots: Slots,
    library: &'a mut Library<'a>,
) -> Result<()> {
    let mut shadow = Shadow::new(module, &memory.buffers);
    for (buffer, tag, size) in &module.meanings.given {
        let (block, start, bytes) = slots[buffer.index()];
        shadow.give(*tag, block, start..start + bytes, *size);
    }
    let values = vec![0; module.types.len()];
    let mut machine = Machine { values, module, memory, library, slots, shadow: Some(shadow), kernel: None };
    machine.block(&module.main)?;
    if let Some(shadow) = &machine.shadow {
        for (buffer, tag, size) in &module.meanings.made {
            let (block, start, bytes) = machine.slots[buffer.index()];
            shadow.made(*tag, *buffer, block, start..start + bytes, *size)?;
        }
    }
    Ok(())
}

impl Machine<'_> {
    fn int(&self, i: Int) -> i64 {
        match i {
            Int::Const(v) => v,
            Int::Value(v) => self.values[v.index()] as i64,
        }
    }

    fn at(&self, at: &At) -> i64 {
        let sizes = &self.memory.sizes;
        let terms = at.terms.iter().map(|(v, s)| (self.values[v.index()] as i64).wrapping_mul(s.in_table(sizes)));
        at.offset.in_table(sizes) + terms.sum::<i64>()
    }

    fn element(&self, m: &Meaning) -> i64 {
        let sizes = &self.memory.sizes;
        let digits = m.digits.iter().map(|d| {
            let start = d.start.map_or(0, |(v, times)| self.values[v.index()] as i64 * times as i64);
            let place = self.values[d.var.index()] as i64 + start;
            let index = place / d.behind.in_table(sizes).max(1) % d.extent.in_table(sizes).max(1);
            index * d.stride.in_table(sizes)
        });
        self.at(&m.element) + digits.sum::<i64>()
    }

    /// The bytes of an element: the block of memory, and where in it.
    fn place(&self, buffer: Buffer, at: &Index) -> Result<(usize, std::ops::Range<usize>)> {
        let mut i = at.offset;
        for (v, s) in &at.terms {
            i += self.values[v.index()] as i64 * self.int(*s);
        }
        self.bytes_at(buffer, i, self.module.buffers[buffer.index()].ty.size())
    }

    fn bytes_at(&self, buffer: Buffer, i: i64, size: usize) -> Result<(usize, std::ops::Range<usize>)> {
        let (block, start, have) = self.slots[buffer.index()];
        match usize::try_from(i) {
            Ok(i) if (i + 1) * size <= have => Ok((block, start + i * size..start + (i + 1) * size)),
            _ => Err(self.fault(format!("element {i} of {buffer}, which has {have} bytes"))),
        }
    }

    /// A fault of the lowering, with the kernel it is in.
    fn fault(&self, what: String) -> crate::error::Error {
        match self.kernel {
            Some(k) => error!(Index, "{what}").note(super::kernel_text(self.module, k as usize)),
            None => error!(Index, "{what}").note("in the main body"),
        }
    }

    /// Every element of a region: where it is, and which element it is.
    fn elements_of(&self, r: &Region) -> Result<Vec<(usize, std::ops::Range<usize>, i64)>> {
        self.elements_as(r, &r.element)
    }

    fn elements_as(
        &self,
        r: &Region,
        element: &(At, smallvec::SmallVec<[crate::size::Size; 4]>),
    ) -> Result<Vec<(usize, std::ops::Range<usize>, i64)>> {
        let sizes = &self.memory.sizes;
        let dims: Vec<i64> = r.dims.iter().map(|d| d.in_table(sizes)).collect();
        // Another axis of an empty array may be vast.
        if dims.contains(&0) {
            return Ok(Vec::new());
        }
        let mut all = vec![(self.at(&r.place.0), self.at(&element.0))];
        for (a, d) in dims.iter().enumerate() {
            let (p, e) = (r.place.1[a].in_table(sizes), element.1[a].in_table(sizes));
            all = all.iter().flat_map(|(x, y)| (0..*d).map(move |i| (x + i * p, y + i * e))).collect();
        }
        all.into_iter().map(|(p, e)| self.bytes_at(r.buffer, p, r.bytes).map(|(block, at)| (block, at, e))).collect()
    }

    fn note(&mut self, note: &Note) -> Result<()> {
        let Some(mut shadow) = self.shadow.take() else { return Ok(()) };
        match note {
            Note::Step(scope) => shadow.step(*scope),
            Note::Becomes(region, tag, element) => {
                let old = self.elements_of(region)?;
                let new = self.elements_as(region, element)?;
                for ((block, at, e), (_, _, to)) in old.into_iter().zip(new) {
                    // Where it is not there it does not get the name: whoever reads it finds out. Perhaps nobody does, and the memory is
                    // something else's by now.
                    if shadow.load(region.tag, e, block, &at).is_ok() {
                        shadow.also(*tag, to, block, &at);
                    }
                }
            }
        }
        self.shadow = Some(shadow);
        Ok(())
    }

    /// A load or store in the shadow memory.
    fn watch(&mut self, store: bool, at: &Index, block: usize, bytes: &std::ops::Range<usize>) -> Result<()> {
        let Some(mut shadow) = self.shadow.take() else { return Ok(()) };
        let meaning = self.module.meanings.get(at.means).map(|m| (m.tag, self.element(m), m.again));
        let done = match (meaning, store) {
            (Some((tag, e, again)), true) => shadow.store(tag, e, again, block, bytes),
            (Some((tag, e, _)), false) => shadow.load(tag, e, block, bytes),
            (None, true) => shadow.store_any(block, bytes),
            (None, false) => shadow.written(block, bytes),
        };
        self.shadow = Some(shadow);
        done.map_err(|what| self.fault(what))
    }

    fn regions(&mut self, c: &super::Call, after: bool) -> Result<()> {
        let Some(mut shadow) = self.shadow.take() else { return Ok(()) };
        for (region, _) in c.regions.iter().filter(|(_, writes)| *writes == after) {
            for (block, at, e) in self.elements_of(region)? {
                let done = match after {
                    true => shadow.store(region.tag, e, false, block, &at),
                    false => shadow.load(region.tag, e, block, &at),
                };
                done.map_err(|what| self.fault(format!("call {}: {what}", self.module.calls[c.entry as usize])))?;
            }
        }
        self.shadow = Some(shadow);
        Ok(())
    }

    fn block(&mut self, body: &[Stmt]) -> Result<()> {
        body.iter().try_for_each(|s| self.stmt(s))
    }

    fn stmt(&mut self, s: &Stmt) -> Result<()> {
        match s {
            Stmt::Let(v, e) => {
                self.values[v.index()] = match e {
                    Expr::Const(bits) => *bits,
                    Expr::Size(i) => self.memory.sizes[*i as usize] as u64,
                    Expr::Load(b, at) => {
                        let (block, range) = self.place(*b, at)?;
                        self.watch(false, at, block, &range)?;
                        let mut bytes = [0; 8];
                        bytes[..range.len()].copy_from_slice(&self.memory.buffers[block][range]);
                        u64::from_le_bytes(bytes)
                    }
                    Expr::Op(op, args) => {
                        let types: Vec<Ty> = args.iter().map(|a| self.module.ty(*a)).collect();
                        let args: Vec<u64> = args.iter().map(|a| self.values[a.index()]).collect();
                        scalar(*op, &types, &args)
                    }
                };
                Ok(())
            }
            Stmt::Store { buffer, at, value } => {
                let (block, range) = self.place(*buffer, at)?;
                self.watch(true, at, block, &range)?;
                let bytes = self.values[value.index()].to_le_bytes();
                let len = range.len();
                self.memory.buffers[block][range].copy_from_slice(&bytes[..len]);
                Ok(())
            }
            Stmt::Loop(l) => self.loop_(l),
            Stmt::While(w) => {
                self.begin(&w.carried);
                loop {
                    self.block(&w.before)?;
                    if self.values[w.condition.index()] == 0 {
                        break;
                    }
                    self.block(&w.body)?;
                    self.next(&w.carried);
                }
                self.end(&w.carried);
                Ok(())
            }
            Stmt::Switch(s) => {
                let i = (self.values[s.index.index()] as i64).clamp(0, s.cases.len() as i64 - 1);
                let (body, ends) = &s.cases[i as usize];
                self.block(body)?;
                let ends: Vec<u64> = ends.iter().map(|v| self.values[v.index()]).collect();
                s.results.iter().zip(ends).for_each(|(r, v)| self.values[r.index()] = v);
                Ok(())
            }
            Stmt::Kernel(k) => {
                self.kernel = Some(*k);
                self.block(&self.module.kernels[*k as usize].body)?;
                self.kernel = None;
                Ok(())
            }
            Stmt::Call(c) => {
                let mut arrays = Vec::new();
                for (b, at) in &c.buffers {
                    let mut place = at.offset;
                    for (v, s) in &at.terms {
                        place += self.values[v.index()] as i64 * self.int(*s);
                    }
                    let size = self.module.buffers[b.index()].ty.size() as i64;
                    let (block, start, _) = self.slots[b.index()];
                    let base = self.memory.buffers[block].as_mut_ptr().wrapping_add(start);
                    arrays.push(base.wrapping_offset((place * size) as isize));
                }
                self.regions(c, false)?;
                (self.library)(c.entry, &arrays)?;
                self.regions(c, true)
            }
            Stmt::Swap(a, b) => {
                self.slots.swap(a.index(), b.index());
                Ok(())
            }
            Stmt::Piece(p) => self.block(&self.module.pieces[*p as usize]),
            Stmt::Note(n) => self.note(n),
        }
    }

    fn begin(&mut self, carried: &[Carried]) {
        self.assign(carried.iter().map(|c| (c.init, c.param)));
    }

    fn next(&mut self, carried: &[Carried]) {
        self.assign(carried.iter().map(|c| (c.next, c.param)));
    }

    fn end(&mut self, carried: &[Carried]) {
        self.assign(carried.iter().map(|c| (c.param, c.result)));
    }

    /// All at once: one may be another's source.
    fn assign(&mut self, pairs: impl Iterator<Item = (Value, Value)>) {
        let pairs: Vec<(u64, Value)> = pairs.map(|(from, to)| (self.values[from.index()], to)).collect();
        pairs.into_iter().for_each(|(v, to)| self.values[to.index()] = v);
    }

    fn loop_(&mut self, l: &Loop) -> Result<()> {
        let count = self.int(l.count);
        self.begin(&l.carried);
        let mut lanes: Vec<Vec<u64>> = vec![Vec::new(); l.folds.len()];
        for i in 0..count {
            self.values[l.var.index()] = i as u64;
            self.block(&l.body)?;
            self.next(&l.carried);
            for (lanes, f) in lanes.iter_mut().zip(&l.folds) {
                let v = self.values[f.value.index()];
                let ty = self.module.ty(f.value);
                match lanes.get_mut(i as usize % LANES) {
                    Some(lane) => *lane = scalar(f.op.op(), &[ty, ty], &[*lane, v]),
                    None => lanes.push(v),
                }
            }
        }
        debug_assert!(l.kind == Kind::Lanes || l.folds.is_empty());
        self.end(&l.carried);
        for (lanes, f) in lanes.into_iter().zip(&l.folds) {
            self.values[f.result.index()] = fold_lanes(f.op, self.module.ty(f.value), lanes);
        }
        Ok(())
    }
}

/// The end of a fold: the lanes into one, then the identity.
fn fold_lanes(op: FoldOp, ty: Ty, mut lanes: Vec<u64>) -> u64 {
    let mut w = LANES / 2;
    while w > 0 {
        for l in 0..w {
            if l + w < lanes.len() {
                lanes[l] = scalar(op.op(), &[ty, ty], &[lanes[l], lanes[l + w]]);
            }
        }
        lanes.truncate(w.max(1));
        w /= 2;
    }
    match lanes.first() {
        Some(v) => scalar(op.op(), &[ty, ty], &[op.identity(ty), *v]),
        None => op.identity(ty),
    }
}

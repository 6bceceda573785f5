//! Loads and stores of a loop of lanes: one after the other, near each other, or anywhere.

use crate::ir::{Buffer, Index, Int, LANES, Ty, Value};

use super::analysis::Reach;
use super::emit::Emitter;
use super::lanes::{Choice, Mask};
use super::ops::{line, put};
use super::text::{Operand, Shape, Suffix, int, scalar_name, stored};

impl Emitter<'_> {
    /// The part of an address that all lanes share: computed before the loop if it can be.
    fn shared(&mut self, buffer: Buffer, at: &Index) -> Operand {
        let Some(l) = &self.f.lanes else { return self.pointer(buffer) };
        let (var, ready) = (l.var, l.ready);
        let mut part = Index::at(at.offset);
        let mut early = true;
        for (v, stride) in &at.terms {
            let uneven = matches!(stride, Int::Value(s) if self.is_varying(*s));
            if *v == var || uneven || self.is_varying(*v) {
                continue;
            }
            early &= self.is_outer(*v) && !matches!(stride, Int::Value(s) if !self.is_outer(*s));
            part.terms.push((*v, *stride));
        }
        let make = |e: &mut Self| {
            let place = e.place(&part, |_, _| true);
            e.element(buffer, place)
        };
        if early { self.inside(ready, make) } else { make(self) }
    }

    /// The addresses of all lanes: that of one place, and how far lanes are from it in elements.
    fn reached(&mut self, buffer: Buffer, at: &Index, reach: Reach) -> (Operand, Operand) {
        let base = self.shared(buffer, at);
        let Some(l) = &self.f.lanes else { return (base, Operand::Zero) };
        let (var, ready) = (l.var, l.ready);
        let s = Shape { ty: Ty::I64, lanes: l.lanes };
        if let Reach::Strided(stride) = reach {
            let by = self.int(stride);
            let first = self.first(buffer, at, base, by);
            let iota = self.iota(s);
            let make = |e: &mut Self| {
                let by = match by {
                    Operand::Literal(_, bits) => e.constant(s, bits),
                    by => e.splat(s, by),
                };
                put!(e, "mul {s} {iota}, {by}")
            };
            let early = !matches!(stride, Int::Value(v) if !self.is_outer(v));
            return (first, if early { self.inside(ready, make) } else { make(self) });
        }
        let mut sum = None;
        for (v, stride) in &at.terms {
            let uneven = matches!(stride, Int::Value(s) if self.is_varying(*s));
            if *v != var && !uneven && !self.is_varying(*v) {
                continue;
            }
            let term = self.vector(*v);
            let term = match stride {
                Int::Const(1) => term,
                Int::Const(by) => {
                    let by = self.constant(s, *by as u64);
                    put!(self, "mul {s} {term}, {by}")
                }
                Int::Value(by) => {
                    let by = self.vector(*by);
                    put!(self, "mul {s} {term}, {by}")
                }
            };
            sum = Some(match sum {
                None => term,
                Some(sum) => put!(self, "add {s} {sum}, {term}"),
            });
        }
        (base, sum.unwrap_or(Operand::Zero))
    }

    /// The address of the first lane, `by` being the stride.
    fn first(&mut self, buffer: Buffer, at: &Index, base: Operand, by: Operand) -> Operand {
        let Some(mut index) = self.f.lanes.as_ref().map(|l| l.index) else { return base };
        if at.terms.iter().any(|(v, _)| self.blocks.lane.contains(v)) {
            index = put!(self, "and i64 {index}, {}", LANES - 1);
        }
        let ty = scalar_name(stored(self.module.buffers[buffer.index()].ty));
        let place = match by {
            Operand::Literal(_, 1) => index,
            by => put!(self, "mul i64 {index}, {by}"),
        };
        put!(self, "getelementptr {ty}, ptr {base}, i64 {place}")
    }

    /// Lanes of two vectors: which ones, counted through both; none: whatever.
    pub(super) fn shuffle(
        &mut self,
        s: Shape,
        a: Operand,
        b: Operand,
        which: impl Iterator<Item = Option<u32>>,
    ) -> Operand {
        let which: Vec<String> = which.map(|l| l.map_or("i32 poison".into(), |l| format!("i32 {l}"))).collect();
        let b = if b == Operand::None { "poison".to_string() } else { b.to_string() };
        put!(self, "shufflevector {s} {a}, {s} {b}, <{} x i32> <{}>", which.len(), which.join(", "))
    }

    /// Where lanes that are near each other are: the lowest address, how many elements from the lowest to the highest,
    /// and which of them are touched, if not all.
    fn near(&mut self, buffer: Buffer, at: &Index, stride: i64) -> (Operand, u32, Option<Operand>) {
        let base = self.shared(buffer, at);
        let first = self.first(buffer, at, base, int(stride));
        let lanes = self.width();
        let bools = Shape { ty: Ty::Bool, lanes };
        let mask = self.mask().map(|m| m.memory);
        match stride {
            1 => (first, lanes, mask),
            -1 => {
                let ty = scalar_name(stored(self.module.buffers[buffer.index()].ty));
                let lowest = put!(self, "getelementptr {ty}, ptr {first}, i64 {}", 1 - i64::from(lanes));
                let mask = mask.map(|m| self.shuffle(bools, m, Operand::None, (0..lanes).rev().map(Some)));
                (lowest, lanes, mask)
            }
            stride => {
                let by = stride as u32;
                let mask = mask.unwrap_or_else(|| self.constant(bools, 1));
                let which = (0..lanes * by).map(|l| Some(if l % by == 0 { l / by } else { lanes }));
                (first, lanes * by, Some(self.shuffle(bools, mask, Operand::Zero, which)))
            }
        }
    }

    /// What lanes make of elements as they lie in memory, or the other way around.
    fn rearrange(&mut self, m: Shape, a: Operand, stride: i64, store: bool) -> Operand {
        let (n, by) = (m.lanes, stride.unsigned_abs() as u32);
        match (stride, store) {
            (1, _) => a,
            (-1, _) => self.shuffle(m, a, Operand::None, (0..n).rev().map(Some)),
            (_, false) => {
                let wide = Shape { lanes: n * by, ..m };
                self.shuffle(wide, a, Operand::None, (0..n).map(|l| Some(l * by)))
            }
            (_, true) => self.shuffle(m, a, Operand::None, (0..n * by).map(|l| (l % by == 0).then_some(l / by))),
        }
    }

    /// An element for each lane.
    pub(super) fn lanes_load(&mut self, buffer: Buffer, at: &Index) -> Operand {
        let Some(var) = self.f.lanes.as_ref().map(|l| l.var) else { return Operand::None };
        let s = Shape { ty: self.module.buffers[buffer.index()].ty, lanes: self.width() };
        let m = s.with(stored(s.ty));
        let (size, note) = (s.ty.size(), self.note());
        let reach = self.reach(at, var);
        let raw = match reach.near(self.machine) {
            Some(stride) => {
                let (p, lanes, mask) = self.near(buffer, at, stride);
                let w = Shape { lanes, ..m };
                let raw = match mask {
                    None => put!(self, "load {w}, ptr {p}, align {size}{note}"),
                    Some(mask) => {
                        let (suffix, bools) = (Suffix(w), w.with(Ty::Bool));
                        let name = format!("@llvm.masked.load.{suffix}.p0");
                        self.declare(format!("declare {w} {name}(ptr, i32 immarg, {bools}, {w})"));
                        put!(self, "call {w} {name}(ptr {p}, i32 {size}, {bools} {mask}, {w} zeroinitializer){note}")
                    }
                };
                self.rearrange(m, raw, stride, false)
            }
            None => {
                let (p, by) = self.reached(buffer, at, reach);
                self.gather(m, p, by, self.mask())
            }
        };
        self.unpack(s, raw)
    }

    /// Addresses from a base and distances.
    fn addresses(&mut self, m: Shape, base: Operand, by: Operand) -> Operand {
        put!(self, "getelementptr {}, ptr {base}, <{} x i64> {by}", scalar_name(m.ty), m.lanes)
    }

    /// One vector in lanes that run, another one in the others.
    pub(super) fn choose(&mut self, s: Shape, mask: Mask, a: Operand, otherwise: Operand) -> Operand {
        match mask.values {
            Choice::By(mask) => put!(self, "select {} {mask}, {s} {a}, {s} {otherwise}", s.with(Ty::Bool)),
            Choice::First(n) => {
                self.shuffle(s, a, otherwise, (0..s.lanes).map(|l| Some(if l < n { l } else { l + s.lanes })))
            }
        }
    }

    /// Puts the value of one lane, running for sure, where lanes do not run.
    fn fill(&mut self, s: Shape, a: Operand, mask: Mask, lane: Operand) -> Operand {
        let one = put!(self, "extractelement {s} {a}, i64 {lane}");
        let all = self.splat(s, one);
        self.choose(s, mask, a, all)
    }

    fn gather(&mut self, m: Shape, base: Operand, by: Operand, mask: Option<Mask>) -> Operand {
        let (bools, wide, n) = (m.with(Ty::Bool), m.with(Ty::I64), m.lanes);
        let small = m.ty.size() < 4;
        let by = match mask {
            // A machine gathers no bytes: LLVM would branch around each lane. Lanes that do not run read what the first reads.
            Some(mask) if small => self.fill(wide, by, mask, int(0)),
            _ => by,
        };
        let mask = match mask {
            Some(mask) if !small => mask.memory,
            _ => self.constant(bools, 1),
        };
        let (from, size, note) = (self.addresses(m, base, by), m.ty.size(), self.note());
        let name = format!("@llvm.masked.gather.{}.v{n}p0", Suffix(m));
        self.declare(format!("declare {m} {name}(<{n} x ptr>, i32 immarg, {bools}, {m})"));
        put!(self, "call {m} {name}(<{n} x ptr> {from}, i32 {size}, {bools} {mask}, {m} zeroinitializer){note}")
    }

    /// Writes an element for each lane.
    pub(super) fn lanes_store(&mut self, buffer: Buffer, at: &Index, value: Value) {
        let Some(var) = self.f.lanes.as_ref().map(|l| l.var) else { return };
        let s = Shape { ty: self.module.buffers[buffer.index()].ty, lanes: self.width() };
        let reach = self.reach(at, var);
        if reach == Reach::Uniform {
            // All write one place: the last one stays.
            let last = match self.mask() {
                Some(mask) => put!(self, "sub i64 {}, 1", mask.active),
                None => int(i64::from(s.lanes) - 1),
            };
            let one = match self.is_varying(value) {
                true => {
                    let v = self.vector(value);
                    put!(self, "extractelement {s} {v}, i64 {last}")
                }
                false => self.scalars[value.index()],
            };
            return self.store_scalar(buffer, at, one);
        }
        let m = s.with(stored(s.ty));
        let v = self.vector(value);
        let v = self.pack(s, v);
        let (size, note) = (s.ty.size(), self.note());
        let Some(stride) = reach.near(self.machine) else { return self.scatter(m, v, buffer, at, reach) };
        let (p, lanes, mask) = self.near(buffer, at, stride);
        let v = self.rearrange(m, v, stride, true);
        let w = Shape { lanes, ..m };
        match mask {
            None => line!(self, "store {w} {v}, ptr {p}, align {size}{note}"),
            Some(mask) => {
                let bools = w.with(Ty::Bool);
                let name = format!("@llvm.masked.store.{}.p0", Suffix(w));
                self.declare(format!("declare void {name}({w}, ptr, i32 immarg, {bools})"));
                line!(self, "call void {name}({w} {v}, ptr {p}, i32 {size}, {bools} {mask}){note}");
            }
        }
    }

    fn scatter(&mut self, m: Shape, v: Operand, buffer: Buffer, at: &Index, reach: Reach) {
        let (p, by) = self.reached(buffer, at, reach);
        let (size, note, n) = (m.ty.size(), self.note(), m.lanes);
        let bools = m.with(Ty::Bool);
        let small = size < 4;
        let mask = self.mask();
        let (by, v) = match mask {
            // As with gathers; the last lane that runs writes again what it wrote.
            Some(mask) if small => {
                let last = put!(self, "sub i64 {}, 1", mask.active);
                (self.fill(m.with(Ty::I64), by, mask, last), self.fill(m, v, mask, last))
            }
            _ => (by, v),
        };
        let mask = match mask {
            Some(mask) if !small => mask.memory,
            _ => self.constant(bools, 1),
        };
        let to = self.addresses(m, p, by);
        let name = format!("@llvm.masked.scatter.{}.v{n}p0", Suffix(m));
        self.declare(format!("declare void {name}({m}, <{n} x ptr>, i32 immarg, {bools})"));
        line!(self, "call void {name}({m} {v}, <{n} x ptr> {to}, i32 {size}, {bools} {mask}){note}");
    }
}

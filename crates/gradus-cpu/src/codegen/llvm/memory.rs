//! Loads and stores of kernels: one element, lanes near each other, or anywhere.

use crate::ir::{Index, Int, Ty, Value};
use crate::vector::{Access, Lanes, Memory, Spread};

use super::kernels::{Kernels, Mask};
use super::ops::{line, put};
use super::text::{Operand, Shape, Suffix, int, scalar_name, stored};

impl Kernels<'_, '_, '_> {
    /// The sum of an index's terms at levels that pass a test, in elements.
    fn terms(&mut self, at: &Index, offset: i64, keep: impl Fn(u32) -> bool) -> Operand {
        let (mut offset, mut sum) = (offset, None);
        for (v, stride) in &at.terms {
            if !keep(self.level_of((*v).into()).max(self.level_of(*stride))) {
                continue;
            }
            let term = match (self.w.values[v.index()], self.int(*stride)) {
                (Operand::Literal(_, v), Operand::Literal(_, stride)) => {
                    offset = offset.wrapping_add((v as i64).wrapping_mul(stride as i64));
                    continue;
                }
                (v, Operand::Literal(_, 1)) => v,
                (v, stride) => put!(self.e, "mul i64 {v}, {stride}"),
            };
            sum = Some(match sum {
                None => term,
                Some(sum) => put!(self.e, "add i64 {sum}, {term}"),
            });
        }
        match sum {
            None => int(offset),
            Some(sum) if offset == 0 => sum,
            Some(sum) => put!(self.e, "add i64 {sum}, {offset}"),
        }
    }

    fn further(&mut self, ty: Ty, from: Operand, by: Operand) -> Operand {
        match by {
            Operand::Literal(_, 0) => from,
            by => put!(self.e, "getelementptr {}, ptr {from}, i64 {by}", scalar_name(stored(ty))),
        }
    }

    /// The address of the first lane: what does not change in the loops around is computed before them.
    fn address(&mut self, access: &Access, ty: Ty) -> Operand {
        let base = match access.memory {
            Memory::Buffer(b) => self.e.pointer(b),
            Memory::Local(n) => self.e.local(n as usize, ty),
        };
        let (at, here) = (&access.at, self.level());
        let levels = at.terms.iter().map(|(v, s)| self.level_of((*v).into()).max(self.level_of(*s)));
        let outer = levels.filter(|l| *l < here).max().unwrap_or(0);
        let base = self.at_level(outer, |k| {
            let place = k.terms(at, at.offset, |l| l < here);
            k.further(ty, base, place)
        });
        let rest = self.terms(at, 0, |l| l >= here);
        self.further(ty, base, rest)
    }

    /// The stride, if lanes are so near to each other that whole vectors are moved, and shuffled.
    fn near(&self, lanes: &Lanes) -> Option<i64> {
        let Spread::Strided(by) = lanes.spread else { return None };
        match self.int(by) {
            Operand::Literal(_, by) => match by as i64 {
                by @ (1 | -1) => Some(by),
                // What lies between is masked out: it may be behind the end.
                by @ 2..=4 if self.e.machine.masks => Some(by),
                _ => None,
            },
            _ => None,
        }
    }

    /// How far lanes are from the first, in elements.
    fn distances(&mut self, lanes: &Lanes) -> Operand {
        let s = Shape { ty: Ty::I64, lanes: u32::from(lanes.shape.lanes) };
        match lanes.spread {
            Spread::Scattered(v) => self.lanes(v, s.lanes),
            Spread::Strided(by) => {
                let numbers = self.e.ramp(s, 0, 1);
                self.at_level(self.level_of(by), |k| {
                    let by = match k.int(by) {
                        Operand::Literal(_, bits) => k.e.constant(s, bits),
                        by => k.e.splat(s, by),
                    };
                    put!(k.e, "mul {s} {numbers}, {by}")
                })
            }
        }
    }

    /// Where lanes that are near each other are: the lowest address, how many elements from the lowest to the highest,
    /// and which of them are touched, if not all.
    fn span(&mut self, access: &Access, lanes: &Lanes, ty: Ty, stride: i64) -> (Operand, u32, Option<Operand>) {
        let first = self.address(access, ty);
        let n = u32::from(lanes.shape.lanes);
        let bools = Shape { ty: Ty::Bool, lanes: n };
        let mask = lanes.active.map(|a| self.mask(a, n, Mask::Memory));
        match stride {
            1 => (first, n, mask),
            -1 => {
                let lowest = self.further(ty, first, int(1 - i64::from(n)));
                let mask = mask.map(|m| self.e.shuffle(bools, m, Operand::None, (0..n).rev().map(Some)));
                (lowest, n, mask)
            }
            stride => {
                let by = stride as u32;
                let mask = mask.unwrap_or_else(|| self.e.constant(bools, 1));
                let which = (0..n * by).map(|l| Some(if l % by == 0 { l / by } else { n }));
                (first, n * by, Some(self.e.shuffle(bools, mask, Operand::Zero, which)))
            }
        }
    }

    /// What lanes make of elements as they lie in memory, or the other way around.
    fn rearrange(&mut self, m: Shape, a: Operand, stride: i64, store: bool) -> Operand {
        let (n, by) = (m.lanes, stride.unsigned_abs() as u32);
        match (stride, store) {
            (1, _) => a,
            (-1, _) => self.e.shuffle(m, a, Operand::None, (0..n).rev().map(Some)),
            (_, false) => {
                let wide = Shape { lanes: n * by, ..m };
                self.e.shuffle(wide, a, Operand::None, (0..n).map(|l| Some(l * by)))
            }
            (_, true) => self.e.shuffle(m, a, Operand::None, (0..n * by).map(|l| (l % by == 0).then_some(l / by))),
        }
    }

    /// What accesses say of themselves.
    fn note(&self, access: &Access) -> &'static str {
        if matches!(access.memory, Memory::Buffer(_)) { self.e.note() } else { "" }
    }

    pub(super) fn load(&mut self, access: &Access, ty: Ty) -> Operand {
        let note = self.note(access);
        let Some(lanes) = &access.lanes else {
            let p = self.address(access, ty);
            let raw = put!(self.e, "load {}, ptr {p}, align {}{note}", scalar_name(stored(ty)), ty.size());
            return self.e.unpack(Shape { ty, lanes: 1 }, raw);
        };
        let s = Shape { ty, lanes: u32::from(lanes.shape.lanes) };
        let (m, size) = (s.with(stored(ty)), ty.size());
        let raw = match self.near(lanes) {
            Some(stride) => {
                let (p, n, mask) = self.span(access, lanes, ty, stride);
                let w = Shape { lanes: n, ..m };
                let raw = match mask {
                    None => put!(self.e, "load {w}, ptr {p}, align {size}{note}"),
                    Some(mask) => {
                        let (suffix, bools) = (Suffix(w), w.with(Ty::Bool));
                        let name = format!("@llvm.masked.load.{suffix}.p0");
                        self.e.declare(format!("declare {w} {name}(ptr, i32 immarg, {bools}, {w})"));
                        put!(self.e, "call {w} {name}(ptr {p}, i32 {size}, {bools} {mask}, {w} zeroinitializer){note}")
                    }
                };
                self.rearrange(m, raw, stride, false)
            }
            None => match self.apart(lanes, m) {
                Some((stride, active)) => self.load_apart(access, m, stride, active),
                None => self.gather(access, lanes, m),
            },
        };
        self.e.unpack(s, raw)
    }

    /// The stride and how many lanes are active, if both are known. Such elements are moved one by one: where processors are kept from leaking what gathers read, a
    /// gather takes longer than that, and a scatter always does.
    fn apart(&self, lanes: &Lanes, m: Shape) -> Option<(i64, u32)> {
        let Spread::Strided(by) = lanes.spread else { return None };
        let Operand::Literal(_, by) = self.int(by) else { return None };
        let active = match lanes.active {
            None => m.lanes,
            Some(active) => match self.int(active) {
                Operand::Literal(_, n) => u32::try_from(n).ok()?.min(m.lanes),
                _ => return None,
            },
        };
        (m.ty.size() >= 4).then_some((by as i64, active))
    }

    fn load_apart(&mut self, access: &Access, m: Shape, stride: i64, active: u32) -> Operand {
        let first = self.address(access, m.ty);
        let (name, size, note) = (scalar_name(m.ty), m.ty.size(), self.note(access));
        let mut all = Operand::Zero;
        for lane in 0..active {
            let p = self.further(m.ty, first, int(stride.wrapping_mul(i64::from(lane))));
            let one = put!(self.e, "load {name}, ptr {p}, align {size}{note}");
            all = put!(self.e, "insertelement {m} {all}, {name} {one}, i64 {lane}");
        }
        all
    }

    fn store_apart(&mut self, access: &Access, m: Shape, v: Operand, (stride, active): (i64, u32)) {
        let first = self.address(access, m.ty);
        let (name, size, note) = (scalar_name(m.ty), m.ty.size(), self.note(access));
        for lane in 0..active {
            let p = self.further(m.ty, first, int(stride.wrapping_mul(i64::from(lane))));
            let one = put!(self.e, "extractelement {m} {v}, i64 {lane}");
            line!(self.e, "store {name} {one}, ptr {p}, align {size}{note}");
        }
    }

    /// Addresses from a base and distances.
    fn addresses(&mut self, m: Shape, base: Operand, by: Operand) -> Operand {
        put!(self.e, "getelementptr {}, ptr {base}, <{} x i64> {by}", scalar_name(m.ty), m.lanes)
    }

    /// Puts the value of one lane, active for sure, where lanes are not active.
    fn fill(&mut self, s: Shape, a: Operand, active: Int, lane: Operand) -> Operand {
        let one = put!(self.e, "extractelement {s} {a}, i64 {lane}");
        let all = self.e.splat(s, one);
        match active {
            Int::Const(n) => {
                let which = (0..s.lanes).map(|l| Some(if i64::from(l) < n { l } else { l + s.lanes }));
                self.e.shuffle(s, a, all, which)
            }
            n => {
                let mask = self.mask(n, s.lanes, Mask::Values);
                put!(self.e, "select {} {mask}, {s} {a}, {s} {all}", s.with(Ty::Bool))
            }
        }
    }

    fn gather(&mut self, access: &Access, lanes: &Lanes, m: Shape) -> Operand {
        let base = self.address(access, m.ty);
        let by = self.distances(lanes);
        let (bools, wide, n) = (m.with(Ty::Bool), m.with(Ty::I64), m.lanes);
        let small = m.ty.size() < 4;
        let by = match lanes.active {
            // A machine gathers no bytes: LLVM would branch around each lane. Lanes that are not active read what the first reads.
            Some(active) if small => self.fill(wide, by, active, int(0)),
            _ => by,
        };
        let mask = match lanes.active {
            Some(active) if !small => self.mask(active, n, Mask::Memory),
            _ => self.e.constant(bools, 1),
        };
        let (from, size, note) = (self.addresses(m, base, by), m.ty.size(), self.note(access));
        let name = format!("@llvm.masked.gather.{}.v{n}p0", Suffix(m));
        self.e.declare(format!("declare {m} {name}(<{n} x ptr>, i32 immarg, {bools}, {m})"));
        put!(self.e, "call {m} {name}(<{n} x ptr> {from}, i32 {size}, {bools} {mask}, {m} zeroinitializer){note}")
    }

    fn store_one(&mut self, access: &Access, ty: Ty, value: Operand) {
        let value = self.e.pack(Shape { ty, lanes: 1 }, value);
        let (p, note) = (self.address(access, ty), self.note(access));
        line!(self.e, "store {} {value}, ptr {p}, align {}{note}", scalar_name(stored(ty)), ty.size());
    }

    pub(super) fn store(&mut self, access: &Access, value: Value) {
        let ty = self.w.code.ty(value);
        let Some(lanes) = &access.lanes else { return self.store_one(access, ty, self.w.values[value.index()]) };
        let s = Shape { ty, lanes: u32::from(lanes.shape.lanes) };
        if lanes.spread == Spread::Strided(Int::Const(0)) {
            // All write one place: the last one stays.
            let last = match lanes.active.map(|n| self.int(n)) {
                Some(Operand::Literal(_, n)) => int(n as i64 - 1),
                Some(n) => put!(self.e, "sub i64 {n}, 1"),
                None => int(i64::from(s.lanes) - 1),
            };
            let v = self.lanes(value, s.lanes);
            let one = put!(self.e, "extractelement {s} {v}, i64 {last}");
            return self.store_one(access, ty, one);
        }
        let (m, size, note) = (s.with(stored(ty)), ty.size(), self.note(access));
        let v = self.lanes(value, s.lanes);
        let v = self.e.pack(s, v);
        let Some(stride) = self.near(lanes) else {
            return match self.apart(lanes, m) {
                Some(how) => self.store_apart(access, m, v, how),
                None => self.scatter(access, lanes, m, v),
            };
        };
        let (p, n, mask) = self.span(access, lanes, ty, stride);
        let v = self.rearrange(m, v, stride, true);
        let w = Shape { lanes: n, ..m };
        match mask {
            None => line!(self.e, "store {w} {v}, ptr {p}, align {size}{note}"),
            Some(mask) => {
                let bools = w.with(Ty::Bool);
                let name = format!("@llvm.masked.store.{}.p0", Suffix(w));
                self.e.declare(format!("declare void {name}({w}, ptr, i32 immarg, {bools})"));
                line!(self.e, "call void {name}({w} {v}, ptr {p}, i32 {size}, {bools} {mask}){note}");
            }
        }
    }

    fn scatter(&mut self, access: &Access, lanes: &Lanes, m: Shape, v: Operand) {
        let p = self.address(access, m.ty);
        let by = self.distances(lanes);
        let (size, note, n) = (m.ty.size(), self.note(access), m.lanes);
        let bools = m.with(Ty::Bool);
        let small = size < 4;
        let (by, v) = match lanes.active {
            // As with gathers; the last lane that is active writes again what it wrote.
            Some(active) if small => {
                let last = match self.int(active) {
                    Operand::Literal(_, n) => int(n as i64 - 1),
                    n => put!(self.e, "sub i64 {n}, 1"),
                };
                (self.fill(m.with(Ty::I64), by, active, last), self.fill(m, v, active, last))
            }
            _ => (by, v),
        };
        let mask = match lanes.active {
            Some(active) if !small => self.mask(active, n, Mask::Memory),
            _ => self.e.constant(bools, 1),
        };
        let to = self.addresses(m, p, by);
        let name = format!("@llvm.masked.scatter.{}.v{n}p0", Suffix(m));
        self.e.declare(format!("declare void {name}({m}, <{n} x ptr>, i32 immarg, {bools})"));
        line!(self.e, "call void {name}({m} {v}, <{n} x ptr> {to}, i32 {size}, {bools} {mask}){note}");
    }
}

//! Neighbouring elements of records, one record to a lane: they move between memory and registers as pieces of rows, and are turned there.
//!
//! The components of small vectors at many points lie side by side, and each is a vector of its own in the code. Moved one element at a time, eight records of eight
//! numbers are 64 accesses, and those of one component are in as many cache lines. As rows they are eight accesses, each to memory next to the last one, and 24
//! instructions that only move lanes. For records that are found by an index a gather for each component is slower still.

use super::Isa;
use super::address::Pattern;
use super::encode::Len;
use super::lir::{Inst, Mem, Reg, Rm};
use super::opcodes as op;
use super::select::{Select, Val};
use super::small::is_small;
use crate::ir::{Int, Ty, Value};
use crate::vector::{Access, Expr, Lanes, Spread, Stmt};

/// How far ahead loads of one record are looked for: what is loaded early keeps its register until it is used.
const AHEAD: usize = 48;

/// Bytes of a line of the caches.
const LINE: i32 = 64;
/// Turns of a loop that write fewer bytes of records are left to the processor's own guesses.
const TURN: i32 = 1 << 10;
/// Of turns that write over more, the next may be farther away than an address can say.
const FARTHEST: i32 = 1 << 28;
/// About so many bytes ahead records are announced.
const TURN_AHEAD: i32 = 4 << 10;

/// Components that are moved together: from which on, and how many.
type Group = (usize, usize);

/// What is said of a record by an access to one of its components: all but the offset.
pub(super) fn same_record(a: &Access, b: &Access) -> bool {
    a.memory == b.memory && a.at.terms == b.at.terms && a.lanes == b.lanes
}

/// Groups of components that cover `n` of them. Where the last would be small it begins earlier, and some are moved twice.
fn groups(n: usize, width: usize, double: bool) -> Vec<Group> {
    let sizes: &[usize] = match (double, width) {
        (true, 8) => &[8, 4, 2],
        (true, _) => &[4, 2],
        (false, _) => &[4],
    };
    let mut all = Vec::new();
    let mut from = 0;
    while from < n {
        let left = n - from;
        // More than half of a group is worth one, if there are as many components at all.
        let size = sizes.iter().copied().find(|s| n >= *s && left > s / 2).unwrap_or(1);
        all.push((from.min(n - size), size));
        from = from.min(n - size) + size;
    }
    all
}

impl Select<'_> {
    /// Whether elements of a type can be moved as parts of records by these lanes.
    fn moves_records(&self, lanes: &Lanes, ty: Ty) -> bool {
        let width = lanes.shape.width();
        let fits = match ty.size() {
            8 => matches!(width, 4 | 8),
            4 => matches!(width, 4 | 8 | 16),
            _ => false,
        };
        fits && !is_small(ty) && lanes.active.is_none() && width * ty.size() <= self.f.entry
    }

    /// The stores at the start of a body, if they fill neighbouring components: how many they were.
    pub(super) fn store_records(&mut self, body: &[Stmt]) -> Option<usize> {
        let Some(Stmt::Store(first, value)) = body.first() else { return Some(0) };
        let ty = self.code.ty(*value);
        let Some(lanes) = first.lanes.as_ref().filter(|l| self.moves_records(l, ty)) else { return Some(0) };
        let Spread::Strided(stride) = lanes.spread else { return Some(0) };
        let Int::Const(stride) = self.known(stride) else { return Some(0) };
        let stores = || body.iter().map_while(|s| if let Stmt::Store(a, v) = s { Some((a, *v)) } else { None });
        // Records must not reach into each other: then it would matter who is last.
        let n = Self::neighbours(first, stores().map(|(a, _)| Some(a))) as u64;
        let values: Vec<Value> = stores().map(|(_, v)| v).take(n.min(stride.unsigned_abs()) as usize).collect();
        if values.len() < 2 || (ty.size() == 4 && values.len() < 4) {
            return Some(0);
        }
        let Pattern::Indexed { step, .. } = self.pattern_of(lanes, ty)? else { return Some(0) };
        if step == 0 {
            return Some(0);
        }
        let to = self.address(first.memory, &first.at, ty)?;
        let (double, width) = (ty.size() == 8, lanes.shape.width());
        let stride = step / width as i32;
        self.each_part(lanes.shape, |s, k| {
            let regs: Vec<Reg> = values.iter().map(|v| s.vector(*v, k)).collect::<Option<_>>()?;
            for (from, size) in groups(values.len(), width, double) {
                let to = to.plus(k as i32 * step + (from * ty.size()) as i32);
                s.store_group(double, &regs[from..from + size], to, stride);
            }
            Some(())
        })?;
        let parts = usize::from(lanes.shape.registers);
        self.announce_records(to, width * parts, stride, (values.len() * ty.size()) as i32);
        Some(values.len())
    }

    /// Says which lines a later turn of the loop will write, where one turn writes many: stores are done in order, so each line that has to come from afar first
    /// holds up all that follow, and the processor's own guesses end with a page.
    fn announce_records(&mut self, to: Mem, lanes: usize, stride: i32, bytes: i32) {
        let Some(turn) =
            stride.checked_mul(lanes as i32).filter(|turn| (TURN..=FARTHEST).contains(&turn.saturating_abs()))
        else {
            return;
        };
        let later = to.plus(turn * (TURN_AHEAD / turn.abs()).max(1));
        // Rows next to each other are one run.
        let (rows, bytes) = if bytes == stride { (1, turn) } else { (lanes as i32, bytes) };
        for row in 0..rows {
            for at in (0..bytes).step_by(LINE as usize) {
                self.emit(Inst::Announce { at: later.plus(row * stride + at) });
            }
        }
    }

    fn store_group(&mut self, double: bool, columns: &[Reg], to: Mem, stride: i32) {
        let (len, width) = (self.len(if double { 8 } else { 4 }), self.width());
        let row = |s: &mut Self, len: u8, src: Reg, lane: usize| {
            let to = to.plus(lane as i32 * stride);
            s.emit(Inst::StoreVec { enc: op::store(double), len: Len(len), src, to, mask: None });
        };
        match (double, columns.len()) {
            (true, 8) => {
                let rows = self.turned_eight(columns);
                rows.iter().enumerate().for_each(|(lane, r)| row(self, 64, *r, lane));
            }
            (true, 4) => {
                let mut halves = vec![columns.to_vec()];
                if width == 8 {
                    let upper = columns.iter().map(|r| self.made(op::EXTRACT_256, Len(64), None, *r, Some(1)));
                    halves.push(upper.collect());
                }
                for (h, half) in halves.iter().enumerate() {
                    let rows = self.turned_four(half);
                    rows.iter().enumerate().for_each(|(i, r)| row(self, 32, *r, 4 * h + i));
                }
            }
            (true, 2) => {
                for odd in 0..2 {
                    let pairs = self.unpacked(true, len, columns[0], columns[1], odd == 1);
                    let blocks = self.blocks_of(pairs, len);
                    blocks.iter().enumerate().for_each(|(b, r)| row(self, 16, *r, 2 * b + odd));
                }
            }
            (false, 4) => {
                let turned = self.turned_within(len, columns);
                for (i, r) in turned.into_iter().enumerate() {
                    let blocks = self.blocks_of(r, len);
                    blocks.iter().enumerate().for_each(|(b, r)| row(self, 16, *r, 4 * b + i));
                }
            }
            _ => columns.iter().enumerate().for_each(|(i, r)| {
                let to = to.plus(i as i32 * if double { 8 } else { 4 });
                self.store_strided(double, *r, to, stride);
            }),
        }
    }

    /// The load at the start of a body and others of the same records behind it, all made now, if there are enough; those behind it are passed over later.
    pub(super) fn load_records(&mut self, body: &[Stmt]) -> Option<bool> {
        let Some(Stmt::Let(now, Expr::Load(first))) = body.first() else { return Some(false) };
        let ty = self.code.ty(*now);
        let Some(lanes) = first.lanes.as_ref().filter(|l| self.moves_records(l, ty)) else { return Some(false) };
        let mut found = Vec::new();
        for s in body.iter().take(AHEAD) {
            match s {
                Stmt::Let(v, Expr::Load(a)) if same_record(a, first) && self.code.ty(*v) == ty => {
                    found.push((a.at.offset, *v));
                }
                // Nothing is loaded before what may change it.
                Stmt::Store(..) | Stmt::Loop(_) | Stmt::Main(_) => break,
                Stmt::Let(..) => {}
            }
        }
        // Of several loads of one component the earliest is made here: this one is among them, whatever its number is.
        found.sort_by_key(|f| f.0);
        found.dedup_by_key(|f| f.0);
        // Only what is loaded anyway is known to be there: the neighbours without a gap.
        let at = found.iter().position(|f| f.0 == first.at.offset)?;
        let (mut from, mut to) = (at, at + 1);
        while from > 0 && found[from - 1].0 + 1 == found[from].0 {
            from -= 1;
        }
        while to < found.len() && found[to - 1].0 + 1 == found[to].0 {
            to += 1;
        }
        let (n, values): (usize, Vec<Value>) = (to - from, found[from..to].iter().map(|f| f.1).collect());
        if n < 2 || (ty.size() == 4 && n < 4) {
            return Some(false);
        }
        let pattern = self.pattern_of(lanes, ty)?;
        let Pattern::Indexed { indices, step } = pattern else { return Some(false) };
        if step == 0 && !matches!(lanes.spread, Spread::Scattered(_)) {
            return Some(false);
        }
        let mut at = first.at.clone();
        at.offset = found[from].0;
        let place = self.address(first.memory, &at, ty)?;
        let place = self.vectorial(place, &pattern);
        let (double, width, size) = (ty.size() == 8, lanes.shape.width(), ty.size());
        let mut targets = Vec::new();
        for v in &values {
            let Val::Lanes(regs) = self.target(*v) else { return None };
            targets.push(regs);
        }
        self.each_part(lanes.shape, |s, k| {
            let rows: Vec<Mem> = match step {
                0 => {
                    s.spread(indices[k]);
                    (0..width).map(|lane| s.lane_place(place, size.trailing_zeros() as u8, lane as i32)).collect()
                }
                step => (0..width as i32).map(|i| place.plus(k as i32 * step + i * (step / width as i32))).collect(),
            };
            let mut done = 0;
            for (from, count) in groups(n, width, double) {
                let rows: Vec<Mem> = rows.iter().map(|r| r.plus((from * size) as i32)).collect();
                let columns = s.load_group(double, count, &rows);
                for (i, src) in columns.into_iter().enumerate().filter(|(i, _)| from + i >= done) {
                    s.emit(Inst::Copy { dst: targets[from + i][k], src });
                }
                done = from + count;
            }
            Some(())
        })?;
        for (v, regs) in values.iter().zip(targets) {
            self.set(*v, Val::Lanes(regs));
            if v != now {
                self.ready.insert(*v);
            }
        }
        Some(true)
    }

    fn load_group(&mut self, double: bool, count: usize, rows: &[Mem]) -> Vec<Reg> {
        let (len, width) = (self.len(if double { 8 } else { 4 }), self.width());
        let plain = |s: &mut Self, len: u8, at: Mem| s.made(op::load(double), Len(len), None, Rm::Mem(at), None);
        match (double, count) {
            (true, 8) => {
                let rows: Vec<Reg> = rows.iter().map(|r| plain(self, 64, *r)).collect();
                self.turned_eight(&rows)
            }
            (true, 4) if width == 8 => {
                // Two rows to a register, such that blocks come out in the order of lanes.
                let mut pairs = Vec::new();
                for (low, high) in [(0, 2), (1, 3), (4, 6), (5, 7)] {
                    let low = plain(self, 32, rows[low]);
                    pairs.push(self.made(op::INSERT_256, len, Some(low), Rm::Mem(rows[high]), Some(1)));
                }
                let mut columns = Vec::new();
                for upper in [false, true] {
                    let a = self.unpacked(true, len, pairs[0], pairs[1], upper);
                    let b = self.unpacked(true, len, pairs[2], pairs[3], upper);
                    columns.push([0x88, 0xDD].map(|imm| self.made(op::BLOCKS, len, Some(a), b, Some(imm))));
                }
                vec![columns[0][0], columns[1][0], columns[0][1], columns[1][1]]
            }
            (true, 4) => {
                let rows: Vec<Reg> = rows.iter().map(|r| plain(self, 32, *r)).collect();
                self.turned_four(&rows)
            }
            (true, 2) => {
                let [even, odd] = [0, 1].map(|i| self.blocks_from(double, len, rows, i, 2));
                [false, true].map(|upper| self.unpacked(true, len, even, odd, upper)).to_vec()
            }
            (false, 4) => {
                let rows = [0, 1, 2, 3].map(|i| self.blocks_from(double, len, rows, i, 4));
                self.turned_within(len, &rows)
            }
            _ => {
                let size = if double { 8 } else { 4 };
                let mut one = |i: i32| {
                    let at: Vec<Mem> = rows.iter().map(|r| r.plus(i * size)).collect();
                    self.load_each(double, &at)
                };
                (0..count as i32).map(&mut one).collect()
            }
        }
    }

    /// Blocks of 128 bits from every so many rows, one behind the other.
    fn blocks_from(&mut self, double: bool, len: Len, rows: &[Mem], first: usize, every: usize) -> Reg {
        let mut all = self.made(op::load(double), Len(16), None, Rm::Mem(rows[first]), None);
        for (b, row) in rows.iter().skip(first).step_by(every).enumerate().skip(1) {
            all = self.made(op::INSERT_128, len, Some(all), Rm::Mem(*row), Some(b as u8));
        }
        all
    }

    /// The blocks of 128 bits of a register.
    fn blocks_of(&mut self, r: Reg, len: Len) -> Vec<Reg> {
        let mut parts = vec![r];
        for (enc, bytes) in [(op::EXTRACT_256, 64), (op::EXTRACT_128, 32)] {
            if len.0 >= bytes {
                let halves = |s: &mut Self, r: Reg| [r, s.made(enc, Len(bytes), None, r, Some(1))];
                parts = parts.into_iter().flat_map(|r| halves(self, r)).collect();
            }
        }
        parts
    }

    /// The lower or upper elements of each 128 bits of two registers, by turns.
    fn unpacked(&mut self, double: bool, len: Len, a: Reg, b: Reg, upper: bool) -> Reg {
        let enc = if upper { op::unpack_upper(double) } else { op::unpack_lower(double) };
        self.made(enc, len, Some(a), b, None)
    }

    /// Eight registers of eight: rows for columns.
    pub(super) fn turned_eight(&mut self, regs: &[Reg]) -> Vec<Reg> {
        let len = Len(64);
        let mut out = vec![regs[0]; 8];
        for odd in 0..2 {
            let pair: Vec<Reg> = regs.chunks(2).map(|p| self.unpacked(true, len, p[0], p[1], odd == 1)).collect();
            let mut blocks = |a: Reg, b: Reg, imm: u8| self.made(op::BLOCKS, len, Some(a), b, Some(imm));
            // 0x88: the first and third block of each; 0xDD: the second and fourth.
            for (i, imm) in [(0, 0x88), (2, 0xDD)] {
                let (low, high) = (blocks(pair[0], pair[1], imm), blocks(pair[2], pair[3], imm));
                out[odd + i] = blocks(low, high, 0x88);
                out[odd + i + 4] = blocks(low, high, 0xDD);
            }
        }
        out
    }

    /// Four registers of four 64-bit elements: rows for columns.
    fn turned_four(&mut self, regs: &[Reg]) -> Vec<Reg> {
        let len = Len(32);
        let mut out = vec![regs[0]; 4];
        for odd in 0..2 {
            let pair: Vec<Reg> = regs.chunks(2).map(|p| self.unpacked(true, len, p[0], p[1], odd == 1)).collect();
            let (enc, imm) = match self.isa {
                Isa::Avx512 => (op::BLOCKS, [0, 3]),
                Isa::Avx2 => (op::BLOCKS_OF_TWO, [0x20, 0x31]),
            };
            for (i, imm) in imm.into_iter().enumerate() {
                out[odd + 2 * i] = self.made(enc, len, Some(pair[0]), pair[1], Some(imm));
            }
        }
        out
    }

    /// Four registers of four 32-bit elements in each 128 bits: rows for columns there.
    fn turned_within(&mut self, len: Len, regs: &[Reg]) -> Vec<Reg> {
        let mut out = Vec::new();
        for imm in [0x44, 0xEE] {
            let [a, b] = [0, 2].map(|i| self.made(op::SHUFFLE_TWO, len, Some(regs[i]), regs[i + 1], Some(imm)));
            out.extend([0x88, 0xDD].map(|imm| self.made(op::SHUFFLE_TWO, len, Some(a), b, Some(imm))));
        }
        out
    }
}

//! Loads and stores.

use super::Isa;
use super::address::Pattern;
use super::encode::{Cond, Len};
use super::lanes::LANE_ROOM;
use super::lir::{Alu, Inst, Mem, Reg, Ri, Rm, Size, Test, Unary};
use super::opcodes as op;
use super::select::{Select, TOGETHER, Val, is_general};
use super::small::{is_small, size_of};
use crate::ir::{Int, Ty, Value};
use crate::vector::{Access, Spread};

/// The frame's places for indices and for elements.
const INDICES: i32 = 0;
const ELEMENTS: i32 = 64;

impl Select<'_> {
    pub(super) fn load(&mut self, v: Value, access: &Access) -> Option<Val> {
        let ty = self.code.ty(v);
        let size = ty.size();
        let Some(lanes) = &access.lanes else {
            let from = self.address(access.memory, &access.at, ty)?;
            return Some(self.load_uniform(ty, from));
        };
        let pattern = self.pattern_of(lanes, ty)?;
        let from = self.address(access.memory, &access.at, ty)?;
        let from = self.vectorial(from, &pattern);
        let there = match lanes.spread {
            Spread::Scattered(by) if size >= 4 && lanes.active.is_none() => self.indices_there(by),
            _ => None,
        };
        let to = self.target(v);
        let Val::Lanes(regs) = to else { return None };
        self.active = lanes.active;
        self.each_register(v, |s, k| {
            let (dst, width) = (regs[k], s.width());
            match pattern {
                Pattern::Contiguous => {
                    let from = from.plus((k * width * size) as i32);
                    match ty {
                        Ty::Bool => s.load_bools(dst, from),
                        ty if is_small(ty) => s.load_shorts(ty, dst, from),
                        _ => s.load_vector(size == 8, dst, from),
                    }
                }
                Pattern::Indexed { step, .. } if s.backwards(ty, step) => {
                    let src = s.vector_reg();
                    let from = from.plus(k as i32 * step + step + size as i32);
                    s.vec(op::load(size == 8), s.len(size), src, None, Rm::Mem(from), None);
                    s.reversed(size == 8, dst, src);
                    Some(())
                }
                Pattern::Indexed { step, .. } if s.strided(ty, step) => {
                    s.load_strided(size == 8, dst, from.plus(k as i32 * step), step / width as i32);
                    Some(())
                }
                Pattern::Indexed { indices, step } => {
                    let from = from.plus(k as i32 * step);
                    match ty {
                        ty if size < 4 => s.gather_lanes(ty, dst, from, indices[k]),
                        _ => match &there {
                            Some(there) => {
                                let (double, index) = (size == 8, indices[k]);
                                s.read_there(there, double, (dst, from, index), |s| s.gather(double, dst, from, index))
                            }
                            None => s.gather(size == 8, dst, from, indices[k]),
                        },
                    }
                }
            }
        })?;
        self.active = None;
        Some(to)
    }

    /// How much of a register is loaded or stored, and the mask of what is if that is not all of it. Few elements that are known are in the shortest that has them all: a long
    /// vector that reaches over the end of a line takes the next one too, whatever its mask says.
    fn touched(&mut self, size: usize) -> Option<(Len, Option<Reg>)> {
        let (width, whole) = (self.width(), self.len(size));
        if let Some(Int::Const(n)) = self.active.map(|n| self.known(n))
            && let left @ 1.. = n - (self.part * width) as i64
            && left < width as i64
        {
            let bytes = left as usize * size;
            let len = Len(bytes.next_power_of_two().max(16) as u8);
            return match bytes == usize::from(len.0) {
                true => Some((len, None)),
                false => Some((len, self.active_mask(size as u8)?)),
            };
        }
        Some((whole, self.active_mask(size as u8)?))
    }

    fn load_vector(&mut self, double: bool, dst: Reg, from: Mem) -> Option<()> {
        let (len, active) = self.touched(if double { 8 } else { 4 })?;
        let Some(active) = active else {
            self.vec(op::load(double), len, dst, None, Rm::Mem(from), None);
            return Some(());
        };
        match self.isa {
            Isa::Avx512 => {
                let b = Rm::Mem(from);
                self.emit(Inst::Vec {
                    enc: op::load(double),
                    len,
                    dst,
                    a: None,
                    b,
                    imm: None,
                    mask: Some((active, true)),
                });
            }
            Isa::Avx2 => self.vec(op::mask_load(double), len, dst, Some(active), Rm::Mem(from), None),
        }
        Some(())
    }

    /// A store of a vector, of those lanes that a mask has if there is one.
    pub(super) fn store_vector(&mut self, double: bool, len: Len, src: Reg, to: Mem, mask: Option<Reg>) {
        let enc = match (self.isa, mask) {
            (Isa::Avx2, Some(_)) => op::mask_store(double),
            _ => op::store(double),
        };
        self.emit(Inst::StoreVec { enc, len, src, to, mask });
    }

    /// Bytes in a vector register as a mask: 0 and 1.
    fn mask_of_bytes(&mut self, dst: Reg, from: Mem) {
        match self.isa {
            Isa::Avx512 => {
                let eight = self.width() <= 8;
                let enc = if eight { op::load_one(true) } else { op::load(false) };
                let bytes = self.made(enc, Len(16), None, Rm::Mem(from), None);
                self.vec(op::TEST_BYTES, Len(16), dst, Some(bytes), bytes, None);
            }
            Isa::Avx2 => {
                let wide = self.wide();
                let enc = if wide { op::BYTES_TO_I64 } else { op::BYTES_TO_I32 };
                let ones = self.made(enc, Len(32), None, Rm::Mem(from), None);
                let zero = self.splat(0, 8);
                self.vec(op::int_sub(wide), Len(32), dst, Some(zero), ones, None);
            }
        }
    }

    fn load_bools(&mut self, dst: Reg, from: Mem) -> Option<()> {
        match (self.isa, self.active) {
            (_, None) => self.mask_of_bytes(dst, from),
            (Isa::Avx512, Some(_)) => {
                let active = self.active_mask(1)??;
                let (bytes, b) = (self.vector_reg(), Rm::Mem(from));
                let mask = Some((active, true));
                self.emit(Inst::Vec { enc: op::LOAD_BYTES, len: Len(16), dst: bytes, a: None, b, imm: None, mask });
                self.vec(op::TEST_BYTES, Len(16), dst, Some(bytes), bytes, None);
            }
            (Isa::Avx2, Some(_)) => {
                self.copy_lanes(1, from, Mem::frame(ELEMENTS));
                self.mask_of_bytes(dst, Mem::frame(ELEMENTS));
            }
        }
        Some(())
    }

    fn load_shorts(&mut self, ty: Ty, dst: Reg, from: Mem) -> Option<()> {
        match (self.isa, self.active) {
            (_, None) => self.widen(ty, dst, from, None),
            (Isa::Avx512, Some(_)) => {
                let active = self.active_mask(4)??;
                self.widen(ty, dst, from, Some(active));
            }
            (Isa::Avx2, Some(_)) => {
                self.copy_lanes(ty.size(), from, Mem::frame(ELEMENTS));
                self.widen(ty, dst, Mem::frame(ELEMENTS), None);
            }
        }
        Some(())
    }

    fn store_shorts(&mut self, ty: Ty, src: Reg, to: Mem) -> Option<()> {
        match (self.isa, self.active) {
            (_, None) => self.shorten(ty, src, to, None),
            (Isa::Avx512, Some(_)) => {
                let active = self.active_mask(4)??;
                self.shorten(ty, src, to, Some(active))
            }
            (Isa::Avx2, Some(_)) => {
                self.shorten(ty, src, Mem::frame(ELEMENTS), None)?;
                self.copy_lanes(ty.size(), Mem::frame(ELEMENTS), to);
                Some(())
            }
        }
    }

    /// Copies elements, up to the last there is.
    fn copy_lanes(&mut self, bytes: usize, from: Mem, to: Mem) {
        let size = size_of(bytes);
        self.each_lane(|s, lane| {
            let element = s.general_reg();
            let at = lane * bytes as i32;
            s.emit(Inst::Load { size, dst: element, from: from.plus(at) });
            s.emit(Inst::Store { size, src: element, to: to.plus(at) });
        });
    }

    /// Code for one lane after the other, up to the last there is. It must not make anything that later code shares.
    fn each_lane(&mut self, mut f: impl FnMut(&mut Self, i32)) {
        self.room(LANE_ROOM);
        let done = self.label();
        let (width, from) = (self.width() as i32, (self.part * self.width()) as i32);
        for lane in 0..width {
            match self.active {
                Some(Int::Const(n)) if i64::from(from + lane) >= n => break,
                Some(Int::Value(n)) => {
                    // invariant: a number of lanes is a 64-bit integer, which is in a general register.
                    let Some(a) = self.general(n) else { break };
                    self.emit(Inst::Branch(Test { cond: Cond::Le, a, b: Ri::Imm(from + lane) }, done));
                }
                _ => {}
            }
            f(self, lane);
        }
        self.emit(Inst::Label(done));
    }

    /// The indices of lanes in the frame.
    pub(super) fn spread(&mut self, indices: Reg) {
        self.room(LANE_ROOM);
        let wide = self.wide();
        let len = self.len(if wide { 8 } else { 4 });
        self.store_vector(wide, len, indices, Mem::frame(INDICES), None);
    }

    pub(super) fn lane_place(&mut self, at: Mem, scale: u8, lane: i32) -> Mem {
        let index = self.general_reg();
        if self.wide() {
            self.emit(Inst::Load { size: Size::Quad, dst: index, from: Mem::frame(INDICES + 8 * lane) });
        } else {
            let low = self.general_reg();
            self.emit(Inst::Load { size: Size::Double, dst: low, from: Mem::frame(INDICES + 4 * lane) });
            self.emit(Inst::Unary { op: Unary::Signed32, dst: index, a: low });
        }
        Mem { index: Some((index, scale)), ..at }
    }

    /// The address without an index of its own, if a vector is to be the index.
    pub(super) fn vectorial(&mut self, at: Mem, pattern: &Pattern) -> Mem {
        match (pattern, at.index) {
            (Pattern::Indexed { .. }, Some(_)) => {
                let dst = self.general_reg();
                self.emit(Inst::Lea { dst, from: at });
                Mem::at(dst, 0)
            }
            _ => at,
        }
    }

    /// One element to all lanes of what varies by its type alone.
    pub(super) fn load_same(&mut self, ty: Ty, dst: Reg, from: Mem) {
        if is_small(ty) {
            return self.load_small(ty, dst, from);
        }
        if ty != Ty::Bool {
            let len = self.whole();
            return self.vec(op::broadcast(ty.size() == 8), len, dst, None, Rm::Mem(from), None);
        }
        let src = self.general_reg();
        self.load_general(ty, src, from);
        match self.isa {
            Isa::Avx512 => self.emit(Inst::MaskFrom { dst, src }),
            Isa::Avx2 => self.broadcast_code(dst, src, false).into_iter().for_each(|i| self.emit(i)),
        }
    }

    /// Whether whole vectors lie in memory from their last lane to their first.
    fn backwards(&self, ty: Ty, step: i32) -> bool {
        let width = self.width();
        ty.size() >= 4 && self.active.is_none() && step == -((width * ty.size()) as i32)
    }

    /// The lanes in the other order.
    fn reversed(&mut self, double: bool, dst: Reg, src: Reg) {
        let size = if double { 8 } else { 4 };
        let len = self.len(size);
        if len == Len(16) {
            return self.vec(op::SHUFFLE, len, dst, None, src, Some(if double { 0x4E } else { 0x1B }));
        }
        if double && self.isa == Isa::Avx2 {
            return self.vec(op::PERMUTE_FOUR, len, dst, None, src, Some(0x1B));
        }
        let order = self.ramp((usize::from(len.0) / size) as i64 - 1, -1, size);
        self.vec(if double { op::PERMUTE_WIDE } else { op::PERMUTE }, len, dst, Some(order), src, None);
    }

    /// Whether whole vectors lie in memory with gaps that are known. Then their elements are moved one by one: where processors
    /// are kept from leaking what gathers read, a gather takes longer than that, and a scatter always does.
    fn strided(&self, ty: Ty, step: i32) -> bool {
        ty.size() >= 4 && self.active.is_none() && step != 0
    }

    fn load_strided(&mut self, double: bool, dst: Reg, from: Mem, stride: i32) {
        let at: Vec<Mem> = (0..self.width() as i32).map(|lane| from.plus(lane * stride)).collect();
        let src = self.load_each(double, &at);
        self.emit(Inst::Copy { dst, src });
    }

    /// A register with elements from as many places.
    pub(super) fn load_each(&mut self, double: bool, at: &[Mem]) -> Reg {
        let mut parts: Vec<Reg> = Vec::new();
        for places in at.chunks(if double { 2 } else { 4 }) {
            let mut part = self.made(op::load_one(double), Len(16), None, Rm::Mem(places[0]), None);
            for (lane, place) in places.iter().enumerate().skip(1) {
                part = match double {
                    true => self.made(op::LOAD_UPPER, Len(16), Some(part), Rm::Mem(*place), None),
                    false => self.made(op::LOAD_LANE, Len(16), Some(part), Rm::Mem(*place), Some((lane as u8) << 4)),
                };
            }
            parts.push(part);
        }
        for (enc, len) in [(op::INSERT_128, Len(32)), (op::INSERT_256, Len(64))] {
            if parts.len() > 1 {
                parts = parts.chunks(2).map(|pair| self.made(enc, len, Some(pair[0]), pair[1], Some(1))).collect();
            }
        }
        parts[0]
    }

    pub(super) fn store_strided(&mut self, double: bool, src: Reg, to: Mem, stride: i32) {
        let size = if double { 8 } else { 4 };
        let width = self.width() as i32;
        let mut parts = vec![src];
        for (enc, bytes) in [(op::EXTRACT_256, 64), (op::EXTRACT_128, 32)] {
            if width * size >= bytes {
                let halves = |s: &mut Self, r: Reg| [r, s.made(enc, Len(bytes as u8), None, r, Some(1))];
                parts = parts.into_iter().flat_map(|r| halves(self, r)).collect();
            }
        }
        let in_part = 16 / size;
        for (k, part) in parts.into_iter().enumerate() {
            for lane in 0..in_part.min(width - k as i32 * in_part) {
                let (enc, src) = match (double, lane) {
                    (_, 0) => (op::store_one(double), part),
                    (true, _) => (op::STORE_UPPER, part),
                    (false, lane) => {
                        (op::store_one(false), self.made(op::SHUFFLE, Len(16), None, part, Some(lane as u8)))
                    }
                };
                let to = to.plus((k as i32 * in_part + lane) * stride);
                self.emit(Inst::StoreVec { enc, len: Len(16), src, to, mask: None });
            }
        }
    }

    fn gather(&mut self, double: bool, dst: Reg, from: Mem, index: Reg) -> Option<()> {
        let wide = self.wide();
        let size: u8 = if double { 8 } else { 4 };
        let (enc, len) = match wide {
            true => (op::gather_wide(double), self.len(8)),
            false => (op::gather_narrow(double), self.len(4)),
        };
        let mask = self.active_mask(size)?;
        let spare = (self.isa == Isa::Avx2).then(|| self.vector_reg());
        self.emit(Inst::Gather { enc, len, dst, from, index, scale: size.trailing_zeros() as u8, mask, spare });
        Some(())
    }

    /// Bools and short integers have no gathers.
    fn gather_lanes(&mut self, ty: Ty, dst: Reg, from: Mem, index: Reg) -> Option<()> {
        self.spread(index);
        let (bytes, size) = (ty.size() as i32, size_of(ty.size()));
        self.each_lane(|s, lane| {
            let (from, element) = (s.lane_place(from, bytes.trailing_zeros() as u8, lane), s.general_reg());
            s.emit(Inst::Load { size, dst: element, from });
            s.emit(Inst::Store { size, src: element, to: Mem::frame(ELEMENTS + lane * bytes) });
        });
        match ty {
            Ty::Bool => self.mask_of_bytes(dst, Mem::frame(ELEMENTS)),
            ty => self.widen(ty, dst, Mem::frame(ELEMENTS), None),
        }
        Some(())
    }

    pub(super) fn store(&mut self, access: &Access, value: Value) -> Option<()> {
        let ty = self.code.ty(value);
        let size = ty.size();
        let Some(lanes) = &access.lanes else {
            let to = self.address(access.memory, &access.at, ty)?;
            return self.store_uniform(ty, value, to);
        };
        let pattern = match lanes.spread {
            // All lanes to one place: the last one wins, as scatters have it.
            Spread::Strided(Int::Const(0)) => {
                let zero = self.splat(0, 8);
                Pattern::Indexed { indices: [zero; TOGETHER], step: 0 }
            }
            _ => self.pattern_of(lanes, ty)?,
        };
        let to = self.address(access.memory, &access.at, ty)?;
        let to = self.vectorial(to, &pattern);
        self.active = lanes.active;
        self.each_part(lanes.shape, |s, k| {
            let (to, index, pace) = match pattern {
                Pattern::Indexed { indices, step } => (to.plus(k as i32 * step), Some(indices[k]), step),
                Pattern::Contiguous => (to.plus((k * s.width() * size) as i32), None, 0),
            };
            if ty == Ty::Bool {
                let mask = s.mask(value, k)?;
                return match index {
                    None => s.store_bools(mask, to),
                    Some(index) => {
                        s.bytes_of_mask(mask)?;
                        s.scatter_lanes(1, to, index)
                    }
                };
            }
            let src = s.vector(value, k)?;
            match index {
                None if is_small(ty) => s.store_shorts(ty, src, to)?,
                Some(index) if is_small(ty) => {
                    s.room(LANE_ROOM);
                    s.shorten(ty, src, Mem::frame(ELEMENTS), None)?;
                    s.scatter_lanes(size, to, index)?;
                }
                None => {
                    let (len, mask) = s.touched(size)?;
                    s.store_vector(size == 8, len, src, to, mask);
                }
                Some(_) if s.backwards(ty, pace) => {
                    let turned = s.vector_reg();
                    s.reversed(size == 8, turned, src);
                    let len = s.len(size);
                    s.store_vector(size == 8, len, turned, to.plus(pace + size as i32), None);
                }
                Some(_) if s.strided(ty, pace) => s.store_strided(size == 8, src, to, pace / s.width() as i32),
                Some(index) => s.scatter(size == 8, src, to, index)?,
            }
            Some(())
        })?;
        self.active = None;
        Some(())
    }

    fn store_uniform(&mut self, ty: Ty, value: Value, to: Mem) -> Option<()> {
        if is_small(ty) {
            let src = self.vector(value, 0)?;
            let src = self.small_bits(ty, src);
            self.emit(Inst::Store { size: size_of(ty.size()), src, to });
            return Some(());
        }
        if !is_general(ty) {
            let src = self.vector(value, 0)?;
            self.emit(Inst::StoreVec { enc: op::store_one(ty.size() == 8), len: Len(16), src, to, mask: None });
            return Some(());
        }
        let src = self.general(value)?;
        match ty {
            Ty::Bool => {
                let byte = self.general_reg();
                self.alu(Alu::And, byte, src, Ri::Imm(1));
                self.emit(Inst::Store { size: Size::Byte, src: byte, to });
            }
            _ => self.emit(Inst::Store { size: Size::Quad, src, to }),
        }
        Some(())
    }

    /// A mask as bytes, in the low bytes of a vector.
    fn mask_bytes(&mut self, mask: Reg) -> Option<Reg> {
        let ones = self.splat(0x0101_0101_0101_0101, 8);
        match self.isa {
            Isa::Avx512 => {
                let dst = self.vector_reg();
                let m = Some((mask, true));
                self.emit(Inst::Vec {
                    enc: op::LOAD_BYTES,
                    len: Len(16),
                    dst,
                    a: None,
                    b: ones.into(),
                    imm: None,
                    mask: m,
                });
                Some(dst)
            }
            Isa::Avx2 => {
                let narrow = self.mask_as(mask, 4);
                let words = match self.width() {
                    8 => {
                        let upper = self.made(op::EXTRACT_128, Len(32), None, narrow, Some(1));
                        self.made(op::PACK_I32, Len(16), Some(narrow), upper, None)
                    }
                    _ => self.made(op::PACK_I32, Len(16), Some(narrow), narrow, None),
                };
                let bytes = self.made(op::PACK_I16, Len(16), Some(words), words, None);
                Some(self.made(op::int_and(false), Len(16), Some(bytes), ones, None))
            }
        }
    }

    fn store_bytes(&mut self, bytes: Reg, to: Mem) {
        let enc = match self.width() {
            16 => op::store(false),
            8 => op::store_one(true),
            _ => op::store_one(false),
        };
        self.emit(Inst::StoreVec { enc, len: Len(16), src: bytes, to, mask: None });
    }

    /// A mask as bytes in the frame.
    fn bytes_of_mask(&mut self, mask: Reg) -> Option<()> {
        self.room(LANE_ROOM);
        let bytes = self.mask_bytes(mask)?;
        self.store_bytes(bytes, Mem::frame(ELEMENTS));
        Some(())
    }

    fn store_bools(&mut self, mask: Reg, to: Mem) -> Option<()> {
        let bytes = self.mask_bytes(mask)?;
        match (self.isa, self.active) {
            (_, None) => self.store_bytes(bytes, to),
            (Isa::Avx512, Some(_)) => {
                let active = self.active_mask(1)??;
                self.emit(Inst::StoreVec { enc: op::STORE_BYTES, len: Len(16), src: bytes, to, mask: Some(active) });
            }
            (Isa::Avx2, Some(_)) => {
                self.room(LANE_ROOM);
                self.store_bytes(bytes, Mem::frame(ELEMENTS));
                self.copy_lanes(1, Mem::frame(ELEMENTS), to);
            }
        }
        Some(())
    }

    fn scatter(&mut self, double: bool, src: Reg, to: Mem, index: Reg) -> Option<()> {
        let size: u8 = if double { 8 } else { 4 };
        if self.isa == Isa::Avx2 {
            self.room(LANE_ROOM);
            let len = self.len(usize::from(size));
            self.store_vector(double, len, src, Mem::frame(ELEMENTS), None);
            return self.scatter_lanes(usize::from(size), to, index);
        }
        let (enc, len) = match self.wide() {
            true => (op::scatter_wide(double), self.len(8)),
            false => (op::scatter_narrow(double), self.len(4)),
        };
        let mask = self.active_mask(size)?;
        self.emit(Inst::Scatter { enc, len, src, to, index, scale: size.trailing_zeros() as u8, mask });
        Some(())
    }

    /// Stores the elements that are in the frame, one by one.
    fn scatter_lanes(&mut self, bytes: usize, to: Mem, index: Reg) -> Option<()> {
        let (size, bytes) = (size_of(bytes), bytes as i32);
        self.spread(index);
        self.each_lane(|s, lane| {
            let (to, element) = (s.lane_place(to, bytes.trailing_zeros() as u8, lane), s.general_reg());
            s.emit(Inst::Load { size, dst: element, from: Mem::frame(ELEMENTS + lane * bytes) });
            s.emit(Inst::Store { size, src: element, to });
        });
        Some(())
    }
}

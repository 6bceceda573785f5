//! From virtual registers with homes to bytes.
//!
//! Operands that live in memory come through scratch registers (rax, rcx, rdx; the last vectors; k5 and k6) or stay
//! memory operands where an instruction takes one.

use super::Isa;
use super::allocate::{Allocation, Home, MASK_SCRATCH, VECTOR_SCRATCH, vectors};
use super::encode::{Address, Bytes, Code, Cond, Enc, Form, Label, Len, Operand, RSP};
use super::lir::{Base, Class, Function, Inst, Mem, Reg, Ri, Rm};
use super::opcodes as op;

/// Scratch general registers. Addresses use the last two.
pub(super) const RAX: u8 = 0;
pub(super) const RCX: u8 = 1;
pub(super) const RDX: u8 = 2;
pub(super) const RSI: u8 = 6;
pub(super) const RDI: u8 = 7;
/// The mask that gathers and scatters use up.
const K7: u8 = 7;
/// General registers that a function gives back as it found them.
pub(super) const SAVED: [u8; 6] = [3, 5, 12, 13, 14, 15];

/// Where calls find the context, from where they keep registers.
const CONTEXT: u32 = 3 * 64;

/// What is done out of the way: a call that is rarely made.
struct Cold {
    inst: usize,
    from: Label,
    back: Label,
}

pub(super) struct Emitter<'a> {
    pub(super) code: Code,
    isa: Isa,
    f: &'a Function,
    homes: &'a Allocation,
    cold: Vec<Cold>,
    /// Where calls keep registers, and the operands and result of calls.
    saves: u32,
}

/// The bytes of a function.
pub fn emit(f: &Function, homes: &Allocation, isa: Isa) -> Bytes {
    let calls: Vec<usize> = (0..f.code.len()).filter(|i| matches!(f.code[*i], Inst::Call { .. })).collect();
    // Three arrays for each call, the context, then the registers.
    let kept = calls.iter().map(|i| homes.across(*i).count() as u32).max().unwrap_or(0);
    let saves = homes.frame.next_multiple_of(64);
    // A frame is aligned, and so is the stack of whoever is called.
    let least = if f.code.iter().any(|i| matches!(i, Inst::Run { .. })) { 64 } else { 0 };
    let frame = match calls.is_empty() {
        true => homes.frame.max(least),
        false => saves + 4 * 64 + kept * 64,
    };
    let mut e = Emitter { code: Code::default(), isa, f, homes, cold: Vec::new(), saves };
    e.code.reserve(f.labels as usize);
    let saved: Vec<u8> = SAVED
        .into_iter()
        .filter(|r| homes.homes.iter().zip(&f.regs).any(|(h, i)| *h == Home::Reg(*r) && i.class == Class::General))
        .collect();
    saved.iter().for_each(|r| e.push(*r));
    if frame > 0 {
        e.enter(frame.next_multiple_of(64));
    }
    if !calls.is_empty() {
        e.code.plain(true, None, &[0x89], RDI, slot(saves + CONTEXT), &[]);
    }
    for i in 0..f.code.len() {
        e.inst(i);
    }
    if let Some(exit) = f.exit {
        e.code.constant(RAX, 0);
        e.code.place(exit);
    }
    if frame > 0 {
        e.code.plain(true, None, &[0x8B], RSP, slot(frame.next_multiple_of(64)), &[]);
    }
    saved.iter().rev().for_each(|r| e.pop(*r));
    e.code.raw(&[0xC5, 0xF8, 0x77, 0xC3]); // vzeroupper; ret
    for cold in std::mem::take(&mut e.cold) {
        e.code.place(cold.from);
        e.call(cold.inst);
        e.code.jump(cold.back);
    }
    Bytes { frame: frame.next_multiple_of(64), ..e.code.finish(&f.pool, f.entry) }
}

/// A place in the frame.
pub(super) fn slot(at: u32) -> Operand {
    Operand::Mem(Address::At { base: RSP, index: None, disp: at as i32 })
}

impl Emitter<'_> {
    fn push(&mut self, r: u8) {
        self.code.raw(&[0x40 | r >> 3, 0x50 | (r & 7)]);
    }

    fn pop(&mut self, r: u8) {
        self.code.raw(&[0x40 | r >> 3, 0x58 | (r & 7)]);
    }

    /// An aligned frame, with the old stack pointer above it.
    fn enter(&mut self, frame: u32) {
        self.code.plain(true, None, &[0x89], RSP, Operand::Reg(RAX), &[]);
        let mut left = frame + 64;
        // Every page is touched in its order, so that a stack that grows on demand does.
        while left > 4096 {
            self.code.plain(true, None, &[0x81], 5, Operand::Reg(RSP), &4096i32.to_le_bytes());
            self.code.plain(true, None, &[0x85], RSP, slot(0), &[]);
            left -= 4096;
        }
        self.code.plain(true, None, &[0x81], 5, Operand::Reg(RSP), &(left as i32).to_le_bytes());
        self.code.plain(true, None, &[0x83], 4, Operand::Reg(RSP), &[0xC0]); // and rsp, -64
        self.code.plain(true, None, &[0x89], RAX, slot(frame), &[]);
    }

    pub(super) fn home(&self, r: Reg) -> Home {
        self.homes.homes[r.0 as usize]
    }

    fn class(&self, r: Reg) -> Class {
        self.f.regs[r.0 as usize].class
    }

    /// Where an operand can be read as a register or memory.
    pub(super) fn operand(&self, r: Reg) -> Operand {
        match self.home(r) {
            Home::Reg(home) => Operand::Reg(home),
            Home::Slot(at) => slot(at),
            Home::Pool(entry) => Operand::Mem(Address::Pool(entry)),
            // invariant: only what does not occur has no home
            Home::None => Operand::Reg(0),
        }
    }

    pub(super) fn ri(&self, b: Ri) -> Result<Operand, i32> {
        match b {
            Ri::Reg(r) => Ok(self.operand(r)),
            Ri::Imm(v) => Err(v),
        }
    }

    fn scratch(&self, n: u8) -> u8 {
        vectors(self.isa) - VECTOR_SCRATCH + n
    }

    /// The length of a whole register.
    fn whole(&self) -> Len {
        Len(self.f.entry as u8)
    }

    #[allow(clippy::too_many_arguments)]
    fn vector(
        &mut self,
        enc: Enc,
        len: Len,
        reg: u8,
        v: Option<u8>,
        rm: Operand,
        imm: Option<u8>,
        mask: Option<(u8, bool)>,
    ) {
        match self.isa {
            Isa::Avx512 if !enc.vex_only => self.code.evex(enc, len, reg, v, rm, imm, mask, false),
            _ => self.code.vex(enc, len.0 == 32, reg, v, rm, imm),
        }
    }

    /// Brings an operand into a register: its own or a scratch one.
    fn vector_in(&mut self, r: Reg, scratch: u8) -> u8 {
        match self.operand(r) {
            Operand::Reg(home) => home,
            memory => {
                let to = self.scratch(scratch);
                self.vector(op::load(false), self.whole(), to, None, memory, None, None);
                to
            }
        }
    }

    /// The register that a result is made in.
    fn vector_out(&self, r: Reg, scratch: u8) -> u8 {
        match self.home(r) {
            Home::Reg(home) => home,
            _ => self.scratch(scratch),
        }
    }

    /// Puts a result where it lives.
    fn vector_done(&mut self, r: Reg, from: u8) {
        if let Home::Slot(at) = self.home(r) {
            self.vector(op::store(false), self.whole(), from, None, slot(at), None, None);
        }
    }

    fn mask_in(&mut self, r: Reg, scratch: usize) -> u8 {
        match self.operand(r) {
            Operand::Reg(home) => home,
            memory => {
                self.code.vex(op::MASK_LOAD, false, MASK_SCRATCH[scratch], None, memory, None);
                MASK_SCRATCH[scratch]
            }
        }
    }

    fn mask_out(&self, r: Reg) -> u8 {
        match self.home(r) {
            Home::Reg(home) => home,
            _ => MASK_SCRATCH[0],
        }
    }

    fn mask_done(&mut self, r: Reg, from: u8) {
        if let Home::Slot(at) = self.home(r) {
            self.code.vex(op::MASK_STORE, false, from, None, slot(at), None);
        }
    }

    pub(super) fn general_in(&mut self, r: Reg, scratch: u8) -> u8 {
        match self.operand(r) {
            Operand::Reg(home) => home,
            memory => {
                self.code.plain(true, None, &[0x8B], scratch, memory, &[]);
                scratch
            }
        }
    }

    pub(super) fn general_out(&self, r: Reg) -> u8 {
        match self.home(r) {
            Home::Reg(home) => home,
            _ => RAX,
        }
    }

    pub(super) fn general_done(&mut self, r: Reg, from: u8) {
        match self.home(r) {
            Home::Reg(home) if home != from => self.code.plain(true, None, &[0x89], from, Operand::Reg(home), &[]),
            Home::Slot(at) => self.code.plain(true, None, &[0x89], from, slot(at), &[]),
            _ => {}
        }
    }

    pub(super) fn place(&mut self, m: &Mem) -> Operand {
        let index = m.index.map(|(r, scale)| (self.general_in(r, RDX), scale));
        let base = match m.base {
            Base::Reg(r) => self.general_in(r, RCX),
            Base::Frame => RSP,
        };
        Operand::Mem(Address::At { base, index, disp: m.disp })
    }

    fn inst(&mut self, at: usize) {
        let f = self.f;
        match &f.code[at] {
            Inst::Entry { context, env, lo, hi } => self.entry([*context, *env, *lo, *hi]),
            Inst::Vec { enc, len, dst, a, b, imm, mask } => self.vec(*enc, *len, *dst, *a, *b, *imm, *mask),
            Inst::Fma { double, len, dst, a, b, c } => self.fma(*double, *len, *dst, *a, *b, *c),
            Inst::Pick { double, len, dst, index, a, b } => {
                let to = self.vector_out(*dst, 0);
                let (a, b) = (self.operand(*a), self.operand(*b));
                self.vector(op::load(false), self.whole(), to, None, a, None, None);
                let index = self.vector_in(*index, 1);
                self.vector(op::pick(*double), *len, to, Some(index), b, None, None);
                self.vector_done(*dst, to);
            }
            Inst::Blend { wide, len, dst, mask, yes, no } => self.blend(*wide, *len, *dst, *mask, [*yes, *no]),
            Inst::Copy { dst, src } => self.copy(*dst, *src),
            Inst::StoreVec { enc, len, src, to, mask } => self.store_vector(*enc, *len, *src, to, *mask),
            Inst::Gather { enc, len, dst, from, index, scale, mask, spare } => {
                let index = self.vector_in(*index, 1);
                let to = self.vector_out(*dst, 0);
                let from = self.vsib(from, index, *scale);
                match spare {
                    None => self.gather_masked(*enc, *len, to, from, *mask),
                    Some(spare) => self.gather_using_up(*enc, *len, to, from, *mask, *spare),
                }
                self.vector_done(*dst, to);
            }
            Inst::Scatter { enc, len, src, to, index, scale, mask } => {
                let src = self.vector_in(*src, 0);
                let index = self.vector_in(*index, 1);
                let to = self.vsib(to, index, *scale);
                self.gather_mask(*mask);
                self.code.evex(*enc, *len, src, None, to, None, Some((K7, false)), true);
            }
            Inst::ToVec { enc, len, dst, src, merged } => self.move_to_vector(*enc, *len, *dst, *src, *merged),
            Inst::FromVec { enc, dst, src } => {
                let src = self.vector_in(*src, 0);
                let to = self.general_out(*dst);
                match enc.form {
                    Form::Mr => self.vector(*enc, Len(16), src, None, Operand::Reg(to), None, None),
                    _ => self.vector(*enc, Len(16), to, None, Operand::Reg(src), None, None),
                }
                self.general_done(*dst, to);
            }
            Inst::Mask { enc, dst, a, b } => {
                let a = self.mask_in(*a, 0);
                let b = b.map(|b| self.mask_in(b, 1));
                let to = self.mask_out(*dst);
                match b {
                    Some(b) => self.code.vex(*enc, true, to, Some(a), Operand::Reg(b), None),
                    None => self.code.vex(*enc, false, to, None, Operand::Reg(a), None),
                }
                self.mask_done(*dst, to);
            }
            Inst::MaskFrom { dst, src } => {
                let src = self.general_in(*src, RAX);
                let to = self.mask_out(*dst);
                self.code.vex(op::MASK_FROM_GENERAL, false, to, None, Operand::Reg(src), None);
                self.mask_done(*dst, to);
            }
            Inst::MaskTo { dst, src } => {
                let src = self.mask_in(*src, 0);
                let to = self.general_out(*dst);
                self.code.vex(op::MASK_TO_GENERAL, false, to, None, Operand::Reg(src), None);
                self.general_done(*dst, to);
            }
            Inst::Call { guard: None, .. } => self.call(at),
            Inst::Call { guard: Some(guard), count, .. } => self.call_where(at, *guard, *count),
            inst => self.general(inst),
        }
    }

    /// Where the convention passes the context, the env and the two ends, and where they go.
    fn entry(&mut self, [context, env, lo, hi]: [Reg; 4]) {
        self.code.plain(true, None, &[0x89], RDI, Operand::Reg(RAX), &[]);
        // rsi goes first: nothing else was written yet. rdi is safe in rax.
        for (r, from) in [(env, RSI), (context, RAX), (lo, RDX), (hi, RCX)] {
            if self.home(r) != Home::None {
                self.general_done(r, from);
            }
        }
    }

    fn blend(&mut self, wide: bool, len: Len, dst: Reg, mask: Reg, [yes, no]: [Reg; 2]) {
        let no = self.vector_in(no, 0);
        let yes = self.operand(yes);
        let to = self.vector_out(dst, 0);
        if self.class(mask) == Class::Mask {
            let mask = self.mask_in(mask, 0);
            self.vector(op::blend_mask(wide), len, to, Some(no), yes, None, Some((mask, false)));
        } else {
            let mask = self.vector_in(mask, 1);
            self.vector(op::blend_vector(wide), len, to, Some(no), yes, Some(mask << 4), None);
        }
        self.vector_done(dst, to);
    }

    fn store_vector(&mut self, enc: Enc, len: Len, src: Reg, to: &Mem, mask: Option<Reg>) {
        let src = self.vector_in(src, 0);
        let to = self.place(to);
        match mask {
            Some(k) if self.class(k) == Class::Mask => {
                let k = self.mask_in(k, 0);
                self.vector(enc, len, src, None, to, None, Some((k, false)));
            }
            Some(m) => {
                let m = self.vector_in(m, 1);
                self.vector(enc, len, src, Some(m), to, None, None);
            }
            None => self.vector(enc, len, src, None, to, None, None),
        }
    }

    fn zero(&mut self, len: Len, to: u8) {
        self.vector(op::int_xor(false), len, to, Some(to), Operand::Reg(to), None, None);
    }

    /// AVX-512: the lanes are those of a mask register.
    fn gather_masked(&mut self, enc: Enc, len: Len, to: u8, from: Operand, mask: Option<Reg>) {
        self.gather_mask(mask);
        self.zero(len, to);
        self.code.evex(enc, len, to, None, from, None, Some((K7, false)), true);
    }

    /// AVX2: the lanes are those of a vector, which the instruction clears.
    fn gather_using_up(&mut self, enc: Enc, len: Len, to: u8, from: Operand, mask: Option<Reg>, spare: Reg) {
        let spare = self.vector_out(spare, 2);
        match mask.map(|m| self.operand(m)) {
            Some(m) => self.vector(op::load(false), self.whole(), spare, None, m, None, None),
            None => {
                let same = Operand::Reg(spare);
                self.vector(op::int_equal(false), self.whole(), spare, Some(spare), same, None, None);
            }
        }
        self.zero(len, to);
        self.code.vex(enc, len.0 == 32, to, Some(spare), from, None);
    }

    fn move_to_vector(&mut self, enc: Enc, len: Len, dst: Reg, src: Reg, merged: bool) {
        let src = self.general_in(src, RAX);
        let to = self.vector_out(dst, 0);
        if merged {
            // The lanes above come from here; zero, and not from what was there, so that nothing waits for it.
            self.zero(Len(16), to);
        }
        self.vector(enc, len, to, merged.then_some(to), Operand::Reg(src), None, None);
        self.vector_done(dst, to);
    }

    /// A call that is made only if a lane of its guard is set. It stands behind the function, out of the way.
    fn call_where(&mut self, at: usize, guard: Reg, count: u8) {
        if self.class(guard) == Class::Mask {
            let k = self.mask_in(guard, 0);
            self.code.vex(op::mask_test(count == 8), false, k, None, Operand::Reg(k), None);
        } else {
            let m = self.vector_in(guard, 0);
            self.vector(op::TEST, self.whole(), m, None, Operand::Reg(m), None, None);
        }
        let (from, back) = (self.code.label(), self.code.label());
        self.code.branch(Cond::Ne, from);
        self.code.place(back);
        self.cold.push(Cold { inst: at, from, back });
    }

    /// The mask of a gather or scatter in the register that it uses up.
    fn gather_mask(&mut self, mask: Option<Reg>) {
        match mask.map(|m| self.operand(m)) {
            Some(m) => self.code.vex(op::MASK_LOAD, false, K7, None, m, None),
            None => self.code.vex(op::MASK_EQUAL, true, K7, Some(K7), Operand::Reg(K7), None),
        }
    }

    /// An address with a vector as its index.
    fn vsib(&mut self, m: &Mem, index: u8, scale: u8) -> Operand {
        match self.place(m) {
            Operand::Mem(Address::At { base, disp, .. }) => {
                Operand::Mem(Address::At { base, index: Some((index, scale)), disp })
            }
            other => other,
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn vec(&mut self, enc: Enc, len: Len, dst: Reg, a: Option<Reg>, b: Rm, imm: Option<u8>, mask: Option<(Reg, bool)>) {
        if let Home::Pool(_) = self.home(dst) {
            return; // The constant is read where it is used.
        }
        let to_mask = self.class(dst) == Class::Mask;
        let a = a.map(|a| self.vector_in(a, 0));
        let b = match b {
            Rm::Reg(r) if self.class(r) == Class::Mask => Operand::Reg(self.mask_in(r, 1)),
            // The result stands in the place of memory, so the operand has to be in a register.
            Rm::Reg(r) if enc.form == Form::Mr => Operand::Reg(self.vector_in(r, 1)),
            // Shifts by an immediate take memory only in the EVEX form.
            Rm::Reg(r) if enc.form != Form::Rvm && self.isa == Isa::Avx2 => Operand::Reg(self.vector_in(r, 1)),
            Rm::Reg(r) => self.operand(r),
            Rm::Mem(m) => self.place(&m),
            Rm::Pool(entry) => Operand::Mem(Address::Pool(entry)),
        };
        let merged = matches!(mask, Some((_, false)));
        // Other lanes of a mask become zero without being asked to.
        let mask = mask.map(|(k, zero)| (self.mask_in(k, 0), zero && !to_mask));
        let to = match to_mask {
            true => self.mask_out(dst),
            false if merged => self.vector_in(dst, 2),
            false => self.vector_out(dst, 0),
        };
        match enc.form {
            Form::Rvm => self.vector(enc, len, to, a, b, imm, mask),
            Form::Ext(ext) => self.vector(enc, len, ext, Some(to), b, imm, mask),
            Form::Mr => {
                let src = match b {
                    Operand::Reg(r) => r,
                    // invariant: brought into a register above
                    Operand::Mem(_) => 0,
                };
                self.vector(enc, len, src, None, Operand::Reg(to), imm, mask);
            }
        }
        match to_mask {
            true => self.mask_done(dst, to),
            false => self.vector_done(dst, to),
        }
    }

    fn copy(&mut self, dst: Reg, src: Reg) {
        if self.home(dst) == self.home(src) {
            return;
        }
        match self.class(dst) {
            Class::General => {
                let src = self.general_in(src, RAX);
                self.general_done(dst, src);
            }
            Class::Mask => match self.home(dst) {
                Home::Reg(to) => {
                    let src = self.operand(src);
                    self.code.vex(op::MASK_LOAD, false, to, None, src, None);
                }
                _ => {
                    let src = self.mask_in(src, 0);
                    self.mask_done(dst, src);
                }
            },
            Class::Vector => match self.home(dst) {
                Home::Reg(to) => {
                    let src = self.operand(src);
                    self.vector(op::load(false), self.whole(), to, None, src, None, None);
                }
                _ => {
                    let src = self.vector_in(src, 0);
                    self.vector_done(dst, src);
                }
            },
        }
    }

    /// The three forms of the instruction differ in which operand the result takes the place of and which may be memory.
    fn fma(&mut self, double: bool, len: Len, dst: Reg, a: Reg, b: Reg, c: Reg) {
        let to = self.vector_out(dst, 0);
        let here = Operand::Reg(to);
        let (oa, ob, oc) = (self.operand(a), self.operand(b), self.operand(c));
        let is_reg = |o: Operand| matches!(o, Operand::Reg(_));
        if oc != here && (oa == here || ob == here) {
            // to = to·x + c
            let (x, o) = if oa == here { (b, ob) } else { (a, oa) };
            if let (false, Operand::Reg(c)) = (is_reg(o), oc) {
                self.vector(op::fma132(double), len, to, Some(c), o, None, None);
            } else {
                let x = self.vector_in(x, 1);
                self.vector(op::fma213(double), len, to, Some(x), oc, None, None);
            }
        } else {
            // to = a·b + to
            if oc != here {
                self.vector(op::load(false), self.whole(), to, None, oc, None, None);
            }
            let (x, y) = if is_reg(oa) || !is_reg(ob) { (a, ob) } else { (b, oa) };
            let x = self.vector_in(x, 1);
            self.vector(op::fma231(double), len, to, Some(x), y, None, None);
        }
        self.vector_done(dst, to);
    }

    /// A call of compiled Rust, which leaves no vector register as it was: all that live across it are kept.
    fn call(&mut self, at: usize) {
        let Inst::Call { field, parameter, double, len, count, dst, a, b, .. } = self.f.code[at] else { return };
        let (to, from_a, from_b, kept) = (self.saves, self.saves + 64, self.saves + 128, self.saves + CONTEXT + 64);
        for (r, place) in [(a, from_a), (b, from_b)] {
            let r = self.vector_in(r, 0);
            self.vector(op::store(false), len, r, None, slot(place), None, None);
        }
        let across: Vec<(Reg, u8)> = self
            .homes
            .across(at)
            .filter(|(r, home)| *r != dst && !(self.class(*r) == Class::General && SAVED.contains(home)))
            .collect();
        for (i, (r, home)) in across.iter().enumerate() {
            let place = slot(kept + 64 * i as u32);
            match self.class(*r) {
                Class::General => self.code.plain(true, None, &[0x89], *home, place, &[]),
                Class::Mask => self.code.vex(op::MASK_STORE, false, *home, None, place, None),
                Class::Vector => self.vector(op::store(false), self.whole(), *home, None, place, None, None),
            }
        }
        for (r, place) in [(RDI, to), (RSI, from_a), (RDX, from_b)] {
            self.code.plain(true, None, &[0x8D], r, slot(place), &[]);
        }
        self.code.constant(RCX, i64::from(count));
        self.code.constant(8, parameter as i64);
        self.code.plain(true, None, &[0x8B], RAX, slot(self.saves + CONTEXT), &[]);
        self.code.raw(&[0xC5, 0xF8, 0x77]); // vzeroupper
        let function = Operand::Mem(Address::At { base: RAX, index: None, disp: field });
        self.code.plain(false, None, &[0xFF], 2, function, &[]); // call
        for (i, (r, home)) in across.iter().enumerate() {
            let place = slot(kept + 64 * i as u32);
            match self.class(*r) {
                Class::General => self.code.plain(true, None, &[0x8B], *home, place, &[]),
                Class::Mask => self.code.vex(op::MASK_LOAD, false, *home, None, place, None),
                Class::Vector => self.vector(op::load(false), self.whole(), *home, None, place, None, None),
            }
        }
        let result = self.vector_out(dst, 0);
        if count == 1 {
            self.vector(op::broadcast(double), self.whole(), result, None, slot(to), None, None);
        } else {
            self.vector(op::load(false), len, result, None, slot(to), None, None);
        }
        self.vector_done(dst, result);
    }
}

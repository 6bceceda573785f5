//! Instructions as bytes: the EVEX, VEX and plain forms of x86-64, with jumps and constants that are placed at the end.

/// How an 8-bit displacement is scaled in the EVEX form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// By the vector length.
    Full,
    /// By half of it.
    Half,
    /// By a quarter of it.
    Quarter,
    /// By this many bytes.
    Bytes(u8),
}

/// Where the operands of a vector instruction stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Result in `reg`, operands in `vvvv` (if there are two) and `rm`.
    Rvm,
    /// Result in `vvvv`, operand in `rm`, more of the opcode in `reg`.
    Ext(u8),
    /// Result in `rm`, operand in `reg`.
    Mr,
}

/// The fixed part of a vector instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enc {
    /// 1: 0F, 2: 0F38, 3: 0F3A.
    pub map: u8,
    /// 0: none, 1: 66, 2: F3, 3: F2.
    pub pp: u8,
    /// W of the EVEX form.
    pub w: bool,
    /// W of the VEX form, where most instructions do not look at it.
    pub vex_w: bool,
    /// The opcode.
    pub op: u8,
    /// Its operands.
    pub form: Form,
    /// Its displacements.
    pub scale: Scale,
    /// Whether there is a VEX form only.
    pub vex_only: bool,
}

/// Bytes of a vector register that an instruction works on: 16, 32 or 64.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub struct Len(pub u8);

impl Len {
    fn bits(self) -> u8 {
        match self.0 {
            64 => 2,
            32 => 1,
            _ => 0,
        }
    }
}

/// A memory operand of registers by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Address {
    /// base + index·2^scale + disp.
    At { base: u8, index: Option<(u8, u8)>, disp: i32 },
    /// An entry of the constants.
    Pool(u32),
}

/// A register or memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    Reg(u8),
    Mem(Address),
}

/// A place in the code that jumps name before it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label(pub u32);

/// The stack pointer.
pub const RSP: u8 = 4;

/// The low bits of the opcodes of conditional jumps, sets and moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cond {
    B = 2,
    Ae = 3,
    E = 4,
    Ne = 5,
    Be = 6,
    A = 7,
    L = 12,
    Ge = 13,
    Le = 14,
    G = 15,
}

impl Cond {
    /// What holds where this does not.
    pub fn not(self) -> Cond {
        match self {
            Cond::B => Cond::Ae,
            Cond::Ae => Cond::B,
            Cond::E => Cond::Ne,
            Cond::Ne => Cond::E,
            Cond::Be => Cond::A,
            Cond::A => Cond::Be,
            Cond::L => Cond::Ge,
            Cond::Ge => Cond::L,
            Cond::Le => Cond::G,
            Cond::G => Cond::Le,
        }
    }
}

/// Bytes of code under construction.
#[derive(Default)]
pub struct Code {
    bytes: Vec<u8>,
    labels: Vec<u32>,
    jumps: Vec<(usize, Label)>,
    /// Displacements of constants, with the number of bytes of the instruction after them.
    constants: Vec<(usize, u32, u8)>,
    /// Displacements of other functions, each at the end of its instruction.
    references: Vec<(usize, Symbol)>,
}

/// A function of a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Symbol {
    Kernel(u32),
    Function(u32),
    Piece(u32),
}

/// The bytes of a function, entered at the first, and where in them are the distances to others, counted from behind the four bytes of each.
#[derive(Default)]
pub struct Bytes {
    pub code: Vec<u8>,
    /// Bytes of the stack that it takes.
    pub frame: u32,
    pub references: Vec<(usize, Symbol)>,
}

/// What `vvvv` holds if there is no operand for it, before it is complemented.
const NONE: u8 = 0;

impl Code {
    fn u8(&mut self, b: u8) {
        self.bytes.push(b);
    }

    fn u32(&mut self, v: u32) {
        self.bytes.extend_from_slice(&v.to_le_bytes());
    }

    /// ModRM, SIB and displacement. `scale` is what an 8-bit displacement counts in; `after` the bytes of an immediate.
    fn modrm(&mut self, reg: u8, rm: Operand, scale: i32, after: u8) {
        let reg = (reg & 7) << 3;
        let (base, index, disp) = match rm {
            Operand::Reg(r) => return self.u8(0xC0 | reg | (r & 7)),
            Operand::Mem(Address::Pool(entry)) => {
                self.u8(reg | 5);
                self.constants.push((self.bytes.len(), entry, after));
                return self.u32(0);
            }
            Operand::Mem(Address::At { base, index, disp }) => (base, index, disp),
        };
        let short = i8::try_from(disp / scale).ok().filter(|_| disp % scale == 0);
        let mode = match short {
            // A base of rbp or r13 with no displacement would mean something else.
            Some(0) if base & 7 != 5 => 0,
            Some(_) => 0x40,
            None => 0x80,
        };
        match index {
            None if base & 7 != RSP => self.u8(mode | reg | (base & 7)),
            None => {
                self.u8(mode | reg | 4);
                self.u8(0x20 | (base & 7));
            }
            Some((index, scale)) => {
                self.u8(mode | reg | 4);
                self.u8(scale << 6 | (index & 7) << 3 | (base & 7));
            }
        }
        match (mode, short) {
            (0x40, Some(d)) => self.u8(d as u8),
            (0x80, _) => self.u32(disp as u32),
            _ => {}
        }
    }

    /// The bits 3 and 4 of the registers of an operand: X and B as in EVEX for a register, in memory index and base.
    fn high(rm: Operand) -> (u8, u8) {
        match rm {
            Operand::Reg(r) => (r >> 4 & 1, r >> 3 & 1),
            Operand::Mem(Address::At { base, index, .. }) => (index.map_or(0, |(i, _)| i >> 3 & 1), base >> 3 & 1),
            Operand::Mem(Address::Pool(_)) => (0, 0),
        }
    }

    /// An EVEX instruction. `mask` is a register and whether other lanes become zero. `vsib`: the index is a vector.
    #[allow(clippy::too_many_arguments)]
    pub fn evex(
        &mut self,
        enc: Enc,
        len: Len,
        reg: u8,
        vvvv: Option<u8>,
        rm: Operand,
        imm: Option<u8>,
        mask: Option<(u8, bool)>,
        vsib: bool,
    ) {
        let v = vvvv.unwrap_or(NONE);
        let (x, b) = Self::high(rm);
        let v_high = match rm {
            Operand::Mem(Address::At { index: Some((i, _)), .. }) if vsib => i >> 4 & 1,
            _ => v >> 4 & 1,
        };
        let (aaa, z) = mask.map_or((0, 0), |(k, z)| (k, u8::from(z)));
        self.u8(0x62);
        self.u8((!(reg >> 3) & 1) << 7 | (x ^ 1) << 6 | (b ^ 1) << 5 | (!(reg >> 4) & 1) << 4 | enc.map);
        self.u8(u8::from(enc.w) << 7 | (!v & 15) << 3 | 4 | enc.pp);
        self.u8(z << 7 | len.bits() << 5 | (v_high ^ 1) << 3 | aaa);
        self.u8(enc.op);
        let scale = match enc.scale {
            Scale::Full => i32::from(len.0),
            Scale::Half => i32::from(len.0) / 2,
            Scale::Quarter => i32::from(len.0) / 4,
            Scale::Bytes(n) => i32::from(n),
        };
        self.modrm(reg, rm, scale, u8::from(imm.is_some()));
        imm.into_iter().for_each(|i| self.u8(i));
    }

    /// A VEX instruction.
    pub fn vex(&mut self, enc: Enc, long: bool, reg: u8, vvvv: Option<u8>, rm: Operand, imm: Option<u8>) {
        let v = vvvv.unwrap_or(NONE);
        let (x, b) = match rm {
            Operand::Reg(r) => (0, r >> 3 & 1),
            rm => Self::high(rm),
        };
        let end = (!v & 15) << 3 | u8::from(long) << 2 | enc.pp;
        let r = (!(reg >> 3) & 1) << 7;
        if enc.map == 1 && !enc.vex_w && x == 0 && b == 0 {
            self.u8(0xC5);
            self.u8(r | end);
        } else {
            self.u8(0xC4);
            self.u8(r | (x ^ 1) << 6 | (b ^ 1) << 5 | enc.map);
            self.u8(u8::from(enc.vex_w) << 7 | end);
        }
        self.u8(enc.op);
        self.modrm(reg, rm, 1, u8::from(imm.is_some()));
        imm.into_iter().for_each(|i| self.u8(i));
    }

    /// An instruction on general registers: prefixes, REX, opcode bytes, operands, immediate.
    pub fn plain(&mut self, wide: bool, prefix: Option<u8>, op: &[u8], reg: u8, rm: Operand, imm: &[u8]) {
        prefix.into_iter().for_each(|p| self.u8(p));
        let (x, b) = match rm {
            Operand::Reg(r) => (0, r >> 3 & 1),
            rm => Self::high(rm),
        };
        // A REX is always there: without one, byte registers 4 to 7 would be others.
        self.u8(0x40 | u8::from(wide) << 3 | (reg >> 3 & 1) << 2 | x << 1 | b);
        self.bytes.extend_from_slice(op);
        self.modrm(reg, rm, 1, imm.len() as u8);
        self.bytes.extend_from_slice(imm);
    }

    /// A 64-bit constant in a general register.
    pub fn constant(&mut self, reg: u8, v: i64) {
        if v == 0 {
            self.plain(false, None, &[0x31], reg, Operand::Reg(reg), &[]);
        } else if let Ok(v) = u32::try_from(v) {
            self.u8(0x40 | reg >> 3);
            self.u8(0xB8 | (reg & 7));
            self.u32(v);
        } else if let Ok(v) = i32::try_from(v) {
            self.plain(true, None, &[0xC7], 0, Operand::Reg(reg), &v.to_le_bytes());
        } else {
            self.u8(0x48 | reg >> 3);
            self.u8(0xB8 | (reg & 7));
            self.bytes.extend_from_slice(&v.to_le_bytes());
        }
    }

    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Room for labels that have numbers already.
    pub fn reserve(&mut self, labels: usize) {
        self.labels.resize(labels, u32::MAX);
    }

    /// One more label.
    pub fn label(&mut self) -> Label {
        self.labels.push(u32::MAX);
        Label(self.labels.len() as u32 - 1)
    }

    /// Places a label here.
    pub fn place(&mut self, label: Label) {
        self.labels[label.0 as usize] = self.bytes.len() as u32;
    }

    /// Instructions that do nothing, up to a multiple of `to` bytes.
    pub fn align(&mut self, to: usize) {
        const NOPS: [&[u8]; 9] = [
            &[0x90],
            &[0x66, 0x90],
            &[0x0F, 0x1F, 0x00],
            &[0x0F, 0x1F, 0x40, 0x00],
            &[0x0F, 0x1F, 0x44, 0x00, 0x00],
            &[0x66, 0x0F, 0x1F, 0x44, 0x00, 0x00],
            &[0x0F, 0x1F, 0x80, 0x00, 0x00, 0x00, 0x00],
            &[0x0F, 0x1F, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
            &[0x66, 0x0F, 0x1F, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
        ];
        let mut left = self.bytes.len().next_multiple_of(to) - self.bytes.len();
        while left > 0 {
            let n = left.min(NOPS.len());
            self.raw(NOPS[n - 1]);
            left -= n;
        }
    }

    /// A jump.
    pub fn jump(&mut self, to: Label) {
        self.u8(0xE9);
        self.jumps.push((self.bytes.len(), to));
        self.u32(0);
    }

    /// A conditional jump.
    pub fn branch(&mut self, cond: Cond, to: Label) {
        self.raw(&[0x0F, 0x80 | cond as u8]);
        self.jumps.push((self.bytes.len(), to));
        self.u32(0);
    }

    /// Four bytes that will hold the distance to another function.
    pub fn reference(&mut self, to: Symbol) {
        self.references.push((self.bytes.len(), to));
        self.u32(0);
    }

    /// The bytes, with the constants behind the code, each of `size` bytes.
    pub fn finish(mut self, pool: &[Vec<u8>], size: usize) -> Bytes {
        for (at, label) in &self.jumps {
            let distance = self.labels[label.0 as usize].wrapping_sub(*at as u32 + 4);
            self.bytes[*at..at + 4].copy_from_slice(&distance.to_le_bytes());
        }
        if !pool.is_empty() {
            let start = self.bytes.len().next_multiple_of(64);
            self.bytes.resize(start, 0xCC);
            for (at, entry, after) in &self.constants {
                let distance = start + *entry as usize * size - (at + 4 + usize::from(*after));
                self.bytes[*at..at + 4].copy_from_slice(&(distance as u32).to_le_bytes());
            }
            for entry in pool {
                let from = self.bytes.len();
                self.bytes.extend_from_slice(entry);
                self.bytes.resize(from + size, 0);
            }
        }
        Bytes { code: self.bytes, frame: 0, references: self.references }
    }
}

//! Machine instructions before registers are chosen: virtual registers in any number, structured loops.

use super::encode::{Cond, Enc, Label, Len, Symbol};

/// A virtual register. One may be written several times (what goes around a loop is).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct Reg(pub u32);

/// The register files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// 64-bit integers and addresses; uniform bools as 0 or -1.
    General,
    /// Vectors.
    Vector,
    /// One bit for each lane (AVX-512 only).
    Mask,
}

/// What is known of a virtual register.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Its file.
    pub class: Class,
    /// It holds this constant: there is no need to keep it anywhere.
    pub constant: Option<u32>,
    /// As a mask in a vector (AVX2): bytes of a lane.
    pub lane: u8,
}

/// Where an address starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// At an address.
    Reg(Reg),
    /// In the frame, so many bytes into the room for arrays.
    Frame,
}

/// base + index·2^scale + disp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mem {
    pub base: Base,
    pub index: Option<(Reg, u8)>,
    pub disp: i32,
}

impl Mem {
    /// A place at an address.
    pub fn at(base: Reg, disp: i32) -> Mem {
        Mem { base: Base::Reg(base), index: None, disp }
    }

    /// A place in the frame.
    pub fn frame(disp: i32) -> Mem {
        Mem { base: Base::Frame, index: None, disp }
    }

    /// The place some bytes further.
    pub fn plus(self, bytes: i32) -> Mem {
        Mem { disp: self.disp + bytes, ..self }
    }
}

/// The last operand of a vector instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rm {
    Reg(Reg),
    Mem(Mem),
    /// A constant.
    Pool(u32),
}

impl From<Reg> for Rm {
    fn from(r: Reg) -> Rm {
        Rm::Reg(r)
    }
}

/// The last operand of a general instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ri {
    Reg(Reg),
    Imm(i32),
}

impl From<Reg> for Ri {
    fn from(r: Reg) -> Ri {
        Ri::Reg(r)
    }
}

/// Two-operand arithmetic on general registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alu {
    Add,
    Sub,
    And,
    Or,
    Xor,
    Mul,
}

/// Shifts of general registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shift {
    Left,
    Right,
    RightSigned,
}

/// One-operand arithmetic on general registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unary {
    Neg,
    Not,
    /// From the low 32 bits, with their sign.
    Signed32,
    /// From the low 32 bits.
    Unsigned32,
    Popcount,
    LeadingZeros,
}

/// How much of a general register goes to memory or comes from it (with zeros above).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    Byte,
    Word,
    Double,
    Quad,
}

/// A comparison of general registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Test {
    pub cond: Cond,
    pub a: Reg,
    pub b: Ri,
}

/// One instruction, or a few that belong together. Results are written after all operands are read, unless it says otherwise.
#[derive(Clone, Debug)]
pub enum Inst {
    /// The arguments of the function.
    Entry {
        context: Reg,
        env: Reg,
        lo: Reg,
        hi: Reg,
    },
    /// A vector instruction to a vector or a mask. Under a mask the other lanes become zero, or keep what the result
    /// held before.
    Vec {
        enc: Enc,
        len: Len,
        dst: Reg,
        a: Option<Reg>,
        b: Rm,
        imm: Option<u8>,
        mask: Option<(Reg, bool)>,
    },
    /// a·b + c
    Fma {
        double: bool,
        len: Len,
        dst: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    /// Lanes of two registers by indices: those of the second count on from those of the first. AVX-512. The result is written first.
    Pick {
        double: bool,
        len: Len,
        dst: Reg,
        index: Reg,
        a: Reg,
        b: Reg,
    },
    /// Lanes of `yes` where the mask (of either kind) is set, else of `no`.
    Blend {
        wide: bool,
        len: Len,
        dst: Reg,
        mask: Reg,
        yes: Reg,
        no: Reg,
    },
    /// A copy between registers of one file.
    Copy {
        dst: Reg,
        src: Reg,
    },
    StoreVec {
        enc: Enc,
        len: Len,
        src: Reg,
        to: Mem,
        mask: Option<Reg>,
    },
    /// Lanes at base + index·2^scale. `mask` None: all. `spare` is written (AVX2: the mask that is used up).
    Gather {
        enc: Enc,
        len: Len,
        dst: Reg,
        from: Mem,
        index: Reg,
        scale: u8,
        mask: Option<Reg>,
        spare: Option<Reg>,
    },
    Scatter {
        enc: Enc,
        len: Len,
        src: Reg,
        to: Mem,
        index: Reg,
        scale: u8,
        mask: Option<Reg>,
    },
    /// From a general register to a vector. `merged`: the instruction takes the lanes above from an operand, here zero.
    ToVec {
        enc: Enc,
        len: Len,
        dst: Reg,
        src: Reg,
        merged: bool,
    },
    /// From a vector to a general register.
    FromVec {
        enc: Enc,
        dst: Reg,
        src: Reg,
    },
    /// A mask register operation of one or two operands.
    Mask {
        enc: Enc,
        dst: Reg,
        a: Reg,
        b: Option<Reg>,
    },
    MaskFrom {
        dst: Reg,
        src: Reg,
    },
    MaskTo {
        dst: Reg,
        src: Reg,
    },
    Const {
        dst: Reg,
        value: i64,
    },
    Alu {
        op: Alu,
        dst: Reg,
        a: Reg,
        b: Ri,
    },
    /// By a constant below 64.
    ShiftBy {
        op: Shift,
        dst: Reg,
        a: Reg,
        by: u8,
    },
    /// By a value, with the meaning of the kernel language.
    ShiftAny {
        op: Shift,
        dst: Reg,
        a: Reg,
        by: Reg,
    },
    Unary {
        op: Unary,
        dst: Reg,
        a: Reg,
    },
    /// Division with the meaning of the kernel language.
    Divide {
        dst: Reg,
        a: Reg,
        b: Reg,
        signed: bool,
        rest: bool,
    },
    /// The low `count` bits set.
    LowBits {
        dst: Reg,
        count: Reg,
    },
    Lea {
        dst: Reg,
        from: Mem,
    },
    Load {
        size: Size,
        dst: Reg,
        from: Mem,
    },
    Store {
        size: Size,
        src: Reg,
        to: Mem,
    },
    /// Adds to a number in memory.
    Increment {
        size: Size,
        to: Mem,
        by: Ri,
    },
    /// Says that this line will be written: it is fetched meanwhile. Never a fault, wherever it is.
    Announce {
        at: Mem,
    },
    /// Writes the low bytes of a register, 4 or 8 of them, so many times, one after the other.
    Fill {
        double: bool,
        to: Mem,
        bits: Reg,
        count: Reg,
    },
    /// 0 or -1.
    Set {
        dst: Reg,
        test: Test,
    },
    Choose {
        dst: Reg,
        test: Test,
        yes: Reg,
        no: Reg,
    },
    Label(Label),
    Branch(Test, Label),
    Jump(Label),
    /// The head of a loop, where its last instruction jumps to.
    LoopStart(Label),
    /// The last instruction of a loop. None: it always goes on, and something inside jumps out.
    LoopEnd(Option<Test>, Label),
    /// Another function runs; what it is given and gives is at the start of the frame. Only those general registers outlive it that functions give back.
    Run {
        callee: Callee,
        context: Reg,
        /// How often the loop of a kernel that threads may share runs.
        count: Option<Ri>,
        /// Where to go if it fails.
        fails: Option<Label>,
    },
    /// A function of compiled Rust for `count` lanes. With a guard it is not called if no lane of the mask is set, and
    /// then the result is anything.
    Call {
        /// Where the context has it.
        field: i32,
        parameter: u64,
        double: bool,
        len: Len,
        count: u8,
        dst: Reg,
        a: Reg,
        b: Reg,
        guard: Option<Reg>,
    },
}

/// A function that a main body runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Callee {
    /// A function of the same module.
    Inside(Symbol),
    /// A kernel, by whoever shares it between threads.
    Shared(u32),
    /// An entry of the library.
    Library(u32),
}

/// What an instruction does with a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Reads it.
    Use,
    /// Writes it after all operands are read.
    Def,
    /// Writes it before that.
    Early,
}

impl Mem {
    fn visit(&self, f: &mut impl FnMut(Reg, Role)) {
        if let Base::Reg(r) = self.base {
            f(r, Role::Use);
        }
        if let Some((r, _)) = self.index {
            f(r, Role::Use);
        }
    }
}

impl Test {
    fn visit(&self, f: &mut impl FnMut(Reg, Role)) {
        f(self.a, Role::Use);
        if let Ri::Reg(r) = self.b {
            f(r, Role::Use);
        }
    }
}

impl Inst {
    /// All registers, operands before results.
    pub fn visit(&self, f: &mut impl FnMut(Reg, Role)) {
        use Role::{Def, Early, Use};
        let all = |f: &mut dyn FnMut(Reg, Role), regs: &[Reg]| regs.iter().for_each(|r| f(*r, Use));
        match self {
            Inst::Entry { context, env, lo, hi } => [context, env, lo, hi].into_iter().for_each(|r| f(*r, Def)),
            Inst::Vec { dst, a, b, mask, .. } => {
                a.iter().for_each(|r| f(*r, Use));
                match b {
                    Rm::Reg(r) => f(*r, Use),
                    Rm::Mem(m) => m.visit(f),
                    Rm::Pool(_) => {}
                }
                if let Some((k, zero)) = mask {
                    f(*k, Use);
                    if !zero {
                        f(*dst, Use);
                    }
                }
                f(*dst, Def);
            }
            Inst::Fma { dst, a, b, c, .. } => {
                all(f, &[*c, *a, *b]);
                f(*dst, Def);
            }
            Inst::Pick { dst, index, a, b, .. } => {
                all(f, &[*a, *index, *b]);
                f(*dst, Early);
            }
            Inst::Blend { dst, mask, yes, no, .. } => {
                all(f, &[*mask, *yes, *no]);
                f(*dst, Def);
            }
            Inst::Copy { dst, src }
            | Inst::ToVec { dst, src, .. }
            | Inst::FromVec { dst, src, .. }
            | Inst::MaskFrom { dst, src }
            | Inst::MaskTo { dst, src } => {
                f(*src, Use);
                f(*dst, Def);
            }
            Inst::StoreVec { src, to, mask, .. } => {
                f(*src, Use);
                to.visit(f);
                mask.iter().for_each(|r| f(*r, Use));
            }
            Inst::Gather { dst, from, index, mask, spare, .. } => {
                from.visit(f);
                f(*index, Use);
                mask.iter().for_each(|r| f(*r, Use));
                spare.iter().for_each(|r| f(*r, Early));
                f(*dst, Early);
            }
            Inst::Scatter { src, to, index, mask, .. } => {
                to.visit(f);
                all(f, &[*src, *index]);
                mask.iter().for_each(|r| f(*r, Use));
            }
            Inst::Mask { dst, a, b, .. } => {
                f(*a, Use);
                b.iter().for_each(|r| f(*r, Use));
                f(*dst, Def);
            }
            Inst::Const { dst, .. } => f(*dst, Def),
            Inst::Alu { dst, a, b, .. } => {
                f(*a, Use);
                if let Ri::Reg(r) = b {
                    f(*r, Use);
                }
                f(*dst, Def);
            }
            Inst::ShiftBy { dst, a, .. } | Inst::Unary { dst, a, .. } => {
                f(*a, Use);
                f(*dst, Def);
            }
            Inst::ShiftAny { dst, a, by: b, .. } | Inst::Divide { dst, a, b, .. } => {
                all(f, &[*a, *b]);
                f(*dst, Def);
            }
            Inst::LowBits { dst, count } => {
                f(*count, Use);
                f(*dst, Def);
            }
            Inst::Lea { dst, from } | Inst::Load { dst, from, .. } => {
                from.visit(f);
                f(*dst, Def);
            }
            Inst::Announce { at } => at.visit(f),
            Inst::Increment { to, by, .. } => {
                if let Ri::Reg(r) = by {
                    f(*r, Use);
                }
                to.visit(f);
            }
            Inst::Fill { to, bits, count, .. } => {
                to.visit(f);
                all(f, &[*bits, *count]);
            }
            Inst::Store { src, to, .. } => {
                f(*src, Use);
                to.visit(f);
            }
            Inst::Set { dst, test } => {
                test.visit(f);
                f(*dst, Def);
            }
            Inst::Choose { dst, test, yes, no } => {
                test.visit(f);
                all(f, &[*yes, *no]);
                f(*dst, Def);
            }
            Inst::Label(_) | Inst::LoopStart(_) | Inst::Jump(_) | Inst::LoopEnd(None, _) => {}
            Inst::Branch(test, _) | Inst::LoopEnd(Some(test), _) => test.visit(f),
            Inst::Run { context, count, .. } => {
                f(*context, Use);
                if let Some(Ri::Reg(r)) = count {
                    f(*r, Use);
                }
            }
            Inst::Call { dst, a, b, guard, .. } => {
                all(f, &[*a, *b]);
                guard.iter().for_each(|r| f(*r, Use));
                f(*dst, Def);
            }
        }
    }
}

/// A function of virtual registers.
#[derive(Default)]
pub struct Function {
    /// What it does.
    pub code: Vec<Inst>,
    /// Its registers.
    pub regs: Vec<Info>,
    /// Its constants.
    pub pool: Vec<Vec<u8>>,
    /// Bytes of a constant.
    pub entry: usize,
    /// How many labels there are.
    pub labels: u32,
    /// Bytes of the room for arrays in the frame.
    pub room: u32,
    /// Where a main body that failed ends, with its status; one that did not gives 0.
    pub exit: Option<Label>,
}

impl Function {
    /// Leaves out what nothing uses: a bool that is only wanted as a mask, an address that another way made needless.
    pub fn drop_unused(&mut self) {
        let mut uses = vec![0u32; self.regs.len()];
        let count = |inst: &Inst, uses: &mut Vec<u32>, by: i32| {
            inst.visit(&mut |r, role| {
                if role == Role::Use {
                    let n = &mut uses[r.0 as usize];
                    *n = n.wrapping_add_signed(by);
                }
            });
        };
        self.code.iter().for_each(|inst| count(inst, &mut uses, 1));
        let mut keep = vec![true; self.code.len()];
        for (keep, inst) in keep.iter_mut().zip(&self.code).rev() {
            if inst.result().is_some_and(|r| uses[r.0 as usize] == 0) {
                *keep = false;
                count(inst, &mut uses, -1);
            }
        }
        let mut keep = keep.into_iter();
        self.code.retain(|_| keep.next().unwrap_or(true));
    }
}

impl Inst {
    /// The one thing that it does is to make this.
    fn result(&self) -> Option<Reg> {
        match self {
            Inst::Vec { dst, .. }
            | Inst::Fma { dst, .. }
            | Inst::Pick { dst, .. }
            | Inst::Blend { dst, .. }
            | Inst::Copy { dst, .. }
            | Inst::ToVec { dst, .. }
            | Inst::FromVec { dst, .. }
            | Inst::Mask { dst, .. }
            | Inst::MaskFrom { dst, .. }
            | Inst::MaskTo { dst, .. }
            | Inst::Const { dst, .. }
            | Inst::Alu { dst, .. }
            | Inst::ShiftBy { dst, .. }
            | Inst::ShiftAny { dst, .. }
            | Inst::Unary { dst, .. }
            | Inst::Divide { dst, .. }
            | Inst::LowBits { dst, .. }
            | Inst::Lea { dst, .. }
            | Inst::Load { dst, .. }
            | Inst::Set { dst, .. }
            | Inst::Choose { dst, .. } => Some(*dst),
            Inst::Entry { .. } | Inst::StoreVec { .. } | Inst::Gather { .. } | Inst::Scatter { .. } => None,
            Inst::Store { .. } | Inst::Increment { .. } | Inst::Fill { .. } | Inst::Announce { .. } => None,
            Inst::Label(_) | Inst::Branch(..) | Inst::Jump(_) => None,
            Inst::LoopStart(_) | Inst::LoopEnd(..) | Inst::Run { .. } | Inst::Call { .. } => None,
        }
    }
}

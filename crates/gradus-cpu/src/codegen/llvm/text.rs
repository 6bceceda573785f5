//! Pieces of LLVM's textual language: operands, types, and a text that is written in several places at once.

use std::fmt::{self, Display, Formatter, Write};

use crate::ir::Ty;

/// What an instruction takes: a constant or the name of something computed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Operand {
    /// Not yet defined.
    None,
    /// A scalar constant by its bits.
    Literal(Ty, u64),
    /// A vector of zeros.
    Zero,
    /// `%t` and a number.
    Name(u32),
}

/// Integer constants of addresses and counts.
pub(super) fn int(v: i64) -> Operand {
    Operand::Literal(Ty::I64, v as u64)
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            // Only a module that was not verified comes here, and LLVM's parser says so.
            Operand::None => f.write_str("<undefined>"),
            Operand::Zero => f.write_str("zeroinitializer"),
            Operand::Name(n) => write!(f, "%t{n}"),
            Operand::Literal(ty, bits) => match ty {
                Ty::Bool => write!(f, "{}", bits != 0),
                Ty::I8 | Ty::U8 => write!(f, "{}", bits as i8),
                Ty::I16 | Ty::U16 => write!(f, "{}", bits as i16),
                Ty::I32 | Ty::U32 => write!(f, "{}", bits as i32),
                Ty::I64 | Ty::U64 => write!(f, "{}", bits as i64),
                // LLVM writes a float by the bits of the same number as a double. Those of a NaN would not survive that.
                Ty::F32 if f32::from_bits(bits as u32).is_nan() => write!(f, "bitcast (i32 {} to float)", bits as i32),
                Ty::F32 => write!(f, "0x{:016X}", f64::from(f32::from_bits(bits as u32)).to_bits()),
                Ty::F64 => write!(f, "0x{bits:016X}"),
            },
        }
    }
}

/// A type of a register: a scalar, or a vector if there are lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    pub(super) ty: Ty,
    /// 1: a scalar.
    pub(super) lanes: u32,
}

impl Shape {
    pub(super) fn with(self, ty: Ty) -> Shape {
        Shape { ty, ..self }
    }
}

/// The name of a scalar type in registers.
pub(super) fn scalar_name(ty: Ty) -> &'static str {
    match ty {
        Ty::Bool => "i1",
        Ty::I8 | Ty::U8 => "i8",
        Ty::I16 | Ty::U16 => "i16",
        Ty::I32 | Ty::U32 => "i32",
        Ty::I64 | Ty::U64 => "i64",
        Ty::F32 => "float",
        Ty::F64 => "double",
    }
}

impl Display for Shape {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.lanes {
            1 => f.write_str(scalar_name(self.ty)),
            n => write!(f, "<{n} x {}>", scalar_name(self.ty)),
        }
    }
}

/// A type as names of intrinsics end with it: `v16f32`.
pub(super) struct Suffix(pub(super) Shape);

impl Display for Suffix {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.lanes > 1 {
            write!(f, "v{}", self.0.lanes)?;
        }
        f.write_str(match self.0.ty {
            Ty::F32 => "f32",
            Ty::F64 => "f64",
            ty => scalar_name(ty),
        })
    }
}

/// The type an element has in memory: a bool is a byte.
pub(super) fn stored(ty: Ty) -> Ty {
    if ty == Ty::Bool { Ty::U8 } else { ty }
}

/// A text with holes that are filled later: what stands at the head of a loop is known only at its end.
#[derive(Default)]
pub(super) struct Text {
    parts: Vec<String>,
    /// Which part is written to.
    cursor: usize,
}

/// A place in a [`Text`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Hole(usize);

impl Text {
    pub(super) fn new() -> Text {
        Text { parts: vec![String::new()], cursor: 0 }
    }

    /// Leaves a hole here and goes on behind it.
    pub(super) fn hole(&mut self) -> Hole {
        debug_assert_eq!(self.cursor, self.parts.len() - 1, "a hole in a hole");
        self.parts.extend([String::new(), String::new()]);
        self.cursor = self.parts.len() - 1;
        Hole(self.parts.len() - 2)
    }

    /// Writes into a hole until [`Text::back`].
    pub(super) fn go(&mut self, hole: Hole) -> Hole {
        Hole(std::mem::replace(&mut self.cursor, hole.0))
    }

    /// Goes back to where [`Text::go`] was called.
    pub(super) fn back(&mut self, to: Hole) {
        self.cursor = to.0;
    }

    /// One line of a block.
    pub(super) fn line(&mut self, line: fmt::Arguments<'_>) {
        let out = &mut self.parts[self.cursor];
        // Writing to a string does not fail.
        let _ = out.write_fmt(line);
        out.push('\n');
    }

    /// The whole text at the end of another.
    pub(super) fn append_to(&self, out: &mut String) {
        self.parts.iter().for_each(|p| out.push_str(p));
    }
}

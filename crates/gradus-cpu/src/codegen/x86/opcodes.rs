//! The vector instructions in use, by the fixed parts of their encodings.

use super::encode::{Enc, Form, Scale};

const fn enc(map: u8, pp: u8, w: bool, op: u8) -> Enc {
    Enc { map, pp, w, vex_w: false, op, form: Form::Rvm, scale: Scale::Full, vex_only: false }
}

impl Enc {
    /// With a W in the VEX form, too.
    const fn vw(self) -> Enc {
        Enc { vex_w: self.w, ..self }
    }

    const fn half(self) -> Enc {
        Enc { scale: Scale::Half, ..self }
    }

    const fn bytes(self, n: u8) -> Enc {
        Enc { scale: Scale::Bytes(n), ..self }
    }

    const fn mr(self) -> Enc {
        Enc { form: Form::Mr, ..self }
    }

    const fn ext(self, ext: u8) -> Enc {
        Enc { form: Form::Ext(ext), ..self }
    }

    const fn vex(self) -> Enc {
        Enc { vex_only: true, ..self }
    }
}

/// An operation on floats: single (no prefix, W 0) and double (66, W 1) share the opcode.
const fn float(double: bool, op: u8) -> Enc {
    enc(1, double as u8, double, op)
}

/// 66 0F38 with W for double or 64-bit.
const fn w38(wide: bool, op: u8) -> Enc {
    enc(2, 1, wide, op)
}

/// 66 0F3A with W for double or 64-bit.
const fn w3a(wide: bool, op: u8) -> Enc {
    enc(3, 1, wide, op)
}

/// 66 0F with the opcodes of the 32-bit and the 64-bit form.
const fn int(wide: bool, d: u8, q: u8) -> Enc {
    enc(1, 1, wide, if wide { q } else { d })
}

macro_rules! table {
    ($($(#[$doc:meta])* $name:ident ($wide:ident) = $e:expr;)*) => {
        $($(#[$doc])* pub const fn $name($wide: bool) -> Enc { $e })*
    };
}

table! {
    add(d) = float(d, 0x58);
    mul(d) = float(d, 0x59);
    sub(d) = float(d, 0x5C);
    div(d) = float(d, 0x5E);
    min(d) = float(d, 0x5D);
    max(d) = float(d, 0x5F);
    sqrt(d) = float(d, 0x51);
    and(d) = float(d, 0x54);
    or(d) = float(d, 0x56);
    xor(d) = float(d, 0x57);
    /// To a mask register; in the VEX form to a vector.
    compare(d) = float(d, 0xC2);
    /// The whole register; the type matters only under a mask.
    load(d) = float(d, 0x10);
    store(d) = float(d, 0x11).mr();
    load_one(d) = enc(1, if d { 3 } else { 2 }, d, 0x10).bytes(if d { 8 } else { 4 });
    store_one(d) = enc(1, if d { 3 } else { 2 }, d, 0x11).bytes(if d { 8 } else { 4 }).mr();
    /// The lower elements of each 128 bits of two registers, by turns; and the upper ones.
    unpack_lower(d) = float(d, 0x14);
    unpack_upper(d) = float(d, 0x15);
    round(d) = w3a(d, if d { 0x09 } else { 0x08 });
    range(d) = w3a(d, 0x50);
    fma132(d) = w38(d, 0x98).vw();
    fma213(d) = w38(d, 0xA8).vw();
    fma231(d) = w38(d, 0xB8).vw();
    blend_mask(d) = w38(d, 0x65);
    blend_vector(d) = w3a(false, if d { 0x4B } else { 0x4A }).vex();
    mask_load(d) = w38(false, if d { 0x2D } else { 0x2C }).vex();
    mask_store(d) = w38(false, if d { 0x2F } else { 0x2E }).vex();

    int_add(q) = int(q, 0xFE, 0xD4);
    int_sub(q) = int(q, 0xFA, 0xFB);
    int_mul(q) = w38(q, 0x40);
    int_and(q) = int(q, 0xDB, 0xDB);
    int_and_not(q) = int(q, 0xDF, 0xDF);
    int_or(q) = int(q, 0xEB, 0xEB);
    int_xor(q) = int(q, 0xEF, 0xEF);
    int_abs(q) = w38(q, if q { 0x1F } else { 0x1E });
    int_max(q) = w38(q, 0x3D);
    int_max_unsigned(q) = w38(q, 0x3F);
    int_min(q) = w38(q, 0x39);
    int_min_unsigned(q) = w38(q, 0x3B);
    shl_imm(q) = int(q, 0x72, 0x73).ext(6);
    shr_imm(q) = int(q, 0x72, 0x73).ext(2);
    sar_imm(q) = int(q, 0x72, 0x72).ext(4);
    /// A turn of the bits; AVX-512 alone has it.
    rotl_imm(q) = int(q, 0x72, 0x72).ext(1);
    shl(q) = w38(q, 0x47).vw();
    shr(q) = w38(q, 0x45).vw();
    sar(q) = w38(q, 0x46).vw();
    int_equal(q) = if q { w38(false, 0x29) } else { enc(1, 1, false, 0x76) };
    int_greater(q) = if q { w38(false, 0x37) } else { enc(1, 1, false, 0x66) };
    /// To a mask register, by the condition of the immediate.
    int_compare(q) = w3a(q, 0x1F);
    int_compare_unsigned(q) = w3a(q, 0x1E);

    broadcast(q) = w38(q, if q { 0x59 } else { 0x58 }).bytes(if q { 8 } else { 4 });
    broadcast_general(q) = w38(q, 0x7C);
    /// A general register to the low lane.
    from_general(q) = enc(1, 1, q, 0x6E).vw();
    /// The low lane to a general register.
    to_general(q) = enc(1, 1, q, 0x7E).vw().mr();

    gather_narrow(d) = w38(d, 0x92).vw().bytes(if d { 8 } else { 4 });
    gather_wide(d) = w38(d, 0x93).vw().bytes(if d { 8 } else { 4 });
    scatter_narrow(d) = w38(d, 0xA2).bytes(if d { 8 } else { 4 });
    scatter_wide(d) = w38(d, 0xA3).bytes(if d { 8 } else { 4 });

    /// From a 64-bit integer in a general register.
    from_i64(d) = enc(1, if d { 3 } else { 2 }, true, 0x2A).vw();
    from_u64(d) = enc(1, if d { 3 } else { 2 }, true, 0x7B);
    to_i64(d) = enc(1, if d { 3 } else { 2 }, true, 0x2C).vw();
    to_u64(d) = enc(1, if d { 3 } else { 2 }, true, 0x78);

    i32_to_float(d) = if d { enc(1, 2, false, 0xE6).half() } else { enc(1, 0, false, 0x5B) };
    u32_to_float(d) = if d { enc(1, 2, false, 0x7A).half() } else { enc(1, 3, false, 0x7A) };
    i64_to_float(d) = if d { enc(1, 2, true, 0xE6) } else { enc(1, 0, true, 0x5B) };
    u64_to_float(d) = if d { enc(1, 2, true, 0x7A) } else { enc(1, 3, true, 0x7A) };
    float_to_i32(d) = if d { enc(1, 1, true, 0xE6) } else { enc(1, 2, false, 0x5B) };
    float_to_u32(d) = enc(1, 0, d, 0x78);
    float_to_i64(d) = if d { enc(1, 1, true, 0x7A) } else { enc(1, 1, false, 0x7A).half() };
    float_to_u64(d) = if d { enc(1, 1, true, 0x78) } else { enc(1, 1, false, 0x78).half() };
}

/// f32 to f64.
pub const TO_DOUBLE: Enc = enc(1, 0, false, 0x5A).half();
/// f64 to f32.
pub const TO_SINGLE: Enc = enc(1, 1, true, 0x5A);
/// i32 to i64.
pub const EXTEND_SIGNED: Enc = w38(false, 0x25).half();
/// u32 to i64.
pub const EXTEND_ZERO: Enc = w38(false, 0x35).half();
/// The low halves of 64-bit integers.
pub const NARROW: Enc = enc(2, 2, false, 0x35).half().mr();
/// Bytes to i32.
pub const BYTES_TO_I32: Enc = w38(false, 0x31);
/// Bytes to i64.
pub const BYTES_TO_I64: Enc = w38(false, 0x32);
/// The upper 128 bits of 256.
pub const EXTRACT_128: Enc = w3a(false, 0x39).bytes(16).mr();
/// The upper 256 bits of 512.
pub const EXTRACT_256: Enc = w3a(true, 0x3B).bytes(32).mr();
/// 128 bits into a register of at least 256, at the place of the immediate.
pub const INSERT_128: Enc = w3a(false, 0x18).bytes(16);
/// 256 bits into a register of 512, at the place of the immediate.
pub const INSERT_256: Enc = w3a(true, 0x1A).bytes(32);
/// Blocks of 128 bits by an immediate, half of them of each operand: AVX-512 alone has it.
pub const BLOCKS: Enc = w3a(true, 0x23);
/// Any two blocks of 128 bits of two registers of 256.
pub const BLOCKS_OF_TWO: Enc = w3a(false, 0x06).vex();
/// 64 bits of memory to the upper half of 128.
pub const LOAD_UPPER: Enc = enc(1, 1, true, 0x16).bytes(8);
/// The upper half of 128 bits to memory.
pub const STORE_UPPER: Enc = enc(1, 1, true, 0x17).bytes(8).mr();
/// 32 bits of memory to the lane of 128 bits that the upper half of the immediate says.
pub const LOAD_LANE: Enc = w3a(false, 0x21).bytes(4);
/// 32-bit lanes by an immediate, within 128 bits.
pub const SHUFFLE: Enc = enc(1, 1, false, 0x70);
/// 32-bit lanes of two registers by an immediate, within 128 bits.
pub const SHUFFLE_TWO: Enc = enc(1, 0, false, 0xC6);
/// 32-bit lanes by the indices of the first operand.
pub const PERMUTE: Enc = w38(false, 0x16);
/// 64-bit lanes by the indices of the first operand, of at least 256 bits.
pub const PERMUTE_WIDE: Enc = w38(true, 0x16);
/// 64-bit lanes by an immediate, within 256 bits.
pub const PERMUTE_FOUR: Enc = w3a(true, 0x01).vw();
/// Lanes of the result as it was and of the last operand, by the indices of the first.
pub const fn pick(double: bool) -> Enc {
    w38(double, 0x7F)
}

/// Products of the low halves of 64-bit lanes.
pub const MUL_HALVES: Enc = enc(1, 1, true, 0xF4);
/// Bytes that are not zero, as a mask.
pub const TEST_BYTES: Enc = w38(false, 0x26);
/// Bytes under a mask.
pub const LOAD_BYTES: Enc = enc(1, 3, false, 0x6F);
/// Bytes under a mask.
pub const STORE_BYTES: Enc = enc(1, 3, false, 0x7F).mr();
/// Bytes or words to 32-bit lanes.
pub const fn widen(words: bool, signed: bool) -> Enc {
    let e = w38(false, 0x21 + 2 * words as u8 + if signed { 0 } else { 0x10 });
    Enc { scale: if words { Scale::Half } else { Scale::Quarter }, ..e }
}

/// The low bits of 32-bit lanes as bytes or words.
pub const fn shorten(words: bool) -> Enc {
    let e = enc(2, 2, false, 0x31 + 2 * words as u8).mr();
    Enc { scale: if words { Scale::Half } else { Scale::Quarter }, ..e }
}

/// 32-bit lanes to unsigned 16-bit ones, saturating: two registers.
pub const PACK_U32: Enc = w38(false, 0x2B);
/// 16-bit lanes to unsigned bytes, saturating: two registers.
pub const PACK_U16: Enc = enc(1, 1, false, 0x67);
/// 32-bit lanes to 16-bit ones, saturating: two registers.
pub const PACK_I32: Enc = enc(1, 1, false, 0x6B);
/// 16-bit lanes to bytes, saturating: two registers.
pub const PACK_I16: Enc = enc(1, 1, false, 0x63);
/// Sets the zero flag if a vector is zero.
pub const TEST: Enc = w38(false, 0x17).vex();

const fn mask(op: u8) -> Enc {
    enc(1, 0, false, op).vex()
}

/// 16 bits from a mask register or memory.
pub const MASK_LOAD: Enc = mask(0x90);
/// 16 bits to memory.
pub const MASK_STORE: Enc = mask(0x91);
/// From a general register.
pub const MASK_FROM_GENERAL: Enc = mask(0x92);
/// To a general register.
pub const MASK_TO_GENERAL: Enc = mask(0x93);
/// a & b
pub const MASK_AND: Enc = mask(0x41);
/// !a & b
pub const MASK_AND_NOT: Enc = mask(0x42);
/// a | b
pub const MASK_OR: Enc = mask(0x45);
/// !(a ^ b)
pub const MASK_EQUAL: Enc = mask(0x46);
/// a ^ b
pub const MASK_XOR: Enc = mask(0x47);
/// !a
pub const MASK_NOT: Enc = mask(0x44);
/// Sets the zero flag if a mask is empty, of 16 lanes or of 8.
pub const fn mask_test(eight: bool) -> Enc {
    enc(1, eight as u8, false, 0x98).vex()
}

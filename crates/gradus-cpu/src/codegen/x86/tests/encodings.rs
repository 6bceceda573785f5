//! Encodings against bytes of the GNU assembler: registers above 15, bases with forms of their own, scaled displacements.

use crate::codegen::x86::encode::{Address, Code, Len, Operand};
use crate::codegen::x86::opcodes as op;

const ZMM: Len = Len(64);
const YMM: Len = Len(32);
const XMM: Len = Len(16);

fn bytes(f: impl FnOnce(&mut Code)) -> Vec<u8> {
    let mut code = Code::default();
    f(&mut code);
    code.finish(&[], 64).code
}

fn at(base: u8, index: Option<(u8, u8)>, disp: i32) -> Operand {
    Operand::Mem(Address::At { base, index, disp })
}

#[test]
fn evex() {
    let evex = |enc, len, reg, v, rm, imm, mask, vsib| bytes(|c| c.evex(enc, len, reg, v, rm, imm, mask, vsib));
    let reg = Operand::Reg;
    // vaddps zmm31, zmm17, zmm9
    let code = evex(op::add(false), ZMM, 31, Some(17), reg(9), None, None, false);
    assert_eq!(code, [0x62, 0x41, 0x74, 0x40, 0x58, 0xf9]);
    // vaddpd ymm3{k2}{z}, ymm20, [rbp]
    let code = evex(op::add(true), YMM, 3, Some(20), at(5, None, 0), None, Some((2, true)), false);
    assert_eq!(code, [0x62, 0xf1, 0xdd, 0xa2, 0x58, 0x5d, 0x00]);
    // vmovups zmm16, [r13 + r12*8 + 64]
    let code = evex(op::load(false), ZMM, 16, None, at(13, Some((12, 3)), 64), None, None, false);
    assert_eq!(code, [0x62, 0x81, 0x7c, 0x48, 0x10, 0x44, 0xe5, 0x01]);
    // vmovups zmm16, [rsp + 4096]
    let code = evex(op::load(false), ZMM, 16, None, at(4, None, 4096), None, None, false);
    assert_eq!(code, [0x62, 0xe1, 0x7c, 0x48, 0x10, 0x44, 0x24, 0x40]);
    // vmovups zmm5, [r12 + 65]
    let code = evex(op::load(false), ZMM, 5, None, at(12, None, 65), None, None, false);
    assert_eq!(code, [0x62, 0xd1, 0x7c, 0x48, 0x10, 0xac, 0x24, 0x41, 0, 0, 0]);
    // vgatherqps ymm18{k7}, [r9 + zmm30*4 + 4]
    let code = evex(op::gather_wide(false), ZMM, 18, None, at(9, Some((30, 2)), 4), None, Some((7, false)), true);
    assert_eq!(code, [0x62, 0x82, 0x7d, 0x47, 0x93, 0x54, 0xb1, 0x01]);
    // vpslld zmm25, zmm10, 7
    let code = evex(op::shl_imm(false), ZMM, 6, Some(25), reg(10), Some(7), None, false);
    assert_eq!(code, [0x62, 0xd1, 0x35, 0x40, 0x72, 0xf2, 0x07]);
    // vprold zmm25, zmm10, 13
    let code = evex(op::rotl_imm(false), ZMM, 1, Some(25), reg(10), Some(13), None, false);
    assert_eq!(code, [0x62, 0xd1, 0x35, 0x40, 0x72, 0xca, 0x0d]);
    // vcmpltps k3, zmm28, zmm1
    let code = evex(op::compare(false), ZMM, 3, Some(28), reg(1), Some(17), None, false);
    assert_eq!(code, [0x62, 0xf1, 0x1c, 0x40, 0xc2, 0xd9, 0x11]);
    // vinsertf32x4 ymm31, ymm9, xmm17, 1
    let code = evex(op::INSERT_128, YMM, 31, Some(9), reg(17), Some(1), None, false);
    assert_eq!(code, [0x62, 0x23, 0x35, 0x28, 0x18, 0xf9, 0x01]);
    // vinsertf64x4 zmm3, zmm20, ymm2, 1
    let code = evex(op::INSERT_256, ZMM, 3, Some(20), reg(2), Some(1), None, false);
    assert_eq!(code, [0x62, 0xf3, 0xdd, 0x40, 0x1a, 0xda, 0x01]);
    // vmovhpd xmm4, xmm18, [r13 + 16]
    let code = evex(op::LOAD_UPPER, XMM, 4, Some(18), at(13, None, 16), None, None, false);
    assert_eq!(code, [0x62, 0xd1, 0xed, 0x00, 0x16, 0x65, 0x02]);
    // vmovhpd [rax + 8], xmm19
    let code = evex(op::STORE_UPPER, XMM, 19, None, at(0, None, 8), None, None, false);
    assert_eq!(code, [0x62, 0xe1, 0xfd, 0x08, 0x17, 0x58, 0x01]);
    // vinsertps xmm5, xmm21, [r12 + 4], 0x20
    let code = evex(op::LOAD_LANE, XMM, 5, Some(21), at(12, None, 4), Some(0x20), None, false);
    assert_eq!(code, [0x62, 0xd3, 0x55, 0x00, 0x21, 0x6c, 0x24, 0x01, 0x20]);
    // vunpckhpd zmm19, zmm3, zmm27
    let code = evex(op::unpack_upper(true), ZMM, 19, Some(3), reg(27), None, None, false);
    assert_eq!(code, [0x62, 0x81, 0xe5, 0x48, 0x15, 0xdb]);
    // vshuff64x2 ymm4, ymm18, ymm9, 3
    let code = evex(op::BLOCKS, YMM, 4, Some(18), reg(9), Some(3), None, false);
    assert_eq!(code, [0x62, 0xd3, 0xed, 0x20, 0x23, 0xe1, 0x03]);
    // vpmovqd ymm19, zmm27
    let code = evex(op::NARROW, ZMM, 27, None, reg(19), None, None, false);
    assert_eq!(code, [0x62, 0x22, 0x7e, 0x48, 0x35, 0xdb]);
}

#[test]
fn vex() {
    let vex = |enc, long, reg, v, rm, imm| bytes(|c| c.vex(enc, long, reg, v, rm, imm));
    let reg = Operand::Reg;
    // vfmadd231pd ymm15, ymm14, [r13 + 32]
    let code = vex(op::fma231(true), true, 15, Some(14), at(13, None, 32), None);
    assert_eq!(code, [0xc4, 0x42, 0x8d, 0xb8, 0x7d, 0x20]);
    // vinsertf128 ymm11, ymm9, xmm7, 1
    let code = vex(op::INSERT_128, true, 11, Some(9), reg(7), Some(1));
    assert_eq!(code, [0xc4, 0x63, 0x35, 0x18, 0xdf, 0x01]);
    // vmovhpd xmm4, xmm8, [r13 + 16]
    let code = vex(op::LOAD_UPPER, false, 4, Some(8), at(13, None, 16), None);
    assert_eq!(code, [0xc4, 0xc1, 0x39, 0x16, 0x65, 0x10]);
    // vmovhpd [rax + 8], xmm9
    let code = vex(op::STORE_UPPER, false, 9, None, at(0, None, 8), None);
    assert_eq!(code, [0xc5, 0x79, 0x17, 0x48, 0x08]);
    // vinsertps xmm5, xmm11, [r12 + 4], 0x20
    let code = vex(op::LOAD_LANE, false, 5, Some(11), at(12, None, 4), Some(0x20));
    assert_eq!(code, [0xc4, 0xc3, 0x21, 0x21, 0x6c, 0x24, 0x04, 0x20]);
    // vunpckhpd ymm9, ymm3, ymm12
    let code = vex(op::unpack_upper(true), true, 9, Some(3), reg(12), None);
    assert_eq!(code, [0xc4, 0x41, 0x65, 0x15, 0xcc]);
    // vperm2f128 ymm11, ymm9, ymm7, 0x31
    let code = vex(op::BLOCKS_OF_TWO, true, 11, Some(9), reg(7), Some(0x31));
    assert_eq!(code, [0xc4, 0x63, 0x35, 0x06, 0xdf, 0x31]);
    // vmovups ymm1, [rax]
    assert_eq!(vex(op::load(false), true, 1, None, at(0, None, 0), None), [0xc5, 0xfc, 0x10, 0x08]);
    // vpsrlq ymm9, ymm10, 32
    let code = vex(op::shr_imm(true), true, 2, Some(9), reg(10), Some(32));
    assert_eq!(code, [0xc4, 0xc1, 0x35, 0x73, 0xd2, 0x20]);
    // vblendvps ymm1, ymm2, [r8 + rdx*4 - 4], ymm12
    let code = vex(op::blend_vector(false), true, 1, Some(2), at(8, Some((2, 2)), -4), Some(12 << 4));
    assert_eq!(code, [0xc4, 0xc3, 0x6d, 0x4a, 0x4c, 0x90, 0xfc, 0xc0]);
    // vmaskmovpd [rbx + rsi*8], ymm8, ymm7
    let code = vex(op::mask_store(true), true, 7, Some(8), at(3, Some((6, 3)), 0), None);
    assert_eq!(code, [0xc4, 0xe2, 0x3d, 0x2f, 0x3c, 0xf3]);
    // kandw k1, k2, k3
    assert_eq!(vex(op::MASK_AND, true, 1, Some(2), reg(3), None), [0xc5, 0xec, 0x41, 0xcb]);
    // kmovw [rsp + 8], k5
    assert_eq!(vex(op::MASK_STORE, false, 5, None, at(4, None, 8), None), [0xc5, 0xf8, 0x91, 0x6c, 0x24, 0x08]);
}

#[test]
fn general() {
    // mov [r13], sil
    let code = bytes(|c| c.plain(false, None, &[0x88], 6, at(13, None, 0), &[]));
    assert_eq!(code, [0x41, 0x88, 0x75, 0x00]);
    // mov rax, [rsp + 8]
    let code = bytes(|c| c.plain(true, None, &[0x8B], 0, at(4, None, 8), &[]));
    assert_eq!(code, [0x48, 0x8b, 0x44, 0x24, 0x08]);
    // A jump back to itself, and one over nothing.
    let code = bytes(|c| {
        let (here, there) = (c.label(), c.label());
        c.place(here);
        c.jump(here);
        c.jump(there);
        c.place(there);
    });
    assert_eq!(code, [0xe9, 0xfb, 0xff, 0xff, 0xff, 0xe9, 0, 0, 0, 0]);
}

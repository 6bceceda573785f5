//! The stack that main bodies take: that of one piece, whatever their length.

use super::{embedded, harness, llvm, x86};
use crate::ir::random;
use crate::ir::{Buffer, BufferInfo, Expr, Index, Memory, Module, Op, PIECE, Role, Stmt, Ty, Value, evaluate, verify};

/// A line of so many values that are all needed when the last one is made, as in a derivative.
fn there_and_back(n: usize) -> (Module, Memory) {
    let mut m = Module { name: "line".into(), ..Module::default() };
    m.buffers.push(BufferInfo { ty: Ty::F64, role: Role::Input(0) });
    let define = |m: &mut Module, e: Expr| {
        let v = m.value(Ty::F64);
        m.main.push(Stmt::Let(v, e));
        v
    };
    let x = define(&mut m, Expr::Load(Buffer(0), Index::at(0)));
    let mut line: Vec<Value> = vec![x];
    for _ in 0..n {
        let next = define(&mut m, Expr::Op(Op::Mul, [line[line.len() - 1], x].into_iter().collect()));
        line.push(next);
    }
    let back = line.iter().rev().fold(x, |sum, v| define(&mut m, Expr::Op(Op::Sub, [*v, sum].into_iter().collect())));
    m.main.push(Stmt::Store { buffer: Buffer(0), at: Index::at(0), value: back });
    (m, Memory { buffers: vec![0.99_f64.to_le_bytes().to_vec()], sizes: vec![] })
}

/// The most bytes that a function of a text takes from the stack. Several pages are taken in steps, each of which is touched.
fn most_stack(text: &str) -> usize {
    let taken =
        text.lines().filter_map(|l| l.trim().strip_prefix("subq")?.trim().strip_prefix('$')?.strip_suffix(", %rsp"));
    let number = |n: &str| n.strip_prefix("0x").map_or(n.parse().ok(), |hex| usize::from_str_radix(hex, 16).ok());
    // Our own assembler says it in so many words.
    let said = text.lines().filter_map(|l| l.strip_suffix(" bytes of stack")?.rsplit_once(' ').map(|(_, n)| n));
    taken.chain(said).filter_map(number).max().unwrap_or(0)
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_long_line_takes_the_stack_of_a_piece() {
    let llvm = llvm::available().unwrap_or_else(|why| panic!("the LLVM tier is NOT TESTED: {why}"));
    let (whole, mut memory) = there_and_back(4000);
    let mut expected = memory.clone();
    evaluate(&whole, &mut expected).unwrap();
    let module = random::cut(whole.clone(), &mut memory, PIECE);
    verify(&module).unwrap();
    assert!(module.pieces.len() > 7 && module.main.len() == module.pieces.len());
    assert!(memory.buffers[1].len() > 8 * 3000, "what crosses is in memory");
    let own = embedded::compile(&module, x86::detect(), true, false).unwrap();
    let cranelift = embedded::compile(&module, None, true, false).unwrap();
    let text = llvm::Options { assembly: true, ..llvm::Options::default() };
    let optimized = llvm.compile(&module, &text).unwrap();
    let ways = [
        ("embedded", own.main(), own.assembly()),
        ("Cranelift", cranelift.main(), cranelift.assembly()),
        ("llvm", optimized.main(), optimized.assembly().unwrap_or_default()),
    ];
    for (way, main, text) in ways {
        // A vector register for each statement would be this much.
        let most = most_stack(text);
        assert!(!text.is_empty() && most <= 16 * PIECE, "{way}: {most} bytes");
        let mut got = memory.clone();
        // SAFETY: the memory is that of the module, and the evaluator stays in its bounds.
        assert_eq!(unsafe { harness::run(main, &mut got) }, Ok(0));
        assert_eq!(random::difference(&whole, &expected, &got), None, "{way}");
    }
}

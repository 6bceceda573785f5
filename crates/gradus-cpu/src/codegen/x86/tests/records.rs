//! Records of every length, side by side or with gaps, in order or found by an index: components that move together are those of their own record.

use super::written::{Build, lanes};
use super::{check, sets};
use crate::ir::{Index, Memory, Module, Op, Stmt, Ty};

/// Each record is read, from where it is or from where an index says, and written with its components in another order; one is read twice.
fn moved(ty: Ty, components: i64, gap: i64, indexed: bool, backwards: bool) -> (Module, Memory) {
    let mut b = Build::new();
    let (n, stride) = (45, components + gap);
    let (from, to) = (b.buffer(ty, (n * stride) as usize), b.buffer(ty, (n * stride) as usize));
    let which = b.buffer(Ty::I64, n as usize);
    let (i, mut body) = (b.var(), Vec::new());
    let place = match indexed {
        true => b.load(&mut body, which, Index::at(0).plus(i, 1)),
        false => i,
    };
    let mut values = Vec::new();
    for c in 0..components {
        let v = b.load(&mut body, from, Index::at(c).plus(place, stride));
        let again = b.load(&mut body, from, Index::at(components - 1).plus(place, stride));
        values.push(b.op(&mut body, Op::Sub, &[again, v]));
    }
    for c in 0..components {
        let (last, by) = if backwards { ((n - 1) * stride, -stride) } else { (0, stride) };
        let value = values[((c * 3 + 1) % components) as usize];
        body.push(Stmt::Store { buffer: to, at: Index::at(last + c).plus(i, by), value });
    }
    b.finish(vec![lanes(i, n, vec![], body)], vec![])
}

#[test]
fn components_stay_in_their_records() {
    for ty in [Ty::F64, Ty::F32, Ty::I64, Ty::I32] {
        for components in (1..20).chain([30]) {
            for (gap, indexed, backwards) in
                [(0, false, false), (3, false, false), (0, true, false), (1, true, true), (0, false, true)]
            {
                let (m, memory) = moved(ty, components, gap, indexed, backwards);
                for isa in sets() {
                    match check(&m, &memory, isa) {
                        Ok((all, made)) => assert_eq!(all, made, "{isa:?}\n{m}"),
                        Err(e) => panic!("{ty:?}, {components} with a gap of {gap}: {e}"),
                    }
                }
            }
        }
    }
}

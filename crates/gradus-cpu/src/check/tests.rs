//! Plans with one fault each: the check refuses what it is there to refuse, and lets through what lowering makes.

use gradus_core::Program;

use super::{accesses, check_order, uncovered};
use crate::error::Result;
use crate::ir::{Buffer, Expr, Index, Int, Module, Role, Stmt};
use crate::lower::{Lowered, lower_with};

const TURNED: &str = "fn turned(x0: f64[9,40]) -> f64[40,9] {
  x1: f64[9,40] = sin x0
  x2: f64[40,9] = transpose{axes=[1,0]} x1
  return x2
}
";
const SUMMED: &str = "fn summed(x0: f64[50,40]) -> (f64[50], f64[50,40]) {
  x1: f64[50,40] = mul x0 x0
  x2: f64[50] = reduce_sum{axes=[1]} x1
  x3: f64[50,40] = broadcast{shape=[50,40], axes=[0]} x2
  x4: f64[50,40] = sub x1 x3
  return x2, x4
}
";
/// Copied in tiles, and what is left over at the ends of both axes.
const TILED: &str = "fn tiled(x0: f64[R,C]) -> f64[C,R] {
  x1: f64[C,R] = transpose{axes=[1,0]} x0
  return x1
}
";
fn lowered(text: &str) -> Lowered {
    lower_with(&text.parse::<Program>().unwrap(), 16, true).unwrap()
}

/// Everything that is asked of a module whose sizes are known.
fn checked(l: &Lowered) -> Result<()> {
    let bytes: Vec<usize> = l.bytes.iter().map(|b| b.in_table(&[]) as usize).collect();
    accesses(&l.module)?.iter().try_for_each(|a| a.check(&[], &bytes))?;
    check_order(&l.module)?.iter().try_for_each(|a| a.check(&[]))
}

/// Changes the place of the first store to an output.
fn with_store(l: &mut Lowered, change: &dyn Fn(&mut Index)) {
    fn first(body: &mut [Stmt], outputs: &[Buffer], change: &dyn Fn(&mut Index)) -> bool {
        body.iter_mut().any(|s| match s {
            Stmt::Store { buffer, at, .. } if outputs.contains(buffer) => {
                change(at);
                true
            }
            Stmt::Loop(l) => first(&mut l.body, outputs, change),
            _ => false,
        })
    }
    let outputs = outputs(&l.module);
    assert!(l.module.kernels.iter_mut().any(|k| first(&mut k.body, &outputs, change)), "{}", l.module);
}

fn outputs(m: &Module) -> Vec<Buffer> {
    let is_output = |b: &usize| matches!(m.buffers[*b].role, Role::Output(_));
    (0..m.buffers.len()).filter(is_output).map(|b| Buffer(b as u32)).collect()
}

#[test]
fn what_lowering_makes_is_let_through() {
    for text in [TURNED, SUMMED] {
        let l = lowered(text);
        checked(&l).unwrap_or_else(|e| panic!("{e}\n{}", l.module));
        assert!(l.uncovered.is_empty(), "{}", l.module);
    }
}

#[test]
fn a_place_outside_of_its_buffer_is_refused() {
    for text in [TURNED, SUMMED] {
        let changes: [&dyn Fn(&mut Index); 3] =
            [&|at| at.offset += 1, &|at| at.offset -= 1, &|at| at.offset += 1_000_000];
        for change in changes {
            let mut l = lowered(text);
            with_store(&mut l, change);
            let e = checked(&l).unwrap_err();
            assert!(e.message().contains("elements"), "{e}");
        }
        let mut l = lowered(text);
        with_store(&mut l, &|at| {
            for (_, stride) in &mut at.terms {
                if let Int::Const(s) = stride {
                    *s *= 3;
                }
            }
        });
        assert!(checked(&l).is_err(), "{}", l.module);
    }
}

#[test]
fn threads_that_write_the_same_places_are_refused() {
    let shared = || {
        let mut l = lowered(TURNED);
        l.module.kernels.iter_mut().for_each(|k| k.parallel = true);
        l
    };
    checked(&shared()).unwrap();
    // Without the term of the loop that is shared every thread writes the same; without the other one, each its own.
    let refused = |k: usize| {
        let mut l = shared();
        with_store(&mut l, &|at| drop::<Vec<_>>(at.terms.drain(k..=k).collect()));
        check_order(&l.module).is_err_and(|e| e.message().contains("threads"))
    };
    assert!(refused(0) != refused(1));
    let mut l = shared();
    with_store(&mut l, &|at| at.terms.iter_mut().for_each(|(_, s)| *s = Int::Const(1)));
    assert!(check_order(&l.module).is_err(), "{}", l.module);
}

#[test]
fn a_kernel_that_reads_what_it_writes_elsewhere_is_refused() {
    // The load of a kernel made to read what the kernel itself writes, one element further on.
    let mut l = lowered(TURNED);
    let output = outputs(&l.module)[0];
    fn spoil(body: &mut [Stmt], output: Buffer) {
        for s in body {
            match s {
                Stmt::Let(_, Expr::Load(b, at)) => {
                    *b = output;
                    at.offset += 1;
                }
                Stmt::Loop(l) => spoil(&mut l.body, output),
                _ => {}
            }
        }
    }
    l.module.kernels.iter_mut().for_each(|k| spoil(&mut k.body, output));
    let e = check_order(&l.module).unwrap_err();
    assert!(e.message().contains("read and written") || e.message().contains("nothing has written"), "{e}");
}

#[test]
fn what_nothing_has_written_is_not_read() {
    let mut l = lowered(SUMMED);
    // Every store goes: what is read then, and is no input, was never written.
    fn without_stores(body: &mut Vec<Stmt>) {
        body.retain(|s| !matches!(s, Stmt::Store { .. }));
        for s in body {
            if let Stmt::Loop(l) = s {
                without_stores(&mut l.body);
            }
        }
    }
    l.module.kernels.iter_mut().for_each(|k| without_stores(&mut k.body));
    assert_eq!(uncovered(&l.module, &l.bytes).len(), outputs(&l.module).len());
}

#[test]
fn an_output_with_a_hole_is_not_covered() {
    let l = lowered(TURNED);
    assert!(uncovered(&l.module, &l.bytes).is_empty());
    let changes: [&dyn Fn(&mut Index); 3] = [&|at| at.offset += 1, &|at| at.terms.truncate(1), &|at| {
        at.terms.iter_mut().for_each(|(_, s)| *s = Int::Const(1))
    }];
    for change in changes {
        let mut l = lowered(TURNED);
        with_store(&mut l, change);
        assert_eq!(uncovered(&l.module, &l.bytes), outputs(&l.module));
    }
}

#[test]
fn tiles_of_sizes_known_at_run_time_cover_what_they_write() {
    for ty in ["f64", "f32", "i8"] {
        let l = lowered(&TILED.replace("f64", ty));
        assert!(l.uncovered.is_empty(), "{}", l.module);
    }
}

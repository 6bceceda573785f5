//! Failures made small: edits are tried one after the other, and one that keeps the failure is the new beginning.

use gradus_core::program::ValueId;
use gradus_core::{Dim, Program, Type};

use crate::case::Case;
use crate::edit::{smaller, with_smaller_sizes};

/// Makes a case smaller as long as `fails` says that it fails as before. At most so many cases are tried.
pub fn shrink(case: &Case, mut tries: usize, fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut best = case.clone();
    if best.sizes.len() > 1 {
        for sizes in best.sizes.clone() {
            let one = Case { sizes: vec![sizes], ..best.clone() };
            if attempt(&one, &mut tries, fails) {
                best = one;
                break;
            }
        }
    }
    if best.program.is_symbolic()
        && let [sizes] = &best.sizes[..]
    {
        let types: Vec<_> = best.inputs(sizes, 0).iter().filter_map(|a| a.ty().ok().cloned()).collect();
        if let Ok(bound) = best.program.bind_symbols(&types) {
            let fixed = Case { sizes: vec![Vec::new()], ..best.with_program(bound) };
            if attempt(&fixed, &mut tries, fails) {
                best = fixed;
            }
        }
    }
    // Edits are tried around in a circle: after one that helped, those that did not help before it can wait.
    let mut at = 0;
    loop {
        let candidates = smaller(&best.program).into_iter().chain(with_smaller_sizes(&best.program));
        let fits = |p: &Program| weight(p) < weight(&best.program);
        let all: Vec<Program> = candidates.filter(fits).collect();
        let start = if at < all.len() { at } else { 0 };
        let around = (start..all.len()).chain(0..start);
        let found = around.map(|k| (k, best.with_program(all[k].clone())));
        match found.into_iter().find(|(_, c)| attempt(c, &mut tries, fails)) {
            Some((k, next)) => (at, best) = (k, next),
            None => return best,
        }
    }
}

/// How large a program is: equations first, then outputs and inputs, then elements.
fn weight(p: &Program) -> (usize, usize, usize) {
    fn equations(p: &Program) -> usize {
        p.equations().iter().map(|e| 1 + e.op().programs().iter().map(|p| equations(p)).sum::<usize>()).sum()
    }
    let elements = |t: &Type| t.shape().iter().filter_map(Dim::as_usize).sum::<usize>();
    let values = (0..p.value_count()).map(|v| elements(p.ty(ValueId::new(v)))).sum();
    (equations(p), p.outputs().len() + p.inputs().len(), values)
}

fn attempt(case: &Case, tries: &mut usize, fails: &mut dyn FnMut(&Case) -> bool) -> bool {
    if *tries == 0 {
        return false;
    }
    *tries -= 1;
    fails(case)
}

//! Random numbers against JAX, and what keys are good for.

#[path = "random/vectors.rs"]
mod vectors;

use vectors::{Distances, bits_of, call, distance, lines};

#[test]
fn row_e2_numbers_are_those_of_jax() {
    let mut all = Distances::new();
    for line in lines() {
        if line.name == "multivariate_normal" {
            continue;
        }
        let y = call(&line, gradus::Key::new(line.seed), &line.args);
        let ours = bits_of(&y).unwrap_or_else(|e| panic!("{}: {e}", line.name));
        let d = distance(line.ty.dtype(), &ours, &line.bits);
        if d > 1000 {
            println!(
                "{} {} {:x?} {:x?}",
                line.name,
                line.ty,
                &ours[..ours.len().min(12)],
                &line.bits[..ours.len().min(12)]
            );
        }
        let at = all.entry((line.name.clone(), line.ty.dtype().name())).or_default();
        *at = (*at).max(d);
    }
    for (k, d) in &all {
        println!("{k:?} {d}");
    }
}

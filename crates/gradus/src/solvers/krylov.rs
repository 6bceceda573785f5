//! The loops of the solvers. They are not differentiated: their solutions are.
//!
//! All of them measure residuals by their squares, so the right side is taken times a power of two that brings its largest number near 1, and the solution back: a power of two changes no
//! digit. What is not finite has no solution, and is no reason to stop at zero either: there the solution is NaN.

use gradus_core::{Array, DType, Dim, Scalar};

use super::Limits;
use crate::control::while_loop;
use crate::formula::number;
use crate::tree::{self, Tree};

/// The real part of the inner product of a tree with itself.
fn squared_norm<X: Tree>(x: &X) -> Array {
    tree::dot(x, x).real()
}

/// Whether a residual is still too long, and steps are left.
fn goes_on(residual: &Array, aim: &Array, step: &Array, limits: &Limits) -> Array {
    residual.gt(aim) & step.lt(limits.steps)
}

/// A solution, and NaN where its residual is no finite number: of such there is none, and the loop did not begin, or left with what it had.
fn solved<X: Tree>(x: X, residual: &Array) -> X {
    let finite = residual.is_finite();
    tree::map(&x, |x| finite.select(x, number(x, f64::NAN)))
}

/// `a / b`; nothing where b is zero, because then there is nothing left to do.
fn share(a: &Array, b: &Array) -> Array {
    b.ne(0.0_f64).guarded(b, 1.0_f64, |b| a / b, 0.0_f64)
}

/// The larger absolute value of the parts of all numbers of a tree, which does not overflow as the length of a complex number can. NaN where one is.
fn largest<X: Tree>(x: &X) -> Array {
    let of = |x: &Array| {
        let most = |x: Array| x.abs().max().cast(DType::F64);
        if x.dtype().is_complex() { most(x.real()).maximum(most(x.imag())) } else { most(x.clone()) }
    };
    let leaves = x.leaves();
    let numbers = leaves.iter().filter(|x| x.dtype().is_inexact() && x.shape().size().as_usize() != Some(0));
    numbers.map(of).reduce(|a, b| a.maximum(b)).unwrap_or_else(|| Array::from(0.0_f64))
}

/// The exponent of the power of two below a size; 0 of zero and of what is not finite.
fn exponent(size: &Array) -> Array {
    let power = size.log2().floor();
    power.is_finite().select(power, 0.0_f64)
}

/// All numbers times two to a power, in two steps, each of which is a number in every dtype.
fn times_power_of_two<X: Tree>(x: &X, power: &Array) -> X {
    let half = (power * 0.5_f64).floor();
    tree::scale(&tree::scale(x, half.exp2()), (power - &half).exp2())
}

/// What a solver finds of a right side of ordinary size, at the size that it has.
fn at_scale<X: Tree>(b: &X, solve: impl FnOnce(&X) -> X) -> X {
    let size = largest(b);
    let power = exponent(&size);
    let x = times_power_of_two(&solve(&times_power_of_two(b, &-&power)), &power);
    let fine = size.is_finite();
    let each = |x: &Array| match x.dtype().is_inexact() {
        true => fine.select(x, Array::scalar(Scalar::F64(f64::NAN).cast(x.dtype()))),
        false => x.clone(),
    };
    tree::map(&x, each)
}

#[derive(Clone, crate::tree::Tree)]
struct Numbers {
    step: Array,
    rho: Array,
    alpha: Array,
    omega: Array,
}

pub(super) fn cg<X: Tree>(map: &dyn Fn(&X) -> X, b: &X, limits: &Limits) -> X {
    at_scale(b, |b| conjugate_gradients(map, b, limits))
}

pub(super) fn bicgstab<X: Tree>(map: &dyn Fn(&X) -> X, b: &X, limits: &Limits) -> X {
    at_scale(b, |b| stabilized(map, b, limits))
}

pub(super) fn gmres<X: Tree>(map: &dyn Fn(&X) -> X, b: &X, limits: &Limits) -> X {
    at_scale(b, |b| minimal_residuals(map, b, limits))
}

fn conjugate_gradients<X: Tree>(map: &dyn Fn(&X) -> X, b: &X, limits: &Limits) -> X {
    let aim = squared_norm(b) * limits.tolerance.powi(2);
    let zero = tree::zeros_like(b);
    // x, the residual, the direction, the residual's squared length, the number of steps
    let start = (zero, tree::again(b), (tree::again(b), squared_norm(b), Array::from(0_i64)));
    let condition = |(_, _, (_, length, n)): &(X, X, (X, Array, Array))| goes_on(length, &aim, n, limits);
    let body = |(x, r, (p, length, n)): &(X, X, (X, Array, Array))| {
        let moved = map(p);
        let alpha = share(length, &tree::dot(p, &moved).real());
        let (x, r) = (tree::add_scaled(x, &alpha, p), tree::add_scaled(r, -&alpha, &moved));
        let next = squared_norm(&r);
        let p = tree::add_scaled(&r, share(&next, length), p);
        (x, r, (p, next, n + 1_i64))
    };
    let (x, _, (_, length, _)) = while_loop(condition, body, start);
    solved(x, &length)
}

fn stabilized<X: Tree>(map: &dyn Fn(&X) -> X, b: &X, limits: &Limits) -> X {
    let aim = squared_norm(b) * limits.tolerance.powi(2);
    let one = tree::dot(b, b).ones_like();
    let zero = || tree::zeros_like(b);
    let numbers = Numbers { step: Array::from(0_i64), rho: one.clone(), alpha: one.clone(), omega: one };
    // x, the residual, the direction and its image
    let start = (zero(), tree::again(b), (zero(), zero()), numbers);
    let condition =
        |(_, r, _, n): &(X, X, (X, X), Numbers)| goes_on(&squared_norm(r), &aim, &n.step, limits) & n.omega.ne(0.0_f64);
    let body = |(x, r, (p, q), n): &(X, X, (X, X), Numbers)| {
        let rho = tree::dot(b, r);
        let beta = share(&rho, &n.rho) * share(&n.alpha, &n.omega);
        let p = tree::add_scaled(r, &beta, &tree::add_scaled(p, -&n.omega, q));
        let q = map(&p);
        let alpha = share(&rho, &tree::dot(b, &q));
        let s = tree::add_scaled(r, -&alpha, &q);
        let t = map(&s);
        // The image is as large as the map makes it.
        let power = exponent(&largest(&t));
        let unit = times_power_of_two(&t, &-&power);
        let omega = share(&tree::dot(&unit, &s), &tree::dot(&unit, &unit));
        let omega = times_power_of_two(&omega, &-power);
        let x = tree::add_scaled(&tree::add_scaled(x, &alpha, &p), &omega, &s);
        let r = tree::add_scaled(&s, -&omega, &t);
        (x, r, (p, q), Numbers { step: &n.step + 1_i64, rho, alpha, omega })
    };
    let (x, r, ..) = while_loop(condition, body, start);
    solved(x, &squared_norm(&r))
}

/// What [`gmres`] carries from step to step.
#[derive(Clone, crate::tree::Tree)]
struct Search {
    x: Array,
    residual: Array,
    length: Array,
    /// The next direction.
    next: Array,
    /// Directions whose images are the rows of `images`.
    directions: Array,
    /// Images under the map, of length one and at right angles to each other.
    images: Array,
    step: Array,
}

/// Simpler GMRES: images of directions are kept at right angles, with the directions that they belong to, so each step removes from the residual all that it has in the direction of the
/// new image, and no least-squares problem is left for the end. The next direction is the residual where the last step helped, otherwise the last image: either alone can stall or go
/// blind (Jiránek and Rozložník, "Adaptive version of Simpler GMRES").
fn minimal_residuals<X: Tree>(map: &dyn Fn(&X) -> X, b: &X, limits: &Limits) -> X {
    /// A step that leaves more of the residual than this did not help.
    const HELPED: f64 = 0.9;
    let (b, unravel) = tree::ravel(b);
    let map = |v: &Array| tree::ravel(&map(&unravel.call(v))).0;
    let rows = limits.restart;
    let basis = || Array::full_scalar([Dim::from(rows), b.dim(0)].into_iter().collect(), Scalar::zero(b.dtype()));
    let length = norm(&b);
    let aim = &length * limits.tolerance;
    let unit = |v: &Array, length: &Array| share(v, &length.cast(v.dtype()));
    let start = Search {
        x: b.zeros_like(),
        residual: b.clone(),
        next: unit(&b, &length),
        length,
        directions: basis(),
        images: basis(),
        step: Array::from(0_i64),
    };
    let condition = |s: &Search| goes_on(&s.length, &aim, &s.step, limits);
    let body = |s: &Search| {
        let row = &s.step % rows as i64;
        let anew = row.eq(0_i64);
        let forget = |old: &Array| anew.select(old.zeros_like(), old);
        let (directions, images) = (forget(&s.directions), forget(&s.images));
        let direction = anew.select(unit(&s.residual, &s.length), &s.next);
        let (mut p, mut q) = (direction.clone(), map(&direction));
        // Twice is enough to be at right angles to the last place.
        for _ in 0..2 {
            let parts = images.conj().matmul(&q);
            q = &q - parts.matmul(&images);
            p = &p - parts.matmul(&directions);
        }
        // The image is as large as the map makes it.
        let power = exponent(&largest(&q));
        let size = times_power_of_two(&norm(&times_power_of_two(&q, &-&power)), &power);
        let (p, q) = (unit(&p, &size), unit(&q, &size));
        let part = q.conj().dot(&s.residual);
        let residual = &s.residual - &q * &part;
        let length = norm(&residual);
        let helped = length.lt(&s.length * HELPED);
        Search {
            x: &s.x + &p * &part,
            next: helped.select(unit(&residual, &length), &q),
            residual,
            length,
            directions: directions.at(&row).set(&p),
            images: images.at(&row).set(&q),
            step: &s.step + 1_i64,
        }
    };
    let end = while_loop(condition, body, start);
    unravel.call(&solved(end.x, &end.length))
}

fn norm(v: &Array) -> Array {
    squared_norm(v).sqrt()
}

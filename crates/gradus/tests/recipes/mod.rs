//! Random functions over the public API: array methods, and transformations and control flow over functions that are
//! random again. Shapes, dtypes and axes are often wrong. The test and the fuzz target run them.

use std::sync::Arc;

use gradus::prelude::*;
use gradus_core::testing::Source;

use super::desk::Desk;

/// A function of two arrays as bytes: whoever reads the same bytes takes the same steps.
#[derive(Clone, Debug)]
pub struct Recipe {
    bytes: Arc<[u8]>,
    /// How deep functions may lie in functions.
    depth: usize,
}

impl Recipe {
    pub fn new(bytes: &[u8], depth: usize) -> Recipe {
        Recipe { bytes: bytes.into(), depth }
    }

    /// The next function inside.
    fn inner(&self, source: &mut Source<'_>) -> Recipe {
        let bytes: Vec<u8> = (0..8 + source.below(24)).map(|_| source.byte()).collect();
        Recipe::new(&bytes, self.depth - 1)
    }

    /// Runs the steps; gives the last result.
    pub fn apply(&self, x: &Array, y: &Array) -> Array {
        let mut source = Source::bytes(&self.bytes);
        let steps = 1 + source.below(3);
        let mut arrays = vec![x.clone(), y.clone()];
        let mut last = x.clone();
        for _ in 0..steps {
            let inside = self.depth > 0 && source.chance(60);
            let results = match inside {
                true => {
                    let (a, b) = (pick(&mut source, &arrays), pick(&mut source, &arrays));
                    self.transform(&mut source, &a, &b)
                }
                false => {
                    let mut desk = Desk { arrays: std::mem::take(&mut arrays), source: &mut source };
                    let results = desk.call().1;
                    arrays = desk.arrays;
                    results
                }
            };
            // One for each step, whatever came: the next steps choose by position. An error goes on like any other.
            last = results.into_iter().next_back().unwrap_or_else(|| x.clone());
            let kept = last.error().is_some() || is_small(&last);
            arrays.push(if kept { last.clone() } else { x.clone() });
        }
        last
    }

    /// As a function that owns itself.
    fn function(&self) -> impl Fn(&Array, &Array) -> Array + Send + Sync + 'static + Clone {
        let recipe = self.clone();
        move |x: &Array, y: &Array| recipe.apply(x, y)
    }

    fn of_one(&self) -> impl Fn(&Array) -> Array + Send + Sync + 'static + Clone {
        let recipe = self.clone();
        move |x: &Array| recipe.apply(x, x)
    }

    /// A function with one number as its result, mostly: what gradients want.
    fn loss(&self, scalar: bool) -> impl Fn(&Array, &Array) -> Array + Send + Sync + 'static + Clone {
        let recipe = self.clone();
        move |x: &Array, y: &Array| {
            let value = recipe.apply(x, y);
            if scalar { value.sum() } else { value }
        }
    }

    /// One transformation or piece of control flow over functions of their own.
    fn transform(&self, source: &mut Source<'_>, a: &Array, b: &Array) -> Vec<Array> {
        // A loop over an empty array may have more steps than anyone can wait for: that is what was asked for.
        let steps = |a: &Array| a.ty().is_ok_and(|t| t.rank() > 0 && t.shape()[0].as_usize().is_some_and(|n| n > 64));
        let choice = source.below(25);
        if matches!(choice, 17 | 18 | 20 | 24) && (steps(a) || steps(b)) {
            return vec![a.clone()];
        }
        let f = self.inner(source);
        let scalar = source.chance(80);
        let few = |a: &Array| a.ty().is_ok_and(|t| t.shape().count().is_some_and(|n| n <= 6));
        let both = (a.clone(), b.clone());
        match choice {
            0 => vec![jit(f.function())(a, b)],
            1 => vec![jit(f.function()).mode(Mode::Concrete)(a, b)],
            2 => vec![grad(f.loss(scalar))(a, b)],
            3 => {
                let (value, slope) = value_and_grad(f.loss(scalar))(a, b);
                vec![value, slope]
            }
            4 => {
                let (x, y) = grad_all(f.loss(scalar))(a, b);
                vec![x, y]
            }
            5 => vec![vmap(f.function())(a, b)],
            6 => {
                let axes = [None, Some(0), Some(-1), Some(1), Some(5)];
                let (x, y) = (axes[source.below(5)], axes[source.below(5)]);
                vec![vmap(f.function()).axes((x, y)).out_axis([0, -1, 3][source.below(3)])(a, b)]
            }
            7 => vec![vmap(grad(f.loss(scalar)))(a, b)],
            8 => vec![jit(vmap(grad(f.loss(scalar))))(a, b)],
            9 => <[Array; 2]>::from(jvp(f.of_one(), a, b)).to_vec(),
            10 => <[Array; 2]>::from(jvp(f.of_one(), a, a)).to_vec(),
            11 => {
                let (y, back) = vjp(f.of_one(), a);
                vec![back.call(&y), y]
            }
            12 => {
                let (y, back) = vjp(f.of_one(), a);
                vec![back.call(b), y]
            }
            13 => {
                let (y, along) = linearize(f.of_one(), a);
                vec![along.call(a), y]
            }
            14 => {
                let g = self.inner(source);
                let (f, g) = (f.function(), g.function());
                let predicate = if source.chance(70) { a.sum().gt(0.0) } else { b.clone() };
                vec![cond(predicate, |p: &(Array, Array)| f(&p.0, &p.1), |p| g(&p.0, &p.1), &both)]
            }
            15 => {
                let (f, g) = (f.function(), self.inner(source).function());
                let branches: [&dyn Fn(&(Array, Array)) -> Array; 2] = [&|p| f(&p.0, &p.1), &|p| g(&p.0, &p.1)];
                vec![switch(b.sum().cast(DType::I32), &branches, &both)]
            }
            16 => {
                let (f, n) = (f.function(), source.below(4));
                vec![fori_loop(0, n as i32, |_, x: &Array| f(x, b), a.clone())]
            }
            17 => {
                let (f, g) = (f.function(), self.inner(source).function());
                let (carry, ys) = scan(|c: &Array, x: &Array| (f(c, x), g(x, c)), a.clone(), b);
                vec![carry, ys]
            }
            18 => {
                let f = f.function();
                let (carry, ys) =
                    ScanOptions::new().reverse().scan(|c: &Array, x: &Array| (c.clone(), f(c, x)), a.clone(), b);
                vec![carry, ys]
            }
            19 => {
                let (f, n) = (f.function(), source.below(4) as i32);
                let body = |s: &(Array, Array)| (&s.0 + 1, f(&s.1, b));
                let (count, x) = while_loop(|s: &(Array, Array)| s.0.lt(n), body, (Array::from(0), a.clone()));
                vec![count, x]
            }
            20 => vec![gradus::map(f.of_one(), a)],
            21 => vec![checkpoint(f.function())(a, b), stop_gradient(a), b.checkpoint_name("b")],
            22 if few(a) && few(b) => match source.below(3) {
                0 => vec![jacfwd(f.function())(a, b)],
                1 => vec![jacrev(f.function())(a, b)],
                _ => vec![hessian(f.loss(scalar))(a, b)],
            },
            23 => {
                let (f, g) = (f.function(), self.inner(source).function());
                let rule = move |(x, y): &(Array, Array), d: &(Array, Array)| (f(x, y), g(&d.0, &d.1));
                let inner = self.inner(source).function();
                vec![grad(move |x: &Array, y: &Array| custom_jvp(inner.clone(), rule.clone())(x, y).sum())(a, b)]
            }
            _ => {
                let f = f.function();
                vec![associative_scan(|x: &Array, y: &Array| f(x, y), a)]
            }
        }
    }
}

fn pick(source: &mut Source<'_>, arrays: &[Array]) -> Array {
    source.pick(arrays).cloned().unwrap_or_else(|| Array::from(1.0_f64))
}

fn is_small(a: &Array) -> bool {
    a.ty().is_ok_and(|t| t.rank() <= 5 && t.shape().count().is_some_and(|n| n <= 128))
}

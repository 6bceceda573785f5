//! Steps that hold functions: loops whose carries are kept, swapped, duplicated and updated in place, branches, calls, batches and
//! derivatives inside of programs.

use gradus::prelude::*;
use gradus_core::control::checkpoint as checkpoint_of;
use gradus_core::primitives::Op;
use gradus_core::primitives::control::Call;
use gradus_core::trace::{Traced, bind_all, trace};
use gradus_core::transform::vmap_on;

use super::transforms::slopes;
use super::{Desk, fork};

/// The most steps of a loop.
const LONGEST: usize = 17;

impl Desk<'_> {
    pub(super) fn control(&mut self) -> Option<Array> {
        if self.depth > 1 || (self.depth > 0 && self.chance(50)) {
            return None;
        }
        match self.below(12) {
            0..4 => self.scan(),
            4 => self.fori(),
            5 => self.whiles(),
            6 => self.cond(),
            7 => self.switch(),
            8 => self.held(),
            9 => self.batch(),
            10 => self.slope(),
            _ => self.substitution(),
        }
    }

    /// One to three values that a loop carries: some of one type, so that they can trade places.
    fn carries(&mut self) -> Vec<Array> {
        let most = self.world.most / 2;
        let few = |d: &Desk<'_>, a: &Array| d.world.count(a.shape()) <= most;
        let first = self.any();
        let mut all = Vec::new();
        if few(self, &first) {
            all.push(first.clone());
        }
        for _ in 0..self.below(3) {
            let x = if self.chance(60) { self.like(&first) } else { self.any() };
            if few(self, &x) {
                all.push(x);
            }
        }
        all
    }

    /// What a step of a loop hands on: new, kept, another's, or updated in place.
    fn handed_on(&mut self, old: &[Array]) -> Vec<Array> {
        old.iter().map(|c| self.next(c, old)).collect()
    }

    fn next(&mut self, c: &Array, old: &[Array]) -> Array {
        let like: Vec<Array> =
            old.iter().filter(|o| o.shape() == c.shape() && o.dtype() == c.dtype()).cloned().collect();
        match self.below(9) {
            0 => c.clone(),
            1 | 2 => like[self.below(like.len())].clone(),
            3 if c.rank() > 0 => {
                let (at, row) = (self.counter(), self.counter());
                let value = c.index(row);
                let value = self.changed(&value);
                c.at(at).set(value)
            }
            4 if c.rank() > 0 => c.at(1..).set(c.index(..-1)),
            5 if c.rank() > 0 => {
                let starts: Vec<Array> = (0..c.rank()).map(|_| self.counter()).collect();
                let part = c.index(..1);
                let part = self.changed(&part);
                c.dynamic_update_slice(&part, &starts)
            }
            _ => {
                let n = old.len();
                let same = |a: &Array| a.shape() == c.shape() && a.dtype() == c.dtype();
                let made: Vec<Array> = self.arrays.iter().skip(n).filter(|a| same(a)).cloned().collect();
                match made.last() {
                    Some(x) if x.ty().is_ok() => x.clone(),
                    _ if c.dtype().is_float() => c * 0.5 + 0.25,
                    _ => c.clone(),
                }
            }
        }
    }

    /// What a step gives out: old carries, views of them, what was made.
    fn given_out(&mut self, old: &[Array]) -> Vec<Array> {
        let count = self.below(3);
        (0..count)
            .map(|_| {
                let k = self.below(old.len().max(1));
                match (self.below(4), old.get(k)) {
                    (0, Some(c)) => c.clone(),
                    (1, Some(c)) => self.view(c),
                    _ => self.any(),
                }
            })
            .filter(|a| a.ty().is_ok())
            .collect()
    }

    /// A few values that a function inside sees.
    fn seen(&mut self) -> Vec<Array> {
        (0..self.below(3)).map(|_| self.any()).collect()
    }

    fn scan(&mut self) -> Option<Array> {
        let init = self.carries();
        let long = |d: &Desk<'_>, a: &Array| a.rank() > 0 && d.dims(a)[0] <= LONGEST;
        let x = self.any();
        let xs: Vec<Array> = if long(self, &x) { vec![x] } else { Vec::new() };
        let length = 1 + self.below(6);
        let (world, seed, seen, depth) = (self.world, fork(&mut self.source), self.seen(), self.depth);
        let steps = self.below(4);
        let mut options = ScanOptions::new();
        if self.chance(25) {
            options = options.reverse();
        }
        if xs.is_empty() {
            options = options.length(length);
        }
        options = options.unroll([1, 1, 1, 1, 2][self.below(5)]);
        let body = |c: &Vec<Array>, x: &Vec<Array>| {
            let arrays: Vec<Array> = c.iter().chain(x).chain(&seen).cloned().collect();
            if arrays.is_empty() {
                return (Vec::new(), Vec::new());
            }
            let mut desk = Desk::new(world, seed, arrays, depth + 1);
            desk.steps(steps);
            (desk.handed_on(c), desk.given_out(c))
        };
        let (carries, ys) = options.scan(body, init, &xs);
        self.push_all(carries.into_iter().chain(ys))
    }

    fn push_all(&mut self, all: impl IntoIterator<Item = Array>) -> Option<Array> {
        all.into_iter().filter_map(|a| self.push(a)).last()
    }

    fn fori(&mut self) -> Option<Array> {
        let init = self.carries();
        let n = 1 + self.below(6) as i32;
        let (world, seed, seen, depth) = (self.world, fork(&mut self.source), self.seen(), self.depth);
        let steps = self.below(4);
        let body = |i: &Array, c: &Vec<Array>| {
            let arrays: Vec<Array> = c.iter().chain([i]).chain(&seen).cloned().collect();
            let mut desk = Desk::new(world, seed, arrays, depth + 1);
            desk.steps(steps);
            desk.handed_on(c)
        };
        let carries = fori_loop(0, n, body, init);
        self.push_all(carries)
    }

    fn whiles(&mut self) -> Option<Array> {
        let mut init = vec![Array::from(0)];
        init.extend(self.carries());
        let n = self.below(6) as i32;
        let bound = if self.chance(30) { self.counter() } else { Array::from(n) };
        let (world, seed, seen, depth) = (self.world, fork(&mut self.source), self.seen(), self.depth);
        let steps = self.below(4);
        let body = |c: &Vec<Array>| {
            let arrays: Vec<Array> = c.iter().chain(&seen).cloned().collect();
            let mut desk = Desk::new(world, seed, arrays, depth + 1);
            desk.steps(steps);
            let mut next = desk.handed_on(c);
            next[0] = &c[0] + 1;
            next
        };
        let carries = while_loop(|c: &Vec<Array>| c[0].lt(bound.clamp(-1, 9)), body, init);
        self.push_all(carries)
    }

    /// A yes or no that is only known when the program runs, or only seems so.
    fn question(&mut self) -> Array {
        let x = self.any();
        let x = if x.dtype().is_complex() { x.real() } else { x };
        let x = if x.dtype() == DType::Bool { x.cast(DType::I32) } else { x };
        match self.below(4) {
            0 => x.sum().gt(0),
            1 => x.max().lt(x.sum()),
            2 => {
                let s = x.sum();
                s.gt(&s)
            }
            _ => x.min().ge(0),
        }
    }

    fn branch<'d>(&mut self, count: usize) -> impl Fn(&Vec<Array>) -> Vec<Array> + use<'d>
    where
        Self: 'd,
    {
        // invariant: the world lives as long as every desk of it
        let (dims, dtypes, sample, most) =
            (self.world.dims.clone(), self.world.dtypes, self.world.sample.clone(), self.world.most);
        let (seed, depth, steps) = (fork(&mut self.source), self.depth, self.below(4));
        move |args: &Vec<Array>| {
            let world = super::World { dims: dims.clone(), dtypes, sample: sample.clone(), most };
            let mut desk = Desk::new(&world, seed, args.clone(), depth + 1);
            desk.steps(steps);
            desk.handed_on(&args[..count])
        }
    }

    fn cond(&mut self) -> Option<Array> {
        let mut args = self.carries();
        if args.is_empty() {
            return None;
        }
        let count = args.len();
        args.extend(self.seen());
        let (yes, no) = (self.branch(count), self.branch(count));
        let question = self.question();
        let results = cond(question, yes, no, &args);
        self.push_all(results)
    }

    fn switch(&mut self) -> Option<Array> {
        let mut args = self.carries();
        if args.is_empty() {
            return None;
        }
        let count = args.len();
        args.extend(self.seen());
        let (a, b, c) = (self.branch(count), self.branch(count), self.branch(count));
        let number = self.counter();
        let results = switch(number, &[&a, &b, &c], &args);
        self.push_all(results)
    }

    /// A function of some values, traced apart.
    fn function(&mut self, args: &[Array], scalar: bool) -> Option<Traced> {
        let (world, seed, depth) = (self.world, fork(&mut self.source), self.depth);
        let steps = 1 + self.below(4);
        let specs = args.iter().map(|a| a.ty().cloned().map(Array::of_type)).collect::<Result<Vec<_>>>().ok()?;
        let traced = trace("inner", &specs, Mode::Abstract, |xs| {
            let mut desk = Desk::new(world, seed, xs.to_vec(), depth + 1);
            desk.steps(steps);
            match scalar {
                false => desk.outputs(),
                true => {
                    let loss = desk.any_of(|a| a.dtype().is_float());
                    loss.map(|x| x.sum()).into_iter().collect()
                }
            }
        });
        traced.ok()
    }

    fn held(&mut self) -> Option<Array> {
        let args: Vec<Array> = (0..1 + self.below(2)).map(|_| self.any()).collect();
        let traced = self.function(&args, false)?;
        if self.chance(60) {
            let policy = [Policy::Nothing, Policy::Dots, Policy::Everything][self.below(3)].clone();
            return self.push_all(checkpoint_of(&traced, &args, policy).ok()?);
        }
        let operands: Vec<Array> = args.into_iter().chain(traced.captures).collect();
        let results = bind_all(Op::new(Call { program: traced.program.into() }), &operands);
        self.push_all(results)
    }

    /// A function of one example over many.
    fn batch(&mut self) -> Option<Array> {
        let x = self.with_axes(1)?;
        let n = x.shape()[0].clone();
        if self.world.number(&n) == 0 {
            return None;
        }
        let fits = |a: &Array| a.rank() > 0 && a.shape()[0] == n;
        let y = if self.chance(50) { self.any_of(fits)? } else { self.any() };
        let mapped = [true, fits(&y) && self.chance(60)];
        let element = |a: &Array, on: bool| {
            let ty = a.ty().ok()?;
            Some(Array::of_type(if on { ty.with_shape(ty.shape().without(|k| k == 0)) } else { ty.clone() }))
        };
        let specs = [element(&x, true)?, element(&y, mapped[1])?];
        let traced = self.function(&specs, false)?;
        let mut batched = mapped.to_vec();
        batched.resize(2 + traced.captures.len(), false);
        let inputs: Vec<Array> = [x, y].into_iter().chain(traced.captures).collect();
        let (results, _) = vmap_on(&traced.program, &inputs, &batched, &n).ok()?;
        self.push_all(results)
    }

    /// The gradient of a function, inside of a program.
    fn slope(&mut self) -> Option<Array> {
        let x = self.any_of(|a| a.dtype().is_float())?;
        let args = [x, self.any()];
        let traced = self.function(&args, true)?;
        let inputs: Vec<Array> = args.into_iter().chain(traced.captures).collect();
        let active: Vec<bool> = (0..inputs.len()).map(|k| k == 0).collect();
        let results = slopes(&traced.program, &inputs, &active, None)?;
        self.push_all(results)
    }

    /// Forward substitution: each step reads what the steps before wrote.
    fn substitution(&mut self) -> Option<Array> {
        let x = self.any_of(|a| a.rank() == 2 && a.dtype().is_float() && a.shape()[0] == a.shape()[1])?;
        let n = self.dims(&x)[0];
        if !(2..=LONGEST).contains(&n) {
            return None;
        }
        let keep = self.chance(40);
        let start = x.index(0);
        let step = |c: &Array, i: &Array| {
            let row = x.index(i.clone());
            let value = c.index(i.clone()) - row.dot(c) * 0.25;
            let next = c.at(i.clone()).set(value);
            let out = if keep { c.clone() } else { next.clone() };
            (next, out)
        };
        let (last, all) = scan(step, start, &Array::arange(0, n as i32, 1));
        self.push_all([last, all])
    }
}

//! The steps: views, arithmetic, reductions, products, pieces, updates, picks.

use gradus::prelude::*;

use super::Desk;

impl Desk<'_> {
    /// Adds something to the desk; a step that finds nothing to do does nothing.
    pub(super) fn step(&mut self) {
        let _ = match self.below(42) {
            0..4 => self.unary(),
            4..9 => self.binary(),
            9..14 => {
                let x = self.any();
                let x = self.view(&x);
                self.push(x)
            }
            14..18 => {
                let x = self.any();
                let x = self.reduced(&x);
                self.push(x)
            }
            18..21 => self.product(),
            21 | 22 => self.pieces(),
            23 | 24 => self.update(),
            25 => self.picks(),
            26 => self.order(),
            27 => self.choice(),
            28 => self.cast(),
            29 => self.made(),
            30..34 => self.pattern(),
            34 => self.again(),
            40 => self.windows(),
            41 => self.convolution(),
            _ => self.control(),
        };
    }

    fn unary(&mut self) -> Option<Array> {
        let x = self.any();
        let y = match x.dtype() {
            DType::Bool => !&x,
            d if d.is_complex() => match self.below(5) {
                0 => x.conj(),
                1 => x.exp(),
                2 => x.real(),
                3 => x.abs(),
                _ => -&x,
            },
            d if d.is_float() => match self.below(16) {
                0 => x.sin(),
                1 => x.tanh(),
                2 => x.exp(),
                3 => x.abs(),
                4 => x.square(),
                5 => x.abs().sqrt(),
                6 => x.relu(),
                7 => -&x,
                8 => x.floor(),
                9 => &x * 2.0,
                10 => &x + 1.0,
                11 => x.cos(),
                12 => x.logistic(),
                13 => (x.square() + 1.0).log(),
                14 => x.square() + &x,
                _ => x.square() * 0.5 - &x,
            },
            d if d.is_unsigned() => !&x,
            _ => match self.below(3) {
                0 => -&x,
                1 => x.abs(),
                _ => &x + 1,
            },
        };
        self.push(y)
    }

    /// Two values that broadcast: the same one twice, another of its shape, a row, a column, a number.
    fn binary(&mut self) -> Option<Array> {
        let x = self.any();
        let y = match self.below(6) {
            0 => x.clone(),
            1 => {
                // A view of itself, where it has the shape.
                let y = self.view(&x);
                if y.shape() == x.shape() && y.dtype() == x.dtype() { y } else { self.like(&x) }
            }
            2 => {
                let axes = self.axes(&x);
                self.fold(&x, &axes, true)
            }
            3 => {
                let fits = |b: &Array| {
                    let rank = b.rank();
                    b.dtype() == x.dtype() && rank <= x.rank() && x.shape()[x.rank() - rank..] == b.shape()[..]
                };
                self.any_of(fits)?
            }
            _ => self.like(&x),
        };
        let z = match x.dtype() {
            DType::Bool => match self.below(3) {
                0 => &x & &y,
                1 => &x | &y,
                _ => &x ^ &y,
            },
            d if d.is_int() => match self.below(6) {
                0 => &x + &y,
                1 => &x * &y,
                2 => &x - &y,
                3 => x.maximum(&y),
                4 => &x & &y,
                _ => x.minimum(&y),
            },
            d if d.is_complex() => match self.below(3) {
                0 => &x * &y,
                1 => &x - &y,
                _ => &x + &y,
            },
            _ => match self.below(10) {
                0..3 => &x * &y,
                3 | 4 => &x + &y,
                5 => &x - &y,
                6 => &x * &y + &x,
                7 => &x / (y.square() + 1.0),
                8 => x.maximum(&y),
                _ => x.minimum(&y),
            },
        };
        self.push(z)
    }

    /// A view of a value, at times of a view of it.
    pub(super) fn view(&mut self, x: &Array) -> Array {
        let mut y = self.one_view(x);
        while self.chance(25) && y.ty().is_ok() {
            y = self.one_view(&y);
        }
        y
    }

    fn one_view(&mut self, x: &Array) -> Array {
        let rank = x.rank();
        let dims = self.dims(x);
        match self.below(10) {
            0 | 1 if rank > 1 => {
                let (a, b) = (self.axis(x), self.axis(x));
                x.swap_axes(a, if a == b { (b + 1) % rank as isize } else { b })
            }
            2 if rank > 1 => x.t(),
            3 if rank > 0 => {
                let axes = self.axes(x);
                x.flip(axes)
            }
            4 | 5 if rank > 0 => self.slice(x, &dims),
            6 => self.reshaped(x, &dims),
            7 => {
                let at = self.below(rank + 1) as isize;
                x.expand_dims(at)
            }
            8 if rank < 4 => self.spread(x),
            9 if rank > 0 => {
                let axis = self.axis(x);
                match self.below(4) {
                    0 => x.roll([1, -1, 3][self.below(3)], axis),
                    1 => x.repeat(2, axis),
                    2 if rank > 1 => x.diagonal(),
                    _ => {
                        let mut reps = vec![1usize; rank];
                        reps[axis as usize] = 2;
                        x.tile(reps)
                    }
                }
            }
            _ => x.clone(),
        }
    }

    fn slice(&mut self, x: &Array, dims: &[usize]) -> Array {
        let mut index: Vec<Index> = Vec::new();
        for n in dims {
            index.push(match self.below(7) {
                0 => Index::step(1.., 1),
                1 => Index::step(..-1, 1),
                2 => Index::step(.., 2),
                3 => Index::step(.., -1),
                4 if *n > 1 && index.len() + 1 < dims.len() => {
                    let at = self.below(*n) as i64;
                    if self.chance(50) { Index::AtDim(Dim::from(at)) } else { Index::step(at..at + 1, 1) }
                }
                _ => Index::step(.., 1),
            });
        }
        x.index(index)
    }

    /// Two axes as one, one as two, all as one, or ones in between.
    fn reshaped(&mut self, x: &Array, dims: &[usize]) -> Array {
        let mut shape: Vec<Dim> = x.shape().to_vec();
        match self.below(4) {
            0 => return x.flatten(),
            1 if shape.len() > 1 => {
                let at = self.below(shape.len() - 1);
                let next = shape.remove(at + 1);
                shape[at] = &shape[at] * &next;
            }
            2 if !shape.is_empty() => {
                let at = self.below(shape.len());
                let n = dims[at];
                if let Some(k) = (2..n).find(|k| n.is_multiple_of(*k))
                    && shape[at].constant().is_some()
                {
                    shape[at] = Dim::from(n / k);
                    shape.insert(at + usize::from(self.chance(50)), Dim::from(k));
                }
            }
            _ => shape.rotate_left(1.min(dims.len())),
        }
        x.reshape(Shape::from(shape))
    }

    /// Along new axes, or along axes of one element.
    fn spread(&mut self, x: &Array) -> Array {
        let mut shape: Vec<Dim> = x.shape().to_vec();
        if let Some(k) = shape.iter().position(|d| d.constant() == Some(1))
            && self.chance(50)
        {
            shape[k] = self.world.dim(&mut self.source);
            return x.broadcast_to(Shape::from(shape));
        }
        let at = self.below(shape.len() + 1);
        shape.insert(at, self.world.dim(&mut self.source));
        x.expand_dims(at as isize).broadcast_to(Shape::from(shape))
    }

    /// A reduction of some sort over some axes.
    pub(super) fn reduced(&mut self, x: &Array) -> Array {
        let (axes, keep) = (self.axes(x), self.chance(40));
        self.fold(x, &axes, keep)
    }

    fn fold(&mut self, x: &Array, axes: &[usize], keep: bool) -> Array {
        let dtype = x.dtype();
        let kind = match dtype {
            DType::Bool => 5 + self.below(2),
            d if d.is_complex() => 0,
            d if d.is_int() => [0, 1, 2][self.below(3)],
            _ => [0, 0, 0, 1, 1, 2, 3, 4, 7][self.below(9)],
        };
        let axes = axes.to_vec();
        match (kind, keep) {
            (0, true) => x.sum_keep(axes),
            (0, false) => x.sum_axes(axes),
            (1, true) => x.max_keep(axes),
            (1, false) => x.max_axes(axes),
            (2, true) => x.min_keep(axes),
            (2, false) => x.min_axes(axes),
            (3, true) => x.mean_keep(axes),
            (3, false) => x.mean_axes(axes),
            (4, true) => x.prod_keep(axes),
            (4, false) => x.prod_axes(axes),
            (5, true) => x.any_keep(axes),
            (5, false) => x.any_axes(axes),
            (6, true) => x.all_keep(axes),
            (6, false) => x.all_axes(axes),
            (_, true) => x.logsumexp_keep(axes),
            (_, false) => x.logsumexp_axes(axes),
        }
    }

    /// Parts joined, or something around: pads, concatenations, stacks.
    fn pieces(&mut self) -> Option<Array> {
        let x = self.with_axes(1)?;
        let axis = self.axis(&x);
        let y = match self.below(6) {
            0..3 => {
                let least = -i64::from(self.chance(20) && self.dims(&x).iter().all(|n| *n > 2));
                let counts: Vec<(i64, i64)> = (0..x.rank())
                    .map(
                        |_| if self.chance(50) { (0, 0) } else { (least + self.below(3) as i64, self.below(3) as i64) },
                    )
                    .collect();
                match x.dtype() {
                    DType::Bool => x.pad(&counts, true),
                    d if d.is_float() && self.chance(30) => x.pad(&counts, 1.5),
                    _ => x.pad(&counts, 0),
                }
            }
            3 => {
                let y = self.like(&x);
                Array::concatenate([&x, &y], axis)
            }
            4 => {
                let y = self.view(&x);
                let y = if y.rank() == x.rank() && y.dtype() == x.dtype() { y } else { x.clone() };
                Array::concatenate([&y, &x, &y], axis)
            }
            _ => {
                let y = self.like(&x);
                let at = self.below(x.rank() + 1) as isize;
                Array::stack([&x, &y, &x], at)
            }
        };
        self.push(y)
    }

    /// A value with a part replaced, at times by a part or view of itself.
    fn update(&mut self) -> Option<Array> {
        let x = self.with_axes(1)?;
        let dims = self.dims(&x);
        let y = match self.below(8) {
            0 => x.at(1..).set(x.index(..-1)),
            1 => x.at(..-1).set(x.index(1..)),
            2 => x.at(..).set(x.flip(0)),
            3 if x.rank() == 2 && dims[0] == dims[1] => x.at(..).set(x.t()),
            4 => {
                let part = x.index(1..);
                let other = self.like(&part);
                x.at(1..).add(other)
            }
            5 => {
                let (start, row) = (self.counter(), self.below(dims[0].max(1)));
                let value = x.index(row as i64);
                x.at(start).set(value)
            }
            6 => {
                let sizes: Vec<Dim> =
                    dims.iter().map(|n| Dim::from(if self.chance(50) { *n } else { n.div_ceil(2) })).collect();
                let starts: Vec<Array> = dims.iter().map(|_| self.counter()).collect();
                let part = x.dynamic_slice(&starts, Shape::from(sizes));
                if self.chance(40) {
                    return self.push(part);
                }
                let back: Vec<Array> = dims.iter().map(|_| self.counter()).collect();
                x.dynamic_update_slice(&part, &back)
            }
            _ => {
                let part = self.slice(&x, &dims);
                let other = self.like(&part);
                x.dynamic_update_slice(&other, &vec![Array::from(0); x.rank()])
            }
        };
        self.push(y)
    }

    /// A small whole number that is only known when the program runs, or a constant.
    pub(super) fn counter(&mut self) -> Array {
        if self.chance(40) {
            return Array::from(self.below(4) as i32);
        }
        match self.any_of(|a| a.rank() == 0 && a.dtype() == DType::I32) {
            Some(x) => x,
            None => {
                let x = self.any();
                let x = if x.dtype().is_complex() { x.real() } else { x };
                let x = x.cast(DType::F64).sum();
                x.clamp(-1.0, 9.0).cast(DType::I32)
            }
        }
    }

    /// Places, some of them outside.
    fn places(&mut self, count: usize, n: usize) -> Array {
        if self.chance(30)
            && let Some(x) = self.any_of(|a| a.rank() == 1 && a.dtype().is_int() && a.dtype() != DType::Bool)
        {
            return x;
        }
        let numbers: Vec<i32> = (0..count).map(|_| self.below(n + 2) as i32 - 1).collect();
        Array::from_vec(numbers, [count])
    }

    fn picks(&mut self) -> Option<Array> {
        let x = self.with_axes(1)?;
        let dims = self.dims(&x);
        let axis = self.axis(&x);
        let n = dims[axis as usize];
        let count = 1 + self.below(9);
        let places = self.places(count, n);
        let y = match self.below(7) {
            0 | 1 => x.take(&places, axis),
            2 => {
                let value = x.take(&places, 0);
                x.at(&places).set(value)
            }
            3 => x.at(&places).add(x.take(&places, 0)),
            4 => x.at(&places).max(x.take(&places, 0)),
            5 => {
                let order = if x.dtype().is_complex() { return None } else { x.argsort(axis) };
                x.take_along_axis(&order, axis)
            }
            _ => x.index(&places),
        };
        self.push(y)
    }

    /// What works along an axis: sorts, running sums.
    fn order(&mut self) -> Option<Array> {
        let x = self.any_of(|a| a.rank() > 0 && !a.dtype().is_complex() && a.dtype() != DType::Bool)?;
        let axis = self.axis(&x);
        let y = match self.below(9) {
            0 => x.sort(axis),
            1 => x.sort_descending(axis),
            2 => x.argsort(axis),
            3 => x.cumsum(axis),
            4 => x.cumprod(axis),
            5 => x.cummax(axis),
            6 => x.flip(axis).cumsum(axis).flip(axis),
            7 => {
                let (values, places) = x.top_k(1);
                self.push(places)?;
                values
            }
            _ => x.argmax_axis(axis),
        };
        self.push(y)
    }

    fn choice(&mut self) -> Option<Array> {
        let x = self.any_of(|a| !a.dtype().is_complex() && a.dtype() != DType::Bool)?;
        let y = self.like(&x);
        let mask = match self.below(5) {
            0 => x.eq(x.max()),
            1 => x.gt(&y),
            2 => x.ge(x.zeros_like()),
            3 => x.lt(&x),
            _ => x.eq(&y),
        };
        self.push(mask.clone())?;
        let z = match self.below(3) {
            0 => mask.cast(x.dtype()).sum(),
            1 => mask.select(&x, &y),
            _ => mask.select(&y, x.zeros_like()),
        };
        self.push(z)
    }

    fn cast(&mut self) -> Option<Array> {
        let x = self.any();
        let d = self.world.dtypes[self.source.below(self.world.dtypes.len())];
        let dtype = [d, d, d, DType::F32, DType::F64, DType::I32, DType::Bool][self.below(7)];
        if x.dtype().is_complex() && !dtype.is_complex() {
            return None;
        }
        // A float outside of the integers becomes the nearest.
        let y = x.cast(dtype);
        self.push(y)
    }

    /// Something from nothing: numbers in a row, a triangle, a captured array.
    fn made(&mut self) -> Option<Array> {
        let x = self.any();
        let y = match self.below(5) {
            0 if x.rank() > 0 => {
                let axis = self.axis(&x);
                Array::iota(if x.dtype() == DType::Bool { DType::I32 } else { x.dtype() }, x.shape(), axis)
            }
            1 if x.rank() > 1 && x.dtype() != DType::Bool => x.tril([0, 1, -1][self.below(3)]),
            2 if x.rank() > 1 && x.dtype() != DType::Bool => x.triu(0),
            3 => {
                // Large enough to be an input that nobody sees.
                let dims: Vec<usize> = x.known_dims().ok()?;
                let count: usize = dims.iter().product();
                let numbers: Vec<f64> = (0..count).map(|i| (i % 23) as f64 * 0.25 - 2.0).collect();
                Array::from_vec(numbers, dims).cast(x.dtype())
            }
            _ => x.ones_like(),
        };
        self.push(y)
    }

    /// The same operation once more: what sharing is for.
    fn again(&mut self) -> Option<Array> {
        let x = self.any_of(|a| a.dtype().is_inexact())?;
        let (a, b) = (&x * 2.0, &x * 2.0);
        let (a, b) = if self.chance(50) { (a.t(), b.t()) } else { (a, b) };
        self.push(a.clone())?;
        self.push(&a * &b)
    }
}

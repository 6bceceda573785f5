//! Steps that are several operations which belong together: products of every form, rows that are reduced and used again.

use gradus::prelude::*;

use super::Desk;

impl Desk<'_> {
    /// A product. One value may stand on both sides, or what another product needs be made just before.
    pub(super) fn product(&mut self) -> Option<Array> {
        let x = self.any_of(|a| a.rank() > 0 && a.rank() < 4 && a.dtype() != DType::Bool)?;
        let work = |d: &Desk<'_>, a: &Array, b: &Array| {
            let (a, b) = (d.world.count(a.shape()), d.world.count(b.shape()));
            a.saturating_mul(b) <= 40_000_000
        };
        let y = match self.below(12) {
            0 | 1 if x.rank() == 2 => {
                let y = self.changed(&x);
                let y = if self.chance(60) { x.clone() } else { y };
                if !work(self, &x, &y) {
                    return None;
                }
                if self.chance(50) { x.matmul(&y.t()) } else { x.t().matmul(&y) }
            }
            2 if x.rank() == 2 => {
                let dims = self.dims(&x);
                if dims[0] == dims[1] { x.matmul(&x) } else { x.matmul(&x.index((.., ..)).t()) }
            }
            3 => x.inner(&self.like(&x)),
            4 if x.rank() == 1 => {
                let y = self.any_of(|a| a.rank() == 1 && a.dtype() == x.dtype())?;
                x.outer(&y)
            }
            5 if x.rank() == 2 => {
                let (a, b) = (x.clone(), self.like(&x));
                match self.below(5) {
                    0 => Array::einsum("ik,jk->ij", [&a, &b]),
                    1 => Array::einsum("ik,il->kl", [&a, &b]),
                    2 => Array::einsum("ij,ij->i", [&a, &b]),
                    3 => Array::einsum("ij,ij->", [&a, &b]),
                    _ => Array::einsum("ij,kj->jik", [&a, &b]),
                }
            }
            6 if x.rank() == 3 => {
                let b = self.like(&x);
                match self.below(4) {
                    0 => Array::einsum("bij,bkj->bik", [&x, &b]),
                    1 => Array::einsum("bij,bij->bi", [&x, &b]),
                    2 => Array::einsum("bij,bik->bjk", [&x, &b]),
                    _ => Array::einsum("bij,cij->bc", [&x, &b]),
                }
            }
            7 if x.rank() == 2 => {
                // A matrix times what is made of a vector just before.
                let n = x.shape()[1].clone();
                let v = self.any_of(|a| a.rank() == 1 && a.dtype() == x.dtype() && a.shape()[0] == n);
                let v = v.unwrap_or_else(|| x.index(0));
                let v = self.changed(&v);
                x.matmul(&v)
            }
            8 if x.rank() == 2 => {
                let v = x.sum_axes(0);
                let w = x.matmul(&v);
                let w = self.changed(&w);
                if self.chance(50) { x.t().matmul(&w) } else { w.matmul(&x) }
            }
            _ => {
                // Whatever fits: the last axis of one and the axis before the last of the other.
                let n = x.shape()[x.rank() - 1].clone();
                let fits = |b: &Array| {
                    let at = b.rank().saturating_sub(2);
                    b.dtype() == x.dtype() && b.rank() > 0 && b.rank() < 3 && b.shape()[at] == n
                };
                let y = self.any_of(fits)?;
                if !work(self, &x, &y) {
                    return None;
                }
                let y = self.changed(&y);
                x.matmul(&y)
            }
        };
        self.push(y)
    }

    /// A value, or something elementwise made of it on the spot.
    pub(super) fn changed(&mut self, x: &Array) -> Array {
        if !x.dtype().is_float() {
            return x.clone();
        }
        match self.below(8) {
            0 => x.tanh(),
            1 => x * 2.0,
            2 => x - &self.like(x),
            3 if x.rank() > 0 => x.softmax(x.rank() as isize - 1),
            4 => x * 2.0 + 1.0,
            5 if x.rank() > 0 => x.flip(0),
            _ => x.clone(),
        }
    }

    /// Rows or columns that are reduced and used again, one way or another.
    pub(super) fn pattern(&mut self) -> Option<Array> {
        let x = self.any_of(|a| a.rank() > 0 && a.dtype().is_float())?;
        let axes = self.axes(&x);
        let y = match self.below(10) {
            0 => x.softmax(axes),
            1 => x.log_softmax(axes),
            2 => &x - x.mean_keep(axes),
            3 => (&x - x.mean_keep(axes.clone())) / (x.var_keep(axes, 0) + 1e-3).sqrt(),
            4 => {
                let s = x.square() + &x;
                let top = s.max_keep(axes);
                s.eq(&top).cast(x.dtype())
            }
            5 => &x / (x.square().sum_keep(axes) + 1.0).sqrt(),
            6 => {
                let s = x.sum_axes(axes.clone());
                let at = self.below(s.rank() + 1) as isize;
                let s = s.expand_dims(at);
                let counts: Vec<(i64, i64)> =
                    (0..s.rank()).map(|k| if k as isize == at { (1, 1) } else { (0, 0) }).collect();
                let s = s.pad(&counts, 0.0);
                self.view(&s)
            }
            7 => {
                // A result that is turned, beside a reduction of the same.
                let twice = &x * 2.0;
                let turned = self.view(&twice);
                self.push(turned)?;
                self.fold_one(&x, axes)
            }
            8 => {
                let m = x.max_keep(axes.clone());
                (&x - &m).exp().sum_axes(axes)
            }
            _ => {
                let c = x.cumsum(axes.first().copied().unwrap_or(0) as isize);
                &c / (c.abs().max() + 1.0)
            }
        };
        let y = if self.chance(30) { self.view(&y) } else { y };
        self.push(y)
    }

    fn fold_one(&mut self, x: &Array, axes: Vec<usize>) -> Array {
        match self.below(3) {
            0 => x.sum_axes(axes),
            1 => x.max_axes(axes),
            _ => x.sum(),
        }
    }
}

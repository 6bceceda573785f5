//! Small arrays as scalars: every operation that can be written out element by element.

use gradus_core::primitives::Op as Primitive;
use gradus_core::primitives::dot::DotGeneral;
use gradus_core::primitives::reduce::NARROW;
use gradus_core::primitives::shaping::{Concatenate, Iota, Pad};
use gradus_core::program::{Equation, Program};
use smallvec::SmallVec;

use super::emit::{Emitter, form_of};
use super::fusion::reduction;
use super::values::{moves, view_of};
use super::views::{Dims, View, count, fixed, offsets, row_major};
use crate::ir::{Buffer, FoldOp, LANES, Op, Ty, Value};
use crate::size::Size;

/// Multiplications that a product may be unrolled to.
const LARGEST_PRODUCT: usize = 512;

/// Whether [`unroll`] can write an operation out that is not elementwise. Types are computing ones; sizes are the
/// caller's business.
pub(super) fn unrolls(op: &Primitive, dims: &dyn Fn(usize) -> Dims) -> bool {
    if let Some(d) = op.downcast::<DotGeneral>() {
        let (l, r) = (dims(0), dims(1));
        let contracted: Size = d.lhs_contract.iter().map(|a| l[*a]).product();
        let batch: Size = d.lhs_batch.iter().map(|a| l[*a]).product();
        let work = (count(&l) * count(&r)).over(contracted * batch);
        return work.is_some_and(|work| work.is_few(LARGEST_PRODUCT));
    }
    op.is::<Iota>() || op.is::<Concatenate>() || op.is::<Pad>() || moves(op) || reduction(op).is_some()
}

/// Operands of an operation inside a point: their elements there and their dimensions there.
pub(super) struct Inner<'a> {
    pub elements: &'a [Value],
    /// All known.
    pub dims: &'a [Size],
}

/// An equation written out. `lead`: how many leading axes the operation's own axis numbers count that are not here;
/// `dims`, `ty`: of the result, here.
pub(super) fn unroll(
    e: &mut Emitter,
    (p, equation): (&Program, &Equation),
    lead: usize,
    xs: &[Inner<'_>],
    dims: &[Size],
    ty: Ty,
) -> Vec<Value> {
    let (op, total) = (equation.op(), count(dims).known().unwrap_or(0));
    if let Some((fold, axes)) = reduction(op) {
        let axes: Vec<usize> = axes.iter().filter(|a| **a >= lead).map(|a| a - lead).collect();
        if axes.is_empty() {
            // Nothing is folded, not even into the identity: -0.0 stays.
            return xs[0].elements.to_vec();
        }
        return reduce(e, fold, &xs[0], &axes);
    }
    if let Some(d) = op.downcast::<DotGeneral>() {
        return dot(e, d, lead, xs, ty);
    }
    if let Some(c) = op.downcast::<Concatenate>() {
        return concatenate(c.axis - lead, xs, dims);
    }
    if let Some(p) = op.downcast::<Pad>() {
        return pad(p, lead, xs, dims);
    }
    if let Some(i) = op.downcast::<Iota>() {
        let axis = i.axis - lead;
        let index = View {
            strides: (0..dims.len()).map(|a| Size::from(i64::from(a == axis))).collect(),
            ..View::dense(Buffer(0), dims)
        };
        return places(&index).map(|k| e.number(ty, k as f64)).collect();
    }
    if moves(op) {
        let x = View::dense(Buffer(0), xs[0].dims);
        return match view_of(op, &x, dims) {
            Some(view) => places(&view).map(|i| xs[0].elements[i as usize]).collect(),
            None => xs[0].elements.to_vec(),
        };
    }
    let operands: SmallVec<[&[Value]; 3]> = xs.iter().map(|x| x.elements).collect();
    each(e, (p, equation), &operands, total)
}

/// The scalar form of an equation on so many elements of each operand, one after the other.
pub(super) fn each(
    e: &mut Emitter,
    (p, equation): (&Program, &Equation),
    operands: &[&[Value]],
    n: usize,
) -> Vec<Value> {
    // A form that does not fit together was said before.
    let Some(form) = form_of(p, equation).ok().flatten() else { return Vec::new() };
    (0..n)
        .map(|k| {
            let args: SmallVec<[Value; 3]> = operands.iter().map(|o| o[k]).collect();
            form.write(e, &args)
        })
        .collect()
}

/// The places of a view's elements in row-major order; all about it is known.
pub(super) fn places(view: &View) -> impl Iterator<Item = i64> + use<> {
    let base = view.base.offset;
    offsets(&view.dims, &view.strides).into_iter().map(move |k| (base + k).constant().unwrap_or(0))
}

/// Combines scalars in the order of every reduction; `op(identity, ·)` in the end.
pub(super) fn tree(e: &mut Emitter, fold: FoldOp, xs: &[Value]) -> Value {
    let ty = xs.first().map_or(Ty::F64, |x| e.ty(*x));
    let identity = e.constant(ty, fold.identity(ty));
    match combined(e, fold, xs) {
        Some(x) => finish_fold(e, fold, identity, x),
        None => identity,
    }
}

/// The same without the end: 32 lanes, then halves.
pub(super) fn combined(e: &mut Emitter, fold: FoldOp, xs: &[Value]) -> Option<Value> {
    let mut lanes: Vec<Value> = Vec::new();
    for (i, x) in xs.iter().enumerate() {
        match lanes.get(i % LANES).copied() {
            Some(lane) => lanes[i % LANES] = e.op(fold.op(), &[lane, *x]),
            None => lanes.push(*x),
        }
    }
    let mut w = LANES / 2;
    while w > 0 {
        for l in 0..w {
            if l + w < lanes.len() {
                lanes[l] = e.op(fold.op(), &[lanes[l], lanes[l + w]]);
            }
        }
        lanes.truncate(w);
        w /= 2;
    }
    lanes.first().copied()
}

/// The identity comes in only where it can change a bit: the sign of a zero sum.
pub(super) fn finish_fold(e: &mut Emitter, fold: FoldOp, identity: Value, x: Value) -> Value {
    if fold == FoldOp::Add && e.ty(x).is_float() { e.op(Op::Add, &[identity, x]) } else { x }
}

/// The trailing run of reduced axes in tree order, the others from left to right; see [`tree`]. Small kept axes behind the
/// reduced ones do not break a run.
fn reduce(e: &mut Emitter, fold: FoldOp, x: &Inner<'_>, axes: &[usize]) -> Vec<Value> {
    let ty = e.ty(x.elements[0]);
    let fold = fold.on(ty);
    let sized: Vec<usize> = (0..x.dims.len()).filter(|a| x.dims[*a] != 1).collect();
    let reduced = |a: &usize| axes.contains(a);
    // Few kept elements behind the last reduced axis do not count; behind many there is no run.
    let behind: Vec<usize> = sized.iter().rev().take_while(|a| !reduced(a)).copied().collect();
    let few = behind.iter().map(|a| x.dims[*a]).product::<Size>().is_few(NARROW);
    let behind = if few { behind.len() } else { 0 };
    let run: Vec<usize> = sized[..sized.len() - behind].iter().rev().take_while(|a| reduced(a)).copied().collect();
    let run: Vec<usize> = run.into_iter().rev().collect();
    let before: Vec<usize> = sized.iter().filter(|a| reduced(a) && !run.contains(a)).copied().collect();
    let kept: Vec<usize> = (0..x.dims.len()).filter(|a| !axes.contains(a)).collect();
    let strides = row_major(x.dims);
    let offsets = |list: &[usize]| -> Vec<i64> {
        let dims: Dims = list.iter().map(|a| x.dims[*a]).collect();
        let view = View { strides: list.iter().map(|a| strides[*a]).collect(), ..View::dense(Buffer(0), &dims) };
        places(&view).collect()
    };
    let (kept, run, before) = (offsets(&kept), offsets(&run), offsets(&before));
    let identity = e.constant(ty, fold.identity(ty));
    kept.iter()
        .map(|k| {
            let mut total = None;
            for b in &before {
                let xs: Vec<Value> = run.iter().map(|r| x.elements[(k + b + r) as usize]).collect();
                let part = tree(e, fold, &xs);
                total = Some(total.map_or(part, |t| e.op(fold.op(), &[t, part])));
            }
            match total {
                Some(t) if before.len() > 1 => finish_fold(e, fold, identity, t),
                Some(t) => t,
                None => identity,
            }
        })
        .collect()
}

fn dot(e: &mut Emitter, d: &DotGeneral, lead: usize, xs: &[Inner<'_>], ty: Ty) -> Vec<Value> {
    let [l, r] = xs else { return Vec::new() };
    // Leading axes that are shared lead both operands; leading free ones only the left.
    let shared = d.lhs_batch.iter().filter(|a| **a < lead).count();
    let here =
        |axes: &[usize], lead: usize| -> Vec<usize> { axes.iter().filter(|a| **a >= lead).map(|a| a - lead).collect() };
    let right_lead = shared;
    let (lc, rc) = (here(&d.lhs_contract, lead), here(&d.rhs_contract, right_lead));
    let (lb, rb) = (here(&d.lhs_batch, lead), here(&d.rhs_batch, right_lead));
    let free = |dims: &[Size], c: &[usize], b: &[usize]| -> Vec<usize> {
        (0..dims.len()).filter(|a| !c.contains(a) && !b.contains(a)).collect()
    };
    let offsets = |dims: &[Size], list: &[usize]| -> Vec<i64> {
        let strides = row_major(dims);
        let some: Dims = list.iter().map(|a| dims[*a]).collect();
        let view = View { strides: list.iter().map(|a| strides[*a]).collect(), ..View::dense(Buffer(0), &some) };
        places(&view).collect()
    };
    let (lf, rf) = (offsets(l.dims, &free(l.dims, &lc, &lb)), offsets(r.dims, &free(r.dims, &rc, &rb)));
    let (lc, rc) = (offsets(l.dims, &lc), offsets(r.dims, &rc));
    let (lb, rb) = (offsets(l.dims, &lb), offsets(r.dims, &rb));
    let mut out = Vec::new();
    // Sums go from zero on: one of nothing but -0 is 0.
    let zero = e.number(ty, 0.0);
    for (b, c) in lb.iter().zip(&rb) {
        for i in &lf {
            for j in &rf {
                let mut sum = zero;
                for (k, m) in lc.iter().zip(&rc) {
                    let (x, y) = (l.elements[(b + i + k) as usize], r.elements[(c + j + m) as usize]);
                    sum = match ty.is_float() {
                        true => e.op(Op::Fma, &[x, y, sum]),
                        false => {
                            let xy = e.op(Op::Mul, &[x, y]);
                            e.op(Op::Add, &[sum, xy])
                        }
                    };
                }
                out.push(sum);
            }
        }
    }
    out
}

fn concatenate(axis: usize, xs: &[Inner<'_>], dims: &[Size]) -> Vec<Value> {
    let outer: usize = fixed(&dims[..axis]).iter().product();
    let mut out = Vec::new();
    for o in 0..outer {
        for x in xs {
            let run = x.elements.len() / outer.max(1);
            out.extend_from_slice(&x.elements[o * run..(o + 1) * run]);
        }
    }
    out
}

fn pad(p: &Pad, lead: usize, xs: &[Inner<'_>], dims: &[Size]) -> Vec<Value> {
    let [x, fill] = xs else { return Vec::new() };
    let (old, new) = (fixed(x.dims), fixed(dims));
    let dense = |dims: &[Size]| -> Vec<i64> { row_major(dims).iter().filter_map(|s| s.constant()).collect() };
    let (from, to) = (dense(x.dims), dense(dims));
    let mut out = vec![fill.elements[0]; new.iter().product()];
    'elements: for (k, v) in x.elements.iter().enumerate() {
        let mut at = 0;
        for a in 0..new.len() {
            let i = k as i64 / from[a] % old[a].max(1) as i64;
            let low = p.low[a + lead].constant().unwrap_or(0);
            let place = low + i * (p.interior[a + lead] as i64 + 1);
            if !(0..new[a] as i64).contains(&place) {
                continue 'elements;
            }
            at += place * to[a];
        }
        out[at as usize] = *v;
    }
    out
}

//! Sort: by keys where the comparator compares the same function of both sides, by counting who comes before where it does anything else.

use gradus_core::error::Result;
use gradus_core::primitives::Op;
use gradus_core::primitives::elementwise::{And, Compare, Direction, Or};
use gradus_core::primitives::index::{Scatter, ScatterKind};
use gradus_core::primitives::sort::Sort;
use gradus_core::program::{Atom, Equation};
use gradus_core::trace::{Traced, bind, bind_all};
use gradus_core::{Array, DType, Dim, Program};

use super::elementwise::{convert, total_order};
use super::regions::{on_elements, with_outputs};
use super::shaping::{broadcast_in_dim, iota, permute, reshape};
use super::{Answer, On, many};

/// A key that decides the order: which value of the comparator it is on the left side, and which way it goes.
struct Key {
    left: Atom,
    descending: bool,
}

/// The comparator as keys, the first decides first.
fn keys(body: &Traced) -> Option<Vec<Key>> {
    let p = &body.program;
    let [output] = p.outputs() else { return None };
    let mut keys = Vec::new();
    lexicographic(p, *output, &mut keys)?;
    Some(keys)
}

fn definition(p: &Program, atom: Atom) -> Option<&Equation> {
    let value = atom.value()?;
    p.equations().iter().find(|e| e.results().any(|r| r == value))
}

/// `a < b`, or `a < b or (a == b and rest)` in any order of operands.
fn lexicographic(p: &Program, atom: Atom, keys: &mut Vec<Key>) -> Option<()> {
    let e = definition(p, atom)?;
    if e.op().is::<Or>() {
        let [x, y] = p.operands(e) else { return None };
        let (strict, both) = if definition(p, *y)?.op().is::<And>() { (*x, *y) } else { (*y, *x) };
        let both = definition(p, both).filter(|e| e.op().is::<And>())?;
        let (left, right, descending) = side(p, strict)?;
        let [x, y] = p.operands(both) else { return None };
        let is_equality = |a: Atom| {
            let e = definition(p, a)?;
            let [l, r] = p.operands(e) else { return None };
            let same = (*l == left && *r == right) || (*l == right && *r == left);
            (e.op().downcast::<Compare>()?.direction == Direction::Eq && same).then_some(())
        };
        let rest = match (is_equality(*x), is_equality(*y)) {
            (Some(()), _) => *y,
            (None, Some(())) => *x,
            (None, None) => return None,
        };
        keys.push(Key { left, descending });
        return lexicographic(p, rest, keys);
    }
    let (left, _, descending) = side(p, atom)?;
    keys.push(Key { left, descending });
    Some(())
}

/// A strict comparison of a function of the left numbers with the same function of the right ones.
fn side(p: &Program, atom: Atom) -> Option<(Atom, Atom, bool)> {
    let e = definition(p, atom)?;
    let [a, b] = p.operands(e) else { return None };
    let descending = match e.op().downcast::<Compare>()?.direction {
        Direction::Lt => false,
        Direction::Gt => true,
        _ => return None,
    };
    let left = with_outputs(p, "key", &[*a]).ok()?;
    let right = with_outputs(p, "key", &[*b]).ok()?;
    // The left numbers are the even inputs, and the right side is the left one with its inputs exchanged.
    let reads = |p: &Program, odd: usize| p.read_inputs().iter().enumerate().all(|(i, read)| !read || i % 2 == odd);
    let own = p.inputs().len();
    let swapped = exchanged(&right)?;
    (own.is_multiple_of(2) && reads(&left, 0) && reads(&right, 1) && swapped.computes_same(&left))
        .then_some((*a, *b, descending))
}

/// The same program with each pair of inputs exchanged.
fn exchanged(p: &Program) -> Option<Program> {
    let mut b = gradus_core::program::Builder::new(p.name());
    let inputs = p.inputs().iter().map(|t| b.input(t.clone()).map(Atom::from)).collect::<Result<Vec<_>>>().ok()?;
    let mut values: Vec<Option<Atom>> = vec![None; p.value_count()];
    for (i, slot) in values.iter_mut().enumerate().take(inputs.len()) {
        *slot = inputs.get(i ^ 1).copied();
    }
    let read = |b: &mut gradus_core::program::Builder, values: &[Option<Atom>], a: Atom| match p.constant(a) {
        Some(c) => Some(b.constant(c.clone())),
        None => a.value().and_then(|v| values.get(v.index()).copied().flatten()),
    };
    for e in p.equations() {
        let operands = p.operands(e).iter().map(|a| read(&mut b, &values, *a)).collect::<Option<Vec<_>>>()?;
        let made: Vec<_> = b.equation(e.op().clone(), &operands, e.place()).ok()?.results().collect();
        e.results().zip(made).for_each(|(old, new)| values[old.index()] = Some(new.into())); // invariant: a place for each value
    }
    let outputs = p.outputs().iter().map(|a| read(&mut b, &values, *a)).collect::<Option<Vec<_>>>()?;
    Some(b.finish(outputs))
}

impl On<'_, '_> {
    pub(super) fn sort(&mut self) -> Answer {
        let xs = self.xs()?;
        let Some(first) = xs.first().cloned() else { return Err(self.wrong("it has no operand")) };
        let axis = self.op.attributes.integer("dimension").unwrap_or(-1);
        let axis = if axis < 0 { axis + first.rank() as i64 } else { axis };
        let axis = self.natural("dimension", axis)?;
        let body = self.traced_as_said(0)?;
        let plain = body.captures.is_empty();
        match keys(&body).filter(|_| plain) {
            Some(keys) => self.by_keys(&body, &keys, &xs, axis),
            None => self.by_counting(&body, &xs, axis),
        }
    }

    fn by_keys(&mut self, body: &Traced, keys: &[Key], xs: &[Array], axis: usize) -> Answer {
        let Some(first) = xs.first() else { return Ok(None) };
        let p = &body.program;
        // One operand that is its own key needs no other.
        if let ([key], [x]) = (keys, xs)
            && key.left.value().is_some_and(|v| v.index() == 0)
        {
            return many([bind(Op::new(Sort { axis, keys: 1, descending: key.descending }), std::slice::from_ref(x))]);
        }
        let pairs: Vec<Array> = xs.iter().flat_map(|x| [x.clone(), x.clone()]).collect();
        let mut operands = Vec::new();
        for key in keys {
            let mut of_left = body.clone();
            of_left.program = with_outputs(p, "key", &[key.left])?;
            let values = on_elements(&of_left, &pairs, first.shape())?.swap_remove(0);
            // All keys ascend: those that descend are turned as integers, which have no NaN to stay behind.
            operands.push(match (key.descending, keys.len()) {
                (false, _) => values,
                (true, _) if values.dtype() == DType::Bool => !values,
                (true, _) => !total_order(&canonical(&values)),
            });
        }
        let count = operands.len();
        operands.extend_from_slice(xs);
        let sorted = bind_all(Op::new(Sort { axis, keys: count, descending: false }), &operands);
        if let Some(e) = sorted.first().and_then(Array::error) {
            return Err(e.clone());
        }
        many(sorted.into_iter().skip(count))
    }

    /// Any comparator: each element goes to the place of as many as come before it. A pair is compared once, so whatever a comparator says of equals, it is in
    /// the order of a stable sort.
    fn by_counting(&mut self, body: &Traced, xs: &[Array], axis: usize) -> Answer {
        let Some(first) = xs.first() else { return Ok(None) };
        let rank = first.rank();
        let n = first.dim(axis as isize);
        // Rows along the last axis; then `left[.., i, j]` is element j and `right[.., i, j]` element i.
        let order: Vec<usize> = (0..rank).filter(|a| *a != axis).chain([axis]).collect();
        let rows: Vec<Array> = xs.iter().map(|x| permute(x, order.clone())).collect();
        let Some(shape) = rows.first().map(|r| r.shape().inserted(rank, n.clone())) else { return Ok(None) };
        let outer: Vec<usize> = (0..rank - 1).collect();
        let over = |x: &Array, last: usize| broadcast_in_dim(x, &shape, &[outer.as_slice(), &[last]].concat());
        let pairs: Vec<Array> = rows.iter().flat_map(|x| [over(x, rank), over(x, rank - 1)]).collect();
        let before = on_elements(body, &pairs, &shape)?.swap_remove(0);
        let (i, j) = (iota(DType::I64, shape.clone(), rank - 1), iota(DType::I64, shape.clone(), rank));
        // A later element comes first if it is less; an earlier one unless this one is less.
        let mut turned: Vec<usize> = (0..rank + 1).collect();
        turned.swap(rank - 1, rank);
        let this_before = permute(&before, turned);
        let comes_before = (j.gt(&i) & before) | (j.lt(&i) & !this_before);
        let places = convert(&comes_before, DType::I64).sum_axes([rank as isize]);
        let sorted = rows.iter().map(|x| {
            let (all, count) = (x.shape().clone(), x.shape().size());
            let row_starts = &(iota(DType::I64, [count.clone()].into_iter().collect(), 0)
                / Array::from_dim(&n, DType::I64).broadcast_to(vec![count.clone()]))
                * &Array::from_dim(&n, DType::I64).broadcast_to(vec![count.clone()]);
            let at = reshape(&places, vec![count.clone()]) + row_starts;
            let op = Scatter {
                kind: ScatterKind::Set,
                update_window_dims: vec![],
                inserted_dims: vec![0],
                operand_batch_dims: vec![],
                index_batch_dims: vec![],
                index_map: vec![0],
                unique: true,
            };
            let line = reshape(x, vec![count.clone()]);
            let put = bind(Op::new(op), &[line.clone(), reshape(&at, vec![count.clone(), Dim::from(1usize)]), line]);
            let mut back: Vec<usize> = (0..rank - 1).collect();
            back.insert(axis, rank - 1);
            permute(&reshape(&put, all), back)
        });
        many(sorted)
    }
}

/// Floats with one zero and one NaN, which are equal in an order of floats and not in one of bits.
fn canonical(x: &Array) -> Array {
    if !x.dtype().is_float() {
        return x.clone();
    }
    let zero = super::elementwise::like(x, 0.0);
    let one_zero = x.eq(&zero).select(&zero, x);
    x.ne(x).select(super::elementwise::like(x, f64::NAN), &one_zero)
}

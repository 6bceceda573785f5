//! Rewrites of products: those that are no sums become elementwise, those with a constant become sums, and views of
//! operands become other axes of the product.
//!
//! A product starts from zero: `Σ aᵢbᵢ = 0 + a₀b₀ + ...`, so one with a single term gives 0.0 where the term is -0.0.

use super::rewrite::{Piece, Rewrite, Rule, Site, Steps, by};
use super::shapes::{broadcast_sources, is_repeated};
use crate::primitives::Op;
use crate::primitives::convert::Convert;
use crate::primitives::dot::DotGeneral;
use crate::primitives::elementwise::{Add, Compare, Direction, Mul};
use crate::primitives::reduce::ReduceSum;
use crate::primitives::shaping::{Broadcast, Iota, Permute, Reshape, Slice};
use crate::program::Atom;
use crate::types::{DType, Dim, Scalar, Shape};

pub(super) const RULES: &[Rule] = &[
    |s| by("dot of no term = 0", nothing(s)),
    |s| by("dot of one term = 0 + that term", single_term(s)),
    |s| by("dot c b = c·Σb for one number c", by_one_number(s)),
    |s| by("dot x identity = x", by_identity(s)),
    |s| by("dot (transpose a) b = dot a b by other axes", of_transposed(s)),
    |s| by("transpose (dot a b) = dot a b or dot b a by other axes", transposed(s)),
    OF_BROADCAST,
    |s| by("dot a b = transpose (dot b a) for a small matrix a and many in b", many_first(s)),
];

/// The rule that writes out sums of few terms. It is for the end: a product says more to others than its terms do.
pub(super) const OF_FEW: &[Rule] = &[|s| by("dot of few terms = 0 + their sum", few_terms(s))];

/// The rule that takes repetitions out of products.
pub(super) const OF_BROADCAST: Rule = |s| by("dot (broadcast a) b = broadcast (dot a b)", of_broadcast(s));

/// A matrix of at most so many elements is small: a compiler can write its product out.
const SMALL: i64 = 64;
/// A sum of so many terms is written out: then what a product takes is reading and writing, and as operations on elements it shares that with others.
const FEW: i64 = 4;
/// So many matrices are many.
const MANY: i64 = 8;

/// One operand of a product.
#[derive(Clone)]
struct Side {
    contract: Vec<usize>,
    batch: Vec<usize>,
    rank: usize,
}

impl Side {
    fn free(&self) -> Vec<usize> {
        (0..self.rank).filter(|a| !self.contract.contains(a) && !self.batch.contains(a)).collect()
    }

    /// Its axes as they come out: the shared ones, then its own.
    fn kept(&self) -> Vec<usize> {
        self.batch.iter().copied().chain(self.free()).collect()
    }
}

fn sides(s: &Site<'_>) -> Option<[Side; 2]> {
    let dot = s.op.downcast::<DotGeneral>()?;
    let side = |contract: &Vec<usize>, batch: &Vec<usize>, i: usize| {
        Some(Side { contract: contract.clone(), batch: batch.clone(), rank: s.ty(i)?.rank() })
    };
    Some([side(&dot.lhs_contract, &dot.lhs_batch, 0)?, side(&dot.rhs_contract, &dot.rhs_batch, 1)?])
}

fn product([lhs, rhs]: [Side; 2]) -> Op {
    Op::new(DotGeneral {
        lhs_contract: lhs.contract,
        rhs_contract: rhs.contract,
        lhs_batch: lhs.batch,
        rhs_batch: rhs.batch,
    })
}

/// An operand in the result's shape: contracted axes dropped or summed away already, the others where the product has
/// them. `kept` are the axes that are left, as they come out.
fn in_place(
    steps: &mut Steps,
    s: &Site<'_>,
    value: Piece,
    kept: &[usize],
    side: usize,
    shared: usize,
) -> Option<Piece> {
    let rank = s.result.rank();
    // The axes of the value are those of the operand without the contracted ones, in the operand's order.
    let order: Vec<usize> = kept.iter().map(|a| kept.iter().filter(|b| *b < a).count()).collect();
    let value = match order.is_sorted() {
        true => value,
        false => steps.push(Op::new(Permute { axes: order }), vec![value]),
    };
    let own = kept.len() - shared;
    let first = if side == 0 { shared } else { rank.checked_sub(own)? };
    let axes = (0..shared).chain(first..first + own).collect();
    Some(steps.push(Op::new(Broadcast { shape: s.result.shape().clone(), axes }), vec![value]))
}

/// A sum of no terms is zero.
fn nothing(s: &Site<'_>) -> Option<Rewrite> {
    let [lhs, _] = sides(s)?;
    let shape = s.ty(0)?.shape();
    let empty = lhs.contract.iter().any(|a| shape.get(*a).is_some_and(|d| d.constant() == Some(0)));
    empty.then(|| Rewrite::Splat(Scalar::zero(s.dtype())))
}

/// A sum of one term is that term: dot a b = 0 + (broadcast a)·(broadcast b).
fn single_term(s: &Site<'_>) -> Option<Rewrite> {
    let both = sides(s)?;
    let one = Dim::from(1usize);
    let single = |side: &Side, shape: &Shape| side.contract.iter().all(|a| shape.get(*a) == Some(&one));
    if !single(&both[0], s.ty(0)?.shape()) || !single(&both[1], s.ty(1)?.shape()) {
        return None;
    }
    let mut steps = Steps::default();
    let term = term(&mut steps, s, &both, [0, 1].map(|i| Piece::Atom(s.operands[i])))?;
    added(&mut steps, s, None, term);
    steps.finish()
}

/// One term of a product in the result's shape, of what both operands have for it.
fn term(steps: &mut Steps, s: &Site<'_>, both: &[Side; 2], parts: [Piece; 2]) -> Option<Piece> {
    let mut factors = Vec::with_capacity(2);
    for (i, (side, mut value)) in both.iter().zip(parts).enumerate() {
        if !side.contract.is_empty() {
            let shape = s.ty(i)?.shape().without(|a| side.contract.contains(&a));
            value = steps.push(Op::new(Reshape { shape }), vec![value]);
        }
        factors.push(in_place(steps, s, value, &side.kept(), i, side.batch.len())?);
    }
    Some(steps.push(Op::fixed(&Mul), factors))
}

/// A sum with one more term; the first one is added to zero. Whole numbers need no zero.
fn added(steps: &mut Steps, s: &Site<'_>, sum: Option<Piece>, term: Piece) -> Piece {
    let sum = match sum {
        None if s.dtype().is_int() => return term,
        None => Piece::Splat(s.result.clone(), Scalar::zero(s.dtype())),
        Some(sum) => sum,
    };
    steps.push(Op::fixed(&Add), vec![sum, term])
}

/// A sum of few terms is those terms, one after the other: dot a b = 0 + a₀b₀ + a₁b₁ + ... Small matrices, and many by a small one, are left to those who write all of a
/// product out; half floats are added up in more digits than they have, and complex products keep their own order.
fn few_terms(s: &Site<'_>) -> Option<Rewrite> {
    let both = sides(s)?;
    let dtype = s.dtype();
    let [lhs, rhs] = [s.ty(0)?, s.ty(1)?];
    if !(matches!(dtype, DType::F32 | DType::F64) || dtype.is_int()) || lhs.dtype() != dtype || rhs.dtype() != dtype {
        return None;
    }
    let lengths: Vec<i64> = both[0].contract.iter().map(|a| lhs.shape().get(*a)?.constant()).collect::<Option<_>>()?;
    let terms = lengths.iter().try_fold(1i64, |n, d| n.checked_mul(*d)).filter(|n| (2..=FEW).contains(n))?;
    let elements = |shape: &Shape, skip: &[usize]| {
        let mut own = (0..shape.rank()).filter(|a| !skip.contains(a)).map(|a| shape[a].constant());
        own.try_fold(1i64, |n, d| n.checked_mul(d?))
    };
    let is_small = |shape: &Shape, skip: &[usize]| elements(shape, skip).is_some_and(|n| n <= SMALL);
    let small = [is_small(lhs.shape(), &both[0].batch), is_small(rhs.shape(), &both[1].batch)];
    let (matrices, many) = (small[0] && small[1], both[0].batch.is_empty() && (small[0] || small[1]));
    if matrices || many || elements(s.result.shape(), &[]) == Some(0) {
        return None;
    }
    let mut steps = Steps::default();
    let mut sum = None;
    for t in 0..terms {
        let parts = [(0, lhs.shape()), (1, rhs.shape())].map(|(i, shape)| {
            // The place of the term along each contracted axis, the last of them fastest.
            let mut left = t;
            let (mut start, mut limit) = (vec![Dim::from(0usize); shape.rank()], shape.to_vec());
            for (a, n) in both[i].contract.iter().zip(&lengths).rev() {
                (start[*a], limit[*a]) = (Dim::from(left % n), Dim::from(left % n + 1));
                left /= n;
            }
            let slice = Slice { start, limit, step: vec![1; shape.rank()] };
            steps.push(Op::new(slice), vec![Piece::Atom(s.operands[i])])
        });
        let term = term(&mut steps, s, &both, parts)?;
        sum = Some(added(&mut steps, s, sum, term));
    }
    steps.finish()
}

/// dot c b = c·Σb for one number c, which for floats other than one rounds otherwise. The order of the sum may change.
fn by_one_number(s: &Site<'_>) -> Option<Rewrite> {
    let both = sides(s)?;
    let i = (0..2).find(|i| s.splat(*i).is_some())?;
    let number = s.splat(i)?;
    let one = number == Scalar::one(s.dtype());
    // 1·x is x for real numbers only: (a+bi)(1+0i) multiplies b by 0.
    let exact = s.dtype().is_int() || (one && !s.dtype().is_complex());
    if !exact && !s.relaxed() {
        return None;
    }
    let other = 1 - i;
    let side = &both[other];
    let mut axes = side.contract.clone();
    axes.sort_unstable();
    let shape = s.ty(other)?.shape().without(|a| axes.contains(&a));
    let mut steps = Steps::default();
    let mut value = steps.push(Op::new(ReduceSum { axes }), vec![s.operands[other].into()]);
    if !one {
        value = steps.push(Op::fixed(&Mul), vec![value, Piece::Splat(s.result.with_shape(shape), number)]);
    }
    in_place(&mut steps, s, value, &side.kept(), other, side.batch.len())?;
    steps.finish()
}

/// dot x 1 = x for the identity matrix, with the contracted axis where that of the identity comes out. For floats 0·∞ would be
/// NaN.
fn by_identity(s: &Site<'_>) -> Option<Rewrite> {
    let both = sides(s)?;
    if !s.dtype().is_int() && !s.relaxed() {
        return None;
    }
    let i = (0..2).find(|i| is_identity(s, s.operands[*i]))?;
    let other = 1 - i;
    let [axis] = both[other].contract[..] else { return None };
    if both[i].contract.len() != 1 || !both[i].batch.is_empty() {
        return None;
    }
    let rest = (0..both[other].rank).filter(|a| *a != axis);
    let axes = if other == 0 { rest.chain([axis]).collect() } else { std::iter::once(axis).chain(rest).collect() };
    Rewrite::apply(Op::new(Permute { axes }), [s.operands[other]])
}

/// Whether a value is one where its two axes agree and zero elsewhere.
fn is_identity(s: &Site<'_>, atom: Atom) -> bool {
    let counts_along = |atom: Atom| -> Option<usize> {
        let (op, operands) = s.definition_of(atom)?;
        if let Some(iota) = op.downcast::<Iota>() {
            return Some(iota.axis);
        }
        let broadcast = op.downcast::<Broadcast>()?;
        let inner = s.definition_of(*operands.first()?)?.0.downcast::<Iota>()?;
        broadcast.axes.get(inner.axis).copied()
    };
    let found = || {
        let (convert, operands) = s.definition_of(atom)?;
        convert.downcast::<Convert>()?;
        let (compare, operands) = s.definition_of(operands[0])?;
        let Compare { direction: Direction::Eq } = compare.downcast::<Compare>()? else { return None };
        let [rows, columns] = [counts_along(operands[0])?, counts_along(operands[1])?];
        let shape = s.shape_of(atom);
        // Counting in a narrow integer wraps, and then more than the diagonal agrees.
        let highest = s.builder.ty(operands[0]).dtype();
        let range = Scalar::highest(highest).to_i64().unwrap_or(if highest.is_int() { i64::MAX } else { 0 });
        let counted = shape.first()?.constant()? <= range;
        Some(shape.rank() == 2 && shape[0] == shape[1] && rows != columns && counted)
    };
    found() == Some(true)
}

/// dot (transpose a) b = dot a b by the axes that these have in a, if its own axes come out in the same order.
fn of_transposed(s: &Site<'_>) -> Option<Rewrite> {
    let mut both = sides(s)?;
    for i in 0..2 {
        let Some((op, operands)) = s.definition(i) else { continue };
        let Some(Permute { axes }) = op.downcast::<Permute>() else { continue };
        let moved = |list: &[usize]| list.iter().filter_map(|a| axes.get(*a).copied()).collect::<Vec<_>>();
        if !moved(&both[i].free()).is_sorted() {
            continue;
        }
        both[i].contract = moved(&both[i].contract);
        both[i].batch = moved(&both[i].batch);
        let mut atoms = [s.operands[0], s.operands[1]];
        atoms[i] = operands[0];
        return Rewrite::apply(product(both), atoms);
    }
    None
}

/// transpose (dot a b) = dot a b or dot b a with the shared axes in another order, if that is how the axes come out. Only
/// where nothing else needs the product, which would be computed twice. The order of a float sum may change.
fn transposed(s: &Site<'_>) -> Option<Rewrite> {
    let Permute { axes } = s.op.downcast()?;
    let (inner, operands) = s.definition(0)?;
    let dot = inner.downcast::<DotGeneral>()?;
    if !s.is_only_use(0) {
        return None;
    }
    let shared = dot.lhs_batch.len();
    let own = s.shape_of(operands[0]).rank() - shared - dot.lhs_contract.len();
    let (front, rest) = axes.split_at_checked(shared)?;
    if front.iter().any(|a| *a >= shared) {
        return None;
    }
    let straight = rest.is_sorted();
    let shapes = [s.shape_of(operands[1]), s.shape_of(operands[0])];
    if !straight && shared == 0 && is_small_by_many(shapes, &dot.lhs_contract) {
        return None;
    }
    let turned = || rest.iter().copied().eq((shared + own..axes.len()).chain(shared..shared + own));
    if !straight && !turned() {
        return None;
    }
    let pick = |list: &[usize]| front.iter().filter_map(|a| list.get(*a).copied()).collect::<Vec<_>>();
    let (lhs_batch, rhs_batch) = (pick(&dot.lhs_batch), pick(&dot.rhs_batch));
    let (lhs_contract, rhs_contract) = (dot.lhs_contract.clone(), dot.rhs_contract.clone());
    match straight {
        true => Rewrite::apply(
            Op::new(DotGeneral { lhs_contract, rhs_contract, lhs_batch, rhs_batch }),
            operands.iter().copied(),
        ),
        false => Rewrite::apply(
            Op::new(DotGeneral {
                lhs_contract: rhs_contract,
                rhs_contract: lhs_contract,
                lhs_batch: rhs_batch,
                rhs_batch: lhs_batch,
            }),
            operands.iter().rev().copied(),
        ),
    }
}

/// dot a b = transpose (dot b a) for a small matrix a and many small ones in b: then the axis of the many comes first in the
/// product too, and whoever loops over them has each matrix at hand. The order of a float sum may change.
fn many_first(s: &Site<'_>) -> Option<Rewrite> {
    let [lhs, rhs] = sides(s)?;
    if !rhs.batch.is_empty() || !is_small_by_many([s.ty(0)?.shape(), s.ty(1)?.shape()], &rhs.contract) {
        return None;
    }
    let (mine, theirs) = (lhs.free().len(), rhs.free().len());
    let mut steps = Steps::default();
    let turned = steps.push(product([rhs, lhs]), vec![s.operands[1].into(), s.operands[0].into()]);
    let axes = (theirs..theirs + mine).chain(0..theirs).collect();
    steps.push(Op::new(Permute { axes }), vec![turned]);
    steps.finish()
}

/// Whether the left of two shapes is that of a small matrix with axes of its own, and the right one has many small ones in
/// front of the axes in `contract`. Never true both ways round.
fn is_small_by_many([small, many]: [&Shape; 2], contract: &[usize]) -> bool {
    // A size that is known at run time is taken for a large one.
    let sized = |dims: &[Dim]| dims.iter().try_fold(1i64, |n, d| n.checked_mul(d.constant().unwrap_or(MANY)));
    let known = |dims: &[Dim]| dims.iter().all(|d| d.constant().is_some());
    let Some(lead) = contract.iter().min() else { return false };
    let (front, rest) = many.split_at((*lead).min(many.rank()));
    let fits = |n: Option<i64>, range: std::ops::RangeInclusive<i64>| n.is_some_and(|n| range.contains(&n));
    small.rank() > contract.len()
        && known(small)
        && known(rest)
        && fits(sized(small), 1..=SMALL)
        && fits(sized(front), MANY..=i64::MAX)
        && fits(sized(rest), 1..=SMALL)
        && (!known(many) || fits(sized(many), SMALL + 1..=i64::MAX))
}

/// An axis of a product's result, by where it comes from.
#[derive(Clone, Copy, PartialEq)]
enum From {
    Shared(usize),
    Own(usize, usize),
}

/// dot (broadcast a) b: the product need not be computed again for each repetition. A repeated axis of its own is repeated in the
/// result; one that both share becomes an axis of b alone. A contracted one would be n·Σb, which rounds otherwise.
fn of_broadcast(s: &Site<'_>) -> Option<Rewrite> {
    let both = sides(s)?;
    let views = |i: &usize| s.definition(*i).is_some_and(|(op, _)| op.is::<Broadcast>());
    (0..2).filter(views).find_map(|i| without_repetition(s, &both, i))
}

fn without_repetition(s: &Site<'_>, both: &[Side; 2], i: usize) -> Option<Rewrite> {
    let (op, operands) = s.definition(i)?;
    let view = op.downcast::<Broadcast>()?;
    let x = s.shape_of(operands[0]);
    let sources = broadcast_sources(view);
    let side = &both[i];
    let repeated = |axis: usize| is_repeated(view, &sources, x, axis);
    // An axis that is there with size one can be repeated after the product, but not shared.
    let goes = |axis: usize| repeated(axis) && (sources[axis].is_none() || side.batch.contains(&axis));
    if side.contract.iter().any(|a| repeated(*a)) || !(0..side.rank).any(repeated) {
        return None;
    }
    let mut steps = Steps::default();
    let mut value = Piece::Atom(operands[0]);
    let dropped: Vec<usize> = (0..side.rank).filter(|a| goes(*a)).filter_map(|a| sources[a]).collect();
    if !dropped.is_empty() {
        value = steps.push(Op::new(Reshape { shape: x.without(|k| dropped.contains(&k)) }), vec![value]);
    }
    let left: Vec<usize> = (0..side.rank).filter(|a| !goes(*a)).collect();
    let now = |axes: &[usize]| axes.iter().filter_map(|a| left.iter().position(|l| l == a)).collect::<Vec<_>>();
    let stays: Vec<bool> = side.batch.iter().map(|a| !goes(*a)).collect();
    let other = &both[1 - i];
    let mine = Side { contract: now(&side.contract), batch: now(&side.batch), rank: left.len() };
    let kept = other.batch.iter().zip(&stays).filter(|(_, on)| **on).map(|(a, _)| *a);
    let theirs = Side { batch: kept.collect(), ..other.clone() };
    // Where each axis of the new product comes from, and each of the old one.
    let shared = (0..stays.len()).filter(|k| stays[*k]).map(From::Shared);
    let my_own = mine.free().into_iter().map(|a| From::Own(i, left[a]));
    let their_own = theirs.free().into_iter().map(|a| match other.batch.iter().position(|b| *b == a) {
        Some(k) => From::Shared(k),
        None => From::Own(1 - i, a),
    });
    let new: Vec<From> = match i {
        0 => shared.chain(my_own).chain(their_own).collect(),
        _ => shared.chain(their_own).chain(my_own).collect(),
    };
    let own_of = |k: usize| both[k].free().into_iter().map(move |a| From::Own(k, a));
    let old: Vec<From> = (0..stays.len()).map(From::Shared).chain(own_of(0)).chain(own_of(1)).collect();
    let (pair, atoms) = match i {
        0 => ([mine, theirs], vec![value, s.operands[1].into()]),
        _ => ([theirs, mine], vec![s.operands[0].into(), value]),
    };
    let mut value = steps.push(product(pair), atoms);
    let places: Vec<usize> = (0..old.len()).filter(|k| new.contains(&old[*k])).collect();
    let order: Vec<usize> = places.iter().filter_map(|k| new.iter().position(|f| *f == old[*k])).collect();
    if !order.is_sorted() {
        value = steps.push(Op::new(Permute { axes: order }), vec![value]);
    }
    steps.push(Op::new(Broadcast { shape: s.result.shape().clone(), axes: places }), vec![value]);
    steps.finish()
}

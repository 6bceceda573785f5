//! Everything in small, by enumeration: chains of operations from a catalogue, in every setting, at sizes around the thresholds.
//!
//! All chains of two operations stand in all settings (roles, ending, loop, transformation), each at a third of the sizes, so that over its settings a chain has all of
//! them; all chains of three in a few of the settings each, which differ from chain to chain. A number is a case, so a share of the enumeration is every so many-th
//! number.

use gradus::prelude::*;
use gradus_core::trace::trace;

use crate::case::{Case, Data};
use crate::generate::{VASTEST, elements, over_batch, with_gradient};

/// An operation of the catalogue. None where the value does not have what it takes.
type Operation = fn(&Array) -> Option<Array>;

fn at_least(x: &Array, rank: usize) -> Option<&Array> {
    (x.rank() >= rank).then_some(x)
}

/// Axes by the bits of a mask, all of which there are.
fn axes(x: &Array, mask: usize) -> Option<Vec<usize>> {
    (mask < 1 << x.rank()).then(|| (0..x.rank()).filter(|a| mask >> a & 1 == 1).collect())
}

fn last(x: &Array) -> Option<isize> {
    x.rank().checked_sub(1).map(|a| a as isize)
}

fn square(x: &Array) -> Option<&Array> {
    at_least(x, 2).filter(|x| x.rank() == 2)
}

/// Places along the first axis, one of them twice and one outside.
fn places(x: &Array) -> Option<Array> {
    let n = x.known_dims().ok()?.first().copied()? as i32;
    Some(Array::from_vec(vec![n / 2, 0, n - 1, n / 2, n], [5]))
}

fn looped(x: &Array, step: impl Fn(&Array, &Array) -> (Array, Array)) -> Option<Array> {
    let x = at_least(x, 1)?;
    let (carry, out) = scan(step, x.clone(), &Array::arange(0, 3, 1));
    Some(carry + out.index(1))
}

/// Each kind of operation: views, elementwise, reductions over each set of axes, products, pieces, updates, picks, sorts, loops,
/// branches.
const CATALOGUE: &[(&str, Operation)] = &[
    ("t", |x| at_least(x, 2).map(|x| x.t())),
    ("swap_axes(0, 1)", |x| at_least(x, 2).map(|x| x.swap_axes(0, 1))),
    ("flip(0)", |x| at_least(x, 1).map(|x| x.flip(0))),
    ("index(1..)", |x| at_least(x, 1).map(|x| x.index(1..))),
    ("index(.., step 2)", |x| at_least(x, 2).map(|x| x.index((.., Index::step(.., 2))))),
    ("flatten", |x| at_least(x, 2).map(|x| x.flatten())),
    ("split of an axis", |x| {
        let n = x.known_dims().ok()?.last().copied().filter(|n| n % 2 == 0)?;
        let mut dims = x.known_dims().ok()?;
        dims.pop();
        dims.extend([n / 2, 2]);
        Some(x.reshape(dims))
    }),
    ("broadcast along a new axis", |x| {
        let mut dims = x.known_dims().ok()?;
        dims.insert(0, 3);
        (dims.len() < 5).then(|| x.broadcast_to(dims))
    }),
    ("expand_dims(1)", |x| at_least(x, 1).map(|x| x.expand_dims(1))),
    ("roll", |x| at_least(x, 1).map(|x| x.roll(1, 0))),
    ("x*2+1", |x| Some(x * 2.0 + 1.0)),
    ("tanh", |x| Some(x.tanh())),
    ("x*x+x", |x| Some(x * x + x)),
    ("sum 1", |x| axes(x, 1).map(|a| x.sum_axes(a))),
    ("sum 2", |x| axes(x, 2).map(|a| x.sum_axes(a))),
    ("sum 3", |x| axes(x, 3).map(|a| x.sum_axes(a))),
    ("sum 4", |x| axes(x, 4).map(|a| x.sum_axes(a))),
    ("sum 5", |x| axes(x, 5).map(|a| x.sum_axes(a))),
    ("sum 6", |x| axes(x, 6).map(|a| x.sum_axes(a))),
    ("max 1", |x| axes(x, 1).map(|a| x.max_axes(a))),
    ("max 2", |x| axes(x, 2).map(|a| x.max_axes(a))),
    ("sum", |x| Some(x.sum())),
    ("x - mean", |x| last(x).map(|a| x - x.mean_keep(a))),
    ("softmax", |x| last(x).map(|a| x.softmax(a))),
    ("s == max(s)", |x| {
        let s = x * x + x;
        Some(s.eq(s.max()).cast(x.dtype()))
    }),
    ("x@x.t", |x| square(x).map(|x| x.matmul(&x.t()))),
    ("x.t@x", |x| square(x).map(|x| x.t().matmul(x))),
    ("x@tanh(v)", |x| square(x).map(|x| x.matmul(&x.index(0).tanh()))),
    ("x@(x.t@v)", |x| square(x).map(|x| x.matmul(&x.t().matmul(&x.sum_axes(1))))),
    ("einsum over a batch", |x| {
        at_least(x, 3).filter(|x| x.rank() == 3).map(|x| Array::einsum("bij,bkj->bik", [x, x]))
    }),
    ("concatenate", |x| at_least(x, 1).map(|x| Array::concatenate([x, &(x * 2.0)], 0))),
    ("stack", |x| (x.rank() < 4).then(|| Array::stack([x, &-x], x.rank() as isize))),
    ("pad", |x| {
        let mut counts = vec![(0i64, 0i64); x.rank()];
        *counts.last_mut()? = (1, 2);
        Some(x.pad(&counts, 0.0))
    }),
    ("update by itself", |x| at_least(x, 1).map(|x| x.at(1..).set(x.index(..-1)))),
    ("update at a place", |x| at_least(x, 1).map(|x| x.at(x.sum().cast(DType::I32).clamp(0, 3)).set(x.index(0) * 2.0))),
    ("take", |x| places(x).map(|p| x.take(&p, 0))),
    ("scatter", |x| places(x).map(|p| x.at(&p).add(x.take(&p, 0)))),
    ("sort", |x| last(x).map(|a| x.sort(a))),
    ("cumsum", |x| at_least(x, 1).map(|x| x.cumsum(0))),
    ("loop that keeps the old", |x| looped(x, |c, i| (c.at(i.clone()).set(c.index(0) + 1.0), c.clone()))),
    ("loop with a view of the old", |x| looped(x, |c, i| (c.at(i.clone()).set(c.index(1) * 2.0), c.flip(0)))),
    ("while that moves a carry", |x| {
        let x = at_least(x, 1)?;
        let body = |s: &(Array, Array, Array)| (&s.0 + 1, s.1.at(0).set(s.1.index(-1) + 1.0), s.1.clone());
        let init = (Array::from(0), x.clone(), x * 2.0);
        let (_, a, b) = while_loop(|s: &(Array, Array, Array)| s.0.lt(3), body, init);
        Some(a - b)
    }),
    ("branch", |x| Some(cond(x.sum().gt(0), |x: &Array| x * 2.0, |x| x.sin(), x))),
    ("branch never taken", |x| {
        let s = x.max();
        Some(cond(s.gt(&s), |x: &Array| x.exp(), |x| x * x, x))
    }),
];

/// Shapes: sizes around each threshold, and a few that threads share.
const SHAPES: &[&[usize]] = &[
    &[1, 7],
    &[2, 3],
    &[8, 2],
    &[9, 3],
    &[3, 9, 7],
    &[2, 9, 17],
    &[5, 5],
    &[8, 8],
    &[7, 16],
    &[16, 15],
    &[17, 17],
    &[9, 33],
    &[31, 8],
    &[33, 2],
    &[63, 3],
    &[65, 9],
    &[64],
    &[40, 40, 3],
];
/// Shapes that threads share are a few of the cases only.
const VAST: &[&[usize]] = &[&[513, 130], &[70_001], &[65, 33, 31]];

/// How a chain is put to use.
#[derive(Clone, Copy, Debug)]
struct Setting {
    two_roles: bool,
    ending: usize,
    in_loop: bool,
    transform: usize,
    shape: usize,
}

const ENDINGS: usize = 3;
const TRANSFORMS: usize = 3;
/// Settings but for the size.
const SETTINGS: u64 = (2 * ENDINGS * 2 * TRANSFORMS) as u64;
/// A chain of two has every so many-th size in one setting, and the next ones in the next.
const EVERY: u64 = 3;
/// Settings and sizes that each chain of three is tried in.
const OF_THREE: u64 = 4;

fn setting(k: u64, shape: u64) -> Setting {
    let mut k = k as usize;
    let mut digit = |n: usize| {
        let d = k % n;
        k /= n;
        d
    };
    Setting {
        shape: shape as usize,
        transform: digit(TRANSFORMS),
        ending: digit(ENDINGS),
        two_roles: digit(2) == 1,
        in_loop: digit(2) == 1,
    }
}

/// How many cases there are.
pub fn count() -> u64 {
    let c = CATALOGUE.len() as u64;
    c * c * SETTINGS * (SHAPES.len() as u64 / EVERY) + c * c * c * OF_THREE
}

/// The case at a place; none where the chain does not fit the shape.
pub fn case(number: u64) -> Option<Case> {
    let c = CATALOGUE.len() as u64;
    let (shapes, pairs) = (SHAPES.len() as u64, count() - c * c * c * OF_THREE);
    // Neighbours differ in everything: a share of the enumeration is a share of each kind.
    let (chain, mut s) = if number < pairs {
        let (chain, k) = (number % (c * c), number / (c * c));
        let (k, size) = (k % SETTINGS, k / SETTINGS);
        (vec![chain % c, chain / c], setting(k, size * EVERY + (chain + k) % EVERY))
    } else {
        let rest = number - pairs;
        let chain = rest % (c * c * c);
        let turn = rest / (c * c * c);
        // Steps that share no factor with the number of settings and sizes go through all of them.
        let k = (chain * 37 + turn * 167) % (SETTINGS * shapes);
        (vec![chain % c, chain / c % c, chain / (c * c)], setting(k / shapes, k % shapes))
    };
    let vast = number.is_multiple_of(199);
    let shape = if vast { VAST[(number / 199) as usize % VAST.len()] } else { SHAPES[s.shape] };
    s.in_loop &= !vast;
    let dtype = if number % 3 == 1 { DType::F32 } else { DType::F64 };
    let program = program(&chain, s, Type::new(dtype, shape))?;
    let names: Vec<&str> = chain.iter().map(|i| CATALOGUE[*i as usize].0).collect();
    let mut case = Case::new(format!("{}, {s:?}", names.join("; ")), program, number);
    case.data = if number.is_multiple_of(5) { Data::Whole } else { Data::Plain };
    case.llvm = number.is_multiple_of(83);
    // Neighbours are of one setting: the turn goes on with the setting, too.
    case.turn = Some(number + number / (c * c));
    Some(case)
}

fn program(chain: &[u64], s: Setting, ty: Type) -> Option<Program> {
    let mut fits = false;
    let traced = trace("chain", &[Array::of_type(ty)], Mode::Abstract, |xs| {
        let found = if s.in_loop { in_loop(chain, s, &xs[0]) } else { applied(chain, s, &xs[0]) };
        fits = found.is_some();
        found.unwrap_or_default()
    });
    let p = traced.ok().filter(|t| fits && t.captures.is_empty())?.program;
    let p = match s.transform {
        0 => p,
        1 => with_gradient(&p, false)?,
        _ => over_batch(&p, vec![true], 3)?,
    };
    // Two roles of a long axis may make a matrix of it.
    (elements(&p) < VASTEST).then_some(p)
}

/// The chain on a value, and its ending.
fn applied(chain: &[u64], s: Setting, x: &Array) -> Option<Vec<Array>> {
    let mut y = x.clone();
    let mut before = x.clone();
    for i in chain {
        before = y.clone();
        y = (CATALOGUE[*i as usize].1)(&y)?;
        if y.known_dims().ok()?.iter().product::<usize>() > 300_000 {
            return None;
        }
    }
    if s.two_roles {
        y = joined(&y, &before);
    }
    y.ty().ok()?;
    Some(match s.ending {
        0 => vec![y],
        1 => {
            let total = y.sum();
            vec![y, before, total]
        }
        _ => {
            let view = if y.rank() > 1 { y.swap_axes(0, 1) } else { y.flip(()) };
            vec![y, view]
        }
    })
}

/// Two values in one, whatever their shapes.
fn joined(y: &Array, before: &Array) -> Array {
    let tries: [&dyn Fn() -> Array; 4] =
        [&|| y * before, &|| y + before.t(), &|| y.matmul(before), &|| before.matmul(y)];
    tries.iter().map(|f| f()).find(|a| a.ty().is_ok()).unwrap_or_else(|| y + before.sum())
}

/// The chain as the step of a loop: what it gives is collected, and carried on where it has the type.
fn in_loop(chain: &[u64], s: Setting, x: &Array) -> Option<Vec<Array>> {
    let fits = std::cell::Cell::new(true);
    let body = |c: &Array, i: &Array| {
        let Some(out) = applied(chain, s, &(c * 0.5)) else {
            fits.set(false);
            return (c.clone(), vec![i.clone()]);
        };
        let next = out.iter().find(|a| a.shape() == c.shape() && a.dtype() == c.dtype());
        let next = next.cloned().unwrap_or_else(|| c * 0.5 + 0.25);
        (next, out)
    };
    let (last, all) = scan(body, x.clone(), &Array::arange(0, 3, 1));
    fits.get().then(|| [vec![last], all].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_the_enumeration_are_cases_and_differ() {
        let (mut made, mut texts) = (0, std::collections::BTreeSet::new());
        for number in (0..count()).step_by(count() as usize / 300) {
            if let Some(c) = case(number) {
                gradus_core::program::verify(&c.program).unwrap();
                made += 1;
                texts.insert(c.program.to_string());
            }
        }
        assert!(made > 100 && texts.len() * 10 > made * 9, "{made} cases, {} programs", texts.len());
    }
}

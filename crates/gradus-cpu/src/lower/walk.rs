//! Loops over some axes of several views at once, for what is no cluster of equations: copies, scatters, running sums. And copies in tiles.

use super::Lower;
use super::views::{At, Dims, Strides, View, is_empty};
use crate::ir::meaning::Meaning;
use crate::ir::{Kind, Ty, Value};
use crate::size::Size;

/// Columns of a tile where something goes down columns: what is kept for each stays in the first cache, and a row of them is a run that the memory likes. Wider
/// tiles that leave nothing over are better.
const COLUMNS: usize = 64;
/// No more than so many; and fewer columns need no tiles, which threads would share.
pub(super) const WIDEST: usize = 256;
/// Rows that such a tile takes in at once: so seldom what is kept goes to memory and back.
pub(super) const ROWS: usize = 8;

/// The width of the tiles of so many columns.
pub(super) fn tile_width(columns: Size) -> usize {
    let even = |n: usize| (COLUMNS..=WIDEST).rev().find(|w| n.is_multiple_of(*w));
    columns.known().and_then(even).unwrap_or(COLUMNS)
}

/// Loops around a place: how often each runs, and the strides of every view along it, of places and of elements.
pub(super) struct Walk {
    loops: Vec<(Size, Vec<Size>)>,
    vars: Vec<Value>,
}

impl Walk {
    /// Over neighbouring axes of views; those that all views walk as one are one loop.
    pub fn new(l: &mut Lower, views: &[&View], axes: std::ops::Range<usize>) -> Walk {
        let mut loops: Vec<(Size, Vec<Size>)> = Vec::new();
        for a in axes {
            let n = views[0].dims[a];
            if n == 1 {
                continue;
            }
            let strides: Vec<Size> = views.iter().flat_map(|v| [v.strides[a], v.mean.strides[a]]).collect();
            match loops.last_mut() {
                Some((m, outer)) if outer.iter().zip(&strides).all(|(o, s)| *o == *s * n) => {
                    (*m, *outer) = (*m * n, strides);
                }
                _ => loops.push((n, strides)),
            }
        }
        let vars = loops.iter().map(|_| l.emitter.value(Ty::I64)).collect();
        Walk { loops, vars }
    }

    /// Where the loops lead from a place of a view, by its number among the views.
    pub fn along(&self, number: usize, (mut at, mut meaning): (At, Meaning)) -> (At, Meaning) {
        for (var, (_, strides)) in self.vars.iter().zip(&self.loops) {
            at = at.plus(*var, strides[2 * number]);
            meaning.element = meaning.element.plus(*var, strides[2 * number + 1]);
        }
        (at, meaning)
    }

    /// The only loop of them: how often it runs, and the strides of each view along it.
    pub fn only(&self) -> Option<(Size, Vec<(Size, Size)>)> {
        let [(n, strides)] = &self.loops[..] else { return None };
        Some((*n, strides.chunks(2).map(|s| (s[0], s[1])).collect()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.loops.is_empty()
    }

    /// Begins their bodies.
    pub fn open(&self, l: &mut Lower) {
        self.loops.iter().for_each(|_| l.emitter.begin());
    }

    /// Closes the loops; `innermost` is how the last is run.
    pub fn close(&self, l: &mut Lower, innermost: Kind) {
        for (k, (var, (n, _))) in self.vars.iter().zip(&self.loops).enumerate().rev() {
            let body = l.emitter.end();
            let kind = if k + 1 == self.loops.len() { innermost } else { Kind::Serial };
            l.emitter.counted(kind, *var, *n, body);
        }
    }
}

/// The side of a tile of a transposing copy: its lines and pages of both arrays stay in the first cache, and every line is read and written as a whole.
const TILE: usize = 32;

/// A copy as copies one after the other: where neighbours in one array are far apart in the other, in tiles, and what is left at the ends of both axes.
pub(super) fn in_tiles(from: &View, to: &View) -> Vec<(View, View)> {
    let Some((rows, columns)) = tiled(from, to) else { return vec![(from.clone(), to.clone())] };
    let mut parts = Vec::new();
    for (first, count) in halves(from.dims[rows]) {
        for (start, size) in halves(from.dims[columns]) {
            let window = |view: &View| {
                let mut begin: Dims = smallvec::smallvec![Size::ZERO; view.dims.len()];
                let mut dims = view.dims.clone();
                (begin[rows], begin[columns]) = (first, start);
                (dims[rows], dims[columns]) = (count, size);
                view.sliced(&begin, &dims, &vec![1; view.dims.len()])
            };
            let whole = [count, size].iter().all(|n| n.is_multiple_of(TILE));
            let [from, to] = [from, to].map(|view| match whole {
                true => window(view).cut(&[rows, columns], TILE),
                false => window(view),
            });
            parts.push((from, to));
        }
    }
    parts.retain(|(from, _)| !is_empty(&from.dims));
    parts
}

/// The multiple of a tile in a size, and the rest of it: where each begins, and how long it is.
fn halves(size: Size) -> [(Size, Size); 2] {
    let whole = size.floor_div(TILE) * TILE;
    [(Size::ZERO, whole), (whole, size - whole)]
}

/// The axes along which neighbours of the first view and of the second lie side by side, if they are two, long and known.
fn tiled(from: &View, to: &View) -> Option<(usize, usize)> {
    let beside = |view: &View| (0..view.dims.len()).find(|a| view.dims[*a] != 1 && view.strides[*a] == 1);
    let (rows, columns) = (beside(from)?, beside(to)?);
    let long = |a: usize| from.dims[a].known().is_some_and(|n| n >= 2 * TILE);
    (rows != columns && long(rows) && long(columns)).then_some((rows, columns))
}

impl View {
    /// The same elements with two axes in tiles: those of one tile come last.
    fn cut(&self, axes: &[usize], tile: usize) -> View {
        let mut dims = self.dims.clone();
        for a in axes {
            dims[*a] = dims[*a].floor_div(tile);
        }
        dims.extend(axes.iter().map(|_| Size::from(tile)));
        self.both(dims, |old| {
            let mut strides: Strides = old.into();
            for a in axes {
                strides[*a] = old[*a] * tile;
            }
            strides.extend(axes.iter().map(|a| old[*a]));
            strides
        })
    }
}

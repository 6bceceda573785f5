//! Loops over some axes of several views at once, for what is no cluster of equations: copies, scatters, running sums. And copies in tiles.

use super::Lower;
use super::running::Run;
use super::views::{At, Dims, Strides, View, is_empty};
use crate::cost::is_for_one;
use crate::ir::meaning::Meaning;
use crate::ir::{Kind, LANES, Ty, Value};
use crate::size::Size;

/// Columns of a tile where something goes down columns: what is kept for each stays in the first cache, and a row of them is a run that the memory likes. Wider
/// tiles that leave nothing over are better.
const COLUMNS: usize = 64;
/// No more than so many; and fewer columns need no tiles, which threads would share.
pub(super) const WIDEST: usize = 256;
/// Bytes of a line of the caches.
const LINE: usize = 64;
/// No more than so many where no threads share them.
const WIDEST_ALONE: usize = 512;
/// Rows that such a tile takes in at once: so seldom what is kept goes to memory and back. Rows of more lie in the same few sets of the first cache where their length is a
/// power of two, and twice as many streams of writes take twice the time at any length.
pub(super) const ROWS: usize = 4;

/// The width of the tiles of so many columns, which threads may share. Tiles of whole lines, of numbers of eight bytes, begin where lines begin: a vector that reaches over
/// the end of one takes two of them.
pub(super) fn tile_width(columns: Size, threads: bool) -> usize {
    if is_for_one(f32::INFINITY, threads) {
        // As few as there may be, of one width but the last.
        let alike = |n: usize| n.div_ceil(n.div_ceil(WIDEST_ALONE).max(1)).next_multiple_of(LINE / 8);
        return columns.known().map_or(WIDEST, alike);
    }
    let even = |n: usize| {
        let widths = (COLUMNS..=WIDEST).filter(|w| n.is_multiple_of(*w));
        widths.max_by_key(|w| (w.is_multiple_of(LINE / 8), *w))
    };
    columns.known().and_then(even).unwrap_or(COLUMNS)
}

/// Loops around a place: how often each runs, and the strides of every view along it, of places and of elements.
pub(super) struct Walk {
    loops: Vec<(Size, Vec<Size>)>,
    vars: Vec<Value>,
    /// If it goes over a part of the places: the first, and by how many loops around it go on.
    part: Option<(Size, Vec<(Value, usize)>)>,
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
        Walk { loops, vars, part: None }
    }

    /// The only loop goes over a run of places.
    pub fn narrow(&mut self, run: &Run) {
        if let [(n, _)] = &mut self.loops[..] {
            *n = run.n;
            self.part = Some((run.first, run.along().collect()));
        }
    }

    /// The variable of the innermost loop.
    pub fn innermost(&self) -> Option<Value> {
        self.vars.last().copied()
    }

    /// Where the loops lead from a place of a view, by its number among the views.
    pub fn along(&self, number: usize, (mut at, mut meaning): (At, Meaning)) -> (At, Meaning) {
        for (var, (_, strides)) in self.vars.iter().zip(&self.loops) {
            let (place, element) = (strides[2 * number], strides[2 * number + 1]);
            at = at.plus(*var, place);
            meaning.element = meaning.element.plus(*var, element);
            if let Some((first, around)) = &self.part {
                at = around.iter().fold(at.further(place * *first), |at, (var, by)| at.plus(*var, place * *by));
                let begin = meaning.element.further(element * *first);
                meaning.element = around.iter().fold(begin, |at, (var, by)| at.plus(*var, element * *by));
            }
        }
        (at, meaning)
    }

    /// The only loop of them: how often it runs, and the strides of each view along it.
    pub fn only(&self) -> Option<(Size, Vec<(Size, Size)>)> {
        let [(n, strides)] = &self.loops[..] else { return None };
        Some((*n, strides.chunks(2).map(|s| (s[0], s[1])).collect()))
    }

    /// How often the innermost runs, where there are several.
    pub fn innermost_of_several(&self) -> Option<Size> {
        let [_, .., (n, _)] = &self.loops[..] else { return None };
        Some(*n)
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
/// The side of a square that goes through registers: a line of numbers of so many bytes.
const SQUARE: usize = 8;
/// So few neighbours are read or written at once where others are beside them in the other array.
const FEW: usize = 4;

/// A part of a copy. What lies along the axis, if there is one, is copied at once, from first to last; lanes run along the last of the others.
pub(super) struct Part {
    pub from: View,
    pub to: View,
    pub at_once: Option<usize>,
}

/// A copy of numbers of so many bytes as copies one after the other. Where neighbours in one array are far apart in the other, it goes in tiles, and what is left at the
/// ends of both axes is copied after; few that lie between others are read or written together with those.
pub(super) fn in_tiles(from: &View, to: &View, bytes: usize) -> Vec<Part> {
    if bytes >= 4
        && let Some((few, last)) = interleaved(from, to)
    {
        let order: Vec<usize> = (0..from.dims.len()).filter(|a| *a != last).chain([last]).collect();
        let at_once = order.iter().position(|a| *a == few);
        return vec![Part { from: from.permuted(&order), to: to.permuted(&order), at_once }];
    }
    let plain = |from, to| Part { from, to, at_once: None };
    // Numbers of half that size go through half as wide registers where only the running code knows how far they are apart: that is how wide lanes are there.
    let far = || beside(to).is_some_and(|a| from.strides[a].constant().is_none());
    let square = bytes == SQUARE || (2 * bytes == SQUARE && far());
    let Some((rows, columns)) = tiled(from, to, square) else { return vec![plain(from.clone(), to.clone())] };
    // Squares one below the other use up the lines that they share.
    let tall = match from.dims[rows].known() {
        Some(n) if n < TILE && square => SQUARE,
        _ => TILE,
    };
    // What is written of a row fills lines.
    let wide = if square { LINE / bytes } else { TILE };
    let mut parts = Vec::new();
    for (k, (first, count)) in halves(from.dims[rows], tall).into_iter().enumerate() {
        for (j, (start, size)) in halves(from.dims[columns], wide).into_iter().enumerate() {
            let window = |view: &View| {
                let mut begin: Dims = smallvec::smallvec![Size::ZERO; view.dims.len()];
                let mut dims = view.dims.clone();
                (begin[rows], begin[columns]) = (first, start);
                (dims[rows], dims[columns]) = (count, size);
                view.sliced(&begin, &dims, &vec![1; view.dims.len()])
            };
            let [from, to] = [from, to].map(window);
            if is_empty(&from.dims) {
                continue;
            }
            let rank = from.dims.len();
            parts.push(match (k == 0 && j == 0, square) {
                // Few columns are left: lanes go along the rows.
                (false, _) if k == 0 => {
                    let order: Vec<usize> = (0..rank).filter(|a| *a != rows).chain([rows]).collect();
                    plain(from.permuted(&order), to.permuted(&order))
                }
                (false, _) => plain(from, to),
                (true, false) => {
                    let [from, to] = [from, to].map(|view| view.cut(rows, TILE).cut(columns, TILE));
                    plain(from, to)
                }
                (true, true) => {
                    // Along the columns; there the squares of a tile, one below the other, and those that fill a line side by side.
                    let beside = |view: View| if wide == SQUARE { view } else { view.cut(rank + 2, SQUARE) };
                    let cut = |view: View| beside(view.cut(rows, tall).cut(rank, SQUARE).cut(columns, wide));
                    let [from, to] = [from, to].map(cut);
                    Part { from, to, at_once: Some(rank + 1) }
                }
            });
        }
    }
    parts
}

/// The multiple of a tile in a size, and the rest of it: where each begins, and how long it is.
fn halves(size: Size, tile: usize) -> [(Size, Size); 2] {
    let whole = size.floor_div(tile) * tile;
    [(Size::ZERO, whole), (whole, size - whole)]
}

/// The axis along which neighbours lie side by side.
fn beside(view: &View) -> Option<usize> {
    (0..view.dims.len()).find(|a| view.dims[*a] != 1 && view.strides[*a] == 1)
}

/// The axes along which neighbours of the first view and of the second lie side by side, if they are two and long; `square`: whether squares are copied. What is not
/// known is taken to be long: where it is not, there are no tiles, and all of it is what is left over.
fn tiled(from: &View, to: &View, square: bool) -> Option<(usize, usize)> {
    let (rows, columns) = (beside(from)?, beside(to)?);
    let least = if square { 2 * SQUARE } else { 2 * TILE };
    let long = |a: usize| from.dims[a].known().is_none_or(|n| n >= least);
    (rows != columns && long(rows) && long(columns)).then_some((rows, columns))
}

/// An axis of few neighbours in one array that lie between those of another axis, which are neighbours in the other array.
fn interleaved(from: &View, to: &View) -> Option<(usize, usize)> {
    let few = |a: usize| from.dims[a].known().filter(|n| (2..=FEW).contains(n));
    let (rows, columns) = (beside(from)?, beside(to)?);
    let lie = |view: &View, a: usize, b: usize| few(a).is_some_and(|n| view.strides[b] == Size::from(n));
    let long = |a: usize| from.dims[a].guess() >= LANES;
    match rows != columns {
        true if lie(from, rows, columns) && long(columns) => Some((rows, columns)),
        true if lie(to, columns, rows) && long(rows) => Some((columns, rows)),
        _ => None,
    }
}

impl View {
    /// The same elements with an axis in tiles: those of one tile come last.
    fn cut(&self, axis: usize, tile: usize) -> View {
        let mut dims = self.dims.clone();
        dims[axis] = dims[axis].over(tile.into()).unwrap_or_else(|| dims[axis].floor_div(tile));
        dims.push(tile.into());
        self.both(dims, |old| {
            let mut strides: Strides = old.into();
            strides[axis] = old[axis] * tile;
            strides.push(old[axis]);
            strides
        })
    }

    /// The same elements without an axis, at its first place.
    pub fn without(&self, axis: usize) -> View {
        let rest = |n: usize| (0..n).filter(move |a| *a != axis);
        let dims: Dims = rest(self.dims.len()).map(|a| self.dims[a]).collect();
        self.both(dims, |old| rest(old.len()).map(|a| old[a]).collect())
    }
}

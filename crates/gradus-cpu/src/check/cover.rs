//! Which outputs a run certainly writes as a whole. The others are cleared before the code runs: what comes out is never memory that was left by
//! something else.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Ranges, reach};
use crate::ir::{Buffer, Index, Module, Role, Stmt, Value};
use crate::size::Size;

/// The output buffers that are not certainly written as a whole.
pub(crate) fn uncovered(m: &Module, bytes: &[Size]) -> Vec<Buffer> {
    let walk = Coverage { m, ranges: &m.meanings.ranges, bytes };
    let covered = walk.body(&m.main, &mut Vec::new());
    let outputs = (0..m.buffers.len()).filter(|b| matches!(m.buffers[*b].role, Role::Output(_)));
    outputs.map(|b| Buffer(b as u32)).filter(|b| bytes[b.index()] != 0 && !covered.contains(b)).collect()
}

struct Coverage<'a> {
    m: &'a Module,
    ranges: &'a Ranges,
    bytes: &'a [Size],
}

/// Places that are written: `first + Σ stride·i` for every i below each count. Counts are not 1, strides not negative, the digits sorted, and those that walk one
/// run are one.
#[derive(Clone, Debug, PartialEq)]
struct Window {
    first: Size,
    digits: Vec<(Size, Size)>,
}

impl Window {
    fn new(first: Size, all: impl IntoIterator<Item = (Size, Size)>) -> Window {
        let mut window = Window { first, digits: Vec::new() };
        for (s, n) in all.into_iter().filter(|(_, n)| *n != 1) {
            // Reversed loops begin at the end.
            let backwards = s.is_negative();
            if backwards {
                window.first = window.first + s * (n - 1i64);
            }
            window.digits.push((if backwards { -s } else { s }, n));
        }
        let digits = &mut window.digits;
        let next = |digits: &[(Size, Size)], (s, n): (Size, Size)| digits.iter().position(|d| d.0 == s * n && d.0 != s);
        while let Some((i, j)) = (0..digits.len()).find_map(|i| Some((i, next(digits, digits[i])?))) {
            digits[i].1 = digits[i].1 * digits[j].1;
            digits.swap_remove(j);
        }
        digits.sort_unstable();
        window
    }

    /// This and one that begins behind it, as one: they go together along all digits but one, along which the other begins where this ends. `apart_too`: or they are alike
    /// and lie apart, which takes a digit more.
    fn with(&self, behind: &Window, apart_too: bool) -> Option<Window> {
        let apart = behind.first - self.first;
        if self.digits == behind.digits {
            let mut digits = self.digits.clone();
            // One more digit, or more of one that there is.
            match digits.iter_mut().find(|(s, n)| *s * *n == apart) {
                Some((_, n)) => *n = *n + *n,
                None if apart_too => digits.push((apart, Size::from(2usize))),
                None => return None,
            }
            return Some(Window::new(self.first, digits));
        }
        let without = |digits: &[(Size, Size)], at: usize| {
            let mut left = digits.to_vec();
            left.remove(at);
            left
        };
        let (longer, other) = if self.digits.len() >= behind.digits.len() { (self, behind) } else { (behind, self) };
        (0..longer.digits.len()).find_map(|at| {
            let ((s, n), left) = (longer.digits[at], without(&longer.digits, at));
            let same = |m: &usize| other.digits[*m].0 == s && without(&other.digits, *m) == left;
            let m = if left == other.digits { Size::ONE } else { other.digits[(0..other.digits.len()).find(same)?].1 };
            let before = if std::ptr::eq(longer, self) { n } else { m };
            let whole = left.into_iter().chain([(s, n + m)]);
            (s * before == apart).then(|| Window::new(self.first, whole))
        })
    }
}

/// Of more windows not every pair is looked at.
const MANY: usize = 32;

/// Windows of which each was put together with the one before it, if they go together.
fn neighbours_joined(windows: &[Window]) -> Vec<Window> {
    let mut joined: Vec<Window> = Vec::new();
    for window in windows {
        joined.push(window.clone());
        while let [.., before, last] = &joined[..]
            && let Some(both) = before.with(last, true)
        {
            joined.truncate(joined.len() - 2);
            joined.push(both);
        }
    }
    joined
}

/// All pairs of numbers below this.
fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |i| (0..n).filter(move |j| *j != i).map(move |j| (i, j)))
}

/// What is written of each buffer.
type Stores = FxHashMap<Buffer, Vec<Window>>;

impl Coverage<'_> {
    fn elements(&self, b: Buffer) -> Option<Size> {
        self.bytes[b.index()].over(Size::from(self.m.buffers[b.index()].ty.size()))
    }

    fn is_output(&self, b: Buffer) -> bool {
        matches!(self.m.buffers[b.index()].role, Role::Output(_))
    }

    /// The buffers that a body writes as a whole. `loops`: the loops around it, with how often each runs.
    fn body(&self, body: &[Stmt], loops: &mut Vec<(Value, Size)>) -> FxHashSet<Buffer> {
        let mut covered = FxHashSet::default();
        let mut stores = Stores::default();
        self.stores(body, loops, &mut stores, &mut covered);
        for (b, windows) in stores {
            if self.is_whole(b, windows) {
                covered.insert(b);
            }
        }
        covered
    }

    /// Whether windows are all of a buffer: neighbours are put together as long as they can be.
    fn is_whole(&self, b: Buffer, mut windows: Vec<Window>) -> bool {
        let elements = self.elements(b);
        let is_all = |w: &Window| {
            let total: Size = w.digits.iter().map(|(_, n)| *n).product();
            w.first == 0 && elements == Some(total) && reach(&w.digits) == elements
        };
        windows.sort_by_key(|w| w.first.guess());
        windows.dedup();
        if neighbours_joined(&windows).iter().any(is_all) {
            return true;
        }
        // Where the first of them is may be known only when the code runs: then those that are alike are neighbours, and any may be the next.
        windows.sort_by(|a, b| (&a.digits, a.first.guess()).cmp(&(&b.digits, b.first.guess())));
        let mut joined = neighbours_joined(&windows);
        if joined.len() > MANY {
            return false;
        }
        while let Some((i, j, both)) =
            pairs(joined.len()).find_map(|(i, j)| Some((i, j, joined[i].with(&joined[j], false)?)))
        {
            joined[i] = both;
            joined.swap_remove(j);
        }
        joined.iter().any(is_all)
    }

    fn stores(
        &self,
        body: &[Stmt],
        loops: &mut Vec<(Value, Size)>,
        stores: &mut Stores,
        covered: &mut FxHashSet<Buffer>,
    ) {
        for s in body {
            match s {
                Stmt::Store { buffer, at, .. } if self.is_output(*buffer) => {
                    if let Some(window) = self.window(at, loops) {
                        stores.entry(*buffer).or_default().push(window);
                    }
                }
                Stmt::Loop(l) => {
                    // A loop that may end early writes perhaps nothing.
                    if let Ok(n) = self.ranges.size(l.count) {
                        loops.push((l.var, n));
                        self.stores(&l.body, loops, stores, covered);
                        loops.pop();
                    }
                }
                Stmt::Kernel(k) => self.stores(&self.m.kernels[*k as usize].body, loops, stores, covered),
                Stmt::Piece(p) => self.stores(&self.m.pieces[*p as usize], loops, stores, covered),
                Stmt::Switch(s) => {
                    let mut all = s.cases.iter().map(|(body, _)| self.body(body, loops));
                    if let Some(first) = all.next() {
                        covered.extend(all.fold(first, |a, b| a.intersection(&b).copied().collect()));
                    }
                }
                Stmt::Call(c) => {
                    for (r, _) in c.regions.iter().filter(|(r, writes)| *writes && self.is_output(r.buffer)) {
                        let mut digits: Vec<(Size, Size)> =
                            r.place.1.iter().copied().zip(r.dims.iter().copied()).collect();
                        let mut known = true;
                        for (v, s) in &r.place.0.terms {
                            match loops.iter().find(|(x, _)| x == v) {
                                Some((_, n)) => digits.push((*s, *n)),
                                None => known = false,
                            }
                        }
                        let elements = self.bytes[r.buffer.index()].over(Size::from(r.bytes));
                        let total: Size = digits.iter().map(|(_, n)| *n).product();
                        if known && r.place.0.offset == 0 && elements == Some(total) && reach(&digits) == elements {
                            covered.insert(r.buffer);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// A place as loops that are around it.
    fn window(&self, at: &Index, loops: &[(Value, Size)]) -> Option<Window> {
        let mut digits = Vec::new();
        let mut offset = Size::Known(at.offset);
        for (v, s) in &at.terms {
            let stride = self.ranges.size(*s).ok()?;
            if let Some((_, n)) = loops.iter().find(|(x, _)| x == v) {
                digits.push((stride, *n));
                continue;
            }
            // A scan that goes backwards steps through the same places; a number is a number.
            let range = self.ranges.values.get(v)?;
            if range.lo == range.hi {
                offset = offset + stride * range.lo;
            } else {
                let n = range.hi + 1i64;
                loops.iter().find(|(_, m)| *m == n)?;
                self.ranges.steps.get(v).filter(|l| loops.iter().any(|(x, _)| x == *l))?;
                digits.push((stride, n));
            }
        }
        // A loop whose index stands nowhere writes the same places again.
        Some(Window::new(offset, digits))
    }
}

#[cfg(test)]
mod tests {
    use gradus_core::Dim;

    use super::*;
    use crate::ir::{BufferInfo, Ty};
    use crate::size::collect;

    /// Tiles of eight rows of an array of `c` rows of `r`, and what is left over at both ends: all of it, and not without any of them.
    #[test]
    fn tiles_of_sizes_known_at_run_time() {
        let made = collect(|| {
            let [r, c] = ["R", "C"].map(|s| Size::of(&Dim::symbol(s).unwrap()));
            let mut m = Module::default();
            m.buffers.push(BufferInfo { ty: Ty::F64, role: Role::Output(0) });
            let coverage = Coverage { m: &m, ranges: &m.meanings.ranges, bytes: &[r * c * 8usize] };
            let (long, tall) = (r.floor_div(8) * 8usize, c.floor_div(8) * 8usize);
            let tile = |j: usize| Window::new(r * j, [(Size::ONE, long), (r * 8usize, c.floor_div(8))]);
            let part = |first, n, rows| Window::new(first, [(Size::ONE, n), (r, rows)]);
            let mut all: Vec<Window> = (0..8).map(tile).collect();
            all.extend([
                part(long, r - long, tall),
                part(r * tall, long, c - tall),
                part(r * tall + long, r - long, c - tall),
            ]);
            assert!(coverage.is_whole(Buffer(0), all.clone()));
            for k in 0..all.len() {
                let mut some = all.clone();
                some[k].first = some[k].first + 1usize;
                assert!(!coverage.is_whole(Buffer(0), some.clone()), "{k}");
                some.remove(k);
                assert!(!coverage.is_whole(Buffer(0), some), "{k}");
            }
            Ok(())
        });
        made.unwrap();
    }
}

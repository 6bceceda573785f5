//! A kernel that reads memory which it also writes does so at one place for each of its points, and nothing is read that nothing has written: so no
//! iteration sees what another one makes, whatever the planner joined.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{Ranges, is_injective};
use crate::error::{Result, error};
use crate::ir::{Buffer, Expr, Index, Int, Kernel, Module, Role, Stmt, Value};
use crate::size::Size;

/// Indices that must lead to different places, where only numbers for the sizes can tell.
#[derive(Clone, Debug)]
pub(crate) struct Apart {
    kernel: String,
    buffer: Buffer,
    /// Strides, and how many numbers each index goes through.
    digits: Vec<(Size, Size)>,
}

impl Apart {
    /// Whether they do at these sizes.
    pub fn check(&self, sizes: &[i64]) -> Result<()> {
        let number = |s: Size| Size::Known(s.in_table(sizes));
        let digits: Vec<(Size, Size)> = self.digits.iter().map(|(s, n)| (number(*s), number(*n))).collect();
        // A loop that does not run leads nowhere.
        if digits.iter().any(|(_, n)| n.at_most(0)) || is_injective(&digits) {
            return Ok(());
        }
        Err(error!(Rule, "points of {} that are read and written overlap", self.buffer)
            .note(format!("in {}", self.kernel)))
    }
}

/// Refuses a module whose kernels read what they write elsewhere, or that reads what was never written. What takes the sizes to tell is given back.
pub(crate) fn check_order(m: &Module) -> Result<Vec<Apart>> {
    let mut left = Vec::new();
    for k in &m.kernels {
        check_kernel(m, k, &mut left).map_err(|e| e.note(format!("in {}", k.name)))?;
    }
    let mut written: FxHashSet<Buffer> = (0..m.buffers.len())
        .filter(|b| matches!(m.buffers[*b].role, Role::Input(_) | Role::Constant(_)))
        .map(|b| Buffer(b as u32))
        .collect();
    check_written(m, &m.main, &mut written)?;
    Ok(left)
}

/// A load or store: the loops around it, its offset, and its other parts.
struct Reached {
    path: Vec<Value>,
    offset: i64,
    /// A value, its stride, and how many numbers it goes through.
    terms: SmallVec<[(Value, Size, Size); 4]>,
}

/// What a place is, but for its offset: the loops it goes with. Loops around all accesses of a buffer are themselves; those that stand one after the
/// other are told by how far they go.
type Shape = Vec<(Option<Value>, Size, Size)>;

impl Reached {
    fn new(ranges: &Ranges, at: &Index, path: &[Value]) -> Result<Reached> {
        let mut place = Reached { path: path.to_vec(), offset: at.offset, terms: SmallVec::new() };
        for (v, s) in &at.terms {
            let stride = ranges.size(*s)?;
            let range = ranges.of(*v)?;
            match (range.lo == range.hi, (stride * range.lo).constant()) {
                (true, Some(n)) => place.offset += n,
                _ => place.terms.push((*v, stride, range.hi - range.lo + 1i64)),
            }
        }
        Ok(place)
    }

    fn shape(&self, around: &[Value]) -> Shape {
        let mut shape: Shape = self.terms.iter().map(|(v, s, n)| (around.contains(v).then_some(*v), *s, *n)).collect();
        shape.sort_unstable();
        // Loops that walk one run together are as good as one.
        let mut i = 0;
        while i < shape.len() {
            let (v, s, n) = shape[i];
            match (0..shape.len()).find(|j| *j != i && v.is_none() && shape[*j].0.is_none() && shape[*j].1 == s * n) {
                Some(j) => {
                    shape[i].2 = n * shape[j].2;
                    shape.remove(j);
                    i = 0;
                }
                None => i += 1,
            }
        }
        shape
    }
}

impl Reached {
    /// Whether threads that share the outermost loop reach different places, if the indices do that are given back. What is given to the kernel is one number
    /// for all of them.
    fn is_apart(&self, ranges: &Ranges, given: &[Value]) -> Option<Vec<(Size, Size)>> {
        let outer = self.path.first()?;
        let range = ranges.values.get(outer)?;
        if range.lo == range.hi {
            return Some(Vec::new());
        }
        let terms = self.terms.iter().filter(|(v, ..)| !given.contains(v));
        let digits: Vec<(Size, Size)> = terms.map(|(_, s, n)| (positive(*s), *n)).collect();
        if self.terms.iter().any(|(v, ..)| v == outer) {
            return Some(digits);
        }
        // Places of a row are told apart by all of its digits together, also where a loop goes over a part of the row alone.
        let of_outer = |v: &Value| {
            let digit = ranges.digits.get(v)?;
            let (var, start) = digit.counters;
            (var == *outer || start == Some(*outer)).then_some(digit.whole)
        };
        let told: Size = self.terms.iter().filter(|(v, ..)| of_outer(v).is_some()).map(|(_, _, n)| *n).product();
        let whole = self.terms.iter().find_map(|(v, ..)| of_outer(v))?;
        let row = ranges.joint.iter().find(|j| j.at == *outer).map_or(range.hi, |j| j.most) + 1i64;
        (told == whole && (row == whole || (whole - row).at_least(0))).then_some(digits)
    }
}

fn positive(s: Size) -> Size {
    if s.is_negative() { -s } else { s }
}

#[derive(Default)]
struct Found {
    loads: FxHashMap<Buffer, Vec<Reached>>,
    stores: FxHashMap<Buffer, Vec<Reached>>,
}

fn check_kernel(m: &Module, k: &Kernel, left: &mut Vec<Apart>) -> Result<()> {
    // Certain, impossible, or a question of sizes.
    let mut ask = |buffer: Buffer, digits: Vec<(Size, Size)>| {
        let symbolic = digits.iter().any(|(s, n)| s.constant().is_none() || n.constant().is_none());
        let certain = is_injective(&digits);
        if symbolic && !certain {
            left.push(Apart { kernel: k.name.clone(), buffer, digits });
        }
        symbolic || certain
    };
    let mut found = Found::default();
    collect(&m.meanings.ranges, &k.body, &mut Vec::new(), &mut found)?;
    for (b, stores) in &found.stores {
        let apart = |p: &Reached, ask: &mut dyn FnMut(Buffer, Vec<(Size, Size)>) -> bool| {
            p.is_apart(&m.meanings.ranges, &k.inputs).is_some_and(|digits| ask(*b, digits))
        };
        if k.parallel && !stores.iter().all(|p| apart(p, &mut ask)) {
            return Err(error!(Rule, "threads would write the same places of {b}"));
        }
        let Some(loads) = found.loads.get(b) else { continue };
        let all = || stores.iter().chain(loads);
        let mut around = stores[0].path.clone();
        for p in all() {
            let common = around.iter().zip(&p.path).take_while(|(a, b)| a == b).count();
            around.truncate(common);
        }
        // Loops over different parts of a row stand one after the other: each part is read and written for itself.
        let mut parts: Vec<(Shape, Vec<i64>)> = Vec::new();
        for p in all() {
            let shape = p.shape(&around);
            match parts.iter_mut().find(|part| part.0 == shape) {
                Some(part) => part.1.push(p.offset),
                None => parts.push((shape, vec![p.offset])),
            }
        }
        if !are_apart(&parts) {
            return Err(error!(Rule, "{b} is read and written at different places"));
        }
        for (shape, mut offsets) in parts {
            offsets.sort_unstable();
            offsets.dedup();
            let step = offsets.windows(2).map(|w| w[1] - w[0]).min().unwrap_or(1);
            let count = offsets.last().map_or(1, |l| (l - offsets[0]) / step + 1);
            let mut digits: Vec<(Size, Size)> = shape.iter().map(|(_, s, n)| (positive(*s), *n)).collect();
            digits.push((Size::Known(step), Size::Known(count)));
            if offsets.len() > 1 && !ask(*b, digits) {
                return Err(error!(Rule, "points of {b} that are read and written overlap"));
            }
        }
    }
    Ok(())
}

/// Whether accesses of several shapes, each with its offsets, reach different places: beside the loops around all of them, which they must share, each goes through numbers
/// of its own, and all of these together are fewer than such a loop steps over.
fn are_apart(parts: &[(Shape, Vec<i64>)]) -> bool {
    if parts.len() <= 1 {
        return true;
    }
    let shared = |shape: &Shape| -> Shape { shape.iter().filter(|(v, ..)| v.is_some()).copied().collect() };
    let around = shared(&parts[0].0);
    let mut spans = Vec::new();
    for (shape, offsets) in parts {
        let (Some(first), Some(last)) = (offsets.iter().min(), offsets.iter().max()) else { return false };
        let (mut lo, mut hi) = (*first, *last);
        for (v, s, n) in shape {
            let (Some(s), Some(n)) = (s.constant(), n.constant()) else { return false };
            if v.is_none() {
                *if s < 0 { &mut lo } else { &mut hi } += s * (n - 1).max(0);
            }
        }
        if shared(shape) != around {
            return false;
        }
        spans.push((lo, hi));
    }
    spans.sort_unstable();
    let (first, last) = (spans[0].0, spans.iter().map(|s| s.1).fold(spans[0].1, i64::max));
    let mut digits: Vec<(Size, Size)> = around.iter().map(|(_, s, n)| (positive(*s), *n)).collect();
    digits.push((Size::ONE, Size::Known(last - first + 1)));
    spans.windows(2).all(|w| w[0].1 < w[1].0) && is_injective(&digits)
}

fn collect(ranges: &Ranges, body: &[Stmt], path: &mut Vec<Value>, found: &mut Found) -> Result<()> {
    for s in body {
        match s {
            Stmt::Let(_, Expr::Load(b, at)) => {
                found.loads.entry(*b).or_default().push(Reached::new(ranges, at, path)?);
            }
            Stmt::Store { buffer, at, .. } => {
                found.stores.entry(*buffer).or_default().push(Reached::new(ranges, at, path)?);
            }
            Stmt::Loop(l) => {
                path.push(l.var);
                collect(ranges, &l.body, path, found)?;
                path.pop();
            }
            _ => {}
        }
    }
    Ok(())
}

/// Nothing is read before something is written to it. Loops are taken to run: what one leaves out is the business of what it leaves.
fn check_written(m: &Module, body: &[Stmt], written: &mut FxHashSet<Buffer>) -> Result<()> {
    let unwritten = |b: Buffer| error!(Rule, "{b} is read, and nothing has written it");
    for s in body {
        match s {
            Stmt::Let(_, Expr::Load(b, _)) if !written.contains(b) => return Err(unwritten(*b)),
            Stmt::Store { buffer, .. } => drop(written.insert(*buffer)),
            // A scan of nothing has a body that never runs.
            Stmt::Loop(l) if l.count == Int::Const(0) => {}
            Stmt::Loop(l) => check_written(m, &l.body, written)?,
            Stmt::While(w) => {
                check_written(m, &w.before, written)?;
                check_written(m, &w.body, written)?;
            }
            Stmt::Switch(s) => {
                let mut after = written.clone();
                for (body, _) in &s.cases {
                    let mut here = written.clone();
                    check_written(m, body, &mut here)?;
                    after.extend(here);
                }
                *written = after;
            }
            Stmt::Kernel(k) => {
                let k = &m.kernels[*k as usize];
                check_written(m, &k.body, written).map_err(|e| e.note(format!("in {}", k.name)))?;
            }
            Stmt::Piece(p) => check_written(m, &m.pieces[*p as usize], written)?,
            Stmt::Call(c) => {
                for (r, writes) in &c.regions {
                    let empty = r.dims.contains(&Size::ZERO);
                    if !writes && !empty && !written.contains(&r.buffer) {
                        return Err(unwritten(r.buffer));
                    }
                }
                written.extend(c.regions.iter().filter(|(_, writes)| *writes).map(|(r, _)| r.buffer));
            }
            Stmt::Swap(a, b) => {
                let both: SmallVec<[bool; 2]> = [a, b].iter().map(|x| written.contains(x)).collect();
                for (x, w) in [(a, both[1]), (b, both[0])] {
                    if w {
                        written.insert(*x);
                    } else {
                        written.remove(x);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

//! Wholes of parts: concatenated, padded, or moved as strides cannot say. A part is made where it will lie, if a nest makes it or it is a whole of parts
//! itself; so is what is wanted with its axes in another order.

use gradus_core::DType;
use gradus_core::primitives::shaping::{Concatenate, Pad};
use gradus_core::program::{Atom, Equation, Program};

use super::fusion::{Class, FusionPlan, Unit};
use super::values::{NOWHERE, Repr, Root, Values, moves};
use super::views::{Dims, View, count, is_empty};
use super::{Lower, splat};
use crate::error::{Result, error};
use crate::ir::Ty;
use crate::size::Size;

impl Lower {
    /// Lets what only a whole wants be made in it, if a nest makes it or it is a whole of parts itself. Whoever reads comes first: parts of parts lie in the whole.
    pub(super) fn place_parts(&mut self, p: &Program, values: &Values, plan: &FusionPlan) -> Result<()> {
        for unit in plan.units.iter().rev() {
            let Unit::Equation(i) = *unit else { continue };
            let e = &p.equations()[i];
            if plan.classes[i] == Class::Scalars || e.results().len() != 1 {
                continue;
            }
            let v = e.result().index();
            let whole = self.whole(values, v);
            let parts = parts(p, values, e, &whole);
            // What is several parts would be copied inside of the whole, and what is read otherwise must lie as it always does.
            let once = |root: Root| p.operands(e).iter().filter(|a| values.origin(**a).root == root).count() == 1;
            let mut placed: Vec<(usize, View)> = Vec::new();
            for (a, part) in &parts {
                let o = values.origin(*a);
                if let Root::Value(r) = o.root
                    && r as usize >= p.inputs().len()
                    && o.view.buffer == NOWHERE
                    && self.frame.uses.get(&o.root) == Some(&1)
                    && ![&self.frame.wanted, &self.frame.laid].iter().any(|there| there.contains_key(&(r as usize)))
                    && let Some(place) = o.view.laid_out(&values.dims[r as usize], part)
                    && once(o.root)
                {
                    placed.push((r as usize, place.of(values.tag(r as usize))));
                }
            }
            if placed.is_empty() {
                continue;
            }
            let whole = if whole.buffer == NOWHERE { View { buffer: self.scratch(p, v)?, ..whole } } else { whole };
            for (r, place) in placed {
                self.frame.laid.insert(r, View { buffer: whole.buffer, ..place });
            }
            self.frame.joined.insert(v, whole);
        }
        Ok(())
    }

    /// Where a whole of parts goes: where it is wanted, or a dense array of its own.
    fn whole(&self, values: &Values, v: usize) -> View {
        // What a loop carries in one place may still be read when a part is made.
        let wanted = self.frame.wanted.get(&v).filter(|view| !self.frame.carried.contains(&view.buffer));
        let there = wanted.or_else(|| self.frame.laid.get(&v));
        there.cloned().unwrap_or_else(|| View::dense(NOWHERE, &values.dims[v]).of(values.tag(v)))
    }

    /// The memory of a whole: where its parts are, or wherever it is wanted.
    pub(super) fn joined_result(&mut self, p: &Program, values: &Values, v: usize) -> Result<View> {
        let there = self.frame.joined.get(&v).or_else(|| self.frame.laid.get(&v)).cloned();
        let Some(whole) = there else { return self.dense_result(p, values, v) };
        self.frame.reprs[v] = Some(Repr::Memory(whole.clone()));
        Ok(whole)
    }

    /// Whether an array was made in a part of a whole, or at another place with its axes in another order; then it is from now on what lies there.
    pub(super) fn is_laid(&mut self, values: &Values, a: Atom, to: &View, dtype: DType) -> bool {
        let o = values.origin(a);
        if let Root::Value(r) = o.root
            && let Some(laid) = self.frame.laid.get(&(r as usize))
            && matches!(&self.frame.reprs[r as usize], Some(Repr::Memory(view)) if view == laid)
            && o.view.laid_out(&values.dims[r as usize], to).is_some_and(|place| place.of(laid.mean.tag) == *laid)
        {
            let mut here = View { mean: o.view.mean.clone(), ..to.clone() };
            here.mean.tag = laid.mean.tag;
            self.becomes(&here, to, dtype);
            return true;
        }
        false
    }

    pub(super) fn concatenate(&mut self, p: &Program, values: &Values, e: &Equation, c: &Concatenate) -> Result<()> {
        let to = self.joined_result(p, values, e.result().index())?;
        let mut start = vec![Size::ZERO; to.dims.len()];
        let step = vec![1; to.dims.len()];
        let mut fills: Option<Filling> = None;
        for &a in p.operands(e) {
            let dims = values.dims(a).clone();
            let splat = splat(p, values, a);
            // Neighbours of one number are one.
            if let Some(fill) = fills.take_if(|fill| splat != Some(fill.number)) {
                self.fill_part(&to, fill)?;
            }
            match (splat, &mut fills) {
                _ if is_empty(&dims) => {}
                (Some(_), Some(fill)) => fill.dims[c.axis] = fill.dims[c.axis] + dims[c.axis],
                (Some(number), _) => fills = Some(Filling { number, start: start.clone(), dims: dims.clone() }),
                (None, _) => self.put(p, values, a, &to.sliced(&start, &dims, &step))?,
            }
            start[c.axis] = start[c.axis] + dims[c.axis];
        }
        fills.map_or(Ok(()), |fill| self.fill_part(&to, fill))
    }

    /// One number in a part of a whole.
    fn fill_part(&mut self, whole: &View, fill: Filling) -> Result<()> {
        let number = self.emitter.constant(fill.number.0, fill.number.1);
        self.fill(&whole.sliced(&fill.start, &fill.dims, &vec![1; fill.dims.len()]), number)
    }

    /// An array in a part of a whole: made there, stored from scalars, or copied.
    fn put(&mut self, p: &Program, values: &Values, a: Atom, part: &View) -> Result<()> {
        let dtype = p.ty(a).dtype();
        if self.is_laid(values, a, part, dtype) {
            return Ok(());
        }
        if self.are_scalars(values, a) {
            let elements = self.elements(p, values, a)?;
            self.store_all(part, &elements);
            return Ok(());
        }
        let from = self.memory(p, values, a)?;
        self.copy(&from, part, dtype)
    }

    /// What strides could not say, in memory: made in its new order, or copied.
    pub(super) fn moved(&mut self, p: &Program, values: &Values, e: &Equation) -> Result<()> {
        let (v, a) = (e.result().index(), p.operands(e)[0]);
        let to = self.joined_result(p, values, v)?;
        if let Some(part) = to.reshaped(values.dims(a)) {
            return self.put(p, values, a, &part);
        }
        // It goes to a place that its operand's dimensions cannot tell: there by way of memory that they can.
        let whole = View::dense(self.scratch(p, v)?, &values.dims[v]).of(values.tag(v));
        let part =
            whole.reshaped(values.dims(a)).ok_or_else(|| error!(Rule, "a dense array has no such dimensions"))?;
        self.put(p, values, a, &part)?;
        self.copy(&whole, &to, p.ty(a).dtype())
    }

    pub(super) fn pad(&mut self, p: &Program, values: &Values, e: &Equation, landing: &Landing) -> Result<()> {
        let operands = p.operands(e);
        let to = self.joined_result(p, values, e.result().index())?;
        let fill = match self.splat_of(p, values, operands[1]) {
            Some(v) => v,
            None => {
                let view = self.memory(p, values, operands[1])?;
                self.load_all(&view)[0]
            }
        };
        if landing.is_window() && !is_empty(&landing.size) {
            for border in landing.borders(&to) {
                self.fill(&border, fill)?;
            }
            let part = landing.place(&to);
            return match self.splat_of(p, values, operands[0]) {
                Some(v) => self.fill(&part, v),
                None => self.put(p, values, operands[0], &part),
            };
        }
        self.fill(&to, fill)?;
        if is_empty(&landing.size) {
            return Ok(());
        }
        let part = landing.place(&to);
        match self.splat_of(p, values, operands[0]) {
            Some(v) => self.fill_into(&part, v, true),
            None => {
                let from = self.memory(p, values, operands[0])?;
                let from = from.sliced(&landing.first, &landing.size, &vec![1; landing.size.len()]);
                self.copy_again(&from, &part);
            }
        }
        Ok(())
    }

    /// Whether an array is a few scalars.
    fn are_scalars(&self, values: &Values, a: Atom) -> bool {
        let Root::Value(r) = values.origin(a).root else { return false };
        let few = count(values.dims(a)).is_few(values.small) && values.ty(a).is_some();
        few && matches!(self.frame.reprs[r as usize], Some(Repr::Elements(_)))
    }
}

/// The operands that an equation puts together, each with its place in the whole.
fn parts(p: &Program, values: &Values, e: &Equation, whole: &View) -> Vec<(Atom, View)> {
    let operands = p.operands(e);
    let mut parts = Vec::new();
    if let Some(c) = e.op().downcast::<Concatenate>() {
        let mut start = vec![Size::ZERO; whole.dims.len()];
        for &a in operands {
            let dims = values.dims(a);
            parts.push((a, whole.sliced(&start, dims, &vec![1; dims.len()])));
            start[c.axis] = start[c.axis] + dims[c.axis];
        }
    } else if let Some(pad) = e.op().downcast::<Pad>() {
        let landing = Landing::new(pad, values.dims(operands[0]), &whole.dims);
        parts.extend(landing.filter(Landing::is_window).map(|l| (operands[0], l.place(whole))));
    } else if moves(e.op()) && count(values.dims(operands[0])) == count(&whole.dims) {
        parts.extend(whole.reshaped(values.dims(operands[0])).map(|part| (operands[0], part)));
    }
    parts.retain(|(_, part)| !is_empty(&part.dims));
    parts
}

/// One number in a part of a whole.
struct Filling {
    /// Its type and its bits.
    number: (Ty, u64),
    start: Vec<Size>,
    dims: Dims,
}

/// The part of a padded operand that lands inside, and where.
pub(super) struct Landing {
    /// The first of its elements, along each axis.
    first: Dims,
    /// How many of them.
    size: Dims,
    /// Where the first lands.
    start: Dims,
    /// How far apart they land.
    step: Vec<usize>,
    /// Whether all of it lands.
    whole: bool,
}

impl Landing {
    /// Whether all of the operand lands, side by side.
    pub fn is_window(&self) -> bool {
        self.whole && self.step.iter().all(|s| *s == 1)
    }

    /// Where it lands in the result.
    pub fn place(&self, to: &View) -> View {
        to.sliced(&self.start, &self.size, &self.step)
    }

    /// What is around a window: along each axis the parts before and behind it, of what lies inside along the axes before.
    fn borders(&self, to: &View) -> Vec<View> {
        let mut all = Vec::new();
        for a in 0..self.size.len() {
            let end = self.start[a] + self.size[a];
            for (first, size) in [(Size::ZERO, self.start[a]), (end, to.dims[a] - end)] {
                let mut start: Dims = self.start[..a].into();
                let mut dims: Dims = self.size[..a].into();
                start.push(first);
                dims.push(size);
                start.resize(to.dims.len(), Size::ZERO);
                dims.extend_from_slice(&to.dims[a + 1..]);
                all.push(to.sliced(&start, &dims, &self.step));
            }
        }
        all.retain(|border| !is_empty(&border.dims));
        all
    }

    /// None if it takes the sizes to say.
    pub fn new(pad: &Pad, from: &[Size], to: &[Size]) -> Option<Landing> {
        let empty = Dims::new;
        let mut landing = Landing { first: empty(), size: empty(), start: empty(), step: Vec::new(), whole: true };
        for a in 0..from.len() {
            let every = pad.interior[a] + 1;
            let (low, high) = (Size::of(&pad.low[a]), Size::of(&pad.high[a]));
            landing.step.push(every);
            if low.at_least(0) && high.at_least(0) {
                landing.first.push(Size::ZERO);
                landing.size.push(from[a]);
                landing.start.push(low);
                continue;
            }
            landing.whole = false;
            if let (Some(low), Some(from), Some(to)) = (low.constant(), from[a].constant(), to[a].constant()) {
                let every = every as i64;
                let first = if low < 0 { (-low + every - 1) / every } else { 0 };
                let end = (to - 1 - low).div_euclid(every).min(from - 1);
                landing.first.push(first.into());
                landing.size.push((end - first + 1).max(0).into());
                landing.start.push((low + first * every).max(0).into());
                continue;
            }
            // Cut off by known amounts: what is left is as long as the result says.
            let (low, high) = (low.constant()?, high.constant()?);
            if every != 1 {
                return None;
            }
            landing.first.push((-low).max(0).into());
            landing.size.push(to[a] - low.max(0) - high.max(0));
            landing.start.push(low.max(0).into());
        }
        Some(landing)
    }
}

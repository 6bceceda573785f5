//! Branches and loops: their regions become programs, and what regions capture becomes operands.

use gradus_core::control::{History, switch, while_loop};
use gradus_core::error::Result;
use gradus_core::primitives::elementwise::{Add, Compare, Direction};
use gradus_core::program::{Atom, Constant};
use gradus_core::trace::Traced;
use gradus_core::{Array, DType, Scalar};

use super::elementwise::{convert, whole};
use super::{Answer, Item, On, flat, unflat};

/// The number that an atom of a program is, if it is one.
fn number(traced: &Traced, atom: Atom) -> Option<i64> {
    traced.program.constant(atom).and_then(Constant::splat_value).and_then(Scalar::to_i64)
}

/// How many steps a loop takes that counts one carry up to a number: what `fori_loop` and `scan` become.
fn steps(condition: &Traced, body: &Traced, carries: &[Array]) -> Option<usize> {
    let p = &condition.program;
    let [holds] = p.outputs() else { return None };
    let test = p.equations().iter().find(|e| Some(e.result()) == holds.value())?;
    let direction = test.op().downcast::<Compare>()?.direction;
    let [counter, limit] = p.operands(test) else { return None };
    let at = counter.value().map(|v| v.index()).filter(|i| *i < carries.len())?;
    let limit = number(condition, *limit)?;
    let limit = match direction {
        Direction::Lt => limit,
        Direction::Le => limit.checked_add(1)?,
        _ => return None,
    };
    let p = &body.program;
    let next = p.equations().iter().find(|e| Some(e.result()) == p.outputs().get(at).and_then(|o| o.value()))?;
    if !next.op().is::<Add>() {
        return None;
    }
    let [a, b] = p.operands(next) else { return None };
    let is_counter = |a: &Atom| a.value().is_some_and(|v| v.index() == at);
    let step = if is_counter(a) { number(body, *b) } else { number(body, *a).filter(|_| is_counter(b)) };
    let step = step.filter(|s| *s > 0)?;
    let start = carries.get(at)?.concrete()?.splat_value()?.to_i64()?;
    let span = limit.checked_sub(start)?.max(0);
    usize::try_from(span.checked_add(step - 1)? / step).ok()
}

impl On<'_, '_> {
    pub(super) fn control(&mut self, name: &str) -> Answer {
        match name {
            "while" => self.while_loop(),
            "if" => {
                let index = convert(&self.x(0)?, DType::I32);
                // A false predicate is the number 0.
                self.branches(&index, &[1, 0])
            }
            "case" => {
                let index = convert(&self.x(0)?, DType::I32);
                let count = self.op.regions.len();
                let last = whole(&index, count as i64 - 1);
                // Whatever is out of range, below too, means the last branch.
                let inside = index.ge(whole(&index, 0)) & index.lt(whole(&index, count as i64));
                self.branches(&inside.select(&index, &last), &Vec::from_iter(0..count))
            }
            _ => Ok(None),
        }
    }

    /// The items of the results, from the arrays in them.
    pub(super) fn items(&self, arrays: Vec<Array>) -> Result<Vec<Item>> {
        let mut arrays = arrays.into_iter();
        self.op.results.iter().map(|r| unflat(self.scope.ty(*r)?, &mut arrays)).collect()
    }

    fn branches(&mut self, index: &Array, order: &[usize]) -> Answer {
        let mut branches = Vec::with_capacity(order.len());
        for at in order {
            let region = self.region(*at)?;
            branches.push(self.traced(region, &[])?);
        }
        let results = switch(index, &branches, &[])?;
        self.items(results).map(Some)
    }

    fn while_loop(&mut self) -> Answer {
        let items = (0..self.op.operands.len()).map(|i| self.item(i)).collect::<Result<Vec<_>>>()?;
        let carries = flat(&items);
        let types = carries.iter().map(|c| c.ty().cloned()).collect::<Result<Vec<_>>>()?;
        let (condition, body) = (self.region(0)?, self.region(1)?);
        let (condition, body) = (self.traced(condition, &types)?, self.traced(body, &types)?);
        let history = steps(&condition, &body, &carries).map_or_else(History::default, History::Limit);
        let results = while_loop(&condition, &body, &carries, history)?;
        self.items(results).map(Some)
    }
}

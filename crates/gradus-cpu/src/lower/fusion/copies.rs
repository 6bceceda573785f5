//! Copies that are spared: whoever makes their operand stores it where they would put it.

use gradus_core::primitives::shaping::{Concatenate, Pad};
use rustc_hash::FxHashMap;

use super::{Class, Planner};
use crate::lower::values::{Root, moves};

impl Planner<'_> {
    /// What strides cannot say is copied in a nest, which others may share. If it is only wanted in memory, as a result or as a part of a whole, and nothing else
    /// reads its operand, it is done by itself: then the operand can be made in its place.
    pub(super) fn spare_copies(&mut self) {
        /// How often a value is read, and whether only by those who want it in memory.
        struct Read {
            times: usize,
            in_memory: bool,
        }
        let mut reads: FxHashMap<u32, Read> = FxHashMap::default();
        let mut read = |root: Root, in_memory: bool| {
            if let Root::Value(r) = root {
                let read = reads.entry(r).or_insert(Read { times: 0, in_memory: true });
                read.times += 1;
                read.in_memory &= in_memory;
            }
        };
        let mut makers: FxHashMap<u32, usize> = FxHashMap::default();
        for (i, e) in self.p.equations().iter().enumerate().filter(|(i, _)| self.classes[*i] != Class::View) {
            let whole = self.classes[i] == Class::Single && (e.op().is::<Concatenate>() || e.op().is::<Pad>());
            self.p.operands(e).iter().for_each(|a| read(self.values.origin(*a).root, whole));
            makers.extend(e.results().map(|r| (r.index() as u32, i)));
        }
        self.p.outputs().iter().for_each(|a| read(self.values.origin(*a).root, true));
        for (i, e) in self.p.equations().iter().enumerate() {
            if self.classes[i] != Class::Point || !moves(e.op()) {
                continue;
            }
            let wanted = reads.get(&(e.result().index() as u32)).is_some_and(|r| r.times == 1 && r.in_memory);
            let Root::Value(from) = self.values.origin(self.p.operands(e)[0]).root else { continue };
            let is_nest = |m: &usize| self.classes[*m] == Class::Point && !moves(self.p.equations()[*m].op());
            let alone = reads.get(&from).is_some_and(|r| r.times == 1);
            if wanted && alone && makers.get(&from).is_some_and(is_nest) {
                self.classes[i] = Class::Single;
            }
        }
    }
}

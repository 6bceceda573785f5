//! Shadow memory: for every element of memory, which element of which value of the program it holds, and in which step of its loop that was made.
//! A load that finds anything else is a fault of the lowering, found without looking at a number.

use std::ops::Range;

use smallvec::SmallVec;

use super::meaning::{Meanings, Tag};
use super::{Buffer, Module};
use crate::error::{Result, error};

/// What an element holds: a value, its element, and the step in which it was made.
type Held = (Tag, i64, u64);

/// An element that was written.
#[derive(Clone, Debug)]
struct Record {
    bytes: Range<usize>,
    /// One value, or several that are the same there.
    held: SmallVec<[Held; 1]>,
}

/// No record: the byte was never written.
const UNWRITTEN: u32 = u32::MAX;

/// What memory holds.
#[derive(Debug)]
pub struct Shadow {
    meanings: Meanings,
    /// For each byte of each block of memory, the record of the element that it is part of.
    blocks: Vec<Vec<u32>>,
    records: Vec<Record>,
    /// The step that each loop is in.
    steps: Vec<u64>,
    clock: u64,
}

impl Shadow {
    /// The shadow of blocks of memory in which nothing was written.
    pub fn new(module: &Module, blocks: &[Vec<u8>]) -> Shadow {
        Shadow {
            meanings: module.meanings.clone(),
            blocks: blocks.iter().map(|b| vec![UNWRITTEN; b.len()]).collect(),
            records: Vec::new(),
            steps: vec![0; module.meanings.scopes as usize + 1],
            clock: 0,
        }
    }

    fn held(&self, tag: Tag, element: i64) -> Held {
        let scope = self.meanings.tags.get(tag.0 as usize).map_or(0, |t| t.scope);
        (tag, element, self.steps.get(scope as usize).copied().unwrap_or(0))
    }

    /// A step of a loop begins.
    pub fn step(&mut self, scope: u32) {
        self.clock += 1;
        self.steps[scope as usize] = self.clock;
    }

    /// All of an array is there.
    pub fn give(&mut self, tag: Tag, block: usize, bytes: Range<usize>, size: usize) {
        for (e, start) in bytes.step_by(size).enumerate() {
            let held = self.held(tag, e as i64);
            self.put(block, start..start + size, SmallVec::from_iter([held]));
        }
    }

    fn put(&mut self, block: usize, bytes: Range<usize>, held: SmallVec<[Held; 1]>) {
        // An element that is written over keeps its record: a loop does not make more of them with every step.
        if let Some(r) = self.record(block, &bytes) {
            self.records[r as usize].held = held;
            return;
        }
        let n = self.records.len() as u32;
        self.blocks[block][bytes.clone()].fill(n);
        self.records.push(Record { bytes, held });
    }

    /// The whole element at a place, if it was written as one.
    fn record(&self, block: usize, bytes: &Range<usize>) -> Option<u32> {
        let at = &self.blocks[block][bytes.clone()];
        let first = *at.first()?;
        let whole = at.iter().all(|r| *r == first) && first != UNWRITTEN;
        (whole && self.records[first as usize].bytes == *bytes).then_some(first)
    }

    /// An element is written.
    pub fn store(
        &mut self,
        tag: Tag,
        element: i64,
        again: bool,
        block: usize,
        bytes: &Range<usize>,
    ) -> std::result::Result<(), String> {
        let held = self.held(tag, element);
        if !again
            && let Some(r) = self.record(block, bytes)
            && self.records[r as usize].held.contains(&held)
        {
            return Err(format!("{} is written twice", self.text(held)));
        }
        self.put(block, bytes.clone(), SmallVec::from_iter([held]));
        Ok(())
    }

    /// Something is written that has no meaning.
    pub fn store_any(&mut self, block: usize, bytes: &Range<usize>) -> std::result::Result<(), String> {
        self.put(block, bytes.clone(), SmallVec::new());
        Ok(())
    }

    /// What is there is this, too.
    pub fn also(&mut self, tag: Tag, element: i64, block: usize, bytes: &Range<usize>) {
        let held = self.held(tag, element);
        if let Some(r) = self.record(block, bytes) {
            let all = &mut self.records[r as usize].held;
            // What the same value held in an earlier step is over.
            all.retain(|(t, ..)| *t != tag);
            all.push(held);
        }
    }

    /// An element is read.
    pub fn load(&self, tag: Tag, element: i64, block: usize, bytes: &Range<usize>) -> std::result::Result<(), String> {
        let want = self.held(tag, element);
        let Some(r) = self.record(block, bytes) else {
            return Err(format!("{} is read where nothing (or a part of something else) was written", self.text(want)));
        };
        let held = &self.records[r as usize].held;
        if held.contains(&want) {
            return Ok(());
        }
        let there: Vec<String> = held.iter().map(|h| self.text(*h)).collect();
        let there = if there.is_empty() { "something without a name".into() } else { there.join(", ") };
        Err(format!("{} is read where {there} is", self.text(want)))
    }

    /// Something is read that has no meaning; it must be there.
    pub fn written(&self, block: usize, bytes: &Range<usize>) -> std::result::Result<(), String> {
        self.record(block, bytes).map(drop).ok_or_else(|| "memory is read that was never written".into())
    }

    /// An output must be there as a whole.
    pub fn made(&self, tag: Tag, buffer: Buffer, block: usize, bytes: Range<usize>, size: usize) -> Result<()> {
        for (e, start) in bytes.step_by(size).enumerate() {
            self.load(tag, e as i64, block, &(start..start + size))
                .map_err(|what| error!(Index, "at the end of the run, in {buffer}: {what}"))?;
        }
        Ok(())
    }

    fn text(&self, (tag, element, step): Held) -> String {
        let Some(info) = self.meanings.tags.get(tag.0 as usize) else { return format!("element {element}") };
        let place = info.place.map_or_else(String::new, |p| format!(" ({p})"));
        let step = if info.scope == 0 { String::new() } else { format!(" of step {step}") };
        format!("element {element} of {}{step}{place}", info.name)
    }
}

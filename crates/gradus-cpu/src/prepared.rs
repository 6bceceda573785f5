//! A call whose buffers are there before it: nothing is allocated, nothing is locked, nothing is checked but the types of
//! what is written and read.

use std::sync::Arc;

use gradus_core::array::Concrete;
use gradus_core::oracle::Watched;
use gradus_core::types::Element;
use gradus_core::{Array, Type};

use crate::arena::Arena;
use crate::block::Block;
use crate::error::{Result, error, fail};
use crate::exec::address;
use crate::lower::Output;
use crate::native::{Backing, Native, Ready};
use crate::runtime::by_dtype;

/// A compiled program with memory for its inputs, outputs and scratch arrays.
///
/// Write the inputs, run, read the outputs, as often as you like.
pub struct Prepared {
    native: Arc<Native>,
    inputs: Vec<Block>,
    /// What the code makes, then a copy of each input or constant that the program gives back.
    blocks: Vec<Block>,
    /// Which of the blocks each output is.
    outputs: Vec<usize>,
    /// Inputs that are given back, with the blocks that they are copied to.
    copies: Vec<(usize, usize)>,
    /// Inputs that do not change: what the function captured.
    captures: Vec<Concrete>,
    arena: Arena,
    ready: Arc<Ready>,
    table: Vec<*mut u8>,
    scratch: Vec<*mut u8>,
    /// Who holds its runs against the interpreter.
    watched: Option<Arc<Watched>>,
}

// SAFETY: every pointer is to memory that it owns, or to arrays that are only read.
unsafe impl Send for Prepared {}

impl Prepared {
    /// Memory for a program whose last inputs are these.
    pub fn new(native: Arc<Native>, captures: &[Array]) -> Result<Prepared> {
        let l = native.lowered();
        let free =
            l.inputs.len().checked_sub(captures.len()).ok_or_else(|| error!(Signature, "too many inputs are given"))?;
        let ready = native.ready_without_inputs()?;
        let inputs = ready.bound.inputs[..free].iter().map(Block::zeros).collect::<Result<Vec<_>>>()?;
        let mut blocks = ready.bound.made.iter().map(Block::zeros).collect::<Result<Vec<_>>>()?;
        let captures = captures.iter().map(|a| a.on_host()?.try_dense()).collect::<Result<Vec<_>>>()?;
        for (i, (c, ty)) in captures.iter().zip(&ready.bound.inputs[free..]).enumerate() {
            if c.ty() != ty {
                fail!(Signature, "input {} of `{}` is of type {ty}, not {}", free + i, l.module.name, c.ty());
            }
        }
        let (mut outputs, mut copies) = (Vec::with_capacity(l.outputs.len()), Vec::new());
        for (ty, output) in &l.outputs {
            if let Output::Made(i) = output {
                outputs.push(*i);
                continue;
            }
            let mut block = Block::zeros(ty)?;
            match *output {
                Output::Input(i) if i < free => copies.push((i, blocks.len())),
                // These stay what they are: once is enough.
                Output::Input(i) => block.copy_from(&captures[i - free])?,
                Output::Constant(i) => block.copy_from(native.constant(i))?,
                Output::Made(_) => {}
            }
            outputs.push(blocks.len());
            blocks.push(block);
        }
        let arena = Arena::new(ready.plan.bytes)?;
        let table: Vec<*mut u8> = ready
            .slots
            .iter()
            .map(|slot| match *slot {
                Backing::Input(i) if (i as usize) < free => inputs[i as usize].address(),
                Backing::Input(i) => address(&captures[i as usize - free]).cast_mut(),
                Backing::Output(i) => blocks[i as usize].address(),
                Backing::Constant(i) => address(native.constant(i as usize)).cast_mut(),
                Backing::Scratch(at) => arena.at(at),
                // SAFETY: the plan's places lie inside the output.
                Backing::Inside(i, at) => unsafe { blocks[i as usize].address().add(at) },
                Backing::Nowhere => std::ptr::null_mut(),
            })
            .collect();
        let scratch = table.clone();
        Ok(Prepared { native, inputs, blocks, outputs, copies, captures, arena, ready, table, scratch, watched: None })
    }

    /// The same, with its runs verified: each is also interpreted, which allocates.
    pub fn watched(self, watched: Arc<Watched>) -> Prepared {
        Prepared { watched: Some(watched), ..self }
    }

    /// The elements of an input, in row-major order, to be written.
    pub fn input<T: Element>(&mut self, i: usize) -> Result<&mut [T]> {
        let dtype = self.ready.bound.inputs.get(i).map(Type::dtype);
        let block = self.inputs.get_mut(i).ok_or_else(|| error!(Index, "there is no input {i}"))?;
        // SAFETY: it began as zeros, and code runs only while this is borrowed.
        let values = unsafe { block.slice_mut() };
        values.ok_or_else(|| error!(DType, "input {i} has elements of {}, not {}", dtype.unwrap_or(T::DTYPE), T::DTYPE))
    }

    /// The elements of an output, in row-major order.
    pub fn output<T: Element>(&self, i: usize) -> Result<&[T]> {
        let block = self.outputs.get(i).ok_or_else(|| error!(Index, "there is no output {i}"))?;
        // SAFETY: it began as zeros, and code runs only while this is borrowed.
        let values = unsafe { self.blocks[*block].slice() };
        values.ok_or_else(|| {
            let dtype = self.native.lowered().outputs[i].0.dtype();
            error!(DType, "output {i} has elements of {dtype}, not {}", T::DTYPE)
        })
    }

    /// Runs the program.
    pub fn run(&mut self) -> Result<()> {
        match self.watched.clone() {
            None => self.run_alone(),
            Some(watched) => self.run_watched(&watched),
        }
    }

    #[cold]
    fn run_watched(&mut self, watched: &Watched) -> Result<()> {
        let array = |ty: &Type, block: &Block| -> Array {
            // SAFETY: it began as zeros, and no code runs now.
            by_dtype!(ty.dtype(), T => Concrete::array(ty.clone(), unsafe { block.slice::<T>() }.unwrap_or_default().to_vec()))
        };
        let ready = self.ready.clone();
        let inputs: Vec<Array> =
            ready.bound.inputs.iter().zip(&self.inputs).map(|(ty, block)| array(ty, block)).collect();
        let inputs: Vec<Array> = inputs.into_iter().chain(self.captures.iter().cloned().map(Array::from)).collect();
        let run = || {
            self.run_alone()?;
            let types = self.native.lowered().outputs.iter().map(|(ty, _)| ty);
            Ok(types.zip(&self.outputs).map(|(ty, i)| array(ty, &self.blocks[*i])).collect())
        };
        watched.watch(&inputs, run).map(|_| ())
    }

    fn run_alone(&mut self) -> Result<()> {
        // Loops trade buffers in the table; it begins anew each time.
        self.scratch.copy_from_slice(&self.table);
        self.native.run_on(&self.ready.bound, &mut self.scratch)?;
        for &(from, to) in &self.copies {
            // SAFETY: the input began as zeros, and the block was made for its type.
            unsafe { self.blocks[to].copy_from_block(&self.inputs[from]) };
        }
        Ok(())
    }

    /// Bytes of scratch memory.
    pub fn scratch_bytes(&self) -> usize {
        self.arena.bytes()
    }

    /// How many captured arrays it holds.
    pub fn captures(&self) -> usize {
        self.captures.len()
    }
}

//! Programs in the kernel language run by its evaluator, and what every way of running shares: arrays as memory.

use std::sync::Arc;

use gradus_core::array::Concrete;
use gradus_core::primitives::Outputs;
use gradus_core::program::Program;
use gradus_core::types::Element;
use gradus_core::{Array, Executable, Type};

use crate::error::{Result, error, fail};
use crate::ir::{Memory, Role, Slots, evaluate_checked};
use crate::lower::{Lowered, Output};
use crate::memory::{self, Slot};
use crate::runtime::{by_dtype, call_entry};

/// What memory is filled with that nothing was written to: no number that a program makes by chance.
const UNWRITTEN: u8 = 0xA5;

/// The kernel language run by its evaluator: the meaning that machine code is held against. Every load is checked: it finds the value and the
/// element that the lowering means.
#[derive(Debug)]
pub struct Evaluated {
    /// The program.
    pub lowered: Lowered,
    /// The program that it was made from.
    pub signature: Program,
}

/// The concrete array of an input, dense.
pub(crate) fn dense_input(name: &str, want: &Type, i: usize, a: &Array) -> Result<Concrete> {
    let Some(c) = a.concrete() else {
        a.clone().ok()?;
        fail!(NotConcrete, "input {i} of `{name}` has no numbers");
    };
    if c.ty() != want {
        fail!(Signature, "input {i} of `{name}` is {} where {want} is wanted", c.ty());
    }
    c.try_dense()
}

/// The address of a dense array's first element.
pub(crate) fn address(c: &Concrete) -> *const u8 {
    by_dtype!(c.ty().dtype(), T => c.dense_slice::<T>().map_or(std::ptr::null(), |s| s.as_ptr().cast()))
}

fn bytes_of(c: &Concrete) -> Vec<u8> {
    let n = c.ty().bytes().unwrap_or(0);
    let mut out = vec![0; n];
    // SAFETY: a dense array of n bytes; all element types are plain numbers.
    unsafe { std::ptr::copy_nonoverlapping(address(c), out.as_mut_ptr(), n) };
    out
}

fn array_from(ty: &Type, bytes: &[u8]) -> Array {
    fn read<T: Element>(ty: &Type, bytes: &[u8]) -> Array {
        let n = bytes.len() / size_of::<T>();
        let mut values: Vec<T> = vec![T::default(); n];
        // SAFETY: n elements; every bit pattern that code writes is a number of the type (bools are 0 or 1).
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), values.as_mut_ptr().cast(), n * size_of::<T>()) };
        Concrete::array(ty.clone(), values)
    }
    by_dtype!(ty.dtype(), T => read::<T>(ty, bytes))
}

impl Executable for Evaluated {
    fn run(&self, inputs: &[Array]) -> Result<Outputs> {
        let l = &self.lowered;
        if inputs.len() != l.inputs.len() {
            fail!(Signature, "`{}` takes {} inputs, not {}", l.module.name, l.inputs.len(), inputs.len());
        }
        let types = inputs.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<Type>>>()?;
        let bound = l.bind(&self.signature, &types)?;
        let dense = inputs.iter().zip(&bound.inputs).enumerate();
        let dense = dense.map(|(i, (a, ty))| dense_input(&l.module.name, ty, i, a)).collect::<Result<Vec<_>>>()?;
        let plan = memory::plan(&l.module, &bound.bytes, &l.uncovered)?;
        let mut memory = Memory { sizes: bound.sizes, ..Memory::default() };
        let mut slots = Slots::new();
        // Scratch lies where the plan says: in the arena, or in an output that is not written yet.
        let arena = l.module.buffers.len();
        for (b, info) in l.module.buffers.iter().enumerate() {
            let bytes = bound.bytes[b];
            let (slot, block) = match info.role {
                Role::Input(i) => ((b, 0, bytes), bytes_of(&dense[i as usize])),
                Role::Constant(i) => {
                    let c = l.constants[i as usize].concrete().ok_or_else(|| error!(Rule, "a constant"))?;
                    ((b, 0, bytes), bytes_of(&c.try_dense()?))
                }
                Role::Output(_) => ((b, 0, bytes), vec![UNWRITTEN; bytes]),
                Role::Scratch => match plan.places[b] {
                    Some(Slot { output: None, offset }) => ((arena, offset, bytes), Vec::new()),
                    Some(Slot { output: Some(o), offset }) => ((o.index(), offset, bytes), Vec::new()),
                    None => ((b, 0, 0), Vec::new()),
                },
            };
            slots.push(slot);
            memory.buffers.push(block);
        }
        memory.buffers.push(vec![UNWRITTEN; plan.bytes]);
        let mut library = |entry: u32, arrays: &[*mut u8]| {
            // SAFETY: the addresses are of the buffers of this memory, as the program says.
            unsafe { call_entry(&bound.entries[entry as usize], arrays.as_ptr(), false) }
        };
        evaluate_checked(&l.module, &mut memory, slots, &mut library)?;
        let made = |i: usize| {
            let b = l.module.buffers.iter().position(|b| b.role == Role::Output(i as u32)).unwrap_or_default();
            array_from(&bound.made[i], &memory.buffers[b])
        };
        Ok(l.outputs
            .iter()
            .map(|(_, o)| match o {
                Output::Made(i) => made(*i),
                Output::Input(i) => inputs[*i].clone(),
                Output::Constant(i) => l.constants[*i].clone(),
            })
            .collect())
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn std::any::Any + Send + Sync> {
        self
    }

    fn bytes(&self) -> usize {
        self.lowered.bytes.len() * size_of::<usize>()
    }
}

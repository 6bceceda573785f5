//! Memory of an array while machine code works in it: held by its address alone, so that no reference is alive while the code writes.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use gradus_core::array::{Concrete, recycled};
use gradus_core::types::Element;
use gradus_core::{Array, DType, Type};

use crate::error::{Result, error, fail};
use crate::pages::prefer_large;
use crate::runtime::by_dtype;

/// The memory of a vector of elements of a dtype. What is in it is the owner's business.
pub(crate) struct Block {
    memory: *mut u8,
    dtype: DType,
    count: usize,
    capacity: usize,
}

// SAFETY: it owns its memory, and hands it out by the rules of references.
unsafe impl Send for Block {}
// SAFETY: as above; through a shared one nothing is written.
unsafe impl Sync for Block {}

impl Block {
    /// Memory for an array, with anything in it.
    #[inline]
    pub fn reserve(ty: &Type) -> Result<Block> {
        /// The address and the capacity, which fit into registers; none if there is no memory.
        fn of<T: Element>(count: usize) -> Option<(NonNull<u8>, usize)> {
            let mut values: Vec<T> = recycled(count).unwrap_or_default();
            values.clear();
            if values.capacity() < count {
                values.try_reserve_exact(count).ok()?;
                prefer_large(values.as_mut_ptr().cast(), count * size_of::<T>());
            }
            let mut values = ManuallyDrop::new(values);
            Some((NonNull::new(values.as_mut_ptr().cast())?, values.capacity()))
        }
        let count = ty.shape().count().ok_or_else(|| error!(Size, "{ty} has no size"))?;
        match by_dtype!(ty.dtype(), T => of::<T>(count)) {
            Some((memory, capacity)) => Ok(Block { memory: memory.as_ptr(), dtype: ty.dtype(), count, capacity }),
            None => fail!(Size, "there is no memory for an array of type {ty}"),
        }
    }

    /// Memory for an array, all zeros.
    pub fn zeros(ty: &Type) -> Result<Block> {
        let block = Block::reserve(ty)?;
        // SAFETY: so many bytes are reserved. Zero bytes are zero, or false, in every dtype.
        unsafe { block.memory.write_bytes(0, block.count * block.dtype.size()) };
        Ok(block)
    }

    /// Copies the elements of an array of its type.
    pub fn copy_from(&mut self, array: &Concrete) -> Result<()> {
        if array.ty().dtype() != self.dtype || array.count() != self.count {
            fail!(Signature, "memory for {} elements of {} is not for {}", self.count, self.dtype, array.ty());
        }
        by_dtype!(self.dtype, T => {
            let values = array.try_values::<T>()?;
            // SAFETY: as many elements of the same dtype, in memory that nobody else has.
            unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.memory.cast::<T>(), self.count) };
        });
        Ok(())
    }

    /// Copies the elements of another block, as far as both go.
    ///
    /// # Safety
    /// Every element of the other has been written, and both are of the same dtype.
    pub unsafe fn copy_from_block(&mut self, other: &Block) {
        let bytes = self.count.min(other.count) * self.dtype.size();
        // SAFETY: so many bytes are there on both sides, and blocks do not share memory.
        unsafe { std::ptr::copy_nonoverlapping(other.memory, self.memory, bytes) };
    }

    /// Where it begins.
    pub fn address(&self) -> *mut u8 {
        self.memory
    }

    /// Its elements; none if they are of another dtype.
    ///
    /// # Safety
    /// Every element has been written, and nobody writes while the slice is there.
    pub unsafe fn slice<T: Element>(&self) -> Option<&[T]> {
        // SAFETY: memory of so many elements of the dtype of `T`, which is sealed: it says which type it is.
        (T::DTYPE == self.dtype).then(|| unsafe { std::slice::from_raw_parts(self.memory.cast::<T>(), self.count) })
    }

    /// Its elements, to be written; none if they are of another dtype.
    ///
    /// # Safety
    /// Every element has been written, and nobody else looks while the slice is there.
    pub unsafe fn slice_mut<T: Element>(&mut self) -> Option<&mut [T]> {
        // SAFETY: as above, and this is the only way in.
        (T::DTYPE == self.dtype).then(|| unsafe { std::slice::from_raw_parts_mut(self.memory.cast::<T>(), self.count) })
    }

    /// Its memory as an array; nothing is left.
    ///
    /// # Safety
    /// Every element has been written, and the type is the one that the memory is for.
    #[inline]
    pub unsafe fn take_array(&mut self, ty: &Type) -> Array {
        let (memory, count, capacity) = (self.memory, self.count, self.capacity);
        (self.count, self.capacity) = (0, 0);
        by_dtype!(self.dtype, T => {
            // SAFETY: memory of a vector of T with this capacity, all of it written, that this no longer owns.
            let values = unsafe { Vec::from_raw_parts(memory.cast::<T>(), count, capacity) };
            Concrete::array(ty.clone(), values)
        })
    }
}

impl Drop for Block {
    #[inline]
    fn drop(&mut self) {
        if self.capacity == 0 {
            return;
        }
        // SAFETY: memory of a vector with this capacity that nobody else has; plain numbers need no drop.
        by_dtype!(self.dtype, T => unsafe { drop(Vec::from_raw_parts(self.memory.cast::<T>(), 0, self.capacity)) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As machine code does it: the address is taken once, and written through between looks.
    #[test]
    fn what_is_written_through_the_address_is_seen() {
        let ty: Type = "f32[3]".parse().unwrap();
        let mut block = Block::zeros(&ty).unwrap();
        let address = block.address().cast::<f32>();
        for round in 0..3 {
            // SAFETY: zeros were written, and nobody else looks.
            unsafe { block.slice_mut::<f32>() }.unwrap()[0] = round as f32;
            // SAFETY: three elements; no slice is alive.
            unsafe { address.add(1).write(address.read() + 1.0) };
            // SAFETY: as above.
            assert_eq!(unsafe { block.slice::<f32>() }.unwrap(), [round as f32, round as f32 + 1.0, 0.0]);
        }
        // SAFETY: as above.
        assert!(unsafe { block.slice::<f64>() }.is_none());
        // SAFETY: all is written, and the type is the one it was made for.
        assert_eq!(unsafe { block.take_array(&ty) }.to_vec::<f32>().unwrap(), [2.0, 3.0, 0.0]);
    }
}

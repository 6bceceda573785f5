//! The library: matrix products, and the interpreter's own code for primitives that have no loops here.

use gradus_core::array::{Concrete, for_each_row};
use gradus_core::primitives::Op;
use gradus_core::types::Element;
use gradus_core::{Array, DType, Error, Place, Type};

use crate::abi::{Context, native_fn};
use crate::error::{Result, fail};

/// An array in memory as a call sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The element type.
    pub dtype: DType,
    /// The dimensions.
    pub dims: Vec<usize>,
    /// The strides, in elements.
    pub strides: Vec<isize>,
}

/// One primitive by the interpreter's code.
#[derive(Clone, Debug)]
pub struct Evaluate {
    /// What is done.
    pub op: Op,
    /// The user's line.
    pub place: Place,
    /// The operands.
    pub inputs: Vec<Placed>,
    /// The results, dense.
    pub outputs: Vec<Type>,
}

/// `c = a b` for each of a batch; strides in elements, the result dense.
#[derive(Clone, Debug)]
pub struct Gemm {
    /// The element type: f32 or f64.
    pub dtype: DType,
    /// Rows of a.
    pub m: usize,
    /// Columns of b.
    pub n: usize,
    /// Columns of a.
    pub k: usize,
    /// The distances of rows and columns of a.
    pub lhs: [isize; 2],
    /// The distances of rows and columns of b.
    pub rhs: [isize; 2],
    /// For each batch axis: its size, and the distances in a and b.
    pub batches: Vec<(usize, isize, isize)>,
}

/// What a call of a module does.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Entry {
    Evaluate(Evaluate),
    Gemm(Gemm),
    Copy { from: Placed, to: Placed },
}

impl Entry {
    /// Its name in texts.
    pub fn name(&self) -> String {
        match self {
            Entry::Evaluate(e) => e.op.name().to_string(),
            Entry::Gemm(g) => format!("gemm.{}.{}x{}x{}", g.dtype, g.m, g.k, g.n),
            Entry::Copy { .. } => "copy".to_string(),
        }
    }
}

/// What a run keeps for the Rust side of its calls.
pub struct Run<'a> {
    /// The entries of the module.
    pub entries: &'a [Entry],
    /// The error of the call that failed.
    pub error: std::cell::Cell<Option<Error>>,
    /// Whether products may use more than one thread.
    pub threads: bool,
}

native_fn! {
    /// Calls an entry of a module.
    ///
    /// # Safety
    /// Called by machine code of the module with a context whose `run` is a live [`Run`] of it, and one pointer for each
    /// array of the entry.
    pub fn call(ctx: *const Context, entry: u64, arrays: *const *mut u8, _scalars: *const u64) -> u64 {
        // SAFETY: passed on.
        unsafe { dispatch(ctx, entry, arrays) }
    }
}

unsafe fn dispatch(ctx: *const Context, entry: u64, arrays: *const *mut u8) -> u64 {
    // SAFETY: the caller's promise.
    let run: &Run<'_> = unsafe { &*(*ctx).run.cast() };
    let Some(entry) = run.entries.get(entry as usize) else { return 1 };
    // SAFETY: passed on.
    match unsafe { call_entry(entry, arrays, run.threads) } {
        Ok(()) => 0,
        Err(e) => {
            run.error.set(Some(e));
            1
        }
    }
}

/// Does what an entry says.
///
/// # Safety
/// `arrays` has one pointer for each array of the entry, to memory of its type.
pub unsafe fn call_entry(entry: &Entry, arrays: *const *mut u8, threads: bool) -> Result<()> {
    // A panic must not unwind through machine code; it becomes the error of the call.
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        // SAFETY: as many pointers as the entry has arrays, to memory of their types.
        unsafe {
            match entry {
                Entry::Gemm(g) => {
                    gemm(g, *arrays, *arrays.add(1), *arrays.add(2), threads);
                    Ok(())
                }
                Entry::Evaluate(e) => evaluate(e, arrays),
                Entry::Copy { from, to } => {
                    by_dtype!(from.dtype, T => copy::<T>((*arrays).cast(), from, (*arrays.add(1)).cast(), to));
                    Ok(())
                }
            }
        }
    }));
    done.unwrap_or_else(|_| Err(crate::error::error!(Rule, "`{}` panicked", entry.name())))
}

/// Calls `f` with the place of every element, in row-major order, counted from the first.
fn for_each_place(a: &Placed, mut f: impl FnMut(isize)) {
    // A place before the first wraps around and back.
    for_each_row(&a.dims, &a.strides, 0, |start, len, stride| {
        (0..len as isize).for_each(|i| f((start as isize).wrapping_add(i * stride)));
    });
}

unsafe fn copy<T: Copy>(from: *const T, a: &Placed, to: *mut T, b: &Placed) {
    let mut places = Vec::with_capacity(b.dims.iter().product());
    for_each_place(b, |i| places.push(i));
    let mut next = places.into_iter();
    for_each_place(a, |i| {
        if let Some(j) = next.next() {
            // SAFETY: both places lie inside their arrays.
            unsafe { to.offset(j).write_unaligned(from.offset(i).read_unaligned()) }
        }
    });
}

unsafe fn read<T: Element>(from: *const T, a: &Placed) -> Array {
    let mut values = Vec::with_capacity(a.dims.iter().product());
    // SAFETY: every place of the view lies inside the array.
    for_each_place(a, |i| values.push(unsafe { from.offset(i).read_unaligned() }));
    Concrete::from_vec(&a.dims, values).into()
}

unsafe fn evaluate(e: &Evaluate, arrays: *const *mut u8) -> Result<()> {
    let mut inputs = Vec::with_capacity(e.inputs.len());
    for (i, placed) in e.inputs.iter().enumerate() {
        // SAFETY: the i-th pointer is to the i-th operand.
        inputs.push(unsafe { by_dtype!(placed.dtype, T => read::<T>((*arrays.add(i)).cast(), placed)) });
    }
    let results = e.op.evaluate(&inputs).map_err(|err| err.in_operation(e.op.name()).at(e.place))?;
    if results.len() != e.outputs.len() {
        fail!(Rule, "`{}` gave {} results where its type rule says {}", e.op.name(), results.len(), e.outputs.len());
    }
    for (i, (r, ty)) in results.iter().zip(&e.outputs).enumerate() {
        let Some(c) = r.concrete().filter(|c| c.ty() == ty) else {
            fail!(Rule, "`{}` gave a result that is not of type {ty}", e.op.name());
        };
        by_dtype!(ty.dtype(), T => {
            let values = c.values::<T>();
            // SAFETY: the pointer is to a dense array of the result's type.
            unsafe {
                let to: *mut u8 = *arrays.add(e.inputs.len() + i);
                std::ptr::copy_nonoverlapping(values.as_ptr().cast::<u8>(), to, values.len() * size_of::<T>());
            }
        });
    }
    Ok(())
}

/// Products with fewer multiplications than this stay on one thread.
const WORTH_THREADS: usize = 1 << 20;

unsafe fn gemm(g: &Gemm, a: *const u8, b: *const u8, c: *mut u8, threads: bool) {
    let parallelism =
        if threads && g.m * g.n * g.k >= WORTH_THREADS { gemm::Parallelism::Rayon(0) } else { gemm::Parallelism::None };
    let total: usize = g.batches.iter().map(|b| b.0).product();
    for i in 0..total {
        let (mut rest, mut x, mut y) = (i, 0isize, 0isize);
        for (n, l, r) in g.batches.iter().rev() {
            let j = (rest % n) as isize;
            x += j * l;
            y += j * r;
            rest /= n;
        }
        let z = (i * g.m * g.n) as isize;
        macro_rules! product {
            ($t:ty) => {
                // SAFETY: the strides of the plan stay inside the three arrays.
                unsafe {
                    gemm::gemm::<$t>(
                        g.m,
                        g.n,
                        g.k,
                        c.cast::<$t>().offset(z),
                        1,
                        g.n as isize,
                        false,
                        a.cast::<$t>().offset(x),
                        g.lhs[1],
                        g.lhs[0],
                        b.cast::<$t>().offset(y),
                        g.rhs[1],
                        g.rhs[0],
                        0.0,
                        1.0,
                        false,
                        false,
                        false,
                        parallelism,
                    )
                }
            };
        }
        match g.dtype {
            DType::F32 => product!(f32),
            _ => product!(f64),
        }
    }
}

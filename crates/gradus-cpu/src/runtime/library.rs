//! The library: matrix products, and the interpreter's own code for primitives that have no loops here.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use gemm_common::Parallelism;
use gradus_core::array::{Concrete, for_each_row, memory};
use gradus_core::primitives::Op;
use gradus_core::types::Element;
use gradus_core::{Array, DType, Dim, Error, Location, Type};
use smallvec::SmallVec;

use super::packed::{self, Packed};
use crate::abi::{Context, native_fn};
use crate::cost::shares_product;
use crate::error::{Result, fail};
use crate::size::Size;

/// An array in memory as a call sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed<N = i64> {
    /// The element type.
    pub dtype: DType,
    /// The dimensions.
    pub dims: Vec<N>,
    /// The strides, in elements.
    pub strides: Vec<N>,
}

/// One primitive by the interpreter's code.
#[derive(Clone, Debug)]
pub struct Evaluate<N = i64> {
    /// What is done.
    pub op: Op,
    /// The user's line.
    pub place: Location,
    /// The operands.
    pub inputs: Vec<Placed<N>>,
    /// The results, dense.
    pub outputs: Vec<Type>,
}

/// `c = a b` for each of a batch; strides in elements, the result dense.
#[derive(Clone, Debug)]
pub struct Gemm<N = i64> {
    /// The element type: f32 or f64.
    pub dtype: DType,
    /// Rows of a.
    pub m: N,
    /// Columns of b.
    pub n: N,
    /// Columns of a.
    pub k: N,
    /// The distances of rows and columns of a.
    pub lhs: [N; 2],
    /// The distances of rows and columns of b.
    pub rhs: [N; 2],
    /// For each batch axis: its size, and the distances in a and b.
    pub batches: Vec<(N, N, N)>,
}

/// What a call of a module does; with numbers that may be known only when it runs.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum LibraryCall<N = i64> {
    Evaluate(Evaluate<N>),
    Gemm(Gemm<N>),
    Packed(Packed<N>),
    Copy { from: Placed<N>, to: Placed<N> },
}

impl Placed<Size> {
    fn bind(&self, sizes: &[i64]) -> Placed {
        let numbers = |all: &[Size]| all.iter().map(|n| n.in_table(sizes)).collect();
        Placed { dtype: self.dtype, dims: numbers(&self.dims), strides: numbers(&self.strides) }
    }
}

impl LibraryCall<Size> {
    /// The entry for given sizes; `dims` replaces dimensions by their numbers.
    pub fn bind(&self, sizes: &[i64], dims: &dyn Fn(&Dim) -> Dim) -> Result<LibraryCall> {
        let number = |n: Size| n.in_table(sizes);
        Ok(match self {
            LibraryCall::Evaluate(e) => LibraryCall::Evaluate(Evaluate {
                op: e.op.map_dims(dims)?,
                place: e.place,
                inputs: e.inputs.iter().map(|p| p.bind(sizes)).collect(),
                outputs: e.outputs.iter().map(|t| t.map_dims(dims)).collect(),
            }),
            LibraryCall::Gemm(g) => LibraryCall::Gemm(Gemm {
                dtype: g.dtype,
                m: number(g.m),
                n: number(g.n),
                k: number(g.k),
                lhs: g.lhs.map(number),
                rhs: g.rhs.map(number),
                batches: g.batches.iter().map(|(n, a, b)| (number(*n), number(*a), number(*b))).collect(),
            }),
            LibraryCall::Packed(p) => LibraryCall::Packed(p.bind(sizes)),
            LibraryCall::Copy { from, to } => LibraryCall::Copy { from: from.bind(sizes), to: to.bind(sizes) },
        })
    }
}

impl<N: std::fmt::Display> LibraryCall<N> {
    /// Its name in texts.
    pub fn name(&self) -> String {
        match self {
            LibraryCall::Evaluate(e) => e.op.name().to_string(),
            LibraryCall::Gemm(g) => format!("gemm.{}.{}x{}x{}", g.dtype, g.m, g.k, g.n),
            LibraryCall::Packed(p) => {
                let axes = |all: &[(N, N)]| all.iter().map(|(n, _)| n.to_string()).collect::<Vec<_>>().join(",");
                format!("packed.{}.({})x({})x{}", p.dtype, axes(&p.rows), axes(&p.summed), p.n)
            }
            LibraryCall::Copy { .. } => "copy".to_string(),
        }
    }
}

/// What a call that machine code made ended with, other than well.
pub enum Stopped {
    /// An error.
    Failed(Error),
    /// A panic. It waits until machine code is left, and goes on then.
    Panicked(Box<dyn Any + Send>),
}

/// What a run keeps for the Rust side of its calls.
pub struct Run<'a> {
    /// The entries of the module.
    pub entries: &'a [LibraryCall],
    /// Why it ended early, if it did.
    pub stopped: Cell<Option<Stopped>>,
    /// For each kernel, whether it is too little work for more than one thread.
    pub serial: &'a [bool],
    /// Whether products may use more than one thread.
    pub threads: bool,
}

native_fn! {
    /// Calls an entry of a module.
    ///
    /// # Safety
    /// Called by machine code of the module with a context whose `run` is a live [`Run`] of it, and one pointer for each
    /// array of the entry.
    pub fn call(ctx: *const Context, entry: u64, arrays: *const *mut u8) -> u64 {
        // SAFETY: passed on.
        unsafe { dispatch(ctx, entry, arrays) }
    }
}

unsafe fn dispatch(ctx: *const Context, entry: u64, arrays: *const *mut u8) -> u64 {
    // SAFETY: the caller's promise.
    let run: &Run<'_> = unsafe { &*(*ctx).run.cast() };
    let Some(entry) = run.entries.get(entry as usize) else { return 1 };
    // A panic must not unwind through machine code.
    // SAFETY: passed on.
    match catch_unwind(AssertUnwindSafe(|| unsafe { call_entry(entry, arrays, run.threads) })) {
        Ok(Ok(())) => return 0,
        Ok(Err(e)) => run.stopped.set(Some(Stopped::Failed(e))),
        Err(panic) => run.stopped.set(Some(Stopped::Panicked(panic))),
    }
    1
}

/// Does what an entry says. An operation of the user's may panic.
///
/// # Safety
/// `arrays` has one pointer for each array of the entry, to memory of its type.
pub unsafe fn call_entry(entry: &LibraryCall, arrays: *const *mut u8, threads: bool) -> Result<()> {
    // SAFETY: as many pointers as the entry has arrays, to memory of their types.
    unsafe {
        match entry {
            LibraryCall::Gemm(g) => gemm(g, *arrays, *arrays.add(1), *arrays.add(2), threads),
            LibraryCall::Packed(p) => packed::multiply(p, *arrays, *arrays.add(1), *arrays.add(2), threads),
            LibraryCall::Evaluate(e) => evaluate(e, arrays),
            LibraryCall::Copy { from, to } => {
                let (source, target) = (*arrays, *arrays.add(1));
                match from.dtype.size() {
                    1 => copy::<u8>(source, from, target, to),
                    2 => copy::<u16>(source.cast(), from, target.cast(), to),
                    4 => copy::<u32>(source.cast(), from, target.cast(), to),
                    8 => copy::<u64>(source.cast(), from, target.cast(), to),
                    _ => copy::<u128>(source.cast(), from, target.cast(), to),
                }
            }
        }
    }
}

/// Calls `row(start, length, stride)` for each innermost run of elements, in row-major order; places count from the first element.
fn rows(a: &Placed, row: &mut dyn FnMut(isize, usize, isize)) {
    // A place before the first wraps around and back.
    let dims: SmallVec<[usize; 6]> = a.dims.iter().map(|d| *d as usize).collect();
    let strides: SmallVec<[isize; 6]> = a.strides.iter().map(|s| *s as isize).collect();
    for_each_row(&dims, &strides, 0, &mut |start, len, stride| row(start as isize, len, stride));
}

/// Copies elements of a size, whatever they are.
unsafe fn copy<T: Copy>(from: *const T, a: &Placed, to: *mut T, b: &Placed) -> Result<()> {
    let mut places = memory(b.dims.iter().product::<i64>() as usize)?;
    rows(b, &mut |start, len, stride| {
        for i in 0..len as isize {
            places.push(start.wrapping_add(i * stride));
        }
    });
    let mut next = places.into_iter();
    rows(a, &mut |start, len, stride| {
        for i in 0..len as isize {
            let Some(j) = next.next() else { return };
            // SAFETY: both places lie inside their arrays.
            unsafe { to.offset(j).write_unaligned(from.offset(start.wrapping_add(i * stride)).read_unaligned()) }
        }
    });
    Ok(())
}

unsafe fn read<T: Element>(from: *const T, a: &Placed) -> Result<Array> {
    let mut values = memory::<T>(a.dims.iter().product::<i64>() as usize)?;
    rows(a, &mut |start, len, stride| {
        if stride == 1 {
            let n = values.len();
            // SAFETY: the row lies inside the array, and there is room for all rows; what is copied byte by byte needs no alignment.
            unsafe {
                let bytes = len * size_of::<T>();
                std::ptr::copy_nonoverlapping(
                    from.offset(start).cast::<u8>(),
                    values.as_mut_ptr().add(n).cast::<u8>(),
                    bytes,
                );
                values.set_len(n + len);
            }
            return;
        }
        for i in 0..len as isize {
            // SAFETY: every place of the view lies inside the array.
            values.push(unsafe { from.offset(start.wrapping_add(i * stride)).read_unaligned() });
        }
    });
    let dims: SmallVec<[usize; 6]> = a.dims.iter().map(|d| *d as usize).collect();
    Ok(Concrete::new(Type::new(T::DTYPE, &dims[..]), values)?.into())
}

unsafe fn evaluate(e: &Evaluate, arrays: *const *mut u8) -> Result<()> {
    let mut inputs = Vec::with_capacity(e.inputs.len());
    for (i, placed) in e.inputs.iter().enumerate() {
        // SAFETY: the i-th pointer is to the i-th operand.
        inputs.push(unsafe { by_dtype!(placed.dtype, T => read::<T>((*arrays.add(i)).cast(), placed)) }?);
    }
    let results = e.op.evaluate(&inputs).map_err(|err| err.in_operation(e.op.name()).at(e.place))?;
    if results.len() != e.outputs.len() {
        fail!(Rule, "`{}` gave {} results where its type rule says {}", e.op.name(), results.len(), e.outputs.len());
    }
    for (i, (r, ty)) in results.iter().zip(&e.outputs).enumerate() {
        if let Some(err) = r.error() {
            return Err(err.clone().in_operation(e.op.name()).at(e.place));
        }
        let Some(c) = r.concrete().filter(|c| c.ty() == ty) else {
            fail!(Rule, "`{}` gave a result that is not of type {ty}", e.op.name());
        };
        by_dtype!(ty.dtype(), T => {
            let values = c.try_values::<T>()?;
            // SAFETY: the pointer is to a dense array of the result's type.
            unsafe {
                let to: *mut u8 = *arrays.add(e.inputs.len() + i);
                std::ptr::copy_nonoverlapping(values.as_ptr().cast::<u8>(), to, values.len() * size_of::<T>());
            }
        });
    }
    Ok(())
}

/// Smaller copies of operands are not worth asking for.
const ASKED_FOR: usize = 1 << 17;

/// Whether the library may begin its sums with their first term and not with 0, so that one of nothing but -0 is -0: it does so for few terms, and for small
/// results and vectors, which have loops of their own.
fn may_keep_a_sign(m: usize, n: usize, k: usize) -> bool {
    k <= 2 || m == 1 || n == 1 || m * n <= 256
}

/// A factor of a product of matrices: where it begins, and its strides along its own axis and along the one that is summed.
struct Factor<T> {
    at: *const T,
    free: isize,
    summed: isize,
}

impl<T> Factor<T> {
    /// The factors as the library wants them, which prefers results whose rows are neighbours and sums that go forward: a result is row-major here, so it is
    /// the transposed one of the factors in the other order, unless it is one column of `n`.
    ///
    /// # Safety
    /// Each factor has `k` elements along the axis that is summed.
    unsafe fn ordered(left: Self, right: Self, n: usize, k: usize) -> (Self, Self) {
        let (mut rows, mut columns) = if n > 1 { (right, left) } else { (left, right) };
        if rows.summed < 0 {
            for f in [&mut rows, &mut columns] {
                // SAFETY: the last element of the axis.
                f.at = unsafe { f.at.offset((k as isize - 1) * f.summed) };
                f.summed = -f.summed;
            }
        }
        (rows, columns)
    }
}

unsafe fn gemm(g: &Gemm, a: *const u8, b: *const u8, c: *mut u8, threads: bool) -> Result<()> {
    let total: i64 = g.batches.iter().map(|b| b.0).product();
    if total == 0 || g.m == 0 || g.n == 0 {
        return Ok(());
    }
    if g.k == 0 {
        // A sum of nothing. All bits zero is the float 0.
        let bytes = (total * g.m * g.n) as usize * g.dtype.size();
        // SAFETY: the whole of the result.
        unsafe { std::ptr::write_bytes(c, 0, bytes) };
        return Ok(());
    }
    let (m, n, k) = (g.m as usize, g.n as usize, g.k as usize);
    // The library copies operands into memory that it does not ask for politely: without it the process ends. So it is asked for here, and given back.
    let copies = (m + n).saturating_mul(k).saturating_mul(g.dtype.size());
    if copies >= ASKED_FOR {
        drop(memory::<u8>(copies)?);
    }
    let parallelism = if threads && shares_product(m, n, k) { Parallelism::Rayon(0) } else { Parallelism::None };
    for i in 0..total {
        let (mut rest, mut x, mut y) = (i, 0, 0);
        for (n, l, r) in g.batches.iter().rev() {
            let j = rest % n;
            x += j * l;
            y += j * r;
            rest /= n;
        }
        let [x, y, z] = [x, y, i * g.m * g.n].map(|place| place as isize);
        macro_rules! product {
            ($t:ty, $gemm:expr) => {
                // SAFETY: the strides of the plan stay inside the three arrays.
                unsafe {
                    let left =
                        Factor { at: a.cast::<$t>().offset(x), free: g.lhs[0] as isize, summed: g.lhs[1] as isize };
                    let right =
                        Factor { at: b.cast::<$t>().offset(y), free: g.rhs[1] as isize, summed: g.rhs[0] as isize };
                    let (rows, columns) = Factor::ordered(left, right, n, k);
                    let (m, n, row, column) = if n > 1 { (n, m, 1, n as isize) } else { (m, n, n as isize, 1) };
                    let c = c.cast::<$t>().offset(z);
                    $gemm(
                        m,
                        n,
                        k,
                        c,
                        column,
                        row,
                        false,
                        rows.at,
                        rows.summed,
                        rows.free,
                        columns.at,
                        columns.free,
                        columns.summed,
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
            DType::F32 => product!(f32, gemm_f32::gemm::f32::get_gemm_fn()),
            _ => product!(f64, gemm_f64::gemm::f64::get_gemm_fn()),
        }
    }
    if may_keep_a_sign(m, n, k) {
        let count = (total * g.m * g.n) as usize;
        // SAFETY: the whole of the result, which the library has written.
        unsafe {
            match g.dtype {
                DType::F32 => std::slice::from_raw_parts_mut(c.cast::<f32>(), count).iter_mut().for_each(|v| *v += 0.0),
                _ => std::slice::from_raw_parts_mut(c.cast::<f64>(), count).iter_mut().for_each(|v| *v += 0.0),
            }
        }
    }
    Ok(())
}

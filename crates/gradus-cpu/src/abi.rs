//! How machine code and Rust call each other: the one place that knows.
//!
//! On x86-64 everything speaks the System V convention, on every operating system, because kernels are made by an assembler
//! that knows only that one; elsewhere it is the C convention of the platform.

use std::ffi::c_void;

/// Declares a function pointer type of the convention of machine code.
macro_rules! native {
    ($(#[$doc:meta])* $name:ident = fn($($arg:ty),*) $(-> $ret:ty)?) => {
        #[cfg(target_arch = "x86_64")]
        $(#[$doc])*
        pub type $name = unsafe extern "sysv64" fn($($arg),*) $(-> $ret)?;
        #[cfg(not(target_arch = "x86_64"))]
        $(#[$doc])*
        pub type $name = unsafe extern "C" fn($($arg),*) $(-> $ret)?;
    };
}

/// Defines a function that machine code calls, in its convention.
macro_rules! native_fn {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        #[cfg(target_arch = "x86_64")]
        $(#[$doc])*
        $vis unsafe extern "sysv64" fn $name($($arg: $ty),*) $(-> $ret)? $body
        #[cfg(not(target_arch = "x86_64"))]
        $(#[$doc])*
        $vis unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? $body
    };
}
pub(crate) use native_fn;

/// What a run of a module shares. Machine code reads all but the last field by their offsets (0, 8, 16,
/// 24, 32 and 40): it holds no address of its own, so that it can be kept on disk.
#[repr(C)]
pub struct Context {
    /// One pointer for each buffer of the module. `Swap` writes here, so each run has its own.
    pub buffers: *mut *mut u8,
    /// The run-time sizes.
    pub sizes: *const i64,
    /// Calls the library.
    pub call: CallFn,
    /// Runs a parallel kernel over all its iterations.
    pub parallel: ParallelFn,
    /// Special functions of f32 and of f64.
    pub special: [SpecialFn; 2],
    /// What the Rust side needs.
    pub run: *const c_void,
}

native! {
    /// The main body. Not 0: a library call failed, and the run has the error.
    MainFn = fn(*const Context) -> u64
}
native! {
    /// A kernel over iterations `lo..hi` of its outermost loop (a kernel that is not parallel runs all of them and does
    /// not look). `env` holds its inputs, then its outputs, each in the low bytes of 8.
    KernelFn = fn(*const Context, *mut u64, i64, i64)
}
native! {
    /// An entry of the module's calls with the addresses of its arrays. Not 0: it failed.
    CallFn = fn(*const Context, u64, *const *mut u8) -> u64
}
native! {
    /// A kernel, its number in the module, its env, and the count of its outermost loop.
    ParallelFn = fn(*const Context, KernelFn, u64, *mut u64, i64)
}
native! {
    /// A special function for `n` elements: result, first operand, second operand (or the first again), n, parameter.
    SpecialFn = fn(*mut u8, *const u8, *const u8, u64, u64)
}

//! The LLVM-C functions that are called, found by name in a library that is opened at run time.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

/// A handle of LLVM. All of them are opaque here.
pub(super) type Handle = *mut c_void;

/// Declares the table of functions and how it is filled.
macro_rules! api {
    ($($name:ident : fn($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        #[allow(non_snake_case)]
        pub(super) struct Api {
            $(pub(super) $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
        }

        impl Api {
            /// Finds every function, or says which one is missing.
            fn find(library: &libloading::Library) -> Result<Api, String> {
                $(
                    // SAFETY: the type is that of the LLVM-C header, which promises to keep it between versions.
                    #[allow(non_snake_case)]
                    let $name = unsafe {
                        library.get::<unsafe extern "C" fn($($arg),*) $(-> $ret)?>(stringify!($name))
                    };
                    #[allow(non_snake_case)]
                    let $name = *$name.map_err(|_| format!("it has no {}", stringify!($name)))?;
                )*
                Ok(Api { $($name,)* })
            }
        }
    };
}

api! {
    LLVMContextCreate: fn() -> Handle;
    LLVMContextDispose: fn(Handle);
    LLVMContextSetDiagnosticHandler: fn(Handle, extern "C" fn(Handle, Handle), Handle);
    LLVMGetDiagInfoDescription: fn(Handle) -> *mut c_char;
    LLVMGetDiagInfoSeverity: fn(Handle) -> c_int;
    LLVMCreateMemoryBufferWithMemoryRangeCopy: fn(*const c_char, usize, *const c_char) -> Handle;
    LLVMParseIRInContext: fn(Handle, Handle, *mut Handle, *mut *mut c_char) -> c_int;
    LLVMVerifyModule: fn(Handle, c_int, *mut *mut c_char) -> c_int;
    LLVMDisposeModule: fn(Handle);
    LLVMPrintModuleToString: fn(Handle) -> *mut c_char;
    LLVMSetTarget: fn(Handle, *const c_char);
    LLVMSetModuleDataLayout: fn(Handle, Handle);
    LLVMGetDefaultTargetTriple: fn() -> *mut c_char;
    LLVMGetTargetFromTriple: fn(*const c_char, *mut Handle, *mut *mut c_char) -> c_int;
    LLVMGetHostCPUName: fn() -> *mut c_char;
    LLVMGetHostCPUFeatures: fn() -> *mut c_char;
    LLVMCreateTargetMachine: fn(Handle, *const c_char, *const c_char, *const c_char, c_int, c_int, c_int) -> Handle;
    LLVMDisposeTargetMachine: fn(Handle);
    LLVMCreateTargetDataLayout: fn(Handle) -> Handle;
    LLVMDisposeTargetData: fn(Handle);
    LLVMCreatePassBuilderOptions: fn() -> Handle;
    LLVMDisposePassBuilderOptions: fn(Handle);
    LLVMPassBuilderOptionsSetLoopVectorization: fn(Handle, c_int);
    LLVMPassBuilderOptionsSetSLPVectorization: fn(Handle, c_int);
    LLVMRunPasses: fn(Handle, *const c_char, Handle, Handle) -> Handle;
    LLVMTargetMachineEmitToMemoryBuffer: fn(Handle, Handle, c_int, *mut *mut c_char, *mut Handle) -> c_int;
    LLVMGetBufferStart: fn(Handle) -> *const c_char;
    LLVMGetBufferSize: fn(Handle) -> usize;
    LLVMDisposeMemoryBuffer: fn(Handle);
    LLVMDisposeMessage: fn(*mut c_char);
    LLVMGetErrorMessage: fn(Handle) -> *mut c_char;
    LLVMDisposeErrorMessage: fn(*mut c_char);
    LLVMCreateBinary: fn(Handle, Handle, *mut *mut c_char) -> Handle;
    LLVMDisposeBinary: fn(Handle);
    LLVMObjectFileCopySectionIterator: fn(Handle) -> Handle;
    LLVMObjectFileIsSectionIteratorAtEnd: fn(Handle, Handle) -> c_int;
    LLVMMoveToNextSection: fn(Handle);
    LLVMGetSectionName: fn(Handle) -> *const c_char;
    LLVMGetSectionSize: fn(Handle) -> u64;
    LLVMDisposeSectionIterator: fn(Handle);
    LLVMOrcCreateLLJIT: fn(*mut Handle, Handle) -> Handle;
    LLVMOrcLLJITGetMainJITDylib: fn(Handle) -> Handle;
    LLVMOrcJITDylibCreateResourceTracker: fn(Handle) -> Handle;
    LLVMOrcLLJITAddObjectFileWithRT: fn(Handle, Handle, Handle) -> Handle;
    LLVMOrcLLJITLookup: fn(Handle, *mut u64, *const c_char) -> Handle;
    LLVMOrcResourceTrackerRemove: fn(Handle) -> Handle;
    LLVMOrcReleaseResourceTracker: fn(Handle);
}

/// The oldest LLVM that is known to work.
pub(super) const OLDEST: u32 = 17;

/// What the names of the functions that make a target known begin with.
#[cfg(target_arch = "x86_64")]
const TARGET: &str = "X86";
#[cfg(target_arch = "aarch64")]
const TARGET: &str = "AArch64";
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const TARGET: &str = "?";

/// Opens a library and makes the target of this machine known to it. The error says in a few words what is wrong.
pub(super) fn open(path: &Path) -> Result<(Api, (u32, u32, u32)), String> {
    // SAFETY: opening runs the library's initializers; those of LLVM register options and nothing else. Whoever names
    // another file by GRADUS_LLVM is trusted as with any path of libraries.
    let library = unsafe { super::exit::open(path) }.map_err(|e| format!("it cannot be loaded ({e})"))?;
    let result = fill(&library);
    // Registered options, targets and handlers point into the library: it stays for good.
    std::mem::forget(library);
    result
}

fn fill(library: &libloading::Library) -> Result<(Api, (u32, u32, u32)), String> {
    // SAFETY: the type is that of the LLVM-C header.
    let version = unsafe { library.get::<unsafe extern "C" fn(*mut u32, *mut u32, *mut u32)>("LLVMGetVersion") };
    let Ok(version) = version else {
        // SAFETY: only whether the name is there is asked.
        let is_llvm = unsafe { library.get::<unsafe extern "C" fn()>("LLVMContextCreate") }.is_ok();
        return Err(match is_llvm {
            true => format!("it is older than LLVM {OLDEST}"),
            false => "it is no LLVM".to_string(),
        });
    };
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: three places to write to, as the header wants.
    unsafe { version(&mut major, &mut minor, &mut patch) };
    if major < OLDEST {
        return Err(format!("it is LLVM {major}.{minor}.{patch}, and {OLDEST} or newer is needed"));
    }
    let api = Api::find(library)?;
    for part in ["TargetInfo", "Target", "TargetMC", "AsmPrinter"] {
        let name = format!("LLVMInitialize{TARGET}{part}");
        // SAFETY: the type is that of the header.
        match unsafe { library.get::<unsafe extern "C" fn()>(name.as_str()) } {
            // SAFETY: it takes and gives nothing, and may be called again and again.
            Ok(initialize) => unsafe { initialize() },
            Err(_) => return Err(format!("it was built without {}", std::env::consts::ARCH)),
        }
    }
    Ok((api, (major, minor, patch)))
}

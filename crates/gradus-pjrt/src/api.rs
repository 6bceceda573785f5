//! The functions of a plugin, and their errors as ours: what an older plugin lacks is absent, and nothing is called past its table.

use std::ffi::{CStr, c_char};
use std::ptr;

use gradus_core::ErrorKind;

use crate::error::{Error, Result, error, fail};
use crate::host;
use crate::sys::{
    PJRT_API_MAJOR, PJRT_Api, PJRT_Error, PJRT_Error_Code, PJRT_Extension_Base, PJRT_Program, Struct, args,
};

/// A plugin's table, copied as far as the plugin has one: what lies behind its end is absent.
pub(crate) struct Api {
    pub table: PJRT_Api,
    /// What the table is called in errors.
    pub name: String,
}

// SAFETY: the table holds pointers to functions and to lists that the plugin keeps, unchanged, for as long as it is loaded, which is for ever. The interface
// says that its functions may be called from any thread.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

/// Calls a function of a plugin, if it has it. To be used in an `unsafe` block that says why the arguments are what the function wants.
macro_rules! call {
    ($api:expr, $name:ident, $args:expr) => {{
        let api: &$crate::api::Api = $api;
        match api.table.$name {
            Some(function) => api.check(function($args)),
            None => Err(api.absent(stringify!($name))),
        }
    }};
}
pub(crate) use call;

impl Api {
    /// The table behind a pointer that a plugin's `GetPjrtApi` gave.
    ///
    /// # Safety
    ///
    /// The pointer is null, or what the function of that name in a PJRT plugin gave.
    pub unsafe fn new(given: *const PJRT_Api, name: String) -> Result<Api> {
        if given.is_null() {
            fail!(Device, "{name} is a PJRT plugin that hands out no functions");
        }
        // SAFETY: every version of the table begins with its size, as the caller says that this is one.
        let size = unsafe { (&raw const (*given).struct_size).read() };
        let mut table = PJRT_Api::zeroed();
        let head = std::mem::offset_of!(PJRT_Api, PJRT_Error_Destroy);
        if size < head {
            fail!(Device, "{name} hands out a table of {size} bytes, which is no PJRT plugin's");
        }
        // SAFETY: the plugin says that so many bytes are its table, and our copy has room for no more than that. What is not copied stays zero, which is
        // an absent function.
        unsafe {
            ptr::copy_nonoverlapping(given.cast::<u8>(), (&raw mut table).cast::<u8>(), size.min(PJRT_Api::SIZE));
        }
        let api = Api { table, name };
        let (major, minor) = api.version();
        if major != PJRT_API_MAJOR {
            return Err(error!(
                Device,
                "{} speaks version {major}.{minor} of the PJRT interface, and this is version {PJRT_API_MAJOR}",
                api.name
            )
            .help("install a plugin whose interface has the same major version"));
        }
        Ok(api)
    }

    /// The version of the interface that the plugin was built with.
    pub fn version(&self) -> (i32, i32) {
        (self.table.pjrt_api_version.major_version, self.table.pjrt_api_version.minor_version)
    }

    /// The first extension of a type in the plugin's list.
    pub fn extension(&self, kind: u32) -> Option<ptr::NonNull<PJRT_Extension_Base>> {
        let mut next = self.table.extension_start;
        while let Some(at) = ptr::NonNull::new(next) {
            // SAFETY: the list is the plugin's, which keeps it; each node begins with this head.
            let head = unsafe { at.as_ref() };
            if head.kind == kind {
                return Some(at);
            }
            next = head.next;
        }
        None
    }

    #[cold]
    pub fn absent(&self, function: &str) -> Error {
        let (major, minor) = self.version();
        error!(Device, "{} has no function `{function}`", self.name)
            .note(format!("its interface is version {major}.{minor}"))
            .help("install a newer version of the plugin")
    }

    /// What a call said.
    #[inline]
    pub fn check(&self, error: *mut PJRT_Error) -> Result<()> {
        if error.is_null() { Ok(()) } else { Err(self.taken(error)) }
    }

    /// An error of the plugin as one of ours. It is freed.
    #[cold]
    fn taken(&self, error: *mut PJRT_Error) -> Error {
        let mut text = String::from("no text");
        if let Some(message) = self.table.PJRT_Error_Message {
            let mut a = args!(PJRT_Error_Message_Args { error: error.cast_const() });
            // SAFETY: the error is one that a call just gave, and the arguments are of this function. The text lives as long as the error.
            text = unsafe {
                message(&raw mut a);
                text_of(a.message, a.message_size)
            };
        }
        let mut code = 0;
        if let Some(get) = self.table.PJRT_Error_GetCode {
            let mut a = args!(PJRT_Error_GetCode_Args { error: error.cast_const() });
            // SAFETY: as above. An error about the error would only say that there is no code.
            let failed = unsafe { get(&raw mut a) };
            self.free(failed);
            code = a.code;
        }
        self.free(error);
        host::original(&text).unwrap_or_else(|| described(&self.name, code, &text))
    }

    fn free(&self, error: *mut PJRT_Error) {
        if let (false, Some(destroy)) = (error.is_null(), self.table.PJRT_Error_Destroy) {
            let mut a = args!(PJRT_Error_Destroy_Args { error: error });
            // SAFETY: the error was given by a call, nothing else holds it, and it is not used again.
            unsafe { destroy(&raw mut a) };
        }
    }
}

/// The names of the codes, which are those of `absl::Status`.
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

#[cold]
fn described(name: &str, code: u32, text: &str) -> Error {
    let kind = match code {
        PJRT_Error_Code::RESOURCE_EXHAUSTED => ErrorKind::Size,
        _ => ErrorKind::Device,
    };
    let title = CODES.get(code as usize).map_or_else(|| format!("code {code}"), ToString::to_string);
    let error = Error::new(kind, format!("{name} says {title}: {}", text.trim_end()));
    match code {
        PJRT_Error_Code::RESOURCE_EXHAUSTED => error.help(
            "the device has no memory left for this: let go of arrays, or make the batch smaller; on a GPU `memory_fraction` bounds what is taken",
        ),
        PJRT_Error_Code::UNIMPLEMENTED => {
            error.help("this plugin cannot do it: another version of it may, and `Interpreter` or `Cpu` can")
        }
        _ => error.help("the text is the plugin's own; the program as it was given to it is what `stablehlo` prints"),
    }
}

/// Text that a plugin gave by place and length.
///
/// # Safety
///
/// So many bytes can be read there, or there are none.
pub(crate) unsafe fn text_of(at: *const c_char, length: usize) -> String {
    // SAFETY: as the caller says.
    let bytes = unsafe { slice_of(at.cast::<u8>(), length) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// A list that a plugin gave by place and length.
///
/// # Safety
///
/// So many values can be read there for as long as the slice is used, or there are none.
pub(crate) unsafe fn slice_of<'a, T>(at: *const T, length: usize) -> &'a [T] {
    if at.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: as the caller says, and it is not null.
    unsafe { std::slice::from_raw_parts(at, length) }
}

/// A program in the form that plugins take.
pub(crate) struct Code(Vec<u8>);

impl Code {
    /// The program with a zero behind it, which is not counted: a plugin that parses text looks for one, past the length that it is told.
    pub fn new(module: &[u8]) -> Code {
        Code([module, &[0]].concat())
    }

    /// Itself for a call. It points at the code, which must outlive it.
    pub fn program(&self) -> PJRT_Program {
        const FORMAT: &CStr = c"mlir";
        args!(PJRT_Program {
            code: self.0.as_ptr().cast_mut().cast::<c_char>(),
            code_size: self.0.len() - 1,
            format: FORMAT.as_ptr(),
            format_size: FORMAT.count_bytes(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(size: usize, major: i32) -> PJRT_Api {
        let mut table = PJRT_Api::zeroed();
        table.struct_size = size;
        table.pjrt_api_version.major_version = major;
        table
    }

    fn api(table: &PJRT_Api) -> Result<Api> {
        // SAFETY: the table is one, of at least the size that it says.
        unsafe { Api::new(table, "a plugin".into()) }
    }

    #[test]
    fn a_table_that_is_too_short_or_of_another_version_is_refused() {
        assert!(api(&table(8, 0)).err().unwrap().message().contains("8 bytes"));
        let other = api(&table(PJRT_Api::SIZE, 1)).err().unwrap();
        assert!(other.message().contains("version 1.0"), "{other}");
        // SAFETY: null is allowed.
        assert!(unsafe { Api::new(ptr::null(), "x".into()) }.is_err());
    }

    #[test]
    fn functions_behind_the_end_of_an_older_table_are_absent() {
        unsafe extern "C" fn never(_: *mut crate::sys::PJRT_Compile_Args) -> *mut PJRT_Error {
            panic!("this must not be called")
        }
        let end = std::mem::offset_of!(PJRT_Api, PJRT_Compile);
        let mut older = table(end, 0);
        older.PJRT_Compile = Some(never);
        let api = api(&older).unwrap();
        assert!(api.table.PJRT_Compile.is_none());
        let mut a = args!(PJRT_Compile_Args {});
        // SAFETY: the function is absent, so nothing is called.
        let e = unsafe { call!(&api, PJRT_Compile, &raw mut a) }.unwrap_err();
        assert!(e.message().contains("PJRT_Compile"), "{e}");
    }
}

//! Plugins: shared libraries that are loaded once in a process, by path, and stay.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::api::{Api, call, slice_of, text_of};
use crate::error::{Result, error};
use crate::find;
use crate::host;
use crate::options::Value;
use crate::sys::{PJRT_Api, PJRT_NamedValue, args};

/// A PJRT plugin in this process.
pub struct Plugin {
    pub(crate) api: Api,
    path: PathBuf,
    attributes: BTreeMap<String, Value>,
    fingerprint: String,
    /// What XLA calls runs that may call functions of this process, or why none may.
    pub(crate) callbacks: Result<i64>,
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plugin({} {})", self.path.display(), self.version())
    }
}

/// What was loaded, by path: a library that is loaded twice would register its devices twice.
static LOADED: LazyLock<Mutex<BTreeMap<PathBuf, &'static Plugin>>> = LazyLock::new(Mutex::default);

impl Plugin {
    /// The plugin of a platform (`cpu`, `cuda`, `tpu`) or at a path. It is loaded at the first call, and never unloaded.
    pub fn find(name: &str) -> Result<&'static Plugin> {
        Plugin::load(&find::find(name)?)
    }

    /// The plugin in a file.
    pub fn load(path: &Path) -> Result<&'static Plugin> {
        let shown = path.display();
        let path = path.canonicalize().map_err(|e| error!(Device, "{shown} cannot be loaded as a PJRT plugin: {e}"))?;
        // Held while it is loaded: two threads must not initialize it twice.
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = loaded.get(&path) {
            return Ok(found);
        }
        let plugin: &'static Plugin = Box::leak(Box::new(open(&path)?));
        loaded.insert(path, plugin);
        Ok(plugin)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The version of the interface that it speaks.
    pub fn interface(&self) -> (i32, i32) {
        self.api.version()
    }

    /// What it says about itself: `xla_version`, `stablehlo_current_version` and others.
    pub fn attributes(&self) -> &BTreeMap<String, Value> {
        &self.attributes
    }

    /// A line about its version.
    pub fn version(&self) -> String {
        let (major, minor) = self.interface();
        let newest = self.attributes.get("stablehlo_current_version");
        let newest = newest.map(|v| format!(", StableHLO up to {}", v.dotted())).unwrap_or_default();
        format!("PJRT {major}.{minor}{newest}")
    }

    /// The newest version of StableHLO that it reads, if it says so.
    pub fn stablehlo(&self) -> Option<[i64; 3]> {
        match self.attributes.get("stablehlo_current_version")? {
            Value::Ints(v) => v.as_slice().try_into().ok(),
            _ => None,
        }
    }

    /// What tells its code from that of another plugin or another version of it.
    pub(crate) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

/// The variable without which `libtpu` asks the metadata server of a cloud where it is, and waits for the answer for minutes.
const NO_QUERY: &str = "TPU_SKIP_MDS_QUERY";

fn open(path: &Path) -> Result<Plugin> {
    let name = path.display().to_string();
    if path.file_name().is_some_and(|f| f.to_string_lossy().contains("libtpu")) && std::env::var_os(NO_QUERY).is_none()
    {
        return Err(error!(Device, "libtpu would ask a cloud where it is, and wait for minutes if it is nowhere")
            .help(format!("set {NO_QUERY}=1 where there is no TPU, or {NO_QUERY}=0 where there is one")));
    }
    let refused = |why: String| {
        error!(Device, "{name} cannot be loaded as a PJRT plugin: {why}")
            .help("a plugin is a shared library with the function `GetPjrtApi`; what it needs itself must be found by the loader")
    };
    // SAFETY: loading runs the initializers of the library, which the user named or installed as a plugin; there is nothing about it that could be checked
    // before. It is kept for ever, so nothing of it is used after it is gone.
    let library = unsafe { libloading::Library::new(path) }.map_err(|e| refused(e.to_string()))?;
    // SAFETY: a function of this name has this type in every version of the interface.
    let get = unsafe { library.get::<unsafe extern "C" fn() -> *const PJRT_Api>(b"GetPjrtApi\0") };
    let get = get.map(|f| *f).map_err(|_| refused("it has no function `GetPjrtApi`".into()));
    // Its threads and handlers may outlive every use of it, and an initializer that ran cannot be undone.
    std::mem::forget(library);
    let short = path.file_name().map_or_else(|| name.clone(), |f| f.to_string_lossy().into_owned());
    // SAFETY: it takes nothing; what it gives is what `new` wants.
    let api = unsafe { Api::new(get?(), short) }?;
    let mut a = args!(PJRT_Plugin_Initialize_Args {});
    // SAFETY: the arguments are of this function and have no pointers.
    match unsafe { call!(&api, PJRT_Plugin_Initialize, &raw mut a) } {
        Err(e) if api.table.PJRT_Plugin_Initialize.is_some() => return Err(e),
        // A plugin without it has nothing to initialize.
        _ => {}
    }
    let attributes = attributes(&api)?;
    let fingerprint = fingerprint(path, &api, &attributes);
    let callbacks = host::register(&api);
    Ok(Plugin { api, path: path.to_path_buf(), attributes, fingerprint, callbacks })
}

fn attributes(api: &Api) -> Result<BTreeMap<String, Value>> {
    if api.table.PJRT_Plugin_Attributes.is_none() {
        return Ok(BTreeMap::new());
    }
    let mut a = args!(PJRT_Plugin_Attributes_Args {});
    // SAFETY: the arguments are of this function; the list that it gives is the plugin's, for as long as it is loaded.
    let list = unsafe {
        call!(api, PJRT_Plugin_Attributes, &raw mut a)?;
        slice_of(a.attributes, a.num_attributes)
    };
    // SAFETY: each entry is one that the plugin filled.
    Ok(list.iter().map(|n| unsafe { (text_of(n.name, n.name_size), value_of(n)) }).collect())
}

/// A value that a plugin gave.
///
/// # Safety
///
/// Its kind says which member of the union it is, and the lengths are right.
unsafe fn value_of(n: &PJRT_NamedValue) -> Value {
    use crate::sys::PJRT_NamedValue_Type::{BOOL, FLOAT, INT64, INT64_LIST};
    // SAFETY: as the caller says.
    unsafe {
        match n.kind {
            INT64 => Value::Int(n.value.int64_value),
            INT64_LIST => Value::Ints(slice_of(n.value.int64_array_value, n.value_size).to_vec()),
            FLOAT => Value::Float(n.value.float_value),
            BOOL => Value::Bool(n.value.bool_value),
            _ => Value::Text(text_of(n.value.string_value, n.value_size)),
        }
    }
}

/// The file, as far as it tells one build from another without reading hundreds of megabytes, and what the plugin says of itself.
fn fingerprint(path: &Path, api: &Api, attributes: &BTreeMap<String, Value>) -> String {
    let about = std::fs::metadata(path).ok();
    let size = about.as_ref().map_or(0, std::fs::Metadata::len);
    let changed = about.and_then(|m| m.modified().ok()).and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
    format!("{} {size} {changed:?} {:?} {attributes:?}", path.display(), api.version())
}

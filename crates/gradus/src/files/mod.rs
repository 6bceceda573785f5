//! Trees of arrays in files: [`save`] writes one by the names of its arrays, [`load`] reads it back into the structure of another.
//!
//! | extension | what it is | feature |
//! |---|---|---|
//! | `.npy` | one array, as NumPy writes it | `npy` |
//! | `.npz` | many, as `numpy.savez` writes them; compressed ones are read too | `npy` |
//! | `.safetensors` | many, as the crate and the Python package of that name write them | `safetensors` |
//!
//! Both features are on by default; without either the module is not there. An array is found by its [path](tree::paths), such as `layers.0.weights`; lengths, variants and static fields are not in a file, they
//! come from the value that is given as a pattern. What is in a file besides is left alone, so a model is loaded from a file that has an optimizer's state too.
//!
//! A file is written beside its place and then moved there: whoever reads meanwhile, or after a crash, finds the old one or the new one. A file that is cut off, that is none,
//! or that claims more than it has is an error with its name, never a panic. The checksums of a `.npz` are compared: one that was damaged on its way is an error too. The other two
//! kinds have none, and cannot tell. What is no regular file, such as a pipe, is not read, since it may have no end.

mod bytes;
#[cfg(feature = "npy")]
mod npy;
#[cfg(feature = "npy")]
mod npz;
#[cfg(feature = "safetensors")]
mod tensors;

use gradus_core::error::counted;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use gradus_core::{Array, DType, Decision, Error, ErrorKind, Location, Result, Type, trace};

use crate::stage::fill;
use crate::tree::{self, Frozen, Segment, Tree, Visitor};

/// The name of a tree that is one array: what NumPy calls an array that was given none.
const ALONE: &str = "arr_0";

/// Writes the arrays of a tree into a file whose kind its extension says.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// #[derive(Clone, Tree)]
/// struct Layer {
///     weights: Array,
///     bias: Array,
/// }
///
/// let path = std::env::temp_dir().join(format!("gradus-example-{}.npz", std::process::id()));
/// let layer = Layer { weights: Array::ones::<f32>([2, 3]), bias: Array::zeros::<f32>([3]) };
/// files::save(&path, &layer)?;
/// // In Python: np.load(path)["weights"]
/// let again = files::load(&path, &layer)?;
/// assert_eq!(again.weights.shape(), [2, 3]);
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn save<T: Tree>(path: impl AsRef<Path>, tree: &T) -> Result<()> {
    let (path, place) = (path.as_ref(), Location::caller());
    named(path, place, || {
        let format = Format::of(path)?;
        let arrays = named_arrays(tree, place)?;
        write_whole(path, |out| format.write(out, &arrays))
    })
}

/// Reads the arrays of a tree from a file. The second argument says the structure, and the dtypes and shapes that are wanted; its numbers do not matter, so
/// it may be made of [specs](Array::spec), whose symbolic dimensions fit every size.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let path = std::env::temp_dir().join(format!("gradus-example-{}.npy", std::process::id()));
/// files::save(&path, &Array::from([[1.0_f64, 2.0]]))?;
/// assert_eq!(files::load(&path, &Array::spec("f64[N, 2]"))?.shape(), [1, 2]);
/// let e = files::load(&path, &Array::spec("f32[N, 2]")).unwrap_err().to_string();
/// assert!(e.contains("f64[1,2]") && e.contains("f32[N,2]"), "{e}");
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn load<T: Tree>(path: impl AsRef<Path>, like: &T) -> Result<T> {
    let (path, place) = (path.as_ref(), Location::caller());
    named(path, place, || {
        let (format, bytes) = read(path)?;
        let mut source = format.open(&bytes)?;
        let wanted = names(like)?;
        let each = wanted.iter().zip(like.leaves()).map(|(name, x)| fitting(&mut *source, name, x.ty()?));
        Ok(fill(like, each.collect::<Result<Vec<_>>>()?))
    })
}

/// All arrays of a file by their names. A `.npy` has one, called `arr_0`.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let path = std::env::temp_dir().join(format!("gradus-all-{}.safetensors", std::process::id()));
/// files::save(&path, &(Array::from(1.0_f32), Array::from([2_i64, 3])))?;
/// let all = files::load_all(&path)?;
/// assert_eq!(all["1"].to_vec::<i64>()?, [2, 3]);
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn load_all(path: impl AsRef<Path>) -> Result<BTreeMap<String, Array>> {
    let (path, place) = (path.as_ref(), Location::caller());
    named(path, place, || {
        let (format, bytes) = read(path)?;
        let mut source = format.open(&bytes)?;
        let names = source.names();
        names.into_iter().map(|name| source.array(&name).map(|a| (name, a))).collect()
    })
}

/// What files of every kind can be asked for.
trait Source {
    /// The names of its arrays.
    fn names(&self) -> Vec<String>;
    /// The type of an array; none if there is no such array.
    fn ty(&mut self, name: &str) -> Result<Option<Type>>;
    /// An array.
    fn array(&mut self, name: &str) -> Result<Array>;
}

#[derive(Clone, Copy)]
enum Format {
    Npy,
    Npz,
    Safetensors,
}

impl Format {
    fn of(path: &Path) -> Result<Format> {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "npy" => Ok(Format::Npy),
            "npz" => Ok(Format::Npz),
            "safetensors" => Ok(Format::Safetensors),
            "" => Err(bad("a file without an extension says not what it is").help(KINDS)),
            _ => Err(bad(format!("no kind of file is known by the extension `.{extension}`")).help(KINDS)),
        }
    }

    /// Refuses what does not begin as such a file does, before the rest of it is read.
    fn begins(self, start: &[u8], length: u64) -> Result<()> {
        match self {
            Format::Npy if !start.starts_with(b"\x93NUMPY") => {
                Err(not_a(".npy", start, &"it does not begin with the word NUMPY"))
            }
            // An archive begins with its first entry, or with its end if it has none.
            Format::Npz if !start.starts_with(b"PK\x03\x04") && !start.starts_with(b"PK\x05\x06") => {
                Err(not_a(".npz", start, &"it does not begin as a zip archive does"))
            }
            // A length comes first, that of a header which is there.
            Format::Safetensors => {
                let header = start.first_chunk().map(|n| u64::from_le_bytes(*n));
                match header.filter(|n| *n > 0).and_then(|n| n.checked_add(8)) {
                    Some(end) if end <= length => Ok(()),
                    _ => Err(not_a(".safetensors", start, &"it does not begin with a header's length")),
                }
            }
            Format::Npy | Format::Npz => Ok(()),
        }
    }

    fn write(self, out: &mut (impl Write + io::Seek), arrays: &[(String, Array)]) -> Result<()> {
        match self {
            #[cfg(feature = "npy")]
            Format::Npy => npy::write_only(out, arrays),
            #[cfg(feature = "npy")]
            Format::Npz => npz::write(out, arrays),
            #[cfg(feature = "safetensors")]
            Format::Safetensors => tensors::write(out, arrays),
            #[allow(unreachable_patterns)] // which ones there are is a choice of the build
            other => Err(other.missing()),
        }
    }

    fn open<'a>(self, bytes: &'a [u8]) -> Result<Box<dyn Source + 'a>> {
        match self {
            #[cfg(feature = "npy")]
            Format::Npy => Ok(Box::new(npy::Npy::open(bytes)?)),
            #[cfg(feature = "npy")]
            Format::Npz => Ok(Box::new(npz::Npz::open(bytes)?)),
            #[cfg(feature = "safetensors")]
            Format::Safetensors => Ok(Box::new(tensors::Tensors::open(bytes)?)),
            #[allow(unreachable_patterns)]
            other => Err(other.missing()),
        }
    }

    #[allow(dead_code)] // used by builds without one of the features
    fn missing(self) -> Error {
        let feature = if matches!(self, Format::Safetensors) { "safetensors" } else { "npy" };
        bad("this build does not have this kind of file").help(format!("add the feature `{feature}` of `gradus`"))
    }
}

/// The way out for arrays of a staged function.
const TRACED: &str = "save what the function gives back; to save while it runs, call `save` in an `io_callback`, whose function is given numbers";

const KINDS: &str = "use `.npy` for one array, `.npz` or `.safetensors` for many";

/// An error about a file, which [`named`] gives its name.
fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::File, message)
}

/// The file's name in front of what went wrong, and the user's line.
fn named<T>(path: &Path, place: Location, f: impl FnOnce() -> Result<T>) -> Result<T> {
    f().map_err(|e| e.within(format!("{}: ", path.display())).at(place))
}

fn names<T: Tree>(tree: &T) -> Result<Vec<String>> {
    let mut nameless = Nameless::default();
    tree.visit(&mut nameless);
    if nameless.found {
        return Err(bad("an array of the tree has the empty text for a name")
            .help("rename the key of its map: an array without a name cannot be told from a tree that is one array"));
    }
    let mut names = tree::paths(tree);
    names.iter_mut().filter(|n| n.is_empty()).for_each(|n| *n = ALONE.to_string());
    Ok(names)
}

/// Looks for an array in a map by the key `""`, whose path is the one that a tree of one array has.
#[derive(Default)]
struct Nameless {
    depth: usize,
    empty: bool,
    found: bool,
}

impl Visitor for Nameless {
    fn enter(&mut self, segment: Segment<'_>) {
        self.depth += 1;
        self.empty = self.depth == 1 && matches!(segment, Segment::Key(""));
    }
    fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.empty = false;
    }
    fn structure(&mut self, _: &str, _: usize) {}
    fn array(&mut self, _: &Array) {
        self.found |= self.empty;
    }
    fn frozen(&mut self, _: &dyn Frozen) {}
}

fn named_arrays<T: Tree>(tree: &T, place: Location) -> Result<Vec<(String, Array)>> {
    let names = names(tree)?;
    let mut seen = std::collections::BTreeSet::new();
    if let Some(twice) = names.iter().find(|n| !seen.insert(n.as_str())) {
        return Err(bad(format!("two arrays of the tree are called `{twice}`"))
            .help("a key of a map that has a `.` in it can look like a path: rename it"));
    }
    let each = names.into_iter().zip(tree.leaves());
    each.map(|(name, x)| {
        let x = trace::read_for(&x, "`save`", TRACED, place)?;
        // Keys are stored as the numbers they are.
        let x = if x.dtype() == DType::Key { x.bitcast(DType::U64) } else { x };
        x.ok().map(|x| (name, x))
    })
    .collect()
}

/// A whole file, after a look at what it is: a device has no end, and a pipe waits for one.
fn read(path: &Path) -> Result<(Format, Vec<u8>)> {
    let wrong = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => bad("cannot be read: there is no such file").help(match std::env::current_dir() {
            Ok(here) if path.is_relative() => format!("a path that begins with no `/` begins at {}", here.display()),
            _ => "look at the path, and whether the file was saved".to_string(),
        }),
        _ => bad(format!("cannot be read: {e}")),
    };
    if !fs::metadata(path).map_err(wrong)?.is_file() {
        return Err(
            bad("cannot be read: it is no regular file").help("give the name of a file, not of a folder or a device")
        );
    }
    let format = Format::of(path)?;
    let mut file = fs::File::open(path).map_err(wrong)?;
    // As long as it was when it was opened: someone may be writing to it.
    let length = file.metadata().map_err(wrong)?.len();
    let mut start = Vec::new();
    Read::by_ref(&mut file).take(START).read_to_end(&mut start).map_err(wrong)?;
    format.begins(&start, length)?;
    let mut bytes = bytes::room(usize::try_from(length).unwrap_or(usize::MAX))?;
    bytes.extend(start);
    file.take(length.saturating_sub(START)).read_to_end(&mut bytes).map_err(wrong)?;
    Ok((format, bytes))
}

/// The kind of file that bytes are, by how they begin.
fn looks_like(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Some(".npy"),
        [b'P', b'K', 3 | 5, 4 | 6, ..] => Some(".npz"),
        [_, _, _, _, _, _, 0, 0, b'{', ..] => Some(".safetensors"),
        _ => None,
    }
}

/// What is said of bytes that are no file of the kind that the extension claims.
fn not_a(kind: &str, bytes: &[u8], what: &dyn std::fmt::Display) -> Error {
    let again = "it was not written or not copied to its end: save it, or copy it, again";
    match looks_like(bytes) {
        _ if bytes.is_empty() => bad(format!("is no `{kind}`: it is empty")).help(again),
        Some(other) if other == kind => bad(format!("is a `{kind}` that is damaged or cut off"))
            .note(format!("reading it failed with: {what}"))
            .help(again),
        Some(other) => {
            bad(format!("is no `{kind}`: it looks like a `{other}`")).help(format!("give it the extension `{other}`"))
        }
        None => bad(format!("is no `{kind}`: it does not begin as one"))
            .help("an extension says what a file is, and this one is something else, or was cut off; save it again"),
    }
}

/// As many bytes as say what a file is.
const START: u64 = 9;

/// One array of a file, if it is there and is what is wanted.
fn fitting(source: &mut dyn Source, name: &str, wanted: &Type) -> Result<Array> {
    let Some(found) = source.ty(name)? else {
        let there = source.names();
        let (near, far): (Vec<&String>, Vec<&String>) =
            there.iter().partition(|n| n.ends_with(name.rsplit('.').next().unwrap_or(name)));
        let shown: Vec<String> = near.iter().chain(&far).take(4).map(|n| format!("`{n}`")).collect();
        let e = bad(format!("has no array `{name}`"));
        return Err(match shown.len() {
            0 => e.note("it has no arrays at all"),
            _ => e.note(format!("it has {}, among them {}", counted(there.len(), "array"), shown.join(", "))),
        }
        .help("give a value of the structure that was saved"));
    };
    let is_key = wanted.dtype() == DType::Key;
    let dtype = if is_key { DType::U64 } else { wanted.dtype() };
    let fits = |(a, b): (&gradus_core::Dim, &gradus_core::Dim)| a.equals(b) != Decision::No;
    let same_shape = found.rank() == wanted.rank() && found.shape().iter().zip(wanted.shape().iter()).all(fits);
    if found.dtype() != dtype || !same_shape {
        return Err(bad(format!("its array `{name}` is {found}, and {wanted} is wanted"))
            .help("give a value with the dtypes and shapes that were saved, and cast afterwards"));
    }
    let array = source.array(name)?;
    if is_key { array.bitcast(DType::Key).ok() } else { Ok(array) }
}

/// Writes a file as a whole: beside its place, then moved there.
fn write_whole(path: &Path, write: impl FnOnce(&mut io::BufWriter<fs::File>) -> Result<()>) -> Result<()> {
    let wrong = |e: io::Error| bad(format!("cannot be written: {e}"));
    let beside = beside(path)?;
    let file = fs::File::options().write(true).create_new(true).open(&beside).map_err(wrong)?;
    let mut out = io::BufWriter::new(file);
    let done = write(&mut out)
        .and_then(|()| out.into_inner().map_err(|e| wrong(e.into_error())))
        .and_then(|file| file.sync_all().map_err(wrong))
        .and_then(|()| fs::rename(&beside, path).map_err(wrong));
    if done.is_err() {
        // What is left of a failed attempt is of no use to anyone; that it cannot be removed is not the user's question.
        let _ = fs::remove_file(&beside);
    }
    done
}

/// A name in the same folder that nobody else uses: moving a file to another disk would not be one step.
fn beside(path: &Path) -> Result<PathBuf> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let Some(name) = path.file_name() else { return Err(bad("is no name of a file").help("give the name of a file")) };
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}-{number}.part", std::process::id()));
    Ok(path.with_file_name(hidden))
}

//! Files of arrays: what NumPy and safetensors wrote is read, what is written reads back, and a file that is not what it claims is an error with its name.
//!
//! `scripts/reference/files.py` wrote the files in `data/files`; with `GRADUS_KEEP_FILES` set to a folder it can read what is written here.

use std::collections::BTreeMap;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use gradus::prelude::*;

/// A folder that goes away with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("gradus-files-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/files").join(name)
}

/// Zero to five in every dtype.
fn every() -> BTreeMap<String, Array> {
    let numbers = Array::from([[0.0_f64, 1.0, 2.0], [3.0, 4.0, 5.0]]);
    DType::VALUES.iter().map(|d| (d.name().to_string(), numbers.cast(*d))).collect()
}

fn without(name: &str, mut all: BTreeMap<String, Array>) -> BTreeMap<String, Array> {
    all.remove(name);
    all
}

#[test]
fn row_a3_what_numpy_and_safetensors_wrote_is_read() -> Result<()> {
    let numbers = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25];
    let columns = files::load(stored("columns.npy"), &Array::spec("f64[2, 3]"))?;
    assert_eq!(columns.to_vec::<f64>()?, numbers);
    let swapped = files::load(stored("swapped.npy"), &Array::spec("i32[2, N]"))?;
    assert_eq!(swapped.to_vec::<i32>()?, [1, -2, 3, 40000]);
    let complex = files::load_all(stored("swapped_complex.npy"))?.remove("arr_0").unwrap();
    assert_eq!(complex.to_vec::<Complex<f64>>()?, [Complex::new(1.0, 2.0), Complex::new(0.0, -3.5)]);
    assert_eq!(files::load(stored("version2.npy"), &Array::spec("bool[2]"))?.to_vec::<bool>()?, [true, false]);
    let all = files::load_all(stored("compressed.npz"))?;
    assert_eq!(all.keys().map(String::as_str).collect::<Vec<_>>(), ["halves", "layers.0.weights", "scale"]);
    assert_eq!(all["layers.0.weights"].to_vec::<f64>()?, numbers);
    assert_eq!(all["scale"].item::<f32>()?, 2.5);
    assert_eq!(all["halves"].dtype(), DType::F16);
    let brain = files::load(stored("brain.npz"), &BTreeMap::from([("x".to_string(), Array::spec("bf16[2, 3]"))]))?;
    assert_eq!(brain["x"].cast(DType::F64).to_vec::<f64>()?, numbers);
    let all = files::load_all(stored("model.safetensors"))?;
    assert_eq!(all["layers.0.weights"].to_vec::<f64>()?, numbers);
    assert_eq!(all["flags"].to_vec::<bool>()?, [true, false]);
    assert_eq!(all["empty"].shape(), [0, 3]);
    let e = files::load_all(stored("records.npy")).unwrap_err().to_string();
    assert!(e.contains("records.npy") && e.contains("records"), "{e}");
    Ok(())
}

#[test]
fn row_a3_every_dtype_reads_back() -> Result<()> {
    let folder = Folder::new("dtypes");
    let kept = std::env::var_os("GRADUS_KEEP_FILES").map(PathBuf::from);
    let place = kept.as_ref().unwrap_or(&folder.0);
    for (name, tree) in [("every.npz", every()), ("most.safetensors", without("c128", every()))] {
        let path = place.join(name);
        files::save(&path, &tree)?;
        assert!(tree::all_close(&files::load(&path, &tree)?, &tree, 0.0)?, "{name}");
        assert!(tree::all_close(&files::load_all(&path)?, &tree, 0.0)?, "{name}");
    }
    for array in every().values() {
        let path = folder.at("one.npy");
        files::save(&path, array)?;
        assert!(tree::all_close(&files::load(&path, array)?, array, 0.0)?);
    }
    Ok(())
}

#[test]
fn bits_shapes_and_views_are_kept() -> Result<()> {
    let folder = Folder::new("bits");
    let odd = [f64::NAN, -0.0, f64::INFINITY, f64::MIN_POSITIVE / 4.0];
    let matrix = Array::from([[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let tree = vec![
        Array::from(odd),
        Array::from(7_i64),
        Array::zeros::<f32>([0, 5]),
        Array::from([1.5_f32]),
        matrix.t(),
        Array::full([2, 2], 3.0_f64),
    ];
    for name in ["a.npz", "a.safetensors"] {
        files::save(folder.at(name), &tree)?;
        let again = files::load(folder.at(name), &tree)?;
        for (x, y) in tree.iter().zip(&again) {
            assert!(x.is_identical(y), "{name}: {x:?} {y:?}");
        }
    }
    // A name and not a path; the extension in any case.
    files::save(folder.at("ONE.NPY"), &matrix.t())?;
    assert_eq!(files::load(folder.at("ONE.NPY"), &matrix.t())?.to_vec::<f32>()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    Ok(())
}

#[test]
fn keys_and_states_are_saved_too() -> Result<()> {
    let folder = Folder::new("states");
    #[derive(Tree)]
    struct Training {
        model: (Array, Option<Array>),
        state: optim::State<(Array, Option<Array>)>,
        key: Key,
    }
    let model = (Array::from([1.0_f32, 2.0]), Some(Array::from(3.0_f32)));
    let adam = optim::adam(0.1);
    let (model, state) = adam.step(&model, &model, &adam.init(&model));
    let training = Training { model, state, key: Key::new(42) };
    let names = ["model.0", "model.1", "state.count", "state.moments.0.0", "state.moments.0.1", "state.moments.1.0"];
    for name in ["t.npz", "t.safetensors"] {
        files::save(folder.at(name), &training)?;
        let again = files::load(folder.at(name), &training)?;
        assert!(tree::all_close(&training, &again, 0.0)?);
        assert_eq!(again.key.to_words()?, training.key.to_words()?);
        let all = files::load_all(folder.at(name))?;
        assert!(names.iter().all(|n| all.contains_key(*n)), "{:?}", all.keys());
    }
    Ok(())
}

fn fails<T: Tree>(path: &Path, like: &T, parts: &[&str]) {
    let e = files::load(path, like).err().expect("an error");
    assert_eq!(e.kind(), ErrorKind::File, "{e}");
    let text = e.to_string();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(text.contains(name) && text.contains("library_files.rs"), "{text}");
    assert!(parts.iter().all(|p| text.contains(p)), "{parts:?}: {text}");
}

#[test]
fn what_does_not_fit_is_named() {
    let folder = Folder::new("misfits");
    let saved = vec![Array::from([1.0_f32, 2.0]), Array::from(3.0_f32)];
    for name in ["m.npz", "m.safetensors"] {
        let path = folder.at(name);
        files::save(&path, &saved).unwrap();
        let more: Vec<Array> = saved.iter().cloned().chain([Array::from(1.0_f32)]).collect();
        fails(&path, &more, &["no array `2`", "2 arrays", "among them `0`, `1`\n"]);
        // The name that ends alike stands first, and once.
        let other = BTreeMap::from([("model".to_string(), vec![saved[0].clone()])]);
        fails(&path, &other, &["no array `model.0`", "among them `0`, `1`\n"]);
        fails(&path, &vec![Array::spec("f32[3]"), saved[1].clone()], &["`0`", "f32[2]", "f32[3]"]);
        fails(&path, &vec![Array::spec("f64[2]"), saved[1].clone()], &["`0`", "f32[2]", "f64[2]"]);
        fails(&path, &vec![Array::spec("f32[2, 1]"), saved[1].clone()], &["`0`", "f32[2]", "f32[2,1]"]);
    }
    fails(&folder.at("none.npz"), &saved, &["cannot be read: there is no such file", "help"]);
    let here = files::load("none-here.npz", &saved).unwrap_err().to_string();
    assert!(here.contains(&std::env::current_dir().unwrap().display().to_string()), "{here}");
    // A kind that is another, in plain words and with what to do.
    for (from, to) in [("m.npz", "x.safetensors"), ("m.safetensors", "x.npz"), ("m.npz", "x.npy")] {
        std::fs::copy(folder.at(from), folder.at(to)).unwrap();
        let kind = from.strip_prefix('m').unwrap();
        fails(&folder.at(to), &saved[0], &["looks like a", kind, "give it the extension"]);
    }
    for name in ["m.npz", "m.safetensors"] {
        let (path, whole) = (folder.at(name), std::fs::read(folder.at(name)).unwrap());
        std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        fails(&path, &saved, &["damaged or cut off", "save it, or copy it, again"]);
        std::fs::write(&path, "").unwrap();
        fails(&path, &saved, &["it is empty"]);
        std::fs::write(&path, whole).unwrap();
    }
    fails(&folder.at("m.txt"), &saved, &["cannot be read"]);
    std::fs::write(folder.at("m.txt"), "text").unwrap();
    fails(&folder.at("m.txt"), &saved, &["`.txt`", "`.npz`"]);
    std::fs::write(folder.at("m"), "text").unwrap();
    fails(&folder.at("m"), &saved, &["extension"]);
    std::fs::write(folder.at("text.npz"), "text").unwrap();
    fails(&folder.at("text.npz"), &saved, &["no `.npz`: it does not begin as one"]);
    std::fs::write(folder.at("text.npy"), "some text, longer than a header").unwrap();
    fails(&folder.at("text.npy"), &saved[0], &["no `.npy`"]);
    let many = files::save(folder.at("m.npy"), &saved).unwrap_err().to_string();
    assert!(many.contains("m.npy") && many.contains("one array"), "{many}");
    let nowhere = files::save(folder.at("no/folder/m.npz"), &saved).unwrap_err().to_string();
    assert!(nowhere.contains("cannot be written"), "{nowhere}");
    let big = files::save(folder.at("m.safetensors"), &Array::from(Complex::new(1.0_f64, 0.0))).unwrap_err();
    assert!(big.to_string().contains("c128"), "{big}");
    let twice = BTreeMap::from([
        ("a".to_string(), BTreeMap::from([("b.c".to_string(), saved[0].clone())])),
        ("a.b".to_string(), BTreeMap::from([("c".to_string(), saved[0].clone())])),
    ]);
    let twice = files::save(folder.at("m.npz"), &twice).unwrap_err().to_string();
    assert!(twice.contains("`a.b.c`"), "{twice}");
    // Inside of a trace there are no numbers to write.
    let path = folder.at("traced.npz");
    let inside = jit(move |x: &Array| Array::from(files::save(&path, x).map(|()| x.clone())))(&saved[0]);
    let inside = inside.error().unwrap().to_string();
    let parts = ["G0006", "`save` was asked", "at crates/gradus/tests/library_files.rs", "`io_callback`"];
    assert!(parts.iter().all(|p| inside.contains(p)) && !inside.contains("src/files"), "{inside}");
    let spec = files::save(folder.at("spec.npz"), &Array::spec("f32[2]")).unwrap_err().to_string();
    assert!(spec.contains("only a type") && spec.contains("library_files.rs"), "{spec}");
}

#[test]
fn a_failed_save_leaves_the_old_file_and_nothing_else() {
    let folder = Folder::new("atomic");
    let path = folder.at("m.safetensors");
    files::save(&path, &Array::from(1.0_f32)).unwrap();
    files::save(&path, &Array::from(2.0_f32)).unwrap();
    assert!(files::save(&path, &Array::from(Complex::new(1.0_f64, 0.0))).is_err());
    assert_eq!(files::load(&path, &Array::spec("f32[]")).unwrap().item::<f32>().unwrap(), 2.0);
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[test]
fn cut_off_files_are_errors() {
    let folder = Folder::new("cut");
    let tree = (Array::from([[1.0_f64, 2.0], [3.0, 4.0]]), Array::from([1_i32, 2, 3]));
    for name in ["m.npz", "m.safetensors", "m.npy"] {
        let path = folder.at(name);
        let save = |path: &Path| if name == "m.npy" { files::save(path, &tree.0) } else { files::save(path, &tree) };
        save(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for end in 0..whole.len() {
            std::fs::write(&path, &whole[..end]).unwrap();
            if name == "m.npy" {
                fails(&path, &tree.0, &[]);
            } else {
                fails(&path, &tree, &[]);
            }
            assert!(files::load_all(&path).is_err(), "{name} cut at {end}");
        }
    }
}

#[test]
fn damaged_files_never_panic() {
    let folder = Folder::new("damaged");
    let tree = (Array::from([[1.0_f32, 2.0], [3.0, 4.0]]), Array::from([1_i32, 2, 3]));
    let mut seed = 1_u64;
    let mut random = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize
    };
    let mut refused = 0;
    for name in ["compressed.npz", "model.safetensors", "columns.npy", "brain.npz"] {
        let (path, whole) = (folder.at(name), std::fs::read(stored(name)).unwrap());
        for _ in 0..400 {
            let mut bytes = whole.clone();
            for _ in 0..=random() % 3 {
                let at = random() % bytes.len();
                bytes[at] = random() as u8;
            }
            std::fs::write(&path, &bytes).unwrap();
            refused += usize::from(files::load(&path, &tree).is_err()) + usize::from(files::load_all(&path).is_err());
        }
    }
    assert!(refused > 400, "{refused}");
}

#[test]
fn hostile_sizes_are_refused_before_memory_is_asked_for() {
    let folder = Folder::new("hostile");
    let npy = |shape: &str| {
        let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((text.len() as u16).to_le_bytes());
        file.extend(text.as_bytes());
        file
    };
    for shape in ["1000000000000,", "18446744073709551615, 18446744073709551615", "4611686018427387904, 8"] {
        std::fs::write(folder.at("h.npy"), npy(shape)).unwrap();
        let e = files::load_all(folder.at("h.npy")).unwrap_err().to_string();
        assert!(e.contains("h.npy"), "{e}");
        fails(&folder.at("h.npy"), &Array::spec("f64[N]"), &[]);
    }
    let mut long = b"\x93NUMPY\x02\x00".to_vec();
    long.extend(u32::MAX.to_le_bytes());
    std::fs::write(folder.at("h.npy"), long).unwrap();
    fails(&folder.at("h.npy"), &Array::spec("f64[N]"), &["4294967295"]);
    std::fs::write(folder.at("h.npy"), b"\x93NUMPY\x07\x00 and so on").unwrap();
    fails(&folder.at("h.npy"), &Array::spec("f64[N]"), &["version 7.0"]);
    let header = br#"{"x":{"dtype":"F64","shape":[4611686018427387904,8],"data_offsets":[0,8]}}"#;
    let mut tensors = (header.len() as u64).to_le_bytes().to_vec();
    tensors.extend(header);
    tensors.extend([0; 8]);
    std::fs::write(folder.at("h.safetensors"), &tensors).unwrap();
    fails(&folder.at("h.safetensors"), &Array::spec("f64[N]"), &[]);
    std::fs::write(folder.at("h.safetensors"), u64::MAX.to_le_bytes()).unwrap();
    fails(&folder.at("h.safetensors"), &Array::spec("f64[N]"), &[]);
}

#[test]
fn a_flipped_bit_is_found_by_its_checksum() {
    let folder = Folder::new("flips");
    let numbers = Array::arange(0.0_f32, 4.0, 1.0);
    let tree = BTreeMap::from([("a".to_string(), numbers.clone()), ("b".to_string(), -numbers)]);
    let packed = std::fs::read(stored("compressed.npz")).unwrap();
    let kept = files::load_all(stored("compressed.npz")).unwrap();
    files::save(folder.at("own.npz"), &tree).unwrap();
    let own = std::fs::read(folder.at("own.npz")).unwrap();
    let path = folder.at("flipped.npz");
    for (whole, tree) in [(own, tree), (packed, kept)] {
        let mut refused = 0;
        std::fs::write(&path, &whole).unwrap();
        // In place, byte by byte: a file that is made anew each time waits for the disk.
        let mut file = std::fs::File::options().write(true).open(&path).unwrap();
        let mut put = |at: usize, byte: u8| {
            file.seek(SeekFrom::Start(at as u64)).unwrap();
            file.write_all(&[byte]).unwrap();
        };
        for bit in 0..whole.len() * 8 {
            if bit > 0 {
                put((bit - 1) / 8, whole[(bit - 1) / 8]);
            }
            put(bit / 8, whole[bit / 8] ^ 1 << (bit % 8));
            match files::load_all(&path) {
                Ok(found) => {
                    let same = found.len() == tree.len()
                        && tree.iter().all(|(name, x)| found.get(name).is_some_and(|y| x.is_identical(y)));
                    assert!(same, "bit {bit} of byte {}: {found:?}", bit / 8);
                }
                Err(_) => refused += 1,
            }
            if bit % 8 != bit / 8 % 8 {
                continue;
            }
            if let Ok(found) = files::load(&path, &tree) {
                assert!(tree.iter().all(|(name, x)| x.is_identical(&found[name])), "bit {bit}");
            }
        }
        assert!(refused > whole.len() * 4, "{refused} of {}", whole.len() * 8);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_has_no_end_is_not_read() {
    for path in ["/dev/full", "/dev/zero"] {
        let e = files::load_all(path).unwrap_err().to_string();
        assert!(e.contains(path) && e.contains("no regular file"), "{e}");
    }
    let folder = Folder::new("devices");
    for name in ["zero.npy", "zero.npz", "zero.safetensors"] {
        std::os::unix::fs::symlink("/dev/zero", folder.at(name)).unwrap();
        fails(&folder.at(name), &Array::spec("f64[N]"), &["no regular file"]);
    }
    std::fs::create_dir(folder.at("folder.npy")).unwrap();
    fails(&folder.at("folder.npy"), &Array::spec("f64[N]"), &["no regular file"]);
    // Much longer than the memory, and no such file: its beginning is enough.
    for name in ["hole.npy", "hole.npz", "hole.safetensors"] {
        let file = std::fs::File::create(folder.at(name)).unwrap();
        file.set_len(1 << 42).unwrap();
        fails(&folder.at(name), &Array::spec("f64[N]"), &["does not begin"]);
        // With a good beginning there is no memory for the rest.
        let start: &[u8] = match name {
            "hole.npy" => b"\x93NUMPY\x01\x00",
            "hole.npz" => b"PK\x03\x04\x00\x00\x00\x00",
            _ => &[8, 0, 0, 0, 0, 0, 0, 0],
        };
        std::os::unix::fs::FileExt::write_all_at(&file, start, 0).unwrap();
        fails(&folder.at(name), &Array::spec("f64[N]"), &["no memory"]);
    }
}

#[test]
fn an_array_without_a_name_is_refused() {
    let folder = Folder::new("nameless");
    let nameless = BTreeMap::from([(String::new(), Array::from(1.0_f32))]);
    for name in ["n.npz", "n.safetensors", "n.npy"] {
        let e = files::save(folder.at(name), &nameless).unwrap_err();
        assert!(e.kind() == ErrorKind::File && e.to_string().contains("name"), "{e}");
        files::save(folder.at(name), &Array::from(1.0_f32)).unwrap();
        fails(&folder.at(name), &nameless, &["name"]);
    }
    // With something before or behind it there is a name.
    let inside = BTreeMap::from([("a".to_string(), nameless)]);
    files::save(folder.at("n.npz"), &inside).unwrap();
    assert!(tree::all_close(&files::load(folder.at("n.npz"), &inside).unwrap(), &inside, 0.0).unwrap());
}

#[test]
fn sizes_that_are_none_are_named() {
    let folder = Folder::new("sizes");
    for shape in ["-3,", "٣,", "2, x)", "2, 1.5", "1 2", "0x10,"] {
        let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((text.len() as u16).to_le_bytes());
        file.extend(text.as_bytes());
        file.extend([0; 64]);
        std::fs::write(folder.at("s.npy"), file).unwrap();
        let e = files::load_all(folder.at("s.npy")).unwrap_err().to_string();
        assert!(!e.contains("``"), "{shape}: {e}");
    }
    fails(&stored("records.npy"), &Array::spec("f64[N]"), &[]);
}

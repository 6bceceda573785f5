//! Portable bytecode: it gives the tree of its text, in every version, and whatever is wrong with it is an error that names the byte.

use std::path::{Path, PathBuf};

use gradus_stablehlo::module::{Attribute, Attributes, Function, Module, Operation, Region, Visibility};
use gradus_stablehlo::{is_bytecode, read_bytecode, read_one};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// The files of a folder that end so, in their order.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut all: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    all.retain(|p| p.to_string_lossy().ends_with(end));
    all.sort();
    all
}

fn bytecode(path: &Path) -> Module {
    let bytes = std::fs::read(path).unwrap();
    assert!(is_bytecode(&bytes));
    read_bytecode(&path.to_string_lossy(), &bytes).unwrap_or_else(|e| panic!("{e}"))
}

fn text(path: &Path) -> Module {
    let text = std::fs::read_to_string(path).unwrap();
    read_one(&path.to_string_lossy(), &text).unwrap_or_else(|e| panic!("{e}"))
}

/// What text may say and VHLO cannot tell from silence.
fn is_default(operation: &str, name: &str, value: &Attribute) -> bool {
    let ones = |v: &Attribute| v.integers().is_some_and(|all| all.iter().all(|v| *v == 1));
    let word = |v: &Attribute| matches!(v, Attribute::Enum(_, word) if word == "DEFAULT");
    match (operation, name, value) {
        ("stablehlo.custom_call", "api_version", v) => v.integer() == Some(1),
        ("stablehlo.custom_call", "backend_config", v) => *v == Attribute::of_text(""),
        (_, "result_accuracy", Attribute::Struct(_, fields)) => fields.get("mode").is_some_and(word),
        (_, "precision_config", Attribute::Array(items)) => items.iter().all(word),
        ("stablehlo.convolution" | "stablehlo.reduce_window", name, v) => {
            name.contains("dilation") && ones(v) || name == "window_strides" && ones(v)
        }
        _ => false,
    }
}

fn without_defaults(operation: &str, all: &Attributes) -> Attributes {
    let kept = all.iter().filter(|(name, value)| !is_default(operation, name, value));
    kept.map(|(name, value)| (name.to_owned().into(), value.clone())).collect()
}

fn show_region(region: &Region, out: &mut Vec<String>) {
    out.push(format!("region {:?}", region.arguments));
    for Operation { name, operands, results, attributes, regions, .. } in &region.operations {
        out.push(format!("{results:?} = {name} {operands:?} {:?}", without_defaults(name, attributes)));
        regions.iter().for_each(|r| show_region(r, out));
    }
    out.push("end".into());
}

/// Everything that a function is, but for places, a line for each part.
fn show(f: &Function) -> Vec<String> {
    let head = format!("{} {:?} {:?} {:?} {:?}", f.name, f.visibility, f.attributes, f.arguments, f.results);
    let mut out = vec![head];
    show_region(&f.body, &mut out);
    out.extend(f.values.iter().map(|ty| format!("{ty:?}")));
    out
}

fn assert_same(what: &Path, found: &Module, want: &Module) {
    let what = what.display();
    assert_eq!(found.name, want.name, "{what}");
    assert_eq!(found.attributes, want.attributes, "{what}");
    let others = |m: &Module| m.others.iter().map(|o| (o.name.clone(), o.attributes.clone())).collect::<Vec<_>>();
    assert_eq!(others(found), others(want), "{what}");
    assert_eq!(found.functions.len(), want.functions.len(), "{what}");
    for (f, w) in found.functions.iter().zip(&want.functions) {
        let (f, w) = (show(f), show(w));
        for (f, w) in f.iter().zip(&w) {
            assert_eq!(f, w, "{what}");
        }
        assert_eq!(f.len(), w.len(), "{what}");
    }
}

/// `a.b.1.0.0.bc` has its text in `a.b.mlir`, and so has `a.b.native.bc`.
fn text_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let mut parts: Vec<&str> = name.trim_end_matches(".bc").split('.').collect();
    let version = if parts.ends_with(&["native"]) { 1 } else { 3 };
    parts.truncate(parts.len() - version);
    path.with_file_name(format!("{}.mlir", parts.join(".")))
}

#[test]
fn programs_of_jax_give_the_tree_of_their_text_in_every_version() {
    let mut read = 0;
    for path in files(&data(), ".bc") {
        assert_same(&path, &bytecode(&path), &text(&text_of(&path)));
        read += 1;
    }
    assert!(read >= 18, "only {read} files");
}

#[test]
fn constants_of_every_kind_have_their_bytes() {
    for file in ["kinds.1.15.0.bc", "kinds.1.0.0.bc", "kinds.native.bc"] {
        let module = bytecode(&data().join(file));
        let (declared, main) = (&module.functions[0], &module.functions[1]);
        assert_eq!((declared.visibility, main.visibility), (Visibility::Private, Visibility::Public));
        assert!(declared.body.operations.is_empty() && declared.values.len() == 1);
        let dense: Vec<(Vec<u8>, bool)> = main
            .body
            .operations
            .iter()
            .filter_map(|o| match o.attributes.get("value") {
                Some(Attribute::Dense(d)) => Some((d.bytes.to_vec(), d.splat)),
                _ => None,
            })
            .collect();
        // By hand from the text in the script that made the files.
        let want: Vec<(Vec<u8>, bool)> = vec![
            (vec![1, 0, 1, 1, 0, 0, 1, 0, 1], false),
            (vec![1, 0], false),
            (vec![1], true),
            (vec![0], false),
            (vec![0xf8, 7, 0xff], false),
            (vec![0, 15, 8], false),
            (vec![1, 0, 0xfe, 0xff, 3, 0, 4, 0], false),
            (vec![0xff; 8], false),
            (vec![0xc0, 0x3f, 0, 0x80, 0xc0, 0x7f], false),
            ([1f32, -2.0, 0.5, 0.0].iter().flat_map(|v| v.to_le_bytes()).collect(), false),
            (vec![], false),
            (vec![0x30, 0x7e], false),
        ];
        assert_eq!(dense, want, "{file}");
    }
}

#[test]
fn places_are_lines_of_what_was_exported() {
    // The bytecode was made from the text, after a turn through bytecode that keeps its lines.
    let module = bytecode(&data().join("mlp.1.15.0.bc"));
    let lines: Vec<u32> = module.functions[0].body.operations.iter().map(|o| o.place.line).collect();
    assert!(lines.iter().all(|l| *l > 0) && lines.is_sorted(), "{lines:?}");
}

#[test]
fn public_files_of_every_version_give_the_tree_of_their_text() {
    let Ok(folder) = std::env::var("GRADUS_VHLO") else {
        return println!(
            "NOT RUN: files of old versions; set GRADUS_VHLO to the folder stablehlo/tests/vhlo of github.com/openxla/stablehlo"
        );
    };
    let mut read = 0;
    for path in files(Path::new(&folder), ".mlir.bc") {
        if path.to_string_lossy().contains("invalid") {
            let e = read_bytecode("future", &std::fs::read(&path).unwrap()).unwrap_err().to_string();
            assert!(e.contains("`vhlo.constant_v99`") && e.contains("StableHLO_v2.0.0"), "{e}");
            continue;
        }
        assert_same(&path, &bytecode(&path), &text(&path.with_extension("")));
        read += 1;
    }
    println!("{read} files of the public repository agree with their text");
    assert!(read > 30, "only {read} files");
}

#[test]
fn a_folder_of_bytecode_gives_the_trees_of_its_texts() {
    let Ok(folder) = std::env::var("GRADUS_BYTECODE") else {
        return println!(
            "NOT RUN: more programs; set GRADUS_BYTECODE to a folder that scripts/reference/bytecode.py wrote"
        );
    };
    let all = files(Path::new(&folder), ".bc");
    for path in &all {
        assert_same(path, &bytecode(path), &text(&text_of(path)));
    }
    println!("{} files agree with their text", all.len());
    assert!(!all.is_empty());
}

/// An error must say at which byte of the file.
fn assert_located(what: &str, error: &gradus_core::Error, length: usize) {
    let message = error.message();
    let at = message.split("byte ").nth(1).and_then(|rest| rest.split(':').next()?.parse::<usize>().ok());
    assert!(at.is_some_and(|at| at <= length), "{what}: {message}");
    assert!(message.starts_with("cut: "), "{what}: {message}");
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused() {
    for path in files(&data(), ".bc") {
        let bytes = std::fs::read(&path).unwrap();
        for length in 0..bytes.len() {
            let e = read_bytecode("cut", &bytes[..length]).expect_err("a part of a file is no file");
            assert_located(&format!("{} at {length}", path.display()), &e, length);
        }
    }
}

#[test]
fn a_file_with_wrong_bytes_is_read_or_refused() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % n as u64) as usize
    };
    let (mut read, mut refused) = (0, 0);
    for path in files(&data(), ".bc") {
        let good = std::fs::read(&path).unwrap();
        for round in 0..600 {
            let mut bytes = good.clone();
            for _ in 0..1 + round % 4 {
                let at = random(bytes.len());
                match random(4) {
                    0 => bytes[at] = random(256) as u8,
                    1 => bytes[at] ^= 1 << random(8),
                    2 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, [0, 1, 0xff, 0x80][random(4)]),
                }
            }
            match read_bytecode("cut", &bytes) {
                Ok(_) => read += 1,
                Err(e) => {
                    assert_located(&path.display().to_string(), &e, bytes.len());
                    refused += 1;
                }
            }
        }
    }
    println!("{read} changed files read, {refused} refused");
    assert!(refused > read && read > 0);
}

/// A writer of small files, for what no tool writes.
#[derive(Default)]
struct Crafted {
    attributes: Vec<Vec<u8>>,
    types: Vec<Vec<u8>>,
    operations: Vec<u8>,
}

fn number(n: u64) -> Vec<u8> {
    if n < 128 { vec![(n << 1 | 1) as u8] } else { [vec![0], n.to_le_bytes().to_vec()].concat() }
}

fn numbers(all: &[u64]) -> Vec<u8> {
    all.iter().flat_map(|n| number(*n)).collect()
}

impl Crafted {
    /// Version 1 of the format, with the names `builtin.module`, `func.func` and `x.y`.
    fn bytes(&self) -> Vec<u8> {
        let strings = ["builtin", "module", "func", "x", "y", "f"];
        let lengths: Vec<u64> = strings.iter().rev().map(|s| s.len() as u64 + 1).collect();
        let mut table = [number(strings.len() as u64), numbers(&lengths)].concat();
        strings.iter().for_each(|s| table.extend([s.as_bytes(), &[0]].concat()));
        // Dialects 0 to 2, then a group of one operation name of each.
        let dialects = numbers(&[3, 0, 4, 6, 0, 1, 1, 1, 1, 2, 2, 1, 4]);
        let entries: Vec<&Vec<u8>> = self.attributes.iter().chain(&self.types).collect();
        let data: Vec<u8> = entries.iter().flat_map(|e| e.iter().copied()).collect();
        let mut offsets = numbers(&[self.attributes.len() as u64, self.types.len() as u64]);
        for group in [&self.attributes, &self.types] {
            if !group.is_empty() {
                offsets.extend(numbers(&[0, group.len() as u64]));
                group.iter().for_each(|e| offsets.extend(number((e.len() as u64) << 1 | 1)));
            }
        }
        let mut file = b"ML\xefR".to_vec();
        file.extend(number(1));
        file.extend(b"crafted\0");
        for (id, content) in [(0, table), (1, dialects), (2, data), (3, offsets), (4, self.operations.clone())] {
            file.push(id);
            file.extend(number(content.len() as u64));
            file.extend(content);
        }
        file
    }

    /// A module around operations; attribute 0 is its place and attribute 1 its dictionary.
    fn module(attributes: Vec<Vec<u8>>, operations: &[Vec<u8>]) -> Crafted {
        // One operation without arguments: name 0, with attributes and regions, and one region that is alone, of one block without values.
        let mut body =
            [numbers(&[2, 0]), vec![0b1_0001], numbers(&[0, 1, 3, 1, 0, (operations.len() as u64) << 1])].concat();
        operations.iter().for_each(|o| body.extend(o));
        Crafted { attributes, types: Vec::new(), operations: body }
    }

    fn refused(&self) -> String {
        read_bytecode("cut", &self.bytes()).expect_err("it is wrong").message().to_owned()
    }
}

/// An unknown place and an empty dictionary.
fn plain() -> Vec<Vec<u8>> {
    vec![numbers(&[15]), numbers(&[1, 0])]
}

#[test]
fn a_crafted_module_reads() {
    let module = read_bytecode("crafted", &Crafted::module(plain(), &[]).bytes()).unwrap();
    assert!(module.functions.is_empty() && module.others.is_empty());
}

#[test]
fn attributes_that_grow_without_end_are_refused() {
    // Each list holds the one before twice: 2^60 numbers from 60 short entries.
    let mut attributes = plain();
    attributes.push(numbers(&[0, 0]));
    for i in 2..62 {
        attributes.push(numbers(&[0, 2, i, i]));
    }
    // The module's dictionary would need a name: an operation `x.y` with the list as its attributes is enough to ask for it.
    let operation = [numbers(&[2]), vec![1], numbers(&[0, 61])].concat();
    let message = Crafted::module(attributes, &[operation]).refused();
    assert!(message.contains("far beyond the size of the file"), "{message}");
}

#[test]
fn attributes_that_hold_themselves_or_too_many_are_refused() {
    let asks = |index: u64| [numbers(&[2]), vec![1], numbers(&[0, index])].concat();
    let mut attributes = plain();
    attributes.push(numbers(&[0, 1, 2]));
    let message = Crafted::module(attributes, &[asks(2)]).refused();
    assert!(message.contains("attribute 2 holds itself"), "{message}");
    let mut attributes = plain();
    attributes.push(numbers(&[7]));
    (2..5000).for_each(|i| attributes.push(numbers(&[0, 1, i])));
    let message = Crafted::module(attributes, &[asks(5000)]).refused();
    assert!(message.contains("deep"), "{message}");
}

#[test]
fn regions_that_stand_in_one_another_without_end_are_refused() {
    let mut inner = Vec::new();
    for depth in 0..20_000 {
        // `x.y` with one region of one block, which announces values it does not define.
        let own = [numbers(&[2]), vec![0b1_0000], numbers(&[0, 2, 1, 0, u64::from(depth > 0) << 1])].concat();
        inner = [own, inner].concat();
    }
    let message = Crafted::module(plain(), &[inner]).refused();
    assert!(message.contains("regions stand in one another more than 100 deep"), "{message}");
}

#[test]
fn what_cannot_be_read_is_named() {
    let with = |operation: Vec<u8>| Crafted::module(plain(), &[operation]).refused();
    let message = with([numbers(&[2]), vec![0b1_0000], numbers(&[0, 2, 2, 0])].concat());
    assert!(message.contains("a region of 2 blocks"), "{message}");
    let message = with([numbers(&[2]), vec![0b1000], numbers(&[0])].concat());
    assert!(message.contains("a jump to another block"), "{message}");
    let message = with([numbers(&[2]), vec![0b100], numbers(&[0, 1, 3])].concat());
    assert!(message.contains("value 3 is used here, and not defined before"), "{message}");
    let message = with(numbers(&[9]));
    assert!(message.contains("operation name 9, and there are 3"), "{message}");
    let message = with([numbers(&[1]), vec![0], numbers(&[0])].concat());
    assert!(message.contains("a function without a name"), "{message}");
    let mut newer = Crafted::module(plain(), &[]).bytes();
    newer[4] = 15;
    let e = read_bytecode("cut", &newer).unwrap_err();
    assert_eq!(e.message(), "cut: byte 4: version 7 of MLIR bytecode, and 6 is the newest that can be read");
    assert!(e.way_out().is_some());
    let e = read_bytecode("cut", b"module {}").unwrap_err();
    assert!(e.message().contains("byte 0: no MLIR bytecode"), "{e}");
    let again = [Crafted::module(plain(), &[]).bytes(), vec![0, 1]].concat();
    let e = read_bytecode("cut", &again).unwrap_err();
    assert!(e.message().contains("a second section of strings"), "{e}");
}

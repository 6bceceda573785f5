//! Every example runs, and its own assertions hold.

use std::path::Path;

/// The files of `examples` as modules, and a test for each that calls its `main`.
macro_rules! examples {
    ($($name:ident $file:tt)*) => {
        $(#[path = $file] mod $name;)*

        const TESTED: &[&str] = &[$(stringify!($name)),*];

        mod runs {
            $(#[test]
            fn $name() -> gradus::Result<()> {
                super::$name::main()
            })*
        }
    };
}
examples! {
    bundle_adjustment "../examples/bundle_adjustment.rs"
    convnet "../examples/convnet.rs"
    digits "../examples/digits.rs"
    gaussian_process "../examples/gaussian_process.rs"
    greeks "../examples/greeks.rs"
    integrator "../examples/integrator.rs"
    kalman "../examples/kalman.rs"
    spectral "../examples/spectral.rs"
    tour "../examples/tour.rs"
    transformer "../examples/transformer.rs"
}

/// An example is read in one go. The tour is a walk through everything.
const MOST_LINES: usize = 150;

#[test]
fn every_example_is_tested_short_and_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let readme = read(&root.join("../../README.md"));
    let mut names = Vec::new();
    for file in std::fs::read_dir(root.join("examples")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = read(&path);
        assert!(text.starts_with("//! "), "{name} does not say why it is there");
        let lines = text.lines().count();
        assert!(lines <= MOST_LINES || name == "tour", "{name} has {lines} lines, of {MOST_LINES} at most");
        assert!(readme.contains(&format!("cargo run --example {name}")), "{name} is not in the README");
        names.push(name);
    }
    names.sort();
    assert_eq!(names, TESTED, "the examples, and those that have a test");
}

//! Portable bytecode.
use gradus_stablehlo::read_bytecode;
#[test]
fn folder() {
    let Ok(dir) = std::env::var("BC") else { return };
    let mut names: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "bc")).collect();
    names.sort();
    for p in names {
        let bytes = std::fs::read(&p).unwrap();
        match read_bytecode(&p.to_string_lossy(), &bytes) {
            Ok(m) => println!("{}: {} functions", p.display(), m.functions.len()),
            Err(e) => println!("{}: ERROR {e}", p.display()),
        }
    }
}

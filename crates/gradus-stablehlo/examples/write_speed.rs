//! How fast text is written: a module of many operations and one of many numbers, in MB/s.

use std::time::Instant;

use gradus_core::program::{Atom, Builder, Constant};
use gradus_core::{Array, Location, Type};
use gradus_stablehlo::{Export, export, write};

fn main() -> gradus_core::Result<()> {
    for count in [10_000, 100_000] {
        let mut b = Builder::new("long");
        let mut x: Atom = b.input("f32[16,16]".parse::<Type>()?)?.into();
        for _ in 0..count {
            let sine = gradus_core::primitives::Op::fixed(&gradus_core::primitives::elementwise::Sin);
            x = b.equation(sine, &[x], Location::unknown())?.result().into();
        }
        measure(&format!("{count} operations"), &b.finish(vec![x]))?;
    }
    let numbers = Array::from((0..4_000_000).map(|i| (i as f32).sin()).collect::<Vec<f32>>());
    let mut b = Builder::new("numbers");
    if let Some(concrete) = numbers.concrete() {
        let c = b.constant(Constant::array(concrete));
        measure("16 MB of numbers", &b.finish(vec![c]))?;
    }
    Ok(())
}

fn measure(what: &str, program: &gradus_core::Program) -> gradus_core::Result<()> {
    let started = Instant::now();
    let module = export(program, &Export::default())?;
    let made = started.elapsed();
    let started = Instant::now();
    let text = write::write(&module);
    let time = started.elapsed();
    let speed = text.len() as f64 / 1e6 / time.as_secs_f64();
    println!(
        "{what}: exported in {made:.2?}, {:.1} MB written in {time:.2?}: {speed:.0} MB/s",
        text.len() as f64 / 1e6
    );
    Ok(())
}

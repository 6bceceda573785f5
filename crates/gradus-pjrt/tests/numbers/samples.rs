//! The samples of every primitive.

use std::collections::BTreeMap;

use gradus_core::pipeline::Pipeline;
use gradus_core::primitives::{BUILT_IN, Sample};
use gradus_core::program::{Atom, Builder};
use gradus_core::{Array, Location, Program, interpret};

use crate::bounds::{allowed, apart, without_small};
use crate::children::{Answer, Pieces, in_children};
use crate::common::cpu;

fn program_of(name: &str, sample: &Sample) -> Option<Program> {
    let mut b = Builder::new(name);
    let inputs: Vec<Atom> = sample.inputs.iter().map(|a| b.input(a.ty().unwrap().clone()).unwrap().into()).collect();
    let made = b.equation(sample.op.clone(), &inputs, Location::unknown()).ok()?;
    let results: Vec<Atom> = made.results().map(Atom::from).collect();
    Some(b.finish(results))
}

/// Compares what a run gave; gives how far each result is off, as `operation dtype units`. `flushed` is what the interpreter gives where numbers below the
/// smallest normal one are 0, as they are on the device.
fn compare(name: &str, have: &[Array], want: &[Array], flushed: &[Array]) -> Answer {
    assert_eq!(have.len(), want.len());
    let (mut notes, mut wrong) = (Vec::new(), Vec::new());
    for (i, ((h, w), f)) in have.iter().zip(want).zip(flushed).enumerate() {
        if h.ty().unwrap() != w.ty().unwrap() {
            return Err(format!("result {i} is {} for {}", h.ty().unwrap(), w.ty().unwrap()));
        }
        let far = apart(name, h, (w, f));
        notes.push(format!("{name} {} {:.2}", w.dtype(), far.units));
        if far.units > allowed(name, w.dtype()) {
            wrong.push(format!("result {i}: {far}"));
        }
    }
    if wrong.is_empty() { Ok(notes) } else { Err(wrong.join("\n")) }
}

#[test]
fn samples_of_every_primitive() {
    let all: Vec<(&str, usize, Sample)> =
        BUILT_IN.iter().flat_map(|e| (e.samples)().into_iter().enumerate().map(|(k, s)| (e.name, k, s))).collect();
    let Some(device) = cpu() else {
        println!("NOT RUN: {} samples of {} primitives on XLA", all.len(), BUILT_IN.len());
        return;
    };
    let name = |i: usize| format!("sample {} of {}", all[i].1, all[i].0);
    let work = |i: usize| -> Answer {
        let (name, _, sample) = &all[i];
        let Some(program) = program_of(name, sample) else { return Ok(Vec::new()) };
        let want = interpret(&program, &sample.inputs).map_err(|e| e.to_string())?;
        let small: Vec<Array> = sample.inputs.iter().map(without_small).collect();
        let flushed = interpret(&program, &small).map_err(|e| e.to_string())?;
        let pipeline = Pipeline::on(device.clone());
        let have = pipeline.code(&program).and_then(|f| f.run(&sample.inputs)).map_err(|e| e.to_string())?;
        compare(name, &have, &want, &flushed).map_err(|e| format!("{e}\n{:?}\n{program}", sample.inputs))
    };
    let test = "samples::samples_of_every_primitive";
    let pieces = Pieces { test, variables: &[], count: all.len(), at_once: 100, name: &name };
    let Some(done) = in_children(&pieces, &work) else { return };
    let mut worst: BTreeMap<(String, String), f64> = BTreeMap::new();
    for note in &done.notes {
        let [name, dtype, units] = note.split(' ').collect::<Vec<_>>()[..] else { panic!("{note}") };
        let worst = worst.entry((name.to_string(), dtype.to_string())).or_default();
        *worst = worst.max(units.parse().unwrap());
    }
    for ((name, dtype), units) in worst.iter().filter(|(_, units)| **units > 0.0) {
        println!("{name} {dtype}: {units} units");
    }
    println!("{} samples of {} primitives on XLA, {} failed", all.len(), BUILT_IN.len(), done.failed.len());
    assert!(done.failed.is_empty(), "{} samples differ\n\n{}", done.failed.len(), done.failed.join("\n\n"));
    assert!(all.len() > 500 && done.notes.len() > 500, "{} of {} samples", done.notes.len(), all.len());
}

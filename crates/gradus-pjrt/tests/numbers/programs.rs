//! Random programs with control flow: forward and derivatives, with effects, hunted through, and of symbolic sizes. Each call is verified: what differs
//! and is no rounding is an error that names the operation.

use gradus_core::hunt::{Hunt, hunting};
use gradus_core::oracle::Verify;
use gradus_core::pipeline::{Pipeline, Running};
use gradus_core::testing::{RandomProgram, Recipe, Source, Watcher, random_array, seeds};
use gradus_core::transform::{jvp, vjp};
use gradus_core::{Array, Dim, Program, Type, interpret};
use gradus_pjrt::Pjrt;

use crate::children::{Answer, Pieces, in_children};
use crate::common::cpu;

fn verified(device: &Pjrt) -> Pipeline {
    let running = Running { verify: Verify::Every, strict: true };
    Pipeline { running, ..Pipeline::on(device.clone()) }
}

/// Runs a program on the device and holds it against the interpreter, on each of several lists of inputs.
fn check(pipeline: &Pipeline, program: &Program, calls: &[Vec<Array>]) -> Result<(), String> {
    let said = |e: gradus_core::Error| format!("{e}\n{program}");
    let (code, _) = pipeline.optimize(program).and_then(|p| pipeline.make_ready(&p)).map_err(said)?;
    for inputs in calls {
        match (code.run(inputs), interpret(program, inputs)) {
            (Ok(_), Ok(_)) | (Err(_), Err(_)) => {}
            (Err(e), Ok(_)) => return Err(said(e)),
            (Ok(_), Err(e)) => return Err(said(e.note("the interpreter fails, and the device does not"))),
        }
    }
    Ok(())
}

/// Runs a check for so many seeds.
fn for_seeds(test: &str, count: u64, work: &dyn Fn(&Pjrt, u64) -> Result<(), String>) {
    let seeds = seeds(count);
    let count = seeds.clone().count();
    let Some(device) = cpu() else {
        println!("NOT RUN: {count} random programs on XLA ({test})");
        return;
    };
    let seed = |i: usize| seeds.start + i as u64;
    let name = |i: usize| format!("seed {}", seed(i));
    let work = |i: usize| -> Answer { work(&device, seed(i)).map(|()| Vec::new()) };
    let pieces = Pieces { test: &format!("programs::{test}"), variables: &[], count, at_once: 40, name: &name };
    let Some(done) = in_children(&pieces, &work) else { return };
    println!("{count} random programs on XLA ({test}), {} failed", done.failed.len());
    assert!(done.failed.is_empty(), "{} of {count} programs differ\n\n{}", done.failed.len(), done.failed.join("\n\n"));
}

fn smooth(seed: u64) -> RandomProgram {
    let equations = 2 + (seed % 13) as usize;
    let symbolic = seed % 4 == 3;
    RandomProgram::from_recipe(seed, Recipe { equations, smooth: true, sums: true, symbolic, large: false })
}

/// With every dtype and with numbers that break things.
fn any(seed: u64) -> RandomProgram {
    let equations = 4 + (seed % 29) as usize;
    RandomProgram::from_recipe(seed, Recipe { equations, smooth: false, sums: true, symbolic: false, large: false })
}

fn arrays(types: &[Type], seed: u64) -> Vec<Array> {
    let mut source = Source::seed(seed);
    types.iter().map(|t| random_array(&mut source, t, true)).collect()
}

fn sized(p: &Program, symbol: usize) -> Program {
    p.map_dims(&|d| d.substitute(&|_| Some(Dim::from(symbol))))
}

#[test]
fn random_programs() {
    for_seeds("random_programs", 120, &|device, seed| {
        let r = any(seed);
        check(&verified(device), &r.program, &[r.inputs])
    });
}

#[test]
fn smooth_programs_and_their_derivatives() {
    for_seeds("smooth_programs_and_their_derivatives", 80, &|device, seed| {
        let (r, pipeline) = (smooth(seed), verified(device));
        let active = vec![true; r.inputs.len()];
        let forward = jvp(&r.program, &active).map_err(|e| e.to_string())?.0;
        let tangents = r.more_inputs(seed + 1, true);
        check(&pipeline, &r.program, std::slice::from_ref(&r.inputs))?;
        check(&pipeline, &forward, &[r.inputs.iter().cloned().chain(tangents).collect()])?;
        let back = vjp(&r.program, &active).map_err(|e| e.to_string())?;
        let (primal, linear) = (sized(&back.primal, r.symbol), sized(&back.linear, r.symbol));
        check(&pipeline, &primal, std::slice::from_ref(&r.inputs))?;
        let mut residuals =
            interpret(&primal, &r.inputs).map_err(|e| e.to_string())?.split_off(r.program.outputs().len());
        residuals.extend(arrays(&linear.inputs()[residuals.len()..], seed + 2));
        check(&pipeline, &linear, &[residuals])
    });
}

#[test]
fn programs_of_symbolic_sizes() {
    for_seeds("programs_of_symbolic_sizes", 40, &|device, seed| {
        let equations = 4 + (seed % 13) as usize;
        let recipe = Recipe { equations, smooth: true, sums: true, symbolic: true, large: false };
        let r = RandomProgram::from_recipe(seed, recipe);
        let calls = [0, 1, 3, 5].map(|n| {
            let types: Vec<Type> = sized(&r.program, n).inputs().to_vec();
            arrays(&types, seed)
        });
        check(&verified(device), &r.program, &calls)
    });
}

#[test]
fn row_e1_effects_come_in_order_with_the_interpreters_numbers() {
    for_seeds("row_e1_effects_come_in_order_with_the_interpreters_numbers", 60, &|device, seed| {
        let r = smooth(seed);
        let p = Watcher::default().weave(&r.program, &mut Source::seed(seed), true).map_err(|e| e.to_string())?;
        check(&verified(device), &p, &[r.inputs])
    });
}

#[test]
fn row_e6_hunts_catch_what_the_interpreter_catches() {
    for_seeds("row_e6_hunts_catch_what_the_interpreter_catches", 60, &|device, seed| {
        let r = any(seed);
        let pipeline = Pipeline { hunt: Hunt::Nan, ..Pipeline::on(device.clone()) };
        // What nobody uses is not computed on the device.
        let optimized = pipeline.optimize(&r.program).map_err(|e| e.to_string())?;
        let want = hunting(Hunt::Nan, || interpret(&optimized, &r.inputs));
        let have = pipeline.code(&r.program).map_err(|e| format!("{e}\n{}", r.program))?.run(&r.inputs);
        match (want, have) {
            (Ok(_), Ok(_)) => Ok(()),
            (Err(w), Err(h)) if w.message() == h.message() => Ok(()),
            (w, h) => Err(format!("{:?} where {:?} is wanted\n{}", h.err(), w.err(), r.program)),
        }
    });
}

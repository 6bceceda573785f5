//! Random programs go out as text and come back: what returns computes the same bits, control flow, derivatives and symbolic sizes included.

use gradus_core::testing::{RandomProgram, Recipe, canonical, seeds};
use gradus_core::transform::{jvp, vjp};
use gradus_core::{Array, Dim, Program, Scalar, interpret};
use gradus_stablehlo::{Export, import, read_one, stablehlo_text};

/// Operations that go out as loops of basic ones: their results are rounded otherwise.
const ROUNDED: [&str; 7] = ["lu", "qr", "eigh", "svd", "pinv", "solve", "slogdet"];

/// Whether a program has one of them, or one that cannot go out at all.
fn has(program: &Program, names: &[&str]) -> bool {
    let equations = program.equations();
    equations.iter().any(|e| names.contains(&e.op().name()) || e.op().programs().iter().any(|p| has(p, names)))
}

/// A key comes back as its bits.
fn bits(s: Scalar) -> Scalar {
    match canonical(s) {
        Scalar::Key(k) => Scalar::U64(k.0),
        other => other,
    }
}

fn scalars(a: &Array) -> Vec<Scalar> {
    let c = a.concrete().unwrap();
    (0..c.count()).map(|i| bits(c.scalar_at(i).unwrap())).collect()
}

/// Sends a program out and back and runs both. What is wrong, in words.
fn round_trip(program: &Program, inputs: &[Array]) -> Result<(), String> {
    let text = stablehlo_text(program, &Export::default()).map_err(|e| format!("export: {e}\n{program}"))?;
    let module = read_one("text", &text).map_err(|e| format!("read: {e}\n{text}"))?;
    let back = import(&module).map_err(|e| format!("import: {e}\n{text}\n{program}"))?.program;
    let want = interpret(program, inputs).map_err(|e| e.to_string())?;
    let keys = |(x, t): (&Array, &gradus_core::Type)| if x.dtype() == t.dtype() { x.clone() } else { x.bitcast(t.dtype()) };
    let given: Vec<Array> = inputs.iter().zip(back.inputs()).map(keys).collect();
    let have = interpret(&back, &given).map_err(|e| format!("what came back fails: {e}\n{program}\n{text}\n{back}"))?;
    if have.len() != want.len() {
        return Err(format!("{} results for {}\n{program}", have.len(), want.len()));
    }
    for (i, (h, w)) in have.iter().zip(&want).enumerate() {
        if h.shape() != w.shape() {
            return Err(format!("result {i} is {} for {}\n{program}", h.ty().unwrap(), w.ty().unwrap()));
        }
        let (h, w) = (scalars(h), scalars(w));
        if let Some(k) = (0..w.len()).find(|k| h[*k] != w[*k]) {
            return Err(format!("result {i}, element {k}: {:?} where {:?} is wanted\n{program}\n{text}\n{back}", h[k], w[k]));
        }
    }
    Ok(())
}

/// Runs a check for so many seeds; gives how many programs came back.
fn for_seeds(count: u64, mut check: impl FnMut(u64) -> Result<usize, String>) -> usize {
    let (mut wrong, mut done) = (Vec::new(), 0);
    for seed in seeds(count) {
        match check(seed) {
            Ok(count) => done += count,
            Err(e) => wrong.push(format!("seed {seed}: {e}")),
        }
    }
    assert!(wrong.is_empty(), "{} programs\n\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n\n"));
    done
}

fn goes(program: &Program) -> bool {
    !has(program, &ROUNDED) && !has(program, &["eig", "schur"])
}

#[test]
fn random_programs_come_back_with_their_bits() {
    let done = for_seeds(300, |seed| {
        let equations = 4 + (seed % 29) as usize;
        let r = RandomProgram::from_recipe(
            seed,
            Recipe { equations, smooth: false, sums: true, symbolic: false, large: false },
        );
        if !goes(&r.program) {
            return Ok(0);
        }
        round_trip(&r.program, &r.inputs).map(|()| 1)
    });
    assert!(done > 200, "{done}");
}

#[test]
fn derivatives_come_back_with_their_bits() {
    let done = for_seeds(120, |seed| {
        let equations = 2 + (seed % 13) as usize;
        let r = RandomProgram::from_recipe(
            seed,
            Recipe { equations, smooth: true, sums: true, symbolic: false, large: false },
        );
        let active = vec![true; r.inputs.len()];
        let forward = jvp(&r.program, &active).map_err(|e| e.to_string())?.0;
        let mut done = 0;
        if goes(&forward) {
            let inputs: Vec<Array> = r.inputs.iter().cloned().chain(r.more_inputs(seed + 1, true)).collect();
            round_trip(&forward, &inputs)?;
            done += 1;
        }
        let back = vjp(&r.program, &active).map_err(|e| e.to_string())?;
        if goes(&back.primal) && goes(&back.linear) {
            round_trip(&back.primal, &r.inputs)?;
            let values = interpret(&back.primal, &r.inputs).map_err(|e| e.to_string())?;
            let (outputs, residuals) = values.split_at(r.program.outputs().len());
            let bars = outputs.iter().zip(&back.varies).filter(|(_, v)| **v).map(|(y, _)| y.ones_like());
            let inputs: Vec<Array> = residuals.iter().cloned().chain(bars).collect();
            round_trip(&back.linear, &inputs)?;
            done += 2;
        }
        Ok(done)
    });
    assert!(done > 200, "{done}");
}

#[test]
fn symbolic_programs_come_back_with_their_bits() {
    let done = for_seeds(100, |seed| {
        let equations = 4 + (seed % 17) as usize;
        let r = RandomProgram::from_recipe(
            seed,
            Recipe { equations, smooth: false, sums: true, symbolic: true, large: false },
        );
        // What symbols stand for is known where a program is sent away with numbers in their place.
        let known = r.program.map_dims(&|d| d.substitute(&|_| Some(Dim::from(r.symbol))));
        if !goes(&known) {
            return Ok(0);
        }
        round_trip(&known, &r.inputs)?;
        round_trip(&r.program, &r.inputs).map(|()| 2)
    });
    assert!(done > 100, "{done}");
}

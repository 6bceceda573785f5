//! Every tier against the interpreter: all primitives' samples, and random programs with nested control flow.

#[path = "oracle/halves.rs"]
mod halves;
#[path = "oracle/indexing.rs"]
mod indexing;
#[path = "oracle/joined.rs"]
mod joined;
#[path = "oracle/narrow.rs"]
mod narrow;
#[path = "oracle/nearest.rs"]
mod nearest;
#[path = "oracle/picked.rs"]
mod picked;
#[path = "oracle/recurrences.rs"]
mod recurrences;
#[path = "oracle/remainders.rs"]
mod remainders;
#[path = "oracle/scatters.rs"]
mod scatters;
#[path = "oracle/small.rs"]
mod small;

use std::sync::Arc;

use gradus_core::control::{Steps, scan};
use gradus_core::hunt::{Hunt, hunting, instrument};
use gradus_core::optimize::{CONTRACT, Exactness, for_execution, run_passes};
use gradus_core::pipeline::Pipeline;
use gradus_core::primitives::convolve::Convolve;
use gradus_core::primitives::linalg::{Cholesky, Lu, SlogDet, Solve, TriangularSolve};
use gradus_core::primitives::{BUILT_IN, Op};
use gradus_core::program::{Atom, Builder, Verified, verify};
use gradus_core::testing::{RandomProgram, Recipe, Source, Watcher, canonical, random_array, seeds};
use gradus_core::trace::{Mode, bind, bind_all, trace};
use gradus_core::{Array, DType, Dim, Error, Executable, Location, Program, Result, Scalar, Type, interpret};
use gradus_cpu::exec::Evaluated;
use gradus_cpu::{Cpu, Native, Options, Tier, Vectors};

fn scalars(a: &Array) -> Vec<Scalar> {
    let c = a.concrete().unwrap();
    (0..c.count()).map(|i| c.scalar_at(i).unwrap()).collect()
}

fn parts(s: Scalar) -> Vec<f64> {
    match s {
        Scalar::C128(v) => vec![v.re, v.im],
        Scalar::C64(v) => vec![v.re as f64, v.im as f64],
        other => vec![other.to_f64()],
    }
}

/// Bit for bit, or within a tolerance where products are summed in an order of the library's choice.
fn assert_same(a: &[Array], b: &[Array], tolerance: Option<f64>, context: &dyn Fn() -> String) {
    assert_eq!(a.len(), b.len(), "{}", context());
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        assert_eq!(x.ty().unwrap(), y.ty().unwrap(), "output {i}\n{}", context());
        if x.concrete().zip(y.concrete()).is_some_and(|(x, y)| x.same_bits(y)) {
            continue;
        }
        for (k, (u, v)) in scalars(x).into_iter().zip(scalars(y)).enumerate() {
            let near = |u: f64, v: f64| {
                tolerance.is_some_and(|t| u == v || (u - v).abs() <= t * (1.0 + v.abs()) || (u.is_nan() && v.is_nan()))
            };
            let same = canonical(u) == canonical(v) || parts(u).into_iter().zip(parts(v)).all(|(u, v)| near(u, v));
            assert!(same, "output {i}, element {k}: {u:?} is not {v:?}\n{x:?}\n{y:?}\n{}", context());
        }
    }
}

/// Code of a program as it is: with the passes that the compiler asks for, and no others.
fn compiled(p: &Program, options: Options) -> Result<Arc<dyn Executable>> {
    Pipeline::on(Cpu::from(options)).compile(&Verified::new(p.clone())?)
}

/// Every way to run a program: the kernel language by its evaluator, and each tier.
fn ways(p: &Program, small: usize) -> Vec<(&'static str, Result<Arc<dyn Executable>>)> {
    let in_pieces = |tier, piece| {
        // Once as for one thread alone.
        let options = Options { tier, contract: false, small, piece, threads: small != 4, ..Options::default() };
        compiled(p, options)
    };
    let tier = |tier| in_pieces(tier, Options::default().piece);
    let mut ways = vec![("evaluator", evaluated(p, small)), ("embedded", tier(Tier::Embedded))];
    // Long main bodies are those of scalars.
    if small == 16 {
        ways.push(("in pieces", in_pieces(Tier::Embedded, 5)));
    }
    // LLVM takes its time: once for each program.
    if small == 4 {
        ways.push(("llvm", tier(Tier::Llvm)));
    }
    ways
}

/// Whether a way is tried on inputs: the evaluator goes element by element, so large arrays are for it once.
fn is_tried(way: &str, small: usize, inputs: &[Array]) -> bool {
    let elements: usize = inputs.iter().filter_map(|a| a.concrete()).map(|c| c.count()).sum();
    way != "evaluator" || small == 16 || elements <= 20_000
}

fn evaluated(p: &Program, small: usize) -> Result<Arc<dyn Executable>> {
    let lowered = gradus_cpu::lower::lower_with(p, small, small != 4)?;
    gradus_cpu::ir::verify(&lowered.module).map_err(|e| e.note(lowered.module.to_string()))?;
    Ok(Arc::new(Evaluated { lowered, signature: p.clone() }))
}

fn check(p: &Program, inputs: &[Array], tolerance: Option<f64>, context: &dyn Fn() -> String) {
    let want = interpret(p, inputs);
    // Arrays in scalars, all of them in memory, and some of each.
    for small in [16, 1, 4] {
        for (way, code) in ways(p, small) {
            let context = || format!("{way}, arrays of {small} elements in scalars\n{}", context());
            let code = code.unwrap_or_else(|e| panic!("{e}\n{}", context()));
            if !is_tried(way, small, inputs) {
                continue;
            }
            match (&want, code.run(inputs)) {
                (Ok(want), Ok(have)) => assert_same(&have, want, tolerance, &context),
                (Err(_), Err(_)) => {}
                (Ok(_), Err(e)) => panic!("compiled code failed: {e}\n{}", context()),
                (Err(e), Ok(_)) => panic!("compiled code did not fail: {e}\n{}", context()),
            }
        }
    }
}

#[test]
fn samples_of_every_primitive() {
    let mut tried = 0;
    for entry in BUILT_IN.iter() {
        for (k, sample) in (entry.samples)().into_iter().enumerate() {
            let mut b = Builder::new(entry.name);
            let inputs: Vec<Atom> =
                sample.inputs.iter().map(|a| b.input(a.ty().unwrap().clone()).unwrap().into()).collect();
            let Ok(e) = b.equation(sample.op.clone(), &inputs, Location::default()) else { continue };
            let results: Vec<Atom> = e.results().map(Atom::from).collect();
            let p = b.finish(results);
            let tolerance = ["dot_general", "convolve"].contains(&entry.name).then_some(1e-3);
            check(&p, &sample.inputs, tolerance, &|| format!("sample {k} of {}\n{p}", entry.name));
            tried += 1;
        }
    }
    assert!(tried > 500, "{tried}");
}

fn without_products(seed: u64) -> RandomProgram {
    let equations = 4 + (seed % 29) as usize;
    RandomProgram::from_recipe(seed, Recipe { equations, smooth: false, sums: false, symbolic: false, large: false })
}

#[test]
fn random_programs_as_written() {
    for seed in seeds(250) {
        let r = without_products(seed);
        check(&r.program, &r.inputs, None, &|| format!("seed {seed}\n{}", r.program));
    }
}

#[test]
fn random_programs_made_ready() {
    for seed in seeds(250) {
        let r = without_products(seed);
        let p = for_execution(&r.program, Exactness::Exact).unwrap();
        verify(&p).unwrap();
        check(&p, &r.inputs, None, &|| format!("seed {seed}\n{p}"));
    }
}

/// Products that are rounded with sums are rounded so in the program: it tells the bits.
#[test]
fn random_programs_with_products_in_sums() {
    let mut fused = 0;
    for seed in seeds(200) {
        // Of numbers that products and sums are made for: the others have few of both.
        let equations = 4 + (seed % 29) as usize;
        let recipe = Recipe { equations, smooth: true, sums: false, symbolic: false, large: false };
        let r = RandomProgram::from_recipe(seed, recipe);
        let ready = for_execution(&r.program, Exactness::Exact).unwrap();
        let p = run_passes(&[CONTRACT], &ready, Exactness::Exact, &mut |_, _, _| {}).unwrap();
        verify(&p).unwrap();
        if p == ready {
            continue;
        }
        fused += 1;
        let want = interpret(&p, &r.inputs);
        // LLVM takes its time.
        let tiers: &[Tier] = if seed % 8 == 0 { &[Tier::Embedded, Tier::Llvm] } else { &[Tier::Embedded] };
        for (tier, small) in tiers.iter().flat_map(|t| [(*t, 16), (*t, 1)]) {
            let context = || format!("seed {seed}, {tier:?}, {small}\n{p}");
            let options = Options { tier, small, ..Options::default() };
            let code = compiled(&r.program, options);
            match (&want, code.unwrap_or_else(|e| panic!("{e}\n{}", context())).run(&r.inputs)) {
                (Ok(want), Ok(have)) => assert_same(&have, want, None, &context),
                (want, have) => assert!(want.is_err() && have.is_err(), "{}", context()),
            }
        }
    }
    assert!(fused > 20, "{fused} programs with products in sums");
}

/// Inputs of a program with its symbols replaced by numbers.
fn sized_inputs(p: &Program, seed: u64, size: &dyn Fn(&str) -> i64) -> Vec<Array> {
    let mut source = gradus_core::testing::Source::seed(seed);
    let known = |d: &Dim| d.substitute(&|s| Some(Dim::from(size(s))));
    p.inputs().iter().map(|t| gradus_core::testing::random_array(&mut source, &t.map_dims(known), true)).collect()
}

/// One machine program for every size, against the interpreter at each.
fn check_sizes(p: &Program, sizes: &[Vec<Array>], tolerance: Option<f64>, context: &dyn Fn() -> String) {
    let wanted: Vec<_> = sizes.iter().map(|inputs| interpret(p, inputs)).collect();
    for small in [16, 4] {
        for (way, code) in ways(p, small) {
            let code = code.unwrap_or_else(|e| panic!("{way}: {e}\n{}", context()));
            for (inputs, want) in sizes.iter().zip(&wanted).filter(|(inputs, _)| is_tried(way, small, inputs)) {
                let types: Vec<String> = inputs.iter().map(|a| a.ty().unwrap().to_string()).collect();
                let context = || format!("{way}, {small}, {}\n{}", types.join(" "), context());
                match (want, code.run(inputs)) {
                    (Ok(want), Ok(have)) => assert_same(&have, want, tolerance, &context),
                    (Err(_), Err(_)) => {}
                    (Ok(_), Err(e)) => panic!("compiled code failed: {e}\n{}", context()),
                    (Err(e), Ok(_)) => panic!("compiled code did not fail: {e}\n{}", context()),
                }
            }
        }
    }
}

#[test]
fn random_programs_with_symbolic_sizes() {
    for seed in seeds(100) {
        let equations = 4 + (seed % 29) as usize;
        let r = RandomProgram::from_recipe(
            seed,
            Recipe { equations, smooth: false, sums: false, symbolic: true, large: false },
        );
        let ready = for_execution(&r.program, Exactness::Exact).unwrap();
        verify(&ready).unwrap();
        let sizes: Vec<Vec<Array>> =
            [0, 1, 2, 3, 5, 17, 40].iter().map(|n| sized_inputs(&r.program, seed, &|_| *n)).collect();
        for p in [&r.program, &ready] {
            check_sizes(p, &sizes, None, &|| format!("seed {seed}\n{p}"));
        }
    }
}

/// Where one symbol is the size of several axes, one number is the extent of several loops and a part of places.
#[test]
fn one_symbol_on_several_axes() {
    let sizes = [1, 2, 7, 8, 9, 17, 33];
    let of = |shape: &str, body: &str| {
        let text = format!("fn f(x0: f32{shape}) -> {body}\n}}");
        let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        let inputs: Vec<Vec<Array>> = sizes.iter().map(|n| sized_inputs(&p, 7, &|_| *n)).collect();
        // Sums of floats have an order of their own.
        let tolerance = body.contains("sum").then_some(1e-5);
        check_sizes(&p, &inputs, tolerance, &|| text.clone());
    };
    for (shape, results) in
        [("[N,N,8]", ["[N,8]", "[N,8]", "[N,N]"]), ("[N,N,N]", ["[N,N]"; 3]), ("[8,N,N]", ["[N,N]", "[8,N]", "[8,N]"])]
    {
        for (axis, result) in results.iter().enumerate() {
            for op in ["reduce_max", "reduce_sum", "argmax", "cumsum"] {
                let (ty, axes) = match op {
                    "argmax" => (format!("i64{result}"), format!("axis={axis}, dtype=i64")),
                    "cumsum" => (format!("f32{shape}"), format!("axis={axis}, reverse=false")),
                    _ => (format!("f32{result}"), format!("axes=[{axis}]")),
                };
                of(
                    shape,
                    &format!(
                        "{ty} where N>=1 {{\n  x1: f32{shape} = neg x0\n  x2: {ty} = {op}{{{axes}}} x1\n  return x2"
                    ),
                );
            }
        }
    }
    // Places that begin at the size of another axis.
    of(
        "[2*N,N]",
        "f32[N,N] where N>=1 {\n  x1: f32[N,N] = slice{start=[N,0], limit=[2*N,N], step=[1,1]} x0\n  x2: f32[N,N] = transpose{axes=[1,0]} x1\n  x3: f32[N,N] = mul x1 x2\n  return x3",
    );
    of(
        "[N,2*N,N]",
        "f32[N,N] where N>=1 {\n  x1: f32[N,N,N] = slice{start=[0,N,0], limit=[N,2*N,N], step=[1,1,1]} x0\n  x2: f32[N,N] = reduce_sum{axes=[0]} x1\n  return x2",
    );
}

#[test]
fn row_e1_compiled_code_keeps_effects_and_their_order() {
    let mut effects = 0;
    for seed in seeds(150) {
        let r = without_products(seed);
        let watcher = Watcher::default();
        let p = watcher.weave(&r.program, &mut Source::seed(seed), true).unwrap();
        let want = interpret(&p, &r.inputs).unwrap();
        let shown = watcher.take();
        effects += shown.len();
        for small in [16, 1, 4] {
            for (way, code) in ways(&p, small) {
                let context = || format!("seed {seed}, {way}, arrays of {small} elements in scalars\n{p}");
                let have = code.and_then(|code| code.run(&r.inputs)).unwrap_or_else(|e| panic!("{e}\n{}", context()));
                assert_same(&have, &want, None, &context);
                assert_eq!(watcher.take(), shown, "{}", context());
            }
        }
    }
    assert!(effects > 500, "only {effects} effects");
}

#[test]
fn row_e6_compiled_code_catches_what_the_interpreter_catches() {
    let (mut caught, mut clean) = (0, 0);
    for seed in seeds(200) {
        let r = without_products(seed);
        let p = instrument(&r.program, Hunt::NanAndInf).unwrap();
        verify(&p).unwrap();
        let want = interpret(&p, &r.inputs);
        // The interpreter needs no checks in the program: it looks at each operation as it runs.
        let looked = hunting(Hunt::NanAndInf, || interpret(&r.program, &r.inputs));
        assert_eq!(looked.as_ref().err().map(Error::message), want.as_ref().err().map(Error::message), "seed {seed}");
        for (way, code) in ways(&p, 4) {
            let context = || format!("seed {seed}, {way}\n{p}");
            match (&want, code.unwrap_or_else(|e| panic!("{e}\n{}", context())).run(&r.inputs)) {
                (Ok(want), Ok(have)) => assert_same(&have, want, None, &context),
                (Err(want), Err(have)) => assert_eq!(have.to_string(), want.to_string(), "{}", context()),
                (want, have) => panic!("{want:?} is not {have:?}\n{}", context()),
            }
        }
        *(if want.is_ok() { &mut clean } else { &mut caught }) += 1;
    }
    assert!(caught > 20 && clean > 20, "{caught} caught, {clean} clean");
}

/// Programs over arrays that fill loops: rows, columns, points with unrolled dimensions, and what joins them.
#[test]
fn loops_of_every_kind() {
    let texts = [
        "fn empty_and_vast(x0: f32[35184372088832,0]) -> (f32[35184372088832,0], f32[0]) {\n  x1: f32[35184372088832,0] = neg x0\n  x2: f32[0] = reduce_sum{axes=[0]} x0\n  return x1, x2\n}",
        "fn columns(x0: f32[32,64]) -> (f32[64]) {\n  x1: f32[64] = reduce_sum{axes=[0]} x0\n  return x1\n}",
        "fn columns2(x0: f32[32,64]) -> (f32[64]) {\n  x1: f32[32,64] = mul x0 x0\n  x2: f32[64] = reduce_max{axes=[0]} x1\n  return x2\n}",
        "fn columns3(x0: f32[4,32,64]) -> (f32[4,64]) {\n  x1: f32[4,64] = reduce_sum{axes=[1]} x0\n  return x1\n}",
        "fn narrow(x0: f64[40,30,3]) -> (f64[40,3]) {\n  x1: f64[40,3] = reduce_sum{axes=[1]} x0\n  return x1\n}",
        "fn inner(x0: f64[40,30,3]) -> (f64[40,30]) {\n  x1: f64[40,30] = reduce_sum{axes=[2]} x0\n  return x1\n}",
        "fn rows(x0: f32[40,100]) -> (f32[40,100]) {\n  x1: f32[40] = reduce_max{axes=[1]} x0\n  x2: f32[40,100] = broadcast{shape=[40,100], axes=[0]} x1\n  x3: f32[40,100] = sub x0 x2\n  x4: f32[40,100] = exp x3\n  x5: f32[40] = reduce_sum{axes=[1]} x4\n  x6: f32[40,100] = broadcast{shape=[40,100], axes=[0]} x5\n  x7: f32[40,100] = div x4 x6\n  return x7\n}",
        "fn whole(x0: f32[300,1000]) -> (f32[], f32[300,1000]) {\n  x1: f32[300,1000] = mul x0 x0\n  x2: f32[] = reduce_sum{axes=[0,1]} x1\n  return x2, x1\n}",
        "fn mixed(x0: f64[6,20,50]) -> (f64[20]) {\n  x1: f64[20] = reduce_sum{axes=[0,2]} x0\n  return x1\n}",
        "fn turned(x0: f64[20,50], x1: f64[50,20]) -> (f64[20,50]) {\n  x2: f64[20,50] = transpose{axes=[1,0]} x1\n  x3: f64[20,50] = mul x0 x2\n  return x3\n}",
        "fn columns4(x0: f64[40,30,3]) -> (f64[30,3], f64[40,30]) {\n  x1: f64[30,3] = reduce_sum{axes=[0]} x0\n  x2: f64[40,30] = reduce_sum{axes=[2]} x0\n  return x1, x2\n}",
        "fn long_rows(x0: f64[2,33,61,33]) -> (f64[2], f64[2]) {\n  x1: f64[2] = reduce_max{axes=[1,2,3]} x0\n  x2: f64[2] = reduce_sum{axes=[1,2,3]} x0\n  return x1, x2\n}",
        "fn flat(x0: f32[30,50], x1: f32[50], x2: f32[30]) -> (f32[]) {\n  x3: f32[30,50] = broadcast{shape=[30,50], axes=[1]} x1\n  x4: f32[30,50] = broadcast{shape=[30,50], axes=[0]} x2\n  x5: f32[30,50] = mul x0 x3\n  x6: f32[30,50] = mul x5 x4\n  x7: f32[] = reduce_sum{axes=[0,1]} x6\n  return x7\n}",
        "fn flat_blocks(x0: f32[30,64], x1: f32[64], x2: f32[30]) -> (f32[]) {\n  x3: f32[30,64] = broadcast{shape=[30,64], axes=[1]} x1\n  x4: f32[30,64] = broadcast{shape=[30,64], axes=[0]} x2\n  x5: f32[30,64] = mul x0 x3\n  x6: f32[30,64] = mul x5 x4\n  x7: f32[] = reduce_sum{axes=[0,1]} x6\n  return x7\n}",
        "fn flat_blocks_by_three(x0: f64[7,96], x1: f64[96], x2: f64[7]) -> (f64[]) {\n  x3: f64[7,96] = broadcast{shape=[7,96], axes=[1]} x1\n  x4: f64[7,96] = broadcast{shape=[7,96], axes=[0]} x2\n  x5: f64[7,96] = mul x0 x3\n  x6: f64[7,96] = mul x5 x4\n  x7: f64[] = reduce_sum{axes=[0,1]} x6\n  return x7\n}",
        "fn flat_long(x0: f32[1100,160], x1: f32[160], x2: f32[1100]) -> (f32[]) {\n  x3: f32[1100,160] = broadcast{shape=[1100,160], axes=[1]} x1\n  x4: f32[1100,160] = broadcast{shape=[1100,160], axes=[0]} x2\n  x5: f32[1100,160] = mul x0 x3\n  x6: f32[1100,160] = mul x5 x4\n  x7: f32[] = reduce_sum{axes=[0,1]} x6\n  return x7\n}",
        "fn flat_counted(x0: f64[5,3,32], x1: f64[3]) -> (f64[]) {\n  x2: f64[5,3,32] = iota{dtype=f64, shape=[5,3,32], axis=2}\n  x3: f64[5,3,32] = broadcast{shape=[5,3,32], axes=[1]} x1\n  x4: f64[5,3,32] = mul x2 x3\n  x5: f64[5,3,32] = mul x4 x0\n  x6: f64[] = reduce_sum{axes=[0,1,2]} x5\n  return x6\n}",
        "fn apart(x0: f64[40,3]) -> (f64[], f64[40,3], f64[40,3]) {\n  x1: f64[40,40,3] = broadcast{shape=[40,40,3], axes=[0,2]} x0\n  x2: f64[40,40,3] = broadcast{shape=[40,40,3], axes=[1,2]} x0\n  x3: f64[40,40,3] = sub x1 x2\n  x4: f64[40,40,3] = exp x3\n  x5: f64[40,40] = reduce_sum{axes=[2]} x4\n  x6: f64[] = reduce_sum{axes=[0,1]} x5\n  x7: f64[40,3] = reduce_sum{axes=[0]} x4\n  x8: f64[40,3] = reduce_sum{axes=[1]} x4\n  return x6, x7, x8\n}",
        "fn turned_result(x0: f64[40,3], x1: f64[40,3]) -> (f64[3,40], f64[40,2,3]) {\n  x2: f64[40,3] = mul x0 x1\n  x3: f64[3,40] = transpose{axes=[1,0]} x2\n  x4: f64[40,3,1] = reshape{shape=[40,3,1]} x0\n  x5: f64[40,3,1] = reshape{shape=[40,3,1]} x1\n  x6: f64[40,3,2] = concatenate{axis=2} x4 x5\n  x7: f64[40,2,3] = transpose{axes=[0,2,1]} x6\n  return x3, x7\n}",
        "fn wide_window(x0: c128[3,3,3]) -> (c128[3,2,1]) {\n  x1: c128[3,2,1] = dynamic_slice{sizes=[3,2,1]} x0 0:i32[] 1:i32[] 2:i32[]\n  x2: c128[3,2,1] = sort{axis=2, keys=1, descending=false} x1\n  return x2\n}",
        "fn no_axes(x0: f32[2,2]) -> (f32[2,2], f32[2]) {\n  x1: f32[2,2] = mul x0 -0.0:f32[2,2]\n  x2: f32[2,2] = reduce_sum{axes=[]} x1\n  x3: f32[2,1] = slice{start=[0,0], limit=[2,1], step=[1,1]} x1\n  x4: f32[2] = reduce_sum{axes=[1]} x3\n  return x2, x4\n}",
        "fn copied_reshape(x0: i64[2,3]) -> (i64[3,3,2,2], i64[2,3,3,2]) {\n  x1: i64[2,2,3,3] = broadcast{shape=[2,2,3,3], axes=[0,2]} x0\n  x2: i64[3,3,2,2] = reshape{shape=[3,3,2,2]} x1\n  x3: i64[3,3,2,2] = mul x2 x2\n  x4: i64[2,2,3,3] = mul x1 x1\n  x5: i64[2,2,3,3] = transpose{axes=[1,0,2,3]} x4\n  x6: i64[3,2,2,3] = reshape{shape=[3,2,2,3]} x5\n  x7: i64[2,3,3,2] = transpose{axes=[1,0,3,2]} x6\n  return x3, x7\n}",
        "fn large_points(x0: f64[50,7,7], x1: f64[50,7]) -> (f64[50,7], f64[50,7,7]) {\n  x2: f64[50,7] = dot_general{lhs_contract=[2], rhs_contract=[1], lhs_batch=[0], rhs_batch=[0]} x0 x1\n  x3: f64[50,7,7] = broadcast{shape=[50,7,7], axes=[0,1]} x2\n  x4: f64[50,7,7] = add x0 x3\n  return x2, x4\n}",
        "fn small_dots(x0: f64[50,3,3], x1: f64[50,3,3], x2: f64[3,3]) -> (f64[50,3,3]) {\n  x3: f64[50,3,3] = dot_general{lhs_contract=[2], rhs_contract=[1], lhs_batch=[0], rhs_batch=[0]} x0 x1\n  x4: f64[50,3,3] = dot_general{lhs_contract=[2], rhs_contract=[0], lhs_batch=[], rhs_batch=[]} x3 x2\n  return x4\n}",
        "fn stacks(x0: f64[50], x1: f64[50]) -> (f64[50,2,2]) {\n  x2: f64[50,1] = reshape{shape=[50,1]} x0\n  x3: f64[50,1] = reshape{shape=[50,1]} x1\n  x4: f64[50,2] = concatenate{axis=1} x2 x3\n  x5: f64[50,2] = mul x4 x4\n  x6: f64[50,1,2] = reshape{shape=[50,1,2]} x4\n  x7: f64[50,1,2] = reshape{shape=[50,1,2]} x5\n  x8: f64[50,2,2] = concatenate{axis=1} x6 x7\n  return x8\n}",
        "fn by_rows(x0: f64[100], x1: f64[100,70]) -> (f64[70]) {\n  x2: f64[70] = dot_general{lhs_contract=[0], rhs_contract=[0], lhs_batch=[], rhs_batch=[]} x0 x1\n  return x2\n}",
        "fn by_rows_odd(x0: f64[103], x1: f64[103,71]) -> (f64[71]) {\n  x2: f64[71] = dot_general{lhs_contract=[0], rhs_contract=[0], lhs_batch=[], rhs_batch=[]} x0 x1\n  return x2\n}",
        "fn by_columns_odd(x0: f64[71,103], x1: f64[103]) -> (f64[71]) {\n  x2: f64[71] = dot_general{lhs_contract=[1], rhs_contract=[0], lhs_batch=[], rhs_batch=[]} x0 x1\n  return x2\n}",
        "fn by_rows_short(x0: f64[5], x1: f64[5,34]) -> (f64[34]) {\n  x2: f64[34] = dot_general{lhs_contract=[0], rhs_contract=[0], lhs_batch=[], rhs_batch=[]} x0 x1\n  return x2\n}",
        "fn by_columns_short(x0: f64[34,5], x1: f64[5]) -> (f64[34]) {\n  x2: f64[34] = dot_general{lhs_contract=[1], rhs_contract=[0], lhs_batch=[], rhs_batch=[]} x0 x1\n  return x2\n}",
        "fn by_rows_few(x0: f64[40], x1: f64[40,3]) -> (f64[3]) {\n  x2: f64[3] = dot_general{lhs_contract=[0], rhs_contract=[0], lhs_batch=[], rhs_batch=[]} x0 x1\n  return x2\n}",
        "fn by_columns_few(x0: f64[3,40], x1: f64[40]) -> (f64[3]) {\n  x2: f64[3] = dot_general{lhs_contract=[1], rhs_contract=[0], lhs_batch=[], rhs_batch=[]} x0 x1\n  return x2\n}",
        "fn by_columns(x0: f64[70,100], x1: f64[100]) -> (f64[70]) {\n  x2: f64[70] = dot_general{lhs_contract=[1], rhs_contract=[0], lhs_batch=[], rhs_batch=[]} x0 x1\n  return x2\n}",
        "fn turned_factor(x0: f64[7,5], x1: f64[3,7], x2: f64[6,3,5]) -> (f64[3,7], f64[6,3,7]) {\n  x3: f64[3,7], x4: f64[6,3,7] = scan{body=fn step(x0: f64[7,5], x1: f64[3,7], x2: f64[3,5]) -> (f64[3,7], f64[3,7]) {\n    x3: f64[3,7] = dot_general{lhs_contract=[1], rhs_contract=[1], lhs_batch=[], rhs_batch=[]} x2 x0\n    x4: f64[3,7] = add x3 x1\n    x5: f64[3,5] = dot_general{lhs_contract=[1], rhs_contract=[0], lhs_batch=[], rhs_batch=[]} x4 x0\n    x6: f64[7] = reduce_sum{axes=[1]} x0\n    x7: f64[3,7] = broadcast{shape=[3,7], axes=[1]} x6\n    x8: f64[3,7] = sub x4 x7\n    return x8, x4\n  }, consts=1, carries=1, length=6, reverse=true} x0 x1 x2\n  return x3, x4\n}",
        "fn turned_factor_alone(x0: f64[7,5], x1: f64[3,7], x2: f64[6,3,5]) -> (f64[3,7]) {\n  x3: f64[3,7] = scan{body=fn step(x0: f64[7,5], x1: f64[3,7], x2: f64[3,5]) -> (f64[3,7]) {\n    x3: f64[3,7] = dot_general{lhs_contract=[1], rhs_contract=[1], lhs_batch=[], rhs_batch=[]} x2 x0\n    x4: f64[3,7] = add x3 x1\n    x5: f64[7] = reduce_sum{axes=[1]} x0\n    x6: f64[3,7] = broadcast{shape=[3,7], axes=[1]} x5\n    x7: f64[3,7] = sub x4 x6\n    return x7\n  }, consts=1, carries=1, length=6, reverse=false} x0 x1 x2\n  return x3\n}",
        "fn bias(x0: f32[32,64], x1: f32[64]) -> (f32[32,64], f32[64]) {\n  x2: f32[32,64] = broadcast{shape=[32,64], axes=[1]} x1\n  x3: f32[32,64] = add x0 x2\n  x4: f32[64] = reduce_sum{axes=[0]} x3\n  return x3, x4\n}",
    ];
    for text in texts {
        let p: Program = text.parse().unwrap();
        let mut source = gradus_core::testing::Source::seed(7);
        // A sum of so many numbers goes through rows; of whole numbers every order gives the same.
        let whole = |x: Array| if text.contains("flat_long") { x.round() } else { x };
        let random = |t| whole(gradus_core::testing::random_array(&mut source, t, true));
        let inputs: Vec<Array> = p.inputs().iter().map(random).collect();
        let tolerance = text.contains("dot_general").then_some(1e-12);
        check(&p, &inputs, tolerance, &|| text.to_string());
        // The same with large dimensions that are known only when it runs: one, and all of them.
        let mut large: Vec<i64> = p.inputs().iter().flat_map(|t| t.shape().iter()).filter_map(Dim::constant).collect();
        large.retain(|n| (5..1 << 40).contains(n));
        large.sort_unstable();
        large.dedup();
        let choices = [large[..large.len().min(1)].to_vec(), large];
        for chosen in choices.iter().filter(|c| !c.is_empty()) {
            let named = |d: &Dim| match d.constant().filter(|n| chosen.contains(n)) {
                Some(n) => Dim::symbol(&format!("S{n}")).unwrap(),
                None => d.clone(),
            };
            let p = p.map_dims(&named);
            verify(&p).unwrap_or_else(|e| panic!("{e}\n{p}"));
            let sizes: Vec<Vec<Array>> = [0, 1, 7, 33, 100]
                .iter()
                .map(|k| sized_inputs(&p, 3, &|s| if *k == 100 { s[1..].parse().unwrap() } else { *k }))
                .collect();
            // How many columns there are decides the order of their sums.
            check_sizes(&p, &sizes, Some(1e-4), &|| p.to_string());
        }
    }
}

/// A program of f64[9,9] arrays, some of which only the library makes, with a loop in the middle and results from everywhere: the
/// plan puts what lives for a while into results that are not there yet.
fn with_many_results(dice: &mut gradus_core::testing::Source<'_>) -> Program {
    const T: &str = "f64[9,9]";
    let mut text = String::new();
    let mut next = 2;
    let count = 6 + dice.below(20);
    let at = dice.below(count);
    for k in 0..count {
        let (a, b) = (dice.below(next), dice.below(next));
        let operation = match dice.below(8) {
            0 => format!("add x{a} x{b}"),
            1 => format!("mul x{a} x{b}"),
            2 => format!("sub x{a} 1.5:{T}"),
            3 => format!("transpose{{axes=[1,0]}} x{a}"),
            4 => format!("cumsum{{axis=1, reverse=false}} x{a}"),
            5 => format!("sort{{axis=0, keys=1, descending=false}} x{a}"),
            6 => format!("pad{{low=[-2,1], high=[2,-1], interior=[0,0]}} x{a} 0.25:f64[]"),
            _ => format!("max x{a} x{b}"),
        };
        if k == at {
            let step = "fn step(x0: f64[9,9], x1: f64[9]) -> (f64[9,9], f64[9]) {\n    x2: f64[9,9] = transpose{axes=[1,0]} x0\n    \
                x3: f64[9,9] = broadcast{shape=[9,9], axes=[0]} x1\n    x4: f64[9,9] = cumsum{axis=0, reverse=true} x3\n    \
                x5: f64[9,9] = sub x4 x2\n    x6: f64[9] = reduce_max{axes=[1]} x5\n    return x5, x6\n  }";
            let op = format!("scan{{body={step}, consts=0, carries=1, length=9, reverse=false}} x{a} x{b}");
            text += &format!("  x{next}: {T}, x{}: {T} = {op}\n", next + 1);
            next += 2;
        } else {
            text += &format!("  x{next}: {T} = {operation}\n");
            next += 1;
        }
    }
    let results: Vec<usize> = (0..1 + dice.below(4)).map(|_| 2 + dice.below(next - 2)).collect();
    let list = |f: &dyn Fn(usize) -> String| results.iter().map(|r| f(*r)).collect::<Vec<_>>().join(", ");
    let (types, names) = (list(&|_| T.to_string()), list(&|r| format!("x{r}")));
    format!("fn f(x0: {T}, x1: {T}) -> ({types}) {{\n{text}  return {names}\n}}\n").parse().unwrap()
}

#[test]
fn results_lend_their_memory_until_they_are_written() {
    let mut lent = 0;
    for seed in seeds(150) {
        let mut dice = gradus_core::testing::Source::seed(seed);
        let p = for_execution(&with_many_results(&mut dice), Exactness::Exact).unwrap();
        let inputs: Vec<Array> =
            p.inputs().iter().map(|t| gradus_core::testing::random_array(&mut dice, t, true)).collect();
        let options = Options { tier: Tier::Embedded, contract: false, small: 16, ..Options::default() };
        let native: Arc<Native> = compiled(&p, options).unwrap().as_any().downcast().unwrap();
        lent += native.plan().unwrap().places.iter().flatten().filter(|at| at.output.is_some()).count();
        let (want, have) = (interpret(&p, &inputs).unwrap(), native.run(&inputs).unwrap());
        assert_same(&have, &want, None, &|| {
            format!("seed {seed}\n{p}{}\n{}", native.plan().unwrap(), native.lowered().module)
        });
    }
    assert!(lent > 60, "{lent}");
}

/// A layer norm's value and parts of its gradient by hand: rows that are reduced twice, sums of columns, and a sum of everything.
fn normed(ty: &str, rows: &str, k: usize) -> String {
    let kept: Vec<usize> = (0..rows.split(',').count()).collect();
    let (axes, last) = (format!("{kept:?}").replace(' ', ""), kept.len());
    let all: Vec<usize> = (0..=last).collect();
    let all = format!("{all:?}").replace(' ', "");
    let (full, lead, one) = (format!("{ty}[{rows},{k}]"), format!("{ty}[{rows}]"), format!("{ty}[{k}]"));
    format!(
        "fn normed(x0: {full}, x1: {one}, x2: {full}) -> ({ty}[], {full}, {one}, {one}) {{\n  \
         x3: {lead} = reduce_sum{{axes=[{last}]}} x0\n  \
         x4: {full} = broadcast{{shape=[{rows},{k}], axes={axes}}} x3\n  \
         x5: {full} = sub x0 x4\n  \
         x6: {full} = mul x5 x5\n  \
         x7: {lead} = reduce_sum{{axes=[{last}]}} x6\n  \
         x8: {lead} = sqrt x7\n  \
         x9: {full} = broadcast{{shape=[{rows},{k}], axes={axes}}} x8\n  \
         x10: {full} = div x5 x9\n  \
         x11: {full} = broadcast{{shape=[{rows},{k}], axes=[{last}]}} x1\n  \
         x12: {full} = mul x10 x11\n  \
         x13: {full} = mul x12 x2\n  \
         x14: {ty}[] = reduce_sum{{axes={all}}} x13\n  \
         x15: {full} = mul x10 x2\n  \
         x16: {one} = reduce_sum{{axes={axes}}} x15\n  \
         x17: {one} = reduce_sum{{axes={axes}}} x2\n  \
         x18: {full} = mul x2 x11\n  \
         x19: {full} = div x18 x9\n  \
         x20: {full} = mul x19 x10\n  \
         x21: {lead} = reduce_sum{{axes=[{last}]}} x20\n  \
         x22: {full} = broadcast{{shape=[{rows},{k}], axes={axes}}} x21\n  \
         x23: {full} = add x19 x22\n  \
         return x14, x23, x16, x17\n}}"
    )
}

fn random_inputs(p: &Program) -> Vec<Array> {
    let mut source = gradus_core::testing::Source::seed(7);
    p.inputs().iter().map(|t| gradus_core::testing::random_array(&mut source, t, true)).collect()
}

/// Whatever rows look like, and however many chunks they are: sums over all of them have the interpreter's bits.
#[test]
fn totals_of_rows_keep_their_order() {
    let shapes = [
        ("f32", "32", 64),
        ("f64", "33", 96),
        ("f32", "40", 100),
        ("f64", "5,7", 64),
        ("f64", "3", 65),
        ("f32", "16,16", 256),
        ("f32", "65", 1024),
        ("f32", "128", 1024),
        ("f64", "2,24", 4096),
        ("f32", "16,17", 2048),
    ];
    for (ty, rows, k) in shapes {
        let text = normed(ty, rows, k);
        let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        check(&p, &random_inputs(&p), None, &|| text.clone());
    }
    // Columns in tiles, with what else the nest stores; and of more than one reduced loop.
    let tiled = [
        "fn tiled(x0: f32[70,1024], x1: f32[70]) -> (f32[1024], f32[1024], f32[70,1024]) {\n  x2: f32[70,1024] = broadcast{shape=[70,1024], axes=[0]} x1\n  x3: f32[70,1024] = mul x0 x2\n  x4: f32[1024] = reduce_sum{axes=[0]} x3\n  x5: f32[1024] = reduce_max{axes=[0]} x0\n  return x4, x5, x3\n}",
        "fn twice(x0: f64[5,30,512], x1: f64[30,512]) -> (f64[512]) {\n  x2: f64[5,30,512] = broadcast{shape=[5,30,512], axes=[1,2]} x1\n  x3: f64[5,30,512] = mul x0 x2\n  x4: f64[512] = reduce_sum{axes=[0,1]} x3\n  return x4\n}",
        "fn zeros(x0: f64[200,512]) -> (f64[512]) {\n  x1: f64[200,512] = sub x0 x0\n  x2: f64[200,512] = neg x1\n  x3: f64[512] = reduce_sum{axes=[0]} x2\n  return x3\n}",
    ];
    for text in tiled {
        let p: Program = text.parse().unwrap();
        check(&p, &random_inputs(&p), None, &|| text.to_string());
    }
    // Rows that are no single loop.
    let text = "fn two_loops(x0: f32[2,64,1024], x1: f32[64,1024]) -> (f32[], f32[2,64,1024]) {\n  x2: f32[2,64] = reduce_max{axes=[2]} x0\n  x3: f32[2,64,1024] = broadcast{shape=[2,64,1024], axes=[0,1]} x2\n  x4: f32[2,64,1024] = sub x0 x3\n  x5: f32[2,64,1024] = broadcast{shape=[2,64,1024], axes=[1,2]} x1\n  x6: f32[2,64,1024] = mul x4 x5\n  x7: f32[] = reduce_sum{axes=[0,1,2]} x6\n  return x7, x6\n}";
    let p: Program = text.parse().unwrap();
    check(&p, &random_inputs(&p), None, &|| text.to_string());
}

/// One pass over the rows makes everything, and what it needs between its loops is one row, or lies where a result will.
#[test]
fn totals_join_the_rows() {
    let lowered = |text: &str| {
        let p: Program = text.parse().unwrap();
        let l = gradus_cpu::lower::lower_with(&p, 16, true).unwrap();
        let names: Vec<String> = l.module.kernels.iter().map(|k| k.name.clone()).collect();
        let bytes = l.bind(&p, p.inputs()).unwrap().bytes;
        let scratch = gradus_cpu::memory::plan(&l.module, &bytes, &l.uncovered).unwrap().bytes;
        (names, scratch)
    };
    let (names, scratch) = lowered(&normed("f32", "32", 64));
    assert_eq!(names, ["k0_begin_totals", "k1_add", "k2_end_totals"]);
    assert!(scratch <= 1024, "{scratch}");
    // Of several chunks, each can be another thread's; columns have one order, and a nest of their own.
    let (names, _) = lowered(&normed("f32", "128", 1024));
    assert_eq!(names.iter().filter(|n| n.contains("totals")).count(), 2, "{names:?}");
    assert_eq!(names.len(), 4, "{names:?}");
    // What is too large to wait in a cache for the columns is made again there.
    let (names, scratch) = lowered(&normed("f32", "256", 4096));
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(scratch <= 300 << 10, "{scratch}");
}

/// Sums of pairs: over everything, over rows and over columns, of points with several elements too.
fn pairs(ty: &str, n: usize, d: usize) -> String {
    let (points, all, pairs) = (format!("{ty}[{n},{d}]"), format!("{ty}[{n},{n},{d}]"), format!("{ty}[{n},{n}]"));
    format!(
        "fn pairs(x0: {points}) -> ({ty}[], {points}, {points}, {ty}[{n}]) {{\n  \
         x1: {all} = broadcast{{shape=[{n},{n},{d}], axes=[1,2]}} x0\n  \
         x2: {all} = broadcast{{shape=[{n},{n},{d}], axes=[0,2]}} x0\n  \
         x3: {all} = sub x2 x1\n  \
         x4: {all} = mul x3 x3\n  \
         x5: {pairs} = reduce_sum{{axes=[2]}} x4\n  \
         x6: {pairs} = cosh x5\n  \
         x7: {pairs} = sqrt x6\n  \
         x8: {ty}[] = reduce_sum{{axes=[0,1]}} x7\n  \
         x9: {all} = broadcast{{shape=[{n},{n},{d}], axes=[0,1]}} x7\n  \
         x10: {all} = div x3 x9\n  \
         x11: {points} = reduce_sum{{axes=[1]}} x10\n  \
         x12: {points} = reduce_sum{{axes=[0]}} x10\n  \
         x13: {ty}[{n}] = reduce_sum{{axes=[0]}} x7\n  \
         return x8, x11, x12, x13\n}}"
    )
}

#[test]
fn sums_of_pairs_keep_their_order() {
    for (n, d) in [(16, 1), (17, 3), (33, 2), (64, 3), (65, 1), (96, 8), (100, 3), (128, 9)] {
        for ty in ["f64", "f32"] {
            let text = pairs(ty, n, d);
            let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
            check(&p, &random_inputs(&p), None, &|| text.clone());
        }
    }
    // More than a chunk.
    let text = pairs("f64", 264, 3);
    let p: Program = text.parse().unwrap();
    check(&p, &random_inputs(&p), None, &|| text.clone());
}

/// One thread goes over pairs once, whatever is summed, and no array of them is in memory but what the sum over everything takes in its own order.
#[test]
fn pairs_are_gone_over_once() {
    let scratch = |n: usize, threads: bool| {
        let p: Program = pairs("f64", n, 3).parse().unwrap();
        let l = gradus_cpu::lower::lower_with(&p, 16, threads).unwrap();
        let bytes = l.bind(&p, p.inputs()).unwrap().bytes;
        let scratch = gradus_cpu::memory::plan(&l.module, &bytes, &l.uncovered).unwrap().bytes;
        (scratch, l.module.to_string())
    };
    // Rows of whole lanes feed the sum over everything; others wait in memory for it.
    let few = |n: usize| 64 * n + 4096;
    for (n, threads, least) in [(64, true, 0), (100, true, 8 * 100 * 100), (1024, false, 0)] {
        let (scratch, module) = scratch(n, threads);
        assert!((least..least + few(n)).contains(&scratch), "{n}: {scratch}\n{module}");
    }
}

/// A straight program of very many elementary functions, which are called instead of written out.
#[test]
fn long_straight_programs() {
    for ty in ["f32", "f64"] {
        let mut text = format!("fn long(x0: {ty}[], x1: {ty}[]) -> ({ty}[], {ty}[]) {{\n");
        for i in 2..2000 {
            let (a, b) = (format!("x{}", i - 1), format!("x{}", i - 2));
            let line = match i % 6 {
                0 | 3 => format!("sin {a}"),
                1 => format!("add {a} {b}"),
                2 => format!("tanh {a}"),
                4 => format!("mul {a} {b}"),
                _ => format!("atan2 {a} {b}"),
            };
            text += &format!("  x{i}: {ty}[] = {line}\n");
        }
        text += "  return x1998, x1999\n}";
        let p: Program = text.parse().unwrap();
        check(&p, &random_inputs(&p), None, &|| format!("a long program over {ty}"));
    }
}

/// The embedded tier with its own vectors and without, and LLVM; bit for bit, but for products.
fn check_native(p: &Program, inputs: &[Array], tolerance: Option<f64>, context: &dyn Fn() -> String) {
    let want = interpret(p, inputs).unwrap_or_else(|e| panic!("{e}\n{}", context()));
    let ways = [(Tier::Embedded, Vectors::Best), (Tier::Embedded, Vectors::None), (Tier::Llvm, Vectors::Best)];
    for (tier, vectors) in ways {
        let context = || format!("{tier:?}, {vectors:?}\n{}", context());
        let options = Options { tier, vectors, contract: false, ..Options::default() };
        let code = compiled(p, options);
        let have = code.and_then(|code| code.run(inputs)).unwrap_or_else(|e| panic!("{e}\n{}", context()));
        assert_same(&have, &want, tolerance, &context);
    }
}

fn traced(inputs: &[Array], f: impl FnOnce(&[Array]) -> Vec<Array>) -> Program {
    let specs: Vec<Array> = inputs.iter().map(|a| Array::of_type(a.ty().unwrap().clone())).collect();
    trace("traced", &specs, Mode::Abstract, f).unwrap().program
}

/// Numbers that do not fit, halves, and what is none, from every dtype to every other: single ones, in vectors, and around a loop.
#[test]
fn conversions_between_all_dtypes() {
    let bounds = [7, 8, 15, 16, 31, 32, 63, 64].map(|k| f64::from(k).exp2());
    let mut numbers =
        vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 0.5, -0.5, 0.999, 1.5, -1.5, 1e30, -1e30];
    for b in bounds {
        for off in [-1.0, -0.5, -0.1, 0.0, 0.5, 1.0, 1.5] {
            numbers.extend([b + off, -b - off]);
        }
    }
    let dtypes: Vec<DType> = DType::ALL.into_iter().filter(|d| !d.is_complex() && *d != DType::Key).collect();
    for from in &dtypes {
        let all = Array::from_vec(numbers.clone(), [numbers.len()]).cast(*from);
        for to in &dtypes {
            let context = || format!("{from} to {to}");
            let p = traced(std::slice::from_ref(&all), |x| {
                let single = x[0].index(5).cast(*to);
                vec![x[0].cast(*to), x[0].index(..7).cast(*to), single, x[0].index(-3..).cast(*to)]
            });
            check_native(&p, std::slice::from_ref(&all), None, &context);
        }
    }
}

/// A number of every dtype that the main body makes, in the loops of a kernel.
#[test]
fn numbers_of_every_dtype_enter_kernels() {
    for dtype in DType::ALL.into_iter().filter(|d| *d != DType::Key && *d != DType::Bool) {
        let x = (Array::arange(0, 300, 1) - 150).cast(DType::F64).cast(dtype);
        let p = traced(std::slice::from_ref(&x), |x| {
            let number = x[0].index(3) + x[0].index(290);
            let large = x[0].index(7) * x[0].index(11);
            vec![&x[0] * &number + &large, number, x[0].eq(&large)]
        });
        check_native(&p, std::slice::from_ref(&x), None, &|| dtype.to_string());
    }
}

/// Products of small matrices at many points, with batches in front, a factor that is shared, and more axes than either.
#[test]
fn small_products_at_points() {
    let sizes = |c: char| match c {
        'n' => 33,
        'm' => 5,
        'i' => 3,
        'j' => 2,
        _ => 4,
    };
    let shape = |axes: &str| axes.chars().map(sizes).collect::<Vec<usize>>();
    let forms = [
        "nij,njk->nik",
        "nij,jk->nik",
        "nij,nkj->nik",
        "nij,nj->ni",
        "ij,njk->nik",
        "nmij,nmjk->nmik",
        "nmij,njk->nmik",
        "nmij,mjk->nmik",
        "nij,mjk->nmik",
        "nij,nij->n",
        "nij,nij->ij",
        "nij,nmij->nm",
        "nji,nkj->nik",
        "inj,njk->nik",
    ];
    let mut source = Source::seed(11);
    for form in forms {
        let (operands, _) = form.split_once("->").unwrap();
        let inputs: Vec<Array> = operands
            .split(',')
            .map(|axes| random_array(&mut source, &Type::new(DType::F64, &shape(axes)[..]), true))
            .collect();
        let p = traced(&inputs, |x| {
            let y = Array::einsum(form, [&x[0], &x[1]]);
            vec![y.tanh() + &y, y]
        });
        check_native(&p, &inputs, Some(1e-12), &|| form.to_string());
    }
}

/// Complex arithmetic in code is the interpreter's, at every corner of the plane and in both widths.
#[test]
fn complex_arithmetic_at_every_corner() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let parts =
        [0.0, -0.0, 1.0, -1.5, 0.3, 700.0, -750.0, 1e-310, 5e-324, -1e-200, 1e200, 1e300, -1e308, inf, -inf, nan];
    let plane: Vec<[f64; 2]> = parts.iter().flat_map(|a| parts.iter().map(|b| [*a, *b])).collect();
    let numbers = |order: &dyn Fn(usize) -> usize| {
        let part = |k: usize| Array::from((0..plane.len()).map(|i| plane[order(i)][k]).collect::<Vec<f64>>());
        Array::complex(&part(0), &part(1))
    };
    // Each beside several others.
    for step in [0, 1, 37, 101, 190] {
        for dtype in [DType::C128, DType::C64] {
            let x = numbers(&|i| i).cast(dtype);
            let y = numbers(&|i| (i * 7 + step) % plane.len()).cast(dtype);
            let inputs = [x, y];
            let p = traced(&inputs, |x| {
                let (x, y) = (&x[0], &x[1]);
                vec![x * y, x / y, x + y, x - y, -x, x.conj(), x.exp(), x.abs(), x.eq(y), x.ne(y), x.powi(3), x.real()]
            });
            check_native(&p, &inputs, None, &|| format!("{dtype}, {step} apart"));
        }
    }
}

/// Complex arrays through loops, windows, sums, products, choices and what is evaluated as a whole, small ones and large ones.
#[test]
fn complex_arrays_go_everywhere() {
    let mut source = Source::seed(14);
    for (n, dtype) in [(1, DType::C128), (3, DType::C64), (5, DType::C128), (33, DType::C64), (200, DType::C128)] {
        let part = dtype.real_part();
        let mut random = |shape: &[usize]| {
            let mut part = || random_array(&mut source, &Type::new(part, shape), true);
            Array::complex(&part(), &part())
        };
        let inputs = [random(&[n]), random(&[4, n]), random(&[n, 3])];
        let p = traced(&inputs, |x| {
            let (v, m, w) = (&x[0], &x[1], &x[2]);
            let rotated = m * v + m.flip(-1).conj();
            let row = Array::of_type(v.ty().unwrap().clone());
            let body = trace("step", &[row.clone(), row], Mode::Abstract, |x| {
                vec![&x[0] * &x[1] * 0.5_f32 + v, x[0].exp() / (&x[1] + 2.0_f32)]
            });
            let carries = std::slice::from_ref(v);
            let rows = std::slice::from_ref(m);
            let looped = scan(&body.unwrap(), carries, rows, &Dim::from(4usize), false, 1, Steps::Keep).unwrap();
            let picked = m.real().gt(0.0_f32).select(m, &rotated);
            let written = m.at((1, ..)).set(v * 2.0_f32);
            let grown = Array::concatenate([v, &v.flip(0)], 0).pad(&[(1, 2)], 0.5_f32);
            let whole = v.sin() + v.log();
            vec![
                rotated.sum(),
                rotated.sum_axes(0),
                m.matmul(w),
                looped[0].clone(),
                looped[1].clone(),
                picked,
                written,
                grown,
                whole,
                v.clone(),
                m.cumsum(-1),
                Array::from([1.0_f32, 2.0]).cast(dtype),
                m.real().sum() + m.imag().sum(),
            ]
        });
        let tolerance = if dtype == DType::C64 { 1e-4 } else { 1e-12 };
        check_native(&p, &inputs, Some(tolerance), &|| format!("{n} of {dtype}\n{p}"));
    }
}

/// Convolutions of every kind by the way that compiled code takes (residues of places, windows of results) give what their windows give.
#[test]
fn convolutions_take_the_short_way() {
    let mut source = Source::seed(13);
    let (mut tried, mut refused) = (0, 0);
    while tried < 80 {
        let d = 1 + source.below(2);
        let mut each = |least: usize, count: usize| (0..d).map(|_| least + source.below(count)).collect::<Vec<_>>();
        let (sides, places) = (each(1, 7), each(1, 4));
        let (strides, image_dilation, kernel_dilation) = (each(1, 3), each(1, 4), each(1, 3));
        let edges = |n: Vec<usize>| n.into_iter().map(|n| Dim::from(n as i64 - 2)).collect::<Vec<_>>();
        let (low, high) = (edges(each(0, 6)), edges(each(0, 6)));
        let groups = if source.below(4) == 0 { 2 } else { 1 };
        let (batch, features, results) =
            (1 + source.below(3), groups * (1 + source.below(9)), groups * (1 + source.below(2)));
        let dims = |head: &[usize], middle: &[usize], tail: &[usize]| [head, middle, tail].concat();
        let x = Type::new(DType::F64, &dims(&[batch], &sides, &[features])[..]);
        let w = Type::new(DType::F64, &dims(&[], &places, &[features / groups, results])[..]);
        let inputs = [random_array(&mut source, &x, true), random_array(&mut source, &w, true)];
        let feature_groups = Dim::from(groups);
        let batch_groups = Dim::from(1usize);
        let op = Convolve { strides, low, high, image_dilation, kernel_dilation, feature_groups, batch_groups };
        // Some of these have windows that do not fit.
        if bind(Op::new(op.clone()), &inputs).ok().is_err() {
            refused += 1;
            continue;
        }
        let p = traced(&inputs, |x| vec![bind(Op::new(op.clone()), x)]);
        check_native(&p, &inputs, Some(1e-12), &|| p.to_string());
        tried += 1;
    }
    assert!(refused < tried, "{refused} of {tried}");
}

/// Small matrices in vectors of matrices do what the interpreter's loops over one do, step by step: the same bits, for every form.
#[test]
fn small_systems_at_points() {
    let mut source = Source::seed(12);
    for n in [1, 2, 3, 4, 6, 8] {
        for k in [1, 2] {
            let dtype = if (n + k) % 3 == 0 { DType::F32 } else { DType::F64 };
            let random = |source: &mut Source, shape: &[usize]| random_array(source, &Type::new(dtype, shape), true);
            let a = random(&mut source, &[3, n, n]);
            let definite = a.matmul(&a.swap_axes(-1, -2));
            let inputs = [a, random(&mut source, &[3, n, k]), definite];
            let p = traced(&inputs, |x| {
                let forms = [TriangularSolve::lower(), TriangularSolve::upper()];
                let forms = forms.into_iter().flat_map(|t| [t, t.transposed(), t.unit(), t.transposed().unit()]);
                let mut out: Vec<Array> = forms.map(|t| t.of(&x[0], &x[1])).collect();
                for transpose in [false, true] {
                    out.push(bind(Op::new(Solve { transpose }), &[x[0].clone(), x[1].clone()]));
                }
                if k == 1 {
                    out.push(bind(Op::fixed(&Cholesky), &[x[2].clone()]));
                    out.extend(bind_all(Op::fixed(&Lu), &[x[0].clone()]));
                    out.extend(bind_all(Op::fixed(&SlogDet), &[x[0].clone()]));
                }
                out
            });
            check_native(&p, &inputs, None, &|| format!("{n} rows, {k} right-hand sides, {dtype}"));
        }
    }
}

/// What columns make again, because it is too large to wait for them in a cache: as rows made it, and not where it is seen turned as well.
#[test]
fn columns_make_again_what_is_large() {
    let large = normed("f32", "256", 4096);
    let turned = "fn turned(x0: f64[600,600]) -> (f64[600], f64[600]) {\n  \
        x1: f64[600] = reduce_max{axes=[1]} x0\n  \
        x2: f64[600,600] = broadcast{shape=[600,600], axes=[0]} x1\n  \
        x3: f64[600,600] = sub x0 x2\n  \
        x4: f64[600] = reduce_sum{axes=[1]} x3\n  \
        x5: f64[600,600] = transpose{axes=[1,0]} x3\n  \
        x6: f64[600,600] = mul x3 x5\n  \
        x7: f64[600] = reduce_sum{axes=[0]} x6\n  \
        return x4, x7\n}"
        .to_string();
    let elsewhere = turned.replace("reduce_sum{axes=[0]} x6", "reduce_sum{axes=[0]} x3");
    for text in [large, turned, elsewhere] {
        let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        check_native(&p, &random_inputs(&p), None, &|| text.clone());
    }
}

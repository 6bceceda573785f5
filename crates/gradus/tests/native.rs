//! Native code as a user meets it: fused kernels, tiers that agree, threads that change nothing, calls without allocation.

use gradus::Interpreter;
use gradus::cpu::Cpu;
use gradus::prelude::*;

fn gelu(x: &Array) -> Array {
    let t = (0.7978845608028654_f64 * (x + 0.044715_f64 * x * x * x)).tanh();
    0.5_f64 * x * (1.0_f64 + t)
}

fn numbers(n: usize) -> Array {
    Array::from((0..n).map(|i| (i as f64 * 0.37).sin() * 3.0).collect::<Vec<_>>())
}

fn bits(a: &Array) -> Result<Vec<u64>> {
    Ok(a.to_vec::<f64>()?.into_iter().map(f64::to_bits).collect())
}

#[test]
fn row_r1_value_and_derivative_are_one_kernel() -> Result<()> {
    let both = jit(|x: &Array| {
        let one = x.ones_like();
        jvp(gelu, x, &one)
    });
    let phases = both.phases(&numbers(1000))?;
    let kernels = &phases.iter().find(|p| p.name == "lower").unwrap().text;
    assert_eq!(kernels.matches("kernel ").count(), 1, "{kernels}");
    assert_eq!(kernels.matches("= output").count(), 2, "{kernels}");
    assert_eq!(kernels.matches("= scratch").count(), 0, "{kernels}");
    Ok(())
}

#[test]
fn row_r1_every_tier_gives_the_same_bits() -> Result<()> {
    let f = || value_and_grad(|x: &Array| gelu(x).exp().sum());
    let x = numbers(5000);
    let want = {
        let (y, g) = jit(f()).tier(Tier::Embedded)(&x);
        (bits(&y.reshape([1]))?, bits(&g)?)
    };
    for tier in [Tier::Llvm, Tier::Auto] {
        let (y, g) = jit(f()).tier(tier)(&x);
        assert_eq!((bits(&y.reshape([1]))?, bits(&g)?), want, "{tier:?}");
    }
    // Without fused products they are the interpreter's bits.
    let plain = Cpu::new().contract(false);
    let (y, g) = jit(f()).backend(plain)(&x);
    let (u, v) = jit(f()).backend(Interpreter)(&x);
    assert_eq!((bits(&y.reshape([1]))?, bits(&g)?), (bits(&u.reshape([1]))?, bits(&v)?));
    Ok(())
}

#[test]
fn row_r1_threads_change_no_bit() -> Result<()> {
    // Long enough to be shared: sums by chunks, rows, and plain loops.
    let f = jit(|x: &Array| {
        let rows = x.reshape([300, 1000]);
        let e = (&rows - rows.max_keep(-1)).exp();
        (x.sin().sum(), &e / e.sum_keep(-1))
    });
    let x = numbers(300_000);
    let run = |threads: usize| -> Result<(Vec<u64>, Vec<u64>)> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (s, y) = pool.install(|| f(&x));
        Ok((bits(&s.reshape([1]))?, bits(&y)?))
    };
    let one = run(1)?;
    assert_eq!(run(2)?, one);
    assert_eq!(run(3)?, one);
    Ok(())
}

/// Code that was made in one way is not handed out for another, whatever the backend is called.
#[test]
fn options_of_the_compiler_do_not_share_code() -> Result<()> {
    let f = |x: &Array| (x * 1.25 + 7.0).cosh().sum();
    let x = numbers(100);
    for backend in [Cpu::new(), Cpu::new().threads(false), Cpu::new().contract(false), Cpu::new().tier(Tier::Embedded)]
    {
        let g = jit(f).backend(backend);
        g(&x).item::<f64>()?;
        assert_eq!((g.stats().shared, g.stats().compiles + g.stats().loaded), (0, 1), "{backend:?}");
        let again = jit(f).backend(backend);
        again(&x).item::<f64>()?;
        assert_eq!(again.stats().shared, 1, "{backend:?}");
    }
    Ok(())
}

#[test]
fn row_r1_loops_and_branches_are_machine_code() -> Result<()> {
    // Nothing of it goes through the library: no `call` in the kernels.
    let f = jit(grad(|x: &Array| {
        let steps = fori_loop(0, 100, |_, h: &Array| (h * 1.01_f64).sin(), x.clone());
        cond(steps.gt(0.5_f64), |h: &Array| h * 2.0_f64, |h: &Array| h * h, &steps)
    }));
    let x = Array::from(0.7_f64);
    let phases = f.phases(&x)?;
    let kernels = &phases.iter().find(|p| p.name == "lower").unwrap().text;
    assert!(kernels.contains("switch") && !kernels.contains("call "), "{kernels}");
    let (have, want) = (f(&x).item::<f64>()?, f.backend(Interpreter)(&x).item::<f64>()?);
    assert!((have - want).abs() < 1e-12 * want.abs(), "{have} {want}");
    Ok(())
}

/// Memory that code reads is as large as its type says.
#[test]
fn a_prepared_call_refuses_arrays_that_are_not_of_their_type() {
    use gradus::cpu::Cpu;
    use gradus::extend::pipeline::Pipeline;
    use gradus_cpu::{Native, Prepared};
    let f = jit(|x: &Array, y: &Array| x + y.sum());
    let p = f.trace(&Array::spec("f64[4]"), &Array::spec("f64[1000]")).unwrap().program().clone();
    let code = Pipeline::on(Cpu::new().tier(Tier::Embedded)).code(&p).unwrap();
    let native: std::sync::Arc<Native> = code.as_any().downcast().unwrap();
    for wrong in [Array::ones::<f64>([3]).to_dense(), Array::ones::<i8>([1000]).to_dense()] {
        let e = Prepared::new(native.clone(), &[wrong]).err().unwrap();
        assert_eq!(e.kind(), ErrorKind::Signature, "{e}");
    }
    assert!(Prepared::new(native, &[Array::ones::<f64>([1000]).to_dense()]).is_ok());
}

#[test]
fn a_prepared_call_has_its_buffers_at_hand() -> Result<()> {
    let scale = numbers(100);
    let f = jit(move |x: &Array| (x * &scale).exp());
    let x = numbers(100);
    let mut call = f.compile(&x)?.prepared()?;
    for round in 1..4 {
        let now = &x * f64::from(round);
        call.input::<f64>(0)?.copy_from_slice(&now.to_vec::<f64>()?);
        call.run()?;
        assert_eq!(call.output::<f64>(0)?, f(&now).to_vec::<f64>()?);
    }
    assert!(call.input::<f32>(0).is_err() && call.input::<f64>(1).is_err() && call.output::<f64>(1).is_err());
    let interpreted = jit(gelu).backend(Interpreter).compile(&x)?;
    let e = interpreted.prepared().err().unwrap();
    assert!(e.to_string().contains("native compiler"), "{e}");
    Ok(())
}

/// An output that needs no code is a copy: of the input as the last run found it, or of what never changes.
#[test]
fn a_prepared_call_gives_back_inputs_captures_and_constants() -> Result<()> {
    let (x, kept) = (numbers(100), numbers(1000));
    let make = || {
        let captured = kept.clone();
        jit(move |x: &Array, y: &Array| {
            let constant = Array::from([1_i32, 2, 3]);
            (x.clone(), x * 2.0_f64, y.clone(), x * 1.0_f64, captured.clone(), constant)
        })
    };
    for f in [make(), make().verify()] {
        let mut call = f.compile(&x, &Array::from([true, false]))?.prepared()?;
        for round in 1..4 {
            let now = (&x * f64::from(round)).to_vec::<f64>()?;
            call.input::<f64>(0)?.copy_from_slice(&now);
            call.input::<bool>(1)?.copy_from_slice(&[true, round == 2]);
            call.run()?;
            // What is written for the next run is none of this one's results.
            call.input::<f64>(0)?.fill(-1.0);
            call.input::<bool>(1)?.fill(false);
            assert_eq!(call.output::<f64>(0)?, now);
            assert_eq!(call.output::<f64>(1)?, now.iter().map(|v| v * 2.0).collect::<Vec<_>>());
            assert_eq!(call.output::<bool>(2)?, [true, round == 2]);
            assert_eq!(call.output::<f64>(3)?, now);
            assert_eq!(call.output::<f64>(4)?, kept.to_vec::<f64>()?);
            assert_eq!(call.output::<i32>(5)?, [1, 2, 3]);
        }
        assert!(call.output::<f32>(0).is_err() && call.output::<f64>(6).is_err());
    }
    // Nothing but a copy.
    let mut same = jit(|x: &Array| x.clone()).compile(&x)?.prepared()?;
    same.input::<f64>(0)?.copy_from_slice(&x.to_vec::<f64>()?);
    same.run()?;
    assert_eq!(same.output::<f64>(0)?, x.to_vec::<f64>()?);
    Ok(())
}

#[test]
fn a_scratch_arena_that_no_machine_has_is_an_error() -> Result<()> {
    // The sum of a matrix product that would fill the memory of thousands of machines.
    let f = jit(|x: &Array| {
        let big = x.broadcast_to([1 << 24, 1 << 24]);
        (&big + big.t()).exp().sort(0).sum()
    });
    assert!(f(&Array::from(1.0_f64)).item::<f64>().is_err());
    Ok(())
}

/// Turns a point about one axis by its own coordinates and divides by its length: small matrices, joined from scalars.
fn turned(p: &Array) -> Array {
    let (s, c) = (p.index(0).sin(), p.index(0).cos());
    let (o, i) = (s.zeros_like(), s.ones_like());
    let rows = [[&i, &o, &o], [&o, &c, &(-&s)], [&o, &s, &c]];
    let v = Array::stack(rows.into_iter().flatten(), 0).reshape([3, 3]).dot(p);
    &v / (&v * &v).sum().sqrt()
}

#[test]
fn jacobians_at_many_points_are_one_kernel() -> Result<()> {
    let f = || jit(vmap(jacfwd(turned)));
    let points = numbers(300).reshape([100, 3]);
    let phases = f().phases(&points)?;
    let kernels = &phases.iter().find(|p| p.name == "lower").unwrap().text;
    assert_eq!((kernels.matches("kernel ").count(), kernels.matches("call ").count()), (1, 0), "{kernels}");
    assert_eq!(kernels.matches("= scratch").count(), 0, "{kernels}");
    let (ours, reference) = (f()(&points).to_vec::<f64>()?, f().backend(Interpreter)(&points).to_vec::<f64>()?);
    for (a, b) in ours.iter().zip(&reference) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }
    Ok(())
}

#[test]
fn relaxed_code_divides_once() -> Result<()> {
    let f = || jit(|x: &Array, y: &Array| x / y + (x + 1.0_f64) / y);
    let (x, y) = (numbers(500), numbers(500) + 4.0_f64);
    let divisions = |exactness| -> Result<usize> {
        let phases = f().exactness(exactness).phases(&x, &y)?;
        Ok(phases.iter().find(|p| p.name == "lower").unwrap().text.matches("= div ").count())
    };
    assert_eq!((divisions(Exactness::Exact)?, divisions(Exactness::Relaxed)?), (2, 1));
    // Both are kept apart, though the program is the same.
    let exact = f()(&x, &y).to_vec::<f64>()?;
    let relaxed = f().exactness(Exactness::Relaxed)(&x, &y).to_vec::<f64>()?;
    let interpreted = f().backend(Interpreter)(&x, &y).to_vec::<f64>()?;
    assert_eq!(exact, interpreted);
    assert_ne!(relaxed, exact);
    assert!(relaxed.iter().zip(&exact).all(|(a, b)| (a - b).abs() <= 1e-15 * b.abs().max(1.0)));
    Ok(())
}

/// A compiler that is not there is no news for calls, but whoever asks is told.
#[test]
fn explain_names_the_compiler() {
    let line = |f: Fun<(Array,), Array>| {
        let text = f.explain(&numbers(3)).to_string();
        text.lines().find(|l| l.contains("compiler: ")).map(str::to_owned)
    };
    let f = || jit(|x: &Array| x.sin());
    assert_eq!(line(f().backend(Interpreter)), None);
    assert_eq!(line(f().tier(Tier::Embedded)).as_deref(), Some("  compiler: the embedded one, as chosen"));
    if std::env::var_os("GRADUS_LLVM").is_some_and(|v| v == "off") {
        let without = "  compiler: the embedded one alone: there is no LLVM: GRADUS_LLVM is off";
        assert_eq!(line(f().tier(Tier::Llvm)).as_deref(), Some(without));
        assert_eq!(f().tier(Tier::Llvm)(&Array::from(0.0_f64)).item::<f64>().ok(), Some(0.0));
        return;
    }
    let exe = std::env::current_exe().unwrap();
    let name = "explain_names_the_compiler";
    let done = std::process::Command::new(exe).args(["--exact", name]).env("GRADUS_LLVM", "off").status().unwrap();
    assert!(done.success());
}

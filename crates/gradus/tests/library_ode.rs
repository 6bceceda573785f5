//! Integrators against exact solutions, SciPy and JAX (`scripts/reference/ode.py` has the numbers), with derivatives by everything in both modes.

use gradus::prelude::*;

const METHODS: [ode::Method; 2] = [ode::Method::DormandPrince, ode::Method::Tsitouras];

fn tight(method: ode::Method) -> ode::Options {
    ode::Options::new().relative(1e-10).absolute(1e-10).method(method)
}

/// Predators, prey, and a season.
fn slope(y: &Array, t: &Array, p: &Array) -> Array {
    let (prey, hunters) = (y.index(0), y.index(1));
    let met = &prey * &hunters;
    let up = p.index(0) * prey - p.index(1) * &met;
    let down = p.index(3) * met - p.index(2) * hunters + t.sin() * 0.1_f64;
    Array::stack([up, down], 0)
}

fn close(a: &Array, b: &[f64], tolerance: f64) {
    let a = a.to_vec::<f64>().unwrap();
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= tolerance * (1.0 + y.abs()), "{a:?} {b:?}");
    }
}

#[test]
fn states_are_those_of_scipy_and_gradients_those_of_jax() {
    let times = Array::from([0.0_f64, 0.5, 2.0, 5.0]);
    let (p, y0) = (Array::from([1.5_f64, 1.0, 3.0, 1.0]), Array::from([1.0_f64, 1.0]));
    for method in METHODS {
        let run = move |p: &Array, y0: &Array, times: &Array| {
            tight(method).integrate(|y: &Array, t: &Array| slope(y, t, p), y0, times)
        };
        let states = [
            1.0,
            1.0,
            1.52868582618866,
            0.41950260468353,
            6.09404753928224,
            2.10665456635578,
            6.59620806661376,
            0.81036428627499,
        ];
        close(&jit(run)(&p, &y0, &times).flatten(), &states, 1e-7);
        let loss = move |p: &Array, y0: &Array, times: &Array| {
            (run(p, y0, times).index(-1) * Array::from([1.0_f64, 2.0])).sum()
        };
        let (dp, dy, dt) = jit(grad_all(loss))(&p, &y0, &times);
        close(&dp, &[22.532358355424847, -3.516929955143881, 5.325463401474606, 1.8218715332023867], 1e-6);
        close(&dy, &[8.418079599821526, -2.6370507190254853], 1e-6);
        close(&dt, &[-9.483141237975076, 0.0, 0.0, 10.185672969369907], 1e-6);
        // Forward, along every parameter at once.
        let forward = jacfwd(move |p: &Array| loss(p, &y0_of(), &times_of()))(&p);
        close(&forward, &[22.532358355424847, -3.516929955143881, 5.325463401474606, 1.8218715332023867], 1e-6);
    }
}

fn y0_of() -> Array {
    Array::from([1.0_f64, 1.0])
}

fn times_of() -> Array {
    Array::from([0.0_f64, 0.5, 2.0, 5.0])
}

#[test]
fn errors_follow_the_tolerance_and_times_may_be_many() -> Result<()> {
    let times = Array::linspace(0.0_f64, 10.0, 101);
    let exact = times.cos();
    for method in METHODS {
        let mut last = f64::INFINITY;
        for tolerance in [1e-4, 1e-6, 1e-8, 1e-10] {
            let options = ode::Options::new().relative(tolerance).absolute(tolerance).method(method);
            let circle = |(x, v): &(Array, Array), _: &Array| (v.clone(), -x);
            let start = (Array::from(1.0_f64), Array::from(0.0_f64));
            let (x, v) = options.integrate(circle, &start, &times);
            assert_eq!((x.shape().rank(), v.shape().rank()), (1, 1));
            let off = (x - &exact).abs().max().item::<f64>()?;
            assert!(off < tolerance * 100.0 && off < last, "{method:?} {tolerance}: {off}");
            last = off;
        }
    }
    Ok(())
}

#[test]
fn backward_in_time_at_one_time_and_twice_at_one() -> Result<()> {
    let decay = |y: &Array, _: &Array| -y;
    let y1 = Array::from((-1.0_f64).exp());
    let back = tight(ode::Method::Tsitouras).integrate(decay, &y1, &Array::from([1.0_f64, 0.5, 0.0]));
    close(&back, &[(-1.0_f64).exp(), (-0.5_f64).exp(), 1.0], 1e-9);
    let still = ode::integrate(decay, &y1, &Array::from([1.0_f64]));
    close(&still, &[(-1.0_f64).exp()], 0.0);
    let twice = tight(ode::Method::Tsitouras).integrate(decay, &y1, &Array::from([1.0_f64, 1.0, 2.0, 2.0]));
    close(&twice, &[(-1.0_f64).exp(), (-1.0_f64).exp(), (-2.0_f64).exp(), (-2.0_f64).exp()], 1e-9);
    check_grads(
        move |y: &Array| tight(ode::Method::Tsitouras).integrate(decay, y, &Array::from([1.0_f64, 0.5, 0.0])),
        &y1,
        2,
    )?;
    let single = ode::integrate(decay, &Array::from(1.0_f32), &Array::from([0.0_f32, 1.0]));
    assert!((single.index(1).item::<f32>()? - (-1.0_f32).exp()).abs() < 1e-5);
    let turn = ode::integrate(
        |y: &Array, _: &Array| y * Complex::new(0.0_f64, 1.0),
        &Array::from(Complex::new(1.0_f64, 0.0)),
        &Array::from([0.0_f64, 1.0]),
    );
    let end = turn.index(1).item::<Complex<f64>>()?;
    assert!((end.re - 1.0_f64.cos()).abs() < 1e-5 && (end.im - 1.0_f64.sin()).abs() < 1e-5);
    Ok(())
}

#[test]
fn batches_have_steps_of_their_own() -> Result<()> {
    let rates = Array::from([0.1_f64, 1.0, 30.0]);
    let end = |k: &Array| {
        let y = tight(ode::Method::Tsitouras).integrate(
            |y: &Array, _: &Array| -(y * k),
            &k.ones_like(),
            &Array::from([0.0_f64, 1.0]),
        );
        y.index(1)
    };
    let all = jit(vmap(end))(&rates);
    close(&all, &[(-0.1_f64).exp(), (-1.0_f64).exp(), (-30.0_f64).exp()], 1e-8);
    let slopes = jit(vmap(grad(end)))(&rates);
    close(&slopes, &[-(-0.1_f64).exp(), -(-1.0_f64).exp(), -(-30.0_f64).exp()], 1e-7);
    Ok(())
}

#[test]
fn what_cannot_be_integrated_says_so() -> Result<()> {
    let says = |found: Array, parts: &[&str]| {
        let e = found.error().expect("an error").to_string();
        assert!(parts.iter().all(|p| e.contains(p)) && e.contains("library_ode.rs"), "{e}");
    };
    let (y, times) = (Array::from([1.0_f64]), Array::from([0.0_f64, 1.0]));
    says(ode::integrate(|y: &Array, _: &Array| y.sum(), &y, &times), &["f64[1]", "slope"]);
    says(ode::integrate(|y: &Array, _: &Array| y.clone(), &y, &Array::from(1.0_f64)), &["times", "f64[]"]);
    says(ode::integrate(|y: &Array, _: &Array| y.clone(), &y, &Array::from([0_i32, 1])), &["times", "i32[2]"]);
    says(ode::integrate(|y: &Array, _: &Array| y.clone(), &Array::from([1_i32]), &times), &["floats", "i32[1]"]);
    for turns in [[0.0_f64, 1.0, 0.5], [0.0, -1.0, 2.0], [1.0, 0.0, 0.5], [0.0, f64::NAN, 1.0]] {
        says(ode::integrate(|y: &Array, _: &Array| y.clone(), &y, &Array::from(turns)), &["one way", "comes"]);
    }
    let inside =
        jit(|y: &Array| ode::integrate(|y: &Array, _: &Array| y.clone(), y, &Array::from([0.0_f32, 1.0, 0.5])));
    says(inside(&y), &["one way", "1.0 comes 0.5"]);
    // Traced times have no numbers yet: what would be wrong is NaN, and what comes after the furthest time is not.
    let traced = jit(|t: &Array| ode::integrate(|y: &Array, _: &Array| y.clone(), &Array::from(1.0_f64), t));
    let mixed = traced(&Array::from([0.0_f64, 1.0, 0.5, 0.7, 1.0, 2.0])).to_vec::<f64>()?;
    let right = |i: usize, t: f64| (mixed[i] - t.exp()).abs() < 1e-4;
    assert!(right(0, 0.0) && right(1, 1.0) && mixed[2].is_nan() && mixed[3].is_nan(), "{mixed:?}");
    assert!(right(4, 1.0) && right(5, 2.0), "{mixed:?}");
    let back = traced(&Array::from([2.0_f64, 1.0, 1.0, 0.0])).to_vec::<f64>()?;
    assert!((back[3] - (-2.0_f64).exp()).abs() < 1e-4 && back[1] == back[2], "{back:?}");
    // y' = y² ends at t = 1: no number beyond it, and no loop without an end.
    let blown =
        ode::integrate(|y: &Array, _: &Array| y.square(), &y, &Array::from([0.0_f64, 0.5, 2.0])).to_vec::<f64>()?;
    assert!((blown[1] - 2.0).abs() < 1e-4 && blown[2].is_nan(), "{blown:?}");
    let few = ode::Options::new().steps(2).integrate(|y: &Array, t: &Array| y * (t * 50.0_f64).sin(), &y, &times);
    assert!(few.index((1, 0)).item::<f64>()?.is_nan());
    let never = ode::integrate(|y: &Array, _: &Array| y * f64::NAN, &y, &times).to_vec::<f64>()?;
    assert!(never[0] == 1.0 && never[1].is_nan(), "{never:?}");
    Ok(())
}

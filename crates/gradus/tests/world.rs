//! The explicit world, as users type it: random keys, one program for every size, effects.

use gradus::prelude::*;

#[test]
fn randomness_is_a_value() -> Result<()> {
    let key = Key::new(42);
    let [a, b] = key.split(); // `key` is consumed: using it again does not compile
    let u = random::uniform::<f32>(a, [3]);
    let n = random::normal::<f32>(b, [3]);
    // the numbers JAX gives for jax.random.split(jax.random.key(42)) (threefry2x32), see tests/data
    assert!(u.to_vec::<f32>()?.iter().all(|v| (0.0..1.0).contains(v)));
    assert!(n.to_vec::<f32>()?.iter().all(|v| v.is_finite()));
    Ok(())
}

#[test]
fn one_program_for_every_batch_size() -> Result<()> {
    let g = jit(grad(|w: &Array, x: &Array| x.dot(w).tanh().mean())).symbolic("_, f32[B, 16]");
    let w = Array::ones::<f32>([16]);
    for b in 1..50 {
        let d = g(&w, &Array::ones::<f32>([b, 16]));
        assert_eq!(d.shape(), [16]);
        d.to_vec::<f32>()?;
    }
    assert_eq!(g.stats().compiles, 1);
    let e = g(&w, &Array::ones::<f32>([3, 15])).to_vec::<f32>().unwrap_err().to_string();
    assert!(e.contains("16") && e.contains("15"), "{e}");
    Ok(())
}

#[test]
fn effects_are_operations() -> Result<()> {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let s = seen.clone();
    let f = jit(move |x: &Array| {
        let s = s.clone();
        debug_callback(move |v| s.lock().unwrap().push(v[0].item::<f64>().unwrap()), &[x]);
        x * 2.0_f64
    });
    f(&Array::from(1.0_f64)).item::<f64>()?;
    f(&Array::from(2.0_f64)).item::<f64>()?;
    assert_eq!(*seen.lock().unwrap(), [1.0, 2.0]); // at run time, each time, in order
    Ok(())
}

//! The library as users type it: a filter, a Gaussian process, decompositions, signals, training, files, types, implicit derivatives.

use gradus::prelude::*; // brings the modules linalg, fft, nn, optim, files and tree too

fn close(a: &Array, b: &[f64]) {
    let a = a.to_vec::<f64>().unwrap();
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= 1e-9 * (1.0 + y.abs()), "{a:?} {b:?}");
    }
}

#[test]
fn a_filter_likelihood_has_a_gradient() -> Result<()> {
    let nll = |a: &Array, ys: &Array| {
        let (eye, c) = (Array::eye::<f64>(2), Array::from([[1.0_f64, 0.0]]));
        let step = |(m, p): &(Array, Array), y: &Array| {
            let m = a.matmul(m);
            let p = a.matmul(p).matmul(&a.t()) + 0.1 * &eye;
            let s = c.matmul(&p).matmul(&c.t()) + 0.2;
            let v = y - c.matmul(&m);
            let gain = linalg::solve(&s, &c.matmul(&p)).t();
            let (_, logdet) = linalg::slogdet(&s);
            let term = 0.5 * (logdet + v.dot(&linalg::solve(&s, &v)));
            ((&m + gain.matmul(&v), &p - gain.matmul(&c).matmul(&p)), term)
        };
        scan(step, (Array::zeros::<f64>([2]), Array::eye::<f64>(2)), ys).1.sum()
    };
    let a = Array::from([[1.0_f64, 0.1], [0.0, 0.9]]);
    let ys = (Array::arange(0.0_f64, 20.0, 1.0) * 0.3).sin().reshape([20, 1]);
    let (value, gradient) = jit(value_and_grad(nll))(&a, &ys);
    close(&value, &[-5.520208198200594]);
    close(&gradient, &[7.439529297047532, 1.9260961987794705, 5.281250088530915, 1.518531054044185]);
    Ok(())
}

#[test]
fn a_gaussian_process_to_the_second_order() -> Result<()> {
    let nll = |l: &Array| {
        let x = Array::arange(0.0_f64, 6.0, 1.0);
        let d = (x.expand_dims(1) - x.expand_dims(0)) / l;
        let k = (-0.5 * d.square()).exp() + 0.1 * Array::eye::<f64>(6);
        let (y, chol) = (x.cos(), linalg::cholesky(&k));
        0.5 * y.dot(&linalg::cho_solve(&chol, &y)) + chol.diagonal().log().sum()
    };
    let l = Array::from(1.3_f64);
    close(&jit(nll)(&l), &[-0.23706934008151515]);
    close(&jit(grad(nll))(&l), &[-1.262930822913631]);
    close(&jit(grad(grad(nll)))(&l), &[3.9172942210618027]);
    Ok(())
}

#[test]
fn decompositions_have_derivatives() -> Result<()> {
    let a = Array::from([[4.0_f64, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]]);
    let least = |a: &Array| linalg::eigh(&((a + a.t()) / 2.0)).0.index(0);
    close(
        &jit(grad(least))(&a),
        &[
            0.06403043678194698,
            -0.013522260121280603,
            -0.244433402849677,
            -0.013522260121280603,
            0.0028556968838158803,
            0.051620638898952693,
            -0.244433402849677,
            0.051620638898952693,
            0.9331138663342369,
        ],
    );
    let nuclear = |a: &Array| linalg::svd(&(a * Array::from([1.0_f64, 2.0, 3.0]))).1.sum();
    close(&jit(nuclear)(&a), &[16.095799981508172]);
    // d log|det A| = A^-T, for a batch
    let batch = Array::stack([&a, &(&a * 2.0), &(&a + 1.0)], 0);
    let g = jit(vmap(grad(|a: &Array| linalg::slogdet(a).1)))(&batch);
    close(&g, &linalg::inv(&batch).swap_axes(1, 2).to_vec::<f64>()?);
    Ok(())
}

#[test]
fn signals_and_windows() -> Result<()> {
    let power = |x: &Array| (fft::rfft(x).abs().square() * Array::arange(0.0_f64, 7.0, 1.0)).sum();
    let x = Array::arange(0.0_f64, 12.0, 1.0).sin();
    close(&jit(power)(&x), &[72.33849914272257]);
    close(&jit(grad(power))(&x).index(..3), &[2.9373558378439895, 17.20570169597763, 22.192164759529344]);
    let image = Array::arange(0.0_f64, 50.0, 1.0).reshape([1, 5, 5, 2]) / 10.0;
    let w = Array::arange(0.0_f64, 72.0, 1.0).cos().reshape([3, 3, 2, 4]);
    // options as the project writes options everywhere; the layout is text
    let conv = |x: &Array, w: &Array| nn::conv("NHWC,HWIO->NHWC", x, w, nn::Conv::default().strides([2, 2]).same());
    let y = jit(conv)(&image, &w);
    assert_eq!(y.shape(), [1, 3, 3, 4]);
    close(&y.sum(), &[27.400883577910932]);
    let g = jit(grad_by(1, move |x: &Array, w: &Array| conv(x, w).square().sum()))(&image, &w);
    close(&g.reshape([-1]).index(..3), &[60.4278514575431, 88.93049955852177, 35.67085648940669]);
    Ok(())
}

#[derive(Tree, Clone, Debug)]
struct Model {
    weights: Array,
    bias: Option<Array>,
}

#[test]
fn training_and_files() -> Result<()> {
    let loss = |m: &Model| {
        let (w, b) = (&m.weights, m.bias.as_ref().unwrap());
        (w - 3.0).square().sum() + 10.0 * (b + 1.0).square().sum()
    };
    let adam = optim::adam(0.1);
    let mut model = Model { weights: Array::from([1.0_f64]), bias: Some(Array::from([-2.0_f64])) };
    let mut state = adam.init(&model);
    let step = jit({
        let adam = adam.clone();
        move |m: &Model, s: &optim::State<Model>| {
            let (value, g) = value_and_grad(loss)(m);
            let (m, s) = adam.step(m, &g, s);
            (value, m, s)
        }
    });
    for _ in 0..100 {
        (_, model, state) = step(&model, &state);
    }
    assert_eq!(step.stats().compiles, 1);
    // optax.adam(0.1) after 100 steps
    close(&model.weights, &[3.0084228004109606]);
    close(model.bias.as_ref().unwrap(), &[-1.002936676291132]);
    let folder = std::env::temp_dir().join(format!("gradus-contract-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["model.npz", "model.safetensors"] {
        let path = folder.join(name);
        files::save(&path, &model)?;
        let again: Model = files::load(&path, &model)?; // the second argument gives the structure
        assert!(tree::all_close(&model, &again, 0.0)?);
        std::fs::write(&path, &std::fs::read(&path).unwrap()[..40]).unwrap();
        let e = files::load::<Model>(&path, &model).unwrap_err().to_string();
        assert!(e.contains(name), "{e}");
    }
    std::fs::remove_dir_all(folder).unwrap();
    Ok(())
}

#[test]
fn no_splinters() -> Result<()> {
    let f = |x: &Array| (1.0 - x).log() + 2e-2 / x - 0.5 * (x + 1.0).sqrt();
    let x = Array::from([0.25_f64, 0.5]);
    let [n] = x.sizes()?;
    assert_eq!(n, 2);
    let mut total = f(&x);
    total += &x;
    total *= 2.0;
    check_grads(f, &x, 2)?;
    struct Service {
        gradient: Fun<(Array,), Array>,
    }
    let service = Service { gradient: jit(grad(move |x: &Array| f(x).sum())) };
    assert_eq!((service.gradient)(&x).shape(), [2]);
    Ok(())
}

#[test]
fn implicit_derivatives() -> Result<()> {
    // the root of x^3 = a by any solver the user likes; its derivative comes from the equation, not from the iterations
    let cube_root = |a: &Array| {
        root(
            |x: &Array, a: &Array| x.powi(3) - a,
            |a: &Array| {
                while_loop(
                    |x: &Array| (x.powi(3) - a).abs().gt(1e-12),
                    |x| x - (x.powi(3) - a) / (3.0 * x * x),
                    a.clone(),
                )
            },
            a,
        )
    };
    let a = Array::from(8.0_f64);
    close(&jit(cube_root)(&a), &[2.0]);
    close(&jit(grad(cube_root))(&a), &[1.0 / 12.0]);
    close(&jit(grad(grad(cube_root)))(&a), &[-2.0 / 9.0 * 8.0_f64.powf(-5.0 / 3.0)]);
    Ok(())
}

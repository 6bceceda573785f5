//! Every function of the library in every float: numbers that it is written with must fit in all of them, and what it gives is of the dtype that it was given.

use gradus::prelude::*;
use gradus::{special, stats};

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

type Case = (&'static str, fn(&Array) -> Array);

macro_rules! cases {
    ($($path:ident :: { $($name:ident),* $(,)? })*) => { vec![$($((stringify!($name), (|x: &Array| $path::$name(x)) as fn(&Array) -> Array)),*),*] };
}

/// Runs functions of `[2, 3]` numbers between 0 and 1 in every dtype.
fn sweep(cases: &[Case], dtypes: &[DType]) {
    let numbers = Array::from([[0.25_f64, 0.5, 0.75], [0.125, 0.625, 0.875]]);
    for (name, f) in cases {
        let wanted = f(&numbers).cast(DType::F64).ok().unwrap_or_else(|e| panic!("{name}: {e}"));
        for dtype in dtypes {
            let y = f(&numbers.cast(*dtype)).ok().unwrap_or_else(|e| panic!("{name} of {dtype}: {e}"));
            assert_eq!(y.dtype(), *dtype, "{name}");
            let near = match dtype {
                DType::F64 => 1e-12,
                DType::F32 => 1e-4,
                _ => 0.1,
            };
            assert!(tree::all_close(&y.cast(DType::F64), &wanted, near).unwrap(), "{name} of {dtype}: {y} {wanted}");
        }
    }
}

#[test]
fn activations_losses_and_layers() {
    sweep(
        &cases![nn::{
            gelu, gelu_exact, hard_sigmoid, hard_silu, hard_tanh, log_sigmoid, mish, relu6, selu, sigmoid, silu, soft_sign,
            softplus, sparse_plus, sparse_sigmoid,
        }],
        &FLOATS,
    );
    let cases: Vec<Case> = vec![
        ("celu", |x| nn::celu(x, 1.5)),
        ("elu", |x| nn::elu(x, 1.5)),
        ("leaky_relu", |x| nn::leaky_relu(x, 0.01)),
        ("squareplus", |x| nn::squareplus(x, 4.0)),
        ("mse", |x| nn::mse(x, &x.roll(1, 1))),
        ("huber", |x| nn::huber(x, &x.roll(1, 1), 0.1)),
        ("huber beyond", |x| nn::huber(x, &x.roll(1, 1), 1e11)),
        ("log_cosh", |x| nn::log_cosh(x, &x.roll(1, 1))),
        ("softmax_cross_entropy", |x| nn::softmax_cross_entropy(x, &x.roll(1, 1))),
        ("with labels", |x| nn::softmax_cross_entropy_with_integer_labels(x, &Array::from([2_i32, 0]))),
        ("sigmoid_binary_cross_entropy", |x| nn::sigmoid_binary_cross_entropy(x, &x.roll(1, 1))),
        ("hinge", |x| nn::hinge(x, &x.roll(1, 1))),
        ("kl_divergence", |x| nn::kl_divergence(&x.log(), &x.roll(1, 1))),
        ("cosine_similarity", |x| nn::cosine_similarity(x, &x.roll(1, 1), 1e-8)),
        ("of nothing", |x| nn::cosine_similarity(&x.zeros_like(), x, 0.0)),
        ("label_smoothing", |x| nn::label_smoothing(x, 0.1)),
        ("linear", |x| nn::linear(x, &x.t(), None)),
        ("layer_norm", |x| nn::layer_norm(x, &x.index(0), &x.index(1), 1e-5)),
        ("rms_norm", |x| nn::rms_norm(x, &x.index(0), 1e-5)),
        ("batch_norm", |x| {
            let norm = nn::BatchNorm::over([0]);
            norm.train(x, &norm.init(x)).0
        }),
        ("dropout of none", |x| nn::dropout(Key::new(1), x, 0.0)),
        ("attention", |x| {
            let x = x.reshape([3, 1, 2]);
            nn::attention(&x, &x, &x, nn::Attention::default())
        }),
        ("conv", |x| nn::conv("NWC,WIO->NWC", &x.expand_dims(2), &x.reshape([3, 1, 2]), nn::Conv::default())),
        ("max_pool", |x| nn::max_pool("NWC", &x.expand_dims(2), nn::Pool::window([2]))),
        ("avg_pool", |x| nn::avg_pool("NWC", &x.expand_dims(2), nn::Pool::window([2]))),
    ];
    sweep(&cases, &FLOATS);
}

#[test]
fn special_functions() {
    sweep(
        &cases![special::{
            i0, i0e, i1, i1e, factorial, gamma, gammasgn, exp1, dawsn, erfcx, expi, spence, entr, logit, log_ndtr, ndtr, ndtri,
        }],
        &FLOATS,
    );
    let cases: Vec<Case> = vec![
        ("beta", |x| special::beta(x, x + 1.0)),
        ("betaln", |x| special::betaln(x, x + 1.0)),
        ("comb", |x| special::comb(x + 2.0, x)),
        ("poch", |x| special::poch(x, x + 1.0)),
        ("zeta", |x| special::zeta(x + 2.0, x)),
        ("betainc", |x| special::betainc(x + 1.0, x + 2.0, x)),
        ("gammainc", |x| special::gammainc(x + 1.0, x)),
        ("gammaincc", |x| special::gammaincc(x + 1.0, x)),
        ("expn", |x| special::expn(2, x)),
        ("expn of a large order", |x| special::expn(20, x)),
        ("boxcox", |x| special::boxcox(x, 0.5)),
        ("boxcox1p", |x| special::boxcox1p(x, 1e-4)),
        ("kl_div", |x| special::kl_div(x, x + 1.0)),
        ("rel_entr", |x| special::rel_entr(x, x + 1.0)),
        ("xlogy", |x| special::xlogy(x, x + 1.0)),
        ("xlog1py", |x| special::xlog1py(x, x)),
        ("owens_t", |x| special::owens_t(x, 0.5)),
        ("fresnel", |x| special::fresnel(x).0),
        ("sici", |x| special::sici(x).1),
        ("multigammaln", |x| special::multigammaln(&(x + 2.0), 2)),
    ];
    sweep(&cases, &FLOATS);
}

#[test]
fn distributions() {
    let cases: Vec<Case> = vec![
        ("norm", |x| stats::norm::logpdf(x, 0.1, 2.0) + stats::norm::cdf(x, 0.1, 2.0) + stats::norm::ppf(x, 0.1, 2.0)),
        ("beta", |x| stats::beta::logpdf(x, 2.0, 3.0, 0.0, 1.0)),
        ("gamma", |x| stats::gamma::logpdf(x, 2.0, 0.0, 1.0)),
        ("t", |x| stats::t::logpdf(x, 3.0, 0.0, 1.0)),
        ("cauchy", |x| stats::cauchy::logpdf(x, 0.0, 1.0)),
        ("expon", |x| stats::expon::logpdf(x, 0.0, 1.0)),
        ("laplace", |x| stats::laplace::logpdf(x, 0.0, 1.0)),
        ("logistic", |x| stats::logistic::logpdf(x, 0.0, 1.0)),
        ("uniform", |x| stats::uniform::logpdf(x, 0.0, 1.0)),
        ("truncnorm", |x| stats::truncnorm::logpdf(x, -1.0, 2.0, 0.0, 1.0)),
        ("vonmises", |x| stats::vonmises::logpdf(x, 2.0)),
        ("sem", |x| stats::sem(x)),
    ];
    sweep(&cases, &FLOATS);
}

#[test]
fn optimizers_and_solvers() {
    /// Residuals of `(p - 0.5)(1, 2, 3)`: their least place is exact in every dtype.
    fn residuals(p: &Array) -> Array {
        (p - 0.5) * Array::from([1.0_f64, 2.0, 3.0]).cast(p.dtype())
    }
    let cases: Vec<Case> = vec![
        ("levenberg_marquardt", |x| optim::levenberg_marquardt().minimize(residuals, &x.index(0)).point),
        ("without a matrix", |x| optim::levenberg_marquardt().matrix_free().minimize(residuals, &x.index(0)).point),
        ("gauss_newton", |x| optim::gauss_newton().minimize(residuals, &x.index(0)).point),
        ("lbfgs", |x| optim::lbfgs().minimize(|p: &Array| residuals(p).square().sum(), &x.index(0)).point),
        ("whether it converged", |x| {
            // Residuals that stay, so that rounding decides where it ends.
            let t = Array::linspace(0.0_f64, 1.0, 20).cast(x.dtype());
            let waves = move |p: &Array| (&t * p.index(0)).exp() - (&t * 3.0).sin() * p.index(1) - 1.0;
            let found = optim::levenberg_marquardt().minimize(waves, &x.index((0, ..2)));
            assert!(x.dtype().size() == 2 || found.converged.item::<bool>().unwrap(), "{found:?}");
            found.value
        }),
        ("adam", |x| optim::adam(0.1).clip(1e11).clip_norm(1e11).step(x, x, &optim::adam(0.1).init(x)).0),
        ("lion", |x| optim::lion(0.1).step(x, x, &optim::lion(0.1).init(x)).0),
        ("rmsprop", |x| {
            let rule = optim::rmsprop(0.1).centered().momentum(0.9);
            rule.step(x, x, &rule.init(x)).0
        }),
        ("adagrad", |x| optim::adagrad(0.1).step(x, x, &optim::adagrad(0.1).init(x)).0),
        ("ema", |x| optim::ema(0.9).step(x, &optim::ema(0.9).init(x)).0),
        ("fixed_point", |x| fixed_point(|y: &Array, a: &Array| y * 0.25 + a, x.zeros_like(), x)),
        ("cg", |x| solvers::cg(|v: &Array| v * 2.0, x)),
        ("gmres", |x| solvers::gmres(|v: &Array| v * 2.0, x)),
        ("bicgstab", |x| solvers::bicgstab(|v: &Array| v * 2.0, x)),
    ];
    sweep(&cases, &FLOATS);
}

#[test]
fn differential_equations() {
    let cases: Vec<Case> = vec![
        ("f64 times", |x| ode::integrate(|y: &Array, _| -y, x, &Array::from([0.0_f64, 0.5, 2.0]))),
        ("f32 times", |x| ode::integrate(|y: &Array, _| -y, x, &Array::from([0.0_f32, 0.5, 2.0]))),
    ];
    sweep(&cases, &[DType::F16, DType::BF16]);
    for (name, f) in cases {
        for dtype in [DType::F32, DType::F64] {
            let x = Array::from([1.0_f64]).cast(dtype);
            let y = f(&x).cast(DType::F64);
            let wanted = Array::from([[1.0_f64], [(-0.5_f64).exp()], [(-2.0_f64).exp()]]);
            assert!(tree::all_close(&y, &wanted, 1e-5).unwrap(), "{name} {dtype} {y}");
        }
    }
    // Trees of several dtypes: what each part was, it stays.
    let y0 = (Array::from([1.0_f32]).cast(DType::F16), Array::from(2.0_f32));
    let slope = |(a, b): &(Array, Array), _: &Array| (-a, b * 0.5);
    let (a, b) = ode::integrate(slope, &y0, &Array::from([0.0_f64, 1.0]));
    assert_eq!([a.dtype(), b.dtype()], [DType::F16, DType::F32]);
    assert!((a.cast(DType::F64).index((1, 0)).item::<f64>().unwrap() - (-1.0_f64).exp()).abs() < 1e-3);
    let by_start = |x: &Array| ode::integrate(|y: &Array, _| -y, x, &Array::from([0.0_f64, 1.0])).index(1).sum();
    let slope = jit(grad(by_start))(&Array::from([1.0_f32]).cast(DType::F16)).cast(DType::F64);
    assert!((slope.index(0).item::<f64>().unwrap() - (-1.0_f64).exp()).abs() < 2e-3, "{slope}");
}

/// What is done by libraries, in the floats that they have.
#[cfg(all(feature = "fft", feature = "linalg"))]
#[test]
fn linear_algebra_and_signals() {
    /// A positive definite matrix of the numbers.
    fn square(x: &Array) -> Array {
        x.matmul(&x.t()) + Array::eye::<f64>(2).cast(x.dtype())
    }
    let cases: Vec<Case> = vec![
        ("vector_norm", |x| linalg::vector_norm(x, 3.0, -1)),
        ("matrix_norm", |x| linalg::matrix_norm(x, linalg::Norm::Nuclear)),
        ("cond", |x| linalg::cond(&square(x), linalg::Norm::Frobenius)),
        ("expm", |x| linalg::expm(&square(x))),
        ("logm", |x| linalg::logm(&square(x)).real()),
        ("sqrtm", |x| linalg::sqrtm(&square(x)).real()),
        ("solve", |x| linalg::solve(&square(x), &x.index((.., 0)))),
        ("pinv", |x| linalg::pinv(x)),
        ("cholesky", |x| linalg::checked(&linalg::cholesky(&square(x)))),
        ("slogdet", |x| linalg::slogdet(&square(x)).1),
        ("stft", |x| gradus::signal::Stft::new(2).stft(&x.flatten()).abs()),
        ("istft", |x| {
            let frames = gradus::signal::Stft::new(4).hop(1);
            frames.istft(&frames.stft(&x.flatten()))
        }),
        ("convolve", |x| signal::convolve(&x.index(0), &x.index(1), signal::Overlap::Full)),
        ("dct", fft::dct),
        ("irfft", |x| fft::irfft(&fft::rfft(&x.flatten()))),
    ];
    sweep(&cases, &[DType::F32, DType::F64]);
}

#[test]
fn initial_weights() {
    fn of<T: gradus::Element>() {
        for (name, w) in [
            ("he_normal", nn::init::he_normal::<T>(Key::new(0), [4, 8])),
            ("he_uniform", nn::init::he_uniform::<T>(Key::new(0), [4, 8])),
            ("glorot_normal", nn::init::glorot_normal::<T>(Key::new(0), [4, 8])),
            ("glorot_uniform", nn::init::glorot_uniform::<T>(Key::new(0), [4, 8])),
            ("lecun_normal", nn::init::lecun_normal::<T>(Key::new(0), [4, 8])),
            ("truncated_normal", nn::init::truncated_normal::<T>(Key::new(0), [4, 8], 0.02)),
        ] {
            let w = w.ok().unwrap_or_else(|e| panic!("{name} of {}: {e}", T::DTYPE));
            assert_eq!(w.dtype(), T::DTYPE, "{name}");
            assert!(w.is_finite().all().item::<bool>().unwrap(), "{name}: {w}");
        }
    }
    of::<f16>();
    of::<bf16>();
    of::<f32>();
    of::<f64>();
}

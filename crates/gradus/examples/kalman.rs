//! How noisy is a measurement, and how restless what it measures? The likelihood of a state space model by a Kalman filter,
//! which is a `scan`, and its two unknown noises by gradient.

use gradus::prelude::*;

/// The logarithms of two standard deviations: any number is allowed, so nothing keeps the search from moving freely.
#[derive(Clone, Tree)]
struct Noise {
    /// By how much the velocity changes in a step.
    push: Array,
    /// By how much a measurement of the position is off.
    measurement: Array,
}

impl Noise {
    fn new(push: f64, measurement: f64) -> Noise {
        Noise { push: Array::from(push.ln()), measurement: Array::from(measurement.ln()) }
    }
}

/// A position and a velocity, one step later.
fn motion() -> Array {
    Array::from([[1.0_f64, 1.0], [0.0, 1.0]])
}

/// Positions of something that is pushed at random, as they are measured.
fn measurements(key: Key, noise: &Noise, steps: usize) -> Array {
    let [a, b] = key.split();
    let pushes = random::normal::<f64>(a, [steps]) * noise.push.exp();
    let (_, positions) = scan(
        |state: &Array, push: &Array| {
            let next = motion().matmul(state) + push * Array::from([0.0, 1.0]);
            let position = next.index(0);
            (next, position)
        },
        Array::zeros::<f64>([2]),
        &pushes,
    );
    positions + random::normal::<f64>(b, [steps]) * noise.measurement.exp()
}

/// Minus the logarithm of the probability of the measurements, and where the filter believes the thing to be at each.
fn filter(noise: &Noise, measured: &Array) -> (Array, Array) {
    let (a, see) = (motion(), Array::from([1.0_f64, 0.0]));
    let process = (2.0 * &noise.push).exp() * Array::from([[0.0, 0.0], [0.0, 1.0]]);
    let spread = (2.0 * &noise.measurement).exp();
    let step = |(mean, cov): &(Array, Array), y: &Array| {
        // What is expected, before the measurement is looked at.
        let mean = a.matmul(mean);
        let cov = a.matmul(cov).matmul(&a.t()) + &process;
        // How far off the measurement is, and how far off it should be.
        let off = y - see.dot(&mean);
        let reach = cov.matmul(&see);
        let variance = see.dot(&reach) + &spread;
        let gain = &reach / &variance;
        let term = 0.5 * (off.square() / &variance + variance.log() + (2.0 * std::f64::consts::PI).ln());
        let (mean, cov) = (mean + &gain * off, cov - gain.outer(&reach));
        let position = mean.index(0);
        ((mean, cov), (term, position))
    };
    let begin = (Array::zeros::<f64>([2]), Array::eye::<f64>(2));
    let (_, (terms, positions)) = scan(step, begin, measured);
    (terms.sum(), positions)
}

fn nll(noise: &Noise, measured: &Array) -> Array {
    filter(noise, measured).0
}

/// Makes measurements, fits the noises, and says how sure they are.
pub fn main() -> Result<()> {
    let truth = Noise::new(0.1, 1.0);
    let measured = measurements(Key::new(8), &truth, 300);

    let adam = optim::adam(optim::Schedule::cosine(0.1, 300));
    let mut noise = Noise::new(1.0, 0.3);
    let mut state = adam.init(&noise);
    let step = jit(move |noise: &Noise, state: &optim::State<Noise>, measured: &Array| {
        let (value, gradient) = value_and_grad(nll)(noise, measured);
        let (noise, state) = adam.step(noise, &gradient, state);
        (value, noise, state)
    });
    for i in 0..300 {
        let value;
        (value, noise, state) = step(&noise, &state, &measured);
        if i % 60 == 0 {
            let (push, off) = (noise.push.exp(), noise.measurement.exp());
            println!("step {i:3}  -log p {value:9.4}  pushes of {push:.4}, measurements off by {off:.4}");
        }
    }

    // The inverse of the curvature at the best place is how far estimates scatter. Derivatives of second order go through
    // the filter as the first do. A tree becomes a vector for it: two numbers, a matrix of 2 x 2.
    let (point, back) = tree::ravel(&noise);
    let curvature = jit(hessian(move |x: &Array| nll(&back.call(x), &measured)));
    let error = linalg::inv(&curvature(&point)).diagonal().sqrt().to_vec::<f64>()?;
    let pairs = [("pushes", &noise.push, &truth.push), ("measurements", &noise.measurement, &truth.measurement)];
    for ((name, found, true_value), error) in pairs.into_iter().zip(error) {
        let (found, true_value) = (found.item::<f64>()?, true_value.item::<f64>()?);
        let sigmas = (found - true_value) / error;
        println!(
            "{name:12} {:.4}, between {:.4} and {:.4}; it was {:.4}, {sigmas:+.1} errors away",
            found.exp(),
            (found - error).exp(),
            (found + error).exp(),
            true_value.exp()
        );
        assert!(sigmas.abs() < 3.0, "{name}: {sigmas} errors away from the truth");
        assert!(error < 0.3, "{name}: an error of {error}");
    }
    Ok(())
}

//! A partial differential equation in Fourier space, and a gradient through all of its time steps: how viscous is a fluid whose
//! motion was seen?

use gradus::prelude::*;

const N: usize = 64;
const STEPS: usize = 50;
const TIME: f64 = 1.0;

/// Wave numbers of the half spectrum of a real function with period 2π.
fn waves() -> Array {
    fft::rfftfreq::<f64>(N, 1.0 / N as f64)
}

/// Burgers' equation, `u_t + u u_x = ν u_xx`, from one time to a later one.
///
/// In Fourier space viscosity is a factor for each wave, which is applied exactly; what is left is stepped by Runge and Kutta's
/// fourth-order method. The upper third of the waves is cut off: products of others fold into it.
fn burgers(u: &Array, viscosity: &Array) -> Array {
    let dt = TIME / STEPS as f64;
    let k = waves();
    let kept = k.le(N as f64 / 3.0).cast(DType::F64);
    let half = (viscosity * k.square() * (-0.5 * dt)).exp();
    let zero = k.zeros_like();
    let steepen = Array::complex(&zero, &(&k * &kept * -0.5)); // -½ d/dx
    let complex = |x: &Array| Array::complex(x, &zero);
    let (half, kept) = (complex(&half), complex(&kept));
    let slope = |v: &Array| fft::rfft(&fft::irfft(v).square()) * &steepen;
    let step = |v: &Array, _: &()| {
        let a = slope(v) * dt;
        let b = slope(&((v + &a * 0.5) * &half)) * dt;
        let c = slope(&(v * &half + &b * 0.5)) * dt;
        let d = slope(&(v * &half * &half + &c * &half)) * dt;
        let sum = (v + a / 6.0) * &half * &half + (b + c) * &half / 3.0 + d / 6.0;
        (sum, ())
    };
    let (last, ()) = ScanOptions::new().length(STEPS).scan(step, fft::rfft(u) * kept, &());
    fft::irfft(&last)
}

/// The exact solution, by Cole's and Hopf's substitution: `u = -2ν φ_x / φ` where φ obeys the heat equation, in which every
/// wave only decays. For `u = sin x` at first, φ is `exp(cos x / 2ν)`.
fn exact(x: &Array, viscosity: f64) -> Array {
    let k = waves();
    let zero = k.zeros_like();
    let phi = fft::rfft(&((x.cos() - 1.0) / (2.0 * viscosity)).exp());
    let phi = phi * Array::complex(&(k.square() * (-viscosity * TIME)).exp(), &zero);
    let slope = fft::irfft(&(&phi * Array::complex(&zero, &k)));
    slope / fft::irfft(&phi) * (-2.0 * viscosity)
}

fn show(u: &Array) -> Result<()> {
    let heights = u.index(Index::step(.., 2)).to_vec::<f64>()?;
    for level in [0.75, 0.25, -0.25, -0.75] {
        let line: String = heights.iter().map(|h| if (h - level).abs() <= 0.25 { '●' } else { ' ' }).collect();
        println!("  {line}");
    }
    Ok(())
}

/// Solves, compares with the exact solution, and finds a viscosity and a beginning from an end.
pub fn main() -> Result<()> {
    let x = Array::arange(0.0_f64, N as f64, 1.0) * (2.0 * std::f64::consts::PI / N as f64);
    let (start, truth) = (x.sin(), 0.15);
    println!("a wave, and what becomes of it: it steepens, and viscosity holds against that");
    show(&start)?;
    let solve = jit(burgers);
    let end = solve(&start, &Array::from(truth));
    show(&end)?;
    let error = (&end - exact(&x, truth)).abs().max().item::<f64>()?;
    println!("the largest difference from the exact solution: {error:.1e}");
    assert!(error < 1e-5, "the solution is off by {error}");

    // The slope of the energy at the end by the viscosity: back through all steps and transforms.
    let energy = |viscosity: &Array, start: &Array| 0.5 * burgers(start, viscosity).square().mean();
    let (value, slope) = jit(value_and_grad(energy))(&Array::from(truth), &start);
    let nearby = |h: f64| energy(&Array::from(truth + h), &start);
    let difference = ((nearby(1e-4) - nearby(-1e-4)) / 2e-4).item::<f64>()?;
    println!("energy {value:.6}, its slope by viscosity {slope:.6}, by differences {difference:.6}");
    assert!((slope.item::<f64>()? - difference).abs() < 1e-6, "the slope is that of differences");

    // The end is seen with noise. Which viscosity was it?
    let seen = &end + 0.02 * random::normal::<f64>(Key::new(1), [N]);
    let fit = jit(|start: &Array, seen: &Array| {
        let misfit = |log: &Array| nn::mse(&burgers(start, &log.exp()), seen);
        optim::lbfgs().tolerance(1e-8).minimize(misfit, &Array::from(0.5_f64.ln()))
    });
    let found = fit(&start, &seen);
    let viscosity = found.point.exp().item::<f64>()?;
    println!("viscosity {viscosity:.4} after {} steps from 0.5; it was {truth}", found.steps);
    assert!((viscosity - truth).abs() < 0.02, "a viscosity of {viscosity}");

    // And if the viscosity is known: which beginning was it? The gradient is by 64 numbers now, and costs the same.
    let recover = jit(|seen: &Array, viscosity: &Array| {
        let misfit = |u: &Array| nn::mse(&burgers(u, viscosity), seen);
        optim::lbfgs().steps(100).minimize(misfit, seen)
    });
    let found = recover(&end, &Array::from(truth));
    let off = |u: &Array| -> Result<f64> { (u - &start).square().mean().sqrt().item() };
    let (before, after) = (off(&end)?, off(&found.point)?);
    println!("the beginning from the end: off by {before:.4} at first, by {after:.4} after {} steps", found.steps);
    assert!(after < 0.25 * before, "the beginning is off by {after}");
    Ok(())
}

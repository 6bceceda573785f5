//! The tour: captures a function, looks at its phases, unrolls, freezes and tracks, explains a miss, differentiates
//! (through a loop, and with less memory), and trains a small network on two spirals.

use gradus::prelude::*;
use gradus::{Interpreter, nn};
use indicatif::ProgressBar;

fn f(x: &Array) -> Array {
    (x * x).sin()
}

fn power(x: &Array, n: &Static<u32>) -> Array {
    let mut y = Array::from(1.0_f64);
    for _ in 0..**n {
        y = &y * x;
    }
    y
}

#[derive(Clone, Tree)]
struct Params {
    values: Array,
    scale: Num,
}

fn weighted(p: &Params) -> Array {
    (&p.values * &p.scale).sum()
}

#[derive(Clone, Tree)]
struct Network {
    layers: Vec<Layer>,
}

#[derive(Clone, Tree)]
struct Layer {
    weights: Array,
    bias: Array,
}

fn logits(net: &Network, x: &Array) -> Array {
    let mut h = x.clone();
    for (i, layer) in net.layers.iter().enumerate() {
        h = h.dot(&layer.weights) + &layer.bias;
        if i + 1 < net.layers.len() {
            h = h.tanh();
        }
    }
    h
}

/// Mean cross entropy of two classes; `softplus` does not overflow for large logits.
fn loss(net: &Network, x: &Array, labels: &Array) -> Array {
    let z = logits(net, x);
    (nn::softplus(&z) - &z * labels).mean()
}

/// Newton's iteration: the number of steps depends on the numbers.
fn square_root(a: &Array) -> Array {
    while_loop(|x: &Array| (x * x - a).abs().gt(1e-12_f64), |x: &Array| (x + a / x) * 0.5_f64, Array::from(1.0_f64))
}

/// A staged function for the sum of `f` over an array, and its gradient.
fn value_and_slope_of(f: fn(&Array) -> Array) -> Fun<(Array,), (Array, Array)> {
    jit(value_and_grad(move |x: &Array| f(x).sum()))
}

fn heading(text: &str) {
    println!("\n━━ {text} ━━");
}

/// Everything once, in the order of the headings.
pub fn main() -> Result<()> {
    heading("a function becomes a program");
    let traced = jit(f).trace(&Array::spec("f64[]"))?;
    print!("{}", traced.program());
    let again: Program = traced.program().to_string().parse()?;
    println!("its text parses back to an equal program: {}", again == *traced.program());

    heading("every phase can be looked at");
    print!("{}", jit(f).phases(&Array::from(1.5_f64))?);

    heading("what is static is consumed: power(x, 3)");
    let p = jit(power);
    let x = Array::from(2.0_f64);
    println!("power(2, 3) = {}", p(&x, &Static(3)));
    print!("traced:    {}", p.trace(&x, &Static(3))?.program());
    print!("optimized: {}", p.trace(&x, &Static(3))?.optimized());

    heading("a miss is explained");
    print!("{}", p.explain(&x, &Static(4)));

    heading("numbers are frozen or tracked by choice");
    let params = Params { values: Array::from([1.0_f64, 2.0]), scale: Num::from(3.0_f64) };
    let frozen = jit(weighted).compile(&params)?;
    print!("frozen:  {}", frozen.program());
    let other = Params { scale: Num::from(4.0_f64), ..params.clone() };
    if let Err(e) = frozen.call(&other) {
        println!("called with another scale:\n{e}");
    }
    let tracked = params.track_numbers(TrackNumbers::All);
    print!("tracked: {}", jit(weighted).compile(&tracked)?.program());

    heading("an error names the line");
    println!("{}", Array::from([1.0_f64, 2.0]) + Array::from([1.0_f64, 2.0, 3.0]));

    heading("reverse mode: primal, pullback and what passes between them");
    let (y, pullback) = vjp(f, &Array::from(1.5_f64));
    print!("{}{}", pullback.primal()?, pullback.program()?);
    let names: Vec<String> = pullback.residuals().iter().map(ToString::to_string).collect();
    println!("residuals: {} ({} bytes)", names.join(", "), pullback.residual_bytes());
    println!("f(1.5) = {y}, f'(1.5) = {}", pullback.call(&Array::from(1.0_f64)));

    heading("reverse mode through a loop whose length only the values decide");
    let slope = jit(grad(square_root));
    print!("{}", jit(square_root).trace(&Array::spec("f64[]"))?.program());
    println!(
        "the slope of the square root at 2 = {} (1/(2·√2) = {})",
        slope(&Array::from(2.0_f64)),
        0.5 / 2.0_f64.sqrt()
    );

    heading("memory is a choice: the same gradient, fewer bytes kept");
    let layer = |h: &Array| h.sin().exp().tanh();
    let many = Array::from(vec![0.3_f64; 1000]);
    let (_, plain) = vjp(move |x: &Array| (0..8).fold(x.clone(), |h, _| layer(&h)).sum(), &many);
    let (_, saving) = vjp(move |x: &Array| (0..8).fold(x.clone(), |h, _| checkpoint(layer)(&h)).sum(), &many);
    let same = {
        let one = Array::from(1.0_f64);
        (plain.call(&one) - saving.call(&one)).abs().max()
    };
    println!(
        "plain: {} bytes; with checkpoints: {} bytes; largest difference: {same}",
        plain.residual_bytes(),
        saving.residual_bytes()
    );

    heading("a program becomes machine code: kernels, and what they cost");
    let smooth: fn(&Array) -> Array = |x| (x * x).sin() * 0.5_f64;
    let many = Array::from((0..100_000).map(|i| f64::from(i) * 1e-5).collect::<Vec<_>>());
    let value_and_slope = value_and_slope_of(smooth);
    for phase in value_and_slope.phases(&many)?.iter() {
        if matches!(phase.name, "lower" | "plan memory" | "generate code") {
            print!("{phase}");
        }
    }
    for (name, f) in
        [("interpreted", value_and_slope_of(smooth).backend(Interpreter)), ("compiled", value_and_slope_of(smooth))]
    {
        f(&many).0.item::<f64>()?;
        let started = std::time::Instant::now();
        let rounds = 20;
        for _ in 0..rounds {
            f(&many).0.item::<f64>()?;
        }
        println!("{name}: {:.0?} for the value and the gradient of 100,000 numbers", started.elapsed() / rounds);
    }

    heading("training: two spirals, a 2-24-24-1 network, plain gradient descent with momentum");
    train()
}

fn train() -> Result<()> {
    let (x, labels) = spirals(64);
    let mut net = network(&[2, 24, 24, 1]);
    let mut speed = Network { layers: net.layers.iter().map(zeros_like).collect() };
    let step = jit(value_and_grad(loss));
    let rounds = 600;
    let bar = ProgressBar::new(rounds);
    for round in 0..=rounds {
        let (l, g) = step(&net, &x, &labels);
        bar.set_position(round);
        if round % 60 == 0 {
            let right = logits(&net, &x).gt(0.0_f64).eq(labels.gt(0.5_f64)).cast(DType::F64).mean();
            let (l, right) = (l.item::<f64>()?, 100.0 * right.item::<f64>()?);
            bar.suspend(|| println!("round {round:4}  loss {l:.4}  right {right:.0}%"));
        }
        for ((layer, v), d) in net.layers.iter_mut().zip(&mut speed.layers).zip(&g.layers) {
            v.weights = &v.weights * 0.9_f64 - &d.weights * 0.3_f64;
            v.bias = &v.bias * 0.9_f64 - &d.bias * 0.3_f64;
            layer.weights = &layer.weights + &v.weights;
            layer.bias = &layer.bias + &v.bias;
        }
    }
    bar.finish_and_clear();
    let s = step.stats();
    println!("traced {} time(s), compiled {}, found ready {}", s.traces, s.compiles, s.hits);
    Ok(())
}

fn zeros_like(layer: &Layer) -> Layer {
    Layer { weights: layer.weights.zeros_like(), bias: layer.bias.zeros_like() }
}

/// Weights from a fixed sequence, so that every run of the tour is the same.
fn network(sizes: &[usize]) -> Network {
    let mut state = 7u64;
    let mut random = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0
    };
    let layers = sizes.windows(2).map(|w| {
        let scale = (3.0 / w[0] as f64).sqrt();
        let weights: Vec<f64> = (0..w[0] * w[1]).map(|_| random() * scale).collect();
        Layer { weights: Array::from_vec(weights, [w[0], w[1]]), bias: Array::zeros::<f64>([w[1]]) }
    });
    Network { layers: layers.collect() }
}

/// Points on two spirals, and which spiral each is on.
fn spirals(n: usize) -> (Array, Array) {
    let mut points = Vec::new();
    let mut labels = Vec::new();
    for i in 0..2 * n {
        let (arm, t) = ((i % 2) as f64, (i / 2) as f64 / n as f64);
        let angle = 3.0 * t * std::f64::consts::PI + arm * std::f64::consts::PI;
        let radius = 0.2 + 1.3 * t;
        points.push([radius * angle.cos(), radius * angle.sin()]);
        labels.push([arm]);
    }
    (Array::from(points), Array::from(labels))
}

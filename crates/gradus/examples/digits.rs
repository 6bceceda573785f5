//! The first thing people train: a classifier of small images, with minibatches, a test on images it has not seen, and
//! weights that go into a file and come back.

use gradus::prelude::*;
use indicatif::ProgressBar;

/// Each digit as seven rows of five pixels.
const GLYPHS: [[u8; 7]; 10] = [
    [0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110],
    [0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110],
    [0b01110, 0b10001, 0b00001, 0b00010, 0b00100, 0b01000, 0b11111],
    [0b11111, 0b00010, 0b00100, 0b00010, 0b00001, 0b10001, 0b01110],
    [0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010],
    [0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110],
    [0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110],
    [0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000],
    [0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110],
    [0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100],
];
/// A glyph fits into an image of 8 x 8 pixels at so many places.
const PLACES: usize = 8;

#[derive(Clone, Tree)]
struct Layer {
    weights: Array,
    bias: Array,
}

#[derive(Clone, Tree)]
struct Network {
    hidden: Layer,
    out: Layer,
}

impl Layer {
    fn new(key: Key, inputs: usize, outputs: usize) -> Layer {
        Layer { weights: nn::init::he_normal::<f32>(key, [inputs, outputs]), bias: Array::zeros::<f32>([outputs]) }
    }

    fn apply(&self, x: &Array) -> Array {
        nn::linear(x, &self.weights, Some(&self.bias))
    }
}

impl Network {
    fn new(key: Key) -> Network {
        let [a, b] = key.split();
        Network { hidden: Layer::new(a, 64, 96), out: Layer::new(b, 96, 10) }
    }

    fn logits(&self, x: &Array) -> Array {
        self.out.apply(&self.hidden.apply(x).relu())
    }
}

fn loss(net: &Network, x: &Array, labels: &Array) -> Array {
    nn::softmax_cross_entropy_with_integer_labels(&net.logits(x), labels).mean()
}

fn predictions(net: &Network, x: &Array) -> Array {
    net.logits(x).argmax_axis(-1)
}

fn accuracy(net: &Network, x: &Array, labels: &Array) -> Result<f32> {
    predictions(net, x).eq(labels).cast(DType::F32).mean().item()
}

/// Every digit at every place: `f32[80, 64]`, the places of a digit one after the other.
fn glyphs() -> Array {
    let mut pixels = Vec::with_capacity(80 * 64);
    for rows in GLYPHS {
        for place in 0..PLACES {
            let (right, down) = (place % 4, place / 4);
            for y in 0..8 {
                let row = if (down..down + 7).contains(&y) { u32::from(rows[y - down]) << 3 >> right } else { 0 };
                pixels.extend((0..8).map(|x| if row >> (7 - x) & 1 == 1 { 1.0_f32 } else { 0.0 }));
            }
        }
    }
    Array::from_vec(pixels, [10 * PLACES, 64])
}

/// Images of random digits at random places, fainter and stronger ones, with noise; and their labels.
fn images(key: Key, n: usize) -> (Array, Array) {
    let [which, ink, noise] = key.split();
    let which = random::randint::<i32>(which, [n], 0, 10 * PLACES as i32);
    let ink = random::uniform_between::<f32>(ink, [n, 1], 0.7, 1.3);
    let x = glyphs().take(&which, 0) * ink + random::normal::<f32>(noise, [n, 64]) * 0.2;
    (x, which / PLACES as i32)
}

fn show(image: &Array) -> Result<()> {
    for row in image.reshape([8, 8]).unstack(0) {
        let pixels = row.to_vec::<f32>()?;
        let shade = |p: &f32| [" ", "░", "▒", "▓", "█"][(p * 4.0).clamp(0.0, 4.0) as usize].repeat(2);
        println!("  {}", pixels.iter().map(shade).collect::<String>());
    }
    Ok(())
}

/// Trains, tests, saves and loads.
pub fn main() -> Result<()> {
    let key = Key::new(0);
    let (x, labels) = images(key.fold_in(0), 4096);
    let (test_x, test_labels) = images(key.fold_in(1), 512);
    println!("4096 images to learn from; the first is a {}:", labels.index(0));
    show(&x.index(0))?;

    let (epochs, batch) = (8, 64);
    let adam = optim::adam(3e-3);
    let mut net = Network::new(key.fold_in(2));
    let mut state = adam.init(&net);
    // One program for the loss, its gradient and the step: it is traced at the first call and compiled once.
    let step = jit(move |net: &Network, state: &optim::State<Network>, x: &Array, labels: &Array| {
        let (value, gradient) = value_and_grad(loss)(net, x, labels);
        let (net, state) = adam.step(net, &gradient, state);
        (value, net, state)
    });
    let bar = ProgressBar::new(epochs * 4096 / batch);
    for epoch in 0..epochs {
        // Another order in every epoch; a row of it is a batch.
        let order = random::permutation(key.fold_in(10 + epoch as i64), 4096_usize).reshape((-1, batch as usize));
        let mut value = Array::from(0.0_f32);
        for places in order.unstack(0) {
            (value, net, state) = step(&net, &state, &x.take(&places, 0), &labels.take(&places, 0));
            bar.inc(1);
        }
        let right = 100.0 * accuracy(&net, &test_x, &test_labels)?;
        bar.suspend(|| println!("epoch {epoch}  loss {:.4}  right on the test: {right:.1}%", value));
    }
    bar.finish_and_clear();
    println!("the step was compiled {} time(s)", step.stats().compiles);

    let path = std::env::temp_dir().join(format!("gradus-digits-{}.safetensors", std::process::id()));
    files::save(&path, &net)?;
    // The value that is given says which structure to read; its numbers do not matter.
    let again = files::load(&path, &Network::new(Key::new(9)))?;
    let names: Vec<String> = files::load_all(&path)?.into_keys().collect();
    println!("saved and loaded again: {}", names.join(", "));
    std::fs::remove_file(&path).ok();
    let same = predictions(&net, &test_x).array_equal(&predictions(&again, &test_x)).item::<bool>()?;
    let right = accuracy(&again, &test_x, &test_labels)?;
    println!("the loaded network is right on {:.1}% of 512 images it has not seen", 100.0 * right);
    assert!(same, "a loaded network predicts what the saved one did");
    assert!(right > 0.95, "right on {right} of the test");
    Ok(())
}

//! A convolutional network with pooling and batch normalization: how a layer with running numbers is trained and then used.

use gradus::prelude::*;
use indicatif::ProgressBar;

/// Images are this wide and high.
const SIDE: usize = 12;

/// A convolution of 3 x 3 pixels, and what batch normalization multiplies and adds after it.
#[derive(Clone, Tree)]
struct Block {
    kernel: Array,
    scale: Array,
    offset: Array,
}

#[derive(Clone, Tree)]
struct Network {
    blocks: Vec<Block>,
    out: Array,
}

/// What batch normalization remembers: no parameters, so they are not in the tree that gradients are taken by.
type Running = Vec<nn::BatchStats>;

fn norm() -> nn::BatchNorm {
    nn::BatchNorm::over([0, 1, 2]).momentum(0.9)
}

impl Block {
    fn new(key: Key, inputs: usize, outputs: usize) -> Block {
        Block {
            kernel: nn::init::he_normal::<f32>(key, [3, 3, inputs, outputs]),
            scale: Array::ones::<f32>([outputs]),
            offset: Array::zeros::<f32>([outputs]),
        }
    }

    fn conv(&self, x: &Array) -> Array {
        nn::conv("NHWC,HWIO->NHWC", x, &self.kernel, nn::Conv::default().same())
    }

    /// What follows the normalization. Pooling halves height and width.
    fn rest(&self, x: &Array) -> Array {
        nn::max_pool("NHWC", &(x * &self.scale + &self.offset).relu(), nn::Pool::window([2, 2]))
    }
}

impl Network {
    fn new(key: Key) -> Network {
        let [a, b, c] = key.split();
        let blocks = vec![Block::new(a, 1, 8), Block::new(b, 8, 16)];
        Network { blocks, out: nn::init::glorot_normal::<f32>(c, [SIDE / 4 * (SIDE / 4) * 16, 4]) }
    }

    /// Means of 0 and variances of 1, of as many features as each block has.
    fn running(&self) -> Running {
        self.blocks.iter().map(|b| norm().init(&b.kernel.zeros_like().index(..1))).collect()
    }

    /// While training: by the means and variances of this batch, which move the running ones.
    fn train(&self, x: &Array, running: &Running) -> (Array, Running) {
        let (mut x, mut next) = (x.clone(), Vec::new());
        for (block, stats) in self.blocks.iter().zip(running) {
            let (y, stats) = norm().train(&block.conv(&x), stats);
            x = block.rest(&y);
            next.push(stats);
        }
        (self.logits(&x), next)
    }

    /// Afterwards: by the running ones, so that an image is judged alike in every batch.
    fn apply(&self, x: &Array, running: &Running) -> Array {
        let blocks = self.blocks.iter().zip(running);
        self.logits(&blocks.fold(x.clone(), |x, (block, stats)| block.rest(&norm().apply(&block.conv(&x), stats))))
    }

    /// Four numbers for each image.
    fn logits(&self, x: &Array) -> Array {
        x.reshape((x.dim(0), -1)).matmul(&self.out)
    }
}

/// The loss, and the running numbers beside it: they have no gradient.
fn loss(net: &Network, running: &Running, x: &Array, labels: &Array) -> (Array, Running) {
    let (logits, running) = net.train(x, running);
    (nn::softmax_cross_entropy_with_integer_labels(&logits, labels).mean(), running)
}

/// Noisy images of bars in one of four directions, and which.
fn bars(key: Key, n: usize) -> (Array, Array) {
    let [a, b, c] = key.split();
    let labels = random::randint::<i32>(a, [n], 0, 4);
    let angle = (labels.cast(DType::F32) * std::f32::consts::FRAC_PI_4).reshape([-1, 1, 1]);
    let middle = random::uniform_between::<f32>(b, [2, n, 1, 1], -2.5, 2.5);
    let places = Array::arange(0.0_f32, SIDE as f32, 1.0) - (SIDE - 1) as f32 / 2.0;
    let (x, y) = (&places - middle.index(0), places.expand_dims(1) - middle.index(1));
    // Along the bar and across it.
    let along = (&x * angle.cos() + &y * angle.sin()).abs();
    let across = (&y * angle.cos() - &x * angle.sin()).abs();
    let bar = (along.lt(3.5) & across.lt(0.8)).cast(DType::F32);
    let noisy = bar + random::normal::<f32>(c, [n, SIDE, SIDE]) * 0.4;
    (noisy.expand_dims(-1), labels)
}

/// Trains and tests.
pub fn main() -> Result<()> {
    let key = Key::new(1);
    let adam = optim::adam(optim::Schedule::cosine(1e-2, 120));
    let mut net = Network::new(key.fold_in(0));
    let (mut running, mut state) = (net.running(), adam.init(&net));
    let [parameters] = tree::ravel(&net).0.sizes()?;
    println!("bars in four directions, images of {SIDE} x {SIDE} pixels, {parameters} parameters");
    type State = optim::State<Network>;
    let step = jit(move |net: &Network, running: &Running, state: &State, key: &Key| {
        // Images are made inside of the program: every step sees new ones.
        let (x, labels) = bars(key.take(), 64);
        let ((value, running), gradient) = value_and_grad_with_aux(loss)(net, running, &x, &labels);
        let (net, state) = adam.step(net, &gradient, state);
        (value, net, running, state)
    });
    let apply = jit(Network::apply);
    let (test_x, test_labels) = bars(key.fold_in(1), 512);
    let right = |logits: &Array| logits.argmax_axis(-1).eq(&test_labels).cast(DType::F64).mean();
    let bar = ProgressBar::new(120);
    for i in 0..120_i64 {
        let value;
        (value, net, running, state) = step(&net, &running, &state, &key.fold_in(100 + i));
        bar.inc(1);
        if i % 20 == 19 {
            let right = 100.0 * right(&apply(&net, &test_x, &running)).item::<f64>()?;
            bar.suspend(|| println!("step {:3}  loss {value:.4}  right on the test: {right:.1}%", i + 1));
        }
    }
    bar.finish_and_clear();
    // The running numbers are those of the data: judged by its own means, a large batch gets about the same answers.
    let all = right(&apply(&net, &test_x, &running)).item::<f64>()?;
    let own = right(&net.train(&test_x, &running).0).item::<f64>()?;
    println!("right on 512 new images: {:.1}% by running means, {:.1}% by their own", 100.0 * all, 100.0 * own);
    assert!(all > 0.95 && (all - own).abs() < 0.03, "right on {all} and {own} of the test");
    Ok(())
}

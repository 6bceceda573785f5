//! A transformer that learns a text by heart, character by character: attention with a causal mask, layer norm, adamw with
//! a warmup, and sampling by temperature.

use gradus::prelude::*;
use indicatif::ProgressBar;

/// Lewis Carroll, 1871.
const TEXT: &str = "'Twas brillig, and the slithy toves
Did gyre and gimble in the wabe:
All mimsy were the borogoves,
And the mome raths outgrabe.

\"Beware the Jabberwock, my son!
The jaws that bite, the claws that catch!
Beware the Jubjub bird, and shun
The frumious Bandersnatch!\"
";
/// The longest stretch of text that is looked at, the numbers that a character becomes, and the heads that share them.
const PLACES: usize = 24;
const WIDTH: usize = 32;
const HEADS: usize = 4;
const STEPS: i64 = 200;

#[derive(Clone, Tree)]
struct Block {
    norms: [Norm; 2],
    /// Queries, keys and values in one product.
    look: Array,
    gather: Array,
    wide: Array,
    narrow: Array,
}

#[derive(Clone, Tree)]
struct Model {
    characters: Array,
    places: Array,
    blocks: Vec<Block>,
    norm: Norm,
    out: Array,
}

/// The scale and the offset of a layer norm.
type Norm = (Array, Array);

fn norm() -> Norm {
    (Array::ones::<f32>([WIDTH]), Array::zeros::<f32>([WIDTH]))
}

fn normed(x: &Array, (scale, offset): &Norm) -> Array {
    nn::layer_norm(x, scale, offset, 1e-5)
}

impl Block {
    fn new(key: Key) -> Block {
        let [a, b, c, d] = key.split();
        Block {
            norms: [norm(), norm()],
            look: nn::init::glorot_normal::<f32>(a, [WIDTH, 3 * WIDTH]),
            gather: nn::init::glorot_normal::<f32>(b, [WIDTH, WIDTH]),
            wide: nn::init::he_normal::<f32>(c, [WIDTH, 4 * WIDTH]),
            narrow: nn::init::glorot_normal::<f32>(d, [4 * WIDTH, WIDTH]),
        }
    }

    /// `[batch, PLACES, WIDTH]` in and out; each half adds to what comes in.
    fn apply(&self, x: &Array) -> Array {
        let heads = normed(x, &self.norms[0]).matmul(&self.look).reshape((-1, PLACES, 3 * HEADS, WIDTH / HEADS));
        let [query, key, value] = [0, 1, 2].map(|i| heads.index((.., .., i * HEADS..(i + 1) * HEADS)));
        let seen = nn::attention(&query, &key, &value, nn::Attention::default().causal());
        let x = x + seen.reshape((-1, PLACES, WIDTH)).matmul(&self.gather);
        &x + nn::gelu(&normed(&x, &self.norms[1]).matmul(&self.wide)).matmul(&self.narrow)
    }
}

impl Model {
    fn new(key: Key, letters: usize) -> Model {
        let [a, b, c, d, e] = key.split();
        let small = |key, shape| nn::init::truncated_normal::<f32>(key, shape, 0.1);
        let (characters, places) = (small(a, [letters, WIDTH]), small(b, [PLACES, WIDTH]));
        let (blocks, out) = (vec![Block::new(c), Block::new(d)], small(e, [WIDTH, letters]));
        Model { characters, places, blocks, norm: norm(), out }
    }

    /// For each place of `i32[batch, PLACES]`, the logits of the next character.
    fn logits(&self, text: &Array) -> Array {
        let x = nn::embedding(&self.characters, text) + &self.places;
        normed(&self.blocks.iter().fold(x, |x, block| block.apply(&x)), &self.norm).matmul(&self.out)
    }
}

fn loss(model: &Model, text: &Array) -> Array {
    let (seen, next) = (text.index((.., ..-1)), text.index((.., 1..)));
    nn::softmax_cross_entropy_with_integer_labels(&model.logits(&seen), &next).mean()
}

/// Trains, then lets the model write.
pub fn main() -> Result<()> {
    let mut letters: Vec<char> = TEXT.chars().collect();
    letters.sort_unstable();
    letters.dedup();
    let number = |c: char| letters.binary_search(&c).unwrap_or(0) as i32;
    let text = Array::from(TEXT.chars().map(number).collect::<Vec<i32>>());
    let [length] = text.sizes()?;
    println!("{length} characters, {} different ones", letters.len());

    let key = Key::new(3);
    let rate = optim::Schedule::cosine(1e-2, STEPS as u64).warmup(20);
    // Matrices decay; what scales and shifts does not.
    let adamw = optim::adamw(rate).decay_only(|path| !path.contains("norm")).clip_norm(1.0);
    let mut model = Model::new(key.fold_in(0), letters.len());
    let mut state = adamw.init(&model);
    let step = jit(move |model: &Model, state: &optim::State<Model>, key: &Key| {
        // A stretch of text is one more than the places: its characters, and those that follow them.
        let starts = random::randint::<i32>(key.take(), [16, 1], 0, (length - PLACES) as i32);
        let batch = text.take(&(starts + Array::arange(0_i32, PLACES as i32 + 1, 1)), 0);
        let (value, gradient) = value_and_grad(loss)(model, &batch);
        let (model, state) = adamw.step(model, &gradient, state);
        (value, model, state)
    });
    let (bar, mut value) = (ProgressBar::new(STEPS as u64), Array::from(f32::NAN));
    for i in 0..STEPS {
        (value, model, state) = step(&model, &state, &key.fold_in(1 + i));
        bar.inc(1);
        if i % 40 == 39 {
            bar.suspend(|| println!("step {:3}  loss {value:.4}", i + 1));
        }
    }
    bar.finish_and_clear();

    // Writes on from a beginning as long as the model can see; the window moves along.
    let next = jit(|model: &Model, seen: &Array, temperature: &Array, key: &Key| {
        let logits = model.logits(&seen.expand_dims(0)).index((0, -1)) / temperature;
        random::categorical(key.take(), &logits, -1, ()).cast(DType::I32)
    });
    let mut right = 0;
    for temperature in [2.0_f32, 1.0, 0.1] {
        let mut written: Vec<i32> = TEXT.chars().take(PLACES).map(number).collect();
        for i in 0..60 {
            let seen = Array::from(written[written.len() - PLACES..].to_vec());
            written.push(next(&model, &seen, &Array::from(temperature), &key.fold_in(10_000 + i)).item()?);
        }
        let written: String = written.iter().map(|n| letters[*n as usize]).collect();
        right = written.chars().zip(TEXT.chars()).filter(|(a, b)| a == b).count() - PLACES;
        println!("temperature {temperature}: {written:?}");
    }
    println!("a loss of {value:.4} a character; the coldest sample has {right} of 60 characters of the poem");
    assert!(value.item::<f32>()? < 0.5 && right > 40, "a loss of {value}, and {right} characters of the poem");
    Ok(())
}

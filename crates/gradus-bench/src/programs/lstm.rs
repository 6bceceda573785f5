//! A recurrent network that foresees the next character of a text: each is a row of bits, and every layer's gates act on
//! each bit alone.

use gradus::prelude::*;

/// The two rows of a layer, weights and biases, cut into its four gates.
struct Layer {
    weights: Vec<Array>,
    biases: Vec<Array>,
}

impl Layer {
    fn gate(&self, i: usize, x: &Array) -> Array {
        x * &self.weights[i] + &self.biases[i]
    }

    /// The next hidden and cell state.
    fn step(&self, (hidden, cell): &(Array, Array), x: &Array) -> (Array, Array) {
        let forget = self.gate(0, x).logistic();
        let input = self.gate(1, hidden).logistic();
        let output = self.gate(2, x).logistic();
        let change = self.gate(3, hidden).tanh();
        let cell = cell * forget + input * change;
        (output * cell.tanh(), cell)
    }
}

/// The mean loss over a text. Of `main`, `[2 layers, 4 bits]`, and of `state`, `[2 layers, bits]`, two rows belong to a
/// layer; `extra`, `[3, bits]`, has the weights before the first layer, and weights and biases behind the last.
pub fn objective((main, extra): &(Array, Array), state: &Array, text: &Array) -> Array {
    let rows = main.dim(0).constant().unwrap_or(0);
    let layers: Vec<Layer> = (0..rows / 2)
        .map(|i| Layer { weights: main.index(2 * i).split(4, 0), biases: main.index(2 * i + 1).split(4, 0) })
        .collect();
    let start: Vec<(Array, Array)> = (0..rows / 2).map(|i| (state.index(2 * i), state.index(2 * i + 1))).collect();
    let [before, behind, bias] = [0, 1, 2].map(|i| extra.index(i));
    let step = |states: &Vec<(Array, Array)>, (x, next): &(Array, Array)| {
        let mut x = x * &before;
        let mut states = states.clone();
        for (layer, state) in layers.iter().zip(&mut states) {
            *state = layer.step(state, &x);
            x = state.0.clone();
        }
        let guess = x * &behind + &bias;
        // The benchmark adds 2 under the logarithm.
        let norm = (guess.exp().sum() + 2.0).log();
        (states, (next * (guess - norm)).sum())
    };
    let (_, gains) = scan(step, start, &(text.index(..-1), text.index(1..)));
    // All bits of all characters that have a next one.
    -gains.sum() / (text.index(1..).size())
}

/// The gradient by both groups of parameters.
pub fn gradient(parameters: &(Array, Array), state: &Array, text: &Array) -> (Array, Array) {
    grad(objective)(parameters, state, text)
}

//! The cases: what is computed, at which sizes, from which numbers, and how fast it has to be. Each file is a group.
//!
//! A case is described once, here. Peers get its name, size, dtype and inputs, and have only the function themselves.
//! To add one: a `Family` in the file of its group, the function in `peers/`, and a plain one in `tests.rs`; a test says
//! what is missing.

mod calls;
pub mod devices;
mod dynamics;
mod elementwise;
mod geometry;
mod indexing;
mod linalg;
mod matrix;
mod networks;
mod programs;
mod random;
mod rows;
mod signals;

use std::hint::black_box;
use std::rc::Rc;

use gradus::prelude::*;

use crate::buffer::Buffer;
use crate::tier::Tier;

/// A call of a fresh function with its arguments bound. The first one traces and compiles.
pub struct Call {
    run: Box<dyn Fn()>,
    outputs: Box<dyn Fn() -> Vec<Array>>,
    scratch: Option<Box<dyn Fn() -> Option<u64>>>,
}

impl Call {
    /// A call of `f`.
    pub fn new<O: Tree>(f: impl Fn() -> O + 'static) -> Call {
        let f = Rc::new(f);
        let g = f.clone();
        Call { run: Box::new(move || drop(black_box(f()))), outputs: Box::new(move || g().leaves()), scratch: None }
    }

    /// A call that runs in one way, and tells its results in another.
    pub fn prepared(run: impl Fn() + 'static, outputs: impl Fn() -> Vec<Array> + 'static) -> Call {
        Call { run: Box::new(run), outputs: Box::new(outputs), scratch: None }
    }

    /// The same call, which can be asked for its scratch bytes.
    pub fn with_scratch(self, bytes: impl Fn() -> Option<u64> + 'static) -> Call {
        Call { scratch: Some(Box::new(bytes)), ..self }
    }

    /// The most bytes that are needed beside inputs and results, if that is known.
    pub fn scratch_bytes(&self) -> Option<u64> {
        self.scratch.as_ref().and_then(|bytes| bytes())
    }

    /// Calls it and drops what it gives, as a user would who is done with it.
    pub fn run(&self) {
        (self.run)()
    }

    /// Calls it and waits until every result is there.
    pub fn run_to_end(&self) {
        for array in self.outputs() {
            // What is wrong with a result shows when results are compared.
            let _ = array.wait();
        }
    }

    /// Calls it and gives every array of the result.
    pub fn outputs(&self) -> Vec<Array> {
        (self.outputs)()
    }
}

/// An input: numbers that every language computes from a seed.
#[derive(Clone, Debug)]
pub struct Input {
    pub shape: Vec<usize>,
    pub kind: Kind,
    /// The sequence that the numbers are from, and the first of them; else that of the input's place, from its start.
    from: Option<(usize, usize)>,
}

/// Which numbers an input has.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Uniform between two bounds.
    Uniform { low: f64, high: f64 },
    /// In each row of the last axis one 1, at a place that is drawn.
    OneHot,
    /// Places of an axis of this length: integers.
    Places { of: usize },
}

/// Uniform numbers of a shape.
pub fn uniform(shape: &[usize], low: f64, high: f64) -> Input {
    Input { shape: shape.to_vec(), kind: Kind::Uniform { low, high }, from: None }
}

/// Rows with one 1.
pub fn one_hot(shape: &[usize]) -> Input {
    Input { shape: shape.to_vec(), kind: Kind::OneHot, from: None }
}

/// Places of an axis of a length.
pub fn places(shape: &[usize], of: usize) -> Input {
    Input { shape: shape.to_vec(), kind: Kind::Places { of }, from: None }
}

/// The `i`-th number in [0, 1) of a sequence: SplitMix64, which is a few lines in any language.
fn unit(seed: u64, i: u64) -> f64 {
    let mut z = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(seed.wrapping_mul(0xD1B5_4A32_D192_ED03));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    (z >> 11) as f64 / (1u64 << 53) as f64
}

impl Input {
    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// The same kind of numbers, from those that another input has behind its first `skipped`.
    pub fn out_of(self, input: usize, skipped: usize) -> Input {
        Input { from: Some((input, skipped)), ..self }
    }

    /// The dtype of the array, in a case of a dtype.
    pub fn dtype(&self, dtype: DType) -> DType {
        if matches!(self.kind, Kind::Places { .. }) { DType::I64 } else { dtype }
    }

    /// The numbers; `place` is that of the input among those of its case.
    pub fn values(&self, place: usize) -> Vec<f64> {
        let (seed, skipped) = self.from.unwrap_or((place, 0));
        let (seed, skipped) = (seed as u64, skipped as u64);
        let units = (0..self.len() as u64).map(|i| unit(seed, skipped + i));
        match self.kind {
            Kind::Uniform { low, high } => units.map(|u| low + (high - low) * u).collect(),
            Kind::Places { of } => units.map(|u| (u * of as f64).floor()).collect(),
            Kind::OneHot => {
                let width = self.shape.last().copied().unwrap_or(1);
                let mut values = vec![0.0; self.len()];
                for (i, row) in values.chunks_mut(width).enumerate() {
                    row[(unit(seed, i as u64) * width as f64) as usize] = 1.0;
                }
                values
            }
        }
    }

    /// The words that tell a peer of it, as `peers/protocol.py` describes them.
    pub fn words(&self) -> String {
        let shape = size_text(&self.shape);
        let numbers = match self.kind {
            Kind::Uniform { low, high } => format!("{low:?}:{high:?}"),
            Kind::OneHot => "onehot".to_owned(),
            Kind::Places { of } => format!("places:{of}"),
        };
        let from = self.from.map_or_else(String::new, |(seed, skipped)| format!("@{seed}:{skipped}"));
        format!("{shape}:{numbers}{from}")
    }
}

/// `256x64`; a scalar is `-`.
pub fn size_text(size: &[usize]) -> String {
    match size {
        [] => "-".to_owned(),
        _ => size.iter().map(ToString::to_string).collect::<Vec<_>>().join("x"),
    }
}

/// An array of a dtype.
pub fn array(values: &[f64], shape: &[usize], dtype: DType) -> Array {
    match dtype {
        DType::F32 => Array::from_vec(values.iter().map(|v| *v as f32).collect::<Vec<f32>>(), shape.to_vec()),
        DType::I64 => Array::from_vec(values.iter().map(|v| *v as i64).collect::<Vec<i64>>(), shape.to_vec()),
        _ => Array::from_vec(values.to_vec(), shape.to_vec()),
    }
}

/// Ratios that are wanted, ours over a peer's, for the embedded tier and for LLVM.
#[derive(Clone, Copy, Debug, Default)]
pub struct Targets {
    pub c: Option<[f64; 2]>,
    /// Beside C that takes no liberties either.
    pub exact: Option<[f64; 2]>,
    pub jax: Option<[f64; 2]>,
    pub numpy: Option<[f64; 2]>,
    /// Nanoseconds of a call, whatever others need.
    pub ns: Option<f64>,
}

impl Targets {
    /// The number for a tier. The interpreter is shown beside what the embedded tier has to reach.
    pub fn of(pair: Option<[f64; 2]>, tier: Tier) -> Option<f64> {
        pair.map(|[embedded, llvm]| if tier == Tier::Llvm { llvm } else { embedded })
    }
}

/// What is taken of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The time of a call that finds its code ready, and of the first one.
    Calls,
    /// As `Calls`, and the scratch memory.
    CallsAndScratch,
    /// Only the time from the first call to its result.
    FirstResult,
    /// A call into given buffers, for which the arguments are not what other cases have.
    CallsInto,
    /// Calls that follow each other without waiting for results, of which the last is waited for.
    Enqueued,
}

/// Which peers have the function.
#[derive(Clone, Copy, Debug)]
pub struct Peers {
    pub c: bool,
    pub jax: bool,
    pub numpy: bool,
}

/// How a call is made from a size and its inputs.
pub type Build = fn(Tier, &[usize], Vec<Array>) -> Call;

/// A function at several sizes.
pub struct Family {
    /// The name in tables: the one that peers know, with what is special about our side behind it.
    pub name: &'static str,
    pub group: Group,
    pub dtypes: &'static [DType],
    /// Sizes of the smoke test, the smallest first.
    pub quick: &'static [&'static [usize]],
    pub full: &'static [&'static [usize]],
    /// The size of the tests against plain Rust.
    #[cfg_attr(not(test), allow(dead_code))]
    pub tiny: &'static [usize],
    pub inputs: fn(&[usize]) -> Vec<Input>,
    /// The number of elements of each result.
    pub outputs: fn(&[usize]) -> Vec<usize>,
    /// Something that the time grows with: a slow size is foreseen from a small one.
    pub work: fn(&[usize]) -> f64,
    pub build: Build,
    pub peers: Peers,
    pub targets: Targets,
    pub measure: Measure,
}

/// What names of families end with that take the liberties which C has here: its compiler is told `-ffast-math`.
pub const RELAXED: &str = "_relaxed";

/// What names of families end with that go through all distances to the smallest, where peers find its place first.
pub const BY_MIN: &str = "_by_min";

/// What names of families end with that write into memory they are given, as C does.
pub const INTO: &str = "_into";

/// The parts of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    Elementwise,
    Random,
    Lorenz,
    Matrix,
    Linalg,
    Rows,
    Perceptron,
    Lstm,
    Signals,
    Geometry,
    Programs,
    Indexing,
    Call,
    Compile,
    Device,
}

impl Group {
    pub const ALL: [Group; 15] = [
        Group::Elementwise,
        Group::Random,
        Group::Lorenz,
        Group::Matrix,
        Group::Linalg,
        Group::Rows,
        Group::Perceptron,
        Group::Lstm,
        Group::Signals,
        Group::Geometry,
        Group::Programs,
        Group::Indexing,
        Group::Call,
        Group::Compile,
        Group::Device,
    ];

    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            Group::Elementwise => "Elementwise functions",
            Group::Random => "Random numbers of a key",
            Group::Lorenz => "Lorenz system, Runge-Kutta of order 4",
            Group::Matrix => "Matrix products (the NumPy column is OpenBLAS)",
            Group::Linalg => "Linear algebra",
            Group::Rows => "Rows: value and gradient of a weighted sum",
            Group::Perceptron => "Training step of a perceptron, Adam",
            Group::Lstm => "LSTM with the gradient by all weights",
            Group::Signals => {
                "Convolutions (examples, side, features, results, side of the kernel, stride), pooling, Fourier transforms there and back, complex arithmetic, a hundred steps of a spectral method"
            }
            Group::Geometry => "N-body energy gradient, Jacobians of small matrix chains",
            Group::Programs => {
                "Programs of GradBench: k-means (clusters, points, dimensions), hand tracking (points, vertices), LSTM (layers, characters, bits), mixture of Gaussians (dimensions, components, points), bundle adjustment (cameras, points, observations), least squares (points, coefficients), log-sum-exp"
            }
            Group::Indexing => "Places of arrays: taken, added to, found, summed, sorted, joined and moved",
            Group::Call => "A call of a compiled scalar function",
            Group::Device => {
                "On the device: training (examples, width), attention (examples, heads, places, features), long vectors, products, small calls"
            }
            Group::Compile => "Time to the first result of unrolled scalar chains (size: operations)",
        }
    }
}

impl Family {
    /// Whether C stands beside it twice: with liberties and without. Elsewhere they change little.
    pub fn beside_exact(&self) -> bool {
        matches!(self.group, Group::Programs | Group::Rows | Group::Geometry)
    }

    /// The name that peers know.
    pub fn peer(&self) -> &'static str {
        [RELAXED, BY_MIN, INTO].iter().find_map(|ours| self.name.strip_suffix(ours)).unwrap_or(self.name)
    }

    /// The buffers of all inputs.
    pub fn buffers(&self, size: &[usize], dtype: DType) -> Vec<Buffer> {
        let inputs = (self.inputs)(size);
        inputs.iter().enumerate().map(|(seed, i)| Buffer::of(&i.values(seed), i.dtype(dtype))).collect()
    }

    /// The inputs as arrays.
    pub fn arrays(&self, size: &[usize], dtype: DType) -> Vec<Array> {
        let inputs = (self.inputs)(size);
        inputs.iter().enumerate().map(|(seed, i)| array(&i.values(seed), &i.shape, i.dtype(dtype))).collect()
    }

    /// How far results may differ, relative to the size of the result.
    pub fn tolerance(&self, dtype: DType) -> f64 {
        match dtype {
            _ if self.name.ends_with("_bf16") => 3e-2,
            DType::F32 => 2e-3,
            _ => 1e-7,
        }
    }
}

/// Every family, in the order of the table.
pub fn all() -> Vec<Family> {
    let mut families = elementwise::families();
    families.extend(random::families());
    families.extend(dynamics::families());
    families.extend(matrix::families());
    families.extend(linalg::families());
    families.extend(rows::families());
    families.extend(networks::families());
    families.extend(signals::families());
    families.extend(geometry::families());
    families.extend(programs::families());
    families.extend(indexing::families());
    families.extend(calls::families());
    families
}

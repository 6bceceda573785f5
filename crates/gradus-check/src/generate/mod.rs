//! Random programs in the large, in the way of NNSmith: every step is chosen so that it fits what is there, so every program is valid
//! and reaches deep.
//!
//! Programs are traced from array operations, as users write them. The few dimensions of one program come from the thresholds
//! of the compiler; values are shared, kept, viewed and updated as often as they are computed.

mod control;
mod patterns;
mod signals;
mod steps;
mod transforms;

use gradus::prelude::*;
use gradus_core::optimize::eliminate_dead_code;
use gradus_core::testing::{RandomProgram, Recipe, Source};
use gradus_core::trace::trace;

use crate::case::{Case, Data, Sizes};
pub(crate) use transforms::{elements, over_batch, with_gradient};

/// Sizes around which the compiler changes its mind.
const THRESHOLDS: &[usize] =
    &[2, 3, 8, 9, 17, 1, 5, 7, 16, 33, 64, 65, 15, 31, 32, 63, 4, 6, 10, 12, 20, 25, 36, 40, 100];
/// Sizes of long axes: lanes, tiles, chunks.
const LONG: &[usize] = &[128, 129, 255, 256, 257, 511, 512, 513, 1000, 1023, 1025];
/// Sizes that threads share.
const VAST: &[usize] = &[4096, 16_385, 20_000, 65_535, 65_536, 65_537, 70_001];

/// The elements of all values of a program are less.
pub(crate) const VASTEST: usize = 2_000_000;

/// The case of a seed.
pub fn case(seed: u64) -> Case {
    let mut source = Source::seed(seed.wrapping_mul(0x9e37_79b9).wrapping_add(17));
    // Every primitive on every dtype, as the tests of the core make them; a share of them with large dimensions.
    let mut case = match seed % 6 == 5 {
        true => of_primitives(seed, &mut source),
        false => of_arrays(seed, &mut source),
    };
    case.small = [16, 16, 16, 16, 4, 1][source.below(6)];
    case.llvm = seed.is_multiple_of(23);
    case.turn = Some(seed);
    case
}

fn of_primitives(seed: u64, source: &mut Source<'_>) -> Case {
    let recipe = Recipe {
        equations: 4 + source.below(29),
        smooth: source.chance(30),
        sums: source.chance(60),
        symbolic: source.chance(15),
        large: source.chance(70),
    };
    let r = RandomProgram::from_recipe(seed, recipe);
    let mut case = Case::new(format!("seed {seed}"), r.program, seed);
    case.data = if recipe.smooth { Data::Plain } else { Data::Special };
    if case.program.is_symbolic() {
        case.sizes = [0, 1, 3, 17, 40].iter().map(|n| vec![("B".into(), *n), ("N".into(), *n)]).collect();
    } else if recipe.smooth && source.chance(50) {
        case.program = transforms::transformed(source, case.program);
    }
    case
}

fn of_arrays(seed: u64, source: &mut Source<'_>) -> Case {
    let symbols: &[&str] = if source.chance(12) { &["N", "M"][..1 + source.below(2)] } else { &[] };
    let mut dims: Vec<Dim> = symbols.iter().filter_map(|s| Dim::symbol(s).ok()).collect();
    let sample: Sizes = symbols.iter().map(|s| (s.to_string(), THRESHOLDS[source.below(12)] as i64)).collect();
    let few = source.chance(50);
    for _ in dims.len()..2 + source.below(3) {
        let from = if few { &THRESHOLDS[..12] } else { THRESHOLDS };
        dims.push(Dim::from(from[source.below(from.len())]));
    }
    let mut most = 3000;
    match source.below(40) {
        0 => {
            dims.push(Dim::from(VAST[source.below(VAST.len())]));
            most = 220_000;
        }
        1..4 => {
            dims.push(Dim::from(LONG[source.below(LONG.len())]));
            most = 20_000;
        }
        _ => {}
    }
    let dtypes: &[DType] = match source.below(20) {
        0..9 => &[DType::F64],
        9..14 => &[DType::F32],
        14 => &[DType::I32, DType::F32, DType::I64],
        15 => &[DType::C128, DType::F64],
        16 => &[DType::F16, DType::F32],
        17 => &[DType::BF16, DType::C64],
        18 => &[DType::I64, DType::U8, DType::I16, DType::F64],
        _ => &[DType::Bool, DType::F64, DType::U32, DType::I8],
    };
    let world = World { dims, dtypes, sample, most };
    let inputs: Vec<Type> = (0..1 + source.below(3)).map(|k| world.ty(source, k)).collect();
    let specs: Vec<Array> = inputs.into_iter().map(Array::of_type).collect();
    let most_steps = if source.chance(30) { 18 } else { 8 };
    let steps = 2 + source.below(most_steps);
    let inner = fork(source);
    let traced = trace("random", &specs, Mode::Abstract, |xs| {
        let mut desk = Desk::new(&world, inner, xs.to_vec(), 0);
        desk.steps(steps);
        desk.outputs()
    });
    let program = match traced {
        // What was tried and left out may be vast.
        Ok(traced) if elements(&traced.program) < VASTEST => traced.program,
        Ok(traced) => eliminate_dead_code(&traced.program, true),
        // An output that is an error, at worst: the program of no steps.
        Err(_) => trivial(&specs),
    };
    let program = if elements(&program) < VASTEST { program } else { trivial(&specs) };
    let program = transforms::transformed(source, program);
    let mut case = Case::new(format!("seed {seed}"), program, seed);
    case.data = [Data::Plain, Data::Plain, Data::Whole, Data::Plain, Data::Whole, Data::Special][source.below(6)];
    if case.program.is_symbolic() {
        let other = |n: i64| world.sample.iter().map(|(s, _)| (s.clone(), n)).collect::<Sizes>();
        let mut mixed = other(33);
        mixed.iter_mut().take(1).for_each(|(_, n)| *n = 5);
        case.sizes = vec![world.sample.clone(), other(1), other(9), mixed];
        // A dimension that is vast by itself leaves no room for symbols that are not small.
        let inputs = case.program.inputs().to_vec();
        case.sizes.retain(|sizes| {
            inputs.iter().map(|ty| number_of(ty.shape(), sizes)).fold(0, usize::saturating_add) < VASTEST
        });
    }
    case
}

/// The elements of a shape for given sizes.
fn number_of(shape: &Shape, sizes: &Sizes) -> usize {
    let known = |s: &str| sizes.iter().find(|(n, _)| n == s).map(|(_, v)| *v);
    let number = |d: &Dim| d.evaluate(&known).ok().and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
    shape.iter().map(number).fold(1, usize::saturating_mul)
}

fn trivial(specs: &[Array]) -> Program {
    trace("trivial", specs, Mode::Abstract, |xs| xs.to_vec()).map(|t| t.program).unwrap_or_default()
}

/// Another stream, for a function that may be traced more than once.
fn fork(source: &mut Source<'_>) -> u64 {
    (0..8).fold(0, |s, _| s << 8 | source.byte() as u64)
}

/// What the values of one program are made of.
struct World {
    dims: Vec<Dim>,
    dtypes: &'static [DType],
    sample: Sizes,
    most: usize,
}

impl World {
    fn number(&self, d: &Dim) -> usize {
        number_of(&Shape::from(vec![d.clone()]), &self.sample)
    }

    fn count(&self, shape: &Shape) -> usize {
        number_of(shape, &self.sample)
    }

    fn dim(&self, source: &mut Source<'_>) -> Dim {
        self.dims[source.below(self.dims.len())].clone()
    }

    /// A shape that is not too large. The first input has a symbol, so that symbols have numbers.
    fn ty(&self, source: &mut Source<'_>, position: usize) -> Type {
        let mut dims: Vec<Dim> = Vec::new();
        if position == 0 {
            dims.extend(self.dims.iter().filter(|d| d.constant().is_none()).cloned());
        }
        let rank = [2, 2, 1, 3, 2, 1, 3, 4, 0][source.below(9)];
        while dims.len() < rank {
            let at = source.below(dims.len() + 1);
            dims.insert(at, self.dim(source));
        }
        while self.count(&dims.clone().into()) > self.most {
            match dims.iter().position(|d| d.constant().is_some() && self.number(d) > 1) {
                Some(k) if dims.len() > 1 => drop(dims.remove(k)),
                Some(k) => dims[k] = Dim::from(9usize),
                None => break,
            }
        }
        let dtype = if position == 0 { self.dtypes[0] } else { self.dtypes[source.below(self.dtypes.len())] };
        Type::new(dtype, Shape::from(dims))
    }
}

/// Values on a desk, and the decisions of what to do with them.
struct Desk<'w> {
    world: &'w World,
    source: Source<'static>,
    arrays: Vec<Array>,
    /// How deep functions lie in functions.
    depth: usize,
}

impl<'w> Desk<'w> {
    fn new(world: &'w World, seed: u64, arrays: Vec<Array>, depth: usize) -> Desk<'w> {
        Desk { world, source: Source::seed(seed), arrays, depth }
    }

    fn steps(&mut self, count: usize) {
        for _ in 0..count {
            self.step();
        }
    }

    fn dims(&self, a: &Array) -> Vec<usize> {
        a.shape().iter().map(|d| self.world.number(d)).collect()
    }

    /// Takes a value in if it is one, and not too large.
    fn push(&mut self, a: Array) -> Option<Array> {
        let ty = a.ty().ok()?;
        if self.world.count(ty.shape()) > 2 * self.world.most || ty.rank() > 5 {
            return None;
        }
        self.arrays.push(a.clone());
        Some(a)
    }

    fn below(&mut self, n: usize) -> usize {
        self.source.below(n)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.source.chance(percent)
    }

    /// Any value, late ones more often.
    fn any(&mut self) -> Array {
        let n = self.arrays.len();
        let back = if self.chance(60) { self.below(n.min(3)) } else { self.below(n) };
        self.arrays[n - 1 - back].clone()
    }

    fn any_of(&mut self, wanted: impl Fn(&Array) -> bool) -> Option<Array> {
        let fitting: Vec<usize> = (0..self.arrays.len()).filter(|i| wanted(&self.arrays[*i])).collect();
        let late = fitting.len().min(3);
        let back = if self.chance(50) { self.below(late) } else { self.below(fitting.len()) };
        fitting.iter().rev().nth(back).map(|i| self.arrays[*i].clone())
    }

    /// A value with axes.
    fn with_axes(&mut self, least: usize) -> Option<Array> {
        self.any_of(|a| a.rank() >= least)
    }

    fn axis(&mut self, a: &Array) -> isize {
        self.below(a.rank()) as isize
    }

    /// Some axes, at least one where there is one.
    fn axes(&mut self, a: &Array) -> Vec<usize> {
        let rank = a.rank();
        match self.below(4) {
            0 => (0..rank).collect(),
            1 if rank > 0 => vec![rank - 1],
            2 if rank > 0 => vec![self.below(rank)],
            _ => {
                let mut axes: Vec<usize> = (0..rank).filter(|_| self.chance(50)).collect();
                if axes.is_empty() && rank > 0 {
                    axes.push(self.below(rank));
                }
                axes
            }
        }
    }

    /// A value of the type of another: one that is there, or made of it.
    fn like(&mut self, a: &Array) -> Array {
        let found = self.any_of(|b| b.dtype() == a.dtype() && b.shape() == a.shape());
        found.unwrap_or_else(|| a.clone())
    }

    /// One to four results: late ones most often, views of others, the same twice, an input.
    fn outputs(&mut self) -> Vec<Array> {
        let n = self.arrays.len();
        let mut outputs = vec![self.arrays[n - 1].clone()];
        for _ in 0..[0, 1, 1, 2, 3][self.below(5)] {
            let x = match self.below(5) {
                0 => {
                    let k = self.below(outputs.len());
                    let x = outputs[k].clone();
                    self.view(&x)
                }
                1 => self.arrays[self.source.below(n)].clone(),
                2 => {
                    let x = self.any();
                    self.reduced(&x)
                }
                _ => self.any(),
            };
            if x.ty().is_ok() {
                outputs.push(x);
            }
        }
        if self.chance(20) {
            let last = outputs.len() - 1;
            outputs.swap(0, last);
        }
        outputs
    }
}

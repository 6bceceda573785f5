//! Random well-typed programs with inputs to run them on: what property tests and fuzz targets are made of.
//!
//! Every decision is a byte, so a fuzzer's input is a program, a shorter input a simpler one, and a seed is enough to
//! see a failure again.

mod control;
mod linear;
mod smooth;
mod source;
mod steps;
mod values;
mod watched;

use crate::array::Array;
use crate::error::Location;
use crate::primitives::Op;
use crate::program::{Atom, Builder, Program, infer};
use crate::types::{DType, Dim, Shape, Type};

pub use source::Source;
pub use values::random_array;
pub use watched::Watcher;

/// What sort of program is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// About how many equations.
    pub equations: usize,
    /// Only operations that are differentiable wherever the program takes them, in `f64` and `c128`.
    pub smooth: bool,
    /// Whether floats are added up by operations that are free to choose the order (`reduce_sum`, `reduce_prod`,
    /// `dot_general`). Without, results can be compared bit for bit under every transformation.
    pub sums: bool,
    /// Whether some dimensions are symbolic.
    pub symbolic: bool,
    /// Whether dimensions are large enough for loops and vectors, which tiny arrays never see.
    pub large: bool,
}

impl Default for Recipe {
    fn default() -> Recipe {
        Recipe { equations: 16, smooth: false, sums: true, symbolic: false, large: false }
    }
}

/// A program and concrete inputs of its types.
#[derive(Clone, Debug)]
pub struct RandomProgram {
    /// The program. It passes the verifier.
    pub program: Program,
    /// An array for each of its inputs.
    pub inputs: Vec<Array>,
    /// What the symbolic dimensions are in these inputs: one number for all of them.
    pub symbol: usize,
}

impl RandomProgram {
    /// The program that a fuzzer's bytes stand for. Any bytes will do; where they end, so do the equations.
    pub fn from_bytes(bytes: &[u8]) -> RandomProgram {
        let mut source = Source::bytes(bytes);
        let kind = source.byte();
        let recipe =
            Recipe { equations: 48, smooth: false, sums: kind & 1 == 0, symbolic: kind & 2 != 0, large: false };
        RandomProgram::from_source(&mut source, recipe)
    }

    /// The program of a seed.
    pub fn from_seed(seed: u64) -> RandomProgram {
        RandomProgram::from_recipe(seed, Recipe::default())
    }

    /// The program of a seed that follows a recipe.
    pub fn from_recipe(seed: u64, recipe: Recipe) -> RandomProgram {
        RandomProgram::from_source(&mut Source::seed(seed), recipe)
    }

    /// The program of a stream of decisions.
    pub fn from_source(source: &mut Source<'_>, recipe: Recipe) -> RandomProgram {
        let symbol = source.below(4);
        let mut palette = Palette::new(source, recipe);
        let count = 1 + source.below(4);
        let types: Vec<Type> = (0..count).map(|_| palette.ty(source, recipe)).collect();
        // A symbol gets its number from an input: one that stands in none has no place in the program.
        let stands = |d: &Dim| types.iter().any(|t| t.shape().contains(d));
        palette.dims.retain(|d| d.constant().is_some() || stands(d));
        let program = Maker::run(source, recipe, &palette, "random", &types, 0, Maker::some_outputs);
        let inputs = types.iter().map(|t| random_array(source, &known(t, symbol), recipe.smooth)).collect();
        RandomProgram { program, inputs, symbol }
    }

    /// Other inputs for the same program, with the same sizes.
    pub fn more_inputs(&self, seed: u64, smooth: bool) -> Vec<Array> {
        let mut source = Source::seed(seed);
        self.inputs.iter().filter_map(|a| a.ty().ok()).map(|t| random_array(&mut source, t, smooth)).collect()
    }
}

/// A type with every symbol replaced by a number.
fn known(ty: &Type, symbol: usize) -> Type {
    ty.map_dims(|d| d.substitute(&|_| Some(Dim::from(symbol))))
}

/// The few dimensions of one program: with many, no two values would ever fit together.
#[derive(Clone)]
struct Palette {
    dims: Vec<Dim>,
    dtypes: Vec<DType>,
}

impl Palette {
    fn new(source: &mut Source<'_>, recipe: Recipe) -> Palette {
        let sizes: &[usize] = match (recipe.large, recipe.smooth) {
            (true, _) => &[2, 9, 3, 17, 1, 8, 16, 33, 64],
            (false, true) => &[2, 3, 1, 4],
            (false, false) => &[2, 3, 1, 4, 0, 5],
        };
        let mut dims: Vec<Dim> = (0..3).map(|_| Dim::from(source.pick(sizes).copied().unwrap_or(2))).collect();
        if recipe.symbolic {
            dims.extend(["B", "N"].iter().filter_map(|s| Dim::symbol(s).ok()));
        }
        let usual = [DType::F64, DType::F32, DType::I32, DType::Bool, DType::C128];
        let dtypes = match recipe.smooth {
            true => vec![DType::F64, DType::F64, DType::F64, DType::C128],
            false => (0..4)
                .map(|i| *source.pick(if i < 3 { &usual[..] } else { &DType::VALUES[..] }).unwrap_or(&DType::F64))
                .collect(),
        };
        Palette { dims, dtypes }
    }

    fn dim(&self, source: &mut Source<'_>) -> Dim {
        source.pick(&self.dims).cloned().unwrap_or_else(|| Dim::from(1usize))
    }

    fn dtype(&self, source: &mut Source<'_>) -> DType {
        source.pick(&self.dtypes).copied().unwrap_or(DType::F64)
    }

    fn shape(&self, source: &mut Source<'_>) -> Shape {
        let rank = source.pick(&[1usize, 2, 1, 2, 0, 3]).copied().unwrap_or(1);
        (0..rank).map(|_| self.dim(source)).collect()
    }

    fn ty(&self, source: &mut Source<'_>, recipe: Recipe) -> Type {
        let dtype = self.dtype(source);
        // Finite differences want something to differ by.
        let shape = if recipe.smooth && source.chance(25) { Shape::scalar() } else { self.shape(source) };
        Type::new(dtype, shape)
    }
}

/// Values with more elements than this are not made: a random program should run in microseconds.
const LARGEST: i64 = 256;
/// The same for programs with large dimensions.
const LARGEST_OF_LARGE: i64 = 4096;
/// How deep programs nest.
const DEEPEST: usize = 3;

/// A step adds to a program, or finds nothing to add it to.
type Step = fn(&mut Maker<'_, '_>) -> Done;
type Done = Option<()>;

/// A program under construction.
struct Maker<'s, 'b> {
    source: &'s mut Source<'b>,
    recipe: Recipe,
    palette: &'s Palette,
    builder: Builder,
    /// What operands are picked from.
    pool: Vec<Atom>,
    depth: usize,
}

impl<'s, 'b> Maker<'s, 'b> {
    fn run(
        source: &'s mut Source<'b>,
        recipe: Recipe,
        palette: &'s Palette,
        name: &str,
        inputs: &[Type],
        depth: usize,
        outputs: impl FnOnce(&mut Maker<'s, 'b>) -> Vec<Atom>,
    ) -> Program {
        let mut builder = Builder::new(name);
        // An input cannot fail before the first equation.
        let pool = inputs.iter().filter_map(|t| builder.input(t.clone()).ok()).map(Atom::from).collect();
        let mut maker = Maker { source, recipe, palette, builder, pool, depth };
        let steps = if recipe.smooth { smooth::STEPS } else { steps::STEPS };
        for _ in 0..recipe.equations {
            if maker.source.is_empty() {
                break;
            }
            // A step that finds no fitting operands does nothing.
            if let Some(step) = maker.source.pick(steps) {
                let _ = step(&mut maker);
            }
        }
        let outputs = outputs(&mut maker);
        maker.builder.finish(outputs)
    }

    /// One to three values, whatever they are.
    fn some_outputs(&mut self) -> Vec<Atom> {
        (0..1 + self.source.below(3)).filter_map(|_| self.output()).collect()
    }

    /// Most often a late value; at times any, twice the same, or a constant.
    fn output(&mut self) -> Option<Atom> {
        let n = self.pool.len();
        match self.source.below(8) {
            0 => self.any(),
            1 if !self.recipe.smooth => {
                let ty = self.palette.ty(self.source, self.recipe);
                Some(self.constant(&ty))
            }
            _ => {
                let back = self.source.below(n.min(3));
                self.pool.get(n.checked_sub(1 + back)?).copied()
            }
        }
    }

    /// Whether a shape has few elements, with every symbol at its largest.
    fn is_small(&self, shape: &Shape) -> bool {
        let most = if self.recipe.large { LARGEST_OF_LARGE } else { LARGEST };
        shape.size().evaluate(&|_| Some(3)).is_ok_and(|n| n <= most)
    }

    fn ty(&self, atom: Atom) -> Type {
        self.builder.ty(atom).clone()
    }

    /// Adds an equation if its operands fit, its results are small, and it asks nothing of symbolic dimensions.
    fn add(&mut self, op: Op, operands: &[Atom]) -> Option<Vec<Atom>> {
        let inputs: Vec<Type> = operands.iter().map(|a| self.ty(*a)).collect();
        let mut constraints = Vec::new();
        let types = infer(&op, &inputs, &mut constraints).ok()?;
        if !constraints.is_empty() || !types.iter().all(|t| self.is_small(t.shape())) {
            return None;
        }
        let results: Vec<Atom> =
            self.builder.equation(op, operands, Location::unknown()).ok()?.results().map(Atom::from).collect();
        // Keys are only drawn from, by the step that made them.
        let values = results.iter().filter(|a| self.builder.ty(**a).dtype() != DType::Key);
        self.pool.extend(values.copied().collect::<Vec<_>>());
        Some(results)
    }

    /// Adds an equation with one result.
    fn one(&mut self, op: Op, operands: &[Atom]) -> Option<Atom> {
        self.add(op, operands)?.first().copied()
    }

    /// Adds an operation without parameters, by its name.
    fn named(&mut self, name: &str, operands: &[Atom]) -> Option<Atom> {
        self.one(Op::from_text(name, &[]).ok()?, operands)
    }

    /// Any value, late ones more often.
    fn any(&mut self) -> Option<Atom> {
        let n = self.pool.len();
        let back = match self.source.chance(50) {
            true => self.source.below(n.min(4)),
            false => self.source.below(n),
        };
        self.pool.get(n.checked_sub(1 + back)?).copied()
    }

    /// A value whose type the condition holds for.
    fn any_of(&mut self, wanted: impl Fn(&Type) -> bool) -> Option<Atom> {
        let fitting: Vec<Atom> = self.pool.iter().copied().filter(|a| wanted(self.builder.ty(*a))).collect();
        self.source.pick(&fitting).copied()
    }

    /// A value with at least one axis, and one of them.
    fn with_axis(&mut self, wanted: impl Fn(&Type) -> bool) -> Option<(Atom, Type, usize)> {
        let x = self.any_of(|t| t.rank() > 0 && wanted(t))?;
        let ty = self.ty(x);
        let axis = self.source.below(ty.rank());
        Some((x, ty, axis))
    }

    /// A value of a type: one that is there, a constant, or one made from something of another shape or dtype.
    fn of_type(&mut self, ty: &Type) -> Atom {
        let way = self.source.below(6);
        if way < 4
            && let Some(x) = self.any_of(|t| t == ty)
        {
            return x;
        }
        let made = if way == 4 { self.converted(ty) } else { self.spread(ty) };
        made.unwrap_or_else(|| self.constant(ty))
    }

    fn converted(&mut self, ty: &Type) -> Option<Atom> {
        let from_complex = ty.dtype().is_complex();
        let x = self.any_of(|t| {
            t.shape() == ty.shape() && t.dtype() != ty.dtype() && (from_complex || !t.dtype().is_complex())
        })?;
        if self.recipe.smooth && !ty.dtype().is_inexact() {
            return None;
        }
        self.one(Op::new(crate::primitives::convert::Convert { dtype: ty.dtype() }), &[x])
    }

    fn spread(&mut self, ty: &Type) -> Option<Atom> {
        let x = self.any_of(|t| t.dtype() == ty.dtype() && t.rank() == 0)?;
        self.one(Op::new(crate::primitives::shaping::Broadcast { shape: ty.shape().clone(), axes: vec![] }), &[x])
    }
}

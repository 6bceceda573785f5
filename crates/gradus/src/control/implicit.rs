//! Solutions with derivatives that come from what they solve: `root`, `fixed_point`, `linear_solve`.

use gradus_core::trace::{self, Traced, inline};
use gradus_core::{Array, Error, ErrorKind, Location, Program, Result, Type, control};

use super::{failed, same_types, trace_body, types_of};
use crate::random::spend_all;
use crate::solvers;
use crate::stage::{fill, poison};
use crate::tree::{self, Tree};

/// The x with `equation(x, a) = 0`, found by any solver you like. Its derivatives by `a` come from the equation, not from the steps of the solver.
///
/// Both modes of derivatives of any order follow, and batches. The equation gives as many numbers as there are unknowns, floats of the same types. The solver's result is taken for exact, so derivatives
/// are as good as it is. What equation and solver capture is differentiated too.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// // x with x = cos(a x), by Newton's steps
/// let f = |a: &Array| {
///     root(
///         |x: &Array, a: &Array| x - (a * x).cos(),
///         |a: &Array| {
///             let step = |x: &Array| x - (x - (a * x).cos()) / (a * (a * x).sin() + 1.0_f64);
///             fori_loop(0, 20, |_: &Array, x: &Array| step(x), a.zeros_like() + 0.5_f64)
///         },
///         a,
///     )
/// };
/// check_grads(f, &Array::from(1.0_f64), 2)?;
/// # Ok(())
/// # }
/// ```
#[track_caller]
#[doc(alias = "custom_root")]
pub fn root<X: Tree, A: Tree>(equation: impl Fn(&X, &A) -> X, solver: impl Fn(&A) -> X, args: &A) -> X {
    let place = trace::caller_or_known(Location::caller());
    if !trace::is_tracing() {
        return solver(args);
    }
    let mut template = None;
    match (traced_root(&equation, &solver, args, place, &mut template), template) {
        (Ok(found), Some(template)) => fill(&template, found),
        (Err(e), Some(template)) => poison(&template, &e.at(place)),
        (result, None) => {
            let e = result.err().unwrap_or_else(|| Error::new(ErrorKind::Rule, "a solver gave no result"));
            failed(e, place, |e| solver(&poison(args, e)))
        }
    }
}

fn traced_root<X: Tree, A: Tree>(
    equation: &impl Fn(&X, &A) -> X,
    solver: &impl Fn(&A) -> X,
    args: &A,
    place: Location,
    template: &mut Option<X>,
) -> Result<Vec<Array>> {
    let given = types_of(args, place)?;
    spend_all(args, place)?;
    let (solver, x) =
        trace_body("solver", &given, place, |ts| solver(&fill(args, ts.to_vec()))).map_err(|(e, out)| {
            *template = out;
            e
        })?;
    let x = &*template.insert(x);
    let unknown = solver.program.output_types();
    let at: Vec<Type> = unknown.iter().chain(&given).cloned().collect();
    let made = trace_body("equation", &at, place, |ts| {
        let (x_now, a) = ts.split_at(unknown.len());
        equation(&fill(x, x_now.to_vec()), &fill(args, a.to_vec()))
    });
    let (equation, residual) = made.map_err(|(e, _)| e)?;
    same_types(x, &residual, "an equation does not fit its unknowns", ("is unknown", "is given"), place)
        .map_err(|e| e.help("an equation gives as many numbers as there are unknowns, of the same types"))?;
    let (map, back) = control::linearized(&equation, unknown.len()).map_err(|e| e.at(place))?;
    let sided: Vec<Type> = at.iter().chain(&unknown).cloned().collect();
    let by = |name: &str, map: &Program| -> Result<Traced> {
        let made = trace_body(name, &sided, place, |ts| {
            let (here, side) = ts.split_at(at.len());
            let known: Vec<Array> = here.iter().chain(&equation.captures).cloned().collect();
            solvers::of_tangents(&|v: &X| applied(map, &known, v), &fill(x, side.to_vec()))
        });
        made.map(|(traced, _)| traced).map_err(|(e, _)| e)
    };
    let solvers = (by("solve", &map)?, by("transposed_solve", &back)?);
    trace::at_place(place, || control::root(&solver, &equation, (&solvers.0, &solvers.1), &args.leaves()))
}

/// A program of known arrays and the arrays of a tree, which gives arrays of the same types.
fn applied<X: Tree>(program: &Program, known: &[Array], v: &X) -> X {
    let inputs: Vec<Array> = known.iter().cloned().chain(v.leaves()).collect();
    match inline(program, &inputs) {
        Ok(found) => fill(v, found),
        Err(e) => poison(v, &e),
    }
}

/// The x with `map(x) = b`, where `map` is linear, found by a solver that is given the map and b. Derivatives come from the system: they are solutions of the same system, or of the transposed one, by
/// the same solver. What the map captures is differentiated.
///
/// [`solvers::cg`], [`solvers::gmres`] and [`solvers::bicgstab`](crate::solvers::bicgstab) do this with solvers of their own.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// // A triangular map, solved by substitution; the solver does not know which of both triangles it is given.
/// let solve = |a: &Array, b: &Array| {
///     let diagonal = a.diagonal();
///     linear_solve(|x: &Array| a.matmul(x), b, |map, b: &Array| {
///         (0..3).fold(b.zeros_like(), |x, _| &x + (b - map(&x)) / &diagonal)
///     })
/// };
/// let a = Array::from([[2.0_f64, 1.0, 3.0], [0.0, 4.0, 5.0], [0.0, 0.0, 8.0]]);
/// let x = solve(&a, &Array::from([9.0_f64, 13.0, 8.0]));
/// assert_eq!(x.to_vec::<f64>()?, [2.0, 2.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
#[doc(alias = "custom_linear_solve")]
pub fn linear_solve<X: Tree>(map: impl Fn(&X) -> X, b: &X, solver: impl Fn(&dyn Fn(&X) -> X, &X) -> X) -> X {
    let place = trace::caller_or_known(Location::caller());
    if !trace::is_tracing() {
        return solver(&map, b);
    }
    match traced_system(&map, b, &solver, place) {
        Ok(found) => fill(b, found),
        Err(e) => poison(b, &e.at(place)),
    }
}

fn traced_system<X: Tree>(
    map: &impl Fn(&X) -> X,
    b: &X,
    solver: &impl Fn(&dyn Fn(&X) -> X, &X) -> X,
    place: Location,
) -> Result<Vec<Array>> {
    let types = types_of(b, place)?;
    let fits = |x: &X, what: &str| {
        same_types(b, x, what, ("is the right side", "is given"), place)
            .map_err(|e| e.help("a system has as many unknowns as equations: all are of the types of the right side"))
    };
    let traced = |name: &str, f: &dyn Fn(&X) -> X| -> Result<Traced> {
        let (traced, x) = trace_body(name, &types, place, |ts| f(&fill(b, ts.to_vec()))).map_err(|(e, _)| e)?;
        fits(&x, &format!("the {name} of a linear system does not fit"))?;
        Ok(traced)
    };
    let forth = traced("map", &|x| map(x))?;
    let back = trace::at_place(place, || control::transposed(&forth))?;
    let solve = traced("solver", &|side| solver(map, side))?;
    let transposed = traced("solver", &|side| solver(&|y: &X| applied(&back, &forth.captures, y), side))?;
    trace::at_place(place, || control::linear_solve(&forth, &solve, &transposed, &b.leaves()))
}

/// The x with `x = f(x, a)`, found by applying `f` again and again; [`FixedPointOptions`] say how long. It converges where `f` brings points nearer to each other. Derivatives come from the equation, as
/// those of [`root`].
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let f = |a: &Array| fixed_point(|x: &Array, a: &Array| (a * x).cos(), a.zeros_like(), a);
/// let x = f(&Array::from(0.5_f64)).item::<f64>()?;
/// assert!((x - (0.5 * x).cos()).abs() < 1e-12);
/// check_grads(f, &Array::from(0.5_f64), 1)?;
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn fixed_point<X: Tree, A: Tree>(f: impl Fn(&X, &A) -> X, init: X, args: &A) -> X {
    FixedPointOptions::new().fixed_point(f, init, args)
}

/// When an iteration to a fixed point ends. Its last method runs it.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let a = Array::from(2.0_f64);
/// // Heron's steps to the square root.
/// let options = FixedPointOptions::new().tolerance(1e-6).steps(50);
/// let x = options.fixed_point(|x: &Array, a: &Array| (x + a / x) * 0.5_f64, a.clone(), &a);
/// assert!((x.item::<f64>()? - 2.0_f64.sqrt()).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "options do nothing until `fixed_point` is called on them"]
pub struct FixedPointOptions {
    tolerance: Option<f64>,
    steps: u64,
}

impl Default for FixedPointOptions {
    fn default() -> FixedPointOptions {
        FixedPointOptions { tolerance: None, steps: 10_000 }
    }
}

impl FixedPointOptions {
    /// What [`fixed_point`] does: until a step changes x by a few roundings (4e-15 of its norm, of `f32` 2e-6), or 10,000 steps.
    pub fn new() -> FixedPointOptions {
        FixedPointOptions::default()
    }

    /// It ends when a step changes x by at most this share of its norm and of one.
    pub fn tolerance(self, share: f64) -> FixedPointOptions {
        FixedPointOptions { tolerance: Some(share), ..self }
    }

    /// The most steps. Who does not converge gives what the last one gave.
    pub fn steps(self, most: u64) -> FixedPointOptions {
        FixedPointOptions { steps: most, ..self }
    }

    /// Runs a [fixed-point iteration](fixed_point()) in this way.
    #[track_caller]
    pub fn fixed_point<X: Tree, A: Tree>(&self, f: impl Fn(&X, &A) -> X, init: X, args: &A) -> X {
        let place = trace::caller_or_known(Location::caller());
        let tolerance = self.tolerance.unwrap_or_else(|| solvers::rounding(&init) * 20.0);
        let solver = |a: &A| {
            let goes_on = |(x, change, n): &(X, Array, Array)| {
                let near = change.le((tree::global_norm(x) + 1.0_f64) * tolerance);
                // What has become NaN stays so.
                n.lt(self.steps as i64) & !near & !change.is_nan()
            };
            let step = |(x, change, n): &(X, Array, Array)| {
                let next = f(x, a);
                let moved = tree::global_norm(&tree::sub(&next, x)).cast(change.dtype());
                (next, moved, n + 1_i64)
            };
            let far = tree::global_norm(&init).full_like(f64::INFINITY);
            super::while_loop(goes_on, step, (tree::again(&init), far, Array::from(0_i64))).0
        };
        trace::at_place(place, || root(|x: &X, a: &A| tree::sub(x, &f(x, a)), solver, args))
    }
}

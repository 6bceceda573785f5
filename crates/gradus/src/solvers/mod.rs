//! Solutions whose derivatives come from what they solve, and not from the steps that found them.
//!
//! [`root`], [`fixed_point`] and [`linear_solve`] take an equation and a way to solve it. [`cg`], [`gmres`] and [`bicgstab`] are such ways for linear systems, on trees, which only apply the map: each
//! gives the x with `map(x) = b` for a linear `map`, in steps that apply it once or twice. The right side may be of any scale. Where it or the map has numbers that are not finite, or the residual becomes such, x is NaN.
//!
//! ```
//! use gradus::prelude::*;
//!
//! # fn main() -> Result<()> {
//! // A difference equation, whose matrix nobody writes down.
//! let laplace = |x: &Array| x * 2.1_f64 - x.roll(1, 0) - x.roll(-1, 0);
//! let b = Array::arange(0.0_f64, 50.0, 1.0).sin();
//! let x = solvers::cg(laplace, &b);
//! assert!(tree::all_close(&laplace(&x), &b, 1e-8)?);
//! # Ok(())
//! # }
//! ```

mod krylov;

use gradus_core::{Array, DType, Location, trace};

use crate::tree::{self, Tree};

pub use crate::control::{FixedPointOptions, fixed_point, linear_solve, root};

/// When a solver ends. Its last method runs it.
///
/// ```
/// use gradus::prelude::*;
///
/// let a = Array::from([[2.0_f64, 1.0], [0.0, 3.0]]);
/// let x = solvers::Options::new().tolerance(1e-14).gmres(|x: &Array| a.matmul(x), &Array::from([3.0_f64, 3.0]));
/// assert!(tree::all_close(&x, &Array::from([1.0_f64, 1.0]), 1e-12)?);
/// # Ok::<(), gradus::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until a solver is called on them"]
pub struct Options {
    tolerance: Option<f64>,
    steps: Option<u64>,
    restart: Option<usize>,
}

impl Options {
    /// What the plain functions do: until the residual is 1e-10 of the right side (of `f32` 1e-5), or ten times as many steps as there are unknowns.
    pub fn new() -> Options {
        Options::default()
    }

    /// It ends when the norm of `b - map(x)` is at most this share of that of b.
    pub fn tolerance(self, share: f64) -> Options {
        Options { tolerance: Some(share), ..self }
    }

    /// The most steps. Who does not converge gives what the last one gave.
    #[doc(alias = "maxiter")]
    pub fn steps(self, most: u64) -> Options {
        Options { steps: Some(most), ..self }
    }

    /// How many directions [`gmres`](Options::gmres) remembers before it forgets them and begins anew: 30.
    pub fn restart(self, directions: usize) -> Options {
        Options { restart: Some(directions), ..self }
    }

    /// Runs [`cg`] in this way.
    #[track_caller]
    pub fn cg<X: Tree>(&self, map: impl Fn(&X) -> X, b: &X) -> X {
        self.solve(map, b, krylov::cg)
    }

    /// Runs [`gmres`] in this way.
    #[track_caller]
    pub fn gmres<X: Tree>(&self, map: impl Fn(&X) -> X, b: &X) -> X {
        self.solve(map, b, krylov::gmres)
    }

    /// Runs [`bicgstab`] in this way.
    #[track_caller]
    pub fn bicgstab<X: Tree>(&self, map: impl Fn(&X) -> X, b: &X) -> X {
        self.solve(map, b, krylov::bicgstab)
    }

    #[track_caller]
    fn solve<X: Tree>(&self, map: impl Fn(&X) -> X, b: &X, solver: Solver<X>) -> X {
        let place = trace::caller_or_known(Location::caller());
        let limits = self.limits(b);
        trace::at_place(place, || linear_solve(map, b, |map, b| solver(map, b, &limits)))
    }

    fn limits<X: Tree>(&self, b: &X) -> Limits {
        let count = |n: Option<u64>, x: &Array| n?.checked_add(x.shape().size().as_usize()? as u64);
        // Of sizes that are not known yet, as many steps as anyone would wait for.
        let unknowns = tree::reduce(b, Some(0), count).unwrap_or(1000);
        let restart = self.restart.unwrap_or(30).clamp(1, usize::try_from(unknowns.max(1)).unwrap_or(usize::MAX));
        let usual = if rounding(b) < 1e-10 { 1e-10 } else { 1e-5 };
        Limits {
            tolerance: self.tolerance.unwrap_or(usual),
            steps: self.steps.unwrap_or(unknowns.saturating_mul(10)).min(i64::MAX as u64) as i64,
            restart,
        }
    }
}

type Solver<X> = fn(&dyn Fn(&X) -> X, &X, &Limits) -> X;

/// Options with nothing left open.
pub(crate) struct Limits {
    tolerance: f64,
    steps: i64,
    restart: usize,
}

/// The solution of `map(x) = b` by conjugate gradients: `map` is symmetric (of complex numbers Hermitian) and positive definite.
#[track_caller]
pub fn cg<X: Tree>(map: impl Fn(&X) -> X, b: &X) -> X {
    Options::new().cg(map, b)
}

/// The solution of `map(x) = b` by generalized minimal residuals: any invertible `map`. It keeps up to 30 vectors of the length of x, and twice that.
///
/// ```
/// use gradus::prelude::*;
///
/// let a = Array::from([[0.0_f64, 2.0], [-1.0, 0.5]]);
/// let x = jit(|a: &Array, b: &Array| solvers::gmres(|x: &Array| a.matmul(x), b))(&a, &Array::from([4.0_f64, 0.0]));
/// assert!(tree::all_close(&x, &Array::from([1.0_f64, 2.0]), 1e-9)?);
/// # Ok::<(), gradus::Error>(())
/// ```
#[track_caller]
pub fn gmres<X: Tree>(map: impl Fn(&X) -> X, b: &X) -> X {
    Options::new().gmres(map, b)
}

/// The solution of `map(x) = b` by stabilized biconjugate gradients: any invertible `map`, with little memory, and without a promise to converge.
#[track_caller]
pub fn bicgstab<X: Tree>(map: impl Fn(&X) -> X, b: &X) -> X {
    Options::new().bicgstab(map, b)
}

/// The distance from one to the next number, of the coarsest dtype in a tree.
pub(crate) fn rounding<X: Tree>(x: &X) -> f64 {
    let of = |x: &Array| match x.dtype().real_part() {
        DType::BF16 => 2.0_f64.powi(-7),
        DType::F16 => 2.0_f64.powi(-10),
        DType::F32 => f64::from(f32::EPSILON),
        _ => f64::EPSILON,
    };
    tree::reduce(x, f64::EPSILON, |most, x| most.max(of(x)))
}

/// How tangents of an equation's root are found: one unknown by a division, more by GMRES as far as rounding lets it.
pub(crate) fn of_tangents<X: Tree>(map: &dyn Fn(&X) -> X, b: &X) -> X {
    let count = tree::reduce(b, Some(0), |n: Option<usize>, x| n?.checked_add(x.shape().size().as_usize()?));
    if count == Some(1) {
        return tree::map_all([b, &map(&tree::ones_like(b))], |[b, a]| b / a);
    }
    krylov::gmres(map, b, &Options::new().tolerance(20.0 * rounding(b)).limits(b))
}

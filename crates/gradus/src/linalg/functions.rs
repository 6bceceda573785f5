//! Functions of square matrices.

use gradus_core::{Array, Result};

use super::{Norm, identity, inv, matrix_norm, number, slogdet, solve, squares, unit_size};
use crate::control::{fori_loop, while_loop};
use crate::line::on_line;

/// A whole power of square matrices, by repeated squaring; of a negative one the power of the inverse.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let fibonacci = linalg::matrix_power(&Array::from([[1.0_f64, 1.0], [1.0, 0.0]]), 10);
/// assert_eq!(fibonacci.to_vec::<f64>()?, [89.0, 55.0, 55.0, 34.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn matrix_power(a: &Array, power: i32) -> Array {
    on_line(|| {
        squares("matrix_power", a)?;
        let mut square = if power < 0 { inv(a) } else { a.clone() };
        let mut rest = power.unsigned_abs();
        let mut result: Option<Array> = None;
        while rest > 0 {
            if rest % 2 == 1 {
                result = Some(result.map_or(square.clone(), |r| r.matmul(&square)));
            }
            rest /= 2;
            if rest > 0 {
                square = square.matmul(&square);
            }
        }
        Ok(result.unwrap_or_else(|| identity(&a.dim(-1), a.dtype()).broadcast_to(a.shape())))
    })
}

/// The numerator's coefficients of Padé's approximation of the exponential, of degree 13.
const PADE: [f64; 14] = [
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
];

/// Up to this norm the approximation has all digits of an f64.
const PADE_RADIUS: f64 = 5.371920351148152;

/// The exponential of square matrices: scaled down to where Padé's approximation holds, and squared up again.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let turn = linalg::expm(&(Array::from([[0.0_f64, -1.0], [1.0, 0.0]]) * 2.0));
/// assert!((turn.index((0, 0)).item::<f64>()? - 2.0_f64.cos()).abs() < 1e-14);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn expm(a: &Array) -> Array {
    on_line(|| {
        squares("expm", a)?;
        let (dtype, real) = (a.dtype(), a.dtype().real_part());
        // How often to halve: it is a choice, and has no derivative. What is not finite is not halved.
        let size = matrix_norm(&a.stop_gradient(), Norm::One);
        let times = (size / number(PADE_RADIUS, real)).log2().ceil();
        let zero = number(0.0, real);
        let times = (times.is_finite() & times.gt(&zero)).select(&times, &zero).expand_dims([-2, -1]);
        let x = a * (&times * number(-std::f64::consts::LN_2, real)).exp().cast(dtype);
        let eye = identity(&a.dim(-1), dtype);
        let c = |i: usize| number(PADE[i], dtype);
        let (x2, x4) = (x.matmul(&x), x.matmul(&x).matmul(&x.matmul(&x)));
        let x6 = x4.matmul(&x2);
        let half = |i: usize| {
            let high = &x6 * c(i + 12) + &x4 * c(i + 10) + &x2 * c(i + 8);
            x6.matmul(&high) + &x6 * c(i + 6) + &x4 * c(i + 4) + &x2 * c(i + 2) + &eye * c(i)
        };
        let (even, odd) = (half(0), x.matmul(&half(1)));
        let start = solve(&(&even - &odd), &(&even + &odd));
        let (_, result) = while_loop(
            |(i, _): &(Array, Array)| i.lt(times.max()),
            |(i, r): &(Array, Array)| (i + number(1.0, real), i.lt(&times).select(r.matmul(r), r)),
            (number(0.0, real), start),
        );
        Ok(result)
    })
}

/// How often the iteration for a root is run: it doubles its digits in each step, once it is near.
const ROOT_STEPS: i32 = 20;

/// The root of square matrices, of which no eigenvalue is negative or zero: the X with `X·X = a` whose eigenvalues are right of the imaginary axis. A real
/// matrix with negative eigenvalues has a complex root: cast it first.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let x = linalg::sqrtm(&Array::from([[4.0_f64, 1.0], [0.0, 9.0]]));
/// assert!((x - Array::from([[2.0_f64, 0.2], [0.0, 3.0]])).abs().max().item::<f64>()? < 1e-12);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn sqrtm(a: &Array) -> Array {
    on_line(|| {
        squares("sqrtm", a)?;
        root(a)
    })
}

/// The iteration of Denman and Beavers, scaled by determinants while it is far away: Y goes to the root and Z to its inverse.
fn root(a: &Array) -> Result<Array> {
    let (dtype, n) = (a.dtype(), a.dim(-1));
    let half = number(0.5, dtype);
    let eye = identity(&n, dtype).broadcast_to(a.shape());
    let rows = Array::from_dim(&n, dtype.real_part());
    let step = |_: &Array, (y, z): &(Array, Array)| {
        let log = slogdet(&y.stop_gradient()).1 + slogdet(&z.stop_gradient()).1;
        // How fast it converges is no part of where to.
        let scale = (log * number(-0.5, dtype.real_part()) / &rows).exp().cast(dtype).expand_dims([-2, -1]);
        let (y, z) = (y * &scale, z * &scale);
        ((&y + inv(&z)) * &half, (&z + inv(&y)) * &half)
    };
    fori_loop(0, ROOT_STEPS, step, (a.clone(), eye)).0.ok()
}

/// How many roots are taken before a logarithm is approximated.
const ROOTS: i32 = 7;

/// Nodes and weights of Gauss and Legendre on the interval from 0 to 1, of which half are listed: the others are their mirror images.
const NODES: [(f64, f64); 5] = [
    (0.01304673574141414, 0.03333567215434407),
    (0.06746831665550774, 0.0747256745752903),
    (0.1602952158504878, 0.109543181257991),
    (0.2833023029353764, 0.1346333596549982),
    (0.4255628305091844, 0.1477621123573764),
];

/// The logarithm of square matrices, of which no eigenvalue is negative or zero: the X with `expm(X) = a` whose eigenvalues have the least imaginary parts. A real
/// matrix with negative eigenvalues has a complex logarithm: cast it first.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let a = Array::from([[0.5_f64, -1.0], [1.0, 0.25]]);
/// assert!((linalg::logm(&linalg::expm(&a)) - a).abs().max().item::<f64>()? < 1e-11);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn logm(a: &Array) -> Array {
    on_line(|| {
        squares("logm", a)?;
        let dtype = a.dtype();
        let eye = identity(&a.dim(-1), dtype);
        // log(2^k·x) = log(x) + k·log(2): roots of a matrix near 1 come to 1, and those of a very large or small one do not. A power of two changes no digit.
        let (unit, power) = unit_size(a);
        let near = (0..ROOTS).try_fold(unit, |x, _| root(&x))?;
        // log(1 + x) is the integral of x/(1 + t·x) for t from 0 to 1.
        let x = near - &eye;
        let term = |t: f64, w: f64| solve(&(&eye + &x * number(t, dtype)), &(&x * number(w, dtype)));
        let terms = NODES.iter().flat_map(|&(t, w)| [term(t, w), term(1.0 - t, w)]);
        let log = terms.reduce(|a, b| a + b).unwrap_or_else(|| x.zeros_like());
        Ok(log * number(f64::from(1 << ROOTS), dtype)
            + eye * (power * number(std::f64::consts::LN_2, dtype.real_part())).cast(dtype))
    })
}

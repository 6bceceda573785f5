//! The Poisson distribution: by products of uniform numbers for small rates (D. Knuth), by rejection for others (W. Hörmann, "The
//! transformed rejection method for generating Poisson random variables", 1993).

use gradus_core::{
    Array, DType, Element, Error, ErrorKind, IntoShape, Location, Operand, Result, Scalar, Shape, trace,
};

use super::basic::{split_keys, unit};
use super::formulas::{fused, lgamma, log};
use super::{Key, drawing, parameter};
use crate::control::while_loop;

/// Where one method ends and the other begins.
const SMALL_RATE: f32 = 10.0;

/// Whole numbers of the Poisson distribution with a rate: a number or an array of `f32`. Where the rate is not a number or is
/// negative the result is -1. There is no derivative: the numbers change by jumps.
#[track_caller]
pub fn poisson<T: Element>(key: Key, rate: impl Operand, shape: impl IntoShape) -> Array {
    let shape = shape.into_shape();
    drawing(key, |key| {
        if !T::DTYPE.is_int() {
            return Err(Error::new(ErrorKind::DType, format!("`poisson` gives integers, not {}", T::DTYPE))
                .help("ask for an integer, as in `random::poisson::<i32>(key, &rate, [3])`"));
        }
        let rate = parameter("a rate", rate, DType::F32, &shape)?.stop_gradient();
        let small = rate.is_nan() | rate.lt(SMALL_RATE);
        let by_products = small_rates(key, &small.select(&rate, 0.0_f32), &shape, T::DTYPE)?;
        let by_rejection = large_rates(key, &small.select(1e5_f32, &rate), &shape, T::DTYPE)?;
        let drawn = small.select(by_products, by_rejection);
        rate.eq(0.0_f32).select(Scalar::zero(T::DTYPE), drawn).ok()
    })
}

/// As many uniform numbers as can be multiplied before the product is below exp(-rate).
fn small_rates(key: &Array, rate: &Array, shape: &Shape, dtype: DType) -> Result<Array> {
    let end = -rate;
    // The body of a loop is its caller's; this one's is the user's line.
    let place = trace::caller_or_known(Location::caller());
    let one = Scalar::one(dtype);
    let (_, count, _) = while_loop(
        |(_, _, product): &(Array, Array, Array)| product.gt(&end).any(),
        |(key, count, product)| {
            let next = || -> Result<_> {
                let [key, part] = split_keys::<2>(key)?;
                let count = product.gt(&end).select(count + one, count);
                Ok((key, count, product + log(&unit(&part, shape, DType::F32)?)?))
            };
            trace::at_place(place, next).unwrap_or_else(|e| (e.clone().into(), e.clone().into(), e.into()))
        },
        (key.clone(), Array::full_scalar(shape.clone(), Scalar::zero(dtype)), rate.zeros_like()),
    );
    (count - one).ok()
}

fn large_rates(key: &Array, rate: &Array, shape: &Shape, dtype: DType) -> Result<Array> {
    let number = |v: f32| rate.full_like(v);
    let log_rate = log(rate)?;
    let b = fused(&rate.sqrt(), &number(2.53), &number(0.931));
    let a = fused(&b, &number(0.02483), &number(-0.059));
    let inverse_alpha = number(1.1328) / (&b - 3.4_f32) + 1.1239_f32;
    let accepted_at_once = number(0.9277) - number(3.6224) / (&b - 2.0_f32);
    let none = rate.ne(rate);
    let place = trace::caller_or_known(Location::caller());
    let (_, drawn, _) = while_loop(
        |(_, _, done): &(Array, Array, Array)| (!done).any(),
        |(key, drawn, done)| {
            let next = || -> Result<_> {
                let [key, first, second] = split_keys::<3>(key)?;
                let u = unit(&first, shape, DType::F32)? - 0.5_f32;
                let v = unit(&second, shape, DType::F32)?;
                let height = number(0.5) - u.abs();
                let k = (fused(&(&a * 2.0_f32 / &height + &b), &u, rate) + 0.43_f32).floor();
                let s = log(&(&v * &inverse_alpha / (&a / (&height * &height) + &b)))?;
                let t = fused(&k, &log_rate, &-rate) - lgamma(&(&k + 1.0_f32))?;
                let at_once = height.ge(0.07_f32) & v.le(&accepted_at_once);
                let refused = k.lt(0.0_f32) | (height.lt(0.013_f32) & v.gt(&height));
                let accepted = at_once | (!refused & s.le(t));
                Ok((key, accepted.select(&k, drawn), done | &accepted))
            };
            trace::at_place(place, next).unwrap_or_else(|e| (e.clone().into(), e.clone().into(), e.into()))
        },
        (key.clone(), number(-1.0), none),
    );
    drawn.cast(dtype).ok()
}

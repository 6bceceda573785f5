//! Random bits by counters, bit for bit as XLA makes them.

use gradus_core::primitives::random::threefry_arrays;
use gradus_core::{Array, DType, Dim, Shape};

use super::elementwise::{convert, whole};
use super::shaping::{concatenate, iota, reshape};
use super::{Answer, On, many};

/// The low and the high word of 64-bit numbers.
fn words(x: &Array) -> [Array; 2] {
    let low = convert(&(x & &whole(x, 0xffff_ffff)), DType::U32);
    [low, convert(&x.shift_right_logical(whole(x, 32)), DType::U32)]
}

fn joined(low: &Array, high: &Array) -> Array {
    let (low, high) = (convert(low, DType::U64), convert(high, DType::U64));
    &(&high << &whole(&high, 32)) | &low
}

impl On<'_, '_> {
    pub(super) fn random(&mut self, name: &str) -> Answer {
        match name {
            "rng" => Err(self.refused("which numbers it draws is not specified", "draw with a key: `gradus::random`")),
            "rng_bit_generator" => self.rng_bit_generator(),
            _ => Ok(None),
        }
    }

    fn rng_bit_generator(&mut self) -> Answer {
        let state = self.x(0)?;
        let (to, shape) = (super::types::dtype(&self.result(1)?.element)?, super::types::shape(self.result(1)?)?);
        let algorithm = self.word("rng_algorithm").unwrap_or("DEFAULT");
        if algorithm != "THREE_FRY" || state.dtype() != DType::U64 || state.dim(0).as_usize() != Some(2) {
            return Err(self.refused(
                format!("the algorithm {algorithm} with a state {} is not the same on every device", state.shape()),
                "use THREE_FRY with a state of two ui64, or draw with a key: `gradus::random`",
            ));
        }
        if to != DType::U64 {
            return Err(self.refused(format!("it draws {to}"), "draw ui64 and convert"));
        }
        let at = |i: usize| -> Array {
            let one = state.index(i as i64);
            reshape(&one, Shape::scalar())
        };
        let (key, counter) = (at(0), at(1));
        let count = shape.size();
        let line: Shape = [count.clone()].into_iter().collect();
        let wide = |x: &Array| super::elementwise::spread(x, &line);
        let counters = iota(DType::U64, line.clone(), 0) + wide(&counter);
        let [k0, k1] = words(&wide(&key));
        let [x0, x1] = words(&counters);
        let [y0, y1] = threefry_arrays([k0, k1], [x0, x1]);
        let bits = reshape(&joined(&y0, &y1), shape);
        let next = counter + Array::from_dim(&count, DType::U64);
        let vector = |x: &Array| reshape(x, vec![Dim::from(1usize)]);
        let state = concatenate(&[vector(&key), vector(&next)], 0);
        many([state, bits])
    }
}

/// The two results of `cu_threefry2x32`: the hash of two words of counters under two words of keys.
pub(super) fn threefry(on: &On<'_, '_>) -> Answer {
    let (k0, k1, x0, x1) = (on.x(0)?, on.x(1)?, on.x(2)?, on.x(3)?);
    let shape = x0.shape().clone();
    let wide = |k: &Array| if k.shape() == &shape { k.clone() } else { k.broadcast_to(&shape) };
    let [a, b] = threefry_arrays([wide(&k0), wide(&k1)], [x0.clone(), x1]);
    many([a, b])
}

//! Polynomials as vectors of coefficients, the highest power first.

use super::{all_at_caller, at_caller, countable};
use crate::array::Array;
use crate::array::shaping::promoted;
use crate::error::{Result, error, fail};
use crate::types::Dim;

impl Array {
    fn coefficients(&self) -> Result<usize> {
        match self.ty()?.shape().dims() {
            [n] => n.as_usize().ok_or_else(|| {
                error!(NotConcrete, "the degree of a polynomial with {n} coefficients is not known")
                    .help("give the vector of coefficients a size that is known")
            }),
            _ => fail!(Shape, "the coefficients of a polynomial are a vector, not {}", self.ty()?),
        }
    }

    /// The value at `x` of the polynomial with these coefficients, the highest power first.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let p = Array::from([2.0, 0.0, 1.0]); // 2x² + 1
    /// assert_eq!(p.polyval(&Array::from([0.0, 3.0])).to_vec::<f64>().unwrap(), [1.0, 19.0]);
    /// ```
    #[track_caller]
    pub fn polyval(&self, x: &Array) -> Array {
        at_caller(|| {
            let n = self.coefficients()?;
            let mut y = x.zeros_like();
            for i in 0..n {
                y = y * x + self.index(i);
            }
            y.ok()
        })
    }

    /// Two polynomials of one length: the shorter one has zeros in front.
    fn aligned(&self, other: &Array) -> Result<(Array, Array)> {
        let (n, m) = (self.coefficients()? as i64, other.coefficients()? as i64);
        let longest = n.max(m);
        Ok((self.pad(&[(longest - n, 0)], 0i32).ok()?, other.pad(&[(longest - m, 0)], 0i32).ok()?))
    }

    /// The coefficients of the sum of two polynomials.
    #[track_caller]
    pub fn polyadd(&self, other: &Array) -> Array {
        at_caller(|| self.aligned(other).and_then(|(a, b)| (a + b).ok()))
    }

    /// The coefficients of the difference of two polynomials.
    #[track_caller]
    pub fn polysub(&self, other: &Array) -> Array {
        at_caller(|| self.aligned(other).and_then(|(a, b)| (a - b).ok()))
    }

    /// The coefficients of the product of two polynomials.
    #[track_caller]
    pub fn polymul(&self, other: &Array) -> Array {
        at_caller(|| self.product(other))
    }

    fn product(&self, other: &Array) -> Result<Array> {
        let (n, m) = (self.coefficients()?, other.coefficients()?);
        if n == 0 || m == 0 {
            fail!(Shape, "a polynomial without coefficients has no products");
        }
        let both = promoted(vec![self.clone(), other.clone()])?;
        let [a, b] = both.as_slice() else { fail!(Rule, "a pair lost an array") };
        // Rows of the outer product, each one place further to the right, are read as one with a row that is longer by one.
        let rows = a.expand_dims(1) * b.expand_dims(0);
        let wide = rows.pad(&[(0i64, 0i64), (0, n as i64)], 0i32).flatten();
        wide.index(0..(n * (n + m - 1)) as i64).reshape([n, n + m - 1]).sum_axes(0).ok()
    }

    /// The quotient and the remainder of two polynomials. The first coefficient of the divisor is not zero.
    #[track_caller]
    pub fn polydiv(&self, divisor: &Array) -> (Array, Array) {
        let all = all_at_caller(2, || {
            let (n, m) = (self.coefficients()?, divisor.coefficients()?);
            if m == 0 {
                fail!(Shape, "a polynomial without coefficients divides nothing");
            }
            let lead = divisor.index(0);
            let (mut rest, mut quotient) = (self.clone(), Vec::new());
            for i in 0..(n + 1).saturating_sub(m) {
                let q = rest.index(i) / &lead;
                rest = rest.at(i as i64..(i + m) as i64).add(-(&q * divisor));
                quotient.push(q);
            }
            let quotient = if quotient.is_empty() { self.index(0..1).zeros_like() } else { Array::stack(quotient, 0) };
            let from = (n + 1).saturating_sub(m).min(n) as i64;
            Ok(vec![quotient.ok()?, rest.index(from..).ok()?])
        });
        match <[Array; 2]>::try_from(all) {
            Ok([quotient, rest]) => (quotient, rest),
            Err(_) => (
                Array::from(error!(Rule, "a division lost a part")),
                Array::from(error!(Rule, "a division lost a part")),
            ),
        }
    }

    /// The coefficients of the `n`-th derivative of a polynomial.
    #[track_caller]
    pub fn polyder(&self, n: usize) -> Array {
        at_caller(|| {
            let mut p = self.clone();
            // Once there are no coefficients left, there are none for ever.
            for length in (1..=self.coefficients()?).rev().take(n) {
                let powers = Array::from_iter((1..length).rev().map(|i| i as i64));
                p = (p.index(..-1) * powers.try_cast(p.dtype())?).ok()?;
            }
            Ok(p)
        })
    }

    /// The coefficients of the `n`-th integral of a polynomial, with zero for every constant.
    #[track_caller]
    pub fn polyint(&self, n: usize) -> Array {
        at_caller(|| {
            let mut p = self.widened()?.0;
            let length = p.coefficients()?;
            // The largest number divided by this one's factorial is zero: more divisions change nothing.
            const ALL: usize = 320;
            for step in 0..n.min(ALL) {
                let powers = Array::from_iter((1..=length).rev().map(|i| (i + step) as f64));
                p = (&p / powers.try_cast(p.dtype())?).ok()?;
            }
            p.pad(&[(Dim::from(0usize), Dim::from(n))], 0i32).ok()
        })
    }

    /// The coefficients of the polynomial with these roots, the first of which is 1.
    #[track_caller]
    pub fn poly(&self) -> Array {
        at_caller(|| {
            let n = self.coefficients()?;
            let mut p = self.widened()?.0.index(0..0).pad(&[(0, 1)], 1i32).ok()?;
            for i in 0..n {
                // p * (x - root): p one power up, less the root times p. What is added in front is no factor of a root, which may be NaN.
                let up = p.pad(&[(0, 1)], 0i32);
                p = (up - (p * self.index(i)).pad(&[(1, 0)], 0i32)).ok()?;
            }
            Ok(p)
        })
    }

    /// A matrix with the powers of each element in a row, the highest first: `columns` of them.
    #[track_caller]
    pub fn vander(&self, columns: usize) -> Array {
        at_caller(|| {
            let [n] = self.ty()?.shape().dims() else {
                fail!(Shape, "powers in rows are of a vector, not of {}", self.ty()?)
            };
            countable(columns, "powers")?;
            let mut all = Vec::with_capacity(columns);
            let mut power = self.ones_like();
            for _ in 0..columns {
                all.push(power.clone());
                power *= self;
            }
            all.reverse();
            if all.is_empty() {
                return Array::scalar(crate::types::Scalar::zero(self.dtype()))
                    .try_broadcast_to([n.clone(), Dim::from(0usize)].into_iter().collect());
            }
            Array::stack(&all, 1).ok()
        })
    }
}

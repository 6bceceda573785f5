//! Whether peers agree: a result is described by its length, its norm and some of its numbers, in every language alike.

use gradus::{Array, DType};

use crate::Result;

/// As in `peers/protocol.py`.
const SAMPLES: usize = 64;

/// What is compared of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    pub count: usize,
    norm: f64,
    samples: Vec<f64>,
}

impl Described {
    /// Describes these numbers.
    pub fn of(values: &[f64]) -> Described {
        let k = values.len().min(SAMPLES);
        let place = |i: usize| if k == 1 { 0 } else { i * (values.len() - 1) / (k - 1) };
        Described {
            count: values.len(),
            norm: values.iter().map(|v| v * v).sum::<f64>().sqrt(),
            samples: (0..k).map(|i| values[place(i)]).collect(),
        }
    }

    /// Describes an array; an error that it carries comes out here.
    pub fn of_array(array: &Array) -> Result<Described> {
        Ok(Described::of(&array.cast(DType::F64).to_vec::<f64>()?))
    }

    /// Reads `COUNT NORM VALUE,VALUE,...`, several joined by `;`.
    pub fn parse_all(text: &str) -> Option<Vec<Described>> {
        let one = |part: &str| {
            let mut words = part.split(' ');
            let (count, norm) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let samples = words.next()?.split(',').map(str::parse).collect::<std::result::Result<_, _>>().ok()?;
            Some(Described { count, norm, samples })
        };
        text.split(';').map(one).collect()
    }

    /// How far this is from another, relative to the size of its numbers; infinite if they have no common shape.
    pub fn distance(&self, other: &Described) -> f64 {
        if self.count != other.count || self.samples.len() != other.samples.len() {
            return f64::INFINITY;
        }
        let size = self.samples.iter().fold(f64::MIN_POSITIVE, |m, v| m.max(v.abs()));
        let samples = self.samples.iter().zip(&other.samples).map(|(a, b)| (a - b).abs() / size);
        let norm = (self.norm - other.norm).abs() / self.norm.max(f64::MIN_POSITIVE);
        // A NaN must not pass: `max` would drop it.
        samples.chain([norm]).fold(0.0, |m, d| if d.is_nan() { f64::INFINITY } else { f64::max(m, d) })
    }
}

/// The largest distance between results of two peers.
pub fn distance(a: &[Described], b: &[Described]) -> f64 {
    if a.len() != b.len() {
        return f64::INFINITY;
    }
    a.iter().zip(b).map(|(a, b)| a.distance(b)).fold(0.0, f64::max)
}

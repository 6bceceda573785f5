//! Batch normalization by the formulas of the specification.

use gradus_core::error::Result;
use gradus_core::primitives::Op;
use gradus_core::primitives::reduce::ReduceSum;
use gradus_core::trace::bind;
use gradus_core::{Array, Dim};

use super::elementwise::like;
use super::shaping::broadcast_in_dim;
use super::{Answer, On, many, one};
use crate::module::Attribute;

impl On<'_, '_> {
    pub(super) fn batch_norm(&mut self, name: &str) -> Answer {
        let x = self.x(0)?;
        let feature = self.index("feature_index")?;
        let Some(Attribute::Float(epsilon, _)) = self.op.attributes.get("epsilon") else {
            return Err(self.wrong("it lacks `epsilon`"));
        };
        let n = Norm { shape: x.clone(), feature, epsilon: *epsilon };
        match name {
            "batch_norm_inference" => {
                let (scale, offset, mean, variance) = (self.x(1)?, self.x(2)?, self.x(3)?, self.x(4)?);
                one(n.normalized(&x, &scale, &offset, &mean, &variance))
            }
            "batch_norm_training" => {
                let (scale, offset) = (self.x(1)?, self.x(2)?);
                let mean = n.mean(&x)?;
                let centered = &x - &n.each(&mean);
                let variance = n.mean(&(&centered * &centered))?;
                let y = n.normalized(&x, &scale, &offset, &mean, &variance);
                many([y, mean, variance])
            }
            _ => {
                let (scale, mean, variance, y_bar) = (self.x(1)?, self.x(2)?, self.x(3)?, self.x(4)?);
                let centered = &x - &n.each(&mean);
                let wide = n.each(&variance) + like(&x, n.epsilon);
                let deviation = wide.sqrt();
                let sum = n.sum(&y_bar);
                let along = n.sum(&(&y_bar * &centered));
                let count = n.count()?;
                // The three terms of the specification, of which the last two undo what mean and variance changed.
                let first = &y_bar * &count;
                let second = n.each(&sum);
                let third = &(&n.each(&along) * &centered) / &wide;
                let factor = &n.each(&scale) / &deviation / &count;
                let x_bar = factor * (first - second - third);
                let scale_bar = n.sum(&(&y_bar * &(&centered / &deviation)));
                many([x_bar, scale_bar, sum])
            }
        }
    }
}

struct Norm {
    shape: Array,
    feature: usize,
    epsilon: f64,
}

impl Norm {
    /// One number for each feature, in every place of it.
    fn each(&self, x: &Array) -> Array {
        broadcast_in_dim(x, self.shape.shape(), &[self.feature])
    }

    fn sum(&self, x: &Array) -> Array {
        let axes: Vec<usize> = (0..x.rank()).filter(|a| *a != self.feature).collect();
        if axes.is_empty() { x.clone() } else { bind(Op::new(ReduceSum { axes }), std::slice::from_ref(x)) }
    }

    /// How many places a feature has, in every place.
    fn count(&self) -> Result<Array> {
        let dims = self.shape.shape().iter().enumerate().filter(|(a, _)| *a != self.feature);
        let count = dims.fold(Dim::from(1usize), |n, (_, d)| n * d);
        Array::from_dim(&count, self.shape.dtype()).broadcast_to(self.shape.shape()).ok()
    }

    fn mean(&self, x: &Array) -> Result<Array> {
        let sum = self.sum(x);
        let dims = self.shape.shape().iter().enumerate().filter(|(a, _)| *a != self.feature);
        let count = dims.fold(Dim::from(1usize), |n, (_, d)| n * d);
        (&sum / &Array::from_dim(&count, x.dtype()).broadcast_to(sum.shape())).ok()
    }

    fn normalized(&self, x: &Array, scale: &Array, offset: &Array, mean: &Array, variance: &Array) -> Array {
        let centered = x - &self.each(mean);
        let deviation = (self.each(variance) + like(x, self.epsilon)).sqrt();
        &(&self.each(scale) * &(&centered / &deviation)) + &self.each(offset)
    }
}

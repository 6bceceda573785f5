//! Bundle adjustment: where cameras see points, against where they were seen. Every observation depends on one camera, one
//! point and one weight, so that the Jacobian is blocks.

use gradus::prelude::*;

/// Numbers of a camera: rotation, centre, focal length, principal point, radial distortion.
pub const CAMERA: usize = 11;
/// What an observation depends on: a camera, a point and a weight.
pub const BLOCK: usize = CAMERA + 3 + 1;

/// Everything that is observed: `n` cameras, `m` points, `p` observations.
#[derive(Clone, Debug, Tree)]
pub struct Scene {
    /// `[n, CAMERA]`.
    pub cameras: Array,
    /// `[m, 3]`.
    pub points: Array,
    /// `[p]`.
    pub weights: Array,
    /// Which camera each observation is from: `[p]`, integers.
    pub camera: Array,
    /// Which point it is of: `[p]`, integers.
    pub point: Array,
    /// Where the point was seen: `[p, 2]`.
    pub features: Array,
}

/// A point turned about the direction of a vector, by its length.
fn turned(rotation: &Array, point: &Array) -> Array {
    let square = rotation.square().sum();
    let turns = square.ne(0.0);
    let angle = turns.select(&square, 1.0).sqrt();
    let (sin, cos) = (angle.sin(), angle.cos());
    let axis = rotation / &angle;
    let along = axis.dot(point) * (1.0 - &cos);
    let far = point * cos + linalg::cross(&axis, point) * sin + axis * along;
    turns.select(far, point + linalg::cross(rotation, point))
}

/// How far off an observation is, with its weight: of a camera, a point and a weight in a row.
fn residual(block: &Array, feature: &Array) -> Array {
    let seen = turned(&block.index(..3), &(block.index(11..14) - block.index(3..6)));
    let flat = seen.index(..2) / seen.index(2);
    let square = flat.square().sum();
    let distortion = 1.0 + block.index(9) * &square + block.index(10) * &square * &square;
    let place = flat * distortion * block.index(6) + block.index(7..9);
    (place - feature) * block.index(14)
}

fn weight_error(w: &Array) -> Array {
    1.0 - w * w
}

/// For each observation its camera, point and weight in a row: `[p, BLOCK]`.
fn blocks(s: &Scene) -> Array {
    let (cameras, points) = (s.cameras.take(&s.camera, 0), s.points.take(&s.point, 0));
    Array::concatenate([&cameras, &points, &s.weights.expand_dims(1)], 1)
}

/// The errors of all observations, `[p, 2]`, and of their weights, `[p]`.
pub fn objective(s: &Scene) -> (Array, Array) {
    (vmap(residual)(&blocks(s), &s.features), weight_error(&s.weights))
}

/// The blocks of the Jacobian: `[p, 2, BLOCK]` of the observations, `[p]` of the weights.
pub fn jacobian(s: &Scene) -> (Array, Array) {
    (vmap(jacrev(residual))(&blocks(s), &s.features), vmap(grad(weight_error))(&s.weights))
}

//! Clustering: how far points are from their nearest centroid, and the step of Newton's method by the centroids.

use gradus::prelude::*;

/// The squared distance of each point, a row, from each centroid.
fn squares(centroids: &Array, points: &Array) -> Array {
    (points.expand_dims(1) - centroids.expand_dims(0)).square().sum_axes(-1)
}

/// The sum of the squared distances of points, `[n, d]`, from their nearest centroids, `[k, d]`.
pub fn cost(centroids: &Array, points: &Array) -> Array {
    squares(centroids, points).min_axes(1).sum()
}

/// The same cost, for derivatives: which centroid is nearest has no slope, so that only the distance to that one has to be
/// differentiated.
fn cost_of_nearest(centroids: &Array, points: &Array) -> Array {
    let nearest = squares(&stop_gradient(centroids), points).argmin_axis(1);
    (points - centroids.take(&nearest, 0)).square().sum()
}

/// The gradient of a cost by the centroids, over the diagonal of its Hessian. The Hessian is diagonal, so that a product
/// with ones gives that diagonal.
fn step(cost: fn(&Array, &Array) -> Array, centroids: &Array, points: &Array) -> Array {
    let gradient = grad(|c: &Array| cost(c, points));
    let (slope, curvature) = jvp(gradient, centroids, &centroids.ones_like());
    slope / curvature
}

/// The direction away from which to move the centroids.
pub fn direction(centroids: &Array, points: &Array) -> Array {
    step(cost_of_nearest, centroids, points)
}

/// The same direction, from [`cost`] as it stands: derivatives go through all distances.
pub fn direction_by_min(centroids: &Array, points: &Array) -> Array {
    step(cost, centroids, points)
}

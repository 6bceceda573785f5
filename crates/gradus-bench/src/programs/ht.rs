//! Hand tracking: a mesh that bones move, against points that were measured on a hand.

use gradus::prelude::*;

/// The bone that each bone of a hand hangs on: the wrist, four for each of five fingers, the forearm.
pub const HAND: [Option<usize>; 22] = {
    let mut parents = [Some(0); 22];
    parents[0] = None;
    let mut bone = 1;
    while bone < 21 {
        if bone % 4 != 1 {
            parents[bone] = Some(bone - 1);
        }
        bone += 1;
    }
    parents
};

/// How many numbers pose a hand: rotation and translation of all, and four for each finger.
pub const THETA: usize = 26;

/// A mesh on bones.
#[derive(Clone, Debug, Tree)]
pub struct Model {
    /// The bone that each hangs on, which is an earlier one; none of the root.
    #[tree(skip)]
    pub parents: Vec<Option<usize>>,
    /// Whether the mesh is of the other hand.
    #[tree(skip)]
    pub mirrored: bool,
    /// Where bones are at rest, as seen from their parents: `[bones, 4, 4]`.
    pub relatives: Array,
    /// The inverses of where they are at rest: `[bones, 4, 4]`.
    pub inverses: Array,
    /// The vertices at rest, in homogeneous coordinates: `[vertices, 4]`.
    pub positions: Array,
    /// How much each bone moves each vertex: `[vertices, bones]`.
    pub weights: Array,
    /// The vertices of each triangle: `[triangles, 3]`, integers.
    pub triangles: Array,
}

/// What was measured.
#[derive(Clone, Debug, Tree)]
pub struct Measured {
    /// The vertex, or the triangle, that each point belongs to: `[n]`, integers.
    pub places: Array,
    /// The points: `[n, 3]`.
    pub points: Array,
}

/// The angles of all bones about x, z and y: fingers bend at three joints, and spread at the first of these.
fn angles(theta: &Array) -> Array {
    let fingers = theta.index(6..).reshape([5, 4]);
    let bend = Array::concatenate([&fingers.index((.., ..1)), &fingers.index((.., 2..))], 1);
    let bend = bend.pad(&[(0, 0), (1, 0)], 0.0).flatten();
    let spread = fingers.index((.., 1..2)).pad(&[(0, 0), (1, 2)], 0.0).flatten();
    // Wrist and forearm stay as they are, and nothing turns about y.
    Array::stack([&bend, &spread, &bend.zeros_like()], 1).pad(&[(1, 1), (0, 0)], 0.0)
}

/// Rotations about x, then y, then z, of angles about x, z and y: `[bones, 3, 3]`.
fn rotations(angles: &Array) -> Array {
    let (sin, cos) = (angles.sin(), angles.cos());
    let [sx, sz, sy] = [0, 1, 2].map(|i| sin.index((.., i)));
    let [cx, cz, cy] = [0, 1, 2].map(|i| cos.index((.., i)));
    let rows = [
        [&cy * &cz, &sx * &sy * &cz - &cx * &sz, &cx * &sy * &cz + &sx * &sz],
        [&cy * &sz, &sx * &sy * &sz + &cx * &cz, &cx * &sy * &sz - &sx * &cz],
        [-&sy, &sx * &cy, &cx * &cy],
    ];
    let columns = angles.dim(0);
    Array::stack(rows.iter().flatten(), 1).reshape([columns, 3.into(), 3.into()])
}

/// The rotation about a vector by its length.
fn rotation(vector: &Array) -> Array {
    let square = vector.square().sum();
    let turns = square.sqrt().ge(1e-4);
    let angle = turns.select(&square, 1.0).sqrt();
    let axis = vector / &angle;
    let (sin, cos) = (angle.sin(), angle.cos());
    let [x, y, z] = [0, 1, 2].map(|i| axis.index(i));
    let o = x.zeros_like();
    let cross = Array::stack([&o, &-&z, &y, &z, &o, &-&x, &-&y, &x, &o], 0).reshape([3, 3]);
    let full = Array::eye::<f64>(3) * &cos + axis.outer(&axis) * (1.0 - &cos) + cross * sin;
    turns.select(full, Array::eye::<f64>(3))
}

/// Where the vertices of a posed mesh are: `[vertices, 3]`.
fn vertices(theta: &Array, model: &Model) -> Array {
    let turned = model.relatives.index((.., .., ..3)).matmul(&rotations(&angles(theta)));
    let relatives = Array::concatenate([&turned, &model.relatives.index((.., .., 3..))], 2);
    let mut absolutes: Vec<Array> = Vec::with_capacity(model.parents.len());
    for (bone, parent) in model.parents.iter().enumerate() {
        let relative = relatives.index(bone);
        absolutes.push(match parent {
            Some(parent) => absolutes[*parent].dot(&relative),
            None => relative,
        });
    }
    let transforms = Array::stack(&absolutes, 0).matmul(&model.inverses).index((.., ..3));
    // One product for all bones, as for JAX: what each bone adds to each coordinate of each vertex does not depend on the pose.
    let spread = model.weights.expand_dims(2) * model.positions.expand_dims(1);
    let mut positions = Array::einsum("vbj,bij->vi", [&spread, &transforms]);
    if model.mirrored {
        positions *= Array::from([-1.0, 1.0, 1.0]);
    }
    positions.dot(&rotation(&theta.index(..3)).t()) + theta.index(3..6)
}

/// The simple variant: how far points are from their vertices, `[n, 3]`.
pub fn simple(theta: &Array, model: &Model, measured: &Measured) -> Array {
    &measured.points - vertices(theta, model).take(&measured.places, 0)
}

/// The complicated variant: a point is somewhere on its triangle, where `us`, `[n, 2]`, say.
pub fn complicated(theta: &Array, us: &Array, model: &Model, measured: &Measured) -> Array {
    let corners = vertices(theta, model).take(&model.triangles.take(&measured.places, 0), 0);
    let last = 1.0 - us.sum_keep(-1);
    let shares = Array::concatenate([us, &last], 1);
    &measured.points - (corners * shares.expand_dims(-1)).sum_axes(1)
}

/// The Jacobian of [`simple`] by the pose: `[3 n, THETA]`.
pub fn simple_jacobian(theta: &Array, model: &Model, measured: &Measured) -> Array {
    let all = jacfwd(|theta: &Array| simple(theta, model, measured).flatten());
    all(theta)
}

/// The Jacobian of [`complicated`]: `[3 n, 2 + THETA]`, first by the two numbers that belong to the row's point, of which no
/// other row depends, then by the pose.
pub fn complicated_jacobian(theta: &Array, us: &Array, model: &Model, measured: &Measured) -> Array {
    // A shift that all points share has for each the slopes of its own numbers.
    let shifted = |(shift, theta): &(Array, Array)| complicated(theta, &(us + shift), model, measured).flatten();
    let (by_us, by_theta) = jacfwd(shifted)(&(Array::zeros::<f64>([2]), theta.clone()));
    Array::concatenate([&by_us, &by_theta], 1)
}

//! The modules of GradBench that are known, and what their functions read and write.

use gradus::prelude::*;
use serde_json::{Value, json};

use super::input::Input;
use super::{Answer, Evaluated, Fault, repeated};
use crate::programs::{ba, gmm, ht, kmeans, llsq, lse, lstm};

/// A function of a module by its name.
type Function = (&'static str, fn(&Input<'_>) -> Answer<Evaluated>);

/// The functions of a module.
pub fn functions(module: &str) -> Answer<&'static [Function]> {
    Ok(match module {
        "hello" => &[("square", hello_square), ("double", hello_double)],
        "kmeans" => &[("cost", |i| clustered(i, kmeans::cost)), ("dir", |i| clustered(i, kmeans::direction))],
        "ht" => &[("objective", hand_objective), ("jacobian", hand_jacobian)],
        "lstm" => &[("objective", text_objective), ("jacobian", text_jacobian)],
        "gmm" => &[("objective", mixture_objective), ("jacobian", mixture_jacobian)],
        "ba" => &[("objective", scene_objective), ("jacobian", scene_jacobian)],
        "llsq" => &[("primal", |i| fitted(i, llsq::primal)), ("gradient", |i| fitted(i, llsq::gradient))],
        "lse" => &[("primal", |i| summed(i, lse::primal)), ("gradient", |i| summed(i, lse::gradient))],
        _ => return Err(Fault(format!("there is no module `{module}` here"))),
    })
}

/// An array as lists in lists; one of no axes is a number.
fn lists(array: &Array) -> Answer<Value> {
    fn nest(values: &[f64], shape: &[usize]) -> Value {
        match shape {
            [] => values.first().copied().into(),
            [_] => values.into(),
            [n, rest @ ..] => {
                let each = rest.iter().product::<usize>();
                (0..*n).map(|i| nest(&values[i * each..][..each], rest)).collect::<Vec<_>>().into()
            }
        }
    }
    Ok(nest(&array.to_vec::<f64>()?, &array.known_dims()?))
}

/// An evaluation whose result is one array: it goes out as lists.
fn array_of(input: &Input<'_>, call: impl Fn() -> Array) -> Answer<Evaluated> {
    let (result, timings) = repeated(input, || Ok(call().ok()?))?;
    Ok(Evaluated { output: lists(&result)?, timings })
}

fn hello(input: &Input<'_>, f: fn(&Array) -> Array) -> Answer<Evaluated> {
    let x = Array::from(input.0.as_f64().ok_or_else(|| Fault("the input is not a number".to_owned()))?);
    let f = jit(f);
    array_of(input, || f(&x))
}

fn hello_square(input: &Input<'_>) -> Answer<Evaluated> {
    hello(input, |x| x * x)
}

fn hello_double(input: &Input<'_>) -> Answer<Evaluated> {
    hello(input, |x| grad(|x: &Array| x * x)(x))
}

fn clustered(input: &Input<'_>, f: fn(&Array, &Array) -> Array) -> Answer<Evaluated> {
    let (points, centroids) = (input.numbers("points", 2)?, input.numbers("centroids", 2)?);
    // A single number would be broadcast.
    if points.dim(1) != centroids.dim(1) {
        return Err(Fault("points and centroids have different numbers of dimensions".to_owned()));
    }
    let f = jit(f);
    array_of(input, || f(&centroids, &points))
}

/// A pose, a mesh and what was measured; where on triangles points are, if these are what they belong to.
struct Hand {
    theta: Array,
    us: Option<Array>,
    model: ht::Model,
    measured: ht::Measured,
}

fn hand(input: &Input<'_>) -> Answer<Hand> {
    let data = input.object("data")?;
    let model = data.object("model")?;
    let positions = model.numbers("base_positions", 2)?;
    let [vertices, _] = positions.sizes::<2>()?;
    let triangles = model.places("triangles", 2, vertices)?;
    let [count, _] = triangles.sizes::<2>()?;
    let us = input.numbers("us", if is_empty(input, "us") { 1 } else { 2 })?;
    let us = (us.size().constant() != Some(0)).then_some(us);
    Ok(Hand {
        theta: input.vector("theta", ht::THETA)?,
        measured: ht::Measured {
            places: data.places("correspondences", 1, if us.is_some() { count } else { vertices })?,
            points: data.numbers("points", 2)?,
        },
        us,
        model: ht::Model {
            parents: model.parents("parents")?,
            mirrored: model.flag("is_mirrored")?,
            relatives: model.numbers("base_relatives", 3)?,
            inverses: model.numbers("inverse_base_absolutes", 3)?,
            weights: model.numbers("weights", 2)?,
            positions,
            triangles,
        },
    })
}

fn is_empty(input: &Input<'_>, name: &str) -> bool {
    input.0[name].as_array().is_some_and(Vec::is_empty)
}

fn hand_objective(input: &Input<'_>) -> Answer<Evaluated> {
    let Hand { theta, us, model, measured } = hand(input)?;
    match us {
        Some(us) => {
            let f = jit(ht::complicated);
            array_of(input, || f(&theta, &us, &model, &measured).flatten())
        }
        None => {
            let f = jit(ht::simple);
            array_of(input, || f(&theta, &model, &measured).flatten())
        }
    }
}

fn hand_jacobian(input: &Input<'_>) -> Answer<Evaluated> {
    let Hand { theta, us, model, measured } = hand(input)?;
    match us {
        Some(us) => {
            let f = jit(ht::complicated_jacobian);
            array_of(input, || f(&theta, &us, &model, &measured))
        }
        None => {
            let f = jit(ht::simple_jacobian);
            array_of(input, || f(&theta, &model, &measured))
        }
    }
}

/// Main and extra parameters, state and text.
fn text(input: &Input<'_>) -> Answer<((Array, Array), Array, Array)> {
    let parameters = (input.numbers("main_params", 2)?, input.numbers("extra_params", 2)?);
    Ok((parameters, input.numbers("state", 2)?, input.numbers("sequence", 2)?))
}

fn text_objective(input: &Input<'_>) -> Answer<Evaluated> {
    let (parameters, state, text) = text(input)?;
    let f = jit(lstm::objective);
    array_of(input, || f(&parameters, &state, &text))
}

fn text_jacobian(input: &Input<'_>) -> Answer<Evaluated> {
    let (parameters, state, text) = text(input)?;
    let f = jit(|p: &(Array, Array), state: &Array, text: &Array| {
        let (main, extra) = lstm::gradient(p, state, text);
        Array::concatenate([&main.flatten(), &extra.flatten()], 0)
    });
    array_of(input, || f(&parameters, &state, &text))
}

/// The mixture, the points and the prior.
fn mixture(input: &Input<'_>) -> Answer<(gmm::Mixture, Array, gmm::Prior)> {
    let [alpha, mu, q, l] =
        [("alpha", 1), ("mu", 2), ("q", 2), ("l", 2)].map(|(name, depth)| input.numbers(name, depth));
    let prior = gmm::Prior { gamma: input.number("gamma")?, m: input.count("m", 0)? };
    Ok((gmm::Mixture { alpha: alpha?, mu: mu?, q: q?, l: l? }, input.numbers("x", 2)?, prior))
}

fn mixture_objective(input: &Input<'_>) -> Answer<Evaluated> {
    let (p, x, prior) = mixture(input)?;
    let f = jit(move |p: &gmm::Mixture, x: &Array| gmm::objective(p, x, prior));
    array_of(input, || f(&p, &x))
}

fn mixture_jacobian(input: &Input<'_>) -> Answer<Evaluated> {
    let (p, x, prior) = mixture(input)?;
    let f = jit(move |p: &gmm::Mixture, x: &Array| gmm::gradient(p, x, prior));
    let (g, timings) = repeated(input, || Ok(f(&p, &x)))?;
    let output = json!({"alpha": lists(&g.alpha)?, "mu": lists(&g.mu)?, "q": lists(&g.q)?, "l": lists(&g.l)?});
    Ok(Evaluated { output, timings })
}

/// Where in the Jacobian a scene's numbers are.
struct Layout {
    cameras: i32,
    points: i32,
    observations: i32,
}

/// The benchmark says one camera, one point, one weight and one feature; all others are the same.
fn scene(input: &Input<'_>) -> Answer<(ba::Scene, Layout)> {
    let [n, m, p] = ["n", "m", "p"].map(|name| input.count(name, 1));
    let (n, m, p) = (n?, m?, p?);
    let layout = Layout::new(n, m, p).ok_or_else(|| Fault("the Jacobian has too many places".to_owned()))?;
    let repeated = |name: &str, len: usize, times: usize| -> Answer<Array> {
        Ok(input.vector(name, len)?.broadcast_to([times, len]).to_dense().ok()?)
    };
    let in_turn = |of: usize| Array::from_vec((0..p).map(|i| (i % of) as i64).collect::<Vec<_>>(), [p]);
    let scene = ba::Scene {
        cameras: repeated("cam", ba::CAMERA, n)?,
        points: repeated("x", 3, m)?,
        weights: Array::full([p], input.number("w")?).to_dense().ok()?,
        camera: in_turn(n),
        point: in_turn(m),
        features: repeated("feat", 2, p)?,
    };
    Ok((scene, layout))
}

fn scene_objective(input: &Input<'_>) -> Answer<Evaluated> {
    let (scene, layout) = scene(input)?;
    let f = jit(ba::objective);
    let ((errors, by_weight), timings) = repeated(input, || Ok(f(&scene)))?;
    let (errors, by_weight) = (errors.to_vec::<f64>()?, by_weight.to_vec::<f64>()?);
    let times = layout.observations;
    let output = json!({
        "reproj_error": {"elements": errors.get(..2), "repeated": times},
        "w_err": {"element": by_weight.first(), "repeated": times},
    });
    Ok(Evaluated { output, timings })
}

/// A sparse matrix by rows: where each begins, the columns of its numbers, and these.
struct Sparse {
    rows: Vec<i32>,
    columns: Vec<i32>,
    values: Array,
}

impl Layout {
    /// None if there are more columns, or numbers, than places can count.
    fn new(cameras: usize, points: usize, observations: usize) -> Option<Layout> {
        let [n, m, p] = [cameras, points, observations].map(|count| i32::try_from(count).ok());
        let (n, m, p) = (n?, m?, p?);
        let columns = n.checked_mul(ba::CAMERA as i32)?.checked_add(m.checked_mul(3)?)?.checked_add(p);
        columns.and(p.checked_mul(2 * ba::BLOCK as i32 + 1))?;
        Some(Layout { cameras: n, points: m, observations: p })
    }

    /// Two rows for each observation, then one for each weight.
    fn sparse(&self, values: Array) -> Sparse {
        let (p, block, camera_len) = (self.observations, ba::BLOCK as i32, ba::CAMERA as i32);
        let (points, weights) = (camera_len * self.cameras, camera_len * self.cameras + 3 * self.points);
        let mut columns = Vec::with_capacity((2 * ba::BLOCK + 1) * p as usize);
        for i in 0..p {
            let (camera, point) = (camera_len * (i % self.cameras), points + 3 * (i % self.points));
            for _ in 0..2 {
                columns.extend(camera..camera + camera_len);
                columns.extend(point..point + 3);
                columns.push(weights + i);
            }
        }
        columns.extend(weights..weights + p);
        let seen = (0..=2 * p).map(|row| row * block);
        let rows = seen.chain((1..=p).map(|row| 2 * p * block + row)).collect();
        Sparse { rows, columns, values }
    }
}

fn scene_jacobian(input: &Input<'_>) -> Answer<Evaluated> {
    let (scene, layout) = scene(input)?;
    let f = jit(|scene: &ba::Scene| {
        let (blocks, by_weight) = ba::jacobian(scene);
        Array::concatenate([&blocks.flatten(), &by_weight], 0)
    });
    let (matrix, timings) = repeated(input, || Ok(layout.sparse(f(&scene).ok()?)))?;
    // All blocks are the same: the first numbers go out, and the last.
    fn ends<T: Copy + Into<Value>>(all: &[T]) -> Value {
        all.iter().take(2 * ba::BLOCK).chain(all.last()).map(|v| (*v).into()).collect::<Vec<Value>>().into()
    }
    let values = matrix.values.to_vec::<f64>()?;
    Ok(Evaluated {
        output: json!({"rows": ends(&matrix.rows), "cols": ends(&matrix.columns), "vals": ends(&values)}),
        timings,
    })
}

fn fitted(input: &Input<'_>, f: fn(&Array, usize) -> Array) -> Answer<Evaluated> {
    let (x, n) = (input.numbers("x", 1)?, input.count("n", 2)?);
    let f = jit(move |x: &Array| f(x, n));
    array_of(input, || f(&x))
}

fn summed(input: &Input<'_>, f: fn(&Array) -> Array) -> Answer<Evaluated> {
    let x = input.numbers("x", 1)?;
    let f = jit(f);
    array_of(input, || f(&x))
}

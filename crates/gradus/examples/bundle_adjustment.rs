//! Where were the cameras, and where are the points? Bundle adjustment by Levenberg-Marquardt, over a tree of unknowns.

use gradus::prelude::*;

/// Some cameras, one in each row: how each is turned (an axis, as long as the angle), and where it puts the origin.
#[derive(Clone, Tree)]
struct Cameras {
    turn: Array,
    shift: Array,
}

#[derive(Clone, Tree)]
struct Scene {
    cameras: Cameras,
    points: Array,
}

/// Points turned around an axis by its length: the formula of Rodrigues.
fn turned(points: &Array, axis: &Array) -> Array {
    // Not quite zero: a square root has no slope there.
    let angle = (axis.square().sum() + 1e-20).sqrt();
    let once = linalg::cross(axis, points);
    let twice = linalg::cross(axis, &once);
    points + once * (angle.sin() / &angle) + twice * ((1.0 - angle.cos()) / angle.square())
}

/// Where one camera sees the points, in pixels: `[points, 2]`.
fn seen(camera: &Cameras, points: &Array) -> Array {
    let at = turned(points, &camera.turn) + &camera.shift;
    500.0 * at.index((.., ..2)) / at.index((.., 2..))
}

/// Where every camera sees them: `[cameras, points, 2]`. The tree of cameras is mapped over, the points are the same for all.
fn images(cameras: &Cameras, points: &Array) -> Array {
    vmap(seen).axes((Some(0), None))(cameras, points)
}

/// Numbers between `-size` and `size`.
fn spread(key: Key, shape: [usize; 2], size: f64) -> Array {
    random::uniform_between::<f64>(key, shape, -size, size)
}

fn rms(x: &Array) -> Result<f64> {
    x.square().mean().sqrt().item()
}

/// Makes a scene and its images, forgets where things were, and finds them again.
pub fn main() -> Result<()> {
    let (cameras, points, noise) = (6, 30, 0.5);
    let [a, b, c, d, e] = Key::new(5).split();
    let truth = Scene {
        cameras: Cameras {
            turn: spread(a, [cameras, 3], 0.3),
            shift: spread(b, [cameras, 3], 0.5) + Array::from([0.0, 0.0, 5.0]),
        },
        points: spread(c, [points, 3], 1.0),
    };
    let all = images(&truth.cameras, &truth.points);
    let pixels = &all + random::normal::<f64>(d, all.shape()) * noise;

    // A scene that is moved, turned or made larger as a whole gives the same images. Two cameras that are known hold it.
    let known = tree::map(&truth.cameras, |a| a.index(..2));
    let residuals = {
        let pixels = pixels.clone();
        move |scene: &Scene| {
            let unknown = images(&scene.cameras, &scene.points) - pixels.index(2..);
            (images(&known, &scene.points) - pixels.index(..2), unknown)
        }
    };
    let [e, f, g] = e.split();
    let start = Scene {
        cameras: Cameras {
            turn: truth.cameras.turn.index(2..) + spread(e, [cameras - 2, 3], 0.1),
            shift: truth.cameras.shift.index(2..) + spread(f, [cameras - 2, 3], 0.2),
        },
        points: &truth.points + spread(g, [points, 3], 0.2),
    };
    let (unknowns, _) = tree::ravel(&start);
    let [unknowns] = unknowns.sizes()?;
    let off = |scene: &Scene| -> Result<(f64, f64)> {
        let (of_known, of_unknown) = residuals(scene);
        let pixels = rms(&tree::ravel(&(of_known, of_unknown)).0)?;
        Ok((pixels, rms(&(&scene.points - &truth.points))?))
    };
    let (pixels_off, points_off) = off(&start)?;
    println!("{cameras} cameras, {points} points, {unknowns} unknowns, {} numbers seen", cameras * points * 2);
    println!("before: {pixels_off:8.3} pixels off, points off by {points_off:.4}");

    // The whole method, its loop included, is one program.
    let adjust = jit({
        let residuals = residuals.clone();
        move |start: &Scene| optim::levenberg_marquardt().minimize(&residuals, start)
    });
    let found = adjust(&start);
    let (pixels_off, points_off) = off(&found.point)?;
    println!("after:  {pixels_off:8.3} pixels off, points off by {points_off:.4}; {} steps", found.steps);

    // Unknowns follow the noise a little, so what is left is less than the noise: by the share of the numbers they use up.
    let expected = noise * (1.0 - unknowns as f64 / (cameras * points * 2) as f64).sqrt();
    println!("noise of {noise} pixels, of which {expected:.3} should be left");
    assert!(found.converged.item::<bool>()?, "it did not converge");
    assert!((pixels_off / expected - 1.0).abs() < 0.15, "{pixels_off} pixels are left, not {expected}");
    assert!(points_off < 0.02, "the points are off by {points_off}");
    Ok(())
}

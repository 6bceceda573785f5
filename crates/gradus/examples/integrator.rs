//! An ODE solver that chooses its own steps, and derivatives through it: the four rates of a model of hares and lynxes, from
//! noisy counts of both.

use gradus::prelude::*;

/// Lotka and Volterra: hares multiply and are eaten, lynxes starve and eat. Logarithms of the rates, so that all stay positive.
#[derive(Clone, Tree)]
struct Rates {
    birth: Array,
    eaten: Array,
    starve: Array,
    feed: Array,
}

impl Rates {
    fn new(rates: [f64; 4]) -> Rates {
        let [birth, eaten, starve, feed] = rates.map(|r| Array::from(r.ln()));
        Rates { birth, eaten, starve, feed }
    }

    fn named(&self) -> [(&'static str, &Array); 4] {
        [("birth", &self.birth), ("eaten", &self.eaten), ("starve", &self.starve), ("feed", &self.feed)]
    }
}

/// Hares and lynxes. The state of the equation is this tree; the solver takes any.
#[derive(Clone, Tree)]
struct Animals {
    hares: Array,
    lynxes: Array,
}

/// Both at some times, in rows.
fn counts(rates: &Rates, times: &Array) -> Animals {
    let slope = |now: &Animals, _: &Array| {
        let met = &now.hares * &now.lynxes;
        Animals {
            hares: rates.birth.exp() * &now.hares - rates.eaten.exp() * &met,
            lynxes: rates.feed.exp() * &met - rates.starve.exp() * &now.lynxes,
        }
    };
    let start = Animals { hares: Array::from(3.0_f64), lynxes: Array::from(1.0_f64) };
    ode::Options::new().relative(1e-8).absolute(1e-10).integrate(slope, &start, times)
}

/// How far logarithms of the counts are from those that were seen: half the mean of squares.
fn misfit(rates: &Rates, times: &Array, seen: &Animals) -> Array {
    let off = tree::map_all([&counts(rates, times), seen], |[a, b]| a.log() - b.log());
    0.5 * (off.hares.square() + off.lynxes.square()).mean()
}

/// Counts with noise, the gradient by both modes and by differences, and the rates that fit.
pub fn main() -> Result<()> {
    let truth = Rates::new([1.1, 0.4, 0.8, 0.2]);
    let times = Array::linspace(0.0_f64, 12.0, 25);
    let [a, b] = Key::new(4).split();
    let real = counts(&truth, &times);
    let noisy = |x: &Array, key| x * (0.05 * random::normal::<f64>(key, [25])).exp();
    let seen = Animals { hares: noisy(&real.hares, a), lynxes: noisy(&real.lynxes, b) };
    for i in (0..25).step_by(6) {
        let (t, h, l) = (times.index(i), seen.hares.index(i), seen.lynxes.index(i));
        println!("after {t:4} years: {h:6.3} hundred hares, {l:6.3} hundred lynxes");
    }

    // The solver's loop takes as many steps as the accuracy needs. Reverse mode goes back through those that it took.
    let start = Rates::new([0.8, 0.5, 1.0, 0.3]);
    let gradient = jit(grad(misfit))(&start, &times, &seen);
    let staged = jit(misfit);
    let value = |rates: &Rates| staged(rates, &times, &seen);
    for (name, slope) in gradient.named() {
        println!("  the slope of the misfit by `{name}`: {slope:+.6}");
    }
    // Along one direction, all rates growing by the same share, there are two more ways to a slope.
    let along = tree::ones_like(&start);
    let reverse = tree::dot(&gradient, &along).item::<f64>()?;
    let forward = jvp(|r: &Rates| misfit(r, &times, &seen), &start, &along).1.item::<f64>()?;
    let nearby = |h: f64| value(&tree::add_scaled(&start, h, &along));
    let difference = ((nearby(1e-4) - nearby(-1e-4)) / 2e-4).item::<f64>()?;
    println!(
        "  by all at once: {reverse:+.9} by reverse mode, {forward:+.9} by forward mode, {difference:+.9} by differences"
    );
    assert!((reverse - forward).abs() < 1e-9, "both modes give the same slope");
    assert!((reverse - difference).abs() < 1e-5, "differences give it, too");

    let fit = jit(|start: &Rates, times: &Array, seen: &Animals| {
        optim::lbfgs().tolerance(1e-7).minimize(|r: &Rates| misfit(r, times, seen), start)
    });
    let found = fit(&start, &times, &seen);
    println!("misfit {:.6} at first, {:.6} after {} steps of L-BFGS", value(&start), found.value, found.steps);
    for ((name, fitted), (_, true_rate)) in found.point.named().into_iter().zip(truth.named()) {
        let (fitted, true_rate) = (fitted.exp().item::<f64>()?, true_rate.exp().item::<f64>()?);
        println!("  {name:6} {fitted:.4}; it was {true_rate:.4}");
        assert!((fitted / true_rate - 1.0).abs() < 0.05, "{name}: {fitted} and not {true_rate}");
    }
    assert!(found.converged.item::<bool>()?, "L-BFGS did not converge");
    Ok(())
}

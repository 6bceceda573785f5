//! What an option is worth, and how that moves with the market: Monte Carlo with all first derivatives from one backward pass,
//! second ones by `hessian`, beside the closed form where there is one.

use gradus::prelude::*;
use gradus::special;

/// The price of the share, its volatility and the interest rate. Time and strike are constants below.
#[derive(Clone, Tree)]
struct Market {
    spot: Array,
    volatility: Array,
    rate: Array,
}

const YEARS: f64 = 1.0;
const STRIKE: f64 = 100.0;
/// The dates that an Asian option takes the mean over.
const DATES: usize = 12;
const PATHS: usize = 40_000;

impl Market {
    fn now() -> Market {
        Market { spot: Array::from(100.0_f64), volatility: Array::from(0.2_f64), rate: Array::from(0.03_f64) }
    }
}

/// The formula of Black and Scholes for the right to buy at a strike after some years.
fn black_scholes(m: &Market, spot: &Array, strike: &Array, years: f64) -> Array {
    let spread = &m.volatility * years.sqrt();
    let d1 = ((spot / strike).log() + &m.rate * years) / &spread + 0.5 * &spread;
    let d2 = &d1 - &spread;
    spot * special::ndtr(&d1) - strike * (-&m.rate * years).exp() * special::ndtr(&d2)
}

fn closed_form(m: &Market) -> Array {
    black_scholes(m, &m.spot, &Array::from(STRIKE), YEARS)
}

/// The same by simulation: the payoff of each path, discounted.
fn simulated(m: &Market, draws: &Array) -> Array {
    let drift = (&m.rate - 0.5 * m.volatility.square()) * YEARS;
    let last = &m.spot * (drift + &m.volatility * YEARS.sqrt() * draws).exp();
    (last - STRIKE).relu() * (-&m.rate * YEARS).exp()
}

/// An Asian option pays by the mean of the prices at its dates. `draws` is `[paths, dates - 1]`: the last date is integrated
/// by the closed form, which has no kink. A payoff with one has a second derivative that no path sees.
fn asian(m: &Market, draws: &Array) -> Array {
    let dt = YEARS / DATES as f64;
    let steps = (&m.rate - 0.5 * m.volatility.square()) * dt + &m.volatility * dt.sqrt() * draws;
    let prices = &m.spot * steps.cumsum(1).exp();
    // The last price has to bring this much for the mean to reach the strike; perhaps the others have done so already.
    let missing = STRIKE * DATES as f64 - prices.sum_axes(1);
    let last = black_scholes(m, &prices.index((.., -1)), &missing.maximum(1e-9), dt);
    let surplus = (-missing).relu() * (-&m.rate * dt).exp();
    (last + surplus) / DATES as f64 * (-&m.rate * (YEARS - dt)).exp()
}

/// A mean and its standard error.
fn estimate(samples: &Array) -> Result<(f64, f64)> {
    let [n] = samples.sizes()?;
    Ok((samples.mean().item()?, samples.std().item::<f64>()? / (n as f64).sqrt()))
}

/// Prices and their derivatives, each beside another way to the same number.
pub fn main() -> Result<()> {
    let market = Market::now();
    let [a, b] = Key::new(6).split();
    let draws = random::normal::<f64>(a, [PATHS]);

    // The derivative of each path, so that every Greek comes with its error.
    let paths = jit(vmap(value_and_grad(simulated)).axes((None, Some(0))));
    let (prices, greeks) = paths(&market, &draws);
    let (exact, exact_greeks) = jit(value_and_grad(closed_form))(&market);
    println!("European call, {PATHS} paths, beside the closed form:");
    let rows = [
        ("price", &prices, &exact),
        ("delta", &greeks.spot, &exact_greeks.spot),
        ("vega", &greeks.volatility, &exact_greeks.volatility),
        ("rho", &greeks.rate, &exact_greeks.rate),
    ];
    for (name, samples, exact) in rows {
        let ((mean, error), exact) = (estimate(samples)?, exact.item::<f64>()?);
        println!("  {name:6} {mean:9.4} ± {error:.4}   {exact:9.4}");
        assert!((mean - exact).abs() < 4.0 * error, "{name}: {mean} ± {error}, and {exact} by the closed form");
    }

    let draws = random::normal::<f64>(b, [PATHS, DATES - 1]);
    let price = |m: &Market, draws: &Array| asian(m, draws).mean();
    let (value, greeks) = jit(value_and_grad(price))(&market, &draws);
    let error = estimate(&asian(&market, &draws))?.1;
    println!("Asian call over {DATES} dates: {value:.4} ± {error:.4}");
    println!("  delta {:.4}  vega {:.4}  rho {:.4}", greeks.spot, greeks.volatility, greeks.rate);

    // All second derivatives: a tree of three numbers is a vector for that.
    let (point, back) = tree::ravel(&market);
    let second = jit(hessian(move |x: &Array, draws: &Array| price(&back.call(x), draws)))(&point, &draws);
    let (gamma, vanna, volga) = (second.index((0, 0)), second.index((0, 1)), second.index((1, 1)));
    println!("  gamma {gamma:.5}  vanna {vanna:.4}  volga {volga:.4}");

    // The same draws with a share that costs a little more and a little less.
    let delta = jit(move |spot: &Array, draws: &Array| {
        grad(price)(&Market { spot: spot.clone(), ..Market::now() }, draws).spot
    });
    let moved = |by: f64| delta(&Array::from(100.0 + by), &draws);
    let difference = ((moved(0.01) - moved(-0.01)) / 0.02).item::<f64>()?;
    println!("  gamma by differences of delta: {difference:.5}");
    let gamma = gamma.item::<f64>()?;
    assert!((gamma - difference).abs() < 1e-4 * gamma, "gamma is {gamma}, by differences {difference}");
    // A mean moves less than its last price: the option is worth less than the European one.
    assert!(value.item::<f64>()? < exact.item::<f64>()?, "an Asian call costs less");

    println!("delta of the Asian call by the price of the share, all in one call:");
    let spots = Array::linspace(80.0_f64, 120.0, 9);
    let deltas = jit(vmap(move |s: &Array, d: &Array| delta(s, d)).axes((Some(0), None)))(&spots, &draws);
    let deltas = deltas.to_vec::<f64>()?;
    for (spot, delta) in spots.to_vec::<f64>()?.iter().zip(&deltas) {
        println!("  {spot:5}  {delta:.3} {}", "█".repeat((delta * 40.0) as usize));
    }
    assert!(deltas.is_sorted() && deltas[0] < 0.1 && deltas[8] > 0.9, "delta rises from 0 to 1: {deltas:?}");
    Ok(())
}

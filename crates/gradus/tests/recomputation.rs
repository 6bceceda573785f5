//! How often reverse mode computes the steps of a loop again, counted by an operation that watches itself run. The
//! page `docs/book/src/memory.md` promises these counts.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use gradus::extend::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use gradus::extend::trace::bind;
use gradus::extend::{rules_of, types::Effects};
use gradus::prelude::*;

/// For each number that [`Watched`] met, how often.
static MET: Mutex<BTreeMap<i64, usize>> = Mutex::new(BTreeMap::new());

/// The tests count in one table, so they run one after the other.
static ALONE: Mutex<()> = Mutex::new(());

/// x with the derivative x: the backward pass needs the state of every step.
#[derive(Clone, Copy, Debug)]
struct Watched;

impl Primitive for Watched {
    rules_of!("test_watched");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        infer.all_same().map(|t| [t].into_iter().collect())
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        // A batch is met once, as the step of the example that is furthest.
        let step = inputs[0].to_vec::<f64>()?.into_iter().fold(0.0, f64::max) as i64;
        *MET.lock().unwrap_or_else(PoisonError::into_inner).entry(step).or_default() += 1;
        Ok(inputs.iter().cloned().collect())
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        match &jvp.tangents[0] {
            Some(t) => Derivative::one(t * &jvp.primals[0]),
            None => Ok(Derivative::Zero),
        }
    }
    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        batch.elementwise(Op::new(*self))
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        Vec::new()
    }
}

fn watched(x: &Array) -> Array {
    bind(Op::fixed(&Watched), std::slice::from_ref(x))
}

/// Runs a staged gradient; how often the step that was computed most often was, of `n` steps.
fn most(n: usize, df: impl Fn(&Array)) -> usize {
    MET.lock().unwrap_or_else(PoisonError::into_inner).clear();
    df(&Array::from(0.0_f64));
    let met = MET.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(met.len(), n, "every step, and no other");
    met.values().copied().max().unwrap_or(0)
}

/// The least r with C(places + r, r) >= n.
fn repeats(places: usize, n: usize) -> usize {
    let mut choose = 1;
    let enough = |r: &usize| {
        choose = choose * (places + r) / r;
        choose >= n
    };
    (1..).find(enough).unwrap()
}

#[test]
fn row_d7_a_while_loop_computes_each_step_a_few_times() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (s, n, r) in
        [(2, 10, 9), (3, 20, 5), (3, 60, 10), (4, 70, 6), (8, 45, 3), (8, 200, 4), (32, 30, 1), (32, 100, 2)]
    {
        // The first state has its place, and there are s - 1 for others.
        assert_eq!(repeats(s - 1, n), r);
        let f = move |x: &Array| {
            let goes_on = |x: &Array| x.lt(n as f64);
            WhileOptions::new().history(History::Checkpoints(s)).while_loop(
                goes_on,
                |x: &Array| watched(x) + 1.0_f64,
                x.clone(),
            )
        };
        // A verified call would compute every step once more.
        let (slope, both) = (jit(grad(f)).verify_calls(Verify::Off), jit(value_and_grad(f)).verify_calls(Verify::Off));
        // Once forward, which counts the steps, and then as often as the binomial says. The value comes with that.
        assert_eq!(most(n, |x| drop(slope(x))), 1 + r, "{s} states, {n} steps");
        assert_eq!(most(n, |x| drop(both(x))), 1 + r, "{s} states, {n} steps");
    }
    // The numbers that the page gives for the default.
    assert_eq!(History::default(), History::Checkpoints(32));
    assert_eq!(repeats(31, 500_000), 6);
}

/// In a batch of loops, of equal lengths or not, a step is computed as often as in the longest loop alone; and each example has its
/// own derivative.
#[test]
fn row_d7_a_batch_of_while_loops_goes_by_one_plan() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let all = || MET.lock().unwrap_or_else(PoisonError::into_inner).values().sum::<usize>();
    for s in [2, 4, 32] {
        // x is what the steps work on, and starts as it comes; the number of steps is data.
        let f = move |x: &Array, n: &Array| {
            let n = n.clone();
            let goes_on = move |(i, _): &(Array, Array)| i.lt(&n);
            let step = |(i, x): &(Array, Array)| (i + 1.0_f64, x.sin() + watched(i) * 0.125_f64);
            WhileOptions::new()
                .history(History::Checkpoints(s))
                .while_loop(goes_on, step, (Array::from(0.0_f64), x.clone()))
                .1
        };
        let one = jit(grad(f));
        let many = jit(vmap(grad(f)));
        let nested = jit(vmap(vmap(grad(f))));
        for lengths in [[30.0, 30.0, 30.0, 30.0], [30.0, 15.0, 0.0, 29.0], [0.0, 1.0, 30.0, 2.0], [0.0; 4]] {
            let xs = [0.5, 0.25, -1.0, 2.0];
            let (mut want, mut longest) = (Vec::new(), 0);
            for (x, n) in xs.iter().zip(lengths) {
                MET.lock().unwrap_or_else(PoisonError::into_inner).clear();
                want.push(one(&Array::from(*x), &Array::from(n)).item::<f64>().unwrap());
                longest = longest.max(all());
            }
            let (xs, lengths) = (Array::from(xs), Array::from(lengths));
            for (f, shape) in [(&many, vec![4]), (&nested, vec![2, 2])] {
                MET.lock().unwrap_or_else(PoisonError::into_inner).clear();
                let have = f(&xs.reshape(shape.clone()), &lengths.reshape(shape)).to_vec::<f64>().unwrap();
                assert!(all() <= longest, "{s} states: {} steps of a batch, {longest} of its longest loop", all());
                for (have, want) in have.iter().zip(&want) {
                    assert!((have - want).abs() <= 1e-14 * want.abs().max(1.0), "{s} states: {have} is not {want}");
                }
            }
        }
    }
}

#[test]
fn row_d7_a_scan_computes_each_step_as_often_as_it_is_told() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Pieces of eight, of eight times eight, and so on: levels as there are such pieces in the loop.
    for (steps, n, again) in [
        (Steps::Keep, 50, 0),
        (Steps::Every(7), 50, 1),
        (Steps::Recursive, 8, 0),
        (Steps::Recursive, 60, 1),
        (Steps::Recursive, 100, 2),
    ] {
        let df = jit(grad(move |x: &Array| {
            let options = ScanOptions::new().steps(steps).length(n);
            options.scan(|x: &Array, (): &()| (watched(x) + 1.0_f64, ()), x.clone(), &()).0
        }))
        .verify_calls(Verify::Off);
        assert_eq!(most(n, |x| drop(df(x))), 1 + again, "{steps:?}, {n} steps");
    }
}

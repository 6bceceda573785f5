//! A panic in the user's code is the user's: whichever rule of an operation or closure it comes from and however the function is called, it reaches the caller
//! as it is, and everything works afterwards.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use gradus::Interpreter;
use gradus::cache::clear_executables;
use gradus::extend::primitives::{
    Batch, Batched, Derivative, Expansion, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use gradus::extend::scalar::{Local, Scalars};
use gradus::extend::trace::{bind, is_tracing};
use gradus::extend::{rules_of, types::Effects};
use gradus::prelude::*;

thread_local! {
    /// The rule that panics on this thread.
    static TOUCHY: Cell<&'static str> = const { Cell::new("") };
}

fn touch(rule: &str) {
    assert!(TOUCHY.get() != rule, "touchy {rule}");
}

/// Twice its operand, with rules that panic when they are told to.
#[derive(Clone, Copy, Debug)]
struct Touchy;

impl Primitive for Touchy {
    rules_of!("touchy");
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        touch("infer");
        // A rule may use arrays, whatever is being traced.
        assert_eq!((Array::from(1.0_f64) + 1.0).item::<f64>()?, 2.0);
        infer.arity(1)?;
        infer.all_same().map(|t| [t].into_iter().collect())
    }
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        touch("evaluate");
        Ok([&inputs[0] + &inputs[0]].into_iter().collect())
    }
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative> {
        touch("jvp");
        Derivative::linear(Op::new(*self), jvp)
    }
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed> {
        touch("transpose");
        match &transpose.cotangents[0] {
            Some(y_bar) => Transposed::one(touchy(y_bar)),
            None => Ok(Transposed::Cotangents([None].into_iter().collect())),
        }
    }
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        touch("batch");
        batch.elementwise(Op::new(*self))
    }
    fn scalar(&self, _: &mut Scalars) -> Option<Local> {
        touch("scalar");
        None
    }
    fn expand(&self, _: &[Type]) -> Option<Expansion<'_>> {
        touch("expand");
        None
    }
    fn effects(&self) -> Effects {
        Effects::PURE
    }
    fn samples() -> Vec<Sample> {
        vec![Sample::new(Op::new(Touchy), vec![Array::from([0.5_f64, -2.0])])]
    }
}

const RULES: [&str; 7] = ["infer", "evaluate", "jvp", "transpose", "batch", "scalar", "expand"];

fn touchy(x: &Array) -> Array {
    bind(Op::new(Touchy), std::slice::from_ref(x))
}

/// 4·Σx², a slope of 8x in each element.
fn f(x: &Array) -> Array {
    touchy(&(touchy(x) * x)).sum()
}

fn looped(x: &Array) -> Array {
    (fori_loop(0, 2, |_, y: &Array| touchy(y), x.clone()) * x).sum()
}

/// What a panic said; none if there was none.
fn said<T>(run: impl FnOnce() -> T) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(run)).err()?;
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    Some(text.or_else(|| panic.downcast_ref::<String>().cloned()).expect("the user's own panic"))
}

/// A way of running, and the rules that it needs.
struct Way {
    name: &'static str,
    needs: &'static [&'static str],
    /// Makes a function that runs it, with nothing kept from before.
    make: fn() -> Box<dyn Fn(&Array) -> Result<Vec<f64>>>,
    want: fn(&[f64]) -> Vec<f64>,
}

fn total(x: &[f64]) -> Vec<f64> {
    vec![x.iter().map(|v| 4.0 * v * v).sum()]
}

fn slopes(x: &[f64]) -> Vec<f64> {
    x.iter().map(|v| 8.0 * v).collect()
}

fn each(x: &[f64]) -> Vec<f64> {
    x.iter().map(|v| 4.0 * v * v).collect()
}

fn boxed(call: impl Fn(&Array) -> Array + 'static) -> Box<dyn Fn(&Array) -> Result<Vec<f64>>> {
    Box::new(move |x| call(x).to_vec::<f64>())
}

fn ways() -> Vec<Way> {
    const RUN: &[&str] = &["infer", "evaluate"];
    const COMPILED: &[&str] = &["infer", "evaluate", "scalar", "expand"];
    const SLOPE: &[&str] = &["infer", "evaluate", "jvp", "transpose"];
    const COMPILED_SLOPE: &[&str] = &["infer", "evaluate", "jvp", "transpose", "scalar", "expand"];
    let way = |name, needs, want: fn(&[f64]) -> Vec<f64>, make| Way { name, needs, make, want };
    vec![
        way("as it is", RUN, total, || boxed(f)),
        way("jit", COMPILED, total, || {
            let g = jit(f);
            boxed(move |x| g(x))
        }),
        way("jit, embedded", COMPILED, total, || {
            let g = jit(f).tier(Tier::Embedded);
            boxed(move |x| g(x))
        }),
        way("jit, interpreted", RUN, total, || {
            let g = jit(f).backend(Interpreter);
            boxed(move |x| g(x))
        }),
        way("jit, verified", COMPILED, total, || {
            let g = jit(f).verify();
            boxed(move |x| g(x))
        }),
        way("jit, hunting", COMPILED, total, || {
            let g = jit(f).hunt(Hunt::Nan);
            boxed(move |x| g(x))
        }),
        way("jit, sizes are symbols", COMPILED, total, || {
            let g = jit(f).symbolic("f64[N]");
            boxed(move |x| g(x))
        }),
        way("jit in jit", COMPILED, total, || {
            let inner = jit(f);
            let g = jit(move |x: &Array| inner(x));
            boxed(move |x| g(x))
        }),
        way("a loop", RUN, total, || boxed(looped)),
        way("jit of a loop", COMPILED, total, || {
            let g = jit(looped);
            boxed(move |x| g(x))
        }),
        way("grad", SLOPE, slopes, || {
            let g = grad(f);
            boxed(move |x| g(x))
        }),
        way("jit(grad)", COMPILED_SLOPE, slopes, || {
            let g = jit(grad(f));
            boxed(move |x| g(x))
        }),
        way("grad(jit)", COMPILED_SLOPE, slopes, || {
            let g = grad(jit(f));
            boxed(move |x| g(x))
        }),
        way("jit(grad) of a loop", COMPILED_SLOPE, slopes, || {
            let g = jit(grad(looped));
            boxed(move |x| g(x))
        }),
        way("vmap", &["infer", "evaluate", "batch"], each, || {
            let g = vmap(f);
            boxed(move |x| g(x))
        }),
        way("jit(vmap)", &["infer", "evaluate", "batch", "scalar", "expand"], each, || {
            let g = jit(vmap(f));
            boxed(move |x| g(x))
        }),
        way("a compiled call", COMPILED, total, || {
            let g = jit(f);
            Box::new(move |x| g.compile(x)?.call(x)?.to_vec::<f64>())
        }),
        way("a prepared call", COMPILED, total, || {
            let g = jit(f);
            Box::new(move |x| {
                let mut call = g.compile(x)?.prepared()?;
                call.input::<f64>(0)?.copy_from_slice(&x.to_vec::<f64>()?);
                call.run()?;
                Ok(call.output::<f64>(0)?.to_vec())
            })
        }),
        way("phases", COMPILED, total, || {
            let g = jit(f);
            Box::new(move |x| {
                g.phases(x)?;
                g(x).to_vec::<f64>()
            })
        }),
    ]
}

/// Numbers of a length that no other test has: nothing that was compiled elsewhere is found again.
fn numbers(n: usize) -> (Array, Vec<f64>) {
    let x: Vec<f64> = (0..n).map(|i| i as f64 * 0.5 - 1.0).collect();
    (Array::from(x.clone()), x)
}

#[test]
fn a_panic_in_a_rule_reaches_the_caller_as_it_is() {
    gradus::extend::primitives::register::<Touchy>("touchy").unwrap();
    let mut n = 3;
    for way in ways() {
        for rule in RULES {
            n += 1;
            let (x, values) = numbers(n);
            // One program serves every length where sizes are symbols.
            clear_executables();
            let run = (way.make)();
            TOUCHY.set(rule);
            let mut have = None;
            let text = said(|| have = Some(run(&x)));
            TOUCHY.set("");
            let context = format!("{rule} in {}: {have:?}", way.name);
            let wanted = way.needs.contains(&rule).then(|| format!("touchy {rule}"));
            assert_eq!(text, wanted, "{context}");
            if let Some(have) = have {
                assert_eq!(have.unwrap(), (way.want)(&values), "{context}");
            }
            assert!(!is_tracing(), "{context}");
            // The same function again, and one that is not touched by any of it.
            assert_eq!(run(&x).unwrap(), (way.want)(&values), "{context}, afterwards");
            let other = jit(grad(|x: &Array| (x * x).sum()))(&x).to_vec::<f64>().unwrap();
            assert_eq!(other, values.iter().map(|v| 2.0 * v).collect::<Vec<_>>(), "{context}, afterwards");
        }
    }
}

#[test]
fn code_that_was_there_before_lets_a_panic_through_too() {
    let (x, values) = numbers(201);
    for way in ways() {
        let run = (way.make)();
        assert_eq!(run(&x).unwrap(), (way.want)(&values), "{}", way.name);
        for _ in 0..3 {
            TOUCHY.set("evaluate");
            let text = said(|| run(&x));
            TOUCHY.set("");
            assert_eq!(text.as_deref(), Some("touchy evaluate"), "{}", way.name);
            assert!(!is_tracing());
            assert_eq!(run(&x).unwrap(), (way.want)(&values), "{}", way.name);
        }
    }
}

#[test]
fn a_panic_on_one_thread_is_not_one_on_others() {
    let (x, values) = numbers(202);
    for rule in RULES {
        let (function, slope) = (jit(f), jit(grad(f)));
        std::thread::scope(|s| {
            let threads: Vec<_> = (0..8)
                .map(|i| {
                    let (function, slope, x, values) = (&function, &slope, &x, &values);
                    s.spawn(move || {
                        TOUCHY.set(if i % 2 == 0 { rule } else { "" });
                        let both = || (function(x).to_vec::<f64>().unwrap(), slope(x).to_vec::<f64>().unwrap());
                        let mut have = None;
                        match said(|| have = Some(both())) {
                            Some(text) => assert_eq!((i % 2, text), (0, format!("touchy {rule}"))),
                            None => assert_eq!(have, Some((total(values), slopes(values)))),
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|t| t.join().unwrap());
        });
        assert_eq!(function(&x).to_vec::<f64>().unwrap(), total(&values), "{rule}");
        assert_eq!(slope(&x).to_vec::<f64>().unwrap(), slopes(&values), "{rule}");
    }
}

#[test]
fn a_panic_in_the_users_function_reaches_the_caller_as_it_is() {
    type Make = fn(fn(&Array) -> Array) -> Box<dyn Fn(&Array) -> Array>;
    fn traced(x: &Array) -> Array {
        touch("the function");
        (x * x).sum()
    }
    let makes: [(&str, Make); 8] = [
        ("jit", |f| Box::new(move |x| jit(f)(x))),
        ("jit, concrete", |f| Box::new(move |x| jit(f).mode(Mode::Concrete)(x))),
        ("grad", |f| Box::new(move |x| grad(f)(x))),
        ("jit(grad)", |f| Box::new(move |x| jit(grad(f))(x))),
        ("grad(jit)", |f| Box::new(move |x| grad(jit(f))(x))),
        ("vmap", |f| Box::new(move |x| vmap(f)(x))),
        ("checkpoint", |f| Box::new(move |x| jit(grad(checkpoint(f)))(x))),
        ("a branch", |f| Box::new(move |x| jit(move |x: &Array| cond(x.sum().gt(0.0), f, |x: &Array| x.sum(), x))(x))),
    ];
    let (x, _) = numbers(203);
    for (name, make) in makes {
        let run = make(traced);
        let want = run(&x).to_vec::<f64>().unwrap();
        TOUCHY.set("the function");
        let text = said(|| run(&x));
        TOUCHY.set("");
        assert_eq!(text.as_deref(), Some("touchy the function"), "{name}");
        assert!(!is_tracing(), "{name}");
        assert_eq!(run(&x).to_vec::<f64>().unwrap(), want, "{name}");
    }
}

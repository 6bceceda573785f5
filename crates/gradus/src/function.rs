//! Functions: plain Rust ones and what transformations make of them. Both can be transformed again.

use std::ops::Deref;
use std::sync::Arc;

use crate::signature::{Sig1, Sig2, Sig3, Sig4, Sig5, Sig6, Sig7, Sig8, Signature};
use crate::stage::{Compiled, Core, Declared, Explanation, OnBudget, Phases, Stats, TracedFunction};
use crate::tree::Tree;
use gradus_core::hunt::Hunt;
use gradus_core::optimize::Exactness;
use gradus_core::oracle::Verify;
use gradus_core::{Backend, Location, Mode, Result};
use gradus_cpu::{Cpu, Tier};

/// Whatever a transformation takes: functions, closures, and the results of other transformations.
///
/// Functions take one to eight arguments by reference, each a [`Tree`](trait@Tree), and give a tree. They are
/// `Send + Sync`, so that what is made of them can be called from many threads. Transformations that keep a function
/// (`jit`, `grad`, `vmap`) want it to own what it captures; those that only call it (`vjp`, `jvp`) do not.
pub trait Func<S: Signature>: Send + Sync {
    /// Calls it.
    fn apply(&self, args: S::Refs<'_>) -> S::Out;
    /// The name that programs traced from it get.
    fn name(&self) -> String;
    /// The transformations it went through, such as `jit(grad(f))`.
    fn stack(&self) -> String {
        self.name()
    }
}

/// A name for a function from the path of its type: `crate::module::f` is `f`, a closure is named after its home.
fn short_name(path: &str) -> String {
    let mut depth = 0usize;
    let plain: String = path
        .chars()
        .filter(|c| {
            depth = match c {
                '<' => depth + 1,
                '>' => depth.saturating_sub(1),
                _ => depth,
            };
            depth == 0 && *c != '>'
        })
        .collect();
    let segments: Vec<&str> = plain.split("::").collect();
    let is_closure = |s: &&str| s.starts_with('{');
    let home = segments.iter().rev().find(|s| !is_closure(s) && !s.is_empty()).copied().unwrap_or("f");
    let clean: String = home.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let clean =
        if clean.starts_with(|c: char| c.is_ascii_digit()) || clean.is_empty() { format!("f{clean}") } else { clean };
    if segments.last().is_some_and(is_closure) { format!("{clean}_closure") } else { clean }
}

/// A function over the arguments of `S` with another result: what a transformation makes before it is a [`Fun`].
pub struct Wrapped<S: Signature, O> {
    pub(crate) call: WrappedCall<S, O>,
    pub(crate) name: String,
    pub(crate) stack: String,
}

pub(crate) type WrappedCall<S, O> = Box<dyn for<'a> Fn(<S as Signature>::Refs<'a>) -> O + Send + Sync>;

/// The result of a transformation. It is called like a function and has methods that look inside.
pub struct Fun<S: Signature> {
    call: Box<S::Dyn>,
    pub(crate) core: Arc<Core<S>>,
}

impl<S: Signature> Fun<S> {
    pub(crate) fn new(core: Core<S>) -> Fun<S> {
        let core = Arc::new(core);
        let shared = core.clone();
        Fun { call: S::boxed(move |args| shared.call(args)), core }
    }

    /// A function that a transformation made of `f` and that runs as it is called, without staging.
    #[track_caller]
    pub(crate) fn direct<G, O>(transform: &'static str, f: &dyn Func<G>, call: WrappedCall<G, O>) -> Fun<S>
    where
        G: Signature<WithOut<O> = S>,
        O: Tree,
    {
        let name = format!("{transform}_{}", f.name());
        let wrapped = Wrapped { call, name, stack: f.stack() };
        Fun::new(Core::new(transform, false, G::function(wrapped), Location::caller()))
    }

    /// How tracing treats values: by type only, or with values at hand and guards.
    pub fn mode(self, mode: Mode) -> Fun<S> {
        Fun::new(self.core.with_options(|o| o.mode = mode))
    }

    /// What the optimizer may change: by default nothing. `Exactness::Relaxed` takes `0·x` for 0 and `x + 0.0` for x, which
    /// is wrong for NaN, infinities and the sign of zero; compiled code also multiplies by a reciprocal where several are
    /// divided by one number, which can change the last bit.
    pub fn exactness(self, exactness: Exactness) -> Fun<S> {
        Fun::new(self.core.with_options(|o| o.pipeline.exactness = exactness))
    }

    /// Hunts for the first operation that makes a NaN, or an infinity, forward or backward: a call that meets one gives an
    /// error that names it, its line, its operands and the rules that led there. Compiled code is slower meanwhile. Without
    /// this the environment variable `GRADUS_HUNT` decides (`nan`, `inf` for both, `off`).
    ///
    /// ```
    /// use gradus::prelude::*;
    ///
    /// # fn main() -> Result<()> {
    /// let slope = jit(grad(|x: &Array| x.sqrt())).hunt(Hunt::NanAndInf);
    /// assert_eq!(slope(&Array::from(4.0_f64)).item::<f64>()?, 0.25);
    /// let e = slope(&Array::from(0.0_f64)).item::<f64>().unwrap_err().to_string();
    /// assert!(e.contains("`div` made an infinity") && e.contains("jvp of `sqrt`"), "{e}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn hunt(self, hunt: Hunt) -> Fun<S> {
        Fun::new(self.core.with_options(|o| o.pipeline.hunt = hunt))
    }

    /// Who runs it: `Interpreter`, or the native compiler `Cpu` with options of its own.
    pub fn backend(self, backend: impl Backend + 'static) -> Fun<S> {
        Fun::new(self.core.with_options(|o| o.pipeline.backend = Arc::new(backend)))
    }

    /// Holds calls against the interpreter, every one or the first of each compiled program: compiled code runs, the program is
    /// interpreted on the same inputs, and a difference is an error that names the output, both numbers, the kernel and your line,
    /// and the folder that it wrote with the program and its inputs. Without this the environment variable `GRADUS_VERIFY` decides
    /// (`1`, `first`).
    ///
    /// Whole numbers, bools and keys must be equal; floats may differ by rounding. Effects happen once. A function that is not
    /// staged has nothing to verify.
    ///
    /// ```
    /// use gradus::prelude::*;
    ///
    /// let f = jit(|x: &Array| (x * x).sin().sum()).verify();
    /// assert_eq!(f(&Array::from([0.0_f64, 0.0])).item::<f64>()?, 0.0);
    /// # Ok::<(), gradus::Error>(())
    /// ```
    pub fn verify(self) -> Fun<S> {
        self.verify_calls(Verify::Every)
    }

    /// Which calls are held against the interpreter, as [`verify`](Fun::verify) does every one: the first of each program, or none where the
    /// environment asks for all.
    pub fn verify_calls(self, calls: Verify) -> Fun<S> {
        Fun::new(self.core.with_options(|o| o.pipeline.running.verify = calls))
    }

    /// Makes a program that Gradus fails to compile an error, [`G0021`](crate::ErrorKind::Internal). Without this it is interpreted, with a warning.
    /// So does `GRADUS_STRICT=1` for a whole process.
    pub fn strict(self) -> Fun<S> {
        Fun::new(self.core.with_options(|o| o.pipeline.running.strict = true))
    }

    /// Which code generator of the native compiler makes its code.
    pub fn tier(self, tier: Tier) -> Fun<S> {
        self.backend(Cpu::new().tier(tier))
    }

    /// Declares dimensions that vary: one program, compiled once, serves all their sizes.
    ///
    /// What each argument is, separated by commas: `_` for one that stays as it comes, a type with symbols for the sizes that
    /// vary, and `(f32[B, 16], _)` for the arrays of a structure, in order. Dimensions may be expressions (`2*B+1`), open (`_`), and have
    /// conditions (`where B >= 1, B % 8 == 0`). What does not fit is an error that names the argument and the symbol.
    ///
    /// ```
    /// use gradus::prelude::*;
    ///
    /// let mean = jit(|x: &Array| x.mean_axes(0)).symbolic("f32[B, 2] where B >= 1");
    /// for b in 1..10 {
    ///     mean(&Array::ones::<f32>([b, 2])).to_vec::<f32>()?;
    /// }
    /// assert_eq!(mean.stats().compiles, 1);
    /// # Ok::<(), gradus::Error>(())
    /// ```
    #[track_caller]
    pub fn symbolic(self, arguments: &str) -> Fun<S> {
        let declared = Declared::read(arguments, Location::caller());
        Fun::new(self.core.with_options(|o| o.declared = Some(declared)))
    }

    /// Sizes of a [symbolic](Fun::symbolic) function that were met in so many calls get a program of their own from then on: it is
    /// compiled for exactly these sizes, which can be a little faster, and costs a compilation for each. By default none do.
    pub fn specialize_after(self, calls: u32) -> Fun<S> {
        Fun::new(self.core.with_options(|o| o.specialize_after = Some(calls)))
    }

    /// The most bytes of programs and machine code that this function keeps; the least recently used go first.
    pub fn cache_limit(self, bytes: usize) -> Fun<S> {
        Fun::new(self.core.with_options(|o| o.cache_limit = bytes))
    }

    /// How many programs calls may need before there is a warning, or whatever [`on_budget`](Fun::on_budget) says: 16
    /// unless it is set, here or by `GRADUS_BUDGET`. Programs made ahead by `compile` do not count.
    ///
    /// ```
    /// # use gradus::prelude::*;
    /// let f = jit(|x: &Array| x.sum()).budget(2).on_budget(OnBudget::Error);
    /// let sums: Vec<Array> = (1..=3_usize).map(|n| f(&Array::ones::<f32>([n, 4]))).collect();
    /// assert!(sums[1].clone().ok().is_ok());
    /// let e = sums[2].clone().ok().unwrap_err();
    /// assert_eq!(e.kind(), ErrorKind::Budget);
    /// assert!(e.to_string().contains("argument 0 varies in dimension 0 (1, 2, 3)"));
    /// ```
    pub fn budget(self, programs: usize) -> Fun<S> {
        Fun::new(self.core.with_options(|o| o.budget.programs = programs))
    }

    /// What happens when calls need more programs than the [`budget`](Fun::budget).
    pub fn on_budget(self, then: OnBudget) -> Fun<S> {
        Fun::new(self.core.with_options(|o| o.budget.then = then))
    }

    /// How often it was traced, compiled and found ready.
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Forgets every program. Counters stay.
    pub fn clear(&self) {
        self.core.clear();
    }

    /// The transformations it stands for, outermost first.
    pub fn stack(&self) -> String {
        self.core.stack()
    }
}

impl<S: Signature> Deref for Fun<S> {
    type Target = S::Dyn;
    fn deref(&self) -> &S::Dyn {
        &self.call
    }
}

impl<S: Signature> Func<S> for Fun<S> {
    fn apply(&self, args: S::Refs<'_>) -> S::Out {
        self.core.call(args)
    }
    fn name(&self) -> String {
        self.core.name()
    }
    fn stack(&self) -> String {
        self.core.stack()
    }
}

macro_rules! arities {
    ($($sig:ident($($arg:ident $v:ident),*);)*) => {$(
        // `Fn` is fundamental: that `Fun` is not one is known here, so these do not overlap with the impl above.
        impl<Function, $($arg: Tree,)* Out: Tree> Func<$sig<$($arg,)* Out>> for Function
        where
            Function: Fn($(&$arg),*) -> Out + Send + Sync,
        {
            fn apply(&self, ($($v,)*): ($(&$arg,)*)) -> Out {
                self($($v),*)
            }
            fn name(&self) -> String {
                short_name(std::any::type_name::<Function>())
            }
        }

        #[allow(clippy::too_many_arguments)]
        impl<$($arg: Tree,)* Out: Tree> Fun<$sig<$($arg,)* Out>> {
            /// The program of the function for arguments of these types; numbers are not needed, specs will do.
            #[track_caller]
            pub fn trace(&self, $($v: &$arg),*) -> Result<TracedFunction> {
                self.core.trace(($($v,)*))
            }

            /// Makes the function ready ahead of a call. What is frozen stays so: a call with another frozen value
            /// is an error that names it.
            #[track_caller]
            pub fn compile(&self, $($v: &$arg),*) -> Result<Compiled<$sig<$($arg,)* Out>>> {
                self.core.compile(($($v,)*))
            }

            /// Every phase of a call with these arguments, with its program, time and size.
            #[track_caller]
            pub fn phases(&self, $($v: &$arg),*) -> Result<Phases> {
                self.core.phases(($($v,)*))
            }

            /// Whether a call with these arguments would find its program ready, and if not, why.
            pub fn explain(&self, $($v: &$arg),*) -> Explanation {
                self.core.explain(($($v,)*))
            }
        }

        #[allow(clippy::too_many_arguments)]
        impl<$($arg: Tree,)* Out: Tree> Compiled<$sig<$($arg,)* Out>> {
            /// Runs the compiled program.
            #[track_caller]
            pub fn call(&self, $($v: &$arg),*) -> Result<Out> {
                self.run(($($v,)*))
            }
        }
    )*};
}
arities! {
    Sig1(A a);
    Sig2(A a, B b);
    Sig3(A a, B b, C c);
    Sig4(A a, B b, C c, D d);
    Sig5(A a, B b, C c, D d, E e);
    Sig6(A a, B b, C c, D d, E e, F_ f);
    Sig7(A a, B b, C c, D d, E e, F_ f, G g);
    Sig8(A a, B b, C c, D d, E e, F_ f, G g, H h);
}

#[cfg(test)]
mod tests {
    use super::short_name;

    #[test]
    fn names_come_from_paths() {
        assert_eq!(short_name("a::b::f"), "f");
        assert_eq!(short_name("a::b::f<c::D>"), "f");
        assert_eq!(short_name("a::tests::g::{{closure}}"), "g_closure");
        assert_eq!(short_name("a::h<x::Y>::{{closure}}::{{closure}}"), "h_closure");
        assert_eq!(short_name("{{closure}}"), "f_closure");
    }
}

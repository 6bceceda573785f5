//! Functions: plain Rust ones and what transformations make of them. Both can be transformed again.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::arguments::Arguments;
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
/// `Send + Sync`, so that what is made of them can be called from many threads. They may borrow what is around them; what is
/// made of them lives as long as that.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function that can be staged or transformed",
    label = "not a function over trees of arrays",
    note = "a closure says the types of its arguments, which are references: `|x: &Array, model: &Model| ..`",
    note = "it gives arrays, or a tuple of them; a number is made an array by `Array::from(y)`",
    note = "a struct of arrays, taken or given, is one by `#[derive(Clone, Tree)]`",
    note = "a number as an argument is `Num`, or `Static<usize>` if every value makes a program of its own",
    note = "it may be called from several threads: what it captures is `Send + Sync`"
)]
pub trait Func<A: Arguments, O: Tree>: Send + Sync {
    /// Calls it.
    fn apply(&self, args: A::Refs<'_>) -> O;
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

/// What a transformation makes of a function before it is one again.
pub(crate) struct Wrapped<'f, A: Arguments, O: Tree> {
    call: WrappedCall<'f, A, O>,
    name: String,
    stack: String,
}

pub(crate) type WrappedCall<'f, A, O> = Box<dyn for<'a> Fn(<A as Arguments>::Refs<'a>) -> O + Send + Sync + 'f>;

impl<A: Arguments, O: Tree> Func<A, O> for Wrapped<'_, A, O> {
    fn apply(&self, args: A::Refs<'_>) -> O {
        (self.call)(args)
    }
    fn name(&self) -> String {
        self.name.clone()
    }
    fn stack(&self) -> String {
        self.stack.clone()
    }
}

/// The result of a transformation. It is called like a function and has methods that look inside.
///
/// `'f` is what the function borrows. One that borrows nothing is a [`Fun`], which has a short type and can be stored.
/// Clones share their programs.
pub struct Transformed<'f, A: Arguments, O: Tree> {
    call: Arc<A::Dyn<'f, O>>,
    pub(crate) core: Arc<Core<'f, A, O>>,
}

/// A transformed or staged function that owns what it captures: the arguments as a tuple, and the result.
///
/// ```
/// use gradus::prelude::*;
///
/// struct Service {
///     gradient: Fun<(Array, Array), Array>,
/// }
///
/// # fn main() -> Result<()> {
/// let service = Service { gradient: jit(grad(|w: &Array, x: &Array| (w * x).sum())) };
/// let g = (service.gradient)(&Array::from([1.0, 1.0]), &Array::from([5.0, 7.0]));
/// assert_eq!(g.to_vec::<f64>()?, [5.0, 7.0]);
/// # Ok(())
/// # }
/// ```
pub type Fun<A, O> = Transformed<'static, A, O>;

/// What it stands for: `jit(grad(f))`.
impl<A: Arguments, O: Tree> fmt::Debug for Transformed<'_, A, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.stack())
    }
}

impl<A: Arguments, O: Tree> Clone for Transformed<'_, A, O> {
    fn clone(&self) -> Self {
        Transformed { call: self.call.clone(), core: self.core.clone() }
    }
}

impl<'f, A: Arguments, O: Tree> Transformed<'f, A, O> {
    pub(crate) fn new(core: Core<'f, A, O>) -> Self {
        let core = Arc::new(core);
        let shared = core.clone();
        Transformed { call: A::boxed(move |args| shared.call(args)).into(), core }
    }

    /// A function that a transformation made of `f` and that runs as it is called, without staging.
    #[track_caller]
    pub(crate) fn direct<P: Tree>(
        transform: &'static str,
        f: &(dyn Func<A, P> + '_),
        call: WrappedCall<'f, A, O>,
    ) -> Self {
        Transformed::named(transform, (f.name(), f.stack()), call)
    }

    /// As [`direct`](Transformed::direct), of a function with this name and stack.
    #[track_caller]
    pub(crate) fn named(transform: &'static str, of: (String, String), call: WrappedCall<'f, A, O>) -> Self {
        let wrapped = Wrapped { call, name: format!("{transform}_{}", of.0), stack: of.1 };
        Transformed::new(Core::new(transform, false, Arc::new(wrapped), Location::caller()))
    }

    /// How tracing treats values: by type only, or with values at hand and guards.
    pub fn mode(self, mode: Mode) -> Self {
        Transformed::new(self.core.with_options(|o| o.mode = mode))
    }

    /// What the optimizer may change: by default nothing. `Exactness::Relaxed` takes `0·x` for 0 and `x + 0.0` for x, which
    /// is wrong for NaN, infinities and the sign of zero; compiled code also multiplies by a reciprocal where several are
    /// divided by one number, which can change the last bit.
    pub fn exactness(self, exactness: Exactness) -> Self {
        Transformed::new(self.core.with_options(|o| o.pipeline.exactness = exactness))
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
    pub fn hunt(self, hunt: Hunt) -> Self {
        Transformed::new(self.core.with_options(|o| o.pipeline.hunt = hunt))
    }

    /// Who runs it: `Interpreter`, or the native compiler `Cpu` with options of its own.
    pub fn backend(self, backend: impl Backend + 'static) -> Self {
        Transformed::new(self.core.with_options(|o| {
            o.pipeline.backend = Arc::new(backend);
            o.chosen = true;
        }))
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
    pub fn verify(self) -> Self {
        self.verify_calls(Verify::Every)
    }

    /// Which calls are held against the interpreter, as [`verify`](Transformed::verify) does every one: the first of each program, or none where the
    /// environment asks for all.
    pub fn verify_calls(self, calls: Verify) -> Self {
        Transformed::new(self.core.with_options(|o| o.pipeline.running.verify = calls))
    }

    /// Makes a program that Gradus fails to compile an error, [`G0021`](crate::ErrorKind::Internal). Without this it is interpreted, with a warning.
    /// So does `GRADUS_STRICT=1` for a whole process.
    pub fn strict(self) -> Self {
        Transformed::new(self.core.with_options(|o| o.pipeline.running.strict = true))
    }

    /// Which code generator of the native compiler makes its code.
    pub fn tier(self, tier: Tier) -> Self {
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
    pub fn symbolic(self, arguments: &str) -> Self {
        let declared = Declared::read(arguments, Location::caller());
        Transformed::new(self.core.with_options(|o| o.declared = Some(declared)))
    }

    /// Sizes of a [symbolic](Transformed::symbolic) function that were met in so many calls get a program of their own from then on: it is
    /// compiled for exactly these sizes, which can be a little faster, and costs a compilation for each. By default none do.
    pub fn specialize_after(self, calls: u32) -> Self {
        Transformed::new(self.core.with_options(|o| o.specialize_after = Some(calls)))
    }

    /// The most bytes of programs and machine code that this function keeps; the least recently used go first.
    pub fn cache_limit(self, bytes: usize) -> Self {
        Transformed::new(self.core.with_options(|o| o.cache_limit = bytes))
    }

    /// How many programs calls may need before there is a warning, or whatever [`on_budget`](Transformed::on_budget) says: 16
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
    pub fn budget(self, programs: usize) -> Self {
        Transformed::new(self.core.with_options(|o| o.budget.programs = programs))
    }

    /// What happens when calls need more programs than the [`budget`](Transformed::budget).
    pub fn on_budget(self, then: OnBudget) -> Self {
        Transformed::new(self.core.with_options(|o| o.budget.then = then))
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

impl<'f, A: Arguments, O: Tree> Deref for Transformed<'f, A, O> {
    type Target = A::Dyn<'f, O>;
    fn deref(&self) -> &Self::Target {
        &self.call
    }
}

impl<A: Arguments, O: Tree> Func<A, O> for Transformed<'_, A, O> {
    fn apply(&self, args: A::Refs<'_>) -> O {
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
    ($(($($arg:ident $v:ident),*);)*) => {$(
        // `Fn` is fundamental: that `Transformed` is not one is known here, so these do not overlap with the impl above.
        impl<Function, $($arg: Tree,)* Out: Tree> Func<($($arg,)*), Out> for Function
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
        impl<$($arg: Tree,)* Out: Tree> Transformed<'_, ($($arg,)*), Out> {
            /// The program of the function for arguments of these types; numbers are not needed, specs will do.
            #[track_caller]
            pub fn trace(&self, $($v: &$arg),*) -> Result<TracedFunction> {
                self.core.trace(($($v,)*))
            }

            /// The function for arguments of these types as StableHLO text, which JAX, XLA and their tools take; numbers are not needed, specs will do. Sizes that are
            /// symbols stay so. [`ExportOptions`](crate::stablehlo::ExportOptions) has the choices.
            #[cfg(feature = "stablehlo")]
            #[track_caller]
            pub fn stablehlo(&self, $($v: &$arg),*) -> Result<String> {
                let place = Location::caller();
                let traced = self.core.trace(($($v,)*))?;
                crate::stablehlo::ExportOptions::new().export(&traced).map_err(|e| e.at(place))
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
        impl<$($arg: Tree,)* Out: Tree> Fun<($($arg,)*), Out> {
            /// Makes the function ready ahead of a call. What is frozen stays so: a call with another frozen value
            /// is an error that names it.
            #[track_caller]
            pub fn compile(&self, $($v: &$arg),*) -> Result<Compiled<($($arg,)*), Out>> {
                self.core.compile(($($v,)*))
            }
        }

        #[allow(clippy::too_many_arguments)]
        impl<$($arg: Tree,)* Out: Tree> Compiled<($($arg,)*), Out> {
            /// Runs the compiled program.
            #[track_caller]
            pub fn call(&self, $($v: &$arg),*) -> Result<Out> {
                self.run(($($v,)*))
            }
        }
    )*};
}
arities! {
    (A a);
    (A a, B b);
    (A a, B b, C c);
    (A a, B b, C c, D d);
    (A a, B b, C c, D d, E e);
    (A a, B b, C c, D d, E e, F_ f);
    (A a, B b, C c, D d, E e, F_ f, G g);
    (A a, B b, C c, D d, E e, F_ f, G g, H h);
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

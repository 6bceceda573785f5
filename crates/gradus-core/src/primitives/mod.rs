//! The operations of the language: one public trait that holds every rule, the built-in set, and how to find one by
//! its name. Names in rules: `x_dot` is a tangent, `x_bar` a cotangent.
//!
//! *Invariants.* Operations are told apart by type and parameters, never by name. A rule that does not exist is an answer, never a panic. What
//! evaluation gives is of the type that the type rule says.

pub mod control;
pub mod convert;
pub mod convolve;
pub mod cumulative;
pub mod dot;
pub mod effects;
pub mod elementwise;
#[cfg(feature = "fft")]
pub mod fft;
mod fold;
mod foreign;
mod forms;
pub mod index;
mod limits;
#[cfg(feature = "linalg")]
pub mod linalg;
mod params;
pub mod random;
pub mod reduce;
pub mod reduce_window;
mod rules;
pub mod sample;
pub mod shaping;
pub mod size;
pub mod sort;
pub mod windows;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, RwLock};

use smallvec::SmallVec;

pub use foreign::Foreign;
pub use limits::{Limits, NotFinite};
pub use params::{Param, ParamReader, ParamValue, Params};
pub use rules::{Batch, Batched, Derivative, Infer, Jvp, Linear, Partition, Pruned, Transpose, Transposed};
pub use sample::Sample;

pub use crate::array::Outputs;

use crate::array::Array;
use crate::error::{Result, error, fail};
use crate::program::Program;
use crate::scalar::{Local, Scalars};
use crate::types::{Dim, Effects, Type};

/// Types of an operation's results, most often one.
pub type Types = SmallVec<[Type; 1]>;
/// What an operation is made of, as a function of its operands: see [`Primitive::expand`].
pub type Expansion<'a> = Box<dyn Fn(&[Array]) -> Result<Outputs> + 'a>;

/// An operation of the language with every rule it takes part in.
///
/// Built-in operations and those of users implement the same trait. No rule has a default body that fails at run
/// time: a rule that does not exist is an answer ([`Derivative::Missing`], [`Transposed::NotLinear`],
/// [`Batched::Missing`]) which the transformation that asked turns into an error with the user's line.
///
/// Rules are written in the language of [`Array`]: `x.cos() * x_dot`. A transformation runs them while it traces, so
/// what they compute becomes part of the program it builds.
pub trait Primitive: Rebuild + Any + fmt::Debug + Send + Sync {
    /// The name in programs; unique.
    fn name(&self) -> &'static str;

    /// The parameters in canonical order.
    fn params(&self) -> Params;

    /// Reads the parameters back; the inverse of [`params`](Primitive::params).
    fn from_params(params: &mut ParamReader<'_>) -> Result<Self>
    where
        Self: Sized;

    /// The type rule: the types of the results, or what is wrong with the operands.
    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types>;

    /// The numbers. Operands are concrete and the type rule has accepted them.
    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs>;

    /// Forward derivative: tangents of the results from those of the operands.
    fn jvp(&self, jvp: &Jvp<'_>) -> Result<Derivative>;

    /// For an operation linear in some operands: their cotangents from those of the results.
    fn transpose(&self, transpose: &Transpose<'_>) -> Result<Transposed>;

    /// The cotangent of the only linear operand added to a sum of others, where that is less than an array of its own and an addition; the order of such sums is free. None
    /// where it is not.
    fn transpose_into(&self, _transpose: &Transpose<'_>, _sum: &Array) -> Result<Option<Array>> {
        Ok(None)
    }

    /// The operation on operands of which some have a leading batch axis.
    fn batch(&self, batch: &Batch<'_>) -> Result<Batched>;

    /// Whether an element of the result depends on the same element of each operand and on nothing else; operands and result have one shape. Passes
    /// then move views and loops past it. It is not unless it says so; a [scalar form](Primitive::scalar) works without.
    fn is_elementwise(&self) -> bool {
        false
    }

    /// Whether it gives a result for all operands that the type rule accepts, in bounded time. Then a pass may compute it where the user's program
    /// would not have. It is not unless it says so.
    fn is_total(&self) -> bool {
        false
    }

    /// Its scalar form: one element of the result, as arithmetic on the same element of each operand. It is asked where every element is a number of
    /// 1, 2, 4 or 8 bytes that is not complex, and used where operands and result have one shape; of half floats, where it says what it
    /// [does with them](Primitive::halves). With a form an operation is fused with
    /// its neighbours; without one it is [evaluated](Primitive::evaluate) on whole arrays. Both give the same bits, which
    /// [`testing::check_samples`](crate::testing::check_samples) holds them to.
    fn scalar(&self, _scalars: &mut Scalars) -> Option<Local> {
        None
    }

    /// What it does with half floats. Nothing is known of that unless it says so: then it is [evaluated](Primitive::evaluate) on whole arrays.
    fn halves(&self) -> Halves {
        Halves::Whole
    }

    /// What it is made of in other operations, as a function of its operands: any backend can run it then, and its parts are fused. `None`, the answer
    /// of most, means that it is one thing, and [evaluated](Primitive::evaluate). Both give the same numbers. The types of the operands may decide:
    /// small matrices are decomposed by arithmetic on their elements, large ones are not.
    fn expand(&self, _operands: &[Type]) -> Option<Expansion<'_>> {
        None
    }

    /// The operation of StableHLO that it is, or the custom call that runs it, for operands of these types: what an exported program has in its place, on the
    /// same operands and with results of the types of the type rule. `None`, the answer of most, leaves it to what it is [made of](Primitive::expand) or to its
    /// [scalar form](Primitive::scalar).
    fn stablehlo(&self, _operands: &[Type]) -> Option<Foreign> {
        None
    }

    /// Where it ends, where its slope is infinite, and how it comes by numbers that are not finite: what lints and reports of NaN say.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// Whether it holds programs, so that its derivative computes results and tangents together.
    fn holds_programs(&self) -> bool {
        false
    }

    /// For an operation that holds programs: its split by which operands are known. `None`, the answer of every
    /// other operation, keeps it whole.
    fn partial_eval(&self, _known: &[bool]) -> Result<Option<Partition>> {
        Ok(None)
    }

    /// For an operation that holds programs: which results depend on the marked operands. `None`, the answer of every
    /// other operation, means all of them if any operand is marked.
    fn depends(&self, _on: &[bool]) -> Option<Vec<bool>> {
        None
    }

    /// For an operation that holds programs: itself without the results that are not used. `None` keeps it whole.
    fn prune(&self, _used: &[bool]) -> Result<Option<Pruned>> {
        Ok(None)
    }

    /// What it does besides computing.
    fn effects(&self) -> Effects;

    /// Operands that show the operation at work; tests of every rule are generated from them.
    fn samples() -> Vec<Sample>
    where
        Self: Sized;
}

/// What an operation does with half floats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Halves {
    /// Nobody else knows.
    Whole,
    /// What it does with the same numbers in `f32`; results that are half floats are rounded once, at the end.
    Widened,
    /// It takes their bits from one place to another: its [scalar form](Primitive::scalar) does that with 16 bits of any kind.
    Bits,
}

/// Makes an operation of the same kind from other parameters. Implemented for every primitive.
pub trait Rebuild {
    /// The operation of `self`'s type that has these parameters.
    fn rebuild(&self, params: &mut ParamReader<'_>) -> Result<Op>;

    /// The path of `self`'s type.
    fn rust_type(&self) -> &'static str;
}

impl<P: Primitive> Rebuild for P {
    fn rebuild(&self, params: &mut ParamReader<'_>) -> Result<Op> {
        P::from_params(params).map(Op::new)
    }

    fn rust_type(&self) -> &'static str {
        std::any::type_name::<P>()
    }
}

/// A shared operation. Operations without parameters cost no memory.
#[derive(Clone)]
pub struct Op(Inner);

#[derive(Clone)]
enum Inner {
    Static(&'static dyn Primitive),
    Shared(Arc<dyn Primitive>),
}

impl Op {
    /// An operation with parameters.
    pub fn new<P: Primitive>(primitive: P) -> Op {
        Op(Inner::Shared(Arc::new(primitive)))
    }

    /// An operation without: `Op::fixed(&Sin)`.
    pub const fn fixed(primitive: &'static dyn Primitive) -> Op {
        Op(Inner::Static(primitive))
    }

    /// The operation as its own type, if it is that.
    pub fn downcast<P: Primitive>(&self) -> Option<&P> {
        (&**self as &dyn Any).downcast_ref()
    }

    /// Which type of operation it is: what tells it from another of the same name.
    pub(crate) fn identity(&self) -> TypeId {
        (&**self as &dyn Any).type_id()
    }

    /// Whether it is one of this crate's.
    pub fn is_built_in(&self) -> bool {
        self.rust_type().starts_with(concat!(env!("CARGO_CRATE_NAME"), "::"))
    }

    /// Whether it is of this type.
    pub fn is<P: Primitive>(&self) -> bool {
        self.downcast::<P>().is_some()
    }

    /// The operation of this name with these parameters.
    pub fn from_text(name: &str, params: &[(String, Param)]) -> Result<Op> {
        let make = match REGISTRY.by_name.read() {
            Ok(table) => table.get(name).map(|(make, _)| *make),
            Err(_) => None,
        };
        let Some(make) = make else {
            return Err(error!(Parse, "there is no operation `{}`", name.chars().take(40).collect::<String>()).help(
                "operations of your own are known after `register`; `gradus::extend::primitives::BUILT_IN` lists the others",
            ));
        };
        let mut reader = ParamReader::new(name, params);
        let op = make(&mut reader)?;
        reader.finish()?;
        Ok(op)
    }

    /// Where it is in memory: one operation in two places has one address.
    pub(crate) fn address(&self) -> usize {
        match &self.0 {
            Inner::Static(p) => std::ptr::from_ref(*p).cast::<()>() as usize,
            Inner::Shared(p) => Arc::as_ptr(p).cast::<()>() as usize,
        }
    }

    /// The programs it holds.
    pub fn programs(&self) -> Vec<Arc<Program>> {
        fn collect(param: Param, all: &mut Vec<Arc<Program>>) {
            match param {
                Param::Program(p) => all.push(p),
                Param::List(items) => items.into_iter().for_each(|p| collect(p, all)),
                _ => {}
            }
        }
        let mut all = Vec::new();
        self.params().into_iter().for_each(|(_, p)| collect(p, &mut all));
        all
    }

    /// The same operation with every program it holds replaced by one that does the same.
    pub(crate) fn map_programs(&self, f: &dyn Fn(&Arc<Program>) -> Result<Arc<Program>>) -> Result<Op> {
        fn map(param: Param, f: &dyn Fn(&Arc<Program>) -> Result<Arc<Program>>) -> Result<Param> {
            Ok(match param {
                Param::Program(p) => Param::Program(f(&p)?),
                Param::List(items) => Param::List(items.into_iter().map(|p| map(p, f)).collect::<Result<_>>()?),
                other => other,
            })
        }
        let params = self.params().into_iter().map(|(n, p)| Ok((n.to_string(), map(p, f)?)));
        self.rebuild(&mut ParamReader::new(self.name(), &params.collect::<Result<Vec<_>>>()?))
    }

    /// The same operation with every symbolic dimension of its parameters replaced.
    pub fn map_dims(&self, f: &dyn Fn(&Dim) -> Dim) -> Result<Op> {
        let params = self.params();
        if !params.iter().any(|(_, p)| p.is_symbolic()) {
            return Ok(self.clone());
        }
        let params: Vec<_> = params.into_iter().map(|(n, p)| (n.to_string(), p.map_dims(f))).collect();
        self.rebuild(&mut ParamReader::new(self.name(), &params))
    }
}

impl Deref for Op {
    type Target = dyn Primitive;
    fn deref(&self) -> &(dyn Primitive + 'static) {
        match &self.0 {
            Inner::Static(p) => *p,
            Inner::Shared(p) => &**p,
        }
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Equal operations are of one type and have the same parameters. A name tells nothing: anyone may give it to an operation of theirs.
impl PartialEq for Op {
    fn eq(&self, other: &Op) -> bool {
        match (&self.0, &other.0) {
            (Inner::Shared(a), Inner::Shared(b)) if Arc::ptr_eq(a, b) => true,
            _ => self.identity() == other.identity() && self.params() == other.params(),
        }
    }
}

type Maker = fn(&mut ParamReader<'_>) -> Result<Op>;

/// A built-in or registered operation: its name, how to read it, and its samples.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name in programs.
    pub name: &'static str,
    make: Maker,
    identity: TypeId,
    /// The samples of [`Primitive::samples`].
    pub samples: fn() -> Vec<Sample>,
}

impl Entry {
    /// Whether an operation is of this kind.
    #[cfg(feature = "linalg")]
    fn is_of(&self, op: &Op) -> bool {
        self.identity == op.identity()
    }
}

fn entry<P: Primitive>(name: &'static str) -> Entry {
    Entry { name, make: |reader| P::from_params(reader).map(Op::new), identity: TypeId::of::<P>(), samples: P::samples }
}

struct Registry {
    by_name: RwLock<HashMap<&'static str, (Maker, TypeId)>>,
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let all = BUILT_IN.iter().copied().chain(effects::entries());
    Registry { by_name: RwLock::new(all.map(|e| (e.name, (e.make, e.identity))).collect()) }
});

/// Makes an operation from outside known to the parser of program text, under the name that it has in programs. Everything else works without. Once more
/// for the same type changes nothing.
pub fn register<P: Primitive>(name: &'static str) -> Result<()> {
    if let Some(sample) = P::samples().first().filter(|s| s.op.is::<P>() && s.op.name() != name) {
        fail!(Value, "`{}` is called `{}` in programs, not `{name}`", std::any::type_name::<P>(), sample.op.name());
    }
    let Ok(mut table) = REGISTRY.by_name.write() else { fail!(Value, "the table of operations is poisoned") };
    match table.get(name) {
        Some((_, identity)) if *identity == TypeId::of::<P>() => Ok(()),
        Some(_) => Err(error!(Value, "there is an operation `{name}` already").help("give yours another name")),
        None => {
            table.insert(name, (entry::<P>(name).make, TypeId::of::<P>()));
            Ok(())
        }
    }
}

/// Every built-in operation.
pub static BUILT_IN: LazyLock<Vec<Entry>> = LazyLock::new(built_in);

/// The list: a new primitive is one file and one line here.
fn built_in() -> Vec<Entry> {
    let mut list = Vec::new();
    list.extend(elementwise::entries());
    list.extend([
        entry::<convert::Convert>("convert"),
        entry::<convert::Bitcast>("bitcast"),
        entry::<shaping::Iota>("iota"),
        entry::<shaping::Broadcast>("broadcast"),
        entry::<shaping::Reshape>("reshape"),
        entry::<shaping::Permute>("transpose"),
        entry::<shaping::Reverse>("reverse"),
        entry::<shaping::Slice>("slice"),
        entry::<shaping::Pad>("pad"),
        entry::<shaping::Concatenate>("concatenate"),
        entry::<index::DynamicSlice>("dynamic_slice"),
        entry::<index::DynamicUpdateSlice>("dynamic_update_slice"),
        entry::<index::Gather>("gather"),
        entry::<index::Scatter>("scatter"),
        entry::<reduce::ReduceSum>("reduce_sum"),
        entry::<reduce::ReduceProd>("reduce_prod"),
        entry::<reduce::ReduceMax>("reduce_max"),
        entry::<reduce::ReduceMin>("reduce_min"),
        entry::<reduce::ReduceAnd>("reduce_and"),
        entry::<reduce::ReduceOr>("reduce_or"),
        entry::<reduce::ArgMax>("argmax"),
        entry::<reduce::ArgMin>("argmin"),
        entry::<cumulative::CumSum>("cumsum"),
        entry::<cumulative::CumProd>("cumprod"),
        entry::<cumulative::CumMax>("cummax"),
        entry::<cumulative::CumMin>("cummin"),
        entry::<dot::DotGeneral>("dot_general"),
        entry::<windows::Windows>("windows"),
        entry::<convolve::Convolve>("convolve"),
        entry::<reduce_window::ReduceWindow>("reduce_window"),
        entry::<sort::Sort>("sort"),
        entry::<sort::TopK>("top_k"),
        entry::<size::Size>("size"),
        entry::<random::RandomBits>("random_bits"),
        entry::<random::FoldIn>("fold_in"),
    ]);
    #[cfg(feature = "fft")]
    list.push(entry::<fft::Fft>("fft"));
    #[cfg(feature = "linalg")]
    list.extend(linalg::entries());
    list.extend(control::entries());
    list
}

/// The name of an operation and its parameters, from the fields of its struct: three of the rules of [`Primitive`].
///
/// Inside `impl Primitive for X { rules_of!("name"; field, field); ... }` gives `name`, `params` and `from_params`.
#[macro_export]
macro_rules! rules_of {
    ($name:literal $(; $($field:ident),* $(,)? $(; not $($beside:ident),*)?)?) => {
        fn name(&self) -> &'static str {
            $name
        }
        fn params(&self) -> $crate::primitives::Params {
            vec![$($((stringify!($field), $crate::primitives::ParamValue::to_param(&self.$field)),)*)?]
        }
        #[allow(unused_variables)]
        fn from_params(params: &mut $crate::primitives::ParamReader<'_>) -> $crate::Result<Self> {
            Ok(Self { $($($field: params.take(stringify!($field))?,)* $($($beside: Default::default(),)*)?)? })
        }
    };
}

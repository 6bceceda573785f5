//! Parameters of operations as data: what printing, parsing, hashing, equality and renaming of dimensions share.

use std::fmt;
use std::sync::Arc;

use crate::error::{Result, error, fail};
use crate::program::{Program, short};
use crate::types::{DType, Dim, Shape, Type};

/// One parameter's value.
#[derive(Clone, PartialEq, Debug)]
pub enum Param {
    /// `true` or `false`.
    Bool(bool),
    /// An integer; known dimensions too.
    Int(i64),
    /// A symbolic dimension.
    Dim(Dim),
    /// A floating-point number, compared by bits.
    Float(u64),
    /// A dtype.
    DType(DType),
    /// A choice among names, such as a comparison's direction.
    Name(String),
    /// Free text.
    Text(String),
    /// A list.
    List(Vec<Param>),
    /// A nested program.
    Program(Arc<Program>),
}

/// Names and values, in a fixed order.
pub type Params = Vec<(&'static str, Param)>;

/// A Rust type that can be a field of an operation.
pub trait ParamValue: Sized {
    /// As data.
    fn to_param(&self) -> Param;
    /// Back from data; `None` if the data is of another kind.
    fn from_param(param: &Param) -> Option<Self>;
}

impl Param {
    /// Applies a function to every symbolic dimension inside.
    pub fn map_dims(&self, f: &dyn Fn(&Dim) -> Dim) -> Param {
        match self {
            Param::Dim(d) => f(d).to_param(),
            Param::List(items) => Param::List(items.iter().map(|p| p.map_dims(f)).collect()),
            Param::Program(p) => Param::Program(Arc::new(p.map_dims(f))),
            other => other.clone(),
        }
    }

    /// Whether a symbolic dimension is inside.
    pub fn is_symbolic(&self) -> bool {
        match self {
            Param::Dim(_) => true,
            Param::List(items) => items.iter().any(Param::is_symbolic),
            Param::Program(p) => p.mentions_symbols(),
            _ => false,
        }
    }
}

/// Everything but nested programs, which the program printer indents.
impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Param::Bool(v) => write!(f, "{v}"),
            Param::Int(v) => write!(f, "{v}"),
            Param::Dim(d) => write!(f, "{d}"),
            Param::Float(bits) => write!(f, "{}", crate::types::Scalar::F64(f64::from_bits(*bits))),
            Param::DType(d) => write!(f, "{d}"),
            Param::Name(n) => f.write_str(n),
            Param::Text(t) => write!(f, "{t:?}"),
            Param::Program(p) => write!(f, "{p}"),
            Param::List(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
        }
    }
}

macro_rules! param_int {
    ($($t:ty),*) => {$(
        impl ParamValue for $t {
            fn to_param(&self) -> Param { Param::Int(*self as i64) }
            fn from_param(param: &Param) -> Option<Self> {
                if let Param::Int(v) = param { <$t>::try_from(*v).ok() } else { None }
            }
        }
    )*};
}
param_int!(usize, i64, u32, isize);

impl ParamValue for bool {
    fn to_param(&self) -> Param {
        Param::Bool(*self)
    }
    fn from_param(param: &Param) -> Option<Self> {
        if let Param::Bool(v) = param { Some(*v) } else { None }
    }
}

impl ParamValue for f64 {
    fn to_param(&self) -> Param {
        Param::Float(self.to_bits())
    }
    fn from_param(param: &Param) -> Option<Self> {
        match param {
            Param::Float(bits) => Some(f64::from_bits(*bits)),
            _ => None,
        }
    }
}

impl ParamValue for Dim {
    fn to_param(&self) -> Param {
        self.constant().map_or_else(|| Param::Dim(self.clone()), Param::Int)
    }
    fn from_param(param: &Param) -> Option<Self> {
        match param {
            Param::Int(v) => Some(Dim::from(*v)),
            Param::Dim(d) => Some(d.clone()),
            // A lone symbol reads as a name.
            Param::Name(n) => Dim::symbol(n).ok(),
            _ => None,
        }
    }
}

impl ParamValue for Shape {
    fn to_param(&self) -> Param {
        Param::List(self.iter().map(Dim::to_param).collect())
    }
    fn from_param(param: &Param) -> Option<Self> {
        if let Param::List(items) = param { items.iter().map(Dim::from_param).collect() } else { None }
    }
}

impl ParamValue for DType {
    fn to_param(&self) -> Param {
        Param::DType(*self)
    }
    fn from_param(param: &Param) -> Option<Self> {
        if let Param::DType(d) = param { Some(*d) } else { None }
    }
}

/// A type is its dtype and its shape, so that symbols in it are seen.
impl ParamValue for Type {
    fn to_param(&self) -> Param {
        Param::List(vec![self.dtype().to_param(), self.shape().to_param()])
    }
    fn from_param(param: &Param) -> Option<Self> {
        let Param::List(parts) = param else { return None };
        let [dtype, shape] = &parts[..] else { return None };
        Some(Type::new(DType::from_param(dtype)?, Shape::from_param(shape)?))
    }
}

impl ParamValue for String {
    fn to_param(&self) -> Param {
        Param::Text(self.clone())
    }
    fn from_param(param: &Param) -> Option<Self> {
        if let Param::Text(t) = param { Some(t.clone()) } else { None }
    }
}

impl ParamValue for Arc<Program> {
    fn to_param(&self) -> Param {
        Param::Program(self.clone())
    }
    fn from_param(param: &Param) -> Option<Self> {
        if let Param::Program(p) = param { Some(p.clone()) } else { None }
    }
}

impl<T: ParamValue> ParamValue for Vec<T> {
    fn to_param(&self) -> Param {
        Param::List(self.iter().map(T::to_param).collect())
    }
    fn from_param(param: &Param) -> Option<Self> {
        if let Param::List(items) = param { items.iter().map(T::from_param).collect() } else { None }
    }
}

/// A value that may be absent is a list of one or none.
impl<T: ParamValue> ParamValue for Option<T> {
    fn to_param(&self) -> Param {
        Param::List(self.iter().map(T::to_param).collect())
    }
    fn from_param(param: &Param) -> Option<Self> {
        match param {
            Param::List(items) if items.is_empty() => Some(None),
            Param::List(items) if items.len() == 1 => T::from_param(&items[0]).map(Some),
            _ => None,
        }
    }
}

/// The parameters of an operation that is being read from text; each is taken once.
pub struct ParamReader<'a> {
    operation: &'a str,
    params: &'a [(String, Param)],
    taken: usize,
}

impl<'a> ParamReader<'a> {
    /// A reader over named values.
    pub fn new(operation: &'a str, params: &'a [(String, Param)]) -> ParamReader<'a> {
        ParamReader { operation, params, taken: 0 }
    }

    /// The name of the operation.
    pub fn operation(&self) -> &'a str {
        self.operation
    }

    /// The next parameter, which must have this name. The order is part of the canonical text.
    pub fn take<T: ParamValue>(&mut self, name: &str) -> Result<T> {
        let Some((found, value)) = self.params.get(self.taken) else {
            fail!(Parse, "`{}` lacks its parameter `{name}`", self.operation);
        };
        if found != name {
            fail!(Parse, "`{}` wants the parameter `{name}` here, not `{}`", self.operation, short(found));
        }
        self.taken += 1;
        T::from_param(value).ok_or_else(|| {
            // A program takes several lines; its first says which it is.
            let text = value.to_string();
            let first = text.lines().next().unwrap_or_default();
            error!(Parse, "the parameter `{name}` of `{}` cannot be `{}`", self.operation, short(first))
        })
    }

    /// Refuses parameters that were not taken.
    pub fn finish(self) -> Result<()> {
        match self.params.get(self.taken) {
            Some((extra, _)) => fail!(Parse, "`{}` has no parameter `{}`", self.operation, short(extra)),
            None => Ok(()),
        }
    }
}

/// Makes an enum a parameter written by name: `param_names!(Direction { Less = "lt", Greater = "gt" })`.
#[macro_export]
macro_rules! param_names {
    ($(#[$doc:meta])* $vis:vis enum $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $vis enum $name { $($(#[$vdoc])* $variant),* }

        impl $name {
            /// The name in programs.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];
        }

        impl $crate::primitives::ParamValue for $name {
            fn to_param(&self) -> $crate::primitives::Param {
                $crate::primitives::Param::Name(self.name().to_string())
            }
            fn from_param(param: &$crate::primitives::Param) -> Option<Self> {
                let $crate::primitives::Param::Name(text) = param else { return None };
                $name::ALL.iter().copied().find(|v| v.name() == text)
            }
        }
    };
}

//! The tree that text and bytecode are read into, and that is written as text: operations with regions, values with types, attributes as data.
//!
//! Every syntax gives the same tree. A pretty form (`stablehlo.add %a, %b : tensor<f32>`) and a generic one (`"stablehlo.add"(%a, %b) : ..`) of an operation
//! are equal here, and so is what bytecode says. Names of attributes are those of the generic form.
//!
//! *Invariants.* Values are numbered by function, in the order of their definition; [`Function::values`] has the type of each. A region has one block.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

/// A name that is mostly a known one: of an operation, an attribute or a kind of attribute.
pub type Name = Cow<'static, str>;

/// Where something stands in the source: line and column, from 1. Both are 0 where that is not known, as in bytecode without locations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// A whole module.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Where it was read from, for errors: a file's path, or what a caller said.
    pub source: Arc<str>,
    /// Its name, without the `@`.
    pub name: Option<String>,
    /// The attributes behind `attributes`.
    pub attributes: Attributes,
    /// The functions, in their order.
    pub functions: Vec<Function>,
    /// What else stands at the top: `sdy.mesh`. Its name is the attribute `sym_name`.
    pub others: Vec<Operation>,
}

/// Who may call a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visibility {
    /// Nothing is said, which means public.
    #[default]
    Unsaid,
    /// Everyone.
    Public,
    /// Only functions of this module.
    Private,
}

/// A function.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Its name, without the `@`.
    pub name: String,
    /// Who may call it.
    pub visibility: Visibility,
    /// What is said of it besides its type.
    pub attributes: Attributes,
    /// The attributes of each argument. Its values are the arguments of `body`.
    pub arguments: Vec<Attributes>,
    /// The types and attributes of the results.
    pub results: Vec<(Type, Attributes)>,
    /// What it does; a declaration has no operations.
    pub body: Region,
    /// The type of each value of the whole body, nested regions included.
    pub values: Vec<Type>,
    /// Where it stands.
    pub place: Place,
}

/// A value of a function, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

/// One block of operations with its arguments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Region {
    /// The values that it is entered with.
    pub arguments: Vec<Value>,
    /// The operations, the last of which returns.
    pub operations: Vec<Operation>,
}

/// An operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operation {
    /// Its whole name: `stablehlo.add`, `func.call`, `func.return`.
    pub name: Name,
    /// What it takes.
    pub operands: SmallVec<[Value; 4]>,
    /// What it gives.
    pub results: SmallVec<[Value; 1]>,
    /// Properties and other attributes alike.
    pub attributes: Attributes,
    /// The regions it holds.
    pub regions: Vec<Region>,
    /// Where it stands. It is no part of what an operation is.
    pub place: Place,
}

/// Named attributes, in the order of their names, each name once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes(Vec<(Name, Attribute)>);

impl Attributes {
    /// The attribute of a name.
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        self.0.binary_search_by(|(n, _)| (**n).cmp(name)).ok().map(|i| &self.0[i].1)
    }

    /// Whether there is one of this name.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Sets an attribute; gives back the one that had the name.
    pub fn set(&mut self, name: impl Into<Name>, value: Attribute) -> Option<Attribute> {
        let name = name.into();
        match self.0.binary_search_by(|(n, _)| n.cmp(&name)) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, value)),
            Err(at) => {
                self.0.insert(at, (name, value));
                None
            }
        }
    }

    /// The same with an attribute more.
    #[must_use]
    pub fn with(mut self, name: impl Into<Name>, value: Attribute) -> Attributes {
        self.set(name, value);
        self
    }

    /// Takes an attribute out.
    pub fn remove(&mut self, name: &str) -> Option<Attribute> {
        let at = self.0.binary_search_by(|(n, _)| (**n).cmp(name)).ok()?;
        Some(self.0.remove(at).1)
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Attribute)> {
        self.0.iter().map(|(n, a)| (&**n, a))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The integers of an attribute, whichever form they have: `array<i64: ..>`, `dense<..>` of integers, `[1, 2]`.
    pub fn integers(&self, name: &str) -> Option<Vec<i64>> {
        self.get(name).and_then(Attribute::integers)
    }

    /// One integer, or a boolean as 0 and 1.
    pub fn integer(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(Attribute::integer)
    }

    /// A text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Attribute::text)
    }
}

impl FromIterator<(Name, Attribute)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (Name, Attribute)>>(items: I) -> Attributes {
        let mut all = Attributes::default();
        items.into_iter().for_each(|(n, a)| drop(all.set(n, a)));
        all
    }
}

/// A compile-time value.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// `unit`, or a name without a value.
    Unit,
    /// `true`, `false`.
    Bool(bool),
    /// `1 : i64`. Its type is a scalar one.
    Integer(i128, Type),
    /// `1.0 : f32`, by its bits as an `f64`.
    Float(f64, Type),
    /// `"text"`: bytes, since escapes may give any.
    String(Vec<u8>),
    /// `[..]`.
    Array(Vec<Attribute>),
    /// `{..}`.
    Dictionary(Attributes),
    /// A type.
    Type(Type),
    /// `@name`, or `@name::@nested`.
    Symbol(Vec<String>),
    /// `dense<..> : tensor<..>`.
    Dense(Dense),
    /// `array<i64: 1, 2>`, also of `i1` as 0 and 1.
    Numbers(Element, Vec<i64>),
    /// One of a few words: `#stablehlo<comparison_direction EQ>`; the kind is `stablehlo.comparison_direction`.
    Enum(Name, Name),
    /// A record: `#stablehlo.gather<offset_dims = [1]>`; the kind is `stablehlo.gather`, lists of integers are [`Attribute::Numbers`] of `i64`, and what is not
    /// said is there with its default. `#stablehlo.conv<[b, 0, f]x..>` has the fields `input_batch_dimension`, `input_feature_dimension`,
    /// `input_spatial_dimensions`, the same of `kernel_input_feature`, `kernel_output_feature`, `kernel_spatial` and `output_`.
    Struct(Name, Attributes),
    /// Any other attribute of a dialect, as it was written: `#sdy.sharding<@mesh, [{"x"}]>` without the `#`. Brackets in it are balanced.
    Opaque(String),
}

impl Attribute {
    /// Integers of 64 bits in the form `array<i64: ..>`.
    pub fn numbers(values: impl IntoIterator<Item = i64>) -> Attribute {
        Attribute::Numbers(Element::I64, values.into_iter().collect())
    }

    /// A text.
    pub fn of_text(text: impl Into<String>) -> Attribute {
        Attribute::String(text.into().into_bytes())
    }

    /// A list of integers, whichever form it has.
    pub fn integers(&self) -> Option<Vec<i64>> {
        match self {
            Attribute::Numbers(_, values) => Some(values.clone()),
            Attribute::Array(items) => items.iter().map(Attribute::integer).collect(),
            Attribute::Dense(dense) => dense.integers(),
            _ => None,
        }
    }

    /// One integer, or a boolean as 0 and 1.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Attribute::Integer(v, _) => i64::try_from(*v).ok(),
            Attribute::Bool(b) => Some(i64::from(*b)),
            _ => None,
        }
    }

    /// A text, if its bytes are one.
    pub fn text(&self) -> Option<&str> {
        if let Attribute::String(bytes) = self { std::str::from_utf8(bytes).ok() } else { None }
    }
}

/// The numbers of `dense<..>`.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    /// A tensor of known dimensions.
    pub ty: Tensor,
    /// Elements in row-major order, little-endian, each in whole bytes: `i1` and `i4` in one (the latter with its sign), complex numbers as real and imaginary
    /// part, quantized ones as their storage. Of a splat one element.
    pub bytes: Arc<[u8]>,
    /// Whether the one element stands in every place.
    pub splat: bool,
}

impl Dense {
    /// All elements of a tensor, or one for all. Elements that are equal become one, so that the same numbers are the same attribute however they were
    /// written; the one of a scalar is itself.
    pub fn new(ty: Tensor, bytes: impl Into<Arc<[u8]>>) -> Dense {
        let mut bytes = bytes.into();
        let width = ty.element.bytes();
        let equal = |all: &[u8]| all.len() >= width && all.chunks_exact(width).all(|e| e == &all[..width]);
        let splat = !ty.dims.is_empty() && equal(&bytes);
        if splat && bytes.len() > width {
            bytes = bytes[..width].into();
        }
        Dense { ty, bytes, splat }
    }

    /// All elements as integers of 64 bits, if they are integers; unsigned ones above 2^63 wrap.
    pub fn integers(&self) -> Option<Vec<i64>> {
        let width = self.ty.element.integer_bytes()?;
        let signed = self.ty.element.is_signed();
        let one = |b: &[u8]| {
            let mut wide = [if signed && b[b.len() - 1] & 0x80 != 0 { 0xff } else { 0 }; 8];
            wide[..b.len()].copy_from_slice(b);
            i64::from_le_bytes(wide)
        };
        let mut all: Vec<i64> = self.bytes.chunks_exact(width).map(one).collect();
        if self.splat {
            let first = *all.first()?;
            all = vec![first; self.ty.count()?];
        }
        Some(all)
    }
}

/// The type of a value or of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// `tensor<..>`.
    Tensor(Tensor),
    /// `!stablehlo.token`.
    Token,
    /// `tuple<..>`.
    Tuple(Vec<Type>),
    /// `i64` alone: the type of an integer attribute.
    Scalar(Element),
    /// `(..) -> (..)`.
    Function(Vec<Type>, Vec<Type>),
    /// `none`.
    None,
    /// Any other type of a dialect, as it was written: `!stablehlo.future<..>` without the `!`. Also `memref<..>` and `vector<..>`, which have none.
    Opaque(String),
}

impl Type {
    /// Whether an opaque type is written without a `!`.
    pub(crate) fn is_plain(text: &str) -> bool {
        text.starts_with("memref<") || text.starts_with("vector<")
    }

    /// The tensor, if it is one.
    pub fn tensor(&self) -> Option<&Tensor> {
        if let Type::Tensor(t) = self { Some(t) } else { None }
    }
}

impl From<Tensor> for Type {
    fn from(tensor: Tensor) -> Type {
        Type::Tensor(tensor)
    }
}

/// `tensor<2x?xf32>`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The dimensions; `None` is `?`.
    pub dims: SmallVec<[Option<u64>; 4]>,
    /// The element type.
    pub element: Element,
    /// The most that dimensions can be, from `#stablehlo.bounds<?, 4>`; empty if nothing is said.
    pub bounds: SmallVec<[Option<u64>; 4]>,
}

impl Tensor {
    /// A tensor of known dimensions.
    pub fn new(dims: impl IntoIterator<Item = u64>, element: Element) -> Tensor {
        Tensor { dims: dims.into_iter().map(Some).collect(), element, bounds: SmallVec::new() }
    }

    /// The number of elements, if every dimension is known and it can be counted.
    pub fn count(&self) -> Option<usize> {
        let dims = self.dims.iter().map(|d| d.and_then(|d| usize::try_from(d).ok())).collect::<Option<Vec<_>>>()?;
        if dims.contains(&0) {
            return Some(0);
        }
        dims.into_iter().try_fold(1usize, usize::checked_mul)
    }

    /// Whether every dimension is known.
    pub fn is_static(&self) -> bool {
        self.dims.iter().all(Option::is_some)
    }
}

/// The type of an element.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Element {
    I1,
    I2,
    I4,
    I8,
    I16,
    I32,
    I64,
    U2,
    U4,
    U8,
    U16,
    U32,
    U64,
    /// `index`, which stands in attributes and shapes.
    Index,
    Float(Float),
    Complex(Float),
    Quantized(Arc<Quantized>),
}

impl Element {
    /// Bytes of an integer in [`Dense`].
    pub fn integer_bytes(&self) -> Option<usize> {
        Some(match self {
            Element::I1 | Element::I2 | Element::I4 | Element::I8 | Element::U2 | Element::U4 | Element::U8 => 1,
            Element::I16 | Element::U16 => 2,
            Element::I32 | Element::U32 => 4,
            Element::I64 | Element::U64 | Element::Index => 8,
            Element::Float(_) | Element::Complex(_) | Element::Quantized(_) => return None,
        })
    }

    /// Bytes of an element in [`Dense`].
    pub fn bytes(&self) -> usize {
        match self {
            Element::Float(f) => f.bytes(),
            Element::Complex(f) => 2 * f.bytes(),
            Element::Quantized(q) => q.storage.bytes(),
            integer => integer.integer_bytes().unwrap_or(1),
        }
    }

    /// Whether it is a signed integer. `i1` is not.
    pub fn is_signed(&self) -> bool {
        use Element::{I2, I4, I8, I16, I32, I64, Index};
        matches!(self, I2 | I4 | I8 | I16 | I32 | I64 | Index)
    }
}

/// The formats of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Float {
    F4E2M1FN,
    F6E2M3FN,
    F6E3M2FN,
    F8E3M4,
    F8E4M3,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E4M3B11FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E8M0FNU,
    F16,
    BF16,
    TF32,
    F32,
    F64,
}

impl Float {
    /// Bytes of an element in [`Dense`].
    pub fn bytes(self) -> usize {
        match self {
            Float::F64 => 8,
            Float::F32 | Float::TF32 => 4,
            Float::F16 | Float::BF16 => 2,
            _ => 1,
        }
    }
}

/// `!quant.uniform<i8<-127:127>:f32:1, {0.1:3, 0.2}>`: what stored integers mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantized {
    /// The integers that are stored.
    pub storage: Element,
    /// The floats that they stand for.
    pub expressed: Float,
    /// The least integer that is used.
    pub storage_min: i64,
    /// The greatest one.
    pub storage_max: i64,
    /// The axis along which scales differ; none if there is one scale for all.
    pub axis: Option<usize>,
    /// The scales: one, or one for each place of the axis.
    pub scales: Vec<f64>,
    /// The integers that stand for 0, as many as scales.
    pub zero_points: Vec<i64>,
}

//! Writes operations into a function: values with their Gradus types, regions, constants, and the few operations that everything else is made of.
//!
//! A value's type keeps its symbolic dimensions, so that an operation which says a shape knows how to compute it where it is not a number.

use std::sync::Arc;

use gradus_core::array::Concrete;
use gradus_core::types::Data;
use gradus_core::{Array, DType, Dim, Location, Result, Scalar, Shape, Type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::shared::Shared;
use super::{error, fail};
use crate::module::{self, Attribute, Attributes, Dense, Element, Float, Operation, Region, Tensor, Value};
use crate::write::{LOCATION, location};

/// A function under construction.
pub(super) struct Emit<'a> {
    pub shared: &'a mut Shared,
    /// The type of each value so far.
    types: Vec<Type>,
    frames: Vec<Frame>,
    /// The values of symbols, scalars of `i32`.
    pub symbols: FxHashMap<Arc<str>, Value>,
    /// The user's line of the equation at hand.
    pub place: Location,
    /// What the last call of the host gave for the next one to wait for, if there was one.
    pub turn: Option<Value>,
}

/// The block at hand: what it does so far, and the constants it has. A constant is never looked for outside, since some regions cannot see out.
#[derive(Default)]
struct Frame {
    operations: Vec<Operation>,
    constants: FxHashMap<(Type, Scalar), Value>,
}

/// A dtype as StableHLO has it. Keys are their 64 bits.
pub(super) fn element(dtype: DType) -> Element {
    match dtype {
        DType::Bool => Element::I1,
        DType::I8 => Element::I8,
        DType::I16 => Element::I16,
        DType::I32 => Element::I32,
        DType::I64 => Element::I64,
        DType::U8 => Element::U8,
        DType::U16 => Element::U16,
        DType::U32 => Element::U32,
        DType::U64 | DType::Key => Element::U64,
        DType::F16 => Element::Float(Float::F16),
        DType::BF16 => Element::Float(Float::BF16),
        DType::F32 => Element::Float(Float::F32),
        DType::F64 => Element::Float(Float::F64),
        DType::C64 => Element::Complex(Float::F32),
        DType::C128 => Element::Complex(Float::F64),
    }
}

/// A type as StableHLO has it: a dimension that is not a number is `?`.
pub(super) fn tensor(ty: &Type) -> Tensor {
    let dims = ty.shape().iter().map(|d| d.as_usize().map(|n| n as u64)).collect();
    Tensor { dims, element: element(ty.dtype()), bounds: SmallVec::new() }
}

/// `#stablehlo<kind VALUE>`.
pub(super) fn word(kind: &'static str, value: &'static str) -> Attribute {
    Attribute::Enum(kind.into(), value.into())
}

/// `1 : i64`.
pub(super) fn number(value: usize) -> Attribute {
    Attribute::Integer(value as i128, module::Type::Scalar(Element::I64))
}

/// `array<i64: ..>`.
pub(super) fn numbers(values: &[usize]) -> Attribute {
    Attribute::numbers(values.iter().map(|v| *v as i64))
}

/// Named attributes.
pub(super) fn attributes<const N: usize>(all: [(&'static str, Attribute); N]) -> Attributes {
    all.into_iter().map(|(n, a)| (n.into(), a)).collect()
}

pub(super) fn no_attributes() -> Attributes {
    Attributes::default()
}

/// The bytes of a buffer as `dense` has them.
fn bytes_of(data: &Data) -> Vec<u8> {
    macro_rules! little {
        ($v:expr) => {
            $v.iter().flat_map(|x| x.to_le_bytes()).collect()
        };
    }
    macro_rules! pairs {
        ($v:expr) => {
            $v.iter().flat_map(|z| [z.re.to_le_bytes(), z.im.to_le_bytes()]).flatten().collect()
        };
    }
    match data {
        Data::Bool(v) => v.iter().map(|b| u8::from(*b)).collect(),
        Data::I8(v) => little!(v),
        Data::I16(v) => little!(v),
        Data::I32(v) => little!(v),
        Data::I64(v) => little!(v),
        Data::U8(v) => little!(v),
        Data::U16(v) => little!(v),
        Data::U32(v) => little!(v),
        Data::U64(v) => little!(v),
        Data::F16(v) => little!(v),
        Data::BF16(v) => little!(v),
        Data::F32(v) => little!(v),
        Data::F64(v) => little!(v),
        Data::C64(v) => pairs!(v),
        Data::C128(v) => pairs!(v),
        Data::Key(v) => v.iter().flat_map(|k| k.0.to_le_bytes()).collect(),
    }
}

impl<'a> Emit<'a> {
    pub fn new(shared: &'a mut Shared) -> Emit<'a> {
        let frames = vec![Frame::default()];
        Emit {
            shared,
            types: Vec::new(),
            frames,
            symbols: FxHashMap::default(),
            place: Location::unknown(),
            turn: None,
        }
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> Type {
        self.types[value.0 as usize].clone() // invariant: only this function makes values
    }

    pub fn dtype(&self, value: Value) -> DType {
        self.ty(value).dtype()
    }

    pub fn shape(&self, value: Value) -> Shape {
        self.ty(value).shape().clone()
    }

    /// A new value of a type: an argument of the function or of a region.
    pub fn value(&mut self, ty: Type) -> Value {
        self.types.push(ty);
        Value(self.types.len() as u32 - 1)
    }

    fn frame(&mut self) -> Result<&mut Frame> {
        self.frames.last_mut().ok_or_else(|| error!(Internal, "an operation outside of every block"))
    }

    /// Adds an operation; gives its results.
    pub fn operation(
        &mut self,
        name: impl Into<module::Name>,
        operands: &[Value],
        mut more: Attributes,
        regions: Vec<Region>,
        results: &[Type],
    ) -> Result<Vec<Value>> {
        let made: Vec<Value> = results.iter().map(|t| self.value(t.clone())).collect();
        if self.shared.options.locations
            && let (Some(file), Some(line)) = (self.place.file(), self.place.line())
        {
            more.set(LOCATION, location(file, line));
        }
        let op = Operation {
            name: name.into(),
            operands: operands.iter().copied().collect(),
            results: made.iter().copied().collect(),
            attributes: more,
            regions,
            ..Operation::default()
        };
        self.frame()?.operations.push(op);
        Ok(made)
    }

    /// Adds an operation of one result.
    pub fn op(&mut self, name: &'static str, operands: &[Value], more: Attributes, ty: &Type) -> Result<Value> {
        self.with_regions(name, operands, more, vec![], ty)
    }

    /// Adds an operation of one result that holds regions.
    pub fn with_regions(
        &mut self,
        name: &'static str,
        operands: &[Value],
        more: Attributes,
        regions: Vec<Region>,
        ty: &Type,
    ) -> Result<Value> {
        let all = self.operation(name, operands, more, regions, std::slice::from_ref(ty))?;
        all.first().copied().ok_or_else(|| error!(Internal, "`{name}` without a result"))
    }

    /// An operation on values of one type, which its result has too.
    pub fn same(&mut self, name: &'static str, operands: &[Value]) -> Result<Value> {
        let Some(first) = operands.first() else { fail!(Internal, "`{name}` of nothing") };
        let ty = self.ty(*first);
        self.op(name, operands, no_attributes(), &ty)
    }

    /// A region: its arguments are of these types, and it returns what `f` makes of them.
    pub fn region(
        &mut self,
        arguments: &[Type],
        f: impl FnOnce(&mut Emit<'a>, &[Value]) -> Result<Vec<Value>>,
    ) -> Result<Region> {
        let arguments: Vec<Value> = arguments.iter().map(|t| self.value(t.clone())).collect();
        self.frames.push(Frame::default());
        let outputs = f(self, &arguments);
        let done = outputs.and_then(|o| self.operation("stablehlo.return", &o, no_attributes(), vec![], &[]));
        let frame = self.frames.pop().unwrap_or_default();
        done?;
        Ok(Region { arguments, operations: frame.operations })
    }

    /// A region that applies one operation to two scalars.
    pub fn applying(&mut self, name: &'static str, dtype: DType) -> Result<Region> {
        let ty = Type::scalar(dtype);
        self.region(&[ty.clone(), ty], |e, args| Ok(vec![e.same(name, args)?]))
    }

    /// The finished function.
    pub fn finish(mut self, arguments: Vec<Value>, outputs: &[Value]) -> Result<(Region, Vec<module::Type>)> {
        self.operation("func.return", outputs, no_attributes(), vec![], &[])?;
        let operations = self.frames.pop().unwrap_or_default().operations;
        let types = self.types.iter().map(|t| tensor(t).into()).collect();
        Ok((Region { arguments, operations }, types))
    }

    // Constants.

    /// One number in every place.
    pub fn splat(&mut self, ty: &Type, value: Scalar) -> Result<Value> {
        let value = if ty.dtype() == DType::Key { value } else { value.cast(ty.dtype()) };
        let key = (ty.clone(), value);
        if let Some(found) = self.frame()?.constants.get(&key) {
            return Ok(*found);
        }
        let made = if ty.shape().is_symbolic() {
            let one = self.splat(&Type::scalar(ty.dtype()), value)?;
            self.broadcast(one, ty.shape(), &[])?
        } else {
            let one = Array::scalar(value);
            let Some(concrete) = one.concrete() else { fail!(Internal, "a number that is none") };
            let bytes = bytes_of(concrete.try_dense()?.data()).into();
            self.dense(ty, bytes, true)?
        };
        self.frame()?.constants.insert(key, made);
        Ok(made)
    }

    /// A number as the type of another value.
    pub fn like(&mut self, value: Value, number: f64) -> Result<Value> {
        let ty = self.ty(value);
        self.splat(&ty, Scalar::F64(number).cast(ty.dtype()))
    }

    /// A scalar integer.
    pub fn integer(&mut self, dtype: DType, value: i64) -> Result<Value> {
        self.splat(&Type::scalar(dtype), Scalar::I64(value))
    }

    /// The numbers of an array.
    pub fn array(&mut self, concrete: &Concrete) -> Result<Value> {
        match concrete.splat_value() {
            Some(value) => self.splat(concrete.ty(), value),
            None => {
                let dense = concrete.try_dense()?;
                let whole = dense.offset() == 0 && dense.data().len() == dense.count();
                let bytes = bytes_of(dense.data());
                let size = concrete.ty().dtype().size();
                let bytes = if whole { bytes } else { bytes[dense.offset() * size..][..dense.count() * size].to_vec() };
                self.dense(concrete.ty(), bytes.into(), false)
            }
        }
    }

    fn dense(&mut self, ty: &Type, bytes: Arc<[u8]>, splat: bool) -> Result<Value> {
        let tensor = tensor(ty);
        // An array of nothing has nothing that repeats.
        let empty = tensor.count() == Some(0);
        let value = Dense { ty: tensor, bytes: if empty { Arc::new([]) } else { bytes }, splat: splat && !empty };
        self.op("stablehlo.constant", &[], attributes([("value", Attribute::Dense(value))]), ty)
    }

    // The operations that others are made of.

    pub fn compare(&mut self, direction: &'static str, a: Value, b: Value) -> Result<Value> {
        let ty = self.ty(a);
        let kind = match ty.dtype() {
            d if d.is_inexact() => "FLOAT",
            d if d.is_signed_int() => "SIGNED",
            _ => "UNSIGNED",
        };
        self.compare_as(direction, kind, a, b)
    }

    pub fn compare_as(&mut self, direction: &'static str, kind: &'static str, a: Value, b: Value) -> Result<Value> {
        let more = attributes([
            ("comparison_direction", word("stablehlo.comparison_direction", direction)),
            ("compare_type", word("stablehlo.comparison_type", kind)),
        ]);
        let ty = self.ty(a).with_dtype(DType::Bool);
        self.op("stablehlo.compare", &[a, b], more, &ty)
    }

    pub fn select(&mut self, p: Value, yes: Value, no: Value) -> Result<Value> {
        let ty = self.ty(yes);
        self.op("stablehlo.select", &[p, yes, no], no_attributes(), &ty)
    }

    /// The operation of StableHLO that changes an element type; the value itself if it has it already.
    pub fn convert(&mut self, x: Value, dtype: DType) -> Result<Value> {
        let ty = self.ty(x);
        if ty.dtype() == dtype {
            return Ok(x);
        }
        self.op("stablehlo.convert", &[x], no_attributes(), &ty.with_dtype(dtype))
    }

    /// The same bits; of a key those of a `u64`, which it is already.
    pub fn bitcast(&mut self, x: Value, dtype: DType) -> Result<Value> {
        let ty = self.ty(x);
        if element(ty.dtype()) == element(dtype) {
            return self.retyped(x, &ty.with_dtype(dtype));
        }
        self.op("stablehlo.bitcast_convert", &[x], no_attributes(), &ty.with_dtype(dtype))
    }

    /// A value under another Gradus type that is the same tensor: a key as its bits, or dimensions that are equal by a condition.
    pub fn retyped(&mut self, x: Value, ty: &Type) -> Result<Value> {
        if self.ty(x) == *ty {
            return Ok(x);
        }
        if tensor(&self.ty(x)) == tensor(ty) && self.shape(x) == *ty.shape() {
            // Nothing is computed: `reshape` to the same shape is the identity that every reader knows.
            return self.op("stablehlo.reshape", &[x], no_attributes(), ty);
        }
        self.reshape(x, ty.shape())
    }

    /// The same elements in another shape.
    pub fn reshape(&mut self, x: Value, shape: &Shape) -> Result<Value> {
        let ty = self.ty(x).with_shape(shape.clone());
        if self.shape(x) == *shape {
            return Ok(x);
        }
        if shape.is_symbolic() {
            let dims = self.dims(shape)?;
            return self.op("stablehlo.dynamic_reshape", &[x, dims], no_attributes(), &ty);
        }
        self.op("stablehlo.reshape", &[x], no_attributes(), &ty)
    }

    /// A value in a larger shape: its axis `i` becomes `axes[i]`.
    pub fn broadcast(&mut self, x: Value, shape: &Shape, axes: &[usize]) -> Result<Value> {
        let ty = self.ty(x).with_shape(shape.clone());
        let more = attributes([("broadcast_dimensions", numbers(axes))]);
        if shape.is_symbolic() {
            let dims = self.dims(shape)?;
            return self.op("stablehlo.dynamic_broadcast_in_dim", &[x, dims], more, &ty);
        }
        self.op("stablehlo.broadcast_in_dim", &[x], more, &ty)
    }

    pub fn transpose(&mut self, x: Value, axes: &[usize]) -> Result<Value> {
        let ty = self.ty(x);
        let shape: Shape = axes.iter().filter_map(|a| ty.shape().get(*a).cloned()).collect();
        self.op("stablehlo.transpose", &[x], attributes([("permutation", numbers(axes))]), &ty.with_shape(shape))
    }

    /// Places along an axis.
    pub fn iota(&mut self, dtype: DType, shape: &Shape, axis: usize) -> Result<Value> {
        let ty = Type::new(dtype, shape.clone());
        let more = attributes([("iota_dimension", number(axis))]);
        if shape.is_symbolic() {
            let dims = self.dims(shape)?;
            return self.op("stablehlo.dynamic_iota", &[dims], more, &ty);
        }
        self.op("stablehlo.iota", &[], more, &ty)
    }

    /// A piece of known size from each axis, from its beginning.
    pub fn first(&mut self, x: Value, axis: usize, count: usize) -> Result<Value> {
        let ty = self.ty(x);
        let zeros = vec![Dim::from(0usize); ty.rank()];
        let limit = ty.shape().replaced(axis, Dim::from(count));
        self.slice(x, &zeros, limit.dims(), &vec![1; ty.rank()])
    }

    /// Elements `start, start + step, ..` below `limit` along each axis.
    pub fn slice(&mut self, x: Value, start: &[Dim], limit: &[Dim], step: &[usize]) -> Result<Value> {
        let ty = self.ty(x);
        let count = |((a, b), s): ((&Dim, &Dim), &usize)| {
            let span = b - a;
            if *s == 1 { span } else { (span + (*s - 1)).floor_div(&Dim::from(*s)).max(&Dim::from(0usize)) }
        };
        let shape: Shape = start.iter().zip(limit).zip(step).map(count).collect();
        let known = |dims: &[Dim]| dims.iter().map(Dim::as_usize).collect::<Option<Vec<_>>>();
        if let (Some(start), Some(limit)) = (known(start), known(limit)) {
            let more = attributes([
                ("start_indices", numbers(&start)),
                ("limit_indices", numbers(&limit)),
                ("strides", numbers(step)),
            ]);
            return self.op("stablehlo.slice", &[x], more, &ty.with_shape(shape));
        }
        let steps: Vec<Dim> = step.iter().map(|s| Dim::from(*s)).collect();
        let lists = [start, limit, &steps];
        let mut operands = vec![x];
        for list in lists {
            operands.push(self.dims(&list.iter().cloned().collect())?);
        }
        self.op("stablehlo.real_dynamic_slice", &operands, no_attributes(), &ty.with_shape(shape))
    }

    /// A call of a function of the module.
    pub fn call(&mut self, name: &str, operands: &[Value], results: &[Type]) -> Result<Vec<Value>> {
        let more = attributes([("callee", Attribute::Symbol(vec![name.to_string()]))]);
        self.operation("func.call", operands, more, vec![], results)
    }
}

/// Whether an element type has half of the usual precision: Gradus adds such numbers in `f32`.
pub(super) fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

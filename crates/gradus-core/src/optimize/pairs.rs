//! Complex numbers as pairs of real ones, for backends whose code knows only those: a complex array `[..]` is a real one `[.., 2]`, which is how it lies in
//! memory. Between operations its parts are arrays of their own, so that arithmetic on them shares loops; they come together where a program ends, in
//! what loops carry, and for operations that are [evaluated](OnPairs) on whole arrays.
//!
//! The arithmetic is the interpreter's, step by step: it gives the same bits.

use std::cell::OnceCell;
use std::rc::Rc;

use super::nested::{Nested, has_type};
use crate::array::{Array, Concrete};
use crate::error::{Result, error, fail};
use crate::primitives::control::{Call, Checkpoint, CustomJvp, CustomVjp, Name, Scan, StopGradient, Switch, While};
use crate::primitives::convert::Convert;
use crate::primitives::cumulative::CumSum;
use crate::primitives::dot::DotGeneral;
use crate::primitives::elementwise::{
    Abs, Add, Compare, Complex, Conj, Direction, Div, Exp, Imag, IntegerPow, Mul, Neg, Real, Select, Sub, pairs,
};
use crate::primitives::index::{Bounds, DynamicSlice, DynamicUpdateSlice, Gather, Scatter, ScatterKind};
use crate::primitives::reduce::ReduceSum;
use crate::primitives::shaping::{Broadcast, Concatenate, Pad, Permute, Reshape, Reverse, Slice};
use crate::primitives::windows::Windows;
use crate::primitives::{
    Batch, Batched, Derivative, Infer, Jvp, Op, Outputs, Param, ParamReader, Params, Primitive, Sample, Transpose,
    Transposed, Types,
};
use crate::program::{Atom, Constant, Program, eliminate_dead_code};
use crate::trace::{at_same_place, bind, bind_all, trace_closed};
use crate::types::{Complex as Number, DType, Dim, Effects, Scalar, Type};

/// Why rules are missing: what is in pairs was made to be run.
const NOT_TRANSFORMED: &str = "transform the program before it is compiled";

/// The program with pairs for complex numbers, in its inputs and results too; none if it has no complex number.
pub fn in_pairs(p: &Program) -> Result<Option<Program>> {
    if !has_type(p, &is_complex) {
        return Ok(None);
    }
    let made = Nested::run(p, &rewritten)?;
    Ok(Some(eliminate_dead_code(&made, true)))
}

/// The type of the pairs of a complex type; any other stays.
pub fn pair_type(ty: &Type) -> Type {
    if !ty.dtype().is_complex() {
        return ty.clone();
    }
    ty.with_dtype(ty.dtype().real_part()).with_shape(ty.shape().inserted(ty.rank(), Dim::from(2usize)))
}

/// The complex type of pairs.
fn number_type(pairs: &Type) -> Result<Type> {
    let dtype = pairs.dtype().complex_of().ok_or_else(|| error!(Verify, "{pairs} are no pairs"))?;
    let last = pairs.rank().saturating_sub(1);
    Ok(pairs.with_dtype(dtype).with_shape(pairs.shape().without(|a| a == last)))
}

fn is_complex(ty: &Type) -> bool {
    ty.dtype().is_complex()
}

/// A value of the program that is being written again.
#[derive(Clone)]
enum Value {
    Plain(Array),
    Complex(Rc<Both>),
}

/// A complex array in one of its forms, or in both.
#[derive(Default)]
struct Both {
    whole: OnceCell<Array>,
    parts: OnceCell<[Array; 2]>,
}

impl Value {
    fn whole(pairs: Array, complex: bool) -> Value {
        if !complex {
            return Value::Plain(pairs);
        }
        let both = Both::default();
        both.whole.get_or_init(|| pairs);
        Value::Complex(Rc::new(both))
    }

    fn parts_of(parts: [Array; 2]) -> Value {
        let both = Both::default();
        both.parts.get_or_init(|| parts);
        Value::Complex(Rc::new(both))
    }

    fn constant(c: &Constant) -> Result<Value> {
        let part = |v: Scalar| Array::full_scalar(c.ty().shape().clone(), v);
        let Some(value) = c.splat_value() else {
            let x = c.to_array()?;
            return if x.dtype().is_complex() { Ok(Value::whole(as_pairs(&x)?, true)) } else { Ok(Value::Plain(x)) };
        };
        // Those of unknown sizes have no numbers yet, only one that is in every place.
        match value {
            Scalar::C64(v) => Ok(Value::parts_of([part(Scalar::F32(v.re)), part(Scalar::F32(v.im))])),
            Scalar::C128(v) => Ok(Value::parts_of([part(Scalar::F64(v.re)), part(Scalar::F64(v.im))])),
            other => Ok(Value::Plain(part(other))),
        }
    }

    fn is_complex(&self) -> bool {
        matches!(self, Value::Complex(_))
    }

    /// The array as it stands in the new program: pairs if it is complex.
    fn array(&self) -> Array {
        match self {
            Value::Plain(x) => x.clone(),
            Value::Complex(both) => both
                .whole
                .get_or_init(|| {
                    let Some(parts) = both.parts.get() else {
                        return Array::from(error!(Rule, "a number without parts"));
                    };
                    let apart = parts.each_ref().map(|x| {
                        let shape = x.shape().inserted(x.rank(), Dim::from(1usize));
                        bind(Op::new(Reshape { shape }), std::slice::from_ref(x))
                    });
                    bind(Op::new(Concatenate { axis: apart[0].rank() - 1 }), &apart)
                })
                .clone(),
        }
    }

    /// Real and imaginary part; that of a real number is zero.
    fn parts(&self) -> [Array; 2] {
        match self {
            Value::Plain(x) => [x.clone(), x.zeros_like()],
            Value::Complex(both) => both
                .parts
                .get_or_init(|| {
                    let Some(x) = both.whole.get() else {
                        return [0, 1].map(|_| Array::from(error!(Rule, "a number without parts")));
                    };
                    let last = x.rank() - 1;
                    [0, 1].map(|part| {
                        let start = (0..=last).map(|a| Dim::from(if a == last { part } else { 0 })).collect();
                        let limit = x.shape().replaced(last, Dim::from(part + 1)).to_vec();
                        let piece = Slice { start, limit, step: vec![1; last + 1] };
                        let piece = bind(Op::new(piece), std::slice::from_ref(x));
                        bind(Op::new(Reshape { shape: x.shape().without(|a| a == last) }), &[piece])
                    })
                })
                .clone(),
        }
    }

    fn has_whole(&self) -> bool {
        matches!(self, Value::Complex(both) if both.whole.get().is_some())
    }
}

fn rewritten(p: &Program, nested: &Nested<'_>) -> Result<Program> {
    if !has_type(p, &is_complex) {
        return Ok(p.clone());
    }
    let specs: Vec<Array> = p.inputs().iter().map(|ty| Array::of_type(pair_type(ty))).collect();
    trace_closed(p.name(), &specs, |inputs| {
        let given = inputs.iter().zip(p.inputs());
        let mut there: Vec<Value> = given.map(|(x, ty)| Value::whole(x.clone(), ty.dtype().is_complex())).collect();
        let value = |there: &[Value], a: Atom| match (a.value(), p.constant(a)) {
            (Some(v), _) => {
                there.get(v.index()).cloned().ok_or_else(|| error!(Verify, "a value before its definition"))
            }
            (None, Some(c)) => Value::constant(c),
            (None, None) => Err(error!(Verify, "an undefined value")),
        };
        for e in p.equations() {
            let operands = p.operands(e).iter().map(|a| value(&there, *a)).collect::<Result<Vec<Value>>>()?;
            let types: Vec<&Type> = e.results().map(|r| p.ty(r)).collect();
            let made = at_same_place(e.place(), || equation(e.op(), &operands, &types, nested))?;
            there.extend(made);
        }
        p.outputs().iter().map(|a| Ok(value(&there, *a)?.array())).collect()
    })
}

/// Whether the code of an operation is that of the programs it holds.
fn is_control(op: &Op) -> bool {
    op.is::<Scan>()
        || op.is::<While>()
        || op.is::<Switch>()
        || op.is::<Call>()
        || op.is::<Checkpoint>()
        || op.is::<CustomJvp>()
        || op.is::<CustomVjp>()
}

/// Whether each part of the results is made of that part of the operands in the same way.
fn is_by_parts(op: &Op) -> bool {
    let moves = op.is::<Broadcast>()
        || op.is::<Reshape>()
        || op.is::<Permute>()
        || op.is::<Reverse>()
        || op.is::<Slice>()
        || op.is::<Windows>()
        || op.is::<Concatenate>()
        || op.is::<Pad>()
        || op.is::<DynamicSlice>()
        || op.is::<DynamicUpdateSlice>()
        // What is out of bounds is filled with one NaN, not with two.
        || op.downcast::<Gather>().is_some_and(|g| g.bounds == Bounds::Clip)
        || op.is::<Select>()
        || op.is::<StopGradient>()
        || op.is::<Name>();
    let adds = op.is::<Add>() || op.is::<Sub>() || op.is::<Neg>() || op.is::<ReduceSum>() || op.is::<CumSum>();
    let scatters = op.downcast::<Scatter>().is_some_and(|s| matches!(s.kind, ScatterKind::Set | ScatterKind::Add));
    moves || adds || scatters
}

fn equation(op: &Op, operands: &[Value], types: &[&Type], nested: &Nested<'_>) -> Result<Vec<Value>> {
    let arrays = || operands.iter().map(Value::array).collect::<Vec<Array>>();
    let complex = operands.iter().any(Value::is_complex) || types.iter().any(|ty| ty.dtype().is_complex());
    if !complex || is_control(op) {
        let made = bind_all(nested.op(op)?, &arrays());
        return Ok(made.into_iter().zip(types).map(|(x, ty)| Value::whole(x, ty.dtype().is_complex())).collect());
    }
    if let Some(made) = in_place(op, operands) {
        return Ok(vec![made]);
    }
    if is_by_parts(op) {
        let [re, im] = [0, 1].map(|part| {
            let of = |v: &Value| if v.is_complex() { v.parts()[part].clone() } else { v.array() };
            bind(op.clone(), &operands.iter().map(of).collect::<Vec<Array>>())
        });
        return Ok(vec![Value::parts_of([re, im])]);
    }
    if let Some(made) = arithmetic(op, operands)? {
        return Ok(vec![made]);
    }
    let on_pairs = OnPairs {
        op: op.clone(),
        complex: operands.iter().map(Value::is_complex).collect(),
        results: types.iter().map(|ty| (*ty).clone()).collect(),
    };
    let made = bind_all(Op::new(on_pairs), &arrays());
    Ok(made.into_iter().zip(types).map(|(x, ty)| Value::whole(x, ty.dtype().is_complex())).collect())
}

/// Windows of arrays that lie as pairs stay there: what a loop carries is written where it is.
fn in_place(op: &Op, operands: &[Value]) -> Option<Value> {
    let (x, rest) = operands.split_first().filter(|(x, _)| x.has_whole())?;
    let index = rest.last()?.array();
    let arrays = |rest: &[Value]| -> Vec<Array> {
        let zero = Array::scalar(Scalar::zero(index.dtype()));
        std::iter::once(x.array()).chain(rest.iter().map(Value::array)).chain([zero]).collect()
    };
    let made = if let Some(slice) = op.downcast::<DynamicSlice>() {
        let sizes = slice.sizes.inserted(slice.sizes.rank(), Dim::from(2usize));
        bind(Op::new(DynamicSlice { sizes }), &arrays(rest))
    } else if op.is::<DynamicUpdateSlice>() && rest.len() > 1 {
        bind(op.clone(), &arrays(rest))
    } else {
        return None;
    };
    Some(Value::whole(made, true))
}

/// Arithmetic that mixes the parts.
fn arithmetic(op: &Op, operands: &[Value]) -> Result<Option<Value>> {
    let x = || operands.first().map(Value::parts).ok_or_else(|| error!(Verify, "`{}` without operands", op.name()));
    let y = || operands.get(1).map(Value::parts).ok_or_else(|| error!(Verify, "`{}` takes two operands", op.name()));
    let pair = |parts: [Array; 2]| Ok(Some(Value::parts_of(parts)));
    let plain = |x: Array| Ok(Some(Value::Plain(x)));
    if op.is::<Mul>() {
        return pair(pairs::product(&x()?, &y()?));
    }
    if op.is::<Div>() {
        return pair(pairs::quotient(&x()?, &y()?));
    }
    if op.is::<Conj>() {
        let [re, im] = x()?;
        return pair([re, -im]);
    }
    if op.is::<Real>() {
        let [re, _] = x()?;
        return plain(re);
    }
    if op.is::<Imag>() {
        let [_, im] = x()?;
        return plain(im);
    }
    if op.is::<Complex>() {
        let [Value::Plain(re), Value::Plain(im)] = operands else { fail!(Verify, "parts are real numbers") };
        return pair([re.clone(), im.clone()]);
    }
    if op.is::<Abs>() {
        return plain(pairs::length(&x()?));
    }
    if op.is::<Exp>() {
        return pair(pairs::exponential(&x()?));
    }
    if let Some(power) = op.downcast::<IntegerPow>()
        && power.exponent > 0
    {
        return pair(pairs::whole_power(&x()?, power.exponent.unsigned_abs()));
    }
    if let Some(convert) = op.downcast::<Convert>() {
        let part = convert.dtype.real_part();
        return pair(x()?.map(|x| x.cast(part)));
    }
    if let Some(compare) = op.downcast::<Compare>() {
        let ([a, b], [c, d]) = (x()?, y()?);
        return plain(match compare.direction {
            Direction::Eq => a.eq(&c) & b.eq(&d),
            _ => a.ne(&c) | b.ne(&d),
        });
    }
    if op.is::<DotGeneral>() {
        let ([a, b], [c, d]) = (x()?, y()?);
        let dot = |x: &Array, y: &Array| bind(op.clone(), &[x.clone(), y.clone()]);
        return pair([dot(&a, &c) - dot(&b, &d), dot(&a, &d) + dot(&b, &c)]);
    }
    Ok(None)
}

/// The pairs of a complex array of numbers.
fn as_pairs(x: &Array) -> Result<Array> {
    fn flat<T: Copy>(values: &[Number<T>]) -> Vec<T> {
        values.iter().flat_map(|v| [v.re, v.im]).collect()
    }
    let ty = pair_type(x.ty()?);
    let dense = match x.dtype() {
        DType::C64 => Concrete::dense(ty, flat(&x.to_vec::<Number<f32>>()?)),
        _ => Concrete::dense(ty, flat(&x.to_vec::<Number<f64>>()?)),
    };
    Ok(dense.into())
}

/// The complex array of pairs of numbers.
pub fn as_numbers(x: &Array) -> Result<Array> {
    fn paired<T: Copy>(values: &[T]) -> Vec<Number<T>> {
        values.as_chunks::<2>().0.iter().map(|[re, im]| Number::new(*re, *im)).collect()
    }
    let ty = number_type(x.ty()?)?;
    let dense = match x.dtype() {
        DType::F32 => Concrete::dense(ty, paired(&x.to_vec::<f32>()?)),
        _ => Concrete::dense(ty, paired(&x.to_vec::<f64>()?)),
    };
    Ok(dense.into())
}

/// An operation on complex arrays that are there as pairs: who runs it may show them to it as what they are. It stands only in what [`in_pairs`] makes,
/// which is run and not transformed any more.
#[derive(Clone, Debug)]
pub struct OnPairs {
    /// What is done.
    pub op: Op,
    /// Which operands are complex.
    pub complex: Vec<bool>,
    /// The types of its results.
    pub results: Vec<Type>,
}

impl Primitive for OnPairs {
    fn name(&self) -> &'static str {
        self.op.name()
    }

    fn params(&self) -> Params {
        vec![("op", Param::Text(format!("{:?}", self.op))), ("types", Param::Text(format!("{:?}", self.results)))]
    }

    fn from_params(_: &mut ParamReader<'_>) -> Result<OnPairs> {
        fail!(Parse, "operations on pairs have no text")
    }

    fn infer(&self, _: &mut Infer<'_>) -> Result<Types> {
        Ok(self.results.iter().map(pair_type).collect())
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let shown = inputs.iter().zip(&self.complex);
        let shown = shown.map(|(x, complex)| if *complex { as_numbers(x) } else { Ok(x.clone()) });
        let made = self.op.evaluate(&shown.collect::<Result<Vec<Array>>>()?)?;
        made.into_iter().map(|x| if x.dtype().is_complex() { as_pairs(&x) } else { Ok(x) }).collect()
    }

    fn jvp(&self, _: &Jvp<'_>) -> Result<Derivative> {
        Ok(Derivative::Missing(NOT_TRANSFORMED))
    }

    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }

    fn batch(&self, _: &Batch<'_>) -> Result<Batched> {
        Ok(Batched::Missing(NOT_TRANSFORMED))
    }

    fn effects(&self) -> Effects {
        self.op.effects()
    }

    fn samples() -> Vec<Sample> {
        Vec::new()
    }
}

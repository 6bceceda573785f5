//! Many elements made one: sums and extremes, places of extremes, running ones, products of matrices, orders.

use gradus_core::primitives::Op;
use gradus_core::primitives::control::Scan;
use gradus_core::primitives::cumulative::{CumMax, CumMin, CumProd, CumSum};
use gradus_core::primitives::dot::DotGeneral;
use gradus_core::primitives::reduce::{
    ArgMax, ArgMin, ReduceAnd, ReduceMax, ReduceMin, ReduceOr, ReduceProd, ReduceSum,
};
use gradus_core::primitives::sort::{Sort, TopK};
use gradus_core::{DType, Result, Scalar, Shape, Type};

use super::emit::{Emit, attributes, is_half, number, numbers};
use super::fail;
use crate::module::{Attribute, Attributes, Value};

/// How elements are combined.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Combine {
    Sum,
    Prod,
    Max,
    Min,
    And,
    Or,
}

impl Combine {
    fn name(self, dtype: DType) -> &'static str {
        match self {
            Combine::Sum => "stablehlo.add",
            Combine::Prod => "stablehlo.multiply",
            Combine::Max if dtype == DType::Bool => "stablehlo.or",
            Combine::Min if dtype == DType::Bool => "stablehlo.and",
            Combine::Max => "stablehlo.maximum",
            Combine::Min => "stablehlo.minimum",
            Combine::And => "stablehlo.and",
            Combine::Or => "stablehlo.or",
        }
    }

    /// What changes nothing.
    fn neutral(self, dtype: DType) -> Scalar {
        match self {
            Combine::Sum | Combine::Or => Scalar::zero(dtype),
            Combine::Prod => Scalar::one(dtype),
            Combine::Max => Scalar::lowest(dtype),
            Combine::Min => Scalar::highest(dtype),
            Combine::And if dtype == DType::Bool => Scalar::Bool(true),
            Combine::And => Scalar::I64(-1).cast(dtype),
        }
    }

    /// Whether halves are combined in `f32`: where that gives other digits.
    fn rounds(self) -> bool {
        matches!(self, Combine::Sum | Combine::Prod)
    }
}

/// How a window lies: a number for each axis in each list.
pub(super) struct Window {
    pub sizes: Vec<usize>,
    pub strides: Vec<usize>,
    pub padding: Vec<[i64; 2]>,
    pub base_dilations: Vec<usize>,
    pub window_dilations: Vec<usize>,
}

impl Emit<'_> {
    /// The rule of a reduction, if it is one.
    pub fn reductions(&mut self, op: &Op, operands: &[Value], results: &[Type]) -> Result<Option<Vec<Value>>> {
        let Some(x) = operands.first().copied() else { return Ok(None) };
        macro_rules! axes_of {
            ($kind:ident, $combine:ident) => {
                match op.downcast() {
                    Some($kind { axes }) => self.reduce(Combine::$combine, x, axes)?,
                    None => return Ok(None),
                }
            };
        }
        macro_rules! running {
            ($kind:ident, $combine:ident) => {
                match op.downcast() {
                    Some($kind { axis, reverse }) => self.cumulative(Combine::$combine, x, *axis, *reverse)?,
                    None => return Ok(None),
                }
            };
        }
        let made = match op.name() {
            "reduce_sum" => axes_of!(ReduceSum, Sum),
            "reduce_prod" => axes_of!(ReduceProd, Prod),
            "reduce_max" => axes_of!(ReduceMax, Max),
            "reduce_min" => axes_of!(ReduceMin, Min),
            "reduce_and" => axes_of!(ReduceAnd, And),
            "reduce_or" => axes_of!(ReduceOr, Or),
            "cumsum" => running!(CumSum, Sum),
            "cumprod" => running!(CumProd, Prod),
            "cummax" => running!(CumMax, Max),
            "cummin" => running!(CumMin, Min),
            "argmax" => match op.downcast() {
                Some(ArgMax { axis, dtype }) => self.place_of(Combine::Max, x, *axis, *dtype)?,
                None => return Ok(None),
            },
            "argmin" => match op.downcast() {
                Some(ArgMin { axis, dtype }) => self.place_of(Combine::Min, x, *axis, *dtype)?,
                None => return Ok(None),
            },
            "dot_general" => {
                let (Some(dot), [x, y], Some(ty)) = (op.downcast::<DotGeneral>(), operands, results.first()) else {
                    return Ok(None);
                };
                self.dot(dot, *x, *y, ty)?
            }
            "sort" => {
                let Some(sort) = op.downcast::<Sort>() else { return Ok(None) };
                return self.sort(sort, operands).map(Some);
            }
            "top_k" => {
                let Some(TopK { k }) = op.downcast() else { return Ok(None) };
                return self.top_k(x, *k).map(Some);
            }
            _ => return Ok(None),
        };
        Ok(Some(vec![made]))
    }

    /// A reduction by one operation, from a scalar to start with.
    pub fn reduced(&mut self, name: &'static str, x: Value, start: Value, axes: &[usize]) -> Result<Value> {
        let ty = self.ty(x);
        let body = self.applying(name, ty.dtype())?;
        let left = ty.with_shape(ty.shape().without(|a| axes.contains(&a)));
        self.with_regions(
            "stablehlo.reduce",
            &[x, start],
            attributes([("dimensions", numbers(axes))]),
            vec![body],
            &left,
        )
    }

    fn reduce(&mut self, combine: Combine, x: Value, axes: &[usize]) -> Result<Value> {
        // Without an axis nothing is combined, not even with what changes nothing: of complex infinities that would.
        if axes.is_empty() {
            return Ok(x);
        }
        self.widened(combine, x, |e, x| {
            let dtype = e.dtype(x);
            let start = e.splat(&Type::scalar(dtype), combine.neutral(dtype))?;
            // In increasing order: the order of a list of axes means nothing.
            let mut axes = axes.to_vec();
            axes.sort_unstable();
            e.reduced(combine.name(dtype), x, start, &axes)
        })
    }

    /// Runs a reduction in `f32` where the elements are halves.
    fn widened(
        &mut self,
        combine: Combine,
        x: Value,
        f: impl FnOnce(&mut Self, Value) -> Result<Value>,
    ) -> Result<Value> {
        let dtype = self.dtype(x);
        if !(is_half(dtype) && combine.rounds()) {
            return f(self, x);
        }
        let wide = self.convert(x, DType::F32)?;
        let made = f(self, wide)?;
        self.convert(made, dtype)
    }

    /// A running reduction: a window over all that came before. XLA and JAX know this form.
    fn cumulative(&mut self, combine: Combine, x: Value, axis: usize, reverse: bool) -> Result<Value> {
        let shape = self.shape(x);
        let Some(n) = shape.get(axis) else { fail!(Axis, "there is no axis {axis}") };
        let Some(n) = n.as_usize().filter(|_| !shape.is_symbolic()) else {
            return self.running_loop(combine, x, axis, reverse);
        };
        if n == 0 || shape.count() == Some(0) {
            return Ok(x);
        }
        let rank = shape.rank();
        let along =
            |here: usize, elsewhere: usize| (0..rank).map(|a| if a == axis { here } else { elsewhere }).collect();
        let edge = (n - 1) as i64;
        let pad = |a: usize| match (a == axis, reverse) {
            (false, _) => [0, 0],
            (true, false) => [edge, 0],
            (true, true) => [0, edge],
        };
        let window = Window {
            sizes: along(n, 1),
            strides: vec![1; rank],
            padding: (0..rank).map(pad).collect(),
            base_dilations: vec![1; rank],
            window_dilations: vec![1; rank],
        };
        self.reduce_window(combine, x, &window, &shape)
    }

    /// A running reduction where a size is a symbol: a loop, one place at a time.
    fn running_loop(&mut self, combine: Combine, x: Value, axis: usize, reverse: bool) -> Result<Value> {
        self.widened(combine, x, |e, x| {
            let ty = e.ty(x);
            let front: Vec<usize> = std::iter::once(axis).chain((0..ty.rank()).filter(|a| *a != axis)).collect();
            let mut back = front.clone();
            front.iter().enumerate().for_each(|(to, from)| back[*from] = to); // invariant: an order of all axes
            let sequence = e.transpose(x, &front)?;
            let one = ty.with_shape(ty.shape().without(|a| a == axis));
            let step = e.traced("running", &[one.clone(), one.clone()], |inputs| {
                let [so_far, next] = inputs else { fail!(Internal, "a step takes two arrays") };
                let made = match combine {
                    Combine::Sum => so_far + next,
                    Combine::Prod => so_far * next,
                    Combine::Max => so_far.maximum(next),
                    _ => so_far.minimum(next),
                };
                Ok(vec![made.clone(), made])
            })?;
            let length = ty.shape().get(axis).cloned().unwrap_or_else(|| 1usize.into());
            let scan = Scan { body: step.into(), consts: 0, carries: 1, length, reverse };
            let start = e.splat(&one, combine.neutral(ty.dtype()))?;
            let results = [one, e.ty(sequence)];
            let made = e.scan(&scan, &[start, sequence], &results)?;
            let Some(made) = made.get(1) else { fail!(Internal, "a loop without its results") };
            e.transpose(*made, &back)
        })
    }

    /// A reduction of windows.
    pub fn reduce_window(&mut self, combine: Combine, x: Value, window: &Window, shape: &Shape) -> Result<Value> {
        self.widened(combine, x, |e, x| {
            let ty = e.ty(x);
            let start = e.splat(&Type::scalar(ty.dtype()), combine.neutral(ty.dtype()))?;
            let body = e.applying(combine.name(ty.dtype()), ty.dtype())?;
            let mut more = attributes([
                ("window_dimensions", numbers(&window.sizes)),
                ("window_strides", numbers(&window.strides)),
                ("padding", pairs(&window.padding)),
            ]);
            for (name, list) in
                [("base_dilations", &window.base_dilations), ("window_dilations", &window.window_dilations)]
            {
                if list.iter().any(|d| *d != 1) {
                    more.set(name, numbers(list));
                }
            }
            e.with_regions("stablehlo.reduce_window", &[x, start], more, vec![body], &ty.with_shape(shape.clone()))
        })
    }

    /// The place of the first extreme, or of the first NaN: a reduction of values and places.
    fn place_of(&mut self, combine: Combine, x: Value, axis: usize, dtype: DType) -> Result<Value> {
        let ty = self.ty(x);
        let places = self.iota(dtype, ty.shape(), axis)?;
        let (value, place) = (Type::scalar(ty.dtype()), Type::scalar(dtype));
        let worst = self.splat(&value, combine.neutral(ty.dtype()))?;
        let zero = self.integer(dtype, 0)?;
        let better = if combine == Combine::Max { "GT" } else { "LT" };
        let arguments = [value.clone(), place.clone(), value, place];
        let body = self.region(&arguments, |e, args| {
            let (a, i, b, j) = (args[0], args[1], args[2], args[3]); // invariant: a region of four
            let mut wins = e.compare(better, a, b)?;
            let mut tie = e.compare("EQ", a, b)?;
            if e.dtype(a).is_float() {
                let (a_odd, b_odd) = (e.compare("NE", a, a)?, e.compare("NE", b, b)?);
                wins = e.same("stablehlo.or", &[wins, a_odd])?;
                let both = e.same("stablehlo.and", &[a_odd, b_odd])?;
                tie = e.same("stablehlo.or", &[tie, both])?;
            }
            let before = e.compare("LT", i, j)?;
            let first = e.same("stablehlo.and", &[tie, before])?;
            let apart = e.same("stablehlo.not", &[tie])?;
            let alone = e.same("stablehlo.and", &[wins, apart])?;
            let takes = e.same("stablehlo.or", &[alone, first])?;
            Ok(vec![e.select(wins, a, b)?, e.select(takes, i, j)?])
        })?;
        let left = ty.shape().without(|a| a == axis);
        let results = [ty.with_shape(left.clone()), Type::new(dtype, left)];
        let more = attributes([("dimensions", numbers(&[axis]))]);
        let made = self.operation("stablehlo.reduce", &[x, places, worst, zero], more, vec![body], &results)?;
        Ok(made[1]) // invariant: a reduction of two
    }

    fn dot(&mut self, dot: &DotGeneral, x: Value, y: Value, ty: &Type) -> Result<Value> {
        let mut fields = Attributes::default();
        for (name, list) in [
            ("lhs_batching_dimensions", &dot.lhs_batch),
            ("rhs_batching_dimensions", &dot.rhs_batch),
            ("lhs_contracting_dimensions", &dot.lhs_contract),
            ("rhs_contracting_dimensions", &dot.rhs_contract),
        ] {
            fields.set(name, numbers(list));
        }
        let more = attributes([
            ("dot_dimension_numbers", Attribute::Struct("stablehlo.dot".into(), fields)),
            ("precision_config", self.precision()),
        ]);
        // Halves are added in `f32`.
        let wide = if is_half(ty.dtype()) { ty.with_dtype(DType::F32) } else { ty.clone() };
        let made = self.op("stablehlo.dot_general", &[x, y], more, &wide)?;
        self.convert(made, ty.dtype())
    }

    fn sort(&mut self, sort: &Sort, operands: &[Value]) -> Result<Vec<Value>> {
        let types: Vec<Type> = operands.iter().map(|v| self.ty(*v)).collect();
        let arguments: Vec<Type> =
            types.iter().flat_map(|t| [Type::scalar(t.dtype()), Type::scalar(t.dtype())]).collect();
        let (keys, descending) = (sort.keys, sort.descending);
        let body = self.region(&arguments, |e, args| {
            // What decides, from the first key on: pairs of numbers that are compared as a whole.
            let mut columns = Vec::new();
            for pair in args.chunks_exact(2).take(keys) {
                let &[a, b] = pair else { continue };
                if e.dtype(a).is_complex() {
                    for part in ["stablehlo.real", "stablehlo.imag"] {
                        columns.push((e.part(part, a)?, e.part(part, b)?));
                    }
                } else {
                    columns.push((a, b));
                }
            }
            // From the last column to the first: before, or equal and decided by what follows.
            let mut decided = None;
            for (a, b) in columns.into_iter().rev() {
                let (a, b) = (e.canonical(a)?, e.canonical(b)?);
                let before = e.ordered(if descending { "GT" } else { "LT" }, a, b)?;
                decided = Some(match decided {
                    None => before,
                    Some(rest) => {
                        let equal = e.ordered("EQ", a, b)?;
                        let after = e.same("stablehlo.and", &[equal, rest])?;
                        e.same("stablehlo.or", &[before, after])?
                    }
                });
            }
            let Some(decided) = decided else { fail!(Internal, "a sort without keys") };
            Ok(vec![decided])
        })?;
        let more = attributes([("dimension", number(sort.axis)), ("is_stable", Attribute::Bool(true))]);
        self.operation("stablehlo.sort", operands, more, vec![body], &types)
    }

    /// A number as it is compared: one zero, one NaN, which then comes after all.
    fn canonical(&mut self, x: Value) -> Result<Value> {
        if !self.dtype(x).is_float() {
            return Ok(x);
        }
        let zero = self.like(x, 0.0)?;
        let nan = self.like(x, f64::NAN)?;
        let (is_zero, is_nan) = (self.compare("EQ", x, zero)?, self.compare("NE", x, x)?);
        let one = self.select(is_zero, zero, x)?;
        self.select(is_nan, nan, one)
    }

    fn ordered(&mut self, direction: &'static str, a: Value, b: Value) -> Result<Value> {
        if self.dtype(a).is_float() {
            return self.compare_as(direction, "TOTALORDER", a, b);
        }
        self.compare(direction, a, b)
    }

    /// The largest along the last axis: the beginning of a stable order, which has the first of equals first.
    fn top_k(&mut self, x: Value, k: usize) -> Result<Vec<Value>> {
        let ty = self.ty(x);
        let Some(axis) = ty.rank().checked_sub(1) else { fail!(Axis, "an array without axes has no last one") };
        let places = self.iota(DType::I32, ty.shape(), axis)?;
        let sorted = self.sort(&Sort { axis, keys: 1, descending: true }, &[x, places])?;
        sorted.into_iter().map(|v| self.first(v, axis, k)).collect()
    }
}

/// `dense<[[0, 1], ..]> : tensor<nx2xi64>`.
pub(super) fn pairs(list: &[[i64; 2]]) -> Attribute {
    use crate::module::{Dense, Element, Tensor};
    let bytes: Vec<u8> = list.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
    let splat = !list.is_empty() && list.iter().flatten().all(|v| *v == list[0][0]); // invariant: it is not empty
    let bytes = if splat { bytes[..8].to_vec() } else { bytes };
    Attribute::Dense(Dense { ty: Tensor::new([list.len() as u64, 2], Element::I64), bytes: bytes.into(), splat })
}

//! The formulas: quantize, dequantize, from one scale to another, and sums.

use gradus_core::error::Result;
use smallvec::{SmallVec, smallvec};

use super::{Walk, with};
use crate::module::{Attribute, Attributes, Dense, Element, Operation, Quantized, Tensor, Type, Value};
use crate::read::float_bits;

impl Walk {
    /// Adds an operation with one result.
    pub(super) fn emit(&mut self, name: &'static str, operands: &[Value], ty: Tensor, attributes: Attributes) -> Value {
        let value = self.value(Type::Tensor(ty));
        self.out.push(Operation {
            name: name.into(),
            operands: operands.iter().copied().collect(),
            results: smallvec![value],
            attributes,
            regions: Vec::new(),
            place: self.place,
        });
        value
    }

    /// The tensor that a new value is.
    pub(super) fn tensor(&self, value: Value) -> Result<Tensor> {
        match self.new.get(value.0 as usize) {
            Some(Type::Tensor(tensor)) => Ok(tensor.clone()),
            _ => Err(self.wrong("value", "it is no tensor")),
        }
    }

    /// The same numbers as other elements.
    pub(super) fn convert(&mut self, x: Value, element: Element) -> Result<Value> {
        let tensor = self.tensor(x)?;
        if tensor.element == element {
            return Ok(x);
        }
        Ok(self.emit("stablehlo.convert", &[x], with(&tensor, element), Attributes::default()))
    }

    /// An operation on two values of one type.
    pub(super) fn binary(&mut self, name: &'static str, a: Value, b: Value) -> Result<Value> {
        let tensor = self.tensor(a)?;
        Ok(self.emit(name, &[a, b], tensor, Attributes::default()))
    }

    /// Numbers as a constant of rank 0 or 1.
    pub(super) fn constant(&mut self, numbers: &[f64], element: &Element, scalar: bool) -> Value {
        let mut bytes = Vec::with_capacity(numbers.len() * element.bytes());
        for number in numbers {
            let bits = match element {
                Element::Float(kind) => float_bits(*number, *kind),
                // Zero points and ranges are integers that a float of 64 bits has exactly.
                _ => *number as i64 as u64,
            };
            bytes.extend_from_slice(&bits.to_le_bytes()[..element.bytes()]);
        }
        let ty = Tensor::new((!scalar).then_some(numbers.len() as u64), element.clone());
        let dense = Dense { ty: ty.clone(), bytes: bytes.into(), splat: false };
        self.emit("stablehlo.constant", &[], ty, Attributes::default().with("value", Attribute::Dense(dense)))
    }

    /// Numbers with the shape of a value: one for all, or one for each place of an axis.
    pub(super) fn spread(
        &mut self,
        numbers: &[f64],
        element: &Element,
        axis: Option<usize>,
        like: Value,
    ) -> Result<Value> {
        let shape = self.tensor(like)?;
        if !shape.is_static() {
            return Err(self.wrong("quantized", "quantized numbers of unknown dimensions; give them their sizes"));
        }
        let constant = self.constant(numbers, element, axis.is_none());
        if shape.dims.is_empty() {
            return Ok(constant);
        }
        if let Some(axis) = axis
            && shape.dims.get(axis).copied().flatten() != Some(numbers.len() as u64)
        {
            return Err(self.wrong("quantized", &format!("{} scales do not fit axis {axis}", numbers.len())));
        }
        let axes = Attribute::numbers(axis.map(|a| a as i64));
        let attributes = Attributes::default().with("broadcast_dimensions", axes);
        Ok(self.emit("stablehlo.broadcast_in_dim", &[constant], with(&shape, element.clone()), attributes))
    }

    /// Into the range of what is stored, to the nearest integer (even ones of two), as an integer.
    fn stored_from(&mut self, x: Value, q: &Quantized, clamp: bool, element: Element) -> Result<Value> {
        let tensor = self.tensor(x)?;
        let mut x = x;
        if clamp {
            let least = self.constant(&[q.storage_min as f64], &tensor.element, true);
            let most = self.constant(&[q.storage_max as f64], &tensor.element, true);
            x = self.emit("stablehlo.clamp", &[least, x, most], tensor.clone(), Attributes::default());
        }
        let x = self.emit("stablehlo.round_nearest_even", &[x], tensor, Attributes::default());
        self.convert(x, element)
    }

    /// `x / scale + zero`, rounded into the range.
    pub(super) fn quantize(&mut self, x: Value, q: &Quantized) -> Result<Value> {
        let float = Element::Float(q.expressed);
        let x = self.convert(x, float.clone())?;
        let scales = self.spread(&q.scales, &float, q.axis, x)?;
        let x = self.binary("stablehlo.divide", x, scales)?;
        let zeros: SmallVec<[f64; 4]> = q.zero_points.iter().map(|z| *z as f64).collect();
        let zeros = self.spread(&zeros, &float, q.axis, x)?;
        let x = self.binary("stablehlo.add", x, zeros)?;
        self.stored_from(x, q, true, q.storage.clone())
    }

    /// `(x - zero) * scale`. The difference is taken of integers.
    pub(super) fn dequantize(&mut self, x: Value, q: &Quantized) -> Result<Value> {
        let wide = match q.storage {
            Element::I64 | Element::U64 | Element::U32 => Element::I64,
            _ => Element::I32,
        };
        let x = self.convert(x, wide.clone())?;
        let zeros: SmallVec<[f64; 4]> = q.zero_points.iter().map(|z| *z as f64).collect();
        let zeros = self.spread(&zeros, &wide, q.axis, x)?;
        let x = self.binary("stablehlo.subtract", x, zeros)?;
        let float = Element::Float(q.expressed);
        let x = self.convert(x, float.clone())?;
        let scales = self.spread(&q.scales, &float, q.axis, x)?;
        self.binary("stablehlo.multiply", x, scales)
    }

    /// From one scale to another in one step: `x * (from / to) + (zero of to - zero of from * (from / to))`.
    pub(super) fn requantize(&mut self, x: Value, from: &Quantized, to: &Quantized, element: Element) -> Result<Value> {
        if from == to {
            return self.convert(x, element);
        }
        if from.axis.is_some() && to.axis.is_some() && from.axis != to.axis {
            return Err(self.wrong("stablehlo.uniform_quantize", "it changes the axis along which scales differ"));
        }
        let axis = to.axis.or(from.axis);
        let count = if axis.is_some() { from.scales.len().max(to.scales.len()) } else { 1 };
        let one = |all: &[f64], i: usize| all.get(i).or(all.first()).copied().unwrap_or(1.0);
        let zero = |all: &[i64], i: usize| all.get(i).or(all.first()).copied().unwrap_or(0) as f64;
        let ratios: Vec<f64> = (0..count).map(|i| one(&from.scales, i) / one(&to.scales, i)).collect();
        let shifts: Vec<f64> =
            (0..count).map(|i| zero(&to.zero_points, i) - zero(&from.zero_points, i) * ratios[i]).collect();
        let float = Element::Float(to.expressed);
        let x = self.convert(x, float.clone())?;
        let ratios = self.spread(&ratios, &float, axis, x)?;
        let mut x = self.binary("stablehlo.multiply", x, ratios)?;
        if shifts.iter().any(|s| *s != 0.0) {
            let shifts = self.spread(&shifts, &float, axis, x)?;
            x = self.binary("stablehlo.add", x, shifts)?;
        }
        let narrow = element.bytes() < 4;
        self.stored_from(x, to, narrow, element)
    }

    /// The sum of two quantized values as a sum of integers; false where their scales do not allow it.
    pub(super) fn add(&mut self, operation: &Operation) -> Result<bool> {
        let ([a, b], [result]) = (operation.operands.as_slice(), operation.results.as_slice()) else {
            return Ok(false);
        };
        let (Some(left), Some(right), Some(to)) = (self.quantized(*a), self.quantized(*b), self.quantized(*result))
        else {
            return Ok(false);
        };
        let (x, y) = (self.mapped(*a)?, self.mapped(*b)?);
        let by_axis = left.axis.is_some() || right.axis.is_some() || to.axis.is_some();
        if by_axis && (left != right || left != to || left.storage != Element::I32) {
            return Ok(false);
        }
        let zeros: SmallVec<[f64; 4]> = to.zero_points.iter().map(|z| *z as f64).collect();
        let x = self.requantize(x, &left, &to, Element::I32)?;
        let y = self.requantize(y, &right, &to, Element::I32)?;
        let sum = self.binary("stablehlo.add", x, y)?;
        let zeros = self.spread(&zeros, &Element::I32, to.axis, sum)?;
        let mut sum = self.binary("stablehlo.subtract", sum, zeros)?;
        if to.storage != Element::I32 {
            let least = self.constant(&[to.storage_min as f64], &Element::I32, true);
            let most = self.constant(&[to.storage_max as f64], &Element::I32, true);
            let tensor = self.tensor(sum)?;
            sum = self.emit("stablehlo.clamp", &[least, sum, most], tensor, Attributes::default());
            sum = self.convert(sum, to.storage.clone())?;
        }
        self.bind(*result, sum);
        Ok(true)
    }
}

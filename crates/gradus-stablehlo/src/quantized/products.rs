//! Products of quantized arrays as products of integers of 32 bits.

use gradus_core::error::Result;

use super::Walk;
use crate::module::{Attribute, Attributes, Dense, Element, Operation, Quantized, Tensor, Type, Value};

impl Walk {
    /// `dot`, `dot_general` and `convolution` where left has one scale; false where the scales or the layout do not allow it, and floats are used.
    ///
    /// With `l`, `r` the stored integers, `zl`, `zr` their zeros and `s = scale(l) scale(r) / scale(result)` the result is
    /// `s (l·r) - s (l·r - (l-zl)·(r-zr)) + zero`; both terms are cut to integers on their own, as the reference implementation does it.
    pub(super) fn product(&mut self, operation: &Operation) -> Result<bool> {
        let ([a, b], [result]) = (operation.operands.as_slice(), operation.results.as_slice()) else {
            return Ok(false);
        };
        let (Some(left), Some(right), Some(to)) = (self.quantized(*a), self.quantized(*b), self.quantized(*result))
        else {
            return Ok(false);
        };
        let convolution = operation.name == "stablehlo.convolution";
        if left.axis.is_some() || right.axis.is_some() != to.axis.is_some() || !even(&right, &to) {
            return Ok(false);
        }
        if convolution
            && !(right.zero_points.iter().all(|z| *z == 0) && is_plain(operation, &right, self.old_type(*b)?))
        {
            return Ok(false);
        }
        let Type::Tensor(shape) = super::stored(self.old_type(*result)?) else { return Ok(false) };
        let shape = Tensor { element: Element::I32, ..shape };
        let [mut x, y] = [self.mapped(*a)?, self.mapped(*b)?];
        x = self.convert(x, Element::I32)?;
        let y = self.convert(y, Element::I32)?;
        let mut attributes = operation.attributes.clone();
        attributes.remove("algorithm");
        let zl = left.zero_points.first().copied().unwrap_or(0);
        let zr = right.zero_points.first().copied().unwrap_or(0);
        if convolution {
            x = self.padded(x, zl, &mut attributes)?;
        }
        let name = match &*operation.name {
            "stablehlo.dot" => "stablehlo.dot",
            "stablehlo.dot_general" => "stablehlo.dot_general",
            _ => "stablehlo.convolution",
        };
        let whole = self.emit(name, &[x, y], shape.clone(), attributes.clone());
        let mut offset = None;
        if zl != 0 || zr != 0 {
            let x = self.minus(x, zl)?;
            let y = self.minus(y, zr)?;
            let centered = self.emit(name, &[x, y], shape, attributes);
            offset = Some(self.binary("stablehlo.subtract", whole, centered)?);
        }
        let scale = first(&left.scales) * first(&right.scales) / first(&to.scales);
        let mut whole = whole;
        // The reference implementation leaves scales alone that are nearly one.
        if (scale - 1.0).abs() > 0.001 {
            whole = self.scaled(whole, scale, &to)?;
            offset = offset.map(|o| self.scaled(o, scale, &to)).transpose()?;
        }
        let zero = to.zero_points.first().copied().unwrap_or(0) as f64;
        let mut shift = self.spread(&[zero], &Element::I32, None, whole)?;
        if let Some(offset) = offset {
            shift = self.binary("stablehlo.subtract", shift, offset)?;
        }
        let sum = self.binary("stablehlo.add", whole, shift)?;
        let sum = self.convert(sum, to.storage.clone())?;
        self.bind(*result, sum);
        Ok(true)
    }

    /// Integers times a scale, cut to integers.
    fn scaled(&mut self, x: Value, scale: f64, to: &Quantized) -> Result<Value> {
        let float = Element::Float(to.expressed);
        let x = self.convert(x, float.clone())?;
        let scale = self.spread(&[scale], &float, None, x)?;
        let x = self.binary("stablehlo.multiply", x, scale)?;
        self.convert(x, Element::I32)
    }

    fn minus(&mut self, x: Value, zero: i64) -> Result<Value> {
        if zero == 0 {
            return Ok(x);
        }
        let zero = self.spread(&[zero as f64], &Element::I32, None, x)?;
        self.binary("stablehlo.subtract", x, zero)
    }

    /// The image with its padding, which stands for 0 and so is the zero point; the convolution itself pads no more.
    fn padded(&mut self, x: Value, zero: i64, attributes: &mut Attributes) -> Result<Value> {
        let Some(padding) = attributes.integers("padding").filter(|p| p.iter().any(|n| *n != 0)) else { return Ok(x) };
        let tensor = self.tensor(x)?;
        let rank = tensor.dims.len();
        let spatial = match attributes.get("dimension_numbers") {
            Some(Attribute::Struct(_, fields)) => fields.integers("input_spatial_dimensions").unwrap_or_default(),
            _ => Vec::new(),
        };
        let (mut low, mut high) = (vec![0; rank], vec![0; rank]);
        let mut dims = tensor.dims.clone();
        for (axis, pair) in spatial.iter().zip(padding.chunks_exact(2)) {
            let Some(axis) = usize::try_from(*axis).ok().filter(|a| *a < rank) else { continue };
            (low[axis], high[axis]) = (pair[0], pair[1]);
            let wide = dims[axis].map(|d| i128::from(d) + i128::from(pair[0]) + i128::from(pair[1]));
            dims[axis] = wide.and_then(|d| u64::try_from(d).ok());
        }
        let fill = self.constant(&[zero as f64], &Element::I32, true);
        let pads = Attributes::default()
            .with("edge_padding_low", Attribute::numbers(low))
            .with("edge_padding_high", Attribute::numbers(high))
            .with("interior_padding", Attribute::numbers(vec![0; rank]));
        let ty = Tensor::new([padding.len() as u64 / 2, 2], Element::I64);
        let none = Dense { ty, bytes: 0i64.to_le_bytes().into(), splat: true };
        attributes.set("padding", Attribute::Dense(none));
        Ok(self.emit("stablehlo.pad", &[x, fill], Tensor { dims, ..tensor }, pads))
    }
}

fn first(all: &[f64]) -> f64 {
    all.first().copied().unwrap_or(1.0)
}

/// Whether one factor leads from right to result: one scale each, or the same ratio along the axis and no zero points.
fn even(right: &Quantized, to: &Quantized) -> bool {
    if right.axis.is_none() {
        return true;
    }
    let ratio = first(&to.scales) / first(&right.scales);
    right.scales.len() == to.scales.len()
        && right.zero_points.iter().chain(&to.zero_points).all(|z| *z == 0)
        && to.scales.iter().zip(&right.scales).all(|(t, r)| ((t / r - ratio) / ratio).abs() <= 0.001)
}

/// Whether a convolution is one of those that the reference implementation does on integers: images of two or three axes, features in front or last, not
/// dilated; scales differ by the kernel's last axis if they do.
fn is_plain(operation: &Operation, right: &Quantized, kernel: &Type) -> bool {
    let rank = kernel.tensor().map_or(0, |t| t.dims.len());
    if right.axis.is_some_and(|axis| axis + 1 != rank) {
        return false;
    }
    if operation.attributes.integers("lhs_dilation").is_some_and(|d| d.iter().any(|n| *n != 1)) {
        return false;
    }
    let Some(Attribute::Struct(_, fields)) = operation.attributes.get("dimension_numbers") else { return false };
    let names = [
        ("input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"),
        ("kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions"),
        ("output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"),
    ];
    let layout = names
        .map(|(one, two, rest)| (fields.integer(one), fields.integer(two), fields.integers(rest).unwrap_or_default()));
    let plain = |image: (i64, i64, &[i64]), kernel: (i64, i64, &[i64])| {
        let is = |at: usize, (one, two, rest): (i64, i64, &[i64])| {
            layout[at].0 == Some(one) && layout[at].1 == Some(two) && layout[at].2 == rest
        };
        is(0, image) && is(1, kernel) && is(2, image)
    };
    plain((0, 3, &[1, 2]), (2, 3, &[0, 1]))
        || plain((0, 1, &[2, 3]), (1, 0, &[2, 3]))
        || plain((0, 4, &[1, 2, 3]), (3, 4, &[0, 1, 2]))
        || plain((0, 1, &[2, 3, 4]), (0, 1, &[2, 3, 4]))
}

//! Operations that move elements and compute nothing.

use gradus_core::primitives::Op;
use gradus_core::primitives::random::{FoldIn, RandomBits};
use gradus_core::primitives::shaping::{Broadcast, Concatenate, Iota, Pad, Permute, Reshape, Reverse, Slice};
use gradus_core::primitives::size::Size;
use gradus_core::{DType, Dim, Result, Scalar, Shape, Type};

use super::emit::{Emit, attributes, is_half, no_attributes, number, numbers};
use super::fail;
use crate::module::{Attribute, Value};

impl Emit<'_> {
    /// The rule of an operation that moves elements, if it is one.
    pub fn shaping(&mut self, op: &Op, operands: &[Value], results: &[Type]) -> Result<Option<Vec<Value>>> {
        let Some(ty) = results.first() else { return Ok(None) };
        let made = match (op.name(), operands) {
            ("iota", []) => {
                let Some(Iota { dtype, shape, axis }) = op.downcast() else { return Ok(None) };
                self.counted(*dtype, shape, *axis)?
            }
            ("broadcast", [x]) => {
                let Some(Broadcast { shape, axes }) = op.downcast() else { return Ok(None) };
                self.broadcast(*x, shape, axes)?
            }
            ("reshape", [x]) => {
                let Some(Reshape { shape }) = op.downcast() else { return Ok(None) };
                self.reshape(*x, shape)?
            }
            ("transpose", [x]) => {
                let Some(Permute { axes }) = op.downcast() else { return Ok(None) };
                self.transpose(*x, axes)?
            }
            ("reverse", [x]) => {
                let Some(Reverse { axes }) = op.downcast() else { return Ok(None) };
                self.op("stablehlo.reverse", &[*x], attributes([("dimensions", numbers(axes))]), ty)?
            }
            ("slice", [x]) => {
                let Some(Slice { start, limit, step }) = op.downcast() else { return Ok(None) };
                self.slice(*x, start, limit, step)?
            }
            ("pad", [x, fill]) => {
                let Some(Pad { low, high, interior }) = op.downcast() else { return Ok(None) };
                self.pad(*x, *fill, (low, high, interior), ty)?
            }
            ("concatenate", parts) => {
                let Some(Concatenate { axis }) = op.downcast() else { return Ok(None) };
                self.op("stablehlo.concatenate", parts, attributes([("dimension", number(*axis))]), ty)?
            }
            ("size", []) => {
                let Some(Size { dim, dtype }) = op.downcast() else { return Ok(None) };
                match dim.constant() {
                    Some(n) => self.splat(&Type::scalar(*dtype), Scalar::I64(n))?,
                    None => {
                        let size = self.size(dim)?;
                        self.convert(size, *dtype)?
                    }
                }
            }
            // What a draw is made of is the same arithmetic on every device, so the bits are the same too.
            ("random_bits" | "fold_in", _) if op.is::<RandomBits>() || op.is::<FoldIn>() => {
                let types: Vec<Type> = operands.iter().map(|v| self.ty(*v)).collect();
                let Some(parts) = self.parts_of(op, &types)? else { fail!(Internal, "a draw that is made of nothing") };
                return self.program(&parts, operands).map(Some);
            }
            _ => return Ok(None),
        };
        Ok(Some(vec![made]))
    }

    /// `0, 1, 2, ..` along an axis. What a narrow number cannot count to is counted in a wide one and converted, which wraps integers and rounds floats.
    fn counted(&mut self, dtype: DType, shape: &Shape, axis: usize) -> Result<Value> {
        let most: usize = match dtype {
            DType::I8 => 128,
            DType::U8 | DType::BF16 => 256,
            DType::F16 => 2048,
            DType::I16 => 1 << 15,
            DType::U16 => 1 << 16,
            _ => usize::MAX,
        };
        let fits = shape.get(axis).and_then(Dim::as_usize).is_some_and(|n| n <= most);
        if fits || !(is_half(dtype) || dtype.size() < 4) {
            return self.iota(dtype, shape, axis);
        }
        let wide = self.iota(DType::I32, shape, axis)?;
        self.convert(wide, dtype)
    }

    fn pad(&mut self, x: Value, fill: Value, by: (&[Dim], &[Dim], &[usize]), ty: &Type) -> Result<Value> {
        let (low, high, interior) = by;
        let known = |dims: &[Dim]| dims.iter().map(Dim::constant).collect::<Option<Vec<i64>>>();
        if let (Some(low), Some(high)) = (known(low), known(high)) {
            let more = attributes([
                ("edge_padding_low", Attribute::numbers(low)),
                ("edge_padding_high", Attribute::numbers(high)),
                ("interior_padding", numbers(interior)),
            ]);
            return self.op("stablehlo.pad", &[x, fill], more, ty);
        }
        let interior: Vec<Dim> = interior.iter().map(|n| Dim::from(*n)).collect();
        let mut operands = vec![x, fill];
        for list in [low, high, &interior[..]] {
            operands.push(self.dims(&list.iter().cloned().collect())?);
        }
        self.op("stablehlo.dynamic_pad", &operands, no_attributes(), ty)
    }
}

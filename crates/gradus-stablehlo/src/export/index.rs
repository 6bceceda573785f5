//! Windows of arrays at places that are known when the program runs.

use gradus_core::primitives::Op;
use gradus_core::primitives::index::{Bounds, DynamicSlice, Gather, Scatter, ScatterKind};
use gradus_core::{DType, Dim, Result, Scalar, Shape, Type};

use super::emit::{Emit, attributes, no_attributes, number, numbers, word};
use super::fail;
use crate::module::{Attribute, Attributes, Region, Value};

impl Emit<'_> {
    /// The rule of an operation that picks or writes windows, if it is one.
    pub fn indexing(&mut self, op: &Op, operands: &[Value], results: &[Type]) -> Result<Option<Vec<Value>>> {
        let Some(ty) = results.first() else { return Ok(None) };
        let made = match (op.name(), operands) {
            ("dynamic_slice", [x, starts @ ..]) => {
                let Some(DynamicSlice { sizes }) = op.downcast() else { return Ok(None) };
                self.dynamic_slice(*x, starts, sizes)?
            }
            ("dynamic_update_slice", all) => self.op("stablehlo.dynamic_update_slice", all, no_attributes(), ty)?,
            ("gather", [x, indices]) => {
                let Some(gather) = op.downcast::<Gather>() else { return Ok(None) };
                self.gather(gather, *x, *indices, ty)?
            }
            ("scatter", [x, indices, updates]) => {
                let Some(scatter) = op.downcast::<Scatter>() else { return Ok(None) };
                self.scatter(scatter, *x, *indices, *updates)?
            }
            _ => return Ok(None),
        };
        Ok(Some(vec![made]))
    }

    /// A window of a size at starts that are moved into range.
    pub fn dynamic_slice(&mut self, x: Value, starts: &[Value], sizes: &Shape) -> Result<Value> {
        let ty = self.ty(x).with_shape(sizes.clone());
        let operands: Vec<Value> = std::iter::once(x).chain(starts.iter().copied()).collect();
        if let Some(known) = sizes.known() {
            return self.op("stablehlo.dynamic_slice", &operands, attributes([("slice_sizes", numbers(&known))]), &ty);
        }
        // A size that is computed stands in a gather of one window, which moves its start into range as a slice does.
        let vector = |n: usize| Type::new(DType::I32, [n].as_slice());
        let mut places = Vec::new();
        for start in starts {
            let start = self.converted(*start, DType::I32)?;
            places.push(self.op("stablehlo.reshape", &[start], no_attributes(), &vector(1))?);
        }
        let at = match places.len() {
            1 => places[0], // invariant: there is one
            n => self.op("stablehlo.concatenate", &places, attributes([("dimension", number(0))]), &vector(n))?,
        };
        let axes: Vec<usize> = (0..starts.len()).collect();
        let gather = Gather {
            offset_dims: axes.clone(),
            collapsed_dims: vec![],
            operand_batch_dims: vec![],
            index_batch_dims: vec![],
            index_map: axes,
            sizes: sizes.clone(),
            bounds: Bounds::Clip,
        };
        self.bare_gather(&gather, x, at, &ty)
    }

    /// StableHLO moves every window into range. One that was out of range is filled afterwards.
    pub fn gather(&mut self, gather: &Gather, x: Value, indices: Value, ty: &Type) -> Result<Value> {
        let filling = match ty.dtype() {
            DType::Bool => Scalar::Bool(false),
            DType::Key => Scalar::U64(u64::MAX),
            d if d.is_inexact() => Scalar::F64(f64::NAN).cast(d),
            d if d.is_signed_int() => Scalar::lowest(d),
            d => Scalar::highest(d),
        };
        // Where no window fits at all StableHLO has no gather.
        let shape = self.shape(x);
        let too_large = |(n, size): (&Dim, &Dim)| n.as_usize().zip(size.as_usize()).is_some_and(|(n, size)| size > n);
        if shape.count() == Some(0) || shape.iter().zip(gather.sizes.iter()).any(too_large) {
            return self.splat(ty, filling);
        }
        let moved = self.bare_gather(gather, x, indices, ty)?;
        if gather.bounds == Bounds::Clip {
            return Ok(moved);
        }
        let Some(inside) = self.inside(gather, x, indices)? else { return Ok(moved) };
        // One flag for each window, repeated inside of it.
        let axes: Vec<usize> = (0..ty.rank()).filter(|a| !gather.offset_dims.contains(a)).collect();
        let inside = self.broadcast(inside, ty.shape(), &axes)?;
        let filling = self.splat(ty, filling)?;
        self.select(inside, moved, filling)
    }

    fn bare_gather(&mut self, gather: &Gather, x: Value, indices: Value, ty: &Type) -> Result<Value> {
        let mut fields = Attributes::default();
        for (name, list) in [
            ("offset_dims", &gather.offset_dims),
            ("collapsed_slice_dims", &gather.collapsed_dims),
            ("operand_batching_dims", &gather.operand_batch_dims),
            ("start_indices_batching_dims", &gather.index_batch_dims),
            ("start_index_map", &gather.index_map),
        ] {
            fields.set(name, numbers(list));
        }
        fields.set("index_vector_dim", number(self.ty(indices).rank().saturating_sub(1)));
        let dims = Attribute::Struct("stablehlo.gather".into(), fields);
        let base = attributes([("dimension_numbers", dims), ("indices_are_sorted", Attribute::Bool(false))]);
        match gather.sizes.known() {
            Some(sizes) => self.op("stablehlo.gather", &[x, indices], base.with("slice_sizes", numbers(&sizes)), ty),
            None => {
                let sizes = self.dims(&gather.sizes)?;
                self.op("stablehlo.dynamic_gather", &[x, indices, sizes], base, ty)
            }
        }
    }

    /// For each index vector, whether its window lies inside the array; none if windows are moved along no axis.
    fn inside(&mut self, gather: &Gather, x: Value, indices: Value) -> Result<Option<Value>> {
        let ty = self.ty(indices);
        let components = gather.index_map.len();
        if components == 0 {
            return Ok(None);
        }
        // Unsigned indices of 64 bits are compared as they are; the others as signed numbers that hold them.
        let wide = if ty.dtype() == DType::U64 { DType::U64 } else { DType::I64 };
        let places = self.convert(indices, wide)?;
        let last = ty.rank().saturating_sub(1);
        let shape = self.shape(x);
        let mut all = None;
        for (i, axis) in gather.index_map.iter().enumerate() {
            let mut start = vec![Dim::from(0usize); ty.rank()];
            start[last] = Dim::from(i); // invariant: indices have an axis of components
            let limit = ty.shape().replaced(last, Dim::from(i + 1));
            let one = self.slice(places, &start, limit.dims(), &vec![1; ty.rank()])?;
            let one = self.reshape(one, &ty.shape().without(|a| a == last))?;
            let (Some(n), Some(size)) = (shape.get(*axis), gather.sizes.get(*axis)) else {
                fail!(Internal, "an axis too many")
            };
            let room = n - size;
            let most = match room.constant() {
                Some(room) => {
                    let ty = self.ty(one);
                    self.splat(&ty, Scalar::I64(room))?
                }
                None => {
                    let room = self.size(&room)?;
                    let room = self.convert(room, wide)?;
                    let shape = self.shape(one);
                    self.broadcast(room, &shape, &[])?
                }
            };
            let fits = self.compare("LE", one, most)?;
            let fits = if wide == DType::I64 {
                let zero = self.like(one, 0.0)?;
                let above = self.compare("GE", one, zero)?;
                self.same("stablehlo.and", &[above, fits])?
            } else {
                fits
            };
            all = Some(match all {
                Some(all) => self.same("stablehlo.and", &[all, fits])?,
                None => fits,
            });
        }
        Ok(all)
    }

    fn scatter(&mut self, scatter: &Scatter, x: Value, indices: Value, updates: Value) -> Result<Value> {
        let dtype = self.dtype(x);
        // Nothing is written to nothing, and nothing by no update.
        if self.shape(x).count() == Some(0) || self.shape(updates).count() == Some(0) {
            return Ok(x);
        }
        let combine = match scatter.kind {
            ScatterKind::Set if scatter.unique => return self.bare_scatter(scatter, None, x, indices, updates),
            ScatterKind::Set => return self.scatter_last(scatter, x, indices, updates),
            ScatterKind::Add => "stablehlo.add",
            ScatterKind::Mul => "stablehlo.multiply",
            ScatterKind::Min if dtype == DType::Bool => "stablehlo.and",
            ScatterKind::Max if dtype == DType::Bool => "stablehlo.or",
            ScatterKind::Min => "stablehlo.minimum",
            ScatterKind::Max => "stablehlo.maximum",
        };
        self.bare_scatter(scatter, Some(combine), x, indices, updates)
    }

    /// The last of several updates of one place stays: the greatest number of an update that writes to it is found first, and reads what to write.
    fn scatter_last(&mut self, scatter: &Scatter, x: Value, indices: Value, updates: Value) -> Result<Value> {
        let (x_ty, u_ty) = (self.ty(x), self.ty(updates));
        let count: Shape = [u_ty.shape().size()].into_iter().collect();
        // Updates are numbered in the order of their index vectors, whichever axes come first.
        let outer = (0..u_ty.rank()).filter(|a| !scatter.update_window_dims.contains(a));
        let order: Vec<usize> = outer.chain(scatter.update_window_dims.iter().copied()).collect();
        let mut back = order.clone();
        order.iter().enumerate().for_each(|(to, from)| back[*from] = to); // invariant: an order of all axes
        let turned = self.turned(updates, &order)?;
        let places = self.iota(DType::I32, &count, 0)?;
        let shape = self.shape(turned);
        let places = self.reshape(places, &shape)?;
        let places = self.turned(places, &back)?;
        let nobody = self.splat(&x_ty.with_dtype(DType::I32), Scalar::I32(-1))?;
        let last = self.bare_scatter(scatter, Some("stablehlo.maximum"), nobody, indices, places)?;
        // The update of that number, for each place.
        let flat = self.reshape(turned, &count)?;
        let vectors = x_ty.shape().inserted(x_ty.rank(), Dim::from(1usize));
        let at = self.reshape(last, &vectors)?;
        let reader = Gather {
            offset_dims: vec![],
            collapsed_dims: vec![0],
            operand_batch_dims: vec![],
            index_batch_dims: vec![],
            index_map: vec![0],
            sizes: [1usize].as_slice().into(),
            bounds: Bounds::Clip,
        };
        let written = self.gather(&reader, flat, at, &x_ty)?;
        let zero = self.like(last, 0.0)?;
        let is_written = self.compare("GE", last, zero)?;
        self.select(is_written, written, x)
    }

    /// Axes in another order, if it is another.
    fn turned(&mut self, x: Value, order: &[usize]) -> Result<Value> {
        if order.is_sorted() { Ok(x) } else { self.transpose(x, order) }
    }

    /// A scatter as StableHLO has it; without an operation it sets.
    fn bare_scatter(
        &mut self,
        scatter: &Scatter,
        combine: Option<&'static str>,
        x: Value,
        indices: Value,
        updates: Value,
    ) -> Result<Value> {
        let ty = self.ty(x);
        let mut fields = Attributes::default();
        for (name, list) in [
            ("update_window_dims", &scatter.update_window_dims),
            ("inserted_window_dims", &scatter.inserted_dims),
            ("input_batching_dims", &scatter.operand_batch_dims),
            ("scatter_indices_batching_dims", &scatter.index_batch_dims),
            ("scatter_dims_to_operand_dims", &scatter.index_map),
        ] {
            fields.set(name, numbers(list));
        }
        fields.set("index_vector_dim", number(self.ty(indices).rank().saturating_sub(1)));
        let more = attributes([
            ("scatter_dimension_numbers", Attribute::Struct("stablehlo.scatter".into(), fields)),
            ("indices_are_sorted", Attribute::Bool(false)),
            ("unique_indices", Attribute::Bool(scatter.unique)),
        ]);
        let body: Region = match combine {
            Some(name) => self.applying(name, ty.dtype())?,
            None => {
                let one = Type::scalar(ty.dtype());
                self.region(&[one.clone(), one], |_, args| Ok(vec![args[1]]))? // invariant: a region of two
            }
        };
        self.with_regions("stablehlo.scatter", &[x, indices, updates], more, vec![body], &ty)
    }

    /// `#stablehlo<precision ..>` twice, as dots and convolutions have it.
    pub fn precision(&self) -> Attribute {
        let one = word("stablehlo.precision", self.shared.options.precision.word());
        Attribute::Array(vec![one.clone(), one])
    }
}

//! Scatter: by the operation of ours where the region is known, window by window where it is not.

use gradus_core::control::{Steps, scan};
use gradus_core::error::Result;
use gradus_core::primitives::Op;
use gradus_core::primitives::index::{Bounds, Gather, Scatter, ScatterKind};
use gradus_core::trace::{Traced, bind, trace_as_written};
use gradus_core::{Array, DType, Dim, Shape};

use super::elementwise::convert;
use super::indexing::{signed, vectors_last};
use super::regions::{Known, front, on_elements};
use super::shaping::{concatenate, iota, reshape};
use super::{Answer, On, many};

/// How what is there and what comes are combined. `swapped`: the region takes what comes first.
#[derive(Clone, Copy)]
pub(super) struct Combining<'a> {
    pub(super) body: &'a Traced,
    pub(super) swapped: bool,
}

impl Combining<'_> {
    fn kind(self, dtype: DType) -> Option<ScatterKind> {
        Some(match Known::of(self.body)? {
            Known::Sum => ScatterKind::Add,
            Known::Prod => ScatterKind::Mul,
            Known::Max if !dtype.is_complex() && dtype != DType::Bool => ScatterKind::Max,
            Known::Min if !dtype.is_complex() && dtype != DType::Bool => ScatterKind::Min,
            Known::Second if !self.swapped => ScatterKind::Set,
            Known::First if self.swapped => ScatterKind::Set,
            _ => return None,
        })
    }

    fn run(self, old: &[Array], new: &[Array], shape: &Shape) -> Result<Vec<Array>> {
        let (first, second) = if self.swapped { (new, old) } else { (old, new) };
        on_elements(self.body, &[first, second].concat(), shape)
    }
}

/// Numbers put at places of a line, where those below 0 are nowhere.
pub(super) fn scattered(how: Combining<'_>, line: &Array, places: &Array, numbers: &Array) -> Result<Array> {
    let axes =
        Axes { window: vec![], inserted: vec![0], index_map: vec![0], operand_batch: vec![], index_batch: vec![] };
    let indices = reshape(places, places.shape().inserted(places.rank(), Dim::from(1usize)));
    let mut made = axes.scatter(how, std::slice::from_ref(line), &indices, std::slice::from_ref(numbers), false)?;
    Ok(made.swap_remove(0))
}

/// So many numbers of indices are few.
const FEW: usize = 64;

/// Which axes are which, index vectors along the last axis of the indices.
#[derive(Clone)]
struct Axes {
    window: Vec<usize>,
    inserted: Vec<usize>,
    operand_batch: Vec<usize>,
    index_batch: Vec<usize>,
    index_map: Vec<usize>,
}

impl Axes {
    fn op(&self, kind: ScatterKind, unique: bool) -> Op {
        Op::new(Scatter {
            kind,
            update_window_dims: self.window.clone(),
            inserted_dims: self.inserted.clone(),
            operand_batch_dims: self.operand_batch.clone(),
            index_batch_dims: self.index_batch.clone(),
            index_map: self.index_map.clone(),
            unique,
        })
    }

    fn scatter(
        &self,
        how: Combining<'_>,
        xs: &[Array],
        indices: &Array,
        updates: &[Array],
        unique: bool,
    ) -> Result<Vec<Array>> {
        if let ([x], [update]) = (xs, updates) {
            // A few sums of halves are rounded one by one, as the text says; of many it would take too long.
            let half = matches!(x.dtype(), DType::F16 | DType::BF16) && !unique;
            let few = indices.shape().size().as_usize().is_some_and(|n| n <= FEW);
            let rounds = |k: &ScatterKind| matches!(k, ScatterKind::Add | ScatterKind::Mul);
            if let Some(kind) = how.kind(x.dtype()).filter(|k| !(half && few && rounds(k))) {
                return Ok(vec![bind(self.op(kind, unique), &[x.clone(), indices.clone(), update.clone()]).ok()?]);
            }
        }
        self.one_by_one(how, xs, indices, updates)
    }

    /// Any region: the windows one after the other, each read, combined and written.
    fn one_by_one(&self, how: Combining<'_>, xs: &[Array], indices: &Array, updates: &[Array]) -> Result<Vec<Array>> {
        let Some(x) = xs.first() else { return Ok(Vec::new()) };
        // Axes that run together become components of the index vectors.
        let mut parts = vec![convert(indices, DType::I64)];
        let last = indices.rank() - 1;
        for axis in &self.index_batch {
            let shape = indices.shape().replaced(last, Dim::from(1usize));
            parts.push(iota(DType::I64, shape, *axis));
        }
        let vectors = front(&concatenate(&parts, last), &Vec::from_iter(0..last));
        let index_map = [self.index_map.as_slice(), self.operand_batch.as_slice()].concat();
        let mut hidden = [self.inserted.as_slice(), self.operand_batch.as_slice()].concat();
        hidden.sort_unstable();
        let outer = |u: &Array| (0..u.rank()).filter(|a| !self.window.contains(a)).collect::<Vec<_>>();
        let windows: Vec<Array> = updates.iter().map(|u| front(u, &outer(u))).collect();
        let Some(first) = windows.first() else { return Ok(Vec::new()) };
        let shape = first.shape().without(|a| a == 0);
        let mut inner = shape.iter().cloned();
        let sizes: Shape = (0..x.rank())
            .map(|a| if hidden.contains(&a) { None } else { inner.next() })
            .map(|d| d.unwrap_or_else(|| Dim::from(1usize)))
            .collect();
        let one_window = Axes {
            window: (0..shape.rank()).collect(),
            inserted: hidden.clone(),
            operand_batch: vec![],
            index_batch: vec![],
            index_map: index_map.clone(),
        };
        let reader = Gather {
            offset_dims: one_window.window.clone(),
            collapsed_dims: hidden,
            operand_batch_dims: vec![],
            index_batch_dims: vec![],
            index_map,
            sizes,
            // What is read out of range is not written.
            bounds: Bounds::Clip,
        };
        let vector_shape = vectors.shape().without(|a| a == 0);
        let specs = xs.iter().map(|x| x.ty().cloned());
        let elements =
            [&vectors].into_iter().chain(&windows).map(|a| a.ty().map(|t| t.with_shape(t.shape().without(|i| i == 0))));
        let specs = specs.chain(elements).map(|t| t.map(Array::of_type)).collect::<Result<Vec<_>>>()?;
        let count = xs.len();
        let step = trace_as_written("scatter", &specs, |all| {
            let (state, rest) = all.split_at(count);
            let Some((vector, new)) = rest.split_first() else { return Ok(Vec::new()) };
            let vector = reshape(vector, vector_shape.clone());
            let old: Vec<Array> =
                state.iter().map(|x| bind(Op::new(reader.clone()), &[x.clone(), vector.clone()])).collect();
            let made = how.run(&old, new, &shape)?;
            let write = |(x, y): (&Array, &Array)| {
                bind(one_window.op(ScatterKind::Set, true), &[x.clone(), vector.clone(), y.clone()]).ok()
            };
            state.iter().zip(&made).map(write).collect()
        })?;
        let sequences = [&vectors].into_iter().chain(&windows).cloned().collect::<Vec<_>>();
        scan(&step, xs, &sequences, &vectors.dim(0), false, 1, Steps::Keep)
    }
}

impl On<'_, '_> {
    pub(super) fn scatter(&mut self) -> Answer {
        let operands = self.xs()?;
        let count = operands.len().saturating_sub(1) / 2;
        if operands.len() != 2 * count + 1 || count == 0 {
            return Err(self.wrong("it takes operands, indices and as many updates"));
        }
        let (xs, indices, updates) = (&operands[..count], &operands[count], &operands[count + 1..]);
        let body = self.traced_as_said(0)?;
        let xs = self.as_inputs(&body, 0, xs)?;
        let updates = self.as_inputs(&body, count, updates)?;
        let record = self.record("scatter_dimension_numbers")?;
        let vector_axis = self.natural("index_vector_dim", record.integer("index_vector_dim").unwrap_or(0))?;
        let indices = signed(indices);
        let (indices, renumbered) = vectors_last(&indices, vector_axis);
        let axes = Axes {
            window: self.field(record, "update_window_dims")?,
            inserted: self.field(record, "inserted_window_dims")?,
            operand_batch: self.field(record, "input_batching_dims")?,
            index_batch: self.field(record, "scatter_indices_batching_dims")?.into_iter().map(renumbered).collect(),
            index_map: self.field(record, "scatter_dims_to_operand_dims")?,
        };
        let how = Combining { body: &body, swapped: false };
        many(axes.scatter(how, &xs, &indices, &updates, self.flag("unique_indices"))?)
    }
}

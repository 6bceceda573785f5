//! The geometry that gather and scatter share: which axes are which, and the walk over all windows.

use super::read_indices;
use crate::array::Concrete;
use crate::error::{Result, error, fail};
use crate::primitives::Infer;
use crate::primitives::shaping::strided::StridedCopy;
use crate::primitives::shaping::{check_axes, check_sorted, prepended, shifted};
use crate::types::{Dim, Type};

/// Index vectors that are widened at a time.
const CHUNK: usize = 256;

/// How the axes of three arrays belong together: an operand, indices `[..., k]`, and the windows, one for each index
/// vector. Gather reads the windows out of the operand, scatter writes them into it.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    /// Axes of the array of windows that run inside a window; the others run over the index vectors.
    pub(super) window_dims: Vec<usize>,
    /// Axes of the operand in which a window has size 1 and which it does not show.
    pub(super) dropped_dims: Vec<usize>,
    /// Axes of the operand that run together with `index_batch_dims`, also not shown.
    pub(super) operand_batch_dims: Vec<usize>,
    /// Axes of the indices, one for each of `operand_batch_dims`.
    pub(super) index_batch_dims: Vec<usize>,
    /// The axis of the operand that each component of an index vector counts along.
    pub(super) index_map: Vec<usize>,
}

/// Where windows are read or written: a strided operand and a strided array of windows.
pub(super) struct Layout<'a> {
    pub(super) operand_dims: &'a [usize],
    pub(super) operand_strides: &'a [isize],
    pub(super) operand_offset: usize,
    pub(super) windows_strides: &'a [isize],
    pub(super) windows_offset: usize,
    /// The size of a window along each axis of the operand.
    pub(super) sizes: &'a [usize],
}

impl Windows {
    /// Whether windows leave out this axis of the operand.
    pub(super) fn hides(&self, axis: usize) -> bool {
        self.dropped_dims.contains(&axis) || self.operand_batch_dims.contains(&axis)
    }

    /// The axes of the operand that windows show.
    pub(super) fn shown(&self, rank: usize) -> impl Iterator<Item = usize> + '_ {
        (0..rank).filter(|a| !self.hides(*a))
    }

    /// The axes of the array of windows that run over the index vectors.
    pub(super) fn outer(&self, rank: usize) -> impl Iterator<Item = usize> + '_ {
        (0..rank).filter(|a| !self.window_dims.contains(a))
    }

    /// The rank of the array of windows.
    pub(super) fn rank(&self, indices: &Type) -> usize {
        self.window_dims.len() + indices.rank().saturating_sub(1)
    }

    /// Refuses lists that do not fit the operand and the indices. `names` are those of the two lists that gather and
    /// scatter call differently.
    pub(super) fn check(&self, infer: &mut Infer<'_>, x: &Type, indices: &Type, names: [&str; 2]) -> Result<()> {
        if !indices.dtype().is_int() {
            fail!(DType, "indices must be integers, not {indices}");
        }
        let Some((components, outer)) = indices.shape().split_last() else {
            return Err(error!(Shape, "indices need a last axis that holds index vectors, and {indices} has none")
                .help("reshape a single index to [1]"));
        };
        if !infer.equal(components, &Dim::from(self.index_map.len())) {
            fail!(Shape, "index_map has {} axes and the index vectors of {indices} {components}", self.index_map.len());
        }
        check_axes("index_map", &self.index_map, x.rank())?;
        check_sorted(names[1], &self.dropped_dims, x.rank())?;
        check_sorted("operand_batch_dims", &self.operand_batch_dims, x.rank())?;
        check_axes("index_batch_dims", &self.index_batch_dims, outer.len())?;
        check_sorted(names[0], &self.window_dims, self.rank(indices))?;
        if self.operand_batch_dims.len() != self.index_batch_dims.len() {
            fail!(
                Axis,
                "operand_batch_dims {:?} and index_batch_dims {:?} go in pairs",
                self.operand_batch_dims,
                self.index_batch_dims
            );
        }
        for (&a, &b) in self.operand_batch_dims.iter().zip(&self.index_batch_dims) {
            if self.dropped_dims.contains(&a) || self.index_map.contains(&a) {
                fail!(Axis, "axis {a} is a batch axis of {x} and cannot be in {} or index_map", names[1]);
            }
            if let (Some(have), Some(want)) = (x.shape().get(a), outer.get(b))
                && !infer.equal(have, want)
            {
                fail!(Shape, "batch axis {a} of {x} has {have} where axis {b} of the indices {indices} has {want}");
            }
        }
        let shown = self.shown(x.rank()).count();
        if self.window_dims.len() != shown {
            fail!(Axis, "windows of {x} show {shown} axes, so {} needs as many, not {:?}", names[0], self.window_dims);
        }
        Ok(())
    }

    /// The lists after a batch axis came in front of the operand, of the indices, or of both; always of the windows.
    pub(super) fn batched(&self, operand: bool, indices: bool) -> Windows {
        let behind = |list: &[usize], moved: bool| if moved { shifted(list) } else { list.to_vec() };
        let mut lists = Windows {
            window_dims: shifted(&self.window_dims),
            dropped_dims: behind(&self.dropped_dims, operand),
            operand_batch_dims: behind(&self.operand_batch_dims, operand),
            index_batch_dims: behind(&self.index_batch_dims, indices),
            index_map: behind(&self.index_map, operand),
        };
        match (operand, indices) {
            (true, true) => {
                lists.operand_batch_dims = prepended(0, &lists.operand_batch_dims);
                lists.index_batch_dims = prepended(0, &lists.index_batch_dims);
            }
            // The same indices for every example: windows show the whole batch axis.
            (true, false) => lists.window_dims = prepended(0, &lists.window_dims),
            (false, _) => {}
        }
        lists
    }

    /// The walk inside a window, from its corner in the operand to its corner in the array of windows.
    pub(super) fn inside(&self, layout: &Layout<'_>) -> (Vec<usize>, Vec<isize>, Vec<isize>) {
        let shown = || self.shown(layout.operand_dims.len());
        (
            shown().filter_map(|a| layout.sizes.get(a).copied()).collect(),
            shown().filter_map(|a| layout.operand_strides.get(a).copied()).collect(),
            self.window_dims.iter().filter_map(|a| layout.windows_strides.get(*a).copied()).collect(),
        )
    }

    /// Calls `visit(operand, windows)` with the places of the two corners of each window, in the row-major order of
    /// the index vectors. A start outside its range is moved to its nearest edge (`clip`) or makes the first `None`.
    pub(super) fn walk(
        &self,
        layout: &Layout<'_>,
        indices: &Concrete,
        clip: bool,
        visit: &mut dyn FnMut(Option<usize>, usize),
    ) {
        let rank = layout.operand_dims.len();
        let size = |a: usize| layout.sizes.get(a).copied().unwrap_or(1);
        let dim = |a: usize| layout.operand_dims.get(a).copied().unwrap_or(1);
        let stride = |a: usize| layout.operand_strides.get(a).copied().unwrap_or(0);
        // A window larger than its axis fits nowhere. Batch axes are not searched: they run with the indices.
        let fits = (0..rank).all(|a| self.operand_batch_dims.contains(&a) || size(a) <= dim(a));
        // For each component of an index vector: the largest start, and what a step is worth.
        let components: Vec<(i64, isize)> =
            self.index_map.iter().map(|&a| (dim(a) as i64 - size(a) as i64, stride(a))).collect();
        let Some((_, outer)) = indices.dims().split_last() else { return };
        let mut along_operand = vec![0isize; outer.len()];
        for (&a, &b) in self.operand_batch_dims.iter().zip(&self.index_batch_dims) {
            if let Some(s) = along_operand.get_mut(b) {
                *s = stride(a);
            }
        }
        let along_windows: Vec<isize> =
            self.outer(layout.windows_strides.len()).filter_map(|a| layout.windows_strides.get(a).copied()).collect();
        // Index vectors are read a few hundred at a time: a wide copy of all of them may not fit into memory.
        let indices = indices.to_dense();
        let k = components.len();
        let mut values = vec![0; k * CHUNK];
        let (mut read, mut next) = (0, values.len());
        StridedCopy::new(outer, &along_operand, &along_windows).each(
            layout.operand_offset,
            layout.windows_offset,
            &mut |x, w| {
                if next == values.len() {
                    read_indices(&indices, read, &mut values);
                    read += values.len();
                    next = 0;
                }
                let vector = values.get(next..next + k).unwrap_or_default();
                next += k;
                let mut at = x;
                let mut within = fits;
                for (&start, &(last, step)) in vector.iter().zip(&components) {
                    let start = if clip { start.max(0).min(last) } else { start };
                    within &= (0..=last).contains(&start);
                    at = at.wrapping_add_signed(step.wrapping_mul(start as isize));
                }
                visit(within.then_some(at), w);
            },
        );
    }
}

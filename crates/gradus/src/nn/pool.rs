//! Reductions of windows: pooling of images, and the general form.

use gradus_core::error::counted;
use gradus_core::primitives::Op;
use gradus_core::primitives::reduce_window::ReduceWindow;
pub use gradus_core::primitives::reduce_window::WindowKind;
use gradus_core::trace::bind;
use gradus_core::{Array, DType, Dim, ErrorKind, IntoShape, Result, Scalar, Shape};

use super::conv::{Padding, for_each, reach};
use super::layout::Image;
use crate::line::{on_line, refuse};

/// Windows and how they go over an array. The usual is windows that do not overlap, no padding, no holes.
#[derive(Clone, Debug)]
pub struct Pool {
    sizes: Vec<Dim>,
    strides: Option<Vec<usize>>,
    padding: Padding,
    dilation: Option<Vec<usize>>,
    base_dilation: Option<Vec<usize>>,
    counts_padding: bool,
}

impl Pool {
    /// Windows of so many elements along each axis of places.
    pub fn window(sizes: impl IntoShape) -> Pool {
        Pool {
            sizes: sizes.into_shape().to_vec(),
            strides: None,
            padding: Padding::Valid,
            dilation: None,
            base_dilation: None,
            counts_padding: false,
        }
    }

    /// How far apart windows begin; their size unless told otherwise.
    #[must_use]
    pub fn strides(self, strides: impl IntoIterator<Item = usize>) -> Pool {
        Pool { strides: Some(strides.into_iter().collect()), ..self }
    }

    /// So much before and behind along each axis, of what changes nothing; negative to crop.
    #[must_use]
    pub fn padding<D: Into<Dim>>(self, pairs: impl IntoIterator<Item = (D, D)>) -> Pool {
        let pairs = pairs.into_iter().map(|(low, high)| (low.into(), high.into())).collect();
        Pool { padding: Padding::Pairs(pairs), ..self }
    }

    /// As much around the array as gives one result for each stride, the odd one behind.
    #[must_use]
    pub fn same(self) -> Pool {
        Pool { padding: Padding::Same, ..self }
    }

    /// How far apart the elements of a window are.
    #[must_use]
    #[doc(alias = "window_dilation")]
    pub fn dilation(self, dilation: impl IntoIterator<Item = usize>) -> Pool {
        Pool { dilation: Some(dilation.into_iter().collect()), ..self }
    }

    /// How far apart the elements of the array are.
    #[must_use]
    pub fn base_dilation(self, dilation: impl IntoIterator<Item = usize>) -> Pool {
        Pool { base_dilation: Some(dilation.into_iter().collect()), ..self }
    }

    /// For averages: padding counts as zeros that were there. Otherwise it is left out, and a mean is of what the window has of the array.
    #[must_use]
    #[doc(alias = "count_include_pad")]
    pub fn count_padding(self) -> Pool {
        Pool { counts_padding: true, ..self }
    }

    /// The operation along axes of these sizes.
    fn operation(&self, kind: WindowKind, sizes: &[Dim]) -> Result<ReduceWindow> {
        let axes = sizes.len();
        if self.sizes.len() != axes {
            return refuse(
                ErrorKind::Shape,
                format!("a window of {} for {}", counted(self.sizes.len(), "size"), counted(axes, "axis")),
                "give one for each axis that windows go along",
            );
        }
        let strides = match &self.strides {
            Some(_) => for_each("stride", &self.strides, axes)?,
            None => self.own_sizes()?,
        };
        let window_dilation = for_each("dilation", &self.dilation, axes)?;
        let base_dilation = for_each("array dilation", &self.base_dilation, axes)?;
        let reaches: Vec<Dim> = self.sizes.iter().zip(&window_dilation).map(|(k, d)| reach(k, *d)).collect();
        let long: Vec<Dim> = sizes.iter().zip(&base_dilation).map(|(n, d)| reach(n, *d)).collect();
        let (low, high) = self.padding.amounts(&long, &reaches, &strides)?.into_iter().unzip();
        Ok(ReduceWindow { kind, sizes: self.sizes.clone(), strides, low, high, base_dilation, window_dilation })
    }

    /// The sizes as strides.
    fn own_sizes(&self) -> Result<Vec<usize>> {
        let size = |d: &Dim| match d.as_usize() {
            Some(n) if n > 0 => Ok(n),
            _ => refuse(
                ErrorKind::Value,
                format!("windows of {d} elements that do not overlap"),
                "give strides, as in `.strides([1, 1])`",
            ),
        };
        self.sizes.iter().map(size).collect()
    }

    /// The operation on an image of a layout: along the axes of places only.
    fn of_image(&self, kind: WindowKind, layout: &str, x: &Array) -> Result<ReduceWindow> {
        let (image, ty) = (Image::read(layout)?, x.ty()?);
        if image.rank() != ty.rank() {
            return refuse(
                ErrorKind::Shape,
                format!("the layout {layout:?} has {} axes, and {ty} has {}", image.rank(), ty.rank()),
                "write a letter for each axis, and give a single example an axis with `expand_dims`",
            );
        }
        let places: Vec<usize> = (0..image.rank()).filter(|a| image.spatial.contains(&image.letters()[*a])).collect(); // invariant: below the rank
        let sizes: Vec<Dim> = places.iter().map(|a| x.dim(*a as isize)).collect();
        let along = self.operation(kind, &sizes)?;
        let at = |a: usize| places.iter().position(|p| *p == a);
        let dims = |list: &[Dim], other: usize| {
            (0..image.rank())
                .map(|a| at(a).and_then(|i| list.get(i).cloned()).unwrap_or_else(|| Dim::from(other)))
                .collect()
        };
        let numbers =
            |list: &[usize]| (0..image.rank()).map(|a| at(a).and_then(|i| list.get(i).copied()).unwrap_or(1)).collect();
        Ok(ReduceWindow {
            kind,
            sizes: dims(&along.sizes, 1),
            strides: numbers(&along.strides),
            low: dims(&along.low, 0),
            high: dims(&along.high, 0),
            base_dilation: numbers(&along.base_dilation),
            window_dilation: numbers(&along.window_dilation),
        })
    }
}

fn reduced(op: ReduceWindow, x: &Array) -> Result<Array> {
    bind(Op::new(op), std::slice::from_ref(x)).ok()
}

/// One number for each window of an array; the windows have a size along every axis.
///
/// ```
/// use gradus::prelude::*;
///
/// let x = Array::arange(0.0_f64, 6.0, 1.0);
/// let y = nn::reduce_window(nn::WindowKind::Sum, &x, nn::Pool::window([3]).strides([1]));
/// assert_eq!(y.to_vec::<f64>().unwrap(), [3.0, 6.0, 9.0, 12.0]);
/// ```
#[track_caller]
pub fn reduce_window(kind: WindowKind, x: &Array, windows: Pool) -> Array {
    on_line(|| reduced(windows.operation(kind, x.ty()?.shape())?, x))
}

/// The largest element of every window of an image, along the axes of places: all letters of the layout but `N` and `C`. The first of equals has the derivative.
///
/// ```
/// use gradus::prelude::*;
///
/// let image = Array::ones::<f32>([1, 4, 6, 3]);
/// let y = nn::max_pool("NHWC", &image, nn::Pool::window([2, 2]));
/// assert_eq!(y.shape(), [1, 2, 3, 3]);
/// ```
#[track_caller]
pub fn max_pool(layout: &str, x: &Array, windows: Pool) -> Array {
    on_line(|| reduced(windows.of_image(WindowKind::Max, layout, x)?, x))
}

/// The mean of every window of an image, along the axes of places: all letters of the layout but `N` and `C`. Padding is left out unless
/// [`Pool::count_padding`] says otherwise.
///
/// ```
/// use gradus::prelude::*;
///
/// let image = Array::ones::<f32>([1, 3, 3, 1]);
/// let y = nn::avg_pool("NHWC", &image, nn::Pool::window([2, 2]).strides([1, 1]).same());
/// assert_eq!(y.to_vec::<f32>().unwrap(), [1.0; 9]);
/// ```
#[track_caller]
pub fn avg_pool(layout: &str, x: &Array, windows: Pool) -> Array {
    on_line(|| {
        let ty = x.ty()?;
        if !ty.dtype().is_inexact() {
            return refuse(ErrorKind::DType, format!("means of {ty}"), "cast first, as in `x.cast(DType::F32)`");
        }
        let op = windows.of_image(WindowKind::Sum, layout, x)?;
        let zero = |d: &Dim| d.constant() == Some(0);
        let plain = op.low.iter().chain(&op.high).all(zero) && op.base_dilation.iter().all(|d| *d == 1);
        let count = if windows.counts_padding || plain {
            Array::from_dim(&op.sizes.iter().fold(Dim::from(1usize), |n, d| n * d), real(ty.dtype()))
        } else {
            // How many elements of the array each window has: the same along axes without windows.
            let still = |a: usize| op.sizes[a].constant() == Some(1) && op.strides[a] == 1; // invariant: lists are as long as the rank
            let dims: Shape =
                (0..ty.rank()).map(|a| if still(a) { Dim::from(1usize) } else { x.dim(a as isize) }).collect();
            reduced(op.clone(), &Array::full_scalar(dims, Scalar::one(real(ty.dtype()))))?
        };
        (reduced(op, x)? / count).ok()
    })
}

fn real(dtype: DType) -> DType {
    dtype.real_part()
}

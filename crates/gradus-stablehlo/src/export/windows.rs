//! Operations on windows of an array: showing them, reducing them, convolutions; and Fourier transforms.

use gradus_core::primitives::Op;
use gradus_core::primitives::convolve::Convolve;
#[cfg(feature = "fft")]
use gradus_core::primitives::fft::{Fft, FftKind};
use gradus_core::primitives::index::{Bounds, Gather};
use gradus_core::primitives::reduce_window::{ReduceWindow, WindowKind};
use gradus_core::primitives::windows::Windows;
use gradus_core::{DType, Dim, Result, Scalar, Shape, Type};

use super::emit::{Emit, attributes, is_half, number, numbers};
use super::reduce::{Combine, Window, pairs};
use super::{error, fail};
use crate::module::{Attribute, Attributes, Value};

impl Emit<'_> {
    /// The rule of an operation on windows, if it is one.
    pub fn windowed(&mut self, op: &Op, operands: &[Value], results: &[Type]) -> Result<Option<Vec<Value>>> {
        let Some(ty) = results.first() else { return Ok(None) };
        let made = match (op.name(), operands) {
            ("windows", [x]) => {
                let Some(windows) = op.downcast::<Windows>() else { return Ok(None) };
                self.windows(windows, *x, ty)?
            }
            ("reduce_window", [x]) => {
                let Some(reduce) = op.downcast::<ReduceWindow>() else { return Ok(None) };
                // Windows whose sizes are symbols are made of others.
                let Some(window) = window_of(reduce).filter(|_| !ty.shape().is_symbolic()) else { return Ok(None) };
                let combine = match reduce.kind {
                    WindowKind::Sum => Combine::Sum,
                    WindowKind::Prod => Combine::Prod,
                    WindowKind::Max => Combine::Max,
                    WindowKind::Min => Combine::Min,
                };
                self.reduce_window(combine, *x, &window, ty.shape())?
            }
            ("convolve", [image, kernel]) => {
                let Some(convolve) = op.downcast::<Convolve>() else { return Ok(None) };
                match self.convolution(convolve, *image, *kernel, ty)? {
                    Some(made) => made,
                    None => return Ok(None),
                }
            }
            #[cfg(feature = "fft")]
            ("fft", [x]) => {
                let Some(fft) = op.downcast::<Fft>() else { return Ok(None) };
                self.fft(fft, *x, ty)?
            }
            _ => return Ok(None),
        };
        Ok(Some(vec![made]))
    }

    /// Axis by axis: the elements of all windows are picked, window by window, and the axis inside of windows goes to the end.
    fn windows(&mut self, windows: &Windows, x: Value, ty: &Type) -> Result<Value> {
        let mut made = x;
        for (i, &axis) in windows.axes.iter().enumerate() {
            let (Some(size), Some(&stride), Some(&dilation)) =
                (windows.sizes.get(i), windows.strides.get(i), windows.dilations.get(i))
            else {
                fail!(Internal, "windows along an axis that is not there");
            };
            let Some(count) = ty.shape().get(axis).cloned() else { fail!(Internal, "windows along no axis") };
            let grid: Shape = [count.clone(), size.clone()].into_iter().collect();
            let (row, column) = (self.iota(DType::I32, &grid, 0)?, self.iota(DType::I32, &grid, 1)?);
            let (row, column) = (self.times(row, stride)?, self.times(column, dilation)?);
            let places = self.same("stablehlo.add", &[row, column])?;
            let all = count * size;
            let places = self.reshape(places, &[all.clone(), Dim::from(1usize)].into_iter().collect())?;
            let shape = self.shape(made);
            let rank = shape.rank();
            let gather = Gather {
                offset_dims: (0..rank).filter(|a| *a != axis).collect(),
                collapsed_dims: vec![axis],
                operand_batch_dims: vec![],
                index_batch_dims: vec![],
                index_map: vec![axis],
                sizes: shape.replaced(axis, Dim::from(1usize)),
                bounds: Bounds::Clip,
            };
            let picked = self.ty(made).with_shape(shape.replaced(axis, all));
            let picked = self.gather(&gather, made, places, &picked)?;
            let apart = shape.replaced(axis, grid[0].clone()).inserted(axis + 1, size.clone()); // invariant: a grid has two axes
            let picked = self.reshape(picked, &apart)?;
            let order: Vec<usize> = (0..=rank).filter(|a| *a != axis + 1).chain([axis + 1]).collect();
            made = self.transpose(picked, &order)?;
        }
        Ok(made)
    }

    fn times(&mut self, x: Value, factor: usize) -> Result<Value> {
        if factor == 1 {
            return Ok(x);
        }
        let ty = self.ty(x);
        let factor = self.splat(&ty, Scalar::I64(factor as i64))?;
        self.same("stablehlo.multiply", &[x, factor])
    }

    /// A convolution, if its sizes are numbers.
    fn convolution(&mut self, convolve: &Convolve, image: Value, kernel: Value, ty: &Type) -> Result<Option<Value>> {
        if self.shape(image).is_symbolic() || self.shape(kernel).is_symbolic() {
            return Ok(None);
        }
        let spatial = convolve.strides.len();
        let known = |dims: &[Dim]| dims.iter().map(Dim::constant).collect::<Option<Vec<i64>>>();
        let (Some(low), Some(high)) = (known(&convolve.low), known(&convolve.high)) else { return Ok(None) };
        let (Some(features), Some(batches)) = (convolve.feature_groups.as_usize(), convolve.batch_groups.as_usize())
        else {
            return Ok(None);
        };
        let padding: Vec<[i64; 2]> = low.into_iter().zip(high).map(|(a, b)| [a, b]).collect();
        let inner: Vec<usize> = (1..=spatial).collect();
        let outer: Vec<usize> = (0..spatial).collect();
        let mut fields = Attributes::default();
        for side in ["input", "output"] {
            fields.set(format!("{side}_batch_dimension"), number(0));
            fields.set(format!("{side}_feature_dimension"), number(spatial + 1));
            fields.set(format!("{side}_spatial_dimensions"), numbers(&inner));
        }
        fields.set("kernel_input_feature_dimension", number(spatial));
        fields.set("kernel_output_feature_dimension", number(spatial + 1));
        fields.set("kernel_spatial_dimensions", numbers(&outer));
        let more = attributes([
            ("dimension_numbers", Attribute::Struct("stablehlo.conv".into(), fields)),
            ("window_strides", numbers(&convolve.strides)),
            ("padding", pairs(&padding)),
            ("lhs_dilation", numbers(&convolve.image_dilation)),
            ("rhs_dilation", numbers(&convolve.kernel_dilation)),
            ("feature_group_count", number(features)),
            ("batch_group_count", number(batches)),
            ("precision_config", self.precision()),
        ]);
        // Halves are added in `f32`.
        let dtype = ty.dtype();
        let (image, kernel) = match is_half(dtype) {
            true => (self.convert(image, DType::F32)?, self.convert(kernel, DType::F32)?),
            false => (image, kernel),
        };
        let wide = self.ty(image).with_shape(ty.shape().clone());
        let made = self.op("stablehlo.convolution", &[image, kernel], more, &wide)?;
        self.convert(made, dtype).map(Some)
    }

    #[cfg(feature = "fft")]
    fn fft(&mut self, fft: &Fft, x: Value, ty: &Type) -> Result<Value> {
        let mut lengths = Vec::new();
        for n in &fft.lengths {
            lengths.push(self.known(n, "the length of a Fourier transform")?);
        }
        // StableHLO transforms at most three axes at once.
        if lengths.len() > 3 || lengths.is_empty() {
            return Err(error!(MissingRule, "StableHLO transforms one to three axes at once, not {}", lengths.len())
                .help("transform the axes one after the other"));
        }
        let kind = match fft.kind {
            FftKind::Forward => "FFT",
            FftKind::Inverse => "IFFT",
            FftKind::RealForward => "RFFT",
            FftKind::RealInverse => "IRFFT",
        };
        let more = attributes([
            ("fft_type", super::emit::word("stablehlo.fft_type", kind)),
            ("fft_length", numbers(&lengths)),
        ]);
        self.op("stablehlo.fft", &[x], more, ty)
    }
}

/// The window of a reduction, if its sizes are numbers.
fn window_of(reduce: &ReduceWindow) -> Option<Window> {
    let low = reduce.low.iter().map(Dim::constant).collect::<Option<Vec<i64>>>()?;
    let high = reduce.high.iter().map(Dim::constant).collect::<Option<Vec<i64>>>()?;
    Some(Window {
        sizes: reduce.sizes.iter().map(Dim::as_usize).collect::<Option<Vec<_>>>()?,
        strides: reduce.strides.clone(),
        padding: low.into_iter().zip(high).map(|(a, b)| [a, b]).collect(),
        base_dilations: reduce.base_dilation.clone(),
        window_dilations: reduce.window_dilation.clone(),
    })
}

//! Steps over windows: reductions, convolutions, and Fourier transforms of what has an axis for it.

use gradus::nn::{Conv, Pool, WindowKind};
use gradus::prelude::*;

use super::Desk;

impl Desk<'_> {
    /// Reduces windows along one axis, with some padding; or transforms the last one.
    pub(super) fn windows(&mut self) -> Option<Array> {
        let x = self.with_axes(1)?;
        let floats = x.dtype().is_float() && x.dtype().size() >= 4;
        if floats && self.dims(&x).last().is_some_and(|n| *n > 0) && self.chance(25) {
            let spectrum = fft::rfft(&x);
            let y = if self.chance(50) { spectrum.abs() } else { fft::irfft(&(spectrum * 0.5)) };
            return self.push(y);
        }
        let kind = match self.below(4) {
            0 => WindowKind::Sum,
            1 => WindowKind::Prod,
            2 => WindowKind::Max,
            _ => WindowKind::Min,
        };
        if x.dtype() == DType::Bool || (x.dtype().is_complex() && matches!(kind, WindowKind::Max | WindowKind::Min)) {
            return None;
        }
        let axis = self.axis(&x).rem_euclid(x.rank() as isize) as usize;
        let one = |v: usize| (0..x.rank()).map(|a| if a == axis { v } else { 1 }).collect::<Vec<_>>();
        let (size, stride, dilation) = (1 + self.below(4), 1 + self.below(3), 1 + self.below(2));
        let (low, high) = (self.below(3) as i64, self.below(2) as i64);
        let around = (0..x.rank()).map(|a| if a == axis { (low, high) } else { (0, 0) }).collect::<Vec<_>>();
        let windows = Pool::window(one(size)).strides(one(stride)).padding(around).dilation(one(dilation));
        let y = nn::reduce_window(kind, &x, windows);
        self.push(y)
    }

    /// A convolution of what has three or four axes with a kernel made of its own numbers.
    pub(super) fn convolution(&mut self) -> Option<Array> {
        let numbers = |a: &Array| a.dtype() != DType::Bool && (3..=4).contains(&a.rank());
        let x = self.any_of(numbers)?;
        let (layout, places) = if x.rank() == 3 { ("NWC,WIO->NWC", 1) } else { ("NHWC,HWIO->NHWC", 2) };
        let dims = self.dims(&x);
        let (features, results) = (*dims.last()?, 1 + self.below(4));
        let side = 1 + self.below(3);
        let shape: Vec<usize> = (0..places).map(|_| side).chain([features, results]).collect();
        let n: usize = shape.iter().product();
        let w = ((Array::arange(0.0_f64, n as f64, 1.0) * 0.7).sin() * 2.0).reshape(shape).cast(x.dtype());
        let mut options = Conv::default().strides(vec![1 + self.below(2); places]);
        if self.chance(50) {
            options = options.same();
        }
        if self.chance(30) {
            options = options.dilation(vec![2; places]);
        }
        let y = nn::conv(layout, &x, &w, options);
        self.push(y)
    }
}

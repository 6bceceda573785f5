//! Fourier transforms, convolutions, windows.

use gradus::fft::{FftOptions, Norm};
use gradus::nn::{Conv, Pool, WindowKind};
use gradus::prelude::*;
use gradus::signal::{self, Overlap, Stft};

use super::compare::{Entry, one, three, two};

const NHWC: &str = "NHWC,HWIO->NHWC";

fn parts(z: &Array) -> Array {
    Array::concatenate([z.real().reshape([-1]), z.imag().reshape([-1])], 0)
}

fn complex(x: &Array, y: &Array) -> Array {
    Array::complex(x, y)
}

fn options() -> FftOptions {
    FftOptions::new()
}

pub fn entries() -> Vec<Entry> {
    let mut all = transforms();
    all.extend(signals());
    all.extend(networks());
    all
}

fn transforms() -> Vec<Entry> {
    vec![
        one("fft_of_reals", |x| parts(&fft::fft(x))),
        two("fft_power", |x, y| (fft::fft(&complex(x, y)).abs().powi(3) * Array::arange(0.0, 6.0, 1.0)).sum()),
        two("ifft_ortho", |x, y| parts(&options().norm(Norm::Ortho).ifft(&complex(x, y)))),
        one("fft_along_the_first_axis", |x| parts(&options().axis(0).length(5).norm(Norm::Forward).fft(x))),
        one("rfft_cropped", |x| parts(&options().length(6).rfft(x))),
        one("rfft_power", |x| (fft::rfft(x).abs().square() * Array::from([1.0, -2.0, 0.5])).sum()),
        two("irfft_even", |x, y| fft::irfft(&complex(x, y))),
        two("irfft_odd", |x, y| options().length(7).norm(Norm::Ortho).irfft(&complex(x, y))),
        one("fft2_log", |x| (fft::fft2(x).abs().square() + 1.0).log().sum()),
        two("ifft2_forward", |x, y| parts(&options().norm(Norm::Forward).ifft2(&complex(x, y)))),
        one("rfft2_parts", |x| parts(&fft::rfft2(x))),
        two("irfft2_even", |x, y| fft::irfft2(&complex(x, y))),
        one("fftn_all", |x| parts(&options().norm(Norm::Ortho).fftn(x))),
        one("ifftn_two_axes", |x| parts(&options().axes([2, 0]).ifftn(x))),
        one("rfftn_power", |x| fft::rfftn(x).abs().powi(4).sum() / 1000.0),
        two("irfftn_lengths", |x, y| options().lengths([2, 2, 3]).irfftn(&complex(x, y))),
        two("hfft_plain", |x, y| fft::hfft(&complex(x, y))),
        one("ihfft_plain", |x| parts(&options().norm(Norm::Ortho).ihfft(x))),
        one("shifted", |x| fft::fftshift(x) * 2.0 + fft::ifftshift_axes(x, 1)),
        one("frequencies", |x| {
            let all = [fft::fftfreq::<f64>(5, 0.5), fft::fftfreq::<f64>(4, 2.0), fft::rfftfreq::<f64>(5, 0.1)];
            Array::concatenate(all, 0) * x
        }),
        one("dct_plain", fft::dct),
        one("dct_ortho", |x| options().axis(0).norm(Norm::Ortho).dct(x)),
        one("idct_plain", fft::idct),
        one("idct_ortho", |x| options().norm(Norm::Ortho).idct(x)),
        one("dct_of_the_first_type", |x| options().dct_type(1).dct(x)),
        one("dct_of_the_third_type", |x| options().dct_type(3).dct(x)),
        one("dct_of_the_fourth_type", |x| options().dct_type(4).dct(x)),
    ]
}

fn signals() -> Vec<Entry> {
    vec![
        two("convolve_full", |x, y| signal::convolve(x, y, Overlap::Full)),
        two("convolve_same", |x, y| signal::convolve(x, y, Overlap::Same)),
        two("convolve_valid", |x, y| signal::convolve(x, y, Overlap::Valid)),
        two("convolve_images", |x, y| signal::convolve(x, y, Overlap::Same).powi(3).sum()),
        two("correlate_full", |x, y| signal::correlate(x, y, Overlap::Full)),
        two("correlate_complex", |x, y| {
            parts(&signal::correlate(&complex(x, y), &complex(y, &(x * -2.0)), Overlap::Same))
        }),
        two("correlate_valid", |x, y| signal::correlate(x, y, Overlap::Valid)),
        two("fft_convolution", |x, y| signal::fftconvolve(x, y, Overlap::Full)),
        two("fft_convolution_valid", |x, y| signal::fftconvolve(x, y, Overlap::Valid)),
        one("stft_parts", |x| (parts(&Stft::new(8).hop(3).stft(x)) * 5.0).sin().sum()),
        two("istft_of", |x, y| Stft::new(8).hop(2).istft(&complex(x, y))),
    ]
}

fn networks() -> Vec<Entry> {
    vec![
        two("conv_strided_same", |x, w| nn::conv(NHWC, x, w, Conv::default().strides([2, 1]).same()).sin().sum()),
        two("conv_channels_first", |x, w| {
            nn::conv("NCHW,OIHW->NCHW", x, w, Conv::default().strides([1, 2])).square().sum()
        }),
        two("conv_along_one_axis", |x, w| {
            let options = Conv::default().padding([(2, -1)]).dilation([2]).image_dilation([3]);
            nn::conv("NWC,WIO->NWC", x, w, options).powi(3).sum() / 10.0
        }),
        two("conv_along_three_axes", |x, w| {
            nn::conv("NDHWC,DHWIO->NDHWC", x, w, Conv::default().strides([1, 1, 2]).same()).tanh().sum()
        }),
        two("conv_in_groups", |x, w| nn::conv(NHWC, x, w, Conv::default().same().groups(2)).square().sum()),
        two("conv_of_each_feature", |x, w| {
            nn::conv(NHWC, x, w, Conv::default().strides([2, 2]).same().groups(3)).sin().sum()
        }),
        two("conv_in_batch_groups", |x, w| nn::conv(NHWC, x, w, Conv::default().batch_groups(2)).square().sum()),
        two("conv_transposed_same", |x, w| {
            nn::conv_transpose(NHWC, x, w, Conv::default().strides([2, 2]).same()).sin().sum()
        }),
        two("conv_transposed_valid", |x, w| {
            nn::conv_transpose(NHWC, x, w, Conv::default().strides([3, 1])).sin().sum()
        }),
        two("conv_transposed_dilated", |x, w| {
            nn::conv_transpose(NHWC, x, w, Conv::default().strides([2, 1]).dilation([1, 2]))
        }),
        three("convolutional_network", |x, w, v| {
            let y = nn::max_pool("NHWC", &nn::conv(NHWC, x, w, Conv::default()).relu(), Pool::window([2, 2]));
            y.reshape([-1]).dot(v).logsumexp()
        }),
        one("max_pool_overlapping", |x| {
            nn::max_pool("NHWC", x, Pool::window([3, 2]).strides([2, 1]).same()).square().sum()
        }),
        one("max_pool_of_equals", |x| {
            let y = nn::reduce_window(WindowKind::Max, x, Pool::window([1, 3]).strides([1, 1]));
            (y * Array::arange(1.0, 5.0, 1.0)).sum()
        }),
        one("avg_pool_same", |x| nn::avg_pool("NWC", x, Pool::window([3]).strides([2]).same()).exp().sum()),
        one("avg_pool_counting", |x| nn::avg_pool("NCW", x, Pool::window([2]).padding([(1, 1)]).count_padding())),
        one("window_sums", |x| {
            let windows = Pool::window([3]).strides([2]).padding([(1, 2)]).dilation([2]).base_dilation([2]);
            nn::reduce_window(WindowKind::Sum, x, windows)
        }),
        one("window_minima", |x| {
            nn::reduce_window(WindowKind::Min, x, Pool::window([2, 2]).strides([1, 2])).powi(3).sum()
        }),
        one("window_products", |x| nn::reduce_window(WindowKind::Prod, x, Pool::window([3]).strides([1])).sin().sum()),
    ]
}

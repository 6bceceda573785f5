//! Signals and windows as users write them, and what is said to those who write something that cannot be.

use gradus::fft::FftOptions;
use gradus::nn::{Conv, Pool};
use gradus::prelude::*;
use gradus::signal::{self, Overlap, Stft};

fn close(a: &Array, b: &[f64]) {
    let a = a.to_vec::<f64>().unwrap();
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= 1e-9 * (1.0 + y.abs()), "{a:?} {b:?}");
    }
}

/// The error that an array carries: what it says, and whether it stands at this line of this file.
#[track_caller]
fn says(array: Array, text: &str) {
    let e = array.ok().unwrap_err();
    assert!(e.to_string().contains(text), "{e}");
    assert!(e.to_string().contains("library_signals.rs"), "no line of the user: {e}");
    assert!(e.way_out().is_some(), "no way out: {e}");
}

#[test]
fn what_cannot_be_convolved_is_an_error_with_the_users_line() {
    let x = Array::ones::<f32>([1, 5, 5, 2]);
    let w = Array::ones::<f32>([3, 3, 2, 4]);
    let usual = Conv::default;
    says(nn::conv("NHWC,HWIO", &x, &w, usual()), "image,kernel->result");
    says(nn::conv("NHWC,HWIO->NHHC", &x, &w, usual()), "has H twice");
    says(nn::conv("NHWD,HWIO->NHWC", &x, &w, usual()), "has no C");
    says(nn::conv("NHWC,HWIO->NHDC", &x, &w, usual()), "other axes of places");
    says(nn::conv("NH-C,HWIO->NHWC", &x, &w, usual()), "is no letter");
    says(nn::conv("NWC,WIO->NWC", &x, &w, usual()), "says 3 axes");
    says(nn::conv("NHWC,HWIO->NHWC", &x, &w, usual().strides([0, 1])), "strides of [0, 1]");
    says(nn::conv("NHWC,HWIO->NHWC", &x, &w, usual().strides([2])), "1 stride for 2 axes");
    says(nn::conv("NHWC,HWIO->NHWC", &x, &w, usual().dilation([0, 1])), "dilations of [0, 1]");
    says(nn::conv("NHWC,HWIO->NHWC", &x, &w, usual().dilation([3, 1])), "along `H` and does not fit");
    says(nn::conv("NHWC,HWIO->NHWC", &x, &w, usual().padding([(-3, -3), (0, 0)])), "-1 elements");
    says(nn::conv("NHWC,HWIO->NHWC", &x, &w, usual().padding([(1, 1)])), "padding for 1 axis");
    says(nn::conv("NHWC,HWIO->NHWC", &x, &w, usual().groups(2)), "2 features");
    says(nn::conv("NHWC,HWIO->NHWC", &x, &w, usual().groups(0)), "0 groups");
    says(nn::conv("NHWC,HWOI->NHWC", &x, &w, usual()), "2 features");
    says(nn::conv("NHWC,HWIO->NHWC", &Array::zeros::<f32>([1, 0, 5, 2]), &w, usual().same()), "no elements");
    says(nn::conv_transpose("NHWC,HWIO->NHWC", &x, &w, usual().image_dilation([2, 2])), "dilation of the image");
    // No examples, or no features, are nothing to add up.
    assert_eq!(nn::conv("NHWC,HWIO->NHWC", &Array::zeros::<f32>([0, 5, 5, 2]), &w, usual()).shape(), [0, 3, 3, 4]);
}

#[test]
fn windows_that_do_not_fit_are_errors_with_the_users_line() {
    let x = Array::ones::<f32>([1, 4, 4, 2]);
    says(nn::max_pool("NHWC", &x, Pool::window([5, 1])), "does not fit axis 1");
    says(nn::max_pool("NHWC", &x, Pool::window([2])), "a window of 1 size for 2 axes");
    says(nn::max_pool("NHWC", &x, Pool::window([0, 2])), "windows of 0 elements");
    says(nn::max_pool("NHWC", &x, Pool::window([2, 2]).strides([1, 0])), "strides of [1, 0]");
    says(nn::max_pool("NWC", &x, Pool::window([2])), "has 3 axes");
    says(nn::avg_pool("NHWC", &x.cast(DType::I32), Pool::window([2, 2])), "means of i32");
    says(nn::max_pool("NHWC", &Array::zeros::<f32>([1, 0, 4, 2]), Pool::window([2, 2])), "does not fit");
}

#[test]
fn transforms_that_cannot_be_are_errors_with_the_users_line() {
    let x = Array::ones::<f64>([4]);
    says(fft::rfft(&fft::fft(&x)), "real numbers");
    says(fft::fft(&Array::zeros::<f64>([0])), "length 0");
    says(fft::irfft(&Array::ones::<f64>([1])), "length 0");
    says(FftOptions::new().axis(3).fft(&x), "axis 3");
    says(FftOptions::new().axes([0, 1]).fft(&Array::ones::<f64>([2, 2])), "one axis");
    says(FftOptions::new().length(0).fft(&x), "length 0");
    says(FftOptions::new().lengths([4, 4]).axes([0]).fftn(&x), "2 lengths for 1 axis");
    says(FftOptions::new().dct_type(5).dct(&x), "type 5");
    says(FftOptions::new().dct_type(1).dct(&Array::ones::<f64>([1])), "at least 2");
    says(fft::fft2(&x), "axis -2");
    says(signal::convolve(&x, &Array::ones::<f64>([2, 2]), Overlap::Full), "same number of axes");
    says(signal::convolve(&x, &Array::zeros::<f64>([0]), Overlap::Full), "have elements");
    says(Stft::new(8).hop(0).stft(&x), "at least 1");
    says(Stft::new(8).window(&x).stft(&x), "a window of f64[4]");
    says(Stft::new(8).istft(&x), "spectra are complex");
}

#[test]
fn sizes_may_be_symbols() -> Result<()> {
    let network = |x: &Array| {
        let w = Array::arange(0.0_f64, 18.0, 1.0).cos().reshape([3, 3, 1, 2]);
        let y = nn::conv("NHWC,HWIO->NHWC", x, &w, Conv::default().same());
        nn::max_pool("NHWC", &y, Pool::window([2, 2])).square().sum()
    };
    let staged = jit(grad(network)).symbolic("f64[B, 4, 6, 1]");
    for batch in [1_usize, 3, 2] {
        let x = (Array::arange(0.0_f64, (24 * batch) as f64, 1.0) * 0.7).sin().reshape([batch, 4, 6, 1]);
        close(&staged(&x), &grad(network)(&x).to_vec::<f64>()?);
    }
    let spectrum = |x: &Array| fft::irfft(&(fft::rfft(x) * 2.0)).square().sum();
    let staged = jit(grad(spectrum)).symbolic("f64[B, 8]");
    for batch in [1_usize, 4] {
        let x = Array::arange(0.0_f64, (8 * batch) as f64, 1.0).sin().reshape([batch, 8]);
        // Twice the signal, squared: 4 x², whose derivative is 8 x.
        close(&staged(&x), &(&x * 8.0).to_vec::<f64>()?);
    }
    assert_eq!(staged.stats().compiles, 1);
    Ok(())
}

#[test]
fn batches_of_images_and_of_kernels_are_what_loops_give() -> Result<()> {
    let conv = |x: &Array, w: &Array| nn::conv("NWC,WIO->NWC", x, w, Conv::default().same().strides([2]));
    let x = (Array::arange(0.0_f64, 60.0, 1.0) * 0.3).sin().reshape([3, 2, 5, 2]);
    let w = (Array::arange(0.0_f64, 36.0, 1.0) * 0.9).cos().reshape([3, 3, 2, 2]);
    let each = |i: usize| conv(&x.index(i), &w.index(i));
    let loops = Array::stack([each(0), each(1), each(2)], 0);
    close(&jit(vmap(conv))(&x, &w), &loops.to_vec::<f64>()?);
    Ok(())
}

/// Compiled, windows that are many are copied together in blocks; the interpreter has them all.
#[test]
fn large_images_are_the_same_compiled() -> Result<()> {
    let numbers = |n: usize, by: f64| (Array::arange(0.0_f64, n as f64, 1.0) * by).sin();
    let x = numbers(2 * 20 * 21 * 8, 0.37).reshape([2, 20, 21, 8]);
    let w = numbers(3 * 3 * 8 * 16, 0.73).reshape([3, 3, 8, 16]);
    for (stride, dilation) in [(1, 1), (2, 1), (1, 2)] {
        let conv = move |x: &Array, w: &Array| {
            let options = Conv::default().strides([stride, stride]).dilation([dilation, 1]).same();
            nn::conv("NHWC,HWIO->NHWC", x, w, options)
        };
        close(&jit(conv)(&x, &w), &conv(&x, &w).to_vec::<f64>()?);
        let loss = move |x: &Array, w: &Array| conv(x, w).square().sum();
        let (have, want) = (jit(grad_all(loss))(&x, &w), grad_all(loss)(&x, &w));
        close(&have.0, &want.0.to_vec::<f64>()?);
        close(&have.1, &want.1.to_vec::<f64>()?);
    }
    let each = |x: &Array, w: &Array| nn::conv("NHWC,HWIO->NHWC", x, w, Conv::default().groups(8));
    let w = numbers(3 * 3 * 16, 0.91).reshape([3, 3, 1, 16]);
    close(&jit(each)(&x, &w), &each(&x, &w).to_vec::<f64>()?);
    let pooled = |x: &Array| nn::max_pool("NHWC", x, Pool::window([3, 2]).strides([2, 2]).same()).powi(3).sum();
    close(&jit(grad(pooled))(&x), &grad(pooled)(&x).to_vec::<f64>()?);
    Ok(())
}

/// Sums of products go in another order in the library; whoever compares knows that a convolution is such a sum.
#[test]
fn verified_calls_agree_up_to_rounding() -> Result<()> {
    let loss = |x: &Array, w: &Array| {
        let y = nn::conv("NHWC,HWIO->NHWC", x, w, Conv::default().same());
        let pooled = nn::avg_pool("NHWC", &y, Pool::window([2, 2]));
        (fft::rfft(&pooled).abs().square()).sum() + y.sum()
    };
    let x = (Array::arange(0.0_f32, 144.0, 1.0) * 0.37).sin().reshape([2, 6, 6, 2]);
    let w = (Array::arange(0.0_f32, 72.0, 1.0) * 0.73).cos().reshape([3, 3, 2, 4]);
    let (x_bar, w_bar) = jit(grad_all(loss)).verify()(&x, &w);
    assert_eq!((x_bar.ok()?.shape(), w_bar.ok()?.shape()), (x.shape(), w.shape()));
    Ok(())
}

/// Where no window reaches, the signal is not in the spectra.
#[test]
fn frames_that_do_not_cover_the_signal_are_refused() -> Result<()> {
    let x = (Array::arange(0.0_f64, 64.0, 1.0) * 0.3).sin();
    for frames in [Stft::new(8).hop(8), Stft::new(8).hop(11), Stft::new(8).hop(9).window(&Array::ones::<f64>([8]))] {
        for e in [frames.istft(&frames.stft(&x)), jit(|x: &Array| frames.istft(&frames.stft(x)))(&x)] {
            let e = e.ok().expect_err("an error");
            assert_eq!(e.kind(), ErrorKind::Value, "{e}");
            let e = e.to_string();
            assert!(e.contains("8 elements") && e.contains("hop") && e.contains("library_signals.rs"), "{e}");
        }
    }
    // A window without a taper covers what stands side by side; a small one counts as much as a large one.
    for frames in
        [Stft::new(8).hop(8).window(&Array::ones::<f64>([8])), Stft::new(8).hop(2).window(&Array::full([8], 1e-7_f64))]
    {
        close(&frames.istft(&frames.stft(&x)), &x.to_vec::<f64>()?);
    }
    Ok(())
}

/// What is wrong is said in the letters and the sizes that the user wrote, not in those of the operation.
#[test]
fn layouts_that_do_not_fit_are_named_as_they_were_written() {
    let x = Array::ones::<f32>([1, 3, 8, 9]);
    let conv = |layout: &str, w: [usize; 4], options: Conv| {
        let e = nn::conv(layout, &x, &Array::ones::<f32>(w), options).ok().expect_err("an error").to_string();
        assert!(e.contains("library_signals.rs") && e.contains(&format!("{layout:?}")), "{e}");
        assert!(e.contains("f32[1,3,8,9]") && e.contains(&format!("f32[{},{},{},{}]", w[0], w[1], w[2], w[3])), "{e}");
        assert!(!e.contains("f32[1,8,9,3]"), "{e}");
        e
    };
    let e = conv("NCHW,OIHW->NCHW", [4, 2, 3, 3], Conv::default());
    assert!(e.contains("3 features along `C`") && e.contains("takes 2 along `I`"), "{e}");
    let e = conv("NCHW,OIHW->NCHW", [4, 3, 3, 11], Conv::default());
    assert!(e.contains("11 elements along `W`") && e.contains("has 9 there"), "{e}");
    let rank = nn::conv("NCW,OIW->NCW", &x, &x, Conv::default()).ok().expect_err("an error").to_string();
    assert!(rank.contains("\"NCW\" in the layout \"NCW,OIW->NCW\" says 3 axes for the image"), "{rank}");
    says(nn::conv("NCHW,OIHW->NCHW", &x, &x, Conv::default().strides([1])), "1 stride for 2 axes");
    says(nn::max_pool("NCHW", &x, Pool::window([2])), "a window of 1 size for 2 axes");
    let e =
        nn::conv("NCHW,OIHW->NCHW", &x, &x, Conv::default().padding([(-5, -5), (0, 0)])).ok().expect_err("an error");
    assert!(e.to_string().contains("f32[1,3,8,9]"), "{e}");
}

/// Strides, padding and dilations are in the order of the kernel's letters. Numbers of `jax.lax.conv_general_dilated` and `conv_transpose`.
#[test]
fn what_is_said_of_each_axis_follows_the_letters_of_the_kernel() {
    let image = Array::arange(0.0_f64, 20.0, 1.0).reshape([1, 4, 5, 1]);
    let kernel = Array::arange(1.0_f64, 7.0, 1.0).reshape([3, 2, 1, 1]);
    let holes = Conv::default().strides([2, 1]).padding([(0, 0), (2, 1)]).dilation([1, 2]);
    let same = Conv::default().strides([2, 1]).same();
    let upright = [16.0, 40.0, 76.0, 100.0, 149.0, 191.0, 254.0, 296.0, 103.0, 121.0];
    let turned = [16.0, 76.0, 149.0, 254.0, 103.0, 40.0, 100.0, 191.0, 296.0, 121.0];
    for (layout, shape, numbers) in [
        ("NHWC,WHIO->NHWC", [1, 5, 2, 1], &upright[..]),
        ("NHWC,HWIO->NHWC", [1, 1, 6, 1], &[80.0, 92.0, 169.0, 190.0, 211.0, 92.0]),
        ("NWHC,HWIO->NHWC", [1, 2, 5, 1], &turned),
        ("NHWC,HWIO->NWHC", [1, 6, 1, 1], &[80.0, 92.0, 169.0, 190.0, 211.0, 92.0]),
    ] {
        let y = nn::conv(layout, &image, &kernel, holes.clone());
        assert_eq!(y.shape(), shape, "{layout}");
        close(&y, numbers);
    }
    let y = nn::conv("NHWC,WHIO->NHWC", &image, &kernel, same.clone());
    assert_eq!(y.shape(), [1, 4, 3, 1]);
    close(&y, &[61.0, 110.0, 67.0, 151.0, 215.0, 117.0, 241.0, 320.0, 167.0, 125.0, 157.0, 75.0]);
    let y = nn::conv_transpose("NHWC,WHIO->NHWC", &image, &kernel, Conv::default().strides([2, 1]));
    assert_eq!(y.shape(), [1, 5, 11, 1]);
    close(&y.index((0, 0, ..6, 0)), &[0.0, 0.0, 6.0, 4.0, 14.0, 8.0]);
}

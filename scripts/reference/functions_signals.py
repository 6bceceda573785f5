"""Functions for `functions.py`: Fourier transforms, convolutions, windows. What JAX does not have (cosine transforms of the types 1, 3 and 4) is written as
the sum that defines it."""

import jax
import jax.numpy as jnp
import jax.scipy.fft
import jax.scipy.signal
import numpy as np
from jax import lax

from registry import Functions, normal

functions = Functions()


def parts(z):
    return jnp.concatenate([z.real.reshape(-1), z.imag.reshape(-1)])


# Fourier transforms.


@functions(normal(300, 7))
def fft_of_reals(x):
    return parts(jnp.fft.fft(x))


@functions(normal(301, 6), normal(302, 6))
def fft_power(x, y):
    return jnp.sum(jnp.abs(jnp.fft.fft(x + 1j * y)) ** 3 * jnp.arange(6.0))


@functions(normal(303, 2, 5), normal(304, 2, 5))
def ifft_ortho(x, y):
    return parts(jnp.fft.ifft(x + 1j * y, norm="ortho"))


@functions(normal(305, 3, 3))
def fft_along_the_first_axis(x):
    return parts(jnp.fft.fft(x, n=5, axis=0, norm="forward"))


@functions(normal(306, 9))
def rfft_cropped(x):
    return parts(jnp.fft.rfft(x, n=6))


@functions(normal(307, 5))
def rfft_power(x):
    return jnp.sum(jnp.abs(jnp.fft.rfft(x)) ** 2 * jnp.array([1.0, -2.0, 0.5]))


@functions(normal(308, 4), normal(309, 4))
def irfft_even(x, y):
    return jnp.fft.irfft(x + 1j * y)


@functions(normal(310, 4), normal(311, 4))
def irfft_odd(x, y):
    return jnp.fft.irfft(x + 1j * y, n=7, norm="ortho")


@functions(normal(312, 3, 4))
def fft2_log(x):
    return jnp.sum(jnp.log(1.0 + jnp.abs(jnp.fft.fft2(x)) ** 2))


@functions(normal(313, 3, 2), normal(314, 3, 2))
def ifft2_forward(x, y):
    return parts(jnp.fft.ifft2(x + 1j * y, norm="forward"))


@functions(normal(315, 3, 4))
def rfft2_parts(x):
    return parts(jnp.fft.rfft2(x))


@functions(normal(316, 3, 3), normal(317, 3, 3))
def irfft2_even(x, y):
    return jnp.fft.irfft2(x + 1j * y)


@functions(normal(318, 2, 3, 2))
def fftn_all(x):
    return parts(jnp.fft.fftn(x, norm="ortho"))


@functions(normal(319, 2, 3, 2))
def ifftn_two_axes(x):
    return parts(jnp.fft.ifftn(x, axes=(2, 0)))


@functions(normal(320, 2, 3, 4))
def rfftn_power(x):
    return jnp.sum(jnp.abs(jnp.fft.rfftn(x)) ** 4) / 1000.0


@functions(normal(321, 2, 3, 2), normal(322, 2, 3, 2))
def irfftn_lengths(x, y):
    return jnp.fft.irfftn(x + 1j * y, s=(2, 2, 3))


@functions(normal(323, 4), normal(324, 4))
def hfft_plain(x, y):
    return jnp.fft.hfft(x + 1j * y)


@functions(normal(325, 5))
def ihfft_plain(x):
    return parts(jnp.fft.ihfft(x, norm="ortho"))


@functions(normal(326, 2, 5))
def shifted(x):
    return jnp.fft.fftshift(x) * 2.0 + jnp.fft.ifftshift(x, axes=1)


@functions(normal(327, 1))
def frequencies(x):
    return jnp.concatenate([jnp.fft.fftfreq(5, 0.5), jnp.fft.fftfreq(4, 2.0), jnp.fft.rfftfreq(5, 0.1)]) * x


@functions(normal(328, 2, 6))
def dct_plain(x):
    return jax.scipy.fft.dct(x)


@functions(normal(329, 5, 2))
def dct_ortho(x):
    return jax.scipy.fft.dct(x, axis=0, norm="ortho")


@functions(normal(330, 6))
def idct_plain(x):
    return jax.scipy.fft.idct(x)


@functions(normal(331, 5))
def idct_ortho(x):
    return jax.scipy.fft.idct(x, norm="ortho")


@functions(normal(332, 5))
def dct_of_the_first_type(x):
    j, k = np.meshgrid(np.arange(5), np.arange(5))
    m = 2.0 * np.cos(np.pi * k * j / 4)
    m[:, 0], m[:, 4] = 1.0, (-1.0) ** np.arange(5)
    return jnp.asarray(m) @ x


@functions(normal(333, 5))
def dct_of_the_third_type(x):
    j, k = np.meshgrid(np.arange(5), np.arange(5))
    m = 2.0 * np.cos(np.pi * (2 * k + 1) * j / 10)
    m[:, 0] = 1.0
    return jnp.asarray(m) @ x


@functions(normal(334, 5))
def dct_of_the_fourth_type(x):
    j, k = np.meshgrid(np.arange(5), np.arange(5))
    return jnp.asarray(2.0 * np.cos(np.pi * (2 * k + 1) * (2 * j + 1) / 20)) @ x


# Convolution and correlation of signals.


@functions(normal(340, 6), normal(341, 3))
def convolve_full(x, y):
    return jax.scipy.signal.convolve(x, y)


@functions(normal(342, 6), normal(343, 4))
def convolve_same(x, y):
    return jax.scipy.signal.convolve(x, y, mode="same")


@functions(normal(344, 3), normal(345, 6))
def convolve_valid(x, y):
    return jax.scipy.signal.convolve(x, y, mode="valid")


@functions(normal(346, 3, 4), normal(347, 2, 3))
def convolve_images(x, y):
    return jnp.sum(jax.scipy.signal.convolve(x, y, mode="same") ** 3)


@functions(normal(348, 6), normal(349, 3))
def correlate_full(x, y):
    return jax.scipy.signal.correlate(x, y)


@functions(normal(350, 5), normal(351, 5))
def correlate_complex(x, y):
    return parts(jax.scipy.signal.correlate(x + 1j * y, y - 2j * x, mode="same"))


@functions(normal(352, 2), normal(353, 5))
def correlate_valid(x, y):
    # By the sum that defines it: the smaller one is the first.
    return jnp.convolve(y[::-1], x, mode="valid")


@functions(normal(354, 7), normal(355, 4))
def fft_convolution(x, y):
    return jax.scipy.signal.fftconvolve(x, y)


@functions(normal(356, 5, 3), normal(357, 2, 3))
def fft_convolution_valid(x, y):
    return jax.scipy.signal.fftconvolve(x, y, mode="valid")


@functions(normal(358, 18))
def stft_parts(x):
    return jnp.sum(jnp.sin(5.0 * parts(jax.scipy.signal.stft(x, nperseg=8, noverlap=5)[2])))


@functions(normal(359, 5, 6), normal(360, 5, 6))
def istft_of(x, y):
    return jax.scipy.signal.istft(x + 1j * y, nperseg=8, noverlap=6)[1]


# Convolutions of networks.


def conv(x, w, layout, strides, padding, **more):
    return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=layout, **more)


NHWC = ("NHWC", "HWIO", "NHWC")


@functions(normal(370, 1, 5, 4, 2), normal(371, 3, 2, 2, 3))
def conv_strided_same(x, w):
    return jnp.sum(jnp.sin(conv(x, w, NHWC, (2, 1), "SAME")))


@functions(normal(372, 2, 2, 4, 3), normal(373, 3, 2, 2, 2))
def conv_channels_first(x, w):
    return jnp.sum(conv(x, w, ("NCHW", "OIHW", "NCHW"), (1, 2), "VALID") ** 2)


@functions(normal(374, 2, 6, 2), normal(375, 2, 2, 3))
def conv_along_one_axis(x, w):
    return jnp.sum(conv(x, w, ("NWC", "WIO", "NWC"), (1,), [(2, -1)], rhs_dilation=(2,), lhs_dilation=(3,)) ** 3) / 10.0


@functions(normal(376, 1, 3, 2, 3, 1), normal(377, 2, 2, 2, 1, 2))
def conv_along_three_axes(x, w):
    return jnp.sum(jnp.tanh(conv(x, w, ("NDHWC", "DHWIO", "NDHWC"), (1, 1, 2), "SAME")))


@functions(normal(378, 1, 4, 3, 4), normal(379, 2, 2, 2, 6))
def conv_in_groups(x, w):
    return jnp.sum(conv(x, w, NHWC, (1, 1), "SAME", feature_group_count=2) ** 2)


@functions(normal(380, 1, 4, 4, 3), normal(381, 3, 3, 1, 6))
def conv_of_each_feature(x, w):
    return jnp.sum(jnp.sin(conv(x, w, NHWC, (2, 2), "SAME", feature_group_count=3)))


@functions(normal(382, 4, 3, 3, 2), normal(383, 2, 2, 2, 4))
def conv_in_batch_groups(x, w):
    return jnp.sum(conv(x, w, NHWC, (1, 1), "VALID", batch_group_count=2) ** 2)


@functions(normal(384, 1, 3, 2, 2), normal(385, 3, 3, 2, 2))
def conv_transposed_same(x, w):
    return jnp.sum(jnp.sin(lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=NHWC)))


@functions(normal(386, 1, 3, 2, 2), normal(387, 2, 3, 2, 1))
def conv_transposed_valid(x, w):
    return jnp.sum(jnp.sin(lax.conv_transpose(x, w, (3, 1), "VALID", dimension_numbers=NHWC)))


@functions(normal(388, 1, 3, 3, 1), normal(389, 2, 2, 1, 1))
def conv_transposed_dilated(x, w):
    return lax.conv_transpose(x, w, (2, 1), "VALID", rhs_dilation=(1, 2), dimension_numbers=NHWC)


@functions(normal(390, 1, 6, 6, 1), normal(391, 3, 3, 1, 2), normal(392, 8, 3))
def convolutional_network(x, w, v):
    y = jax.nn.relu(conv(x, w, NHWC, (1, 1), "VALID"))
    y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return jax.nn.logsumexp(y.reshape(-1) @ v)


# Windows.


@functions(normal(395, 1, 5, 4, 2))
def max_pool_overlapping(x):
    return jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 2, 1), (1, 2, 1, 1), "SAME") ** 2)


@functions(np.array([[1.0, 1.0, 0.5, 0.0, 0.0, 0.0]]))
def max_pool_of_equals(x):
    return jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (1, 3), (1, 1), "VALID") * jnp.arange(1.0, 5.0))


@functions(normal(396, 2, 5, 1))
def avg_pool_same(x):
    total = lax.reduce_window(x, 0.0, lax.add, (1, 3, 1), (1, 2, 1), "SAME")
    count = lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, (1, 3, 1), (1, 2, 1), "SAME")
    return jnp.sum(jnp.exp(total / count))


@functions(normal(397, 2, 2, 4))
def avg_pool_counting(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 1, 2), (1, 1, 2), [(0, 0), (0, 0), (1, 1)]) / 2.0


@functions(normal(398, 7))
def window_sums(x):
    return lax.reduce_window(x, 0.0, lax.add, (3,), (2,), [(1, 2)], window_dilation=(2,), base_dilation=(2,))


@functions(normal(399, 4, 4))
def window_minima(x):
    return jnp.sum(lax.reduce_window(x, jnp.inf, lax.min, (2, 2), (1, 2), "VALID") ** 3)


@functions(normal(400, 6))
def window_products(x):
    return jnp.sum(jnp.sin(x[:-2] * x[1:-1] * x[2:]))

"""Functions for `functions.py`: elementwise chains, reductions, indexing and moving, products, complex numbers."""

import jax
import jax.numpy as jnp
import jax.scipy.special as special
import jax.scipy.stats as stats
import numpy as np
from jax import lax

from registry import Functions, ints, n, normal, v

functions = Functions()

WIDE = v(0.3, -1.2, 2.5, -0.7, 1.9)
POSITIVE = v(0.3, 1.2, 2.5, 0.7, 4.1)
UNIT = v(0.3, -0.2, 0.75, -0.9, 0.05)
TABLE = v([0.3, -1.2, 2.5, 0.8], [-0.7, 1.9, 0.4, -1.6], [1.1, 0.6, -0.2, 3.3])


# Elementwise.


@functions(WIDE)
def exp_log(x):
    return jnp.sum(jnp.log(1 + jnp.exp(x) * x**2))


@functions(WIDE)
def expm1_log1p(x):
    return jnp.sum(jnp.expm1(x) * jnp.log1p(x**2))


@functions(POSITIVE)
def roots(x):
    return jnp.sum(jnp.sqrt(x) * jnp.cbrt(x + 1) + lax.rsqrt(x))


@functions(WIDE)
def trigonometric(x):
    return jnp.sum(jnp.sin(x) * jnp.cos(2 * x) + jnp.tan(x / 3))


@functions(UNIT)
def inverse_trigonometric(x):
    return jnp.sum(jnp.arcsin(x) * jnp.arccos(x) + jnp.arctan(3 * x))


@functions(WIDE)
def hyperbolic(x):
    return jnp.sum(jnp.sinh(x) / jnp.cosh(x / 2) - jnp.tanh(x))


@functions(UNIT)
def inverse_hyperbolic(x):
    return jnp.sum(jnp.arcsinh(x) + jnp.arccosh(x + 2.5) * jnp.arctanh(x))


@functions(WIDE)
def logistic(x):
    return jnp.sum(jax.nn.sigmoid(x) * (1 - jax.nn.sigmoid(2 * x)))


@functions(v(0.3, -40.0, 50.0, -0.7, 1.3))
def softplus(x):
    return jnp.sum(jax.nn.softplus(x))


@functions(WIDE)
def silu(x):
    return jax.nn.silu(x)


@functions(WIDE)
def mish(x):
    return jnp.sum(jax.nn.mish(x))


@functions(v(0.3, -1.2, 2.5, -0.7, 1.9))
def elu(x):
    return jnp.sum(jax.nn.elu(x) ** 2)


@functions(WIDE)
def error_functions(x):
    return jnp.sum(special.erf(x) * special.erfc(x / 2))


@functions(UNIT)
def erf_inv(x):
    return jnp.sum(special.erfinv(x) ** 2)


@functions(WIDE)
def gelu(x):
    return jnp.sum(jax.nn.gelu(x, approximate=False))


@functions(WIDE)
def gelu_tanh(x):
    return jnp.sum(jax.nn.gelu(x, approximate=True))


@functions(POSITIVE)
def gamma_functions(x):
    return jnp.sum(special.gammaln(x) * special.digamma(x))


@functions(v(0.8, 1.7, 3.2))
def trigamma(x):
    return jnp.sum(special.polygamma(1, x) * x)


@functions(v(1.5, 2.2, 0.7), v(0.9, 3.1, 1.4))
def log_beta(a, b):
    return jnp.sum(special.betaln(a, b))


@functions(POSITIVE, v(1.5, -0.5, 2.0, 0.3, 3.0))
def powers(x, y):
    return jnp.sum(x**y)


@functions(v(0.4, 1.3, 2.1))
def power_tower(x):
    return jnp.sum(x ** (x**x))


@functions(WIDE)
def whole_powers(x):
    return jnp.sum(x**5 - 3 * x**3 + x**-2)


@functions(v(0.3, -1.2, 2.5, -0.7), v(1.1, 0.4, -0.6, -2.0))
def atan2(y, x):
    return jnp.sum(jnp.arctan2(y, x) ** 2)


@functions(v(0.3, -1.2, 2.5), v(1.1, 0.4, -0.6))
def hypot(x, y):
    return jnp.sum(jnp.hypot(x, y))


@functions(POSITIVE)
def other_bases(x):
    return jnp.sum(jnp.log2(x) * jnp.log10(x + 1) + jnp.exp2(x))


@functions(WIDE)
def absolute(x):
    return jnp.sum(jnp.abs(x) ** 1.5 * jnp.sign(x))


@functions(v(0.3, -1.2, 2.6, -0.7))
def rounding(x):
    return jnp.sum(x * (jnp.floor(x) + 2 * jnp.ceil(x) + 3 * jnp.round(x) + 4 * jnp.trunc(x)))


@functions(v(5.3, -4.2, 2.5), v(1.1, 1.5, -0.6))
def remainder(x, y):
    # The sign of the first operand, as in C; `jnp.remainder` has that of the second.
    return jnp.sum(lax.rem(x, y) * x)


@functions(v(0.3, -40.0, 2.5), v(1.1, 3.0, 2.4))
def logaddexp(a, b):
    return jnp.sum(jnp.logaddexp(a, b))


@functions(v(0.2, 0.7, 0.95))
def logit(x):
    return jnp.sum(special.logit(x) * special.entr(x))


@functions(v(0.4, 1.7, -2.5, -0.1))
def huber(x):
    return jnp.sum(jnp.where(jnp.abs(x) < 1, 0.5 * x**2, jnp.abs(x) - 0.5))


@functions(v(0.4, 0.0, -2.5))
def sinc_with_safe_choice(x):
    safe = jnp.where(x == 0, 1.0, x)
    return jnp.sum(jnp.where(x == 0, 1.0, jnp.sin(safe) / safe) * x)


@functions(v(0.4, 1.7, -2.5, -0.1))
def smoothstep(x):
    t = jnp.clip((x + 1) / 2, 0.0, 1.0)
    return jnp.sum(t * t * (3 - 2 * t))


@functions(v(-3.2, 0.4, 1.7))
def log_normal_cdf(x):
    return jnp.sum(jnp.log(0.5 * special.erfc(-x / np.sqrt(2))))


@functions(v(0.2, 1.4, -0.8), n(3.5))
def student_t(x, df):
    return jnp.sum(stats.t.logpdf(x, df))


# Reductions.


@functions(TABLE)
def sum_of_axis(x):
    return jnp.sum(x * x, axis=1)


@functions(TABLE)
def mean_of_axis(x):
    return jnp.mean(jnp.sin(x), axis=0)


@functions(v(0.3, -1.2, 2.5, 0.8))
def product(x):
    return jnp.prod(x)


@functions(v([0.3, 0.0, 2.5], [-0.7, 1.9, 0.4]))
def product_with_zero(x):
    return jnp.sum(jnp.prod(x, axis=1) ** 2 + jnp.prod(x, axis=1))


@functions(TABLE)
def largest_of_axis(x):
    return jnp.max(x * x, axis=0)


@functions(TABLE)
def range_of_rows(x):
    return jnp.sum((jnp.max(x, axis=1) - jnp.min(x, axis=1)) ** 2)


@functions(WIDE)
def variance(x):
    return jnp.var(x)


@functions(TABLE)
def sample_variance(x):
    return jnp.var(x, axis=(0,), ddof=1)


@functions(TABLE)
def standard_deviation(x):
    return jnp.sum(jnp.std(x, axis=1) ** 3)


@functions(v(0.3, -1.2, 2.5, 700.0, 699.0))
def logsumexp(x):
    return special.logsumexp(x)


@functions(TABLE)
def logsumexp_of_axis(x):
    return special.logsumexp(2 * x, axis=1)


@functions(WIDE)
def norm(x):
    return jnp.linalg.norm(x)


@functions(TABLE)
def norm_of_columns(x):
    return jnp.linalg.norm(x, axis=0)


@functions(WIDE)
def softmax(x):
    return jax.nn.softmax(x)


@functions(v([0.3, -1.2, 2.5], [0.8, 0.1, -0.4]))
def log_softmax(x):
    return jax.nn.log_softmax(x, axis=0)


@functions(WIDE)
def entropy(x):
    p = jax.nn.softmax(x)
    return -jnp.sum(p * jax.nn.log_softmax(x))


@functions(TABLE, ints(2, 0, 3))
def cross_entropy_of_labels(x, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], axis=1))


@functions(TABLE, ints(1, 3, 0))
def cross_entropy_one_hot(x, labels):
    return -jnp.sum(jax.nn.one_hot(labels, 4) * jax.nn.log_softmax(x, axis=-1))


@functions(v(0.3, -1.2, 2.5), v(1.1, 0.4, -0.6))
def kl_divergence(a, b):
    return jnp.sum(special.rel_entr(jax.nn.softmax(a), jax.nn.softmax(b)))


@functions(normal(1, 2, 4), normal(2, 4), normal(3, 4))
def layer_norm(x, scale, shift):
    return jnp.sum(jnp.sin(jax.nn.standardize(x, axis=-1, epsilon=1e-5) * scale + shift))


@functions(normal(4, 2, 4), normal(5, 4))
def rms_norm(x, scale):
    return x * lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale


@functions(normal(6, 5, 2), v(1.0, 0.5), v(0.1, -0.2))
def batch_norm(x, scale, shift):
    y = (x - jnp.mean(x, axis=0)) / jnp.sqrt(jnp.var(x, axis=0) + 1e-3) * scale + shift
    return jnp.sum(y**3)


@functions(WIDE)
def skewness(x):
    d = x - jnp.mean(x)
    return jnp.mean(d**3) / jnp.mean(d**2) ** 1.5


@functions(v(0.3, 1.2, 2.5))
def geometric_mean(x):
    return jnp.exp(jnp.mean(jnp.log(x))) / jnp.mean(1 / x)


@functions(v(0.3, -1.2, 2.5), v(1.1, 0.4, -0.6))
def cosine_similarity(a, b):
    return jnp.dot(a, b) / (jnp.linalg.norm(a) * jnp.linalg.norm(b))


@functions(TABLE)
def largest_by_argmax(x):
    return jnp.sum(jnp.take_along_axis(x, jnp.argmax(x, axis=1, keepdims=True), axis=1) ** 2)


@functions(WIDE)
def cumulative_sum(x):
    return jnp.cumsum(x * x)


@functions(v(0.3, 0.0, 2.5, -0.7))
def cumulative_product(x):
    return jnp.sum(jnp.cumprod(x) * v(1.0, 2.0, 3.0, 4.0))


@functions(v(0.3, -1.2, 2.5, 0.8, 2.7))
def cumulative_extremes(x):
    return lax.cummax(x) + 2 * lax.cummin(x)


@functions(TABLE)
def cumulative_of_axis(x):
    return jnp.sum(jnp.cumsum(x, axis=0) * jnp.cumprod(x, axis=1))


# Indexing, moving and ordering.


@functions(v(0.3, -1.2, 2.5, 0.8, 2.7, 1.4))
def steps(x):
    return jnp.concatenate([x[1:5:2] ** 2, x[::-2], x[-1:]])


@functions(TABLE)
def blocks(x):
    return jnp.sum(x[1:, :2] * x[:2, 2:]) + x[0, -1] * x[2, 1]


@functions(TABLE, ints(2, 0, 2))
def rows_by_number(x, i):
    return jnp.sum(jnp.take(x, i, axis=0) ** 3)


@functions(TABLE, ints(2, 0, 1), ints(1, 3, 1))
def places_by_numbers(x, i, j):
    return x[i, j] ** 2


@functions(WIDE, ints(-1, 7, 0))
def places_outside_are_clipped(x, i):
    return x.at[i].get(mode="clip") ** 2


@functions(v([0.3, -1.2, 2.5], [0.8, 0.1, -0.4]), ints([2, 0], [1, 1]))
def places_of_rows(x, i):
    return jnp.sum(jnp.take_along_axis(x, i, axis=1) * v([1.0, 2.0], [3.0, 4.0]) ** 2)


@functions(WIDE, v(1.5, -0.5, 2.0), ints(3, 1, 3))
def scatter_add(x, y, i):
    return jnp.sum(x.at[i].add(jnp.sin(y)) ** 2)


@functions(WIDE, v(1.5, -0.5), ints(3, 1))
def scatter_set(x, y, i):
    return jnp.sum(x.at[i].set(y * x[0]) ** 3)


@functions(WIDE, v(1.5, -0.5), ints(3, 1))
def scatter_mul(x, y, i):
    return jnp.sum(x.at[i].mul(y, unique_indices=True) ** 2)


@functions(WIDE, v(1.5, -0.5, -3.0), ints(3, 1, 2))
def scatter_max_min(x, y, i):
    return jnp.sum(x.at[i].max(y) ** 2 - x.at[i].min(y) ** 3)


@functions(TABLE, v(1.5, -0.5))
def block_update(x, y):
    return jnp.sum(x.at[1, 1:3].set(y).at[::2, 0].add(y * y) ** 2)


@functions(WIDE, n(1.7))
def marked_places(x, y):
    return jnp.sum(jnp.where(x < 0, y, x) ** 3)


@functions(TABLE, ints(2, 0, 2))
def embedding_bag(x, i):
    return jax.ops.segment_sum(x * x, i, num_segments=3)


@functions(TABLE, np.int64(1), np.int64(2))
def dynamic_slice(x, i, j):
    return lax.dynamic_slice(x, (i, j), (2, 2)) ** 2


@functions(TABLE, v([1.5, -0.5]), np.int64(1), np.int64(3))
def dynamic_update_slice(x, y, i, j):
    # Does not fit at column 3 and is moved inside.
    return jnp.sum(lax.dynamic_update_slice(x, y * x[:1, :2], (i, j)) ** 2)


@functions(v(0.3, -1.2, 2.5, 0.8))
def sort(x):
    return jnp.sort(x) * v(1.0, 2.0, 3.0, 4.0)


@functions(TABLE)
def sort_downwards(x):
    return jnp.sum(jnp.sort(x, axis=1, descending=True) * jnp.arange(12.0).reshape(3, 4))


@functions(v(0.3, -1.2, 2.5, 0.8), v(1.0, 2.0, 3.0, 4.0))
def sort_by_keys(x, y):
    keys, values = lax.sort((x, y), num_keys=1)
    return jnp.sum(jnp.cumsum(values) * keys)


@functions(v(0.3, -1.2, 2.5, 0.8))
def order_by_argsort(x):
    return jnp.sum(x[jnp.argsort(x)] ** 2 * v(1.0, 2.0, 3.0, 4.0))


@functions(TABLE)
def top_k(x):
    values, places = lax.top_k(x, 2)
    return jnp.sum(values * v(1.0, 2.0) * places)


@functions(v(0.3, -1.2, 2.5, 0.8, 1.1))
def median(x):
    return jnp.median(x) ** 2


@functions(v(0.7, 1.3, 2.8), v(0.5, 1.0, 4.0, 2.0))
def linear_interpolation(x, y):
    return jnp.sum(jnp.interp(x, jnp.arange(4.0), y) ** 2)


@functions(v(0.3, -1.2), v([2.5, 0.8], [0.1, 0.2]))
def joining(x, y):
    return jnp.sum(jnp.concatenate([jnp.stack([x, x * x]), y, y.T], axis=1) ** 3)


@functions(WIDE, n(0.4))
def padding(x, value):
    return jnp.sum(jnp.pad(x, (1, 2), constant_values=value) ** 2 * jnp.arange(8.0))


@functions(TABLE)
def crop_and_flip(x):
    return jnp.flip(lax.pad(x, 0.0, ((-1, 0, 0), (1, -2, 0))), 1) ** 2


@functions(WIDE)
def roll(x):
    return jnp.roll(x, 2) * x


@functions(TABLE)
def transposed_and_reshaped(x):
    return jnp.sum(x.T.reshape(3, 4) * x) + jnp.sum(jnp.moveaxis(x.reshape(3, 2, 2), 0, 2)[1] ** 3)


@functions(v(0.3, -1.2, 2.5), v([0.4], [1.5]))
def broadcasting(x, y):
    return jnp.sum(jnp.sin(x + y) * jnp.broadcast_to(x, (2, 3)))


@functions(v(0.3, -1.2, 2.5))
def tiles_and_repeats(x):
    return jnp.tile(x, 2) * jnp.repeat(x, 2)


@functions(v([0.3, -1.2, 2.5], [0.8, 0.1, -0.4], [1.3, 0.6, 0.9]))
def triangles(x):
    return jnp.sum((jnp.tril(x) @ jnp.triu(x, 1)) ** 2) + jnp.sum(jnp.diag(jnp.diagonal(x)) @ x)


@functions(v(0.3, -1.2, 2.5), v(0.1, 0.2, 0.3), np.array([True, False, True]))
def choice(x, y, mask):
    return jnp.sum(jnp.where(mask, x * y, jnp.exp(x)) ** 2)


@functions(v(0.3, -1.2, 2.5, 0.7), v(-1.0, -0.5, 0.0, 0.0), v(1.0, 1.0, 1.5, 1.0))
def clamp(x, low, high):
    return jnp.sum(lax.clamp(low, x, high) ** 2)


@functions(v(0.3, -1.2, 2.5), v(0.5, 1.5))
def grid(x, y):
    a, b = jnp.meshgrid(x, y)
    return jnp.sum(jnp.sin(a * b) * a)


@functions(v(0.3, -1.2, 2.5, 0.8, 1.1), v(0.5, -1.0, 0.25))
def convolution(x, k):
    return jnp.convolve(x, k, mode="valid")


@functions(WIDE)
def differences(x):
    return jnp.sum(jnp.diff(x) ** 2) + jnp.sum(jnp.diff(x, n=2) ** 4)


@functions(WIDE, ints(3, -2, 0, 5, 1))
def mixed_with_integers(x, i):
    return jnp.sum(x**2 * i + jnp.sin(x) / (1 + i * i))


@functions(v(0.3, -1.2, 2.5), v(0.1, 0.2, 0.3).astype(np.float32))
def mixed_with_narrow_floats(x, y):
    return jnp.sum(jnp.sin(x * y))


# Products.


@functions(v(0.3, -1.2, 2.5), v(1.1, 0.4, -0.6))
def dot(a, b):
    return jnp.sin(jnp.dot(a, b))


@functions(v(0.3, -1.2, 2.5), normal(7, 2, 3))
def matrix_vector(x, a):
    return jnp.tanh(a @ x)


@functions(normal(8, 2, 3), normal(9, 3, 2))
def matrix_product(a, b):
    return jnp.sum((a @ b) ** 3)


@functions(normal(10, 2, 2, 3), normal(11, 2, 3, 2))
def batched_product(a, b):
    return jnp.sum(jnp.exp(lax.dot_general(a, b, (([2], [1]), ([0], [0]))) / 4))


@functions(normal(12, 2, 1, 2, 2), normal(13, 3, 2, 2))
def broadcast_product(a, b):
    return jnp.sum(jnp.sin(jnp.matmul(a, b)))


@functions(v(0.3, -1.2), normal(14, 2, 2, 3), v(0.5, 0.1, -0.4))
def bilinear_einsum(x, w, y):
    return jnp.sum(jnp.einsum("i,ijk,k->j", x, w, y) ** 2)


@functions(normal(15, 2, 3, 3))
def diagonal_einsum(x):
    return jnp.einsum("bii,bij->bj", x, x)


@functions(normal(16, 2, 2, 3), normal(17, 3, 2))
def tensordot(a, b):
    return jnp.tensordot(a, b, axes=([2, 1], [0, 1])) ** 2


@functions(v(0.3, -1.2, 2.5), v(1.1, 0.4))
def outer(a, b):
    return jnp.sin(jnp.outer(a, b))


@functions(v([0.3, -1.2], [2.5, 0.8]), v([1.1, 0.4], [-0.6, 0.2]))
def inner_and_trace(a, b):
    return jnp.sum(jnp.inner(a, b) ** 2) + jnp.trace(a @ b @ a)


@functions(v(0.3, -1.2, 2.5), normal(18, 3, 3))
def quadratic_form(x, a):
    return x @ a @ x / (1 + x @ x)


@functions(v([2.3, -0.2, 0.5], [0.8, 1.1, -0.4], [0.3, 0.6, 1.9]))
def determinant(x):
    return jnp.linalg.det(x)


@functions(v([2.3, -0.2], [0.8, 1.1]))
def inverse(x):
    return jnp.linalg.inv(x)


@functions(v(0.3, -1.2, 2.5), v(1.1, 0.4, -0.6))
def cross_product(a, b):
    return jnp.cross(a, b)


@functions(v([0.3, -0.2], [0.5, 0.1]))
def matrix_exponential(x):
    return jax.scipy.linalg.expm(x)


@functions(v([2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.1]), v(1.0, -0.5, 0.25))
def linear_system(a, b):
    return jnp.sum(jnp.linalg.solve(a, b) ** 2)


# Complex numbers on the way, and as arguments.


@functions(v(0.3, -1.2, 2.5), v(1.1, 0.4, -0.6))
def complex_cube(x, y):
    return jnp.sum(jnp.abs(lax.complex(x, y) ** 3 + 1.0))


@functions(v(0.3, -1.2, 2.5))
def complex_phase(x):
    return jnp.sum(jnp.angle(jnp.exp(1j * x) * (1 + 2j)) * x)


@functions(v(0.3, -1.2, 2.5, 0.8))
def power_spectrum(x):
    return jnp.sum(jnp.abs(jnp.fft.fft(x)) ** 2 * v(1.0, 2.0, 3.0, 4.0))


@functions(v(0.3, 1.2), v(0.4, -0.7))
def complex_functions(x, y):
    z = lax.complex(x, y)
    return jnp.sum(jnp.real(jnp.log(z) * jnp.sqrt(z) + jnp.tanh(z)) + jnp.imag(jnp.sin(z) / (z - 3j)))


@functions(v([0.3, -1.2], [2.5, 0.8]))
def unitary_loss(x):
    u = lax.complex(x, x.T)
    return jnp.sum(jnp.abs(u @ u.conj().T - jnp.eye(2)) ** 2)


@functions(np.array([0.3 + 1.1j, -1.2 + 0.4j]))
def complex_argument(z):
    return jnp.sum(jnp.real(z) ** 2 + 3 * jnp.imag(z) + jnp.real(z * z * z))

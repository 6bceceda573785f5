"""Functions for `functions.py`: losses of models, likelihoods, physics, finance, geometry; and places where it is a
convention what the derivative is."""

import jax
import jax.numpy as jnp
import jax.scipy.special as special
import jax.scipy.stats as stats
import numpy as np
from jax import lax

from registry import Functions, ints, n, normal, uniform, v

functions = Functions()


# Models.


@functions(normal(20, 2, 4), normal(21, 4), normal(22, 4, 1), n(0.1), normal(23, 3, 2), normal(24, 3, 1))
def mlp_regression(w1, b1, w2, b2, x, y):
    return jnp.mean((jnp.tanh(x @ w1 + b1) @ w2 + b2 - y) ** 2)


@functions(normal(25, 2, 4), normal(26, 4), normal(27, 4, 3), normal(28, 5, 2), ints(2, 0, 1, 1, 2))
def mlp_classifier(w1, b1, w2, x, labels):
    logits = jax.nn.relu(x @ w1 + b1) @ w2
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(5), labels])


@functions(v(0.3, -1.2, 0.5), n(0.2), normal(29, 6, 3), np.array([1, 0, 0, 1, 1, 0]))
def logistic_regression(w, b, x, y):
    z = x @ w + b
    return -jnp.mean(jnp.where(y == 1, jax.nn.log_sigmoid(z), jax.nn.log_sigmoid(-z)))


@functions(v(0.3, -1.2, 0.5), normal(30, 6, 3), normal(31, 6), n(0.1))
def ridge_regression(w, x, y, strength):
    return jnp.sum((x @ w - y) ** 2) + strength * jnp.sum(w**2)


@functions(normal(32, 3, 4), normal(33, 4, 4), normal(34, 4, 4), normal(35, 4, 4))
def attention(x, wq, wk, wv):
    # `jax.nn.dot_product_attention` takes its softmax in f32.
    q, k, u = x @ wq, x @ wk, x @ wv
    return jnp.sum(jnp.sin(jax.nn.softmax(q @ k.T / 2) @ u))


@functions(normal(36, 2, 3, 4), normal(37, 4, 2, 2), normal(38, 4, 2, 2), normal(39, 4, 2, 2))
def causal_attention_of_heads(x, wq, wk, wv):
    q, k, u = (jnp.einsum("btd,dhe->bhte", x, w) for w in (wq, wk, wv))
    scores = jnp.where(jnp.tri(3, dtype=bool), q @ jnp.swapaxes(k, 2, 3) / jnp.sqrt(2.0), -jnp.inf)
    return jnp.sum((jax.nn.softmax(scores) @ u) ** 2)


@functions(normal(40, 3), normal(41, 3), normal(42, 9, 6), normal(43, 9, 3))
def gru_cell(h, x, wx, wh):
    gx, gh = wx.reshape(3, 3, 6)[:, :, :3] @ x, wh.reshape(3, 3, 3) @ h
    r, z = jax.nn.sigmoid(gx[0] + gh[0]), jax.nn.sigmoid(gx[1] + gh[1])
    return (1 - z) * jnp.tanh(gx[2] + r * gh[2]) + z * h


@functions(normal(44, 2, 2), normal(45, 5, 4))
def convolution_2d(k, image):
    y = lax.conv_general_dilated(image[None, None], k[None, None], (1, 1), "VALID")[0, 0]
    return jnp.sum(jax.nn.softplus(y))


@functions(normal(46, 4, 3), normal(47, 4, 3), n(0.5))
def contrastive_loss(a, b, temperature):
    unit = lambda x: x / jnp.linalg.norm(x, axis=1, keepdims=True)
    logits = unit(a) @ unit(b).T / temperature
    return -jnp.mean(jnp.diagonal(jax.nn.log_softmax(logits, axis=1)))


@functions(normal(48, 3), normal(49, 3), normal(50, 3))
def variational_bound(mean, log_var, eps):
    z = mean + jnp.exp(log_var / 2) * eps
    kl = -0.5 * jnp.sum(1 + log_var - mean**2 - jnp.exp(log_var))
    return jnp.sum(stats.bernoulli.logpmf(1, jax.nn.sigmoid(z))) - kl


@functions(normal(51, 4, 3), ints(0, 2, 1, 2), v(1.0, -0.5, 0.3, 2.0))
def policy_gradient(logits, actions, advantages):
    p = jax.nn.log_softmax(logits)[jnp.arange(4), actions]
    ratio = jnp.exp(p - lax.stop_gradient(p) + v(0.1, -0.4, 0.05, 0.3))
    return -jnp.mean(jnp.minimum(ratio * advantages, jnp.clip(ratio, 0.8, 1.2) * advantages))


# Derivatives and batches inside of functions.


def small_net(w, x):
    return jnp.sum(jnp.tanh(w @ x) ** 2)


@functions(v([0.3, -0.2], [0.5, 0.1], [-0.4, 0.6]), v(0.7, -1.1))
def gradient_penalty(w, x):
    return small_net(w, x) + jnp.sum(jax.grad(small_net, argnums=1)(w, x) ** 2)


@functions(v([0.3, -0.2], [0.5, 0.1]), normal(62, 3, 2))
def per_example_gradients(w, xs):
    return jax.vmap(jax.grad(small_net), in_axes=(None, 0))(w, xs)


@functions(v(0.3, -0.2, 0.5), v(1.0, 2.0, -1.0))
def directional_derivative(x, t):
    return jnp.sum(jax.jvp(lambda x: jnp.sin(x * x[::-1]), (x,), (t,))[1] ** 2)


@functions(v(0.3, -0.2, 0.5), v(1.0, 2.0, -1.0))
def curvature_product(x, t):
    return jax.jvp(jax.grad(lambda x: jnp.prod(jnp.exp(x)) + jnp.sum(x**4)), (x,), (t,))[1]


@functions(v(0.3, -0.2, 0.5))
def laplacian(x):
    return jnp.trace(jax.hessian(lambda x: jnp.sin(x[0]) * jnp.exp(x[1]) * x[2] ** 3)(x))


@functions(v(0.3, -0.2, 0.5))
def log_volume(x):
    jacobian = jax.jacfwd(lambda x: x + 0.3 * jnp.tanh(jnp.roll(x, 1)))(x)
    return jnp.linalg.slogdet(jacobian)[1]


# Likelihoods.


@functions(v(0.3, -0.2), v([1.5, 0.4], [0.4, 0.9]), normal(52, 5, 2))
def gaussian_likelihood(mean, cov, x):
    return jnp.sum(stats.multivariate_normal.logpdf(x, mean, cov))


@functions(v(0.2, -0.4, 0.1), v(-0.5, 0.7), v(0.1, 0.3), normal(53, 6))
def mixture_likelihood(logits, means, log_scales, x):
    parts = stats.norm.logpdf(x[:, None], means, jnp.exp(log_scales)) + jax.nn.log_softmax(logits[:2])
    return jnp.sum(special.logsumexp(parts, axis=1)) + logits[2] ** 2


@functions(v(0.3, -0.2), normal(54, 5, 2), ints(0, 2, 1, 4, 1))
def poisson_regression(w, x, y):
    return -jnp.sum(stats.poisson.logpmf(y, jnp.exp(x @ w)))


@functions(v(2.2, 1.3), uniform(55, 5, low=0.1, high=3.0))
def gamma_likelihood(p, x):
    return jnp.sum(stats.gamma.logpdf(x, p[0], scale=1 / p[1]))


@functions(v(2.2, 1.3), uniform(56, 5, low=0.1, high=0.9))
def beta_likelihood(p, x):
    return jnp.sum(stats.beta.logpdf(x, p[0], p[1]))


@functions(v(0.5, 1.5, 0.8), v(0.2, 0.5, 0.3))
def dirichlet(a, p):
    return stats.dirichlet.logpdf(p, a)


@functions(v(0.3, -0.5, 1.1), normal(57, 4, 2), normal(58, 4))
def gaussian_process(p, x, y):
    d = jnp.sum((x[:, None] - x[None]) ** 2, axis=2)
    k = jnp.exp(2 * p[0] - 0.5 * d * jnp.exp(-2 * p[1]))
    return 0.5 * jnp.sum(y * (k @ y)) + jnp.trace(k) * p[2]


# Test functions of optimization.


@functions(v(-1.2, 1.0, 0.8, 0.5))
def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@functions(v(1.3, -0.7))
def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


@functions(v(0.3, -1.2, 2.5))
def ackley(x):
    return (
        -20 * jnp.exp(-0.2 * jnp.sqrt(jnp.mean(x**2))) - jnp.exp(jnp.mean(jnp.cos(2 * jnp.pi * x))) + 20 + jnp.exp(1.0)
    )


@functions(v(0.3, -1.2, 2.5))
def rastrigin(x):
    return 10 * x.size + jnp.sum(x**2 - 10 * jnp.cos(2 * jnp.pi * x))


# Physics.


@functions(v(0.7, -0.3), v(1.2, 0.8))
def pendulum_energy(state, p):
    angle, momentum = state
    mass, length = p
    return momentum**2 / (2 * mass * length**2) + mass * 9.81 * length * (1 - jnp.cos(angle))


@functions(v(0.7, -0.3), v(1.2, 0.8))
def double_pendulum_lagrangian(q, w):
    kinetic = w[0] ** 2 + 0.5 * w[1] ** 2 + w[0] * w[1] * jnp.cos(q[0] - q[1])
    return kinetic + 9.81 * (2 * jnp.cos(q[0]) + jnp.cos(q[1]))


@functions(normal(59, 4, 3), v(1.0, 2.0, 0.5, 1.5))
def gravity(x, mass):
    i, j = np.triu_indices(4, 1)
    return -jnp.sum(mass[i] * mass[j] / jnp.linalg.norm(x[i] - x[j], axis=1))


@functions(v([0.0, 0.0], [1.1, 0.2], [0.4, 1.3]))
def lennard_jones(x):
    i, j = np.triu_indices(3, 1)
    r2 = jnp.sum((x[i] - x[j]) ** 2, axis=1)
    return jnp.sum(4 * (r2**-6 - r2**-3))


@functions(v(0.3, -0.5, 0.8), v(1.0, 0.5))
def springs(x, k):
    stretch = jnp.abs(jnp.diff(x)) - 0.5
    return 0.5 * jnp.sum(k * stretch**2)


@functions(v(0.1, 0.5, 0.9, 0.4, 0.2), n(0.3))
def heat_steps(u, rate):
    for _ in range(3):
        u = u + rate * (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1))
    return u


@functions(v(0.9, 0.4), v(1.1, 0.4, 0.1, 0.4))
def predator_and_prey(state, p):
    x, y = state
    for _ in range(5):
        x, y = x + 0.1 * (p[0] * x - p[1] * x * y), y + 0.1 * (p[2] * x * y - p[3] * y)
    return jnp.log(x) * y


@functions(v(1.0, 0.0, 0.0, 1.1))
def kepler_energy(s):
    return 0.5 * (s[2] ** 2 + s[3] ** 2) - 1 / jnp.hypot(s[0], s[1]) + 0.1 * (s[0] * s[3] - s[1] * s[2])


@functions(v(0.4, -0.2, 0.9))
def ising_free_energy(field):
    spins = v([1, 1, 1], [1, 1, -1], [1, -1, 1], [1, -1, -1], [-1, 1, 1], [-1, 1, -1], [-1, -1, 1], [-1, -1, -1])
    energy = spins[:, 0] * spins[:, 1] + spins[:, 1] * spins[:, 2] + spins @ field
    return special.logsumexp(energy)


# Finance.


@functions(v(100.0, 105.0, 0.02, 0.25, 0.75))
def black_scholes_call(p):
    # The gradient is delta, -, rho, vega and minus theta; gamma, vanna and the rest are the second derivatives.
    s, k, r, sigma, t = p
    d1 = (jnp.log(s / k) + (r + sigma**2 / 2) * t) / (sigma * jnp.sqrt(t))
    return s * stats.norm.cdf(d1) - k * jnp.exp(-r * t) * stats.norm.cdf(d1 - sigma * jnp.sqrt(t))


@functions(v(0.05, 0.02), v(10.0, 20.0, 110.0))
def bond_price(curve, payments):
    years = jnp.arange(1.0, 4.0)
    return jnp.sum(payments * jnp.exp(-(curve[0] + curve[1] * jnp.sqrt(years)) * years))


@functions(v(0.3, 0.5, -0.1), normal(60, 6, 3) / 10)
def sharpe_ratio(w, returns):
    r = returns @ jax.nn.softmax(w)
    return jnp.mean(r) / jnp.std(r, ddof=1)


# Geometry.


def hamilton(a, b):
    (w, x, y, z), (p, q, r, s) = a, b
    return jnp.stack(
        [
            w * p - x * q - y * r - z * s,
            w * q + x * p + y * s - z * r,
            w * r - x * s + y * p + z * q,
            w * s + x * r - y * q + z * p,
        ]
    )


@functions(v(0.8, 0.1, -0.4, 0.3), v(0.5, -1.0, 2.0))
def rotation_by_quaternion(q, p):
    w, x, y, z = q / jnp.linalg.norm(q)
    return (
        jnp.stack(
            [
                jnp.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)]),
                jnp.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)]),
                jnp.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]),
            ]
        )
        @ p
    )


@functions(v(0.8, 0.1, -0.4, 0.3), v(0.2, 0.9, 0.1, -0.3))
def chain_of_quaternions(a, b):
    c = hamilton(hamilton(a, b), a)
    return jnp.arccos(c[0] / jnp.linalg.norm(c)) + c[1] * c[3]


@functions(v(0.3, -0.6, 1.1))
def robot_arm(angles):
    total = jnp.cumsum(angles)
    length = v(1.0, 0.7, 0.4)
    return jnp.array([jnp.sum(length * jnp.cos(total)), jnp.sum(length * jnp.sin(total)), total[-1]])


@functions(v(2.0, 0.7, -1.1))
def spherical_coordinates(p):
    r, theta, phi = p
    return r * jnp.stack([jnp.sin(theta) * jnp.cos(phi), jnp.sin(theta) * jnp.sin(phi), jnp.cos(theta)])


@functions(v(0.2, -0.1, 0.3, 0.5, 0.1, 4.0), normal(61, 4, 3))
def camera_projection(pose, points):
    # Rodrigues' formula.
    r, t = pose[:3], pose[3:]
    angle = jnp.linalg.norm(r)
    k = r / angle
    turned = (
        points * jnp.cos(angle)
        + jnp.cross(k, points) * jnp.sin(angle)
        + jnp.outer(points @ k, k) * (1 - jnp.cos(angle))
        + t
    )
    return turned[:, :2] / turned[:, 2:]


@functions(v(0.9, 0.2, 0.7, -0.4))
def great_circle(p):
    a = jnp.sin((p[2] - p[0]) / 2) ** 2 + jnp.cos(p[0]) * jnp.cos(p[2]) * jnp.sin((p[3] - p[1]) / 2) ** 2
    return 2 * jnp.arcsin(jnp.sqrt(a))


@functions(v([0.0, 0.0], [1.0, 2.0], [3.0, -1.0], [4.0, 0.5]), n(0.3))
def bezier_curve(points, t):
    while len(points) > 1:
        points = points[:-1] * (1 - t) + points[1:] * t
    return jnp.sum(points[0] ** 3)


@functions(v([0.0, 0.0], [2.0, 0.3], [2.5, 1.7], [0.4, 1.2]))
def area_of_polygon(p):
    x, y = p.T
    return 0.5 * jnp.sum(x * jnp.roll(y, -1) - y * jnp.roll(x, -1))


# Kinks, ties, poles: the derivative is a convention, or has no value.


@functions(v(0.0, -1.2, 0.0), kink=True)
def absolute_at_zero(x):
    return jnp.sum(jnp.abs(x) + 2 * jnp.sign(x) * x)


@functions(v(1.0, 2.0, 3.0), v(1.0, 5.0, 3.0), kink=True)
def ties_of_pairs(x, y):
    return jnp.sum(3 * jnp.maximum(x, y) + jnp.minimum(x, y))


@functions(v(2.0, 5.0, 2.0, 5.0, 5.0), kink=True)
def ties_of_extremes(x):
    return 3 * jnp.max(x) + jnp.min(x)


@functions(v(0.0, -1.2))
def softplus_at_zero(x):
    return jnp.sum(jax.nn.softplus(x))


@functions(v(1.0, 1.0, 0.4))
def logsumexp_at_tie(x):
    return special.logsumexp(x)


@functions(v(0.0, -1.2, 2.5), kink=True)
def relu_at_zero(x):
    return jnp.sum(jax.nn.relu(x) * v(1.0, 2.0, 3.0))


@functions(v(-1.0, 0.3, 1.0, 2.0), kink=True)
def clamp_at_bounds(x):
    return jnp.sum(lax.clamp(-1.0, x, 1.0) * v(1.0, 2.0, 3.0, 4.0))


@functions(v(-1.0, 0.3, 1.0, 2.0), kink=True)
def clip_at_bounds(x):
    return jnp.sum(jnp.clip(x, -1.0, 1.0) * v(1.0, 2.0, 3.0, 4.0))


@functions(v(2.0, 1.0, 2.0, 1.0), kink=True)
def ties_of_sort(x):
    return jnp.sum(jnp.sort(x) * v(1.0, 2.0, 3.0, 4.0))


@functions(v(2.0, 1.0, 2.0, 1.0), kink=True)
def ties_of_downward_sort(x):
    return jnp.sum(jnp.sort(x, descending=True) * v(1.0, 2.0, 3.0, 4.0))


@functions(v(2.0, 1.0, 2.0, 1.0), kink=True)
def ties_of_top_k(x):
    values, _ = lax.top_k(x, 3)
    return jnp.sum(values * v(1.0, 2.0, 3.0))


@functions(v(1.0, 2.0, 2.0, 1.0, 3.0), kink=True)
def ties_of_cummax(x):
    return jnp.sum(lax.cummax(x) * v(1.0, 2.0, 3.0, 4.0, 5.0))


@functions(v(1.0, 2.0, 2.0, 1.0), kink=True)
def ties_of_argmax(x):
    return x[jnp.argmax(x)] * 2 + x[jnp.argmin(x)]


@functions(v(0.0, 2.5, 0.0, 1.5))
def product_of_two_zeros(x):
    return jnp.prod(x)


@functions(v(0.0, 2.5, 0.0, 1.5))
def cumulative_product_of_zeros(x):
    return jnp.sum(jnp.cumprod(x) * v(1.0, 2.0, 3.0, 4.0))


@functions(v(0.0, 0.0, 0.0, 2.0), v(2.0, 1.0, 0.0, 0.0), kink=True, modes_differ=True)
def power_at_zero(x, y):
    return jnp.sum(x**y)


@functions(v(0.0, -1.5))
def whole_power_at_zero(x):
    return jnp.sum(x**3 + x**2 + x**1 + x**0)


@functions(v(0.0, 4.0), kink=True, modes_differ=True)
def root_at_zero(x):
    return jnp.sum(jnp.sqrt(x))


@functions(v(0.0, 0.0), kink=True)
def norm_at_zero(x):
    return jnp.linalg.norm(x)


@functions(v(1.5, 1.5, 1.5), kink=True)
def deviation_of_equals(x):
    return jnp.std(x)


@functions(v(-1.0, 4.0), kink=True, modes_differ=True)
def unsafe_choice(x):
    # The root that is not chosen has no derivative, and zero times that is no number.
    return jnp.sum(jnp.where(x > 0, jnp.sqrt(x), 0.0))


@functions(v(0.0, 2.0), kink=True, modes_differ=True)
def logarithm_at_zero(x):
    return jnp.sum(jnp.log(x) * x)


@functions(v(0.3, -np.inf, 1.2))
def softmax_of_minus_infinity(x):
    return jnp.sum(jax.nn.softmax(x) * v(1.0, 2.0, 3.0))


@functions(v(-np.inf, -np.inf), kink=True)
def logsumexp_of_nothing(x):
    return special.logsumexp(x)


@functions(v(0.0, 0.0), kink=True)
def angle_of_nothing(x):
    return jnp.arctan2(x[0], x[1])


@functions(v(0.5, 1.5, 2.0, 2.5), kink=True)
def rounding_at_halves(x):
    return jnp.sum(jnp.round(x) * x + jnp.floor(x) + jnp.ceil(x))


@functions(v(1.0, 2.0, 3.0), v(1.0, 5.0, 3.0), ints(0, 1, 2), kink=True)
def ties_of_scatter_max(x, y, i):
    return jnp.sum(x.at[i].max(y) * v(1.0, 2.0, 3.0))

"""Functions for `functions.py` whose way depends on values, or is repeated; and those with rules of their own."""

import jax
import jax.numpy as jnp
import jax.scipy.special as special
import jax.scipy.stats as stats
import numpy as np
from jax import lax

from registry import Functions, ints, n, normal, v

functions = Functions()


# Branches.


def two_ways(x):
    return lax.cond(jnp.sum(x) > 0, lambda x: jnp.sum(jnp.sin(x) * x), lambda x: jnp.prod(x**2), x)


@functions(v(0.3, -0.2, 0.5))
def branch_if_true(x):
    return two_ways(x)


@functions(v(0.3, -1.2, 0.5))
def branch_if_false(x):
    return two_ways(x)


@functions(v(0.3, -1.2, 0.5), n(0.7))
def branch_with_captures(x, scale):
    # What is captured has derivatives too; one of the two branches does not use it.
    s = jnp.exp(scale)
    a, b = lax.cond(x[0] < scale, lambda x: (x * s, s), lambda x: (-x, x[0]), x)
    return jnp.sum(a**2) * b


@functions(v(0.3, -1.2, 0.5))
def nested_branches(x):
    inner = lambda x: lax.cond(x[1] > 0, jnp.sum, lambda x: jnp.sum(x**3), x)
    return lax.cond(x[0] > 0, lambda x: inner(x) * x[2], lambda x: x[0], x)


@functions(v(0.3, -1.2, 0.5), np.int64(2))
def one_of_three(x, i):
    return lax.switch(i, [jnp.sin, lambda x: x**2, lambda x: jnp.exp(x) * x[::-1]], x)


@functions(v(0.3, -1.2, 0.5), np.int64(7))
def one_beyond_the_last(x, i):
    return jnp.sum(lax.switch(i, [jnp.sin, lambda x: x**2, lambda x: x**4], x))


@functions(v(0.3, -1.2, 0.5, 2.0))
def branch_of_each_element(x):
    return jax.lax.map(lambda x: lax.cond(x > 0.4, lambda x: x**3, lambda x: jnp.sin(x), x), x)


@functions(v(0.3, -1.2, 0.0, 2.0))
def batch_of_branches(x):
    # The root is not taken at zero, so its pole is not met.
    branch = lambda x: lax.cond(x > 0.1, jnp.sqrt, lambda x: 2 * x, x)
    return jax.vmap(branch)(x) ** 2


# Loops whose length follows from values. JAX has forward mode only.


def newton_root(a):
    return lax.while_loop(lambda x: jnp.abs(x * x - a) > 1e-13, lambda x: 0.5 * (x + a / x), jnp.ones(()))


@functions(n(2.0), forward=True)
def square_root_by_newton(a):
    return newton_root(a)


@functions(v(0.3, 2.0, 50.0), forward=True)
def batch_of_square_roots(a):
    return jax.vmap(newton_root)(a)


@functions(v(0.7, 0.4), forward=True)
def exponential_series(p):
    x = p[0] * p[1]

    def step(state):
        k, term, total = state
        return k + 1, term * x / (k + 1), total + term

    return lax.while_loop(lambda s: jnp.abs(s[1]) > 1e-18, step, (0, jnp.ones(()), jnp.zeros(())))[2] * p[1]


@functions(n(13.7), forward=True)
def halving_with_count(x):
    y, count = lax.while_loop(lambda s: s[0] > 1, lambda s: (s[0] / 2, s[1] + 1), (x, 0))
    return y * y * count


@functions(v(0.4, 0.3), v([0.2, -0.1], [0.1, 0.3]), forward=True)
def equilibrium(b, w):
    go_on = lambda s: jnp.max(jnp.abs(s[0] - s[1])) > 1e-9
    z, _ = lax.while_loop(go_on, lambda s: (jnp.tanh(w @ s[0] + b), s[0]), (jnp.zeros(2), jnp.ones(2)))
    return jnp.sum(z**2)


@functions(v(0.3, 0.8), np.int64(6), forward=True)
def loop_to_a_traced_bound(p, n):
    return lax.fori_loop(0, n, lambda i, y: jnp.sin(y * p[0]) + p[1] * i, jnp.ones(()))


# Loops whose length is known.


@functions(v(1.5, -0.4, 0.3, 2.0), n(0.7))
def polynomial_by_horner(c, x):
    return lax.fori_loop(0, 4, lambda i, y: y * x + c[i], jnp.zeros(()))


@functions(v([0.3, -0.5], [0.8, 0.4]))
def matrix_power(a):
    return lax.fori_loop(0, 5, lambda i, m: m @ a, jnp.eye(2))


@functions(v(3.2, 0.3))
def logistic_map(p):
    return lax.fori_loop(0, 8, lambda i, x: p[0] * x * (1 - x), p[1])


@functions(v([2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.1]))
def power_iteration(a):
    def step(i, x):
        y = a @ x
        return y / jnp.linalg.norm(y)

    x = lax.fori_loop(0, 8, step, jnp.ones(3))
    return x @ a @ x


@functions(v(0.1, 0.5, 0.9, 0.4, 0.2), n(0.3))
def heat_by_loop(u, rate):
    return lax.fori_loop(0, 6, lambda i, u: u + rate * (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1)), u)


@functions(v(0.5, 1.2))
def integral_by_simpson(p):
    f = lambda x: jnp.exp(-p[0] * x * x)
    h = p[1] / 16

    def step(i, total):
        x = 2 * h * i
        return total + (f(x) + 4 * f(x + h) + f(x + 2 * h)) * h / 3

    return lax.fori_loop(0, 8, step, jnp.zeros(()))


# Derivatives inside of loops.


def valley(x):
    return (1 - x[0]) ** 2 + 5 * (x[1] - x[0] ** 2) ** 2


@functions(v(-0.4, 0.6), n(0.02))
def gradient_descent(x, rate):
    return valley(lax.fori_loop(0, 10, lambda i, x: x - rate * jax.grad(valley)(x), x))


@functions(v(-0.4, 0.6), v(0.02, 0.9))
def descent_with_momentum(x, p):
    def step(carry, _):
        x, m = carry
        m = p[1] * m + jax.grad(valley)(x)
        return (x - p[0] * m, m), valley(x)

    _, losses = lax.scan(step, (x, jnp.zeros(2)), None, length=6)
    return jnp.sum(losses)


@functions(v(1.3, 0.4))
def newton_with_second_derivatives(p):
    f = lambda x: jnp.cosh(x - p[1]) + 0.1 * x**4 * p[0]
    return lax.fori_loop(0, 5, lambda i, x: x - jax.grad(f)(x) / jax.grad(jax.grad(f))(x), p[0])


@functions(v(0.3, -0.2, 0.5))
def derivative_of_a_scan(x):
    f = lambda x: lax.scan(lambda c, e: (jnp.sin(c * e) + e, c), jnp.ones(()), x)[0]
    return jnp.sum(jax.grad(f)(x) ** 2) + jnp.trace(jax.hessian(f)(x))


# Scans.


@functions(v(0.3, -1.2, 0.5, 2.0))
def sums_by_scan(x):
    return lax.scan(lambda c, e: (c + e * e, c + e * e), jnp.zeros(()), x)[1]


@functions(normal(80, 3), normal(81, 3, 3), normal(82, 3, 2), normal(83, 3), normal(84, 5, 2))
def recurrent_network(h, wh, wx, b, xs):
    def step(h, x):
        h = jnp.tanh(wh @ h + wx @ x + b)
        return h, jnp.sum(h**2)

    last, all = lax.scan(step, h, xs)
    return jnp.sum(last) + jnp.sum(all)


@functions(normal(85, 2), normal(86, 2), normal(87, 8, 2), normal(88, 8, 2), normal(89, 8), normal(90, 4, 2))
def lstm(h, c, wh, wx, b, xs):
    def step(state, x):
        h, c = state
        i, f, g, o = jnp.split(wh @ h + wx @ x + b, 4)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    (_, c), all = lax.scan(step, (h, c), xs)
    return jnp.sum(all**2) + jnp.sum(c)


@functions(v(1.0, 1.0, 1.05), v(10.0, 28.0, 8 / 3))
def lorenz_by_runge_kutta(state, p):
    f = lambda s: jnp.stack([p[0] * (s[1] - s[0]), s[0] * (p[1] - s[2]) - s[1], s[0] * s[1] - p[2] * s[2]])

    def step(s, dt):
        a = f(s)
        b = f(s + dt / 2 * a)
        c = f(s + dt / 2 * b)
        d = f(s + dt * c)
        s = s + dt / 6 * (a + 2 * b + 2 * c + d)
        return s, s[0]

    last, all = lax.scan(step, state, jnp.full(8, 0.02))
    return jnp.sum(last**2) + jnp.sum(all)


@functions(v(0.9, -0.1), v(9.81, 0.8))
def pendulum_by_symplectic_steps(state, p):
    def step(s, _):
        momentum = s[1] - 0.05 * p[0] / p[1] * jnp.sin(s[0])
        return jnp.stack([s[0] + 0.05 * momentum, momentum]), None

    last, _ = lax.scan(step, state, None, length=10)
    return last


@functions(v(0.5, -0.3, 0.8, 0.2, 0.6), v(1.0, 0.5, -0.4, 0.3, 0.9))
def linear_recurrence(a, b):
    return lax.scan(lambda y, ab: (ab[0] * y + ab[1],) * 2, jnp.ones(()), (a, b))[1]


@functions(v(0.5, -0.3, 0.8, 0.2, 0.6), v(1.0, 0.5, -0.4, 0.3, 0.9))
def linear_recurrence_in_parallel(a, b):
    join = lambda l, r: (l[0] * r[0], r[0] * l[1] + r[1])
    return jnp.sum(lax.associative_scan(join, (a, b))[1] ** 2)


@functions(v(1.0, 0.5, -0.4, 0.3, 0.9, -1.1, 0.7))
def products_in_parallel(x):
    return lax.associative_scan(jnp.multiply, x)


@functions(v(1.0, 0.5, 1.4, 0.3, 1.9, -1.1))
def largest_so_far_in_parallel(x):
    return lax.associative_scan(jnp.maximum, x)


@functions(normal(91, 4, 2, 2))
def matrices_in_parallel(x):
    return jnp.sum(lax.associative_scan(jnp.matmul, x) ** 2)


@functions(v(1.0, 0.5, -0.4, 0.3), n(0.9))
def discounted_returns(rewards, discount):
    return lax.scan(lambda c, r: (r + discount * c,) * 2, jnp.zeros(()), rewards, reverse=True)[1]


@functions(v(1.2, 0.5, 2.4, 0.3))
def continued_fraction(x):
    return lax.scan(lambda c, a: (1 / (a + c), None), jnp.zeros(()), x, reverse=True)[0]


@functions(v(0.3, 0.9, 0.4), v(0.1, 0.8, 0.7, 0.2))
def time_warping(x, y):
    # Soft dynamic time warping: a scan over rows with a scan along each row.
    def row(above, xi):
        def cell(left, at):
            up, corner, yj = at
            best = -special.logsumexp(-jnp.stack([up, left, corner]))
            value = (xi - yj) ** 2 + best
            return value, value

        _, values = lax.scan(cell, jnp.array(100.0), (above[1:], above[:-1], y))
        return jnp.concatenate([jnp.array([100.0]), values]), None

    first = jnp.array([0.0, 100.0, 100.0, 100.0, 100.0])
    return lax.scan(row, first, x)[0][-1]


@functions(v(0.6, 0.5, 0.9, 0.2, 0.8), n(0.7))
def integrate_and_fire(current, leak):
    def step(u, i):
        u = leak * u + i
        return lax.cond(u > 1, lambda u: (u - 1, u * u), lambda u: (u, 0.1 * u), u)

    last, out = lax.scan(step, jnp.zeros(()), current)
    return last**2 + jnp.sum(out)


@functions(v(0.2, -0.4, 0.7), normal(92, 3, 3), normal(93, 3, 2), ints(0, 1, 1, 0, 1))
def hidden_markov_model(start, move, emit, seen):
    move, emit = jax.nn.log_softmax(move, axis=1), jax.nn.log_softmax(emit, axis=1)

    def step(alpha, o):
        return special.logsumexp(alpha[:, None] + move, axis=0) + emit[:, o], None

    alpha, _ = lax.scan(step, jax.nn.log_softmax(start) + emit[:, seen[0]], seen[1:])
    return special.logsumexp(alpha)


@functions(v(0.9, -1.0, -0.7), v(0.3, 0.5, 0.1, 0.9, 0.4))
def kalman_filter(p, ys):
    q, r = jnp.exp(p[1]), jnp.exp(p[2])

    def step(state, y):
        mean, var = p[0] * state[0], p[0] ** 2 * state[1] + q
        gain = var / (var + r)
        log_p = stats.norm.logpdf(y, mean, jnp.sqrt(var + r))
        return (mean + gain * (y - mean), (1 - gain) * var), log_p

    return jnp.sum(lax.scan(step, (jnp.zeros(()), jnp.ones(())), ys)[1])


@functions(v(100.0, 0.2, 0.05), normal(94, 6))
def asian_option(p, draws):
    def step(s, z):
        s = s * jnp.exp((p[2] - p[1] ** 2 / 2) / 6 + p[1] * jnp.sqrt(1 / 6) * z)
        return s, s

    _, path = lax.scan(step, p[0], draws)
    return jnp.exp(-p[2]) * jnp.maximum(jnp.mean(path) - 90.0, 0.0)


@functions(v(0.2, 0.3))
def complex_iteration(c):
    z, sizes = lax.scan(lambda z, _: (z * z + lax.complex(c[0], c[1]), jnp.abs(z)), 0.1 + 0.1j, None, length=5)
    return jnp.abs(z) ** 2 + jnp.sum(sizes)


@functions(v(0.3, -1.2, 0.5, 2.0, 0.9), ints(2, 0, 3))
def scan_with_integers(x, starts):
    # An integer is carried along, and integers say where to read.
    def step(carry, start):
        count, total = carry
        block = lax.dynamic_slice(x, (start,), (2,))
        return (count + start, total + jnp.prod(block) * (count + 1)), total

    (_, total), all = lax.scan(step, (0, jnp.zeros(())), starts)
    return total**2 + jnp.sum(all)


@functions(normal(95, 3, 2))
def map_of_rows(x):
    return lax.map(lambda r: jax.nn.softmax(r) * jnp.sum(r**2), x)


@functions(normal(96, 3, 4), n(0.8))
def batch_of_scans(x, a):
    run = lambda x: lax.scan(lambda c, e: (jnp.sin(a * c + e), c), jnp.zeros(()), x)[0]
    return jnp.sum(jax.vmap(run)(x) ** 2)


@functions(v(0.3, -1.2, 0.5), normal(97, 3, 3))
def scan_that_computes_again(x, w):
    step = jax.checkpoint(lambda x: jnp.tanh(w @ x) + 0.1 * x**2)
    return jnp.sum(lax.scan(lambda x, _: (step(x), None), x, None, length=4)[0])


# Rules of one's own.


@jax.custom_jvp
def log_one_plus_exp(x):
    return jnp.log1p(jnp.exp(x))


@log_one_plus_exp.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return log_one_plus_exp(x), (1 - 1 / (1 + jnp.exp(x))) * t


@functions(v(0.3, -1.2, 0.5))
def own_forward_rule(x):
    return jnp.sum(log_one_plus_exp(x) ** 2)


@jax.custom_vjp
def product_with_halved_gradient(x, y):
    return x * y


product_with_halved_gradient.defvjp(lambda x, y: (x * y, (x, y)), lambda kept, bar: (kept[1] * bar / 2, kept[0] * bar))


@functions(v(0.3, -1.2, 0.5), v(1.1, 0.4, 2.0), reverse=True)
def own_backward_rule(x, y):
    return jnp.sum(jnp.sin(product_with_halved_gradient(x, y)))


@functions(v(0.3, -1.2, 0.5), kink=True)
def stopped_gradient(x):
    return jnp.sum(x * lax.stop_gradient(x * x))

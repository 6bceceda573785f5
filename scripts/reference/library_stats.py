"""Functions of `jax.scipy.stats` for `library.py`."""

import jax.numpy as jnp
import jax.scipy.stats as stats
import numpy as np
from jax.scipy.special import gammaln

from library import Library
from registry import ints, n, normal, uniform, v

library = F = Library()

X = normal(51, 5)
LOC = normal(52, 5)
SCALE = uniform(53, 5, low=0.5, high=2.0)
PART = uniform(54, 5, low=0.05, high=0.95)
ABOVE = LOC + uniform(55, 5, low=0.2, high=3.0)
A = uniform(56, 5, low=0.6, high=3.0)
B = uniform(57, 5, low=0.6, high=3.0)
P = uniform(58, 5, low=0.1, high=0.9)
COUNTS = v(0.0, 1.0, 3.0, 2.0, 5.0)
ZERO = n(0.0)
EXPONENTS = np.array([[0.7, 1.5, 2.5, 0.9, 2.0], [1.2, 0.8, 3.0, 2.0, 0.6]])


def S(dist, names, *inputs, **flags):
    for name in names.split():
        F(f"stats.{dist}.{name}", getattr(getattr(stats, dist), name), *inputs, **flags)


S("norm", "logpdf pdf cdf sf", X, LOC, SCALE)
S("norm", "logcdf logsf", X, LOC, SCALE, second=False)
S("norm", "ppf isf", PART, LOC, SCALE)
S("cauchy", "logpdf pdf cdf logcdf sf logsf", X, LOC, SCALE)
S("cauchy", "ppf isf", PART, LOC, SCALE)
S("laplace", "logpdf pdf cdf", X, LOC, SCALE)
S("logistic", "logpdf pdf cdf sf", X, LOC, SCALE)
S("logistic", "ppf isf", PART, LOC, SCALE)
S("t", "logpdf pdf", X, A, LOC, SCALE)
S("gennorm", "logpdf pdf", X, A)
S("gennorm", "cdf", X, A, second=False)
S("gumbel_l", "cdf logcdf sf logsf", X, LOC, SCALE)
S("gumbel_r", "cdf logcdf sf logsf", X, LOC, SCALE)
GUMBEL = {
    "logpdf": (X, lambda z, scale: z - jnp.exp(z) - jnp.log(scale)),
    "pdf": (X, lambda z, scale: jnp.exp(z - jnp.exp(z)) / scale),
}
for name, (x, f) in GUMBEL.items():
    # JAX has the values, but stumbles over a whole number in the derivative.
    for side, sign in (("gumbel_l", 1.0), ("gumbel_r", -1.0)):
        g = lambda x, loc, scale, f=f, sign=sign: f(sign * (x - loc) / scale, scale)
        assert np.allclose(g(X, LOC, SCALE), getattr(getattr(stats, side), name)(X, LOC, SCALE), rtol=1e-12)
        F(f"stats.{side}.{name}", g, X, LOC, SCALE)
for side, sign in (("gumbel_l", 1.0), ("gumbel_r", -1.0)):
    tail = (lambda q: 1 - q) if sign > 0 else (lambda q: q)
    g = lambda q, loc, scale, sign=sign, tail=tail: loc + sign * scale * jnp.log(-jnp.log(tail(q)))
    assert np.allclose(g(PART, LOC, SCALE), getattr(stats, side).ppf(PART, LOC, SCALE), rtol=1e-12)
    F(f"stats.{side}.ppf", g, PART, LOC, SCALE)
S("vonmises", "logpdf pdf", X, A, second=False)
S("expon", "logpdf pdf cdf logcdf sf logsf", ABOVE, LOC, SCALE)
S("expon", "ppf", PART, LOC, SCALE)
for name in "logpdf pdf".split():
    S("gamma", name, ABOVE, A, LOC, SCALE)
    S("chi2", name, ABOVE, A, LOC, SCALE)
for name in "cdf logcdf sf logsf".split():
    S("gamma", name, ABOVE, A, LOC, SCALE, second=False)
    S("chi2", name, ABOVE, A, LOC, SCALE, second=False)
S("pareto", "logpdf pdf cdf logcdf sf logsf", LOC + SCALE * 1.7, A, LOC, SCALE)
S("pareto", "ppf", PART, A, LOC, SCALE)
S("uniform", "logpdf pdf cdf", LOC + SCALE * PART, LOC, SCALE)
S("uniform", "ppf", PART, LOC, SCALE)
S("beta", "logpdf pdf", LOC + SCALE * PART, A, B, LOC, SCALE)
for name in "cdf logcdf sf logsf".split():
    # JAX has no derivative of the incomplete beta function by its exponents.
    F(f"stats.beta.{name}", lambda x, name=name: getattr(stats.beta, name)(x, EXPONENTS[0], EXPONENTS[1], 0.0, 1.0), PART)
S("dirichlet", "logpdf pdf", v(0.2, 0.5, 0.3), v(1.5, 2.0, 0.7), second=False)
S("truncnorm", "logpdf pdf", LOC + SCALE * (PART * 2 - 1), ZERO - 1.2, ZERO + 1.4, LOC, SCALE, second=False)
S("truncnorm", "cdf logcdf sf logsf", LOC + SCALE * (PART * 2 - 1), ZERO - 1.2, ZERO + 1.4, LOC, SCALE, second=False)
S("wrapcauchy", "logpdf pdf", PART * 6, P)
S("bernoulli", "logpmf pmf", v(0.0, 1.0, 1.0, 0.0, 1.0), P, ZERO, second=False)
S("bernoulli", "cdf ppf", PART, P, second=False)
S("binom", "logpmf pmf", COUNTS, n(7.0), P, ZERO, second=False)


def betabinom(k, n, a, b, loc):
    """Written out: the logarithm of the beta function in JAX has seven digits only where an argument is large."""
    y = jnp.floor(k) - loc
    log_beta = lambda a, b: gammaln(a) + gammaln(b) - gammaln(a + b)
    return -jnp.log1p(n) - log_beta(n - y + 1, y + 1) + log_beta(y + a, n - y + b) - log_beta(a, b)


F("stats.betabinom.logpmf", betabinom, COUNTS, n(7.0), A, B, ZERO)
F("stats.betabinom.pmf", lambda *xs: jnp.exp(betabinom(*xs)), COUNTS, n(7.0), A, B, ZERO)
S("geom", "logpmf pmf", COUNTS + 1, P, ZERO, second=False)
S("nbinom", "logpmf pmf", COUNTS, n(4.5), P, ZERO, second=False)
S("poisson", "logpmf pmf", COUNTS, A, ZERO, second=False)
F("stats.poisson.cdf", lambda mu: stats.poisson.cdf(jnp.asarray(COUNTS), mu), A, second=False)
F("stats.multinomial.logpmf", lambda p: stats.multinomial.logpmf(jnp.array([2, 3, 1]), 6, p), v(0.2, 0.5, 0.3))
F("stats.multinomial.pmf", lambda p: stats.multinomial.pmf(jnp.array([2, 3, 1]), 6, p), v(0.2, 0.5, 0.3))
F("stats.mode", lambda x: tuple(stats.mode(x)), ints(3, 1, 3, 7, 1, 3))
F("stats.rankdata", stats.rankdata, v(0.5, 2.0, 0.5, -1.0), second=False)
F("stats.sem", lambda x: stats.sem(x, axis=None), X)

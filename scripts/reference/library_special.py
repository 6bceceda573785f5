"""Functions of `jax.scipy.special` for `library.py`."""

import jax.numpy as jnp
import jax.scipy.special as special
import numpy as np
from jax import lax

from library import Library
from registry import ints, normal, uniform, v

library = F = Library()

WIDE = normal(31, 6)
POSITIVE = uniform(32, 6, low=0.2, high=4.0)
OTHER = uniform(33, 6, low=0.3, high=3.0)
THIRD = uniform(34, 6, low=0.5, high=2.5)
PART = uniform(35, 6, low=0.05, high=0.95)


def S(name, *inputs, **flags):
    F(f"special.{name}", getattr(special, name), *inputs, **flags)


for name in "erf erfc expit".split():
    S(name, WIDE)
S("erfinv", v(-0.9, -0.3, 0.1, 0.5, 0.97))
for name in "gammaln digamma gamma entr factorial loggamma".split():
    S(name, POSITIVE)
F("special.gamma:negative", special.gamma, v(-0.5, -1.5, 2.5, -2.3))
F("special.gammasgn", lambda x: lax.stop_gradient(special.gammasgn(x)), v(-0.5, -1.5, 2.5, -2.3))
F("special.polygamma", lambda x: special.polygamma(2, x), POSITIVE, second=False)
S("logsumexp", WIDE)
S("softmax", WIDE)
S("log_softmax", WIDE)
S("beta", POSITIVE, OTHER)
S("betaln", POSITIVE, OTHER)
# JAX itself is off by 4e-7 here.
F("special.betaln:large", lambda a, b: special.gammaln(a) + special.gammaln(b) - special.gammaln(a + b), v(0.5, 2.0, 9.0), v(9.0, 50.0, 12.0))
S("xlogy", np.append(WIDE, 0.0), np.append(POSITIVE, 0.7))
F("special.xlogy:zero", lambda x, y: special.xlogy(lax.stop_gradient(x), lax.stop_gradient(y)), v(0.0, 0.0), v(0.0, -1.0))
S("xlog1py", WIDE, POSITIVE)
S("rel_entr", POSITIVE, OTHER)
S("kl_div", POSITIVE, OTHER)
S("logit", PART)
S("boxcox", POSITIVE, WIDE)
S("boxcox1p", POSITIVE, WIDE)
S("ndtr", WIDE)
F("special.ndtr:tails", special.ndtr, v(-6.0, -2.0, 3.0, 7.0))
S("log_ndtr", v(-4.0, -2.0, -0.5, 0.5, 3.0), second=False)
S("ndtri", PART)
F("special.ndtri:tails", lambda p: special.ndtri(p), v(1e-12, 1e-5, 0.999), second=False)
S("comb", v(5.0, 7.5, 10.0), v(2.0, 3.0, 4.5))
S("poch", POSITIVE, OTHER)
F("special.multigammaln", lambda a: special.multigammaln(a, 3), POSITIVE + 2)
# The fractions; JAX has seven digits.
F("special.bernoulli", lambda x: jnp.array([1, -1 / 2, 1 / 6, 0, -1 / 30, 0, 1 / 42, 0, -1 / 30, 0, 5 / 66, 0, -691 / 2730]), ints(0))
F("special.zeta", lambda q: special.zeta(jnp.array([1.5, 2.0, 3.3, 4.0, 7.0, 20.0]), q), OTHER)
F("special.gammainc", lambda x: special.gammainc(jnp.array([0.5, 1.0, 2.5, 4.0, 30.0, 3.0]), x), v(0.3, 2.0, 2.6, 9.0, 28.0, 0.01))
F("special.gammainc:both", special.gammainc, v(0.5, 1.0, 2.5, 4.0), v(0.3, 2.0, 2.6, 9.0), second=False)
F("special.gammaincc", lambda x: special.gammaincc(jnp.array([0.5, 1.0, 2.5, 4.0, 30.0, 3.0]), x), v(0.3, 2.0, 2.6, 9.0, 28.0, 40.0))
F("special.gammaincc:both", special.gammaincc, v(0.5, 1.0, 2.5, 4.0), v(0.3, 2.0, 2.6, 9.0), second=False)
F("special.betainc", lambda x: special.betainc(jnp.array([0.5, 1.0, 2.5, 4.0, 20.0, 3.0]), jnp.array([2.0, 0.7, 3.5, 9.0, 25.0, 1.0]), x), PART)
for name in "i0 i0e i1 i1e".split():
    S(name, np.append(WIDE * 3, [15.0, 25.0]), second=False)
S("exp1", np.append(POSITIVE, 9.0), second=False, jit=False)
F("special.expn", lambda x: special.expn(3, x), np.append(POSITIVE, 9.0), second=False, jit=False)
S("expi", v(-3.0, -0.5, 0.7, 2.5, 12.0, 50.0), second=False)
S("spence", v(0.1, 0.45, 0.9, 2.2, 2.5, 9.0), second=False)
S("sici", v(0.5, 2.0, 3.9, 5.0, 20.0), second=False)
S("erfcx", v(-1.5, 0.3, 2.0, 9.0, 15.0), second=False)
S("dawsn", v(-2.0, 0.3, 1.5, 4.0, 9.0), second=False)
S("owens_t", v(0.3, -1.2, 2.0, 0.5), v(0.5, 0.9, 3.0, -2.0), second=False)
S("fresnel", v(0.3, -1.2, 2.0, 4.5), second=False)

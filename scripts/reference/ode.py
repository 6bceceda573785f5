"""A solution of a predator-prey equation by SciPy, and its gradients by JAX: the numbers in `crates/gradus/tests/library_ode.rs`.

    python -m venv venv && venv/bin/pip install -r scripts/reference/requirements.txt
    venv/bin/python scripts/reference/ode.py
"""

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

import jax.numpy as jnp
import numpy as np
from jax.experimental.ode import odeint
from scipy.integrate import solve_ivp

TIMES = np.array([0.0, 0.5, 2.0, 5.0])


def slope(y, t, p):
    a, b, c, d = p
    return jnp.stack([a * y[0] - b * y[0] * y[1], -c * y[1] + d * y[0] * y[1] + 0.1 * jnp.sin(t)])


p, y0 = jnp.array([1.5, 1.0, 3.0, 1.0]), jnp.array([1.0, 1.0])
found = solve_ivp(lambda t, y: np.asarray(slope(jnp.asarray(y), t, p)), (0, 5), y0, "DOP853", TIMES, rtol=1e-13, atol=1e-13)
np.set_printoptions(precision=14)
print("states", repr(found.y.T))


def loss(p, y0, times):
    return jnp.sum(odeint(slope, y0, times, p, rtol=1e-12, atol=1e-12)[-1] * jnp.array([1.0, 2.0]))


for gradient in jax.grad(loss, argnums=(0, 1, 2))(p, y0, jnp.asarray(TIMES)):
    print("gradient", gradient.tolist())

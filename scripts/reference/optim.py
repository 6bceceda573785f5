"""Parameters after steps of Optax's optimizers, in 64-bit mode on the CPU.

    python -m venv venv && venv/bin/pip install -r scripts/reference/requirements.txt
    venv/bin/python scripts/reference/optim.py

writes `crates/gradus/tests/data/optim.jsonl`, a line for each optimizer: `name`, and `steps`, which has the parameters `w` and `b` after 1, 10 and
100 steps; and `schedules.jsonl`: `name`, and `rates`, the rates at `counts`.
"""

import json
import pathlib
import sys

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")
sys.dont_write_bytecode = True

import jax.numpy as jnp
import optax

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "crates" / "gradus" / "tests" / "data"


def loss(p):
    w, b = p["w"], p["b"]
    target, stiffness = jnp.array([1.0, -2.0, 0.5, 3.0]), jnp.array([1.0, 0.1, 2.0, 0.5])
    return jnp.sum(stiffness * (w - target) ** 2) + 0.5 * jnp.sum(jnp.sin(b)) + 0.1 * jnp.sum(w) * jnp.sum(b**2)


def exact(schedule):
    """A schedule in 64 bits: optimizers count in 32, and of such a count it would be rounded to 32 bits itself."""
    return lambda count: schedule(jnp.asarray(count, jnp.int64))


def decay_w(params):
    return {"w": True, "b": False}


OPTIMIZERS = {
    "sgd": optax.sgd(0.05),
    "sgd_momentum": optax.sgd(0.02, momentum=0.9),
    "sgd_nesterov": optax.sgd(0.02, momentum=0.9, nesterov=True),
    "adam": optax.adam(0.03),
    "adam_options": optax.adam(0.03, b1=0.8, b2=0.95, eps=1e-4),
    "nadam": optax.nadam(0.03),
    "adamw": optax.adamw(0.03, weight_decay=0.1),
    "adamw_mask": optax.adamw(0.03, weight_decay=0.1, mask=decay_w),
    "lion": optax.lion(0.013),
    "rmsprop": optax.rmsprop(0.01),
    "rmsprop_centered": optax.rmsprop(0.01, centered=True),
    "rmsprop_momentum": optax.rmsprop(0.003, momentum=0.9, nesterov=True),
    "adagrad": optax.adagrad(0.3),
    "adam_clip_norm": optax.chain(optax.clip_by_global_norm(0.5), optax.adam(0.03)),
    "sgd_clip": optax.chain(optax.clip(0.5), optax.sgd(0.05)),
    "sgd_cosine": optax.sgd(exact(optax.cosine_decay_schedule(0.1, 80))),
    "adam_warmup": optax.adam(exact(optax.warmup_cosine_decay_schedule(0.0, 0.1, 10, 90, end_value=0.01))),
}

COUNTS = [0, 1, 5, 9, 10, 11, 37, 50, 80, 100, 1000]
SCHEDULES = {
    "linear": optax.linear_schedule(0.3, 0.1, 50),
    "polynomial": optax.polynomial_schedule(0.3, 0.1, 2.5, 50),
    "cosine": optax.cosine_decay_schedule(0.3, 50),
    "cosine_to": optax.cosine_decay_schedule(0.3, 50, alpha=0.1),
    "exponential": optax.exponential_decay(0.3, 10, 0.7),
    "staircase": optax.exponential_decay(0.3, 10, 0.7, staircase=True),
    "piecewise": optax.piecewise_constant_schedule(0.3, {10: 0.5, 50: 0.1}),
    "warmup": optax.warmup_cosine_decay_schedule(0.0, 0.3, 10, 60, end_value=0.03),
}


def run(optimizer):
    params = {"w": jnp.array([0.3, 1.0, -1.0, 2.0]), "b": jnp.array([[0.2, -0.4], [1.0, 0.7]])}
    state = optimizer.init(params)

    @jax.jit
    def step(params, state):
        updates, state = optimizer.update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, updates), state

    found = {}
    for n in range(1, 101):
        params, state = step(params, state)
        if n in (1, 10, 100):
            found[n] = {"w": params["w"].tolist(), "b": params["b"].ravel().tolist()}
    return found


def main():
    with open(FOLDER / "optim.jsonl", "w") as out:
        for name, optimizer in OPTIMIZERS.items():
            out.write(json.dumps({"name": name, "steps": run(optimizer)}) + "\n")
    with open(FOLDER / "schedules.jsonl", "w") as out:
        for name, schedule in SCHEDULES.items():
            rates = [float(schedule(jnp.int64(n))) for n in COUNTS]
            out.write(json.dumps({"name": name, "counts": COUNTS, "rates": rates}) + "\n")


if __name__ == "__main__":
    main()

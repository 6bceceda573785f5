"""Values and gradients of parts of networks, by JAX and Optax in 64-bit mode on the CPU.

    python -m venv venv && venv/bin/pip install -r scripts/reference/requirements.txt
    venv/bin/python scripts/reference/nn.py

writes `crates/gradus/tests/data/nn.jsonl`, a line for each case: `name`, `inputs`, `value`, and `grads`, the gradients of the sum of `value * cos(0, 1, 2, ..)` by each input that
is of floats. Arrays are `{"shape": .., "data": ..}`.
"""

import json
import pathlib
import sys

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")
sys.dont_write_bytecode = True

import jax.numpy as jnp
import numpy as np
import optax

FILE = pathlib.Path(__file__).resolve().parents[2] / "crates" / "gradus" / "tests" / "data" / "nn.jsonl"
RANDOM = np.random.default_rng(7)


def normal(*shape):
    return RANDOM.normal(size=shape)


def layer_norm(x, scale, offset):
    return jax.nn.standardize(x, axis=tuple(range(-scale.ndim, 0)), epsilon=1e-3) * scale + offset


def rms_norm(x, scale):
    return x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-3) * scale


def ATTENTION(q, k, v, bias=None, mask=None, scale=None, is_causal=False):
    """What `jax.nn.dot_product_attention` gives, which computes logits in 32 bits, in 64."""
    single = q.ndim == 3
    if single:
        q, k, v = q[None], k[None], v[None]
    groups = q.shape[2] // k.shape[2]
    k, v = jnp.repeat(k, groups, axis=2), jnp.repeat(v, groups, axis=2)
    logits = jnp.einsum("btnh,bsnh->bnts", q, k) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    if bias is not None:
        logits = logits + bias
    if is_causal:
        mask = jnp.tril(jnp.ones(logits.shape[-2:], bool))
    if mask is not None:
        logits = jnp.where(mask, logits, -1e300)
    found = jnp.einsum("bnts,bsnh->btnh", jax.nn.softmax(logits), v)
    return found[0] if single else found


def check_attention(q, k, v, **options):
    q, k, v = (jnp.asarray(x) for x in (q, k, v))
    np.testing.assert_allclose(ATTENTION(q, k, v, **options), jax.nn.dot_product_attention(q, k, v, **options), atol=1e-5)


Q, K, V = normal(2, 4, 3, 5), normal(2, 6, 3, 5), normal(2, 6, 3, 5)
MASK = RANDOM.random((2, 1, 4, 6)) < 0.6
MASK[..., 0] = True
PROBABILITIES = jax.nn.softmax(normal(3, 4))

CASES = {
    "layer_norm": (layer_norm, [normal(3, 4), normal(4), normal(4)]),
    "layer_norm_two_axes": (layer_norm, [normal(2, 3, 4), normal(3, 4), normal(3, 4)]),
    "rms_norm": (rms_norm, [normal(3, 4), normal(4)]),
    "attention": (lambda q, k, v: ATTENTION(q, k, v), [Q, K, V]),
    "attention_causal": (lambda q, k, v: ATTENTION(q, k, v, is_causal=True), [Q, K, V]),
    "attention_options": (lambda q, k, v, b: ATTENTION(q, k, v, bias=b, mask=jnp.asarray(MASK), scale=0.3), [Q, K, V, normal(1, 3, 4, 6)]),
    "attention_groups": (lambda q, k, v: ATTENTION(q, k, v), [normal(2, 4, 6, 5), normal(2, 3, 2, 5), normal(2, 3, 2, 5)]),
    "attention_single": (lambda q, k, v: ATTENTION(q, k, v), [normal(4, 3, 5), normal(6, 3, 5), normal(6, 3, 5)]),
    "mse": (lambda p, t: jnp.mean(optax.squared_error(p, t)), [normal(3, 4), normal(3, 4)]),
    "huber": (lambda p, t: optax.huber_loss(p, t, delta=0.7), [normal(3, 4), normal(3, 4)]),
    "log_cosh": (optax.log_cosh, [normal(3, 4) * 5, normal(3, 4)]),
    "softmax_cross_entropy": (optax.softmax_cross_entropy, [normal(3, 4), PROBABILITIES]),
    "integer_labels": (lambda x: optax.softmax_cross_entropy_with_integer_labels(x, jnp.array([2, 0, 3])), [normal(3, 4)]),
    "sigmoid_binary_cross_entropy": (optax.sigmoid_binary_cross_entropy, [normal(3, 4) * 9, RANDOM.random((3, 4))]),
    "hinge": (optax.hinge_loss, [normal(3, 4), np.sign(normal(3, 4))]),
    "kl_divergence": (optax.kl_divergence, [jax.nn.log_softmax(normal(3, 4)), PROBABILITIES]),
    "cosine_similarity": (lambda a, b: optax.cosine_similarity(a, b, epsilon=1e-8), [normal(3, 4), normal(3, 4)]),
    "label_smoothing": (lambda x: optax.smooth_labels(x, 0.1), [RANDOM.random((3, 4))]),
}

INITIALIZERS = ["glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"]


def array(x):
    x = np.asarray(x, np.float64)
    return {"shape": list(x.shape), "data": x.ravel().tolist()}


def main():
    check_attention(Q, K, V)
    check_attention(Q, K, V, is_causal=True)
    check_attention(Q, K, V, bias=jnp.asarray(normal(1, 3, 4, 6)), mask=jnp.asarray(MASK), scale=0.3)
    check_attention(normal(2, 4, 6, 5), normal(2, 3, 2, 5), normal(2, 3, 2, 5))
    check_attention(normal(4, 3, 5), normal(6, 3, 5), normal(6, 3, 5))
    lines = []
    for name, (f, inputs) in CASES.items():
        inputs = [jnp.asarray(x) for x in inputs]

        def weighted(*xs, f=f):
            y = f(*xs)
            return jnp.sum(y.ravel() * jnp.cos(jnp.arange(y.size)))

        grads = jax.grad(weighted, argnums=tuple(range(len(inputs))))(*inputs)
        lines.append({"name": name, "inputs": [array(x) for x in inputs], "value": array(f(*inputs)), "grads": [array(g) for g in grads]})
    lines.append({"name": "mask", "inputs": [array(MASK)]})
    for name in INITIALIZERS:
        draw = getattr(jax.nn.initializers, name)()
        lines.append({"name": name, "value": array(draw(jax.random.key(5), (2, 3, 4), jnp.float64))})
    draw = jax.nn.initializers.truncated_normal(0.3)(jax.random.key(5), (7,), jnp.float64)
    lines.append({"name": "truncated_normal", "value": array(draw)})
    with open(FILE, "w") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)


if __name__ == "__main__":
    main()

"""Random numbers by `jax.random`, on the CPU, with JAX's default generator (Threefry-2x32, partitionable).

    python -m venv venv && venv/bin/pip install -r scripts/reference/requirements.txt
    venv/bin/python scripts/reference/draws.py

writes `random.jsonl` in `crates/gradus/tests/data`. The first line names the version of JAX. Every other line is one call:

- `name`: the function, `seed`: of the key, `type`: the type of the result, `args`: parameters, an array each (as in
  `functions.jsonl`: a type, and elements as text), `shape`: of the draw, where it does not follow.
- `bits`: the result, every element as the hexadecimal text of its bits. Numbers are compared by bits, or by the distance of
  their bits, so nothing is lost on the way.
- `grad`: the derivative of the sum by the first parameter, where there is one.

64-bit mode is on, so that results of 64 bits exist; those of 32 bits are the same without. The file is not called `random.py`,
which would hide Python's own module from every script of this folder.
"""

import json
import pathlib
import sys

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")
sys.dont_write_bytecode = True  # the folder belongs to the repository

import jax.numpy as jnp
import ml_dtypes
import numpy as np

NAMES = {
    np.dtype(np.bool_): "bool",
    np.dtype(np.int8): "i8",
    np.dtype(np.int16): "i16",
    np.dtype(np.int32): "i32",
    np.dtype(np.int64): "i64",
    np.dtype(np.uint8): "u8",
    np.dtype(np.uint16): "u16",
    np.dtype(np.uint32): "u32",
    np.dtype(np.uint64): "u64",
    np.dtype(np.float16): "f16",
    np.dtype(ml_dtypes.bfloat16): "bf16",
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(np.complex64): "c64",
    np.dtype(np.complex128): "c128",
}
FLOATS = [jnp.float16, jnp.bfloat16, jnp.float32, jnp.float64]
WIDE = [jnp.float32, jnp.float64]
SEEDS = [0, 42, 2**63 + 12345]
LINES = []


def type_of(a):
    return f"{NAMES[a.dtype]}[{','.join(map(str, a.shape))}]"


def bits_of(a):
    a = np.ascontiguousarray(np.asarray(a))
    if a.dtype == np.bool_:
        return " ".join("1" if v else "0" for v in a.ravel())
    if a.dtype.kind == "c":
        a = a.view(np.float32 if a.dtype == np.complex64 else np.float64)
    words = a.ravel().view(f"u{a.dtype.itemsize}")
    return " ".join(f"{int(w):x}" for w in words)


def parameter(a):
    a = np.asarray(a)
    text = lambda v: str(int(v)) if a.dtype.kind in "iu" else repr(float(v))
    return {"type": type_of(a), "values": " ".join(text(v) for v in a.ravel())}


def key(seed):
    return jax.random.key(np.uint64(seed))


def write(name, seed, result, args=(), grad=None, **more):
    result = np.asarray(result)
    line = {"name": name, "seed": str(seed), "type": type_of(result), "args": [parameter(a) for a in args], **more}
    line["bits"] = bits_of(result)
    if grad is not None:
        line["grad"] = bits_of(np.asarray(grad))
    LINES.append(line)


def words(k):
    return jax.random.key_data(k)


def keys():
    for seed in SEEDS:
        write("key", seed, words(key(seed)))
        write("split", seed, words(jax.random.split(key(seed), 5)))
        for data in [0, 1, 7, 2**32 - 1]:
            write("fold_in", seed, words(jax.random.fold_in(key(seed), np.uint32(data))), [np.uint32(data)])
        for dtype in [jnp.uint8, jnp.uint16, jnp.uint32, jnp.uint64]:
            for shape in [(), (7,), (3, 5)]:
                write("bits", seed, jax.random.bits(key(seed), shape, dtype))


def uniforms():
    for seed in SEEDS:
        for dtype in FLOATS:
            for shape in [(), (9,), (4, 3)]:
                write("uniform", seed, jax.random.uniform(key(seed), shape, dtype))
            for low, high in [(-1.5, 2.25), (0.1, 0.3)]:
                bounds = [jnp.asarray(low, dtype), jnp.asarray(high, dtype)]
                write("uniform_between", seed, jax.random.uniform(key(seed), (16,), dtype, *bounds), bounds)
            write("normal", seed, jax.random.normal(key(seed), (32,), dtype))
            write("exponential", seed, jax.random.exponential(key(seed), (32,), dtype))
            write("gumbel", seed, jax.random.gumbel(key(seed), (32,), dtype))
            bounds = [jnp.asarray(-0.5, dtype), jnp.asarray(2.0, dtype)]
            write("truncated_normal", seed, jax.random.truncated_normal(key(seed), *bounds, (32,), dtype), bounds)
            p = jnp.asarray(0.3, dtype)
            write("bernoulli", seed, jax.random.bernoulli(key(seed), p, (24,)), [p])
        for dtype in [jnp.complex64, jnp.complex128]:
            write("normal", seed, jax.random.normal(key(seed), (6,), dtype))
        for dtype in WIDE:
            low = jnp.asarray([-1.0, 0.0, 10.0], dtype)
            high = jnp.asarray([1.0, 0.5, 1e4], dtype)
            write("uniform_between", seed, jax.random.uniform(key(seed), (4, 3), dtype, low, high), [low, high])
            p = jnp.asarray([0.1, 0.5, 0.9], dtype)
            write("bernoulli", seed, jax.random.bernoulli(key(seed), p, (5, 3)), [p])


def tables():
    """Many numbers of the functions whose distance from ours the book's table states."""
    for seed in SEEDS:
        for dtype in FLOATS:
            bounds = [jnp.asarray(-0.75, dtype), jnp.asarray(2.5, dtype)]
            write("truncated_normal", seed, jax.random.truncated_normal(key(seed), *bounds, (200,), dtype), bounds)
        write("gumbel", seed, jax.random.gumbel(key(seed), (200,), jnp.float16))
        for dtype in [jnp.float64, jnp.complex64, jnp.complex128]:
            write("normal", seed, jax.random.normal(key(seed), (200,), dtype))
        for dtype in WIDE:
            for alpha in [0.3, 1.0, 20.0]:
                a = jnp.asarray(alpha, dtype)
                write("gamma", seed, jax.random.gamma(key(seed), a, (200,), dtype), [a])


def integers():
    for seed in SEEDS:
        for dtype, low, high in [
            (jnp.int8, -128, 127), (jnp.int8, -3, 4), (jnp.uint8, 0, 200), (jnp.int16, -1000, 1000),
            (jnp.uint16, 3, 60000), (jnp.int32, 0, 10), (jnp.int32, -(2**31), 2**31 - 1), (jnp.int32, 5, 5),
            (jnp.uint32, 0, 2**32 - 1), (jnp.uint32, 7, 100), (jnp.int64, -(2**62), 2**62), (jnp.int64, 0, 1000),
            (jnp.uint64, 0, 2**63), (jnp.int32, 9, 3),
        ]:
            bounds = [np.asarray(low, dtype), np.asarray(high, dtype)]
            write("randint", seed, jax.random.randint(key(seed), (13,), *bounds, dtype), bounds)
        # One past the largest number, which the dtype itself does not hold.
        for dtype, low, high in [(jnp.uint8, 0, 256), (jnp.int8, -128, 128), (jnp.int32, -5, 2**31), (jnp.uint32, 0, 2**32)]:
            bounds = [np.int64(low), np.int64(high)]
            write("randint", seed, jax.random.randint(key(seed), (13,), *bounds, dtype), bounds)
        low, high = np.int32([0, 10, -7]), np.int32([5, 11, 7])
        write("randint", seed, jax.random.randint(key(seed), (4, 3), low, high, jnp.int32), [low, high])


def choices():
    for seed in SEEDS:
        for dtype in WIDE:
            logits = jnp.asarray([[0.1, 1.5, -2.0, 0.3], [3.0, -1.0, 0.0, 0.5]], dtype)
            write("categorical", seed, jax.random.categorical(key(seed), logits).astype(jnp.int64), [logits], axis=-1, shape=[2])
            write("categorical", seed, jax.random.categorical(key(seed), logits, 0).astype(jnp.int64), [logits], axis=0, shape=[4])
            drawn = jax.random.categorical(key(seed), logits, shape=(7, 2)).astype(jnp.int64)
            write("categorical", seed, drawn, [logits], axis=-1, shape=[7, 2])
        for n in [0, 1, 2, 10, 3000]:
            write("permutation", seed, jax.random.permutation(key(seed), n), n=n)
        x = np.arange(12, dtype=np.float32).reshape(4, 3)
        write("shuffle", seed, jax.random.permutation(key(seed), x, 0), [x], axis=0)
        write("shuffle", seed, jax.random.permutation(key(seed), x, 1), [x], axis=1)
        write("shuffle", seed, jax.random.permutation(key(seed), x.ravel()), [x.ravel()], axis=0)
        write("shuffle_independent", seed, jax.random.permutation(key(seed), x, 1, independent=True), [x], axis=1)
        a = np.asarray([1.5, -2.0, 3.25, 8.0, 0.5], np.float32)
        p = np.asarray([0.1, 0.2, 0.05, 0.4, 0.25], np.float32)
        # Places are drawn in JAX's default integers, tables, which are those of 32 bits in its default mode.
        k = key(seed)
        with jax.enable_x64(False):
            drawn, across = jax.random.choice(k, a, (3, 4)), jax.random.choice(k, x, (5,), axis=1)
        write("choice", seed, drawn, [a], shape=[3, 4])
        write("choice", seed, across, [x], axis=1, shape=[5])
        write("choice_without", seed, jax.random.choice(key(seed), a, (4,), replace=False), [a], shape=[4])
        write("choice_weighted", seed, jax.random.choice(key(seed), a, (3, 4), p=p), [a, p], shape=[3, 4])
        drawn = jax.random.choice(key(seed), a, (2, 2), replace=False, p=p)
        write("choice_weighted_without", seed, drawn, [a, p], shape=[2, 2])
        write("choice_without", seed, jax.random.choice(key(seed), x, (3,), replace=False), [x], axis=0, shape=[3])


def gammas():
    for seed in SEEDS:
        for dtype in WIDE:
            alpha = jnp.asarray([0.05, 0.3, 0.9, 1.0, 1.7, 4.0, 30.0, 1000.0], dtype)
            draw = lambda a: jax.random.gamma(key(seed), a, (3, 8), dtype)
            write("gamma", seed, draw(alpha), [alpha], jax.grad(lambda a: draw(a).sum())(alpha), shape=[3, 8])
            draw = lambda a: jax.random.loggamma(key(seed), a, (3, 8), dtype)
            write("loggamma", seed, draw(alpha), [alpha], jax.grad(lambda a: draw(a).sum())(alpha), shape=[3, 8])
            beta = jnp.asarray([0.5, 2.0, 0.2, 1.0, 3.0, 0.7, 8.0, 900.0], dtype)
            draw = lambda a: jax.random.beta(key(seed), a, beta, (3, 8), dtype)
            write("beta", seed, draw(alpha), [alpha, beta], jax.grad(lambda a: draw(a).sum())(alpha), shape=[3, 8])
            # Signs are drawn in JAX's default float, which is the narrow one in its default mode.
            k = key(seed)
            with jax.enable_x64(dtype == jnp.float64):
                drawn = {p: jax.random.ball(k, 3, p, (4,), dtype) for p in [1.0, 2.0, 3.5]}
            for p in drawn:
                write("ball", seed, drawn[p], p=p, d=3, shape=[4])
        for rate in [[0.0, 0.3, 2.0, 9.5], [10.0, 12.5, 100.0, 5000.0], [0.5, 50.0, 9.0, 20.0]]:
            rate = jnp.asarray(rate, jnp.float32)
            for dtype in [jnp.int32, jnp.int64]:
                write("poisson", seed, jax.random.poisson(key(seed), rate, (6, 4), dtype), [rate], shape=[6, 4])


def normals():
    for seed in SEEDS:
        for dtype in WIDE:
            mean = jnp.asarray([1.0, -2.0, 0.5], dtype)
            cov = jnp.asarray([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.75]], dtype)
            draw = lambda m, c: jax.random.multivariate_normal(key(seed), m, c, (5,), dtype)
            slope = jax.grad(lambda c: (draw(mean, c) ** 2).sum())(cov)
            write("multivariate_normal", seed, draw(mean, cov), [mean, cov], slope, shape=[5])
            many = jnp.stack([cov, cov * 2 + jnp.eye(3, dtype=dtype)])
            drawn = jax.random.multivariate_normal(key(seed), mean, many, (4, 2), dtype)
            write("multivariate_normal", seed, drawn, [mean, many], shape=[4, 2])


def main():
    for part in [keys, uniforms, integers, tables, choices, gammas, normals]:
        part()
    out = pathlib.Path(__file__).parents[2] / "crates/gradus/tests/data/random.jsonl"
    with out.open("w") as f:
        f.write(json.dumps({"jax": jax.__version__}) + "\n")
        for line in LINES:
            f.write(json.dumps(line, separators=(",", ":")) + "\n")
    print(f"{len(LINES)} lines to {out}")


if __name__ == "__main__":
    main()

"""Values and derivatives of the functions of `jax.numpy`, `jax.scipy.special`, `jax.scipy.stats` and `jax.nn` by JAX in 64-bit mode on the CPU.

    python -m venv venv && venv/bin/pip install -r scripts/reference/requirements.txt
    venv/bin/python scripts/reference/library.py

writes `crates/gradus/tests/data/library.jsonl`, a line for each function, with the name of the function:

- `inputs` and `outputs`, arrays as in `functions.jsonl`;
- `grad`, by each input, of a sum of all outputs with the weights cos(0.7 (i + 1) + k) for element i of output k; of complex
  outputs the real and half of the imaginary part are summed. Null for integers.
- `jvp`, the derivative of that sum in the direction sin(1.3 (i + 1) + j) for element i of input j;
- `hvp`, the derivatives of the gradient in the same direction. It is left out where JAX has none.

`crates/gradus/tests/library.rs` computes the same. The functions are in `library_numpy.py`, `library_special.py` and `library_stats.py`.
"""

import json
import pathlib
import sys

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")
sys.dont_write_bytecode = True  # the folder belongs to the repository

import jax.numpy as jnp
import numpy as np

from functions import write_array


def weighted(outputs):
    total = 0.0
    for k, y in enumerate(outputs):
        y = jnp.asarray(y)
        if not jnp.issubdtype(y.dtype, jnp.inexact):
            continue
        y = jnp.real(y) + 0.5 * jnp.imag(y) if jnp.iscomplexobj(y) else y
        total = total + jnp.sum(y.reshape(-1) * jnp.cos(0.7 * (jnp.arange(y.size) + 1.0) + k))
    return jnp.asarray(total, jnp.float64)


def as_list(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def describe(name, f, inputs, second, jit):
    inputs = [jnp.asarray(x) for x in inputs]
    at = [i for i, x in enumerate(inputs) if x.dtype == jnp.float64]

    def everything(inputs):
        """All that is written, as one function: compiled once."""
        outputs = [jnp.asarray(y) for y in as_list(f(*inputs))]
        if not at or not any(jnp.issubdtype(y.dtype, jnp.inexact) for y in outputs):
            return outputs, None, None, None

        def loss(*xs):
            full = list(inputs)
            for i, x in zip(at, xs):
                full[i] = x
            return weighted(as_list(f(*full)))

        xs = tuple(inputs[i] for i in at)
        dots = tuple(jnp.sin(1.3 * (jnp.arange(x.size) + 1.0) + j).reshape(x.shape) for j, x in zip(at, xs))
        gradient = jax.grad(loss, argnums=tuple(range(len(xs))))
        if not second:
            return outputs, gradient(*xs), jax.jvp(loss, xs, dots)[1], None
        found, product = jax.jvp(gradient, xs, dots)
        return outputs, found, jax.jvp(loss, xs, dots)[1], product

    outputs, found, dot, product = (jax.jit(everything) if jit else everything)(inputs)
    line = {"name": name, "inputs": [write_array(x) for x in inputs], "outputs": [write_array(y) for y in outputs]}

    def by_input(arrays):
        arrays = dict(zip(at, arrays))
        return [write_array(arrays[i]) if i in arrays else None for i in range(len(inputs))]

    if found is not None:
        line["grad"], line["jvp"] = by_input(found), write_array(dot)
    if product is not None:
        line["hvp"] = by_input(product)
    return json.dumps(line, separators=(",", ":"))


class Library:
    """Lists functions with their arguments; names are those of JAX, with what tells cases of one function apart after a colon."""

    def __init__(self):
        self.entries = []

    def __call__(self, name, f, *inputs, second=True, jit=True):
        self.entries.append((name, f, inputs, second, jit))


def main():
    import library_numpy
    import library_special
    import library_stats

    entries = [e for m in (library_numpy, library_special, library_stats) for e in m.library.entries]
    assert len({e[0] for e in entries}) == len(entries), "a name stands twice"
    path = pathlib.Path(__file__).parents[2] / "crates/gradus/tests/data/library.jsonl"
    # With `new` as argument only what is not in the file yet is computed.
    old = {}
    if sys.argv[1:] == ["new"] and path.exists():
        old = {json.loads(line)["name"]: line for line in path.read_text().splitlines()}
    lines, failed = [], []
    for entry in entries:
        try:
            lines.append(old.get(entry[0]) or describe(*entry))
        except Exception as e:
            failed.append(f"{entry[0]}: {e!r}"[:300])
    path.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} functions in {path.name}")
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main()

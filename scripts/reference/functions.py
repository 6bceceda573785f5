"""Values and derivatives of functions that a user might write, by JAX in 64-bit mode on the CPU.

    python -m venv venv && venv/bin/pip install -r scripts/reference/requirements.txt
    venv/bin/python scripts/reference/functions.py

writes `functions.jsonl`, `signals.jsonl` and `control_flow.jsonl` in `crates/gradus/tests/data`, a line for each function:

- `name`, `inputs`: which function of which arguments. Arrays are written as in `primitives.jsonl`: a type, and elements
  as the shortest text that reads back, with `nan`, `inf` and `-inf`.
- `value`: the result, one array.
- of a function with a scalar result `grad`, the gradient by each argument (null for integers), and `hessian`, the
  second derivatives by the first argument, where that is small. Of a function with axes `jacobian`, by the first
  argument. Forward and reverse mode are compared here; one of them is written. Of loops whose length follows from
  values JAX has only forward mode, of functions with a backward rule of their own only reverse mode.
- `forward_grad`: the gradient by the first argument in forward mode, where a pole makes the two modes differ: infinity
  times a zero tangent is no number in one of them.

The functions are in `functions_basic.py`, `functions_models.py`, `functions_signals.py` and `functions_control_flow.py`. They use what JAX
itself has for the purpose (`jax.nn`, `jax.scipy`, `jnp.linalg`, ...) where there is such a thing, so that the other
side is not compared with a copy of itself.
"""

import json
import math
import pathlib
import sys

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")
sys.dont_write_bytecode = True  # the folder belongs to the repository

import jax.numpy as jnp
import numpy as np

NAMES = {
    np.dtype(np.bool_): "bool",
    np.dtype(np.int32): "i32",
    np.dtype(np.int64): "i64",
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(np.complex128): "c128",
}
# Second derivatives are written by arguments of up to so many elements, Jacobians of up to so many.
HESSIAN, JACOBIAN = 9, 400


def write_array(array):
    """An array as in `primitives.jsonl`."""
    array = np.asarray(array)

    def real(v):
        if math.isnan(v):
            return "nan"
        return str(np.float32(v)) if array.dtype == np.float32 else repr(float(v))

    def element(v):
        if array.dtype == np.bool_:
            return "true" if v else "false"
        if np.issubdtype(array.dtype, np.integer):
            return str(int(v))
        return f"({real(v.real)},{real(v.imag)})" if np.iscomplexobj(v) else real(v)

    shape = ",".join(str(d) for d in array.shape)
    return {"type": f"{NAMES[array.dtype]}[{shape}]", "values": " ".join(element(v) for v in array.reshape(-1))}


def agree(a, b):
    """Whether both modes have the same numbers."""
    size = np.max(np.abs(np.nan_to_num(np.asarray(b), posinf=0, neginf=0)), initial=1e-300)
    return np.allclose(a, b, rtol=1e-11, atol=1e-13 * size, equal_nan=True)


def differentiate(entry, inputs):
    """The value, gradients by each argument that has any, second derivatives, Jacobians; in both modes."""
    f, result = entry.f, {}
    result["value"] = value = jnp.asarray(f(*inputs))
    inexact = [i for i, x in enumerate(inputs) if jnp.issubdtype(x.dtype, jnp.inexact)]
    assert inexact[:1] == [0], f"{entry.name}: the first argument has derivatives"
    first = inputs[0]
    if value.ndim == 0:
        if not entry.forward:
            result["grad"] = dict(zip(inexact, jax.grad(f, argnums=inexact)(*inputs)))
        if not entry.reverse and not any(jnp.iscomplexobj(x) for x in inputs):
            result["forward_grad"] = dict(zip(inexact, jax.jacfwd(f, argnums=inexact)(*inputs)))
        if not entry.kink and first.size <= HESSIAN and first.dtype == jnp.float64:
            if not entry.reverse:
                result["forward_hessian"] = jax.jacfwd(jax.jacfwd(f))(*inputs)
            if not entry.forward:
                result["hessian"] = jax.jacrev(jax.grad(f))(*inputs)
    else:
        result["forward_jacobian"] = jax.jacfwd(f)(*inputs)
        if not entry.forward:
            result["jacobian"] = jax.jacrev(f)(*inputs)
    return result


def describe(entry):
    name = entry.name
    inputs = [jnp.asarray(x) for x in entry.inputs]
    result = differentiate(entry, inputs) if entry.kink else jax.jit(lambda *xs: differentiate(entry, xs))(*inputs)
    line = {"name": name, "inputs": [write_array(x) for x in entry.inputs], "value": write_array(result["value"])}
    for key in ("hessian", "jacobian"):
        forward, reverse = result.get(f"forward_{key}"), result.get(key)
        if forward is not None and reverse is not None:
            assert agree(reverse, forward), f"{name}: the {key} is\n{reverse}\nand forward\n{forward}"
        for found in [x for x in (reverse, forward) if x is not None][:1]:
            assert found.size <= JACOBIAN, f"{name}: {found.size} numbers"
            line[key] = write_array(found)
    if result["value"].ndim == 0:
        gradients, forward = result.get("grad"), result.get("forward_grad")
        if gradients and forward and not entry.modes_differ:
            for i in [i for i in forward if inputs[i].dtype == jnp.float64]:
                assert agree(gradients[i], forward[i]), f"{name}: the gradient is\n{gradients}\nand forward\n{forward}"
        gradients = gradients or forward
        line["grad"] = [write_array(gradients[i]) if i in gradients else None for i in range(len(inputs))]
        if entry.modes_differ:
            assert not agree(gradients[0], forward[0]), f"{name}: both modes agree"
            line["forward_grad"] = write_array(forward[0])
    return json.dumps(line, separators=(",", ":"))


def main():
    import functions_basic
    import functions_control_flow
    import functions_models
    import functions_signals

    folder = pathlib.Path(__file__).parents[2] / "crates/gradus/tests/data"
    folder.mkdir(exist_ok=True)
    for file, modules in {
        "functions.jsonl": [functions_basic, functions_models],
        "signals.jsonl": [functions_signals],
        "control_flow.jsonl": [functions_control_flow],
    }.items():
        entries = [e for m in modules for e in m.functions.entries]
        assert len({e.name for e in entries}) == len(entries), "a name stands twice"
        lines = [describe(e) for e in entries]
        (folder / file).write_text("\n".join(lines) + "\n")
        print(f"{len(lines)} functions in {file}")


if __name__ == "__main__":
    main()

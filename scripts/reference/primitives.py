"""Values of every primitive's samples by another implementation.

    cargo run -q -p gradus-core --example dump_samples > samples.jsonl
    python -m venv venv && venv/bin/pip install -r scripts/reference/requirements.txt
    venv/bin/python scripts/reference/primitives.py samples.jsonl > crates/gradus-core/tests/data/primitives.jsonl

Each line of the result is a sample with its `outputs`, who computed them (`by`), and the `derivatives` of the outputs
in the direction of the sample's tangents by JAX's own rules (null where JAX has none): what is right at a kink or a tie
is a convention, which differences of values cannot tell.

- `jax`: the operation of JAX with the same meaning, in 64-bit mode on the CPU. Structure, integers, NaN, infinities and
  signs of zeros are JAX's. Its compiler takes subnormal numbers for zero; places with one are computed by NumPy.
- `mpmath`: functions that are rounded (`sin`, `lgamma`, ...) are computed with 60 digits and rounded once, so that the
  test can ask for a few units in the last place: several of JAX's own are further off than that. Where the result is
  not a finite number other than zero, JAX is asked; for the polygamma functions at poles and at infinity SciPy.
- `python`: what JAX has no operation for or leaves undefined (integer powers, conversions out of range, sorting
  downwards), written out from the definition.
"""

import fractions
import functools
import json
import math
import re
import sys

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

import jax.numpy as jnp
import ml_dtypes
import mpmath
import numpy as np
import scipy.special
from jax import lax
from jax._src.random import threefry2x32

mpmath.mp.dps = 60

DTYPES = {
    "bool": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}
NAMES = {np.dtype(d): n for n, d in DTYPES.items()}
# Random keys are read and written as the numbers that their bits are.
DTYPES["key"] = np.uint64
# (bits of the significand, smallest exponent of a normal number, largest exponent)
FORMATS = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127), "f64": (53, -1022, 1023)}


# Arrays as text.


def read_float(text):
    return math.nan if text.startswith("nan") else float(text)


def read_element(text, dtype):
    if dtype == "bool":
        return text == "true"
    if dtype[0] in "iuk":
        return int(text)
    if dtype[0] == "c":
        re_, im = text[1:-1].split(",")
        return complex(read_float(re_), read_float(im))
    return read_float(text)


def read_array(entry):
    dtype, dims = re.fullmatch(r"(\w+)\[(.*)\]", entry["type"]).groups()
    shape = [int(d) for d in dims.split(",")] if dims else []
    values = [read_element(t, dtype) for t in entry["values"].split()]
    return np.array(values, dtype=DTYPES[dtype]).reshape(shape)


def write_float(v, dtype):
    if math.isnan(v):
        return "nan"
    # The shortest text that reads back, in the width of the number.
    return str(np.float32(v)) if dtype in ("f32", "c64") else repr(float(v))


def write_array(array, dtype=None):
    dtype = dtype or NAMES[array.dtype]

    def element(v):
        if dtype == "bool":
            return "true" if v else "false"
        if dtype[0] in "iuk":
            return str(int(v))
        if dtype[0] == "c":
            return f"({write_float(v.real, dtype)},{write_float(v.imag, dtype)})"
        return write_float(float(v), dtype)

    shape = ",".join(str(d) for d in array.shape)
    return {"type": f"{dtype}[{shape}]", "values": " ".join(element(v) for v in array.reshape(-1))}


def elementwise(f, *arrays, dtype=None):
    """f of the Python numbers of each place."""
    dtype = arrays[0].dtype if dtype is None else dtype
    flat = [f(*vs) for vs in zip(*(a.reshape(-1).tolist() for a in arrays))]
    return np.array(flat, dtype=dtype).reshape(arrays[0].shape)


# Functions that are rounded: mpmath.


def round_to(x, dtype):
    """An mpf to the nearest number of a float dtype, ties to even, subnormal numbers included."""
    if mpmath.isnan(x):
        return math.nan
    if mpmath.isinf(x) or x == 0:
        return float(x)
    digits, low, high = FORMATS[dtype]
    sign, man, exp, bits = x._mpf_
    top = exp + bits - 1
    unit = max(top, low) - digits + 1
    rounded = int(mpmath.nint(mpmath.ldexp(x, -unit)))  # nint takes ties to even
    if rounded == 0:
        return math.copysign(0.0, -1.0 if sign else 1.0)
    value = mpmath.ldexp(mpmath.mpf(rounded), unit)
    if abs(value) >= mpmath.ldexp(mpmath.mpf(1), high + 1):
        return math.copysign(math.inf, value)
    return float(value)


MP_REAL = {
    "exp": mpmath.exp,
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log1p": mpmath.log1p,
    "sqrt": mpmath.sqrt,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "logistic": lambda x: 1 / (1 + mpmath.exp(-x)),
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "erf_inv": mpmath.erfinv,
    "lgamma": lambda x: mpmath.log(abs(mpmath.gamma(x))),
    "digamma": lambda x: mpmath.psi(0, x),
    "pow": lambda x, y: x**y,
    "atan2": mpmath.atan2,
}
MP_COMPLEX = {k: MP_REAL[k] for k in MP_REAL if k not in ("cbrt", "erf", "erfc", "erf_inv", "lgamma", "digamma", "atan2")}
MP_COMPLEX |= {"mul": lambda x, y: x * y, "div": lambda x, y: x / y, "sign": lambda x: x / abs(x), "abs": abs}


def mp_function(op, params, dtype):
    if op == "polygamma":
        order = params["order"]
        return lambda x: mpmath.psi(order, x)
    if op == "integer_pow" and dtype[0] in "fbc":
        return lambda x: x ** params["exponent"]
    return (MP_COMPLEX if dtype[0] == "c" else MP_REAL).get(op)


def with_digits(f, otherwise, inputs):
    """f in many digits where it has a finite value other than zero; `otherwise` elsewhere."""
    dtype = NAMES[otherwise.dtype]
    flat = otherwise.reshape(-1).copy()
    part = {"c64": "f32", "c128": "f64"}.get(dtype, dtype)

    def better(exact, other):
        if mpmath.isinf(exact) or mpmath.isnan(exact) or exact == 0:
            return other
        rounded = round_to(exact, part)
        # Where a complex number overflows its parts are what the textbook formula makes of infinities.
        return other if dtype[0] == "c" and math.isinf(rounded) else rounded

    for i, xs in enumerate(zip(*(x.reshape(-1) for x in inputs))):
        if dtype[0] == "c":
            if not all(np.isfinite(x) for x in xs):
                continue
            try:
                # Large and small parts meet in logarithms of complex numbers: every digit between them is needed.
                sizes = [abs(v) for x in xs for v in (x.real, x.imag) if v]
                with mpmath.workdps(60 + int(2.2 * max(abs(math.log10(v)) for v in [*sizes, 1]))):
                    y = mpmath.mpc(f(*(mpmath.mpc(complex(x)) for x in xs)))
            except (ValueError, ZeroDivisionError, OverflowError, mpmath.libmp.NoConvergence):
                continue
            flat[i] = complex(better(y.real, float(flat[i].real)), better(y.imag, float(flat[i].imag)))
            continue
        if not all(np.isfinite(x) for x in xs):
            continue
        try:
            y = f(*(mpmath.mpc(complex(x)) if np.iscomplexobj(x) else mpmath.mpf(float(x)) for x in xs))
        except (ValueError, ZeroDivisionError, OverflowError, mpmath.libmp.NoConvergence):
            continue
        if isinstance(y, mpmath.mpc):
            continue
        flat[i] = better(y, float(flat[i]))
    return flat.reshape(otherwise.shape)


# What JAX does not define: from the definition.


def wrap(v, dtype):
    bits = np.dtype(dtype).itemsize * 8
    v &= (1 << bits) - 1
    return v - (1 << bits) if np.issubdtype(dtype, np.signedinteger) and v >> (bits - 1) else v


def int_pow(x, y):
    """By wrapping multiplication; a negative power is 1 / x^|y| toward zero, of 0 what division by zero is."""

    def one(a, b):
        if b >= 0:
            return wrap(pow(a, b, 1 << 64), x.dtype)
        return {1: 1, -1: -1 if b % 2 else 1, 0: -1}.get(a, 0)

    return elementwise(one, x, y)


def convert(x, to):
    """As in Rust: toward zero and saturating from floats to integers, NaN to 0; integers wrap; nonzero is true."""
    to = np.dtype(DTYPES[to])
    if to == np.bool_:
        return elementwise(lambda v: v != 0, x, dtype=to)
    floats = not np.issubdtype(x.dtype, np.integer) and x.dtype != np.bool_
    if floats and np.issubdtype(to, np.integer):
        info = np.iinfo(to)

        def one(v):
            if math.isnan(v):
                return 0
            return info.max if v >= info.max else info.min if v <= info.min else int(v)

        return elementwise(one, x.astype(np.float64), dtype=to)
    return None


def sort_descending(inputs, axis, keys):
    """Stable, by the first `keys` operands, NaN before all numbers and -0 beside 0."""

    def order(a, b):
        for x, y in zip(a, b):
            xs, ys = ([v.real, v.imag] if isinstance(v, complex) else [v] for v in (x, y))
            for p, q in zip(xs, ys):
                p_nan, q_nan = p != p, q != q
                if p_nan != q_nan:
                    return -1 if p_nan else 1
                if not p_nan and p != q:
                    return -1 if p > q else 1
        return 0

    moved = [np.moveaxis(x, axis, -1) for x in inputs]
    outputs = [m.copy() for m in moved]
    for at in np.ndindex(*moved[0].shape[:-1]):
        rows = [m[at].tolist() for m in moved]
        places = sorted(
            range(moved[0].shape[-1]),
            key=functools.cmp_to_key(lambda i, j: order([r[i] for r in rows[:keys]], [r[j] for r in rows[:keys]])),
        )
        for m, o in zip(moved, outputs):
            o[at] = m[at][places]
    return [np.moveaxis(o, -1, axis) for o in outputs]


# Random bits, by what JAX's own generator gives.


def keys_of(x):
    return [(int(k) >> 32, int(k) & 0xFFFFFFFF) for k in x.ravel()]


def threefry(key, counter):
    words = [np.array([w], np.uint32) for w in (*key, *counter)]
    high, low = threefry2x32.threefry2x32_p.bind(*(jnp.asarray(w) for w in words))
    return int(high[0]) << 32 | int(low[0])


def random_bits(x, dtype, shape):
    keys = jax.random.wrap_key_data(jnp.array(keys_of(x), jnp.uint32).reshape(-1, 2))
    if dtype == "key":
        draws = [jax.random.key_data(jax.random.split(k, shape)).astype(np.uint64) for k in keys]
        draws = [d[..., 0] << np.uint64(32) | d[..., 1] for d in draws]
        return np.array(draws, np.uint64).reshape(x.shape + shape)
    draws = [jax.random.bits(k, shape, DTYPES[dtype]) for k in keys]
    return np.array(draws, DTYPES[dtype]).reshape(x.shape + shape)


# The operations of JAX.

COMPARE = {"eq": lax.eq, "ne": lax.ne, "lt": lax.lt, "le": lax.le, "gt": lax.gt, "ge": lax.ge}
SCATTER = {
    "set": lax.scatter,
    "add": lax.scatter_add,
    "mul": lax.scatter_mul,
    "min": lax.scatter_min,
    "max": lax.scatter_max,
}
SAME_NAME = """neg sign floor ceil exp expm1 log log1p sqrt rsqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh
acosh atanh logistic erf erfc erf_inv lgamma digamma is_finite add sub mul div rem max min atan2 nextafter complex real
imag conj clamp select shift_left shift_right_logical shift_right_arithmetic cumsum cumprod cummax cummin""".split()
UNSIGNED_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def gather(x, indices, p):
    dims = lax.GatherDimensionNumbers(
        offset_dims=tuple(p["offset_dims"]),
        collapsed_slice_dims=tuple(p["collapsed_dims"]),
        start_index_map=tuple(p["index_map"]),
        operand_batching_dims=tuple(p["operand_batch_dims"]),
        start_indices_batching_dims=tuple(p["index_batch_dims"]),
    )
    # What a bool out of range is, JAX leaves to its user.
    filling = False if x.dtype == np.bool_ else None
    return lax.gather(x, indices, dims, slice_sizes=tuple(p["sizes"]), mode=p["bounds"], fill_value=filling)


def scatter(x, indices, updates, p):
    dims = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(p["update_window_dims"]),
        inserted_window_dims=tuple(p["inserted_dims"]),
        scatter_dims_to_operand_dims=tuple(p["index_map"]),
        operand_batching_dims=tuple(p["operand_batch_dims"]),
        scatter_indices_batching_dims=tuple(p["index_batch_dims"]),
    )
    return SCATTER[p["kind"]](x, indices, updates, dims, mode=lax.GatherScatterMode.FILL_OR_DROP)


def windows(x, p):
    for axis, size, stride, dilation in zip(p["axes"], p["sizes"], p["strides"], p["dilations"]):
        count = (x.shape[axis] - (size - 1) * dilation - 1) // stride + 1
        places = np.arange(count)[:, None] * stride + np.arange(size)[None] * dilation
        x = jnp.moveaxis(jnp.take(x, places, axis=axis), axis + 1, -1)
    return x


def convolve(x, w, p):
    d = len(p["strides"])
    spatial = tuple(range(1, d + 1))
    dims = lax.ConvDimensionNumbers((0, d + 1, *spatial), (d + 1, d, *range(d)), (0, d + 1, *spatial))
    wide = np.float32 if x.dtype.itemsize == 2 and NAMES[x.dtype] in FORMATS else x.dtype
    y = lax.conv_general_dilated(
        x,
        w,
        p["strides"],
        list(zip(p["low"], p["high"])),
        lhs_dilation=p["image_dilation"],
        rhs_dilation=p["kernel_dilation"],
        dimension_numbers=dims,
        feature_group_count=p["feature_groups"],
        batch_group_count=p["batch_groups"],
        preferred_element_type=wide,
    )
    return lax.convert_element_type(y, x.dtype)


def reduce_window(x, p):
    low, high = -np.inf, np.inf
    if x.dtype.kind in "iu":
        low, high = np.iinfo(x.dtype).min, np.iinfo(x.dtype).max
    init, f = {"sum": (0, lax.add), "prod": (1, lax.mul), "max": (low, lax.max), "min": (high, lax.min)}[p["kind"]]
    return lax.reduce_window(
        x,
        np.asarray(init, x.dtype)[()],
        f,
        tuple(p["sizes"]),
        tuple(p["strides"]),
        list(zip(p["low"], p["high"])),
        tuple(p["base_dilation"]),
        tuple(p["window_dilation"]),
    )


# Decompositions. What is not unique is brought to one form, in the language of JAX, so that derivatives are those of that form.


def hermitian(x):
    """The matrix of which an operation reads the lower triangle."""
    strict = jnp.tril(x, -1)
    diagonal = jnp.real(jnp.diagonal(x, axis1=-2, axis2=-1))[..., None] * jnp.eye(x.shape[-1])
    return strict + jnp.swapaxes(strict, -1, -2).conj() + diagonal.astype(x.dtype)


def phases(v):
    """For each column the phase of its first component that is at least half as large as its largest."""
    if v.shape[-2] == 0:
        return jnp.ones_like(v[..., :1, :])
    size = jnp.abs(v)
    lead = jnp.argmax(2 * size >= jnp.max(size, axis=-2, keepdims=True), axis=-2, keepdims=True)
    lead = jnp.take_along_axis(v, lax.stop_gradient(lead), axis=-2)
    return lead / jnp.abs(lead) if jnp.iscomplexobj(v) else jnp.sign(lead)


def eigh(x, vectors):
    w, v = jnp.linalg.eigh(hermitian(x), symmetrize_input=False)
    return [w, v / phases(v)] if vectors else [w]


def svd(x, full, vectors):
    if not vectors:
        return [jnp.linalg.svd(x, compute_uv=False)]
    u, s, vh = jnp.linalg.svd(x, full_matrices=full)
    k, turn = s.shape[-1], phases(u)
    v = jnp.swapaxes(vh, -1, -2).conj()
    v = jnp.concatenate([v[..., :k] / turn[..., :k], v[..., k:] / phases(v[..., k:])], axis=-1)
    return [u / turn, s, jnp.swapaxes(v, -1, -2).conj()]


def qr(x, full):
    q, r = jnp.linalg.qr(x, mode="complete" if full else "reduced")
    if jnp.iscomplexobj(x) and x.size:
        d = jnp.diagonal(r, axis1=-2, axis2=-1)
        turn = d / jnp.abs(d)
        q, r = q * turn[..., None, :], r * turn.conj()[..., :, None]
    return [q, r]


def eig(x, vectors):
    # Vectors have a derivative for those who ask for it, and who have a matrix.
    w, v = lax.linalg.eig(x, compute_left_eigenvectors=False, enable_eigvec_derivs=True) if x.size else jnp.linalg.eig(x)
    order = lax.stop_gradient(jnp.lexsort((w.imag, w.real), axis=-1))
    w = jnp.take_along_axis(w, order, axis=-1)
    if not vectors:
        return [w]
    v = jnp.take_along_axis(v, order[..., None, :], axis=-1)
    v = v / jnp.sqrt(jnp.sum((v * v.conj()).real, axis=-2, keepdims=True))
    return [w, v / phases(v)]


def by_jax(op, p, xs):
    x = xs[0] if xs else None
    if op in SAME_NAME:
        f = {"select": lax.select, "cumsum": lax.cumsum}.get(op) or getattr(lax, op)
        return f(*xs, **{k: p[k] for k in ("axis", "reverse") if k in p})
    match op:
        case "abs":
            return x if np.issubdtype(x.dtype, np.unsignedinteger) else lax.abs(x)
        case "round":
            return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
        case "trunc":
            return jnp.trunc(x)
        case "not" | "and" | "or" | "xor":
            return getattr(lax, f"bitwise_{op}")(*xs)
        case "popcount":
            return lax.population_count(x)
        case "count_leading_zeros":
            return lax.clz(x)
        case "integer_pow":
            return lax.integer_pow(x, p["exponent"])
        case "pow":
            return lax.pow(*xs)
        case "polygamma":
            return lax.polygamma(jnp.full_like(x, p["order"]), x)
        case "compare":
            return COMPARE[p["direction"]](*xs)
        case "convert":
            return lax.convert_element_type(x, DTYPES[p["dtype"]])
        case "bitcast":
            return lax.bitcast_convert_type(x, DTYPES[p["dtype"]])
        case "iota":
            return lax.broadcasted_iota(DTYPES[p["dtype"]], tuple(p["shape"]), p["axis"])
        case "broadcast":
            return lax.broadcast_in_dim(x, tuple(p["shape"]), tuple(p["axes"]))
        case "reshape":
            return lax.reshape(x, tuple(p["shape"]))
        case "transpose":
            return lax.transpose(x, tuple(p["axes"]))
        case "reverse":
            return lax.rev(x, tuple(p["axes"]))
        case "slice":
            return lax.slice(x, p["start"], p["limit"], p["step"])
        case "pad":
            return lax.pad(x, xs[1], list(zip(p["low"], p["high"], p["interior"])))
        case "concatenate":
            return lax.concatenate(xs, p["axis"])
        case "dynamic_slice":
            # The public function first wraps negative starts; the operation itself clamps them.
            return lax.dynamic_slice_p.bind(x, *xs[1:], slice_sizes=tuple(p["sizes"]))
        case "dynamic_update_slice":
            return lax.dynamic_update_slice_p.bind(*xs)
        case "gather":
            return gather(x, xs[1], p)
        case "scatter":
            return scatter(*xs, p)
        case "reduce_sum" | "reduce_prod" | "reduce_max" | "reduce_min" | "reduce_and" | "reduce_or":
            return getattr(lax, op)(x, tuple(p["axes"]))
        case "argmax" | "argmin":
            return getattr(lax, op)(x, p["axis"], DTYPES[p["dtype"]])
        case "dot_general":
            dims = ((p["lhs_contract"], p["rhs_contract"]), (p["lhs_batch"], p["rhs_batch"]))
            wide = np.float32 if x.dtype.itemsize == 2 and NAMES[x.dtype] in FORMATS else x.dtype
            return lax.convert_element_type(lax.dot_general(*xs, dims, preferred_element_type=wide), x.dtype)
        case "windows":
            return windows(x, p)
        case "convolve":
            return convolve(*xs, p)
        case "reduce_window":
            return reduce_window(x, p)
        case "fft":
            kind = {"forward": "FFT", "inverse": "IFFT", "real_forward": "RFFT", "real_inverse": "IRFFT"}[p["kind"]]
            return lax.fft(x, getattr(lax.FftType, kind), tuple(p["lengths"]))
        case "sort":
            return lax.sort(xs, dimension=p["axis"], is_stable=True, num_keys=p["keys"])
        case "top_k":
            return lax.top_k(x, p["k"])
        case "cholesky":
            return lax.linalg.cholesky(hermitian(x), symmetrize_input=False)
        case "triangular_solve":
            kind = {"lower": p["lower"], "transpose_a": p["transpose"], "unit_diagonal": p["unit_diagonal"]}
            return lax.linalg.triangular_solve(*xs, left_side=True, **kind)
        case "lu":
            return lax.linalg.lu(x)
        case "solve":
            return jnp.linalg.solve(jnp.swapaxes(x, -1, -2) if p["transpose"] else x, xs[1])
        case "slogdet":
            return list(jnp.linalg.slogdet(x))
        case "pinv":
            return jnp.linalg.pinv(x) if x.size else jnp.swapaxes(x, -1, -2)
        case "eigh":
            return eigh(x, p["vectors"])
        case "svd":
            return svd(x, p["full"], p["vectors"])
        case "qr":
            return qr(x, p["full"])
        case "eig":
            return eig(x, p["vectors"])
    raise KeyError(op)


def by_python(op, p, xs):
    """None if the operation is JAX's."""
    x = xs[0] if xs else None
    match op:
        case "pow" | "integer_pow" if np.issubdtype(x.dtype, np.integer):
            return [int_pow(x, xs[1] if op == "pow" else np.full_like(x, p["exponent"]))]
        case "convert":
            y = convert(x, p["dtype"])
            return None if y is None else [y]
        case "sort" if p["descending"]:
            return sort_descending(xs, p["axis"], p["keys"])
        case "top_k" if x.dtype == np.bool_:
            places = np.broadcast_to(np.arange(x.shape[-1], dtype=np.int32), x.shape)
            return [y[..., : p["k"]] for y in sort_descending([x, places], x.ndim - 1, 1)]
        case "mul_add":
            exact = lambda x, y, z: float(fractions.Fraction(x) * fractions.Fraction(y) + fractions.Fraction(z))
            # A float32 sum that is rounded by way of a float64 may be rounded twice; none of the samples is such a one.
            return [elementwise(exact, *xs)]
        case "random_bits":
            return [random_bits(x, p["dtype"], tuple(p["shape"]))]
        case "fold_in":
            return [np.array([threefry(k, (0, int(d))) for k, d in zip(keys_of(x), xs[1].ravel())], np.uint64).reshape(x.shape)]
        case "size":
            return [np.array(p["dim"], dtype=DTYPES[p["dtype"]])]
    return None


NUMPY = {
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rem": np.fmod,
    "max": np.maximum,
    "min": np.minimum,
}
NUMPY_COMPARE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def with_subnormals(op, params, y, inputs):
    """NumPy's value in the places where an operand or the result is subnormal."""
    f = NUMPY_COMPARE[params["direction"]] if op == "compare" else NUMPY.get(op)
    if f is None or NAMES[inputs[0].dtype] not in FORMATS:
        return y

    def small(x):
        return (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny) if x.dtype == np.float64 else np.zeros(x.shape, bool)

    with np.errstate(all="ignore"):
        other = f(*inputs)
    places = functools.reduce(np.logical_or, [small(x) for x in (*inputs, other)])
    return np.where(places, other, y).astype(y.dtype)


def gamma_places(op, params, y, x):
    """SciPy's value of the polygamma functions where it is infinite, and at infinity; JAX has NaN there."""
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        other = scipy.special.digamma(wide) if op == "digamma" else scipy.special.polygamma(params["order"], wide)
    places = np.isinf(other) | np.isinf(wide)
    return np.where(places, other, y).astype(y.dtype)


def evaluate(op, params, inputs):
    outputs = by_python(op, params, inputs)
    if outputs is not None:
        return outputs, "python"
    result = by_jax(op, params, inputs)
    outputs = [np.asarray(y) for y in (result if isinstance(result, (list, tuple)) else [result])]
    if op in ("digamma", "polygamma"):
        outputs = [gamma_places(op, params, outputs[0], inputs[0])]
    if op in ("eigh", "svd", "eig") and not np.isfinite(inputs[0]).all():
        # What LAPACK makes of such a matrix depends on its size.
        return [np.full_like(y, complex(np.nan, np.nan) if np.iscomplexobj(y) else np.nan) for y in outputs], "python"
    f = mp_function(op, params, NAMES[inputs[0].dtype]) if inputs else None
    if f is not None:
        return [with_digits(f, outputs[0], inputs)], "mpmath"
    if inputs and len(outputs) == 1:
        outputs = [with_subnormals(op, params, outputs[0], inputs)]
    return outputs, "jax"


def derivatives(op, params, inputs, tangents):
    """JAX's forward derivative of each result; None for results without one, and if JAX has no rule."""
    active = [i for i, t in enumerate(tangents) if t is not None]
    if not active or by_python(op, params, inputs) is not None:
        return None

    def f(*varying):
        xs = list(inputs)
        for i, x in zip(active, varying):
            xs[i] = x
        y = by_jax(op, params, xs)
        return y if isinstance(y, (list, tuple)) else [y]

    try:
        _, outputs = jax.jvp(f, [jnp.asarray(inputs[i]) for i in active], [jnp.asarray(tangents[i]) for i in active])
    except NotImplementedError:
        return None
    return [None if y.dtype == jax.dtypes.float0 else np.asarray(y) for y in outputs]


def main():
    for line in open(sys.argv[1]):
        sample = json.loads(line)
        try:
            inputs = [read_array(a) for a in sample["inputs"]]
            tangents = [t and read_array(t) for t in sample["tangents"]]
            outputs, by = evaluate(sample["op"], sample["params"], inputs)
            dots = derivatives(sample["op"], sample["params"], inputs, tangents)
        except Exception as e:
            raise RuntimeError(f"no value for {line}") from e
        sample["by"] = by
        keys = sample["params"].get("dtype") == "key" or sample["op"] == "fold_in"
        sample["outputs"] = [write_array(np.asarray(y), "key" if keys else None) for y in outputs]
        sample["derivatives"] = dots and [None if y is None else write_array(y) for y in dots]
        print(json.dumps(sample, separators=(",", ":")))


main()

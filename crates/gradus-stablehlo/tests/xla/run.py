# Runs every exported program of a folder on XLA's CPU and compares with what the interpreter gave.
# usage: run.py FOLDER; the folder has cases.txt: a line for each case, fields separated by tabs:
# name, program, tolerance, then for each array: "in" or "out", dtype, dims, file
import sys, os
import numpy as np, jax, ml_dtypes
jax.config.update("jax_platforms", "cpu"); jax.config.update("jax_enable_x64", True)
from jax._src.interpreters import mlir as jmlir
from jax._src.lib import xla_client as xc
from jaxlib.mlir import ir
NAMES = {"bool": np.bool_, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "c64": np.complex64,
         "c128": np.complex128, "key": np.uint64, **{f"i{n}": np.dtype(f"int{n}") for n in (8, 16, 32, 64)},
         **{f"u{n}": np.dtype(f"uint{n}") for n in (8, 16, 32, 64)}}
folder = sys.argv[1]
dev = jax.devices()[0]

def load(dtype, dims, path):
    dims = [int(d) for d in dims.split(",") if d]
    return np.fromfile(os.path.join(folder, path), dtype=NAMES[dtype]).reshape(dims)

def unsure(name, ins, want):
    # Elements that XLA is known to compute otherwise: of subnormal numbers, which it takes for zeros; poles of gamma functions; complex numbers whose squares leave the range.
    skip = np.zeros(want.shape, bool)
    for x in ins:
        if x.shape == want.shape and x.dtype.kind in "fc" or x.dtype == ml_dtypes.bfloat16 and x.shape == want.shape:
            parts = [x] if x.dtype.kind != "c" else [x.real, x.imag]
            for p in parts:
                p = p.astype(np.float64)
                tiny = 2.3e-308 if x.dtype in (np.float64, np.complex128) else 1.2e-38 if x.dtype.itemsize >= 4 or x.dtype == ml_dtypes.bfloat16 else 6.2e-5
                skip |= (p != 0) & (np.abs(p) < tiny)
                if name in ("digamma", "polygamma"): skip |= (p == 0) | np.isinf(p)
                if x.dtype.kind == "c" and name in ("sin", "sinh", "pow"): skip |= (np.abs(p) < 1e-150) | (np.abs(p) > 1e150)
    if want.dtype.kind == "c": skip |= ~(np.isfinite(want.real) & np.isfinite(want.imag))
    return skip

def compare(want, have, tolerance, skip):
    if want.shape != have.shape or want.dtype != have.dtype:
        return f"type {have.dtype}{have.shape} for {want.dtype}{want.shape}"
    if want.dtype.kind in "biu":
        return None if (want == have).all() else f"{have.ravel()[:8]} for {want.ravel()[:8]}"
    kind = np.complex128 if want.dtype.kind == "c" else np.float64
    small = {2: 2 ** -7 if want.dtype == ml_dtypes.bfloat16 else 2 ** -10, 4: 2 ** -23, 8: 2 ** -52, 16: 2 ** -52}[want.dtype.itemsize]
    if want.dtype == np.complex64: small = 2 ** -23
    tiny = {np.dtype(np.float16): 6.2e-5, np.dtype(np.float64): 2.3e-308, np.dtype(np.complex128): 2.3e-308}.get(want.dtype, 1.2e-38)
    worst = None
    for w, h in ([(want, have)] if kind is np.float64 else [(want.real, have.real), (want.imag, have.imag)]):
        w, h = w.astype(np.float64), h.astype(np.float64)
        size = np.abs(want.astype(kind)) if kind is np.complex128 else np.abs(w)
        if tolerance >= 1e5 and size.size: size = np.full_like(size, np.nanmax(np.where(np.isfinite(size), size, 0)))
        with np.errstate(all="ignore"):
            good = skip | (w == h) | (np.isnan(w) & np.isnan(h)) | (np.abs(w - h) <= tolerance * small * size) | (np.maximum(np.abs(w), np.abs(h)) < tiny)
            if not good.all():
                at = np.argmax(~good.ravel())
                worst = f"[{at}] {h.ravel()[at]!r} for {w.ravel()[at]!r} ({np.abs(w - h).ravel()[at] / (small * max(size.ravel()[at], 1e-300)):.3g} ulp)"
    return worst

bad = total = 0
with jmlir.make_ir_context():
    for line in open(os.path.join(folder, "cases.txt")):
        name, program, tolerance, *rest = line.rstrip("\n").split("\t")
        arrays = [tuple(rest[i:i + 4]) for i in range(0, len(rest), 4)]
        total += 1
        try:
            text = open(os.path.join(folder, program)).read()
            mod = ir.Module.parse(text)
            exe = dev.client.compile_and_load(text, xc.DeviceList((dev,)), xc.CompileOptions()) if hasattr(xc, "DeviceList") else dev.client.compile_and_load(text, [dev], xc.CompileOptions())
            ins = [jax.device_put(load(*a[1:]), dev) for a in arrays if a[0] == "in"]
            want = [load(*a[1:]) for a in arrays if a[0] == "out"]
            have = [np.asarray(s[0]) for s in exe.execute_sharded(ins).disassemble_into_single_device_arrays()]
            faults = [f"result {i}: {f}" for i, (w, h) in enumerate(zip(want, have)) if tolerance != "inf" and (f := compare(w, h, float(tolerance), unsure(name.rsplit("-", 1)[0], [np.asarray(x) for x in ins], w)))]
            if len(want) != len(have): faults.append(f"{len(have)} results for {len(want)}")
        except Exception as e:
            faults = [f"{type(e).__name__}: {str(e)[:600]}"]
        if faults:
            bad += 1
            print("FAILED", name, program, *faults, sep="\n   ", flush=True)
print(f"{total - bad} of {total} agree", flush=True)
sys.exit(bad != 0)

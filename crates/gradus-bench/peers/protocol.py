"""The line protocol that the Python peers speak, and the numbers that inputs are made of.

    prepare CASE SIZE DTYPE INPUT...   ok NANOSECONDS (of the first call) | missing | error TEXT
    run REPS                           NANOSECONDS NANOSECONDS (of one call: on the wall, and of all cores)
    check                              for each result: COUNT NORM VALUE,VALUE,... joined by ';'
    memory                             BYTES (scratch of the compiled program) | none
    version                            TEXT

SIZE is `256x64`, or `-` for none. INPUT is `SHAPE:LOW:HIGH` (uniform numbers), `SHAPE:onehot` or `SHAPE:places:LENGTH` (integers below
LENGTH). Its place is its seed; with `@SEED:SKIPPED` behind it the numbers are those of another place, behind the first SKIPPED.
"""

import math
import sys
import time

import numpy as np

# As many values of each result as are compared.
SAMPLES = 64


def unit(seed, n, skipped=0):
    """n numbers in [0, 1): SplitMix64."""
    with np.errstate(over="ignore"):
        i = np.arange(skipped + 1, skipped + n + 1, dtype=np.uint64)
        z = i * np.uint64(0x9E3779B97F4A7C15) + np.uint64((seed * 0xD1B54A32D192ED03) % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) / 2.0**53


def sizes(text):
    return () if text == "-" else tuple(int(n) for n in text.split("x"))


def make_input(seed, words, dtype):
    words, _, source = words.partition("@")
    seed, skipped = [int(n) for n in source.split(":")] if source else (seed, 0)
    shape, *rest = words.split(":")
    shape = sizes(shape)
    n = math.prod(shape)
    if rest[0] == "onehot":
        rows, width = n // shape[-1], shape[-1]
        values = np.zeros((rows, width))
        values[np.arange(rows), (unit(seed, rows, skipped) * width).astype(np.int64)] = 1.0
    elif rest[0] == "places":
        return (unit(seed, n, skipped) * int(rest[1])).astype(np.int64).reshape(shape)
    else:
        low, high = float(rest[0]), float(rest[1])
        values = low + (high - low) * unit(seed, n, skipped)
    return np.asarray(values.reshape(shape), dtype=dtype)


def described(result):
    values = np.asarray(result, dtype=np.float64).ravel()
    k = min(len(values), SAMPLES)
    places = [0] if k == 1 else [i * (len(values) - 1) // (k - 1) for i in range(k)]
    norm = float(np.sqrt(np.dot(values, values)))
    return f"{len(values)} {norm!r} " + ",".join(repr(float(values[i])) for i in places)


def serve(peer):
    """Answers lines until there are no more. A peer has prepare, run, results, memory and version."""
    for line in sys.stdin:
        words = line.split()
        try:
            if words[0] == "prepare":
                name, size, dtype = words[1], sizes(words[2]), np.dtype(words[3])
                if name not in peer.cases:
                    answer = "missing"
                else:
                    inputs = [make_input(seed, w, dtype) for seed, w in enumerate(words[4:])]
                    answer = f"ok {peer.prepare(peer.cases[name](*size), inputs)}"
            elif words[0] == "run":
                reps = int(words[1])
                cores, started = time.process_time_ns(), time.perf_counter_ns()
                peer.run(reps)
                wall, cores = time.perf_counter_ns() - started, time.process_time_ns() - cores
                answer = f"{wall / reps!r} {cores / reps!r}"
            elif words[0] == "check":
                answer = ";".join(described(r) for r in peer.results())
            elif words[0] == "memory":
                answer = str(peer.memory())
            elif words[0] == "version":
                answer = peer.version()
            else:
                answer = f"error unknown word {words[0]}"
        except Exception as e:  # the driver prints it beside the case
            answer = "error " + " ".join(f"{type(e).__name__}: {e}".split())[:300]
        print(answer, flush=True)

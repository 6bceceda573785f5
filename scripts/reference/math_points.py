"""Exact values of the elementary functions: writes `crates/gradus-core/tests/data/math.txt`.

    python -m venv venv && venv/bin/pip install mpmath==1.4.1
    venv/bin/python scripts/reference/math_points.py > crates/gradus-core/tests/data/math.txt

A line is a function and then, for each point, the bits of its arguments and of the `f64` nearest to the value, in
hexadecimal. Points are spread over the range where something happens, and crowd where an implementation goes wrong:
beside overflow and underflow, zeros of the function, ends of the domain, subnormal numbers, multiples of π/2.
"""

import math
import random
import struct

import mpmath as mp

mp.mp.dps = 400
EACH = 60


def bits(v):
    return f"{struct.unpack('<Q', struct.pack('<d', v))[0]:x}"


def nearest(v):
    """The nearest `f64`. mpmath's own conversion rounds subnormal numbers twice."""
    if v == 0 or not mp.isfinite(v):
        return float(v)
    low = max(math.floor(mp.log(abs(v), 2)) - 52, -1074)
    whole = int(mp.nint(mp.ldexp(v, -low)))
    try:
        return math.copysign(math.ldexp(whole, low), v)
    except OverflowError:
        return math.inf if v > 0 else -math.inf


def spread(low, high):
    return [random.uniform(low, high) for _ in range(EACH)]


def scales(low, high, sign=True):
    """Numbers of all sizes between two powers of ten."""
    signs = [1, -1] if sign else [1]
    return [random.choice(signs) * 10 ** random.uniform(low, high) for _ in range(EACH)]


def beside(*centres, steps=3):
    """Numbers and their neighbours."""
    found = []
    for c in centres:
        found.append(float(c))
        for direction in (math.inf, -math.inf):
            v = float(c)
            for _ in range(steps):
                v = math.nextafter(v, direction)
                found.append(v)
    return found


SMALL = [5e-324, -5e-324, 1e-320, -3e-310, 2.2250738585072014e-308, -1e-300, 1e-200, 1e-30, -1e-17, 1e-9, -1e-5]
TURNS = beside(*[mp.mpf(k) * mp.pi / 2 for k in (1, 2, 3, 4, 5, 7, 100, 1001, 12345678, 10**11 + 7)], steps=1)
# Numerators of good fractions for π: multiples of it that are nearly whole numbers.
TURNS += [22.0, 355.0, 104348.0, 312689.0, 80143857.0, 6167950454.0, 8958937768937.0, 4.28224593349304e14]
HUGE = [1.1e13, -1e15, 1e22, 6381956970095103.0 * 2.0**797, -1e300, 1.7976931348623157e308]


def logistic(x):
    return 1 / (1 + mp.exp(-x))


UNARY = {
    "exp": (mp.exp, lambda: spread(-1, 1) + spread(-745, 709) + spread(-746, -708) + SMALL
            + beside(709.782712893384, -708.3964185322641, -745.1332191019412, math.log(2) / 2)),
    "expm1": (mp.expm1, lambda: spread(-1, 1) + spread(-40, 709) + scales(-20, 0) + SMALL
              + beside(709.782712893384, math.log(2) / 2, -math.log(2) / 2, -37.4, 0.25)),
    "log": (mp.log, lambda: spread(0.5, 2) + scales(-323, 308, False) + beside(1, math.sqrt(2), math.sqrt(0.5), 2, steps=6)
            + [v for v in SMALL if v > 0] + [1.7976931348623157e308]),
    "log1p": (mp.log1p, lambda: spread(-1, 1) + scales(-20, 0) + scales(0, 308, False) + SMALL
              + beside(math.sqrt(2) - 1, math.sqrt(0.5) - 1, -0.9999999999999999, 1)),
    "logistic": (logistic, lambda: spread(-2, 2) + spread(-40, 40) + spread(-746, -700) + SMALL
                 + beside(-745.1332191019412, 36.7368005696771, -708.3964185322641, -36.7)),
    "tanh": (mp.tanh, lambda: spread(-1, 1) + spread(-20, 20) + scales(-20, 0) + SMALL
             + beside(math.log(2) / 4, 19.06, 0.55)),
    "sinh": (mp.sinh, lambda: spread(-1, 1) + spread(-710, 710) + scales(-20, 0) + SMALL
             + beside(710.4758600739439, math.log(2) / 2, 0.4)),
    "cosh": (mp.cosh, lambda: spread(-1, 1) + spread(-710, 710) + SMALL + beside(710.4758600739439, math.log(2) / 2)),
    "sin": (mp.sin, lambda: spread(-2, 2) + spread(-100, 100) + scales(2, 13) + scales(13, 308) + SMALL + TURNS + HUGE),
    "cos": (mp.cos, lambda: spread(-2, 2) + spread(-100, 100) + scales(2, 13) + scales(13, 308) + SMALL + TURNS + HUGE),
    "tan": (mp.tan, lambda: spread(-2, 2) + spread(-100, 100) + scales(2, 13) + scales(13, 308) + SMALL + TURNS + HUGE),
    "asin": (mp.asin, lambda: spread(-1, 1) + scales(-20, 0) + SMALL + beside(0.5, -0.5)
             + [1 - 2.0**-k for k in (5, 20, 53)] + [1.0, -1.0]),
    "acos": (mp.acos, lambda: spread(-1, 1) + scales(-20, 0) + SMALL + beside(0.5, -0.5)
             + [1 - 2.0**-k for k in (5, 20, 53)] + [1.0, -1.0, -1 + 2.0**-30]),
    "atan": (mp.atan, lambda: spread(-2, 2) + scales(-20, 20) + SMALL + beside(1, math.sqrt(2) - 1) + HUGE),
    "asinh": (mp.asinh, lambda: spread(-2, 2) + scales(-20, 308) + SMALL + beside(1, 0.5) + HUGE),
    "acosh": (mp.acosh, lambda: spread(1, 3) + scales(0, 308, False) + beside(2, 1.5)
              + [1 + 2.0**-k for k in (3, 10, 30, 51, 52)] + [1.7976931348623157e308]),
    "atanh": (mp.atanh, lambda: spread(-1, 1) + scales(-20, 0) + SMALL + beside(0.5)
              + [1 - 2.0**-k for k in (3, 10, 30, 52, 53)]),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), lambda: spread(-8, 8) + scales(-323, 308) + SMALL + beside(1, 8, 27)),
    "erf": (mp.erf, lambda: spread(-1, 1) + spread(-6, 6) + scales(-20, 0) + SMALL + beside(0.5, 1, 5.9)),
    "erfc": (mp.erfc, lambda: spread(-1, 1) + spread(-6, 27.2) + spread(26.5, 27.3) + SMALL + beside(0.5, 1, 26.543, 27.226)),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), lambda: spread(0, 4) + scales(-323, 308, False) + [v for v in SMALL if v > 0]),
}


def powers():
    points = []
    for _ in range(3 * EACH):
        x = random.choice([10 ** random.uniform(-300, 300), random.uniform(0.5, 2), 1 + random.uniform(-1, 1) * 1e-6])
        points.append((x, random.uniform(-745, 709) / math.log(x)))
    points += [(random.uniform(0, 10), random.uniform(-10, 10)) for _ in range(EACH)]
    points += [(-random.uniform(0, 10), float(random.randint(-40, 40))) for _ in range(EACH)]
    points += [(v, random.uniform(0.1, 1.5)) for v in SMALL if v > 0]
    points += [(math.nextafter(1, 2), 3e18), (math.nextafter(1, 0), 3e18), (2.0, -1074.0), (2.0, 1023.5), (10.0, 308.0)]
    return points


def angles():
    points = [(random.uniform(-4, 4), random.uniform(-4, 4)) for _ in range(2 * EACH)]
    points += list(zip(scales(-300, 300), scales(-300, 300)))
    points += list(zip(SMALL, reversed(SMALL))) + [(1e-310, 2e-310), (1e308, 1.5e308), (-1e-320, -1e-300)]
    points += [(5e-324, 1e300), (1e300, 5e-324), (-1e-300, -1e300)]
    return points


def main():
    random.seed(20)
    for name, (f, points) in UNARY.items():
        exact = [(x, f(mp.mpf(x))) for x in points()]
        # Out of the domain mpmath goes on with complex numbers; those points are the tests' own.
        pairs = [(x, nearest(y)) for x, y in exact if isinstance(y, mp.mpf)]
        print(name, *[f"{bits(x)} {bits(y)}" for x, y in pairs])
    for name, f, points in (("pow", mp.power, powers), ("atan2", mp.atan2, angles)):
        found = [(x, y, nearest(f(mp.mpf(x), mp.mpf(y)))) for x, y in points()]
        print(name, *[" ".join(bits(v) for v in point) for point in found])


if __name__ == "__main__":
    main()

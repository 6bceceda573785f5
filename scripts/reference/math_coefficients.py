"""Coefficients of the elementary functions: writes `crates/gradus-core/src/math/coefficients.rs`.

    python -m venv venv && venv/bin/pip install mpmath==1.4.1
    venv/bin/python scripts/reference/math_coefficients.py > crates/gradus-core/src/math/coefficients.rs

Each entry says which function is approximated where, and what an error of it does to the result (the weight). The
largest such error stands beside the coefficients, as a power of two.
"""

import mpmath as mp

from minimax import polynomial, quotient

mp.mp.dps = 60
TINY = mp.mpf(10) ** -10
LN_2 = mp.log(2)
WIDER = mp.mpf("1.002")  # The rounding of n is not exact, so that r may be a little outside its interval.


def emit(name, doc, entries):
    """A constant with the coefficients of `f32` and of `f64`; a width that has no use for it has none."""
    print(f"\n/// {doc}")
    notes = ", ".join(f"`{width}` 2^{mp.nstr(mp.log(error, 2), 3)}" for width, _, error in entries)
    print(f"/// Largest error: {notes}.")
    print(f"pub(super) const {name}: By<&[f64]> = By {{")
    found = {width: c for width, c, _ in entries}
    for field, width in (("narrow", "f32"), ("wide", "f64")):
        print(f"    {field}: &[" + ", ".join(literal(v) for v in found.get(width, [])) + "],")
    print("};")


def literal(v):
    # `f32` coefficients are exact as `f64`, so one notation serves.
    return repr(float(v))


def both(name, doc, f, weight, interval, narrow, wide):
    entries = []
    for width, degree in (("f32", narrow), ("f64", wide)):
        if degree is not None:
            low, high = interval(width) if callable(interval) else interval
            entries.append((width, *polynomial(f, weight, low, high, degree, width == "f64")))
    emit(name, doc, entries)
    return {width: (c, e) for width, c, e in entries}


def main():
    print("//! Coefficients of the elementary functions, made by `scripts/reference/math_coefficients.py`.")
    print("\n#![allow(clippy::excessive_precision, clippy::approx_constant)]\n\nuse super::parts::By;")

    exp_rest = lambda r: (mp.expm1(r) - r) / r**2
    half = LN_2 / 2 * WIDER
    both("EXP", "`(e^r - 1 - r) / r²` for `|r| ≤ ln 2`.", exp_rest, lambda r: r**2 / mp.exp(r),
         (-2 * half, 2 * half), 6, 11)
    # Where r is small the error hardly counts, but a weight of zero would leave the fit undetermined.
    found = both("EXPM1", "`(e^r - 1 - r) / r²` for `|r| ≤ ln 2 / 2`.", exp_rest,
                 lambda r: max(abs(r**2 / mp.expm1(r)), mp.mpf("0.02")), (-half, half), 5, 10)
    scaled = [(w, [v * 2 ** (k + 1) for k, v in enumerate(c)], e) for w, (c, e) in found.items()]
    emit("HALF_EXPM1", "`((e^2r - 1)/2 - r) / r²` for `|r| ≤ ln 2 / 4`: the same, times powers of two.", scaled)
    root = mp.sqrt
    both("SINH", "`(sinh r / r - 1) / r²` as a polynomial in `r²` for `|r| ≤ ln 2 / 2`.",
         lambda z: (mp.sinh(root(z)) / root(z) - 1) / z, lambda z: z, (TINY, half**2), 1, 4)
    both("COSH", "`(cosh r - 1) / r²` as a polynomial in `r²` for `|r| ≤ ln 2 / 2`.",
         lambda z: (mp.cosh(root(z)) - 1) / z, lambda z: z, (TINY, half**2), 2, 5)

    low, high = root(mp.mpf(1) / 2) - 1, root(mp.mpf(2)) - 1
    both("LOG", "`(ln(1 + f) - f) / f²` for `1 + f` between √½ and √2.", lambda f: (mp.log1p(f) - f) / f**2,
         lambda f: max(abs(f**2 / mp.log1p(f)), mp.mpf("0.02")), (low, high), 8, None)
    both("LOG_QUOTIENT", "`(2 artanh s / s - 2) / s²` as a polynomial in `s²` for `s = f / (2 + f)` of the same `f`.",
         lambda z: (2 * mp.atanh(root(z)) / root(z) - 2) / z, lambda z: z / 2, (TINY, (high / (2 + high)) ** 2),
         None, 6)

    both("POW", "`((artanh s / s - 1) / s² - ⅓) / s²` as a polynomial in `s²` for the same `s`.",
         lambda z: ((mp.atanh(root(z)) / root(z) - 1) / z - mp.mpf(1) / 3) / z, lambda z: z**2,
         (TINY, (high / (2 + high)) ** 2), 2, 6)

    quarter = mp.pi / 2 * mp.mpf("1.005")
    for width, degree, bits, bias in (("f32", 3, 24, "0.2"), ("f64", 7, 53, "0.25")):
        # A little below the sine at π/2: so little that cos 0 is still 1, and enough that no result is more than one.
        less = lambda r: mp.mpf(bias) * mp.mpf(2) ** -bits * (2 * r / mp.pi) ** 9
        c, error = polynomial(lambda z: ((mp.sin(root(z)) - less(root(z))) / root(z) - 1) / z,
                              lambda z: z * root(z) / mp.sin(root(z)), TINY, quarter**2, degree, width == "f64")
        emit(f"SIN_{width.upper()}", "`(sin r / r - 1) / r²` as a polynomial in `r²` for `|r| ≤ π/2`.",
             [(width, c, error)])

    eighth = mp.pi / 4 * mp.mpf("1.005")
    both("TAN_SIN", "`(sin r / r - 1) / r²` as a polynomial in `r²` for `|r| ≤ π/4`.",
         lambda z: (mp.sin(root(z)) / root(z) - 1) / z, lambda z: z, (TINY, eighth**2), 2, 5)
    both("TAN_COS", "`(cos r - 1) / r²` as a polynomial in `r²` for `|r| ≤ π/4`.",
         lambda z: (mp.cos(root(z)) - 1) / z, lambda z: z, (TINY, eighth**2), 3, 6)
    both("ATAN", "`(arctan t / t - 1) / t²` as a polynomial in `t²` for `|t| ≤ 1`.",
         lambda z: (mp.atan(root(z)) / root(z) - 1) / z, lambda z: z * root(z) / mp.atan(root(z)), (TINY, 1), 7, 19)
    both("ASIN", "`(arcsin t / t - 1) / t²` as a polynomial in `t²` for `|t| ≤ ½`.",
         lambda z: (mp.asin(root(z)) / root(z) - 1) / z, lambda z: z, (TINY, mp.mpf(1) / 4), 4, 11)
    both("ASINH", "`(arsinh t / t - 1) / t²` as a polynomial in `t²` for `|t| ≤ ½`.",
         lambda z: (mp.asinh(root(z)) / root(z) - 1) / z, lambda z: z, (TINY, mp.mpf(1) / 4), 4, 11)
    both("ATANH", "`(artanh s / s - 1) / s²` as a polynomial in `s²` for `|s| ≤ 0.203`.",
         lambda z: (mp.atanh(root(z)) / root(z) - 1) / z, lambda z: z, (TINY, mp.mpf("0.203") ** 2), 3, 7)
    both("CBRT", "The cube root between √½ and √2, as a first guess.",
         mp.cbrt, lambda m: 1 / mp.cbrt(m), (root(mp.mpf(1) / 2), root(mp.mpf(2))), 2, 5)

    # erf x = 1 - e^-y with y = -ln(erfc x) = x + x g(x): smooth, and as exact for small x as y is.
    rest = lambda x: -mp.log(mp.erfc(x)) / x - 1
    weight = lambda x: x * mp.erfc(x) / mp.erf(x)
    narrow, error = polynomial(rest, weight, TINY, 4, 8, False)
    emit("ERF", "`-ln(erfc x) / x - 1` for `0 ≤ x ≤ 4`.", [("f32", narrow, error)])
    above, below, error = quotient(rest, weight, TINY, 6, 8, 7)
    emit("ERF_ABOVE", "Numerator of `-ln(erfc x) / x - 1` for `0 ≤ x ≤ 6`.", [("f64", above, error)])
    emit("ERF_BELOW", "Its denominator.", [("f64", below, error)])

    # erfc x = e^(-x²) u S(1 - 2 k u) with u = 1 / (x + k).
    # A larger k needs fewer terms, but their roundings count more beside zero.
    for width, k, end, degree in (("f32", 1, "10.1", 13), ("f64", 4, "27.3", 25)):
        k, end = mp.mpf(k), mp.mpf(end)

        def scaled_erfc(t):
            u = (1 - t) / (2 * k)
            x = 1 / u - k
            return mp.exp(x * x) * mp.erfc(x) / u

        c, error = polynomial(scaled_erfc, lambda t: 1 / scaled_erfc(t), -1, (end - k) / (end + k), degree,
                              width == "f64", double=True)
        name = "ERFC_F32" if width == "f32" else "ERFC_F64"
        emit(name, f"`e^(x²) erfc(x) (x + k)` as a polynomial in `(x - k) / (x + k)` for `0 ≤ x ≤ {mp.nstr(end, 4)}`, "
             f"`k = {mp.nstr(k, 2)}`. The first two are one coefficient.", [(width, c, error)])


if __name__ == "__main__":
    main()

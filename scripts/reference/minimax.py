"""Best approximations for `math_coefficients.py`: polynomials and quotients of polynomials of least largest error.

Errors are weighed, and coefficients come out as numbers of the target format: they are rounded one after the other from
the first, and those that are left are fitted again after each, so that they absorb what rounding did.
"""

import mpmath as mp

mp.mp.dps = 50


def nodes(a, b, n):
    """Points of an interval, denser at its ends, as the extrema of a best approximation are."""
    a, b = mp.mpf(a), mp.mpf(b)
    return [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * (k + mp.mpf(1) / 2) / n) for k in range(n)]


def rounded(v, wide):
    """The nearest number of the format."""
    v = mp.mpf(v)
    if v == 0:
        return v
    bits = 53 if wide else 24
    unit = mp.mpf(2) ** (mp.floor(mp.log(abs(v), 2)) - bits + 1)
    return mp.nint(v / unit) * unit


def extrema(errors, count):
    """Indices of `count` alternating extrema."""
    found = []
    for i, e in enumerate(errors):
        if found and (errors[found[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[found[-1]]):
                found[-1] = i
        else:
            found.append(i)
    while len(found) > count:
        # An end may go alone; inside, two neighbours go together so that signs still alternate.
        if len(found) == count + 1:
            found.pop(0 if abs(errors[found[0]]) < abs(errors[found[-1]]) else -1)
            continue
        least = min(range(len(found)), key=lambda k: abs(errors[found[k]]))
        if least in (0, len(found) - 1):
            found.pop(least)
        else:
            other = least - 1 if abs(errors[found[least - 1]]) < abs(errors[found[least + 1]]) else least + 1
            for k in sorted((least, other), reverse=True):
                found.pop(k)
    return found


def remez(columns, values, weights):
    """Coefficients of the columns for which the largest weighed error is least, and that error."""
    n, points = len(columns), len(values)
    places = [min(points - 1, int((1 - mp.cos(mp.pi * k / n)) / 2 * (points - 1))) for k in range(n + 1)]
    best = None
    for _ in range(60):
        m, y = mp.matrix(n + 1, n + 1), mp.matrix(n + 1, 1)
        for row, i in enumerate(places):
            for j in range(n):
                m[row, j] = columns[j][i] * weights[i]
            m[row, n] = (-1) ** row
            y[row] = values[i] * weights[i]
        c = mp.lu_solve(m, y)
        errors = [
            (values[i] - mp.fsum(c[j] * columns[j][i] for j in range(n))) * weights[i] for i in range(points)
        ]
        worst = max(abs(e) for e in errors)
        if best is None or worst < best[1]:
            best = ([c[j] for j in range(n)], worst)
        if worst <= abs(c[n]) * mp.mpf("1.001"):
            break
        found = extrema(errors, n + 1)
        places = found if len(found) == n + 1 else exchanged(errors, places)
    return best


def exchanged(errors, places):
    """The place of the largest error instead of one beside it with an error of the same sign."""
    worst = max(range(len(errors)), key=lambda i: abs(errors[i]))
    same = lambda i: (errors[i] > 0) == (errors[worst] > 0)
    after = next((k for k, i in enumerate(places) if i > worst), len(places))
    if after == 0:
        return [worst] + (places[1:] if same(places[0]) else places[:-1])
    if after == len(places):
        return (places[:-1] if same(places[-1]) else places[1:]) + [worst]
    k = after - 1 if same(places[after - 1]) else after
    return places[:k] + [worst] + places[k + 1 :]


def polynomial(f, weight, a, b, degree, wide, points=None, double=False):
    """Coefficients of 1, x, x², ... from the first, rounded to the format; and the largest weighed error.

    `double`: the first coefficient is the sum of two numbers of the format, which both stand in the list."""
    xs = nodes(a, b, points or 16 * (degree + 2))
    values, weights = [mp.mpf(f(x)) for x in xs], [mp.mpf(weight(x)) for x in xs]
    columns = [[x**k for x in xs] for k in range(degree + 1)]
    done = []
    for k in range(degree + 1):
        exact = remez(columns[: degree + 1 - k], values, weights)[0][0]
        c = rounded(exact, wide)
        done.append(c)
        if double and k == 0:
            done.append(rounded(exact - c, wide))
            c += done[-1]
        # What is left has a factor x: the rest is fitted to the quotient, and the factor goes to the weight.
        values = [(v - c) / x for v, x in zip(values, xs)]
        weights = [w * abs(x) for w, x in zip(weights, xs)]
    return done, max(abs(v * w) for v, w in zip(values, weights))


def quotient(f, weight, a, b, above, below, wide=True, points=None, rounds=60):
    """Numerator and denominator (which begins with 1) of given degrees, rounded to the format; and the largest error.

    Least squares of `(N - f D) / D_before`, repeated until `D` stays; a point's weight grows with the error there, which
    makes the error level (Lawson)."""
    xs = nodes(a, b, points or 10 * (above + below + 2))
    values, weights = [mp.mpf(f(x)) for x in xs], [mp.mpf(weight(x)) for x in xs]
    n = above + below + 1
    rows = [[x**k for k in range(above + 1)] + [-v * x**k for k in range(1, below + 1)] for x, v in zip(xs, values)]
    before, pull, best = [mp.mpf(1)] * len(xs), [mp.mpf(1)] * len(xs), None
    for step in range(rounds):
        m, y = mp.matrix(n, n), mp.matrix(n, 1)
        for row, v, w, d, p in zip(rows, values, weights, before, pull):
            scale = p * (w / d) ** 2
            scaled = [r * scale for r in row]
            for j in range(n):
                for k in range(j, n):
                    m[j, k] += scaled[j] * row[k]
                y[j] += scaled[j] * v
        for j in range(n):
            for k in range(j):
                m[j, k] = m[k, j]
        c = mp.lu_solve(m, y)
        top, bottom = [c[k] for k in range(above + 1)], [mp.mpf(1)] + [c[above + k] for k in range(1, below + 1)]
        before = [mp.polyval(bottom[::-1], x) for x in xs]
        errors = [abs(quotient_at(top, bottom, x) - v) * w for x, v, w in zip(xs, values, weights)]
        worst = max(errors)
        if best is None or worst < best[0]:
            best = (worst, top, bottom)
        if step > 3:
            pull = [p * e / worst for p, e in zip(pull, errors)]
            total = mp.fsum(pull)
            pull = [p * len(xs) / total + mp.mpf(10) ** -12 for p in pull]
    _, top, bottom = best
    top, bottom = [rounded(v, wide) for v in top], [rounded(v, wide) for v in bottom]
    return top, bottom, max(abs((quotient_at(top, bottom, x) - v) * w) for x, v, w in zip(xs, values, weights))


def quotient_at(top, bottom, x):
    return mp.polyval(top[::-1], x) / mp.polyval(bottom[::-1], x)

"""Make and certify the coefficients behind ``inbounds.sampling.normal``.

    python tools/normal_tables.py            makes src/inbounds/sampling/normal.npz, certifies it, prints the figures
    python tools/normal_tables.py --check    certifies the file that is there; writes nothing

Four functions are approximated by polynomials with float64 coefficients, where Φ is the standard normal cdf:

- the tail Φ(-x), one row of coefficients for each nearest multiple of 2^-7;
- its inverse, one row for each binade of p and each value of the five leading bits of the fraction;
- the middle Φ(x) - 1/2 = x·P(x²) and its inverse s·Q(s²), one polynomial each.

A certificate is a proof, in ball arithmetic (Arb, through python-flint), about the rounded coefficients in the file. It
has two parts, both in units of u = 2^-53.

*Approximation*: the polynomial against the function, in exact arithmetic. The difference h is expanded at the middle of
a row, h(s) = a_0 + a_1 s + ... + a_{N-1} s^{N-1} + a_N(ξ) s^N, the last coefficient enclosed over the whole row. The
part below N, rewritten in Chebyshev polynomials, is at most the sum of its absolute coefficients, since |T_j| <= 1.

*Rounding*: Horner's rule in float64 against the polynomial in exact arithmetic. It needs only the standard model,
|fl(a∘b) - a∘b| <= u|a∘b| for + - *, with 2^-1074 more for a product that underflows.

The *total* bounds what ``inbounds.sampling.normal`` returns; it must do the same operations in the same order.
"""

from __future__ import annotations

import argparse
import functools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from flint import arb, arb_poly, arb_series, ctx

FILE = Path(__file__).resolve().parents[1] / "src" / "inbounds" / "sampling" / "normal.npz"

TAIL_END = 14  # Φ(-x) for 0 <= x <= 14
TAIL_ROWS = 128  # rows to a unit of x; row k is |x - k/128| <= 1/256
TAIL_DEGREE = 7
INVERSE_LOW = -80  # p from 2^-80 ...
INVERSE_HIGH = 0.53125  # ... to here
INVERSE_ROWS = 32  # rows to a binade of p
INVERSE_DEGREE = 7
HALF_END = 1.05
HALF_DEGREE = 9
HALF_INVERSE_END = 0.36
HALF_INVERSE_CENTRE = 0.0648  # Q is a polynomial in s² - 0.0648: around 0 its terms would cancel
HALF_INVERSE_DEGREE = 19
NAMES = ("tail", "inverse", "half", "half_inverse")
SMALLEST = 2.0**-400  # smaller |x| and |s| are raised to this, lest a product underflow

_PRECISION = 256
_TERMS = 20  # N above
_PIECES = 64  # the single polynomials are certified on this many pieces of their range
_STEP = 1024  # figures are rounded up to a multiple of 1/1024


class Bound(NamedTuple):
    """Certified errors in units of u = 2^-53: of the polynomial, and of the computed value."""

    approximation: float
    total: float


class Failure(Exception):
    """A certificate could not be given."""


@contextmanager
def _arithmetic(terms: int = _TERMS + 1) -> Iterator[None]:
    before = ctx.prec, ctx.cap
    ctx.prec, ctx.cap = _PRECISION, terms
    try:
        yield
    finally:
        ctx.prec, ctx.cap = before


def _in_arithmetic(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with _arithmetic():
            return function(*args, **kwargs)

    return wrapped


def _up(x: Any) -> float:
    """A float not below any number in the ball."""
    y = math.nextafter(float(x.upper()), math.inf)
    if not (math.isfinite(y) and arb(y) >= x):
        raise Failure(f"no finite upper bound for {x}")
    return y


def _units(x: Any) -> float:
    return _up(x * arb(2) ** 53)


def _between(a: Any, b: Any) -> Any:
    """The ball from a to b."""
    return a.union(b)


def _size(x: Any) -> Any:
    """The largest absolute value in the ball."""
    return abs(x).upper()


def _density_least(x: Any) -> Any:
    """The least value of the normal density on the ball x."""
    return ((-(_size(x) ** 2) / 2).exp() / (2 * arb.pi()).sqrt()).lower()


def _tail(x: Any) -> Any:
    """Φ(-x), of a number or of a power series."""
    return (x / arb(2).sqrt()).erfc() / 2


def _tail_inverse(p: Any) -> Any:
    return arb(2).sqrt() * (2 * p).erfcinv()


# ---- Fitting: nothing here needs to be rigorous


def _fit(function: Callable[[Any], Any], centre: Any, radius: Any, degree: int) -> list[float]:
    """Interpolate ``function(centre + s)`` at Chebyshev points of |s| <= radius; coefficients of s^0, s^1, ..."""
    nodes = [(radius * ((2 * k + 1) * arb.pi() / (2 * degree + 2)).cos()).mid() for k in range(degree + 1)]
    values = [function((centre + s).mid()).mid() for s in nodes]
    coefficients = [c.mid() for c in arb_poly.interpolate(nodes, values).coeffs()]
    coefficients += [arb(0)] * (degree + 1 - len(coefficients))
    # What should vanish comes out as noise of the working precision: make it the zero it is.
    noise = arb(2) ** -160 * _size(coefficients[0])
    return [0.0 if abs(c) * radius**k < noise else float(c) for k, c in enumerate(coefficients)]


def tail_count() -> int:
    return TAIL_END * TAIL_ROWS + 1


def inverse_count() -> int:
    # p < 2^-1, and the rows from 1/2 to INVERSE_HIGH
    return (-1 - INVERSE_LOW) * INVERSE_ROWS + round((INVERSE_HIGH * 2 - 1) * INVERSE_ROWS)


def _inverse_row(row: int) -> tuple[Any, Any]:
    """2^e and the middle m of a row: p = 2^e (m + s) with |s| <= 1/(2·INVERSE_ROWS)."""
    e, j = divmod(row, INVERSE_ROWS)
    return arb(2) ** (INVERSE_LOW + e), 1 + arb(2 * j + 1) / (2 * INVERSE_ROWS)


@_in_arithmetic
def fit_tail(row: int) -> list[float]:
    return _fit(_tail, arb(row) / TAIL_ROWS, arb(1) / (2 * TAIL_ROWS), TAIL_DEGREE)


@_in_arithmetic
def fit_inverse(row: int) -> list[float]:
    scale, middle = _inverse_row(row)
    return _fit(lambda m: _tail_inverse(scale * m), middle, arb(1) / (2 * INVERSE_ROWS), INVERSE_DEGREE)


@_in_arithmetic
def fit_half() -> list[float]:
    middle = arb(HALF_END) ** 2 / 2
    coefficients = _interpolate_shifted(lambda t: (t.sqrt() / arb(2).sqrt()).erf() / 2 / t.sqrt(), middle, HALF_DEGREE)
    return [float(c) for c in coefficients(-middle).coeffs()]


@_in_arithmetic
def fit_half_inverse() -> list[float]:
    middle = arb(HALF_INVERSE_END) ** 2 / 2
    coefficients = _interpolate_shifted(
        lambda w: arb(2).sqrt() * (2 * w.sqrt()).erfinv() / w.sqrt(), middle, HALF_INVERSE_DEGREE
    )
    return [float(c) for c in coefficients(HALF_INVERSE_CENTRE - middle).coeffs()]


def _interpolate_shifted(function: Callable[[Any], Any], middle: Any, degree: int) -> Callable[[Any], Any]:
    """Interpolate on [0, 2·middle] by a polynomial p in s = t - middle; the answer maps a shift to p(s + shift)."""
    nodes = [(middle * ((2 * k + 1) * arb.pi() / (2 * degree + 2)).cos()).mid() for k in range(degree + 1)]
    values = [function((middle + s).mid()).mid() for s in nodes]
    polynomial = arb_poly([c.mid() for c in arb_poly.interpolate(nodes, values).coeffs()])
    return lambda shift: polynomial(arb_poly([shift, 1]))


# ---- Certifying: everything below is rigorous


def _horner(coefficients: Sequence[float], s: Any) -> Any:
    value = s * 0
    for c in reversed(coefficients):
        value = value * s + arb(c)
    return value


@functools.cache
def _chebyshev(k: int) -> tuple[tuple[int, int], ...]:
    """x^k = 2^-k times the sum of n·T_j over the pairs (j, n)."""
    return tuple((j, math.comb(k, (k - j) // 2) * (1 if j == 0 else 2)) for j in range(k % 2, k + 1, 2))


def largest(difference: Callable[[Any], Any], centre: Any, radius: Any) -> Any:
    """An upper bound of |difference| on |x - centre| <= radius; ``difference`` takes and gives power series."""
    exact = difference(arb_series([centre, 1]))
    wide = difference(arb_series([centre + arb(0, 1) * radius, 1]))
    if min(exact.prec, wide.prec) <= _TERMS:
        raise Failure("the power series are too short")  # coefficients beyond the end would read as zero
    sums = [arb(0)] * _TERMS
    for k in range(_TERMS):
        scaled = exact[k] * (radius / 2) ** k
        for j, n in _chebyshev(k):
            sums[j] += n * scaled
    return (sum((abs(a) for a in sums), arb(0)) + abs(wide[_TERMS]) * radius**_TERMS).upper()


def horner_rounding(coefficients: Sequence[float], s: Any) -> tuple[Any, Any]:
    """Bound the rounding errors of Horner's rule in float64 at any point of the ball s.

    The answer is (before, after): the error of what stands before the last addition, and of the result. With y the
    computed value of an inner polynomial p and |y - p| <= e, the next product is off by at most
    e|s| + u(|p| + e)|s| + 2^-1074 =: f, and the sum after it by at most f + u(|p'| + f), where p' = p·s + c.
    """
    u, tiny = arb(2) ** -53, arb(2) ** -1074
    *rest, first = coefficients
    value, before, after = arb(first), arb(0), arb(0)
    for c in reversed(rest):
        before = ((after + u * (_size(value) + after)) * _size(s) + tiny).upper()
        value = value * s + arb(c)
        after = (before + u * (_size(value) + before)).upper()
    return before, after


@_in_arithmetic
def certify_tail(coefficients: Sequence[float], row: int) -> Bound:
    """Relative errors on a row.

    The reduced argument s = x - k/128 is exact: |s| <= 1/256, so for k >= 1 it is at most half of k/128 and Sterbenz'
    lemma applies, and for k = 0 it is x. Below SMALLEST the value at SMALLEST is given; Φ moves less than that.
    """
    u = arb(2) ** -53
    centre, radius = arb(row) / TAIL_ROWS, arb(1) / (2 * TAIL_ROWS)
    least = _tail(centre + radius).lower()
    approximation = largest(lambda x: _horner(coefficients, x - centre) - _tail(x), centre, radius) / least
    before, _ = horner_rounding(coefficients, arb(0, 1) * radius)
    inner = approximation + (before + SMALLEST) / least
    return Bound(_units(approximation), _units(inner + u * (1 + inner)))


@_in_arithmetic
def certify_inverse(coefficients: Sequence[float], row: int) -> Bound:
    """Absolute errors on a row, divided by max(1, x).

    With y the polynomial and Φ(-x) = p, the mean value theorem gives Φ(-y) - p = (x - y)φ(ξ), ξ between x and y. So the
    error is at most the largest |Φ(-y) - p| over the least density. The reduced argument is exact: it is the difference
    of two numbers in [1, 1 + 1/32], multiples of 2^-52.
    """
    u = arb(2) ** -53
    scale, middle = _inverse_row(row)
    radius = arb(1) / (2 * INVERSE_ROWS)
    # An interval that holds x and y. Its ends come from anywhere; that they do is checked.
    low = arb(float(_tail_inverse(scale * (middle + radius)))) - 2.0**-30
    high = arb(float(_tail_inverse(scale * (middle - radius)))) + 2.0**-30
    polynomial = _horner(coefficients, arb(0, 1) * radius)
    low, high = low.min(polynomial.lower()), high.max(polynomial.upper())
    if not (_tail(low) > scale * (middle + radius) and _tail(high) < scale * (middle - radius)):
        raise Failure(f"inverse, row {row}: the ends do not enclose the row")
    difference = largest(lambda m: _tail(_horner(coefficients, m - middle)) - scale * m, middle, radius)
    unit = low.max(arb(1))
    approximation = difference / _density_least(_between(low, high)) / unit
    before, _ = horner_rounding(coefficients, arb(0, 1) * radius)
    inner = approximation + before / unit
    # The last addition: u|x| and a little; |x| / max(1, x) is at most 1, and less where x is below 1.
    share = _size(_between(low, high)).min(arb(1))
    return Bound(_units(approximation), _units(inner + u * (share + inner)))


def _half_ratio(t: Any) -> Any:
    """(Φ(√t) - 1/2)/√t for a ball or power series with constant term in [0, 2], without its truncation error.

    It is the sum of (-t/2)^k / (k!(2k+1)√(2π)). On [0, 2] the terms alternate and shrink, so what is left out is at
    most the first term left out: _half_rest.
    """
    value = t * 0
    for k in reversed(range(_HALF_TERMS)):
        value = value * (-t / 2) + arb(1) / (math.factorial(k) * (2 * k + 1))
    return value / (2 * arb.pi()).sqrt()


_HALF_TERMS = 40


def _half_rest() -> Any:
    return 1 / (arb(math.factorial(_HALF_TERMS)) * (2 * _HALF_TERMS + 1) * (2 * arb.pi()).sqrt())


def _pieces(end: float) -> Iterator[tuple[Any, Any]]:
    """Centres and radii that cover [0, end²]."""
    width = arb(end) ** 2 / _PIECES
    for i in range(_PIECES):
        yield (width * (2 * i + 1) / 2).mid(), (width / 2 * (1 + arb(2) ** -100)).upper()


@_in_arithmetic
def certify_half(coefficients: Sequence[float]) -> Bound:
    """Relative errors of x·P(x²) for 2^-1000 <= |x| <= HALF_END."""
    u, raised = arb(2) ** -53, arb(SMALLEST) ** 2
    derivative = [k * arb(c) for k, c in enumerate(coefficients)][1:]
    worst = Bound(0.0, 0.0)
    for centre, radius in _pieces(HALF_END):
        t = centre + arb(0, 1) * radius
        # P against the ratio; the ratio decreases in t
        least = (_half_ratio((centre + radius).upper()) - _half_rest()).lower()
        difference = largest(lambda t: _horner(coefficients, t) - _half_ratio(t), centre, radius) + _half_rest()
        approximation = difference / least
        # The square is rounded, or raised to that of SMALLEST: P is evaluated at t + shift.
        shift = (u * _size(t) + raised).upper()
        near = t + arb(0, 1) * shift
        slope = arb(0)
        for c in reversed(derivative):
            slope = slope * near + c
        _, rounding = horner_rounding(coefficients, near)
        inner = approximation + (_size(slope) * shift + rounding) / least
        worst = _worse(worst, Bound(_units(approximation), _units(inner + u * (1 + inner))))
    return worst


@_in_arithmetic
def certify_half_inverse(coefficients: Sequence[float]) -> Bound:
    """Relative errors of s·Q(s²) for 2^-1000 <= |s| <= HALF_INVERSE_END.

    Write R(t) for the ratio (Φ(√t) - 1/2)/√t and w = s². With y = s·Q(w) and Φ(x) - 1/2 = s the mean value theorem
    gives (y - x)φ(ξ) = y R(y²) - s = s(Q(w) R(w Q(w)²) - 1), and s = x R(x²). So the relative error |y - x|/|x| is at
    most |Q(w) R(w Q(w)²) - 1| R(x²)/φ(ξ).
    """
    u, raised = arb(2) ** -53, arb(SMALLEST) ** 2
    derivative = [k * arb(c) for k, c in enumerate(coefficients)][1:]
    worst = Bound(0.0, 0.0)
    for centre, radius in _pieces(HALF_INVERSE_END):
        w = centre + arb(0, 1) * radius
        ratio = _horner(coefficients, w - HALF_INVERSE_CENTRE)  # y/s

        def difference(w: Any) -> Any:
            q = _horner(coefficients, w - HALF_INVERSE_CENTRE)
            return q * _half_ratio(w * q * q) - 1

        off = largest(difference, centre, radius) + _size(ratio) * _half_rest()
        # An interval [0, far] that holds |x| and |y| for every s of the piece, and the least value of x/s.
        s = (centre + radius).sqrt().upper()
        far = arb(float((s * ratio).upper()) + 2.0**-30)
        if not (far * (_half_ratio(far**2) - _half_rest()) > s and far > s * ratio and far**2 < 2):
            raise Failure("half_inverse: the end does not enclose the piece")
        density = _density_least(far)
        # R(x²) = s/x decreases in |x|, so it is largest, and x/s least, at the near end of the piece.
        near = (centre - radius).max(arb(0)).sqrt().lower()
        x = arb(float((near * ratio).lower()) - 2.0**-30).max(arb(0))
        if not (x == 0 or x * (_half_ratio(x**2) + _half_rest()) < near):
            raise Failure("half_inverse: the end does not enclose the piece")
        most = (_half_ratio(x**2) + _half_rest()).upper()
        approximation = off * most / density
        shift = u * _size(w) + raised
        shift = (shift + u * (_size(w - HALF_INVERSE_CENTRE) + shift)).upper()
        argument = w - HALF_INVERSE_CENTRE + arb(0, 1) * shift
        slope = arb(0)
        for c in reversed(derivative):
            slope = slope * argument + c
        _, rounding = horner_rounding(coefficients, argument)
        inner = approximation + (_size(slope) * shift + rounding) * most  # x/s = 1/R >= 1/most
        worst = _worse(worst, Bound(_units(approximation), _units(inner + u * (1 + inner))))
    return worst


def _worse(a: Bound, b: Bound) -> Bound:
    return Bound(max(a.approximation, b.approximation), max(a.total, b.total))


# ---- The file


def _rounded(bound: Bound) -> np.ndarray:
    return np.array([math.ceil(x * _STEP) / _STEP for x in bound], dtype="<f8")


def make() -> dict[str, np.ndarray]:
    """The coefficients: row k of an array holds those of s^k (of a row of the table in each column)."""
    return {
        "tail": _array([fit_tail(row) for row in range(tail_count())]),
        "inverse": _array([fit_inverse(row) for row in range(inverse_count())]),
        "half": np.array(fit_half(), dtype="<f8"),
        "half_inverse": np.array(fit_half_inverse(), dtype="<f8"),
    }


def _array(rows: list[list[float]]) -> np.ndarray:
    return np.ascontiguousarray(np.array(rows, dtype="<f8").T)


def certify(name: str, table: np.ndarray) -> np.ndarray:
    """The bounds [approximation, total] of a table over all its rows, rounded up."""
    match name:
        case "tail":
            return _rounded(_over_rows(certify_tail, table, tail_count()))
        case "inverse":
            return _rounded(_over_rows(certify_inverse, table, inverse_count()))
        case "half":
            return _rounded(certify_half(table.tolist()))
        case "half_inverse":
            return _rounded(certify_half_inverse(table.tolist()))
        case _:
            raise Failure(f"there is no table {name}")


def _over_rows(certify_row: Callable[[Sequence[float], int], Bound], table: np.ndarray, count: int) -> Bound:
    if table.shape[1] != count:
        raise Failure(f"{count} rows expected, {table.shape[1]} found")
    return functools.reduce(_worse, (certify_row(c, row) for row, c in enumerate(table.T.tolist())))


def covers(claim: np.ndarray, certified: np.ndarray) -> bool:
    """Whether a claimed [approximation, total] is nowhere below the certified one."""
    return bool(np.all(claim >= certified))


def load(file: Path = FILE) -> dict[str, np.ndarray]:
    with np.load(file) as stored:
        return {name: stored[name] for name in stored.files}


def main(arguments: Sequence[str] | None = None, file: Path = FILE) -> int:
    parser = argparse.ArgumentParser(description="Make and certify the normal tables.")
    parser.add_argument("--check", action="store_true", help="certify the file that is there; write nothing")
    if parser.parse_args(arguments).check:
        stored = load(file)
        verdicts = {name: covers(stored[f"{name}_bound"], certify(name, stored[name])) for name in NAMES}
    else:
        stored = make()
        stored |= {f"{name}_bound": certify(name, stored[name]) for name in NAMES}
        verdicts = dict.fromkeys(NAMES, True)
        # NumPy stamps no time into the archive, so the same arrays give the same bytes.
        np.savez(file, **stored)
    for name, verdict in verdicts.items():
        approximation, total = stored[f"{name}_bound"]
        word = "certified" if verdict else "NOT CERTIFIED"
        print(f"{name:14} polynomial {approximation:7.4f} u   total {total:7.4f} u   {word}")
    return 0 if all(verdicts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

"""The normal distribution function and its inverse, with proven error bounds and in the same time for all values.

Φ is the standard normal cdf and u = 2^-53. Only IEEE additions, subtractions, multiplications and comparisons, integer
operations on the bits, and table look-ups are used: no library function whose accuracy would have to be taken on trust,
and no branch on a value. The coefficients come from ``tools/normal_tables.py``. It certifies in ball arithmetic how far
the polynomials are from the functions, and bounds the rounding errors of the operations done here, in the same order.
The totals are stored with the coefficients, and the constants are read from there.

``TAIL_ERROR``
    For every float64 x in [0, 14], ``tail`` returns a number within ``TAIL_ERROR``·u·Φ(-x) of Φ(-x).
    A row is a polynomial in s = x - k/128 for the k nearest to 128x. Adding 3·2^44, where floats are 2^-7 apart, rounds
    x to k/128, and subtracting 3·2^44 again is exact. So is x - k/128: for k >= 1 by Sterbenz' lemma, as |s| <= 1/256
    is at most half of k/128; for k = 0 it is x.

``INVERSE_ERROR``
    For every float64 p in [2^-80, 0.53125), ``tail_inverse`` returns a number within ``INVERSE_ERROR``·u·max(1, x) of
    the x with Φ(-x) = p; x lies between -0.0785 and 10.27. A row is a binade [2^e, 2^(e+1)) and the five leading bits
    of the fraction. The 47 bits that remain make a number in [1, 1 + 1/32), and s is that less 1 + 1/64: exactly, as
    both are multiples of 2^-52 and the difference is less than 1/32.

``HALF_ERROR``
    For every float64 x with 2^-1000 <= |x| <= 1.05, ``half`` returns a number within ``HALF_ERROR``·u·|Φ(x) - 1/2| of
    Φ(x) - 1/2, and ±0 for ±0. It is x·P(x²); the rounding of the square is part of the bound.

``HALF_INVERSE_ERROR``
    For every float64 s with 2^-1000 <= |s| <= 0.36, ``half_inverse`` returns a number within
    ``HALF_INVERSE_ERROR``·u·|x| of the x with Φ(x) - 1/2 = s, and ±0 for ±0. It is s·Q(s² - 0.0648); the roundings of
    the square and of the subtraction are part of the bound.

Arguments outside these ranges give numbers without meaning, NaN among them, but no error.

For tables that are made once there are also ``decay``, exp(-y) for 0 <= y <= 105 within ``DECAY_ERROR``·u, relatively,
and ``density``, the normal density for |x| <= 14 within 8 + x²/2 units of u. Whole numbers and 64ths of y come from
tables filled by the integers of ``exact``; the rest, exact and at most 1/128, goes into the exponential series.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from inbounds.sampling import exact

FloatArray = npt.NDArray[np.float64]

#: Ends of the ranges for which the bounds hold; INVERSE_END itself is not included.
TAIL_END = 14.0
INVERSE_START = 2.0**-80
INVERSE_END = 0.53125
HALF_END = 1.05
HALF_INVERSE_END = 0.36


def _read() -> dict[str, FloatArray]:
    with np.load(Path(__file__).with_name("normal.npz")) as stored:
        # The file is little-endian; the machine need not be.
        return {name: np.ascontiguousarray(stored[name], dtype=np.float64) for name in stored.files}


_STORED = _read()

#: Proven bounds on what the functions return, in units of u = 2^-53; the exact statements are above.
TAIL_ERROR = float(_STORED["tail_bound"][1])
INVERSE_ERROR = float(_STORED["inverse_bound"][1])
HALF_ERROR = float(_STORED["half_bound"][1])
HALF_INVERSE_ERROR = float(_STORED["half_inverse_bound"][1])
#: Two table entries and their product, the series, and the product with it.
DECAY_ERROR = 6.0
DECAY_END = 105.0

_ROUNDER = 3 * 2.0**44  # x + _ROUNDER is x rounded to a multiple of 1/128, for |x| < 2^44
_ROUNDER_BITS = int(np.float64(_ROUNDER).view(np.int64))
_TAIL_ROWS = 128  # to a unit of x
_TAIL_LAST = 14 * _TAIL_ROWS

_INVERSE_ROWS = 32  # to a binade
_INVERSE_SHIFT = 47  # bits of the fraction that do not choose the row
_INVERSE_MASK = (1 << _INVERSE_SHIFT) - 1
_INVERSE_BASE = int(np.float64(INVERSE_START).view(np.int64)) >> _INVERSE_SHIFT
_ONE_BITS = int(np.float64(1.0).view(np.int64))
_INVERSE_CENTRE = 1 + 1 / 64
_INVERSE_LAST = math.nextafter(INVERSE_END, 0.0)
_INVERSE_OFFSET = 79 * _INVERSE_ROWS - _INVERSE_ROWS  # frexp(2^-80) = (1/2, -79), and the first j is _INVERSE_ROWS

_HALF_INVERSE_CENTRE = 0.0648
# Smaller arguments are raised to this, lest a product underflow: that takes longer on some processors. The polynomials
# are as good as constant there, and the bounds allow for it.
_SMALLEST = 2.0**-400

# One contiguous array for each power of s, the highest first, as Horner's rule takes them.
_TAIL = tuple(_STORED["tail"][::-1])
_INVERSE = tuple(_STORED["inverse"][::-1])
_HALF: tuple[float, ...] = tuple(_STORED["half"][::-1].tolist())
_HALF_INVERSE: tuple[float, ...] = tuple(_STORED["half_inverse"][::-1].tolist())

# The same for one value at a time: the coefficients of a row together.
_TAIL_ONE: list[tuple[float, ...]] = list(zip(*(column.tolist() for column in _TAIL), strict=True))
_INVERSE_ONE: list[tuple[float, ...]] = list(zip(*(column.tolist() for column in _INVERSE), strict=True))


class Work:
    """Buffers for arrays of up to ``size`` values; not to be shared between threads."""

    __slots__ = ("accumulator", "argument", "argument_bits", "index")

    def __init__(self, size: int) -> None:
        self._set(np.empty(size), np.empty(size), np.empty(size, dtype=np.intp))

    def _set(self, argument: FloatArray, accumulator: FloatArray, index: npt.NDArray[np.intp]) -> None:
        self.argument = argument
        self.argument_bits = argument.view(np.int64)
        self.accumulator = accumulator
        self.index = index

    def view(self, n: int) -> Work:
        """The first ``n`` places of the same buffers."""
        part = Work.__new__(Work)
        part._set(self.argument[:n], self.accumulator[:n], self.index[:n])
        return part


# In the four functions below the arrays are one-dimensional and of one length, and ``work`` is a Work of that very
# length. ``out`` may be the argument itself (the same array), but must not overlap it otherwise, nor share memory
# with ``work``.


def tail(x: FloatArray, out: FloatArray, work: Work) -> None:
    """Put Φ(-x) for 0 <= x <= 14 into ``out``, which may be ``x``."""
    s, row = work.accumulator, work.argument
    np.maximum(x, _SMALLEST, out=s)
    np.add(s, _ROUNDER, out=row)
    np.subtract(work.argument_bits, _ROUNDER_BITS, out=work.index)
    np.subtract(row, _ROUNDER, out=row)
    np.subtract(s, row, out=s)
    _evaluate(_TAIL, s, out, row, work.index)


def tail_inverse(p: FloatArray, out: FloatArray, work: Work) -> None:
    """Put the x with Φ(-x) = p for 2^-80 <= p < 0.53125 into ``out``, which may be ``p``."""
    s, bits = work.argument, work.argument_bits
    given = p.view(np.int64)
    np.right_shift(given, _INVERSE_SHIFT, out=bits)
    np.subtract(bits, _INVERSE_BASE, out=work.index)
    np.bitwise_and(given, _INVERSE_MASK, out=bits)
    np.bitwise_or(bits, _ONE_BITS, out=bits)
    np.subtract(s, _INVERSE_CENTRE, out=s)
    _evaluate(_INVERSE, s, out, work.accumulator, work.index)


def _evaluate(
    table: tuple[FloatArray, ...], s: FloatArray, out: FloatArray, column: FloatArray, index: npt.NDArray[np.intp]
) -> None:
    # Clipping keeps every index inside the table; it is also the one mode that needs no copy of ``out``.
    table[0].take(index, out=out, mode="clip")
    for coefficients in table[1:]:
        np.multiply(out, s, out=out)
        coefficients.take(index, out=column, mode="clip")
        np.add(out, column, out=out)


def half(x: FloatArray, out: FloatArray, work: Work) -> None:
    """Put Φ(x) - 1/2 for |x| <= 1.05 into ``out``, which may be ``x``."""
    t, y = work.argument, work.accumulator
    np.absolute(x, out=t)
    np.clip(t, _SMALLEST, HALF_END, out=t)
    np.multiply(t, t, out=t)
    _horner(_HALF, t, y)
    np.multiply(x, y, out=out)


def half_inverse(s: FloatArray, out: FloatArray, work: Work) -> None:
    """Put the x with Φ(x) - 1/2 = s for |s| <= 0.36 into ``out``, which may be ``s``."""
    t, y = work.argument, work.accumulator
    np.absolute(s, out=t)
    np.clip(t, _SMALLEST, HALF_INVERSE_END, out=t)
    np.multiply(t, t, out=t)
    np.subtract(t, _HALF_INVERSE_CENTRE, out=t)
    _horner(_HALF_INVERSE, t, y)
    np.multiply(s, y, out=out)


def _horner(coefficients: tuple[float, ...], t: FloatArray, y: FloatArray) -> None:
    np.multiply(t, coefficients[0], out=y)
    np.add(y, coefficients[1], out=y)
    for c in coefficients[2:]:
        np.multiply(y, t, out=y)
        np.add(y, c, out=y)


@lru_cache(maxsize=1)
def _decays() -> tuple[FloatArray, FloatArray, float]:
    """exp(-i) and exp(-i / 64), and 1 / sqrt(2π), rounded."""
    P = 240

    def rounded(x: Fraction) -> float:
        return sum(exact.exp_neg(x, P)) / (2 << P)

    whole = np.array([rounded(Fraction(i)) for i in range(int(DECAY_END) + 2)])
    return whole, np.array([rounded(Fraction(i, 64)) for i in range(64)]), (1 << P) / exact.root_two_pi(P)[0]


def decay(y: FloatArray) -> FloatArray:
    """exp(-y) for 0 <= y <= 105."""
    whole, part, _ = _decays()
    k = np.rint(64.0 * y).astype(np.int64)
    rest = y - k / 64.0
    series = np.ones_like(y)
    for i in range(8, 0, -1):
        series = 1.0 - rest / i * series
    out: FloatArray = series * (whole[k >> 6] * part[k & 63])
    return out


def density(x: FloatArray) -> FloatArray:
    """The normal density for |x| <= 14."""
    out: FloatArray = decay(0.5 * (x * x)) * _decays()[2]
    return out


# The same functions of one Python float: the same operations in the same order, hence the same bits.


def tail_one(x: float) -> float:
    """Φ(-x) for 0 <= x <= 14."""
    if x < _SMALLEST:
        x = _SMALLEST
    row = (x + _ROUNDER) - _ROUNDER
    s = x - row
    k = int(row * _TAIL_ROWS) if row <= TAIL_END else _TAIL_LAST
    c7, c6, c5, c4, c3, c2, c1, c0 = _TAIL_ONE[k]
    return ((((((c7 * s + c6) * s + c5) * s + c4) * s + c3) * s + c2) * s + c1) * s + c0


def tail_inverse_one(p: float) -> float:
    """The x with Φ(-x) = p, for 2^-80 <= p < 0.53125."""
    if not INVERSE_START <= p < INVERSE_END:
        p = _INVERSE_LAST if p >= INVERSE_END else INVERSE_START
    m, e = math.frexp(p)
    j = int(m * (2 * _INVERSE_ROWS))
    s = m * 2 - (j + 0.5) / _INVERSE_ROWS
    c7, c6, c5, c4, c3, c2, c1, c0 = _INVERSE_ONE[e * _INVERSE_ROWS + j + _INVERSE_OFFSET]
    return ((((((c7 * s + c6) * s + c5) * s + c4) * s + c3) * s + c2) * s + c1) * s + c0


def half_one(x: float) -> float:
    """Φ(x) - 1/2 for |x| <= 1.05."""
    t = abs(x)
    if not _SMALLEST <= t <= HALF_END:
        t = _SMALLEST if t < _SMALLEST else HALF_END
    t *= t
    y = _HALF[0]
    for c in _HALF[1:]:
        y = y * t + c
    return x * y


def half_inverse_one(s: float) -> float:
    """The x with Φ(x) - 1/2 = s, for |s| <= 0.36."""
    t = abs(s)
    if not _SMALLEST <= t <= HALF_INVERSE_END:
        t = _SMALLEST if t < _SMALLEST else HALF_INVERSE_END
    t = t * t - _HALF_INVERSE_CENTRE
    y = _HALF_INVERSE[0]
    for c in _HALF_INVERSE[1:]:
        y = y * t + c
    return s * y

"""Gaussian noise on spans: what depends on the true value, by polynomials that are fitted once for a domain.

True values lie in *rows*, the neighbourhoods of the multiples of a power of two h. For each row there is a polynomial
for the mass Z of the domain; bounds, as shares of Z, that tell in which *part* of the domain a draw lies; and for each
part a polynomial for the constant that turns the mass up to the draw into a value of the normal distribution function.
The polynomials have degree 6: Taylor's of degree 8, economised. The derivatives of Φ are φ times Hermite polynomials.

Every error is bounded where the tables are made; only IEEE arithmetic is used (docs/proofs/sampling.md, section 5).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from inbounds._checks import FloatArray
from inbounds.sampling import normal
from inbounds.sampling.inversion import Indices, Work

__all__ = ["Rows", "narrow_rows", "wide_rows"]

REACH = 8.0  # standard deviations from the true value up to which wide tables go
_CUT = normal.TAIL_END
_FAR = 13.5  # what lies farther away is ignored: less than 2^-136
_TERMS = 8  # of Taylor's series
_DEGREE = 6
_LINE = 8  # numbers that belong together: seven coefficients and one more fill a cache line
_LARGEST_MAP, _LARGEST_TABLE = 1 << 20, 1 << 18
_BLOCK = 1 << 14  # pieces that are worked on at once, all rows together
_NONE = 2.0  # a bound that no uniform passes
_NODES = (-math.sqrt(3.0) / 4.0, 0.0, math.sqrt(3.0) / 4.0)  # of Chebyshev, on [-1/2, 1/2]


class Rows(NamedTuple):
    """Tables for a domain. ``wholes`` and ``constants`` hold lines: coefficients, the highest first, and one number."""

    spacing: float  # h
    first: float  # the number of the first row, in units of h
    lines: Indices  # from rows to lines of the tables; rows without true values have none
    wholes: FloatArray  # Z
    bounds: FloatArray  # quadratic polynomials, in groups of four numbers; a power of two less one to a row
    constants: FloatArray  # the number: the piece, or for parts on the left of a row's centre -1 less the piece
    parts: int  # to a row
    whole_error: float  # of Z, relative, in units of 2^-53
    constant_error: float  # of the constants, over the density at the draw, in units of 2^-53; 0 if not worked out

    def find(self, w: Work) -> None:
        """The rows of ``w.q`` into ``w.row``, their places in them, -1/2 to 1/2, into ``w.x``, and Z into ``w.z``."""
        np.multiply(w.q, 1.0 / self.spacing, out=w.x)
        np.rint(w.x, out=w.f)
        np.subtract(w.x, w.f, out=w.x)
        np.subtract(w.f, self.first, out=w.f)
        np.clip(w.f, 0.0, self.lines.size - 1.0, out=w.f)
        np.copyto(w.bits, w.f, casting="unsafe")
        self.lines.take(w.bits, out=w.row, mode="clip")
        np.multiply(w.row, _LINE, out=w.bits)
        _evaluate(self.wholes, w.bits, w.x, w.z, w.a)

    def part(self, w: Work) -> None:
        """From uniforms in ``w.v``: the constant of the part into ``w.e``, and its number, as whole, into ``w.found``.

        The part is a guess, all but always right: a comparison with each bound on the way of a bisection.
        """
        step = (self.bounds.size // (4 * (self.wholes.size // _LINE)) + 1) // 2
        np.multiply(w.row, 8 * step - 4, out=w.bits)
        w.found.fill(0)
        while step:
            np.add(w.bits, w.found, out=w.index)
            shifted = self.bounds[4 * (step - 1) :]
            shifted.take(w.index, out=w.e, mode="clip")
            for i in (1, 2):
                np.multiply(w.e, w.x, out=w.e)
                shifted[i:].take(w.index, out=w.a, mode="clip")
                np.add(w.e, w.a, out=w.e)
            np.less(w.e, w.v, out=w.beyond)
            np.multiply(w.beyond, 4 * step, out=w.index)
            np.add(w.found, w.index, out=w.found)
            step //= 2
        np.multiply(w.row, _LINE * self.parts, out=w.index)
        np.add(w.found, w.found, out=w.found)
        np.add(w.index, w.found, out=w.index)
        _evaluate(self.constants, w.index, w.x, w.e, w.a)
        self.constants[_LINE - 1 :].take(w.index, out=w.a, mode="clip")
        np.copyto(w.found, w.a, casting="unsafe")

    def one(self, q: float, u: float) -> tuple[float, float, int]:
        """Z, the constant and the number of the part, for one true value and one uniform."""
        x = q / self.spacing
        row = float(round(x))
        s = x - row
        line = int(self.lines[int(min(max(row - self.first, 0.0), self.lines.size - 1.0))])
        z = _evaluate_one(self.wholes, line * _LINE, s)
        group = self.bounds.size // (self.wholes.size // _LINE)
        step, found = (group // 4 + 1) // 2, 0
        while step:
            at = line * group + 4 * (found + step - 1)
            c2, c1, c0 = self.bounds[at : at + 3].tolist()
            if (c2 * s + c1) * s + c0 < u:
                found += step
            step //= 2
        at = _LINE * min(line * self.parts + found, self.constants.size // _LINE - 1)
        return z, _evaluate_one(self.constants, at, s), int(self.constants[at + _LINE - 1])


def _evaluate(table: FloatArray, index: Indices, s: FloatArray, out: FloatArray, column: FloatArray) -> None:
    table.take(index, out=out, mode="clip")
    for i in range(1, _DEGREE + 1):
        np.multiply(out, s, out=out)
        table[i:].take(index, out=column, mode="clip")
        np.add(out, column, out=out)


def _evaluate_one(table: FloatArray, at: int, s: float) -> float:
    c6, c5, c4, c3, c2, c1, c0 = table[at : at + _DEGREE + 1].tolist()
    return float((((((c6 * s + c5) * s + c4) * s + c3) * s + c2) * s + c1) * s + c0)


# --- the functions ---------------------------------------------------------------------------------------------


def _tail(x: FloatArray) -> FloatArray:
    """Φ(-x) for 0 <= x <= 14, of any shape."""
    out = np.ravel(x).copy()
    normal.tail(out, out, normal.Work(out.size))
    return out.reshape(x.shape)


def _half(x: FloatArray) -> FloatArray:
    out = np.ravel(x).copy()
    normal.half(out, out, normal.Work(out.size))
    return out.reshape(x.shape)


def _hermite(x: FloatArray, count: int) -> list[FloatArray]:
    """He_0 to He_(count - 1)."""
    out = [np.ones_like(x), x]
    for n in range(1, count - 1):
        out.append(x * out[-1] - n * out[-2])
    return out[:count]


def _slopes(x: FloatArray, dense: FloatArray, eta: float) -> FloatArray:
    """The coefficients of s, s^2, ... in Φ(x - eta s), given φ(x)."""
    he = _hermite(x, _TERMS)
    out = np.empty((_TERMS, *x.shape))
    factor = -1.0
    for m in range(1, _TERMS + 1):
        factor *= eta / m
        np.multiply(he[m - 1], dense, out=out[m - 1])
        out[m - 1] *= factor
    return out


def _short_masses(middle: FloatArray, half_width: FloatArray, eta: float, terms: int) -> FloatArray:
    """The coefficients of 1, s, s^2, ... in the mass of pieces when the true value moves by eta s.

    That of s^m is eta^m / m! times the integral of φ He_m over the piece, a series in its half-width d:
    2 φ times the sum of He_(m + 2i) d^(2i+1) / (2i+1)!, at its middle.
    """
    he = _hermite(middle, _TERMS + 1 + 2 * terms)
    powers = [half_width]
    for i in range(1, terms):
        powers.append(powers[-1] * (half_width * half_width / ((2 * i) * (2 * i + 1))))
    out = np.zeros((_TERMS + 1, *middle.shape))
    factor = 2.0 * normal.density(middle)
    for m, coefficient in enumerate(out):
        for i in range(terms - 1, -1, -1):
            coefficient += he[m + 2 * i] * powers[i]
        coefficient *= factor
        factor *= eta / (m + 1)
    return out


def _economised(c: FloatArray) -> FloatArray:
    """Coefficients of degree 6, the highest first, from those of degree 8, the lowest first, for s in [-1/2, 1/2].

    A multiple of the Chebyshev polynomial T_8(2s), then one of T_7(2s), is subtracted.
    """
    c = c.copy()
    for power, chebyshev in ((8, {0: 1.0, 2: -32.0, 4: 160.0, 6: -256.0}), (7, {1: -7.0, 3: 56.0, 5: -112.0})):
        top = c[power] / 2.0 ** (2 * power - 1)
        for i, coefficient in chebyshev.items():
            c[i] -= top * coefficient * 2.0**i
    return c[_DEGREE::-1]


def _lines(coefficients: FloatArray, number: FloatArray) -> FloatArray:
    """One line of a table after the other, from coefficients (the highest first) along the first axis."""
    out = np.empty((*number.shape, _LINE))
    out[..., : _DEGREE + 1] = np.moveaxis(coefficients, 0, -1)
    out[..., -1] = number
    return out.reshape(-1)


def _quadratic(values: FloatArray) -> FloatArray:
    """The polynomial through the values at the nodes, in groups of four, from an array (node, bound, row)."""
    left, middle, right = values
    node = _NODES[2]
    out = np.zeros((values.shape[2], values.shape[1], 4))
    out[..., 0] = ((left - middle + (right - middle)) / (2.0 * node * node)).T
    out[..., 1] = ((right - left) / (2.0 * node)).T
    out[..., 2] = middle.T
    return out.reshape(-1)


def _padded_bounds(count: int) -> int:
    """The smallest power of two less one that is at least ``count``."""
    return (1 << int(count).bit_length()) - 1


class _Places(NamedTuple):
    """Rows with true values."""

    spacing: float
    first: float
    lines: Indices
    centres: FloatArray


def _places(lo: FloatArray, hi: FloatArray, largest: float, margin: float) -> _Places | None:
    """Rows at most ``largest`` apart for true values in the (finite) pieces; None where they are too many.

    Those farther than ``margin`` from the ends of their piece are all alike: one stands for them.
    """
    h = math.ldexp(0.5, math.frexp(largest)[1])
    start, stop = np.rint(lo / h), np.rint(hi / h)
    if not stop[-1] - start[0] < _LARGEST_MAP:
        return None
    first = float(start[0])
    start, stop = start - first, stop - first
    lines = np.zeros(int(stop[-1]) + 1, dtype=np.int64)
    edge = math.ceil(min(margin / h, _LARGEST_MAP)) + 1
    for a, b in np.stack([start, stop], axis=1).astype(np.int64).tolist():
        lines[a : b + 1] = np.arange(a, b + 1)
        if b - a > 2 * edge:
            lines[a + edge : b - edge + 1] = a + edge
    rows, lines = np.unique(lines, return_inverse=True)
    return _Places(h, first, lines, (first + rows.astype(np.float64)) * h)


# --- wide domains -----------------------------------------------------------------------------------------------


class _Block(NamedTuple):
    wholes: FloatArray
    bounds: FloatArray
    constants: FloatArray
    whole_error: float
    constant_error: float


def wide_rows(scale: float, ends: FloatArray) -> Rows | None:
    """Tables for tails: a part is a piece, or what the centre of the row leaves of it on one side.

    On the left of the centre the constant is the mass that the domain misses beyond the part on the left, so that it
    and the mass of the domain up to the draw are Φ(-x) for the draw at distance x; alike on the right. None where the
    tables would be too large.
    """
    far = (_FAR + 0.5) * scale
    finite = ends[np.isfinite(ends)]
    inside = np.clip(ends, finite[0] - far, finite[-1] + far)
    places = _places(inside[:, 0], inside[:, 1], scale / 128.0, _FAR * scale)
    if places is None:
        return None
    wide = _Wide(scale, ends, places)
    if wide.parts * places.centres.size > _LARGEST_TABLE:
        return None
    size = max(64, _BLOCK // wide.count)
    blocks = [wide.block(slice(i, i + size)) for i in range(0, places.centres.size, size)]
    return Rows(
        places.spacing,
        places.first,
        places.lines,
        np.concatenate([block.wholes for block in blocks]),
        np.concatenate([block.bounds for block in blocks]),
        np.concatenate([block.constants for block in blocks]),
        wide.parts,
        max(block.whole_error for block in blocks),
        max(block.constant_error for block in blocks),
    )


class _Wide:
    """The pieces around each row: those within _FAR of it (the window), and those within REACH."""

    def __init__(self, scale: float, ends: FloatArray, places: _Places) -> None:
        self._scale, self._lo, self._hi = scale, ends[:, 0], ends[:, 1]
        self._half_widths = 0.5 * (self._hi - self._lo) / scale
        self._eta = places.spacing / scale
        c = self._centres = places.centres
        self._first, self._stop = self._within(_FAR)
        seen, last = self._within(REACH + 0.1)
        self._seen, self._last = seen - self._first, last - self._first
        self._on_left = np.searchsorted(self._lo, c) - seen  # pieces that begin on the left of the centre
        self._cut = (self._on_left > 0) & (self._hi[np.maximum(seen + self._on_left - 1, 0)] > c)  # is one cut by it?
        self.count = int(np.max(self._stop - self._first))
        self.parts = int(np.max(self._last - self._seen + self._cut))

    def _within(self, reach: float) -> tuple[Indices, Indices]:
        far, c = reach * self._scale, self._centres
        return np.searchsorted(self._hi, c - far), np.searchsorted(self._lo, c + far, side="right")

    def block(self, rows: slice) -> _Block:
        c, count, eta = self._centres[rows], self.count, self._eta
        first, seen, last, on_left, cut = (
            x[rows] for x in (self._first, self._seen, self._last, self._on_left, self._cut)
        )
        pieces = np.arange(count)[:, None]
        window = np.minimum(first + pieces, self._lo.size - 1)
        beyond = pieces >= self._stop[rows] - first
        x = np.stack([np.where(beyond, math.inf, e[window]) - c for e in (self._lo, self._hi)]) / self._scale
        np.clip(x, -_CUT, _CUT, out=x)
        tail, dense = _tail(np.abs(x)), normal.density(x)
        slopes = _slopes(x, dense, eta)
        masses = np.concatenate([_between(x, tail)[None], slopes[:, 1] - slopes[:, 0]])
        half_widths = self._half_widths[window]
        short = half_widths < 0.125
        middle = x[0, short] + half_widths[short]
        masses[:, short] = _short_masses(middle, half_widths[short], eta, 10)
        whole = np.sum(masses, axis=1)
        # what the domain misses on the left of each piece and on its right: holes, added up from the outside
        left, right = np.empty((_TERMS + 1, *window.shape)), np.empty((_TERMS + 1, *window.shape))
        left[0, 0], right[0, -1] = tail[0, 0], tail[1, -1]
        left[1:, 0], right[1:, -1] = slopes[:, 0, 0], -slopes[:, 1, -1]
        holes = tail[1, :-1] - tail[0, 1:]
        left[0, 1:], right[0, :-1] = np.where(x[0, 1:] <= 0.0, -holes, 0.0), np.where(x[1, :-1] >= 0.0, holes, 0.0)
        left[1:, 1:] = right[1:, :-1] = slopes[:, 0, 1:] - slopes[:, 1, :-1]
        # errors in units of 2^-53
        square = (x / _CUT) * (x / _CUT)
        polynomial = dense * (0.2 + 0.15 * np.abs(x) + 2.7 * square * square * square + count / 200.0)
        own = (normal.TAIL_ERROR + 1.0) * tail + dense * (2.01 * np.abs(x)) + polynomial
        piece_error = np.sum(own, axis=0) + np.where((x[0] < 0.0) & (x[1] > 0.0), 2.0, 0.0)
        piece_error[short] = masses[0, short] * (16.0 + 4.3 * middle * middle)
        whole_error = np.sum(piece_error, axis=0) + (1.1 * count + 3.0) * whole[0]
        left_error, right_error = own.copy()
        left_error[1:] += own[1, :-1]
        right_error[:-1] += own[0, 1:]
        for i in range(count):
            if i:
                left[:, i] += left[:, i - 1]
                left_error[i] += left_error[i - 1]
                right[:, -1 - i] += right[:, -i]
                right_error[-1 - i] += right_error[-i]
            left_error[i] += left[0, i]
            right_error[-1 - i] += right[0, -1 - i]
        # parts
        part, row = np.arange(self.parts)[:, None], np.arange(c.size)
        is_left = part < on_left
        piece = np.clip(seen + part - np.where(is_left, 0, cut), 0, count - 1)
        used = part < last - seen + cut
        constants = np.where(is_left, left[:, piece, row], right[:, piece, row])
        number = np.where(is_left, -1 - (first + piece), first + piece)
        error = np.where(is_left, left_error[piece, row], right_error[piece, row]) + 2.0 * constants[0]
        outer = np.where(is_left, -x[0, piece, row], x[1, piece, row])
        error /= normal.density(np.clip(outer, 0.0, REACH + 0.1))
        return _Block(
            _lines(_economised(whole), np.zeros(c.size)),
            _quadratic(self._bounds(rows, x, used[1:])),
            _lines(_economised(constants).swapaxes(1, 2), number.T),
            _relative(whole_error, whole[0]),
            1.1 * float(np.max(error[used])),
        )

    def _bounds(self, rows: slice, x: FloatArray, used: npt.NDArray[np.bool_]) -> FloatArray:
        """The share of the domain up to each part but the first, at the nodes."""
        seen, on_left, cut = self._seen[rows], self._on_left[rows], self._cut[rows]
        row = np.arange(seen.size)
        values = np.full((3, _padded_bounds(self.parts - 1), seen.size), _NONE)
        part = np.arange(1, self.parts)[:, None]
        before = np.clip(seen + part - np.where(part < on_left, 0, cut), 0, self.count)  # pieces
        middle = np.clip(seen + on_left - 1, 0, self.count - 1)  # the piece that is cut
        for value, node in zip(values, _NODES, strict=True):
            there = np.clip(x - self._eta * node, -_CUT, _CUT)
            tail = _tail(np.abs(there))
            sums = np.zeros((self.count + 1, seen.size))
            for i, mass in enumerate(_between(there, tail)):
                np.add(sums[i], mass, out=sums[i + 1])
            to_centre = np.stack([there[0, middle, row], np.full(seen.size, -self._eta * node)])
            half = sums[middle, row] + _between(to_centre, _tail(np.abs(to_centre)))
            found = np.where((part == on_left) & cut, half, sums[before, row])
            value[: self.parts - 1] = np.where(used, found / sums[-1], _NONE)
        return values


def _between(x: FloatArray, tail: FloatArray) -> FloatArray:
    """The mass from x[0] to x[1], given Φ(-|x|)."""
    low, high = tail
    out: FloatArray = np.where(x[1] <= 0.0, high - low, np.where(x[0] >= 0.0, low - high, 1.0 - low - high))
    return out


def _relative(error: FloatArray, whole: FloatArray) -> float:
    """The largest relative error; infinite where the error is not small against the whole."""
    with np.errstate(divide="ignore"):
        worst = float(np.max(error / np.maximum(whole, 2.0**-200)))
    return 1.15 * worst if worst < 2.0**44 else math.inf


# --- narrow domains ----------------------------------------------------------------------------------------------


def narrow_rows(scale: float, ends: FloatArray) -> Rows | None:
    """Tables for a domain within one standard deviation: a part is a piece.

    The constant is Φ - 1/2 at the first end of the piece, less the mass of the pieces before it: with the mass of the
    domain up to the draw it is Φ - 1/2 at the draw. The mass of a piece, and its derivatives, are series in its width,
    so that they are accurate in narrow pieces too. None where the tables would be too large.
    """
    lo, hi = ends[:, 0], ends[:, 1]
    places = _places(lo, hi, min((hi[-1] - lo[0]) / 16.0, scale / 32.0), math.inf)
    if places is None or places.centres.size * len(ends) > _LARGEST_TABLE:
        return None
    c, eta = places.centres, places.spacing / scale
    x = (lo[:, None] - c) / scale
    half_widths = np.broadcast_to((0.5 * (hi - lo) / scale)[:, None], x.shape)
    masses = _short_masses(x + half_widths, half_widths, eta, 11)
    before = np.cumsum(masses, axis=1)
    constants = np.concatenate([_half(x)[None], _slopes(x, normal.density(x), eta)])
    constants[:, 1:] -= before[:, :-1]
    values = np.full((3, _padded_bounds(len(ends) - 1), c.size), _NONE)
    for value, node in zip(values, _NODES, strict=True):
        sums = sum(coefficient * node**m for m, coefficient in enumerate(before))
        value[: len(ends) - 1] = sums[:-1] / sums[-1]
    number = np.broadcast_to(np.arange(float(len(ends))), (c.size, len(ends)))
    return Rows(
        places.spacing,
        places.first,
        places.lines,
        _lines(_economised(before[:, -1]), np.zeros(c.size)),
        _quadratic(values),
        _lines(_economised(constants).swapaxes(1, 2), number),
        len(ends),
        21.0 + len(ends),
        0.0,
    )

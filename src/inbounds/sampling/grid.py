"""The public grid that releases lie on: the multiples of a power of two that belong to the domain.

Ordinary floating-point noise gives the true value away by its low bits; a multiple of a public step has none to give.
The step depends on the domain and the scale alone.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any

import numpy as np

from inbounds import _checks as check
from inbounds._checks import FloatArray
from inbounds.domain import Box, Domain

__all__ = ["Grid", "step_of"]

_FINE = 24  # the default step is the scale or the narrowest piece, less this many bits
_SMALLEST, _LARGEST = 2.0**-320, 2.0**300


def _power_below(x: FloatArray) -> FloatArray:
    """The largest power of two that is at most x; 0 and infinity are left as they are."""
    return np.where((x > 0.0) & np.isfinite(x), np.ldexp(0.5, np.frexp(x)[1]), x)


def _default(scale: float, narrowest: FloatArray, largest: FloatArray) -> FloatArray:
    """Fine against the scale and the domain, but not so fine that the ends are no longer whole multiples below 2**53.

    A step of at most the narrowest piece leaves a multiple in each.
    """
    fine = np.ldexp(_power_below(np.minimum(scale, narrowest)), -_FINE)
    roomy = np.ldexp(_power_below(largest), -53)
    roomy = np.where(largest > np.ldexp(roomy, 53), 2.0 * roomy, roomy)
    return np.maximum(fine, np.minimum(roomy, _power_below(narrowest)))


def step_of(what: str, domain: Domain, scale: float, granularity: Any) -> Any:
    """The step of the grid: a float, or for a Box an array with one per coordinate. No granularity: the default."""
    step: Any
    if granularity is not None:
        given = check.number(what, "granularity", granularity, above=0.0)
        if not (math.frexp(given)[0] == 0.5 and _SMALLEST <= given <= _LARGEST):
            check.refuse(what, "granularity", "a power of two", granularity, "For instance 2**-20, or 1.")
        if domain.lattice and given != 1.0:
            check.refuse(what, "granularity", "1 on whole numbers", granularity, "Leave it out.")
    if isinstance(domain, Box):
        lower, upper = domain.lower, domain.upper
        if domain.lattice or granularity is not None:
            step = np.full(lower.shape, 1.0 if domain.lattice else given)
        else:
            ends = np.where(np.isfinite([lower, upper]), np.abs([lower, upper]), 0.0)
            step = _default(scale, upper - lower, ends.max(axis=0))
        step.flags.writeable = False
        first, last = positions(lower, upper, step)
        empty = first > last
    else:
        ends = np.array(domain.pieces)
        if domain.lattice or granularity is not None:
            step = 1.0 if domain.lattice else given
        else:
            largest = np.max(np.abs(ends[np.isfinite(ends)]), initial=0.0)
            step = float(_default(scale, np.min(ends[:, 1] - ends[:, 0]), largest))
        first, last = positions(ends[:, 0], ends[:, 1], step)
        empty = first > last
    if np.any(empty):
        check.refuse(
            what,
            "granularity",
            "a power of two of which every piece of the domain holds a multiple",
            granularity,
            "Pass a smaller one, or none.",
        )
    return step


def positions(lower: Any, upper: Any, step: Any) -> tuple[Any, Any]:
    """The first and the last multiple inside; a quotient that underflows to 0 is not 0."""
    first, last = np.ceil(lower / step), np.floor(upper / step)
    return np.where((first == 0.0) & (lower > 0.0), 1.0, first), np.where((last == 0.0) & (upper < 0.0), -1.0, last)


class Grid:
    """The multiples of ``step`` in each piece of a one-dimensional domain, by their whole-numbered positions.

    Positions are floats: exact below 2**53, and beyond that (on unbounded domains) rounding them is post-processing.
    """

    def __init__(self, ends: FloatArray, step: float) -> None:
        self.step = step
        self.first, self.last = positions(ends[:, 0], ends[:, 1], step)
        self._ends: list[tuple[float, float]] = list(zip(self.first.tolist(), self.last.tolist(), strict=True))
        # a position in a hole goes to the nearer side, ties down
        left, right = self.last[:-1], self.first[1:]
        cuts = left + np.floor((right - left) / 2.0)
        self._cuts, self._cut_list = padded(cuts), cuts.tolist()

    def project(self, k: FloatArray) -> FloatArray:
        """The nearest grid position of the domain."""
        first, last = self.first[0], self.last[-1]
        if self.first.size > 1:
            piece = locate(self._cuts, k)
            first, last = self.first[piece], self.last[piece]
        out: FloatArray = np.minimum(np.maximum(k, first), last)
        return out

    def project_one(self, k: float | int) -> float | int:
        """The same for one position, which may be a whole number beyond all floats."""
        first, last = self._ends[bisect_left(self._cut_list, k)]
        return min(max(k, first), last)


def padded(table: FloatArray) -> FloatArray:
    """A sorted table lengthened to 2**r - 1 entries, for :func:`locate`."""
    out = np.full((1 << int(table.size).bit_length()) - 1, np.inf)
    out[: table.size] = table
    return out


def locate(table: FloatArray, x: FloatArray) -> Any:
    """How many entries of a padded table are below each x: a bisection without branches, the same work for every x."""
    return _bisect(table, x, np.zeros(x.shape, dtype=np.int64), (table.size + 1) // 2)


def _bisect(table: FloatArray, x: FloatArray, found: Any, step: int) -> Any:
    while step:
        # the entry at found + step - 1 below x: at least `step` more are
        found += (np.take(table, found + (step - 1)) < x) * step
        step //= 2
    return found


class Guide:
    """:func:`locate` in a table of positive numbers, faster: exponent and some more bits of x say where to start."""

    def __init__(self, table: FloatArray, least: float, most: float) -> None:
        """``table`` is sorted; x outside [least, most] is taken as the nearer of the two."""
        for bits in range(5, 10):  # until no two entries share a start, if that can be had with so few
            self._shift = 52 - bits
            self._base, last = (int(np.float64(x).view(np.int64)) >> self._shift for x in (least, most))
            starts = (np.arange(self._base, last + 2) << self._shift).view(np.float64)
            before = np.searchsorted(table, starts, side="left")
            most_between = int(np.max(np.diff(before)))
            if most_between <= 1:
                break
        self._start, self._last = before[:-1].astype(np.int64), last - self._base
        self._step = (1 << most_between.bit_length()) // 2
        self._table = np.concatenate([table, np.full(2 * self._step, np.inf)])

    def locate(self, x: FloatArray) -> Any:
        row = np.right_shift(x.view(np.int64), self._shift)
        np.subtract(row, self._base, out=row)
        found = np.take(self._start, np.clip(row, 0, self._last, out=row))
        return _bisect(self._table, x, found, self._step)

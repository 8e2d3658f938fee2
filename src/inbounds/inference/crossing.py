"""Where something that grows with the true value reaches a target: brackets for many answers at once.

Only comparisons with the target count, so that a value found short of it stays so; how fast the brackets close is a
matter of luck, that they do is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from inbounds._checks import FloatArray

__all__ = ["CLOSE", "FEW", "Crossing", "Rising", "Rows"]

CLOSE = 2.0**-36  # how closely a place is enclosed, against the scale and the piece it lies in
FEW = 16  # answers that are few enough to spend more on each
_BLOCK = 1 << 14

Rows = npt.NDArray[np.intp]
#: (true values, a row of them for each answer; which answers) -> something that grows with the true value
Rising = Callable[[FloatArray, Rows], FloatArray]


class Crossing:
    """For each answer, the place in a domain where something that grows with the true value reaches a target.

    ``low`` and ``high`` close in on it: true values short of the target, and not. They are infinite where there is
    none. What is not a number is not short of it.
    """

    def __init__(
        self, value: Rising, target: float, ends: FloatArray, x: FloatArray, unit: float, lattice: bool
    ) -> None:
        self._value, self._target, self._ends, self._lattice = value, target, ends, lattice
        self._x, self._unit = x, float(math.ceil(unit)) if lattice else unit
        self.low, self.high = np.full(x.size, -np.inf), np.full(x.size, np.inf)
        self._at_low, self._at_high = np.full(x.size, -np.inf), np.full(x.size, np.inf)
        for start in range(0, x.size, _BLOCK):
            self._settle(np.arange(start, min(start + _BLOCK, x.size)))

    def outer(self) -> FloatArray:
        """The smallest true value that reaches the target, from below; the last of all where none does."""
        end = self._lattice | (self.high == self._ends[0]) | self._across(self.low, self.high)
        return np.where(np.isinf(self.high), self._ends[-1], np.where(end, self.high, self.low))

    def neighbours(self) -> tuple[FloatArray, FloatArray]:
        """The true values on both sides; beyond an end of the domain, that end."""
        return np.where(np.isinf(self.low), self.high, self.low), np.where(np.isinf(self.high), self.low, self.high)

    def _settle(self, rows: Rows) -> None:
        # between which two ends: halving, or for few answers by sixteenths
        left = np.full(rows.size, 0 if np.isinf(self._ends[0]) else -1)
        right = np.full(rows.size, self._ends.size - (1 if np.isinf(self._ends[-1]) else 0))
        parts = np.arange(1, 16) / 16.0 if rows.size <= FEW else np.array([0.5])
        while (busy := right - left > 1).any():
            inside = np.floor((right - left)[busy, None] * parts).astype(np.intp) + left[busy, None]
            self._test(rows[busy], self._ends[np.clip(inside, left[busy, None] + 1, right[busy, None] - 1)])
            low, high = self.low[rows[busy]], self.high[rows[busy]]
            left[busy] = np.maximum(left[busy], np.searchsorted(self._ends, low, side="right") - 1)
            right[busy] = np.minimum(right[busy], np.searchsorted(self._ends, high, side="left"))
        rows = self._open(rows)
        # where there is no end on one side: step outwards
        step = self._unit
        while step < 1e300 and (np.isinf(self.low[rows]) | np.isinf(self.high[rows])).any():
            for mine, other, sign in ((self.low, self.high, -1.0), (self.high, self.low, 1.0)):
                far = rows[np.isinf(mine[rows])]
                start = np.where(np.isinf(other[far]), self._x[far], other[far])
                self._test(far, (start + sign * step)[:, None])
            step *= 2.0
        rows = rows[np.isfinite(self.low[rows]) & np.isfinite(self.high[rows])]
        while (rows := self._open(rows)).size:
            self._test(rows, self._candidates(rows))

    def _test(self, rows: Rows, q: FloatArray) -> None:
        """Look at some true values, a row of them for each answer."""
        if not rows.size:
            return
        at = self._value(q, rows)
        short = at < self._target
        each = np.arange(rows.size)
        high = np.where(short, np.inf, q)
        j = high.argmin(axis=1)
        better = high[each, j] < self.high[rows]
        self.high[rows] = np.where(better, high[each, j], self.high[rows])
        self._at_high[rows] = np.where(better, at[each, j], self._at_high[rows])
        low = np.where(short & (q < self.high[rows][:, None]), q, -np.inf)
        j = low.argmax(axis=1)
        better = low[each, j] > self.low[rows]
        self.low[rows] = np.where(better, low[each, j], self.low[rows])
        self._at_low[rows] = np.where(better, at[each, j], self._at_low[rows])

    def _open(self, rows: Rows) -> Rows:
        """Those that are not yet close enough."""
        low, high = self.low[rows], self.high[rows]
        done = (high == self._ends[0]) | (low == self._ends[-1])
        if self._lattice:
            done |= (high - low <= 1.0) | (np.nextafter(low, np.inf) >= high)  # floats may be farther apart
        else:
            done |= (high - low <= self._closeness(low, high)) | self._across(low, high)
        out: Rows = rows[~done]
        return out

    def _across(self, low: FloatArray, high: FloatArray) -> Any:
        """Whether the two are the sides of one hole."""
        i = np.searchsorted(self._ends, high, side="left")
        inside = (i > 0) & (i < self._ends.size) & (i % 2 == 0)
        i = np.where(inside, i, 1)
        return inside & (self._ends[i] == high) & (self._ends[i - 1] == low)

    def _closeness(self, low: FloatArray, high: FloatArray) -> FloatArray:
        starts, stops = self._ends[::2], self._ends[1::2]
        piece = np.minimum(np.searchsorted(stops, high, side="left"), stops.size - 1)
        size = np.maximum(np.where(np.isinf(low), 0.0, np.abs(low)), np.where(np.isinf(high), 0.0, np.abs(high)))
        out: FloatArray = np.maximum(CLOSE * np.minimum(self._unit, (stops - starts)[piece]), 2.0 * np.spacing(size))
        return out

    def _candidates(self, rows: Rows) -> FloatArray:
        """The middle, and both sides of where a straight line reaches the target."""
        low, high = self.low[rows], self.high[rows]
        width = high - low
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            share = (self._target - self._at_low[rows]) / (self._at_high[rows] - self._at_low[rows])
        root = low + width * np.where((share > 0.0) & (share < 1.0), share, 0.5)
        if rows.size <= FEW:  # at many distances: how many true values hardly matters
            off = width[:, None] * 4.0 ** -np.arange(1.0, 13.0)
        else:  # the line is off by about the square of the width
            off = np.clip(np.square(width) / self._unit, self._closeness(low, high) / 4.0, width / 8.0)[:, None]
        q = np.concatenate([(low + width / 2.0)[:, None], root[:, None] - off, root[:, None] + off], axis=1)
        if self._lattice:
            q = np.floor(q)
            low, high = low + 1.0, high - 1.0
        out: FloatArray = np.clip(q, low[:, None], high[:, None])
        return out

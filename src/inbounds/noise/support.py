"""Where a truncated noise lives, in coordinates that start at a finite end of the domain.

Differences such as ``upper - lower`` are formed once, here, so that an offset of 1e9 costs no digits later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from inbounds._checks import FloatArray
from inbounds.domain import Line


@dataclass(frozen=True, eq=False)
class Support:
    """Disjoint closed pieces [lo[i], hi[i]] in order; ``lattice``: only whole numbers of them."""

    lo: FloatArray
    hi: FloatArray
    lattice: bool
    blur: float  # ends closer than this are taken to coincide (the rounding of decimal ends)

    @classmethod
    def of(cls, domain: Line) -> Support:
        ends = np.array(domain.pieces, dtype=np.float64)
        finite = ends[np.isfinite(ends)]
        origin = finite[0] if finite.size else 0.0
        blur = 0.0 if domain.lattice or finite.size == 0 else 8.0 * 2.0**-53 * float(np.max(np.abs(finite)))
        return cls(ends[:, 0] - origin, ends[:, 1] - origin, domain.lattice, blur)

    @classmethod
    def between(cls, width: float, lattice: bool) -> Support:
        return cls(np.array([0.0]), np.array([width]), lattice, 0.0)

    @classmethod
    def line(cls, lattice: bool) -> Support:
        return cls(np.array([-np.inf]), np.array([np.inf]), lattice, 0.0)

    @property
    def convex(self) -> bool:
        return self.lo.size == 1

    @property
    def bounded(self) -> bool:
        return bool(np.isfinite(self.lo[0]) and np.isfinite(self.hi[-1]))

    def reflected(self) -> Support:
        # + 0.0 turns -0.0 into 0.0
        return Support(-self.hi[::-1] + 0.0, -self.lo[::-1] + 0.0, self.lattice, self.blur)

    def end_pairs(self, delta: float) -> tuple[FloatArray, FloatArray]:
        """(q, d): every finite end q with its farthest partner q + d of the support, d <= delta, upwards.

        A partner exactly delta away is feasible; whether it is must not hang on the last bit, so pairs within the blur
        count. Ends without another point in reach have d = 0 and are left out.
        """
        ends = np.concatenate([self.lo, self.hi])
        ends = ends[np.isfinite(ends)]
        reach = ends + delta + self.blur
        piece = np.searchsorted(self.lo, reach, side="right") - 1
        free = self.hi[piece] - ends
        landed = self.lo[piece] - ends
        d = np.where(free >= delta - self.blur, delta, np.minimum(free, delta))
        d = np.where(landed >= delta, delta, d)
        keep = d > 0.0
        return ends[keep], d[keep]

    def sliding(self, delta: float) -> tuple[FloatArray, FloatArray]:
        """The ranges [start, stop] of q for which both q and q + delta belong to the support."""
        starts, stops = [], []
        i = j = 0
        while i < self.lo.size and j < self.lo.size:
            low = max(self.lo[i], self.lo[j] - delta)
            high = min(self.hi[i], self.hi[j] - delta)
            if low <= high + self.blur:
                starts.append(min(low, high))
                stops.append(high)
            if self.hi[i] < self.hi[j] - delta:
                i += 1
            else:
                j += 1
        return np.array(starts), np.array(stops)

    def gapless(self, q: FloatArray, d: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether all of [q, q + d] belongs to the support."""
        piece = np.maximum(np.searchsorted(self.lo, q + self.blur, side="right") - 1, 0)
        return (q >= self.lo[piece] - self.blur) & (q + d <= self.hi[piece] + self.blur)


def cells(start: float, stop: float, count: int) -> tuple[FloatArray, FloatArray]:
    """A first subdivision of [start, stop]."""
    edges = np.linspace(start, stop, count + 1)
    return edges[:-1], edges[1:]


def lattice_cells(start: float, stop: float, count: int) -> tuple[FloatArray, FloatArray]:
    """A first subdivision of the whole numbers start..stop into runs (both ends included)."""
    size = max(1.0, math.ceil((stop - start + 1.0) / count))
    starts = np.arange(start, stop + 1.0, size)
    return starts, np.minimum(starts + size - 1.0, stop)

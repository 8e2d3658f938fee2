"""Where a truncated noise lives, in coordinates that start at a finite end of the domain.

Differences such as ``upper - lower`` are formed once, here, so that an offset of 1e9 costs no digits later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds.domain import Line


@dataclass(frozen=True, eq=False)
class Points:
    """Locations with the pieces they belong to, looked up once for many scales."""

    x: FloatArray
    piece: npt.NDArray[np.intp]  # the last piece that starts at or below x; -1 if none does
    mirrored: npt.NDArray[np.intp]  # the same for -x in the reflected support


@dataclass(frozen=True, eq=False)
class Support:
    """Disjoint closed pieces [lo[i], hi[i]] in order; ``lattice``: only whole numbers of them."""

    lo: FloatArray
    hi: FloatArray
    lattice: bool
    blur: float = 0.0  # ends closer than this are taken to coincide (the rounding of decimal ends)
    shift: float = 0.0  # the most any end was rounded when the origin was moved
    origin: float = 0.0

    @classmethod
    def of(cls, domain: Line) -> Support:
        ends = np.array(domain.pieces, dtype=np.float64)
        finite = ends[np.isfinite(ends)]
        # Move the origin only where the offset is large: moving it rounds the ends, which narrow spans feel.
        far = finite.size > 0 and (
            domain.lattice or finite.size == 1 or np.max(np.abs(finite)) > 4.0 * (finite[-1] - finite[0])
        )
        origin = float(finite[0]) if far else 0.0
        blur = 0.0 if domain.lattice or finite.size == 0 else 3.0 * 2.0**-53 * float(np.max(np.abs(finite)))
        moved = finite - origin
        back = moved - finite
        rounding = (finite - (moved - back)) + (-origin - back)  # exact, by Knuth's two-sum
        shift = float(np.max(np.abs(rounding), initial=0.0))
        return cls(ends[:, 0] - origin, ends[:, 1] - origin, domain.lattice, blur, shift, origin)

    @classmethod
    def between(cls, width: float, lattice: bool) -> Support:
        return cls(np.array([0.0]), np.array([width]), lattice)

    @classmethod
    def line(cls, lattice: bool) -> Support:
        return cls(np.array([-np.inf]), np.array([np.inf]), lattice)

    @property
    def convex(self) -> bool:
        return self.lo.size == 1

    @property
    def bounded(self) -> bool:
        return bool(np.isfinite(self.lo[0]) and np.isfinite(self.hi[-1]))

    @cached_property
    def shortest(self) -> float:
        """The length of the shortest piece, rounded down."""
        return float(np.min(self.hi - self.lo)) - 2.0 * self.shift

    def reflected(self) -> Support:
        # + 0.0 turns -0.0 into 0.0
        return Support(-self.hi[::-1] + 0.0, -self.lo[::-1] + 0.0, self.lattice, self.blur, self.shift, -self.origin)

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

    def locate(self, x: FloatArray) -> Points:
        piece = np.searchsorted(self.lo, x, side="right") - 1
        mirrored = self.lo.size - 1 - np.searchsorted(self.hi, x, side="left")
        return Points(x, piece, mirrored)

    @cached_property
    def _extremes(self) -> dict[float, tuple[Points, Points, FloatArray]]:
        return {}

    def extreme_pairs(self, delta: float) -> tuple[Points, Points, FloatArray]:
        """(q, q + d, d): every finite end with its farthest partner within delta, upwards and downwards."""
        if delta not in self._extremes:
            q, d = self.end_pairs(delta)
            mirrored, e = self.reflected().end_pairs(delta)
            starts, steps = np.concatenate([q, -mirrored - e]), np.concatenate([d, e])
            order = np.argsort(starts, kind="stable")  # neighbours in memory: several times faster to look up
            starts, steps = starts[order], steps[order]
            self._extremes[delta] = self.locate(starts), self.locate(starts + steps), steps
        return self._extremes[delta]

    def reach(self, delta: float) -> float:
        """The largest distance of two points within delta: the end of some piece is one of such a pair."""
        return delta if self.convex else float(np.max(self.extreme_pairs(delta)[2], initial=0.0))

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

    def gapless(self, q: FloatArray, d: FloatArray) -> npt.NDArray[np.bool_]:
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

"""Pairs of true values to try: points of a one-dimensional domain at most the sensitivity apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds.domain import Line

_MANY = 1500  # places tried at first, over all pieces together


@dataclass(frozen=True)
class Neighbours:
    """The pairs of a domain within ``reach``; ``scale`` is how fast things change along it."""

    domain: Line
    reach: float
    scale: float

    @cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        ends = np.array(self.domain.pieces, dtype=np.float64)
        return ends[:, 0], ends[:, 1]

    @cached_property
    def finite_ends(self) -> FloatArray:
        ends = np.concatenate(self._ends)
        return np.sort(ends[np.isfinite(ends)])

    def farthest(self, q: FloatArray, reach: float | FloatArray | None = None) -> FloatArray:
        """The largest point of the domain at most ``reach`` above each point; a tie in the last bit is within reach."""
        lo, hi = self._ends
        far = q + (self.reach if reach is None else reach)
        if self.domain.lattice:
            return np.asarray(np.minimum(np.floor(far), hi[0]))
        blur = 2.0**-51 * np.maximum(np.abs(q), np.abs(far))
        piece = np.maximum(np.searchsorted(lo, far + blur, side="right") - 1, 0)
        return np.asarray(np.minimum(np.maximum(far, lo[piece]), hi[piece]))

    def lowest(self, q: FloatArray) -> FloatArray:
        """The smallest point of the domain at most ``reach`` below each point."""
        lo, hi = self._ends
        far = q - self.reach
        if self.domain.lattice:
            return np.asarray(np.maximum(np.ceil(far), lo[0]))
        blur = 2.0**-51 * np.maximum(np.abs(q), np.abs(far))
        piece = np.minimum(np.searchsorted(hi, far - blur, side="left"), hi.size - 1)
        return np.asarray(np.maximum(np.minimum(far, hi[piece]), lo[piece]))

    def inside(self, q: FloatArray) -> FloatArray:
        """The given places that belong to the domain (whole numbers near them on Integers), each once."""
        q = np.round(q) if self.domain.lattice else q
        return np.unique(q[np.asarray(self.domain.contains(q))])

    def places(self) -> FloatArray:
        """Points to try as one of a pair: ends, points one reach away from ends, and a grid in between."""
        ends, spaced = self.finite_ends, []
        ladder = np.concatenate([[0.0], self.scale * 2.0 ** np.arange(-6, 7), self.reach * 2.0 ** np.arange(-3, 5)])
        count = max(3, min(129, _MANY // len(self.domain.pieces)))
        for low, high in self.domain.pieces:
            if math.isfinite(low) and math.isfinite(high):
                spaced.append(np.linspace(low, high, count))
            elif math.isfinite(low):
                spaced.append(low + ladder)
            else:
                spaced.append((high if math.isfinite(high) else 0.0) - ladder)
        if math.isinf(self.domain.lower) and math.isinf(self.domain.upper) and len(self.domain.pieces) == 1:
            spaced.append(ladder)
        return self.inside(np.concatenate([ends, ends - self.reach, ends + self.reach, *spaced]))

    def around(self, q: float, step: float, count: int = 17) -> FloatArray:
        return self.inside(np.append(q + step * np.linspace(-1.0, 1.0, count), q))

    def farthest_pairs(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Each place with its farthest partner upwards, and the ends with theirs downwards: (lower, upper)."""
        ends = self.finite_ends
        return self.allowed(np.concatenate([q, self.lowest(ends)]), np.concatenate([self.farthest(q), ends]))

    def allowed(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The pairs that really lie in the domain, in order and within reach; a last bit too many is taken off."""
        kept = []
        for a, b in zip(low.tolist(), high.tolist(), strict=True):
            near = b if self._within(a, b) else math.nextafter(b, a)
            if near > a and near in self.domain and a in self.domain and self._within(a, near):
                kept.append((a, near))
        pairs = np.array(sorted(set(kept)), dtype=np.float64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def _within(self, a: float, b: float) -> bool:
        """On either reading, as floats or as the decimals they print as."""
        if b - a <= self.reach * (1.0 - 2.0**-50):
            return True
        exact = Fraction(b) - Fraction(a) <= Fraction(self.reach)
        return exact or Fraction(repr(b)) - Fraction(repr(a)) <= Fraction(repr(self.reach))


def first_best(values: FloatArray, places: FloatArray, rtol: float = 1e-9) -> int:
    """The place of the largest value; of several that are equal but for rounding, the one nearest to 0."""
    top = float(np.max(values))
    near = values >= (top - rtol * abs(top) if math.isfinite(top) else top)
    return int(np.flatnonzero(near)[np.argmin(np.abs(places[near]))])

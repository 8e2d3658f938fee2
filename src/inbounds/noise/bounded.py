"""Laplace noise that is itself cut at a bound: its tails and moments; ``docs/proofs/bounded-noise.md``.

The tail at t is e^(-t/b) - e^(-far/b) up to a factor, for reals with ``far`` the bound and for whole numbers one more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds.numerics import legendre

__all__ = ["CutLaplace"]

_NODES, _WEIGHTS = legendre(64)
_FARTHEST = 45.0  # scales: beyond, nothing is left of a sum in double precision
_TABLE = 1 << 20  # whole numbers that are added up one by one


@dataclass(frozen=True)
class CutLaplace:
    """Laplace noise of a scale, restricted to -bound..bound and normalised; on whole numbers (``lattice``) too."""

    scale: float
    bound: float
    lattice: bool

    @property
    def unit(self) -> float:
        """The distance from one value to the next: 1 on whole numbers, 0 for reals."""
        return 1.0 if self.lattice else 0.0

    @property
    def far(self) -> float:
        """Where the tail ends."""
        return self.bound + self.unit

    @cached_property
    def norm(self) -> float:
        """The factor of the tail: 1 / (1 + e^(-unit/b) - 2 e^(-far/b))."""
        b = self.scale
        return 1.0 / (-math.expm1(-self.far / b) - math.exp(-self.unit / b) * math.expm1(-self.bound / b))

    def tail(self, t: FloatArray) -> FloatArray:
        """P(noise >= t) for t >= 0, whole on whole numbers; may be infinite."""
        t = np.minimum(t, self.far)
        return self.norm * np.exp(-t / self.scale) * -np.expm1((t - self.far) / self.scale)

    def log_tail(self, t: FloatArray) -> FloatArray:
        t = np.minimum(t, self.far)
        with np.errstate(divide="ignore"):
            return np.log(-np.expm1((t - self.far) / self.scale)) - t / self.scale + math.log(self.norm)

    def log_density(self, t: FloatArray) -> FloatArray:
        """ln of the density at t, or of the probability of t."""
        size = np.abs(t)
        each = -math.expm1(-1.0 / self.scale) if self.lattice else 1.0 / self.scale
        return np.where(size <= self.bound, math.log(self.norm * each) - size / self.scale, -np.inf)

    def inverse(self, p: FloatArray) -> FloatArray:
        """The real t >= 0 at which the tail is p, for p from 0 to 1/2."""
        # e^(-t/b) = p / norm + e^(-far/b) = 1 - below, written from the nearer side
        below = (0.5 - p) / self.norm - math.expm1(-self.unit / self.scale) / 2.0
        with np.errstate(invalid="ignore", divide="ignore"):
            near, away = np.log1p(-below), np.log(p / self.norm + math.exp(-self.far / self.scale))
        out = -self.scale * np.where(below < 0.5, near, away)
        return np.where(p > 0.0, np.clip(out, 0.0, self.far), self.far)

    def moments_to(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """E[min(max(noise, 0), t)] and E[min(max(noise, 0), t)^2], for t >= 0; t may be infinite.

        The integrals of the tail and of twice the distance times the tail from 0 to t; on whole numbers sums from 1 on,
        and twice the distance less one. In closed form they would cancel where the bound is small against the scale.
        """
        t = np.minimum(t, self._reach)
        if not self.lattice:
            return self._integrals(np.zeros_like(t), t)
        if self._reach <= _TABLE:
            at = t.astype(np.int64)
            return self._sums[0][at], self._sums[1][at]
        return self._integrals(np.full_like(t, 0.5), t + 0.5)

    @property
    def _reach(self) -> float:
        return min(self.bound, math.ceil(_FARTHEST * self.scale) if self.lattice else _FARTHEST * self.scale)

    @cached_property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        k = np.arange(self._reach + 1.0)
        tail = np.where(k > 0.0, self.tail(k), 0.0)
        return np.cumsum(tail), np.cumsum((2.0 * k - 1.0) * tail)

    def _integrals(self, start: FloatArray, stop: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Of the tail, and of 2 t - unit times it; for whole numbers with the first correction of Euler and Maclaurin.

        The next one is smaller by the fourth power of the scale.
        """
        length = stop - start
        t = start[..., None] + length[..., None] * _NODES
        tail = self.tail(t) * _WEIGHTS
        sums = length * tail.sum(axis=-1), length * ((2.0 * t - self.unit) * tail).sum(axis=-1)
        if not self.lattice:
            return sums

        def slopes(x: FloatArray) -> tuple[FloatArray, FloatArray]:
            slope = -self.norm * np.exp(-x / self.scale) / self.scale
            return slope, 2.0 * self.tail(x) + (2.0 * x - 1.0) * slope

        at = zip(sums, slopes(stop), slopes(start), strict=True)
        first, second = (total - (b - a) / 24.0 for total, b, a in at)
        return first, second

    def mean_size(self) -> float:
        """E|noise|."""
        return 2.0 * float(self.moments_to(np.array(np.inf))[0])

    def variance(self) -> float:
        return 2.0 * float(self.moments_to(np.array(np.inf))[1])

"""What noisy cells say about a ratio: exact tests of linear forms, turned into confidence sets.

Cells are sums over values, each drawn with independent noise of the same scale. A hypothesis about a ratio (a mean, a
share, a variance) says that a known linear form of the true cells is 0. The noise of that form has a known law, so the
hypothesis is tested exactly, however small the denominator is; the confidence set is all that is not rejected. Proof
page: ``docs/proofs/tables.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import erfc

from inbounds._checks import FloatArray

__all__ = ["Noise", "hull"]

_APART = 3e-3  # weights that are nearer than this, relatively, are moved apart: upwards, which is safe
_POINTS = 257
_ROUNDS = 60


@dataclass(frozen=True)
class Noise:
    """Independent noise of one scale on every cell, of which answers are multiples of ``grid``."""

    family: str
    scale: float
    grid: float

    @property
    def variance(self) -> float:
        return self.scale**2 * (2.0 if self.family == "laplace" else 1.0)

    def tail(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """P(\\|weights . noise\\| >= \\|x\\|), never too small; weights along the last axis."""
        size = np.abs(weights)
        reach = np.maximum(np.abs(x) - 0.5 * self.grid * np.sum(size, axis=-1), 0.0)
        if self.family == "gaussian":
            spread = self.scale * np.sqrt(np.sum(size**2, axis=-1))
            return np.asarray(erfc(_over(reach, spread * math.sqrt(2.0))))
        # The characteristic function is a product of 1 / (1 + w^2 t^2): split into partial fractions, each of which is
        # that of one Laplace variable.
        w = np.sort(size, axis=-1)
        floor = w[..., -1] * 1e-3
        for i in range(w.shape[-1]):
            w[..., i] = np.maximum(w[..., i], floor)
            floor = w[..., i] * (1.0 + _APART)
        square = w**2
        total = np.zeros(np.broadcast_shapes(reach.shape, w.shape[:-1]))
        for i in range(w.shape[-1]):
            others = np.delete(square, i, axis=-1)
            mine = square[..., i : i + 1]
            with np.errstate(divide="ignore", invalid="ignore"):
                factor = np.prod(np.where(mine > 0.0, mine / (mine - others), 1.0), axis=-1)
            total = total + factor * np.exp(-_over(reach, w[..., i] * self.scale))
        return np.clip(total, 0.0, 1.0)


def _over(x: FloatArray, scale: FloatArray) -> FloatArray:
    """x / scale, where 0 / 0 is 0."""
    return np.asarray(np.divide(x, scale, out=np.where(x > 0.0, np.inf, 0.0), where=scale > 0.0))


def hull(
    accepted: Callable[[FloatArray], FloatArray], seeds: FloatArray, lower: float, upper: float, least: float
) -> tuple[float, float]:
    """The ends of the set where a p-value is at least ``least``, rounded outwards; or the point where it is largest.

    ``seeds`` are points that belong to the set if anything does: it may be far smaller than the space between points.
    """
    points = np.unique(np.concatenate([np.linspace(lower, upper, _POINTS), np.clip(seeds, lower, upper)]))
    p = accepted(points)
    inside = np.flatnonzero(p >= least)
    if inside.size == 0:
        best = float(points[np.argmax(p)])
        return best, best

    def edge(outside: float, within: float) -> float:
        for _ in range(_ROUNDS):
            middle = outside + (within - outside) / 2.0
            if middle in (outside, within) or abs(within - outside) <= 1e-12 * (upper - lower):
                break
            keeps = bool(accepted(np.array([middle]))[0] >= least)
            outside, within = (outside, middle) if keeps else (middle, within)
        return outside

    first, last = int(inside[0]), int(inside[-1])
    low = lower if first == 0 else edge(float(points[first - 1]), float(points[first]))
    high = upper if last == len(points) - 1 else edge(float(points[last + 1]), float(points[last]))
    return low, high

"""Staircase noise: its tails, its moments, and the first stair that loses least; ``docs/proofs/staircase.md``.

Along the stairs runs a parameter s, one for each width: the mass beyond a distance t is, up to a factor, the straight
line between the values of e^(-s epsilon) at whole s, taken at s = (t + width - first) / width. On whole numbers too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds.numerics import legendre

__all__ = ["LOSSES", "Stairs", "best_first", "best_gamma"]

LOSSES = ("absolute", "squared")

_NODES, _WEIGHTS = legendre(16)
_FARTHEST = 800.0  # epsilons down the stairs: beyond, nothing is left in double precision


@dataclass(frozen=True)
class Stairs:
    """Symmetric noise: flat up to ``first`` from 0, then lower by e^-epsilon after every ``width``.

    On whole numbers (``lattice``) both are whole, ``first`` from 1 to ``width``, and the first stair is the numbers
    below ``first`` in size.
    """

    width: float
    first: float
    epsilon: float
    lattice: bool

    @property
    def unit(self) -> float:
        """The distance from one value to the next: 1 on whole numbers, 0 for reals."""
        return 1.0 if self.lattice else 0.0

    @property
    def fall(self) -> float:
        """1 - e^-epsilon."""
        return -math.expm1(-self.epsilon)

    @cached_property
    def whole(self) -> float:
        """The mass of both sides, in units in which the tail is e^(-s epsilon) at whole s."""
        first = self.first / self.width
        after = (self.first - self.unit) / self.width
        low = math.exp(-self.epsilon)
        return (first + (1.0 - first) * low) + (after + (1.0 - after) * low)

    def _step(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Which stair a distance lies on, and what share of its width lies before it."""
        along = np.minimum(t, (_FARTHEST / self.epsilon + 2.0) * self.width) + (self.width - self.first)
        stair = np.floor_divide(along, self.width)
        return stair, (along - stair * self.width) / self.width

    def log_tail(self, t: FloatArray) -> FloatArray:
        """ln P(noise >= t) for t >= 0, whole on whole numbers; may be infinite."""
        stair, share = self._step(t)
        part = (1.0 - share) + share * math.exp(-self.epsilon)  # not 1 - share fall: it may be tiny
        out = -stair * self.epsilon + np.log(part) - math.log(self.whole)
        return np.where(np.isinf(t), -np.inf, out)

    def log_density(self, t: FloatArray) -> FloatArray:
        """ln of the density at t, or of the probability of t."""
        stair, _ = self._step(np.abs(t))
        out = -stair * self.epsilon + math.log(self.fall / (self.width * self.whole))
        return np.where(np.isinf(t), -np.inf, out)

    def inverse(self, p: FloatArray) -> FloatArray:
        """The real t >= 0 at which the tail is p, for p from 0 to 1/2."""
        with np.errstate(divide="ignore", invalid="ignore"):
            log = np.log(p) + math.log(self.whole)
            stair = np.maximum(np.floor(-log / self.epsilon), 0.0)
            share = -np.expm1(log + stair * self.epsilon) / self.fall
            far = self.width * (stair + share - 1.0) + self.first
        near = (0.5 - p) * (self.whole * self.width / self.fall) + self.unit / 2.0
        out = np.where(log > -self.epsilon, near, far)
        return np.where(p > 0.0, np.maximum(out, 0.0), np.inf)

    # -- moments: sums of the tail, all terms positive

    def moments_to(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """E[min(max(noise, 0), t)] and E[min(max(noise, 0), t)^2], for t >= 0; t may be infinite.

        The integrals of the tail and of twice the distance times the tail from 0 to t; on whole numbers sums from 1 on,
        and twice the distance less one.
        """
        unit, width, first = self.unit, self.width, self.first
        low, fall = math.exp(-self.epsilon), self.fall
        last = math.floor(_FARTHEST / self.epsilon) + 2.0
        stop = np.minimum(t, last * width) + unit  # on whole numbers the first that does not count
        # the first stair, then whole ones, then part of one
        end = np.minimum(stop, first)
        middle = end / 2.0
        head = _products(end - unit, unit, 2.0 * middle - unit, low + fall * (first - middle) / width, -fall / width)
        after = np.maximum(stop - first, 0.0)
        stairs = np.floor_divide(after, width)
        rest = after - stairs * width
        level = np.exp(-(stairs + 1.0) * self.epsilon)
        middle = (rest - unit) / 2.0
        distance = first + stairs * width + middle
        tail = _products(
            rest, unit, 2.0 * distance - unit, level * (1.0 - fall * middle / width), -fall / width * level
        )
        half = (width - unit) / 2.0
        mean = 1.0 - fall * half / width
        one = _products(width, unit, 2.0 * (first + half) - unit, mean, -fall / width)
        count, weighted = self._powers(stairs), low * self._weighted_powers(np.maximum(stairs - 1.0, 0.0))
        total = head[0] + one[0] * count + tail[0]
        square = head[1] + one[1] * count + 2.0 * width * width * mean * weighted + tail[1]
        return total / self.whole, square / self.whole

    def _powers(self, count: FloatArray) -> FloatArray:
        """The sum of e^(-k epsilon) for k = 1..count."""
        return math.exp(-self.epsilon) * -np.expm1(-count * self.epsilon) / self.fall

    def _weighted_powers(self, count: FloatArray) -> FloatArray:
        """The sum of k e^(-k epsilon) for k = 1..count.

        In closed form it cancels where count epsilon is small; there the sum is an integral, from that of s e^(-s
        epsilon) between k and k + 1.
        """
        epsilon, powers = self.epsilon, self._powers(count)
        closed = (powers - count * np.exp(-(count + 1.0) * epsilon)) / self.fall
        short = np.minimum(count, 1.0 / epsilon)
        s = 1.0 + short[..., None] * _NODES
        area = short * np.sum(_WEIGHTS * s * np.exp(-epsilon * s), axis=-1)
        slope = float(np.sum(_WEIGHTS * _NODES * np.exp(-epsilon * _NODES)))
        return np.where(count * epsilon < 1.0, (area - slope * powers) * epsilon / self.fall, closed)

    def mean_size(self) -> float:
        """E|noise|."""
        return 2.0 * float(self.moments_to(np.array(np.inf))[0])

    def variance(self) -> float:
        return 2.0 * float(self.moments_to(np.array(np.inf))[1])

    def losing(self, gap: float) -> float:
        """The probability that a shift by ``gap``, at most one width, costs epsilon; it rises with the gap."""
        flat = min(gap, 2.0 * self.first - self.unit)
        return (flat * self.fall + gap * math.exp(-self.epsilon)) / (self.width * self.whole)


def _products(length: Any, unit: float, f: Any, g: Any, g_slope: Any) -> tuple[Any, Any]:
    """The integrals of g and of f g over a length, or sums over as many neighbours; both straight lines, f of slope 2.

    f and g are given in the middle; what their product has beyond its value there is slope times slope times the
    second moment of the length.
    """
    return length * g, length * f * g + 2.0 * g_slope * length * (length * length - unit) / 12.0


def best_gamma(epsilon: float, loss: str) -> float:
    """The share of the width at which the first stair should end, for real noise (Geng and Viswanath)."""
    if loss == "absolute":
        return 1.0 / (1.0 + math.exp(epsilon / 2.0))
    # ((b (1 + b) / 2)^(1/3) - b) / (1 - b) with b = e^-epsilon
    fall, low = -math.expm1(-epsilon), math.exp(-epsilon)
    if fall < 0.5:
        return (math.expm1((-epsilon + math.log1p(-fall / 2.0)) / 3.0) + fall) / fall
    return float(np.cbrt(low * (1.0 + low) / 2.0) - low) / fall


def best_first(width: int, epsilon: float, loss: str) -> int:
    """The best first stair on whole numbers, from 1 to the width: the loss falls up to it and rises after it."""

    def lost(first: int) -> float:
        stairs = Stairs(float(width), float(first), epsilon, lattice=True)
        return stairs.mean_size() if loss == "absolute" else stairs.variance()

    low, high = 1, width
    while low < high:
        middle = (low + high) // 2
        if lost(middle + 1) < lost(middle):
            low = middle + 1
        else:
            high = middle
    return low

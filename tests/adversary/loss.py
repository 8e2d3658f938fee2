"""The exact privacy loss of what entered the mechanisms, against the price.

Two runs of one plan are given by their draws: each a mechanism and the exact numbers that it was to hide. What is
released is a function of these draws, so its loss is at most the sum of theirs; and of independent draws the sum is
attained. Everything is counted with exact fractions, except where the law of a draw has logarithms: those are lowered
by 2^-40, so that what is called a violation is one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from inbounds.composition import Concentrated
from inbounds.mechanism import BoundedLaplace, Gaussian, Laplace
from inbounds.sensitivity import L2

_LOWER = 1.0 - 2.0**-40


@dataclass(frozen=True)
class Draw:
    """What entered a mechanism. Of a pick, the law of its answer: the logarithm of the chance of each cell."""

    mechanism: Any
    exact: Any
    keys: tuple[Any, ...] = ()

    @property
    def rows(self) -> Any:
        """One row for each group."""
        exact = np.asarray(self.exact, dtype=np.float64)
        return exact.reshape(exact.shape[0] if exact.ndim else 1, -1)


@dataclass
class Loss:
    """Added up over draws: the pure loss one way and the other, rho of zCDP, delta; and the worst use of a limit."""

    there: Fraction = Fraction(0)
    back: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    found: Fraction = Fraction(0)
    delta: float = 0.0
    moved: Fraction = Fraction(0)
    stated: Fraction = Fraction(0)
    stated_rho: Fraction = Fraction(0)
    gaussian: bool = False

    def state(self, draw: Draw, groups: int, answered: int) -> None:
        """What the draw gives away where a unit moves it by all that is stated, in as many groups as it may."""
        m = draw.mechanism
        if isinstance(m, tuple):
            one, rho = Fraction(m[0].epsilon * _LOWER), Fraction(m[0].epsilon * _LOWER) ** 2 / 8
        else:
            one = _limit(m.sensitivity) / Fraction(float(m.scale))
            rho = min(one * one / 2, _clamped(m)) * Fraction(_LOWER)
        if isinstance(m, BoundedLaplace):
            self.stated += one * groups
            return
        share = Fraction(groups * (1 if isinstance(m, tuple) else len(draw.rows)), answered)
        self.stated += one * share
        self.stated_rho += rho * share

    def add(self, first: Draw, second: Draw, swapped: bool) -> None:
        mechanism = first.mechanism
        if isinstance(mechanism, BoundedLaplace):
            self._add_found(first, second)
            return
        if not isinstance(mechanism, Laplace | Gaussian):
            self._add_pick(np.asarray(first.exact), np.asarray(second.exact), None if swapped else mechanism[0].epsilon)
            return
        scale = Fraction(float(mechanism.scale))
        limit = mechanism.sensitivity
        for p, q in zip(first.rows, second.rows, strict=True):
            changes = [abs(Fraction(a) - Fraction(b)) for a, b in zip(p.tolist(), q.tolist(), strict=True)]
            if isinstance(mechanism, Gaussian):
                rho = sum((c * c for c in changes), Fraction(0)) / (2 * scale * scale)
                self.rho += min(rho, _clamped(mechanism)) if sum(changes) <= _limit(limit) else rho
            else:
                self.there += sum(changes, Fraction(0)) / scale
                self.back += sum(changes, Fraction(0)) / scale
                if mechanism.edges == "truncate":
                    tilt = _tilt(mechanism, float(p[0]), float(q[0]))
                    self.there += tilt
                    self.back -= tilt
            size, power = _limit(limit) * (2 if swapped else 1), 1
            if isinstance(limit, L2):
                changes, size, power = [c * c for c in changes], size * size, 2
            used = sum(changes, Fraction(0)) / size
            self.moved = max(self.moved, Fraction(math.sqrt(used) * _LOWER) if power == 2 and used <= 1 else used)

    def _add_pick(self, first: Any, second: Any, stated: float | None) -> None:
        """The weights move by a factor e^(epsilon/2) at most, so from the least ratio to the largest it is epsilon."""
        ratio = first - second
        error = 2.0**-44 * (1.0 + float(np.abs(first).max() + np.abs(second).max()))  # of logarithms so long
        if stated is not None:
            self.moved = max(self.moved, Fraction((float(ratio.max() - ratio.min()) - error) / stated * _LOWER))
        self.there += Fraction(max(float(ratio.max()), 0.0) * _LOWER)
        self.back += Fraction(max(float(-ratio.min()), 0.0) * _LOWER)
        self.rho += Fraction(float(ratio.max() - ratio.min()) * _LOWER) ** 2 / 8

    def _add_found(self, first: Draw, second: Draw) -> None:
        """Groups of the data, by the bounded noise on how many units they have. Absent ones cannot be found."""
        mechanism, counts = first.mechanism, [dict(zip(d.keys, d.exact, strict=True)) for d in (first, second)]
        least = math.floor(1 + mechanism.bound) + 1 - mechanism.bound - 1
        for key in counts[0].keys() | counts[1].keys():
            a, b = (max(Fraction(c.get(key, 0)), Fraction(least)) for c in counts)
            if a != b:
                self.moved = max(self.moved, abs(a - b) / Fraction(float(mechanism.sensitivity)))
                self.found += abs(a - b) / Fraction(float(mechanism.scale))
                self.delta += float(mechanism.delta(float(mechanism.sensitivity) / mechanism.scale))

    def ratio(self, goal: Mapping[str, float]) -> Fraction:
        """What is used of the price, at most 1 where the promise holds."""
        if "rho" in goal:
            return self.rho / Fraction(repr(goal["rho"]))
        epsilon, delta = Fraction(repr(goal["epsilon"])), goal.get("delta", 0.0)
        pure = max(self.there, self.back)
        if delta and self.gaussian:
            left = float(epsilon - self.found)
            if left <= 0.0 or self.delta >= delta:
                return Fraction(2)
            ratio = self.rho / Fraction(most_rho(left, delta - self.delta))
        else:
            ratio = (pure + self.found) / epsilon
        return max(ratio, Fraction(self.delta * _LOWER / delta)) if delta else ratio

    def stated_ratio(self, goal: Mapping[str, float]) -> Fraction:
        """The same of what is stated; 0 where that is part of pure noise and part of Gaussian noise."""
        if "rho" in goal:
            return self.stated_rho / Fraction(repr(goal["rho"]))
        if self.gaussian:
            return Fraction(0)
        return self.stated / Fraction(repr(goal["epsilon"]))


def _limit(limit: Any) -> Fraction:
    return Fraction(float(getattr(limit, "value", limit)))


def _clamped(mechanism: Any) -> Fraction:
    """The most of Gaussian noise whose answers are moved into a bounded range: that hides how far beyond they were."""
    bounded = mechanism.edges == "clamp" and getattr(mechanism.domain, "bounded", False)
    return Fraction(float(mechanism.zcdp())) if isinstance(mechanism, Gaussian) and bounded else Fraction(10**9)


@functools.cache
def most_rho(epsilon: float, delta: float) -> float:
    """The largest rho whose zCDP implies (epsilon, delta)-DP, from above."""
    low, high = 0.0, max(1.0, epsilon)
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if Concentrated(middle).delta(epsilon) <= delta else (low, middle)
    return high


def _tilt(mechanism: Any, p: float, q: float) -> Fraction:
    """ln Z(q) - ln Z(p) for truncated noise: by it one of the two laws is higher everywhere."""
    domain, scale = mechanism.domain, float(mechanism.scale)
    low, high = float(domain.lower), float(domain.upper)
    p, q = min(max(p, low), high), min(max(q, low), high)

    def mass(x: float) -> float:
        if domain.lattice:
            r = math.exp(-1.0 / scale)
            sides = (1.0 - r ** (x - low + 1)) + (1.0 - r ** (high - x + 1))
            return (sides - (1.0 - r)) / (1.0 - r)
        return 2.0 - math.exp(-(x - low) / scale) - math.exp(-(high - x) / scale)

    return Fraction((math.log(mass(q)) - math.log(mass(p))) * _LOWER)


def privacy_loss(first: Sequence[Draw], second: Sequence[Draw], *, swapped: bool, groups: int, answered: int) -> Loss:
    """Of two runs whose draws were by the same mechanisms in the same order.

    A unit counts in ``groups`` of the groups ``answered``; ``swapped`` where it may leave some of them for others.
    """
    loss = Loss(gaussian=any(isinstance(draw.mechanism, Gaussian) for draw in first))
    for one, other in zip(first, second, strict=True):
        loss.add(one, other, swapped)
        if not swapped:
            loss.state(one, groups, answered)
    return loss

"""Staircase and bounded Laplace noise from their definitions, at 60 digits; for the tests of the two mechanisms.

Nothing here is taken from the package. Noise is symmetric around 0 and either real or whole; what is released is the
true value plus noise, rounded to a multiple of the grid and moved to the nearest grid point of the domain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from mpmath import mp, mpf
from scipy import stats

from inbounds.sampling.entropy import Seeded


def exactly(x: Any) -> Any:
    f = Fraction(x)
    return mpf(f.numerator) / f.denominator


@dataclass(frozen=True)
class Stairs:
    """A density (or pmf) of 1 below ``first`` in size, e^(-j epsilon) on the j-th stair after it, not normalised."""

    width: Fraction
    first: Fraction
    epsilon: float
    lattice: bool

    def weight(self, i: int) -> Any:
        return mp.exp(-self.level(i) * exactly(self.epsilon))

    def level(self, t: Any) -> int:
        return 0 if abs(t) < self.first else 1 + math.floor((abs(Fraction(t)) - self.first) / self.width)

    def tail(self, t: Fraction) -> Any:
        """The mass from t >= 0 on: what is left of its stair, and all stairs below."""
        e, level = exactly(self.epsilon), self.level(t)
        left = self.first + level * self.width - t
        return exactly(left) * mp.exp(-level * e) + exactly(self.width) * mp.exp(-(level + 1) * e) / -mp.expm1(-e)


@dataclass(frozen=True)
class Cut:
    """e^(-|t| / scale) up to ``bound``, not normalised."""

    scale: float
    bound: Fraction
    lattice: bool

    def weight(self, i: int) -> Any:
        return mp.exp(-abs(i) / exactly(self.scale)) if abs(i) <= self.bound else mpf(0)

    def tail(self, t: Fraction) -> Any:
        if t > self.bound:
            return mpf(0)
        b = exactly(self.scale)
        if self.lattice:
            return (mp.exp(-exactly(t) / b) - mp.exp(-exactly(self.bound + 1) / b)) / -mp.expm1(-1 / b)
        return b * (mp.exp(-exactly(t) / b) - mp.exp(-exactly(self.bound) / b))


def below(noise: Any, t: Any) -> Any:
    """P(noise <= t)."""
    if t == math.inf or t == -math.inf:
        return mpf(t > 0)
    t = Fraction(math.floor(t)) if noise.lattice else Fraction(t)
    after = Fraction(int(noise.lattice))
    whole = noise.tail(Fraction(0)) + noise.tail(after)
    return noise.tail(-t) / whole if t < 0 else 1 - noise.tail(t + after) / whole


def released_below(noise: Any, q: float, k: float, g: float) -> Any:
    """P(position of the rounded answer <= k), before projection."""
    if math.isinf(k):
        return mpf(k > 0)
    edge = Fraction(int(k)) if noise.lattice else (2 * int(k) + 1) * Fraction(g) / 2
    return below(noise, edge - Fraction(q))


def pmf(noise: Any, reach: int) -> tuple[Any, Any]:
    """Whole numbers up to ``reach`` in size, and their probabilities (floats), normalised over all of them."""
    i = np.arange(-reach, reach + 1)
    half = [noise.weight(k) for k in range(reach + 1)]
    whole = noise.tail(Fraction(0)) + noise.tail(Fraction(1))
    p = np.array([float(w / whole) for w in half])
    return i, np.concatenate([p[:0:-1], p])


def clamped(i: Any, p: Any, lower: int, upper: int) -> Any:
    """Row q: the law of the answer on lower..upper when the true value is lower + q."""
    rows = []
    for q in range(lower, upper + 1):
        row = np.zeros(upper - lower + 1)
        np.add.at(row, np.clip(q + i, lower, upper) - lower, p)
        rows.append(row)
    return np.array(rows)


def integral(f: Any, knots: Any) -> float:
    """Of a function that is a cubic, or less, between the knots."""
    a, b = np.array(knots[:-1]), np.array(knots[1:])
    half, middle = (b - a) / 2.0, (a + b) / 2.0
    away = half / math.sqrt(3.0)
    return float(np.sum(half * (f(middle - away) + f(middle + away))))


class Words:
    """A source that gives the words of a list, then those of a generator with a fixed seed."""

    def __init__(self, words: list[int]) -> None:
        self._words, self._rest = list(reversed(words)), Seeded(1)
        self.taken: list[int] = []

    def word(self) -> int:
        self.taken.append(self._words.pop() if self._words else self._rest.word())
        return self.taken[-1]

    def fill(self, words: Any) -> None:
        words[:] = [self.word() for _ in range(words.size)]


def check_draw(noise: Any, sampler: Any, q: float, words: list[int]) -> None:
    """One draw, alone and in an array: its cell holds the uniform whose bits begin with the words."""
    for draw in (sampler.one, lambda q, bits: float(sampler.draw(np.array([q]), bits)[0])):
        source = Words(words)
        value = draw(q, source)
        k = Fraction(value) / Fraction(sampler.grid)
        assert k.denominator == 1
        if abs(k) >= 2**53:
            continue  # the nearest float was released
        used = source.taken + words[len(source.taken) :]
        U = sum(Fraction(w, 1 << 64 * (n + 1)) for n, w in enumerate(used))
        last = exactly(U + Fraction(1, 1 << 64 * len(used)))
        assert released_below(noise, q, int(k) - 1, sampler.grid) < last
        assert exactly(U) < released_below(noise, q, int(k), sampler.grid)


def awkward_words(noise: Any, q: float, g: float, positions: list[int], zeros: list[int]) -> list[list[int]]:
    """Uniforms within 2^-zeros of the edge of a cell, on both sides; and extreme ones."""
    out = [
        [0, 0, 5],
        [0, 1 << 40, 7],
        [2**64 - 1, 2**64 - 1, 2**64 - 3],
        [1 << 63, 0, 1],
        [(1 << 63) - 1, 2**64 - 1, 9],
    ]
    for k in positions:
        edge = released_below(noise, q, k, g)
        if not 0 < edge < 1:
            continue
        for z in zeros:
            for side in (-1, 1):
                U = int(mp.floor((edge + side * mpf(2) ** -z) * mpf(2) ** 256))
                if 0 <= U < 1 << 256:
                    out.append([(U >> 64 * (3 - n)) & (2**64 - 1) for n in range(4)])
    return out


def grid_ends(domain: Any, edges: str, g: float) -> list[tuple[float, float]]:
    """The first and the last grid position in each piece where answers can be."""
    if edges == "ignore":
        return [(-math.inf, math.inf)]
    step = Fraction(g)
    return [
        (
            math.ceil(Fraction(a) / step) if math.isfinite(a) else a,
            math.floor(Fraction(b) / step) if math.isfinite(b) else b,
        )
        for a, b in domain.pieces
    ]


def answer_below(noise: Any, q: float, k: int, g: float, ends: list[tuple[float, float]]) -> Any:
    """P(position of the answer <= k), for a position k of the domain; in a hole the nearer side wins, ties down."""
    piece = next(n for n, (first, last) in enumerate(ends) if first <= k <= last)
    if k < ends[piece][1]:
        return released_below(noise, q, k, g)
    return mpf(1) if piece == len(ends) - 1 else released_below(noise, q, (k + ends[piece + 1][0]) // 2, g)


def chi_square(drawn: Any, noise: Any, m: Any, q: float, cells: int = 24) -> float:
    """The p-value of releases against the law of a mechanism with this noise, on cells of about equal probability."""
    g, ends = m.grid, grid_ends(m.domain, m.edges, m.grid)
    k = np.sort(np.asarray(drawn, dtype=float) / g)
    assert (k == np.round(k)).all()
    marks = [int(x) for x in np.unique(np.quantile(k, np.linspace(0.0, 1.0, cells + 1)[1:-1], method="lower"))]
    marks = [x for x in marks if x < ends[-1][1]]
    share = np.diff([0.0, *(float(answer_below(noise, q, x, g, ends)) for x in marks), 1.0])
    seen = np.diff([0, *np.searchsorted(k, marks, side="right"), k.size])
    some = share > 0.0
    if seen[~some].any():
        return 0.0
    statistic = np.sum((seen[some] - k.size * share[some]) ** 2 / (k.size * share[some]))
    return float(stats.chi2.sf(statistic, np.count_nonzero(some) - 1))

"""Quantiles: the exponential mechanism on a public grid of cells, in whole numbers throughout.

A cell is the better, the fewer values would have to move for the quantile to lie in it. Cells are drawn with weights
that fall by a fixed factor for each step of that shortfall. Both the shortfalls and the weights are whole numbers, so
that the guarantee holds for the draw as it is made. Proof page: ``docs/proofs/tables.md``.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np

from inbounds.sampling.entropy import pool

__all__ = ["Picker"]

_SURE = 35.0  # nats: cells worse than this many are alike, together less likely than 1e-15
_STEPS = 200_000
_BITS = 60


@dataclass(frozen=True)
class Picker:
    """Picks a cell near a quantile.

    Attributes
    ----------
    level : Fraction in [0, 1]
    epsilon : float
        What one pick costs, where a unit moves the shortfall by ``reach`` at most.
    reach : Fraction
        How far one unit moves the shortfall, in values.
    cells : int
    step : int
        Shortfalls are counted in steps of so many 1/denominators of the level, so that the table of weights stays
        small. By default a unit moves them by 64 steps or more where it can, so little is lost by rounding.
    """

    level: Fraction
    epsilon: float
    reach: Fraction
    cells: int
    step: int = 0

    def __post_init__(self) -> None:
        if self.step == 0:
            reach = math.ceil(self.reach * self.level.denominator)
            steps = max(1, min(reach, math.floor(_STEPS * self.epsilon / (2.0 * _SURE))))
            object.__setattr__(self, "step", -(-reach // steps))

    @property
    def scale(self) -> float:
        """Values by which the likelihood falls to 1/e."""
        return float(2 * self.reach) / self.epsilon

    def within(self, failure: float) -> float:
        """With probability 1 - failure what is picked is short of the best cell by at most this many values."""
        sure = math.log(self.cells) - math.log(failure)
        table = self._table
        if sure > (len(table) - 1) * self._rate:
            return math.inf
        return (sure / self._rate + 1.0) * self.step / self.level.denominator

    def moves(self, reach: Fraction) -> int:
        """By how many steps a unit moves the shortfall at most, which moves it by ``reach`` values.

        A pick costs epsilon where these are as many as for its own reach, and in proportion where they are not.
        """
        return math.ceil(reach * self.level.denominator / self.step)

    @property
    def _rate(self) -> float:
        """By which factor e^-rate a weight falls with a step."""
        return self.epsilon / (2.0 * self.moves(self.reach))

    @property
    def _table(self) -> tuple[int, ...]:
        return _weights(self._rate, min(_STEPS, math.ceil((math.log(self.cells) + _SURE) / self._rate)))

    def pick(self, counts: Sequence[int], shift: float = 0.0) -> int:
        """One cell, given how many values lie in each. The aim is the quantile, moved by ``shift`` values.

        At levels 0 and 1 the aim never passes the middle.
        """
        number = np.array(counts, dtype=np.int64)
        p, d = self.level.numerator, self.level.denominator
        # Whole numbers below 2^62, or Python's own.
        exact = number if (int(number.sum()) + abs(shift)) * d < 2**60 else number.astype(object)
        through = np.cumsum(exact)
        total = int(through[-1])
        moved = math.floor(shift * d)
        aim = p * total + moved
        if p in (0, d):
            aim = min(aim, total * d // 2) if p == 0 else max(aim, total * d - total * d // 2)
        short = np.maximum(np.maximum(d * (through - exact) - aim, aim - d * through), 0)
        table = self._table
        places = np.minimum(short // self.step, len(table) - 1).astype(np.int64)
        # Cells that are equally good: first which sort, then which of them.
        sorts, sizes = np.unique(places, return_counts=True)
        sort = _draw([table[i] * size for i, size in zip(sorts.tolist(), sizes.tolist(), strict=True)])
        alike = np.flatnonzero(places == sorts[sort])
        return int(alike[_below(alike.size)])


@lru_cache(maxsize=64)
def _weights(rate: float, last: int) -> tuple[int, ...]:
    """Weights for shortfalls of 0 to ``last`` steps; each at most e^rate times the next.

    Longer shortfalls count as the last. So a unit changes no weight by more than a factor e^(epsilon/2), nor their sum.
    """
    factor = (1 << _BITS) + math.floor(math.expm1(rate) * (1.0 - 2.0**-40) * 2.0**_BITS)
    found = [1 << 64]
    for _ in range(last):
        found.append(found[-1] * factor >> _BITS)
    return tuple(found[::-1])


def _draw(weights: list[int]) -> int:
    """An index with probability exactly proportional to its weight."""
    sums = list(accumulate(weights))
    return bisect_right(sums, _below(sums[-1]))


def _below(total: int) -> int:
    """A whole number from 0 to total - 1, each with the same probability."""
    bits = total.bit_length()
    words = -(-bits // 64)
    while True:
        number = 0
        for _ in range(words):
            number = number << 64 | pool.word()
        number >>= 64 * words - bits
        if number < total:
            return number

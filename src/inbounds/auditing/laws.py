"""The worst pair of any mechanism on a one-dimensional domain, from the cumulative distributions of its answers.

The answers are cut into cells, and the two probabilities of every cell are compared. A cell, or a union of cells, is an
output set like any other: cells that are badly chosen hide a difference but never make one up. They are cut at
quantiles of the two laws, at point masses, and where the mechanism says that likelihood ratios jump
(``Mechanism._cuts``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from inbounds._checks import FloatArray
from inbounds.auditing.lines import ERROR, near_quantiles
from inbounds.auditing.pairs import Neighbours
from inbounds.auditing.report import Event, Witness
from inbounds.domain import Line
from inbounds.mechanism import Mechanism

__all__ = ["law_evidence"]

_PAIRS = 200  # pairs tried
_TIE = 1e-9


@dataclass(frozen=True)
class Cells:
    """Two true values and the probabilities of cells of outputs (after ``cuts[i]``, up to ``cuts[i + 1]``)."""

    pair: tuple[float, float]
    cuts: FloatArray
    first: FloatArray
    second: FloatArray
    first_error: FloatArray
    second_error: FloatArray

    @classmethod
    def of(cls, m: Mechanism, a: float, b: float) -> Cells:
        laws: list[Any] = [m.at(a), m.at(b)]
        atoms = [point for law in laws for point, _ in law.atoms]
        before = [math.nextafter(point, -math.inf) for point in atoms]
        cuts = np.concatenate([near_quantiles(laws), m._cuts(a, b), atoms, before])
        if m.domain.lattice:
            cuts = np.concatenate([np.floor(cuts), np.floor(cuts) - 1.0])
        cuts = np.unique(cuts[np.isfinite(cuts)])
        found = [_cell_probabilities(law, cuts) for law in laws]
        (first, first_error), (second, second_error) = found
        return cls((a, b), np.concatenate([[-np.inf], cuts, [np.inf]]), first, second, first_error, second_error)

    def turned(self) -> Cells:
        a, b = self.pair
        return Cells((b, a), self.cuts, self.second, self.first, self.second_error, self.first_error)

    def event(self, chosen: npt.NDArray[np.bool_]) -> Event:
        """A union of cells, neighbours joined."""
        edges = np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8))
        starts, stops = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        return tuple((float(self.cuts[i]), float(self.cuts[j])) for i, j in zip(starts, stops, strict=True))

    def sure_loss(self) -> FloatArray:
        """ln(P / P') of each cell, from below."""
        least, most = self.first - self.first_error, self.second + self.second_error
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(least > 0.0, np.log(least) - np.log(most), -np.inf)

    def worst(self, epsilon: float) -> Witness:
        """The cell with the largest loss; of several, the likeliest."""
        sure = self.sure_loss()
        i = int(np.argmax(np.where(_near_top(sure), self.first, -1.0)))
        p, q = float(self.first[i]), float(self.second[i])
        with np.errstate(divide="ignore"):
            loss = float(np.log(p) - np.log(q)) if p > 0.0 else -math.inf
        return Witness(
            pair=self.pair,
            event=self.event(np.arange(sure.size) == i),
            probabilities=(p, q),
            loss=loss,
            excess=loss - epsilon,
            error=loss - float(sure[i]) if math.isfinite(loss) else 0.0,
        )

    def gain(self, epsilon: float) -> tuple[npt.NDArray[np.bool_], float]:
        """The cells that are likelier by more than e^epsilon, and what P - e^epsilon P' of them is at least."""
        with np.errstate(over="ignore"):
            over = self.first - math.exp(epsilon) * self.second
            error = self.first_error + math.exp(epsilon) * self.second_error
        clear = np.abs(over) > error
        last = np.maximum.accumulate(np.where(clear, np.arange(over.size), 0))  # where unclear, as the cell before
        chosen = (clear & (over > 0.0))[last]
        return chosen, float(np.sum((over - error)[chosen]))

    def worst_set(self, epsilon: float, delta: float) -> Witness:
        """All cells that are likelier by more than e^epsilon."""
        chosen, least = self.gain(epsilon)
        p, q = float(np.sum(self.first[chosen])), float(np.sum(self.second[chosen]))
        over = p - math.exp(epsilon) * q
        return Witness(
            pair=self.pair,
            event=self.event(chosen),
            probabilities=(p, q),
            loss=math.log(p / q) if min(p, q) > 0.0 else math.inf if p > 0.0 else 0.0,
            excess=over - delta,
            error=max(over - least, 0.0) + 1e-300,
        )

    def epsilon(self, delta: float) -> float:
        """The largest epsilon found that the pair rules out at delta."""
        low, high = 0.0, 500.0
        if self.gain(high)[1] > delta:
            return math.inf if np.sum(self.first[self.second + self.second_error == 0.0]) > delta else high
        for _ in range(60):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.gain(middle)[1] > delta else (low, middle)
        return low


def _near_top(values: FloatArray) -> npt.NDArray[np.bool_]:
    """Which are largest, but for rounding."""
    top = float(np.max(values))
    return values >= (top - _TIE * (1.0 + abs(top)) if math.isfinite(top) else top)


def _cell_probabilities(law: Any, cuts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of the cells, with a bound on the error; from whichever side is the smaller."""
    below = np.concatenate([[0.0], law.cdf(cuts), [1.0]])
    above = np.concatenate([[1.0], law.sf(cuts), [0.0]])
    low = below[1:] <= above[:-1]
    value = np.where(low, np.diff(below), -np.diff(above))
    error = ERROR * np.where(low, below[1:], above[:-1])
    return np.maximum(value, 0.0), error


def law_evidence(m: Mechanism, epsilon: float, delta: float) -> tuple[Witness | None, Witness | None, float]:
    """The output set with the largest loss, that with the largest delta, and an epsilon ruled out at delta."""
    sensitivity = cast(float, m.sensitivity)
    near = Neighbours(cast(Line, m.domain), sensitivity, float(getattr(m, "scale", sensitivity)))
    low, high = near.farthest_pairs(near.places())
    if low.size == 0:
        return None, None, 0.0
    tried = np.unique(np.linspace(0, low.size - 1, min(low.size, _PAIRS)).astype(np.int64))
    all_cells: list[Cells] = []
    for a, b in zip(low[tried].tolist(), high[tried].tolist(), strict=True):
        cells = Cells.of(m, a, b)
        all_cells += [cells, cells.turned()]
    ones = [cells.worst(epsilon) for cells in all_cells]
    ties = _near_top(np.array([w.loss - w.error for w in ones]))
    one = max((w for w, tie in zip(ones, ties, strict=True) if tie), key=lambda w: cast(Any, w.probabilities)[0])
    by_set = max(all_cells, key=lambda cells: cells.gain(epsilon)[1])
    many = by_set.worst_set(epsilon, delta)
    ruled_out = 0.0
    if delta > 0.0:
        ruled_out = by_set.epsilon(delta)
        if ruled_out < math.inf:
            ruled_out = max(ruled_out, max(all_cells, key=lambda cells: cells.gain(ruled_out)[1]).epsilon(delta))
    return one, many, ruled_out

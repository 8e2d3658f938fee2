"""One private answer: a value inside the set of answers that make sense, and what it says about the exact one."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from inbounds import _checks as check
from inbounds._checks import FloatArray
from inbounds.errors import ParameterTypeError
from inbounds.mechanism import Mechanism
from inbounds.tables.kinds import Kind, plain
from inbounds.tables.tails import Noise, hull

__all__ = ["Answer", "FromCells", "FromDraw", "FromPick", "Unit"]


@dataclass(frozen=True)
class Unit:
    """What a number of a column stands for: itself, a day or a second since 1970-01-01; a date between two others."""

    kind: Kind = Kind.REAL
    lower: Any = None
    upper: Any = None

    def back(self, number: float) -> Any:
        if not self.kind.temporal:
            return number
        # Far from 1970 a float64 is not exact to the microsecond, nor need it be inside the calendar.
        low, high = (plain(self.kind, end) for end in (self.lower, self.upper))
        whole = min(max(round(number if self.kind is Kind.DATE else number * 1e6), low), high)
        if self.kind is Kind.DATE:
            return dt.date(1970, 1, 1) + dt.timedelta(days=whole)
        zone = dt.UTC if self.kind is Kind.INSTANT else None
        return dt.datetime(1970, 1, 1, tzinfo=zone) + dt.timedelta(microseconds=whole)

    def shown(self, number: Any) -> str:
        value = self.back(number) if not isinstance(number, dt.date) else number
        return f"{value:,.4g}" if isinstance(value, float) and abs(value) < 1e4 else (
            f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Answer:
    """A private answer.

    Attributes
    ----------
    value : int, float, date or datetime
        Always one of the answers that make sense; None where it is suppressed.
    valid : pair
        The ends of the answers that make sense.
    notes : tuple of str
        What to know when reading it. Public.
    """

    value: Any
    valid: tuple[Any, Any]
    notes: tuple[str, ...]
    source: Any

    @property
    def suppressed(self) -> bool:
        return self.value is None

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """(lower, upper): contains the exact answer about the bounded data with at least this probability.

        It contains the value, too. What bounds and caps leave out of the data is not part of it; see ``notes``.
        """
        level = check.level("Answer", level)
        if self.value is None:
            return self.valid
        low, high = self.source.interval(level)
        return min(low, self.value), max(high, self.value)

    def __float__(self) -> float:
        if not isinstance(self.value, int | float):
            what = "suppressed" if self.value is None else type(self.value).__name__
            step = "Look at suppressed, or at value."
            check.refuse("Answer", "value", "a number for float()", what, step, ParameterTypeError)
        return float(self.value)

    def __repr__(self) -> str:
        if self.value is None:
            return "Answer(suppressed)"
        low, high = self.interval()
        return f"Answer({shown(self.value)}, 95 % interval {shown(low)} to {shown(high)})"

    def _repr_html_(self) -> str:
        if self.value is None:
            return "<i>suppressed</i>"
        low, high = self.interval()
        text = (
            f"<b>{escape(shown(self.value))}</b> &nbsp;({escape(shown(low))} &ndash; {escape(shown(high))}, 95&nbsp;%)"
        )
        return text + "".join(f"<br><small>{escape(note)}</small>" for note in self.notes)


def shown(value: Any) -> str:
    """A value for people: enough digits, not more."""
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


@dataclass(frozen=True, eq=False)
class FromDraw:
    """One number, drawn from a mechanism of its own; the exact one is ``most`` at most."""

    mechanism: Mechanism
    drawn: Any
    most: Any = math.inf

    def interval(self, level: float) -> tuple[Any, Any]:
        low, high = self.mechanism.interval(self.drawn, level)
        return min(low, self.most), min(high, self.most)


# For each degree: the mean of x is the weighted share of the cells.
_MEANS = {1: np.array([0.0, 1.0]), 2: np.array([0.0, 0.5, 1.0])}


@dataclass(frozen=True, eq=False)
class FromCells:
    """A mean, share, variance, standard deviation, sum or count, from noisy cells.

    ``what`` is one of these words. ``lower`` and ``upper``: what 0 and 1 stand for. ``most``: how many values there are
    at most. ``whole``: the sum is a whole number, as a count is.
    """

    noise: Noise
    cells: tuple[float, ...]
    degree: int
    what: str
    lower: float = 0.0
    upper: float = 1.0
    unit: Unit = Unit()
    most: float = math.inf
    whole: bool = False

    @property
    def width(self) -> float:
        return self.upper - self.lower

    @property
    def _valued(self) -> FloatArray:
        """The cells without the one of what has no value."""
        return np.array(self.cells[: self.degree + 1])

    def _shares(self) -> FloatArray:
        """Shares of the cells, drawn towards equal ones where the noise is larger than the number of values."""
        cells = np.maximum(self._valued, 0.0)
        total, spread = float(np.sum(cells)), self.noise.variance * len(cells)
        return np.asarray((total * cells + spread / len(cells)) / (total * total + spread))

    def value(self) -> Any:
        if self.what in ("count", "sum"):
            weights, cells = self._total_of
            total = float(weights @ cells)
            return self._within(round(total) if self._is_whole else total)
        shares = self._shares()
        mean = float(_MEANS[self.degree] @ shares)
        if self.what in ("mean", "share"):
            return self.unit.back(self._scaled(mean))
        variance = min(max(float(shares[2]) - mean * mean, 0.0), 0.25) * self.width**2
        return math.sqrt(variance) if self.what == "std" else variance

    @property
    def valid(self) -> tuple[float, float]:
        """The counts or sums that make sense."""
        if self.what == "count":
            return 0, self.most
        return (
            self.lower * self.most if self.lower < 0.0 else 0.0,
            self.upper * self.most if self.upper > 0.0 else 0.0,
        )

    @property
    def _is_whole(self) -> bool:
        return self.whole or self.what == "count"

    @property
    def _total_of(self) -> tuple[FloatArray, FloatArray]:
        """The weights and cells of which a count or a sum consists."""
        if self.what == "count":
            return np.ones(len(self.cells)), np.array(self.cells)
        return self.lower + self.width * _MEANS[self.degree], self._valued

    def _within(self, x: float) -> Any:
        """A count or a sum, moved to the nearest that makes sense."""
        inside = min(max(x, self.valid[0]), self.valid[1])
        return int(inside) if self._is_whole else inside

    def _scaled(self, x: float) -> float:
        return min(max(self.lower + self.width * x, self.lower), self.upper)

    def interval(self, level: float) -> tuple[Any, Any]:
        if self.what in ("count", "sum"):
            return self._total(level)
        if self.what in ("mean", "share"):
            low, high = self._mean(1.0 - level)
            return self.unit.back(self._scaled(low)), self.unit.back(self._scaled(high))
        low, high = (x * self.width**2 for x in self._variance(1.0 - level))
        return (math.sqrt(low), math.sqrt(high)) if self.what == "std" else (low, high)

    def _total(self, level: float) -> tuple[Any, Any]:
        weights, cells = self._total_of
        noisy = float(weights @ cells)
        reach = 1.0
        while self.noise.tail(np.array(reach), weights) >= 1.0 - level:
            reach *= 2.0
        far = hull(lambda x: self.noise.tail(x, weights), np.zeros(1), 0.0, reach, 1.0 - level)[1]
        low, high = noisy - far, noisy + far
        if self._is_whole:
            nearest = round(noisy)  # the only whole number, where none is near enough
            low, high = min(math.ceil(low), nearest), max(math.floor(high), nearest)
        return self._within(low), self._within(high)

    def _tests_mean(self, x: FloatArray) -> FloatArray:
        """p-values of the hypotheses that the mean is x: then the sum of (value - x) is 0."""
        weights = _MEANS[self.degree] - x[:, None]
        return self.noise.tail(weights @ self._valued, weights)

    def _mean(self, failure: float) -> tuple[float, float]:
        return hull(self._tests_mean, self._seed(), 0.0, 1.0, failure)

    def _seed(self) -> FloatArray:
        total = float(np.sum(self._valued))
        return np.array([_MEANS[self.degree] @ self._valued / total if total != 0.0 else 0.5])

    def _variance(self, failure: float) -> tuple[float, float]:
        """The variances v for which some mean m is not rejected and the sum of (value - m)^2 - v may be 0."""
        low, high = self._mean(failure / 2.0)
        means = np.unique(np.concatenate([np.linspace(low, high, 65), np.clip(self._seed(), low, high)]))
        squares = np.stack([means**2, -means * (1.0 - means), (1.0 - means) ** 2], axis=-1)
        total = float(np.sum(self._valued))
        seeds = squares @ self._valued / total if total > 0.0 else np.zeros(1)

        def tests(v: FloatArray) -> FloatArray:
            weights = squares[None] - v[:, None, None]
            return np.asarray(np.max(self.noise.tail(weights @ self._valued, weights), axis=-1))

        # No variance beyond m (1 - m) goes with a mean m; the largest is that of the mean nearest to 1/2.
        middle = min(max(low, 0.5), high)
        most = middle * (1.0 - middle)
        return hull(tests, seeds, 0.0, max(most, 1e-12), failure / 2.0)


@dataclass(frozen=True, eq=False)
class FromPick:
    """A quantile picked from the cells of a grid, and the ends of its interval, picked with it."""

    lower: Any
    upper: Any
    planned: float | None
    bounds: tuple[Any, Any]

    def interval(self, level: float) -> tuple[Any, Any]:
        if self.planned is None or level > self.planned + 1e-12:
            return self.bounds
        return self.lower, self.upper

"""A mechanism given by a table of whole numbers: one row for each cell of the domain, one column for each answer.

Everything about it is exact: draws, probabilities and privacy come from the integers themselves. Proofs:
``docs/proofs/optimal.md``.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import accumulate
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from inbounds import _checks as check
from inbounds import _exact, inference, privacy
from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds._exact import Number
from inbounds.distribution import Errors
from inbounds.domain import Box, Domain, Integers, Interval, Line, Spans
from inbounds.errors import ParameterTypeError
from inbounds.inference.bayes import Shape
from inbounds.inference.views import tail_of
from inbounds.mechanism.base import Mechanism, check_domain
from inbounds.numerics import Bound
from inbounds.programs import neighbours
from inbounds.sampling import Sampler
from inbounds.sampling.entropy import Keystream, Source
from inbounds.sampling.exact import exp_neg
from inbounds.sampling.finite import Finite
from inbounds.sampling.grid import locate, padded, step_of
from inbounds.sensitivity import Sensitivity, resolve

__all__ = ["Cells", "Table", "TableCurve", "TableLaw"]

Rows = npt.NDArray[np.int64]
Whole = npt.NDArray[np.object_]

LARGEST = 1024  # cells
_BLOCK = 65_536
_ROOM = Fraction(1, 2**40)  # of the domain's width: what true answers may be off by from rounding
_ADJUST = Fraction(1, 2**20)  # how much longer cells may be made so that the sensitivity is a whole number of them
_SLACK, _ROUNDING = 2.0**-40, 2.0**-46
_ROOM_BITS = 2**32  # of memory that weights may take when all rows are brought to one total
_TINY = 2.0**-1000  # floats from here on have all their digits


# ---------------------------------------------------------------- cells


@dataclass(frozen=True, eq=False)
class Cells:
    """The domain cut into cells of one length; all true values of a cell are treated as its point.

    Attributes
    ----------
    points : array
        One of each cell: of an interval its middle, of a block of whole numbers the lower middle.
    starts : array
        Where each cell begins; it ends before the next one begins, or with the piece of the domain it lies in.
    first : array
        For each cell the first one that may hold a true value within the sensitivity of one of its own.
    grid : float
        A power of two (on Integers 1) of which all points are multiples.
    """

    points: FloatArray
    starts: FloatArray
    first: Rows
    grid: float

    @classmethod
    def of(cls, what: str, domain: Any, sensitivity: float, count: int) -> Cells:
        """About ``count`` cells; exactly so many on an Interval. Blocks of whole numbers are of one size."""
        if isinstance(domain, Integers):
            return cls._blocks(domain, sensitivity, count)
        return cls._parts(what, domain, sensitivity, count)

    @classmethod
    def _blocks(cls, domain: Integers, sensitivity: float, count: int) -> Cells:
        low, high = int(domain.lower), int(domain.upper)
        size = -(-(high - low + 1) // count)
        starts = np.arange(low, high + 1, size, dtype=np.float64)
        ends = np.append(starts[1:] - 1.0, float(high))
        reach = -(-int(sensitivity) // size)
        first = np.maximum(np.arange(starts.size) - reach, 0)
        return cls(starts + np.floor((ends - starts) / 2.0), starts, first, 1.0)

    @classmethod
    def _parts(cls, what: str, domain: Interval | Spans, sensitivity: float, count: int) -> Cells:
        """Each piece on its own. Lengths and points are multiples of a power of two: sums of them are exact."""
        pieces = [(Fraction(low), Fraction(high)) for low, high in domain.pieces]
        total = sum(high - low for low, high in pieces)
        near = Fraction(sensitivity) + (pieces[-1][1] - pieces[0][0]) * _ROOM
        grid = Fraction(step_of(what, domain, float(total / count), None))
        points: list[Fraction] = []
        starts: list[Fraction] = []
        first: list[int] = []
        ends: list[Fraction] = []
        for low, high in pieces:
            here, width = len(points), high - low
            own = max(1, round(count * width / total))
            reach = max(1, math.ceil(near * own / width * (1 - _ADJUST)))
            step = math.ceil(max(width / own, near / reach if own > 1 else 0) / (2 * grid)) * 2 * grid
            over = own * step - width
            if 4 * over > step:
                advice = f"Numbers of this size are {float(grid)!r} apart. Pass fewer, or shift the domain towards 0."
                check.refuse(what, "cells", "so few that floats tell them apart", count, advice)
            middle = round((low + (step - over) / 2) / grid) * grid
            for k in range(own):
                starts.append(middle + (k - Fraction(1, 2)) * step if k else low)
                within = here + max(0, k - reach)
                first.append(next((i for i, end in enumerate(ends) if starts[-1] - end <= near), within))
                points.append(middle + k * step)
            ends += [*starts[here + 1 :], high]
        floats = [np.array([float(x) for x in values]) for values in (points, starts)]
        return cls(floats[0] + 0.0, floats[1], np.array(first, dtype=np.int64), float(grid))

    @property
    def count(self) -> int:
        return int(self.points.size)

    @cached_property
    def _edges(self) -> FloatArray:
        return padded(np.nextafter(self.starts[1:], -np.inf))

    def row(self, q: npt.NDArray[Any]) -> Rows:
        """Which cell each true value is in; the same work for all that are floats."""
        if q.dtype == object:
            return _exact.each(self.row_of, q).astype(np.int64)
        return cast(Rows, locate(self._edges, q))

    def row_of(self, q: Number) -> int:
        """The same for one value."""
        if isinstance(q, Fraction) or abs(q) > _exact.WHOLE:
            return max(bisect_right(self.starts.tolist(), q) - 1, 0)
        edges, found = self._edges.data, 0
        half = (self._edges.size + 1) // 2
        while half:
            found += (edges[found + half - 1] < q) * half
            half //= 2
        return found

    def ends(self, domain: Line) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest true value of each cell (of reals, what it comes near)."""
        if domain.lattice:
            return self.starts, np.append(self.starts[1:] - 1.0, float(domain.upper))
        tops = np.append(self.starts[1:], domain.upper).tolist()
        high = np.array([max(min(b, t) for a, b in domain.pieces if a < t) for t in tops])
        return self.starts, high


# ---------------------------------------------------------------- privacy


@dataclass(frozen=True, eq=False)
class TableCurve:
    """The privacy of rows of integers that add up to the same total; docs/proofs/optimal.md, 1."""

    rows: Whole
    total: int
    first: Rows

    @cached_property
    def shares(self) -> FloatArray:
        return np.array([[w / self.total for w in row] for row in self.rows.tolist()])

    @cached_property
    def logs(self) -> FloatArray:
        return np.array([[math.log(w) if w else -math.inf for w in row] for row in self.rows.tolist()])

    @cached_property
    def _off(self) -> float:
        """Well above what the difference of two logarithms can be off by; docs/proofs/optimal.md, 2."""
        return 8.0 * math.ulp(max(float(np.max(self.logs)), 1.0))

    @cached_property
    def given(self) -> npt.NDArray[np.bool_]:
        """Which entries are not 0, also where a float would be."""
        return np.array(self.rows > 0, dtype=bool)

    @cached_property
    def pairs(self) -> tuple[Rows, Rows]:
        """Neighbours, in both orders."""
        low, high = neighbours(self.first)
        return np.concatenate([low, high]), np.concatenate([high, low])

    def _parts(self) -> list[tuple[Rows, Rows]]:
        """The pairs in portions that fit into memory."""
        a, b = self.pairs
        size = max(1, (1 << 21) // self.first.size)
        return [(a[i : i + size], b[i : i + size]) for i in range(0, a.size, size)]

    @cached_property
    def worst(self) -> tuple[float, tuple[int, int, int]]:
        """(the largest loss up to rounding, (row, other row, column))."""
        best, where = -math.inf, (0, 0, 0)
        for a, b in self._parts():
            with np.errstate(invalid="ignore"):
                loss = self.logs[a] - self.logs[b]
            loss = np.where(np.isnan(loss), -np.inf, loss)  # 0 against 0
            k = int(np.argmax(loss))
            if loss.flat[k] > best:
                pair, column = divmod(k, loss.shape[1])
                best, where = float(loss.flat[k]), (int(a[pair]), int(b[pair]), column)
        return best, where

    @cached_property
    def _pure(self) -> Bound:
        why = "largest ratio in the table"
        a, b = self.pairs
        if not np.any(self.rows[a] != self.rows[b]):
            return Bound(0.0, exact=True, reason="neighbouring rows are equal")
        return Bound(max(self.worst[0], 0.0) + self._off, exact=True, reason=why)

    def pure(self) -> Bound:
        return self._pure

    def steepest(self) -> float:
        """The largest loss between one cell and the next."""
        if not np.any(self.rows[1:] != self.rows[:-1]):
            return 0.0
        with np.errstate(invalid="ignore"):
            loss = np.abs(self.logs[1:] - self.logs[:-1])
        return float(np.max(np.where(np.isnan(loss), 0.0, loss))) + self._off

    @property
    def _largest(self) -> float:
        """An epsilon beyond every finite loss: from there on only answers that one row cannot give matter."""
        return float(np.max(self.logs)) + 1.0

    def excess(self, a: int, b: int, epsilon: float) -> Fraction:
        """The sum of p - e^epsilon p' where that is positive, hardly above the truth and never below it."""
        epsilon = min(epsilon, self._largest)
        bits = 192 + math.ceil(1.5 * epsilon)
        keep = exp_neg(Fraction(epsilon), bits)[1]  # e^-epsilon from above, times 2^bits
        over = self.rows[a] * keep - (self.rows[b] << bits)
        return Fraction(sum(x for x in over.tolist() if x > 0), keep * self.total)

    def largest_excess(self, epsilon: float) -> tuple[Fraction, tuple[int, int]]:
        """Over all pairs: those that floats cannot tell from the largest are computed in integers."""
        factor = math.exp(min(epsilon, self._largest, 700.0))
        found = []
        for a, b in self._parts():
            over = self.shares[a] - factor * self.shares[b]
            found.append(np.sum(np.maximum(over, 0.0), axis=1))
        a, b = self.pairs
        sums = np.concatenate(found)
        near = np.flatnonzero(sums >= float(np.max(sums)) - 2.0**-50 * self.first.size)
        exact = [(self.excess(int(a[k]), int(b[k]), epsilon), (int(a[k]), int(b[k]))) for k in near]
        return max(exact)

    def delta(self, epsilon: float, *, target: float = math.nan, floor: float = 0.0) -> Bound:
        if self._pure <= epsilon:
            return Bound(floor, exact=True, reason="pure loss within epsilon")
        value = _rounded_up(self.largest_excess(epsilon)[0])
        return Bound(max(value, floor), exact=True, reason="sums of integers")

    def renyi(self, alpha: float, *, floor: float = 0.0) -> Bound:
        best = max((float(np.max(self._divergences(a, b, alpha))) for a, b in self._parts()), default=0.0)
        value = min(best / (alpha - 1.0), privacy.response_renyi(self._pure, alpha))
        return Bound(max(value, floor), exact=True, reason="largest divergence in the table")

    def _divergences(self, a: Rows, b: Rows, alpha: float) -> FloatArray:
        """(alpha - 1) D_alpha = ln(1 + sum p' (r^alpha - 1 - alpha (r - 1))), r = p / p', where no term is negative.

        Terms grow with p' and with the size of ln r, which are therefore taken too large: docs/proofs/optimal.md, 2.
        """
        possible = self.given[b]
        other = np.where(possible, np.maximum(self.shares[b], _TINY), 0.0)
        with np.errstate(all="ignore"):
            log = np.where(possible, self.logs[a] - self.logs[b], 0.0)
            log += np.copysign(self._off, log)
            power, line = np.expm1(alpha * log), alpha * np.expm1(log)
            rounding = np.sum(other * (np.abs(power) + np.abs(line)), axis=1) * _ROUNDING
            near = np.log1p(np.sum(other * (power - line), axis=1) * (1.0 + _SLACK) + rounding)
            top = alpha * np.max(log, axis=1)
            each = alpha * log + (self.logs[b] - math.log(self.total))
            most = np.max(each, axis=1)
            far = most + np.log(np.sum(np.exp(each - most[:, None]), axis=1)) + (top * _ROUNDING + 2.0 * self._off)
        missing = np.any(~possible & self.given[a], axis=1)
        return np.where(missing, np.inf, np.where(top < 200.0, near, far))

    def gaussian(self) -> Bound:
        return Bound(privacy.response_gdp(self._pure), exact=False, reason="pure loss")


def _rounded_up(x: Fraction) -> float:
    value = x.numerator / x.denominator
    return math.nextafter(value, math.inf) if Fraction(value) < x else value


# ---------------------------------------------------------------- the law and the draws


class TableLaw(Errors):
    """The law of the answer for true values: probabilities of the points of the grid, in scipy's words."""

    def __init__(self, table: Table, q: npt.NDArray[Any]) -> None:
        self._table, self._q = table, q
        self._points, self._row = table._cells.points, table._cells.row(q)

    def __repr__(self) -> str:
        return f"<TableLaw on {self._points.size} points of {self._table.domain!r}>"

    def _known(self, x: FloatArray, value: FloatArray) -> Any:
        return np.where(np.isnan(x), np.nan, value)[()]

    def logpdf(self, x: Any) -> Any:
        check.refuse(
            "TableLaw", "logpdf", "used where there is a density", self._table.domain, "Answers are points: use pmf."
        )

    def pdf(self, x: Any) -> Any:
        check.refuse(
            "TableLaw", "pdf", "used where there is a density", self._table.domain, "Answers are points: use pmf."
        )

    def pmf(self, x: Any) -> Any:
        x = check.numbers("TableLaw", "x", x)
        k = np.minimum(np.searchsorted(self._points, x), self._points.size - 1)
        return self._known(x, np.where(self._points[k] == x, self._table._shares[self._row, k], 0.0))

    def logpmf(self, x: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(self.pmf(x))

    def cdf(self, x: Any) -> Any:
        x = check.numbers("TableLaw", "x", x)
        return self._known(x, self._table._below[self._row, np.searchsorted(self._points, x, side="right")])

    def sf(self, x: Any) -> Any:
        """P(answer > x), accurate when small."""
        x = check.numbers("TableLaw", "x", x)
        return self._known(x, self._table._above[self._row, np.searchsorted(self._points, x, side="right")])

    def ppf(self, p: Any) -> Any:
        """The smallest answer x with cdf(x) >= p (and a positive probability); NaN outside [0, 1]."""
        p = check.numbers("TableLaw", "p", p)
        valid = (p >= 0.0) & (p <= 1.0)
        least = np.nextafter(0.0, 1.0)  # p = 0: the first answer that is possible
        below = self._table._below[self._row, 1:]
        k = np.sum(below < np.maximum(np.where(valid, p, 0.5), least)[..., None], axis=-1)
        return np.where(valid, self._points[np.minimum(k, self._points.size - 1)], np.nan)[()]

    def answers(self, tail: float) -> FloatArray:
        """All answers there are, however improbable."""
        return cast(FloatArray, self._points[self._table._possible(self._points)])

    @property
    def atoms(self) -> tuple[tuple[float, Any], ...]:
        """The answers of positive probability on a continuous domain, all there are: (point, probability)."""
        if self._table.domain.lattice:
            return ()
        masses = self._table._shares[self._row]
        return tuple((float(x), masses[..., k][()]) for k, x in enumerate(self._points))

    def _moments(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(mean - q, variance, mean absolute error)."""
        share, away = self._table._shares[self._row], _exact.difference(self._points, self._q[..., None])
        bias = np.sum(share * away, axis=-1)
        return bias, np.sum(share * np.square(away - bias[..., None]), axis=-1), np.sum(share * np.abs(away), axis=-1)

    def _at_ends(self) -> list[FloatArray]:
        ends = (self._table.domain.lower, self._table.domain.upper)
        return [np.asarray(self.pmf(np.full(self._q.shape, float(end)))) for end in ends]


class _TableSampler(Sampler):
    """The row of the true value, an outcome of its law, the point of the outcome: each in the same time for all."""

    def __init__(self, cells: Cells, rows: Whole) -> None:
        self._cells, self._laws = cells, Finite(rows)
        self._points: list[float] = cells.points.tolist()
        self.grid = cells.grid

    def draw(self, q: npt.NDArray[Any], source: Source | None = None, *, clip: bool = False) -> FloatArray:
        flat, out = q.reshape(-1), np.empty(q.size)
        bits = Keystream() if source is None else source
        for i in range(0, flat.size, _BLOCK):  # beyond the ends of the domain the outermost cells go on: clip or not
            rows = self._cells.row(_exact.canonical(flat[i : i + _BLOCK]))
            np.take(self._cells.points, self._laws.draw(rows, bits), out=out[i : i + _BLOCK])
        return out.reshape(q.shape)

    def one(self, q: Number, source: Source | None = None) -> float:
        return self._points[self._laws.one(self._cells.row_of(q), source)]


# ---------------------------------------------------------------- the mechanism


@dataclass(frozen=True, init=False, repr=False)
class Table(Mechanism):
    """A mechanism given by whole numbers: from cell q of the domain, answer x comes out with probability w_q(x) / w_q.

    The domain is cut into cells of one length, each with a point; true values of a cell are treated alike, and answers
    are points. For neighbouring true values at most ``sensitivity`` apart the cells are at most
    ceil(sensitivity / length) apart.

    Guarantee: computed from the integers, in every currency. Rounding the true answer to a cell is part of the
    mechanism, and a true answer that is itself off by rounding (2^-40 of the width of the domain) does no harm.

    Parameters
    ----------
    domain : Interval, Spans or Integers, bounded
    weights : rows of integers
        One row for each cell, one column for the point of each cell; each row has a total w_q of its own.
    sensitivity : float
    cells : int, or None for one per row
        Into how many cells to cut the domain. On Spans each span is cut on its own, which may give another number.

    Examples
    --------
    >>> import inbounds as ib
    >>> response = ib.Table(ib.Integers(0, 1), [[3, 1], [1, 3]], sensitivity=1)
    >>> round(response.epsilon(), 6), response.at(0).pmf(1)
    (1.098612, np.float64(0.25))
    """

    domain: Domain
    weights: tuple[tuple[int, ...], ...]
    sensitivity: Sensitivity
    cells: int

    def __init__(self, domain: Domain, weights: Any, *, sensitivity: Any, cells: int | None = None) -> None:
        what = type(self).__name__
        rows = _whole_rows(what, weights)
        limit = check_line(what, domain, sensitivity)
        count = len(rows) if cells is None else check.whole(what, "cells", cells, at_least=2, at_most=LARGEST)
        values = {"domain": domain, "weights": rows, "sensitivity": limit, "cells": count}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if self._cells.count != len(rows):
            wanted = f"one row for each of the {self._cells.count} cells"
            check.refuse(what, "weights", wanted, f"{len(rows)} rows", "Cells of whole numbers are of one size.")

    def __repr__(self) -> str:
        return f"<Table: {self._cells.count} cells of {self.domain!r}, sensitivity={self.sensitivity!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), {f.name: getattr(self, f.name) for f in fields(self)})

    @property
    def scale(self) -> float:
        """Sensitivity over epsilon, as of Laplace noise with this guarantee; at most the width of the domain.

        Where epsilon is infinite the mean error over the cells, at least the distance of two answers.
        """
        pure, width = float(self.epsilon()), float(np.max(self.domain.width))
        if math.isinf(pure):
            points = self._cells.points
            error = np.sum(self._shares * np.abs(points - points[:, None]), axis=1)
            return max(float(np.mean(error)), float(np.min(np.diff(points))))
        return min(cast(float, self.sensitivity) / pure, width) if pure > 0.0 else width

    # -- what base.Mechanism asks for

    @cached_property
    def _cells(self) -> Cells:
        return Cells.of(type(self).__name__, self.domain, cast(float, self.sensitivity), self.cells)

    @property
    def points(self) -> FloatArray:
        """The answers there are, one for each cell."""
        return self._cells.points.copy()

    @cached_property
    def _curve(self) -> TableCurve:
        totals = [sum(row) for row in self.weights]
        total = math.lcm(*totals)
        rows = np.array(
            [[w * (total // t) for w in row] for row, t in zip(self.weights, totals, strict=True)], dtype=object
        )
        return TableCurve(rows, total, self._cells.first)

    @property
    def _shares(self) -> FloatArray:
        return self._curve.shares

    @cached_property
    def _below(self) -> FloatArray:
        """P(answer is one of the first k), k = 0, 1, ..., for each row."""
        total = self._curve.total
        return np.array([[c / total for c in accumulate(row, initial=0)] for row in self._curve.rows.tolist()])

    @cached_property
    def _above(self) -> FloatArray:
        """P(answer is none of the first k)."""
        total = self._curve.total
        return np.array(
            [[c / total for c in accumulate(row[::-1], initial=0)][::-1] for row in self._curve.rows.tolist()]
        )

    def _law(self, true: npt.NDArray[Any]) -> Any:
        return TableLaw(self, true)

    @cached_property
    def _sampler(self) -> Sampler:
        return _TableSampler(self._cells, np.array(self.weights, dtype=object))

    @cached_property
    def _shape(self) -> Shape:
        return Shape(math.inf, math.inf, (), self._cells.starts[1:].tolist())

    # -- more about privacy

    def steepest(self) -> Bound:
        """The largest loss per unit of distance, which the metric guarantee limits: on reals infinite, at cell ends.

        Whole numbers on two sides of the end of a cell are 1 apart.
        """
        loss = self._curve.steepest()
        value = loss if self.domain.lattice or loss == 0.0 else math.inf
        return Bound(value, exact=True, reason="largest ratio of one row to the next")

    # -- what an answer says about the true value

    def _possible(self, x: npt.NDArray[Any]) -> Any:
        return np.isin(x, self._cells.points[np.any(self._curve.given, axis=0)])

    def _columns(self, value: Any) -> Rows:
        return np.searchsorted(self._cells.points, _exact.floats(inference.released(self, value)))

    def interval(self, value: Any, level: float = 0.95) -> tuple[Any, Any]:
        """A confidence interval (lower, upper) for the true value, inside the domain, from a released value.

        The hull of the cells that the equal-tailed test does not reject, all of them looked at; where it rejects all,
        the one that it rejects least. Parameters and result as for :meth:`Mechanism.interval`.
        """
        columns = self._columns(value)
        p = check.level(type(self).__name__, level)
        smaller = np.minimum(self._below[:, 1:], self._above[:, :-1])  # P(answer <= x), P(answer >= x)
        kept = smaller >= np.minimum(tail_of(p, 1), np.max(smaller, axis=0))
        low, high = self._cells.ends(cast(Line, self.domain))
        lower, upper = low[np.argmax(kept, axis=0)], high[kept.shape[0] - 1 - np.argmax(kept[::-1], axis=0)]
        return inference.public(lower[columns], self.domain), inference.public(upper[columns], self.domain)

    def estimate(self, value: Any, how: str = "mle", prior: Any = None) -> Any:
        """The true value, estimated from a released one: the point of a cell; see :meth:`Mechanism.estimate`."""
        if how not in ("mle", "median-unbiased") or prior is not None:
            return super().estimate(value, how, prior)
        columns, points = self._columns(value), self._cells.points
        if how == "mle":
            best = self._shares >= np.max(self._shares, axis=0)
            distance = np.where(best, np.abs(points[:, None] - points), np.inf)
        else:
            distance = np.abs(self._below[:, 1:] - self._above[:, :-1])
        return inference.public(points[np.argmin(distance, axis=0)][columns], self.domain)

    def posterior(self, value: Any, prior: Any = None) -> Any:
        """The distribution of the true value given a released one; see :meth:`Mechanism.posterior`."""
        from inbounds.inference.bayes import Channel
        from inbounds.inference.posterior import Posterior
        from inbounds.inference.prior import Prior

        x = _exact.floats(inference.released(self, value))
        beside = (x, x) if self.domain.lattice else (np.nextafter(x, -np.inf), np.nextafter(x, np.inf))
        return Posterior(Channel(self), Prior.of(cast(Line, self.domain), prior), [beside])


def _rebuild(cls: type[Table], values: dict[str, Any]) -> Table:
    out = cls.__new__(cls)
    for name, value in values.items():
        object.__setattr__(out, name, value)
    return out


def check_line(what: str, domain: Any, sensitivity: Any) -> float:
    """The sensitivity, on a bounded domain of one dimension."""
    check_domain(what, domain)
    if isinstance(domain, Box):
        check.refuse(what, "domain", "an Interval, Spans or Integers", domain, "Use one mechanism for each coordinate.")
    if not domain.bounded:
        check.refuse(what, "domain", "bounded", domain, "A table has finitely many rows: give the domain two ends.")
    return cast(float, resolve(what, sensitivity, domain))


def _whole_rows(what: str, weights: Any) -> tuple[tuple[int, ...], ...]:
    wanted = "rows of integers, as many as there are numbers in a row"
    try:
        rows = tuple(tuple(row.tolist() if isinstance(row, np.ndarray) else row) for row in weights)
    except TypeError:
        check.refuse(what, "weights", wanted, weights, "", ParameterTypeError)
    if not 2 <= len(rows) <= LARGEST or any(len(row) != len(rows) for row in rows):
        sizes = f"{len(rows)} rows of lengths {sorted({len(row) for row in rows})[:4]}"
        check.refuse(what, "weights", f"{wanted}, from 2 to {LARGEST}", sizes, "")
    for row in rows:
        for w in row:
            if isinstance(w, bool | np.bool_) or not isinstance(w, int | np.integer):
                advice = "Floats are not exact: pass integers in proportion." if isinstance(w, float) else ""
                check.refuse(what, "weights", wanted, w, advice, ParameterTypeError)
            if w < 0:
                check.refuse(what, "weights", "not negative", w, "")
        if not any(row):
            check.refuse(what, "weights", "such that every row has a positive one", "a row of zeros", "")
    made = tuple(tuple(int(w) for w in row) for row in rows)
    total, most = 1, _ROOM_BITS // len(rows) ** 2
    for row in made:
        total = math.lcm(total, sum(row))
        if total.bit_length() > most:
            advice = "Give the rows one and the same total, such as a power of two."
            check.refuse(
                what, "weights", f"rows that can be brought to one total of at most {most} bits", "more", advice
            )
    return made

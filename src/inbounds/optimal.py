"""The best mechanism there can be on a grid of the domain, and the limit that others are measured by.

Among all tables with the privacy asked for, a linear program finds the one of least loss (``programs``). What it
finds is then made certain: :func:`_repaired` turns it into whole numbers whose ratios are verified in integers. And the
value that is reported is a proven lower bound, not what a solver claims. Proofs: ``docs/proofs/optimal.md``.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from inbounds import _checks as check
from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds.calibration import GUARANTEES
from inbounds.domain import Domain, Interval, Spans
from inbounds.errors import ParameterTypeError, UnreachableTarget
from inbounds.inference.prior import Prior
from inbounds.inference.remap import LOSSES
from inbounds.mechanism.table import Cells, Table, TableCurve, check_line
from inbounds.numerics import decimal_floor, legendre
from inbounds.programs import Limits, Solution, cover, solve, sum_below
from inbounds.sampling.exact import ceil_shift, exp_neg

__all__ = ["LARGEST_EPSILON", "LARGEST_PROGRAM", "Optimal", "optimal", "optimal_bound"]

#: The most cells that are solved: without delta, and with it.
LARGEST_PROGRAM, LARGEST_WITH_DELTA = 200, 60
DEFAULT_CELLS, DEFAULT_WITH_DELTA = 60, 30
CRITERIA = ("average", "worst")

_BITS = 160  # of the numbers in a table
_LEAST_EPSILON, LARGEST_EPSILON = 1e-9, 30.0
_LEAST_DELTA = 1e-12
_GOOD = 1e-6  # how close to the least loss a mechanism must be
_EVERY = 2.0  # seconds between two lines of progress


# ---------------------------------------------------------------- the mechanism


@dataclass(frozen=True, init=False, repr=False)
class Optimal(Table):
    """The table of least loss under a privacy target; made by :func:`inbounds.optimal`.

    Attributes
    ----------
    value : float
        A proven lower bound, in the units of the loss: no mechanism on this grid with this privacy has less.
    gap : float
        By how much the loss of this mechanism is above it, relatively; at most 1e-6.
    loss, criterion, guarantee : str
        What was asked for.
    target : (epsilon, delta)
    """

    loss: str
    criterion: str
    guarantee: str
    target: tuple[float, float]
    value: float
    gap: float

    def __init__(
        self,
        domain: Domain,
        weights: Any,
        *,
        sensitivity: Any,
        cells: int,
        loss: str,
        criterion: str,
        guarantee: str,
        target: tuple[float, float],
        value: float,
        gap: float,
    ) -> None:
        super().__init__(domain, weights, sensitivity=sensitivity, cells=cells)
        about = {"loss": loss, "criterion": criterion, "guarantee": guarantee, "target": target}
        for name, given in {**about, "value": value, "gap": gap}.items():
            object.__setattr__(self, name, given)

    def __repr__(self) -> str:
        epsilon, delta = self.target
        privacy = f"epsilon={epsilon!r}" + (f", delta={delta!r}" if delta else "")
        if self.guarantee != "adjacent":
            privacy += f", {self.guarantee}"
        return (
            f"<Optimal: {self._cells.count} cells of {self.domain!r}, sensitivity={self.sensitivity!r}, {privacy}; "
            f"{self.criterion} {self.loss} loss {self.value * (1.0 + self.gap):.6g}, the least there is>"
        )


def optimal(
    domain: Domain,
    *,
    sensitivity: Any,
    epsilon: float,
    delta: float = 0.0,
    loss: str | Callable[[float, float], float] = "squared",
    criterion: str = "average",
    prior: Any = None,
    cells: int | None = None,
    guarantee: str = "adjacent",
    progress: bool | Callable[[str], None] | None = None,
) -> Optimal:
    """The mechanism of least loss among all that have the privacy asked for, on a grid of the domain.

    The domain is cut into cells (:class:`inbounds.Table`); true values and answers are their points. On Integers of up
    to 200 numbers every number is a cell, and the result is the best there can be. Elsewhere it is the best among
    mechanisms that round the true value to a cell first: more cells come closer to the best of all, but take longer
    (their number to the power 4: less than a second for 60, one or two for 100, a minute for 200).

    Guarantee: the weights are whole numbers, and what was asked for is verified with them, reading epsilon and delta as
    floats and as decimals.

    Parameters
    ----------
    domain : Interval, Spans or Integers, bounded
    sensitivity : float
    epsilon : float in [1e-9, 30]
    delta : float, 0 or in [1e-12, 1)
        With it up to 60 cells.
    loss : "squared", "absolute", "zero-one", or a function loss(true, answer) >= 0
    criterion : "average" (under the prior) or "worst" (over the true values)
    prior : None or "flat", a density on the domain, or a pair (points, weights)
    cells : int, or None: every number on Integers; else 60, with delta 30
    guarantee : "adjacent" or "metric"
        Metric: on Integers, every number a cell, without delta.
    progress : bool or callable
        A line every two seconds on the error stream, or to the callable; by default if the stream is a terminal.

    Returns
    -------
    Optimal

    Examples
    --------
    >>> import inbounds as ib
    >>> best = ib.optimal(ib.Integers(0, 30), sensitivity=1, epsilon=1.0)
    >>> round(best.value, 4), best.gap < 1e-6, best.epsilon() <= 1.0
    (1.6846, True, True)
    >>> best.release(12).value in best.domain
    True
    """
    what = "optimal"
    limit = check_line(what, domain, sensitivity)
    e = check.number(what, "epsilon", epsilon, at_least=_LEAST_EPSILON, at_most=LARGEST_EPSILON)
    d = check.amount(what, "delta", delta, least=_LEAST_DELTA, below=1.0)
    check.choice(what, "criterion", criterion, CRITERIA)
    check.choice(what, "guarantee", guarantee, GUARANTEES)
    if criterion == "worst" and prior is not None:
        check.refuse(what, "prior", "None for the worst case", prior, "It is over all true values alike.")
    count = _count(what, domain, cells, LARGEST_WITH_DELTA if d else LARGEST_PROGRAM, d)
    grid = Cells.of(what, domain, limit, count)
    if guarantee == "metric" and (d or not domain.lattice or grid.count <= float(domain.width)):
        advice = "Rounding to a cell moves near true values apart: pass Integers, a cell for every number, no delta."
        check.refuse(what, "guarantee", "'adjacent' here", guarantee, advice)
    name, losses = _losses(what, loss, grid.points)
    belief = None if criterion == "worst" else _prior_of_cells(domain, grid, prior)
    problem = _Problem(what, grid, losses, belief, e, d, guarantee == "metric", limit)
    value, rows = problem.solve(_Progress(progress, grid.count))
    made = problem.loss_of(rows)
    return Optimal(
        domain,
        rows,
        sensitivity=limit,
        cells=count,
        loss=name,
        criterion=criterion,
        guarantee=guarantee,
        target=(e, d),
        value=value,
        gap=made / value - 1.0 if made > 0.0 else 0.0,
    )


def _count(what: str, domain: Any, cells: Any, most: int, delta: float) -> int:
    numbers = int(domain.upper) - int(domain.lower) + 1 if domain.lattice else None
    if cells is None:
        if numbers is None:
            return DEFAULT_WITH_DELTA if delta else DEFAULT_CELLS
        if numbers > most:
            advice = (
                f"A program of {numbers} cells is too large. Pass cells={most}, or fewer: each is then a block of "
                "whole numbers of one size, answered by its middle, and the sensitivity is rounded up to blocks."
            )
            check.refuse(what, "domain", f"of at most {most} whole numbers unless cells is given", domain, advice)
        return numbers
    advice = "The program grows with the fourth power of it."
    found = check.whole(what, "cells", cells, at_least=2, at_most=most, next_step=advice)
    return found if numbers is None else min(found, numbers)


def _losses(what: str, loss: Any, points: FloatArray) -> tuple[str, FloatArray]:
    """Its name, and the loss of every answer (columns) for every true value (rows)."""
    away = np.abs(points[:, None] - points)
    if isinstance(loss, str):
        check.choice(what, "loss", loss, LOSSES)
        return loss, {"squared": np.square(away), "absolute": away, "zero-one": (away > 0.0) + 0.0}[loss]
    wanted = "'squared', 'absolute', 'zero-one', or a function of a true value and an answer"
    if not callable(loss):
        check.refuse(what, "loss", wanted, loss, "", ParameterTypeError)
    found = np.array(
        [[check.number(what, "loss(true, answer)", loss(q, x), at_least=0.0) for x in points] for q in points.tolist()]
    )
    if not np.any(found > 0.0):
        check.refuse(what, "loss", "positive somewhere", "0 everywhere", "")
    return "given", found


def _prior_of_cells(domain: Any, grid: Cells, prior: Any) -> FloatArray:
    """The probability of each cell."""
    belief = Prior.of(domain, prior)
    low, high = grid.ends(domain)
    if belief.flat:
        size = high - low + (1.0 if domain.lattice else 0.0)
        if isinstance(domain, Interval):
            size = np.ones_like(size)  # the outermost are a hair shorter
        return size / np.sum(size)
    if belief.points is not None and belief.weights is not None:
        mass = np.zeros(grid.count)
        np.add.at(mass, grid.row(belief.points), belief.weights)
    else:
        nodes, weights = legendre(24, 4)
        mass = (high - low) * (np.exp(belief.log_density(low[:, None] + (high - low)[:, None] * nodes)) @ weights)
    out: FloatArray = mass / np.sum(mass)
    return out


class _Progress:
    """Says now and then how far a program is."""

    def __init__(self, wanted: Any, cells: int) -> None:
        if not (wanted is None or isinstance(wanted, bool) or callable(wanted)):
            check.refuse("optimal", "progress", "True, False or a callable", wanted, "", ParameterTypeError)
        self._cells, self._start = cells, time.monotonic()
        self._last = self._start
        self._say: Callable[[str], object] | None = wanted if callable(wanted) else None
        if wanted is True or (wanted is None and sys.stderr is not None and sys.stderr.isatty()):
            self._say = _to_stderr

    def __call__(self, gap: float) -> None:
        now = time.monotonic()
        if self._say is None or now - self._last < _EVERY:
            return
        self._last = now
        near = f"within {gap:.1e} of the least loss" if math.isfinite(gap) else "no bound yet"
        self._say(f"optimal: {self._cells} cells, {now - self._start:.0f} s, {near}")


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# ---------------------------------------------------------------- from a program to whole numbers

Whole = npt.NDArray[np.object_]


class _Problem:
    """A program and its repair."""

    def __init__(
        self,
        what: str,
        grid: Cells,
        losses: FloatArray,
        prior: FloatArray | None,
        epsilon: float,
        delta: float,
        metric: bool,
        sensitivity: float,
    ) -> None:
        self._what, self._losses, self._prior = what, losses, prior
        self._epsilon, self._delta = epsilon, delta
        self._first = np.maximum(np.arange(grid.count) - 1, 0) if metric else grid.first
        self._share = Fraction(1) / Fraction(sensitivity) if metric else Fraction(1)  # of epsilon, between neighbours

    @cached_property
    def _parts(self) -> list[slice]:
        """Runs of rows that are linked by neighbours."""
        count = self._first.size
        starts = [q for q in range(count) if self._first[q] == q]
        return [slice(a, b) for a, b in pairwise([*starts, count])]

    def loss_of(self, rows: Whole) -> float:
        total = sum(rows[0].tolist())
        shares = np.array([[w / total for w in row] for row in rows.tolist()])
        each = np.sum(self._losses * shares, axis=1)
        return float(np.max(each)) if self._prior is None else float(self._prior @ each)

    def solve(self, tell: Callable[[float], None]) -> tuple[float, Whole]:
        """(a proven lower bound, whole numbers). Programs get a little less than is allowed: room for whole numbers."""
        goal, gap = decimal_floor(self._epsilon), math.inf
        for room in (1e-10, 1e-9, 1e-8, 1e-7):
            if self._delta:
                tight, delta = goal, self._delta - min(100.0 * room * self._delta + 40e-6 * room, self._delta / 2.0)
            else:
                tight, delta = goal - min(room * max(goal, 1.0), goal / 2.0), 0.0
            found = [self._part(part, tight, delta, tell) for part in self._parts]
            rows = self._repaired(np.concatenate([part.table for part in found]), tight)
            bounds = [part.bound for part in found]
            shares = [1.0 if self._prior is None else float(np.sum(self._prior[part])) for part in self._parts]
            bound = max(bounds) if self._prior is None else sum(s * b for s, b in zip(shares, bounds, strict=True))
            if self._holds(rows):
                loss = self.loss_of(rows)
                gap = 0.0 if loss == 0.0 else loss / bound - 1.0 if bound > 0.0 else math.inf
                if gap <= _GOOD:
                    return min(bound, loss), rows
        raise UnreachableTarget(
            f"{self._what}: the program could not be solved to {_GOOD!r} (reached {gap:.1e}). "
            "Pass other cells, or another epsilon."
        )

    def _part(self, part: slice, epsilon: float, delta: float, tell: Callable[[float], None]) -> Solution:
        """Rows that are linked to no others."""
        losses = self._losses[part]
        prior = None if self._prior is None else self._prior[part]
        if prior is not None:
            prior = np.full(prior.size, 1.0 / prior.size) if not prior.any() else prior / np.sum(prior)
        each = np.max(losses, axis=0) if prior is None else prior @ losses
        best = int(np.argmin(each))
        if len(losses) == 1 or each[best] == 0.0:  # always the same answer
            table = np.zeros(losses.shape)
            table[:, best] = 1.0
            return Solution(table, float(each[best]), float(each[best]))
        first = self._first[part] - part.start
        limits, proof = (Limits(first, np.full(first.size, float(self._between(e)))) for e in (epsilon, self._epsilon))
        return solve(losses, prior, limits, delta=delta, proof=(proof, self._delta), tell=tell)

    def _between(self, epsilon: float) -> Fraction:
        """The largest loss of neighbours."""
        return Fraction(epsilon) * self._share

    def _holds(self, rows: Whole) -> bool:
        """Whether the whole numbers have the privacy asked for, by integers."""
        if self._delta:
            curve = TableCurve(rows, sum(rows[0].tolist()), self._first)
            return bool(curve.delta(decimal_floor(self._epsilon)) <= decimal_floor(self._delta))
        keep = exp_neg(self._between(decimal_floor(self._epsilon)), _BITS)[0]  # e^-epsilon from below
        for q, start in enumerate(self._first.tolist()):
            if q == start:
                continue
            near = rows[start:q]
            if np.any(np.max(near, axis=0) * keep > rows[q] << _BITS):
                return False
            if np.any(rows[q] * keep > np.min(near, axis=0) << _BITS):
                return False
        return True

    def _repaired(self, table: FloatArray, epsilon: float) -> Whole:
        """Whole numbers near a table, with equal sums of rows and (pure) ratios within e^epsilon but for that.

        Each entry is raised to e^-epsilon times its neighbours' where it is less, going up and then down through the
        rows, which gives the envelope of the table. Then rows are stretched to the same sum, which changes ratios by as
        little as the sums differ; the few units that rounding leaves over go to the largest entry.
        """
        rows = np.array([[int(math.ldexp(p, _BITS)) for p in row] for row in table.tolist()], dtype=object)
        if np.allclose(table, table[::-1, ::-1], rtol=1e-12, atol=0.0):  # but for rounding: then without it
            rows = rows + rows[::-1, ::-1]
        if not self._delta:
            keep = exp_neg(self._between(epsilon), _BITS)[1]  # e^-epsilon from above
            last = np.searchsorted(self._first, np.arange(len(rows)), side="right") - 1
            for q in range(len(rows)):
                _raise(rows, q, rows[self._first[q] : q], keep)
            for q in range(len(rows) - 1, -1, -1):
                _raise(rows, q, rows[q + 1 : last[q] + 1], keep)
        total = max(sum(row) for row in rows.tolist())
        for q, row in enumerate(rows.tolist()):
            stretched = [w * total // sum(row) for w in row]
            left, top = total - sum(stretched), max(row)
            best = row.index(top) if 2 * q < len(rows) else len(row) - 1 - row[::-1].index(top)  # mirrored, too
            if row == row[::-1]:
                stretched[best] += left // 2
                stretched[-1 - best] += left // 2
                best, left = len(row) // 2, left % 2
            stretched[best] += left
            rows[q] = stretched
        return rows


def _raise(rows: Whole, q: int, near: Whole, keep: int) -> None:
    if len(near):
        rows[q] = np.maximum(rows[q], [ceil_shift(w * keep, _BITS) for w in np.max(near, axis=0).tolist()])


# ---------------------------------------------------------------- a bound where the program is too large

_DIRECT = 64  # true values of a program that is solved as it is
_HALF = 40  # steps from an answer to the end of its window, at most
_ANSWERS = 320  # of a program
_CLOSE = 1e-4  # to the largest bound of its kind


def optimal_bound(domain: Domain, *, sensitivity: Any, epsilon: float, loss: str = "squared") -> float:
    """A proven lower bound of the average loss over the domain, of every mechanism with this pure epsilon.

    It holds for any answers, on the domain or not, and under the flat prior. Where the domain is up to some dozens of
    sensitivities long it comes from the program for some of the true values, beyond that from what is lost at the two
    ends and what any mechanism loses far from them (``docs/proofs/optimal.md``).

    Parameters
    ----------
    domain : Interval, Spans or Integers, bounded
    sensitivity : float
    epsilon : float in [1e-9, 30]
    loss : "squared" or "absolute"

    Examples
    --------
    >>> import inbounds as ib
    >>> wide = ib.Integers(0, 1000)
    >>> bound = ib.optimal_bound(wide, sensitivity=1, epsilon=1.0)
    >>> plain = ib.Laplace.calibrate(wide, sensitivity=1, epsilon=1.0, edges="clamp")
    >>> 1.0 < plain.at(500).var() / bound < 1.05
    True
    """
    what = "optimal_bound"
    limit = check_line(what, domain, sensitivity)
    e = check.number(what, "epsilon", epsilon, at_least=_LEAST_EPSILON, at_most=LARGEST_EPSILON)
    check.choice(what, "loss", loss, ("squared", "absolute"))
    if isinstance(domain, Spans):  # true values of one span alone are no harder
        widths = [high - low for low, high in domain.spans]
        parts = [
            width * optimal_bound(Interval(*span), sensitivity=min(limit, width), epsilon=e, loss=loss)
            for span, width in zip(domain.spans, widths, strict=True)
        ]
        return sum(parts) / sum(widths) * (1.0 - 1e-12)
    return max(_Wide(domain, limit, e, loss, step).bound() for step in _steps(domain, limit, e))


def _steps(domain: Any, sensitivity: float, epsilon: float) -> list[Fraction]:
    """Distances of true values to try: shares or multiples of the sensitivity, and whole on Integers."""
    width, change = domain.width + (1 if domain.lattice else 0), Fraction(sensitivity)
    unit = max(10.0 / epsilon, 1.5) * sensitivity / _HALF
    found = {change / 2}
    for wanted in (min(width / _DIRECT, unit), unit, 2.0 * unit):
        if wanted >= sensitivity:
            found.add(change * round(wanted / sensitivity))
        elif domain.lattice:
            found.add(Fraction(math.ceil(wanted)))
        else:
            found.add(change / math.ceil(sensitivity / wanted))
    fits = sorted(step for step in found if 2 * step <= width and (step.denominator == 1 or not domain.lattice))
    return fits or [Fraction(1)]


class _Wide:
    """True values on a lattice of the domain, ``step`` apart, and losses in units of it; docs/proofs/optimal.md, 5."""

    def __init__(self, domain: Any, sensitivity: float, epsilon: float, loss: str, step: Fraction) -> None:
        self._power = 2 if loss == "squared" else 1
        self._step = float(step)
        self._width = float(domain.width) + (1.0 if domain.lattice else 0.0)
        self._count = int(Fraction(self._width) / step)
        # neighbours are up to `reach` steps apart; or one step is several sensitivities
        self._reach = max(1, int(Fraction(sensitivity) / step))
        self._gap = epsilon * max(1, math.ceil(step / Fraction(sensitivity)))
        decay = math.ceil(max(12.0 / epsilon, 2.0) * sensitivity / self._step)
        self._half = max(2, min(decay, _HALF, self._count // 4))

    def _limits(self, count: int) -> Limits:
        first = np.maximum(np.arange(count) - self._reach, 0)
        return Limits(first, np.full(count, self._gap))

    def _cost(self, true: int, answers: FloatArray) -> FloatArray:
        """Of each answer (rows) for the true values 0, 1, 2, ..."""
        out: FloatArray = np.abs(answers[:, None] - np.arange(float(true))) ** self._power
        return out

    def _plateau(self, fine: int) -> float:
        """What is lost at least, far from the ends: by answers in the middle of a window, at every part of a step."""
        size = 2 * self._half + 1
        most = float(self._half**self._power)  # no less is lost outside of the window
        cost = self._cost(size, self._half + np.arange(fine) / fine)
        found = self._limits(size).lowered(np.full(size, most), cost)
        return 0.0 if found is None else min(float(np.min(found)), most)

    def bound(self) -> float:
        # answers on a lattice, too; squared, one between two of them costs less than both by at most 1/4 of its steps
        fine, between, direct = 1, 0.0, self._count <= _DIRECT
        if self._power == 2:
            rough = max(self._plateau(1), 1e-3)
            fine = min(math.ceil(11.0 / math.sqrt(rough)), _ANSWERS // (self._count if direct else self._half))
            between = 0.25 / fine**2
        total = self._direct(fine) if direct else self._far(fine)
        average = max(total - between * self._count, 0.0) * self._step ** (self._power + 1) / self._width
        return average * (1.0 - 1e-12)

    def _direct(self, fine: int) -> float:
        """The sum of the losses of all true values, by the program."""
        losses = self._cost(self._count, np.arange((self._count - 1) * fine + 1) / fine).T
        flat = np.full(self._count, 1.0 / self._count)
        return self._count * max(solve(losses, flat, self._limits(self._count), tolerance=_CLOSE).bound, 0.0)

    def _far(self, fine: int) -> float:
        """The same, from what is lost at the two ends and between them."""
        plateau, wall = self._plateau(fine), 2 * self._half
        if not plateau > 0.0:
            return 0.0
        cost = self._cost(wall, np.arange(self._half * fine + 1) / fine)
        ends = sum_below(cover(cost, plateau, self._limits(wall), _CLOSE))
        return plateau * (self._count - 2 * wall) + 2.0 * ends

"""What is drawn: parts of a plan, each with its own share of the budget.

A part turns the exact numbers of every group into noisy ones. Aggregates read their answers from parts, and those that
can share a part do: a mean, a sum and a variance of the same values within the same bounds cost as much as one of them.
Proof page: ``docs/proofs/tables.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from inbounds import _checks as check
from inbounds.accounting import UNITS
from inbounds.advice import figures
from inbounds.domain import Box, Integers, Interval
from inbounds.events import Composed, Event, Pure, Repeated, Zcdp
from inbounds.mechanism import BoundedLaplace, Denoised, Gaussian, Laplace, Mechanism
from inbounds.sensitivity import L1, L2
from inbounds.tables.fixed import Caps
from inbounds.tables.measures import Binned, Measure, Squares, Sum, Units
from inbounds.tables.per_unit import MEAN, PerUnit
from inbounds.tables.picking import Picker
from inbounds.tables.spending import Neighbours, Spend
from inbounds.tables.tails import Noise

__all__ = ["Cell", "Cells", "Drawn", "Found", "Part", "Pick", "choose_count", "choose_keys"]

EDGES = ("auto", "clamp", "truncate", "denoise")

_ROUNDED = 1.0 + 2.0**-18  # numbers of up to 2^33 units as float64: their rounding moves them by less
_WIDE = 200.0  # a domain this many scales wide: what happens at its ends hardly counts
_SQUARE = 1.0 + 2.0**-20


@dataclass(frozen=True)
class Drawn:
    """How a part is drawn: the mechanism of one group, what all groups cost, and the reason in words."""

    mechanism: Any
    event: Event
    reason: str


@dataclass(frozen=True)
class Part:
    """Numbers that are drawn together; ``name`` tells it from the others of a plan."""

    name: str

    def measures(self) -> dict[str, Measure]:
        """What the engine has to count and sum for it, by names that begin with its own."""
        raise NotImplementedError

    def choose(self, spend: Spend, caps: Caps, neighbours: Neighbours) -> Drawn:
        """The mechanism for a share of the budget."""
        raise NotImplementedError

    def draw(self, drawn: Drawn, numbers: Mapping[str, Sequence[tuple[int, ...]]], caps: Caps) -> list[Any]:
        """The noisy numbers of every group, of what JSON has. This is where privacy is made."""
        raise NotImplementedError

    def spread(self, drawn: Drawn) -> float:
        """The standard deviation of the noise on one number, by which ways of paying are compared."""
        mechanism = drawn.mechanism.raw if isinstance(drawn.mechanism, Denoised) else drawn.mechanism
        return float(mechanism.scale) * (math.sqrt(2.0) if isinstance(mechanism, Laplace) else 1.0)


# ---------------------------------------------------------------- one number


@dataclass(frozen=True)
class Cell(Part):
    """One number a group: a count, a sum, or a mean of a known number of values.

    Attributes
    ----------
    measure : Measure
    domain : Interval or Integers
        The answers that make sense.
    edges : str
        ``"auto"``, ``"clamp"``, ``"truncate"`` or ``"denoise"``.
    value : callable
        From the numbers of the measure and the caps to the exact answer.
    limits : callable
        From the caps to (what one unit adds, what one unit swaps).
    """

    measure: Mapping[str, Measure]
    domain: Any
    edges: str
    value: Any
    limits: Any

    def measures(self) -> dict[str, Measure]:
        return {f"{self.name}.{key}": measure for key, measure in self.measure.items()}

    def choose(self, spend: Spend, caps: Caps, neighbours: Neighbours) -> Drawn:
        added, swapped = self.limits(caps)
        family = Laplace if spend.kind == "epsilon" else Gaussian

        def make(edges: str) -> Mechanism:
            def once(swaps: bool, amount: Spend) -> Mechanism:
                limit = swapped if swaps else added
                return family.calibrate(self.domain, sensitivity=limit, edges=edges, **amount.given)

            found: Mechanism = neighbours.calibrate(once)(spend)
            return found

        # Where two costs decide about the scale, only plain noise is sure to be private at the larger one.
        plain = spend.kind == "rho" or (neighbours.substitute and neighbours.grouped)
        mechanism, reason = _edges(make, self.domain, self.edges, plain=plain)
        raw = mechanism.raw if isinstance(mechanism, Denoised) else mechanism
        noted = "denoised" if isinstance(mechanism, Denoised) else ""
        events = [_with(raw, limit).event() for limit in (added, swapped)]
        events = [type(e)(e.mechanism, noted) if noted else e for e in events]
        return Drawn(mechanism, neighbours.event(*events), reason)

    def draw(self, drawn: Drawn, numbers: Mapping[str, Sequence[tuple[int, ...]]], caps: Caps) -> list[Any]:
        columns = [numbers[name] for name in self.measures()]
        exact = np.array([self.value(caps, *row) for row in zip(*columns, strict=True)], dtype=np.float64)
        released: list[Any] = drawn.mechanism.release(exact, clip=True).value.tolist()
        return released


def _with(mechanism: Any, sensitivity: Any) -> Any:
    """The same noise, with what it means for another sensitivity."""
    kept = {name: getattr(mechanism, name) for name in ("scale", "edges", "granularity")}
    return type(mechanism)(mechanism.domain, sensitivity=sensitivity, **kept)


def _edges(make: Any, domain: Any, edges: str, *, plain: bool) -> tuple[Mechanism, str]:
    """The mechanism for a treatment of the ends; with ``"auto"`` that of the least exact expected error."""
    if edges == "truncate" and plain:
        check.refuse("plan", "edges", 'not "truncate" for this plan', edges, 'Use "clamp", or add-remove with epsilon.')
    if edges == "denoise":
        return make("ignore").denoised(integer=domain.lattice), "as asked for"
    if edges != "auto":
        return make(edges), "as asked for"
    clamped = make("clamp")
    if not domain.bounded:
        return clamped, "clamped: on an unbounded domain it has the least error at the worst true value"
    if domain.width >= _WIDE * clamped.scale:
        times = domain.width / clamped.scale
        return clamped, f"clamped: the range is {times:.0f} times the noise, so its ends hardly matter"
    tried = {"clamped": clamped} if plain else {"clamped": clamped, "truncated": make("truncate")}
    tried["denoised"] = make("ignore").denoised(integer=domain.lattice)
    rmse = {name: figures(mechanism, widths=False)[0].rmse for name, mechanism in tried.items()}  # type: ignore[union-attr]
    best = min(rmse, key=lambda name: rmse[name])
    if rmse["clamped"] <= 1.02 * rmse[best]:
        best = "clamped"
    others = ", ".join(f"{name} {value:.4g}" for name, value in rmse.items() if name != best)
    return tried[best], f"{best}: rmse {rmse[best]:.4g} on average over the range; {others}"


def rounded_up(limit: float) -> float:
    """A sensitivity of exact numbers, for the same numbers rounded to float64."""
    return limit * _ROUNDED


# ---------------------------------------------------------------- several cells


@dataclass(frozen=True)
class Cells(Part):
    """Cells that share out values: each counts 1 in all of them together, so one unit moves them by its values.

    A mean of values scaled to [0, 1] has the cells (sum of 1 - x, sum of x); a variance those of (1 - x)^2, 2 x (1 - x)
    and x^2; a share those that do not and do meet a condition; a histogram its bins. One more cell, where ``rest`` is
    given, has what has no value.
    """

    def cells(self, caps: Caps) -> int:
        raise NotImplementedError

    def exact(self, caps: Caps, *row: tuple[int, ...]) -> list[float]:
        """The cells of a group, from the numbers of the measures."""
        raise NotImplementedError

    @property
    def whole(self) -> bool:
        """Whether answers are whole numbers, clamped at 0; else the noise is left as it is, for tests to be exact."""
        return False

    def values(self, caps: Caps) -> int:
        """How many values a unit has in a group, at most."""
        return caps.values

    def slack(self, caps: Caps) -> float:
        """By which factor rounding in the engine lengthens what one unit moves."""
        return 1.0

    def choose(self, spend: Spend, caps: Caps, neighbours: Neighbours) -> Drawn:
        count = self.cells(caps)
        domain = Box([0.0] * count, [math.inf] * count, integer=self.whole)
        values = self.values(caps)
        size = float(values) if self.whole else rounded_up(values * self.slack(caps))
        family, norm, swap = (
            (Laplace, L1, 2.0) if spend.kind == "epsilon" else (Gaussian, L2, math.nextafter(2**0.5, 2))
        )
        limits = [norm(size), norm(size * swap)]

        def once(swaps: bool, amount: Spend) -> Mechanism:
            limit, edges = limits[swaps], "clamp" if self.whole else "ignore"
            made: Mechanism = family.calibrate(domain, sensitivity=limit, edges=edges, **amount.given)
            return made

        mechanism = neighbours.calibrate(once)(spend)
        events = [_with(mechanism, limit).event() for limit in limits]
        reason = f"{count} cells drawn together: each value counts 1 in all of them, so none needs a share of its own"
        return Drawn(mechanism, neighbours.event(*events), reason)

    def draw(self, drawn: Drawn, numbers: Mapping[str, Sequence[tuple[int, ...]]], caps: Caps) -> list[Any]:
        columns = [numbers[name] for name in self.measures()]
        exact = np.array([self.exact(caps, *row) for row in zip(*columns, strict=True)], dtype=np.float64)
        released: list[Any] = drawn.mechanism.release(np.maximum(exact, 0.0)).value.tolist()
        return released

    def noise(self, drawn: Drawn) -> Noise:
        mechanism = drawn.mechanism
        family = "laplace" if isinstance(mechanism, Laplace) else "gaussian"
        return Noise(family, float(mechanism.scale), float(np.max(mechanism.grid)))


@dataclass(frozen=True)
class Values(Cells):
    """Values of a column scaled to [0, 1], by the Bernstein polynomials of a degree: 1 for means, 2 for variances."""

    column: Any
    lower: Any
    upper: Any
    degree: int
    rest: Measure | None = None
    per: PerUnit = MEAN

    def _sum(self) -> Sum:
        return Sum(self.column, self.lower, self.upper, per=self.per)

    def _squares(self) -> Squares:
        return Squares(self.column, self.lower, self.upper, per=self.per)

    def measures(self) -> dict[str, Measure]:
        found: dict[str, Measure] = {f"{self.name}.sum": self._sum()}
        if self.degree == 2:
            found[f"{self.name}.squares"] = self._squares()
        return found | ({f"{self.name}.all": self.rest} if self.rest is not None else {})

    def cells(self, caps: Caps) -> int:
        return self.degree + 1 + (self.rest is not None)

    def slack(self, caps: Caps) -> float:
        if self.degree == 1:
            return 1.0
        # Squares are rounded to whole units; each moves the three cells by at most 4 times as much.
        squares = self._squares()
        fixed = squares.fixed(caps)
        span = fixed.highest - fixed.lowest
        return _SQUARE + 4.0 * 0.51 / (squares.shift(caps) * span * span)

    def exact(self, caps: Caps, *row: tuple[int, ...]) -> list[float]:
        fixed = self._sum().fixed(caps)
        low, span = fixed.lowest, fixed.highest - fixed.lowest
        count, total = row[0]
        first = Fraction(total - count * low, span)  # sum of x
        if self.degree == 1:
            found = [count - first, first]
        else:
            shift = Fraction(self._squares().shift(caps))
            about = Fraction(row[1][1]) / shift  # sum of squares about the centre, in steps
            second = (about - 2 * low * total + count * low * low) / (span * span)
            found = [count - 2 * first + second, 2 * (first - second), second]
        if self.rest is not None:
            found.append(Fraction(row[-1][0] - count))
        return [float(x) for x in found]


@dataclass(frozen=True)
class Sides(Cells):
    """Rows or units that do not meet a condition, and those that do."""

    meeting: Measure
    all: Measure

    def measures(self) -> dict[str, Measure]:
        return {f"{self.name}.meeting": self.meeting, f"{self.name}.all": self.all}

    def cells(self, caps: Caps) -> int:
        return 2

    def values(self, caps: Caps) -> int:
        return 1 if isinstance(self.all, Units) else caps.values

    def exact(self, caps: Caps, *row: tuple[int, ...]) -> list[float]:
        (meeting,), (all_,) = row
        step = Fraction(getattr(self.meeting, "step", lambda _: 1.0)(caps))
        return [float(all_ - meeting * step), float(meeting * step)]


@dataclass(frozen=True)
class Bars(Cells):
    """The bins of a histogram: whole numbers."""

    bins: Binned

    @property
    def whole(self) -> bool:
        return True

    def measures(self) -> dict[str, Measure]:
        return {f"{self.name}.bins": self.bins}

    def cells(self, caps: Caps) -> int:
        return self.bins.bins()

    def exact(self, caps: Caps, *row: tuple[int, ...]) -> list[float]:
        return [float(x) for x in row[0]]

    def choose(self, spend: Spend, caps: Caps, neighbours: Neighbours) -> Drawn:
        found = super().choose(spend, caps, neighbours)
        count = self.cells(caps)
        return Drawn(found.mechanism, found.event, f"{count} bins drawn together: a value is in one of them only")

    def one(self, drawn: Drawn) -> Mechanism:
        """The mechanism of a single bin."""
        m = drawn.mechanism
        limit = math.ceil(m.sensitivity.value)  # a single bin moves by whole numbers
        made: Mechanism = type(m)(Integers(0, math.inf), scale=m.scale, sensitivity=limit, edges="clamp")
        return made


# ---------------------------------------------------------------- quantiles


@dataclass(frozen=True)
class Pick(Part):
    """Quantiles of a column, each picked from the cells of a grid; with both ends of its confidence interval.

    ``level`` is that of the intervals, None for none. Of the budget of a quantile, half goes to the answer, a fifth to
    each end, and a tenth to how many values there are, without which an end cannot be trusted.
    """

    grid: Binned
    quantiles: tuple[Fraction, ...]
    level: float | None

    def measures(self) -> dict[str, Measure]:
        return {f"{self.name}.grid": self.grid}

    def choose(self, spend: Spend, caps: Caps, neighbours: Neighbours) -> Drawn:
        each = spend.portion(Fraction(1, len(self.quantiles)))
        plans, events = [], []
        for quantile in self.quantiles:
            shares = self._shares(quantile)
            pickers = [self._picker(quantile, each.portion(s), caps, neighbours) for s in shares[:-1]]
            events += [event for _, event in pickers]
            paid = each.portion(shares[-1]) if self.level else None
            count, event = (None, None) if paid is None else choose_count(paid, caps.values, neighbours)
            events += [event] if event else []
            plans.append(([picker for picker, _ in pickers], count))
        total = events[0] if len(events) == 1 else Composed(tuple(events))
        reason = "exponential mechanism on a grid"
        return Drawn(tuple(plans), total, reason)

    def _shares(self, quantile: Fraction) -> list[Fraction]:
        if self.level is None:
            return [Fraction(1), Fraction(0)]
        if quantile in (0, 1):
            return [Fraction(9, 10), Fraction(1, 10)]
        return [Fraction(1, 2), Fraction(1, 5), Fraction(1, 5), Fraction(1, 10)]

    def _picker(
        self, quantile: Fraction, spend: Spend, caps: Caps, neighbours: Neighbours
    ) -> tuple[Picker, Event]:  # fmt: skip
        reach = {False: caps.values * max(quantile, 1 - quantile), True: Fraction(caps.values)}
        power = 1 if spend.kind == "epsilon" else 2  # a pick with epsilon has zCDP with epsilon^2 / 8
        made = []
        for swaps, amount in neighbours.costs(spend):
            epsilon = amount.value if power == 1 else math.sqrt(8.0 * amount.value)
            made.append((Picker(quantile, epsilon, reach[swaps], self.grid.bins()), amount))
        step = max(picker.step for picker, _ in made)
        made = [(replace(picker, step=step), amount) for picker, amount in made]

        def units(picker: Picker, amount: Spend, swaps: bool) -> Fraction:
            return amount.units * Fraction(picker.moves(reach[swaps]), picker.moves(picker.reach)) ** power

        # With steps in common, the one that costs less where units are added costs less where they swap.
        picker, amount = min(made, key=lambda one: units(one[0], one[1], False))

        def event(swaps: bool) -> Event:
            cost = Spend(spend.kind, math.ceil(units(picker, amount, swaps))).value
            return Pure(cost) if power == 1 else Zcdp(cost)

        return picker, neighbours.event(event(False), event(True))

    def spread(self, drawn: Drawn) -> float:
        return float(drawn.mechanism[0][0][0].scale)

    def draw(self, drawn: Drawn, numbers: Mapping[str, Sequence[tuple[int, ...]]], caps: Caps) -> list[Any]:
        return [self._group(drawn, row) for row in numbers[f"{self.name}.grid"]]

    def _group(self, drawn: Drawn, counts: tuple[int, ...]) -> list[list[int]]:
        found = []
        for quantile, (pickers, count) in zip(self.quantiles, drawn.mechanism, strict=True):
            shifts = self._shifts(quantile, pickers)
            picked = [picker.pick(counts, shift) for picker, shift in zip(pickers, shifts, strict=True)]
            if count is not None:
                picked.append(count.release(sum(counts)).value)
            found.append(picked)
        return found

    def _shifts(self, quantile: Fraction, pickers: Sequence[Picker]) -> list[float]:
        """How far each pick aims beside the quantile: the ends, so far that they miss it on their side."""
        if quantile in (0, 1):
            far = pickers[0].within(self.failure)
            far = far + 1.0 if math.isfinite(far) else pickers[0].scale * math.log(pickers[0].cells)
            return [far if quantile == 0 else -far]
        if len(pickers) == 1:
            return [0.0]
        far = self.reach(pickers[1])
        return [0.0, -far, far] if math.isfinite(far) else [0.0, 0.0, 0.0]

    def reach(self, picker: Picker) -> float:
        return picker.within(self.failure) + 1.0

    @property
    def failure(self) -> float:
        """The chance of an end to fail; what the count may fail is a tenth of the whole."""
        return 0.45 * (1.0 - (self.level or 0.95))

    def trusted(self, count: Mechanism | None, noisy: int) -> float:
        """Values that there are, but for a tenth of the chance of failing."""
        if count is None:
            return 0.0
        return float(count.interval(noisy, 1.0 - 0.2 * (1.0 - (self.level or 0.95)))[0])


def choose_count(spend: Spend, most: int, neighbours: Neighbours) -> tuple[Mechanism, Event]:
    """The noise for how many values there are, ``most`` of a unit: without that number no pick can be trusted."""
    family = Laplace if spend.kind == "epsilon" else Gaussian

    def once(_: bool, amount: Spend) -> Mechanism:
        made: Mechanism = family.calibrate(
            Integers(0, math.inf), sensitivity=float(most), edges="ignore", **amount.given
        )
        return made

    mechanism = neighbours.calibrate(once)(spend)
    event = mechanism.event()
    return mechanism, neighbours.event(event, event)


# ---------------------------------------------------------------- groups of the data


@dataclass(frozen=True)
class Found:
    """How the groups of the data are found: those whose noisy number of units passes a threshold.

    The noise is bounded, so a group of one unit never passes, and a group passes with certainty from ``sure`` units on.
    """

    mechanism: BoundedLaplace
    event: Event

    @property
    def threshold(self) -> int:
        """Noisy numbers of units below this do not pass; a group of one unit stays below it for certain."""
        return math.floor(1 + self.mechanism.bound) + 1

    @property
    def sure(self) -> int:
        return math.ceil(self.threshold + self.mechanism.bound)

    @property
    def at_least(self) -> int:
        """Groups of fewer units cannot pass."""
        return max(2, math.ceil(self.threshold - self.mechanism.bound))

    def passing(self, units: Sequence[int]) -> list[int]:
        """Which groups pass."""
        if not units:
            return []
        noisy = self.mechanism.release(np.array(units, dtype=np.float64)).value
        return np.flatnonzero(np.asarray(noisy) >= self.threshold).tolist()


def choose_keys(epsilon: float, delta: float, neighbours: Neighbours) -> Found:
    """The noise for finding groups, for a total cost of (epsilon, delta)."""
    draws = neighbours.draws
    if not delta > 0.0:
        step = "Give the plan a delta, as delta=1e-6; or give the groups with keys=."
        check.refuse("plan", "delta", "greater than 0 to find the groups of the data", delta, step)
    each = Spend("epsilon", math.floor(epsilon * UNITS["epsilon"])).portion(Fraction(1, draws))
    share = math.floor(delta / draws * UNITS["delta"]) / UNITS["delta"]
    mechanism = BoundedLaplace.calibrate(
        Integers(0, math.inf), sensitivity=1, epsilon=each.value, delta=share, edges="ignore"
    )
    event = mechanism.event()
    return Found(mechanism, event if draws == 1 else Repeated(event, draws))


def half_line(lower: float, upper: float) -> Interval:
    """The sums that make sense when nothing is known about how many values there are."""
    return Interval(0.0 if lower >= 0.0 else -math.inf, 0.0 if upper <= 0.0 else math.inf)

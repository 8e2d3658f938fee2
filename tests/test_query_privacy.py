"""Private answers from tables, attacked: what one unit moves, what is drawn, what is charged, what is claimed.

Where a law is known it is checked exactly: the weights of quantiles, sensitivities, charges, found groups. What whole
plans give away is measured on neighbouring tables at the worst case of the analysis, and a plan with half the noise has
to be caught by the same test. Statistical tests err with a probability below 1e-6, all of them together.
"""

from __future__ import annotations

import copy
import datetime as dt
import inspect
import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy.stats import binom

import inbounds as ib
from inbounds import ask, col
from inbounds.auditing import audit_sampler
from inbounds.composition import Concentrated
from inbounds.errors import ParameterError
from inbounds.mechanism import BoundedLaplace, Denoised
from inbounds.tables import Dataset, Plan, picking, suggestions
from inbounds.tables.answers import Answer, FromCells
from inbounds.tables.fixed import Caps
from inbounds.tables.measures import Grid, Rows, Squares
from inbounds.tables.parts import Bars, Cell, Cells, Drawn, Found, Part, Pick, Values, choose_keys, rounded_up
from inbounds.tables.per_unit import PerUnit
from inbounds.tables.picking import Picker
from inbounds.tables.spending import Neighbours, Spend
from inbounds.tables.tails import Noise
from tests import query_reference as reference
from tests.common import goal as least

ALPHA = 1e-9  # of each audit; there are some two hundred

SCHEMA = pa.schema(
    [("u", pa.int64()), ("g", pa.int64()), ("x", pa.float64()), ("i", pa.int64()), ("ok", pa.bool_())],
)

Row = dict[str, Any]
Numbers = Mapping[str, Sequence[tuple[int, ...]]]


def unit(u: int, *values: float | None, groups: Sequence[int] = (0,), ok: bool = True) -> list[Row]:
    """The rows of a unit: the same values in every group."""
    return [{"u": u, "g": g, "x": x, "i": x if x is None else round(x), "ok": ok} for g in groups for x in values]


def opened(rows: list[Row], **options: Any) -> Dataset:
    given = {"unit": "u", "budget": ib.Budget(epsilon=1e6)} | options
    return ib.dataset(pa.Table.from_pylist(rows, schema=SCHEMA), **given)


# ---------------------------------------------------------------- drawing a plan many times


@contextmanager
def patched(**replaced: Any) -> Iterator[None]:
    """With other functions inside ``picking``, for a while."""
    kept = {name: getattr(picking, name) for name in replaced}
    vars(picking).update(replaced)
    try:
        yield
    finally:
        vars(picking).update(kept)


def weights_of(picker: Picker, counts: Sequence[int], shift: float = 0.0) -> list[int]:
    """The whole numbers to which the chances of the cells are proportional: every way through ``pick`` is taken."""
    found = [0] * len(counts)
    seen: list[list[int]] = []
    sizes: list[int] = []

    def run(sort: int, one: int) -> int:
        with patched(
            _draw=lambda weights: (seen.append(weights), sort)[1], _below=lambda size: (sizes.append(size), one)[1]
        ):
            return picker.pick(counts, shift)

    run(0, 0)
    for sort, weight in enumerate(seen[0]):
        run(sort, 0)
        size = sizes[-1]
        for one in range(size):
            cell = run(sort, one)
            assert found[cell] == 0
            found[cell], left = divmod(weight, size)
            assert left == 0
    assert all(found)
    return found


class Fast:
    """A picker that remembers its weights, or a mechanism that draws by the thousand: the same draws, sooner."""

    def __init__(self, thing: Any) -> None:
        self.thing, self.value = thing, None
        self.known: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.thing, name)

    def pick(self, counts: Sequence[int], shift: float = 0.0) -> int:
        key = (counts, shift)
        if key not in self.known:
            self.known[key] = list(itertools.accumulate(weights_of(self.thing, counts, shift)))
        return bisect_right(self.known[key], picking._below(self.known[key][-1]))

    def release(self, q: float) -> Fast:
        if not self.known.get(q):
            self.known[q] = self.thing.release(np.full(5000, float(q))).value.tolist()
        self.value = self.known[q].pop()
        return self


def halved(mechanism: Any) -> Any:
    """The mechanism of a plan that takes the sensitivity for half of what it is."""
    if mechanism is None:
        return None
    if isinstance(mechanism, Picker):
        return replace(mechanism, epsilon=2.0 * mechanism.epsilon)
    if isinstance(mechanism, tuple):
        return tuple(([halved(picker) for picker in pickers], halved(count)) for pickers, count in mechanism)
    if isinstance(mechanism, Denoised):
        return halved(mechanism.raw).denoised(integer=mechanism.domain.lattice)
    kept = {name: getattr(mechanism, name) for name in ("domain", "sensitivity", "edges")}
    if isinstance(mechanism, BoundedLaplace):
        kept["bound"] = mechanism.bound
    return type(mechanism)(scale=mechanism.scale / 2.0, **kept)


def drawn_often(part: Part, drawn: Drawn, numbers: Numbers, caps: Any, size: int) -> list[Any]:
    """``part.draw`` on a table that repeats the same groups, with exact numbers computed once."""
    if isinstance(part, Cell):
        part = replace(part, value=cache(part.value))
    elif isinstance(part, Cells):
        known = cache(part.exact)
        part = copy.copy(part)
        object.__setattr__(part, "exact", known)
    elif isinstance(part, Pick):
        plans = tuple(
            ([Fast(p) for p in pickers], None if count is None else Fast(count)) for pickers, count in drawn.mechanism
        )
        drawn = replace(drawn, mechanism=plans)
    return part.draw(drawn, {name: tuple(rows) * size for name, rows in numbers.items()}, caps)


def told(part: Part, drawn: Drawn, tables: Sequence[Numbers], caps: Any, raw: list[Any], size: int) -> Any:
    """For each draw of all groups, how much likelier it is under the first table than under the second, about.

    Any function of what is drawn is fair for the auditor; the log-likelihood ratio tells most.
    """
    groups = len(raw) // size
    if isinstance(part, Pick):
        total = np.zeros(size)
        name = next(iter(part.measures()))
        for g in range(groups):
            for k, (quantile, (pickers, count)) in enumerate(zip(part.quantiles, drawn.mechanism, strict=True)):
                shifts = part._shifts(quantile, pickers)
                for j, (picker, shift) in enumerate(zip(pickers, shifts, strict=True)):
                    logs = [np.log(np.array(weights_of(picker, t[name][g], shift), dtype=float)) for t in tables]
                    total += (logs[0] - logs[1])[[raw[s * groups + g][k][j] for s in range(size)]]
                if count is not None:
                    noisy = np.array([raw[s * groups + g][k][-1] for s in range(size)])
                    total += closer(count, noisy, *(sum(t[name][g]) for t in tables))
        return total
    exact = []
    for numbers in tables:
        columns = [numbers[name] for name in part.measures()]
        rows = list(zip(*columns, strict=True))
        exact.append(
            np.array([[part.value(caps, *r)] if isinstance(part, Cell) else part.exact(caps, *r) for r in rows])  # type: ignore[attr-defined]
        )
    values = np.array(raw, dtype=float).reshape(size, groups, -1)
    return np.sum(closer(drawn.mechanism, values, *exact), axis=(1, 2))


def closer(mechanism: Any, y: Any, first: Any, second: Any) -> Any:
    mechanism = mechanism.raw if isinstance(mechanism, Denoised) else mechanism
    if isinstance(mechanism, ib.Gaussian):
        return ((y - second) ** 2 - (y - first) ** 2) / (2.0 * mechanism.scale**2)
    return (np.abs(y - second) - np.abs(y - first)) / mechanism.scale


@dataclass(frozen=True)
class Neighbouring:
    """A plan, and two neighbouring tables which it should not tell apart.

    ``tight``: the share of epsilon that the auditor finds at least, as the pair is (nearly) the worst one. ``caught``:
    whether half the noise is noticed with ``draws`` draws, or with many more only, or not on this pair.
    """

    plan: Callable[[Dataset], Plan]
    tables: tuple[list[Row], list[Row]]
    options: dict[str, Any] = field(default_factory=dict)
    tight: float = 0.5
    caught: str = "always"
    draws: int = 20_000


def audited(pair: Neighbouring, size: int, wrong: bool) -> Any:
    """The audit of a whole plan on both tables; with half the noise it needs if ``wrong``."""
    data = [opened(rows, **pair.options) for rows in pair.tables]
    plans = [pair.plan(view) for view in data]
    tallies = [plan._request.run(view.source) for plan, view in zip(plans, data, strict=True)]
    plan, caps = plans[0], plans[0]._request.caps
    assert plan.event == plans[1].event  # what is public is the same

    def sampler(q: float, size: int) -> Any:
        numbers = tallies[int(q)].numbers
        total = np.zeros(size)
        for part, drawn in plan.chosen.values():
            how = replace(drawn, mechanism=halved(drawn.mechanism)) if wrong else drawn
            raw = drawn_often(part, how, numbers, caps, size)
            total += told(part, how, [t.numbers for t in tallies], caps, raw, size)
        return np.round(total, 6)

    goal = plan.goal
    epsilon = goal.epsilon or 1.0
    delta = goal.delta if goal.rho is None else float(Concentrated(goal.rho).delta(epsilon))
    sure = {"draws": size, "confidence": 1.0 - ALPHA}
    return audit_sampler(sampler, (0.0, 1.0), epsilon=epsilon, delta=delta, checks=("law",), **sure), epsilon


# A value more on the right: cells on the left become worse, the many on the right better.
RANKS = ([*unit(1, 8.0), *unit(2, 8.0)], [*unit(1, 8.0), *unit(2, 8.0), *unit(3, 40.0)])
SOME = [*unit(1, 3.0), *unit(2, 7.5, ok=False), *unit(3, 0.0)]
KEYS = [0, 1, 2, 3]
TWO = {"max_groups": 2}
ONE = {"max_rows": 1}


def swap(size: int, **options: Any) -> dict[str, Any]:
    return {"neighbours": "substitute", "size": size, **options}


def grouped(data: Dataset) -> Dataset:
    return data.group_by("g", keys=KEYS)


EPSILON: dict[str, Neighbouring] = {
    # One unit more: all its rows at a bound, in the largest number of groups, in tables and groups with nothing else.
    "count": Neighbouring(
        lambda d: d.plan.count(epsilon=1.0), (SOME, [*SOME, *unit(9, 1.0, 2.0, 3.0, 4.0)]), {"max_rows": 3}
    ),
    "count of units": Neighbouring(lambda d: d.plan.count_units(epsilon=1.0), ([], unit(9, 1.0))),
    "count, truncated": Neighbouring(
        lambda d: d.plan.count_units(epsilon=1.0, edges="truncate"), ([], unit(9, 1.0)), tight=0.5
    ),
    "sum": Neighbouring(
        lambda d: d.plan.sum("x", bounds=(-2, 5), epsilon=1.0), (SOME, [*SOME, *unit(9, 8.0, 5.0)]), {"max_rows": 2}
    ),
    "sum of whole numbers": Neighbouring(
        lambda d: d.plan.sum("i", bounds=(-7, 5), epsilon=1.0), (SOME, [*SOME, *unit(9, -8.0, -9.0)]), {"max_rows": 2}
    ),
    "mean": Neighbouring(lambda d: d.plan.mean("x", bounds=(0, 10), epsilon=1.0), ([], unit(9, 10.0))),
    "mean of rows": Neighbouring(
        lambda d: d.plan.mean("x", bounds=(-0.1, 0.3), epsilon=1.0),
        (SOME, [*SOME, *unit(9, -1.0, -2.0, -3.0)]),
        {"max_rows": 3},
    ),
    "mean of own means": Neighbouring(
        lambda d: d.plan.mean("x", bounds=(0, 10), epsilon=1.0), (SOME, [*SOME, *unit(9, 0.0, 10.0)])
    ),
    "variance": Neighbouring(
        lambda d: d.plan.variance("x", bounds=(0, 10), epsilon=1.0),
        (SOME, [*SOME, *unit(9, 0.0, 0.0)]),
        {"max_rows": 2},
    ),
    "variance of rows": Neighbouring(
        lambda d: d.plan.variance("x", bounds=(0, 10), epsilon=1.0),
        (SOME, [*SOME, *unit(9, 0.0, 5.0, 10.0)]),
        {"max_rows": 3},
        tight=0.4,
    ),
    "std": Neighbouring(lambda d: d.plan.std("x", bounds=(0, 10), per_unit="mean", epsilon=1.0), ([], unit(9, 10.0))),
    "share of rows": Neighbouring(
        lambda d: d.plan.share(col("ok"), epsilon=1.0), (SOME, [*SOME, *unit(9, 1.0, 2.0, 3.0)]), {"max_rows": 3}
    ),
    "share of own rows": Neighbouring(
        lambda d: d.plan.share(col("x") > 2, per_unit="mean", epsilon=1.0), ([], unit(9, 1.0, 2.0, 3.0))
    ),
    # One value of each unit, at a bound: of several rows, some of them beyond it.
    "sum of own sums": Neighbouring(
        lambda d: d.plan.sum("x", bounds=(-2, 5), per_unit="sum", epsilon=1.0),
        (SOME, [*SOME, *unit(9, 40.0, -30.0, 1.5)]),
    ),
    "sum of own sums by group": Neighbouring(
        lambda d: grouped(d).plan.sum("x", bounds=(-5, 2), per_unit="sum", epsilon=1.0),
        (SOME, [*SOME, *unit(9, -3.0, -1.0, -1.0, groups=KEYS)]),
        TWO,
    ),
    "variance of largest": Neighbouring(
        lambda d: d.plan.variance("x", bounds=(0, 10), per_unit="max", epsilon=1.0), ([], unit(9, 0.0, 99.0))
    ),
    "mean of last": Neighbouring(
        lambda d: d.plan.mean("x", bounds=(0, 10), per_unit="last", order=col("i") * -1, epsilon=1.0),
        (SOME, [*SOME, *unit(9, 10.0, 0.0)]),
    ),
    "median of sums": Neighbouring(
        lambda d: d.plan.median("i", bounds=(0, 40), per_unit="sum", epsilon=1.0, level=None),
        (RANKS[0], [*RANKS[0], *unit(3, 90.0, -30.0, 5.0)]),
        tight=0.3,
        draws=40_000,
    ),
    "share of units": Neighbouring(
        lambda d: d.plan.share(col("ok"), of="units", epsilon=1.0),
        (SOME, [*SOME, *unit(9, 1.0, 2.0, 3.0, ok=False)]),
        {"max_rows": 3},
    ),
    "histogram": Neighbouring(
        lambda d: d.plan.histogram("x", [0, 2, 5, 10], epsilon=1.0), ([], unit(9, 1.0, 1.0)), {"max_rows": 2}
    ),
    "median": Neighbouring(
        lambda d: d.plan.median("i", bounds=(0, 40), epsilon=1.0, level=None),
        RANKS,
        ONE,
        tight=0.3,
        draws=40_000,
    ),
    "median with interval": Neighbouring(
        lambda d: d.plan.median("i", bounds=(0, 40), epsilon=1.0),
        RANKS,
        ONE,
        tight=0.0,
        draws=10_000,
        caught="never",  # this pair is not a hard one for the ends of the interval
    ),
    "max": Neighbouring(
        lambda d: d.plan.max("i", bounds=(0, 40), epsilon=1.0, level=None),
        RANKS,
        ONE,
        tight=0.3,
        draws=25_000,
    ),
    "min": Neighbouring(
        lambda d: d.plan.min("i", bounds=(0, 40), epsilon=1.0, level=None),
        ([*unit(1, 32.0), *unit(2, 32.0)], [*unit(1, 32.0), *unit(2, 32.0), *unit(3, 0.0)]),
        ONE,
        tight=0.3,
        draws=25_000,
    ),
    "groups": Neighbouring(lambda d: grouped(d).plan.count_units(epsilon=1.0), ([], unit(9, 1.0, groups=KEYS)), TWO),
    "groups: mean": Neighbouring(
        lambda d: grouped(d).plan.mean("x", bounds=(0, 10), epsilon=1.0),
        (SOME, [*SOME, *unit(9, 10.0, groups=KEYS)]),
        TWO,
    ),
    "groups: median": Neighbouring(
        lambda d: d.group_by("g", keys=KEYS[:2]).plan.median("i", bounds=(0, 40), epsilon=1.5, level=None),
        (
            [*unit(1, 8.0, groups=KEYS[:2]), *unit(2, 8.0, groups=KEYS[:2])],
            [*unit(1, 8.0, groups=KEYS[:2]), *unit(2, 8.0, groups=KEYS[:2]), *unit(3, 40.0, groups=KEYS[:2])],
        ),
        {**TWO, **ONE},
        tight=0.1,
        caught="long",
    ),
    "parts in common": Neighbouring(
        lambda d: d.plan.select(
            n=ask.count_units(),
            m=ask.mean("x", (0, 10)),
            v=ask.variance("x", (0, 10), per_unit="mean"),
            s=ask.sum("x", (0, 10), per_unit="mean"),
            epsilon=1.0,
        ),
        (SOME, [*SOME, *unit(9, 5.0)]),
        tight=0.4,
    ),
    "parts in common, no value": Neighbouring(
        lambda d: d.plan.select(n=ask.count(), m=ask.mean("x", (0, 10)), epsilon=1.0),
        (SOME, [*SOME, *unit(9, None, None)]),
        {"max_rows": 2},
    ),
    "parts of all kinds": Neighbouring(
        lambda d: grouped(d).plan.select(
            n=ask.count_units(weight=2.0),
            m=ask.mean("x", (0, 10)),
            h=ask.histogram("x", [0, 5, 10], per_unit="min"),
            epsilon=1.0,
        ),
        (SOME, [*SOME, *unit(9, 10.0, groups=KEYS)]),
        TWO,
        tight=0.25,
        draws=50_000,
    ),
    # One unit swapped for another.
    "swap: count": Neighbouring(
        lambda d: d.where(col("ok")).plan.count_units(epsilon=1.0),
        (SOME, [*SOME[1:], *unit(1, 3.0, ok=False)]),
        swap(3),
        0.5,
    ),
    "swap: sum": Neighbouring(
        lambda d: d.plan.sum("x", bounds=(-2, 5), per_unit="sum", epsilon=1.0),
        ([*SOME, *unit(9, 3.0, 2.0)], [*SOME, *unit(9, 5.0, -7.0)]),
        swap(4),
        0.5,
    ),
    "swap: mean": Neighbouring(
        lambda d: d.plan.mean("x", bounds=(0, 10), epsilon=1.0),
        ([*SOME, *unit(9, 0.0)], [*SOME, *unit(9, 10.0)]),
        swap(4),
    ),
    "swap: mean of a known number": Neighbouring(
        lambda d: d.plan.mean(col("x").fill_null(0), bounds=(0, 10), epsilon=1.0),
        ([*SOME, *unit(9, 0.0)], [*SOME, *unit(9, 10.0)]),
        swap(4),
        0.5,
    ),
    "swap: sum of a known number": Neighbouring(
        lambda d: d.plan.sum(col("x").fill_null(3), bounds=(3, 5), per_unit="min", epsilon=1.0),
        ([*SOME, *unit(9, 3.0)], [*SOME, *unit(9, 5.0)]),
        swap(4),
        0.5,
    ),
    "swap: mean far from 0": Neighbouring(
        lambda d: d.plan.mean(col("x").fill_null(0), bounds=(2.0**49, 2.0**49 + 1), epsilon=1.0, edges="clamp"),
        # The mean lies half-way between two numbers of float64, or above that.
        tuple([r for u in range(64) for r in unit(u, 2.0**49 + (u < above))] for above in (4, 5)),  # type: ignore[arg-type]
        swap(64),
        0.4,
    ),
    "swap: variance of a known number": Neighbouring(
        lambda d: d.plan.variance(col("x").fill_null(0), bounds=(0, 10), per_unit="sum", epsilon=1.0),
        ([*unit(1, 0.0), *unit(2, 0.0), *unit(3, 0.0)], [*unit(1, 0.0), *unit(2, 0.0), *unit(3, 10.0)]),
        swap(3),
        0.4,
    ),
    "swap: share": Neighbouring(
        lambda d: d.plan.share(col("ok"), per_unit="mean", epsilon=1.0),
        (SOME, [*SOME[1:], *unit(1, 3.0, ok=False)]),
        swap(3),
    ),
    "swap: histogram": Neighbouring(
        lambda d: d.plan.histogram("x", [0, 2, 5, 10], epsilon=1.0),
        (unit(9, 1.0, 1.0), unit(9, 7.0, 7.0)),
        swap(1, max_rows=2),
        0.5,
    ),
    "swap: median": Neighbouring(
        lambda d: d.plan.median("i", bounds=(0, 40), epsilon=1.0, level=None),
        ([*unit(1, 8.0), *unit(2, 8.0), *unit(3, 0.0)], [*unit(1, 8.0), *unit(2, 8.0), *unit(3, 40.0)]),
        swap(3, max_rows=1),
        tight=0.3,
        draws=40_000,
    ),
    "swap: groups": Neighbouring(
        lambda d: grouped(d).plan.count_units(epsilon=1.0),
        (unit(9, 1.0, groups=KEYS[:2]), unit(9, 1.0, groups=KEYS[2:])),
        swap(1, **TWO),
        tight=0.3,
    ),
    "swap: groups, one in common": Neighbouring(
        lambda d: grouped(d).plan.mean("x", bounds=(0, 10), epsilon=1.0),
        ([*SOME, *unit(9, 0.0, groups=[0, 1])], [*SOME, *unit(9, 10.0, groups=[1, 2])]),
        swap(4, **TWO),
        tight=0.25,
        draws=30_000,
    ),
    # The row as unit.
    "row: mean": Neighbouring(
        lambda d: d.plan.mean("x", bounds=(0, 10), epsilon=1.0), (SOME, [*SOME, *unit(1, 10.0)]), {"unit": None}
    ),
    "row: count by group": Neighbouring(
        lambda d: grouped(d).plan.count(epsilon=1.0), (SOME, [*SOME, *unit(1, 10.0, groups=[2])]), {"unit": None}
    ),
    "row: swapped": Neighbouring(
        lambda d: grouped(d).plan.sum("x", bounds=(-5, 10), epsilon=1.0),
        ([*SOME, *unit(1, 10.0, groups=[2])], [*SOME, *unit(1, 10.0, groups=[3])]),
        swap(4, unit=None),
        tight=0.4,
    ),
}

RHO: dict[str, Neighbouring] = {
    "count": Neighbouring(
        lambda d: d.plan.count(rho=0.5), (SOME, [*SOME, *unit(9, 1.0, 2.0, 3.0, 4.0)]), {"max_rows": 3}
    ),
    "sum": Neighbouring(
        lambda d: d.plan.sum("x", bounds=(-2, 5), rho=0.5), (SOME, [*SOME, *unit(9, 8.0, 5.0)]), {"max_rows": 2}
    ),
    "mean": Neighbouring(lambda d: d.plan.mean("x", bounds=(0, 10), rho=0.5), ([], unit(9, 10.0))),
    "variance": Neighbouring(
        lambda d: d.plan.variance("x", bounds=(0, 10), per_unit="mean", rho=0.5), ([], unit(9, 10.0))
    ),
    "share": Neighbouring(lambda d: d.plan.share(col("ok"), per_unit="mean", rho=0.5), (SOME, [*SOME, *unit(9, 1.0)])),
    "histogram": Neighbouring(
        lambda d: d.plan.histogram("x", [0, 2, 5, 10], rho=0.5), (SOME, [*SOME, *unit(9, 1.0, 1.0)]), {"max_rows": 2}
    ),
    "groups": Neighbouring(
        lambda d: grouped(d).plan.mean("x", bounds=(0, 10), rho=0.5), (SOME, [*SOME, *unit(9, 10.0, groups=KEYS)]), TWO
    ),
    "swap: mean": Neighbouring(
        lambda d: d.plan.mean("x", bounds=(0, 10), rho=0.5),
        ([*SOME, *unit(9, 0.0)], [*SOME, *unit(9, 10.0)]),
        swap(4),
    ),
    "swap: groups, one in common": Neighbouring(
        lambda d: grouped(d).plan.mean("x", bounds=(0, 10), rho=0.5),
        ([*SOME, *unit(9, 0.0, groups=[0, 1])], [*SOME, *unit(9, 10.0, groups=[1, 2])]),
        swap(4, **TWO),
    ),
    "parts": Neighbouring(
        lambda d: d.plan.select(
            n=ask.count_units(), m=ask.mean("x", (0, 10)), t=ask.sum("x", (0, 5), per_unit="sum"), rho=0.5
        ),
        (SOME, [*SOME, *unit(9, 10.0)]),
    ),
    "median": Neighbouring(
        lambda d: d.plan.median("i", bounds=(0, 40), rho=0.125, level=None),
        RANKS,
        ONE,
        caught="long",
    ),
}

PAIRS = {f"epsilon: {name}": pair for name, pair in EPSILON.items()} | {f"rho: {n}": pair for n, pair in RHO.items()}


def tell_apart(pair: Neighbouring, times: int, pure: bool) -> None:
    found, epsilon = audited(pair, pair.draws * times, wrong=False)
    assert found.passed, found
    if pure:
        assert found.epsilon_lower >= pair.tight * epsilon  # so the pair is a hard one
    if pair.caught == "always" or (pair.caught == "long" and times > 1):
        wrong, _ = audited(pair, pair.draws * times, wrong=True)
        assert not wrong.passed, wrong


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", PAIRS)
def test_no_plan_tells_neighbours_apart_and_one_with_half_the_noise_does(name: str) -> None:
    tell_apart(PAIRS[name], 1, name.startswith("epsilon"))


@pytest.mark.long
@pytest.mark.parametrize("name", PAIRS)
def test_no_plan_tells_neighbours_apart_in_many_draws(name: str) -> None:
    tell_apart(PAIRS[name], 10, name.startswith("epsilon"))


def law_audited(
    first: Any, second: Any, draw: Callable[[Any, int], Any], epsilon: float, delta: float = 0.0, draws: int = 20_000
) -> Any:
    """The audit of numbers drawn for two tables."""
    tables = (first, second)
    return audit_sampler(
        lambda q, size: draw(tables[int(q)], size),
        (0.0, 1.0),
        draws=draws,
        confidence=1.0 - ALPHA,
        epsilon=epsilon,
        delta=delta,
        checks=("law",),
        batched=True,
    )


@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
def test_suggested_bounds_do_not_tell_neighbours_apart(neighbours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(suggestions, "_recorded", lambda *args: (seen.append(args) or np.zeros(98), ""))
    # A unit of many rows of which one counts; in an otherwise empty bin.
    tables = [SOME, [*SOME, *unit(9, -1000.0, -1000.0)]]
    if neighbours == "substitute":
        tables = [[*SOME, *unit(9, 1e9, 1e9)], tables[1]]
    for rows in tables:
        opened(rows, neighbours=neighbours).suggest_bounds("x", epsilon=1.0)
    inside = [inspect.getclosurevars(args[3]).nonlocals for args in seen]
    bars, drawn, caps = (inside[0][name] for name in ("bars", "drawn", "request"))
    numbers = [found["request"].run(found["data"].source).numbers for found in inside]
    assert ib.Budget(epsilon=1.0).charge(seen[0][2]) == (10**9,)
    exact = [np.array(bars.exact(caps.caps, *(rows[0] for rows in n.values()))) for n in numbers]
    assert np.abs(exact[0] - exact[1]).sum() == (2 if neighbours == "substitute" else 1)
    for wrong in (False, True):
        how = replace(drawn, mechanism=halved(drawn.mechanism)) if wrong else drawn

        def draw(mine: Numbers, size: int, how: Drawn = how) -> Any:
            y = np.array(drawn_often(bars, how, mine, caps.caps, size))
            return np.round(np.sum(closer(how.mechanism, y, *exact), axis=1), 6)

        found = law_audited(*numbers, draw, 1.0)
        assert found.passed != wrong, found


@pytest.mark.parametrize("by", [False, True])
def test_suggested_caps_do_not_tell_neighbours_apart(by: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(suggestions, "_recorded", lambda *args: (seen.append(args) or [1] * (2 + by), ""))
    both = [r for u in range(2) for r in unit(u, *[1.0] * 12, groups=range(12 if by else 1))]
    for rows in (both, [*both, *unit(9, *[1.0] * 30, groups=range(30 if by else 1))]):
        data = opened(rows).group_by("g", max_groups=5) if by else opened(rows)
        assert set(data.suggest_caps(epsilon=1.0, share=0.5).values.values()) == {None}  # of one unit
    inside = [inspect.getclosurevars(args[3]).nonlocals for args in seen]
    assert ib.Budget(epsilon=1.0).charge(seen[0][2]) == (10**9,)
    counts: list[dict[str, tuple[int, ...]]] = []
    for found in inside:
        compiler = suggestions.Compiler(found["request"], found["data"].source, b"salt")
        counts.append({k: tuple(v) for k, v in compiler.multiplicities(suggestions._CAPS).items()})
    for name in ("max_rows", "max_groups") if by else ("max_rows",):
        assert sum(np.abs(np.array(counts[1][name]) - np.array(counts[0][name]))) == 1
    for wrong in (False,) if by else (False, True):
        picker = halved(inside[0]["picker"]) if wrong else inside[0]["picker"]
        logs = [{k: np.log(np.array(weights_of(picker, v), dtype=float)) for k, v in c.items()} for c in counts]

        def draw(mine: dict[str, tuple[int, ...]], size: int, picker: Any = picker, logs: Any = logs) -> Any:
            total, fast = np.zeros(size), Fast(picker)
            for name, numbers in mine.items():
                total += (logs[0][name] - logs[1][name])[[fast.pick(numbers) for _ in range(size)]]
            return np.round(total, 6)

        # A tenth is for how many units there are. So many draws, so that twice too much is never missed.
        audit = law_audited(*counts, draw, 0.9, draws=100_000 if wrong else 20_000)
        assert audit.passed != wrong, audit
        assert audit.epsilon_lower > 0.1
    count = inside[0]["count"]
    assert count.event() == seen[0][2].events[0]
    assert ib.Budget(epsilon=1.0).charge(count.event()) == (10**8,)
    assert abs(sum(counts[1]["max_rows"]) - sum(counts[0]["max_rows"])) <= count.sensitivity


# ---------------------------------------------------------------- groups of the data


@pytest.mark.parametrize("substitute", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 7])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (5.0, 0.02), (1e-3, 1e-4)])
def test_groups_are_found_within_epsilon_and_delta(epsilon: float, delta: float, groups: int, substitute: bool) -> None:
    """Exactly, for every number of units: whether a group passes tells no more than its share of both."""
    neighbours = Neighbours(substitute, True, groups)
    found = choose_keys(epsilon, delta, neighbours)
    draws = groups * (1 + substitute)
    each, share = epsilon / draws, delta / draws
    law = found.mechanism

    def passes(units: int) -> float:
        return float(law.at(units).sf(found.threshold - 0.5)) if units else 0.0

    assert passes(1) == 0.0
    assert passes(found.at_least - 1) == 0.0 < passes(found.at_least)
    assert passes(found.sure) == 1.0 > passes(found.sure - 1)
    steps = sorted(
        {*range(12), *range(max(0, found.sure - 12), found.sure + 3), *range(0, found.sure, 1 + found.sure // 200)}
    )
    room = 1.0 + 1e-9
    for units in steps:
        a, b = passes(units), passes(units + 1)
        for p, q in ((a, b), (b, a), (1.0 - a, 1.0 - b), (1.0 - b, 1.0 - a)):
            assert p <= math.exp(each) * q * room + share * room + 1e-15
    guarantee = found.event.guarantee()
    assert guarantee.delta(epsilon) <= delta
    # The same with half the scale is caught.
    wrong = halved(law)
    pairs = [
        (float(wrong.at(k).sf(found.threshold - 0.5)), float(wrong.at(k + 1).sf(found.threshold - 0.5)))
        for k in steps[1:]
    ]
    assert any(
        b > math.exp(each) * a + share * 1.01 or 1 - a > math.exp(each) * (1 - b) + share * 1.01 for a, b in pairs
    )


def test_a_group_of_one_unit_never_passes() -> None:
    found = choose_keys(0.5, 1e-3, Neighbours(False, True, 1))
    assert found.passing([1] * 300_000) == []
    assert found.passing([found.sure] * 1000) == list(range(1000))
    assert found.passing([]) == []


def test_found_groups_and_their_answers_do_not_tell_neighbours_apart() -> None:
    """Groups near the threshold, with a unit more: whether they are found, and then their counts."""
    data = opened([]).group_by("g", max_groups=1)
    plan = data.plan.count_units(epsilon=2.0, delta=0.02)
    assert plan.found is not None
    ((part, drawn),) = plan.chosen.values()
    units = (plan.found.threshold - 2, plan.found.threshold - 1)
    name = next(iter(part.measures()))
    for wrong in (False, True):
        found = replace(plan.found, mechanism=halved(plan.found.mechanism)) if wrong else plan.found
        how = replace(drawn, mechanism=halved(drawn.mechanism)) if wrong else drawn
        chance = [float(found.mechanism.at(n).sf(plan.found.threshold - 0.5)) for n in units]

        def draw(n: int, size: int, found: Found = found, how: Drawn = how, chance: Any = chance) -> Any:
            passed = np.zeros(size, dtype=bool)
            passed[found.passing([n] * size)] = True
            y = np.array(drawn_often(part, how, {name: ((n,),)}, plan._request.caps, size))
            seen = math.log(chance[0] / chance[1]) + closer(how.mechanism, y, *units)
            return np.round(np.where(passed, seen, math.log((1 - chance[0]) / (1 - chance[1]))), 6)

        audit = law_audited(*units, draw, 2.0, 0.02)
        assert audit.passed != wrong, audit


def test_groups_of_few_units_are_not_told_end_to_end() -> None:
    rows = [r for g in range(300) for u in range(1 + (g % 100 == 0) * 60) for r in unit(1000 * g + u, 1.0, groups=[g])]
    data = opened(rows, budget=ib.Budget(epsilon=1e3, delta=0.5)).group_by("g", max_groups=1)
    for _ in range(3):
        assert data.count_units(epsilon=1.0, delta=1e-4).keys == ((0,), (100,), (200,))


# ---------------------------------------------------------------- quantiles: their exact law


LEVELS = tuple(Fraction(q) for q in ("0", "1", "1/2", "1/4", "9/10", "0.37", "99/100", "1/1000", "0.9999"))
KINDS = {
    "add-remove": Neighbours(False, False, 1),
    "add-remove, groups": Neighbours(False, True, 3),
    "substitute": Neighbours(True, False, 1),
    "substitute, groups": Neighbours(True, True, 3),
}


def ways_to_be(rows: int, cells: int) -> Any:
    """Where the values of a unit lie."""
    return st.lists(st.integers(0, cells - 1), max_size=rows)


@st.composite
def picks(draw: Any) -> tuple[Fraction, int, list[int], list[int], list[int], float]:
    level, rows, cells = draw(st.sampled_from(LEVELS)), draw(st.integers(1, 3)), draw(st.integers(1, 6))
    counts = draw(st.lists(st.one_of(st.integers(0, 5), st.integers(0, 2**40)), min_size=cells, max_size=cells))
    shift = draw(st.one_of(st.sampled_from([0.0, -1.0, 2.5, 17.3, -17.3, 1e6, -1e6]), st.floats(-60, 60)))
    return level, rows, counts, draw(ways_to_be(rows, cells)), draw(ways_to_be(rows, cells)), shift


def with_unit(counts: list[int], values: list[int]) -> list[int]:
    return [n + values.count(cell) for cell, n in enumerate(counts)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("currency", ["epsilon", "rho"])
@pytest.mark.parametrize("units", [3_000, 2_000_000, 10**8, 3 * 10**9])
@settings(max_examples=30)
@given(case=picks())
def test_a_pick_costs_no_more_than_its_share(kind: str, currency: str, units: int, case: Any) -> None:
    """All chances of all cells, for any two neighbouring groups: pure loss, or Renyi divergences."""
    level, rows, counts, mine, other, shift = case
    neighbours = KINDS[kind]
    part = Pick("p", Grid("x", 0, 1, len(counts)), (level,), None)
    spend = Spend(currency, units if currency == "epsilon" else units * 1000)
    # A small table of weights: quickly made, and steps are coarse more often.
    with patched(_STEPS=1500):
        picker, event = part._picker(level, spend, Caps(rows, 2**33), neighbours)
        base, added, swapped = (
            weights_of(picker, with_unit(counts, values), shift) for values in ([], mine, other)
        )  # fmt: skip
    costs = dict(neighbours.costs(spend))
    pairs = [(base, added, costs[False])] if False in costs else []
    pairs += [(added, swapped, costs[True])] if True in costs else []
    for first, second, cost in pairs:
        for a, b in ((first, second), (second, first)):
            worse = [mp.mpf(x) * sum(b) / (mp.mpf(y) * sum(a)) for x, y in zip(a, b, strict=True)]
            if currency == "epsilon":
                assert max(worse) <= mp.exp(least(cost.value))
            else:
                for alpha in (1.01, 2, 8, 64):
                    moment = sum(
                        mp.mpf(x) / sum(a) * ratio ** (mp.mpf(alpha) - 1) for x, ratio in zip(a, worse, strict=True)
                    )
                    assert mp.log(moment) / (mp.mpf(alpha) - 1) <= alpha * least(cost.value) * (1 + mp.mpf(10) ** -30)
    charged = ib.Budget(**{currency: 1e5}).charge(event)[0]
    assert charged <= spend.units


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("epsilon", [1e-5, 0.003, 0.1, 2.0])
def test_a_pick_with_the_usual_table_costs_no_more_than_it_says(level: Fraction, epsilon: float) -> None:
    """The worst groups: everything in one cell, and a unit that joins it, or moves across it."""
    for before, after, reach in [
        ((0, 2, 0, 0), (0, 2, 0, 1), max(level, 1 - level)),
        ((0, 2, 0, 0), (2, 2, 0, 0), 2 * max(level, 1 - level)),
        ((2, 7, 0, 0), (0, 7, 0, 2), Fraction(2)),
        ((1, 10**6, 0, 0), (0, 10**6, 0, 1), Fraction(1)),
    ]:
        picker = Picker(level, epsilon, Fraction(reach), 4)
        for shift in (0.0, -3.0, 3.0):
            a, b = (weights_of(picker, counts, shift) for counts in (before, after))
            for x, y in zip(a, b, strict=True):
                ratio = mp.mpf(x) * sum(b) / (mp.mpf(y) * sum(a))
                assert -least(epsilon) <= mp.log(ratio) <= least(epsilon)


def test_the_check_of_picks_finds_a_reach_that_is_too_small() -> None:
    right = Picker(Fraction(1, 2), 1.0, Fraction(1), 6)
    wrong = replace(right, reach=Fraction(1, 2), step=0)
    for picker, holds in ((right, True), (wrong, False)):
        a, b = (weights_of(picker, counts) for counts in ((0, 4, 0, 0, 0, 0), (0, 4, 0, 0, 0, 2)))
        worst = max(abs(mp.log(mp.mpf(x) * sum(b) / (mp.mpf(y) * sum(a)))) for x, y in zip(a, b, strict=True))
        assert (worst <= 1) == holds
        assert worst > mp.mpf("0.55")


def test_a_quantile_of_which_steps_are_coarse_costs_a_swap_what_is_charged() -> None:
    """Where a step is no part of both reaches, a swap takes one step more than in proportion: it must be charged."""
    part = Pick("p", Grid("x", 0, 1, 2), (Fraction(99, 100),), None)
    for units in (100_000, 500_000, 3_000_000, 10**7):
        for neighbours in KINDS.values():
            spend = Spend("epsilon", units)
            picker, event = part._picker(Fraction(99, 100), spend, Caps(1, 2**33), neighbours)
            for swaps, cost in neighbours.costs(spend):
                reach = Fraction(1) if swaps else Fraction(99, 100)
                assert 2.0 * picker._rate * picker.moves(reach) <= cost.value * (1.0 + 1e-12)
            assert ib.Budget(epsilon=1.0).charge(event)[0] <= units


def test_cells_are_drawn_in_proportion_to_their_weights() -> None:
    for weights in ([1], [3, 1], [2, 0, 5], [1] * 7, [10, 1, 1]):
        found = [0] * len(weights)
        for number in range(sum(weights)):
            with patched(_below=lambda _, number=number: number):
                found[picking._draw(weights)] += 1
        assert found == weights


@pytest.mark.parametrize("total", [1, 2, 3, 5, 64, 100, 2**64 - 1, 2**64, 2**64 + 3, 2**130 + 1])
def test_whole_numbers_below_a_total_are_equally_likely(total: int) -> None:
    """Leading bits of words that are fair are fair; what is too large is drawn again."""
    bits = total.bit_length()
    words = -(-bits // 64)
    for number in [*range(min(2**bits, 300)), total - 1, total, 2**bits - 1]:
        whole = number << (64 * words - bits)
        stream = [whole >> 64 * (words - 1 - i) & (2**64 - 1) for i in range(words)] + [0] * words
        fed = iter(stream)
        with patched(pool=Stream(fed)):
            assert picking._below(total) == (number if number < total else 0)
        assert len(list(fed)) == (words if number < total else 0)


@dataclass
class Stream:
    words: Iterator[int]

    def word(self) -> int:
        return next(self.words)


# ---------------------------------------------------------------- what is charged


MANY: dict[str, Callable[[Dataset, dict[str, float]], Plan]] = {
    "count": lambda d, goal: d.plan.count_units(**goal),
    "count, truncated": lambda d, goal: d.plan.count_units(
        edges="clamp" if "rho" in goal or (d.by and d.neighbours == "substitute") else "truncate", **goal
    ),
    "sum": lambda d, goal: d.plan.sum("x", bounds=(-2, 5), **goal),
    "mean": lambda d, goal: d.plan.mean("x", bounds=(0, 5), **goal),
    "variance": lambda d, goal: d.plan.variance("x", bounds=(0, 5), **goal),
    "share": lambda d, goal: d.plan.share(col("ok"), **goal),
    "histogram": lambda d, goal: d.plan.histogram("x", [0, 1, 5], **goal),
    "quantiles": lambda d, goal: d.plan.quantiles("x", [0.0, 0.3, 0.99], bounds=(0, 5), **goal),
    "max": lambda d, goal: d.plan.max("x", bounds=(0, 5), **goal),
    "select": lambda d, goal: d.plan.select(
        n=ask.count(weight=3.0),
        m=ask.mean("x", (0, 5), weight=0.7),
        v=ask.variance("x", (0, 4)),
        s=ask.sum("i", (0, 7)),
        q=ask.median("x", (0, 5)),
        h=ask.histogram("x", [0, 1, 5]),
        **goal,
    ),
}
WHERE: dict[str, tuple[dict[str, Any], Callable[[Dataset], Dataset]]] = {
    "whole": ({"max_rows": 2}, lambda d: d),
    "groups": ({"max_rows": 1}, lambda d: d.group_by("g", keys=KEYS, max_groups=3)),
    "substitute": ({"max_rows": 2, "neighbours": "substitute"}, lambda d: d),
    "substitute, groups": (
        {"max_rows": 3, "neighbours": "substitute"},
        lambda d: d.group_by("g", keys=KEYS, max_groups=2),
    ),
    "rows": ({"unit": None, "neighbours": "substitute"}, lambda d: d.group_by("g", keys=KEYS)),
}


@pytest.mark.thinned(7)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("what", MANY)
@pytest.mark.parametrize("goal", [{"epsilon": 1.0}, {"epsilon": 0.1}, {"rho": 0.3}])
def test_a_plan_costs_its_goal_and_a_budget_of_just_that_has_room(
    what: str, where: str, goal: dict[str, float]
) -> None:
    options, view = WHERE[where]
    plan = MANY[what](view(opened(SOME, **options | {"budget": ib.Budget(**goal)})), goal)
    price = plan.price()
    assert price.fits
    assert price.charge is not None
    ((name, amount),) = goal.items()
    most = round(amount * (10**9 if name == "epsilon" else 10**12))
    assert most * (1 - 1e-4) <= price.charge[0] <= most
    exact = float(price.guarantee.epsilon() if name == "epsilon" else price.guarantee.zcdp())
    assert exact <= amount * (1 + 1e-12)


@pytest.mark.parametrize("goal", [{"epsilon": 1.0, "delta": 1e-6}, {"epsilon": 0.3, "delta": 1e-9}])
@pytest.mark.parametrize("what", ["count", "mean", "quantiles", pytest.param("select", marks=pytest.mark.long)])
def test_a_plan_with_delta_and_groups_of_the_data_stays_within_both(what: str, goal: dict[str, float]) -> None:
    data = opened(SOME, budget=ib.Budget(**goal), max_rows=1)
    for view in (data.group_by("g", max_groups=3), data.group_by("g", keys=KEYS, max_groups=3)):
        price = MANY[what](view, goal).price()
        assert price.fits
        assert price.guarantee.delta(goal["epsilon"]) <= goal["delta"]


def test_a_budget_of_just_the_goal_pays_once() -> None:
    data = opened(SOME, budget=ib.Budget(epsilon=0.3), max_rows=2)
    MANY["select"](data, {"epsilon": 0.3}).run()
    with pytest.raises(ib.errors.BudgetExceeded):
        data.count_units(epsilon=0.001)


def worst(groups: int, added: float, swapped: float) -> float:
    """The largest total, over all groups of one unit and all of another in its place."""
    some = [set(chosen) for n in range(groups + 1) for chosen in itertools.combinations(range(2 * groups), n)]
    return max(len(a & b) * swapped + len(a ^ b) * added for a in some for b in some)


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("currency", ["epsilon", "rho"])
def test_what_neighbours_cost_is_the_worst_of_all_pairs_of_units(groups: int, currency: str) -> None:
    """Against brute force: groups of one unit, groups of the other, and what each of them moves."""
    spend = Spend(currency, 10**9)
    asked = {
        "sum": (opened([], max_rows=1).plan.sum("x", bounds=(-2, 5), epsilon=1.0), 5.0, 7.0),
        "count": (opened([], max_rows=3).plan.count(epsilon=1.0), 3.0, 3.0),
        "mean": (opened([], max_rows=2).plan.mean("x", bounds=(0, 1), epsilon=1.0), 2.0, 4.0),
    }
    for name, (plan, added, swapped) in asked.items():
        ((part, _),) = plan.chosen.values()
        if currency == "rho" and name == "mean":
            swapped = 2.0 * math.sqrt(2.0)
        for substitute, grouped_ in itertools.product([False, True], [False, True]):
            if groups > 1 and not grouped_:
                continue
            drawn = part.choose(spend, plan._request.caps, Neighbours(substitute, grouped_, groups))
            raw = drawn.mechanism.raw if isinstance(drawn.mechanism, Denoised) else drawn.mechanism
            power = 1 if currency == "epsilon" else 2
            costs = [(limit / raw.scale) ** power / power for limit in (added, swapped)]
            brute = costs[0] * groups if not substitute else worst(groups, *costs) if grouped_ else costs[1]
            guarantee = drawn.event.guarantee()
            said = float(guarantee.epsilon() if currency == "epsilon" else guarantee.zcdp())
            assert brute <= said * (1 + 1e-9)
            assert said <= brute * (1 + 1e-4)  # nor more than that: rounding
            assert said <= spend.value * (1 + 1e-9)


def test_too_many_groups_are_refused_where_units_swap() -> None:
    with pytest.raises(ParameterError, match="at most 64 with substitution"):
        Neighbours(True, True, 65)


# ---------------------------------------------------------------- what one unit moves


BOUNDS = (0, 10)
HERE = (None, -99.0, 0.0, 2.6, 5.0, 10.0, 99.0)  # values of a unit: missing, beyond the bounds, at them, between

#: Which value of a unit counts: so many rows, or what is taken of them.
VALUE: dict[str, dict[str, Any]] = {
    "a row": {"max_rows": 1},
    "two rows": {"max_rows": 2},
    **{how: {"per_unit": how} for how in ("mean", "sum", "min", "max")},
    **{how: {"per_unit": how, "order": col("i") * -1} for how in ("first", "last")},
}
MOVED: dict[str, Callable[[Any, dict[str, float], dict[str, Any]], Plan]] = {
    "count": lambda q, goal, said: q.count(**goal),
    "count of units": lambda q, goal, said: q.count_units(**goal),
    "sum": lambda q, goal, said: q.sum("x", bounds=(-7, 10), **said, **goal),
    "sum of whole numbers": lambda q, goal, said: q.sum("i", bounds=(-12, 10), **said, **goal),
    "mean": lambda q, goal, said: q.mean("x", bounds=BOUNDS, **said, **goal),
    "variance": lambda q, goal, said: q.variance("x", bounds=BOUNDS, **said, **goal),
    "with a count": lambda q, goal, said: q.select(
        n=ask.count_units() if said else ask.count(), v=ask.variance("x", BOUNDS, **said), **goal
    ),
    "share": lambda q, goal, said: q.share(col("x") > 2, **({"per_unit": "mean"} if said else {}), **goal),
    "share of units": lambda q, goal, said: q.share(col("x") > 2, of="units", **goal),
    "histogram": lambda q, goal, said: q.histogram("x", [0, 3, 5, 10], **said, **goal),
}


def exact_of(plan: Plan, rows: list[Row]) -> Any:
    """The exact numbers that noise is added to, of a table without groups; by the reference of the engine."""
    _, _, numbers = reference.answer(rows, plan.data.source.schema, plan._request, b"salt")
    ((part, _),) = plan.chosen.values()
    row = [numbers[name][0] for name in part.measures()]
    caps = plan._request.caps
    if isinstance(part, Cell):
        return np.clip([part.value(caps, *row)], part.domain.lower, part.domain.upper)
    return np.maximum(part.exact(caps, *row), 0.0)  # type: ignore[attr-defined]


def limit_of(plan: Plan) -> float:
    ((_, drawn),) = plan.chosen.values()
    mechanism = drawn.mechanism.raw if isinstance(drawn.mechanism, Denoised) else drawn.mechanism
    return float(getattr(mechanism.sensitivity, "value", mechanism.sensitivity))


@pytest.mark.parametrize(
    ("what", "value"), [(what, value) for what in MOVED for value in VALUE if what != "count" or "row" in value]
)
@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
def test_no_unit_moves_the_exact_numbers_by_more_than_the_noise_is_made_for(
    what: str, neighbours: str, value: str
) -> None:
    """Every table of some units and every other unit: sums of absolute changes, and of squares, against the limits."""
    said = dict(VALUE[value])
    rows = said.pop("max_rows", None)
    data = opened([], neighbours=neighbours, max_rows=rows)
    for goal in ({"epsilon": 1.0}, {"rho": 0.5}):
        plan = MOVED[what](data.plan, goal, said)
        limit, most = limit_of(plan), 0.0
        for base in ([], SOME):
            there = [
                exact_of(plan, [*base, *unit(9, *values)])
                for n in range((rows or 2) + 1)
                for values in itertools.combinations_with_replacement(HERE, n)
            ]
            pairs = itertools.combinations(there, 2) if neighbours == "substitute" else ((there[0], x) for x in there)
            moved = np.array([first - second for first, second in pairs])
            sizes = np.abs(moved).sum(axis=1) if "epsilon" in goal else np.sqrt((moved**2).sum(axis=1))
            most = max(most, float(sizes.max()))
        assert most <= limit
        assert most >= limit * (1.0 - 1e-4)  # nor is the noise made for more


@pytest.mark.parametrize("what", ["mean", "sum", "variance"])
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("per_unit", ["mean", "sum"])
def test_an_answer_of_a_known_number_of_values_moves_by_no_more_than_its_limit(
    what: str, size: int, per_unit: str
) -> None:
    for bounds in (BOUNDS, (-0.1, 0.3), (2.0**49, 2.0**49 + 1) if per_unit == "mean" else (4e4, 4e4 + 1)):
        low, high = bounds
        data = opened([], neighbours="substitute", size=size)
        plan = getattr(data.plan, what)(col("x").fill_null(low), bounds=bounds, per_unit=per_unit, epsilon=1.0)
        limit, most = limit_of(plan), 0.0
        here = [low, high, low + 0.26 * (high - low), None]
        for others in itertools.product(here, repeat=size - 1):
            base = [r for u, x in enumerate(others) for r in unit(u, x)]
            there = [float(exact_of(plan, [*base, *unit(9, x)])[0]) for x in here]
            most = max(most, max(there) - min(there))
        assert most <= limit
        if what != "variance" or size > 1:
            assert most >= limit * (1.0 - 1e-3) - 2.0 * math.ulp(size * high)


@pytest.mark.parametrize("low", [0.0, -1000.0, 1.7e9, 2.0**49, -1e15])
@pytest.mark.parametrize("width", [1.0, 3600.0])
@pytest.mark.parametrize("size", [2, 1000, 10**8])
def test_means_far_from_zero_are_rounded_within_their_limit(low: float, width: float, size: int) -> None:
    data = opened([], neighbours="substitute", size=size)
    plan = data.plan.mean(col("x").fill_null(0), bounds=(low, low + width), epsilon=1.0)
    ((part, _),) = plan.chosen.values()
    caps = plan._request.caps
    fixed = next(iter(part.measures().values())).fixed(caps)  # type: ignore[attr-defined]
    random = np.random.default_rng(7)
    most = 0.0
    for share in random.random(300):
        total = size * fixed.lowest + math.floor(share * (size - 1) * (fixed.highest - fixed.lowest))
        ends = [part.value(caps, (size, total + x)) for x in (0, fixed.highest - fixed.lowest)]  # type: ignore[attr-defined]
        most = max(most, abs(ends[1] - ends[0]))
    assert most <= limit_of(plan)


@st.composite
def large_groups(draw: Any) -> Any:
    """A group with nearly as many values as there may be, and two units: (fixed-point number or None, how often)."""
    rows = draw(st.sampled_from([None, 1, 3, 2**10, 2**20]))
    caps = Caps(rows, 2**33)
    bounds = draw(st.sampled_from([(0, 1), (-0.1, 0.3), (0, 1e-30), (-7, 1e20), (1e6, 1e6 + 1)]))
    per = PerUnit("sum" if rows is None and bounds[0] < 1e6 and draw(st.booleans()) else "mean")
    part = Values("p", col("x"), *bounds, draw(st.sampled_from([1, 2])), draw(st.sampled_from([None, Rows()])), per)
    fixed = part._sum().fixed(caps)
    ends = st.sampled_from([None, fixed.lowest, fixed.highest, 0])
    values = st.one_of(ends, st.integers(fixed.lowest, fixed.highest))
    base = [(draw(values), draw(st.integers(0, 2**31 * caps.values))) for _ in range(3)]
    units = []
    for _ in range(2):
        left, unit = caps.values, []
        for _ in range(3):
            unit.append((draw(values), draw(st.integers(0, left))))
            left -= unit[-1][1]
        units.append(unit)
    return caps, part, base, units


@settings(max_examples=200)
@given(case=large_groups())
def test_rounding_of_large_groups_stays_within_the_slack(case: Any) -> None:
    """Squares are rounded by the engine, cells to float64: with that, a unit still moves them by no more."""
    caps, part, base, units = case
    shift = Squares(part.column, part.lower, part.upper, per=part.per).shift(caps)

    def cells(rows: list[tuple[int | None, int]]) -> Any:
        values = [(x, m) for x, m in rows if x is not None]
        count, total = sum(m for _, m in values), sum(x * m for x, m in values)
        square = sum(math.floor(float(x) * float(x) * shift + 0.5) * m for x, m in values)
        row: list[tuple[int, ...]] = [(count, total)] + [(count, square)] * (part.degree == 2)
        row += [(sum(m for _, m in rows),)] * (part.rest is not None)
        return np.maximum(part.exact(caps, *row), 0.0)

    size = rounded_up(caps.values * part.slack(caps))
    none, first, second = (cells(base + unit) for unit in ([], *units))
    assert np.abs(first - none).sum() <= size
    assert np.abs(first - second).sum() <= 2.0 * size
    assert np.sqrt(((first - second) ** 2).sum()) <= math.nextafter(2**0.5, 2) * size


# ---------------------------------------------------------------- answers in range


def everything(**goal: float) -> dict[str, Any]:
    return {
        "n": ask.count_units(),
        "r": ask.count(),
        "s": ask.sum("x", (-1, 2)),
        "t": ask.sum("i", (-3, -1)),
        "m": ask.mean("x", (-0.1, 0.3)),
        "v": ask.variance("x", (-0.1, 0.3)),
        "w": ask.variance("x", (0, 3)),
        "d": ask.std("x", (-0.1, 0.3)),
        "p": ask.share(col("x") > 0.1),
        "o": ask.share(col("ok"), of="units"),
        "q": ask.quantiles("x", [0.1, 0.5, 0.999], (-0.1, 0.3), cells=8),
        "k": ask.median("i", (0, 6), level=None),
        "a": ask.min("x", (-0.1, 0.3), cells=8),
        "b": ask.max("x", (-0.1, 0.3), cells=8),
        "h": ask.histogram("x", [-0.1, 0.1, 0.3]),
        **goal,
    }


def tiny(groups: int) -> list[Row]:
    """Groups of 0, 1 and 2 units, of values at the walls and between."""
    ends = (-0.1, 0.3, 0.0, 5.0)
    return [
        r
        for g in range(groups)
        for u in range(g % 3)
        for r in unit(2 * g + u, *[ends[(g + u) % 4]] * (1 + g % 2), groups=[g], ok=g % 2 == 0)
    ]


# Where an answer lies in its own interval, whatever its level. Means, shares and variances, and what is denoised, are
# drawn towards the middle where the noise is larger than the group: they need not.
INSIDE = ("n", "r", "s", "t", "q", "a", "b", "h")


def in_range(answer: Answer, name: str, levels: Sequence[float]) -> None:
    low, high = answer.valid
    assert low <= answer.value <= high
    if name[0] in "nrthk":
        assert isinstance(answer.value, int)
    for level in levels:
        lower, upper = answer.interval(level)
        assert low <= lower <= upper <= high
        if name[0] in INSIDE and not isinstance(getattr(answer.source, "mechanism", None), Denoised):
            assert lower <= answer.value <= upper


SETTINGS: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
    "epsilon 0.2": ({}, {"epsilon": 0.2}),
    "epsilon 300": ({}, {"epsilon": 300.0}),
    "rho": ({}, {"rho": 0.01}),
    "substitute, epsilon 1": ({"neighbours": "substitute", "size": 90}, {"epsilon": 1.0}),
}


def released(name: str, groups: int, often: int) -> Iterator[tuple[str, Answer]]:
    """Every question of every group, drawn so many times."""
    options, goal = SETTINGS[name]
    if "size" in options:
        options = options | {"size": len({r["u"] for r in tiny(groups)})}
    data = opened(tiny(groups), max_rows=2, budget=ib.Budget(**dict.fromkeys(goal, 1e4)), **options)
    plan = data.group_by("g", keys=list(range(groups)), max_groups=1).plan.select(**everything(**goal))
    tally = plan._request.run(data.source)
    _, reads = plan._parts
    for _ in range(often):
        raw = {n: part.draw(how, tally.numbers, plan._request.caps) for n, (part, how) in plan.chosen.items()}
        for ask_name, question in plan.asks.items():
            part, how = plan.chosen[reads[ask_name]]
            for one in raw[reads[ask_name]]:
                for suffix, answer in question.read(part, how, one, plan.setting):
                    yield ask_name + suffix, answer


@pytest.mark.parametrize("name", SETTINGS)
def test_answers_about_tiny_groups_are_in_range(name: str) -> None:
    seen = 0
    for i, (column, answer) in enumerate(released(name, 90, 2)):
        in_range(answer, column, (0.5, 0.95) if i % 41 == 0 else ())
        seen += 1
    assert seen == 90 * 2 * 18


@pytest.mark.long
@pytest.mark.parametrize("name", SETTINGS)
def test_a_hundred_thousand_answers_of_each_kind_about_tiny_groups_are_in_range(name: str) -> None:
    seen = 0
    for i, (column, answer) in enumerate(released(name, 300, 334)):
        in_range(answer, column, (0.5, 0.95, 0.01, 0.999) if i % 997 == 0 else ())
        seen += 1
    assert seen == 300 * 334 * 18


def test_a_plan_that_is_run_gives_answers_in_range_and_quantiles_in_order() -> None:
    data = opened(tiny(60), max_rows=2).group_by("g", keys=list(range(60)), max_groups=1)
    results = data.select(**everything(epsilon=1.0))
    for name, column in results.columns.items():
        for answer in column:
            in_range(answer, name, ())
    for low, middle, high in zip(results["q 0.1"], results["q 0.5"], results["q 0.999"], strict=True):
        assert low.value <= middle.value <= high.value


def test_answers_about_dates_stay_inside_the_calendar() -> None:
    table = pa.table({"u": [1, 2], "t": pa.array([dt.datetime(2024, 1, 1), dt.datetime.max], pa.timestamp("us"))})
    data = ib.dataset(table, unit="u", budget=ib.Budget(epsilon=1e6), max_rows=1)
    bounds = (dt.datetime(1, 1, 1, 0, 0, 0, 1), dt.datetime.max)
    for _ in range(10):
        for what in ("mean", "median", "max"):
            answer = getattr(data, what)("t", bounds=bounds, epsilon=0.5)
            low, high = answer.interval(0.9)
            assert bounds[0] <= low <= high <= bounds[1]
            assert bounds[0] <= answer.value <= bounds[1]


def test_a_count_between_whole_numbers_has_an_interval_with_one_in_it() -> None:
    source = FromCells(Noise("laplace", 0.02, 2.0**-40), (3.0, 0.44, 0.0), 1, "count")
    assert source.interval(0.5) == (3, 3)
    assert source.value() == 3


# ---------------------------------------------------------------- coverage


GOALS = pytest.mark.parametrize("goal", [{"epsilon": 1.0}, {"rho": 0.5}], ids=["laplace", "gaussian"])


def below(hits: int, n: int, level: float) -> bool:
    """Whether so few hits are certainly (but for 1e-8) too few for a coverage of ``level``."""
    return float(binom.cdf(hits, n, level)) < 1e-8


MIXES = {"spread": (0.05, 0.2, 0.5, 0.6, 0.97), "ends": (0.0, 1.0), "one": (1.0,)}
SIZES = (1, 3, 10, 100, 1000)


@dataclass(frozen=True)
class Truth:
    """A question to noisy cells, and what the exact answer is."""

    what: str
    values: Any
    noise: Noise
    draws: Any

    @property
    def degree(self) -> int:
        return 2 if self.what in ("variance", "std") else 1

    @property
    def answer(self) -> float:
        x = self.values
        return float(
            {"mean": np.mean, "share": np.mean, "variance": np.var, "std": np.std, "sum": np.sum}[self.what](x)
        )

    def source(self, i: int) -> FromCells:
        return FromCells(self.noise, tuple(self.draws[i]), self.degree, self.what)

    def accepted(self, level: float) -> Any:
        """Whether the interval certainly contains the answer, for all draws at once: that is what the tests say."""
        mean = float(np.mean(self.values))
        if self.what == "sum":
            weights = np.array([0.0, 1.0])
            return self.noise.tail(self.draws @ weights - self.answer, weights) >= 1.0 - level
        steps = np.array([0.0, 1.0] if self.degree == 1 else [0.0, 0.5, 1.0])
        weights = steps - mean
        if self.degree == 1:
            return self.noise.tail(self.draws @ weights, weights) >= 1.0 - level
        squares = np.array([mean**2, -mean * (1.0 - mean), (1.0 - mean) ** 2]) - float(np.var(self.values))
        half = (1.0 - level) / 2.0
        return (self.noise.tail(self.draws @ weights, weights) >= half) & (
            self.noise.tail(self.draws @ squares, squares) >= half
        )


def truths(what: str, goal: dict[str, float], mix: str, n: int, count: int) -> Truth:
    values = np.resize(np.array(MIXES[mix]), n)
    rows = [r for u, x in enumerate(values.tolist()) for r in unit(u, x)]
    data = opened(rows, budget=ib.Budget(**dict.fromkeys(goal, 1e5)))
    degree = ask.variance if what in ("variance", "std") else ask.mean
    asked = {"degree": degree("x", (0, 1), per_unit="mean")}
    plan = data.plan.select(asked, **goal)
    ((part, drawn),) = plan.chosen.values()
    raw = drawn_often(part, drawn, plan._request.run(data.source).numbers, plan._request.caps, count)
    return Truth(what, values, part.noise(drawn), np.array(raw))  # type: ignore[attr-defined]


@pytest.mark.thinned(5)
@pytest.mark.parametrize("mix", MIXES)
@GOALS
@pytest.mark.parametrize("what", ["mean", "share", "sum", "variance"])
def test_intervals_from_cells_cover_as_often_as_they_say(
    what: str, goal: dict[str, float], mix: str, record_property: Any
) -> None:
    """From a single value to a thousand. Noise that is taken to be a fifth smaller than it is fails the same test."""
    n_draws, caught = 20_000, 0
    for n in SIZES:
        truth = truths(what, goal, mix, n, n_draws)
        for level in (0.5, 0.95):
            hits = int(np.count_nonzero(truth.accepted(level)))
            record_property(f"{what} {mix} n={n} {level}", hits / n_draws)
            assert not below(hits, n_draws, level)
            wrong = replace(truth, noise=replace(truth.noise, scale=0.8 * truth.noise.scale))
            caught += below(int(np.count_nonzero(wrong.accepted(level))), n_draws, level)
        # What the test does not reject is in the interval; so is the answer wherever it is near enough.
        for i in range(3):
            for level in (0.5, 0.95):
                low, high = truth.source(i).interval(level)
                assert not truth.accepted(level)[i] or low - 1e-9 <= truth.answer <= high + 1e-9
    assert caught >= (1 if what == "variance" else len(SIZES))


@pytest.mark.long
@pytest.mark.parametrize("mix", MIXES)
@GOALS
@pytest.mark.parametrize("what", ["mean", "share", "variance", "std", "sum"])
def test_intervals_themselves_cover_as_often_as_they_say(what: str, goal: dict[str, float], mix: str) -> None:
    n_draws = 400
    for n in SIZES:
        truth = truths(what, goal, mix, n, n_draws)
        for level in (0.5, 0.95):
            ends = [truth.source(i).interval(level) for i in range(n_draws)]
            hits = sum(low - 1e-9 <= truth.answer <= high + 1e-9 for low, high in ends)
            print(f"{what} {mix} {goal} n={n} level={level}: {hits / n_draws:.3f}")
            assert not below(hits, n_draws, level)


@GOALS
@pytest.mark.parametrize("what", ["count", "sum", "histogram", "shared count"])
def test_intervals_of_counts_and_sums_cover_as_often_as_they_say(what: str, goal: dict[str, float]) -> None:
    n_draws, caught = 4_000, 0
    goal = {name: amount / 20.0 for name, amount in goal.items()}  # so that whole numbers lie close together
    for n in (0, 1, 3, 10, 100):
        data = opened([r for u in range(n) for r in unit(u, 0.7)], budget=ib.Budget(**dict.fromkeys(goal, 1e5)))
        asked = {
            "count": lambda d: d.plan.count_units(**goal),
            "sum": lambda d: d.plan.sum("x", bounds=(0, 1), per_unit="max", **goal),
            "histogram": lambda d: d.plan.histogram("x", [0, 1], per_unit="max", **goal),
            "shared count": lambda d: d.plan.select(n=ask.count_units(), m=ask.mean("x", (0, 1)), **goal),
        }
        plan = asked[what](data)
        ((part, drawn),) = plan.chosen.values()
        raw = drawn_often(part, drawn, plan._request.run(data.source).numbers, plan._request.caps, n_draws)
        truth = 0.7 * n if what == "sum" else n
        for level in (0.5, 0.95):
            for scale in (1.0, 0.8):
                if what == "shared count":
                    noise = part.noise(drawn)  # type: ignore[attr-defined]
                    noise = replace(noise, scale=noise.scale * scale)
                    accepted = noise.tail(np.sum(raw, axis=1) - truth, np.ones(3)) >= 1.0 - level
                    low, high = FromCells(noise, tuple(raw[0]), 1, "count").interval(level)
                    assert not accepted[0] or low <= truth <= high
                else:
                    mechanism = part.one(drawn) if isinstance(part, Bars) else drawn.mechanism
                    kept = {k: getattr(mechanism, k) for k in ("domain", "sensitivity", "edges")}
                    mechanism = type(mechanism)(scale=mechanism.scale * scale, **kept)
                    ends = np.array(mechanism.interval(np.array(raw).ravel(), level))
                    accepted = (ends[0] <= truth + 1e-6) & (truth - 1e-6 <= ends[1])
                hits = int(np.count_nonzero(accepted))
                if scale == 1.0:
                    assert not below(hits, n_draws, level)
                else:
                    caught += below(hits, n_draws, level)
    assert caught >= 2


@GOALS
@pytest.mark.parametrize("q", [0.5, 0.9, 0.0, 1.0])
def test_intervals_of_quantiles_cover_as_often_as_they_say(q: float, goal: dict[str, float]) -> None:
    quantiles_covered(q, goal, (0, 1, 10, 1000), 200)


@pytest.mark.long
@GOALS
@pytest.mark.parametrize("q", [0.5, 0.9, 0.25, 0.999, 0.0, 1.0])
def test_intervals_of_quantiles_cover_in_many_draws(q: float, goal: dict[str, float]) -> None:
    quantiles_covered(q, goal, (0, 1, 3, 10, 100, 1000), 5000)


def quantiles_covered(q: float, goal: dict[str, float], sizes: Sequence[int], n_draws: int) -> None:
    """Of the smallest and largest value, too. They cover more often than they say, since any cell might be picked."""
    for n in sizes:
        values = [(37 * u % 64) for u in range(n)]
        for level in (0.5, 0.95):
            data = opened(
                [r for u, x in enumerate(values) for r in unit(u, x)],
                max_rows=1,
                budget=ib.Budget(**dict.fromkeys(goal, 1e5)),
            )
            plan = data.plan.quantile("i", q, bounds=(0, 63), level=level, **goal)
            ((part, drawn),) = plan.chosen.values()
            raw = drawn_often(part, drawn, plan._request.run(data.source).numbers, plan._request.caps, n_draws)
            question = next(iter(plan.asks.values()))
            answers = [question.read(part, drawn, one, plan.setting)[0][1] for one in raw]
            if n == 0:
                assert all(0 <= a.interval(level)[0] <= a.value <= a.interval(level)[1] <= 63 for a in answers)
                continue
            # Any x is a quantile if no more than a share q of the values lies below it, and no less up to it.
            ordered = sorted(values)
            exact = [x for x in range(64) if sum(v < x for v in values) <= q * n <= sum(v <= x for v in values)]
            exact = [ordered[0]] if q == 0 else [ordered[-1]] if q == 1 else exact
            for x in (exact[0], exact[-1]):
                hits = sum(a.interval(level)[0] <= x <= a.interval(level)[1] for a in answers)
                assert not below(hits, n_draws, level)
            if n == 1000 and q == 0.5:
                widths = [a.interval(level)[1] - a.interval(level)[0] for a in answers]
                assert np.mean(widths) < 32  # which says something

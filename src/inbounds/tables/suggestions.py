"""Help with bounds and caps: private answers themselves, paid for and recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from inbounds import _checks as check
from inbounds.errors import ParameterTypeError
from inbounds.events import Composed, Event, Pure
from inbounds.events import Plan as PlanEvent
from inbounds.tables.compile import Compiler
from inbounds.tables.expressions import Expression
from inbounds.tables.kinds import Kind
from inbounds.tables.measures import Bins
from inbounds.tables.parts import Bars, choose_count
from inbounds.tables.picking import Picker
from inbounds.tables.request import fresh_salt
from inbounds.tables.spending import Goal, Neighbours

if TYPE_CHECKING:
    from inbounds.tables.data import Dataset

__all__ = ["Suggestion", "suggest_bounds", "suggest_caps"]

_SMALLEST, _LARGEST = -8, 40  # powers of two between which bounds are looked for
_MISTAKE = 0.01  # the chance that an empty bin counts as full, or that a cap is further off than it may be
_CAPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, *(2**k for k in range(5, 21)))  # few: each is as likely by chance


@dataclass(frozen=True)
class Suggestion:
    """A private suggestion. It was paid for and recorded.

    Attributes
    ----------
    values : mapping
        As ``{"bounds": (0.0, 128.0)}`` or ``{"max_rows": 4, "max_groups": 2}``; a value is None where the data and the
        budget say too little.
    epsilon : float
        What it cost.
    reason : str
    """

    values: Mapping[str, Any]
    epsilon: float
    reason: str

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def bounds(self) -> Any:
        return self.values["bounds"]

    def __str__(self) -> str:
        found = ", ".join(f"{name}: {value}" for name, value in self.values.items())
        return f"{found} (private; cost epsilon {self.epsilon:g}). {self.reason}"

    __repr__ = __str__


def _recorded(
    data: Dataset, what: dict[str, Any], event: Event, draw: Callable[[], Any], key: str | None
) -> tuple[Any, str]:
    """What was drawn, and what to say of it."""
    description = {"format": "inbounds.suggestion", "version": 1, **data.describe(), **what}
    found, replayed = data.pay(PlanEvent(description, event), draw, key)
    return found, " Given before under this key, at no cost." if replayed else ""


def suggest_bounds(data: Dataset, column: Expression, epsilon: float, key: str | None) -> Suggestion:
    goal = Goal.of(epsilon, None, None)
    if not isinstance(column, Expression):
        check.refuse("suggest_bounds", "column", "a column's name or an expression", column, "", ParameterTypeError)
    with data.source.advising(column):
        kind = column.kind(data.schema)
        if not kind.numeric and kind is not Kind.BOOLEAN:
            raise ParameterTypeError(f"suggest_bounds: column must hold numbers; {column} holds {kind}.")
    positive = [2.0**k for k in range(_SMALLEST, _LARGEST + 1)]
    edges = [*(-x for x in reversed(positive)), 0.0, *positive]
    bars = Bars("bounds", Bins(column, edges))
    # Of each unit one row: bins as fine as these need values that are not averaged.
    request = data.request(bars.measures(), by=(), keys=None, groups=None, rows=1 if data.unit is not None else None)
    request.check(data.schema)
    neighbours = Neighbours(data.neighbours == "substitute", grouped=False, groups=1)
    (spend,) = goal.ways()
    drawn = bars.choose(spend, request.caps, neighbours)

    def draw() -> Any:
        return bars.draw(drawn, request.run(data.source).numbers, request.caps)[0]

    asked = {"ask": "suggest_bounds", "column": column.to_json(), "goal": goal.to_json()}
    found, again = _recorded(data, asked, drawn.event, draw, key)
    counts = np.array(found)
    threshold = float(drawn.mechanism.scale) * math.log(counts.size / _MISTAKE)
    full = np.flatnonzero(counts >= threshold)
    if full.size == 0:
        reason = f"No bin has {threshold:.0f} units for certain: ask with more epsilon, or use public knowledge."
        return Suggestion({"bounds": None}, spend.value, reason + again)
    ends = (edges[int(full[0])], edges[int(full[-1]) + 1])
    reason = f"Powers of two; beyond them lie few values: bins of less than {threshold:.0f} units do not count."
    return Suggestion({"bounds": ends}, spend.value, reason + again)


def suggest_caps(data: Dataset, epsilon: float, share: float, key: str | None) -> Suggestion:
    goal = Goal.of(epsilon, None, None)
    share = check.number("suggest_caps", "share", share, at_least=0.0001, at_most=0.9999)
    if data.unit is None:
        check.refuse("suggest_caps", "unit", "a column: a row is one row in one group", None, "")
    level = Fraction(repr(round(share, 4)))
    (spend,) = goal.ways()
    names = ["max_rows", "max_groups"] if data.by else ["max_rows"]
    amount = spend.portion(Fraction(9, 10 * len(names)))
    neighbours = Neighbours(data.neighbours == "substitute", grouped=False, groups=1)
    reach = Fraction(1) if neighbours.substitute else max(level, 1 - level)
    picker = Picker(level, amount.value, reach, len(_CAPS))
    # Among few units every cap is as good as any other, so how many there are has to be known as well.
    count, counted = choose_count(spend.portion(Fraction(1, 10)), 1, neighbours)
    event = Composed((counted, *(Pure(amount.value) for _ in names)))
    request = data.request({}, rows=None, groups=1 if data.by else None)
    request.check(data.schema)

    def draw() -> Any:
        counts = Compiler(request, data.source, fresh_salt()).multiplicities(_CAPS)
        units = count.release(sum(counts["max_rows"])).value
        return [units, *(_CAPS[picker.pick(counts[name])] for name in names)]

    asked = {"ask": "suggest_caps", "share": share, "goal": goal.to_json()}
    (units, *caps), again = _recorded(data, asked, event, draw, key)
    # A cap may be so many units off as lie beyond it, above or below, before it is any cap at all.
    needed = picker.within(_MISTAKE) / float(min(level, 1 - level))
    if not count.interval(units, 1.0 - 2.0 * _MISTAKE)[0] >= needed:
        reason = f"It takes {needed:,.0f} units to tell: ask with more epsilon, or use public knowledge."
        return Suggestion(dict.fromkeys(names), spend.value, reason + again)
    reason = f"About {100 * share:.4g} % of the units have no more; what is beyond a cap does not count."
    return Suggestion(dict(zip(names, caps, strict=True)), spend.value, reason + again)

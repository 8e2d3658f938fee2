"""Which value of a unit counts in a group, where one does: the mean, sum, smallest, largest, first or last of its rows.

Each is a function of the multiset of the unit's own rows in the group, in whole numbers throughout, and lies in
[lowest, highest] of the measure's fixed-point numbers: so one unit moves what is counted and summed by one value,
whichever it is (``docs/proofs/bounding.md``, statement 7). Rows without a value do not count; a unit without any has no
value.

* ``mean``: rows are clipped to the bounds; their mean is rounded to the nearest step.
* ``sum``: rows become whole numbers of steps about 0, of which there are 2^50 on either side, and beyond them count as
  the last; they are added exactly, and their sum is clipped to the bounds. Such a sum may need more than 64 bits: how
  often a row holds a large power of two, and what is left, are added up apart.
* ``min``, ``max``: of the rows, clipped to the bounds.
* ``first``, ``last``: of the rows in the order of another column, and in that of their values where it is the same:
  the smallest of the first, the largest of the last. Rows without a place in the order do not count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inbounds.errors import ParameterError, ParameterTypeError
from inbounds.tables.exact import divide, divide_small, integer, nearest
from inbounds.tables.expressions import Expression, Scope
from inbounds.tables.fixed import FINE, ROOM, Caps, Fixed
from inbounds.tables.kinds import Kind, Schema, extra

if TYPE_CHECKING:
    from narwhals import Expr, LazyFrame

__all__ = ["HOW", "MEAN", "ORDERED", "PerUnit", "Value", "as_order", "one_each"]

#: What can be taken of a unit's rows, in words.
HOW: Mapping[str, str] = {
    "mean": "mean of",
    "sum": "sum of",
    "min": "smallest",
    "max": "largest",
    "first": "first",
    "last": "last",
}
ORDERED = ("first", "last")  # these need an order

# Text is left out: engines disagree about its order. So are numbers beyond int64, which are kept as text.
_ORDERS = (Kind.INTEGER, Kind.REAL, Kind.BOOLEAN, Kind.DATE, Kind.DATETIME, Kind.INSTANT)


@dataclass(frozen=True, eq=False)
class PerUnit:
    """What is taken of a unit's rows in a group: ``how`` is of :data:`HOW`, ``order`` what its rows are ordered by."""

    how: str = "mean"
    order: Expression | None = None

    @property
    def key(self) -> tuple[str, str]:
        """By which equal ones are known."""
        return self.how, "" if self.order is None else str(self.order.to_json())

    def check(self, what: str, schema: Schema) -> None:
        """Refuse an order that engines may not agree about."""
        kind = None if self.order is None else self.order.kind(schema)
        if kind is not None and kind not in _ORDERS:
            raise ParameterTypeError(
                f"{what}: order must hold dates, times, numbers or truth values; {self.order} holds {kind}. "
                "Convert the column."
            )

    def check_reach(self, what: str, fixed: Fixed, caps: Caps) -> None:
        """Refuse bounds of sums so narrow, and so far from 0, that rows in their steps could not add up to them."""
        furthest, most = max(abs(fixed.lower), abs(fixed.upper)), _reach(caps) // 2
        if self.how == "sum" and not furthest <= most * fixed.step:
            apart = 2.0 * furthest * caps.room / most
            given = (fixed.lower, fixed.upper)
            raise ParameterError(
                f"{what}: bounds of sums that far from 0 must be at least {apart:.3g} apart; got {given}. "
                "Pass wider ones."
            )

    def rows(self, fixed: Fixed, caps: Caps) -> Fixed:
        """The fixed-point numbers of the rows."""
        if self.how != "sum":
            return fixed
        most = _reach(caps) * fixed.step
        return Fixed(-most, most, 0.0, fixed.step)


MEAN = PerUnit()  # where nothing else is said


def as_order(order: Expression, scope: Scope) -> Expr:
    """The order of a row as a number; null where it has none."""
    boolean = order.kind(scope.schema) is Kind.BOOLEAN
    return order.narwhals(scope).cast(extra("narwhals").Int64) if boolean else order.narwhals(scope)


def _reach(caps: Caps) -> int:
    """How many steps about 0 a row of a sum has."""
    return min(FINE, _part(caps) ** 2)


def _part(caps: Caps) -> int:
    """A power of two: as many of the largest rows as there may be hold less than 2^62 of it, and so do remainders."""
    return 1 << (ROOM // caps.limit).bit_length() - 1


@dataclass(frozen=True)
class Value:
    """A unit's value, to be made from a column of its rows.

    Attributes
    ----------
    per : PerUnit
    fixed : Fixed
        What the value becomes.
    caps : Caps
    order : str
        The column of the order, where there is one.
    """

    per: PerUnit
    fixed: Fixed
    caps: Caps
    order: str = ""

    def stages(self, x: str, place: Sequence[str]) -> tuple[dict[str, Expr], ...]:
        """What to do with a column x: what to add to rows, then to rows again, to take of them all, and at the end."""
        nw, column = extra("narwhals"), extra("narwhals").col(x)
        if self.per.how in ("min", "max"):
            return {}, {}, {x: getattr(column, self.per.how)()}, {}
        if self.per.how in ORDERED:
            end = "min" if self.per.how == "first" else "max"
            at, ends = nw.col(f"{x}o"), nw.col(f"{x}e")
            there = {f"{x}o": nw.when(~column.is_null()).then(nw.col(self.order))}
            marked = {f"{x}e": getattr(at, end)().over(*place)}
            return there, marked, {x: getattr(nw.when(at == ends).then(column), end)()}, {}
        count, total = nw.col(f"{x}n"), nw.col(f"{x}s")
        totals = {f"{x}n": column.count().cast(nw.Int64)}
        some = count > integer(0)
        if self.per.how == "mean":
            totals[f"{x}s"] = column.sum().cast(nw.Int64)
            value = nearest(total, nw.when(some).then(count).otherwise(integer(1)))
            return {}, {}, totals, {x: nw.when(some).then(value)}
        part, parts = _part(self.caps), nw.col(f"{x}p")
        rows = {f"{x}p": divide_small(column, part)}
        rests = {f"{x}r": column - parts * integer(part)}
        totals |= {f"{x}p": parts.sum().cast(nw.Int64), f"{x}s": nw.col(f"{x}r").sum().cast(nw.Int64)}
        return rows, rests, totals, {x: nw.when(some).then(self._clipped(parts, total, part))}

    def _clipped(self, parts: Expr, rest: Expr, part: int) -> Expr:
        """parts * part + rest, from the centre, clipped to the bounds; first to what int64 holds, which lies beyond."""
        carried = divide(rest, integer(part))
        far = 2**52 // part
        whole = (parts + carried).clip(integer(-far), integer(far))
        center = math.floor(self.fixed.center / self.fixed.step + 0.5)
        value = whole * integer(part) + (rest - carried * integer(part)) - integer(center)
        return value.clip(integer(self.fixed.lowest), integer(self.fixed.highest))


def one_each(frame: LazyFrame[Any], place: Sequence[str], values: Mapping[str, Value]) -> LazyFrame[Any]:
    """From the rows that count to one for each unit and group, which are its ``place``, with the unit's values."""
    rows: list[dict[str, Expr]] = [{}, {}]
    totals: dict[str, Expr] = {}
    found: dict[str, Expr] = {}
    for x, value in values.items():
        first, second, taken, last = value.stages(x, place)
        rows[0] |= first
        rows[1] |= second
        totals |= taken
        found |= last
    for more in rows:
        frame = frame.with_columns(**more) if more else frame
    frame = frame.group_by(*place).agg(**totals or {"one": extra("narwhals").len()})
    return frame.with_columns(**found).select(*place, *values) if found else frame

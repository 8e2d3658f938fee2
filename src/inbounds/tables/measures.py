"""What is counted and summed: measures, and the fixed-point numbers they are made of.

A measure turns the rows or units of a group into whole numbers, of which one unit can move each only so far. Sums of
floats depend on the order of the rows, so their sensitivity is not what the formula says; sums of whole numbers do not.

With a cap on rows, each row has a value; without one, each unit has one in each group, by the measure's ``per``
(``per_unit``). Proof page: ``docs/proofs/bounding.md``.

Nulls and NaN are no values: their rows do not count for the measure. Infinite values are clipped like others.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from inbounds import _checks as check
from inbounds.errors import ParameterError, ParameterTypeError
from inbounds.tables.exact import divide_small, integer, real
from inbounds.tables.expressions import Expression, Scope, as_number, col
from inbounds.tables.fixed import FINE, ROOM, Caps, Fixed
from inbounds.tables.kinds import Kind, Schema, extra, literal_kind, plain, to_number
from inbounds.tables.per_unit import MEAN, PerUnit

if TYPE_CHECKING:
    from narwhals import Expr

__all__ = ["Bins", "Grid", "Measure", "Meeting", "Rows", "Squares", "Sum", "Units", "UnitsMeeting"]

_CELLS = 1 << 20


def _shift(fixed: Fixed, most: int) -> float:
    """The power of two by which squares of steps are scaled, so that none exceeds ``most``."""
    largest = max(-fixed.lowest, fixed.highest)
    shift = 1.0
    while _square(largest, shift) > most:
        shift /= 2
    return shift


def _square(x: int, shift: float) -> int:
    return math.floor(float(x) * float(x) * shift + 0.5)


@dataclass(frozen=True, eq=False)
class Measure:
    """What every measure can say about itself."""

    @property
    def per_row(self) -> bool:
        """Whether it needs a cap on rows."""
        return False

    def inputs(self) -> list[Expression]:
        """The expressions it reads."""
        return []

    def check(self, schema: Schema) -> None:
        """Refuse columns that are missing or hold the wrong things."""

    def numbers(self, caps: Caps) -> tuple[tuple[int, int], ...]:
        """For each number it yields: the least and the most one unit can contribute to it in one group."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Rows(Measure):
    """The number of rows. Yields (rows,)."""

    @property
    def per_row(self) -> bool:
        return True

    def numbers(self, caps: Caps) -> tuple[tuple[int, int], ...]:
        return ((0, caps.values),)


@dataclass(frozen=True, eq=False)
class Units(Measure):
    """The number of units. Yields (units,)."""

    def numbers(self, caps: Caps) -> tuple[tuple[int, int], ...]:
        return ((0, 1),)


def _bound(what: str, name: str, value: object) -> tuple[Kind, float]:
    kind = literal_kind(value)
    if kind.temporal:
        number = to_number(kind, plain(kind, value))
        return kind, 0.0 if number is None else number
    if isinstance(value, dt.date | dt.timedelta | str):
        needs = "a finite number, or a date or a time of the years 1 to 9999 in UTC"
        check.refuse(what, name, needs, value, "", ParameterTypeError)
    limit = check.LARGEST
    return Kind.REAL, check.number(what, name, value, at_least=-limit, at_most=limit, next_step="Pass public bounds.")


@dataclass(frozen=True, eq=False)
class Valued(Measure):
    """A measure of a column's values inside public bounds."""

    column: Expression | str
    per: PerUnit = field(default=MEAN, kw_only=True)
    _kind: Kind = field(init=False, repr=False)

    def _settle(self, *bounds: tuple[str, object]) -> list[float]:
        """Check the column and the bounds; the bounds as numbers."""
        what = type(self).__name__
        if isinstance(self.column, str):
            object.__setattr__(self, "column", col(self.column))
        if not isinstance(self.column, Expression):
            check.refuse(what, "column", "a column's name or an expression", self.column, "", ParameterTypeError)
        kinds, numbers = zip(*(_bound(what, name, value) for name, value in bounds), strict=True)
        if len(set(kinds)) > 1:
            values = tuple(value for _, value in bounds)
            name = bounds[0][0] if bounds[0][0] == bounds[-1][0] else "bounds"
            check.refuse(what, name, "all numbers, all dates or all times", values, "", ParameterTypeError)
        object.__setattr__(self, "_kind", kinds[0])
        for (low, high), (_, value) in zip(pairwise(numbers), bounds[1:], strict=True):
            if not low < high or not high - low >= check.SMALLEST:
                name = bounds[-1][0]
                if low < high:
                    needs = f"at least {check.SMALLEST} above what stands before it ({low!r})"
                    check.refuse(what, name, needs, value, "Pass wider ones.")
                check.refuse(what, name, f"greater than what stands before it ({low!r})", value, "Pass them in order.")
        return list(numbers)

    @property
    def expression(self) -> Expression:
        return col(self.column) if isinstance(self.column, str) else self.column

    def inputs(self) -> list[Expression]:
        return [self.expression] if self.per.order is None else [self.expression, self.per.order]

    def check(self, schema: Schema) -> None:
        self.per.check(type(self).__name__, schema)
        kind = self.expression.kind(schema)
        matches = kind is self._kind if self._kind.temporal else kind.numeric or kind is Kind.BOOLEAN
        if not matches:
            given = self._kind if self._kind.temporal else "numbers"
            step = f"Give bounds that are {kind}." if self._kind.temporal and kind.temporal else ""
            raise ParameterTypeError(
                f"{type(self).__name__}: {self.expression} must hold values that compare with its bounds ({given}); "
                f"it holds {kind}. {step}".rstrip()
            )

    def rows(self, scope: Scope, caps: Caps) -> Expr:
        """The value of a row as a whole number, null where it has none."""
        value = as_number(self.expression.narwhals(scope), self.expression.kind(scope.schema))
        return self.per.rows(self.fixed(caps), caps).express(value)

    def fixed(self, caps: Caps) -> Fixed:
        """The fixed-point numbers its values become."""
        fixed = self._finest(caps)
        self.per.check_reach(type(self).__name__, fixed, caps)
        return fixed

    def _finest(self, caps: Caps) -> Fixed:
        """The finest ones that the caps allow."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Sum(Valued):
    """The sum of a column's values about a centre, and how many there are. Yields (count, total).

    The sum of the clipped values is center * count + step * total, up to half a step a value. With the default centre,
    the middle of the bounds, one value moves the total least; with ``center=0.0`` the total stands for the sum itself.

    Parameters
    ----------
    column : str or Expression
        Holds numbers, truth values (0 and 1), dates (days) or times (seconds).
    lower, upper : number, date or datetime
        Values outside are clipped. Public: never taken from the data. Of ``per`` sums, the bounds of a unit's sum.
    center : float, optional
        In [-1e60, 1e60]; in days or seconds since 1970-01-01 for dates and times.
    """

    lower: Any
    upper: Any
    center: float | None = None
    _numbers: tuple[float, float, float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        lower, upper = self._settle(("lower", self.lower), ("upper", self.upper))
        limit = check.LARGEST
        middle = lower / 2 + upper / 2
        center = middle
        if self.center is not None:
            center = check.number(type(self).__name__, "center", self.center, at_least=-limit, at_most=limit)
        object.__setattr__(self, "_numbers", (lower, upper, center))

    def _finest(self, caps: Caps) -> Fixed:
        return Fixed.within(*self._numbers, caps.room)

    def numbers(self, caps: Caps) -> tuple[tuple[int, int], ...]:
        fixed, most = self.fixed(caps), caps.values
        return (0, most), (most * min(fixed.lowest, 0), most * max(fixed.highest, 0))


@dataclass(frozen=True, eq=False)
class Squares(Sum):
    """The sum of squared distances from a centre, and how many values there are. Yields (count, total).

    In the fixed-point numbers x of :class:`Sum` with the same parameters: total = sum of floor(x^2 * shift + 1/2), so
    the sum of squares is total * step^2 / shift. Where a unit has one value, that value is squared.
    """

    def shift(self, caps: Caps) -> float:
        """A power of two."""
        return _shift(self.fixed(caps), caps.room)

    def express(self, x: Expr, caps: Caps) -> Expr:
        nw = extra("narwhals")
        number = x.cast(nw.Float64)
        return (number * number * real(self.shift(caps)) + real(0.5)).floor().cast(nw.Int64)

    def numbers(self, caps: Caps) -> tuple[tuple[int, int], ...]:
        fixed, most = self.fixed(caps), caps.values
        largest = _square(max(-fixed.lowest, fixed.highest), self.shift(caps))
        return (0, most), (0, most * largest)


def _condition(measure: Meeting | UnitsMeeting, schema: Schema) -> None:
    kind = measure.condition.kind(schema)
    if kind is not Kind.BOOLEAN:
        raise ParameterTypeError(
            f"{type(measure).__name__}: {measure.condition} must be a condition; it holds {kind}."
        )  # fmt: skip


def _is_expression(measure: Meeting | UnitsMeeting) -> None:
    if not isinstance(measure.condition, Expression):
        step = 'Write it with col, as col("age") >= 18.'
        check.refuse(type(measure).__name__, "condition", "a condition", measure.condition, step, ParameterTypeError)


@dataclass(frozen=True, eq=False)
class Meeting(Measure):
    """The rows that meet a condition; where it is null they do not. Yields (total,).

    With a cap on rows: how many of them. With one value per unit: the sum of the units' own shares, in steps of
    ``step``.
    """

    condition: Expression

    def __post_init__(self) -> None:
        _is_expression(self)

    def inputs(self) -> list[Expression]:
        return [self.condition]

    def check(self, schema: Schema) -> None:
        _condition(self, schema)

    def whole(self, caps: Caps) -> int:
        """What a row that meets the condition counts; 1 with a cap on rows."""
        return 1 if caps.rows else 1 << caps.room.bit_length() - 1

    def step(self, caps: Caps) -> float:
        return 1.0 / self.whole(caps)

    def numbers(self, caps: Caps) -> tuple[tuple[int, int], ...]:
        return ((0, self.whole(caps) * caps.values),)


@dataclass(frozen=True, eq=False)
class UnitsMeeting(Measure):
    """The units with a row that meets a condition, of the rows kept. Yields (total,)."""

    condition: Expression

    def __post_init__(self) -> None:
        _is_expression(self)

    def inputs(self) -> list[Expression]:
        return [self.condition]

    def check(self, schema: Schema) -> None:
        _condition(self, schema)

    def numbers(self, caps: Caps) -> tuple[tuple[int, int], ...]:
        return ((0, 1),)


@dataclass(frozen=True, eq=False)
class Binned(Valued):
    """How many values fall into each of many bins; a unit counts ``rows`` times at most in all of them together."""

    def bins(self) -> int:
        raise NotImplementedError

    def numbers(self, caps: Caps) -> tuple[tuple[int, int], ...]:
        self.fixed(caps)  # refuses edges that are too close
        return ((0, caps.values),) * self.bins()

    def express(self, x: Expr, caps: Caps) -> Expr:
        """The number of the bin, from the fixed-point value."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Bins(Binned):
    """How many values lie in [edges[i], edges[i+1]), for each i; the last bin has its upper edge too.

    Values beyond the edges count in the first and last bin. Yields one number per bin.

    Values and edges are compared as fixed-point numbers: a value less than a step below an edge counts above it. With a
    cap on rows there are about 2^50 steps on either side of the middle.

    Parameters
    ----------
    edges : sequence of 2 to 1025 numbers, dates or times
        Increasing.
    """

    edges: Sequence[Any]
    _numbers: tuple[float, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        edges = self.edges.tolist() if isinstance(self.edges, np.ndarray) else self.edges
        if isinstance(edges, str) or not isinstance(edges, Sequence) or not 2 <= len(edges) <= 1025:
            step = "Public ones, never taken from the data."
            check.refuse("Bins", "edges", "a sequence of 2 to 1025 numbers", edges, step, ParameterTypeError)
        object.__setattr__(self, "edges", tuple(edges))
        object.__setattr__(self, "_numbers", tuple(self._settle(*(("edges", edge) for edge in edges))))

    def bins(self) -> int:
        return len(self._numbers) - 1

    def _finest(self, caps: Caps) -> Fixed:
        # With a cap on rows nothing is summed before it is binned. One value may be a mean, made of sums.
        lower, upper = self._numbers[0], self._numbers[-1]
        return Fixed.within(lower, upper, lower / 2 + upper / 2, FINE if caps.rows else caps.room)

    def fixed(self, caps: Caps) -> Fixed:
        fixed = super().fixed(caps)
        places = [fixed.of(edge) for edge in self._numbers]
        if not all(low < high for low, high in pairwise(places)):
            raise ParameterError(f"histogram: edges must be at least {fixed.step!r} apart; got two that are closer.")
        return fixed

    def express(self, x: Expr, caps: Caps) -> Expr:
        nw = extra("narwhals")
        fixed = self.fixed(caps)
        inner = [fixed.of(edge) for edge in self._numbers[1:-1]]

        def search(first: int, last: int) -> Expr:
            """A binary search written out: the bins from ``first`` to ``last``."""
            if first == last:
                return integer(first)
            middle = (first + last) // 2
            expression: Expr = (
                nw.when(x < integer(inner[middle])).then(search(first, middle)).otherwise(search(middle + 1, last))
            )
            return expression

        return search(0, len(inner))


@dataclass(frozen=True, eq=False)
class Grid(Binned):
    """How many values lie in each of many equal cells of [lower, upper]: a fine histogram, as quantiles need.

    Values beyond the bounds count in the first and last cell. Yields one number a cell. The edges lie at
    lower + i (upper - lower) / cells, up to a step.

    Parameters
    ----------
    lower, upper : number, date or datetime
        Public.
    cells : int
        In [1, 2^20].
    """

    lower: Any
    upper: Any
    cells: int
    _numbers: tuple[float, float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        lower, upper = self._settle(("lower", self.lower), ("upper", self.upper))
        object.__setattr__(self, "cells", check.whole("Grid", "cells", self.cells, at_least=1, at_most=_CELLS))
        object.__setattr__(self, "_numbers", (lower, upper))

    def bins(self) -> int:
        return self.cells

    def _finest(self, caps: Caps) -> Fixed:
        # (x - lowest) * cells stays below 2^52, where a plain division is exact.
        return Fixed.within(*self._numbers, sum(self._numbers) / 2, min(2**51 // self.cells // 2, ROOM // caps.limit))

    def express(self, x: Expr, caps: Caps) -> Expr:
        nw = extra("narwhals")
        fixed = self.fixed(caps)
        cell = divide_small((x - integer(fixed.lowest)) * integer(self.cells), fixed.highest - fixed.lowest)
        last = integer(self.cells - 1)
        expression: Expr = nw.when(cell < last).then(cell).otherwise(last)
        return expression

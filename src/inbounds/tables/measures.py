"""What is counted and summed: measures, and the fixed-point numbers they are made of.

A measure turns the rows or units of a group into whole numbers, of which one unit can move each only so far. Sums of
floats depend on the order of the rows, so their sensitivity is not what the formula says; sums of whole numbers do not.

A value v is clipped to [lower, upper] and becomes x = floor((v - center) / step + 1/2) in float64 arithmetic. The step
is a power of two, chosen from public facts alone so that no sum overflows int64. Each operation is rounded the same way
on every engine and none of them decreases as v grows, so x lies between the images of lower and upper, which are known
beforehand: ``lowest`` and ``highest``. Proof page: ``docs/proofs/bounding.md``.

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
from inbounds.tables.kinds import Kind, Schema, extra, literal_kind, plain, to_number

if TYPE_CHECKING:
    from narwhals import Expr

__all__ = ["Bins", "Caps", "Fixed", "Grid", "Measure", "Meeting", "Rows", "Squares", "Sum", "Units", "UnitsMeeting"]

_ROOM = 2**62  # sums stay below this; int64 ends at 2^63
_FINE = 2**50  # steps on either side of the centre for bins of rows, which are compared and never summed
_CELLS = 1 << 20


@dataclass(frozen=True)
class Caps:
    """How much one unit may contribute to one group, and how many units there may be.

    Attributes
    ----------
    rows : int or None
        The rows of a unit that are kept in a group; None where a unit has one value there, its own mean.
    limit : int
        No group has more units than this, and no unit more rows.
    """

    rows: int | None
    limit: int

    @property
    def values(self) -> int:
        """How many values a unit has in a group, at most."""
        return self.rows or 1

    @property
    def room(self) -> int:
        """How large a value may be so that no sum overflows."""
        return _ROOM // (self.limit * self.values)


@dataclass(frozen=True)
class Fixed:
    """Fixed-point numbers: x = floor((clipped value - center) / step + 1/2), a whole number in [lowest, highest].

    Attributes
    ----------
    lower, upper, center : float
        In the units of the column: dates in days, times in seconds since 1970-01-01.
    step : float
        A power of two.
    """

    lower: float
    upper: float
    center: float
    step: float

    @classmethod
    def within(cls, lower: float, upper: float, center: float, most: int) -> Fixed:
        """The finest step with which no value is more than ``most`` steps from the centre."""
        reach = max(upper - center, center - lower)
        exponent = math.frexp(reach)[1] - most.bit_length() - 1
        while True:
            fixed = cls(lower, upper, center, math.ldexp(1.0, exponent))
            if -fixed.lowest <= most and fixed.highest <= most:
                return fixed
            exponent += 1

    def of(self, value: float) -> int:
        """The whole number for a value, in Python."""
        clipped = min(max(value, self.lower), self.upper)
        return math.floor((clipped - self.center) * (1.0 / self.step) + 0.5)

    def express(self, value: Expr) -> Expr:
        """The same in an engine; null for null."""
        nw = extra("narwhals")
        steps = (value.clip(real(self.lower), real(self.upper)) - real(self.center)) * real(1.0 / self.step)
        return (steps + real(0.5)).floor().cast(nw.Int64)

    @property
    def lowest(self) -> int:
        return self.of(self.lower)

    @property
    def highest(self) -> int:
        return self.of(self.upper)


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
                check.refuse(what, name, f"greater than what stands before it ({low!r})", value, "Pass them in order.")
        return list(numbers)

    @property
    def expression(self) -> Expression:
        return col(self.column) if isinstance(self.column, str) else self.column

    def inputs(self) -> list[Expression]:
        return [self.expression]

    def check(self, schema: Schema) -> None:
        kind = self.expression.kind(schema)
        matches = kind is self._kind if self._kind.temporal else kind.numeric or kind is Kind.BOOLEAN
        if not matches:
            given = self._kind if self._kind.temporal else "numbers"
            raise ParameterTypeError(
                f"{type(self).__name__}: {self.expression} must hold values that compare with its bounds ({given}); "
                f"it holds {kind}."
            )

    def value(self, scope: Scope) -> Expr:
        """The value of a row as float64, null where it has none."""
        return as_number(self.expression.narwhals(scope), self.expression.kind(scope.schema))

    def fixed(self, caps: Caps) -> Fixed:
        """The fixed-point numbers its values become."""
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
        Values outside are clipped. Public: never taken from the data.
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

    def fixed(self, caps: Caps) -> Fixed:
        return Fixed.within(*self._numbers, caps.room)

    def numbers(self, caps: Caps) -> tuple[tuple[int, int], ...]:
        fixed, most = self.fixed(caps), caps.values
        return (0, most), (most * min(fixed.lowest, 0), most * max(fixed.highest, 0))


@dataclass(frozen=True, eq=False)
class Squares(Sum):
    """The sum of squared distances from a centre, and how many values there are. Yields (count, total).

    In the fixed-point numbers x of :class:`Sum` with the same parameters: total = sum of floor(x^2 * shift + 1/2), so
    the sum of squares is total * step^2 / shift. Where a unit has one value, that value (its own mean) is squared.
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

    def _fixed(self, lower: float, upper: float, caps: Caps) -> Fixed:
        # With a cap on rows nothing is summed before it is binned. One value is a mean, made of sums.
        return Fixed.within(lower, upper, lower / 2 + upper / 2, _FINE if caps.rows else caps.room)

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
            step = "Use Grid for a finer grid of equal cells."
            check.refuse("Bins", "edges", "a sequence of 2 to 1025 numbers", edges, step, ParameterTypeError)
        object.__setattr__(self, "edges", tuple(edges))
        object.__setattr__(self, "_numbers", tuple(self._settle(*(("edges", edge) for edge in edges))))

    def bins(self) -> int:
        return len(self._numbers) - 1

    def fixed(self, caps: Caps) -> Fixed:
        fixed = self._fixed(self._numbers[0], self._numbers[-1], caps)
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

    def fixed(self, caps: Caps) -> Fixed:
        # (x - lowest) * cells stays below 2^52, where a plain division is exact.
        return Fixed.within(*self._numbers, sum(self._numbers) / 2, min(2**51 // self.cells // 2, _ROOM // caps.limit))

    def express(self, x: Expr, caps: Caps) -> Expr:
        nw = extra("narwhals")
        fixed = self.fixed(caps)
        cell = divide_small((x - integer(fixed.lowest)) * integer(self.cells), fixed.highest - fixed.lowest)
        last = integer(self.cells - 1)
        expression: Expr = nw.when(cell < last).then(cell).otherwise(last)
        return expression

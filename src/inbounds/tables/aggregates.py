"""What can be asked about a table: each question knows its parts, and reads its answer from them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

from inbounds import _checks as check
from inbounds.domain import Integers, Interval
from inbounds.errors import ParameterError, ParameterTypeError
from inbounds.tables.answers import Answer, FromCells, FromDraw, FromPick, Unit
from inbounds.tables.expressions import Column, Expression, FillNull, col
from inbounds.tables.fixed import Caps
from inbounds.tables.kinds import Kind, Schema, literal_kind, plain, to_number
from inbounds.tables.measures import Bins, Grid, Measure, Meeting, Rows, Squares, Sum, Units, UnitsMeeting
from inbounds.tables.parts import EDGES, Bars, Cell, Drawn, Part, Pick, Sides, Values, half_line, rounded_up
from inbounds.tables.per_unit import HOW, ORDERED, PerUnit

__all__ = [
    "Aggregate",
    "Setting",
    "count",
    "count_units",
    "histogram",
    "maximum",
    "mean",
    "median",
    "minimum",
    "quantile",
    "quantiles",
    "share",
    "std",
    "sum_of",
    "variance",
]

Chosen = Mapping[str, tuple[Part, Drawn]]
Raw = Mapping[str, Any]

_CELLS = 16_384
_MOST_WHOLE = 2**53


@dataclass(frozen=True)
class Setting:
    """What is public about a plan besides its questions."""

    schema: Schema
    caps: Caps
    rows: int | None
    groups: int
    substitute: bool
    size: int | None
    filtered: bool
    grouped: bool
    who: str  # what a unit is called
    row_unit: bool
    cut: bool  # whether a unit may be in more groups than count

    @property
    def most(self) -> float:
        """How many values there can be."""
        return math.inf if self.size is None else float(self.size * self.caps.values)

    def sized(self, *columns: Expression) -> int | None:
        """How many values there are, where that is public: every unit has one, as no row lacks any of the columns."""
        whole = self.substitute and not self.filtered and not self.grouped and self.caps.values == 1
        return self.size if whole and all(isinstance(column, FillNull) for column in columns) else None


@dataclass(frozen=True)
class Pool:
    """Values that several questions may be about: of a column, in bounds, and which of a unit."""

    column: Any
    lower: Any
    upper: Any
    per: PerUnit

    @property
    def key(self) -> tuple[str, ...]:
        """By which equal ones are known."""
        return str(self.column.to_json()), repr(self.lower), repr(self.upper), *self.per.key


@dataclass(frozen=True, eq=False)
class Aggregate:
    """A question. Frozen; checked against the table's public columns before anything is read."""

    weight: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        weight = check.number(self._name, "weight", self.weight, above=0.0, at_most=1e6)
        object.__setattr__(self, "weight", weight)

    @property
    def _name(self) -> str:
        return type(self).__name__.lower()

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Errors of the measures that it is made of name the question, which is what was asked."""
        try:
            yield
        except (ParameterError, ParameterTypeError) as problem:
            raise type(problem)(f"{self._name}:{str(problem).partition(':')[2]}") from None

    @property
    def label(self) -> str:
        """The name of its answer where none was given."""
        raise NotImplementedError

    @property
    def suffixes(self) -> Sequence[str]:
        """What the names of its answers end in."""
        return ("",)

    def check(self, setting: Setting) -> None:
        """Refuse what the table or the plan cannot answer."""

    @property
    def ordered(self) -> Expression | None:
        """What the rows of a unit are ordered by, where they are."""
        return None

    def check_order(self, setting: Setting) -> None:
        """Refuse what cannot order rows: first, so that what an error advises is about nothing else."""

    @property
    def expressions(self) -> Sequence[Expression]:
        """What is asked about, of the table's columns."""
        given = (getattr(self, f.name) for f in fields(self))
        return [value for value in given if isinstance(value, Expression)]

    def values(self, setting: Setting) -> tuple[Pool, int] | None:
        """The values whose cells it reads, and their degree; None where it has a part of its own."""
        return None

    def part(self, name: str, setting: Setting) -> Part:
        """The part of its own."""
        raise NotImplementedError

    def read(self, part: Part, drawn: Drawn, raw: Any, setting: Setting) -> list[tuple[str, Answer]]:
        """The answers from a group's noisy numbers, each with what its name ends in."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """Its description, for the record."""
        raise NotImplementedError

    def words(self, setting: Setting) -> str:
        """What is asked, and which value of a unit counts."""
        raise NotImplementedError

    def notes(self, setting: Setting) -> tuple[str, ...]:
        """What to know when reading the answer."""
        return ()

    def expected(self, part: Part, drawn: Drawn) -> str:
        """The error to expect, in words and figures; without looking at data."""
        return f"error about {part.spread(drawn):.4g}"

    def substitute(self, columns: Mapping[str, Expression]) -> Aggregate:
        """The same with derived columns written out."""
        changed: dict[str, Any] = {
            f.name: value.substitute(columns)
            for f in fields(self)
            if isinstance(value := getattr(self, f.name), Expression)
        }
        return replace(self, **changed) if columns and changed else self


def _capped(setting: Setting, *, rows: bool = True) -> list[str]:
    found = []
    if rows and setting.caps.values > 1:
        found.append(f"at most {setting.rows} rows of a unit count in a group; of units with more, some do not count")
    if setting.cut:
        most = "1 group" if setting.groups == 1 else f"{setting.groups} groups"
        found.append(f"a unit counts in at most {most}; of units in more, some do not count")
    return found


# ---------------------------------------------------------------- counts


@dataclass(frozen=True, eq=False)
class Count(Aggregate):
    """The number of rows, or of units."""

    of: str
    edges: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check.choice(self._name, "edges", self.edges, EDGES)

    @property
    def label(self) -> str:
        return "count" if self.of == "rows" else "units"

    @property
    def measure(self) -> Measure:
        return Rows() if self.of == "rows" else Units()

    def check(self, setting: Setting) -> None:
        if self.of == "rows" and setting.rows is None:
            raise ParameterError(
                "count: max_rows must be a whole number of at least 1 to count rows; got None. Pass max_rows, the most "
                "rows of one unit that count in a group, or ask for count_units."
            )

    def part(self, name: str, setting: Setting) -> Part:
        per = setting.caps.values if self.of == "rows" else 1
        return Cell(
            name,
            {"n": self.measure},
            Integers(0, self._most(setting)),
            self.edges,
            lambda caps, numbers: numbers[0],
            lambda caps: (float(per), float(per)),
        )

    def _most(self, setting: Setting) -> float:
        return setting.most if self.of == "rows" or setting.size is None else float(setting.size)

    def read(self, part: Part, drawn: Drawn, raw: Any, setting: Setting) -> list[tuple[str, Answer]]:
        notes = self.notes(setting)
        if isinstance(part, Values):
            most = self._most(setting)
            source: Any = FromCells(part.noise(drawn), tuple(raw), part.degree, "count", most=most)
            return [("", Answer(source.value(), (0, most), notes, source))]
        domain = part.domain  # type: ignore[attr-defined]
        return [("", Answer(_whole(raw), (0, domain.upper), notes, FromDraw(drawn.mechanism, raw)))]

    def expected(self, part: Part, drawn: Drawn) -> str:
        cells = part.degree + 2 if isinstance(part, Values) else 1
        return f"error about {part.spread(drawn) * math.sqrt(cells):.4g}"

    def shares(self, setting: Setting) -> bool:
        """Whether it may be read from the cells of values: one more cell counts what has none."""
        if self.edges != "auto":
            return False
        return setting.rows == 1 or (self.of == "rows") == (setting.rows is not None)

    def to_json(self) -> dict[str, Any]:
        return {"ask": "count" if self.of == "rows" else "count_units"}

    def words(self, setting: Setting) -> str:
        return "number of rows" if self.of == "rows" else "number of units"

    def notes(self, setting: Setting) -> tuple[str, ...]:
        return tuple(_capped(setting, rows=self.of == "rows"))


def _whole(x: Any) -> Any:
    return int(x) if float(x).is_integer() else x


# ---------------------------------------------------------------- values of a column


@dataclass(frozen=True, eq=False)
class OfValues(Aggregate):
    """A question about values: of rows, or one of each unit, which has to be said where a unit may have several."""

    per_unit: str | None = field(default=None, kw_only=True)
    order: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per_unit is not None:
            check.choice(self._name, "per_unit", self.per_unit, self._takes)
        if isinstance(self.order, str):
            object.__setattr__(self, "order", col(self.order))
        if self.per_unit in ORDERED:
            if not isinstance(self.order, Expression):
                step = "As order='date': what tells the first row of a unit from the last."
                needs = f"a column's name or an expression with per_unit='{self.per_unit}'"
                check.refuse(self._name, "order", needs, self.order, step, ParameterTypeError)
        elif self.order is not None:
            step = "Only the first and the last row have an order."
            check.refuse(self._name, "order", "left out without per_unit='first' or 'last'", str(self.order), step)

    @property
    def _takes(self) -> Sequence[str]:
        """What it can take of a unit's rows."""
        return tuple(HOW)

    @property
    def _own(self) -> str | None:
        """What it takes of them where nothing is said; None where that has to be said."""
        return None

    @property
    def per(self) -> PerUnit:
        """What is taken of a unit's rows, where rows do not count themselves."""
        return PerUnit(self.per_unit or "mean", self.order)

    @property
    def ordered(self) -> Expression | None:
        found: Expression | None = self.order
        return found

    def check_order(self, setting: Setting) -> None:
        self.per.check(self._name, setting.schema)

    def check(self, setting: Setting) -> None:
        if setting.rows is None:
            if self.per_unit is None and self._own is None:
                check.refuse(
                    self._name, "max_rows or per_unit", "given where a unit may have several rows", None, self._ways
                )
        elif self.per_unit is not None:
            step = "Leave it out: a row has one value." if setting.row_unit else (
                "With max_rows rows count, with per_unit one value of each unit: leave one of the two out, "
                "and ask the questions of rows apart."
            )  # fmt: skip
            where = "where a row is the unit" if setting.row_unit else "with max_rows"
            check.refuse(self._name, "per_unit", f"left out {where}", self.per_unit, step)

    @property
    def _ways(self) -> str:
        return (
            "Write with_caps(..., max_rows=5) to count rows, at most 5 of a unit (1 where each has one row), or "
            "per_unit='sum' (or mean, min, max; with order='date' first, last) for one value of each unit."
        )

    def _about(self, column: object, setting: Setting) -> str:
        """Which values count."""
        if setting.row_unit:
            return str(column)
        if setting.rows is not None:
            return f"{column} of rows, at most {setting.rows} a {setting.who}"
        order = "" if self.order is None else f" by {self.order}"
        return f"each {setting.who}'s {HOW[self.per.how]} {column}{order}"

    @property
    def _counting(self) -> tuple[str, str]:
        """What is moved into range, and what does not count."""
        return ("sums of a unit", "missing values") if self.per.how == "sum" else ("values", "missing ones")

    def _counted(self, setting: Setting) -> list[str]:
        """How much of a unit counts."""
        if setting.rows is not None:
            return _capped(setting)
        order = "" if self.order is None else (
            f" by {self.order} (where that is the same, by value; rows without it do not count)"
        )  # fmt: skip
        taken = HOW[self.per.how] if self.per.how in ("mean", "sum") else f"{HOW[self.per.how]} of"
        return [f"a unit counts once in a group, with the {taken} its own values{order}", *_capped(setting)]

    def to_json(self) -> dict[str, Any]:
        said = {"per_unit": self.per_unit} if self.per_unit is not None else {}
        return said | ({"order": self.order.to_json()} if self.order is not None else {})


@dataclass(frozen=True, eq=False)
class Valued(OfValues):
    """A question about the values of a column inside public bounds; those of a unit's sum where that is the value."""

    column: Any
    bounds: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.column, str):
            object.__setattr__(self, "column", col(self.column))
        if not isinstance(self.column, Expression):
            check.refuse(self._name, "column", "a column's name or an expression", self.column, "", ParameterTypeError)
        given = self.bounds
        if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2:
            step = "As bounds=(0, 120): public, never taken from the data; suggest_bounds finds private ones."
            check.refuse(self._name, "bounds", "a pair (lower, upper)", given, step, ParameterTypeError)
        object.__setattr__(self, "bounds", tuple(given))
        with self._named():
            Sum(self.column, *self.bounds)  # refuses what cannot be bounds

    @property
    def label(self) -> str:
        return self.column.name if isinstance(self.column, Column) else str(self.column)

    def check(self, setting: Setting) -> None:
        with self._named():
            measure = Sum(self.column, *self.bounds, per=self.per)
            measure.check(setting.schema)
            measure.fixed(setting.caps)
        if self.per.how == "sum":
            _not_temporal(self, setting)
        super().check(setting)

    @property
    def pool(self) -> Pool:
        """The values that it is about."""
        return Pool(self.column, self.bounds[0], self.bounds[1], self.per)

    def size(self, setting: Setting) -> int | None:
        """How many values there are, where that is public."""
        return setting.sized(self.column, *([] if self.order is None else [self.order]))

    def whole(self, setting: Setting) -> bool:
        """Whether all values are whole numbers where the bounds are."""
        low, high = self.ends
        kinds = (Kind.INTEGER, Kind.WIDE, Kind.BOOLEAN)
        averaged = setting.rows is None and self.per.how == "mean"
        return not averaged and self.column.kind(setting.schema) in kinds and low.is_integer() and high.is_integer()

    def unit(self, setting: Setting) -> Unit:
        kind = self.column.kind(setting.schema)
        return Unit(kind, *self.bounds) if kind.temporal else Unit()

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds as numbers."""
        low, high = (to_number(literal_kind(b), plain(literal_kind(b), b)) for b in self.bounds)
        return float(low or 0.0), float(high or 0.0)

    def notes(self, setting: Setting) -> tuple[str, ...]:
        low, high = self.bounds
        what, missing = self._counting
        found = f"{what} below {low} count as {low}, above {high} as {high}; {missing} do not count"
        return found, *self._counted(setting)

    def words(self, setting: Setting) -> str:
        low, high = self.bounds
        return f"{self._name} of {self._about(self.column, setting)}, bounds {low} to {high}"

    def to_json(self) -> dict[str, Any]:
        described = {"ask": self._name, "column": self.column.to_json(), "bounds": [str(b) for b in self.bounds]}
        return described | super().to_json()


def _not_temporal(ask: Valued, setting: Setting) -> None:
    if ask.column.kind(setting.schema).temporal:
        step = "Ask for a mean or a quantile of dates and times."
        raise ParameterTypeError(f"{ask._name}: column must hold numbers; {ask.column} holds dates or times. {step}")


@dataclass(frozen=True, eq=False)
class SumOf(Valued):
    """The sum."""

    edges: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check.choice("sum", "edges", self.edges, EDGES)

    @property
    def _name(self) -> str:
        return "sum"

    def check(self, setting: Setting) -> None:
        super().check(setting)
        _not_temporal(self, setting)

    def _integral(self, setting: Setting) -> bool:
        """Whether the sum is a whole number."""
        furthest = max(map(abs, self.ends))
        return self.whole(setting) and furthest * setting.caps.values * setting.caps.limit < _MOST_WHOLE

    def _from(self, center: float) -> Sum:
        return Sum(self.column, self.bounds[0], self.bounds[1], center=center, per=self.per)

    def expected(self, part: Part, drawn: Drawn) -> str:
        if not isinstance(part, Values):
            return super().expected(part, drawn)
        low, high = self.ends
        middle = [(low + high) / 2.0] * (part.degree - 1)
        return f"error about {part.spread(drawn) * math.hypot(low, *middle, high):.4g}"

    def part(self, name: str, setting: Setting) -> Part:
        low, high = self.ends
        per = setting.caps.values
        integral = self._integral(setting)
        size = self.size(setting)
        if size is not None:
            return self._sized(name, size, integral)
        domain: Any = half_line(low, high)
        if math.isfinite(setting.most):
            domain = Interval(setting.most * min(low, 0.0), setting.most * max(high, 0.0))
        if integral:
            domain = Integers(domain.lower, domain.upper)
        measure = self._from(0.0)

        def value(caps: Caps, numbers: tuple[int, int]) -> float:
            return float(Fraction(numbers[1]) * Fraction(measure.fixed(caps).step))

        def limits(caps: Caps) -> tuple[float, float]:
            fixed = measure.fixed(caps)
            least, most = (per * x * fixed.step for x in (min(fixed.lowest, 0), max(fixed.highest, 0)))
            added, swapped = max(-least, most), most - least
            return (added, swapped) if integral else (rounded_up(added), rounded_up(swapped))

        return Cell(name, {"sum": measure}, domain, self.edges, value, limits)

    def _sized(self, name: str, size: int, integral: bool) -> Part:
        """Of a public number of values: what is above the lower bound varies, so one unit moves it by the range."""
        low, high = self.ends
        measure = self._from(low)
        ends = size * low, size * high

        def value(caps: Caps, numbers: tuple[int, int]) -> float:
            return float(size * Fraction(low) + Fraction(numbers[1]) * Fraction(measure.fixed(caps).step))

        def limits(caps: Caps) -> tuple[float, float]:
            fixed = measure.fixed(caps)
            moved = fixed.highest * fixed.step  # a value that was missing after all would count as the lower bound
            # Far from 0 the sum itself is rounded to float64.
            moved = moved if integral else rounded_up(moved) + math.ulp(max(map(abs, ends)))
            moved = min(moved, ends[1] - ends[0])
            return moved, moved

        domain: Any = Integers(*ends) if integral else Interval(*ends)
        return Cell(name, {"sum": measure}, domain, self.edges, value, limits)

    def read(self, part: Part, drawn: Drawn, raw: Any, setting: Setting) -> list[tuple[str, Answer]]:
        notes = self.notes(setting)
        low, high = self.ends
        if isinstance(part, Values):
            source: Any = FromCells(
                part.noise(drawn), tuple(raw), part.degree, "sum", low, high,
                most=setting.most, whole=self._integral(setting),
            )  # fmt: skip
            return [("", Answer(source.value(), source.valid, notes, source))]
        domain = part.domain  # type: ignore[attr-defined]
        value = int(raw) if domain.lattice else raw
        return [("", Answer(value, (domain.lower, domain.upper), notes, FromDraw(drawn.mechanism, raw)))]


@dataclass(frozen=True, eq=False)
class Moment(Valued):
    """A mean, a variance or a standard deviation.

    Where every unit certainly has one value and their number is public, the answer is drawn by itself; else from cells.
    """

    what: str
    edges: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check.choice(self._name, "edges", self.edges, EDGES)

    @property
    def _name(self) -> str:
        return self.what

    @property
    def _own(self) -> str | None:
        return "mean" if self.what == "mean" else None

    @property
    def label(self) -> str:
        return f"{self.what}({super().label})" if self.what != "mean" else super().label

    def check(self, setting: Setting) -> None:
        super().check(setting)
        if self.what != "mean":
            _not_temporal(self, setting)
        if self.edges != "auto" and self.values(setting) is not None:
            step = "It is for what is drawn by itself: counts, sums, and means of a public size with fill_null."
            check.refuse(self._name, "edges", "left out where the answer is read from cells", self.edges, step)

    def values(self, setting: Setting) -> tuple[Pool, int] | None:
        if self.size(setting) is not None:
            return None
        return self.pool, 1 if self.what == "mean" else 2

    def part(self, name: str, setting: Setting) -> Part:
        size = self.size(setting) or 1
        low, high = self.ends
        if self.what == "mean":
            measure = Sum(self.column, *self.bounds, per=self.per)

            def mean(caps: Caps, numbers: tuple[int, int]) -> float:
                fixed = measure.fixed(caps)
                n = max(size, numbers[0])  # so that the limit holds, even where the size is wrong
                return float(Fraction(fixed.center) + Fraction(numbers[1]) * Fraction(fixed.step) / n)

            # Far from 0 the mean itself is rounded to float64.
            limit = min(rounded_up((high - low) / size) + math.ulp(max(abs(low), abs(high))), high - low)
            return Cell(
                name, {"sum": measure}, Interval(low, high), self.edges, mean, lambda caps: (limit, limit)
            )  # fmt: skip
        sums = Sum(self.column, *self.bounds, per=self.per)
        squares = Squares(self.column, *self.bounds, per=self.per)

        def variance(caps: Caps, numbers: tuple[int, int], more: tuple[int, int]) -> float:
            step = Fraction(sums.fixed(caps).step)
            n = max(size, numbers[0])  # as above: of fewer values, as if the others were in the middle
            second = Fraction(more[1]) / Fraction(squares.shift(caps)) / n
            return float(max(second - (Fraction(numbers[1]) / n) ** 2, Fraction(0)) * step * step)

        most = (high - low) ** 2 / 4.0
        # The largest change of a variance when one of n values is swapped: (n - 1) / n^2 of the squared range.
        change = rounded_up(min((high - low) ** 2 * max(size - 1, 0) / size**2 + most * 2.0**-20 / size, most))
        change = min(change, most) if size > 1 else most
        parts = {"sum": sums, "squares": squares}
        return Cell(name, parts, Interval(0.0, most), self.edges, variance, lambda caps: (change, change))

    def expected(self, part: Part, drawn: Drawn) -> str:
        if not isinstance(part, Values):
            return super().expected(part, drawn)
        low, high = self.ends
        each = part.spread(drawn) * (high - low if self.what == "mean" else (high - low) ** 2)
        if self.what == "mean":
            return f"error about {0.75 * each:.4g} over the number of values"
        return f"error of the variance about {0.5 * each:.4g} over the number of values"

    def read(self, part: Part, drawn: Drawn, raw: Any, setting: Setting) -> list[tuple[str, Answer]]:
        low, high = self.ends
        notes, unit = self.notes(setting), self.unit(setting)
        most = (high - low) / 2.0 if self.what == "std" else (high - low) ** 2 / 4.0
        valid: tuple[Any, Any] = tuple(self.bounds) if self.what == "mean" else (0.0, most)
        if isinstance(part, Values):
            source: Any = FromCells(part.noise(drawn), tuple(raw), part.degree, self.what, low, high, unit)
            return [("", Answer(source.value(), valid, notes, source))]
        direct = _Direct(FromDraw(drawn.mechanism, raw), self.what, unit)
        return [("", Answer(direct.of(raw), valid, notes, direct))]


@dataclass(frozen=True, eq=False)
class _Direct:
    """An answer drawn by itself, shown in its own terms."""

    draw: FromDraw
    what: str
    unit: Unit

    def of(self, x: float) -> Any:
        return math.sqrt(max(x, 0.0)) if self.what == "std" else self.unit.back(x)

    def interval(self, level: float) -> tuple[Any, Any]:
        low, high = self.draw.interval(level)
        return self.of(low), self.of(high)


# ---------------------------------------------------------------- shares


@dataclass(frozen=True, eq=False)
class Share(OfValues):
    """The share of rows, or of units, that meet a condition."""

    condition: Any
    of: str = "rows"

    def __post_init__(self) -> None:
        super().__post_init__()
        check.choice("share", "of", self.of, ("rows", "units"))
        if self.of == "units" and self.per_unit is not None:
            step = "Leave one of the two out: a unit meets the condition, or a part of its rows does."
            check.refuse("share", "per_unit", "left out with of='units'", self.per_unit, step)
        with self._named():
            Meeting(self.condition)  # refuses what is no condition

    @property
    def _takes(self) -> Sequence[str]:
        return ("mean",)

    @property
    def _own(self) -> str | None:
        return "whether a row meets it" if self.of == "units" else None

    @property
    def _ways(self) -> str:
        return (
            "Write with_caps(..., max_rows=5) for the share of rows, at most 5 of a unit (1 where each has one row), "
            "of='units' for that of the units with such a row, or per_unit='mean' for the mean of their own shares."
        )

    @property
    def label(self) -> str:
        return f"share({self.condition})"

    def check(self, setting: Setting) -> None:
        with self._named():
            Meeting(self.condition).check(setting.schema)
        super().check(setting)

    def part(self, name: str, setting: Setting) -> Part:
        if self.of == "units":
            return Sides(name, UnitsMeeting(self.condition), Units())
        return Sides(name, Meeting(self.condition), Units() if setting.rows is None else Rows())

    def expected(self, part: Part, drawn: Drawn) -> str:
        return f"error about {0.75 * part.spread(drawn):.4g} over the number of {self.of}"

    def read(self, part: Part, drawn: Drawn, raw: Any, setting: Setting) -> list[tuple[str, Answer]]:
        source = FromCells(part.noise(drawn), tuple(raw), 1, "share")  # type: ignore[attr-defined]
        return [("", Answer(source.value(), (0.0, 1.0), self.notes(setting), source))]

    def notes(self, setting: Setting) -> tuple[str, ...]:
        found = ["where the condition has no truth value it is not met"]
        if self.of == "units":
            found.append("a unit meets it if one of its rows does")
        elif setting.rows is None:
            found.append("a unit counts once in a group, with the share of its own rows")
        return tuple(found + _capped(setting))

    def words(self, setting: Setting) -> str:
        if setting.row_unit:
            return f"share of rows where {self.condition}"
        rows = "" if setting.rows is None else f", at most {setting.rows} a {setting.who},"
        if self.of == "units":
            return f"share of units with a row{rows} where {self.condition}"
        share = f"share of rows{rows}" if setting.rows is not None else f"mean of each {setting.who}'s share of rows"
        return f"{share} where {self.condition}"

    def to_json(self) -> dict[str, Any]:
        return {"ask": "share", "condition": self.condition.to_json(), "of": self.of} | super().to_json()


# ---------------------------------------------------------------- quantiles


@dataclass(frozen=True, eq=False)
class Quantiles(Valued):
    """Quantiles: of whole numbers whole numbers, else the middle of a cell of a fine grid."""

    levels: Any
    level: float | None = 0.95
    cells: int = _CELLS
    what: str = "quantile"

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.levels if isinstance(self.levels, Sequence) else (self.levels,)
        if isinstance(self.levels, str) or not 1 <= len(given) <= 99:
            check.refuse(self._name, "levels", "numbers in [0, 1]", self.levels, "As 0.5, or [0.25, 0.5, 0.75].")
        numbers = [check.number(self._name, "levels", q, at_least=0.0, at_most=1.0) for q in given]
        found = tuple(Fraction(repr(q)) for q in numbers)
        if any(q.denominator > 10_000 for q in found) or len(set(found)) < len(found):
            check.refuse(self._name, "levels", "different, with four decimals at most", self.levels, "")
        object.__setattr__(self, "levels", tuple(sorted(found)))
        if self.level is not None:
            object.__setattr__(self, "level", check.level(self._name, self.level))
        object.__setattr__(self, "cells", check.whole(self._name, "cells", self.cells, at_least=2, at_most=2**20))

    @property
    def _name(self) -> str:
        return self.what

    @property
    def label(self) -> str:
        return f"{self.what}({super().label})"

    @property
    def suffixes(self) -> Sequence[str]:
        return [""] if len(self.levels) == 1 else [f" {float(q):g}" for q in self.levels]

    def _grid(self, setting: Setting) -> tuple[Grid, float, float, bool]:
        """The grid; the lower edge and the width of its cells; whether a cell stands for a whole number."""
        low, high = self.ends
        integral = self.whole(setting) and self.column.kind(setting.schema) is not Kind.BOOLEAN
        if integral and high - low < 2**16:
            count = int(high - low) + 1
            return Grid(self.column, low - 0.5, high + 0.5, count, per=self.per), low - 0.5, 1.0, True
        grid = Grid(self.column, self.bounds[0], self.bounds[1], self.cells, per=self.per)
        return grid, low, (high - low) / self.cells, False

    def expected(self, part: Part, drawn: Drawn) -> str:
        return f"error about {3.0 * part.spread(drawn):.3g} values in rank"

    def part(self, name: str, setting: Setting) -> Part:
        return Pick(name, self._grid(setting)[0], self.levels, self.level)

    def read(self, part: Part, drawn: Drawn, raw: Any, setting: Setting) -> list[tuple[str, Answer]]:
        _, start, width, integral = self._grid(setting)
        low, high = self.ends
        unit, notes = self.unit(setting), self.notes(setting)

        def edge(cell: float) -> Any:
            x = min(max(start + width * cell, low), high)
            return unit.back(x)

        def middle(cell: int) -> Any:
            x = min(max(start + width * (cell + 0.5), low), high)
            return round(x) if integral else unit.back(x)

        found: list[tuple[str, Answer]] = []
        # In order: sorting what was picked moves no answer further from what it stands for than the worst one was.
        answers = sorted(picks[0] for picks in raw)
        every = zip(self.levels, self.suffixes, answers, raw, drawn.mechanism, strict=True)
        for quantile, suffix, cell, picks, plan in every:
            ends = self._ends(part, quantile, picks, plan)
            lower, upper = (edge(ends[0]), edge(ends[1] + 1)) if ends else (self.bounds[0], self.bounds[1])
            value = middle(cell)
            if integral:
                lower, upper = math.ceil(lower), math.floor(upper)
            source = FromPick(min(lower, value), max(upper, value), self.level, tuple(self.bounds))
            found.append((suffix, Answer(value, tuple(self.bounds), notes, source)))
        return found

    def _ends(self, part: Part, quantile: Fraction, picks: Sequence[int], plan: Any) -> tuple[float, float] | None:
        """The cells between which the quantile lies; None where that cannot be said."""
        pickers, count = plan
        if self.level is None or not isinstance(part, Pick):
            return None
        least = part.trusted(count, picks[-1])
        last = part.grid.bins() - 1
        if quantile in (0, 1):
            far = part.reach(pickers[0])
            if least / 2.0 < far:
                return None
            return (0, picks[0]) if quantile == 0 else (picks[0], last)
        far = part.reach(pickers[1])
        low = picks[1] if least * float(quantile) >= far else 0
        high = picks[2] if least * float(1 - quantile) >= far else last
        return (low, high)

    def to_json(self) -> dict[str, Any]:
        more = {"levels": [str(q) for q in self.levels], "level": self.level, "cells": self.cells}
        return super().to_json() | more

    def notes(self, setting: Setting) -> tuple[str, ...]:
        found = list(super().notes(setting))
        if {0, 1} & set(self.levels):
            found.append("an extreme value cannot be told privately: a few values lie beyond the answer")
        return tuple(found)


# ---------------------------------------------------------------- histograms


@dataclass(frozen=True, eq=False)
class Histogram(OfValues):
    """How many values lie in each bin."""

    column: Any
    edges: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        with self._named():
            made = self._bins
        object.__setattr__(self, "column", made.expression)
        object.__setattr__(self, "edges", made.edges)

    @property
    def _bins(self) -> Bins:
        return Bins(self.column, self.edges, per=self.per)

    @property
    def label(self) -> str:
        return self.column.name if isinstance(self.column, Column) else str(self.column)

    def check(self, setting: Setting) -> None:
        with self._named():
            self._bins.check(setting.schema)
            self._bins.fixed(setting.caps)
        super().check(setting)

    def part(self, name: str, setting: Setting) -> Part:
        return Bars(name, self._bins)

    def read(self, part: Part, drawn: Drawn, raw: Any, setting: Setting) -> list[tuple[str, Answer]]:
        mechanism = part.one(drawn)  # type: ignore[attr-defined]
        notes, found = self.notes(setting), []
        for suffix, number in zip(self.suffixes, raw, strict=True):
            source = FromDraw(mechanism, int(number), setting.most)
            answer = Answer(int(min(number, setting.most)), (0, setting.most), notes, source)
            found.append((suffix, answer))
        return found

    @property
    def suffixes(self) -> Sequence[str]:
        return [f" {self.bin(i)}" for i in range(len(self.edges) - 1)]

    def bin(self, i: int) -> str:
        """The name of a bin: the first and last have what lies beyond the edges, too."""
        close = "]" if i == len(self.edges) - 2 else ")"
        return f"[{self.edges[i]}, {self.edges[i + 1]}{close}"

    def notes(self, setting: Setting) -> tuple[str, ...]:
        what, missing = self._counting
        found = f"{what} beyond the edges count in the first and last bin; {missing} do not count"
        return found, *self._counted(setting)

    def words(self, setting: Setting) -> str:
        return f"histogram of {self._about(self.column, setting)}, {len(self.edges) - 1} bins"

    def to_json(self) -> dict[str, Any]:
        described = {"ask": "histogram", "column": self.column.to_json(), "edges": [str(e) for e in self.edges]}
        return described | super().to_json()


# ---------------------------------------------------------------- for users


def count(*, edges: str = "auto", weight: float = 1.0) -> Aggregate:
    """The number of rows. Needs ``max_rows`` where the unit is a column."""
    return Count("rows", edges, weight=weight)


def count_units(*, edges: str = "auto", weight: float = 1.0) -> Aggregate:
    """The number of units (people)."""
    return Count("units", edges, weight=weight)


def sum_of(
    column: Any,
    bounds: Any = None,
    *,
    per_unit: str | None = None,
    order: Any = None,
    edges: str = "auto",
    weight: float = 1.0,
) -> Aggregate:
    """The sum of a column, of which values are moved into ``bounds``."""
    return SumOf(column, bounds, edges, weight=weight, per_unit=per_unit, order=order)


def mean(
    column: Any,
    bounds: Any = None,
    *,
    per_unit: str | None = None,
    order: Any = None,
    edges: str = "auto",
    weight: float = 1.0,
) -> Aggregate:
    """The mean of a column; always within ``bounds``."""
    return Moment(column, bounds, "mean", edges, weight=weight, per_unit=per_unit, order=order)


def variance(
    column: Any,
    bounds: Any = None,
    *,
    per_unit: str | None = None,
    order: Any = None,
    edges: str = "auto",
    weight: float = 1.0,
) -> Aggregate:
    """The (population) variance of a column; between 0 and a quarter of the squared range."""
    return Moment(column, bounds, "variance", edges, weight=weight, per_unit=per_unit, order=order)


def std(
    column: Any,
    bounds: Any = None,
    *,
    per_unit: str | None = None,
    order: Any = None,
    edges: str = "auto",
    weight: float = 1.0,
) -> Aggregate:
    """The (population) standard deviation of a column; between 0 and half the range."""
    return Moment(column, bounds, "std", edges, weight=weight, per_unit=per_unit, order=order)


def share(condition: Any, *, of: str = "rows", per_unit: str | None = None, weight: float = 1.0) -> Aggregate:
    """The share of rows (or ``of="units"``) that meet a condition, between 0 and 1."""
    return Share(condition, of, weight=weight, per_unit=per_unit)


def quantile(
    column: Any,
    q: float,
    bounds: Any = None,
    *,
    per_unit: str | None = None,
    order: Any = None,
    level: float | None = 0.95,
    cells: int = _CELLS,
    weight: float = 1.0,
) -> Aggregate:
    """A quantile of a column; always within ``bounds``.

    ``level`` is that of its interval, for which half of the budget is used; None for none.
    """
    return Quantiles(column, bounds, q, level, cells, weight=weight, per_unit=per_unit, order=order)


def quantiles(
    column: Any,
    qs: Any,
    bounds: Any = None,
    *,
    per_unit: str | None = None,
    order: Any = None,
    level: float | None = 0.95,
    cells: int = _CELLS,
    weight: float = 1.0,
) -> Aggregate:
    """Several quantiles of a column, in order."""
    return Quantiles(column, bounds, qs, level, cells, weight=weight, per_unit=per_unit, order=order)


def median(
    column: Any,
    bounds: Any = None,
    *,
    per_unit: str | None = None,
    order: Any = None,
    level: float | None = 0.95,
    cells: int = _CELLS,
    weight: float = 1.0,
) -> Aggregate:
    """The median of a column."""
    return Quantiles(column, bounds, 0.5, level, cells, "median", weight=weight, per_unit=per_unit, order=order)


def minimum(
    column: Any,
    bounds: Any = None,
    *,
    per_unit: str | None = None,
    order: Any = None,
    level: float | None = 0.95,
    cells: int = _CELLS,
    weight: float = 1.0,
) -> Aggregate:
    """A value that few values of a column lie below."""
    return Quantiles(column, bounds, 0.0, level, cells, "min", weight=weight, per_unit=per_unit, order=order)


def maximum(
    column: Any,
    bounds: Any = None,
    *,
    per_unit: str | None = None,
    order: Any = None,
    level: float | None = 0.95,
    cells: int = _CELLS,
    weight: float = 1.0,
) -> Aggregate:
    """A value that few values of a column lie above."""
    return Quantiles(column, bounds, 1.0, level, cells, "max", weight=weight, per_unit=per_unit, order=order)


def histogram(
    column: Any, edges: Any, *, per_unit: str | None = None, order: Any = None, weight: float = 1.0
) -> Aggregate:
    """How many values of a column lie in each bin."""
    return Histogram(column, edges, weight=weight, per_unit=per_unit, order=order)

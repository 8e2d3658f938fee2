"""What every source is asked: questions whose answers are stored, and every expression on every kind of column.

The answers to questions are ``answers.json``, which plain Python made of the known rows; those to expressions are what
:meth:`~inbounds.tables.Expression.evaluate` says of each row.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from inbounds.tables.compile import Compiler
from inbounds.tables.contract.rows import COLUMNS, known_rows, schema
from inbounds.tables.expressions import Expression, col
from inbounds.tables.kinds import Kind, to_number
from inbounds.tables.measures import Bins, Grid, Measure, Meeting, Rows, Squares, Sum, Units, UnitsMeeting
from inbounds.tables.per_unit import PerUnit
from inbounds.tables.request import Request, Tally, key_to_json
from inbounds.tables.source import Source

__all__ = [
    "CAPS",
    "SALT",
    "Asked",
    "ask_expressions",
    "expressions",
    "known",
    "nothing",
    "questions",
    "told",
    "written",
]

SALT = b"a salt that is known"
#: The caps between which the help with caps chooses.
CAPS = (1, 2, 3, 8)


@dataclass(frozen=True)
class Asked:
    """Something to ask: ``name`` is the row of the page that it counts for, ``about`` what tells it from others."""

    name: str
    about: str
    columns: frozenset[str]
    what: Any


# ---------------------------------------------------------------- questions

_DAYS = (dt.date(1900, 1, 1), dt.date(2100, 1, 1))
_VALUES: dict[str, tuple[Any, ...]] = {
    "whole": (-10, 10),
    "unsigned": (0, 2**62),
    "digits": (-(2**62), 2**62),
    "tiny": (-100, 100),
    "number": (-1, 3),
    "single": (-1, 3),
    "price": (0, 15),
    "money": (-1e9, 1e9 / 3),
    "flag": (0, 1),
    "day": _DAYS,
    "time": (dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
    "seconds": (dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
    "millis": (dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
    "nanos": (dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
    "moment": (dt.datetime(1900, 1, 1, tzinfo=dt.UTC), dt.datetime(2100, 1, 1, tzinfo=dt.UTC)),
    "void": (-1, 1),
    "nothing": (-1, 1),
}
_KEYS: dict[str, tuple[Any, ...]] = {
    "text": ("a", "A", "ä", "a ", 'q"uo,te\\', "c\rr", "c\r\nl", "absent"),
    "blank": ("", "a", "absent"),
    "zero": ("a\0b", "a", "a\0"),
    "whole": (0, 2**63 - 1, -(2**63), 2**53 + 1, 4),
    "unsigned": (2**64 - 1, 2**53 + 1, 4),
    "digits": (10**38 - 1, -1, 5),
    "flag": (True, False),
    "day": (dt.date.min, dt.date.max, dt.date(1970, 1, 1), dt.date(1970, 1, 2)),
}


def _request(measures: Mapping[str, Measure], **given: Any) -> Request:
    """As a caller of :class:`Request` may write it."""
    return Request(measures, **given)


def _per(how: str, order: str | None = None) -> PerUnit:
    return PerUnit(how, None if order is None else col(order))


def _requests() -> Iterator[tuple[str, str, Request]]:
    """Every question of a data set by its name, with what it is asked about."""
    wards: dict[str, Any] = {"by": "ward", "keys": ["x", "X", "absent"], "groups": 2}
    yield "count", "all rows", _request({"n": Rows()}, unit=None)
    yield "count", "some rows", _request({"n": Rows()}, unit=None, where=col("whole") > 0)
    yield "count", "rows of units", _request({"n": Rows()}, unit="who", rows=2)
    for unit in ("row", "who", "name", "text", "blank", "zero", "unsigned", "digits", "flag", "day"):
        yield "count_units", unit, _request({"n": Units()}, unit=unit)
    for unit in ("seconds", "millis", "time", "nanos", "moment", "void", "nothing"):
        yield "count_units", unit, _request({"n": Units()}, unit=unit)
    yield "count_units", "two columns", _request({"n": Units()}, unit=["who", "name"])
    condition = (col("whole") > 0) & (col("ward") == "x")
    yield "count_units", "some rows", _request({"n": Units()}, unit="who", where=condition)
    for name, bounds in _VALUES.items():
        made: dict[str, Measure] = {"s": Sum(name, *bounds), "q": Squares(name, *bounds)}
        yield "sum, mean, variance, std", name, _request(made, unit="who", rows=2)
        yield "sum, mean, variance, std", f"{name} of rows", _request(made, unit=None)
        places = Grid(name, bounds[0], bounds[1], 5)
        yield "quantiles", name, _request({"g": places}, unit="who", **wards)
    yield "share of rows", "a condition", _request({"m": Meeting(condition)}, unit="who", rows=2)
    yield "share of rows", "one value a unit", _request({"m": Meeting(condition)}, unit="who")
    yield "share of units", "a condition", _request({"m": UnitsMeeting(condition)}, unit="name")
    bins: dict[str, list[Any]] = {"whole": [-10, 0, 1, 5, 10], "day": [dt.date.min, *_DAYS, dt.date.max]}
    for name, edges in bins.items():
        yield "histogram", name, _request({"b": Bins(name, edges)}, unit="who", rows=2)
    for how in ("mean", "sum", "min", "max"):
        about: dict[str, Measure] = {c: Sum(c, *_VALUES[c], per=_per(how)) for c in ("whole", "number", "tiny")}
        yield f"per unit: {how}", "numbers", _request(about, unit="who")
        squares = Squares("price", 0, 15, per=_per(how))
        yield f"per unit: {how}", "decimals in groups", _request({"q": squares}, unit="name", **wards)
    for how in ("first", "last"):
        for order in ("day", "time", "moment", "whole", "number", "flag"):
            taken = Sum("tiny", -100, 100, per=_per(how, order))
            yield f"per unit: {how}", f"by {order}", _request({"s": taken}, unit="who")
    for name, keys in _KEYS.items():
        counted: dict[str, Measure] = {"n": Rows(), "u": Units()}
        yield "public groups", name, _request(counted, unit="row", by=name, keys=keys, groups=1, rows=1)
        yield "groups of the data", name, _request(counted, unit="row", by=name, groups=1, rows=1)
    yield "groups of the data", "two columns", _request({"u": Units()}, unit="who", by=["ward", "flag"], groups=3)
    yield "groups of the data", "years", _request({"u": Units()}, unit="row", by=col("time").year(), groups=1)
    counted = {"n": Rows(), "s": Sum("tiny", -100, 100)}
    for unit in ("who", "name"):
        yield "caps on rows", unit, _request(counted, unit=unit, rows=1)
        yield "caps on groups", unit, _request(counted, unit=unit, by="ward", groups=1, rows=2)
        yield "caps on groups", f"{unit}, public", _request(counted, unit=unit, rows=1, **{**wards, "groups": 1})
    edges = [*(-(2.0**k) for k in (40, 2, 0)), 0.0, *(2.0**k for k in (-8, 0, 2, 40))]
    for name in ("number", "whole", "unsigned"):
        yield "suggest_bounds", name, _request({"b": Bins(name, edges)}, unit="who", rows=1)
    yield "suggest_caps", "groups", _request({"u": Units()}, unit="name", by="ward", groups=1)


@cache
def questions() -> tuple[Asked, ...]:
    return tuple(Asked(name, about, _read(request), request) for name, about, request in _requests())


def _read(request: Request) -> frozenset[str]:
    parts = [*request.by, *(part for m in request.measures.values() for part in m.inputs())]
    parts += [] if request.where is None else [request.where]
    return frozenset(request.unit or ()).union(*(part.columns() for part in parts)) or frozenset({"row"})


def told(asked: Asked, source: Source) -> Any:
    """What a source says to a question, as it is stored."""
    request: Request = asked.what
    if asked.name == "suggest_caps":
        counts = Compiler(request, source, SALT).multiplicities(CAPS)
        return written(Tally((), (), {name: (tuple(counts[name]),) for name in counts}))
    return written(request.run(source, salt=SALT))


def written(tally: Tally) -> dict[str, Any]:
    """Exact numbers as JSON has them."""
    numbers = {name: [list(group) for group in groups] for name, groups in tally.numbers.items()}
    return {"keys": [key_to_json(key) for key in tally.keys], "units": list(tally.units), "numbers": numbers}


@cache
def answers() -> Mapping[str, Any]:
    """The known answer to each question, by its name and what it is about."""
    found: Mapping[str, Any] = json.loads(resources.files(__package__).joinpath("answers.json").read_text("utf-8"))
    return found


def nothing(request: Request) -> dict[str, Any]:
    """The answer where there are no rows."""
    keys = request.keys if request.keys is not None else () if request.by else ((),)
    none = {name: [[0] * len(m.numbers(request.caps)) for _ in keys] for name, m in request.measures.items()}
    return {"keys": [key_to_json(key) for key in keys], "units": [0] * len(keys), "numbers": none}


# ---------------------------------------------------------------- expressions


def _of_any(name: str, kind: Kind, some: Sequence[Any]) -> Iterator[tuple[str, Expression]]:
    c = col(name)
    yield "is_null", c.is_null()
    yield "~", ~c.is_null()
    for value in some:
        yield "==", c == value
        yield "!=", c != value
    yield "is_in", c.is_in(some[:2])
    yield "is_in", c.is_in([])
    if some:
        yield "fill_null", c.fill_null(some[0]) == some[0]
    if kind.numeric or kind.temporal:
        for value in some:
            yield "<, <=, >, >=", c < value
            yield "<, <=, >, >=", c <= value
            yield "<, <=, >, >=", c > value
            yield "<, <=, >, >=", c >= value
        yield "between", c.between(some[0], some[1])


def _of_numbers(name: str) -> Iterator[tuple[str, Expression]]:
    c, huge = col(name), 1.7976931348623157e308
    yield "+, -, *", c + 1
    yield "+, -, *", 1 - c
    yield "+, -, *", -c * 0.5
    yield "+, -, *", (c + huge) * huge > 0  # beyond float64 there is infinity
    yield "+, -, *", (c * huge * huge - c * huge * huge).is_null()  # NaN is null
    yield "+, -, *", c * 5e-324 * 5e-324 == 0
    for other in ("number", "whole", "unsigned"):
        yield "two columns", c == col(other)
        yield "two columns", c < col(other)
        yield "two columns", c + col(other)


def _of_times(name: str, kind: Kind) -> Iterator[tuple[str, Expression]]:
    c = col(name)
    for part in ("year", "month", "day", "weekday", *(("hour",) if kind is not Kind.DATE else ())):
        yield f"{part}()", getattr(c, part)()
    yield "two columns", c == col("moment" if kind is Kind.INSTANT else "time")
    yield "two columns", c >= col("moment" if kind is Kind.INSTANT else "day")


def _grammar() -> Iterator[tuple[str, Expression]]:
    for column in COLUMNS:
        # The values at the ends come first; more of them say little more.
        some = list(dict.fromkeys(v for v in column.values if v is not None and abs(_size(v)) < float("inf")))[:5]
        if not some:
            some = [0, 1]
        elif column.kind is Kind.REAL:
            some = [float(value) for value in some]
        elif column.kind is Kind.WIDE:
            some = [int(value) for value in some]
        yield from _of_any(column.name, column.kind, some)
        if column.kind.numeric:
            yield from _of_numbers(column.name)
        if column.kind.temporal:
            yield from _of_times(column.name, column.kind)
    flag, other = col("flag"), col("whole") > 0
    for left in (flag, ~flag, other, col("void") > 0):
        for right in (flag, other, col("text") == "a"):
            yield "&, |, ~", left & right
            yield "&, |, ~", left | right
            yield "&, |, ~", ~(left & ~right)


def _size(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


@cache
def expressions() -> tuple[Asked, ...]:
    found = {str(e): Asked(name, str(e), e.columns(), e) for name, e in _grammar()}
    return tuple(found.values())


def _measure(expression: Expression) -> Sum:
    if expression.kind(schema) is Kind.BOOLEAN:
        return Sum(expression, 0, 1, center=0.0)
    return Sum(expression, -(2.0**20), 2.0**20, center=0.0)


_ROWS = tuple(range(16))


def ask_expressions(asked: Sequence[Asked], source: Source) -> list[list[tuple[int, int]]]:
    """Of each expression: for each row, whether it has a value there, and which."""
    measures: dict[str, Measure] = {str(i): _measure(one.what) for i, one in enumerate(asked)}
    tally = _request(measures, unit=None, by="row", keys=_ROWS).run(source, salt=SALT)
    return [[(count, total) for count, total in tally[str(i)]] for i in range(len(asked))]


@cache
def known(asked: Asked) -> Any:
    """The known answer, as :func:`told` and :func:`ask_expressions` give them."""
    if isinstance(asked.what, Request):
        return answers()[f"{asked.name}: {asked.about}"]
    expression: Expression = asked.what
    kind, measure = expression.kind(schema), _measure(expression)
    fixed = measure.fixed(Request({"": measure}, unit=None).caps)
    numbers = [to_number(kind, expression.evaluate(row, schema)) for row in known_rows()]
    return [(0, 0) if number is None else (1, fixed.of(number)) for number in numbers]

"""Random pairs of tables that differ in one unit, and random questions to them."""

from __future__ import annotations

import datetime as dt
import enum
import functools
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from functools import partial
from math import inf, nan
from typing import Any

from hypothesis import strategies as st

import inbounds as ib
from inbounds import ask
from inbounds.tables import Plan, from_json
from tests.adversary.formats import FORMATS, Format, family, parameters

Row = tuple[Any, ...]


class Code(enum.IntEnum):
    """Whole numbers that are more than that to Python, and the same to an engine."""

    NONE, ONE, TWO, THREE, SEVEN = 0, 1, 2, 3, 7

    def __repr__(self) -> str:
        return f"Code({int(self)})"


class Word(str):
    """Text likewise."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return type(other) is Word and str.__eq__(self, other)

    def __repr__(self) -> str:
        return f"Word({str(self)!r})"


SCALES = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

# ---------------------------------------------------------------- a case


@dataclass(frozen=True)
class Question:
    """A question as data, so that a case can be printed as code. Expressions are in their JSON form."""

    unit: str | tuple[str, ...] | None
    asks: tuple[tuple[Any, ...], ...]
    goal: dict[str, float]
    neighbours: str = "add-remove"
    size: int | None = None
    max_rows: int | None = None
    max_groups: int | None = None
    where: Any = None
    derived: dict[str, Any] = field(default_factory=dict)
    by: tuple[Any, ...] = ()
    keys: tuple[Any, ...] | None = None
    suppress_below: int | None = None

    @property
    def finds(self) -> bool:
        """Whether the groups are found in the data."""
        return bool(self.by) and self.keys is None and not self.suggests

    @property
    def truncates(self) -> bool:
        """Whether a draw is truncated, which may cost less than the price that its scale was calibrated for."""
        return any(isinstance(part, dict) and part.get("edges") == "truncate" for ask in self.asks for part in ask)

    def options(self) -> dict[str, Any]:
        """Of ``ib.dataset``."""
        budget = ib.Budget(epsilon=1e4) if set(self.goal) == {"epsilon"} else ib.Budget(epsilon=1e4, delta=0.5)
        caps = {"max_rows": self.max_rows, "max_groups": self.max_groups if self.by else None}
        return {"unit": self.unit, "budget": budget, "neighbours": self.neighbours, "size": self.size, **caps}

    def view(self, data: Any) -> Any:
        """The data set with condition and groups."""
        if self.derived:
            data = data.with_columns(**{name: from_json(made) for name, made in self.derived.items()})
        if self.where is not None:
            data = data.where(from_json(self.where))
        if self.by:
            by = [from_json(group) for group in self.by]
            data = data.group_by(*by, keys=self.keys, suppress_below=self.suppress_below)
        return data

    def ask(self, view: Any) -> Any:
        """For a suggestion, which has no plan."""
        name, *given = self.asks[0]
        return getattr(view, name)(*map(from_json, given), **self.goal)

    @property
    def suggests(self) -> bool:
        return str(self.asks[0][0]).startswith("suggest")

    def plan(self, view: Any) -> Plan:
        asked = {f"q{i}": question(*one) for i, one in enumerate(self.asks)}
        plan: Plan = view.plan.select(asked, **self.goal)
        return plan


def question(name: str, *given: Any, **more: Any) -> Any:
    """One of the questions, from what a case has."""
    options = given[-1] if given and isinstance(given[-1], dict) and not {"op", "column"} & given[-1].keys() else {}
    parts = [from_json(g) if isinstance(g, dict) and {"op", "column"} & g.keys() else g for g in given]
    make = getattr(ask, name)
    known = {k: from_json(v) if k == "order" else v for k, v in options.items() if k in parameters(make)}
    return make(*(part for part in parts if part is not options), **known)


@dataclass(frozen=True)
class Case:
    """Two tables and a question. Cells are plain values: dates as days, times as counts of their unit since 1970.

    The rows of the unit in which the tables differ stand ``times`` over at a ``place`` among the others. ``crowd``
    others have one row each, and ``spread`` groups of their own if that is not 0.
    """

    format: str
    columns: dict[str, str]
    rows: tuple[Row, ...]
    one: tuple[Row, ...]
    other: tuple[Row, ...]
    question: Question
    place: int = 0
    times: int = 1
    crowd: int = 0
    spread: int = 0

    def table(self, side: str) -> list[Row]:
        """The rows of the ``"first"`` or ``"second"`` table, or of the ``"empty"`` one."""
        if side == "empty":
            return []
        mine = self.one if side == "first" else self.other
        at = min(self.place, len(self.rows))
        return [*self.rows[:at], *(mine * self.times), *self.rows[at:], *self._others()]

    def _others(self) -> list[Row]:
        """Units with one row each, of values that are there already; none is the one in which the tables differ."""
        ids = self.question.unit if isinstance(self.question.unit, tuple) else (self.question.unit,)
        pool = self.rows or self.one or self.other
        if not pool:
            return []
        spread = self.spread if family(self.columns.get("g", "null")) in ("whole", "text") else 0
        places = [i for i, name in enumerate(self.columns) if name in ids]
        mine = {tuple(marked(row[i]) for i in places) for row in (*self.one, *self.other)} if places else set()
        found = [
            tuple(
                another(self.columns[name], i)
                if name in ids
                else another(self.columns[name], i % spread)
                if spread and name == "g"
                else value
                for name, value in zip(self.columns, pool[i % len(pool)], strict=True)
            )
            for i in range(self.crowd)
        ]
        return [row for row in found if tuple(marked(row[i]) for i in places) not in mine]

    def code(self, seed: int | None = None) -> str:
        """As a test to be kept."""
        told = "" if seed is None else f"  # seed {seed}"
        return (
            "import datetime\nfrom decimal import Decimal\nfrom math import inf, nan\n\n"
            "from tests.adversary.cases import Case, Code, Question, Word\n"
            "from tests.adversary.search import judge\n\n\n"
            f"def test_found_by_the_adversary() -> None:{told}\n    case = {self!r}\n"
            "    assert judge(case).violations == []\n"
        )


def another(label: str, i: int) -> Any:
    """The i-th of many values of a type that no pool below has."""
    kind = family(label)
    if kind == "text":
        return f"person {i}"
    if kind == "real":
        return 1000.5 + i
    if kind == "truth":
        return None
    return 100 + i % 100 if label in ("int8", "uint8") else 1000 + i


# ---------------------------------------------------------------- values

WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "int128")
REAL = ("float32", "float64", "decimal128(9, 2)", "decimal128(38, 10)")
TIME = tuple(f"timestamp[{unit}]" for unit in SCALES)
INSTANT = ("timestamp[us, tz=UTC]", "timestamp[ns, tz=America/New_York]", "timestamp[ms, tz=UTC]")
EVERY = (*WHOLE, *REAL, "string", "bool", "date32[day]", *TIME, *INSTANT, "null")

TEXTS: tuple[Any, ...] = (
    *("", " ", "a", "A", "b", "a ", " a", "á", "a\u0301", "ß", "SS", "ı", "I", "İ"),
    *('"', 'a"b', '""', "'", "x,y", '"x,y"', "x;y", "x|y", "x\ty", "#", "\\", '\\"', "\\N"),
    *("l\nm", "l\rm", "l\r\nm", "\n", "\r", "a\x00b", "\x00", "\ufeffa", "\u2028", "\x1a"),
    *("NaN", "nan", "inf", "NULL", "null", "NA", "true", "1", "1.0", "01", "1e5", "2024-01-01", "0x10"),
    *("%", "_", "{}", "$1", "--", "; DROP TABLE t", "z" * 300, "日本", "\U0001f600"),
)
BYTES: tuple[Any, ...] = (b"\xff\xfe", b"a\xc3", b"\xed\xa0\x80", b"\x80")
#: What stands in a text file where a number or a date should.
WRONG: tuple[Any, ...] = (
    *("abc", "1.5", "2.5", "1e400", "-1e400", " 5", "5 ", "+7", "1_000", "1,5", "0x1F", "٣", "nan", "inf", "TRUE"),
    *("99999999999999999999", "2024-02-30", "12345-01-01", "2024-01-01 25:00", "24:00", '"', "'", "NaN", "1\n2"),
)


def ends(label: str) -> tuple[int, int]:
    bits = int(label.strip("uint"))
    return (0, 2**bits - 1) if label.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@functools.cache
def values(label: str) -> tuple[Any, ...]:
    """What is odd about a type."""
    kind = family(label)
    if kind == "whole":
        low, high = ends(label)
        found = (0, 1, 2, 3, 7, -1, -2, low, low + 1, high, high - 1, 2**53, 2**53 + 1, 2**63, 2**63 - 1, 2**31)
        return tuple(x for x in dict.fromkeys(found) if low <= x <= high)
    if label == "float32":
        return (0.0, -0.0, 1.0, 2.5, -3.0, nan, inf, -inf, 3.4028234663852886e38, 1.401298464324817e-45, 5.0)
    if label == "float64":
        return (
            *(0.0, -0.0, 1.0, 2.5, 5.0, -3.0, nan, inf, -inf, 1.7976931348623157e308, -1.7976931348623157e308),
            *(5e-324, -5e-324, 1e300, 2.0**53, 2.0**53 + 2, 0.1, 1e-200, 2.2250738585072014e-308),
        )
    if kind == "real":
        digits, scale = (9, 2) if label.startswith("decimal128(9") else (38, 10)
        most = Decimal(10**digits - 1).scaleb(-scale, Context(prec=80))
        return (Decimal(0), Decimal(1), Decimal("2.5"), Decimal("-3.25"), most, most.copy_negate(), Decimal("0.01"))
    if kind == "text":
        return TEXTS
    if kind == "truth":
        return (True, False)
    if kind == "date":
        return (0, 1, 59, 19_000, 19_001, -719_162, 2_932_896, -719_163, 2_932_897, 2**31 - 1, -(2**31) + 1, 11_016)
    if kind in ("time", "instant"):
        each = SCALES[label[10:12].rstrip("],")]
        days = tuple(d * 86_400 * each for d in values("date32[day]"))
        far = (2**63 - 1, -(2**63) + 1, 2**62, 1, -1, 1_700_000_000 * each + 1, 1_700_000_000 * each)
        return tuple(t for t in (*days, *far) if -(2**63) < t < 2**63)
    return (None,)


_CELLS: dict[tuple[str, str], st.SearchStrategy[Any]] = {}


def cells(label: str, where: Format) -> st.SearchStrategy[Any]:
    """A value of a column, as a format can carry it; made once, since checking a strategy takes long."""
    if (label, where.name) not in _CELLS:
        _CELLS[label, where.name] = _cells(label, where)
    return _CELLS[label, where.name]


def _cells(label: str, where: Format) -> st.SearchStrategy[Any]:
    kind = family(label)
    some: list[st.SearchStrategy[Any]] = [st.sampled_from(values(label))] * 3 + [st.none()]
    if kind == "whole":
        some.append(st.integers(*ends(label)))
    elif label == "float64":
        some.append(st.floats())
    elif kind == "text":
        some += [st.text(max_size=6).filter(lambda s: s.isprintable() or where.text), st.sampled_from(("a", "b"))]
        if where.bytes:
            some.append(st.sampled_from(BYTES + where.raw))
    if label.startswith("decimal") and where.digits:
        some.append(st.sampled_from((Decimal(10**30), Decimal(-(10**27)), Decimal(10) ** 28)))
    if kind in where.more:
        some.append(st.sampled_from(where.more[kind]))
    if where.loose and kind not in ("text", "null"):
        some.append(st.sampled_from(WRONG))
    return st.one_of(some).filter(lambda v: where.carries(label, v))


# ---------------------------------------------------------------- expressions, in their JSON form

CONSTANTS = (
    0,
    1,
    -1,
    2,
    5,
    0.5,
    -2.5,
    1e300,
    -1e300,
    1e308,
    1e-300,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
    2**64,
    5e-324,
    1e6,
)


class Grammar:
    """Expressions over some columns."""

    def __init__(self, columns: dict[str, str], pools: Mapping[str, Sequence[Any]]) -> None:
        self.columns, self.pools = columns, pools

    def named(self, *kinds: str) -> list[str]:
        return [name for name, label in self.columns.items() if family(label) in kinds]

    def column(self, *kinds: str) -> st.SearchStrategy[Any]:
        return st.sampled_from([{"column": name} for name in self.named(*kinds)])

    def number(self, deep: int = 2) -> st.SearchStrategy[Any]:
        """Something that holds numbers; it needs a column of numbers, dates or times."""
        some: list[st.SearchStrategy[Any]] = []
        if self.named("whole", "real", "null"):
            column = self.column("whole", "real", "null")
            some += [column, column]
            if self.named("real", "null"):
                filled = st.tuples(self.column("real", "null"), st.sampled_from(CONSTANTS))
                some.append(filled.map(lambda t: {"op": "fill_null", "of": [t[0], {"value": float(t[1])}]}))
            if self.named("whole"):
                filled = st.tuples(self.column("whole"), st.sampled_from((0, 1, 7, -1)))
                some.append(filled.map(lambda t: {"op": "fill_null", "of": [t[0], {"value": t[1]}]}))
        if self.named("date", "time", "instant"):
            part = st.sampled_from(("year", "month", "day", "weekday"))
            some.append(
                st.tuples(part, self.column("date", "time", "instant")).map(lambda t: {"op": t[0], "of": [t[1]]})
            )
        if deep and some:
            sides = st.one_of(
                self.number(deep - 1), self.number(0), st.sampled_from(CONSTANTS).map(lambda c: {"value": c})
            )
            pair = st.tuples(st.sampled_from(("+", "-", "*")), self.number(deep - 1), sides)
            some.append(pair.map(lambda t: {"op": t[0], "of": [t[1], t[2]]}))
        return st.one_of(some)

    def _compared(self, op: str, name: str, value: Any) -> Any:
        kind = family(self.columns[name])
        if kind == "date":
            day = key("date32[day]", value) or dt.date(1970, 1, 1)
            return {"op": op, "of": [{"column": name}, {"date": day.isoformat()}]}
        op = op if kind == "whole" else "=="
        return {"op": op, "of": [{"column": name}, {"value": value}]}

    def ordered(self) -> st.SearchStrategy[Any]:
        """A column of an order."""
        known = [n for n in self.columns if family(self.columns[n]) in ("real", "truth", "date", "time", "instant")]
        known += [n for n, label in self.columns.items() if label in WHOLE and label not in ("uint64", "int128")]
        exact = [name for name in known if not self.columns[name].startswith("decimal")]
        return st.sampled_from([{"column": name} for name in exact or self.columns])

    @property
    def counts(self) -> bool:
        """Whether there is anything that holds numbers."""
        return bool(self.named("whole", "real", "null", "date", "time", "instant"))

    def condition(self, deep: int = 2) -> st.SearchStrategy[Any]:
        compared = st.sampled_from(("==", "!=", "<", "<=", ">", ">="))
        any_column = st.sampled_from([{"column": name} for name in self.columns])
        some: list[st.SearchStrategy[Any]] = [any_column.map(lambda c: {"op": "is_null", "of": [c]})]
        if self.counts:
            sides = st.one_of(st.sampled_from(CONSTANTS).map(lambda c: {"value": c}), self.number(1))
            pair = st.tuples(compared, self.number(2), sides)
            some += [pair.map(lambda t: {"op": t[0], "of": [t[1], t[2]]})] * 3
        here = [(n, v) for n in self.named("whole", "text", "date") for v in self.pools[n] if type(v) in (int, str)]
        if here:  # which a file may be asked for
            found = st.tuples(st.sampled_from(("==", "==", "<", ">=")), st.sampled_from(here))
            some += [found.map(lambda t: self._compared(t[0], *t[1]))] * 2
        if self.named("truth"):
            some.append(self.column("truth"))
        if self.named("text"):
            text = st.sampled_from(TEXTS)
            same = st.tuples(st.sampled_from(("==", "!=")), self.column("text"), text)
            some.append(same.map(lambda t: {"op": t[0], "of": [t[1], {"value": t[2]}]}))
            among = st.tuples(self.column("text"), st.lists(text, max_size=3))
            some.append(among.map(lambda t: {"op": "is_in", "of": [t[0]], "values": [{"value": v} for v in t[1]]}))
        if self.named("whole"):
            among = st.tuples(self.column("whole"), st.lists(st.sampled_from((0, 1, 2**53, 2**64)), max_size=3))
            some.append(among.map(lambda t: {"op": "is_in", "of": [t[0]], "values": [{"value": v} for v in t[1]]}))
        if self.named("date", "time"):
            day = st.sampled_from(("1970-01-01", "2022-01-08", "0001-01-01", "9999-12-31"))
            dated = st.tuples(compared, self.column("date", "time"), day)
            some.append(dated.map(lambda t: {"op": t[0], "of": [t[1], {"date": t[2]}]}))
        if deep:
            pair = st.tuples(st.sampled_from(("and", "or")), self.condition(deep - 1), self.condition(deep - 1))
            some.append(pair.map(lambda t: {"op": t[0], "of": [t[1], t[2]]}))
            some.append(self.condition(deep - 1).map(lambda c: {"op": "not", "of": [c]}))
        return st.one_of(some)


# ---------------------------------------------------------------- questions

#: What a case is about, half of the time: a mean of a public number of values, units that look alike, one question by
#: itself, what a unit makes of its rows, which of them come first, one sum, suggestions, groups that are found.
THEMES = (*("any",) * 5, "size", "alike", "alike", "alone", "per unit", "order", "sum", "suggestions", "found")
#: Themes that are about the values of x0.
_ABOUT_X0 = ("size", "alike", "per unit", "order", "sum")

BOUNDS = (
    (0, 1),
    (0, 10),
    (-5, 5),
    (-10, 1),
    (2, 10),
    (1, 3),
    (0.0, 1e12),
    (-1e30, 1e30),
    (2.0**53, 2.0**53 + 4),
    (-3, 0),
)
ALIKE = ("sum", "mean", "variance", "std", "min", "max")
DATES = ((dt.date(1960, 1, 1), dt.date(2030, 1, 1)), (dt.date(2000, 1, 1), dt.date(2022, 1, 10)))
GOALS = ({"epsilon": 1.0}, {"epsilon": 1.0}, {"epsilon": 0.1}, {"epsilon": 7.0}, {"rho": 0.1})
WITH_DELTA = ({"epsilon": 1.0, "delta": 1e-6}, {"epsilon": 5.0, "delta": 1e-3}, {"epsilon": 20.0, "delta": 1e-6})


@st.composite
def asks(draw: Any, grammar: Grammar, rows: bool, theme: str = "any") -> tuple[Any, ...]:
    """One question; ``rows`` says whether rows may be counted."""
    names = ["count_units", "share"] + ["count"] * rows
    if grammar.counts:
        names += [
            "sum",
            "mean",
            "mean",
            "variance",
            "std",
            "quantile",
            "quantiles",
            "median",
            "min",
            "max",
            "histogram",
        ]
    if grammar.named("date"):
        names.append("dates")
    if grammar.counts and theme.startswith(_ABOUT_X0):
        names = {"size": ["mean", "mean", "variance", "std"], "sum": ["sum"]}.get(
            theme, ["mean", "histogram", "median", "variance"]
        )
    name = draw(st.sampled_from(names))
    per = {"per_unit": draw(st.sampled_from(("mean", "sum", "sum", "min", "max", "last", "last")))} if not rows else {}
    if per and theme.startswith("alike"):  # where two units are taken for one, the row of the other no longer counts
        per = {"per_unit": theme.split()[-1]}
    if per and (per["per_unit"] == "last" or theme == "order"):
        order = {"column": "x1"} if theme == "order" else draw(grammar.ordered())
        per |= {"per_unit": draw(st.sampled_from(("first", "last"))), "order": order}
    if name in ("count", "count_units"):
        return (name,)
    if name == "share":
        return (name, draw(grammar.condition(1)), {"of": draw(st.sampled_from(("rows", "units"))) if rows else "units"})
    if name == "dates":
        return (
            draw(st.sampled_from(("mean", "median"))),
            draw(grammar.column("date")),
            draw(st.sampled_from(DATES)),
            per,
        )
    cells = {"cells": draw(st.sampled_from((32, 32, 100))), "level": draw(st.sampled_from((None, 0.95)))}
    column, bounds = draw(grammar.number(draw(st.sampled_from((0, 0, 1))))), draw(st.sampled_from(BOUNDS))
    if theme.startswith(_ABOUT_X0) and "x0" in grammar.named("real"):
        column = {"column": "x0"}
    if theme == "sum":  # most of them further from 0 below it than above
        bounds = draw(st.sampled_from(((-10, 1), (-3, 0), (-5, 5), (2, 10))))
    if theme == "size":  # every unit has a value for certain
        whole = grammar.columns.get(column.get("column", ""), "") in WHOLE
        column = {"op": "fill_null", "of": [column, {"value": draw(st.sampled_from((0, 5) if whole else (0.0, 5.0)))}]}
    if name == "histogram":
        edges = draw(st.sampled_from(([0, 1], [0, 1, 2, 5], [-1e9, 0, 1e9], [-1, 0.5, 1, 3])))
        return (name, column, edges, per)
    if name in ("quantile", "quantiles"):
        q = draw(st.sampled_from((0.5, 0.25, 0.9))) if name == "quantile" else [0.1, 0.5]
        return (
            name,
            column,
            q,
            bounds,
            {**cells, **per},
        )
    if name in ("median", "min", "max"):
        return (
            name,
            column,
            bounds,
            {**cells, **per},
        )
    if name == "sum":
        per |= {"edges": draw(st.sampled_from(("auto", "auto", "clamp", "denoise", "truncate")))}
    return (name, column, bounds, per)


def _twins(draw: Any, columns: dict[str, str], ids: dict[str, Any]) -> tuple[tuple[Any, ...], list[tuple[Any, ...]]]:
    """Somebody, and others whose ids are alike: in all columns, or in one of several."""
    others = {name: alike(columns[name], value) for name, value in ids.items()}
    if None in ids.values():  # who may be taken for nobody
        someone = tuple(draw(st.sampled_from(others[name] or (0,))) if v is None else v for name, v in ids.items())
        return someone, [tuple(ids.values())]
    if len(ids) > 1 and draw(st.booleans()):
        name = draw(st.sampled_from(list(ids)))
        return tuple(ids.values()), [tuple((ids | {name: other}).values()) for other in others[name]]
    return tuple(ids.values()), list(zip(*others.values(), strict=False))


@st.composite
def cases(draw: Any, names: Sequence[str] = tuple(FORMATS)) -> Case:
    """A pair of neighbouring tables in a format, and a question."""
    where = FORMATS[draw(st.sampled_from(list(names)))]
    theme = draw(st.sampled_from(THEMES))
    allowed = [label for label in EVERY if where.holds(label)]
    ids = [
        t
        for t in ("int64", "string", "string", "timestamp[ns]", "timestamp[ns]", "uint64", "date32[day]", "int8")
        if t in allowed
    ]
    groups = [t for t in ("int64", "string", "string", "bool", "date32[day]", "uint64") if t in allowed]
    kind = draw(st.sampled_from(("column", "column", "column", "columns", "row")))
    kind = (
        "column"
        if theme in ("per unit", "order")
        else draw(st.sampled_from(("column", "columns")))
        if theme == "alike"
        else kind
    )
    ids = [t for t in ALIKE_IDS if t in allowed] or ids if theme == "alike" else ids
    columns = {"u": draw(st.sampled_from(ids)), "g": draw(st.sampled_from(groups))}
    if kind == "columns":
        columns["u2"] = draw(st.sampled_from(ids))
    valued = [*allowed, *["float64"] * 8]  # which have most that is odd
    columns |= {f"x{i}": draw(st.sampled_from(valued)) for i in range(draw(st.integers(1, 2)))}
    columns["x0"] = "float64" if theme in _ABOUT_X0 and "float64" in allowed else columns["x0"]
    columns |= {"x1": "int64" if "int64" in allowed else columns["x0"]} if theme == "order" else {}
    unit: Any = {"column": "u", "columns": ("u", "u2"), "row": None}[kind]
    own = () if unit is None else ("u", "u2") if kind == "columns" else ("u",)
    pools = {
        name: draw(st.lists(cells(label, where), min_size=1 + (name in "ug"), max_size=3))
        for name, label in columns.items()
    }
    pools |= {name: [v for v in pools[name] if is_an_id(columns[name], v)] or [None] for name in own}
    pools["g"].sort(key=lambda v: v is None)
    if draw(st.integers(0, 3)) == 0:  # groups that an engine could take for one
        pools["g"] += [twin for twin in alike(columns["g"], pools["g"][0]) if where.carries(columns["g"], twin)]
    plain = draw(st.integers(0, 3)) == 0
    if plain:  # a table of one value and holes in it, where whoever comes with another one changes what is known of it
        for name, label in columns.items():
            if name.startswith("x") and family(label) in ("whole", "real"):
                pools[name] = [draw(st.sampled_from(ordinary(label))), nan if label.startswith("float") else None]
    someone = tuple(draw(cells(columns[name], where).filter(partial(someones, columns[name]))) for name in own)
    few = 0 if draw(st.integers(0, 7)) == 0 else 8  # no row but those of the one unit
    rows = draw(
        st.lists(
            st.tuples(*(st.sampled_from(pool) for pool in pools.values())),
            min_size=min(4 * plain, few),
            max_size=few,
        )
    )
    opposite: dict[str, Any] = {}
    low = draw(st.integers(0, 1))
    if own and (theme == "alike" or draw(st.integers(0, 3)) == 0):  # next to somebody most like and most unlike
        for name in own:  # letters have cases; and where neighbours are furthest from what a float64 holds
            if columns[name] in ALIKE_IDS and (theme == "alike" or draw(st.booleans())):
                pools[name][0] = draw(st.sampled_from(ALIKE_IDS[columns[name]]))
        someone, twins = _twins(draw, columns, {name: pools[name][0] for name in own})
        if all(where.carries(columns[name], v) for ids in (someone, *twins) for name, v in zip(own, ids, strict=True)):
            far = {name: furthest(label) for name, label in columns.items() if name.startswith("x")}
            opposite = {name: e[low] for name, e in far.items() if e}
            beside = {name: pools[name][0] for name in columns} | {name: e[1 - low] for name, e in far.items() if e}
            rows += [tuple({**beside, **dict(zip(own, ids, strict=True))}.values()) for ids in twins]
    at = [list(columns).index(name) for name in own]
    rows = [row for row in rows if not own or tuple(map(marked, (row[i] for i in at))) != tuple(map(marked, someone))]
    grouped = theme == "found" or (draw(st.integers(0, 2)) > (theme == "alike") and theme != "size")
    if theme == "found":  # somebody is in every group, and there are two at least
        pools["g"] += [another(columns["g"], i) for i in range(2)]
        rows += [tuple(({name: pool[0] for name, pool in pools.items()} | {"g": g}).values()) for g in pools["g"]]
        rows = [row for row in rows if not own or tuple(row[i] for i in at) != someone]
    asked = draw(
        questions(columns, pools, unit, grouped, f"alike {('min', 'max')[low]}" if theme == "alike" else theme)
    )

    apart = {name: e for name, label in columns.items() if name.startswith("x") and (e := furthest(label))}
    if theme != "sum" and draw(st.booleans()):  # neither is extreme
        apart = {}
    turned = draw(st.integers(0, 1))  # somebody who is added is at either end

    def theirs(end: int) -> tuple[Row, ...]:
        instead = {name: e[end ^ turned] for name, e in apart.items()} | (opposite if end else {})
        own_pools = pools
        if split and len(pools["g"]) > 1:  # nobody is in the groups of both
            own_pools = pools | {"g": pools["g"][end::2]}
        ids = dict(zip(own, someone, strict=True))
        return draw(of_one_unit(columns, own_pools, ids, where, instead, several=theme == "order"))

    split = asked.neighbours == "substitute" and draw(st.booleans())
    one = () if asked.neighbours == "add-remove" else theirs(0)
    other = theirs(1)
    if draw(st.booleans()):
        one, other = other, one
    size = len({tuple(map(marked, (row[i] for i in at))) for row in rows} | {()}) if asked.size else None
    if size and draw(st.integers(0, 2)) == 0:  # what is said is public, and may be wrong
        size += draw(st.sampled_from((1, 90)))
    place, times = draw(st.integers(0, 8)), draw(st.sampled_from((1, 1, 2, 5, 40, 300))) if own else 1
    crowd = draw(st.sampled_from((0, 0, 0, 0, 0, 0, 5, 5, 60, 60, 400, 3000)))
    crowd = max(crowd, 60) if theme == "found" else crowd
    crowd = draw(st.sampled_from((0, 4, 4, 9, 19))) if not few else crowd  # so that one more is as many as a limit asks
    spread = draw(st.sampled_from((0, 0, 0, 2, 12, 30)))
    asked = replace(asked, size=size)
    return Case(where.name, columns, tuple(rows), one, other, asked, place, times, crowd, spread)


#: Ids that have most that are like them.
ALIKE_IDS = dict.fromkeys(("int64", "uint64"), (2**53, 2**53 + 1, 2**63 - 9)) | {
    "string": ("a", "á", "ß", "1", "patient-1"),
    "timestamp[ns]": (1_700_000_000_000_000_001, 1),
}


def is_an_id(label: str, value: Any) -> bool:
    """Whether units are told apart as the value is: text where something else should be may stand for that."""
    text = isinstance(value, str) and family(label) != "text"
    return not text or not (any(c.isdigit() for c in value) or value.casefold() in ("true", "false"))


def someones(label: str, value: Any) -> bool:
    return value is not None and is_an_id(label, value)


def alike(label: str, value: Any) -> tuple[Any, ...]:
    """Others that an engine could take for the same value."""
    if value is None:  # what could stand for it
        stands: dict[str, tuple[Any, ...]] = {"text": ("", "None", "null", "nan"), "real": (0.0,), "truth": (False,)}
        return stands.get(family(label), (0,))
    if isinstance(value, str):
        if family(label) != "text":
            return ()
        forms = (value.swapcase(), f"{value} ", unicodedata.normalize("NFD", value), f"{value[:-1]}2", f"0{value}")
        return tuple(other for other in dict.fromkeys(forms) if other != value)
    if isinstance(value, int) and not isinstance(value, bool):
        steps = (1, -1, 1000, -1000) if label.startswith("timestamp") else (1, -1, 2**32)
        low, high = ends(label) if label in WHOLE else (-(2**63) + 1, 2**63 - 1)
        return tuple(value + step for step in steps if low <= value + step <= high)
    return ()


def ordinary(label: str) -> tuple[Any, ...]:
    """Values of numbers that are not odd."""
    return (1, 5, 2) if label in WHOLE else (1.0, 5.0, 2.5) if label.startswith("float") else (Decimal(1), Decimal(5))


def furthest(label: str) -> tuple[Any, ...]:
    """A low and a high number of a type, beyond all bounds below where it has them."""
    if label in WHOLE:
        return ends(label)
    if label.startswith("float"):
        return (-inf, inf)
    return (values(label)[5], values(label)[4]) if label.startswith("decimal") else ()


def marked(value: Any) -> tuple[str, Any]:
    """Values that are the same as bytes are equal, others are not."""
    return type(value).__name__, repr(value)


@st.composite
def of_one_unit(
    draw: Any,
    columns: dict[str, str],
    pools: dict[str, list[Any]],
    ids: dict[str, Any],
    where: Format,
    instead: dict[str, Any],
    *,
    several: bool,
) -> Any:
    """The rows of one unit; one row where each row is a unit. ``instead`` has values of which some are taken."""

    def cell(name: str) -> Any:
        if name in instead and draw(st.integers(0, 3)):
            return instead[name]
        return draw(st.one_of(st.sampled_from(pools[name]), cells(columns[name], where)))

    if not ids:
        return (tuple(cell(name) for name in columns),)
    if several or draw(st.integers(0, 3)) == 0:
        count = draw(st.integers(1 + several, 4))
        return tuple(tuple(ids[name] if name in ids else cell(name) for name in columns) for _ in range(count))
    same = {name: cell(name) for name in columns}  # in every group
    return tuple(tuple({**same, "g": group, **ids}[name] for name in columns) for group in dict.fromkeys(pools["g"]))


@st.composite
def questions(
    draw: Any, columns: dict[str, str], pools: dict[str, list[Any]], unit: Any, grouped: bool, theme: str
) -> Question:
    grammar = Grammar(columns, pools)
    max_rows = draw(st.sampled_from((1, 2, 3, 40, None, None))) if unit is not None else None
    max_rows = None if theme in ("per unit", "order") else max_rows
    max_rows = draw(st.sampled_from((1, None, None))) if unit is not None and theme.startswith("alike") else max_rows
    neighbours = draw(st.sampled_from(("add-remove", "add-remove" if theme != "found" else "substitute", "substitute")))
    neighbours = "substitute" if theme == "size" else neighbours
    by: tuple[Any, ...] = ()
    keys: Any = None
    if grouped:
        by = ({"column": "g"},)
        if family(columns["g"]) == "date" and draw(st.booleans()):
            by = ({"op": "year", "of": [{"column": "g"}]},)
            keys = draw(st.sampled_from(((1970, 2022), (1, 9999), (2022,), None)))
        elif theme != "found" and draw(st.sampled_from((True, True, False))):
            there = [key(columns["g"], value) for value in pools["g"]]
            more = [key(columns["g"], draw(st.sampled_from(values(columns["g"]))))]
            keys = tuple(dict.fromkeys(k for k in (*there, *more) if k is not None)) or None
            if keys and draw(st.integers(0, 5)) == 0:  # once more, in another dress
                keys += tuple(Word(k) for k in keys if type(k) is str)[:1]
                keys += tuple(Code(k) for k in keys if type(k) is int and k in set(Code))[:1]
            elif keys and draw(st.integers(0, 11)) == 0:
                keys += keys
    finds = bool(by) and keys is None
    goal = draw(st.sampled_from(WITH_DELTA if finds else (*GOALS, WITH_DELTA[0])))
    derived = {}
    if grammar.counts and draw(st.integers(0, 4)) == 0:
        derived = {"made": draw(grammar.number(2))}
    known = grammar
    count = 1 if theme in ("alone", "order", "sum") else draw(st.sampled_from((1, 2, 3, 4)))
    rows = unit is None or max_rows is not None
    asked = tuple(draw(asks(known, rows, "any" if i else theme)) for i in range(count))
    if count > 1 and draw(st.booleans()):  # of the same column, in other bounds or another way
        about = next((one[1] for one in asked if len(one) > 2 and one[0] not in ("share", "histogram")), None)
        asked = tuple((one[0], about, *one[2:]) if about and one[0] in ALIKE else one for one in asked)
    if derived and theme not in ("size", "alone", "order", "sum"):
        made = ("mean", {"column": "made"}, draw(st.sampled_from(BOUNDS)), {} if rows else {"per_unit": "mean"})
        asked = (*asked, made)
    if theme == "suggestions":
        asked, goal = (("suggest_caps",),), {"epsilon": 1.0}
        if grammar.counts and (unit is None or draw(st.booleans())):
            asked = (("suggest_bounds", draw(grammar.number(1))),)
    return Question(
        unit=unit,
        asks=asked,
        goal=dict(goal),
        neighbours=neighbours,
        size=1 if theme == "size" or (neighbours == "substitute" and draw(st.booleans())) else None,
        max_rows=max_rows,
        max_groups=draw(st.sampled_from((1, 2, 3))) if by and unit is not None else None,
        where=draw(grammar.condition())
        if not theme.startswith(("size", "alike")) and draw(st.integers(0, 2)) == 0
        else None,
        derived=derived,
        by=by,
        keys=keys,
        suppress_below=draw(st.sampled_from((None, None, 5, 5))) if by else None,
    )


def key(label: str, value: Any) -> Any:
    """A value of a column as a public key, where it can be one."""
    kind = family(label)
    if value is None or isinstance(value, bytes) or (kind != "text" and isinstance(value, str)):
        return None
    if kind == "date":
        return dt.date(1970, 1, 1) + dt.timedelta(days=value) if -719_162 <= value <= 2_932_896 else None
    return value

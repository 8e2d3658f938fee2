"""A frozen description of what to count and sum, checked before anything is read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from types import MappingProxyType
from typing import Any

from inbounds import _checks as check
from inbounds.errors import ParameterError, ParameterTypeError
from inbounds.sampling.entropy import pool
from inbounds.tables.compile import Compiler
from inbounds.tables.expressions import Expression, col
from inbounds.tables.fixed import Caps
from inbounds.tables.kinds import LONGEST, Kind, Schema, find, fits_text, literal_kind, ordinary, shielded
from inbounds.tables.measures import Measure, Valued
from inbounds.tables.source import Source

__all__ = ["MOST", "Request", "Tally", "column_names", "fresh_salt", "key_from_json", "key_to_json", "public_keys"]

Key = tuple[Any, ...]

#: The largest caps.
MOST = {"max_groups": 2**31, "max_rows": 2**20}

_KEYS = (Kind.INTEGER, Kind.WIDE, Kind.TEXT, Kind.BOOLEAN, Kind.DATE, Kind.NULL)
_UNITS = (*_KEYS, Kind.DATETIME, Kind.INSTANT)
_WHOLE = "Where types says what it holds, declare it integer or wide; in pandas use astype('Int64')."


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """Exact numbers, not yet private: for mechanisms, never for people.

    Attributes
    ----------
    keys : tuple of tuples
        The groups: the public keys in their order, or those found in the data, sorted; ``((),)`` without groups.
    units : tuple of int
        The units kept in each group.
    numbers : mapping
        For the name of each measure: a tuple of whole numbers for each group (see the measures).
    """

    keys: tuple[Key, ...]
    units: tuple[int, ...]
    numbers: Mapping[str, tuple[tuple[int, ...], ...]]

    def __getitem__(self, name: str) -> tuple[tuple[int, ...], ...]:
        return self.numbers[name]

    def __repr__(self) -> str:
        return f"<Tally of {', '.join(self.numbers)}: exact numbers, not shown>"


@dataclass(frozen=True, eq=False)
class Request:
    """What to count and sum, of whom, where, and how much of one unit counts. Touches no data until :meth:`run`.

    Parameters
    ----------
    measures : mapping of str to Measure
        By names of your own.
    unit : str, sequence of str or None
        The columns that identify a unit of privacy; None where each row is one.
    by : sequence of str or Expression
        What makes a group: whole numbers, text, truth values or dates.
    keys : sequence of tuples, optional
        The public groups: each is answered, found or not. With one column, bare values will do. None, with ``by``: the
        groups of the data, which are **not public**.
    where : Expression, optional
        Rows to keep.
    groups : int, optional
        In [1, 2^31]: the groups of a unit that are kept. Needed with ``by`` and ``unit``, unless there are no more keys
        than that.
    rows : int, optional
        In [1, 2^20]: the rows of a unit that are kept in a group. None for one value, which
        each measure's ``per`` takes.
    limit : int
        In [2^20, 2^40]. No group has more units than this and no unit has more rows in a group: a physical limit, like
        memory. Beyond it a query fails rather than overflow.
    at_least : int
        With groups of the data: groups of fewer units are not collected.
    """

    measures: Mapping[str, Measure]
    unit: tuple[str, ...] | None
    by: tuple[Expression, ...] = ()
    keys: tuple[Key, ...] | None = None
    where: Expression | None = None
    groups: int | None = None
    rows: int | None = None
    limit: int = 2**33
    at_least: int = 1
    caps: Caps = field(init=False, repr=False)

    def __post_init__(self) -> None:
        settle = object.__setattr__
        settle(self, "measures", _named(self.measures))
        settle(self, "unit", None if self.unit is None else column_names("Request", "unit", self.unit))
        settle(self, "by", _groups(self.by))
        if self.keys is not None:
            settle(self, "keys", public_keys(self.keys, len(self.by)))
        if self.where is not None and not isinstance(self.where, Expression):
            step = 'Write it with col, as col("age") >= 18.'
            check.refuse("Request", "where", "a condition", self.where, step, ParameterTypeError)
        settle(self, "limit", check.whole("Request", "limit", self.limit, at_least=2**20, at_most=2**40))
        settle(self, "at_least", check.whole("Request", "at_least", self.at_least, at_least=1, at_most=2**40))
        self._settle_caps()
        for measure in self.measures.values():
            measure.numbers(self.caps)

    def __reduce__(self) -> tuple[Any, ...]:
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        return partial(Request, **given | {"measures": dict(self.measures)}), ()

    def _settle_caps(self) -> None:
        if self.unit is None:
            for name in ("groups", "rows"):
                if getattr(self, name) not in (None, 1):
                    step = "Name the unit's columns, or leave the caps out."
                    check.refuse("Request", name, "1 where a row is the unit", getattr(self, name), step)
            object.__setattr__(self, "rows", 1)
        for name, most in (("groups", MOST["max_groups"]), ("rows", MOST["max_rows"])):
            value = getattr(self, name)
            if value is not None:
                step = "Pass the most that may count of one unit."
                value = check.whole("Request", name, value, at_least=1, at_most=most, next_step=step)
                object.__setattr__(self, name, value)
        if not self.by or self.unit is None:
            object.__setattr__(self, "groups", 1)
        elif self.groups is None:
            step = "Pass the most groups that one unit may count in."
            check.refuse("Request", "groups", "a whole number of at least 1 with groups", None, step)
        for name, measure in self.measures.items():
            if self.rows is not None:
                if isinstance(measure, Valued) and measure.per.how != "mean":
                    step = "Leave rows out."
                    check.refuse("Request", "per", f"left out where rows count ({name!r})", measure.per.how, step)
            elif measure.per_row:
                step = "Pass rows, the most rows of a unit that count in a group; or count Units."
                check.refuse("Request", "rows", f"a whole number of at least 1 to count rows ({name!r})", None, step)
        object.__setattr__(self, "caps", Caps(self.rows, self.limit))

    def check(self, schema: Schema) -> None:
        """Refuse missing columns and wrong types; reads nothing."""
        for name in self.unit or ():
            kind = find("unit", name, schema)
            if kind not in _UNITS:
                step = _WHOLE if kind is Kind.REAL else "Convert the column, as to text."
                raise ParameterTypeError(
                    f"unit: {name!r} must hold whole numbers, text, truth values, dates or times; it holds {kind}. "
                    + step
                )
        for expression in self.by:
            kind = expression.kind(schema)
            if kind not in _KEYS:
                raise ParameterTypeError(
                    f"by: {expression} must hold whole numbers, text, truth values or dates; it holds {kind}. "
                    + (
                        f"{_WHOLE} Or compare a number, as x >= 0.5."
                        if kind is Kind.REAL
                        else "Take a part of a time, as year()."
                    )
                )
        kinds = [expression.kind(schema) for expression in self.by]
        for key in self.keys or ():
            for value, kind, expression in zip(key, kinds, self.by, strict=True):
                given = literal_kind(value)
                if kind not in (given, Kind.NULL) and not {given, kind} <= {Kind.INTEGER, Kind.WIDE}:
                    raise ParameterTypeError(
                        f"keys: those of {expression} must be {kind}, which it holds; got {value!r}, of {given}."
                    )
        if self.where is not None and self.where.kind(schema) is not Kind.BOOLEAN:
            raise ParameterTypeError(f"where: {self.where} must be a condition; it holds {self.where.kind(schema)}.")
        for measure in self.measures.values():
            measure.check(schema)

    def rehearse(self, source: Source) -> None:
        """Refuse what :meth:`check` does, and try the queries where there are no rows: what fails, fails now."""
        self.check(source.schema)
        shielded("building the query", lambda: Compiler(self, source.paper(), None).rehearse(), debug=source.debug)

    def contribution(self, name: str) -> tuple[tuple[int, int], ...]:
        """For each number of a measure, the least and most that one unit contributes in one group.

        A unit contributes in ``groups`` groups at most. Of a histogram, all bins of a group together get ``rows`` (or
        1) at most.
        """
        return self.measures[name].numbers(self.caps)

    def run(self, source: Source, *, salt: bytes | None = None) -> Tally:
        """The exact numbers. A salt is drawn; giving one is for tests, which repeat a choice of rows."""
        self.check(source.schema)
        return Tally(*Compiler(self, source, fresh_salt() if salt is None else salt).answers())

    def sql(self, source: Source) -> str:
        """The queries that :meth:`run` makes as SQL, for people, written where there are no rows. Without the salt."""
        self.check(source.schema)
        paper = source.writing()
        return shielded(
            "writing the query",
            lambda: Compiler(self, Source(paper, source.debug), None).text(paper),
            debug=source.debug,
        )


def fresh_salt() -> bytes:
    """What decides which rows of a unit count: drawn for each run."""
    return b"".join(pool.word().to_bytes(8, "big") for _ in range(4))


def _named(measures: object) -> Mapping[str, Measure]:
    if not isinstance(measures, Mapping) or not measures:
        check.refuse("Request", "measures", "a mapping of names to measures", measures, "", ParameterTypeError)
    for name, measure in measures.items():
        if not isinstance(name, str) or not isinstance(measure, Measure):
            check.refuse("Request", "measures", "a mapping of names to measures", measure, "", ParameterTypeError)
    return MappingProxyType(dict(measures))


def column_names(what: str, name: str, names: object) -> tuple[str, ...]:
    given = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, list | tuple) else ()
    if not given or not all(isinstance(n, str) and n for n in given) or len(set(given)) < len(given):
        check.refuse(what, name, "a column's name, or several that differ", names, "", ParameterTypeError)
    return given


def _groups(by: object) -> tuple[Expression, ...]:
    given = (by,) if isinstance(by, str | Expression) else by
    if not isinstance(given, Sequence) or not all(isinstance(g, str | Expression) for g in given):
        check.refuse("Request", "by", "columns or expressions", by, "", ParameterTypeError)
    return tuple(col(group) if isinstance(group, str) else group for group in given)


def public_keys(keys: object, width: int, what: str = "Request") -> tuple[Key, ...]:
    if width == 0:
        check.refuse(what, "keys", "left out without by", keys, "")
    if isinstance(keys, str | bytes | Mapping | set | frozenset) or not isinstance(keys, Iterable):
        step = "A set has no order of its own; sort it." if isinstance(keys, set | frozenset) else ""
        check.refuse(what, "keys", "a list of groups", keys, step, ParameterTypeError)
    if hasattr(keys, "columns"):
        step = "As list(frame.itertuples(index=False, name=None)), if the groups are public."
        check.refuse(what, "keys", "a list of groups", type(keys).__name__, step, ParameterTypeError)
    found = []
    for key in keys:
        parts = tuple(key) if isinstance(key, tuple | list) else (key,)
        if len(parts) != width:
            check.refuse(what, "keys", f"groups of {width} value{'s' * (width > 1)}", key, "")
        found.append(tuple(_key(part, what) for part in parts))
    if not found:
        check.refuse(what, "keys", "at least one group", keys, "")
    shapes = {tuple((type(part), part) for part in parts) for parts in found}
    if len(shapes) < len(found):
        check.refuse(what, "keys", "different groups", keys, "A group was given twice.")
    return tuple(found)


def _key(value: Any, what: str) -> Any:
    """A part of a key; those that stand for the same value are equal."""
    value = ordinary(value)
    if literal_kind(value) not in _KEYS:
        needs = "whole numbers, text, truth values or dates"
        step = "Fill missing groups with fill_null." if value is None else ""
        check.refuse(what, "keys", needs, value, step, ParameterTypeError)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ParameterError(f"{what}: keys must be text that can be written in UTF-8.") from None
        if not fits_text(value):
            step = "Longer text in a table counts as missing."
            check.refuse(what, "keys", f"text of {LONGEST:,} bytes at most", f"{len(value):,} letters", step)
    return value


def key_to_json(key: Key) -> list[Any]:
    """A group, of what JSON has; dates are told from texts, and large numbers keep their digits."""

    def encoded(part: Any) -> Any:
        if isinstance(part, dt.date):
            return {"date": part.isoformat()}
        return {"whole": str(part)} if type(part) is int and abs(part) > 2**53 else part

    return [encoded(part) for part in key]


def key_from_json(encoded: Sequence[Any]) -> Key:
    """What :func:`key_to_json` wrote."""

    def decoded(part: Any) -> Any:
        if isinstance(part, dict):
            return dt.date.fromisoformat(part["date"]) if "date" in part else int(part["whole"])
        return part

    return tuple(decoded(part) for part in encoded)

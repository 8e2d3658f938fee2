"""What a column holds, and the one form in which every engine is asked about it.

Engines differ in types, time zones, NaN and infinite dates. So each column is first brought to a plain form, the same
everywhere: whole numbers as int64, other numbers as float64 without NaN, text, truth values, dates as days and times
as microseconds since 1970-01-01 (UTC where there is a zone). What the plain form cannot hold is null: NaN, and dates
outside the years 1 to 9999, and text of more than 64 KiB.
"""

from __future__ import annotations

import datetime as dt
import difflib
import importlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeVar

from inbounds.errors import InboundsError, MissingColumn, MissingExtra, QueryFailed

__all__ = ["LONGEST", "Hidden", "Kind", "Schema", "find", "ordinary", "plain", "some", "to_number"]

T = TypeVar("T")

#: The most bytes of a text, in UTF-8. So a row has its value or none whatever memory there is, and however many others
#: have text as long.
LONGEST = 2**16


class Kind(StrEnum):
    """What a column holds. The value is the word used in messages."""

    INTEGER = "whole numbers"  # as int64
    WIDE = "wide whole numbers"  # more than int64 holds; as text, in digits
    REAL = "numbers"  # as float64, NaN as null; decimal fractions as the nearest float64
    BOOLEAN = "truth values"
    TEXT = "text"  # of LONGEST bytes at most
    DATE = "dates"  # as days since 1970-01-01, int64
    DATETIME = "times"  # as microseconds since 1970-01-01 00:00, int64
    INSTANT = "times with a zone"  # as microseconds since 1970-01-01 00:00 UTC, int64
    NULL = "nothing but nulls"  # as float64; numbers that are missing, and units or groups that nobody is in
    OTHER = "values of a type that is not supported"

    @property
    def numeric(self) -> bool:
        return self in (Kind.INTEGER, Kind.WIDE, Kind.REAL, Kind.NULL)

    @property
    def real(self) -> bool:
        """Whether the plain form is float64."""
        return self in (Kind.REAL, Kind.NULL)

    @property
    def temporal(self) -> bool:
        return self in (Kind.DATE, Kind.DATETIME, Kind.INSTANT)


#: The public facts about a table: its columns, in order, and what they hold.
Schema = Mapping[str, Kind]


class Hidden(Mapping[str, Kind]):
    """Columns that can be asked for by name while nothing tells the names, but for those that the user gave.

    Of a file whose first line may be a row of somebody.
    """

    def __init__(self, known: Schema, given: Collection[str]) -> None:
        self._known, self._given = known, tuple(name for name in known if name in given)

    def __getitem__(self, name: str) -> Kind:
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __repr__(self) -> str:
        return f"<columns {dict(self)!r} and others, whose names are not shown: pass header=True to see them>"

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def some(self) -> str:
        """A column, for a query that needs none."""
        return next(iter(self._known))


def some(schema: Schema) -> str:
    """A column, for a query that needs none: of a supported type if there is one."""
    return schema.some() if isinstance(schema, Hidden) else min(schema, key=lambda name: schema[name] is Kind.OTHER)


DAY = 86_400_000_000  # microseconds
_EPOCH = dt.datetime(1970, 1, 1)
FIRST_DAY = (dt.date.min - _EPOCH.date()).days
LAST_DAY = (dt.date.max - _EPOCH.date()).days
FIRST, LAST = FIRST_DAY * DAY, LAST_DAY * DAY + DAY - 1  # microseconds
LARGEST_INTEGER = 2**63 - 1
_LEAST_INTEGER = -(2**63)


def fits(value: int) -> bool:
    return _LEAST_INTEGER <= value <= LARGEST_INTEGER


def fits_text(value: str) -> bool:
    return len(value.encode("utf-8", "surrogatepass")) <= LONGEST


def days(date: dt.date) -> int:
    return (date - _EPOCH.date()).days


def microseconds(time: dt.datetime) -> int:
    """Since 1970-01-01 00:00; of a time with a zone, in UTC."""
    # Not through astimezone, which fails where UTC has the year 0 or 10000.
    since = time.replace(tzinfo=None) - _EPOCH - (time.utcoffset() or dt.timedelta())
    return since // dt.timedelta(microseconds=1)


def plain(kind: Kind, value: Any) -> Any:
    """A Python value of a column in its plain form (wide whole numbers as int), or None."""
    if value is None:
        return None
    if kind.real:
        number = float(value)
        return None if math.isnan(number) else number
    if kind in (Kind.INTEGER, Kind.WIDE):
        return int(value)
    if kind is Kind.DATE:
        return days(value)
    if kind in (Kind.DATETIME, Kind.INSTANT):
        return microseconds(value)
    if kind is Kind.TEXT:
        return value if fits_text(value) else None
    return value


def to_number(kind: Kind, value: Any) -> float | None:
    """A plain value as the number that is summed: dates in days, times in seconds, truth as 0 and 1."""
    if value is None:
        return None
    return float(value) / 1e6 if kind in (Kind.DATETIME, Kind.INSTANT) else float(value)


def ordinary(value: Any) -> Any:
    """A value given by a user as one of Python's own types, where it is of a type made from them, or of NumPy.

    So what it does when it is compared or written is what Python does, and an enumeration's member is its number.
    """
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        found = value.item()
        if type(found) is int and getattr(getattr(value, "dtype", None), "kind", "") in ("M", "m"):
            return value  # a time of NumPy that Python has none of is no number
        value = found
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int.__index__(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.date(value.year, value.month, value.day)
    return value


def literal_kind(value: object) -> Kind:
    """What a Python value given by a user is; OTHER for what has no place in a condition."""
    if isinstance(value, bool):
        return Kind.BOOLEAN
    if isinstance(value, int):
        # Beyond float64 there is nothing to compare with.
        return Kind.INTEGER if fits(value) else Kind.WIDE if abs(value) < 2**1023 else Kind.OTHER
    if isinstance(value, Decimal) and value.is_nan():
        return Kind.OTHER
    if isinstance(value, float | Decimal):
        return Kind.REAL if math.isfinite(value) else Kind.OTHER
    if isinstance(value, str):
        return Kind.TEXT
    if isinstance(value, dt.datetime):
        if value != value or not FIRST <= microseconds(value) <= LAST:  # pandas' NaT is a datetime
            return Kind.OTHER
        return Kind.DATETIME if value.utcoffset() is None else Kind.INSTANT
    if isinstance(value, dt.date):
        return Kind.DATE
    return Kind.OTHER


def find(what: str, name: str, schema: Schema) -> Kind:
    """The kind of a column; a missing one is an error that names its nearest neighbours."""
    if name in schema:
        return schema[name]
    folded = {column.casefold(): column for column in schema}
    if isinstance(schema, Hidden):
        raise MissingColumn(
            f"{what}: column must be in the first line of the file; {name!r} is not. Pass header=True if that line has "
            "names: then the message shows them. Pass header=False and types= if it has none, and delimiter= if it is "
            "not a comma that stands between them."
        )
    near = difflib.get_close_matches(name.casefold(), folded, n=3)
    hint = ", ".join(repr(folded[column]) for column in near)
    columns = ", ".join(repr(column) for column in list(schema)[:10]) + (", ..." if len(schema) > 10 else "")
    advice = f"Did you mean {hint}?" if near else f"The columns are {columns}."
    raise MissingColumn(f"{what}: column must be one of the table's; got {name!r}. {advice}")


def extra(module: str, name: str = "query") -> Any:
    """A package of an extra, imported when it is first needed."""
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        package = module.split(".")[0]
        wanted = package if package in ("pandas", "polars") else f"inbounds[{name}]"  # no extra brings these
        raise MissingExtra(f"query: {package} is not installed. Install {wanted}.") from problem


def shielded(doing: str, call: Callable[[], T], *, debug: bool = False) -> T:
    """What ``call`` returns. An engine's error may quote values of the table, so it is replaced by one that does not.

    The new error is raised after the old one is gone: neither its cause nor its context leads to the old message.
    """
    kept: Exception | None = None
    try:
        return call()
    except InboundsError:
        raise
    except Exception as problem:
        name = type(problem).__name__
        kept = problem if debug else None
    raise QueryFailed(
        f"query: the engine failed while {doing} ({name}); details are withheld since they may show data. "
        "Open the source with debug=True to keep them in the error's engine_error.",
        engine_error=kept,
    )

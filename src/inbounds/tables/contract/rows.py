"""The known rows: of every type a column with the values that files, frames, databases and engines disagree about.

What a column is known to hold are plain Python values, None for missing. Where a source can carry more than they say,
such as NaN, dates of no calendar, or bytes that are no text, that is in ``odd``, and counts as missing too.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from inbounds.tables.kinds import LONGEST, Kind, Schema, extra, plain

__all__ = ["COLUMNS", "NAMES", "Column", "arrow_table", "known_rows", "schema", "words"]


@dataclass(frozen=True)
class Column:
    """A column of the known rows.

    Attributes
    ----------
    type : str
        One of :data:`_TYPES`.
    values : sequence
        One for each row.
    odd : mapping of int to bytes, int or float
        For some rows whose value is None: what Arrow stores there if the source can carry it.
    more : str
        What sets it apart from other columns of the type.
    """

    name: str
    type: str
    values: Sequence[Any]
    odd: Mapping[int, Any] = field(default_factory=dict)
    more: str = ""

    @property
    def label(self) -> str:
        """What it is on the page of what is supported."""
        return self.type + self.more

    @property
    def kind(self) -> Kind:
        kind: Kind = _TYPES[self.type][0]
        return kind

    @property
    def arrow(self) -> Any:
        """The type of Arrow."""
        _, make, *given = _TYPES[self.type]
        return getattr(extra("pyarrow"), make)(*given)

    def stored(self, odd: bool) -> list[Any]:
        """The values as Arrow stores them: text as bytes, dates and times as whole numbers."""
        return [self.odd.get(i) if value is None and odd else self._bits(value) for i, value in enumerate(self.values)]

    def _bits(self, value: Any) -> Any:
        if isinstance(value, str):
            return value.encode()
        if value is not None and self.kind.temporal:
            each, per = _UNITS.get(getattr(self.arrow, "unit", ""), (1, 1))
            return plain(self.kind, value) * each // per
        return value

    def array(self, odd: bool) -> Any:
        """The values in Arrow's type."""
        arrow = extra("pyarrow")
        bits = {Kind.TEXT: arrow.binary(), Kind.DATE: arrow.int32(), Kind.DATETIME: arrow.int64()}
        given = bits.get(Kind.DATETIME if self.kind is Kind.INSTANT else self.kind, self.arrow)
        return arrow.array(self.stored(odd), given).view(self.arrow)


_UNITS = {"s": (1, 1_000_000), "ms": (1, 1000), "ns": (1000, 1)}
_TYPES: dict[str, tuple[Any, ...]] = {
    "int64": (Kind.INTEGER, "int64"),
    "int8": (Kind.INTEGER, "int8"),
    "uint64": (Kind.WIDE, "uint64"),
    "decimal(38, 0)": (Kind.WIDE, "decimal128", 38, 0),
    "float64": (Kind.REAL, "float64"),
    "float32": (Kind.REAL, "float32"),
    "decimal(9, 2)": (Kind.REAL, "decimal128", 9, 2),
    "decimal(38, 6)": (Kind.REAL, "decimal128", 38, 6),
    "bool": (Kind.BOOLEAN, "bool_"),
    "text": (Kind.TEXT, "string"),
    "date": (Kind.DATE, "date32"),
    "time [s]": (Kind.DATETIME, "timestamp", "s"),
    "time [ms]": (Kind.DATETIME, "timestamp", "ms"),
    "time [us]": (Kind.DATETIME, "timestamp", "us"),
    "time [ns]": (Kind.DATETIME, "timestamp", "ns"),
    "time with a zone": (Kind.INSTANT, "timestamp", "us", "Europe/Berlin"),
    "null": (Kind.NULL, "null"),
}

_LARGEST = 1.7976931348623157e308
_LEAST, _MOST = -(2**63), 2**63 - 1
_FIRST, _LAST = dt.datetime.min, dt.datetime.max
_FAR = {14: 2**31 - 1, 15: -(2**31) + 1}  # days; DuckDB's infinities
_FAR_TIMES = {14: _MOST, 15: _LEAST + 1}  # likewise
_LONG = {14: b"b" * (LONGEST + 1)}
_BROKEN = {15: b"a\xff\xfe", 14: b"\xed\xa0\x80"}  # no UTF-8


def _times(*odd: dt.datetime) -> list[dt.datetime | None]:
    """Fifteen ordinary times, around the epoch, leap days and the ends of years, to whole seconds."""
    common = [
        dt.datetime(1970, 1, 1),
        dt.datetime(1969, 12, 31, 23, 59, 59),
        dt.datetime(2000, 2, 29, 12),
        dt.datetime(1900, 2, 28, 23),
        dt.datetime(1900, 3, 1),
        dt.datetime(2024, 12, 30, 1, 2, 3),
        dt.datetime(2024, 3, 10, 2, 30),  # left out by summer time in New York
        dt.datetime(2023, 10, 29, 1, 30),  # twice in Berlin
        dt.datetime(2024, 3, 31, 2, 30),  # left out in Berlin
        None,
    ]
    rest = [dt.datetime(2001, 1, 1)] * (4 - len(odd))
    return [*common, *odd, *rest, None, None]


def _zoned(values: Iterable[dt.datetime | None]) -> list[dt.datetime | None]:
    return [None if value is None else value.replace(tzinfo=dt.UTC) for value in values]


def _cents(*values: str) -> list[Decimal | None]:
    return [Decimal(value) for value in values] + [None] * (16 - len(values))


_FINE = dt.datetime(2262, 4, 11, 23, 47, 16, 854_775), dt.datetime(1677, 9, 21, 0, 12, 43, 145_225)
_ENDS = _FIRST, _LAST, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(1582, 10, 10, 7, 8, 9, 10)

COLUMNS = (
    Column("row", "int64", range(16)),
    Column("who", "int64", [1, 1, 1, 2, 2, _MOST, _MOST, _LEAST, _LEAST, _LEAST, _LEAST, 5, None, 5, 7, 1]),
    Column("name", "text", [*"aaAAA", "ä", "ä", *["a\u0308"] * 4, "b", "b", "B", None, "b "], _LONG),
    Column("ward", "text", ["x", "X", "x", "y", "x", "y", "y", "x ", "X", "x", "x", None, "y", "y", "x", "x"]),
    Column("whole", "int64", [0, 1, -1, _MOST, _LEAST, None, 7, 2**53, 2**53 + 1, -(2**53) - 1, 2, 3, 5, 10, -7, None]),
    Column("tiny", "int8", [-128, 127, 0, -1, None, *range(1, 12)]),
    Column("unsigned", "uint64", [0, 1, 2**64 - 1, 2**64 - 2, 2**63, 2**53 + 1, None, *range(3, 12)]),
    Column(
        "digits",
        "decimal(38, 0)",
        [*map(Decimal, (10**38 - 1, 1 - 10**38, 0, 2**64, 2**63, -1)), None, *map(Decimal, range(1, 10))],
    ),
    Column(
        "number",
        "float64",
        [0.0, -0.0, 5e-324, -5e-324, _LARGEST, -_LARGEST, math.inf, -math.inf]
        + [0.1, 2.5, 1e-300, 2.0**53, 1.0, 0.30000000000000004]
        + [None] * 2,
        {15: math.nan},
    ),
    Column(
        "single",
        "float32",
        [
            -0.0,
            0.10000000149011612,
            3.3999999521443642e38,
            1.401298464324817e-45,
            math.inf,
            -math.inf,
            16_777_216.0,
            None,
        ]
        + [1.5] * 7
        + [None],
        {15: math.nan},
    ),
    Column("price", "decimal(9, 2)", _cents("0.01", "-9999999.99", "0", "1", "0.07", "12.30", "9999999.99", "0.1")),
    Column(
        "money",
        "decimal(38, 6)",
        _cents("12345678901234567890.123456", "0.1", "-0.000001", "9007199254740993", "0.3", "1e20"),
    ),
    Column("flag", "bool", [True, False, None, True, True, False, None, False] * 2),
    Column(
        "text",
        "text",
        ["a", "A", "ä", "a\u0308", "å", "a\u030a", "a ", " a", 'q"uo,te\\', "c\rr", "l\nf", "c\r\nl", "null", "'"]
        + [None] * 2,
        _BROKEN,
    ),
    Column("blank", "text", ["", "a", None, " ", ""] + ["b"] * 11, more=", empty"),
    Column("zero", "text", ["a\0b", "a", "a\0", "\0", None] + ["a\0b"] * 11, more=" with the character 0"),
    Column("day", "date", [None if t is None else t.date() for t in _times(*_ENDS)], _FAR),
    Column("seconds", "time [s]", _times(_FIRST, _LAST.replace(microsecond=0))),
    Column("millis", "time [ms]", _times(_FIRST, _LAST.replace(microsecond=999_000))),
    Column("time", "time [us]", _times(*_ENDS), _FAR_TIMES),
    Column("nanos", "time [ns]", _times(*_FINE)),
    Column("moment", "time with a zone", _zoned(_times(*_ENDS)), _FAR_TIMES),
    Column("void", "int64", [None] * 16, more=", all null"),
    Column("nothing", "null", [None] * 16),
)
NAMES = tuple(column.name for column in COLUMNS)
schema: Schema = {column.name: column.kind for column in COLUMNS}


def known_rows() -> list[dict[str, Any]]:
    """The rows as every source must give them."""
    return [dict(zip(NAMES, values, strict=True)) for values in zip(*(c.values for c in COLUMNS), strict=True)]


def arrow_table(columns: Sequence[Column], odd: Iterable[str]) -> Any:
    """The columns as a table of Arrow; those of ``odd`` with their odd values."""
    names = set(odd)
    return extra("pyarrow").table({c.name: c.array(c.name in names) for c in columns})


def words(column: Column, odd: bool) -> list[bytes | None]:
    """The values as they are written in text: by ISO 8601, in digits, and as Python writes floats."""
    found = [None if value is None else _word(value) for value in column.values]
    for row, value in column.odd.items() if odd else ():
        found[row] = value if isinstance(value, bytes) else b"NaN" if column.kind is Kind.REAL else b"infinity"
    return found


def _word(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(" ").encode()
    if isinstance(value, Decimal):
        return format(value, "f").encode()
    return (value if isinstance(value, str) else str(value)).encode()

"""From a column of Arrow to its plain form, by expressions that no value can make fail.

Two steps. :func:`views` gives Arrow arrays the types under which DuckDB takes every value as it is: text as bytes,
dates and times as the whole numbers that they are stored as. Long text is null from there on, and rows come in pieces:
what rows refer to in a dictionary may be far more than what is stored of it. :func:`form` says what the column holds
and writes the SQL that turns what arrived into the plain form of :mod:`inbounds.tables.kinds`; what has none is null.
Proof page: ``docs/proofs/engines.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np

from inbounds.tables.kinds import FIRST, FIRST_DAY, LAST, LAST_DAY, LONGEST, Kind, extra
from inbounds.tables.readers.base import Field

__all__ = ["Form", "form", "view", "views"]

_EACH = {"s": 1_000_000, "ms": 1000, "us": 1}  # microseconds
_EXACTLY = Context(prec=80)
_MINUTE = 60_000_000  # microseconds
_PIECE = 256 * LONGEST  # bytes of text in each column that is handed over at once
_DIGITS = 18  # decimal digits that int64 holds whatever they are
_MOST_DIGITS = 1000  # characters of a whole number that is wide: Python makes numbers of so many, and few more, of text


@dataclass(frozen=True)
class Form:
    """How a column gets from Arrow to the query.

    Attributes
    ----------
    kind : Kind
    arrow : pyarrow.DataType
        Under which DuckDB is given it.
    plain : str
        SQL for the plain form, with ``{0}`` for the column that arrived.
    exact : str, optional
        SQL for what tells values apart of which some have one plain form.
    """

    kind: Kind
    arrow: Any
    plain: str
    exact: str | None = None


def views(arrays: Sequence[Any], rows: int, forms: Sequence[Form]) -> Iterator[list[Any]]:
    """The columns of a batch in pieces, as :func:`view` gives them; no piece has more text than :data:`_PIECE`."""
    ready = [_ready(array, form) for array, form in zip(arrays, forms, strict=True)]
    each = min((_PIECE // max(1, _longest(array)) for array in ready), default=rows)
    for start in range(0, rows, max(1, each)):
        yield [_whole(array.slice(start, each), form) for array, form in zip(ready, forms, strict=True)]


def view(array: Any, form: Form) -> Any:
    """An array of the form's Arrow type; no value fails or changes, but for long text, which is null."""
    return _whole(_ready(array, form), form)


def _ready(array: Any, form: Form) -> Any:
    """The same before a dictionary's values are repeated, and before text leaves its type."""
    arrow = extra("pyarrow")
    if form.kind is Kind.OTHER:
        return arrow.nulls(len(array), form.arrow)
    if isinstance(array.type, arrow.BaseExtensionType):
        array = array.storage
    if arrow.types.is_dictionary(array.type):
        return arrow.DictionaryArray.from_arrays(array.indices, view(array.dictionary, form))
    if arrow.types.is_decimal128(array.type):
        return _decimals(array, form.arrow)
    if arrow.types.is_temporal(array.type):
        return array if array.type == form.arrow else array.view(form.arrow)
    if form.arrow in (arrow.large_binary(), arrow.binary_view()):
        as_bytes = arrow.binary_view() if _is_view(array.type) else arrow.large_binary()
        return _short(array if array.type == as_bytes else array.cast(as_bytes))
    return array if array.type == form.arrow else array.cast(form.arrow)


def _whole(array: Any, form: Form) -> Any:
    """Every row with its value, in the form's type."""
    if extra("pyarrow").types.is_dictionary(array.type):
        array = array.dictionary.take(array.indices)
    return array if array.type == form.arrow else array.cast(form.arrow)


def _is_view(kind: Any) -> bool:
    arrow = extra("pyarrow")
    return kind in (arrow.string_view(), arrow.binary_view())


def _lengths(array: Any) -> Any:
    """The bytes of each text, of large binary or of binary views; of null, whatever is stored."""
    if not len(array):
        return np.zeros(0, np.int64)
    stored, start = array.buffers()[1], array.offset
    if _is_view(array.type):  # of 16 bytes, which begin with the length
        return np.frombuffer(stored, np.int32, 4 * len(array), 16 * start)[::4]
    return np.diff(np.frombuffer(stored, np.int64, len(array) + 1, 8 * start))


def _short(array: Any) -> Any:
    """Long text as null. Its bytes stay where they are, as do all others."""
    arrow = extra("pyarrow")
    fits = _lengths(array) <= LONGEST
    if fits.all():
        return array
    fits &= array.is_valid().to_numpy(zero_copy_only=False)
    valid = arrow.py_buffer(np.packbits(fits, bitorder="little").tobytes())
    _, stored, *bytes_ = array.buffers()
    stored = stored.slice((16 if _is_view(array.type) else 8) * array.offset)
    return arrow.Array.from_buffers(array.type, len(array), [valid, stored, *bytes_])


def _longest(array: Any) -> int:
    """The most bytes of text that a row may have here; 0 of what is no text."""
    arrow = extra("pyarrow")
    if arrow.types.is_dictionary(array.type):
        return _longest(array.dictionary)
    text = array.type in (arrow.large_binary(), arrow.binary_view())
    return int(np.minimum(_lengths(array), LONGEST).max(initial=0)) if text else 0


def _decimals(array: Any, kind: Any) -> Any:
    """As decimals of a wider type; what has more digits than its own type allows is null. A cast would fail on it."""
    arrow, compute = extra("pyarrow"), extra("pyarrow.compute")
    most = 10**array.type.precision - 1
    array = arrow.Array.from_buffers(kind, len(array), array.buffers(), offset=array.offset)
    low, high = (arrow.scalar(Decimal(end).scaleb(-kind.scale, _EXACTLY), kind) for end in (-most, most))
    inside = compute.and_(compute.greater_equal(array, low), compute.less_equal(array, high))
    return compute.if_else(inside, array, arrow.scalar(None, kind))


def form(field: Field) -> Form:
    """The form of a column."""
    if field.declared is not None:
        plain = _parsed(field.declared)
        # A time with digits below a microsecond is no identity: others have the same plain form.
        fine = f"regexp_matches({_TRIMMED}, '[.,][0-9]{{{{6}}}}[0-9]*[1-9]')"
        exact = f"CASE WHEN NOT {fine} THEN {plain} END" if field.declared == "time" else None
        return Form(_DECLARED[field.declared], extra("pyarrow").large_binary(), plain, exact)
    return _of_arrow(field.arrow)


def _of_arrow(kind: Any) -> Form:
    arrow = extra("pyarrow")
    types = arrow.types
    if isinstance(kind, arrow.UuidType):
        return Form(Kind.TEXT, arrow.binary(16), "CAST(CAST(hex({0}) AS UUID) AS VARCHAR)")
    if isinstance(kind, arrow.Bool8Type):
        kind = arrow.bool_()
    elif isinstance(kind, arrow.JsonType):
        kind = kind.storage_type
    elif isinstance(kind, arrow.BaseExtensionType):  # what its storage stands for is not known
        kind = arrow.struct([])
    if types.is_dictionary(kind):
        kind = arrow.large_string() if kind.value_type == arrow.string_view() else kind.value_type
    if types.is_boolean(kind):
        return Form(Kind.BOOLEAN, kind, "{0}")
    if types.is_integer(kind):
        if kind == arrow.uint64():
            return Form(Kind.WIDE, kind, "CAST({0} AS VARCHAR)")
        return Form(Kind.INTEGER, kind, "CAST({0} AS BIGINT)")
    if types.is_floating(kind):
        given = arrow.float32() if kind == arrow.float16() else kind
        return Form(Kind.REAL, given, "CASE WHEN NOT isnan(CAST({0} AS DOUBLE)) THEN CAST({0} AS DOUBLE) END")
    if types.is_decimal(kind):
        return _of_decimal(kind)
    if types.is_string(kind) or types.is_large_string(kind):
        return Form(Kind.TEXT, arrow.large_binary(), _TEXT)
    if kind == arrow.string_view():
        return Form(Kind.TEXT, arrow.binary_view(), _TEXT)
    if types.is_date32(kind):
        inside = f"{{0}} BETWEEN {FIRST_DAY} AND {LAST_DAY}"
        return Form(Kind.DATE, arrow.int32(), f"CASE WHEN {inside} THEN CAST({{0}} AS BIGINT) END")
    if types.is_date64(kind):
        days = _between(_floor("{0}", 86_400_000), FIRST_DAY, LAST_DAY)
        return Form(Kind.DATE, arrow.int64(), days, exact="{0}")
    if types.is_timestamp(kind):
        what = Kind.DATETIME if kind.tz is None else Kind.INSTANT
        if kind.unit == "ns":
            return Form(what, arrow.int64(), _floor("{0}", 1000), exact="{0}")
        return Form(what, arrow.int64(), _microseconds(_EACH[kind.unit]))
    if types.is_null(kind):
        return Form(Kind.NULL, kind, "CAST({0} AS DOUBLE)")
    return Form(Kind.OTHER, arrow.null(), "CAST({0} AS DOUBLE)")


def _of_decimal(kind: Any) -> Form:
    arrow = extra("pyarrow")
    # As text, from which the nearest float64 is taken whatever the digits.
    wide = kind.bit_width > 128
    given = arrow.large_string() if wide else arrow.decimal128(38 if kind.scale >= 0 else kind.precision, kind.scale)
    text = "{0}" if wide else "CAST({0} AS VARCHAR)"
    if kind.scale < 0:
        return Form(Kind.OTHER, arrow.null(), "CAST({0} AS DOUBLE)")
    if kind.scale > 0:
        return Form(Kind.REAL, given, f"TRY_CAST({text} AS DOUBLE)")
    if kind.precision <= _DIGITS:
        return Form(Kind.INTEGER, given, f"TRY_CAST({text} AS BIGINT)")
    return Form(Kind.WIDE, given, text)


_TEXT = "TRY(decode({0}))"


def _floor(value: str, by: int) -> str:
    """floor(value / by): the division rounds towards zero; where its result is least nothing is taken off."""
    return f"({value} // {by} - CASE WHEN {value} % {by} < 0 THEN 1 ELSE 0 END)"


def _between(value: str, first: int, last: int) -> str:
    return f"CASE WHEN {value} BETWEEN {first} AND {last} THEN {value} END"


def _microseconds(each: int) -> str:
    """Stored whole numbers as microseconds: moved next to the calendar before they are multiplied, null outside."""
    first, last = FIRST // each, LAST // each
    near = f"greatest(least({{0}}, {last + 1}), {first - 1})"
    return f"CASE WHEN {{0}} BETWEEN {first} AND {last} THEN {near} * {each} END"


# ---------------------------------------------------------------- text that stands for something else

_DECLARED = {
    "integer": Kind.INTEGER,
    "wide": Kind.WIDE,
    "number": Kind.REAL,
    "text": Kind.TEXT,
    "boolean": Kind.BOOLEAN,
    "date": Kind.DATE,
    "time": Kind.DATETIME,
}
_TRIMMED = rf"trim({_TEXT}, ' ' || chr(9))"
_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
_INFINITY = r"[+-]?([iI][nN][fF]([iI][nN][iI][tT][yY])?)"
_WHOLE = r"[+-]?[0-9]{1,30}(\.0*)?"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?"
_ZONE = r"(?: ?(?:Z|([+-])([01][0-9])(?::?([0-5][0-9]))?))?"
_TIME = f"({_DATE})(?:({_CLOCK}){_ZONE})?"
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")


def _parsed(declared: str) -> str:
    """SQL for a column of text that stands for something; what does not fit is null."""
    if declared == "text":
        return _TEXT

    def matching(pattern: str, value: str) -> str:
        pattern = pattern.replace("{", "{{").replace("}", "}}")
        return f"CASE WHEN regexp_full_match({_TRIMMED}, '{pattern}') THEN {value} END"

    if declared == "integer":
        return matching(_WHOLE, f"TRY_CAST(regexp_replace({_TRIMMED}, '\\..*', '') AS BIGINT)")
    if declared == "wide":  # in one spelling, so that ids which are equal are equal as text
        digits = f"regexp_replace({_TRIMMED}, '^[+]?(-?)0*([0-9]+)$', '\\1\\2')"
        spelled = matching("[+-]?[0-9]+", f"CASE {digits} WHEN '-0' THEN '0' ELSE {digits} END")
        return f"CASE WHEN strlen({_TRIMMED}) <= {_MOST_DIGITS} THEN {spelled} END"
    if declared == "number":
        number = matching(f"({_NUMBER}|{_INFINITY})", f"TRY_CAST({_TRIMMED} AS DOUBLE)")
        return f"CASE WHEN NOT isnan({number}) THEN {number} END"
    if declared == "boolean":
        true, false = (", ".join(f"'{word}'" for word in words) for words in (_TRUE, _FALSE))
        word = f"lower({_TRIMMED})"
        return f"CASE WHEN {word} IN ({true}) THEN true WHEN {word} IN ({false}) THEN false END"
    if declared == "date":
        days = f"date_diff('day', DATE '1970-01-01', TRY_CAST({_TRIMMED} AS DATE))"
        return _between(matching(_DATE, days), FIRST_DAY, LAST_DAY)
    # DuckDB would leave the zone out of account.
    pattern = _TIME.replace("{", "{{").replace("}", "}}")
    day, clock, sign, hours, minutes = (f"regexp_extract({_TRIMMED}, '^{pattern}$', {i})" for i in range(1, 6))
    zone = " + ".join(f"{each} * coalesce(TRY_CAST({part} AS BIGINT), 0)" for each, part in ((60, hours), (1, minutes)))
    zone = f"(CASE WHEN {sign} = '-' THEN -1 ELSE 1 END * ({zone}) * {_MINUTE})"
    time = f"epoch_us(TRY_CAST({day} || replace({clock}, ',', '.') AS TIMESTAMP)) - {zone}"
    return _between(matching(_TIME, time), FIRST, LAST)

"""Frames in memory: pandas, Polars and Arrow."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from inbounds import _checks as check
from inbounds.errors import ParameterError
from inbounds.tables.kinds import LONGEST, extra
from inbounds.tables.readers.base import Field, Reader
from inbounds.tables.readers.parquet import Parquet, own
from inbounds.tables.readers.versions import admitted

__all__ = ["Arrow", "Pandas", "Polars", "lazy", "unique"]

_ROWS = 2**17  # of a batch
_FEW = 2**10  # where many rows may refer to one object of Python, of which each gets a copy


def unique(names: Sequence[Any]) -> list[str]:
    """The names of columns, each a text of its own."""
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        check.refuse("Source", "table", "a table whose columns have names of text", wrong[:5], "Rename columns.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not names:
        step = "Rename columns." if twice else ""
        check.refuse("Source", "table", "a table whose columns have different names", twice[:5], step)
    return list(names)


class Arrow:
    """A table, a record batch or a data set of Arrow in memory."""

    notes: tuple[str, ...] = ()
    once = False

    def __init__(self, table: Any) -> None:
        arrow, what = extra("pyarrow"), type(table).__name__
        if isinstance(table, arrow.RecordBatch):
            table = arrow.Table.from_batches([table])
        self._table, self.what = table, f"a pyarrow {what}"
        self.identity = self.what
        names = unique(table.schema.names)
        self.fields: Mapping[str, Field] = dict(zip(names, map(Field, table.schema.types), strict=True))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        places = [self._table.schema.names.index(name) for name in columns]
        yield from self._table.select(places).to_batches(max_chunksize=_ROWS)

    def ready(self) -> None:
        """A frame is at hand as long as it is held."""


def arrow_dataset(found: Any) -> Reader:
    """A data set of Arrow, in files or in memory."""
    if getattr(found, "_scan_options", {}):
        check.refuse("Source", "table", "a data set without a filter", "one", "Write it as where().")
    own(found.schema.names)
    return InMemory(found) if type(found).__name__ == "InMemoryDataset" else Parquet.of(found)


class InMemory(Arrow):
    """A data set of Arrow in memory."""

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        stored = {f"r{i}": extra("pyarrow.dataset").field(name) for i, name in enumerate(columns)}
        yield from self._table.scanner(columns=stored).to_batches()


class Polars:
    """A data frame of Polars, or a lazy one that is nothing but a frame in memory."""

    once = False

    def __init__(self, frame: Any) -> None:
        self.notes: tuple[str, ...] = admitted("polars")
        self._frame, self.what = frame, f"a polars {type(frame).__name__}"
        self.identity = self.what
        schema = frame.collect_schema()
        unique(schema.names())
        self.fields: Mapping[str, Field] = {name: self._field(kind) for name, kind in schema.items()}

    @staticmethod
    def _field(kind: Any) -> Field:
        polars, arrow = extra("polars"), extra("pyarrow")
        if kind in (polars.Int128, getattr(polars, "UInt128", polars.Int128)):
            return Field(arrow.string_view(), "wide")
        if kind == polars.Object:
            return Field(arrow.struct([]))
        return Field(polars.DataFrame(schema={"x": kind}).to_arrow().schema.field(0).type)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        polars, exactly = extra("polars"), extra("polars.selectors").by_name  # col would read "*" as a pattern

        def column(name: str) -> Any:
            value, field = exactly(name), self.fields[name]
            if field.declared is not None:
                return value.cast(polars.String)
            return value.is_null() if field.arrow == extra("pyarrow").struct([]) else value

        frame = self._frame.select(column(name).alias(f"r{i}") for i, name in enumerate(columns))
        frame = frame.collect() if isinstance(frame, polars.LazyFrame) else frame
        yield from frame.to_arrow().to_batches(max_chunksize=_ROWS)

    def ready(self) -> None:
        """A frame is at hand as long as it is held."""


_IN_MEMORY = re.compile(r"DF \[.*\]; PROJECT \*/\d+ COLUMNS")
_SCAN = re.compile(r"Parquet SCAN \[.*\]\nPROJECT \*/\d+ COLUMNS(\nESTIMATED ROWS: \d+)?")
_CHANGES = ("row_index", "pre_slice", "include_file_paths", "column_mapping", "deletion_files", "default_values")


def lazy(frame: Any) -> Reader:
    """A lazy frame of Polars that computes nothing: what it computed could fail for the sake of one row."""
    plan = frame.explain(optimized=False).strip()
    if _IN_MEMORY.fullmatch(plan):
        return Polars(frame)
    if _SCAN.fullmatch(plan):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a format that may change
            scan = json.loads(frame.serialize(format="json")).get("Scan", {})
        given = scan.get("unified_scan_args", {})
        paths = scan.get("sources", {}).get("Paths")
        if (
            paths
            and all("inner" in path for path in paths)
            and all(key in given and given[key] is None for key in (*_CHANGES, "schema", "projection"))
        ):
            found = [path["inner"] for path in paths]
            if not all(map(os.path.isfile, found)):
                step = "Pass the pattern itself, as 'visits/*.parquet'."
                check.refuse("Source", "table", "a lazy frame of files, each by its name", found, step)
            return Parquet(found)
    raise ParameterError(
        "Source: table must be a lazy frame of a frame in memory or of Parquet files that computes nothing and chooses "
        "no columns; got one with further steps, or of other files. Pass frame.collect(), or the path of the files; "
        "conditions and derived columns belong into the question."
    )


class Pandas:
    """A data frame of pandas. What a column holds is its dtype, or what ``types`` says; no value is looked at."""

    once = False

    def __init__(self, frame: Any, types: Mapping[str, str] | None) -> None:
        self._frame, self.what = frame, "a pandas DataFrame"
        self.identity = self.what
        names, given = unique(list(frame.columns)), types or {}
        self._columns = {name: _column(frame[name], given.get(name)) for name in names}
        self.fields: Mapping[str, Field] = {name: field for name, (field, _) in self._columns.items()}
        objects = [name for name, dtype in zip(names, frame.dtypes, strict=True) if _objects(dtype)]
        self._objects = {name for name in names if _copied(frame[name].dtype)}
        self.notes: tuple[str, ...] = admitted("pandas") + _of_objects([n for n in objects if n not in given], objects)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        arrow = extra("pyarrow")
        rows = _FEW if any(name in self._objects for name in columns) else _ROWS
        names = [f"r{i}" for i in range(len(columns))]
        for start in range(0, len(self._frame), rows):
            part = self._frame.iloc[start : start + rows]
            # In chunks as they are: two dictionaries cannot become one if one has null among its values.
            yield from arrow.table([self._columns[name][1](part[name]) for name in columns], names).to_batches()

    def ready(self) -> None:
        """A frame is at hand as long as it is held."""


def _of_objects(untold: Sequence[str], objects: Sequence[str]) -> tuple[str, ...]:
    """What to know of columns of Python objects; of some of them nobody said what they hold."""
    if untold:
        names = ", ".join(map(repr, untold[:5])) + (", ..." if len(untold) > 5 else "")
        return (
            f"of columns of Python objects, {names} hold text, since types does not say otherwise: numbers, dates and "
            "all else in them count as missing",
        )
    return (
        ("columns of Python objects hold what types says; values of other sorts count as missing",) if objects else ()
    )


def _copied(dtype: Any) -> bool:
    """Whether a column holds objects of Python, which rows may share."""
    return _objects(dtype) or getattr(dtype, "storage", "pyarrow") != "pyarrow"


def _objects(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind == "O"


def _column(column: Any, declared: str | None) -> tuple[Field, Callable[[Any], Any]]:
    """What a column of pandas holds by its dtype alone, and how it becomes Arrow."""
    arrow, pandas, dtype = extra("pyarrow"), extra("pandas"), column.dtype
    binary = arrow.large_binary()
    if isinstance(dtype, pandas.CategoricalDtype):
        return _categories(column, declared)
    if _objects(dtype) or isinstance(dtype, pandas.StringDtype):
        written = _WRITTEN[declared or "text"]
        if getattr(dtype, "storage", None) == "pyarrow":
            return Field(arrow.large_string(), declared or "text"), lambda part: arrow.array(part.array)
        return Field(binary, declared or "text"), lambda part: arrow.array(map(written, part), binary, size=len(part))
    if declared is not None:
        requirement = "given for columns of text or of objects only: others know their types"
        check.refuse("Source", "types", requirement, {str(column.name): declared}, "")
    if isinstance(dtype, pandas.DatetimeTZDtype):
        kind = arrow.timestamp(dtype.unit, "UTC")
        return Field(kind), lambda part: _times(part.to_numpy(dtype=f"datetime64[{dtype.unit}]"), kind)
    if isinstance(dtype, np.dtype) and dtype.kind == "M":
        kind = arrow.timestamp(np.datetime_data(dtype)[0])
        return Field(kind), lambda part: _times(part.to_numpy(), kind)
    if isinstance(dtype, pandas.ArrowDtype):
        return Field(dtype.pyarrow_dtype), lambda part: arrow.array(part.array)
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf" and dtype.itemsize <= 8:
        native = dtype.newbyteorder("=")
        kind = arrow.from_numpy_dtype(native)
        return Field(kind), lambda part: arrow.array(part.to_numpy().astype(native), kind, from_pandas=True)
    if hasattr(dtype, "numpy_dtype"):  # pandas' own numbers and truth values, with nulls
        kind = arrow.from_numpy_dtype(dtype.numpy_dtype)
        return Field(kind), lambda part: arrow.array(part.array, kind)
    return Field(arrow.struct([])), lambda part: arrow.nulls(len(part))


def _times(values: Any, kind: Any) -> Any:
    """Times of NumPy, whose bits are Arrow's."""
    arrow = extra("pyarrow")
    native = values.astype(values.dtype.newbyteorder("="))
    return arrow.array(native.view(np.int64), arrow.int64(), mask=np.isnat(native)).view(kind)


def _whole(array: Any) -> Any:
    """One array, of a type that can address all of it; values themselves in the place of a dictionary."""
    arrow = extra("pyarrow")
    if arrow.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    large = {arrow.string(): arrow.large_string(), arrow.binary(): arrow.large_binary()}
    if array.type in large:
        array = array.cast(large[array.type])
    return array.combine_chunks() if isinstance(array, arrow.ChunkedArray) else array


def _categories(column: Any, declared: str | None) -> tuple[Field, Callable[[Any], Any]]:
    """Categories are public; a row holds the number of one."""
    arrow, pandas = extra("pyarrow"), extra("pandas")
    field, convert = _column(pandas.Series(column.cat.categories, name=column.name), declared)
    kept: list[Any] = [None, None]  # categories and what they become: once, however many parts there are

    def taken(part: Any) -> Any:
        if kept[0] is not part.cat.categories:
            kept[:] = part.cat.categories, _whole(convert(pandas.Series(part.cat.categories)))
        values = kept[1]
        codes = part.cat.codes.to_numpy()
        return arrow.DictionaryArray.from_arrays(arrow.array(codes, mask=codes < 0), values)

    return field, taken


# ---------------------------------------------------------------- Python objects, one at a time

# Only of types whose code is known: what a class of the caller's does when it is asked for its value could be anything.

# And a type is told by which it is, never by what it says or by its hash: its own type could be a stranger's, too.

_UUID_INT = uuid.UUID.__dict__["int"].__get__
#: Those of NumPy's numbers, a time that has passed not being one.
_NUMPY = tuple(
    {kind for kind in np.sctypeDict.values() if issubclass(kind, np.integer | np.floating)} - {np.timedelta64}
)
#: Modules with types of zones. Those of pytz are made for each zone, of one of two types.
_ZONES = {
    "zoneinfo": ("ZoneInfo",),
    "dateutil.tz": ("tzutc", "tzoffset", "tzlocal", "tzfile", "tzrange", "tzstr"),
    "pytz": ("_FixedOffset",),
    "pytz.tzinfo": ("StaticTzInfo", "DstTzInfo"),
}
_OF_PYTZ = {"zone", "_utcoffset", "_tzname", "_utc_transition_times", "_transition_info", "__module__", "__doc__"}


def _one_of(kind: type, kinds: Sequence[Any]) -> bool:
    return any(kind is known for known in kinds)


def _known_zone(zone: Any) -> bool:
    """Whether a zone is of a type whose code is known; modules that nobody has imported have made none."""
    kind = type(zone)
    loaded = [(sys.modules[name], types) for name, types in _ZONES.items() if name in sys.modules]
    known = [getattr(module, name, None) for module, types in loaded for name in types]
    pytz = sys.modules.get("pytz")
    if kind is type(None) or kind is dt.timezone or _one_of(kind, known) or (pytz and kind is type(pytz.UTC)):
        return True
    # Made by pytz and by nobody else: with data, and no code.
    return type(kind) is type and _one_of(kind.__base__ or object, known) and kind.__dict__.keys() <= _OF_PYTZ


def _is(value: object, kind: type) -> bool:
    return issubclass(type(value), kind)  # isinstance would ask the value


def _text(value: Any) -> bytes | None:
    if type(value) is uuid.UUID:  # as databases give ids
        return _uuid(value)
    if not _is(value, str) or str.__len__(value) > LONGEST:  # the bytes of which are more
        return None
    return str.encode(value, "utf-8", "surrogatepass")


def _uuid(value: uuid.UUID) -> bytes | None:
    try:
        number = _UUID_INT(value)
    except AttributeError:  # made without one
        return None
    return str(uuid.UUID(int=number)).encode() if type(number) is int and 0 <= number < 2**128 else None


def _total(write: Callable[[Any], bytes | None]) -> Callable[[Any], bytes | None]:
    """Null where a value has no text, as a time whose zone has none for it."""

    def written(value: Any) -> bytes | None:
        try:
            with np.errstate(all="ignore"):
                return write(value)
        except Exception:
            return None

    return written


@_total
def _number(value: Any) -> bytes | None:
    if not _is(value, int) and not _is(value, str) and _one_of(type(value), _NUMPY):
        value = value.item()
    if type(value) is np.longdouble:
        value = float(value)
    if _is(value, int) and type(value) is not bool:
        whole = int.__index__(value)
        return b"%d" % whole if whole.bit_length() < 4096 else b"-inf" if whole < 0 else b"inf"
    if type(value) is Decimal:
        return format(value, "f" if abs(value.adjusted()) < 400 else "e").encode()
    if _is(value, float):
        number = float.__float__(value)
        return b"%d" % int(number) if number.is_integer() and abs(number) < 2**63 else repr(number).encode()
    return _text(value)


def _boolean(value: Any) -> bytes | None:
    if (kind := type(value)) is bool or kind is np.bool_:  # "in" would ask the type of a stranger
        return b"true" if value else b"false"
    return _text(value)


def _date(value: Any) -> bytes | None:
    if type(value) is dt.date:
        return value.isoformat().encode()
    time = _time(value)
    return None if time is None else time.removesuffix(b"T00:00:00")  # another time of the day fits no date


@_total
def _time(value: Any) -> bytes | None:
    if type(value) is dt.date:
        return value.isoformat().encode()
    if (kind := type(value)) is dt.datetime or kind is extra("pandas").Timestamp:
        return value.isoformat().encode() if _known_zone(value.tzinfo) else None
    return _text(value)


_WRITTEN = {
    "text": _text,
    "integer": _number,
    "wide": _number,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
    "time": _time,
}

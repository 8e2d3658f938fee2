"""PySpark, classic and Connect: questions run on the cluster, in Spark's own functions.

No Python runs on executors. Columns are taken by their places and get names of ours, so that no name a frame may have
can be misread. How each column comes to its plain form is chosen so that no value can make it fail, whatever the
settings of the session are: ANSI mode, time zone, collations. What the frame's own plan may do is the matter of
:mod:`inbounds.tables.engines.spark_plans`.
"""

from __future__ import annotations

import copy
import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from inbounds.errors import ParameterError
from inbounds.tables.bare import Bare
from inbounds.tables.engines.base import DIGITS
from inbounds.tables.engines.spark_plans import admit, check_reading, check_written
from inbounds.tables.kinds import DAY, FIRST, FIRST_DAY, LAST, LAST_DAY, LONGEST, Kind, Schema, extra
from inbounds.tables.readers.versions import admit as admit_version
from inbounds.tables.readers.versions import admitted

if TYPE_CHECKING:
    from narwhals import LazyFrame

__all__ = ["Spark"]


_KINDS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), Kind.INTEGER),
    **dict.fromkeys(("float", "double"), Kind.REAL),
    "void": Kind.NULL,
    "boolean": Kind.BOOLEAN,
    "date": Kind.DATE,
    "timestamp_ntz": Kind.DATETIME,
    "timestamp": Kind.INSTANT,
}
#: A type of each kind, for frames without rows.
_TYPES = {
    Kind.INTEGER: "bigint",
    Kind.WIDE: "decimal(38,0)",
    Kind.REAL: "double",
    Kind.BOOLEAN: "boolean",
    Kind.TEXT: "string",
    Kind.DATE: "date",
    Kind.DATETIME: "timestamp_ntz",
    Kind.INSTANT: "timestamp",
    Kind.NULL: "void",
    Kind.OTHER: "void",
}


_MARGIN = 30  # days


def _kind(type_name: str) -> Kind:
    decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", type_name)
    if decimal is not None:
        precision, scale = map(int, decimal.groups())
        return Kind.REAL if scale else Kind.INTEGER if precision <= 18 else Kind.WIDE
    # With a collation, text has it in its type: "string collate UNICODE_CI".
    return Kind.TEXT if re.match(r"(string|char|varchar)\b", type_name) else _KINDS.get(type_name, Kind.OTHER)


class Spark:
    """A DataFrame of PySpark."""

    name = "Spark"
    what = identity = "a Spark DataFrame"
    schema: Schema

    def __init__(self, frame: Any) -> None:
        connect = ".connect." in type(frame).__module__
        self._functions = extra("pyspark.sql.connect.functions" if connect else "pyspark.sql.functions", "spark")
        self._session, self._connect = frame.sparkSession, connect
        note = admit_version("pyspark", str(self._session.version))
        self.notes = admitted("narwhals") + (() if note is None else (note,))
        self._given = frame = admit(frame, connect=connect)
        self._names = tuple(frame.columns)
        self.schema = MappingProxyType({name: _kind(type_name) for name, type_name in frame.dtypes})
        self._types = dict(frame.dtypes)
        self._places = {name: f"s{i}" for i, name in enumerate(self._names)}
        self._frame = frame.toDF(*(f"s{i}" for i in range(len(self._names))))
        self.ready()

    def frame(self, columns: Sequence[str], only: Sequence[Bare] = ()) -> LazyFrame[Any]:
        plain = [self._plain(column).alias(f"c{i}") for i, column in enumerate(columns)]
        rows = self._frame
        for bare in only:  # bare, so that Spark leaves out files and partitions
            value = self._functions.col(self._places[bare.column])
            for condition in _pruning(self._functions, value, self._types[bare.column], bare):
                rows = rows.filter(condition)
        frame: LazyFrame[Any] = extra("narwhals").from_native(rows.select(*plain)).lazy()
        return frame

    def _plain(self, column: str) -> Any:
        """A column in its plain form.

        A range is checked before anything that could overflow outside of it, and null goes on: where a part is null
        nothing is computed, in whatever order the optimiser has it done. No form but that of truth values can be
        turned into a comparison of the stored value, which a file could answer by its other rows.
        """
        F, kind = self._functions, self.schema[column]
        value = F.col(self._places[column])
        if kind is Kind.REAL:
            number = value.cast("double")  # of a decimal the nearest; NaN equals itself in Spark
            return F.nanvl(number, F.lit(None).cast("double"))
        if kind is Kind.TEXT:
            # Text read from files may be any bytes, and engines have different opinions about those.
            text = value.cast("string")
            return F.collate(F.when(F.octet_length(text) <= F.lit(LONGEST), F.try_validate_utf8(text)), "UTF8_BINARY")
        if kind is Kind.DATE:
            return _between(F, F.unix_date(value).cast("bigint"), FIRST_DAY, LAST_DAY)
        if kind is Kind.INSTANT:
            return _between(F, F.unix_micros(value), FIRST, LAST)
        if kind is Kind.DATETIME:
            # Not timestamp_diff: it overflows for far times, and goes through the session's time zone, in which the
            # hour that summer time leaves out is the next one. The parts of a time without a zone are its own.
            days = _between(F, F.unix_date(value.cast("date")).cast("bigint"), FIRST_DAY, LAST_DAY)
            minutes = F.hour(value).cast("bigint") * 60 + F.minute(value)
            seconds = F.date_part(F.lit("SECONDS"), value)  # decimal(8,6)
            return days * F.lit(DAY) + minutes * 60_000_000 + (seconds * 1_000_000).cast("bigint")
        if kind in (Kind.NULL, Kind.OTHER):  # not read at all
            return F.lit(None).cast("double")
        if kind is Kind.INTEGER:
            return value.cast("bigint").bitwiseOR(F.lit(0))
        return value.cast("string" if kind is Kind.WIDE else "boolean")

    def identifier(self, column: str, name: str) -> str:
        return name  # nothing in Spark is finer than a microsecond

    def digest(self, frame: Any, text: str, name: str) -> Any:
        F = self._functions
        return frame.withColumn(name, F.conv(F.substring(F.md5(text), 1, DIGITS), 16, 10).cast("bigint"))

    def table(self, frame: Any, columns: Mapping[str, Sequence[int] | Sequence[str]]) -> Any:
        F = self._functions
        types = [f"{name}: {'bigint' if isinstance(values[0], int) else 'string'}" for name, values in columns.items()]
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        # As one constant: createDataFrame would need Python on the executors.
        found = F.from_json(F.lit(json.dumps(rows)), f"array<struct<{', '.join(types)}>>")
        # Sent to every worker, so that the large side is not moved about for the join.
        return F.broadcast(self._session.range(1).select(F.inline(found)))

    def rows(self, frame: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in frame.collect()]

    def done(self) -> None:
        """Nothing is kept."""

    def paper(self) -> Spark:
        self._check_running()
        F, paper = self._functions, copy.copy(self)
        empty = [F.lit(None).cast(_TYPES[self.schema[name]]).alias(place) for name, place in self._places.items()]
        paper._frame = self._session.range(0).select(*empty)
        return paper

    def _check_running(self) -> None:
        context = None if self._connect else self._session.sparkContext._jsc
        if not self._connect and (context is None or context.sc().isStopped()):
            raise ParameterError(
                "Source: the Spark session of the table must be running; it has been stopped. Open the table again in "
                "one that is."
            )

    def ready(self) -> None:
        self._check_running()
        setting = partial(self._session.conf.get, default=None)
        check_reading(setting)
        if self._connect:  # names are looked up again for every question: of a table, now perhaps of a view
            check_written(self._given)
        self._check_names(exactly=setting("spark.sql.caseSensitive") == "true")
        _ = self._frame.select(self._functions.lit(0)).schema  # of a new frame, since what is known of one is kept

    def _check_names(self, *, exactly: bool) -> None:
        names = self._names if exactly else [name.lower() for name in self._names]
        twice = [given for given, name in zip(self._names, names, strict=True) if names.count(name) > 1]
        if twice or not names:
            raise ParameterError(
                f"Source: columns must have names that Spark can tell apart; got {twice[:5] or 'none'}. Rename them, "
                "as frame.toDF(...)."
            )


def _between(F: Any, value: Any, first: int, last: int) -> Any:
    return F.when((value >= F.lit(first)) & (value <= F.lit(last)), value)


def _pruning(F: Any, value: Any, type_name: str, bare: Bare) -> Iterator[Any]:
    """Conditions that are met wherever a bare comparison is, and by which a reader of files leaves out none of these.

    Spark hands days to readers in a calendar of Java, and in the time zones of two machines; by that they move by 12
    days at most. Partitions are left out by the exact number.
    """
    if type_name in ("int", "bigint"):  # smaller ones may be stored in more bits than they are read in
        yield bare.of(value)
    elif isinstance(bare.value, dt.date):
        day = (bare.value - dt.date(1970, 1, 1)).days
        yield replace(bare, value=day).of(F.unix_date(value))
        if bare.op in ("==", ">", ">="):
            yield value >= F.date_from_unix_date(F.lit(day - _MARGIN))
        if bare.op in ("==", "<", "<="):
            yield value <= F.date_from_unix_date(F.lit(day + _MARGIN))

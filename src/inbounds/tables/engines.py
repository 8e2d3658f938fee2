"""Where queries run: DuckDB, Spark, or the database behind an Ibis table.

Narwhals says almost everything in one way for all of them. What it cannot say is here, once per engine: the types of
the columns and their plain forms (:mod:`inbounds.tables.kinds`), a digest of text, a small table of public keys, the
rows of the answer, and the query as text.

Columns get names of ours (``c0``, ``c1``, ...) by the engine's own quoting before anything else is done, so that no
name a table may have, with quotes, dots or SQL in it, is ever part of a query text that we write.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from inbounds.errors import ParameterError
from inbounds.tables.exact import integer
from inbounds.tables.kinds import FIRST, FIRST_DAY, LAST, LAST_DAY, Kind, extra

if TYPE_CHECKING:
    from narwhals import LazyFrame

__all__ = ["DuckDB", "Engine", "Ibis", "Spark"]

#: Characters of an MD5 digest that are used: 13 hexadecimal digits, 52 bits.
DIGITS = 13
_PRECISE = 15  # decimal digits that float64 holds whatever they are


class Engine(Protocol):
    """What the compiler needs of an engine."""

    name: str

    def types(self) -> dict[str, str]:
        """The columns and the engine's names of their types."""

    def kind(self, type_name: str) -> Kind:
        """What a column of such a type holds."""

    def select(self, columns: Sequence[str], types: Mapping[str, str]) -> Any:
        """A native frame of the columns as c0, c1, ..., nearly plain: NaN and impossible dates are left to others."""

    def digest(self, frame: Any, text: str, name: str) -> Any:
        """The native frame with one more column: the first 13 hexadecimal digits of the MD5 of a text column."""

    def table(self, frame: Any, columns: Mapping[str, Sequence[int] | Sequence[str]]) -> Any:
        """A small native frame that can be joined with another one: whole numbers as int64, or text."""

    def rows(self, frame: Any) -> list[tuple[Any, ...]]:
        """Run the query."""

    def text(self, frame: Any) -> str:
        """The query as SQL, or as the engine's own plan."""


def plain_frame(engine: Engine, columns: Sequence[str], types: Mapping[str, str]) -> LazyFrame[Any]:
    """The columns as c0, c1, ... in their plain forms."""
    nw = extra("narwhals")
    frame: LazyFrame[Any] = nw.from_native(engine.select(columns, types)).lazy()
    changes = {}
    for i, column in enumerate(columns):
        name, kind = f"c{i}", engine.kind(types[column])
        value = nw.col(name)
        if kind is Kind.REAL:
            changes[name] = nw.when(~value.is_nan()).then(value)
        elif kind.temporal:
            first, last = (FIRST_DAY, LAST_DAY) if kind is Kind.DATE else (FIRST, LAST)
            changes[name] = nw.when((value >= integer(first)) & (value <= integer(last))).then(value)
    return frame.with_columns(**changes) if changes else frame


def _decimal(type_name: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"decimal\((\d+), ?(\d+)\)", type_name, re.IGNORECASE)
    return (int(found[1]), int(found[2])) if found else None


def _decimal_kind(precision: int, scale: int) -> Kind:
    if scale > 0:
        return Kind.REAL
    return Kind.INTEGER if precision <= 18 else Kind.WIDE


#: Times that Arrow counts in seconds or milliseconds. DuckDB fails on those too far away for microseconds, often while
#: it reads; so it is given the whole numbers, and columns of them have Arrow's name of their type.
COUNTED = re.compile(r"timestamp\[(s|ms)(, tz=.+)?\]")
UNKNOWN = "unknown"  # the type of a column that DuckDB cannot be given
_MICROSECONDS = {"s": 1_000_000, "ms": 1000}


class DuckDB:
    """A relation of DuckDB; ``local`` ones live on a connection of our own."""

    name = "DuckDB"

    _KINDS: ClassVar[dict[str, Kind]] = {
        **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), Kind.INTEGER),
        **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER"), Kind.INTEGER),
        **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), Kind.WIDE),
        **dict.fromkeys(("FLOAT", "DOUBLE"), Kind.REAL),
        '"NULL"': Kind.NULL,
        **dict.fromkeys(("VARCHAR", "UUID"), Kind.TEXT),
        **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), Kind.DATETIME),
        "BOOLEAN": Kind.BOOLEAN,
        "DATE": Kind.DATE,
        **dict.fromkeys(("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"), Kind.INSTANT),
    }

    def __init__(self, relation: Any) -> None:
        self._relation = relation

    def relation(self, columns: Sequence[str]) -> Any:
        """A relation that has these columns at least."""
        return self._relation

    def types(self) -> dict[str, str]:
        return dict(zip(self._relation.columns, map(str, self._relation.types), strict=True))

    def kind(self, type_name: str) -> Kind:
        decimal = _decimal(type_name)
        if decimal is not None:
            return _decimal_kind(*decimal)
        counted = COUNTED.fullmatch(type_name)
        if counted is not None:
            return Kind.DATETIME if counted[2] is None else Kind.INSTANT
        return Kind.TEXT if type_name.startswith("ENUM(") else self._KINDS.get(type_name, Kind.OTHER)

    def select(self, columns: Sequence[str], types: Mapping[str, str]) -> Any:
        duckdb = extra("duckdb")
        function, constant = duckdb.FunctionExpression, duckdb.ConstantExpression
        epoch = constant("1970-01-01").cast("DATE")

        def microseconds(value: Any, counted: re.Match[str]) -> Any:
            # Moved next to the calendar first, so that nothing overflows. What is outside is null later, nulls too.
            each = _MICROSECONDS[counted[1]]
            first, last = FIRST // each - 1, LAST // each + 1
            return function("least", function("greatest", value, constant(first)), constant(last)) * constant(each)

        def plain(column: str) -> Any:
            value, kind, decimal = duckdb.ColumnExpression(column), self.kind(types[column]), _decimal(types[column])
            counted = COUNTED.fullmatch(types[column])
            if counted is not None:
                return microseconds(value, counted)
            if kind is Kind.DATE:
                return function("date_diff", constant("day"), epoch, value)
            if kind is Kind.DATETIME:
                return function("epoch_us", value.try_cast("TIMESTAMP"))
            if kind is Kind.INSTANT:
                return function("epoch_us", value.try_cast("TIMESTAMP WITH TIME ZONE"))
            if kind is Kind.REAL and decimal is not None and decimal[0] > _PRECISE:
                value = value.cast("VARCHAR")  # so that the nearest float64 is taken, whatever the digits
            names = {Kind.INTEGER: "BIGINT", Kind.REAL: "DOUBLE", Kind.NULL: "DOUBLE", Kind.BOOLEAN: "BOOLEAN"}
            return value.cast(names.get(kind, "VARCHAR"))

        relation = self.relation(columns)
        return relation.select(*(plain(column).alias(f"c{i}") for i, column in enumerate(columns)))

    def digest(self, frame: Any, text: str, name: str) -> Any:
        duckdb = extra("duckdb")
        # The names are ours: letters and digits only.
        number = duckdb.SQLExpression(f"CAST('0x' || substr(md5({text}), 1, {DIGITS}) AS BIGINT)")
        return frame.select(duckdb.StarExpression(), number.alias(name))

    def table(self, frame: Any, columns: Mapping[str, Sequence[int] | Sequence[str]]) -> Any:
        duckdb = extra("duckdb")
        # One row on the connection of the frame, whose lists are then written out; the frame itself is not read.
        one = frame.limit(0).aggregate([duckdb.FunctionExpression("count").alias("n")])
        lists = {name: duckdb.ConstantExpression(list(values)) for name, values in columns.items()}
        types = {name: "BIGINT" if isinstance(values[0], int) else "VARCHAR" for name, values in columns.items()}
        unnest = duckdb.FunctionExpression
        return one.select(*(unnest("unnest", value).cast(types[name]).alias(name) for name, value in lists.items()))

    def rows(self, frame: Any) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = frame.fetchall()
        return found

    def text(self, frame: Any) -> str:
        return str(frame.sql_query())


class Spark:
    """A DataFrame of PySpark, classic or Connect."""

    name = "Spark"

    _KINDS: ClassVar[dict[str, Kind]] = {
        **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), Kind.INTEGER),
        **dict.fromkeys(("float", "double"), Kind.REAL),
        "void": Kind.NULL,
        "boolean": Kind.BOOLEAN,
        "date": Kind.DATE,
        "timestamp_ntz": Kind.DATETIME,
        "timestamp": Kind.INSTANT,
    }

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        connect = ".connect." in type(frame).__module__
        self._functions = extra("pyspark.sql.connect.functions" if connect else "pyspark.sql.functions", "spark")

    def types(self) -> dict[str, str]:
        names = [name.casefold() for name in self._frame.columns]
        twice = [name for name in self._frame.columns if names.count(name.casefold()) > 1]
        if twice:
            raise ParameterError(f"Source: columns must have names that Spark can tell apart; got {twice[:5]!r}.")
        return dict(self._frame.dtypes)

    def kind(self, type_name: str) -> Kind:
        decimal = _decimal(type_name)
        if decimal is not None:
            return _decimal_kind(*decimal)
        if re.match(r"(string|char|varchar)\b", type_name):
            return Kind.TEXT
        return self._KINDS.get(type_name, Kind.OTHER)

    def select(self, columns: Sequence[str], types: Mapping[str, str]) -> Any:
        F = self._functions

        def plain(column: str) -> Any:
            value = F.col("`" + column.replace("`", "``") + "`")
            kind = self.kind(types[column])
            if kind is Kind.DATE:
                return F.unix_date(value).cast("bigint")
            if kind is Kind.INSTANT:
                return F.unix_micros(value)
            if kind is Kind.DATETIME:
                return F.timestamp_diff("MICROSECOND", F.lit("1970-01-01 00:00:00").cast("timestamp_ntz"), value)
            names = {Kind.INTEGER: "bigint", Kind.REAL: "double", Kind.NULL: "double", Kind.BOOLEAN: "boolean"}
            return value.cast(names.get(kind, "string"))

        return self._frame.select(*(plain(column).alias(f"c{i}") for i, column in enumerate(columns)))

    def digest(self, frame: Any, text: str, name: str) -> Any:
        F = self._functions
        return frame.withColumn(name, F.conv(F.substring(F.md5(text), 1, DIGITS), 16, 10).cast("bigint"))

    def table(self, frame: Any, columns: Mapping[str, Sequence[int] | Sequence[str]]) -> Any:
        types = (f"{name} {'bigint' if isinstance(values[0], int) else 'string'}" for name, values in columns.items())
        rows = list(zip(*columns.values(), strict=True))
        # Sent to every worker, so that the large side is not moved about for the join.
        return self._functions.broadcast(frame.sparkSession.createDataFrame(rows, ", ".join(types)))

    def rows(self, frame: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in frame.collect()]

    def text(self, frame: Any) -> str:
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):  # the only public way to see a plan, classic and Connect
            frame.explain()
        return shown.getvalue()


class Ibis:
    """A table of Ibis; the query runs in the database behind it."""

    name = "Ibis"

    def __init__(self, table: Any) -> None:
        self._table = table

    def types(self) -> dict[str, str]:
        return {name: str(kind.copy(nullable=True)) for name, kind in self._table.schema().items()}

    def kind(self, type_name: str) -> Kind:
        decimal = _decimal(type_name)
        if decimal is not None:
            return _decimal_kind(*decimal)
        if re.fullmatch(r"int(8|16|32|64)|uint(8|16|32)", type_name):
            return Kind.INTEGER
        if re.fullmatch(r"float(16|32|64)", type_name):
            return Kind.REAL
        if re.fullmatch(r"timestamp(\(\d+\))?", type_name):
            return Kind.DATETIME
        if type_name.startswith("timestamp("):
            return Kind.INSTANT
        others = {"uint64": Kind.WIDE, "boolean": Kind.BOOLEAN, "date": Kind.DATE, "null": Kind.NULL}
        texts = dict.fromkeys(("string", "uuid"), Kind.TEXT)
        return (others | texts).get(type_name, Kind.OTHER)

    def select(self, columns: Sequence[str], types: Mapping[str, str]) -> Any:
        ibis = extra("ibis", "ibis")

        def plain(column: str) -> Any:
            value, kind, decimal = self._table[column], self.kind(types[column]), _decimal(types[column])
            if kind is Kind.DATE:
                return value.delta(ibis.date(1970, 1, 1), unit="day").cast("int64")
            if kind is Kind.DATETIME:
                return value.delta(ibis.timestamp("1970-01-01 00:00:00"), unit="microsecond").cast("int64")
            if kind is Kind.INSTANT:
                start = ibis.timestamp("1970-01-01 00:00:00", timezone="UTC")
                return value.delta(start, unit="microsecond").cast("int64")
            if kind is Kind.REAL and decimal is not None and decimal[0] > _PRECISE:
                value = value.cast("string")
            names = {Kind.INTEGER: "int64", Kind.REAL: "float64", Kind.NULL: "float64", Kind.BOOLEAN: "boolean"}
            return value.cast(names.get(kind, "string"))

        return self._table.select(**{f"c{i}": plain(column) for i, column in enumerate(columns)})

    def digest(self, frame: Any, text: str, name: str) -> Any:
        ibis, operations = extra("ibis", "ibis"), extra("ibis.expr.operations", "ibis")
        backend = frame.get_backend()
        if not backend.has_operation(operations.HexDigest):
            raise ParameterError(
                f"Source: the database must have MD5 for units or groups that are text; Ibis knows none for "
                f"{backend.name}. Use whole numbers, or copy the table to Parquet."
            )
        digits = frame[text].hexdigest("md5")
        alphabet = ibis.literal("0123456789abcdef")
        number = ibis.literal(0, type="int64")
        for i in range(DIGITS):
            number = number * 16 + alphabet.find(digits.substr(i, 1)).cast("int64")
        return frame.mutate(**{name: number})

    def table(self, frame: Any, columns: Mapping[str, Sequence[int] | Sequence[str]]) -> Any:
        arrow = extra("pyarrow", "ibis")  # from a dictionary Ibis would make a frame of pandas
        types = {
            name: arrow.int64() if isinstance(values[0], int) else arrow.string() for name, values in columns.items()
        }
        made = {name: arrow.array(list(values), types[name]) for name, values in columns.items()}
        return extra("ibis", "ibis").memtable(arrow.table(made))

    def rows(self, frame: Any) -> list[tuple[Any, ...]]:
        columns = frame.to_pyarrow().to_pydict()
        return list(zip(*columns.values(), strict=True))

    def text(self, frame: Any) -> str:
        return str(extra("ibis", "ibis").to_sql(frame))

"""Everything that a table can be opened from, and how the known rows get there.

What a format has no type for is in ``lacks``: a mark on the page of what is supported, not a failure. Where it can
hold more than the known values say, ``odd`` names the columns, whose odd values are written too.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inbounds.errors import ParameterError
from inbounds.tables.contract.rows import COLUMNS, NAMES, Column, arrow_table, words
from inbounds.tables.kinds import Kind, extra
from inbounds.tables.readers.base import quoted
from inbounds.tables.source import Source

__all__ = ["LOCAL", "Maker", "database", "drop", "on_spark", "on_spark_files"]

Columns = Sequence[Column]


@dataclass(frozen=True)
class Maker:
    """One way to a source.

    Attributes
    ----------
    name : str
        The column of the page, and after a colon which of those that share it.
    write : callable
        From the columns to write, the names of those with odd values, and an empty folder to what is opened, with the
        options of :meth:`Source.open`.
    lacks, odd : frozenset of str
        Columns.
    """

    name: str
    write: Callable[[Columns, frozenset[str], Path], tuple[Any, Mapping[str, Any]]]
    lacks: frozenset[str] = frozenset()
    odd: frozenset[str] = frozenset(NAMES)

    @property
    def columns(self) -> Columns:
        return [column for column in COLUMNS if column.name not in self.lacks]

    def open(self, folder: Path, *, empty: bool = False) -> Source:
        """The known rows as a source, or none of them."""
        columns = [replace(column, values=(), odd={}) if empty else column for column in self.columns]
        table, options = self.write(columns, self.odd, folder)
        return Source.open(table, **options)


_TEXT = frozenset({"text"})
_FAR = frozenset({"day", "time", "moment"})
_NOTHING = frozenset({"nothing"})
_UTF8 = frozenset(NAMES) - _TEXT  # the columns with odd values where text can be nothing else


def _arrow(make: Callable[[Any, Path], Any], name: str, **more: Any) -> Maker:
    """A source made from a table of Arrow."""
    return Maker(name, lambda columns, odd, folder: (make(arrow_table(columns, odd), folder), {}), **more)


# ---------------------------------------------------------------- files


def _parquet(table: Any, folder: Path) -> Path:
    extra("pyarrow.parquet").write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


def _polars_parquet(table: Any, folder: Path) -> Path:
    extra("polars").from_arrow(table).write_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def _duckdb_parquet(table: Any, folder: Path) -> Path:
    with extra("duckdb").connect() as connection:
        connection.from_arrow(table).write_parquet(str(folder / "t.parquet"))
    return folder / "t.parquet"


_DECLARED = {
    Kind.INTEGER: "integer",
    Kind.WIDE: "wide",
    Kind.REAL: "number",
    Kind.BOOLEAN: "boolean",
    Kind.TEXT: "text",
    Kind.DATE: "date",
    Kind.DATETIME: "time",
}
#: What text stands for by its ``types``: not times with a zone, and not nothing.
_UNDECLARED = frozenset({"moment", "nothing"})


def _types(columns: Columns) -> dict[str, str]:
    return {column.name: _DECLARED[column.kind] for column in columns}


def _lines(columns: Columns, odd: frozenset[str]) -> Iterator[tuple[bytes | None, ...]]:
    return zip(*(words(column, column.name in odd) for column in columns), strict=True)


def _csv(columns: Columns, odd: frozenset[str], folder: Path) -> tuple[Any, Mapping[str, Any]]:
    with (folder / "t.csv").open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([column.name for column in columns])
        for line in _lines(columns, odd):
            writer.writerow([None if word is None else word.decode("utf-8", "surrogateescape") for word in line])
    return folder / "t.csv", {"types": _types(columns), "header": True}


def _json(columns: Columns, odd: frozenset[str], folder: Path) -> tuple[Any, Mapping[str, Any]]:
    plain = [c.kind in (Kind.INTEGER, Kind.WIDE, Kind.BOOLEAN) for c in columns]
    with (folder / "t.jsonl").open("wb") as file:
        for line in _lines(columns, odd):
            cells = [
                f'"{column.name}": '.encode() + (word if is_plain else _quoted(word))
                for column, word, is_plain in zip(columns, line, plain, strict=True)
                if word is not None
            ]
            file.write(b"{" + b", ".join(cells) + b"}\n")
    return folder / "t.jsonl", {"types": _types(columns)}


def _quoted(word: bytes) -> bytes:
    return json.dumps(word.decode("utf-8", "surrogateescape"), ensure_ascii=False).encode("utf-8", "surrogateescape")


# ---------------------------------------------------------------- frames


def _batch(table: Any, folder: Path) -> Any:
    columns = [column.combine_chunks() for column in table.columns]
    return extra("pyarrow").RecordBatch.from_arrays(columns, schema=table.schema)


def _pandas_objects(columns: Columns, odd: frozenset[str], folder: Path) -> tuple[Any, Mapping[str, Any]]:
    pandas = extra("pandas")
    frame = pandas.DataFrame(
        {
            c.name: pandas.Series(
                [c.odd.get(i, v) if c.name in odd else v for i, v in enumerate(c.values)], dtype=object
            )
            for c in columns
        }
    )
    return frame, {"types": _types(columns)}


def _pandas_arrow(table: Any, folder: Path) -> Any:
    return table.to_pandas(types_mapper=extra("pandas").ArrowDtype)


def _lazy_scan(table: Any, folder: Path) -> Any:
    return extra("polars").scan_parquet(_parquet(table, folder))


# ---------------------------------------------------------------- databases

#: The types of columns in databases, by those of the known rows.
_POSTGRES = {
    "int64": "int8",
    "int8": "int2",
    "uint64": "numeric(20, 0)",
    "decimal(38, 0)": "numeric(38, 0)",
    "float64": "float8",
    "float32": "float4",
    "decimal(9, 2)": "numeric(9, 2)",
    "decimal(38, 6)": "numeric(38, 6)",
    "bool": "bool",
    "text": "text",
    "date": "date",
    "time [us]": "timestamp",
    "time with a zone": "timestamptz",
}
_SQLITE = {
    "int64": "INTEGER",
    "int8": "INTEGER",
    "float64": "REAL",
    "float32": "REAL",
    "decimal(9, 2)": "DECIMAL(9, 2)",
    "bool": "BOOLEAN",
    "text": "TEXT",
    "date": "DATE",
    "time [s]": "TIMESTAMP",
    "time [ms]": "TIMESTAMP",
    "time [us]": "TIMESTAMP",
}


def _untyped(types: Mapping[str, str]) -> frozenset[str]:
    return frozenset(column.name for column in COLUMNS if column.type not in types)


def _definition(columns: Columns, types: Mapping[str, str]) -> str:
    return ", ".join(f"{quoted(column.name)} {types[column.type]}" for column in columns)


def _in_duckdb(connection: Any, name: str, columns: Columns, odd: frozenset[str]) -> None:
    connection.from_arrow(arrow_table(columns, odd)).create(name)


def _in_postgres(connection: Any, name: str, columns: Columns, odd: frozenset[str]) -> None:
    values = ", ".join(f"%s::{_POSTGRES[column.type]}" for column in columns)
    with connection.cursor() as cursor:
        cursor.execute("SET timezone = 'UTC'")
        cursor.execute(f"CREATE TABLE {name} ({_definition(columns, _POSTGRES)})")
        lines = ([None if word is None else word.decode() for word in line] for line in _lines(columns, odd))
        cursor.executemany(f"INSERT INTO {name} VALUES ({values})", list(lines))
    connection.commit()


def _in_sqlite(connection: Any, name: str, columns: Columns, odd: frozenset[str]) -> None:
    connection.execute(f"CREATE TABLE {name} ({_definition(columns, _SQLITE)})")
    values = ", ".join("CAST(? AS TEXT)" if c.kind is Kind.TEXT or c.kind.temporal else "?" for c in columns)
    cells = [
        words(c, c.name in odd)
        if c.kind is Kind.TEXT or c.kind.temporal
        else [float(v) if c.kind is Kind.REAL and v is not None else v for v in c.values]
        for c in columns
    ]
    connection.executemany(f"INSERT INTO {name} VALUES ({values})", list(zip(*cells, strict=True)))
    connection.commit()


@dataclass(frozen=True)
class _Database:
    name: str
    write: Callable[[Any, str, Columns, frozenset[str]], None]
    lacks: frozenset[str]
    odd: frozenset[str]


#: What Ibis calls the databases that can be asked.
_DATABASES = {
    "duckdb": _Database("DuckDB", _in_duckdb, _NOTHING, _UTF8),
    "postgres": _Database("PostgreSQL", _in_postgres, _untyped(_POSTGRES) | {"zero"}, _UTF8),
    "sqlite": _Database("SQLite", _in_sqlite, _untyped(_SQLITE), frozenset(NAMES)),
}


def database(backend: Any, table: str) -> Maker:
    """A new table of a database that Ibis is connected to; a second, whose name ends in ``_empty``, has no rows.

    A database that cannot be asked is refused here as :meth:`Source.open` refuses it, and nothing is written.
    """
    known = _DATABASES.get(backend.name)
    if known is None:
        operations = extra("ibis.expr.operations", "ibis")
        schema = extra("ibis", "ibis").schema({"row": "int64"})
        Source.open(operations.DatabaseTable(table, schema, backend, operations.Namespace()).to_expr())
        raise ParameterError(f"contract: it is not known how to make a table in {backend.name}.")

    def write(columns: Columns, odd: frozenset[str], folder: Path) -> tuple[Any, Mapping[str, Any]]:
        name = table if columns[0].values else f"{table}_empty"
        known.write(backend.con, name, columns, odd)
        return backend.table(name), {}

    return Maker(f"Ibis on {known.name}", write, known.lacks, known.odd)


def drop(backend: Any, table: str) -> None:
    """Drop what :func:`database` made, also where making it failed."""
    transactions = backend.name != "duckdb"
    if transactions:
        backend.con.rollback()
    for name in (table, f"{table}_empty"):
        backend.con.execute(f"DROP TABLE IF EXISTS {name}")
    if transactions:
        backend.con.commit()


def _duckdb_file(table: Any, folder: Path) -> tuple[str, str]:
    path = str(folder / "t.duckdb")
    with extra("duckdb").connect(path) as connection:
        connection.from_arrow(table).create("t")
    return path, "t"


def _duckdb_relation(table: Any, folder: Path) -> Any:
    connection = extra("duckdb").connect()
    connection.from_arrow(table).create("t")
    return connection.table("t")


def _duckdb_view(table: Any, folder: Path) -> Any:
    return extra("duckdb").connect().read_parquet(str(_parquet(table, folder)))


def _ibis(name: str) -> Maker:
    """A table of Ibis on a database of this process."""

    def write(columns: Columns, odd: frozenset[str], folder: Path) -> tuple[Any, Mapping[str, Any]]:
        backend = getattr(extra("ibis", "ibis"), name).connect(str(folder / f"t.{name}"))
        return database(backend, "t").write(columns, odd, folder)

    known = _DATABASES[name]
    return Maker(f"Ibis on {known.name}", write, known.lacks, known.odd)


def _ibis_polars(table: Any, folder: Path) -> Any:
    return extra("ibis", "ibis").polars.connect({"t": extra("polars").from_arrow(table)}).table("t")


# ---------------------------------------------------------------- Spark


_FINER = frozenset({"nanos"})  # than Spark's times


def on_spark(session: Any, name: str) -> Maker:
    """A frame of Spark, classic or Connect, of rows in memory."""

    def made(table: Any, folder: Path) -> Any:
        arrow, place = extra("pyarrow"), table.schema.get_field_index("unsigned")
        wide = table.column(place).cast(arrow.decimal128(20, 0))  # Spark has no unsigned numbers
        table = table.set_column(place, "unsigned", wide)
        with _times_without_zones(session):
            if table.num_rows or ".connect." not in type(session).__module__:
                return session.createDataFrame(table)
            # PySpark says of an empty table that it has no types.
            schema = extra("pyspark.sql.pandas.types", "spark").from_arrow_schema(table.schema, True)
            return session.createDataFrame([], schema)

    return _arrow(made, name, lacks=_FINER, odd=_UTF8)


@contextmanager
def _times_without_zones(session: Any) -> Iterator[None]:
    """Times without a zone stay so; otherwise PySpark looks them up in the session's."""
    name = "spark.sql.timestampType"
    before = session.conf.get(name)
    session.conf.set(name, "TIMESTAMP_NTZ")
    try:
        yield
    finally:
        session.conf.set(name, before)


def on_spark_files(session: Any, name: str) -> Maker:
    """A frame of Spark of a Parquet file."""
    return _arrow(
        lambda table, folder: session.read.parquet(str(_parquet(table, folder))), name, lacks=_FINER | _NOTHING
    )


LOCAL = (
    _arrow(lambda table, _: table, "Arrow: table"),
    _arrow(_batch, "Arrow: batch"),
    _arrow(lambda table, folder: extra("pyarrow.dataset").dataset(_parquet(table, folder)), "Arrow: data set"),
    _arrow(_parquet, "Parquet: by pyarrow"),
    _arrow(_polars_parquet, "Parquet: by Polars", odd=_UTF8),
    _arrow(_duckdb_parquet, "Parquet: by DuckDB", odd=_UTF8),
    Maker("CSV", _csv, _UNDECLARED | {"blank"}),
    Maker("JSON", _json, _UNDECLARED),
    _arrow(_duckdb_file, "DuckDB: file", lacks=_NOTHING, odd=_UTF8),
    _arrow(_duckdb_relation, "DuckDB: relation", lacks=_NOTHING, odd=_UTF8),
    _arrow(_duckdb_view, "DuckDB: relation of Parquet"),
    _arrow(_pandas_arrow, "pandas: types of Arrow"),
    Maker("pandas: objects", _pandas_objects, _UNDECLARED),
    _arrow(lambda table, _: extra("polars").from_arrow(table), "Polars: eager", odd=_UTF8),
    _arrow(lambda table, _: extra("polars").from_arrow(table).lazy(), "Polars: lazy", odd=_UTF8),
    _arrow(_lazy_scan, "Polars: lazy of Parquet"),
    _ibis("duckdb"),
    _ibis("sqlite"),
    _arrow(_ibis_polars, "Ibis on Polars", odd=_UTF8 - _FAR),  # Ibis prints the frame, and cannot
    _arrow(lambda table, _: extra("ibis", "ibis").memtable(table), "Ibis memtable"),
)

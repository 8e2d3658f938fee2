"""A table to ask: opened once, described by public facts, never shown."""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from inbounds import _checks as check
from inbounds.errors import ParameterError, ParameterTypeError
from inbounds.query.engines import DuckDB, Engine, Ibis, Spark, plain_frame
from inbounds.query.kinds import Schema, extra, shielded

if TYPE_CHECKING:
    from narwhals import LazyFrame

__all__ = ["Source"]

_PARQUET, _CSV, _JSON = (".parquet", ".pq"), (".csv", ".tsv", ".txt"), (".json", ".jsonl", ".ndjson")
_DATABASE = (".duckdb", ".ddb", ".db")
_COMPRESSED = (".gz", ".zst")
_TYPES = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "time": "TIMESTAMP",
}


class _Local(DuckDB):
    """A relation on a DuckDB connection of our own, which reads no other files and never goes to the network."""

    def __init__(self, connection: Any, relation: Any) -> None:
        super().__init__(relation)
        self._connection = connection


class _Frame(_Local):
    """A data frame in memory, handed to DuckDB as Arrow; only the columns that a query needs."""

    def __init__(self, connection: Any, frame: Any) -> None:
        self._frame = frame
        names = list(frame.columns if _package(frame) == "pandas" else _arrow(frame, None).schema.names)
        wrong = [name for name in names if not isinstance(name, str) or names.count(name) > 1]
        if wrong:
            step = "Rename columns, as frame.columns = [...]."
            check.refuse("Source", "table", "a frame whose columns have different names, of text", wrong, step)
        super().__init__(connection, connection.from_arrow(_arrow(frame, None)))

    def relation(self, columns: Sequence[str]) -> Any:
        return self._connection.from_arrow(_arrow(self._frame, columns))


def _arrow(frame: Any, columns: Sequence[str] | None) -> Any:
    """Some columns of a frame as Arrow; without ``columns`` an empty table of all of them."""
    module = _package(frame)
    if module == "polars":
        polars = extra("polars")
        frame = frame.head(0) if columns is None else frame.select(polars.col(list(columns)))
        return (frame.collect() if isinstance(frame, polars.LazyFrame) else frame).to_arrow()
    arrow = extra("pyarrow")
    if module == "pandas":
        if columns is None:
            return arrow.Schema.from_pandas(frame, preserve_index=False).empty_table()
        return arrow.Table.from_pandas(frame[list(columns)], preserve_index=False)
    if isinstance(frame, arrow.RecordBatch):
        frame = arrow.Table.from_batches([frame])
    if isinstance(frame, arrow.Table):
        return frame.schema.empty_table() if columns is None else frame.select(list(columns))
    return frame  # a dataset: DuckDB reads the columns it needs


def _package(thing: object) -> str:
    return type(thing).__module__.split(".")[0].lstrip("_")


@dataclass(frozen=True, eq=False, repr=False)
class Source:
    """A table that queries can be run on. Use :meth:`open`.

    Attributes
    ----------
    schema : mapping of str to Kind
        The columns and what they hold. Public.
    description : str
        What was opened and where it runs, for people.
    """

    engine: Engine
    schema: Schema
    types: Mapping[str, str]
    description: str
    debug: bool = False

    @classmethod
    def open(
        cls,
        table: Any,
        *,
        types: Mapping[str, str] | None = None,
        memory_limit: str = "4GB",
        threads: int | None = None,
        temp_directory: str | os.PathLike[str] | None = None,
        debug: bool = False,
    ) -> Source:
        """Open a table; nothing but its schema is read.

        Parameters
        ----------
        table : path, list of paths, frame, relation or table
            A Parquet, CSV or JSON file, several of one sort (or a pattern like ``"data/*.parquet"``), or a pair
            (DuckDB database file, table name); a pandas, Polars or Arrow table: these run on an embedded DuckDB. A
            DuckDB relation, a PySpark DataFrame (classic or Connect) or an Ibis table run where they are.
        types : mapping, optional
            For CSV and JSON: what columns hold, as ``{"age": "integer"}``; one of integer, number, text, boolean, date,
            time. Columns of a CSV file that are left out are guessed from its start, and the guess counts as public;
            of JSON only the columns named are read. Lines that do not fit are dropped.
        memory_limit : str
            For the embedded DuckDB, beyond which it spills to ``temp_directory``, as ``"4GB"``.
        threads : int, optional
            For the embedded DuckDB; all cores otherwise.
        temp_directory : path, optional
            Otherwise a private one, removed with the source.
        debug : bool
            Keep an engine's own error in ``QueryFailed.engine_error``. It may show data.
        """
        if isinstance(table, Source):
            return table
        extra("narwhals")
        settings: dict[str, Any] = {"memory_limit": memory_limit, "threads": threads, "temp_directory": temp_directory}
        package = _package(table)
        if package == "narwhals":
            table = table.to_native()
            package = _package(table)
        name = type(table).__name__

        def connect() -> tuple[Engine, str]:
            if package == "pyspark" and name == "DataFrame":
                return Spark(table), "a Spark DataFrame"
            if package == "ibis" and hasattr(table, "schema"):
                return Ibis(table), f"an Ibis table on {table.get_backend().name}"
            if package == "duckdb" and name == "DuckDBPyRelation":
                return DuckDB(table), "a DuckDB relation"
            if (package, name) in _FRAMES:
                return _Frame(_connection([], **settings), table), f"a {package} {name}"
            return _files(table, types, settings)

        engine, what = shielded("opening the table", connect, debug=debug)
        if types is not None and not what.endswith(("CSV", "JSON")):
            check.refuse("Source", "types", "left out: this table knows its types", types, "")
        found = shielded("reading the schema", engine.types, debug=debug)
        schema = MappingProxyType({column: engine.kind(type_name) for column, type_name in found.items()})
        return cls(engine, schema, MappingProxyType(found), f"{what}, on {engine.name}", debug)

    def frame(self, columns: Sequence[str]) -> LazyFrame[Any]:
        """Some columns as c0, c1, ... in their plain forms; nothing is read yet."""
        return plain_frame(self.engine, columns, self.types)

    def __repr__(self) -> str:
        return f"<Source: {self.description}>"


_FRAMES = {
    ("pandas", "DataFrame"),
    ("polars", "DataFrame"),
    ("polars", "LazyFrame"),
    ("pyarrow", "Table"),
    ("pyarrow", "RecordBatch"),
    ("pyarrow", "Dataset"),
    ("pyarrow", "FileSystemDataset"),
    ("pyarrow", "InMemoryDataset"),
    ("pyarrow", "UnionDataset"),
}


def _connection(
    paths: Sequence[str],
    *,
    memory_limit: str,
    threads: int | None,
    temp_directory: str | os.PathLike[str] | None,
    database: str = ":memory:",
) -> Any:
    """A DuckDB of our own: bounded memory, no network, no extensions, no files but ``paths``."""
    duckdb = extra("duckdb")
    if not isinstance(memory_limit, str) or not re.fullmatch(r"\d+(\.\d+)? ?[KMGT]i?B", memory_limit):
        check.refuse("Source", "memory_limit", 'a size like "4GB"', memory_limit, "")
    if threads is not None:
        threads = check.whole("Source", "threads", threads, at_least=1, at_most=1024)
    spill = tempfile.mkdtemp(prefix="inbounds-spill-") if temp_directory is None else os.fspath(temp_directory)
    config: dict[str, Any] = {
        "memory_limit": memory_limit,
        "temp_directory": spill,
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    if threads is not None:
        config["threads"] = threads
    try:
        connection = duckdb.connect(database, read_only=database != ":memory:", config=config)
        quoted = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
        connection.execute(f"SET allowed_paths = [{quoted}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except Exception:
        if temp_directory is None:
            shutil.rmtree(spill, ignore_errors=True)
        raise
    if temp_directory is None:
        weakref.finalize(connection, shutil.rmtree, spill, ignore_errors=True)
    return connection


def _files(
    table: Any, types: Mapping[str, str] | None, settings: Mapping[str, Any]
) -> tuple[Engine, str]:  # fmt: skip
    pair = isinstance(table, tuple) and len(table) == 2 and isinstance(table[0], str | os.PathLike)
    if pair and _suffix(table[0]) in _DATABASE:
        return _database(table[0], table[1], settings)
    given = [table] if isinstance(table, str | os.PathLike) else table
    if not isinstance(given, list | tuple) or not given or not all(isinstance(p, str | os.PathLike) for p in given):
        kinds = "a path, a list of paths, (database file, table name), a pandas, Polars or Arrow table, "
        kinds += "a DuckDB relation, a Spark DataFrame or an Ibis table"
        check.refuse("Source", "table", kinds, type(table).__name__, "", ParameterTypeError)
    paths = [path for pattern in given for path in _expand(os.fspath(pattern))]
    suffixes = {_suffix(path) for path in paths}
    connection = None
    for suffixes_of, word, reader in ((_PARQUET, "Parquet", "read_parquet"), (_CSV, "CSV", "read_csv"),
                                      (_JSON, "JSON", "read_json")):  # fmt: skip
        if suffixes <= set(suffixes_of):
            connection = _connection(paths, **settings)
            options = _reading(word, types)
            relation = getattr(connection, reader)(paths, **options)
            count = "a file" if len(paths) == 1 else f"{len(paths)} files"
            return _Local(connection, relation), f"{count} of {word}"
    if suffixes <= set(_DATABASE):
        check.refuse("Source", "table", "a pair (database file, table name) for a database", paths[0], "")
    endings = ", ".join(_PARQUET + _CSV + _JSON)
    check.refuse("Source", "table", f"files of one sort ({endings}, also with .gz or .zst)", paths[0], "")


def _suffix(path: Any) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    while suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _expand(pattern: str) -> list[str]:
    """The absolute paths of local files."""
    if "://" in pattern:
        step = "Read remote data with your own DuckDB connection or Spark, and pass the relation."
        check.refuse("Source", "table", "a local file", pattern, step)
    found = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern, recursive=True))
    files = [os.path.abspath(path) for path in found if os.path.isfile(path)]
    if not files:
        check.refuse("Source", "table", "an existing file or a pattern that matches some", pattern, "")
    return files


def _reading(word: str, types: Mapping[str, str] | None) -> dict[str, Any]:
    """How files of text are read: a line that does not fit is dropped, so that no error depends on one."""
    if word == "Parquet":
        return {}
    wrong = {column: kind for column, kind in (types or {}).items() if kind not in _TYPES}
    if wrong:
        check.refuse("Source", "types", "one of " + ", ".join(_TYPES) + " for each column", wrong, "")
    named = {column: _TYPES[kind] for column, kind in (types or {}).items()}
    if word == "JSON":
        return {"ignore_errors": True} | ({"columns": named} if named else {})
    return {"ignore_errors": True} | ({"dtype": named} if named else {})


def _database(path: Any, table: object, settings: Mapping[str, Any]) -> tuple[Engine, str]:
    if not isinstance(table, str):
        check.refuse("Source", "table", "the name of a table in the database", table, "", ParameterTypeError)
    (file,) = _expand(os.fspath(path))
    connection = _connection([], database=file, **settings)
    tables = {row[0] for row in connection.execute("SELECT table_name FROM information_schema.tables").fetchall()}
    if table not in tables:
        raise ParameterError(f"Source: the database must have the table asked for; got {table!r}.")
    return _Local(connection, connection.table('"' + table.replace('"', '""') + '"')), "a table of a database file"

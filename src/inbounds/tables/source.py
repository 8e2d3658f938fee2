"""A table to ask: opened once, described by public facts, never shown."""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from inbounds import _checks as check
from inbounds.errors import ParameterError, ParameterTypeError
from inbounds.tables.engines import COUNTED, UNKNOWN, DuckDB, Engine, Ibis, Spark, plain_frame
from inbounds.tables.kinds import Kind, Schema, extra, find, shielded

if TYPE_CHECKING:
    from narwhals import LazyFrame

__all__ = ["Source"]

_PARQUET, _CSV, _JSON = (".parquet", ".pq"), (".csv", ".tsv", ".txt"), (".json", ".jsonl", ".ndjson")
_DATABASE = (".duckdb", ".ddb", ".db")
#: What becomes of text that does not fit: no error may depend on it.
_LOOSE = {
    "CSV": "lines of the file that do not fit the types of its columns are left out",
    "JSON": "values that do not fit the types of their columns, and lines that are no JSON, count as missing",
}
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
    """A relation on a DuckDB connection of our own, which reads no other files and never goes to the network.

    ``renamed`` has the types that are not DuckDB's own: see :data:`inbounds.tables.engines.COUNTED`.
    """

    def __init__(self, connection: Any, relation: Any, renamed: Mapping[str, str] | None = None) -> None:
        super().__init__(relation)
        self._connection, self._renamed = connection, dict(renamed or {})

    def types(self) -> dict[str, str]:
        return super().types() | self._renamed


class _Frame(_Local):
    """A data frame in memory, handed to DuckDB as Arrow; only the columns that a query needs."""

    def __init__(self, connection: Any, frame: Any) -> None:
        self._frame = frame
        names = list(_names(frame))
        wrong = [name for name in names if not isinstance(name, str) or names.count(name) > 1]
        if wrong or not names:
            step = "Rename columns, as frame.columns = [...]." if wrong else ""
            check.refuse("Source", "table", "a frame whose columns have different names, of text", wrong, step)
        types = dict(zip(names, _types(frame, names), strict=True))
        known = {kind: _is_known(connection, kind) for kind in set(types.values())}
        schema = extra("pyarrow").schema({name: kind for name, kind in types.items() if known[kind]})
        if not schema.names:
            check.refuse("Source", "table", "a frame with a column that DuckDB can read", names, "")
        counted = _counted(schema)
        super().__init__(connection, _read(connection, _whole(schema.empty_table(), counted), schema.names), counted)
        self._names = names

    def types(self) -> dict[str, str]:
        found = super().types()
        return {name: found.get(name, UNKNOWN) for name in self._names}

    def relation(self, columns: Sequence[str]) -> Any:
        counted = self._renamed.keys() & set(columns)
        # DuckDB can be given all of a dataset only where it knows every type.
        lazy = not counted and len(self._relation.columns) == len(self._names)
        return self._connection.from_arrow(_whole(_arrow(self._frame, columns, lazy=lazy), counted))

    def unread(self) -> _Local:
        """The same without its rows."""
        return _Local(self._connection, self._relation, self._renamed)


def _names(frame: Any) -> Any:
    module = _package(frame)
    if module == "pandas":
        return frame.columns
    return frame.collect_schema().names() if module == "polars" else frame.schema.names


def _read(connection: Any, table: Any, names: Sequence[str]) -> Any:
    """A relation of Arrow columns, which DuckDB must not give other names: it would look for them in vain."""
    relation = connection.from_arrow(table)
    changed = [name for name, given in zip(names, relation.columns, strict=True) if name != given]
    if changed:
        needs = "a table whose columns differ in more than capitals, without the character 0 in their names"
        check.refuse("Source", "table", needs, changed, "Rename columns.")
    return relation


def _is_known(connection: Any, kind: Any) -> bool:
    """Whether DuckDB has an Arrow type; a column of another one, None for none at all, can stand beside others."""
    try:
        connection.from_arrow(extra("pyarrow").schema([("x", kind)]).empty_table())
    except Exception:  # whatever it says, of no values
        return False
    return True


def _types(frame: Any, names: Sequence[str]) -> list[Any]:
    """The Arrow types of the columns of a frame; None where Arrow has none."""
    module = _package(frame)
    if module == "pandas":
        return [None if (column := _column(frame, name)) is None else column.type for name in names]
    if module == "polars":
        return [_polars_type(kind) for kind in frame.collect_schema().dtypes()]
    return list(frame.schema.types)


def _polars_type(kind: Any) -> Any:
    try:
        return extra("polars").DataFrame(schema={"x": kind}).to_arrow().schema.field(0).type
    except Exception:  # whatever it says, of no values
        return None


def _column(frame: Any, name: str, *, rows: bool = False) -> Any:
    """A column of pandas as Arrow, or None. Without ``rows``, only as much of it as its type needs to be known.

    That is nothing for numbers and times, whose type is their own; that of objects and texts is found in the data.
    """
    column = frame[name]
    plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufmM"
    try:
        return extra("pyarrow").array(column if rows or not plain else column.head(0), from_pandas=True)
    except Exception:  # values that Arrow cannot hold together, which it would name
        return None


def _arrow(frame: Any, columns: Sequence[str], *, lazy: bool) -> Any:
    """Some columns of a frame as Arrow; ``lazy`` leaves a dataset as it is, of which DuckDB reads what it needs."""
    module, names = _package(frame), list(columns)
    if module == "polars":
        polars = extra("polars")
        frame = frame.select(polars.col(names))
        return (frame.collect() if isinstance(frame, polars.LazyFrame) else frame).to_arrow()
    arrow = extra("pyarrow")
    if module == "pandas":
        return arrow.table({name: _column(frame, name, rows=True) for name in names})
    if isinstance(frame, arrow.RecordBatch):
        frame = arrow.Table.from_batches([frame])
    if isinstance(frame, arrow.Table):
        return frame.select(names)
    return frame if lazy else frame.to_table(columns=names)


def _counted(schema: Any) -> dict[str, str]:
    """The columns of times that DuckDB cannot read whatever they hold."""
    return {field.name: str(field.type) for field in schema if COUNTED.fullmatch(str(field.type))}


def _whole(table: Any, counted: Collection[str]) -> Any:
    """The table with such columns as whole numbers, which copies nothing."""
    integer = extra("pyarrow").int64()
    for i, name in enumerate(table.schema.names):
        if name in counted:
            table = table.set_column(i, name, table.column(i).cast(integer))
    return table


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
    notes : tuple of str
        What to know of every answer from it.
    """

    engine: Engine
    schema: Schema
    types: Mapping[str, str]
    description: str
    debug: bool = False
    notes: tuple[str, ...] = ()

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
            of JSON only the columns named are read. Lines of CSV that do not fit are left out; in JSON what does not
            fit counts as missing. Of pandas' object columns the
            types are found in the data, and count as public too; one of mixed values cannot be asked about.
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
        _check_types(types)
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
        notes = tuple(note for kind, note in _LOOSE.items() if what.endswith(kind))
        if types is not None and not notes:
            check.refuse("Source", "types", "left out: this table knows its types", types, "")
        found = shielded("reading the schema", engine.types, debug=debug)
        schema = MappingProxyType({column: engine.kind(type_name) for column, type_name in found.items()})
        for column in types or ():
            find("types", column, schema)
        return cls(engine, schema, MappingProxyType(found), f"{what}, on {engine.name}", debug, notes)

    def frame(self, columns: Sequence[str]) -> LazyFrame[Any]:
        """Some columns as c0, c1, ... in their plain forms; nothing is read yet."""
        return plain_frame(self.engine, columns, self.types)

    def unread(self) -> Source:
        """The same table for writing a query, of which no row is read; most are not read before a query runs."""
        return replace(self, engine=self.engine.unread()) if isinstance(self.engine, _Frame) else self

    def __reduce__(self) -> NoReturn:
        raise ParameterTypeError(
            "Source: a table must be opened where it is asked; it cannot be pickled or copied, nor can a data set or a "
            "plan. Open it again there, as ib.dataset(path, ...)."
        )

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
    if not isinstance(temp_directory, str | os.PathLike | None):
        check.refuse("Source", "temp_directory", "a path", temp_directory, "", ParameterTypeError)
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
    count = "a file" if len(paths) == 1 else f"{len(paths)} files"
    if suffixes <= set(_PARQUET):
        return _parquet(_connection(paths, **settings), paths), f"{count} of Parquet"
    named = {column: _TYPES[kind] for column, kind in (types or {}).items()}
    for suffixes_of, word, reader, option in (
        (_CSV, "CSV", "read_csv", "dtype"),
        (_JSON, "JSON", "read_json", "columns"),
    ):
        if suffixes <= set(suffixes_of):
            connection = _connection(paths, **settings)
            options = {option: named} if named else {}
            relation = getattr(connection, reader)(paths, ignore_errors=True, **options)
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


def _parquet(connection: Any, paths: Sequence[str]) -> _Local:
    """Parquet files, of which every value can be read. All that could fail is known from the ends of the files."""
    parquet = extra("pyarrow.parquet")
    schemas = [parquet.read_metadata(path).schema for path in paths]
    alike = all(schema.equals(schemas[0]) for schema in schemas)
    if any(map(_in_milliseconds, schemas)):
        if not alike:
            step = "Write them anew with times in microseconds."
            check.refuse("Source", "table", "files of one schema where times are in milliseconds", list(paths), step)
        return _through_arrow(connection, paths)
    union = not alike and _differ(connection, paths)
    return _Local(connection, connection.read_parquet(list(paths), union_by_name=union))


def _in_milliseconds(schema: Any) -> bool:
    """Whether some times are: DuckDB fails while it reads those that are too far away for microseconds."""
    kinds = (schema.column(i).logical_type for i in range(len(schema.names)))
    return any(kind.type == "TIMESTAMP" and '"milliseconds"' in kind.to_json() for kind in kinds)


def _through_arrow(connection: Any, paths: Sequence[str]) -> _Local:
    """Files of one schema, read by Arrow with such times as whole numbers; slower than by DuckDB itself."""
    arrow, datasets = extra("pyarrow"), extra("pyarrow.dataset")
    how = {"format": datasets.ParquetFileFormat(coerce_int96_timestamp_unit="us"), "partitioning": "hive"}
    schema = datasets.dataset(list(paths), **how).schema
    counted = _counted(schema)
    plain = arrow.schema([(f.name, arrow.int64() if f.name in counted else f.type) for f in schema])
    found = datasets.dataset(list(paths), schema=plain, **how)
    return _Local(connection, _read(connection, found, schema.names), counted)


_WHOLE = {name for name, kind in DuckDB._KINDS.items() if kind is Kind.INTEGER}


def _differ(connection: Any, paths: Sequence[str]) -> bool:
    """Whether files have different columns; where they could not be read as one whatever they hold, an error.

    Columns that a file lacks are null there. Of types, DuckDB takes a wider one, which whole numbers and numbers always
    fit; of all others some values might not.
    """
    relations = [connection.read_parquet([path], hive_partitioning=False) for path in paths]
    schemas = [dict(zip(map(str.lower, r.columns), map(str, r.types), strict=True)) for r in relations]
    types: dict[str, set[str]] = {}
    for name, kind in (item for schema in schemas for item in schema.items()):
        types.setdefault(name, set()).add(kind)
    wrong = {
        name: sorted(kinds)
        for name, kinds in types.items()
        if len(kinds) > 1 and not kinds <= _WHOLE and not ("DOUBLE" in kinds and kinds <= {*_WHOLE, "FLOAT", "DOUBLE"})
    }
    if wrong:
        step = "Write the files anew with one type for each column."
        check.refuse("Source", "table", "files whose columns have types that go together", wrong, step)
    return any(schema != schemas[0] for schema in schemas)


def _check_types(types: object) -> None:
    if types is None:
        return
    if not isinstance(types, Mapping):
        step = 'As {"age": "integer"}.'
        check.refuse("Source", "types", "a mapping of columns to what they hold", types, step, ParameterTypeError)
    wrong = {column: kind for column, kind in types.items() if not isinstance(kind, str) or kind not in _TYPES}
    if wrong:
        check.refuse("Source", "types", "one of " + ", ".join(_TYPES) + " for each column", wrong, "")


def _database(path: Any, table: object, settings: Mapping[str, Any]) -> tuple[Engine, str]:
    if not isinstance(table, str):
        check.refuse("Source", "table", "the name of a table in the database", table, "", ParameterTypeError)
    (file,) = _expand(os.fspath(path))
    connection = _connection([], database=file, **settings)
    tables = {row[0] for row in connection.execute("SELECT table_name FROM information_schema.tables").fetchall()}
    if table not in tables:
        raise ParameterError(f"Source: the database must have the table asked for; got {table!r}.")
    return _Local(connection, connection.table('"' + table.replace('"', '""') + '"')), "a table of a database file"

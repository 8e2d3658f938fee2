"""Tables stored by DuckDB: in a file, or in a database that the user has open.

Only base tables are read, never views: what a view computes can fail on a row, or be folded by statistics of other
rows. Of a table only stored columns are read, as they are or by a cast that has a result for every value. A generated
column is an expression that is computed while it is read, and is left out.

A file is attached read-only by a DuckDB of our own that lives as long as one reading: nothing is shared between
threads, inherited by a fork, or kept from others. A database of the user's is read through a cursor, which is another
connection to it: it disturbs no result that the user is fetching, and sees what is committed, not temporary tables.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from inbounds import _checks as check
from inbounds.errors import ParameterTypeError
from inbounds.tables.kinds import LONGEST, extra
from inbounds.tables.readers.base import COPY, Field, Stored, StoredColumn, left_out, quoted
from inbounds.tables.readers.versions import admitted

__all__ = ["Place", "Table", "base", "free", "in_connection", "in_file", "lock", "private", "tables_named"]

P = ParamSpec("P")
T = TypeVar("T")

#: Rows of a batch. That long text is missing is said to the database too, so that no row decides whether a batch fits
#: what Arrow can address: 2 GiB. A database of the user's may be set to Arrow's small offsets, a setting for all of it.
_BATCH = 2048

_NUMBERS = {
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "UTINYINT": "uint8",
    "USMALLINT": "uint16",
    "UINTEGER": "uint32",
    "UBIGINT": "uint64",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "DATE": "date32",
}
_TIMES = {
    "TIMESTAMP_S": ("s", None),
    "TIMESTAMP_MS": ("ms", None),
    "TIMESTAMP": ("us", None),
    "TIMESTAMP_NS": ("ns", None),
    "TIMESTAMP WITH TIME ZONE": ("us", "UTC"),
    "TIMESTAMPTZ_NS": ("ns", "UTC"),
}
# Where DuckDB's own functions are: a macro of the same name in the database would be called before them.
_OWN = "system.main"
_TEXT = f"CASE WHEN {_OWN}.strlen({{0}}) <= {LONGEST} THEN {{0}} END"


@dataclass(frozen=True)
class _Column(StoredColumn):
    """A stored column, and how it is selected."""

    select: str


@dataclass(frozen=True)
class Place:
    """Where a table is."""

    database: str
    schema: str
    table: str

    def __str__(self) -> str:
        return ".".join(map(quoted, (self.database, self.schema, self.table)))


def _field(kind: str) -> tuple[str, Field]:
    """How a column of a type is selected, ``{0}`` being its name, and its field.

    DuckDB hands dates, times and numbers to Arrow bit by bit, infinite and far ones too.
    """
    arrow = extra("pyarrow")
    decimal = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", kind)
    if decimal is not None:
        return "{0}", Field(arrow.decimal128(int(decimal[1]), int(decimal[2])))
    if kind in _NUMBERS:
        return "{0}", Field(getattr(arrow, _NUMBERS[kind])())
    if kind in _TIMES:
        return "{0}", Field(arrow.timestamp(*_TIMES[kind]))
    if kind == "BOOLEAN":  # as a number: with arrow_lossless_conversion it would be an extension of Arrow
        return "CAST({0} AS UTINYINT)", Field(arrow.bool_())
    if kind in ("HUGEINT", "UHUGEINT"):  # more than 38 digits, which is all that Arrow's decimals of 128 bits hold
        return "CAST({0} AS VARCHAR)", Field(arrow.large_binary(), "wide")
    if kind == "VARCHAR":
        return _TEXT, Field(arrow.large_binary(), "text")
    if kind == "UUID" or kind.startswith("ENUM("):
        return _TEXT.format("CAST({0} AS VARCHAR)"), Field(arrow.large_binary(), "text")
    return "NULL", Field(arrow.list_(arrow.null()))  # nothing that a question can be asked about


def _columns(cursor: Any, place: Place) -> tuple[dict[str, _Column], list[str]]:
    """The stored columns of a base table, and the names of the generated ones; nothing of the rows."""
    found = cursor.execute(
        f"SELECT column_name, data_type, is_generated FROM {_OWN}.duckdb_columns() "
        "WHERE database_name = ? AND schema_name = ? AND table_name = ? ORDER BY column_index",
        [place.database, place.schema, place.table],
    ).fetchall()
    columns = {}
    for name, kind, generated in found:
        if not generated:
            select, field = _field(kind)
            columns[name] = _Column(kind, field, select.format(quoted(name)))
    return columns, [name for name, _, generated in found if generated]


def free(function: Callable[P, T]) -> Callable[P, T]:
    """The function, which asks a user's connection for names: not while the user is fetching a result from it."""

    @functools.wraps(function)
    def asked(*args: P.args, **options: P.kwargs) -> T:
        with contextlib.suppress(extra("duckdb").ResourceInUseException), _open_only():
            return function(*args, **options)
        step = "Fetch the result that is open on it to its end, or open the table before."
        check.refuse("Source", "table", "on a connection that is free", "one in use", step)

    return asked


@contextlib.contextmanager
def _open_only() -> Iterator[None]:
    """Where a user's connection is asked for names, or for a cursor: say that it is closed."""
    closed = False
    try:
        yield
    except extra("duckdb").ConnectionException:
        closed = True
    if closed:
        check.refuse(
            "Source", "table", "on a connection that is open", "a closed one", "Connect again, and open it anew."
        )


def tables_named(connection: Any, path: Sequence[str]) -> list[tuple[Place, str]]:
    """What a name can mean, each with "table", "temporary table", or the SQL of a view.

    ``path`` is a table, (schema or database, table), or (database, schema, table). DuckDB holds names that differ in
    capitals only to be the same.
    """
    # Not with execute, which would end a result that the user is fetching.
    found = connection.sql(
        "SELECT database_name, schema_name, table_name, "
        "CASE WHEN temporary THEN 'temporary table' ELSE 'table' END "
        f"FROM {_OWN}.duckdb_tables() WHERE NOT internal AND {_OWN}.lower(table_name) = {_OWN}.lower($name) UNION ALL "
        f"SELECT database_name, schema_name, view_name, sql FROM {_OWN}.duckdb_views() "
        f"WHERE NOT internal AND {_OWN}.lower(view_name) = {_OWN}.lower($name)",
        params={"name": path[-1]},
    ).fetchall()

    def fits(database: str, schema: str) -> bool:
        before = [part.casefold() for part in path[:-1]]
        whole = [database.casefold(), schema.casefold()]
        return before == whole[2 - len(before) :] or before == whole[:1]

    places = [(Place(d, s, t), kind) for d, s, t, kind in found if fits(d, s)]
    if len(places) > 1 and len(path) < 3 and not any(kind == "temporary table" for _, kind in places):
        ((database, schema),) = connection.sql("SELECT current_database(), current_schema()").fetchall()
        here = [p for p in places if p[0].database == database and (len(path) > 1 or p[0].schema == schema)]
        places = here or places
    return places


@dataclass(frozen=True, eq=False, repr=False)
class Table(Stored[_Column]):
    """A base table, or some of its columns. Made by :func:`in_file` and :func:`in_connection`; see ``Reader``."""

    _place: Place

    @property
    def types(self) -> dict[str, str]:
        """The columns' types, as DuckDB names them."""
        return {name: column.type for name, column in self._columns.items()}

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        arrow = extra("pyarrow")
        read = [self._columns[name] for name in columns]
        select = ", ".join(f"{column.select} AS c{i}" for i, column in enumerate(read))
        names = [f"c{i}" for i in range(len(read))]
        with self._open() as cursor:
            for batch in cursor.sql(f"SELECT {select} FROM {self._place}").to_arrow_reader(_BATCH):
                # Settings of the database decide between types of Arrow that mean the same; no cast can fail.
                whole = [values.cast(column.field.arrow) for values, column in zip(batch.columns, read, strict=True)]
                yield arrow.RecordBatch.from_arrays(whole, names)

    def ready(self) -> None:
        with self._open() as cursor:
            columns, _ = _columns(cursor, self._place)
        self._as_opened(columns)


def _table(
    what: str, path: str, place: Place, open_: Callable[[], AbstractContextManager[Any]], *, once: bool
) -> Table:
    with open_() as cursor:
        columns, generated = _columns(cursor, place)
    if not columns:
        step = "A temporary table, and one that is not committed, exist for one connection only. " + COPY
        check.refuse("Source", "table", "a table that other connections see", str(place), step)
    notes = left_out(generated) + admitted("duckdb", "pyarrow")
    identity = f"{path}::{quoted(place.schema)}.{quoted(place.table)}"
    return Table(what, identity, notes, once, open_, columns, place)


def _named(connection: Any, name: object) -> Place:
    """The base table of a name, which may be whole or like schema.table."""
    if not isinstance(name, str) or not name:
        check.refuse("Source", "table", "the name of a table in the database", name, "", ParameterTypeError)
    parts = name.split(".")
    paths = [[name]] + ([parts] if 1 < len(parts) <= 3 else [])
    return base([found for path in paths for found in tables_named(connection, path)], name)


def base(found: Sequence[tuple[Place, str]], name: str) -> Place:
    """The one base table among what a name can mean (:func:`tables_named`)."""
    if not found:
        check.refuse("Source", "table", "a table of the database", name, "")
    if len(found) > 1:
        check.refuse("Source", "table", "the name of one table only", name, 'Write it as "schema.table".')
    ((place, kind),) = found
    if kind != "table":
        word = kind if kind == "temporary table" else "view"
        check.refuse("Source", "table", f"a table that is stored, not a {word}", name, COPY)
    return place


def private(**settings: Any) -> Any:
    """A DuckDB of our own, in memory, which loads nothing."""
    config = {"autoinstall_known_extensions": False, "autoload_known_extensions": False, **settings}
    return extra("duckdb").connect(":memory:", config=config)


def lock(connection: Any) -> None:
    """From here on it opens nothing, and no rows decide how an expression is written."""
    for setting in (
        "disabled_optimizers = 'statistics_propagation'",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")


def in_file(path: str | os.PathLike[str], table: object) -> Table:
    """A table of a database file, by name or like ``schema.table``."""
    file = os.path.realpath(path)
    duckdb = extra("duckdb")

    @contextlib.contextmanager
    def attached() -> Iterator[Any]:
        # In memory, with the file beside it: so several can have it open at once.
        with private() as connection:
            try:
                connection.execute(f"ATTACH '{file.replace(chr(39), chr(39) * 2)}' AS stored (TYPE duckdb, READ_ONLY)")
            except duckdb.Error:  # its words are of the file, but might be of anything in it
                connection = None
            if connection is None:
                step = "Where it is open for writing, in this process or another one, close it; or give the connection "
                step += "that has it open in the place of the path. Pass a table of SQLite through Ibis."
                check.refuse("Source", "table", "a database of DuckDB that can be read now", file, step)
            connection.execute("USE stored")
            lock(connection)
            yield connection

    with attached() as connection:
        place = _named(connection, table)
    return _table("a table of a DuckDB file", file, place, attached, once=False)


@free
def in_connection(connection: Any, table: str | Place) -> Table:
    """A table of a database that the user has open; of the connection only cursors are used once the name is found."""

    @contextlib.contextmanager
    def cursor() -> Iterator[Any]:
        with _open_only():
            other = connection.cursor()
        with other:
            yield other

    place = table if isinstance(table, Place) else _named(connection, table)
    with cursor() as other:
        found = other.execute(
            f"SELECT path, type FROM {_OWN}.duckdb_databases() WHERE database_name = ?", [place.database]
        ).fetchall()
    if not found or found[0][1] != "duckdb":
        kind = found[0][1] if found else "unknown"
        check.refuse("Source", "table", "stored by DuckDB itself", f"a database of type {kind}", COPY)
    path = found[0][0]
    where = "memory" if path is None else os.path.realpath(path)
    # The user may write between two readings.
    return _table("a table of DuckDB", where, place, cursor, once=True)

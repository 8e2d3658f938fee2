"""Tables of SQLite, whose cells may hold anything, whatever their column was declared to hold.

A file is read through a connection of our own that can only read; a database in memory is copied when it is opened.
The cells come as SQLite stores them, text as bytes, and become values of their column's declared type here, each by
itself. A cell that does not hold what its column declares counts as missing: so does text among numbers, or a number
among dates.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inbounds import _checks as check
from inbounds.tables.kinds import LONGEST, extra
from inbounds.tables.readers.base import COPY, Field, Stored, StoredColumn, left_out, quoted
from inbounds.tables.readers.versions import admit, admitted

__all__ = ["Table", "in_connection"]

_BATCH = 1024
_WAIT = 60.0  # seconds for another process that writes
_GENERATED, _STORED = 2, 3  # what pragma table_xinfo says of generated columns that are computed, and stored


def _declared(kind: str) -> str | None:
    """What a declared type promises, by SQLite's own rules of affinity where they say enough."""
    kind = kind.upper()
    for pattern, declared in (
        (r"BOOL", "boolean"),
        (r"TIMESTAMP|DATETIME", "time"),
        (r"^DATE$", "date"),
        (r"INT", "integer"),
        (r"CHAR|CLOB|TEXT", "text"),
        (r"REAL|FLOA|DOUB|^NUMERIC\b|^DECIMAL\b", "number"),
    ):
        if re.search(pattern, kind):
            return declared
    return None


def _field(declared: str | None) -> Field:
    arrow = extra("pyarrow")
    if declared is None:
        return Field(arrow.list_(arrow.null()))  # nothing that a question can be asked about
    plain = {"boolean": arrow.bool_(), "integer": arrow.int64(), "number": arrow.float64()}
    return Field(plain[declared]) if declared in plain else Field(arrow.large_binary(), declared)


def _cell(declared: str | None) -> Callable[[Any], Any]:
    """What becomes of a cell: an int of 64 bits, a float that is not NaN, text as bytes, or bytes."""
    if declared == "boolean":
        return lambda cell: bool(cell) if type(cell) is int and cell in (0, 1) else None
    if declared == "integer":
        return lambda cell: cell if type(cell) is int else None
    if declared == "number":
        return lambda cell: float(cell) if type(cell) in (int, float) else None
    return lambda cell: cell


def _expression(declared: str | None, name: str) -> str:
    """How a column is selected: bytes are told from text by SQLite, which hands both over as bytes."""
    if declared in ("text", "date", "time"):
        # Of text that is not long in UTF-8, no encoding of SQLite has more than twice the bytes.
        short = f"length(CAST({name} AS BLOB)) <= {2 * LONGEST}"
        return f"CASE WHEN typeof({name}) = 'text' AND {short} THEN {name} END"
    return name if declared is not None else "NULL"


@dataclass(frozen=True)
class _Column(StoredColumn):
    declared: str | None


@dataclass(frozen=True, eq=False, repr=False)
class Table(Stored[_Column]):
    """A table that is stored. Made by :func:`in_connection`; see ``Reader``."""

    _name: str

    def _select(self, columns: Sequence[str]) -> str:
        table = quoted(self._name)
        # With its table before it, a name in quotes can only be a column; SQLite would take it for text else.
        values = (_expression(self._columns[name].declared, f"{table}.{quoted(name)}") for name in columns)
        return f"SELECT {', '.join(values)} FROM main.{table}"

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        arrow = extra("pyarrow")
        read = [self._columns[name] for name in columns]
        names, cells = [f"c{i}" for i in range(len(read))], [_cell(column.declared) for column in read]
        with self._open() as connection:
            cursor = connection.execute(self._select(columns))
            while rows := cursor.fetchmany(_BATCH):
                arrays = [
                    arrow.array(list(map(cell, values)), column.field.arrow)
                    for cell, values, column in zip(cells, zip(*rows, strict=True), read, strict=True)
                ]
                yield arrow.RecordBatch.from_arrays(arrays, names)

    def ready(self) -> None:
        with self._open() as connection:
            now, _ = _read_columns(connection, self._name)
            self._as_opened(now)
            connection.execute(self._select(list(self._columns)) + " LIMIT 0")


def _kind(connection: Any, table: str) -> tuple[str, str]:
    """What has a name, and how that is spelled: SQLite tells no capitals apart."""
    found = connection.execute(
        "SELECT type, name FROM pragma_table_list WHERE schema = 'main' AND lower(name) = lower(?)", [table]
    ).fetchall()
    return (found[0][0].decode(), found[0][1].decode("utf-8", "replace")) if found else ("nothing of this name", table)


def _read_columns(connection: Any, table: str) -> tuple[dict[str, _Column], list[str]]:
    """The columns that are stored, and the names of those that are computed; nothing of the rows."""
    kind = _kind(connection, table)[0]
    if kind != "table":
        check.refuse("Source", "table", "a table that SQLite stores", kind, COPY)
    found = connection.execute(f"PRAGMA main.table_xinfo({quoted(table)})").fetchall()
    columns, generated = {}, []
    for _, name, declared_type, _, _, _, hidden in found:
        text = name.decode("utf-8", "replace")
        if hidden in (0, _STORED):
            declared = _declared(declared_type.decode("utf-8", "replace"))
            columns[text] = _Column(declared_type.decode("utf-8", "replace"), _field(declared), declared)
        elif hidden == _GENERATED:
            generated.append(text)
    return columns, generated


def in_connection(connection: Any, table: str, schema: str | None = None) -> Table:
    """A table of a database that the user has open with :mod:`sqlite3`; its connection is not used again.

    Without ``schema`` it is that of the file itself, unless the connection has a temporary one of this name.
    """
    sqlite3 = extra("sqlite3")
    note = admit("SQLite", sqlite3.sqlite_version)
    hiding = "SELECT 1 FROM temp.sqlite_master WHERE type IN ('table', 'view') AND lower(name) = lower(?)"
    if schema == "temp" or (schema is None and connection.execute(hiding, [table]).fetchall()):
        check.refuse("Source", "table", "one that other connections see", f"a temporary one, {table!r}", COPY)
    schema = schema or "main"
    files = {row[1]: row[2] for row in connection.execute("PRAGMA database_list").fetchall()}
    if schema not in files:
        check.refuse("Source", "table", "in a database that is attached", schema, "")
    file = files[schema]
    data = None if file else connection.serialize(name=schema)

    @contextlib.contextmanager
    def opened() -> Iterator[Any]:
        where = f"{Path(file).as_uri()}?mode=ro" if file else ":memory:"
        other = sqlite3.connect(where, uri=True, timeout=_WAIT, check_same_thread=False)
        with contextlib.closing(other):
            other.text_factory = bytes
            if data is not None:
                other.deserialize(data)
            yield other

    with opened() as other:
        columns, generated = _read_columns(other, table)
        _, table = _kind(other, table)
    copied = () if file else ("the database in memory was copied when it was opened",)
    notes = copied + left_out(generated) + admitted("pyarrow") + (() if note is None else (note,))
    identity = f"{os.path.realpath(file) if file else 'memory'}::{quoted(table)}"
    return Table("a table of SQLite", identity, notes, True, opened, columns, table)

"""A table of Ibis, looked through to what is stored behind it.

Ibis writes a query for the database behind it. Databases differ in what fails on a row, so none is asked a question:
where the database is one whose rows can be read safely, they are read by its reader. Columns may have been chosen,
dropped and renamed; every other expression is refused, also on a database that is known.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NoReturn

from inbounds import _checks as check
from inbounds.errors import ParameterError
from inbounds.tables.kinds import extra
from inbounds.tables.readers import postgres, sqlite
from inbounds.tables.readers.base import Chosen, Reader, Through
from inbounds.tables.readers.relations import look_through_name
from inbounds.tables.readers.versions import admitted

__all__ = ["look_through"]

_STEP = (
    "Write conditions and new columns as a question: where(...), ib.col(...). Or store what is to be asked in a table "
    "of its own."
)


def look_through(table: Any) -> Chosen[Any] | Through:
    """What a table of Ibis chooses columns of: a stored table, as a reader; or files, or a frame."""
    operations = extra("ibis.expr.operations", "ibis")
    node = table.op()
    columns = {name: name for name in node.schema.names}
    while type(node) in (operations.Project, operations.DropColumns):
        if type(node) is operations.Project:
            if not all(type(v) is operations.Field and v.rel == node.parent for v in node.values.values()):
                _refuse("an expression")
            columns = {name: node.values[behind].name for name, behind in columns.items()}
        node = node.parent
    if type(node) is operations.InMemoryTable:
        return Through(_frame(node), columns, admitted("ibis-framework"))
    if type(node) is not operations.DatabaseTable:
        _refuse("an expression")
    return _choose(_stored(node), columns)


def _frame(node: Any) -> Any:
    """The frame of ``ibis.memtable``, if it is what Ibis shows: its columns by their names, of its own types."""
    frame = node.data.obj
    if hasattr(frame, "iloc"):
        empty, told = frame.iloc[:0], [name for name in frame.columns if frame[name].dtype != object]
    elif hasattr(frame, "slice"):
        empty, told = frame.slice(0, 0), node.schema.names
    else:
        check.refuse("Source", "table", "an Ibis table in memory of a frame", type(frame).__name__, "Pass it itself.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas, about what Ibis asks it
        given, own = dict(node.schema), dict(extra("ibis", "ibis").memtable(empty).schema())
    if given.keys() != own.keys() or any(given[name] != own[name] for name in told):
        needs = "an Ibis table in memory with the names and the types of its frame"
        step = "Pass the frame itself, with its columns renamed and converted; or leave schema= and columns= out."
        check.refuse("Source", "table", needs, f"one of columns {list(given)}", step)
    return frame


def _refuse(why: str) -> NoReturn:
    need = "an Ibis table that only chooses and renames columns of one table that a database stores"
    raise ParameterError(f"Source: table must be {need}; got one with {why}. {_STEP}")


def _choose(found: Reader | Through, columns: Mapping[str, str]) -> Chosen[Any] | Through:
    notes = admitted("ibis-framework")
    if isinstance(found, Through):
        return Through(found.table, {name: found.columns[behind] for name, behind in columns.items()}, notes)
    # Generated columns are left out.
    return Chosen(found, {name: behind for name, behind in columns.items() if behind in found.fields}, notes)


def _stored(node: Any) -> Reader | Through:
    """A table of a database."""
    backend, space = node.source, node.namespace
    if backend.name == "duckdb":
        return look_through_name(backend.con, [p for p in (space.catalog, space.database, node.name) if p is not None])
    if backend.name == "sqlite":
        return sqlite.in_connection(backend.con, node.name, space.database)
    if backend.name == "postgres":
        return postgres.in_connection(backend.con, node.name, space.database)
    if backend.name == "polars":
        frames = getattr(backend, "_tables", {})  # no part of Ibis's public interface
        if node.name in frames:
            return Through(frames[node.name], {name: name for name in node.schema.names})
    if backend.name == "pyspark":
        step = "Give the DataFrame of Spark itself."
    else:
        step = "Read it into DuckDB or write it to Parquet, and give that."
    known = "on DuckDB, PostgreSQL, SQLite or Polars, whose rows are known to be read safely"
    check.refuse("Source", "table", known, f"one on {backend.name}", step)

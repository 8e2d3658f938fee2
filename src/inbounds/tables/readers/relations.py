"""A relation of DuckDB, looked through to the one thing it stands for.

What a relation computes runs in the user's database, where an expression can fail on one row, be folded by statistics
of other rows, or show constants in a plan. So a relation is never run. Its SQL is parsed by a DuckDB of our own, and
admitted if it only chooses and renames columns of one stored table or of Parquet files, through any number of views
and subqueries. Then the table or the files are read instead. Everything else is refused, whatever it would compute.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from inbounds import _checks as check
from inbounds.errors import ParameterError
from inbounds.tables.readers.base import Chosen, Through
from inbounds.tables.readers.duckdb import Place, Table, base, free, in_connection, private, tables_named
from inbounds.tables.readers.parquet import Parquet

__all__ = ["look_through", "look_through_name"]

_PLAIN = "a relation that only chooses and renames columns of one table or of Parquet files"
_STEP = (
    "Give the table, the path or the frame behind it, and write conditions and new columns as a question: where(...), "
    "ib.col(...). Or store what is to be asked: CREATE TABLE ... AS SELECT ..."
)
_NAME = r'(?:"(?:[^"]|"")*"|\w+)'
_VIEW = re.compile(
    rf"CREATE (?:TEMP |TEMPORARY )?VIEW {_NAME}(?:\.{_NAME}){{0,2}} ?(?:\({_NAME}(?:, ?{_NAME})*\))? ?AS "
)
#: Keys of a SELECT that must be empty; those that are not known here, too.
_KNOWN = {"type", "cte_map", "select_list", "from_table", "aggregate_handling"}
#: Options of read_parquet that change no value, and the values that they may have.
_OFF = ("binary_as_string", "file_row_number", "filename", "hive_partitioning")
_OPTIONS = {"union_by_name": (True, False), **dict.fromkeys(_OFF, (False,))}

#: The columns of a step of a relation: names, and the stored columns they are.
_Chosen = list[tuple[str, str]]


def _refuse(why: str) -> NoReturn:
    raise ParameterError(f"Source: table must be {_PLAIN}; got one with {why}. {_STEP}")


@dataclass(frozen=True)
class _Found:
    """Columns of a table or of files, by name."""

    behind: Place | tuple[str, ...]
    chosen: tuple[tuple[str, str], ...]

    def column(self, name: str) -> str:
        stored = [stored for known, stored in self.chosen if known.casefold() == name.casefold()]
        if len(stored) != 1:
            _refuse("something that is no column")
        return stored[0]


class _Look:
    """One relation; ``connection`` is asked for names only."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._parser = private()

    def text(self, sql: str, depth: int = 0) -> _Found:
        """A query as text."""
        if depth > 100:
            _refuse("too many views")
        parsed = json.loads(self._parser.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()[0])
        statements = parsed.get("statements", [])
        if parsed["error"] or len(statements) != 1:
            _refuse("a statement that is no SELECT")
        return self._select(statements[0]["node"], {}, depth)

    def _select(self, node: Mapping[str, Any], outer: Mapping[str, _Found], depth: int) -> _Found:
        if node["type"] != "SELECT_NODE":
            _refuse("a union of queries")
        if (
            any(value for key, value in node.items() if key not in _KNOWN)
            or node["aggregate_handling"][:8] != "STANDARD"
        ):
            _refuse("a condition, groups, an order, a sample or a limit")
        common = dict(outer)
        for item in node["cte_map"]["map"]:
            inner = item["value"]
            if inner["aliases"] or inner["key_targets"] or inner["payload_aggregates"]:
                _refuse("a query that is named with its columns")
            common[item["key"].casefold()] = self._select(inner["query_node"], common, depth)
        names, source = self._from(node["from_table"], common, depth)
        chosen = [column for item in node["select_list"] for column in _item(item, names, source)]
        return _Found(source.behind, tuple(chosen))

    def _from(self, table: Mapping[str, Any], common: Mapping[str, _Found], depth: int) -> tuple[list[str], _Found]:
        """What a query is from, and the names that qualify its columns."""
        kind, path = table["type"], table.get("qualified_name", {}).get("path", [])
        if table.get("sample") or table.get("column_name_alias") or table.get("at_clause"):
            _refuse("a sample, a version of a table, or a table whose columns are named anew")
        names = [table["alias"]] if table["alias"] else path
        if kind == "SUBQUERY":
            return names, self._select(table["subquery"]["node"], common, depth)
        if kind == "TABLE_FUNCTION" and not table["function"]["schema"]:
            return names, self._files(table["function"])
        if kind != "BASE_TABLE":
            _refuse("a join, or rows that are not stored")
        if len(path) == 1 and path[0].casefold() in common:
            return names, common[path[0].casefold()]
        return names, self.name(path, depth)

    def name(self, path: Sequence[str], depth: int = 0) -> _Found:
        """A table, a view, or a path in the place of one."""
        found = tables_named(self._connection, path)
        if not found and len(path) == 1:
            if path[0].lower().endswith((".parquet", ".pq")):
                return self._parquet([path[0]], {})
            _refuse("rows of a frame, a file that is not Parquet, or values")
        if len(found) == 1 and found[0][1].startswith("CREATE"):
            return self._view(*found[0], depth)
        place = base(found, ".".join(path))
        return _Found(place, tuple((name, name) for name in self._columns(str(place))))

    def _view(self, place: Place, sql: str, depth: int) -> _Found:
        start = _VIEW.match(sql)
        if start is None:
            _refuse("a view that cannot be read")
        behind = self.text(sql[start.end() :], depth + 1)
        names = self._columns(str(place))
        if len(names) != len(behind.chosen):
            _refuse("a view that no longer fits its table")
        return _Found(
            behind.behind, tuple((name, stored) for name, (_, stored) in zip(names, behind.chosen, strict=True))
        )

    def _files(self, function: Mapping[str, Any]) -> _Found:
        if function["function_name"] not in ("read_parquet", "parquet_scan"):
            if function["function_name"].startswith("read_") or function["function_name"].endswith("_scan"):
                _refuse("files that are not Parquet, which must be given as paths, with types=")
            _refuse("a function that makes rows")
        first, *options = function["arguments"]
        known = dict(map(_option, options))
        if any(v not in _OPTIONS.get(name, ()) for name, v in known.items()):
            _refuse("options for Parquet that are not known here")
        listed = first["expression"]
        if listed.get("function_name") == "list_value":
            paths = [_constant(argument["expression"]) for argument in listed["arguments"]]
        else:
            paths = [_constant(listed)]
        if first["name"] or not paths or not all(isinstance(path, str) for path in paths):
            _refuse("paths that are not written out")
        return self._parquet(paths, known)

    def _parquet(self, paths: list[str], options: Mapping[str, bool]) -> _Found:
        listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
        given = "".join(f", {name} = {value}" for name, value in options.items())
        names, files = self._columns(f"read_parquet([{listed}]{given})"), self._files_of(paths)
        if all(map(os.path.isfile, files)):  # what else they are is refused where they are opened
            _as_stored(names, files)
        return _Found(tuple(files), tuple((name, name) for name in names))

    def _files_of(self, paths: list[str]) -> list[str]:
        """The files that patterns match by DuckDB's rules; what is not on this machine is left as it is."""
        files: list[str] = []
        for path in paths:
            found = [] if "://" in path else self._connection.sql("SELECT file FROM glob($1)", params=[path]).fetchall()
            files += sorted(file for (file,) in found) or [path]
        return files

    def _columns(self, source: str) -> list[str]:
        """The names of the columns, of which no row is read."""
        names: list[str] = self._connection.sql(f"SELECT * FROM {source}").columns
        return names


def _as_stored(names: Sequence[str], files: Sequence[str]) -> None:
    """Refuse files of whose columns DuckDB takes two for one, or which it calls by other names than they have."""
    stored = list(Parquet(files).fields)
    folded = [name.casefold() for name in stored]
    alike = sorted(name for name in stored if folded.count(name.casefold()) > 1)
    if alike or not set(names) <= set(stored):
        step = "Rename columns or folders; or pass the paths, to which capitals matter."
        needs = "a relation of files of Parquet whose columns differ in more than capitals"
        check.refuse("Source", "table", needs, (alike or sorted(set(names) - set(stored)))[:5], step)


def _item(item: Mapping[str, Any], names: Sequence[str], source: _Found) -> _Chosen:
    """The columns that one item of a select list stands for."""
    if item["class"] == "STAR":
        changed = any(item[key] for key in ("replace_list", "qualified_exclude_list", "rename_list", "columns", "expr"))
        if changed or (item["relation_name"] and not _qualifies([item["relation_name"]], names)):
            _refuse("a star that changes columns")
        left_out = {name.casefold() for name in item["exclude_list"]}
        return [column for column in source.chosen if column[0].casefold() not in left_out]
    if item["class"] != "COLUMN_REF" or not _qualifies(item["column_names"][:-1], names):
        _refuse("an expression")
    name = item["column_names"][-1]
    return [(item["alias"] or name, source.column(name))]


def _qualifies(given: Sequence[str], names: Sequence[str]) -> bool:
    """Whether what stands before a column's name is the table, and not a column that has fields."""
    known = [name.casefold() for name in names]
    return [part.casefold() for part in given] == known[len(known) - len(given) :]


def _constant(expression: Mapping[str, Any]) -> Any:
    """A text or a truth value that is written out; None for all else."""
    if expression["class"] != "CONSTANT":
        return None
    kind, text = expression["literal"].get("kind"), expression["literal"].get("text")
    return text if kind == "STRING" else text == "true" if kind == "BOOLEAN" else None


def _option(argument: Mapping[str, Any]) -> tuple[str, Any]:
    """An option of a function, written as ``a := 1`` or ``a = 1``."""
    expression = argument["expression"]
    if argument["name"]:
        return argument["name"].casefold(), _constant(expression)
    if expression["type"] == "COMPARE_EQUAL" and expression["left"]["class"] == "COLUMN_REF":
        return expression["left"]["column_names"][-1].casefold(), _constant(expression["right"])
    return "", None


def _opened(connection: Any, found: _Found, columns: Mapping[str, str]) -> Chosen[Table] | Through:
    if isinstance(found.behind, Place):
        table = in_connection(connection, found.behind)
        # Generated columns are left out.
        return Chosen(table, {name: stored for name, stored in columns.items() if stored in table.fields})
    return Through(list(found.behind), columns)


@free
def look_through(relation: Any) -> Chosen[Table] | Through:
    """The stored table that a relation chooses columns of, as a reader, or the Parquet files.

    The connection of a relation is no part of DuckDB's public interface; without it, the relation is refused.
    """
    connection = getattr(relation, "_con", None)
    if connection is None:
        check.refuse("Source", "table", "a relation whose connection is known", "one without", _STEP)
    names, types = relation.columns, list(map(str, relation.types))
    found = _Look(connection).text(relation.sql_query())
    if len(names) != len(found.chosen) or len({name.casefold() for name in names}) != len(names):
        _refuse("columns of one name")
    columns = {name: stored for name, (_, stored) in zip(names, found.chosen, strict=True)}
    opened = _opened(connection, found, columns)
    if isinstance(opened, Chosen):
        # What DuckDB itself says: a column that was taken for another one would have to be of its type.
        given, known = dict(zip(names, types, strict=True)), opened.reader.types
        if any(given[name] != known[stored] for name, stored in opened.columns.items()):
            _refuse("something that is no column")
    return opened


@free
def look_through_name(connection: Any, path: Sequence[str]) -> Chosen[Table] | Through:
    """The same for a name, as (table,) or (database, schema, table)."""
    found = _Look(connection).name(path)
    return _opened(connection, found, dict(found.chosen))

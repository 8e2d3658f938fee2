"""A table to ask: opened once, described by public facts, never shown."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from inbounds import _checks as check
from inbounds.errors import ParameterTypeError
from inbounds.tables.bare import Bare
from inbounds.tables.engines.base import Engine
from inbounds.tables.engines.embedded import Embedded, Paper, Settings, paper
from inbounds.tables.engines.spark import Spark
from inbounds.tables.expressions import Expression, fault
from inbounds.tables.kinds import Schema, extra, find, shielded
from inbounds.tables.readers import duckdb, frames, ibis, relations
from inbounds.tables.readers.base import TYPES, Chosen, Reader, Through
from inbounds.tables.readers.csv import CSV
from inbounds.tables.readers.json import JSON
from inbounds.tables.readers.parquet import Parquet
from inbounds.tables.readers.text import ending

if TYPE_CHECKING:
    from narwhals import LazyFrame

__all__ = ["Source"]

_PARQUET, _CSV, _JSON = (".parquet", ".pq"), (".csv", ".tsv", ".txt"), (".json", ".jsonl", ".ndjson")
_DATABASE = (".duckdb", ".ddb", ".db")
_LOGS = ("_delta_log", ".hoodie", "metadata/*.metadata.json")  # of Delta, Hudi and Iceberg
_SQLITE = (".sqlite", ".sqlite3", ".db3")


@dataclass(frozen=True)
class Text:
    """How text files are written: see :meth:`Source.open`."""

    delimiter: str | None = None
    quote: str | None = '"'
    header: bool | None = None
    encoding: str = "utf-8"


@dataclass(frozen=True, eq=False, repr=False)
class Source:
    """A table that queries can be run on. Use :meth:`open`.

    Attributes
    ----------
    schema : mapping of str to Kind
        The columns and what they hold. Public.
    description : str
        What was opened and where it runs, for people.
    identity : str
        Which table it is: the same when it is opened again, and another one for another table or other columns.
    notes : tuple of str
        What to know of every answer from it.
    """

    engine: Engine
    debug: bool = False

    @property
    def schema(self) -> Schema:
        return self.engine.schema

    @property
    def description(self) -> str:
        return f"{self.engine.what}, on {self.engine.name}"

    @property
    def identity(self) -> str:
        columns = json.dumps([[name, str(kind)] for name, kind in self.schema.items()])
        return f"{self.engine.identity}; columns {hashlib.sha256(columns.encode(errors='surrogatepass')).hexdigest()}"

    @property
    def notes(self) -> tuple[str, ...]:
        return self.engine.notes

    @classmethod
    def open(
        cls,
        table: Any,
        *,
        types: Mapping[str, str] | None = None,
        delimiter: str | None = None,
        quote: str | None = '"',
        header: bool | None = None,
        encoding: str = "utf-8",
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
            (DuckDB database file or connection, table name); a pandas, Polars or Arrow table; a DuckDB relation or an
            Ibis table that is a stored table: their rows are handed to an embedded DuckDB, which evaluates the
            questions. A PySpark DataFrame (classic or Connect) is asked where it is.
        types : mapping, optional
            For text, which is all that CSV, JSON and pandas' object columns know: what columns hold, as
            ``{"age": "integer"}``; one of integer, wide (whole numbers beyond 64 bits), number, text, boolean, date,
            time. Columns of CSV that are left out are text; of JSON only the columns named are read. Nothing is guessed
            from values; one that does not fit counts as missing.
        delimiter, quote, header, encoding : optional
            For CSV: see :class:`inbounds.tables.readers.csv.CSV`.
        memory_limit : str
            For the embedded DuckDB, beyond which it spills to ``temp_directory``, as ``"4GB"``.
        threads : int, optional
            For the embedded DuckDB; all cores otherwise.
        temp_directory : path, optional
            Where it makes a private directory, which is removed with the source; that of the system otherwise.
        debug : bool
            Keep an engine's own error in ``QueryFailed.engine_error``. It may show data.
        """
        if isinstance(table, Source):
            return table
        extra("narwhals")
        _check_types(types)
        settings = Settings(memory_limit, threads, temp_directory)
        text = Text(delimiter, quote, header, encoding)
        if _package(table) == "narwhals":
            table = table.to_native()

        def connect() -> Engine:
            if _package(table) == "pyspark" and type(table).__name__ == "DataFrame":
                _only_text(types, text)
                return Spark(table)
            return Embedded(_reader(table, types, text), settings, tuple(types or ()))

        engine = shielded("opening the table", connect, debug=debug)
        for column in types or ():
            find("types", column, engine.schema)
        return cls(engine, debug)

    def frame(self, columns: Sequence[str], only: Sequence[Bare] = ()) -> LazyFrame[Any]:
        """Some columns as c0, c1, ... in their plain forms; nothing is read yet. See :class:`Engine`."""
        return self.engine.frame(columns, only)

    @contextmanager
    def advising(self, *expressions: Expression | None) -> Iterator[None]:
        """Where what a column of these holds is wrong, and nobody said what its text stands for: say how to."""
        try:
            yield
        except ParameterTypeError as error:
            columns = self._untold([expression for expression in expressions if expression is not None])
            if not columns:
                raise
            kind = _meant(str(error))
            types = ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(kind)}" for name in columns)
            problem = ParameterTypeError(f"{error} Say what columns of text stand for, as types={{{types}}}.")
        else:
            return
        raise problem from None

    def _untold(self, expressions: Sequence[Expression]) -> list[str]:
        """The columns of text of which nobody said what they stand for, in what cannot be; else in all of these."""
        untold = self.engine.text_by_default if isinstance(self.engine, Embedded) else frozenset()
        wrong = [found for found in (fault(e, self.schema) for e in expressions) if found is not None]
        return sorted({name for e in wrong or expressions for name in e.columns()} & untold)

    def paper(self) -> Source:
        """The same columns without rows, where the engine that runs queries would fail if it can."""
        return Source(self.engine.paper(), self.debug)

    def writing(self) -> Paper:
        """Paper on which queries are written for people, the same for every engine."""
        own = self.engine.paper()
        return own if isinstance(own, Paper) else paper(self.schema)

    def ready(self) -> None:
        """Fail now, before anything is paid, if a query would fail whatever the rows are."""
        shielded("getting ready, so that nothing is spent", self.engine.ready, debug=self.debug)

    def __reduce__(self) -> NoReturn:
        raise ParameterTypeError(
            "Source: a table must be opened where it is asked; it cannot be pickled or copied, nor can a data set or a "
            "plan. Open it again there, as ib.dataset(path, ...)."
        )

    def __repr__(self) -> str:
        return f"<Source: {self.description}>"


#: What text has to stand for, by the words in which a message says what is needed. The first that fits.
_MEANT = {
    r"; got .*, of whole numbers\.$": "integer",
    r"; got .*, of truth values\.$": "boolean",
    r"\bdates?\b": "date",
    r"\btimes?\b": "time",
    r"\bbe a condition\b": "boolean",
}


def _meant(message: str) -> str:
    needs = re.sub(r";.* holds text.*", "", message.rpartition(" must ")[2])  # without the name of the column
    return next((kind for words, kind in _MEANT.items() if re.search(words, needs)), "number")


def _package(thing: object) -> str:
    return type(thing).__module__.split(".")[0].lstrip("_")


def _reader(table: Any, types: Mapping[str, str] | None, text: Text) -> Reader:
    """The reader for what was given."""
    package, name = _package(table), type(table).__name__
    if package == "pandas" and name == "DataFrame":
        _only_text(None, text)
        return frames.Pandas(table, types)
    if isinstance(table, tuple) and len(table) == 2 and _package(table[0]) == "duckdb" and isinstance(table[1], str):
        _only_text(types, text)
        return duckdb.in_connection(*table)
    first = table[0] if isinstance(table, tuple) and len(table) == 2 else table
    if _package(first) == "sqlite3" or (isinstance(first, str | os.PathLike) and ending(first) in _SQLITE):
        step = 'As ibis.sqlite.connect(path).table("visits").'
        shown = os.fspath(first) if isinstance(first, str | os.PathLike) else type(first).__name__
        check.refuse("Source", "table", "one that Ibis opened, for SQLite", shown, step, ParameterTypeError)
    if isinstance(table, str | os.PathLike | list | tuple):
        return _files(table, types, text)
    _only_text(types, text)
    if package == "polars" and name == "DataFrame":
        return frames.Polars(table)
    if package == "polars" and name == "LazyFrame":
        return frames.lazy(table)
    if package == "pyarrow" and name in ("Table", "RecordBatch"):
        return frames.Arrow(table)
    if package == "pyarrow" and name in ("FileSystemDataset", "UnionDataset", "InMemoryDataset"):
        return frames.arrow_dataset(table)
    if package == "duckdb" and name == "DuckDBPyRelation":
        return _behind(relations.look_through(table))
    if package == "ibis" and hasattr(table, "columns"):
        return _behind(ibis.look_through(table))
    kinds = "a path, a list of paths, (database file, table name), a pandas, Polars or Arrow table, "
    kinds += "a DuckDB relation, a Spark DataFrame or an Ibis table"
    return check.refuse("Source", "table", kinds, type(table).__name__, "", ParameterTypeError)


def _behind(found: Chosen[Any] | Through) -> Reader:
    """What a table was looked through to."""
    if isinstance(found, Chosen):
        return found
    return Chosen(_reader(found.table, None, Text()), found.columns, found.notes)


def _only_text(types: Mapping[str, str] | None, text: Text) -> None:
    """Refuse what says how text is to be read where there is none."""
    if types is not None:
        check.refuse("Source", "types", "left out: this table knows its types", dict(types), "")
    for name, value in vars(text).items():
        if value != getattr(Text, name):
            check.refuse("Source", name, "left out: it is for CSV files", value, "")


def _files(table: Any, types: Mapping[str, str] | None, text: Text) -> Reader:
    pair = isinstance(table, tuple) and len(table) == 2 and isinstance(table[0], str | os.PathLike)
    if pair and ending(table[0]) in _DATABASE:
        _only_text(types, text)
        (file,) = _expand(os.fspath(table[0]))
        return duckdb.in_file(file, table[1])
    given = [table] if isinstance(table, str | os.PathLike) else table
    wrong = [path for path in given if not isinstance(path, str | os.PathLike)]
    if not given or wrong:
        kinds = "a path, a list of paths (one at least) or (database file, table name)"
        got = f"a {type(table).__name__} with {type(wrong[0]).__name__}" if wrong else table
        check.refuse("Source", "table", kinds, got, "", ParameterTypeError)
    names = [os.fspath(pattern) for pattern in given]
    paths = [path for pattern in names for path in _expand(pattern)]
    _different(paths)
    suffixes = {ending(path) for path in paths}
    reader: Parquet | CSV | JSON
    if suffixes <= set(_PARQUET):
        _only_text(None, text)
        reader = Parquet(paths, types)
    elif suffixes <= set(_CSV):
        reader = CSV(paths, types, **vars(text))
    elif suffixes <= set(_JSON):
        _only_text(None, text)
        reader = JSON(paths, types)
    else:
        if suffixes <= set(_DATABASE):
            check.refuse("Source", "table", "a pair (database file, table name) for a database", paths[0], "")
        endings = ", ".join(_PARQUET + _CSV + _JSON)
        check.refuse("Source", "table", f"files of one sort ({endings}, also with .gz or .zst)", paths[0], "")
    reader.identity = ", ".join(map(os.path.abspath, names))  # as given: a pattern is one table, whatever fits it now
    return reader


def _expand(pattern: str) -> list[str]:
    """The absolute paths of local files."""
    if "://" in pattern:
        step = "Pass a table of PostgreSQL through Ibis. Read other remote data with Spark, or copy the files."
        shown = pattern.split("://")[0] + "://..."  # the rest may have a password
        check.refuse("Source", "table", "a local file", shown, step)
    if "\0" in pattern:
        check.refuse("Source", "table", "a path without the character 0", pattern, "")
    if os.path.isdir(pattern):
        return _below(pattern)
    found = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern, recursive=True))
    files = [os.path.abspath(path) for path in found if os.path.isfile(path)]
    if not files:
        check.refuse("Source", "table", "an existing file or a pattern that matches some", pattern, "")
    return files


def _below(folder: str) -> list[str]:
    """The files of Parquet in a folder, as Spark and Arrow write one table; what begins with _ or . is their own.

    Links to other folders are not followed: a row would count as often as there are ways to it.
    """
    logs = [log for log in _LOGS if glob.glob(os.path.join(glob.escape(folder), log))]
    if logs:
        step = "Read it with Spark, or write the table anew as Parquet."
        needs = f"a folder of files alone, without {logs[0]} that says which of them count"
        check.refuse("Source", "table", needs, folder, step)
    files = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] != "." and (name[0] != "_" or "=" in name)]
        files += [os.path.join(place, name) for name in names if name[0] not in "._" and ending(name) in _PARQUET]
    if not files:
        step = f"Pass a pattern for its files, as {os.path.join(folder, '*.csv')!r}."
        check.refuse("Source", "table", "a folder only if it has files of Parquet", folder, step)
    return sorted(map(os.path.abspath, files))


def _different(paths: Sequence[str]) -> None:
    """Refuse a file that is given twice, by a link or as it is: one row would count as two."""
    seen: dict[tuple[int, int], str] = {}
    for path in paths:
        found = os.stat(path)
        other = seen.setdefault((found.st_dev, found.st_ino), path)
        if other is not path:
            check.refuse("Source", "table", "different files", [other, path], "Leave one of them out.")


def _check_types(types: object) -> None:
    if types is None:
        return
    if not isinstance(types, Mapping):
        step = 'As {"age": "integer"}.'
        check.refuse("Source", "types", "a mapping of columns to what they hold", types, step, ParameterTypeError)
    wrong = {column: kind for column, kind in types.items() if not isinstance(kind, str) or kind not in TYPES}
    if wrong:
        check.refuse("Source", "types", "one of " + ", ".join(TYPES) + " for each column", wrong, "")

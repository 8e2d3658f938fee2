"""The embedded engine: a DuckDB of our own, in memory, that sees nothing but rows which readers hand it.

It opens no file, loads no extension and knows no statistics of anybody's rows, so that a question means the same
whatever the rows were stored in. One of it can be used by many threads, and by processes forked from the one that
opened it.
"""

from __future__ import annotations

import contextvars
import os
import re
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from inbounds import _checks as check
from inbounds.errors import ParameterTypeError
from inbounds.tables.bare import Bare
from inbounds.tables.engines.base import DIGITS
from inbounds.tables.engines.forms import Form, form, view, views
from inbounds.tables.engines.spill import Spill
from inbounds.tables.kinds import Hidden, Kind, Schema, extra
from inbounds.tables.readers.base import Field, Reader, read
from inbounds.tables.readers.duckdb import lock, private
from inbounds.tables.readers.versions import admitted

if TYPE_CHECKING:
    from narwhals import LazyFrame

__all__ = ["Embedded", "Paper", "Settings", "paper"]

T = TypeVar("T")

#: The cursors of questions that are asked now, by process and thread. A forked child never lets go of those of its
#: parent: DuckDB would remove in the child what the parent has spilled.
_running: dict[tuple[int, int], Any] = {}

_TABLE = "source"  # of the rows, in a query as text
_PATIENCE = 0.05  # seconds after which a query that was to end is told so again


@dataclass(frozen=True)
class Settings:
    """How much of the machine the embedded engine may use: see :meth:`inbounds.tables.Source.open`."""

    memory_limit: str = "4GB"
    threads: int | None = None
    temp_directory: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        limit, place = self.memory_limit, self.temp_directory
        if not isinstance(limit, str) or not re.fullmatch(r"\d+(\.\d+)? ?[KMGT]i?B", limit):
            check.refuse("Source", "memory_limit", 'a size like "4GB"', limit, "")
        if self.threads is not None:
            check.whole("Source", "threads", self.threads, at_least=1, at_most=1024)
        if not isinstance(place, str | os.PathLike | None):
            check.refuse("Source", "temp_directory", "a path", place, "", ParameterTypeError)
        if place is not None and not (os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK)):
            step = "Make it, or leave it out for that of the system."
            check.refuse("Source", "temp_directory", "a directory that can be written to", os.fspath(place), step)


_databases: weakref.WeakSet[_Database] = weakref.WeakSet()


def _renew() -> None:
    for database in list(_databases):
        database.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


class _Database:
    """A DuckDB in memory with a directory of its own to spill to; after a fork, the child gets another one."""

    _forked: list[Any] = []  # noqa: RUF012 - connections of a parent, which a child must neither use nor close

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.renew()
        self._open()
        _databases.add(self)

    def renew(self) -> None:
        """A new lock: in a child that was forked while another thread held it, nobody lets go of the old one."""
        self._lock = threading.Lock()

    def _open(self) -> None:
        given = self._settings
        self._spill = Spill(given.temp_directory)
        threads = {} if given.threads is None else {"threads": int(given.threads)}
        try:
            self._connection = private(
                memory_limit=given.memory_limit,
                temp_directory=self._spill.path,
                preserve_insertion_order=False,
                **threads,
            )
            lock(self._connection)
        except Exception:
            self._spill.remove()
            raise
        self._process = os.getpid()
        weakref.finalize(self._connection, _remove, self._spill, self._process)

    def cursor(self) -> Any:
        """A connection for one question."""
        with self._lock:
            if self._process != os.getpid():
                self._forked.append(self._connection)
                self._spill.close()
                self._open()
            return self._connection.cursor()

    def ready(self) -> None:
        """Fail now if there is no place to spill to; one that was cleaned away is made again."""
        self.cursor().close()
        with self._lock:
            self._spill.again()
        with tempfile.TemporaryFile(dir=self._spill.path):
            pass


def _remove(spill: Spill, process: int) -> None:
    if os.getpid() == process:
        spill.remove()


def _here() -> tuple[int, int]:
    return os.getpid(), threading.get_ident()


def _interruptibly(call: Callable[[], T], cursor: Any) -> T:
    """What ``call`` returns, which has DuckDB compute on this cursor.

    DuckDB makes an error of its own of what the handler of a signal raises in it (Ctrl-C, SIGTERM). Signals are handled
    in the main thread, which therefore waits for another one, ends the query, and goes on with what was raised.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    answer = Future[T]()

    def work() -> None:
        if answer.set_running_or_notify_cancel():
            try:
                answer.set_result(call())
            except BaseException as problem:
                answer.set_exception(problem)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    try:
        thread.start()
    except RuntimeError:  # there are no more threads
        return call()
    except BaseException:
        _end(answer, cursor)
        raise
    try:
        return answer.result()
    except BaseException:
        _end(answer, cursor)
        raise


def _end(answer: Future[Any], cursor: Any) -> None:
    """Come to an end with a query, or never begin it."""
    if not answer.cancel():
        while not answer.done():
            cursor.interrupt()
            time.sleep(_PATIENCE)


class _Stream:
    """Rows that DuckDB may read as often as it likes, from a new reading each time."""

    def __init__(self, reader: Reader, columns: Sequence[str], only: Sequence[Bare], forms: Sequence[Form]) -> None:
        self._reader, self._columns, self._only, self._forms = reader, columns, only, forms
        self._schema = extra("pyarrow").schema([(f"r{i}", form.arrow) for i, form in enumerate(forms)])

    def _batches(self) -> Iterator[Any]:
        arrow = extra("pyarrow")
        for batch in read(self._reader, self._columns, self._only):
            for arrays in views(batch.columns, batch.num_rows, self._forms):
                yield arrow.RecordBatch.from_arrays(arrays, schema=self._schema)

    def __arrow_c_schema__(self) -> Any:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        reader = extra("pyarrow").RecordBatchReader.from_batches(self._schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)


def _kept(cursor: Any, arriving: Any) -> Any:
    """What arrives, as a table of the cursor's own, by a name that no other cursor has either."""
    cursor.register(_TABLE + "_stream", arriving)
    _interruptibly(partial(cursor.execute, f"CREATE TEMP TABLE {_TABLE} AS FROM {_TABLE}_stream"), cursor)
    return cursor.table(_TABLE)


class Embedded:
    """The table of a reader, asked on a DuckDB of our own."""

    name = "DuckDB"

    def __init__(
        self,
        reader: Reader,
        settings: Settings,
        given: Collection[str] = (),
        database: _Database | None = None,
    ) -> None:
        """``given`` are the columns that the user named, which may be told of a reader that tells none."""
        self._reader, self._settings, self._given = reader, settings, given
        odd = [name for name in reader.fields if "\0" in name]
        if odd:
            needs = "a table without the character 0 in the names of its columns"
            check.refuse("Source", "table", needs, odd[:5], "Rename columns.")
        self.what, self.identity = reader.what, reader.identity
        self.notes = tuple(dict.fromkeys(reader.notes + admitted("duckdb", "narwhals", "pyarrow")))
        self._forms = {name: form(field) for name, field in reader.fields.items()}
        kinds = MappingProxyType({name: form.kind for name, form in self._forms.items()})
        self.schema: Schema = kinds if getattr(reader, "names_public", True) else Hidden(kinds, given)
        #: Columns of text of which nobody said what they stand for.
        self.text_by_default = frozenset(
            name for name, field in reader.fields.items() if field.declared == "text" and name not in given
        )
        self._database = _Database(settings) if database is None else database

    def frame(self, columns: Sequence[str], only: Sequence[Bare] = ()) -> LazyFrame[Any]:
        forms = [self._forms[name] for name in columns]
        cursor = _running[_here()] = self._database.cursor()
        rows = self._rows(cursor, columns, only, forms)
        plain = [f"{form.plain.format(f'r{i}')} AS c{i}" for i, form in enumerate(forms)]
        exact = [f"{form.exact.format(f'r{i}')} AS c{i}e" for i, form in enumerate(forms) if form.exact]
        frame: LazyFrame[Any] = extra("narwhals").from_native(rows.project(", ".join(plain + exact))).lazy()
        return frame

    def _rows(self, cursor: Any, columns: Sequence[str], only: Sequence[Bare], forms: Sequence[Form]) -> Any:
        """A relation of the columns as they arrive, r0, r1, ..."""
        arriving = _Stream(self._reader, columns, only, forms)
        return _kept(cursor, arriving) if self._reader.once else cursor.from_arrow(arriving)

    def identifier(self, column: str, name: str) -> str:
        return name if self._forms[column].exact is None else name + "e"

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
        found: list[tuple[Any, ...]] = _interruptibly(frame.fetchall, _running[_here()])
        return found

    def done(self) -> None:
        _running.pop(_here(), None)

    def paper(self) -> Paper:
        return Paper(self._reader, self._settings, self._given, self._database)

    def ready(self) -> None:
        self._reader.ready()
        self._database.ready()


class Paper(Embedded):
    """The same columns without rows."""

    def _rows(self, cursor: Any, columns: Sequence[str], only: Sequence[Bare], forms: Sequence[Form]) -> Any:
        arrow, fields = extra("pyarrow"), self._reader.fields
        arrays = [
            view(arrow.schema([("x", fields[name].arrow)]).empty_table().column(0).combine_chunks(), form)
            for name, form in zip(columns, forms, strict=True)
        ]
        empty = arrow.table(arrays, names=[f"r{i}" for i in range(len(forms))])
        return _kept(cursor, empty)

    def text(self, frame: Any) -> str:
        """The query as SQL."""
        return str(frame.sql_query())

    def ready(self) -> None:
        """There is nothing to read."""


@dataclass(frozen=True)
class _Nothing:
    """A reader of a table that has columns and no rows."""

    fields: Mapping[str, Field]
    what: str = "a table without rows"
    identity: str = ""
    notes: tuple[str, ...] = ()
    once: bool = False

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        return iter(())

    def ready(self) -> None:
        """Nothing can fail."""


def paper(schema: Schema) -> Paper:
    """Paper for the questions that another engine is asked, of columns that hold the same."""
    arrow = extra("pyarrow")
    types = {
        Kind.INTEGER: arrow.int64(),
        Kind.WIDE: arrow.decimal128(38, 0),
        Kind.REAL: arrow.float64(),
        Kind.BOOLEAN: arrow.bool_(),
        Kind.TEXT: arrow.string(),
        Kind.DATE: arrow.date32(),
        Kind.DATETIME: arrow.timestamp("us"),
        Kind.INSTANT: arrow.timestamp("us", "UTC"),
        Kind.NULL: arrow.null(),
        Kind.OTHER: arrow.struct([]),
    }
    return Paper(_Nothing({name: Field(types[kind]) for name, kind in schema.items()}), Settings())

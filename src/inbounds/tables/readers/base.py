"""What a reader is: a source of rows as Arrow, and of nothing else.

A reader hands over the values of columns as they are stored. Nothing of a question runs in it: no condition, no cast,
no total. So what a file format or a database does with an overflow, a collation or a statistic cannot matter, and what
is promised about answers has to be shown for two engines only (:mod:`inbounds.tables.engines`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from inbounds.errors import QueryFailed
from inbounds.tables.bare import Bare

__all__ = [
    "COPY",
    "TYPES",
    "Chosen",
    "Field",
    "Reader",
    "Stored",
    "StoredColumn",
    "Through",
    "changed",
    "left_out",
    "quoted",
]

#: What a user can say that a column of text holds.
TYPES = ("integer", "wide", "number", "text", "boolean", "date", "time")


@dataclass(frozen=True)
class Field:
    """A column as a reader hands it over.

    Attributes
    ----------
    arrow : pyarrow.DataType
        The type of its arrays. Text may come as ``binary``, so that bytes which are no UTF-8 come through.
    declared : str, optional
        What the text in it stands for: one of :data:`TYPES`. The engine turns it into that, the same way for every
        reader; what does not fit is missing. None: the Arrow type says what the column holds.
    """

    arrow: Any
    declared: str | None = None


@dataclass(frozen=True)
class Through:
    """Something behind a table that another reader reads: what a view of files, or a table around a frame, stands for.

    Attributes
    ----------
    table : list of paths, or a frame
        As it could have been given instead.
    columns : mapping of str to str
        The columns in order, by their names here, and their names there. No others are part of the table.
    notes : tuple of str
        What to know of the way to it.
    """

    table: Any
    columns: Mapping[str, str]
    notes: tuple[str, ...] = ()


class Reader(Protocol):
    """Rows of one table.

    Attributes
    ----------
    what : str
        What is read, for people: "a file of Parquet".
    identity : str
        Which table it is, of public facts that stay the same when it is opened again: a path, or the name of a table.
    notes : tuple of str
        What to know of every answer from it.
    fields : mapping of str to Field
        The columns in order.
    once : bool
        Whether reading twice costs much, or may give different rows: then the engine keeps what it read.
    names_public : bool, optional
        False where no message may show the names of columns: the first line of a file, of which nobody said that it
        has names, might be somebody's row. True for readers that do not have it.
    """

    @property
    def what(self) -> str: ...

    @property
    def identity(self) -> str: ...

    @property
    def notes(self) -> tuple[str, ...]: ...

    @property
    def fields(self) -> Mapping[str, Field]: ...

    @property
    def once(self) -> bool: ...

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows as ``pyarrow.RecordBatch``, with these columns in this order under any names; each call reads anew.

        Lazy: nothing is read before the first batch is taken. No value of a row may make it fail or warn, change the
        type of a column, or move a value to another row.
        """

    def ready(self) -> None:
        """Fail now if reading would fail whatever the rows are: a file is gone, a module is missing."""


@runtime_checkable
class Prunes(Protocol):
    """A reader that can leave out rows, or whole files and parts of files, which do not meet some comparisons."""

    def matching(self, columns: Sequence[str], only: Sequence[Bare]) -> Iterator[Any]:
        """As ``Reader.batches``; rows that do not meet all of ``only`` may be left out."""


def read(reader: Reader, columns: Sequence[str], only: Sequence[Bare]) -> Iterator[Any]:
    """The batches of a reader, with as few rows that do not meet ``only`` as it can."""
    return reader.matching(columns, only) if only and isinstance(reader, Prunes) else reader.batches(columns)


R = TypeVar("R", bound=Reader)


@dataclass(frozen=True, eq=False, repr=False)
class Chosen(Generic[R]):
    """Some columns of a reader, under names of their own: a reader too. See :class:`Through` for the rest."""

    reader: R
    columns: Mapping[str, str]
    more: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        return self.reader.what

    @property
    def identity(self) -> str:
        return self.reader.identity

    @property
    def notes(self) -> tuple[str, ...]:
        return self.reader.notes + self.more

    @property
    def fields(self) -> Mapping[str, Field]:
        return {name: self.reader.fields[stored] for name, stored in self.columns.items()}

    @property
    def once(self) -> bool:
        return self.reader.once

    @property
    def names_public(self) -> bool:
        return getattr(self.reader, "names_public", True)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        return self.reader.batches([self.columns[name] for name in columns])

    def matching(self, columns: Sequence[str], only: Sequence[Bare]) -> Iterator[Any]:
        stored = [replace(bare, column=self.columns[bare.column]) for bare in only]
        return read(self.reader, [self.columns[name] for name in columns], stored)

    def ready(self) -> None:
        self.reader.ready()


#: What to do with what a database does not store.
COPY = "Copy what is to be asked into a table: CREATE TABLE ... AS SELECT ..."


@dataclass(frozen=True)
class StoredColumn:
    """A column of a database: its type there, and what comes of it."""

    type: str
    field: Field


C = TypeVar("C", bound=StoredColumn)


@dataclass(frozen=True, eq=False, repr=False)
class Stored(Generic[C]):
    """What readers of the tables of databases have in common; see :class:`Reader`."""

    what: str
    identity: str
    notes: tuple[str, ...]
    once: bool
    _open: Callable[[], AbstractContextManager[Any]]
    _columns: Mapping[str, C]

    @property
    def fields(self) -> Mapping[str, Field]:
        return {name: column.field for name, column in self._columns.items()}

    def _as_opened(self, now: Mapping[str, C]) -> None:
        """Fail if the columns, as they are now, are others; what was added does not matter."""
        if any(now.get(name) != column for name, column in self._columns.items()):
            raise changed(self.identity)


def changed(table: str) -> QueryFailed:
    """The error of a table that is no longer what was opened; that depends on its columns, and on no row."""
    return QueryFailed(
        f"Source: the table {table!r} has other columns than when it was opened, or is gone. Open it again."
    )


def left_out(names: Sequence[str], why: str = "it is computed, not stored") -> tuple[str, ...]:
    """Notes of columns that are no part of a table here."""
    return tuple(f"the column {name!r} is left out: {why}" for name in names)


def quoted(name: str) -> str:
    """A name as SQL, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'

"""What an engine is: where questions are evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from inbounds.tables.bare import Bare
from inbounds.tables.kinds import Schema

if TYPE_CHECKING:
    from narwhals import LazyFrame

__all__ = ["DIGITS", "Engine"]

#: Characters of an MD5 digest that are used: 13 hexadecimal digits, 52 bits.
DIGITS = 13


class Engine(Protocol):
    """What the compiler needs of an engine. The frames are its own; Narwhals says almost everything about them.

    Attributes
    ----------
    name : str
        For people.
    what, identity, notes
        Of the table: see :class:`inbounds.tables.readers.base.Reader`.
    schema : mapping of str to Kind
        The columns and what they hold.
    """

    @property
    def name(self) -> str: ...

    @property
    def what(self) -> str: ...

    @property
    def identity(self) -> str: ...

    @property
    def notes(self) -> tuple[str, ...]: ...

    @property
    def schema(self) -> Schema: ...

    def frame(self, columns: Sequence[str], only: Sequence[Bare] = ()) -> LazyFrame[Any]:
        """The columns as c0, c1, ... in their plain forms (:mod:`inbounds.tables.kinds`).

        Every value is one of the plain form, or null; no value can make it fail. Rows that do not meet all of ``only``
        may be left out, and need not be.
        """

    def identifier(self, column: str, name: str) -> str:
        """The column of :meth:`frame` that tells units apart, where ``name`` is the column's plain form there.

        Mostly the same; another one where values that differ have one plain form, as times in nanoseconds have.
        """

    def digest(self, frame: Any, text: str, name: str) -> Any:
        """The native frame with one more column: the first 13 hexadecimal digits of the MD5 of a text column."""

    def table(self, frame: Any, columns: Mapping[str, Sequence[int] | Sequence[str]]) -> Any:
        """A small native frame that can be joined with another one: whole numbers as int64, or text."""

    def rows(self, frame: Any) -> list[tuple[Any, ...]]:
        """Run the query."""

    def done(self) -> None:
        """This thread has its rows: let go of what was kept for the question."""

    def paper(self) -> Engine:
        """The same columns without rows: questions are written and tried on it before they are paid."""

    def ready(self) -> None:
        """Fail now if a query would fail whatever the rows are."""

"""The exception tree.

::

    InboundsError
    ├── ParameterError        (ValueError)  a parameter has the right type but an unusable value
    │   ├── MissingColumn                   a table has no column of that name; the message shows near ones
    │   │   └── MissingAnswer (KeyError)    answers have no question or group of that name
    │   └── UnknownEvent                    a record of a release is not of a kind or version that is known
    ├── ParameterTypeError    (TypeError)   a parameter has the wrong type
    ├── UnreachableTarget     (ValueError)  no scale of this mechanism meets the privacy target
    ├── OutsideDomain         (ValueError)  a true value lies outside the domain; never echoes the value
    ├── MissingExtra          (ImportError) a package is not installed; names the extra that brings it
    ├── QueryFailed           (RuntimeError) an engine failed; never shows what it said, which may be data
    ├── BudgetExceeded        (ValueError)  a budget has no room for what is asked
    └── LedgerError                         what a budget ledger raises
        ├── LedgerUnavailable (OSError)     it cannot be read or written now: locked, full, read-only, newer, gone
        ├── LedgerCorrupt     (ValueError)  it is not a ledger, or damaged
        │   └── LedgerRolledBack            it lacks what was acknowledged: its log is gone, or it is an older copy
        └── LedgerConflict    (ValueError)  what is asked contradicts what is recorded
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "BudgetExceeded",
    "InboundsError",
    "LedgerConflict",
    "LedgerCorrupt",
    "LedgerError",
    "LedgerRolledBack",
    "LedgerUnavailable",
    "MissingAnswer",
    "MissingColumn",
    "MissingExtra",
    "OutsideDomain",
    "ParameterError",
    "ParameterTypeError",
    "QueryFailed",
    "UnknownEvent",
    "UnreachableTarget",
]


class InboundsError(Exception):
    """Everything this package raises on purpose."""


class ParameterError(InboundsError, ValueError):
    """A parameter has an unusable value."""


class ParameterTypeError(InboundsError, TypeError):
    """A parameter has the wrong type."""


class MissingColumn(ParameterError):
    """A table has no column of that name; the message shows the nearest names it has."""


class MissingAnswer(MissingColumn, KeyError):
    """Answers have no question, or no group, of that name; caught as a missing column, or as Python's own error."""

    __str__ = Exception.__str__  # KeyError's shows the message in quotes


class UnknownEvent(ParameterError):
    """A record of a release is not of a kind or version that is known, or lacks a part."""


class UnreachableTarget(InboundsError, ValueError):
    """No scale of this mechanism meets the privacy target; the message names what can be had."""


class OutsideDomain(InboundsError, ValueError):
    """A true value lies outside the domain. The value is never part of the message."""


class MissingExtra(InboundsError, ImportError):
    """A package that this part needs is not installed; the message names the extra that brings it."""


class QueryFailed(InboundsError, RuntimeError):
    """An engine failed on a table. What it said is withheld, since it may show data.

    ``engine_error`` is the engine's own exception where the source was opened with ``debug=True``, else None.
    """

    def __init__(self, message: str, engine_error: Exception | None = None) -> None:
        super().__init__(message)
        self.engine_error = engine_error


class BudgetExceeded(InboundsError, ValueError):
    """A budget has no room for what is asked; nothing was drawn.

    ``spent``, ``requested``, ``remaining`` and ``shortfall`` are dicts in the budget's own terms.
    """

    def __init__(
        self,
        message: str,
        *,
        spent: dict[str, Any],
        requested: dict[str, Any],
        remaining: dict[str, Any],
        shortfall: dict[str, Any],
    ) -> None:
        super().__init__(message)
        self.spent = spent
        self.requested = requested
        self.remaining = remaining
        self.shortfall = shortfall


class LedgerError(InboundsError):
    """What a budget ledger raises; nothing was drawn unless the message says so."""


class LedgerUnavailable(LedgerError, OSError):
    """The ledger cannot be read or written now.

    ``recorded`` is False where nothing was recorded, and None where the store was lost while it was told to record:
    what it may have recorded then counts as spent.
    """

    def __init__(self, message: str, recorded: bool | None = False) -> None:
        super().__init__(message)
        self.recorded = recorded


class LedgerCorrupt(LedgerError, ValueError):
    """The file or database is not a ledger, or is damaged."""


class LedgerRolledBack(LedgerCorrupt):
    """A ledger lacks records that were acknowledged: its log was removed or cut, or an older copy was put back.

    ``records`` is how many it has.
    """

    def __init__(self, message: str, *, records: int) -> None:
        super().__init__(message)
        self.records = records


class LedgerConflict(LedgerError, ValueError):
    """What is asked contradicts what is recorded."""

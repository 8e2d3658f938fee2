"""Ledgers. Why nothing in them is overspent: docs/proofs/ledger.md."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from inbounds import _checks as check
from inbounds.accounting import Budget
from inbounds.errors import LedgerConflict, ParameterError, ParameterTypeError
from inbounds.ledger.chain import Level, find, make, parsed, shown
from inbounds.ledger.export import export
from inbounds.ledger.record import PERIODS, Record, check_text
from inbounds.ledger.schema import ROOT
from inbounds.ledger.scope import NOT_MADE, Scope
from inbounds.ledger.store import Store, Transaction
from inbounds.ledger.verification import Verification, verify

__all__ = ["Ledger"]

_DEEPEST = 8


class Ledger:
    """Budgets, and everything spent of them, in a file or a database. Open one with :meth:`open`.

    Any number of processes and threads may use the same ledger at the same time, each with its own ``open``, or
    after a fork with the same.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        weakref.finalize(self, store.leave)

    @classmethod
    def open(
        cls,
        where: str | os.PathLike[str] = ":memory:",
        *,
        create: bool = True,
        timeout: float = 10.0,
        accept: int | None = None,
    ) -> Ledger:
        """Open a ledger, or make it.

        Parameters
        ----------
        where : str or path
            A path: a SQLite file on a local disk. ``postgresql://user@host/database``: tables in that database (needs
            ``inbounds[ledger]``). ``":memory:"``, the default: lost when the process ends.
        create : bool
            With False a ledger that does not exist is an error. A mistyped path is then no fresh budget.
        timeout : float in (0, 3600]
            How long a call may wait for other writers, or for a lost server to come back, in seconds.
        accept : int or None
            For a file that was refused with ``LedgerRolledBack``, where nothing better can be put back: how many
            records it has, to go on from there. That is recorded, and ``verify`` tells it from then on.
        """
        timeout = check.number("Ledger", "timeout", timeout, above=0.0, at_most=3600.0)
        if not isinstance(where, str | os.PathLike):
            check.refuse("Ledger", "where", "a path or a postgresql:// URL", where, "", ParameterTypeError)
        if accept is not None and (type(accept) is not int or accept < 0):
            step = "LedgerRolledBack says the number."
            check.refuse("Ledger", "accept", "None or a whole number of records from 0 up", accept, step)
        name = os.fsdecode(where)
        try:
            os.fsencode(name)
        except UnicodeError:
            raise ParameterError("Ledger: where must be a path that this system can have.") from None
        store: Store
        if name.startswith(("postgresql://", "postgres://")):
            from inbounds.ledger.postgres import PostgresStore

            if accept is not None:
                raise ParameterError("Ledger: accept is for files only. Leave it out.")
            store = PostgresStore(name, create=create, timeout=timeout)
        elif not name or "://" in name or "\0" in name:
            raise ParameterError("Ledger: where must be a path or a URL that begins with postgresql://.")
        else:
            from inbounds.ledger.sqlite import SqliteStore

            store = SqliteStore(name, create=create, timeout=timeout, accept=accept)
        ledger = cls(store)
        store.transaction(lambda tx: None, write=False)  # errors show here, not at the first spending
        return ledger

    @property
    def durable(self) -> bool:
        """False for a ledger in memory, which is lost when the process ends."""
        return self._store.durable

    @property
    def place(self) -> str:
        """Where it is: a path, or a URL without the user, the password and the options."""
        return self._store.shown

    def __repr__(self) -> str:
        return f"Ledger({self.place if self.durable else 'in memory: lost when this process ends'})"

    def __reduce__(self) -> NoReturn:
        raise ParameterTypeError(
            "Ledger: a ledger must be opened where it is used; it cannot be pickled or copied. Open it again there, as "
            "ib.Ledger.open(path)."
        )

    def close(self) -> None:
        """Close files and connections. What was recorded stays; a ledger in memory is gone."""
        self._store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---------------------------------------------------------------- scopes

    def scope(
        self,
        name: str | Sequence[str] = "default",
        *,
        budget: Budget | None = None,
        parent: Scope | None = None,
        renews: str | None = None,
        create: bool = True,
    ) -> Scope:
        """Open a scope, or make it.

        Parameters
        ----------
        name : str or sequence of str
            As ``"visits"``, or a path from the top as ``("visits", "alice")``, of which all but the last exist.
        budget : Budget or None
            What may be spent there. None opens a scope that exists. One that exists with another budget is an error.
        parent : Scope or None
            The scope that it lies under: every spending counts there as well, and needs room there too.
        renews : {None, "day", "month", "year"}
            When the budget begins anew, by the calendar in UTC.
        create : bool
            With False a scope that does not exist is not made: it says what it would have room for, and spends nothing.
        """
        path = self._path(name, parent)
        if budget is not None and not isinstance(budget, Budget):
            check.refuse("Ledger", "budget", "a Budget or None", budget, "", ParameterTypeError)
        if renews is not None:
            check.choice("Ledger", "renews", renews, tuple(PERIODS))
        levels = self._store.transaction(lambda tx: find(tx, path, budget, renews), write=False)
        if levels is None:
            if budget is None:
                raise LedgerConflict(f"Ledger: there is no scope {shown(path)} yet. Give its budget= to make it.")
            wanted = budget
            if create:
                levels = self._store.transaction(lambda tx: make(tx, path, wanted, renews))
            else:
                above = self._store.transaction(lambda tx: find(tx, path[:-1]), write=False) or ()
                levels = (*above, Level(NOT_MADE, path, wanted, renews))
        return Scope(self, levels)

    def _path(self, name: str | Sequence[str], parent: Scope | None) -> tuple[str, ...]:
        names = (name,) if isinstance(name, str) else tuple(name) if isinstance(name, Sequence) else (name,)
        if parent is not None and (not isinstance(parent, Scope) or parent._ledger is not self):
            check.refuse("Ledger", "parent", "a scope of this ledger", parent, "", ParameterTypeError)
        path = (*(parent.path if parent is not None else ()), *names)
        for part in path:
            check_text("Ledger", "a scope's name", part)
            if "/" in part:
                check.refuse("Ledger", "a scope's name", "without a slash", part, "Give the path as a tuple of names.")
        if not names or len(path) > _DEEPEST:
            raise ParameterError(f"Ledger: a scope's path must have 1 to {_DEEPEST} names; got {len(path)}.")
        return path

    def scopes(self) -> tuple[Scope, ...]:
        """All scopes, in the order in which they were made."""

        def work(tx: Transaction) -> list[tuple[Level, ...]]:
            rows = tx.rows("SELECT path FROM inbounds_scope WHERE id <> ? ORDER BY id", ROOT)
            return [find(tx, tuple(parsed(path))) or () for (path,) in rows]

        return tuple(Scope(self, levels) for levels in self._store.transaction(work, write=False))

    # ---------------------------------------------------------------- what is recorded

    def history(self) -> tuple[Record, ...]:
        """Every record of every scope, scope by scope."""
        return tuple(record for scope in self.scopes() for record in scope.history())

    def export(self, how: str) -> str:
        """Everything, as ``"json"`` or ``"csv"`` (which has the records only)."""
        return export(how, self._store, None)

    def verify(self, heads: Mapping[str, Sequence[Any]] | None = None) -> Verification:
        """Compute everything again from the records: hashes, sequence, charges, totals, and the links between scopes.

        Parameters
        ----------
        heads : mapping or None
            ``Verification.heads`` of an earlier time, kept elsewhere: what was recorded then must still be there.
        """
        kept = {} if heads is None else heads
        if not isinstance(kept, Mapping) or not all(
            isinstance(name, str) and isinstance(head, list | tuple) and [type(x) for x in head] == [int, str]
            for name, head in kept.items()
        ):
            step = "Keep Verification.heads as it is."
            check.refuse("Ledger", "heads", "{name: [records, hash], ...} or None", heads, step, ParameterTypeError)
        return verify(self._store, kept)

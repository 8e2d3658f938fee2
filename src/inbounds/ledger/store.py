"""What a store of the ledger must do: run a piece of work in one durable transaction, in threads and after a fork."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from inbounds.errors import LedgerCorrupt, LedgerUnavailable

__all__ = ["Store", "Transaction"]

T = TypeVar("T")


class Transaction(ABC):
    """What a piece of work may do. ``retried``: the same work was tried before, and may have been recorded."""

    def __init__(self, clock: Callable[[], datetime] | None, retried: bool = False) -> None:
        self._clock = clock
        self.retried = retried

    @abstractmethod
    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The answer to a question; ``?`` stands for a value."""

    @abstractmethod
    def write(self, sql: str, *values: Any) -> None:
        """A change; an error may show only when the transaction ends."""

    def lost(self) -> str:
        """What was acknowledged and is missing here, in words; empty where nothing is, or a server answers for it."""
        return ""

    def lock(self, ids: Sequence[int]) -> tuple[list[tuple[Any, ...]], datetime]:
        """(id, seq, head, used, period) of those scopes, ours until the transaction ends; and the time.

        They are locked by rising id, and asked for in that order: what is above was made first.
        """
        found, now = self._lock(ids)
        if [row[0] for row in found] != list(ids) or not all(type(seq) is int for _, seq, *_ in found):
            raise LedgerCorrupt(
                "Ledger: a scope is missing from its table or has another place there, or its row is damaged. "
                "Run verify()."
            )
        return found, self._clock() if self._clock is not None else now

    @abstractmethod
    def _lock(self, ids: Sequence[int]) -> tuple[list[tuple[Any, ...]], datetime]:
        """The same, with the time by the store's own clock."""

    def now(self) -> datetime:
        """The time: the server's where there is one, so that all clients have the same."""
        return self._clock() if self._clock is not None else self._now()

    def _now(self) -> datetime:
        return datetime.now(UTC)


class Store(ABC):
    """One store, used by one thread at a time.

    Parameters
    ----------
    shown : str
        How messages name it; no password.
    create : bool
        Whether the first connection may make the tables. Later ones never do: a store that has vanished must not
        come back empty.
    timeout : float
        How long one call may wait, in seconds.
    """

    durable = True

    def __init__(self, shown: str, *, create: bool, timeout: float) -> None:
        self.shown = shown
        self.timeout = timeout
        self.clock: Callable[[], datetime] | None = None
        self._identity: str | None = None
        self._create = create
        self._closed = False
        self._orphan = False
        self._mutex = threading.Lock()
        with _fork:  # not while they are counted
            _stores.add(self)

    def transaction(self, work: Callable[[Transaction], T], *, write: bool = True) -> T:
        """Run ``work``; what it wrote is durable when this returns, and undone when it raises.

        With ``write=False`` it sees one unchanging state and holds nobody up.
        """
        deadline = time.monotonic() + self.timeout
        if not self._mutex.acquire(timeout=self.timeout):
            raise LedgerUnavailable(
                f"Ledger: {self.shown} has been in use by another thread for {self.timeout:g} s; try again."
            )
        try:
            if self._closed:
                raise LedgerUnavailable(f"Ledger: {self.shown} is closed. Open it again.")
            if self._orphan:
                raise LedgerUnavailable(
                    "Ledger: a ledger in memory belongs to the process that made it; this is a fork of it. Use a file."
                )
            result, settle = self._transaction(work, write, deadline)
        finally:
            self._mutex.release()
        settle()
        return result

    @abstractmethod
    def _transaction(
        self, work: Callable[[Transaction], T], write: bool, deadline: float
    ) -> tuple[T, Callable[[], None]]:
        """The result of the work, and what must be done, by any number of threads at once, before it may be told."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Let go of everything open; the next transaction connects again."""

    def _same_ledger(self, meta: dict[str, str]) -> None:
        """Every connection must find the ledger that the first one found."""
        if self._identity not in (None, meta["ledger"]):
            raise LedgerUnavailable(f"Ledger: {self.shown} was replaced by another ledger while in use. Open it again.")
        self._identity = meta["ledger"]
        self._create = False

    def _missing(self) -> LedgerUnavailable:
        return LedgerUnavailable(f"Ledger: there is no ledger at {self.shown}, and none was to be made.")

    def close(self) -> None:
        """Let go of everything open, for good."""
        with self._mutex:
            self._closed = True
            self._disconnect()

    def leave(self) -> None:
        """The same when the ledger is forgotten, which may be in the middle of anything this thread does.

        Whoever is using the store then cannot be waited for: that is the thread itself, at a fork.
        """
        self._closed = True
        if self._mutex.acquire(blocking=False):
            try:
                self._disconnect()
            finally:
                self._mutex.release()


# SQLite's locks belong to a process while its book-keeping of them is copied by a fork, and two processes on one
# connection to a server talk across each other. So connections are closed before a fork, with no transaction under way.
_stores: weakref.WeakSet[Store] = weakref.WeakSet()
_fork = threading.Lock()
_forking: list[Store] = []


def _before() -> None:
    _fork.acquire()
    for store in list(_stores):
        store._mutex.acquire()
        _forking.append(store)
        if store.durable:
            with contextlib.suppress(Exception):  # whatever it is, the fork goes on
                store._disconnect()


def _after(child: bool) -> None:
    while _forking:
        store = _forking.pop()
        store._orphan = store._orphan or (child and not store.durable)
        if store._closed:
            with contextlib.suppress(Exception):
                store._disconnect()
        store._mutex.release()
    _fork.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=lambda: _after(False), after_in_child=lambda: _after(True))

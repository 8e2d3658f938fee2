"""The ledger in a SQLite file, or in memory."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from inbounds.errors import LedgerConflict, LedgerCorrupt, LedgerError, LedgerRolledBack, LedgerUnavailable
from inbounds.ledger.chain import accept
from inbounds.ledger.head import Head, Mark
from inbounds.ledger.log import Log
from inbounds.ledger.record import BEGINNING
from inbounds.ledger.schema import HEADED, checked_version, migrate, steps
from inbounds.ledger.store import Store, Transaction
from inbounds.ledger.writers import Writers

__all__ = ["MEMORY", "SqliteStore"]

T = TypeVar("T")

MEMORY = ":memory:"
_PATIENCE = 0.05  # seconds SQLite itself waits for a lock before we look at the deadline
_INTERVAL = 0.001  # seconds between two tries where SQLite does not wait itself
_LEAVING = 1.0  # seconds that a connection at most waits to be closed in turn
_ACKNOWLEDGED = "{} were acknowledged"

#: The logs of all connections of this process. Of one database they must be the same: SQLite has one index for all.
_logs: set[Log] = set()


class _Transaction(Transaction):
    """``told`` is the mark that was kept before it began: of ``ledger``, if it is whole."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        clock: Callable[[], datetime] | None,
        told: Mark | None = None,
        ledger: str | None = None,
    ) -> None:
        super().__init__(clock)
        self._connection, self._told, self._ledger = connection, told, ledger

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()

    def write(self, sql: str, *values: Any) -> None:
        self._connection.execute(sql, values)

    def _lock(self, ids: Sequence[int]) -> tuple[list[tuple[Any, ...]], datetime]:
        marks = ", ".join("?" * len(ids))  # the whole file is locked already
        sql = f"SELECT id, seq, head, used, period FROM inbounds_scope WHERE id IN ({marks}) ORDER BY id"
        return self.rows(sql, *ids), self._now()

    def seen(self) -> Mark:
        """The end that is seen here. No record is ever removed, so SQLite's own numbers of the rows count them."""
        rows = self.rows("SELECT rowid, hash FROM inbounds_record ORDER BY rowid DESC LIMIT 1")
        count, hash = rows[0] if rows else (0, BEGINNING)
        return Mark(count, hash, self._ledger or "")

    def lost(self) -> str:
        told = self._told
        if told is None:
            return "the file beside it that says how much was acknowledged is missing or damaged"
        if not told.ledger:  # in memory
            return ""
        if told.ledger != self._ledger:
            return f"another one was here, of which {told.count} records were acknowledged"
        if told.count == 0:
            return ""
        found = self.rows("SELECT hash FROM inbounds_record WHERE rowid = ?", told.count)
        if not found:
            return _ACKNOWLEDGED.format(told.count)
        return "" if found == [(told.hash,)] else f"number {told.count} is not the one that was acknowledged"


class SqliteStore(Store):
    """A file with a write-ahead log that is flushed at every commit; one writer at a time over all processes."""

    def __init__(self, path: str, *, create: bool = True, timeout: float = 10.0, accept: int | None = None) -> None:
        self.durable = path != MEMORY
        self._accept = accept
        self._path = os.path.realpath(path) if self.durable else MEMORY
        super().__init__(self._path if self.durable else "in memory", create=create, timeout=timeout)
        self._connection: sqlite3.Connection | None = None
        self._log: Log | None = None
        self._broken = False
        self._writers = Writers(self._path + ".lock") if self.durable else None
        self._head = Head(self._path + ".head")

    # ---------------------------------------------------------------- transactions

    def _transaction(
        self, work: Callable[[Transaction], T], write: bool, deadline: float
    ) -> tuple[T, Callable[[], None]]:
        if self._log is not None and self._log.failed is not None:
            self._disconnect()
        if self._broken:
            raise LedgerUnavailable(f"Ledger: {self.shown} could not be flushed to its disk before. Open it again.")
        committing = False
        try:
            with self._turn(write, deadline) as connection:
                self._in_place()
                told = self._told()  # before it begins: so it must be in what is seen then
                self._begin(connection, write, deadline)
                try:
                    tx = _Transaction(connection, self.clock, told, self._identity)
                    if write and (lost := tx.lost()):
                        raise self._rolled_back(tx.seen(), lost)
                    result, seen = work(tx), tx.seen()
                    committing = write
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
                if write:  # and still in turn, so that nobody can end the log between this look and the commit
                    self._in_place(recorded=None)
            return result, self._flush(seen, told)
        except (sqlite3.Error, OSError) as problem:
            if isinstance(problem, LedgerError):
                raise
            raise self._error(problem, committing) from problem

    @contextlib.contextmanager
    def _turn(self, write: bool, deadline: float) -> Iterator[sqlite3.Connection]:
        """The connection, in turn. Readers need none, unless they are the first and may have to make the tables."""
        fresh = self._connection is None
        connection = self._connection or self._opened(deadline)
        try:
            if self._writers is not None and (write or fresh) and not self._writers.acquire(deadline):
                raise self._locked()
            if fresh:
                self._prepare(connection, deadline)
            yield connection
        finally:
            if self._connection is None:
                connection.close()
            if self._writers is not None:
                self._writers.release()

    def _in_place(self, recorded: bool | None = False) -> None:
        """SQLite would go on writing to files that nobody else can see."""
        if self._log is None or (self._log.in_place and self._head.in_place):
            return
        if self._log.gone:
            raise self._gone(recorded)
        raise LedgerUnavailable(f"Ledger: {self.shown} was removed or replaced while in use. Open it again.", recorded)

    def _begin(self, connection: sqlite3.Connection, write: bool, deadline: float) -> None:
        def begin() -> None:
            try:
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                if not write:
                    connection.execute("SELECT 1 FROM inbounds_meta").fetchone()  # the state seen is the one of now
            except sqlite3.OperationalError:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

        _patiently(begin, deadline)

    def _flush(self, seen: Mark, told: Mark | None) -> Callable[[], None]:
        """A flush of the write-ahead log, which covers all that is committed up to now, by whomever.

        SQLite could flush inside each commit (``synchronous = FULL``), but there no second writer can begin meanwhile.
        Out here the flushes of many writers are one for the disk. docs/proofs/ledger.md says why that is enough.
        """
        log = self._log
        if log is None or (told is not None and told >= seen):  # told is what was flushed
            return lambda: None
        log.ask(seen)

        def settle() -> None:
            problem = log.settle(seen)
            if problem is not None:
                raise LedgerUnavailable(
                    f"Ledger: {self.shown} could not be flushed to its disk ({problem}). Check the disk, then open it "
                    "again.",
                    None,
                ) from problem

        return settle

    # ---------------------------------------------------------------- the connection

    def _opened(self, deadline: float) -> sqlite3.Connection:
        """A connection to a ledger, or to an empty place. Nothing is changed yet, nor left beside what is no ledger.

        SQLite itself must look at the file: see ``Log`` for what an open and a close of our own would do.
        """
        told = self._told()  # before the look at the file, which others may be making: what was told is of one that was
        there = not self.durable or os.path.exists(self._path)
        if self.durable and there and not os.path.isfile(self._path):
            raise LedgerUnavailable(f"Ledger: {self.shown} is not a file. Choose another path.")
        if not there:
            if self._create and told is not None and told.count and self._accept != 0:
                raise self._rolled_back(Mark(), _ACKNOWLEDGED.format(told.count))
            if not self._create:
                raise self._missing()
        mode = "?mode=rwc" if self._create else "?mode=rw"
        name = Path(self._path).as_uri() + mode if self.durable else MEMORY

        def look() -> sqlite3.Connection:
            connection = sqlite3.connect(
                name, uri=self.durable, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
            try:
                self._version(connection)
            except BaseException:
                connection.close()
                raise
            return connection

        return _patiently(look, deadline)

    def _prepare(self, connection: sqlite3.Connection, deadline: float) -> None:
        """Give it a log and up-to-date tables, in the turn of a writer; from then on it is ours."""
        if self.durable:
            _patiently(lambda: self._use_log(connection), deadline)
        _patiently(lambda: connection.execute("BEGIN IMMEDIATE"), deadline)
        log = None
        try:
            version = self._version(connection)  # another may have been faster
            told = self._told()  # and nobody else can add to it now
            tx = _Transaction(connection, self.clock, told, (self._meta(connection) or {}).get("ledger"))
            seen = tx.seen() if version else Mark()
            young = version < HEADED and (told is None or not (told.count or seen.count))  # it needs no head yet
            lost = "" if young else tx.lost()
            counted = tx.rows("SELECT sum(seq) FROM inbounds_scope")[0][0] if version else 0
            if counted != seen.count:  # where an older copy lies under a newer log some pages are old and some are new
                raise LedgerRolledBack(
                    f"Ledger: {self.shown} has {seen.count} records, but its scopes count {counted}: an older copy was "
                    "put under a newer log, or it was changed by hand. Put back the files that belong together.",
                    records=seen.count,
                )
            if lost and self._accept != seen.count:
                raise self._rolled_back(seen, lost)
            if self._accept is not None and not lost:
                raise LedgerConflict(f"Ledger: {self.shown} lacks nothing that was acknowledged. Leave out accept.")
            if version < len(steps("sqlite")):
                migrate(tx, version, "sqlite")
            meta = self._meta(connection) or {}
            if lost:
                accept(tx, lost, seen.count)
            if self.durable:
                log = Log(self._path, self._head)
                if any(log.contradicts(other) for other in list(_logs)):
                    raise self._gone(False)
                log.renew()
                if not lost and (told is None or told.ledger != meta["ledger"]):  # before it is one that must have it
                    self._head.replace(replace(seen, ledger=meta["ledger"]))
            connection.execute("COMMIT")
            self._same_ledger(meta)
            if log is not None and (version < HEADED or lost or not (told and told.count) or self._bare(connection)):
                self._settle(connection, deadline)  # nothing was told yet, or by one that left out this step
            if log is not None and lost:  # it is let go of only when the record that says so is on the disk
                log.renew()
                self._head.replace(replace(tx.seen(), ledger=meta["ledger"]))
                self._accept = None
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if log is not None:
                log.close()
            raise
        if log is not None:
            _logs.add(log)
        self._connection, self._log = connection, log

    def _bare(self, connection: sqlite3.Connection) -> bool:
        """Whether all tables are in the log: the file itself is the one page that was made first."""
        ((page,),) = connection.execute("PRAGMA page_size")
        return os.stat(self._path).st_size <= int(page)

    def _settle(self, connection: sqlite3.Connection, deadline: float) -> None:
        """Put the tables into the file itself. Else it would be an empty place, and a fresh budget, without its log."""
        while connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()[0]:  # others read or write
            if time.monotonic() > deadline:
                raise self._locked()
            time.sleep(_INTERVAL)

    def _told(self) -> Mark | None:
        """What is kept of what was told; in memory nothing has to be."""
        return self._head.read() if self.durable else Mark()

    def _use_log(self, connection: sqlite3.Connection) -> None:
        ((mode,),) = connection.execute("PRAGMA journal_mode = WAL")
        if mode != "wal":
            raise LedgerUnavailable(
                f"Ledger: the file system of {self.shown} does not allow a write-ahead log. Use a local disk."
            )
        # NORMAL flushes where SQLite itself depends on it, at checkpoints; commits are flushed by _flush.
        for setting in ("synchronous = NORMAL", "fullfsync = ON", "checkpoint_fullfsync = ON"):
            connection.execute(f"PRAGMA {setting}")

    def _version(self, connection: sqlite3.Connection) -> int:
        version = checked_version(self.shown, self._meta(connection), "sqlite")
        if version == 0 and not self._create:
            raise self._missing()
        return version

    def _meta(self, connection: sqlite3.Connection) -> dict[str, str] | None:
        """What the ledger says of itself; None for an empty file."""
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if not tables:
            return None
        if "inbounds_meta" not in tables:
            raise LedgerCorrupt(f"Ledger: {self.shown} is a SQLite database of something else. Choose another path.")
        return dict(connection.execute("SELECT name, value FROM inbounds_meta"))

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        log, self._log = self._log, None
        if log is not None:
            log.close()
            self._broken = self._broken or log.failed is not None
        self._head.close()
        if self._writers is not None and connection is not None:
            with contextlib.suppress(OSError):  # in turn: the last of all connections ends the log
                self._writers.acquire(time.monotonic() + _LEAVING)
        if log is not None and (log.failed is not None or log.gone):
            # Closed, it could copy what is not on the disk into the database, or end the log of others. So it is never
            # closed, not even by the interpreter when it ends, and its log stays among those that others must match.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        elif connection is not None:
            connection.close()
            if log is not None:
                _logs.discard(log)
        if self._writers is not None:
            self._writers.close()

    # ---------------------------------------------------------------- errors

    def _locked(self) -> LedgerUnavailable:
        return LedgerUnavailable(f"Ledger: {self.shown} has been locked by another process for {self.timeout:g} s.")

    def _rolled_back(self, seen: Mark, lost: str) -> LedgerRolledBack:
        wrong = self._accept not in (None, seen.count)
        begin = f"accept must be how many records there are, {seen.count}; got {self._accept}. " if wrong else ""
        return LedgerRolledBack(
            f"Ledger: {begin}{self.shown} has {seen.count} records, but {lost}. Its log or head was removed or cut "
            "short, or an older copy was put in its place, which would give spent budget back. Put back the files that "
            f"belong together. Where they are lost, accept={seen.count} goes on from what is there, and records that.",
            records=seen.count,
        )

    def _gone(self, recorded: bool | None) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"Ledger: the write-ahead log of {self.shown} was removed or cut short while in use. Start this "
            "process again, and let nothing but ledgers open the file in it.",
            recorded,
        )

    def _error(self, problem: sqlite3.Error | OSError, committing: bool) -> LedgerError:
        code = getattr(problem, "sqlite_errorcode", None)
        if _busy(problem):
            return self._locked()
        if self.durable:
            self._disconnect()  # after a failed write a fresh connection knows best what is in the file
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return LedgerCorrupt(f"Ledger: {self.shown} is not a SQLite database, or is damaged ({problem}).")
        if isinstance(problem, sqlite3.IntegrityError):
            return LedgerCorrupt(f"Ledger: {self.shown} contradicts itself ({problem}). Run verify().")
        # A full disk cuts the commit short; after other failures of the disk the commit may yet be found there.
        recorded = None if committing and code != sqlite3.SQLITE_FULL else False
        return LedgerUnavailable(f"Ledger: {self.shown} cannot be used ({problem}).", recorded)


def _busy(problem: Exception) -> bool:
    return getattr(problem, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _patiently(step: Callable[[], T], deadline: float) -> T:
    """Again and again while others have the file locked."""
    while True:
        try:
            return step()
        except sqlite3.OperationalError as problem:
            if not _busy(problem) or time.monotonic() > deadline:
                raise

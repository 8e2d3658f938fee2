"""The ledger in a SQLite file, or in memory."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from inbounds.errors import LedgerCorrupt, LedgerError, LedgerUnavailable
from inbounds.ledger.schema import checked_version, migrate, steps
from inbounds.ledger.store import Store, Transaction
from inbounds.ledger.writers import Writers, flush

__all__ = ["MEMORY", "SqliteStore"]

T = TypeVar("T")

MEMORY = ":memory:"
_MAGIC = b"SQLite format 3\0"
_PATIENCE = 0.05  # seconds SQLite itself waits for a lock before we look at the deadline


class _Transaction(Transaction):
    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], datetime] | None) -> None:
        super().__init__(clock)
        self._connection = connection

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()

    def write(self, sql: str, *values: Any) -> None:
        self._connection.execute(sql, values)

    def _lock(self, ids: Sequence[int]) -> tuple[list[tuple[Any, ...]], datetime]:
        marks = ", ".join("?" * len(ids))  # the whole file is locked already
        sql = f"SELECT id, seq, head, used, period FROM inbounds_scope WHERE id IN ({marks}) ORDER BY id"
        return self.rows(sql, *ids), self._now()


class SqliteStore(Store):
    """A file with a write-ahead log that is flushed at every commit; one writer at a time over all processes."""

    def __init__(self, path: str, *, create: bool = True, timeout: float = 10.0) -> None:
        self.durable = path != MEMORY
        self._path = os.path.realpath(path) if self.durable else MEMORY
        super().__init__(self._path if self.durable else "in memory", create=create, timeout=timeout)
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._broken = False
        self._log: int | None = None
        self._writers = Writers(self._path + ".lock") if self.durable else None

    # ---------------------------------------------------------------- transactions

    def _transaction(
        self, work: Callable[[Transaction], T], write: bool, deadline: float
    ) -> tuple[T, Callable[[], None]]:
        if self._broken:
            raise LedgerUnavailable(f"Ledger: {self.shown} could not be flushed to its disk before. Open it again.")
        committing = False
        try:
            with self._turn(write, deadline):
                connection = self._connected(deadline)
                self._begin(connection, write, deadline)
                try:
                    result = work(_Transaction(connection, self.clock))
                    committing = write
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            return result, self._flush()
        except (sqlite3.Error, OSError) as problem:
            if isinstance(problem, LedgerError):
                raise
            raise self._error(problem, committing) from problem

    @contextlib.contextmanager
    def _turn(self, write: bool, deadline: float) -> Iterator[None]:
        """Readers need no turn, unless they are the first and may have to make the tables."""
        if self._writers is None or (not write and self._connection is not None):
            yield
            return
        if self._connection is None:
            self._looked_at()
        try:
            if not self._writers.acquire(deadline):
                raise self._locked()
            yield
        finally:
            self._writers.release()

    def _looked_at(self) -> None:
        """Before the first lock: nothing is left beside a file that is no ledger."""
        if not os.path.exists(self._path):
            if not self._create:
                raise self._missing()
        elif not os.path.isfile(self._path):
            raise LedgerUnavailable(f"Ledger: {self.shown} is not a file. Choose another path.")
        else:
            with open(self._path, "rb") as file:
                begins = file.read(len(_MAGIC))
            if begins not in (b"", _MAGIC):
                raise LedgerCorrupt(
                    f"Ledger: {self.shown} is not a SQLite database, or is damaged. Choose another path."
                )

    def _begin(self, connection: sqlite3.Connection, write: bool, deadline: float) -> None:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                if not write:
                    connection.execute("SELECT 1 FROM inbounds_meta").fetchone()  # the state seen is the one of now
                return
            except sqlite3.OperationalError as problem:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if not _busy(problem) or time.monotonic() > deadline:
                    raise

    def _flush(self) -> Callable[[], None]:
        """A flush of the write-ahead log, which covers all that is committed up to now, by whomever.

        SQLite could flush inside each commit (``synchronous = FULL``), but there no second writer can begin meanwhile.
        Out here the flushes of many writers are one for the disk. docs/proofs/ledger.md says why that is enough.
        """
        if self._log is None:
            return lambda: None
        log = os.dup(self._log)  # whoever disconnects now does not close it under us

        def settle() -> None:
            try:
                flush(log)
            except OSError as problem:
                # The system may now believe that it has written what it has not: another flush would prove nothing.
                self._broken = True
                raise LedgerUnavailable(
                    f"Ledger: {self.shown} could not be flushed to its disk ({problem}). Check the disk, then open it "
                    "again.",
                    None,
                ) from problem
            finally:
                os.close(log)

        return settle

    # ---------------------------------------------------------------- the connection

    def _connected(self, deadline: float) -> sqlite3.Connection:
        while self._connection is None:
            try:
                self._connection = self._connect()
            except sqlite3.OperationalError as problem:
                if not _busy(problem) or time.monotonic() > deadline:
                    raise
        if self.durable and self._file != _identity(self._path):
            # SQLite would go on writing to a file that nobody else can see.
            raise LedgerUnavailable(f"Ledger: {self.shown} was removed or replaced while in use. Open it again.")
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        mode = "?mode=rwc" if self._create else "?mode=rw"
        name = Path(self._path).as_uri() + mode if self.durable else MEMORY
        connection = sqlite3.connect(
            name, uri=self.durable, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            # Before anything is changed: whose file is it?
            version = checked_version(self.shown, self._meta(connection), "sqlite")
            if version == 0 and not self._create:
                raise self._missing()
            if self.durable:
                self._use_log(connection)
            if version < len(steps("sqlite")):
                connection.execute("BEGIN IMMEDIATE")
                migrate(_Transaction(connection, self.clock), version, "sqlite")
                connection.execute("COMMIT")
            self._same_ledger(dict(connection.execute("SELECT name, value FROM inbounds_meta")))
            if self.durable:
                self._file = _identity(self._path)
                self._log = os.open(self._path + "-wal", os.O_RDWR)  # there as long as a connection is
        except BaseException:
            connection.close()
            raise
        return connection

    def _use_log(self, connection: sqlite3.Connection) -> None:
        ((mode,),) = connection.execute("PRAGMA journal_mode = WAL")
        if mode != "wal":
            raise LedgerUnavailable(
                f"Ledger: the file system of {self.shown} does not allow a write-ahead log. Use a local disk."
            )
        # NORMAL flushes where SQLite itself depends on it, at checkpoints; commits are flushed by _flush.
        for setting in ("synchronous = NORMAL", "fullfsync = ON", "checkpoint_fullfsync = ON"):
            connection.execute(f"PRAGMA {setting}")

    def _meta(self, connection: sqlite3.Connection) -> dict[str, str] | None:
        """What the ledger says of itself; None for an empty file."""
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if not tables:
            return None
        if "inbounds_meta" not in tables:
            raise LedgerCorrupt(f"Ledger: {self.shown} is a SQLite database of something else. Choose another path.")
        return dict(connection.execute("SELECT name, value FROM inbounds_meta"))

    def _disconnect(self) -> None:
        if self._log is not None:
            os.close(self._log)
            self._log = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._writers is not None:
            self._writers.close()

    # ---------------------------------------------------------------- errors

    def _locked(self) -> LedgerUnavailable:
        return LedgerUnavailable(f"Ledger: {self.shown} has been locked by another process for {self.timeout:g} s.")

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


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino

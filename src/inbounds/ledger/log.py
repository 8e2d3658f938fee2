"""The write-ahead log of a SQLite file, held open so that everything in it can be flushed.

Why its handles are opened with the connection, and are used by one flush at a time: docs/proofs/ledger.md, 3.1.
"""

from __future__ import annotations

import os
import threading

from inbounds.ledger.writers import flush

__all__ = ["Log"]

_HANDLES = 4  # flushes at the same time
_CHUNK = 1 << 20  # bytes that are written again at a time

File = tuple[int, int]  # device and number of a file, whatever its name


class Log:
    """The log beside the database ``path``, which a connection has open.

    Only this file may be opened outside SQLite: at the closing of any handle POSIX drops all locks that the process has
    on a file, and SQLite's are on the database and on its index (``-shm``), not on the log.
    """

    def __init__(self, path: str) -> None:
        self._path, self._log = path, path + "-wal"
        self._handles: list[int] = []
        try:
            while len(self._handles) < _HANDLES:
                self._handles.append(os.open(self._log, os.O_RDWR | getattr(os, "O_BINARY", 0)))
        except OSError:
            for handle in self._handles:
                os.close(handle)
            raise
        self._free = list(self._handles)
        self._database, self._file = _named(path), _of(os.fstat(self._handles[0]))
        self._change = threading.Condition()
        self._asked = self._flushed = 0
        #: why a flush failed; none can be trusted afterwards
        self.failed: OSError | None = None

    # ---------------------------------------------------------------- is it still the one that others see?

    @property
    def in_place(self) -> bool:
        """Whether both files are."""
        return _named(self._log) == self._file and not self.replaced

    @property
    def replaced(self) -> bool:
        """Whether the database has another name now, or none."""
        return _named(self._path) != self._database

    @property
    def gone(self) -> bool:
        """Whether others have another log of the same database, or none."""
        return not self.in_place and not self.replaced

    def contradicts(self, other: Log) -> bool:
        """Whether it is another log of the same database."""
        return self._database == other._database and self._file != other._file

    # ---------------------------------------------------------------- flushing

    def ask(self) -> int:
        """A ticket for :meth:`settle`, given after the end of a transaction."""
        self._asked += 1
        return self._asked

    def settle(self, ticket: int) -> OSError | None:
        """Return when a flush that began after the ticket has succeeded, or why none can.

        The system tells of a failure once for a handle. So no two flushes use one at the same time, of which one would
        succeed, as it seems; and nobody uses one that has heard of it.
        """
        with self._change:
            while not self._free and self._flushed < ticket and self.failed is None:
                self._change.wait(1.0)
            if self._flushed >= ticket or self.failed is not None:
                return self.failed if self._flushed < ticket else None
            handle, asked = self._free.pop(), self._asked
        try:
            flush(handle)
            with self._change:
                self._flushed = max(self._flushed, asked)
        except OSError as problem:
            self.failed = problem  # before the handle is free
            return problem
        finally:
            self._free.append(handle)
            with self._change:
                self._change.notify_all()
        return None

    def renew(self) -> None:
        """Write again what is in it, and flush that; to be called while nobody else may write.

        Where a flush failed before this handle was opened, the system may believe that it has written what it has not,
        and a flush of ours would not make up for it.
        """
        handle = self._handles[0]
        os.lseek(handle, 0, os.SEEK_SET)
        while chunk := os.read(handle, _CHUNK):
            os.lseek(handle, -len(chunk), os.SEEK_CUR)
            os.write(handle, chunk)  # the next reading begins where this ends
        if os.fstat(handle).st_size:
            flush(handle)

    def close(self) -> None:
        """Flush for those who wait, and let go."""
        if self._asked:
            self.settle(self._asked)
        with self._change:
            while len(self._free) < len(self._handles):
                self._change.wait(1.0)
            for handle in self._handles:
                os.close(handle)


def _named(path: str) -> File | None:
    try:
        return _of(os.stat(path))
    except FileNotFoundError:
        return None


def _of(found: os.stat_result) -> File:
    return found.st_dev, found.st_ino

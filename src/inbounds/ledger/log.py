"""The write-ahead log of a SQLite file, held open so that everything in it can be flushed.

Why its handles are opened with the connection, and are used by one flush at a time: docs/proofs/ledger.md, 3.1.
"""

from __future__ import annotations

import os
import threading

from inbounds.ledger.head import Head, Mark
from inbounds.ledger.writers import flush, identity, named

__all__ = ["Log"]

_HANDLES = 4  # flushes at the same time
_CHUNK = 1 << 20  # bytes that are written again at a time


class Log:
    """The log beside the database ``path``, which a connection has open; a flush of it moves the head on.

    Only this file may be opened outside SQLite: at the closing of any handle POSIX drops all locks that the process has
    on a file, and SQLite's are on the database and on its index (``-shm``), not on the log.
    """

    def __init__(self, path: str, head: Head) -> None:
        self._path, self._log, self._index = path, path + "-wal", path + "-shm"
        self._head = head
        self._handles: list[int] = []
        try:
            while len(self._handles) < _HANDLES:
                self._handles.append(os.open(self._log, os.O_RDWR | getattr(os, "O_BINARY", 0)))
        except OSError:
            for handle in self._handles:
                os.close(handle)
            raise
        self._free = list(self._handles)
        self._database = named(path)
        self._files = identity(os.fstat(self._handles[0])), named(self._index)
        self._size = 0
        self._change = threading.Condition()
        self._asked = self._flushed = Mark()
        #: why a flush failed; none can be trusted afterwards
        self.failed: OSError | None = None

    # ---------------------------------------------------------------- is it still the one that others see?

    @property
    def in_place(self) -> bool:
        """Whether all files are."""
        return not self.replaced and not self.gone

    @property
    def replaced(self) -> bool:
        """Whether the database has another name now, or none."""
        return named(self._path) != self._database

    @property
    def gone(self) -> bool:
        """Whether others have another log or index of the same database, or none, or one that was cut short."""
        try:
            size = os.stat(self._log).st_size
        except FileNotFoundError:
            size = -1
        self._size = max(self._size, size)  # while it is in use it never shrinks
        files = named(self._log), named(self._index)
        return not self.replaced and (files != self._files or size < self._size)

    def contradicts(self, other: Log) -> bool:
        """Whether it is another log, or another index, of the same database."""
        return self._database == other._database and self._files != other._files

    # ---------------------------------------------------------------- flushing

    def ask(self, mark: Mark) -> None:
        """After the end of a transaction that saw this: it is to be told, once :meth:`settle` has returned."""
        self._asked = max(self._asked, mark)

    def settle(self, mark: Mark) -> OSError | None:
        """Return when a flush that began after the question has succeeded and its mark is kept, or why none can.

        The system tells of a failure once for a handle. So no two flushes use one at the same time, of which one would
        succeed, as it seems; and nobody uses one that has heard of it.
        """
        with self._change:
            while not self._free and self._flushed < mark and self.failed is None:
                self._change.wait(1.0)
            if self._flushed >= mark or self.failed is not None:
                return self.failed if self._flushed < mark else None
            handle, asked = self._free.pop(), self._asked
        try:
            flush(handle)
            self._head.advance(asked)
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
        self.settle(self._asked)
        with self._change:
            while len(self._free) < len(self._handles):
                self._change.wait(1.0)
            for handle in self._handles:
                os.close(handle)

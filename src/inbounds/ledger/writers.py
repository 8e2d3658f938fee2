"""The queue of writers before a SQLite file: an advisory lock that ends with the process that holds it.

SQLite alone lets waiting writers sleep ever longer, and one of many may wait for seconds. Here each tries again at a
short, steady interval. Where the system has no such locks SQLite's own decide.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import time
from typing import Any

__all__ = ["Writers", "flush"]

_INTERVAL = 0.0005  # seconds between two tries


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


fcntl = _module("fcntl")  # POSIX
msvcrt = _module("msvcrt")  # Windows


def flush(fd: int) -> None:
    """Return when everything written to the file is on the disk (macOS: through its own cache as well)."""
    if hasattr(fcntl, "F_FULLFSYNC"):
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


class Writers:
    """The lock on one file, which is made when missing and never removed: removing it would split the queue."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd: int | None = None

    def acquire(self, deadline: float) -> bool:
        """Wait for the lock; False if it was not to be had in time. OSError where the file cannot be opened."""
        if fcntl is None and msvcrt is None:
            return True
        if self._fd is None:
            self._fd = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o666)
        while not self._try(self._fd):
            if time.monotonic() > deadline:
                return False
            time.sleep(_INTERVAL)
        return True

    @staticmethod
    def _try(fd: int) -> bool:
        try:
            if fcntl is not None:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            else:
                os.lseek(fd, 0, os.SEEK_SET)
                msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except (BlockingIOError, PermissionError):  # held by another; any other error is not a matter of waiting
            return False
        return True

    def release(self) -> None:
        """Let the next one in; nothing happens where the lock is not held."""
        if self._fd is None:
            return
        if fcntl is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        else:
            os.lseek(self._fd, 0, os.SEEK_SET)
            with contextlib.suppress(OSError):
                msvcrt.locking(self._fd, msvcrt.LK_UNLCK, 1)

    def close(self) -> None:
        """Give the file back."""
        if self._fd is not None:
            with contextlib.suppress(OSError):
                os.close(self._fd)
            self._fd = None

"""The queue of writers before a SQLite file: an advisory lock that ends with the process that holds it. And flushes.

SQLite alone lets waiting writers sleep ever longer, and one of many may wait for seconds. Here each tries again at a
short, steady interval. Where the system has no such locks SQLite's own decide.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import time
from typing import Any

__all__ = ["File", "Writers", "flush", "flush_folder", "identity", "named"]

_INTERVAL = 0.0005  # seconds between two tries

File = tuple[int, int]  # device and number of a file, whatever its name


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
        getattr(os, "fdatasync", os.fsync)(fd)


def flush_folder(path: str) -> None:
    """Return when the name of a new file is on the disk, where the system has that."""
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def identity(found: os.stat_result) -> File:
    """Which file it is."""
    return found.st_dev, found.st_ino


def named(path: str) -> File | None:
    """Which file has this name; None where there is none."""
    try:
        return identity(os.stat(path))
    except FileNotFoundError:
        return None


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

"""The private directory that the embedded engine spills to: removed at the end, or by the next process after a kill."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["Spill"]

_NAME = re.compile(r"inbounds-spill-(\d+)-.*")


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


fcntl = _module("fcntl")  # POSIX


class Spill:
    """A new directory, and those that killed processes left are removed.

    It is held by a shared lock, which ends with the last process that has it: numbers of processes mean nothing in
    another container. Where there are no such locks (Windows) they have to do.
    """

    def __init__(self, parent: str | os.PathLike[str] | None) -> None:
        place = Path(tempfile.gettempdir() if parent is None else parent)
        for left in place.glob("inbounds-spill-*"):
            _remove_left(left)
        self._held: int | None = None
        while True:
            self.path = tempfile.mkdtemp(prefix=f"inbounds-spill-{os.getpid()}-", dir=place)
            if self._hold():
                return

    def again(self) -> None:
        """Make it anew where it was cleaned away."""
        if not os.path.isdir(self.path):
            self.close()
            os.mkdir(self.path, 0o700)
            self._hold()

    def remove(self) -> None:
        """Remove it, and let go."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.close()

    def close(self) -> None:
        """Let go; of what is shared with a parent only here."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def _hold(self) -> bool:
        """Whether it is there and ours: between its making and the lock another may have taken it for left."""
        if fcntl is None:
            return True
        with contextlib.suppress(OSError):
            held = os.open(self.path, os.O_RDONLY)
            try:
                fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(held), os.stat(self.path)):
                    self._held = held
                    return True
            except BlockingIOError:  # it is being removed
                pass
            except OSError:  # a file system without locks, where nobody can take it either
                return os.path.isdir(self.path)
            finally:
                if self._held != held:
                    os.close(held)
        return False


def _remove_left(directory: Path) -> None:
    """Remove it if nobody holds it."""
    found = _NAME.fullmatch(directory.name)
    if found is None:
        return
    if fcntl is None:
        if not _runs(int(found[1])):
            shutil.rmtree(directory, ignore_errors=True)
        return
    with contextlib.suppress(OSError):  # held, of somebody else, gone, or on a file system without locks
        held = os.open(directory, os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory, ignore_errors=True)
        finally:
            os.close(held)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        pass
    return True

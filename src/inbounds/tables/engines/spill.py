"""The private directory that the embedded engine spills to: removed at the end, or by the next process after a kill."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path

from inbounds.ledger.writers import fcntl  # None where there is none, as on Windows

__all__ = ["Spill"]

_NAME = re.compile(r"inbounds-spill-(\d+)-.*")
#: In a place that all may write to, a name may be anything: a link, or a pipe that is never opened from its other end.
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_TRIES = 10


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
        for _ in range(_TRIES):
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
        held = None
        try:
            held = os.open(self.path, _FOLDER)
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(held), os.stat(self.path)):
                self._held = held
        except (BlockingIOError, FileNotFoundError):  # it is being removed, or is
            pass
        except OSError:  # it cannot be locked, so that nobody else can take it either
            return os.path.isdir(self.path)
        finally:
            if held is not None and self._held != held:
                os.close(held)
        return self._held is not None


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
        held = os.open(directory, _FOLDER)
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

"""What was told last, kept beside a SQLite file: one that lacks it has lost its end. See docs/proofs/ledger.md, 3.2."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import threading
import time
from dataclasses import dataclass, field

from inbounds.ledger.record import BEGINNING
from inbounds.ledger.writers import Writers, flush, flush_folder, identity, named

__all__ = ["Head", "Mark"]

_SLOTS = (4096, 8192)  # each in a sector of its own; before them is what is locked
_LENGTH = 256
_FORM = "inbounds-head-1"
_FLAGS = os.O_RDWR | getattr(os, "O_BINARY", 0)
_PATIENCE = 10.0  # seconds to wait for another who writes, which takes microseconds


@dataclass(frozen=True, order=True)
class Mark:
    """A place in the history of a ledger: how many records there are, in all scopes, and the hash of the last.

    Of two marks the one with more records is the later.
    """

    count: int = 0
    hash: str = field(default=BEGINNING, compare=False)
    ledger: str = field(default="", compare=False)

    def line(self) -> bytes:
        """As it is kept, with a sum that a line written by halves does not have."""
        text = f"{_FORM} {self.ledger or '-'} {self.count} {self.hash}"
        return f"{text} {_sum(text)}".ljust(_LENGTH - 1).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Mark | None:
        with contextlib.suppress(ValueError):
            form, ledger, count, hash, found = line.decode("ascii").split()
            if form == _FORM and found == _sum(f"{form} {ledger} {count} {hash}"):
                return cls(int(count), hash, ledger)
        return None


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Head:
    """The file of the mark up to which a ledger was told. The mark only moves ahead.

    It stands in one of two places, and the next one is written to the other: what is cut short spoils no other.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._mutex = threading.Lock()
        self._others = Writers(path)
        self._fd: int | None = None

    @property
    def in_place(self) -> bool:
        """Whether the file that was opened still has its name."""
        return self._fd is not None and named(self.path) == identity(os.fstat(self._fd))

    def read(self) -> Mark | None:
        """The mark; None where there is none, or none that can be read."""
        with self._mutex:
            marks = self._marks()
            if not any(marks):  # look again: it may have been read while it was written
                marks = self._marks()
            return max(filter(None, marks), default=None)

    def advance(self, mark: Mark) -> None:
        """Keep this mark, on the disk, unless a later one is kept already. OSError where that fails."""
        with self._mutex:
            if not self._others.acquire(time.monotonic() + _PATIENCE):
                raise TimeoutError(errno.ETIMEDOUT, "another process does not let go of it", self.path)
            try:
                marks = self._marks()
                kept = max(filter(None, marks), default=Mark())
                if kept.count == mark.count and kept.hash != mark.hash:
                    raise OSError(errno.EIO, "it tells of another history", self.path)
                if kept.count < mark.count:
                    self._write(mark, _SLOTS[marks.index(kept) - 1] if kept in marks else _SLOTS[0])
            finally:
                self._others.release()

    def replace(self, mark: Mark) -> None:
        """Keep this mark whatever there was; to be called in the turn of a writer."""
        with self._mutex:
            for slot in _SLOTS:
                self._write(mark, slot)
            flush_folder(self.path)

    def close(self) -> None:
        """Let go."""
        with self._mutex:
            self._others.close()
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    # ---------------------------------------------------------------- inside

    def _marks(self) -> list[Mark | None]:
        """What stands in the two places."""
        if self._fd is None:
            try:
                self._fd = os.open(self.path, _FLAGS)
            except FileNotFoundError:
                return [None, None]
        os.lseek(self._fd, _SLOTS[0], os.SEEK_SET)
        text = os.read(self._fd, _SLOTS[1] - _SLOTS[0] + _LENGTH)
        return [Mark.read(text[slot - _SLOTS[0] :][:_LENGTH]) for slot in _SLOTS]

    def _write(self, mark: Mark, slot: int) -> None:
        if self._fd is None:
            self._fd = os.open(self.path, _FLAGS | os.O_CREAT, 0o666)
        os.lseek(self._fd, slot, os.SEEK_SET)
        os.write(self._fd, mark.line())
        flush(self._fd)

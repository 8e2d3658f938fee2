"""The head beside a ledger's file: a mark that only moves ahead, and survives being written by halves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inbounds.ledger.head import Head, Mark


def mark(count: int, hash: str = "a") -> Mark:
    return Mark(count, hash, "ledger")


@pytest.fixture
def head(tmp_path: Path) -> Head:
    made = Head(str(tmp_path / "x.head"))
    assert made.read() is None
    made.replace(mark(3))
    return made


def test_a_mark_only_moves_ahead(head: Head) -> None:
    other = Head(head.path)
    for count, kept in ((5, 5), (4, 5), (5, 5), (6, 6), (7, 7)):
        (head if count % 2 else other).advance(mark(count))
        assert head.read() == other.read() == mark(kept)
    with pytest.raises(OSError, match="another history"):
        head.advance(mark(7, "b"))


@pytest.mark.parametrize("part", range(0, 256, 5))
def test_a_mark_written_by_halves_spoils_no_other(head: Head, part: int) -> None:
    """Whichever of its bytes reached the disk, the mark before it is still there."""
    for count in (4, 5):
        before = Path(head.path).read_bytes()
        head.advance(mark(count))
        after = Path(head.path).read_bytes()
        torn = bytes(a if i % 256 < part else b for i, (a, b) in enumerate(zip(after, before, strict=True)))
        Path(head.path).write_bytes(torn)
        assert head.read() in (mark(count - 1), mark(count))
        Path(head.path).write_bytes(after)
        assert head.read() == mark(count)


def test_a_head_that_cannot_be_read_is_none(head: Head) -> None:
    Path(head.path).write_bytes(b"\xff" * 2000)
    assert head.read() is None
    head.advance(mark(1))
    assert head.read() == mark(1)


@pytest.mark.skipif(os.name != "posix", reason="POSIX only")
def test_a_head_that_another_does_not_let_go_of_is_an_error_in_time(
    head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    monkeypatch.setattr("inbounds.ledger.head._PATIENCE", 0.1)
    with open(head.path, "r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(TimeoutError, match="does not let go"):
            head.advance(mark(4))
    head.advance(mark(4))
    assert head.read() == mark(4)

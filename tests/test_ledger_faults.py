"""Faults: files that are no ledgers, locks, full and failing disks, servers that go away, forks. Never an overspend."""

from __future__ import annotations

import errno
import gc
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import inbounds as ib
from inbounds.errors import BudgetExceeded, LedgerConflict, LedgerCorrupt, LedgerError, LedgerUnavailable
from inbounds.ledger import Ledger, head, log, postgres, schema, sqlite, writers
from tests.ledger_support import budget, event, on_disk, spend, total, units
from tests.postgres import NOBODY, Server

pytest_plugins = ["tests.ledger_fixtures"]

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX only")


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(".lock")}


def script(code: str, *arguments: str) -> str:
    """Run Python code in a process of its own; the tests are importable there."""
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---------------------------------------------------------------- what is found there


def test_nothing_is_left_beside_what_is_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("person,age\n1,30\n")
    (tmp_path / "folder").mkdir()
    for name, problem in (("visits.csv", "not a SQLite database"), ("folder", "not a file")):
        with pytest.raises(LedgerError, match=problem):
            Ledger.open(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "visits.csv"]
    with pytest.raises(ib.ParameterError, match="a path that this system can have"):
        Ledger.open("\ud800.db")


@pytest.mark.parametrize("content", [b"not a database at all, but a text" * 50, b"SQLite format 3\0" + b"\xff" * 2000])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    with pytest.raises(LedgerCorrupt):
        Ledger.open(path)
    assert files(tmp_path) == {"ledger.db": content}


def test_the_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        connection.execute("CREATE TABLE customers (name text)")
    connection.close()
    before = files(tmp_path)
    with pytest.raises(LedgerCorrupt, match="something else"):
        Ledger.open(tmp_path / "ledger.db")
    assert files(tmp_path) == before


@on_disk
def test_a_newer_schema_is_refused_and_left_alone(place: str, tmp_path: Path) -> None:
    with Ledger.open(place) as ledger:
        spend(ledger.scope(budget=budget(2)))
        known = int(ledger._store.transaction(version))
        write = f"UPDATE inbounds_meta SET value = '{known + 1}' WHERE name = 'schema'"
        ledger._store.transaction(lambda tx: tx.write(write))
    before = files(tmp_path)
    with pytest.raises(LedgerUnavailable, match=rf"its schema is {known + 1}, this one knows up to {known}. Upgrade"):
        Ledger.open(place)
    assert files(tmp_path) == before


@on_disk
def test_a_ledger_without_a_version_is_refused(place: str) -> None:
    with Ledger.open(place) as ledger:
        ledger._store.transaction(lambda tx: tx.write("UPDATE inbounds_meta SET value = 'new' WHERE name = 'schema'"))
    with pytest.raises(LedgerCorrupt, match="does not say which schema"):
        Ledger.open(place)


@on_disk
def test_an_older_schema_is_brought_up_to_date(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as older:
        steps = schema.steps
        for module in (schema, sqlite, postgres):
            older.setattr(module, "steps", lambda dialect: steps(dialect)[:1])
        with Ledger.open(place) as ledger:
            scope = ledger.scope(budget=budget(5))
            scope.spend(event(), lambda: "old", key="k")
            lost = scope.reserve(event())
            assert ledger.verify().ok
            assert ledger._store.transaction(version) == "1"
            ledger._store.transaction(lambda tx: tx.write("UPDATE inbounds_record SET at = at"))  # no guards yet
    with Ledger.open(place) as ledger:
        scope = ledger.scope(budget=budget(5))
        assert ledger._store.transaction(version) == ("2" if place.startswith("postgresql") else "3")
        assert scope.spend(event(), lambda: "new", key="k") == "old"
        assert [record.reservation for record in scope.unfinished()] == [lost.id]
        spend(scope, 3)
        with pytest.raises(BudgetExceeded):
            spend(scope)
        with pytest.raises(LedgerError):
            ledger._store.transaction(lambda tx: tx.write("UPDATE inbounds_record SET at = at"))
        assert ledger.verify().ok


def version(tx: Any) -> str:
    found: str = tx.rows("SELECT value FROM inbounds_meta WHERE name = 'schema'")[0][0]
    return found


@on_disk
def test_a_ledger_that_must_exist_is_not_made(place: str) -> None:
    with pytest.raises(LedgerUnavailable, match="there is no ledger at"):
        Ledger.open(place, create=False)
    Ledger.open(place).close()
    Ledger.open(place, create=False).close()


def test_an_empty_file_is_no_ledger_that_exists(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").touch()
    with pytest.raises(LedgerUnavailable, match="there is no ledger at"):
        Ledger.open(tmp_path / "ledger.db", create=False)
    Ledger.open(tmp_path / "ledger.db").close()


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="cannot be used"):
        Ledger.open(tmp_path / "no" / "such" / "ledger.db")


@posix
@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_cannot_be_written_says_so(what: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """As an ordinary user: nothing is read-only to root."""
    folder = tmp_path_factory.mktemp("closed")
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    with Ledger.open(folder / "ledger.db") as ledger:
        spend(ledger.scope(budget=budget(3)))
    for path in folder.iterdir():
        path.chmod(0o444 if what == "file" else 0o666)
    folder.chmod(0o777 if what == "file" else 0o555)
    code = f"""
        import os, sys
        from inbounds.errors import LedgerUnavailable
        from tests.ledger_support import Ledger, spend
        import inbounds.ledger.sqlite
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid({NOBODY})
            os.setuid({NOBODY})
        try:
            spend(Ledger.open(sys.argv[1]).scope())
        except LedgerUnavailable as problem:
            print(problem)
    """
    assert "cannot be used" in script(code, str(folder / "ledger.db"))
    folder.chmod(0o755)
    with Ledger.open(folder / "ledger.db") as ledger:
        assert total(ledger) == 1


# ---------------------------------------------------------------- locks


def test_a_database_locked_by_a_stranger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger.open(path, timeout=0.2) as ledger:
        scope = ledger.scope(budget=budget(2))
        stranger = sqlite3.connect(path, isolation_level=None)
        stranger.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnavailable, match=r"locked by another process for 0\.2 s") as caught:
            scope.reserve(event())
        assert caught.value.recorded is False
        assert units(scope.spent()) == 0  # readers need not wait
        stranger.execute("ROLLBACK")
        stranger.close()
        spend(scope, 2)


@posix
def test_a_writer_that_does_not_end(tmp_path: Path) -> None:
    import fcntl

    with Ledger.open(tmp_path / "ledger.db", timeout=0.2) as ledger:
        scope = ledger.scope(budget=budget(2))
        with open(tmp_path / "ledger.db.lock", "r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with pytest.raises(LedgerUnavailable, match="locked by another process"):
                scope.reserve(event())
        spend(scope, 2)


def test_a_thread_that_does_not_end(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db", timeout=0.2) as ledger:
        scope = ledger.scope(budget=budget(2))
        inside, leave = threading.Event(), threading.Event()

        def stay(tx: Any) -> None:
            inside.set()
            leave.wait(30.0)

        thread = threading.Thread(target=ledger._store.transaction, args=(stay,))
        thread.start()
        inside.wait(30.0)
        with pytest.raises(LedgerUnavailable, match="another thread"):
            scope.reserve(event())
        leave.set()
        thread.join()
        spend(scope, 2)


class FakeMsvcrt:
    """Windows' way to lock a byte of a file, played on POSIX."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def locking(self, fd: int, mode: int, count: int) -> None:
        import fcntl

        assert count == 1
        assert os.lseek(fd, 0, os.SEEK_CUR) == 0
        try:
            fcntl.flock(fd, fcntl.LOCK_UN if mode == self.LK_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "locked") from None


@posix
@pytest.mark.parametrize("system", ["windows", "neither", "macos"])
def test_other_systems_queue_in_their_own_way(system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    if system == "macos":
        real = writers.fcntl
        monkeypatch.setattr(
            writers,
            "fcntl",
            SimpleNamespace(
                flock=real.flock,
                LOCK_EX=real.LOCK_EX,
                LOCK_NB=real.LOCK_NB,
                LOCK_UN=real.LOCK_UN,
                F_FULLFSYNC=51,
                fcntl=lambda fd, command: flushed.append(command),
            ),
        )
    else:
        monkeypatch.setattr(writers, "fcntl", None)
        monkeypatch.setattr(writers, "msvcrt", FakeMsvcrt() if system == "windows" else None)
    path = tmp_path / "ledger.db"
    with Ledger.open(path, timeout=30.0) as ledger:
        ledger.scope(budget=budget(20))
        refused = []

        def work() -> None:
            with Ledger.open(path, timeout=30.0) as own:
                for _ in range(6):
                    try:
                        spend(own.scope())
                    except BudgetExceeded:
                        refused.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(refused) == 4
        assert total(ledger) == 20
        assert ledger.verify().ok
    assert set(flushed) == ({51} if system == "macos" else set())
    if system == "windows":
        with Ledger.open(path, timeout=0.2) as ledger, Ledger.open(path, timeout=0.2) as other:
            scope = ledger.scope()
            assert other._store._writers.acquire(0.0)  # type: ignore[attr-defined]
            with pytest.raises(LedgerUnavailable, match="locked by another process"):
                scope.reserve(event())


def test_a_system_without_any_locks_of_files_gives_up_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "fcntl", None)
    monkeypatch.setattr(writers, "msvcrt", None)
    with Ledger.open(tmp_path / "ledger.db", timeout=0.2) as ledger, Ledger.open(tmp_path / "ledger.db") as other:
        scope = ledger.scope(budget=budget(1))

        def hold(tx: Any) -> None:
            with pytest.raises(LedgerUnavailable, match="locked by another process"):
                scope.reserve(event())

        other._store.transaction(hold)
        spend(scope)


# ---------------------------------------------------------------- disks


@pytest.mark.parametrize("spare", range(0, 12, 2))
def test_a_full_disk_by_the_number_of_pages(tmp_path: Path, spare: int) -> None:
    """The limit hits at another place of another call each time."""
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        scope = ledger.scope(budget=budget(10_000))
        spend(scope)
        connection = ledger._store._connection  # type: ignore[attr-defined]
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + spare}")
        done = 1
        with pytest.raises(LedgerUnavailable, match="full") as caught:  # noqa: PT012
            while True:
                spend(scope, answer="x" * 3000)
                done += 1
        assert caught.value.recorded is False
        answers = [record for record in scope.history() if record.kind == "commit"]
        assert len(answers) == done
        assert units(scope.spent()) == done + len(scope.unfinished())
        assert ledger.verify().ok
        spend(scope)  # the new connection has no such limit


@posix
def test_a_full_disk_by_the_size_of_files(tmp_path: Path) -> None:
    """The system itself refuses to write on; SQLite sees what it would see of a full disk or quota."""
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        ledger.scope(budget=budget(10_000))
    out = script(
        """
        import resource, sys
        from inbounds.errors import LedgerUnavailable
        from tests.ledger_support import Ledger, event
        ledger = Ledger.open(sys.argv[1])
        scope = ledger.scope()
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        done = 0
        try:
            while True:
                scope.spend(event(), lambda: "x" * 5000)
                done += 1
        except LedgerUnavailable as problem:
            print(done, problem, sep="|")
        """,
        str(path),
    )
    done, message = out.split("|")
    assert int(done) > 5
    assert "cannot be used" in message
    with Ledger.open(path) as ledger:
        (scope,) = ledger.scopes()
        answers = [record for record in scope.history() if record.kind == "commit"]
        assert len(answers) >= int(done), "every acknowledged answer is there"
        assert units(scope.spent()) == len(answers) + len(scope.unfinished())
        assert ledger.verify().ok
        spend(scope)


def test_nothing_is_acknowledged_that_is_not_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger.open(path)
    scope = ledger.scope(budget=budget(9))
    reservation = scope.reserve(event())

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(log, "flush", fail)
    with pytest.raises(LedgerUnavailable, match=r"could not be flushed.* commit may be tried again") as caught:
        reservation.commit(1)
    assert caught.value.recorded is None
    with pytest.raises(LedgerConflict):
        _ = reservation.answer
    with pytest.raises(LedgerUnavailable, match="flushed to its disk before"):
        scope.reserve(event())
    monkeypatch.undo()
    with pytest.raises(LedgerUnavailable, match="before"):  # a later flush that succeeds proves nothing
        scope.reserve(event())
    with Ledger.open(path) as again:
        scope = again.scope()
        assert units(scope.spent()) == 1
        monkeypatch.setattr(log, "flush", fail)
        with pytest.raises(LedgerUnavailable, match=r"counts as spent. Nothing may be drawn") as caught:
            scope.reserve(event())
        assert caught.value.recorded is None
    monkeypatch.undo()
    with Ledger.open(path) as last:
        assert units(last.scope().spent()) == 2
        assert last.verify().ok


@pytest.mark.parametrize("handles", [1, 8])
def test_a_failure_that_is_told_once_is_heard_by_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handles: int
) -> None:
    """The system tells every handle once, and lets the next flush of the same handle succeed."""
    monkeypatch.setattr(log, "_HANDLES", handles)
    ledger = Ledger.open(tmp_path / "ledger.db")
    scope = ledger.scope(budget=budget(9))
    first, second = threading.Event(), threading.Event()
    told: list[int] = []

    def fail_once(fd: int) -> None:
        handle = os.lseek(fd, 0, os.SEEK_CUR)  # copies of a handle are at the same place
        if handle in told:
            return second.set()
        told.append(10**9 + len(told))
        os.lseek(fd, told[-1], os.SEEK_SET)
        if not first.is_set():
            first.set()
            second.wait(0.5)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(log, "flush", fail_once)
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(scope.reserve, event())
        assert first.wait(30.0)
        other = pool.submit(scope.reserve, event())
        for outcome in (one, other):
            with pytest.raises(LedgerUnavailable, match="could not be flushed"):
                outcome.result(30.0)
    monkeypatch.undo()
    ledger.close()
    with Ledger.open(tmp_path / "ledger.db") as again:
        assert total(again) == 2


def test_one_flush_does_for_all_who_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_HANDLES", 1)
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        scope = ledger.scope(budget=budget(9))
        flushes, go = [0], threading.Event()

        def slow(fd: int) -> None:
            flushes[0] += 1
            go.wait(30.0)

        monkeypatch.setattr(log, "flush", slow)
        with ThreadPoolExecutor(6) as pool:
            waiting = [pool.submit(scope.reserve, event()) for _ in range(6)]
            made: Any = ledger._store
            while made._log._asked.count < made._log._flushed.count + 6:
                time.sleep(0.01)
            assert not any(told.done() for told in waiting)
            go.set()
            assert len({told.result(30.0).id for told in waiting}) == 6
        assert flushes[0] == 2


class Disk:
    """What of a log is on the disk. A flush that fails gives up what was to be written, and later ones leave it out."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.image, self.seen, self.fails = path, bytearray(), b"", False
        self.again: set[int] = set()
        write = os.write

        def spy(fd: int, data: bytes) -> int:
            if os.path.samestat(os.fstat(fd), path.stat()):
                begin = os.lseek(fd, 0, os.SEEK_CUR)
                self.again |= set(range(begin // 512, (begin + len(data) + 511) // 512))
            return write(fd, data)

        monkeypatch.setattr(os, "write", spy)
        monkeypatch.setattr(log, "flush", self.flush)

    def flush(self, fd: int) -> None:
        now = self.path.read_bytes()
        self.image.extend(bytes(max(len(now) - len(self.image), 0)))
        for i in range(len(now) // 512 + 1):
            block = slice(512 * i, 512 * (i + 1))
            if not self.fails and (i in self.again or now[block] != self.seen[block]):
                self.image[block] = now[block]
        self.seen, self.again = now, set()
        if self.fails:
            raise OSError(errno.EIO, "Input/output error")


@posix
def test_after_a_failed_flush_nothing_is_built_on_a_hole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, image = tmp_path / "ledger.db", tmp_path / "image"
    image.mkdir()
    first = Ledger.open(path)
    for name in ("ledger.db", "ledger.db.head"):
        shutil.copyfile(tmp_path / name, image / name)  # no checkpoint comes before the end
    disk = Disk(tmp_path / "ledger.db-wal", monkeypatch)
    scope = first.scope(budget=budget(20))
    spend(scope, 2)
    disk.fails = True
    with pytest.raises(LedgerUnavailable, match="could not be flushed"):
        scope.reserve(event())
    with pytest.raises(LedgerUnavailable, match="Input/output error"):
        Ledger.open(path)
    disk.fails = False
    with pytest.raises(LedgerUnavailable, match="flushed to its disk before"):
        scope.reserve(event())
    with Ledger.open(path) as again:
        spend(again.scope(), 4)
        (image / "ledger.db-wal").write_bytes(disk.image)  # the power fails
        check_image(image, tmp_path / "after", 7, 6)
    first.close()


def test_what_was_acknowledged_is_in_the_files_as_they_were_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut, played: of the log only what was flushed survives, at any moment."""
    path, image = tmp_path / "ledger.db", tmp_path / "image"
    image.mkdir()
    real = writers.flush
    between: list[Path] = []

    def keep(name: str) -> Callable[[int], None]:
        def flush(fd: int) -> None:
            real(fd)
            shutil.copyfile(tmp_path / name, image / name)
            if (image / "ledger.db").exists():
                between.append(shutil.copytree(image, tmp_path / f"between{len(between)}"))

        return flush

    monkeypatch.setattr(log, "flush", keep("ledger.db-wal"))
    monkeypatch.setattr(head, "flush", keep("ledger.db.head"))
    with Ledger.open(path) as ledger:
        scope = ledger.scope(budget=budget(20))
        shutil.copyfile(path, image / "ledger.db")  # no checkpoint comes before the end
        for i in range(6):
            reservation = scope.reserve(event())
            check_image(image, tmp_path / f"after{i}a", i + 1, i)
            reservation.commit(i)
            check_image(image, tmp_path / f"after{i}b", i + 1, i + 1)
    monkeypatch.undo()
    assert len(between) >= 24
    for folder in between:  # also where the log is on the disk and its head is not yet; the other way round is refused
        with Ledger.open(folder / "ledger.db", create=False) as found:
            assert found.verify().ok


def check_image(image: Path, copy: Path, reserved: int, committed: int) -> None:
    shutil.copytree(image, copy)
    with Ledger.open(copy / "ledger.db", create=False) as ledger:
        assert total(ledger) == reserved
        assert sum(record.kind == "commit" for record in ledger.history()) == committed
        assert ledger.verify().ok


def test_a_file_that_was_removed_or_replaced(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        scope = ledger.scope(budget=budget(9))
        spend(scope)
        for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.db.head"):
            (tmp_path / name).rename(tmp_path / f"moved-{name}")
        with pytest.raises(LedgerUnavailable, match=r"there is no ledger at|removed or replaced"):
            scope.reserve(event())
        with Ledger.open(path) as other:
            other.scope(budget=budget(9))
        for act in (lambda: scope.reserve(event()), scope.spent):
            with pytest.raises(LedgerUnavailable, match="removed or replaced"):
                act()
        ledger._store._disconnect()  # as before a fork
        with pytest.raises(LedgerUnavailable, match="replaced by another ledger"):
            scope.reserve(event())


ELSEWHERE = """
    import os, sys
    from tests.ledger_support import Ledger, spend, total
    ledger = Ledger.open(sys.argv[1])
    spend(ledger.scope(), int(sys.argv[2]))
    if "killed" in sys.argv:
        os._exit(0)
    print(total(ledger), ledger.verify().ok)
    ledger.close()
"""


def test_a_ledger_that_is_opened_twice_keeps_its_locks(tmp_path: Path) -> None:
    """A program that opened the file itself would lose SQLite's locks; then the last of others ends the log."""
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        scope = ledger.scope(budget=budget(10))
        spend(scope, 2)
        with Ledger.open(path) as again:
            assert script(ELSEWHERE, str(path), "3").split() == ["5", "True"]
            spend(scope, 4)
            spend(again.scope())
        assert script(ELSEWHERE, str(path), "0").split() == ["10", "True"]
        with pytest.raises(BudgetExceeded):
            spend(scope)


@posix
@pytest.mark.parametrize("end", ["", "killed"])
def test_a_log_that_others_ended_is_an_error_and_no_loss(tmp_path: Path, end: str) -> None:
    path = tmp_path / "ledger.db"
    ledger, idle = Ledger.open(path), Ledger.open(path)
    scope = ledger.scope(budget=budget(20))
    spend(scope, 2)
    path.read_bytes()  # what nobody should do here: it drops the locks of this process
    assert script(ELSEWHERE, str(path), "3").split() == ["5", "True"]
    for act in (lambda: scope.reserve(event()), scope.spent, lambda: Ledger.open(path), lambda: idle.scope("new")):
        with pytest.raises(LedgerUnavailable, match=r"the write-ahead log of .* was removed or cut short while in use"):
            act()
    script(ELSEWHERE, str(path), "4", end)
    ledger.close()  # and does not end the log that a killed process left
    idle.close()
    assert script(ELSEWHERE, str(path), "1").split() == ["10", "True"]


@posix
def test_a_log_that_is_removed_during_a_commit(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.db")
    ledger.scope(budget=budget(2))
    with pytest.raises(LedgerUnavailable, match="was removed or cut short while in use") as caught:
        ledger._store.transaction(lambda tx: (tmp_path / "ledger.db-wal").unlink())
    assert caught.value.recorded is None
    ledger.close()


@posix
def test_a_connection_is_closed_in_turn_but_not_at_any_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    monkeypatch.setattr(sqlite, "_LEAVING", 0.2)
    ledger = Ledger.open(tmp_path / "ledger.db")
    spend(ledger.scope(budget=budget(2)))
    with open(tmp_path / "ledger.db.lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        begins = time.monotonic()
        ledger.close()
        assert time.monotonic() - begins >= 0.2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger.db", "ledger.db.head", "ledger.db.lock"]


def test_a_database_of_something_else_with_a_log_is_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE customers (name text)")
    connection.close()
    (tmp_path / "empty.db").touch()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(LedgerCorrupt, match="something else"):
        Ledger.open(tmp_path / "other.db")
    with pytest.raises(LedgerUnavailable, match="there is no ledger at"):
        Ledger.open(tmp_path / "empty.db", create=False)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_no_write_ahead_log_no_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stubborn(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            return super().execute("SELECT 'delete'" if "journal_mode" in sql else sql, *values)

    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **kwargs: real(*args, factory=Stubborn, **kwargs))
    with pytest.raises(LedgerUnavailable, match="does not allow a write-ahead log"):
        Ledger.open(tmp_path / "ledger.db")


# ---------------------------------------------------------------- forks


@posix
def test_a_fork_shares_the_budget_and_not_the_connection(place_of_forks: str) -> None:
    out = script(
        """
        import os, sys, threading
        from inbounds.errors import BudgetExceeded, LedgerConflict, LedgerUnavailable
        from tests.ledger_support import Ledger, budget, event, spend, units

        ledger = Ledger.open(sys.argv[1], timeout=30)
        scope = ledger.scope(budget=budget(30))
        memory = Ledger.open()
        fleeting = memory.scope(budget=budget(5))
        spend(scope, 2)
        reservation = scope.reserve(event())
        stop = threading.Event()
        def beside():
            while not stop.is_set():
                try:
                    spend(scope)
                except BudgetExceeded:
                    return
        thread = threading.Thread(target=beside)
        thread.start()
        children = []
        for _ in range(5):
            child = os.fork()
            if child == 0:
                code = 0
                try:
                    spend(scope, 2)
                    for act in (reservation.touch, reservation.void, lambda: reservation.commit(1)):
                        try:
                            act()
                            code = 1
                        except LedgerConflict as problem:
                            code = code or (0 if "belongs to the process" in str(problem) else 2)
                    try:
                        fleeting.reserve(event())
                        code = 3
                    except LedgerUnavailable as problem:
                        code = code or (0 if "a fork of it" in str(problem) else 4)
                except BudgetExceeded:
                    pass
                finally:
                    os._exit(code)
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        stop.set()
        thread.join()
        spend(fleeting)
        reservation.commit("mine")
        try:
            while True:
                spend(scope)
        except BudgetExceeded:
            pass
        print(codes, units(scope.spent()), ledger.verify().ok, len(scope.unfinished()))
        """,
        place_of_forks,
    )
    assert out.strip() == "[0, 0, 0, 0, 0] 30 True 0"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place_of_forks(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    found: Server = request.getfixturevalue("server")
    return found.url()


@posix
def test_a_ledger_that_is_forgotten_at_a_fork_holds_nothing_up(tmp_path: Path) -> None:
    out = script(
        """
        import gc, os, signal, sys
        from inbounds.ledger import sqlite
        from tests.ledger_support import Ledger, budget, spend
        signal.alarm(30)
        gc.disable()
        ledger = Ledger.open(sys.argv[1])
        ledger.scope(budget=budget(2))
        ledger.itself = ledger
        del ledger
        real = sqlite.SqliteStore._disconnect
        def collecting(store):
            real(store)
            gc.collect()  # the collector may run anywhere
        sqlite.SqliteStore._disconnect = collecting
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        with Ledger.open(sys.argv[1]) as again:
            spend(again.scope())
        print("done")
        """,
        str(tmp_path / "ledger.db"),
    )
    assert out.split() == ["done"]


def test_a_forgotten_ledger_is_closed(tmp_path: Path) -> None:
    spend(Ledger.open(tmp_path / "ledger.db").scope(budget=budget(2)))
    gc.collect()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger.db", "ledger.db.head", "ledger.db.lock"]


# ---------------------------------------------------------------- a reservation whose ledger is lost


@on_disk
def test_a_void_that_did_not_reach_the_ledger_lets_nothing_be_touched(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = ledger.scope(budget=budget(2))
    reservation = scope.reserve(event())

    def fail(work: Any, *, write: bool = True) -> Any:
        raise LedgerUnavailable("gone", None)

    with monkeypatch.context() as gone:
        gone.setattr(ledger._store, "transaction", fail)
        with pytest.raises(LedgerUnavailable, match="gone"):
            reservation.void()
    for act in (reservation.touch, lambda: reservation.commit(1)):
        with pytest.raises(LedgerConflict, match="it is voiding"):
            act()
    assert units(scope.spent()) == 1
    reservation.void()
    assert units(scope.spent()) == 0
    assert ledger.verify().ok


@on_disk
@pytest.mark.parametrize("reached", [False, True])
def test_a_commit_may_be_tried_again(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, reached: bool) -> None:
    scope = ledger.scope(budget=budget(2))
    reservation = scope.reserve(event())
    real = ledger._store.transaction

    def fail(work: Any, *, write: bool = True) -> Any:
        if reached:
            real(work)
        raise LedgerUnavailable("gone", None)

    with monkeypatch.context() as gone:
        gone.setattr(ledger._store, "transaction", fail)
        with pytest.raises(LedgerUnavailable, match="gone The budget is spent and whether"):
            reservation.commit([1, 2])
    with pytest.raises(LedgerConflict, match="cannot be voided"):
        reservation.void()
    if reached:
        with pytest.raises(LedgerConflict, match="with another content"):
            reservation.commit([3])
    reservation.commit([1, 2])
    assert reservation.answer == [1, 2]
    assert [record.kind for record in scope.history()] == ["scope", "reserve", "commit"]
    assert ledger.verify().ok


@on_disk
@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError])
def test_a_commit_that_was_interrupted_may_have_been_recorded(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    scope = ledger.scope(budget=budget(2))
    reservation = scope.reserve(event())
    real = ledger._store.transaction

    def interrupt(work: Any, *, write: bool = True) -> Any:
        real(work)
        raise kind

    def fail(work: Any, *, write: bool = True) -> Any:
        raise LedgerUnavailable("gone", False)

    with monkeypatch.context() as gone:
        gone.setattr(ledger._store, "transaction", interrupt)
        with pytest.raises(kind):
            reservation.commit(1)
        gone.setattr(ledger._store, "transaction", fail)
        with pytest.raises(LedgerUnavailable, match="whether the answer is recorded is not known") as caught:
            reservation.commit(1)
    assert caught.value.recorded is None
    reservation.commit(1)
    assert [record.kind for record in scope.history()] == ["scope", "reserve", "commit"]


@on_disk
def test_a_commit_that_was_refused_is_known_not_to_be_recorded(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    reservation = ledger.scope(budget=budget(2)).reserve(event())
    for problem, fate in ((LedgerCorrupt("damaged"), "damaged"), (LedgerUnavailable("gone"), "answer is not recorded")):

        def fail(work: Any, *, write: bool = True, problem: LedgerError = problem) -> Any:
            raise problem

        with monkeypatch.context() as gone:
            gone.setattr(ledger._store, "transaction", fail)
            with pytest.raises(LedgerError, match=fate):
                reservation.commit(1)
    reservation.commit(1)


# ---------------------------------------------------------------- PostgreSQL


@pytest.fixture(scope="module")
def fragile(initdb: str) -> Iterator[Server]:
    """A server that these tests may stop."""
    made = Server(initdb)
    yield made
    made.stop()


@pytest.mark.postgres
def test_a_server_that_never_was_is_an_error_at_once() -> None:
    start = time.monotonic()
    with pytest.raises(LedgerUnavailable, match=r"postgresql://127\.0\.0\.1:1/x cannot be used") as caught:
        Ledger.open("postgresql://someone:secret@127.0.0.1:1/x", timeout=30.0)
    assert time.monotonic() - start < 20.0
    assert "secret" not in str(caught.value)
    with pytest.raises(ib.ParameterError, match="must be a URL"):
        Ledger.open("postgresql://%zz/x?what=ever")


@pytest.mark.parametrize("where", ["me:se/cret@localhost/db", "me:se@cret@127.0.0.1:1/db"])
def test_a_password_that_is_not_encoded_is_not_shown(where: str) -> None:
    with pytest.raises(ib.ParameterError, match="must be a URL") as caught:
        Ledger.open(f"postgresql://{where}")
    assert "cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_name_that_no_host_has() -> None:
    with pytest.raises(ib.ParameterError, match="name a host"):
        Ledger.open(f"postgresql://{'h' * 70}:1/x")


@pytest.mark.postgres
@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_other_encodings_of_a_database(server: Server, encoding: str) -> None:
    import psycopg

    name = f"in_{encoding.lower()}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0")
    where = server.url().partition("?")[0].replace("/postgres", f"/{name}") + "?client_encoding=latin1"
    with Ledger.open(where) as ledger:
        scope = ledger.scope("é", budget=budget(3))
        assert scope.spend(event(), lambda: "€", key="clé") == "€"
        assert scope.spend(event(), lambda: pytest.fail("drawn"), key="clé") == "€"
        if encoding == "LATIN1":
            with pytest.raises(LedgerUnavailable, match="UntranslatableCharacter"):
                scope.reserve(event(), key="€")
        assert units(scope.spent()) == 1
        assert ledger.verify().ok


def test_without_a_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ib.MissingExtra, match=r"inbounds\[ledger\]"):
        Ledger.open("postgresql://127.0.0.1/x")


@pytest.mark.postgres
def test_a_server_that_crashes_between_reserve_and_commit(fragile: Server) -> None:
    with Ledger.open(fragile.url(), timeout=60.0) as ledger:
        scope = ledger.scope(budget=budget(3))
        reservation = scope.reserve(event())
        fragile.crash()
        restart = threading.Timer(0.3, fragile.start)
        restart.start()
        reservation.commit("kept")  # waits for the server
        restart.join()
        fragile.crash()
        fragile.start()
        spend(scope)  # the idle connection was lost
        assert units(scope.spent()) == 2
        assert ledger.verify().ok


@pytest.mark.postgres
def test_a_server_that_stays_away(fragile: Server) -> None:
    with Ledger.open(fragile.url(), timeout=0.3) as ledger:
        scope = ledger.scope(budget=budget(3))
        reservation = scope.reserve(event(), key="k")
        fragile.crash()
        with pytest.raises(LedgerUnavailable, match="The budget is spent and") as caught:
            reservation.commit("kept")
        # Unknown where the crash met a commit under way, which depends on when the server noticed.
        fate = "is not recorded" if caught.value.recorded is False else "whether the answer is recorded is not known"
        assert caught.value.recorded is not True
        assert fate in str(caught.value)
        with pytest.raises(LedgerUnavailable, match="cannot be used"):
            scope.reserve(event())
        fragile.start()
        reservation.commit("kept")
        assert scope.spend(event(), lambda: "new", key="k") == "kept"
        assert units(scope.spent()) == 1
        assert ledger.verify().ok


@pytest.mark.postgres
def test_a_server_that_does_not_flush_is_refused(fragile: Server) -> None:
    fragile.crash()
    fragile.start("-c", "fsync=off")
    with pytest.raises(LedgerUnavailable, match="fsync = off"):
        Ledger.open(fragile.url())
    fragile.crash()
    fragile.start("-c", "synchronous_commit=off")
    with Ledger.open(fragile.url()) as ledger:
        setting = ledger._store.transaction(lambda tx: tx.rows("SHOW synchronous_commit"))
        assert setting == [("on",)]


def break_at_commit(monkeypatch: pytest.MonkeyPatch, ledger: Ledger, before: bool, times: int = 1) -> None:
    """The connection is lost at the next commits: before the server hears of it, or after it has done it."""
    store: Any = ledger._store
    real = postgres._Transaction.commit
    left = [times]

    def commit(tx: Any) -> None:
        if left[0] == 0 or store._connection is None:  # while connecting
            return real(tx)
        left[0] -= 1
        if not before:
            real(tx)
        store._connection.pgconn.finish()
        raise store._driver.OperationalError("the connection is lost")

    monkeypatch.setattr(postgres._Transaction, "commit", commit)


@pytest.mark.postgres
@pytest.mark.parametrize("place", ["postgres"], indirect=True)
@pytest.mark.parametrize("before", [True, False])
def test_a_connection_lost_at_commit_is_no_double_charge(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    data = ledger.scope("data", budget=budget(4))
    scope = ledger.scope("a", budget=budget(3), parent=data)

    def lose(act: Callable[[], Any]) -> Any:
        with monkeypatch.context() as breaking:
            break_at_commit(breaking, ledger, before)
            return act()

    reservation = lose(lambda: scope.reserve(event(), key="k"))
    lose(lambda: reservation.commit("answer"))
    assert lose(lambda: scope.spend(event(), lambda: "other", key="k")) == "answer"
    unwanted = lose(lambda: scope.reserve(event()))
    lose(unwanted.void)
    with pytest.raises(BudgetExceeded):
        lose(lambda: scope.reserve(event(3)))
    lose(lambda: ledger.scope("late", budget=budget(1)))
    assert [record.kind for record in scope.history()] == ["scope", "reserve", "commit", "reserve", "void", "refuse"]
    assert units(scope.spent()) == units(data.spent()) == 1
    assert len(ledger.scopes()) == 3
    assert ledger.verify().ok


@pytest.mark.postgres
@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_a_commit_lost_twice_may_have_been_recorded(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    scope = ledger.scope(budget=budget(4))
    spend(scope)
    with monkeypatch.context() as breaking:
        break_at_commit(breaking, ledger, before=False, times=2)
        with pytest.raises(LedgerUnavailable, match="may have been recorded, and then counts as spent") as caught:
            scope.reserve(event())
    assert caught.value.recorded is None
    assert units(scope.spent()) == 2
    assert ledger.verify().ok


@pytest.mark.postgres
@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_tables_whose_making_was_undone_are_no_ledger(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    def fail(tx: Any) -> None:
        raise psycopg.OperationalError("the server has no room")

    store = postgres.PostgresStore(place)
    with monkeypatch.context() as full:
        full.setattr(postgres._Transaction, "commit", fail)
        with pytest.raises(LedgerUnavailable, match="no room"):
            store.transaction(lambda tx: None)
    Ledger.open(place).close()
    store.transaction(lambda tx: None)
    store.close()


@pytest.mark.postgres
@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_locks_and_full_disks_of_a_server(place: str) -> None:
    with Ledger.open(place, timeout=0.3) as ledger, Ledger.open(place, timeout=30.0) as other:
        scope = ledger.scope(budget=budget(4))

        def hold(tx: Any) -> None:
            tx.lock([2])
            with pytest.raises(LedgerUnavailable, match=r"locked by another session for 0\.3 s"):
                scope.reserve(event())

        other._store.transaction(hold)
        other._store.transaction(
            lambda tx: tx.write(
                "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
                "$$BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END$$"
            )
        )
        other._store.transaction(
            lambda tx: tx.write(
                "CREATE TRIGGER full_disk BEFORE INSERT ON inbounds_record EXECUTE FUNCTION full_disk()"
            )
        )
        with pytest.raises(LedgerUnavailable, match="DiskFull: no space left") as caught:
            scope.reserve(event())
        assert caught.value.recorded is False
        other._store.transaction(lambda tx: tx.write("DROP TRIGGER full_disk ON inbounds_record"))
        spend(scope)
        assert ledger.verify().ok

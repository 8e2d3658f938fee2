"""Spent budget does not come back: logs removed or cut, older copies, files removed while in use, real kills."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

import inbounds as ib
from inbounds.errors import LedgerConflict, LedgerCorrupt, LedgerUnavailable
from inbounds.ledger import Ledger
from tests.ledger_support import budget, event, spend, total

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX only")

PROCESS = """
import os, signal, sys
from tests.ledger_support import Ledger, budget, event, spend
def kill():
    os.kill(os.getpid(), signal.SIGKILL)
ledger = Ledger.open(sys.argv[1])
scope = ledger.scope("data", budget=budget(1000))
"""
SPEND = "spend(scope, int(sys.argv[2]))\n"


def process(path: Path, code: str, *arguments: object) -> int:
    """Run code with a ledger open in a process of its own; its exit status."""
    return subprocess.run(
        [sys.executable, "-c", PROCESS + textwrap.dedent(code), str(path), *map(str, arguments)],
        timeout=120,
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
    ).returncode


def command(*words: object) -> tuple[int, str]:
    """The command line."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "COLUMNS": "4000"}
    line = [sys.executable, "-m", "inbounds", *map(str, words)]
    done = subprocess.run(line, timeout=120, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with three spendings, closed in good order: 2 records of its scope, 6 of them."""
    found = tmp_path / "ledger.db"
    with Ledger.open(found) as ledger:
        spend(ledger.scope("data", budget=budget(1000)), 3)
    return found


@pytest.fixture
def killed(path: Path) -> Path:
    """The same, and five more spendings of a process that was killed: they are in the log."""
    assert process(path, SPEND + "kill()", 5) == -signal.SIGKILL
    assert beside(path, "-wal").stat().st_size > 0
    return path


def beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def is_refused(path: Path, records: int, acknowledged: str) -> None:
    """On opening, by ``verify`` of the command line, and for a spending."""
    with pytest.raises(LedgerCorrupt, match=rf"has {records} records, but {acknowledged}"):
        Ledger.open(path)
    code, said = command("budget", "verify", path, "--json")
    (problem,) = json.loads(said)["problems"]
    assert (code, problem["kind"]) == (1, "rollback")
    assert f"'inbounds budget accept {path} {records}' goes on" in problem["message"]
    assert json.loads(said)["records"] == records


# ---------------------------------------------------------------- after a kill


@posix
def test_nothing_is_missing_after_a_kill(killed: Path) -> None:
    with Ledger.open(killed) as ledger:
        assert total(ledger) == 8
        assert ledger.verify().ok


@posix
def test_a_log_that_was_removed_is_noticed_and_can_be_put_back(killed: Path, tmp_path: Path) -> None:
    beside(killed, "-wal").rename(tmp_path / "aside")
    is_refused(killed, 8, "18 were acknowledged")
    (tmp_path / "aside").rename(beside(killed, "-wal"))
    with Ledger.open(killed) as ledger:
        assert total(ledger) == 8
        assert ledger.verify().ok


@posix
@pytest.mark.parametrize("part", [0.0, 0.05, 0.3, 0.6, 0.99])
@pytest.mark.parametrize("how", ["cut", "damaged"])
def test_a_log_that_lost_its_end_is_noticed(killed: Path, part: float, how: str) -> None:
    log = beside(killed, "-wal")
    content = bytearray(log.read_bytes())
    begin = int(part * len(content))
    if how == "damaged":
        content[begin : begin + 8] = bytes(byte ^ 255 for byte in content[begin : begin + 8])
    else:
        del content[begin:]
    log.write_bytes(content)
    with pytest.raises(LedgerCorrupt, match=r"records, but 18 were acknowledged"):
        Ledger.open(killed)


@posix
def test_an_index_that_was_removed_is_made_again(killed: Path) -> None:
    beside(killed, "-shm").unlink()
    with Ledger.open(killed) as ledger:
        assert total(ledger) == 8
        assert ledger.verify().ok


@posix
def test_removing_log_and_head_gives_nothing_back(killed: Path) -> None:
    for end in ("-wal", ".head"):
        beside(killed, end).unlink()
    is_refused(killed, 8, "the file beside it that says how much was acknowledged is missing or damaged")


@pytest.mark.thinned(3)
@posix
@pytest.mark.parametrize(
    "moment",
    [
        "from inbounds.ledger import log; log.flush = lambda fd: kill()",
        "from inbounds.ledger import head; head.Head.advance = lambda self, mark: kill()",
        "from inbounds.ledger import head; head.flush = lambda fd: kill()",
        "write = os.write; os.write = lambda fd, data: (write(fd, data[:90]), kill())",
        "from inbounds.ledger.log import Log; settle = Log.settle; Log.settle = lambda *a: (settle(*a), kill())",
    ],
    ids=["before the flush", "before the head", "before the head's flush", "in the head", "before it is told"],
)
def test_a_kill_at_any_moment_of_a_spending_locks_nobody_out(path: Path, moment: str) -> None:
    for turn in (1, 2, 3):  # of the two places of the head each is met
        assert process(path, f"spend(scope)\n{moment}\nscope.reserve(event())") == -signal.SIGKILL
        with Ledger.open(path) as ledger:
            assert total(ledger) == 3 + 2 * turn
            assert ledger.verify().ok


@posix
@pytest.mark.parametrize("moment", ["replace", "advance"])
def test_a_kill_while_a_ledger_is_made_locks_nobody_out(tmp_path: Path, moment: str) -> None:
    path = tmp_path / "new.db"
    early = f"""
        import sys, os, signal
        from inbounds.ledger import Ledger, head
        head.Head.{moment} = lambda *a: os.kill(os.getpid(), signal.SIGKILL)
        Ledger.open(sys.argv[1]).scope("data", budget=__import__("inbounds").Budget(epsilon=1))
    """
    line = [sys.executable, "-c", textwrap.dedent(early), str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    assert subprocess.run(line, timeout=60, env=environment, capture_output=True).returncode == -signal.SIGKILL
    assert path.exists()
    assert process(path, SPEND, 2) == 0
    with Ledger.open(path, create=False) as ledger:
        assert total(ledger) == 2
        assert ledger.verify().ok


# ---------------------------------------------------------------- before the first checkpoint

ANCIENT = "from inbounds.ledger.sqlite import SqliteStore; SqliteStore._settle = lambda *a: None"
FIRST = """
    import os, signal, sys
    from inbounds.ledger import Ledger, head, sqlite
    from tests.ledger_support import budget, event, spend
    def kill(*a):
        os.kill(os.getpid(), signal.SIGKILL)
"""


def first(path: Path, code: str) -> int:
    """Run code in a process that has not opened a ledger yet; its exit status."""
    line = [sys.executable, "-c", textwrap.dedent(FIRST) + textwrap.dedent(code), str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    root = Path(__file__).parents[1]
    return subprocess.run(line, timeout=60, env=environment, capture_output=True, cwd=root).returncode


MAKE = """
ledger = Ledger.open(sys.argv[1])
spend(ledger.scope("data", budget=budget(1000)), 3)
kill()
"""


def bare(path: Path) -> bool:
    """Whether the tables are in the log only. To be asked where no ledger of this process has the file open."""
    return path.read_bytes().count(b"inbounds_record") == 0


@posix
@pytest.mark.parametrize("along", [(), ("-shm",), ("-wal",), (".head",), ("-shm", ".head")], ids=str)
def test_a_young_database_without_its_other_files_is_no_fresh_budget(tmp_path: Path, along: tuple[str, ...]) -> None:
    """All its tables were in the log: without that it was an empty file, and opened as a new ledger."""
    path, elsewhere = tmp_path / "young.db", tmp_path / "elsewhere"
    assert first(path, MAKE) == -signal.SIGKILL
    elsewhere.mkdir()
    for end in ("", *along):
        shutil.copy(beside(path, end), elsewhere)
    if ".head" in along:
        lacks = "8 were acknowledged"
    else:
        lacks = "the file beside it that says how much was acknowledged is missing or damaged"
    is_refused(elsewhere / path.name, 8 if "-wal" in along else 0, lacks)
    with Ledger.open(path) as ledger:
        assert total(ledger) == 3


@pytest.mark.thinned(3)
@posix
@pytest.mark.parametrize(
    "moment",
    [
        "head.Head.replace = kill",
        "replace = head.Head.replace; head.Head.replace = lambda *a: (replace(*a), kill())",
        "sqlite.SqliteStore._same_ledger = kill",
        "sqlite.SqliteStore._settle = kill",
        "settle = sqlite.SqliteStore._settle; sqlite.SqliteStore._settle = lambda *a: (settle(*a), kill())",
        "begin = sqlite.SqliteStore._begin; sqlite.SqliteStore._begin = lambda *a: (begin(*a), kill())",
    ],
    ids=["before the head", "before the commit", "after it", "before the checkpoint", "after it", "in use"],
)
def test_a_kill_while_tables_are_made_leaves_a_place_to_begin_at(tmp_path: Path, moment: str) -> None:
    path = tmp_path / "young.db"
    assert first(path, f"{moment}\nLedger.open(sys.argv[1])") == -signal.SIGKILL
    assert first(path, "found = Ledger.open(sys.argv[1])\nkill()") == -9
    assert not bare(path), "who only reads has put the tables into the file, too"
    assert first(path, MAKE) == -signal.SIGKILL
    with Ledger.open(path) as ledger:
        assert total(ledger) == 3
        assert ledger.verify().ok


@posix
def test_a_power_cut_in_the_first_checkpoint_leaves_it_to_be_made_again(tmp_path: Path) -> None:
    """Pages may reach the disk in any order: the file has its size, and no tables. The log is whole, flushed before."""
    path = tmp_path / "young.db"
    assert first(path, "sqlite.SqliteStore._settle = kill\nLedger.open(sys.argv[1])") == -signal.SIGKILL
    os.truncate(path, 45056)
    assert first(path, "found = Ledger.open(sys.argv[1])\nkill()") == -signal.SIGKILL
    assert not bare(path)


@posix
def test_a_ledger_that_spent_with_all_tables_in_its_log_gets_them_into_the_file(tmp_path: Path) -> None:
    """Made by code that did not see to that."""
    path = tmp_path / "young.db"
    assert first(path, f"{ANCIENT}\n{MAKE}") == -signal.SIGKILL
    assert bare(path)
    assert first(path, "found = Ledger.open(sys.argv[1])\nkill()") == -signal.SIGKILL
    assert not bare(path)
    for end in ("-wal", ".head"):
        beside(path, end).unlink()
    with pytest.raises(LedgerCorrupt, match="is missing or damaged"):
        Ledger.open(path)


@posix
def test_a_ledger_of_version_0_1_with_all_tables_in_its_log_gets_a_head(tmp_path: Path) -> None:
    path = tmp_path / "young.db"
    older = """
        ledger = Ledger.open(sys.argv[1])
        spend(ledger.scope("data", budget=budget(1000)), 3)
        ledger._store.transaction(lambda tx: tx.write("UPDATE inbounds_meta SET value = '2' WHERE name = 'schema'"))
        kill()
    """
    assert first(path, ANCIENT + textwrap.dedent(older)) == -signal.SIGKILL
    beside(path, ".head").unlink()
    assert bare(path)
    assert first(path, "sqlite.SqliteStore._same_ledger = kill\nLedger.open(sys.argv[1])") == -signal.SIGKILL
    assert bare(path)
    assert first(path, "found = Ledger.open(sys.argv[1])\nassert found.verify().ok\nkill()") == -signal.SIGKILL
    assert not bare(path)
    beside(path, ".head").unlink()
    with pytest.raises(LedgerCorrupt, match="has 8 records, but the file beside it"):
        Ledger.open(path)


def test_who_reads_an_older_state_holds_a_new_ledger_up_and_no_other(path: Path, tmp_path: Path) -> None:
    young = tmp_path / "young.db"
    stranger = sqlite3.connect(young, isolation_level=None)
    stranger.execute("PRAGMA journal_mode = WAL")
    stranger.execute("BEGIN")
    assert stranger.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    begins = time.monotonic()
    with pytest.raises(LedgerUnavailable, match=r"locked by another process for 0\.3 s"):
        Ledger.open(young, timeout=0.3)
    assert time.monotonic() - begins < 20
    stranger.execute("ROLLBACK")
    with Ledger.open(young, timeout=0.3) as ledger:
        spend(ledger.scope("data", budget=budget(1000)))
        stranger.execute("BEGIN")
        stranger.execute("SELECT count(*) FROM inbounds_record").fetchone()
        spend(ledger.scope("data"))
        with Ledger.open(young, timeout=0.3) as again:
            assert total(again) == 2
    stranger.close()


def test_a_checkpoint_that_fails_acknowledges_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            if "wal_checkpoint" in sql:
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(sql, *values)

    real = sqlite3.connect
    with monkeypatch.context() as broken:
        broken.setattr(sqlite3, "connect", lambda *args, **kwargs: real(*args, factory=Full, **kwargs))
        with pytest.raises(LedgerUnavailable, match="disk is full"):
            Ledger.open(tmp_path / "young.db")
    with Ledger.open(tmp_path / "young.db", create=False) as ledger:
        spend(ledger.scope("data", budget=budget(1000)))
        assert ledger.verify().ok


def test_the_head_of_a_fresh_ledger_does_not_fit_an_older_database(path: Path, tmp_path: Path) -> None:
    """It tells of no records, and so it was not compared."""
    Ledger.open(tmp_path / "fresh.db").close()
    shutil.copy(beside(tmp_path / "fresh.db", ".head"), beside(path, ".head"))
    is_refused(path, 8, "another one was here, of which 0 records were acknowledged")
    with Ledger.open(tmp_path / "fresh.db") as fresh:
        assert fresh.verify().ok


# ---------------------------------------------------------------- older copies


def test_an_older_copy_beside_a_newer_head_is_noticed(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "older")
    assert process(path, SPEND, 5) == 0
    shutil.copy(tmp_path / "older", path)
    is_refused(path, 8, "18 were acknowledged")


def test_an_older_copy_that_was_spent_from_elsewhere_is_noticed(path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for file in (path, beside(path, ".head")):
        shutil.copy(file, elsewhere)
    assert process(path, SPEND, 2) == 0
    assert process(elsewhere / path.name, SPEND, 4) == 0
    shutil.copy(elsewhere / path.name, path)
    with pytest.raises(LedgerCorrupt, match="has 16 records, but number 12 is not the one that was acknowledged"):
        Ledger.open(path)


@posix
def test_an_older_copy_under_a_newer_log_is_noticed(tmp_path: Path) -> None:
    """The log has the pages that changed since it was begun; what others spent before that would be given back."""
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        for name in ("early", *map(str, range(60)), "data"):
            scope = ledger.scope(name, budget=budget(1000))
        spend(scope, 30)
    shutil.copy(path, tmp_path / "older")
    with Ledger.open(path) as ledger:
        spend(ledger.scope("early"), 2)
    assert process(path, SPEND + "kill()", 5) == -signal.SIGKILL
    shutil.copy(tmp_path / "older", path)
    with pytest.raises(LedgerCorrupt, match=r"has 198 records, but its scopes count 194|acknowledged|malformed"):
        Ledger.open(path)


def test_scopes_that_do_not_count_all_records_are_noticed_on_opening(path: Path) -> None:
    """What is left of such a mixture where no page contradicts another."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE inbounds_scope SET seq = 3, used = '[1000000]' WHERE id = 2")
    connection.close()
    with pytest.raises(LedgerCorrupt, match="has 8 records, but its scopes count 4"):
        Ledger.open(path)


def test_a_ledger_of_another_name_is_no_substitute(path: Path, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "fresh.db") as fresh:
        fresh.scope("data", budget=budget(1000))
    shutil.copy(tmp_path / "fresh.db", path)
    is_refused(path, 2, "another one was here, of which 8 records were acknowledged")


@pytest.mark.parametrize("how", ["removed", "emptied"])
def test_a_database_that_is_gone_is_no_fresh_budget(path: Path, how: str) -> None:
    if how == "removed":
        path.unlink()
    else:
        os.truncate(path, 0)
    with pytest.raises(LedgerCorrupt, match=r"has 0 records, but .*8 (records )?were acknowledged"):
        Ledger.open(path)
    assert path.exists() == (how == "emptied")
    with Ledger.open(path, accept=0) as ledger:
        assert len(ledger.verify().gaps) == 1


def test_a_ledger_moved_with_its_head_goes_on_and_without_it_asks(path: Path, tmp_path: Path) -> None:
    machine = tmp_path / "another machine"
    machine.mkdir()
    moved = machine / "ledger.db"
    shutil.copy(path, moved)
    with pytest.raises(LedgerCorrupt, match=r"has 8 records, but the file beside it .* is missing or damaged"):
        Ledger.open(moved)
    shutil.copy(beside(path, ".head"), machine)
    with Ledger.open(moved) as ledger:
        spend(ledger.scope("data"))
        assert ledger.verify().gaps == ()


def test_maintenance_by_sqlite_keeps_the_count(path: Path, tmp_path: Path) -> None:
    with Ledger.open(path) as ledger:
        spend(ledger.scope("other", budget=budget(1000)), 40)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute(f"VACUUM INTO '{tmp_path / 'backup.db'}'")
    connection.close()
    shutil.copy(beside(path, ".head"), tmp_path / "backup.db.head")
    for file in (path, tmp_path / "backup.db"):
        with Ledger.open(file) as ledger:
            spend(ledger.scope("other"), 2)
            assert ledger.verify().ok


# ---------------------------------------------------------------- while it is in use


@posix
@pytest.mark.parametrize("end", ["-shm", "-wal", ".head"])
def test_a_file_removed_while_in_use_stops_spending(path: Path, end: str) -> None:
    with Ledger.open(path) as ledger:
        scope = ledger.scope("data")
        spend(scope)
        beside(path, end).unlink()
        process(path, SPEND + "kill()", 2)  # which spends beside it, or is refused
        with pytest.raises(LedgerUnavailable, match=r"removed or (cut short|replaced) while in use"):
            scope.reserve(event())


@posix
def test_a_log_cut_short_while_in_use_stops_spending(path: Path) -> None:
    code = """
        spend(scope, 2)
        os.truncate(sys.argv[1] + "-wal", 0)
        try:
            scope.reserve(event())
        except OSError as problem:
            os._exit(33 if "removed or cut short while in use" in str(problem) else 34)
    """
    assert process(path, code) == 33
    is_refused(path, 8, "12 were acknowledged")


@posix
def test_a_process_that_does_not_see_the_others_does_not_write_over_them(path: Path) -> None:
    """As on a network share, where memory is not shared: each has an index of its own."""
    code = """
        import subprocess
        from inbounds.ledger.log import Log
        Log.in_place = True  # nobody looks at the files
        spend(scope)
        os.unlink(sys.argv[1] + "-shm")
        subprocess.run([sys.executable, "-c", sys.argv[2], sys.argv[1], "4"])
        try:
            scope.reserve(event())
        except ValueError as problem:
            os._exit(33 if "has 10 records, but 18 were acknowledged" in str(problem) else 34)
    """
    assert process(path, code, textwrap.dedent(PROCESS + SPEND + "kill()")) == 33
    with Ledger.open(path) as ledger:
        assert total(ledger) == 8
        assert ledger.verify().ok


@posix
def test_the_queue_may_be_removed_while_in_use(path: Path) -> None:
    """Its place is taken by a new one; SQLite itself lets one writer in at a time."""
    with Ledger.open(path) as ledger:
        scope = ledger.scope("data")
        spend(scope)
        beside(path, ".lock").unlink()
        assert process(path, SPEND, 4) == 0
        spend(scope, 2)
        assert total(ledger) == 10
        assert ledger.verify().ok


# ---------------------------------------------------------------- going on


def test_what_is_accepted_is_recorded_and_told_for_ever(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "older")
    assert process(path, SPEND, 5) == 0
    shutil.copy(tmp_path / "older", path)
    with pytest.raises(LedgerCorrupt) as caught:
        Ledger.open(path, accept=7)
    assert "accept must be how many records there are, 8; got 7." in str(caught.value)
    assert (type(caught.value).__name__, getattr(caught.value, "records", None)) == ("LedgerRolledBack", 8)
    assert command("budget", "show", path)[0] == 5
    code, said = command("budget", "accept", path, "8")
    assert (code, "with 8 records, although 18 were acknowledged" in said) == (0, True)
    with pytest.raises(LedgerConflict, match="lacks nothing"):
        Ledger.open(path, accept=9)
    with Ledger.open(path) as ledger:
        spend(ledger.scope("data"), 2)
        found = ledger.verify()
        assert found.ok
        (gap,) = found.gaps
        assert gap in str(found)
    code, said = command("budget", "verify", path)
    assert (code, gap in said) == (0, True)
    shutil.copy(tmp_path / "older", path)  # and once more
    with pytest.raises(LedgerCorrupt, match="has 8 records, but 13 were acknowledged"):
        Ledger.open(path)


@posix
@pytest.mark.parametrize("moment", ["log.Log.renew", "head.Head.replace"])
def test_a_kill_while_it_is_accepted_hides_no_gap(path: Path, tmp_path: Path, moment: str) -> None:
    shutil.copy(path, tmp_path / "older")
    assert process(path, SPEND, 5) == 0
    shutil.copy(tmp_path / "older", path)
    stopped = f"""
        import os, signal, sys
        from inbounds.ledger import Ledger, head, log
        real, calls = {moment}, []
        def kill(*a):
            calls.append(a)
            if "replace" in {moment!r} or len(calls) == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*a)
        {moment} = kill
        Ledger.open(sys.argv[1], accept=8)
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    line = [sys.executable, "-c", textwrap.dedent(stopped), str(path)]
    assert subprocess.run(line, timeout=60, env=environment, capture_output=True).returncode == -signal.SIGKILL
    with pytest.raises(LedgerCorrupt, match="has 9 records, but 18 were acknowledged"):
        Ledger.open(path)
    with Ledger.open(path, accept=9) as ledger:
        assert len(ledger.verify().gaps) == 2


@pytest.mark.parametrize("number", [True, -1, 1.0, "8"])
def test_only_a_number_of_records_is_accepted(path: Path, number: object) -> None:
    with pytest.raises(ib.ParameterError, match="accept must be None or a whole number"):
        Ledger.open(path, accept=number)  # type: ignore[arg-type]
    with pytest.raises(ib.ParameterError, match="for files only"):
        Ledger.open("postgresql://127.0.0.1:1/x", accept=8)


def test_a_ledger_of_version_0_1_gets_a_head(path: Path) -> None:
    """It had none, and its schema was version 2."""
    beside(path, ".head").unlink()
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE inbounds_meta SET value = '2' WHERE name = 'schema'")
    connection.close()
    with Ledger.open(path) as ledger:
        spend(ledger.scope("data"))
        assert ledger.verify().ok
    beside(path, ".head").unlink()
    with pytest.raises(LedgerCorrupt, match="is missing or damaged"):
        Ledger.open(path)

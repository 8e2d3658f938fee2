"""Stopped between reserving and committing, by the keyboard or a signal: it counts as spent, and the error says so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inbounds.ledger import Ledger, Scope
from tests.ledger_support import budget, event, on_disk, total, units

pytest_plugins = ["tests.ledger_fixtures"]

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX only")

NOTE = "Its price is spent nevertheless: epsilon 0.001 in the scope 'data'"

SPENDER = """
import signal, sys, time
from tests.ledger_support import Ledger, budget, event
def draw():
    print("drawing", flush=True)
    time.sleep(60)
scope = Ledger.open(sys.argv[1]).scope("data", budget=budget(9))
"""


def stopped(number: int, code: str, *arguments: object) -> tuple[int, str, str]:
    """Run code in a process of its own and send it a signal once it says that it draws: exit status and output."""
    running = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "COLUMNS": "4000"},
    )
    assert running.stdout is not None
    while (line := running.stdout.readline()) and "drawing" not in line:
        pass
    running.send_signal(number)
    out, err = running.communicate(timeout=60)
    return running.returncode, out, err


def one_is_spent(path: Path) -> None:
    with Ledger.open(path) as ledger:
        assert total(ledger) == 1
        assert len(ledger.scopes()[0].unfinished()) == 1
        assert ledger.verify().ok


# ---------------------------------------------------------------- in Python


@posix
def test_sigterm_ends_python_at_once_and_what_was_reserved_is_spent(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    assert stopped(signal.SIGTERM, f"{SPENDER}\nscope.spend(event(), draw)", path)[0] == -signal.SIGTERM
    one_is_spent(path)


@posix
@pytest.mark.parametrize(
    "code",
    ["scope.spend(event(), draw)", "with scope.spending(event()) as r:\n    draw()"],
    ids=["spend", "spending"],
)
def test_ctrl_c_says_what_is_spent(tmp_path: Path, code: str) -> None:
    path = tmp_path / "ledger.db"
    _, _, err = stopped(signal.SIGINT, f"{SPENDER}\n{code}", path)
    assert "KeyboardInterrupt" in err
    assert f"{NOTE}." in err
    one_is_spent(path)


ENDLESS = """
import signal, sys
import pyarrow as pa
import inbounds as ib
from inbounds.tables.readers.frames import Arrow
def endless(self, columns):
    print("drawing", flush=True)
    while True:
        yield from self._table.select(list(columns)).to_batches()
data = ib.dataset(pa.table({"u": range(1000)}), unit="u", budget=ib.Budget(epsilon=9))
Arrow.batches = endless
"""


@posix
@pytest.mark.parametrize("way", ["Ctrl-C", "SIGTERM", "a copy that is kept"])
def test_an_interruption_while_a_table_is_asked_is_none_of_the_engine(way: str) -> None:
    """DuckDB makes an error of its own of what a handler raises in it, which a program would take for one of data."""
    code = ENDLESS + "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
    code += "Arrow.once = True\n" if way == "a copy that is kept" else ""
    code += "try:\n    data.count_units(epsilon=2)\nexcept ib.InboundsError:\n    print('wrong')"
    status, out, err = stopped(signal.SIGTERM if way == "SIGTERM" else signal.SIGINT, code)
    assert "wrong" not in out
    assert status == 7 if way == "SIGTERM" else "KeyboardInterrupt" in err
    assert "Its price is spent nevertheless" in err or way == "SIGTERM"


@posix
def test_a_program_that_exits_on_sigterm_is_told_too(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    code = """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
        try:
            scope.spend(event(), draw)
        except SystemExit as stop:
            print(*stop.__notes__)
            raise
    """
    status, out, _ = stopped(signal.SIGTERM, SPENDER + textwrap.dedent(code), path)
    assert (status, out.strip()) == (7, f"{NOTE}.")
    one_is_spent(path)


def interrupted(act: Callable[[], Any]) -> tuple[str, ...]:
    """The notes on the interruption that comes out of it."""
    with pytest.raises(KeyboardInterrupt) as caught:
        act()
    return tuple(getattr(caught.value, "__notes__", ()))


def stop() -> Any:
    raise KeyboardInterrupt


@pytest.fixture
def scope(ledger: Ledger) -> Scope:
    return ledger.scope("data", budget=budget(9))


@on_disk
@pytest.mark.parametrize("recorded", [False, True])
def test_an_interruption_while_reserving_may_have_been_recorded(
    scope: Scope, monkeypatch: pytest.MonkeyPatch, recorded: bool
) -> None:
    store = scope._ledger._store
    real = store.transaction

    def stopping(work: Any, *, write: bool = True) -> Any:
        if recorded:
            real(work, write=write)
        raise KeyboardInterrupt

    for act in (lambda: scope.reserve(event()), lambda: scope.spend(event(), lambda: pytest.fail("drawn"))):
        with monkeypatch.context() as patched:
            patched.setattr(store, "transaction", stopping)
            notes = interrupted(act)
        assert notes == ("The reservation may have been recorded, and then counts as spent. Nothing may be drawn.",)
    assert units(scope.spent()) == (2 if recorded else 0)


@on_disk
@pytest.mark.parametrize("recorded", [False, True])
def test_an_interruption_while_committing_says_what_is_spent(
    scope: Scope, monkeypatch: pytest.MonkeyPatch, recorded: bool
) -> None:
    store = scope._ledger._store
    real = store.transaction

    def stopping(work: Any, *, write: bool = True) -> Any:
        if recorded:
            real(work, write=write)
        raise KeyboardInterrupt

    reservation = scope.reserve(event())
    with monkeypatch.context() as patched:
        patched.setattr(store, "transaction", stopping)
        assert interrupted(lambda: reservation.commit(1)) == (f"{NOTE}.",)
    with monkeypatch.context() as patched:
        assert interrupted(lambda: scope.spend(event(), lambda: patched.setattr(store, "transaction", stopping))) == (
            f"{NOTE}.",
        )
    reservation.commit(1)
    assert units(scope.spent()) == 2
    assert scope._ledger.verify().ok


@on_disk
def test_an_interruption_after_the_answer_says_that_it_is_recorded(scope: Scope) -> None:
    def asked(how: str) -> None:
        with scope.spending(event(), key=how) as reservation:
            if how == "committed":
                reservation.commit(1)
            elif how == "voided":
                reservation.void()
            stop()

    assert interrupted(lambda: asked("committed")) == (f"{NOTE}; its answer is recorded.",)
    assert interrupted(lambda: asked("committed again"))[0] == f"{NOTE}."
    assert interrupted(lambda: asked("voided")) == ()
    scope.spend(event(), lambda: 2, key="old")
    assert interrupted(lambda: asked("old")) == (), "a replayed answer costs nothing"
    assert units(scope.spent()) == 3


# ---------------------------------------------------------------- the command line

ASKED = "--interval 0 120 --sensitivity 0.5 --epsilon 0.3 --ledger budget.db --scope data"
COMMAND = """
import os, sys, time
os.chdir(sys.argv.pop(1))
from inbounds.cli import main, output, release
def draw(self):
    print("drawing", flush=True)
    time.sleep(60)
{patch}
main()
"""


@posix
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("as_json", [False, True])
def test_a_command_that_is_stopped_says_what_is_spent(tmp_path: Path, number: int, status: int, as_json: bool) -> None:
    (tmp_path / "true.txt").write_text("41.3")
    with Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.scope("data", budget=budget(1000))
    words = ["release", "laplace", *ASKED.split(), "--from", "true.txt", *(["--json"] if as_json else [])]

    paying = COMMAND.format(patch="release._Draw.__call__ = draw")
    code, out, err = stopped(number, paying, tmp_path, *words)
    assert code == 6, err
    error = json.loads(out)["error"] if as_json else {"message": err}
    assert "Its price is spent nevertheless: epsilon 0.3 in the scope 'data'." in error["message"]
    assert error.get("spent", True) is True
    assert ("SIGTERM" in error["message"]) == (number == signal.SIGTERM)

    before = COMMAND.format(patch="output.working = draw")
    code, out, err = stopped(number, before, tmp_path, *words)
    assert code == status
    assert "spent" not in out + err
    with Ledger.open(tmp_path / "budget.db") as ledger:
        assert total(ledger) == 300


# ---------------------------------------------------------------- threads and forks


def runs(code: str, *arguments: object) -> None:
    """Run code in a process of its own, to a good end."""
    line = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(line, timeout=300, cwd=Path(__file__).parents[1], env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


@posix
def test_threads_and_forks_spend_from_one_budget(tmp_path: Path) -> None:
    """Threads that spend all the time, forks out of their midst, and children that spend on in threads of their own."""
    code = """
        import os, sys, threading
        from inbounds.errors import BudgetExceeded
        from tests.ledger_support import Ledger, budget, spend

        scope = Ledger.open(sys.argv[1], timeout=60).scope("data", budget=budget(400))

        def work():
            try:
                while True:
                    spend(scope)
            except BudgetExceeded:
                pass

        def threads():
            made = [threading.Thread(target=work) for _ in range(4)]
            for thread in made:
                thread.start()
            return made

        mine, children = threads(), []
        for _ in range(4):
            child = os.fork()
            if child == 0:
                for thread in threads():
                    thread.join()
                os._exit(0)
            children.append(child)
        assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
        for thread in mine:
            thread.join()
    """
    runs(code, tmp_path / "ledger.db")
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert total(ledger) == 400
        assert ledger.scope("data").unfinished() == ()
        assert ledger.verify().ok


@posix
def test_a_child_forked_while_drawing_holds_no_file_and_cannot_answer(tmp_path: Path) -> None:
    code = """
        import os, sys
        from inbounds.errors import LedgerConflict
        from tests.ledger_support import Ledger, budget, event, spend

        def held():
            for fd in range(3, 256):
                try:
                    found = os.fstat(fd)
                except OSError:
                    continue
                if any(os.path.samestat(found, os.stat(file)) for file in os.scandir(os.path.dirname(sys.argv[1]))):
                    return True
            return False

        scope = Ledger.open(sys.argv[1]).scope("data", budget=budget(9))
        reservation = scope.reserve(event())
        assert held()
        reservation.touch()
        child = os.fork()
        if child == 0:
            assert not held()
            try:
                reservation.commit("the child's")
            except LedgerConflict:
                spend(scope)
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        reservation.commit("mine")
    """
    runs(code, tmp_path / "ledger.db")
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert total(ledger) == 2
        answers = [record.content["answer"] for record in ledger.history() if record.kind == "commit"]
        assert answers == [1.5, "mine"]
        assert ledger.verify().ok

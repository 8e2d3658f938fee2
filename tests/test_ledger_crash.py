"""Workers killed at any moment, servers crashed, many processes: exactly the limit is spent, nothing told is lost."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from inbounds.ledger import Ledger
from tests.ledger_support import budget, on_disk, spender, units
from tests.postgres import Server

pytest_plugins = ["tests.ledger_fixtures"]

PATH = ("data", "user")


class Workers:
    """Processes that spend from one ledger; each writes what it was told to a file of its own."""

    def __init__(self, place: str, folder: Path, count: int, paths: list[tuple[str, ...]]) -> None:
        methods = multiprocessing.get_all_start_methods()
        self._context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if "forkserver" in methods:
            self._context.set_forkserver_preload(["tests.ledger_support", "inbounds.ledger.sqlite", "psycopg"])
        self._place, self._folder, self._paths = place, folder, paths
        self._started = 0
        self.running: list[BaseProcess] = [self._start() for _ in range(count)]

    def _start(self) -> BaseProcess:
        path = self._paths[self._started % len(self._paths)]
        told = str(self._folder / f"told-{self._started}")
        self._started += 1
        process: BaseProcess = self._context.Process(  # type: ignore[attr-defined]
            target=spender, args=(self._place, path, told, str(self._folder / "finish"))
        )
        process.start()
        return process

    def kill(self, which: int) -> bool:
        """kill -9, by its id, and a new one in its place."""
        victim = self.running[which]
        alive = victim.is_alive()
        if alive:
            assert victim.pid is not None
            os.kill(victim.pid, signal.SIGKILL)
        victim.join(60)
        self.running[which] = self._start()
        return alive

    def finish(self, seconds: float) -> None:
        """Let them spend what is left."""
        (self._folder / "finish").touch()
        end = time.monotonic() + seconds
        for process in self.running:
            process.join(max(1.0, end - time.monotonic()))
            assert process.exitcode == 0

    def told(self) -> tuple[set[str], dict[str, str], int]:
        """(reservations, answers, how many were told that there is no more)."""
        reserved, committed, done = set(), {}, 0
        for file in self._folder.glob("told-*"):
            for line in file.read_text().splitlines():
                word, *rest = line.split()
                if word == "reserved":
                    reserved.add(rest[0])
                elif word == "committed":
                    committed[rest[0]] = rest[1]
                else:
                    done += 1
        return reserved, committed, done


def check(ledger: Ledger, workers: Workers, limit: int) -> None:
    """Exactly the limit is spent, all that was told is there, and everything adds up."""
    reserved, committed, done = workers.told()
    assert done >= len(workers.running)
    found = ledger.verify()
    assert found.ok, str(found)
    data = ledger.scope("data")
    assert units(data.spent()) == limit
    assert units(data.remaining()) == 0
    kinds: Counter[str] = Counter()
    answers, reservations = {}, set()
    for scope in ledger.scopes()[1:]:
        for record in scope.history():
            kinds[record.kind] += 1
            if record.kind == "commit":
                answers[record.reservation] = record.content["answer"]
            elif record.kind == "reserve":
                reservations.add(record.reservation)
    assert kinds["reserve"] == limit
    assert kinds["void"] == 0
    assert reserved <= reservations, "an acknowledged reservation is missing"
    assert committed.items() <= answers.items(), "an acknowledged answer is missing"
    assert len(data.unfinished()) == limit - len(answers)


def crash(place: str, folder: Path, limit: int, kills: int, workers: int = 4, server: Server | None = None) -> int:
    """Kill workers while they spend, and the server now and then; returns the number of crashes of the server."""
    with Ledger.open(place, timeout=60.0) as ledger:
        data = ledger.scope("data", budget=budget(limit))
        ledger.scope("user", budget=budget(2 * limit), parent=data)
    choose = random.Random(kills)
    crew = Workers(place, folder, workers, [PATH])
    killed = crashes = 0
    while killed < kills:
        time.sleep(choose.uniform(0.01, 0.08))
        killed += crew.kill(choose.randrange(workers))
        if server is not None and killed >= (crashes + 1) * kills // 6:
            server.crash()
            time.sleep(choose.uniform(0.0, 0.5))
            server.start()
            crashes += 1
    crew.finish(400.0)
    with Ledger.open(place, timeout=60.0, create=False) as ledger:
        check(ledger, crew, limit)
    return crashes


@on_disk
def test_killed_workers(place: str, tmp_path: Path) -> None:
    crash(place, tmp_path, limit=600, kills=12)


@pytest.mark.long
@on_disk
def test_many_killed_workers(place: str, tmp_path: Path) -> None:
    crash(place, tmp_path, limit=8000, kills=120, workers=6)


@pytest.mark.long
@pytest.mark.postgres
def test_killed_workers_and_a_crashing_server(initdb: str, tmp_path: Path) -> None:
    server = Server(initdb)
    try:
        assert crash(server.url(), tmp_path, limit=4000, kills=60, server=server) >= 5
    finally:
        server.stop()


@on_disk
def test_sixteen_processes_share_a_budget(place: str, tmp_path: Path) -> None:
    with Ledger.open(place, timeout=60.0) as ledger:
        data = ledger.scope("data", budget=budget(320))
        paths = [(*data.path, f"user {i}") for i in range(4)]
        for path in paths:
            ledger.scope(path, budget=budget(300))
    (tmp_path / "finish").touch()
    crew = Workers(place, tmp_path, 16, paths)
    crew.finish(200.0)
    with Ledger.open(place, timeout=60.0) as ledger:
        check(ledger, crew, 320)
        assert ledger.scope("data").unfinished() == ()

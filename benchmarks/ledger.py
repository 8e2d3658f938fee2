"""How many spendings a second the ledger takes, how long one may wait, and who overspends.

A spending is reserve and commit, each on disk before it returns, hash chain included.
``BENCH_QUICK=1`` in the environment shortens it, for a trial; the tables then go to ``build/benchmarks``.
"""

from __future__ import annotations

import multiprocessing
import secrets
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import inbounds as ib
from benchmarks import peers
from benchmarks.report import QUICK, duration, machine, progress, table, write
from inbounds.accounting import Budget
from inbounds.errors import BudgetExceeded
from inbounds.ledger import Ledger
from tests.postgres import Server, find_initdb

SECONDS = 1.0 if QUICK else 8.0  # each row
PROCESSES = (1, 4, 16)
SQLITE, POSTGRES = "SQLite", "PostgreSQL"
PURE, FILTER = "ε", "(ε, δ)"
BUDGETS = {PURE: Budget(epsilon=1e6), FILTER: Budget(epsilon=1e3, delta=1e-6)}
RATE_AIM, WAIT_AIM = 1000.0, 0.25  # spendings a second and the longest wait, SQLite, 16 processes

LIMIT = 500  # spendings that a budget allows, where overspending is tried
ROUNDS = 2 if QUICK else 20


def event() -> Any:
    """A release of a truncated Laplace mechanism; its price is computed once and kept."""
    return ib.Laplace(ib.Interval(0, 100), sensitivity=1, scale=1e4).event()


def main() -> list[str]:
    """Measure everything and write the tables."""
    with tempfile.TemporaryDirectory() as folder:
        speed = measure_speed(Path(folder))
        overspending = measure_overspending(Path(folder))
    data = {"machine": machine(), "speed": speed, "overspending": overspending}
    return write("ledger", render(data), data)


def processes_that_are_ready() -> Any:
    """New processes come from one that has imported everything, where the system can do that."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.ledger", "inbounds.ledger.sqlite", "inbounds.ledger.postgres"])
    return context


def new_file(folder: Path) -> str:
    return str(folder / f"{secrets.token_hex(8)}.db")


# ---------------------------------------------------------------- speed


def measure_speed(folder: Path) -> list[dict[str, Any]]:
    initdb = find_initdb()
    server = Server(initdb) if initdb is not None else None
    places: dict[str, Callable[[], str]] = {SQLITE: lambda: new_file(folder)}
    if server is not None:
        places[POSTGRES] = server.url
    else:
        progress("PostgreSQL's initdb was not found: its rows are left out")
    rows = []
    try:
        for store, place in places.items():
            for budget in BUDGETS:
                for count in PROCESSES:
                    rows.append(spend_together(store, place(), budget, count, shared=True))
            rows.append(spend_together(store, place(), PURE, PROCESSES[-1], shared=False))
    finally:
        if server is not None:
            server.stop()
    return rows


def spend_together(store: str, place: str, budget: str, count: int, *, shared: bool) -> dict[str, Any]:
    """Processes that spend as fast as they can, from one budget or from one each."""
    with Ledger.open(place) as ledger:
        names = [f"budget {0 if shared else i}" for i in range(count)]
        for name in set(names):
            ledger.scope(name, budget=BUDGETS[budget])
        context = processes_that_are_ready()
        ready, told = context.Barrier(count), context.Queue()
        processes = [context.Process(target=spender, args=(place, name, ready, told)) for name in names]
        for process in processes:
            process.start()
        waits = sorted(wait for _ in processes for wait in told.get(timeout=300.0))
        for process in processes:
            process.join()
        counted = sum(record.kind == "commit" for record in ledger.history())
        found = ledger.verify()
    if not found.ok or counted != len(waits) + count:  # one spending each to warm up
        raise RuntimeError(f"{store}: {counted} answers recorded of {len(waits) + count}; {found}")
    row = {
        "store": store,
        "budget": budget,
        "shared": shared,
        "processes": count,
        "rate": len(waits) / SECONDS,
        "median": waits[len(waits) // 2],
        "p99": waits[int(0.99 * len(waits))],
        "worst": waits[-1],
    }
    progress(f"{store}, {budget}, {count} processes: {row['rate']:.0f} spendings/s, worst {duration(row['worst'])}")
    return row


def spender(place: str, name: str, ready: Any, told: Any) -> None:
    """Spend for ``SECONDS``; how long each spending took."""
    with Ledger.open(place, timeout=60.0) as ledger:
        scope, what, waits = ledger.scope(name), event(), []
        scope.spend(what, lambda: 41.5)
        ready.wait()
        end = time.perf_counter() + SECONDS
        while (start := time.perf_counter()) < end:
            scope.spend(what, lambda: 41.5)
            waits.append(time.perf_counter() - start)
        told.put(waits)


# ---------------------------------------------------------------- overspending


def measure_overspending(folder: Path) -> list[dict[str, Any]]:
    """A budget for ``LIMIT`` spendings, and 16 at it: how many got through?"""
    rows = [
        tried(
            "naive: read, check, write", "16 processes", [in_processes(naive, folder) for _ in range(ROUNDS // 4 + 1)]
        ),
        tried(
            "inbounds ledger, SQLite", "16 processes", [in_processes(careful, folder) for _ in range(ROUNDS // 4 + 1)]
        ),
        tried("inbounds ledger, SQLite", "16 threads", [in_threads(folder) for _ in range(ROUNDS // 4 + 1)]),
    ]
    try:
        asked = {"limit": LIMIT, "threads": 16, "rounds": ROUNDS}
        answer = peers.ask("diffprivlib", "peer_diffprivlib_budget.py", asked)
        name = f"diffprivlib {answer['version']} BudgetAccountant"
        rows.append(tried(name, "16 threads", answer["threads"]))
        rows.append(tried(name, "4 processes", [answer["processes"]]))
    except peers.PeerUnavailable as problem:
        rows.append({"who": "diffprivlib BudgetAccountant", "with": str(problem), "spent": []})
    return rows


def tried(who: str, how: str, spent: list[int]) -> dict[str, Any]:
    progress(f"{who}, {how}: {min(spent)} to {max(spent)} of {LIMIT}")
    return {"who": who, "with": how, "spent": spent}


def in_processes(work: Callable[..., None], folder: Path) -> int:
    context = processes_that_are_ready()
    place = new_file(folder)
    if work is naive:
        with sqlite3.connect(place) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE budget (used integer)")
            connection.execute("INSERT INTO budget VALUES (0)")
        connection.close()
    else:
        with Ledger.open(place) as ledger:
            ledger.scope(budget=Budget(epsilon=LIMIT / 1000))
    ready, told = context.Barrier(16), context.Queue()
    processes = [context.Process(target=work, args=(place, ready, told)) for _ in range(16)]
    for process in processes:
        process.start()
    total = sum(told.get(timeout=300.0) for _ in processes)
    for process in processes:
        process.join()
    return total


def naive(place: str, ready: Any, told: Any) -> None:
    """What one writes first: look whether there is room, then add."""
    connection = sqlite3.connect(place, timeout=60.0, isolation_level=None)
    ready.wait()
    spent = 0
    while True:
        (used,) = connection.execute("SELECT used FROM budget").fetchone()
        if used + 1 > LIMIT:
            break
        connection.execute("UPDATE budget SET used = used + 1")
        spent += 1
    told.put(spent)


def careful(place: str, ready: Any, told: Any) -> None:
    with Ledger.open(place, timeout=60.0) as ledger:
        ready.wait()
        told.put(spend_all(ledger))


def spend_all(ledger: Ledger) -> int:
    """Spend until refused; how often it was not."""
    scope, spent = ledger.scope(), 0
    while True:
        try:
            scope.spend(ib.events.Pure(0.001), lambda: 41.5)
        except BudgetExceeded:
            return spent
        spent += 1


def in_threads(folder: Path) -> int:
    with Ledger.open(new_file(folder), timeout=60.0) as ledger:
        ledger.scope(budget=Budget(epsilon=LIMIT / 1000))
        spent: list[int] = []
        threads = [threading.Thread(target=lambda: spent.append(spend_all(ledger))) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return sum(spent)


# ---------------------------------------------------------------- tables


def render(data: dict[str, Any]) -> str:
    hot = next(
        row for row in data["speed"] if (row["store"], row["budget"], row["processes"]) == (SQLITE, PURE, PROCESSES[-1])
    )
    met = ("yes" if hot["rate"] >= RATE_AIM else "no", "yes" if hot["worst"] < WAIT_AIM else "no")
    aims = [
        ("SQLite, 16 processes, one budget: spendings/s", f"≥ {RATE_AIM:.0f}", f"{hot['rate']:.0f}", met[0]),
        ("the same: longest wait", f"< {duration(WAIT_AIM)}", duration(hot["worst"]), met[1]),
    ]
    speed = [
        [
            row["store"],
            row["budget"],
            "one for all" if row["shared"] else "one each",
            str(row["processes"]),
            f"{row['rate']:.0f}",
            *(duration(row[name]) for name in ("median", "p99", "worst")),
        ]
        for row in data["speed"]
    ]
    over = [
        [row["who"], row["with"], str(LIMIT), f"{min(row['spent'])} to {max(row['spent'])}", over_share(row["spent"])]
        if row["spent"]
        else [row["who"], row["with"], "-", "-", "-"]
        for row in data["overspending"]
    ]
    parts = [
        "# The ledger: speed, and who overspends",
        "## Aims",
        table(("", "aim", "measured", "met"), aims),
        "## Speed",
        "A spending is a reservation, on disk before anything may be drawn, and a commit of the answer, on disk before "
        f"it is told; records are chained by hashes. {SECONDS:g} s a row, every process as fast as it can. After each "
        "row the number of answers recorded is compared with those acknowledged, and the ledger is verified. Waits are "
        "those of whole spendings. An (ε, δ) budget counts twelve numbers instead of one. The PostgreSQL server runs "
        "on the same machine.",
        table(("store", "budget", "shared", "processes", "spendings/s", "median", "99 %", "worst"), speed, left=3),
        "## Overspending",
        f"A budget for {LIMIT} spendings, and several that spend until they are refused: how many spendings got "
        "through, over several rounds. The naive one reads the total, checks it, and adds to it. diffprivlib's "
        "accountant lives in the memory of one process: other processes know nothing of it.",
        table(("", "spent by", "limit", "spent", "rounds over the limit"), over, left=2),
    ]
    return "\n\n".join(parts) + "\n"


def over_share(spent: list[int]) -> str:
    return f"{sum(total > LIMIT for total in spent)} of {len(spent)}"

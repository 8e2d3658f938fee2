"""Runs in diffprivlib's environment: threads and processes that spend from a BudgetAccountant. JSON in, JSON out."""

from __future__ import annotations

import json
import multiprocessing
import sys
import threading
from importlib.metadata import version
from typing import Any

from diffprivlib.accountant import BudgetAccountant  # type: ignore[import-not-found]
from diffprivlib.utils import BudgetError  # type: ignore[import-not-found]

UNIT = 2.0**-10  # sums of it are exact


def spend_all(accountant: Any) -> int:
    """Spend until refused; how often it was not."""
    spent = 0
    while True:
        try:
            accountant.spend(UNIT, 0)
        except BudgetError:
            return spent
        spent += 1


def in_threads(limit: int, threads: int) -> int:
    accountant = BudgetAccountant(epsilon=limit * UNIT, delta=0)
    spent: list[int] = []
    workers = [threading.Thread(target=lambda: spent.append(spend_all(accountant))) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(spent)


def in_processes(limit: int, processes: int) -> int:
    accountant = BudgetAccountant(epsilon=limit * UNIT, delta=0)
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        return sum(pool.map(spend_all, [accountant] * processes, chunksize=1))


def main() -> None:
    question: dict[str, Any] = json.load(sys.stdin)
    limit = question["limit"]
    answer = {
        "version": version("diffprivlib"),
        "threads": [in_threads(limit, question["threads"]) for _ in range(question["rounds"])],
        "processes": in_processes(limit, 4),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()

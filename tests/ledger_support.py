"""What the tests of the ledger share: a unit of spending, the stores, and processes that spend."""

from __future__ import annotations

import os
import random
import secrets
import time
from collections.abc import Callable
from typing import Any

import pytest

from inbounds.accounting import Budget
from inbounds.errors import BudgetExceeded, LedgerUnavailable
from inbounds.events import Event, Plan, Pure
from inbounds.ledger import Ledger, Scope

STORES = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
ON_DISK = STORES[1:]


def budget(units: int) -> Budget:
    """Room for so many units."""
    return Budget(epsilon=units / 1000)


def event(units: int = 1, name: str = "e") -> Event:
    """What costs so many units; another name is another event of the same price."""
    return Plan({"name": name}, Pure(units / 1000))


def units(amount: dict[str, Any]) -> int:
    """An amount in units; it must be a whole number of them, up to the rounding of a float."""
    whole = round(1000 * amount["epsilon"])
    assert abs(1000 * amount["epsilon"] - whole) < 1e-9
    return whole


def each_store(function: Callable[..., Any]) -> Any:
    """Run the test in memory, in a file and in a database."""
    return pytest.mark.parametrize("place", STORES, indirect=True)(function)


def on_disk(function: Callable[..., Any]) -> Any:
    """Run the test in a file and in a database."""
    return pytest.mark.parametrize("place", ON_DISK, indirect=True)(function)


def spend(scope: Scope, count: int = 1, answer: Any = 1.5) -> None:
    for _ in range(count):
        scope.spend(event(), lambda: answer)


def total(ledger: Ledger) -> int:
    """Units spent in the first scope."""
    return units(ledger.scopes()[0].spent())


# ---------------------------------------------------------------- processes


def opened(where: str, path: tuple[str, ...]) -> Scope:
    """A scope of a ledger whose server may be down just now."""
    while True:
        try:
            return Ledger.open(where, timeout=60.0, create=False).scope(path)
        except LedgerUnavailable:
            time.sleep(0.05)


def spender(where: str, path: tuple[str, ...], told: str, finish: str) -> None:
    """Spend until there is nothing left, and write down what was acknowledged; slowly until ``finish`` exists."""
    scope = opened(where, path)
    out = os.open(told, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    pace = random.Random(secrets.randbits(64))
    while True:
        slow = not os.path.exists(finish)
        try:
            reservation = scope.reserve(event())
        except BudgetExceeded:
            os.write(out, b"done\n")
            return
        except LedgerUnavailable:
            continue  # the server is down
        os.write(out, f"reserved {reservation.id}\n".encode())
        reservation.touch()
        if slow:
            time.sleep(pace.uniform(0.0, 0.02))
        answer = secrets.token_hex(8)
        try:
            reservation.commit(answer)
        except LedgerUnavailable:
            continue
        os.write(out, f"committed {reservation.id} {answer}\n".encode())

"""Random sequences of calls, each checked against a few lines of Python that do the same in a dict."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from inbounds.errors import BudgetExceeded, LedgerConflict
from inbounds.ledger import Ledger, Reservation
from tests.ledger_support import STORES, budget, event, units

pytest_plugins = ["tests.ledger_fixtures"]

#: path: (units, renewal)
SCOPES: dict[tuple[str, ...], tuple[int, str | None]] = {
    ("data",): (100, None),
    ("data", "alice"): (9, "day"),
    ("data", "bob"): (25, "year"),
    ("data", "bob", "x"): (12, "month"),
    ("other",): (15, "day"),
}
LENGTH = {"day": 10, "month": 7, "year": 4}


@dataclass
class Model:
    """What should happen."""

    now: datetime
    used: dict[tuple[str, ...], int] = field(default_factory=lambda: dict.fromkeys(SCOPES, 0))
    period: dict[tuple[str, ...], str] = field(default_factory=dict)
    answers: dict[tuple[tuple[str, ...], str], tuple[Any, Any]] = field(default_factory=dict)  # key: event, answer
    answered: int = 0

    def today(self, path: tuple[str, ...]) -> str:
        renews = SCOPES[path][1]
        return "" if renews is None else self.now.isoformat()[: LENGTH[renews]]

    def way(self, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        return [path[:n] for n in range(1, len(path) + 1)]

    def seen(self, path: tuple[str, ...]) -> int:
        """What is spent by the clock of now."""
        return 0 if self.today(path) > self.period[path] else self.used[path]

    def renew(self, path: tuple[str, ...]) -> None:
        for scope in self.way(path):
            if self.today(scope) > self.period[scope]:
                self.used[scope], self.period[scope] = 0, self.today(scope)

    def reserve(self, path: tuple[str, ...], cost: int) -> bool:
        self.renew(path)
        room = all(self.used[scope] + cost <= SCOPES[scope][0] for scope in self.way(path))
        for scope in self.way(path) if room else ():
            self.used[scope] += cost
        return room


def run(ledger: Ledger, choose: random.Random, steps: int) -> None:
    model = Model(datetime(2025, 12, 20, tzinfo=UTC))
    ledger._store.clock = lambda: model.now
    scopes = {path: ledger.scope(path, budget=budget(limit), renews=renews) for path, (limit, renews) in SCOPES.items()}
    model.period = {path: model.today(path) for path in SCOPES}
    # reservation, its path, cost, key, event, and the periods in which it was charged
    open_ones: list[tuple[Reservation, tuple[str, ...], int, str | None, Any, dict[tuple[str, ...], str]]] = []
    lost: dict[tuple[tuple[str, ...], str], Any] = {}  # keys without an answer
    finished = unanswered = voided = refused = 0

    for step in range(steps):
        act = choose.choices(["reserve", "commit", "void", "clock", "leave"], [10, 5, 2, 2, 1])[0]
        if act == "clock":
            model.now += timedelta(days=choose.choice([-40, -1, 0, 1, 1, 5, 30]))
        elif act == "reserve":
            path, cost = choose.choice(list(SCOPES)), choose.randint(1, 4)
            key = choose.choice([None, f"k{choose.randint(0, 30)}"])
            wanted = event(cost, choose.choice("ab"))
            known = model.answers.get((path, key)) if key else None
            if key and (path, key) in lost:
                with pytest.raises(LedgerConflict):
                    scopes[path].reserve(wanted, key=key)
            elif known is not None and known[0] != wanted:
                with pytest.raises(LedgerConflict, match="another event"):
                    scopes[path].reserve(wanted, key=key)
            elif known is not None:
                assert scopes[path].reserve(wanted, key=key).answer == known[1]
            elif model.reserve(path, cost):
                made = scopes[path].reserve(wanted, key=key)
                open_ones.append((made, path, cost, key, wanted, dict(model.period)))
                unanswered += 1
                if key:
                    lost[path, key] = wanted
            else:
                refused += 1
                with pytest.raises(BudgetExceeded):
                    scopes[path].reserve(wanted, key=key)
        elif open_ones:
            made, path, cost, key, wanted, periods = open_ones.pop(choose.randrange(len(open_ones)))
            if act == "commit":
                made.commit({"step": step})
                finished, unanswered = finished + 1, unanswered - 1
                if key:
                    model.answers[path, key] = (lost.pop((path, key)), {"step": step})
            elif act == "void":
                made.void()
                voided, unanswered = voided + 1, unanswered - 1
                lost.pop((path, key or ""), None)
                for scope in model.way(path):
                    if model.period[scope] == periods[scope]:
                        model.used[scope] -= cost
        for path, scope in scopes.items():
            if step % 7 == 0:
                assert units(scope.spent()) == model.seen(path), (step, path)
                assert units(scope.remaining()) == SCOPES[path][0] - model.seen(path)

    found = ledger.verify()
    assert found.ok, str(found)
    kinds = [record.kind for path, scope in scopes.items() for record in scope.history()]
    assert kinds.count("commit") == finished
    assert kinds.count("refuse") == refused
    own = [r for path, s in scopes.items() for r in s.unfinished() if tuple(r.content["scope"]) == path]
    assert len(own) == unanswered
    assert min(finished, voided, refused) > 0, "the sequence shows nothing"


@pytest.mark.parametrize("place", STORES, indirect=True)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_sequences(ledger: Ledger, seed: int) -> None:
    run(ledger, random.Random(seed), 1500 if not ledger.durable else 150)


@pytest.mark.long
@pytest.mark.parametrize("place", STORES, indirect=True)
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_random_sequences(ledger: Ledger, seed: int) -> None:
    run(ledger, random.Random(seed), 2000 if not ledger.durable else 500)

"""Scopes as they lie in the tables, and how their chains grow. Everything here happens inside one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from inbounds.accounting import Budget
from inbounds.errors import InboundsError, LedgerConflict, LedgerCorrupt
from inbounds.ledger.record import BEGINNING, PERIODS, Record, canonical, checked_json, digest, period_of, timestamp
from inbounds.ledger.schema import ROOT
from inbounds.ledger.store import Transaction

__all__ = [
    "Chain",
    "Level",
    "Row",
    "accept",
    "answered",
    "find",
    "locked",
    "make",
    "parsed",
    "records",
    "rows",
    "shown",
    "totals",
]

_PAGE = 1000  # records read at a time
_FEW = 3  # parts that differ are named

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Level:
    """A scope on the way up: what never changes."""

    id: int
    path: tuple[str, ...]
    budget: Budget
    renews: str | None


@dataclass
class Chain:
    """The end of a scope's chain and its totals, inside one transaction that has locked them."""

    id: int
    path: tuple[str, ...]
    seq: int
    head: str
    used: tuple[int, ...]
    period: str

    def append(
        self, tx: Transaction, at: str, kind: str, content: str, reservation: str | None = None, key: str | None = None
    ) -> None:
        previous, self.seq = self.head, self.seq + 1
        self.head = digest(canonical(self.path), self.seq, kind, at, reservation, key, content, previous)
        tx.write(
            "INSERT INTO inbounds_record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(self.id, self.seq, kind, at, reservation, key, content, previous, self.head),
        )

    def save(self, tx: Transaction) -> None:
        tx.write(
            "UPDATE inbounds_scope SET used = ?, period = ?, seq = ?, head = ? WHERE id = ?",
            *(canonical(self.used), self.period, self.seq, self.head, self.id),
        )


def locked(tx: Transaction, levels: Sequence[Level]) -> tuple[list[Chain], str, list[str]]:
    """The chains of these levels, the time, and the period that each is in by the clock."""
    found, now = tx.lock([level.id for level in levels])
    chains = [
        Chain(id, level.path, seq, head, totals(used, level.budget), period)
        for level, (id, seq, head, used, period) in zip(levels, found, strict=True)
    ]
    return chains, timestamp(now), [period_of(now, level.renews) for level in levels]


def parsed(text: Any) -> Any:
    """What a field of a scope says."""
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        raise _damaged() from None


def totals(text: Any, budget: Budget) -> tuple[int, ...]:
    """The running totals of a scope with this budget."""
    found = parsed(text)
    if not isinstance(found, list) or len(found) != len(budget.zero()) or not all(type(x) is int for x in found):
        raise _damaged()
    return tuple(found)


def _damaged() -> LedgerCorrupt:
    return LedgerCorrupt("Ledger: a scope's row is damaged. Run verify().")


def find(
    tx: Transaction, path: tuple[str, ...], budget: Budget | None = None, renews: str | None = None
) -> tuple[Level, ...] | None:
    """The scopes from the top down to ``path``, the last with this budget if one is given; None if it is not there."""
    found: list[Level] = []
    for length in range(1, len(path) + 1):
        part = path[:length]
        there = tx.rows("SELECT id, budget, renews FROM inbounds_scope WHERE path = ?", canonical(part))
        if not there:
            if length < len(path):
                raise LedgerConflict(f"Ledger: there is no scope {shown(part)} to lie under. Make it first.")
            return None
        ((id, text, again),) = there
        try:
            limit = Budget.from_json(parsed(text))
        except InboundsError:
            raise _damaged() from None
        if again is not None and again not in PERIODS:
            raise _damaged()
        found.append(Level(id, part, limit, again))
    if budget is not None:
        own = found[-1]
        if (canonical(own.budget.to_json()), own.renews) != (canonical(budget.to_json()), renews):
            raise LedgerConflict(
                f"Ledger: the scope {shown(path)} has the budget {own.budget!r}, {_renewal(own.renews)}; asked for was "
                f"{budget!r}, {_renewal(renews)}. A scope keeps its budget: open it without one, or make another."
            )
    return tuple(found)


def make(tx: Transaction, path: tuple[str, ...], budget: Budget, renews: str | None) -> tuple[Level, ...]:
    """Make the scope, unless another process was faster."""
    root, now = _root(tx)
    levels = find(tx, path, budget, renews)
    if levels is not None:
        return levels
    above = find(tx, path[:-1]) or ()
    at, begins = timestamp(now), period_of(now, renews)
    id = tx.rows("SELECT max(id) FROM inbounds_scope")[0][0] + 1
    described = {"budget": budget.to_json(), "renews": renews}
    chain = Chain(id, path, 0, BEGINNING, budget.zero(), begins)
    tx.write(
        "INSERT INTO inbounds_scope VALUES (?, ?, ?, ?, ?, ?, 0, ?)",
        *(id, canonical(path), canonical(budget.to_json()), renews, begins, canonical(chain.used), BEGINNING),
    )
    chain.append(tx, at, "scope", checked_json("Ledger", "budget", {**described, "period": begins}))
    chain.save(tx)
    root.append(tx, at, "scope", canonical({**described, "path": list(path)}))
    root.save(tx)
    return (*above, Level(id, path, budget, renews))


def accept(tx: Transaction, lost: str, count: int) -> None:
    """Record that the ledger goes on after so many records although others were acknowledged."""
    root, now = _root(tx)
    root.append(tx, timestamp(now), "gap", canonical({"lost": lost, "records": count}))
    root.save(tx)


def _root(tx: Transaction) -> tuple[Chain, datetime]:
    """The list of scopes, and the time."""
    ((_, seq, head, used, period),), now = tx.lock([ROOT])
    return Chain(ROOT, (), seq, head, tuple(parsed(used)), period), now


def answered(tx: Transaction, own: Chain | Level, key: str, event: str) -> str | None:
    """The stored answer under this key to this event, which is canonical JSON; None where the key is free."""
    found = tx.rows(
        "SELECT r.at, r.content, e.kind, e.content FROM inbounds_record r LEFT JOIN inbounds_record e "
        "ON e.reservation = r.reservation AND e.scope = r.scope AND e.kind IN ('commit', 'void') "
        "WHERE r.scope = ? AND r.key = ? AND r.kind = 'reserve' ORDER BY r.seq DESC LIMIT 1",
        *(own.id, key),
    )
    if not found or found[0][2] == "void":
        return None
    ((at, begun, ended, answer),) = found
    before = json.loads(begun)["event"]
    if canonical(before) != event:  # to the letter: in Python 1, 1.0 and True are equal
        differs = _differing(before, json.loads(event))
        raise LedgerConflict(f"Scope: the key {key!r} was used for another event at {at}{differs}. Use a new key.")
    if ended is None:
        raise LedgerConflict(
            f"Scope: the spending under the key {key!r} of {at} has no answer: it is under way, or its process died. "
            "In that case the budget is spent and the answer lost; a new key pays again."
        )
    return canonical(json.loads(answer)["answer"])


def _differing(before: Any, now: Any) -> str:
    """Which parts of two events differ, where these are few: of what was asked, if both are of plans."""
    both = [before, now]
    names: list[str] = []
    while all(isinstance(event, dict) for event in both):
        names = [n for n in sorted({*both[0], *both[1]}) if canonical(both[0].get(n)) != canonical(both[1].get(n))]
        inner = next((part for part in ("description", "event") if part in names), None)
        if inner is None:
            break
        both = [event.get(inner) for event in both]
    return f", which differs in {', '.join(map(repr, names))}" if 0 < len(names) <= _FEW else ""


def rows(answer: Callable[..., list[Row]], id: int, where: str = "", *values: Any) -> Iterator[Row]:
    """(seq, kind, at, reservation, key, content, previous, hash), in order, from ``answer(sql, ...)`` page by page."""
    last: Any = 0
    while True:
        page = answer(
            "SELECT r.seq, r.kind, r.at, r.reservation, r.key, r.content, r.previous, r.hash FROM inbounds_record r "
            f"WHERE r.scope = ? AND r.seq > ? {where} ORDER BY r.seq LIMIT {_PAGE}",
            *(id, last, *values),
        )
        yield from page
        if len(page) < _PAGE:
            return
        last = page[-1][0]


def records(tx: Transaction, id: int, path: tuple[str, ...], where: str = "") -> Iterator[Record]:
    """The records of one scope."""
    for seq, kind, at, reservation, key, content, previous, hash in rows(tx.rows, id, where):
        try:
            values = json.loads(content)
        except ValueError:
            raise LedgerCorrupt(f"Ledger: record {seq} of {'/'.join(path)!r} is damaged. Run verify().") from None
        yield Record(path, seq, kind, at, reservation, key, values, previous, hash)


def shown(path: Sequence[str]) -> str:
    return repr("/".join(path))


def _renewal(renews: str | None) -> str:
    return f"renewed every {renews}" if renews else "never renewed"

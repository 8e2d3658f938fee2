"""Everything in a ledger computed again from its records. What this proves, and what not: docs/ledger.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inbounds import events
from inbounds.accounting import Budget
from inbounds.ledger.chain import Row, rows
from inbounds.ledger.record import BEGINNING, canonical, digest
from inbounds.ledger.schema import ROOT
from inbounds.ledger.store import Store, Transaction

__all__ = ["Problem", "Verification", "verify"]


@dataclass(frozen=True)
class Problem:
    """Something that cannot be in an honest ledger.

    ``kind`` is ``"hash"``, ``"sequence"``, ``"content"``, ``"charge"``, ``"overspent"``, ``"order"``, ``"total"``,
    ``"head"``, ``"link"`` (between scopes) or ``"rollback"`` (against what was acknowledged, or heads kept elsewhere).
    """

    scope: tuple[str, ...]
    seq: int | None
    kind: str
    message: str

    def __str__(self) -> str:
        place = "/".join(self.scope) or "(the list of scopes)"
        return f"{place}{'' if self.seq is None else f', record {self.seq}'}: {self.kind}: {self.message}"


@dataclass(frozen=True)
class Verification:
    """What :meth:`inbounds.Ledger.verify` found.

    Attributes
    ----------
    problems : tuple of Problem
        All of them.
    records : int
        How many were read.
    heads : dict
        For each scope its number of records and last hash, as JSON has it. Kept elsewhere, and given to a later
        ``verify``, it shows that nothing up to here was taken away or rewritten.
    gaps : tuple of str
        Where the ledger was opened with ``accept=`` although acknowledged records were missing: no problem any more,
        but what was spent in them is not counted.
    """

    problems: tuple[Problem, ...]
    records: int
    heads: dict[str, list[Any]]
    gaps: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def __str__(self) -> str:
        count = len(self.heads) - 1
        head = f"{self.records} records in {count} scope{'' if count == 1 else 's'}: "
        found = "no problem found" if self.ok else f"{len(self.problems)} problems"
        return "\n  ".join([head + found, *map(str, self.problems), *self.gaps])


# ---------------------------------------------------------------- checking


@dataclass
class _Links:
    """What ties chains together, gathered on the way."""

    opened: dict[str, str] = field(default_factory=dict)  # by the list of scopes: path, and how it is described
    reserved: dict[str, dict[tuple[str, ...], tuple[int, tuple[str, ...], str]]] = field(default_factory=dict)
    voided: dict[str, set[tuple[str, ...]]] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)


class _Chain:
    """One scope, replayed."""

    def __init__(self, row: Row, links: _Links) -> None:
        self.id, path, budget, self.renews, self.period_said, used, self.seq_said, self.head_said = row
        self.links = links
        self.problems: list[Problem] = []
        self.path: tuple[str, ...] = ()
        self.seq, self.head = 0, BEGINNING
        self.path_text = path
        self.budget_text = budget
        self.budget: Budget | None = None
        self.used: tuple[int, ...] = ()
        self.used_said = used
        self.period = ""
        self.begun: dict[str, tuple[tuple[int, ...], str, str | None]] = {}
        self.ended: set[str] = set()
        self.keys: dict[str, str] = {}  # which reservation a key has paid for
        self.covered: dict[tuple[str, tuple[int, ...]], bool] = {}
        try:
            self.path = tuple(str(name) for name in json.loads(path))
            if self.id != ROOT:
                self.budget = Budget.from_json(json.loads(budget))
                self.used = self.budget.zero()
        except Exception as problem:  # whatever a damaged text makes of itself
            self.say(None, "content", f"its path or budget cannot be read ({type(problem).__name__})")

    def say(self, seq: int | None, kind: str, message: str) -> None:
        self.problems.append(Problem(self.path, seq, kind, message))

    def run(self, found: Iterator[Row], kept: Sequence[Any] | None) -> None:
        seen = kept is None or kept[0] == 0
        for row in found:
            seq, kind, at, reservation, key, content, previous, hash = row
            if seq != self.seq + 1:
                self.say(seq, "sequence", f"it follows record {self.seq}")
                seq = seq if isinstance(seq, int) else self.seq + 1
            if previous != self.head:
                self.say(seq, "hash", "it does not continue the record before it")
            if hash != self.digest(row):
                self.say(seq, "hash", "its content is not what was hashed")
            if kept is not None and seq == kept[0]:
                seen = True
                if hash != kept[1]:
                    self.say(seq, "rollback", "it is not the record of the head that was kept")
            self.seq, self.head = seq, hash
            try:
                self.replay(seq, kind, at, reservation, key, json.loads(content))
            except Exception as problem:  # as above
                self.say(seq, "content", f"it cannot be read ({type(problem).__name__})")
        if not seen:
            self.say(None, "rollback", f"record {kept[0] if kept else ''} of the head that was kept is missing")
        if (self.seq_said, self.head_said) != (self.seq, self.head):
            self.say(None, "head", f"the chain ends at record {self.seq}, its end was recorded as {self.seq_said}")
        if self.used_said != canonical(self.used):
            self.say(None, "total", "the running total is not the sum of the records")
        if self.period_said != self.period:
            self.say(None, "total", "the current period is not that of the records")

    def digest(self, row: Row) -> str | None:
        try:
            return digest(self.path_text, *row[:7])
        except TypeError:  # not even text
            return None

    def replay(self, seq: int, kind: str, at: str, reservation: str, key: str | None, content: dict[str, Any]) -> None:
        if self.id == ROOT and kind == "gap":
            self.links.gaps.append(f"accepted on {at} with {content['records']} records, although {content['lost']}")
        elif self.id == ROOT:
            if kind != "scope":
                self.say(seq, "order", f"a {kind} in the list of scopes")
            path = canonical(content["path"])
            if path in self.links.opened:  # as after it was deleted, which would be a fresh budget
                self.say(seq, "link", f"the scope {path} was opened before")
            self.links.opened[path] = _described(path, canonical(content["budget"]), content["renews"])
        elif (kind == "scope") != (seq == 1):
            self.say(seq, "order", "a chain begins with its scope, once")
        elif kind == "scope":
            if (canonical(content["budget"]), content["renews"]) != (self.budget_text, self.renews):
                self.say(seq, "content", "the scope's budget is not the one it was opened with")
            self.period = content["period"]
        elif kind == "renew":
            if self.renews is None or content["before"] != self.period or not content["period"] > self.period:
                self.say(seq, "order", "a renewal that does not lead to a later period")
            self.period = content["period"]
            self.used = tuple(0 for _ in self.used)
        elif kind == "reserve":
            self.reserve(seq, reservation, key, content)
        elif kind in ("commit", "void"):
            self.end(seq, kind, reservation)
        elif kind != "refuse":
            self.say(seq, "content", f"an unknown kind {kind!r}")

    def reserve(self, seq: int, reservation: str, key: str | None, content: dict[str, Any]) -> None:
        event, charge, leaf = canonical(content["event"]), tuple(content["charge"]), tuple(content["scope"])
        if reservation in self.begun:
            self.say(seq, "order", "a reservation that was made before")
        if content["period"] != self.period:
            self.say(seq, "order", "a reservation of another period")
        if key is not None and self.keys.setdefault(key, reservation) != reservation:
            self.say(seq, "order", "its key was used before, and that is not void")
        self.begun[reservation] = (charge, self.period, key)
        self.links.reserved.setdefault(reservation, {})[self.path] = (seq, leaf, event)
        self.used = tuple(a + b for a, b in zip(self.used, charge, strict=True))
        if self.budget is not None:
            if (event, charge) not in self.covered:
                self.covered[event, charge] = self.budget.covers(charge, events.from_json(content["event"]))
            if not self.covered[event, charge]:
                self.say(seq, "charge", "the charge is less than the event costs")
            if not self.budget.admits(self.used):
                self.say(seq, "overspent", "the budget had no room for it")

    def end(self, seq: int, kind: str, reservation: str) -> None:
        if reservation not in self.begun or reservation in self.ended:
            self.say(seq, "order", f"a {kind} of what was not reserved, or has ended before")
            return
        self.ended.add(reservation)
        charge, period, key = self.begun[reservation]
        if kind == "void":
            if key is not None and self.keys.get(key) == reservation:
                del self.keys[key]
            self.links.voided.setdefault(reservation, set()).add(self.path)
            if period == self.period:
                self.used = tuple(a - b for a, b in zip(self.used, charge, strict=True))


def _described(path: Any, budget: Any, renews: Any) -> str:
    return f"{path} with the budget {budget}, renewed: {renews}"


def verify(store: Store, heads: Mapping[str, Sequence[Any]]) -> Verification:
    """Check all scopes, each by itself and then against each other.

    Ends of chains are read in one transaction, and what lies before them by and by: records never change. So nobody
    has to wait meanwhile, and what came in since is left to the next time.
    """

    def ends(tx: Transaction) -> tuple[list[Row], dict[int, Any], str]:
        return (
            tx.rows("SELECT id, path, budget, renews, period, used, seq, head FROM inbounds_scope ORDER BY id"),
            dict(tx.rows("SELECT scope, max(seq) FROM inbounds_record GROUP BY scope")),
            tx.lost(),
        )

    def answer(sql: str, *values: Any) -> list[Row]:
        return store.transaction(lambda tx: tx.rows(sql, *values), write=False)

    links = _Links()
    scopes, last, lost = store.transaction(ends, write=False)
    chains = [_Chain(row, links) for row in scopes]
    for chain in chains:
        found = rows(answer, chain.id, "AND r.seq <= ?", last.pop(chain.id, 0))
        chain.run(found, heads.get("/".join(chain.path)))
    problems = [problem for chain in chains for problem in chain.problems]
    for id in last:
        problems.append(Problem((), None, "link", f"there are records of a scope that is gone (its number was {id})"))
    there = {_described(chain.path_text, chain.budget_text, chain.renews) for chain in chains if chain.id != ROOT}
    opened = set(links.opened.values())
    for ones, others, how in ((opened, there, "is gone or changed"), (there, opened, "was never opened")):
        problems.extend(Problem((), None, "link", f"the scope {one} {how}") for one in sorted(ones - others))
    for name in heads.keys() - {"/".join(chain.path) for chain in chains}:
        problems.append(Problem(tuple(name.split("/")), None, "rollback", "the scope of a head that was kept is gone"))
    if lost:
        problems.append(Problem((), None, "rollback", lost))
    problems.extend(_link_problems(links))
    total = sum(chain.seq for chain in chains)
    ends_now = {"/".join(c.path): [c.seq, c.head] for c in chains}
    return Verification(tuple(problems), total, ends_now, tuple(links.gaps))


def _link_problems(links: _Links) -> Iterator[Problem]:
    """A spending is in every scope from its own up to the top, and nowhere else; so is its void."""
    for reservation, places in links.reserved.items():
        _, leaf, event = next(iter(places.values()))
        way = {leaf[:n] for n in range(1, len(leaf) + 1)}
        if set(places) != way or any((a, b) != (leaf, event) for _, a, b in places.values()):
            yield Problem(
                leaf, places.get(leaf, (None,))[0], "link", "the reservation is not the same in all scopes above"
            )
        if links.voided.get(reservation, way) != way:
            yield Problem(leaf, None, "link", f"the reservation {reservation} is void in some scopes only")

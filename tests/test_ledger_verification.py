"""Every way to change a ledger behind its back that verification must find."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from inbounds.accounting import Budget
from inbounds.errors import LedgerCorrupt, LedgerError
from inbounds.events import Event
from inbounds.ledger import Ledger, Verification, chain
from inbounds.ledger.record import BEGINNING, canonical, digest
from tests.ledger_support import budget, each_store, event, on_disk, spend

pytest_plugins = ["tests.ledger_fixtures"]

TRIGGERS = {
    "sqlite": [f"{table}_{verb}" for table in ("inbounds_record", "inbounds_scope") for verb in ("UPDATE", "DELETE")],
    "postgres": ["inbounds_record_change", "inbounds_scope_change"],
}


def execute(ledger: Ledger, *statements: str) -> None:
    """What somebody with access to the store could do."""

    def work(tx: Any) -> None:
        for statement in statements:
            tx.write(statement)

    ledger._store.transaction(work)


def unguard(ledger: Ledger) -> None:
    """Take the seat belts off."""
    if "postgresql" in repr(ledger):
        execute(ledger, *(f"DROP TRIGGER {name} ON {name.removesuffix('_change')}" for name in TRIGGERS["postgres"]))
    else:
        execute(ledger, *(f"DROP TRIGGER {name}" for name in TRIGGERS["sqlite"]))


def fill(ledger: Ledger) -> None:
    """Three scopes; numbers 2, 3, 4 in the tables. The chain of visits/alice: scope, and two spendings of 2 records."""
    data = ledger.scope("visits", budget=budget(9))
    alice = ledger.scope("alice", budget=budget(5), parent=data)
    ledger.scope("bob", budget=budget(5), parent=data)
    spend(alice, 2)
    assert ledger.verify().ok


@pytest.fixture
def filled(ledger: Ledger) -> Iterator[Ledger]:
    fill(ledger)
    unguard(ledger)
    return ledger


def kinds(found: Verification) -> set[str]:
    assert not found.ok
    assert "problems" in str(found)
    return {problem.kind for problem in found.problems}


def rewrite(ledger: Ledger, scope: int, change: Callable[[list[dict[str, Any]]], None], totals: bool = True) -> None:
    """A forger with patience: change the records of a scope, hash the chain anew, mend the scope's end and total."""

    def work(tx: Any) -> None:
        ((path,),) = tx.rows("SELECT path FROM inbounds_scope WHERE id = ?", scope)
        names = ("kind", "at", "reservation", "key", "content")
        rows = tx.rows(f"SELECT {', '.join(names)} FROM inbounds_record WHERE scope = ? ORDER BY seq", scope)
        records = [dict(zip(names, row, strict=True)) for row in rows]
        for record in records:
            record["content"] = json.loads(record["content"])
        change(records)
        tx.write("DELETE FROM inbounds_record WHERE scope = ?", scope)
        head, used = BEGINNING, 0
        for seq, record in enumerate(records, start=1):
            used += record["content"]["charge"][0] if record["kind"] == "reserve" else 0
            values = (record["kind"], record["at"], record["reservation"], record["key"], canonical(record["content"]))
            hashed = digest(path, seq, *values, head)
            tx.write(
                "INSERT INTO inbounds_record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", scope, seq, *values, head, hashed
            )
            head = hashed
        tx.write("UPDATE inbounds_scope SET seq = ?, head = ? WHERE id = ?", len(records), head, scope)
        if totals:
            tx.write("UPDATE inbounds_scope SET used = ? WHERE id = ?", canonical([used]), scope)

    ledger._store.transaction(work)


# ---------------------------------------------------------------- the seat belts


@on_disk
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE inbounds_record SET at = 'never'",
        "DELETE FROM inbounds_record",
        "DELETE FROM inbounds_scope WHERE id = 4",
        "UPDATE inbounds_scope SET budget = 'null'",
        "UPDATE inbounds_scope SET path = '[]' WHERE id = 4",
    ],
)
def test_records_cannot_be_changed_by_a_slip(ledger: Ledger, statement: str) -> None:
    fill(ledger)
    with pytest.raises(LedgerError):
        execute(ledger, statement)
    assert ledger.verify().ok


@on_disk
def test_nothing_begins_or_ends_twice(ledger: Ledger) -> None:
    fill(ledger)
    for seq in (2, 3):
        with pytest.raises(LedgerCorrupt, match="contradicts itself"):
            execute(
                ledger,
                "INSERT INTO inbounds_record SELECT scope, 99, kind, at, reservation, key, content, previous, hash "
                f"FROM inbounds_record WHERE scope = 3 AND seq = {seq}",
            )
    assert ledger.verify().ok


# ---------------------------------------------------------------- clumsy changes


@on_disk
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE inbounds_record SET content = replace(content, '1.5', '2.5') WHERE scope = 3 AND seq = 3", {"hash"}),
        ("UPDATE inbounds_record SET at = '2020' WHERE scope = 3 AND seq = 2", {"hash"}),
        ("UPDATE inbounds_record SET key = 'k' WHERE scope = 3 AND seq = 2", {"hash"}),
        ("UPDATE inbounds_record SET hash = previous WHERE scope = 3 AND seq = 4", {"hash"}),
        ("UPDATE inbounds_record SET content = 'x' WHERE scope = 3 AND seq = 3", {"hash", "content"}),
        ("UPDATE inbounds_record SET kind = 'gift' WHERE scope = 3 AND seq = 3", {"hash", "content"}),
        ("UPDATE inbounds_record SET kind = 'void' WHERE scope = 3 AND seq = 3", {"hash", "total", "link"}),
        ("DELETE FROM inbounds_record WHERE scope = 3 AND seq = 1", {"sequence", "hash"}),
        ("DELETE FROM inbounds_record WHERE scope = 3 AND seq = 3", {"sequence", "hash"}),
        ("DELETE FROM inbounds_record WHERE scope = 3 AND seq = 2", {"sequence", "hash", "order", "total", "link"}),
        ("DELETE FROM inbounds_record WHERE scope = 3 AND seq = 5", {"head", "rollback"}),
        ("DELETE FROM inbounds_record WHERE scope = 3 AND seq > 3", {"head", "total", "link", "rollback"}),
        ("DELETE FROM inbounds_record WHERE scope = 2 AND seq = 3", {"head", "total", "link"}),
        ("DELETE FROM inbounds_record WHERE scope = 1 AND seq = 3", {"head", "link"}),
        ("UPDATE inbounds_scope SET used = '[0]' WHERE id = 3", {"total"}),
        ("UPDATE inbounds_scope SET period = '2999' WHERE id = 3", {"total"}),
        ("UPDATE inbounds_scope SET seq = 7 WHERE id = 3", {"head"}),
        ("UPDATE inbounds_scope SET renews = 'day' WHERE id = 4", {"content", "link"}),
        ("UPDATE inbounds_scope SET budget = replace(budget, '0.005', '0.5') WHERE id = 3", {"content", "link"}),
        ("UPDATE inbounds_scope SET budget = '{' WHERE id = 3", {"content", "link", "total"}),
        ("DELETE FROM inbounds_scope WHERE id = 4", {"link"}),
        ("UPDATE inbounds_record SET scope = 4, seq = 2 WHERE scope = 3 AND seq = 5", {"hash", "head", "order"}),
        (
            "UPDATE inbounds_record SET seq = CASE seq WHEN 2 THEN 14 WHEN 4 THEN 12 ELSE seq + 10 END WHERE scope = 3",
            {"sequence", "hash", "order", "head"},
        ),
    ],
    ids=range(23),
)
def test_a_change_is_found(filled: Ledger, statement: str, expected: set[str]) -> None:
    execute(filled, statement)
    on_a_server = {"rollback"} if filled.place.startswith("postgresql") else set()  # nothing there lies beside it
    assert kinds(filled.verify()) == expected - on_a_server


@on_disk
def test_a_scope_deleted_with_all_its_records_is_found(filled: Ledger) -> None:
    execute(filled, "DELETE FROM inbounds_record WHERE scope = 4", "DELETE FROM inbounds_scope WHERE id = 4")
    (problem,) = filled.verify().problems
    assert problem.kind == "link"
    assert "bob" in problem.message
    filled.scope(("visits", "bob"), budget=budget(5))  # the next start of a program makes it again
    (problem,) = filled.verify().problems
    assert (problem.seq, problem.kind) == (4, "link")
    assert 'the scope ["visits","bob"] was opened before' in problem.message


@on_disk
def test_scopes_that_changed_places_are_not_mistaken_for_each_other(filled: Ledger) -> None:
    execute(filled, *(f"UPDATE inbounds_scope SET id = {b} WHERE id = {a}" for a, b in ((2, 9), (3, 2), (9, 3))))
    with pytest.raises(LedgerCorrupt, match="has another place"):
        filled.scope(("visits", "alice")).reserve(event())


@on_disk
def test_a_scope_that_was_slipped_in_is_found(filled: Ledger) -> None:
    execute(filled, f"INSERT INTO inbounds_scope VALUES (5, '[\"eve\"]', '[]', NULL, '', '[]', 0, '{BEGINNING}')")
    assert "link" in kinds(filled.verify())


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE inbounds_record SET at = x'ff00' WHERE scope = 3 AND seq = 3", {"hash"}),
        ("UPDATE inbounds_record SET content = x'ff00' WHERE scope = 3 AND seq = 3", {"hash", "content"}),
        ("UPDATE inbounds_record SET seq = 'five' WHERE scope = 3 AND seq = 5", {"sequence", "hash"}),
        ("UPDATE inbounds_record SET content = '[]' WHERE scope = 1 AND seq = 3", {"hash", "content", "link"}),
        ("UPDATE inbounds_scope SET path = '[3]' WHERE id = 4", {"hash", "link"}),
        ("UPDATE inbounds_scope SET path = 'x' WHERE id = 4", {"hash", "content", "link", "total"}),
    ],
    ids=range(6),
)
def test_what_is_not_even_of_the_right_type_is_found(filled: Ledger, statement: str, expected: set[str]) -> None:
    execute(filled, statement)
    assert kinds(filled.verify()) == expected


# ---------------------------------------------------------------- patient changes


def reserve_of(records: list[dict[str, Any]], which: int = 0) -> dict[str, Any]:
    return [record for record in records if record["kind"] == "reserve"][which]


def undercharge(records: list[dict[str, Any]]) -> None:
    reserve_of(records)["content"]["charge"] = [0]


def cheaper(records: list[dict[str, Any]]) -> None:
    reserve_of(records)["content"].update(charge=[0], event=event(0).to_json())


def drop(records: list[dict[str, Any]]) -> None:
    del records[-2:]


def doubled(records: list[dict[str, Any]]) -> None:
    records.append(dict(records[-1]))


def void_what_was_answered(records: list[dict[str, Any]]) -> None:
    records.append({**records[-1], "kind": "void", "content": {}})


def one_key_for_two(records: list[dict[str, Any]]) -> None:
    for i in range(2):
        reserve_of(records, i)["key"] = "k"


def commit_of_nothing(records: list[dict[str, Any]]) -> None:
    records[-1]["reservation"] = "f" * 32


def renewal_to_nowhere(records: list[dict[str, Any]]) -> None:
    records.insert(2, {**records[0], "kind": "renew", "content": {"before": "", "period": "2999-01-01"}})


def unknown_event(records: list[dict[str, Any]]) -> None:
    reserve_of(records)["content"]["event"]["event"]["tag"] = "no such thing"


def another_period(records: list[dict[str, Any]]) -> None:
    reserve_of(records)["content"]["period"] = "2025-01-01"


def another_scope(records: list[dict[str, Any]]) -> None:
    reserve_of(records)["content"]["scope"] = ["visits", "bob"]


def begin_again(records: list[dict[str, Any]]) -> None:
    records.append(dict(records[0]))


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (undercharge, {"charge"}),
        (cheaper, {"link"}),
        (drop, {"link"}),
        (doubled, {"order"}),
        (void_what_was_answered, {"order"}),
        (one_key_for_two, {"order"}),
        (commit_of_nothing, {"order"}),
        (renewal_to_nowhere, {"order", "total"}),
        (unknown_event, {"content", "link"}),
        (another_period, {"order"}),
        (another_scope, {"link"}),
        (begin_again, {"order"}),
    ],
)
def test_a_chain_hashed_anew_must_still_make_sense(
    filled: Ledger, change: Callable[[list[dict[str, Any]]], None], expected: set[str]
) -> None:
    before = filled.verify().heads
    execute(filled, "DROP INDEX inbounds_begun", "DROP INDEX inbounds_ended")
    rewrite(filled, 3, lambda records: None)
    assert filled.verify(before).ok, "the forger can write a chain that is right"
    rewrite(filled, 3, change, totals=change is not renewal_to_nowhere)
    assert kinds(filled.verify()) >= expected
    if change not in (void_what_was_answered, doubled, begin_again):  # which only add
        assert "rollback" in kinds(filled.verify(before))


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_an_overspent_chain_is_found(filled: Ledger) -> None:
    execute(filled, "DROP INDEX inbounds_begun")

    def more(records: list[dict[str, Any]]) -> None:
        begun = reserve_of(records)
        for i in range(4):
            records.append({**begun, "reservation": f"{i:032x}"})

    rewrite(filled, 3, more)
    assert {"overspent", "link"} <= kinds(filled.verify())
    rewrite(filled, 3, lambda records: records.append(dict(reserve_of(records))))
    assert {"order", "link"} <= kinds(filled.verify())


@each_store
def test_a_key_may_be_used_again_once_it_is_void(ledger: Ledger) -> None:
    scope = ledger.scope(budget=budget(5))
    for _ in range(2):
        scope.reserve(event(), key="k").void()
    scope.spend(event(), lambda: 1, key="k")
    assert ledger.verify().ok


@each_store
def test_nobody_waits_for_a_verification(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not another spending, and not the server, which ends transactions that are idle for longer than the timeout."""
    with Ledger.open(place, timeout=0.5) as ledger:
        fill(ledger)
        bob, real = ledger.scope(("visits", "bob")), Budget.covers

        def slow(self: Budget, charge: tuple[int, ...], of: Event) -> bool:
            spend(bob)
            time.sleep(0.7)
            return real(self, charge, of)

        monkeypatch.setattr(chain, "_PAGE", 2)
        monkeypatch.setattr(Budget, "covers", slow)
        found = ledger.verify()
        assert found.problems == ()
        assert found.records == 3 + 3 + 5 + 1  # as they were when it began
        monkeypatch.undo()
        assert ledger.verify(found.heads).ok


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_scope_in_the_list_of_scopes_is_nothing_else(filled: Ledger) -> None:
    rewrite(filled, 1, lambda records: records[-1].update(kind="refuse"))
    assert kinds(filled.verify()) >= {"order"}


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_higher_charge_than_todays_is_no_fault(filled: Ledger) -> None:
    def dearer(records: list[dict[str, Any]]) -> None:
        reserve_of(records)["content"]["charge"][0] *= 2

    rewrite(filled, 3, dearer)
    assert filled.verify().ok


# ---------------------------------------------------------------- heads kept elsewhere


def test_an_older_copy_put_back_with_its_head_is_found_by_the_heads_kept(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        fill(ledger)
    for end in ("", ".head"):
        shutil.copy(tmp_path / f"ledger.db{end}", tmp_path / f"copy.db{end}")
    with Ledger.open(path) as ledger:
        spend(ledger.scope(("visits", "bob")))
        ledger.scope("new", budget=budget(1))
        kept = json.loads(json.dumps(ledger.verify().heads))
        assert ledger.verify(kept).ok
        spend(ledger.scope("new"))
        assert ledger.verify(kept).ok, "what comes later is no fault"
    for end in ("", ".head"):
        shutil.copy(tmp_path / f"copy.db{end}", tmp_path / f"ledger.db{end}")
    with Ledger.open(path) as ledger:
        assert ledger.verify().ok, "by itself an old ledger is a good one"
        found = ledger.verify(kept)
    assert kinds(found) == {"rollback"}
    assert {problem.scope for problem in found.problems} == {(), ("visits",), ("visits", "bob"), ("new",)}


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "damage",
    ["used = 'x'", "used = 'null'", "used = '[]'", "budget = 'x'", "budget = '{}'", "renews = 'hour'", "seq = 'abc'"],
)
def test_a_damaged_row_is_named_as_such(filled: Ledger, damage: str) -> None:
    alice = filled.scope(("visits", "alice"))
    execute(filled, f"UPDATE inbounds_scope SET {damage} WHERE id = 3")
    with pytest.raises(LedgerCorrupt, match="damaged"):
        filled.scope(("visits", "alice")).reserve(event())
    if damage.startswith("used"):
        with pytest.raises(LedgerCorrupt, match="damaged"):
            alice.spent()
    assert not filled.verify().ok


@pytest.mark.parametrize("value", ["'" + "9" * 5000 + "'", "x'ff'", "'-1'"])
def test_a_damaged_version_is_named_as_such(value: str, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        execute(ledger, f"UPDATE inbounds_meta SET value = {value} WHERE name = 'schema'")
    with pytest.raises(LedgerCorrupt, match="which schema"):
        Ledger.open(tmp_path / "ledger.db")


def test_a_damaged_record_cannot_be_read_as_history(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        fill(ledger)
        unguard(ledger)
        execute(ledger, "UPDATE inbounds_record SET content = '{' WHERE scope = 3 AND seq = 3")
        with pytest.raises(LedgerCorrupt, match="record 3 of 'visits/alice'"):
            ledger.history()
        bob = ledger.scope(("visits", "bob"))
        execute(ledger, "DELETE FROM inbounds_scope WHERE id = 4")
        with pytest.raises(LedgerCorrupt, match="missing"):
            bob.reserve(event())

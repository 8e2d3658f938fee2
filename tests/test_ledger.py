"""The ledger in every store: scopes, reservations, keys, periods, threads, records."""

from __future__ import annotations

import copy
import csv
import hashlib
import io
import json
import pickle
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inbounds as ib
from inbounds.errors import BudgetExceeded, LedgerConflict, LedgerUnavailable
from inbounds.events import Plan, Pure
from inbounds.ledger import Ledger, Record
from tests.ledger_support import budget, each_store, event, on_disk, spend, total, units

pytest_plugins = ["tests.ledger_fixtures"]


TEXT = 'a "quoted", line;\nit\'s 100 %s of \\ and ü, \0 and ? too; --'


def set_clock(ledger: Ledger, text: str) -> None:
    ledger._store.clock = lambda: datetime.fromisoformat(text).replace(tzinfo=UTC)


def kinds(records: tuple[Record, ...]) -> list[str]:
    return [record.kind for record in records]


# ---------------------------------------------------------------- spending


@each_store
def test_a_spending_is_counted_and_its_answer_kept(ledger: Ledger) -> None:
    scope = ledger.scope(budget=budget(3))
    answer = scope.spend(event(2), lambda: {"mean": 1.5, "parts": (1, None, "ä")})
    assert answer == {"mean": 1.5, "parts": [1, None, "ä"]}
    assert units(scope.spent()) == 2
    assert units(scope.remaining()) == 1
    made, reserve, commit = scope.history()
    assert (made.kind, reserve.kind, commit.kind) == ("scope", "reserve", "commit")
    assert reserve.content["event"] == event(2).to_json()
    assert commit.content == {"answer": answer}
    assert reserve.reservation == commit.reservation
    assert scope.unfinished() == ()
    assert ledger.verify().ok


@each_store
def test_a_refusal_draws_nothing_charges_nothing_and_is_recorded(ledger: Ledger) -> None:
    scope = ledger.scope(budget=budget(3))
    spend(scope, 2)
    with pytest.raises(BudgetExceeded) as caught:
        scope.spend(event(2), lambda: pytest.fail("drawn"))
    assert caught.value.__notes__ == ["Refused by the scope 'default'."]
    assert units(scope.spent()) == 2
    assert scope.history()[-1].kind == "refuse"
    assert scope.history()[-1].content["by"] == ["default"]
    spend(scope)  # exactly the limit
    with pytest.raises(BudgetExceeded):
        spend(scope)
    assert units(scope.spent()) == 3
    assert ledger.verify().ok


@each_store
def test_what_is_left_without_an_answer_stays_spent(ledger: Ledger) -> None:
    scope = ledger.scope(budget=budget(3))
    with scope.spending(event()) as reservation:
        pass
    assert reservation.state == "left"
    with pytest.raises(ZeroDivisionError):
        scope.spend(event(), lambda: 1 / 0)
    assert units(scope.spent()) == 2
    assert [record.kind for record in scope.unfinished()] == ["reserve", "reserve"]
    for act in (reservation.touch, reservation.void, lambda: reservation.commit(1)):
        with pytest.raises(LedgerConflict, match="it is left"):
            act()
    with pytest.raises(LedgerConflict, match="no answer yet"):
        _ = reservation.answer


@each_store
def test_void_gives_back_only_what_was_not_touched(ledger: Ledger) -> None:
    scope = ledger.scope(budget=budget(2))
    reservation = scope.reserve(event(2))
    assert repr(reservation) == f"Reservation({reservation.id}, reserved, 'default')"
    assert repr(budget(2)) in repr(scope)
    reservation.void()
    assert units(scope.spent()) == 0
    for act in (reservation.touch, reservation.void, lambda: reservation.commit(1)):
        with pytest.raises(LedgerConflict, match="it is voided"):
            act()
    touched = scope.reserve(event())
    touched.touch()
    touched.touch()
    with pytest.raises(LedgerConflict, match="stays spent"):
        touched.void()
    touched.commit([1])
    with pytest.raises(LedgerConflict, match="it is committed"):
        touched.void()
    with pytest.raises(LedgerConflict, match="it is committed"):
        touched.commit([1])
    assert touched.answer == [1]
    assert units(scope.spent()) == 1
    assert kinds(scope.history()) == ["scope", "reserve", "void", "reserve", "commit"]
    assert ledger.verify().ok


@pytest.mark.parametrize("answer", [float("nan"), float("inf"), {1}, len, {(1, 2): 3}, 1j, b"x"], ids=repr)
def test_an_answer_that_json_has_not_is_refused_and_can_be_mended(answer: Any) -> None:
    scope = Ledger.open().scope(budget=budget(2))
    reservation = scope.reserve(event())
    with pytest.raises(ib.ParameterTypeError, match="what JSON has"):
        reservation.commit(answer)
    reservation.commit(str(type(answer)))
    assert reservation.state == "committed"


def test_a_charge_that_would_give_budget_back_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    scope = Ledger.open().scope(budget=budget(2))
    for charge in ((-1,), (1, 1), (1.0,), (True,)):
        monkeypatch.setattr(type(scope.budget), "charge", lambda self, event, charge=charge: charge)
        with pytest.raises(ib.ParameterError, match="whole numbers from 0 up"):
            scope.reserve(event())


@on_disk
@pytest.mark.parametrize(
    ("limit", "mechanism"),
    [
        (ib.Budget(epsilon=1.0), ib.Laplace.calibrate(ib.Interval(0, np.inf), sensitivity=1, epsilon=0.1)),
        (ib.Budget(epsilon=1.0, delta=1e-6), ib.Gaussian(ib.Interval(0, 100), sensitivity=1, scale=20.0)),
        (ib.Budget(rho=0.1), ib.Gaussian(ib.Integers(0, 100), sensitivity=1, scale=10)),
    ],
    ids=["pure", "filter", "rho"],
)
def test_every_kind_of_budget_and_true_events(place: str, limit: ib.Budget, mechanism: Any) -> None:
    with Ledger.open(place) as ledger:
        scope = ledger.scope(budget=limit)
        done = 0
        with pytest.raises(BudgetExceeded) as caught:  # noqa: PT012
            while True:
                scope.spend(mechanism.event(), lambda: mechanism.release(41).value, key=f"{done}")
                done += 1
        assert done >= 5
    with Ledger.open(place) as ledger:
        scope = ledger.scope(budget=limit)
        assert scope.spent() == caught.value.spent
        assert scope.remaining() == caught.value.remaining
        assert mechanism.domain.lower <= scope.spend(mechanism.event(), lambda: -1, key="3")
        with pytest.raises(BudgetExceeded):
            scope.reserve(mechanism.event())
        assert ledger.verify().ok


# ---------------------------------------------------------------- keys


@each_store
def test_a_key_gives_the_stored_answer_and_costs_nothing(ledger: Ledger) -> None:
    scope = ledger.scope(budget=budget(2))
    first = scope.spend(event(), lambda: {"x": 0.1}, key="q1")
    again = scope.spend(event(), lambda: pytest.fail("drawn"), key="q1")
    assert again == first == {"x": 0.1}
    assert units(scope.spent()) == 1
    replay = scope.reserve(event(), key="q1")
    assert replay.replayed
    assert replay.state == "replayed"
    for act in (replay.touch, replay.void, lambda: replay.commit(1)):
        with pytest.raises(LedgerConflict, match="it is replayed"):
            act()
    with pytest.raises(LedgerConflict, match=r"another event at [^ ]*, which differs in 'name'\. Use"):
        scope.reserve(event(1, "other"), key="q1")
    assert scope.spend(event(), lambda: None, key="q2") is None  # an answer of None is an answer
    assert scope.spend(event(), lambda: pytest.fail("drawn"), key="q2") is None
    assert scope.spend(event(), lambda: pytest.fail("drawn"), key="q1") == first  # with no budget left
    assert kinds(scope.history()).count("reserve") == 2
    assert ledger.verify().ok


@each_store
def test_a_key_without_an_answer_says_so_and_a_voided_one_is_free(ledger: Ledger) -> None:
    scope = ledger.scope(budget=budget(5))
    lost = scope.reserve(event(), key="q")
    with pytest.raises(LedgerConflict, match="under way, or its process died"):
        scope.reserve(event(), key="q")
    lost.void()
    assert scope.spend(event(), lambda: 7, key="q") == 7
    assert scope.spend(event(), lambda: 8, key="q") == 7
    with pytest.raises(BudgetExceeded):
        scope.reserve(event(9), key="big")
    assert scope.spend(event(), lambda: 9, key="big") == 9  # a refusal does not use the key up
    assert units(scope.spent()) == 2


@each_store
def test_keys_belong_to_their_scope(ledger: Ledger) -> None:
    above = ledger.scope("data", budget=budget(5))
    alice, bob = (ledger.scope(name, budget=budget(2), parent=above) for name in ("alice", "bob"))
    assert [scope.spend(event(), lambda i=i: i, key="q") for i, scope in enumerate((alice, bob, above))] == [0, 1, 2]
    assert [scope.spend(event(), lambda: 9, key="q") for scope in (alice, bob, above)] == [0, 1, 2]


@pytest.mark.parametrize("key", ["", "x" * 201, "a\0b", "a\nb", "\ud800", 3, b"k"], ids=repr)
def test_bad_keys_are_refused(key: Any) -> None:
    with pytest.raises((ib.ParameterError, ib.ParameterTypeError), match="printable"):
        Ledger.open().scope(budget=budget(1)).reserve(event(), key=key)


def test_a_key_means_its_event_to_the_letter() -> None:
    scope = Ledger.open().scope(budget=budget(5))
    scope.spend(Plan({"x": 1}, Pure(0.001)), lambda: 7, key="k")
    for other in (True, 1.0):
        with pytest.raises(LedgerConflict, match="another event"):
            scope.spend(Plan({"x": other}, Pure(0.001)), lambda: 8, key="k")


def test_a_draw_that_cannot_be_called_costs_nothing() -> None:
    scope = Ledger.open().scope(budget=budget(1))
    with pytest.raises(ib.ParameterTypeError, match="a function"):
        scope.spend(event(), 1.5)  # type: ignore[arg-type]
    assert units(scope.spent()) == 0


@pytest.mark.parametrize("heads", ["x", {"default": 0}, {"default": [1]}, {"default": [1, 2]}, {3: [1, "a"]}, 7])
def test_heads_are_those_that_were_kept(heads: Any) -> None:
    with pytest.raises(ib.ParameterTypeError, match="heads"):
        Ledger.open().verify(heads)


def test_only_events_can_be_spent() -> None:
    for bad in ({"epsilon": 1}, 0.1, None, "laplace"):
        with pytest.raises(ib.ParameterTypeError, match="an event"):
            Ledger.open().scope(budget=budget(1)).reserve(bad)


# ---------------------------------------------------------------- scopes


@each_store
def test_every_scope_on_the_way_up_must_have_room(ledger: Ledger) -> None:
    data = ledger.scope("visits", budget=budget(5))
    alice = ledger.scope("alice", budget=budget(4), parent=data)
    project = ledger.scope("x", budget=budget(3), parent=alice)
    bob = ledger.scope(("visits", "bob"), budget=budget(4))
    spend(project, 2)
    spend(bob, 2)
    assert [units(s.spent()) for s in (data, alice, project, bob)] == [4, 2, 2, 2]
    with pytest.raises(BudgetExceeded) as caught:
        spend_two(project)
    assert caught.value.__notes__ == ["Refused by the scope 'visits'."]  # the top is asked first
    assert [units(s.spent()) for s in (data, alice, project, bob)] == [4, 2, 2, 2]
    assert kinds(project.history())[-1] == "refuse"
    assert "refuse" not in kinds(data.history())
    reservation = project.reserve(event())
    assert len(data.unfinished()) == len(alice.unfinished()) == len(project.unfinished()) == 1
    assert bob.unfinished() == ()
    reservation.void()
    assert [units(s.spent()) for s in (data, alice, project, bob)] == [4, 2, 2, 2]
    spend(bob)
    with pytest.raises(BudgetExceeded):
        spend(project)
    assert data.unfinished() == ()
    assert project.parent is not None
    assert project.parent.path == ("visits", "alice")
    assert data.parent is None
    assert ledger.verify().ok
    assert [scope.path for scope in ledger.scopes()] == [
        ("visits",),
        ("visits", "alice"),
        ("visits", "alice", "x"),
        ("visits", "bob"),
    ]


def spend_two(scope: Any) -> None:
    scope.spend(event(2), lambda: 1)


@on_disk
def test_a_scope_keeps_its_budget(place: str) -> None:
    with Ledger.open(place) as first:
        spend(first.scope("a", budget=budget(7)))
        first.scope("m", budget=budget(7), renews="month")
    with Ledger.open(place) as ledger:
        assert units(ledger.scope("a", budget=budget(7)).spent()) == 1
        assert units(ledger.scope("a").remaining()) == 6
        assert ledger.scope("m").renews == "month"
        with pytest.raises(LedgerConflict) as caught:
            ledger.scope("a", budget=budget(8))
        assert repr(budget(7)) in str(caught.value)
        assert repr(budget(8)) in str(caught.value)
        with pytest.raises(LedgerConflict, match=r"renewed every month; .* never renewed"):
            ledger.scope("m", budget=budget(7))
        with pytest.raises(LedgerConflict, match=r"never renewed; .* renewed every day"):
            ledger.scope("a", budget=budget(7), renews="day")
        with pytest.raises(LedgerConflict, match="no scope 'b' yet"):
            ledger.scope("b")
        with pytest.raises(LedgerConflict, match="no scope 'b' to lie under"):
            ledger.scope(("b", "c"), budget=budget(1))


def test_bad_scopes_are_refused() -> None:
    ledger, other = Ledger.open(), Ledger.open()
    for name in ("", "a/b", "a\nb", "x" * 201, 3, None, (), ("a", ""), ("a", 3), tuple("abcdefghi")):
        with pytest.raises((ib.ParameterError, ib.ParameterTypeError)):
            ledger.scope(name, budget=budget(1))  # type: ignore[arg-type]
    with pytest.raises(ib.ParameterTypeError, match="a Budget"):
        ledger.scope(budget=3.0)  # type: ignore[arg-type]
    with pytest.raises(ib.ParameterError, match="renews must be one of"):
        ledger.scope(budget=budget(1), renews="week")
    with pytest.raises(ib.ParameterTypeError, match="a scope of this ledger"):
        ledger.scope("b", budget=budget(1), parent=other.scope(budget=budget(1)))
    assert ledger.scopes() == ()


def test_opening() -> None:
    assert not Ledger.open().durable
    assert "lost when this process ends" in repr(Ledger.open())
    for where in ("", "mysql://x/y", "sqlite:///x", "a\0b"):
        with pytest.raises(ib.ParameterError, match="a path or a URL"):
            Ledger.open(where)
    for wrong in (3, b"x", None):
        with pytest.raises(ib.ParameterTypeError, match="a path or a postgresql"):
            Ledger.open(wrong)  # type: ignore[arg-type]
    for timeout in (0, -1, float("nan"), 1e9):
        with pytest.raises(ib.ParameterError, match="timeout"):
            Ledger.open(timeout=timeout)


@each_store
def test_a_closed_ledger_says_so(ledger: Ledger) -> None:
    scope = ledger.scope(budget=budget(1))
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerUnavailable, match="closed"):
        scope.reserve(event())


@each_store
@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_what_is_open_cannot_be_copied_and_says_so(ledger: Ledger, way: Callable[[Any], Any]) -> None:
    """A copy of a reservation could be touched while the other one is voided."""
    scope = ledger.scope(budget=budget(1))
    for what in (ledger, scope, scope.reserve(event())):
        with pytest.raises(ib.ParameterTypeError, match=rf"^{type(what).__name__}: .* cannot be pickled or copied"):
            way(what)


# ---------------------------------------------------------------- periods


@each_store
def test_budgets_renew_by_the_calendar_and_keep_their_history(ledger: Ledger) -> None:
    set_clock(ledger, "2025-01-31T23:59:59.999999")
    data = ledger.scope("data", budget=budget(10))
    day = ledger.scope("day", budget=budget(2), parent=data, renews="day")
    month = ledger.scope("month", budget=budget(3), parent=data, renews="month")
    year = ledger.scope("year", budget=budget(2), parent=data, renews="year")
    for scope in (day, month, year):
        spend(scope, 2)
    set_clock(ledger, "2025-02-01T00:00:00")
    assert [units(scope.spent()) for scope in (data, day, month, year)] == [6, 0, 0, 2]
    spend(day)
    spend(month, 3)
    with pytest.raises(BudgetExceeded):
        spend(month)
    with pytest.raises(BudgetExceeded):
        spend(year)
    assert [units(scope.spent()) for scope in (data, day, month, year)] == [10, 1, 3, 2]
    assert kinds(day.history()) == ["scope", "reserve", "commit", "reserve", "commit", "renew", "reserve", "commit"]
    assert day.history()[5].content == {"before": "2025-01-31", "period": "2025-02-01"}
    set_clock(ledger, "2026-01-01T00:00:00")
    with pytest.raises(BudgetExceeded) as caught:
        spend(year)  # it has renewed, but what it lies under has not
    assert caught.value.__notes__ == ["Refused by the scope 'data'."]
    assert kinds(year.history())[-2:] == ["renew", "refuse"]
    assert units(year.spent()) == 0
    assert ledger.verify().ok


@each_store
def test_a_clock_that_goes_back_opens_nothing_again(ledger: Ledger) -> None:
    set_clock(ledger, "2025-03-10T12:00:00")
    scope = ledger.scope(budget=budget(2), renews="day")
    spend(scope, 2)
    set_clock(ledger, "2025-03-11T12:00:00")
    spend(scope, 2)
    for earlier in ("2025-03-10T12:00:00", "2024-12-31T12:00:00", "1970-01-01T00:00:00", "2025-03-11T23:59:59"):
        set_clock(ledger, earlier)
        assert units(scope.spent()) == 2
        with pytest.raises(BudgetExceeded):
            spend(scope)
    set_clock(ledger, "2030-01-01T00:00:00")  # a jump ahead opens that day, once
    spend(scope, 2)
    set_clock(ledger, "2025-03-12T12:00:00")
    with pytest.raises(BudgetExceeded):
        spend(scope)
    assert kinds(scope.history()).count("renew") == 2
    assert ledger.verify().ok


@each_store
def test_a_void_in_a_later_period_gives_nothing_back_there(ledger: Ledger) -> None:
    set_clock(ledger, "2025-03-10T12:00:00")
    scope = ledger.scope(budget=budget(2), renews="day")
    old, older = scope.reserve(event()), scope.reserve(event())
    set_clock(ledger, "2025-03-11T12:00:00")
    older.void()  # the new day has not begun in the ledger
    spend(scope, 2)
    old.void()
    assert units(scope.spent()) == 2
    with pytest.raises(BudgetExceeded):
        spend(scope)
    assert ledger.verify().ok


# ---------------------------------------------------------------- records


@each_store
def test_hashes_are_of_the_canonical_json_of_each_record(ledger: Ledger) -> None:
    data = ledger.scope("data", budget=budget(5))
    spend(ledger.scope("a", budget=budget(5), parent=data), 2, answer={"b": [0.1, 1e300], "a": "ü"})
    previous = "0" * 64
    for record in data.history():
        values = record.to_json()
        claimed = values.pop("hash")
        text = json.dumps(values, sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(text.encode()).hexdigest() == claimed
        assert record.previous == previous
        previous = claimed
    assert ledger.verify().heads["data"] == [3, previous]
    assert len(ledger.history()) == 3 + 5


@each_store
def test_export(ledger: Ledger) -> None:
    data = ledger.scope("data", budget=budget(5), renews="year")
    alice = ledger.scope("alice", budget=budget(5), parent=data)
    alice.spend(event(), lambda: {"text": TEXT}, key="k,1")
    whole = json.loads(ledger.export("json"))
    assert [scope["path"] for scope in whole["scopes"]] == [[], ["data"], ["data", "alice"]]
    assert whole["scopes"][2]["records"] == [record.to_json() for record in alice.history()]
    assert whole["scopes"][1]["budget"] == budget(5).to_json()
    assert whole["scopes"][1]["renews"] == "year"
    assert whole["scopes"][2]["head"] == alice.history()[-1].hash
    alone = json.loads(alice.export("json"))
    assert alone["scopes"] == whole["scopes"][2:]
    rows = list(csv.DictReader(io.StringIO(ledger.export("csv"))))
    assert [row["kind"] for row in rows] == ["scope", "scope", "scope", "reserve", "scope", "reserve", "commit"]
    assert rows[5]["key"] == "k,1"
    assert json.loads(rows[6]["content"])["answer"]["text"] == TEXT
    with pytest.raises(ib.ParameterError, match="'json', 'csv'"):
        ledger.export("xml")


# ---------------------------------------------------------------- threads


@each_store
def test_threads_share_a_ledger(ledger: Ledger) -> None:
    data = ledger.scope("data", budget=budget(40))
    scopes = [ledger.scope(f"user {i}", budget=budget(9), parent=data) for i in range(8)]
    refused: list[int] = []

    def work(i: int) -> None:
        for k in range(8):
            try:
                scopes[i].spend(event(), lambda k=k: [i, k], key=f"{k}")
            except BudgetExceeded:
                refused.append(i)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(refused) == 64 - 40
    assert units(data.spent()) == 40
    assert sum(units(scope.spent()) for scope in scopes) == 40
    assert ledger.verify().ok


@on_disk
def test_one_key_in_many_threads_is_paid_once(ledger: Ledger) -> None:
    scope = ledger.scope(budget=budget(9))
    start = threading.Barrier(6)

    def work(i: int) -> Any:
        start.wait()
        try:
            return scope.spend(event(), lambda: i, key="k")
        except LedgerConflict:
            return None  # another is at it

    with ThreadPoolExecutor(6) as pool:
        answers = {answer for answer in pool.map(work, range(6)) if answer is not None}
    assert len(answers) == 1
    assert units(scope.spent()) == 1


@on_disk
def test_a_ledger_is_made_once_by_many(place: str) -> None:
    start = threading.Barrier(6)

    def work(_: int) -> int:
        start.wait()
        with Ledger.open(place, timeout=30.0) as ledger:
            spend(ledger.scope("a", budget=budget(6)))
            return 1

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(work, range(6))) == 6
    with Ledger.open(place, create=False) as ledger:
        assert total(ledger) == 6
        assert ledger.verify().ok
        assert len(ledger.scopes()) == 1


def test_a_path_object_will_do(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "a file with spaces? & #.db") as ledger:
        spend(ledger.scope(budget=budget(1)))
    assert (tmp_path / "a file with spaces? & #.db").exists()


def test_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[1] / "docs/ledger.md").read_text()
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    exec(compile("\n".join(blocks), "docs/ledger.md", "exec"), {})
    with Ledger.open(tmp_path / "budget.db", create=False) as made:
        assert kinds(made.scope("visits").history()) == ["scope", "reserve", "commit", "reserve"]

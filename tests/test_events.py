"""Records of releases: exact round trips, records that are never read differently, and what is refused."""

from __future__ import annotations

import copy
import inspect
import json
import math
import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import inbounds as ib
import inbounds.mechanism
from inbounds import _checks as check
from inbounds import events
from inbounds.errors import InboundsError, ParameterError, ParameterTypeError, UnknownEvent
from inbounds.events import Approximate, Composed, Draw, Event, Parallel, Plan, Pure, Repeated, Zcdp
from inbounds.mechanism.denoised import Denoised
from tests.vectors import make_events

INF = math.inf
GOLDEN = json.loads(make_events.FILE.read_text(encoding="utf-8"))
AGE = make_events.AGE


# ---------------------------------------------------------------- round trips


@pytest.mark.parametrize("name", make_events.EVENTS)
def test_round_trips_are_exact(name: str) -> None:
    event = make_events.EVENTS[name]
    record = event.to_json()
    assert events.from_json(record) == event
    assert events.from_json(json.dumps(record)) == event
    assert events.from_json(json.dumps(record).encode()).to_json() == record
    assert hash(events.from_json(record)) == hash(event)
    assert pickle.loads(pickle.dumps(event)) == event


@given(
    lower=st.floats(-1e50, 1e50),
    width=st.floats(1e-40, 1e50),
    part=st.floats(1e-3, 1.0),
    scale=st.floats(1e-50, 1e50),
    epsilon=st.just(0.0) | st.floats(1e-100, 1e6),
    delta=st.just(0.0) | st.floats(1e-100, 1.0, exclude_max=True),
)
@settings(max_examples=60, deadline=None)
def test_every_float_comes_back(
    lower: float, width: float, part: float, scale: float, epsilon: float, delta: float
) -> None:
    parts: list[Event] = [Pure(epsilon), Approximate(epsilon, delta), Zcdp(epsilon)]
    try:
        domain = ib.Interval(lower, lower + width)
        parts.append(ib.Laplace(domain, scale=scale, sensitivity=domain.width * part).event(3))
    except ParameterError:
        pass  # no such mechanism
    event = Composed(tuple(parts))
    assert events.from_json(json.dumps(event.to_json())) == event


def test_every_mechanism_has_a_record() -> None:
    kinds = {
        kind
        for _, kind in inspect.getmembers(inbounds.mechanism, inspect.isclass)
        if issubclass(kind, inbounds.mechanism.Mechanism) and not kind.__subclasses__()
    }
    recorded = {type(e.mechanism) for e in make_events.EVENTS.values() if isinstance(e, Draw)}
    assert kinds - {Denoised} <= recorded


# ---------------------------------------------------------------- what was written once


@pytest.mark.parametrize("name", GOLDEN)
def test_old_records_keep_their_meaning(name: str) -> None:
    case = GOLDEN[name]
    event = events.from_json(case["record"])
    assert event.to_json() == case["record"]
    assert event == make_events.EVENTS[name]
    for what, value in make_events.known(event).items():
        before = case["guarantee"][what]
        assert (value == before) if before == "inf" else (value == pytest.approx(before, rel=1e-6))


def test_a_record_says_what_it_says_in_words() -> None:
    assert ib.Laplace(ib.Interval(0, INF), scale=0.1, sensitivity=0.25).event(2).to_json() == {
        "format": "inbounds.event",
        "version": 1,
        "event": {
            "tag": "repeated",
            "times": 2,
            "event": {
                "tag": "draw",
                "note": "",
                "mechanism": {
                    "tag": "laplace",
                    "domain": {"tag": "interval", "lower": 0.0, "upper": "inf"},
                    "sensitivity": 0.25,
                    "scale": 0.1,
                    "edges": "truncate",
                    "granularity": None,
                },
            },
        },
    }


# ---------------------------------------------------------------- what releases record


def test_a_release_records_its_draws_and_not_its_value() -> None:
    assert AGE.release(41.3).event() == AGE.event() == Draw(AGE)
    many = AGE.release([41.25, 40.5, 39.0])
    assert many.event() == Repeated(Draw(AGE), 3) == AGE.event(3)
    assert not any(str(float(v)) in json.dumps(many.event().to_json()) for v in many.value)
    box = ib.Gaussian(ib.Box([0, 1], [10, 9]), scale=9, sensitivity=[4, 2])
    assert box.release([5, 5]).event() == Draw(box)
    assert box.release([[5, 5], [4, 4]]).event() == Repeated(Draw(box), 2)
    count = ib.Laplace(ib.Integers(0, 30), scale=2, sensitivity=1)
    assert count.release(3).event() == Draw(count)


def test_denoising_costs_nothing_and_is_noted() -> None:
    raw = ib.Laplace(ib.Integers(0, 30), scale=2, sensitivity=1, edges="ignore")
    event = raw.denoised().event(2)
    assert event == Repeated(Draw(raw, "denoised"), 2)
    assert event.guarantee().epsilon() == raw.event(2).guarantee().epsilon()


def test_an_optimal_table_is_recorded_as_its_table() -> None:
    best = ib.optimal(ib.Integers(0, 4), sensitivity=1, epsilon=0.7)
    event = best.event()
    assert isinstance(event, Draw)
    assert type(event.mechanism) is ib.Table
    assert events.from_json(json.dumps(event.to_json())) == event
    assert event.guarantee().epsilon() == best.epsilon() <= 0.7
    assert 699_999_000 <= ib.Budget(epsilon=0.7).charge(event)[0] <= 700_000_000  # a little room was left for rounding


def test_events_are_frozen_and_compare_by_what_they_say() -> None:
    with pytest.raises(FrozenInstanceError):
        Pure(0.1).epsilon = 0.2  # type: ignore[misc]
    described = {"columns": ["age"]}
    plan = Plan(described, Pure(0.1))
    described["columns"].append("secret")
    plan.description["columns"].append("secret")
    assert plan.description == {"columns": ["age"]}
    assert plan == Plan({"columns": ["age"]}, Pure(0.1)) != Plan({"columns": []}, Pure(0.1))
    assert {Pure(0.1), Pure(0.1), Zcdp(0.1)} == {Pure(0.1), Zcdp(0.1)}


def test_leaves_are_counted_through_everything_in_sequence() -> None:
    inner = Composed([Pure(0.1), Repeated(Pure(0.2), 4)])
    event = Repeated(Plan({}, Composed([inner, Pure(0.1), Parallel([inner, Pure(3)])])), 5)
    parts = {repr(single.curve): times for single, times in events.composition(event).parts}
    assert sorted(parts.values()) == [5, 10, 20]
    assert events.composition(event).count == 35


# ---------------------------------------------------------------- what is refused


def changed(path: str, value: Any = None, *, of: Event | None = None) -> dict[str, Any]:
    """A record with one field set to another value, or (``...``) removed."""
    record = copy.deepcopy((of or AGE.event(3)).to_json())
    *way, last = path.split(".")
    place: Any = record
    for name in way:
        place = place[int(name) if name.isdigit() else name]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return record


DRAW = "event.event.mechanism"
BOX = ib.Gaussian(ib.Box([0, 1], [10, 9]), scale=9, sensitivity=ib.L0(1, linf=1)).event()
TABLE = ib.Table(ib.Integers(0, 1), [[3, 1], [1, 3]], sensitivity=1).event()
SPANS = ib.Laplace(ib.Spans([(0, 90), (120, 365)]), scale=7.5, sensitivity=3).event()
WRONG: list[tuple[Any, type[InboundsError], str]] = [
    ("", UnknownEvent, "not JSON"),
    ("{", UnknownEvent, "not JSON"),
    (b"\xff\xfe\xfd", UnknownEvent, "not JSON"),
    ("[]", UnknownEvent, "must be an object"),
    ("[" * 100_000, UnknownEvent, ""),
    (None, UnknownEvent, "must be an object"),
    (3.5, UnknownEvent, "must be an object"),
    ('{"format": 1, "format": 2}', UnknownEvent, "occurs twice"),
    ('{"format": NaN}', UnknownEvent, "NaN is no number"),
    ('{"format": -Infinity}', UnknownEvent, "-Infinity is no number"),
    (changed("format", "other"), UnknownEvent, "format must be"),
    (changed("format", ...), UnknownEvent, "lacks the field 'format'"),
    (changed("extra", 1), UnknownEvent, "unknown field 'extra'"),
    (changed("version", 2), UnknownEvent, "newer than 1"),
    (changed("version", 10**5000), UnknownEvent, "newer than 1"),
    ('{"format": 1' + "0" * 5000 + "}", UnknownEvent, "not JSON"),
    (changed("version", 0), UnknownEvent, "version must be"),
    (changed("version", "1"), UnknownEvent, "version must be"),
    (changed("version", True), UnknownEvent, "version must be"),
    (changed("event", None), UnknownEvent, "object with a tag"),
    (changed("event", {"tag": "exec"}), UnknownEvent, "'exec'"),
    (changed("event", {"tag": ["pure"]}), UnknownEvent, "object with a tag"),
    (changed("event.times", 0), ParameterError, "times"),
    (changed("event.times", 2.5), ParameterError, "times"),
    (changed("event.times", True), ParameterTypeError, "times"),
    (changed("event.times", 2**60), ParameterError, "times"),
    (changed("event.event", {"tag": "pure"}), UnknownEvent, "lacks the field 'epsilon'"),
    (changed("event.event", {"tag": "pure", "epsilon": "0.1"}), ParameterTypeError, "epsilon"),
    (changed("event.event", {"tag": "pure", "epsilon": -0.1}), ParameterError, "epsilon"),
    (changed("event.event", {"tag": "pure", "epsilon": math.nan}), ParameterError, "epsilon"),
    (changed("event.event", {"tag": "pure", "epsilon": INF}), ParameterError, "epsilon"),
    (changed("event.event", {"tag": "approximate", "epsilon": 1, "delta": 1}), ParameterError, "delta"),
    (changed("event.event", {"tag": "zcdp", "rho": None}), ParameterTypeError, "rho"),
    (changed("event.event", {"tag": "composed", "events": []}), ParameterError, "one event or more"),
    (changed("event.event", {"tag": "composed", "events": {}}), UnknownEvent, "must be a list"),
    (changed("event.event", {"tag": "parallel", "events": [1]}), UnknownEvent, "object with a tag"),
    (changed("event.event", {"tag": "plan", "description": [], "event": {"tag": "pure", "epsilon": 1}}),
     ParameterTypeError, "description"),
    (changed("event.event.note", 7), ParameterTypeError, "note"),
    (changed("event.event.note", "x" * 201), ParameterTypeError, "note"),
    (changed(f"{DRAW}.tag", "cauchy"), UnknownEvent, "'cauchy'"),
    (changed(f"{DRAW}.scale", ...), UnknownEvent, "lacks the field 'scale'"),
    (changed(f"{DRAW}.seed", 1), UnknownEvent, "unknown field 'seed'"),
    (changed(f"{DRAW}.scale", 0), ParameterError, "scale"),
    (changed(f"{DRAW}.scale", "1"), ParameterTypeError, "scale"),
    (changed(f"{DRAW}.scale", math.nan), ParameterError, "scale"),
    (changed(f"{DRAW}.sensitivity", 121), ParameterError, "sensitivity"),
    (changed(f"{DRAW}.sensitivity", None), ParameterTypeError, "sensitivity"),
    (changed(f"{DRAW}.sensitivity", {"tag": "l3", "value": 1}), UnknownEvent, "'l3'"),
    (changed(f"{DRAW}.edges", "reflect"), ParameterError, "edges"),
    (changed(f"{DRAW}.granularity", 0.3), ParameterError, "granularity"),
    (changed(f"{DRAW}.domain", {"tag": "circle"}), UnknownEvent, "'circle'"),
    (changed(f"{DRAW}.domain.lower", 121), ParameterError, "upper"),
    (changed(f"{DRAW}.domain.lower", "zero"), ParameterTypeError, "lower"),
    (changed(f"{DRAW}.domain.lower", "nan"), ParameterTypeError, "lower"),
    (changed("event.mechanism.domain.lower", [0], of=BOX), ParameterError, "upper"),
    (changed("event.mechanism.domain.lower", 0, of=BOX), UnknownEvent, "must be a list"),
    (changed("event.mechanism.domain.integer", 1, of=BOX), ParameterTypeError, "integer"),
    (changed("event.mechanism.sensitivity.count", 3, of=BOX), ParameterError, "count"),
    (changed("event.mechanism.domain.spans", [[0, 90], [80, 100]], of=SPANS), ParameterError, "disjoint"),
    (changed("event.mechanism.domain.spans", [[0, 90, 100]], of=SPANS), ParameterTypeError, "span"),
    (changed("event.mechanism.domain.spans", [5], of=SPANS), UnknownEvent, "must be a list"),
    (changed("event.mechanism.weights", [["3", "1"], [1, "3"]], of=TABLE), UnknownEvent, "decimal digits"),
    (changed("event.mechanism.weights", [["3", "1"], ["-1", "3"]], of=TABLE), UnknownEvent, "decimal digits"),
    (changed("event.mechanism.weights", [["3", "1"], ["1" * 5000, "3"]], of=TABLE), UnknownEvent, "decimal digits"),
    (changed("event.mechanism.weights", [["3", "1"]], of=TABLE), ParameterError, "weights"),
    (changed("event.mechanism.weights", "31", of=TABLE), UnknownEvent, "must be a list"),
    (changed("event.mechanism.cells", 2000, of=TABLE), ParameterError, "cells"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_records(number: int) -> None:
    record, kind, fragment = WRONG[number]
    with pytest.raises(kind) as caught:
        events.from_json(record)
    assert fragment in str(caught.value)
    assert len(str(caught.value)) < 400


def test_records_are_not_nested_without_end() -> None:
    event: Event = Pure(0.1)
    for _ in range(32):
        event = Composed([event])
    assert events.from_json(event.to_json()) == event
    for holder in (lambda e: Composed([e]), lambda e: Parallel([e]), lambda e: Repeated(e, 2), lambda e: Plan({}, e)):
        with pytest.raises(ParameterError, match="nested at most 32 deep"):
            holder(event)
    record = event.to_json()
    record["event"] = {"tag": "composed", "events": [record["event"]]}
    with pytest.raises(UnknownEvent, match="nested"):
        events.from_json(record)


def test_what_is_made_can_be_read_back_and_counted() -> None:
    with pytest.raises(ParameterError, match="releases in all"):
        Repeated(Repeated(Pure(1.0), 2**30), 2**30)
    assert Repeated(Composed([Repeated(Pure(1.0), 2), Pure(1.0)]), 2).guarantee().epsilon() == 6.0
    with pytest.raises(ParameterError, match="at most 4000 digits"):
        ib.Table(ib.Integers(0, 1), [[10**4000, 1], [1, 10**4000]], sensitivity=1).event()
    for claim in (lambda x: Pure(x), lambda x: Approximate(0.0, x), lambda x: Zcdp(x)):
        with pytest.raises(ParameterError, match="0 or at least 1e-100"):
            claim(1e-101)
    with pytest.raises(ParameterError, match="one of its kinds"):
        Event()


def test_counts_are_never_rounded() -> None:
    assert Repeated(Pure(1.0), 2**53).times == 2**53
    record = Repeated(Pure(1.0), 2**53).to_json()
    record["event"]["times"] += 1
    for make in (lambda: Repeated(Pure(1.0), 2**53 + 1), lambda: events.from_json(record)):
        with pytest.raises(ParameterError, match=r"in \[1, 9007199254740992\]; got 9007199254740993"):
            make()
    for value in (np.int64(2**53 - 1), np.array(2**53 - 1), 2.0**53 - 1):
        times: Any = Repeated(Pure(1.0), value).times  # type: ignore[arg-type]
        assert (times, type(times)) == (2**53 - 1, int)
    assert check.whole("Test", "n", 2**53 + 1, at_least=1, at_most=2**60) == 2**53 + 1


@pytest.mark.parametrize(
    ("event", "most"),
    [
        (Repeated(Pure(1e-9), 10**9), 1.0),
        (ib.Gaussian(ib.Interval(0, 1), scale=1e7, sensitivity=1.0).event(1000), 1e-3),
        (Repeated(Pure(1e-100), 10), 1e-90),
    ],
)
def test_many_tiny_releases_have_a_guarantee(event: Event, most: float) -> None:
    assert 0.0 <= event.guarantee().epsilon(1e-6) <= most
    assert "none" not in str(event.guarantee())


@pytest.mark.parametrize(
    "make",
    [
        lambda: Draw("laplace"),  # type: ignore[arg-type]
        lambda: Draw(AGE.denoised()),
        lambda: Draw(AGE, None),  # type: ignore[arg-type]
        lambda: Pure("0.1"),  # type: ignore[arg-type]
        lambda: Composed(Pure(0.1)),  # type: ignore[arg-type]
        lambda: Composed([AGE]),  # type: ignore[list-item]
        lambda: Parallel(3),  # type: ignore[arg-type]
        lambda: Repeated(AGE, 3),  # type: ignore[arg-type]
        lambda: Plan({"a": {1, 2}}, Pure(1)),
        lambda: Plan({"a": math.nan}, Pure(1)),
        lambda: Plan("mean", Pure(1)),  # type: ignore[arg-type]
        lambda: AGE.event(True),
        lambda: AGE.event("3"),  # type: ignore[arg-type]
    ],
)
def test_wrong_types(make: Any) -> None:
    with pytest.raises(ParameterTypeError):
        make()


@pytest.mark.parametrize("make", [lambda: AGE.event(0), lambda: AGE.event(-1), lambda: AGE.release([]).event()])
def test_no_release_is_no_event(make: Any) -> None:
    with pytest.raises(ParameterError, match="count"):
        make()

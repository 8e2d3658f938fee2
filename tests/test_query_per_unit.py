"""Which value of a unit counts: it is said or asked for, it is that value, on every engine, and it moves no further."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import random
import sqlite3
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest

import inbounds as ib
from inbounds import ask, col
from inbounds.cli import questions
from inbounds.errors import LedgerConflict, ParameterError, ParameterTypeError
from inbounds.tables import Bins, Dataset, PerUnit, Plan, Request, Source, Squares, Sum, Units
from tests import query_reference as reference
from tests.postgres import Server
from tests.query_support import WARDS, counting, opened

# Ibis 12 calls what DuckDB 2 has deprecated.
pytestmark = pytest.mark.filterwarnings(r"ignore:fetch_\w+\(\) is deprecated:DeprecationWarning")

EPSILON = 400.0  # so large that answers are nearly exact
AGES = (0, 100)
TIMES = (dt.datetime(2024, 1, 1), dt.datetime(2025, 1, 1))
SALT = b"a salt for tests"
HOWS = ("mean", "sum", "min", "max", "first", "last")

OVER_VALUES: dict[str, Callable[..., Any]] = {
    "sum": lambda q, **said: q.sum("age", bounds=AGES, epsilon=1, **said),
    "variance": lambda q, **said: q.variance("age", bounds=AGES, epsilon=1, **said),
    "std": lambda q, **said: q.std("age", bounds=AGES, epsilon=1, **said),
    "quantile": lambda q, **said: q.quantile("age", 0.9, bounds=AGES, epsilon=1, **said),
    "quantiles": lambda q, **said: q.quantiles("age", [0.1, 0.9], bounds=AGES, epsilon=1, **said),
    "median": lambda q, **said: q.median("age", bounds=AGES, epsilon=1, **said),
    "min": lambda q, **said: q.min("age", bounds=AGES, epsilon=1, **said),
    "max": lambda q, **said: q.max("age", bounds=AGES, epsilon=1, **said),
    "histogram": lambda q, **said: q.histogram("age", [0, 50, 100], epsilon=1, **said),
    "select": lambda q, **said: q.select(n=ask.count_units(), s=ask.sum("age", AGES, **said), epsilon=1),
}

# ---------------------------------------------------------------- it is said


@pytest.mark.parametrize("name", OVER_VALUES)
@pytest.mark.parametrize("grouped", [False, True])
def test_a_question_over_values_that_does_not_say_which_is_refused_before_it_is_paid(name: str, grouped: bool) -> None:
    data, calls = counting(max_rows=None)
    view = data.group_by("ward", keys=WARDS) if grouped else data
    calls.clear()
    for asked in (view, view.plan):
        with pytest.raises(ParameterError) as caught:
            OVER_VALUES[name](asked)
        for way in ("max_rows=5", "1 where each has one row", "per_unit='sum'", "mean, min, max", "order='date'"):
            assert way in str(caught.value)
    assert calls == {}
    assert data.spent() == {"epsilon": 0.0}
    assert [record.kind for record in data.history()] == ["scope"]
    # Both ways are ways.
    OVER_VALUES[name](view.with_caps(max_rows=2))
    for how in HOWS:
        OVER_VALUES[name](view, per_unit=how, **({"order": "time"} if how in ("first", "last") else {}))
    assert data.spent() == {"epsilon": 7.0}


def test_a_share_of_rows_says_which_too() -> None:
    data, calls = counting(max_rows=None)
    calls.clear()
    with pytest.raises(ParameterError) as caught:
        data.share(col("flag"), epsilon=1)
    for way in ("max_rows=5", "of='units'", "per_unit='mean'"):
        assert way in str(caught.value)
    assert calls == {}
    assert data.spent() == {"epsilon": 0.0}
    words = {
        "mean of each user's share of rows where flag": data.plan.share(col("flag"), per_unit="mean", epsilon=1),
        "share of units with a row where flag": data.plan.share(col("flag"), of="units", epsilon=1),
        "share of rows, at most 2 a user, where flag": data.with_caps(max_rows=2).plan.share(col("flag"), epsilon=1),
        "share of units with a row, at most 2 a user, where flag": data.with_caps(max_rows=2).plan.share(
            col("flag"), of="units", epsilon=1
        ),
        "share of rows where flag": opened(unit=None, max_rows=None, max_groups=None).plan.share(
            col("flag"), epsilon=1
        ),
    }
    for said, plan in words.items():
        assert f"  {said}; error about" in plan.explain()


@pytest.mark.parametrize("name", OVER_VALUES)
def test_where_a_row_is_the_unit_nothing_has_to_be_said(name: str) -> None:
    data = opened(unit=None, max_rows=None, max_groups=None)
    OVER_VALUES[name](data)
    with pytest.raises(ParameterError, match="left out where a row is the unit; got 'max'"):
        OVER_VALUES[name](data, per_unit="max")


def test_the_sum_is_the_sum_and_no_longer_that_of_the_means() -> None:
    rng = random.Random(5)
    rows = [{"who": u, "visits": rng.randrange(40)} for u in range(1000) for _ in range(1 + u % 6)]
    exact = sum(row["visits"] for row in rows)
    data = ib.dataset(pa.Table.from_pylist(rows), unit="who", budget=ib.Budget(epsilon=1e6))
    with pytest.raises(ParameterError, match="max_rows or per_unit"):
        data.sum("visits", bounds=(0, 40), epsilon=EPSILON)
    own = data.sum("visits", bounds=(0, 40 * 6), per_unit="sum", epsilon=EPSILON)
    rows_of = data.with_caps(max_rows=6).sum("visits", bounds=(0, 40), epsilon=EPSILON)
    assert own.value == pytest.approx(exact, abs=20)
    assert rows_of.value == pytest.approx(exact, abs=20)
    assert type(own.value) is int
    means = data.sum("visits", bounds=(0, 40), per_unit="mean", epsilon=EPSILON)
    assert means.value < 0.5 * exact


CONFLICTS: dict[str, tuple[Callable[[Dataset], Any], str]] = {
    "a cap on rows": (
        lambda d: d.with_caps(max_rows=2).sum("age", bounds=AGES, per_unit="sum", epsilon=1), "left out with max_rows",
    ),
    "a mean of rows": (
        lambda d: d.with_caps(max_rows=2).mean("age", bounds=AGES, per_unit="mean", epsilon=1),
        "left out with max_rows",
    ),
    "another word": (lambda d: d.sum("age", bounds=AGES, per_unit="total", epsilon=1), "'first', 'last'; got 'total'"),
    "no word": (lambda d: d.sum("age", bounds=AGES, per_unit=3, epsilon=1), "one of 'mean'"),  # type: ignore[arg-type]
    "a sum of shares": (lambda d: d.share(col("flag"), per_unit="sum", epsilon=1), "one of 'mean'; got 'sum'"),
    "units and a mean": (
        lambda d: d.share(col("flag"), of="units", per_unit="mean", epsilon=1), "left out with of='units'",
    ),
    "first without order": (lambda d: d.max("age", bounds=AGES, per_unit="first", epsilon=1), "order='date'"),
    "order of a number": (
        lambda d: d.max("age", bounds=AGES, per_unit="first", order=3, epsilon=1),  # type: ignore[arg-type]
        "a column's name",
    ),
    "order of a sum": (
        lambda d: d.max("age", bounds=AGES, per_unit="sum", order="time", epsilon=1), "order must be left out",
    ),
    "order alone": (lambda d: d.mean("age", bounds=AGES, order="time", epsilon=1), "order must be left out"),
    "order that is not there": (
        lambda d: d.max("age", bounds=AGES, per_unit="last", order="tim", epsilon=1), "Did you mean 'time'",
    ),
    # Engines disagree about the order of texts.
    "order of text": (lambda d: d.max("age", bounds=AGES, per_unit="last", order="name", epsilon=1), "holds text"),
    "a sum of dates": (
        lambda d: d.median("time", bounds=TIMES, per_unit="sum", epsilon=1), "median: column must hold numbers",
    ),
    "bounds far from 0": (
        lambda d: d.sum("age", bounds=(1e6, 1e6 + 1), per_unit="sum", epsilon=1), "sum: bounds of sums that far from 0",
    ),
    "edges far from 0": (
        lambda d: d.histogram("age", [1e6, 1e6 + 1], per_unit="sum", epsilon=1), "histogram: bounds of sums that far",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFLICTS)
def test_what_goes_together_badly_is_refused_before_it_is_paid(name: str) -> None:
    make, words = CONFLICTS[name]
    data, calls = counting(max_rows=None)
    calls.clear()
    with pytest.raises((ParameterError, ParameterTypeError)) as caught:
        make(data)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 420
    assert calls == {}
    assert data.spent() == {"epsilon": 0.0}


def test_numbers_beyond_int64_are_no_order() -> None:
    table = pa.table({"u": [1], "x": [1.0], "id": pa.array([2**64 - 1], pa.uint64())})
    data = ib.dataset(table, unit="u", budget=ib.Budget(epsilon=1))
    with pytest.raises(ParameterTypeError, match="order must hold"):
        data.mean("x", bounds=(0, 1), per_unit="last", order="id", epsilon=1)


def test_rows_and_values_of_units_are_not_mixed_in_a_request() -> None:
    with pytest.raises(ParameterError, match="left out where rows count"):
        Request({"s": Sum("x", 0, 1, per=PerUnit("sum"))}, unit="u", rows=2)


def test_plans_and_answers_say_which_value_counts() -> None:
    data = opened(max_rows=None)
    words = {
        "mean": ("each user's mean of age", "with the mean of its own values"),
        "sum": ("each user's sum of age", "with the sum of its own values"),
        "min": ("each user's smallest age", "with the smallest of its own values"),
        "max": ("each user's largest age", "with the largest of its own values"),
        "first": ("each user's first age by year(time)", "with the first of its own values by year(time)"),
        "last": ("each user's last age by year(time)", "with the last of its own values by year(time)"),
    }
    for how, (said, noted) in words.items():
        order = {"order": col("time").year()} if how in ("first", "last") else {}
        for what in ("mean", "std", "median"):
            plan = getattr(data.plan, what)("age", bounds=AGES, per_unit=how, epsilon=1, **order)
            assert f"{what} of {said}, bounds 0 to 100; error" in plan.explain()
            assert f"{what} of {said}," in repr(plan)
        answer = data.sum("age", bounds=AGES, per_unit=how, epsilon=1, **order)
        assert any(noted in note for note in answer.notes)
        assert ("sums of a unit" in answer.notes[0]) is (how == "sum")
        (event,) = (record.content["event"] for record in list(data.history())[-2:] if record.kind == "reserve")
        assert f"'per_unit': '{how}'" in str(event)
    assert "mean of each user's mean of age" in data.plan.mean("age", bounds=AGES, epsilon=1).explain()
    rows = data.with_caps(max_rows=3).plan.sum("age", bounds=AGES, epsilon=1)
    assert "sum of age of rows, at most 3 a user, bounds 0 to 100" in rows.explain()
    several = opened(unit=["ward", "user"], max_rows=None).plan.mean("age", bounds=AGES, epsilon=1)
    assert "mean of each unit's mean of age" in several.explain()


def test_another_value_of_a_unit_is_another_request() -> None:
    data = opened(max_rows=None)
    data.sum("age", bounds=AGES, per_unit="last", order="time", epsilon=1, key="k")
    for said in ({"per_unit": "max"}, {"per_unit": "first", "order": "time"}, {"per_unit": "last", "order": "day"}):
        with pytest.raises(LedgerConflict, match="another event"):
            data.sum("age", bounds=AGES, epsilon=1, key="k", **said)  # type: ignore[arg-type]


def test_only_the_same_value_is_drawn_once() -> None:
    data = opened(max_rows=None)

    def parts(**asks: Any) -> int:
        return len(data.plan.select(asks, epsilon=1).chosen)

    assert parts(a=ask.mean("age", AGES), b=ask.sum("age", AGES, per_unit="mean")) == 1
    assert parts(a=ask.mean("age", AGES), b=ask.std("age", AGES, per_unit="sum")) == 2
    assert parts(a=ask.mean("age", AGES, per_unit="sum"), b=ask.sum("age", AGES, per_unit="sum")) == 1
    last = {"per_unit": "last", "order": "time"}
    assert parts(a=ask.mean("age", AGES, **last), b=ask.std("age", AGES, **last)) == 1
    assert parts(a=ask.mean("age", AGES, **last), b=ask.std("age", AGES, **last | {"order": "day"})) == 2


def test_an_order_may_be_a_derived_column() -> None:
    data = opened(max_rows=None)
    derived = data.with_columns(back=col("kids") * -1)
    first = data.plan.mean("age", bounds=AGES, per_unit="first", order=col("kids") * -1, epsilon=EPSILON)
    again = derived.plan.mean("age", bounds=AGES, per_unit="first", order="back", epsilon=EPSILON)
    assert first._request.run(data.source).numbers == again._request.run(data.source).numbers


# ---------------------------------------------------------------- files of questions

FILE = """
[data]
source = "visits.csv"
unit = "user"
[budget]
epsilon = 1
[[question]]
name = "cost"
ask = "sum"
column = "kids"
bounds = [0, 9]
epsilon = 0.5
"""


def planned(text: str) -> Plan:
    inquiry = questions.read(tomllib.loads(text), Path("q.toml"))
    plan = inquiry.asked[0].plan(opened(max_rows=None), 0.95)
    assert isinstance(plan, Plan)
    return plan


def test_files_say_it_in_the_same_words() -> None:
    with pytest.raises(ParameterError, match="max_rows or per_unit must be given"):
        planned(FILE)
    data = opened(max_rows=None)
    for fields, said in {
        'per_unit = "sum"': {"per_unit": "sum"},
        'per_unit = "last"\norder = "time"': {"per_unit": "last", "order": "time"},
        'per_unit = "first"\norder = "year(time)"': {"per_unit": "first", "order": col("time").year()},
    }.items():
        plan = data.plan.select(cost=ask.sum("kids", (0, 9), **said), epsilon=0.5)  # type: ignore[arg-type]
        assert planned(FILE + fields).event == plan.event
    with pytest.raises(ParameterError, match=r"q.toml: order must be left out with ask = \"share\""):
        planned(
            FILE.replace(
                'ask = "sum"\ncolumn = "kids"\nbounds = [0, 9]', 'ask = "share"\ncondition = "flag"\norder = "day"'
            )
        )


# ---------------------------------------------------------------- it is that value


def numbers(values: dict[str, list[Any]], measure: Sum | Bins) -> tuple[int, ...]:
    """What is counted and summed, checked against plain Python."""
    table = pa.table(values)
    request = Request({"m": measure}, unit="u")
    source = Source.open(table)
    tally = request.run(source, salt=SALT)
    _, _, found = reference.answer(table.to_pylist(), source.schema, request, SALT)
    assert tally["m"] == tuple(found["m"])
    return tally["m"][0]


def taken(values: dict[str, list[Any]], how: str, low: float, high: float, order: str | None = None) -> float:
    """The sum over units of what is taken of each."""
    measure = Sum("x", low, high, center=0.0, per=PerUnit(how, None if order is None else col(order)))
    return numbers(values, measure)[1] * measure.fixed(Request({"n": Units()}, unit="u").caps).step


def test_sums_of_many_and_of_huge_values_are_exact_in_any_order() -> None:
    """Their sum takes more than 64 bits: in float64, or in an int64 that wraps, it would depend on the order."""
    rng = random.Random(3)
    step = Sum("x", 0, 100, center=0.0, per=PerUnit("sum")).fixed(Request({"n": Units()}, unit="u").caps).step
    most = 2.0**50 * step  # beyond which a row counts as that
    for few in (0, 3, 41, 700):
        xs = [1e300] * 20_000 + [-most] * 20_000 + [0.1, math.inf, -math.inf] + [1.0] * few + [None, math.nan]
        rng.shuffle(xs)
        assert taken({"u": [1] * len(xs), "x": xs}, "sum", 0, 100) == pytest.approx(min(few + 0.1, 100), abs=2 * step)
    for ends in ([1e300] * 30_000, [-1e300] * 30_000):
        found = taken({"u": [1] * 30_001, "x": [*ends, 50.0]}, "sum", -7, 100)
        assert found == (100 if ends[0] > 0 else -7)


@pytest.mark.parametrize("center", [None, 0.0])
def test_whole_numbers_are_added_up_exactly(center: float | None) -> None:
    rng = random.Random(8)
    for _ in range(5):
        xs = [rng.randrange(-1000, 1000) for _ in range(300)]
        us = [rng.randrange(20) for _ in xs]
        own = [sum(x for x, v in zip(xs, us, strict=True) if v == u) for u in set(us)]
        measure = Sum("x", -9000, 9000, center=center, per=PerUnit("sum"))
        fixed = measure.fixed(Request({"n": Units()}, unit="u").caps)
        count, total = numbers({"u": us, "x": xs}, measure)
        assert count * fixed.center + total * fixed.step == sum(own)


def test_sums_are_clipped_once_they_are_added() -> None:
    values = {"u": [1, 1, 1, 2, 2, 3, 4], "x": [90.0, 90.0, -100.0, 30.0, -50.0, 1000.0, None]}
    assert taken(values, "sum", 0, 100) == 80 + 0 + 100
    assert taken(values, "sum", -10, 60) == 60 - 10 + 60
    assert taken(values, "max", 0, 100) == 90 + 30 + 100
    assert taken(values, "min", -60, 100) == -60 - 50 + 100
    measure = Bins("x", [-100, 0, 50, 90, 200], per=PerUnit("sum"))
    assert numbers(values, measure) == (1, 0, 1, 1)
    squares = Squares("x", -100, 100, center=0.0, per=PerUnit("sum"))
    caps = Request({"n": Units()}, unit="u").caps
    fixed = squares.fixed(caps)
    count, total = numbers(values, squares)
    assert count == 3
    assert total * fixed.step**2 / squares.shift(caps) == pytest.approx(80**2 + 20**2 + 100**2)


def test_the_first_and_the_last_are_by_order_then_by_value() -> None:
    rows = [  # unit, order, value
        (1, 3, 5.0), (1, 2, 7.0), (1, 9, 2.0), (1, 9, 4.0), (1, 2, 8.0),  # ties at both ends
        (2, None, 50.0), (2, 1, None), (2, 4, 6.0),  # neither without order nor without value
        (3, None, 60.0), (3, 7, None),  # no value at all
        (4, -5, 200.0), (4, 10, -30.0),  # beyond the bounds
    ]  # fmt: skip
    values = {"u": [r[0] for r in rows], "o": [r[1] for r in rows], "x": [r[2] for r in rows]}
    assert taken(values, "first", 0, 100, "o") == 7 + 6 + 100
    assert taken(values, "last", 0, 100, "o") == 4 + 6 + 0
    count, _ = numbers(values, Sum("x", 0, 100, per=PerUnit("first", col("o"))))
    assert count == 3
    for shuffled in itertools.islice(itertools.permutations(rows), 0, 20_000, 4_001):
        again = {"u": [r[0] for r in shuffled], "o": [r[1] for r in shuffled], "x": [r[2] for r in shuffled]}
        assert taken(again, "first", 0, 100, "o") == 113
        assert taken(again, "last", 0, 100, "o") == 10


def test_each_group_has_its_own_value_of_a_unit() -> None:
    table = pa.table({"u": [1, 1, 1, 2], "g": ["a", "a", "b", "b"], "o": [1, 2, 0, 5], "x": [3, 4, 10, 20]})
    data = ib.dataset(table, unit="u", budget=ib.Budget(epsilon=1e6), max_groups=2).group_by("g", keys=["a", "b"])
    for how, wanted in {"sum": (7, 30), "min": (3, 30), "last": (4, 30)}.items():
        order = {"order": "o"} if how == "last" else {}
        found = data.sum("x", bounds=(0, 50), per_unit=how, epsilon=500, **order)  # type: ignore[arg-type]
        assert tuple(answer.value for answer in found["x"]) == pytest.approx(wanted, abs=4)


def test_where_every_row_has_a_value_but_not_a_place_in_the_order_their_number_is_not_public() -> None:
    data = opened(neighbours="substitute", size=90, max_rows=None)
    filled = col("kids").fill_null(0)

    def own_noise(order: Any) -> bool:
        plan = data.plan.mean(filled, bounds=(0, 6), per_unit="last", order=order, epsilon=1)
        ((draw, _),) = plan.event.leaves()
        return not hasattr(draw.mechanism.sensitivity, "value")  # of one number, not of cells

    assert own_noise(col("age").fill_null(0))
    assert not own_noise("age")


# ---------------------------------------------------------------- on every engine


def measures(column: str) -> dict[str, Any]:
    made = {how: Sum(column, -20, 90, per=PerUnit(how)) for how in HOWS[:4]}
    made |= {how: Sum(column, -20, 90, per=PerUnit(how, col("o"))) for how in HOWS[4:]}
    return made | {"bins": Bins(column, [-20, 0, 3, 90], per=PerUnit("sum"))}


def same_as_python(table: Any, rows: list[dict[str, Any]], columns: str) -> None:
    source = Source.open(table)
    for by in ({}, {"by": "g", "keys": [1, 2, 9], "groups": 2}):
        request = Request({f"{c} {n}": m for c in columns for n, m in measures(c).items()}, unit="u", **by)
        tally = request.run(source, salt=SALT)
        _, units, found = reference.answer(rows, source.schema, request, SALT)
        assert list(tally.units) == units
        assert {name: list(group) for name, group in tally.numbers.items()} == found


def some_rows() -> list[dict[str, Any]]:
    rng = random.Random(1)
    return [
        {
            "u": u,
            "g": rng.randrange(3),
            "o": rng.choice([None, 1, 2, 3]),
            "i": rng.choice([None, rng.randrange(-50, 50), 2**62, -(2**62)]),
            "x": rng.choice([None, rng.gauss(0, 40), 1e300, -1e300]),
        }
        for u in range(40)
        for _ in range(rng.randrange(1, 9))
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what Ibis asks of pandas
def test_sqlite_takes_the_same_of_a_unit(tmp_path: Path) -> None:
    rows = some_rows()
    database = sqlite3.connect(tmp_path / "t.db")
    database.execute("CREATE TABLE t (u bigint, g bigint, o bigint, i bigint)")
    database.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [tuple(row.values())[:4] for row in rows])
    database.commit()
    database.close()
    connection = ibis.sqlite.connect(tmp_path / "t.db")
    same_as_python(connection.table("t"), rows, "i")
    connection.disconnect()


@pytest.mark.postgres
def test_postgresql_takes_the_same_of_a_unit(initdb: str) -> None:
    rows = some_rows()
    server = Server(initdb)
    try:
        connection = ibis.connect(server.url())
        connection.raw_sql("CREATE TABLE t (u bigint, g bigint, o bigint, i bigint, x double precision)")
        connection.con.commit()
        connection.insert("t", pa.Table.from_pylist(rows))
        same_as_python(connection.table("t"), rows, "ix")
        connection.disconnect()
    finally:
        server.stop()


# ---------------------------------------------------------------- how many groups


@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
@pytest.mark.parametrize("goal", [{"epsilon": 1.0}, {"rho": 0.1}, {"epsilon": 1.0, "delta": 1e-6}])
def test_without_max_groups_the_factor_of_the_noise_is_said(goal: dict[str, float], neighbours: str) -> None:
    """That of the very noise which is drawn, where a unit counts in all groups and where it counts in one."""
    budget = ib.Budget(rho=100) if "rho" in goal else ib.Budget(epsilon=100, delta=1e-3)
    data = opened(budget=budget, neighbours=neighbours, max_groups=None)
    asked = {"n": ask.count_units(), "m": ask.mean("age", AGES), "q": ask.median("age", AGES, level=None)}
    for groups, question in itertools.product((1, 2, 30), asked.values()):
        keys = list(range(groups))
        plan, one = (
            data.group_by("user", keys=keys, max_groups=most).plan.select({"x": question}, **goal) for most in (None, 1)
        )
        grown, single = (p.chosen["p0"][0].spread(p.chosen["p0"][1]) for p in (plan, one))
        assert one._grown == ()
        if groups == 1:
            assert plan._grown == ()
            continue
        (note,) = plan._grown
        assert f"may count in all {groups} groups, so that the noise is {grown / single:.3g} times that of" in note
        assert "give max_groups, the most that one is in" in note
        if "delta" not in goal:
            factor = groups if "epsilon" in goal else math.sqrt(groups)
            assert grown / single == pytest.approx(factor, rel=1e-3)


def test_the_factor_is_in_the_explanation_and_with_the_answers() -> None:
    data = opened(max_groups=None)
    plan = data.group_by("ward", keys=WARDS).plan.count_units(epsilon=1)
    (note,) = plan._grown
    assert "the noise is 4 times that of max_groups=1" in note
    assert note in plan.explain()
    assert note in plan.run().notes
    for view in (data.group_by("ward", keys=WARDS, max_groups=4), opened().group_by("ward", keys=WARDS)):
        assert "max_groups=1" not in view.plan.count_units(epsilon=1).explain()
        assert view.count_units(epsilon=1).notes == ()


def test_groups_of_the_data_without_max_groups_are_refused_with_the_factor() -> None:
    data = opened(max_groups=None, budget=ib.Budget(epsilon=10, delta=1e-3))
    with pytest.raises(ParameterError, match=r"max_groups=3.*grows by that factor \(Gaussian noise by its square root"):
        data.group_by("ward").count_units(epsilon=1, delta=1e-6)
    assert data.spent() == {"epsilon": 0.0, "delta": 0.0}

"""Questions about tables as users ask them: answers, groups, budgets, ledgers, results, and every kind of table.

Most answers are asked for with an epsilon so large that they are nearly exact. They are compared with plain Python by
their own intervals, at a level of 1 - 1e-9: a wrong answer is refused, as the intervals are narrow, and the chance that
any right one is refused is below 1e-6 in all.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import inbounds as ib
from inbounds import ask, col
from inbounds.errors import BudgetExceeded, LedgerConflict, MissingColumn, ParameterError, QueryFailed
from inbounds.tables import Answer, Dataset, Plan, Results, Source
from inbounds.tables.plan import REPLAYED
from tests.query_support import (
    ARROW,
    EPSILON,
    MONTHS,
    ROWS,
    SCHEMA,
    WARDS,
    Counting,
    counting,
    on_spark,
    opened,
    spark_session,
)

# Ibis 12 calls what DuckDB 2 has deprecated.
pytestmark = pytest.mark.filterwarnings(r"ignore:fetch_\w+\(\) is deprecated:DeprecationWarning")

LEVEL = 1.0 - 1e-9
USERS = len({row["user"] for row in ROWS})
AGES, KIDS = (0, 100), (0, 6)
DAYS = (dt.date(2024, 1, 1), dt.date(2024, 12, 31))
TIMES = (dt.datetime(2024, 1, 1), dt.datetime(2025, 1, 1))

Row = dict[str, Any]


# ---------------------------------------------------------------- what is right


def number(value: Any) -> Any:
    """Dates as days, times as seconds: what is averaged."""
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(2024, 1, 1)).total_seconds()
    return (value - dt.date(2024, 1, 1)).days if isinstance(value, dt.date) else value


#: What is taken of a unit's values, in the order of time.
OWN: dict[str | None, Callable[[list[float]], float]] = {
    None: lambda theirs: theirs[0],
    "sum": math.fsum,
    "min": min,
    "max": max,
    "first": lambda theirs: theirs[0],
    "last": lambda theirs: theirs[-1],
}


def values(rows: Sequence[Row], column: str, bounds: tuple[Any, Any], how: str | None) -> list[float]:
    """The values that count: those of the rows, or what is taken of each unit's."""
    low, high = map(number, bounds)

    def clipped(x: float) -> float:
        return min(max(x, low), high)

    held: dict[Any, list[float]] = defaultdict(list)
    for i, row in enumerate(sorted(rows, key=lambda row: row["time"])):
        if row[column] is not None:
            held[i if how is None else row["user"]].append(float(number(row[column])))
    if how == "mean":
        return [statistics.fmean(map(clipped, theirs)) for theirs in held.values()]
    return [clipped(OWN[how](theirs)) for theirs in held.values()]


def share(rows: Sequence[Row], per_unit: bool) -> float:
    """Of rows with a flag; or the mean of the units' own shares."""
    held: dict[Any, list[bool]] = defaultdict(list)
    for i, row in enumerate(rows):
        held[row["user"] if per_unit else i].append(row["flag"] is True)
    return statistics.fmean(statistics.fmean(theirs) for theirs in held.values())


def units(rows: Sequence[Row]) -> int:
    return len({row["user"] for row in rows})


MODES: dict[str, dict[str, Any]] = {
    "rows of a user": {},
    "one value a user": {"max_rows": None},
    "a sum a user": {"max_rows": None},
    "the smallest of a user": {"max_rows": None},
    "the largest of a user": {"max_rows": None},
    "the first of a user": {"max_rows": None},
    "the last of a user": {"max_rows": None},
    "a row": {"unit": None, "max_rows": None, "max_groups": None},
    "rows, substitute": {"neighbours": "substitute"},
    "one value, substitute, size": {"neighbours": "substitute", "max_rows": None, "size": USERS},
    "a row, substitute, size": {
        "neighbours": "substitute", "unit": None, "max_rows": None, "max_groups": None, "size": len(ROWS),
    },
}  # fmt: skip
HOW = {
    "one value a user": "mean", "one value, substitute, size": "mean", "a sum a user": "sum",
    "the smallest of a user": "min", "the largest of a user": "max", "the first of a user": "first",
    "the last of a user": "last",
}  # fmt: skip


def taken(how: str | None) -> dict[str, Any]:
    """What questions are told about the value of a unit."""
    return {} if how is None else {"per_unit": how} | ({"order": "time"} if how in ("first", "last") else {})


def wanted(rows: Sequence[Row], mode: str) -> dict[str, tuple[ib.tables.Aggregate, float]]:
    """Questions, and their exact answers."""
    how = HOW.get(mode)
    per_unit, said = how is not None, taken(how)
    ages, kids, prices = (
        values(rows, column, bounds, how) for column, bounds in (("age", AGES), ("kids", KIDS), ("price", (0, 50)))
    )
    days = values(rows, "day", DAYS, how) if how != "sum" else []
    lost = values([{**row, "kids": row["kids"] and -row["kids"]} for row in rows], "kids", (-6, 0), how)
    found = {
        "units": (ask.count_units(), units(rows) if "unit" not in MODES[mode] else len(rows)),
        "age": (ask.mean("age", AGES, **said), statistics.fmean(ages) if ages else 50.0),
        "sum": (ask.sum("age", AGES, **said), sum(ages)),
        "kids": (ask.sum("kids", KIDS, **said), sum(kids)),
        "debts": (ask.sum(col("kids") * -1, (-6, 0), **said), sum(lost)),
        "variance": (ask.variance("age", AGES, **said), statistics.pvariance(ages) if ages else 0.0),
        "std": (ask.std("age", AGES, **said), statistics.pstdev(ages) if ages else 0.0),
        "share": (
            ask.share(col("flag"), **taken("mean" if per_unit else None)), share(rows, per_unit) if rows else 0.5,
        ),
        "some": (
            ask.share(col("flag"), of="units"),
            units([row for row in rows if row["flag"]]) / max(units(rows), 1)
            if "unit" not in MODES[mode]
            else share(rows, per_unit) if rows else 0.5,
        ),
        "price": (ask.mean("price", (0, 50), **said), statistics.fmean(prices) if prices else 25.0),
    }  # fmt: skip
    if how != "sum":
        found["day"] = (ask.mean("day", DAYS, **said), statistics.fmean(days) if days else 182.0)
    if not per_unit:
        found["rows"] = (ask.count(), len(rows))
    return found


def near(answer: Answer, exact: float, width: float, slack: float = 1e-4) -> None:
    """The interval holds the exact answer and is no wider than stated; the answer is as near as that."""
    low, high = map(number, answer.interval(LEVEL))
    slack = max(slack, 0.5 if isinstance(answer.value, dt.date) else 0.0)  # rounded to a day
    assert low - slack <= exact <= high + slack
    assert high - low <= width + 2 * slack
    assert abs(number(answer.value) - exact) <= width + slack
    inside(answer)


def inside(answer: Answer) -> None:
    """The answer, and its interval, lie in the set of answers that make sense."""
    low, high = answer.interval()
    assert answer.valid[0] <= low <= high <= answer.valid[1]
    assert answer.valid[0] <= answer.value <= answer.valid[1]
    if isinstance(answer.value, float):
        assert math.isfinite(answer.value)


#: How wide an interval at most is, for one question and EPSILON; a unit has 4 rows at most.
WIDTHS = {
    "units": 1, "rows": 2, "age": 1.0, "sum": 80.0, "kids": 5.0, "debts": 5.0, "variance": 60.0, "std": 2.0,
    "share": 0.01, "some": 0.01, "price": 0.5, "day": 4.0,
}  # fmt: skip


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize("mode", MODES)
def test_every_question_of_the_whole_table(mode: str) -> None:
    data = opened(**MODES[mode])
    for name, (question, exact) in wanted(ROWS, mode).items():
        answer = data.select({name: question}, epsilon=EPSILON)
        assert isinstance(answer, Answer)
        near(answer, exact, WIDTHS[name])


@pytest.mark.parametrize("mode", MODES)
def test_every_question_by_group_in_one_plan(mode: str) -> None:
    keys = [(ward, flag) for ward in [*WARDS[:2], "no such ward"] for flag in (True, False)]
    caps = {} if "unit" in MODES[mode] else {"max_groups": 5}
    data = opened(**MODES[mode]).group_by("ward", "flag", keys=keys, **caps)
    asks = {name: question for name, (question, _) in wanted([], mode).items() if name not in ("debts", "some", "std")}
    results = data.select(asks, epsilon=500)
    assert results.by == ("ward", "flag")
    assert results.keys == tuple(keys)
    for key in keys:
        rows = [row for row in ROWS if (row["ward"], row["flag"]) == key]
        exact = wanted(rows, mode)
        for name, answer in results.at(*key).items():
            low, high = map(number, answer.interval(LEVEL))
            slack = 0.5 if name == "day" else 1e-4
            assert not rows or low - slack <= exact[name][1] <= high + slack, (key, name)
            inside(answer)
    assert sum(answer.value for answer in results["units"]) > 30


@pytest.mark.parametrize(
    "mode", ["rows of a user", "one value a user", "a sum a user", "the last of a user", "a row, substitute, size"]
)
def test_quantiles_have_the_right_rank(mode: str) -> None:
    data = opened(**MODES[mode])
    how, said = HOW.get(mode), taken(HOW.get(mode))
    for column, bounds in (("age", AGES), ("kids", KIDS), ("day", DAYS), ("time", TIMES)):
        if how == "sum" and column in ("day", "time"):
            continue
        numbers = sorted(values(ROWS, column, bounds, how))
        cell = (number(bounds[1]) - number(bounds[0])) / 16_384 + (1 if column == "day" else 0)
        for level, answer in {
            0.5: data.median(column, bounds=bounds, **said, epsilon=EPSILON),
            0.9: data.quantile(column, 0.9, bounds=bounds, **said, epsilon=EPSILON, level=None),
            0.0: data.min(column, bounds=bounds, **said, epsilon=EPSILON),
            1.0: data.max(column, bounds=bounds, **said, epsilon=EPSILON),
        }.items():
            inside(answer)
            x, aim = number(answer.value), level * len(numbers)
            few = 4 if level in (0, 1) else 1
            assert sum(v < x - cell for v in numbers) <= aim + few
            assert sum(v <= x + cell for v in numbers) >= aim - few
            assert type(answer.value) is (type(bounds[0]) if column != "age" and how != "mean" else type(answer.value))
            low, high = answer.interval()
            if 0 < level < 1:  # the quantile itself, up to half a value either way
                exact = numbers[math.ceil(aim) - 1]
                assert number(low) - cell <= exact <= number(high) + cell
            if level == 0.9:
                assert (low, high) == bounds  # no interval was asked for
            assert answer.interval(0.999) == bounds  # of a higher level than was planned


def test_quantiles_are_in_order_and_whole_numbers_stay_whole() -> None:
    data = opened().group_by("user", keys=list(range(60)), max_groups=1)
    levels = [0.9, 0.1, 0.5, 0.25, 0.75]
    for column, bounds in (("kids", KIDS), ("age", AGES)):
        results = data.quantiles(column, levels, bounds=bounds, epsilon=0.5)
        label = f"quantile({column})"
        assert list(results.columns) == [f"{label} {q:g}" for q in sorted(levels)]
        for i in range(len(results)):
            row = [answers[i].value for answers in results.columns.values()]
            assert row == sorted(row)
            assert all(bounds[0] <= x <= bounds[1] for x in row)
            assert all(type(x) is (int if column == "kids" else float) for x in row)


def test_sums_of_whole_numbers_are_whole_alone_and_shared() -> None:
    data = opened()
    exact = sum(values(ROWS, "kids", KIDS, None))
    alone = data.sum("kids", bounds=KIDS, epsilon=EPSILON)
    shared = data.select(sum=ask.sum("kids", KIDS), mean=ask.mean("kids", KIDS), epsilon=EPSILON)["sum"][0]
    for answer in (alone, shared):
        near(answer, exact, 6)
        assert all(type(x) is int for x in (answer.value, *answer.interval(0.5), *answer.interval(LEVEL)))
    assert type(data.sum("flag", bounds=(0, 1), epsilon=EPSILON).value) is int
    assert type(data.sum("kids", bounds=(0, 5.5), epsilon=EPSILON).value) is float
    # Of one value a unit it is, unless that is its mean.
    for how in ("mean", "sum", "min", "max", "last"):
        found = opened(max_rows=None).sum("kids", bounds=KIDS, **taken(how), epsilon=EPSILON)
        near(found, sum(values(ROWS, "kids", KIDS, how)), 6)
        assert type(found.value) is (float if how == "mean" else int)


def test_conditions_and_derived_columns() -> None:
    data = opened().where(col("age").between(18, 65)).where(~col("ward").is_in([WARDS[0]]) | (col("kids") == 2))
    kept = [
        row for row in ROWS
        if row["age"] is not None and 18 <= row["age"] <= 65 and (row["ward"] != WARDS[0] or row["kids"] == 2)
    ]  # fmt: skip
    near(data.count(epsilon=EPSILON), len(kept), 2)
    near(data.count_units(epsilon=EPSILON), units(kept), 1)
    derived = data.with_columns(month=col("time").month(), bill=col("price") * 2 + 1, age=col("age") - 18)
    near(derived.where(col("month") == 2).count(epsilon=EPSILON), sum(r["day"].month == 2 for r in kept), 2)
    exact = statistics.fmean(2 * float(row["price"]) + 1 for row in kept)
    near(derived.mean("bill", bounds=(0, 300), epsilon=EPSILON), exact, 4)
    near(derived.mean("age", bounds=(0, 50), epsilon=EPSILON), statistics.fmean(row["age"] - 18 for row in kept), 1)
    near(derived.share(col("bill") > 101, epsilon=EPSILON), sum(row["price"] > 50 for row in kept) / len(kept), 0.01)
    again = derived.with_columns(twice=col("bill") * 2).mean("twice", bounds=(0, 600), epsilon=EPSILON)
    near(again, 2 * exact, 8)


BY: dict[str, tuple[tuple[Any, ...], Callable[[Row], Any], list[Any]]] = {
    "text": (("ward",), lambda row: row["ward"], [*WARDS, "'; DROP TABLE visits; --", ""]),
    "truth": (("flag",), lambda row: row["flag"], [True, False]),
    "dates": (("day",), lambda row: row["day"], [ROWS[0]["day"], ROWS[1]["day"], dt.date(1900, 1, 1)]),
    "numbers": (("user",), lambda row: row["user"], [0, 5, 7, -1, 2**63, 2**70]),
    "a part of a time": ((col("time").month(),), lambda row: row["time"].month, MONTHS),
    "a condition": ((col("age") > 50,), lambda row: None if row["age"] is None else row["age"] > 50, [False, True]),
    "text and a part": (
        ("ward", col("time").month()),
        lambda row: (row["ward"], row["time"].month),
        [(ward, month) for ward in WARDS[:3] for month in (1, 3, 9)],
    ),
}


@pytest.mark.parametrize("name", BY)
def test_groups_of_every_kind(name: str) -> None:
    by, of, keys = BY[name]
    results = opened().group_by(*by, keys=keys).select(n=ask.count(), people=ask.count_units(), epsilon=EPSILON)
    assert len(results) == len(keys)
    for key in keys:
        rows = [row for row in ROWS if of(row) == key and type(of(row)) is type(key)]
        found = results.at(*(key if isinstance(key, tuple) else (key,)))
        near(found["n"], len(rows), 8)
        near(found["people"], units(rows), 2)


def test_caps_bound_what_a_unit_counts() -> None:
    data = opened()
    assert data.with_caps(max_rows=1).count(epsilon=EPSILON).value == USERS
    by_ward = data.group_by("ward", keys=WARDS, max_groups=1).count_units(epsilon=EPSILON)
    assert sum(answer.value for answer in by_ward["units"]) == USERS
    each = [units([row for row in ROWS if row["ward"] == ward]) for ward in WARDS]
    assert sum(each) > USERS
    assert all(answer.value <= most for answer, most in zip(by_ward["units"], each, strict=True))
    (note,) = by_ward.notes
    assert note == "a unit counts in at most 1 group; of units in more, some do not count"
    # Where a unit can be in all groups, nothing is cut off and nothing is noted.
    assert data.group_by("ward", keys=WARDS).count_units(epsilon=EPSILON).notes == ()
    # Of 5 rows 3 are counted where 3 of them may be.
    rows = [{"user": i % 10, "x": float(i // 10)} for i in range(50)]
    few = opened(pd.DataFrame(rows), max_rows=3)
    assert few.count(epsilon=EPSILON).value == 30
    mean = few.mean("x", bounds=(0, 4), epsilon=EPSILON)
    assert 0.9 <= mean.value <= 3.1  # of the 3 smallest, and of the 3 largest


def test_units_of_several_columns() -> None:
    data = opened(unit=["ward", "user"])
    exact = len({(row["ward"], row["user"]) for row in ROWS})
    assert exact > USERS
    near(data.count_units(epsilon=EPSILON), exact, 1)
    assert "unit          ward and user;" in data.plan.count_units(epsilon=1).explain()


def test_known_size_of_columns_that_are_never_null() -> None:
    """Under substitution, with a public size, means, sums and variances are drawn by themselves and need less noise."""
    data = opened(neighbours="substitute", size=USERS, max_rows=None)
    filled = col("kids").fill_null(0)
    rows = [{**row, "kids": row["kids"] or 0} for row in ROWS]
    exact = values(rows, "kids", KIDS, "mean")
    near(data.mean(filled, bounds=KIDS, epsilon=EPSILON), statistics.fmean(exact), 0.05)
    near(data.variance(filled, bounds=KIDS, per_unit="mean", epsilon=EPSILON), statistics.pvariance(exact), 0.2)
    near(data.std(filled, bounds=KIDS, per_unit="mean", epsilon=EPSILON), statistics.pstdev(exact), 0.1)
    near(data.sum(filled, bounds=KIDS, per_unit="mean", epsilon=EPSILON), math.fsum(exact), 1)
    sure = data.plan.mean(filled, bounds=KIDS, epsilon=1)
    (draw,) = (leaf for leaf, _ in sure.event.leaves())
    assert draw.mechanism.sensitivity == pytest.approx(6 / USERS, rel=1e-4)  # type: ignore[attr-defined]
    (draw,) = (leaf for leaf, _ in data.plan.sum(filled, bounds=(2, 6), per_unit="sum", epsilon=1).event.leaves())
    assert draw.mechanism.sensitivity == pytest.approx(4, rel=1e-4)  # type: ignore[attr-defined]
    assert (draw.mechanism.domain.lower, draw.mechanism.domain.upper) == (2 * USERS, 6 * USERS)  # type: ignore[attr-defined]
    # With a condition nobody knows how many units are left.
    (draw,) = (leaf for leaf, _ in data.where(col("age") > 3).plan.mean(filled, bounds=KIDS, epsilon=1).event.leaves())
    assert draw.mechanism.sensitivity.value > 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [5, 10**6])
def test_a_wrong_size_costs_accuracy_only(size: int) -> None:
    """What one unit moves stays within what was promised, also where the size is not the number of units."""
    for what in ("mean", "sum", "variance"):
        found = []
        for last in (0.0, 1.0):
            table = pd.DataFrame({"user": range(100), "x": [*([0.0] * 49), *([1.0] * 50), last]})
            data = opened(table, neighbours="substitute", size=size, max_rows=None)
            plan = getattr(data.plan, what)(col("x").fill_null(0), bounds=(0, 1), per_unit="sum", epsilon=EPSILON)
            ((part, drawn),) = plan.chosen.values()
            numbers = plan._request.run(data.source).numbers
            exact = part.value(plan._request.caps, *(numbers[name][0] for name in part.measures()))
            found.append(min(max(exact, drawn.mechanism.domain.lower), drawn.mechanism.domain.upper))
        assert abs(found[1] - found[0]) <= drawn.mechanism.sensitivity


# ---------------------------------------------------------------- several questions in one plan


def draws(plan: Plan) -> list[tuple[Any, int]]:
    """The mechanisms that a plan draws from, and how often."""
    return [(getattr(leaf, "mechanism", leaf), times) for leaf, times in plan.event.leaves()]


def test_questions_about_the_same_values_share_a_part() -> None:
    data = opened()
    all_of_it: dict[str, Any] = {
        "n": ask.count(), "mean": ask.mean("age", AGES), "sum": ask.sum("age", AGES),
        "variance": ask.variance("age", AGES), "std": ask.std("age", AGES),
    }  # fmt: skip
    together = data.plan.select(all_of_it, epsilon=1)
    ((shared, _),) = draws(together)
    ((alone, _),) = draws(data.plan.variance("age", bounds=AGES, epsilon=1))
    assert shared.scale == alone.scale
    assert "100 % of the budget together" in together.explain()
    results = data.plan.select(all_of_it, epsilon=EPSILON).run()
    for name, exact in {"n": len(ROWS), **{n: wanted(ROWS, "rows of a user")[n][1] for n in ("sum", "std")}}.items():
        near(results[name][0], exact, 2 * WIDTHS.get(name, 4))
    assert results["std"][0].value == pytest.approx(math.sqrt(results["variance"][0].value))
    # Other bounds, or another column, are other values.
    apart = data.plan.select(a=ask.mean("age", AGES), b=ask.mean("age", (0, 99)), c=ask.mean("kids", KIDS), epsilon=1)
    assert len(draws(apart)) == 3
    assert apart.price().epsilon == pytest.approx(1.0, abs=1e-8)
    assert together.price().epsilon == pytest.approx(1.0, abs=1e-8)


def test_what_is_expected_of_a_shared_part_is_what_is_seen() -> None:
    """The expected errors of a count, a sum and a mean that share cells, beside those of 600 groups without a row.

    The mean square of 600 draws is within a factor 1.6 of what is expected (alpha < 1e-9 for these laws), and an
    expectation without the number of cells would be refused.
    """
    data = opened().group_by("user", keys=list(range(1000, 1600)), max_groups=1)
    plan = data.plan.select(n=ask.count(), s=ask.sum("age", (-50, 100)), v=ask.variance("age", (-50, 100)), epsilon=1)
    words = {line.split()[0]: line for line in plan.explain().splitlines() if "error about" in line}
    cells = plan._draw()["parts"]["p0"]
    for name, weights in (("n", [1.0, 1.0, 1.0, 1.0]), ("s", [-50.0, 25.0, 100.0, 0.0])):
        expected = float(words[name].rsplit("error about ", 1)[1])
        seen = math.sqrt(statistics.fmean(sum(w * x for w, x in zip(weights, row, strict=True)) ** 2 for row in cells))
        assert expected / 1.25 < seen < expected * 1.25


def test_weights_split_the_budget() -> None:
    data = opened()
    asks = {"a": ask.median("age", AGES, level=None, weight=3), "b": ask.count_units(weight=1)}
    plan = data.plan.select(asks, epsilon=0.4)
    (pick, _), (count, _) = draws(plan)
    assert pick.epsilon == pytest.approx(0.3)
    assert count.scale == pytest.approx(10)
    assert "75 % of the budget" in plan.explain()
    assert "25 % of the budget" in plan.explain()
    assert data.plan.select(asks, epsilon=0.4).price().epsilon == pytest.approx(0.4)


def test_gaussian_noise_is_taken_where_there_is_less_of_it() -> None:
    data = opened(budget=ib.Budget(epsilon=1e5, delta=0.1), max_rows=1)
    for groups, family in ((1, ib.Laplace), (30, ib.Gaussian)):
        view = data.group_by("user", keys=list(range(30)), max_groups=groups)
        plan = view.plan.count_units(epsilon=1, delta=1e-6)
        ((mechanism, times),) = draws(plan)
        assert type(mechanism) is family
        assert times == groups
        ((laplace, _),) = draws(view.plan.count_units(epsilon=1))
        assert type(laplace) is ib.Laplace
        spread = mechanism.scale if family is ib.Gaussian else mechanism.scale * math.sqrt(2)
        assert spread <= laplace.scale * math.sqrt(2)
        assert plan.event.guarantee().delta(1.0) <= 1e-6
        results = view.count_units(epsilon=EPSILON, delta=1e-6)
        for answer in results["units"]:
            inside(answer)
    single = data.count_units(epsilon=EPSILON, delta=1e-6)
    near(single, USERS, 4)


def test_rho_pays_with_gaussian_noise() -> None:
    data = opened(budget=ib.Budget(rho=20_000))
    asks = {"n": ask.count(), "age": ask.mean("age", AGES), "sd": ask.std("age", AGES), "q": ask.median("age", AGES)}
    plan = data.plan.select(asks, rho=10_000)
    assert ib.Gaussian in {type(mechanism) for mechanism, _ in draws(plan)}
    assert plan.event.guarantee().zcdp() == pytest.approx(10_000)
    results = plan.run()
    assert data.spent()["rho"] <= 10_000
    assert data.spent()["rho"] == pytest.approx(10_000)
    exact = wanted(ROWS, "rows of a user")
    near(results["n"][0], len(ROWS), 4)
    near(results["age"][0], exact["age"][1], 1)
    near(results["sd"][0], exact["std"][1], 2)
    near(data.histogram("age", [0, 50, 100], rho=5_000)["age"][0], sum(v < 50 for v in
         values(ROWS, "age", AGES, None)), 4)  # fmt: skip


# ---------------------------------------------------------------- groups that are not public


def test_groups_of_the_data_are_found_and_those_of_one_unit_never() -> None:
    lonely = {**ROWS[0], "user": 10**6, "ward": "only one"}
    table = pa.Table.from_pylist([*ROWS, lonely], schema=SCHEMA)
    whole = opened(table, budget=ib.Budget(epsilon=1e6, delta=0.1))
    data = whole.group_by("ward", max_groups=2)
    for _ in range(8):
        results = data.select(n=ask.count(), age=ask.mean("age", AGES), epsilon=EPSILON, delta=1e-6)
        assert results.keys == tuple((ward,) for ward in sorted(WARDS))
    for ward in WARDS:
        rows = [row for row in ROWS if row["ward"] == ward]
        near(results.at(ward)["n"], len(rows), 8)
        inside(results.at(ward)["age"])
    plan = data.plan.count_units(epsilon=EPSILON, delta=1e-6)
    assert plan._request.at_least == 2  # nothing of a group of one unit leaves the engine
    assert "of 1 never" in plan.explain()
    assert "keys          groups of" in plan.explain()
    several = whole.group_by("ward", col("time").month(), max_groups=4).count_units(epsilon=EPSILON, delta=1e-6)
    assert set(several.keys) <= {(row["ward"], row["time"].month) for row in ROWS}
    assert len(several) > 8
    by_day = whole.group_by("day", max_groups=4).count_units(epsilon=EPSILON, delta=1e-6)
    assert all(type(day) is dt.date for (day,) in by_day.keys)


def test_where_no_group_is_found_the_table_is_empty() -> None:
    data = opened(budget=ib.Budget(epsilon=1e6, delta=0.1)).where(col("age") == 1e9).group_by("ward")
    results = data.select(n=ask.count(), q=ask.quantiles("age", [0.1, 0.9], AGES), epsilon=1, delta=1e-6)
    assert len(results) == 0
    assert list(results) == []
    assert "ward" in str(results)
    assert results.to_pandas().empty
    assert results.to_polars().is_empty()
    assert results.to_arrow().num_rows == 0
    assert json.loads(results.to_json())["rows"] == []
    assert len(data.histogram("age", [0, 50, 100], epsilon=1, delta=1e-6)) == 0
    for change in (lambda: results.summing_to(5, "n"), lambda: results.as_shares("n")):
        with pytest.raises(ParameterError, match="'n' must have"):
            change()


def test_small_groups_are_suppressed_by_their_units() -> None:
    keys = [*WARDS, "none"]
    people = {ward: units([row for row in ROWS if row["ward"] == ward]) for ward in keys}
    rows = {ward: sum(row["ward"] == ward for row in ROWS) for ward in keys}
    limit = max(people.values()) + 5
    assert max(rows.values()) > limit + 5  # rows do not decide
    for asks in ({"age": ask.mean("age", AGES)}, {"n": ask.count()}, {"people": ask.count_units()}):
        results = opened().group_by("ward", keys=keys, suppress_below=limit).select(asks, epsilon=EPSILON)
        assert list(results.columns) == list(asks)
        assert all(answer.suppressed for column in results.columns.values() for answer in column)
        assert "suppressed" in str(results)
    shown = opened().group_by("ward", keys=keys, suppress_below=5).mean("age", bounds=AGES, epsilon=EPSILON)
    assert [answer.suppressed for answer in shown["age"]] == [False] * 4 + [True]
    hidden = shown.at("none")["age"]
    assert (hidden.value, hidden.notes, repr(hidden)) == (None, ("too few units",), "Answer(suppressed)")
    assert hidden.interval() == (0, 100)
    assert shown.to_dict()["age_lower"][4] is None
    assert "suppressed" in hidden._repr_html_()


# ---------------------------------------------------------------- histograms


def test_a_histogram_has_a_row_for_each_bin() -> None:
    edges = [0, 25, 50.5, 100]
    numbers = values(ROWS, "age", AGES, None)
    exact = [sum(low <= v < high for v in numbers) for low, high in ((-1, 25), (25, 50.5), (50.5, 101))]
    results = opened().histogram("age", edges, epsilon=EPSILON)
    assert results.by == ("bin",)
    assert results.keys == (("[0, 25)",), ("[25, 50.5)",), ("[50.5, 100]",))
    for answer, count in zip(results["age"], exact, strict=True):
        near(answer, count, 2)
        assert type(answer.value) is int
    grouped = opened().group_by("flag", keys=[True, False]).histogram("age", edges, epsilon=EPSILON)
    assert grouped.by == ("flag", "bin")
    assert len(grouped) == 6
    for flag in (True, False):
        theirs = values([row for row in ROWS if row["flag"] is flag], "age", AGES, None)
        near(grouped.at(flag, "[25, 50.5)")["age"], sum(25 <= v < 50.5 for v in theirs), 4)
    beside = opened().select(h=ask.histogram("age", edges), n=ask.count(), epsilon=EPSILON)
    assert list(beside.columns) == ["h [0, 25)", "h [25, 50.5)", "h [50.5, 100]", "n"]
    days = opened().histogram("day", [dt.date(2024, m, 1) for m in (1, 2, 3, 5)], epsilon=EPSILON)
    near(days["day"][0], sum(row["day"].month == 1 for row in ROWS), 2)
    assert days.keys[0] == ("[2024-01-01, 2024-02-01)",)


# ---------------------------------------------------------------- help with bounds and caps


def test_suggested_bounds_and_caps_are_private_paid_for_and_recorded() -> None:
    data = opened()
    bounds = data.suggest_bounds("age", epsilon=100)
    assert bounds.bounds[1] in (128, 256)  # of the unit with 250 it may be another row that counts
    assert -16 <= bounds.bounds[0] <= 1
    assert "private; cost epsilon 100" in str(bounds)
    assert data.spent() == {"epsilon": 100.0}
    data.mean("age", bounds=bounds["bounds"], epsilon=1)
    positive = data.where(col("age") > 40).suggest_bounds(col("age") * 1000, epsilon=100).bounds
    assert positive == (2.0**15, 2.0**18)
    found = [opened().where(col("age") > 1e9).suggest_bounds("age", epsilon=1) for _ in range(4)]
    nothing = [one for one in found if one.bounds is None]  # each may be wrong with a chance of 1 %: all are with 1e-8
    assert nothing
    assert "more epsilon" in str(nothing[0])
    caps = data.suggest_caps(epsilon=100, share=0.9)
    assert dict(caps.values) == {"max_rows": 4}
    view = data.group_by("ward", max_groups=1)
    caps = view.suggest_caps(epsilon=100, share=0.5, key="caps")
    assert caps["max_groups"] == 1
    assert caps["max_rows"] in (1, 2)
    spent = data.spent()
    again = view.suggest_caps(epsilon=100, share=0.5, key="caps")
    assert again.values == caps.values
    assert again.reason == f"{caps.reason} Given before under this key, at no cost."
    assert data.spent() == spent
    kinds = [record.content["event"]["event"] for record in data.history() if record.kind == "reserve"]
    assert len(kinds) == 5
    # Caps can be asked for before any is known.
    unknown = opened(max_rows=None, max_groups=None).group_by("ward")
    assert unknown.suggest_caps(epsilon=100)["max_groups"] in (1, 2)
    assert unknown.where(col("age") > 5).suggest_caps(epsilon=100)["max_groups"] in (1, 2)


# ---------------------------------------------------------------- results


def results_of_wards() -> Results:
    view = opened().group_by("ward", keys=[*WARDS, "none"], suppress_below=3)
    asks = {"people": ask.count_units(), "age": ask.mean("age", AGES), "last": ask.max("day", DAYS)}
    found = view.select(asks, epsilon=EPSILON)
    assert isinstance(found, Results)
    return found


def test_results_go_elsewhere() -> None:
    results = results_of_wards()
    names = ["ward"] + [f"{name}{end}" for name in ("people", "age", "last") for end in ("", "_lower", "_upper")]
    plain = results.to_dict()
    assert list(plain) == names
    assert plain["ward"] == [*WARDS, "none"]
    assert plain["people"] == [answer.value for answer in results["people"]]
    assert plain["people"][4] is None
    for row, ward in zip(results, WARDS, strict=False):
        assert row["ward"] == ward
        assert row["age"] is results.at(ward)["age"]
    pandas, polars, arrow = results.to_pandas(), results.to_polars(), results.to_arrow()
    assert list(pandas.columns) == polars.columns == arrow.column_names == names
    assert polars.schema["people"] == pl.Int64
    assert polars.schema["last_upper"] == pl.Date
    assert arrow.to_pydict() == plain
    assert polars.to_dict(as_series=False) == plain
    assert pandas["age"].tolist()[:4] == plain["age"][:4]
    wide = results.to_dict(level=0.999)
    assert wide["age_lower"][0] < plain["age_lower"][0]
    record = json.loads(results.to_json(indent=None))
    assert record["rows"][0]["last"] == plain["last"][0].isoformat()
    assert record["rows"][4]["age"] is None
    assert record["notes"] == list(results.notes)
    assert record["spent"] == dict(results.spent)
    infinite = opened().group_by("ward", keys=WARDS).sum("age", bounds=(-1e9, 1e9), epsilon=1).to_json()
    assert "Infinity" not in infinite


def test_results_print_well() -> None:
    results = results_of_wards()
    lines = str(results).splitlines()
    assert lines[0].split()[:3] == ["ward", "people", "95"]
    assert set(lines[1]) <= {"-", " "}
    assert lines[6].split() == ["none", "suppressed", "suppressed", "suppressed"]
    assert any(line.startswith("spent so far: epsilon 4") for line in lines)
    assert sum(line.startswith("note: ") for line in lines) == len(results.notes)
    assert repr(results) == str(results)
    html = results._repr_html_()
    assert html.count("<tr>") == 6
    assert "日本&quot;" in html
    long = opened().group_by("user", keys=list(range(50))).count(epsilon=1)
    assert "... and 10 more groups" in str(long)
    answer = results.at(WARDS[0])["age"]
    assert repr(answer).startswith("Answer(")
    assert "95 % interval" in repr(answer)
    assert "<b>" in answer._repr_html_()
    assert float(answer) == answer.value
    for error in (KeyError, MissingColumn):
        for wrong in (results.__getitem__, results.plot, results.as_shares, lambda name: results.summing_to(7, name)):
            with pytest.raises(error, match=r"^Results: .* 'ages'. There is 'people', 'age', 'last'.$"):
                wrong("ages")
        with pytest.raises(error, match="must be one of the groups"):
            results.at("elsewhere")


def test_results_are_drawn() -> None:
    results = results_of_wards()
    figure = results.plot("age", level=0.9)
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [*WARDS, "none"]
    assert "age: answer (dot) and 90 % interval" in axes.get_xlabel()
    assert [text.get_text() for text in axes.texts] == ["suppressed"]
    first, last = sorted(axes.get_ylim())
    assert first < -0.3
    assert last > 4.3  # room above the first and below the last
    assert results.plot("last").axes
    assert results.plot().axes[0].get_xlabel().startswith("people")


def test_notes_say_what_bounds_and_caps_leave_out() -> None:
    answer = opened().mean("age", bounds=(18, 65), epsilon=1)
    assert answer.notes == (
        "values below 18 count as 18, above 65 as 65; missing ones do not count",
        "at most 4 rows of a unit count in a group; of units with more, some do not count",
    )
    assert "the mean of its own values" in " ".join(opened(max_rows=None).mean("age", bounds=AGES, epsilon=1).notes)
    assert "an extreme value cannot be told" in " ".join(opened().max("age", bounds=AGES, epsilon=1).notes)
    several = opened().quantiles("age", [0.5, 1], bounds=AGES, epsilon=1)
    assert "an extreme value cannot be told" in " ".join(several.notes)
    assert "one of its rows" in " ".join(opened().share(col("flag"), of="units", epsilon=1).notes)
    assert opened().count_units(epsilon=1).notes == ()


def test_parts_that_sum_to_a_total() -> None:
    view = opened().group_by("ward", keys=[*WARDS, "none"], max_groups=1)
    for _ in range(5):
        results = view.select(n=ask.count_units(), total=ask.sum("kids", (0, 5.5)), epsilon=0.2)
        for total in (0, 1, 7, 1000):
            parts = results.summing_to(total, "n")
            assert sum(answer.value for answer in parts["n"]) == total
            assert all(type(answer.value) is int and answer.value >= 0 for answer in parts["n"])
            assert parts["total"] == results["total"]
        real = results.summing_to(17.5, "total")
        assert sum(answer.value for answer in real["total"]) == pytest.approx(17.5)
        assert all(answer.value >= 0 for answer in real["total"])
        shares = results.as_shares()
        assert sum(shares.values()) == pytest.approx(1.0)
        assert all(0 <= share <= 1 for share in shares.values())
        assert list(shares) == list(results.keys)
    exact = results.summing_to(sum(answer.value for answer in results["n"]))
    assert [a.value for a in exact["n"]] == [a.value for a in results["n"]]
    nothing = opened().where(col("age") > 1e9).group_by("ward", keys=["x", "y"]).count(epsilon=EPSILON)
    assert nothing.as_shares() == {("x",): 0.5, ("y",): 0.5}
    with pytest.raises(ParameterError, match="whole number"):
        results.summing_to(1.5)
    with pytest.raises(ParameterError, match="from 0 to the total"):
        view.mean("age", bounds=AGES, epsilon=1).summing_to(101)
    with pytest.raises(ParameterError, match="none suppressed"):
        replace(results, columns={"n": (replace(results["n"][0], value=None),) * 5}).as_shares()


def test_columns_of_results_have_the_names_they_were_asked_by() -> None:
    table = pd.DataFrame({"user": range(20), "odd name": [0, 1] * 10, "when": [dt.date(2024, 1 + i % 2, 1)
                          for i in range(20)]})  # fmt: skip
    data = opened(table, types={"when": "date"}).with_columns(month=col("when").month())
    by = data.group_by("odd name", "month", col("user") > 3, keys=[(0, 1, True)]).count(epsilon=1)
    assert by.by == ("odd name", "month", "user > 3")
    assert data.mean("month", bounds=(1, 12), epsilon=EPSILON).value == pytest.approx(1.5, abs=0.5)
    results = data.select({"odd one": ask.mean("odd name", (0, 1)), "n": ask.count()}, epsilon=1)
    assert list(results.columns) == ["odd one", "n"]


# ---------------------------------------------------------------- the budget


ASKED: dict[str, Callable[[Any], Any]] = {
    "count": lambda q: q.count(epsilon=0.25),
    "three": lambda q: q.select(
        n=ask.count_units(weight=2), m=ask.mean("age", AGES), q=ask.median("age", AGES), epsilon=0.7
    ),
    "histogram": lambda q: q.histogram("age", [0, 10, 100], epsilon=0.3),
    "quantiles": lambda q: q.quantiles("age", [0.1, 0.5, 0.9], bounds=AGES, epsilon=0.1),
    "share": lambda q: q.share(col("flag"), epsilon=0.123456789),
}


def views(data: Dataset) -> dict[str, Dataset]:
    return {
        "whole": data,
        "public groups": data.group_by("ward", keys=WARDS, max_groups=3),
        "suppressed": data.group_by("ward", keys=WARDS, suppress_below=10),
    }


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
def test_the_price_is_known_before_and_is_what_is_spent(name: str, neighbours: str) -> None:
    data, calls = counting(neighbours=neighbours)
    for view in views(data).values():
        plan = ASKED[name](view.plan)
        before = view.scope._used()
        calls.clear()
        price = plan.price()
        if view is data and name in ("count", "share"):
            assert f"{plan.goal.epsilon:.6g}" in plan.explain()
        assert calls == {}, "price and explain ask the engine for nothing"
        assert price.fits
        assert price.epsilon <= plan.goal.epsilon
        assert price.epsilon == pytest.approx(plan.goal.epsilon, abs=1e-7)
        assert view.scope._used() == before
        plan.run()
        assert calls["rows"] > 0
        assert view.scope._used() == tuple(u + c for u, c in zip(before, price.charge, strict=True))


def test_a_plan_can_be_run_again_and_is_paid_again() -> None:
    data = opened(budget=ib.Budget(epsilon=0.3))
    plan = data.plan.count(epsilon=0.1)
    assert len({plan.run().value for _ in range(3)}) > 1  # all equal by chance: below 1 in 1000 at a scale of 40
    assert data.remaining() == {"epsilon": 0.0}
    with pytest.raises(BudgetExceeded):
        plan.run()


def test_nothing_is_read_without_budget() -> None:
    data, calls = counting(budget=ib.Budget(epsilon=1))
    plan = data.plan.mean("age", bounds=AGES, epsilon=0.6)
    plan.run()
    calls.clear()
    with pytest.raises(BudgetExceeded, match=r"needs epsilon 0.6; left for one release: epsilon 0.4"):
        plan.run()
    assert not plan.price().fits
    assert "no room" in plan.explain()
    for more in (
        lambda: data.suggest_bounds("age", epsilon=0.5),
        lambda: data.suggest_caps(epsilon=0.5),
        lambda: data.count(epsilon=0.400000001),
    ):
        with pytest.raises(BudgetExceeded):
            more()
    assert calls == {}
    assert data.spent() == {"epsilon": 0.6}
    data.count(epsilon=0.4)
    assert data.remaining() == {"epsilon": 0.0}


def test_many_small_answers_cost_less_with_delta() -> None:
    data = opened(budget=ib.Budget(epsilon=1, delta=1e-6))
    for _ in range(40):
        data.plan.count_units(epsilon=0.03).run()
    assert data.spent()["epsilon"] < 1
    assert data.spent()["delta"] <= 1e-6


def test_a_key_gives_the_same_answers_at_no_cost() -> None:
    data, calls = counting(budget=ib.Budget(epsilon=1e4, delta=0.1))
    asked: dict[str, Callable[[], Any]] = {
        "whole": lambda: data.mean("age", bounds=AGES, epsilon=0.1, key="whole"),
        "groups": lambda: data.group_by("ward", keys=WARDS).select(
            n=ask.count(), q=ask.quantiles("age", [0.2, 0.8], AGES), epsilon=0.1, key="groups"
        ),
        "found": lambda: data.group_by("day", max_groups=4).count_units(epsilon=100, delta=1e-6, key="found"),
        "histogram": lambda: data.histogram("age", [0, 1, 2], epsilon=0.1, key="histogram"),
        "bounds": lambda: data.suggest_bounds("age", epsilon=0.1, key="bounds"),
    }
    first = {name: call() for name, call in asked.items()}
    calls.clear()
    spent = data.spent()
    for name, call in asked.items():
        again = call()
        if isinstance(again, Results):
            assert again.keys == first[name].keys
            assert again.to_dict() == first[name].to_dict()
            assert (REPLAYED in again.notes) == (len(again) > 0)
            assert REPLAYED not in first[name].notes
        elif isinstance(again, Answer):
            assert (again.value, again.interval(0.5)) == (first[name].value, first[name].interval(0.5))
            assert again.notes == (*first[name].notes, REPLAYED)
        else:
            assert again.values == first[name].values
            assert again.reason == f"{first[name].reason} Given before under this key, at no cost."
    assert calls == {}
    assert data.spent() == spent
    assert len(first["found"]) > 0


def test_a_key_belongs_to_one_question() -> None:
    """What reads the recorded numbers in another way is another request: the key is refused, not misread."""
    data = opened()
    many = list(range(150))
    data.select(a=ask.mean("age", AGES), b=ask.mean("kids", AGES), epsilon=1, key="k")
    data.group_by("user", keys=many).count_units(epsilon=1, key="many")
    data.median("age", bounds=AGES, epsilon=1, key="median")
    data.suggest_bounds("age", epsilon=1, key="bounds")
    data.group_by("ward").suggest_caps(epsilon=1, key="caps")
    spent = data.spent()
    others: list[Callable[[], Any]] = [
        lambda: data.select(b=ask.mean("kids", AGES), a=ask.mean("age", AGES), epsilon=1, key="k"),
        lambda: data.select(a=ask.mean("age", AGES), c=ask.mean("kids", AGES), epsilon=1, key="k"),
        lambda: data.where(col("age") > 3).select(
            a=ask.mean("age", AGES), b=ask.mean("kids", AGES), epsilon=1, key="k"
        ),
        lambda: data.group_by("user", keys=[*many[:-1], 10**6]).count_units(epsilon=1, key="many"),
        lambda: data.group_by("user", keys=many[::-1]).count_units(epsilon=1, key="many"),
        lambda: data.select({"median(age)": ask.median("age", AGES, cells=100)}, epsilon=1, key="median"),
        lambda: data.where(col("age") > 50).suggest_bounds("age", epsilon=1, key="bounds"),
        lambda: data.group_by("flag").suggest_caps(epsilon=1, key="caps"),
    ]
    differs = ["'asks'", "'asks'", "'where'", "'digest'", "'digest', 'keys'", "'asks'", "'where'", "'by'"]
    for other, parts in zip(others, differs, strict=True):
        with pytest.raises(LedgerConflict, match=f"another event at [^ ]*, which differs in {parts}\\."):
            other()
    with pytest.raises(LedgerConflict, match=r"another event at [^ ]*, which differs in 'table'\."):
        replace(data, source=Source.open(ARROW.drop_columns(["flag"]))).suggest_bounds("age", epsilon=1, key="bounds")
    assert data.spent() == spent


def test_a_ledger_file_is_shared_by_data_sets_and_openings(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    options: dict[str, Any] = {"ledger": path, "name": "visits", "budget": ib.Budget(epsilon=1)}
    first, second = opened(**options), opened(ARROW.slice(0, 50), **options)
    first.count(epsilon=0.5)
    second.count(epsilon=0.25)
    assert first.spent() == second.spent() == {"epsilon": 0.75}
    with pytest.raises(BudgetExceeded, match="no room"):
        first.count(epsilon=0.5)
    assert opened(ledger=path, name="visits", budget=None).remaining() == {"epsilon": 0.25}
    assert opened(**options | {"name": "others"}).spent() == {"epsilon": 0.0}
    under = opened(**options | {"name": ("visits", "alice"), "budget": ib.Budget(epsilon=0.2)})
    under.count(epsilon=0.2)
    assert under.name == "visits/alice"
    assert first.remaining() == {"epsilon": 0.05}
    with pytest.raises(LedgerConflict, match="epsilon=1"):
        opened(**options | {"budget": ib.Budget(epsilon=2)})
    with pytest.raises(LedgerConflict, match="no scope"):
        opened(ledger=path, name="nobody", budget=None)
    with ib.Ledger.open(path) as ledger:
        assert opened(ledger=ledger, name="visits", budget=None).spent() == {"epsilon": 0.95}
        assert ledger.verify().ok


def test_a_budget_renews() -> None:
    ledger = ib.Ledger.open()
    ledger._store.clock = lambda: dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC)
    data = opened(budget=ib.Budget(epsilon=1), ledger=ledger, renews="month")
    data.count(epsilon=1)
    with pytest.raises(BudgetExceeded):
        data.count(epsilon=0.1)
    ledger._store.clock = lambda: dt.datetime(2024, 2, 1, tzinfo=dt.UTC)
    assert data.remaining() == {"epsilon": 1.0}
    data.count(epsilon=1)
    assert data.spent() == {"epsilon": 1.0}
    kinds = [record.kind for record in data.history()]
    assert kinds.count("commit") == 2
    assert "renew" in kinds


CRASHING = """
import os, sys
import inbounds as ib
from inbounds import ask
from tests.query_support import WARDS, opened

data = opened(ledger=sys.argv[1], name="visits", budget=ib.Budget(epsilon=2))
view = data.group_by("ward", keys=WARDS)
print(view.select(n=ask.count(), age=ask.mean("age", (0, 100)), epsilon=0.5, key="first").to_json(), flush=True)
data.source.engine.rows = lambda frame: os._exit(7)
data.count(epsilon=0.25, key="second")
"""


def test_answers_outlive_a_process_and_what_a_crash_leaves_is_spent(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    command = [sys.executable, "-c", CRASHING, str(path)]
    dead = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert dead.returncode == 7, dead.stderr
    data, calls = counting(ledger=path, name="visits", budget=None)
    assert data.spent() == {"epsilon": 0.75}
    view = data.group_by("ward", keys=WARDS)
    again = view.select(n=ask.count(), age=ask.mean("age", AGES), epsilon=0.5, key="first")
    told = json.loads(dead.stdout)
    assert json.loads(again.to_json())["rows"] == told["rows"]
    assert "rows" not in calls
    with pytest.raises(LedgerConflict, match="process died"):
        data.count(epsilon=0.25, key="second")
    assert [record.kind for record in data.scope.unfinished()] == ["reserve"]
    assert data.spent() == {"epsilon": 0.75}
    data.count(epsilon=0.25, key="third")
    assert data.spent() == {"epsilon": 1.0}


def test_an_engine_that_fails_has_spent_the_budget() -> None:
    source = Source.open(ARROW)

    class Failing(Counting):
        def rows(self, frame: Any) -> Any:
            raise RuntimeError("out of memory")

    data = opened(replace(source, engine=Failing(source.engine)))
    with pytest.raises(QueryFailed, match="RuntimeError"):
        data.count(epsilon=0.5)
    assert data.spent() == {"epsilon": 0.5}


# ---------------------------------------------------------------- what is said about a plan


def test_explain_says_everything() -> None:
    data = opened(ledger=None)
    view = data.where(col("age") > 18).group_by("ward", keys=WARDS, max_groups=2, suppress_below=5)
    asks = {"n": ask.count(), "age": ask.mean("age", AGES), "s": ask.share(col("flag"))}
    text = view.plan.select(asks, epsilon=1).explain()
    for words in (
        "data          a pyarrow Table, on DuckDB",
        "unit          user; neighbours differ by one unit more or less",
        "rows          where age > 18",
        "groups        by ward: 4 public groups; a unit counts in at most 2",
        "contribution  at most 4 rows of a unit in a group",
        "n             number of rows; error about",
        "age           mean of age of rows, at most 4 a user, bounds 0 to 100; error about",
        "s             share of rows, at most 4 a user, where flag; error about",
        "Laplace noise of scale",
        "one unit moves it by",
        "25 % of the budget",
        "suppressed    groups whose private number of units is below 5",
        "cost          ",
        "epsilon  delta = 0      1 ",
        "has room for it",
        "in memory: lost when this process ends",
    ):
        assert words in text, words
    text = data.plan.median("age", bounds=AGES, epsilon=1).explain()
    assert "median(age)   median of age of rows, at most 4 a user, bounds 0 to 100; error about" in text
    assert "exponential mechanism on a grid of 16384 cells" in text
    sized = opened(max_rows=None, neighbours="substitute", size=USERS)
    one = sized.plan.mean("age", bounds=AGES, epsilon=1).explain()
    assert (
        f"unit          user; neighbours differ by one unit replaced by another; {USERS} units, which is public" in one
    )
    assert "contribution  one value of a unit in a group" in one
    assert "age           mean of each user's mean of age, bounds 0 to 100; error about" in one
    row = opened(unit=None, max_rows=None, max_groups=None).plan.count(epsilon=1).explain()
    assert "unit          each row" in row
    assert "contribution" not in row
    assert "on average over the range" in sized.plan.count_units(epsilon=0.01).explain()  # why it was chosen


def test_the_query_is_shown_without_the_salt(monkeypatch: pytest.MonkeyPatch) -> None:
    salt = bytes(range(32))
    monkeypatch.setattr("inbounds.tables.request.fresh_salt", lambda: salt)
    sent: list[str] = []
    source = Source.open(ARROW)

    class Listening(Counting):
        def rows(self, frame: Any) -> Any:
            sent.append(frame.sql_query())
            return self.engine.rows(frame)

    data = opened(replace(source, engine=Listening(source.engine)), unit="name", max_rows=1)
    plan = data.group_by("ward", keys=WARDS, max_groups=1).plan.mean("age", bounds=AGES, epsilon=1)
    plan.run()
    assert salt.hex() in sent[0]
    shown = plan.explain(sql=True)
    assert salt.hex() not in shown
    assert "WITH" in shown
    assert not any(str(row["age"]) in shown for row in ROWS if row["age"])


def test_plans_and_data_sets_describe_themselves() -> None:
    data = opened(name="visits")
    assert repr(data) == (
        "<Dataset visits: a pyarrow Table, on DuckDB; the unit is user; Budget(epsilon=1000000.0)>"
    )  # fmt: skip
    plan = data.plan.select(n=ask.count(), s=ask.share(col("flag")), h=ask.histogram("age", [0, 1]), epsilon=1)
    assert repr(plan) == (
        "<Plan for visits: n: number of rows, s: share of rows, at most 4 a user, where flag, "
        "h: histogram of age of rows, at most 4 a user, 1 bins; epsilon 1>"
    )
    assert data.schema["age"] == "numbers"


@pytest.mark.parametrize("name", ASKED)
def test_an_event_can_be_written_down_and_tells_its_cost(name: str) -> None:
    for neighbours in ("add-remove", "substitute"):
        for view in views(opened(neighbours=neighbours)).values():
            plan = ASKED[name](view.plan)
            record = json.dumps(plan.event.to_json(), allow_nan=False)
            back = ib.events.from_json(json.loads(record))
            assert back == plan.event
            stated = plan.goal.epsilon
            assert back.guarantee().epsilon() <= stated
            assert back.guarantee().epsilon() == pytest.approx(stated, abs=1e-7)
            assert plan.run() is not None
            stored = [r.content["event"] for r in view.history() if r.kind == "reserve"][-1]
            assert ib.events.from_json(stored) == plan.event
    found = opened(budget=ib.Budget(epsilon=5, delta=1e-5)).group_by("ward").plan.count(epsilon=1, delta=1e-6)
    back = ib.events.from_json(json.loads(json.dumps(found.event.to_json())))
    assert back.guarantee().delta(1.0) <= 1e-6


# ---------------------------------------------------------------- every kind of table


#: What the columns of the table hold, for text.
TYPES = {
    **dict.fromkeys(("user", "kids"), "integer"),
    **dict.fromkeys(("name", "ward"), "text"),
    **dict.fromkeys(("age", "price"), "number"),
    "flag": "boolean",
    "day": "date",
    "time": "time",
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[[], Any]]:
    folder = tmp_path_factory.mktemp("tables")
    pa.parquet.write_table(ARROW, folder / "visits.parquet")
    pa.csv.write_csv(ARROW, folder / "visits.csv")
    return {
        "pandas": lambda: ARROW.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": lambda: pl.from_arrow(ARROW),
        "lazy polars": lambda: pl.scan_parquet(folder / "visits.parquet"),
        "arrow": lambda: ARROW,
        "parquet": lambda: folder / "visits.parquet",
        "csv": lambda: Source.open(folder / "visits.csv", types=TYPES),
        "relation": lambda: duckdb.connect().read_parquet(str(folder / "visits.parquet")),
        "ibis": lambda: ibis.duckdb.connect().read_parquet(folder / "visits.parquet"),
    }


@pytest.fixture(scope="module")
def spark(java: str, tables: dict[str, Callable[[], Any]]) -> Iterator[Any]:
    with spark_session() as session:
        yield session.read.parquet(str(tables["parquet"]()))


SALT = b"the same for every table"
PLANS: dict[str, Callable[[Dataset], Plan]] = {
    "groups": lambda data: data.where(col("age") < 95).group_by("ward", keys=WARDS, max_groups=1).plan.select(
        people=ask.count_units(), age=ask.variance("age", AGES), kids=ask.sum("kids", KIDS),
        q=ask.median("price", (0, 100)), flag=ask.share(col("flag"), of="units"), epsilon=500,
    ),
    "found": lambda data: data.with_caps(max_rows=2).group_by(col("time").month(), max_groups=2).plan.select(
        people=ask.count_units(), day=ask.mean("day", DAYS), epsilon=500, delta=1e-6
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def tallies() -> dict[str, Any]:
    """Of the Arrow table, before any noise; tests/test_query_engine.py compares them with plain Python."""
    return {name: tally(make(asked_of(ARROW))) for name, make in PLANS.items()}


@pytest.fixture
def salted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run keeps the same rows."""
    monkeypatch.setattr("inbounds.tables.request.fresh_salt", lambda: SALT)


def asked_of(table: Any) -> Dataset:
    return opened(table, unit="name", budget=ib.Budget(epsilon=1e6, delta=0.1))


def tally(plan: Plan) -> Any:
    found = plan._request.run(plan.data.source, salt=SALT)
    return found.keys, found.units, dict(found.numbers)


def same_answers(table: Any, tallies: dict[str, Any], run: Sequence[str] = tuple(PLANS)) -> None:
    """The same whole numbers before the noise, to the bit; and answers that go with them, of the same rows."""
    data = asked_of(table)
    for name, make in PLANS.items():
        plan = make(data)
        assert tally(plan) == tallies[name]
        if name not in run:
            continue
        results = plan.run()
        assert results.keys == tallies[name][0]
        for answer, count in zip(results["people"], tallies[name][1], strict=True):
            near(answer, count, 12)
        for column in results.columns.values():
            for answer in column:
                inside(answer)


@pytest.mark.parametrize(
    "name", ["pandas", "polars", "lazy polars", "arrow", "parquet", "csv", "relation", "ibis"]
)  # fmt: skip
@pytest.mark.usefixtures("salted")
def test_every_table_gives_the_same_numbers(
    name: str, tables: dict[str, Callable[[], Any]], tallies: dict[str, Any]
) -> None:
    same_answers(tables[name](), tallies)


@on_spark
@pytest.mark.usefixtures("salted")
def test_spark_gives_the_same_numbers(spark: Any, tallies: dict[str, Any]) -> None:
    same_answers(spark, tallies, ["found"])
    assert "a Spark DataFrame, on Spark" in repr(asked_of(spark))

"""Questions about tables that are wrong: refused by name, before anything is read and with nothing spent.

What only the data can show, such as an empty table or a column of nulls, is no error: it has an ordinary private
answer. No error shows a value of the table.
"""

from __future__ import annotations

import datetime as dt
import math
import random
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import inbounds as ib
from inbounds import ask, col
from inbounds.errors import (
    BudgetExceeded,
    InboundsError,
    MissingColumn,
    ParameterError,
    ParameterTypeError,
    QueryFailed,
)
from inbounds.tables import Answer, Dataset, Results, Source
from inbounds.tables.readers.frames import Arrow
from tests.query_support import ARROW, ROWS, SCHEMA, WARDS, Counting, counting, opened

pytestmark = pytest.mark.thinned(3)

NAN, INF = math.nan, math.inf
AGES = (0, 100)
SECRET = "canary" + "4711"  # in two parts, so that the lines of a traceback do not show it
DAY = dt.date(2024, 1, 1)
HUGE = 10**400
EARLY = dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=5)))  # of the year 0 in UTC
LATE = dt.datetime.max.replace(tzinfo=dt.UTC)

# ---------------------------------------------------------------- questions that cannot be

Wrong = tuple[Callable[[Dataset], Any], str]

NAMES: dict[str, Wrong] = {
    "a column that is nearly there": (lambda d: d.mean("Age", bounds=AGES, epsilon=1), "Did you mean 'age'"),
    "a column that is not there": (lambda d: d.sum("zzz", bounds=AGES, epsilon=1), "The columns are 'user'"),
    "a group that is not there": (lambda d: d.group_by("wards", keys=["a"]), "'ward'"),
    "a condition on nothing": (lambda d: d.where(col("agee") > 1), "'age'"),
    "a share of nothing": (lambda d: d.share(col("flags"), epsilon=1), "'flag'"),
    "a histogram of nothing": (lambda d: d.histogram("kid", [0, 1], epsilon=1), "'kids'"),
    "a quantile of nothing": (lambda d: d.median("prise", bounds=AGES, epsilon=1), "'price'"),
    "a derived column of nothing": (lambda d: d.with_columns(x=col("agee") + 1), "'age'"),
    "bounds for nothing": (lambda d: d.suggest_bounds("agee", epsilon=1), "'age'"),
    "a column that was not derived": (lambda d: d.mean("x", bounds=AGES, epsilon=1), "The columns are"),
}
TYPES: dict[str, Wrong] = {
    "a mean of text": (lambda d: d.mean("ward", bounds=AGES, epsilon=1), "text"),
    "a sum of dates": (lambda d: d.sum("day", bounds=(DAY, dt.date(2025, 1, 1)), epsilon=1), "mean or a quantile"),
    "a variance of times": (
        lambda d: d.variance("time", bounds=(dt.datetime(2024, 1, 1), dt.datetime(2025, 1, 1)), epsilon=1), "numbers",
    ),
    "numbers as bounds of dates": (lambda d: d.mean("day", bounds=AGES, epsilon=1), "dates"),
    "dates as bounds of numbers": (lambda d: d.mean("age", bounds=(DAY, dt.date(2025, 1, 1)), epsilon=1), "numbers"),
    "a histogram of text": (lambda d: d.histogram("ward", [0, 1], epsilon=1), "text"),
    "a share of numbers": (lambda d: d.share(col("age"), epsilon=1), "condition"),
    "a share of SQL": (lambda d: d.share("age > 3", epsilon=1), "col("),  # type: ignore[arg-type]
    "a share of sheep": (lambda d: d.share(col("flag"), of="sheep", epsilon=1), "'rows', 'units'"),
    "SQL as a condition": (lambda d: d.where("age > 3"), "ib.col"),  # type: ignore[arg-type]
    "numbers as a condition": (lambda d: d.where(col("age")), "condition"),
    "a number as a column": (lambda d: d.mean(3, bounds=AGES, epsilon=1), "column"),  # type: ignore[arg-type]
    "no column": (lambda d: d.mean("", bounds=AGES, epsilon=1), "name of a column"),
    "a number as a derived column": (lambda d: d.with_columns(x=3), "expression"),  # type: ignore[arg-type]
    "bounds of text": (lambda d: d.suggest_bounds("ward", epsilon=1), "numbers"),
    "bounds of a number": (lambda d: d.suggest_bounds(3, epsilon=1), "column"),  # type: ignore[arg-type]
    "and": (lambda d: d.where((col("age") > 1) and (col("kids") > 1)), "&"),
    "or": (lambda d: d.where((col("age") > 1) or (col("kids") > 1)), "|"),
    "not": (lambda d: d.where(not (col("age") > 1)), "~"),  # type: ignore[arg-type]
    "a chain": (lambda d: d.where(1 < col("age") < 3), "between"),
    "NA as a constant": (lambda d: d.where(col("age") > pd.NA), "is_null"),
    "NaT as a constant": (lambda d: d.where(col("time") > pd.NaT), "is_null"),
    "NA in a list": (lambda d: d.where(col("age").is_in([pd.NA])), "is_null"),
    "an array as a constant": (lambda d: d.where(col("age") > np.array([1, 2])), "finite number"),
    "an array first": (lambda d: d.where(np.array([1, 2]) < col("age")), "finite number"),  # type: ignore[arg-type]
    "a constant beyond float64": (lambda d: d.where(col("age") > HUGE), "finite number"),
    "too long to be shown": (lambda d: d.where(col("age") > 10**9000), "too long"),
    "a list beyond float64": (lambda d: d.where(col("age").is_in([HUGE])), "finite number"),
    "a filler beyond float64": (lambda d: d.mean(col("age").fill_null(HUGE), bounds=AGES, epsilon=1), "finite number"),
    "a decimal beyond float64": (lambda d: d.where(col("age") > Decimal("1e400")), "finite number"),
    "a decimal that is none": (lambda d: d.where(col("age") > Decimal("sNaN")), "finite number"),
    "a time before the year 1": (lambda d: d.where(col("time") > EARLY), "years 1 to 9999"),
    "bounds before the year 1": (lambda d: d.mean("time", bounds=(EARLY, LATE), epsilon=1), "years 1 to 9999"),
    "bounds without a time": (lambda d: d.mean("time", bounds=(pd.NaT, LATE), epsilon=1), "years 1 to 9999"),
    "null as a constant": (lambda d: d.where(col("age") == None), "is_null"),  # noqa: E711
    "text beside a number": (lambda d: d.where(col("age") > "3"), "compares numbers with text"),
}  # fmt: skip
BOUNDS: dict[str, Any] = {
    "reversed": (100, 0), "equal": (1, 1), "NaN": (NAN, 1), "infinite": (0, INF), "minus infinity": (-INF, 0),
    "text": ("0", "1"), "one text": "01", "one number": 5, "three": (0, 1, 2), "one": (1,), "none": None,
    "a set": {0, 1}, "truth": (False, True), "complex": (0j, 1j), "mixed": (0, DAY), "huge": (0, 1e300),
    "nearly equal": (0, 1e-70), "an array": np.array([0, 1]), "nothing": (),
}  # fmt: skip
BOUNDED: dict[str, Callable[[Dataset, Any], Any]] = {
    "mean": lambda d, b: d.mean("age", bounds=b, epsilon=1),
    "sum": lambda d, b: d.sum("age", bounds=b, epsilon=1),
    "std": lambda d, b: d.std("age", bounds=b, epsilon=1),
    "quantiles": lambda d, b: d.quantiles("age", [0.5, 0.6], bounds=b, epsilon=1),
    "max": lambda d, b: d.max("age", bounds=b, epsilon=1),
}
KEYS: dict[str, Wrong] = {
    "none": (lambda d: d.group_by("ward", keys=[]), "at least one"),
    "twice": (lambda d: d.group_by("ward", keys=["a", "b", "a"]), "twice"),
    "twice the same pair": (lambda d: d.group_by("ward", "kids", keys=[("a", 1), ["a", 1]]), "twice"),
    "numbers for text": (lambda d: d.group_by("ward", keys=[1]), "text"),
    "text for numbers": (lambda d: d.group_by("kids", keys=["1"]), "whole numbers"),
    "truth for numbers": (lambda d: d.group_by("kids", keys=[True]), "whole numbers"),
    "numbers for truth": (lambda d: d.group_by("flag", keys=[1]), "truth"),
    "fractions": (lambda d: d.group_by("kids", keys=[1.5]), "whole numbers"),
    "times for dates": (lambda d: d.group_by("day", keys=[dt.datetime(2024, 1, 1)]), "dates"),
    "a null": (lambda d: d.group_by("ward", keys=[None]), "fill_null"),
    "NaN": (lambda d: d.group_by("kids", keys=[NAN]), "whole numbers"),
    "too few parts": (lambda d: d.group_by("ward", "kids", keys=["a"]), "2 values"),
    "too many parts": (lambda d: d.group_by("ward", keys=[("a", 1)]), "1 value"),
    "one text": (lambda d: d.group_by("ward", keys="abc"), "list"),
    "a mapping": (lambda d: d.group_by("ward", keys={"a": 1}), "list"),
    "a set": (lambda d: d.group_by("ward", keys={"a", "b"}), "sort it"),
    "a frame": (lambda d: d.group_by("ward", keys=pd.DataFrame({"ward": ["a"]})), "itertuples"),
    "beyond float64": (lambda d: d.group_by("kids", keys=[HUGE]), "whole numbers"),
    "no time": (lambda d: d.group_by("day", keys=[pd.NaT]), "dates"),
    "a number": (lambda d: d.group_by("ward", keys=5), "list"),  # type: ignore[arg-type]
    "not text": (lambda d: d.group_by("ward", keys=["\ud800"]), "UTF-8"),
    "of fractions": (lambda d: d.group_by("age", keys=[1]), "compare a number"),
    "of times": (lambda d: d.group_by("time", keys=[1]), "year()"),
    "of nothing": (lambda d: d.group_by(keys=[1]), "columns"),
    "of a number": (lambda d: d.group_by(3), "columns"),  # type: ignore[arg-type]
    "of a column twice": (lambda d: d.group_by("ward", "ward", keys=[("a", "a")]), "different columns"),
    "suppressed below 0": (lambda d: d.group_by("ward", keys=["a"], suppress_below=0), "suppress_below"),
}
CAPS: dict[str, Any] = {"zero": 0, "negative": -1, "a fraction": 1.5, "truth": True, "text": "3", "NaN": NAN,
                        "huge": 2**40, "a list": [1], "infinite": INF}  # fmt: skip
CAPPED: dict[str, Callable[[Dataset, Any], Any]] = {
    "dataset, max_rows": lambda d, n: opened(d.source, max_rows=n),
    "dataset, max_groups": lambda d, n: opened(d.source, max_groups=n),
    "with_caps, max_rows": lambda d, n: d.with_caps(max_rows=n),
    "with_caps, max_groups": lambda d, n: d.with_caps(max_groups=n),
    "group_by, max_groups": lambda d, n: d.group_by("ward", keys=["a"], max_groups=n),
}
GOALS: dict[str, Wrong] = {
    "nothing": (lambda d: d.count(), "one of the two"),
    "both": (lambda d: d.count(epsilon=1, rho=1), "one of the two"),
    "epsilon 0": (lambda d: d.count(epsilon=0), "epsilon"),
    "negative": (lambda d: d.count(epsilon=-1), "epsilon"),
    "NaN": (lambda d: d.count(epsilon=NAN), "epsilon"),
    "infinite": (lambda d: d.count(epsilon=INF), "epsilon"),
    "text": (lambda d: d.count(epsilon="1"), "epsilon"),  # type: ignore[arg-type]
    "truth": (lambda d: d.count(epsilon=True), "epsilon"),
    "rho 0": (lambda d: d.count(rho=0), "rho"),
    "rho NaN": (lambda d: d.count(rho=NAN), "rho"),
    "delta 1": (lambda d: d.count(epsilon=1, delta=1), "delta"),
    "a negative delta": (lambda d: d.count(epsilon=1, delta=-1e-9), "delta"),
    "delta beside rho": (lambda d: d.count(rho=1, delta=1e-6), "left out with rho"),
    "delta alone": (lambda d: d.count(delta=1e-6), "one of the two"),
    "too little for its parts": (lambda d: d.group_by("ward", keys=WARDS).count(epsilon=1e-9), "enough for 4 parts"),
    "groups of the data without delta": (lambda d: d.group_by("ward").count(epsilon=1), "keys="),
    "groups of the data with rho": (lambda d: d.group_by("ward").count(rho=1), "epsilon and delta"),
    "bounds for nothing": (lambda d: d.suggest_bounds("age", epsilon=0), "epsilon"),
    "caps for nothing": (lambda d: d.suggest_caps(epsilon=None), "one of the two"),  # type: ignore[arg-type]
}
LEVELS: dict[str, Wrong] = {
    "below 0": (lambda d: d.quantile("age", -0.1, bounds=AGES, epsilon=1), "[0.0, 1.0]"),
    "above 1": (lambda d: d.quantile("age", 50, bounds=AGES, epsilon=1), "[0.0, 1.0]"),
    "NaN": (lambda d: d.quantile("age", NAN, bounds=AGES, epsilon=1), "[0.0, 1.0]"),
    "text": (lambda d: d.quantile("age", "0.5", bounds=AGES, epsilon=1), "levels"),  # type: ignore[arg-type]
    "truth": (lambda d: d.quantile("age", True, bounds=AGES, epsilon=1), "levels"),
    "none": (lambda d: d.quantiles("age", [], bounds=AGES, epsilon=1), "0.25, 0.5, 0.75"),
    "twice": (lambda d: d.quantiles("age", [0.5, 0.5], bounds=AGES, epsilon=1), "different"),
    "too fine": (lambda d: d.quantile("age", 1 / 3, bounds=AGES, epsilon=1), "four decimals"),
    "one beyond": (lambda d: d.quantiles("age", [0.5, 1.5], bounds=AGES, epsilon=1), "[0.0, 1.0]"),
    "a level of 1": (lambda d: d.median("age", bounds=AGES, epsilon=1, level=1.0), "level"),
    "a level of 0": (lambda d: d.median("age", bounds=AGES, epsilon=1, level=0), "level"),
    "a share of 1": (lambda d: d.suggest_caps(epsilon=1, share=1.0), "share"),
    "one cell": (lambda d: d.select(q=ask.median("age", AGES, cells=1), epsilon=1), "cells"),
}
EDGES: dict[str, Any] = {"one": [1], "none": [], "reversed": [1, 0], "equal": [0, 1, 1], "NaN": [0, NAN, 1],
                         "text": "01", "mixed": [0, DAY], "infinite": [0, INF], "too many": list(range(2000)),
                         "a number": 5}  # fmt: skip
PLANS: dict[str, Wrong] = {
    "rows without a cap": (lambda d: replace(d, max_rows=None).count(epsilon=1), "count_units"),
    "groups without a cap": (
        lambda d: replace(d, max_groups=None).group_by("ward").count(epsilon=1, delta=1e-6), "suggest_caps",
    ),
    "no question": (lambda d: d.select(epsilon=1), "one question at least"),
    "a list of questions": (lambda d: d.select([ask.count()], epsilon=1), "by name"),  # type: ignore[arg-type]
    "a number for a question": (lambda d: d.select(n=3, epsilon=1), "by name"),  # type: ignore[arg-type]
    "text for a question": (lambda d: d.select(n="count", epsilon=1), "by name"),  # type: ignore[arg-type]
    "a question without a name": (lambda d: d.select({"": ask.count()}, epsilon=1), "by name"),
    "a number for a name": (lambda d: d.select({1: ask.count()}, epsilon=1), "by name"),  # type: ignore[dict-item]
    "the name of a group": (
        lambda d: d.group_by("ward", keys=WARDS).select(ward=ask.count(), epsilon=1), "columns of the answer differ",
    ),
    "the name of an end": (
        lambda d: d.select(a=ask.mean("age", AGES), a_lower=ask.count(), epsilon=1), "columns of the answer differ",
    ),
    "the name of a quantile": (
        lambda d: d.select({"q": ask.quantiles("age", [0.1, 0.5], AGES), "q 0.5": ask.count()}, epsilon=1), "'q 0.5'",
    ),
    "the name of a bin": (
        lambda d: d.select({"h": ask.histogram("age", [0, 1, 2]), "h [0, 1)": ask.count()}, epsilon=1), "'h [0, 1)'",
    ),
    "a group and its mean": (lambda d: d.group_by("kids", keys=[1]).mean("kids", bounds=AGES, epsilon=1), "select("),
    "a weight of 0": (lambda d: d.select(n=ask.count(weight=0), epsilon=1), "weight"),
    "a weight of NaN": (lambda d: d.select(n=ask.count(weight=NAN), epsilon=1), "weight"),
    "edges of what is read from cells": (lambda d: d.mean("age", bounds=AGES, epsilon=1, edges="clamp"), "from cells"),
    "bins that cannot be told apart": (lambda d: d.histogram("age", [0, 1e-16, 1], epsilon=1), "histogram: edges"),
    "edges that bounce": (lambda d: d.count(epsilon=1, edges="bounce"), "'clamp'"),
    "truncated Gaussians": (lambda d: d.count(rho=1, edges="truncate"), "clamp"),
    "a key for a plan": (lambda d: d.plan.count(epsilon=1, key="k"), "run(key="),
    "an empty key": (lambda d: d.count(epsilon=1, key=""), "key"),
    "a number as a key": (lambda d: d.count(epsilon=1, key=3), "key"),  # type: ignore[arg-type]
}  # fmt: skip

WRONG: dict[str, Wrong] = {
    **{f"name: {name}": case for name, case in NAMES.items()},
    **{f"type: {name}": case for name, case in TYPES.items()},
    **{
        f"bounds of {question}: {name}": ((lambda d, ask=ask_, b=bounds: ask(d, b)), "must be")
        for question, ask_ in BOUNDED.items()
        for name, bounds in BOUNDS.items()
    },
    **{f"keys: {name}": case for name, case in KEYS.items()},
    **{
        f"cap of {place}: {name}": ((lambda d, cap=make, n=number: cap(d, n)), place.split(", ")[1])
        for place, make in CAPPED.items()
        for name, number in CAPS.items()
    },
    **{f"goal: {name}": case for name, case in GOALS.items()},
    **{f"level: {name}": case for name, case in LEVELS.items()},
    **{
        f"edges: {name}": ((lambda d, e=edges: d.histogram("age", e, epsilon=1)), "histogram: edges")
        for name, edges in EDGES.items()
    },
    **{f"plan: {name}": case for name, case in PLANS.items()},
}


@pytest.fixture(scope="module")
def watched() -> tuple[Dataset, dict[str, int]]:
    """A table in which every text, and every number, would be known again."""
    rows = [{**row, "name": SECRET, "age": 47.11, "price": None, "ward": f"{SECRET} {row['ward']}"} for row in ROWS[:9]]
    return counting(pa.Table.from_pylist(rows, schema=SCHEMA), budget=ib.Budget(epsilon=1e6, delta=0.5))


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_before_anything_is_read(name: str, watched: tuple[Dataset, dict[str, int]]) -> None:
    make, words = WRONG[name]
    data, calls = watched
    calls.clear()
    with pytest.raises((ParameterError, ParameterTypeError)) as caught:
        make(data)
    text = str(caught.value)
    assert words in text
    assert len(text) < 420
    assert isinstance(caught.value, MissingColumn) == (name.startswith("name: ") or "that is not there" in name)
    for inner in ("Sum:", "Bins:", "Meeting:", "Grid:", "Request:"):  # of which users know nothing
        assert inner not in text
    assert "47.11" not in text
    assert SECRET not in text
    assert calls == {}
    assert data.spent() == {"epsilon": 0.0, "delta": 0.0}
    assert [record.kind for record in data.history()] == ["scope"]


DATASETS: dict[str, tuple[dict[str, Any], str]] = {
    "no budget": ({"budget": None}, "budget must be given"),
    "a number as budget": ({"budget": 1.0}, "ib.Budget(epsilon=1)"),
    "a unit that is not there": ({"unit": "usr"}, "'user'"),
    "a unit of fractions": ({"unit": "age"}, "whole numbers"),
    "a unit of nothing": ({"unit": []}, "unit"),
    "an empty unit": ({"unit": ""}, "unit"),
    "a unit twice": ({"unit": ["user", "user"]}, "unit"),
    "a number as unit": ({"unit": 3}, "unit"),
    "a size without substitution": ({"size": 90}, "substitute"),
    "a size of 0": ({"neighbours": "substitute", "size": 0}, "size"),
    "half a size": ({"neighbours": "substitute", "size": 1.5}, "size"),
    "other neighbours": ({"neighbours": "replace"}, "'add-remove', 'substitute'"),
    "rows of a row": ({"unit": None, "max_groups": None}, "row is the unit"),
    "groups of a row": ({"unit": None, "max_rows": None}, "row is the unit"),
    "renewal": ({"renews": "week"}, "renews"),
    "a name with a slash": ({"name": "a/b"}, "tuple of names"),
    "no name": ({"name": ""}, "name"),
    "a wrong ledger": ({"ledger": 3}, "path"),
    "memory": ({"memory_limit": "much"}, "4GB"),
    "types of what has types": ({"types": {"age": "number"}}, "types"),
}


@pytest.mark.parametrize("name", DATASETS)
def test_data_sets_that_cannot_be(name: str) -> None:
    options, words = DATASETS[name]
    with pytest.raises((ParameterError, ParameterTypeError)) as caught:
        opened(**options)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 420


def test_what_has_no_default_has_to_be_given() -> None:
    with pytest.raises(TypeError, match="unit"):
        ib.dataset(ARROW, budget=ib.Budget(epsilon=1))  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="bounds"):
        opened().mean("age", epsilon=1)  # type: ignore[call-arg]
    data = opened(unit=None, max_rows=None, max_groups=None)
    assert data.unit is None
    for call in (
        lambda: data.with_caps(max_rows=2),
        lambda: data.group_by("ward", keys=WARDS, max_groups=2),
        lambda: data.suggest_caps(epsilon=1),
    ):
        with pytest.raises(ParameterError, match="row"):
            call()
    assert data.with_caps(max_rows=1).count(epsilon=400).value == len(ROWS)


def test_columns_of_frames_need_names_that_differ() -> None:
    twice = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["user", "a", "a"])
    for frame in (
        pd.DataFrame([[1, 2, 3]], columns=["user", "a", "a"]),
        pd.DataFrame({"user": [1], 0: [2]}),
        twice,
        twice.to_batches()[0],
    ):
        with pytest.raises(ParameterError, match=r"different names|names of text"):
            opened(frame)


def test_files_of_parquet_need_names_that_differ_and_to_be_whole(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["user", "a", "a"]), path)
    with pytest.raises(ParameterError, match=r"different names; got \['a'\]"):
        opened(path)
    whole = path.read_bytes()
    for content in (b"", b"PAR", b"PAR1", SECRET.encode(), whole[:-1], whole[1:]):
        path.write_bytes(content)
        with pytest.raises(ParameterError, match="begins and ends with PAR1") as caught:
            opened(path)
        clean(caught.value)


def test_what_is_not_asked_well_is_told_the_way() -> None:
    data = opened()
    day = dt.date(2024, 1, 1)
    calls: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: data.mean("age", epsilon=1), ParameterTypeError, r"bounds must be a pair.*As bounds=\(0, 120\)"),
        (lambda: ask.quantile("age", 0.5), ParameterTypeError, "bounds must be a pair"),
        (lambda: col("age") / 2, ParameterTypeError, r"operator must be one of .*; got '/'\. Multiply by a constant"),
        (lambda: 2 / col("age"), ParameterTypeError, "got '/'"),
        (lambda: col("age") // 2, ParameterTypeError, "got '//'"),
        (lambda: col("age") % 2, ParameterTypeError, "got '%'"),
        (lambda: col("age") ** 2, ParameterTypeError, r"got '\*\*'"),
        (lambda: col("flag") ^ True, ParameterTypeError, "got '^'".replace("^", r"\^")),
        (lambda: abs(col("age")), ParameterTypeError, "got 'abs'"),
        (lambda: data.group_by("ward", keys=WARDS).group_by("day"), ParameterError, "after ward.*all at once"),
        (
            lambda: data.group_by("ward", keys=[1]),
            ParameterTypeError,
            "ward must be text, which it holds; got 1, of whole",
        ),
        (lambda: data.mean("age", bounds=(0, 1e-320), epsilon=1), ParameterError, "at least 1e-60 above"),
        (lambda: data.with_caps(max_rows=0), ParameterError, r"max_rows must be a whole number in \[1, "),
        (
            lambda: data.mean("time", bounds=(day, day.replace(year=2025)), epsilon=1),
            ParameterTypeError,
            "bounds that are times",
        ),
        (lambda: opened([]), ParameterTypeError, r"one at least.*got \[\]"),
        (lambda: opened(["a.csv", None]), ParameterTypeError, "got 'a list with NoneType'"),
    ]
    for call, kind, words in calls:
        with pytest.raises(kind, match=words):
            call()
    results = data.group_by("ward", keys=WARDS).count_units(epsilon=1)
    for missing in (lambda: results["zz"], lambda: results.at("zz")):
        with pytest.raises(ib.MissingAnswer, match="got") as caught:
            missing()
        assert isinstance(caught.value, KeyError)
    assert data.with_caps(max_rows=3).with_caps(max_groups=2).max_rows == 3


def test_levels_of_intervals_are_checked() -> None:
    answer = opened().count(epsilon=1)
    results = opened().select(n=ask.count(), m=ask.mean("age", AGES), epsilon=1)
    for level in (0, 1, 95, -0.5, NAN, "0.9", True):
        for call in (
            answer.interval,
            lambda level: results.to_dict(level=level),
            lambda level: results.to_pandas(level=level),
            lambda level: results.plot(level=level),
        ):
            with pytest.raises((ParameterError, ParameterTypeError), match="level"):
                call(level)


# ---------------------------------------------------------------- injection

ODD = [
    '"',
    "'",
    "a; DROP TABLE t; --",
    'q" FROM t; --',
    "c0",
    "g",
    "SELECT",
    "a.b",
    "%s{x}",
    "\\",
    "x\ny",
    "日本",
    "a\tb",
]


def test_names_keys_and_texts_cannot_become_sql() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 1 AS kept")
    texts = ["'; DROP TABLE t; --", '"', "\\'", "' OR '1'='1", "a\x00b", "%", "_", "{0}", "$1", "?"]
    columns = {"who": list(range(10)), "text": texts, **{name: [float(i) for i in range(10)] for name in ODD}}
    connection.register("given", pa.table(columns))
    connection.execute("CREATE TABLE odd AS SELECT * FROM given")
    data = opened(connection.sql("SELECT * FROM odd"), unit="who", max_rows=1)
    for name in ODD:
        answer = data.sum(name, bounds=(0, 9), epsilon=400)
        assert answer.value == pytest.approx(45, abs=2)
    every = data.group_by("text", keys=[*texts, "%s", "x' OR 1=1 --"]).count(epsilon=400)
    assert [answer.value for answer in every["count"]] == [1] * 10 + [0, 0]
    for text in texts:
        assert data.where(col("text") == text).count(epsilon=400).value == 1
        assert data.where(col("text").is_in([text, "none"])).count(epsilon=400).value == 1
    assert data.where(col("text") == "' OR 1=1 --").count(epsilon=400).value == 0
    assert data.select({'"; DROP TABLE t; --': ask.count()}, epsilon=400).value == 10
    named = data.group_by("text", keys=texts[:1]).select({"<script>": ask.count()}, epsilon=1)
    assert "<script>" not in named._repr_html_()
    assert connection.sql("SELECT * FROM t").fetchall() == [(1,)]


def test_records_keep_odd_texts(tmp_path: Path) -> None:
    odd = "\x00'; DROP TABLE inbounds_record; -- \ud7ff ü"
    options: dict[str, Any] = {"ledger": tmp_path / "b.db", "name": "visits", "budget": ib.Budget(epsilon=9)}
    data = opened(**options)
    view = data.where(col("ward") != odd).group_by("ward", keys=[odd])
    first = view.select({odd: ask.count()}, epsilon=1, key="'; --")
    again = opened(**options).where(col("ward") != odd).group_by("ward", keys=[odd])
    assert again.select({odd: ask.count()}, epsilon=1, key="'; --").to_dict() == first.to_dict()
    assert data.spent() == {"epsilon": 1.0}
    assert data.scope._ledger.verify().ok


# ---------------------------------------------------------------- what only the data can show


def row(**more: Any) -> dict[str, Any]:
    return {**dict.fromkeys(SCHEMA.names), **more}


ODD_TABLES: dict[str, list[dict[str, Any]]] = {
    "no rows": [],
    "one user": [{**ROWS[0], "user": 1, "age": 50.0}],
    "one user with many rows": [{**ROWS[0], "user": 1, "age": float(i)} for i in range(300)],
    "all nulls": [row() for _ in range(30)],
    "users without values": [row(user=i) for i in range(30)],
    "values without users": [{**ROWS[0], "user": None} for _ in range(30)],
    "NaN": [row(user=i, age=NAN, ward=WARDS[0], flag=True) for i in range(30)],
    "infinite": [row(user=i, age=INF if i % 2 else -INF, ward=WARDS[0], flag=False, kids=2**63 - 1) for i in range(30)],
    "huge": [row(user=-(2**63), age=1e308, kids=-(2**63), ward="x" * 10_000, day=dt.date.max) for _ in range(30)],
}


def everything(**said: Any) -> dict[str, Any]:
    """A question of every kind; with ``per_unit`` about one value of each unit."""
    return {
        "people": ask.count_units(), "mean": ask.mean("age", AGES, **said), "std": ask.std("age", AGES, **said),
        "sum": ask.sum("age", (-5, 5), **said), "kids": ask.sum("kids", (0, 9), **said),
        "some": ask.share(col("age") > 3, of="units"), "q": ask.quantiles("age", [0, 0.25, 1], AGES, **said),
        "k": ask.median("kids", (0, 9), **said), "h": ask.histogram("age", [0, 1, 100], **said),
        "day": ask.mean("day", (DAY, dt.date.max)),
    } | ({"share": ask.share(col("flag"), per_unit="mean")} if said else {
        "n": ask.count(), "share": ask.share(col("flag")),
    })  # fmt: skip


@pytest.mark.parametrize("name", ODD_TABLES)
def test_odd_tables_have_ordinary_answers(name: str) -> None:
    table = pa.Table.from_pylist(ODD_TABLES[name], schema=SCHEMA)
    units: dict[str, Any] = {"max_rows": None}
    modes: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        (units, {"per_unit": "mean"}),
        (units, {"per_unit": "sum"}),
        (units, {"per_unit": "last", "order": "kids"}),
        ({"neighbours": "substitute", "max_rows": 1, "size": 30}, {}),
        ({"unit": None, "max_rows": None, "max_groups": None}, {}),
    ]
    for options, said in modes:
        data = opened(table, **options)
        asks = everything(**said)
        view = data.group_by("ward", keys=[WARDS[0]]) if options.get("size") or "unit" in options else data
        results = view.select(asks, epsilon=2)
        assert isinstance(results, Results)
        for column in results.columns.values():
            for answer in column:
                low, high = answer.interval()
                assert answer.valid[0] <= low <= high <= answer.valid[1]
                assert answer.valid[0] <= answer.value <= answer.valid[1]
        assert data.spent() == {"epsilon": pytest.approx(2.0)}
    assert str(results)
    assert results.to_json()
    found = opened(table, budget=ib.Budget(epsilon=10, delta=1e-3)).group_by("ward").count_units(epsilon=1, delta=1e-6)
    assert len(found) == 0  # of 30 units none is sure to be found, of one never
    assert opened(table).suggest_bounds("age", epsilon=1).epsilon == 1
    assert opened(table).suggest_caps(epsilon=1)["max_rows"] is None  # of so few units that any would do


def test_a_value_more_or_less_changes_no_error_and_no_type() -> None:
    """The same questions about tables that differ in one row, nulls and all, fail or not in the same way."""
    for more in ([], [row()], [row(user=1)], [row(user=1, age=NAN)], [ROWS[0]]):
        data = opened(pa.Table.from_pylist(more, schema=SCHEMA), budget=ib.Budget(epsilon=0.5))
        assert type(data.sum("kids", bounds=(0, 9), epsilon=0.1).value) is int
        assert isinstance(data.mean("age", bounds=AGES, epsilon=0.1), Answer)
        with pytest.raises(ParameterTypeError):
            data.mean("ward", bounds=AGES, epsilon=0.1)
        with pytest.raises(BudgetExceeded):
            data.count(epsilon=0.4)
        assert data.spent() == {"epsilon": 0.2}


BAG: list[Any] = [
    None, 0, 1, -1, 0.5, 2**70, NAN, INF, True, "", "age", "ward", "day", "kids", "x" * 500, [], (), {}, (0, 100),
    [0, 1], (1, 0), [0.1, 0.9], object(), b"age", col("age"), col("flag"), col("age") > 1, DAY, (DAY, dt.date.max),
    np.array([0.0, 1.0]), np.float64(0.5), np.int64(3), ["a"], ("a", "b"), ask.count(), 1j, 1e-5, 1e-9, 400,
]  # fmt: skip
#: For each question what it needs, with values that will do; in calls, some are replaced from the bag.
METHODS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    **{name: ([], {"edges": "auto"}) for name in ("count", "count_units")},
    **{name: (["age"], {"bounds": AGES, "edges": "auto"}) for name in ("sum", "mean", "variance", "std")},
    **{name: (["kids"], {"bounds": AGES, "level": 0.9}) for name in ("median", "min", "max")},
    "quantile": (["age", 0.1], {"bounds": AGES, "level": None}),
    "quantiles": (["age", [0.1, 0.9]], {"bounds": AGES, "level": None}),
    "share": ([col("flag")], {"of": "units"}),
    "histogram": (["age", [0, 50, 100]], {}),
    "select": ([], {"n": ask.count(), "m": ask.mean("age", AGES)}),
    "suggest_bounds": (["age"], {}),
    "suggest_caps": ([], {"share": 0.9}),
    "where": ([col("age") > 1], {}),
    "group_by": (["ward"], {"keys": ["a"], "max_groups": 1, "suppress_below": 3}),
    "with_caps": ([], {"max_groups": 2, "max_rows": 2}),
}


def problem_of(call: Callable[[], Any]) -> BaseException | None:
    try:
        call()
    except (InboundsError, TypeError) as problem:
        return problem
    return None


@pytest.mark.parametrize("rounds", [600, pytest.param(20_000, marks=pytest.mark.long)])
def test_random_wrong_questions_never_fail_with_a_foreign_error(rounds: int) -> None:
    """Arguments replaced by odd things: an answer, or an error of ours that shows nothing."""
    rng = random.Random(rounds)
    rows = [{**row, "name": SECRET} for row in ROWS[:20]]
    data = opened(pa.Table.from_pylist(rows, schema=SCHEMA), budget=ib.Budget(epsilon=1e6, delta=0.5))
    answered = refused = 0
    for _ in range(rounds):
        name = rng.choice(list(METHODS))
        given, named = METHODS[name]
        if name not in ("where", "group_by", "with_caps"):
            named = {**named, "epsilon": 1} | ({"delta": 1e-6, "key": None} if rng.random() < 0.2 else {})
        odd = rng.choice([0, 1, 1, 2]) / max(len(given) + len(named), 1)
        arguments = [rng.choice(BAG) if rng.random() < odd else value for value in given]
        named = {word: rng.choice(BAG) if rng.random() < odd else value for word, value in named.items()}
        problem = problem_of(lambda name=name, a=arguments, n=named: getattr(data, name)(*a, **n))
        answered += problem is None
        refused += problem is not None
        if isinstance(problem, InboundsError):
            assert SECRET not in "".join(traceback.format_exception(problem))
            assert not isinstance(problem, QueryFailed), (name, arguments, named)
        elif problem is not None:  # of Python's own: what a call has to have
            assert "argument" in str(problem), (name, arguments, named)
    assert min(answered, refused) > rounds / 5


# ---------------------------------------------------------------- errors show nothing of the table


def failing(column: str) -> Callable[..., Iterator[Any]]:
    """In place of :meth:`Arrow.batches`: it fails where a column is read, with a value of its own in the message."""
    batches = Arrow.batches

    def read(self: Arrow, columns: Sequence[str]) -> Iterator[Any]:
        yield from batches(self, columns)
        if column in columns:
            raise ValueError(f"value: {SECRET}")

    return read


def clean(error: BaseException) -> None:
    shown = "".join(traceback.format_exception(error)) + str(error) + repr(error) + repr(vars(error))
    assert SECRET not in shown
    assert error.__cause__ is None
    assert error.__context__ is None


def test_what_an_engine_says_stays_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Arrow, "batches", failing("age"))
    data = opened()
    asked: list[Callable[[], Any]] = [
        lambda: data.mean("age", bounds=AGES, epsilon=1),
        lambda: data.where(col("age") > 1).count(epsilon=1),
        lambda: data.group_by("ward", keys=["a"]).median("age", bounds=AGES, epsilon=1),
        lambda: data.suggest_bounds("age", epsilon=1),
        lambda: data.where(col("age") > 1).suggest_caps(epsilon=1),
    ]
    for i, call in enumerate(asked, start=1):
        with pytest.raises(QueryFailed, match="details are withheld") as caught:
            call()
        clean(caught.value)
        assert caught.value.engine_error is None
        assert data.spent() == {"epsilon": float(i)}  # it was reserved before the table was read, so it is spent
    told = repr(data) + data.scope.export("json") + str(data.history())
    assert SECRET not in told
    assert data.plan.count(epsilon=1).run() is not None  # a question that does not read the column
    seen = opened(debug=True)
    with pytest.raises(QueryFailed) as caught:
        seen.mean("age", bounds=AGES, epsilon=1)
    assert SECRET in str(caught.value.engine_error)
    assert SECRET not in str(caught.value)


def test_frames_of_mixed_objects_show_nothing() -> None:
    data = opened(pd.DataFrame({"user": [1, 2, 3], "age": [SECRET, 4711, 2.5]}))
    with pytest.raises(ParameterTypeError, match="it holds text") as caught:
        data.mean("age", bounds=AGES, epsilon=1)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert data.spent() == {"epsilon": 0.0}


def test_a_file_that_goes_away_or_is_damaged_shows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    rows = [{**row, "name": SECRET} for row in ROWS]
    pa.parquet.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)
    data = opened(path)
    whole = path.read_bytes()
    for change in (lambda: path.write_bytes(whole[:200] + SECRET.encode()), path.unlink):
        change()
        with pytest.raises(QueryFailed, match="other columns than when it was opened, or is gone") as caught:
            data.group_by("name", keys=["a"]).count(epsilon=1)
        clean(caught.value)
    end = len(whole) // 2  # the pages of the columns; what they are stands at the end of the file
    path.write_bytes(whole[:4] + (SECRET.encode() * end)[: end - 4] + whole[end:])
    with pytest.raises(QueryFailed) as failed:  # what only reading tells
        data.sum("price", bounds=(0, 100), epsilon=1)
    clean(failed.value)
    assert data.spent() == {"epsilon": 1.0}


def test_errors_after_the_engine_show_nothing() -> None:
    """Numbers that cannot be are refused without being told."""
    source = Source.open(ARROW)

    class Lying(Counting):
        def rows(self, frame: Any) -> Any:
            return [(*row[:-1], 471_147_114_711) for row in self.engine.rows(frame)]

    data = opened(replace(source, engine=Lying(source.engine)))
    with pytest.raises(QueryFailed, match="impossible") as caught:
        data.mean("age", bounds=AGES, epsilon=1)
    assert "4711" not in "".join(traceback.format_exception(caught.value))
    assert data.spent() == {"epsilon": 1.0}


def test_nothing_that_is_shown_before_an_answer_has_a_value_of_the_table() -> None:
    rows = [{**row, "name": SECRET, "ward": SECRET, "age": 47.114711} for row in ROWS]
    data = opened(pa.Table.from_pylist(rows, schema=SCHEMA), unit="name", budget=ib.Budget(epsilon=9, delta=1e-3))
    plan = data.group_by("ward").plan.select(n=ask.count(), m=ask.mean("age", AGES), epsilon=1, delta=1e-6)
    answers = plan.run()
    assert len(answers) == 0  # one unit
    shown = [plan.explain(sql=True), str(plan.price()), repr(plan), repr(data), repr(data.source), str(answers),
             answers.to_json(), data.scope.export("json"), repr(data.plan.data), str(plan.event.to_json())]  # fmt: skip
    for text in shown:
        assert SECRET not in text
        assert "47.11" not in text

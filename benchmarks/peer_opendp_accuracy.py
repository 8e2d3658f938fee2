"""Runs in the environment of OpenDP with Polars: the answers of ``benchmarks/accuracy.py``. JSON in, JSON out."""

from __future__ import annotations

import json
import math
import sys
import warnings
from importlib.metadata import version
from typing import Any

import opendp.prelude as dp  # type: ignore[import-not-found]
import polars as pl

CANDIDATES = 1001


def main() -> None:
    warnings.simplefilter("ignore")
    dp.enable_features("contrib")
    asked: dict[str, Any] = json.load(sys.stdin)
    answers = None if asked["statistic"] == "variance" else release(asked)
    print(json.dumps({"version": version("opendp"), "answers": answers}))


def release(asked: dict[str, Any]) -> list[list[float | None]]:
    lower, upper = asked["bounds"]
    table = pl.read_parquet(asked["path"], columns=["grp", asked["column"]])
    by = ["grp"] if asked["by_group"] else []
    limit = [dp.polars.Bound(by=by, per_group=asked["rows"], num_groups=asked["groups"])]
    context = dp.Context.compositor(
        data=table.lazy(),
        privacy_unit=dp.unit_of(contributions=limit if by else asked["rows"]),
        privacy_loss=dp.loss_of(epsilon=asked["epsilon"]),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=by, max_length=2 * len(table), max_groups=len(asked["keys"]))],
    )
    value = pl.col(asked["column"]).fill_null(0.0).fill_nan(0.0)
    candidates = [lower + (upper - lower) * i / (CANDIDATES - 1) for i in range(CANDIDATES)]
    expression = {
        "count": lambda: dp.len(signed=True),
        "sum": lambda: value.dp.sum((lower, upper)),
        "mean": lambda: value.dp.mean((lower, upper)),
        "median": lambda: value.dp.median(candidates),
    }[asked["statistic"]]().alias("answer")
    query = context.query()
    if by:
        query = query.group_by("grp").agg(expression).with_keys(pl.LazyFrame({"grp": asked["keys"]}))
    else:
        query = query.select(expression)
    measurement = query.resolve()  # calibrated once; every call draws noise
    found = []
    for _ in range(asked["runs"]):
        rows = measurement(table.lazy()).collect()
        if by:
            answers = dict(rows.select("grp", "answer").rows())
            found.append([number(answers[key]) for key in asked["keys"]])
        else:
            found.append([number(rows["answer"][0])])
    return found


def number(x: Any) -> float | None:
    return None if x is None or not math.isfinite(x) else float(x)


if __name__ == "__main__":
    main()

"""Runs in diffprivlib's environment: the answers of ``benchmarks/accuracy.py``. JSON in, JSON out."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from diffprivlib import tools  # type: ignore[import-not-found]


def main() -> None:
    warnings.simplefilter("ignore")
    asked: dict[str, Any] = json.load(sys.stdin)
    given: dict[str, Any] = {"epsilon": asked["epsilon"] / (asked["groups"] * asked["rows"])}  # it protects one row
    bounds = {"bounds": tuple(asked["bounds"])}
    work: dict[str, Callable[[Any], float]] = {
        "sum": lambda values: tools.sum(values, **bounds, **given),
        "mean": lambda values: tools.mean(values, **bounds, **given),
        "variance": lambda values: tools.var(values, **bounds, **given),
        "median": lambda values: tools.median(values, **bounds, **given),
    }
    table = pd.read_parquet(asked["path"])
    parts = {key: part.to_numpy() for key, part in table.groupby("grp")[asked["column"]]}
    codes = pd.Categorical(table["grp"], categories=asked["keys"]).codes

    def once() -> list[float]:
        if asked["statistic"] == "count":  # its other counts never exceed the true number of rows
            found = tools.histogram(codes, bins=len(parts), range=(-0.5, len(parts) - 0.5), **given)[0]
        else:
            found = [work[asked["statistic"]](parts[key]) for key in asked["keys"]]
        return [float(x) for x in found]

    found = [once() for _ in range(asked["runs"])]
    answers = [[x if np.isfinite(x) else None for x in run] for run in found]
    print(json.dumps({"version": version("diffprivlib"), "answers": answers}))


if __name__ == "__main__":
    main()

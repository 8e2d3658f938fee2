"""Runs in diffprivlib's environment: the job of ``benchmarks/queries.py``, bounded by hand. JSON in, JSON out."""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version
from typing import Any

import pandas as pd
from diffprivlib import tools  # type: ignore[import-not-found]


def bounded(job: dict[str, Any]) -> pd.DataFrame:
    """At most so many groups of a user, and rows (or one value, the mean) in each, chosen at random."""
    table = pd.read_parquet(job["path"], columns=["user_id", "grp", "value"])
    table["grp"] = pd.Categorical(table["grp"], categories=job["keys"])
    table["value"] = table["value"].clip(job["lower"], job["upper"])
    place = ["user_id", "grp"]
    if job["mode"] == "rows":
        table = table.sample(frac=1.0)
        table = table[table.groupby(place, observed=True, sort=False).cumcount() < job["rows"]]
        pairs = table[place].drop_duplicates().sample(frac=1.0)
    else:
        table = table.groupby(place, observed=True, sort=False)["value"].mean().reset_index()
        pairs = table[place].sample(frac=1.0)
    kept = pairs[pairs.groupby("user_id", sort=False).cumcount() < job["groups"]]
    return table.merge(kept, on=place)


def main() -> None:
    warnings.simplefilter("ignore")
    job: dict[str, Any] = json.load(sys.stdin)
    table = bounded(job)
    most = job["groups"] * (job["rows"] if job["mode"] == "rows" else 1)
    epsilon, bounds = job["epsilon"] / 3 / most, (job["lower"], job["upper"])  # its functions protect one row
    parts = {key: part.to_numpy() for key, part in table.groupby("grp", observed=False)["value"]}
    codes, count = pd.Categorical(table["grp"], categories=job["keys"]).codes, len(job["keys"])
    counts = tools.histogram(codes, epsilon=epsilon, bins=count, range=(-0.5, count - 0.5))[0]
    answer: dict[str, list[float]] = {"count": [int(n) for n in counts], "sum": [], "mean": []}
    for key in job["keys"]:
        answer["sum"].append(float(tools.sum(parts[key], epsilon=epsilon, bounds=bounds)))
        answer["mean"].append(float(tools.mean(parts[key], epsilon=epsilon, bounds=bounds)))
    print(json.dumps({"version": version("diffprivlib"), **answer}))


if __name__ == "__main__":
    main()

"""Runs in Tumult Analytics' environment: the job of ``benchmarks/queries.py`` on local Spark. JSON in, JSON out."""

from __future__ import annotations

import json
import os
import sys
import warnings
from importlib.metadata import version
from typing import Any

from pyspark.sql import SparkSession
from tmlt.analytics import (  # type: ignore[import-not-found]
    AddRowsWithID,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)


def main() -> None:
    warnings.simplefilter("ignore")
    job: dict[str, Any] = json.load(sys.stdin)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{os.cpu_count()}]").config("spark.driver.memory", job["memory"][:-1])
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "8")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    session = Session.from_dataframe(
        privacy_budget=PureDPBudget(job["epsilon"]),
        source_id="rows",
        dataframe=spark.read.parquet(job["path"]),
        protected_change=AddRowsWithID("user_id"),
    )
    bounded = (
        QueryBuilder("rows")
        .enforce(MaxGroupsPerID("grp", job["groups"]))
        .enforce(MaxRowsPerGroupPerID("grp", job["rows"]))
    )
    session.create_view(bounded, "bounded", cache=True)
    groups = QueryBuilder("bounded").groupby(KeySet.from_dict({"grp": job["keys"]}))
    queries = {
        "count": groups.count(name="count"),
        "sum": groups.sum("value", job["lower"], job["upper"], name="sum"),
        "mean": groups.average("value", job["lower"], job["upper"], name="mean"),
    }
    answer = {}
    for name, query in queries.items():
        found = dict(session.evaluate(query, PureDPBudget(job["epsilon"] / 3)).select("grp", name).collect())
        answer[name] = [float(found[key]) for key in job["keys"]]
    spark.stop()
    print(json.dumps({"version": version("tmlt.analytics"), "spark": version("pyspark"), **answer}))


if __name__ == "__main__":
    main()

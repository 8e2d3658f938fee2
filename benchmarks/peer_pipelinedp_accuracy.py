"""Runs in PipelineDP's environment: the answers of ``benchmarks/accuracy.py``. JSON in, JSON out.

The rows are bounded already. They are collected once by PipelineDP's own combiners; every run draws its noise anew.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from functools import reduce
from importlib.metadata import version
from typing import Any

import pipeline_dp  # type: ignore[import-not-found]
import pyarrow.parquet as parquet  # type: ignore[import-untyped]
from pipeline_dp import combiners

METRICS = {
    "count": pipeline_dp.Metrics.COUNT,
    "sum": pipeline_dp.Metrics.SUM,
    "mean": pipeline_dp.Metrics.MEAN,
    "variance": pipeline_dp.Metrics.VARIANCE,
    "median": pipeline_dp.Metrics.PERCENTILE(50),
}


def main() -> None:
    asked: dict[str, Any] = json.load(sys.stdin)
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=asked["epsilon"], total_delta=1e-12)
    parameters = pipeline_dp.AggregateParams(
        metrics=[METRICS[asked["statistic"]]],
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        max_partitions_contributed=asked["groups"],
        max_contributions_per_partition=asked["rows"],
        min_value=asked["bounds"][0],
        max_value=asked["bounds"][1],
    )
    combiner = combiners.create_compound_combiner(parameters, accountant)
    accountant.compute_budgets()
    table = parquet.read_table(asked["path"], columns=["unit", "grp", asked["column"]])
    values: dict[str, dict[Any, list[float]]] = defaultdict(lambda: defaultdict(list))
    for unit, group, value in zip(*(column.to_pylist() for column in table.columns), strict=True):
        values[group][unit].append(value)
    totals = [
        reduce(combiner.merge_accumulators, (combiner.create_accumulator(v) for v in values[key].values()))
        for key in asked["keys"]
    ]
    answers = [[float(combiner.compute_metrics(total)[0]) for total in totals] for _ in range(asked["runs"])]
    print(json.dumps({"version": version("pipeline-dp"), "answers": answers}))


if __name__ == "__main__":
    main()

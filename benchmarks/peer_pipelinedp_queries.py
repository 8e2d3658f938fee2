"""Runs in PipelineDP's environment: the job of ``benchmarks/queries.py`` on its local backend. JSON in, JSON out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.metadata import version
from operator import itemgetter
from typing import Any

import pipeline_dp  # type: ignore[import-not-found]
import pyarrow.parquet as parquet  # type: ignore[import-untyped]

METRICS = {name: getattr(pipeline_dp.Metrics, name.upper()) for name in ("count", "sum", "mean")}


def rows(path: str) -> Iterator[tuple[int, str, float]]:
    for batch in parquet.ParquetFile(path).iter_batches(columns=["user_id", "grp", "value"]):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def main() -> None:
    job: dict[str, Any] = json.load(sys.stdin)
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=job["epsilon"], total_delta=1e-9)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    parameters = pipeline_dp.AggregateParams(
        metrics=list(METRICS.values()),
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        max_partitions_contributed=job["groups"],
        max_contributions_per_partition=job["rows"],
        min_value=job["lower"],
        max_value=job["upper"],
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=itemgetter(0), partition_extractor=itemgetter(1), value_extractor=itemgetter(2)
    )
    result = engine.aggregate(rows(job["path"]), parameters, extractors, public_partitions=job["keys"])
    accountant.compute_budgets()
    found = dict(result)
    answer = {name: [float(getattr(found[key], name)) for key in job["keys"]] for name in METRICS}
    print(json.dumps({"version": version("pipeline-dp"), **answer}))


if __name__ == "__main__":
    main()

"""Runs in the environment of OpenDP with Polars: the job of ``benchmarks/queries.py``. JSON in, JSON out."""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version
from typing import Any

import opendp.prelude as dp  # type: ignore[import-not-found]
import polars as pl


def main() -> None:
    warnings.simplefilter("ignore")
    dp.enable_features("contrib")
    job: dict[str, Any] = json.load(sys.stdin)
    context = dp.Context.compositor(
        data=pl.scan_parquet(job["path"]),
        privacy_unit=dp.unit_of(contributions=1, identifier="user_id"),
        privacy_loss=dp.loss_of(epsilon=job["epsilon"]),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["grp"], max_length=job["table_rows"], max_groups=len(job["keys"]))],
    )
    value = pl.col("value").fill_null(0.0).fill_nan(0.0)
    query = (
        context.query()
        .truncate_per_group(job["rows"], by=["grp"])
        # keep="sample", the default, fails in this version. k keeps k - 1 groups (and pays for k).
        .truncate_num_groups(job["groups"] + 1, by=["grp"], keep="first")
        .group_by("grp")
        .agg(dp.len(), value.dp.sum((job["lower"], job["upper"])))
        .with_keys(pl.LazyFrame({"grp": job["keys"]}))
    )
    found = {key: row for key, *row in query.release().collect().rows()}
    count, total = (list(column) for column in zip(*(found[key] for key in job["keys"]), strict=True))
    mean = [s / max(n, 1) for n, s in zip(count, total, strict=True)]
    print(json.dumps({"version": version("opendp"), "count": count, "sum": total, "mean": mean}))


if __name__ == "__main__":
    main()

"""Runs in SmartNoise SQL's environment: the job of ``benchmarks/queries.py`` on pandas. JSON in, JSON out.

It keeps some rows of a user whatever their groups: as many as the job allows groups.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from importlib.metadata import version
from typing import Any

import pandas as pd
from snsql import Privacy, from_df  # type: ignore[import-not-found]


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    job: dict[str, Any] = json.load(sys.stdin)
    table = pd.read_parquet(job["path"], columns=["user_id", "grp", "value"])
    metadata = {
        "": {
            "s": {
                "t": {
                    "max_ids": job["groups"],
                    "sample_max_ids": True,
                    "censor_dims": False,
                    "rows": job["table_rows"],
                    "user_id": {"type": "int", "private_id": True},
                    "grp": {"type": "string"},
                    "value": {"type": "float", "lower": job["lower"], "upper": job["upper"]},
                }
            }
        }
    }
    privacy = Privacy(epsilon=job["epsilon"] / 3, delta=1e-9)
    reader = from_df(table, privacy=privacy, metadata=metadata)
    query = "SELECT grp, COUNT(*) AS n, SUM(value) AS s, AVG(value) AS m FROM s.t GROUP BY grp"
    found = {row[0]: row[1:] for row in reader.execute(query)[1:]}
    columns = zip(*(found.get(key, (0, 0.0, 0.0)) for key in job["keys"]), strict=True)
    answer = {name: [float(x) for x in column] for name, column in zip(("count", "sum", "mean"), columns, strict=True)}
    print(json.dumps({"version": version("smartnoise-sql"), **answer}))


if __name__ == "__main__":
    main()

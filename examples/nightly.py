"""A report for every night, from a table that grows: each night costs once, however often the job is run.

python examples/nightly.py visits.parquet --night 2024-03-05 --ledger budget.db --out report.json
spark-submit examples/nightly.py hdfs:///visits --spark --night 2024-03-05 --ledger postgresql://host/db --out r.json
"""

from __future__ import annotations

import argparse
import datetime as dt
from pathlib import Path
from typing import Any

import inbounds as ib

WARDS = ["cardiology", "children", "surgery"]  # public: a ward without patients is answered like any other
MONTH = ib.Budget(epsilon=1)  # what may be told about one patient in a month
NIGHT = 0.03  # of it, for one night


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("visits", help="Parquet with the columns patient, ward, date and minutes")
    parser.add_argument("--night", type=dt.date.fromisoformat, required=True)
    parser.add_argument("--ledger", required=True, help="a path, or postgresql://...")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--spark", action="store_true", help="read with Spark instead of the embedded DuckDB")
    given = parser.parse_args()

    table: Any = given.visits
    if given.spark:
        from pyspark.sql import SparkSession

        table = SparkSession.builder.appName("nightly").getOrCreate().read.parquet(given.visits)

    data = ib.dataset(table, unit="patient", ledger=given.ledger, name="nightly", budget=MONTH, renews="month")
    wards = data.where(ib.col("date") == given.night).group_by("ward", keys=WARDS, max_groups=1)
    report = wards.select(
        patients=ib.ask.count_units(),
        minutes=ib.ask.mean("minutes", (0, 240)),
        epsilon=NIGHT,
        key=f"wards of {given.night}",  # the same night again: the same answers, at no cost
    )
    given.out.write_text(report.to_json(), encoding="utf-8")
    print(report)


if __name__ == "__main__":
    main()

"""Make src/inbounds/data/randhie.parquet from ``datasets/randhie/src/randhie.csv`` of the statsmodels package.

Usage: python tools/randhie.py path/to/statsmodels/datasets/randhie/src/randhie.csv
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

TARGET = Path(__file__).parent.parent / "src/inbounds/data/randhie.parquet"
WHOLE = ["year", "site", "plan", "coins", "idp", "female", "child", "mdvis", "totadm", "hlthg", "hlthf", "hlthp"]
REAL = ["disea", "physlm"]


def table(source: Path) -> pa.Table:
    """The columns of the data set, with persons numbered from 1, the age to one decimal and the income in dollars."""
    with source.open(newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = {zper: k for k, zper in enumerate(dict.fromkeys(row["zper"] for row in rows), start=1)}
    columns = {"person": pa.array([numbers[row["zper"]] for row in rows], pa.int32())}
    columns |= {name: pa.array([int(float(row[name])) for row in rows], pa.int16()) for name in WHOLE}
    columns["age"] = pa.array([round(float(row["xage"]), 1) for row in rows], pa.float64())
    columns["income"] = pa.array([round(float(row["income"])) for row in rows], pa.int32())
    columns |= {name: pa.array([float(row[name]) for row in rows], pa.float64()) for name in REAL}
    return pa.table(columns)


def main(source: Path) -> None:
    found = table(source)
    pq.write_table(found, TARGET, compression="zstd", compression_level=19)
    print(f"{found.num_rows} rows -> {TARGET.name}, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Make randhie.csv.gz from the file ``datasets/randhie/src/randhie.csv`` of the statsmodels package.

python examples/data/make_randhie.py path/to/statsmodels/datasets/randhie/src/randhie.csv
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from pathlib import Path

COLUMNS = ["person", "year", "site", "plan", "coins", "idp", "female", "child", "age",
           "mdvis", "totadm", "disea", "physlm", "hlthg", "hlthf", "hlthp"]  # fmt: skip


def main(source: Path) -> None:
    with source.open(newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = {zper: k for k, zper in enumerate(dict.fromkeys(row["zper"] for row in rows), start=1)}
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(row | {"person": numbers[row["zper"]], "age": f"{float(row['xage']):.1f}"})
    # mtime=0: the same input gives the same bytes.
    target = Path(__file__).with_name("randhie.csv.gz")
    target.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    print(f"{len(rows)} rows of {len(numbers)} persons -> {target.name}, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

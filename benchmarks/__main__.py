"""``python -m benchmarks [name ...]``: run the named benchmarks, or all of them, and write their tables."""

from __future__ import annotations

import argparse
import importlib
import time

from benchmarks.report import progress

NAMES = (
    "calibration",
    "sampling",
    "timing_leak",
    "naive_bayes",
    "composition",
    "ledger",
    "limit",
    "optimal",
    "queries",
    "accuracy",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure, and write benchmarks/results.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"which to run, of: {', '.join(NAMES)} (default: all)")
    names = parser.parse_args().names or NAMES
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        parser.error(f"no benchmark named {unknown[0]!r}; there is: {', '.join(NAMES)}")
    for name in names:
        start = time.perf_counter()
        written = importlib.import_module(f"benchmarks.{name}").main()
        progress(f"{name}: {time.perf_counter() - start:.0f} s, wrote {', '.join(written)}")


if __name__ == "__main__":
    main()

"""``python -m reproduction [paper ...]``: recompute the papers named, or all of them, and write one report."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from inbounds import InboundsError
from reproduction import KEYS, report


def main() -> None:
    named = ", ".join(key.replace("_", "-") for key in KEYS)
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description="Recompute every table, figure and theorem of the papers; write one report with a verdict on each.",
    )
    parser.add_argument("papers", nargs="*", metavar="paper", help=f"which, of: {named} (default: all)")
    parser.add_argument("--output", type=Path, default=Path("build/reproduce"), help="folder of the report")
    parser.add_argument("--quick", action="store_true", help="smaller simulations, for a first look")
    given = parser.parse_args()
    papers = [name.replace("-", "_") for name in given.papers] or KEYS
    unknown = [name for name, key in zip(given.papers, papers, strict=False) if key not in KEYS]
    if unknown:
        parser.error(f"no paper named {unknown[0]!r}; there is: {named}")
    try:
        page = report.write(given.output, papers=papers, quick=given.quick, progress=_tell)
    except (InboundsError, OSError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    print(f"Report: {page}\nAs Markdown: {given.output / 'report.md'}")


def _tell(step: str) -> None:
    print(step, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

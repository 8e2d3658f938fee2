"""Runs in diffprivlib's environment: times and records the scale its LaplaceBoundedDomain finds. JSON in, JSON out."""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
import warnings
from importlib.metadata import version
from typing import Any

from diffprivlib.mechanisms import LaplaceBoundedDomain  # type: ignore[import-not-found]


def find(setting: dict[str, float]) -> float:
    mechanism = LaplaceBoundedDomain(
        epsilon=setting["epsilon"],
        delta=setting["delta"],
        sensitivity=setting["sensitivity"],
        lower=0.0,
        upper=setting["width"],
    )
    return float(mechanism._find_scale())


def scale(setting: dict[str, float]) -> float | None:
    value = find(setting)
    return value if math.isfinite(value) else None


def seconds(setting: dict[str, float], runs: int) -> float:
    find(setting)
    samples = []
    for _ in range(runs):
        start = time.process_time()
        find(setting)
        samples.append(time.process_time() - start)
    return statistics.median(samples)


def main() -> None:
    warnings.simplefilter("ignore")
    question: dict[str, Any] = json.load(sys.stdin)
    answer = {
        "version": version("diffprivlib"),
        "numpy": version("numpy"),
        "timed": [{"cpu": seconds(s, question["runs"]), "scale": scale(s)} for s in question["timed"]],
        "scales": [scale(s) for s in question["checked"]],
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()

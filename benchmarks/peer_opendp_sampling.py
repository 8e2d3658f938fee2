"""Runs in OpenDP's environment: times its noise on vectors, which has no bounds. JSON in, JSON out."""

from __future__ import annotations

import json
import math
import random
import sys
import time
from importlib.metadata import version
from typing import Any

import opendp.prelude as dp  # type: ignore[import-not-found]


def measurement(family: str, whole: bool, scale: float, k: int | None, size: int) -> Any:
    atoms = dp.atom_domain(T=int) if whole else dp.atom_domain(T=float, nan=False)
    domain = dp.vector_domain(atoms, size=size)  # a granularity k is refused where the size is not known
    number = int if whole else float
    if family == "Laplace":
        return dp.m.make_laplace(domain, dp.l1_distance(T=number), scale=scale, k=k)
    return dp.m.make_gaussian(domain, dp.l2_distance(T=number), scale=scale, k=k)


def speed(
    family: str, whole: bool, scale: float, k: int | None, upper: float, size: int, seconds: float
) -> list[float]:
    """Seconds a value, in vectors of ``size`` distinct true values (a list, as its interface takes it)."""
    invoke = measurement(family, whole, scale, k, size)
    found: list[float] = []
    calls = 1
    end = time.process_time() + seconds
    while time.process_time() < end or len(found) < 2:
        given = [
            [random.randint(0, int(upper)) if whole else random.uniform(0.0, upper) for _ in range(size)]
            for _ in range(calls)
        ]
        start = time.process_time()
        for values in given:
            invoke(values)
        found.append((time.process_time() - start) / (size * calls))
        if len(found) == 1:  # short calls are timed many at once, about 5 ms of them
            calls = max(1, math.ceil(5e-3 / (found[0] * size)))
    return found[1:]


def main() -> None:
    dp.enable_features("contrib")
    question: dict[str, Any] = json.load(sys.stdin)
    print(json.dumps({"version": version("opendp"), "speed": [speed(**s) for s in question["speed"]]}))


if __name__ == "__main__":
    main()

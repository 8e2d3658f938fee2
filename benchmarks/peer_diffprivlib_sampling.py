"""Runs in diffprivlib's environment: times draws of its LaplaceBoundedDomain. JSON in, JSON out.

The scale is set, not searched: the time of a draw, and what it gives away, depend on it.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import time
import warnings
from importlib.metadata import version
from typing import Any

from diffprivlib.mechanisms import LaplaceBoundedDomain  # type: ignore[import-not-found]


def mechanism(lower: float, upper: float, scale: float) -> Any:
    made = LaplaceBoundedDomain(epsilon=1.0, delta=0.0, sensitivity=1.0, lower=lower, upper=upper)
    made._scale = scale
    return made


def speed(lower: float, upper: float, scale: float, values: int, runs: int) -> list[float]:
    """Seconds a value: ``values`` true values, all distinct, one call each."""
    randomise = mechanism(lower, upper, scale).randomise
    found = []
    for _ in range(runs + 1):
        given = [random.uniform(lower, upper) for _ in range(values)]
        start = time.process_time()
        for value in given:
            randomise(value)
        found.append((time.process_time() - start) / values)
    return found[1:]  # the first warms up


def places(lower: float, upper: float, scale: float, at: list[float], calls: int, seconds: float) -> list[list[float]]:
    """Rounds of seconds a call at each true value, the values in random order in each round."""
    randomise = mechanism(lower, upper, scale).randomise
    order = list(range(len(at)))
    rounds: list[list[float]] = []
    end = time.process_time() + seconds
    while time.process_time() < end or len(rounds) < 3:
        row = [0.0] * len(at)
        random.shuffle(order)
        for i in order:
            value = at[i]
            start = time.process_time()
            for _ in range(calls):
                randomise(value)
            row[i] = (time.process_time() - start) / calls
        rounds.append(row)
    return rounds[1:]


def main() -> None:
    warnings.simplefilter("ignore")
    question: dict[str, Any] = json.load(sys.stdin)
    gc.disable()
    answer = {
        "version": version("diffprivlib"),
        "numpy": version("numpy"),
        "speed": [speed(**s) for s in question.get("speed", [])],
        "places": [places(**s) for s in question.get("places", [])],
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()

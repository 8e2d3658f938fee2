"""Writes ``events.json``: records of events, and the guarantees they have. ``python -m tests.vectors.make_events``.

The records that are there must never change: what was written once has to be read for ever. New kinds are appended.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import inbounds as ib
from inbounds.events import Approximate, Composed, Draw, Event, Parallel, Plan, Pure, Repeated, Zcdp

FILE = Path(__file__).parent / "events.json"
INF = math.inf

AGE = ib.Laplace(ib.Interval(0, 120), scale=0.8, sensitivity=0.5)
SHARE = ib.Gaussian(ib.Interval(0, 1), scale=0.3, sensitivity=0.1)

EVENTS: dict[str, Event] = {
    "laplace-interval": AGE.event(),
    "laplace-half-line": ib.Laplace(ib.Interval(-INF, 3.5), scale=1 / 3, sensitivity=0.1).event(),
    "laplace-spans": ib.Laplace(ib.Spans([(0, 90), (120, 365)]), scale=7.5, sensitivity=3).event(),
    "laplace-integers-clamped": ib.Laplace(ib.Integers(0, 30), scale=2, sensitivity=1, edges="clamp").event(),
    "laplace-box": ib.Laplace(ib.Box([0, 1], [10, 9]), scale=4, sensitivity=ib.L1(2)).event(),
    "gaussian-interval": SHARE.event(),
    "gaussian-plain": ib.Gaussian(ib.Interval(-INF, INF), scale=3.7, sensitivity=1, edges="ignore").event(),
    "gaussian-integers": ib.Gaussian(ib.Integers(-5, INF), scale=4, sensitivity=1).event(),
    "gaussian-box": ib.Gaussian(
        ib.Box([0, 1], [10, 9]), scale=17.05, sensitivity=ib.L2(4.47), granularity=0.0009765625
    ).event(),
    "gaussian-box-per-coordinate": ib.Gaussian(ib.Box([0, 1], [10, 9]), scale=9, sensitivity=[4, 2]).event(),
    "gaussian-integer-box": ib.Gaussian(
        ib.Box([0, 0, 0], [9, 9, 9], integer=True), scale=6, sensitivity=ib.L0(2, linf=1)
    ).event(),
    "staircase": ib.Staircase(ib.Interval(0, 120), sensitivity=0.5, epsilon=2.0).event(),
    "staircase-integers": ib.Staircase(ib.Integers(0, 30), sensitivity=3, epsilon=0.7, edges="ignore").event(),
    "bounded-laplace": ib.BoundedLaplace(ib.Interval(0, 120), scale=0.5, bound=7, sensitivity=0.5).event(),
    "table": ib.Table(ib.Integers(0, 2), [[4, 2, 1], [2, 3, 2], [1, 2, 4]], sensitivity=1).event(),
    "table-long": ib.Table(
        ib.Interval(0, 1), [[2**90 + 1, 2**89], [2**89, 2**90 + 1]], sensitivity=0.5, cells=2
    ).event(),
    "denoised": Draw(AGE, "denoised"),
    "pure": Pure(0.1),
    "approximate": Approximate(0.1, 1e-7),
    "zcdp": Zcdp(0.05),
    "array": SHARE.event(12),
    "composed": Composed((AGE.event(), Repeated(Pure(0.1), 3), Pure(0.25))),
    "parallel": Parallel((Pure(0.5), Composed((Pure(0.3), Pure(0.3))), Zcdp(0.01))),
    "plan": Plan({"columns": ["age"], "how": "mean", "bounds": [0, 120.5], "café": None}, AGE.event()),
}


def known(event: Event) -> dict[str, float | str]:
    """What is compared: infinite numbers as texts."""
    found = event.guarantee()
    numbers = {
        "epsilon": found.epsilon(),
        "epsilon at 1e-6": found.epsilon(1e-6),
        "delta at 0.05": found.delta(0.05),
        "rdp at 8": found.rdp(8.0),
    }
    return {name: float(x) if math.isfinite(x) else "inf" for name, x in numbers.items()}


def main() -> None:
    there: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    fresh = {
        name: {"record": event.to_json(), "guarantee": known(event)}
        for name, event in EVENTS.items()
        if name not in there
    }
    FILE.write_text(json.dumps(there | fresh, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

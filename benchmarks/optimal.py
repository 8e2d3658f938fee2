"""How long the best table takes, over the number of cells; and how far its loss is from the proven bound.

``BENCH_QUICK=1`` in the environment shortens it, for a trial; the tables then go to ``build/benchmarks``.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import inbounds as ib
from benchmarks.report import (
    QUICK,
    Timing,
    duration,
    growth_exponent,
    machine,
    measure,
    peak_memory,
    progress,
    table,
    write,
)

CELLS = (20, 40) if QUICK else (20, 40, 60, 80, 100, 150, 200)
CELLS_DELTA = (10, 15) if QUICK else (10, 15, 20, 25, 30, 40)
LIMIT = 60.0 if QUICK else 600.0  # seconds of processor time for one program
EPSILON, DELTA = 1.0, 1e-6
#: What a plain program for the same solver's kind took, by number of cells: seconds.
PLAIN = {60: 26.0, 100: 293.0}

#: (name, share of the range that is the sensitivity, or the sensitivity itself)
SENSITIVITIES: tuple[tuple[str, float], ...] = (("1", 1), ("5", 5), ("range / 2", 0.5), ("range", 1.0))
KINDS: dict[str, dict[str, Any]] = {
    "adjacent": {},
    "worst case": {"criterion": "worst"},
    "metric": {"guarantee": "metric"},
    f"delta {DELTA:g}": {"delta": DELTA},
}


def main() -> list[str]:
    """Solve everything and write the tables."""
    points = [solve(kind, name, n) for kind in KINDS for name, _ in SENSITIVITIES for n in sizes(kind)]
    bounds = [bound(ratio, epsilon) for ratio in (30, 1000, 10_000) for epsilon in (0.1, 1.0)]
    data = {"machine": machine(), "limit": LIMIT, "points": points, "bounds": bounds}
    return write("optimal", render(data), data)


def sizes(kind: str) -> tuple[int, ...]:
    if kind.startswith("delta"):
        return CELLS_DELTA
    return CELLS if kind == "adjacent" else tuple(n for n in CELLS if n <= 100)


def sensitivity_of(name: str, cells: int) -> int:
    value = dict(SENSITIVITIES)[name]
    return max(1, round(value * (cells - 1))) if "range" in name else int(value)


def point(kind: str, name: str, cells: int) -> dict[str, Any]:
    """One program; runs in a process of its own, so that its peak memory is its own too."""
    found: list[Any] = []

    def work() -> None:
        asked = {"sensitivity": sensitivity_of(name, cells), "epsilon": EPSILON, **KINDS[kind]}
        found.append(ib.optimal(ib.Integers(0, cells - 1), **asked))

    before = peak_memory()
    timing = measure(work, limit=LIMIT, runs=5, spend=2.0, slow=2.0)
    best = found[-1] if found else None
    return {
        **timing.record(),
        "shown": timing.shown,
        "value": best.value if best else None,
        "gap": best.gap if best else None,
        "memory": round(peak_memory() - before, 1),
    }


def solve(kind: str, name: str, cells: int) -> dict[str, Any]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            found = pool.submit(point, kind, name, cells).result()
        except BrokenProcessPool:  # most likely out of memory
            timing = Timing("out of memory")
            found = {**timing.record(), "shown": timing.status, "value": None, "gap": None, "memory": None}
    progress(f"[{kind}, sensitivity {name}] {cells} cells: {found['shown']}")
    return {"kind": kind, "sensitivity": name, "cells": cells, **found}


def bound(ratio: int, epsilon: float) -> dict[str, Any]:
    """The lower bound where the program is too large."""
    found: list[float] = []
    domain = ib.Interval(0, ratio)
    timing = measure(
        lambda: found.append(ib.optimal_bound(domain, sensitivity=1, epsilon=epsilon)), limit=LIMIT, runs=3, slow=2.0
    )
    progress(f"[bound] range {ratio}, epsilon {epsilon}: {timing.shown}")
    return {"ratio": ratio, "epsilon": epsilon, "value": found[-1], **timing.record(), "shown": timing.shown}


# ---------------------------------------------------------------- the text


def render(data: dict[str, Any]) -> str:
    parts = [
        "# The best table: how long it takes",
        f"`optimal` on whole numbers from 0, every number a cell, epsilon {EPSILON:g}, squared loss, flat prior: "
        "solved, "
        "made whole numbers and verified. Times are processor times, of all threads together; the median of a few runs "
        "where it is short.",
    ]
    for kind in KINDS:
        parts += [f"## {kind[:1].upper()}{kind[1:]}", render_kind(data["points"], kind)]
    parts += [
        "## How good",
        f"The largest gap between the loss of a table that was returned and the proven lower bound: "
        f"{max(p['gap'] for p in data['points'] if p['gap'] is not None):.1e}, relatively. The most memory one program "
        f"took: {max(p['memory'] for p in data['points'] if p['memory'] is not None):.0f} MiB.",
        render_plain(data["points"]),
        "## The bound for long ranges",
        "Intervals, sensitivity 1: a lower bound of the mean squared error of every mechanism.",
        table(
            ("range / sensitivity", "epsilon", "bound", "time"),
            [(str(b["ratio"]), f"{b['epsilon']:g}", f"{b['value']:.5g}", b["shown"]) for b in data["bounds"]],
            left=0,
        ),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def render_kind(points: list[dict[str, Any]], kind: str) -> str:
    names = [name for name, _ in SENSITIVITIES]
    cells = {(p["sensitivity"], p["cells"]): p for p in points if p["kind"] == kind}
    rows = [(str(n), *(cells[name, n]["shown"] for name in names)) for n in sizes(kind)]
    growth = []
    for name in names:
        done = [cells[name, n] for n in sizes(kind) if cells[name, n]["status"] == "ok"]
        exponent = growth_exponent([p["cells"] for p in done], [p["cpu"] for p in done], min(sizes(kind)))
        growth.append(f"{exponent:.1f}")
    rows.append(("growth, as a power of cells", *growth))
    return table(("cells", *(f"sensitivity {name}" for name in names)), rows)


def render_plain(points: list[dict[str, Any]]) -> str:
    lines = []
    for n, seconds in PLAIN.items():
        ours = [p["cpu"] for p in points if p["kind"] == "adjacent" and p["cells"] == n and p["status"] == "ok"]
        if ours:
            lines.append(
                f"The same program of {n} cells, written out in full for a general solver, was measured once at "
                f"{duration(seconds)}; here the slowest takes {duration(max(ours))}."
            )
    return " ".join(lines)

"""Whether the time of a release tells where the true value lies: at a wall, in the middle, off the grid.

``BENCH_QUICK=1`` in the environment shortens it, for a trial; the tables then go to ``build/benchmarks``.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import inbounds as ib
from benchmarks import peers
from benchmarks.report import QUICK, machine, progress, table, write
from benchmarks.sampling import FAMILIES, each

COUNT = 65_536  # equal true values in an array
CALLS = 200  # releases of one number that are timed together
ARRAY_SECONDS = 0.15 if QUICK else 3.2  # for each mechanism, all places together
SCALAR_SECONDS = 0.1 if QUICK else 0.8
FEW = 40  # rounds
PEER_SECONDS = 0.5 if QUICK else 4.0
RATIOS = (0.1, 2.0, 20.0, 1000.0)  # width of the domain over the scale
AIM = 0.03

MIDDLE, AGAIN = "middle", "middle again"
LOWER, UPPER, OFF, ELSEWHERE = "lower wall", "upper wall", "off the grid", "elsewhere"
PLACES = (LOWER, UPPER, OFF, ELSEWHERE)
IRRATIONAL = math.sqrt(0.5) - 1.0 / 3.0  # 0.37...: on no power-of-two grid that is used here


@dataclass(frozen=True)
class Kind:
    """A domain, its width (0: without end), the true values to compare, and how its edges are treated."""

    domain: Any
    width: float
    places: Callable[[float], dict[str, float]]  # of the scale
    edges: str = "truncate"


def on_interval(_: float) -> dict[str, float]:
    return {LOWER: 0.0, MIDDLE: 0.5, UPPER: 1.0, OFF: IRRATIONAL}


def on_spans(_: float) -> dict[str, float]:
    """Eleven spans of length 0.5, one apart: the sixth is the middle one, elsewhere is the middle of the first."""
    return {LOWER: 0.0, MIDDLE: 5.25, UPPER: 10.5, OFF: 5.0 + IRRATIONAL, ELSEWHERE: 0.25}


def on_integers(_: float) -> dict[str, float]:
    return {LOWER: 0, MIDDLE: 50, UPPER: 100, ELSEWHERE: 1}


def on_half_line(scale: float) -> dict[str, float]:
    """Elsewhere is far out."""
    return {LOWER: 0.0, MIDDLE: 10.0 * scale, OFF: (10.0 + IRRATIONAL) * scale, ELSEWHERE: 1000.0 * scale}


KINDS: dict[str, Kind] = {
    "interval": Kind(ib.Interval(0, 1), 1.0, on_interval),
    "interval, clamp": Kind(ib.Interval(0, 1), 1.0, on_interval, "clamp"),
    "spans, 10 holes": Kind(ib.Spans([(i, i + 0.5) for i in range(11)]), 10.5, on_spans),
    "integers": Kind(ib.Integers(0, 100), 100.0, on_integers),
    "half-line": Kind(ib.Interval(0, math.inf), 0.0, on_half_line),
}


def main() -> list[str]:
    """Measure everything and write the tables."""
    cases = [(f, k, r) for f in FAMILIES for k, kind in KINDS.items() for r in (RATIOS if kind.width else (None,))]
    arrays = [measure("arrays", i, len(cases), *case) for i, case in enumerate(cases, start=1)]
    scalars = [measure("scalars", i, len(cases), *case) for i, case in enumerate(cases, start=1)]
    data = {"machine": machine(), "arrays": arrays, "scalars": scalars, "peer": ask_peer()}
    return write("timing_leak", render(data), data)


# ---------------------------------------------------------------- measuring


def measure(what: str, number: int, of: int, family: str, kind: str, ratio: float | None) -> dict[str, Any]:
    k = KINDS[kind]
    scale = k.width / ratio if ratio else 1.0
    places = k.places(scale)
    places[AGAIN] = places[MIDDLE]
    found: dict[str, Any] = {"family": family, "kind": kind, "ratio": ratio}
    label = f"{what} [{number}/{of}] {family}, {kind}, {width(found)}"
    try:
        mechanism = FAMILIES[family](k.domain, scale=scale, sensitivity=1 if kind == "integers" else 0.1, edges=k.edges)
        run = array_rounds if what == "arrays" else scalar_rounds
        rounds = run(mechanism, list(places.values()))
    except Exception as error:  # one failing row must not cost the others: it is shown in the table
        progress(f"{label}: {type(error).__name__}: {error}")
        return {**found, "status": "failed"}
    found |= {"status": "ok", **compare(np.array(rounds), list(places))}
    shown = ", ".join(f"{p} {r['ratio']:.3f}" for p, r in found["places"].items())
    progress(f"{label}: {each(found['middle'])}; {shown}")
    return found


def array_rounds(mechanism: Any, values: list[float]) -> list[list[float]]:
    """Seconds a value at each true value, in rounds; all use the same memory, so that its address plays no part."""
    buffer = np.empty(COUNT, dtype=np.int64 if isinstance(values[0], int) else np.float64)

    def once(value: float) -> float:
        buffer.fill(value)
        start = time.process_time_ns()
        mechanism.release(buffer)
        return (time.process_time_ns() - start) * 1e-9 / COUNT

    return interleaved(once, values, ARRAY_SECONDS)


def scalar_rounds(mechanism: Any, values: list[float]) -> list[list[float]]:
    """Seconds a release at each true value, in rounds; one number a release, many releases timed together."""
    release = mechanism.release

    def once(value: float) -> float:
        start = time.process_time_ns()
        for _ in range(CALLS):
            release(value)
        return (time.process_time_ns() - start) * 1e-9 / CALLS

    return interleaved(once, values, SCALAR_SECONDS)


def interleaved(once: Callable[[float], float], values: list[float], seconds: float) -> list[list[float]]:
    """Rounds in random order, for about ``seconds``, or three times as long where that gives few; one warms up."""
    shuffle = np.random.default_rng(7)
    rounds: list[list[float]] = []
    gc.disable()
    start = time.process_time()
    while len(rounds) < 4 or time.process_time() - start < (seconds if len(rounds) > FEW else 3.0 * seconds):
        row = [0.0] * len(values)
        for i in shuffle.permutation(len(values)):
            row[i] = once(values[i])
        rounds.append(row)
    gc.enable()
    return rounds[1:]


def compare(rounds: Any, names: list[str]) -> dict[str, Any]:
    """The median ratio to the middle within a round, with its standard error from a bootstrap over the rounds.

    Not the ratio of the medians: within a round a drift of the machine cancels.
    """
    middle = rounds[:, names.index(MIDDLE)]
    paired = rounds / middle[:, None]
    rng = np.random.default_rng(8)
    drawn = [np.median(paired[rng.integers(0, len(paired), len(paired))], axis=0) for _ in range(300)]
    medians, ratios, errors = np.median(rounds, axis=0), np.median(paired, axis=0), np.std(drawn, axis=0)
    places = {
        name: {"median": float(medians[i]), "ratio": round(float(ratios[i]), 5), "error": round(float(errors[i]), 5)}
        for i, name in enumerate(names)
        if name != MIDDLE
    }
    return {"middle": float(np.median(middle)), "rounds": len(rounds), "places": places}


def ask_peer() -> dict[str, Any]:
    places = {**on_interval(0.0), AGAIN: 0.5}
    progress("asking diffprivlib")
    settings = [
        {
            "lower": 0.0,
            "upper": 1.0,
            "scale": 1.0 / r,
            "at": list(places.values()),
            "calls": 50,
            "seconds": PEER_SECONDS,
        }
        for r in RATIOS
    ]
    try:
        answer = peers.ask("diffprivlib", "peer_diffprivlib_sampling.py", {"places": settings})
    except peers.PeerUnavailable as error:
        return {"available": False, "reason": str(error)}
    rows = [
        {
            "family": "Laplace",
            "kind": "interval",
            "ratio": r,
            "status": "ok",
            **compare(np.array(rounds), list(places)),
        }
        for r, rounds in zip(RATIOS, answer["places"], strict=True)
    ]
    return {"available": True, "version": answer["version"], "numpy": answer["numpy"], "rows": rows}


# ---------------------------------------------------------------- the text


def render(data: dict[str, Any]) -> str:
    peer = data["peer"]
    parts = [
        "# Timing: does it tell where the true value lies?",
        "The time of `release` with the true value at a wall, or elsewhere, over the time with it in the middle of the "
        "domain. Processor times, in rounds in which all places come in random order; the median of the ratios within "
        "a round, and after ± its standard error, from a bootstrap over the rounds. `middle again` is the middle "
        "against itself, measured in the same way: what it differs from 1 is noise of the measurement. Width is that "
        "of the domain, from end to end.",
        "## Aims",
        render_aims(data),
        "## Arrays",
        f"{COUNT} equal true values. Interval [0, 1]; spans [0, 0.5], [1, 1.5] to [10, 10.5]; integers 0 to 100; "
        "half-line [0, ∞), where the middle is 10 scales in. Elsewhere: inside the first "
        "span; next to the wall on the integers; 1000 scales in on the half-line.",
        render_rows(data["arrays"]),
        "## One at a time",
        f"The same with one number a release, {CALLS} releases timed together. Interpreted code: no aim is set here.",
        render_rows(data["scalars"]),
        "## Beside diffprivlib",
    ]
    if peer["available"]:
        parts += [
            f"`LaplaceBoundedDomain.randomise`, diffprivlib {peer['version']} (numpy {peer['numpy']}), in an "
            "environment of its own: [0, 1], one value a call, with the same scales. It draws until a value falls "
            "inside, so that the number of draws depends on the true value.",
            render_rows(peer["rows"]),
        ]
    else:
        parts.append(f"Not compared in this run: {peer['reason']}.")
    return "\n\n".join(parts) + "\n"


def width(record: dict[str, Any]) -> str:
    return "∞" if record["ratio"] is None else f"{record['ratio']:g}"


def farthest(rows: list[dict[str, Any]], *, floor: bool) -> tuple[float, str]:
    """How far the ratio farthest from 1 is, and its text; of the middle against itself if ``floor``."""
    found = [
        (r["places"][p]["ratio"], r["places"][p]["error"], r, p)
        for r in rows
        if r["status"] == "ok"
        for p in r["places"]
        if (p == AGAIN) == floor
    ]
    if not found or any(r["status"] != "ok" for r in rows):
        return math.inf, "failed"
    ratio, error, row, place = max(found, key=lambda f: abs(f[0] - 1.0))
    several = len({r["kind"] for r in rows}) > 1
    where = ([row["kind"]] if several else []) + [f"width {width(row)} scales"] + ([] if floor else [place])
    return abs(ratio - 1.0), f"{ratio:.3f} ± {error:.3f} ({', '.join(where)})"


def render_aims(data: dict[str, Any]) -> str:
    rows = []
    for family in FAMILIES:
        of = [r for r in data["arrays"] if r["family"] == family]
        for kind in KINDS:
            away, shown = farthest([r for r in of if r["kind"] == kind], floor=False)
            met = "yes" if away <= AIM else "no"
            rows.append((f"{family}, {kind}, arrays", f"within {AIM:.0%} of 1", shown, met))
        rows.append((f"{family}, the noise of the measurement", "", farthest(of, floor=True)[1], ""))
        of = [r for r in data["scalars"] if r["family"] == family]
        rows.append((f"{family}, one at a time", "", farthest(of, floor=False)[1], ""))
        rows.append((f"{family}, one at a time, the noise", "", farthest(of, floor=True)[1], ""))
    if data["peer"]["available"]:
        rows.append(("diffprivlib, Laplace, interval", "", farthest(data["peer"]["rows"], floor=False)[1], ""))
        rows.append(("diffprivlib, the noise", "", farthest(data["peer"]["rows"], floor=True)[1], ""))
    return table(("", "aim", "ratio farthest from 1", "met"), rows, left=2)


def render_rows(records: list[dict[str, Any]]) -> str:
    used = [p for p in (*PLACES, AGAIN) if any(p in r.get("places", {}) for r in records)]
    rows = []
    for r in records:
        start = (r["family"], r["kind"], width(r))
        if r["status"] != "ok":
            rows.append((*start, r["status"], *["-"] * (len(used) + 1)))
            continue
        ratios = [
            f"{r['places'][p]['ratio']:.3f} ± {r['places'][p]['error']:.3f}" if p in r["places"] else "-" for p in used
        ]
        rows.append((*start, each(r["middle"]), *ratios, str(r["rounds"])))
    return table(("", "", "width / scale", "middle", *used, "rounds"), rows, left=2)

"""How long calibration takes: per family, domain and target; as spans and dimensions grow; beside diffprivlib."""

from __future__ import annotations

import math
import multiprocessing
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

import inbounds as ib
from benchmarks import peers
from benchmarks.report import (
    QUICK,
    OverLimit,
    Timing,
    duration,
    growth_exponent,
    machine,
    measure,
    peak_memory,
    power,
    progress,
    stopped_after,
    table,
    write,
)

LIMIT = 1.0 if QUICK else 20.0  # seconds of processor time for one calibration of the tables
GROWTH_LIMIT = 5.0 if QUICK else 60.0

FAMILIES: dict[str, type[ib.Laplace] | type[ib.Gaussian]] = {"Laplace": ib.Laplace, "Gaussian": ib.Gaussian}
DOMAINS: dict[str, Any] = {
    "interval": ib.Interval(0, 100),
    "half-line": ib.Interval(0, math.inf),
    "line": ib.Interval(-math.inf, math.inf),
    "spans (2)": ib.Spans([(0, 40), (60, 100)]),
    "integers": ib.Integers(0, 100),
    "box (3)": ib.Box([0, 0, 0], [10, 20, 30]),
}
SMALLER = ("interval", "spans (2)", "integers", "box (3)")
TARGETS: dict[str, dict[str, Any]] = {
    "epsilon": {"epsilon": 1.0},
    "epsilon, delta": {"epsilon": 1.0, "delta": 1e-6},
    "rho": {"rho": 0.1},
    "rdp": {"rdp": (8.0, 0.5)},
    "mu": {"mu": 1.0},
}

SPANS = tuple(10**k for k in range(1, 4 if QUICK else 7))
DIMENSIONS = tuple(10**k for k in range(4 if QUICK else 7))
FIT_FROM = 1000  # below, the fixed cost of a calibration hides its growth

PEER_TIMED = [
    {"epsilon": epsilon, "delta": delta, "sensitivity": 1.0, "width": width}
    for delta, width, epsilon in [
        *((0.0, width, epsilon) for width in (1.0, 10.0, 1000.0) for epsilon in (0.1, 1.0, 10.0)),
        *((1e-6, width, 1.0) for width in (1.0, 10.0, 1000.0)),
    ]
]
PEER_RUNS = 3 if QUICK else 51
PEER_CHECKED = 20 if QUICK else 1000
PEER_CHECKED_DELTA = 5 if QUICK else 100


def main() -> list[str]:
    """Measure everything and write the tables."""
    targets = measure_targets()
    growth = [measure_growth(*line) for line in GROWTHS]
    peer = compare_peer()
    timings = [r for r in (*targets, *(p for g in growth for p in g["points"])) if r["wall"]]
    share = sum(r["cpu"] for r in timings) / sum(r["wall"] for r in timings)
    data = {
        "machine": {**machine(), "processor_share": round(share, 3)},
        "limits": {"targets": LIMIT, "growth": GROWTH_LIMIT},
        "targets": targets,
        "growth": growth,
        "peer": peer,
    }
    return write("calibration", render(data), data)


# ---------------------------------------------------------------- families, domains, targets


def calibrate(family: str, domain: str, target: str, edges: str) -> ib.Laplace | ib.Gaussian:
    limit: Any = 1
    if domain.startswith("box"):
        limit = ib.L1(1) if family == "Laplace" else ib.L2(1)
    return FAMILIES[family].calibrate(DOMAINS[domain], sensitivity=limit, edges=edges, **TARGETS[target])


def measure_targets() -> list[dict[str, Any]]:
    cells = [("truncate", f, d, t) for f in FAMILIES for d in DOMAINS for t in TARGETS]
    cells += [(e, f, d, t) for e in ("clamp", "ignore") for f in FAMILIES for d in SMALLER for t in TARGETS]
    records = []
    for number, (edges, family, domain, target) in enumerate(cells, start=1):

        def work(edges: str = edges, family: str = family, domain: str = domain, target: str = target) -> object:
            return calibrate(family, domain, target, edges)

        timing = measure(work, limit=LIMIT)
        progress(f"[{number}/{len(cells)}] {edges}, {family}, {domain}, {target}: {timing.shown}")
        records.append(
            {
                "edges": edges,
                "family": family,
                "domain": domain,
                "target": target,
                **timing.record(),
                "shown": timing.shown,
            }
        )
    return records


# ---------------------------------------------------------------- growth


def random_spans(count: int) -> ib.Spans:
    """Spans that do not touch, with lengths and holes uniform in [0.2, 1.8]: the typical spacing is 2."""
    ends = np.cumsum(np.random.default_rng(1).uniform(0.2, 1.8, 2 * count))
    return ib.Spans(ends.reshape(count, 2).tolist())


def random_box(dimension: int) -> ib.Box:
    """A box with distinct widths, uniform in [1, 10]."""
    return ib.Box(np.zeros(dimension), np.random.default_rng(2).uniform(1.0, 10.0, dimension))


#: what grows, and the sizes
GROWTHS = (
    ("Laplace, spans", SPANS),
    ("Gaussian, box, L2", DIMENSIONS),
    ("Laplace, box, L1", DIMENSIONS),
)


def growth_point(name: str, size: int) -> dict[str, Any]:
    """One size; runs in a process of its own, so that its peak memory is its own too."""
    family = FAMILIES[name.split(",")[0]]
    start = time.process_time()
    domain = random_spans(size) if "spans" in name else random_box(size)
    built = time.process_time() - start
    before = peak_memory()
    limit: Any = 6.0 if "spans" in name else ib.L2(1) if "L2" in name else ib.L1(1)
    timing = measure(
        lambda: family.calibrate(domain, sensitivity=limit, epsilon=1.0), limit=GROWTH_LIMIT, spend=1.0, slow=1.0
    )
    after = peak_memory()
    memory = {"memory_domain": round(before, 1), "memory_peak": round(after, 1)} if math.isfinite(after) else {}
    return {"size": size, "build": built, **timing.record(), **memory, "shown": timing.shown}


def measure_growth(name: str, sizes: tuple[int, ...]) -> dict[str, Any]:
    points: list[dict[str, Any]] = []
    for size in sizes:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            try:
                point = pool.submit(growth_point, name, size).result()
            except BrokenProcessPool:  # most likely out of memory
                timing = Timing("out of memory")
                point = {"size": size, "build": 0.0, **timing.record(), "shown": timing.status}
        points.append(point)
        progress(f"[{name}] {size}: {point['shown']}")
        if point["status"] != "ok":
            break
    done = [p for p in points if p["status"] == "ok"]
    exponent = growth_exponent([p["size"] for p in done], [p["cpu"] for p in done], FIT_FROM)
    return {"name": name, "exponent": round(exponent, 3) if math.isfinite(exponent) else None, "points": points}


# ---------------------------------------------------------------- diffprivlib


def compare_peer() -> dict[str, Any]:
    """Time and verdict beside diffprivlib's LaplaceBoundedDomain, in the same run."""
    progress("diffprivlib: scales and times")
    pure, approximate = random_settings(PEER_CHECKED, delta=False), random_settings(PEER_CHECKED_DELTA, delta=True)
    question = {"timed": PEER_TIMED, "checked": [*pure, *approximate], "runs": PEER_RUNS}
    before = [time_ours(s) for s in PEER_TIMED]
    try:
        answer = peers.ask("diffprivlib", "peer_diffprivlib.py", question)
    except peers.PeerUnavailable as error:
        return {"available": False, "reason": str(error)}
    after = [time_ours(s) for s in PEER_TIMED]  # before and after, so that a drift of the machine cancels
    timed = []
    for setting, theirs, first, second in zip(PEER_TIMED, answer["timed"], before, after, strict=True):
        ours = (first + second) / 2.0
        scale = laplace(setting).scale
        ratio = None if theirs["scale"] is None else theirs["scale"] / scale
        timed.append(
            {**setting, "ours": ours, "theirs": theirs["cpu"], "ratio": ours / theirs["cpu"], "scale_ratio": ratio}
        )
    progress("diffprivlib: verdicts")
    theirs_scales = answer["scales"]
    return {
        "available": True,
        "version": answer["version"],
        "numpy": answer["numpy"],
        "timed": timed,
        "pure": {
            "theirs": verdict(pure, theirs_scales[: len(pure)]),
            "ours": verdict(pure, [laplace(s).scale for s in pure]),
        },
        "approximate": approximate_verdict(approximate, theirs_scales[len(pure) :]),
    }


def random_settings(count: int, *, delta: bool) -> list[dict[str, float]]:
    """Epsilon in [0.01, 10], width in [1, 10^4] sensitivities, delta in [1e-9, 1e-2]: uniform in the logarithm."""
    rng = np.random.default_rng(3)

    def draw(low: float, high: float) -> list[float]:
        return [float(f"{x:.6g}") for x in np.exp(rng.uniform(math.log(low), math.log(high), count))]

    columns = draw(0.01, 10.0), draw(1.0, 1e4), draw(1e-9, 1e-2)
    return [
        {"epsilon": e, "delta": d if delta else 0.0, "sensitivity": 1.0, "width": w}
        for e, w, d in zip(*columns, strict=True)
    ]


def laplace(setting: dict[str, float]) -> ib.Laplace:
    return ib.Laplace.calibrate(
        ib.Interval(0, setting["width"]),
        sensitivity=setting["sensitivity"],
        epsilon=setting["epsilon"],
        delta=setting["delta"],
    )


def time_ours(setting: dict[str, float]) -> float:
    timing = measure(lambda: laplace(setting), limit=LIMIT, runs=PEER_RUNS, spend=0.3)
    return timing.cpu


def exact_loss(setting: dict[str, float], scale: float) -> Decimal:
    """The pure loss on an interval, to 60 digits, of the very floats given."""
    with localcontext() as context:
        context.prec = 60
        change = Decimal(setting["sensitivity"]) / Decimal(scale)
        width = Decimal(setting["width"]) / Decimal(scale)
        ratio = (1 - (-change).exp()) * (1 - (change - width).exp()) / (1 - (-width).exp())
        return change + (1 + ratio).ln()


def verdict(settings: list[dict[str, float]], scales: list[float | None]) -> dict[str, Any]:
    """How many scales are too small for their epsilon, and by how much the loss then exceeds it, relatively."""
    excess = [
        float(exact_loss(setting, scale) / Decimal(setting["epsilon"]) - 1) if scale else math.inf
        for setting, scale in zip(settings, scales, strict=True)
    ]
    found = [x for x in excess if math.isfinite(x)]
    return {
        "settings": len(settings),
        "no_scale": len(settings) - len(found),
        "too_small": sum(x > 0.0 for x in found),
        "too_small_by_1e-12": sum(x > 1e-12 for x in found),
        "largest_excess": max([0.0, *found]),
        "largest_waste": -min([0.0, *found]),
        "median_waste": statistics.median(-x for x in found) if found else None,
    }


def approximate_verdict(settings: list[dict[str, float]], scales: list[float | None]) -> dict[str, Any]:
    """The same with delta: their delta evaluated with our profile, which is rounded up by 1e-10 relative."""
    above, within, share = 0, 0, []
    for setting, scale in zip(settings, scales, strict=True):
        if scale is None:
            continue
        domain = ib.Interval(0, setting["width"])
        mechanism = ib.Laplace(domain, scale=scale, sensitivity=setting["sensitivity"])
        try:
            with stopped_after(LIMIT):
                delta = float(mechanism.delta(setting["epsilon"]))
        except OverLimit:
            continue
        above += delta > setting["delta"] * (1.0 + 1e-9)
        within += delta <= setting["delta"] * (1.0 + 1e-9)
        share.append(delta / setting["delta"])
    return {"settings": above + within, "too_small": above, "median_delta_used": statistics.median(share)}


# ---------------------------------------------------------------- the text


def render(data: dict[str, Any]) -> str:
    m = data["machine"]
    parts = [
        "# Calibration: how long it takes",
        "Times are processor times of one `calibrate` call, the median of several runs after a warm-up (one run where "
        "it takes more than 0.4 s). The code runs on one core, so on an idle machine they are what a clock on the wall "
        f"shows; in this run the processor was ours {min(m['processor_share'], 1.0):.0%} of the time.",
        "## Aims",
        render_aims(data),
        "## Families, domains and targets",
        "Sensitivity 1. Interval [0, 100], half-line [0, ∞), spans [0, 40] and [60, 100], integers 0 to 100, box with "
        "widths 10, 20 and 30 (L1 for Laplace, L2 for Gaussian). Targets: epsilon 1; epsilon 1 with delta 1e-6; "
        "rho 0.1; Rényi epsilon 0.5 at order 8; mu 1. "
        f'"-": no scale reaches the target. "> {duration(LIMIT)}": stopped there.',
        "### Truncated",
        render_targets(data["targets"], ("truncate",)),
        "### Clamped and ignored edges",
        render_targets(data["targets"], ("clamp", "ignore")),
        "## Growth",
        "Pure epsilon 1. Spans: lengths and holes uniform in [0.2, 1.8], sensitivity 6, three typical spacings. Boxes: "
        "distinct widths uniform in [1, 10], sensitivity 1 in the norm named. Memory: the most the process had "
        "resident, with the interpreter, before and after calibrating.",
    ]
    for growth in data["growth"]:
        parts += [f"### {growth['name']}", render_growth(growth)]
    parts += ["## Beside diffprivlib", *render_peer(data["peer"])]
    return "\n\n".join(parts) + "\n"


def render_aims(data: dict[str, Any]) -> str:
    cells = {(r["edges"], r["family"], r["domain"], r["target"]): r for r in data["targets"]}
    growth = {g["name"]: g for g in data["growth"]}
    rows = []
    for family in FAMILIES:
        r = cells["truncate", family, "interval", "epsilon"]
        rows.append(
            (
                f"{family}, interval, pure epsilon",
                "well under 1 ms",
                r["shown"],
                r["status"] == "ok" and r["cpu"] < 5e-4,
            )
        )
    for name, size, aim, seconds in (
        ("Laplace, spans", 10**5, "under 1 s", 1.0),
        ("Gaussian, box, L2", 10**6, "under 5 s", 5.0),
        ("Laplace, box, L1", 10**6, "under 5 s", 5.0),
    ):
        point = next((p for p in growth[name]["points"] if p["size"] == size), None)
        met = point is not None and point["status"] == "ok" and point["cpu"] < seconds
        rows.append((f"{name}, {power(size)}", aim, point["shown"] if point else "not reached", met))
    for name, g in growth.items():
        exponent = g["exponent"]
        shown = "unknown" if exponent is None else f"exponent {exponent:.2f}"
        rows.append((f"{name}, growth", "at most linear", shown, exponent is not None and exponent <= 1.05))
    return table(("", "aim", "result", "met"), [(a, b, c, "yes" if d else "no") for a, b, c, d in rows])


def render_targets(records: list[dict[str, Any]], edges: tuple[str, ...]) -> str:
    rows: dict[tuple[str, ...], list[str]] = {}
    for r in records:
        if r["edges"] in edges:
            key = (r["family"], r["domain"]) if len(edges) == 1 else (r["edges"], r["family"], r["domain"])
            rows.setdefault(key, []).append(r["shown"])
    header = (*(() if len(edges) == 1 else ("edges",)), "family", "domain", *TARGETS)
    return table(header, [[*key, *cells] for key, cells in rows.items()], left=len(header) - len(TARGETS))


def render_growth(growth: dict[str, Any]) -> str:
    unit = "spans" if "spans" in growth["name"] else "dimensions"
    rows = []
    for p in growth["points"]:
        each = duration(p["cpu"] / p["size"]) if p["status"] == "ok" else "-"
        memory = [f"{p[k]:.0f} MiB" if k in p else "-" for k in ("memory_domain", "memory_peak")]
        rows.append((power(p["size"]), p["shown"], each, duration(p["build"]), *memory))
    text = table((unit, "calibrate", "each", "build the domain", "memory before", "peak"), rows, left=0)
    if growth["exponent"] is None:
        return text
    last = [p["cpu"] for p in growth["points"] if p["status"] == "ok"][-2:]
    return (
        f"{text}\n\nFitted from {power(FIT_FROM)} on: time grows like n^{growth['exponent']:.2f}; "
        f"over the last factor of ten like n^{math.log10(last[1] / last[0]):.2f}."
    )


def render_peer(peer: dict[str, Any]) -> list[str]:
    if not peer["available"]:
        return [f"Not compared in this run: {peer['reason']}."]
    rows = []
    for r in peer["timed"]:
        target = f"epsilon {r['epsilon']:g}" + (f", delta {r['delta']:g}" if r["delta"] else "")
        scale = "-" if r["scale_ratio"] is None else f"{r['scale_ratio']:.9f}"
        rows.append((f"{r['width']:g}", target, duration(r["ours"]), duration(r["theirs"]), f"{r['ratio']:.3g}", scale))
    header = ("width / sensitivity", "target", "inbounds", "diffprivlib", "time ratio", "their scale / ours")
    counts = []
    for name, v in (("inbounds", peer["pure"]["ours"]), (f"diffprivlib {peer['version']}", peer["pure"]["theirs"])):
        counts.append(
            (
                name,
                f"{v['too_small']} of {v['settings']}",
                str(v["too_small_by_1e-12"]),
                f"{v['largest_excess']:.1e}",
                f"{v['largest_waste']:.1e}",
                str(v["no_scale"]),
            )
        )
    approximate = peer["approximate"]
    return [
        f"The scale search of `LaplaceBoundedDomain`, diffprivlib {peer['version']} (numpy {peer['numpy']}), in an "
        "environment of its own, timed in the same run. Time ratios are ours over theirs: below 1 we are faster. A "
        "scale ratio above 1 is noise that was not needed.",
        table(header, rows, left=2),
        f"Scales too small for the epsilon asked, over {PEER_CHECKED} random settings (epsilon 0.01 to 10, width 1 to "
        "10^4 sensitivities, uniform in the logarithm), judged by the exact loss to 60 digits. Excess and waste are "
        "relative to epsilon.",
        table(
            ("", "too small", "by more than 1e-12", "largest excess", "largest waste", "no scale found"), counts, left=1
        ),
        f"With delta (1e-9 to 1e-2), {approximate['settings']} random settings: their scale was too small in "
        f"{approximate['too_small']}; the delta it really has is {approximate['median_delta_used']:.2g} of the one "
        "asked (median).",
    ]

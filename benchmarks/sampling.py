"""How long a release takes, what memory it needs, and a long stream; beside NumPy, SciPy, diffprivlib and OpenDP.

``BENCH_QUICK=1`` in the environment shortens every part, for a trial; the tables then go to ``build/benchmarks``.
"""

from __future__ import annotations

import gc
import math
import multiprocessing
import statistics
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import truncnorm

import inbounds as ib
from benchmarks import peers
from benchmarks.report import QUICK, machine, peak_memory, power, progress, table, write

SIZES = (1, 10**3, 10**5) if QUICK else (1, 10**3, 10**6, 10**7)
AIMED = SIZES[2]  # the size the aims are about
ROUNDS = dict.fromkeys(SIZES, 3) if QUICK else {1: 41, 10**3: 41, 10**6: 25, 10**7: 7}
SPEND = 1.0 if QUICK else 12.0  # seconds; work that has used them up at one size sits out the later rounds
SAMPLE = 4e-3  # seconds; shorter calls are timed many at once
MEMORY_SIZE = 10**5 if QUICK else 10**7
STREAM_CHUNK = 10**4 if QUICK else 10**6
STREAM_CHUNKS = 20 if QUICK else 1000

FAMILIES: dict[str, type[ib.Laplace] | type[ib.Gaussian]] = {"Laplace": ib.Laplace, "Gaussian": ib.Gaussian}
TOP = 100.0
SCALE = 3.0
WIDE, NARROW = "interval, wide", "interval, narrow"
WHOLE, WHOLE_LARGE = "integers", "integers, large scale"
SPANS = "spans, 10 holes"
DIMENSION = 10


@dataclass(frozen=True)
class Kind:
    """A domain with a scale, and which true values go with it (see ``true_values``)."""

    domain: Any
    values: str = "real"
    scale: float = SCALE
    edges: str = "truncate"


KINDS: dict[str, Kind] = {
    WIDE: Kind(ib.Interval(0, TOP)),
    NARROW: Kind(ib.Interval(0, TOP), scale=1000.0),
    "half-line": Kind(ib.Interval(0, math.inf)),
    "line": Kind(ib.Interval(-math.inf, math.inf), edges="ignore"),
    "interval, clamp": Kind(ib.Interval(0, TOP), edges="clamp"),
    SPANS: Kind(ib.Spans([(10 * i, 10 * i + 5) for i in range(11)]), values="spans"),
    WHOLE: Kind(ib.Integers(0, 100), values="whole"),
    WHOLE_LARGE: Kind(ib.Integers(0, 100_000), values="large", scale=200.0),
    "integers, clamp": Kind(ib.Integers(0, 100), values="whole", edges="clamp"),
    "box (10)": Kind(ib.Box(np.zeros(DIMENSION), np.full(DIMENSION, TOP)), values="box"),
}

NUMPY_LAPLACE = "NumPy laplace + clip"
NUMPY_NORMAL = "NumPy normal + clip"
TRUNCNORM = "SciPy truncnorm.rvs"

#: ratio to NumPy's laplace + clip at size AIMED
AIMS = (
    ("Laplace", WIDE, 1.2),
    ("Laplace", NARROW, 1.2),
    ("Gaussian", WIDE, 3.0),
    ("Gaussian", NARROW, 3.0),
    ("Laplace", WHOLE, 1.5),
    ("Laplace", WHOLE_LARGE, 1.5),
    ("Gaussian", WHOLE, 1.5),
    ("Gaussian", WHOLE_LARGE, 1.5),
    ("Laplace", SPANS, 5.0),
    ("Gaussian", SPANS, 5.0),
)
PEER_AIM = 500.0
MEMORY_AIM = 3.0
STREAM_GROWTH = 4.0  # MiB between a tenth of the stream and its end

STREAMED = (("Laplace", WIDE), ("Gaussian", WIDE))

DIFFPRIVLIB = tuple(
    {"lower": 0.0, "upper": TOP, "scale": KINDS[kind].scale, "values": 200 if QUICK else 2000, "runs": 3}
    for kind in (WIDE, NARROW)
)
OPENDP_SIZES = (1, 10**3, 10**4)
OPENDP = tuple(
    {
        "family": family,
        "whole": whole,
        "scale": SCALE,
        "k": k,
        "upper": TOP,
        "size": n,
        "seconds": 0.1 if QUICK else 0.5,
    }
    for family in FAMILIES
    for whole, k in ((False, None), (False, -22), (True, None))
    for n in OPENDP_SIZES
)


def main() -> list[str]:
    """Measure everything and write the tables."""
    speed, share, asked = measure_speed()
    data = {
        "machine": {**machine(), "processor_share": round(share, 3)},
        "speed": speed,
        "peers": summarise_peers(asked),
        "memory": [in_fresh_process(measure_memory, f, k, MEMORY_SIZE) for f in FAMILIES for k in KINDS],
        "stream": [in_fresh_process(measure_stream, f, k, STREAM_CHUNK, STREAM_CHUNKS) for f, k in STREAMED],
    }
    return write("sampling", render(data), data)


def make(family: str, kind: str) -> ib.Laplace | ib.Gaussian:
    k = KINDS[kind]
    limit: Any = 1
    if k.values == "box":
        limit = ib.L1(1) if family == "Laplace" else ib.L2(1)
    return FAMILIES[family](k.domain, scale=k.scale, sensitivity=limit, edges=k.edges)


def true_values(name: str, n: int, seed: int = 4) -> Any:
    """True values, uniform in the domain, made in parts so that making them needs no memory beside them."""
    rng = np.random.default_rng(seed)
    whole = {"whole": 100, "large": 100_000}.get(name)
    out = np.empty(n, dtype=np.float64 if whole is None else np.int64)
    for start in range(0, n, 10**5):
        part = out[start : start + 10**5]
        if whole is not None:
            part[:] = rng.integers(0, whole, part.size, endpoint=True)
        elif name == "spans":
            part[:] = 10.0 * rng.integers(0, 11, part.size) + rng.uniform(0.0, 5.0, part.size)
        else:
            part[:] = rng.uniform(0.0, TOP, part.size)
    return out.reshape(-1, DIMENSION) if name == "box" else out


# ---------------------------------------------------------------- speed


@dataclass(frozen=True)
class Work:
    """Something to time: ``array`` takes an array of true values, ``scalar`` one."""

    family: str
    kind: str
    values: str
    array: Callable[[Any], object]
    scalar: Callable[[Any], object]

    @property
    def name(self) -> str:
        return f"{self.family}, {self.kind}" if self.family else self.kind


def works() -> list[Work]:
    rng = np.random.default_rng()

    def laplace(q: Any) -> object:
        noisy = q + rng.laplace(0.0, SCALE, q.size)
        return np.clip(noisy, 0.0, TOP, out=noisy)

    def normal(q: Any) -> object:
        noisy = q + rng.normal(0.0, SCALE, q.size)
        return np.clip(noisy, 0.0, TOP, out=noisy)

    def truncated(q: Any) -> object:
        ends = (0.0 - q) / SCALE, (TOP - q) / SCALE
        return truncnorm.rvs(*ends, loc=q, scale=SCALE, size=np.shape(q), random_state=rng)

    found = [
        Work("", NUMPY_LAPLACE, "real", laplace, lambda q: min(max(q + rng.laplace(0.0, SCALE), 0.0), TOP)),
        Work("", NUMPY_NORMAL, "real", normal, lambda q: min(max(q + rng.normal(0.0, SCALE), 0.0), TOP)),
        Work("", TRUNCNORM, "real", truncated, truncated),
    ]
    for family in FAMILIES:
        for kind, k in KINDS.items():
            mechanism = make(family, kind)

            def release(q: Any, mechanism: Any = mechanism) -> object:
                return mechanism.release(q).value

            found.append(Work(family, kind, k.values, release, release))
            if kind == WIDE:

                def simulate(q: Any, mechanism: Any = mechanism) -> object:
                    return mechanism.simulate(50.0, size=np.size(q))

                found.append(Work(family, f"{kind}, simulate", k.values, simulate, simulate))
    return found


class Clock:
    """Times one work at one size; true values are used in turn, so that none comes twice in a row."""

    def __init__(self, work: Work, pool: Any, n: int) -> None:
        self.work = work
        self.n = pool.shape[-1] if n == 1 and pool.ndim == 2 else n  # values in one call
        self.inputs = self._inputs(pool, n)
        self.next = 0
        self.calls = 1
        self.cpu: dict[int, float] = {}
        self.wall = 0.0
        self.spent = 0.0
        self.status = "ok"
        self.attempt(-1)
        self.attempt(-1)  # the first run may build tables
        if self.cpu:
            self.calls = max(1, math.ceil(SAMPLE / (self.cpu.pop(-1) * self.n)))
        self.spent = self.wall = 0.0

    def _inputs(self, pool: Any, n: int) -> list[Any]:
        if n == 1:
            return list(pool[:20_000]) if pool.ndim == 2 else pool[:20_000].tolist()
        rows = n // DIMENSION if pool.ndim == 2 else n
        return [pool[start : start + rows] for start in range(0, min(len(pool), 100 * rows) - rows + 1, rows)]

    def attempt(self, number: int) -> None:
        """One sample: seconds a value, under the number of its round."""
        if self.status != "ok" or self.spent > SPEND:
            return
        start = self.next
        self.next = (start + self.calls) % len(self.inputs)
        given = [self.inputs[(start + i) % len(self.inputs)] for i in range(self.calls)]
        call = self.work.scalar if self.n == 1 else self.work.array
        try:
            wall, cpu = time.perf_counter(), time.process_time()
            for q in given:
                call(q)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        except Exception as error:  # one failing row must not cost the others: it is shown in the table
            progress(f"{self.work.name}, {self.n}: {type(error).__name__}: {error}")
            self.status = "failed"
            return
        self.cpu[number] = cpu / (self.n * self.calls)
        self.spent += cpu
        self.wall += wall


def measure_speed() -> tuple[list[dict[str, Any]], float, list[dict[str, Any]]]:
    """All works in rounds, in random order within each; the other packages are asked between the sizes."""
    largest = max(SIZES)
    pools = {name: true_values(name, largest) for name in {k.values for k in KINDS.values()}}
    todo = works()
    records: list[dict[str, Any]] = []
    asked = []
    cpu = wall = 0.0
    shuffle = np.random.default_rng(5)
    for n in SIZES:
        asked.append(ask_peers())
        progress(f"n = {power(n)}: warm-up")
        clocks = [Clock(work, pools[work.values], n) for work in todo]
        gc.disable()
        for number in range(ROUNDS[n]):
            for i in shuffle.permutation(len(clocks)):
                clocks[i].attempt(number)
            progress(f"n = {power(n)}: round {number + 1} of {ROUNDS[n]}")
        gc.enable()
        cpu += sum(c.spent for c in clocks)
        wall += sum(c.wall for c in clocks)
        base = {c.work.kind: c.cpu for c in clocks if not c.work.family}
        records += [record(c, n, base) for c in clocks]
    return records, cpu / wall, asked


def record(clock: Clock, n: int, base: dict[str, dict[int, float]]) -> dict[str, Any]:
    found: dict[str, Any] = {"family": clock.work.family, "kind": clock.work.kind, "n": n, "status": clock.status}
    if clock.cpu:
        samples = list(clock.cpu.values())
        found |= {"median": statistics.median(samples), "best": min(samples), "rounds": len(samples)}
        found |= {"calls": clock.calls, "values": clock.n}
        for name, key in ((NUMPY_LAPLACE, "over_laplace"), (NUMPY_NORMAL, "over_normal")):
            found[key] = ratio(clock.cpu, base[name])
    return found


def ratio(ours: dict[int, float], theirs: dict[int, float]) -> float:
    """The median over the rounds of the ratio within a round, where a drift of the machine cancels."""
    return statistics.median(ours[i] / theirs[i] for i in ours if i in theirs)


# ---------------------------------------------------------------- other packages


def ask_peers() -> dict[str, Any]:
    questions = {
        "diffprivlib": ("peer_diffprivlib_sampling.py", {"speed": DIFFPRIVLIB}),
        "opendp": ("peer_opendp_sampling.py", {"speed": OPENDP}),
    }
    answers = {}
    for name, (script, question) in questions.items():
        progress(f"asking {name}")
        try:
            answers[name] = peers.ask(name, script, question)
        except peers.PeerUnavailable as error:
            answers[name] = {"reason": str(error)}
    return answers


def summarise_peers(asked: list[dict[str, Any]]) -> dict[str, Any]:
    """Best and median of all samples, over every time the package was asked."""
    found: dict[str, Any] = {}
    for name, settings in (("diffprivlib", DIFFPRIVLIB), ("opendp", OPENDP)):
        answers = [a[name] for a in asked]
        missing = [a["reason"] for a in answers if "reason" in a]
        if missing:
            found[name] = {"available": False, "reason": missing[0]}
            continue
        rows = []
        for i, setting in enumerate(settings):
            samples = [s for a in answers for s in a["speed"][i]]
            summary = {"median": statistics.median(samples), "best": min(samples), "samples": len(samples)}
            rows.append({**setting, **summary})
        found[name] = {"available": True, "version": answers[0]["version"], "rows": rows}
    return found


# ---------------------------------------------------------------- memory


def in_fresh_process(work: Callable[..., dict[str, Any]], family: str, kind: str, *rest: int) -> dict[str, Any]:
    """The memory of one measurement is its own only in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            found = {"status": "ok", **pool.submit(work, family, kind, *rest).result()}
        except BrokenProcessPool:  # most likely out of memory
            found = {"status": "out of memory"}
        except Exception as error:
            progress(f"{family}, {kind}: {type(error).__name__}: {error}")
            found = {"status": "failed"}
    progress(f"{work.__name__}: {family}, {kind}: {found}")
    return {"family": family, "kind": kind, **found}


def resident() -> float:
    """The memory this process has resident now, in MiB (NaN where the system does not tell)."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024.0
    except OSError:
        pass
    return math.nan


def measure_memory(family: str, kind: str, n: int) -> dict[str, Any]:
    """The peak while ``n`` values are released, input and output included, in arrays of the input's size."""
    values = KINDS[kind].values
    mechanism = make(family, kind)
    mechanism.release(true_values(values, 20_000))  # what is made once, whatever the size, is not counted
    unit = 8.0 * n
    before = resident()
    q = true_values(values, n)
    kept = mechanism.release(q).value
    peak = (peak_memory() - before) * 2.0**20 / unit
    del q, kept
    gc.collect()
    tracemalloc.start()
    q = true_values(values, n)
    kept = mechanism.release(q).value
    traced = tracemalloc.get_traced_memory()[1] / unit
    tracemalloc.stop()
    del q, kept
    return {"n": n, "resident": round(peak, 3) if math.isfinite(peak) else None, "traced": round(traced, 3)}


def measure_stream(family: str, kind: str, chunk: int, chunks: int) -> dict[str, Any]:
    """Chunk after chunk, each with fresh true values: the memory on the way, and the time of the releases."""
    mechanism = make(family, kind)
    domain = KINDS[kind].domain
    rng = np.random.default_rng(6)
    q = np.empty(chunk)
    seconds, outside = 0.0, 0
    marks = {"start": resident()}
    stops = {max(1, chunks // 100): "hundredth", chunks // 10: "tenth", chunks: "end"}
    for done in range(1, chunks + 1):
        rng.random(out=q)
        q *= TOP
        start = time.process_time()
        drawn = mechanism.release(q).value
        seconds += time.process_time() - start
        outside += int(drawn.min() < domain.lower) + int(drawn.max() > domain.upper)
        del drawn
        if done in stops:
            marks[stops[done]] = resident()
        if done % max(1, chunks // 10) == 0:
            progress(f"stream: {family}, {kind}: {done / chunks:.0%}, {resident():.1f} MiB")
    known = all(map(math.isfinite, marks.values()))
    return {
        "values": chunk * chunks,
        "chunk": chunk,
        "each": seconds / (chunk * chunks),
        "chunks_outside": outside,
        "memory": {k: round(v, 1) for k, v in marks.items()} if known else None,
        "peak": round(peak_memory(), 1) if known else None,
    }


# ---------------------------------------------------------------- the text


def each(seconds: float | None) -> str:
    """Three digits of a time a value."""
    if seconds is None:
        return "-"
    unit, size = ("ns", 1e-9) if seconds < 1e-6 else ("µs", 1e-6) if seconds < 1e-3 else ("ms", 1e-3)
    value = seconds / size
    return f"{value:.{2 if value < 10.0 else 1 if value < 100.0 else 0}f} {unit}"


def render(data: dict[str, Any]) -> str:
    m = data["machine"]
    parts = [
        "# Sampling: how long a release takes",
        "Times are processor times a value of `release(array).value`, on one core: all that a caller waits for, with "
        "the check of the true values. All rows run in the same rounds, in random order within a round "
        f"({', '.join(f'{ROUNDS[n]} at {power(n)}' for n in SIZES)}). The true values are uniform in the domain, not "
        f"one value many times. In this run the processor was ours {min(m['processor_share'], 1.0):.0%} of the time.",
        "## Aims",
        f"Ratios are ours over NumPy's `q + rng.laplace(0, b, n)`, clipped in place, at n = {power(AIMED)}: the median "
        "of the ratios within a round. NumPy's draw is neither exact nor cryptographic, and clips instead of "
        "truncating.",
        render_aims(data),
        "## Families and domains",
        "Interval [0, 100] with scale 3 (wide: 33 scales) and 1000 (narrow: 0.1); half-line [0, ∞); the line with "
        "ignored edges; spans [0, 5], [10, 15] to [100, 105]; integers 0 to 100, and 0 to 100000 with scale 200; box "
        "[0, 100]^10. Scale 3 where not said. Integers are given as int64. At n = 1 a number is given, not an array; "
        "on the box one answer of 10 coordinates, and the time is a tenth of it. The first columns are medians. "
        "`simulate` draws the same law without privacy.",
        render_speed(data["speed"]),
        "## Other packages",
        *render_peers(data),
        "## Memory",
        f"The most that a release of {power(MEMORY_SIZE)} values held, the input and the output included, in arrays "
        "of the input's size: of the process (resident), in a fresh process for each, and as Python's tracemalloc "
        "counts it. What is made once, whatever the size, is not counted. Integers are released as int64.",
        render_memory(data["memory"]),
        "## A long stream",
        "Released in chunks, each with fresh true values; memory is what the process had resident.",
        render_stream(data["stream"]),
    ]
    return "\n\n".join(parts) + "\n"


def cells(data: dict[str, Any]) -> dict[tuple[str, str, int], dict[str, Any]]:
    return {(r["family"], r["kind"], r["n"]): r for r in data["speed"]}


def render_aims(data: dict[str, Any]) -> str:
    at = cells(data)
    rows: list[tuple[str, str, str, bool]] = []
    for family, kind, aim in AIMS:
        found = at[family, kind, AIMED].get("over_laplace")
        aimed = f"at most {aim:g}" if (family, aim) == ("Laplace", 1.2) else f"under {aim:g}"
        met = found is not None and (found <= aim if aimed.startswith("at") else found < aim)
        rows.append((f"{family}, {kind}", aimed, "failed" if found is None else f"{found:.3f}", met))
    theirs = data["peers"]["diffprivlib"]
    if theirs["available"]:
        for kind, row in zip((WIDE, NARROW), theirs["rows"], strict=True):
            ours = at["Laplace", kind, AIMED].get("median", math.inf)
            times = row["median"] / ours
            rows.append((f"diffprivlib / ours, {kind}", f"at least {PEER_AIM:g}", f"{times:.0f}", times >= PEER_AIM))
    for family in FAMILIES:
        found = [r for r in data["memory"] if r["family"] == family]
        worst = max(found, key=peak)
        label = f"{family}, memory in arrays of the input (most: {worst['kind']})"
        most = peak(worst)
        shown = f"{most:.2f}" if math.isfinite(most) else worst["status"]
        rows.append((label, f"under {MEMORY_AIM:g}", shown, most < MEMORY_AIM))
    for r in data["stream"]:
        label = f"{r['family']}, stream, growth after the first tenth"
        memory = r.get("memory")
        grown = memory["end"] - memory["tenth"] if memory else math.nan
        shown = f"{grown:.1f} MiB" if memory else "unknown"
        rows.append((label, f"none (below {STREAM_GROWTH:g} MiB)", shown, grown < STREAM_GROWTH))
    return table(("", "aim", "result", "met"), [(a, b, c, "yes" if d else "no") for a, b, c, d in rows])


def peak(memory: dict[str, Any]) -> float:
    """The larger of the two measures, infinite where the release failed."""
    return max(memory["resident"] or 0.0, memory["traced"]) if memory["status"] == "ok" else math.inf


def render_speed(records: list[dict[str, Any]]) -> str:
    rows: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for r in records:
        rows.setdefault((r["family"], r["kind"]), {})[r["n"]] = r
    lines = []
    for (family, kind), by in rows.items():
        shown = [each(by[n]["median"]) if "median" in by[n] else by[n]["status"] for n in SIZES]
        aimed = by[AIMED]
        ratios = [f"{aimed[k]:.2f}" if k in aimed else "-" for k in ("over_laplace", "over_normal")]
        lines.append((family, kind, *shown, each(aimed.get("best")), *ratios))
    size = power(AIMED)
    ratio_columns = (f"/ NumPy laplace, {size}", f"/ NumPy normal, {size}")
    return table(("", "", *(f"n = {power(n)}" for n in SIZES), f"best, {size}", *ratio_columns), lines, left=2)


def render_peers(data: dict[str, Any]) -> list[str]:
    at = cells(data)
    parts = [
        "Each in an environment of its own, asked before each of our sizes, so that both meet the same machine; "
        f"medians of processor times a value. `theirs / ours` is their longest vector over our n = {power(AIMED)}."
    ]
    theirs = data["peers"]["diffprivlib"]
    if theirs["available"]:
        rows = []
        for kind, r in zip((WIDE, NARROW), theirs["rows"], strict=True):
            ours = at["Laplace", kind, AIMED].get("median")
            times = f"{r['median'] / ours:.0f}" if ours else "-"
            rows.append((kind, each(r["median"]), each(r["best"]), each(ours), times))
        parts += [
            f"diffprivlib {theirs['version']}, `LaplaceBoundedDomain.randomise`, one value a call (it takes no "
            f"arrays), {DIFFPRIVLIB[0]['values']} true values, with our scale.",
            table(("", "median", "best", f"ours, {power(AIMED)}", "theirs / ours"), rows),
        ]
    else:
        parts.append(f"diffprivlib: not compared in this run: {theirs['reason']}.")
    theirs = data["peers"]["opendp"]
    if theirs["available"]:
        grouped: dict[tuple[str, bool, int | None], dict[int, dict[str, Any]]] = {}
        for r in theirs["rows"]:
            grouped.setdefault((r["family"], r["whole"], r["k"]), {})[r["size"]] = r
        rows = []
        for (family, whole, k), by in grouped.items():
            ours = at[family, WHOLE if whole else "line", AIMED].get("median")
            last = by[OPENDP_SIZES[-1]]["median"]
            label = f"{family}, " + ("integers" if whole else "default grid" if k is None else f"k = {k}")
            shown = [each(by[n]["median"]) for n in OPENDP_SIZES]
            rows.append((label, *shown, each(ours), f"{last / ours:.0f}" if ours else "-"))
        parts += [
            f"OpenDP {theirs['version']}, `make_laplace` and `make_gaussian` on a vector of known size, scale 3. Its "
            "noise is exact and has no bounds: beside it stands our line, and our integers for its integers. k is its "
            "granularity 2^k.",
            table(
                ("", *(f"n = {power(n)}" for n in OPENDP_SIZES), f"ours, {power(AIMED)}", "theirs / ours"), rows, left=1
            ),
        ]
    else:
        parts.append(f"OpenDP: not compared in this run: {theirs['reason']}.")
    return parts


def render_memory(records: list[dict[str, Any]]) -> str:
    rows = []
    for r in records:
        if r["status"] != "ok":
            shown = [r["status"], "-"]
        else:
            shown = ["-" if r[k] is None else f"{r[k]:.2f}" for k in ("resident", "traced")]
        rows.append((r["family"], r["kind"], *shown))
    return table(("", "", "resident", "tracemalloc"), rows, left=2)


def render_stream(records: list[dict[str, Any]]) -> str:
    rows = []
    for r in records:
        label = f"{r['family']}, {r['kind']}"
        if r["status"] != "ok":
            rows.append((label, r["status"], *["-"] * 8))
            continue
        memory = [f"{v:.1f} MiB" for v in r["memory"].values()] if r["memory"] else ["-"] * 4
        most = f"{r['peak']:.1f} MiB" if r["peak"] else "-"
        inside = "all" if not r["chunks_outside"] else "no"
        rows.append((label, power(r["values"]), power(r["chunk"]), each(r["each"]), *memory, most, inside))
    header = (
        "",
        "values",
        "a chunk",
        "each",
        "at the start",
        "after 1 %",
        "after 10 %",
        "at the end",
        "peak",
        "inside",
    )
    return table(header, rows)

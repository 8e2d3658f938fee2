"""What the benchmarks share: timing, memory, tables, a description of the machine, and the result files."""

from __future__ import annotations

import json
import math
import os
import platform
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import inbounds

RESULTS = Path(__file__).parent / "results"
#: What can be made again: tables to ask, environments of peers, results of shortened runs.
BUILD = Path(__file__).parents[1] / "build" / "benchmarks"
#: ``BENCH_QUICK=1`` in the environment shortens every benchmark, for a trial; the tables then go to ``BUILD``.
QUICK = os.environ.get("BENCH_QUICK", "") not in ("", "0")


class OverLimit(BaseException):
    """A run was stopped at its limit. Not an Exception, so that no handler in between swallows it."""


@dataclass(frozen=True)
class Timing:
    """Medians over ``runs``; ``status`` is "ok", "over limit" (``cpu`` is the limit), "unreachable", "failed"."""

    status: str
    cpu: float = math.nan
    wall: float = math.nan
    runs: int = 0

    @property
    def shown(self) -> str:
        if self.status == "unreachable":
            return "-"
        if self.status == "over limit":
            return f"> {duration(self.cpu)}"
        return duration(self.cpu) if self.status == "ok" else self.status

    def record(self) -> dict[str, Any]:
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(self).items()}


def measure(
    work: Callable[[], object], *, limit: float, runs: int = 9, spend: float = 0.6, slow: float = 0.4
) -> Timing:
    """Time ``work``: a warm-up, then the median of at most ``runs`` runs, or of those that fit into ``spend`` seconds.

    Work slower than ``slow`` is not repeated: its first run counts.
    """
    try:
        with stopped_after(limit):
            first = _once(work)
    except inbounds.UnreachableTarget:
        return Timing("unreachable")
    except OverLimit:
        return Timing("over limit", cpu=limit)
    except Exception as error:  # one failing cell must not cost the others: it is shown in the table
        progress(f"failed: {type(error).__name__}: {error}")
        return Timing("failed")
    if first[0] > slow:
        return Timing("ok", *first, runs=1)
    samples = [_once(work)]
    while len(samples) < runs and sum(cpu for cpu, _ in samples) < spend:
        samples.append(_once(work))
    cpu, wall = (statistics.median(column) for column in zip(*samples, strict=True))
    return Timing("ok", cpu, wall, len(samples))


def _once(work: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise OverLimit in the block after that much processor time (no limit where the system has no such timer)."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    # Not the system's own timer of processor time: while it runs, Linux reads that time only at every tick.
    start = time.process_time()

    def stop(*_: object) -> None:
        if time.process_time() - start > seconds:
            raise OverLimit

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds / 50.0, seconds / 50.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def peak_memory() -> float:
    """The most memory this process has had resident, in MiB (NaN where the system does not tell)."""
    try:
        # not ru_maxrss here: on Linux it is inherited from the parent process
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024.0
    except OSError:
        pass
    try:
        import resource
    except ImportError:
        return math.nan
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2.0**20


def growth_exponent(sizes: Sequence[int], seconds: Sequence[float], start: int) -> float:
    """The slope of log time over log size, by least squares, from size ``start`` on; 1 is linear."""
    kept = [(math.log(n), math.log(t)) for n, t in zip(sizes, seconds, strict=True) if n >= start and t > 0.0]
    if len(kept) < 2:
        return math.nan
    x, y = zip(*kept, strict=True)
    return statistics.linear_regression(x, y).slope


def duration(seconds: float) -> str:
    """Three digits with a unit."""
    unit, size = next(((u, s) for u, s in (("s", 1.0), ("ms", 1e-3)) if seconds >= s), ("µs", 1e-6))
    value = seconds / size
    return f"{value:.{2 if value < 10.0 else 1 if value < 100.0 else 0}f} {unit}"


def power(n: int) -> str:
    """1000000 as 10^6."""
    return f"10^{len(str(n)) - 1}" if n >= 1000 and str(n).strip("0") == "1" else str(n)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A Markdown table, padded so that it reads well as text; columns from ``left`` on are set to the right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True))]
        return f"| {' | '.join(padded)} |"

    rule = [("-" * w) if i < left else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return "\n".join([line(header), line(rule), *(line(row) for row in rows)])


def machine() -> dict[str, Any]:
    """The machine in neutral words."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "inbounds": inbounds.__version__,
    }


def origin(name: str, about: dict[str, Any]) -> str:
    """Which benchmark wrote a table, when shortened so, and on what machine, with all versions that are known."""
    spelt = {"python": "Python", "duckdb": "DuckDB", "narwhals": "Narwhals"}
    versions = [f"{spelt.get(k, k)} {v}" for k, v in about.items() if isinstance(v, str) and k != "system"]
    trial = " **Shortened run: not a result.**" if QUICK else ""
    where = f"Machine: {about['system']}, {about['cores']} cores; {', '.join(versions)}."
    return f"Written by `python -m benchmarks {name}`. {where}{trial}"


def write(name: str, text: str, data: dict[str, Any]) -> list[str]:
    """Write both result files, those of a shortened run where they cannot be taken for results; returns their names."""
    folder = BUILD if QUICK else RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    title, _, rest = text.partition("\n")
    text = f"{title}\n\n{origin(name, data['machine'])}\n{rest}"
    whole = json.dumps({**data, "quick": QUICK}, indent=1, ensure_ascii=False, allow_nan=False)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / f"{name}.json").write_text(whole + "\n", encoding="utf-8")
    return [f"{folder.relative_to(BUILD.parents[1])}/{name}.{ending}" for ending in ("md", "json")]


def progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)

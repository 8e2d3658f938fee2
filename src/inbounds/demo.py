"""A demonstration: questions about the people of a health study, answered privately and always within range.

Beside every answer stand the truth and what plain Laplace noise of the same cost would have said. The data are public,
so a demonstration may print them. A real release must not.
"""

from __future__ import annotations

import errno
import importlib.util
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inbounds import plots
from inbounds.accounting import Budget
from inbounds.domain import Interval
from inbounds.errors import MissingExtra
from inbounds.mechanism import Laplace
from inbounds.tables import Answer, Dataset, Results, ask, col, dataset
from inbounds.tables.kinds import extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DATA", "main", "record"]

#: The RAND health insurance experiment: one row per person and study year. Public domain.
DATA = Path(str(files("inbounds") / "data" / "randhie.parquet"))

VISITS = (0, 30)  # visits a year; a public bound, more count as 30
COST_SHARES = [0, 25, 50, 95, 100]  # percent of the cost that a person pays
EDGES = [0, 1, 2, 4, 8, 16, 30]
SMALL = [(site, plan) for site in range(1, 7) for plan in (5, 6, 7)]  # groups of 9 to 96 people


def main(folder: Path = Path("build/demo")) -> None:
    """Ask, print, draw: four pictures in ``folder``."""
    prepare(folder)
    data = study()
    print("20,190 rows of 5,912 people. Protected: one person more or less, with all their years.")
    print("coins: the percentage of the cost that a person pays; plan: their insurance plan; site: one of six places.")
    found = questions(data)
    for question, answers in found.items():
        show(question, answers)
    compared = [row for answers in found.values() for row in answers if not math.isnan(row.plain)]
    ours, theirs = (sum(impossible(row, which) for row in compared) for which in ("private", "plain"))
    print(f"\nImpossible answers: {ours} of {len(compared)} private ones, {theirs} of {len(compared)} of plain noise.")
    spent, left = data.spent()["epsilon"], data.remaining()["epsilon"]
    print(
        f"Spent: epsilon {spent:g} of 3; left: {left:g}. This budget is in memory and gone when the program ends: for"
    )
    print("real data a ledger keeps it. The truth is shown only because these data are public.")
    print("Pictures: " + ", ".join(map(str, pictures(found, folder))))


def record(folder: Path = Path("build/demo")) -> dict[str, Any]:
    """The same as numbers, of what JSON has."""
    prepare(folder)
    data = study()
    found = questions(data)
    return {
        "format": "inbounds.demo",
        "version": 1,
        "questions": [
            {"question": question, "answers": [row.record() for row in answers]} for question, answers in found.items()
        ],
        "spent": data.spent(),
        "left": data.remaining(),
        "pictures": [str(path) for path in pictures(found, folder)],
    }


def prepare(folder: Path) -> None:
    """What would stop the end stops the beginning: packages that are missing, all of them at once, and the folder."""
    needed = {"plots": ["matplotlib"], "query": ["duckdb", "narwhals", "pyarrow"]}
    missing = {name: [p for p in packages if importlib.util.find_spec(p) is None] for name, packages in needed.items()}
    extras = [name for name, packages in missing.items() if packages]
    if extras:
        packages = ", ".join(p for packages in missing.values() for p in packages)
        raise MissingExtra(f"demo: not installed: {packages}. Install inbounds[{','.join(extras)}].")
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def study() -> Dataset:
    """One person is protected, with all their years. They have one site and one plan, so they are in one group."""
    return dataset(DATA, unit="person", max_groups=1, budget=Budget(epsilon=3))


def questions(data: Dataset) -> dict[str, list[Row]]:
    """The questions, and the answers to them."""
    found = {}

    by_cost = data.group_by("coins", keys=COST_SHARES)
    asked = by_cost.select(people=ask.count_units(), visits=ask.mean("mdvis", VISITS), epsilon=0.5)
    exact = moments("coins", "visits")
    found["How many people pay which share of the cost? (epsilon 0.5 with the next)"] = rows(asked, exact, count, 0.25)
    found["How often do they see a physician in a year?"] = rows(asked, exact, mean(30), 0.5, name="visits")

    small = data.group_by("site", "plan", keys=SMALL)
    unwell = (col("hlthf") == 1) | (col("hlthp") == 1)
    asked = small.where(unwell).select(people=ask.count_units(), epsilon=0.25)
    exact = moments("site, plan", "1", "unwell = 1")
    found["How many are in fair or poor health, in small groups? (epsilon 0.25)"] = rows(asked, exact, count, 0.25)

    asked = small.select(share=ask.share(unwell, of="units"), epsilon=0.25)
    exact = moments("site, plan", "unwell")
    found["Which share is that? (epsilon 0.25)"] = rows(asked, exact, mean(1), 0.25)

    by_site = data.where(col("plan") == 5).group_by("site", keys=range(1, 7))
    asked = by_site.select(variance=ask.variance("mdvis", VISITS, per_unit="mean"), epsilon=0.5)
    exact = moments("site", "visits", "plan = 5")
    found["What is the variance of the visits, in one plan? (epsilon 0.5)"] = rows(asked, exact, variance(30), 0.5)

    asked = data.quantiles("age", [0.25, 0.5, 0.75], bounds=(0, 70), per_unit="mean", epsilon=0.5)
    truths = extra("duckdb").sql(f"select quantile_disc(age, [0.25, 0.5, 0.75]) from ({PEOPLE})").fetchall()[0][0]
    ages = [Row(name, asked[name][0], truth) for name, truth in zip(asked.columns, truths, strict=True)]
    found["What are the quartiles of their age? (epsilon 0.5; plain noise has no answer)"] = ages

    asked = data.where(col("hlthp") == 1).histogram("mdvis", EDGES, per_unit="mean", epsilon=0.25)
    place = " + ".join(f"(visits >= {edge})::int" for edge in EDGES[1:-1])
    exact = dict(zip(asked.keys, moments(place, "1", "poor = 1").values(), strict=True))
    found["How many of those in poor health see one how often? (epsilon 0.25)"] = rows(asked, exact, count, 0.25)
    return found


def pictures(found: Mapping[str, Sequence[Row]], folder: Path) -> list[Path]:
    """Four of the questions, drawn."""
    _, visits, counts, shares, _, _, bars = found.values()
    made = {
        "visits": draw(visits, "visits a year, by share of the cost"),
        "counts": draw(counts, "people in fair or poor health"),
        "shares": draw(shares, "share in fair or poor health"),
        "histogram": draw(bars, "people in poor health, by visits a year"),
    }
    for name, figure in made.items():
        figure.savefig(folder / f"{name}.png", dpi=150)
    return [folder / f"{name}.png" for name in made]


# ---------------------------------------------------------------- the truth, and plain noise


@dataclass(frozen=True)
class Moments:
    """Exact, of the people of a group: how many, the sum and the sum of squares of what each contributes."""

    n: float = 0.0
    sum: float = 0.0
    squares: float = 0.0


#: A statistic from exact moments and noise(sensitivity, parts): drawn, or 0 for the truth.
Statistic = Callable[[Moments, Callable[[float, int], float]], float]


PEOPLE = f"""
    select person, any_value(site) as site, any_value(plan) as plan, any_value(coins) as coins,
           avg(least(mdvis, {VISITS[1]})) as visits, max(hlthf + hlthp) as unwell, max(hlthp) as poor,
           avg(age) as age
    from '{DATA}' group by person"""


def moments(by: str, x: str, where: str = "true") -> dict[tuple[Any, ...], Moments]:
    """By SQL, for each group: of people, each with the mean of their own years."""
    query = f"select {by}, count(*), sum({x}), sum({x} * {x}) from ({PEOPLE}) where {where} group by {by} order by {by}"
    return {row[:-3]: Moments(*map(float, row[-3:])) for row in extra("duckdb").sql(query).fetchall()}


def count(m: Moments, noise: Callable[[float, int], float]) -> float:
    return m.n + noise(1, 1)


def mean(upper: float) -> Statistic:
    """A noisy sum over a noisy count, each for half of epsilon."""
    return lambda m, noise: (m.sum + noise(upper, 2)) / (m.n + noise(1, 2))


def variance(upper: float) -> Statistic:
    """The mean of the squares less the square of the mean, from three noisy numbers."""

    def of(m: Moments, noise: Callable[[float, int], float]) -> float:
        n = m.n + noise(1, 3)
        return (m.squares + noise(upper**2, 3)) / n - ((m.sum + noise(upper, 3)) / n) ** 2

    return of


@dataclass(frozen=True)
class Row:
    """A group: the private answer, the truth, and what plain noise would have said."""

    group: str
    answer: Answer
    truth: float
    plain: float = math.nan

    @property
    def private(self) -> float:
        return float(self.answer)

    def record(self) -> dict[str, Any]:
        low, high = self.answer.interval()
        plain = None if math.isnan(self.plain) else {"value": self.plain, "impossible": impossible(self)}
        return {
            "group": self.group,
            "truth": self.truth,
            "value": self.private,
            "interval": [low, high],
            "plain": plain,
        }


def impossible(row: Row, which: str = "plain") -> bool:
    low, high = row.answer.valid
    value = getattr(row, which)
    return bool(value < low or value > high)


def rows(
    results: Results, exact: Mapping[tuple[Any, ...], Moments], statistic: Statistic, epsilon: float, name: str = ""
) -> list[Row]:
    """The answers of one column (the first one otherwise), with the truth and plain noise beside them."""

    def drawn(sensitivity: float, parts: int) -> float:
        line = Interval(-float("inf"), float("inf"))
        noise = Laplace(line, sensitivity=sensitivity, scale=parts * sensitivity / epsilon, edges="ignore")
        return float(noise.release(0.0).value)

    column = results[name or next(iter(results.columns))]
    found = []
    for key, answer in zip(results.keys, column, strict=True):
        named = ", ".join(f"{by} {part}" for by, part in zip(results.by, key, strict=True))
        m = exact.get(key, Moments())
        found.append(Row(named, answer, statistic(m, lambda sensitivity, parts: 0.0), statistic(m, drawn)))
    return found


# ---------------------------------------------------------------- tables and pictures


def short(x: float) -> str:
    return f"{x:,.0f}" if abs(x) >= 1000 or float(x).is_integer() else f"{x:.3g}"


def show(question: str, found: Sequence[Row]) -> None:
    """A table: by rich, where that is installed."""
    head = ["", "truth", "private", "95 % interval", "plain noise", ""]
    cells = []
    for row in found:
        low, high = row.answer.interval()
        plain = "" if math.isnan(row.plain) else short(row.plain)
        numbers = [short(row.truth), short(row.private), f"{short(low)} to {short(high)}", plain]
        cells.append([row.group, *numbers, "impossible" if impossible(row) else ""])
    print(f"\n{question}\n")
    if importlib.util.find_spec("rich") is None:
        widths = [max(len(line[i]) for line in [head, *cells]) for i in range(len(head))]
        for line in [head, *cells]:
            print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for place, title in enumerate(head):
        table.add_column(title, justify="right" if 0 < place < 5 else "left", no_wrap=True)
    for line in cells:
        table.add_row(*line, style="red" if line[-1] else None)
    Console().print(table)


def draw(found: Sequence[Row], title: str) -> Figure:
    """The answers with their intervals, the truth, and plain noise; what cannot be is shaded."""
    figure = plots.answers({row.group: row.answer for row in found}, title=title)
    (panel,) = figure.axes
    (start, end), places = panel.get_xlim(), range(len(found))
    far = end - start  # plain noise may be further away than a picture can show
    plain = [min(max(row.plain, start - far), end + far) for row in found]
    beyond = "" if plain == [row.plain for row in found] else ", at the border where beyond it"
    panel.plot([row.truth for row in found], places, "|", color="black", markersize=14, label="truth")
    panel.plot(plain, places, "x", color=plots.COLOURS[1], label=f"plain noise{beyond}")
    (left, right), (low, high) = panel.get_xlim(), found[0].answer.valid
    for start, end, label in ((left, low, "impossible"), (high, right, "")):
        if start < end:
            panel.axvspan(start, end, color=plots.COLOURS[1], alpha=0.12, linewidth=0, label=label)
    panel.set_xlim(left, right)
    panel.set_ylim(len(found) - 0.5, -0.5)
    figure.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure

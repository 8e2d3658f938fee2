"""The adversary against the library: nothing found in the library as it is, and nearly all that is put in on purpose.

``make test`` has a hundred cases, ``make test-long`` thousands; ``make fuzz SECONDS=600`` looks for new ones.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inbounds as ib
from inbounds.tables.picking import Picker
from tests.adversary import formats, mends, planted
from tests.adversary.cases import Case, Question
from tests.adversary.formats import Format
from tests.adversary.loss import Draw, privacy_loss
from tests.adversary.search import Summary, judge, search
from tests.adversary.twin import Run, brief, frozen, law, watched
from tests.cli_support import QUESTIONS, run, write_visits
from tests.query_support import on_spark, spark_session

FAST = ("arrow batch", "polars", "pandas nullable")


def nothing_found(summary: Summary) -> None:
    print(summary)
    assert summary.verdict is None, f"{summary.verdict}\n{summary.found.code() if summary.found else ''}"
    assert summary.worst <= 1


def test_a_hundred_cases() -> None:
    summary = search(100)
    nothing_found(summary)
    assert summary.worst > 0.9  # cases are as bad as the price allows


@pytest.mark.long
def test_thousands_of_cases() -> None:
    for seed in range(25):
        nothing_found(search(200, seed=seed))


# ---------------------------------------------------------------- what the judge is worth


def simple(one: float, **changes: Any) -> Case:
    """A sum of three units, and of a fourth."""
    asked = Question("u", (("sum", {"column": "x"}, (0, 10), {"edges": "clamp"}),), {"epsilon": 1.0}, max_rows=1)
    rows = ((1, 3.0), (2, 4.0), (3, 5.0))
    made = Case("arrow", {"u": "int64", "x": "float64"}, rows, (), ((4, one),), asked)
    return dataclasses.replace(made, **changes)


@pytest.mark.parametrize(("value", "share"), [(10.0, 1.0), (math.inf, 1.0), (5.0, 0.5), (0.0, 0.0), (math.nan, 0.0)])
def test_the_loss_of_a_sum_is_its_value_over_the_bound(value: float, share: float) -> None:
    verdict = judge(simple(value))
    assert verdict.violations == []
    assert share * (1 - 2**-16) <= verdict.ratio <= share


def test_losses_add_up_over_draws_and_groups() -> None:
    noise = ib.Laplace(ib.Integers(0, math.inf), scale=10.0, sensitivity=1.0, edges="clamp")
    pair = [[Draw(noise, np.array([5.0, 0.0])), Draw(noise, np.array([2.0]))], [Draw(noise, np.array([4.0, 1.0]))] * 1]
    pair[1].append(Draw(noise, np.array([2.0])))
    loss = privacy_loss(*pair, swapped=False, groups=2, answered=2)
    assert (loss.there, loss.moved) == (Fraction(2, 10), 1)
    assert loss.ratio({"epsilon": 0.2}) == 1


def test_the_loss_of_truncated_noise_counts_its_normalisation() -> None:
    noise = ib.Laplace.calibrate(ib.Interval(0, 1), sensitivity=1.0, epsilon=1.0)
    first, second = ([Draw(noise, np.array([x]))] for x in (0.0, 0.5))
    loss = privacy_loss(first, second, swapped=False, groups=1, answered=1)
    worst = [abs(float(np.log(noise.at(0.0).pdf(y) / noise.at(0.5).pdf(y)))) for y in (0.0, 1.0)]
    assert float(max(loss.there, loss.back)) == pytest.approx(max(worst), rel=1e-9)


def test_the_law_of_a_pick_is_what_it_draws() -> None:
    picker = Picker(Fraction(1, 2), 1.0, Fraction(1, 2), 8)
    chances = np.exp(law(Picker.pick, picker, (0, 1, 0, 4, 4, 0, 0, 1), 0.0))
    drawn = np.bincount([picker.pick((0, 1, 0, 4, 4, 0, 0, 1)) for _ in range(20_000)], minlength=8) / 20_000
    assert chances.sum() == pytest.approx(1.0)
    # Each cell is off by 6 standard deviations with a chance below 1e-8.
    assert np.all(np.abs(drawn - chances) <= 6.0 * np.sqrt(chances / 20_000))


@pytest.mark.parametrize("more", ['999,"NaN","A\n",0000-13-40\n', "999,1e400,B,2024-01-05\n" * 40, '999,"5\n'])
def test_the_command_line_says_the_same_of_twins(more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen = []
    for rows in ("", more):
        write_visits(tmp_path)
        questions = QUESTIONS.replace("answers.db", "ledger.db")
        (tmp_path / "questions.toml").write_text(questions, encoding="utf-8")
        for left in tmp_path.glob("ledger.db*"):
            left.unlink()
        with (tmp_path / "visits.csv").open("a", encoding="utf-8") as file:
            file.write(rows)
        made = Run()
        with watched(made, tmp_path), frozen(made, ()), brief():
            for line in ("query questions.toml --explain", "query questions.toml --json", "query questions.toml"):
                found = run(line)
                made.see(line, (found.exit_code, found.stdout, found.stderr, repr(found.exception)))
        # What is imported at the first run is not at the second.
        seen.append(
            [(what, shown) for what, shown in made.seen if what not in ("asked of the system", "calls of the engine")]
        )
    assert seen[0] == seen[1]
    assert '"people"' in str(seen)


# ---------------------------------------------------------------- mends taken out, leaks planted


@pytest.mark.long
@pytest.mark.parametrize("mend", mends.MENDS, ids=str)
def test_without_a_mend_the_hole_is_found(mend: tuple[int, str]) -> None:
    where, _ = mends.MENDS[mend]
    with mends.without(mend):
        summary = search(500, seed=3, formats=where, shrink=False)
    print(mend, "after", summary.first, "cases:", summary.verdict.violations[:1] if summary.verdict else "")
    assert summary.verdict is not None


@pytest.mark.parametrize(
    "name", ["the upper end", "a log of units", "a note for few units", "half of it", "from a seed"]
)
def test_some_planted_leaks_are_found(name: str) -> None:
    (leak,) = (leak for leak in planted.LEAKS if leak.name == name)
    with leak.planted():
        assert search(60, seed=7, formats=FAST, shrink=False).verdict is not None


@pytest.mark.long
def test_planted_leaks_are_found() -> None:
    table: dict[str, list[str]] = {}
    missed = []
    for leak in planted.LEAKS:
        with leak.planted():
            found = search(300, seed=7, formats=FAST, shrink=False).first
        table.setdefault(leak.kind, []).append("-" if found is None else str(found))
        if found is None:
            missed.append(f"{leak.kind}: {leak.name}")
    for kind, found_after in table.items():
        print(f"{kind:<40} found after {', '.join(found_after)} cases")
    assert min(len(found_after) for found_after in table.values()) >= 10
    assert len(table) == 11
    assert len(missed) <= 0.05 * len(planted.LEAKS), missed


# ---------------------------------------------------------------- engines that need a server or Java


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Adds a format for a test."""

    def add(made: Format) -> str:
        monkeypatch.setitem(formats.FORMATS, made.name, made)
        return made.name

    return add


@pytest.mark.long
@on_spark
def test_hundreds_of_cases_on_spark(engine: Any) -> None:
    with spark_session({"spark.ui.showConsoleProgress": "false"}) as session:
        nothing_found(search(500, seed=1, formats=[engine(formats.spark(session))]))


@pytest.mark.long
@pytest.mark.postgres
def test_hundreds_of_cases_on_postgresql(engine: Any, initdb: str) -> None:
    from tests.postgres import Server

    server = Server(initdb)
    try:
        nothing_found(search(500, seed=1, formats=[engine(formats.postgres(server.url()))]))
    finally:
        server.stop()

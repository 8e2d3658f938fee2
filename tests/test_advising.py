"""Where text of which nobody said what it stands for is in the way, errors say how to say it, of that column only."""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import inbounds as ib
from inbounds import ask, col
from inbounds.cli.app import app
from inbounds.errors import ParameterTypeError
from inbounds.tables import Dataset

_DATES = (dt.date(2023, 1, 1), dt.date(2024, 1, 1))
ASKED: dict[str, tuple[Callable[[Dataset], Any], str]] = {
    "a mean": (lambda d: d.mean("cost", bounds=(0, 9), epsilon=1), '{"cost": "number"}'),
    "a mean of dates": (lambda d: d.mean("visit", bounds=_DATES, epsilon=1), '{"visit": "date"}'),
    "of two questions": (
        lambda d: d.select({"n": ask.count_units(), "c": ask.mean("cost", (0, 9))}, epsilon=1),
        '{"cost": "number"}',
    ),
    "a condition": (lambda d: d.where((col("ward") == "A") & (col("cost") > 3)), '{"cost": "number"}'),
    "a date in a condition": (lambda d: d.where(col("visit") < _DATES[0]), '{"visit": "date"}'),
    "a group": (lambda d: d.group_by(col("visit").year(), keys=[2024]), '{"visit": "date"}'),
    "a share": (lambda d: d.share(col("cost") > 3, of="units", epsilon=1), '{"cost": "number"}'),
    "an order": (
        lambda d: d.mean("age", bounds=(0, 9), per_unit="last", order="visit", epsilon=1),
        '{"visit": "date"}',
    ),
    "the values of an order": (
        lambda d: d.sum("cost", bounds=(0, 9), per_unit="last", order="age", epsilon=1),
        '{"cost": "number"}',
    ),
    "an order before the values": (
        lambda d: d.sum("cost", bounds=(0, 9), per_unit="last", order="visit", epsilon=1),
        '{"visit": "date"}',
    ),
    "keys of whole numbers": (
        lambda d: d.group_by("ward", keys=[1, 2], max_groups=1).count_units(epsilon=1),
        '{"ward": "integer"}',
    ),
    "keys of truth values": (
        lambda d: d.group_by("ward", keys=[True], max_groups=1).count_units(epsilon=1),
        '{"ward": "boolean"}',
    ),
    "a suggestion": (lambda d: d.suggest_bounds("cost", epsilon=1), '{"cost": "number"}'),
    "a new column": (lambda d: d.with_columns(twice=col("cost") * 2), '{"cost": "number"}'),
    "new columns": (lambda d: d.with_columns(both=col("cost") + col("visit")), '{"cost": "number", "visit": "number"}'),
    "no condition": (lambda d: d.where(~col("cost")), '{"cost": "boolean"}'),
}


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    file = tmp_path / "visits.csv"
    file.write_text("patient,age,ward,cost,visit,name\n1,30,A,2.5,2024-01-31,B\n")
    types = {"patient": "integer", "age": "number", "name": "text"}
    return ib.dataset(file, unit="patient", budget=ib.Budget(epsilon=9), types=types, header=True)


@pytest.mark.parametrize("name", ASKED)
def test_advice_names_the_columns_that_are_in_the_way(name: str, data: Dataset) -> None:
    call, types = ASKED[name]
    with pytest.raises(ParameterTypeError) as found:
        call(data)
    assert str(found.value).endswith(f"Say what columns of text stand for, as types={types}.")
    assert found.value.__suppress_context__
    assert found.value.__cause__ is None
    assert data.spent()["epsilon"] == 0


def test_none_where_what_a_column_holds_was_said(data: Dataset) -> None:
    for call in (
        lambda: data.mean("name", bounds=(0, 9), epsilon=1),
        lambda: data.where(col("age") == "A"),
        lambda: data.suggest_bounds("name", epsilon=1),
        lambda: data.where((col("ward") == "A") & (col("name") > 3)),
    ):
        with pytest.raises(ParameterTypeError) as found:
            call()
        assert "Say what" not in str(found.value)


# ---------------------------------------------------------------- the command line

ALONE = "--unit patient --epsilon 0.5 --budget-epsilon 1 --header"
WRONG = {
    f"visits.csv {ALONE} --mean visit --bounds 2023-01-01 2024-01-01": ("--bounds", "--types visit=date"),
    f"visits.csv {ALONE} --suggest-bounds cost": ("--types cost=number",),
    f"visits.csv {ALONE} --mean cost --types cost=number --bounds 0 a": ("--bounds must be a number, as 0.5; got 'a'",),
    f"visits.csv {ALONE} --count-units --types cost=number --types age=integer": (
        "--types must be given once; got it twice. Join them: --types cost=number,age=integer.",
    ),
    f"visits.csv {ALONE} --count-units --epsilon 0.1": ("--epsilon must be given once; got it twice",),
    f"visits.csv {ALONE} --count-units --no-header": ("--header/--no-header must be given once",),
    "visits.csv --unit patient --epsilon 2 --budget-epsilon 1 --count-units": (
        "This budget is of this run alone: ask for less, or give more --budget-epsilon.",
    ),
    f"d.duckdb {ALONE} --count-units": (
        "--table must be given for a database; ",
        "alone. For instance --table visits.",
    ),
    f"q.sqlite --table v {ALONE} --count-units": ("table must be no file of SQLite here", "through Ibis."),
}


@pytest.mark.parametrize("words", WRONG)
def test_the_command_line_says_it_in_options(
    words: str, data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("d.duckdb", "q.sqlite"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        app(["query", *words.split()])
    said = " ".join(capsys.readouterr().err.split())
    assert ended.value.code in (2, 4)
    assert all(part in said for part in WRONG[words]), said
    assert "budget show" not in said


def test_fields_without_quotes(
    data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("v.csv").write_text('patient,age\n1,"\n2,"\n' * 30)
    quick = ["--unit-is-row", "--count-units", "--epsilon", "50", "--budget-epsilon", "50", "--header", "--json"]
    with pytest.raises(SystemExit) as ended:
        app(["query", "v.csv", "--quote", "", *quick])
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out)["answers"]


def test_tables_of_sqlite_come_through_ibis() -> None:
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(ParameterTypeError, match="Ibis"):
        ib.dataset((connection, "v"), unit=None, budget=ib.Budget(epsilon=1))

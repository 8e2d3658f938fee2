"""The attacks on version 0.1, each with relatives found later: what CHANGELOG.md says was wrong, and is right now.

Classes as in the changelog. Numbers that enter the noise are compared exactly, on tables that differ in one unit; of
errors, whether there is one. ``tests/adversary`` looks for more of the kind, the neighbours of these live in
``test_exact_values`` (numbers beyond 2^53), ``test_ledger_verification`` (files of the ledger), ``test_learn_rows``,
``test_spark_engine`` and ``test_readers_databases``.
"""

from __future__ import annotations

import base64
import datetime as dt
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from enum import Enum, StrEnum
from http import HTTPStatus
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import inbounds as ib
from inbounds import col
from inbounds.errors import InboundsError, ParameterError, QueryFailed
from inbounds.tables import Bins, Request, Rows, Source, Sum, Units
from inbounds.tables.engines import embedded, forms
from inbounds.tables.engines.embedded import Embedded, _Stream
from inbounds.tables.engines.spill import Spill
from inbounds.tables.readers import frames
from tests.postgres import Server

SALT = b"a salt for tests"
NAN = float("nan")


def opened(table: Any, **options: Any) -> Any:
    return ib.dataset(table, **{"unit": "u", "budget": ib.Budget(epsilon=1e6), "max_rows": 1} | options)


def exact(table: Any, where: Any = None, types: Any = None, **measures: Any) -> dict[str, tuple[int, ...]]:
    """The numbers that enter the noise."""
    request = Request(measures, unit="u", rows=1, where=where)
    tally = request.run(Source.open(table, types=types), salt=SALT)
    return {name: tuple(number for group in tally[name] for number in group) for name in measures}


def moved(first: Any, second: Any, **options: Any) -> int:
    """The largest change of a number from one table to another."""
    before, after = exact(first, **options), exact(second, **options)
    return max(abs(x - y) for name in before for x, y in zip(before[name], after[name], strict=True))


# ---------------------------------------------------------------- 1. an optimiser uses other rows

FILES: dict[str, Callable[[pa.Table, Path], object]] = {
    "pyarrow": lambda table, path: pq.write_table(table, path),
    "Polars": lambda table, path: pl.from_arrow(table).write_parquet(path),
    "DuckDB": lambda table, path: duckdb.from_arrow(table).write_parquet(str(path)),
}


def nans(more: float | None = None, kind: Any = None) -> pa.Table:
    values = [NAN] * 500 + [1.0] * 500 + ([] if more is None else [more])
    return pa.table({"u": range(len(values)), "v": pa.array(values, kind or pa.float64())})


@pytest.mark.parametrize("writer", FILES)
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_one_person_among_nans_in_parquet_moves_numbers_by_one_value(writer: str, kind: Any, tmp_path: Path) -> None:
    paths = []
    for more in (None, 5.0, float("inf")):
        paths.append(str(tmp_path / f"{more}.parquet"))
        FILES[writer](nans(more, kind), Path(paths[-1]))
    for path in paths[1:]:
        assert moved(paths[0], path, n=Rows()) == 1
        assert moved(paths[0], path, b=Bins("v", [0, 2, 10])) <= 1
        for where in (col("v") > 5, col("v") >= 1, ~(col("v") < 5), col("v").is_null(), col("v") * 2 > 10):
            assert moved(paths[0], path, n=Rows(), where=where) <= 1
        step = abs(exact(paths[0], s=Sum("v", 0, 10, center=0.0))["s"][1]) // 500  # what the value 1 is
        assert moved(paths[0], path, s=Sum("v", 0, 10, center=0.0)) <= 10 * step


@pytest.mark.filterwarnings(r"ignore:fetch_\w+\(\) is deprecated:DeprecationWarning")  # of Ibis
@pytest.mark.parametrize("way", ["a table", "Parquet", "Ibis", "a file"])
def test_one_person_among_nans_in_a_users_duckdb_moves_numbers_by_one_value(way: str, tmp_path: Path) -> None:
    def stored(more: float | None) -> Any:
        path = tmp_path / f"{more}.duckdb"
        connection = duckdb.connect(str(path))
        pq.write_table(nans(more), tmp_path / f"{more}.parquet")
        connection.execute(f"CREATE TABLE t AS FROM '{tmp_path / f'{more}.parquet'}'")
        if way == "a table":
            return connection.table("t")
        if way == "Parquet":
            return connection.read_parquet(str(tmp_path / f"{more}.parquet"))
        connection.close()
        return ibis.duckdb.connect(path).table("t") if way == "Ibis" else (path, "t")

    first, second = stored(None), stored(5.0)
    for where in (None, col("v") > 5, col("v").is_null()):
        assert moved(first, second, n=Rows(), where=where) <= 1


# ---------------------------------------------------------------- 2. an expression fails on one row


@pytest.fixture(scope="module")
def postgres(initdb: str) -> Iterator[Any]:
    server = Server(initdb)
    try:
        connection = ibis.connect(server.url())
        yield connection
        connection.disconnect()
    finally:
        server.stop()


OVERFLOWS = {
    "overflow": (col("x").fill_null(1) * 0 + 1e300) * 1e300,
    "underflow": (col("x").fill_null(1) * 0 + 1e-300) * 1e-300,
    "a difference": (col("x").fill_null(1) * 0 + 1.7e308) + 1.7e308,
}


@pytest.mark.postgres
@pytest.mark.parametrize("name", OVERFLOWS)
def test_no_arithmetic_on_postgresql_tells_whether_a_row_matches(name: str, postgres: Any) -> None:
    postgres.raw_sql("DROP TABLE IF EXISTS pay; CREATE TABLE pay (u bigint, who text, x double precision)").close()
    postgres.raw_sql("INSERT INTO pay VALUES (1, 'Ann', 52000), (2, 'Bob', 61000); COMMIT").close()
    data = opened(postgres.table("pay"))
    for salary in (52000, 52001):  # guessed
        view = data.where((col("who") == "Ann") & (col("x") == salary))
        assert view.sum(OVERFLOWS[name], bounds=(0, 1), epsilon=1e-6).value >= 0


@pytest.mark.postgres
@pytest.mark.parametrize("odd", ["infinity", "-infinity", "4000-01-01 BC", "294000-01-01"])
def test_dates_that_only_postgresql_has_are_missing(odd: str, postgres: Any) -> None:
    postgres.raw_sql("DROP TABLE IF EXISTS days; CREATE TABLE days (u bigint, d date, t timestamp)").close()
    postgres.raw_sql(f"INSERT INTO days VALUES (1, '2024-02-29', '2024-02-29 12:00'), (2, '{odd}', '{odd}')").close()
    postgres.raw_sql("COMMIT").close()
    measures = {"years": Bins(col("d").year(), [1, 2024, 9999]), "n": Units()}
    assert exact(postgres.table("days"), **measures)["years"] == (0, 1)
    assert exact(postgres.table("days"), where=col("t").is_null(), n=Units())["n"] == (1,)


# ---------------------------------------------------------------- 3. a dialect is guessed from data


def csv(path: Path, rows: list[str], header: str = "u,v,note", end: str = "\n") -> str:
    path.write_bytes((end.join([header, *rows]) + end).encode())
    return str(path)


LINES = [f"{i},{i % 7},plain" for i in range(5000)]
TYPES = {"u": "integer", "v": "integer", "note": "text"}
ODD_LINES = {
    "a quoted comma": '5000,1,"a, b"',
    "a quoted line break": '5000,1,"a\n5001,1,forged"',
    "a quoted CR": '5000,1,"a\r\nb"',
    "a doubled quote": '5000,1,"a ""b"" c"',
    "a quote that is never closed": '5000,1,"a',
    "a quote inside": '5000,1,a"b',
    "a bare CR": "5000,1,a\rb",
    "too many values": "5000,1,a,b,c",
    "too few": "5000",
    "a semicolon": "5000;1;a",
    "an escape": r'5000,1,"a\",b"',
    "a NUL": "5000,1,a\0b",
    "a half": "5000,2.5,x",
    "bytes that are no UTF-8": "5000,1,\udcff",
}


@pytest.mark.parametrize("where", ["first", "last"])
@pytest.mark.parametrize("name", ODD_LINES)
def test_one_line_of_csv_decides_about_itself_only(name: str, where: str, tmp_path: Path) -> None:
    odd = ODD_LINES[name]
    rows = [odd, *LINES] if where == "first" else [*LINES, odd]
    first, second = csv(tmp_path / "a.csv", LINES), tmp_path / "b.csv"
    second.write_bytes(("\n".join(["u,v,note", *rows]) + "\n").encode(errors="surrogateescape"))
    for condition in (None, col("note") == "plain", col("v") == 3, col("v") == 2):
        assert moved(first, str(second), n=Rows(), types=TYPES, where=condition) <= 1


def test_line_ends_and_halves_of_csv(tmp_path: Path) -> None:
    crlf = csv(tmp_path / "crlf.csv", LINES, end="\r\n")
    assert exact(crlf, types=TYPES, n=Rows(), where=col("note") == "plain")["n"] == (5000,)
    halves = csv(tmp_path / "halves.csv", ["1,2.5,a", "2,3,a", "3,1e0,a"])
    assert exact(halves, types=TYPES, n=Rows(), where=~col("v").is_null())["n"] == (1,)


@pytest.mark.parametrize("rows", ["Ann Smith,52000\nBob,1\n", "Ann Smith,Lyon 52000\nBob,Paris\nEve,Rome\n"])
def test_a_file_without_a_header_shows_nobodys_record(rows: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(rows)
    shown = []
    for call in (
        lambda: opened(str(path), unit="name"),
        lambda: opened(str(path), unit="name", types={"name": "text"}),
        lambda: repr(opened(str(path), unit=None, max_rows=None).schema),
        lambda: opened(str(path), unit=None, max_rows=None).where(col("Ann Smyth") == "x"),
        lambda: repr(opened(str(path), unit=None, max_rows=None).describe()),
    ):
        try:
            shown.append(str(call()))
        except InboundsError as error:
            shown.append(str(error))
    assert "Ann Smith" not in "".join(shown)
    assert "52000" not in "".join(shown)


def test_utf_16_is_refused_without_a_row_and_read_where_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("u,v\n1,4711\n", encoding="utf-16")
    with pytest.raises(ParameterError, match="utf-16") as caught:
        opened(str(path), types={"v": "integer"})
    assert "4711" not in str(caught.value)
    data = opened(str(path), types={"v": "integer"}, encoding="utf-16")
    assert data.where(col("v") == 4711).count(epsilon=400).value == 1


@pytest.mark.parametrize(
    "odd", ["{", "", '{"u": 5000, "v": [1]}', '{"u": 1e999}', '["u"]', '{"v": NaN}', '{"u": "\\ud8']
)
@pytest.mark.parametrize("where", ["first", "last"])
def test_one_line_of_json_decides_about_itself_only(odd: str, where: str, tmp_path: Path) -> None:
    rows = [f'{{"u": {i}, "v": {i % 7}}}' for i in range(100)]
    (tmp_path / "a.jsonl").write_text("\n".join(rows) + "\n")
    (tmp_path / "b.jsonl").write_text("\n".join([odd, *rows] if where == "first" else [*rows, odd]) + "\n")
    types = {"u": "integer", "v": "integer"}
    for condition in (None, col("v") == 3, col("v").is_null()):
        both = (str(tmp_path / name) for name in ("a.jsonl", "b.jsonl"))
        assert moved(*both, n=Rows(), types=types, where=condition) <= 1


# ---------------------------------------------------------------- 4. equality is not equality


class Text(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = str.__hash__


class Day(dt.date):
    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = dt.date.__hash__


class Colour(StrEnum):
    RED = "red"


TWICE: dict[str, list[Any]] = {
    "a member of an enumeration": [200, HTTPStatus.OK],
    "a text of a type of its own": ["red", Text("red")],
    "a text that is a member": ["red", Colour.RED],
    "a date of a type of its own": [dt.date(2024, 1, 1), Day(2024, 1, 1)],
}


@pytest.mark.parametrize("name", TWICE)
def test_keys_that_stand_for_one_value_are_one_key(name: str) -> None:
    keys = TWICE[name]
    data = opened(pa.table({"u": [1, 2], "g": [keys[0]] * 2}))
    with pytest.raises(ParameterError, match="given twice"):
        data.group_by("g", keys=keys, max_groups=1)
    found = data.group_by("g", keys=keys[1:], max_groups=1).count(epsilon=400)
    assert found["count"][0].value == 2
    assert not isinstance(found.keys[0][0], Enum)


COLLATED = {
    "NOCASE": ["Ann", "ANN", "ann"],
    "NOACCENT": ["Ann", "Änn", "Ånn"],
    "ICU": ["straße", "strasse", "Strasse"],
}


@pytest.mark.filterwarnings(r"ignore:fetch_\w+\(\) is deprecated:DeprecationWarning")  # of Ibis
@pytest.mark.parametrize("way", ["relation", "Ibis", "file", "SQLite"])
@pytest.mark.parametrize("name", ["NOCASE", "NOACCENT"])
def test_collations_do_not_decide_who_is_who(name: str, way: str, tmp_path: Path) -> None:
    texts, path = COLLATED[name], tmp_path / "t.db"
    rows = [(text, text, 1) for text in texts]
    table: Any
    if way == "SQLite":
        with sqlite3.connect(path) as made:
            collation = "NOCASE" if name == "NOCASE" else "RTRIM"
            made.execute(f"CREATE TABLE t (u TEXT COLLATE {collation}, g TEXT COLLATE {collation}, v INTEGER)")
            made.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        made.close()
        table = ibis.sqlite.connect(path).table("t")
    else:
        connection = duckdb.connect(str(path))
        connection.execute(f"CREATE TABLE t (u VARCHAR COLLATE {name}, g VARCHAR COLLATE {name}, v BIGINT)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        if way == "file":
            connection.close()
        elif way == "Ibis":
            connection.close()
            connection = ibis.duckdb.connect(path)
        table = (path, "t") if way == "file" else connection.table("t")
    assert exact(table, n=Units())["n"] == (3,)
    assert exact(table, n=Rows(), where=col("g") == texts[0])["n"] == (1,)
    grouped = Request({"n": Rows()}, unit="u", by="g", keys=[*texts, "other"], groups=1, rows=1)
    assert [numbers[0] for numbers in grouped.run(Source.open(table), salt=SALT)["n"]] == [1, 1, 1, 0]
    found = Request({"n": Rows()}, unit="u", by="g", groups=1, rows=1).run(Source.open(table), salt=SALT)
    assert sorted(found.keys) == sorted((text,) for text in texts)


@pytest.mark.parametrize("unit", ["ns", "us"])
def test_units_that_are_times_are_told_apart_as_stored(unit: str, tmp_path: Path) -> None:
    times = pa.array(range(1_000, 3_000), pa.int64()).cast(pa.timestamp(unit))
    table = pa.table({"u": times, "v": [1.0] * 2000})
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, str(tmp_path / "t.parquet"), pl.from_arrow(table), table.to_pandas()):
        assert exact(source, n=Units())["n"] == (2000,)


def test_ids_of_csv_are_no_rounded_numbers(tmp_path: Path) -> None:
    path = csv(tmp_path / "t.csv", ["1.2,1,a", "1.4,1,a", "7,1,a"])
    assert exact(path, types=TYPES, n=Units())["n"] == (1,)  # the others fit no whole number and belong to nobody
    assert exact(path, types={**TYPES, "u": "text"}, n=Units())["n"] == (3,)


# ---------------------------------------------------------------- 5. looking is free


def test_no_relation_shows_its_constants() -> None:
    connection = duckdb.connect()
    relation = connection.sql("SELECT * FROM (VALUES (1, 'Ann Smith', 52000)) t(u, who, v)")
    shown = []
    for call in (
        lambda: opened(relation).plan.count(epsilon=1).explain(sql=True),
        lambda: repr(Source.open(relation)),
        lambda: opened(relation.filter("v > 51999")).plan.count(epsilon=1).explain(sql=True),
    ):
        try:
            shown.append(call())
        except InboundsError as error:
            shown.append(str(error))
    assert "Ann Smith" not in "".join(shown)
    assert "52000" not in "".join(shown)


@pytest.mark.parametrize(
    "make", [lambda t: t, lambda t: t.to_pandas(), pl.from_arrow, lambda t: pl.from_arrow(t).lazy()]
)
def test_a_plan_as_sql_is_the_same_whatever_the_rows_are(make: Callable[[pa.Table], Any]) -> None:
    shown = set()
    for table in (nans(), nans(5.0), nans().slice(0, 0)):
        data = opened(make(table), name="same")
        plan = data.where(col("v") > 5).plan.mean("v", bounds=(0, 10), epsilon=1)
        shown.add(plan.explain(sql=True))
    assert len(shown) == 1
    assert "SELECT" in shown.pop()


# ---------------------------------------------------------------- 6. paid, then fails for no reason of the data


@pytest.mark.parametrize("kept", [False, True])
def test_one_data_set_is_asked_by_many_threads(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames.Arrow, "once", kept)  # as rows of a database are
    data = opened(nans())
    wrong: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(4):
                data.mean("v", bounds=(0, 1), epsilon=1)
                data.group_by(col("v") > 0, keys=[True], max_groups=1).count(epsilon=1)
                assert exact(data.source, n=Units(), b=Bins("u", [0, 500, 1000]))["b"] == (500, 500)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert data.spent() == {"epsilon": 40.0}


def test_one_data_set_is_asked_by_forked_processes(tmp_path: Path) -> None:
    data = opened(nans(), ledger=tmp_path / "ledger.db")
    assert data.count_units(epsilon=100).value == 1000
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:  # no cleaning up that is the parent's
            try:
                os._exit(0 if data.count_units(epsilon=100).value == 1000 else 1)
            except BaseException:
                os._exit(2)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert data.spent() == {"epsilon": pytest.approx(400.0)}
    assert data.count_units(epsilon=100).value == 1000


def test_two_data_sets_on_one_file_of_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE a AS SELECT range AS u FROM range(10)")
        connection.execute("CREATE TABLE b AS SELECT range AS u FROM range(20)")
    first, second = opened((path, "a")), opened((path, "b"), memory_limit="1GB")
    again = opened((path, "a"))
    assert [data.count_units(epsilon=400).value for data in (first, second, again)] == [10, 20, 10]


def test_sqlite_with_numbers_and_a_column_of_any_name(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "t.db") as made:
        made.execute('CREATE TABLE t (u TEXT, "*" REAL, "a""b" INTEGER)')
        made.executemany("INSERT INTO t VALUES (?, ?, ?)", [(f"user {i}", i / 2, i) for i in range(40)])
    made.close()
    data = opened(ibis.sqlite.connect(tmp_path / "t.db").table("t"), max_rows=1)
    assert data.mean("*", bounds=(0, 20), epsilon=400).value == pytest.approx(9.75, abs=0.1)
    assert data.group_by('a"b', keys=[1, 2], max_groups=1).count(epsilon=400)["count"][0].value == 1


@pytest.mark.postgres
def test_postgresql_with_units_of_text_and_caps(postgres: Any) -> None:
    postgres.raw_sql('DROP TABLE IF EXISTS seen; CREATE TABLE seen (u text, g text, "*" real)').close()
    postgres.raw_sql("INSERT INTO seen SELECT 'u' || i % 20, 'g' || i % 4, i FROM generate_series(1, 80) i").close()
    postgres.raw_sql("COMMIT").close()
    data = opened(postgres.table("seen"), max_rows=2)
    grouped = data.group_by("g", keys=["g0", "g1", "g2", "g3"], max_groups=1)
    assert sum(answer.value for answer in grouped.count(epsilon=400)["count"]) == 40
    assert data.mean("*", bounds=(0, 100), epsilon=400).value == pytest.approx(40, abs=15)


def test_what_fails_without_data_fails_before_paying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(nans(), path)
    spill = tmp_path / "spill"
    spill.mkdir()
    data = opened(str(path), temp_directory=spill)
    plan = data.plan.count_units(epsilon=1)
    path.rename(tmp_path / "away.parquet")
    for ask in (lambda: data.count(epsilon=1), plan.run, lambda: data.suggest_bounds("v", epsilon=1)):
        with pytest.raises(InboundsError):
            ask()
    (tmp_path / "away.parquet").rename(path)
    for directory in spill.iterdir():
        directory.rmdir()
    spill.rmdir()
    with pytest.raises(InboundsError, match="nothing is spent"):
        plan.run()
    assert data.spent() == {"epsilon": 0.0}
    spill.mkdir()
    assert plan.run().value >= 0


# ---------------------------------------------------------------- 8. state outside the ledger's view

_HOARD = """
import os, sys, pyarrow as pa, inbounds as ib
n = 2_000_000
t = pa.table({"u": [f"secret person {i}" for i in range(n)], "v": [1.0] * n})
d = ib.dataset(t, unit="u", budget=ib.Budget(epsilon=1), memory_limit="40MB", temp_directory=sys.argv[1], threads=1)
print("ready", flush=True)
d.group_by("u", max_groups=1).count_units(epsilon=1, delta=1e-6)
"""


def test_what_a_killed_process_spilled_is_removed_by_the_next_one(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", _HOARD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
    (left,) = tmp_path.iterdir()
    assert left.stat().st_mode & 0o077 == 0
    (left / "spilled").write_text("secret person 7")
    living = opened(nans(), temp_directory=tmp_path)
    assert not left.exists()
    living_elsewhere = Spill(tmp_path)  # a process of another container, whose number is nobody's here
    renamed = tmp_path / re.sub(r"spill-\d+", "spill-4194303", os.path.basename(living_elsewhere.path))
    os.rename(living_elsewhere.path, renamed)
    between = opened(nans(), temp_directory=tmp_path)
    assert renamed.exists()
    del between
    living_elsewhere.close()
    assert living.count_units(epsilon=400).value == 1000  # and its own directory is there
    other = opened(nans(), temp_directory=tmp_path)
    assert not renamed.exists()
    assert len(list(tmp_path.iterdir())) == 2
    assert living.count_units(epsilon=400).value == other.count_units(epsilon=400).value == 1000


def test_a_spill_directory_is_made_whatever_lies_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "inbounds-spill-1-pipe")
    (tmp_path / "kept").mkdir()
    (tmp_path / "inbounds-spill-1-link").symlink_to(tmp_path / "kept")
    Spill(tmp_path).close()
    assert (tmp_path / "kept").is_dir()
    opens, there = os.open, set(tmp_path.iterdir())

    def refused(path: Any, *given: Any, **more: Any) -> int:
        if "inbounds-spill" in str(path):
            raise PermissionError
        return opens(path, *given, **more)

    monkeypatch.setattr(os, "open", refused)
    spill = Spill(tmp_path)
    assert set(tmp_path.iterdir()) - there == {Path(spill.path)}


def test_a_question_keeps_no_rows_once_it_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames.Arrow, "once", True)
    data = opened(pa.table({"u": range(100_000), "v": [1.0] * 100_000}))
    data.mean("v", bounds=(0, 1), epsilon=1)
    data.plan.count_units(epsilon=1).explain(sql=True)
    data.suggest_bounds("v", epsilon=1)
    with pytest.raises(InboundsError):
        data.mean("w", bounds=(0, 1), epsilon=1)
    assert embedded._running == {}


def in_a_child(holds: Callable[[], bool]) -> bool:
    """Whether it holds in a forked process."""
    child = os.fork()
    if child == 0:  # no cleaning up that is the parent's
        signal.alarm(60)
        try:
            os._exit(0 if holds() else 1)
        except BaseException:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def test_a_child_lets_go_of_no_cursor_of_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB would remove in the child what the parent has spilled."""
    monkeypatch.setattr(frames.Arrow, "once", True)
    data = opened(nans(), ledger=tmp_path / "ledger.db")
    ours = (os.getpid(), threading.get_ident())
    monkeypatch.setattr(embedded, "_running", {ours: data.source.engine._database.cursor()})
    assert in_a_child(lambda: data.count_units(epsilon=100).value == 1000 and ours in embedded._running)


def test_a_child_forked_while_a_thread_opens_a_cursor_does_not_wait(tmp_path: Path) -> None:
    data = opened(nans(), ledger=tmp_path / "ledger.db")
    with data.source.engine._database._lock:
        assert in_a_child(lambda: data.count_units(epsilon=100).value == 1000)


def test_where_no_thread_can_be_had_questions_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert opened(nans()).count_units(epsilon=400).value == 1000


# ---------------------------------------------------------------- 9. bytes and numbers that a format allows


def broken(texts: list[bytes | None], kind: Any = None) -> pa.Array:
    """Text of these bytes, which Arrow does not look at."""
    binary = pa.array(texts, pa.binary())
    return pa.StringArray.from_buffers(len(texts), binary.buffers()[1], binary.buffers()[2], binary.buffers()[0])


@pytest.mark.parametrize("byte", [b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"ab\xf4\x90\x80\x80", b"\x80"])
@pytest.mark.parametrize("way", ["Parquet", "Parquet, dictionary", "Arrow", "Polars", "pandas"])
def test_text_that_is_no_text_is_missing(byte: bytes, way: str, tmp_path: Path) -> None:
    names = broken([b"a", b"b", byte])
    table = pa.table({"u": [1, 2, 3], "name": names, "v": [1.0, 2.0, 3.0]})
    source: Any = table
    if way.startswith("Parquet"):
        source = str(tmp_path / "t.parquet")
        pq.write_table(table, source, use_dictionary="dictionary" in way)
    elif way == "Polars":
        pq.write_table(table, tmp_path / "q.parquet")
        source = pl.scan_parquet([tmp_path / "q.parquet"])
    elif way == "pandas":
        source = pd.DataFrame({"u": [1, 2, 3], "name": pd.Series(["a", "b", "\ud800"], dtype=object)})
    data = opened(source)
    assert data.where(col("name") == "a").count_units(epsilon=400).value == 1
    assert data.where(col("name").is_null()).count_units(epsilon=400).value == 1
    assert data.where(~col("name").is_in(["a"])).count_units(epsilon=400).value == 1
    groups = data.group_by("name", keys=["a", "b"], max_groups=1).count_units(epsilon=400)
    assert [answer.value for answer in groups["units"]] == [1, 1]
    assert exact(source, n=Units())["n"] == (3,)
    by_name = Request({"n": Units()}, unit="name", rows=1).run(Source.open(source), salt=SALT)
    assert by_name["n"] == ((2,),)


FAR = {
    "times in seconds": pa.array([2**62], pa.int64()).view(pa.timestamp("s")),
    "times in milliseconds": pa.array([-(2**62)], pa.int64()).view(pa.timestamp("ms")),
    "times in microseconds": pa.array([2**63 - 1], pa.int64()).view(pa.timestamp("us")),
    "times with a zone": pa.array([2**62], pa.int64()).view(pa.timestamp("ms", "Asia/Tokyo")),
    "days": pa.array([2**31 - 1], pa.int32()).view(pa.date32()),
    "days in milliseconds": pa.array([-(2**63)], pa.int64()).view(pa.date64()),
    "a decimal of too many digits": pa.Array.from_buffers(
        pa.decimal128(9, 2), 1, [None, pa.py_buffer((2**127 - 1).to_bytes(16, "little"))]
    ),
    "a wide decimal": pa.array([10**60], pa.decimal256(76, 2)),
    "half a number": pa.array([float("inf")], pa.float16()),
}


@pytest.mark.parametrize("name", FAR)
def test_numbers_that_a_format_allows_concern_their_own_row(name: str, tmp_path: Path) -> None:
    far = FAR[name]
    table = pa.table({"u": [1, 2], "x": pa.chunked_array([pa.nulls(1, far.type), far])})
    sources: list[Any] = [table]
    if name not in ("days in milliseconds", "times in seconds"):
        pq.write_table(table, tmp_path / "t.parquet")
        sources.append(str(tmp_path / "t.parquet"))
    for source in sources:
        data = opened(source)
        assert data.where(~col("x").is_null()).count_units(epsilon=400).value in (0, 1)
        assert data.where(col("x").is_null() | ~col("x").is_null()).count_units(epsilon=400).value == 2
        kind = data.schema["x"]
        if kind.numeric:
            assert data.mean("x", bounds=(0, 1), epsilon=400).value is not None
            assert data.where(col("x") * col("x") > 3).count_units(epsilon=400).value in (0, 1)
        else:
            assert data.group_by(col("x").year(), keys=[1, 9999], max_groups=1).count_units(epsilon=400) is not None


def test_far_times_behind_a_relation_are_refused_or_read(tmp_path: Path) -> None:
    """Over a frame a relation is refused, with the frame as the way out; over a file it is the file."""
    table = pa.table(
        {"u": [1, 2], "x": pa.chunked_array([pa.nulls(1, pa.timestamp("ms")), FAR["times in milliseconds"]])}
    )
    connection = duckdb.connect()
    connection.register("rows", table)
    with pytest.raises(ParameterError, match="Give the table"):
        opened(connection.table("rows"))
    pq.write_table(table, tmp_path / "t.parquet")
    data = opened(connection.read_parquet(str(tmp_path / "t.parquet")))
    assert data.where(col("x").is_null()).count_units(epsilon=400).value == 2


LONG = 2**14


def stored(table: pa.Table, way: str, folder: Path) -> Any:
    """The table in a file, as a frame of pandas, or as it is."""
    if way == "Parquet":
        pq.write_table(table, folder / "t.parquet")
        return str(folder / "t.parquet")
    return table.to_pandas() if way == "pandas" else table


@pytest.mark.parametrize("way", ["Arrow", "Parquet", "pandas", "views"])
def test_categories_that_are_long_text_can_be_repeated_without_limit(way: str, tmp_path: Path) -> None:
    """2 GiB and a little when each row has its own copy: one more row than Arrow's offsets of 32 bits address."""
    rows = 2**31 // LONG
    kind = pa.string_view() if way == "views" else pa.string()
    notes = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["a" * LONG], kind))
    table = pa.table({"u": range(rows), "note": notes})
    source = stored(table, way, tmp_path)
    assert exact(source, n=Rows(), where=col("note") == "b")["n"] == (0,)


LIMIT = 2**16  # bytes of a text that is no longer missing


def long_texts(length: int) -> dict[str, Callable[[Path], Any]]:
    """Three rows by every way, one of a text of so many bytes of UTF-8, with the letters and what says so."""
    text = "é" * (length // 2) + "a" * (length % 2)
    frame = pd.DataFrame({"u": ["1", "2", "3"], "t": ["a", text, None]})
    objects, arrow = frame.astype(object).where(frame.notna(), None), pa.table({"u": [1, 2, 3], "t": ["a", text, None]})

    def written(kind: Any) -> Callable[[Path], Any]:
        table = arrow.set_column(
            1, "t", arrow["t"].cast(kind) if kind != "dictionary" else arrow["t"].dictionary_encode()
        )

        def write(path: Path) -> Any:
            pq.write_table(table, path / "t.parquet")
            return str(path / "t.parquet")

        return write

    def lines(path: Path) -> Any:
        objects.to_csv(path / "t.csv", index=False)
        return str(path / "t.csv")

    def on_sqlite(path: Path, encoding: str) -> Any:
        with sqlite3.connect(path / "t.sqlite") as connection:
            connection.execute(f"PRAGMA encoding = '{encoding}'")
            connection.execute("CREATE TABLE t (u TEXT, t TEXT)")
            connection.executemany("INSERT INTO t VALUES (?, ?)", objects.itertuples(index=False))
        connection.close()
        return ibis.sqlite.connect(path / "t.sqlite").table("t")

    def on_duckdb(path: Path) -> Any:
        connection = duckdb.connect()
        connection.from_arrow(arrow).create("t")
        return connection.table("t")

    return {
        "Arrow": lambda _: arrow,
        "Arrow, views": lambda _: pa.table({"u": [1, 2, 3], "t": pa.array(["a", text, None], pa.string_view())}),
        "Arrow, a part": lambda _: pa.concat_tables([arrow] * 3).combine_chunks().slice(3, 3),
        "Arrow, categories": lambda _: arrow.set_column(1, "t", arrow["t"].dictionary_encode()),
        "Parquet": written(pa.string()),
        "Parquet, categories": written("dictionary"),
        "pandas": lambda _: frame,
        "pandas, objects": lambda _: objects,
        "pandas, categories": lambda _: objects.astype({"t": "category"}),
        "Polars": lambda _: pl.from_arrow(arrow),
        "Polars, categories": lambda _: pl.from_arrow(arrow).with_columns(pl.col("t").cast(pl.Categorical)),
        "CSV": lines,
        "DuckDB": on_duckdb,
        "SQLite": lambda path: on_sqlite(path, "UTF-8"),
        "SQLite, UTF-16": lambda path: on_sqlite(path, "UTF-16le"),
    }


@pytest.mark.thinned(7)
@pytest.mark.filterwarnings(r"ignore:fetch_\w+\(\) is deprecated:DeprecationWarning")
@pytest.mark.parametrize("way", long_texts(2))
@pytest.mark.parametrize("length", [LIMIT - 1, LIMIT, LIMIT + 1, 2**20 + 1])
def test_long_text_is_missing_by_its_bytes_whatever_it_is_stored_in(way: str, length: int, tmp_path: Path) -> None:
    source = long_texts(length)[way](tmp_path)
    assert exact(source, n=Rows(), where=col("t").is_null())["n"] == ((1,) if length <= LIMIT else (2,))
    assert exact(source, n=Rows(), where=col("t") == "a")["n"] == (1,)
    groups = Request({"n": Rows()}, unit="u", rows=1, by=("t",), groups=1, at_least=2)
    assert groups.run(Source.open(source), salt=SALT).keys == ()


@pytest.mark.postgres
@pytest.mark.parametrize("length", [LIMIT, LIMIT + 1])
def test_long_text_of_postgresql_is_missing_by_its_bytes(postgres: Any, length: int) -> None:
    with postgres.con.cursor() as cursor:
        cursor.execute("CREATE TABLE long_text (u int, t text)")
        cursor.execute(
            f"INSERT INTO long_text VALUES (1, repeat('é', {length // 2}) || repeat('a', {length % 2})), (2, 'a')"
        )
    postgres.con.commit()
    try:
        table = postgres.table("long_text")
        assert exact(table, n=Rows(), where=col("t").is_null())["n"] == (int(length > LIMIT),)
    finally:
        postgres.con.execute("DROP TABLE long_text")
        postgres.con.commit()


def test_long_text_is_no_constant() -> None:
    table = pa.table({"u": [1], "t": ["a"]})
    assert exact(table, n=Rows(), where=col("t") == "a" * LIMIT)["n"] == (0,)
    for text in ("a" * (LIMIT + 1), "é" * (LIMIT // 2 + 1)):
        for ask in (
            lambda text=text: col("t") == text,
            lambda text=text: col("t").is_in(["a", text]),
            lambda text=text: col("t").fill_null(text),
            lambda text=text: Request({"n": Rows()}, unit="u", rows=1, by=("t",), keys=[text]),
        ):
            with pytest.raises(ParameterError, match=r"text of 65,536 bytes at most; got '[0-9,]+ letters'\. Longer"):
                ask()


@pytest.mark.parametrize("way", ["Arrow", "Parquet", "pandas", "pandas, objects", "views"])
@pytest.mark.parametrize("length", [LIMIT, 2**20])
def test_one_text_that_many_rows_refer_to_is_never_copied_for_all_of_them(
    way: str, length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """100,000 copies are six gigabytes, or a hundred; what one row costs in memory is bounded."""
    rows = 100_000
    text, kind = "a" * length, pa.string_view() if way == "views" else pa.string()
    notes = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text], kind))
    table = pa.table({"u": np.arange(rows), "note": notes})
    source = stored(table, way, tmp_path)
    if way == "pandas, objects":
        source = pd.DataFrame({"u": np.arange(rows), "note": pd.Series([text] * rows, dtype=object)})
    reader = Source.open(source).engine
    assert isinstance(reader, Embedded)
    stream = _Stream(reader._reader, ["note"], (), [reader._forms["note"]])
    found = [(batch.num_rows, batch.nbytes) for batch in stream._batches()]
    assert sum(count for count, _ in found) == rows
    assert max(size for _, size in found) <= 2**24 + 2**22
    if length > LIMIT:
        assert exact(source, n=Rows(), where=col("note").is_null())["n"] == (rows,)


def test_pieces_of_a_batch_say_what_the_batch_says(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["a", "bb" * 40, None, "c" * 100, ""]
    values = pa.array([texts[i % 5] for i in range(1000)])
    columns = [values, values.cast(pa.string_view()), values.dictionary_encode(), pa.array(range(1000))]
    table = pa.table(dict(zip("abcd", columns, strict=True)))
    source = Source.open(table.slice(7, 901))
    assert isinstance(source.engine, Embedded)
    forms_ = [source.engine._forms[name] for name in "abcd"]
    monkeypatch.setattr(forms, "LONGEST", 90)
    monkeypatch.setattr(forms, "_PIECE", 1000)
    batches = list(_Stream(source.engine._reader, list("abcd"), (), forms_)._batches())
    assert max(batch.num_rows for batch in batches) == 1000 // 90
    expected = [None if text is None or len(text) > 90 else text.encode() for text in table["a"].to_pylist()[7:908]]
    for i in range(3):
        assert [value for batch in batches for value in batch.column(i).to_pylist()] == expected
    assert [value for batch in batches for value in batch.column(3).to_pylist()] == list(range(7, 908))


def test_null_among_the_categories_of_one_chunk_concerns_its_own_row() -> None:
    def chunk(values: list[str | None]) -> Any:
        return pa.array(values).dictionary_encode(null_encoding="encode")

    for mine, missing in ("b", 0), (None, 1):
        chunks = pa.chunked_array([chunk(["a", "b"]), chunk(["a", mine])])
        frame = pd.DataFrame({"u": range(4), "v": pd.arrays.ArrowExtensionArray(chunks)})
        assert exact(frame, n=Rows(), where=col("v") == "a")["n"] == (2,)
        assert exact(frame, n=Rows(), where=col("v").is_null())["n"] == (missing,)


IDS = {
    "days in milliseconds": pa.array(range(4), pa.int64()).view(pa.date64()),
    "times of text": pd.Series([f"2024-01-01 00:00:00.000000{i}" for i in range(4)], dtype=object),
    "times of pandas": pd.Series([pd.Timestamp(i) for i in range(4)], dtype=object),
    "times where days are": pd.Series([dt.datetime(2024, 1, 1, i) for i in range(4)], dtype=object),
}


@pytest.mark.parametrize("name", IDS)
def test_no_two_units_become_one(name: str) -> None:
    """Each is a unit of its own, or fits no type and belongs to nobody."""
    ids = IDS[name]
    if isinstance(ids, pa.Array):
        found = exact(pa.table({"u": ids, "v": [1, 2, 3, 4]}), n=Units(), b=Bins("v", [1, 2, 3, 4, 5]))
        assert (found["n"], found["b"]) == ((4,), (1, 1, 1, 1))
        return
    kind = "date" if "days" in name else "time"
    frame = pd.DataFrame({"u": ids, "v": [1, 2, 3, 4]})
    found = exact(frame, types={"u": kind}, n=Units(), b=Bins("v", [1, 2, 3, 4, 5]))
    assert (found["n"], found["b"]) == ((1,), (1, 0, 0, 0))


def test_what_paths_say_is_text_unless_types_says_otherwise(tmp_path: Path) -> None:
    """A folder made for one person's value changes the type for nobody, and no column is lost."""
    kinds = set()
    for wards in (["1", "2"], ["1", "2", "A"], ["1", "3000000000"], ["1", "%FF"], ["1", "__HIVE_DEFAULT_PARTITION__"]):
        folder = tmp_path / "-".join(wards)
        for i, ward in enumerate(wards):
            (folder / f"ward={ward}").mkdir(parents=True)
            pq.write_table(pa.table({"u": [i]}), folder / f"ward={ward}" / "a.parquet")
        data = opened(str(folder / "*" / "*.parquet"))
        kinds.add((data.schema["ward"], data.source.description))
        assert data.where(col("ward") == "1").count_units(epsilon=400).value == 1
        typed = opened(str(folder / "*" / "*.parquet"), types={"ward": "integer"})
        assert typed.where(col("ward") == 1).count_units(epsilon=400).value == 1
        assert typed.where((col("ward") > 1) | col("ward").is_null()).count_units(epsilon=400).value == len(wards) - 1
    assert len(kinds) == 1


@pytest.mark.parametrize("name", ["__filename", "__fragment_index", "__batch_index", "__last_in_fragment"])
def test_names_that_arrow_gives_to_columns_of_its_own_are_refused_at_once(name: str, tmp_path: Path) -> None:
    table = pa.table({"u": [1, 2, 3], name: [1, 2, 2]})
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (str(tmp_path / "t.parquet"), pl.scan_parquet(tmp_path / "t.parquet"), pa.dataset.dataset(table)):
        with pytest.raises(ParameterError, match="Rename columns"):
            opened(source)
    assert exact(table, n=Rows(), where=col(name) == 2)["n"] == (2,)


class Nasty:
    """An object that does what it can."""

    def __getattribute__(self, name: str) -> Any:
        raise SystemExit("salary 42")


class Zone(dt.tzinfo):
    def utcoffset(self, when: dt.datetime | None) -> dt.timedelta:
        raise KeyboardInterrupt("salary 42")


@pytest.mark.parametrize("declared", ["text", "integer", "wide", "number", "boolean", "date", "time"])
def test_no_code_of_an_object_runs(declared: str) -> None:
    things = [Nasty(), dt.datetime(2024, 1, 1, tzinfo=Zone()), Text("x"), object(), {}, b"x"]
    frame = pd.DataFrame({"u": range(7), "v": pd.Series([*things, "1"], dtype=object)})
    data = opened(frame, types={"v": declared})
    assert data.where(col("v").is_null() | ~col("v").is_null()).count_units(epsilon=400).value == 7


def test_an_error_of_reading_is_no_word_of_the_engine(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(nans(), path)
    data = opened(str(path))
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + b"4711" * (len(whole) // 16) + whole[4 + 4 * (len(whole) // 16) :])
    with pytest.raises(QueryFailed) as caught:
        data.mean("v", bounds=(0, 1), epsilon=1)
    assert "4711" not in str(caught.value)


# ---------------------------------------------------------------- categories, data sets and files that change


def categories(values: list[list[str]], kind: Any) -> pa.Table:
    """Text by categories of few bits, of which each chunk has its own."""
    chunks = [pa.array(part, pa.string()).dictionary_encode().cast(kind) for part in values]
    return pa.table({"x": pa.chunked_array(chunks, kind)})


def rows(table: Any, where: Any = None, unit: str | None = None) -> int:
    request = Request({"n": Units() if unit else Rows()}, unit=unit, where=where)
    return request.run(Source.open(table), salt=SALT)["n"][0][0]


@pytest.mark.parametrize("way", ["a path", "a data set"])
@pytest.mark.parametrize("value", [pa.string(), pa.large_string()], ids=str)
def test_one_more_category_in_parquet_concerns_its_own_row(value: Any, way: str, tmp_path: Path) -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    counts = []
    for more in (28, 29, 100):
        path = str(tmp_path / f"{more}.parquet")
        table = categories([[f"a{i}" for i in range(100)], [f"b{i}" for i in range(more)]], kind)
        pq.write_table(table.cast(pa.schema({"x": pa.dictionary(pa.int8(), value)})), path)
        counts.append(rows(path if way == "a path" else pa.dataset.dataset(path), unit="x"))
    assert counts == [128, 129, 200]


@pytest.mark.parametrize("way", ["a path", "a data set", "one of two files"])
def test_a_category_that_is_no_text_concerns_its_own_row(way: str, tmp_path: Path) -> None:
    for octets in (b"\xff\xfeabc", b"zzabc"):
        given = pa.py_buffer(octets), pa.py_buffer(np.array([0, 2, 5], np.int32).tobytes())
        words = pa.Array.from_buffers(pa.string(), 2, [None, given[1], given[0]])
        path = str(tmp_path / "x.parquet")
        pq.write_table(pa.table({"x": pa.DictionaryArray.from_arrays(pa.array([0, 1, 1], pa.int8()), words)}), path)
        pq.write_table(pa.table({"x": ["abc"]}), tmp_path / "y.parquet")
        both = [path, str(tmp_path / "y.parquet")]
        table = {"a path": path, "a data set": pa.dataset.dataset(path), "one of two files": both}[way]
        assert rows(table, col("x") == "abc") == 2 + (way == "one of two files")


def test_what_folders_of_a_data_set_say_does_not_depend_on_other_folders(tmp_path: Path) -> None:
    for folder, more in (("first", ()), ("second", (("x", 1),))):
        for key, count in (("1", 100), ("01", 50), *more):
            (tmp_path / folder / f"k={key}").mkdir(parents=True)
            pq.write_table(pa.table({"v": list(range(count))}), tmp_path / folder / f"k={key}" / "a.parquet")
        table = pa.dataset.dataset(tmp_path / folder, format="parquet", partitioning="hive")
        request = Request({"n": Rows()}, unit=None, by=("k",), keys=(("1",), ("01",)))
        assert [row[0] for row in request.run(Source.open(table), salt=SALT)["n"]] == [100, 50]
    (tmp_path / "third" / "2024").mkdir(parents=True)
    pq.write_table(pa.table({"v": [1]}), tmp_path / "third" / "2024" / "a.parquet")
    with pytest.raises(ParameterError, match="folders say what they stand for"):
        Source.open(pa.dataset.dataset(tmp_path / "third", format="parquet", partitioning=["year"]))


def test_data_sets_of_arrow_are_read_as_files_are(tmp_path: Path) -> None:
    far = pa.table({"x": pa.array([dt.datetime(2024, 1, 1), dt.datetime(9999, 12, 31)], pa.timestamp("us"))})
    pq.write_table(far, tmp_path / "old.parquet", use_deprecated_int96_timestamps=True)
    for table in (str(tmp_path / "old.parquet"), pa.dataset.dataset(tmp_path / "old.parquet")):
        assert rows(table, col("x").year() == 9999) == 1
    orc.write_table(far, tmp_path / "far.orc")
    with pytest.raises(ParameterError, match=r"Parquet or Arrow files.*write ORC as Parquet"):
        Source.open(pa.dataset.dataset(tmp_path / "far.orc", format="orc"))
    pq.write_table(pa.table({"x": ["1", "2", "abc"]}), tmp_path / "text.parquet")
    declared = pa.dataset.dataset(tmp_path / "text.parquet", schema=pa.schema({"x": pa.int32()}))
    with pytest.raises(ParameterError, match="types of its files"):
        Source.open(declared)


@pytest.mark.parametrize("way", ["a path", "a data set"])
def test_a_file_of_parquet_that_was_written_anew_is_read_anew(way: str, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": list(range(1000))}), path)
    data = ib.dataset(str(path) if way == "a path" else pa.dataset.dataset(path), unit=None, budget=ib.Budget(10))
    pq.write_table(pa.table({"x": list(range(5000, 6500))}), path)
    counted = Request({"n": Rows()}, unit=None, where=col("x") >= 5000).run(data.source, salt=SALT)["n"][0][0]
    assert counted == 1500
    pq.write_table(pa.table({"x": ["a"]}), path)
    with pytest.raises(QueryFailed, match="other columns than when it was opened"):
        data.count(epsilon=1)
    assert data.spent()["epsilon"] == 0


def test_a_whole_number_of_very_many_digits_is_missing(tmp_path: Path) -> None:
    path, long = tmp_path / "w.csv", "9" * 5000
    for more in ("", f"a,{long}\nb,{long}\n", f"a,{'9' * 1000}\nb,{'9' * 1000}\n"):
        path.write_text("p,k\n" + "".join(f"{i},7\n" for i in range(100)) + more)
        data = ib.dataset(
            path, unit="p", types={"k": "wide"}, header=True, budget=ib.Budget(epsilon=500, delta=1e-3), max_groups=1
        )
        found = data.group_by("k").count_units(epsilon=100, delta=1e-5)
        assert found.keys[0] == (7,)
        assert len(found.keys) <= 2


def test_a_type_whose_type_is_a_stranger_is_not_asked(tmp_path: Path) -> None:
    class Meta(type):
        __hash__ = type.__hash__

        def __eq__(cls, other: object) -> bool:
            raise RuntimeError("asked")

    class Odd(metaclass=Meta):
        pass

    for declared in ("boolean", "date", "time", "integer", "number", "text", "wide"):
        table = pd.DataFrame({"u": [1, 2], "x": pd.Series([Odd(), None], dtype=object)})
        request = Request({"n": Rows()}, unit="u", rows=1, where=col("x").is_null())
        assert request.run(Source.open(table, types={"x": declared}), salt=SALT)["n"][0][0] == 2


def test_a_macro_of_the_users_does_not_stand_in_the_way() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT range AS x FROM range(5); CREATE MACRO lower(x) AS 1/0 || 'x'")
    assert rows(connection.table("t")) == 5


@pytest.mark.parametrize("more", [27, 28, 100])
def test_one_more_category_in_chunks_of_pandas_concerns_its_own_row(more: int) -> None:
    chunks = [
        pa.DictionaryArray.from_arrays(
            pa.array(range(count), pa.int8()), pa.array([f"{letter}{i}" for i in range(count)])
        )
        for letter, count in (("a", 100), ("b", more))
    ]
    frame = pa.table({"u": pa.chunked_array(chunks)}).to_pandas(types_mapper=pd.ArrowDtype)
    assert rows(frame, unit="u") == 100 + more


def test_lazy_scans_of_folders_and_patterns_are_refused_by_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"u": [1]}), tmp_path / "a.parquet")
    for place in (str(tmp_path), f"{tmp_path}/*.parquet"):
        with pytest.raises(ParameterError, match="Pass the pattern itself"):
            Source.open(pl.scan_parquet(place))
    assert rows(pl.scan_parquet(tmp_path / "a.parquet")) == 1


def test_parquet_with_encrypted_columns_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    """Arrow reads what is not encrypted, and does not come back from a comparison of what is."""
    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class Keys(encryption.KmsClient):  # type: ignore[name-defined, misc]
        def __init__(self, config: object) -> None:
            super().__init__()

        def wrap_key(self, key: bytes, name: str) -> bytes:
            return base64.b64encode(key)

        def unwrap_key(self, wrapped: bytes, name: str) -> bytes:
            return base64.b64decode(wrapped)

    how = encryption.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["x"]}, plaintext_footer=True, double_wrapping=False
    )
    made = encryption.CryptoFactory(Keys).file_encryption_properties(encryption.KmsConnectionConfig(), how)
    path = tmp_path / "x.parquet"
    table = pa.table({"u": range(20), "x": range(20)})
    with pq.ParquetWriter(path, table.schema, encryption_properties=made) as writer:
        writer.write_table(table)
    with pytest.raises(ParameterError, match="without encrypted columns"):
        Source.open(path)

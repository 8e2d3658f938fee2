"""Exact, bounded whole numbers: the same to the bit on every engine, equal to plain Python, and bounded as stated."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
import pickle
import random
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import ibis
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import inbounds as ib
from inbounds.errors import MissingColumn, MissingExtra, ParameterError, ParameterTypeError, QueryFailed
from inbounds.tables import (
    Bins,
    Expression,
    Fixed,
    Grid,
    Kind,
    Measure,
    Meeting,
    PerUnit,
    Request,
    Rows,
    Source,
    Squares,
    Sum,
    Units,
    UnitsMeeting,
    col,
    from_json,
)
from inbounds.tables.compile import Compiler
from inbounds.tables.exact import divide, divide_small, nearest
from inbounds.tables.expressions import Scope
from inbounds.tables.kinds import extra
from inbounds.tables.readers.frames import Arrow
from tests import query_reference as reference
from tests.query_support import on_spark, spark_session

# Ibis 12 calls what DuckDB 2 has deprecated.
pytestmark = pytest.mark.filterwarnings(r"ignore:fetch_\w+\(\) is deprecated:DeprecationWarning")

SALT = b"a salt for tests"
INF, NAN = math.inf, math.nan

WARDS = ["Straße", "O'Brien", '日本"', "'; DROP TABLE t; --", "x\\y", "a\nb"]

SCHEMA = pa.schema(
    [
        ("user", pa.int64()),
        ("name", pa.string()),
        ("ward", pa.string()),
        ("value", pa.float64()),
        ("big", pa.int64()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("time", pa.timestamp("us")),
        ("moment", pa.timestamp("us", tz="Europe/Berlin")),
        ("id", pa.uint64()),
        ("money", pa.decimal128(38, 6)),
        ("price", pa.decimal128(9, 2)),
    ]
)


def table(size: int, seed: int) -> list[dict[str, Any]]:
    """Skewed users, some without a name; nulls, NaN, infinities, huge numbers; every tenth row twice."""
    rng = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.08 else value

    rows = []
    for _ in range(size):
        who = int(25 * rng.random() ** 2)
        instant = dt.datetime(1890, 1, 1) + dt.timedelta(microseconds=rng.randrange(6 * 10**15))
        value = rng.choice([rng.gauss(40, 50), NAN, INF, -INF, 1e300 * rng.random(), 3.0, 0.1, -0.0, 5e-324])
        row = {
            "user": maybe(who - 3 if who != 7 else -(2**63)),
            "name": maybe(f"üser {who % 13}"),
            "ward": maybe(rng.choice(WARDS)),
            "value": maybe(value),
            "big": maybe(rng.choice([2**62, -(2**63), 2**63 - 1, 2**53 + 1, rng.randrange(100)])),
            "flag": maybe(rng.random() < 0.5),
            "day": maybe(instant.date()),
            "time": maybe(instant),
            "moment": maybe(instant.replace(tzinfo=dt.UTC)),
            "id": maybe(2**64 - 1 - who % 5 if who % 2 else who),
            "money": maybe(Decimal(rng.randrange(-(10**20), 10**20)).scaleb(-6)),
            "price": maybe(Decimal(rng.randrange(10**4)).scaleb(-2)),
        }
        rows += [row] * (2 if rng.random() < 0.1 else 1)
    return rows


ROWS = table(260, 1)
ARROW = pa.Table.from_pylist(ROWS, schema=SCHEMA)
KINDS = Source.open(ARROW).schema

VALUES: dict[str, Measure] = {
    "units": Units(),
    "sum": Sum("value", -10, 0.1),
    "squares": Squares("value", -10, 0.1),
    "big": Sum("big", 0, 2**60),
    "money": Sum("money", -1e9, 1e9 / 3),
    "price": Sum(col("price") * 3 - col("money").fill_null(1), 0, 100, center=0.0),
    "day": Sum("day", dt.date(1950, 1, 1), dt.date(2000, 1, 1)),
    "flag": Sum("flag", 0, 1),
    "meeting": Meeting(col("value") > 2),
    "some": UnitsMeeting((col("big") == 2**53 + 1) | col("flag")),
}
MORE: dict[str, Measure] = {
    "time": Sum("time", dt.datetime(1950, 1, 1), dt.datetime(2000, 1, 1)),
    "moment": Squares("moment", dt.datetime(1950, 1, 1, tzinfo=dt.UTC), dt.datetime(2000, 1, 1, tzinfo=dt.UTC)),
    "id": Sum("id", 0, 2**63),
    "bins": Bins("value", [0, 0.1, 2, 40, 100]),
    "grid": Grid("day", dt.date(1900, 1, 1), dt.date(2000, 1, 1), 7),
}
COUNT: dict[str, Measure] = {"rows": Rows()}
PER_UNIT: dict[str, Measure] = {
    "units": Units(),
    "mean": Sum("value", -10, 0.1),
    "sum": Sum("value", -10, 0.1, per=PerUnit("sum")),
    "sum far from 0": Squares("value", 1e5, 1e5 + 1, per=PerUnit("sum")),
    "sum of big ones": Sum("big", -(2**61), 2**62, center=0.0, per=PerUnit("sum")),
    "sum of whole ones": Sum(col("flag"), 0, 3, center=0.0, per=PerUnit("sum")),
    "bins of sums": Bins("price", [0, 50, 100, 150, 1e4], per=PerUnit("sum")),
    "min": Squares("value", -10, 0.1, per=PerUnit("min")),
    "max": Sum("money", -1e9, 1e9 / 3, per=PerUnit("max")),
    "grid of max": Grid("day", dt.date(1900, 1, 1), dt.date(2000, 1, 1), 7, per=PerUnit("max")),
    "first by day": Sum("value", -10, 10, per=PerUnit("first", col("day"))),
    "last by day": Sum("value", -10, 10, per=PerUnit("last", col("day"))),
    "first by a year": Sum("price", 0, 100, per=PerUnit("first", col("time").year())),
    "last by what is true": Bins("big", [0, 50, 100], per=PerUnit("last", col("value") > 0)),
    "last by a number": Sum("price", 0, 100, per=PerUnit("last", col("value"))),
    "last by a moment": Sum("flag", 0, 1, per=PerUnit("last", col("moment"))),
    "first by a sum": Sum("price", 0, 100, per=PerUnit("first", col("big") + col("price"))),
}
CONDITION = (~(col("value") > 1) | (col("ward").is_null() & col("time").hour().is_in([1, 2, 3, 4, 5]))) & ~(
    col("id") == 2**64 - 1
)

REQUESTS: dict[str, Request] = {
    "one value, public keys": Request(
        {**VALUES, **MORE}, unit="user", by="ward", keys=[*WARDS[:4], "absent"], groups=2
    ),
    "rows, public keys": Request(
        {**VALUES, **MORE, **COUNT}, unit="name", by="ward", keys=[*WARDS[:4], "absent"], groups=2, rows=2
    ),
    "one value, groups of the data": Request(VALUES, unit=["user", "name"], by=["ward", "flag"], groups=1),
    "rows, groups of the data": Request(
        {**VALUES, "bins": MORE["bins"], **COUNT}, unit="id", by=[col("time").month(), "id"], groups=3, rows=1
    ),
    "one group": Request({**VALUES, **MORE}, unit="user", where=CONDITION),
    "one group, rows": Request({**VALUES, **MORE, **COUNT}, unit="user", where=CONDITION, rows=3),
    "dates as keys": Request(
        VALUES, unit="name", by=[col("moment").year(), col("day").weekday() == 3], groups=2, at_least=2
    ),
    "a day": Request(
        VALUES, unit="moment", by=["day", col("price") >= 50], keys=[(ROWS[5]["day"], True), (dt.date.max, False)],
        groups=1,
    ),
    "what is taken of a unit": Request(PER_UNIT, unit="user"),
    "what is taken of a unit in a group": Request(
        PER_UNIT, unit=["name", "flag"], by="ward", keys=[*WARDS[:4], "absent"], groups=2, where=CONDITION
    ),
    "what is taken of a unit in a group of the data": Request(PER_UNIT, unit="id", by=col("time").month(), groups=3),
    "only counts": Request({"n": Rows(), "u": Units()}, unit="user", by="ward", groups=2, rows=2),
    "a row is a unit": Request({**VALUES, **MORE, **COUNT}, unit=None, by="ward"),
    "a row is a unit, one group": Request({"n": Rows()}, unit=None),
}  # fmt: skip


def same(request: Request, source: Source, rows: list[dict[str, Any]] = ROWS) -> None:
    """The engine's numbers are those of plain Python."""
    tally = request.run(source, salt=SALT)
    keys, units, numbers = reference.answer(rows, KINDS, request, SALT)
    assert list(tally.keys) == keys
    assert list(tally.units) == units
    assert {name: list(found) for name, found in tally.numbers.items()} == numbers
    assert all(type(number) is int for found in tally.numbers.values() for row in found for number in row)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table as files, under names that are themselves a test."""
    path = tmp_path_factory.mktemp("it's; a folder")
    pa.parquet.write_table(ARROW, path / "all.parquet")
    for i in range(2):
        pa.parquet.write_table(ARROW.slice(150 * i, 150), path / f"part {i}.parquet")
    with duckdb.connect(str(path / "table.duckdb")) as connection:
        connection.register("arrow", ARROW)
        connection.execute('CREATE TABLE "odd ""name""" AS SELECT * FROM arrow')
    return path


def local(name: str, folder: Path) -> Any:
    if name == "relation":
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'America/New_York'")  # must not matter
        connection.register("rows", ARROW)
        connection.execute("CREATE TABLE t AS SELECT * FROM rows; CREATE VIEW v AS SELECT * FROM t")
        return connection.table("v").project("*")
    if name == "ibis":
        return ibis.duckdb.connect().read_parquet(folder / "all.parquet")
    makers: dict[str, Callable[[], Any]] = {
        "parquet": lambda: str(folder / "all.parquet"),
        "pattern": lambda: [folder / "part *.parquet"],
        "pandas": lambda: ARROW.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": lambda: pl.from_arrow(ARROW),
        "lazy polars": lambda: pl.scan_parquet(folder / "all.parquet"),
        "arrow": lambda: ARROW,
        "batch": lambda: ARROW.combine_chunks().to_batches()[0],
        "dataset": lambda: pa.dataset.dataset(folder / "all.parquet"),
        "narwhals": lambda: nw.from_native(ARROW),
        "database": lambda: (folder / "table.duckdb", 'odd "name"'),
    }
    return makers[name]()


@pytest.mark.parametrize("request_name", REQUESTS)
def test_every_request_is_the_same_as_in_plain_python(request_name: str, folder: Path) -> None:
    same(REQUESTS[request_name], Source.open(local("parquet", folder)))


@pytest.mark.parametrize(
    "request_name",
    [
        "one value, public keys",
        "rows, groups of the data",
        "one group, rows",
        "dates as keys",
        "a row is a unit",
        "what is taken of a unit",
        "what is taken of a unit in a group",
    ],
)
def test_ibis_gives_the_same(request_name: str, folder: Path) -> None:
    same(REQUESTS[request_name], Source.open(local("ibis", folder)))


@pytest.mark.parametrize(
    "name",
    ["relation", "pattern", "pandas", "polars", "lazy polars", "arrow", "batch", "dataset", "narwhals", "database"],
)
def test_every_local_table_gives_the_same(name: str, folder: Path) -> None:
    source = Source.open(local(name, folder), threads=2, memory_limit="1GB")
    assert source.schema == KINDS
    same(REQUESTS["one value, public keys"], source)
    same(REQUESTS["rows, groups of the data"], source)


def test_csv_and_json_give_the_same(tmp_path: Path) -> None:
    columns = ["user", "name", "ward", "value", "big", "flag", "day", "time"]
    part = ARROW.select(columns)
    request = Request(
        {name: VALUES[name] for name in ("sum", "big", "day", "meeting", "some")},
        unit="name", by=["ward", col("time").year()], groups=2, rows=2,
    )  # fmt: skip
    rows = [{**row, **dict.fromkeys(set(KINDS) - set(columns))} for row in ROWS]
    pa.csv.write_csv(part, tmp_path / "table.csv")
    types = {"user": "integer", "name": "text", "value": "number", "flag": "boolean", "day": "date", "time": "time"}
    types = {**types, "big": "integer"}
    source = Source.open([tmp_path / "table.csv"], types=types)
    assert [source.schema[name] for name in columns] == [KINDS[name] for name in columns]
    same(request, source, rows)
    with (tmp_path / "table.jsonl").open("w") as file:
        for row in part.to_pylist():
            value = row["value"]
            row["value"] = None if value is None or not math.isfinite(value) else value
            file.write(json.dumps(row, default=str) + "\n")
    finite = [{**row, "value": row["value"] if row["value"] and math.isfinite(row["value"]) else None} for row in rows]
    finite = [
        {**new, "value": 0.0 if old["value"] == 0 else new["value"]} for new, old in zip(finite, rows, strict=True)
    ]
    same(request, Source.open(tmp_path / "table.jsonl", types={**types, "ward": "text"}), finite)


def test_what_does_not_fit_is_missing_and_its_row_still_counts(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("user,age\n1,20\n2,not a number\n3,30,too,many\n4,40\n")
    source = Source.open(tmp_path / "t.csv", types={"age": "integer"})
    assert Request({"n": Rows()}, unit=None).run(source)["n"] == ((4,),)
    request = Request({"n": Rows(), "age": Sum("age", 0, 100, center=0.0)}, unit="user", rows=1)
    tally = request.run(source)
    assert (tally.units, tally["age"][0][0]) == ((3,), 2)
    assert tally["age"][0][1] * request.measures["age"].fixed(request.caps).step == 60


@pytest.mark.parametrize(
    ("name", "text", "note"),
    [
        ("t.csv", "user,age\n1,20\n2,old\n", "values of the file that do not fit"),
        ("t.jsonl", '{"user": 1, "age": 20}\n{"user": 2, "age": "old"}\n', "values of the file that do not fit"),
    ],
)
def test_every_answer_from_text_says_what_becomes_of_what_does_not_fit(
    tmp_path: Path, name: str, text: str, note: str
) -> None:
    (tmp_path / name).write_text(text)
    types = {"user": "integer", "age": "integer"}
    data = ib.dataset(tmp_path / name, unit="user", types=types, budget=ib.Budget(epsilon=3))
    assert data.mean("age", bounds=(0, 100), epsilon=0.5).notes[-1].startswith(note)
    assert note in data.plan.mean("age", bounds=(0, 100), epsilon=0.5).explain().splitlines()[0]
    several = data.select(n=ib.ask.count_units(), m=ib.ask.mean("age", (0, 100)), epsilon=1.0)
    assert sum(line.startswith(note) for line in several.notes) == 1
    table = pa.table({"user": [1, 2], "age": [20, 30]})
    plain = ib.dataset(table, unit="user", budget=ib.Budget(epsilon=3)).mean("age", bounds=(0, 100), epsilon=0.5)
    assert not any("do not fit" in line for line in plain.notes)


# Spark: one session for classic and Connect, whose Python workers cannot start.


@pytest.fixture(scope="module")
def spark(java: str, folder: Path) -> Iterator[Mapping[str, Any]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    connect = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": str(port),
    }
    with spark_session(connect) as classic:
        from pyspark.sql.connect.session import SparkSession as Remote

        remote = Remote.builder.remote(f"sc://127.0.0.1:{port}").create()
        path = str(folder / "all.parquet")
        yield {"classic": classic.read.parquet(path), "connect": remote.read.parquet(path)}
        remote.stop()


SOME = {name: VALUES[name] for name in ("units", "sum", "squares", "big", "price", "some")}
ON_SPARK: dict[str, tuple[str, Request]] = {
    "one value, public keys": (
        "classic",
        Request({**SOME, "bins": MORE["bins"]}, unit="user", by="ward", keys=[*WARDS, "absent"], groups=2),
    ),
    "rows, groups of the data": (
        "classic",
        Request(
            {**SOME, "money": VALUES["money"], "moment": MORE["moment"], **COUNT},
            unit=["id", "name"], by=[col("time").month(), "id"], groups=1, rows=1, where=CONDITION,
        ),
    ),
    "what is taken of a unit": (
        "classic", Request({name: measure for name, measure in PER_UNIT.items() if name != "sum of big ones"},
                           unit="name", by="flag", groups=1),
    ),
    "dates as keys, rows": (
        "connect",
        Request(
            {"day": VALUES["day"], "time": MORE["time"], "meeting": VALUES["meeting"], "grid": MORE["grid"]},
            unit="name", by=[col("moment").year(), "day"], keys=[(row["day"].year, row["day"]) for row in ROWS[:9:4]],
            groups=1, rows=2,
        ),
    ),
}  # fmt: skip


@on_spark
@pytest.mark.parametrize("name", ON_SPARK)
def test_spark_gives_the_same(name: str, spark: Mapping[str, Any]) -> None:
    mode, request = ON_SPARK[name]
    source = Source.open(spark[mode])
    assert source.schema == KINDS
    same(request, source)


@on_spark
def test_spark_takes_odd_names_and_hides_errors(spark: Mapping[str, Any]) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    frame = spark["classic"]
    odd = {"user": "us`er.x", "value": "a b'; DROP TABLE t; --", "ward": 'wa"rd'}
    renamed = frame.select(*(F.col(old).alias(new) for old, new in odd.items()))
    request = Request({"s": Sum(odd["value"], 0, 9)}, unit=odd["user"], by=odd["ward"], keys=WARDS, groups=1)
    plainly = Request({"s": Sum("value", 0, 9)}, unit="user", by="ward", keys=WARDS, groups=1)
    tally = request.run(Source.open(renamed), salt=SALT)
    assert dict(tally.numbers) == dict(plainly.run(Source.open(ARROW), salt=SALT).numbers)
    failing = Source.open(renamed)
    failing.engine._frame = frame.select(F.raise_error(F.lit("secret 4711")).alias("s0"), F.lit(1.0).alias("s1"))
    hides(lambda: Request({"s": Sum(odd["value"], 0, 9)}, unit=odd["user"]).run(failing))


# Small and odd tables.


def numbers(rows: list[dict[str, Any]], request: Request, schema: pa.Schema = SCHEMA) -> dict[str, Any]:
    """The numbers by group, checked against plain Python."""
    source = Source.open(pa.Table.from_pylist(rows, schema=schema))
    tally = request.run(source, salt=SALT)
    keys, units, found = reference.answer(rows, source.schema, request, SALT)
    assert (list(tally.keys), list(tally.units)) == (keys, units)
    assert {name: list(row) for name, row in tally.numbers.items()} == found
    return {"": tally.units, **tally.numbers}


def row(**values: Any) -> dict[str, Any]:
    return {**dict.fromkeys(SCHEMA.names), **values}


def test_empty_tables_and_tables_of_nulls_give_zeros() -> None:
    for rows in ([], [row()] * 3, [row(user=1)], [row(ward="Straße", value=1.0)]):
        for caps in ({}, {"rows": 2}):
            request = Request(
                {**SOME, "bins": MORE["bins"]}, unit="user", by="ward", keys=["Straße", "x"], groups=1, **caps
            )  # fmt: skip
            found = numbers(rows, request)
            assert found[""] == (0, 0)
            assert all(number == 0 for name in request.measures for group in found[name] for number in group)
            assert Request({"n": Units()}, unit="user", by="ward", groups=1).run(
                Source.open(pa.Table.from_pylist(rows, schema=SCHEMA))
            ).keys == ()  # fmt: skip


def test_a_unit_with_rows_but_no_values_counts_as_a_unit_without_a_value() -> None:
    rows = [row(user=1, value=NAN), row(user=1), row(user=2, value=5.0), row(user=None, value=5.0)]
    request = Request({"u": Units(), "s": Sum("value", 0, 10, center=0.0)}, unit="user")
    found = numbers(rows, request)
    assert found["u"] == ((2,),)
    assert found["s"][0][0] == 1
    assert found["s"][0][1] * VALUES_STEP(request, "s") == 5


def VALUES_STEP(request: Request, name: str) -> float:
    measure = request.measures[name]
    assert isinstance(measure, Sum)
    return measure.fixed(request.caps).step


def test_a_units_value_is_its_own_mean() -> None:
    rows = [row(user=1, value=v) for v in (1.0, 2.0, 6.0)] + [row(user=2, value=500.0)]
    request = Request({"s": Sum("value", 0, 10, center=0.0), "b": Bins("value", [0, 3, 4, 10])}, unit="user")
    found = numbers(rows, request)
    assert found["s"][0][1] * VALUES_STEP(request, "s") == 3 + 10
    assert found["b"] == ((0, 1, 1),)


def test_bins_hold_their_lower_edge_and_the_last_one_both() -> None:
    values = [-5.0, 0.0, 0.1, 0.2 - 1e-12, 0.2, 0.3, 7.0, None, NAN, INF, -INF]
    rows = [row(user=i, value=v) for i, v in enumerate(values)]
    for caps in ({}, {"rows": 1}):
        found = numbers(rows, Request({"b": Bins("value", [0, 0.1, 0.2, 0.3])}, unit="user", **caps))
        below = 0 if not caps else 1  # a mean is compared to 2^-30 of the range, a row to 2^-51
        assert found["b"] == ((3, 1 + below, 5 - below),)
    found = numbers(rows, Request({"g": Grid("value", 0, 0.4, 4)}, unit="user", rows=1))
    assert found["g"] == ((3, 1, 2, 3),)  # edges up to a step


def test_whole_numbers_beyond_2_53_and_beyond_int64_are_told_apart() -> None:
    rows = [row(user=i, big=2**53 + i % 3, id=2**64 - 1 - i % 3) for i in range(9)]
    conditions = {
        "a": col("big") == 2**53 + 1,
        "b": col("big") > 2**53 + 1,
        "c": col("id") == 2**64 - 1,
        "d": col("id").is_in([2**64 - 2, 5]),
        "e": col("big").is_in([2**53 + 2, 10**30]),
        "f": col("big") < 10**30,
        "g": col("big") == col("id"),
    }
    found = numbers(rows, Request({k: UnitsMeeting(c) for k, c in conditions.items()}, unit="user"))
    assert [found[k][0][0] for k in conditions] == [3, 3, 3, 3, 3, 9, 0]
    keys = [(2**64 - 1,), (5,), (10**30,)]
    assert numbers(rows, Request({"u": Units()}, unit="user", by="id", keys=keys, groups=1))[""] == (3, 0, 0)
    keys = [(2**53 + 1,), (10**30,)]
    assert numbers(rows, Request({"u": Units()}, unit="user", by="big", keys=keys, groups=1))[""] == (3, 0)
    assert numbers(rows, Request({"u": Units()}, unit="user", by="big", keys=[10**30], groups=1))[""] == (0,)


def test_impossible_dates_are_nulls() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE v AS SELECT * FROM (VALUES (1, DATE 'infinity', TIMESTAMP '-infinity'), (2, DATE '9999-12-31', "
        "TIMESTAMP '9999-12-31 23:59:59.999999'), (3, DATE '10000-01-01', TIMESTAMP '294247-01-10 04:00:54.775806'), "
        "(4, DATE '5877642-06-25 (BC)', TIMESTAMP '290309-12-22 (BC) 00:00:00'), (5, DATE '0001-01-01', "
        "TIMESTAMP '0001-01-01 00:00:00')) t(u, d, t)"
    )
    measures = {
        "d": Meeting(col("d").year().is_null()),
        "t": Meeting(col("t").hour().is_null()),
        "first": Meeting((col("d") == dt.date.min) & (col("t") == dt.datetime.min)),
        "last": Meeting((col("d") == dt.date.max) & (col("t") == dt.datetime.max)),
    }
    tally = Request(measures, unit="u", rows=1).run(Source.open(connection.table("v")))
    assert [tally[name][0] for name in measures] == [(3,), (3,), (1,), (1,)]


def test_parts_of_every_eleventh_day_from_year_1_to_9999() -> None:
    every = [dt.date.min + dt.timedelta(days=i) for i in range(0, (dt.date.max - dt.date.min).days + 1, 11)]
    every += [
        dt.date(y, m, d) for y in (1, 4, 100, 400, 1900, 2000, 9999) for m, d in ((1, 1), (2, 28), (3, 1), (12, 31))
    ]
    every += [dt.date(y, 2, 29) for y in (4, 400, 1996, 2000)]
    source = Source.open(pa.table({"d": every, "t": pa.array(every).cast(pa.timestamp("s"))}))
    scope = Scope(source.schema, {"d": "c0", "t": "c1"})
    parts = {f"{p}{c}": getattr(col(c), p)() for c in "dt" for p in ("year", "month", "day", "weekday")}
    frame = source.frame(["d", "t"]).select(**{name: part.narwhals(scope) for name, part in parts.items()})
    wanted = [2 * (d.year, d.month, d.day, d.isoweekday()) for d in every]
    assert sorted(source.engine.rows(frame.to_native())) == sorted(wanted)


# The grammar of conditions.

COLUMNS = st.sampled_from(["user", "big", "value", "price", "id"]).map(col)
NUMBERS = st.integers(-5, 5) | st.floats(-5, 5) | st.sampled_from([2**53 + 1, 2**63 - 1, 2**70, 0.1])
REALS: st.SearchStrategy[Expression] = st.recursive(
    COLUMNS,
    lambda inner: st.builds(
        lambda a, b, op: {"+": a + b, "-": a - b, "*": a * b}[op], inner, inner | NUMBERS, st.sampled_from("+-*")
    ) | st.builds(lambda a, b: b - a * 2, inner, NUMBERS),
    max_leaves=3,
)  # fmt: skip
COMPARED = st.builds(
    lambda a, b, op: {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op],
    REALS, REALS | NUMBERS, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
)  # fmt: skip
TIMES = st.datetimes(dt.datetime(1850, 1, 1), dt.datetime(2150, 1, 1))
SIMPLE = (
    COMPARED
    | st.sampled_from([col("flag"), col("flag").fill_null(True), col("flag") == False, col("ward").is_null()])  # noqa: E712
    | st.sampled_from([col("name") == "üser 3", col("ward") != "O'Brien", col("ward").is_in(WARDS[2:4])])
    | st.builds(lambda t: col("time") >= t, TIMES)
    | st.builds(lambda t: col("day") < t.date(), TIMES)
    | st.builds(lambda t: col("moment") <= t.replace(tzinfo=dt.timezone(dt.timedelta(hours=5))), TIMES)
    | st.builds(lambda t: (col("time") < t.date()) | (col("day") == col("moment")), TIMES)
    | st.builds(lambda c, n: c.is_in(n), st.just(col("big")), st.lists(st.integers(-5, 2**70), max_size=3))
    | st.builds(lambda c, n: c.is_in(n), st.just(col("value")), st.lists(NUMBERS, max_size=3))
    | st.builds(lambda a, b: col("value").between(min(a, b), max(a, b)), st.floats(-9, 9), st.floats(-9, 9))
    | st.builds(lambda c, n: c.fill_null(n) > 2, st.sampled_from([col("value"), col("id")]), st.integers(0, 5))
    | st.builds(lambda p, n: getattr(col("moment"), p)() == n, st.sampled_from(["month", "hour"]), st.integers(0, 23))
)  # fmt: skip
CONDITIONS: st.SearchStrategy[Expression] = st.recursive(
    SIMPLE, lambda inner: st.builds(lambda a, b: a & b, inner, inner) | st.builds(lambda a, b: ~(a | b), inner, inner),
    max_leaves=4,
)  # fmt: skip


@settings(max_examples=12)
@given(st.lists(CONDITIONS, min_size=12, max_size=12))
def test_conditions_mean_the_same_on_duckdb_as_in_python_and_survive_json(conditions: list[Expression]) -> None:
    source = Source.open(ARROW.append_column("n", pa.array(range(len(ROWS)))))
    columns = list(source.schema)
    scope = Scope(source.schema, {name: f"c{i}" for i, name in enumerate(columns)})
    frame = source.frame(columns).select(
        nw.col(scope.names["n"]), **{f"r{i}": c.narwhals(scope) for i, c in enumerate(conditions)}
    )
    found = {n: values for n, *values in source.engine.rows(frame.to_native())}
    for i, condition in enumerate(conditions):
        back = from_json(json.loads(json.dumps(condition.to_json())))
        assert back.to_json() == condition.to_json()
        assert str(back) == str(condition)
        assert condition.kind(KINDS) is Kind.BOOLEAN
        for n, values in found.items():
            assert values[i] is back.evaluate(ROWS[n], KINDS), (str(condition), ROWS[n])


def test_three_valued_logic() -> None:
    yes, no, null = (col(name) for name in "ynx")
    schema = dict.fromkeys("ynx", Kind.BOOLEAN)
    values = {"y": True, "n": False, "x": None}
    for condition, wanted in (
        (yes & null, None), (no & null, False), (yes | null, True), (no | null, None), (~null, None),
        (null.is_null(), True), (null == True, None), (null.fill_null(False), False),  # noqa: E712
    ):  # fmt: skip
        assert condition.evaluate(values, schema) is wanted


def test_python_logic_on_conditions_is_an_error_that_helps() -> None:
    a, b = col("a") > 1, col("b") > 1
    for wrong in (lambda: a and b, lambda: a or b, lambda: not a, lambda: 1 < col("a") < 3, lambda: bool(a)):
        with pytest.raises(ParameterTypeError, match=r"&, \| and ~"):
            wrong()
    with pytest.raises(TypeError):
        3 in col("a")  # noqa: B015


BAD_EXPRESSIONS: dict[str, tuple[Callable[[], Expression], type[Exception], str]] = {
    "near miss": (lambda: col("valeu") > 1, MissingColumn, "'value'"),
    "case": (lambda: col("USER") > 1, MissingColumn, "'user'"),
    "no such": (lambda: col("zzzzz") > 1, MissingColumn, "The columns are 'user'"),
    "text and number": (lambda: col("ward") > 1, ParameterTypeError, "text with whole numbers"),
    "text order": (lambda: col("ward") < "a", ParameterTypeError, "<"),
    "date and number": (lambda: col("day") == 3, ParameterTypeError, "dates with whole numbers"),
    "zones": (lambda: col("time") < dt.datetime(2000, 1, 1, tzinfo=dt.UTC), ParameterTypeError, "times with a zone"),
    "text plus": (lambda: col("ward") + 1 > 2, ParameterTypeError, "numbers for +"),
    "and numbers": (lambda: col("value") & col("flag"), ParameterTypeError, "condition to be joined"),
    "not number": (lambda: ~col("value"), ParameterTypeError, "condition to be joined"),
    "year of number": (lambda: col("value").year() > 1, ParameterTypeError, "dates or times"),
    "hour of date": (lambda: col("day").hour() > 1, ParameterTypeError, "times"),
    "wrong list": (lambda: col("ward").is_in([1]), ParameterTypeError, "text"),
    "wrong list of fractions": (lambda: col("user").is_in([1.5]), ParameterTypeError, "whole numbers"),
    "wrong filler": (lambda: col("ward").fill_null(1).is_null(), ParameterTypeError, "text"),
    "null": (lambda: col("ward") == None, ParameterTypeError, "is_null"),  # noqa: E711
    "nan": (lambda: col("value") == NAN, ParameterTypeError, "is_null"),
    "infinite": (lambda: col("value") < INF, ParameterTypeError, "finite"),
    "object": (lambda: col("value") < object(), ParameterTypeError, "finite"),
    "list": (lambda: col("value").is_in("abc"), ParameterTypeError, "list"),
    "surrogate": (lambda: col("ward") == "\ud800", ParameterError, "UTF-8"),
    "name": (lambda: col(""), ParameterTypeError, "name"),
    "name of a number": (lambda: col(3), ParameterTypeError, "name"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", BAD_EXPRESSIONS)
def test_bad_expressions_are_refused_before_anything_is_read(name: str) -> None:
    make, kind, words = BAD_EXPRESSIONS[name]
    with pytest.raises(kind) as caught:
        Request({"u": Units()}, unit="user", where=make()).check(KINDS)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "bad", [3, None, {}, {"op": "drop"}, {"op": "and", "of": []}, {"op": "==", "of": [1]}, {"value": []}]
)
def test_what_is_no_expression_is_refused(bad: Any) -> None:
    with pytest.raises((ParameterError, ParameterTypeError)):
        from_json(bad)


def test_columns_and_substitution() -> None:
    total = col("a") * 2 + col("b")
    condition = (col("total") > 3) & col("a").is_in([1])
    new = condition.substitute({"total": total})
    assert new.columns() == {"a", "b"}
    assert str(new) == "(((a * 2) + b) > 3 and a in [1])"
    assert str(condition) == "(total > 3 and a in [1])"
    assert repr(col("odd name")) == "<'odd name'>"


# Requests that cannot be.

ONE = {"s": Sum("value", 0, 1)}
BAD_REQUESTS: dict[str, tuple[Callable[[], Request], str]] = {
    "no measure": (lambda: Request({}, unit="user"), "measures"),
    "no measures at all": (lambda: Request(3, unit="user"), "measures"),  # type: ignore[arg-type]
    "a wrong measure": (lambda: Request({"a": 3}, unit="user"), "measures"),  # type: ignore[dict-item]
    "no unit": (lambda: Request(ONE, unit=[]), "unit"),  # type: ignore[arg-type]
    "a unit twice": (lambda: Request(ONE, unit=["user", "user"]), "unit"),  # type: ignore[arg-type]
    "a missing unit": (lambda: Request(ONE, unit="usr"), "'user'"),
    "a unit of numbers": (lambda: Request(ONE, unit="value"), "astype"),
    "a wrong condition": (lambda: Request(ONE, unit="user", where=col("value")), "condition"),
    "SQL as condition": (lambda: Request(ONE, unit="user", where="1=1"), "col("),  # type: ignore[arg-type]
    "a group of numbers": (lambda: Request(ONE, unit="user", by="value", groups=1), "whole numbers"),
    "a group of times": (lambda: Request(ONE, unit="user", by="time", groups=1), "year()"),
    "a wrong group": (lambda: Request(ONE, unit="user", by=3, groups=1), "by"),  # type: ignore[arg-type]
    "no cap on groups": (lambda: Request(ONE, unit="user", by="ward"), "groups"),
    "a cap of 0": (lambda: Request(ONE, unit="user", by="ward", groups=0), "groups"),
    "half a cap": (lambda: Request(ONE, unit="user", rows=1.5), "rows"),  # type: ignore[arg-type]
    "a huge cap": (lambda: Request(ONE, unit="user", rows=2**40), "rows"),
    "rows without a cap": (lambda: Request({"n": Rows()}, unit="user"), "count Units"),
    "caps without a unit": (lambda: Request(ONE, unit=None, rows=3), "row is the unit"),
    "keys without by": (lambda: Request(ONE, unit="user", keys=["a"]), "without by"),
    "no keys": (lambda: Request(ONE, unit="user", by="ward", keys=[], groups=1), "at least one"),
    "keys twice": (lambda: Request(ONE, unit="user", by="ward", keys=["a", "a"], groups=1), "twice"),
    "keys of the wrong type": (lambda: Request(ONE, unit="user", by="ward", keys=["a", 1], groups=1), "text"),
    "keys of the wrong width": (lambda: Request(ONE, unit="user", by="ward", keys=[("a", 1)], groups=1), "1 value"),
    "a key that is missing": (lambda: Request(ONE, unit="user", by="ward", keys=[None], groups=1), "fill_null"),
    "a key that is no text": (lambda: Request(ONE, unit="user", by="ward", keys=["\ud800"], groups=1), "UTF-8"),
    "text as keys": (lambda: Request(ONE, unit="user", by="ward", keys="abc", groups=1), "list"),
    "a limit of 5": (lambda: Request(ONE, unit="user", limit=5), "limit"),
    "a missing column": (lambda: Request({"s": Sum("val", 0, 1)}, unit="user"), "'value'"),
    "a sum of text": (lambda: Request({"s": Sum("ward", 0, 1)}, unit="user"), "text"),
    "numbers as bounds of dates": (lambda: Request({"s": Sum("day", 0, 1)}, unit="user"), "dates"),
    "dates as bounds of numbers": (
        lambda: Request({"s": Sum("value", dt.date(2000, 1, 1), dt.date(2001, 1, 1))}, unit="user"), "dates",
    ),
    "mixed bounds": (lambda: Request({"s": Sum("day", 0, dt.date(2001, 1, 1))}, unit="user"), "all numbers"),
    "reversed bounds": (lambda: Request({"s": Sum("value", 1, 0)}, unit="user"), "greater"),
    "equal bounds": (lambda: Request({"s": Sum("value", 1, 1)}, unit="user"), "greater"),
    "a bound that is not a number": (lambda: Request({"s": Sum("value", NAN, 0)}, unit="user"), "lower"),
    "an infinite bound": (lambda: Request({"s": Sum("value", 0, INF)}, unit="user"), "upper"),
    "text as bound": (lambda: Request({"s": Sum("value", "0", 1)}, unit="user"), "lower"),
    "truth as bound": (lambda: Request({"s": Sum("value", False, 1)}, unit="user"), "lower"),
    "a wrong column": (lambda: Request({"s": Sum(3, 0, 1)}, unit="user"), "column"),  # type: ignore[arg-type]
    "an infinite centre": (lambda: Request({"s": Sum("value", 0, 1, center=INF)}, unit="user"), "center"),
    "a share of numbers": (lambda: Request({"s": Meeting(col("value"))}, unit="user"), "condition"),
    "a share of SQL": (lambda: Request({"s": UnitsMeeting("1=1")}, unit="user"), "col("),  # type: ignore[arg-type]
    "one edge": (lambda: Request({"s": Bins("value", [1])}, unit="user"), "edges"),
    "edges out of order": (lambda: Request({"s": Bins("value", [1, 3, 2])}, unit="user"), "greater"),
    "edges too close": (lambda: Request({"s": Bins("value", [0, 1, 1 + 1e-12, 2])}, unit="user"), "apart"),
    "too many edges": (lambda: Request({"s": Bins("value", range(2000))}, unit="user"), "2 to 1025"),
    "no cells": (lambda: Request({"s": Grid("value", 0, 1, 0)}, unit="user"), "cells"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_bad_requests_are_refused_before_anything_is_read(name: str) -> None:
    make, words = BAD_REQUESTS[name]
    with pytest.raises((ParameterError, ParameterTypeError)) as caught:
        make().check(KINDS)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 400


def test_pandas_columns_of_whole_numbers_with_gaps_get_a_hint() -> None:
    source = Source.open(pd.DataFrame({"user": [1, None, 2], "value": [1.0, 2.0, None]}))
    with pytest.raises(ParameterTypeError, match="astype"):
        Request(ONE, unit="user").run(source)


def test_bad_sources_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.xyz").write_text("a")
    (tmp_path / "t.duckdb").write_bytes(b"no database")
    pa.parquet.write_table(ARROW, tmp_path / "t.parquet")
    for bad in (3, None, {}, [], ["a.csv", 3], b"x", pd.Series([1]), "none.parquet", "s3://bucket/t.parquet",
                tmp_path / "t.xyz", [tmp_path / "t.parquet", tmp_path / "t.xyz"], tmp_path / "t.duckdb",
                (tmp_path / "t.duckdb", 3), (3, "t"), (ARROW, ARROW)):  # fmt: skip
        with pytest.raises((ParameterError, ParameterTypeError), match="Source: table must be"):
            Source.open(bad)
    with pytest.raises(ParameterError, match="a database of DuckDB that can be read"):
        Source.open((tmp_path / "t.duckdb", "t"))
    for options in ({"memory_limit": "lots"}, {"threads": 0}, {"types": {"a": "integer"}}):
        with pytest.raises(ParameterError):
            Source.open(ARROW, **options)
    with pytest.raises(ParameterError, match="types"):
        Source.open(tmp_path / "t.csv" if (tmp_path / "t.csv").write_text("a\n1\n") else "", types={"a": "blob"})
    with duckdb.connect(str(tmp_path / "real.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    with pytest.raises(ParameterError, match="a table of the database"):
        Source.open((tmp_path / "real.duckdb", "t; DROP TABLE t"))


def test_columns_that_are_not_supported_can_stand_beside_others() -> None:
    source = Source.open(pa.table({"list": [[1], [2]], "blob": [b"a", b"b"], "nothing": pa.nulls(2), "user": [1, 2]}))
    assert [source.schema[name] for name in source.schema] == [Kind.OTHER, Kind.OTHER, Kind.NULL, Kind.INTEGER]
    tally = Request({"s": Sum("nothing", 0, 1), "u": Units()}, unit="user").run(source)
    assert (tally["s"], tally["u"]) == (((0, 0),), ((2,),))
    assert Request({"n": Rows()}, unit=None).run(source)["n"] == ((2,),)
    with pytest.raises(ParameterTypeError, match="not supported"):
        Request({"u": Units()}, unit="user", where=col("list").is_null()).check(source.schema)


# Names, keys and constants cannot become SQL; the salt and the data are never shown.

ODD = [
    '"',
    "'",
    "a b",
    "x;DROP TABLE t;--",
    'q" FROM t; --',
    "日本",
    "a.b",
    "c0",
    "g",
    "u0",
    "\\",
    "%s",
    "{x}",
    "SELECT",
    "x0 ",
]


@pytest.mark.parametrize("name", ["arrow", "relation", "ibis"])
def test_odd_names_keys_and_constants_are_harmless(name: str, tmp_path: Path) -> None:
    data = {odd: [1, 2, 2, 3] for odd in ODD} | {"unit": ["'", '"', "; --", "x"], "t": ["';--", '"', "\\", "\x00"]}
    arrow = pa.table(data)
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 1 AS kept")
    pa.parquet.write_table(arrow, tmp_path / "t.parquet")
    opened = {
        "arrow": lambda: arrow,
        "relation": lambda: connection.read_parquet(str(tmp_path / "t.parquet")),
        "ibis": lambda: ibis.duckdb.from_connection(connection).read_parquet(tmp_path / "t.parquet"),
    }[name]()
    source = Source.open(opened)
    for odd in ODD if name == "arrow" else ODD[:7]:
        request = Request({"s": Sum(odd, 0, 9, center=0.0)}, unit="unit", by=odd, keys=[1, 2, 7], groups=1, rows=1)
        tally = request.run(source)
        assert tally.units == (1, 2, 0)
        step = VALUES_STEP(request, "s")
        assert [total * step for _, total in tally["s"]] == [1, 4, 0]
    for i, text in enumerate(data["t"]):
        where = (col("t") == text) & col("t").is_in([text, "' OR 1=1 --"])
        request = Request({"u": Units()}, unit="unit", by="t", keys=[text, "' OR '1'='1"], groups=1, where=where)
        assert request.run(source).units == (1, 0), i
    assert Request({"u": Units()}, unit="unit", where=col("t") == "' OR '1'='1").run(source).units == (0,)
    assert connection.execute("SELECT * FROM t").fetchall() == [(1,)]


def hides(call: Callable[[], object]) -> None:
    secret = "47" + "11"  # in two parts, so that the lines of a traceback do not show it
    with pytest.raises(QueryFailed) as caught:
        call()
    error = caught.value
    assert "withheld" in str(error)
    assert secret not in "".join(traceback.format_exception(error))
    assert error.__cause__ is None
    assert error.__context__ is None
    assert error.engine_error is None


def test_what_an_engine_says_is_withheld_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Arrow, columns: Sequence[str]) -> Iterator[Any]:
        raise ValueError("secret 47" + "11")
        yield

    monkeypatch.setattr(Arrow, "batches", fails)
    request = Request({"n": Rows()}, unit=None)
    hides(lambda: request.run(Source.open(ARROW)))
    with pytest.raises(QueryFailed) as caught:
        request.run(Source.open(ARROW, debug=True))
    assert "4711" in str(caught.value.engine_error)
    assert "4711" not in str(caught.value)


def test_the_salt_is_not_in_the_shown_query_and_tallies_show_nothing() -> None:
    for name in ("rows, public keys", "one value, public keys"):
        request = REQUESTS[name]
        source = Source.open(ARROW)
        shown = request.sql(source)
        assert shown.upper().count("SELECT") > 5
        secret = Compiler(request, source, SALT).queries()[""].to_native().sql_query()
        assert secret != shown.split(";\n\n")[0]
        assert (SALT.hex() in secret) == (name == "rows, public keys")
        assert SALT.hex() not in shown
        tally = request.run(source, salt=SALT)
        assert not any(digit in repr(tally) for digit in "0123456789")
    on_ibis = Request({"u": Units()}, unit="name", by="ward", groups=1).sql(Source.open(ibis.memtable(ARROW)))
    assert "md5" in on_ibis.lower()


def test_our_duckdb_reads_nothing_else_and_cleans_up(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = Source.open(folder / "part 0.parquet")
    connection = source.engine._database.cursor()  # type: ignore[attr-defined]
    for forbidden in (
        f"SELECT * FROM read_parquet('{(folder / 'part 1.parquet').as_posix().replace(chr(39), chr(39) * 2)}')",
        f"COPY (SELECT 1) TO '{tmp_path.as_posix()}/x.csv'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "INSTALL httpfs",
        "SET enable_external_access = true",
    ):
        with pytest.raises(duckdb.Error):
            connection.execute(forbidden)
    assert len(Request({"n": Rows()}, unit=None).run(source)["n"]) == 1
    assert [path.name[:15] for path in tmp_path.iterdir()] == ["inbounds-spill-"]
    del source, connection
    with pytest.raises(ParameterError):
        Source.open((tmp_path / "broken.db", "t") if (tmp_path / "broken.db").write_bytes(b"x") else "")
    assert [path.name for path in tmp_path.iterdir()] == ["broken.db"]


# Arithmetic.


def computed(engine: str, a: list[int], b: list[int], spark: Any = None) -> list[tuple[int, ...]]:
    data = pa.table({"a": pa.array(a, pa.int64()), "b": pa.array(b, pa.int64())})
    native = {"duckdb": lambda: duckdb.from_arrow(data), "ibis": lambda: ibis.memtable(data)}.get(
        engine,
        lambda: spark["classic"].sparkSession.createDataFrame(list(zip(a, b, strict=True)), "a bigint, b bigint"),
    )()
    frame = nw.from_native(native).lazy()
    small = nw.when((nw.col("a") <= 2**52) & (nw.col("a") >= -(2**52))).then(nw.col("a")).otherwise(nw.lit(0))
    frame = frame.select(
        "a", "b", d=divide(nw.col("a"), nw.col("b")), n=nearest(nw.col("a"), nw.col("b")), s=divide_small(small, 7)
    )
    rows = frame.collect().to_dict(as_series=False)
    return list(zip(*rows.values(), strict=True))


def checked(rows: list[tuple[int, ...]]) -> None:
    for a, b, quotient, near, small in rows:
        assert quotient == a // b
        assert near == math.floor(Fraction(a, b) + Fraction(1, 2))
        assert small == (a if abs(a) <= 2**52 else 0) // 7


def pairs(count: int) -> tuple[list[int], list[int]]:
    """Quotients up to 2^50, many of them next to a whole number or a half."""
    rng = random.Random(5)
    a, b = [], []
    for _ in range(count):
        divisor = rng.choice([1, 2, 3, 2**33, 2**33 - 1, rng.randrange(1, 2 ** rng.randrange(1, 34))])
        most = min(2**50, (2**62 - divisor) // divisor)
        quotient = rng.choice([most, -most, 0, rng.randrange(-most, most + 1)])
        a.append(quotient * divisor + rng.choice([-1, 0, 1, divisor // 2, (divisor + 1) // 2, -(divisor // 2)]))
        b.append(divisor)
    return a, b


@pytest.mark.parametrize("engine", ["duckdb", "ibis"])
def test_division_is_exact(engine: str) -> None:
    checked(computed(engine, *pairs(20_000)))


@on_spark
def test_division_is_exact_on_spark(spark: Mapping[str, Any]) -> None:
    checked(computed("spark", *pairs(500), spark))


FINITE = st.floats(-1e30, 1e30)


@settings(max_examples=200)
@given(FINITE, FINITE, st.none() | FINITE, st.integers(1, 2**40), st.lists(st.floats(allow_nan=False), max_size=20))
def test_fixed_point_numbers_stay_between_the_images_of_the_bounds(
    a: float, b: float, center: float | None, most: int, values: list[float]
) -> None:
    lower, upper = min(a, b), max(a, b)
    if not upper - lower >= 1e-60:
        return
    fixed = Fixed.within(lower, upper, lower / 2 + upper / 2 if center is None else center, most)
    assert math.frexp(fixed.step)[0] == 0.5
    assert -most <= fixed.lowest <= fixed.highest <= most
    finer = Fixed(fixed.lower, fixed.upper, fixed.center, fixed.step / 2)
    assert finer.highest > most or finer.lowest < -most, "the step is the finest"
    images = [fixed.of(v) for v in sorted(values)]
    assert images == sorted(images)
    for value, x in zip(sorted(values), images, strict=True):
        assert fixed.lowest <= x <= fixed.highest
        exact = Fraction(min(max(value, lower), upper)) - Fraction(fixed.center)
        slack = Fraction(2) ** -51 * abs(exact) + Fraction(fixed.step) * Fraction(1, 2)  # float64, then half a step
        assert abs(exact - x * Fraction(fixed.step)) <= slack * (1 + Fraction(2) ** -20)


def test_no_sum_can_overflow() -> None:
    for rows in (None, 1, 1000, 2**20):
        for limit in (2**20, 2**33, 2**40):
            request = Request({**VALUES, **MORE}, unit="user", rows=rows, limit=limit)
            for name in request.measures:
                for least, most in request.contribution(name):
                    assert limit * max(-least, most) <= 2**62


class Lying:
    """An engine that gives back one number too many."""

    def __init__(self, engine: Any, change: Callable[[Any], Any]) -> None:
        self._engine, self._change = engine, change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def rows(self, frame: Any) -> Any:
        return self._change(self._engine.rows(frame))


def test_numbers_that_cannot_be_are_not_passed_on() -> None:
    source = Source.open(ARROW)
    request = Request({"s": Sum("value", 0, 9)}, unit="user")
    for change, words in (
        (lambda rows: [(g, units, count, total + 2**60) for g, units, count, total in rows], "impossible"),
        (lambda rows: [(g, units, units + 1, total) for g, units, count, total in rows], "impossible"),
        (lambda rows: [(g, 2**34, count, total) for g, units, count, total in rows], "Raise limit"),
    ):
        lying = dataclasses.replace(source, engine=Lying(source.engine, change))
        with pytest.raises(QueryFailed, match=words):
            request.run(lying)


# What one unit can do.

SMALL = pa.schema([("user", pa.int64()), ("group", pa.string()), ("x", pa.float64()), ("y", pa.int64())])
ENTRIES = st.fixed_dictionaries(
    {
        "user": st.none() | st.integers(0, 4),
        "group": st.none() | st.sampled_from("abcd"),
        "x": st.none() | st.floats() | st.sampled_from([0.0, 1.0, 9.9, 10.0]),
        "y": st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9),
    }
)
TABLES = st.lists(ENTRIES, max_size=24)
MEASURES: dict[str, Measure] = {
    "u": Units(),
    "s": Sum("x", 0, 10),
    "zero": Sum("y", -3, 10, center=0.0),
    "q": Squares("x", 0, 10),
    "m": Meeting(col("x") > col("y")),
    "a": UnitsMeeting(col("x") > 5),
    "b": Bins("x", [0, 1, 5, 10]),
    "g": Grid("y", 0, 9, 3),
}


NAMES = st.lists(st.sampled_from(list(MEASURES)), min_size=1, max_size=3, unique=True)


def asked(rows: int | None, groups: int, keys: bool, names: Iterable[str] = MEASURES) -> Request:
    measures = {name: MEASURES[name] for name in names} | ({} if rows is None else {"n": Rows()})
    return Request(measures, unit="user", by="group", keys=list("abc") if keys else None, groups=groups, rows=rows)


@settings(max_examples=25)
@given(TABLES, st.sampled_from([None, 1, 2, 3]), st.integers(1, 3), st.booleans(), NAMES, st.binary(max_size=4))
def test_any_small_table_is_the_same_as_in_plain_python(
    rows: list[dict[str, Any]], most: int | None, groups: int, keys: bool, names: list[str], salt: bytes
) -> None:
    request = asked(most, groups, keys, names)
    source = Source.open(pa.Table.from_pylist(rows, schema=SMALL))
    tally = request.run(source, salt=salt)
    wanted = reference.answer(rows, source.schema, request, salt)
    assert (list(tally.keys), list(tally.units)) == wanted[:2]
    assert {name: list(found) for name, found in tally.numbers.items()} == wanted[2]


Numbers = dict[str, dict[tuple[Any, ...], tuple[int, ...]]]


def found_in(rows: list[dict[str, Any]], request: Request) -> Numbers:
    tally = request.run(Source.open(pa.Table.from_pylist(rows, schema=SMALL)), salt=SALT)
    return {name: dict(zip(tally.keys, found, strict=True)) for name, found in tally.numbers.items()}


def too_much(before: Numbers, after: Numbers, promised: Request) -> list[str]:
    """How adding a unit breaks the promises of a request; nothing where it keeps them."""
    broken, changed = [], set()
    for name, measure in promised.measures.items():
        contributions = promised.contribution(name)
        zero = (0,) * len(contributions)
        for key in before[name].keys() | after[name].keys():
            old, new = before[name].get(key, zero), after[name].get(key, zero)
            moves = [b - a for a, b in zip(old, new, strict=True)]
            changed |= {key} if any(moves) else set()
            if any(not least <= move <= most for move, (least, most) in zip(moves, contributions, strict=True)):
                broken.append(name)
            if isinstance(measure, Bins | Grid) and sum(moves) > promised.caps.values:
                broken.append(f"{name} in all")
    return broken + ["groups"] * (len(changed) > (promised.groups or 1))


@settings(max_examples=20)
@given(TABLES, st.sampled_from([None, 1, 2]), st.integers(1, 2), st.booleans(), NAMES)
def test_a_unit_moves_the_numbers_by_no_more_than_stated(
    rows: list[dict[str, Any]], most: int | None, groups: int, keys: bool, names: list[str]
) -> None:
    request = asked(most, groups, keys, names)
    whole = found_in(rows, request)
    for user in {row["user"] for row in rows if row["user"] is not None and row["user"] < 2}:
        without = found_in([row for row in rows if row["user"] != user], request)
        assert too_much(without, whole, request) == []


def test_without_the_caps_the_same_check_fails() -> None:
    others = [{"user": 1, "group": g, "x": 5.0, "y": 5} for g in "abc"]
    theirs = [{"user": 2, "group": g, "x": 10.0, "y": 9} for g in "abc" for _ in range(5)]
    promised = asked(2, 1, True)
    assert too_much(found_in(others, promised), found_in(others + theirs, promised), promised) == []
    loose = asked(2, 3, True)
    assert too_much(found_in(others, loose), found_in(others + theirs, loose), promised) == ["groups"]
    loose = asked(5, 1, True)
    broken = too_much(found_in(others, loose), found_in(others + theirs, loose), promised)
    # Sums of other caps are in other steps, so only counts can be compared.
    assert {"n", "m", "b", "b in all", "g", "g in all"} <= set(broken)
    wide = Request({"s": Sum("x", 0, 10)}, unit="user", rows=1)
    narrow = Request({"s": Sum("x", 4, 6)}, unit="user", rows=1)
    steps = [VALUES_STEP(r, "s") for r in (wide, narrow)]
    before, after = found_in(others, wide), found_in(others + theirs, wide)
    move = (after["s"][()][1] - before["s"][()][1]) * steps[0]
    assert move > narrow.contribution("s")[1][1] * steps[1], "values outside the bounds would move the sum too far"


def test_every_group_and_row_of_a_unit_is_kept_with_the_same_chance() -> None:
    """Of 20,000 units with 7 groups each, 3 are kept; of 7 rows each, 2: counts per group and per row are binomial.

    Each count is tested at alpha = 1e-8, 28 in all; a chance smaller by 0.06 would be refused.
    """
    size = 20_000
    source = Source.open(
        duckdb.connect()
        .sql(f"SELECT range // 7 AS u, 'unit ' || (range // 7) AS name, range % 7 AS g FROM range({7 * size})")
        .to_arrow_table()
    )
    for unit in ("u", "name"):
        tally = Request({"u": Units()}, unit=unit, by="g", keys=list(range(7)), groups=3).run(source)
        assert sum(tally.units) == 3 * size
        rows = Request({"b": Bins("g", range(8))}, unit=unit, rows=2).run(source)["b"][0]
        assert sum(rows) == 2 * size
        for count, chance in [(n, 3 / 7) for n in tally.units] + [(n, 2 / 7) for n in rows]:
            assert scipy.stats.binomtest(count, size, chance).pvalue > 1e-8
            assert scipy.stats.binomtest(count, size, chance - 0.06).pvalue < 1e-8


def test_salts_are_drawn_afresh() -> None:
    source = Source.open(pa.table({"u": [i // 9 for i in range(9000)], "g": [i % 9 for i in range(9000)]}))
    request = Request({"u": Units()}, unit="u", by="g", keys=list(range(9)), groups=1)
    assert len({request.run(source).units for _ in range(3)}) == 3  # equal by chance: below 1e-9
    assert request.run(source, salt=SALT).units == request.run(source, salt=SALT).units


def test_shares_of_units_are_in_steps() -> None:
    rows = [row(user=1, flag=flag) for flag in (True, False, False, None)] + [row(user=2, flag=True)]
    for caps, total, step in (({}, 1.25, 2**-29), ({"rows": 4}, 2, 1.0)):
        measure = Meeting(col("flag"))
        request = Request({"m": measure}, unit="user", **caps)
        assert measure.step(request.caps) == step
        assert numbers(rows, request)["m"][0][0] * step == total


def test_requests_can_be_pickled() -> None:
    source = Source.open(ARROW)
    for name in ("rows, public keys", "a row is a unit"):
        copied = pickle.loads(pickle.dumps(REQUESTS[name]))
        assert dict(copied.run(source, salt=SALT).numbers) == dict(REQUESTS[name].run(source, salt=SALT).numbers)


def test_a_missing_package_is_named_with_its_extra() -> None:
    with pytest.raises(MissingExtra, match=r"no_such_package is not installed. Install inbounds\[spark\]"):
        extra("no_such_package.part", "spark")


def test_the_package_loads_no_engine_before_it_is_needed() -> None:
    code = "import sys, inbounds.tables; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert not {"narwhals", "duckdb", "pyarrow", "polars", "pandas", "ibis", "pyspark"} & set(loaded.split())

"""Spark: no value, setting or plan makes a question fail, or one person's rows change another's part of an answer."""

from __future__ import annotations

import datetime as dt
import math
import socket
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import inbounds as ib
from inbounds import ask
from inbounds.errors import InboundsError, ParameterError, ParameterTypeError
from inbounds.tables import Kind, Meeting, Request, Rows, Source, Sum, Units, UnitsMeeting, col
from inbounds.tables.compile import Compiler
from inbounds.tables.engines.spark import Spark
from inbounds.tables.engines.spark_plans import _above, _path, _places
from inbounds.tables.readers.versions import admit
from tests import query_reference as reference
from tests.query_support import ARROW, MONTHS, WARDS, on_spark, opened, spark_session

SALT = b"a salt for tests"
INF, NAN = math.inf, math.nan
LEAST, MOST = -(2**63), 2**63 - 1


@pytest.fixture(scope="module")
def sessions(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Classic and Connect on one cluster where no Python can be started."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.pyspark.python": "/nowhere/python",
        "spark.sql.optimizer.maxIterations": "100",
    }
    with spark_session(settings) as classic:
        classic.sparkContext.setCheckpointDir(str(tmp_path_factory.mktemp("checkpoints")))
        from pyspark.sql.connect.session import SparkSession as Remote

        remote = Remote.builder.remote(f"sc://127.0.0.1:{port}").create()
        yield {"classic": classic, "connect": remote}
        remote.stop()


@pytest.fixture
def classic(sessions: dict[str, Any]) -> Iterator[Any]:
    """The session, whose settings are put back."""
    session, changed = sessions["classic"], []

    def change(name: str, value: str) -> None:
        changed.append((name, session.conf.get(name, None)))
        session.conf.set(name, value)

    yield SimpleNamespace(session=session, change=change, read=session.read, sql=session.sql)
    for name, value in reversed(changed):
        session.conf.unset(name) if value is None else session.conf.set(name, value)


# ---------------------------------------------------------------- values


def whole(values: list[int], kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int64()).view(kind)


TEXTS = [b"", b"\xff\xfe", b"a\x00b", "\U0001f600\u2028".encode(), b"\xed\xa0\x80", b"plain"]
LOCAL = [  # microseconds; the second and third lie on both ends of the hour that New York's summer time leaves out
    LEAST, 1_710_037_800_000_000, 1_710_041_400_000_000, -62_135_596_800_000_001, 253_402_300_799_999_999, MOST,
]  # fmt: skip
ENDS = {
    "i": pa.array([LEAST, MOST, -1, 0, None, 7]),
    "tiny": pa.array([-128, 127, 0, None, 1, 2], pa.int8()),
    "unsigned": pa.array([2**64 - 1, 0, 2**63, None, 1, 2], pa.uint64()),
    "single": pa.array([NAN, INF, -0.0, 0.1, None, 3.4e38], pa.float32()),
    "double": pa.array([NAN, -INF, -0.0, 5e-324, None, 1.7976931348623157e308]),
    "price": pa.array([Decimal("0.01"), Decimal("-9999999.99"), None, Decimal(0), Decimal(1), Decimal("0.07")],
                      pa.decimal128(9, 2)),
    "money": pa.array([Decimal("12345678901234567890.123456"), Decimal("0.1"), None, *map(Decimal, (0, 1, 2))],
                      pa.decimal128(38, 6)),
    "digits": pa.array([Decimal(10**38 - 1), Decimal(-5), None, *map(Decimal, (0, 1, 2))], pa.decimal128(38, 0)),
    "text": pa.Array.from_buffers(pa.string(), 6, pa.array(TEXTS, pa.binary()).buffers()),
    "long": pa.array(["é" * 2**15, "a" * 2**16, "é" * 2**15 + "a", "a" * (2**16 + 1), None, "a"]),
    "flag": pa.array([True, False, None, True, False, None]),
    "day": pa.array([-(2**31), 2**31 - 1, 0, -719_162, 2_932_896, 2_932_897], pa.int32()).view(pa.date32()),
    "local": whole(LOCAL, pa.timestamp("us")),
    "moment": whole(LOCAL, pa.timestamp("us", "UTC")),
    "bytes": pa.array(TEXTS, pa.binary()),
    "list": pa.array([[1]] * 6),
    "a.b`c\"*": pa.array(range(6)),
    "*": pa.array(range(6)),
    "I": pa.array([5] * 6),
}  # fmt: skip
TIMES = [None, *LOCAL[1:3], None, LOCAL[4], None]
PLAIN: dict[str, tuple[Kind, list[Any]]] = {
    "i": (Kind.INTEGER, [LEAST, MOST, -1, 0, None, 7]),
    "tiny": (Kind.INTEGER, [-128, 127, 0, None, 1, 2]),
    "unsigned": (Kind.WIDE, ["18446744073709551615", "0", "9223372036854775808", None, "1", "2"]),
    "single": (Kind.REAL, [None, INF, -0.0, 0.10000000149011612, None, 3.3999999521443642e38]),
    "double": (Kind.REAL, [None, -INF, -0.0, 5e-324, None, 1.7976931348623157e308]),
    "price": (Kind.REAL, [0.01, -9999999.99, None, 0.0, 1.0, 0.07]),
    "money": (Kind.REAL, [12345678901234567890.123456, 0.1, None, 0.0, 1.0, 2.0]),
    "digits": (Kind.WIDE, ["9" * 38, "-5", None, "0", "1", "2"]),
    "text": (Kind.TEXT, ["", None, "a\x00b", "\U0001f600\u2028", None, "plain"]),
    "long": (Kind.TEXT, ["é" * 2**15, "a" * 2**16, None, None, None, "a"]),
    "flag": (Kind.BOOLEAN, [True, False, None, True, False, None]),
    "day": (Kind.DATE, [None, None, 0, -719_162, 2_932_896, None]),
    "local": (Kind.DATETIME, TIMES),
    "moment": (Kind.INSTANT, TIMES),
    "bytes": (Kind.OTHER, [None] * 6),
    "list": (Kind.OTHER, [None] * 6),
    'a.b`c"*': (Kind.INTEGER, list(range(6))),
    "*": (Kind.INTEGER, list(range(6))),
    "I": (Kind.INTEGER, [5] * 6),
}
HOSTILE = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "Africa/Monrovia",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConstantFolding",
    "spark.sql.sources.useV1SourceList": "",
    "spark.sql.parquet.aggregatePushdown": "true",
}


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("ends") / "ends.parquet"
    pa.parquet.write_table(pa.table(ENDS), path)
    return str(path)


def plain(source: Source) -> None:
    assert source.schema == {name: kind for name, (kind, _) in PLAIN.items()}
    rows = source.engine.rows(source.frame(list(PLAIN)).to_native())
    found = dict(zip(PLAIN, zip(*sorted(rows, key=lambda row: row[-2]), strict=True), strict=True))
    for name, (_, values) in PLAIN.items():
        assert list(map(repr, found[name])) == list(map(repr, values)), name


@on_spark
def test_every_value_has_its_plain_form(sessions: dict[str, Any], ends: str) -> None:
    for session in sessions.values():
        session.conf.set("spark.sql.caseSensitive", "true")  # so that the reader takes columns i and I
        source = Source.open(session.read.parquet(ends))
        plain(source)
        session.conf.set("spark.sql.caseSensitive", "false")
        with pytest.raises(ParameterError, match=r"tell apart; got \['i', 'I'\]"):
            source.engine.ready()


@on_spark
def test_no_setting_of_the_session_matters(classic: Any, ends: str) -> None:
    for name, value in HOSTILE.items():
        classic.change(name, value)
    classic.change("spark.sql.caseSensitive", "true")
    plain(Source.open(classic.read.parquet(ends)))


LAST_DAY, FIRST_DAY = dt.date.max, dt.date.min
EXTREME = [
    {"id": who, "i": i, "wide": w, "v": v, "day": d, "local": t}
    for who, (i, w, v, d, t) in enumerate([
        (LEAST, 2**64 - 1, -0.0, FIRST_DAY, dt.datetime.min),
        (MOST, 0, INF, LAST_DAY, dt.datetime.max),
        (2**53 + 1, 2**53 + 1, -INF, dt.date(1970, 1, 1), dt.datetime(2024, 3, 10, 2, 30)),
        (2**53, 2**63, 1.7e308, dt.date(2024, 2, 29), dt.datetime(2024, 3, 10, 3, 30)),
        (None, None, None, None, None),
        (-1, 5, 0.1 + 0.2, dt.date(1900, 3, 1), dt.datetime(1883, 11, 18, 12, 3, 58)),
    ])
]  # fmt: skip
EXTREME_SCHEMA = pa.schema([
    ("id", pa.int64()), ("i", pa.int64()), ("wide", pa.uint64()), ("v", pa.float64()), ("day", pa.date32()),
    ("local", pa.timestamp("us")),
])  # fmt: skip
BIG = (col("v") * 1e300 - col("i")) * 1e300
EXTREMES = [
    Request(
        {
            "i": Sum("i", -(2.0**63), 2.0**63), "v": Sum("v", -1e60, 1e60), "big": Sum(BIG, -1e60, 1e60),
            "wide": Sum("wide", 0, 2**64), "time": Sum("local", dt.datetime.min, dt.datetime.max),
            "zero": Meeting(col("v").is_in([0.0, *map(float, range(2, 20))])),
            "exact": UnitsMeeting((col("i") == 2**53 + 1) | (col("wide") == 2**64 - 1) | (col("i") < -(2**62))),
            "weekday": Sum(col("day").weekday() + col("local").weekday(), 0, 14),
            "hour": Sum(col("local").hour() * col("day").day(), 0, 800),
            "order": Meeting((col("day") < col("local")) | (col("i") > col("wide"))),
        },
        unit="local", by=col("day").year(), groups=2, rows=2,
    ),
    Request({"m": Sum(col("local").month(), 0, 12), "n": Rows()}, unit=["wide", "i"], by="wide", groups=1, rows=1),
]  # fmt: skip


@on_spark
def test_arithmetic_at_the_ends_is_that_of_python(classic: Any, tmp_path: Path) -> None:
    table = pa.Table.from_pylist(EXTREME, schema=EXTREME_SCHEMA)
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    source = Source.open(classic.read.parquet(str(tmp_path / "t.parquet")))
    classic.change("spark.sql.ansi.enabled", "true")
    for request in EXTREMES:
        found = request.run(source, salt=SALT)
        keys, units, numbers = reference.answer(EXTREME, source.schema, request, SALT)
        assert (list(found.keys), list(found.units)) == (keys, units)
        assert {name: list(rows) for name, rows in found.numbers.items()} == numbers


@on_spark
def test_text_is_what_its_bytes_are_whatever_the_collation(classic: Any) -> None:
    classic.sql(
        "CREATE TABLE spelled (who INT, name STRING COLLATE UNICODE_CI, code CHAR(3), more VARCHAR(9)) USING parquet"
    )
    classic.sql("INSERT INTO spelled VALUES (1,'Ab','x','é'), (2,'aB','x ','é '), (3,'AB ','X','É'), (1,'ab','X','e')")
    data = Source.open(classic.session.table("spelled"))
    assert data.schema["name"] is Kind.TEXT
    keys = ["Ab", "aB", "AB", "AB ", "ab"]
    by = Request({"n": Units(), "m": Meeting(col("name").is_in(["ab"]))}, unit="who", by="name", keys=keys, groups=3)
    assert by.run(data).units == (1, 1, 0, 1, 1)
    assert by.run(data)["m"][0] == (0,)
    found = Request({"n": Units()}, unit="who", by=["code", "more"], groups=3).run(data)
    assert found.keys == (("X  ", "e"), ("X  ", "É"), ("x  ", "é"), ("x  ", "é "))
    cap = Request({"n": Rows()}, unit="name", rows=1).run(data)
    assert cap.units == (4,)  # each spelling is a unit


@on_spark
@pytest.mark.parametrize("reader", ["parquet", ""])
def test_statistics_that_leave_out_nan_change_nothing(classic: Any, tmp_path: Path, reader: str) -> None:
    classic.change("spark.sql.sources.useV1SourceList", reader)
    classic.change("spark.sql.parquet.aggregatePushdown", "true")
    request = Request(
        {"sum": Sum("v", 0, 5, center=0.0), "more": Meeting(col("v") > 5), "less": Meeting(col("v") <= 1e300)},
        unit="id", where=~(col("v") > 1e9),
    )  # fmt: skip
    tallies = []
    for more in ([], [5.0]):
        values = [NAN] * 500 + [1.0] * 500 + more
        table = pa.table({"id": range(len(values)), "v": values})
        pa.parquet.write_table(table, tmp_path / f"{len(more)}.parquet")
        tallies.append(
            request.run(Source.open(classic.read.parquet(str(tmp_path / f"{len(more)}.parquet"))), salt=SALT)
        )
    without, with_one = (tally.numbers for tally in tallies)
    step = request.measures["sum"].fixed(request.caps).step  # type: ignore[attr-defined]
    assert [total * step for numbers in (without, with_one) for _, total in numbers["sum"]] == [500.0, 505.0]
    assert without["more"] == with_one["more"] == ((0,),)
    assert [tally.units for tally in tallies] == [(500,), (501,)]


DAY, NOON = dt.date(1582, 10, 10), dt.datetime(2024, 1, 1, 12)
BY_OTHER_ROWS: dict[str, tuple[pa.DataType, Any, Any, str, str, Any]] = {
    # the type and value of 500 rows, the value of one more, the type as read, a condition of Spark, and of ours
    "NaN": (pa.float64(), NAN, 5.5, "double", "v > 5", ~(col("v") <= 5)),
    "NaN itself": (pa.float32(), NAN, INF, "float", "v = try_cast('nan' AS float)", col("v") > 5),
    "NaN cast": (pa.float32(), NAN, 5.5, "float", "cast(v AS double) IN (5.5D, 7D)", col("v") == 5.5),
    "NaN in a branch": (pa.float64(), NAN, 5.5, "double", "if(v > 5, 'a', 'b') = 'a'", col("v") > 5),
    "milliseconds": (pa.timestamp("ms", "UTC"), NOON, NOON - dt.timedelta(days=1), "timestamp",
                     "v < timestamp'2024-01-01 12:00:00.0005Z'", col("v").year() < 2024),
    "days that Java leaves out": (pa.date32(), DAY, DAY + dt.timedelta(days=6), "date", "v >= date'1582-10-10'",
                                  col("v") >= DAY),
    "days of early years": (pa.date32(), dt.date(1, 1, 1), DAY, "date", "v < date'0001-01-02'", col("v") <= DAY),
    "wider decimals": (pa.decimal128(9, 2), Decimal(0), Decimal(1), "decimal(18,2)", "v != 42949672.96",
                       col("v") < 4e7),
    "wider whole decimals": (pa.decimal128(9, 0), Decimal(0), Decimal(1), "decimal(18,0)", "v != 4294967296BD",
                             col("v") != 4294967296),
    "narrower numbers": (pa.int32(), 70_000, 1, "smallint", "v < 5000", col("v") < 5000),
    "narrower numbers cast": (pa.int32(), 70_000, 1, "tinyint", "cast(v AS bigint) < 5000", col("v") < 5000),
}  # fmt: skip


@on_spark
@pytest.mark.parametrize("reader", ["parquet", ""])
@pytest.mark.parametrize("name", BY_OTHER_ROWS)
def test_conditions_count_a_row_whatever_others_are_in_its_file(
    classic: Any, tmp_path: Path, name: str, reader: str
) -> None:
    stored, value, more, read, refused, asked = BY_OTHER_ROWS[name]
    classic.change("spark.sql.sources.useV1SourceList", reader)
    found = []
    for extra in ([], [more]):
        path = str(tmp_path / f"{len(extra)}.parquet")
        table = pa.table({"v": pa.array([value] * 500 + extra, stored)})
        pa.parquet.write_table(table, path, store_decimal_as_integer=True)
        frame = classic.read.schema(f"v {read}").parquet(path)
        for own in (frame.filter(refused), frame.selectExpr(f"{refused} AS flag")):
            with pytest.raises(ParameterTypeError, match=r"by its other rows.*data\.where"):
                Source.open(own)
        rows = Request({"n": Rows()}, unit=None, where=asked).run(Source.open(frame), salt=SALT)
        found.append(rows.numbers["n"][0][0])
    assert found in ([0, 1], [500, 501], [0, 0], [500, 500])
    kept = Request({"n": Rows()}, unit=None).run(Source.open(frame.filter(refused).localCheckpoint()), salt=SALT)
    assert kept.numbers["n"][0][0] >= 0


@on_spark
def test_a_checkpoint_of_connect_is_computed_when_it_is_opened(sessions: dict[str, Any]) -> None:
    late = sessions["connect"].range(3).selectExpr("10 div id AS user").localCheckpoint(eager=False)
    with pytest.raises(InboundsError, match="while opening the table"):
        Source.open(late.select("user"))


# ---------------------------------------------------------------- questions

AGES, KIDS = (0, 100), (0, 6)
ASKS: dict[str, Any] = {
    "rows": ask.count(), "people": ask.count_units(), "sum": ask.sum("kids", KIDS), "mean": ask.mean("age", AGES),
    "variance": ask.variance("age", AGES), "median": ask.median("price", (0, 100)),
    "share": ask.share(col("flag"), of="units"), "histogram": ask.histogram("age", [0, 50, 100]),
}  # fmt: skip


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("visits") / "visits.parquet"
    pa.parquet.write_table(ARROW, path)
    return str(path)


@on_spark
@pytest.mark.parametrize(
    ("mode", "known", "names"),
    [
        ("classic", True, ["mean"]),
        ("classic", False, list(ASKS)),
        ("connect", True, ["mean"]),
        ("connect", False, ["people"]),
    ],
)
def test_every_question_needs_no_python_on_the_cluster(
    mode: str,
    known: bool,
    names: list[str],
    sessions: dict[str, Any],
    visits: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("inbounds.tables.request.fresh_salt", lambda: SALT)
    monkeypatch.setenv("PYSPARK_PYTHON", "/nowhere/python")
    run, tallies = Request.run, []

    def recorded(request: Request, source: Source) -> Any:
        tallies.append(run(request, source))
        return tallies[-1]

    monkeypatch.setattr(Request, "run", recorded)
    keys = {"keys": [(ward, month) for ward in [*WARDS, "absent"] for month in MONTHS]} if known else {}
    for table in (sessions[mode].read.parquet(visits), ARROW):
        data = opened(table, unit="name", budget=ib.Budget(epsilon=1e6, delta=0.1), max_rows=2)
        groups = data.group_by("ward", col("time").month(), max_groups=2, **keys)
        asks = {name: ASKS[name] for name in names}
        results = groups.select(asks, epsilon=500, **({} if known else {"delta": 1e-6}))
        assert {name.partition(" [")[0] for name in results.columns} == set(names)
    first, second = ((tally.keys, tally.units, dict(tally.numbers)) for tally in tallies)
    assert first == second


ODD = ["", "a\x00b", "q'\"\\ \n\t", "\U0001f600\u2028", "null", "{}", "ü", "ü", "\ufffd", "\ufeff"]


@on_spark
@pytest.mark.parametrize("mode", ["classic", "connect"])
def test_public_keys_arrive_as_they_are(mode: str, sessions: dict[str, Any], ends: str) -> None:
    engine = Spark(sessions[mode].range(1))
    few = engine.table(None, {"k0": ODD, "k1": [LEAST, MOST, *range(len(ODD) - 2)], "g": list(range(len(ODD)))})
    assert sorted(engine.rows(few), key=lambda row: row[-1]) == [
        (text, number, i) for i, (text, number) in enumerate(zip(ODD, [LEAST, MOST, *range(8)], strict=True))
    ]
    keys = [f"key {i}" for i in range(100_000)]
    request = Request({"n": Units()}, unit="id", by="ward", keys=keys, groups=1)
    F = engine._functions
    rows = sessions[mode].range(3).select("id", F.concat(F.lit("key "), "id").alias("ward"))
    source = Source.open(rows.localCheckpoint())
    assert request.run(source).units == (1, 1, 1) + (0,) * 99_997
    if mode == "classic":
        query = Compiler(request, source, SALT).queries()[""].to_native()
        assert "BroadcastHashJoin" in query._jdf.queryExecution().executedPlan().toString()


# ---------------------------------------------------------------- the user's own plan

ADMITTED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "classic joins and conditions": lambda spark, F, t: t.where((F.year("day") == 2024) & F.col("ward").isNotNull())
    .join(spark.range(90).withColumnRenamed("id", "user"), "user").where("ward BETWEEN 'a' AND 'z' OR user > 2")
    .withColumn("young", F.when(F.length("ward") < 18, F.upper("ward"))).union(t.withColumn("young", F.lit("x")))
    .withColumn("twice", F.when(F.isnull("age"), F.lit(0.5)).otherwise(F.col("age").cast("double") * 2))
    .withColumn("whole", F.expr("try_add(nullif(try_cast(ward AS INT), 3), 1)")).repartition(2, "ward").sort("ward")
    .where(F.datediff(F.current_date(), F.to_date("time")) >= 3).select("*", F.struct("kids").alias("s"))
    .select("user", "s.kids"),
    "classic values": lambda spark, F, t: spark.sql("VALUES (1, 'a'), (2, 'b') AS t(user, ward)"),
    "classic frames of Arrow": lambda spark, F, t: spark.createDataFrame(pa.table({"user": [1]})),
    "classic checkpoints": lambda spark, F, t: t.limit(3).localCheckpoint(),
    "classic views": lambda spark, F, t: t.createOrReplaceTempView("seen") or spark.table("seen"),
    "classic reliable checkpoints": lambda spark, F, t: t.limit(3).checkpoint(),
    "connect lazy checkpoints": lambda spark, F, t: t.localCheckpoint(eager=False),
    "connect columns": lambda spark, F, t: t.select("user", F.col("ward").alias("w")).withColumnRenamed("w", "x")
    .drop("day").alias("t"),
    "connect checkpoints": lambda spark, F, t: t.where(F.col("user") > 1).localCheckpoint(),
    "connect tables": lambda spark, F, t: spark.table("visited"),
    "connect stars": lambda spark, F, t: t.alias("q").select("*", "q.*", F.lit(1).alias("one")).drop("user")
    .toDF(*(f"c{i}" for i in range(2 * len(t.columns) - 1))).withColumnRenamed("c0", "user"),
    "connect frames of Arrow": lambda spark, F, t: spark.createDataFrame(pa.table({"user": [1]})),
}  # fmt: skip
REFUSED: dict[str, tuple[str, Callable[[Any, Any, Any], Any]]] = {
    "classic casts": (r"Cast \(ANSI\)", lambda spark, F, t: t.withColumn("ward", F.col("ward").cast("int"))),
    "classic implicit casts": (r"Cast \(ANSI\)", lambda spark, F, t: t.where(F.col("ward") == 5)),
    "classic far dates": ("Cast", lambda spark, F, t: t.withColumn("day", F.expr("try_cast(day AS TIMESTAMP)"))),
    "classic sums": ("Add", lambda spark, F, t: t.withColumn("user", F.col("user") + 1)),
    "classic parsing": ("Cast|GetTimestamp", lambda spark, F, t: t.withColumn("day", F.to_date("ward"))),
    "classic items": ("GetArrayItem", lambda spark, F, t: t.withColumn("x", F.split("ward", "a")[5])),
    "classic division": ("Divide", lambda spark, F, t: t.withColumn("x", F.col("age") / F.col("kids"))),
    "classic growing text": ("Concat", lambda spark, F, t: t.withColumn("ward", F.concat("ward", "ward"))),
    "classic nested far dates": ("Cast", lambda spark, F, t: t.select(
        F.struct("day").cast("struct<day: timestamp>").alias("s"))),
    "classic constants in when": (r"Cast \(ANSI\)", lambda spark, F, t: t.select(
        F.when(F.col("user") > 5, F.lit("4711").cast("int")).otherwise(F.lit(1)))),
    "classic constants in if": ("Divide", lambda spark, F, t: t.selectExpr("if(user > 5, try_cast(1/0 AS INT), 1)")),
    "classic constants in coalesce": ("Cast|Divide", lambda spark, F, t: t.selectExpr("coalesce(user, div(1, 0))")),
    "classic constants in case": ("Divide", lambda spark, F, t: t.filter(
        "CASE WHEN user > 5 THEN isnull(1/0) ELSE true END")),
    "classic constants in or": ("Divide", lambda spark, F, t: t.filter("user <= 5 OR isnan(1/0)")),
    "classic moments": ("CurrentTimestamp|Now", lambda spark, F, t: t.withColumn("x", F.current_timestamp())),
    "classic RDDs": ("an RDD", lambda spark, F, t: spark.createDataFrame(
        spark.sparkContext.parallelize([1, 2, 0]).map(lambda row: (10 // row,)), "user int")),
    "classic rows of Python": ("an RDD", lambda spark, F, t: spark.createDataFrame([(1,), (2,)], "user int")),
    "classic lazy checkpoints": ("an RDD", lambda spark, F, t: t.limit(3).localCheckpoint(eager=False)),
    "classic self-joins": ("itself", lambda spark, F, t: t.join(t.select("ward").alias("other"), "ward")),
    "classic self-joins of checkpoints": ("rows, of which it cannot be told", lambda spark, F, t: (
        lambda kept: kept.join(kept.select("ward"), "ward", "left_anti"))(t.localCheckpoint())),
    "classic hidden columns": ("hidden column _metadata", lambda spark, F, t: t.select("user", "_metadata.file_size")),
    "connect hidden columns in a star": ("begins with _", lambda spark, F, t: t.select("user", "_metadata.*")),
    "connect hidden columns in a star of a name": ("begins with _", lambda spark, F, t: (
        t.alias("s").select("user", "s._metadata.*"))),
    "connect hidden columns in quotes": ("begins with _", lambda spark, F, t: t.select("user", "`_metadata`.*")),
    "connect hidden columns asked for as such": ("begins with _", lambda spark, F, t: t.select(
        "user", t.metadataColumn("_metadata"))),
    "classic places of rows": ("places of rows", lambda spark, F, t: spark.read.schema(
        "user INT, _tmp_metadata_row_index BIGINT").parquet(t.inputFiles()[0]).select("user")),
    "classic places of rows within": ("places of rows", lambda spark, F, t: spark.read.schema(
        "user INT, s STRUCT<a: ARRAY<STRUCT<_TMP_metadata_row_index: BIGINT>>>").parquet(t.inputFiles()[0])),
    "connect places of rows": ("places of rows", lambda spark, F, t: spark.read.schema(
        "user INT, _tmp_metadata_row_index BIGINT").parquet(t.inputFiles()[0]).toDF("user", "place")),
    "connect hidden columns": ("begins with _", lambda spark, F, t: t.select("user", "_metadata.file_size")),
    "classic errors": ("RaiseError", lambda spark, F, t: t.where(F.raise_error(F.lit("4711")).isNull())),
    "classic Python": ("PythonUDF", lambda spark, F, t: t.withColumn("x", F.udf(lambda text: text)("ward"))),
    "classic limits": ("GlobalLimit", lambda spark, F, t: t.limit(5)),
    "classic samples": ("Sample", lambda spark, F, t: t.sample(0.5, seed=1)),
    "classic chance": ("Rand", lambda spark, F, t: t.where(F.rand(1) < 0.5)),
    "classic windows": ("Window", lambda spark, F, t: t.select("*", F.expr("count(*) OVER (PARTITION BY ward) AS n"))),
    "classic groups": ("Aggregate", lambda spark, F, t: t.groupBy("user").count()),
    "classic subqueries": ("ScalarSubquery", lambda spark, F, t: spark.sql(
        "SELECT * FROM visited WHERE user = (SELECT 1 / max(user) FROM visited)")),
    "classic text": ("CSVFileFormat", lambda spark, F, t: spark.read.schema("a INT").csv(t.inputFiles()[0])),
    "classic streams": ("StreamingRelation", lambda spark, F, t: spark.readStream.format("rate").load()),
    "classic broken files": ("ignorecorruptfiles = true", lambda spark, F, t: spark.read.option(
        "ignoreCorruptFiles", True).parquet(t.inputFiles()[0])),
    "classic broken files of a table in use": ("ignorecorruptfiles = true", lambda spark, F, t: (
        spark.table("visited"), spark.read.option("ignoreCorruptFiles", True).table("visited"))[1]),
    "connect conditions": ("filter", lambda spark, F, t: t.where(F.col("user") == 1)),
    "connect functions": ("got one with [+]", lambda spark, F, t: t.select((F.col("user") + 1).alias("user"))),
    "connect SQL": ("got one with sql", lambda spark, F, t: spark.sql("SELECT * FROM visited")),
    "connect views": ("a view", lambda spark, F, t: t.createOrReplaceTempView("remote_view")
                      or spark.table("remote_view")),
    "connect stored views": ("a view", lambda spark, F, t: spark.table("stored_view")),
    "connect text": ("json", lambda spark, F, t: spark.read.schema("a INT").json(t.inputFiles()[0])),
    "connect broken files of tables": ("ignorecorruptfiles = true", lambda spark, F, t: spark.table("broken")),
    "connect broken files of a reader of tables": ("ignorecorruptfiles = true", lambda spark, F, t: spark.read.option(
        "IGNORECorruptFiles", "true").table("visited")),
    "connect early dates": ("datetimerebasemode = Exception", lambda spark, F, t: spark.read.option(
        "datetimeRebaseMode", "Exception").table("visited")),
    "connect broken files": ("ignorecorruptfiles = True", lambda spark, F, t: spark.read.option(
        "ignoreCorruptFiles", "True").parquet(t.inputFiles()[0])),
}  # fmt: skip


@pytest.fixture(scope="module")
def frames(sessions: dict[str, Any], visits: str) -> dict[str, tuple[Any, Any, Any]]:
    from pyspark.sql import functions
    from pyspark.sql.connect import functions as remote_functions

    sessions["classic"].read.parquet(visits).write.saveAsTable("visited")
    sessions["classic"].sql("CREATE VIEW stored_view AS SELECT user FROM visited")
    sessions["classic"].sql(
        f"CREATE TABLE broken USING parquet OPTIONS (a 'b', ignoreCorruptFiles 'true') LOCATION '{visits}'"
    )
    tools = {"classic": functions, "connect": remote_functions}
    return {mode: (session, tools[mode], session.read.parquet(visits)) for mode, session in sessions.items()}


@on_spark
def test_plans_that_no_row_can_make_fail_are_admitted(frames: dict[str, tuple[Any, Any, Any]]) -> None:
    for name, make in ADMITTED.items():
        source = Source.open(make(*frames[name.split()[0]]))
        assert "user" in source.schema, name


@on_spark
@pytest.mark.parametrize("name", REFUSED)
def test_plans_that_a_row_could_make_fail_are_refused_by_name(
    name: str, frames: dict[str, tuple[Any, Any, Any]]
) -> None:
    word, make = REFUSED[name]
    with pytest.raises(ParameterTypeError, match=word) as refused:
        Source.open(make(*frames[name.split()[0]]))
    assert "4711" not in str(refused.value)


@on_spark
def test_a_table_that_is_opened_in_two_ways_is_the_same_table(classic: Any, tmp_path: Path) -> None:
    table = pa.table({"user": [1, 2], "x": [5, 5]})
    for name in ("t", "t2"):  # one name is the beginning of the other
        (tmp_path / name).mkdir()
        pa.parquet.write_table(table, tmp_path / name / "a file.parquet")
    (tmp_path / "link").symlink_to(tmp_path / "t")
    path, read = str(tmp_path / "t"), classic.read
    classic.sql(f"CREATE TABLE first_name USING parquet LOCATION '{path}'")
    classic.sql(f"CREATE TABLE second_name USING parquet LOCATION '{path}'")
    classic.sql("CREATE TABLE scattered (user INT, x BIGINT, part INT) USING parquet PARTITIONED BY (part)")
    classic.sql(f"ALTER TABLE scattered ADD PARTITION (part = 1) LOCATION '{path}'")
    ways = [
        read.parquet(path), read.parquet(f"file://{path}/../t/"), read.parquet(f"{path}/a file.parquet"),
        read.parquet(str(tmp_path / "link")), read.schema("x BIGINT, user BIGINT").parquet(path),
        read.option("mergeSchema", True).parquet(path), read.parquet(path).cache(),
        read.parquet(path, str(tmp_path / "t2")), read.option("recursiveFileLookup", True).parquet(str(tmp_path)),
        classic.session.table("first_name"), classic.session.table("second_name"),
        classic.session.table("scattered"), classic.sql(f"SELECT * FROM parquet.`{path}`"),
    ]  # fmt: skip
    rows = [
        read.parquet(path).localCheckpoint(), classic.session.createDataFrame(table),
        classic.sql("VALUES (1, 5L) AS t(user, x)"),
    ]  # fmt: skip
    classic.change("spark.sql.sources.useV1SourceList", "")
    ways.append(read.parquet(path))
    for word, found in (("itself", ways), ("rows, of which it cannot be told", rows)):
        for one in (ways[0], ways[9], ways[-1]):
            for other in (way.select("x") for way in found):
                for joined in (one.join(other, "x", "left_anti"), other.join(one, "x", "left")):
                    with pytest.raises(ParameterTypeError, match=f"join (of|with).*{word}.*Join first"):
                        Source.open(joined)
    others = read.parquet(str(tmp_path / "t2")).select("x")
    for one in (ways[0], ways[9], ways[-1]):
        assert "x" in Source.open(one.join(others, "x").crossJoin(classic.session.range(2))).schema
        assert "x" in Source.open(one.join(one.select("x"), "x").localCheckpoint()).schema


class Leaf(SimpleNamespace):
    """A scan in an analysed plan, by the name of its class and what it answers."""

    def __init__(self, name: str, **answers: Any) -> None:
        super().__init__(**{key: (lambda value=value: value) for key, value in answers.items()})
        self.getClass = lambda: SimpleNamespace(getSimpleName=lambda: name)


def test_places_that_are_told_or_not(tmp_path: Path) -> None:
    never = SimpleNamespace(isInstanceOf=lambda name, thing: False)
    java = SimpleNamespace(py4j=SimpleNamespace(reflection=SimpleNamespace(TypeUtil=never)))

    def hive(place: str | None, **more: Any) -> Leaf:
        option = Leaf("Option", isDefined=place is not None, get=place)
        table = Leaf("CatalogTable", storage=Leaf("Storage", locationUri=option))
        return Leaf("HiveTableRelation", tableMeta=table, **more)

    def iceberg(**properties: str) -> Leaf:
        return Leaf("DataSourceV2Relation", table=Leaf("SparkTable", properties=properties))

    place = "s3a://bucket/a%20b/t/"
    for leaf in (hive(place, isPartitioned=False), iceberg(location=place)):
        assert _places(java, leaf, "") == {"/a b/t"}
    files = Leaf("LogicalRelation", relation=Leaf("Other"))
    for leaf in (hive(place, isPartitioned=True), hive(None, isPartitioned=False), iceberg(), files):
        with pytest.raises(ParameterTypeError, match=f"join with {leaf.getClass().getSimpleName()}, of which .* Join"):
            _places(java, leaf, "Join first.")
    assert _path(f"file://{tmp_path}/x/..//y") == str(tmp_path.resolve() / "y")
    assert list(_above(_path("hdfs://name/a/b"))) == ["/a/b", "/a", "/"]
    assert _path("s3://bucket") == "/"


@on_spark
def test_a_name_that_becomes_a_view_is_refused_before_paying(sessions: dict[str, Any]) -> None:
    session = sessions["connect"]
    session.range(3).withColumnRenamed("id", "user").write.saveAsTable("shadowed")
    data = opened(session.table("shadowed"), unit="user", budget=ib.Budget(epsilon=1))
    session.range(2).limit(1).withColumnRenamed("id", "user").createOrReplaceTempView("shadowed")
    try:
        with pytest.raises(ParameterTypeError, match="a view"):
            data.count_units(epsilon=0.5)
    finally:
        session.catalog.dropTempView("shadowed")
    assert not any(data.spent().values())
    assert data.count_units(epsilon=0.5)


@on_spark
def test_settings_with_which_one_value_decides_about_others_are_refused_before_paying(
    classic: Any, visits: str
) -> None:
    source = Source.open(classic.read.parquet(visits))
    for name, value in (
        ("spark.sql.files.ignoreCorruptFiles", "TRUE"),
        ("spark.sql.parquet.datetimeRebaseModeInRead", "EXCEPTION"),
        ("spark.sql.legacy.parquet.datetimeRebaseModeInRead", "EXCEPTION"),
        ("spark.sql.parquet.int96RebaseModeInRead", "EXCEPTION"),
    ):
        before = classic.session.conf.get(name, None)
        classic.change(name, value)
        with pytest.raises(InboundsError, match=name):
            source.engine.ready()
        classic.session.conf.unset(name) if before is None else classic.change(name, before)
    source.engine.ready()


# ---------------------------------------------------------------- looking, and being ready


@on_spark
def test_parts_of_dates_are_answered_over_connect(sessions: dict[str, Any]) -> None:
    """Its messages may not be nested much deeper than what becomes of a day."""
    days = [dt.datetime(2024, 5, 1 + i) for i in range(3)]
    frame = sessions["connect"].createDataFrame(pa.table({"u": [1, 2, 3], "t": days}))
    data = ib.dataset(frame, unit="u", budget=ib.Budget(epsilon=1e5), max_rows=1)
    for part, value in (("year", 2024), ("month", 5), ("day", 2), ("weekday", 4)):
        made = getattr(col("t"), part)()
        here = data.where(((made * 2 - made) >= value) & (made < value + 1))
        (counts,) = here.histogram(made, [0, value, 1e4], epsilon=400).columns.values()
        assert [answer.value for answer in counts] == [0, 3 if part in ("year", "month") else 1]


def test_looking_runs_no_job(classic: Any, visits: str) -> None:
    tables = [
        classic.read.parquet(visits).select("user", "ward", "age"),
        classic.sql("VALUES (4711L, 'a', 1.0D) AS t(user, ward, age)"),
        classic.sql("VALUES (4712L, 'a', 3.0D) AS t(user, ward, age)"),
    ]
    tracker = classic.session.sparkContext.statusTracker()
    before, shown = set(tracker.getJobIdsForGroup(None)), []
    for table in tables:
        data = opened(table)
        plan = (
            data.where(col("age") > 2)
            .group_by("ward", keys=["a"], max_groups=1)
            .plan.mean("age", bounds=AGES, epsilon=1)
        )
        shown.append(plan.explain(sql=True))
        data.source.ready()
        plan._request.rehearse(data.source)
    assert shown[0] == shown[1] == shown[2]
    assert "SELECT" in shown[0]
    assert set(tracker.getJobIdsForGroup(None)) == before
    assert not hasattr(data.source.engine, "text")  # Spark's own words show what it found while it planned


@on_spark
def test_what_fails_without_data_fails_before_paying(sessions: dict[str, Any]) -> None:
    engine = Spark(sessions["connect"].newSession().range(1))
    engine._session.client.close()
    with pytest.raises(Exception, match="NO_ACTIVE_SESSION"):
        engine.ready()
    engine = Spark(sessions["classic"].range(1))
    engine._session = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=None))
    with pytest.raises(ParameterError, match="has been stopped"):
        engine.ready()
    with pytest.raises(ParameterError, match=r"tell apart; got \['a', 'a'\]"):
        Source.open(sessions["classic"].range(1).toDF("a").selectExpr("a", "a"))


def test_versions() -> None:
    assert admit("pyspark", "4.0.1") is admit("pyspark", "4.3.0-preview1") is None
    assert "newer than 4.3" in str(admit("pyspark", "5.0.0"))
    with pytest.raises(ParameterError, match=r"version 4\.0 or later"):
        admit("pyspark", "3.5.6")

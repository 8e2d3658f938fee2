"""Tables of which a single value, or a single file, is odd: they open, are asked and answered like all others."""

from __future__ import annotations

import copy
import datetime as dt
import functools
import operator
import pickle
import random
import uuid
import zoneinfo
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import dateutil.tz
import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import inbounds as ib
from inbounds import ask, col
from inbounds.errors import InboundsError, LedgerUnavailable, MissingColumn, ParameterError, ParameterTypeError
from inbounds.tables import Answer, Dataset, Kind, Request, Results, Rows, Source, Units
from inbounds.tables.expressions import _DEEPEST, _MOST_PIECES, Expression
from inbounds.tables.readers import frames
from tests.query_support import opened

EARLY, LATE = dt.datetime(1960, 1, 1), dt.datetime(1980, 1, 1)
FAR = 2**62
HUNDRED = list(range(100))


def asked(table: Any, **options: Any) -> Dataset:
    return opened(table, **{"unit": "u", "max_rows": 1, "max_groups": 1} | options)


# ---------------------------------------------------------------- times that are too far away


def times(unit: str, zone: str | None = None, far: int = FAR) -> pa.Table:
    return pa.table({"u": HUNDRED, "x": pa.array([0] * 98 + [far, None], pa.timestamp(unit, zone))})


def parquet(table: pa.Table, path: Path) -> Path:
    pq.write_table(table, path)
    return path


TABLES: dict[str, Callable[[Path], Any]] = {
    **{f"Arrow, {unit}": lambda _, unit=unit: times(unit) for unit in ("s", "ms", "us", "ns")},
    **{f"Arrow, {unit} with a zone": lambda _, unit=unit: times(unit, "UTC", -FAR) for unit in ("s", "ms", "us", "ns")},
    **{f"Parquet, {unit}": lambda p, unit=unit: parquet(times(unit), p / "t.parquet") for unit in ("ms", "us", "ns")},
    **{
        f"Parquet, {unit} with a zone": lambda p, unit=unit: parquet(times(unit, "UTC"), p / "t.parquet")
        for unit in ("ms", "us", "ns")
    },
    "Parquet, several": lambda p: [parquet(times("ms").slice(i, 50), p / f"{i}.parquet") for i in (0, 50)],
    "a batch": lambda _: times("ms").to_batches()[0],
    "a dataset in memory": lambda _: pa.dataset.dataset(times("ms")),
    "a dataset of files": lambda p: pa.dataset.dataset(parquet(times("ms", "UTC"), p / "t.parquet")),
    "pandas": lambda _: pd.DataFrame({"u": HUNDRED, "x": np.array([0] * 99 + [2**52], "datetime64[s]")}),
    "pandas with a zone": lambda _: pd.DataFrame({"u": HUNDRED, "x": pd.Series([0] * 100).astype("M8[ns, UTC]")}),
    "Polars": lambda _: pl.from_arrow(times("ms")),
    "Polars, later": lambda _: pl.from_arrow(times("ms", "UTC")).lazy(),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_time_that_is_too_far_away_is_no_error(name: str, tmp_path: Path) -> None:
    data = asked(TABLES[name](tmp_path))
    zone = dt.UTC if data.schema["x"] is Kind.INSTANT else None
    bounds = (EARLY.replace(tzinfo=zone), LATE.replace(tzinfo=zone))
    start = dt.datetime(1970, 1, 1, tzinfo=zone)
    assert abs(data.mean("x", bounds=bounds, epsilon=400).value - start) < dt.timedelta(days=50)
    assert data.where(col("x") == start).count(epsilon=400).value in (98, 99, 100)
    by_year = data.group_by(col("x").year(), keys=[1970, 1]).count_units(epsilon=400)
    assert [answer.value for answer in by_year["units"]][1] == 0
    assert data.count_units(epsilon=400).value == 100  # without the column
    assert asked(TABLES[name](tmp_path), unit="x").count_units(epsilon=400).value in (1, 2)
    assert data.plan.mean("x", bounds=bounds, epsilon=1).explain(sql=True)


def test_times_in_milliseconds_are_exact_at_the_ends_of_the_calendar(tmp_path: Path) -> None:
    ends = [dt.datetime(1, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999000), dt.datetime(9999, 12, 31, 23, 59, 59)]
    beyond = pa.array([2**63 - 1, -(2**63), 253_402_300_800_000, -62_135_596_800_001], pa.int64())
    column = pa.chunked_array([pa.array(ends, pa.timestamp("ms")), beyond.view(pa.timestamp("ms"))])
    table = pa.table({"u": range(7), "x": column})
    for source in (table, parquet(table, tmp_path / "t.parquet")):
        data = asked(source)
        for end in ends:
            assert data.where(col("x") == end).count(epsilon=400).value == 1
        assert data.where(col("x").is_null()).count(epsilon=400).value == 4


# ---------------------------------------------------------------- several Parquet files


def files(folder: Path, *tables: dict[str, Any]) -> list[Path]:
    return [parquet(pa.table(table), folder / f"{i}.parquet") for i, table in enumerate(tables)]


def test_files_whose_columns_go_together_are_read_as_one(tmp_path: Path) -> None:
    narrow = {"u": pa.array([1, 2], pa.int32()), "x": pa.array([1, 2], pa.int8()), "y": pa.array([1.0, 2.0])}
    wide = {"u": [2**40, 3], "x": [2**62, 4], "y": pa.array([1, 2**40])}
    fewer = {"x": pa.array([7], pa.uint32()), "u": [9]}
    for order in ((narrow, wide, fewer), (fewer, wide, narrow), (wide, narrow, fewer)):
        data = asked(files(tmp_path, *order))
        assert data.source.schema == {"u": Kind.INTEGER, "x": Kind.INTEGER, "y": Kind.REAL}
        assert data.count(epsilon=400).value == 5
        assert data.where(col("u") == 2**40).count(epsilon=400).value == 1
        assert [data.where(col("x") == x).count(epsilon=400).value for x in (1, 2, 2**62, 4, 7)] == [1] * 5
        assert data.where(col("y").is_null()).count(epsilon=400).value == 1  # missing in a file


@pytest.mark.parametrize(
    "other",
    [
        pa.array(["text"]),
        pa.array([True]),
        pa.array([dt.date.max]),
        pa.array([FAR], pa.timestamp("us")),
        pa.array([1], pa.decimal128(38, 0)),
        pa.array([1.5], pa.float32()),
        pa.array([2**63], pa.uint64()),
    ],
)
def test_files_that_could_fail_on_a_value_are_refused_when_they_are_opened(other: Any, tmp_path: Path) -> None:
    for tables in (({"u": [1], "x": [1]}, {"u": [1], "x": other}), ({"u": [1], "x": other}, {"u": [1], "x": [1]})):
        with pytest.raises(ParameterError, match=r"types that go together; got \{'x'"):
            asked(files(tmp_path, *tables))
    units = pa.array([0], pa.timestamp("ms")), pa.array([0], pa.timestamp("us"))
    with pytest.raises(ParameterError, match=r"types that go together; got \{'x'"):
        asked(files(tmp_path, *({"u": [1], "x": unit} for unit in units)))


# ---------------------------------------------------------------- frames


def as_everything(frame: pd.DataFrame, path: Path) -> list[Any]:
    table = pa.Table.from_pandas(frame)
    return [
        frame,
        table,
        pl.from_arrow(table),
        pl.from_arrow(table).lazy(),
        pa.dataset.dataset(table),
        parquet(table, path),
    ]


def test_names_are_told_apart_as_they_are_written(tmp_path: Path) -> None:
    frame = pd.DataFrame([[1, 2, 3, 4]] * 5, columns=["User", "user", "*", 'c0"; --'])
    for source in as_everything(frame, tmp_path / "t.parquet"):
        for number, name in enumerate(frame.columns):
            data = ib.dataset(source, unit=None, budget=ib.Budget(epsilon=1e4))
            assert data.where(col(name) == number + 1).count(epsilon=400).value == 5


def test_names_with_the_character_0_are_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame([[1, 2]], columns=["x\0y", "user"])
    for source in as_everything(frame, tmp_path / "t.parquet"):
        with pytest.raises(ParameterError, match="Rename columns"):
            Source.open(source)


class Asking(type):
    """A type of types that tells when it is asked for anything."""

    asked: list[str]

    def __getattribute__(cls, name: str) -> Any:
        raise SystemExit(f"asked for {name}")

    __hash__ = __eq__ = __instancecheck__ = __subclasscheck__ = lambda *_: (_ for _ in ()).throw(SystemExit("asked"))  # type: ignore[assignment]


def strangers() -> list[Any]:
    """Objects of types that end the process when they are asked, and a time with a zone of such a type."""
    plain, zone = Asking("Plain", (), {}), Asking("Zone", (dt.tzinfo,), {"utcoffset": lambda *_: dt.timedelta(0)})
    return [type.__call__(plain), dt.datetime(2024, 1, 1).replace(tzinfo=type.__call__(zone))]


@pytest.mark.parametrize("declared", ["text", "integer", "wide", "number", "boolean", "date", "time"])
def test_no_code_of_a_strangers_type_runs(declared: str) -> None:
    for stranger in strangers():
        column = np.empty(2, dtype=object)
        column[0], column[1] = stranger, None
        frame = pd.DataFrame({"u": [1, 2]})
        frame["v"] = pd.Series(column, dtype=object)
        found = Request({"n": Rows()}, unit="u", rows=1, where=col("v").is_null())
        assert found.run(Source.open(frame, types={"v": declared}), salt=b"s")["n"][0] == (2,)


def test_zones_whose_code_is_known_have_times() -> None:
    winter = dt.datetime(2024, 1, 1, 12)
    zones = [dt.UTC, dt.timezone(dt.timedelta(hours=1)), zoneinfo.ZoneInfo("Europe/Paris")]
    zones += [dateutil.tz.tzutc(), dateutil.tz.tzoffset(None, 3600), dateutil.tz.gettz("Europe/Paris")]
    for zone, hour in zip(zones, [12, 11, 11, 12, 11, 11], strict=True):
        for time in winter.replace(tzinfo=zone), pd.Timestamp(winter).tz_localize(zone):
            frame = pd.DataFrame({"u": [1], "t": pd.Series([time], dtype=object)})
            request = Request({"n": Rows()}, unit="u", rows=1, where=col("t") == winter.replace(hour=hour))
            assert request.run(Source.open(frame, types={"t": "time"}), salt=b"s")["n"][0] == (1,)


#: Python objects, what the column is declared to hold, and how many rows then have a value.
ODD: dict[str, tuple[list[Any], str | None, Kind, int]] = {
    "a number among texts": (["a", "b", 7], None, Kind.TEXT, 2),
    "a text that is none": (["a", "b", "\ud800"], None, Kind.TEXT, 2),
    "things": ([object(), "a", None], None, Kind.TEXT, 1),
    "a text among numbers": ([1, "2", "x", 2.5, True, None, Decimal(3), np.int8(4)], "integer", Kind.INTEGER, 4),
    "a whole number beyond all": ([1, 2, 2**70], "integer", Kind.INTEGER, 2),
    "a number beyond all digits": ([1.5, float("nan"), 10**5000, Decimal("NaN"), "inf"], "number", Kind.REAL, 3),
    "a time among dates": ([dt.date(2024, 1, 1), dt.datetime(2024, 1, 2, 3), "2024-01-03", 4], "date", Kind.DATE, 2),
    "a date among times": ([dt.date(2024, 1, 1), pd.Timestamp(5), pd.NaT, "no"], "time", Kind.DATETIME, 2),
    "a number among truths": ([True, np.bool_(False), 1, "no", "maybe"], "boolean", Kind.BOOLEAN, 3),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_object_concerns_its_own_row_only(name: str) -> None:
    values, declared, kind, count = ODD[name]
    types = None if declared is None else {"odd": declared}
    for some in (values, values[::-1], [*values, object()]):
        frame = pd.DataFrame({"odd": pd.Series(some, dtype=object), "u": range(len(some))})
        data = asked(frame, types=types)
        assert list(data.schema.values()) == [kind, Kind.INTEGER]
        assert data.count(epsilon=400).value == len(some)
        assert data.where(~col("odd").is_null()).count(epsilon=400).value == count
        note = "columns of Python objects hold what types says" if types else "'odd' hold text, since types does not"
        assert note in data.count(epsilon=1).notes[-1]
        assert note in data.plan.count(epsilon=1).explain()


def test_an_odd_column_stands_beside_others() -> None:
    half = pa.table({"odd": np.ones(3, np.float16), "u": [1, 2, 3]})
    whole = pl.DataFrame({"odd": pl.Series([1, 2, 2**80], dtype=pl.Int128), "u": [1, 2, 3]})
    lists = pl.DataFrame({"odd": [[1], [2], None], "u": [1, 2, 3]})
    things = pl.DataFrame({"odd": pl.Series([object()] * 3, dtype=pl.Object), "u": [1, 2, 3]})
    complex_ = pd.DataFrame({"odd": np.array([1j, 2j, 3j]), "u": [1, 2, 3]})
    for tables, kind in (
        ((half, pa.dataset.dataset(half)), Kind.REAL),
        ((whole, whole.lazy()), Kind.WIDE),
        ((lists, lists.lazy(), lists.to_arrow(), things, complex_), Kind.OTHER),
    ):
        for table in tables:
            data = asked(table)
            assert data.schema["odd"] is kind
            assert data.count(epsilon=400).value == 3
            if kind is Kind.WIDE:
                assert data.where(col("odd") == 2**80).count(epsilon=400).value == 1
            if kind is Kind.OTHER:
                with pytest.raises(ParameterTypeError, match="not supported"):
                    data.mean("odd", bounds=(0, 1), epsilon=1)
    only = Source.open(lists.select("odd"))
    assert Request({"n": Rows()}, unit=None).run(only)["n"] == ((3,),)


def test_columns_of_nothing_but_nulls_have_answers_about_nobody() -> None:
    in_polars = pl.DataFrame({"u": range(20), "n": [None] * 20, "g": ["a"] * 20})
    for table in (in_polars, in_polars.to_arrow(), ibis.memtable(in_polars)):
        data = asked(table, max_rows=2)
        assert data.schema["n"] is Kind.NULL
        for keys in (["a", "b"], [1, 2], [True], [dt.date.max]):
            groups = data.group_by("n", keys=keys).count_units(epsilon=400)
            assert [answer.value for answer in groups["units"]] == [0] * len(keys)
        pairs = data.group_by("g", "n", keys=[("a", "b")]).mean("u", bounds=(0, 9), epsilon=1)
        assert 0 <= pairs["u"][0].value <= 9
        for unit in ("n", ["u", "n"]):
            nobody = asked(table, unit=unit, budget=ib.Budget(epsilon=1e4, delta=1e-3), max_rows=2)
            assert nobody.count_units(epsilon=400).value == 0
            assert nobody.group_by("g", keys=["a", "b", "c"]).count(epsilon=400)["count"][0].value == 0
            assert len(nobody.group_by("n").count(epsilon=1, delta=1e-6)) == 0
        assert 0 <= data.mean("n", bounds=(0, 1), epsilon=1).value <= 1
        assert data.mean(col("n").fill_null(1) + col("n").fill_null(1), bounds=(0, 4), epsilon=400).value > 1.9
        assert data.where((col("n") == 1) | (col("n") > 0.5) | col("n").is_in([3])).count(epsilon=400).value == 0
        assert data.where(col("n").is_null()).count_units(epsilon=400).value == 20
        assert 0 <= data.median("n", bounds=(0, 9), epsilon=1).value <= 9


def test_sources_that_cannot_be_opened_are_refused_by_argument(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("u,x\n1,2\n")
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (path, {"types": ["x"]}, "types must be a mapping"),
        (path, {"types": {"x": ["a"]}}, "types must be one of"),
        (path, {"temp_directory": 5}, "temp_directory must be a path"),
        (path, {"temp_directory": tmp_path / "nowhere"}, "temp_directory must be a directory"),
        (path, {"temp_directory": path}, "temp_directory must be a directory"),
        (pd.DataFrame(), {}, "different names"),
        (pa.table({}), {}, "different names"),
    ]
    for table, options, words in wrong:
        with pytest.raises((ParameterError, ParameterTypeError), match=words):
            Source.open(table, **options)
    with pytest.raises(MissingColumn, match="'nope'"):
        Source.open(path, types={"nope": "integer"})


def test_nothing_is_read_to_explain_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    batches = frames.Polars.batches

    def counted(self: Any, columns: Any) -> Any:
        for batch in batches(self, columns):  # a reading begins with the first batch
            read.extend(columns)
            yield batch

    monkeypatch.setattr(frames.Polars, "batches", counted)
    data = asked(pl.DataFrame({"u": [1, 2], "x": [1.0, 2.0], "y": [0, 0]}).lazy())
    plan = data.plan.mean("x", bounds=(0, 5), epsilon=1)
    assert "SELECT" in plan.explain(sql=True)
    assert read == []
    plan.run()
    assert set(read) == {"u", "x"}


def test_lazy_frames_that_compute_are_refused_when_they_are_opened() -> None:
    lazy = pl.DataFrame({"u": [1, 2], "x": [1.0, 2.0]}).lazy()
    for computed in (
        lazy.map_batches(lambda frame: frame),
        lazy.filter(pl.col("x") > 1),
        lazy.with_columns(y=1 / pl.col("x")),
        lazy.head(1),
    ):
        with pytest.raises(ParameterError, match="computes nothing") as caught:
            asked(computed)
        assert "collect()" in str(caught.value)


def test_plans_say_why_they_cannot_be_pickled() -> None:
    data = asked(times("us"))
    for thing in (data, data.plan.count(epsilon=1), data.source):
        for make in (pickle.dumps, copy.deepcopy):
            with pytest.raises(InboundsError, match="Open it again"):
                make(thing)


# ---------------------------------------------------------------- conditions that are too large

x = col("x")
SHAPES: dict[str, Callable[[int], Expression]] = {
    "or": lambda n: functools.reduce(operator.or_, [x == i for i in range(n)]),
    "or, from the right": lambda n: functools.reduce(lambda a, i: (x == i) | a, range(n), x == 1),
    "not": lambda n: functools.reduce(lambda a, _: ~a, range(n), x > 0),
    "plus": lambda n: functools.reduce(operator.add, [x] * n) > 0,
    "is": lambda n: functools.reduce(lambda a, _: a == True, range(n), x > 0),  # noqa: E712
}


@pytest.mark.parametrize("shape", SHAPES)
def test_conditions_are_as_deep_as_engines_can_follow(shape: str) -> None:
    data = asked(pd.DataFrame({"u": [1, 2], "x": [1.0, 2.0]}))
    assert data.where(SHAPES[shape](_DEEPEST - 2)).count(epsilon=400).value == 2
    with pytest.raises(ParameterError, match=f"{_DEEPEST} deep"):
        SHAPES[shape](3000)
    assert data.spent() == {"epsilon": pytest.approx(400.0)}


def test_derived_columns_cannot_grow_without_limit() -> None:
    data = asked(pd.DataFrame({"u": [1, 2], "x": [1.0, 2.0]}))
    for _ in range(4):
        data = data.with_columns(x=(x + x).fill_null(0))
    with pytest.raises(ParameterError, match=f"{_MOST_PIECES} pieces"):
        functools.reduce(lambda d, _: d.with_columns(x=(x + x).fill_null(0)), range(40), data)


# ---------------------------------------------------------------- answers


def test_totals_are_exact_and_have_a_limit() -> None:
    data = asked(pa.table({"u": HUNDRED, "g": ["a", "b"] * 50}))
    table = data.group_by("g", keys=["a", "b", "c"]).select(n=ask.count(), m=ask.mean("u", (0, 5)), epsilon=400)
    assert isinstance(table, Results)
    for total in (2**62, 1e30, 2**53 + 2):
        with pytest.raises(ParameterError, match=r"total must be .* 9007199254740992"):
            table.summing_to(total, "n")
    rng = random.Random(1)
    for size in (9, 10**6, 10**18):
        counts = [rng.randrange(size) for _ in range(7)]
        answers = tuple(Answer(n, (0, float("inf")), (), None) for n in counts)
        many = Results(("g",), tuple((i,) for i in range(7)), {"n": answers}, table.event, {})
        for total in (0, 1, 1000, 2**53):
            values = [answer.value for answer in many.summing_to(total)["n"]]
            assert sum(values) == total
            assert min(values) >= 0
            assert sorted(values) == [value for _, value in sorted(zip(counts, values, strict=True))]
    few = data.group_by("g", keys=["a"], suppress_below=10**6).count(epsilon=1)
    day = asked(pa.table({"u": [1], "d": [dt.date(2024, 1, 1)]})).mean(
        "d", bounds=(dt.date(2020, 1, 1), dt.date.max), epsilon=1
    )
    for answer in (few["count"][0], day):
        with pytest.raises(ParameterTypeError, match="a number for float"):
            float(answer)


def test_caps_are_suggested_only_where_there_are_enough_units() -> None:
    rows = pa.table({"u": np.repeat(np.arange(400), 3), "g": np.tile(["a", "b", "b"], 400)})
    assert asked(rows).suggest_caps(epsilon=5)["max_rows"] == 3
    assert dict(asked(rows).group_by("g").suggest_caps(epsilon=10).values) == {"max_rows": 2, "max_groups": 2}
    for few in (asked(rows.slice(0, 12)), asked(rows.slice(0, 12), neighbours="substitute")):
        for view, names in ((few, ["max_rows"]), (few.group_by("g"), ["max_rows", "max_groups"])):
            found = view.suggest_caps(epsilon=5, key=names[-1])
            assert dict(found.values) == dict.fromkeys(names)
            assert "more epsilon" in found.reason
            assert view.suggest_caps(epsilon=5, key=names[-1]).values == found.values
        assert few.spent() == {"epsilon": 10.0}
    assert asked(rows).suggest_caps(epsilon=1e-6)["max_rows"] is None
    assert (
        asked(rows).count_units(epsilon=400).value
        == Request({"n": Units()}, unit="u").run(Source.open(rows))["n"][0][0]
    )


# ---------------------------------------------------------------- columns that files and paths both say


WRITERS: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "Polars": lambda frame, path: frame.write_parquet(path, partition_by="year", mkdir=True),
    "DuckDB": lambda frame, path: duckdb.from_arrow(frame.to_arrow()).query(
        "rows", f"COPY rows TO '{path}' (FORMAT parquet, PARTITION_BY (year), WRITE_PARTITION_COLUMNS)"
    ),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_column_that_paths_say_too_is_that_of_the_files(writer: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({"u": range(100), "year": [2023] * 40 + [2024] * 60, "site": ["a", "b"] * 50})
    folder = tmp_path / "visits"
    WRITERS[writer](frame, folder)
    files = sorted(map(str, folder.glob("*/*.parquet")))
    for source in (str(folder), str(folder / "*" / "*.parquet"), files):
        data = asked(source)
        assert data.schema["year"] == Kind.INTEGER
        assert data.where(col("year") == 2023).count_units(epsilon=400).value == 40
        with pytest.raises(ParameterError, match=r"types must be left out but for parts of paths.*'year'"):
            asked(source, types={"year": "text"})
    # A file that has neither is null there; one that has the column in its path only is not the same column.
    pq.write_table(pa.table({"u": [100]}), folder / "more.parquet")
    assert asked(str(folder)).where(col("year").is_null()).count_units(epsilon=400).value == 1
    (folder / "year=2025").mkdir()
    pq.write_table(pa.table({"u": [101]}), folder / "year=2025" / "a.parquet")
    with pytest.raises(ParameterError, match=r"files that all have the columns which their paths say too.*'year'"):
        asked(str(folder))


def test_a_data_set_of_arrow_whose_folders_say_a_column_of_the_files(tmp_path: Path) -> None:
    for site, visits in ("a", 3), ("b", 5):
        (tmp_path / f"site={site}").mkdir()
        pq.write_table(pa.table({"u": range(visits), "site": [site] * visits}), tmp_path / f"site={site}" / "a.parquet")
    data = asked(pa.dataset.dataset(tmp_path, partitioning="hive"))
    assert data.where(col("site") == "b").count_units(epsilon=400).value == 5


def test_a_data_set_of_tables_is_refused_by_name() -> None:
    table = pa.table({"u": [1]})
    union = pa.dataset.dataset([pa.dataset.dataset(table), pa.dataset.dataset(table)])
    with pytest.raises(ParameterError, match=r"a data set of files, or of one table in memory; .*concat_tables"):
        Source.open(union)


@pytest.mark.parametrize("keys", [[2**64 - 1, 3], [3, 4], None])
def test_groups_of_wide_whole_numbers_are_text_in_frames(keys: list[int] | None) -> None:
    """Whichever groups there are: what a column of an answer is does not depend on who is there."""
    table = pa.table({"u": range(200), "g": pa.array([2**64 - 1, 3] * 100, pa.uint64())})
    groups = asked(table, budget=ib.Budget(epsilon=1e6, delta=0.1)).group_by("g", keys=keys)
    found = groups.count_units(epsilon=400, **({} if keys else {"delta": 1e-6}))
    assert isinstance(found, Results)
    frame, arrow = found.to_polars(), found.to_arrow()
    assert frame.schema["g"] == pl.String
    assert arrow.schema.field("g").type == pa.string()
    assert sorted(frame["g"]) == sorted(arrow["g"].to_pylist()) == sorted(map(str, keys or [2**64 - 1, 3]))
    given = asked(pa.table({"u": range(200), "g": [3] * 200})).group_by("g", keys=[3, 2**70])
    assert given.count_units(epsilon=400).to_arrow()["g"].to_pylist() == ["3", str(2**70)]


def test_columns_of_parquet_are_found_beside_nested_ones_and_names_with_dots(tmp_path: Path) -> None:
    nested = [{"b": "no", "c": [1, 2]}] * 3000
    table = pa.table(
        {
            "a": nested,
            "a.b": [f"{i % 7}" for i in range(3000)],
            "list": [[{"x": "no", "y": 1}]] * 3000,
            "kind": pa.array([f"{i % 5}" for i in range(3000)]).dictionary_encode(),
            "map": pa.array([[("k", "v")]] * 3000, pa.map_(pa.string(), pa.string())),
            "id": pa.array([bytes(16)] * 3000, pa.uuid()),
            "b": [f"{i % 3}" for i in range(3000)],
            "u": range(3000),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1500)
    reader = Source.open(str(tmp_path / "a.parquet")).engine._reader  # type: ignore[attr-defined]
    for names in (["b", "a.b", "u"], ["u", "kind", "b"], ["a.b"], ["kind", "a.b", "b"]):
        batches = list(reader.batches(names))
        assert max(batch.num_rows for batch in batches) <= 1024
        for i, name in enumerate(names):
            assert [v for batch in batches for v in batch.column(i).to_pylist()] == table[name].to_pylist()
    data = asked(str(tmp_path / "a.parquet"))
    assert data.where((col("a.b") == "3") & (col("u") >= 1500)).count_units(epsilon=400).value == sum(
        i % 7 == 3 for i in range(1500, 3000)
    )
    assert data.where((col("b") == "1") & (col("kind") == "4")).count_units(epsilon=400).value == 200


def test_text_of_files_that_store_it_in_several_ways(tmp_path: Path) -> None:
    texts = pa.array(["a", "b", None, "a"])
    kinds = [texts, texts.dictionary_encode(), texts.cast(pa.large_string()), texts.cast(pa.string_view())]
    for i, column in enumerate(kinds):
        pq.write_table(pa.table({"u": range(4 * i, 4 * i + 4), "t": column}), tmp_path / f"{i}.parquet")
    data = asked(str(tmp_path))
    assert data.where(col("t") == "a").count_units(epsilon=400).value == 8
    assert data.where(col("t").is_null()).count_units(epsilon=400).value == 4


# ---------------------------------------------------------------- what people have every day


def test_a_folder_of_parquet_is_its_files_but_for_those_of_its_writer(tmp_path: Path) -> None:
    folder = tmp_path / "visits.parquet"
    for place, rows in (("y=1", 2), ("y=2", 3), ("_temporary/0", 50), ("y=1/.hidden", 50)):
        (folder / place).mkdir(parents=True)
        pq.write_table(pa.table({"u": range(rows)}), folder / place / "part-0.parquet")
    (folder / "_SUCCESS").touch()
    data = asked(folder, unit=None)
    assert data.count(epsilon=400).value == 5
    assert data.where(col("y") == "2").count(epsilon=400).value == 3
    (tmp_path / "texts").mkdir()
    with pytest.raises(ParameterError, match=r"only if it has files of Parquet.*\*\.csv"):
        asked(tmp_path / "texts")


def test_no_row_of_a_folder_counts_twice(tmp_path: Path) -> None:
    folder = tmp_path / "visits"
    folder.mkdir()
    pq.write_table(pa.table({"u": [1, 2, 3]}), folder / "a.pq")
    (folder / "loop").symlink_to(folder)
    (folder / "_p=1").mkdir()
    pq.write_table(pa.table({"u": [4]}), folder / "_p=1" / "b.parquet")
    assert asked(folder, unit=None, max_rows=None, max_groups=None).count(epsilon=400).value == 4
    (folder / "latest.parquet").symlink_to(folder / "a.pq")
    for table in (folder, [folder / "a.pq", folder / "latest.parquet"], [folder / "a.pq"] * 2):
        with pytest.raises(ParameterError, match="different files"):
            asked(table)


@pytest.mark.parametrize("log", ["_delta_log", ".hoodie", "metadata"])
def test_a_folder_whose_log_says_which_files_count_is_refused(log: str, tmp_path: Path) -> None:
    (tmp_path / log).mkdir()
    (tmp_path / log / "v1.metadata.json").touch()
    pq.write_table(pa.table({"u": [1]}), tmp_path / "a.parquet")
    with pytest.raises(ParameterError, match="says which of them count"):
        asked(tmp_path)


@pytest.mark.parametrize("declared", [None, "text", "boolean", "integer", "date", "time"])
def test_a_uuid_without_a_number_is_missing(declared: str | None) -> None:
    odd = uuid.UUID(int=5)
    object.__setattr__(odd, "int", "5")
    objects = pd.Series([object.__new__(uuid.UUID), odd, "x"], dtype=object)
    data = asked(pd.DataFrame({"u": [1, 2, 3], "x": objects}), types={"x": declared} if declared else None)
    assert data.where(col("x").is_null()).count(epsilon=400).value in (2, 3)


def test_uuids_are_ids_however_they_are_stored(tmp_path: Path) -> None:
    ids = [uuid.UUID(int=2**127 + i // 2) for i in range(6)]
    path = tmp_path / "t.parquet"
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (u UUID, x BIGINT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(str(u), i) for i, u in enumerate(ids)])
        connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")
    objects = pd.DataFrame({"u": pd.Series(ids, dtype=object), "x": range(6)})
    texts = pa.table({"u": list(map(str, ids)), "x": range(6)})
    sources = [objects, texts, pa.table({"u": pa.array([u.bytes for u in ids], pa.uuid()), "x": range(6)})]
    if hasattr(pa.dataset.ParquetFragmentScanOptions, "arrow_extensions_enabled"):
        sources.append(path)
    for source in sources:
        assert asked(source).count_units(epsilon=400).value == 3
        assert asked(source, unit="x").where(col("u") == str(ids[0])).count(epsilon=400).value == 2


def test_no_ledger_is_made_where_no_budget_is_given(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="none was to be made"):
        ib.dataset(pa.table({"u": [1]}), unit="u", ledger=tmp_path / "budgte.db")
    assert list(tmp_path.iterdir()) == []

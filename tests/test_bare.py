"""What a reader may leave out: never a row that meets the condition, and on files what can be seen from their ends."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inbounds import col
from inbounds.tables import Expression, Request, Rows, Source, Units
from inbounds.tables.bare import Bare, necessary
from inbounds.tables.kinds import Kind, plain
from inbounds.tables.readers.parquet import Parquet

SCHEMA = {"u": Kind.INTEGER, "n": Kind.INTEGER, "d": Kind.DATE, "x": Kind.REAL, "t": Kind.TEXT}
DAYS = [dt.date(1, 1, 1), dt.date(1999, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]
ENDS = [-(2**63), -1, 0, 1, 5, 2**53 + 1, 2**63 - 1]
ROWS = [
    {"u": i, "n": n, "d": d, "x": x, "t": t}
    for i, (n, d, x, t) in enumerate(
        (n, d, x, t)
        for n in (*ENDS, None)
        for d in (*DAYS, None)
        for x in (float("nan"), 1.0, None)
        for t in ("a", None)
    )
]
WHOLE = st.sampled_from([*ENDS, 2**70, -(2**64), 7])
SIMPLE: st.SearchStrategy[Expression] = st.one_of(
    st.tuples(st.sampled_from(["==", "<", "<=", ">", ">=", "!="]), st.booleans(), WHOLE).map(
        lambda t: compared("n", *t)
    ),
    st.tuples(st.sampled_from(["==", "<", "<=", ">", ">="]), st.booleans(), st.sampled_from(DAYS)).map(
        lambda t: compared("d", *t)
    ),
    st.lists(WHOLE, max_size=3).map(lambda values: col("n").is_in(values)),
    st.lists(st.sampled_from(DAYS), max_size=3).map(lambda values: col("d").is_in(values)),
    st.just(col("x") > 0),
    st.just(col("t") == "a"),
    st.just(col("n").is_null()),
    st.just(col("n") + 1 > 0),
)
CONDITIONS: st.SearchStrategy[Expression] = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda t: t[0] & t[1]),
        st.tuples(inner, inner).map(lambda t: t[0] | t[1]),
        inner.map(lambda one: ~one),
    ),
    max_leaves=6,
)


def compared(name: str, op: str, turned: bool, value: Any) -> Expression:
    from inbounds.tables.expressions import Compare, Literal

    sides = (Literal(value), col(name)) if turned else (col(name), Literal(value))
    return Compare(op, *sides)


def meets(row: dict[str, Any], only: tuple[Bare, ...]) -> bool:
    return all(row[bare.column] is not None and bare.of(row[bare.column]) for bare in only)


@given(CONDITIONS)
@settings(max_examples=300)
def test_a_row_that_meets_a_condition_meets_what_is_necessary(condition: Expression) -> None:
    only = necessary(condition, SCHEMA)
    assert all(meets(row, only) for row in ROWS if condition.evaluate(row, SCHEMA))
    assert {bare.column for bare in only} <= {"n", "d"}
    for bare in only:
        assert isinstance(plain(SCHEMA[bare.column], bare.value), int)


TABLE = pa.Table.from_pylist(
    ROWS, pa.schema({"u": pa.int64(), "n": pa.int64(), "d": pa.date32(), "x": pa.float64(), "t": pa.string()})
)


@given(CONDITIONS)
@settings(max_examples=40)
def test_answers_are_the_same_from_files_that_are_pruned(
    tmp_path_factory: pytest.TempPathFactory, condition: Expression
) -> None:
    folder = tmp_path_factory.getbasetemp() / "pruned"
    if not folder.exists():
        folder.mkdir()
        pq.write_table(TABLE.sort_by("n"), folder / "a.parquet", row_group_size=20)
        pq.write_table(TABLE.sort_by("d"), folder / "b.parquet", row_group_size=20)
    request = Request({"n": Rows()}, unit="u", rows=2, where=condition)
    files = Source.open([folder / "a.parquet", folder / "b.parquet"])
    whole = Source.open(pa.concat_tables([TABLE, TABLE]))
    assert request.run(files)["n"] == request.run(whole)["n"]
    assert request.run(files)["n"] == ((2 * sum(condition.evaluate(row, SCHEMA) is True for row in ROWS),),)


def test_types_that_hold_less_and_paths_are_pruned_rightly(tmp_path: Path) -> None:
    for year in (2023, 2024):
        for kind, name in ((pa.int8(), "a"), (pa.uint16(), "b")):
            part = pa.table({"u": [1, 2, 3], "n": pa.array([0, 5, 100], kind), "d": [DAYS[2]] * 3})
            (tmp_path / f"year={year}").mkdir(exist_ok=True)
            pq.write_table(part, tmp_path / f"year={year}" / f"{name}.parquet")
    source = Source.open(tmp_path / "*" / "*.parquet", types={"year": "integer"})
    for condition, count in (
        (col("n") < 1000, 12),
        (col("n") > -1000, 12),
        (col("n") == 2**40, 0),
        (col("n") >= 5, 8),
        (col("year") == 2024, 6),
        ((col("year") > 2023) & (col("n") == 5), 2),
        (col("year").is_in([2022, 2023]) & (col("d") == DAYS[2]), 6),
        (col("year") > 2024, 0),
    ):
        assert Request({"n": Rows()}, unit=None, where=condition).run(source)["n"] == ((count,),)


def test_parts_of_a_file_are_left_out(tmp_path: Path) -> None:
    table = pa.table({"n": range(1000), "x": [float("nan")] * 1000, "d": [DAYS[1]] * 500 + [DAYS[2]] * 500})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=100)
    reader = Parquet([str(tmp_path / "t.parquet")])

    def read(*only: Bare) -> int:
        return sum(batch.num_rows for batch in reader.matching(["x"], only))

    assert read() == 1000
    assert read(Bare("n", ">=", 950)) == 50
    assert read(Bare("n", "<", 100), Bare("d", ">", DAYS[1])) == 0
    assert read(Bare("x", ">", 1)) == 1000  # floats have values without an order
    assert Request({"u": Units()}, unit="n", where=col("n") >= 950).run(Source.open(tmp_path / "t.parquet"))["u"] == (
        (50,),
    )

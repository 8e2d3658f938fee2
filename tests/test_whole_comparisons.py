"""Whole numbers are compared exactly with whole numbers, whatever their size: in Python, on DuckDB and on Spark."""

from __future__ import annotations

import itertools
import operator
from decimal import Decimal
from typing import Any

import pyarrow as pa

from inbounds.tables import Expression, Meeting, Request, Source, col
from inbounds.tables.expressions import Compare, Literal
from tests.query_support import on_spark, spark_session

OPS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}
LEAST, MOST = -(2**63), 2**63 - 1
SMALL = [LEAST, LEAST + 1, -(2**53) - 1, -(2**53), -10, -9, -1, 0, 1, 9, 10, 2**53, 2**53 + 1, MOST - 1, MOST, None]
UNSIGNED = [0, 1, 9, 10, 2**53, 2**53 + 1, MOST, 2**63, 2**64 - 2, 2**64 - 1, None]
LONG = [-(10**38) + 1, -(10**37), LEAST - 1, *SMALL[:-1], 2**63, 2**64 - 1, 10**37, 10**38 - 1, None]
CONSTANTS = [-(2**1000), -(10**38) + 1, -(10**20), LEAST - 1, LEAST, -(2**53) - 1, -10, -1, 0, 1, 10, 2**53 + 1]
CONSTANTS += [MOST - 1, MOST, 2**63, 2**64 - 1, 10**38 - 1, 2**1000]


def table() -> tuple[pa.Table, list[dict[str, Any]]]:
    """Every pair of a column's value and another's, roughly: all of two columns, and a third beside them."""
    rows = [
        {"i": i, "w": UNSIGNED[n % len(UNSIGNED)], "d": d, "j": SMALL[(n * 7) % len(SMALL)]}
        for n, (i, d) in enumerate(itertools.product(SMALL, LONG))
    ]
    types = {"i": pa.int64(), "w": pa.uint64(), "d": pa.decimal128(38, 0), "j": pa.int64()}
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()}), rows


def conditions() -> list[tuple[Expression, Any]]:
    """Each with what it is for a row in Python."""
    found: list[tuple[Expression, Any]] = []
    for op, column, constant in itertools.product(OPS, "iwd", CONSTANTS):
        found.append((Compare(op, col(column), Literal(constant)), (op, column, constant)))
        found.append((Compare(op, Literal(constant), col(column)), (op, constant, column)))
    for op, left, right in itertools.product(OPS, "iwdj", "iwdj"):
        found.append((Compare(op, col(left), col(right)), (op, left, right)))
    return found


def wanted(row: dict[str, Any], case: tuple[str, Any, Any]) -> bool | None:
    op, *sides = case
    left, right = (row[side] if isinstance(side, str) else side for side in sides)
    return None if left is None or right is None else bool(OPS[op](left, right))


def test_a_row_in_python() -> None:
    made, rows = table()
    schema = Source.open(made).schema
    for condition, case in conditions():
        for row in rows[::7]:
            assert condition.evaluate(row, schema) is wanted(row, case), (condition, row)


def _counts(source: Source, cases: list[tuple[Expression, Any]]) -> list[int]:
    """Of each condition how many rows meet it, and how many do not meet it; of the rest it is null."""
    measures = {}
    for n, (condition, _) in enumerate(cases):
        measures |= {f"y{n}": Meeting(condition), f"n{n}": Meeting(~condition)}
    tally = Request(measures, unit=None).run(source)
    return [tally[name][0][0] for name in measures]


def test_on_duckdb() -> None:
    made, rows = table()
    source, cases = Source.open(made), conditions()
    for start in range(0, len(cases), 60):
        part = cases[start : start + 60]
        expected = [sum(wanted(row, case) is sign for row in rows) for _, case in part for sign in (True, False)]
        assert _counts(source, part) == expected


def test_filled_and_computed_sides() -> None:
    made, rows = table()
    source = Source.open(made)
    nine = 10**38 - 9
    cases: list[tuple[Expression, Any]] = [
        (col("d").fill_null(nine) > col("w").fill_null(2**63), lambda d, w: d > w),
        (col("d").fill_null(nine).between(-(2**70), 2**63), lambda d, w: -(2**70) <= d <= 2**63),
    ]
    full = [(nine if row["d"] is None else row["d"], 2**63 if row["w"] is None else row["w"]) for row in rows]
    expected = [sum(bool(meets(d, w)) is sign for d, w in full) for _, meets in cases for sign in (True, False)]
    assert _counts(source, cases) == expected


@on_spark
def test_on_spark(java: str) -> None:
    _, rows = table()
    with spark_session({}) as session:
        told = [(row["i"], None if row["d"] is None else Decimal(row["d"]), row["j"]) for row in rows]
        source = Source.open(session.createDataFrame(told, "i bigint, d decimal(38,0), j bigint").localCheckpoint())
        cases = [case for case in conditions()[::11] if "w" not in case[1]][:40]
        expected = [sum(wanted(row, case) is sign for row in rows) for _, case in cases for sign in (True, False)]
        assert _counts(source, cases) == expected

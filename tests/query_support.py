"""What the tests of plans share: a table of visits, a data set that counts how often it is read, a Spark session."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import inbounds as ib
from inbounds.tables import Dataset, Source

EPSILON = 400.0  # so large that answers are nearly exact
WARDS = ["Straße", "O'Brien", '日本"', "a; DROP TABLE t"]
MONTHS = [1, 2, 3, 4]

SCHEMA = pa.schema(
    [
        ("user", pa.int64()),
        ("name", pa.string()),
        ("ward", pa.string()),
        ("age", pa.float64()),
        ("kids", pa.int64()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("time", pa.timestamp("us")),
        ("price", pa.decimal128(9, 2)),
    ]
)


def visits(users: int = 90, seed: int = 3) -> list[dict[str, Any]]:
    """Users with one to four rows in one or two wards; some values are missing, some beyond any bounds."""
    rng = random.Random(seed)
    rows = []
    for user in range(users):
        home = rng.sample(WARDS, 2)
        for _ in range(rng.randrange(1, 5)):
            time = dt.datetime(2024, 1, 1) + dt.timedelta(minutes=rng.randrange(120 * 24 * 60))
            row = {
                "user": user,
                "name": f"üser {user}",
                "ward": home[rng.random() < 0.3],
                "age": rng.choice([None, 250.0, -9.0, *(rng.uniform(0, 100) for _ in range(20))]),
                "kids": rng.choice([None, *range(7)]),
                "flag": rng.choice([None, True, False, False]),
                "day": time.date(),
                "time": time,
                "price": Decimal(rng.randrange(10_000)).scaleb(-2),
            }
            rows.append(row)
    return rows


ROWS = visits()
ARROW = pa.Table.from_pylist(ROWS, schema=SCHEMA)


def opened(table: Any = ARROW, **options: Any) -> Dataset:
    """A data set with room for many nearly exact answers, whose caps cut off nothing of :func:`visits`."""
    given: dict[str, Any] = {"unit": "user", "budget": ib.Budget(epsilon=1e6), "max_rows": 4, "max_groups": 4}
    return ib.dataset(table, **given | options)


#: What an engine says without a look at a row.
_PUBLIC = ("name", "what", "identity", "notes", "schema", "identifier", "paper", "ready")


@dataclass
class Counting:
    """An engine that counts what is asked of it."""

    engine: Any
    calls: dict[str, int] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        if name not in _PUBLIC:
            self.calls[name] = self.calls.get(name, 0) + 1
        return getattr(self.engine, name)


def counting(table: Any = ARROW, **options: Any) -> tuple[Dataset, dict[str, int]]:
    """A data set, and how often its engine was asked for what."""
    source = Source.open(table)
    engine = Counting(source.engine)
    return opened(replace(source, engine=engine), **options), engine.calls


# ---------------------------------------------------------------- Spark

# PySpark warns about pandas 3 on import, and leaves sockets to the garbage collector.
_MARKS = [
    pytest.mark.java,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def on_spark(test: Any) -> Any:
    """The marks of a test that needs Spark."""
    for mark in _MARKS:
        test = mark(test)
    return test


@contextmanager
def spark_session(more: Mapping[str, str] | None = None) -> Iterator[Any]:
    """A small local session that starts fast, and whose Python workers cannot start."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "America/New_York",  # must not matter
        "spark.pyspark.python": "/bin/false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # small tables: start fast
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **(more or {}),
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()

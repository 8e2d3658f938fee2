"""Readers of databases: every stored value comes as it is or is missing; what is not stored is refused by name."""

from __future__ import annotations

import datetime as dt
import math
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from inbounds.errors import ParameterError, ParameterTypeError, QueryFailed
from inbounds.tables import Kind, Request, Source, Units
from inbounds.tables.readers import duckdb as duck
from inbounds.tables.readers import ibis as on_ibis
from inbounds.tables.readers import postgres, sqlite
from inbounds.tables.readers.base import Chosen, Reader, Through
from inbounds.tables.readers.relations import look_through
from inbounds.tables.readers.versions import RANGES, admit, admitted
from tests.postgres import Server

# Ibis 12 calls what DuckDB 2 has deprecated.
pytestmark = [
    pytest.mark.filterwarnings(r"ignore:fetch_\w+\(\) is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option is deprecated"),  # and what pandas 3.1 has
]

INT64 = 2**63 - 1
UUID = "A0000000-0000-0000-0000-00000000000f"


def arrays(reader: Reader, column: str) -> pa.ChunkedArray:
    batches = list(reader.batches([column]))
    assert all(batch.num_columns == 1 and batch.schema.types == [reader.fields[column].arrow] for batch in batches)
    return pa.chunked_array([batch.column(0) for batch in batches], reader.fields[column].arrow)


def values(reader: Reader, column: str) -> list[Any]:
    return arrays(reader, column).to_pylist()


def counts(reader: Reader, column: str) -> list[int | None]:
    """Dates and times as the whole numbers that Arrow holds, which may be none of Python's."""
    found = arrays(reader, column)
    return found.cast(pa.int32() if pa.types.is_date(found.type) else pa.int64()).to_pylist()


def kind(reader: Reader, column: str) -> tuple[str, str | None]:
    field = reader.fields[column]
    return str(field.arrow), field.declared


def refused(call: Callable[[], object], *words: str, kind: type[Exception] = ParameterError) -> str:
    """Whether it is refused with these words; the message, which leads to no other one."""
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert caught.value.__cause__ is None
    return message


# ---------------------------------------------------------------- DuckDB: values

#: For each type: values as SQL, the Arrow type, what text is declared, and what is expected. null is added to each.
DUCKDB: dict[str, tuple[list[str], str, str | None, list[Any]]] = {
    "BOOLEAN": (["true", "false"], "bool", None, [True, False]),
    "TINYINT": (["-128", "127"], "int8", None, [-128, 127]),
    "SMALLINT": (["-32768"], "int16", None, [-32768]),
    "INTEGER": (["-2147483648"], "int32", None, [-(2**31)]),
    "BIGINT": ([str(-(2**63)), str(INT64)], "int64", None, [-(2**63), INT64]),
    "UTINYINT": (["255"], "uint8", None, [255]),
    "USMALLINT": (["65535"], "uint16", None, [65535]),
    "UINTEGER": (["4294967295"], "uint32", None, [2**32 - 1]),
    "UBIGINT": ([str(2**64 - 1)], "uint64", None, [2**64 - 1]),
    "HUGEINT": ([str(2**127 - 1), str(-(2**127))], "large_binary", "wide", [b"%d" % (2**127 - 1), b"%d" % -(2**127)]),
    "UHUGEINT": ([str(2**128 - 1)], "large_binary", "wide", [b"%d" % (2**128 - 1)]),
    "FLOAT": (["'inf'", "1.5"], "float", None, [math.inf, 1.5]),
    "DOUBLE": (["'-inf'", "5e-324"], "double", None, [-math.inf, 5e-324]),
    "DECIMAL(4,2)": (["-99.99"], "decimal128(4, 2)", None, [Decimal("-99.99")]),
    "DECIMAL(38,0)": (["9" * 38], "decimal128(38, 0)", None, [Decimal("9" * 38)]),
    "VARCHAR": (["''", "'a' || chr(0) || 'ß'"], "large_binary", "text", [b"", b"a\0\xc3\x9f"]),
    "VARCHAR COLLATE nocase": (["'A'", "'a'"], "large_binary", "text", [b"A", b"a"]),
    "UUID": ([f"'{UUID}'"], "large_binary", "text", [UUID.lower().encode()]),
    "ENUM('x', 'y')": (["'y'"], "large_binary", "text", [b"y"]),
}  # fmt: skip
#: The same of dates and times, as counts.
TIMES: dict[str, tuple[list[str], str, list[int]]] = {
    "DATE": (["'infinity'", "'-infinity'", "'1970-01-02'"], "date32[day]", [2**31 - 1, -(2**31) + 1, 1]),
    "TIMESTAMP_S": (["'290000-01-01'"], "timestamp[s]", [9089348860800]),
    "TIMESTAMP_MS": (["'1970-01-01 00:00:00.001'"], "timestamp[ms]", [1]),
    "TIMESTAMP": (["'infinity'", "'290000-01-01'"], "timestamp[us]", [INT64, 9089348860800000000]),
    "TIMESTAMP_NS": (["'1970-01-01 00:00:00.000000001'", "'infinity'"], "timestamp[ns]", [1, INT64]),
    "TIMESTAMPTZ": (["'infinity'", "'1970-01-01 00:00:00+00'"], "timestamp[us, tz=UTC]", [INT64, 0]),
}
#: Types that no question can be about; a value of each.
OTHERS = {
    "BLOB": "'a'", "BIT": "'101'", "TIME": "'24:00:00'", "TIMETZ": "'00:00:00+15:59'", "INTERVAL": "'9999999 years'",
    "INTEGER[]": "[1]", "INTEGER[2]": "[1, 2]", "STRUCT(a INTEGER)": "{'a': 1}",
    "MAP(VARCHAR, INTEGER)": "MAP {'a': 1}",
    "UNION(a INTEGER)": "1", "VARIANT": "1", "JSON": "'{}'", "BIGNUM": "1",
}  # fmt: skip
SETTINGS = [
    "", "arrow_lossless_conversion = true", "arrow_output_version = '1.5'", "arrow_large_buffer_size = true",
    "TimeZone = 'Asia/Kathmandu'", "default_collation = 'nocase'",
]  # fmt: skip


def fill(connection: Any) -> None:
    types = {**{k: v[0] for k, v in DUCKDB.items()}, **{k: v[0] for k, v in TIMES.items()}}
    for i, (name, literals) in enumerate(types.items()):
        connection.execute(f"CREATE TABLE t{i} (v {name})")
        connection.execute(f"INSERT INTO t{i} VALUES {', '.join(f'({literal})' for literal in [*literals, 'NULL'])}")


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_type_of_duckdb_with_values_at_its_ends(setting: str, tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    with duckdb.connect(path) as connection:
        fill(connection)
        if setting:
            connection.execute(f"SET {setting}")
        seen = [duck.in_connection(connection, f"t{i}") for i in range(len(DUCKDB) + len(TIMES))]
        checked(seen)
    if not setting:
        checked([duck.in_file(path, f"t{i}") for i in range(len(DUCKDB) + len(TIMES))])


def checked(readers: list[duck.Table]) -> None:
    for reader, (_, arrow, declared, expected) in zip(readers, DUCKDB.values(), strict=False):
        assert kind(reader, "v") == (arrow, declared)
        assert values(reader, "v") == [*expected, None]
    for reader, (_, arrow, expected_counts) in zip(readers[len(DUCKDB) :], TIMES.values(), strict=True):
        assert kind(reader, "v") == (arrow, None)
        assert counts(reader, "v") == [*expected_counts, None]


def test_nan_and_minus_zero_come_as_they_are() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT unnest(['nan'::DOUBLE, '-0.0'::DOUBLE]) AS v")
        nan, zero = values(duck.in_connection(connection, "t"), "v")
        assert math.isnan(nan)
        assert math.copysign(1.0, zero) == -1.0


@pytest.mark.parametrize("name", OTHERS)
def test_types_that_are_not_asked_about_fail_on_no_value(name: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t (v {name}, w INTEGER)")
        connection.execute(f"INSERT INTO t VALUES ({OTHERS[name]}, 3)")
        reader = duck.in_connection(connection, "t")
        assert kind(reader, "v")[0].startswith("list")
        assert [b.to_pylist() for b in reader.batches(["w", "v"])] == [[{"c0": 3, "c1": None}]]


def test_long_text_of_duckdb_is_missing_by_its_length_alone() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT repeat('ß', n) AS v FROM (VALUES (32768), (32769)) AS l(n)")
        short, long = values(duck.in_connection(connection, "t"), "v")
        assert (len(short), long) == (65536, None)


# ---------------------------------------------------------------- DuckDB: which tables


def test_names_and_what_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "it's.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(
            "CREATE SCHEMA s; CREATE SCHEMA r; CREATE TABLE t AS SELECT 1 AS v; CREATE TABLE s.t AS SELECT 2 AS v"
        )
        connection.execute(
            'CREATE TABLE s.u AS SELECT 3 AS v; CREATE TABLE r.u AS SELECT 4 AS v; CREATE TABLE "s.w" AS SELECT 5 AS v'
        )
        connection.execute(
            'CREATE TABLE "a""b" AS SELECT 6 AS "*", 7 AS "q""x"; CREATE VIEW w AS SELECT 1 / v AS v FROM t'
        )
        connection.execute("CREATE TEMP TABLE mine AS SELECT 1 AS v")

        def in_connection(name: str) -> Reader:
            return duck.in_connection(connection, name)

        names_are_found(in_connection)
        refused(lambda: in_connection("mine"), "temporary table", "CREATE TABLE ... AS")
        assert in_connection("t").identity == f'{path}::"main"."t"'
    names_are_found(lambda name: duck.in_file(path, name))
    assert duck.in_file(path, "s.t").identity == f'{path}::"s"."t"'
    link = tmp_path / "link.duckdb"
    link.symlink_to(path)
    assert duck.in_file(link, "s.t").identity == duck.in_file(path, "s.t").identity


def names_are_found(open_: Callable[[str], Reader]) -> None:
    assert {name: values(open_(name), "v") for name in ("t", "T", "main.t", "s.t", "r.u", "s.w")} == {
        "t": [1], "T": [1], "main.t": [1], "s.t": [2], "r.u": [4], "s.w": [5],
    }  # fmt: skip
    odd = open_('a"b')
    assert values(odd, "*") == [6]
    assert values(odd, 'q"x') == [7]
    refused(lambda: open_("u"), "one table only", "schema.table")
    refused(lambda: open_("w"), "not a view", "CREATE TABLE ... AS")
    refused(lambda: open_("none"), "a table of the database")
    refused(lambda: open_("duckdb_tables"), "a table of the database")
    with pytest.raises(ParameterTypeError):
        open_(3)  # type: ignore[arg-type]


def test_macros_that_shadow_duckdb_are_not_called(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "a.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT 'a' AS v; CREATE MACRO strlen(x) AS error('called')")
        connection.execute("CREATE MACRO duckdb_columns() AS TABLE SELECT error('called')")
        assert values(duck.in_connection(connection, "t"), "v") == [b"a"]
    assert values(duck.in_file(tmp_path / "a.duckdb", "t"), "v") == [b"a"]


def test_generated_columns_are_left_out() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (v INTEGER, s VARCHAR, g INTEGER AS (v + s::INTEGER))")
        connection.execute("INSERT INTO t (v, s) VALUES (1, '1')")
        connection.execute("INSERT INTO t (v, s) VALUES (5, '1')")
        for reader in (duck.in_connection(connection, "t"), look_through(connection.table("t"))):
            assert isinstance(reader, duck.Table | Chosen)
            assert list(reader.fields) == ["v", "s"]
            assert values(reader, "v") == [1, 5]
            assert "'g'" in reader.notes[0]


def test_tables_of_other_databases_attached_to_duckdb_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Attached:
        """A connection to which another database is attached, for which DuckDB would need an extension."""

        def __init__(self, connection: Any) -> None:
            self._connection = connection

        def __enter__(self) -> Attached:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def cursor(self) -> Attached:
            return self

        def sql(self, *args: Any, **options: Any) -> Any:
            return self._connection.sql(*args, **options)

        def execute(self, query: str, *args: Any) -> Any:
            if "duckdb_databases" in query:
                return self._connection.execute("SELECT NULL, 'postgres'")
            return self._connection.execute(query, *args)

    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (v INTEGER)")
        refused(lambda: duck.in_connection(Attached(connection), "t"), "stored by DuckDB", "type postgres")


def test_a_change_of_the_table_is_seen_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS v, 2 AS w")
        here = duck.in_connection(connection, "t")
        here.ready()
    there = duck.in_file(path, "t")
    there.ready()
    with duckdb.connect(path) as connection:
        connection.execute("ALTER TABLE t ADD COLUMN more INTEGER")
        duck.in_connection(connection, "t").ready()
    there.ready()
    with duckdb.connect(path) as connection:
        here = duck.in_connection(connection, "t")
        connection.execute("ALTER TABLE t ALTER v TYPE VARCHAR")
        refused(here.ready, "other columns than when it was opened", "Open it again", kind=QueryFailed)
        here = duck.in_connection(connection, "t")
        connection.execute("CREATE TABLE kept AS FROM t")
        connection.execute("DROP TABLE t")
        refused(here.ready, "or is gone", kind=QueryFailed)
        connection.execute("ALTER TABLE kept RENAME TO t")
    refused(there.ready, "other columns than when it was opened", kind=QueryFailed)
    path.unlink()
    refused(there.ready, "can be read now")


def test_a_connection_that_is_closed_is_told() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 1 AS v")
    relation, reader = connection.table("t"), duck.in_connection(connection, "t")
    connection.close()
    for call in (
        lambda: duck.in_connection(connection, "t"),
        lambda: look_through(relation),
        reader.ready,
        lambda: next(reader.batches(["v"])),
    ):
        with pytest.raises(ParameterError, match="on a connection that is open"):
            call()


# ---------------------------------------------------------------- DuckDB: at the same time


def test_one_file_is_read_by_several_at_once_and_left_free(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS v FROM range(20000)")
    one, two = duck.in_file(path, "t"), duck.in_file(path, "t")
    first, second = one.batches(["v"]), two.batches(["v"])
    next(first)
    next(second)
    next(one.batches(["v"]))
    with ThreadPoolExecutor(5) as pool:
        assert list(pool.map(lambda _: sum(b.num_rows for b in one.batches(["v"])), range(10))) == [20000] * 10
    first.close()
    assert sum(batch.num_rows for batch in second) < 20000
    with duckdb.connect(path) as connection:  # nothing of ours holds it
        connection.execute("INSERT INTO t VALUES (-1)")
        message = refused(one.ready, "close it", "give the connection")
        assert str(path)[:60] in message  # of a long one the beginning
        assert len(values(duck.in_connection(connection, "t"), "v")) == 20001


def test_a_file_with_a_write_ahead_log(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    crash = (
        "import duckdb, os, sys; c = duckdb.connect(sys.argv[1]); c.execute('CREATE TABLE t AS SELECT 1 AS v'); "
        "c.execute('CHECKPOINT'); c.execute('INSERT INTO t VALUES (2)'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", crash, str(path)], check=True)
    assert (tmp_path / "a.duckdb.wal").exists()
    assert values(duck.in_file(path, "t"), "v") == [1, 2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="NO FORK")
def test_a_fork_reads_for_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    code = """
import os, sys, duckdb
from inbounds.tables import Kind, Request, Source, Units
from inbounds.tables.readers import duckdb as duck
with duckdb.connect(sys.argv[1]) as connection:
    connection.execute("CREATE TABLE t AS SELECT range AS v FROM range(9000)")
reader = duck.in_file(sys.argv[1], "t")
assert sum(b.num_rows for b in reader.batches(["v"])) == 9000
child = os.fork()
if child == 0:
    os._exit(0 if sum(b.num_rows for b in reader.batches(["v"])) == 9000 else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=60)


def test_a_connection_of_the_users_is_left_alone() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS v FROM range(9000)")
        reader = duck.in_connection(connection, "t")
        relation = connection.table("t").select("v AS w")
        mine = connection.execute("FROM t ORDER BY v")
        assert mine.fetchone() == (0,)
        reader.ready()
        batches = reader.batches(["v"])
        assert next(batches).num_rows < 9000
        refused(lambda: look_through(relation), "free")
        refused(lambda: duck.in_connection(connection, "t"), "free")
        assert mine.fetchone() == (1,)
        mine.fetchall()
        assert values(look_through(relation), "w")[:1] == [0]  # type: ignore[arg-type]
        connection.execute("BEGIN; INSERT INTO t VALUES (-1)")
        assert sum(batch.num_rows for batch in batches) + 2048 == 9000
        assert len(values(reader, "v")) == 9000
        connection.execute("COMMIT; BEGIN; CREATE TABLE later AS SELECT 1 AS v")
        refused(lambda: duck.in_connection(connection, "later"), "other connections see")
        connection.execute("ROLLBACK")
        with ThreadPoolExecutor(5) as pool:
            assert set(pool.map(lambda _: len(values(reader, "v")), range(10))) == {9001}


# ---------------------------------------------------------------- relations


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Any]:
    """Tables, views and a file; the file's name is what the connection's setting of a variable says."""
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "p1.parquet")
    pq.write_table(pa.table({"a": [3], "b": ["z"]}), tmp_path / "p2.parquet")
    (tmp_path / "c.csv").write_text("a\n1\n")
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE SCHEMA s; CREATE TABLE s.t (a INTEGER, b VARCHAR); INSERT INTO s.t VALUES (7, 'secret');"
            "CREATE VIEW v AS SELECT a, b AS bb FROM s.t; CREATE VIEW vv AS SELECT * FROM v;"
            'CREATE VIEW "x AS y" ("a b", c) AS SELECT a, b FROM s.t; CREATE VIEW ev AS SELECT a + 1 AS a FROM s.t;'
            "CREATE TABLE st (st STRUCT(a INTEGER), a INTEGER); INSERT INTO st VALUES ({'a': 5}, 6);"
            f"CREATE VIEW pv AS SELECT b, a AS q FROM '{tmp_path}/p1.parquet'; SET VARIABLE here = '{tmp_path}'"
        )
        yield connection


LOOKED: dict[str, tuple[str, dict[str, list[Any]]]] = {
    "a table": ("FROM s.t", {"a": [7], "b": [b"secret"]}),
    "columns": ("SELECT b FROM s.t", {"b": [b"secret"]}),
    "names": ('SELECT a AS "q""x", t.b AS a FROM s.t', {'q"x': [7], "a": [b"secret"]}),
    "capitals": ('SELECT A AS "B" FROM S.T', {"B": [7]}),
    "an alias": ("SELECT u.a FROM s.t AS u", {"a": [7]}),
    "left out": ("SELECT * EXCLUDE (a) FROM s.t", {"b": [b"secret"]}),
    "all twice, renamed": ("SELECT a AS x, t.* FROM s.t", {"x": [7], "a": [7], "b": [b"secret"]}),
    "a subquery": ("SELECT a AS c FROM (SELECT b, a FROM s.t) AS q", {"c": [7]}),
    "a query with a name": ("WITH q AS (FROM s.t), r AS (SELECT b FROM q) FROM r", {"b": [b"secret"]}),
    "a view": ("FROM v", {"a": [7], "bb": [b"secret"]}),
    "a view of a view": ("SELECT bb AS k FROM vv", {"k": [b"secret"]}),
    "a view with names": ('FROM "x AS y"', {"a b": [7], "c": [b"secret"]}),
    "a column like its table": ("SELECT st.a FROM st", {"a": [6]}),
}


@pytest.mark.parametrize("name", LOOKED)
def test_relations_that_choose_and_rename_are_looked_through(name: str, stored: Any) -> None:
    query, expected = LOOKED[name]
    found = look_through(stored.sql(query))
    assert isinstance(found, Chosen)
    assert {column: values(found, column) for column in found.fields} == expected
    found.ready()
    assert found.identity in ('memory::"s"."t"', 'memory::"main"."st"')


def test_relations_made_by_methods(stored: Any) -> None:
    steps = [
        stored.table("s.t").select("b AS z"),
        stored.view("v").select("bb AS c").select("c AS z"),
        stored.table("s.t").set_alias("other").project("b").select("b AS z"),
        stored.sql("SELECT a, b FROM s.t").select("b AS z, a").select("z"),
    ]
    for relation in steps:
        found = look_through(relation)
        assert isinstance(found, Chosen)
        assert {column: values(found, column) for column in found.fields} == {"z": [b"secret"]}


def test_parquet_behind_a_relation_is_left_to_its_reader(stored: Any, tmp_path: Path) -> None:
    one, two = str(tmp_path / "p1.parquet"), str(tmp_path / "p2.parquet")
    both = {"a": "a", "b": "b"}
    for relation, paths, columns in [
        (stored.read_parquet(one), [one], both),
        (stored.sql(f"SELECT b AS k FROM '{one}'"), [one], {"k": "b"}),
        (stored.sql(f"FROM read_parquet('{tmp_path}/*.parquet')"), [one, two], both),
        (stored.sql(f"SELECT a FROM parquet_scan(['{two}', '{one}'], union_by_name = true)"), [two, one], {"a": "a"}),
        (stored.view("pv").select("q AS r"), [one], {"r": "a"}),
        (stored.table_function("read_parquet", [one]), [one], both),
    ]:
        assert look_through(relation) == Through(paths, columns)


REFUSED: dict[str, tuple[str, str]] = {
    "a condition": ("FROM s.t WHERE b = 'whisper'", "condition"),
    "an expression": ("SELECT a + 4711 AS a FROM s.t", "expression"),
    "a cast": ("SELECT b::INTEGER AS b FROM s.t", "expression"),
    "a constant": ("SELECT 'whisper' AS a", ""),
    "a view that computes": ("FROM ev", "expression"),
    "a join": ("SELECT t.a FROM s.t, st", "join"),
    "a union": ("SELECT a FROM s.t UNION ALL SELECT a FROM s.t", "union"),
    "groups": ("SELECT a FROM s.t GROUP BY a", "groups"),
    "a total": ("SELECT count(*) AS n FROM s.t", "expression"),
    "a window": ("SELECT row_number() OVER () AS n FROM s.t", "expression"),
    "distinct": ("SELECT DISTINCT a FROM s.t", "condition"),
    "an order": ("FROM s.t ORDER BY a", "order"),
    "a limit": ("FROM s.t LIMIT 3", "limit"),
    "a sample": ("FROM s.t USING SAMPLE 3", "sample"),
    "a sampled table": ("FROM s.t TABLESAMPLE 30%", "sample"),
    "having": ("SELECT a FROM s.t GROUP BY ALL HAVING count(*) > 4711", "groups"),
    "qualify": ("SELECT a FROM s.t QUALIFY row_number() OVER () = 1", "condition"),
    "values": ("FROM (VALUES ('whisper')) AS l(a)", ""),
    "a range": ("FROM range(4711)", "function"),
    "replaced": ("SELECT * REPLACE (a + 1 AS a) FROM s.t", "star"),
    "chosen by name": ("SELECT COLUMNS('a') FROM s.t", "star"),
    "a number of the row": ("SELECT rowid FROM s.t", "no column"),
    "a field": ("SELECT st.st.a FROM st", "expression"),
    "twice": ("SELECT a, a FROM s.t", "one name"),
    "a recursion": ("WITH RECURSIVE q AS (SELECT a FROM s.t UNION ALL SELECT a FROM q) FROM q", ""),
    "columns named anew": ("SELECT x FROM s.t AS u(x, y)", "named anew"),
    "a pivot": ("PIVOT s.t ON a USING count(*)", ""),
    "a description": ("DESCRIBE s.t", ""),
    "CSV": ("FROM read_csv(getvariable('here') || '/c.csv')", "types="),
    "hidden files": ("FROM read_parquet(getvariable('here') || '/p1.parquet')", "written out"),
    "names of files": ("FROM read_parquet('@@/p1.parquet', filename = true)", "options"),
    "a CSV file by name": ("FROM '@@/c.csv'", "not Parquet"),
    "a parameter": ("SELECT a FROM s.t WHERE b = $1", "condition"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_all_other_relations_are_refused_before_a_row_is_read(name: str, stored: Any, tmp_path: Path) -> None:
    query, word = REFUSED[name]
    relation = stored.sql(query.replace("@@", str(tmp_path)), **({"params": ["whisper"]} if "$1" in query else {}))
    message = refused(lambda: look_through(relation), word, "where(...)", "CREATE TABLE ... AS")
    assert re.search("whisper|4711|secret", message) is None


def test_frames_in_a_relation_are_refused_with_the_frame_as_the_way_out(stored: Any) -> None:
    frame = pa.table({"a": [1]})
    stored.register("registered", frame)
    for relation in (
        stored.from_arrow(frame),
        stored.sql("FROM frame"),
        stored.table("registered"),
        stored.from_df(frame.to_pandas()),
        stored.values(["whisper"]),
    ):
        assert "whisper" not in refused(lambda relation=relation: look_through(relation), "the frame behind it")


def test_a_temporary_table_is_not_taken_for_a_stored_one(stored: Any) -> None:
    stored.execute("CREATE TABLE twin AS SELECT 1 AS a; CREATE TEMP TABLE twin AS SELECT 2 AS a")
    refused(lambda: look_through(stored.sql("FROM twin")), "one table only")
    assert values(look_through(stored.sql("FROM memory.main.twin")), "a") == [1]  # type: ignore[arg-type]


def test_a_relation_of_an_unknown_make_is_refused() -> None:
    refused(lambda: look_through(object()), "connection is known")


# ---------------------------------------------------------------- Ibis


def test_ibis_on_duckdb(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "p.parquet")
    backend = ibis.duckdb.connect()
    backend.raw_sql(
        "CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 1 AS a, 'x' AS b, 2 AS \"*\";"
        "CREATE VIEW v AS SELECT 1 / a AS a FROM s.t"
    )
    table = backend.table("t", database="s")
    found = on_ibis.look_through(table.rename(k="b").drop("a"))
    assert isinstance(found, Chosen)
    assert {name: values(found, name) for name in found.fields} == {"k": [b"x"], "*": [2]}
    found.ready()
    path = tmp_path / "p.parquet"
    assert on_ibis.look_through(backend.read_parquet(path)[["b"]].rename(c="b")) == Through([str(path)], {"c": "b"})
    for wrong in (
        table.filter(table.a > 4711),
        table.mutate(c=table.a + 4711),
        table.limit(3),
        table.distinct(),
        table.view(),
    ):
        message = refused(lambda wrong=wrong: on_ibis.look_through(wrong), "only chooses and renames", "where(...)")
        assert "4711" not in message
    refused(lambda: on_ibis.look_through(backend.table("v")), "expression")
    refused(lambda: on_ibis.look_through(ibis.table({"a": "int64"}, name="t")), "only chooses and renames")


@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option")  # of pandas, which Ibis uses
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_a_memtable_is_its_frame(make: Callable[[Any], Any]) -> None:
    frame = make({"a": [1], "b": ["x"]})
    found = on_ibis.look_through(ibis.memtable(frame).rename(c="b"))
    assert isinstance(found, Through)
    assert type(found.table) is type(frame)
    assert found.columns == {"a": "a", "c": "b"}


def test_ibis_on_polars_is_its_frame() -> None:
    backend = ibis.polars.connect({"t": pl.DataFrame({"a": [1]})})
    found = on_ibis.look_through(backend.table("t"))
    assert isinstance(found, Through)
    assert found.table.collect().to_dict(as_series=False) == {"a": [1]}


@pytest.mark.parametrize("name", ["bigquery", "mysql", "mssql", "snowflake", "datafusion"])
def test_other_databases_are_refused_by_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = ibis.duckdb.connect()
    backend.raw_sql("CREATE TABLE t (a INTEGER)")
    table = backend.table("t")
    monkeypatch.setattr(type(backend), "name", name)
    refused(lambda: on_ibis.look_through(table), name, "DuckDB", "Parquet")


def test_ibis_on_spark_is_told_to_give_the_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = ibis.duckdb.connect()
    backend.raw_sql("CREATE TABLE t (a INTEGER)")
    table = backend.table("t")
    monkeypatch.setattr(type(backend), "name", "pyspark")
    refused(lambda: on_ibis.look_through(table), "pyspark", "DataFrame of Spark itself")


def test_ibis_is_read_without_pyarrow_hotfix() -> None:
    code = """
import sys
sys.modules["pyarrow_hotfix"] = None
import ibis
from inbounds.tables.readers.ibis import look_through
backend = ibis.duckdb.connect()
backend.raw_sql("CREATE TABLE t (a REAL)")
found = look_through(backend.table("t"))
found.ready()
assert list(found.batches(["a"])) == []
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)


# ---------------------------------------------------------------- SQLite

#: Cells that any column may hold: as SQL, then what becomes of each where integers, numbers, text, ... were declared.
CELLS = [
    "1",
    str(INT64),
    str(-(2**63)),
    "2.5",
    "1e999",
    "'abc'",
    "CAST(x'ff00fe' AS TEXT)",
    "x'61'",
    "NULL",
    "'a' || char(0) || 'b'",
]
SQLITE: dict[str, tuple[str, str | None, list[Any]]] = {
    "INTEGER": ("int64", None, [1, INT64, -(2**63), None, None, None, None, None, None, None]),
    "REAL": ("double", None, [1.0, 2.0**63, -(2.0**63), 2.5, math.inf, None, None, None, None, None]),
    "NUMERIC(9, 2)": ("double", None, [1.0, 2.0**63, -(2.0**63), 2.5, math.inf, None, None, None, None, None]),
    "BOOLEAN": ("bool", None, [True, None, None, None, None, None, None, None, None, None]),
    "TEXT COLLATE NOCASE": (
        "large_binary", "text",
        [b"1", b"%d" % INT64, b"%d" % -(2**63), b"2.5", b"Inf", b"abc", b"\xff\0\xfe", None, None, b"a\0b"],
    ),
    "DATE": ("large_binary", "date", [None, None, None, None, None, b"abc", b"\xff\0\xfe", None, None, b"a\0b"]),
    "TIMESTAMP": ("large_binary", "time", [None, None, None, None, None, b"abc", b"\xff\0\xfe", None, None, b"a\0b"]),
}  # fmt: skip


@pytest.mark.parametrize("declared", SQLITE)
@pytest.mark.parametrize("where", ["file", "memory"])
def test_cells_of_every_sort_in_columns_of_every_type(declared: str, where: str, tmp_path: Path) -> None:
    arrow, word, expected = SQLITE[declared]
    path = tmp_path / "50%?#.sqlite"
    with sqlite3.connect(path if where == "file" else ":memory:") as connection:
        connection.execute(f'CREATE TABLE t ("*" {declared}, "q""x" TEXT)')
        for cell in CELLS:
            connection.execute(f"INSERT INTO t VALUES ({cell}, 'x')")
    reader = sqlite.in_connection(connection, "t")
    connection.close()
    assert kind(reader, "*") == (arrow, word)
    assert values(reader, "*") == expected
    assert values(reader, 'q"x') == [b"x"] * len(CELLS)
    reader.ready()
    assert reader.identity == (f'{path}::"t"' if where == "file" else 'memory::"t"')
    assert [note for note in reader.notes if "copied" in note] == ([] if where == "file" else list(reader.notes))


def test_columns_of_sqlite_that_are_not_asked_about_or_not_stored() -> None:
    with sqlite3.connect(":memory:") as connection:
        connection.execute(
            "CREATE TABLE t (a INT, b BLOB, c, g AS (json_extract(a, '$.x')), h INT AS (a + 1) STORED, i TIME)"
        )
        connection.execute("INSERT INTO t (a, b, c, i) VALUES (1, x'00', 'x', 'y')")
        reader = sqlite.in_connection(connection, "t")
        assert {name: values(reader, name) for name in reader.fields} == {
            "a": [1],
            "b": [None],
            "c": [None],
            "h": [2],
            "i": [None],
        }
        assert any("'g'" in note for note in reader.notes)


def test_what_sqlite_does_not_store_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.sqlite") as connection:
        connection.execute("CREATE TABLE t (a INT)")
        connection.execute("CREATE VIEW v AS SELECT abs(a) AS a FROM t")
        connection.execute("CREATE VIRTUAL TABLE f USING fts5(a)")
        refused(lambda: sqlite.in_connection(connection, "v"), "stores", "view", "CREATE TABLE ... AS")
        refused(lambda: sqlite.in_connection(connection, "f"), "stores", "virtual")
        refused(lambda: sqlite.in_connection(connection, "none"), "stores", "nothing of this name")
        refused(lambda: sqlite.in_connection(connection, "t\0"), "stores")
        refused(lambda: sqlite.in_connection(connection, "t", "other"), "attached")
        assert sqlite.in_connection(connection, "T").identity == sqlite.in_connection(connection, "t").identity


def test_a_file_of_sqlite_is_read_beside_its_user(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute(
            "CREATE TABLE t AS WITH RECURSIVE n(a) AS (VALUES (1) UNION ALL SELECT a + 1 FROM n WHERE a < 20000) "
            "SELECT a FROM n"
        )
    backend = ibis.sqlite.connect(path)
    found = on_ibis.look_through(backend.table("t"))
    assert isinstance(found, Chosen)
    backend.con.execute("BEGIN IMMEDIATE")
    backend.con.execute("DELETE FROM t")
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: sum(b.num_rows for b in found.batches(["a"])), range(4))) == {20000}
    backend.con.execute("ROLLBACK")
    backend.con.execute("ALTER TABLE t RENAME COLUMN a TO b")
    refused(found.ready, "other columns than when it was opened", kind=QueryFailed)


# ---------------------------------------------------------------- PostgreSQL

#: For each type: values as SQL, the Arrow type, what text is declared, and what is expected. null is added to each.
POSTGRES: dict[str, tuple[list[str], str, str | None, list[Any]]] = {
    "int2": (["-32768"], "int16", None, [-32768]),
    "int4": (["2147483647"], "int32", None, [2**31 - 1]),
    "int8": ([str(INT64), str(-(2**63))], "int64", None, [INT64, -(2**63)]),
    "float4": (["1e-45", "'-Infinity'"], "float", None, [1.401298464324817e-45, -math.inf]),
    "float8": (
        ["5e-324", "'Infinity'", "0.1", "1.7976931348623157e308"],
        "double",
        None,
        [5e-324, math.inf, 0.1, sys.float_info.max],
    ),
    "numeric": (
        ["'NaN'", "'-Infinity'", "'1e200'", "0.10"],
        "binary",
        "number",
        [b"NaN", b"-Infinity", b"1" + b"0" * 200, b"0.10"],
    ),
    "numeric(5,2)": (["-1"], "binary", "number", [b"-1.00"]),
    "numeric(18,0)": (["'NaN'", "9" * 18], "binary", "integer", [b"NaN", b"9" * 18]),
    "numeric(30,0)": (["9" * 30], "binary", "wide", [b"9" * 30]),
    "whole": (["12345"], "binary", "integer", [b"12345"]),
    "bool": (["true", "false"], "bool", None, [True, False]),
    "text": (
        ["''", r"'\N'", r"'\.'", "E'a,\"b\"\\r\\n\\nc\\t'", "'ß'", "'NULL'"],
        "binary",
        "text",
        [b"", rb"\N", rb"\.", b'a,"b"\r\n\nc\t', "ß".encode(), b"NULL"],
    ),
    "varchar(3)": (["'ab'"], "binary", "text", [b"ab"]),
    "char(3)": (["'ab'"], "binary", "text", [b"ab "]),
    "name": (["'n'"], "binary", "text", [b"n"]),
    "insensitive": (["'A'", "'a'"], "binary", "text", [b"A", b"a"]),
    "mood": (["'so, so'"], "binary", "text", [b"so, so"]),
    "shadow": (["'(1)'"], "list<item: null>", None, [None]),
    "uuid": ([f"'{UUID}'"], "binary", "text", [UUID.lower().encode()]),
    "date": (
        ["'infinity'", "'-infinity'", "'0044-03-15 BC'", "'10000-01-01'", "'0001-01-01'", "'9999-12-31'"],
        "date32[day]",
        None,
        [None, None, None, None, dt.date.min, dt.date.max],
    ),
    "timestamp": (
        ["'infinity'", "'0044-03-15 12:00 BC'", "'290000-01-01'", "'0001-01-01'", "'9999-12-31 23:59:59.999999'"],
        "timestamp[us]",
        None,
        [None, None, None, dt.datetime.min, dt.datetime.max],
    ),
    "timestamptz": (
        ["'-infinity'", "'2000-02-29 23:59:59.5+05'", "'0001-01-01 00:00:00+00'", "'0001-01-01 00:00:00+05'"],
        "timestamp[us, tz=UTC]",
        None,
        [None, dt.datetime(2000, 2, 29, 18, 59, 59, 500000, dt.UTC), dt.datetime(1, 1, 1, tzinfo=dt.UTC), None],
    ),
}
POSTGRES_OTHERS = {
    "bytea": r"'\x00'", "money": "'12.30'", "interval": "'1 day'", "json": "'{}'", "int4[]": "'{1}'", "time": "'24:00'",
    "inet": "'::1'", "int4range": "'[1,2)'", "oid": "1", "\"char\"": "'a'",
}  # fmt: skip


@pytest.fixture(scope="module")
def server(initdb: str) -> Iterator[Server]:
    found = Server(initdb)
    yield found
    found.stop()


@pytest.fixture
def connection(server: Server) -> Iterator[Any]:
    import psycopg

    with psycopg.connect(server.url(), autocommit=True) as found:
        yield found


@pytest.mark.postgres
def test_every_type_of_postgresql_with_values_at_its_ends(connection: Any) -> None:
    ((schema,),) = connection.execute("SELECT current_schema()").fetchall()
    connection.execute("CREATE DOMAIN inner_whole AS numeric(5,0); CREATE DOMAIN whole AS inner_whole")
    connection.execute("CREATE TYPE mood AS ENUM ('so, so'); CREATE TYPE text AS (a int)")  # the name of another type
    # The user's own settings, as odd as they may be.
    connection.execute("SET datestyle = 'German, DMY'; SET timezone = 'Asia/Kathmandu'; SET extra_float_digits = -15")
    connection.execute(
        "ALTER ROLE tester SET datestyle = 'SQL, DMY'; ALTER ROLE tester SET timezone = 'Asia/Kathmandu'"
    )
    connection.execute(
        "CREATE COLLATION insensitive (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
    )
    for i, (name, (literals, arrow, declared, expected)) in enumerate(POSTGRES.items()):
        odd = {"insensitive": 'pg_catalog.text COLLATE "insensitive"', "text": "pg_catalog.text", "shadow": "test.text"}
        type_name = odd.get(name, name).replace("test.", f"{schema}.")
        connection.execute(f"CREATE TABLE t{i} (v {type_name})")
        for literal in [*literals, "NULL"]:
            connection.execute(f"INSERT INTO t{i} VALUES ({literal})")
        reader = postgres.in_connection(connection, f"t{i}")
        assert kind(reader, "v") == (arrow, declared), name
        assert values(reader, "v") == [*expected, None], name
    connection.execute("ALTER ROLE tester RESET ALL")


@pytest.mark.postgres
def test_nan_of_postgresql_and_types_that_are_not_asked_about(connection: Any) -> None:
    columns = ", ".join(f"c{i} {name}" for i, name in enumerate(POSTGRES_OTHERS))
    connection.execute(
        f'CREATE TABLE t (v float8, "*" int, "q""x%s" int, g int GENERATED ALWAYS AS ("*" + 1) STORED, {columns})'
    )
    names = ", ".join(f"c{i}" for i in range(len(POSTGRES_OTHERS)))
    literals = ", ".join(POSTGRES_OTHERS.values())
    connection.execute(f'INSERT INTO t (v, "*", "q""x%s", {names}) VALUES (\'NaN\', 1, 2, {literals})')
    reader = postgres.in_connection(connection, "t")
    reader.ready()
    assert math.isnan(values(reader, "v")[0])
    assert [values(reader, name) for name in ("*", 'q"x%s', "g")] == [[1], [2], [2]]
    assert [values(reader, f"c{i}") for i in range(len(POSTGRES_OTHERS))] == [[None]] * len(POSTGRES_OTHERS)


@pytest.mark.postgres
@pytest.mark.parametrize("encoding", ["UTF8", "SQL_ASCII", "LATIN1", "WIN1252"])
def test_encodings_of_postgresql(encoding: str, server: Server, connection: Any) -> None:
    import psycopg

    name = f"in_{encoding.lower()}"
    connection.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    where = server.url().partition("?")[0].replace("/postgres", f"/{name}")
    with psycopg.connect(where, autocommit=True) as other:
        other.execute("CREATE TABLE t (v text)")
        if encoding == "WIN1252":  # of which not all bytes are letters
            refused(lambda: postgres.in_connection(other, "t"), "encoding UTF8", "WIN1252", "Parquet")
            return
        known = [bytes([i]) for i in range(1, 128 if encoding == "UTF8" else 256)]
        for byte in known:
            other.execute("INSERT INTO t VALUES (convert_from(decode(%s, 'hex'), %s))", [byte.hex(), encoding])
        found = values(postgres.in_connection(other, "t"), "v")
        assert found == [byte.decode("latin1").encode() if encoding == "LATIN1" else byte for byte in known]


@pytest.mark.postgres
def test_what_postgresql_does_not_store_is_refused(connection: Any, server: Server) -> None:
    connection.execute(
        "CREATE TABLE t (a int); CREATE VIEW v AS SELECT 1 / a AS a FROM t; CREATE MATERIALIZED VIEW m AS SELECT 4 AS a"
    )
    connection.execute("CREATE TEMP TABLE mine (a int)")
    connection.execute(
        "CREATE TABLE parts (a int) PARTITION BY LIST (a); CREATE TABLE part PARTITION OF parts FOR VALUES IN (1)"
    )
    connection.execute(
        "INSERT INTO parts VALUES (1); CREATE TABLE child (b int) INHERITS (t); INSERT INTO child VALUES (8, 9)"
    )
    assert values(postgres.in_connection(connection, "m"), "a") == [4]
    assert values(postgres.in_connection(connection, "parts"), "a") == [1]
    assert values(postgres.in_connection(connection, "t"), "a") == [8]
    refused(lambda: postgres.in_connection(connection, "v"), "a view", "CREATE TABLE ... AS")
    refused(lambda: postgres.in_connection(connection, "mine"), "a temporary table")
    refused(lambda: postgres.in_connection(connection, "none"), "a table of the database")
    refused(lambda: postgres.in_connection(connection, "t", "none"), "a table of the database")


@pytest.mark.postgres
def test_policies_of_rows_are_refused_and_columns_without_a_grant_left_out(connection: Any, server: Server) -> None:
    import psycopg

    ((schema,),) = connection.execute("SELECT current_schema()").fetchall()
    connection.execute(
        "DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN; CREATE TABLE t (a int); INSERT INTO t VALUES (0)"
    )
    connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO guest; GRANT SELECT ON t TO guest")
    connection.execute("CREATE TABLE partly (a int, b int); INSERT INTO partly VALUES (1, 2)")
    connection.execute("GRANT SELECT (b) ON partly TO guest")
    where = server.url().partition("?")[0].replace("tester@", "guest@")
    with psycopg.connect(where, autocommit=True) as guest:
        reader = postgres.in_connection(guest, "t", schema)
        assert values(reader, "a") == [0]
        some = postgres.in_connection(guest, "partly", schema)
        some.ready()
        assert {name: values(some, name) for name in some.fields} == {"b": [2]}
        assert "'a' is left out: it may not be read" in some.notes[0]
        connection.execute("ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (1 / a > 0)")
        refused(lambda: postgres.in_connection(guest, "t", schema), "policies for rows")
        refused(reader.ready, "policies for rows")
    connection.execute(f"DROP TABLE t, partly; REVOKE ALL ON SCHEMA {schema} FROM guest; DROP ROLE guest")


@pytest.mark.postgres
def test_citext_of_postgresql_is_its_bytes(connection: Any) -> None:
    if not connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'citext'").fetchall():
        pytest.skip("NO CITEXT")
    connection.execute("CREATE EXTENSION citext; CREATE TABLE t (v citext); INSERT INTO t VALUES ('A'), ('a')")
    assert values(postgres.in_connection(connection, "t"), "v") == [b"A", b"a"]


@pytest.mark.postgres
def test_postgresql_is_read_beside_its_user(connection: Any) -> None:
    connection.execute("CREATE TABLE t AS SELECT g AS a, repeat('x', 100) AS b FROM generate_series(1, 100000) AS g")
    reader = postgres.in_connection(connection, "t")
    assert reader.once
    assert re.fullmatch(r'postgresql://127\.0\.0\.1:\d+/postgres::"test_\d+"\."t"', reader.identity)
    connection.execute("BEGIN")
    connection.execute("INSERT INTO t VALUES (0, '')")
    batches = reader.batches(["a", "b"])
    assert next(batches).num_rows < 100000
    batches.close()
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: sum(b.num_rows for b in reader.batches(["a"])), range(4))) == {100000}
    connection.execute("COMMIT")
    assert sum(b.num_rows for b in reader.batches(["a"])) == 100001
    connection.execute("ALTER TABLE t ALTER a TYPE text")
    refused(reader.ready, "other columns than when it was opened", kind=QueryFailed)


@pytest.mark.postgres
def test_long_text_of_postgresql_is_missing_by_its_length_alone(connection: Any) -> None:
    connection.execute("CREATE TABLE t AS SELECT repeat('\"', n) AS v FROM (VALUES (65536), (65537)) AS l(n)")
    assert values(postgres.in_connection(connection, "t"), "v") == [b'"' * 65536, None]


@pytest.mark.postgres
def test_functions_that_shadow_postgresql_are_not_called(connection: Any) -> None:
    connection.execute(
        "CREATE FUNCTION octet_length(text) RETURNS int LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''called''; END'"
    )
    connection.execute("CREATE TABLE t (v text); INSERT INTO t VALUES ('x')")
    assert values(postgres.in_connection(connection, "t"), "v") == [b"x"]


@pytest.mark.postgres
def test_a_server_that_is_gone_is_told_without_its_words(initdb: str) -> None:
    server = Server(initdb)
    try:
        import psycopg

        with psycopg.connect(f"{server.url()}&password=hush", autocommit=True) as connection:
            connection.execute("CREATE TABLE t (v text)")
            reader = postgres.in_connection(connection, "t")
            reader.ready()
            assert "hush" not in reader.identity
            server.crash()
            assert "hush" not in refused(reader.ready, "can be reached")
    finally:
        server.stop()


@pytest.mark.postgres
def test_ibis_on_postgresql(server: Server, connection: Any) -> None:
    ((schema, port),) = connection.execute("SELECT current_schema(), inet_server_port()").fetchall()
    connection.execute("CREATE TABLE t (a float8, \"*\" text); INSERT INTO t VALUES (1e300, NULL), ('NaN', '')")
    backend = ibis.postgres.connect(host="127.0.0.1", port=port, user="tester", database="postgres")
    table = backend.table("t", database=schema)
    found = on_ibis.look_through(table.rename(k="*"))
    assert isinstance(found, Chosen)
    assert values(found, "k") == [None, b""]
    refused(lambda: on_ibis.look_through(table.mutate(a=table.a * 1e300)), "expression")
    backend.disconnect()


# ---------------------------------------------------------------- versions


def test_versions_that_are_admitted() -> None:
    assert admit("duckdb", "2.0.0") is None
    assert admit("duckdb", "2.0.7") is None
    assert admit("PostgreSQL", "15.14 (Debian 15.14-0+deb12u1)") is None
    assert "newer than 2.0" in str(admit("duckdb", "2.1.0"))
    assert "newer than 15" in str(admit("PostgreSQL", "16.0"))
    assert "newer" in str(admit("polars", "10.0"))  # by number, not as text
    for name, version in [
        ("duckdb", "1.4.2"),
        ("pyarrow", "9.0.0"),
        ("SQLite", "3.36.0"),
        ("pandas", "2.1.9"),
        ("polars", "x"),
    ]:
        refused(lambda name=name, version=version: admit(name, version), name, repr(version), "or later")


@pytest.mark.parametrize("name", RANGES)
def test_ranges_have_their_ends_in_order(name: str) -> None:
    lowest, highest = RANGES[name]
    assert lowest.count(".") == highest.count(".")
    assert admit(name, lowest) is None
    assert admit(name, highest) is None


def test_what_is_installed_is_what_was_tested() -> None:
    packages = ["duckdb", "ibis-framework", "narwhals", "pandas", "polars", "psycopg", "pyarrow", "pyspark"]
    assert admitted(*packages) == ()
    assert admit("SQLite", sqlite3.sqlite_version) is None


# ---------------------------------------------------------------- twins

#: A person's row in each database that would move, break or hide others if it were evaluated there.
ODD = {
    "duckdb": "(9, repeat('ß', 1000000), 'infinity', '-infinity', 'nan', 170141183460469231731687303715884105727)",
    "postgres": "(9, repeat('ß', 1000000), 'infinity', '0044-03-15 BC', 'NaN', '-Infinity')",
    "sqlite": "(x'ff', CAST(x'ff00' AS TEXT), 'never', x'00', 'abc', 'x')",
}
ROWS = (
    "(1, 'a', '2000-01-01 12:00:00', '2000-01-01', 1.5, 7), (2, 'A', NULL, NULL, NULL, NULL), "
    "(3, '', '1999-01-01 00:00:00', NULL, 1e300, 8)"
)
TYPES = {
    "duckdb": "w INTEGER, s VARCHAR COLLATE nocase, t TIMESTAMP, d DATE, x DOUBLE, h HUGEINT",
    "postgres": "w int, s text, t timestamp, d date, x float8, h numeric",
    "sqlite": "w INT, s TEXT COLLATE NOCASE, t TIMESTAMP, d DATE, x REAL, h NUMERIC",
}


@pytest.fixture(params=["duckdb", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def ask(request: pytest.FixtureRequest) -> Iterator[tuple[str, Callable[[str], Any], Callable[[], Reader]]]:
    """A database, how to write to it, and how to open its table t."""
    if request.param == "postgres":
        found = request.getfixturevalue("connection")
        yield "postgres", found.execute, lambda: postgres.in_connection(found, "t")
    elif request.param == "duckdb":
        with duckdb.connect() as found:
            yield "duckdb", found.execute, lambda: duck.in_connection(found, "t")
    else:
        with sqlite3.connect(":memory:") as found:
            yield "sqlite", found.execute, lambda: sqlite.in_connection(found, "t")
        found.close()


def test_one_odd_row_changes_nothing_but_itself(ask: tuple[str, Callable[[str], Any], Callable[[], Reader]]) -> None:
    name, execute, open_ = ask
    execute(f"CREATE TABLE t ({TYPES[name]})")
    execute(f"INSERT INTO t VALUES {ROWS}")

    def seen() -> tuple[Any, ...]:
        reader = open_()
        reader.ready()
        batches = list(reader.batches(list(reader.fields)))
        rows = [
            tuple(map(str, row)) for b in batches for row in zip(*(c.cast(text(c)) for c in b.columns), strict=True)
        ]
        return [reader.what, reader.identity, reader.notes, reader.fields, len(batches), batches[0].schema], rows

    def text(column: Any) -> Any:
        """Of times and dates, the counts: Python has none for the infinite ones."""
        if pa.types.is_timestamp(column.type):
            return pa.int64()
        return pa.int32() if pa.types.is_date(column.type) else column.type

    public, rows = seen()
    execute(f"INSERT INTO t VALUES {ODD[name]}")
    public_of_twin, rows_of_twin = seen()
    assert public_of_twin == public
    assert rows_of_twin[:-1] == rows
    assert len(rows_of_twin) == len(rows) + 1 == 4


# ---------------------------------------------------------------- found later


FRAMES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "pandas, of Arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "Polars": pl.from_pandas,
    "Polars, lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "Arrow": pa.Table.from_pandas,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_columns_of_ibis_in_memory_go_by_their_names(kind: str) -> None:
    """Not by their places, by which the visits were the people."""
    given = FRAMES[kind](pd.DataFrame({"visits": [10, 10, 10], "person": [1, 2, 3]}))
    schemas = ({}, {"schema": {"person": "int64", "visits": "int64"}}, {"columns": ["visits", "person"]})
    for schema in schemas[: 2 if "pandas" in kind else 3]:
        table = ibis.memtable(given, **schema)
        try:
            shown = table.to_pyarrow()["person"].to_pylist()
        except ValueError:  # Ibis itself goes by names, and needs them in their order for Arrow
            shown = [1, 2, 3]
        found = on_ibis.look_through(table)
        assert isinstance(found, Through)
        assert shown == [1, 2, 3]
        assert Source.open(table).schema["person"] == Kind.INTEGER
        assert Request({"n": Units()}, unit="person").run(Source.open(table), salt=b"s")["n"][0] == (3,)
    for schema in (
        {"schema": {"person": "int64"}},
        {"schema": {"person": "int64", "other": "int64"}},
        {"schema": {"person": "int16", "visits": "int64"}},
        {"schema": {"person": "string", "visits": "int64"}},
    ):
        table = ibis.memtable(given, **schema)
        refused(lambda table=table: Source.open(table), "names and the types of its frame", "Pass the frame itself")


def test_columns_of_pandas_that_ibis_names_anew_are_those_that_it_shows() -> None:
    frame = pd.DataFrame({"visits": [10, 10, 10], "person": [1, 2, 3]})
    table = ibis.memtable(frame, columns=["person", "visits"])
    assert table.to_pyarrow()["person"].to_pylist() == [10, 10, 10]
    assert Request({"n": Units()}, unit="person").run(Source.open(table), salt=b"s")["n"][0] == (1,)
    data = pyarrow.dataset.dataset(pa.table({"u": [1]}))
    refused(lambda: Source.open(ibis.memtable(data)), "Ibis table in memory of a frame", "InMemoryDataset")


def test_a_temporary_table_of_sqlite_that_hides_a_stored_one_is_refused(tmp_path: Path) -> None:
    """Ibis shows the temporary one, which no other connection sees."""
    path = tmp_path / "t.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE visits (u INTEGER)")
        connection.execute("INSERT INTO visits VALUES (1), (2)")
    connection.close()
    backend = ibis.sqlite.connect(path)
    assert values(sqlite.in_connection(backend.con, "visits"), "u") == [1, 2]
    for made in ("CREATE TEMP TABLE Visits (u INTEGER)", "CREATE TEMP VIEW visits AS SELECT 9 AS u"):
        backend.con.execute(made)
        refused(lambda: on_ibis.look_through(backend.table("visits")), "other connections see", "temporary", "CREATE")
        assert values(sqlite.in_connection(backend.con, "visits", "main"), "u") == [1, 2]
        backend.con.execute(f"DROP {made.split()[2]} temp.visits")
    backend.con.execute("CREATE TEMP TABLE other (u INTEGER)")
    refused(lambda: on_ibis.look_through(backend.table("other")), "other connections see", "temporary")


@pytest.mark.parametrize(
    "columns",
    [
        [{"U": [1, 1, 1], "u": [1, 2, 3], "u_1": [7, 7, 7]}],
        [{"U": [1, 2, 3], "v": [1, 2, 3]}, {"u": [4, 5, 6], "v": [1, 2, 3]}],
    ],
)
def test_columns_of_parquet_that_duckdb_takes_for_one_are_refused(columns: list[Any], tmp_path: Path) -> None:
    """DuckDB calls the second one u_1, which is another column of the file, or takes it for the first one."""
    for i, column in enumerate(columns):
        pq.write_table(pa.table(column), tmp_path / f"{i}.parquet")
    with duckdb.connect() as connection:
        for options in ("", ", union_by_name = true"):
            relation = connection.sql(f"FROM read_parquet('{tmp_path}/*.parquet'{options})")
            connection.execute(f"CREATE OR REPLACE VIEW v AS FROM read_parquet('{tmp_path}/*.parquet'{options})")
            for given in (relation, relation.select(relation.columns[1]), connection.view("v")):
                refused(lambda given=given: look_through(given), "more than capitals", "'U', 'u'", "pass the paths")
    assert {"U", "u"} <= set(Source.open(str(tmp_path / "*.parquet")).schema)


def test_a_folder_and_a_column_that_differ_in_capitals_are_refused(tmp_path: Path) -> None:
    (tmp_path / "Ward=1").mkdir()
    pq.write_table(pa.table({"ward": [1, 2]}), tmp_path / "Ward=1" / "a.parquet")
    with duckdb.connect() as connection:
        refused(lambda: look_through(connection.read_parquet(f"{tmp_path}/*/*.parquet")), "'Ward', 'ward'")


def test_a_lazy_frame_of_polars_tells_capitals_apart(tmp_path: Path) -> None:
    pq.write_table(pa.table({"U": [1, 1, 1], "u": [1, 2, 3], "u_1": [7, 7, 7]}), tmp_path / "a.parquet")
    frame = pl.scan_parquet(tmp_path / "a.parquet")
    for name in ("U", "u", "u_1"):
        assert values(Source.open(frame).engine._reader, name) == frame.collect()[name].to_list()  # type: ignore[attr-defined]

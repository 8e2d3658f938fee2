"""Every way in which a table reaches the library, and what each can carry."""

from __future__ import annotations

import csv
import functools
import inspect
import io
import json
import math
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq

import inbounds as ib

Columns = dict[str, str]
FAMILIES = {"int": "whole", "uint": "whole", "float": "real", "decimal": "real", "string": "text", "bool": "truth"}
DECLARED = {"whole": "integer", "real": "number", "text": "text", "truth": "boolean", "date": "date", "time": "time"}
_TYPES = {"string": pa.string(), "bool": pa.bool_(), "date32[day]": pa.date32(), "null": pa.null()}


def family(label: str) -> str:
    """What a type holds, in a word."""
    if label.startswith("timestamp"):
        return "instant" if "tz=" in label else "time"
    if label.startswith("date"):
        return "date"
    return FAMILIES.get(label.rstrip("0123456789(), ").replace("128", "").split("(")[0], "null")


def arrow_type(label: str) -> Any:
    """The Arrow type of which the label is the name."""
    if label in _TYPES:
        return _TYPES[label]
    inside = label[label.find("(") + 1 : -1] if "(" in label else label[label.find("[") + 1 : -1]
    if label.startswith("decimal128"):
        return pa.decimal128(*map(int, inside.split(",")))
    if label.startswith("timestamp"):
        unit, _, zone = inside.partition(", tz=")
        return pa.timestamp(unit, zone or None)
    return getattr(pa, label)()


def arrow(columns: Columns, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """The table in Arrow; nothing is checked, as a damaged writer would leave it."""
    made = {}
    for i, (name, label) in enumerate(columns.items()):
        given, kind = [row[i] for row in rows], arrow_type(label)
        if label == "int128":  # which Arrow does not have
            made[name] = pa.array([None if v is None else str(v) for v in given], pa.string())
        elif label == "string":
            octets = [v.encode("utf-8", "surrogatepass") if isinstance(v, str) else v for v in given]
            made[name] = pa.array(octets, pa.binary()).view(kind)
        elif label.startswith("decimal"):
            made[name] = _digits(given, kind)
        elif label == "date32[day]":
            made[name] = pa.array(given, pa.int32()).view(kind)
        elif label.startswith("timestamp"):
            made[name] = pa.array(given, pa.int64()).view(kind)
        else:
            made[name] = pa.array(given, kind)
    return pa.table(made)


def _digits(given: Sequence[Decimal | None], kind: Any) -> Any:
    """Decimals by their bits, which may have more digits than the type allows."""
    exact = Context(prec=80)
    whole = [0 if v is None else int(v.scaleb(kind.scale, exact)) for v in given]
    there = pa.array([v is not None for v in given], pa.bool_()).buffers()[1]
    bits = pa.py_buffer(b"".join(x.to_bytes(16, "little", signed=True) for x in whole))
    return pa.Array.from_buffers(kind, len(given), [there, bits])


def _chunked(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
    """Two rows to a chunk, some of them empty; text by categories, of which each chunk has its own."""
    parts = [rows[i : i + 2] for i in range(0, len(rows), 2)]
    tables = [arrow(columns, part) for group in parts or [[]] for part in ([], group)]
    made = {}
    for name, label in columns.items():
        chunks = [chunk for table in tables for chunk in table.column(name).chunks or [table.column(name)]]
        chunks = [chunk.combine_chunks() if isinstance(chunk, pa.ChunkedArray) else chunk for chunk in chunks]
        made[name] = pa.chunked_array([c.dictionary_encode() for c in chunks] if label == "string" else chunks)
    return pa.table(made)


def _objects(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
    """Python's own values, as pandas keeps them where nobody said what they are."""
    return pd.DataFrame(
        {name: pd.Series([row[i] for row in rows], dtype=object) for i, name in enumerate(columns)}
    )  # fmt: skip


@functools.cache
def parameters(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


@dataclass(frozen=True)
class Format:
    """A way to hand over a table.

    ``write`` puts it into a folder and returns what ``ib.dataset`` is given. ``types`` are the Arrow types it has.
    ``bytes``: text may be bytes that are no UTF-8; ``raw``: and other damage to a file of text; ``text``: text may hold
    control characters; ``wide``: whole numbers may have 128 bits; ``far``: dates and times may lie outside the years 1
    to 9999; ``digits``: decimals may have more than their type allows; ``declared``: the columns' types have to be
    told; ``loose``: any text may stand where a number should. ``more`` has texts that stand for odd values of some
    types.
    """

    name: str
    write: Callable[[Columns, list[tuple[Any, ...]], Path], Any]
    without: tuple[str, ...] = ()
    bytes: bool = False
    text: bool = True
    wide: bool = False
    far: bool = True
    digits: bool = False
    declared: bool = False
    loose: bool = False
    raw: tuple[bytes, ...] = ()
    more: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def holds(self, label: str) -> bool:
        if label == "int128":
            return self.wide
        return not any(label.startswith(start) or f", {start}" in label for start in self.without)

    def carries(self, label: str, value: Any) -> bool:
        if value is None or self.far:
            return True
        if family(label) == "date":
            return value in self.more.get("date", ()) or (isinstance(value, int) and -719_162 <= value <= 2_932_896)
        if family(label) in ("time", "instant") and isinstance(value, int):
            each = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[label[10:12].rstrip("],")]
            return -719_162 * 86_400 <= value // each <= 2_932_896 * 86_400
        return self.text or not isinstance(value, str) or "\x00" not in value

    def options(self, columns: Columns) -> dict[str, Any]:
        """What ``ib.dataset`` has to be told."""
        if not self.declared:
            return {}
        known = parameters(ib.dataset)
        known_texts = self.name.startswith("csv") and len(columns) % 2  # what is not said is text there
        said = {
            "types": {
                n: "wide" if t == "uint64" else DECLARED[family(t)]
                for n, t in columns.items()
                if not (known_texts and family(t) == "text")
            }
        }
        return said | ({"header": True} if "header" in known and self.name.startswith("csv") else {})


# ---------------------------------------------------------------- text

_EPOCH = 719_163


def cell(label: str, value: Any) -> Any:
    """A value as it is written in a text file: bytes, or None."""
    if value is None or isinstance(value, bytes):
        return value
    kind = family(label)
    if isinstance(value, str):
        return value
    if kind == "truth":
        return "true" if value else "false"
    if kind == "date":
        return day(value)
    if kind == "time":
        each = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[label[10:12].rstrip("],")]
        seconds, part = divmod(value, each)
        days, seconds = divmod(seconds, 86_400)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return f"{day(days)} {clock}" + (f".{part * 10**9 // each:09}".rstrip("0") if part else "")
    return repr(value) if isinstance(value, float) else str(value)


def spelled(label: str, value: Any, i: int) -> Any:
    """The same, in one of the ways in which whole numbers, times and truth values can be written."""
    found, kind = cell(label, value), family(label)
    if not isinstance(found, str) or isinstance(value, str) or i % 3 == 0:
        return found
    if kind == "whole":
        return f"-0{found[1:]}" if found.startswith("-") else ("+", "0", "00")[i % 3] + found
    if kind == "time":
        return found.replace(" ", "T") if i % 3 == 1 else found.removesuffix(" 00:00:00")
    return {"true": "YES", "false": "0"}[found] if kind == "truth" else found


def day(days: int) -> str:
    """A day since 1970 in ISO's form, in any year."""
    z = days + 719_468
    era, of_era = divmod(z, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    date = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return f"{year + era * 400 + (month <= 2):04}-{month:02}-{date:02}"


#: Fields that make a record malformed by itself, whatever comes after it.
_UNQUOTED = (b'"a"b', b"1,2,3,4,5,6,7", b'a"b', b"", b'"never ends', b'"two\nlines"and')


def _csv(quoting: int, line: str = "\n", suffix: str = ".csv") -> Any:
    def write(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
        text = io.StringIO(newline="")
        writer = csv.writer(text, quoting=quoting, lineterminator=line)
        writer.writerow(columns)
        for i, row in enumerate(rows):
            shown = [spelled(label, v, i) for label, v in zip(columns.values(), row, strict=True)]
            if any(isinstance(v, bytes) and v in _UNQUOTED for v in shown):  # as they are
                text.write(",".join(v.decode("latin-1") if isinstance(v, bytes) else "1" for v in shown) + line)
                continue
            writer.writerow(
                "" if v is None else v.decode("latin-1") if isinstance(v, bytes) else _octets(v) for v in shown
            )
        path = folder / f"t{suffix}"
        path.write_bytes(text.getvalue().encode("latin-1"))
        return path

    return write


def _octets(text: str) -> str:
    """Text as one character for each of its bytes, so that it may stand beside bytes that are no text."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def _csv_arrow(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
    pyarrow.csv.write_csv(arrow(columns, rows), folder / "t.csv")
    return folder / "t.csv"


def _csv_pandas(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
    arrow(columns, rows).to_pandas(types_mapper=pd.ArrowDtype).to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def _json(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
    def value(label: str, v: Any) -> Any:
        if isinstance(v, float) and not math.isfinite(v):
            return str(v)
        if isinstance(v, Decimal):
            return float(v)
        if isinstance(v, bytes):
            return None
        if isinstance(v, str) and v.startswith("json:"):
            return json.loads(v[5:])
        return (
            v
            if isinstance(v, bool | int | float | str | None) and family(label) not in ("date", "time")
            else cell(label, v)
        )

    lines = (
        json.dumps({name: value(label, v) for (name, label), v in zip(columns.items(), row, strict=True)})
        for row in rows
    )
    path = folder / "t.jsonl"
    broken = (b"".join(v for v in row if isinstance(v, bytes)) for row in rows)
    octets = (more or line.encode("utf-8", "surrogatepass") for more, line in zip(broken, lines, strict=True))
    path.write_bytes(b"".join(line + b"\n" for line in octets))
    return path


# ---------------------------------------------------------------- Parquet and databases


def _parquet(**options: Any) -> Any:
    def write(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
        pq.write_table(arrow(columns, rows), folder / "t.parquet", **options)
        return folder / "t.parquet"

    return write


def _parquet_polars(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
    _polars(columns, rows, folder).write_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def _parquet_duckdb(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
    stored(columns, rows).write_parquet(str(folder / "t.parquet"))
    return folder / "t.parquet"


def _connected(columns: Columns, rows: list[tuple[Any, ...]], where: Any = ":memory:") -> Any:
    """A DuckDB with the table."""
    connection = duckdb.connect(str(where))
    given = arrow(columns, rows)  # noqa: F841  DuckDB finds it by its name
    chosen = (f"CAST({n} AS HUGEINT) AS {n}" if label == "int128" else n for n, label in columns.items())
    connection.execute(f"CREATE TABLE t AS SELECT {', '.join(chosen)} FROM given")
    return connection


def stored(columns: Columns, rows: list[tuple[Any, ...]]) -> Any:
    """A table of DuckDB, as a relation."""
    return _connected(columns, rows).table("t")


def _duckdb_file(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
    path = folder / "t.duckdb"
    path.unlink(missing_ok=True)
    _connected(columns, rows, path).close()
    return (path, "t")


def _over_parquet(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
    pq.write_table(arrow(columns, rows), folder / "t.parquet")
    return duckdb.connect().read_parquet(str(folder / "t.parquet"))


def _ibis_duckdb(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
    import ibis

    return ibis.duckdb.from_connection(_connected(columns, rows)).table("t")


def _ibis_polars(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
    import ibis

    return ibis.polars.connect({"t": _polars(columns, rows, folder).lazy()}).table("t")


_SQL = {"whole": "BIGINT", "real": "DOUBLE PRECISION", "text": "TEXT", "truth": "BOOLEAN"}


def _ibis_sqlite(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
    import ibis

    path = folder / "t.sqlite"
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE t ({', '.join(f'{n} {_SQL[family(t)]}' for n, t in columns.items())})")
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", rows)
    connection.commit()
    connection.close()
    return ibis.sqlite.connect(path).table("t")


# ---------------------------------------------------------------- frames


def _polars(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
    return pl.from_arrow(arrow(columns, rows))


def _pandas(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
    return arrow(columns, rows).to_pandas(types_mapper=pd.ArrowDtype)


NULLABLE = {
    pa.int64(): pd.Int64Dtype(),
    pa.int8(): pd.Int8Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}
NULLABLE |= {pa.string(): pd.StringDtype()}


def _pandas_categories(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
    """Text by categories, in the order of the rows."""
    frame = _pandas(columns, rows, folder)
    for name, label in columns.items():
        if label == "string":
            frame[name] = frame[name].astype(object).where(frame[name].notna(), None).astype("category")
    return frame


def _pandas_nullable(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
    return arrow(columns, rows).to_pandas(types_mapper=lambda t: NULLABLE.get(t, pd.ArrowDtype(t)))


#: Lines that are no objects of JSON, or end too soon.
_BROKEN = (b"{", b'{"u": 1, "g": ', b"[]", b"1", b"null", b"nonsense", b'{"u": "', b"{}", b"\xff\xfe{}")

#: Values of another kind than the column's.
_OTHER = (
    "json:true",
    "json:[1]",
    'json:{"a": 1}',
    "json:false",
    "json:1e400",
    "json:12.5",
    "json:123456789012345678901",
)

_ALL = (
    Format("arrow", lambda c, r, _: arrow(c, r), bytes=True, digits=True),
    Format("arrow chunks", _chunked, digits=True),
    Format("pandas objects", _objects, without=("null", "tz=", "date", "timestamp"), declared=True, loose=True),
    Format(
        "arrow batch", lambda c, r, _: pa.RecordBatch.from_struct_array(arrow(c, r).to_struct_array().combine_chunks())
    ),
    Format("pandas", _pandas),
    Format("pandas nullable", _pandas_nullable, without=("null",)),
    Format("pandas categories", _pandas_categories, without=("null",)),
    Format("polars", _polars),
    Format("polars lazy", lambda c, r, f: _polars(c, r, f).lazy()),
    Format("parquet pyarrow", _parquet(), bytes=True),
    Format("parquet row groups", _parquet(row_group_size=3), bytes=True),
    Format("parquet no statistics", _parquet(write_statistics=False, use_dictionary=False), bytes=True),
    Format("parquet polars", _parquet_polars, without=("null",)),
    Format("parquet duckdb", _parquet_duckdb, without=("null",)),
    Format(
        "csv",
        _csv(csv.QUOTE_MINIMAL),
        without=("null", "tz="),
        bytes=True,
        declared=True,
        loose=True,
        raw=_UNQUOTED,
    ),
    Format("csv quoted", _csv(csv.QUOTE_ALL, "\r\n"), without=("null", "tz="), bytes=True, declared=True, loose=True),
    Format("csv pyarrow", _csv_arrow, without=("null", "tz=", "decimal", "timestamp"), far=False, declared=True),
    Format("csv pandas", _csv_pandas, without=("null", "tz=", "timestamp"), far=False, declared=True),
    Format(
        "json lines",
        _json,
        without=("null", "tz="),
        bytes=True,
        declared=True,
        loose=True,
        raw=_BROKEN,
        more=dict.fromkeys(("whole", "real", "text", "date", "time"), _OTHER),
    ),
    Format("duckdb file", _duckdb_file, without=("null",), wide=True),
    Format("duckdb relation", lambda c, r, _: stored(c, r), without=("null",), wide=True),
    Format("duckdb over parquet", _over_parquet, bytes=True),
    Format("arrow dataset", lambda c, r, _: pa.dataset.dataset(arrow(c, r)), bytes=True),
    Format("ibis duckdb", _ibis_duckdb, without=("null",), wide=True),
    Format("ibis sqlite", _ibis_sqlite, without=("null", "decimal", "uint64", "timestamp", "date"), loose=True),
    Format("ibis polars", _ibis_polars, without=("null",)),
)
FORMATS = {f.name: f for f in _ALL}
LOCAL = tuple(FORMATS)


# ---------------------------------------------------------------- engines that have to be started


def spark(session: Any) -> Format:
    """Parquet, as a frame of Spark."""

    def write(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
        return session.read.parquet(str(_parquet()(columns, rows, folder)))

    return Format("spark", write, without=("uint", "null", "timestamp[s", "timestamp[ms", "timestamp[ns"), bytes=True)


def postgres(url: str) -> Format:
    """A table of PostgreSQL, by Ibis."""
    import ibis
    import psycopg

    place = urlsplit(url)
    connection = psycopg.connect(url.partition("?")[0], autocommit=True)
    database = ibis.postgres.connect(
        host=place.hostname, port=place.port, user=place.username, database=place.path.lstrip("/")
    )
    types = _SQL | {"date": "DATE", "time": "TIMESTAMP", "instant": "TIMESTAMPTZ"}

    def kind(label: str) -> str:
        exact = "NUMERIC" + label.removeprefix("decimal128") if label.startswith("decimal") else "NUMERIC(20)"
        return exact if label.startswith(("decimal", "uint64")) else types[family(label)]

    def write(columns: Columns, rows: list[tuple[Any, ...]], folder: Path) -> Any:
        connection.execute("DROP TABLE IF EXISTS t")
        connection.execute(f"CREATE TABLE t ({', '.join(f'{n} {kind(t)}' for n, t in columns.items())})")
        shown = [[cell(t, v) for t, v in zip(columns.values(), row, strict=True)] for row in rows]
        with connection.cursor().copy("COPY t FROM STDIN") as copy:
            for row in shown:
                copy.write_row(row)
        return database.table("t")

    ends = {"date": ("infinity", "-infinity"), "time": ("infinity", "-infinity")}
    return Format(
        "postgres",
        write,
        without=("null", "timestamp[us, tz", "timestamp[n", "timestamp[ms, tz"),
        text=False,
        far=False,
        more=ends,
    )

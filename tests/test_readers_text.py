"""Readers of CSV and JSON against plain Python, and what one record can do to the others: nothing."""

from __future__ import annotations

import codecs
import csv
import encodings.aliases
import gzip
import io
import itertools
import json
import random
import string
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inbounds.errors import InboundsError, MissingColumn, ParameterError, ParameterTypeError, QueryFailed
from inbounds.tables import Source
from inbounds.tables.readers import csv as csv_module
from inbounds.tables.readers import text
from inbounds.tables.readers.csv import CSV
from inbounds.tables.readers.json import JSON

Row = list[bytes | None]

CHECKED = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def rows_of(reader: CSV | JSON, columns: Sequence[str] | None = None) -> list[Row]:
    """All rows, by a reader whose batches must have one schema."""
    names = list(reader.fields) if columns is None else list(columns)
    found: list[Row] = []
    for batch in reader.batches(names):
        assert batch.schema == pa.schema([(name, reader.fields[name].arrow) for name in names])
        batch.validate(full=True)
        found += map(list, zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return found


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Any]:
    """Writes a file and gives its path."""
    numbers = itertools.count()

    def write(content: bytes, name: str = "x.csv") -> str:
        path = tmp_path / f"{next(numbers)}-{name}"
        path.write_bytes(content)
        return str(path)

    return write


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the sizes of what is read at once, so that few bytes have many seams."""

    def set_sizes(piece: int, window: int, single: int, limit: int) -> None:
        monkeypatch.setattr(text, "_PIECE", piece)
        monkeypatch.setattr(text, "LIMIT", limit)
        monkeypatch.setattr(csv_module, "_WINDOW", window)
        monkeypatch.setattr(csv_module, "_MOST_SINGLE", single)

    return set_sizes


# ---------------------------------------------------------------- the definition, one character at a time


def record(data: bytes, start: int, width: int) -> tuple[int, list[bytes] | None]:
    """The end of a record and its fields, as docs/text-files.md has it; ``data`` ends with a line end."""
    line = data.index(b"\n", start) + 1
    fields, field, state, loose = [], b"", "start", False
    at = start
    while at < len(data):
        c = data[at : at + 1]
        at += 1
        if state == "start":
            field, state = b"", "quoted" if c == b'"' else "plain"
            if state == "quoted":
                continue
        if state == "plain":
            if c in b",\n":
                fields.append(field.removesuffix(b"\r") if c == b"\n" else field)
                state = "start"
            else:
                field, loose = field + c, loose or c == b'"'
        elif state == "quoted":
            if c != b'"':
                field += c
            elif data[at : at + 1] == b'"':
                field, at = field + c, at + 1
            else:
                state = "closed"
        elif c in b",\n":
            fields.append(field)
            state = "start"
        elif data[at - 1 : at + 1] != b"\r\n":
            return line, None
        if state == "start" and c == b"\n":
            good = len(fields) == width and (at == line or not loose)
            return (at, fields) if good else (line, None)
    return line, None


def reference(data: bytes, width: int, limit: int = 2**24) -> list[Row]:
    if not data.endswith(b"\n") and data:
        data += b"\n"
    rows: list[Row] = []
    at = 0
    while at < len(data):
        start = at
        at, fields = record(data, start, width)
        if width == 1 or data[start:at] not in (b"\n", b"\r\n"):
            good = fields if at - start <= limit else None
            rows.append([value or None for value in good] if good else [None] * width)
    return rows


def types(width: int) -> dict[str, str]:
    return dict.fromkeys(string.ascii_lowercase[:width], "text")


PARTS = [b"a", b"", b'""', b'"a,"', b'"a\nb"', b'"x""y"', b'"\r\n"', b'"a', b'a"b', b"\r", b"a\r", b'"a"b', b'"",']
SOUP = st.lists(st.sampled_from([b'"', b'"', b",", b"\n", b"\r", b"a", b"\0", b"\xff", b"\r\n", b'""']), max_size=60)
FIELDS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=3)
RECORDS = st.lists(st.tuples(FIELDS, st.sampled_from([b"\n", b"\r\n"])))


@CHECKED
@given(
    st.one_of(SOUP.map(b"".join), RECORDS.map(lambda rows: b"".join(b",".join(row) + end for row, end in rows))),
    st.integers(1, 3),
    st.integers(1, 40),
    st.integers(1, 60),
    st.sampled_from([1, 4]),
    st.sampled_from([12, 30, 2**24]),
)
def test_every_text_is_read_as_defined(
    file: Any, small: Any, data: bytes, width: int, piece: int, window: int, single: int, limit: int
) -> None:
    small(piece, window, single, limit)
    reader = CSV([file(data)], types(width), header=False)
    assert rows_of(reader) == reference(data, width, limit)


@CHECKED
@given(SOUP.map(b"".join), st.integers(1, 3), st.integers(1, 60))
def test_without_a_quote_every_line_is_a_record(file: Any, small: Any, data: bytes, width: int, window: int) -> None:
    small(7, window, 2, 2**24)
    lines = [line.removesuffix(b"\r") for line in data.removesuffix(b"\n").split(b"\n")] if data else []
    expected: list[Row] = []
    for line in lines:
        fields = line.split(b",")
        if width == 1 or line:
            expected.append([value or None for value in fields] if len(fields) == width else [None] * width)
    assert rows_of(CSV([file(data)], types(width), header=False, quote=None)) == expected


# ---------------------------------------------------------------- what writers write

VALUES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.text(st.sampled_from('",\n\r\t; a\0é'), max_size=6),
)
TABLES = st.lists(st.tuples(VALUES, VALUES), max_size=12)
SIZES = st.tuples(st.integers(1, 50), st.integers(1, 90))


def numbered(rows: Sequence[tuple[str, str]]) -> tuple[list[str], list[tuple[str, str, int]]]:
    """A table whose last column is no text: a CR at its end, which some do not quote, would be part of the line end."""
    return ["a", "b", "n"], [(a, b, i) for i, (a, b) in enumerate(rows)]


def by_csv(path: str, rows: Sequence[tuple[str, str]], **options: Any) -> None:
    names, full = numbered(rows)
    with open(path, "w", newline="", encoding="utf-8") as out:
        csv.writer(out, **options).writerows([names, *full])


def by_pandas(path: str, rows: Sequence[tuple[str, str]]) -> None:
    names, full = numbered(rows)
    pd.DataFrame(full, columns=names).to_csv(path, index=False)


def by_arrow(path: str, rows: Sequence[tuple[str, str]]) -> None:
    names, full = numbered(rows)
    columns = [[row[i] for row in full] for i in range(3)]
    kinds = [pa.string(), pa.string(), pa.int64()]
    pa.csv.write_csv(pa.table([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names), path)


def by_polars(path: str, rows: Sequence[tuple[str, str]]) -> None:
    names, full = numbered(rows)
    schema = dict(zip(names, [pl.String, pl.String, pl.Int64], strict=True))
    pl.DataFrame(full, schema=schema, orient="row").write_csv(path)


def by_duckdb(path: str, rows: Sequence[tuple[str, str]]) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (a VARCHAR, b VARCHAR, n BIGINT)")
        if rows:
            connection.executemany("INSERT INTO t VALUES (?, ?, ?)", numbered(rows)[1])
        connection.execute(f"COPY t TO '{path}' (FORMAT csv, HEADER)")


WRITERS = {
    "csv": by_csv,
    "csv with LF": lambda path, rows: by_csv(path, rows, lineterminator="\n"),
    "csv, all quoted": lambda path, rows: by_csv(path, rows, quoting=csv.QUOTE_ALL),
    "pandas": by_pandas,
    "pyarrow": by_arrow,
    "polars": by_polars,
    "duckdb": by_duckdb,
}


@pytest.mark.parametrize("writer", WRITERS)
@settings(CHECKED, max_examples=40)
@given(rows=TABLES, sizes=SIZES)
def test_what_a_writer_writes_is_read_exactly(
    tmp_path: Path, small: Any, writer: str, rows: list[tuple[str, str]], sizes: tuple[int, int]
) -> None:
    path = str(tmp_path / "x.csv")
    WRITERS[writer](path, rows)
    small(*sizes, 4, 2**24)
    reader = CSV([path], {"n": "integer"})
    expected = [[a.encode() or None, b.encode() or None, str(i).encode()] for i, (a, b) in enumerate(rows)]
    got = sorted(rows_of(reader), key=lambda row: int(row[2] or 0))
    assert got == expected
    assert rows_of(reader, ["n", "a"]) == [[row[2], row[0]] for row in rows_of(reader)]
    assert [reader.fields[name].declared for name in ("a", "b", "n")] == ["text", "text", "integer"]


@CHECKED
@given(st.lists(st.binary(max_size=8), max_size=12), SIZES, st.sampled_from("\t;|\x01 "), st.sampled_from("\"'~"))
def test_any_bytes_come_through(
    file: Any, small: Any, values: list[bytes], sizes: tuple[int, int], delimiter: str, quote: str
) -> None:
    d, q = delimiter.encode(), quote.encode()
    small(*sizes, 4, 2**24)
    lines = [q + value.replace(q, q + q) + q + d + b"1" for value in values]
    reader = CSV([file(b"\r\n".join([b"a" + d + b"b", *lines]))], delimiter=delimiter, quote=quote)
    assert rows_of(reader) == [[value or None, b"1"] for value in values]


# ---------------------------------------------------------------- one record decides about itself only

LIMIT = 400
OTHERS = [b"1,x,y\n", b'2,"a, b","say ""hi"""\n', b'3,"two\nlines",\r\n', b'4,"",\xff\n', b'5,"q","r"\n', b"6,p,q\n"]
ODD = {
    "a comma too many": b"9,a,b,c\n",
    "a comma too few": b"9,a\n",
    "many fields": b"9" + b",a" * 90 + b"\n",
    "only commas": b",,\n",
    "an open quote": b'9,"a,b\n',
    "an open quote at the end": b'9,a,"\n',
    "an open quote at the beginning": b'"9,a,b\n',
    "quotes inside": b'9,5" pipe,b\n',
    "quotes after a field": b'9,"a"b,c\n',
    "an open quote with doubled ones": b'9,"a"",b\n',
    "three quotes": b'9,""",b\n',
    "a field of a comma": b'9,",",b\n',
    "a bare CR": b"9,a\rb,c\n",
    "CR at each end": b"\r9,\ra\r,\rb\r\n",
    "CR LF": b"9,a,b\r\n",
    "a quoted line end": b'9,"a\r\nb","c\nd"\n',
    "quoted lines that look like rows": b'9,"a\n7,x,y\n8,x,y\n",b\n',
    "NUL": b"9,\0,\0\0\n",
    "no UTF-8": b"\xff\xfe,\xc3,\xed\xa0\x80\n",
    "half a character before the delimiter": b"9,\xf0\x9f,\xe2\n",
    "a mark of the byte order": b"\xef\xbb\xbf9,a,b\n",
    "a long value": b"9," + b"a" * 3 * LIMIT + b",b\n",
    "a long quoted value": b'9,"' + b"a\n" * LIMIT + b'",b\n',
    "a long quoted value with quotes": b'9,"' + b'""\n' * LIMIT + b'",b\r\n',
    "a long quoted value that looks like rows": b'9,"' + b"7,x,y\n" * LIMIT + b'",b\n',
    "a long field before an open quote": b"9," + b"a" * LIMIT + b',"b\n',
    "a long field before quotes after a field": b"9," + b"a" * LIMIT + b',"b"c\n',
    "a long value before CR LF": b'9,b,"' + b"a\n" * LIMIT + b'"\r\n',
    "a long value and quotes inside": b'9,"' + b"a\n" * LIMIT + b'",b"c\n',
    "as long as can be": b"9," + b"a" * (LIMIT - 5) + b",b\n",
    "longer by one": b"9," + b"a" * (LIMIT - 4) + b",b\n",
    "a long record of many fields": b"9,a" * LIMIT + b"\n",
    "only a quote": b'"\n',
    "only spaces": b"   \n",
    "an escape": b'9,"a\\",b\n',
    "a comment": b"#9,a,b\n",
    "what was NULL elsewhere": b"\\N,NULL,NA\n",
}


def subsequence(rows: list[Row], of: list[Row]) -> bool:
    rest = iter(of)
    return all(any(row == other for other in rest) for row in rows)


@pytest.mark.parametrize("window", [16, 64, 4096])
@pytest.mark.parametrize("kind", ODD)
def test_one_odd_record_changes_no_other(file: Any, small: Any, kind: str, window: int) -> None:
    small(11, window, 4, LIMIT)
    rng = random.Random(f"{kind} {window}")
    for place in (0, 1, 20, 40):
        lines = [rng.choice(OTHERS) for _ in range(40)]
        without = rows_of(CSV([file(b"a,b,c\n" + b"".join(lines))]))
        lines.insert(place, ODD[kind])
        with_it = rows_of(CSV([file(b"a,b,c\n" + b"".join(lines))]))
        assert len(without) == 40
        assert with_it[:place] == without[:place]
        more = len(with_it) - len(without)
        assert with_it[place + more :] == without[place:]
        assert with_it[place : place + more] == reference(ODD[kind], 3, LIMIT)
        assert more == (
            LIMIT + 1 if kind == "a long value and quotes inside" else 1
        )  # as many lines, if not well-formed
        assert without[0] == reference(lines[1 if place == 0 else 0], 3)[0]


def test_an_open_quote_at_the_end_of_the_file(file: Any) -> None:
    path = file(b'a,b\n1,x\n2,"open\n3,y\n4,"z"')
    assert rows_of(CSV([path])) == [[b"1", b"x"], [None, None], [b"3", b"y"], [b"4", b"z"]]


def test_a_quoted_value_that_looks_like_the_header_or_a_file_is_a_value(file: Any) -> None:
    inner = b'a,b\n1,"x"\n'
    path = file(b'a,b\n"' + inner.replace(b'"', b'""') + b'",2\n')
    assert rows_of(CSV([path])) == [[inner, b"2"]]


def test_where_such_records_are_frequent_the_answer_is_the_same(file: Any, small: Any) -> None:
    data = b"".join(random.Random(4).choice([b'1,"x\n', b'1,"a"\n', b'1,5" x\n', b'1,"b\nc"\n']) for _ in range(4000))
    expected = reference(data, 2)
    assert rows_of(CSV([file(data)], types(2), header=False)) == expected
    small(2**12, 2**11, 64, 2**10)
    assert rows_of(CSV([file(data)], types(2), header=False)) == expected


def test_a_record_can_have_16_mib_and_no_more(file: Any) -> None:
    exact = b"1," + b"x" * (2**24 - 3)
    quoted = b'1,"' + b"2,x\n" * 2**22 + b'"'
    path = file(b"a,b\n2,y\n" + b"".join(line + b"\n" for line in (exact, exact + b"x", exact * 2, quoted)) + b"3,z\n")
    found = rows_of(CSV([path]))
    assert [[a, len(b or b"")] for a, b in found] == [[b"2", 1], [b"1", 2**24 - 3], *[[None, 0]] * 3, [b"3", 1]]


def test_an_open_quote_is_looked_into_to_the_end_and_costs_its_line_only(file: Any) -> None:
    many = b"".join(b"%d,%d\n" % (i, i) for i in range(2_000_000))
    reader = CSV([file(b'a,b\n1,"x\n' + many)])
    batches = list(reader.batches(["a"]))
    assert sum(batch.num_rows for batch in batches) == 2_000_001
    assert [sum(batch.column(0).null_count for batch in batches), batches[-1].column(0)[-1].as_py()] == [1, b"1999999"]


def test_blank_lines_are_rows_of_one_column_only(file: Any) -> None:
    assert rows_of(CSV([file(b"a,b\n\n1,2\n\r\n\n3,4\n\n")])) == [[b"1", b"2"], [b"3", b"4"]]
    assert rows_of(CSV([file(b'a\n\n1\n\r\n""\n2')])) == [[None], [b"1"], [None], [None], [b"2"]]


@pytest.mark.parametrize("content", [b"a,b", b"a,b\n", b"a,b\r\n", b'"a","b"\n', b"\xef\xbb\xbfa,b\n"])
def test_a_header_by_itself_is_a_table_without_rows(file: Any, content: bytes) -> None:
    reader = CSV([file(content)])
    assert list(reader.fields) == ["a", "b"]
    assert rows_of(reader) == []


def test_rows_can_be_counted_without_columns_and_read_again(file: Any) -> None:
    csv_reader = CSV([file(b'a,b\n1,2\n3\n4,"5\n"\n')])
    json_reader = JSON([file(b'{"a": 1}\n\n{}\nno\n')], {"a": "integer"})
    for reader in (csv_reader, json_reader):
        for _ in range(2):
            assert sum(batch.num_rows for batch in reader.batches([])) == 3
            assert len(rows_of(reader)) == 3


def test_reading_is_lazy(file: Any) -> None:
    path = file(b"a,b\n1,2\n")
    batches = CSV([path]).batches(["a"])
    Path(path).write_bytes(b"a,b\n3,4\n")
    assert next(batches).to_pylist() == [{"a": b"3"}]


# ---------------------------------------------------------------- headers

SECRET = "Ada Lovelace"


def refused(error: type[InboundsError], says: str, *args: Any, **options: Any) -> None:
    with pytest.raises(error, match=says) as found:
        CSV(*args, **options)
    assert SECRET not in str(found.value)
    assert found.value.__context__ is None or SECRET not in str(found.value.__context__)


@pytest.mark.parametrize("header", [None, True])
def test_a_first_record_that_names_no_columns_is_refused(file: Any, header: bool | None) -> None:
    words = {
        b"": "a name for each column",
        b"\n1,2\n": "names of columns",
        b",\n1,2\n": "names of columns",
        b"a,,b,\n": "different names",
        b'a,"b\n1,2\n': "a name for each column",
        b'"a";"b"\n1;2\n': "Pass delimiter= where it is not a comma",
        b"a,b\r1,2\r": "no CR by itself",
        b"a,bcd\0e\n1,2\n": "without the character 0 in the names",
        "б,в\n1,2\n".encode("utf-16-le"): 'encoding="utf-16"',
        "a,b\n1,2\n".encode("utf-16"): 'encoding="utf-16"',
        "a,b\n1,2\n".encode("utf-16-be"): 'encoding="utf-16"',
        b"\xfe\xff" + "a,b\n1,2\n".encode("utf-16-be"): 'encoding="utf-16"',
        "a,b\n1,2\n".encode("utf-32"): 'encoding="utf-16"',
        "Größe,b\n1,2\n".encode("latin-1"): 'encoding="latin-1"',
    }
    for content, says in words.items():
        path = file(content)
        refused(ParameterError, says, [path], header=header)
        refused(ParameterError, path[:60], [path], header=header)  # of a long one the beginning


def test_a_byte_order_is_marked_or_said(file: Any) -> None:
    for codec in ("utf-16", "utf-32"):
        for order in ("le", "be"):
            path = file("a\n1\n".encode(f"{codec}-{order}"))
            refused(ParameterError, f'As "{codec}-le" or "{codec}-be"', [path], encoding=codec)
            refused(ParameterError, "begins without a mark", [path], {"a": "text"}, encoding=codec, header=False)
            assert rows_of(CSV([path], encoding=f"{codec}-{order}")) == [[b"1"]]
            marked = file("\ufeffa\n1\n".encode(f"{codec}-{order}"))
            assert rows_of(CSV([marked], encoding=codec)) == [[b"1"]]
        # A table without rows may be a file without a mark.
        empty = CSV([file(b"")], {"a": "text"}, encoding=codec, header=False)
        empty.ready()
        assert rows_of(empty) == []


def test_a_first_record_is_shown_to_nobody(file: Any) -> None:
    path = file(f"{SECRET},{SECRET},36\n".encode())
    refused(ParameterError, "different names", [path])
    path = file(f"{SECRET},36\n".encode())
    refused(MissingColumn, "header=False", [path], {"name": "text", "36": "integer"})
    refused(ParameterError, "same names", [path, file(b"name,age\n")])
    reader = CSV([path])
    assert not reader.names_public
    for public in (CSV([path], header=True), CSV([path], {"name": "text", "age": "integer"}, header=False)):
        assert public.names_public
    with pytest.raises(MissingColumn, match="Did you mean 'Name'"):
        CSV([file(b"Name,Age\n")], {"name": "text"}, header=True)
    with pytest.raises(ParameterError, match="'Age'"):
        CSV([file(b"Age,Age\n")], header=True)


def test_without_a_header_types_names_the_columns(file: Any) -> None:
    path = file(b"Ada,36\nBob,\n")
    reader = CSV([path], {"name": "text", "age": "integer"}, header=False)
    assert list(reader.fields) == ["name", "age"]
    assert rows_of(reader) == [[b"Ada", b"36"], [b"Bob", None]]
    refused(ParameterError, "types must be given", [path], header=False)
    # Whatever the rows are, also such as would be no header.
    for content in (b"", b"\xff\xfe\0", b"\n\n", b'"', b"a,a\n"):
        CSV([file(content)], {"name": "text", "age": "integer"}, header=False).ready()


def test_files_of_one_table(file: Any) -> None:
    paths = [file(b"a,b\n1,2\n3,4"), file(b"b,a\n5,6\n"), file(b"a\tb\n7\t8\n", "x.tsv")]
    reader = CSV(paths, {"b": "integer"})
    assert rows_of(reader) == [[b"1", b"2"], [b"3", b"4"], [b"6", b"5"], [b"7", b"8"]]
    assert reader.what == "3 files of CSV"
    assert rows_of(CSV([paths[0], paths[0]]), ["a"]) == [[b"1"], [b"3"]] * 2
    refused(ParameterError, "same names", [paths[0], file(b"a,b,c\n")])
    # What further records look like does not matter.
    assert len(rows_of(CSV([paths[0], file(b"a,b\n1,2,3\n")]))) == 3


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"delimiter": ";;"}, ParameterError, "one ASCII character"),
        ({"delimiter": ""}, ParameterError, "one ASCII character"),
        ({"delimiter": "\n"}, ParameterError, "one ASCII character"),
        ({"delimiter": "§"}, ParameterError, "one ASCII character"),
        ({"delimiter": 7}, ParameterTypeError, "one ASCII character"),
        ({"delimiter": '"'}, ParameterError, "another character than the delimiter"),
        ({"quote": "\r"}, ParameterError, "one ASCII character"),
        ({"quote": ""}, ParameterError, "one ASCII character"),
        ({"quote": ","}, ParameterError, "another character"),
        ({"header": 1}, ParameterTypeError, "True, False or None"),
        ({"encoding": "utf-7"}, ParameterError, "without shifts"),
        ({"encoding": "nonsense"}, ParameterError, "known to Python"),
        ({"encoding": "a\0b"}, ParameterError, "known to Python"),
        ({"encoding": "base64"}, ParameterError, "known to Python"),
        ({"encoding": "unicode_escape"}, ParameterError, "without shifts"),
        ({"encoding": None}, ParameterTypeError, "the name of an encoding"),
    ],
)
def test_options_that_mean_nothing(file: Any, options: dict[str, Any], error: type[InboundsError], says: str) -> None:
    refused(error, says, [file(b"a,b\n")], **options)


@pytest.mark.parametrize("character", [c for c in map(chr, range(128)) if c not in "\r\nxy12"])
def test_every_ascii_character_can_be_delimiter_or_quote(file: Any, character: str) -> None:
    c = character.encode()
    if character != '"':
        data = b"x%by\n1%b%b\n" % (c, c, b'"2' + c + b'"')
        assert rows_of(CSV([file(data)], delimiter=character)) == [[b"1", b"2" + c]]
    if character != ",":
        data = b"x,y\n1,%b2,%b%b%b\n" % (c, c, c, c)
        assert rows_of(CSV([file(data)], quote=character)) == [[b"1", b"2," + c]]


# ---------------------------------------------------------------- encodings and compression

ADMITTED = []
for codec in sorted(set(encodings.aliases.aliases.values())):
    try:
        text.encoded(codec)
    except ParameterError:
        continue
    ADMITTED.append(codec)


def test_what_is_admitted() -> None:
    assert {"utf_8", "utf_16", "utf_32_be", "latin_1", "cp1252", "koi8_r", "shift_jis", "gb18030"} <= set(ADMITTED)
    assert not [codec for codec in ADMITTED if codec.startswith(("hz", "iso2022", "utf_7"))]


@pytest.mark.parametrize("codec", ADMITTED)
def test_an_encoding_reads_what_it_writes_and_keeps_the_damage_in_the_row(file: Any, codec: str) -> None:
    lines = ["name,n", '"a, ""b""\n",1', "z,3", "é,4", "漢,5"]
    kept = [line for line in lines if line.encode(codec, "ignore").decode(codec).strip(",45")]
    before, after = "\n".join(kept[:2]) + "\n", "\n".join(kept[2:])
    expected: list[Row] = [[b'a, "b"\n', b"1"], *([*map(str.encode, line.split(","))] for line in kept[2:])]
    whole = file((before + after).encode(codec))
    assert rows_of(CSV([whole], encoding=codec)) == expected
    width = len("a".encode(codec + "_le" if codec in ("utf_16", "utf_32") else codec))
    begin = len((before + "x,").encode(codec))
    data = (before + "x," + "\n" + after).encode(codec)
    rng = random.Random(codec)
    for _ in range(60):
        size = width * rng.randrange(1, 4)
        wrong = bytes(rng.choice([rng.randrange(256), rng.randrange(128, 256), 27, 0x7E, 0xD8]) for _ in range(size))
        if any(mark in wrong.decode(codec, "ignore") for mark in '\n\r",'):
            continue  # another row, rather than a wrong one
        found = rows_of(CSV([file(data[:begin] + wrong + data[begin:])], encoding=codec))
        assert found[:1] + found[2:] == expected


def test_a_wrong_byte_makes_its_value_wrong_only(file: Any) -> None:
    data = b"a,b\nx,\x81\nok\x81,y\n"
    for codec in ("cp1252", "ascii", "shift_jis"):
        (one, two), (three, four) = rows_of(CSV([file(data)], encoding=codec))
        assert (one, four) == (b"x", b"y")
        for value in (two, three):
            assert value is not None
            with pytest.raises(UnicodeDecodeError):
                value.decode()


def test_marks_of_the_byte_order(file: Any) -> None:
    for codec, mark in (
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16", codecs.BOM_UTF16_BE),
        ("utf-32", codecs.BOM_UTF32_BE),
    ):
        written = {"utf-16": "utf-16-be", "utf-32": "utf-32-be"}.get(codec, codec)
        path = file(mark + "a,b\n\ufeff1,2\n".encode(written))
        assert rows_of(CSV([path], encoding=codec)) == [["\ufeff1".encode(), b"2"]]


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 2**22])
def test_characters_across_pieces(file: Any, small: Any, piece: int) -> None:
    small(piece, 8, 2, 2**24)
    for codec in ("utf-8", "utf-16", "utf-32", "gb18030"):
        path = file('a,b\n"é漢😀\n",1\n'.encode("utf-8-sig" if codec == "utf-8" else codec))
        assert rows_of(CSV([path], encoding=codec)) == [["é漢😀\n".encode(), b"1"]]


def test_compressed_files(file: Any) -> None:
    data = b"a,b\n1,2\n3,4\n"
    gz, zst = gzip.compress(data), pa.compress(data, codec="zstd", asbytes=True)
    expected: list[Row] = [[b"1", b"2"], [b"3", b"4"]]
    for content, name in ((gz, "x.csv.gz"), (zst, "x.CSV.ZST"), (gzip.compress(zst), "x.csv.zst.gz")):
        assert rows_of(CSV([file(content, name)])) == expected
    parts = gzip.compress(data[:6]) + gzip.compress(data[6:])
    assert rows_of(CSV([file(parts, "x.csv.gz")])) == expected
    assert text.ending("a.b/x.TSV.gz") == ".tsv"
    for content in (gz[:-9], gz[:12], data, b"\x1f\x8b" + b"\0" * 30):
        refused(QueryFailed, "damaged or cut off", [file(content, "x.csv.gz")])


def test_a_file_that_is_cut_off_later_fails_when_it_is_read(file: Any) -> None:
    rng = random.Random(1)
    data = f"a,b\n{SECRET},2\n".encode() + b"".join(b"%d,%d\n" % (rng.getrandbits(60), i) for i in range(400_000))
    reader = CSV([file(gzip.compress(data, 1)[:-1000], "x.csv.gz")])
    reader.ready()
    with pytest.raises(QueryFailed, match="damaged") as found:
        rows_of(reader)
    assert found.value.__context__ is None


def test_files_that_are_gone_or_changed(file: Any) -> None:
    path = file(b"a,b\n1,2\n")
    named, unnamed = CSV([path]), CSV([path], {"a": "text", "b": "text"}, header=False)
    lines = JSON([path], {"a": "text"})
    Path(path).write_bytes(b"a,b\n1,3\n")
    for reader in (named, unnamed, lines):
        reader.ready()
    Path(path).write_bytes(b"a,c\n1,3\n")
    unnamed.ready()
    with pytest.raises(QueryFailed, match="Open it again"):
        named.ready()
    with pytest.raises(QueryFailed, match="Open it again"):
        rows_of(named)
    Path(path).unlink()
    for reader in (named, unnamed, lines):
        with pytest.raises(QueryFailed, match="gone"):
            reader.ready()


# ---------------------------------------------------------------- JSON


def by_json(line: bytes, names: Sequence[str]) -> Row:
    """The values of a line, by the module json alone."""
    try:
        found = json.loads(line, parse_int=lambda x: x, parse_float=lambda x: x, parse_constant=lambda x: x)
    except ValueError:
        found = None
    values = [found.get(name) if isinstance(found, dict) else None for name in names]
    words = {"True": b"true", "False": b"false"}  # the text of a list or object is neither
    return [v.encode("utf-8", "surrogatepass") if isinstance(v, str) else words.get(repr(v)) for v in values]


JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=2), inner, max_size=2)),
    max_leaves=4,
)


@CHECKED
@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), JSON_VALUES), max_size=8),
    st.booleans(),
    st.sampled_from(["\n", "\r\n", "\n\n", " \n"]),
    st.integers(1, 60),
)
def test_what_json_writes_is_read_exactly(
    file: Any, small: Any, rows: list[dict[str, Any]], ascii_only: bool, end: str, piece: int
) -> None:
    small(piece, 8, 2, 2**24)
    lines = [json.dumps(row, ensure_ascii=ascii_only) for row in rows]
    reader = JSON([file("".join(line + end for line in lines).encode(), "x.jsonl")], {"a": "text", "b": "text"})
    assert rows_of(reader) == [by_json(line.encode(), "ab") for line in lines]
    assert rows_of(reader, ["b"]) == [[row[1]] for row in rows_of(reader)]


def test_numbers_keep_their_digits(file: Any) -> None:
    numbers = ["9223372036854775807", "9223372036854775808", "0.1", "1.10", "1e400", "-0", "1E5", "1" * 5000]
    numbers += ["NaN", "Infinity"]  # which many writers write, though JSON has no such numbers
    path = file("\n".join(f'{{"a": {number}}}' for number in numbers).encode())
    assert rows_of(JSON([path], {"a": "number"})) == [[number.encode()] for number in numbers]


ODD_LINES: dict[bytes, bytes | None] = {
    b"": None,
    b"no": None,
    b"{": None,
    b'{"a": 1': None,
    b'{"a": 1} x': None,
    b'{"a": 1}{"a": 2}': None,
    b'[{"a": 1}]': None,
    b'"a"': None,
    b"null": None,
    b"12": None,
    b'{"a": [1]}': None,
    b'{"a": {"a": 1}}': None,
    b'{"a": null}': None,
    b'{"b": 1}': None,
    b'{"a": 1, "a": 2}': b"2",
    b'{"a": 1, "a": null}': None,
    b'{"a": ""}': b"",
    b'{"a": "\xff"}': b"\xed\xb3\xbf",
    b'{"a": "ok", "b": "\xff"}': b"ok",
    b'{"a": "ok", "\xff": 1}': b"ok",
    b'{"a": "\\ud800"}': b"\xed\xa0\x80",
    b'{"a": "\\udcff"}': b"\xed\xb3\xbf",
    b'{"a": "\\u0000\\n\\r"}': b"\0\n\r",
    b'{"a": "\0"}': None,
    b'{"a": 01}': None,
    b"{'a': 1}": None,
    b'{"a": "5", "b": ' + b"[" * 100_000 + b"}": None,
    b'{"a": "5", "b": ' + b"[" * 100_000 + b"]" * 100_000 + b"}": None,
    b'{"a": "5", "b": ' + b"[" * 99 + b"]" * 99 + b"}": b"5",
    b'{"a": "5", "b": ' + b"[" * 100 + b"]" * 100 + b"}": None,
    b'{"a": "5", "b": "' + b'[{\\"' * 200 + b'"}': b"5",
    b"[" * 100_000: None,
    b'{"a":' * 100_000: None,
    b'\xef\xbb\xbf{"a": 1}': None,
    b'  {"a": 1}\t\r': b"1",
    b'{"a": ' + b"9" * 5000 + b"}": b"9" * 5000,
    b'{"a": true, "b": "' + b"x" * 300_000 + b'"}': None,
    b"x" * 900_000: None,
}


@pytest.mark.parametrize("piece", [1000, 2**22])
def test_one_odd_line_changes_no_other(file: Any, small: Any, piece: int) -> None:
    small(piece, 8, 2, 250_000)
    for odd, value in ODD_LINES.items():
        for place in (0, 1, 2):
            lines = [b'{"a": "before"}', b'{"b": 1, "a": true}']
            lines.insert(place, odd)
            if place == 0 and odd.startswith(codecs.BOM_UTF8):
                value = b"1"  # at the beginning of the file it is no part of the line
            expected: list[Row] = [[b"before"], [b"true"]]
            expected[place:place] = [[value]] if odd else []
            for end in (b"", b"\n"):
                assert rows_of(JSON([file(b"\n".join(lines) + end)], {"a": "text"})) == expected
            value = ODD_LINES[odd]


@pytest.mark.parametrize("end", [b"", b"\\", b'"'])
def test_a_text_that_nothing_closes_is_passed_once(file: Any, end: bytes) -> None:
    """Each escaped quote in it could begin a text; if each were tried, these lines would take days."""
    lines = [b"[" * deep + b'"' + b'\\"' * 2**20 + end for deep in (101, 99)]
    lines.append(b"[" * 101 + b'"' + b"\\\\" * 2**20 + end)
    reader = JSON([file(b'{"a": 1}\n' + b"\n".join(lines) + b'\n{"a": 2}\n', "x.json")], {"a": "text"})
    assert rows_of(reader) == [[b"1"], [None], [None], [None], [b"2"]]


@pytest.mark.parametrize("line", [b'a","b', b'x"y,"z', b'",",', b'",', b'"', b'","', b'1,2,3,"', b'"""', b'"a""'])
def test_lines_that_each_look_far_ahead_are_read_in_linear_time(file: Any, line: bytes) -> None:
    """Some begin a record in quotes that the next line continues: if each went to the end, it would take days."""
    found = rows_of(CSV([file(b"a,b\n1,2\n\n" + (line + b"\n") * (2**20 // len(line)) + b"\n3,4\n")]), ["b"])
    assert found[0] == [b"2"]
    assert len(found) > 2**16


def test_the_depth_that_counts_does_not_depend_on_the_stack(file: Any) -> None:
    reader = JSON([file(b'{"a": "5", "b": ' + b"[" * 99 + b"]" * 99 + b"}")], {"a": "text"})

    def deep(times: int) -> list[Row]:
        return deep(times - 1) if times else rows_of(reader)

    assert deep(300) == rows_of(reader) == [[b"5"]]


@pytest.mark.parametrize("blank", [b'{"a": 1}' + b" " * 37, b" " * 45, b'"' + b"a" * 43 + b'"'])
def test_whether_a_line_is_too_long_does_not_depend_on_those_before(small: Any, file: Any, blank: bytes) -> None:
    small(9, 64, 4, 40)
    found = set()
    for before in range(20):
        lines = [b'{"a": "%s"}' % (b"x" * before), blank, b'{"a": 2}']
        rows = rows_of(JSON([file(b"\n".join(lines), "x.jsonl")], {"a": "text"}))
        found.add(repr(rows[1:]))
    assert found == {repr([[None], [b"2"]])}


def test_json_files(file: Any) -> None:
    first = file(b'{"a": 1}')
    assert rows_of(JSON([first, first], {"a": "text"})) == [[b"1"], [b"1"]]
    assert rows_of(JSON([file(gzip.compress(b'{"a": 1}\n'), "x.json.gz")], {"a": "text"})) == [[b"1"]]
    assert rows_of(JSON([file(b"")], {"a": "text"})) == []
    for types_given in (None, {}):
        with pytest.raises(ParameterError, match="types must be given"):
            JSON([first], types_given)


# ---------------------------------------------------------------- through the engine


def test_the_engine_takes_what_is_read(file: Any) -> None:
    table = [
        ("a", "9223372036854775807", "2.5", "true", "2024-02-29"),
        ("b", "2.5", "x", "", "2024-02-30"),
        ("", "1e3", "1e3", "no", ""),
    ]
    out = io.StringIO(newline="")
    csv.writer(out).writerows([("t", "i", "x", "f", "d"), *table])
    kinds = {"t": "text", "i": "integer", "x": "number", "f": "boolean", "d": "date"}
    lines = "\n".join(json.dumps(dict(zip("tixfd", row, strict=True))) for row in table)
    for path in (file(out.getvalue().encode()), file(lines.encode(), "x.json")):
        source = Source.open(path, types=kinds)
        found = source.frame(list("ixfd")).collect("pyarrow").rows()
        expected = [(2**63 - 1, 2.5, True, 19782), (None, None, None, None), (None, 1000.0, False, None)]
        assert sorted(found, key=repr) == sorted(expected, key=repr)  # their order is nobody's promise


def test_one_column_may_have_no_name(file: Any) -> None:
    """As that of the index, which pandas writes by default."""
    assert rows_of(CSV([file(b",a\n0,x\n1,y\n")], header=True)) == [[b"0", b"x"], [b"1", b"y"]]

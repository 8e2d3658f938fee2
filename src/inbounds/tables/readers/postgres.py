"""Tables of PostgreSQL, through COPY: the server writes columns as text by the output functions of their types.

No cast, operator or condition is evaluated on a value; those can raise, or be defined anew by anyone who may create
them. The one exception is PostgreSQL's own length of a text. The rows are read by a connection of our own, made with
the parameters of the user's, in one read-only transaction. All settings that the text depends on are set there, so
the text of a value is the same on every server.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from inbounds import _checks as check
from inbounds.errors import ParameterError
from inbounds.tables.kinds import LONGEST, extra
from inbounds.tables.readers.base import COPY, Field, Stored, StoredColumn, left_out, quoted
from inbounds.tables.readers.versions import admit, admitted

__all__ = ["Table", "in_connection"]

#: Bytes that are parsed at once.
_CHUNK = 1 << 22
_SETTINGS = {
    "datestyle": "ISO, YMD",
    "timezone": "UTC",
    "extra_float_digits": "3",
    "row_security": "off",  # an error before the first row, where a policy would be evaluated
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "search_path": "pg_catalog",  # so that names of functions and operators mean PostgreSQL's own
}
#: How the text of a type becomes a column of Arrow.
_WHOLE = {"int2": "int16", "int4": "int32", "int8": "int64"}
_REAL = {"float4": "float32", "float8": "float64"}
_SHORT = 18  # digits that 64 bits always hold
_TEXT = ("text", "varchar", "bpchar", "name", "citext", "uuid")
_DAY, _TIME = r"^\d{4}-\d\d-\d\d$", r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?"

#: The encoding in which text is sent: as it is stored, or from one where every byte is a letter; others can fail.
_ENCODINGS = {"UTF8": "UTF8", "SQL_ASCII": "SQL_ASCII", "LATIN1": "UTF8"}

#: The table, by the names that PostgreSQL itself finds: of partitions and children too, whose rows are rows of it.
_ABOUT = """
WITH RECURSIVE parts AS (
    SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %(schema)s AND c.relname = %(table)s
    UNION SELECT i.inhrelid FROM pg_inherits i JOIN parts p ON i.inhparent = p.oid
)
SELECT c.relkind::text, c.relpersistence = 't', row_security_active(c.oid)
FROM pg_class c JOIN parts p ON p.oid = c.oid
"""
_COLUMNS = """
WITH RECURSIVE kinds AS (
    SELECT a.attname, a.attnum, a.attgenerated = 'v' AS computed,
        has_column_privilege(c.oid, a.attnum, 'SELECT') AS free, a.atttypid AS kind, a.atttypmod AS modifier
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %(schema)s AND c.relname = %(table)s AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT k.attname, k.attnum, k.computed, k.free, t.typbasetype, t.typtypmod
    FROM kinds k JOIN pg_type t ON t.oid = k.kind WHERE t.typtype = 'd'
)
SELECT k.attname, k.computed, k.free, t.typtype = 'e', k.modifier,
    CASE WHEN t.typnamespace = 'pg_catalog'::regnamespace OR t.typname = 'citext' THEN t.typname ELSE '' END
FROM kinds k JOIN pg_type t ON t.oid = k.kind WHERE t.typtype <> 'd' ORDER BY k.attnum
"""


@dataclass(frozen=True)
class _Column(StoredColumn):
    """A column; ``parsed`` is the type that its text is parsed as."""

    parsed: Any
    long: bool  # whether its text may be


def _column(kind: str, enum: bool, modifier: int) -> _Column:
    arrow = extra("pyarrow")
    binary = arrow.binary()
    if kind == "bool":
        return _Column(kind, Field(arrow.bool_()), arrow.bool_(), False)
    if kind in _WHOLE or kind in _REAL:
        number = getattr(arrow, (_WHOLE | _REAL)[kind])()
        return _Column(kind, Field(number), number, False)
    if kind == "numeric":
        precision, scale = ((modifier - 4) >> 16) & 0xFFFF, (modifier - 4) & 0x7FF
        whole = modifier != -1 and scale == 0
        declared = ("integer" if precision <= _SHORT else "wide") if whole else "number"
        return _Column(f"{kind} {modifier}", Field(binary, declared), binary, False)
    if kind == "date":
        return _Column(kind, Field(arrow.date32()), binary, False)
    if kind in ("timestamp", "timestamptz"):
        return _Column(kind, Field(arrow.timestamp("us", "UTC" if kind == "timestamptz" else None)), binary, False)
    if enum or kind in _TEXT:
        return _Column(kind, Field(binary, "text"), binary, not enum and kind != "uuid")
    return _Column(kind, Field(arrow.list_(arrow.null())), arrow.null(), False)  # nothing that can be asked about


@dataclass(frozen=True, eq=False, repr=False)
class Table(Stored[_Column]):
    """A table that is stored. Made by :func:`in_connection`; see ``Reader``."""

    _encoding: str
    _schema: str
    _table: str

    def _select(self, columns: Sequence[str]) -> Any:
        sql = extra("psycopg.sql", "ledger")

        def value(name: str) -> Any:
            column, known = sql.Identifier(name), self._columns[name]
            if known.parsed == extra("pyarrow").null():
                return sql.SQL("NULL")
            # In the encoding of the server, in which text is not longer than in UTF-8. Here already, so that no row
            # decides whether the server can write it: 1 GiB at most, quotes twice.
            cut = "CASE WHEN octet_length({0}) <= {1} THEN {0} END"
            return sql.SQL(cut).format(column, LONGEST) if known.long else column

        chosen = sql.SQL(", ").join(map(value, columns))
        return sql.SQL("SELECT {} FROM {}").format(chosen, sql.Identifier(self._schema, self._table))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        sql = extra("psycopg.sql", "ledger")
        read = [self._columns[name] for name in columns]
        command = sql.SQL("COPY ({}) TO STDOUT (FORMAT csv, FORCE_QUOTE *, ENCODING {})").format(
            self._select(columns), self._encoding
        )
        with self._open() as connection, connection.cursor() as cursor, cursor.copy(command) as copy:
            lines = bytearray()
            for line in copy:  # the server sends each row by itself
                lines += line
                if len(lines) >= _CHUNK:
                    yield from _parsed(bytes(lines), read)
                    lines.clear()
            if lines:
                yield from _parsed(bytes(lines), read)

    def ready(self) -> None:
        with self._open() as connection:
            now, _ = _read_columns(connection, self._schema, self._table)
            self._as_opened(now)
            connection.execute(
                extra("psycopg.sql", "ledger").SQL("{} LIMIT 0").format(self._select(list(self._columns)))
            )


def _parsed(lines: bytes, columns: Sequence[_Column]) -> Iterator[Any]:
    """Rows of CSV as the server writes them: all that is not null is quoted, and all that it writes can be parsed."""
    arrow, csv = extra("pyarrow"), extra("pyarrow.csv")
    names = [f"c{i}" for i in range(len(columns))]
    table = csv.read_csv(
        arrow.BufferReader(lines),
        csv.ReadOptions(column_names=names, block_size=len(lines) + 1, use_threads=False),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types={name: column.parsed for name, column in zip(names, columns, strict=True)},
            null_values=[""],
            true_values=["t"],
            false_values=["f"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    for batch in table.combine_chunks().to_batches():
        arrays = [_typed(values, column.field.arrow) for values, column in zip(batch.columns, columns, strict=True)]
        yield arrow.RecordBatch.from_arrays(arrays, names)


def _typed(values: Any, kind: Any) -> Any:
    """Dates and times from their text; infinite ones, and those outside the years 1 to 9999, are null."""
    arrow, compute = extra("pyarrow"), extra("pyarrow.compute")
    if values.type == kind or not arrow.types.is_temporal(kind):
        return values.cast(kind)
    text = values.cast(arrow.string())  # digits and signs
    zone = None if arrow.types.is_date(kind) else kind.tz
    pattern = _DAY if arrow.types.is_date(kind) else _TIME + (r"\+00$" if zone else "$")
    fits = compute.match_substring_regex(text, pattern)
    text = compute.if_else(fits, text, arrow.scalar(None, arrow.string()))
    if zone is not None:
        plain = compute.replace_substring(text, "+00", "").cast(arrow.timestamp("us"))
        return plain.cast(arrow.int64()).cast(kind)
    return text.cast(kind)


def _read_columns(connection: Any, schema: str, table: str) -> tuple[dict[str, _Column], tuple[str, ...]]:
    """The columns that are stored, and notes of the others; nothing of the rows."""
    where = {"schema": schema, "table": table}
    parts = connection.execute(_ABOUT, where).fetchall()
    if not parts:
        check.refuse("Source", "table", "a table of the database", f"{schema}.{table}", "")
    if any(temporary for _, temporary, _ in parts):
        check.refuse("Source", "table", "one that other connections see", "a temporary table", COPY)
    kinds = {kind for kind, _, _ in parts}
    if not kinds <= {"r", "p", "m"}:
        words = {"v": "a view", "f": "a foreign table"}
        got = ", ".join(sorted(words.get(kind, "no table") for kind in kinds - {"r", "p", "m"}))
        check.refuse("Source", "table", "stored in this database, all its partitions too", got, COPY)
    if any(active for _, _, active in parts):
        step = "Read it as a role that the policies are not for. " + COPY
        check.refuse("Source", "table", "without policies for rows, which run on them", f"{schema}.{table}", step)
    found = connection.execute(_COLUMNS, where).fetchall()
    columns: dict[str, _Column] = {}
    notes: tuple[str, ...] = ()
    for name, computed, free, enum, modifier, kind in found:
        if computed:
            notes += left_out([name])
        elif not free:
            notes += left_out([name], "it may not be read")
        else:
            columns[name] = _column(kind, enum, modifier)
    return columns, notes


def _admitted(connection: Any) -> tuple[str | None, str]:
    """Refuse other databases that speak PostgreSQL's protocol, and encodings that some bytes are no text of.

    Otherwise a note of the version, and the encoding in which every byte that is stored can be sent.
    """
    version, number, encoding = connection.execute(
        "SELECT version(), current_setting('server_version'), current_setting('server_encoding')"
    ).fetchone()
    if not version.startswith("PostgreSQL ") or "Redshift" in version or "-YB-" in version:
        step = "Copy the table to Parquet."
        check.refuse("Source", "table", "of PostgreSQL itself", "another database of its protocol", step)
    if encoding not in _ENCODINGS:
        step = "Copy the table into a database of encoding UTF8, or to Parquet."
        check.refuse("Source", "table", f"of a database of encoding {' or '.join(_ENCODINGS)}", encoding, step)
    return admit("PostgreSQL", number), _ENCODINGS[encoding]


def in_connection(connection: Any, table: str, schema: str | None = None) -> Table:
    """A table of a database that the user has open with psycopg 3; its connection is asked for its schema only.

    Without ``schema`` it is the first one of the search path that has the table.
    """
    psycopg = extra("psycopg", "ledger")
    info = connection.info
    parameters, password = info.get_parameters(), info.password
    if schema is None:
        schema = _schema_of(connection, table)

    @contextlib.contextmanager
    def opened() -> Iterator[Any]:
        failed = False
        try:
            given = {**parameters, "password": password or None, "client_encoding": "UTF8"}
            other = psycopg.connect(**given, autocommit=True)
        except psycopg.Error:  # its words may have the password
            failed = True
        if failed:
            raise ParameterError("Source: table must be in a database that can be reached; it cannot be now.")
        with contextlib.closing(other):
            other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            for name, value in _SETTINGS.items():  # of this transaction: a pool may give the session to others
                other.execute("SELECT set_config(%s, %s, true)", [name, value])
            yield other

    with opened() as other:
        note, encoding = _admitted(other)
        columns, notes = _read_columns(other, schema, table)
    notes += admitted("psycopg", "pyarrow") + (() if note is None else (note,))
    identity = f"postgresql://{info.host}:{info.port}/{info.dbname}::{quoted(schema)}.{quoted(table)}"
    what = "a table of PostgreSQL"
    return Table(what, identity, notes, True, opened, columns, encoding, schema, table)


def _schema_of(connection: Any, table: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.oid = pg_catalog.to_regclass(pg_catalog.quote_ident(%s))",
            [table],
        )
        found = cursor.fetchall()
    if not found:
        check.refuse("Source", "table", "a table of the database", table, "")
    name: str | bytes = found[0][0]
    return name.decode() if isinstance(name, bytes) else name  # bytes where the client has no encoding

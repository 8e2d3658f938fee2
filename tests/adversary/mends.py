"""The holes that were found once, opened again: what keeps each closed is taken out for a while.

The classes are those of the first version: its engines read files themselves (1), guessed how text is written (3), took
values for equal that are not (4), and failed on what a format allows and an engine does not (9).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from inbounds.tables import request
from inbounds.tables.engines import forms
from inbounds.tables.engines.embedded import Embedded
from inbounds.tables.kinds import Kind
from inbounds.tables.readers.csv import CSV
from inbounds.tables.readers.parquet import Parquet
from tests.adversary.twin import replaced

Changes = Sequence[tuple[Any, str, Any]]
_rows = Embedded._rows


def _folded(self: Any, cursor: Any, columns: Sequence[str], only: Sequence[Any], of: Sequence[Any]) -> Any:
    """Parquet read by DuckDB itself, with the optimiser that knows the least and largest value of every column."""
    plain = {Kind.REAL: "{}", Kind.INTEGER: "{}", Kind.BOOLEAN: "{}", Kind.WIDE: "{}"}
    if not isinstance(self._reader, Parquet) or any(form.kind not in plain for form in of):
        return _rows(self, cursor, columns, only, of)
    paths = [fragment.path for fragment in self._reader._fragments]
    chosen = (
        f"{plain[form.kind].format(f'{name!r}'.replace(chr(39), chr(34)))} AS r{i}"
        for i, (name, form) in enumerate(zip(columns, of, strict=True))
    )
    return duckdb.connect().read_parquet(paths).project(", ".join(chosen))


def _sniffed(**options: Any) -> Callable[..., Iterator[Any]]:
    """CSV as DuckDB reads it, of which the rows decide what separates fields and lines."""

    def batches(self: CSV, columns: Sequence[str]) -> Iterator[Any]:
        table = duckdb.connect().read_csv(self._files[0][0], all_varchar=True, **options).to_arrow_table()
        found = {name: table.column(name).combine_chunks() for name in columns}
        yield pa.RecordBatch.from_arrays([array.view(pa.binary()) for array in found.values()], names=list(found))

    return batches


#: By class and what is taken out: where it shows, and the changes.
MENDS: Mapping[tuple[int, str], tuple[tuple[str, ...], Changes]] = {
    (1, "Parquet is read as Arrow, without statistics"): (
        ("parquet pyarrow", "parquet row groups", "parquet polars"),
        [(Embedded, "_rows", _folded)],
    ),
    (3, "how CSV is written is stated"): (
        ("csv", "csv quoted", "csv pandas"),
        [(CSV, "batches", _sniffed(ignore_errors=True))],
    ),
    (3, "a record that does not fit changes no other"): (
        ("csv", "csv quoted", "csv pandas"),
        [(CSV, "batches", _sniffed(sep=",", quotechar='"'))],
    ),
    (4, "keys are of Python's own types"): (("arrow batch", "polars"), [(request, "ordinary", lambda value: value)]),
    (4, "times of nanoseconds tell units apart"): (
        ("arrow batch", "polars", "parquet pyarrow"),
        [(Embedded, "identifier", lambda self, column, name: name)],
    ),
    (4, "text is compared by its bytes"): (
        ("arrow batch", "polars", "duckdb relation"),
        [(forms, "_TEXT", "(TRY(decode({0})) COLLATE NOCASE)")],
    ),
    (9, "text that is no UTF-8 is missing"): (("arrow", "parquet pyarrow"), [(forms, "_TEXT", "decode({0})")]),
    (9, "times that are too far away are missing"): (
        ("arrow", "parquet pyarrow", "polars"),
        [(forms, "_microseconds", lambda each: f"{{0}} * {each}")],
    ),
}


@contextlib.contextmanager
def without(mend: tuple[int, str]) -> Iterator[None]:
    with replaced(*MENDS[mend][1]):
        yield

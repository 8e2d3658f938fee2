"""Training data as numbers and labels, each cell read by itself: no row can make reading fail, nor change another's.

What holds the data is public: an array, a list of rows or a table, its number of columns. What a row holds is not, and
one row can change how all are stored: next to a text an array turns numbers into texts, next to None into objects, and
a column of whole numbers with a gap becomes floats. So a cell means the same however it is stored, and what cannot be
read is missing, never an error and never a warning. ``docs/naive-bayes.md`` states the rules.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Complex, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from inbounds import _checks as check
from inbounds._checks import FloatArray
from inbounds.errors import ParameterTypeError

Cells = npt.NDArray[Any]
Key = int | str

#: Up to here an array of floats tells all whole numbers apart.
LARGEST_LABEL = 2**53
_HUGE = 2**1024
_TRUTHS = {"true": 1.0, "false": 0.0}
_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")


def features(what: str, X: Any, declared: int | None) -> FloatArray:
    """X as numbers, NaN where a cell holds none; ``declared`` is the number of columns, if the caller stated it."""
    if hasattr(X, "tocsr"):
        check.refuse(
            what, "X", "dense; sparse input is not supported", _kind(X), "Pass X.toarray().", ParameterTypeError
        )
    columns = _columns(X)
    if columns is not None:
        return np.column_stack([_numbers(cells(c)) for c in columns]) if columns else np.empty((len(X), 0))
    if isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype == object):
        return _numbers(_rows(X, declared))
    array = _plain(X)
    if array.ndim != 2:
        check.refuse(what, "X", "of two dimensions, rows and columns", f"{array.ndim}", "Reshape your data.")
    return _numbers(array)


def column(what: str, y: Any) -> tuple[Cells, bool]:
    """The cells of y, one per row, and whether y was a table or an array of one column."""
    columns = _columns(y)
    if columns is None:
        array = cells(y)
        columns = [array] if array.ndim == 1 else list(array.T) if array.ndim == 2 else []
        wide = array.ndim == 2
    else:
        wide = True
    if len(columns) != 1:
        check.refuse(what, "y", "one label per row", _kind(y), "Pass one column.")
    return cells(columns[0]), wide


def labels(cells: Cells) -> Sequence[Key | None]:
    """What each label is known by: its whole number or its text; None where it is neither."""
    if cells.dtype.kind in "biuf":
        x = _numbers(cells)
        whole = (x == np.rint(x)) & (np.abs(x) < LARGEST_LABEL)
        return [int(v) if fits else None for v, fits in zip(x.tolist(), whole.tolist(), strict=True)]
    return [_label(cell) for cell in cells.tolist()]


def ordered(labels: Mapping[Key, Any]) -> tuple[Cells, dict[Key | None, int]]:
    """Labels in order, numbers before texts, as they were written; and the place of each."""

    def place(key: Key) -> tuple[bool, float | str]:
        number, text = _read(labels[key])
        return text is not None, number if text is None else text

    keys = sorted(labels, key=place)
    written = [labels[key] for key in keys]
    mixed = len({isinstance(label, str | bytes) for label in written}) == 2  # as one type, numbers would turn to texts
    return np.array(written, dtype=object if mixed else None), {key: i for i, key in enumerate(keys)}


def found(cells: Cells, keys: Sequence[Key | None]) -> dict[Key, Any]:
    """The labels that occur. Of several ways to write one, the first in the order of types and texts."""
    seen: dict[Key, Any] = {}
    for cell, key in zip(cells, keys, strict=True):
        if key is not None and (key not in seen or _way(cell) < _way(seen[key])):
            seen[key] = cell
    return seen


def cells(column: Any) -> Cells:
    """The cells of one column of a table, of a list or of an array."""
    if isinstance(column, list | tuple):
        return _objects(column)
    if hasattr(column, "array") and hasattr(column, "dtype"):  # pandas
        dtype = column.dtype
        if hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", None) == "pyarrow":
            return _arrow(column.array.__arrow_array__())
        return _plain(column.to_numpy() if isinstance(dtype, np.dtype) else column.to_numpy(dtype=object))
    if hasattr(column, "to_pylist"):  # pyarrow
        return _arrow(column)
    if hasattr(column, "to_list") and hasattr(column, "dtype"):  # Polars
        if column.dtype.is_temporal() or column.dtype.is_nested():
            return _missing(len(column))
        return _objects(column.to_list())
    return _plain(column)


def _columns(table: Any) -> list[Any] | None:
    """The columns of a table, None of anything else."""
    if hasattr(table, "iloc") and getattr(table, "ndim", 0) == 2:  # pandas
        return [table.iloc[:, j] for j in range(table.shape[1])]
    if hasattr(table, "get_columns"):  # Polars
        return list(table.get_columns())
    if hasattr(table, "itercolumns"):  # pyarrow
        return list(table.itercolumns())
    return None


def _arrow(column: Any) -> Cells:
    """Texts as their bytes, which need not be UTF-8; types that hold no numbers and no texts are not looked into."""
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

    types = pa.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        column = column.cast(pa.binary_view() if types.is_string_view(kind) else pa.large_binary())
    elif not (
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    ):
        return _missing(len(column))
    return _objects(column.to_pylist())


def _rows(X: Iterable[Any], declared: int | None) -> Cells:
    """A list of rows as an array; a row of another length is missing. Undeclared, most rows tell the length."""
    rows = [
        row if isinstance(row, list | tuple) or (isinstance(row, np.ndarray) and row.ndim == 1) else () for row in X
    ]
    if declared is None:
        lengths = Counter(len(row) for row in rows if len(row))
        declared = max(lengths, key=lambda length: (lengths[length], length), default=0)
    array = np.empty((len(rows), declared), dtype=object)
    for mine, row in zip(array, rows, strict=True):
        if len(row) == declared:
            for j, cell in enumerate(row):
                mine[j] = cell
    return array


def _plain(values: Any) -> Cells:
    """An array without masks, and without the types of numpy that are neither number, text nor object."""
    if isinstance(values, np.ma.MaskedArray):
        mask, values = np.ma.getmaskarray(values), values.data.astype(object)
        values[mask] = None
    array = np.asarray(values)
    if array.dtype.kind == "m":  # numbers next to a span of time turn into spans: their number again
        return array.astype(np.int64)
    return np.full(array.shape, None) if array.dtype.kind in "MV" else array


def _objects(values: Iterable[Any]) -> Cells:
    return np.fromiter(values, dtype=object)


def _missing(rows: int) -> Cells:
    return np.full(rows, None)


def _numbers(cells: Cells) -> FloatArray:
    with np.errstate(all="ignore"):  # too large for a float64 is infinite
        if cells.dtype.kind in "biuf":
            return cells.astype(np.float64)
        read = [_read(cell)[0] for cell in cells.ravel().tolist()]
    return np.array(read, dtype=np.float64).reshape(cells.shape)


def _label(cell: Any) -> Key | None:
    number, text = _read(cell)
    if text is not None and not _is_numeral(text):
        return text
    return int(number) if number.is_integer() and abs(number) < LARGEST_LABEL else None


def _read(cell: Any) -> tuple[float, str | None]:
    """The number of a cell, NaN if it has none, and its text, if it is one."""
    text = None
    try:
        if isinstance(cell, np.ndarray) and cell.ndim == 0:
            cell = cell[()]
        if isinstance(cell, bytes):
            cell = bytes.decode(cell, "utf-8", "surrogateescape")
        if isinstance(cell, str):
            text = str.rstrip(cell, "\0")  # as arrays of texts do
            cell = _TRUTHS[text.lower()] if text.lower() in _TRUTHS else complex(text)
        if isinstance(cell, int | Fraction) and not -_HUGE < cell < _HUGE:
            return (math.inf if cell > 0 else -math.inf), text
        if isinstance(cell, Real | Decimal | np.bool_):
            return float(cell), text
        if isinstance(cell, Complex) and cell.imag == 0:
            return float(cell.real), text
    except Exception:  # whatever a cell is, it is no error
        pass
    return math.nan, text


def _is_numeral(text: str) -> bool:
    """Whether an array of texts may have made this text from a number."""
    if text.lower() in _TRUTHS or _WHOLE.fullmatch(text):
        return True
    try:
        number = complex(text)
    except ValueError:
        return False
    return text in (repr(number.real), str(number))


def _way(label: Any) -> tuple[str, str]:
    return type(label).__name__, str(label)


def _kind(value: Any) -> str:
    return type(value).__name__

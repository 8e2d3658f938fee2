"""Training data as numbers and labels, each cell read by itself: no row can make reading fail, nor change another's.

What holds the data is public: an array, a list of rows or a table, its number of columns. What a row holds is not, and
one row can change how all are stored: next to a text an array turns numbers into texts, next to None into objects, and
a column of whole numbers with a gap becomes floats. So a cell means the same however it is stored, and what cannot be
read is missing, never an error and never a warning. ``docs/naive-bayes.md`` states the rules.

A cell or a row may be an object of any class, with methods that raise, lie or warn: none of them is called, nor asked
for what it is (``isinstance`` asks ``__class__``). Its type decides, and methods of built-in types take the value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from inbounds import _checks as check
from inbounds import _exact
from inbounds._checks import FloatArray
from inbounds.errors import ParameterTypeError

Cells = npt.NDArray[Any]
Key = int | str

#: Up to here an array of floats tells all whole numbers apart.
LARGEST_LABEL = 2**53
_LINES = str | bytes | bytearray  # sequences that hold no rows
_SCALARS = frozenset(
    np.dtype(code).type for code in (*np.typecodes["AllInteger"], *np.typecodes["AllFloat"], "?", "S", "U")
)  # of NumPy; its spans of time are whole numbers only to Python
_TRUTHS = {"true": 1.0, "false": 0.0}
_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")


def features(what: str, X: Any, declared: int | None) -> FloatArray:
    """X as numbers, NaN where a cell holds none; ``declared`` is the number of columns, if the caller stated it."""
    if hasattr(X, "tocsr"):
        check.refuse(
            what, "X", "dense; sparse input is not supported", _kind(X), "Pass X.toarray().", ParameterTypeError
        )
    columns = _exact.columns(X)
    if columns is not None:
        return np.column_stack([_numbers(cells(c)) for c in columns]) if columns else np.empty((len(X), 0))
    if _is_list(X) or (isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype == object):
        if declared is None:  # rows are secret: none may tell how many columns there are
            check.refuse(
                what,
                "bounds",
                "one number per feature, lower and upper, if X is a list of rows",
                "single numbers",
                "A list has no number of columns but that of its rows, which are secret. Or pass an array or a table.",
            )
        return _rows(X, declared)
    array = _plain(X)
    _refuse_narrow(what, "X", X.dtype if isinstance(X, np.ndarray) else array.dtype)
    if array.ndim != 2:
        check.refuse(what, "X", "of two dimensions, rows and columns", f"{array.ndim}", "Reshape your data.")
    return _numbers(array)


def column(what: str, y: Any) -> tuple[Cells, bool]:
    """The cells of y, one per row, and whether y was a table or an array of one column."""
    columns = _exact.columns(y)
    if columns is None:
        array = cells(y)
        if isinstance(y, np.ndarray):
            _refuse_narrow(what, "y", y.dtype)
        columns = [array] if array.ndim == 1 else list(array.T) if array.ndim == 2 else []
        wide = array.ndim == 2
    else:
        wide = True
    if len(columns) != 1:
        check.refuse(what, "y", "one label per row", _kind(y), "Pass one column.")
    return cells(columns[0]), wide


def _refuse_narrow(what: str, name: str, dtype: np.dtype[Any]) -> None:
    """One row with a text makes NumPy write all numbers of an array as texts, with as many digits as their type needs.

    Read again, those of 64 bits are the same, and those of 16 are others: 0.1 there is 0.0999755859375. Those of 32
    bits, which many programs have, move by less than 2^-24 of themselves; docs/naive-bayes.md says so.
    """
    if dtype == np.float16:
        step = f"Pass {name}.astype(numpy.float64), and before rows are put together."
        check.refuse(what, name, "of floats of more than 16 bits", dtype.name, step, ParameterTypeError)


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
        if key is not None:
            written = _own(cell)
            if key not in seen or _way(written) < _way(seen[key]):
                seen[key] = written
    return seen


def cells(column: Any) -> Cells:
    """The cells of one column of a table, of a list or of an array."""
    if _is_list(column):
        return _objects(column)
    if hasattr(column, "array") and hasattr(column, "dtype"):  # pandas
        dtype = column.dtype
        if hasattr(dtype, "categories"):
            return _taken(cells(dtype.categories), column.array.codes)
        if not isinstance(dtype, np.dtype) and (dtype.kind in "mM" or str(dtype).startswith(("period", "interval"))):
            return _missing(len(column))
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


def _arrow(column: Any) -> Cells:
    """Texts as their bytes, which need not be UTF-8; types that hold no numbers and no texts are not looked into."""
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

    types, kind = pa.types, column.type
    if types.is_dictionary(kind):  # not decoded by Arrow, which cannot where texts are too many or types too new
        parts = getattr(column, "chunks", [column])
        return np.concatenate([_missing(0), *(_looked_up(part, pa) for part in parts)])
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


def _looked_up(part: Any, pa: Any) -> Cells:
    """The cells of an Arrow array with a dictionary; each text is read once."""
    places = part.indices.cast(pa.int64(), safe=False).fill_null(-1)
    return _taken(_arrow(part.dictionary), places.to_numpy(zero_copy_only=False))


def _taken(values: Cells, places: npt.NDArray[Any]) -> Cells:
    """The values at these places, None where there is none."""
    out = _missing(len(places))
    there = (places >= 0) & (places < len(values))
    out[there] = values.astype(object)[places[there]]
    return out


def _is_list(values: Any) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, _LINES)


def _rows(X: Iterable[Any], columns: int) -> FloatArray:
    """A list of rows as numbers; a row of another length is missing, and so is what is no row."""
    numbers = np.full((len(X), columns), math.nan)  # type: ignore[arg-type]
    with np.errstate(all="ignore"):
        for i, row in enumerate(X):
            cells = _row(row)
            if cells is not None and len(cells) == columns:
                numbers[i] = [_read(cell)[0] for cell in cells]
    return numbers


def _row(row: Any) -> Sequence[Any] | None:
    """The cells of a row; None where it is no list, tuple or array of NumPy."""
    kind = type(row)
    if issubclass(kind, list):
        return list.__getitem__(row, slice(None))
    if issubclass(kind, tuple):
        return tuple.__getitem__(row, slice(None))
    return list(row) if kind is np.ndarray and row.ndim == 1 else None


def _plain(values: Any) -> Cells:
    """An array without masks, and without the types of numpy that are neither number, text nor object."""
    if isinstance(values, np.ma.MaskedArray):
        mask, values = np.ma.getmaskarray(values), values.data.astype(object)
        values[mask] = None
    if not isinstance(values, np.ndarray) and not hasattr(values, "__array__"):
        return np.array(None)  # no column and no table, whatever NumPy might make of it
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
        cell = _own(cell)
        kind = type(cell)
        if issubclass(kind, bytes):
            cell, kind = bytes.decode(cell, "utf-8", "surrogateescape"), str
        if issubclass(kind, str):
            text = str.rstrip(cell, "\0")  # as arrays of texts do
            cell = _TRUTHS[text.lower()] if text.lower() in _TRUTHS else complex(text)
            kind = type(cell)
        if kind is int or kind is Fraction:
            return _ratio(cell), text
        if kind is complex or kind is np.complex64 or kind is np.complex128 or kind is np.clongdouble:
            return (float(cell.real) if cell.imag == 0 else math.nan), text
        if kind is not type(None):
            return float(cell), text
    except Exception:  # whatever a cell is, it is no error
        pass
    return math.nan, text


def _own(cell: Any) -> Any:
    """The value of a cell as an object without any code of its own, None where it is none that we know."""
    kind = type(cell)
    if kind is np.ndarray and cell.ndim == 0:
        cell = cell[()]
        kind = type(cell)
    if kind is bool or (type(kind) is type and kind in _SCALARS):  # a class of another class may have its own hash
        return cell
    for base, value in _VALUES:
        if issubclass(kind, base):
            return value(cell)
    if kind is Decimal:
        return cell
    if kind is Fraction and type(cell._numerator) is int and type(cell._denominator) is int:
        return cell
    return None


#: Built-in types, and what makes one of them of an object of a derived type, whatever that overrides.
_VALUES: tuple[tuple[type, Any], ...] = (
    (int, int.__int__),
    (float, float.__float__),
    (complex, complex.__complex__),
    (str, str.__str__),
    (bytes, bytes.__bytes__),
)


def _ratio(x: int | Fraction) -> float:
    """As a float; what is too large is infinite."""
    try:
        return x.numerator / x.denominator
    except OverflowError:
        return math.inf if x.numerator > 0 else -math.inf


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
    return type(label).__name__, repr(label)


def _kind(value: Any) -> str:
    return type(value).__name__

"""Numbers as the exact numbers they are: none is rounded to float64 on the way in.

A *number* is a float, or an int or Fraction that no float is equal to. An array of numbers is of float64, or of objects
where one of them is no float.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import re
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "FARTHEST",
    "LARGEST",
    "PLACES",
    "WHOLE",
    "Number",
    "advice",
    "array",
    "canonical",
    "columns",
    "difference",
    "each",
    "exact",
    "finite",
    "floats",
    "integers",
    "nearest",
    "total",
    "whole",
]

Number = float | int | Fraction
Numbers = npt.NDArray[Any]

#: Whole numbers up to here are all floats.
WHOLE = 2**53
#: Differences are no larger, so that they have squares; no scale is near it.
FARTHEST = 1e150
_FLOATS = {float, np.float16, np.float32, np.float64}
_REALS = re.compile(r"[\w.]*(float|double)\w*(\[\w+\])?")  # names of types of floats, of any package
_WHOLES = {int, *(np.dtype(code).type for code in np.typecodes["AllInteger"])}
#: What NumPy reads as numbers and is none: bytes, spans of time, values under a mask.
_NONE = (
    *(bool, np.bool_, np.timedelta64, np.datetime64, np.ma.MaskedArray),
    *(str, bytes, bytearray, memoryview, mmap.mmap),
)
LARGEST = sys.float_info.max  #: of all floats
#: Decimals have no digit farther from their point: a few letters can stand for a number that no memory holds.
PLACES = 100_000
_DEEPEST = 64  # lists in lists that NumPy makes an array of
#: The parts of a Fraction, whatever a derived class says of them.
_PARTS = (Fraction.__dict__["_numerator"].__get__, Fraction.__dict__["_denominator"].__get__)


def exact(value: object) -> Number | None:
    """A real number of any type; None for whatever is none: bools, strings and spans of time among it.

    Floats, ints, Decimals and Fractions of a derived class are the numbers they hold, whatever its methods say. A
    Decimal with digits more than ``PLACES`` from its point is none.
    """
    kind = type(value)
    if issubclass(kind, float):
        return float.__float__(value)  # type: ignore[arg-type]
    if issubclass(kind, int) and kind is not bool:
        return _float_or(int.__int__(value))  # type: ignore[arg-type]
    if issubclass(kind, np.ndarray) and not issubclass(kind, np.ma.MaskedArray):
        item = np.asarray(value)[()]
        return None if isinstance(item, np.ndarray) else exact(item)
    if issubclass(kind, _NONE):
        return None
    if issubclass(kind, Decimal):
        return _of_decimal(value)  # type: ignore[arg-type]
    if issubclass(kind, Fraction):
        return _of_fraction(value)
    return _asked(value) if issubclass(kind, Real) else None


def _of_decimal(value: Decimal) -> Number | None:
    if Decimal.is_nan(value):
        return math.nan
    if Decimal.is_infinite(value):
        return -math.inf if Decimal.is_signed(value) else math.inf
    return None if _is_far(value) else _float_or(Fraction(*Decimal.as_integer_ratio(value)))


def _is_far(value: Decimal) -> bool:
    """Whether it has its first or last digit more than ``PLACES`` from its point; infinite ones and NaN have none."""
    if Decimal.is_zero(value) or not Decimal.is_finite(value):
        return False
    if abs(Decimal.adjusted(value)) > PLACES:
        return True
    last = Decimal.as_tuple(value).exponent
    return not (isinstance(last, int) and abs(last) <= PLACES)


def _of_fraction(value: object) -> Number | None:
    try:
        over, under = (part(value) for part in _PARTS)
    except AttributeError:  # one that was never made
        return None
    return _float_or(Fraction(over, under)) if type(over) is type(under) is int and under > 0 else None


def _asked(value: Any) -> Number | None:
    """The number that an object of another class says it is; None where it fails to, or rounds."""
    try:
        if isinstance(value, Integral):
            return _float_or(int.__int__(int(value)))
        if isinstance(value, Rational):
            return _float_or(Fraction(int(value.numerator), int(value.denominator)))
        try:
            over, under = value.as_integer_ratio()
        except (OverflowError, ValueError):  # infinite, or NaN
            found = float(value)
            return None if math.isfinite(found) else found
        return _float_or(Fraction(over, under))
    except Exception:  # whatever its methods raise
        return None


def _float_or(x: int | Fraction) -> Number:
    try:
        found = float(x)
    except OverflowError:
        return x
    return found if found == x else x


def nearest(x: Number) -> float:
    """The nearest float; the largest ones stand for all finite numbers beyond them."""
    try:
        return float(x)
    except OverflowError:
        return LARGEST if x > 0 else -LARGEST


# ---------------------------------------------------------------- arrays


def array(values: object) -> Numbers | None:
    """Real numbers of any shape; None where anything else is among them.

    Of float64 and of integers the array itself, not copied; all else as objects, or float64. Taken are numbers,
    sequences, arrays whose values are all of one type, and tables column by column. Masked arrays are none: what is
    under the mask is not for release, and what is not cannot be told apart.
    """
    try:
        raw = _raw(values)
    except MemoryError:
        raise
    except Exception:  # whatever methods of the caller's classes raise; NumPy, where lists are not of one length
        return None
    if raw is None:
        return None
    if raw.dtype.kind == "f" and raw.dtype.itemsize > 8:
        raw = raw.astype(object)
    if raw.dtype.kind == "f" and raw.dtype.itemsize < 8:
        raw = raw.astype(np.float64)  # else ends of a domain would be rounded to the narrower type beside it
    if raw.dtype != object:
        return raw if raw.dtype.kind in "iuf" else None
    found = [exact(value) for value in raw.ravel().tolist()]
    return None if any(x is None for x in found) else _of(found).reshape(raw.shape)


def _raw(values: Any) -> Numbers | None:
    """As an array that NumPy did not have to round for: it does where whole numbers stand beside others."""
    kind = type(values)
    if issubclass(kind, _NONE):
        return None
    if issubclass(kind, np.ndarray | np.generic):
        return np.asarray(values)
    found = exact(values)
    if found is not None:
        return np.array(found, dtype=object)
    table = columns(values)
    if table is not None:
        return _joined(table, len(values))
    if hasattr(values, "__array__"):
        return _of_one_type(values)
    return _of_list(values) if isinstance(values, Sequence) else None


def _of_list(values: Any) -> Numbers:
    items = _listed(values, 0)
    raw = np.array(items, dtype=object)
    kinds = set(map(type, raw.ravel().tolist()))
    if kinds <= _FLOATS:
        return raw.astype(np.float64)
    plain = np.asarray(items) if kinds <= _WHOLES else raw
    return plain if plain.dtype.kind in "iu" else raw


def _listed(values: Any, depth: int) -> list[Any]:
    """A sequence as a list of numbers, of arrays of ours and of such lists: nothing that NumPy asks for what it is."""
    if depth >= _DEEPEST:
        raise TypeError
    kind = type(values)
    base = next((base for base in (list, tuple) if issubclass(kind, base)), None)
    items = list(values) if base is None else list(base.__getitem__(values, slice(None)))
    if set(map(type, items)) <= _FLOATS | _WHOLES:
        return items
    return [_item(item, depth) for item in items]


def _item(value: Any, depth: int) -> Any:
    found: Any = value if type(value) in _FLOATS else exact(value)
    if found is None and isinstance(value, Sequence) and not issubclass(type(value), _NONE):
        return _listed(value, depth + 1)
    found = array(value) if found is None else found
    if found is None:
        raise TypeError
    return found


def columns(table: Any) -> list[Any] | None:
    """The columns of a table, None of anything else."""
    if hasattr(table, "iloc") and getattr(table, "ndim", 0) == 2:  # pandas
        return [table.iloc[:, j] for j in range(table.shape[1])]
    if hasattr(table, "get_columns"):  # Polars
        return list(table.get_columns())
    if hasattr(table, "itercolumns"):  # pyarrow
        return list(table.itercolumns())
    return None


def _joined(table: list[Any], rows: int) -> Numbers | None:
    """The table as rows. A table's own array has one type for all its columns, and rounds where they have several."""
    found = [array(column) for column in table]
    if any(x is None for x in found):
        return None
    if len({x.dtype for x in found if x is not None}) > 1:
        found = [canonical(x).astype(object) for x in found if x is not None]
    return np.stack(found, axis=-1) if found else np.empty((rows, 0))  # type: ignore[arg-type]


def _of_one_type(values: Any) -> Numbers | None:
    """An array of another package. What makes floats of anything but floats, as of whole numbers with gaps, rounds."""
    kind = str(getattr(values, "dtype", getattr(values, "type", ""))).lower()
    if not kind:
        return None
    try:
        raw = np.asarray(values)
    except Exception:  # a type that NumPy lacks
        raw = None
    if raw is not None and (raw.dtype.kind != "f" or _REALS.fullmatch(kind)):
        return raw
    if hasattr(values, "astype"):  # pandas, whose lists of categories are rounded
        return np.asarray(values.astype(object))
    return _of_list(values.to_list() if hasattr(values, "to_list") else values.to_pylist())


def canonical(values: Numbers) -> Numbers:
    """What :func:`array` found as an array of numbers: of float64 where all are floats."""
    if values.dtype.kind in "iu":
        floats = values.astype(np.float64)
        if np.all(np.abs(floats) < WHOLE):
            return floats
        return _of([exact(x) for x in values.ravel().tolist()]).reshape(values.shape)
    return values if values.dtype == object else np.asarray(values, dtype=np.float64)


def advice(values: object) -> str:
    """What to do where :func:`array` found no numbers; of what they are it tells a size at most."""
    with contextlib.suppress(Exception):
        if hasattr(values, "__array__") and columns(values) is None and not hasattr(values, "dtype"):
            return "Pass a list, or an array of NumPy."
        if any(issubclass(type(x), Decimal) and _is_far(x) for x in np.array(values, dtype=object).ravel().tolist()):
            return f"A Decimal must have no digit more than {PLACES:,} places before or behind its point."
    return ""


def _of(found: list[Any]) -> Numbers:
    out = np.empty(len(found), dtype=object)
    out[:] = found
    return out.astype(np.float64) if all(type(x) is float for x in found) else out


def each(rule: Callable[..., object], *arrays: Any) -> Numbers:
    """The rule for every element, as an array of objects."""
    with np.errstate(all="ignore"):  # NumPy looks at flags that Python's arithmetic sets
        return np.asarray(np.frompyfunc(rule, len(arrays), 1)(*arrays), dtype=object)


def floats(x: Numbers) -> npt.NDArray[np.float64]:
    """The nearest float to every number."""
    return each(nearest, x).astype(np.float64) if x.dtype == object else np.asarray(x, dtype=np.float64)


def integers(x: Numbers) -> Numbers:
    """Whole numbers as int64, or as Python's where one is too large for that."""
    found = each(int, x)
    return found.astype(np.int64) if all(-(2**63) <= k < 2**63 for k in found.ravel().tolist()) else found


def finite(x: Numbers) -> npt.NDArray[np.bool_]:
    """Which numbers are neither infinite nor NaN."""
    return np.isfinite(x) if x.dtype != object else np.asarray((x > -math.inf) & (x < math.inf), dtype=bool)


def whole(x: Numbers) -> npt.NDArray[np.bool_]:
    """Which numbers are whole; infinite ones may be either."""
    return x == np.floor(x) if x.dtype != object else each(_is_whole, x).astype(bool)


def _is_whole(x: Number) -> bool:
    return -math.inf < x < math.inf and x == math.floor(x)


def difference(x: Numbers | int | Fraction, y: Numbers) -> npt.NDArray[np.float64]:
    """x - y: of floats as floats are subtracted, of others the float nearest to it."""
    if isinstance(x, int | Fraction) or x.dtype == object or y.dtype == object:  # NumPy makes one object a scalar
        return each(_minus, x, y).astype(np.float64)
    return np.asarray(x - y, dtype=np.float64)


def _minus(x: Number, y: Number) -> float:
    if -math.inf < x < math.inf and -math.inf < y < math.inf:
        return min(max(nearest(Fraction(x) - Fraction(y)), -FARTHEST), FARTHEST)
    return nearest(x) - nearest(y)


def total(x: Numbers, y: npt.NDArray[np.float64], *, lattice: bool) -> Numbers:
    """x + y: of floats as they are added, else exact on whole numbers (``lattice``) and the nearest float on reals."""
    if x.dtype != object:
        found = np.asarray(x + y)
        if not (lattice and np.any(np.isfinite(found) & (np.abs(found) > WHOLE))):
            return found

    def plus(a: Number, b: float) -> Number:
        if not math.isfinite(b):
            return b
        return int(a) + int(b) if lattice else nearest(Fraction(a) + Fraction(b))

    return _of(each(plus, x, y).ravel().tolist()).reshape(np.broadcast_shapes(x.shape, y.shape))

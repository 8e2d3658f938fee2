"""Numbers as the exact numbers they are: none is rounded to float64 on the way in.

A *number* is a float, or an int or Fraction that no float is equal to. An array of numbers is of float64, or of objects
where one of them is no float.
"""

from __future__ import annotations

import math
import mmap
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
    "WHOLE",
    "Number",
    "array",
    "canonical",
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
_WHOLES = {int, *(np.dtype(code).type for code in np.typecodes["AllInteger"])}
#: What NumPy reads as numbers and is none: bytes, spans of time, values under a mask.
_NONE = (
    *(bool, np.bool_, np.timedelta64, np.datetime64, np.ma.MaskedArray),
    *(str, bytes, bytearray, memoryview, mmap.mmap),
)
LARGEST = sys.float_info.max  #: of all floats


def exact(value: object) -> Number | None:
    """A real number of any type; None for whatever is none: bools, strings and spans of time among it.

    Floats and ints of a derived class are the numbers they hold, whatever its methods say.
    """
    kind = type(value)
    if issubclass(kind, float):
        return float.__float__(value)  # type: ignore[arg-type]
    if issubclass(kind, int) and kind is not bool:
        return _float_or(int.__int__(value))  # type: ignore[arg-type]
    if isinstance(value, np.ndarray) and value.ndim == 0 and not isinstance(value, np.ma.MaskedArray):
        item = value[()]
        return None if isinstance(item, np.ndarray) else exact(item)
    if issubclass(kind, _NONE) or not isinstance(value, Real | Decimal):
        return None
    if isinstance(value, Decimal) and value.is_nan():
        return math.nan
    if isinstance(value, Integral):
        return _float_or(int(value))
    if isinstance(value, Rational):
        return _float_or(Fraction(int(value.numerator), int(value.denominator)))
    try:
        return _float_or(Fraction(*value.as_integer_ratio()))  # type: ignore[union-attr]
    except (OverflowError, ValueError):  # infinite, or NaN
        return float(value)
    except (AttributeError, TypeError):  # how it would be rounded is not known
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

    Of float64 and of integers the array itself, not copied; all else as objects, or float64.
    Masked arrays are none: what is under the mask is not for release, and what is not cannot be told apart.
    """
    if _holds_none(values):
        return None
    try:
        if hasattr(values, "__array__"):
            raw = np.asarray(values)
        else:  # NumPy rounds whole numbers that stand beside floats, and asks objects for what float they are
            raw = np.array(values, dtype=object)
            kinds = set(map(type, raw.ravel().tolist()))
            if kinds <= _FLOATS:
                raw = np.asarray(values, dtype=np.float64)
            elif kinds <= _WHOLES:
                plain = np.asarray(values)
                raw = plain if plain.dtype.kind in "iu" else raw
    except (TypeError, ValueError):
        return None
    if raw.dtype.kind == "f" and raw.dtype.itemsize > 8:
        raw = raw.astype(object)
    if raw.dtype.kind == "f" and raw.dtype.itemsize < 8:
        raw = raw.astype(np.float64)  # else ends of a domain would be rounded to the narrower type beside it
    if raw.dtype != object:
        return raw if raw.dtype.kind in "iuf" else None
    found = [exact(value) for value in raw.ravel().tolist()]
    return None if any(x is None for x in found) else _of(found).reshape(raw.shape)


def _holds_none(values: object) -> bool:
    """Whether this is no number to us, or a sequence with such a thing in it, that NumPy may take for numbers."""
    if issubclass(type(values), _NONE):
        return True
    if not isinstance(values, Sequence) or isinstance(values, range):
        return False
    kinds = set(map(type, values))
    if any(issubclass(kind, _NONE) for kind in kinds):
        return True
    return any(issubclass(kind, Sequence) for kind in kinds) and any(map(_holds_none, values))


def canonical(values: Numbers) -> Numbers:
    """What :func:`array` found as an array of numbers: of float64 where all are floats."""
    if values.dtype.kind in "iu":
        floats = values.astype(np.float64)
        if np.all(np.abs(floats) < WHOLE):
            return floats
        return _of([exact(x) for x in values.ravel().tolist()]).reshape(values.shape)
    return values if values.dtype == object else np.asarray(values, dtype=np.float64)


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

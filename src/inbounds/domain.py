"""The sets of answers that make sense: intervals, spans with holes, integer ranges, boxes.

A domain is closed, and true answers lie in it. ``x in domain`` never raises; ``project`` gives the nearest point.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from inbounds import _checks as check
from inbounds import _exact
from inbounds._checks import FloatArray
from inbounds._exact import Number
from inbounds.errors import ParameterError, ParameterTypeError

__all__ = ["Box", "Domain", "Integers", "Interval", "Line", "Spans"]

_LARGEST = 2**53
_FEW = 32  # pieces compared one by one; more are searched


def _ends(what: str, lower: object, upper: object) -> tuple[float, float]:
    low = check.number(what, "lower", lower, finite=False, next_step="Pass the smallest answer that makes sense.")
    high = check.number(what, "upper", upper, finite=False, next_step="Pass the largest answer that makes sense.")
    if not (low < high and low < math.inf and high > -math.inf):
        check.refuse(what, "upper", f"greater than lower ({low!r})", upper, "Pass the ends in order.")
    for name, end in (("lower", low), ("upper", high)):
        if math.isfinite(end) and not abs(end) <= check.LARGEST:
            check.refuse(what, name, f"infinite or at most {check.LARGEST!r} in size", end, "Rescale the answer.")
    if not high - low >= check.SMALLEST:
        check.refuse(what, "upper - lower", f"at least {check.SMALLEST!r}", (low, high), "Rescale the answer.")
    return low, high


def _numbers(x: Any) -> Any:
    """An array of numbers, exact."""
    if type(x) is np.ndarray and x.dtype == np.float64:
        return x
    return check.exact_numbers("domain", "x", x)


def _nearest_whole(x: FloatArray) -> FloatArray:
    """The nearest whole number, ties down; whole numbers stay (subtracting 0.5 would move odd ones beyond 2**52)."""
    return np.where(x == np.floor(x), x, np.ceil(x - 0.5))


def _moved(x: Number, lower: float, upper: float, lattice: bool) -> Number:
    """The nearest number between the ends: a whole one where there are no others."""
    if lattice and -math.inf < x < math.inf and x != math.floor(x):
        x = math.ceil(Fraction(x) - Fraction(1, 2))
    return min(max(x, lower), upper)  # in this order: NaN stays


class Line:
    """What one-dimensional domains share."""

    lower: float
    upper: float

    @property
    def pieces(self) -> tuple[tuple[float, float], ...]:
        """The closed intervals the domain consists of, in order."""
        return ((self.lower, self.upper),)

    @property
    def lattice(self) -> bool:
        """Whether only whole numbers belong to the domain."""
        return False

    @property
    def width(self) -> float:
        return self.upper - self.lower

    @property
    def bounded(self) -> bool:
        return math.isfinite(self.lower) and math.isfinite(self.upper)

    def __contains__(self, x: object) -> bool:
        found = _exact.exact(x)
        return found is not None and self.holds(found)

    def contains(self, x: Any) -> Any:
        """Elementwise membership; NaN is outside."""
        values = _numbers(x)
        if values.dtype == object:
            return _exact.each(self.holds, values).astype(bool)[()]
        inside = np.isfinite(values)
        pieces = self.pieces
        if len(pieces) <= _FEW:
            inside &= np.logical_or.reduce([(values >= low) & (values <= high) for low, high in pieces])
        else:
            ends = np.array(pieces)
            piece = np.maximum(np.searchsorted(ends[:, 0], values, side="right") - 1, 0)
            inside &= (values >= ends[piece, 0]) & (values <= ends[piece, 1])
        if self.lattice:
            inside &= values == np.floor(values)
        return inside

    def contains_all(self, x: npt.NDArray[Any]) -> bool:
        """Whether every element belongs to the domain."""
        x = _numbers(x)
        if len(self.pieces) > 1 or x.size == 0 or x.dtype == object:
            return bool(np.all(self.contains(x)))
        least, most = np.min(x), np.max(x)  # NaN if any is
        inside = self.lower <= least and most <= self.upper and np.isfinite(least) and np.isfinite(most)
        return bool(inside and (not self.lattice or np.all(x == np.floor(x))))

    def holds(self, x: Number) -> bool:
        """:meth:`contains` for one number, quickly."""
        pieces = self.pieces
        low, high = pieces[bisect_right(pieces, (x, math.inf)) - 1]
        return low <= x <= high and -math.inf < x < math.inf and not (self.lattice and x != math.floor(x))

    def moved(self, anchor: Fraction) -> Line:
        """The domain with numbers counted from another one than 0; far ends are rounded, and farther ones nearer."""
        return _MovedLine(self, anchor)

    def project(self, x: Any) -> Any:
        """The nearest point of the domain, elementwise; ties go to the lower one. NaN stays NaN."""
        values = _numbers(x)
        if values.dtype == object:
            out = _exact.each(_moved, values, float(self.lower), float(self.upper), self.lattice)
        else:
            out = np.clip(_nearest_whole(values) if self.lattice else values, self.lower, self.upper)
        for (_, left), (right, _) in pairwise(self.pieces):
            middle = left + (right - left) / 2.0
            out = np.where((values > left) & (values < right), np.where(values <= middle, left, right), out)
        return out[()]


class _MovedLine(Line):
    """See :meth:`Line.moved`; ends may be of any size."""

    def __init__(self, line: Line, anchor: Fraction) -> None:
        away = _exact.difference(np.array(line.pieces), np.array(anchor, dtype=object))
        self._pieces = tuple((low, high) for low, high in away.tolist())
        self._lattice = line.lattice
        self.lower, self.upper = self._pieces[0][0], self._pieces[-1][1]

    @property
    def pieces(self) -> tuple[tuple[float, float], ...]:
        return self._pieces

    @property
    def lattice(self) -> bool:
        return self._lattice


@dataclass(frozen=True)
class Interval(Line):
    """All real answers from ``lower`` to ``upper``, both included; either end may be infinite.

    Parameters
    ----------
    lower, upper : float
        ``lower < upper``; ``-inf`` and ``inf`` give half-lines and the line.

    Examples
    --------
    >>> age = Interval(0, 120)
    >>> 41.5 in age, -3 in age
    (True, False)
    >>> Interval(0, 365).without((90, 120))
    Spans([(0.0, 90.0), (120.0, 365.0)])
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        low, high = _ends("Interval", self.lower, self.upper)
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)

    def without(self, *holes: tuple[float, float]) -> Interval | Spans:
        """The interval less the given open intervals."""
        return _without(self.pieces, holes)

    def __repr__(self) -> str:
        return f"Interval({self.lower!r}, {self.upper!r})"


@dataclass(frozen=True, init=False)
class Spans(Line):
    """A union of disjoint closed intervals of positive length; the gaps between them are holes.

    Parameters
    ----------
    spans : pairs (lower, upper)
        In any order, disjoint and not touching. The first may start at ``-inf``, the last may end at ``inf``.

    Examples
    --------
    >>> Spans([(0, 1), (3, 4)]).holes
    ((1.0, 3.0),)
    """

    spans: tuple[tuple[float, float], ...]

    def __init__(self, spans: Iterable[Sequence[float]], *more: Sequence[float]) -> None:
        try:
            given: list[Any] = list(spans)
        except TypeError:
            check.refuse("Spans", "spans", "pairs (lower, upper)", spans, "Pass a list of pairs.", ParameterTypeError)
        if more or (len(given) == 2 and not any(isinstance(s, Sequence | np.ndarray) for s in given)):
            given = [given, *more]
        if not given:
            check.refuse("Spans", "spans", "one pair (lower, upper) or more", given, "Pass a list of pairs.")
        ordered = sorted(_pair("Spans", "span", s) for s in given)
        for (a, b), (c, d) in pairwise(ordered):
            if not b < c:
                check.refuse("Spans", "spans", "disjoint and not touching", [(a, b), (c, d)], "Merge the two into one.")
        object.__setattr__(self, "spans", tuple(ordered))

    @property
    def pieces(self) -> tuple[tuple[float, float], ...]:
        return self.spans

    @property
    def lower(self) -> float:  # type: ignore[override]
        return self.spans[0][0]

    @property
    def upper(self) -> float:  # type: ignore[override]
        return self.spans[-1][1]

    @property
    def holes(self) -> tuple[tuple[float, float], ...]:
        return tuple((a[1], b[0]) for a, b in pairwise(self.spans))

    def without(self, *holes: tuple[float, float]) -> Interval | Spans:
        """The spans less the given open intervals."""
        return _without(self.pieces, holes)

    def __repr__(self) -> str:
        return f"Spans({list(self.spans)!r})" if len(self.spans) <= 6 else f"<Spans: {len(self.spans)} of them>"


def _pair(what: str, name: str, pair: Any) -> tuple[float, float]:
    if isinstance(pair, str | bytes) or not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
        check.refuse(what, name, "a pair (lower, upper)", pair, "", ParameterTypeError)
    return _ends(what, pair[0], pair[1])


def _without(pieces: tuple[tuple[float, float], ...], holes: tuple[Any, ...]) -> Interval | Spans:
    what = "without"
    if not holes:
        raise ParameterError(f"{what}: one hole (lower, upper) or more must be given. Pass pairs.")
    left = list(pieces)
    for a, b in sorted(_pair(what, "hole", hole) for hole in holes):
        if not (a < left[-1][1] and b > pieces[0][0]) or all(b <= low or a >= high for low, high in left):
            check.refuse(
                what,
                "hole",
                "inside the domain",
                (a, b),
                "Holes outside it, or inside another, remove nothing.",
            )
        cut: list[tuple[float, float]] = []
        for low, high in left:
            if b <= low or a >= high:
                cut.append((low, high))
                continue
            if a >= low:
                cut.append((low, a))
            if b <= high:
                cut.append((b, high))
        for low, high in cut:
            if not low < high:
                check.refuse(
                    what,
                    "hole",
                    "such that no single point is left over",
                    (a, b),
                    f"It leaves the point {low!r} alone.",
                )
        if not cut:
            check.refuse(what, "hole", "smaller than the domain", (a, b), "Nothing is left.")
        left = cut
    return Interval(*left[0]) if len(left) == 1 else Spans(left)


@dataclass(frozen=True)
class Integers(Line):
    """The whole numbers from ``lower`` to ``upper``, both included; either end may be infinite.

    Parameters
    ----------
    lower, upper : int
        ``lower < upper``, each at most 2**53 in size or infinite.

    Examples
    --------
    >>> 3 in Integers(0, 30), 3.5 in Integers(0, 30)
    (True, False)
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        low, high = _ends("Integers", self.lower, self.upper)
        for name, x, given in (("lower", low, self.lower), ("upper", high, self.upper)):
            if math.isfinite(x):
                step = "Use Interval for reals."
                check.whole("Integers", name, x, at_least=-_LARGEST, at_most=_LARGEST, next_step=step)
                if x != _exact.exact(given):
                    check.refuse("Integers", name, "a whole number up to 2**53", given, "")
        object.__setattr__(self, "lower", int(low) if math.isfinite(low) else low)
        object.__setattr__(self, "upper", int(high) if math.isfinite(high) else high)

    @property
    def lattice(self) -> bool:
        return True

    @property
    def pieces(self) -> tuple[tuple[float, float], ...]:
        return ((float(self.lower), float(self.upper)),)

    def __repr__(self) -> str:
        return f"Integers({self.lower!r}, {self.upper!r})"


@dataclass(frozen=True, eq=False, init=False)
class Box:
    """Vectors whose coordinates each lie in an interval of their own (or in an integer range).

    Parameters
    ----------
    lower, upper : sequences of float, of one length m >= 1
        Coordinatewise ``lower < upper``; ends may be infinite.
    integer : bool
        Whether every coordinate is a whole number.

    Examples
    --------
    >>> [3.0, 8.5] in Box([0, 1], [10, 9])
    True
    """

    lower: FloatArray
    upper: FloatArray
    integer: bool = False

    def __init__(self, lower: Any, upper: Any, *, integer: bool = False) -> None:
        low = check.vector("Box", "lower", lower, finite=False, next_step="Pass one lower end per coordinate.")
        high = check.vector("Box", "upper", upper, finite=False, next_step="Pass one upper end per coordinate.")
        if low.shape != high.shape:
            check.refuse("Box", "upper", f"of shape {low.shape}, like lower", f"shape {high.shape}", "")
        if not isinstance(integer, bool):
            check.refuse("Box", "integer", "True or False", integer, "", ParameterTypeError)
        large = np.maximum(np.where(np.isinf(low), 0.0, np.abs(low)), np.where(np.isinf(high), 0.0, np.abs(high)))
        if not np.max(large) <= check.LARGEST:
            check.refuse(
                "Box", "ends", f"infinite or at most {check.LARGEST!r} in size", float(np.max(large)), "Rescale."
            )
        with np.errstate(invalid="ignore"):
            bad = ~((low < high) & (low < math.inf) & (high > -math.inf) & (high - low >= check.SMALLEST))
        if bad.any():
            i = int(np.argmax(bad))
            check.refuse(
                "Box",
                f"upper[{i}]",
                f"greater than lower[{i}] ({float(low[i])!r})",
                float(high[i]),
                "Pass the ends in order.",
            )
        if integer:
            for name, ends in (("lower", low), ("upper", high)):
                wrong = np.isfinite(ends) & ~((ends == np.floor(ends)) & (np.abs(ends) <= _LARGEST))
                if wrong.any():
                    check.refuse("Box", name, "whole numbers up to 2**53", float(ends[np.argmax(wrong)]), "")
        low, high = low + 0.0, high + 0.0  # no -0.0: equal boxes hash alike
        low.flags.writeable = False
        high.flags.writeable = False
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        object.__setattr__(self, "integer", integer)

    @property
    def dimension(self) -> int:
        return int(self.lower.size)

    @property
    def lattice(self) -> bool:
        return self.integer

    @property
    def width(self) -> FloatArray:
        return self.upper - self.lower

    @property
    def bounded(self) -> bool:
        return bool(np.isfinite(self.lower).all() and np.isfinite(self.upper).all())

    def coordinate(self, i: int) -> Interval | Integers:
        """The domain of coordinate ``i``."""
        kind = Integers if self.integer else Interval
        return kind(float(self.lower[i]), float(self.upper[i]))

    def contains(self, x: Any) -> Any:
        """Whether each vector (last axis: coordinates) lies in the box; NaN is outside."""
        values = _numbers(x)
        inside = np.asarray((values >= self.lower) & (values <= self.upper) & _exact.finite(values), dtype=bool)
        if self.integer:
            inside &= _exact.whole(values)
        return inside.all(axis=-1)

    def contains_all(self, x: Any) -> bool:
        """Whether every vector lies in the box."""
        return bool(np.all(self.contains(x)))

    def _along(self, i: int, x: FloatArray) -> FloatArray:
        """Vectors with these values of coordinate ``i``; the others are as near to 0 as they may be."""
        vectors = np.tile(self.project(np.zeros(self.dimension)), (*x.shape, 1))
        vectors[..., i] = x
        return vectors

    def __contains__(self, x: object) -> bool:
        values = _exact.array(x)
        return values is not None and values.shape == self.lower.shape and bool(self.contains(values))

    def project(self, x: Any) -> Any:
        """The nearest point of the box, coordinate by coordinate. NaN stays NaN."""
        values = _numbers(x)
        if values.dtype == object:
            return _exact.each(_moved, values, self.lower, self.upper, self.integer)
        return np.clip(_nearest_whole(values) if self.integer else values, self.lower, self.upper)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Box):
            return NotImplemented
        return (
            self.integer == other.integer
            and np.array_equal(self.lower, other.lower)
            and np.array_equal(self.upper, other.upper)
        )

    def __hash__(self) -> int:
        return hash((self.lower.tobytes(), self.upper.tobytes(), self.integer))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_box, (np.array(self.lower), np.array(self.upper), self.integer)

    def __repr__(self) -> str:
        more = ", integer=True" if self.integer else ""
        if self.dimension <= 6:
            return f"Box({self.lower.tolist()!r}, {self.upper.tolist()!r}{more})"
        return f"<Box: {self.dimension} coordinates{more}>"


def _rebuild_box(lower: FloatArray, upper: FloatArray, integer: bool) -> Box:
    return Box(lower, upper, integer=integer)


Domain = Interval | Spans | Integers | Box


def decimal_width(lower: float, upper: float) -> Fraction:
    """``upper - lower`` with both ends read as the decimals they print as."""
    return Fraction(repr(float(upper))) - Fraction(repr(float(lower)))

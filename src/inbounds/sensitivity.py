"""How far one unit can move the answer: a number, or for vectors a limit on the vector of changes.

The change vector c has |c_i| <= the width of coordinate i in any case; the classes here limit it further.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np

from inbounds import _checks as check
from inbounds import _exact
from inbounds._checks import FloatArray
from inbounds.domain import Box, Domain, Line, decimal_width
from inbounds.errors import ParameterTypeError

__all__ = ["L0", "L1", "L2", "Linf", "PerCoordinate", "Sensitivity", "resolve"]

_ADVICE = "Pass the largest change one record can cause."
_CAPPED = "No answer can move farther than the domain is wide: sensitivity is capped by the domain; pass {!r}."


def _from_above(found: float, given: object) -> float:
    """A limit as a float that is not below the number given, where that is no float."""
    exact = _exact.exact(given)
    return math.nextafter(found, math.inf) if exact is not None and found < exact else found


@dataclass(frozen=True)
class _Norm:
    value: float

    def __post_init__(self) -> None:
        name = type(self).__name__
        found = check.number(name, "value", self.value, above=0.0, at_most=check.LARGEST, next_step=_ADVICE)
        object.__setattr__(self, "value", _from_above(found, self.value))


@dataclass(frozen=True)
class L1(_Norm):
    """The changes of all coordinates add up to at most ``value``."""


@dataclass(frozen=True)
class L2(_Norm):
    """The Euclidean norm of the changes is at most ``value``."""


@dataclass(frozen=True)
class Linf(_Norm):
    """Every coordinate changes by at most ``value``."""


@dataclass(frozen=True)
class L0:
    """At most ``count`` coordinates change, each by at most ``linf``."""

    count: int
    linf: float

    def __init__(self, count: int, *, linf: float) -> None:
        object.__setattr__(self, "count", check.whole("L0", "count", count, at_least=1, at_most=2**53))
        found = check.number("L0", "linf", linf, above=0.0, next_step=_ADVICE)
        object.__setattr__(self, "linf", _from_above(found, linf))


@dataclass(frozen=True)
class PerCoordinate:
    """Coordinate i changes by at most ``values[i]``; 0 for a coordinate that cannot change."""

    values: tuple[float, ...]

    def __init__(self, values: Any) -> None:
        array = check.vector("PerCoordinate", "values", values, next_step="Pass one limit per coordinate.")
        if not ((array >= 0.0).all() and (array > 0.0).any()):
            check.refuse("PerCoordinate", "values", "non-negative and not all 0", values, _ADVICE)
        object.__setattr__(self, "values", tuple(map(_from_above, array.tolist(), values)))


Sensitivity = float | L1 | L2 | Linf | L0 | PerCoordinate


def resolve(what: str, sensitivity: Any, domain: Domain) -> Sensitivity:
    """The sensitivity checked against the domain: a float for one dimension, a limit object for a box."""
    if isinstance(domain, Box):
        return _resolve_box(what, sensitivity, domain)
    if isinstance(sensitivity, L1 | L2 | Linf):
        sensitivity = sensitivity.value
    delta = check.number(what, "sensitivity", sensitivity, above=0.0, next_step=_ADVICE)
    if not check.SMALLEST <= delta <= check.LARGEST:
        check.refuse(what, "sensitivity", f"from {check.SMALLEST!r} to {check.LARGEST!r}", delta, "Rescale the answer.")
    delta = min(_from_above(_capped(what, "sensitivity", delta, domain), sensitivity), float(domain.width))
    if domain.lattice and delta != math.floor(delta):
        check.refuse(
            what,
            "sensitivity",
            "a whole number on Integers",
            sensitivity,
            "Round it down: changes are whole.",
        )
    return delta


def _capped(what: str, name: str, delta: float, domain: Line) -> float:
    width = float(domain.width)
    if delta <= width:
        return delta
    if Fraction(repr(delta)) <= decimal_width(domain.lower, domain.upper):
        return width  # 0.2 on (0.1, 0.3): equal as decimals, an ulp apart as floats
    check.refuse(
        what,
        name,
        f"a finite number in (0, {width!r}]",
        delta,
        _CAPPED.format(width),
    )


def _resolve_box(what: str, sensitivity: Any, box: Box) -> L1 | L2 | Linf | L0 | PerCoordinate:
    if not isinstance(sensitivity, L1 | L2 | Linf | L0 | PerCoordinate):
        if isinstance(sensitivity, list | tuple | np.ndarray) and np.ndim(sensitivity) == 1:
            sensitivity = PerCoordinate(sensitivity)
        else:
            check.refuse(
                what,
                "sensitivity",
                "L1, L2, Linf, L0 or one limit per coordinate for a Box",
                sensitivity,
                "For instance inbounds.L2(1.0).",
                ParameterTypeError,
            )
    width = box.width
    if isinstance(sensitivity, PerCoordinate):
        if len(sensitivity.values) != box.dimension:
            check.refuse(what, "sensitivity", f"of length {box.dimension}, one per coordinate", sensitivity.values, "")
        values = np.array(sensitivity.values)
        wide = values > width
        if wide.any():
            i = int(np.argmax(wide))
            values[i] = _capped(what, f"sensitivity[{i}]", float(values[i]), box.coordinate(i))
            values = np.minimum(values, np.where(wide, width, values))
            return _resolve_box(what, PerCoordinate(values), box)
        if box.integer and (values != np.floor(values)).any():
            check.refuse(what, "sensitivity", "whole numbers on an integer Box", sensitivity.values, "Round down.")
        return sensitivity
    if isinstance(sensitivity, L0):
        if not sensitivity.count <= box.dimension:
            check.refuse(what, "sensitivity.count", f"at most {box.dimension}", sensitivity.count, "")
        value, largest, name = sensitivity.linf, float(width.max()), "sensitivity.linf"
    else:
        value, name = sensitivity.value, "sensitivity"
        largest = {
            L1: float(width.sum()),
            L2: float(np.hypot.reduce(width)) if width.size < 64 else float(np.linalg.norm(width)),
            Linf: float(width.max()),
        }[type(sensitivity)]
    if not value <= largest * (1.0 + 1e-12):
        check.refuse(
            what,
            name,
            f"a finite number in (0, {largest!r}]",
            value,
            _CAPPED.format(largest),
        )
    if box.integer and not isinstance(sensitivity, L2) and value != math.floor(value):
        check.refuse(what, name, "a whole number on an integer Box", value, "Round it down: changes are whole.")
    return cast(L1 | L2 | Linf | L0, sensitivity)


def largest_norm(sensitivity: Sensitivity, width: FloatArray, order: int) -> float:
    """An upper bound (exact up to rounding, for reals) of the l1 or l2 norm of an allowed change vector."""

    def norm(c: FloatArray) -> float:
        return float(np.sum(c)) if order == 1 else float(np.sqrt(np.sum(np.square(c))))

    if isinstance(sensitivity, PerCoordinate):
        return norm(np.array(sensitivity.values))
    if isinstance(sensitivity, Linf):
        return norm(np.minimum(sensitivity.value, width))
    if isinstance(sensitivity, L0):
        return norm(np.sort(np.minimum(sensitivity.linf, width))[-sensitivity.count :])
    if isinstance(sensitivity, L1):
        # l2 under an l1 limit: all of it in as few coordinates as their widths allow.
        if order == 1:
            return min(sensitivity.value, float(np.sum(width)))
        ordered = np.sort(width)[::-1]
        before = np.concatenate([[0.0], np.cumsum(ordered)[:-1]])
        return norm(np.clip(sensitivity.value - before, 0.0, ordered))
    limit = cast(L2, sensitivity).value
    if order == 2:
        return min(limit, norm(width))
    # l1 under an l2 limit: equal changes, capped by the widths (water filling).
    ordered = np.sort(width)
    squares = np.concatenate([[0.0], np.cumsum(np.square(ordered))])[:-1]
    rest = ordered.size - np.arange(ordered.size)
    level = np.sqrt(np.maximum(limit**2 - squares, 0.0) / rest)
    k = int(np.argmax(level <= ordered)) if (level <= ordered).any() else ordered.size - 1
    return norm(np.minimum(level[k], ordered))

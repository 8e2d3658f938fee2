"""Fixed-point numbers, and the caps from which their steps follow.

A value v is clipped to [lower, upper] and becomes x = floor((v - center) / step + 1/2) in float64 arithmetic. The step
is a power of two, chosen from public facts alone so that no sum overflows int64. Each operation is rounded the same way
on every engine and none of them decreases as v grows, so x lies between the images of lower and upper, which are known
beforehand: ``lowest`` and ``highest``. Proof page: ``docs/proofs/bounding.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inbounds.tables.exact import real
from inbounds.tables.kinds import extra

if TYPE_CHECKING:
    from narwhals import Expr

__all__ = ["FINE", "ROOM", "Caps", "Fixed"]

ROOM = 2**62  # sums stay below this; int64 ends at 2^63
FINE = 2**50  # steps on either side of the centre for values of rows, which are compared but not summed in one piece


@dataclass(frozen=True)
class Caps:
    """How much one unit may contribute to one group, and how many units there may be.

    Attributes
    ----------
    rows : int or None
        The rows of a unit that are kept in a group; None where a unit has one value there.
    limit : int
        No group has more units than this, and no unit more rows.
    """

    rows: int | None
    limit: int

    @property
    def values(self) -> int:
        """How many values a unit has in a group, at most."""
        return self.rows or 1

    @property
    def room(self) -> int:
        """How large a value may be so that no sum overflows."""
        return ROOM // (self.limit * self.values)


@dataclass(frozen=True)
class Fixed:
    """Fixed-point numbers: x = floor((clipped value - center) / step + 1/2), a whole number in [lowest, highest].

    Attributes
    ----------
    lower, upper, center : float
        In the units of the column: dates in days, times in seconds since 1970-01-01.
    step : float
        A power of two.
    """

    lower: float
    upper: float
    center: float
    step: float

    @classmethod
    def within(cls, lower: float, upper: float, center: float, most: int) -> Fixed:
        """The finest step with which no value is more than ``most`` steps from the centre."""
        reach = max(upper - center, center - lower)
        exponent = math.frexp(reach)[1] - most.bit_length() - 1
        while True:
            fixed = cls(lower, upper, center, math.ldexp(1.0, exponent))
            if -fixed.lowest <= most and fixed.highest <= most:
                return fixed
            exponent += 1

    def of(self, value: float) -> int:
        """The whole number for a value, in Python."""
        clipped = min(max(value, self.lower), self.upper)
        return math.floor((clipped - self.center) * (1.0 / self.step) + 0.5)

    def express(self, value: Expr) -> Expr:
        """The same in an engine; null for null."""
        nw = extra("narwhals")
        steps = (value.clip(real(self.lower), real(self.upper)) - real(self.center)) * real(1.0 / self.step)
        return (steps + real(0.5)).floor().cast(nw.Int64)

    @property
    def lowest(self) -> int:
        return self.of(self.lower)

    @property
    def highest(self) -> int:
        return self.of(self.upper)

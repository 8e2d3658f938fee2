"""Whole-number division that is exact and the same on every engine.

Integer division means different things to different engines: some round towards zero, some go through float64. Here it
is built from what they agree on: float64 arithmetic, floor, and the remainder of whole numbers.
Proof page: ``docs/proofs/bounding.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inbounds.tables.kinds import extra

if TYPE_CHECKING:
    from narwhals import Expr

__all__ = ["divide", "divide_small", "integer", "nearest", "real"]


def integer(value: int) -> Expr:
    """A literal of type int64, whatever its size."""
    nw = extra("narwhals")
    expression: Expr = nw.lit(value, dtype=nw.Int64)
    return expression


def real(value: float) -> Expr:
    """A literal of type float64, never a decimal."""
    nw = extra("narwhals")
    expression: Expr = nw.lit(value, dtype=nw.Float64)
    return expression


def divide_small(a: Expr, b: int) -> Expr:
    """floor(a / b) for whole numbers, \\|a\\| <= 2^52 and 1 <= b <= 2^52: no float64 lies between a/b and its floor."""
    nw = extra("narwhals")
    return (a.cast(nw.Float64) / real(float(b))).floor().cast(nw.Int64)


def divide(a: Expr, b: Expr) -> Expr:
    """floor(a / b) for whole numbers, \\|a\\| < 2^63 - b, 1 <= b <= 2^53 and \\|a / b\\| <= 2^50.

    a - (a mod b) is a whole multiple t b. Its float64 and the quotient are each off by 2^-53 of themselves at most, so
    by less than 1/2 in all, and rounding gives t.
    """
    nw = extra("narwhals")
    quotient = (a - a % b).cast(nw.Float64) / b.cast(nw.Float64)
    return (quotient + real(0.5)).floor().cast(nw.Int64)


def nearest(a: Expr, b: Expr) -> Expr:
    """The whole number nearest to a / b, ties up: floor((a + floor(b/2)) / b)."""
    return divide(a + divide_small(b, 2), b)

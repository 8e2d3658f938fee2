"""Helpers the mathematics shares: safe reading of decimals, quadrature, recurrences, roots and certified suprema.

Directions: everything called *upper* is never below the exact value; the proof is in ``docs/proofs/rounding.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

FloatArray = npt.NDArray[np.float64]

#: Relative safety margin put on every privacy quantity computed in float64. The formulas in ``noise`` are accurate
#: to a few dozen units in the last place (tested against 50 digits); this is thousands of times more.
SLACK = 2.0**-40
_MANY = 4096  # open cells of a supremum beyond which the tolerance is relaxed
_LOG_LARGEST = 172.0  # scales are kept within e^±172, about 1e±75, whose fourth powers are finite


class Bound(float):
    """A guaranteed privacy parameter: a float that also says whether it is exact.

    ``exact`` is True when the number is the smallest valid one up to the stated numerical tolerance, and False when
    it is a proven upper bound that may be larger than necessary; ``reason`` says which argument gave it.
    """

    exact: bool
    reason: str

    def __new__(cls, value: float, *, exact: bool, reason: str) -> Bound:
        self = super().__new__(cls, value)
        self.exact = exact
        self.reason = reason
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict[str, object]]:
        return (float(self),), {"exact": self.exact, "reason": self.reason}


def decimal_floor(x: float) -> float:
    """The largest float that exceeds neither ``x`` nor the shortest decimal that ``x`` prints as.

    A user who writes 0.1 means one tenth; the float 0.1 is a little more. A budget of that many decimals must not be
    exceeded on either reading.
    """
    return math.nextafter(x, -math.inf) if Fraction(repr(x)) < Fraction(x) else x


def rounded(x: float, *, up: bool = True, digits: int = 6) -> str:
    """A number for people: so many digits, never below the number itself (or never above it)."""
    if not math.isfinite(x):
        return str(float(x))
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    near = context.create_decimal(Decimal(repr(float(x)))).normalize()  # 0.1 is a tenth
    return f"{near:f}" if -5 <= near.adjusted() < 6 else f"{near:e}"


def width_up(lower: float, upper: float) -> float:
    """``upper - lower`` rounded upwards."""
    width = upper - lower
    if math.isinf(width):
        return width
    return math.nextafter(width, math.inf) if Fraction(width) < Fraction(upper) - Fraction(lower) else width


def legendre(nodes: int, panels: int = 1) -> tuple[FloatArray, FloatArray]:
    """Composite Gauss-Legendre nodes and weights on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    starts = np.arange(panels, dtype=np.float64)[:, None]
    return ((starts + (x + 1.0) / 2.0) / panels).ravel(), np.tile(w / 2.0 / panels, panels)


def log_sum(values: FloatArray) -> FloatArray:
    """log of the sum of exponentials along the last axis; -inf for an empty sum."""
    top = np.max(values, axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        out: FloatArray = np.log(np.sum(np.exp(values - top), axis=-1)) + top[..., 0]
    return out


def linear_recurrence(factor: FloatArray, term: FloatArray) -> FloatArray:
    """y[k] = factor[k] * y[k-1] + term[k], y[-1] = 0, for non-negative factors and terms.

    The rows of a square arrangement run side by side and are then chained: O(n) work in about 2 sqrt(n) vector steps.
    A prefix sum of rescaled terms would overflow; a parallel scan costs n log n.
    """
    n = factor.size
    side = math.isqrt(max(n - 1, 0)) + 1
    a = np.ones(side * side)
    y = np.zeros(side * side)
    a[:n], y[:n] = factor, term
    across, down = a.reshape(side, side).T.copy(), y.reshape(side, side).T.copy()
    for j in range(1, side):
        down[j] += across[j] * down[j - 1]
        across[j] *= across[j - 1]
    carry = np.zeros(side)
    for row in range(1, side):
        carry[row] = down[-1, row - 1] + across[-1, row - 1] * carry[row - 1]
    out: FloatArray = (down + across * carry).T.ravel()[:n]
    return out


def smallest(
    upper: Callable[[float], float],
    target: float,
    low: float,
    high: float,
    *,
    rtol: float,
) -> float:
    """The smallest scale found whose ``upper`` value is certainly at most ``target``; infinite if none is.

    ``upper`` is continuous and falls on the bracket that is searched, which starts as [low, high] and is widened as
    needed. The root is located on logarithmic axes and then stepped upwards until the value at the very float returned
    is verified.
    """

    seen: dict[float, float] = {}

    def excess(log_scale: float) -> float:
        if log_scale not in seen:
            seen[log_scale] = upper(math.exp(log_scale))
        value = seen[log_scale]
        if value <= 0.0:
            return -math.inf
        return math.log(value) - math.log(target)

    start, stop = math.log(low), math.log(high)
    while not excess(stop) <= 0.0:
        start, stop = stop, stop + math.log(4.0)
        if stop > _LOG_LARGEST:
            return math.inf
    while excess(start) <= 0.0 and start > -_LOG_LARGEST:
        start, stop = start - math.log(4.0), start
    if excess(start) <= 0.0:
        root = start
    else:
        # A value of zero (log: -inf) carries no slope: cap it so that the interpolation stays finite.
        root = brentq(
            lambda s: max(min(excess(s), 60.0), -60.0),
            start,
            stop,
            xtol=rtol / 8.0,
            rtol=8.9e-16,
            maxiter=300,
        )
    scale, step = math.exp(root), rtol / 8.0
    while not upper(scale) <= target:
        scale *= 1.0 + step
        step *= 2.0
        if scale > math.exp(_LOG_LARGEST):
            return math.inf
    return scale


def certified_sup(
    value: Callable[[FloatArray], FloatArray],
    bound: Callable[[FloatArray, FloatArray, float], FloatArray],
    starts: FloatArray,
    stops: FloatArray,
    *,
    rtol: float,
    atol: float = 0.0,
    known: float = 0.0,
    ceiling: float = math.inf,
    target: float = math.nan,
    lattice: bool = False,
    budget: int = 1_000_000,
) -> tuple[float, float]:
    """Branch and bound: (lower, upper) with lower <= sup of ``value`` over the cells <= upper.

    ``bound(a, b, enough)`` is an upper bound of ``value`` on each cell [a, b]; it need be no better than ``enough``.
    Cells that cannot beat the best value found by more than ``rtol`` and ``atol`` are dropped, the others halved, until
    none is left, or ``target`` separates the two, or the budget of evaluations is spent (then ``upper`` is larger than
    it could be). ``known``: a value that is known to be attained or that need not be beaten; ``ceiling``: one that
    is known not to be exceeded. A bound that is not a number counts as infinite.
    """
    best = known
    if starts.size == 0:
        return best, best
    a, b = starts, stops
    best = max(best, float(np.nanmax(value(np.unique(np.concatenate([a, b]))), initial=0.0)))
    settled = best
    while True:
        middle = np.floor((a + b) / 2.0) if lattice else (a + b) / 2.0
        budget -= a.size
        best = max(best, float(np.nanmax(value(middle), initial=0.0)))
        enough = best * (1.0 + rtol) + atol
        upper = bound(a, b, enough)
        upper = np.minimum(np.where(np.isnan(upper), np.inf, upper), ceiling)  # what is not known is not small
        if lattice:
            single = a >= b
            exactly = value(a[single])
            upper[single] = np.where(np.isnan(exactly), np.inf, exactly)
        if best > target:
            return best, max(settled, best, float(np.max(upper)))
        keep = upper > enough
        if lattice:
            keep &= ~single
        if (~keep).any():
            settled = max(settled, float(np.max(upper[~keep])))
        if not keep.any():
            return best, max(settled, best)
        open_upper = float(np.max(upper[keep]))
        if max(settled, open_upper) <= target or budget < 0 or (not lattice and np.max(b - a) <= 0.0):
            return best, max(settled, best, open_upper)
        a, b, middle = a[keep], b[keep], middle[keep]
        if a.size > _MANY:
            rtol *= 4.0  # a plateau, or rounding noise: settle for less rather than split it to dust
        after = middle + 1.0 if lattice else middle
        a, b = np.concatenate([a, after]), np.concatenate([middle, b])

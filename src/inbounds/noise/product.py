"""Vectors: the worst change of several coordinates at once.

The loss of a product is the sum of its coordinates' wall losses h_i(c_i), each increasing and concave in the change
c_i, so the worst change solves a concave maximisation over the limit on c. Proof: ``docs/proofs/box.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np
from scipy.optimize import brentq

from inbounds._checks import FloatArray
from inbounds.sensitivity import L0, L1, L2, Linf, PerCoordinate, Sensitivity

#: (changes, widths) -> loss, first and second derivative, elementwise
Loss = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray, FloatArray]]

_TINY = 1e-300


def worst_sum(
    loss: Loss,
    width: FloatArray,
    sensitivity: Sensitivity,
    *,
    weight: FloatArray | None = None,
    start: FloatArray | None = None,
    rtol: float = 2.0**-44,
    rounds: int = 60,
) -> tuple[float, FloatArray]:
    """(upper bound, worst change): the largest total loss over allowed changes; the bound is never below it.

    ``weight``: how many coordinates each entry stands for. L1 and L2 limits are solved by joint Newton steps on all
    changes and the multiplier; the bound is the dual value with every loss replaced by its tangent at the final point,
    which is valid at any point and tight to second order.
    """
    w = np.ones_like(width) if weight is None else weight
    if isinstance(sensitivity, PerCoordinate):
        c = np.minimum(np.array(sensitivity.values), width)
        return float(np.sum(w * loss(c, width)[0])), c
    if isinstance(sensitivity, Linf):
        c = np.minimum(sensitivity.value, width)
        return float(np.sum(w * loss(c, width)[0])), c
    if isinstance(sensitivity, L0):
        c = np.minimum(sensitivity.linf, width)
        h = loss(c, width)[0]
        chosen = np.argsort(h)[-sensitivity.count :]
        keep = np.zeros_like(c)
        keep[chosen] = c[chosen]
        return float(np.sum(h[chosen])), keep
    power = 1 if isinstance(sensitivity, L1) else 2
    limit = cast(L1 | L2, sensitivity).value
    c = np.minimum(width, limit / float(np.sum(w)) ** (1.0 / power)) if start is None else start
    best, best_c = math.inf, c
    for _ in range(rounds):
        h, slope, curve = loss(c, width)
        upper = _tangent_bound(h, slope, c, width, w, limit, power)
        value = float(np.sum(w * h)) if _norm(c, w, power) <= limit * (1.0 + 1e-15) else -math.inf
        improved = upper < best * (1.0 - rtol)
        if upper < best:
            best, best_c = upper, c
        if best - value <= rtol * best or not improved:
            break
        c = _newton(slope, curve, c, width, w, limit, power)
    return best, best_c


def _norm(c: FloatArray, w: FloatArray, power: int) -> float:
    return float(np.sum(w * c)) if power == 1 else math.sqrt(float(np.sum(w * np.square(c))))


def _multiplier(step: Callable[[float], FloatArray], w: FloatArray, limit: float, power: int, high: float) -> float:
    """The multiplier at which the step's changes just use up the limit (their norm falls in it); 0 if they never do."""

    def excess(log_multiplier: float) -> float:
        return _norm(step(math.exp(log_multiplier)), w, power) / limit - 1.0

    stop = math.log(high)
    start = stop - 40.0
    if excess(start) <= 0.0:
        return math.exp(start)
    while excess(stop) > 0.0:
        stop += 3.0
    return math.exp(brentq(excess, start, stop, xtol=1e-15, rtol=8.9e-16))


def _newton(
    slope: FloatArray, curve: FloatArray, c: FloatArray, width: FloatArray, w: FloatArray, limit: float, power: int
) -> FloatArray:
    """The changes that maximise the quadratic model of the total loss under the limit."""
    bend = np.maximum(-curve, _TINY)

    def step(multiplier: float) -> FloatArray:
        if power == 1:
            with np.errstate(over="ignore"):
                return np.clip(c + (slope - multiplier) / bend, 0.0, np.minimum(width, limit))
        return np.clip((slope + bend * c) / (2.0 * multiplier + bend), 0.0, np.minimum(width, limit))

    top = float(np.max(slope)) if power == 1 else float(np.max(slope + bend * c)) / limit
    found = step(_multiplier(step, w, limit, power, max(top, _TINY)))
    return found * min(1.0, limit / max(_norm(found, w, power), _TINY))


def _tangent_bound(
    h: FloatArray, slope: FloatArray, c: FloatArray, width: FloatArray, w: FloatArray, limit: float, power: int
) -> float:
    """Dual value of the tangent model: an upper bound of the largest total loss for any c and any multiplier."""
    base = h - slope * c
    if power == 1:
        # a linear objective under an l1 limit: fill the steepest coordinates first
        order = np.argsort(-slope)
        room = np.minimum(width, limit)[order] * w[order]
        filled = np.clip(limit - np.concatenate([[0.0], np.cumsum(room)[:-1]]), 0.0, room)
        return float(np.sum(w * base) + np.sum(np.maximum(slope[order], 0.0) * filled))

    if not np.max(slope) > 0.0:
        return float(np.sum(w * base))

    def step(multiplier: float) -> FloatArray:
        return np.clip(slope / (2.0 * multiplier), 0.0, width)

    lam = _multiplier(step, w, limit, power, float(np.max(slope)) / limit)
    x = step(lam)
    return float(np.sum(w * (base + slope * x - lam * np.square(x)))) + lam * limit * limit

"""A bound over all pairs of true values of a family with a log-concave kernel; ``docs/proofs/`` has the theorems."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from inbounds._checks import FloatArray
from inbounds.auditing.family import LocationFamily
from inbounds.auditing.pairs import Neighbours
from inbounds.auditing.quadrature import Pairs, blocks, one
from inbounds.domain import Integers, Interval
from inbounds.numerics import Bound

__all__ = ["certify"]

_CELLS = 6_000  # pairs evaluated


def certify(family: LocationFamily, near: Neighbours, epsilon: float, delta: float | None, goal: float) -> Bound:
    """An upper bound over all pairs, by cells of true values; docs/proofs/monotone-likelihood-ratio.md, Fact B.

    For q in [a, b] and any partner q' at most the sensitivity above it, D(p_q || p_q') is at most D(p_a || p_c) with c
    the largest point of the domain within reach of b; both orders. Cells above the goal are halved.
    """
    domain = family.domain
    if delta is None and not domain.bounded:
        return Bound(math.inf, exact=False, reason="an open end")
    starts, stops, settled = [], [], 0.0
    for low, high in domain.pieces:
        if math.isinf(low) or math.isinf(high):
            low, high, beyond = _far(family, near, epsilon, goal, low, high)
            settled = max(settled, beyond)
        if low <= high and math.isfinite(low) and math.isfinite(high):
            edges = np.linspace(low, high, 17)
            if domain.lattice:
                edges = np.unique(np.round(edges))
                starts.append(edges)
                stops.append(np.append(edges[1:] - 1.0, edges[-1]))
            else:
                starts.append(edges[:-1])
                stops.append(edges[1:])
    a = np.concatenate(starts) if starts else np.zeros(0)
    b = np.concatenate(stops) if stops else np.zeros(0)
    spent = 0
    while a.size:
        upper = _cell_bounds(family, near, a, b, epsilon, pure=delta is None)
        spent += a.size
        open_ = upper > goal
        if domain.lattice:
            single = a >= b
            settled = max(settled, float(np.max(upper[single], initial=0.0)))
            open_ &= ~single
        settled = max(settled, float(np.max(upper[~open_], initial=0.0)))
        if not open_.any():
            break
        if settled > goal or spent > _CELLS or np.max((b - a)[open_]) <= 1e-12 * (1.0 + np.max(np.abs(a))):
            settled = max(settled, float(np.max(upper[open_])))
            break
        a, b = a[open_], b[open_]
        middle = np.floor((a + b) / 2.0) if domain.lattice else (a + b) / 2.0
        after = middle + 1.0 if domain.lattice else middle
        a, b = np.concatenate([a, after]), np.concatenate([middle, b])
    return Bound(settled, exact=False, reason=f"{spent} cells of true values, each bounded by its outer pair")


def _cell_bounds(
    family: LocationFamily, near: Neighbours, a: FloatArray, b: FloatArray, epsilon: float, *, pure: bool
) -> FloatArray:
    high = np.maximum(near.farthest(b), a)
    some = high > a
    out = np.zeros(a.shape)
    if not some.any():
        return out
    low, high = a[some], high[some]
    if pure:
        found = [np.max(np.abs(p.loss()) + p.noise(), axis=1) for p in blocks(family, low, high)]
    else:
        found = [_set_bound(family, p, epsilon) for p in blocks(family, low, high)]
    out[some] = np.concatenate(found)
    return out


def _set_bound(family: LocationFamily, found: Pairs, epsilon: float) -> FloatArray:
    """The integral of (p - e^epsilon p')_+ in the worse order, from above.

    The sets are half-lines; integrating again with panels that end where they do leaves no kink inside a panel.
    """
    order = np.argsort(found.x, axis=1)
    x = np.take_along_axis(found.x, order, axis=1)
    loss = np.take_along_axis(found.loss(), order, axis=1)
    cuts = []
    for level in (epsilon, -epsilon):
        i = np.sum(loss > level, axis=1)  # the loss falls in x
        good = np.take_along_axis(x, np.maximum(i - 1, 0)[:, None], axis=1)[:, 0]
        wrong = np.take_along_axis(x, np.minimum(i, x.shape[1] - 1)[:, None], axis=1)[:, 0]
        for _ in range(0 if family.domain.lattice else 50):
            middle = np.asarray(family.domain.project((good + wrong) / 2.0), dtype=np.float64)
            above = found.loss_at(family, middle) > level
            good, wrong = np.where(above, middle, good), np.where(above, wrong, middle)
        cuts.append(np.where(i == 0, x[:, 0] - 1.0, np.where(i == x.shape[1], x[:, -1], good)))
    found_again = list(blocks(family, found.low, found.high, np.stack(cuts, axis=1)))
    bounds = [np.maximum(*(value + error for value, error in part.hockey_bounds(epsilon))) for part in found_again]
    return np.concatenate(bounds)


def _far(
    family: LocationFamily, near: Neighbours, epsilon: float, goal: float, low: float, high: float
) -> tuple[float, float, float]:
    """Cut the open part off a piece: (low, high, bound for the true values cut off); docs/proofs/profile.md, 2e."""
    lattice = family.domain.lattice
    line = replace(family, domain=Integers(-math.inf, math.inf) if lattice else Interval(-math.inf, math.inf))
    if math.isinf(low) and math.isinf(high):
        return math.inf, -math.inf, _line_bound(line, near.reach, epsilon, 1.0)
    upwards = math.isinf(high)
    wall = low if upwards else high
    share, away = 0.0, near.reach + near.scale
    for _ in range(30):
        away = math.ceil(2.0 * away) if lattice else 2.0 * away
        q = wall + away if upwards else wall - away
        part = next(blocks(line, np.array([q]), np.array([q]), np.array([[wall]])))
        cut = wall + (-0.5 if upwards else 0.5) if lattice else wall
        share = 1.0 - float(part.mass(cut, above=not upwards)[0])
        if share > 1.0 - 1e-4 * min(goal, 1e-6):
            break
    if share <= 0.5:
        return math.inf, -math.inf, math.inf
    beyond = _line_bound(line, near.reach, epsilon, share)
    return (low, q, beyond) if upwards else (q, high, beyond)


def _line_bound(line: LocationFamily, reach: float, epsilon: float, share: float) -> float:
    """H(epsilon + ln share) / share of the untruncated pair."""
    found = one(line, 0.0, reach)
    return float(_set_bound(line, found, epsilon + math.log(share))[0]) / share

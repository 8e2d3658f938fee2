"""The worst pair of a table of whole numbers, in integers: nothing is estimated and nothing is left out."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import cast

import numpy as np

from inbounds.auditing.report import Event, Witness
from inbounds.mechanism import Table
from inbounds.sampling.exact import exp_neg

__all__ = ["table_evidence"]

_ROUNDING = 2.0**-40  # relative, of a number that was computed in integers and then made a float


def table_evidence(m: Table, epsilon: float, delta: float) -> tuple[Witness | None, Witness | None, float]:
    """The output with the largest loss, the output set with the largest delta, and an epsilon ruled out at delta."""
    curve = m._curve
    if curve.pure() == 0.0:
        return None, None, 0.0
    _, (a, b, column) = curve.worst
    one = _output(m, a, b, column, epsilon)
    _, (a, b) = curve.largest_excess(epsilon)
    many = _set(m, a, b, epsilon, delta)
    return one, many, _ruled_out(m, a, b, delta) if delta > 0.0 else 0.0


def _pair(m: Table, a: int, b: int) -> tuple[float, float]:
    """True values of two cells, as near to each other as they can be."""
    low, high = min(a, b), max(a, b)
    ends = float(m._cells.starts[high]), float(m._cells.ends(m.domain)[1][low])  # type: ignore[arg-type]
    before = ends[1] if m.domain.lattice or ends[1] < m._cells.starts[low + 1] else math.nextafter(ends[1], -math.inf)
    return (before, ends[0]) if a == low else (ends[0], before)


def _output(m: Table, a: int, b: int, column: int, epsilon: float) -> Witness:
    first, second = int(m._curve.rows[a, column]), int(m._curve.rows[b, column])
    loss = math.log(first) - math.log(second) if second else math.inf
    excess = math.inf
    if second:  # ln of the ratio over e^epsilon: as a difference of logarithms it would lose its digits
        bits = 192 + math.ceil(1.5 * epsilon)
        keep = exp_neg(Fraction(epsilon), bits)[0]
        over = Fraction(first * keep - (second << bits), second << bits)
        excess = math.log1p(float(over)) if over < 1 else loss - epsilon
    shares = m._shares
    return Witness(
        pair=_pair(m, a, b),
        output=float(m._cells.points[column]),
        likelihoods=(float(shares[a, column]), float(shares[b, column])),
        loss=loss,
        excess=excess,
        error=abs(excess) * _ROUNDING if math.isfinite(excess) else 0.0,
    )


def _set(m: Table, a: int, b: int, epsilon: float, delta: float) -> Witness:
    over = m._curve.excess(a, b, epsilon)
    chosen = m._shares[a] > math.exp(epsilon) * m._shares[b]
    first, second = (
        Fraction(
            sum(w for w, yes in zip(m._curve.rows[q].tolist(), chosen.tolist(), strict=True) if yes), m._curve.total
        )
        for q in (a, b)
    )
    excess = float(over - Fraction(delta))
    return Witness(
        pair=_pair(m, a, b),
        event=_event(m, chosen),
        probabilities=(float(first), float(second)),
        loss=math.log(first / second) if first and second else math.inf if first else 0.0,
        excess=excess,
        error=abs(excess) * _ROUNDING,
    )


def _event(m: Table, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Event:
    """The points chosen, neighbours joined."""
    cuts = np.concatenate([[-math.inf], m._cells.points[:-1], [math.inf]])
    edges = np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8))
    starts, stops = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return tuple((float(cuts[i]), float(cuts[j])) for i, j in zip(starts, stops, strict=True))


def _ruled_out(m: Table, a: int, b: int, delta: float) -> float:
    """The largest epsilon found for which this pair exceeds delta."""
    low, high = 0.0, min(float(m._curve.pure()), 500.0)
    goal = Fraction(delta)
    if not m._curve.excess(a, b, 0.0) > goal:
        return 0.0
    if m._curve.excess(a, b, high) > goal:
        return math.inf if math.isinf(cast(float, m._curve.pure())) else high
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if m._curve.excess(a, b, middle) > goal else (low, middle)
    return low

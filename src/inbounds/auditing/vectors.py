"""The worst pair of a mechanism on a box: the change vector comes from the theory, the loss from the output laws."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np

from inbounds._checks import FloatArray
from inbounds.auditing.lines import ERROR, output_witness, set_witness
from inbounds.auditing.report import Event, Witness
from inbounds.domain import Box, Interval
from inbounds.mechanism import Additive
from inbounds.noise.product import worst_sum
from inbounds.privacy import BoxCurve
from inbounds.sensitivity import L0, L1, L2, Linf, PerCoordinate

_TRIED = 6  # coordinates whose sets are searched
_STEPS = 2000  # of a whole change, one at a time


def _allowed(sensitivity: Any, c: FloatArray) -> bool:
    """Whether a change vector is within the limit, as floats."""
    if isinstance(sensitivity, PerCoordinate):
        return bool((c <= np.array(sensitivity.values)).all())
    if isinstance(sensitivity, Linf):
        return bool((c <= sensitivity.value).all())
    if isinstance(sensitivity, L0):
        return bool((c <= sensitivity.linf).all() and np.count_nonzero(c) <= sensitivity.count)
    if isinstance(sensitivity, L1):
        return math.fsum(c.tolist()) <= sensitivity.value
    return math.fsum(np.square(c).tolist()) <= cast(L2, sensitivity).value ** 2


def _worst_change(m: Additive, box: Box) -> FloatArray:
    """An allowed change vector with (nearly) the largest loss."""
    curve = BoxCurve(m._family, box, m.sensitivity, m.scale, m.edges)
    if m._family == "gaussian" and (m.edges == "ignore" or not box.bounded):
        single = single_changes(m, box)
        return np.where(np.arange(box.dimension) == np.argmax(single), single, 0.0)
    if m._family == "laplace" and m.edges != "truncate":
        # the loss is the l1 norm of the change over the scale
        c = worst_sum(lambda c, w: (c, np.ones_like(c), np.zeros_like(c)), curve.widths, m.sensitivity)[1]
    else:
        c = worst_sum(curve.coordinate_loss, curve.widths, m.sensitivity)[1]
    c = np.minimum(c, box.width)
    if box.integer:
        c = _whole_change(m, box, curve, np.floor(c))
    while not _allowed(m.sensitivity, c):
        c = c * (1.0 - 2.0**-50)
    return c


def _whole_change(m: Additive, box: Box, curve: BoxCurve, start: FloatArray) -> FloatArray:
    """Whole changes, taken one step at a time where the loss grows most for what is left of the limit."""
    plain = m._family == "laplace" and m.edges != "truncate"
    power = 2.0 if isinstance(m.sensitivity, L2) else 1.0
    c = np.zeros(box.dimension) if np.sum(start) <= _STEPS else start
    for _ in range(_STEPS):
        step = np.minimum(c + 1.0, box.width)
        gain = np.ones_like(c) if plain else curve.coordinate_loss(step, curve.widths)[0]
        gain = gain if plain else gain - curve.coordinate_loss(c, curve.widths)[0]
        for i in np.argsort(-gain / ((c + 1.0) ** power - c**power), kind="stable").tolist():
            trial = c.copy()
            trial[i] += 1.0
            if trial[i] <= box.width[i] and _allowed(m.sensitivity, trial):
                c = trial
                break
        else:
            return c
    return c


def box_witness(m: Additive, epsilon: float) -> Witness | None:
    """The worst change vector, every coordinate at the wall that makes it worst, with the output that shows it."""
    box = cast(Box, m.domain)
    first, second, output = (np.zeros(box.dimension) for _ in range(3))
    loss, error, likelihoods = 0.0, ERROR, [1.0, 1.0]
    seen: dict[tuple[float, float, float], Witness | None] = {}
    for i, change in enumerate(_worst_change(m, box).tolist()):
        line = box.coordinate(i)
        if change == 0.0:
            first[i] = second[i] = output[i] = min(max(0.0, float(line.lower)), float(line.upper))
            continue
        key = (float(line.lower), float(line.upper), change)
        if key not in seen:
            seen[key] = output_witness(_coordinate(m, box, i, change), epsilon)
        found = seen[key]
        if found is None or found.likelihoods is None:
            return None
        first[i], second[i] = found.pair
        output[i] = found.output
        loss, error = loss + found.loss, error + found.error
        likelihoods = [total * p for total, p in zip(likelihoods, found.likelihoods, strict=True)]
    return Witness(
        pair=(tuple(first.tolist()), tuple(second.tolist())),
        output=tuple(output.tolist()),
        likelihoods=(likelihoods[0], likelihoods[1]),
        loss=loss,
        excess=loss - epsilon,
        error=error,
    )


def _coordinate(m: Additive, box: Box, i: int, change: float) -> Additive:
    return type(m)(box.coordinate(i), scale=m.scale, sensitivity=change, edges=m.edges)


def single_changes(m: Additive, box: Box) -> FloatArray:
    """How far each coordinate can move on its own."""
    limit = m.sensitivity
    if isinstance(limit, PerCoordinate):
        most = np.array(limit.values)
    else:
        most = np.full(box.dimension, limit.linf if isinstance(limit, L0) else cast(L1 | L2 | Linf, limit).value)
    most = np.minimum(most, box.width)
    return np.asarray(np.floor(most)) if box.integer else most


def _longest_change(m: Additive, box: Box) -> FloatArray:
    """An allowed change of (nearly) the largest Euclidean length: as much as possible in as few coordinates."""
    single = single_changes(m, box)
    if isinstance(m.sensitivity, PerCoordinate | Linf):
        return single
    change = np.zeros(box.dimension)
    for i in np.argsort(-single).tolist():
        trial = change.copy()
        if isinstance(m.sensitivity, L0):
            trial[i] = single[i]
        elif isinstance(m.sensitivity, L1):
            trial[i] = min(single[i], m.sensitivity.value - float(np.sum(change)))
        else:
            trial[i] = min(single[i], math.sqrt(max(cast(L2, m.sensitivity).value ** 2 - float(change @ change), 0.0)))
        change = trial if _allowed(m.sensitivity, trial) else change
    return change


def line_of(m: Additive, epsilon: float, delta: float) -> tuple[Additive, Witness, FloatArray] | None:
    """The one-dimensional mechanism in which a set that breaks (epsilon, delta) is most easily seen, with that set.

    Plain Gaussian noise looks the same along every direction, so that nothing is lost there. Otherwise single
    coordinates are tried: a lower bound only. The direction is the third value.
    """
    box = cast(Box, m.domain)
    tries: list[tuple[Additive, FloatArray]] = []
    if m._family == "gaussian" and m.edges == "ignore" and not box.integer:
        change = _longest_change(m, box)
        length = math.hypot(*change.tolist()) * (1.0 - 2.0**-50)
        line = type(m)(Interval(-math.inf, math.inf), scale=m.scale, sensitivity=length, edges="ignore")
        tries.append((line, change / math.hypot(*change.tolist())))
    else:
        changes = single_changes(m, box)
        for i in [i for i in np.argsort(-changes).tolist() if changes[i] > 0.0][:_TRIED]:
            tries.append((_coordinate(m, box, i, float(changes[i])), np.eye(1, box.dimension, i)[0]))
    best: tuple[Additive, Witness, FloatArray] | None = None
    for line, direction in tries:
        found = set_witness(line, epsilon, delta)
        if found is not None and (best is None or found.excess > best[1].excess):
            best = line, found, direction
    return best


def in_box(box: Box, witness: Witness, direction: FloatArray) -> Witness:
    """A set found along a direction, as vectors: where nothing moves, the true values are 0 or next to it."""
    still = np.clip(np.zeros(box.dimension), box.lower, box.upper)
    start = still * (direction == 0.0)
    if np.count_nonzero(direction) > 1:
        # along the whole line only the difference matters: from the lowest corner, or 0 where there is none
        start = np.where(np.isfinite(box.lower), box.lower, still)
        first, second = witness.pair
        moved = abs(second - first) * direction
        ends = (start, start + moved) if second > first else (start + moved, start)
        shift = float(start @ direction) - min(first, second)
        event = tuple((a + shift, b + shift) for a, b in cast(Event, witness.event))
    else:
        ends = (start + witness.pair[0] * direction, start + witness.pair[1] * direction)
        event = cast(Event, witness.event)
    pair = (tuple(ends[0].tolist()), tuple(ends[1].tolist()))
    return replace(witness, pair=pair, event=event, direction=tuple(direction.tolist()))

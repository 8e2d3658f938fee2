"""The audit of a family of densities: search the worst pair, then verify what was found by another integration."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from inbounds import _checks as check
from inbounds._checks import FloatArray
from inbounds.auditing.certificate import certify
from inbounds.auditing.family import LocationFamily, spot_check
from inbounds.auditing.pairs import Neighbours, first_best
from inbounds.auditing.quadrature import Pairs, blocks, one, peak, probabilities
from inbounds.auditing.report import Audit, Event, Witness, shown
from inbounds.domain import Line
from inbounds.errors import ParameterTypeError
from inbounds.numerics import Bound, decimal_floor
from inbounds.sensitivity import resolve

__all__ = ["audit_family"]

_SHARES = (0.75, 0.5, 0.25, 0.125, 2.0**-6)  # of the sensitivity, where nearer pairs may be worse
_SETS = 16  # intervals an output set may consist of
_ASSUMED = "log_concave=True was taken on trust: a concave kernel in x - q with one scale for all true values"
_ESTIMATED = "integrals by adaptive quadrature with error estimates, not by interval arithmetic"


def audit_family(family: LocationFamily, sensitivity: Any, epsilon: float, delta: float) -> Audit:
    """See :func:`inbounds.audit`."""
    if sensitivity is None:
        check.refuse("audit", "sensitivity", "given for a LocationFamily", None, "It has none of its own.")
    reach = resolve("audit", sensitivity, family.domain)
    if not isinstance(reach, float):
        check.refuse("audit", "sensitivity", "a number", sensitivity, "", ParameterTypeError)
    if family.log_concave:
        spot_check(family)
    scale = float(np.median(peak(family, _some_places(family.domain, reach))[1]))
    near = Neighbours(family.domain, reach, scale)
    pure = delta == 0.0
    ones = search(family, near, largest_loss) if pure else []
    manys = search(family, near, partial(_largest_set, epsilon))
    if manys and _pair_delta(family, manys[0], epsilon) == 0.0:
        manys = ones or search(family, near, largest_loss)  # no loss above epsilon: take the largest
    one_pair = ones[0] if ones else None
    one_witness = None if one_pair is None else _output_witness(family, one_pair, epsilon)
    sets = [_set_witness(family, pair, epsilon, delta) for pair in manys]
    many = max(sets, key=lambda w: w.excess - w.error, default=None)
    many_pair = None if many is None else (min(many.pair), max(many.pair))
    witness = one_witness if pure else many
    endless = one_pair is not None and _grows_without_limit(family, one_pair)
    goal = decimal_floor(epsilon) if pure else decimal_floor(delta)
    violated = witness is not None and witness.violates
    bound = None
    if family.log_concave and not violated and not endless:
        bound = certify(family, near, epsilon, None if pure else delta, goal)
    holds = bound is not None and bound <= goal
    lower_epsilon = 0.0
    if pure and one_witness is not None:
        lower_epsilon = math.inf if endless else max(one_witness.excess + epsilon - one_witness.error, 0.0)
    elif many_pair is not None:
        lower_epsilon = _pair_epsilon(family, many_pair, delta)
    lower_delta = 0.0
    if many is not None:
        lower_delta = max(many.excess + delta - many.error, 0.0)
    verdict = "refuted" if violated else "proven" if holds else "undecided"
    upper = float(bound) if bound is not None else math.inf
    return Audit(
        verdict=verdict,
        subject=repr(family),
        epsilon=epsilon,
        delta=delta,
        sensitivity=reach,
        reason=_reason(verdict, family, witness, bound, epsilon, pure, endless),
        bound=bound,
        witness=witness,
        set_witness=many if pure else None,
        real_epsilon=(lower_epsilon, upper if pure else epsilon if holds else math.inf),
        real_delta=(lower_delta, (0.0 if holds else 1.0) if pure else min(upper, 1.0)),
        assumptions=(_ESTIMATED, _ASSUMED) if family.log_concave else (_ESTIMATED,),
        _window=_window(family, witness, scale),
        _loss=None if witness is None else partial(pair_loss, family, witness.pair),
        _profile=None if many_pair is None else partial(_pair_delta, family, many_pair),
    )


def _reason(
    verdict: str,
    family: LocationFamily,
    witness: Witness | None,
    bound: Bound | None,
    epsilon: float,
    pure: bool,
    endless: bool,
) -> str:
    if witness is None:
        return "no two true values are neighbours"
    if verdict == "refuted" and endless:
        return "the loss grows without limit towards an open end of the domain"
    if verdict == "refuted" and pure:
        return f"the loss {shown(witness.loss)} exceeds epsilon by {shown(witness.excess, 3)}"
    if verdict == "refuted":
        return f"P - e^{shown(epsilon)} P' of an output set exceeds delta by {shown(witness.excess, 3)}"
    if verdict == "proven":
        return (
            f"{'epsilon' if pure else 'delta'} is at most {float(bound or 0.0):.8g} ({bound.reason if bound else ''})"
        )
    found = f"the largest {'loss' if pure else 'delta'} found is {shown(witness.excess + (epsilon if pure else 0.0))}"
    if not pure:
        found = f"no violation was found: {shown(-witness.excess, 3)} of delta is left at the worst pair"
    if not family.log_concave:
        return f"{found}; a search is no proof (log_concave=True would allow one)"
    if bound is None or math.isinf(bound):
        return f"{found}; a loss towards an open end can be searched but not bounded by evaluating a function"
    return f"{found}; the bound {float(bound):.6g} is not below the claim ({bound.reason})"


def _some_places(domain: Line, reach: float) -> FloatArray:
    ends = np.array([e for piece in domain.pieces for e in piece if math.isfinite(e)] or [0.0, reach])
    return np.asarray(domain.project(np.unique(np.append(ends, np.mean(ends)))), dtype=np.float64)


# ---------------------------------------------------------------- the search

Score = Callable[[Pairs], FloatArray]


def largest_loss(found: Pairs) -> FloatArray:
    """The largest loss of each pair, in either order, less its numerical error."""
    loss = np.abs(found.loss()) - found.noise()
    out: FloatArray = np.max(loss, axis=1)
    return out


def _largest_set(epsilon: float, found: Pairs) -> FloatArray:
    return np.maximum(*found.hockey(epsilon))


def search(family: LocationFamily, near: Neighbours, score: Score) -> list[tuple[float, float]]:
    """Pairs (lower, upper) with large scores: the best one found first, then the best of each distance tried.

    The scores rest on a fixed rule of integration, which a density with jumps may mislead; hence more than one.
    """
    q = near.places()
    shares = (1.0,) if family.log_concave else (1.0, *_SHARES)
    starts = [near.farthest_pairs(q), *(near.allowed(q, near.farthest(q, near.reach * s)) for s in shares[1:])]
    found = [f for f in (_best(family, low, high, score) for low, high in starts) if f is not None]
    if not found:
        return []
    top, pair = max(found, key=lambda f: f[0])
    others = [other for _, other in found if other != pair]
    gaps = np.abs(q - pair[0])
    step, shrink = 2.0 * float(np.min(gaps[gaps > 0.0], initial=near.scale)), 0.25
    for _ in range(2 if family.domain.lattice else 5):
        around = near.around(pair[0], step)
        apart = [pair[1] - pair[0]] if not family.log_concave else []
        reaches = {near.reach, *(min(a * (1.0 + shrink * k), near.reach) for a in apart for k in (-1.0, 0.0, 1.0))}
        tries = [near.allowed(around, near.farthest(around, reach)) for reach in sorted(reaches)]
        low, high = (np.concatenate(column) for column in zip(*tries, strict=True))
        better = _best(family, low, high, score)
        if better is not None and better[0] > top:
            top, pair = better
        step, shrink = step / 6.0, shrink / 3.0
    return [pair, *others]


def _best(
    family: LocationFamily, low: FloatArray, high: FloatArray, score: Score
) -> tuple[float, tuple[float, float]] | None:
    if low.size == 0:
        return None
    values = np.concatenate([score(part) for part in blocks(family, low, high)])
    i = first_best(values, low, 1e-7)
    return float(values[i]), (float(low[i]), float(high[i]))


def _grows_without_limit(family: LocationFamily, pair: tuple[float, float]) -> bool:
    """Whether the loss keeps growing towards an open end: over three equal stretches of a logarithmic scale."""
    centres, widths = peak(family, np.array(pair))
    for sign, limit in ((-1.0, family.domain.lower), (1.0, family.domain.upper)):
        if math.isinf(limit):
            far = float(centres[0]) + sign * float(np.max(widths)) * 2.0 ** np.arange(10.0, 41.0, 10.0)
            x = np.asarray(family.domain.project(far), dtype=np.float64)
            logs = [family.log_at(x, np.full(x.shape, q)) for q in pair]
            if not all(np.isfinite(log).all() for log in logs):
                continue
            loss, noise = np.abs(logs[0] - logs[1]), 2.0**-47 * (np.abs(logs[0]) + np.abs(logs[1]))
            growth = np.diff(loss)
            if growth[2] > noise[3] + noise[2] and growth[2] >= 0.9 * growth[1] > 0.0:
                return True
    return False


# ---------------------------------------------------------------- what was found, verified


def _ordered(pair: tuple[float, float], swap: bool) -> tuple[float, float]:
    return (pair[1], pair[0]) if swap else pair


def pair_loss(family: LocationFamily, pair: tuple[float, float], x: FloatArray) -> FloatArray:
    """ln p/p' at outputs; not a number outside the domain."""
    x = np.round(x) if family.domain.lattice else x
    inside = np.asarray(family.domain.contains(x))
    safe = np.where(inside, x, pair[0])
    norms = one(family, *pair).norms[:, 0]
    first, second = (family.log_at(safe, np.full(x.shape, q)) - n for q, n in zip(pair, norms, strict=True))
    with np.errstate(invalid="ignore"):
        return np.where(inside, first - second, np.nan)


def _output_witness(family: LocationFamily, pair: tuple[float, float], epsilon: float) -> Witness:
    """The worst output of a pair; where the loss runs far over the claim, the nearest output that shows it clearly."""
    found = one(family, *pair)
    loss, noise = found.loss()[0], found.noise()[0]
    safe = np.abs(loss) - noise
    i = int(np.argmax(safe))
    x = found.x[0]
    enough = np.flatnonzero(safe > epsilon + math.log(2.0))
    if enough.size and _grows_without_limit(family, pair):
        i = int(enough[np.argmin(np.abs(x[enough] - pair[0]))])
    ordered = _ordered(pair, bool(loss[i] < 0.0))
    at = np.array([x[i]])
    logs, error = [], 0.0
    for q in ordered:
        normaliser, _, off = probabilities(family, q, ((-math.inf, math.inf),))
        logs.append(float(family.log_at(at, np.array([q]))[0]) - normaliser)
        error += 2.0 * off
    error += 2.0**-47 * (1.0 + sum(abs(v) for v in logs if math.isfinite(v)))
    size = logs[0] - logs[1]
    return Witness(
        pair=ordered,
        output=float(x[i]),
        likelihoods=(math.exp(logs[0]), math.exp(logs[1])),
        loss=size,
        excess=min(size, _beside(family, found, float(x[i]), swap=ordered != pair, enough=epsilon)) - epsilon,
        error=error,
    )


def _beside(family: LocationFamily, found: Pairs, x: float, *, swap: bool, enough: float) -> float:
    """The loss next to an output, on the better side; infinite if it stays above ``enough`` there, as it should.

    What a density does at a single point has probability 0.
    """
    if family.domain.lattice:
        return math.inf
    step = 1e-7 * float(np.max(peak(family, np.array([found.low[0], found.high[0]]))[1]))
    sides = []
    for sign in (-1.0, 1.0):
        near = x + sign * step * np.array([1.0, 0.5])
        if np.all(family.domain.contains(near)):
            losses = [float(found.loss_at(family, near[i : i + 1])[0]) * (-1.0 if swap else 1.0) for i in (0, 1)]
            sides.append(min(losses))
    best = max(sides, default=-math.inf)
    return math.inf if best > enough else best


def _worst_set(
    family: LocationFamily, pair: tuple[float, float], epsilon: float
) -> tuple[tuple[float, float], Event, tuple[float, float], tuple[float, float]]:
    """The pair in its worse order, the set where its loss exceeds epsilon, and (P, error) of both laws by scipy."""
    found = one(family, *pair)
    ups = found.hockey(epsilon)
    ordered = _ordered(pair, bool(ups[1][0] > ups[0][0]))
    sets = _bad_set(family, found, epsilon, swap=ordered != pair)
    first, second = (probabilities(family, q, sets)[1:] for q in ordered)
    return ordered, sets, first, second


def _set_witness(family: LocationFamily, pair: tuple[float, float], epsilon: float, delta: float) -> Witness:
    ordered, sets, (p, p_error), (q, q_error) = _worst_set(family, pair, epsilon)
    weight = math.exp(epsilon)
    return Witness(
        pair=ordered,
        event=sets,
        probabilities=(p, q),
        loss=math.log(p / q) if min(p, q) > 0.0 else math.inf if p > 0.0 else 0.0,
        excess=p - weight * q - delta,
        error=2.0 * (p_error + weight * q_error),
    )


def _bad_set(family: LocationFamily, found: Pairs, epsilon: float, *, swap: bool) -> Event:
    """The outputs where the loss exceeds epsilon: at most a few intervals, those with most probability."""
    used = found.weight[0] > 0.0
    order = np.argsort(found.x[0][used])
    x, loss = found.x[0][used][order], found.loss()[0][used][order] * (-1.0 if swap else 1.0)
    mass = np.exp((found.second if swap else found.first)[0][used][order]) * found.weight[0][used][order]
    bad = loss > epsilon
    starts = np.flatnonzero(bad & ~np.append(False, bad[:-1]))
    stops = np.flatnonzero(bad & ~np.append(bad[1:], False))
    heavy = sorted(zip(starts, stops, strict=True), key=lambda r: -float(mass[r[0] : r[1] + 1].sum()))[:_SETS]

    def crossing(good: float, wrong: float) -> float:
        """Where the loss crosses epsilon, between an output where it does not and one where it does exceed it."""
        if family.domain.lattice:
            return min(good, wrong) if wrong > good else wrong
        for _ in range(60):
            middle = np.array([(good + wrong) / 2.0])
            if not family.domain.contains(middle)[0]:
                break
            above = (-1.0 if swap else 1.0) * float(found.loss_at(family, middle)[0]) > epsilon
            good, wrong = (good, float(middle[0])) if above else (float(middle[0]), wrong)
        return wrong

    sets = []
    for a, b in sorted(heavy):
        low = -math.inf if a == 0 else crossing(float(x[a - 1]), float(x[a]))
        high = math.inf if b == x.size - 1 else crossing(float(x[b + 1]), float(x[b]))
        sets.append((low, high))
    return tuple(sets)


def _pair_delta(family: LocationFamily, pair: tuple[float, float], epsilon: float) -> float:
    return float(_largest_set(epsilon, one(family, *pair))[0])


def _pair_epsilon(family: LocationFamily, pair: tuple[float, float], delta: float) -> float:
    """The epsilon that a pair proves at delta: ln((P - delta) / P') of the set that is worst there."""
    found = one(family, *pair)
    low, high = 0.0, 500.0
    if float(_largest_set(0.0, found)[0]) <= delta:
        return 0.0
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (middle, high) if float(_largest_set(middle, found)[0]) > delta else (low, middle)
    _, _, (p, p_error), (q, q_error) = _worst_set(family, pair, low)
    p, q = p - 2.0 * p_error - delta, q + 2.0 * q_error
    return max(math.log(p / q), 0.0) if p > 0.0 else 0.0


def _window(family: LocationFamily, witness: Witness | None, scale: float) -> tuple[float, float]:
    if witness is None:
        return 0.0, 1.0
    points = [*witness.pair, *([] if witness.output is None else [witness.output])]
    points += [e for s in witness.event or () for e in s if math.isfinite(e)]
    low, high = min(points) - 12.0 * scale, max(points) + 12.0 * scale
    return max(low, float(family.domain.lower)), min(high, float(family.domain.upper))

"""From a privacy target to the smallest scale that is certainly enough.

The scale returned is verified at that very float: what it guarantees, rounded up, does not exceed the target, read as
the smaller of the float and the decimal it prints as. ``docs/proofs/rounding.md`` has the directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from inbounds import _checks as check
from inbounds import published
from inbounds.domain import Box, Domain, Line, Spans
from inbounds.errors import ParameterTypeError, UnreachableTarget
from inbounds.noise import gaussian, laplace
from inbounds.noise.product import worst_sum
from inbounds.noise.support import Support
from inbounds.numerics import SLACK, decimal_floor, smallest, width_up
from inbounds.privacy import BoxCurve, curve, gdp, steepest, zcdp
from inbounds.sensitivity import L1, L2, Linf, Sensitivity, largest_norm

__all__ = ["EDGES", "GUARANTEES", "METHODS", "Target", "calibrate"]

EDGES = ("truncate", "clamp", "ignore")
GUARANTEES = ("adjacent", "metric")
METHODS = ("exact", "paper", "liu")

_PURE_RTOL = 1e-10
_LOOSE_RTOL = 2e-7
_SEARCHED_RTOL = 2e-4  # rho and mu, whose value at a scale is itself certified to 2e-3 only
_COMPRESSED = 2048  # widths a box is represented by while its scale is being located


@dataclass(frozen=True)
class Target:
    """What is asked for, in one of five currencies: ``pure``, ``approx``, ``rho``, ``rdp``, ``mu``."""

    kind: str
    value: float
    other: float = 0.0  # delta for "approx", alpha for "rdp"

    @classmethod
    def of(cls, what: str, *, epsilon: Any, delta: Any, rho: Any, rdp: Any, mu: Any) -> Target:
        given = [n for n, v in (("epsilon", epsilon), ("rho", rho), ("rdp", rdp), ("mu", mu)) if v is not None]
        if len(given) != 1:
            shown = " and ".join(given) or ("delta alone" if delta is not None else "none")
            check.refuse(
                what,
                "the privacy target",
                "exactly one of epsilon (with or without delta), rho, rdp, mu",
                shown,
                "For instance epsilon=1.0.",
            )
        if delta is not None and given != ["epsilon"]:
            check.refuse(what, "delta", "given together with epsilon only", delta, "")
        if epsilon is not None:
            e = check.amount(
                what, "epsilon", epsilon, least=1e-15, at_most=500.0, next_step="Typical values: 0.01 to 10."
            )
            d = 0.0
            if delta is not None:
                check.number(what, "delta", delta, at_least=0.0, below=1.0, next_step=_DELTAS)
                d = check.amount(what, "delta", delta, least=1e-100, at_most=1.0, next_step=_DELTAS)
            if e == 0.0 and d == 0.0:
                check.refuse(
                    what, "epsilon", "greater than 0 when delta is 0", epsilon, "Nothing can be released at (0, 0)."
                )
            return cls("approx", e, d) if d > 0.0 else cls("pure", e)
        if rho is not None:
            return cls("rho", check.number(what, "rho", rho, at_least=1e-24, at_most=1e4))
        if mu is not None:
            return cls("mu", check.number(what, "mu", mu, at_least=1e-12, at_most=100.0))
        if not isinstance(rdp, tuple | list) or len(rdp) != 2:
            check.refuse(what, "rdp", "a pair (alpha, epsilon)", rdp, "For instance rdp=(8, 0.5).", ParameterTypeError)
        alpha = check.number(what, "rdp[0] (alpha)", rdp[0], above=1.0, at_most=1e6)
        return cls("rdp", check.number(what, "rdp[1] (epsilon)", rdp[1], at_least=1e-24, at_most=1e4), alpha)


_DELTAS = "Typical values: below 1 / number of people."


def calibrate(
    what: str,
    family: str,
    domain: Domain,
    sensitivity: Sensitivity,
    target: Target,
    *,
    edges: str,
    guarantee: str,
    method: str,
) -> float:
    """The scale for a target; ``what`` names the mechanism in errors."""
    if method != "exact":
        if guarantee == "metric" and not (family == "laplace" and isinstance(domain, Spans)):
            check.refuse(
                what, "guarantee", f"'adjacent' with method={method!r}", guarantee, "Only Croft et al.'s is metric."
            )
        return _published(what, family, domain, sensitivity, target, edges=edges, method=method)
    if guarantee == "metric":
        if target.kind != "pure":
            check.refuse(
                what, "guarantee", "'adjacent' for this target", guarantee, "'metric' goes with epsilon alone."
            )
        return _metric(what, family, domain, sensitivity, target, edges)
    if isinstance(domain, Box):
        return _box(what, family, domain, sensitivity, target, edges)
    sensitivity = cast(float, sensitivity)
    _reachable(what, family, domain, target, edges)
    goal = decimal_floor(target.value)
    support = Support.of(domain)
    near = support.reach(sensitivity)
    if edges == "truncate" and support.convex and target.kind == "pure":
        return _pure_interval(what, family, domain, sensitivity, goal)

    def value(scale: float) -> float:
        return _cost(curve(family, domain, sensitivity, scale, edges, support=support), target)

    if target.kind == "approx":
        goal = decimal_floor(target.other)
    low, high = _guess(family, domain, near, target)
    rtol = {"pure": _PURE_RTOL, "rdp": _PURE_RTOL, "approx": _LOOSE_RTOL}.get(target.kind, _SEARCHED_RTOL)
    if support.convex or edges != "truncate":
        return _finite(what, smallest(value, goal, low, high, rtol=rtol))
    return _finite(what, _last_crossing(value, goal, low, high, rtol, fixed=target.kind == "pure"))


def _cost(of: Any, target: Target) -> float:
    """The quantity that must not exceed the target: epsilon, delta, rho, Rényi epsilon or mu."""
    if target.kind == "pure":
        return float(of.pure())
    if target.kind == "approx":
        return float(of.delta(decimal_floor(target.value)))
    if target.kind == "rdp":
        return float(of.renyi(target.other))
    return float(zcdp(of) if target.kind == "rho" else gdp(of))


def _finite(what: str, scale: float) -> float:
    if not math.isfinite(scale):
        raise UnreachableTarget(
            f"{what}: no scale can be verified to meet this target in double precision. Ask for less privacy."
        )
    return scale


def _reachable(what: str, family: str, domain: Domain, target: Target, edges: str) -> None:
    """Refuse what no scale can give, and say what can be had."""
    if family != "gaussian":
        return
    unbounded = not domain.bounded or edges == "ignore"
    if target.kind == "pure" and unbounded:
        where = "with edges='ignore'" if edges == "ignore" else "on an unbounded domain"
        raise UnreachableTarget(
            f"{what}: Gaussian noise {where} has no pure epsilon at any scale. "
            "Give delta as well, or rho, rdp or mu; or use Laplace, or a bounded domain."
        )
    holes = isinstance(domain, Line) and len(domain.pieces) > 1
    projected = edges == "clamp" and target.kind == "rho"
    if unbounded and target.kind in ("rho", "mu") and edges != "ignore" and not projected and (domain.lattice or holes):
        raise UnreachableTarget(
            f"{what}: no {target.kind} is proven for Gaussian noise on this unbounded domain. "
            "Give epsilon and delta, or rdp=(alpha, epsilon); or use edges='clamp' or 'ignore' with rho on integers."
        )
    if target.kind == "mu" and domain.lattice and unbounded:
        raise UnreachableTarget(
            f"{what}: Gaussian DP does not hold for whole numbers without bounds. Give rho, rdp, or epsilon and delta."
        )


def _pure_interval(what: str, family: str, domain: Line, delta: float, epsilon: float) -> float:
    """Intervals, half-lines, lines and integer ranges: the worst pair is known, a handful of scalar evaluations."""
    width = math.inf if not domain.bounded else width_up(float(domain.lower), float(domain.upper))
    if math.isinf(domain.lower) and math.isinf(domain.upper):
        return _finite(what, delta / epsilon * (1.0 + 2.0 * SLACK))
    delta = min(delta, width)

    def value(scale: float) -> float:
        if family == "laplace":
            loss = float(laplace.interval_loss(delta, width, scale, domain.lattice))
        else:
            loss = gaussian.GaussianOn(Support.between(width, domain.lattice), scale).pure(delta)
        return loss * (1.0 + SLACK)

    if family == "laplace":
        low, high = delta / epsilon, 2.0 * delta / epsilon
    else:
        low = math.sqrt(width) * math.sqrt(delta / (2.0 * epsilon))
        high = 1.5 * low
    _finite(what, high)
    return _finite(what, smallest(value, epsilon, low, high, rtol=_PURE_RTOL))


def _guess(family: str, domain: Line, near: float, target: Target) -> tuple[float, float]:
    """A bracket to start from; for pure targets on spans it is proven to hold every crossing."""
    if target.kind == "pure":
        if family == "laplace":
            return near / target.value, 2.0 * near / target.value * (1.0 + 1e-9)
        wide = float(domain.width)
        return math.sqrt(near * wide / (2.0 * target.value)), math.sqrt(near * wide / target.value) * (1.0 + 1e-9)
    if target.kind == "approx":
        size = target.value + target.other
        if family == "laplace":
            return near / size, 2.0 * near / size
        most = near * math.sqrt(2.0 * math.log(2.0 / target.other)) / max(target.value, target.other)
        return most / 4.0, most
    if target.kind == "mu":
        return near / target.value / 2.0, 2.0 * near / target.value
    rate = target.value if target.kind == "rho" else target.value / target.other
    return near / math.sqrt(2.0 * rate) / 2.0, near / math.sqrt(2.0 * rate) * 2.0


def _last_crossing(
    value: Callable[[float], float], goal: float, low: float, high: float, rtol: float, *, fixed: bool
) -> float:
    """The scale from which on the claim is verified, as far as a grid of ratio 2^(1/16) can tell (2^(1/4) if not pure).

    With holes the loss need not fall in the scale. Larger scales than the one returned were all found good, so that a
    user who adds a little noise does not lose the guarantee.
    """
    if not fixed:
        while not value(high) <= goal:
            low, high = high, high * 2.0
            if high > check.LARGEST * 1e15:
                return math.inf
        low = min(low, high / 16.0)
    steps = max(8, math.ceil((16.0 if fixed else 4.0) * math.log2(high / low)))
    grid = np.geomspace(low, high, steps + 1)
    above = low
    for scale in grid[-2::-1]:
        if value(float(scale)) > goal:
            above = float(scale)
            break
    else:
        return smallest(value, goal, low / 4.0, low, rtol=rtol)
    after = grid[grid > above]
    return smallest(value, goal, above, float(after[0]) if after.size else high, rtol=rtol)


# ---------------------------------------------------------------- boxes


def _box(what: str, family: str, box: Box, sensitivity: Sensitivity, target: Target, edges: str) -> float:
    _reachable(what, family, box, target, edges)
    goal = decimal_floor(target.other if target.kind == "approx" else target.value)
    if target.kind == "pure":
        return _finite(what, _box_pure(family, box, sensitivity, goal, edges))

    def value(scale: float) -> float:
        return _cost(BoxCurve(family, box, sensitivity, scale, edges), target)

    near = largest_norm(sensitivity, box.width, 1 if family == "laplace" else 2)
    low, high = _guess(family, box.coordinate(0), near, target)
    return _finite(what, smallest(value, goal, low, high, rtol=_LOOSE_RTOL))


def _box_pure(family: str, box: Box, sensitivity: Sensitivity, epsilon: float, edges: str) -> float:
    l1 = largest_norm(sensitivity, box.width, 1)
    if family == "laplace" and edges != "truncate":
        return l1 / epsilon * (1.0 + 2.0**-38)

    def full(scale: float) -> BoxCurve:
        return BoxCurve(family, box, sensitivity, scale, edges)

    if family == "laplace":
        low, high = l1 / epsilon, 2.0 * l1 / epsilon
    else:
        widest = float(np.max(box.width))
        low = math.sqrt(l1 * widest / (2.0 * epsilon)) / 4.0
        high = math.sqrt(l1 * widest / epsilon)
    if box.dimension <= _COMPRESSED or not isinstance(sensitivity, L1 | L2):
        return smallest(lambda s: float(full(s).pure()), epsilon, low, high, rtol=1e-11)
    # Many coordinates: locate the scale on a few thousand representative widths, then verify on all of them.
    order = np.sort(full(1.0).widths)
    groups = np.array_split(order, _COMPRESSED)
    few = np.array([g.mean() for g in groups])
    weight = np.array([float(g.size) for g in groups])

    def rough(scale: float) -> float:
        return worst_sum(lambda c, w: full(scale).coordinate_loss(c, w), few, sensitivity, weight=weight)[0]

    scale = smallest(rough, epsilon, low, high, rtol=1e-9)
    for _ in range(60):
        value = float(full(scale).pure())
        if value <= epsilon and value > epsilon * (1.0 - 1e-9):
            return scale
        # the loss falls at least like 1/scale (Laplace) or 1/scale^2 (Gaussian) where this is used: a secant step
        power = 1.0 if family == "laplace" else 2.0
        scale *= (value / epsilon) ** (1.0 / power) * (1.0 + 1e-11)
    while not float(full(scale).pure()) <= epsilon:
        scale *= 1.0 + 1e-9
    return scale


# ---------------------------------------------------------------- the metric guarantee and published methods


def _metric(what: str, family: str, domain: Domain, sensitivity: Sensitivity, target: Target, edges: str) -> float:
    if isinstance(domain, Box) and not isinstance(sensitivity, L1 | L2 | Linf):
        check.refuse(what, "sensitivity", "a norm (L1, L2 or Linf) for the metric guarantee", sensitivity, "")
    _reachable(what, family, domain, target, edges)
    goal = decimal_floor(target.value)
    distance = sensitivity if isinstance(sensitivity, float) else sensitivity.value  # type: ignore[union-attr]

    def value(scale: float) -> float:
        return steepest(family, domain, sensitivity, scale, edges) * distance

    if family == "laplace":
        many = 1 if not isinstance(domain, Box) else domain.dimension
        low, high = distance / goal, 2.0 * distance * many / goal
    else:
        wide = float(np.max(domain.width))
        low, high = math.sqrt(distance * wide / goal) / 2.0, math.sqrt(distance * wide / goal) * 1.5
    return _finite(what, smallest(value, goal, low, high, rtol=_PURE_RTOL))


def _published(
    what: str, family: str, domain: Domain, sensitivity: Sensitivity, target: Target, *, edges: str, method: str
) -> float:
    if edges != "truncate" or target.kind not in ("pure", "approx"):
        check.refuse(
            what, "method", "'exact' unless edges='truncate' and the target is epsilon (and delta)", method, ""
        )
    if method == "liu" and family != "gaussian":
        check.refuse(what, "method", "'exact' or 'paper' for Laplace", method, "Liu's is the generalised Gaussian.")
    if method == "liu":
        return published.liu(what, domain, sensitivity, target.value, target.other)
    if family == "gaussian":
        return published.chen_hale(what, domain, sensitivity, target.value, target.other)
    return published.laplace(what, domain, sensitivity, target.value, target.other)

"""What a release says about the true value: exact confidence intervals, and two estimates that need no prior.

Answers grow stochastically with the true value, so the true values that an equal-tailed test does not reject lie
between two roots: of P_q(answer >= x) = tail on the left and of P_q(answer <= x) = tail on the right. The tails are
those of the answer as it is released, on its grid, and both ends are rounded outwards. Proofs:
``docs/proofs/inference.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inbounds import _checks as check
from inbounds import _exact
from inbounds._checks import FloatArray
from inbounds._exact import Number
from inbounds.domain import Box, Domain
from inbounds.inference.crossing import Rows
from inbounds.inference.posterior import LARGEST
from inbounds.inference.views import View, tail_of, view

if TYPE_CHECKING:
    from inbounds.mechanism.base import Mechanism

__all__ = ["ESTIMATES", "Views", "balanced", "estimate", "interval", "invert", "public", "released", "views_of"]

ESTIMATES = ("mle", "median-unbiased", "posterior-mean", "posterior-median")

#: One view for each kind of coordinate of a mechanism, with the coordinates that are of it.
Views = list[tuple[View, Rows]]
Use = Callable[[View, FloatArray, FloatArray], tuple[FloatArray, ...]]

# -- what mechanisms call


def interval(mechanism: Mechanism, value: Any, level: Any) -> tuple[Any, Any]:
    """The hull of the true values that the equal-tailed test does not reject; see ``Mechanism.interval``."""
    x = released(mechanism, value)
    return invert(mechanism, x, x, level)


def invert(mechanism: Mechanism, x_low: npt.NDArray[Any], x_high: npt.NDArray[Any], level: Any) -> tuple[Any, Any]:
    """The interval from P(answer >= x_low) and P(answer <= x_high).

    For what is made of an answer by a function that grows with it: x_low and x_high are then the smallest and the
    largest answer that it takes to the value at hand. Otherwise the two are the same.
    """
    p = check.level(type(mechanism).__name__, level)
    domain = mechanism.domain
    tail = tail_of(p, domain.dimension if isinstance(domain, Box) else 1)
    lower, upper = _over(mechanism, lambda seen, low, high: seen.interval(low, high, tail), x_low, x_high)
    return public(lower, domain), public(upper, domain)


def estimate(mechanism: Mechanism, value: Any, how: Any, prior: Any) -> Any:
    """One value for the true one; see ``Mechanism.estimate``."""
    what = type(mechanism).__name__
    check.choice(what, "how", how, ESTIMATES)
    if how.startswith("posterior"):
        found = mechanism.posterior(value, prior)
        return found.mean() if how == "posterior-mean" else found.median()
    if prior is not None:
        check.refuse(what, "prior", f"None for {how!r}", prior, "Posterior means and medians take one.")
    x = released(mechanism, value)
    if how == "median-unbiased":
        return balanced(mechanism, x, x)
    likeliest = _over(mechanism, lambda seen, low, _: (seen.likeliest(low),), x, x)
    return public(likeliest[0], mechanism.domain)


def balanced(mechanism: Mechanism, x_low: npt.NDArray[Any], x_high: npt.NDArray[Any]) -> Any:
    """The true value under which smaller and larger answers are equally likely; the two x as in :func:`invert`."""
    found = _over(mechanism, lambda seen, low, high: (seen.balanced(low, high),), x_low, x_high)
    return public(found[0], mechanism.domain)


def released(mechanism: Mechanism, value: Any) -> npt.NDArray[Any]:
    """A released value or an array of them, exact and checked: the mechanism must be able to give it."""
    what, domain = type(mechanism).__name__, mechanism.domain
    wanted = "a released value or an array of them"
    x = np.array(_exact.canonical(check.real_values(what, "value", value, requirement=wanted)))
    if isinstance(domain, Box) and (x.ndim == 0 or x.shape[-1] != domain.dimension):
        check.refuse(what, "value", f"of shape (..., {domain.dimension})", f"shape {x.shape}", "")
    possible = np.asarray(mechanism._possible(x))
    if x.dtype == object and not mechanism._whole_answers:  # which are floats
        floats = np.asarray(np.abs(x) <= _exact.LARGEST, dtype=bool)
        possible = possible & (floats.all(axis=-1) if isinstance(domain, Box) else floats)
    if not possible.all():
        shown = np.asarray(x[tuple(np.argwhere(~possible)[0])]).tolist()
        check.refuse(what, "value", f"an answer that this mechanism can give, on {domain!r}", shown, "")
    return x


def _over(
    mechanism: Mechanism, use: Use, x_low: npt.NDArray[Any], x_high: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], ...]:
    """Ask every view of the mechanism, and put the answers together."""
    if not isinstance(mechanism.domain, Box):
        found = _ask(mechanism._views[0][0], use, x_low.reshape(-1), x_high.reshape(-1))
        return tuple(part.reshape(x_low.shape) for part in found)
    out: list[npt.NDArray[Any]] = []
    for seen, columns in mechanism._views:
        low, high = x_low[..., columns], x_high[..., columns]
        found = _ask(seen, use, low.reshape(-1), high.reshape(-1))
        out = out or [np.empty(x_low.shape) for _ in found]
        for i, part in enumerate(found):
            out[i] = out[i] if part.dtype != object else out[i].astype(object)
            out[i][..., columns] = part.reshape(low.shape)
    return tuple(out)


def _ask(seen: View, use: Use, x_low: npt.NDArray[Any], x_high: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
    """Ask one view. Answers for which float64 is too coarse are counted from themselves, one at a time."""
    low, high = _exact.floats(x_low), _exact.floats(x_high)
    coarse = np.abs(low) > (_exact.WHOLE / 2 if seen.lattice else math.inf if seen.domain.bounded else LARGEST)
    far = coarse & np.isfinite(low) & (x_low == x_high)
    if not far.any():
        return use(seen, low, high)
    zero = np.zeros(1)
    found = use(seen, np.where(far, seen.domain.project(0.0), low), np.where(far, seen.domain.project(0.0), high))
    out = tuple(part.astype(object if seen.lattice else np.float64) for part in found)
    for j in np.flatnonzero(far).tolist():
        anchor = Fraction(x_low[j])
        for i, end in enumerate(use(seen.moved(anchor), zero, zero)):
            out[i][j] = _absolute(Fraction(float(end[0])) + anchor, seen.lattice, outwards=(-1, 1)[i] * (len(out) > 1))
    return out


def _absolute(x: Fraction, lattice: bool, *, outwards: int) -> Number:
    """A whole number, or the nearest float not above (-1) or not below (1) it."""
    if lattice:
        return int(x)
    found = _exact.nearest(x)
    return math.nextafter(found, outwards * math.inf) if (x - Fraction(found)) * outwards > 0 else found


def public(found: npt.NDArray[Any], domain: Domain) -> Any:
    """A number for a number, whole numbers as such, and no -0.0."""
    if found.ndim == 0:
        return int(found.item()) if domain.lattice else float(found) + 0.0
    if domain.lattice and found.dtype != object and (domain.bounded or bool(np.all(np.abs(found) < 2.0**63))):
        return found.astype(np.int64)
    return _exact.integers(found) if domain.lattice else found + 0.0


# -- a mechanism, coordinate by coordinate


def views_of(mechanism: Mechanism) -> Views:
    """How inference sees a mechanism; equal coordinates of a box are seen once."""
    domain = mechanism.domain
    if not isinstance(domain, Box):
        return [(view(mechanism, domain, float(mechanism.grid), None), np.zeros(1, dtype=np.intp))]
    steps = np.broadcast_to(mechanism.grid, domain.lower.shape)
    kinds = np.stack([domain.lower, domain.upper, steps], axis=-1)
    _, first, group = np.unique(kinds, axis=0, return_index=True, return_inverse=True)
    found = [view(mechanism, domain.coordinate(i), float(steps[i]), i) for i in first.tolist()]
    return [(seen, np.flatnonzero(group.reshape(-1) == kind)) for kind, seen in enumerate(found)]

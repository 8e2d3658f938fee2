"""The scales as published, for comparison: Holohan et al., Croft et al., Chen and Hale, Liu.

They are sound but larger than needed where noted; ``docs/proofs/published.md`` says which published claims fail. Use
``method="exact"`` for releases.
"""

from __future__ import annotations

import math

import numpy as np

from inbounds import _checks as check
from inbounds._checks import FloatArray
from inbounds.domain import Box, Domain, Integers, Interval, Spans
from inbounds.noise import gaussian
from inbounds.noise.laplace import LaplaceOn, interval_loss
from inbounds.noise.product import worst_sum
from inbounds.noise.support import Support
from inbounds.numerics import SLACK, smallest, width_up
from inbounds.sensitivity import L2, Linf, PerCoordinate, Sensitivity, largest_norm

__all__ = ["chen_hale", "laplace", "liu"]


def laplace(what: str, domain: Domain, sensitivity: Sensitivity, epsilon: float, delta: float) -> float:
    """Holohan et al., Theorem 3.5, on an interval; Croft et al., Lemma 7, on spans (their metric guarantee)."""
    if isinstance(domain, Spans) and isinstance(sensitivity, float) and delta == 0.0:
        support = Support.of(domain)
        low, high = sensitivity / epsilon, 2.0 * sensitivity / epsilon * (1.0 + 1e-9)
        gap = sensitivity
        return smallest(
            lambda b: LaplaceOn(support, b).steepest() * gap * (1.0 + SLACK), epsilon, low / 2.0, high, rtol=1e-10
        )
    if isinstance(domain, Interval) and domain.bounded and isinstance(sensitivity, float):
        # (3.1) asks for the pure loss to stay below epsilon - ln(1 - delta).
        width, goal = width_up(domain.lower, domain.upper), epsilon - math.log1p(-delta)
        gap = min(sensitivity, width)

        def loss(scale: float) -> float:
            return float(interval_loss(np.float64(gap), np.float64(width), scale, False)) * (1.0 + SLACK)

        return smallest(loss, goal, gap / goal, 2.0 * gap / goal, rtol=1e-10)
    check.refuse(
        what,
        "domain",
        "a bounded Interval (Holohan et al.) or Spans with epsilon alone (Croft et al.) for method='paper'",
        domain,
        "Croft et al.'s half-line method is not private as published; method='exact' covers every domain.",
    )


def _box_of(what: str, domain: Domain) -> Box:
    if isinstance(domain, Interval) and domain.bounded:
        return Box([domain.lower], [domain.upper])
    if isinstance(domain, Box) and domain.bounded and not domain.integer:
        return domain
    kind = "real" if isinstance(domain, Integers) else "bounded"
    check.refuse(
        what, "domain", f"a {kind} Interval or Box for this method", domain, "method='exact' covers the others."
    )


def chen_hale(what: str, domain: Domain, sensitivity: Sensitivity, epsilon: float, delta: float) -> float:
    """Chen and Hale, Theorems 2.4 and 3.4: the worst exponent and the worst normaliser ratio, taken separately."""
    if delta != 0.0:
        check.refuse(what, "delta", "0 for method='paper'", delta, "Chen and Hale give pure epsilon only.")
    box = _box_of(what, domain)
    width = box.width
    gap = sensitivity if isinstance(sensitivity, float) else largest_norm(sensitivity, width, 2)
    numerator = (float(np.linalg.norm(width)) + gap / 2.0) * gap

    def ratio(c: FloatArray, half: FloatArray, sigma: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        zero = np.zeros_like(c)
        at_c, mean, var = gaussian.piece_moments(c, zero, 2.0 * half, sigma)
        at_0, _, _ = gaussian.piece_moments(zero, zero, 2.0 * half, sigma)
        return at_c - at_0, (mean - c) / sigma**2, (var / sigma**2 - 1.0) / sigma**2

    def needed(sigma: float) -> float:
        # ln Z rises towards the middle of each side, so no coordinate moves past it
        log_ratio, _ = worst_sum(lambda c, half: ratio(c, half, sigma), width / 2.0, L2(gap))
        return (numerator / sigma**2 + log_ratio) * (1.0 + SLACK)

    start = math.sqrt(numerator / epsilon)
    return smallest(needed, epsilon, start, 1.5 * start, rtol=1e-10)


def liu(what: str, domain: Domain, sensitivity: Sensitivity, epsilon: float, delta: float) -> float:
    """Liu's generalised Gaussian mechanism on a bounded domain, as Chen and Hale compare with it."""
    if delta != 0.0:
        check.refuse(what, "delta", "0 for method='liu'", delta, "It gives pure epsilon only.")
    box = _box_of(what, domain)
    if isinstance(sensitivity, float):
        change = np.array([sensitivity])
    elif isinstance(sensitivity, PerCoordinate):
        change = np.array(sensitivity.values)
    elif isinstance(sensitivity, Linf):
        change = np.minimum(sensitivity.value, box.width)
    else:
        check.refuse(what, "sensitivity", "one limit per coordinate for method='liu'", sensitivity, "")
    return math.sqrt(2.0 * float(box.width @ change + change @ change / 2.0) / epsilon)

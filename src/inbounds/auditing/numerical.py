"""Prove or refute a privacy claim by computation: for our mechanisms and for any family of densities.

A proof comes from the certified bounds of :mod:`inbounds.privacy`. A refutation does not: the laws of the two true
values are evaluated directly, by their densities and cumulative distributions, and what they differ by must exceed the
numerical error. Neither trusts the other.

Where the evidence comes from: ``lines.py`` and ``vectors.py`` know Laplace and Gaussian noise. Every other mechanism on
a one-dimensional domain goes through ``laws.py``, which needs its ``at(q)`` (cdf, sf, ppf, atoms), its ``_curve``, and
where it has one its ``_cuts(first, second)``: the outputs at which likelihood ratios jump.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, cast

import numpy as np

from inbounds import _checks as check
from inbounds._checks import FloatArray
from inbounds.auditing.densities import audit_family
from inbounds.auditing.family import LocationFamily
from inbounds.auditing.laws import law_evidence
from inbounds.auditing.lines import largest_epsilon, output_witness, pair_epsilon, set_witness
from inbounds.auditing.report import Audit, Witness, shown
from inbounds.auditing.tables import table_evidence
from inbounds.auditing.vectors import box_witness, in_box, line_of
from inbounds.domain import Box, Line
from inbounds.errors import ParameterTypeError
from inbounds.mechanism import Additive, Mechanism, Table
from inbounds.numerics import Bound, decimal_floor
from inbounds.sensitivity import resolve

__all__ = ["audit"]

_CERTIFIED = "double precision with the error bounds of the package (docs/proofs/rounding.md)"


def audit(mechanism: Any, *, sensitivity: Any = None, epsilon: float, delta: float = 0.0) -> Audit:
    """Prove or refute that a mechanism has the privacy it is claimed to have.

    Parameters
    ----------
    mechanism : any mechanism, or a LocationFamily
        Those other than Laplace and Gaussian on one-dimensional domains only.
    sensitivity : as for the mechanism
        How far apart neighbouring true values may be; by default the mechanism's own. A family needs one; another one
        than their own can be given for Laplace and Gaussian.
    epsilon : float in [0, 500]
    delta : float in [0, 1)

    Returns
    -------
    Audit
        *proven*: a certified bound meets the claim, reading its numbers as floats and as decimals. *refuted*: a pair
        of true values with an output (delta = 0) or an output set whose two probabilities break it. *undecided*:
        neither; the report says why. It also says what the mechanism has in truth, and where it is worst.

    Examples
    --------
    >>> import inbounds as ib
    >>> from inbounds.auditing import audit
    >>> age = ib.Laplace.calibrate(ib.Interval(0, 120), sensitivity=0.5, epsilon=1.0)
    >>> audit(age, epsilon=1.0).verdict
    'proven'
    >>> plain = ib.Laplace(ib.Interval(0, 120), scale=0.5, sensitivity=0.5)  # the scale of untruncated noise
    >>> found = audit(plain, epsilon=1.0)
    >>> found.verdict, found.witness.pair, round(found.witness.loss, 4)
    ('refuted', (0.0, 0.5), 1.4899)
    """
    e = check.number("audit", "epsilon", epsilon, at_least=0.0, at_most=500.0)
    d = check.number("audit", "delta", delta, at_least=0.0, below=1.0)
    if isinstance(mechanism, LocationFamily):
        return audit_family(mechanism, sensitivity, e, d)
    if not isinstance(mechanism, Mechanism):
        check.refuse(
            "audit",
            "mechanism",
            "a mechanism of this package or a LocationFamily",
            mechanism,
            "For a sampler without a density use audit_sampler.",
            ParameterTypeError,
        )
    if isinstance(mechanism, Additive):
        if sensitivity is not None:
            mechanism = type(mechanism)(
                mechanism.domain,
                scale=mechanism.scale,
                sensitivity=sensitivity,
                edges=mechanism.edges,
                granularity=mechanism.granularity,
            )
    elif isinstance(mechanism.domain, Box):
        advice = "For a vector use Laplace or Gaussian."
        check.refuse("audit", "mechanism", "on a one-dimensional domain", type(mechanism).__name__, advice)
    elif sensitivity is not None and resolve("audit", sensitivity, mechanism.domain) != mechanism.sensitivity:
        own = f"{mechanism.sensitivity!r}, which its noise is made for,"
        check.refuse("audit", "sensitivity", f"{own} or left out", sensitivity, "Or build it for another one.")
    with np.errstate(over="ignore"):  # densities are evaluated far out, where terms that are not used may overflow
        return _audit_mechanism(mechanism, e, d)


def _audit_mechanism(m: Mechanism, epsilon: float, delta: float) -> Audit:
    pure = delta == 0.0
    goal_epsilon, goal_delta = decimal_floor(epsilon), decimal_floor(delta)
    bound = m.epsilon() if pure else m.delta(goal_epsilon)
    holds = bound <= goal_epsilon if pure else bound <= goal_delta
    if isinstance(m, Additive):
        one, many, ruled_out = _additive_evidence(m, epsilon, delta, holds)
    elif isinstance(m, Table):
        one, many, ruled_out = table_evidence(m, epsilon, delta)
    else:
        one, many, ruled_out = law_evidence(m, epsilon, delta)
    witness = one if pure else many
    violated = witness is not None and witness.violates
    verdict = "refuted" if violated else "proven" if holds else "undecided"
    if verdict == "refuted" and holds:
        reason = f"a counterexample contradicts the bound {shown(float(bound))}: please report this as a bug"
    elif verdict == "refuted":
        reason = _size(cast(Witness, witness), epsilon, pure)
    elif verdict == "proven":
        reason = f"{'epsilon' if pure else 'delta'} is at most {float(bound):.8g} ({bound.reason})"
    else:
        reason = _why_undecided(m, bound, witness, pure)
    return Audit(
        verdict=verdict,
        subject=repr(m),
        epsilon=epsilon,
        delta=delta,
        sensitivity=m.sensitivity,
        reason=reason,
        bound=bound,
        witness=witness,
        set_witness=many if pure else None,
        real_epsilon=_real_epsilon(m, one, ruled_out, delta, bound, holds, epsilon),
        real_delta=_real_delta(m, many, bound, goal_epsilon, pure, holds),
        assumptions=(_CERTIFIED,),
        _window=_window(m, witness),
        _loss=partial(_loss, m, witness.pair) if witness is not None else None,
        _profile=partial(_profile, m),
    )


def _additive_evidence(
    m: Additive, epsilon: float, delta: float, holds: bool
) -> tuple[Witness | None, Witness | None, float]:
    """The worst output, the worst output set (where it matters), and an epsilon that is ruled out at delta > 0."""
    pure = delta == 0.0
    one = box_witness(m, epsilon) if isinstance(m.domain, Box) else output_witness(m, epsilon)
    line, many, lines_many = m, None, None
    if not pure or not holds or (one is not None and one.violates):
        if isinstance(m.domain, Box):
            found = line_of(m, epsilon, delta)
            if found is not None:
                line, lines_many = found[:2]
                many = in_box(m.domain, *found[1:])
        else:
            many = lines_many = set_witness(m, epsilon, delta)
    if pure:
        return one, many, 0.0
    ruled_out = 0.0 if lines_many is None else (pair_epsilon if holds else largest_epsilon)(line, lines_many, delta)
    if one is not None and line is m and not isinstance(m.domain, Box):
        ruled_out = max(ruled_out, pair_epsilon(m, one, delta))
    return one, many, ruled_out


def _size(witness: Witness, epsilon: float, pure: bool) -> str:
    if pure:
        return f"the loss {shown(witness.loss)} exceeds epsilon by {shown(witness.excess, 3)}"
    return f"P - e^{shown(epsilon)} P' of an output set exceeds delta by {shown(witness.excess, 3)}"


def _why_undecided(m: Mechanism, bound: Bound, witness: Witness | None, pure: bool) -> str:
    name = "epsilon" if pure else "delta"
    reason = f"{name} is at most {float(bound):.8g} ({bound.reason}), which is more than claimed"
    if witness is None:
        return f"{reason}; no two true values are neighbours" if m.domain.lattice else reason
    if isinstance(m.domain, Box) and not pure:
        return f"{reason}, but it need not be attained, and only sets along one direction were searched"
    if bound.exact:
        return f"{reason} by too little to tell from numerical error"
    return f"{reason}, but that bound need not be attained and no counterexample was found"


def _real_epsilon(
    m: Mechanism, one: Witness | None, lower: float, delta: float, bound: Bound, holds: bool, epsilon: float
) -> tuple[float, float]:
    if delta == 0.0:
        lower = 0.0 if one is None else one.loss - one.error
        return math.inf if math.isinf(bound) and lower > 0.0 else max(lower, 0.0), float(bound)
    if holds:
        return lower, min(epsilon, float(m.epsilon()))
    # The pair found is usually the worst one: verify that, which is much faster than to search for epsilon.
    for slack in (1e-7, 1e-4) if 0.0 < lower < 490.0 else ():
        if m.delta(lower * (1.0 + slack)) <= delta:
            return lower, lower * (1.0 + slack)
    return lower, float(m.epsilon(delta))


def _real_delta(
    m: Mechanism, many: Witness | None, bound: Bound, epsilon: float, pure: bool, holds: bool
) -> tuple[float, float]:
    upper = float(bound) if not pure else 0.0 if holds else float(m.delta(epsilon))
    if many is None or many.probabilities is None:
        return 0.0, upper
    p, q = many.probabilities
    return max(p - math.exp(epsilon) * q - many.error, 0.0), upper


# ---------------------------------------------------------------- for the pictures


def _window(m: Mechanism, witness: Witness | None) -> tuple[float, float]:
    """The outputs to draw; on a box the share of the way across it."""
    if isinstance(m.domain, Box) or witness is None:
        return 0.0, 1.0
    domain = cast(Line, m.domain)
    low, high = min(witness.pair), max(witness.pair)
    free = getattr(m, "edges", None) == "ignore"
    ends = (-math.inf, math.inf) if free else (float(domain.lower), float(domain.upper))
    reach = 12.0 * float(getattr(m, "scale", cast(float, m.sensitivity)))
    return max(ends[0], low - reach), min(ends[1], high + reach)


def _loss(m: Mechanism, pair: tuple[Any, Any], x: FloatArray) -> FloatArray:
    first, second = (cast(Any, m.at(q)) for q in pair)
    if isinstance(m.domain, Box):
        x = _across(cast(Additive, m), m.domain, np.array(pair[0]), np.array(pair[1]), x)
    if isinstance(m, Table):  # there is nothing between two answers
        x = m.points[np.argmin(np.abs(x[:, None] - m.points), axis=1)]
    x = np.round(x) if m.domain.lattice else x
    log = "logpmf" if m.domain.lattice or isinstance(m, Table) else "logpdf"
    with np.errstate(invalid="ignore"):
        return np.asarray(getattr(first, log)(x) - getattr(second, log)(x), dtype=np.float64)


def _across(m: Additive, box: Box, first: FloatArray, second: FloatArray, share: FloatArray) -> FloatArray:
    """Outputs on the way from where the second true value is likelier to where the first one is, as vectors."""
    away = np.sign(first - second)
    reach = 12.0 * m.scale
    low, high = np.minimum(first, second) - reach, np.maximum(first, second) + reach
    if m.edges != "ignore":
        low, high = np.maximum(low, box.lower), np.minimum(high, box.upper)
    start = np.where(away > 0.0, low, np.where(away < 0.0, high, first))
    stop = np.where(away > 0.0, high, np.where(away < 0.0, low, first))
    return np.asarray(start + share[:, None] * (stop - start))


def _profile(m: Mechanism, epsilon: float) -> float:
    return float(m.delta(epsilon))

"""The mechanism to use, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any

from inbounds.advice.comparison import Comparison, Entry, compare
from inbounds.advice.kinds import KINDS, has_wall, question_of
from inbounds.calibration import Target
from inbounds.domain import Domain
from inbounds.errors import UnreachableTarget
from inbounds.mechanism import Mechanism

__all__ = ["Recommendation", "recommend"]

_SIMPLER = 1.02  # a simpler mechanism is recommended if its loss is at most this many times the least one


@dataclass(frozen=True)
class Recommendation:
    """A mechanism, the reason for it, and the comparison it comes from; made by :func:`inbounds.recommend`."""

    mechanism: Mechanism
    name: str
    reason: str
    comparison: Comparison

    @property
    def entry(self) -> Entry:
        """Its figures."""
        return self.comparison[self.name]

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}\n{self.mechanism!r}"

    def _repr_html_(self) -> str:
        return f"<p><b>{escape(self.name)}</b>: {escape(self.reason)}</p>{self.comparison._repr_html_()}"


def recommend(
    domain: Domain,
    *,
    sensitivity: Any,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    rdp: tuple[float, float] | None = None,
    mu: float | None = None,
    criterion: str | None = None,
    loss: str = "squared",
    prior: Any = None,
    optimum: bool | None = None,
) -> Recommendation:
    """The mechanism to use, by exact error, with the reason.

    Parameters
    ----------
    domain, sensitivity, epsilon, delta, rho, rdp, mu, loss, prior, optimum : see :func:`compare`
    criterion : "average", "worst", "unbiased" or "smooth"
        The least average loss (default on bounded domains), the least loss at the true value where it is largest, no
        bias at any true value, or a density without mass at the ends (then the least average loss).

    Returns
    -------
    Recommendation
        Answers lie in the domain, but for ``"unbiased"``: an answer that is right on average at an end of the domain
        must sometimes lie beyond it. A simpler mechanism is preferred if its loss is within 2 % of the least one.

    Examples
    --------
    >>> import inbounds as ib
    >>> found = ib.recommend(ib.Integers(0, 10), sensitivity=1, epsilon=1.0)
    >>> found.mechanism.release(3).value in ib.Integers(0, 10)
    True
    """
    target = Target.of("recommend", epsilon=epsilon, delta=delta, rho=rho, rdp=rdp, mu=mu)
    _, chosen = question_of("recommend", domain, sensitivity, target, loss, prior, criterion)
    by = chosen if chosen in ("average", "worst") else "average" if domain.bounded or prior is not None else "worst"
    found = compare(
        domain,
        sensitivity=sensitivity,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        rdp=rdp,
        mu=mu,
        loss=loss,
        criterion=by,
        prior=prior,
        optimum=optimum if chosen == by else False,
    )
    order = list(KINDS)
    fitting = [entry for entry in found if _fits(entry, chosen, domain)]
    if not fitting:
        raise UnreachableTarget(f"recommend: no mechanism meets this target with criterion {chosen!r}.")
    least = min(entry.loss(loss, by) for entry in fitting)
    near = [entry for entry in fitting if entry.loss(loss, by) <= _SIMPLER * least]
    best = min(near, key=lambda entry: order.index(entry.name) if entry.name in order else len(order))
    return Recommendation(best.mechanism, best.name, _reason(best, found, chosen, by), found)


def _fits(entry: Entry, criterion: str, domain: Domain) -> bool:
    if criterion == "unbiased":
        return entry.name in KINDS and entry.name.startswith("plain") and not KINDS[entry.name].denoised
    if criterion == "smooth":
        return entry.in_range and entry.name in KINDS and KINDS[entry.name].smooth
    return entry.in_range


def _reason(best: Entry, found: Comparison, criterion: str, by: str) -> str:
    shown = {"squared": "rmse", "absolute": "mean absolute error"}[found.loss]
    value = best.loss(found.loss, by)
    value = math.sqrt(value) if found.loss == "squared" else value
    where = "on average over the domain" if by == "average" else "at the worst true value"
    if criterion == "unbiased":
        leave = "; its answers may leave the domain, as unbiased ones must" if has_wall(found.domain) else ""
        return f"right on average at every true value, with {shown} {value:.4g} {where}{leave}."
    why = f"{shown} {value:.4g} {where}"
    if criterion == "smooth":
        law = (
            "probabilities without a heap at the ends" if found.domain.lattice else "a density without mass at the ends"
        )
        why = f"{law}, and {why}"
    others = [entry for entry in found if entry.in_range and entry.name != best.name]
    for name in ("truncated Laplace", "clamped Laplace"):
        other = next((entry for entry in others if entry.name == name), None)
        if other is not None:
            size = other.loss(found.loss, by)
            why += f", against {math.sqrt(size) if found.loss == 'squared' else size:.4g} of {name} noise"
            break
    over = found.ratio(best)
    if found.limit is not None and criterion == by:
        kind = "the least possible" if found.limit.attained else "a lower bound of the least possible"
        why += f"; its mean {found.loss} loss is {over:.3f} times {kind}"
    return why + "."

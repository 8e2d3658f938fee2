"""To dp-accounting, the accountant that others use: our events as its events or its privacy-loss distributions."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from inbounds import _checks as check
from inbounds.domain import Box
from inbounds.errors import MissingExtra, ParameterTypeError
from inbounds.events import Composed, Draw, Event, Plan, Repeated, Zcdp, composition
from inbounds.mechanism import Gaussian, Laplace
from inbounds.sensitivity import largest_norm

__all__ = ["to_dp_accounting"]

_CELLS, _TIMES = 10**7, 10**6  # of one distribution, and of compositions: more take hours or all memory


def to_dp_accounting(event: Event, *, interval: float | None = None) -> Any:
    """The event for dp-accounting (the extra ``accounting``).

    Plain and clamped Laplace and Gaussian noise, claims of rho, and what is composed of these, become its own events
    (``LaplaceDpEvent``, ``GaussianDpEvent``, ``DiscreteLaplaceDpEvent``, ``ZCDpEvent``, ``ComposedDpEvent``,
    ``SelfComposedDpEvent``), for any of its accountants. Everything else becomes a pessimistic
    ``PrivacyLossDistribution``, by "connect the dots" on the exact profile and composed by its own transforms.

    Parameters
    ----------
    event : Event
    interval : float > 0, or None
        Of a distribution: losses are multiples of it. None for what suits the event.
    """
    if not isinstance(event, Event):
        advice = "Ask a mechanism or a release for its event()."
        check.refuse("to_dp_accounting", "event", "an event", type(event).__name__, advice, ParameterTypeError)
    try:
        from dp_accounting import dp_event as library  # type: ignore[import-untyped]
    except ImportError as problem:
        raise MissingExtra(
            "to_dp_accounting: dp-accounting is not installed. Install inbounds[accounting]."
        ) from problem
    found = _event(library, event)
    return _distribution(event, interval) if found is None else found


def _event(library: Any, event: Event) -> Any:
    """One of its events; None where it has none for ours."""
    match event:
        case Composed(events):
            parts = [_event(library, part) for part in events]
            return None if None in parts else library.ComposedDpEvent(parts)
        case Repeated(inner, times):
            one = _event(library, inner)
            return None if one is None else library.SelfComposedDpEvent(one, times)
        case Plan():
            return _event(library, event.event)
        case Zcdp(rho):
            return library.ZCDpEvent(rho)
        case Draw(Laplace() | Gaussian() as mechanism):
            return _noise(library, mechanism)
    return None


def _noise(library: Any, mechanism: Laplace | Gaussian) -> Any:
    """Noise on the line; what is clamped afterwards costs nothing more."""
    domain, limit = mechanism.domain, mechanism.sensitivity
    if mechanism.edges == "truncate":
        return None
    order = 1 if isinstance(mechanism, Laplace) else 2
    change = largest_norm(limit, domain.width, order) if isinstance(domain, Box) else cast(float, limit)
    ratio = math.nextafter(mechanism.scale / change, 0.0) * (1.0 - 2.0**-40)
    if not domain.lattice:
        return library.LaplaceDpEvent(ratio) if order == 1 else library.GaussianDpEvent(ratio)
    if order == 1 and not isinstance(domain, Box):
        return library.DiscreteLaplaceDpEvent(1.0 / mechanism.scale * (1.0 + 2.0**-40), int(change))
    return None


def _distribution(event: Event, interval: float | None) -> Any:
    from dp_accounting.pld.privacy_loss_distribution import (  # type: ignore[import-untyped]
        PrivacyLossDistribution,
        identity,
    )

    parts = [(single.atoms, times) for single, times in composition(event).parts]
    if interval is None:
        step = min(atoms.step for atoms, _ in parts)
    else:
        step = check.number("to_dp_accounting", "interval", interval, above=0.0)
    if any(float(atoms.losses[-1]) > _CELLS * step for atoms, _ in parts):
        check.refuse("to_dp_accounting", "interval", f"at least a {_CELLS}th of the largest loss", interval, "")
    if any(times > _TIMES for _, times in parts):
        check.refuse("to_dp_accounting", "event", f"of at most {_TIMES} equal releases", "more", "")
    total = identity(step)
    for atoms, times in parts:
        first, masses = atoms.on(step)
        law = {first + int(i): float(masses[i]) for i in np.flatnonzero(masses)}
        one = PrivacyLossDistribution.create_from_rounded_probability(law, atoms.lost, step)
        total = total.compose(one.self_compose(times) if times > 1 else one)
    return total

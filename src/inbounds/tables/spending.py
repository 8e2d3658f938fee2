"""How the privacy of a plan is split, and what one unit can touch: from a target to what each draw may cost.

Proof page: ``docs/proofs/tables.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from inbounds import _checks as check
from inbounds.accounting import UNITS
from inbounds.composition import Concentrated, decimal
from inbounds.errors import ParameterError
from inbounds.events import Composed, Event, Parallel, Repeated

__all__ = ["Goal", "Neighbours", "Spend"]

_MOST_SWAPPED = 64


@dataclass(frozen=True)
class Spend:
    """An amount of one currency, in whole units of what budgets count, so that parts never add up to more."""

    kind: str
    units: int

    @property
    def value(self) -> float:
        return self.units / UNITS[self.kind]

    @property
    def given(self) -> dict[str, Any]:
        """As arguments of ``calibrate``."""
        return {self.kind: self.value}

    def portion(self, share: Fraction) -> Spend:
        """A share of it, rounded down."""
        units = math.floor(self.units * share)
        if units < 1:
            raise ParameterError(
                f"plan: {self.kind} {self.value!r} must be enough for {math.ceil(1 / share)} parts; it is not. "
                "Raise it, or lower max_groups."
            )
        return Spend(self.kind, units)


@dataclass(frozen=True)
class Goal:
    """What a plan may cost: epsilon, epsilon and delta, or rho.

    With delta there are two ways, pure noise within epsilon or Gaussian noise within a rho that gives (epsilon, delta);
    a plan takes the one with less noise. Half of delta is kept for finding groups, where that is asked for.
    """

    epsilon: float | None
    delta: float
    rho: float | None

    @classmethod
    def of(cls, epsilon: object, delta: object, rho: object) -> Goal:
        if (epsilon is None) == (rho is None):
            step = "For instance epsilon=0.5."
            check.refuse("plan", "epsilon, rho", "one of the two", (epsilon, rho), step)
        d = 0.0 if delta is None else check.number("plan", "delta", delta, at_least=0.0, below=1.0)
        if epsilon is not None:
            return cls(check.number("plan", "epsilon", epsilon, at_least=1e-9, at_most=500.0), d, None)
        if d > 0.0:
            check.refuse("plan", "delta", "left out with rho", delta, "rho has an epsilon for every delta.")
        return cls(None, d, check.number("plan", "rho", rho, at_least=1e-12, at_most=1e4))

    def ways(self) -> list[Spend]:
        """The currencies in which the numbers of the plan may be paid."""
        if self.rho is not None:
            return [_exactly("rho", self.rho)]
        found = [_exactly("epsilon", self.epsilon or 0.0)]
        if self.delta > 0.0:
            found.append(_exactly("rho", _rho(self.epsilon or 0.0, self.delta)))
        return [spend for spend in found if spend.units > 0]

    def to_json(self) -> dict[str, float]:
        given = {"epsilon": self.epsilon, "delta": self.delta or None, "rho": self.rho}
        return {name: value for name, value in given.items() if value is not None}

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:g}" for name, value in self.to_json().items())


def _exactly(kind: str, value: float) -> Spend:
    return Spend(kind, math.floor(decimal(value) * UNITS[kind]))


def _rho(epsilon: float, delta: float) -> float:
    """A rho for which zCDP implies (epsilon, delta)-DP, near the largest."""
    low, high = 0.0, max(1.0, epsilon)
    while high - low > 1e-4 * high:
        middle = (low + high) / 2.0
        low, high = (middle, high) if Concentrated(middle).delta(epsilon) <= delta else (low, middle)
    return low


@dataclass(frozen=True)
class Neighbours:
    """Which data count as neighbours, and in how many groups they differ.

    Adding or removing a unit changes its own groups, ``groups`` at most, each by what a unit *adds*. Swapping a unit
    for another changes j groups of both by what a unit *swaps*, and 2 (groups - j) groups of one of them by what it
    adds, for some j.
    """

    substitute: bool
    grouped: bool
    groups: int

    def __post_init__(self) -> None:
        if self.substitute and self.grouped and self.groups > _MOST_SWAPPED:
            step = 'Use neighbours="add-remove" for more.'
            check.refuse("plan", "max_groups", f"at most {_MOST_SWAPPED} with substitution", self.groups, step)

    @property
    def draws(self) -> int:
        """In how many groups neighbours can differ."""
        return self.groups * (2 if self.substitute and self.grouped else 1)

    def costs(self, spend: Spend) -> list[tuple[bool, Spend]]:
        """What one draw may cost: (whether units swap, amount), all of which must hold."""
        if not self.substitute:
            return [(False, spend.portion(Fraction(1, self.groups)))]
        if not self.grouped:
            return [(True, spend)]
        once = spend.portion(Fraction(1, 2 * self.groups))
        return [(False, once), (True, Spend(spend.kind, once.units * 2))]

    def calibrate(self, make: Callable[[bool, Spend], Any]) -> Callable[[Spend], Any]:
        """From ``make(swaps, amount)`` to the mechanism with enough noise for all costs."""
        return lambda spend: max((make(*cost) for cost in self.costs(spend)), key=lambda found: found.scale)

    def event(self, added: Event, swapped: Event) -> Event:
        """What the draws of all groups cost together."""
        if not self.substitute:
            return _times(added, self.groups)
        if not self.grouped:
            return swapped
        if added == swapped:
            return _times(added, 2 * self.groups)
        cases = []
        for j in range(self.groups + 1):
            parts = [(swapped, j), (added, 2 * (self.groups - j))]
            cases.append(Composed(tuple(_times(event, count) for event, count in parts if count)))
        return Parallel(tuple(cases))


def _times(event: Event, count: int) -> Event:
    return event if count == 1 else Repeated(event, count)

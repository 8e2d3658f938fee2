"""Budgets: how much may be released in all, when what is released next may depend on what came out before.

A budget turns an event into whole numbers that add up, rounded up, and says whether a sum of them is still within. The
rule for (epsilon, delta) is a privacy filter: it holds for events that are chosen adaptively. Proof:
``docs/proofs/composition.md``, section 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from inbounds import _checks as check
from inbounds import privacy
from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds.composition import ORDERS, Guarantee, decimal, up
from inbounds.errors import BudgetExceeded, ParameterError, ParameterTypeError
from inbounds.events import Composed, Event, Parallel, Plan, Repeated, Zcdp, composition, single
from inbounds.numerics import Bound, decimal_floor, rounded

__all__ = ["UNITS", "Budget", "Price", "add", "price"]

VERSION = 1
Vector = tuple[int, ...]

#: How many units are 1. What is counted are whole numbers of them; Rényi divergences count as rho does.
UNITS = {"epsilon": 10**9, "rho": 10**12, "delta": 10**18}
_EPSILON, _RENYI, _DELTA = UNITS["epsilon"], UNITS["rho"], UNITS["delta"]
_MOST = 2**62 - 1  # units that stand for infinitely many

_SIDE = 4  # orders on either side of the middle one
_WEIGHTS = np.array([4.0 ** -abs(i - _SIDE) for i in range(2 * _SIDE + 1)])
_WEIGHTS /= np.sum(_WEIGHTS)
_MARGIN = 1e-9  # relative, for what is rounded in the rule
_LAST_DIGIT = 2.0**-30  # relative, between curves computed on different machines


# ---------------------------------------------------------------- whole numbers


def _units(x: Fraction | float, units: int) -> int:
    """A number in units, rounded up; the largest where it is infinite."""
    return min(math.ceil(Fraction(x) * units), _MOST) if x < math.inf else _MOST


def _number(count: int, units: int) -> float:
    """So many units as a number, which prints as the decimal it is."""
    return count / units if count < _MOST else math.inf


def _limit(x: float, units: int) -> int:
    return math.floor(decimal(x) * units)


def _less(a: float, b: float) -> float:
    """What is lacking from b to a, as decimals."""
    return max(float(decimal(a) - decimal(b)), 0.0) if a < math.inf else a


def add(used: Sequence[int], charge: Sequence[int]) -> Vector:
    """The sum of vectors. It may exceed what stands for infinitely many: a void must find all it takes back."""
    return tuple(u + c for u, c in zip(used, charge, strict=True))


def _fold(event: Event, leaf: Callable[[Event], tuple[Any, ...]]) -> tuple[Any, ...]:
    """What an event costs: sums in sequence, the largest over groups that share no unit."""
    if isinstance(event, Composed | Parallel):
        columns = zip(*(_fold(part, leaf) for part in event.events), strict=True)
        return tuple(max(c) if isinstance(event, Parallel) else min(sum(c), _MOST) for c in columns)
    if isinstance(event, Repeated):
        return tuple(min(event.times * part, _MOST) for part in _fold(event.event, leaf))
    return _fold(event.event, leaf) if isinstance(event, Plan) else leaf(event)


def _enough(charge: Vector, price: Vector) -> bool:
    """Whether a charge is the price, up to the last digit: curves computed on another machine may differ in it."""
    return all(type(c) is int and c * (1.0 + _LAST_DIGIT) + 1 >= p for c, p in zip(charge, price, strict=True))


# ---------------------------------------------------------------- rules: what is counted, and when there is room


class _Rule(Protocol):
    zero: Vector

    def charge(self, event: Event) -> Vector: ...

    def covers(self, charge: Vector, event: Event) -> bool: ...

    def admits(self, used: Vector) -> bool: ...

    def spent(self, used: Vector) -> dict[str, float]: ...

    def remaining(self, used: Vector) -> dict[str, float]: ...

    def shortfall(self, used: Vector, charge: Vector) -> dict[str, float]: ...


class _Sum:
    """One number that adds up: pure epsilon or rho.

    The limit is rounded down and charges up. An event that is within the budget but for that is charged the limit:
    beside it there is room for what costs nothing only.
    """

    zero: Vector = (0,)

    def __init__(self, name: str, most: float, cost: Callable[[Event], Fraction]) -> None:
        self.name, self.most, self.units, self.cost = name, most, UNITS[name], cost
        self.limit = _limit(most, self.units)

    def charge(self, event: Event) -> Vector:
        charge = _fold(event, lambda leaf: (_units(self.cost(leaf), self.units),))
        if charge[0] > self.limit and _fold(event, lambda leaf: (self.cost(leaf),))[0] <= decimal(self.most):
            return (self.limit,)
        return charge

    def covers(self, charge: Vector, event: Event) -> bool:
        return _enough(charge, self.charge(event))

    def admits(self, used: Vector) -> bool:
        return used[0] <= self.limit

    def spent(self, used: Vector) -> dict[str, float]:
        return {self.name: self.most if used[0] == self.limit else _number(used[0], self.units)}

    def remaining(self, used: Vector) -> dict[str, float]:
        return {self.name: _number(max(self.limit - used[0], 0), self.units)}

    def shortfall(self, used: Vector, charge: Vector) -> dict[str, float]:
        total = used[0] + charge[0]
        return {self.name: _number(max(total - self.limit, 0) if total < _MOST else _MOST, self.units)}


def _pure_cost(leaf: Event) -> Fraction:
    epsilon, delta = single(leaf).pair
    return Fraction(_MOST) if epsilon is None or delta > 0 else epsilon


@lru_cache(maxsize=4096)
def _rho_cost(leaf: Event) -> Fraction:
    rho = float(single(leaf).rho)
    return decimal(rho) if isinstance(leaf, Zcdp) else Fraction(min(rho, _MOST))


class _Filter:
    """(epsilon, delta). Counted are: pure epsilon, own deltas, whether it is all gone at once, Rényi divergences.

    There is room while the own deltas are within their share of delta, and either the pure losses are within epsilon or
    a mixture of Rényi bounds, with fixed weights, keeps the rest of delta. A first event that this rule does not let
    pass, but that has (epsilon, delta) by itself, may take the whole budget.
    """

    def __init__(self, epsilon: float, delta: float, own: float) -> None:
        self.stated = {"epsilon": epsilon, "delta": delta}
        self.epsilon, self.delta = decimal_floor(epsilon), decimal_floor(delta)
        share = decimal(own) * decimal(delta)
        self.limit, self.own_limit = _limit(epsilon, _EPSILON), math.floor(share * _DELTA)
        self.tail = -up(share - decimal(delta))  # what is left of delta, rounded down
        self.orders = _best_orders(self.epsilon, self.tail)
        self.zero: Vector = (0,) * (3 + len(self.orders))
        self.whole: Vector = (0, 0, 1, *self.zero[3:])
        self._a = np.array(self.orders)

    def charge(self, event: Event) -> Vector:
        return _filter_charge(self, event)

    def by_parts(self, event: Event) -> Vector:
        """The charge that adds up."""
        return _fold(event, lambda leaf: _filter_cost(leaf, self.orders))

    def takes_all(self, event: Event, slack: float = 0.0) -> bool:
        """Whether it may be the only one: by its profile, or by what adds up, which for claims is exact."""
        whole = composition(event)
        total, fails = whole.pair
        if total is not None and total <= decimal(self.stated["epsilon"]) and fails <= decimal(self.stated["delta"]):
            return True
        return whole.delta(self.epsilon) <= self.delta * (1.0 + slack)

    def covers(self, charge: Vector, event: Event) -> bool:
        return self.takes_all(event, _LAST_DIGIT) if charge == self.whole else _enough(charge, self.by_parts(event))

    def admits(self, used: Vector) -> bool:
        pure, own, whole, *renyi = used
        if whole:
            return whole == 1 and not (pure or own or any(renyi))
        return own <= self.own_limit and (pure <= self.limit or self.holds(tuple(renyi), self.epsilon))

    def holds(self, renyi: Vector, epsilon: float) -> bool:
        """Whether the mixture keeps the loss within epsilon up to ``tail``.

        For every x >= 0: sum of weight * exp(order * (epsilon + x - divergence)) >= (1 - e^-x) / tail. The difference
        of the two sides is convex in x: its least value is bounded by a tangent.
        """
        if self.tail <= 0.0:
            return False
        divergences = np.array([_number(r, _RENYI) for r in renyi])
        levels = np.log(self.tail * _WEIGHTS * (1.0 - _MARGIN)) + self._a * (epsilon - divergences)

        def terms(x: float) -> FloatArray:
            return np.exp(np.minimum(levels + self._a * x, 650.0))  # times an order it stays finite

        def slope(x: float) -> float:
            return float(np.dot(self._a, terms(x))) - math.exp(-x)

        if slope(0.0) >= 0.0:
            return True
        low, high = 0.0, 1.0 / float(self._a[-1])
        while slope(high) < 0.0:
            low, high = high, 2.0 * high
            if high > 100.0:
                return False
        while high - low > 1e-6 * high:  # the tangent loses the square of that
            middle = (low + high) / 2.0
            low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
        return float(np.sum(terms(low))) + math.expm1(-low) + slope(low) * (high - low) >= 0.0

    def spent(self, used: Vector) -> dict[str, float]:
        pure, own, whole, *renyi = used
        if whole:
            return dict(self.stated)
        by_sum, by_mixture = _number(pure, _EPSILON), self._epsilon_of(tuple(renyi))
        own_delta = _number(own, _DELTA)
        if by_sum <= by_mixture:
            return {"epsilon": by_sum, "delta": own_delta}
        return {"epsilon": by_mixture, "delta": own_delta + self.tail}

    def _epsilon_of(self, renyi: Vector) -> float:
        """The smallest epsilon found for which the mixture would do."""
        if not any(renyi):
            return 0.0
        low, high = 0.0, max(self.epsilon, 1e-9)
        while not self.holds(renyi, high):
            low, high = high, 2.0 * high
            if high > 1e6:
                return math.inf
        while high - low > 1e-7 * high:
            middle = (low + high) / 2.0
            low, high = (low, middle) if self.holds(renyi, middle) else (middle, high)
        return high

    def remaining(self, used: Vector) -> dict[str, float]:
        """What one more event may cost: its pure epsilon (with no delta), or its own delta (with no epsilon)."""
        if used[2] or not self.admits(used):
            return {"epsilon": 0.0, "delta": 0.0}
        low, high = max(self.limit - used[0], 0), 2 * self.limit + 1
        while high - low > 1:
            middle = (low + high) // 2
            cost = (middle, 0, 0, *(_response(middle, a) for a in self.orders))
            low, high = (middle, high) if self.admits(add(used, cost)) else (low, middle)
        return {"epsilon": _number(low, _EPSILON), "delta": _number(max(self.own_limit - used[1], 0), _DELTA)}

    def shortfall(self, used: Vector, charge: Vector) -> dict[str, float]:
        total = add(used, charge)
        if total[2]:  # all of it, or of what is left nothing
            left, asked = self.remaining(used), self.spent(charge)
            return {name: _less(asked[name], left[name]) for name in asked}
        own = _number(max(total[1] - self.own_limit, 0), _DELTA)
        return {"epsilon": _less(self.spent(total)["epsilon"], self.stated["epsilon"]), "delta": own}


def _response(pure: int, order: float) -> int:
    return _units(privacy.response_renyi(_number(pure, _EPSILON), 1.0 + order), _RENYI)


def _best_orders(epsilon: float, tail: float) -> tuple[float, ...]:
    """Orders around the one that lets most of a Rényi divergence proportional to the order pass."""

    def room(a: float) -> float:
        return (epsilon + math.log1p(1.0 / a) + (math.log(tail) + math.log1p(a)) / a) / (1.0 + a)

    middle = _SIDE
    if tail > 0.0:
        middle = max(range(_SIDE, len(ORDERS) - _SIDE), key=lambda i: room(ORDERS[i]))
    return ORDERS[middle - _SIDE : middle + _SIDE + 1]


@lru_cache(maxsize=4096)
def _filter_cost(leaf: Event, orders: tuple[float, ...]) -> Vector:
    one = single(leaf)
    epsilon, delta = one.pair
    pure = _MOST if epsilon is None else _units(epsilon, _EPSILON)
    if delta > 0:  # fails with delta, and is pure else
        renyi = [_response(pure, a) for a in orders]
    else:
        renyi = [_units(one.renyi(1.0 + a), _RENYI) for a in orders]
    return (pure, _units(delta, _DELTA), 0, *renyi)


@lru_cache(maxsize=4096)
def _filter_charge(rule: _Filter, event: Event) -> Vector:
    charge = rule.by_parts(event)
    return rule.whole if not rule.admits(charge) and rule.takes_all(event) else charge


# ---------------------------------------------------------------- what users hold


def in_words(amounts: dict[str, float], *, up: bool = True) -> str:
    """Privacy for a message, rounded up (what is spent) or down (what is left)."""
    return " and ".join(f"{name} {rounded(x, up=up, digits=9)}" for name, x in amounts.items())


@dataclass(frozen=True, repr=False)
class Budget:
    """How much may be released in all: ``Budget(epsilon=3)``, ``Budget(epsilon=3, delta=1e-9)`` or ``Budget(rho=0.5)``.

    Numbers count as the decimals they print as: epsilon 0.3 pays for three releases of 0.1. What is released next may
    depend on what came out before; the guarantee holds for the whole (``docs/proofs/composition.md``).

    Counted is in units of 1e-9 of epsilon and 1e-12 of rho: the limit is rounded down to them, each release up. So a
    number of more digits pays once for a release of the same number, but not always for its parts: epsilon 1 pays for
    two releases of 1/3, and 0.999999999 for three of 0.333333333.

    Parameters
    ----------
    epsilon : float in [1e-9, 1e6]
    delta : float in [0, 1)
        With 0, epsilons add up. Else the losses are followed at several Rényi orders, by which many small releases cost
        far less than their sum.
    rho : float in [1e-12, 1e6]
        Zero-concentrated DP, instead of epsilon and delta.
    own : float in [0, 1]
        The share of delta for releases that have a delta of their own; the rest pays for the composition. With 1,
        epsilons add up and deltas add up.

    Examples
    --------
    >>> import inbounds as ib
    >>> budget = ib.Budget(epsilon=0.3)
    >>> count = ib.Laplace.calibrate(ib.Integers(0, 30), sensitivity=1, epsilon=0.1)
    >>> used = budget.zero()
    >>> for _ in range(3):
    ...     used = tuple(u + c for u, c in zip(used, budget.charge(count.event())))
    >>> budget.admits(used), budget.remaining(used)
    (True, {'epsilon': 0.0})
    """

    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None
    own: float = 0.5

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            given = (self.epsilon, self.rho)
            check.refuse("Budget", "epsilon, rho", "one of the two", given, "For instance Budget(epsilon=1).")
        values: dict[str, Any] = {
            "delta": check.number("Budget", "delta", self.delta, at_least=0.0, below=1.0),
            "own": check.number("Budget", "own", self.own, at_least=0.0, at_most=1.0),
        }
        if self.epsilon is not None:
            values["epsilon"] = check.number("Budget", "epsilon", self.epsilon, at_least=1e-9, at_most=1e6)
        else:
            values["rho"] = check.number("Budget", "rho", self.rho, at_least=1e-12, at_most=1e6)
            if values["delta"] > 0.0:
                check.refuse("Budget", "delta", "0 with rho", self.delta, "rho has an epsilon for every delta.")
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @cached_property
    def _rule(self) -> _Rule:
        return _rule(self.epsilon, self.delta, self.rho, self.own)

    def __repr__(self) -> str:
        given = {name: value for name, value in self.to_json().items() if name != "version"}
        if given.get("own") == Budget.own:
            del given["own"]
        return f"Budget({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    # -- what is counted

    def zero(self) -> Vector:
        """What is used before anything is."""
        return self._rule.zero

    def charge(self, event: Event) -> Vector:
        """What an event costs, in whole numbers that add up; rounded up, 2**62 - 1 where there is no bound."""
        if not isinstance(event, Event):
            advice = "Ask a mechanism or a release for its event()."
            check.refuse("Budget", "event", "an event", type(event).__name__, advice, ParameterTypeError)
        return self._rule.charge(event)

    def covers(self, charge: Vector, event: Event) -> bool:
        """Whether a charge that was recorded is enough for the event, by the prices of today.

        More than today's price is no fault: an earlier version may have been less tight.
        """
        return self._rule.covers(self._counted(charge), event)

    def _counted(self, used: Any) -> Vector:
        count = len(self.zero())
        if not (isinstance(used, tuple | list) and len(used) == count and all(type(u) is int and u >= 0 for u in used)):
            check.refuse("Budget", "used", f"{count} whole numbers from 0 up, as charges add up to", used, "")
        return tuple(used)

    def admits(self, used: Vector) -> bool:
        """Whether so much is within the budget."""
        return self._rule.admits(self._counted(used))

    def spent(self, used: Vector) -> dict[str, float]:
        """So much in the budget's terms: epsilon (and delta), or rho; never less than such releases cost.

        That is for releases that were fixed beforehand. Where they were chosen as answers came in, a sum of epsilons
        holds as well; else the guarantee is that of the whole budget, and this an estimate for reading.
        """
        return self._rule.spent(self._counted(used))

    def remaining(self, used: Vector) -> dict[str, float]:
        """What one more release may cost: a pure epsilon without delta, a delta of its own without epsilon; or rho."""
        return self._rule.remaining(self._counted(used))

    def refusal(self, used: Vector, charge: Vector) -> BudgetExceeded:
        """The error that says why there is no room for ``charge`` beside ``used``."""
        rule, used, charge = self._rule, self._counted(used), self._counted(charge)
        spent, asked, left = rule.spent(used), rule.spent(charge), rule.remaining(used)
        lacking = rule.shortfall(used, charge)
        message = (
            f"{self!r}: there is no room for this release. It needs {in_words(asked)}; "
            f"left for one release: {in_words(left, up=False)}; spent: {in_words(spent)}; "
            f"short by {in_words({k: v for k, v in lacking.items() if v > 0.0} or lacking)}."
        )
        if asked.get("epsilon") == math.inf:
            message += " No epsilon alone pays for it: its guarantee has a delta, and the budget has none."
            message += " A budget has one as Budget(epsilon=1, delta=1e-9)."
        if lacking.get("delta"):
            message += f" Releases with a delta of their own may use {self.own:g} of delta; own= sets this share."
        return BudgetExceeded(message, spent=spent, requested=asked, remaining=left, shortfall=lacking)

    # -- JSON

    def to_json(self) -> dict[str, Any]:
        """The budget, of what JSON has."""
        if self.rho is not None:
            return {"version": VERSION, "rho": self.rho}
        if self.delta == 0.0:
            return {"version": VERSION, "epsilon": self.epsilon}
        return {"version": VERSION, "epsilon": self.epsilon, "delta": self.delta, "own": self.own}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Budget:
        """The budget that :meth:`to_json` wrote."""
        names = {"version", "epsilon", "delta", "rho", "own"}
        if not isinstance(record, dict) or not record.keys() <= names or "version" not in record:
            check.refuse("Budget", "record", f"an object with some of {sorted(names)}", record, "", ParameterError)
        version = record["version"]
        if type(version) is not int or version != VERSION:
            check.refuse("Budget", "version", f"{VERSION}", version, "A newer inbounds wrote it.", ParameterError)
        return cls(**{name: value for name, value in record.items() if name != "version"})


@lru_cache(maxsize=256)
def _rule(epsilon: float | None, delta: float, rho: float | None, own: float) -> _Rule:
    if rho is not None:
        return _Sum("rho", rho, _rho_cost)
    most = epsilon or 0.0
    return _Filter(most, delta, own) if delta > 0.0 else _Sum("epsilon", most, _pure_cost)


# ---------------------------------------------------------------- before anything is run


@dataclass(frozen=True)
class Price:
    """What releases would cost together.

    Attributes
    ----------
    guarantee : Guarantee
        With every method; for a fixed list of releases.
    delta : float or None
        At which epsilon is told.
    budget : Budget or None
    charge : tuple of int or None
        What the budget would count; by rules that also hold when releases are chosen one after the other.
    used : tuple of int or None
        What the budget has counted before.
    """

    guarantee: Guarantee
    delta: float | None = None
    budget: Budget | None = None
    charge: Vector | None = None
    used: Vector | None = None

    @property
    def epsilon(self) -> Bound:
        """Epsilon at ``delta``; pure epsilon where that was not given."""
        return self.guarantee.epsilon(self.delta or 0.0)

    @property
    def fits(self) -> bool | None:
        """Whether the budget has room for it; None without a budget."""
        if self.budget is None or self.charge is None or self.used is None:
            return None
        return self.budget.admits(add(self.used, self.charge))

    def __str__(self) -> str:
        text = self.guarantee.table(self.delta)
        if self.budget is None or self.charge is None or self.used is None:
            return text
        if not self.fits:
            return f"{text}\n  {self.budget.refusal(self.used, self.charge)}"
        left = self.budget.remaining(add(self.used, self.charge))
        then = " and ".join(f"{name} {rounded(x, up=False, digits=9)}" for name, x in left.items())
        return f"{text}\n  {self.budget!r} has room for it; then left for one release: {then}"


def price(
    events: Any, *, delta: float | None = None, budget: Budget | None = None, used: Vector | None = None
) -> Price:
    """What releases would cost, before any is made. It touches no data and spends nothing.

    Parameters
    ----------
    events : an event, a mechanism, a release, or a list of these
        Releases in sequence, about the same units.
    delta : float in (0, 1), or None
        To tell epsilon at.
    budget : Budget or None
        To tell whether it has room.
    used : tuple of int or None
        What is used of the budget; nothing, if it is not given.

    Examples
    --------
    >>> import inbounds as ib
    >>> count = ib.Laplace.calibrate(ib.Integers(0, 30), sensitivity=1, epsilon=0.1)
    >>> cost = ib.price([count] * 100, delta=1e-6)
    >>> round(cost.guarantee.epsilon(), 6), round(cost.epsilon, 2), cost.epsilon.reason
    (10.0, 2.58, 'Rényi DP')
    """
    several = events if isinstance(events, list | tuple) else [events]
    found = [e if isinstance(e, Event) else _event_of(e) for e in several]
    event = found[0] if len(found) == 1 else Composed(tuple(found))
    if delta is not None:
        delta = check.number("price", "delta", delta, above=0.0, below=1.0)
    if budget is None:
        return Price(event.guarantee(), delta)
    if not isinstance(budget, Budget):
        check.refuse("price", "budget", "a Budget or None", budget, "", ParameterTypeError)
    at = delta if delta is not None else budget.delta or None
    before = budget.zero() if used is None else budget._counted(used)
    return Price(event.guarantee(), at, budget, budget.charge(event), before)


def _event_of(thing: Any) -> Event:
    made = getattr(thing, "event", None)
    if not callable(made):
        advice = "Ask a mechanism or a release for its event()."
        check.refuse("price", "events", "events, mechanisms or releases", thing, advice, ParameterTypeError)
    event = made()
    if not isinstance(event, Event):
        check.refuse("price", "events", "events, mechanisms or releases", thing, "", ParameterTypeError)
    return event

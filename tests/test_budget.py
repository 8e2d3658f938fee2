"""Budgets: decimals, whole numbers rounded up, refusals, and the rule for releases that are chosen adaptively."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.optimize import brentq
from scipy.stats import binom

import inbounds as ib
from inbounds import accounting, privacy
from inbounds.accounting import _Filter
from inbounds.composition import ORDERS, rho_delta
from inbounds.errors import BudgetExceeded, InboundsError, ParameterError, ParameterTypeError
from inbounds.events import Approximate, Composed, Event, Parallel, Plan, Pure, Repeated, Zcdp

INF = math.inf
MOST = 2**62 - 1
UNIT = ib.Interval(0, 1)


def plus(*parts: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*parts, strict=True)))


def how_many(budget: ib.Budget, event: Event, most: int = 100_000) -> int:
    """How often the event fits, one after the other."""
    charge = budget.charge(event)
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if budget.admits(tuple(middle * c for c in charge)) else (low, middle)
    return low


# ---------------------------------------------------------------- decimals

CALIBRATED: dict[str, Callable[[float], Any]] = {
    "laplace": lambda e: ib.Laplace.calibrate(ib.Interval(0, 120), sensitivity=0.5, epsilon=e),
    "laplace, plain": lambda e: ib.Laplace.calibrate(ib.Interval(0, 120), sensitivity=0.5, epsilon=e, edges="ignore"),
    "laplace, integers": lambda e: ib.Laplace.calibrate(ib.Integers(0, 30), sensitivity=1, epsilon=e),
    "laplace, spans": lambda e: ib.Laplace.calibrate(ib.Spans([(0, 9), (12, 20)]), sensitivity=2, epsilon=e),
    "laplace, box": lambda e: ib.Laplace.calibrate(ib.Box([0, 0], [9, 5]), sensitivity=ib.L1(1), epsilon=e),
    "gaussian": lambda e: ib.Gaussian.calibrate(UNIT, sensitivity=0.1, epsilon=e),
    "gaussian, clamped": lambda e: ib.Gaussian.calibrate(UNIT, sensitivity=0.1, epsilon=e, edges="clamp"),
    "gaussian, box": lambda e: ib.Gaussian.calibrate(ib.Box([0, 0], [9, 5]), sensitivity=ib.L2(1), epsilon=e),
    "staircase": lambda e: ib.Staircase.calibrate(UNIT, sensitivity=0.1, epsilon=e),
}


@pytest.mark.parametrize("name", CALIBRATED)
@pytest.mark.parametrize(("each", "count", "whole"), [(0.1, 3, 0.3), (0.7, 3, 2.1), (0.01, 7, 0.07), (1.1, 3, 3.3)])
def test_decimals_add_up(name: str, each: float, count: int, whole: float) -> None:
    budget, event = ib.Budget(epsilon=whole), CALIBRATED[name](each).event()
    assert how_many(budget, event) == count
    assert budget.charge(event)[0] <= round(each * 1e9)
    assert budget.charge(event)[0] >= each * 1e9 * (1 - 1e-6)


@given(st.integers(1, 10**6), st.integers(0, 6), st.integers(1, 1000))
@settings(max_examples=200, deadline=None)
def test_any_decimal_adds_up(digits: int, places: int, count: int) -> None:
    each = float(f"{digits}e-{places}")
    whole = float(f"{digits * count}e-{places}")
    if whole <= 1e6:
        assert how_many(ib.Budget(epsilon=whole), Pure(each), count + 3) == count
        assert how_many(ib.Budget(rho=whole), Zcdp(each), count + 3) == count


@pytest.mark.parametrize("kind", [ib.Laplace, ib.Gaussian])
@pytest.mark.parametrize("rho", [0.1, 0.003])
def test_rho_adds_up(kind: Any, rho: float) -> None:
    mechanism = kind.calibrate(UNIT, sensitivity=1.0, rho=rho)
    budget = ib.Budget(rho=3 * rho)
    assert how_many(ib.Budget(rho=float(f"{3 * rho:.6g}")), mechanism.event()) == 3
    assert budget.spent(budget.charge(mechanism.event()))["rho"] <= rho


@pytest.mark.parametrize("number", [1 / 3, math.log(3), math.pi / 1e4, 0.7, 1e-9 * (2 - 2**-52)])
def test_a_budget_pays_for_its_own_number_once(number: float) -> None:
    for budget, event in ((ib.Budget(epsilon=number), Pure(number)), (ib.Budget(rho=number), Zcdp(number))):
        charge = budget.charge(event)
        assert budget.admits(charge)
        assert budget.covers(charge, event)
        assert set(budget.spent(charge).values()) == {number}
        assert set(budget.remaining(charge).values()) == {0.0}
        for more in (Pure(1e-100), Zcdp(1e-100), event):
            assert not budget.admits(plus(charge, budget.charge(more)))
        assert budget.admits(plus(charge, budget.charge(Repeated(type(event)(0.0), 9))))
        larger = type(event)(math.nextafter(number, INF))
        assert not budget.admits(budget.charge(larger))
        assert not budget.admits(plus(budget.charge(type(event)(1e-100)), charge))
    mechanism = ib.Laplace.calibrate(UNIT, sensitivity=0.5, epsilon=1 / 3)
    assert how_many(ib.Budget(epsilon=1 / 3), mechanism.event()) == 1


@given(st.floats(1e-8, 2e-8), st.lists(st.floats(0.0, 1.5e-8), min_size=1, max_size=6))
@settings(max_examples=300, deadline=None)
def test_what_is_admitted_is_within_the_decimal(number: float, asked: list[float]) -> None:
    """At a few units, where rounding shows most."""
    for budget, kind, scale in ((ib.Budget(epsilon=number), Pure, 1.0), (ib.Budget(rho=number * 1e-3), Zcdp, 1e-3)):
        used, spent = budget.zero(), Fraction(0)
        for x in (*asked, number):
            event: Any = kind(x * scale if x * scale >= 1e-100 else 0.0)
            more = plus(used, budget.charge(event))
            if budget.admits(more):
                used = more
                spent += Fraction(repr(x * scale if x * scale >= 1e-100 else 0.0))
        assert spent <= Fraction(repr(float(budget.epsilon or budget.rho or 0.0)))
        assert spent <= Fraction(repr(next(iter(budget.spent(used).values()))))


def test_a_hair_too_much_is_too_much() -> None:
    budget = ib.Budget(epsilon=0.3)
    assert not budget.admits(budget.charge(Repeated(Pure(0.100000001), 3)))
    assert not budget.admits(budget.charge(Pure(0.30000000000001)))
    assert budget.admits(budget.charge(Pure(0.29999999999999)))
    mechanism = ib.Laplace(ib.Interval(-INF, INF), scale=10.0, sensitivity=1.0)  # 0.1, and a little for rounding
    assert budget.charge(mechanism.event()) == (100_000_001,)


@given(st.floats(1e-12, 1e6), st.floats(1e-30, 0.999))
@settings(max_examples=200, deadline=None)
def test_charges_are_rounded_up(epsilon: float, delta: float) -> None:
    assert Fraction(ib.Budget(epsilon=1).charge(Pure(epsilon))[0], 10**9) >= Fraction(repr(epsilon))
    charge = ib.Budget(epsilon=1, delta=0.5).charge(Approximate(epsilon, delta))
    if charge[2] == 0:
        assert Fraction(charge[1], 10**18) >= Fraction(repr(delta))
    assert Fraction(ib.Budget(rho=1).charge(Zcdp(epsilon))[0], 10**12) >= Fraction(repr(epsilon))


# ---------------------------------------------------------------- charges

BUDGETS = [ib.Budget(epsilon=1), ib.Budget(rho=0.1), ib.Budget(epsilon=1, delta=1e-6), ib.Budget(3.0, 1e-9, own=0.25)]


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_charges_add_up_and_the_dearest_group_counts(budget: ib.Budget) -> None:
    small, large = ib.Laplace(UNIT, scale=9, sensitivity=0.1).event(), Pure(0.02)
    one, other = budget.charge(small), budget.charge(large)
    assert budget.charge(Composed([small, large, small])) == plus(one, other, one)
    assert budget.charge(Repeated(small, 3)) == plus(one, one, one)
    assert budget.charge(Plan({"how": "mean"}, small)) == one
    assert budget.charge(Parallel([small, large])) == tuple(map(max, zip(one, other, strict=True)))
    assert len(one) == len(budget.zero())
    assert budget.zero() == tuple(0 for _ in one)
    assert budget.admits(budget.zero())


@pytest.mark.parametrize("budget", BUDGETS[:2], ids=repr)
def test_what_has_no_bound_costs_more_than_any_budget(budget: ib.Budget) -> None:
    for event in (
        Approximate(0.1, 1e-9),
        ib.BoundedLaplace(UNIT, scale=0.05, bound=0.2, sensitivity=0.1, edges="ignore").event(),
    ):
        charge = budget.charge(Repeated(event, 2**50))
        assert charge == (MOST,)
        assert not budget.admits(charge)
        assert "inf" in str(budget.refusal(budget.zero(), charge))
    assert ib.Budget(epsilon=1).charge(Zcdp(0.1)) == (MOST,)


def test_charges_saturate() -> None:
    for budget in BUDGETS:
        for event in (Repeated(Pure(1e6), 2**53), Composed([Repeated(Zcdp(1e6), 2**53)] * 3)):
            charge = budget.charge(event)
            assert all(type(part) is int and 0 <= part <= MOST for part in charge)
            assert not budget.admits(charge)


@pytest.mark.parametrize("used", [None, 0, (), (0, 0), (-1,), (0.0,), (True,), "0"])
def test_what_is_used_are_whole_numbers(used: Any) -> None:
    budget = ib.Budget(epsilon=1)
    asked: list[Callable[[], object]] = [
        lambda: budget.admits(used),
        lambda: budget.spent(used),
        lambda: budget.remaining(used),
        lambda: budget.refusal(used, (1,)),
        lambda: budget.covers(used, Pure(0.1)),
        *([] if used is None else [lambda: ib.price(Pure(0.1), budget=budget, used=used)]),
    ]
    for ask in asked:
        with pytest.raises(ParameterError, match="whole numbers from 0 up"):
            ask()


def test_a_recorded_charge_covers_its_event_up_to_the_last_digit() -> None:
    noise = ib.Gaussian.calibrate(ib.Interval(0, 1), sensitivity=1.0, epsilon=0.2, delta=1e-9)
    for budget in BUDGETS:
        charge = budget.charge(noise.event())
        assert budget.covers(charge, noise.event())
        assert budget.covers(tuple(max(c - 1, 0) for c in charge), noise.event())
        assert not budget.covers(tuple(c * 99 // 100 for c in charge), noise.event())
    budget = ib.Budget(epsilon=1, delta=1e-6)
    whole = budget.charge(Approximate(1.0, 1e-6))
    assert whole[2] == 1
    assert budget.covers(whole, Pure(0.5)), "whatever is within the budget may have taken all of it"
    assert not budget.covers(whole, Pure(1.5))
    assert budget.covers(whole, Approximate(1.0, 1e-6 * (1 + 1e-11))), "so may the profile of another machine"
    assert not budget.covers(whole, Approximate(1.0, 1e-6 * (1 + 1e-6)))


def test_budgets_are_values() -> None:
    for budget in BUDGETS:
        assert ib.Budget.from_json(json.loads(json.dumps(budget.to_json()))) == budget
        assert pickle.loads(pickle.dumps(budget)).charge(Pure(0.1)) == budget.charge(Pure(0.1))
        assert eval(repr(budget), {"Budget": ib.Budget}) == budget
        assert hash(budget) == hash(ib.Budget.from_json(budget.to_json()))
    with pytest.raises(FrozenInstanceError):
        BUDGETS[0].epsilon = 5.0  # type: ignore[misc]
    assert ib.Budget(epsilon=1).to_json() == {"version": 1, "epsilon": 1.0}
    assert ib.Budget(epsilon=1, delta=1e-6).to_json() == {"version": 1, "epsilon": 1.0, "delta": 1e-6, "own": 0.5}
    assert ib.Budget(rho=0.1).to_json() == {"version": 1, "rho": 0.1}


WRONG: dict[str, Callable[[], Any]] = {
    "nothing": lambda: ib.Budget(),
    "both": lambda: ib.Budget(epsilon=1, rho=1),
    "rho and delta": lambda: ib.Budget(rho=1, delta=1e-6),
    "zero": lambda: ib.Budget(epsilon=0),
    "too small": lambda: ib.Budget(epsilon=1e-10),
    "negative": lambda: ib.Budget(rho=-1),
    "nan": lambda: ib.Budget(epsilon=math.nan),
    "infinite": lambda: ib.Budget(epsilon=INF),
    "delta 1": lambda: ib.Budget(epsilon=1, delta=1.0),
    "delta nan": lambda: ib.Budget(epsilon=1, delta=math.nan),
    "own": lambda: ib.Budget(epsilon=1, delta=1e-6, own=1.5),
    "newer": lambda: ib.Budget.from_json({"version": 2, "epsilon": 1}),
    "no version": lambda: ib.Budget.from_json({"epsilon": 1}),
    "unknown field": lambda: ib.Budget.from_json({"version": 1, "epsilon": 1, "limit": 3}),
    "no record": lambda: ib.Budget.from_json(None),  # type: ignore[arg-type]
    "price of delta 0": lambda: ib.price(Pure(0.1), delta=0.0),
    "price of nothing": lambda: ib.price([]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_budgets(name: str) -> None:
    with pytest.raises(ParameterError):
        WRONG[name]()


@pytest.mark.parametrize(
    "call",
    [
        lambda: ib.Budget(epsilon="1"),  # type: ignore[arg-type]
        lambda: ib.Budget(epsilon=True),
        lambda: ib.Budget(epsilon=1).charge("laplace"),  # type: ignore[arg-type]
        lambda: ib.Budget(epsilon=1).charge(ib.Laplace(UNIT, scale=1, sensitivity=1)),  # type: ignore[arg-type]
        lambda: ib.price("laplace"),
        lambda: ib.price([Pure(0.1), 3]),
        lambda: ib.price(Pure(0.1), budget=1.0),  # type: ignore[arg-type]
    ],
)
def test_wrong_types(call: Any) -> None:
    with pytest.raises(ParameterTypeError):
        call()


# ---------------------------------------------------------------- refusals


def test_a_refusal_says_everything_in_significant_digits() -> None:
    budget = ib.Budget(epsilon=0.3)
    used = budget.charge(Pure(0.299999999))
    error = budget.refusal(used, budget.charge(Pure(2e-9)))
    assert isinstance(error, BudgetExceeded)
    assert isinstance(error, InboundsError)
    assert error.spent == {"epsilon": 0.299999999}
    assert error.requested == {"epsilon": 2e-9}
    assert error.remaining == {"epsilon": 1e-9}
    assert error.shortfall == {"epsilon": 1e-9}
    assert "Budget(epsilon=0.3)" in str(error)
    assert (
        "It needs epsilon 2e-9; left for one release: epsilon 1e-9; spent: epsilon 0.299999999; short by epsilon 1e-9."
        in str(error)
    )


def test_what_is_lacking_is_a_decimal() -> None:
    budget = ib.Budget(epsilon=0.4, delta=1e-6)
    error = budget.refusal(budget.charge(Pure(0.1)), budget.charge(Approximate(0.4, 1e-6)))
    assert error.shortfall["epsilon"] == 0.1
    assert "short by epsilon 0.1 and" in str(error)


def test_what_took_the_whole_budget_spent_all_of_it() -> None:
    for epsilon, delta in ((1 / 3, 1e-6), (0.1, 1e-7 / 3)):
        budget = ib.Budget(epsilon=epsilon, delta=delta)
        assert budget.spent(budget.charge(Approximate(epsilon, delta))) == {"epsilon": epsilon, "delta": delta}


def test_what_remains_fits_and_a_little_more_does_not() -> None:
    for budget in BUDGETS:
        name = "rho" if budget.rho is not None else "epsilon"
        kind: Any = Zcdp if name == "rho" else Pure
        used = plus(budget.charge(kind(0.013)), budget.charge(kind(0.02)))
        left = budget.remaining(used)[name]
        assert budget.admits(plus(used, budget.charge(kind(left))))
        assert not budget.admits(plus(used, budget.charge(kind(left + 2e-9))))
        assert budget.spent(plus(used, budget.charge(kind(left))))[name] <= left + 0.0331


def test_what_is_spent_is_told_in_epsilon_and_delta() -> None:
    budget = ib.Budget(epsilon=1, delta=1e-6)
    assert budget.spent(budget.zero()) == {"epsilon": 0.0, "delta": 0.0}
    assert budget.spent(budget.charge(Pure(0.25))) == {"epsilon": 0.25, "delta": 0.0}
    many = budget.spent(budget.charge(Repeated(Pure(0.01), 300)))
    assert 0.7 < many["epsilon"] < 0.85  # not 3
    assert many["delta"] == pytest.approx(5e-7)
    own = budget.spent(budget.charge(Approximate(0.1, 1e-7)))
    assert own == {"epsilon": 0.1, "delta": pytest.approx(1e-7)}
    error = budget.refusal(budget.charge(Repeated(Approximate(0.1, 1e-7), 5)), budget.charge(Approximate(0.1, 1e-7)))
    assert error.shortfall == {"epsilon": 0.0, "delta": pytest.approx(1e-7)}
    assert "own=" in str(error)
    assert "short by delta 1e-7" in str(error)


# ---------------------------------------------------------------- (epsilon, delta), chosen adaptively


def test_pure_releases_are_never_worse_off_with_a_delta() -> None:
    for epsilon, count in ((0.5, 2), (0.25, 4), (0.1, 10)):
        assert how_many(ib.Budget(epsilon=1, delta=1e-9), Pure(epsilon)) >= count
    assert how_many(ib.Budget(epsilon=1, delta=1e-6), Pure(0.01)) > 400


def test_deltas_of_their_own_have_their_share() -> None:
    event = Approximate(0.05, 1e-7)
    assert how_many(ib.Budget(epsilon=1, delta=1e-6), event) == 5
    assert how_many(ib.Budget(epsilon=1, delta=1e-6, own=1.0), event) == 10
    assert how_many(ib.Budget(epsilon=1, delta=1e-6, own=1.0), Approximate(0.1, 1e-9)) == 10
    assert how_many(ib.Budget(epsilon=1, delta=1e-6, own=1.0), Pure(0.01)) == 100  # basic composition
    assert how_many(ib.Budget(epsilon=1, delta=1e-6, own=0.0), event) == 1  # it takes the whole budget
    bounded = ib.BoundedLaplace.calibrate(ib.Interval(0, 120), sensitivity=0.5, epsilon=0.1, delta=1e-7)
    assert how_many(ib.Budget(epsilon=1, delta=1e-6), bounded.event()) == 5


@pytest.mark.parametrize(
    "event",
    [
        ib.Gaussian.calibrate(UNIT, sensitivity=0.5, epsilon=1.0, delta=1e-6).event(),
        ib.Gaussian.calibrate(UNIT, sensitivity=0.5, epsilon=1.0, delta=1e-6, edges="ignore").event(),
        Approximate(1.0, 1e-6),
        Repeated(Approximate(0.1, 1e-7), 10),
    ],
    ids=["truncated", "plain", "claim", "claims"],
)
def test_one_event_may_take_the_whole_budget_and_then_it_is_gone(event: Event) -> None:
    budget = ib.Budget(epsilon=1, delta=1e-6)
    charge = budget.charge(event)
    assert budget.admits(charge)
    assert budget.spent(charge) == {"epsilon": 1.0, "delta": 1e-6}
    assert budget.remaining(charge) == {"epsilon": 0.0, "delta": 0.0}
    for more in (event, Pure(1e-9), Approximate(0.0, 1e-18)):
        assert not budget.admits(plus(charge, budget.charge(more)))
        error = budget.refusal(charge, budget.charge(more))
        assert any(value > 0.0 for value in error.shortfall.values())
        assert not budget.admits(plus(budget.charge(Pure(1e-9)), charge))
    assert not budget.admits(budget.charge(Composed([event, Pure(0.01)])))


@pytest.mark.parametrize(
    "budget", [ib.Budget(1.0, 1e-6), ib.Budget(3.0, 1e-9), ib.Budget(0.1, 1e-6, own=0.0)], ids=repr
)
@pytest.mark.parametrize("kind", ["pure", "plain gaussian", "truncated laplace"])
def test_what_is_admitted_is_within_the_budget(budget: ib.Budget, kind: str) -> None:
    epsilon, delta = budget.epsilon or 0.0, budget.delta
    event = {
        "pure": Pure(epsilon / 40),
        "plain gaussian": ib.Gaussian(UNIT, scale=60.0 / epsilon, sensitivity=1.0, edges="ignore").event(),
        "truncated laplace": ib.Laplace.calibrate(ib.Integers(0, 9), sensitivity=3, epsilon=epsilon / 40).event(),
    }[kind]
    count = how_many(budget, event)
    assert count > 40
    assert Repeated(event, count).guarantee().epsilon(delta) <= epsilon
    assert Repeated(event, 2 * count).guarantee().epsilon(delta) > epsilon  # not absurdly careful


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-9), (3.0, 1e-9), (10.0, 1e-6)])
def test_the_mixture_costs_little(epsilon: float, delta: float) -> None:
    """Beside the best single order, known beforehand, that has all of delta: rho that fits."""
    best = brentq(lambda r: max(rho_delta(r, epsilon), 1e-300) ** 0.01 - delta**0.01, 1e-9, 100.0)
    for own, least in ((0.5, 0.89), (0.0, 0.97)):
        rule = _Filter(epsilon, delta, own)

        def fits(rho: float, rule: _Filter = rule) -> bool:
            return rule.holds(tuple(math.ceil(rho * (1.0 + a) * 1e12) for a in rule.orders), rule.epsilon)

        assert fits(least * best)
        assert not fits(best)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(40))
def test_the_rule_is_evaluated_on_the_safe_side(seed: int) -> None:
    rng = np.random.default_rng(seed)
    epsilon, delta = float(rng.choice([0.01, 0.1, 1.0, 8.0])), float(10.0 ** -rng.uniform(1, 12))
    rule = _Filter(epsilon, delta, float(rng.choice([0.0, 0.5, 0.9])))
    shape = [float(rng.uniform(0.3, 1.0)) * (1.0 + a) ** float(rng.uniform(0.0, 1.0)) for a in rule.orders]

    def state(size: float) -> tuple[int, ...]:
        return tuple(math.ceil(size * s * 1e12) for s in shape)

    low, high = 0.0, 1e6
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rule.holds(state(middle), rule.epsilon) else (low, middle)
    assert low > 0.0
    assert least_room(rule, state(low)) >= 0  # admitted: the inequality holds everywhere, to 40 digits
    assert least_room(rule, state(low * (1 + 1e-5))) < 0  # and it is not refused long before that


def least_room(rule: _Filter, renyi: tuple[int, ...]) -> Any:
    """min over x of sum w exp(a (epsilon + x - S)) - (1 - e^-x) / tail, by dense search, to 40 digits."""
    with mp.workdps(40):
        weights = [mpf(4) ** -abs(i - 4) for i in range(9)]
        total = mp.fsum(weights)
        orders = [mpf(a) for a in rule.orders]
        heights = [
            rule.tail * w / total * mp.e ** (a * (mpf(rule.epsilon) - mpf(r) / 10**12))
            for w, a, r in zip(weights, orders, renyi, strict=True)
        ]

        def value(x: Any) -> Any:
            return mp.fsum(h * mp.e ** (a * x) for h, a in zip(heights, orders, strict=True)) - (1 - mp.e ** (-x))

        points = [mpf(x) for x in np.concatenate([[0.0], np.logspace(-9, 2, 441)])]
        near = min(range(len(points)), key=lambda i: value(points[i]))
        low, high = points[max(near - 1, 0)], points[min(near + 1, len(points) - 1)]
        for _ in range(80):
            first, second = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, second) if value(first) < value(second) else (first, high)
        return value(low)


# An attack. Some releases of randomised response; then, depending on the loss so far, one more release that is as bad
# as the rule lets it be: with a small probability p it shows a loss that lifts the total just above epsilon.

EPSILON, DELTA, FIRST, TIMES = 4.0, 1e-6, 0.05, 10


def losses() -> Iterator[tuple[float, float]]:
    """The total loss of the first releases, and its probability."""
    chance = 1.0 / (1.0 + math.exp(-FIRST))
    for i in range(TIMES + 1):
        yield (2 * i - TIMES) * FIRST, float(binom.pmf(i, TIMES, chance))


def divergence(p: float, jump: float, order: float) -> float:
    """Rényi divergence of order 1 + a of (p, 1 - p) and (p e^-jump, 1 - p e^-jump), the worse direction."""
    q, found = p * math.exp(-jump), 0.0
    for x, y in ((p, q), (q, p)):
        parts = ((1.0 + order) * np.log([x, 1.0 - x])) - order * np.log([y, 1.0 - y])
        found = max(found, float(np.logaddexp(*parts)) / order)
    return found


def largest(fits: Callable[[float], bool]) -> float:
    """The largest probability p that fits, on logarithmic axes."""
    low, high = -80.0, -1e-9
    if not fits(math.exp(low)):
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(math.exp(middle)) else (low, middle)
    return math.exp(low)


def gained(loss: float, jump: float, p: float) -> float:
    """The part of delta that the last release brings about."""
    rest = math.log1p(-p) - math.log1p(-p * math.exp(-jump))
    return p * max(0.0, -math.expm1(EPSILON - loss - jump)) + (1 - p) * max(0.0, -math.expm1(EPSILON - loss - rest))


def attack(fits: Callable[[float, float], bool]) -> float:
    """The true delta of the interaction, when ``fits(jump, p)`` says what may be released last."""
    total = 0.0
    for loss, chance in losses():
        lifts = [math.log1p(1.0 / a) for a in (1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 255.0)]
        best = max(
            gained(loss, jump, largest(lambda p, jump=jump: fits(jump, p)))
            for jump in (EPSILON - loss + lift for lift in lifts)
            if jump > 0.0
        )
        total += chance * best
    return total


def any_order(jump: float, p: float) -> bool:
    """The rule that is not valid: there is room if any order has room."""
    for alpha in (2.0, 4.0, 8.0, 16.0, 32.0, 64.0):
        spent = TIMES * privacy.response_renyi(FIRST, alpha) + divergence(p, jump, alpha - 1.0)
        if spent + math.log((alpha - 1) / alpha) - (math.log(DELTA) + math.log(alpha)) / (alpha - 1) <= EPSILON:
            return True
    return False


def test_room_in_any_order_is_not_a_valid_rule() -> None:
    assert attack(any_order) > 2.0 * DELTA


@pytest.mark.parametrize("own", [0.0, 0.5])
def test_the_same_attack_on_a_budget(own: float) -> None:
    budget = ib.Budget(epsilon=EPSILON, delta=DELTA, own=own)
    rule: Any = budget._rule
    used = budget.charge(Repeated(Pure(FIRST), TIMES))

    def fits(jump: float, p: float) -> bool:
        renyi = (math.ceil(divergence(p, jump, a) * 1e12) for a in rule.orders)
        pure = max(jump, -math.log1p(-p))
        return budget.admits(plus(used, (math.ceil(pure * 1e9), 0, 0, *renyi)))

    found = attack(fits)
    assert 0.2 * (1 - own) * DELTA < found <= (1 - own) * DELTA


def test_deltas_of_their_own_on_some_paths_only() -> None:
    """Failing openly where the loss came out low, and attacking as above where it came out high."""
    budget = ib.Budget(epsilon=EPSILON, delta=DELTA)
    rule: Any = budget._rule
    used = budget.charge(Repeated(Pure(FIRST), TIMES))
    own = budget.remaining(used)["delta"]

    def fits(jump: float, p: float) -> bool:
        renyi = (math.ceil(divergence(p, jump, a) * 1e12) for a in rule.orders)
        return budget.admits(plus(used, (MOST // 2, 0, 0, *renyi)))

    total = 0.0
    for loss, chance in losses():
        jumps = [EPSILON - loss + math.log1p(1.0 / a) for a in (7.0, 15.0, 31.0)]
        best = max(gained(loss, jump, largest(lambda p, jump=jump: fits(jump, p))) for jump in jumps)
        total += chance * max(best, own)
    assert 0.5 * DELTA < total <= DELTA


# ---------------------------------------------------------------- prices


def test_prices_are_told_before_anything_is_run() -> None:
    mechanism = ib.Laplace.calibrate(ib.Integers(0, 30), sensitivity=1, epsilon=0.1)
    budget = ib.Budget(epsilon=0.3)
    cost = ib.price([mechanism, mechanism.event(), mechanism.release(3)], budget=budget)
    assert cost.fits
    assert cost.epsilon <= 0.3
    assert cost.charge == (300_000_000,)
    assert "has room for it; then left for one release: epsilon 0" in str(cost)
    more = ib.price(mechanism, budget=budget, used=cost.charge)
    assert not more.fits
    assert "no room" in str(more)
    alone = ib.price(mechanism, delta=1e-6)
    assert (alone.fits, alone.charge) == (None, None)
    assert alone.epsilon == mechanism.epsilon(1e-6)
    assert str(alone).startswith("1 release\n")
    assert ib.price([Pure(0.01)] * 50, budget=ib.Budget(epsilon=1, delta=1e-6)).epsilon < 0.5


def test_orders_are_chosen_for_the_budget() -> None:
    for epsilon, delta in ((1e-6, 1e-12), (1e-3, 0.5), (1.0, 1e-6), (50.0, 1e-3), (1e5, 1e-9)):
        orders = _Filter(epsilon, delta, 0.5).orders
        assert len(orders) == 9
        assert set(orders) <= set(ORDERS)
        assert list(orders) == sorted(orders)
    assert math.isclose(float(np.sum(accounting._WEIGHTS)), 1.0, rel_tol=1e-15)

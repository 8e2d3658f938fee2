"""The helpers the mathematics shares, each against its definition."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbounds.numerics import (
    Bound,
    certified_sup,
    decimal_floor,
    legendre,
    linear_recurrence,
    log_sum,
    smallest,
    width_up,
)

finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 15, 16, 17, 99, 100, 101, 1000])
def test_linear_recurrence_is_the_loop(n: int) -> None:
    rng = np.random.default_rng(n)
    factor, term = rng.uniform(0, 1.1, n), rng.exponential(size=n)
    expected, y = [], 0.0
    for a, b in zip(factor, term, strict=True):
        y = a * y + b
        expected.append(y)
    assert linear_recurrence(factor, term) == pytest.approx(np.array(expected), rel=1e-13)


def test_linear_recurrence_with_vanishing_factors() -> None:
    assert linear_recurrence(np.zeros(7), np.arange(7.0)).tolist() == list(range(7))
    assert linear_recurrence(np.full(6, 1e-300), np.ones(6)).tolist() == [1.0] * 6


@given(finite)
def test_decimal_floor_exceeds_neither_reading(x: float) -> None:
    low = decimal_floor(x)
    assert Fraction(low) <= min(Fraction(x), Fraction(repr(x)))
    assert math.nextafter(low, math.inf) >= x


def test_decimal_floor_of_familiar_numbers() -> None:
    assert decimal_floor(0.1) < 0.1  # the float is a little more than a tenth
    assert decimal_floor(0.3) == 0.3  # this one is less
    assert decimal_floor(0.5) == 0.5
    assert decimal_floor(0.0) == 0.0


@given(st.floats(-1e60, 1e60), st.floats(-1e60, 1e60))
def test_width_is_rounded_up(a: float, b: float) -> None:
    lower, upper = min(a, b), max(a, b)
    width = width_up(lower, upper)
    exact = Fraction(upper) - Fraction(lower)
    assert Fraction(width) >= exact
    assert width == 0.0 or Fraction(math.nextafter(width, -math.inf)) < exact


def test_width_of_infinite_intervals() -> None:
    assert width_up(0.0, math.inf) == width_up(-math.inf, 0.0) == width_up(-math.inf, math.inf) == math.inf


@pytest.mark.parametrize(("nodes", "panels"), [(1, 1), (4, 1), (24, 1), (8, 5), (64, 1)])
def test_legendre_integrates_polynomials(nodes: int, panels: int) -> None:
    x, w = legendre(nodes, panels)
    assert x.size == w.size == nodes * panels
    assert (np.diff(x) > 0).all()
    assert x.min() > 0.0
    assert x.max() < 1.0
    for degree in range(2 * nodes):
        assert np.sum(w * x**degree) == pytest.approx(1.0 / (degree + 1), rel=1e-13)
    if nodes > 20:
        assert np.sum(w * np.exp(-x)) == pytest.approx(-math.expm1(-1), rel=1e-15)


def test_log_sum() -> None:
    assert log_sum(np.log(np.array([[1.0, 2.0], [3.0, 5.0]]))) == pytest.approx(np.log([3.0, 8.0]))
    assert log_sum(np.array([-2000.0, -2000.0])) == pytest.approx(-2000.0 + math.log(2.0))
    assert log_sum(np.array([2000.0, -np.inf])) == 2000.0
    assert log_sum(np.array([-np.inf, -np.inf])) == -np.inf
    assert log_sum(np.zeros((3, 2, 4))).shape == (3, 2)


# --- the smallest scale ----------------------------------------------------------------------


@pytest.mark.parametrize("target", [1e-9, 0.1, 1.0, 37.0, 1e5])
@pytest.mark.parametrize(("low", "high"), [(0.5, 2.0), (1e-8, 1e-7), (1e6, 1e8)])
def test_smallest_is_verified_and_close(target: float, low: float, high: float) -> None:
    for upper, root in (
        (lambda s: 3.0 / s, 3.0 / target),
        (lambda s: 3.0 / s**2, math.sqrt(3.0 / target)),
        (lambda s: math.log1p(3.0 / s), 3.0 / math.expm1(min(target, 700.0))),
    ):
        if not 1e-12 < root < 1e12:
            continue
        found = smallest(upper, target, low, high, rtol=1e-10)
        assert upper(found) <= target
        assert found == pytest.approx(root, rel=1e-9)


def test_smallest_steps_over_noise() -> None:
    def upper(s: float) -> float:
        return 1.0 / s * (1.0 + 1e-12 * math.sin(1e9 * s))

    found = smallest(upper, 1.0, 0.5, 2.0, rtol=1e-10)
    assert upper(found) <= 1.0
    assert found == pytest.approx(1.0, rel=1e-9)


def test_smallest_where_the_bound_drops_to_zero() -> None:
    found = smallest(lambda s: 0.0 if s >= 2.0 else 5.0, 1.0, 0.1, 1.0, rtol=1e-10)
    assert 2.0 <= found <= 2.0 * (1.0 + 1e-9)


# --- certified suprema -----------------------------------------------------------------------


def lipschitz(f, constant):  # type: ignore[no-untyped-def]
    """A cell bound from a Lipschitz constant."""

    def bound(a: np.ndarray, b: np.ndarray, enough: float) -> np.ndarray:
        return f((a + b) / 2.0) + constant * (b - a) / 2.0

    return bound


@pytest.mark.parametrize("seed", range(25))
def test_certified_sup_encloses_the_supremum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    amplitude, rate, phase = rng.normal(size=6), rng.uniform(0.5, 20, 6), rng.uniform(0, 7, 6)

    def f(x: np.ndarray) -> np.ndarray:
        return 10.0 + np.sin(np.asarray(x)[..., None] * rate + phase) @ amplitude

    edges = np.linspace(-1.0, 2.0, int(rng.integers(2, 30)))
    constant = float(np.sum(np.abs(amplitude * rate)))
    lower, upper = certified_sup(f, lipschitz(f, constant), edges[:-1], edges[1:], rtol=1e-6)
    true = float(f(np.linspace(-1.0, 2.0, 400_001)).max())
    assert lower <= true * (1.0 + 1e-9)
    assert true <= upper
    assert upper <= lower * (1.0 + 1.1e-6)


def test_certified_sup_is_still_an_upper_bound_when_the_budget_ends() -> None:
    def f(x: np.ndarray) -> np.ndarray:
        return 1.0 + np.sin(40.0 * x)

    lower, upper = certified_sup(f, lipschitz(f, 4000.0), np.array([0.0]), np.array([1.0]), rtol=1e-12, budget=20)
    assert lower <= 2.0 <= upper
    assert upper > 2.5


def test_certified_sup_stops_once_the_target_is_decided() -> None:
    def f(x: np.ndarray) -> np.ndarray:
        return 2.0 - x * x

    cells = np.array([-1.0]), np.array([1.0])
    lower, upper = certified_sup(f, lipschitz(f, 2.0), *cells, rtol=1e-9, target=1.0)
    assert lower > 1.0
    assert upper >= 2.0
    lower, upper = certified_sup(f, lipschitz(f, 2.0), *cells, rtol=1e-9, target=3.0)
    assert 2.0 <= upper <= 3.0


def test_certified_sup_of_nothing_and_of_a_known_value() -> None:
    none = np.array([])
    assert certified_sup(np.cos, lipschitz(np.cos, 1.0), none, none, rtol=1e-6, known=0.3) == (0.3, 0.3)
    lower, upper = certified_sup(
        lambda x: np.full_like(x, 0.5), lambda a, b, _: np.full_like(a, 0.6), np.array([0.0]), np.array([1.0]),
        rtol=1e-6, known=0.7,
    )  # fmt: skip
    assert (lower, upper) == (0.7, 0.7)


@pytest.mark.parametrize("seed", range(10))
def test_certified_sup_on_whole_numbers(seed: int) -> None:
    values = np.random.default_rng(seed).uniform(1, 2, 200)

    def f(x: np.ndarray) -> np.ndarray:
        return values[np.asarray(x).astype(int)]

    def bound(a: np.ndarray, b: np.ndarray, _: float) -> np.ndarray:
        return np.array([values[int(i) : int(j) + 1].max() * 1.01 for i, j in zip(a, b, strict=True)])

    starts = np.arange(0.0, 200.0, 25.0)
    lower, upper = certified_sup(f, bound, starts, starts + 24.0, rtol=1e-9, lattice=True)
    assert lower == upper == values.max()


def test_certified_sup_never_drops_a_cell_whose_bound_is_not_a_number() -> None:
    def f(x: np.ndarray) -> np.ndarray:
        return 1.0 + np.exp(-np.square(x - 0.3) * 1e4)

    def bound(a: np.ndarray, b: np.ndarray, _: float) -> np.ndarray:
        return np.where((a <= 0.3) & (b >= 0.3), np.nan, f(a) + 0.001)

    edges = np.linspace(0.0, 1.0, 5)
    _, upper = certified_sup(f, bound, edges[:-1], edges[1:], rtol=1e-6, budget=1000)
    assert not upper < 2.0


# --- bounds ----------------------------------------------------------------------------------


def test_a_bound_is_a_float_that_says_more() -> None:
    bound = Bound(0.25, exact=False, reason="pure loss")
    assert isinstance(bound, float)
    assert bound == 0.25
    assert bound + 1 == 1.25
    assert repr(float(bound)) == "0.25"
    assert (bound.exact, bound.reason) == (False, "pure loss")


@pytest.mark.parametrize("value", [0.0, 0.25, math.inf])
def test_a_bound_survives_pickling_and_copying(value: float) -> None:
    bound = Bound(value, exact=True, reason="closed form")
    twins = [pickle.loads(pickle.dumps(bound, p)) for p in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    for twin in (*twins, copy.copy(bound), copy.deepcopy(bound)):
        assert type(twin) is Bound
        assert (twin, twin.exact, twin.reason) == (value, True, "closed form")
        assert hash(twin) == hash(value)

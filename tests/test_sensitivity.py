"""Limits on how far one unit can move the answer."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import inbounds as ib
from inbounds.sensitivity import largest_norm, resolve

LIMITS = [ib.L1(2.0), ib.L2(2.0), ib.Linf(2.0), ib.L0(2, linf=2.0), ib.PerCoordinate([1.0, 0.0, 2.5])]


@pytest.mark.parametrize("limit", LIMITS, ids=repr)
def test_a_limit_is_a_value_like_any_other(limit: Any) -> None:
    for twin in (
        pickle.loads(pickle.dumps(limit)),
        copy.copy(limit),
        copy.deepcopy(limit),
        eval(repr(limit), dict(vars(ib))),
    ):
        assert twin == limit
        assert hash(twin) == hash(limit)
    for name in ("value", "count", "linf", "values", "something_new"):
        with pytest.raises(AttributeError):
            setattr(limit, name, 3.0)


def test_limits_of_different_kinds_differ() -> None:
    assert len({*LIMITS}) == len(LIMITS)
    assert ib.L1(1.0) != ib.L2(1.0) != ib.Linf(1.0)
    assert ib.L1(1) == ib.L1(1.0)


def test_parts_are_plain_numbers() -> None:
    assert type(ib.L2(np.float32(2)).value) is float
    limit = ib.L0(np.int64(2), linf=3)
    assert (type(limit.count), type(limit.linf)) == (int, float)
    assert ib.PerCoordinate(np.array([1, 0])).values == (1.0, 0.0)


def test_resolve_gives_a_float_on_a_line() -> None:
    assert resolve("x", 2, ib.Interval(0, 10)) == 2.0
    for limit in (ib.L1(2.0), ib.L2(2.0), ib.Linf(2.0)):
        assert resolve("x", limit, ib.Interval(0, 10)) == 2.0
    assert resolve("x", 0.2, ib.Interval(0.1, 0.3)) == 0.3 - 0.1
    assert resolve("x", 5.0, ib.Interval(0, math.inf)) == 5.0


def test_resolve_gives_a_limit_on_a_box() -> None:
    box = ib.Box([0, 1], [10, 9])
    for limit in (ib.L1(2.0), ib.L2(2.0), ib.Linf(2.0), ib.L0(2, linf=2.0)):
        assert resolve("x", limit, box) == limit
    for limits in ([1.0, 2.0], (1, 2), np.array([1.0, 2.0]), ib.PerCoordinate([1.0, 2.0])):
        assert resolve("x", limits, box) == ib.PerCoordinate([1.0, 2.0])
    assert resolve("x", [0.2, 0.3], ib.Box([0.1, 0.7], [0.3, 1.0])) == ib.PerCoordinate([0.3 - 0.1, 0.3])


def brute(limit: Any, width: np.ndarray, order: int, rng: np.random.Generator) -> float:
    """The largest norm found by climbing from random places and from every vertex-like start."""

    def inside(c: np.ndarray) -> np.ndarray:
        c = np.clip(np.abs(c), 0.0, width)
        size = np.sum(c) if isinstance(limit, ib.L1) else np.sqrt(np.sum(c**2))
        return c * min(1.0, limit.value / size) if size else c

    def norm(c: np.ndarray) -> float:
        return float(np.sum(np.abs(c)) if order == 1 else np.sqrt(np.sum(c**2)))

    starts = [inside(rng.exponential(size=width.size) * width) for _ in range(200)]
    for i in range(width.size):  # fill one coordinate after the other, in every rotation of the order of widths
        ordered = np.roll(np.argsort(-width), i)
        c, used = np.zeros(width.size), 0.0
        for j in ordered:
            rest = limit.value - used if isinstance(limit, ib.L1) else math.sqrt(max(limit.value**2 - used, 0.0))
            c[j] = min(width[j], max(rest, 0.0))
            used += c[j] if isinstance(limit, ib.L1) else c[j] ** 2
        starts.append(c)
    best = max(starts, key=norm)
    if isinstance(limit, ib.L2) and order == 1:
        found = minimize(
            lambda c: -np.sum(c),
            best,
            jac=lambda c: -np.ones_like(c),
            bounds=[(0.0, w) for w in width],
            constraints={"type": "ineq", "fun": lambda c: limit.value**2 - np.sum(c**2), "jac": lambda c: -2.0 * c},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 300},
        )
        return max(norm(best), norm(inside(found.x)))
    return norm(best)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("kind", [ib.L1, ib.L2])
@pytest.mark.parametrize("seed", range(12))
def test_largest_norm_is_the_largest(kind: Any, order: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    width = 10.0 ** rng.uniform(-1, 1, size=rng.integers(1, 6))
    most = np.sum(width) if kind is ib.L1 else np.linalg.norm(width)
    limit = kind(float(most * rng.uniform(0.05, 1.0)))
    claimed, found = largest_norm(limit, width, order), brute(limit, width, order, rng)
    assert claimed >= found * (1.0 - 1e-12)
    assert claimed == pytest.approx(found, rel=1e-6)


@pytest.mark.parametrize("order", [1, 2])
def test_largest_norm_of_limits_on_each_coordinate(order: int) -> None:
    width = np.array([3.0, 0.5, 2.0])

    def norm(*c: float) -> float:
        return float(np.linalg.norm(c, ord=order))

    assert largest_norm(ib.Linf(1.0), width, order) == pytest.approx(norm(1, 0.5, 1))
    assert largest_norm(ib.L0(2, linf=2.5), width, order) == pytest.approx(norm(2.5, 2))
    assert largest_norm(ib.PerCoordinate([1, 0.25, 0]), width, order) == pytest.approx(norm(1, 0.25))


@pytest.mark.parametrize("order", [1, 2])
def test_largest_norm_with_infinite_widths(order: int) -> None:
    # an l1 limit can be spent in one unbounded coordinate; equal shares under an l2 limit
    for width in ([math.inf, 5.0], [5.0, math.inf], [math.inf, math.inf]):
        assert largest_norm(ib.L1(10.0), np.array(width), order) == pytest.approx(10.0)
    expected = math.hypot(1, 1) if order == 2 else 2.0
    assert largest_norm(ib.L2(2**0.5), np.array([math.inf, math.inf]), order) == pytest.approx(expected)
    assert largest_norm(ib.Linf(1.0), np.array([math.inf, 5.0]), order) == pytest.approx(expected)


@pytest.mark.parametrize("unit", [1e-59, 1e-30, 1e30, 1e59])
@pytest.mark.parametrize("order", [1, 2])
def test_largest_norm_neither_under_nor_overflows(order: int, unit: float) -> None:
    width = np.array([3.0, 4.0])
    for limit, large in (
        (ib.Linf(4.0), ib.Linf(4.0 * unit)),
        (ib.L2(4.5), ib.L2(4.5 * unit)),
        (ib.L1(6.0), ib.L1(6.0 * unit)),
        (ib.PerCoordinate([3.0, 4.0]), ib.PerCoordinate([3.0 * unit, 4.0 * unit])),
    ):
        scaled = largest_norm(large, width * unit, order)
        assert scaled / unit == pytest.approx(largest_norm(limit, width, order), rel=1e-12)

"""The best mechanism on a grid: against a plain program of another solver, closed forms, and exact fractions."""

from __future__ import annotations

import math
import pickle
import re
import sys
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.optimize import linprog

import inbounds as ib
from inbounds.optimal import Optimal, optimal, optimal_bound
from inbounds.programs import Limits, cover, neighbours, solve
from tests.common import goal

MODULE = sys.modules["inbounds.optimal"]

#: sensitivity, epsilon, least average squared loss on 0..30, known from a plain program
KNOWN = [(1, 0.1, 51.9), (1, 1.0, 1.685), (5, 0.3, 65.7), (5, 1.0, 25.8), (30, 1.0, 67.4), (30, 4.0, 14.9)]


def squared(n: int) -> Any:
    q = np.arange(float(n))
    return np.square(q[:, None] - q)


def windows(n: int, reach: int, epsilon: float) -> Limits:
    return Limits(np.maximum(np.arange(n) - reach, 0), np.full(n, epsilon))


def shares(m: Optimal) -> list[list[Fraction]]:
    return [[Fraction(w, sum(row)) for w in row] for row in m.weights]


def exact_loss(m: Optimal, losses: Any, prior: Any) -> Fraction:
    each = [
        sum(p * Fraction(x) for p, x in zip(row, loss, strict=True))
        for row, loss in zip(shares(m), losses, strict=True)
    ]
    return max(each) if prior is None else sum(Fraction(w) * x for w, x in zip(prior, each, strict=True))


def ratios_hold(m: Optimal, first: Any, epsilon: float) -> bool:
    """In fractions against e^epsilon to 60 digits, on both readings of epsilon."""
    limit = mp.exp(goal(epsilon))
    p = shares(m)
    return all(
        mpf(x.numerator) * y.denominator <= limit * y.numerator * x.denominator
        for low, high in zip(*neighbours(first), strict=True)
        for a, b in ((low, high), (high, low))
        for x, y in zip(p[a], p[b], strict=True)
    )


def plain(losses: Any, prior: Any, reach: int, epsilon: float, delta: float = 0.0, metric: bool = False) -> float:
    """The program written out in full, for HiGHS."""
    n = len(losses)
    worst, E = prior is None, math.exp(epsilon / reach if metric else epsilon)
    near = [(a, b) for a in range(n) for b in range(n) if a != b and abs(a - b) <= (1 if metric else reach)]
    size = n * n + (len(near) * n if delta else 0) + worst
    cost = np.zeros(size)
    upper, limits = [], []
    if worst:
        cost[-1] = 1.0
    else:
        cost[: n * n] = (np.asarray(prior)[:, None] * losses).ravel()
    for k, (a, b) in enumerate(near):
        for x in range(n):
            row = np.zeros(size)
            row[a * n + x], row[b * n + x] = 1.0, -E
            if delta:
                row[n * n + k * n + x] = -1.0
            upper.append(row)
            limits.append(0.0)
        if delta:
            row = np.zeros(size)
            row[n * n + k * n : n * n + (k + 1) * n] = 1.0
            upper.append(row)
            limits.append(delta)
    for q in range(n if worst else 0):
        row = np.zeros(size)
        row[q * n : (q + 1) * n], row[-1] = losses[q], -1.0
        upper.append(row)
        limits.append(0.0)
    sums = np.zeros((n, size))
    for q in range(n):
        sums[q, q * n : (q + 1) * n] = 1.0
    found = linprog(cost, A_ub=np.array(upper), b_ub=limits, A_eq=sums, b_eq=np.ones(n), method="highs")
    assert found.status == 0
    return float(found.fun)


# ---------------------------------------------------------------- known values


@pytest.mark.parametrize(("sensitivity", "epsilon", "least"), KNOWN)
def test_the_known_table(sensitivity: int, epsilon: float, least: float) -> None:
    m = optimal(ib.Integers(0, 30), sensitivity=sensitivity, epsilon=epsilon)
    assert m.value == pytest.approx(least, rel=2e-3)
    assert 0.0 <= m.gap <= 1e-6
    found = float(exact_loss(m, squared(31), [Fraction(1, 31)] * 31))
    assert found == pytest.approx(m.value * (1.0 + m.gap), rel=1e-12)
    assert m.epsilon() <= epsilon
    assert m.epsilon() > epsilon * (1.0 - 1e-7)
    assert ratios_hold(m, m._cells.first, epsilon)
    assert not ratios_hold(m, m._cells.first, epsilon * (1.0 - 1e-6))
    assert ib.audit(m, epsilon=epsilon).verdict == "proven"
    assert ib.audit(m, epsilon=epsilon * (1.0 - 1e-6)).verdict == "refuted"
    assert np.all(np.diff(m._below, axis=0) <= 2.0**-30)  # larger true values give larger answers
    mirrored = np.array(m.weights, dtype=object)
    assert np.array_equal(mirrored, mirrored[::-1, ::-1])


CASES: dict[str, dict[str, Any]] = {
    "average": {},
    "whole range": {"sensitivity": 7, "epsilon": 2.0},
    "small epsilon": {"sensitivity": 2, "epsilon": 0.05},
    "worst": {"criterion": "worst"},
    "worst, far": {"criterion": "worst", "sensitivity": 7},
    "metric": {"guarantee": "metric"},
    "metric, worst": {"guarantee": "metric", "criterion": "worst"},
    "absolute": {"loss": "absolute"},
    "zero-one": {"loss": "zero-one"},
    "given": {"loss": lambda q, x: abs(q - x) ** 1.5 + (0.5 if x > q else 0.0)},
    "prior": {"prior": lambda q: 1.0 + q},
    "points": {"prior": ([0, 3, 4], [1, 2, 1])},
    "delta": {"delta": 0.05},
    "small delta": {"delta": 1e-5},
    "delta, worst": {"delta": 0.02, "criterion": "worst"},
    "delta, prior": {"delta": 0.02, "prior": lambda q: 1.0 + q},
}


@pytest.mark.parametrize("name", CASES)
def test_against_a_plain_program(name: str) -> None:
    asked: dict[str, Any] = {"sensitivity": 3, "epsilon": 0.8} | CASES[name]
    m = optimal(ib.Integers(0, 7), **asked)
    q = np.arange(8.0)
    loss = asked.get("loss", "squared")
    away = np.abs(q[:, None] - q)
    losses = (
        {"squared": away**2, "absolute": away, "zero-one": (away > 0) + 0.0}.get(loss)
        if isinstance(loss, str)
        else None
    )
    if losses is None:
        losses = np.array([[loss(a, b) for b in q] for a in q])
    prior = {"prior": (1 + q) / 36, "delta, prior": (1 + q) / 36, "points": np.array([1, 0, 0, 2, 1, 0, 0, 0]) / 4}.get(
        name, np.full(8, 1 / 8)
    )
    if asked.get("criterion") == "worst":
        prior = None
    least = plain(losses, prior, asked["sensitivity"], asked["epsilon"], asked.get("delta", 0.0), "metric" in name)
    assert m.value == pytest.approx(least, rel=2e-6)
    assert m.value <= least * (1 + 1e-7), "a lower bound"
    assert m.gap <= 1e-6
    exact = exact_loss(m, losses, prior)
    assert float(exact) == pytest.approx(m.value * (1 + m.gap), rel=1e-12)
    if "delta" in name:
        delta = asked["delta"]
        assert m.delta(asked["epsilon"]) <= delta
        e = mp.exp(goal(asked["epsilon"]))
        p = shares(m)
        most = max(
            sum(
                max(mpf(x.numerator) / x.denominator - e * y.numerator / y.denominator, 0)
                for x, y in zip(p[a], p[b], strict=True)
            )
            for low, high in zip(*neighbours(m._cells.first), strict=True)
            for a, b in ((low, high), (high, low))
        )
        assert most <= goal(delta)
        assert most > delta * 0.99
        assert ib.audit(m, epsilon=asked["epsilon"], delta=delta).verdict == "proven"
        assert ib.audit(m, epsilon=asked["epsilon"], delta=delta * 0.9).verdict == "refuted"
    elif "metric" in name:
        chain = np.maximum(np.arange(8) - 1, 0)
        assert ratios_hold(m, chain, asked["epsilon"] / 3 * (1 + 1e-15))
        assert m.steepest() <= asked["epsilon"] / asked["sensitivity"]
        assert m.epsilon() <= asked["epsilon"]
    else:
        assert ratios_hold(m, m._cells.first, asked["epsilon"])


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0, 20.0])
def test_one_bit_is_randomised_response(epsilon: float) -> None:
    m = optimal(ib.Integers(0, 1), sensitivity=1, epsilon=epsilon)
    assert m.value == pytest.approx(1.0 / (1.0 + math.exp(epsilon)), rel=1e-6)


@pytest.mark.parametrize(("count", "epsilon"), [(3, 1.0), (10, 0.5), (31, 4.0)])
def test_zero_one_loss_over_the_whole_range_is_randomised_response(count: int, epsilon: float) -> None:
    m = optimal(ib.Integers(1, count), sensitivity=count - 1, epsilon=epsilon, loss="zero-one")
    assert m.value == pytest.approx((count - 1) / (math.exp(epsilon) + count - 1), rel=1e-6)
    for row, p in enumerate(shares(m)):
        assert float(p[row]) == pytest.approx(math.exp(epsilon) / (math.exp(epsilon) + count - 1), rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("loss", ["squared", "absolute", "zero-one"])
def test_at_sensitivity_one_it_is_the_geometric_mechanism_with_the_best_reading(epsilon: float, loss: str) -> None:
    """Ghosh, Roughgarden and Sundararajan (2012)."""
    n, r = 21, math.exp(-epsilon)
    q = np.arange(float(n))
    away = np.abs(q[:, None] - q)
    clamped = r**away * (1 - r) / (1 + r)
    clamped[:, [0, -1]] = r ** away[:, [0, -1]] / (1 + r)
    losses = {"squared": away**2, "absolute": away, "zero-one": (away > 0) + 0.0}[loss]
    least = np.min(clamped.T @ losses, axis=1).sum() / n
    assert optimal(ib.Integers(0, n - 1), sensitivity=1, epsilon=epsilon, loss=loss).value == pytest.approx(
        least, rel=1e-6
    )


def test_what_must_be_larger() -> None:
    domain, asked = ib.Integers(0, 20), {"sensitivity": 4, "epsilon": 0.7}
    average, worst = optimal(domain, **asked), optimal(domain, **asked, criterion="worst")
    metric, looser = optimal(domain, **asked, guarantee="metric"), optimal(domain, **asked, delta=1e-3)
    losses, flat = squared(21), [Fraction(1, 21)] * 21
    assert average.value < worst.value
    assert exact_loss(average, losses, flat) < exact_loss(worst, losses, flat)
    assert exact_loss(worst, losses, None) < exact_loss(average, losses, None)
    assert metric.value > average.value
    assert looser.value < average.value
    assert optimal(domain, sensitivity=4, epsilon=0.8).value < average.value
    assert optimal(domain, sensitivity=5, epsilon=0.7).value > average.value
    clamped = ib.Laplace.calibrate(domain, **asked, edges="clamp")
    mse = np.mean([float(clamped.at(k).error().rmse) ** 2 for k in range(21)])
    assert mse > average.value


@pytest.mark.parametrize("epsilon", [1e-9, 1e-5, 0.01, 12.0, 30.0])
@pytest.mark.parametrize("sensitivity", [1, 6, 14])
def test_small_and_large_epsilon(epsilon: float, sensitivity: int) -> None:
    m = optimal(ib.Integers(0, 14), sensitivity=sensitivity, epsilon=epsilon)
    assert m.gap <= 1e-6
    assert m.epsilon() <= epsilon
    assert ratios_hold(m, m._cells.first, epsilon)


# ---------------------------------------------------------------- grids


def test_intervals_and_blocks() -> None:
    m = optimal(ib.Interval(0, 1), sensitivity=0.1, epsilon=1.0, cells=40)
    assert m.points.size == 40
    assert m._cells.first.tolist() == [max(0, k - 4) for k in range(40)]
    assert ratios_hold(m, m._cells.first, 1.0)
    fine = optimal(ib.Integers(0, 39), sensitivity=4, epsilon=1.0)
    assert m.value == pytest.approx(fine.value / 1600, rel=1e-5), "the same program in other units"
    assert ib.audit(m, epsilon=1.0).verdict == "proven"
    assert m.release(0.37).value in m.points
    blocks = optimal(ib.Integers(0, 999), sensitivity=100, epsilon=1.0, cells=10)
    assert blocks.points.tolist() == [49 + 100 * k for k in range(10)]
    assert blocks.value == pytest.approx(1e4 * optimal(ib.Integers(0, 9), sensitivity=1, epsilon=1.0).value, rel=1e-6)
    assert optimal(ib.Interval(0, 1), sensitivity=0.1, epsilon=1.0, cells=10).points.size == 10
    uneven = optimal(ib.Integers(0, 10), sensitivity=2, epsilon=1.0, cells=4)  # 3, 3, 3 and 2 numbers
    assert uneven.epsilon() <= 1.0


def test_default_cells() -> None:
    assert optimal(ib.Interval(0, 1), sensitivity=0.5, epsilon=1.0).cells == 60
    assert optimal(ib.Interval(0, 1), sensitivity=0.02, epsilon=1.0, delta=0.01).cells == 30


def test_spans_near_and_far() -> None:
    near = optimal(ib.Spans([(0, 1), (2, 4)]), sensitivity=1.5, epsilon=1.0, cells=24)
    assert near.epsilon() <= 1.0
    assert ib.audit(near, epsilon=1.0).verdict == "proven"
    far = optimal(ib.Spans([(0, 1), (2, 4)]), sensitivity=0.5, epsilon=1.0, cells=24)
    alone = [optimal(ib.Interval(*s), sensitivity=0.5, epsilon=1.0, cells=c) for s, c in (((0, 1), 8), ((2, 4), 16))]
    assert far.value == pytest.approx(alone[0].value / 3 + 2 * alone[1].value / 3, rel=1e-5)
    assert far.epsilon() <= 1.0
    assert np.all(np.array(far.weights, dtype=object)[:8, 8:] < sum(far.weights[0]) // 10**6)
    worst = optimal(ib.Spans([(0, 1), (2, 4)]), sensitivity=0.5, epsilon=1.0, cells=24, criterion="worst")
    assert worst.gap <= 1e-6
    lonely = optimal(ib.Spans([(0, 1), (5, 6)]), sensitivity=0.5, epsilon=1.0, cells=2)
    assert lonely.value == 0.0
    assert lonely.gap == 0.0
    assert lonely.at(5.5).pmf(lonely.points[1]) == 1.0


def test_a_prior_of_one_point_needs_one_answer() -> None:
    m = optimal(ib.Integers(0, 5), sensitivity=1, epsilon=0.5, prior=([3], [1]))
    assert m.value == m.gap == m.epsilon() == 0.0
    assert m.release(0).value == 3


def test_a_density_is_integrated_over_the_cells() -> None:
    m = optimal(ib.Interval(0, 2), sensitivity=0.5, epsilon=1.0, cells=8, prior=lambda q: q**3)
    q = (np.arange(8) + 0.5) / 4
    mass = np.diff(np.linspace(0, 2, 9) ** 4) / 16
    found = solve(np.square(q[:, None] - q), mass, windows(8, 2, 1.0))
    assert m.value == pytest.approx(found.bound, rel=1e-5)


def test_a_constant_density_is_the_flat_prior() -> None:
    task: dict[str, Any] = {"sensitivity": 0.1, "epsilon": 1.0, "cells": 10}
    flat, constant = (optimal(ib.Interval(0, 1), **task, prior=prior) for prior in (None, lambda q: 1.0))
    assert constant.value == pytest.approx(flat.value, rel=1e-6)


# ---------------------------------------------------------------- the solver


def test_the_cheapest_column_is_found() -> None:
    """Against all columns whose logarithms are whole gaps, and against a program over all columns."""
    rng = np.random.default_rng(7)
    for n, reach in ((4, 1), (5, 2), (6, 3), (6, 5), (5, 4)):
        limits = windows(n, reach, 0.7)
        cost, steps = rng.normal(size=(6, n)), -(-(n - 1) // reach)
        value, v = limits.least(cost)
        levels = [
            k
            for k in product(range(-steps, steps + 1), repeat=n)
            if k[0] == 0 and all(abs(k[a] - k[b]) <= 1 for a, b in zip(*neighbours(limits.first), strict=True))
        ]
        columns = np.exp(0.7 * np.array(levels))
        assert value == pytest.approx(np.min(cost @ columns.T, axis=1), rel=1e-12)
        assert np.sum(cost * v, axis=1) / v[:, 0] == pytest.approx(value, rel=1e-9)
        low, high = neighbours(limits.first)
        rows = [
            np.eye(n)[a] - math.exp(0.7) * np.eye(n)[b]
            for i, j in zip(low, high, strict=True)
            for a, b in ((i, j), (j, i))
        ]
        for c, least in zip(cost, value, strict=True):
            found = linprog(
                c, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=np.eye(n)[:1], b_eq=[1.0], method="highs"
            )
            assert found.fun == pytest.approx(least, rel=1e-6, abs=1e-9)


def test_gaps_of_their_own_between_rows() -> None:
    gap = np.array([0.0, 0.3, 1.1, 0.6])
    limits = Limits(np.array([0, 0, 1, 2]), gap)
    cost = np.random.default_rng(3).normal(size=(8, 4))
    signs = [
        np.cumsum([0, *(s * g for s, g in zip(choice, gap[1:], strict=True))])
        for choice in product((-1, 0, 1), repeat=3)
    ]
    assert limits.least(cost)[0] == pytest.approx(np.min(cost @ np.exp(signs).T, axis=1), rel=1e-12)


def test_a_guess_is_lowered_until_it_is_proven() -> None:
    limits = windows(12, 3, 0.5)
    cost = squared(12) / 12
    y = limits.lowered(np.full(12, 5.0), cost)
    assert y is not None
    rng = np.random.default_rng(1)
    assert np.all(limits.least(cost - y)[0] >= 0.0)
    assert np.any(limits.least(cost - y * (1 + 1e-6))[0] < 0.0), "and hardly further"
    for _ in range(200):
        k = np.clip(np.cumsum(rng.integers(-1, 2, 12)) // 4, -1, 1)
        v = np.exp(0.5 * k)
        if np.all([abs(k[a] - k[b]) <= 1 for a, b in zip(*neighbours(limits.first), strict=True)]):
            assert np.all(cost @ v >= y @ v)


def test_what_is_missing_has_a_price() -> None:
    limits, cost = windows(10, 2, 1.0), squared(10)
    found = cover(cost, 1e9, limits, 1e-7)
    full = solve(cost, np.full(10, 0.1), limits)
    assert found.sum() == pytest.approx(10 * full.bound, rel=1e-6)
    cheap = cover(cost, 0.5, limits, 1e-7)
    assert np.all(cheap <= 0.5)
    assert cheap.sum() < found.sum()


def test_numbers_that_give_out_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def poor(*args: Any, **more: Any) -> Any:
        found = solve(*args, **more)
        return type(found)(found.table, found.loss, found.bound * 0.99)

    monkeypatch.setattr(MODULE, "solve", poor)
    with pytest.raises(ib.UnreachableTarget, match=r"could not be solved to 1e-06 \(reached 1.0e-02\)"):
        optimal(ib.Integers(0, 5), sensitivity=1, epsilon=1.0)


@pytest.mark.parametrize("delta", [1e-12, 3e-12, 1e-9, 0.1])
def test_some_delta_is_left_in_every_round(delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program without delta would prove its bound for pure privacy only."""
    given: list[float] = []

    def told(*arguments: Any, **more: Any) -> Any:
        given.append(more["delta"])
        return solve(*arguments, **more)

    monkeypatch.setattr(MODULE, "solve", told)
    monkeypatch.setattr(MODULE._Problem, "_holds", lambda *_: False)
    with pytest.raises(ib.UnreachableTarget):
        optimal(ib.Integers(0, 3), sensitivity=1, epsilon=1.0, delta=delta)
    assert len(given) == 4
    assert all(0.0 < less < more for more, less in pairwise(given))
    assert delta / 2.0 <= given[0] < delta


def test_a_table_that_breaks_the_ratios_is_repaired_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def bent(*args: Any, **more: Any) -> Any:
        found = solve(*args, **more)
        table = found.table.copy()
        table[2, 1] *= 1.0 + 1e-9
        return type(found)(table / table.sum(axis=1, keepdims=True), found.loss, found.bound)

    monkeypatch.setattr(MODULE, "solve", bent)
    m = optimal(ib.Integers(0, 5), sensitivity=1, epsilon=1.0)
    assert ratios_hold(m, m._cells.first, 1.0)
    assert m.epsilon() <= 1.0


# ---------------------------------------------------------------- the bound for large ranges


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize(
    ("last", "sensitivity", "epsilon"), [(20, 1, 1.0), (30, 5, 0.3), (30, 30, 4.0), (60, 7, 1.0), (80, 1, 0.2)]
)
def test_the_bound_is_below_the_program(last: int, sensitivity: int, epsilon: float, loss: str) -> None:
    domain = ib.Integers(0, last)
    bound = optimal_bound(domain, sensitivity=sensitivity, epsilon=epsilon, loss=loss)
    best = optimal(domain, sensitivity=sensitivity, epsilon=epsilon, loss=loss)
    assert 0.9 * best.value < bound <= best.value


@pytest.mark.parametrize(
    ("ratio", "epsilon"),
    [
        (1e3, 0.05),
        pytest.param(1e4, 0.1, marks=pytest.mark.long),
        pytest.param(1e4, 1.0, marks=pytest.mark.long),
        pytest.param(1e4, 4.0, marks=pytest.mark.long),
    ],
)
def test_far_from_the_ends_nothing_beats_the_staircase(ratio: float, epsilon: float) -> None:
    """Geng and Viswanath (2016), with what can be gained at the ends."""
    b = math.exp(-epsilon)
    staircase = (2 ** (-2 / 3) * b ** (2 / 3) * (1 + b) ** (2 / 3) + b) / (1 - b) ** 2
    bound = optimal_bound(ib.Interval(0, ratio), sensitivity=1, epsilon=epsilon)
    assert (0.85 if ratio * epsilon < 100 else 0.97) * staircase < bound <= staircase
    scaled = optimal_bound(ib.Interval(-3, ratio / 8 - 3), sensitivity=0.125, epsilon=epsilon)
    assert scaled == pytest.approx(bound / 64, rel=1e-3)


def test_the_bound_holds_for_answers_that_are_not_whole() -> None:
    domain = ib.Integers(0, 30)
    best = ib.Laplace.calibrate(domain, sensitivity=1, epsilon=1.0, edges="ignore").denoised()
    mse = np.mean(np.square(best.at(np.arange(31)).error().rmse))
    assert optimal_bound(domain, sensitivity=1, epsilon=1.0) <= mse < optimal(domain, sensitivity=1, epsilon=1.0).value


def test_the_bound_on_spans_and_short_intervals() -> None:
    spans = optimal_bound(ib.Spans([(0, 10), (20, 50)]), sensitivity=8, epsilon=1.0)
    parts = [optimal_bound(ib.Interval(0, w), sensitivity=8, epsilon=1.0) for w in (10, 30)]
    assert spans == pytest.approx(parts[0] / 4 + 3 * parts[1] / 4, rel=1e-6)
    whole = optimal_bound(ib.Interval(0, 1), sensitivity=1, epsilon=1.0)
    assert 0.05 < whole <= optimal(ib.Interval(0, 1), sensitivity=1, epsilon=1.0).value + 1 / (12 * 60**2)
    assert optimal_bound(ib.Integers(0, 1), sensitivity=1, epsilon=1.0) <= 1 / (1 + math.e)
    assert optimal_bound(ib.Interval(0, 1), sensitivity=1, epsilon=30.0) >= 0.0


# ---------------------------------------------------------------- values and bad input


def test_frozen_equal_and_picklable() -> None:
    m = optimal(ib.Integers(0, 5), sensitivity=1, epsilon=1.0, delta=0.01)
    again = pickle.loads(pickle.dumps(m))
    assert again == m
    assert isinstance(again, Optimal)
    assert (again.value, again.gap, again.target) == (m.value, m.gap, (1.0, 0.01))
    assert repr(m).startswith(
        "<Optimal: 6 cells of Integers(0, 5), sensitivity=1.0, epsilon=1.0, delta=0.01; average squared"
    )
    assert "metric" in repr(optimal(ib.Integers(0, 5), sensitivity=1, epsilon=1.0, guarantee="metric"))
    assert optimal(ib.Integers(0, 5), sensitivity=1, epsilon=1.0, loss=lambda q, x: abs(q - x)).loss == "given"


def test_progress(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(MODULE, "_EVERY", 0.0)
    lines: list[str] = []
    optimal(ib.Integers(0, 9), sensitivity=2, epsilon=1.0, progress=lines.append)
    assert len(lines) > 3
    assert all(
        re.fullmatch(r"optimal: 10 cells, \d+ s, (within \S+ of the least loss|no bound yet)", line) for line in lines
    )
    assert "within" in lines[-1]
    optimal(ib.Integers(0, 9), sensitivity=2, epsilon=1.0, progress=True)
    assert capsys.readouterr().err.count("optimal: 10 cells") > 3
    for quiet in (False, None):  # the error stream of a test is no terminal
        optimal(ib.Integers(0, 9), sensitivity=2, epsilon=1.0, progress=quiet)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("changed", "kind", "message"),
    [
        ({"epsilon": 0.0}, ib.ParameterError, "epsilon must be a finite number in [1e-09, 30.0]"),
        ({"epsilon": math.nan}, ib.ParameterError, "epsilon must be"),
        ({"epsilon": 31.0}, ib.ParameterError, "epsilon must be"),
        ({"epsilon": "1"}, ib.ParameterTypeError, "epsilon must be"),
        ({"delta": 1.0}, ib.ParameterError, "delta must be"),
        ({"delta": 1e-14}, ib.ParameterError, "delta must be 0 or at least 1e-12"),
        ({"sensitivity": 0.5}, ib.ParameterError, "sensitivity must be a whole number"),
        ({"sensitivity": 99}, ib.ParameterError, "sensitivity must be"),
        ({"loss": "cubic"}, ib.ParameterError, "loss must be one of 'squared', 'absolute', 'zero-one'"),
        ({"loss": 3}, ib.ParameterTypeError, "or a function of a true value and an answer"),
        ({"loss": lambda q, x: x - q}, ib.ParameterError, "loss(true, answer) must be a finite number in [0.0, inf)"),
        ({"loss": lambda q, x: math.nan}, ib.ParameterError, "loss(true, answer) must be"),
        ({"loss": lambda q, x: 0.0}, ib.ParameterError, "loss must be positive somewhere"),
        ({"criterion": "best"}, ib.ParameterError, "criterion must be one of 'average', 'worst'"),
        ({"criterion": "worst", "prior": "flat"}, ib.ParameterError, "prior must be None for the worst case"),
        ({"guarantee": "local"}, ib.ParameterError, "guarantee must be one of"),
        ({"guarantee": "metric", "delta": 0.1}, ib.ParameterError, "guarantee must be 'adjacent' here"),
        ({"guarantee": "metric", "cells": 4}, ib.ParameterError, "Rounding to a cell moves near true values apart"),
        ({"guarantee": "metric", "domain": ib.Interval(0, 9)}, ib.ParameterError, "guarantee must be 'adjacent' here"),
        ({"cells": 1}, ib.ParameterError, "cells must be"),
        ({"cells": 500}, ib.ParameterError, "cells must be a whole number in [2, 200]"),
        ({"cells": 61, "delta": 0.1}, ib.ParameterError, "cells must be a whole number in [2, 60]"),
        ({"cells": 2.5}, ib.ParameterError, "cells must be"),
        ({"domain": ib.Integers(0, 200)}, ib.ParameterError, "A program of 201 cells is too large. Pass cells=200"),
        ({"domain": ib.Integers(0, 60), "delta": 0.1}, ib.ParameterError, "Pass cells=60"),
        ({"domain": ib.Interval(0, math.inf)}, ib.ParameterError, "domain must be bounded"),
        ({"domain": ib.Box([0], [1])}, ib.ParameterError, "domain must be an Interval, Spans or Integers"),
        ({"domain": 7}, ib.ParameterTypeError, "domain must be"),
        ({"progress": 1}, ib.ParameterTypeError, "progress must be True, False or a callable"),
        ({"prior": ([99], [1])}, ib.ParameterError, "points must be in"),
    ],
)
def test_bad_input(changed: dict[str, Any], kind: type[Exception], message: str) -> None:
    asked: dict[str, Any] = {"domain": ib.Integers(0, 9), "sensitivity": 1, "epsilon": 1.0} | changed
    with pytest.raises(kind, match=re.escape(message)):
        optimal(asked.pop("domain"), **asked)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": 0.0}, "optimal_bound: epsilon must be"),
        ({"loss": "zero-one"}, "optimal_bound: loss must be one of 'squared', 'absolute'"),
        ({"domain": ib.Interval(0, math.inf)}, "optimal_bound: domain must be bounded"),
        ({"sensitivity": math.nan}, "optimal_bound: sensitivity must be"),
    ],
)
def test_bad_input_of_the_bound(changed: dict[str, Any], message: str) -> None:
    asked: dict[str, Any] = {"domain": ib.Integers(0, 9), "sensitivity": 1, "epsilon": 1.0} | changed
    with pytest.raises(ib.ParameterError, match=re.escape(message)):
        optimal_bound(asked.pop("domain"), **asked)


# ---------------------------------------------------------------- large ones


@pytest.mark.long
@pytest.mark.parametrize("criterion", ["average", "worst"])
@pytest.mark.parametrize("count", [60, 100])
@pytest.mark.parametrize("share", [0, 0.05, 0.5, 1])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_many_cells(count: int, share: float, epsilon: float, criterion: str) -> None:
    sensitivity = max(1, round(share * (count - 1)))
    m = optimal(ib.Integers(0, count - 1), sensitivity=sensitivity, epsilon=epsilon, criterion=criterion)
    assert m.gap <= 1e-6
    assert m.epsilon() <= epsilon
    assert ib.audit(m, epsilon=epsilon).verdict == "proven"


@pytest.mark.long
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-2])
@pytest.mark.parametrize("sensitivity", [1, 5, 30])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_thirty_cells_with_delta(delta: float, sensitivity: int, epsilon: float) -> None:
    domain = ib.Integers(0, 30)
    m = optimal(domain, sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    assert m.gap <= 1e-6
    assert m.delta(epsilon) <= delta
    assert m.value <= optimal(domain, sensitivity=sensitivity, epsilon=epsilon).value * (1 + 1e-7)
    assert ib.audit(m, epsilon=epsilon, delta=delta).verdict == "proven"


@pytest.mark.long
def test_two_hundred_cells() -> None:
    m = optimal(ib.Integers(0, 199), sensitivity=20, epsilon=1.0)
    assert m.gap <= 1e-6
    assert m.epsilon() <= 1.0

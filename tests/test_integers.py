"""Pure epsilon on integer ranges: against enumeration of every pair and output; long ranges by their wall pair."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from mpmath import mp, mpf

import inbounds as ib
import inbounds.mechanism
from tests import reference as ref
from tests.common import MECHANISMS, broken, goal

FAMILIES = tuple(MECHANISMS)
INF = float("inf")
NEAR = mpf(1) - mpf(2) ** -30  # just under one part in 1e9


def scale_of(family: str, lower: float, upper: float, sensitivity: float, epsilon: float, **more: Any) -> float:
    domain = ib.Integers(lower, upper)
    return MECHANISMS[family].calibrate(domain, sensitivity=sensitivity, epsilon=epsilon, **more).scale


def wall_loss(family: str, scale: Any, lower: float, upper: float, sensitivity: int) -> Any:
    """Loss of the pair (end, end +- sensitivity), both orders; ``test_wall_pair_is_the_worst`` confirms it."""
    spans = [(lower, upper)]
    if math.isinf(lower) and math.isinf(upper):
        q, q2 = 0, sensitivity
    elif math.isinf(lower):
        q, q2 = int(upper) - sensitivity, int(upper)
    else:
        q, q2 = int(lower), int(lower) + sensitivity
    return max(
        ref.pair_loss(family, scale, spans, q, q2, lattice=True),
        ref.pair_loss(family, scale, spans, q2, q, lattice=True),
    )


def check(family: str, lower: float, upper: float, sensitivity: int, epsilon: float, exhaustive: bool = False) -> None:
    """Loss at the float returned <= epsilon without tolerance, and > epsilon at a scale 1e-9 smaller."""
    scale = scale_of(family, lower, upper, sensitivity, epsilon)
    loss = ref.pure_loss_integers if exhaustive else wall_loss
    target = goal(epsilon)
    setting = (family, lower, upper, sensitivity, epsilon, scale)
    assert loss(family, scale, lower, upper, sensitivity) <= target, setting
    assert loss(family, mpf(scale) * NEAR, lower, upper, sensitivity) > target, setting


# --- small ranges, everything enumerated -------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 12])
@pytest.mark.parametrize("family", FAMILIES)
def test_enumeration(family: str, width: int) -> None:
    for sensitivity in range(1, width + 1):
        for epsilon in (0.01, 0.1, 1.0, 7.3):
            check(family, -3, width - 3, sensitivity, epsilon, exhaustive=True)


@pytest.mark.parametrize("family", FAMILIES)
def test_generated_small_ranges(family: str) -> None:
    rng = random.Random(f"small {family}")
    for _ in range(120):
        width = rng.randint(1, 12)
        lower = rng.choice((0, 1, -1)) * int(10 ** rng.uniform(0, 15))
        epsilon = 10 ** rng.uniform(-9, math.log10(50))
        check(family, lower, lower + width, rng.randint(1, width), epsilon, exhaustive=True)


@pytest.mark.parametrize("family", FAMILIES)
def test_wall_pair_is_the_worst(family: str) -> None:
    rng = random.Random(9)
    for _ in range(100):
        width = rng.randint(1, 10)
        scale, change = 10 ** rng.uniform(-0.7, 2), rng.randint(1, width)
        exhaustive = ref.pure_loss_integers(family, scale, 0, width, change)
        assert abs(wall_loss(family, scale, 0, width, change) - exhaustive) <= mpf(10) ** -40 * exhaustive


# --- long ranges -------------------------------------------------------------------------------


def drawn(rng: random.Random, family: str) -> tuple[float, float, int, float]:
    digits = 15 if family == "laplace" else 3  # the reference adds the Gaussian's masses one by one
    width = int(10 ** rng.uniform(0, digits))
    sensitivity = max(1, int(width * rng.choice((1.0, 10 ** rng.uniform(-digits, 0), 10 ** rng.uniform(-2, 0)))))
    lower = rng.choice((0, 1, -1)) * int(10 ** rng.uniform(0, 15.5))
    return lower, lower + width, sensitivity, 10 ** rng.uniform(-9, math.log10(50))


def check_drawn(family: str, seed: int, count: int) -> None:
    rng = random.Random(f"{family} {seed}")
    for _ in range(count):
        check(family, *drawn(rng, family))


@pytest.mark.parametrize(("family", "count"), [("laplace", 1500), ("gaussian", 150)])
def test_generated_ranges(family: str, count: int) -> None:
    check_drawn(family, 1, count)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("family", "count"), [("laplace", 1500), ("gaussian", 150)])
def test_generated_ranges_many(family: str, count: int, seed: int) -> None:
    check_drawn(family, 100 + seed, count)


@pytest.mark.parametrize("sigma", [60.0, 63.9, 64.0, 64.1, 70.0])
def test_gaussian_where_sums_become_integrals(sigma: float) -> None:
    for width in (40, 200, 1000):
        for sensitivity in (1, width // 3, width):
            loss = wall_loss("gaussian", sigma, 0, width, sensitivity)
            mechanism = ib.Gaussian(ib.Integers(0, width), scale=sigma, sensitivity=sensitivity)
            assert loss <= mpf(mechanism.epsilon()) <= loss * (1 + mpf(10) ** -9)
            check("gaussian", 0, width, sensitivity, float(loss))


@pytest.mark.parametrize("family", FAMILIES)
def test_largest_range(family: str) -> None:
    """Two whole numbers 2^53 apart are far beyond any effect of the lattice: R / epsilon, R / sqrt(2 epsilon)."""
    for epsilon in (0.1, 10.0):
        scale = scale_of(family, 0, 2**53, 2**53, epsilon)
        exact = 2**53 / goal(epsilon) if family == "laplace" else 2**53 / mp.sqrt(2 * goal(epsilon))
        assert exact <= scale <= exact / NEAR


# --- half-lines and the line (Laplace only) ----------------------------------------------------


def test_half_lines() -> None:
    rng = random.Random(11)
    for _ in range(300):
        end = rng.choice((0, 1, -1)) * int(10 ** rng.uniform(0, 15))
        lower, upper = rng.choice(((end, INF), (-INF, end)))
        check("laplace", lower, upper, int(10 ** rng.uniform(0, 9)), 10 ** rng.uniform(-9, math.log10(50)))


def test_half_line_closed_form() -> None:
    """e^epsilon = r^-D + r^(1-D) - r with r = e^(-1/b)."""
    for sensitivity in (1, 2, 7):
        for epsilon in (0.01, 0.1, 1.0, 5.0):
            r = mp.exp(-1 / mpf(scale_of("laplace", 0, INF, sensitivity, epsilon)))
            reached = r**-sensitivity + r ** (1 - sensitivity) - r
            assert mp.exp(goal(epsilon) * (1 - mpf(10) ** -9)) < reached <= mp.exp(goal(epsilon))


def test_line() -> None:
    for sensitivity in (1, 3, 1000):
        for epsilon in (1e-9, 0.1, 0.3, 50.0):
            scale = scale_of("laplace", -INF, INF, sensitivity, epsilon)
            assert sensitivity / goal(epsilon) <= scale <= sensitivity / goal(epsilon) / NEAR


# --- the whole range as sensitivity ------------------------------------------------------------


def check_whole_range(family: str, width: int, epsilon: float) -> None:
    scale = scale_of(family, 0, width, width, epsilon)
    exact = width / goal(epsilon) if family == "laplace" else width / mp.sqrt(2 * goal(epsilon))
    assert exact <= scale <= exact / NEAR, (family, width, epsilon, scale)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 1e-4, 0.01, 0.1, 1.0, 10.0, 50.0])
def test_whole_range(family: str, epsilon: float) -> None:
    for width in (1, 2, 10, 1000, 10**6):
        check_whole_range(family, width, epsilon)


# --- the metric guarantee ----------------------------------------------------------------------


def steepest(family: str, scale: Any, lower: int, upper: int) -> Any:
    """The largest loss per unit of distance over every ordered pair."""
    points = range(lower, upper + 1)
    spans = [(lower, upper)]
    return max(
        ref.pair_loss(family, scale, spans, q, q2, lattice=True) / abs(q - q2)
        for q in points
        for q2 in points
        if q != q2
    )


def check_metric(family: str, lower: int, upper: int, sensitivity: int, epsilon: float) -> None:
    scale = scale_of(family, lower, upper, sensitivity, epsilon, guarantee="metric")
    rate = goal(epsilon) / sensitivity
    assert steepest(family, scale, lower, upper) <= rate
    assert steepest(family, mpf(scale) * (1 - mpf(10) ** -8), lower, upper) > rate


@pytest.mark.parametrize("family", FAMILIES)
def test_metric_against_every_pair(family: str) -> None:
    rng = random.Random(12)
    for _ in range(40):
        width = rng.randint(1, 8)
        lower = rng.randint(-100, 100)
        check_metric(family, lower, lower + width, rng.randint(1, width), 10 ** rng.uniform(-4, 1))


@pytest.mark.parametrize("family", FAMILIES)
def test_metric_is_adjacent_at_distance_one(family: str) -> None:
    for width, sensitivity, epsilon in ((10, 5, 1.0), (40, 8, 0.5), (3, 2, 4.0)):
        metric = scale_of(family, 0, width, sensitivity, epsilon, guarantee="metric")
        assert metric == pytest.approx(scale_of(family, 0, width, 1, epsilon / sensitivity), rel=1e-9)
        assert metric >= scale_of(family, 0, width, sensitivity, epsilon)


# --- targets that cannot be met ----------------------------------------------------------------


@pytest.mark.parametrize(("lower", "upper"), [(0, INF), (-INF, 0), (-INF, INF)])
def test_no_pure_epsilon_for_unbounded_gaussian_outputs(lower: float, upper: float) -> None:
    with pytest.raises(ib.UnreachableTarget, match=r"no pure epsilon.*delta.*rho, rdp.*Laplace.*bounded"):
        scale_of("gaussian", lower, upper, 1, 1.0)


@pytest.mark.parametrize("guarantee", ["adjacent", "metric"])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-14, 1e-16, 1e-30, 1e-300])
@pytest.mark.parametrize("family", FAMILIES)
def test_absurdly_small_epsilon_is_met_or_refused(family: str, epsilon: float, guarantee: str) -> None:
    try:
        scale = scale_of(family, 0, 10, 1, epsilon, guarantee=guarantee)
    except ib.InboundsError:
        return
    with mp.workdps(400):
        spans = [(0, 10)]
        loss = max(ref.pair_loss(family, scale, spans, a, 1 - a, lattice=True, dps=350) for a in (0, 1))
        assert loss <= goal(epsilon)


# --- the checks above can fail -----------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.99, 1 - 5e-10, 1 + 2e-9, 1.01])
@pytest.mark.parametrize("family", FAMILIES)
def test_wrong_scales_are_rejected(monkeypatch: pytest.MonkeyPatch, family: str, factor: float) -> None:
    broken(monkeypatch, factor)
    for width, sensitivity, epsilon in ((1, 1, 0.1), (6, 2, 1.0), (6, 6, 5.0), (11, 1, 0.5)):
        with pytest.raises(AssertionError):
            check(family, 0, width, sensitivity, epsilon, exhaustive=True)
        with pytest.raises(AssertionError):
            check(family, 5, 5 + width, sensitivity, epsilon)
    with pytest.raises(AssertionError):
        check_whole_range(family, 10, 1.0)
    if abs(factor - 1) > 1e-8:
        with pytest.raises(AssertionError):
            check_metric(family, 0, 5, 2, 1.0)

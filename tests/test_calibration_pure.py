"""Pure epsilon on intervals and half-lines: the scale returned is safe at 50 digits, and the smallest to 1e-9.

Safety is checked without any tolerance, at the float returned, for the float epsilon and for the decimal it prints as.
"""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import inbounds as ib
import inbounds.mechanism
from tests import reference as ref
from tests.common import MECHANISMS, broken, goal

FAMILIES = tuple(MECHANISMS)
INF = float("inf")
NEAR = mpf(1) - mpf(2) ** -30  # just under one part in 1e9


def scale_of(family: str, domain: Any, sensitivity: float, epsilon: float, **more: Any) -> float:
    return MECHANISMS[family].calibrate(domain, sensitivity=sensitivity, epsilon=epsilon, **more).scale


def check(family: str, lower: float, upper: float, sensitivity: float, epsilon: float) -> None:
    """Calibrate, then: loss at the float returned <= epsilon exactly, loss at a scale 1e-9 smaller > epsilon."""
    setting = (family, lower, upper, sensitivity, epsilon)
    scale = scale_of(family, ib.Interval(lower, upper), sensitivity, epsilon)
    assert 0 < scale < INF, setting
    target = goal(float(epsilon))
    assert ref.pure_loss_interval(family, scale, lower, upper, sensitivity) <= target, (*setting, scale)
    assert ref.pure_loss_interval(family, mpf(scale) * NEAR, lower, upper, sensitivity) > target, (*setting, scale)


def drawn(rng: random.Random) -> tuple[float, float, float, float]:
    """(lower, upper, sensitivity, epsilon) over the whole region that is promised."""
    epsilon = 10 ** rng.uniform(-9, math.log10(50))
    if rng.random() < 0.4:
        epsilon = float(f"{epsilon:.{rng.randint(1, 4)}g}")  # as people write it
    width = 10 ** rng.uniform(-6, 6)
    lower = rng.choice((0.0, 0.0, 1.0, -1.0)) * width * 10 ** rng.uniform(-1, 9)
    upper = lower + width
    width = upper - lower  # what is left of it at that offset
    share = rng.choice((1.0, 0.5, 10 ** rng.uniform(-9, 0), 10 ** rng.uniform(-9, 0), 1 - 10 ** rng.uniform(-9, 0)))
    return lower, upper, min(width * share, width), epsilon


# --- generated settings ------------------------------------------------------------------------


def check_drawn(family: str, seed: int, count: int) -> None:
    rng = random.Random(f"{family} {seed}")
    for _ in range(count):
        check(family, *drawn(rng))


@pytest.mark.parametrize("family", FAMILIES)
def test_generated_intervals(family: str) -> None:
    check_drawn(family, 1, 1500)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("family", FAMILIES)
def test_generated_intervals_many(family: str, seed: int) -> None:
    check_drawn(family, 100 + seed, 4000)


@settings(max_examples=400)
@given(
    family=st.sampled_from(FAMILIES),
    lower=st.floats(-1e9, 1e9),
    width=st.floats(1.0, 1e9),
    share=st.floats(1e-9, 1.0),
    epsilon=st.floats(1e-9, 50.0),
)
def test_any_interval(family: str, lower: float, width: float, share: float, epsilon: float) -> None:
    upper = lower + width
    with mp.workdps(60):
        check(family, lower, upper, min(share * (upper - lower), upper - lower), epsilon)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-8, 1e-7, 1e-3, 0.1, 0.3, 0.7, 1, 1.1, 10, 50, 500])
@pytest.mark.parametrize(
    ("lower", "upper", "sensitivity"),
    [
        (0, 1, 1),
        (0, 1, 1e-9),
        (0.1, 0.7, 0.6),  # equal as decimals, an ulp apart as floats
        (0.1, 0.7, 0.1),
        (0.1, 0.3, 0.2),
        (1e9, 1e9 + 1, 0.25),
        (-1e15, -1e15 + 1, 1),
        (-1 / 3, 1e8 / 3, 1 / 7),  # upper - lower is not a float
        (-1e-17, 1.0, 0.5),
        (0, 120, 0.5),
    ],
)
@pytest.mark.parametrize("family", FAMILIES)
def test_chosen_intervals(family: str, lower: float, upper: float, sensitivity: float, epsilon: float) -> None:
    check(family, lower, upper, sensitivity, epsilon)


@pytest.mark.parametrize("family", FAMILIES)
def test_position_does_not_matter(family: str) -> None:
    at_zero = scale_of(family, ib.Interval(0, 8), 1.5, 0.3)
    assert scale_of(family, ib.Interval(2**33, 2**33 + 8), 1.5, 0.3) == at_zero
    assert scale_of(family, ib.Interval(-8, 0), 1.5, 0.3) == at_zero


@pytest.mark.parametrize("family", FAMILIES)
def test_tiny_epsilon_far_below_one_ulp_of_one(family: str) -> None:
    for epsilon in (1e-12, 1e-14, 1e-15):
        check(family, 0, 10, 1, epsilon)


@pytest.mark.parametrize("family", FAMILIES)
def test_reported_epsilon_lies_between_truth_and_target(family: str) -> None:
    rng = random.Random(5)
    for _ in range(150):
        lower, upper, sensitivity, epsilon = drawn(rng)
        mechanism = MECHANISMS[family].calibrate(ib.Interval(lower, upper), sensitivity=sensitivity, epsilon=epsilon)
        truth = ref.pure_loss_interval(family, mechanism.scale, lower, upper, sensitivity)
        assert truth <= mpf(mechanism.epsilon()) <= goal(epsilon)
        assert mechanism.epsilon().exact


# --- closed forms ------------------------------------------------------------------------------


def half_line_scale(sensitivity: float, epsilon: float) -> Any:
    return mpf(sensitivity) / mp.log1p(mp.expm1(goal(epsilon)) / 2)


def check_half_line(lower: float, upper: float, sensitivity: float, epsilon: float) -> None:
    scale = scale_of("laplace", ib.Interval(lower, upper), sensitivity, epsilon)
    exact = half_line_scale(sensitivity, epsilon)
    assert exact <= scale <= exact / NEAR
    assert ref.pure_loss_interval("laplace", scale, lower, upper, sensitivity) <= goal(epsilon)


def test_half_lines() -> None:
    rng = random.Random(2)
    for _ in range(400):
        epsilon, sensitivity = 10 ** rng.uniform(-9, math.log10(50)), 10 ** rng.uniform(-9, 9)
        end = rng.choice((0.0, 1.0, -1.0)) * 10 ** rng.uniform(-9, 18)
        lower, upper = rng.choice(((end, INF), (-INF, end)))
        check_half_line(lower, upper, sensitivity, epsilon)


def test_half_line_is_the_limit_of_long_intervals() -> None:
    long = scale_of("laplace", ib.Interval(0, 1e9), 1, 0.5)
    assert long == pytest.approx(scale_of("laplace", ib.Interval(0, INF), 1, 0.5), rel=1e-9)


def test_line() -> None:
    rng = random.Random(3)
    for _ in range(100):
        epsilon, sensitivity = 10 ** rng.uniform(-9, math.log10(50)), 10 ** rng.uniform(-9, 9)
        scale = scale_of("laplace", ib.Interval(-INF, INF), sensitivity, epsilon)
        exact = mpf(sensitivity) / goal(epsilon)
        assert exact <= scale <= exact / NEAR


def check_whole_range(family: str, lower: float, upper: float, epsilon: float) -> None:
    """Sensitivity equal to the width: b = R / epsilon, sigma^2 = R^2 / (2 epsilon)."""
    scale = scale_of(family, ib.Interval(lower, upper), upper - lower, epsilon)
    width = mpf(upper) - mpf(lower)
    exact = width / goal(epsilon) if family == "laplace" else width / mp.sqrt(2 * goal(epsilon))
    assert exact <= scale <= exact / NEAR


@pytest.mark.parametrize("family", FAMILIES)
def test_whole_range(family: str) -> None:
    rng = random.Random(4)
    for _ in range(300):
        epsilon, width = 10 ** rng.uniform(-9, math.log10(50)), 10 ** rng.uniform(-6, 6)
        lower = rng.choice((0.0, 1.0, -1.0)) * 2.0 ** rng.randint(-10, 30)
        check_whole_range(family, lower, lower + width, epsilon)


def test_limit_of_small_epsilon() -> None:
    for share in (0.01, 0.1, 0.5, 0.9):
        b = scale_of("laplace", ib.Interval(0, 1), share, 1e-9)
        assert b * 1e-9 == pytest.approx(share * (2 - share), rel=1e-6)
        sigma = scale_of("gaussian", ib.Interval(0, 1), share, 1e-9)
        assert sigma**2 * 2e-9 == pytest.approx(share, rel=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_monotone_in_everything(family: str) -> None:
    base = scale_of(family, ib.Interval(0, 10), 1, 0.5)
    assert scale_of(family, ib.Interval(0, 10), 1, 0.4) > base
    assert scale_of(family, ib.Interval(0, 10), 1.1, 0.5) > base
    assert scale_of(family, ib.Interval(0, 11), 1, 0.5) > base


# --- the metric guarantee ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lower", "upper", "factor"),
    [(0, 10, 2), (-3.5, 1e6, 2), (2, INF, 2), (-INF, 2, 2), (-INF, INF, 1), (1e9, 1e9 + 1, 2)],
)
@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1, 50])
def test_metric_laplace(lower: float, upper: float, factor: int, epsilon: float) -> None:
    for sensitivity in (1, 0.1, 1 / 3):
        scale = scale_of("laplace", ib.Interval(lower, upper), sensitivity, epsilon, guarantee="metric")
        exact = factor * mpf(sensitivity) / goal(float(epsilon))
        assert exact <= scale <= exact / NEAR
        assert scale >= scale_of("laplace", ib.Interval(lower, upper), sensitivity, epsilon) * (1 - 1e-9)


def steepest_by_grid(family: str, scale: Any, lower: float, upper: float, points: int = 8) -> Any:
    """The largest loss per unit of distance over pairs of a grid, with very close pairs at the ends."""
    width = mpf(upper) - mpf(lower)
    places = {mpf(lower) + width * k / points for k in range(points + 1)}
    places |= {mpf(lower) + width * mpf(10) ** -k for k in (12, 6, 3)} | {
        mpf(upper) - width * mpf(10) ** -k for k in (12, 6, 3)
    }
    return max(
        ref.pair_loss(family, scale, [(lower, upper)], q, q2) / abs(q - q2) for q in places for q2 in places if q != q2
    )


def check_metric(family: str, lower: float, upper: float, sensitivity: float, epsilon: float) -> None:
    scale = scale_of(family, ib.Interval(lower, upper), sensitivity, epsilon, guarantee="metric")
    rate = goal(epsilon) / mpf(sensitivity)
    assert steepest_by_grid(family, scale, lower, upper) <= rate
    assert steepest_by_grid(family, mpf(scale) * NEAR, lower, upper) > rate


@pytest.mark.parametrize("family", FAMILIES)
def test_metric_against_every_pair_of_a_grid(family: str) -> None:
    rng = random.Random(6)
    for _ in range(15):
        width = 10 ** rng.uniform(-2, 2)
        lower = rng.choice((0.0, 1.0, -1.0)) * width * 10 ** rng.uniform(0, 6)
        width = (lower + width) - lower
        # the closest pair of the grid is 1e-12 of the width apart: its loss is that near to the supremum
        check_metric(family, lower, lower + width, width * rng.uniform(0.01, 1), 10 ** rng.uniform(-6, 1.5))


@pytest.mark.parametrize("family", FAMILIES)
def test_metric_needs_at_least_the_adjacent_scale(family: str) -> None:
    rng = random.Random(8)
    for _ in range(50):
        lower, upper, sensitivity, epsilon = drawn(rng)
        metric = scale_of(family, ib.Interval(lower, upper), sensitivity, epsilon, guarantee="metric")
        assert metric >= scale_of(family, ib.Interval(lower, upper), sensitivity, epsilon) * (1 - 1e-9)
        assert ref.pure_loss_interval(family, metric, lower, upper, sensitivity) <= goal(epsilon)


# --- targets that cannot be met ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "more"),
    [
        (ib.Interval(0, INF), {}),
        (ib.Interval(-INF, 0), {}),
        (ib.Interval(-INF, INF), {}),
        (ib.Interval(0, INF), {"guarantee": "metric"}),
        (ib.Interval(0, INF), {"edges": "clamp"}),
        (ib.Interval(0, 1), {"edges": "ignore"}),
        (ib.Interval(0, 1), {"edges": "ignore", "guarantee": "metric"}),
    ],
)
def test_no_pure_epsilon_for_unbounded_gaussian_outputs(domain: Any, more: dict[str, Any]) -> None:
    with pytest.raises(ib.UnreachableTarget) as caught:
        ib.Gaussian.calibrate(domain, sensitivity=1, epsilon=1, **more)
    message = str(caught.value)
    assert message.startswith("Gaussian: ")
    assert "no pure epsilon" in message
    for way_out in ("delta", "rho", "rdp", "mu", "Laplace"):
        assert way_out in message
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("width", "epsilon"), [(1e300, 1e-9), (1e300, 1e-300), (1.0, 5e-324)])
def test_sizes_beyond_the_limits_are_refused(family: str, width: float, epsilon: float) -> None:
    with pytest.raises(ib.ParameterError, match=r"in size|at least"):
        scale_of(family, ib.Interval(0, width), width, epsilon)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("epsilon", [1e-60, 1e-150, 1e-200, 1e-300])
def test_absurdly_small_epsilon_is_met_or_refused(family: str, epsilon: float) -> None:
    try:
        scale = scale_of(family, ib.Interval(0, 10), 1, epsilon)
    except ib.InboundsError:
        return
    with mp.workdps(400):
        assert ref.pure_loss_interval(family, scale, 0, 10, 1, dps=350) <= goal(epsilon)


# --- the checks above can fail -----------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.99, 1 - 5e-10, 1 + 2e-9, 1.01])
@pytest.mark.parametrize("family", FAMILIES)
def test_wrong_scales_are_rejected(monkeypatch: pytest.MonkeyPatch, family: str, factor: float) -> None:
    broken(monkeypatch, factor)
    rng = random.Random(7)
    for _ in range(10):
        with pytest.raises(AssertionError):
            check(family, *drawn(rng))
    with pytest.raises(AssertionError):
        check_whole_range(family, 0, 2, 0.5)
    with pytest.raises(AssertionError):
        check_metric(family, 0, 1, 0.25, 0.5)
    with pytest.raises(AssertionError):
        check_half_line(0, INF, 1, 0.1)

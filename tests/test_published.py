"""The published scales reproduced to their printed digits, and how far they are from the exact ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from mpmath import mp, mpf

import inbounds as ib
import inbounds.mechanism.additive
from tests import reference as ref
from tests.common import goal

BOX = ib.Box([0, 1], [10, 9])
LENGTH = 2 * 5**0.5
EPSILONS = (0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
PRINTED = (857.5, 170.3, 84.3, 55.8, 41.5, 32.9, 27.2)  # 84.3 is 84.38 cut off, the others are rounded
RECOMPUTED = (857.52, 170.27, 84.38, 55.77, 41.47, 32.90, 27.20)
LIU = (1320, 264, 132, 88, 66, 52.8, 44)
EXACT_L2 = (290.897, 61.395, 32.343, 22.462, 17.412, 14.315, 12.205)
EXACT_EACH = (284.588, 60.152, 31.720, 22.041, 17.090, 14.050, 11.979)
INF = float("inf")


def variance(sensitivity: Any, epsilon: float, method: str = "exact") -> float:
    return ib.Gaussian.calibrate(BOX, sensitivity=sensitivity, epsilon=epsilon, method=method).sigma ** 2


# --- Chen and Hale, Table 1 --------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "printed", "recomputed"), [*zip(EPSILONS, PRINTED, RECOMPUTED, strict=True)])
def test_chen_hale_as_published(epsilon: float, printed: float, recomputed: float) -> None:
    found = variance(ib.L2(LENGTH), epsilon, "paper")
    assert found == pytest.approx(recomputed, abs=0.005001)
    assert printed in (round(found, 1), int(found * 10) / 10)


def test_only_one_entry_is_cut_off() -> None:
    found = [round(variance(ib.L2(LENGTH), e, "paper"), 1) for e in EPSILONS]
    assert [a for a, b in zip(found, PRINTED, strict=True) if a != b] == [84.4]


@pytest.mark.parametrize(("epsilon", "printed"), [*zip(EPSILONS, LIU, strict=True)])
def test_liu_row(epsilon: float, printed: float) -> None:
    assert variance([4, 2], epsilon, "liu") == pytest.approx(printed, rel=1e-12)


def check_exact_rows(epsilon: float, by_length: float, each: float) -> None:
    assert variance(ib.L2(LENGTH), epsilon) == pytest.approx(by_length, abs=0.0005001)
    assert variance([4, 2], epsilon) == pytest.approx(each, abs=0.0005001)


@pytest.mark.parametrize(("epsilon", "by_length", "each"), [*zip(EPSILONS, EXACT_L2, EXACT_EACH, strict=True)])
def test_exact_rows(epsilon: float, by_length: float, each: float) -> None:
    check_exact_rows(epsilon, by_length, each)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_order_of_the_rows(epsilon: float) -> None:
    assert (
        variance([4, 2], epsilon)
        < variance(ib.L2(LENGTH), epsilon)
        < variance(ib.L2(LENGTH), epsilon, "paper")
        < variance([4, 2], epsilon, "liu")
    )


# --- Chen and Hale's and Liu's formulas, from the definition -----------------------------------


def chen_hale_excess(sigma: Any, width: float, sensitivity: float) -> Any:
    """Worst exponent plus worst log-ratio of the normalisers, from different pairs of [0, width]."""
    spans = [(0, width)]
    # the normaliser rises towards the middle
    change = min(mpf(sensitivity), mpf(width) / 2)
    ratio = ref.normaliser("gaussian", sigma, spans, change) / ref.normaliser("gaussian", sigma, spans, 0)
    return (mpf(width) + mpf(sensitivity) / 2) * mpf(sensitivity) / mpf(sigma) ** 2 + mp.log(ratio)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 10])
@pytest.mark.parametrize("sensitivity", [0.01, 0.3, 0.5, 0.8, 1])
def test_chen_hale_on_an_interval(epsilon: float, sensitivity: float) -> None:
    interval = ib.Interval(0, 1)
    sigma = ib.Gaussian.calibrate(interval, sensitivity=sensitivity, epsilon=epsilon, method="paper").sigma
    assert abs(chen_hale_excess(sigma, 1, sensitivity) / epsilon - 1) <= 1e-8


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "ratio"),
    [(0.5, 0.01, 2.99), (0.5, 1, 2.61), (0.5, 10, 1.90), (1, 0.1, 3.25), (1, 1, 3.24), (1, 10, 3.15)],
)
def test_chen_hale_against_exact(sensitivity: float, epsilon: float, ratio: float) -> None:
    interval = ib.Interval(0, 1)
    paper = ib.Gaussian.calibrate(interval, sensitivity=sensitivity, epsilon=epsilon, method="paper")
    exact = ib.Gaussian.calibrate(interval, sensitivity=sensitivity, epsilon=epsilon)
    assert (paper.sigma / exact.sigma) ** 2 == pytest.approx(ratio, abs=0.00501)


@pytest.mark.parametrize("method", ["paper", "liu"])
def test_published_gaussian_scales_are_sound(method: str) -> None:
    rng = random.Random(31)
    for _ in range(60):
        width, epsilon = 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-3, 1.5)
        sensitivity = width * rng.uniform(0.001, 1)
        interval = ib.Interval(0, width)
        sigma = ib.Gaussian.calibrate(interval, sensitivity=sensitivity, epsilon=epsilon, method=method).sigma
        assert ref.pure_loss_interval("gaussian", sigma, 0, width, sensitivity) <= goal(epsilon)
        assert sigma >= ib.Gaussian.calibrate(interval, sensitivity=sensitivity, epsilon=epsilon).sigma


def test_liu_is_its_formula() -> None:
    box = ib.Box([0, -1, 2], [3, 4, 2.5])
    mechanism = ib.Gaussian.calibrate(box, sensitivity=[1, 2, 0.25], epsilon=0.7, method="liu")
    by_hand = 2 * (3 * 1 + 5 * 2 + 0.5 * 0.25 + (1 + 4 + 0.0625) / 2) / 0.7
    assert mechanism.sigma**2 == pytest.approx(by_hand, rel=1e-12)


# --- Holohan et al. ----------------------------------------------------------------------------


def check_holohan(sensitivity: float, epsilon: float, delta: float, ratio: float, digits: float) -> None:
    interval = ib.Interval(0, 1)
    paper = ib.Laplace.calibrate(interval, sensitivity=sensitivity, epsilon=epsilon, delta=delta, method="paper")
    exact = ib.Laplace.calibrate(interval, sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    assert paper.scale / exact.scale == pytest.approx(ratio, abs=digits)
    # (3.1): the pure loss of the published scale is epsilon - ln(1 - delta)
    loss = ref.pure_loss_interval("laplace", paper.scale, 0, 1, sensitivity)
    assert abs(loss / (mpf(epsilon) - mp.log1p(-mpf(delta))) - 1) <= 1e-9


HOLOHAN = [
    (0.001, 0.1, 0.1, 2.84, 0.00501),
    (1, 0.1, 0.1, 2.76, 0.00501),
    (0.001, 0.1, 0.01, 1.68, 0.00501),
    (0.5, 0.1, 0.01, 1.67, 0.00501),
    (0.001, 0.01, 1e-6, 1.02, 0.00501),
    (0.5, 1e-6, 1e-3, 4.00, 0.00501),
]


@pytest.mark.parametrize(("sensitivity", "epsilon", "delta", "ratio", "digits"), HOLOHAN)
def test_holohan_against_exact(sensitivity: float, epsilon: float, delta: float, ratio: float, digits: float) -> None:
    check_holohan(sensitivity, epsilon, delta, ratio, digits)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("sensitivity", [0.01, 0.3, 1])
def test_holohan_is_close_for_small_delta(sensitivity: float, epsilon: float) -> None:
    interval = ib.Interval(0, 1)
    paper = ib.Laplace.calibrate(interval, sensitivity=sensitivity, epsilon=epsilon, delta=1e-6, method="paper")
    exact = ib.Laplace.calibrate(interval, sensitivity=sensitivity, epsilon=epsilon, delta=1e-6)
    assert exact.scale <= paper.scale * (1 + 1e-6) < 1.01 * exact.scale


def test_holohan_without_delta_is_exact() -> None:
    for sensitivity in (1e-3, 0.2, 1):
        for epsilon in (0.01, 1.0, 8.0):
            paper = ib.Laplace.calibrate(
                ib.Interval(0, 1), sensitivity=sensitivity, epsilon=epsilon, method="paper"
            ).scale
            exact = ib.Laplace.calibrate(ib.Interval(0, 1), sensitivity=sensitivity, epsilon=epsilon).scale
            assert paper == pytest.approx(exact, rel=1e-9)


# --- Croft, Sack and Shi -----------------------------------------------------------------------


def test_croft_on_spans_is_the_metric_guarantee() -> None:
    for spans in ([(0, 1), (2, 3)], [(-INF, 0), (1, INF)], [(-INF, 0), (0.5, 1), (4, INF)]):
        for epsilon in (0.1, 1.0, 4.0):
            paper = ib.Laplace.calibrate(ib.Spans(spans), sensitivity=0.5, epsilon=epsilon, method="paper")
            metric = ib.Laplace.calibrate(ib.Spans(spans), sensitivity=0.5, epsilon=epsilon, guarantee="metric")
            adjacent = ib.Laplace.calibrate(ib.Spans(spans), sensitivity=0.5, epsilon=epsilon)
            assert paper.scale == pytest.approx(metric.scale, rel=1e-9)
            assert adjacent.scale <= paper.scale * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "smallest"), [(0.1, 19.5124), (0.5, 3.55961), (1, 1.61261), (2, 0.69746)])
def test_half_line_where_the_published_scale_is_not_private(epsilon: float, smallest: float) -> None:
    half_line = ib.Interval(0, INF)
    assert ib.Laplace.calibrate(half_line, sensitivity=1, epsilon=epsilon).scale == pytest.approx(smallest, rel=1e-5)
    with pytest.raises(ib.ParameterError, match="not private as published"):
        ib.Laplace.calibrate(half_line, sensitivity=1, epsilon=epsilon, method="paper")


# --- what the published methods do not cover ---------------------------------------------------


@pytest.mark.parametrize(
    ("family", "domain", "arguments"),
    [
        (ib.Gaussian, ib.Interval(0, 1), {"method": "paper", "delta": 1e-6}),
        (ib.Gaussian, ib.Interval(0, 1), {"method": "liu", "delta": 1e-6}),
        (ib.Gaussian, ib.Interval(0, INF), {"method": "paper"}),
        (ib.Gaussian, ib.Integers(0, 10), {"method": "paper"}),
        (ib.Gaussian, ib.Interval(0, 1), {"method": "paper", "edges": "clamp"}),
        (ib.Laplace, ib.Interval(0, 1), {"method": "liu"}),
        (ib.Laplace, ib.Integers(0, 10), {"method": "paper"}),
        (ib.Laplace, ib.Spans([(0, 1), (2, 3)]), {"method": "paper", "delta": 1e-6}),
    ],
)
def test_refused(family: Any, domain: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(ib.ParameterError):
        family.calibrate(domain, sensitivity=1, epsilon=1, **arguments)


# --- the checks above can fail -----------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_wrong_scales_are_rejected(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    right: Callable[..., float] = inbounds.mechanism.additive.calibrate
    monkeypatch.setattr(inbounds.mechanism.additive, "calibrate", lambda *a, **k: factor * right(*a, **k))
    for epsilon, printed, recomputed in zip(EPSILONS, PRINTED, RECOMPUTED, strict=True):
        with pytest.raises(AssertionError):
            test_chen_hale_as_published(epsilon, printed, recomputed)
    for row in zip(EPSILONS, EXACT_L2, EXACT_EACH, strict=True):
        with pytest.raises(AssertionError):
            check_exact_rows(*row)
    for row in zip(EPSILONS, LIU, strict=True):
        with pytest.raises(AssertionError):
            test_liu_row(*row)
    for case in HOLOHAN:
        with pytest.raises(AssertionError):
            check_holohan(*case)

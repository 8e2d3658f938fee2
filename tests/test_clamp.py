"""Clamped and ignored edges: closed forms against the 50-digit reference and against enumeration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import inbounds as ib
from tests import reference as ref
from tests.common import MECHANISMS as FAMILIES

INF = math.inf
TIGHT = mpf("1e-7")


def pairs(gap: float, width: float, count: int = 9) -> list[tuple[float, float]]:
    starts = [(width - gap) * k / (count - 1) for k in range(count)]
    forward = [(q, min(q + gap, width)) for q in starts]
    return [*forward, *[(b, a) for a, b in forward]]


# --- pure loss -------------------------------------------------------------------------------


@pytest.mark.parametrize("edges", ["clamp", "ignore"])
@pytest.mark.parametrize("domain", [ib.Interval(0, 1), ib.Interval(0, INF), ib.Interval(-INF, INF)])
def test_laplace_keeps_the_plain_loss(edges: str, domain: Any) -> None:
    mechanism = ib.Laplace(domain, scale=0.7, sensitivity=0.3, edges=edges)
    loss = mechanism.epsilon()
    assert loss.exact
    assert mpf(0.3) / mpf(0.7) <= loss <= mpf(0.3) / mpf(0.7) * (1 + mpf("1e-11"))


@pytest.mark.parametrize(("gap", "scale"), [(0.1, 0.05), (0.3, 0.7), (1.0, 0.4), (1e-3, 1.0), (0.5, 20.0)])
def test_pure_loss_on_an_interval(gap: float, scale: float) -> None:
    for family, cls in FAMILIES.items():
        loss = cls(ib.Interval(0, 1), scale=scale, sensitivity=gap, edges="clamp").epsilon()
        exact = max(ref.clamped_loss(family, scale, 0, 1, a, b, dps=30) for a, b in pairs(gap, 1.0))
        assert loss.exact
        assert loss >= exact * (1 - mpf("1e-15"))  # the pairs end a rounding of gap away
        assert loss - exact <= TIGHT * exact


def test_gaussian_has_no_pure_loss_without_both_walls() -> None:
    for domain, edges in (
        (ib.Interval(0, INF), "clamp"),
        (ib.Interval(0, 1), "ignore"),
        (ib.Interval(-INF, INF), "clamp"),
        (ib.Integers(0, 9), "ignore"),
    ):
        assert ib.Gaussian(domain, scale=1.0, sensitivity=1.0, edges=edges).epsilon() == INF
        with pytest.raises(ib.UnreachableTarget):
            ib.Gaussian.calibrate(domain, sensitivity=1.0, epsilon=1.0, edges=edges)


def test_pure_calibration_of_the_clamped_gaussian() -> None:
    for gap, epsilon in ((0.2, 1.0), (1.0, 0.5), (0.01, 3.0)):
        mechanism = ib.Gaussian.calibrate(ib.Interval(0, 1), sensitivity=gap, epsilon=epsilon, edges="clamp")
        # the worst pair ends at the near wall's opposite: the pair (gap, 0) and the atom at the upper end
        assert ref.clamped_loss("gaussian", mechanism.scale, 0, 1, gap, 0) <= epsilon
        assert ref.clamped_loss("gaussian", mechanism.scale * (1 - 1e-6), 0, 1, gap, 0) > epsilon


# --- delta -----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("gap", "scale"), [(0.1, 0.08), (0.4, 0.9), (1.0, 0.5)])
def test_delta_on_an_interval(family: str, gap: float, scale: float) -> None:
    mechanism = FAMILIES[family](ib.Interval(0, 1), scale=scale, sensitivity=gap, edges="clamp")
    for epsilon in (0.0, 0.3 * gap / scale, 0.9 * gap / scale, 1.6 * gap / scale):
        value = mechanism.delta(epsilon)
        exact = max(
            ref.clamped_hockey_stick(family, scale, 0, 1, a, b, epsilon, dps=30)
            for a, b in [(0, gap), (gap, 0), *pairs(gap, 1.0)]
        )
        assert value >= exact * (1 - mpf("1e-13"))
        assert value <= exact * (1 + TIGHT) + mpf("1e-12")
        assert value.exact
        assert value <= ref.plain_hockey_stick(family, scale, gap, epsilon) * (1 + TIGHT) + mpf("1e-12")


@pytest.mark.parametrize("family", FAMILIES)
def test_delta_with_ignored_edges(family: str) -> None:
    for gap, scale in ((1.0, 0.3), (1.0, 1.0), (0.01, 2.0)):
        mechanism = FAMILIES[family](ib.Interval(0, 1), scale=scale, sensitivity=gap, edges="ignore")
        for epsilon in (0.0, 0.5 * gap / scale, 0.99 * gap / scale, 2.0 * gap / scale):
            value, exact = mechanism.delta(epsilon), ref.plain_hockey_stick(family, scale, gap, epsilon)
            assert value.exact
            assert exact <= value <= exact * (1 + TIGHT) + mpf("1e-13")


def test_clamping_a_gaussian_lowers_delta_far_out() -> None:
    # beyond the wall's own loss only the atom is left
    mechanism = ib.Gaussian(ib.Interval(0, 1), scale=0.5, sensitivity=0.5, edges="clamp")
    epsilon = 0.95 * float(mechanism.epsilon())
    exact = ref.clamped_hockey_stick("gaussian", 0.5, 0, 1, 0.5, 0, epsilon)
    assert exact <= mechanism.delta(epsilon) <= exact * (1 + TIGHT)
    assert mechanism.delta(epsilon) < 0.9 * ref.plain_hockey_stick("gaussian", 0.5, 0.5, epsilon)


@pytest.mark.parametrize("edges", ["clamp", "ignore"])
@pytest.mark.parametrize(("gap", "epsilon", "delta"), [(0.5, 1.0, 1e-6), (0.1, 0.01, 0.1), (1.0, 0.0, 0.01)])
def test_laplace_calibration_in_closed_form(edges: str, gap: float, epsilon: float, delta: float) -> None:
    mechanism = ib.Laplace.calibrate(ib.Interval(0, 2), sensitivity=gap, epsilon=epsilon, delta=delta, edges=edges)
    exact = mpf(gap) / (mpf(epsilon) - 2 * mp.log1p(-mpf(delta)))
    assert exact <= mechanism.scale <= exact * (1 + mpf("1e-6"))


@pytest.mark.parametrize(("gap", "epsilon", "delta"), [(1.0, 1.0, 1e-6), (0.3, 0.1, 1e-3), (1.0, 5.0, 1e-12)])
def test_analytic_gaussian(gap: float, epsilon: float, delta: float) -> None:
    mechanism = ib.Gaussian.calibrate(
        ib.Interval(0, INF), sensitivity=gap, epsilon=epsilon, delta=delta, edges="ignore"
    )
    assert ref.plain_hockey_stick("gaussian", mechanism.scale, gap, epsilon) <= mpf(delta)
    assert ref.plain_hockey_stick("gaussian", mechanism.scale * (1 - 1e-6), gap, epsilon) > mpf(delta)


@pytest.mark.parametrize("family", FAMILIES)
def test_ignored_edges_have_the_plain_divergences(family: str) -> None:
    mechanism = FAMILIES[family](ib.Interval(0, 1), scale=0.8, sensitivity=0.5, edges="ignore")
    for alpha in (1.5, 3.0, 30.0):
        value, exact = mechanism.rdp(alpha), ref.plain_renyi(family, 0.8, 0.5, alpha)
        assert exact <= value <= exact * (1 + TIGHT)
        clamped = FAMILIES[family](ib.Interval(0, 1), scale=0.8, sensitivity=0.5, edges="clamp")
        assert clamped.rdp(alpha) <= value
    if family == "gaussian":
        assert mechanism.gdp() == pytest.approx(0.625, rel=1e-9)
        assert mechanism.zcdp() == pytest.approx(0.625**2 / 2, rel=1e-9)


# --- enumeration -----------------------------------------------------------------------------


def clamped_pmf(family: str, scale: float, upper: int, q: int) -> list[Any]:
    inner = [ref.mass(family, scale, q, x, x, lattice=True, dps=30) for x in range(1, upper)]
    below = ref.mass(family, scale, q, -INF, 0, lattice=True, dps=30)
    above = ref.mass(family, scale, q, upper, INF, lattice=True, dps=30)
    return [below, *inner, above]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("upper", "gap", "scale"), [(5, 1, 0.6), (8, 3, 2.0), (4, 4, 5.0)])
def test_integers_by_enumeration(family: str, upper: int, gap: int, scale: float) -> None:
    mechanism = FAMILIES[family](ib.Integers(0, upper), scale=scale, sensitivity=gap, edges="clamp")
    exact = [clamped_pmf(family, scale, upper, q) for q in range(upper + 1)]
    ours = mechanism.at(np.arange(upper + 1)[:, None]).pmf(np.arange(upper + 1))
    assert np.allclose(ours, np.array(exact, dtype=float), rtol=1e-12, atol=0.0)
    near = [(a, b) for a in range(upper + 1) for b in range(upper + 1) if a != b and abs(a - b) <= gap]
    loss = max(mp.log(p / r) for a, b in near for p, r in zip(exact[a], exact[b], strict=True))
    assert loss <= mechanism.epsilon() <= loss * (1 + mpf("1e-9")) + mpf("1e-10")
    for epsilon in (0.0, 0.5 * float(loss), 0.9 * float(loss)):
        worst = max(
            mp.fsum(max(p - mp.exp(epsilon) * r, mpf(0)) for p, r in zip(exact[a], exact[b], strict=True))
            for a, b in near
        )
        value = mechanism.delta(epsilon)
        assert value >= worst
        if value.exact:
            assert value <= worst * (1 + TIGHT) + mpf("1e-12")
    for alpha in (2.0, 9.0):
        worst = max(
            mp.log(mp.fsum(p**alpha * r ** (1 - alpha) for p, r in zip(exact[a], exact[b], strict=True))) / (alpha - 1)
            for a, b in near
        )
        assert mechanism.rdp(alpha) >= worst


@pytest.mark.parametrize("family", FAMILIES)
def test_spans_are_bounded(family: str) -> None:
    """The law on spans: four atoms and two densities, cut finely; the loss over a fine set of pairs."""
    spans, scale, gap = [(0.0, 1.0), (1.5, 3.0)], 0.8, 0.7
    mechanism = FAMILIES[family](ib.Spans(spans), scale=scale, sensitivity=gap, edges="clamp")
    cuts = np.concatenate([np.linspace(0, 1, 41), np.linspace(1.5, 3, 61)])
    places = np.concatenate([np.linspace(0, 1, 21), np.linspace(1.5, 3, 31)])
    law = np.diff(mechanism.at(places[:, None]).cdf(np.concatenate([[-1.0], cuts])), axis=1)
    assert np.allclose(law.sum(axis=1), 1.0)
    apart = np.abs(places[:, None] - places[None, :])
    near = (apart > 0) & (apart <= gap + 1e-12)
    ratio = np.log(law[:, None, :] / law[None, :, :]).max(axis=-1)[near].max()
    assert ratio <= mechanism.epsilon() * (1 + 1e-9)
    assert ratio >= 0.9 * mechanism.epsilon() if family == "laplace" else ratio > 0.3
    for epsilon in (0.0, 0.3, 0.7):
        tv = np.maximum(law[:, None, :] - math.exp(epsilon) * law[None, :, :], 0.0).sum(axis=-1)[near].max()
        assert 0.0 < tv <= mechanism.delta(epsilon) * (1 + 1e-9)


def test_what_is_flagged_exact() -> None:
    holes = ib.Spans([(0.0, 1.0), (1.5, 3.0)])
    for family, domain, edges, pure, delta in (
        ("laplace", ib.Interval(0, 1), "clamp", True, True),
        ("laplace", ib.Interval(0, 1), "ignore", True, True),
        ("laplace", holes, "clamp", True, False),
        ("gaussian", ib.Interval(0, 1), "clamp", True, True),
        ("gaussian", holes, "clamp", False, False),
        ("gaussian", ib.Interval(0, 1), "ignore", True, True),
    ):
        mechanism = FAMILIES[family](domain, scale=1.0, sensitivity=0.7, edges=edges)
        assert mechanism.epsilon().exact is pure, (family, domain, edges)
        assert mechanism.delta(0.1).exact is delta, (family, domain, edges)


def test_a_gap_that_no_two_points_of_the_spans_have_is_not_charged() -> None:
    # distances of two points are at most 1 or at least 8: sensitivity 5 costs only 1
    domain = ib.Spans([(0.0, 1.0), (9.0, 10.0)])
    for edges in ("clamp", "ignore"):
        mechanism = ib.Laplace(domain, scale=2.0, sensitivity=5.0, edges=edges)
        assert mechanism.epsilon() == pytest.approx(0.5, rel=1e-9)

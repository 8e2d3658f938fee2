"""The auditor proves what our calibration returns, and refutes what is known to be wrong, with numbers."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import json
import math
import pickle
import runpy
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from mpmath import mp, mpf
from scipy.optimize import brentq
from scipy.special import lambertw, ndtr

import inbounds as ib
from inbounds.auditing import Audit, LocationFamily, Witness, audit
from inbounds.errors import MissingExtra
from inbounds.privacy import LineCurve
from tests import reference as ref
from tests.common import MECHANISMS

pytestmark = pytest.mark.thinned(3)

INF = math.inf
ROOT = Path(__file__).parent.parent
HOLES = ib.Spans([(0, 1), (2, 3), (5, 9)])
#: kind -> (domain, sensitivity)
DOMAINS: dict[str, tuple[Any, float]] = {
    "interval": (ib.Interval(0, 1), 0.1),
    "half-line": (ib.Interval(0, INF), 1.0),
    "upper half-line": (ib.Interval(-INF, 5), 1.0),
    "line": (ib.Interval(-INF, INF), 1.0),
    "spans": (HOLES, 1.2),
    "open spans": (ib.Spans([(0, 3), (5, INF)]), 1.2),
    "integers": (ib.Integers(0, 30), 2),
    "open integers": (ib.Integers(0, INF), 2),
}
BOXES: dict[str, tuple[Any, Any]] = {
    "box": (ib.Box([0, 1], [10, 9]), ib.L2(20**0.5)),
    "box, l1": (ib.Box([0, 1], [10, 9]), ib.L1(2)),
    "box, per coordinate": (ib.Box([0, 1, 0], [10, 9, 1]), [4, 2, 0.5]),
    "box, sparse": (ib.Box(np.zeros(5), np.arange(1, 6)), ib.L0(2, linf=1)),
    "integer box": (ib.Box([0, 0], [30, 20], integer=True), [2, 1]),
}
#: Gaussian noise on spans without end takes minutes to calibrate with a delta
CASES = [
    pytest.param(f, k, marks=pytest.mark.long if (f, k) == ("gaussian", "open spans") else [])
    for f in MECHANISMS
    for k in DOMAINS
]
KERNELS: dict[str, Any] = {"laplace": lambda t: -np.abs(t), "gaussian": lambda t: -t * t / 2.0}


def spans_of(domain: Any) -> list[tuple[float, float]]:
    return list(domain.pieces)


def decimal(x: float) -> Fraction:
    return Fraction(repr(x))


def rescaled(mechanism: Any, factor: float) -> Any:
    return type(mechanism)(
        mechanism.domain,
        scale=factor * mechanism.scale,
        sensitivity=mechanism.sensitivity,
        edges=mechanism.edges,
    )


def check_witness(found: Audit, family: str, mechanism: Any) -> None:
    """The counterexample, at 50 digits."""
    domain, witness = mechanism.domain, found.witness
    assert witness is not None
    first, second = witness.pair
    assert first in domain
    assert second in domain
    # neighbours, as floats or as the decimals they print as
    readings = [[read(v) for v in (first, second, mechanism.sensitivity)] for read in (Fraction, decimal)]
    assert any(abs(a - b) <= limit for a, b, limit in readings)
    spans, lattice, scale = spans_of(domain), domain.lattice, mechanism.scale
    if found.delta == 0.0:
        losses = [ref.log_density(family, scale, spans, q, witness.output, lattice=lattice) for q in witness.pair]
        assert abs(losses[0] - losses[1] - mpf(witness.loss)) <= witness.error
        assert losses[0] - losses[1] > found.epsilon
    else:
        assert witness.event is not None
        ((low, high),) = witness.event
        low = math.floor(low) + 1 if lattice and math.isfinite(low) else low  # low < x <= high
        cut = [(max(a, low), min(b, high)) for a, b in spans if max(a, low) <= min(b, high)]
        p, q = (
            ref.normaliser(family, scale, cut, v, lattice=lattice)
            / ref.normaliser(family, scale, spans, v, lattice=lattice)
            for v in witness.pair
        )
        assert abs(p - mp.exp(mpf(found.epsilon)) * q - mpf(found.delta) - mpf(witness.excess)) <= witness.error
        assert p - mp.exp(mpf(found.epsilon)) * q > found.delta


# --- a scale one per cent too small -------------------------------------------------------------

CLAIMS = [(1.0, 0.0), (0.3, 1e-6)]


@pytest.mark.thinned(5)
@pytest.mark.parametrize(("family", "kind"), CASES)
@pytest.mark.parametrize("edges", ["truncate", "clamp", "ignore"])
@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
def test_one_per_cent_too_small(family: str, kind: str, edges: str, epsilon: float, delta: float) -> None:
    domain, sensitivity = DOMAINS[kind]
    unbounded = not domain.bounded or edges == "ignore"
    if family == "gaussian" and delta == 0.0 and unbounded:
        found = audit(MECHANISMS[family](domain, scale=5.0, sensitivity=sensitivity, edges=edges), epsilon=epsilon)
        assert found.refuted  # at any scale
        assert found.real_epsilon == (INF, INF)
        assert found.witness is not None
        assert math.isfinite(found.witness.output)
        assert found.witness.loss > epsilon
        return
    mechanism = MECHANISMS[family].calibrate(domain, sensitivity=sensitivity, epsilon=epsilon, delta=delta, edges=edges)
    assert audit(mechanism, epsilon=epsilon, delta=delta).proven
    found = audit(rescaled(mechanism, 0.99), epsilon=epsilon, delta=delta)
    assert found.refuted
    assert found.witness is not None
    assert found.witness.violates
    # what holds in truth is known from both sides
    low, high = found.real_epsilon
    assert epsilon < low <= high * (1 + 1e-9)
    assert delta < found.real_delta[0] <= found.real_delta[1] * (1 + 1e-9)
    exact = found.bound is not None and found.bound.exact
    assert not exact or high <= low * (1 + 2e-4)
    exact = bool(rescaled(mechanism, 0.99).delta(epsilon).exact)
    assert not exact or found.real_delta[1] <= found.real_delta[0] * (1 + 1e-3)
    if edges == "truncate":
        check_witness(found, family, rescaled(mechanism, 0.99))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("kind", BOXES)
@pytest.mark.parametrize("edges", ["truncate", "clamp", "ignore"])
def test_one_per_cent_too_small_on_boxes(family: str, kind: str, edges: str) -> None:
    box, sensitivity = BOXES[kind]
    if family == "gaussian" and edges == "ignore":
        found = audit(ib.Gaussian(box, scale=5.0, sensitivity=sensitivity, edges=edges), epsilon=1.0)
        assert found.refuted
        assert found.real_epsilon == (INF, INF)
        return
    mechanism = MECHANISMS[family].calibrate(box, sensitivity=sensitivity, epsilon=1.0, edges=edges)
    assert audit(mechanism, epsilon=1.0).proven
    found = audit(rescaled(mechanism, 0.99), epsilon=1.0)
    assert found.refuted
    witness = found.witness
    assert witness is not None
    assert all(q in box for q in witness.pair)
    if edges == "truncate" and not box.integer:
        total = sum(
            ref.log_density(family, 0.99 * mechanism.scale, [(lo, hi)], a, x)
            - ref.log_density(family, 0.99 * mechanism.scale, [(lo, hi)], b, x)
            for lo, hi, a, b, x in zip(box.lower, box.upper, *witness.pair, witness.output, strict=True)
        )
        assert abs(total - mpf(witness.loss)) <= witness.error + 1e-9
        assert total > 1
    assert found.real_epsilon[1] <= found.real_epsilon[0] * (1 + 1e-8)


@pytest.mark.parametrize("kind", BOXES)
def test_plain_gaussian_noise_on_boxes_with_delta(kind: str) -> None:
    box, sensitivity = BOXES[kind]
    if box.integer:
        found = audit(ib.Gaussian(box, scale=60.0, sensitivity=sensitivity, edges="ignore"), epsilon=0.3, delta=1e-6)
        assert found.verdict == "undecided"  # nothing is proven there, and nothing wrong was found
        return
    mechanism = ib.Gaussian.calibrate(box, sensitivity=sensitivity, epsilon=0.3, delta=1e-6, edges="ignore")
    assert audit(mechanism, epsilon=0.3, delta=1e-6).proven
    found = audit(rescaled(mechanism, 0.99), epsilon=0.3, delta=1e-6)
    assert found.refuted
    witness = found.witness
    assert witness is not None
    assert witness.direction is not None
    assert witness.probabilities is not None
    # along one direction all is one-dimensional
    assert witness.event is not None
    ((low, high),) = witness.event
    for q, p in zip(witness.pair, witness.probabilities, strict=True):
        centre = float(np.dot(q, witness.direction))
        expected = np.diff(ndtr((np.array([low, high]) - centre) / (0.99 * mechanism.scale)))[0]
        assert p == pytest.approx(expected, rel=1e-6)


def test_a_box_with_delta_may_stay_undecided() -> None:
    mechanism = ib.Laplace.calibrate(ib.Box([0, 1], [10, 9]), sensitivity=ib.L2(2), epsilon=0.3, delta=1e-6)
    found = audit(rescaled(mechanism, 0.99), epsilon=0.3, delta=1e-6)
    assert found.verdict == "undecided"
    assert "one direction" in found.reason
    assert found.real_epsilon[0] < 0.3 < found.real_epsilon[1]


@pytest.mark.parametrize("sensitivity", [ib.L1(2), ib.L2(2)], ids=str)
def test_clamped_gaussian_on_integer_boxes(sensitivity: Any) -> None:
    box = ib.Box([0, 0, 0], [1, 20, 5], integer=True)
    mechanism = ib.Gaussian.calibrate(box, sensitivity=sensitivity, epsilon=0.3, edges="clamp")
    assert audit(mechanism, epsilon=0.3).proven


def test_tiny_deltas_are_certified() -> None:
    mechanism = ib.Gaussian(ib.Interval(-INF, INF), scale=1.0, sensitivity=0.1435790816)
    assert audit(mechanism, epsilon=1.2, delta=float(mechanism.delta(1.2)) * (1 + 1e-8)).proven


# --- every calibration --------------------------------------------------------------------------


def random_setting(rng: np.random.Generator) -> tuple[Any, Any, str, dict[str, float]]:
    """A domain, a sensitivity, edges and a target."""
    kind = rng.choice(["interval", "half-line", "line", "spans", "integers", "open integers", "box", "integer box"])
    edges = str(rng.choice(["truncate", "truncate", "clamp", "ignore"]))
    width = float(10 ** rng.uniform(-2, 2))
    start = float(rng.choice([0.0, rng.normal() * width]))
    target = {"epsilon": float(10 ** rng.uniform(-2, 1))}
    domain: Any
    sensitivity: Any
    if kind == "interval":
        domain, sensitivity = ib.Interval(start, start + width), width * float(rng.uniform(0.01, 0.99))
    elif kind == "half-line":
        ends = (start, INF) if rng.random() < 0.5 else (-INF, start)
        domain, sensitivity = ib.Interval(*ends), width
    elif kind == "line":
        domain, sensitivity = ib.Interval(-INF, INF), width
    elif kind == "spans":
        ends = start + np.cumsum(width * rng.uniform(0.1, 1.0, 2 * int(rng.integers(2, 5))))
        domain = ib.Spans([(float(a), float(b)) for a, b in ends.reshape(-1, 2)])
        sensitivity = float(domain.width * rng.uniform(0.05, 0.9))
    elif kind.endswith("integers"):
        low, high = int(rng.integers(-5, 5)), int(rng.integers(10, 60))
        domain = ib.Integers(low, INF if kind == "open integers" else high)
        sensitivity = int(rng.integers(1, 6))
    else:
        size = int(rng.integers(1, 5))
        integer = kind == "integer box"
        sides = rng.integers(4, 30, size) if integer else width * rng.uniform(0.5, 2.0, size)
        domain = ib.Box(np.zeros(size), sides.astype(float), integer=integer)
        smallest = int(np.min(sides)) if integer else float(np.min(sides)) * 0.7
        limits = [
            ib.L1(smallest),
            ib.L2(smallest),
            ib.Linf(smallest),
            ib.L0(int(rng.integers(1, size + 1)), linf=smallest),
            [smallest] * size,
        ]
        sensitivity = limits[int(rng.integers(len(limits)))]
    return domain, sensitivity, edges, target


def check_random_settings(seed: int, count: int, share: float) -> None:
    """Calibrate and audit; ``share`` of the settings have a delta."""
    rng = np.random.default_rng(seed)
    done = 0
    while done < count:
        domain, sensitivity, edges, target = random_setting(rng)
        family = str(rng.choice(list(MECHANISMS)))
        if rng.random() < share or (family == "gaussian" and (edges == "ignore" or not domain.bounded)):
            target["delta"] = float(10 ** rng.uniform(-9, -2))
        try:
            made = MECHANISMS[family].calibrate(domain, sensitivity=sensitivity, edges=edges, **target)
        except ib.UnreachableTarget:
            continue  # Gaussian noise on whole vectors without bounds: nothing is proven there
        found = audit(made, **target)
        assert found.proven, f"{made}: {found}"
        # the two sides of the report agree: no pair found is worse than what is proven
        assert found.real_epsilon[0] <= found.real_epsilon[1] * (1 + 1e-9)
        assert found.real_delta[0] <= found.real_delta[1] * (1 + 1e-9)
        done += 1


@pytest.mark.parametrize("block", [0, 2, 5, *(pytest.param(b, marks=pytest.mark.long) for b in (1, 3, 4, 6, 7, 8, 9))])
def test_our_calibrations_are_certified(block: int) -> None:
    check_random_settings(block, 50, 0.0)


@pytest.mark.long
@pytest.mark.parametrize("block", range(10))
def test_our_calibrations_with_delta_are_certified(block: int) -> None:
    check_random_settings(100 + block, 50, 1.0)


# --- published claims that fail -----------------------------------------------------------------


def croft_scale(epsilon: float, change: float) -> Any:
    """Croft, Sack and Shi, (32) and (33): the scale at a distance from the wall."""
    wall = -change / (float(np.real(lambertw(-1.0 / (2.0 * math.e)))) * math.e * epsilon)

    def scale(q: Any) -> Any:
        i = np.asarray(q, dtype=np.float64) / change
        shrunk = i * change * np.exp(-i * epsilon) / wall
        argument = np.maximum(-2.0 * shrunk * np.exp(-shrunk), -1.0 / math.e)
        branch = np.where(i * epsilon < 1.0, np.real(lambertw(argument)), np.real(lambertw(argument, -1)))
        branch = np.where(np.isnan(branch), -1.0, branch)  # where the branches meet
        with np.errstate(divide="ignore", invalid="ignore"):
            value = -(i * change) / (branch + shrunk)
        return np.where(i * epsilon < 1e-12, wall, value)

    return scale


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1.652e-4), (0.5, 3.057e-4), (1.0, 1.563e-4), (2.0, 1.547e-5)])
def test_croft_theorem_1(epsilon: float, delta: float) -> None:
    family = LocationFamily.from_kernel(
        KERNELS["laplace"], ib.Interval(0, INF), scale=croft_scale(epsilon, 1.0), name="Croft et al., Theorem 1"
    )
    found = audit(family, sensitivity=1.0, epsilon=epsilon)
    assert found.refuted
    assert "without limit" in found.reason
    assert found.real_epsilon[0] == INF
    assert found.real_delta[0] == pytest.approx(delta, rel=4e-4)
    witness, sets = found.witness, found.set_witness
    assert witness is not None
    assert sets is not None
    assert witness.pair == (0.0, 1.0)
    assert sets.pair == pytest.approx((0.0, 1.0), abs=1e-6)
    assert math.isfinite(witness.output)
    # by hand: two Laplace densities on the half-line
    first, second = (float(croft_scale(epsilon, 1.0)(np.array(q))) for q in (0.0, 1.0))
    x = witness.output
    by_hand = -x / first - math.log(first) - (-abs(x - 1.0) / second - math.log(second * (2.0 - math.exp(-1 / second))))
    assert witness.loss == pytest.approx(by_hand, rel=1e-8)
    assert sets.event is not None
    assert sets.probabilities is not None
    ((start, stop),) = sets.event
    assert stop == INF
    assert sets.probabilities[0] == pytest.approx(math.exp(-start / first), rel=1e-6)
    with_delta = audit(family, sensitivity=1.0, epsilon=epsilon, delta=delta / 2.0)
    assert with_delta.refuted
    assert audit(family, sensitivity=1.0, epsilon=epsilon, delta=2.0 * delta).verdict == "undecided"


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("sensitivity", [0.01, 0.3, 0.9])
def test_resampled_plain_laplace(epsilon: float, sensitivity: float) -> None:
    interval = ib.Interval(0, 1)
    plain = ib.Laplace.calibrate(interval, sensitivity=sensitivity, epsilon=epsilon, edges="ignore")
    found = audit(ib.Laplace(interval, scale=plain.scale, sensitivity=sensitivity), epsilon=epsilon)
    assert found.refuted
    exact = ref.pure_loss_interval("laplace", plain.scale, 0, 1, sensitivity)
    assert found.real_epsilon == pytest.approx((float(exact), float(exact)), rel=1e-9)
    family = LocationFamily.from_kernel(KERNELS["laplace"], interval, scale=plain.scale)
    again = audit(family, sensitivity=sensitivity, epsilon=epsilon)
    assert again.refuted
    assert again.real_epsilon[0] == pytest.approx(float(exact), rel=1e-7)


def analytic_gaussian(sensitivity: float, epsilon: float, delta: float) -> float:
    """The smallest sigma of plain Gaussian noise (Balle and Wang)."""

    def excess(sigma: float) -> float:
        mu = sensitivity / sigma
        return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)) - delta

    return float(brentq(excess, 1e-3 * sensitivity, 1e4 * sensitivity, xtol=1e-13))


def test_resampled_plain_gaussian() -> None:
    sigma = analytic_gaussian(1.0, 1.0, 1e-6)
    assert sigma == pytest.approx(4.2247, abs=1e-4)
    # No pure epsilon comes with it on a long range, however it is cut.
    found = audit(ib.Gaussian(ib.Interval(0, 100), scale=sigma, sensitivity=1.0), epsilon=1.0)
    assert found.refuted
    exact = ref.pure_loss_interval("gaussian", sigma, 0, 100, 1)
    assert found.real_epsilon[0] == pytest.approx(float(exact), rel=1e-9)
    # With the delta it was made for, resampling is harmless on an interval, and only there.
    assert audit(ib.Gaussian(ib.Interval(0, 100), scale=sigma, sensitivity=1.0), epsilon=1.0, delta=1.001e-6).proven
    whole = ib.Gaussian(ib.Integers(0, 25), scale=1.0, sensitivity=1)
    line = float(ib.Gaussian(ib.Interval(-INF, INF), scale=1.0, sensitivity=1).delta(2.0))
    assert line == pytest.approx(0.02092, abs=1e-5)
    found = audit(whole, epsilon=2.0, delta=line)
    assert found.refuted
    assert found.real_delta == pytest.approx((0.02481, 0.02481), abs=1e-5)
    holes = ib.Spans([(0.5, 6.5), (9, 15)])
    found = audit(ib.Gaussian(holes, scale=analytic_gaussian(1.2, 1, 0.01), sensitivity=1.2), epsilon=1.0, delta=0.01)
    assert found.refuted
    assert found.real_delta[0] > 0.03


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
@pytest.mark.parametrize("sensitivity", [0.2, 0.5])
def test_chen_hale_with_delta_added(sensitivity: float, delta: float) -> None:
    """Theorem 2.4 with epsilon - ln delta in the place of epsilon, as if delta could be added that way."""

    def needed(sigma: float) -> float:
        change = min(sensitivity, 0.5)

        def kept(q: float) -> float:
            return float(ndtr((1.0 - q) / sigma) - ndtr(-q / sigma))

        log_ratio = math.log(kept(change) / kept(0.0))
        return (1.0 + sensitivity / 2.0) * sensitivity / (1.0 - log_ratio - math.log(delta)) - sigma**2

    sigma = float(brentq(needed, 1e-2, 10.0))
    found = audit(ib.Gaussian(ib.Interval(0, 1), scale=sigma, sensitivity=sensitivity), epsilon=1.0, delta=delta)
    assert found.refuted
    assert found.real_delta[0] > 20 * delta
    check_witness(found, "gaussian", ib.Gaussian(ib.Interval(0, 1), scale=sigma, sensitivity=sensitivity))


# --- neither side trusts the other --------------------------------------------------------------


def test_a_wrong_bound_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = LineCurve.pure
    monkeypatch.setattr(
        LineCurve, "pure", lambda self: ib.Bound(0.9 * right(self), exact=True, reason="worst pair in closed form")
    )
    mechanism = ib.Laplace(ib.Interval(0, 1), scale=0.155, sensitivity=0.1)
    assert mechanism.epsilon() < 1.0
    found = audit(mechanism, epsilon=1.0)
    assert found.refuted
    assert "bug" in found.reason


def test_another_sensitivity_is_another_claim() -> None:
    age = ib.Laplace.calibrate(ib.Interval(0, 120), sensitivity=0.5, epsilon=1.0)
    assert audit(age, epsilon=1.0).proven
    assert audit(age, sensitivity=0.6, epsilon=1.0).refuted
    assert audit(age, sensitivity=0.4, epsilon=1.0).proven
    assert audit(age, sensitivity=0.4, epsilon=1.0).sensitivity == 0.4


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7])
def test_the_claim_holds_on_both_readings(epsilon: float) -> None:
    """0.1 is read as one tenth and as the float, which is more."""
    made = ib.Laplace.calibrate(ib.Interval(0, 10), sensitivity=1.0, epsilon=epsilon)
    assert audit(made, epsilon=epsilon).proven
    found = audit(made, epsilon=math.nextafter(float(made.epsilon()), 0.0))
    assert found.verdict == "undecided"
    assert "numerical error" in found.reason


def test_ties_of_decimals_are_neighbours() -> None:
    """The spans end 0.2 apart as decimals: the pair across the hole counts, whatever the last bit says."""
    spans = ib.Spans([(0.0, 0.1), (0.3, 0.5)])
    made = ib.Laplace.calibrate(spans, sensitivity=0.2, epsilon=1.0)
    assert audit(made, epsilon=1.0).real_epsilon == pytest.approx((1.0, 1.0), rel=1e-9)


# --- any family ---------------------------------------------------------------------------------


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("family", "kind"), CASES)
@pytest.mark.parametrize("log_concave", [True, False])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.3, 1e-4)])
def test_a_family_is_judged_like_the_mechanism(
    family: str, kind: str, log_concave: bool, epsilon: float, delta: float
) -> None:
    domain, sensitivity = DOMAINS[kind]
    endless = family == "gaussian" and delta == 0.0 and not domain.bounded
    scale = 3.0
    if not endless:
        made = MECHANISMS[family].calibrate(domain, sensitivity=sensitivity, epsilon=epsilon, delta=delta)
        scale = 0.99 * made.scale
    given = LocationFamily.from_kernel(KERNELS[family], domain, scale=scale, log_concave=log_concave, name=family)
    mechanism = MECHANISMS[family](domain, scale=scale, sensitivity=sensitivity)
    found = audit(given, sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    other = audit(mechanism, epsilon=epsilon, delta=delta)
    assert found.refuted
    assert other.refuted
    # from below, but not by much
    assert found.real_epsilon[0] <= other.real_epsilon[1] * (1 + 1e-9)
    assert found.real_delta[0] <= other.real_delta[1] * (1 + 1e-9)
    if delta == 0.0:
        assert found.real_epsilon[0] == pytest.approx(other.real_epsilon[0], rel=1e-6)
    assert found.real_delta[0] == pytest.approx(other.real_delta[0], rel=0.02)
    if endless:
        assert found.real_epsilon[0] == INF
    elif delta > 0.0:
        check_witness(found, family, mechanism)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("family", "kind"), CASES)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.3, 1e-4)])
def test_a_log_concave_family_can_be_proven(family: str, kind: str, epsilon: float, delta: float) -> None:
    domain, sensitivity = DOMAINS[kind]
    if delta == 0.0 and not domain.bounded:
        given = LocationFamily.from_kernel(KERNELS["laplace"], domain, scale=5 * sensitivity, log_concave=True)
        found = audit(given, sensitivity=sensitivity, epsilon=epsilon)
        assert found.verdict == "undecided"
        assert "open end" in found.reason
        return
    made = MECHANISMS[family].calibrate(domain, sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    given = LocationFamily.from_kernel(KERNELS[family], domain, scale=1.05 * made.scale, log_concave=True, name=family)
    found = audit(given, sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    assert found.proven
    assert any("trust" in a for a in found.assumptions)
    assert any("not by interval arithmetic" in a for a in found.assumptions)
    assert found.bound is not None
    assert found.bound <= (delta or epsilon)
    # the bound is above the truth
    truth = rescaled(made, 1.05)
    assert found.bound >= float(truth.delta(epsilon) if delta else truth.epsilon()) * (1 - 1e-6)
    # without the assumption nothing is proven
    searched = audit(
        dataclasses.replace(given, log_concave=False), sensitivity=sensitivity, epsilon=epsilon, delta=delta
    )
    assert searched.verdict == "undecided"
    assert "no proof" in searched.reason
    assert searched.bound is None
    assert searched.witness is not None


def test_the_nearer_pair_may_be_the_worse_one() -> None:
    """Noise on a lattice of step 1, with gaps: values 1 apart share outputs, values 0.5 apart do not."""

    def comb(x: Any, q: Any) -> Any:
        return np.where(np.abs((x - q + 0.5) % 1.0 - 0.5) < 0.1, 0.0, -20.0) - np.abs(x - q) / 4.0

    found = audit(LocationFamily(comb, ib.Interval(0, 6), name="comb"), sensitivity=1.0, epsilon=2.0)
    assert found.refuted
    assert found.witness is not None
    first, second = found.witness.pair
    assert abs(first - second) < 0.99
    assert found.witness.loss > 15
    x = np.linspace(0.0, 6.0, 6001)
    assert np.max(np.abs(comb(x, 2.0) - comb(x, 3.0))) <= 0.25 + 1e-12


def test_noise_that_cannot_reach_far() -> None:
    def cut(t: Any) -> Any:
        return np.where(np.abs(t) <= 1.0, -np.abs(t), -np.inf)

    family = LocationFamily.from_kernel(cut, ib.Interval(-INF, INF), scale=10.0, name="bounded noise")
    found = audit(family, sensitivity=1.0, epsilon=0.2)
    assert found.refuted
    assert found.witness is not None
    assert found.witness.loss == INF
    assert found.witness.likelihoods is not None
    assert found.witness.likelihoods[1] == 0.0
    share = (math.exp(-0.9) - math.exp(-1.0)) / (2.0 * (1.0 - math.exp(-1.0)))
    assert found.real_delta[0] == pytest.approx(share, rel=1e-6)
    assert json.loads(found.to_json())["witness"]["loss"] == "inf"


def test_what_happens_at_one_point_is_no_counterexample() -> None:
    def spike(x: Any, q: Any) -> Any:
        return np.where(x == q, 5.0, 0.0) - np.abs(x - q) / 10.0

    found = audit(LocationFamily(spike, ib.Interval(0, 1)), sensitivity=0.1, epsilon=1.0)
    assert found.verdict == "undecided"
    assert found.real_epsilon[0] < 0.1


def test_heavy_tails() -> None:
    """The loss of two Cauchy laws at distance 1 is 2 asinh(1/2)."""
    cauchy = LocationFamily(lambda x, q: -np.log1p((x - q) ** 2), ib.Interval(-INF, INF), name="Cauchy")
    found = audit(cauchy, sensitivity=1.0, epsilon=0.9)
    assert found.refuted
    assert found.real_epsilon[0] == pytest.approx(2.0 * math.asinh(0.5), rel=1e-5)
    assert audit(cauchy, sensitivity=1.0, epsilon=1.0).verdict == "undecided"


# --- wrong input --------------------------------------------------------------------------------


def laplace(x: Any, q: Any) -> Any:
    return -np.abs(x - q)


@pytest.mark.parametrize(
    ("log_density", "says"),
    [
        (lambda x, q: 1 / 0, "ZeroDivisionError"),
        (lambda x: x, "TypeError"),
        (lambda x, q: x * np.nan, "nan at x"),
        (lambda x, q: x + np.inf, "inf at x"),
        (lambda x, q: x - np.inf, "finite somewhere"),
        (lambda x, q: 3.0, "one value for each"),
        (lambda x, q: x * 1j, "real numbers"),
        (lambda x, q: "no", "real numbers"),
    ],
)
def test_unusable_densities(log_density: Any, says: str) -> None:
    with pytest.raises(ib.InboundsError, match="LocationFamily: log_density must be.*" + says):
        audit(LocationFamily(log_density, ib.Interval(0, 9)), sensitivity=1.0, epsilon=1.0)


@pytest.mark.parametrize(
    "log_density", [lambda x, q: 0.0 * x, lambda x, q: -0.5 * np.log1p((x - q) ** 2), lambda x, q: x - q]
)
@pytest.mark.parametrize("domain", [ib.Interval(0, INF), ib.Interval(-INF, INF)], ids=str)
def test_densities_of_infinite_mass(log_density: Any, domain: Any) -> None:
    with pytest.raises(ib.ParameterError, match="normalisable"):
        audit(LocationFamily(log_density, domain), sensitivity=1.0, epsilon=1.0)


def test_log_concavity_is_spot_checked() -> None:
    for family in (
        LocationFamily(lambda x, q: np.abs(x - q), ib.Interval(0, 9), log_concave=True),
        LocationFamily(lambda x, q: -np.abs(x - q) / (1.0 + q), ib.Interval(0, 9), log_concave=True),
        LocationFamily(lambda x, q: -np.log1p((x - q) ** 2), ib.Integers(0, 90), log_concave=True),
    ):
        with pytest.raises(ib.ParameterError, match="log_concave must be False"):
            audit(family, sensitivity=1.0, epsilon=1.0)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: LocationFamily("x", ib.Interval(0, 1)), ib.ParameterTypeError),
        (lambda: LocationFamily(laplace, (0, 1)), ib.ParameterTypeError),
        (lambda: LocationFamily(laplace, ib.Box([0], [1])), ib.ParameterTypeError),
        (lambda: LocationFamily(laplace, ib.Interval(0, 1), log_concave=1), ib.ParameterTypeError),
        (lambda: LocationFamily(laplace, ib.Interval(0, 1), name=3), ib.ParameterTypeError),
        (lambda: LocationFamily.from_kernel(3, ib.Interval(0, 1)), ib.ParameterTypeError),
        (lambda: LocationFamily.from_kernel(np.abs, ib.Interval(0, 1), scale=-1.0), ib.ParameterError),
        (lambda: LocationFamily.from_kernel(np.abs, ib.Interval(0, 1), scale=np.abs, log_concave=True), ValueError),
    ],
)
def test_unusable_families(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        make()
    assert isinstance(caught.value, ib.InboundsError)


def test_a_scale_that_is_no_scale() -> None:
    family = LocationFamily.from_kernel(KERNELS["laplace"], ib.Interval(0, 1), scale=lambda q: q)
    with pytest.raises(ib.ParameterError, match="scale must be a function with finite values above 0"):
        audit(family, sensitivity=0.1, epsilon=1.0)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"epsilon": -1.0}, ib.ParameterError),
        ({"epsilon": math.nan}, ib.ParameterError),
        ({"epsilon": "1"}, ib.ParameterTypeError),
        ({"epsilon": 501.0}, ib.ParameterError),
        ({"epsilon": 1.0, "delta": 1.0}, ib.ParameterError),
        ({"epsilon": 1.0, "delta": math.nan}, ib.ParameterError),
        ({"epsilon": 1.0, "sensitivity": 2.0}, ib.ParameterError),
        ({"epsilon": 1.0, "sensitivity": "a"}, ib.ParameterTypeError),
    ],
)
def test_unusable_claims(settings: dict[str, Any], error: type[Exception]) -> None:
    for subject in (
        ib.Laplace(ib.Interval(0, 1), scale=1.0, sensitivity=0.1),
        LocationFamily(laplace, ib.Interval(0, 1)),
    ):
        with pytest.raises(error):
            audit(subject, **({"sensitivity": 0.1} | settings))


def test_unusable_subjects() -> None:
    with pytest.raises(ib.ParameterTypeError, match="audit_sampler"):
        audit(laplace, sensitivity=1.0, epsilon=1.0)
    with pytest.raises(ib.ParameterError, match="sensitivity must be given"):
        audit(LocationFamily(laplace, ib.Interval(0, 1)), epsilon=1.0)
    wide = LocationFamily.from_kernel(KERNELS["laplace"], ib.Integers(-INF, INF), scale=1e6)
    with pytest.raises(ib.ParameterError, match="whole numbers matter"):
        audit(wide, sensitivity=1, epsilon=1.0)


# --- reports ------------------------------------------------------------------------------------


def reports() -> dict[str, Audit]:
    interval = ib.Interval(0, 1)
    return {
        "proven": audit(ib.Laplace.calibrate(interval, sensitivity=0.1, epsilon=1.0), epsilon=1.0),
        "refuted": audit(ib.Laplace(interval, scale=0.1, sensitivity=0.1), epsilon=1.0),
        "with delta": audit(ib.Gaussian(interval, scale=0.2, sensitivity=0.1), epsilon=0.5, delta=1e-6),
        "endless": audit(ib.Gaussian(ib.Interval(0, INF), scale=1.0, sensitivity=1.0), epsilon=1.0),
        "integers": audit(ib.Laplace(ib.Integers(0, 9), scale=1.0, sensitivity=1), epsilon=0.5),
        "clamped": audit(ib.Laplace(interval, scale=0.1, sensitivity=0.1, edges="clamp"), epsilon=0.5),
        "box": audit(ib.Gaussian(ib.Box([0, 1], [10, 9]), scale=5.0, sensitivity=ib.L2(4)), epsilon=0.1),
        "box with delta": audit(
            ib.Gaussian(ib.Box([0, 1], [10, 9]), scale=5.0, sensitivity=ib.L2(4), edges="ignore"),
            epsilon=0.5,
            delta=1e-6,
        ),
        "family": audit(
            LocationFamily.from_kernel(KERNELS["gaussian"], interval, scale=0.3, log_concave=True, name="bell"),
            sensitivity=0.1,
            epsilon=1.5,
        ),
        "family, undecided": audit(LocationFamily(laplace, interval), sensitivity=0.1, epsilon=1.0),
    }


@pytest.fixture(scope="module")
def made() -> dict[str, Audit]:
    return reports()


def test_reports_print(made: dict[str, Audit]) -> None:
    for found in made.values():
        text = str(found)
        assert found.verdict.upper() in text
        assert "claim" in text
        assert "in truth" in text
        assert 4 <= len(text.splitlines()) <= 8
    text = str(made["refuted"])
    assert "true values 0 and 0.1: at output 0 the loss is 1.48" in text
    assert "at most inf" not in text


def test_reports_export(made: dict[str, Audit]) -> None:
    for found in made.values():
        data = json.loads(found.to_json())
        assert data == found.to_dict()
        assert (data["format"], data["version"]) == ("inbounds.audit", 1)
        assert data["verdict"] == found.verdict
        assert set(data["real_epsilon"]) == {"lower", "upper"}
        assert found.witness is not None
        assert data["witness"]["violates"] == found.refuted
    assert json.loads(made["endless"].to_json())["real_epsilon"] == {"lower": "inf", "upper": "inf"}
    assert made["family, undecided"].to_dict()["bound"] is None


def test_reports_of_mechanisms_are_picklable(made: dict[str, Audit]) -> None:
    found = made["with delta"]
    assert pickle.loads(pickle.dumps(found)) == found


def test_reports_are_frozen(made: dict[str, Audit]) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        made["proven"].verdict = "refuted"  # type: ignore[misc]
    assert isinstance(made["proven"].witness, Witness)


def test_reports_plot(made: dict[str, Audit]) -> None:
    for found in made.values():
        figure = found.plot()
        loss, profile = figure.axes
        assert loss.lines
        assert len(profile.lines) >= 2
        figure.canvas.draw()
    shaded = made["refuted"].plot(Figure()).axes[0].collections
    assert shaded
    x = np.concatenate([path.vertices[:, 0] for path in shaded[0].get_paths()])
    assert x.min() == 0.0  # the outputs near the wall violate
    assert x.max() < 0.2


def test_plots_name_the_extra(made: dict[str, Audit], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"inbounds\[plots\]"):
        made["proven"].plot()


# --- the page and the example -------------------------------------------------------------------


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples/audit_sampler.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "PROVEN" in printed
    assert "PASS     law" in printed
    assert "PASS     low bits" in printed


@pytest.mark.parametrize("name", ["numerical", "family", "statistical"])
def test_docstring_examples_run(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"inbounds.auditing.{name}"))
    assert found.attempted > 0
    assert found.failed == 0

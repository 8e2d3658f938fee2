"""Every case of ``vectors/calibration.json``: agreement at the stated tolerance, and never on the unsafe side.

The stored values are good to 1e-10 in either direction, so safety is judged by the 50-digit loss at the float returned.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mpmath import mpf

import inbounds as ib
import inbounds.mechanism.additive
from tests import reference as ref
from tests.common import MECHANISMS, goal

CASES = json.loads((Path(__file__).parent / "vectors" / "calibration.json").read_text())["cases"]
INF = float("inf")


def named(case: dict[str, Any]) -> str:
    return f"{CASES.index(case)}-{case['kind']}"


def domain_of(kind: str, p: dict[str, Any]) -> Any:
    if "spans" in kind:
        return ib.Spans([(float(lo), float(hi)) for lo, hi in p["spans"]])
    if "box" in kind:
        return ib.Box(p["lower"], p["upper"])
    return ib.Interval(p["lower"], p.get("upper", INF))


def tolerance(kind: str) -> float:
    if "approx" in kind:
        return 1e-6
    return 1e-8 if "spans" in kind or "box" in kind else 1e-9


def calibrated(kind: str, p: dict[str, Any]) -> float:
    sensitivity = ib.L2(p["l2_sensitivity"]) if "l2_sensitivity" in p else p["sensitivity"]
    domain = domain_of(kind, p)
    family = MECHANISMS[kind.split(".")[0]]
    return family.calibrate(domain, sensitivity=sensitivity, epsilon=p["epsilon"], delta=p.get("delta")).scale


def reference_cost(kind: str, p: dict[str, Any], scale: float) -> tuple[Any, Any]:
    """What the scale costs by the reference, and the target: both epsilons, or both deltas."""
    family = kind.split(".")[0]
    if "approx" in kind:
        spans = [(p["lower"], p["upper"])]
        cost = ref.profile(family, scale, spans, p["sensitivity"], p["epsilon"], points=24, digits=12)
        return cost, goal(p["delta"])
    target = goal(float(p["epsilon"]))
    if "spans" in kind:
        spans = [(float(lo), float(hi)) for lo, hi in p["spans"]]
        return ref.pure_loss_spans(family, scale, spans, p["sensitivity"]), target
    if "box" in kind:
        return ref.worst_change_l2(family, scale, p["lower"], p["upper"], p["l2_sensitivity"]).loss, target
    return ref.pure_loss_interval(family, scale, p["lower"], p.get("upper", INF), p["sensitivity"]), target


def check_calibration(case: dict[str, Any]) -> None:
    kind, p = case["kind"], case["params"]
    scale = calibrated(kind, p)
    stored = mpf(case["expect"].get("scale") or case["expect"]["sigma"])
    assert abs(mpf(scale) / stored - 1) <= tolerance(kind)
    cost, target = reference_cost(kind, p, scale)
    assert cost <= target


CALIBRATIONS = [c for c in CASES if "renyi" not in c["kind"]]
DIVERGENCES = [c for c in CASES if "renyi" in c["kind"]]


def test_every_kind_is_covered() -> None:
    assert len(CALIBRATIONS) + len(DIVERGENCES) == len(CASES) >= 46
    assert {c["kind"] for c in CASES} == {
        "laplace.interval.pure",
        "laplace.half_line.pure",
        "laplace.spans.pure",
        "laplace.interval.approx",
        "laplace.interval.renyi",
        "gaussian.interval.pure",
        "gaussian.interval.approx",
        "gaussian.box.pure",
        "gaussian.interval.renyi",
    }


@pytest.mark.parametrize("case", CALIBRATIONS, ids=named)
def test_calibration(case: dict[str, Any]) -> None:
    check_calibration(case)


@pytest.mark.parametrize("case", DIVERGENCES, ids=named)
def test_divergence(case: dict[str, Any]) -> None:
    kind, p = case["kind"], case["params"]
    family, lower, upper = kind.split(".")[0], p["lower"], p["upper"]
    mechanism = MECHANISMS[family](ib.Interval(lower, upper), scale=p["scale"], sensitivity=upper - lower)
    found = mpf(mechanism.pair_rdp(p["p"], p["q"], p["alpha"]))
    assert abs(found / mpf(case["expect"]["divergence"]) - 1) <= 1e-9
    exact = ref.renyi_closed(family, p["scale"], [(lower, upper)], p["p"], p["q"], p["alpha"])
    assert abs(found / exact - 1) <= 1e-12
    assert mpf(mechanism.rdp(p["alpha"])) >= exact


@pytest.mark.thinned(4)
@pytest.mark.parametrize("factor", [0.99, 1.01, 1 - 1e-7])
@pytest.mark.parametrize("case", CALIBRATIONS, ids=named)
def test_wrong_scales_are_rejected(monkeypatch: pytest.MonkeyPatch, case: dict[str, Any], factor: float) -> None:
    if "approx" in case["kind"] and factor == 1 - 1e-7:
        factor = 1 - 3e-6
    right: Callable[..., float] = inbounds.mechanism.additive.calibrate
    monkeypatch.setattr(inbounds.mechanism.additive, "calibrate", lambda *a, **k: factor * right(*a, **k))
    with pytest.raises(AssertionError):
        check_calibration(case)

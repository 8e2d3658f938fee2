"""audit_sampler passes ours and flags ordinary samplers, written here; a correct one is flagged with odds of ALPHA."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

import inbounds as ib
from inbounds.auditing import SamplerAudit, audit_sampler, statistical
from tests.common import MECHANISMS

INF = math.inf
ALPHA = 1e-6
SURE = 1.0 - ALPHA
BOTH = ("law", "low bits")
INTERVAL = ib.Interval(0, 1)
SCALE = ib.Laplace.calibrate(INTERVAL, sensitivity=0.1, epsilon=1.0).scale
#: Neighbouring values: on two sides of a power of two, at the wall, and neither.
PAIRS = [(0.45, 0.55), (0.2, 0.3), (0.0, 0.1), (0.3, 0.4)]


# --- ordinary samplers --------------------------------------------------------------------------


def inverse(seed: int, scale: float = SCALE) -> Callable[..., Any]:
    """Truncated Laplace by the inverse of its distribution function, in double precision."""
    rng = np.random.default_rng(seed)

    def sampler(q: float, size: int) -> Any:
        low, high = 0.5 * np.exp(-q / scale), 1.0 - 0.5 * np.exp(-(1.0 - q) / scale)
        p = low + rng.random(size) * (high - low)
        y = np.where(p < 0.5, q + scale * np.log(2.0 * p), q - scale * np.log(2.0 * (1.0 - p)))
        return np.clip(y, 0.0, 1.0)

    return sampler


def rejection(seed: int, scale: float = SCALE) -> Callable[..., Any]:
    """Laplace noise, drawn again until the sum lies inside."""
    rng = np.random.default_rng(seed)

    def sampler(q: float, size: int) -> Any:
        y = q + rng.laplace(scale=scale, size=size)
        while (outside := np.flatnonzero((y < 0.0) | (y > 1.0))).size:
            y[outside] = q + rng.laplace(scale=scale, size=outside.size)
        return y

    return sampler


def rounded(sampler: Callable[..., Any], step: float = 2.0**-20) -> Callable[..., Any]:
    """The same, rounded to a grid: nothing is left in the low bits."""
    return lambda q, size: np.round(sampler(q, size) / step) * step


# --- ours pass ----------------------------------------------------------------------------------

OURS: dict[str, tuple[Any, Any, tuple[float, float]]] = {
    "interval": (INTERVAL, 0.1, (0.45, 0.55)),
    "wall": (INTERVAL, 0.1, (0.0, 0.1)),
    "half-line": (ib.Interval(0, INF), 0.1, (0.0, 0.1)),
    "line": (ib.Interval(-INF, INF), 0.1, (0.2, 0.3)),
    "spans": (ib.Spans([(0, 0.3), (0.5, 1)]), 0.2, (0.3, 0.5)),
    "integers": (ib.Integers(0, 30), 2, (0, 2)),
}


@pytest.mark.thinned(5)
@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("kind", OURS)
@pytest.mark.parametrize("edges", ["truncate", "clamp"])
def test_ours_pass(family: str, kind: str, edges: str) -> None:
    domain, sensitivity, pair = OURS[kind]
    mechanism = MECHANISMS[family].calibrate(
        domain, sensitivity=sensitivity, epsilon=1.0, delta=1e-3 if family == "gaussian" else None, edges=edges
    )
    delta = 1e-3 if family == "gaussian" else 0.0
    found = audit_sampler(mechanism, pair, epsilon=1.0, delta=delta, confidence=SURE, checks=BOTH, draws=50_000)
    assert found.passed, str(found)
    # what was seen is true: not above what the mechanism has
    assert 0.0 < found.epsilon_lower <= 1.0
    assert found.delta_lower <= delta
    bits = found["low bits"].figures["finest_bits"]
    assert bits[0] == bits[1] == round(math.log2(mechanism.grid))


# --- others are flagged -------------------------------------------------------------------------


@pytest.mark.thinned(3)
@pytest.mark.parametrize("make", [inverse, rejection])
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_low_bits_give_ordinary_samplers_away(make: Any, pair: tuple[float, float]) -> None:
    found = audit_sampler(make(1), pair, epsilon=1.0, confidence=SURE, checks=BOTH)
    assert found.flagged == ("low bits",), str(found)
    assert found["low bits"].figures["epsilon_lower"] > 3.0
    # it is the last bits: on a grid the same draws pass
    assert audit_sampler(rounded(make(2)), pair, epsilon=1.0, confidence=SURE, checks=BOTH).passed


@pytest.mark.parametrize("pair", [(0.0, 0.1), (1.0, 0.9)], ids=str)
@pytest.mark.parametrize("make", ["ours", "rejection"])
def test_too_small_a_scale_is_flagged(make: str, pair: tuple[float, float]) -> None:
    scale = 0.7 * SCALE
    sampler: Any = (
        ib.Laplace(INTERVAL, scale=scale, sensitivity=0.1) if make == "ours" else rounded(rejection(3, scale))
    )
    found = audit_sampler(sampler, pair, epsilon=1.0, confidence=SURE, checks=BOTH, draws=400_000)
    assert found.flagged == ("law",), str(found)
    truth = float(ib.Laplace(INTERVAL, scale=scale, sensitivity=0.1).epsilon())
    assert 1.0 < found.epsilon_lower <= truth
    assert 0.0 < found.delta_lower <= float(ib.Laplace(INTERVAL, scale=scale, sensitivity=0.1).delta(1.0))
    # what the low bits tell here the size of the output tells as well: that check is about more than that
    assert found["low bits"].status == "pass"


def test_a_leak_in_single_values_is_flagged() -> None:
    """Whole numbers, one of which comes out for one true value only."""
    rng = np.random.default_rng(5)

    def sampler(q: float, size: int) -> Any:
        return np.where(rng.random(size) < 0.01, 3 if q == 0 else 4, rng.integers(0, 3, size))

    found = audit_sampler(sampler, (0, 1), epsilon=1.0, confidence=SURE, checks=("law",))
    assert found.flagged == ("law",)
    assert found.epsilon_lower > 2.0
    with_delta = audit_sampler(sampler, (0, 1), epsilon=0.1, delta=0.02, confidence=SURE, checks=("law",))
    assert with_delta.passed
    assert 0.005 < with_delta.delta_lower < 0.01


def test_without_a_claim_nothing_is_judged() -> None:
    found = audit_sampler(rejection(6), (0.45, 0.55), checks=BOTH, draws=20_000)
    assert found.passed
    assert [c.status for c in found.checks] == ["measured", "measured"]
    assert found.epsilon_lower > 2.0
    assert math.isnan(found.delta_lower)
    assert found.to_dict()["delta_lower"] is None


# --- the bounds hold ----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [10, 1000])
@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_clopper_and_pearson(n: int, alpha: float) -> None:
    k = np.arange(n + 1)
    low, high = statistical._lower(k, n, alpha), statistical._upper(k, n, alpha)
    inner = slice(1, n)
    assert np.allclose(low[inner], stats.beta.ppf(alpha, k, n - k + 1)[inner], rtol=1e-9)
    assert np.allclose(high[inner], stats.beta.ppf(1 - alpha, k + 1, n - k)[inner], rtol=1e-9)
    assert (low[0], high[-1]) == (0.0, 1.0)
    # the definition: at the bound, what was seen or more has probability alpha
    assert np.allclose(stats.binom.sf(k[inner] - 1, n, low[inner]), alpha, rtol=1e-6)
    assert np.allclose(stats.binom.cdf(k[inner], n, high[inner]), alpha, rtol=1e-6)


def test_the_confidence_is_kept() -> None:
    """Randomised response at epsilon = 1: the bound may exceed it in a share 1 - confidence of all audits."""
    rng = np.random.default_rng(7)
    keep = math.e / (1.0 + math.e)

    def sampler(q: float, size: int) -> Any:
        return np.where(rng.random(size) < keep, q, 1.0 - q)

    bounds = [
        audit_sampler(sampler, (0, 1), draws=1000, confidence=0.8, epsilon=1.0, checks=("law",)).epsilon_lower
        for _ in range(400)
    ]
    wrong = np.count_nonzero(np.array(bounds) > 1.0)
    # an honest share of at most 0.2; more than this has probability below ALPHA
    assert wrong <= stats.binom.ppf(1.0 - ALPHA, 400, 0.2)
    # and the bound is not idle
    assert np.median(bounds) > 0.8


# --- timing, with a clock of our own ------------------------------------------------------------


class Clock:
    """Time that passes only while a sampler works."""

    def __init__(self, seconds: Callable[[float], float]) -> None:
        self.now, self.seconds = 0.0, seconds
        self.rng = np.random.default_rng(8)

    def __call__(self) -> float:
        return self.now

    def sampler(self, q: float) -> float:
        self.now += self.seconds(q) * (1.0 + 0.2 * self.rng.random())
        return q


@pytest.mark.parametrize(("factor", "status"), [(1.0, "pass"), (1.03, "pass"), (1.3, "flag"), (1 / 1.3, "flag")])
def test_timing(factor: float, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(lambda q: 1e-5 * (factor if q == 0 else 1.0))
    monkeypatch.setattr(statistical, "_clock", clock)
    found = audit_sampler(clock.sampler, (0.0, 1.0), draws=1000, confidence=SURE, checks=("timing",))
    check = found["timing"]
    assert check.status == status
    assert check.figures["ratio"] == pytest.approx(factor, rel=0.03)
    low, high = check.figures["interval"]
    assert low <= factor <= high
    assert found.passed == (status == "pass")


def test_timing_of_a_batched_sampler_and_a_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are called; no claim about how fast this machine is."""
    ticks = iter(np.arange(1e-3, 1e4, 1e-3))
    monkeypatch.setattr(statistical, "_clock", lambda: float(next(ticks)))
    for sampler in (rejection(9), ib.Laplace(INTERVAL, scale=0.2, sensitivity=0.1)):
        found = audit_sampler(sampler, (0.0, 0.5), draws=1000, checks=("timing",))
        assert found["timing"].status == "pass"
        assert found["timing"].figures["ratio"] == pytest.approx(1.0)


# --- how samplers are called --------------------------------------------------------------------


def test_one_draw_at_a_time() -> None:
    mechanism = ib.Laplace.calibrate(INTERVAL, sensitivity=0.1, epsilon=1.0)
    calls: list[float] = []

    def sampler(q: float) -> Any:
        calls.append(q)
        return mechanism.release(q).value

    found = audit_sampler(sampler, (0.2, 0.3), draws=1000, epsilon=1.0, confidence=SURE, checks=BOTH)
    assert found.passed
    assert len(calls) == 2000
    assert "sampler" in found.subject


def test_how_a_size_is_recognised() -> None:
    def many(q: float, size: int = 1) -> Any:
        return np.full(size, q)

    def other(q: float, scale: float = 1.0) -> float:
        return q * scale

    assert audit_sampler(many, (0.0, 1.0), draws=1000, checks=("law",)).epsilon_lower > 1.0
    assert audit_sampler(other, (0.0, 1.0), draws=1000, checks=("law",)).epsilon_lower > 1.0
    assert audit_sampler(lambda q, n: [q] * n, (0.0, 1.0), draws=1000, checks=("law",)).draws == 1000
    assert audit_sampler(float, (0.0, 1.0), draws=1000, checks=("law",)).subject == "float"
    with pytest.raises(ib.ParameterError, match="batched"):
        audit_sampler(other, (0.0, 1.0), draws=1000, batched=True, checks=("low bits",))


def broken(q: float) -> float:
    raise RuntimeError("no")


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"sampler": 3}, ib.ParameterTypeError, "a function of q"),
        ({"sampler": broken}, ib.ParameterError, "RuntimeError: no"),
        ({"sampler": lambda q: "x"}, ib.ParameterTypeError, "real numbers"),
        ({"sampler": lambda q: math.nan}, ib.ParameterError, "finite"),
        ({"sampler": lambda q: [q, q]}, ib.ParameterError, "of shape"),
        ({"sampler": lambda q, size: np.zeros(3)}, ib.ParameterError, "of shape"),
        ({"sampler": ib.Laplace(ib.Box([0], [1]), scale=1, sensitivity=[1])}, ib.ParameterError, "one-dimensional"),
        ({"pair": (1.0, 1.0)}, ib.ParameterError, "two different"),
        ({"pair": 1.0}, ib.ParameterTypeError, "two true values"),
        ({"pair": (0.0, math.nan)}, ib.ParameterError, r"pair\[1\]"),
        ({"draws": 10}, ib.ParameterError, "draws"),
        ({"draws": 1e9}, ib.ParameterError, "draws"),
        ({"confidence": 1.0}, ib.ParameterError, "confidence"),
        ({"epsilon": -1.0}, ib.ParameterError, "epsilon"),
        ({"delta": 2.0}, ib.ParameterError, "delta"),
        ({"checks": "law"}, ib.ParameterTypeError, "checks"),
        ({"checks": ()}, ib.ParameterTypeError, "checks"),
        ({"checks": ("speed",)}, ib.ParameterError, "checks"),
        ({"batched": 1}, ib.ParameterTypeError, "batched"),
    ],
)
def test_unusable_input(settings: dict[str, Any], error: type[Exception], says: str) -> None:
    given: dict[str, Any] = {"sampler": lambda q: q, "pair": (0.0, 1.0), "draws": 1000, "checks": ("law",)} | settings
    with pytest.raises(error, match=says):
        audit_sampler(given.pop("sampler"), given.pop("pair"), **given)


def test_a_value_outside_the_domain_stays_an_error_of_its_own() -> None:
    with pytest.raises(ib.OutsideDomain):
        audit_sampler(ib.Laplace(INTERVAL, scale=1.0, sensitivity=0.1), (0.0, 2.0))


# --- last bits ----------------------------------------------------------------------------------


def test_last_bits() -> None:
    exponent, place, ending = statistical.last_bits(np.array([1.0, 0.75, 3 * 2.0**-60, 0.1, 0.0, -0.75]))
    assert exponent.tolist()[:3] == [1, 0, -58]
    assert place.tolist() == [0, -2, -60, -55, 1100, -2]
    assert ending.tolist() == [0, 0, 0, (0.1).as_integer_ratio()[0] * 2 % 16, 0, 0]


# --- reports ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made() -> SamplerAudit:
    return audit_sampler(rejection(10), (0.45, 0.55), draws=20_000, epsilon=1.0, delta=1e-6)


def test_reports_print_and_export(made: SamplerAudit) -> None:
    text = str(made)
    assert "FLAG     low bits" in text
    assert "confidence 0.999" in text
    assert len(text.splitlines()) == 6
    data = json.loads(made.to_json())
    assert data == made.to_dict()
    assert (data["format"], data["version"]) == ("inbounds.sampler_audit", 1)
    assert [c["name"] for c in data["checks"]] == ["law", "low bits", "timing"]
    assert "low bits" in data["flagged"]


def test_reports_plot(made: SamplerAudit) -> None:
    for figure in (made.plot(), made.plot(Figure())):
        draws, ratio, times = figure.axes
        assert draws.patches
        assert ratio.lines
        assert times.patches
        figure.canvas.draw()
    only = audit_sampler(rejection(11), (0.45, 0.55), draws=1000, checks=("low bits",))
    assert len(only.plot().axes) == 3

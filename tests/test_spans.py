"""Pure epsilon on spans with holes: safe at 50 digits at the float returned, and tight; the loss is not monotone."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from mpmath import mp, mpf

import inbounds as ib
import inbounds.mechanism.additive
from tests import reference as ref
from tests.common import MECHANISMS, broken, goal

pytestmark = pytest.mark.thinned(3)

FAMILIES = tuple(MECHANISMS)
INF = float("inf")
NEAR = 1 - mpf(10) ** -7
Ends = list[tuple[float, float]]

LAPLACE_BUMP: Ends = [(0.0, 0.03), (2.2, 2.21), (11.0, 13.0)]
GAUSSIAN_BUMP: Ends = [(0.0, 4.0), (26.8, 26.85), (34.2, 34.3)]


def scale_of(family: str, spans: Ends, sensitivity: float, epsilon: float, **more: Any) -> float:
    return MECHANISMS[family].calibrate(ib.Spans(spans), sensitivity=sensitivity, epsilon=epsilon, **more).scale


def loss_of(family: str, scale: Any, spans: Ends, sensitivity: float) -> Any:
    """The loss; where a hole is as wide as the sensitivity also with everything read as the decimals it prints as.

    There it hangs on the reading which pairs are feasible. Ends with all their digits are floats and nothing else.
    """
    as_floats = ref.pure_loss_spans(family, scale, spans, sensitivity)
    decimals = [(repr(lo), repr(hi)) for lo, hi in spans]
    if ties(spans, sensitivity):
        return max(as_floats, ref.pure_loss_spans(family, scale, decimals, repr(sensitivity)))
    return as_floats


def ties(spans: Ends, sensitivity: float) -> bool:
    """Whether two ends are as far apart as the sensitivity, up to rounding."""
    ends = [e for span in spans for e in span if math.isfinite(e)]
    size = max(map(abs, ends), default=0.0)
    if any(len(repr(abs(e))) > 12 for e in ends):
        return False
    return any(abs(abs(a - b) - sensitivity) <= 1e-14 * size for a in ends for b in ends)


def check(family: str, spans: Ends, sensitivity: float, epsilon: float, near: Any = NEAR) -> None:
    scale = scale_of(family, spans, sensitivity, epsilon)
    setting = (family, spans, sensitivity, epsilon, scale)
    target = goal(epsilon)
    assert loss_of(family, scale, spans, sensitivity) <= target, setting
    if epsilon >= 1e-3:
        assert loss_of(family, mpf(scale) * near, spans, sensitivity) > target, setting


# --- generated settings ------------------------------------------------------------------------


def drawn(rng: random.Random, family: str) -> tuple[Ends, float, float]:
    digits = rng.choice((1, 2, 15))  # few: ends and sensitivities coincide as decimals, not as floats
    step = 10.0**-digits
    x = rng.choice((0.0, 0.0, rng.uniform(-100, 100)))
    spans: Ends = []
    for _ in range(rng.randint(1, 8)):
        lo = round(x + max(10 ** rng.uniform(-2, 1), step), digits)
        x = round(lo + max(10 ** rng.uniform(-2, 1), step), digits)
        spans.append((lo, x))
    if family == "laplace":
        if rng.random() < 0.2:
            spans[0] = (-INF, spans[0][1])
        if rng.random() < 0.2:
            spans[-1] = (spans[-1][0], INF)
    width = spans[-1][1] - spans[0][0]
    kinds = [0.1, 0.3, 1.0, 10 ** rng.uniform(-2, 1), min(width, 40.0) * rng.random()]
    if len(spans) > 1:
        k = rng.randrange(len(spans) - 1)
        hole = float(f"{spans[k + 1][0] - spans[k][1]:.12g}")
        kinds += [hole, hole, float(f"{spans[k + 1][0] - spans[k][1] + 1:.12g}")]
    sensitivity = min(rng.choice(kinds), width)
    epsilon = 10 ** rng.choice((rng.uniform(-3, math.log10(50)), rng.uniform(-1, 1), rng.uniform(-9, -3)))
    return spans, sensitivity, float(f"{epsilon:.3g}") if rng.random() < 0.5 else epsilon


def check_drawn(family: str, seed: int, count: int) -> None:
    rng = random.Random(f"{family} {seed}")
    for _ in range(count):
        check(family, *drawn(rng, family))


@pytest.mark.parametrize("family", FAMILIES)
def test_generated_spans(family: str) -> None:
    check_drawn(family, 1, 100)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("family", FAMILIES)
def test_generated_spans_many(family: str, seed: int) -> None:
    check_drawn(family, 100 + seed, 250)


def narrow(rng: random.Random) -> tuple[Ends, float, float]:
    """Spans far narrower than their distance from the first end and from zero, where ends lose digits if shifted."""
    x = rng.choice((0.0, 1.0, -1.0)) * 10 ** rng.uniform(-1, rng.choice((1, 6, 9)))
    spans: Ends = []
    while len(spans) < 3:
        lo = x + 10 ** rng.uniform(-3, 0.5)
        hi = lo + 10 ** rng.uniform(-12, 0)
        if x < lo < hi:
            spans.append((lo, hi))
            x = hi
    width = spans[-1][1] - spans[0][0]
    return spans, width * rng.choice((1.0, rng.uniform(0.3, 1))), 10 ** rng.uniform(-1, math.log10(50))


@pytest.mark.parametrize("family", FAMILIES)
def test_narrow_spans(family: str) -> None:
    rng = random.Random(f"narrow {family}")
    for _ in range(100):
        check(family, *narrow(rng), near=1 - mpf(10) ** -6)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("offset", [0.0, 0.1, 0.7, 3.3])
def test_one_narrow_span_away_from_the_first_end(family: str, offset: float) -> None:
    for width in (1e-6, 1e-9, 1e-11, 1e-13):
        lo = offset + 2.2
        for epsilon in (0.5, 5.0, 40.0):
            check(family, [(offset, offset + 0.9), (lo, lo + width), (lo + 1.7, lo + 1.9)], 2.0, epsilon)


@pytest.mark.parametrize(
    ("family", "spans", "sensitivity", "epsilon"),
    [
        ("gaussian", [(0.8, 1.8), (3.9, 3.90000000000001)], 3.1, 40.0),
        ("laplace", [(0.7, 1.6), (2.9, 2.9000000000001), (4.6, 4.8)], 2.0, 40.0),
    ],
)
def test_spans_a_few_units_in_the_last_place_wide(family: str, spans: Ends, sensitivity: float, epsilon: float) -> None:
    check(family, spans, sensitivity, epsilon, near=1 - mpf(10) ** -6)


def test_many_spans() -> None:
    spans = [(0.3 * k, 0.3 * k + 0.2) for k in range(40)]
    for sensitivity in (0.1, 0.25):
        check("laplace", spans, sensitivity, 0.8)
    check("gaussian", spans[:15], 0.25, 0.8)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_span_is_an_interval(family: str) -> None:
    for lower, upper, sensitivity, epsilon in ((0, 10, 1, 0.1), (0.1, 0.7, 0.6, 1), (1e9, 1e9 + 1, 0.5, 3)):
        interval = MECHANISMS[family].calibrate(ib.Interval(lower, upper), sensitivity=sensitivity, epsilon=epsilon)
        assert scale_of(family, [(lower, upper)], sensitivity, epsilon) == pytest.approx(interval.scale, rel=1e-9)


# --- ties: a hole exactly as wide as the sensitivity -------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 10.0])
@pytest.mark.parametrize(
    ("spans", "sensitivity"),
    [
        ([(0.0, 0.3), (0.4, 1.0)], 0.1),  # 0.4 - 0.3 > 0.1 as floats
        ([(0.29, 0.3), (0.4, 0.41)], 0.1),  # and here no other pair comes near that one
        ([(0.0, 0.7), (0.8, 1.0)], 0.1),  # 0.8 - 0.7 > 0.1 as floats
        ([(0.1, 0.2), (0.3, 0.4)], 0.1),
        ([(0.1, 0.2), (0.5, 0.6)], 0.3),
        ([(0.0, 0.1), (0.3, 0.4), (0.6, 0.7)], 0.2),
        ([(10.0, 10.3), (10.4, 11.0)], 0.1),
        ([(-0.4, -0.3), (-0.2, 0.9)], 0.1),
        ([(1000.1, 1000.2), (1000.3, 1000.7)], 0.1),
    ],
)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_tie_is_feasible(family: str, spans: Ends, sensitivity: float, epsilon: float) -> None:
    assert ties(spans, sensitivity)
    check(family, spans, sensitivity, epsilon)


def test_a_tie_counts() -> None:
    """Just below the width of the hole its two sides are no pair; at it they are, and the scale jumps."""
    for family in FAMILIES:
        below = scale_of(family, [(0.29, 0.3), (0.4, 0.41)], 0.0999, 3.0)
        at = scale_of(family, [(0.29, 0.3), (0.4, 0.41)], 0.1, 3.0)
        assert at > 1.2 * below


# --- the loss is not monotone in the scale -----------------------------------------------------


def test_laplace_bump() -> None:
    def loss(scale: Any) -> Any:
        return ref.pure_loss_spans("laplace", scale, LAPLACE_BUMP, 3.9)

    assert float(loss(2.145)) == pytest.approx(1.0610, abs=1e-4)
    assert float(loss(2.73)) == pytest.approx(1.1062, abs=1e-4)
    scale = scale_of("laplace", LAPLACE_BUMP, 3.9, 1.08)
    assert scale == pytest.approx(3.08899, abs=1e-5)
    last = ref.smallest_scale(loss, goal(1.08), 2.73, 3.9 * 2 / 1.08, digits=30)
    assert last <= scale <= last * (1 + mpf(10) ** -8)
    # the two earlier roots exist and are passed over
    for low, high, root in ((1.9, 2.145, 2.0770), (2.145, 2.4, 2.2603)):
        assert (loss(low) > goal(1.08)) != (loss(high) > goal(1.08))
        assert (loss(root - 1e-3) > goal(1.08)) != (loss(root + 1e-3) > goal(1.08))


def test_gaussian_bump() -> None:
    def loss(scale: Any) -> Any:
        return ref.pure_loss_spans("gaussian", scale, GAUSSIAN_BUMP, 14.0)

    assert float(loss(11)) == pytest.approx(1.0690, abs=1e-4)
    assert float(loss(11.5)) == pytest.approx(1.0877, abs=1e-4)
    check("gaussian", GAUSSIAN_BUMP, 14.0, 1.08)
    assert scale_of("gaussian", GAUSSIAN_BUMP, 14.0, 1.08) > 11.5


@pytest.mark.parametrize(
    ("family", "spans", "sensitivity", "epsilon"),
    [
        ("laplace", LAPLACE_BUMP, 3.9, 1.08),
        ("laplace", LAPLACE_BUMP, 3.9, 1.1),
        ("laplace", [(0.0, 0.3), (0.4, 1.0)], 0.1, 3.0),
        ("gaussian", GAUSSIAN_BUMP, 14.0, 1.08),
        ("gaussian", GAUSSIAN_BUMP, 14.0, 1.075),
    ],
)
def test_more_noise_stays_safe(family: str, spans: Ends, sensitivity: float, epsilon: float) -> None:
    scale = mpf(scale_of(family, spans, sensitivity, epsilon))
    for k in range(60):
        assert loss_of(family, scale * mpf(2) ** (mpf(k) / 32), spans, sensitivity) <= goal(epsilon)


@pytest.mark.parametrize("family", FAMILIES)
def test_reported_epsilon_is_not_below_the_truth(family: str) -> None:
    rng = random.Random(21)
    for _ in range(60):
        spans, sensitivity, epsilon = drawn(rng, family)
        mechanism = MECHANISMS[family].calibrate(ib.Spans(spans), sensitivity=sensitivity, epsilon=epsilon)
        truth = loss_of(family, mechanism.scale, spans, sensitivity)
        assert truth <= mpf(mechanism.epsilon()) <= goal(epsilon)


# --- the metric guarantee ----------------------------------------------------------------------


def places(lo: float, hi: float, points: int, window: float) -> list[Any]:
    """Points of one span, with very close ones at its finite ends; an infinite end is cut at a window."""
    low = mpf(lo) if math.isfinite(lo) else mpf(hi) - window
    high = mpf(hi) if math.isfinite(hi) else mpf(lo) + window
    found = [low + (high - low) * k / points for k in range(points + 1)]
    found.append(low + (high - low) * mpf(10) ** -12)
    found.append(high - (high - low) * mpf(10) ** -12)
    return found


def steepest(family: str, scale: Any, spans: Ends, points: int = 3) -> Any:
    """The largest loss per unit of distance over all pairs of a grid of the spans."""
    grid = sorted({x for lo, hi in spans for x in places(lo, hi, points, 3.0)})
    with mp.workdps(60):
        pieces = ref._pieces(spans)
        bottom, top = pieces[0][0], pieces[-1][1]
        logs = [mp.log(ref._weight(family, mpf(scale), q, pieces, False)) for q in grid]
        best = mpf(0)
        for i, q in enumerate(grid):
            for j in range(i + 1, len(grid)):
                q2, shift = grid[j], logs[j] - logs[i]
                up = ref._exponent_gap(family, mpf(scale), q, q2, bottom) + shift
                down = ref._exponent_gap(family, mpf(scale), q2, q, top) - shift
                best = max(best, max(up, down) / (q2 - q))
    return best


def check_metric(family: str, spans: Ends, sensitivity: float, epsilon: float) -> None:
    scale = scale_of(family, spans, sensitivity, epsilon, guarantee="metric")
    rate = goal(epsilon) / mpf(sensitivity)
    setting = (family, spans, sensitivity, epsilon, scale)
    assert steepest(family, scale, spans) <= rate, setting
    # the grid's closest pairs are 1e-12 of a span apart: that near it comes to the supremum
    assert steepest(family, mpf(scale) * NEAR, spans) > rate, setting


@pytest.mark.parametrize("family", FAMILIES)
def test_metric_against_every_pair_of_a_grid(family: str) -> None:
    rng = random.Random(22)
    for _ in range(40):
        spans, sensitivity, epsilon = drawn(rng, family)
        check_metric(family, spans, sensitivity, max(epsilon, 1e-3))


def test_metric_with_a_finite_outer_end() -> None:
    rng = random.Random(23)
    for _ in range(100):
        spans, sensitivity, epsilon = drawn(rng, "laplace")
        exact = 2 * mpf(sensitivity) / goal(epsilon)
        scale = scale_of("laplace", spans, sensitivity, epsilon, guarantee="metric")
        open_ended = math.isinf(spans[0][0]) and math.isinf(spans[-1][1])
        if open_ended:
            assert mpf(sensitivity) / goal(epsilon) <= scale <= exact * (1 + mpf(10) ** -9)
        else:
            assert exact <= scale <= exact * (1 + mpf(10) ** -9)


def test_metric_open_at_both_ends_needs_less() -> None:
    """Croft, Sack and Shi's arbitrary constraints: at a span end the mass removed on either side counts."""
    spans: Ends = [(-INF, 0.0), (1.0, INF)]
    scale = mpf(scale_of("laplace", spans, 1.0, 1.0, guarantee="metric"))
    # at 0: everything to the left is there, to the right the hole is missing
    left, right = mpf(1), mp.exp(-1 / scale)
    assert (1 + (left - right) / (left + right)) / scale <= 1
    smaller = scale * (1 - mpf(10) ** -9)
    right = mp.exp(-1 / smaller)
    assert (1 + (left - right) / (left + right)) / smaller > 1
    assert 1 < scale < 2


# --- targets that cannot be met ----------------------------------------------------------------


@pytest.mark.parametrize("spans", [[(0, 1), (2, INF)], [(-INF, 1), (2, 3)], [(-INF, 1), (2, INF)]])
@pytest.mark.parametrize("guarantee", ["adjacent", "metric"])
def test_no_pure_epsilon_for_unbounded_gaussian_outputs(spans: Ends, guarantee: str) -> None:
    with pytest.raises(ib.UnreachableTarget, match=r"no pure epsilon.*delta.*rho, rdp.*Laplace.*bounded"):
        scale_of("gaussian", spans, 1, 1, guarantee=guarantee)


@pytest.mark.parametrize("guarantee", ["adjacent", "metric"])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-14, 1e-15, 1e-18, 1e-300])
@pytest.mark.parametrize("family", FAMILIES)
def test_absurdly_small_epsilon_is_met_or_refused(family: str, epsilon: float, guarantee: str) -> None:
    spans: Ends = [(0.0, 1.0), (2.0, 3.0)]
    try:
        scale = scale_of(family, spans, 1.0, epsilon, guarantee=guarantee)
    except ib.InboundsError:
        return
    with mp.workdps(400):
        assert ref.pure_loss_spans(family, scale, spans, 1.0, dps=350) <= goal(epsilon)


# --- the checks above can fail -----------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.99, 1 - 1e-8, 1 + 2e-7, 1.01])
@pytest.mark.parametrize("family", FAMILIES)
def test_wrong_scales_are_rejected(monkeypatch: pytest.MonkeyPatch, family: str, factor: float) -> None:
    broken(monkeypatch, factor)
    for spans, sensitivity, epsilon in (
        ([(0.0, 0.3), (0.4, 1.0)], 0.1, 3.0),
        ([(0.7, 2.3), (2.89, 3.15)], 1.0, 0.2),
        ([(0.0, 1.0), (5.0, 6.0)], 5.5, 1.0),
        (LAPLACE_BUMP, 3.9, 2.0),
    ):
        with pytest.raises(AssertionError):
            check(family, spans, sensitivity, epsilon)
        with pytest.raises(AssertionError):
            check_metric(family, spans, sensitivity, epsilon)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_overlooked_tie_is_rejected(monkeypatch: pytest.MonkeyPatch, family: str) -> None:
    """Calibrating for a little less than the sensitivity misses the pair across the hole."""
    right: Callable[..., float] = inbounds.mechanism.additive.calibrate

    def less(what: str, noise: str, domain: Any, sensitivity: float, *a: Any, **k: Any) -> float:
        return right(what, noise, domain, sensitivity * (1 - 1e-12), *a, **k)

    monkeypatch.setattr(inbounds.mechanism.additive, "calibrate", less)
    spans, epsilon = [(0.29, 0.3), (0.4, 0.41)], 3.0
    assert loss_of(family, scale_of(family, spans, 0.1, epsilon), spans, 0.1) > 1.2 * epsilon
    with pytest.raises(AssertionError):
        check(family, spans, 0.1, epsilon)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_delta_below_what_can_be_verified_is_refused(family: str) -> None:
    with pytest.raises(ib.UnreachableTarget, match="double precision"):
        MECHANISMS[family].calibrate(ib.Spans([(0, 1), (2, 3)]), sensitivity=1, epsilon=0, delta=1e-20)


def test_a_loss_hidden_by_rounding_is_not_taken_for_none() -> None:
    spans, scale = [(0.0, 1.0), (2.0, 3.0)], 1e15
    truth = ref.pure_loss_spans("laplace", scale, spans, 1.0)
    epsilon = float(truth) * 0.9
    assert ib.Laplace(ib.Spans(spans), scale=scale, sensitivity=1).delta(epsilon) >= ref.profile(
        "laplace", scale, spans, 1.0, epsilon
    )

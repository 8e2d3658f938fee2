"""delta(epsilon), epsilon(delta) and their calibration against the 50-digit reference: never below it, and tight."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from mpmath import mpf

import inbounds as ib
from inbounds.noise.gaussian import GaussianOn
from inbounds.noise.laplace import LaplaceOn
from inbounds.noise.support import Support
from tests import reference as ref
from tests.common import MECHANISMS as FAMILIES
from tests.common import domain_of

pytestmark = pytest.mark.thinned(3)

INF = math.inf
NOISE: dict[str, Any] = {"laplace": LaplaceOn, "gaussian": GaussianOn}
TIGHT = mpf("1e-5")


def truth(family: str, scale: float, spans: Any, gap: float, epsilon: float, *, lattice: bool = False) -> Any:
    """The largest divergence found: a scan of the whole domain and, where that is long, one near its walls."""
    points = 36 if len(spans) == 1 else 100
    found = ref.profile(family, scale, spans, gap, epsilon, points, lattice=lattice, digits=6, dps=30)
    if len(spans) == 1 and not lattice and 20 * scale < spans[0][1] - spans[0][0] < INF:
        near = ref.worst_pair(
            lambda q, q2: ref.hockey_stick(family, scale, spans, q, q2, epsilon, dps=30),
            [(spans[0][0], INF)],
            gap,
            window=12 * scale,
            points=points,
            digits=6,
            dps=30,
        )
        found = max(found, near.value)
    return found


def check(value: ib.Bound, exact: Any, floor: float = 0.0) -> None:
    """Never below the reference, with no tolerance; close to it where it is called exact."""
    assert value >= exact
    if value.exact:
        assert value - exact <= TIGHT * exact + floor


# --- delta(epsilon) --------------------------------------------------------------------------


CONTINUOUS = [
    ([(0.0, 1.0)], 0.1, (0.02, 0.3, 2.0)),
    ([(0.0, 1.0)], 1.0, (0.3, 1.0)),
    ([(-3.0, 5.0)], 1e-3, (1e-3, 0.05)),
    ([(1e9, 1e9 + 4.0)], 0.5, (0.5,)),
    ([(0.0, INF)], 1.0, (0.8, 3.0)),
    ([(-INF, 2.0)], 0.5, (0.3,)),
    ([(-INF, INF)], 1.0, (0.7,)),
]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("spans", "gap", "scales"), CONTINUOUS)
def test_delta_on_convex_domains(family: str, spans: Any, gap: float, scales: tuple[float, ...]) -> None:
    for scale in scales:
        mechanism = FAMILIES[family](domain_of(spans), scale=scale, sensitivity=gap)
        plain = gap / scale
        for epsilon in (0.0, 0.3 * plain, 0.9 * plain, 2.5 * plain):
            if epsilon <= 100:
                check(mechanism.delta(epsilon), truth(family, scale, spans, gap, epsilon), floor=1e-26)


SPANS = [
    ([(0.0, 0.03), (2.2, 2.21), (11.0, 13.0)], 3.9, (1.5, 4.0)),
    ([(0.0, 1.0), (2.1, 4.0)], 0.5, (0.4, 1.5)),
    ([(0.0, 1.0), (1.5, INF)], 0.7, (0.5,)),
]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("spans", "gap", "scales"), SPANS)
def test_delta_on_spans(family: str, spans: Any, gap: float, scales: tuple[float, ...]) -> None:
    for scale in scales:
        mechanism = FAMILIES[family](domain_of(spans), scale=scale, sensitivity=gap)
        for epsilon in (0.0, 0.4 * gap / scale, 1.2 * gap / scale):
            check(mechanism.delta(epsilon), truth(family, scale, spans, gap, epsilon), floor=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("ends", "gap"), [((0, 25), 1), ((-4, 9), 3), ((0, 1), 1), ((10**9, 10**9 + 12), 12)])
def test_delta_on_integers(family: str, ends: tuple[int, int], gap: int) -> None:
    for scale in (0.4, 1.0, 6.0):
        mechanism = FAMILIES[family](ib.Integers(*ends), scale=scale, sensitivity=gap)
        for epsilon in (0.0, 0.5 * gap / scale, 2.0):
            check(mechanism.delta(epsilon), truth(family, scale, [ends], gap, epsilon, lattice=True), floor=1e-12)


def test_integers_exceed_the_untruncated_gaussian() -> None:
    mechanism = ib.Gaussian(ib.Integers(0, 25), scale=1.0, sensitivity=1)
    assert mechanism.delta(2.0) == pytest.approx(0.02481, abs=5e-6)
    assert ref.gdp_delta(1, 2) == pytest.approx(0.02092, abs=1e-5)
    assert mechanism.delta(2.0) > 1.18 * ref.gdp_delta(1, 2)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_worst_place_is_not_the_wall(family: str) -> None:
    scale, gap, epsilon = {"laplace": (0.15, 0.1, 0.7), "gaussian": (0.2, 0.1, 1.2)}[family]
    spans = [(0.0, 1.0)]
    worst = ref.worst_profile(family, scale, spans, gap, epsilon, 64, digits=8)
    wall = max(ref.hockey_stick(family, scale, spans, a, b, epsilon) for a, b in ((0, gap), (gap, 0)))
    assert min(worst.q, worst.q2) > 1e-3
    assert max(worst.q, worst.q2) < 1 - 1e-3
    assert worst.value > mpf("1.01") * wall
    check(FAMILIES[family](ib.Interval(0, 1), scale=scale, sensitivity=gap).delta(epsilon), worst.value)


def test_delta_vanishes_from_the_pure_loss_on_and_not_before() -> None:
    for family, cls in FAMILIES.items():
        mechanism = cls(ib.Interval(0, 1), scale=0.6, sensitivity=0.3)
        pure = mechanism.epsilon()
        assert mechanism.delta(pure) == 0.0
        assert mechanism.delta(pure * (1 - 1e-6)) > 0.0
        assert pure >= ref.pure_loss_interval(family, 0.6, 0, 1, 0.3)


# --- epsilon(delta) --------------------------------------------------------------------------


@pytest.mark.thinned(3)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("spans", "gap", "scale", "lattice"),
    [
        ([(0.0, 1.0)], 0.1, 0.2, False),
        ([(0.0, INF)], 1.0, 1.5, False),
        ([(0.0, 1.0), (2.1, 4.0)], 0.5, 0.8, False),
        ([(0, 20)], 2, 3.0, True),
    ],
)
def test_epsilon_of_delta(family: str, spans: Any, gap: float, scale: float, lattice: bool) -> None:
    mechanism = FAMILIES[family](domain_of(spans, lattice), scale=scale, sensitivity=gap)
    for delta in (1e-9, 1e-4, 0.05):
        epsilon = mechanism.epsilon(delta)
        # the reference is a lower bound of the truth: at the epsilon returned it must not exceed delta
        assert truth(family, scale, spans, gap, float(epsilon), lattice=lattice) <= delta
        if epsilon.exact and epsilon > 0:
            assert truth(family, scale, spans, gap, float(epsilon) * (1 - 1e-4), lattice=lattice) > delta


def test_epsilon_is_zero_where_delta_alone_is_enough() -> None:
    mechanism = ib.Laplace(ib.Interval(0, 1), scale=50.0, sensitivity=0.1)
    assert mechanism.epsilon(0.2) == 0.0
    assert truth("laplace", 50.0, [(0.0, 1.0)], 0.1, 0.0) <= 0.2


# --- calibration -----------------------------------------------------------------------------


def verify_calibration(family: str, gap: float, epsilon: float, delta: float, width: float = 1.0) -> None:
    mechanism = FAMILIES[family].calibrate(ib.Interval(0, width), sensitivity=gap, epsilon=epsilon, delta=delta)
    spans = [(0.0, width)]
    assert truth(family, mechanism.scale, spans, gap, epsilon) <= mpf(delta)
    assert truth(family, mechanism.scale * (1 - 1e-6), spans, gap, epsilon) > mpf(delta)
    assert mechanism.delta(epsilon) <= delta


@pytest.mark.thinned(3)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("gap", "epsilon", "delta"),
    [
        (1e-4, 1.0, 1e-6),
        (1e-4, 1e-4, 0.1),
        (1e-2, 0.1, 1e-5),
        (0.1, 10.0, 1e-12),
        (0.1, 1.0, 1e-6),
        (0.1, 1e-4, 1e-3),
        (0.5, 0.1, 0.1),
        (0.5, 3.0, 1e-9),
        (1.0, 1e-2, 1e-12),
        (1.0, 1.0, 1e-6),
        (1.0, 10.0, 0.1),
        (0.3, 0.0, 0.01),
        (1.0, 0.0, 1e-6),
    ],
)
def test_calibration_is_safe_and_smallest(family: str, gap: float, epsilon: float, delta: float) -> None:
    verify_calibration(family, gap, epsilon, delta)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("gap", [1e-4, 1e-3, 1e-2, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-4, 1e-2, 0.1, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-6, 1e-3, 0.1])
def test_calibration_everywhere(family: str, gap: float, epsilon: float, delta: float) -> None:
    verify_calibration(family, gap, epsilon, delta)


@pytest.mark.parametrize(
    ("gap", "epsilon", "analytic", "sigma"),
    [(0.1, 1.0, 0.4225, 0.2739), (0.5, 1.0, 2.1123, 0.5306), (1.0, 1.0, 4.2247, 0.7065), (1.0, 0.1, 36.305, 2.2291)],
)
def test_gaussian_on_a_short_range(gap: float, epsilon: float, analytic: float, sigma: float) -> None:
    truncated = ib.Gaussian.calibrate(ib.Interval(0, 1), sensitivity=gap, epsilon=epsilon, delta=1e-6)
    ignored = ib.Gaussian.calibrate(ib.Interval(0, 1), sensitivity=gap, epsilon=epsilon, delta=1e-6, edges="ignore")
    assert truncated.sigma == pytest.approx(sigma, abs=6e-5)
    assert ignored.sigma == pytest.approx(analytic, rel=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_calibration_on_other_domains_is_safe(family: str) -> None:
    for spans, gap, lattice in (
        ([(0.0, INF)], 1.0, False),
        ([(0.0, 1.0), (2.1, 4.0)], 0.5, False),
        ([(0, 30)], 3, True),
    ):
        domain = domain_of(spans, lattice)
        mechanism = FAMILIES[family].calibrate(domain, sensitivity=gap, epsilon=0.7, delta=1e-5)
        assert truth(family, mechanism.scale, spans, gap, 0.7, lattice=lattice) <= mpf(1e-5)
    holes = [(0.0, 1.0), (2.1, 4.0)]
    mechanism = FAMILIES[family].calibrate(ib.Spans(holes), sensitivity=0.5, epsilon=0.5, delta=0.1)
    assert truth(family, mechanism.scale, holes, 0.5, 0.5) <= mpf(0.1)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_certified_supremum_misses_no_peak(family: str) -> None:
    """Against a fine scan of the package's own divergence, which the tests above compare with the reference."""
    rng = random.Random(7)
    settings = [(0.05483005482997995, 0.11593841708672195, 3.58274519118489)]
    for _ in range(80):
        gap, scale = 10 ** rng.uniform(-1.5, 0), 10 ** rng.uniform(-1, 0.7)
        pure = float(FAMILIES[family](ib.Interval(0, 1), scale=scale, sensitivity=gap).epsilon())
        settings.append((gap, scale, min(pure * rng.uniform(0.1, 0.999), 50.0)))
    for gap, scale, epsilon in settings:
        delta = FAMILIES[family](ib.Interval(0, 1), scale=scale, sensitivity=gap).delta(epsilon)
        q = np.linspace(0.0, 1.0 - gap, 2001)
        noise = NOISE[family](Support.between(1.0, lattice=False), scale)
        assert noise.hockey(q, np.full_like(q, gap), epsilon).max() <= delta * (1 + 1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_certified_supremum_misses_no_peak_on_spans(family: str) -> None:
    rng = random.Random(8)
    for _ in range(15):
        ends = np.cumsum([10 ** rng.uniform(-1, 0.5) for _ in range(4)])
        domain = ib.Spans(list(zip(ends[::2], ends[1::2], strict=True)))
        gap, scale = rng.uniform(0.05, 0.6) * domain.width, 10 ** rng.uniform(-0.7, 0.7)
        epsilon = rng.uniform(0.0, 1.5) * gap / scale
        delta = FAMILIES[family](domain, scale=scale, sensitivity=gap).delta(epsilon)
        noise = NOISE[family](Support.of(domain), scale)
        for side in (noise, noise.reflected()):
            for start, stop in zip(*side.support.sliding(gap), strict=True):
                q = np.linspace(start, stop, 601)
                assert side.hockey(q, np.full_like(q, gap), epsilon).max() <= delta * (1 + 1e-9)


# --- certificates ----------------------------------------------------------------------------

CONVEX = [Support.between(1.0, lattice=False), Support(np.array([0.0]), np.array([INF]), False, 0.0)]


def cells_of(rng: random.Random, gap: float, count: int) -> tuple[Any, Any]:
    start = np.array([rng.uniform(0.0, 1.0 - gap) for _ in range(count)])
    width = np.array([10.0 ** rng.uniform(-4, -1) for _ in range(count)])
    return start, np.minimum(start + width, 1.0 - gap)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("support", CONVEX, ids=["interval", "half-line"])
def test_slopes_of_the_profile_are_enclosed(family: str, support: Support) -> None:
    rng = random.Random(1)
    seen = 0
    for _ in range(60):
        gap, scale = 10 ** rng.uniform(-2, -0.3), 10 ** rng.uniform(-1.5, 0.5)
        epsilon = rng.uniform(0.0, 1.3) * gap / scale
        noise = NOISE[family](support, scale)
        a, b = cells_of(rng, gap, 20)
        d = np.full_like(a, gap)
        at_a, at_b = noise.hockey(a, d, epsilon), noise.hockey(b, d, epsilon)
        low, high = noise.hockey_slopes(a, b, gap, epsilon, at_a, at_b)
        for part in (0.1, 0.5, 0.9):
            x = a + part * (b - a)
            at = noise.hockey(x, d, epsilon)
            used = (at > 0) & (b > a)
            error = 1e-11 * (at_a + at_b + 1e-12)
            # what the supremum uses: lines of these slopes, from the values at the ends, lie above the function
            assert np.all((at <= at_a + (x - a) * high + error)[used])
            assert np.all((at <= at_b - (b - x) * low + error)[used])
            seen += int(used.sum())
    assert seen > 500


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("support", CONVEX, ids=["interval", "half-line"])
def test_slopes_of_the_divergence_are_enclosed(family: str, support: Support) -> None:
    rng = random.Random(2)
    for _ in range(60):
        gap, scale, alpha = 10 ** rng.uniform(-2, -0.3), 10 ** rng.uniform(-1.2, 0.5), 1 + 10 ** rng.uniform(-1, 1.5)
        noise = NOISE[family](support, scale)
        a, b = cells_of(rng, gap, 20)
        d = np.full_like(a, gap)
        low, high = noise.renyi_slopes(a, b, gap, alpha)
        plain = alpha * (gap / scale) ** 2
        for left in (0.0, 0.3, 0.7):
            x = a + left * (b - a)
            y = a + (left + 0.3) * (b - a)
            at_x, at_y = noise.renyi(x, d, alpha), noise.renyi(y, d, alpha)
            free = (at_x < 0.499 * plain) & (at_y < 0.499 * plain) if family == "gaussian" else np.full(x.shape, True)
            error = (1e-11 * (at_x + at_y) + 1e-12 * (1 + alpha / (alpha - 1))) / (y - x)
            slope = (at_y - at_x) / (y - x)
            assert np.all((slope >= low - error)[free])
            assert np.all((slope <= high + error)[free])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_cell_is_bounded_by_its_outer_pair(family: str) -> None:
    rng = random.Random(3)
    for spans in ([(0.0, 1.0)], [(0.0, 1.0), (1.4, 3.0)]):
        for _ in range(10):
            gap, scale, epsilon = rng.uniform(0.05, 0.4), 10 ** rng.uniform(-1, 0.3), rng.uniform(0.0, 0.8)
            a = rng.uniform(0.0, 0.5)
            b = a + rng.uniform(0.0, 0.1)
            q = rng.uniform(a, b)
            inner = ref.hockey_stick(family, scale, spans, q, q + gap, epsilon, dps=30)
            assert inner <= ref.hockey_stick(family, scale, spans, a, b + gap, epsilon, dps=30)

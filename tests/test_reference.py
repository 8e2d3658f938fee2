"""The reference checked against itself: closed forms against quadrature and enumeration."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from mpmath import mp, mpf

from tests import reference as ref

FAMILIES = ("laplace", "gaussian")
INF = float("inf")
UNIT = [(0, 1)]
HOLES = [(0.0, 0.03), (2.2, 2.21), (11.0, 13.0)]
DOMAINS = [UNIT, [(-0.5, 0.25), (1.0, 3.0)], [(0.0, INF)], [(-INF, -1.0), (0.5, 2.0)]]
TIGHT = mpf(10) ** -40
VECTORS = json.loads((Path(__file__).parent / "vectors" / "calibration.json").read_text())["cases"]


def close(a: Any, b: Any, tolerance: Any = TIGHT) -> bool:
    return bool(abs(a - b) <= tolerance * max(1, abs(a), abs(b)))


def random_spans(rng: random.Random) -> list[tuple[float, float]]:
    spans, x = [], 0.0
    for _ in range(rng.randint(1, 3)):
        lo = x + round(10 ** rng.uniform(-1, 1), 2)
        x = lo + round(10 ** rng.uniform(-1, 1), 2)
        spans.append((lo, x))
    return spans


# --- densities -------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("spans", DOMAINS)
def test_density_integrates_to_one(family: str, spans: Any) -> None:
    with mp.workdps(45):
        q, s = mpf("0.1"), mpf("0.7")
        total = mp.fsum(
            ref._integrate(
                lambda t: s * mp.exp(ref.log_density(family, s, spans, q, q + s * t, dps=40)),
                (ref.to_mpf(lo) - q) / s,
                (ref.to_mpf(hi) - q) / s,
                [mpf(0)],
                ref._reach(family),
            )
            for lo, hi in spans
        )
    assert close(total, 1, mpf(10) ** -38)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("lo", "hi"), [(-3, 9), (2, 7), (-9, -4), (0.5, 3.5), (1, INF), (-INF, 2)])
def test_lattice_mass_is_the_sum_of_kernels(family: str, lo: float, hi: float) -> None:
    for q, scale in ((0, "1.3"), (0.25, "0.2"), (-6, "2")):
        with mp.workdps(65):
            s = mpf(scale)
            kernel = [mp.exp(ref._kernel_log(family, (k - ref.to_mpf(q)) / s)) for k in range(-300, 301)]
            part = mp.fsum(v for k, v in zip(range(-300, 301), kernel, strict=True) if lo <= k <= hi)
            direct = part / mp.fsum(kernel)
        assert close(ref.mass(family, s, q, lo, hi, lattice=True), direct)


@pytest.mark.parametrize("family", FAMILIES)
def test_mass_is_additive_also_far_in_the_tail(family: str) -> None:
    with mp.workdps(60):
        parts = [ref.mass(family, 1, 0, a, b) for a, b in ((30, 30.5), (30.5, 31), (31, INF))]
        whole = ref.mass(family, 1, 0, 30, INF)
        assert abs(mp.fsum(parts) / whole - 1) < TIGHT
        narrow = ref.mass(family, 1, 0, 30, 30 + 2**-40)
        slope = mp.exp(ref._kernel_log(family, mpf(30))) / (2 if family == "laplace" else mp.sqrt(2 * mp.pi))
        assert abs(narrow / (slope * mpf(2) ** -40) - 1) < mpf(10) ** -9
    assert ref.normaliser(family, 1, [(-1, 0), (0.5, 2)], 0) < 1


def test_inputs_are_exact() -> None:
    assert ref.to_fraction(0.1) == Fraction(0.1)
    assert ref.to_fraction("0.1") == Fraction(1, 10)
    assert ref.to_fraction(mpf(0.1)) == Fraction(0.1)
    assert ref.to_fraction("-inf") == -INF
    before = mp.prec
    ref.profile("laplace", 1, UNIT, 0.5, 0.1, points=4, digits=3)
    assert mp.prec == before


def test_log_density_outside() -> None:
    assert ref.log_density("laplace", 1, UNIT, 0, 2) == -mp.inf
    assert ref.log_density("laplace", 1, [(0, 4)], 0, 0.5, lattice=True) == -mp.inf
    with pytest.raises(ValueError, match="family"):
        ref.log_density("cauchy", 1, UNIT, 0, 0.5)


# --- pure loss -------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lattice", [False, True])
def test_pair_loss_is_the_largest_log_ratio(family: str, lattice: bool) -> None:
    spans = [(0, 3), (5, 9)]
    places = [*range(4), *range(5, 10)] if lattice else [Fraction(k, 4) for k in [*range(13), *range(20, 37)]]
    for q, q2 in ((0, 2), (2, 0), (3, 5), (6, 1)):
        scan = max(
            ref.log_density(family, 1.5, spans, q, x, lattice=lattice)
            - ref.log_density(family, 1.5, spans, q2, x, lattice=lattice)
            for x in places
        )
        assert close(scan, ref.pair_loss(family, 1.5, spans, q, q2, lattice))


def test_unbounded_domains() -> None:
    assert ref.pair_loss("gaussian", 1, [(0, INF)], 2, 1) == mp.inf
    assert ref.pair_loss("gaussian", 1, [(0, INF)], 1, 2) < mp.inf
    assert ref.pure_loss_spans("gaussian", 1, [(0, INF)], 1) == mp.inf
    assert ref.pure_loss_interval("laplace", 2, -INF, INF, 3) == mpf(3) / 2
    assert ref.pure_loss_spans("laplace", 2, [(-INF, INF)], 3) == mpf(3) / 2
    left = ref.pure_loss_interval("laplace", 2, -INF, 1, 3)
    assert close(left, ref.pure_loss_interval("laplace", 2, -1, INF, 3))
    assert close(left, ref.pure_loss_spans("laplace", 2, [(-INF, 1)], 3))


@pytest.mark.parametrize("family", FAMILIES)
def test_no_pair_beats_the_wall_pair(family: str) -> None:
    rng = random.Random(1)
    for _ in range(15):
        width, share = 10 ** rng.uniform(-2, 2), rng.uniform(0.01, 1)
        scale = width * 10 ** rng.uniform(-1.5, 1.5)
        wall = ref.pure_loss_interval(family, scale, -1, width - 1, share * width)
        brute = ref.pure_loss_brute(family, scale, [(-1, width - 1)], share * width, points=20)
        assert brute <= wall * (1 + TIGHT)
        assert brute >= wall * (1 - TIGHT)  # the grid contains the wall


def test_laplace_interval_closed_form() -> None:
    with mp.workdps(60):
        b, d, r = mpf("0.7"), mpf("0.3"), mpf(2)
        closed = d / b + mp.log((2 - mp.exp(-d / b) - mp.exp(-(r - d) / b)) / (1 - mp.exp(-r / b)))
        assert close(closed, ref.pure_loss_interval("laplace", b, 0, 2, d))


@pytest.mark.parametrize("family", FAMILIES)
def test_brute_scan_never_exceeds_the_candidates(family: str) -> None:
    rng = random.Random(2)
    for _ in range(25):
        spans = random_spans(rng)
        sensitivity = rng.uniform(0.02, 1) * (spans[-1][1] - spans[0][0])
        scale = sensitivity * 10 ** rng.uniform(-1, 1)
        candidates = ref.pure_loss_spans(family, scale, spans, sensitivity)
        assert ref.pure_loss_brute(family, scale, spans, sensitivity, points=10) <= candidates * (1 + TIGHT)


def test_candidates_treat_ties_as_feasible() -> None:
    pairs = ref.candidate_pairs([(0, 1), (3, 4)], 3)
    assert (Fraction(0), Fraction(3)) in pairs
    assert (Fraction(1), Fraction(4)) in pairs
    assert all(b - a <= 3 for a, b in pairs)
    one_less = ref.candidate_pairs([(0, 1), (3, 4)], Fraction(3) - Fraction(1, 10**30))
    assert (Fraction(0), Fraction(3)) not in one_less
    assert (Fraction(1, 10**30), Fraction(3)) in one_less  # the pair (e - sensitivity, e)


def test_gaussian_needs_the_pairs_below_a_left_end() -> None:
    spans = [(0, 1), (3, 4)]
    full = ref.pure_loss_spans("gaussian", 1, spans, 2.5)
    assert full == max(ref.pair_loss("gaussian", 1, spans, 3, 0.5), ref.pair_loss("gaussian", 1, spans, 1, 3.5))
    assert ref.pair_loss("gaussian", 1, spans, 1, 0) < full


@pytest.mark.parametrize("family", FAMILIES)
def test_integer_enumeration_equals_the_wall_pair(family: str) -> None:
    rng = random.Random(3)
    for _ in range(20):
        width = rng.randint(1, 12)
        change = rng.randint(1, width)
        scale = 10 ** rng.uniform(-1, 1.5)
        every = ref.pure_loss_integers(family, scale, -2, width - 2, change + 0.5)
        ends = ((-2, change - 2), (change - 2, -2))
        assert close(every, max(ref.pair_loss(family, scale, [(-2, width - 2)], a, b, True) for a, b in ends))


def test_spans_example_is_not_monotone_in_the_scale() -> None:
    assert mp.nstr(ref.pure_loss_spans("laplace", 2.145, HOLES, 3.9), 4) == "1.061"
    assert mp.nstr(ref.pure_loss_spans("laplace", 2.73, HOLES, 3.9), 4) == "1.106"


# --- boxes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("order", [1, 2])
def test_worst_change_beats_random_changes(family: str, order: int) -> None:
    rng = random.Random(4)
    upper = [0.3, 2.0, 5.0]
    search = ref.worst_change_l1 if order == 1 else ref.worst_change_l2
    worst = search(family, 1.5, [0] * 3, upper, 1.0)
    assert close(mp.fsum(c**order for c in worst.change), 1, mpf(10) ** -30)
    assert all(0 <= c <= w for c, w in zip(worst.change, upper, strict=True))
    for _ in range(60):
        c = [abs(rng.gauss(0, 1)) for _ in upper]
        size = sum(x**order for x in c) ** (1 / order) * (1 + 1e-12)
        c = [min(x / size, w) for x, w in zip(c, upper, strict=True)]
        assert ref.pure_loss_box(family, 1.5, [0] * 3, upper, c) <= worst.loss
        near = [float(x) * (1 + 0.02 * rng.gauss(0, 1)) for x in worst.change]
        size = max(1.0, sum(x**order for x in near) ** (1 / order) * (1 + 1e-12))
        near = [min(x / size, w) for x, w in zip(near, upper, strict=True)]
        assert ref.pure_loss_box(family, 1.5, [0] * 3, upper, near) <= worst.loss


def test_worst_change_covers_a_small_box() -> None:
    worst = ref.worst_change_l2("gaussian", 1, [0, 0], [1, 2], 3)
    assert worst.change == (1, 2)
    equal = ref.worst_change_l2("laplace", 1, [0, 0], [2, 2], 1)
    with mp.workdps(50):
        assert close(equal.change[0], mp.sqrt(mpf(1) / 2), mpf(10) ** -30)


# --- hockey-stick ----------------------------------------------------------------------------


def positive_part(family: str, scale: float, spans: Any, q: float, q2: float, epsilon: float) -> Any:
    """Quadrature of max(p - e^epsilon p2, 0), its sign changes found by bisection."""

    def log_p(centre: float, x: Any) -> Any:
        return ref.log_density(family, scale, spans, centre, x, dps=25)

    def positive(x: Any) -> bool:
        return bool(log_p(q, x) - log_p(q2, x) > epsilon)

    def difference(x: Any) -> Any:
        return mp.exp(log_p(q, x)) - mp.exp(epsilon + log_p(q2, x))

    total = mpf(0)
    for lo, hi in ((max(ref.to_mpf(lo), mpf(-40)), min(ref.to_mpf(hi), mpf(40))) for lo, hi in spans):
        cuts = {lo, hi, *(c for c in (mpf(q), mpf(q2)) if lo < c < hi)}
        for a, b in pairwise(sorted(cuts)):
            left, right = a, b
            if positive(a) != positive(b):
                for _ in range(110):
                    middle = (left + right) / 2
                    left, right = (middle, right) if positive(middle) == positive(a) else (left, middle)
                cuts.add(left)
        for a, b in pairwise(sorted(cuts)):
            if positive((a + b) / 2):
                total += mp.quad(difference, mp.linspace(a, b, 2 + int((b - a) / 4)), maxdegree=6)
    return total


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("spans", DOMAINS)
def test_hockey_stick_is_the_integral_of_the_positive_part(family: str, spans: Any) -> None:
    for q, q2 in ((0.1, 0.7), (0.7, 0.1)):
        with mp.workdps(30):
            total = positive_part(family, 0.6, spans, q, q2, 0.2)
        assert close(total, ref.hockey_stick(family, 0.6, spans, q, q2, 0.2), mpf(10) ** -18)


@pytest.mark.parametrize("family", FAMILIES)
def test_lattice_hockey_stick_and_renyi_are_sums(family: str) -> None:
    spans = [(0, 6), (9, 12)]
    places = [*range(7), *range(9, 13)]
    for q, q2, eps in ((0, 3, 0.1), (9, 6, 0.4), (2, 1, 0.0)):
        with mp.workdps(65):
            p = [mp.exp(ref.log_density(family, 2.5, spans, q, x, lattice=True)) for x in places]
            p2 = [mp.exp(ref.log_density(family, 2.5, spans, q2, x, lattice=True)) for x in places]
            delta = mp.fsum(max(0, a - mp.exp(eps) * b) for a, b in zip(p, p2, strict=True))
            third = mp.log(mp.fsum(a**3 / b**2 for a, b in zip(p, p2, strict=True))) / 2
            kl = mp.fsum(a * mp.log(a / b) for a, b in zip(p, p2, strict=True))
        assert close(delta, ref.hockey_stick(family, 2.5, spans, q, q2, eps, True))
        assert close(third, ref.renyi(family, 2.5, spans, q, q2, 3, True))
        assert close(kl, ref.renyi(family, 2.5, spans, q, q2, 1, True))


@pytest.mark.parametrize("family", FAMILIES)
def test_hockey_stick_vanishes_exactly_at_the_loss(family: str) -> None:
    loss = ref.pair_loss(family, 0.5, UNIT, 0.2, 0.6)
    assert ref.hockey_stick(family, 0.5, UNIT, 0.2, 0.6, loss * (1 + TIGHT)) == 0
    small = ref.hockey_stick(family, 0.5, UNIT, 0.2, 0.6, loss * (1 - mpf(10) ** -12))
    assert 0 < small < mpf(10) ** -10
    assert ref.hockey_stick(family, 0.5, UNIT, 0.2, 0.2, 0.1) == 0
    zero = ref.hockey_stick(family, 0.5, UNIT, 0.2, 0.6, 0)  # total variation is symmetric
    assert close(zero, ref.hockey_stick(family, 0.5, UNIT, 0.6, 0.2, 0))


@pytest.mark.parametrize("family", FAMILIES)
def test_profile_is_at_least_every_pair_of_a_scan(family: str) -> None:
    worst = ref.worst_profile(family, 0.2, UNIT, 0.3, 0.5)
    assert worst.value == ref.profile(family, 0.2, UNIT, 0.3, 0.5)
    for k in range(71):
        q = Fraction(k, 100)
        for a, b in ((q, q + Fraction(0.3)), (q + Fraction(0.3), q)):
            if max(a, b) <= 1:
                assert ref.hockey_stick(family, 0.2, UNIT, a, b, 0.5) <= worst.value * (1 + mpf(10) ** -30)
    assert close(ref.hockey_stick(family, 0.2, UNIT, worst.q, worst.q2, 0.5), worst.value)


def test_profile_of_half_line_and_integers() -> None:
    half_line = ref.profile("gaussian", 1, [(0, INF)], 1, 1, points=16, digits=8)
    assert close(half_line, ref.gdp_delta(1, 1), mpf(10) ** -15)
    lattice = ref.profile("gaussian", 1, [(0, 25)], 1, 2, lattice=True)
    assert mp.nstr(lattice, 4) == "0.02481"
    assert mp.nstr(ref.gdp_delta(1, 2), 4) == "0.02092"
    assert ref.profile("laplace", 1, [(0, INF)], 1, 0.5, 6, lattice=True) > 0


# --- Renyi, untruncated, clamped ------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("spans", DOMAINS)
def test_renyi_closed_equals_quadrature(family: str, spans: Any) -> None:
    for q, q2, alpha in ((0.1, 0.9, 2), (0.9, 0.1, 1.5), (0.6, 0.5, 16)):
        quad = ref.renyi(family, 0.8, spans, q, q2, alpha, dps=30)
        assert close(quad, ref.renyi_closed(family, 0.8, spans, q, q2, alpha, dps=30), mpf(10) ** -25)


def test_renyi_limits() -> None:
    loss = ref.pair_loss("laplace", 1, UNIT, 0, 0.5)
    assert ref.renyi("laplace", 1, UNIT, 0, 0.5, INF) == loss
    assert ref.renyi("laplace", 1, UNIT, 0.5, 0.5, 2) == 0
    values = [ref.renyi("laplace", 1, UNIT, 0, 0.5, a, dps=20) for a in (1, 1.01, 2, 50)]
    assert values == sorted(values)
    assert values[-1] < loss
    assert ref.renyi_supremum("gaussian", 1, UNIT, 0.5, 2, points=8, digits=6) <= ref.plain_renyi("gaussian", 1, 0.5, 2)
    assert ref.renyi_supremum("laplace", 1, [(0, 4)], 2, 2, lattice=True, dps=20) > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_plain_is_truncation_to_the_line(family: str) -> None:
    for d, eps, alpha in ((0.5, 0.1, 2), (3, 1, 1.5), (1, 0, 8)):
        assert close(ref.plain_hockey_stick(family, 0.9, d, eps), ref.hockey_stick(family, 0.9, ref.LINE, 0, d, eps))
        assert close(
            ref.plain_renyi(family, 0.9, d, alpha, dps=25),
            ref.renyi(family, 0.9, ref.LINE, 0, d, alpha, dps=25),
            mpf(10) ** -22,
        )


def test_gdp_delta_closed_form() -> None:
    with mp.workdps(60):
        mu, eps = mpf("0.8"), mpf("1.5")
        closed = mp.ncdf(mu / 2 - eps / mu) - mp.exp(eps) * mp.ncdf(-mu / 2 - eps / mu)
        assert close(closed, ref.gdp_delta(mu, eps))


@pytest.mark.parametrize("family", FAMILIES)
def test_clamped_is_post_processing(family: str) -> None:
    s, eps = 0.7, 0.3
    for q, q2 in ((0.0, 0.625), (0.875, 0.25), (0.25, 0.5)):  # exact differences
        delta = ref.clamped_hockey_stick(family, s, 0, 1, q, q2, eps)
        assert 0 < delta <= ref.plain_hockey_stick(family, s, abs(q - q2), eps) * (1 + TIGHT)
        wide = ref.clamped_hockey_stick(family, s, -200, 200, q, q2, eps)
        assert close(wide, ref.plain_hockey_stick(family, s, abs(q - q2), eps))
        loss = ref.clamped_loss(family, s, 0, 1, q, q2)
        assert ref.clamped_hockey_stick(family, s, 0, 1, q, q2, loss) < TIGHT
        assert ref.clamped_hockey_stick(family, s, 0, 1, q, q2, loss * 0.99) > 0
    assert close(ref.clamped_loss("laplace", s, 0, 1, 0.2, 0.7), mpf(0.7) / s - mpf(0.2) / s, mpf(10) ** -15)
    assert ref.clamped_hockey_stick(family, s, 0, 1, 0.5, 0.5, eps) == 0
    # negative epsilon shows the whole integral: masses minus e^eps times masses
    with mp.workdps(60):
        assert close(ref.clamped_hockey_stick(family, s, 0, 1, 0.4, 0.5, -3), 1 - mp.exp(-3))
        assert close(ref.hockey_stick(family, s, UNIT, 0.4, 0.5, -3), 1 - mp.exp(-3))


# --- moments and calibration --------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_moments(family: str) -> None:
    line = ref.moments(family, 1.5, ref.LINE, 2, dps=25)
    with mp.workdps(40):
        variance, error = (4.5, 1.5) if family == "laplace" else (2.25, 1.5 * mp.sqrt(2 / mp.pi))
    for got, expected in zip(line, (2, variance, error), strict=True):
        assert close(got, expected, mpf(10) ** -22)
    flat = ref.moments(family, 1e12, [(0, 1), (2, 3)], 1, dps=25)
    assert close(flat.mean, 1.5, mpf(10) ** -10)
    assert close(flat.variance, mpf(13) / 12, mpf(10) ** -10)
    whole = ref.moments(family, 2, [(0, 3)], 1, True)
    with mp.workdps(60):
        w = [mp.exp(ref.log_density(family, 2, [(0, 3)], 1, x, lattice=True)) for x in range(4)]
        mean = mp.fsum(x * p for x, p in enumerate(w))
        assert close(whole.mean, mean)
        assert close(whole.variance, mp.fsum((x - mean) ** 2 * p for x, p in enumerate(w)))
        assert close(whole.absolute_error, mp.fsum(abs(x - 1) * p for x, p in enumerate(w)))


def test_smallest_scale() -> None:
    scale = ref.smallest_scale(lambda b: ref.pure_loss_interval("laplace", b, 0, INF, 1), 1, 0.5, 4)
    with mp.workdps(60):
        assert abs(scale * mp.log((1 + mp.e) / 2) - 1) < mpf(10) ** -38
    assert ref.pure_loss_interval("laplace", scale, 0, INF, 1) <= 1
    assert ref.smallest_scale(lambda b: 1 / b, 1, 2, 3) == 2
    with pytest.raises(ValueError, match="bracket"):
        ref.smallest_scale(lambda b: 1 / b, 1, 0.1, 0.5)


@pytest.mark.parametrize("case", [c for c in VECTORS if c["kind"].endswith(("pure", "renyi"))], ids=lambda c: c["kind"])
def test_vectors(case: Any) -> None:
    """The stored values give the stored guarantee (scales: the loss at the scale is epsilon)."""
    family, shape, what = case["kind"].split(".")
    p = case["params"]
    (text,) = case["expect"].values()
    with mp.workdps(30):
        value = mpf(text)
    if what == "renyi":
        got = ref.renyi(family, p["scale"], [(p["lower"], p["upper"])], p["p"], p["q"], p["alpha"], dps=30)
        assert abs(got / value - 1) < 1e-13
        return
    if shape == "box":
        loss = ref.worst_change_l2(family, value, p["lower"], p["upper"], p["l2_sensitivity"], dps=25).loss
    elif shape == "spans":
        loss = ref.pure_loss_spans(family, value, p["spans"], p["sensitivity"])
    else:
        loss = ref.pure_loss_interval(family, value, p["lower"], p.get("upper", INF), p["sensitivity"])
    assert abs(loss / p["epsilon"] - 1) < 1e-13


@pytest.mark.parametrize("case", [c for c in VECTORS if c["kind"].endswith("approx")], ids=lambda c: c["kind"])
def test_approximate_vectors(case: Any) -> None:
    family = case["kind"].split(".")[0]
    p = case["params"]
    (text,) = case["expect"].values()
    spans = [(p["lower"], p["upper"])]
    low, high = (
        ref.profile(family, mpf(text) * (1 + nudge), spans, p["sensitivity"], p["epsilon"], 24, digits=12, dps=30)
        for nudge in (mpf(10) ** -10, -(mpf(10) ** -10))
    )
    assert low < p["delta"] < high

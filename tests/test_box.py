"""Pure epsilon on boxes: every kind of limit on the change vector, real and integer, against search and enumeration."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import inbounds as ib
import inbounds.mechanism
from inbounds import calibration
from tests import reference as ref
from tests.common import MECHANISMS, broken, goal

FAMILIES = tuple(MECHANISMS)
INF = float("inf")
NEAR = 1 - mpf(10) ** -8


def scale_of(family: str, box: ib.Box, sensitivity: Any, epsilon: float, **more: Any) -> float:
    return MECHANISMS[family].calibrate(box, sensitivity=sensitivity, epsilon=epsilon, **more).scale


def real_loss(family: str, scale: Any, lower: Sequence[float], upper: Sequence[float], sensitivity: Any) -> Any:
    """The largest loss over the allowed changes of a real box with bounded coordinates (or an easy limit)."""
    if isinstance(sensitivity, ib.L2):
        return ref.worst_change_l2(family, scale, lower, upper, sensitivity.value, dps=30).loss
    if isinstance(sensitivity, ib.L1):
        return ref.worst_change_l1(family, scale, lower, upper, sensitivity.value, dps=30).loss
    widths = [mpf(hi) - mpf(lo) for lo, hi in zip(lower, upper, strict=True)]
    if isinstance(sensitivity, ib.L0):
        single = [
            ref.pure_loss_interval(family, scale, lo, hi, min(mpf(sensitivity.linf), w))
            for lo, hi, w in zip(lower, upper, widths, strict=True)
        ]
        return max(mp.fsum(c) for c in itertools.combinations(single, sensitivity.count))
    limits = [sensitivity.value] * len(widths) if isinstance(sensitivity, ib.Linf) else sensitivity
    change = [min(mpf(c), w) for c, w in zip(limits, widths, strict=True)]
    return ref.pure_loss_box(family, scale, lower, upper, change)


def check(family: str, lower: Sequence[float], upper: Sequence[float], sensitivity: Any, epsilon: float) -> None:
    scale = scale_of(family, ib.Box(lower, upper), sensitivity, epsilon)
    setting = (family, lower, upper, sensitivity, epsilon, scale)
    target = goal(epsilon)
    assert real_loss(family, scale, lower, upper, sensitivity) <= target, setting
    assert real_loss(family, mpf(scale) * NEAR, lower, upper, sensitivity) > target, setting


# --- real boxes --------------------------------------------------------------------------------

KINDS = ("l2", "l1", "linf", "l0", "each")


def limit(rng: random.Random, kind: str, widths: Sequence[float]) -> Any:
    """A limit of that kind, from a small part of the box up to all of it."""
    part = rng.choice((1.0, 10 ** rng.uniform(-6, 0), 10 ** rng.uniform(-1, 0)))
    if kind == "l2":
        return ib.L2(part * math.sqrt(math.fsum(w * w for w in widths)))
    if kind == "l1":
        return ib.L1(part * math.fsum(widths))
    if kind == "linf":
        return ib.Linf(part * max(widths))
    if kind == "l0":
        return ib.L0(rng.randint(1, len(widths)), linf=part * max(widths))
    return [w * rng.choice((0.0, part, part)) or (w if i == 0 else 0.0) for i, w in enumerate(widths)]


def drawn(rng: random.Random, kind: str) -> tuple[list[float], list[float], Any, float]:
    size = rng.randint(1, 4)
    lower = [rng.choice((0.0, rng.uniform(-5, 5), rng.uniform(-1e6, 1e6))) for _ in range(size)]
    spread = rng.choice((0.0, 1.0, 3.0))
    upper = [lo + 10 ** rng.uniform(-spread, spread) for lo in lower]
    widths = [hi - lo for lo, hi in zip(lower, upper, strict=True)]
    epsilon = 10 ** rng.choice((rng.uniform(-9, math.log10(50)), rng.uniform(-2, 1)))
    return lower, upper, limit(rng, kind, widths), epsilon


def check_drawn(family: str, kind: str, seed: int, count: int) -> None:
    rng = random.Random(f"{family} {kind} {seed}")
    for _ in range(count):
        check(family, *drawn(rng, kind))


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("kind", "count"), [("l2", 15), ("l1", 15), ("linf", 80), ("l0", 80), ("each", 80)])
@pytest.mark.parametrize("family", FAMILIES)
def test_generated_boxes(family: str, kind: str, count: int) -> None:
    check_drawn(family, kind, 1, count)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_generated_boxes_many(family: str, kind: str) -> None:
    check_drawn(family, kind, 2, 150)


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_equal_widths_share_equally(family: str, epsilon: float) -> None:
    """Four coordinates of one width under an l2 limit: each takes half of it."""
    scale = scale_of(family, ib.Box([0] * 4, [3] * 4), ib.L2(2), epsilon)
    target = goal(epsilon) / 4
    assert ref.pure_loss_interval(family, scale, 0, 3, 1) <= target
    assert ref.pure_loss_interval(family, mpf(scale) * NEAR, 0, 3, 1) > target


@pytest.mark.parametrize("family", FAMILIES)
def test_one_coordinate_is_an_interval(family: str) -> None:
    for sensitivity in (ib.L2(0.5), ib.L1(0.5), ib.Linf(0.5), ib.L0(1, linf=0.5), [0.5]):
        for epsilon in (0.01, 1.0, 20.0):
            interval = MECHANISMS[family].calibrate(ib.Interval(-1, 2), sensitivity=0.5, epsilon=epsilon).scale
            assert scale_of(family, ib.Box([-1], [2]), sensitivity, epsilon) == pytest.approx(interval, rel=1e-8)


@pytest.mark.parametrize("sensitivity", [ib.L2(13.0), ib.L1(19.0), ib.Linf(12.0), ib.L0(3, linf=12.0), [3, 4, 12]])
def test_whole_box(sensitivity: Any) -> None:
    """Everything may change: sigma^2 = sum R^2 / (2 epsilon), b = sum R / epsilon."""
    box, epsilon = ib.Box([0, 1, -2], [3, 5, 10]), 0.7
    sigma = scale_of("gaussian", box, sensitivity, epsilon)
    exact = mp.sqrt((9 + 16 + 144) / (2 * goal(epsilon)))
    assert exact <= sigma <= exact / NEAR
    exact = 19 / goal(epsilon)
    assert exact <= scale_of("laplace", box, sensitivity, epsilon) <= exact / NEAR


@pytest.mark.parametrize("family", FAMILIES)
def test_a_wider_limit_needs_more_noise(family: str) -> None:
    """l1 ball < l2 ball < l-infinity ball of one radius, and with per-coordinate limits at that radius equal to it."""
    box, epsilon = ib.Box([0, 0, 0], [4, 5, 6]), 1.0
    scales = [scale_of(family, box, s, epsilon) for s in (ib.L1(1), ib.L2(1), ib.Linf(1), [1, 1, 1], ib.L0(3, linf=1))]
    assert scales[0] < scales[1] < scales[2]
    assert scales[3] == pytest.approx(scales[2], rel=1e-9)
    assert scales[4] == pytest.approx(scales[2], rel=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_l2_beats_every_direction(family: str) -> None:
    """No change on a fine grid of directions in the plane costs more than the reported epsilon."""
    lower, upper, radius = [0, 1], [10, 9], 2 * 5**0.5
    mechanism = MECHANISMS[family].calibrate(ib.Box(lower, upper), sensitivity=ib.L2(radius), epsilon=1.0)
    losses = [
        ref.pure_loss_box(
            family, mechanism.scale, lower, upper, (radius * mp.cos(mp.pi * k / 400), radius * mp.sin(mp.pi * k / 400))
        )
        for k in range(201)
    ]
    assert max(losses) <= mpf(mechanism.epsilon()) <= 1
    assert max(losses) >= 1 - mpf(10) ** -4


def test_reported_epsilon_lies_between_truth_and_target() -> None:
    rng = random.Random(41)
    for family in FAMILIES:
        for kind in ("linf", "l0", "each"):
            for _ in range(15):
                lower, upper, sensitivity, epsilon = drawn(rng, kind)
                mechanism = MECHANISMS[family].calibrate(ib.Box(lower, upper), sensitivity=sensitivity, epsilon=epsilon)
                assert (
                    real_loss(family, mechanism.scale, lower, upper, sensitivity)
                    <= mpf(mechanism.epsilon())
                    <= goal(epsilon)
                )


# --- unbounded coordinates (Laplace) -----------------------------------------------------------

OPEN_BOXES = [
    ([0, 0], [INF, 5]),
    ([-INF, 0], [INF, 5]),
    ([-INF, -INF], [INF, 2]),
    ([-INF, 0, 1], [0, INF, 2]),
    ([-INF, -INF], [INF, INF]),
    ([0, 0, 0], [INF, INF, INF]),
]


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 10.0])
@pytest.mark.parametrize(("lower", "upper"), OPEN_BOXES)
def test_unbounded_boxes(lower: list[float], upper: list[float], epsilon: float) -> None:
    check("laplace", lower, upper, ib.Linf(0.75), epsilon)
    check("laplace", lower, upper, ib.L0(1, linf=0.75), epsilon)
    check("laplace", lower, upper, [0.75, 0.5, 1][: len(lower)], epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("lower", "upper"), [b for b in OPEN_BOXES if len(b[0]) == 2])
@pytest.mark.parametrize("order", [1, 2])
def test_unbounded_boxes_in_the_plane(lower: list[float], upper: list[float], epsilon: float, order: int) -> None:
    """Every division of the limit between two coordinates, on a grid that is refined around its best point."""
    radius = mpf(0.75)
    scale = scale_of("laplace", ib.Box(lower, upper), (ib.L1 if order == 1 else ib.L2)(0.75), epsilon)

    def cost(share: Any, at: Any) -> Any:
        second = radius * (1 - share) if order == 1 else radius * mp.sqrt(1 - share * share)
        return ref.pure_loss_box("laplace", at, lower, upper, (radius * share, second))

    def most(at: Any) -> Any:
        low, high = mpf(0), mpf(1)
        for _ in range(8):
            grid = [low + (high - low) * k / 10 for k in range(11)]
            best = max(range(11), key=lambda k: cost(grid[k], at))
            low, high = grid[max(best - 1, 0)], grid[min(best + 1, 10)]
        return max(cost(low, at), cost(high, at), cost((low + high) / 2, at))

    assert most(scale) <= goal(epsilon)
    assert most(mpf(scale) * (1 - mpf(10) ** -7)) > goal(epsilon)


# --- integer boxes -----------------------------------------------------------------------------


def allowed(change: Sequence[int], sensitivity: Any) -> bool:
    if isinstance(sensitivity, ib.L2):
        return sum(c * c for c in change) <= Fraction(sensitivity.value) ** 2
    if isinstance(sensitivity, ib.L1):
        return sum(change) <= sensitivity.value
    if isinstance(sensitivity, ib.Linf):
        return max(change) <= sensitivity.value
    if isinstance(sensitivity, ib.L0):
        return max(change) <= sensitivity.linf and sum(c > 0 for c in change) <= sensitivity.count
    return all(c <= d for c, d in zip(change, sensitivity, strict=True))


def exhaustive_loss(family: str, scale: Any, upper: Sequence[int], sensitivity: Any) -> Any:
    """Every pair of vectors of {0..upper} whose difference is allowed, every output; nothing is assumed."""
    points = list(itertools.product(*(range(u + 1) for u in upper)))
    logs = [
        [[ref.log_density(family, scale, [(0, u)], q, x, lattice=True) for x in range(u + 1)] for q in range(u + 1)]
        for u in upper
    ]
    table = {q: [mp.fsum(logs[i][q[i]][x[i]] for i in range(len(upper))) for x in points] for q in points}
    worst = mpf(0)
    for q in points:
        for q2 in points:
            if q != q2 and allowed([abs(a - b) for a, b in zip(q, q2, strict=True)], sensitivity):
                worst = max(worst, max(a - b for a, b in zip(table[q], table[q2], strict=True)))
    return worst


def wall_loss(family: str, scale: Any, upper: Sequence[int], sensitivity: Any) -> Any:
    """Every allowed whole change, each coordinate at its wall pair; ``test_wall_pairs_are_the_worst`` confirms it."""

    def one(u: int, c: int) -> Any:
        pair = ((0, c), (c, 0))
        return max(ref.pair_loss(family, scale, [(0, u)], *p, lattice=True) for p in pair) if c else mpf(0)

    losses = [[one(u, c) for c in range(min(u, 6) + 1)] for u in upper]
    changes = itertools.product(*(range(len(h)) for h in losses))
    return max(
        mp.fsum(h[c] for h, c in zip(losses, change, strict=True)) for change in changes if allowed(change, sensitivity)
    )


INTEGER_LIMITS = [
    ib.L1(1),
    ib.L1(2),
    ib.L1(4),
    ib.L2(1.0),
    ib.L2(1.5),
    ib.L2(5**0.5),
    ib.Linf(1),
    ib.Linf(2),
    ib.L0(1, linf=2),
    ib.L0(2, linf=1),
    [1, 2],
]


@pytest.mark.parametrize("family", FAMILIES)
def test_wall_pairs_are_the_worst(family: str) -> None:
    for sensitivity in INTEGER_LIMITS:
        for upper in ([1, 3], [2, 2]):
            exhaustive = exhaustive_loss(family, 1.3, upper, sensitivity)
            assert abs(wall_loss(family, 1.3, upper, sensitivity) - exhaustive) <= mpf(10) ** -40


def check_tiny(family: str, upper: Sequence[int], sensitivity: Any, epsilon: float) -> None:
    box = ib.Box([0] * len(upper), upper, integer=True)
    scale = scale_of(family, box, sensitivity, epsilon)
    loss = exhaustive_loss(family, scale, upper, sensitivity)
    assert loss <= goal(epsilon)
    whole = not isinstance(sensitivity, ib.L1 | ib.L2)  # under these the real changes only bound the whole ones
    assert loss >= goal(epsilon) * (NEAR if whole else 0.5)


@pytest.mark.parametrize("sensitivity", INTEGER_LIMITS, ids=repr)
@pytest.mark.parametrize("family", FAMILIES)
def test_tiny_integer_boxes(family: str, sensitivity: Any) -> None:
    for upper in ([1, 3], [2, 2]):
        for epsilon in (0.05, 1.0, 8.0):
            check_tiny(family, upper, sensitivity, epsilon)


def drawn_integers(rng: random.Random) -> tuple[list[int], Any, float]:
    upper = [rng.choice((rng.randint(1, 6), rng.randint(6, 100))) for _ in range(rng.randint(1, 3))]
    kind = rng.choice(KINDS)
    most = min(6, max(upper))
    if kind == "l1":
        sensitivity: Any = ib.L1(rng.randint(1, min(6, sum(upper))))
    elif kind == "l2":
        sensitivity = ib.L2(rng.uniform(1, min(6, math.hypot(*upper))))
    elif kind == "linf":
        sensitivity = ib.Linf(rng.randint(1, most))
    elif kind == "l0":
        sensitivity = ib.L0(rng.randint(1, len(upper)), linf=rng.randint(1, most))
    else:
        sensitivity = [rng.randint(1, min(6, u)) for u in upper]
    return upper, sensitivity, 10 ** rng.uniform(-7, math.log10(50))


def check_integers(family: str, upper: Sequence[int], sensitivity: Any, epsilon: float) -> None:
    scale = scale_of(family, ib.Box([0] * len(upper), upper, integer=True), sensitivity, epsilon)
    setting = (family, upper, sensitivity, epsilon, scale)
    assert wall_loss(family, scale, upper, sensitivity) <= goal(epsilon), setting
    if not isinstance(sensitivity, ib.L1 | ib.L2):
        assert wall_loss(family, mpf(scale) * NEAR, upper, sensitivity) > goal(epsilon), setting


@pytest.mark.parametrize("family", FAMILIES)
def test_generated_integer_boxes(family: str) -> None:
    rng = random.Random(f"integers {family}")
    for _ in range(40):
        check_integers(family, *drawn_integers(rng))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("family", FAMILIES)
def test_generated_integer_boxes_many(family: str, seed: int) -> None:
    rng = random.Random(f"integers {family} {seed}")
    for _ in range(120):
        check_integers(family, *drawn_integers(rng))


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 1e-4, 0.01])
@pytest.mark.parametrize("family", FAMILIES)
def test_one_integer_coordinate_is_an_integer_range(family: str, epsilon: float) -> None:
    """Small epsilons mean scales at which neighbouring masses differ by less than their rounding."""
    for upper, change in ((1, 1), (10, 2), (90, 6)):
        check_integers(family, [upper], ib.Linf(change), epsilon)
        check_integers(family, [upper], ib.L1(change), epsilon)


# --- the metric guarantee ----------------------------------------------------------------------


@pytest.mark.parametrize("sensitivity", [ib.L1(0.5), ib.L2(0.5), ib.Linf(0.5)], ids=repr)
@pytest.mark.parametrize("family", FAMILIES)
def test_metric(family: str, sensitivity: Any) -> None:
    """Loss at most epsilon |c| / sensitivity for every change vector, near and far, all coordinates at a wall."""
    lower, upper, epsilon = [0, -1], [3, 1], 0.8
    scale = scale_of(family, ib.Box(lower, upper), sensitivity, epsilon, guarantee="metric")
    rng = random.Random(51)
    order = {ib.L1: 1, ib.L2: 2, ib.Linf: mp.inf}[type(sensitivity)]

    def rate(at: Any, change: Sequence[Any]) -> Any:
        return ref.pure_loss_box(family, at, lower, upper, change) / mp.norm(change, order)

    bound = goal(epsilon) / mpf(0.5)
    for _ in range(100):
        size = mpf(10) ** rng.uniform(-6, 0)
        assert rate(scale, [3 * size * rng.random(), 2 * size * rng.random()]) <= bound
    tiny = mpf(10) ** -15
    slopes = [rate(1, [tiny, 0]), rate(1, [0, tiny])]  # the steepest direction depends on the norm only
    worst = {1: [tiny * (slopes[0] >= slopes[1]), tiny * (slopes[0] < slopes[1])], mp.inf: [tiny, tiny]}
    smaller = mpf(scale) * (1 - mpf(10) ** -7)
    if order == 2:
        slopes = [rate(smaller, [tiny, 0]), rate(smaller, [0, tiny])]
        worst[2] = [tiny * s for s in slopes]
    assert rate(scale, worst[order]) <= bound
    assert rate(smaller, worst[order]) > bound


# --- many dimensions ---------------------------------------------------------------------------


def wide_box(size: int) -> ib.Box:
    return ib.Box(np.zeros(size), np.random.default_rng(61).uniform(0.5, 20.0, size))


@pytest.mark.parametrize("sensitivity", [ib.L2(3.0), ib.L1(40.0)], ids=repr)
@pytest.mark.parametrize("epsilon", [0.1, 5.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_five_thousand_widths(monkeypatch: pytest.MonkeyPatch, family: str, sensitivity: Any, epsilon: float) -> None:
    """Locating the scale on representative widths gives the scale of the direct solution on all of them."""
    box = wide_box(5000)
    located = scale_of(family, box, sensitivity, epsilon)
    monkeypatch.setattr(calibration, "_COMPRESSED", 10**9)
    direct = scale_of(family, box, sensitivity, epsilon)
    assert located == pytest.approx(direct, rel=1e-8)
    for scale in (located, direct):
        mechanism = MECHANISMS[family](box, scale=scale, sensitivity=sensitivity)
        assert epsilon * (1 - 1e-8) <= mechanism.epsilon() <= goal(epsilon)


@pytest.mark.parametrize("family", FAMILIES)
def test_five_thousand_widths_against_trial_changes(family: str) -> None:
    """The loss, at 50 digits, of the reference's best change for ten widths that repeat 500 times each."""
    ten = [0.5 + 2.0 * k for k in range(10)]
    radius, epsilon = 3.0, 1.0
    scale = scale_of(family, ib.Box(np.zeros(5000), np.repeat(ten, 500)), ib.L2(radius), epsilon)
    # equal widths change equally, so that 500 of each under a limit are one of each under limit / sqrt(500)
    part = ref.worst_change_l2(family, scale, [0] * 10, ten, mpf(radius) / mp.sqrt(500), dps=30)
    assert part.loss * 500 <= goal(epsilon)
    assert part.loss * 500 >= goal(epsilon) * (1 - mpf(10) ** -7)


def test_two_thousand_open_coordinates() -> None:
    """Half-lines and lines in many dimensions: l1 / epsilon from the lines up to twice that."""
    size = 2100
    lower = np.where(np.arange(size) % 2 == 0, 0.0, -np.inf)
    box = ib.Box(lower, np.full(size, np.inf))
    half_line = ib.Laplace.calibrate(ib.Interval(0, INF), sensitivity=1, epsilon=0.5).scale
    # losses add; on a half-line ln(2 e^d - 1) is concave, so an l1 limit is best spread thin over half-lines
    exact = scale_of("laplace", box, ib.L1(1.0), 0.5)
    assert half_line < exact <= 2 / goal(0.5) * (1 + mpf(10) ** -9)
    each = mpf(1) / (size // 2)
    loss = (size // 2) * ref.pure_loss_interval("laplace", exact, 0, INF, each)
    assert goal(0.5) * NEAR <= loss <= goal(0.5)


# --- targets that cannot be met ----------------------------------------------------------------


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize(("lower", "upper"), [([0, 0], [1, INF]), ([-INF, -INF], [INF, INF])])
def test_no_pure_epsilon_for_unbounded_gaussian_outputs(lower: list[float], upper: list[float], integer: bool) -> None:
    with pytest.raises(ib.UnreachableTarget, match=r"no pure epsilon.*delta.*rho, rdp.*Laplace.*bounded"):
        scale_of("gaussian", ib.Box(lower, upper, integer=integer), ib.L2(1), 1.0)


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-15, 1e-18, 1e-300])
@pytest.mark.parametrize("family", FAMILIES)
def test_absurdly_small_epsilon_is_met_or_refused(family: str, epsilon: float, integer: bool) -> None:
    try:
        scale = scale_of(family, ib.Box([0, 0], [1, 2], integer=integer), ib.Linf(1), epsilon)
    except ib.InboundsError:
        return
    with mp.workdps(400):
        loss = mp.fsum(
            max(
                ref.pair_loss(family, scale, [(0, u)], 0, 1, lattice=integer, dps=350),
                ref.pair_loss(family, scale, [(0, u)], 1, 0, lattice=integer, dps=350),
            )
            for u in (1, 2)
        )
        assert loss <= goal(epsilon)


# --- the checks above can fail -----------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.99, 1 - 1e-9, 1 + 2e-8, 1.01])
@pytest.mark.parametrize("family", FAMILIES)
def test_wrong_scales_are_rejected(monkeypatch: pytest.MonkeyPatch, family: str, factor: float) -> None:
    broken(monkeypatch, factor)
    for sensitivity in (ib.L2(1.5), ib.L1(1.5), ib.Linf(1.5), ib.L0(1, linf=1.5), [1.5, 0.5]):
        with pytest.raises(AssertionError):
            check(family, [0, 1], [3, 8], sensitivity, 0.6)
    for limit_ in (ib.Linf(1), ib.L0(1, linf=2), [1, 2]):
        with pytest.raises(AssertionError):
            check_tiny(family, [1, 3], limit_, 1.0)
        with pytest.raises(AssertionError):
            check_integers(family, [1, 3], limit_, 1.0)
    if factor == 0.99:
        with pytest.raises(AssertionError):
            check_integers(family, [4], ib.L1(2), 1.0)  # in one coordinate the bound is attained


def test_an_unknown_epsilon_is_infinite() -> None:
    mechanism = ib.Gaussian(ib.Box([0, 1], [10, 9], integer=True), scale=2.0, sensitivity=ib.L2(4.47), edges="ignore")
    found = mechanism.epsilon(1e-6)
    assert found == math.inf
    assert not found.exact


# --- Gaussian noise on unbounded integer boxes -------------------------------------------------


@pytest.mark.parametrize("edges", ["ignore", "clamp"])
def test_rho_of_whole_gaussian_vectors(edges: str) -> None:
    """Rényi divergences of the two-dimensional law, summed at 50 digits, against what is stated."""
    box = ib.Box([0, 0], [INF, INF], integer=True)
    found = ib.Gaussian.calibrate(box, sensitivity=ib.L2(5.0), rho=0.5, edges=edges)
    assert found.zcdp() <= 0.5
    for change in ((3, 4), (5, 0), (1, 2)):
        for alpha in (1.5, 2.0, 8.0):
            exact = sum(shifted_renyi(mpf(found.scale), shift, mpf(alpha)) for shift in change)
            assert exact <= found.rdp(alpha)
            assert exact <= found.zcdp() * alpha * (1 + 1e-9)
    worst = sum(shifted_renyi(mpf(found.scale), shift, mpf(2)) for shift in (3, 4))
    assert worst >= found.rdp(2.0) * (1 - 1e-9)  # attained by whole shifts of the largest length
    assert found.rdp(2.0) > 1.9 * ib.Gaussian(box, scale=2 * found.scale, sensitivity=ib.L2(5.0), edges=edges).rdp(2.0)


def shifted_renyi(sigma: Any, shift: int, alpha: Any) -> Any:
    """D_alpha of the whole-number Gaussian at ``shift`` from that at 0."""
    reach = int(20 * sigma) + 10 * shift

    def weight(k: int) -> Any:
        return mp.exp(-(mpf(k) ** 2) / (2 * sigma**2))

    total = mp.fsum(weight(k) for k in range(-reach, reach + 1))
    terms = [weight(k - shift) ** alpha * weight(k) ** (1 - alpha) for k in range(-4 * reach, 4 * reach + 1)]
    return mp.log(mp.fsum(terms) / total) / (alpha - 1)

"""The staircase mechanism: its law, its guarantee against brute force, its draws bit by bit, and bad input."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import inbounds as ib
from inbounds.noise import staircase as noises
from inbounds.sampling import inversion, stairs
from inbounds.sampling.entropy import Seeded
from tests import shifted_reference as ref

INF = math.inf
ALPHA = 1e-7
LINE, WHOLE = ib.Interval(-INF, INF), ib.Integers(-INF, INF)
SPANS = ib.Spans([(0.0, 10.0), (15.0, 30.0), (30.5, 31.0)])
PROBABILITIES = np.array([1e-12, 0.001, 0.02, 0.25, 0.5, 0.61, 0.9, 0.999, 1 - 1e-9])


def reference(m: ib.Staircase) -> ref.Stairs:
    """The noise of a mechanism from its parameters, as the docstring has it."""
    width = Fraction(m.sensitivity)
    if m.domain.lattice:
        return ref.Stairs(width, Fraction(round(m.gamma * m.sensitivity)), float(m.epsilon()), True)
    width = Fraction(m.sensitivity * (1.0 + 2.0**-40))
    return ref.Stairs(width, Fraction(m.gamma * float(width)), float(m.epsilon()), False)


def random_stairs(count: int, seed: int, most: int = 12) -> list[tuple[int, int, float]]:
    """(sensitivity, first stair, epsilon) on whole numbers."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        m = int(rng.integers(1, most + 1))
        out.append((m, int(rng.integers(1, m + 1)), float(np.exp(rng.uniform(math.log(0.3), math.log(8.0))))))
    return out


def whole_law(m: int, r: int, epsilon: float) -> tuple[Any, Any]:
    return ref.pmf(ref.Stairs(Fraction(m), Fraction(r), epsilon, True), m * math.ceil(42.0 / epsilon + 2.0))


# --- the noise ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "r", "epsilon"), random_stairs(25, 1))
def test_whole_noise_is_what_it_is_defined_to_be(m: int, r: int, epsilon: float) -> None:
    i, p = whole_law(m, r, epsilon)
    made = ib.Staircase(WHOLE, sensitivity=m, epsilon=epsilon, gamma=r / m, edges="ignore")
    law = made.at(5)
    near = np.abs(i) <= 6 * m + 6
    assert np.allclose(law.pmf(5 + i[near]), p[near], rtol=1e-12, atol=0)
    assert np.allclose(law.cdf(5 + i[near]), np.cumsum(p)[near], rtol=1e-11)
    assert np.allclose(law.sf(5 + i[near] - 1), np.cumsum(p[::-1])[::-1][near], rtol=1e-11)
    assert law.mean() == 5
    assert law.var() == pytest.approx(np.sum(p * i**2), rel=1e-12)
    assert law.error().mae == pytest.approx(np.sum(p * np.abs(i)), rel=1e-12)
    assert law.pmf(5.5) == 0.0
    # moments of parts of it, which the errors on domains are made of
    part = np.array([0, 1, 2, 3, m, 2 * m + 1, 7 * m, INF])
    first, second = made._noise.moments_to(part)
    for t, one, two in zip(part, first, second, strict=True):
        y = np.minimum(np.maximum(i, 0), t)
        assert one == pytest.approx(np.sum(p * y), rel=1e-12)
        assert two == pytest.approx(np.sum(p * y * y), rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.1, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("gamma", [0.0, 0.1, 0.37, 0.5, 1.0])
def test_real_noise_is_what_it_is_defined_to_be(epsilon: float, gamma: float) -> None:
    m = ib.Staircase(LINE, sensitivity=2.0, epsilon=epsilon, gamma=gamma, edges="ignore")
    exact, law = reference(m), m.at(0.0)
    t = m._noise.mean_size() * np.array([0.0, 1e-6, 0.3, 0.9, 1.1, 2.5, 6.0])
    true = [ref.below(exact, -Fraction(x)) for x in t]
    assert np.allclose(law.cdf(-t), np.array(true, dtype=float), rtol=1e-12 * math.exp(min(epsilon, 12.0)))
    assert np.array_equal(law.sf(t), law.cdf(-t))
    assert np.allclose(law.ppf(law.cdf(-t)), -t, rtol=1e-9, atol=1e-9 * m._noise.mean_size())
    height = law.pdf(np.array([-0.7, 0.7]) * 2.0 * max(gamma, 1e-9))
    assert height[0] == height[1]
    # the integral of the tail from the definition: a straight line on every stair
    marks = [Fraction(0), *(exact.first + k * exact.width for k in range(4))]
    one = two = mpf(0)
    for a, b in itertools.pairwise(marks):
        s, t, middle = exact.tail(a), exact.tail(b), (exact.tail(a) + exact.tail(b)) / 2
        one += ref.exactly(b - a) * middle
        two += ref.exactly(b - a) * (ref.exactly(a) * s + 2 * ref.exactly(a + b) * middle + ref.exactly(b) * t) / 3
        found = m._noise.moments_to(np.array(float(b)))
        assert float(found[0]) == pytest.approx(float(one / (2 * exact.tail(Fraction(0)))), rel=1e-12)
        assert float(found[1]) == pytest.approx(float(two / (2 * exact.tail(Fraction(0)))), rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 4.0, 10.0])
def test_moments_of_real_noise(epsilon: float) -> None:
    """Geng and Viswanath's closed forms, at 60 digits."""
    e = ref.exactly(epsilon)
    low = mp.exp(-e)
    for gamma in (0.0, 0.2, 0.5, 0.9):
        m = ib.Staircase(LINE, sensitivity=1.0, epsilon=epsilon, gamma=gamma)
        g, stairs_ = ref.exactly(gamma), [mp.nsum(lambda k, n=n: k**n * mp.exp(-k * e), [0, mp.inf]) for n in range(3)]
        height = (1 - low) / (2 * (g + low * (1 - g)))
        # stair k + 1 lies from g + k to g + k + 1
        size = g**2 / 2 + low * (stairs_[1] + (g + mpf(1) / 2) * stairs_[0])
        square = g**3 / 3 + low * (stairs_[2] + (2 * g + 1) * stairs_[1] + (g**2 + g + mpf(1) / 3) * stairs_[0])
        width = 1.0 + 2.0**-40
        assert m.at(0.0).error().mae == pytest.approx(float(2 * height * size) * width, rel=1e-12)
        assert m.at(0.0).var() == pytest.approx(float(2 * height * square) * width**2, rel=1e-12)


# --- the best first stair ------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_the_first_stair_is_best(epsilon: float, loss: str) -> None:
    def lost(gamma: float) -> float:
        found = ib.Staircase(LINE, sensitivity=1.0, epsilon=epsilon, gamma=gamma).at(0.0).error()
        return float(found.mae if loss == "absolute" else found.rmse)

    chosen = ib.Staircase.calibrate(LINE, sensitivity=1.0, epsilon=epsilon, loss=loss)
    best = lost(chosen.gamma)
    assert all(best <= lost(g) * (1.0 + 1e-14) for g in np.linspace(0.0, 1.0, 201))
    assert all(best < lost(chosen.gamma + d) for d in (-0.01, 0.01) if 0.0 <= chosen.gamma + d <= 1.0)
    laplace = ib.Laplace.calibrate(LINE, sensitivity=1.0, epsilon=epsilon).at(0.0).error()
    assert best < (laplace.mae if loss == "absolute" else laplace.rmse)


def test_the_published_share_for_squared_loss() -> None:
    """Their formula as printed, in 60 digits, against the shorter one used here."""
    for epsilon in (1e-12, 1e-6, 1e-3, 0.1, 1.0, 5.0, 40.0, 400.0):
        b = mp.exp(-ref.exactly(epsilon))
        printed = -b / (1 - b) + mp.cbrt(b - 2 * b**2 + 2 * b**4 - b**5) / (mp.cbrt(2) * (1 - b) ** 2)
        assert noises.best_gamma(epsilon, "squared") == pytest.approx(float(printed), rel=1e-13)


@pytest.mark.parametrize("m", [1, 2, 3, 7, 20, 61])
@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_the_first_stair_is_best_on_whole_numbers(m: int, loss: str) -> None:
    for epsilon in (0.05, 0.4, 1.0, 2.5, 6.0):
        made = [ib.Staircase(WHOLE, sensitivity=m, epsilon=epsilon, gamma=r / m).at(0).error() for r in range(1, m + 1)]
        lost = [float(e.mae if loss == "absolute" else e.rmse) for e in made]
        chosen = ib.Staircase.calibrate(WHOLE, sensitivity=m, epsilon=epsilon, loss=loss)
        assert lost[round(chosen.gamma * m) - 1] <= min(lost) * (1.0 + 1e-14)


def test_one_step_is_the_geometric_mechanism() -> None:
    stair = ib.Staircase.calibrate(ib.Integers(0, 30), sensitivity=1, epsilon=1.0)
    laplace = ib.Laplace(ib.Integers(0, 30), scale=1.0, sensitivity=1, edges="clamp")
    k = np.arange(31)
    assert np.allclose(stair.at(7).pmf(k), laplace.at(7).pmf(k), rtol=1e-12)


# --- the guarantee ------------------------------------------------------------------------------


def losses(rows: Any, reach: int) -> Any:
    """All ordered pairs of rows at most ``reach`` apart, stacked: (laws of the first, laws of the second)."""
    pairs = [(a, b) for a in range(len(rows)) for b in range(len(rows)) if 0 < abs(a - b) <= reach]
    return np.array([rows[a] for a, _ in pairs]), np.array([rows[b] for _, b in pairs])


@pytest.mark.parametrize(("m", "r", "epsilon"), random_stairs(12, 2, most=8))
def test_the_guarantee_against_all_pairs(m: int, r: int, epsilon: float) -> None:
    """Pure loss, delta and Rényi divergence over all pairs within the sensitivity, plain and clamped."""
    i, p = whole_law(m, r, epsilon)
    width = m + 9
    plain = np.array([np.interp(np.arange(i[0], i[-1] + m + 1) - q, i, p, left=0.0, right=0.0) for q in range(m + 1)])
    for edges, rows in (("clamp", ref.clamped(i, p, 0, width)), ("ignore", plain)):
        made = ib.Staircase(ib.Integers(0, width), sensitivity=m, epsilon=epsilon, gamma=r / m, edges=edges)
        first, second = losses(rows, m)
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = np.where(first > 1e-13, np.log(first / second), 0.0)
        assert np.nanmax(loss) == pytest.approx(epsilon, rel=1e-9)
        assert made.epsilon() == epsilon
        assert made.epsilon().exact
        for share in (0.0, 0.3, 0.9, 0.999):
            true = np.max(np.sum(np.maximum(first - math.exp(share * epsilon) * second, 0.0), axis=1))
            found = made.delta(share * epsilon)
            assert found.exact
            assert found == pytest.approx(true, rel=1e-9, abs=1e-12)
        assert made.delta(epsilon) == 0.0
        for alpha in (1.01, 2.0, 5.0):
            with np.errstate(divide="ignore", invalid="ignore"):
                terms = np.where((first > 0.0) & (second > 0.0), first**alpha * second ** (1.0 - alpha), 0.0)
            true = np.max(np.log(np.sum(terms, axis=1))) / (alpha - 1.0)
            assert made.rdp(alpha) == pytest.approx(true, rel=1e-7, abs=1e-11)
            assert made.rdp(alpha).exact


def test_reports_are_never_below_the_truth() -> None:
    """Delta and Rényi divergence of a shift by the sensitivity at 60 digits: no tolerance."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        epsilon, gamma = float(np.exp(rng.uniform(-8, 5))), float(rng.uniform(0, 1))
        m = ib.Staircase(LINE, sensitivity=float(rng.uniform(0.1, 9)), epsilon=epsilon, gamma=gamma)
        e, g = ref.exactly(epsilon), ref.exactly(Fraction(gamma))
        low = mp.exp(-e)
        w = (min(2 * g, 1) * (1 - low) + low) / (2 * (g + (1 - g) * low))
        w *= 1 - mpf(2) ** -39  # the sensitivity is a little less than the width of a stair
        for share in (0.0, 1e-9, 0.5, 1.0 - 1e-9):
            at = float(share * epsilon)
            true = w * -mp.expm1(ref.exactly(at) - e)
            assert true <= mpf(float(m.delta(at))) <= true * (1 + mpf(2) ** -36) + mpf(2) ** -1000
        for alpha in (1.0 + 1e-9, 1.5, 7.0, 1e4):
            a = ref.exactly(alpha)
            true = mp.log(1 + w * (mp.exp((a - 1) * e) - 1) * -mp.expm1(-a * e)) / (a - 1)
            assert true <= mpf(float(m.rdp(alpha))) <= true * (1 + mpf(2) ** -30) + mpf(2) ** -48 / (a - 1)


def test_other_currencies() -> None:
    m = ib.Staircase.calibrate(LINE, sensitivity=1.0, epsilon=1.0)
    assert m.epsilon(1e-9) <= 1.0
    assert m.delta(float(m.epsilon(0.1))) <= 0.1
    w = float(m.delta(0.0)) / -math.expm1(-1.0)
    entropy = w * (1.0 - math.exp(-1.0))  # the Kullback-Leibler divergence, where rho is attained in the limit
    assert entropy <= m.zcdp() <= entropy * 1.01
    mu = float(m.gdp())
    for e in np.linspace(0.0, 1.0, 21):
        bell = mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)
        assert m.delta(float(e)) <= bell * (1 + 1e-9) + 1e-15
    half = ib.Staircase(LINE, sensitivity=1.0, epsilon=2.0, gamma=0.5)
    assert half.delta(0.5) == pytest.approx((math.exp(2) - math.exp(0.5)) / (1 + math.exp(2)))  # randomised response


def test_nearer_answers_lose_less_often() -> None:
    """On spans whose points cannot be a whole sensitivity apart."""
    apart = ib.Spans([(0.0, 1.0), (10.0, 11.0)])
    m = ib.Staircase(apart, sensitivity=5.0, epsilon=1.0, edges="ignore")
    near = ib.Staircase(ib.Interval(0, 1), sensitivity=1.0, epsilon=1.0, gamma=m.gamma, edges="ignore")
    assert m.delta(0.5) < near.delta(0.5)
    found = ib.audit(m, epsilon=0.5, delta=float(m.delta(0.5)) * 0.999)
    assert found.refuted
    clamped = ib.Staircase(apart, sensitivity=5.0, epsilon=1.0)
    assert not clamped.delta(0.5).exact
    assert clamped.delta(0.5) == m.delta(0.5)


def test_epsilon_is_read_as_a_decimal_too() -> None:
    for epsilon in (0.1, 0.3, 0.7, 1e-15, 1.1):
        m = ib.Staircase.calibrate(LINE, sensitivity=1.0, epsilon=epsilon)
        assert Fraction(float(m.epsilon())) <= min(Fraction(epsilon), Fraction(repr(epsilon)))
        assert m.epsilon() == pytest.approx(epsilon, rel=1e-15)
        assert m.scale == pytest.approx(1.0 / epsilon)


def test_rounded_distances_are_within_a_stair() -> None:
    """0.4 - 0.3 is more than 0.1 as floats are; the two are neighbours all the same."""
    m = ib.Staircase.calibrate(ib.Interval(0, 1), sensitivity=0.1, epsilon=1.0)
    assert Fraction(0.4) - Fraction(0.3) > Fraction(0.1)
    exact = reference(m)
    ends = [Fraction(0.3) + s * (exact.first + k * exact.width) for s in (-1, 1) for k in range(4)]
    ends += [Fraction(0.4) + s * (exact.first + k * exact.width) for s in (-1, 1) for k in range(4)]
    for a, b in itertools.pairwise(sorted(ends)):
        x = (a + b) / 2
        assert abs(exact.level(x - Fraction(0.3)) - exact.level(x - Fraction(0.4))) <= 1


@pytest.mark.thinned(3)
@pytest.mark.parametrize("edges", ["clamp", "ignore"])
@pytest.mark.parametrize("domain", [ib.Interval(0, 3), ib.Interval(2, INF), ib.Integers(0, 12), SPANS], ids=str)
def test_audits(domain: Any, edges: str) -> None:
    m = ib.Staircase.calibrate(domain, sensitivity=2, epsilon=0.8, edges=edges)
    assert ib.audit(m, epsilon=0.8).proven
    assert ib.audit(m, sensitivity=2, epsilon=0.8).proven
    found = ib.audit(m, epsilon=0.79)
    assert found.refuted
    assert found.witness.violates
    assert found.real_epsilon[0] == pytest.approx(0.8, rel=1e-9)
    delta = float(m.delta(0.4))
    assert ib.audit(m, epsilon=0.4, delta=delta * 1.001).proven
    assert ib.audit(m, epsilon=0.4, delta=delta * 0.999).refuted
    assert "Staircase" in str(found)
    assert found.to_json()
    with pytest.raises(ib.ParameterError, match=r"sensitivity must be 2\.0, which its noise is made for"):
        ib.audit(m, sensitivity=1, epsilon=1.0)


def test_an_audit_finds_a_wrong_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stairs a little too narrow: two stairs down at once, on a small set."""
    m = ib.Staircase.calibrate(ib.Integers(0, 30), sensitivity=5, epsilon=1.0)
    monkeypatch.setitem(m.__dict__, "_noise", noises.Stairs(4.0, m._noise.first, m._noise.epsilon, lattice=True))
    found = ib.audit(m, epsilon=1.0)
    assert found.refuted
    assert found.witness.loss == pytest.approx(2.0)
    assert "bug" in found.reason  # the bound said otherwise


# --- the law on domains --------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "r", "epsilon"), random_stairs(6, 3, most=6))
def test_clamped_laws_on_whole_numbers(m: int, r: int, epsilon: float) -> None:
    i, p = whole_law(m, r, epsilon)
    domain = ib.Integers(-3, 9)
    rows, k = ref.clamped(i, p, -3, 9), np.arange(-3, 10)
    made = ib.Staircase(domain, sensitivity=m, epsilon=epsilon, gamma=r / m)
    law = made.at(k[:, None])
    assert np.allclose(law.pmf(k), rows, rtol=1e-11)
    assert np.allclose(law.cdf(k), np.cumsum(rows, axis=1), rtol=1e-11)
    assert np.allclose(law.sf(k)[:, :-1], np.cumsum(rows[:, ::-1], axis=1)[:, ::-1][:, 1:], rtol=1e-11)
    flat = made.at(k)
    mean = rows @ k
    assert np.allclose(flat.mean(), mean, rtol=1e-12, atol=1e-12)
    assert np.allclose(flat.var(), rows @ k**2 - mean**2, rtol=1e-10)
    error = flat.error()
    assert np.allclose(error.mae, np.sum(rows * np.abs(k - k[:, None]), axis=1), rtol=1e-12)
    assert np.allclose(error.rmse**2, np.sum(rows * (k - k[:, None]) ** 2, axis=1), rtol=1e-12)
    assert np.allclose(error.at_lower, rows[:, 0])
    assert np.allclose(error.at_upper, rows[:, -1])
    for share in PROBABILITIES:
        true = k[np.argmax(np.cumsum(rows, axis=1) >= share * (1.0 - 1e-12), axis=1)]
        assert np.array_equal(flat.ppf(share), true)


def test_quantiles_of_whole_noise() -> None:
    for m, r, epsilon in random_stairs(8, 4):
        law = ib.Staircase(WHOLE, sensitivity=m, epsilon=epsilon, gamma=r / m, edges="ignore").at(3)
        x = law.ppf(PROBABILITIES)
        assert (x == np.floor(x)).all()
        assert (law.cdf(x) >= PROBABILITIES).all()
        assert (law.cdf(x - 1) < PROBABILITIES).all()
    assert np.isnan(law.ppf([-0.1, 1.1, math.nan])).all()


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 6.0])
@pytest.mark.parametrize("domain", [ib.Interval(0, 3), ib.Interval(-1, INF), SPANS], ids=str)
def test_clamped_laws_of_reals(domain: Any, epsilon: float) -> None:
    """Moments as integrals of the tails, which are straight lines between knots; and the words of a distribution."""
    m = ib.Staircase.calibrate(domain, sensitivity=2.0, epsilon=epsilon)
    noise = m._noise
    for q in (domain.pieces[0][0], 2.5):
        law = m.at(q)
        away = noise.first + noise.width * np.arange(math.ceil(60.0 / epsilon))
        ends = [x for piece in domain.pieces for x in piece if math.isfinite(x)]
        knots = np.unique(np.concatenate([[q], q + away, q - away, ends]))
        over, under = knots[knots >= q], knots[knots <= q]
        mean = ref.integral(law.sf, over) - ref.integral(law.cdf, under)
        size = ref.integral(law.sf, over) + ref.integral(law.cdf, under)
        square = ref.integral(lambda x, q=q, law=law: 2 * (x - q) * law.sf(x), over)
        square += ref.integral(lambda x, q=q, law=law: 2 * (q - x) * law.cdf(x), under)
        error = law.error()
        assert law.mean() - q == pytest.approx(mean, rel=1e-10, abs=1e-13)
        assert error.mae == pytest.approx(size, rel=1e-10)
        assert error.rmse**2 == pytest.approx(square, rel=1e-10)
        assert law.std() ** 2 == pytest.approx(square - mean**2, rel=1e-10)
        assert ref.integral(law.pdf, knots) + sum(mass for _, mass in law.atoms) == pytest.approx(1.0, abs=1e-12)
        assert error.at_lower == pytest.approx(dict(law.atoms)[domain.lower])
        reached = law.ppf(PROBABILITIES)
        assert domain.contains(reached).all()
        assert (law.cdf(reached) >= PROBABILITIES * (1.0 - 1e-9)).all()
        assert (law.cdf(np.nextafter(reached, -INF)) <= PROBABILITIES + 1e-9).all()
        assert law.cdf(reached) + law.sf(reached) == pytest.approx(np.ones(reached.size))
        assert law.pdf(domain.lower - 1.0) == 0.0
    with pytest.raises(ib.ParameterError):
        law.logpmf(1.0)
    assert "Staircase" in repr(law)


# --- draws --------------------------------------------------------------------------------------


@pytest.mark.thinned(3)
@pytest.mark.parametrize("epsilon", [1e-6, 0.7, 12.0, 60.0, 300.0])
@pytest.mark.parametrize(
    ("domain", "sensitivity"), [(LINE, 1.3), (WHOLE, 1), (WHOLE, 7), (WHOLE, 10**6)], ids=["line", "1", "7", "many"]
)
def test_draws_are_the_inverse_of_their_bits(domain: Any, sensitivity: float, epsilon: float) -> None:
    rng = np.random.default_rng(7)
    mp.dps = 90
    for gamma in (None, 0.0, 0.3, 1.0):
        m = ib.Staircase(domain, sensitivity=sensitivity, epsilon=epsilon, gamma=gamma, edges="ignore")
        exact, g = reference(m), m.grid
        q = float(rng.integers(-20, 20)) if domain.lattice else float(rng.uniform(-3, 3))
        if abs(q) / g > 2**52:
            q = 0.3 * g
        size = m._noise.mean_size()
        near = [round(q / g) + round(x * size / g) for x in (0.0, 0.3, -1.0, 2.5)] + [round((q + exact.first) / g)]
        words = ref.awkward_words(exact, q, g, near, [52, 66, 150])
        words += [[int(w) for w in rng.integers(0, 2**64, 4, dtype=np.uint64)] for _ in range(4)]
        for each in words:
            ref.check_draw(exact, m._sampler, q, each)


def test_positions_are_within_their_margins() -> None:
    """What the fast path computes before it rounds, against 60 digits."""
    rng = np.random.default_rng(11)
    worst = 0.0
    for case in range(24):
        lattice = case % 2 == 1
        epsilon = float(np.exp(rng.uniform(math.log(1e-6), math.log(200.0))))
        width = float(rng.integers(1, 10**6)) if lattice else float(np.exp(rng.uniform(-5, 5)))
        share = float(rng.choice([0.0, 1.0, rng.uniform(), np.exp(-rng.uniform(0, 60))]))
        first = float(max(1, round(share * width))) if lattice else share * width
        noise = noises.Stairs(width, first, epsilon, lattice=lattice)
        step = 1.0 if lattice else 2.0 ** -math.floor(24 - math.log2(noise.mean_size()))
        exact = ref.Stairs(Fraction(width), Fraction(first), epsilon, lattice)
        found = positions(stairs.StairsKernel(noise, step), rng)
        whole = exact.tail(Fraction(0)) + exact.tail(Fraction(int(lattice)))
        for bits, count, position, margin in found:
            U = Fraction(2 * bits + 1, 1 << (count + 1))
            t = ref_inverse(exact, ref.exactly(min(U, 1 - U)) * whole)
            t = (t - mpf(1) / 2 if lattice else t) / ref.exactly(step)
            miss = abs(mpf(position) - (t if 2 * U > 1 else -t))
            assert miss <= margin
            worst = max(worst, float(miss / margin))
    assert worst > 0.001  # the margins are not absurd


def ref_inverse(exact: ref.Stairs, mass: Any) -> Any:
    """Where the tail is ``mass``: the stair by bisection over stairs, then a straight line."""
    low, high = -1, 1
    while exact.tail(exact.first + high * exact.width) > mass:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if exact.tail(exact.first + middle * exact.width) > mass else (low, middle)
    start = exact.first + low * exact.width if low >= 0 else Fraction(0)
    return ref.exactly(start) + (exact.tail(start) - mass) / mp.exp(-(low + 1) * ref.exactly(exact.epsilon))


def positions(kernel: Any, rng: np.random.Generator) -> list[tuple[int, int, float, float]]:
    """(bits, their number, position, margin) of what both paths work out around 0, where they have not given up."""
    first = [int(w) for w in rng.integers(0, 2**64, 24, dtype=np.uint64)]
    first += [
        int(w) >> int(z) for w, z in zip(rng.integers(0, 2**64, 12, dtype=np.uint64), range(2, 62, 5), strict=True)
    ]
    work = inversion.Work(len(first))
    work.q[:], work.words[:] = 0.0, first
    kept: list[Any] = []
    single: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stairs, "round_to_cell", lambda w, f: kept.append((w.v.copy(), f.margin.copy(), w.unsure.copy())))
        patch.setattr(stairs, "round_one", lambda whole, position, frame: single.append((position, frame.margin)))
        kernel.many(work, kernel.frame, Seeded(2))
        out = []
        for j, n in enumerate(first):
            bits, count = (n, 64) if j not in work.second else (n << 64 | work.second[j], 128)
            v, margin, unsure = (x[j] for x in kept[0])
            if not unsure:
                out.append((bits, count, float(v), float(margin)))
            kernel.one(0.0, n)
            out += [(n, 64, *found) for found in single]
            single.clear()
    return out


CASES = {
    "interval": (ib.Interval(0, 3), "clamp", 0.7),
    "line": (LINE, "ignore", -4.3),
    "half-line": (ib.Interval(0, INF), "clamp", 0.2),
    "spans": (SPANS, "clamp", 9.0),
    "whole": (ib.Integers(0, 20), "clamp", 4),
    "all whole": (WHOLE, "ignore", 4),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_releases_follow_the_law(name: str, epsilon: float) -> None:
    domain, edges, q = CASES[name]
    m = ib.Staircase.calibrate(domain, sensitivity=2, epsilon=epsilon, edges=edges)
    drawn = m.release(np.full(200_000, q)).value
    assert edges == "ignore" or domain.contains(drawn).all()
    assert ref.chi_square(drawn, reference(m), m, q) > ALPHA
    wrong = ib.Staircase(domain, sensitivity=2, epsilon=epsilon * 1.1, gamma=m.gamma, edges=edges)
    assert ref.chi_square(drawn, reference(wrong), m, q) < ALPHA


def test_single_releases_follow_the_law() -> None:
    m = ib.Staircase.calibrate(LINE, sensitivity=2, epsilon=1.5)
    drawn = np.array([m.release(0.3).value for _ in range(30_000)])
    assert ref.chi_square(drawn, reference(m), m, 0.3) > ALPHA
    wrong = ib.Staircase(LINE, sensitivity=2, epsilon=2.0, gamma=m.gamma)
    assert ref.chi_square(drawn, reference(wrong), m, 0.3) < ALPHA


def test_arrays_and_single_values_take_the_same_bits() -> None:
    for domain, edges, q in CASES.values():
        m = ib.Staircase.calibrate(domain, sensitivity=2, epsilon=1.0, edges=edges)
        rng = np.random.default_rng(3)
        for word in rng.integers(2**50, 2**64 - 2**50, 200, dtype=np.uint64).tolist():
            one = m._sampler.one(q, ref.Words([word]))
            assert one == m._sampler.draw(np.array([q]), ref.Words([word]))[0]


def test_neighbouring_values_share_their_grid() -> None:
    """Every answer of one true value is a possible answer of the other: the grid does not move with the value."""
    m = ib.Staircase.calibrate(ib.Interval(-1, 1), sensitivity=0.1, epsilon=1.0)
    for a, b in ((0.1, 0.101), (0.1245, 0.1255), (0.125, 0.126)):
        ends = []
        for q in (a, b):
            k = m.release(np.full(200_000, q)).value / m.grid
            assert (k == np.round(k)).all()
            ends.append(np.bincount((k.astype(np.int64) & 15), minlength=16))
        # the last four bits of a position are uniform, whatever the true value
        for counts in ends:
            assert np.max(np.abs(counts - 12_500.0)) < 6.0 * math.sqrt(12_500.0)


def test_granularity_and_grids() -> None:
    m = ib.Staircase(ib.Interval(0, 1), sensitivity=0.5, epsilon=1.0, granularity=2.0**-4)
    assert m.grid == 2.0**-4
    assert set((m.release(np.full(4000, 0.3)).value * 16).tolist()) == set(range(17))
    coarse, fine = (ib.Staircase(LINE, sensitivity=1.0, epsilon=e).grid for e in (1.0, 20.0))
    assert fine < coarse < 2.0**-23
    assert ib.Staircase(WHOLE, sensitivity=3, epsilon=1.0).grid == 1.0


def test_shapes_kinds_and_seeds() -> None:
    for domain, edges, q in CASES.values():
        m = ib.Staircase.calibrate(domain, sensitivity=2, epsilon=1.0, edges=edges)
        kind, dtype = (int, np.int64) if domain.lattice else (float, np.float64)
        one = m.release(q)
        assert type(one.value) is kind
        assert one.mechanism is m
        for shape in ((3,), (2, 2), (0,)):
            many = m.release(np.full(shape, q)).value
            assert many.shape == shape
            assert many.dtype == dtype
        a, b, c = (m.simulate(q, size=40, seed=seed) for seed in (1, 1, 2))
        assert np.array_equal(a, b)
        assert not np.array_equal(a, c)
    assert ib.Staircase.calibrate(ib.Interval(0, 1), sensitivity=1, epsilon=1.0).release(7.0, clip=True).value <= 1.0


# --- a value like any other; bad input -----------------------------------------------------------


def test_is_a_value() -> None:
    for domain, edges, _ in CASES.values():
        m = ib.Staircase.calibrate(domain, sensitivity=2, epsilon=1.3, edges=edges, loss="absolute")
        assert eval(repr(m), {**vars(ib), "inf": INF}) == m
        for twin in (pickle.loads(pickle.dumps(m)), copy.copy(m), copy.deepcopy(m)):
            assert twin == m
            assert hash(twin) == hash(m)
        assert m != ib.Staircase(domain, sensitivity=2, epsilon=1.4, gamma=m.gamma, edges=edges)
        for name in ("domain", "gamma", "scale", "edges", "something_new"):
            with pytest.raises(AttributeError):
                setattr(m, name, 1.0)
    fine = ib.Staircase(ib.Interval(0, 1), sensitivity=1, epsilon=1, granularity=0.25, edges="ignore")
    assert repr(fine).endswith("edges='ignore', granularity=0.25)")
    assert eval(repr(fine), vars(ib)) == fine


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"domain": (0, 1)}, ib.ParameterTypeError, "domain must be"),
        ({"domain": ib.Box([0], [1]), "sensitivity": ib.L1(1)}, ib.ParameterError, "Use Laplace or Gaussian for a Box"),
        ({"edges": "truncate"}, ib.ParameterError, "does not keep its guarantee"),
        ({"edges": "wrap"}, ib.ParameterError, "edges must be one of 'clamp', 'ignore'"),
        ({"edges": 3}, ib.ParameterTypeError, "edges must be"),
        ({"epsilon": 0.0}, ib.ParameterError, "epsilon must be"),
        ({"epsilon": math.nan}, ib.ParameterError, "epsilon must be"),
        ({"epsilon": 501.0}, ib.ParameterError, "epsilon must be"),
        ({"epsilon": "1"}, ib.ParameterTypeError, "epsilon must be"),
        ({"epsilon": True}, ib.ParameterTypeError, "epsilon must be"),
        ({"gamma": -0.1}, ib.ParameterError, "gamma must be"),
        ({"gamma": 1.1}, ib.ParameterError, "gamma must be"),
        ({"gamma": math.nan}, ib.ParameterError, "gamma must be"),
        ({"gamma": "half"}, ib.ParameterTypeError, "gamma must be"),
        ({"loss": "cubed"}, ib.ParameterError, "loss must be one of 'absolute', 'squared'"),
        ({"sensitivity": 0.0}, ib.ParameterError, "sensitivity must be"),
        ({"sensitivity": 2.0}, ib.ParameterError, "capped by the domain"),
        ({"sensitivity": math.nan}, ib.ParameterError, "sensitivity must be"),
        ({"sensitivity": 1.5, "domain": ib.Integers(0, 9)}, ib.ParameterError, "whole number"),
        ({"granularity": 0.3}, ib.ParameterError, "power of two"),
        ({"granularity": 4.0, "domain": ib.Interval(1, 3)}, ib.ParameterError, "holds a multiple"),
        ({"granularity": "fine"}, ib.ParameterTypeError, "granularity must be"),
    ],
)
def test_bad_input(change: dict[str, Any], kind: type[Exception], message: str) -> None:
    given = {"domain": ib.Interval(0, 1), "sensitivity": 1.0, "epsilon": 1.0} | change
    for make in (ib.Staircase, ib.Staircase.calibrate):
        with pytest.raises(kind, match=message):
            make(given["domain"], **{k: v for k, v in given.items() if k != "domain"})


def test_true_values_are_checked_and_not_shown() -> None:
    m = ib.Staircase.calibrate(ib.Interval(0, 1), sensitivity=1, epsilon=1)
    for use in (m.release, m.at, m.simulate):
        for bad in (1.2345, math.nan, [0.5, math.nan], -INF):
            with pytest.raises(ib.OutsideDomain) as caught:
                use(bad)
            assert "1.2345" not in str(caught.value)
    with pytest.raises(ib.OutsideDomain):
        ib.Staircase.calibrate(ib.Integers(0, 9), sensitivity=1, epsilon=1).release(2.5)
    with pytest.raises(ib.ParameterError):
        m.delta(math.nan)


def test_docstring_examples_run() -> None:
    import doctest

    import inbounds.mechanism.staircase as module

    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0

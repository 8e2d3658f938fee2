"""What many releases cost together: never below the truth, close to it, and in agreement with dp-accounting."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence
from typing import Any

import dp_accounting
import numpy as np
import pytest
import scipy.fft
from dp_accounting.pld import privacy_loss_distribution as pld
from mpmath import mp, mpf
from scipy.special import ndtr

import inbounds as ib
from inbounds import convolution, privacy
from inbounds.bridge import to_dp_accounting
from inbounds.composition import Composition, Concentrated, Largest, Response, Single, renyi_delta, rho_delta
from inbounds.convolution import Atoms, Convolution, atoms
from inbounds.errors import MissingExtra, ParameterError, ParameterTypeError
from inbounds.events import Approximate, Composed, Event, Parallel, Pure, Repeated, Zcdp

INF = math.inf
LINE = ib.Interval(-INF, INF)
UNIT = ib.Interval(0, 1)


def plain(family: str, scale: float) -> Any:
    return {"laplace": ib.Laplace, "gaussian": ib.Gaussian}[family](LINE, scale=scale, sensitivity=1.0, edges="ignore")


# ---------------------------------------------------------------- a release on a lattice

CURVES: dict[str, Any] = {
    "gaussian": plain("gaussian", 2.0)._curve,
    "laplace": plain("laplace", 3.0)._curve,
    "truncated gaussian": ib.Gaussian(UNIT, scale=0.6, sensitivity=0.5)._curve,
    "truncated laplace": ib.Laplace(ib.Integers(0, 12), scale=4, sensitivity=3)._curve,
    "bounded noise": ib.BoundedLaplace(ib.Interval(0, 120), scale=0.5, bound=7, sensitivity=0.5)._curve,
    "staircase": ib.Staircase(UNIT, sensitivity=0.3, epsilon=1.3)._curve,
    "claim": Response(0.7, 1e-3),
    "claim of rho": Concentrated(0.02),
}


def profile(law: Atoms, epsilon: Any) -> Any:
    """H of the masses at a real epsilon, to 50 digits; the masses are the floats that they are."""
    with mp.workdps(50):
        losses = [mpf(i) * mpf(law.step) for i in range(-law.reach, law.reach + 1)]
        terms = (
            mpf(float(m)) * (1 - mp.e ** (epsilon - x)) for x, m in zip(losses, law.masses, strict=True) if x > epsilon
        )
        return mpf(law.lost) + mp.fsum(terms)


def worst(name: str, epsilon: float) -> float:
    """The profile of the worst release there is; of a claim of rho, that of Gaussian noise."""
    if name == "claim of rho":
        return privacy.gaussian_delta(math.sqrt(2.0 * CURVES[name].rho), epsilon)
    return float(CURVES[name].delta(epsilon))


@pytest.mark.parametrize("name", CURVES)
def test_masses_dominate_the_release(name: str) -> None:
    curve = CURVES[name]
    law = atoms(curve, 1 if name == "claim" else 24)
    top = law.losses[-1]
    for share in (0.0, 0.011, 0.1, 0.237, 0.5, 0.713, 0.999, 1.0, 1.3):
        epsilon = float(top * share)
        delta = mpf(worst(name, epsilon))
        found = profile(law, mpf(epsilon))
        assert found >= delta * (1 - mpf(2) ** -30)  # the curve itself is rounded up by more than that
        below = profile(law, mpf(-epsilon))  # and for the other direction of every pair
        with mp.workdps(50):
            assert below >= (1 - mp.e ** (-mpf(epsilon)) + mp.e ** (-mpf(epsilon)) * delta) * (1 - mpf(2) ** -30)
    with mp.workdps(50):
        whole = mp.fsum(mpf(float(m)) for m in law.masses) + mpf(law.lost)
        assert 1 <= whole < 1 + mpf("1e-9")
    assert float(profile(law, mpf(0))) <= float(curve.delta(0.0)) * (1 + 1e-4)


@pytest.mark.parametrize("step", [0.017, 0.3, 2.0])
def test_moving_masses_to_a_lattice_dominates(step: float) -> None:
    law = atoms(CURVES["truncated gaussian"], 24)
    first, masses = law.on(step)
    for epsilon in np.linspace(-3.0, 3.0, 61):
        losses = (first + np.arange(masses.size)) * step
        moved = law.lost + float(np.sum(masses * np.maximum(-np.expm1(epsilon - losses), 0.0)))
        assert moved >= float(profile(law, mpf(float(epsilon)))) * (1 - 1e-14)
    assert float(np.sum(masses)) == pytest.approx(float(np.sum(law.masses)), rel=1e-13)
    weights = np.exp(-(first + np.arange(masses.size)) * step)
    assert float(np.dot(masses, weights)) == pytest.approx(float(np.dot(law.masses, np.exp(-law.losses))), rel=1e-12)


# ---------------------------------------------------------------- the transform


def summed(parts: Sequence[tuple[Atoms, int]], step: float, epsilon: float) -> Any:
    """delta of the sum by plain convolution, to 60 digits."""
    with mp.workdps(60):
        total, lost = {0: mpf(1)}, mpf(1)
        for law, times in parts:
            first, masses = law.on(step)
            one = {first + i: mpf(float(m)) for i, m in enumerate(masses) if m > 0}
            whole = mp.fsum(one.values()) + mpf(law.lost)
            for _ in range(times):
                fresh: dict[int, Any] = {}
                for (i, p), (j, q) in itertools.product(total.items(), one.items()):
                    fresh[i + j] = fresh.get(i + j, mpf(0)) + p * q
                total = fresh
                lost *= whole
        finite = mp.fsum(total.values())
        above = mp.fsum(
            p * (1 - mp.e ** (mpf(epsilon) - i * mpf(step))) for i, p in total.items() if i * mpf(step) > epsilon
        )
        return lost - finite + above


@pytest.mark.parametrize("times", [1, 30, 7000, 2**31])
@pytest.mark.parametrize("part", [1e-12, 1e-3, 0.1, 1.0 - 1e-3, 1.0])
def test_what_is_lost_by_laws_of_which_most_is_lost(part: float, times: int) -> None:
    law = Atoms(1.0, np.array([0.0, max(1.0 - part, 0.0) + 2.0**-42, 0.0]), part)
    found = Convolution([(law, times)]).lost
    with mp.workdps(60):
        finite = mp.fsum(map(mpf, law.masses.tolist()))
        lost = (finite + mpf(part)) ** times - finite**times
        assert min(lost, 1) <= found <= lost * (1 + 1e-10 + 1e-14 * times)


def test_claims_beyond_the_range_of_floats() -> None:
    assert Repeated(Pure(1000), 30).guarantee().epsilon(1e-6) == 30_000.0
    assert Repeated(Pure(1000), 30).guarantee().delta(29_000.0) == 1.0
    assert Repeated(Approximate(0.01, 0.1), 7000).guarantee().epsilon(1e-6) == INF
    assert Repeated(Approximate(0.01, 0.1), 7000).guarantee().delta(1e3) == 1.0
    budget = ib.Budget(epsilon=1, delta=1e-6)
    assert not budget.admits(budget.charge(Repeated(Pure(1000), 30)))


SUMS = {
    "one kind": [("truncated gaussian", 12, 6)],
    "two kinds": [("truncated gaussian", 10, 3), ("laplace", 7, 3)],
    "three kinds": [("claim", 1, 4), ("bounded noise", 8, 2), ("gaussian", 12, 2)],
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("longest", [1 << 21, 1 << 9])
def test_the_transform_is_never_below_and_hardly_above(
    name: str, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution, "_LONGEST", longest)  # 2^9: a window, outside of which tails are bounded
    parts = [(atoms(CURVES[kind], cells), times) for kind, cells, times in SUMS[name]]
    total = Convolution(parts)
    for epsilon in (0.0, 0.3, 1.0, 2.5, 0.9 * sum(float(a.losses[-1]) * k for a, k in parts)):
        exact = summed(parts, total.step, epsilon)
        found = total.delta(epsilon)
        assert found >= exact
        assert found <= exact * (1 + mpf("1e-9")) + mpf("1e-300") or longest < 1 << 21
        assert found <= exact * (1 + mpf("1e-3")) + mpf("1e-22")
    for delta in (0.1, 1e-3, 1e-6):
        epsilon = total.epsilon(delta)
        if math.isfinite(epsilon):
            assert summed(parts, total.step, epsilon) <= delta
            if epsilon > 0.0:
                assert summed(parts, total.step, epsilon * (1 - 1e-6)) > delta * (1 - 1e-6) or longest < 1 << 21
        else:
            assert summed(parts, total.step, 50.0) > delta


@pytest.mark.parametrize("epsilon", [3.0, 8.0, 14.0])
def test_a_window_is_never_below_either(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [(atoms(CURVES["truncated gaussian"], 12), 100)]
    all_of_it, cut, narrow = (Convolution(parts) for _ in range(3))
    whole, at = all_of_it.delta(epsilon), {delta: all_of_it.epsilon(delta) for delta in (0.3, 1e-6)}
    monkeypatch.setattr(convolution, "_LONGEST", 1 << 10)  # of 2401 points
    law = cut._tilted(cut._tilt(lambda _, __, slope: slope >= epsilon))
    assert law.weights.size == 1 << 10
    assert 0.0 < law.beyond < 1e-9
    assert whole * (1 - 1e-9) <= cut.delta(epsilon) <= whole * (1 + 1e-6)
    assert cut._delta(law, max(0.0, (law.start - 5) * cut.step)) == 1.0 or law.start < 5
    for delta, found in at.items():
        assert cut.epsilon(delta) == pytest.approx(found, rel=1e-6)
    monkeypatch.setattr(convolution, "_LONGEST", 1 << 6)  # much of the law is outside: still a bound
    assert whole * (1 - 1e-9) <= narrow.delta(epsilon)


@pytest.mark.parametrize("power", [4, 9, 14, 18])
def test_the_error_bound_of_transforms_has_room(power: int) -> None:
    rng, length = np.random.default_rng(power), 1 << power
    for x in (rng.random(length), np.exp(-np.arange(length) / 50.0), (rng.random(length) < 8 / length) + 1e-9):
        there, back = scipy.fft.rfft(x), scipy.fft.irfft(scipy.fft.rfft(x), length)
        precise = scipy.fft.rfft(x.astype(np.longdouble))
        again = scipy.fft.irfft(there.astype(np.clongdouble), length)
        for found, exact in ((there, precise), (back, again)):
            error = float(np.linalg.norm((found - exact).astype(np.complex128)))
            assert error <= 0.5 * power * 2.0**-53 * float(np.linalg.norm(exact.astype(np.complex128)))
    assert convolution._FFT >= 16.0


def test_wrong_bounds_would_be_noticed() -> None:
    parts = [(atoms(CURVES["truncated gaussian"], 12), 6)]
    total = Convolution(parts)
    law = total._tilted(total._tilt(lambda _, __, slope: slope >= 1.0))
    biased = convolution._Tilted(law.tilt, law.log_size - 1e-8, law.start, law.weights, True, law.error, 0.0, law.slack)
    assert total._delta(biased, 1.0) < summed(parts, total.step, 1.0) < total._delta(law, 1.0)


# ---------------------------------------------------------------- sums


def test_pure_losses_add_as_decimals() -> None:
    assert Repeated(Pure(0.1), 10).guarantee().epsilon() == 1.0
    assert Composed([Pure(0.1), Pure(0.2)]).guarantee().epsilon() == 0.3
    assert Composed([Pure(0.1), Pure(0.2)]).guarantee().epsilon().exact
    three = ib.Laplace.calibrate(ib.Integers(0, 30), sensitivity=1, epsilon=0.1).event(3).guarantee()
    assert 0.2999 < three.epsilon() <= 0.3
    assert Parallel([Pure(0.1)]).guarantee().epsilon() == 0.1
    assert Repeated(Parallel([Pure(0.1), Pure(0.05)]), 10).guarantee().epsilon() == 1.0
    assert Composed([Pure(0.1), Zcdp(0.1)]).guarantee().epsilon() == INF
    assert Repeated(Zcdp(0.1), 3).guarantee().zcdp() == 0.3


def test_basic_composition_adds_both() -> None:
    claims = Composed([Approximate(0.1, 1e-7), Approximate(0.2, 2e-7), Pure(0.3)])
    assert claims.guarantee().epsilon(3e-7) == 0.6
    assert claims.guarantee().epsilon(3e-7).reason == "basic composition"
    assert claims.guarantee().epsilon(2.9e-7) == INF
    assert claims.guarantee().delta(0.6) <= 3e-7
    bounded = ib.BoundedLaplace.calibrate(ib.Interval(0, 120), sensitivity=0.5, epsilon=0.5, delta=1e-7)
    assert bounded.event(2).guarantee().epsilon(2e-7) <= 1.0


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 8.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 30.0])
def test_conversion_of_rho_takes_the_best_order(rho: float, epsilon: float) -> None:
    orders = 1.0 + np.logspace(-5, 8, 20_001)
    best = min(renyi_delta(float(a), rho * float(a), epsilon) for a in orders[::10])
    assert rho_delta(rho, epsilon) <= best * (1 + 1e-9)
    mu = math.sqrt(2.0 * rho)
    exact = float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))
    assert rho_delta(rho, epsilon) >= exact  # of the Gaussian pair, which has this rho


@pytest.mark.parametrize("alpha", [1.5, 4.0, 64.0])
def test_conversion_of_renyi_is_attained(alpha: float) -> None:
    # the worst pair: loss l = epsilon + ln(alpha / (alpha - 1)) with a small probability
    epsilon, p = 1.0, 1e-5
    top = epsilon + math.log(alpha / (alpha - 1.0))
    q = p * math.exp(-top)
    with mp.workdps(50):
        a = mpf(alpha)
        moments = mpf(p) ** a * mpf(q) ** (1 - a) + (1 - mpf(p)) ** a * (1 - mpf(q)) ** (1 - a)
        divergence = float(mp.log(moments) / (a - 1))
        rest = float(mpf(p) ** a * mpf(q) ** (1 - a) / moments)
        delta = float(p - mp.e ** mpf(epsilon) * q)
    assert delta <= renyi_delta(alpha, divergence, epsilon) <= delta / rest * (1 + 1e-9)


@pytest.mark.parametrize("claimed", [1e-6, 0.1, 3.0, 40.0])
@pytest.mark.parametrize("fails", [0.0, 1e-12, 1e-3])
def test_claims_give_what_was_claimed(claimed: float, fails: float) -> None:
    claim = Response(claimed, fails)
    assert claim.epsilon(fails) == claimed
    assert claim.delta(claimed) == fails
    for delta in (1e-15, 1e-9, 0.0011, 0.3, 0.9):
        epsilon = claim.epsilon(delta)
        assert math.isinf(epsilon) == (delta < fails)
        if math.isfinite(epsilon):
            with mp.workdps(50):
                top, e = mpf(claimed), mpf(float(epsilon))
                exact = fails + (1 - mpf(fails)) * max((mp.e**top - mp.e**e) / (1 + mp.e**top), mpf(0))
                assert exact <= delta
                lower = e * (1 - mpf("1e-9"))
                less = fails + (1 - mpf(fails)) * (mp.e**top - mp.e**lower) / (1 + mp.e**top)
                assert less > delta * (1 - mpf("1e-6")) or epsilon < 1e-9 or claimed - epsilon < 1e-9


# ---------------------------------------------------------------- optimal composition


def optimal_delta(epsilon0: float, delta0: float, k: int, epsilon: float) -> Any:
    """Kairouz, Oh and Viswanath: k releases of (epsilon0, delta0)."""
    with mp.workdps(60):
        e0, e = mpf(epsilon0), mpf(epsilon)
        terms = [mp.binomial(k, i) * max(mp.e ** ((k - i) * e0) - mp.e ** (e + i * e0), mpf(0)) for i in range(k + 1)]
        survives = (1 - mpf(delta0)) ** k
        return 1 - survives + survives * mp.fsum(terms) / (1 + mp.e**e0) ** k


@pytest.mark.parametrize(
    ("epsilon", "delta", "k"), [(0.1, 0.0, 30), (0.5, 1e-7, 12), (1.0, 1e-9, 200), (0.01, 0.0, 1000)]
)
def test_optimal_composition_of_equal_claims(epsilon: float, delta: float, k: int) -> None:
    claim = Approximate(epsilon, delta) if delta else Pure(epsilon)
    guarantee = Repeated(claim, k).guarantee()
    for share in (0.05, 0.2, 0.6):
        at = share * k * epsilon
        exact = optimal_delta(epsilon, delta, k, at)
        assert exact <= guarantee.delta(at) <= exact * (1 + mpf("1e-8"))
    target = 1e-5
    found = guarantee.epsilon(target)
    assert optimal_delta(epsilon, delta, k, float(found)) <= target
    assert optimal_delta(epsilon, delta, k, float(found) * (1 - 1e-6)) > target
    assert found.reason == "optimal composition of claims"


def test_optimal_composition_of_different_claims() -> None:
    claims = [0.1, 0.25, 0.4, 0.15, 0.33, 0.2, 0.28, 0.05]
    guarantee = Composed([Pure(e) for e in claims]).guarantee()
    with mp.workdps(40):
        for at in (0.2, 0.7, 1.2):
            exact = mpf(0)
            for signs in itertools.product((1, -1), repeat=len(claims)):
                loss = mp.fsum(s * mpf(e) for s, e in zip(signs, claims, strict=True))
                chance = mp.fprod(1 / (1 + mp.e ** (-s * mpf(e))) for s, e in zip(signs, claims, strict=True))
                exact += chance * max(1 - mp.e ** (at - loss), mpf(0))
            assert exact <= guarantee.delta(at) <= exact * (1 + mpf("0.02"))


# ---------------------------------------------------------------- beside dp-accounting


def theirs(family: str, scale: float, k: int, pessimistic: bool) -> float:
    make = {"laplace": pld.from_laplace_mechanism, "gaussian": pld.from_gaussian_mechanism}[family]
    interval = min(1e-4, 0.002 / scale) if k < 1000 else 1e-3 if scale < 2 else 1e-4
    law = make(
        scale,
        1.0,
        value_discretization_interval=interval,
        pessimistic_estimate=pessimistic,
        use_connect_dots=pessimistic,
    )
    return float((law.self_compose(k) if k > 1 else law).get_epsilon_for_delta(1e-6))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("family", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [1.0, 8.0])
@pytest.mark.parametrize("k", [1, 10, 1000])
def test_agreement_on_plain_noise(family: str, scale: float, k: int) -> None:
    event = plain(family, scale).event(k)
    ours = event.guarantee().epsilon(1e-6)
    least, most = (theirs(family, scale, k, pessimistic) for pessimistic in (False, True))
    assert least <= ours <= most * (1 + 1e-4)
    numerical = Convolution([(Single(plain(family, scale)._curve).atoms, k)]).epsilon(1e-6)
    assert least <= numerical <= most * (1 + 2e-4)
    if family == "gaussian":
        exact = privacy.epsilon_at(plain("gaussian", scale / math.sqrt(k))._curve, 1e-6)
        assert exact * (1 - 1e-9) <= ours <= exact * (1 + 1e-8)


def test_agreement_on_a_mixture() -> None:
    event = Composed([plain("laplace", 5.0).event(20), plain("gaussian", 6.0).event(30), plain("laplace", 2.0).event()])
    accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(to_dp_accounting(event))
    theirs = accountant.get_epsilon(1e-6)
    assert theirs * (1 - 2e-3) <= event.guarantee().epsilon(1e-6) <= theirs * (1 + 1e-3)


def test_what_dp_accounting_has_no_event_for_becomes_a_distribution() -> None:
    truncated = ib.Gaussian(UNIT, scale=0.6, sensitivity=0.5).event(20)
    event = Composed(
        [truncated, Approximate(0.2, 1e-8), plain("laplace", 5.0).event(3), Parallel([Pure(0.1), Zcdp(0.01)])]
    )
    law = to_dp_accounting(event)
    assert isinstance(law, pld.PrivacyLossDistribution)
    numerical = event.guarantee()._composition._convolution
    assert law.get_epsilon_for_delta(1e-6) == pytest.approx(numerical.epsilon(1e-6), rel=1e-6)
    assert to_dp_accounting(event, interval=1e-3).get_epsilon_for_delta(1e-6) >= numerical.epsilon(1e-6) * (1 - 1e-3)


def test_events_of_dp_accounting() -> None:
    laplace = to_dp_accounting(ib.Laplace(UNIT, scale=2, sensitivity=1, edges="clamp").event(4))
    assert isinstance(laplace, dp_accounting.SelfComposedDpEvent)
    assert laplace.event.noise_multiplier == pytest.approx(2.0, rel=1e-11)
    assert laplace.event.noise_multiplier < 2.0
    count = to_dp_accounting(ib.Laplace(ib.Integers(0, 9), scale=2, sensitivity=3, edges="ignore").event())
    assert (count.sensitivity, count.noise_parameter) == (3, pytest.approx(0.5))
    box = to_dp_accounting(ib.Gaussian(ib.Box([0, 0], [9, 9]), scale=6, sensitivity=[3, 4], edges="ignore").event())
    assert box.noise_multiplier == pytest.approx(1.2)
    assert to_dp_accounting(ib.events.Plan({}, Zcdp(0.3))).rho == 0.3
    discrete = to_dp_accounting(ib.Gaussian(ib.Integers(-9, 9), scale=6, sensitivity=1, edges="ignore").event())
    assert isinstance(discrete, pld.PrivacyLossDistribution)


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingExtra, match=r"inbounds\[accounting\]"):
        to_dp_accounting(Pure(0.1))
    assert Repeated(Pure(0.1), 3).guarantee().epsilon(1e-6) <= 0.3  # our own composition needs nothing


def test_bad_input_of_the_bridge() -> None:
    with pytest.raises(ParameterTypeError):
        to_dp_accounting("laplace")  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        to_dp_accounting(Pure(0.1), interval=0.0)


# ---------------------------------------------------------------- truncated mechanisms


def fixed_pair(mechanism: Any, first: float, second: float, k: int, delta: float) -> float:
    """A lower bound: one pair of true values, outputs put into bins, losses rounded down, composed by dp-accounting."""
    cuts = np.linspace(mechanism.domain.lower, mechanism.domain.upper, 2001)
    below = [np.asarray(mechanism.at(q).cdf(cuts)) for q in (first, second)]
    p, q = (np.diff(np.concatenate([[0.0], f])) for f in below)
    kept = (p > 0.0) & (q > 0.0)
    upper = dict(enumerate(np.log(p[kept]).tolist()))
    lower = dict(enumerate(np.log(q[kept]).tolist()))
    law = pld.from_two_probability_mass_functions(
        lower, upper, pessimistic_estimate=False, value_discretization_interval=1e-4
    )
    return float(law.self_compose(k).get_epsilon_for_delta(delta)) if k > 1 else float(law.get_epsilon_for_delta(delta))


TRUNCATED = {
    "gaussian, narrow": (ib.Gaussian(UNIT, scale=0.8, sensitivity=1.0), [(0.0, 1.0), (1.0, 0.0)]),
    "gaussian, wide": (ib.Gaussian(UNIT, scale=0.3, sensitivity=0.1), [(0.45, 0.55), (0.1, 0.0), (0.2, 0.3)]),
    "laplace": (ib.Laplace(UNIT, scale=0.5, sensitivity=0.2), [(0.4, 0.6), (0.0, 0.2), (0.2, 0.0)]),
}


@pytest.mark.parametrize(
    ("name", "k"),
    [
        *(("gaussian, narrow", k) for k in (2, 30, 400)),
        *(pytest.param("gaussian, wide", k, marks=pytest.mark.long) for k in (2, 30, 400)),
        *(pytest.param("laplace", k, marks=[] if k == 30 else pytest.mark.long) for k in (2, 30, 400)),
    ],
)
def test_truncated_noise_lies_between_a_fixed_pair_and_plain_noise(name: str, k: int) -> None:
    mechanism, pairs = TRUNCATED[name]
    found = mechanism.event(k).guarantee().epsilon(1e-6)
    least = max(fixed_pair(mechanism, first, second, k, 1e-6) for first, second in pairs)
    assert least <= found <= (1.05 if k == 2 else 1.35) * least
    if isinstance(mechanism, ib.Gaussian):  # a proven bound on convex domains
        noise = ib.Gaussian(
            UNIT, scale=mechanism.scale / math.sqrt(k), sensitivity=mechanism.sensitivity, edges="ignore"
        )
        assert found <= noise.epsilon(1e-6) * (1 + 1e-8)


@pytest.mark.parametrize(
    ("event", "epsilon"),
    [
        (Zcdp(0.5), 100.0),
        (Repeated(Zcdp(0.1), 5), 100.0),
        (plain("gaussian", 1.0).event(2), 200.0),
        (Parallel([Pure(0.1), Zcdp(0.5)]), 100.0),
    ],
)
def test_a_delta_is_nought_only_where_it_is(event: Event, epsilon: float) -> None:
    assert 0.0 < event.guarantee().delta(epsilon) < 1e-300
    assert Zcdp(0.0).guarantee().delta(0.0) == Repeated(Zcdp(0.0), 3).guarantee().delta(0.0) == 0.0


def test_a_release_alone_has_its_exact_profile() -> None:
    mechanism, _ = TRUNCATED["gaussian, narrow"]
    guarantee = mechanism.event().guarantee()
    for ours, own in [
        (guarantee.epsilon(), mechanism.epsilon()),
        (guarantee.epsilon(1e-6), mechanism.epsilon(1e-6)),
        (guarantee.delta(0.3), mechanism.delta(0.3)),
        (guarantee.rdp(5.0), mechanism.rdp(5.0)),
        (guarantee.zcdp(), mechanism.zcdp()),
        (guarantee.gdp(), mechanism.gdp()),
    ]:
        assert (float(ours), ours.exact, ours.reason) == (float(own), own.exact, own.reason)


def test_delta_and_epsilon_are_inverse() -> None:
    guarantee = Composed([TRUNCATED["laplace"][0].event(20), Zcdp(0.01), Approximate(0.1, 1e-9)]).guarantee()
    for delta in (1e-3, 1e-6, 1e-8):
        epsilon = float(guarantee.epsilon(delta))
        assert guarantee.delta(epsilon) <= delta * (1 + 1e-6)
        assert guarantee.delta(epsilon * (1 - 1e-4)) > delta * (1 - 1e-6)


def test_the_least_bound_wins() -> None:
    reasons = {
        Repeated(Zcdp(0.01), 50): "zero-concentrated DP",
        plain("gaussian", 9.0).event(50): "Gaussian DP",
        plain("laplace", 9.0).event(50): "numerical composition",
        Repeated(Pure(0.1), 50): "optimal composition of claims",
        Repeated(Pure(0.1), 3): "sum of pure losses",
    }
    for event, reason in reasons.items():
        delta = 1e-15 if reason == "sum of pure losses" else 1e-6
        assert event.guarantee().epsilon(delta).reason == reason


# ---------------------------------------------------------------- groups


def test_of_groups_the_dearest_counts() -> None:
    events: list[Event] = [Pure(0.5), Composed([Pure(0.3), Pure(0.3)]), Zcdp(0.01)]
    parallel, alone = Parallel(events).guarantee(), [e.guarantee() for e in events]
    assert parallel.epsilon(1e-6) == max(g.epsilon(1e-6) for g in alone)
    for epsilon in (0.0, 0.1, 0.45, 0.7):
        assert parallel.delta(epsilon) == max(g.delta(epsilon) for g in alone)
    assert parallel.rdp(4.0) == max(g.rdp(4.0) for g in alone)
    assert parallel.zcdp() == max(g.zcdp() for g in alone)
    twice = Repeated(Parallel(events), 2).guarantee()
    assert twice.zcdp() == pytest.approx(2 * parallel.zcdp(), rel=1e-9)
    assert parallel.epsilon(1e-6) < twice.epsilon(1e-6) <= 2 * parallel.epsilon(5e-7)


def test_groups_brute_force() -> None:
    """Two groups, each answered by randomised response twice: the unit is in one of them."""
    inner = [Composed([Pure(0.4), Pure(0.4)]), Composed([Pure(0.7)])]
    law = Largest([ib.events.composition(e) for e in inner])
    for epsilon in (0.0, 0.2, 0.5, 0.75):
        first = float(optimal_delta(0.4, 0.0, 2, epsilon))
        second = float(optimal_delta(0.7, 0.0, 1, epsilon))
        assert law.delta(epsilon) == pytest.approx(max(first, second), rel=1e-8)
        assert law.delta(epsilon) >= max(first, second)


# ---------------------------------------------------------------- what users see


def test_the_table() -> None:
    text = str(Repeated(Pure(0.1), 10).guarantee())
    assert text.splitlines()[0] == "10 releases"
    assert "epsilon  delta = 0      1 " in text
    assert "optimal composition" in text
    one = Zcdp(0.1).guarantee()
    assert one.table(1e-3).splitlines()[0] == "1 release"
    assert "none" in str(one)
    assert repr(one) == "<Guarantee of 1 releases>"


@pytest.mark.parametrize(
    "call",
    [
        lambda g: g.epsilon(-0.1),
        lambda g: g.epsilon(1.0),
        lambda g: g.epsilon(math.nan),
        lambda g: g.delta(-1.0),
        lambda g: g.rdp(1.0),
        lambda g: g.rdp(INF),
    ],
)
def test_bad_arguments(call: Any) -> None:
    with pytest.raises(ParameterError):
        call(Pure(0.1).guarantee())


def test_nothing_costs_nothing() -> None:
    nothing = Composition([])
    assert nothing.epsilon(1e-6) == nothing.pure() == nothing.renyi(2.0) == nothing.zcdp() == nothing.delta(0.0) == 0.0
    free = Repeated(Pure(0.0), 5).guarantee()
    assert free.epsilon() == free.epsilon(1e-6) == free.delta(0.0) == 0.0


@pytest.mark.long
@pytest.mark.parametrize("family", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    ("scale", "k"),  # beyond epsilon = 700 dp-accounting's own estimates are off: e^-loss is 0 there
    [(s, k) for s in (0.3, 0.6, 2.0, 20.0, 100.0) for k in (1, 3, 10, 100, 1000) if k / s < 300.0 or s >= 2.0],
)
def test_agreement_on_plain_noise_at_length(family: str, scale: float, k: int) -> None:
    test_agreement_on_plain_noise(family, scale, k)


@pytest.mark.parametrize(("scale", "k"), [(0.3, 100), (0.3, 1000), (0.05, 3)])
def test_huge_losses(scale: float, k: int) -> None:
    with mp.workdps(60):
        mu = mp.sqrt(k) / mpf(scale)
        epsilon = float(plain("gaussian", scale).event(k).guarantee().epsilon(1e-6))
        delta = (
            mp.erfc((epsilon / mu - mu / 2) / mp.sqrt(2)) / 2
            - mp.e**epsilon * mp.erfc((epsilon / mu + mu / 2) / mp.sqrt(2)) / 2
        )
        assert mpf("1e-6") * (1 - mpf("1e-6")) <= delta <= mpf("1e-6")
        numerical = Convolution([(Single(plain("gaussian", scale)._curve).atoms, k)])
        assert delta <= numerical.delta(epsilon) <= delta * (1 + mpf("0.05"))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_random_sequences_of_truncated_noise_at_length(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts, lower = [], 0.0
    pairs = []
    for _ in range(int(rng.integers(1, 4))):
        kind = (ib.Laplace, ib.Gaussian)[int(rng.integers(2))]
        sensitivity = float(rng.choice([0.1, 0.3, 0.5, 1.0]))
        mechanism = kind(UNIT, scale=float(rng.uniform(0.3, 2.0)), sensitivity=sensitivity)
        times = int(rng.integers(1, 40))
        parts.append(mechanism.event(times))
        pairs.append((mechanism, times))
    found = Composed(parts).guarantee().epsilon(1e-6)
    for side in (0.0, 0.5, 1.0):
        total = pld.identity(1e-4, pessimistic_estimate=False)
        for mechanism, times in pairs:
            first = side * (1.0 - mechanism.sensitivity)
            cuts = np.linspace(0.0, 1.0, 2001)
            p, q = (np.diff(mechanism.at(x).cdf(cuts)) for x in (first, first + mechanism.sensitivity))
            law = pld.from_two_probability_mass_functions(
                dict(enumerate(np.log(q).tolist())), dict(enumerate(np.log(p).tolist())),
                pessimistic_estimate=False, value_discretization_interval=1e-4,
            )  # fmt: skip
            total = total.compose(law.self_compose(times) if times > 1 else law)
        lower = max(lower, float(total.get_epsilon_for_delta(1e-6)))
    assert lower <= found <= 2.0 * lower

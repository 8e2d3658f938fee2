"""Denoising: the estimate, its law and its errors against brute force; privacy is untouched."""

from __future__ import annotations

import copy
import math
import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest

import inbounds as ib
from inbounds.advice import denoised_staircase
from inbounds.errors import OutsideDomain, ParameterError, ParameterTypeError
from inbounds.inference.posterior import posterior
from inbounds.inference.risk import risk
from inbounds.mechanism.denoised import Denoised
from tests.common import MECHANISMS as FAMILIES

pytestmark = pytest.mark.thinned(3)

INF = math.inf
EDGES = ("truncate", "clamp", "ignore")
LOSSES = ("squared", "absolute", "zero-one")
RANGE = ib.Integers(0, 30)
TRUE = np.arange(31.0)


def ramp(q: Any) -> Any:
    """A prior that leans to large values."""
    return 1.0 + np.asarray(q) / 10.0


def answers(made: Any) -> Any:
    """Every whole answer that matters."""
    return TRUE if made.edges != "ignore" else np.arange(-130.0, 161.0)


def likelihoods(made: Any) -> Any:
    """(true values, answers) -> probability."""
    return np.exp(made.at(TRUE[:, None]).logpmf(answers(made)))


def best(joint: Any, loss: str, integer: bool) -> Any:
    """The estimate of least expected loss for each column of joint probabilities, by definition."""
    share = joint / joint.sum(axis=0)
    if loss == "squared":
        mean = TRUE @ share
        return np.ceil(mean - 0.5) if integer else mean
    if loss == "absolute":
        return TRUE[(np.cumsum(share, axis=0) < 0.5 - 1e-13).sum(axis=0)]
    return TRUE[np.argmax(share, axis=0)]


# --- whole numbers: everything by sums -----------------------------------------------------------


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("family", FAMILIES)
def test_estimates_and_errors_are_those_of_the_definition(family: str, edges: str) -> None:
    made = FAMILIES[family](RANGE, scale=3.7, sensitivity=2, edges=edges)
    p, x = likelihoods(made), answers(made)
    for prior, weight in ((None, np.ones(31)), (ramp, ramp(TRUE))):
        joint = p * (weight / weight.sum())[:, None]
        for loss in LOSSES:
            for integer in (False, True):
                found = made.denoised(loss, prior, integer)
                expected = best(joint, loss, integer)
                seen = slice(None) if edges != "ignore" else slice(100, 191)  # farther out one-in-a-million answers
                assert np.allclose(found._estimates(x)[seen], expected[seen], rtol=1e-11, atol=1e-11)
                miss = expected - TRUE[:, None]
                report = found.at(TRUE).error()
                assert np.allclose(report.bias, (p * miss).sum(axis=1), atol=1e-9)
                assert np.allclose(report.rmse**2, (p * miss**2).sum(axis=1), rtol=1e-9)
                assert np.allclose(report.mae, (p * np.abs(miss)).sum(axis=1), rtol=1e-9)
                assert np.allclose(report.at_lower, (p * (expected == 0)).sum(axis=1), atol=1e-9)
                assert np.allclose(report.at_upper, (p * (expected == 30)).sum(axis=1), atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_other_estimate_is_better(loss: str) -> None:
    """Any change of T at any answer raises the expected loss (or leaves it, for medians and modes)."""
    sizes = {"squared": np.square, "absolute": np.abs, "zero-one": lambda e: (np.abs(e) > 0.5).astype(float)}
    made = ib.Gaussian(RANGE, scale=4.0, sensitivity=1)
    joint = likelihoods(made) * (ramp(TRUE) / ramp(TRUE).sum())[:, None]
    for integer in (False, True):
        t = made.denoised(loss, ramp, integer)._estimates(TRUE)
        least = (joint * sizes[loss](t - TRUE[:, None])).sum(axis=0)
        steps = (-3.0, -1.0, 1.0, 3.0) if integer or loss == "zero-one" else (-1.0, -1e-3, 1e-3, 1.0)
        for step in steps:
            other = (joint * sizes[loss](t + step - TRUE[:, None])).sum(axis=0)
            assert np.all(other >= least * (1 - 1e-12))
            if loss == "squared" and not integer:
                assert np.all(other > least)
        assert np.any(other > 1.01 * least)


# The average squared error, over that of the best mechanism (column 0): plain geometric, staircase with the best step,
# truncated Laplace, truncated Gaussian, each followed by the posterior mean. Measured independently, to these digits.
TABLE = {
    (1, 0.1): ("51.9", "0.999", "0.999", "1.38", "1.35"),
    (1, 1): ("1.685", "0.989", "0.989", "1.66", "12.2"),
    (5, 0.3): ("65.7", "1.003", "1.002", "1.16", "1.15"),
    (5, 1): ("25.8", "1.043", "1.011", "1.80", "2.21"),
    (10, 3): (None, "1.48", "1.02", "2.13", "4.45"),
    (15, 1): (None, "1.06", "1.04", "1.23", "1.23"),
    (30, 1): ("67.4", "1.11", "1.07", "1.14", "1.15"),
    (30, 4): ("14.9", "2.79", "1.28", "3.07", "3.93"),
}
#: The first stair, where it is not the one that is best without an estimate.
FIRST = {(15, 1): 6, (30, 1): 11, (30, 4): 5}


def interval_of(shown: str) -> tuple[float, float]:
    """The numbers that are shown like this, give or take the last digit."""
    last = 10.0 ** -len(shown.partition(".")[2])
    return float(shown) - last, float(shown) + last


@pytest.mark.parametrize("setting", TABLE, ids=str)
def test_error_relative_to_the_optimum(setting: tuple[float, float]) -> None:
    change, epsilon = setting
    optimum, *shown = TABLE[setting]
    kinds = ((ib.Laplace, "ignore"), (ib.Laplace, "truncate"), (ib.Gaussian, "truncate"))
    made = [cls.calibrate(RANGE, sensitivity=change, epsilon=epsilon, edges=e).denoised() for cls, e in kinds]
    made.insert(1, denoised_staircase(RANGE, sensitivity=change, epsilon=epsilon))
    if setting in FIRST:
        assert round(made[1].raw.gamma * change) == FIRST[setting]
    mse = [float(np.mean(m.at(TRUE).error().rmse ** 2)) for m in made]
    limits = [interval_of(s) for s in shown]
    if optimum is not None:
        low, high = interval_of(optimum)
        for value, (a, b) in zip(mse, limits, strict=True):
            assert a * low <= value <= b * high
    for value, (a, b) in zip(mse[1:], limits[1:], strict=True):
        assert a / limits[0][1] <= value / mse[0] <= b / limits[0][0]


def program(change: int, epsilon: float, size: int, loss: Any) -> float:
    """The least average loss of any mechanism on 0, ..., size - 1 with whole answers: a linear program."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    index = np.arange(size * size).reshape(size, size)  # (true value, answer)
    pairs = [(q, r) for q in range(size) for r in range(max(q - change, 0), min(q + change + 1, size)) if q != r]
    rows = np.arange(len(pairs) * size).reshape(-1, size)
    own, other = (index[[pair[k] for pair in pairs]] for k in (0, 1))
    data = np.concatenate([np.ones(rows.size), np.full(rows.size, -math.exp(epsilon))])
    where = (np.concatenate([rows.ravel(), rows.ravel()]), np.concatenate([own.ravel(), other.ravel()]))
    limits = coo_array((data, where), shape=(rows.size, size * size)).tocsr()
    whole = coo_array((np.ones(size * size), (np.repeat(np.arange(size), size), index.ravel()))).tocsr()
    cost = loss(np.subtract.outer(np.arange(size), np.arange(size))).ravel() / size
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(
        cost, A_ub=limits, b_ub=np.zeros(rows.size), A_eq=whole, b_eq=np.ones(size), method="highs", options=tight
    )
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize(("loss", "size"), [("squared", np.square), ("absolute", np.abs)])
def test_geometric_noise_and_the_best_whole_number_is_optimal(loss: str, size: Any) -> None:
    """Ghosh, Roughgarden and Sundararajan: for sensitivity 1, against the program."""
    made = ib.Laplace(RANGE, scale=1 / 0.7, sensitivity=1, edges="ignore").denoised(loss, integer=True)
    found = risk(made)
    value = found.mse if loss == "squared" else found.mae
    assert value == pytest.approx(program(1, 0.7, 31, size), rel=1e-6)


# --- any domain ----------------------------------------------------------------------------------

SPANS = ib.Spans([(0.0, 1.0), (1.8, 3.0)])
UNIT = ib.Interval(0, 1)


def middling(q: Any) -> Any:
    return np.exp(-np.square((np.asarray(q) - 0.4) / 0.2))


def makers() -> dict[str, Any]:
    kinds: dict[str, Any] = {}
    for family, cls in FAMILIES.items():
        for edges in EDGES:
            kinds[f"{family}-{edges}"] = cls(UNIT, scale=0.2, sensitivity=0.1, edges=edges)
        kinds[f"{family}-truncate-spans"] = cls(SPANS, scale=0.5, sensitivity=0.3)
        half = ib.Interval(0, INF) if family == "laplace" else ib.Interval(-INF, 3)
        kinds[f"{family}-truncate-half-line"] = cls(half, scale=1.5, sensitivity=1)
        kinds[f"{family}-ignore-line"] = cls(ib.Interval(-INF, INF), scale=1.5, sensitivity=1, edges="ignore")
        kinds[f"{family}-truncate-wide"] = cls(ib.Interval(-5e4, 5e4), scale=2.0, sensitivity=1)
        kinds[f"{family}-clamp-integers"] = cls(ib.Integers(-3, 40), scale=4.0, sensitivity=1, edges="clamp")
        kinds[f"{family}-ignore-whole-half-line"] = cls(ib.Integers(0, INF), scale=3.0, sensitivity=1, edges="ignore")
        kinds[f"{family}-truncate-many-integers"] = cls(ib.Integers(0, 20_000), scale=60.0, sensitivity=1)
    kinds["laplace-clamp-spans"] = ib.Laplace(SPANS, scale=0.5, sensitivity=0.3, edges="clamp")
    kinds["laplace-clamp-off-grid"] = ib.Laplace(ib.Interval(0.1, 1.3), scale=0.3, sensitivity=0.3, edges="clamp")
    for edges in ("clamp", "ignore"):
        kinds[f"staircase-{edges}"] = ib.Staircase.calibrate(UNIT, sensitivity=0.3, epsilon=2.0, edges=edges)
        kinds[f"bounded-{edges}"] = ib.BoundedLaplace.calibrate(
            UNIT, sensitivity=0.1, epsilon=1.0, delta=1e-3, edges=edges
        )
    kinds["staircase-integers"] = ib.Staircase.calibrate(RANGE, sensitivity=5, epsilon=1.0, edges="ignore")
    return kinds


KINDS = makers()
MONOTONE = [name for name in KINDS if not name.startswith("staircase")]
FEWER = [name for name in KINDS if not name.endswith("many-integers")]


@cache
def made_better(name: str, loss: str = "squared") -> Any:
    """The same in all tests: making one takes a while."""
    return KINDS[name].denoised(loss)


def some_true(domain: Any) -> list[float]:
    """True values of a domain: its ends, and between them."""
    low = float(domain.lower) if math.isfinite(domain.lower) else min(float(domain.upper), 5.0) - 12.0
    high = float(domain.upper) if math.isfinite(domain.upper) else low + 12.0
    places = domain.project(np.array([low, low + 0.13 * (high - low), low + 0.62 * (high - low), high]))
    return [float(q) for q in np.unique(places)]


def draws(made: Any, size: int = 20_000) -> Any:
    """Answers of a mechanism from all over its domain."""
    return np.asarray(made.simulate(np.resize(some_true(made.domain), size), seed=3))[0].astype(float)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", KINDS)
def test_estimates_lie_in_range_and_are_one_function(name: str) -> None:
    made = KINDS[name]
    x = draws(made, 4000)
    for loss in LOSSES[: 1 if name.endswith(("many-integers", "wide")) else 3]:
        found = made_better(name, loss)
        y = found._estimates(x)
        assert np.all((y >= float(made.domain.lower)) & (y <= float(made.domain.upper)))
        if len(getattr(made.domain, "spans", ())) > 1:
            assert made.domain.contains(y).all()
        assert [float(found._estimates(np.array([v]))[0]) for v in x[:200]] == y[:200].tolist()
        assert np.array_equal(found._estimates(x[::-1])[::-1], y)
        order = np.argsort(x)
        rises = np.diff(y[order])
        if name in MONOTONE:
            assert np.all(rises >= 0.0)
            assert found._remaps[0][0].rising


@pytest.mark.thinned(3)
@pytest.mark.parametrize("loss", LOSSES[:2])
@pytest.mark.parametrize("name", KINDS)
def test_estimates_are_posterior_means_and_medians(name: str, loss: str) -> None:
    made = KINDS[name]
    x = draws(made, 400)
    found = made_better(name, loss)._estimates(x)
    exact = posterior(made, x)
    expected = exact.mean() if loss == "squared" else exact.median()
    if not made.domain.lattice:
        expected = made.domain.project(expected)
    # on a continuous domain made of straight pieces; where a median jumps, either side is as good
    away = np.maximum(np.maximum(float(made.domain.lower) - x, x - float(made.domain.upper)), 0.0)
    allowed = 2e-7 * made.scale * np.exp(np.minimum(away / (2 * made.scale), 7.0))  # rare answers: less
    if loss == "absolute" and name.endswith("many-integers"):
        allowed = 1.0
    close = np.abs(found - expected) <= allowed + 1e-12 * np.abs(expected)
    assert np.mean(close) > (0.97 if name.startswith("staircase") else 0.999)
    if loss == "squared":
        assert close.all()


def test_estimates_next_to_an_atom_are_those_of_the_atom() -> None:
    """Ends that are no multiples of the grid are released as the multiple next to them."""
    made = ib.Gaussian(ib.Interval(0.1, 1.3), scale=0.3, sensitivity=0.3, edges="clamp")
    found = made.denoised()
    seen = np.unique(made.simulate(0.1, size=2000, seed=1))
    assert seen[0] > 0.1
    expected = posterior(made, 0.1).mean()
    assert found._estimates(seen[:1])[0] == pytest.approx(expected, abs=1e-12)
    assert found._estimates(seen[1:2])[0] > expected + 0.01  # the next one is not an atom
    assert posterior(made, float(seen[0])).mean() == expected
    assert np.mean(found.simulate(0.1, size=2000, seed=1) == found._estimates(seen[:1])[0]) > 0.4


# --- its law -------------------------------------------------------------------------------------

ALPHA = 1e-7


@pytest.mark.parametrize("name", KINDS)
def test_law_against_simulation(name: str) -> None:
    """Empirical cdf (Dvoretzky, Kiefer, Wolfowitz and Massart) and mean errors; a shifted law is rejected."""
    made = KINDS[name]
    found = made_better(name, "absolute" if name.startswith("bounded") else "squared")
    size = 60_000
    bound = math.sqrt(math.log(2.0 / ALPHA) / (2.0 * size))
    places = some_true(made.domain)[:3]
    drawn = found.simulate(np.array(places), size=size, seed=11)
    for i, q in enumerate(places):
        law = found.at(q)
        y = np.sort(drawn[:, i].astype(float))
        levels = np.unique(y[:: size // 40])
        share = np.searchsorted(y, levels + 1e-9, side="right") / size
        if made.domain.lattice or len(made.domain.pieces) > 1:  # jumps: no room for rounding there
            levels = levels + 1e-9
        cdf = law.cdf(levels)
        assert np.max(np.abs(share - cdf)) <= bound + 1e-6
        assert np.allclose(cdf + law.sf(levels), 1.0, atol=1e-12)
        wrong = law.cdf(levels - 0.1 * law.std())
        assert np.max(np.abs(share - wrong)) > bound
        report = law.error()
        for values, mean in ((y - q, report.bias), (np.square(y - q), report.rmse**2), (np.abs(y - q), report.mae)):
            assert abs(np.mean(values) - mean) <= 5.4 * np.std(values) / math.sqrt(size) + 1e-7 * made.scale
        assert law.mean() == pytest.approx(q + report.bias, abs=1e-12 * abs(q))
        assert law.var() == pytest.approx(report.sd**2, rel=1e-12)
        p = np.array([0.01, 0.3, 0.5, 0.9])
        quantile = law.ppf(p)
        assert np.all(law.cdf(quantile + 1e-9 * made.scale) >= p - 1e-7)
        assert np.all(law.cdf(quantile - 1e-5 * made.scale) <= p + 1e-4)


@pytest.mark.parametrize("name", ["laplace-ignore", "gaussian-clamp", "laplace-truncate-spans", "staircase-ignore"])
def test_density_and_atoms(name: str) -> None:
    made = KINDS[name]
    law = made_better(name).at(0.3)
    atoms = law.atoms
    assert bool(atoms) is (name in ("laplace-ignore", "gaussian-clamp"))
    many = 4000 if name == "staircase-ignore" else 20_000
    y = np.concatenate([np.linspace(a, b, many + 1)[1:-1] for a, b in made.domain.pieces])
    step = np.concatenate([np.full(many - 1, (b - a) / many) for a, b in made.domain.pieces])
    density = law.pdf(y)
    assert np.all(density >= 0.0)
    assert float(density @ step) + sum(float(m) for _, m in atoms) == pytest.approx(1.0, abs=6e-3)
    middle = (y > 0.25) & (y < 0.8)
    low, high = y[middle][0], y[middle][-1]
    inner = float(density[middle] @ step[middle])
    assert inner == pytest.approx(law.cdf(high) - law.cdf(low), abs=6e-3)
    assert np.allclose(np.exp(law.logpdf(y[::997])), density[::997])
    assert law.pdf(-1.0) == 0.0
    assert math.isnan(law.pdf(math.nan))


def test_pmf_on_integers() -> None:
    made = KINDS["gaussian-clamp-integers"].denoised(integer=True)
    law = made.at(np.array([2, 30]))
    points = np.arange(-3.0, 41.0)
    pmf = law.pmf(points[:, None])
    assert np.allclose(pmf.sum(axis=0), 1.0)
    assert np.allclose(points @ pmf, law.mean())
    assert np.allclose(np.exp(law.logpmf(5.0)), law.pmf(5.0))
    assert law.atoms == ()
    with pytest.raises(ParameterError, match="pdf"):
        law.pdf(3.0)
    with pytest.raises(ParameterError, match="pmf"):
        made_better("laplace-ignore").at(0.3).pmf(0.3)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", FEWER)
def test_quantiles_from_zero_to_one(name: str) -> None:
    p = np.array([0.0, 1e-12, 0.01, 0.2, 0.5, 0.9, 1.0 - 1e-9, 1.0])
    for loss in LOSSES[: 1 if name.endswith("wide") else 3]:
        found = made_better(name, loss)
        q = float(found.domain.project(0.4))
        law, remap = found.at(q), found._remaps[0][0]
        y = law.ppf(p)
        assert np.all(np.diff(y) >= 0.0)
        assert np.all(law.cdf(y) >= p - 1e-12)
        assert np.all(law.cdf(np.nextafter(y[1:], -INF)) <= p[1:] + 1e-7)
        if found.domain.bounded:
            bounded = name == "bounded-ignore"  # whose noise does not reach all answers from 0.4
            every = remap(KINDS[name].at(q).ppf([0.0, 1.0]) if bounded else remap.starts[1:])
            assert y[[0, -1]] == pytest.approx([np.min(every), np.max(every)], abs=1e-7 * found.scale)
        if remap.whole:
            assert np.array_equal(y, np.round(y))
    assert made_better("laplace-ignore").at(0.5).images([0.0, 1.0]) == pytest.approx([0.193216, 0.806784], abs=1e-6)


def test_a_lowest_answer_of_zero_is_a_quantile() -> None:
    law = made_better("staircase-integers", "zero-one").at(0)
    assert law.ppf([0.0, 1e-12, 0.5]).tolist() == [0.0, 0.0, 0.0]


def test_what_is_not_a_number_stays_so() -> None:
    law = made_better("laplace-ignore").at(0.3)
    assert all(math.isnan(f(math.nan)) for f in (law.cdf, law.sf, law.ppf))
    assert math.isnan(law.ppf(1.5))
    assert law.cdf(-INF) == 0.0
    assert law.cdf(INF) == 1.0
    assert "DenoisedLaw" in repr(law)


# --- error over the domain -----------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_denoising_pays_on_average(family: str) -> None:
    """Less average error than without, and clamping first, which forgets, cannot help."""
    made = {edges: FAMILIES[family](UNIT, scale=0.4, sensitivity=0.1, edges=edges) for edges in EDGES}
    for prior in (None, middling):
        after = {edges: risk(m.denoised(prior=prior), prior) for edges, m in made.items()}
        for edges, m in made.items():
            assert after[edges].mse < risk(m, prior).mse
            absolute = risk(m.denoised("absolute", prior), prior)
            assert absolute.mae < after[edges].mae
            assert absolute.mse > after[edges].mse
        assert after["ignore"].mse <= after["clamp"].mse * (1 + 1e-7)


@pytest.mark.parametrize("name", ["laplace-ignore", "gaussian-truncate", "laplace-truncate-spans", "staircase-clamp"])
def test_risk_over_a_continuous_domain(name: str) -> None:
    for made in (KINDS[name], made_better(name)):
        found = risk(made)
        pieces = made.domain.pieces
        x, w = np.polynomial.legendre.leggauss(200)
        q = np.concatenate([a + (b - a) * (x + 1) / 2 for a, b in pieces])
        weight = np.concatenate([(b - a) * w / 2 for a, b in pieces])
        report = made.at(q).error()
        assert found.mse == pytest.approx(weight @ report.rmse**2 / weight.sum(), rel=2e-6)
        assert found.mae == pytest.approx(weight @ report.mae / weight.sum(), rel=1e-4)  # has kinks
        grid = np.concatenate([np.linspace(a, b, 4001) for a, b in pieces])
        report = made.at(grid).error()
        for worst, where, values in (
            (found.worst_mse, found.worst_mse_at, report.rmse**2),
            (found.worst_mae, found.worst_mae_at, report.mae),
            (found.bias, found.bias_at, np.abs(report.bias)),
        ):
            assert worst >= np.max(values) * (1 - 1e-6) - 1e-12
            assert where in made.domain
        assert np.isclose(made.at(found.worst_mse_at).error().rmse ** 2, found.worst_mse, rtol=1e-9)


def test_risk_over_integers_and_other_priors() -> None:
    made = ib.Laplace(RANGE, scale=3.0, sensitivity=1, edges="clamp")
    for kind in (made, made.denoised()):
        report = kind.at(TRUE).error()
        found = risk(kind)
        assert found.mse == pytest.approx(np.mean(report.rmse**2), rel=1e-12)
        assert found.mae == pytest.approx(np.mean(report.mae), rel=1e-12)
        assert found.worst_mse == pytest.approx(np.max(report.rmse) ** 2, rel=1e-12)
        assert found.bias == pytest.approx(np.max(np.abs(report.bias)), rel=1e-12)
        weighted = risk(kind, ([3, 9], [1.0, 3.0]))
        assert weighted.mse == pytest.approx((report.rmse[3] ** 2 + 3 * report.rmse[9] ** 2) / 4, rel=1e-12)
    many = ib.Laplace(ib.Integers(0, 4200), scale=20.0, sensitivity=1, edges="clamp").denoised()
    report, found = many.at(np.arange(4201)).error(), risk(many)
    assert found.mse == pytest.approx(np.mean(report.rmse**2), rel=1e-6)
    assert found.mae == pytest.approx(np.mean(report.mae), rel=3e-6)


def test_risk_without_bounds() -> None:
    half = KINDS["laplace-truncate-half-line"]
    found = risk(half)
    assert found.mse is None
    assert found.mae is None
    assert found.worst_mse == pytest.approx(2 * 1.5**2, rel=1e-6)
    proper = risk(half, lambda q: np.exp(-q))
    q, w = np.polynomial.laguerre.laggauss(60)
    assert proper.mse == pytest.approx(w @ half.at(q).error().rmse ** 2, rel=1e-6)
    shrunk = risk(half.denoised(prior=lambda q: np.exp(-q)), lambda q: np.exp(-q))
    assert shrunk.mse < proper.mse
    assert shrunk.worst_mse == INF  # estimates do not follow far true values
    line = risk(KINDS["gaussian-ignore-line"].denoised())
    assert line.worst_mse == pytest.approx(1.5**2, rel=1e-9)


def test_risk_of_a_box_is_that_of_its_coordinates() -> None:
    box = ib.Gaussian(ib.Box([0, 0, 0], [1, 1, 5]), scale=0.5, sensitivity=ib.L2(1)).denoised()
    found = risk(box)
    single = risk(ib.Gaussian(UNIT, scale=0.5, sensitivity=1).denoised())
    assert found.mse.shape == (3,)
    assert found.mse[:2] == pytest.approx(single.mse, rel=1e-9)
    assert found.worst_mae[1] == pytest.approx(single.worst_mae, rel=1e-9)


# --- a mechanism like any other ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["laplace-truncate", "gaussian-ignore", "staircase-clamp", "bounded-ignore"])
def test_privacy_is_untouched(name: str) -> None:
    made = KINDS[name]
    found = made.denoised()
    assert found.epsilon(1e-3) == made.epsilon(1e-3)
    assert found.delta(0.1) == made.delta(0.1)
    assert found._curve is made._curve
    assert found.domain == made.domain
    assert found.sensitivity == made.sensitivity
    assert found.grid == made.grid
    if name == "gaussian-ignore":
        assert found.epsilon() == made.epsilon() == INF
        assert found.rdp(4.0) == made.rdp(4.0)
        assert found.zcdp() == made.zcdp()
        assert found.gdp() == made.gdp()


def test_releases() -> None:
    plain = KINDS["laplace-ignore"]
    found = plain.denoised()
    assert isinstance(found, Denoised)
    one = found.release(0.3)
    assert isinstance(one.value, float)
    assert 0 < one.value < 1
    many = found.release(np.full((3, 4), 0.3)).value
    assert many.shape == (3, 4)
    assert many.dtype == np.float64
    assert np.unique(many).size > 3
    with pytest.raises(OutsideDomain):
        found.release(1.5)
    assert 0 < found.release(1.5, clip=True).value < 1
    same = [m.simulate(0.3, size=500, seed=5) for m in (plain, found)]
    assert np.array_equal(found._estimates(same[0]), same[1])
    whole = KINDS["laplace-clamp-integers"].denoised(integer=True)
    assert isinstance(whole.release(4).value, int)
    assert whole.simulate(4, size=5, seed=1).dtype == np.int64
    assert KINDS["laplace-clamp-integers"].denoised().simulate(4, size=5, seed=1).dtype == np.float64
    far = KINDS["laplace-ignore-whole-half-line"].denoised("absolute", integer=True)
    assert far.simulate(10**6, size=5, seed=1).dtype == np.int64


def test_boxes() -> None:
    box = ib.Box([0, 0, -3], [1, 1, 5])
    made = ib.Laplace(box, scale=0.4, sensitivity=ib.L1(0.5), edges="ignore")
    prior = [None, ([0.0, 0.5], [1, 1]), ramp_up]
    found = made.denoised(prior=prior)
    x = made.simulate([0.2, 0.9, 4.0], size=500, seed=2)
    y = found._estimates(x)
    assert box.contains(y).all()
    for i in range(3):
        line = ib.Laplace(box.coordinate(i), scale=0.4, sensitivity=0.5, edges="ignore").denoised(prior=prior[i])
        assert np.array_equal(y[:, i], line._estimates(x[:, i]))
        assert found.at([0.2, 0.9, 4.0]).error().rmse[i] == line.at([0.2, 0.9, 4.0][i]).error().rmse
    assert found.release([0.2, 0.9, 4.0]).value.shape == (3,)
    assert found.at([0.2, 0.9, 4.0]).mean().shape == (3,)
    assert found.at([[0.2, 0.9, 4.0]] * 2).cdf([0.5, 0.4, 3.0]).shape == (2,)
    assert len(found.prior) == 3
    low, high = found.interval(y[:5])
    assert low.shape == high.shape == (5, 3)
    assert np.all(low <= high)
    assert len(made.denoised()._remaps) == 2  # two coordinates are alike


def ramp_up(q: Any) -> Any:
    return 4.0 + np.asarray(q)


def test_frozen_equal_and_picklable() -> None:
    made = KINDS["gaussian-truncate"]
    for prior in (None, middling, ([0.1, 0.5], [1.0, 2.0])):
        found = made.denoised("absolute", prior)
        again = pickle.loads(pickle.dumps(found))
        assert again == found == copy.deepcopy(found)
        assert hash(again) == hash(found)
        assert np.array_equal(again._estimates(np.linspace(0, 1, 9)), found._estimates(np.linspace(0, 1, 9)))
        assert again != made.denoised("squared", prior)
        assert "Denoised(Gaussian(" in repr(found)
        assert ("prior" in repr(found)) is (prior is not None)
    assert "integer=True" in repr(KINDS["laplace-clamp-integers"].denoised(integer=True))
    with pytest.raises(AttributeError):
        made.denoised().loss = "absolute"


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"loss": "cubic"}, ParameterError, "loss"),
    ({"loss": 2}, ParameterTypeError, "loss"),
    ({"integer": 1}, ParameterTypeError, "integer"),
    ({"integer": True}, ParameterError, "integer"),
    ({"prior": "bell"}, ParameterTypeError, "prior"),
    ({"prior": ([0.5, 2.0], [1, 1])}, ParameterError, "points"),
    ({"prior": lambda q: q - 0.5}, ParameterError, "prior"),
]


@pytest.mark.parametrize(("given", "kind", "names"), BAD, ids=[str(i) for i in range(len(BAD))])
def test_bad_input(given: dict[str, Any], kind: type[Exception], names: str) -> None:
    with pytest.raises(kind, match=names):
        KINDS["laplace-ignore"].denoised(**given)


@pytest.mark.parametrize("domain", [ib.Integers(0, 10), ib.Interval(0, 1)], ids=["integers", "interval"])
def test_tables_of_answers(domain: Any) -> None:
    """The optimum is a list of answers with probabilities: everything is a sum."""
    made = ib.optimal(domain, sensitivity=0.2 * domain.width, epsilon=1.5, cells=11)
    found = made.denoised()
    points = made.points
    q = np.linspace(domain.lower, domain.upper, 11)
    p = made.at(q[:, None]).pmf(points)
    t = found._estimates(points)
    prior = np.arange(11.0) if domain.lattice else (np.arange(4400) + 0.5) / 4400  # cells cut evenly
    joint = made.at(prior[:, None]).pmf(points)
    assert np.allclose(t, prior @ joint / joint.sum(axis=0), atol=1e-6)
    assert np.allclose(posterior(made, points).mean(), t, atol=1e-12)
    assert np.allclose(made.posterior(points).mean(), t, atol=1e-9)
    report = found.at(q).error()
    assert np.allclose(report.bias, p @ t - q)
    assert np.allclose(report.rmse**2, (p * (t - q[:, None]) ** 2).sum(axis=1))
    assert np.allclose(report.mae, (p * np.abs(t - q[:, None])).sum(axis=1))
    assert np.allclose(found.at(q).cdf(t[:, None]), (p[:, None, :] * (t <= t[:, None])).sum(axis=-1).T)
    assert np.allclose(found.at(q).pmf(t[4]), p[:, t == t[4]].sum(axis=1))
    assert risk(found).mse <= risk(made).mse
    assert np.isin(found.simulate(q[3], size=300, seed=1), t).all()
    low, high = found.interval(t, 0.9)
    covered = (p * ((low <= q[:, None]) & (q[:, None] <= high))).sum(axis=1)
    assert np.min(covered) >= 0.9
    assert found.interval(float(t[5]), 0.9) == (low[5], high[5])
    assert np.allclose(found.posterior(t).mean(), t, rtol=1e-6, atol=1e-6)
    assert found.epsilon() == made.epsilon()
    if not domain.lattice:
        with pytest.raises(ParameterError, match="pdf"):
            found.at(0.5).pdf(0.5)
    with pytest.raises(ParameterError, match="value"):
        found.interval(0.123456)
    with pytest.raises(ParameterError, match="how"):
        found.estimate(float(t[5]), "median-unbiased")


def test_what_cannot_be_denoised() -> None:
    with pytest.raises(ParameterError, match="not denoised yet"):
        KINDS["laplace-ignore"].denoised().denoised()
    with pytest.raises(ParameterTypeError, match="mechanism"):
        Denoised("laplace")  # type: ignore[arg-type]


# --- what an estimate says about the true value --------------------------------------------------


@pytest.mark.parametrize("name", FEWER)
def test_raw_answers_are_found_again(name: str) -> None:
    made = KINDS[name]
    x = draws(made, 600)
    for loss in ("squared", "absolute"):
        found = made_better(name, loss)
        y = found._estimates(x)
        low, high = found._raw_range(y)
        assert np.all((low <= x) & (x <= high))
        for end in (low, high):
            some = np.isfinite(end)
            assert np.mean(found._estimates(end[some]) == y[some]) > 0.99
        for a, b in found._seen(y[:50], None):
            some = np.isfinite(a) & np.isfinite(b)
            assert np.array_equal(found._estimates(a[some]), y[:50][some])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["laplace-ignore", "gaussian-clamp", "laplace-truncate", "staircase"])
def test_intervals_cover(kind: str, loss: str) -> None:
    """By sums over all answers, at every true value."""
    family, _, edges = kind.partition("-")
    if family == "staircase":
        made = KINDS["staircase-integers"]
    else:
        made = FAMILIES[family](RANGE, scale=3.0, sensitivity=1, edges=edges)
    found = made.denoised(loss, integer=loss == "squared")
    x = answers(made)
    low, high = found.interval(found._estimates(x), 0.9)
    covered = (likelihoods(made) * ((low <= TRUE[:, None]) & (TRUE[:, None] <= high))).sum(axis=1)
    assert np.min(covered) >= 0.9
    assert np.mean(covered) < 0.99


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_posteriors_of_answers_that_come_from_several(loss: str) -> None:
    """Estimates that do not rise: one value may come from raw answers that are not next to each other."""
    made = KINDS["staircase-integers"]
    found = made.denoised(loss, integer=True)
    assert not found._remaps[0][0].rising
    x = answers(made)
    t, p = found._estimates(x), likelihoods(made)
    values = np.unique(t[110:181])
    assert len(found._seen(values, None)) > 1
    joint = np.stack([p[:, t == y].sum(axis=1) for y in values], axis=1)
    exact = found.posterior(values)
    assert np.allclose(exact.mean(), TRUE @ joint / joint.sum(axis=0), rtol=1e-9)
    one = float(values[3])
    assert found.posterior(one).pmf(TRUE) == pytest.approx(joint[:, 3] / joint[:, 3].sum(), abs=1e-12)
    real = KINDS["staircase-ignore"]
    drawn = draws(real, 40)
    back = made_better("staircase-ignore").posterior(made_better("staircase-ignore")._estimates(drawn))
    assert np.allclose(back.mean(), made_better("staircase-ignore")._estimates(drawn), atol=1e-5)


def test_intervals_estimates_and_posteriors_are_those_of_the_raw_answer() -> None:
    made = KINDS["gaussian-ignore"]
    found = made.denoised()
    x = np.array([-0.1, 0.2, 0.7])
    x = np.rint(x / made.grid) * made.grid
    y = found._estimates(x)
    assert np.allclose(found.interval(y), made.interval(x), atol=1e-6)
    for how in ("mle", "median-unbiased", "posterior-mean", "posterior-median"):
        assert np.allclose(found.estimate(y, how), made.estimate(x, how), atol=1e-6)
    prior = ([0.0, 0.3], [1.0, 1.0])
    assert found.estimate(y, "posterior-mean", prior) == pytest.approx(made.estimate(x, "posterior-mean", prior))
    assert np.allclose(found.posterior(y).var(), made.posterior(x).var(), rtol=1e-5)
    # answers below the wall all lead to one estimate
    plain = KINDS["laplace-ignore"]
    lowest = plain.denoised()._estimates(np.array([-1.0]))
    assert np.isneginf(plain.denoised()._raw_range(lowest)[0])
    assert plain.denoised().posterior(lowest).mean() == pytest.approx(plain.posterior(0.0).mean(), rel=1e-9)
    assert plain.denoised().estimate(lowest) == pytest.approx(0.0, abs=1e-8)
    with pytest.raises(ParameterError, match="value"):
        found.interval(1.5)
    with pytest.raises(ParameterError, match="prior"):
        found.estimate(0.5, "mle", prior)


def test_values_that_cannot_have_been_released() -> None:
    plain = KINDS["laplace-ignore"].denoised()
    whole = KINDS["laplace-clamp-integers"]
    holes = KINDS["laplace-truncate-spans"].denoised()
    table = ib.Table(ib.Interval(0, 1), [[3, 1], [1, 3]], sensitivity=0.5).denoised()
    box = ib.Laplace(ib.Box([0, 0], [1, 1]), scale=0.2, sensitivity=ib.L1(0.1)).denoised()
    for found, value in (
        (plain, 1.5),
        (plain, math.nan),
        (whole.denoised(integer=True), 2.5),
        (whole.denoised("absolute"), 2.5),
        (whole.denoised(), 40.5),
        (holes, 1.4),
        (table, 0.123),
        (box, [0.5, 1.5]),
    ):
        for ask in (
            found.posterior,
            found.estimate,
            lambda value, found=found: found.estimate(value, "posterior-mean"),
            lambda value, found=found: found.estimate(value, "posterior-median"),
            found.interval,
        ):
            with pytest.raises(ParameterError, match="value must be an answer that this mechanism can give"):
                ask(value)
    assert 2.0 < whole.denoised().posterior(2.5).mean() < 3.0  # a mean of whole numbers


@pytest.mark.parametrize("name", ["laplace-truncate", "gaussian-truncate", "laplace-clamp", "laplace-truncate-spans"])
def test_the_outermost_answers_have_posteriors(name: str) -> None:
    """Of a density there may be but one answer that leads to the outermost estimate."""
    made, found = KINDS[name], made_better(name)
    ends = np.array([made.domain.lower, made.domain.upper])
    y = found._estimates(ends)
    assert found.posterior(y).mean() == pytest.approx(made.posterior(ends).mean(), abs=1e-6)
    assert found.estimate(y) == pytest.approx(made.estimate(ends), abs=1e-6)


def test_estimates_on_integers_are_whole_numbers() -> None:
    table = ib.Table(ib.Integers(3, 4), [[3, 1], [1, 3]], sensitivity=1)
    for made in (KINDS["laplace-clamp-integers"], table):
        found = made.denoised(integer=True)
        assert type(found.estimate(4)) is int
        assert found.estimate([3, 4]).dtype == np.int64
    assert type(KINDS["laplace-ignore"].denoised().estimate(0.5)) is float
    box = ib.Laplace(ib.Box([0, 0], [9, 9], integer=True), scale=2.0, sensitivity=ib.L1(1.0)).denoised(integer=True)
    assert box.estimate([3, 4]).dtype == np.int64


# --- small epsilon: plain stairs reach far


def test_small_epsilon_takes_neither_long_nor_much_memory() -> None:
    """Everything that lies far outside is one term, where it has the same estimate."""
    for change, epsilon in ((30, 1e-6), (1, 1e-12)):
        made = ib.Staircase.calibrate(RANGE, sensitivity=change, epsilon=epsilon, edges="ignore")
        errors = np.asarray(made.denoised(integer=True).at(TRUE).error().rmse)
        np.testing.assert_allclose(errors, np.abs(TRUE - 15.0), rtol=1e-3, atol=2e-2)  # next to nothing is learnt
    geometric = ib.Laplace.calibrate(RANGE, sensitivity=1, epsilon=1e-3, edges="ignore").denoised()
    stairs = ib.Staircase.calibrate(RANGE, sensitivity=1, epsilon=1e-3, edges="ignore").denoised()
    np.testing.assert_allclose(stairs.at(TRUE).error().rmse, geometric.at(TRUE).error().rmse, rtol=1e-9)


def test_what_would_take_too_long_is_refused() -> None:
    made = ib.Staircase.calibrate(RANGE, sensitivity=30, epsilon=1e-6, edges="ignore").denoised()
    with pytest.raises(
        ib.UnreachableTarget, match=r"Denoised: errors on whole numbers must be sums of at most .* terms"
    ):
        made.at(3.0).error()


def test_terms_beyond_where_the_estimate_is_constant() -> None:
    """Against the sum over all answers, for an estimate that stays the same far outside and one that does not."""
    for change, integer in ((1, False), (7, True), (7, False)):
        raw = ib.Staircase.calibrate(RANGE, sensitivity=change, epsilon=0.5, edges="ignore")
        made = raw.denoised(integer=integer)
        x = np.arange(-1500.0, 1531.0)
        share = np.exp(raw.at(TRUE[:, None]).logpmf(x))
        expected = np.sqrt((share * (made._estimates(x) - TRUE[:, None]) ** 2).sum(axis=1))
        np.testing.assert_allclose(made.at(TRUE).error().rmse, expected, rtol=1e-12)


@pytest.mark.parametrize("edges", ["ignore", "clamp"])
def test_stairs_on_spans_have_a_closed_form(edges: str) -> None:
    """Against sums over the parts between all jumps, for near and for far answers."""
    spans = ib.Spans([(0, 4), (6, 10), (10.5, 11)])
    made = ib.Staircase(spans, sensitivity=1, epsilon=1.0, edges=edges)
    noise = made._noise
    for x in (0.2, 3.9, 7.0, 10.7) + ((-33.0, -1.3, 5.2, 40.0) if edges == "ignore" else ()):
        jumps = noise.first + noise.width * np.arange(60.0)
        cuts = np.unique(np.concatenate([np.ravel(spans.spans), x - jumps, x + jumps]))
        cuts = cuts[(cuts >= 0.0) & (cuts <= 11.0)]
        a, b = cuts[:-1], cuts[1:]
        weight = np.exp(noise.log_density((a + b) / 2.0 - x) - noise.log_density(np.array(max(-x, x - 11.0, 0.0))))
        weight = np.where(spans.contains((a + b) / 2.0), weight, 0.0)
        mean = (weight @ (b * b - a * a)) / 2.0 / (weight @ (b - a))
        found = made.posterior(x)
        assert found.mean() == pytest.approx(mean, rel=1e-12), x
        assert found.cdf(found.median()) == pytest.approx(0.5, abs=1e-12)
        below = np.where(b <= 4.0, weight, 0.0) @ (b - a) / (weight @ (b - a))
        assert found.cdf(5.0) == pytest.approx(below, abs=1e-12)

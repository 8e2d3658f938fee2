"""Releases and simulations: their law, by tests whose false alarm rate is declared and whose power is shown.

Every statistical test here rejects a correct sampler with probability at most about ALPHA, and the same test rejects
a scale that is 5 % off almost surely.
"""

from __future__ import annotations

import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats

import inbounds as ib
from tests.common import MECHANISMS as FAMILIES

INF = math.inf
ALPHA = 1e-7
COUNT = 100_000
DOMAINS: dict[str, tuple[Any, float, float]] = {  # domain, scale, true value
    "interval": (ib.Interval(0, 10), 1.0, 2.5),
    "wall": (ib.Interval(0, 10), 1.0, 0.0),
    "half-line": (ib.Interval(0, INF), 1.0, 1.0),
    "line": (ib.Interval(-INF, INF), 3.0, -2.0),
    "spans": (ib.Spans([(0.0, 2.0), (2.5, 4.0), (6.0, 10.0)]), 1.0, 1.7),
    "integers": (ib.Integers(0, 40), 6.0, 11),
    "all integers": (ib.Integers(-INF, INF), 6.0, 4),
}


def cells(law: Any) -> tuple[Any, Any]:
    """Ends of some 30 cells (lower, upper] of about equal probability (atoms make some larger), and which count."""
    edges = np.unique(law.ppf(np.arange(1, 30) / 30))
    kept = shares(law, edges) * COUNT > 20
    assert kept.sum() >= 5
    return edges, kept


def shares(law: Any, edges: Any) -> Any:
    return np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]]))


def p_value(draws: Any, law: Any) -> float:
    """Chi-square of the counts in the cells of the law."""
    edges, kept = cells(law)
    expected = shares(law, edges)[kept] * len(draws)
    counts = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=edges.size + 1)[kept]
    return float(stats.chi2.sf(np.sum((counts - expected) ** 2 / expected), kept.sum() - 1))


def power(truth: Any, law: Any) -> float:
    """The probability that COUNT draws of ``truth`` are rejected as draws of ``law``."""
    edges, kept = cells(law)
    expected, actual = (shares(of, edges)[kept] for of in (law, truth))
    distance = COUNT * np.sum((actual - expected) ** 2 / expected)
    freedom = kept.sum() - 1
    return float(stats.ncx2.sf(stats.chi2.isf(ALPHA, freedom), freedom, distance))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("edges", ["truncate", "clamp", "ignore"])
@pytest.mark.parametrize("kind", DOMAINS)
def test_releases_follow_the_law(family: str, edges: str, kind: str) -> None:
    domain, scale, q = DOMAINS[kind]
    mechanism = FAMILIES[family](domain, scale=scale, sensitivity=1, edges=edges)
    draws = mechanism.release(np.full(COUNT, q)).value
    assert draws.shape == (COUNT,)
    assert draws.dtype == (np.int64 if domain.lattice else np.float64)
    assert p_value(draws, mechanism.at(q)) > ALPHA
    for factor in (0.95, 1.05):
        wrong = FAMILIES[family](domain, scale=scale * factor, sensitivity=1, edges=edges)
        assert power(wrong.at(q), mechanism.at(q)) > 0.97
    if edges != "ignore":
        assert np.all(domain.contains(draws))
    elif kind in ("interval", "wall", "integers"):
        assert not np.all(domain.contains(draws))


@pytest.mark.parametrize("family", FAMILIES)
def test_continuous_releases_by_kolmogorov_and_smirnov(family: str) -> None:
    mechanism = FAMILIES[family](ib.Interval(0, 10), scale=2.0, sensitivity=1.0)
    draws = mechanism.release(np.full(COUNT, 3.0)).value
    assert stats.kstest(draws, mechanism.at(3.0).cdf).pvalue > ALPHA
    wrong = FAMILIES[family](ib.Interval(0, 10), scale=2.2, sensitivity=1.0)
    assert stats.kstest(draws, wrong.at(3.0).cdf).pvalue < ALPHA
    assert len(np.unique(draws)) > 0.99 * COUNT  # 2^24 steps to a scale
    assert np.all(draws % mechanism.grid == 0)


@pytest.mark.parametrize("family", FAMILIES)
def test_simulations_follow_the_law(family: str) -> None:
    mechanism = FAMILIES[family](ib.Interval(0, 10), scale=1.0, sensitivity=1.0)
    draws = mechanism.simulate(2.5, size=COUNT, seed=1)
    assert p_value(draws, mechanism.at(2.5)) > ALPHA
    assert p_value(draws, FAMILIES[family](ib.Interval(0, 10), scale=1.04, sensitivity=1.0).at(2.5)) < ALPHA


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("edges", ["truncate", "clamp"])
def test_always_in_range(family: str, edges: str) -> None:
    for domain, places in (
        (ib.Interval(0.1, 0.3), (0.1, 0.2, 0.3)),
        (ib.Interval(1e9 + 0.1, 1e9 + 0.7), (1e9 + 0.3,)),
        (ib.Spans([(0.1, 0.3), (0.7, 0.9)]), (0.3, 0.7)),
        (ib.Integers(-3, 4), (-3, 4)),
        (ib.Interval(-INF, 0.3), (0.3,)),
    ):
        for scale in (1e-9, 0.05, 3.0, 1e9):
            mechanism = FAMILIES[family](domain, scale=scale, sensitivity=1 if domain.lattice else 0.1, edges=edges)
            for q in places:
                assert np.all(domain.contains(mechanism.release(np.full(300, q)).value)), (domain, scale, q)


def test_every_element_has_its_own_draw_and_its_own_truth() -> None:
    mechanism = ib.Laplace(ib.Interval(0, 100), scale=1e-3, sensitivity=1.0)
    true = np.array([[1.0, 50.0, 99.0], [2.0, 60.0, 3.0]])
    draws = mechanism.release(true).value
    assert draws.shape == true.shape
    assert np.all(np.abs(draws - true) < 0.1)
    offsets = (mechanism.release(np.full(1000, 50.0)).value - 50.0) / 1e-3
    assert len(np.unique(offsets)) > 990
    assert abs(np.corrcoef(offsets[:-1], offsets[1:])[0, 1]) < 0.2  # 6 standard deviations


def test_releases_ignore_seeds() -> None:
    mechanism = ib.Gaussian(ib.Interval(0, 1), scale=0.3, sensitivity=0.1)
    seen = set()
    for _ in range(4):
        np.random.seed(0)  # noqa: NPY002
        seen.add(mechanism.release(0.5).value)
    assert len(seen) == 4
    with pytest.raises(TypeError):
        mechanism.release(0.5, seed=1)  # type: ignore[call-arg]


def test_simulations_repeat_with_a_seed_only() -> None:
    mechanism = ib.Laplace(ib.Integers(0, 1000), scale=50.0, sensitivity=1)
    first, again = (mechanism.simulate(300, size=50, seed=7) for _ in range(2))
    assert first.dtype == np.int64
    assert np.array_equal(first, again)
    assert not np.array_equal(first, mechanism.simulate(300, size=50, seed=8))
    assert not np.array_equal(mechanism.simulate(300, size=50), mechanism.simulate(300, size=50))
    assert mechanism.simulate(300, size=(2, 3), seed=1).shape == (2, 3)
    assert mechanism.simulate([1, 2], size=5, seed=1).shape == (5, 2)
    for size in (-1, 2.5, True, (2, -1)):
        with pytest.raises(ib.InboundsError):
            mechanism.simulate(300, size=size)


@pytest.mark.parametrize("family", FAMILIES)
def test_boxes(family: str) -> None:
    box = ib.Box([0, 1], [10, 9])
    mechanism = FAMILIES[family](box, scale=1.0, sensitivity=ib.L2(2.0))
    draws = mechanism.release(np.broadcast_to([3.0, 8.5], (COUNT, 2))).value
    assert draws.shape == (COUNT, 2)
    assert np.all(box.contains(draws))
    wrong = FAMILIES[family](box, scale=1.08, sensitivity=ib.L2(2.0))
    for i in range(2):
        assert p_value(draws[:, i], mechanism.at([3.0, 8.5]).marginals[i]) > ALPHA
        assert p_value(draws[:, i], wrong.at([3.0, 8.5]).marginals[i]) < ALPHA
    assert abs(np.corrcoef(draws.T)[0, 1]) < 6 / math.sqrt(COUNT)  # independent coordinates
    assert mechanism.release([3.0, 8.5]).value.shape == (2,)
    whole = FAMILIES[family](ib.Box([0, 0], [9, 9], integer=True), scale=1.0, sensitivity=ib.L1(2))
    assert whole.release([3, 4]).value.dtype == np.int64
    with pytest.raises(ib.InboundsError):
        mechanism.release([1.0, 2.0, 3.0])


def test_clipping() -> None:
    mechanism = ib.Laplace(ib.Interval(0, 1), scale=1e-6, sensitivity=1.0)
    with pytest.raises(ib.OutsideDomain) as caught:
        mechanism.release(1.23456)
    assert "1.23456" not in str(caught.value)
    assert mechanism.release(1.23456, clip=True).value == pytest.approx(1.0, abs=1e-4)
    assert mechanism.release([-7.0, 0.5], clip=True).value == pytest.approx([0.0, 0.5], abs=1e-4)
    with pytest.raises(ib.OutsideDomain):
        mechanism.release(math.nan, clip=True)
    with pytest.raises(ib.InboundsError):
        mechanism.release(0.5, clip=1)  # type: ignore[arg-type]
    holes = ib.Laplace(ib.Spans([(0, 1), (2, 3)]), scale=1.0, sensitivity=1.0)
    with pytest.raises(ib.InboundsError, match="holes"):
        holes.release(1.5, clip=True)
    with pytest.raises(ib.OutsideDomain):
        holes.release(1.5)
    with pytest.raises(ib.OutsideDomain):
        ib.Laplace(ib.Integers(0, 9), scale=1.0, sensitivity=1).release(2.5)


def test_what_a_release_holds() -> None:
    mechanism = ib.Gaussian(ib.Interval(0, 1), scale=0.3, sensitivity=0.1)
    secret = 0.123456789
    out = mechanism.release(secret)
    assert out.mechanism is mechanism
    assert isinstance(out.value, float)
    assert float(out) == out.value
    assert [field.name for field in dataclasses.fields(out)] == ["value", "mechanism"]
    assert set(vars(out)) == {"value", "mechanism"}
    assert out.value != secret
    for text in (repr(out), str(out), repr(vars(mechanism))):
        assert "0.12345678" not in text
    assert np.float64(secret).tobytes() not in pickle.dumps(out)
    with pytest.raises(dataclasses.FrozenInstanceError):
        out.value = 0.5  # type: ignore[misc]


def test_integers_are_python_ints() -> None:
    mechanism = ib.Laplace(ib.Integers(0, 9), scale=1.0, sensitivity=1)
    assert type(mechanism.release(3).value) is int
    assert type(mechanism.release(np.int32(3)).value) is int
    assert mechanism.release([3, 4]).value.dtype == np.int64


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", DOMAINS)
def test_a_million_releases(family: str, kind: str) -> None:
    domain, scale, q = DOMAINS[kind]
    mechanism = FAMILIES[family](domain, scale=scale, sensitivity=1)
    draws = np.concatenate([mechanism.release(np.full(COUNT, q)).value for _ in range(10)])
    assert p_value(draws, mechanism.at(q)) > ALPHA
    for factor in (0.97, 1.03):
        assert p_value(draws, FAMILIES[family](domain, scale=scale * factor, sensitivity=1).at(q)) < ALPHA

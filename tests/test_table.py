"""Tables of whole numbers: privacy in exact fractions, cells, laws, forced bits, inference."""

from __future__ import annotations

import math
import pickle
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import inbounds as ib
from inbounds.mechanism.table import Cells, Table
from inbounds.sampling.entropy import Seeded
from tests.test_finite import Scripted

RESPONSE = [[3, 1], [1, 3]]
STAIRS = [[9, 4, 1, 0], [4, 9, 4, 1], [1, 4, 9, 4], [0, 1, 4, 9]]


def shares(weights: list[list[int]]) -> list[list[Fraction]]:
    return [[Fraction(w, sum(row)) for w in row] for row in weights]


def tables(most: int = 5) -> st.SearchStrategy[tuple[list[list[int]], int]]:
    """(weights without zeros, sensitivity)"""

    def of_size(n: int) -> st.SearchStrategy[tuple[list[list[int]], int]]:
        row = st.lists(st.one_of(st.integers(1, 9), st.integers(1, 10**30)), min_size=n, max_size=n)
        return st.tuples(st.lists(row, min_size=n, max_size=n), st.integers(1, n - 1))

    return st.integers(2, most).flatmap(of_size)


def pairs(count: int, reach: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(count) for b in range(count) if a != b and abs(a - b) <= reach]


# ---------------------------------------------------------------- privacy


@given(tables())
@settings(max_examples=60)
def test_privacy_is_that_of_the_fractions(given: tuple[list[list[int]], int]) -> None:
    weights, reach = given
    p = shares(weights)
    m = Table(ib.Integers(0, len(p) - 1), weights, sensitivity=reach)
    near = pairs(len(p), reach)
    top = max(x / y for a, b in near for x, y in zip(p[a], p[b], strict=True))
    loss = mp.log(mpf(top.numerator) / top.denominator)
    found = m.epsilon()
    assert found >= loss or (top == 1 and found == 0.0)
    assert found <= loss + mpf("1e-12")
    for epsilon in (0.0, 0.3, 2.0):
        e = mp.exp(mpf(epsilon))
        exact = max(
            sum(
                max(mpf(x.numerator) / x.denominator - e * y.numerator / y.denominator, 0)
                for x, y in zip(p[a], p[b], strict=True)
            )
            for a, b in near
        )
        delta = m.delta(epsilon)
        assert delta >= exact
        assert delta <= exact * (1 + mpf("1e-15")) + mpf(2) ** -1070
    for alpha in (1.5, 2.0, 40.0):
        exact = max(
            mp.log(sum(mpf(x) ** alpha * mpf(y) ** (1 - mpf(alpha)) for x, y in floats(p, a, b))) / (alpha - 1)
            for a, b in near
        )
        assert m.rdp(alpha) >= exact - mpf("1e-50")  # the sum itself is rounded at 60 digits
        assert m.rdp(alpha) <= exact * (1 + mpf("1e-9")) + mpf("1e-12")


def floats(p: list[list[Fraction]], a: int, b: int) -> list[tuple[Any, Any]]:
    return [
        (mpf(x.numerator) / x.denominator, mpf(y.numerator) / y.denominator) for x, y in zip(p[a], p[b], strict=True)
    ]


def near(count: int, bits: int, share: float) -> list[list[int]]:
    """Rows whose ratios differ by about so much."""
    rng = np.random.default_rng(bits)
    return [[int(2**bits * (1.0 + share * u)) for u in row] for row in rng.uniform(0.0, 1.0, (count, count)).tolist()]


@pytest.mark.parametrize("alpha", [1.0001, 1.5, 40.0, 1e3, 1e5, 1e6])
@pytest.mark.parametrize(
    "weights",
    [
        [[2**160 * 1001 // 1000, 2**160], [2**160, 2**160 * 1001 // 1000]],  # once too small from alpha = 1e4 on
        near(3, 160, 1e-3),
        near(3, 159, 1e-5),
        near(2, 900, 0.5),
        near(3, 61, 20.0),
        [[2**160 + 2**60, 2**160], [2**160, 2**160 + 2**60]],  # logarithms that are equal in floats
        [[2**400, 3], [2**400 - 2**100, 1]],  # a large ratio, of small probabilities
        [[2**1200, 2**200], [2**1200, 1]],  # probabilities that floats do not hold
    ],
)
def test_renyi_is_never_below_the_truth(weights: list[list[int]], alpha: float) -> None:
    p, a = shares(weights), mpf(alpha)
    with mp.workdps(500):
        sums = [
            mp.fsum(mpf(x) ** a * mpf(y) ** (1 - a) for x, y in floats(p, i, j)) for i, j in pairs(len(p), len(p) - 1)
        ]
        exact = mp.log(max(sums)) / (a - 1)
        found = Table(ib.Integers(0, len(p) - 1), weights, sensitivity=len(p) - 1).rdp(alpha)
        assert found >= exact
        assert found <= exact * (1 + mpf("1e-6")) + mpf("1e-10")


def test_answers_that_one_neighbour_cannot_give() -> None:
    m = Table(ib.Integers(0, 3), STAIRS, sensitivity=3)
    assert math.isinf(m.epsilon())
    assert m.delta(1.0) >= 9 / 14
    assert m.delta(500.0) >= Fraction(9, 14)  # the answer 0, which the last row never gives
    assert math.isinf(m.rdp(2.0))
    # no epsilon says how wide the noise is: the mean error does, or else the distance of two answers
    assert m.scale == 1.0
    assert Table(ib.Integers(0, 3), [[0, 0, 1, 1], [1] * 4, [1] * 4, [1, 1, 0, 0]], sensitivity=1).scale == 1.75
    assert m.epsilon(0.7) == pytest.approx(math.log(3.2), rel=1e-6)
    assert math.isinf(m.epsilon(0.6))
    near = Table(ib.Integers(0, 3), STAIRS, sensitivity=1)
    assert math.isinf(near.epsilon())
    # 0 and 0 are no loss
    half = Table(ib.Integers(0, 2), [[2, 1, 0], [1, 2, 0], [1, 1, 0]], sensitivity=1)
    assert half.epsilon() == pytest.approx(math.log(2.0), abs=1e-12)


def test_totals_without_a_common_multiple_of_some_size_are_refused() -> None:
    """Brought to one total, a thousand rows of random weights would take ten gigabytes."""
    weights = np.random.default_rng(1).integers(1, 2**50, (1024, 1024))
    with pytest.raises(
        ib.ParameterError, match=r"weights must be rows that can be brought to one total of at most 4096"
    ):
        Table(ib.Integers(0, 1023), weights, sensitivity=1)
    weights[:, 0] += 2**61 - weights.sum(axis=1)
    assert Table(ib.Integers(0, 1023), weights, sensitivity=1).weights[5] == tuple(weights[5].tolist())


def test_rows_that_are_alike_and_rows_that_are_nearly() -> None:
    same = Table(ib.Integers(0, 1), [[1, 2], [3, 6]], sensitivity=1)
    assert same.epsilon() == same.delta(0.0) == same.rdp(3.0) == same.steepest() == 0.0
    near = Table(ib.Integers(0, 1), [[2**200, 2**200], [2**200 + 1, 2**200 - 1]], sensitivity=1)
    assert 0.0 < near.epsilon() < 1e-12
    assert near.delta(0.0) == pytest.approx(2.0**-201, rel=1e-12)


def test_currencies_of_randomised_response() -> None:
    m = Table(ib.Integers(0, 1), RESPONSE, sensitivity=1)
    assert m.epsilon() == pytest.approx(math.log(3.0), rel=1e-12)
    assert m.delta(0.5) == pytest.approx(0.75 - math.exp(0.5) / 4.0, rel=1e-12)
    assert m.rdp(2.0) == pytest.approx(math.log(9 / 4 + 1 / 12), rel=1e-9)
    assert m.zcdp() <= math.log(3.0) ** 2 / 2.0
    assert m.gdp() >= 1.3489  # 2 Phi^-1(3/4)
    assert m.epsilon(0.1) == pytest.approx(math.log((0.75 - 0.1) / 0.25), rel=1e-6)
    assert m.steepest() == pytest.approx(math.log(3.0), rel=1e-12)
    assert math.isinf(Table(ib.Interval(0, 1), RESPONSE, sensitivity=1).steepest())


# ---------------------------------------------------------------- cells


@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e6),
    st.one_of(st.floats(1e-4, 1.0), st.sampled_from([k / 60 for k in range(1, 61)])),
    st.integers(2, 120),
    st.integers(0, 2**31),
)
@settings(max_examples=150)
def test_true_values_within_the_sensitivity_are_in_neighbouring_cells(
    lower: float, width: float, share: float, count: int, seed: int
) -> None:
    domain = ib.Interval(lower, lower + width)
    change = min(share * float(domain.width), float(domain.width))
    cells = Cells.of("test", domain, change, count)
    assert cells.count == count
    assert domain.contains_all(cells.points)
    assert np.all(np.diff(cells.starts) > 0.0)
    assert np.all(cells.points / cells.grid == np.floor(cells.points / cells.grid))
    rng = np.random.default_rng(seed)
    q = np.concatenate(
        [rng.uniform(domain.lower, domain.upper, 200), cells.starts, np.nextafter(cells.starts, -np.inf)]
    )
    q = np.clip(q, domain.lower, domain.upper)
    for other in (q + change, q - change, q + change * rng.uniform(0, 1, q.size)):
        other = np.clip(other, domain.lower, domain.upper)  # off by a rounding, too
        a, b = np.minimum(cells.row(q), cells.row(other)), np.maximum(cells.row(q), cells.row(other))
        assert np.all(cells.first[b] <= a)
    reach = int(np.max(np.arange(count) - cells.first))
    least = math.ceil(
        Fraction(change) * count / (Fraction(domain.upper) - Fraction(domain.lower)) * (1 - Fraction(1, 10**5))
    )
    assert reach <= max(1, min(count - 1, least))
    assert [cells.row_of(float(x)) for x in q[:50]] == cells.row(q[:50]).tolist()
    assert np.array_equal(cells.row(cells.points), np.arange(count))


@pytest.mark.parametrize(
    ("domain", "change", "count", "reach"),
    [
        (ib.Interval(0, 1), 0.1, 10, 1),  # a tenth as a float is more than a tenth
        (ib.Interval(0, 1), 0.3, 10, 3),
        (ib.Interval(0.1, 0.3), 0.02, 10, 1),
        (ib.Interval(0, 1), 0.11, 10, 2),
        (ib.Interval(0, 1), 1.0, 10, 9),
        (ib.Interval(1e9, 1e9 + 1), 0.1, 10, 1),
        (ib.Integers(0, 9), 3, 10, 3),
        (ib.Integers(0, 99), 10, 10, 1),
        (ib.Integers(0, 99), 11, 10, 2),
    ],
)
def test_the_sensitivity_in_cells(domain: Any, change: float, count: int, reach: int) -> None:
    cells = Cells.of("test", domain, change, count)
    assert cells.first.tolist() == [max(0, k - reach) for k in range(count)]


def test_blocks_of_whole_numbers() -> None:
    cells = Cells.of("test", ib.Integers(3, 13), 4, 4)  # 11 numbers in blocks of 3
    assert cells.starts.tolist() == [3, 6, 9, 12]
    assert cells.points.tolist() == [4, 7, 10, 12]
    assert cells.row(np.arange(3.0, 14.0)).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3]
    assert cells.first.tolist() == [0, 0, 0, 1]
    assert cells.ends(ib.Integers(3, 13))[1].tolist() == [5, 8, 11, 13]


def test_spans_are_cut_one_by_one() -> None:
    domain = ib.Spans([(0, 1), (1.5, 4), (10, 10.25)])
    cells = Cells.of("test", domain, 0.5, 20)
    assert domain.contains_all(cells.points)
    assert cells.first[5] == 4, "1 and 1.5 are within reach of each other"
    assert cells.first[6] == 5
    assert cells.first[-1] == cells.count - 1
    low, high = cells.ends(domain)
    assert high[4] == 1.0
    assert low[5] == 1.5
    assert high[-1] == 10.25
    rng = np.random.default_rng(5)
    q = rng.uniform(0, 10.25, 4000)
    q = q[domain.contains(q)]
    for other in (q + 0.5, q - 0.5, q + rng.uniform(-0.5, 0.5, q.size)):
        inside = domain.contains(other)
        a, b = cells.row(q[inside]), cells.row(other[inside])
        assert np.all(cells.first[np.maximum(a, b)] <= np.minimum(a, b))


def test_cells_that_floats_cannot_tell_apart() -> None:
    with pytest.raises(ib.ParameterError, match="Table: cells must be so few that floats tell them apart; got 100"):
        Cells.of("Table", ib.Interval(1e15, 1e15 + 16), 1.0, 100)


# ---------------------------------------------------------------- the law


@pytest.mark.parametrize("domain", [ib.Integers(5, 8), ib.Interval(-1, 3), ib.Spans([(0, 1), (3, 4)])])
def test_the_law(domain: Any) -> None:
    m = Table(domain, STAIRS, sensitivity=1)
    points, p = m.points, shares(STAIRS)
    q = np.array(points)
    law: Any = m.at(q)
    for k, x in enumerate(points):
        assert law.pmf(x).tolist() == [float(row[k]) for row in p]
        assert law.cdf(x).tolist() == [float(sum(row[: k + 1])) for row in p]
        assert law.sf(x).tolist() == [float(sum(row[k + 1 :])) for row in p]
        assert law.cdf(np.nextafter(x, -np.inf)).tolist() == [float(sum(row[:k])) for row in p]
    assert law.pmf(points[0] - 0.25).tolist() == [0.0] * 4
    assert np.isnan(law.pmf(np.nan)).all()
    assert np.isneginf(law.logpmf(points[3]))[0]
    one: Any = m.at(float(points[1]))
    assert one.ppf([0.0, 4 / 18, 0.23, 1.0]).tolist() == points[[0, 0, 1, 3]].tolist()
    assert np.isnan(one.ppf(1.5))
    assert m.at(float(points[3])).ppf(0.0) == points[1], "the first answer that is possible"
    exact = [float(x) for x in points]
    mean = sum(share * Fraction(x) for share, x in zip(p[1], exact, strict=True))
    var = sum(share * (Fraction(x) - mean) ** 2 for share, x in zip(p[1], exact, strict=True))
    assert one.mean() == pytest.approx(float(mean), rel=1e-14)
    assert one.var() == pytest.approx(float(var), rel=1e-14)
    assert one.std() == pytest.approx(math.sqrt(var), rel=1e-14)
    away = float(points[1]) + (0.0 if domain.lattice else 0.125)
    report = m.at(away).error()
    assert report.bias == pytest.approx(float(mean) - away, abs=1e-14)
    assert report.rmse == pytest.approx(math.sqrt(var + (mean - Fraction(away)) ** 2), rel=1e-13)
    assert report.mae == pytest.approx(sum(float(s) * abs(x - away) for s, x in zip(p[1], exact, strict=True)))
    assert report.at_lower == (float(p[1][0]) if domain.lattice else 0.0)
    atoms = one.atoms
    assert [point for point, _ in atoms] == ([] if domain.lattice else exact)
    assert [mass for _, mass in atoms] == ([] if domain.lattice else [float(x) for x in p[1]])
    for name in ("pdf", "logpdf"):
        with pytest.raises(ib.ParameterError, match=f"TableLaw: {name} must be used where there is a density"):
            getattr(one, name)(0.0)
    assert "4 points" in repr(one)


# ---------------------------------------------------------------- draws


def test_forced_bits() -> None:
    m = Table(ib.Interval(0, 4), STAIRS, sensitivity=1)
    word = 2**64
    for row, weights in enumerate(STAIRS):
        true, total = float(m.points[row]) + 0.3, sum(weights)
        for k in range(4):
            below = sum(weights[:k])
            if not weights[k]:
                continue
            for n in (-(-below * word // total), (below + weights[k]) * word // total - 1):
                assert m._sampler.one(true, Scripted([n])) == m.points[k]
                assert m._sampler.draw(np.array([true]), Scripted([n])).tolist() == [m.points[k]]


def test_releases() -> None:
    whole = Table(ib.Integers(0, 3), STAIRS, sensitivity=1)
    drawn = whole.release(np.tile([0, 3], 40_000).reshape(2, -1)).value
    assert drawn.dtype == np.int64
    assert drawn.shape == (2, 40_000)
    assert 3 not in drawn[:, ::2]
    assert 0 not in drawn[:, 1::2]
    assert type(whole.release(2).value) is int
    reals = Table(ib.Interval(0, 4), STAIRS, sensitivity=1)
    assert reals.release(0.7).value in reals.points
    assert reals.release([-5.0, 9.0], clip=True).value[0] in reals.points[:3]
    with pytest.raises(ib.OutsideDomain):
        reals.release(4.5)
    assert np.array_equal(reals.simulate(1.0, size=5, seed=3), reals.simulate(1.0, size=5, seed=3))
    assert reals.grid == reals._sampler.grid
    # what is drawn with the same bits does not depend on how many are drawn at once
    q = np.linspace(0.0, 4.0, 70_000)
    assert np.array_equal(
        reals._sampler.draw(q, Seeded(1)),
        np.concatenate(
            [reals._sampler.draw(q[i : i + 16_384], bits) for bits in [Seeded(1)] for i in range(0, 70_000, 16_384)]
        ),
    )


@pytest.mark.parametrize("row", range(4))
def test_frequencies(row: int) -> None:
    """Each count is within the bounds that a binomial law leaves with probability below 1e-8; a wrong law's is not."""
    m = Table(ib.Integers(0, 3), STAIRS, sensitivity=1)
    n = 200_000
    counts = np.bincount(m._sampler.draw(np.full(n, float(row)), Seeded(row)).astype(int), minlength=4)
    p = np.array([float(x) for x in shares(STAIRS)[row]])
    bound = np.sqrt(n * p * (1 - p) * 2 * math.log(1e9)) + 20
    assert np.all(np.abs(counts - n * p) <= bound)
    wrong = np.array([float(x) for x in shares([[9, 5, 1, 1]])[0]])
    assert np.any(np.abs(counts - n * wrong) > bound)


# ---------------------------------------------------------------- inference


@pytest.mark.parametrize("weights", [STAIRS, [[5, 1, 1], [1, 1, 5], [1, 5, 1]], [[9, 1], [1, 9]]])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("whole", [True, False])
def test_intervals_cover(weights: list[list[int]], level: float, whole: bool) -> None:
    n = len(weights)
    m = Table(ib.Integers(0, n - 1) if whole else ib.Interval(0, n), weights, sensitivity=1)
    used = m.points[np.any(np.array(weights) > 0, axis=0)]
    lower, upper = m.interval(used, level)
    for row, p in enumerate(shares(weights)):
        ends = [float(x[row]) for x in m._cells.ends(m.domain)]  # type: ignore[arg-type]
        q = ends[0] / 2 + ends[1] / 2
        inside = sum(p[int(m._cells.row_of(x))] for x, a, b in zip(used, lower, upper, strict=True) if a <= q <= b)
        assert inside >= Fraction(level) - Fraction(1, 10**8)
    one = m.interval(float(used[0]), level)
    assert one == (lower[0], upper[0])
    assert type(one[0]) is (int if whole else float)


def test_estimates() -> None:
    ordered = Table(ib.Integers(0, 3), STAIRS, sensitivity=1)
    crossed = Table(ib.Integers(0, 2), [[5, 1, 1], [1, 1, 5], [1, 5, 1]], sensitivity=1)
    assert ordered.estimate([0, 1, 2, 3]).tolist() == [0, 1, 2, 3]
    assert crossed.estimate([0, 1, 2]).tolist() == [0, 2, 1]
    assert ordered.estimate(2, "median-unbiased") == 2
    assert ordered.estimate(1, "posterior-mean") == pytest.approx(float(ordered.posterior(1).mean()))
    with pytest.raises(ib.ParameterError, match="value must be an answer that this mechanism can give"):
        Table(ib.Integers(0, 2), [[1, 0, 1]] * 3, sensitivity=1).interval(1)
    with pytest.raises(ib.ParameterError, match="level must be"):
        ordered.interval(1, 1.0)


def test_the_posterior_is_bayes_rule() -> None:
    p = np.array([[float(x) for x in row] for row in shares(STAIRS)])
    whole = Table(ib.Integers(0, 3), STAIRS, sensitivity=1)
    for x in range(4):
        assert whole.posterior(x).mean() == pytest.approx(np.arange(4) @ p[:, x] / p[:, x].sum(), rel=1e-10)
    reals = Table(ib.Interval(0, 4), STAIRS, sensitivity=1)
    low, high = reals._cells.ends(ib.Interval(0, 4))
    size, middle = high - low, (low + high) / 2
    for k, x in enumerate(reals.points):
        weight = p[:, k] * size
        assert reals.posterior(float(x)).mean() == pytest.approx(weight @ middle / weight.sum(), rel=1e-9)
        rising = weight * middle  # density q: its mass in a cell, and its mean there
        mean = p[:, k] @ ((high**3 - low**3) / 3) / rising.sum()
        assert reals.posterior(float(x), lambda q: q).mean() == pytest.approx(mean, rel=1e-9)


# ---------------------------------------------------------------- audit, values, bad input


@pytest.mark.parametrize("domain", [ib.Interval(0, 4800), ib.Integers(0, 4799)], ids=["interval", "integers"])
def test_posteriors_and_estimates_of_many_cells(domain: Any) -> None:
    """More panels than all answers have in common, for true values of which none is too far away to matter."""
    ring = [int(1e6 * math.exp(-min(k, 600 - k) / 20.0)) + 1 for k in range(600)]
    weights = [ring[600 - i :] + ring[: 600 - i] for i in range(600)]
    m = Table(domain, weights, sensitivity=240, cells=600)
    q = np.arange(4800.0) + (0.0 if domain.lattice else 0.5)
    near = 1e-9 if domain.lattice else 1e-5  # cells of eight, or a hair longer
    x = m.points[[0, 17, 300, 599]]
    share = m.at(q[:, None]).pmf(x)
    share /= share.sum(axis=0)
    found = m.posterior(x)
    assert found.mean() == pytest.approx(q @ share, rel=near)
    below = np.cumsum(share, axis=0)[2399]
    assert found.cdf(2399.0 if domain.lattice else 2400.0) == pytest.approx(below, rel=near)
    assert np.array_equal(m._cells.row(found.mode()), [0, 17, 300, 599])
    better = m.denoised()
    assert better._estimates(x) == pytest.approx(q @ share, rel=near)
    assert better.at(2400).error().rmse < 1.05 * m.at(2400).error().rmse


def test_the_auditor_counts_in_integers() -> None:
    m = Table(ib.Integers(0, 3), [[8, 4, 2, 1], [4, 8, 4, 2], [2, 4, 8, 4], [1, 2, 4, 8]], sensitivity=1)
    real = float(m.epsilon())
    assert real == pytest.approx(math.log(8 / 15 / (4 / 18)), rel=1e-12)
    assert ib.audit(m, epsilon=math.nextafter(real, 9.0)).verdict == "proven"
    found = ib.audit(m, epsilon=real - 1e-9)
    assert found.verdict == "refuted"
    assert found.witness is not None
    assert found.witness.excess == pytest.approx(1e-9, rel=1e-4)
    assert found.witness.likelihoods == pytest.approx((8 / 15, 4 / 18))
    q, other = found.witness.pair
    assert abs(q - other) == 1
    delta = float(m.delta(0.5))
    assert ib.audit(m, epsilon=0.5, delta=delta).verdict == "proven"
    broken = ib.audit(m, epsilon=0.5, delta=delta * (1 - 1e-9))
    assert broken.verdict == "refuted"
    assert broken.witness is not None
    assert broken.witness.event is not None
    assert broken.real_epsilon[0] == pytest.approx(0.5, rel=1e-6)
    assert ib.audit(Table(ib.Integers(0, 1), [[1, 1]] * 2, sensitivity=1), epsilon=0.0).verdict == "proven"
    impossible = ib.audit(Table(ib.Integers(0, 3), STAIRS, sensitivity=3), epsilon=3.0)
    assert impossible.verdict == "refuted"
    assert math.isinf(impossible.real_epsilon[1])


def test_the_auditor_names_true_values_within_the_sensitivity() -> None:
    m = Table(ib.Interval(0, 4), STAIRS[::-1], sensitivity=1.5)
    found = ib.audit(m, epsilon=0.1, delta=1e-3)
    assert found.witness is not None
    q, other = found.witness.pair
    assert abs(q - other) <= 1.5
    first, second = (m.at(x) for x in (q, other))
    event = found.witness.event
    assert event is not None
    p, r = (sum(float(law.cdf(b) - law.cdf(a)) for a, b in event) for law in (first, second))
    assert p - math.exp(0.1) * r == pytest.approx(found.witness.excess + 1e-3, rel=1e-9)
    assert found.plot() is not None


def test_frozen_equal_and_picklable() -> None:
    m = Table(ib.Interval(0, 4), np.array(STAIRS), sensitivity=1)
    assert m == Table(ib.Interval(0, 4), STAIRS, sensitivity=1)
    assert hash(m) == hash(Table(ib.Interval(0, 4), STAIRS, sensitivity=1))
    assert m != Table(ib.Interval(0, 4), STAIRS, sensitivity=2)
    again = pickle.loads(pickle.dumps(m))
    assert again == m
    assert again.delta(0.5) == m.delta(0.5)
    with pytest.raises(AttributeError):
        m.cells = 3  # type: ignore[misc]
    assert repr(m) == "<Table: 4 cells of Interval(0.0, 4.0), sensitivity=1.0>"
    m.points[0] = 7.0
    assert m.points[0] < 1.0, "a copy"


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((ib.Integers(0, 1), [[0.5, 0.5], [0.5, 0.5]], 1), ib.ParameterTypeError, "Floats are not exact"),
        ((ib.Integers(0, 1), [[True, 1], [1, 1]], 1), ib.ParameterTypeError, "weights must be rows of integers"),
        ((ib.Integers(0, 1), 7, 1), ib.ParameterTypeError, "weights must be rows of integers"),
        ((ib.Integers(0, 1), [[1, 1]], 1), ib.ParameterError, "got '1 rows of lengths"),
        ((ib.Integers(0, 1), [[1, 1], [1]], 1), ib.ParameterError, "lengths [1, 2]"),
        ((ib.Integers(0, 1), [[1, -1], [1, 1]], 1), ib.ParameterError, "weights must be not negative; got -1"),
        ((ib.Integers(0, 1), [[0, 0], [1, 1]], 1), ib.ParameterError, "a row of zeros"),
        ((ib.Integers(0, 4), [[1] * 4] * 4, 1), ib.ParameterError, "one row for each of the 3 cells"),
        ((ib.Interval(0, math.inf), RESPONSE, 1), ib.ParameterError, "domain must be bounded"),
        ((ib.Box([0], [1]), RESPONSE, [1]), ib.ParameterError, "domain must be an Interval, Spans or Integers"),
        (("0..1", RESPONSE, 1), ib.ParameterTypeError, "domain must be"),
        ((ib.Integers(0, 1), RESPONSE, 0.5), ib.ParameterError, "sensitivity must be a whole number"),
        ((ib.Integers(0, 1), RESPONSE, math.nan), ib.ParameterError, "sensitivity must be"),
    ],
)
def test_bad_input(arguments: Any, kind: type[Exception], message: str) -> None:
    domain, weights, sensitivity = arguments
    with pytest.raises(kind, match=re.escape(message)):
        Table(domain, weights, sensitivity=sensitivity)

"""What is released follows the law it should: chi-square against cell probabilities at 50 digits.

The probabilities are worked out here from the definition of each mechanism (noise, edges, rounding to the grid); the
package's own distributions have no part in it. A correct sampler fails a test with probability at most ALPHA; the same
test is run on real draws of a scale that is wrong by 3 % in either direction, and must reject them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

import inbounds as ib
from tests.common import MECHANISMS

INF = math.inf
ALPHA = 1e-7
COUNT = 500_000
CELLS = 20


# --- the law, from its definition -------------------------------------------------------------


def power_below(x: Fraction) -> Fraction:
    """The largest power of two that is at most x."""
    p = Fraction(2) ** (x.numerator.bit_length() - x.denominator.bit_length())
    return p if p <= x else p / 2


def default_grid(domain: Any, scale: float) -> float:
    if domain.lattice:
        return 1.0
    widths = [Fraction(b) - Fraction(a) for a, b in domain.pieces if math.isfinite(a) and math.isfinite(b)]
    largest = max((abs(Fraction(x)) for piece in domain.pieces for x in piece if math.isfinite(x)), default=Fraction(0))
    g = power_below(min([Fraction(scale), *widths])) / 2**24
    roof = power_below(min(widths)) if widths else None
    while largest / g > 2**53 and (roof is None or g < roof):
        g *= 2
    return float(g)


@dataclass(frozen=True)
class Exact:
    """Released positions k (the value is k g) of one mechanism at one true value."""

    family: str
    domain: Any
    scale: float
    q: float
    edges: str
    g: float

    @cached_property
    def ends(self) -> list[tuple[float, float]]:
        """The first and the last position in each piece of the domain."""
        g = Fraction(self.g)
        return [
            (
                math.ceil(Fraction(a) / g) if math.isfinite(a) else a,
                math.floor(Fraction(b) / g) if math.isfinite(b) else b,
            )
            for a, b in self.domain.pieces
        ]

    def line(self, x: Any) -> Any:
        """P(q + noise <= x), continuous noise on the line."""
        if math.isinf(x):
            return mpf(x > 0)
        t = (mpf(x) - mpf(self.q)) / mpf(self.scale)
        if self.family == "gaussian":
            return mp.ncdf(t)
        return mp.exp(t) / 2 if t < 0 else 1 - mp.exp(-t) / 2

    @cached_property
    def lattice_sums(self) -> tuple[int, list[Any]]:
        """The first whole number within 13 scales of q, and sums of the Gaussian weights from it; 1e-36 is left out."""
        reach = math.ceil(13 * self.scale)
        start, q = int(self.q) - reach, int(self.q)
        # f(k + 1) / f(k) = exp(-(2 (k - q) + 1) / 2 s^2) changes by the factor exp(-1 / s^2)
        s2 = mpf(self.scale) ** 2
        weight, ratio = mp.exp(-(mpf(start - q) ** 2) / (2 * s2)), mp.exp(-(2 * mpf(start - q) + 1) / (2 * s2))
        change, total, sums = mp.exp(-1 / s2), mpf(0), []
        for _ in range(2 * reach + 1):
            total += weight
            sums.append(total)
            weight, ratio = weight * ratio, ratio * change
        return start, sums

    def lattice(self, k: float) -> Any:
        """The sum of the pmf on all whole numbers up to k (Gaussian: not normalised)."""
        if self.family == "gaussian":
            start, sums = self.lattice_sums
            return mpf(0) if k < start else sums[int(min(k - start, len(sums) - 1))]
        if math.isinf(k):
            return mpf(k > 0)
        p = mp.exp(-1 / mpf(self.scale))
        d = int(k) - int(self.q)
        return p**-d / (1 + p) if d < 0 else 1 - p ** (d + 1) / (1 + p)

    def plain(self, k: float) -> Any:
        """P(position <= k) of the noise without edges."""
        if self.domain.lattice:
            return self.lattice(k) / self.lattice(INF)
        return self.line(k if math.isinf(k) else (mpf(k) + mpf(1) / 2) * mpf(self.g))

    def below(self, k: int) -> Any:
        """P(released position <= k), for a position k of the domain."""
        if self.edges == "ignore":
            return self.plain(k)
        piece = next(i for i, (first, last) in enumerate(self.ends) if first <= k <= last)
        last = self.ends[piece][1]
        if self.edges == "clamp":
            if k < last:
                return self.plain(k)
            # Positions in the hole go to the nearer side, ties to the lower.
            return mpf(1) if piece == len(self.ends) - 1 else self.plain((last + self.ends[piece + 1][0]) // 2)
        if self.domain.lattice:
            start = self.lattice(self.ends[0][0] - 1)
            return (self.lattice(k) - start) / (self.lattice(last) - start)
        masses = [self.line(b) - self.line(a) for a, b in self.domain.pieces]
        low, high = self.domain.pieces[piece]
        top = high if k == last else (mpf(k) + mpf(1) / 2) * mpf(self.g)
        return (mp.fsum(masses[:piece]) + self.line(top) - self.line(low)) / mp.fsum(masses)

    def under(self, k: int) -> Any:
        """P(released position < k), for a position k of the domain."""
        if self.edges != "ignore":
            piece = next(i for i, (first, last) in enumerate(self.ends) if first <= k <= last)
            if k == self.ends[piece][0]:
                return self.below(int(self.ends[piece - 1][1])) if piece else mpf(0)
        return self.below(k - 1)

    def cells(self) -> tuple[list[int], Any]:
        """Positions that end cells of about 1 / CELLS or more each (walls and atoms may be smaller), and the shares."""
        places = [self.q + self.scale * t for t in np.linspace(-8.0, 8.0, 321)]
        marks: set[int] = set()
        forced: set[int] = set()
        if self.edges == "ignore":
            marks = {round(Fraction(x) / Fraction(self.g)) for x in places}
        else:
            for first, last in self.ends:
                spread = np.linspace(first, last, 41) * self.g if math.isfinite(last - first) else []
                inner = [round(Fraction(float(x)) / Fraction(self.g)) for x in (*places, *spread)]
                marks |= {k for k in inner if first <= k <= last}
                forced |= {int(k) for k in (first, last - 1, last) if math.isfinite(k) and k >= first}
        chosen, done = [], mpf(0)
        for k in sorted(marks | forced):
            upto = self.below(k)
            least = mpf(1) / (500 if k in forced else CELLS)
            if upto - done >= least and 1 - upto >= mpf(1) / 500:
                chosen.append(k)
                done = upto
        cdf = [mpf(0), *map(self.below, chosen), mpf(1)]
        return chosen, np.array([float(b - a) for a, b in pairwise(cdf)])


def p_value(draws: Any, ends: list[int], shares: Any, g: float) -> float:
    """Chi-square of the counts in the cells (..., end_0], (end_0, end_1], ..."""
    assert shares.min() * draws.size > 50
    assert len(shares) >= 3
    uppers = np.array([float(Fraction(g) * k) for k in ends])
    counts = np.bincount(np.searchsorted(uppers, draws, side="left"), minlength=len(shares))
    expected = shares * draws.size
    return float(stats.chi2.sf(np.sum((counts - expected) ** 2 / expected), len(shares) - 1))


# --- settings ---------------------------------------------------------------------------------

# domain, scale, true value, edges, how many draws (few scales a width tell little of the scale)
HOLES = ib.Spans([(0.0, 2.0), (2.5, 4.0), (6.0, 10.3)])
SETTINGS: dict[str, tuple[Any, float, float, str, int]] = {
    "wide": (ib.Interval(0, 10), 1.1, 2.5, "truncate", COUNT),
    "narrow": (ib.Interval(0.1, 1.1), 0.7, 0.3, "truncate", 4 * COUNT),
    "wall": (ib.Interval(-3, 17.3), 2.1, -3.0, "truncate", COUNT),
    "far from 0": (ib.Interval(1e9 + 0.1, 1e9 + 0.7), 0.09, 1e9 + 0.2, "truncate", COUNT),
    "half-line": (ib.Interval(0.3, INF), 1.5, 1.0, "truncate", COUNT),
    "lower half-line": (ib.Interval(-INF, 0.3), 1.5, 0.3, "truncate", COUNT),
    "line": (ib.Interval(-INF, INF), 3.1, -2.7, "truncate", COUNT),
    "spans": (HOLES, 1.2, 1.7, "truncate", COUNT),
    "open spans": (ib.Spans([(-INF, 0.1), (0.7, 1.1), (3.0, INF)]), 1.2, 0.9, "truncate", COUNT),
    "steep spans": (ib.Spans([(0, 1), (2, 3)]), 0.0011, 2.0, "truncate", COUNT),
    "few integers": (ib.Integers(0, 9), 1.3, 2, "truncate", COUNT),
    "integers": (ib.Integers(-5, 400), 20.2, 11, "truncate", COUNT),
    "many integers": (ib.Integers(-100_000, 300_000), 5000.5, -97_000, "truncate", COUNT),
    "integers from 0": (ib.Integers(0, INF), 2.6, 1, "truncate", COUNT),
    "all integers": (ib.Integers(-INF, INF), 6.3, -4, "truncate", COUNT),
    "clamped": (ib.Interval(0, 10.1), 2.2, 9.0, "clamp", COUNT),
    "clamped spans": (HOLES, 1.2, 2.6, "clamp", COUNT),
    "clamped half-line": (ib.Interval(0.3, INF), 1.5, 0.3, "clamp", COUNT),
    "clamped integers": (ib.Integers(0, 9), 1.7, 8, "clamp", COUNT),
    "ignored": (ib.Interval(0, 1), 1.1, 0.25, "ignore", COUNT),
    "ignored integers": (ib.Integers(0, 3), 2.2, 3, "ignore", COUNT),
}


def make(family: str, domain: Any, scale: float, edges: str = "truncate", **more: Any) -> Any:
    narrow = min((b - a for a, b in getattr(domain, "pieces", [(0, 2)])), default=1.0)
    return MECHANISMS[family](domain, scale=scale, sensitivity=1 if narrow >= 1 else narrow / 2, edges=edges, **more)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("name", SETTINGS)
def test_releases_follow_the_law(family: str, name: str) -> None:
    domain, scale, q, edges, count = SETTINGS[name]
    exact = Exact(family, domain, scale, q, edges, default_grid(domain, scale))
    cells = exact.cells()
    true = np.full(count, q)
    assert p_value(make(family, domain, scale, edges).release(true).value, *cells, exact.g) > ALPHA
    for factor in (0.97, 1.03):
        wrong = make(family, domain, scale * factor, edges).release(true).value
        assert p_value(wrong, *cells, exact.g) < ALPHA


def test_the_cells_are_what_they_should_be() -> None:
    # The references themselves, where the answer is known.
    line = Exact("gaussian", ib.Interval(-INF, INF), 1.0, 0.0, "truncate", 2.0**-24)
    assert abs(line.below(2**24) - mp.ncdf(1 + mpf(2) ** -25)) < mpf(10) ** -45
    whole = Exact("laplace", ib.Integers(-INF, INF), 1.0, 0, "truncate", 1.0)
    p = mp.exp(-1)
    assert abs(whole.below(0) - whole.below(-1) - (1 - p) / (1 + p)) < mpf(10) ** -45
    few = Exact("gaussian", ib.Integers(0, 2), 1.0, 0, "truncate", 1.0)
    assert abs(few.below(0) - 1 / (1 + mp.exp(mpf(-1) / 2) + mp.exp(-2))) < mpf(10) ** -45
    three = Exact("laplace", ib.Interval(0, 1), 1.0, 0.0, "truncate", 0.5)
    assert abs(three.below(0) - (1 - mp.exp(mpf(-1) / 4)) / (1 - mp.exp(-1))) < mpf(10) ** -45
    assert three.below(2) == 1
    atoms = Exact("laplace", ib.Interval(0, 1), 1.0, 0.0, "clamp", 0.5)
    assert abs(atoms.below(0) - (1 - mp.exp(mpf(-1) / 4) / 2)) < mpf(10) ** -45
    hole = Exact("gaussian", ib.Spans([(0, 1), (4, 5)]), 1.0, 0.0, "clamp", 0.5)
    assert abs(hole.below(2) - mp.ncdf(mpf("2.75"))) < mpf(10) ** -45  # 2.5 is a tie and goes down


@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("edges", ["truncate", "clamp", "ignore"])
def test_boxes_follow_the_law(family: str, edges: str) -> None:
    box, q, count = ib.Box([0, 1, -INF], [10, 9.3, 4]), [3.0, 8.9, 3.5], COUNT
    true = np.broadcast_to(q, (count, 3))

    def draw(scale: float) -> Any:
        return MECHANISMS[family](box, scale=scale, sensitivity=ib.L2(2.0), edges=edges).release(true).value

    right, low, high = draw(1.7), draw(1.7 * 0.97), draw(1.7 * 1.03)
    for i in range(3):
        domain = box.coordinate(i)
        exact = Exact(family, domain, 1.7, q[i], edges, default_grid(domain, 1.7))
        cells = exact.cells()
        assert p_value(right[:, i], *cells, exact.g) > ALPHA
        assert p_value(low[:, i], *cells, exact.g) < ALPHA
        assert p_value(high[:, i], *cells, exact.g) < ALPHA
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert abs(np.corrcoef(right[:, i], right[:, j])[0, 1]) < 5.6 / math.sqrt(count)  # 5.6 standard deviations


@pytest.mark.parametrize("family", MECHANISMS)
def test_integer_boxes_follow_the_law(family: str) -> None:
    box = ib.Box([0, -4], [9, 40], integer=True)
    true = np.broadcast_to([2, 30], (COUNT, 2))

    def draw(scale: float) -> Any:
        return MECHANISMS[family](box, scale=scale, sensitivity=ib.L1(2)).release(true).value

    right, wrong = draw(2.1), draw(2.1 * 1.03)
    for i, q in enumerate((2, 30)):
        exact = Exact(family, box.coordinate(i), 2.1, q, "truncate", 1.0)
        cells = exact.cells()
        assert p_value(right[:, i], *cells, 1.0) > ALPHA
        assert p_value(wrong[:, i], *cells, 1.0) < ALPHA


@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize(
    "domain",
    [ib.Interval(0, 10), HOLES, ib.Interval(-INF, 9.5), ib.Integers(0, 10)],
    ids=["interval", "spans", "half-line", "integers"],
)
def test_every_element_follows_its_own_law(family: str, domain: Any) -> None:
    values, count = [0.0, 1.0, 9.0], 900_000
    which = np.arange(count) % 3
    draws = make(family, domain, 1.3).release(np.array(values)[which]).value
    wrong = make(family, domain, 1.3 * 1.06).release(np.array(values)[which]).value
    for i, q in enumerate(values):
        exact = Exact(family, domain, 1.3, q, "truncate", default_grid(domain, 1.3))
        cells = exact.cells()
        assert p_value(draws[which == i], *cells, exact.g) > ALPHA
        assert p_value(wrong[which == i], *cells, exact.g) < ALPHA


@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("name", ["wide", "wall", "spans", "integers", "clamped", "line"])
def test_single_releases_follow_the_law(family: str, name: str) -> None:
    domain, scale, q, edges, _ = SETTINGS[name]
    count = 30_000
    exact = Exact(family, domain, scale, q, edges, default_grid(domain, scale))
    cells = exact.cells()
    release, wrong = make(family, domain, scale, edges).release, make(family, domain, 1.15 * scale, edges).release
    assert p_value(np.array([release(q).value for _ in range(count)]), *cells, exact.g) > ALPHA
    # 30,000 draws do not tell 3 %: 15 % here.
    assert p_value(np.array([wrong(q).value for _ in range(count)]), *cells, exact.g) < ALPHA


@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("name", ["wide", "spans", "integers", "clamped"])
def test_simulations_follow_the_law(family: str, name: str) -> None:
    domain, scale, q, edges, count = SETTINGS[name]
    exact = Exact(family, domain, scale, q, edges, default_grid(domain, scale))
    cells = exact.cells()
    draws, wrong = (make(family, domain, s, edges).simulate(q, size=count, seed=1) for s in (scale, 1.03 * scale))
    assert p_value(draws, *cells, exact.g) > ALPHA
    assert p_value(wrong, *cells, exact.g) < ALPHA


# --- the far tails, which chance does not reach -----------------------------------------------


class Scripted:
    """A source of given words, then zeros."""

    def __init__(self, words: list[int]) -> None:
        self.words = list(words)

    def fill(self, words: Any) -> None:
        words[:] = [self.word() for _ in range(len(words))]

    def word(self) -> int:
        return self.words.pop(0) if self.words else 0


TAILS = [(name, family) for name in SETTINGS for family in MECHANISMS if family == "laplace" or "integers" not in name]


@pytest.mark.parametrize(("name", "family"), TAILS)
def test_far_tails(name: str, family: str) -> None:
    domain, scale, q, edges, _ = SETTINGS[name]
    exact = Exact(family, domain, scale, q, edges, default_grid(domain, scale))
    sampler = make(family, domain, scale, edges)._sampler
    for zeros in (45, 54, 65, 75, 76, 77, 79, 80, 130):
        near_zero = 3 << (319 - zeros)  # 1.5 / 2^zeros, in units of 2^-320
        for bits in (near_zero, 2**320 - 1 - near_zero):
            words = [bits >> (64 * i) & (2**64 - 1) for i in (4, 3, 2, 1, 0)]
            drawn = float(sampler.draw(np.array([float(q)]), Scripted(words))[0])
            assert sampler.one(float(q), Scripted(words)) == drawn
            k = round(Fraction(drawn) / Fraction(exact.g))
            with mp.workdps(150):
                u = mpf(bits) / mpf(2) ** 320
                assert exact.under(k) <= u < exact.below(k)


# --- the grid ---------------------------------------------------------------------------------


@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("name", SETTINGS)
def test_releases_lie_on_the_grid(family: str, name: str) -> None:
    domain, scale, q, edges, _ = SETTINGS[name]
    mechanism = make(family, domain, scale, edges)
    assert mechanism.grid == default_grid(domain, scale)
    single = np.array([mechanism.release(q).value for _ in range(50)])
    for draws in (mechanism.release(np.full(40_000, q)).value, single, mechanism.simulate(q, size=20_000, seed=3)):
        assert np.array_equal(np.rint(draws / mechanism.grid) * mechanism.grid, draws)
        if edges != "ignore":
            assert np.all(domain.contains(draws))


GRIDS: dict[str, tuple[Any, float, float]] = {  # domain, granularity, true value
    "three points": (ib.Interval(0, 1), 0.5, 0.3),
    "three points inside": (ib.Interval(0.1, 1.6), 0.5, 0.4),
    "two points": (ib.Interval(-0.2, 0.3), 0.25, 0.3),
    "one point": (ib.Interval(-0.2, 0.2), 0.25, 0.1),
    "spans": (ib.Spans([(0.1, 0.6), (0.9, 1.2), (1.6, 2.7)]), 0.5, 1.0),
    "half-line": (ib.Interval(0.1, INF), 0.5, 0.4),
    "line": (ib.Interval(-INF, INF), 0.5, 0.7),
    "fine": (ib.Interval(0, 1), 2.0**-40, 0.3),
    "coarser": (ib.Interval(0, 10), 2.0**-10, 0.3),
}


@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("edges", ["truncate", "clamp", "ignore"])
@pytest.mark.parametrize("name", GRIDS)
def test_granularity_is_respected(family: str, edges: str, name: str) -> None:
    domain, g, q = GRIDS[name]
    mechanism = make(family, domain, 0.6, edges, granularity=g)
    assert mechanism.grid == g
    draws = mechanism.release(np.full(20_000, q)).value
    assert np.array_equal(np.rint(draws / g) * g, draws)
    if edges == "ignore":
        return
    assert np.all(domain.contains(draws))
    if domain.bounded and g >= 0.25:  # all points of the grid come out
        points = [k * g for first, last in Exact(family, domain, 0.6, q, edges, g).ends for k in range(first, last + 1)]
        assert np.unique(draws).tolist() == points


@pytest.mark.thinned(5)
@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("edges", ["truncate", "clamp", "ignore"])
@pytest.mark.parametrize("name", ["three points", "three points inside", "spans", "half-line", "line", "coarser"])
def test_coarse_grids_have_the_exact_pmf(family: str, edges: str, name: str) -> None:
    domain, g, q = GRIDS[name]
    exact = Exact(family, domain, 0.6, q, edges, g)
    ends, shares = exact.cells()
    true = np.full(2 * COUNT, q)
    if name.startswith("three") and edges != "ignore":
        assert len(shares) == 3
    assert p_value(make(family, domain, 0.6, edges, granularity=g).release(true).value, ends, shares, g) > ALPHA
    wrong = make(family, domain, 0.6 * 1.1, edges, granularity=g).release(true).value
    assert p_value(wrong, ends, shares, g) < ALPHA
    # A neighbouring true value is told apart as well: the true value is not rounded to the grid first.
    moved = make(family, domain, 0.6, edges, granularity=g).release(true + 0.03).value
    assert p_value(moved, ends, shares, g) < ALPHA


@pytest.mark.parametrize("family", MECHANISMS)
def test_the_grid_of_a_box(family: str) -> None:
    box = ib.Box([0, 1e9 + 0.1, -INF], [10, 1e9 + 0.7, 4])
    mechanism = MECHANISMS[family](box, scale=1.7, sensitivity=ib.L2(0.5))
    assert mechanism.grid.tolist() == [default_grid(box.coordinate(i), 1.7) for i in range(3)]
    coarse = MECHANISMS[family](box, scale=1.7, sensitivity=ib.L2(0.5), granularity=0.25)
    assert coarse.grid.tolist() == [0.25] * 3
    for made in (mechanism, coarse):
        draws = made.release(np.broadcast_to([3.0, 1e9 + 0.5, 3.5], (20_000, 3))).value
        assert np.array_equal(np.rint(draws / made.grid) * made.grid, draws)
        assert np.all(box.contains(draws))

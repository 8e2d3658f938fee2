"""Intervals and estimates: exact coverage, certificates in ball arithmetic, brute force, and what is refused.

The reference knows the law of a released answer, cell by cell, and nothing of the intervals. The answers whose interval
contains a true value are found by bisection on the intervals themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

import inbounds as ib
from inbounds import inference
from inbounds.mechanism import Mechanism
from tests import sampling_reference as exact
from tests.common import MECHANISMS

pytestmark = pytest.mark.thinned(3)

INF = math.inf
BITS = 200
HOLES = ((0.0, 1.5), (2.0, 2.25), (4.0, 7.0))

#: name -> (domain, scale)
DOMAINS: dict[str, tuple[Any, float]] = {
    "interval": (ib.Interval(0, 12), 1.25),
    "short": (ib.Interval(-0.1, 0.3), 0.7),
    "half-line": (ib.Interval(0.1, INF), 1.25),
    "half-line-down": (ib.Interval(-INF, -3), 0.4),
    "line": (ib.Interval(-INF, INF), 3.0),
    "spans": (ib.Spans(HOLES), 0.8),
    "open-spans": (ib.Spans([(-INF, 0.0), (0.3, 0.5), (3.0, INF)]), 0.8),
    "integers": (ib.Integers(0, 30), 4.0),
    "two": (ib.Integers(0, 1), 0.9),
    "counts": (ib.Integers(0, INF), 6.0),
    "whole": (ib.Integers(-INF, INF), 2.0),
}
EDGES = ("truncate", "clamp", "ignore")


def build(family: str, domain: Any, scale: float, edges: str, **more: Any) -> Any:
    return MECHANISMS[family](domain, scale=scale, sensitivity=min(1.0, domain.width), edges=edges, **more)


def setting(mechanism: Any, scale: float | None = None) -> exact.Setting:
    domain = mechanism.domain
    given_scale = mechanism.scale if scale is None else scale
    return exact.Setting(
        type(mechanism).__name__.lower(), domain.pieces, domain.lattice, given_scale, mechanism.edges, mechanism.grid
    )


def true_values(domain: Any, scale: float, count: int) -> list[float]:
    """Spread over the domain, its ends and those of its holes among them; on few integers, all of them."""
    window = 12.0 * scale
    pieces = [
        (a if a > -INF else min(b, 0.0) - window, b if b < INF else max(a, 0.0) + window) for a, b in domain.pieces
    ]
    widths = np.array([b - a for a, b in pieces])
    if domain.lattice:
        a, b = pieces[0]
        return np.unique(np.round(np.linspace(math.ceil(a), math.floor(b), count))).tolist()
    start = np.concatenate([[0.0], np.cumsum(widths)])
    inner = count - 2 * len(pieces)
    along = np.linspace(0.0, start[-1], inner + 2)[1:-1]
    i = np.searchsorted(start, along, side="right") - 1
    spread = np.array([a for a, _ in pieces])[i] + (along - start[i])
    return [*(end for piece in pieces for end in piece), *spread.tolist()]


def below(case: exact.Setting, q: float, k: int | None, *, including: bool) -> Any:
    """P_q(released index < k), or <= k."""
    points = exact.points(case)
    cut = points.upper(k) if including else points.lower(k)
    if cut is None:
        return arb(1 if including else 0)
    part, whole = exact.law(case, q).below(cut, BITS)
    with exact.precision(BITS):
        return part / whole


def accepted(mechanism: Any, qs: list[float], level: float) -> list[tuple[int, int]]:
    """For each true value the first and the last index whose interval contains it, by bisection on the intervals."""
    points = exact.points(setting(mechanism))
    scale, step = Fraction(mechanism.scale), Fraction(mechanism.grid)

    def ends(ks: list[int]) -> Any:
        return mechanism.interval(np.array([points.value(k) for k in ks]), level)

    start = [points.snap(math.floor((Fraction(q) - 80 * scale) / step)) for q in qs]
    stop = [points.snap(math.ceil((Fraction(q) + 80 * scale) / step)) for q in qs]

    def first(good: Callable[[list[int]], Any]) -> list[int]:
        """The first index from ``start`` to ``stop`` that is good; those above a good one are."""
        low, high = [k - 1 for k in start], list(stop)
        while any(b - a > 1 for a, b in zip(low, high, strict=True)):
            middle = [(a + b) // 2 for a, b in zip(low, high, strict=True)]
            fits = good([points.snap(max(m, s)) for m, s in zip(middle, start, strict=True)])
            low = [a if f else m for a, m, f in zip(low, middle, fits, strict=True)]
            high = [m if f else b for b, m, f in zip(high, middle, fits, strict=True)]
        return [points.snap(k) for k in high]

    values = np.array(qs)
    lo = first(lambda ks: ends(ks)[1] >= values)
    past = first(lambda ks: ends(ks)[0] > values)
    hi = [k if stays else points.before(k) for k, stays in zip(past, (ends(past)[0] <= values).tolist(), strict=True)]
    return list(zip(lo, hi, strict=True))


def coverages(mechanism: Any, qs: list[float], level: float, scale: float | None = None) -> list[Any]:
    """The exact probability that the interval contains the true value; with a scale, when the noise has that one."""
    case = setting(mechanism, scale)
    out = []
    for q, (low, high) in zip(qs, accepted(mechanism, qs, level), strict=True):
        assert low <= high
        with exact.precision(BITS):
            out.append(below(case, q, high, including=True) - below(case, q, low, including=False))
    return out


def decimal(level: float) -> Any:
    x = Fraction(repr(level))
    return arb(fmpq(x.numerator, x.denominator))


# -- coverage


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("name", DOMAINS)
def test_coverage_is_exact(name: str, family: str, edges: str) -> None:
    domain, scale = DOMAINS[name]
    mechanism = build(family, domain, scale, edges)
    qs = true_values(domain, scale, 50)
    found = coverages(mechanism, qs, 0.95)
    assert len(set(qs)) >= min(45, domain.width + 1 if domain.lattice else 50)
    assert all(c >= decimal(0.95) for c in found)
    if edges == "truncate" and not domain.lattice:
        assert sum(float(c) for c in found) / len(found) < 0.97
        inner = sorted(float(c) for c in found)[: len(found) - 2 * len(domain.pieces)]
        assert inner[-1] < 0.951


@pytest.mark.parametrize(
    "level", [pytest.param(1e-3, marks=pytest.mark.long), 0.5, 0.999, pytest.param(1 - 1e-9, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("name", DOMAINS)
def test_coverage_at_other_levels(name: str, family: str, edges: str, level: float) -> None:
    domain, scale = DOMAINS[name]
    found = coverages(build(family, domain, scale, edges), true_values(domain, scale, 8), level)
    assert all(c >= decimal(level) for c in found)
    if not domain.lattice and edges == "truncate":
        assert min(float(c) for c in found) < level + 1e-6


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("family", MECHANISMS)
def test_a_coarse_grid_is_taken_into_account(family: str, edges: str) -> None:
    """Steps as large as the scale, and ends that are not multiples of them."""
    domain = ib.Spans([(-0.3, 2.1), (2.7, 3.2), (4.9, 11.3)])
    mechanism = build(family, domain, 0.6, edges, granularity=0.5)
    found = coverages(mechanism, true_values(domain, 0.6, 50), 0.9)
    assert all(c >= decimal(0.9) for c in found)
    assert sum(float(c) for c in found) / len(found) < 0.99


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("name", ["interval", "half-line", "spans", "integers"])
def test_a_scale_wrong_by_a_tenth_is_noticed(name: str, family: str, edges: str) -> None:
    domain, scale = DOMAINS[name]
    mechanism = build(family, domain, scale, edges)
    found = coverages(mechanism, true_values(domain, scale, 50), 0.95, scale=1.1 * scale)
    assert any(c < decimal(0.95) for c in found)


@pytest.mark.parametrize("name", ["interval", "integers"])
@pytest.mark.parametrize("edges", ["clamp", "ignore"])
@pytest.mark.parametrize("kind", ["staircase", "bounded"])
def test_coverage_of_other_noise(kind: str, edges: str, name: str) -> None:
    domain, _ = DOMAINS[name]
    more: dict[str, Any] = {"sensitivity": 2.0, "epsilon": 1.5, "edges": edges}
    mechanism: Any = (
        ib.Staircase.calibrate(domain, **more)
        if kind == "staircase"
        else ib.BoundedLaplace.calibrate(domain, delta=1e-3, **more)
    )
    qs = np.linspace(domain.lower, domain.upper, 31)
    plain = mechanism._unclamped
    step = mechanism.grid
    if domain.lattice:
        k = np.arange(-60.0, 91.0)
    else:
        k = np.round(np.linspace(-12.0, 24.0, 40_001) / step)  # a thinned grid: runs of answers count as their union
    x = np.unique(np.clip(k * step, domain.lower, domain.upper) if edges == "clamp" else k * step)
    lower, upper = mechanism.interval(x)
    for q in qs:
        inside = np.flatnonzero((lower <= q) & (q <= upper))
        first, last = x[inside[0]], x[inside[-1]]
        law = plain.at(q)
        half = 0.5 if domain.lattice else step / 2.0
        high = 1.0 if edges == "clamp" and last == domain.upper else law.cdf(last + half)
        low = 0.0 if edges == "clamp" and first == domain.lower else law.cdf(first - half)
        # the answers between two of the thinned grid may count or not
        slack = 0.0 if domain.lattice else 2e-3
        assert 0.95 - slack <= high - low <= (1.0 if domain.lattice or edges == "clamp" else 0.976)


# -- both ends, in ball arithmetic

EXTREME: list[tuple[Any, float]] = [
    *((ib.Interval(0, 1), s) for s in (1e-6, 1e-3, 0.1, 1.0, 30.0, 1e3, 1e6)),
    *((ib.Interval(1e9, 1e9 + 1), s) for s in (1e-6, 1e-3, 1.0, 1e6)),
    *((ib.Interval(1e9, INF), s) for s in (1e-6, 1.0, 1e6)),
    *((ib.Interval(-INF, -1e9), s) for s in (1e-3, 1e4)),
    *((ib.Spans([(0, 1e-6), (0.5, 0.5 + 1e-6), (1, 2)]), s) for s in (1e-6, 1e-2, 1.0, 1e4)),
    *((ib.Spans([(1e9, 1e9 + 0.25), (1e9 + 1, 1e9 + 2)]), s) for s in (1e-3, 1.0, 1e4)),
    (ib.Interval(0, 1e12), 1e-3),
    *((ib.Integers(0, 1), s) for s in (1e-3, 0.1, 1.0, 1e6)),
    *((ib.Integers(2**52, 2**52 + 10), s) for s in (0.5, 3.0, 1e5)),
    *((ib.Integers(0, 2**53), s) for s in (0.7, 50.0, 3000.0, 1e9)),
    *((ib.Integers(0, 10**6), s) for s in (1.0, 70.0, 1023.0, 1025.0, 1e6)),
    (ib.Integers(0, INF), 5000.0),
]


def tails(mechanism: Any, q: float, x: float) -> tuple[Any, Any]:
    """P_q(answer >= x) and P_q(answer <= x) of a released x."""
    case = setting(mechanism)
    found = (int(x), int(x)) if case.lattice else exact.points(case).indices(x)
    assert found is not None
    with exact.precision(BITS):
        return 1 - below(case, q, found[0], including=False), below(case, q, found[1], including=True)


def beyond(domain: Any, end: float, outwards: int) -> float | None:
    """The nearest true value that the interval leaves out next to its end, or None; in the reals, the end itself."""
    first = domain.lower if outwards < 0 else domain.upper
    if end == first:
        return None
    if domain.lattice:
        return int(end) + outwards
    sides = [piece[0 if outwards < 0 else 1] for piece in domain.pieces]
    if end in sides:
        return float(domain.pieces[sides.index(end) + outwards][1 if outwards < 0 else 0])
    return end


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize(("domain", "scale"), EXTREME)
def test_what_is_left_out_is_rejected_and_hardly_more_is_kept(
    domain: Any, scale: float, family: str, edges: str
) -> None:
    mechanism = build(family, domain, scale, edges)
    ends = [e for piece in domain.pieces for e in piece if math.isfinite(e)]
    x = np.unique(np.concatenate([mechanism.simulate(q, size=4, seed=3) for q in (ends[0], ends[-1])]))
    coarse = not domain.lattice and max(map(abs, ends)) > 1e6 * min(scale, domain.width)  # the next float is far
    for level in (0.5, 0.999):
        tail = (1 - decimal(level)) / 2
        alone = [mechanism.interval(v, level) for v in x.tolist()]
        for lower, upper in (mechanism.interval(x, level), zip(*alone, strict=True)):
            for answer, low, high in zip(x.tolist(), lower, upper, strict=True):
                assert low in domain
                assert high in domain
                assert low <= high
                for end, outwards, which in ((low, -1, 0), (high, 1, 1)):
                    out = beyond(domain, end, outwards)
                    assert out is None or tails(mechanism, out, answer)[which] < tail
                    near = float(end) - outwards * (0.0 if domain.lattice else 1e-9 * min(scale, domain.width))
                    if low < high and not coarse and domain.holds(near):
                        assert tails(mechanism, near, answer)[which] > tail * arb(1 - 1e-6)


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("name", DOMAINS)
def test_one_and_many_agree(name: str, family: str, edges: str) -> None:
    domain, scale = DOMAINS[name]
    mechanism = build(family, domain, scale, edges)
    x = mechanism.simulate(true_values(domain, scale, 12), size=4, seed=1)
    many = [*mechanism.interval(x, 0.9), mechanism.estimate(x), mechanism.estimate(x, "median-unbiased")]
    assert all(part.shape == x.shape and part.dtype == x.dtype for part in many)
    for place in np.ndindex(x.shape):
        v = x[place].item()
        one = [*mechanism.interval(v, 0.9), mechanism.estimate(v), mechanism.estimate(v, "median-unbiased")]
        assert all(type(part) is (int if domain.lattice else float) for part in one)
        assert one == pytest.approx([float(part[place]) for part in many], rel=1e-12, abs=1e-8 * scale)


# -- the law is enough


class Opaque(Mechanism):
    """A mechanism of which nothing but the law is known."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.domain, self.sensitivity = inner, inner.domain, inner.sensitivity

    @property
    def grid(self) -> Any:
        return self.inner.grid

    def _law(self, true: Any) -> Any:
        return self.inner._law(true)


@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("name", DOMAINS)
def test_the_law_is_enough(name: str, family: str) -> None:
    domain, scale = DOMAINS[name]
    mechanism = build(family, domain, scale, "truncate")
    x = mechanism.simulate(true_values(domain, scale, 12), size=3, seed=2)
    for level in (0.2, 0.95):
        for mine, theirs in zip(mechanism.interval(x, level), Opaque(mechanism).interval(x, level), strict=True):
            assert mine == pytest.approx(theirs, rel=1e-12, abs=1e-8 * scale)
    for how, rough in (("mle", 1e-4), ("median-unbiased", 1e-8)):
        mine, theirs = mechanism.estimate(x, how), Opaque(mechanism).estimate(x, how)
        assert mine == pytest.approx(theirs, rel=1e-12, abs=rough * scale)


class AnyLaw(Mechanism):
    """Whole numbers with any table of probabilities; answers need not grow with the true value."""

    grid = 1.0

    def __init__(self, table: Any) -> None:
        self.table, self.domain = table, ib.Integers(0, len(table) - 1)

    def _law(self, true: Any) -> Any:
        rows = self.table[true.astype(int)]

        def upto(x: Any) -> Any:
            return np.where(np.arange(len(self.table)) <= x[:, None], rows, 0.0).sum(axis=1)

        def logpmf(x: Any) -> Any:
            return np.log(np.take_along_axis(rows, x.astype(int)[:, None], axis=1)[:, 0])

        return SimpleNamespace(cdf=upto, sf=lambda x: 1.0 - upto(x), logpmf=logpmf)


@pytest.mark.parametrize("seed", range(6))
def test_any_law_on_few_whole_numbers_is_covered(seed: int) -> None:
    table = np.random.default_rng(seed).dirichlet(np.full(12, 0.3), size=12)
    mechanism = AnyLaw(table)
    x = np.arange(12)
    for level in (0.3, 0.9):
        lower, upper = mechanism.interval(x, level)
        inside = (lower <= x[:, None]) & (x[:, None] <= upper)  # true value, answer
        assert (np.where(inside, table, 0.0).sum(axis=1) >= level).all()
    assert mechanism.estimate(x).tolist() == table.argmax(axis=0).tolist()


def test_what_stands_for_several_answers() -> None:
    mechanism = build("laplace", ib.Integers(0, 30), 2.0, "truncate")
    low, high = np.array([3.0, 9.0]), np.array([5.0, 20.0])
    lower, upper = inference.invert(mechanism, low, high, 0.95)
    assert lower.tolist() == mechanism.interval(low)[0].tolist()
    assert upper.tolist() == mechanism.interval(high)[1].tolist()
    between = inference.balanced(mechanism, low, high)
    assert (between > mechanism.estimate(low, "median-unbiased")).all()
    assert (between < mechanism.estimate(high, "median-unbiased")).all()


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("name", ["interval", "half-line", "spans", "integers"])
def test_what_stands_for_all_answers_on_one_side(name: str, edges: str) -> None:
    domain, scale = DOMAINS[name]
    for family in MECHANISMS:
        mechanism = build(family, domain, scale, edges)
        x = np.array([float(domain.project(5.0))])
        none = np.array([INF])
        assert inference.invert(mechanism, -none, x, 0.9)[0] == domain.lower
        assert inference.invert(mechanism, -none, x, 0.9)[1] == mechanism.interval(x, 0.9)[1]
        assert inference.invert(mechanism, x, none, 0.9)[0] == mechanism.interval(x, 0.9)[0]
        assert inference.invert(mechanism, x, none, 0.9)[1] == domain.upper
        assert inference.balanced(mechanism, -none, x) == domain.lower


# -- boxes


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("family", MECHANISMS)
def test_intervals_of_a_box_hold_together(family: str, edges: str, integer: bool) -> None:
    box = ib.Box([0, -3, 0, 1], [10, 3, 10, INF], integer=integer)
    mechanism = MECHANISMS[family](box, scale=1.5, sensitivity=ib.Linf(1), edges=edges)
    x = mechanism.simulate([2, 1, 9, 3], size=20, seed=4)
    lower, upper = mechanism.interval(x)
    estimate, middle = mechanism.estimate(x), mechanism.estimate(x, "median-unbiased")
    assert lower.shape == upper.shape == estimate.shape == x.shape
    for i in range(box.dimension):
        alone = MECHANISMS[family](
            box.coordinate(i), scale=1.5, sensitivity=1, edges=edges, granularity=float(mechanism.grid[i])
        )
        mine = alone.interval(x[:, i], 0.95**0.25)
        assert lower[:, i] == pytest.approx(mine[0], abs=1e-8)
        assert upper[:, i] == pytest.approx(mine[1], abs=1e-8)
        assert estimate[:, i] == pytest.approx(alone.estimate(x[:, i]), abs=1e-8)
        assert middle[:, i] == pytest.approx(alone.estimate(x[:, i], "median-unbiased"), abs=1e-8)
        if not integer:
            q = true_values(box.coordinate(i), 1.5, 8)
            assert all(c >= decimal(0.95**0.25 * (1 - 1e-14)) for c in coverages(alone, q, 0.95**0.25))
    one = mechanism.interval(x[0])
    assert one[0].tolist() == pytest.approx(lower[0].tolist(), abs=1e-8)
    if edges == "truncate":
        opaque = Opaque(mechanism)
        assert np.array(opaque.interval(x[:3])) == pytest.approx(np.array([lower[:3], upper[:3]]), abs=1e-7)


# -- estimates


def log_likelihood(mechanism: Any, q: Any, x: float) -> Any:
    law = mechanism.at(q)
    if mechanism.domain.lattice:
        return law.logpmf(x)
    for point, mass in law.atoms:
        if point == x:
            return np.log(mass)
    return law.logpdf(x)


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("name", DOMAINS)
def test_no_true_value_is_likelier_than_the_likeliest(name: str, family: str, edges: str) -> None:
    domain, scale = DOMAINS[name]
    mechanism = build(family, domain, scale, edges)
    qs = np.array(true_values(domain, scale, 4000))
    x = np.unique(mechanism.simulate(true_values(domain, scale, 10), size=2, seed=6).astype(float))
    walls = [e for piece in domain.pieces for e in piece if math.isfinite(e) and e % mechanism.grid == 0.0]
    for answer in [*x.tolist(), *walls]:
        best = mechanism.estimate(answer)
        assert best in domain
        assert log_likelihood(mechanism, best, answer) >= np.max(log_likelihood(mechanism, qs, answer)) - 1e-9


def test_the_likeliest_is_not_always_the_answer() -> None:
    laplace, gaussian = (build(f, ib.Interval(0, 10), 3.0, "truncate") for f in MECHANISMS)
    assert laplace.estimate(0.5) == 0.5
    assert gaussian.estimate(0.5) == 0.0
    assert gaussian.estimate(9.5) == 10.0
    assert 0.0 < gaussian.estimate(3.0) < 3.0
    assert gaussian.at(gaussian.estimate(3.0)).mean() == pytest.approx(3.0, abs=1e-9)


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("name", DOMAINS)
def test_the_median_unbiased_estimate_balances_the_tails(name: str, family: str, edges: str) -> None:
    domain, scale = DOMAINS[name]
    mechanism = build(family, domain, scale, edges)
    qs = np.array(true_values(domain, scale, 1000))
    for answer in np.unique(mechanism.simulate(true_values(domain, scale, 8), size=2, seed=8)).tolist():
        found = mechanism.estimate(answer, "median-unbiased")
        assert found in domain
        case = setting(mechanism)
        where = exact.points(case).indices(float(answer))
        assert where is not None

        def excess(q: float, case: Any = case, where: Any = where) -> float:
            """P(answer > x) - P(answer < x)."""
            return float(1 - below(case, q, where[1], including=True) - below(case, q, where[0], including=False))

        own = abs(excess(found))
        near = qs[np.argsort(np.abs(qs - found))[:6]].tolist()
        assert all(abs(excess(q)) >= own - 1e-7 for q in near)


@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("name", ["interval", "short", "half-line", "line"])
def test_it_is_too_small_as_often_as_too_large(name: str, family: str) -> None:
    domain, scale = DOMAINS[name]
    mechanism = build(family, domain, scale, "truncate")
    case = setting(mechanism)
    points = exact.points(case)
    for q in true_values(domain, scale, 8):
        low, high = (points.snap(math.floor((q + sign * 60 * scale) / mechanism.grid)) for sign in (-1, 1))
        while high - low > 1:
            middle = (low + high) // 2
            fits = mechanism.estimate(points.value(middle), "median-unbiased") <= q
            low, high = (middle, high) if fits else (low, middle)
        if q != domain.upper:
            assert float(below(case, q, low, including=True)) == pytest.approx(0.5, abs=1e-6)


# -- where every true value is rejected


def test_an_answer_at_a_wall_leaves_the_wall() -> None:
    for family in MECHANISMS:
        mechanism = build(family, ib.Interval(0, 12), 1.25, "truncate")
        assert mechanism.interval(0.0) == (0.0, 0.0)
        assert mechanism.interval(12.0) == (12.0, 12.0)
        assert mechanism.interval(0.001)[1] == 0.0
        assert mechanism.interval(0.2)[1] > 0.0
        outside = build(family, ib.Interval(0, 12), 1.25, "ignore")
        assert outside.interval(-50.0) == (0.0, 0.0)
        assert outside.interval(1e300) == (12.0, 12.0)


def test_an_answer_in_a_hole_leaves_the_nearer_side() -> None:
    for family in MECHANISMS:
        mechanism = build(family, ib.Spans([(0, 1), (9, 10)]), 0.5, "ignore")
        assert mechanism.interval([4.0, 6.0, 5.0], 0.5)[0].tolist() == [1.0, 9.0, 1.0]
        assert mechanism.interval([4.0, 6.0, 5.0], 0.5)[1].tolist() == [1.0, 9.0, 1.0]
        assert mechanism.interval(6.0, 1 - 1e-9)[1] > 9.0


def test_between_two_whole_numbers_the_less_rejected_one_is_left() -> None:
    seen = 0
    for family in MECHANISMS:
        for scale in (0.8, 1.5, 3.0, 20.0):
            mechanism = build(family, ib.Integers(0, 12), scale, "truncate")
            for x in range(13):
                lower, upper = mechanism.interval(x, 0.02)
                both = np.array([[float(t) for t in tails(mechanism, q, x)] for q in range(13)])
                kept = np.flatnonzero((both >= 0.49).all(axis=1))
                if kept.size == 0:
                    seen += 1
                    assert lower == upper == np.argmax(both.min(axis=1))
                else:
                    assert (lower, upper) == (kept[0], kept[-1])
    assert seen > 10


# -- properties


@st.composite
def answers(draw: st.DrawFn) -> tuple[Any, list[float]]:
    name = draw(st.sampled_from(sorted(DOMAINS)))
    domain, scale = DOMAINS[name]
    scale *= 10.0 ** draw(st.integers(-2, 3))
    mechanism = build(draw(st.sampled_from(sorted(MECHANISMS))), domain, scale, draw(st.sampled_from(EDGES)))
    qs = true_values(domain, scale, 12)
    seed = draw(st.integers(0, 2**20))
    return mechanism, np.unique(mechanism.simulate(qs, seed=seed).astype(float)).tolist()


@settings(max_examples=50)
@given(answers())
def test_intervals_are_inside_nested_and_grow_with_the_answer(drawn: tuple[Any, list[float]]) -> None:
    mechanism, x = drawn
    blur = 0.0 if mechanism.domain.lattice else 1e-9 * mechanism.scale
    found = [mechanism.interval(x, level) for level in (0.01, 0.3, 0.9, 0.95, 0.9999)]
    for lower, upper in found:
        assert mechanism.domain.contains(lower).all()
        assert mechanism.domain.contains(upper).all()
        assert (lower <= upper).all()
        assert (np.diff(lower) >= -blur).all()
        assert (np.diff(upper) >= -blur).all()
    for (a, b), (c, d) in pairwise(found):
        assert (c <= a + blur).all()
        assert (d >= b - blur).all()
    middle = mechanism.estimate(x, "median-unbiased")
    assert (found[-2][0] - blur <= middle).all()
    assert (middle <= found[-2][1] + blur).all()
    assert (np.diff(middle) >= -blur).all()


# -- what is refused


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95, math.nan, INF, 1 - 1e-13])
def test_levels_that_make_no_sense(level: float) -> None:
    mechanism = build("laplace", ib.Interval(0, 1), 0.1, "truncate")
    with pytest.raises(ib.ParameterError, match=r"Laplace: level must be a finite number in \(0.0, 0.99"):
        mechanism.interval(0.5, level)


@pytest.mark.parametrize("level", [True, "0.95", None, [0.95], 0.95j])
def test_levels_of_the_wrong_type(level: Any) -> None:
    mechanism = build("laplace", ib.Interval(0, 1), 0.1, "truncate")
    with pytest.raises(ib.ParameterTypeError, match="level"):
        mechanism.interval(0.5, level)


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("name", DOMAINS)
def test_values_that_cannot_have_been_released(name: str, edges: str) -> None:
    domain, scale = DOMAINS[name]
    mechanism = build("laplace", domain, scale, edges)
    good = float(domain.project(0.0))
    bad = [math.nan, INF, -INF]
    if edges != "ignore":
        bad += [x for x in (domain.lower - 1, domain.upper + 1) if math.isfinite(x)]
        bad += [(a[1] + b[0]) / 2 for a, b in pairwise(domain.pieces)]
    if domain.lattice:
        bad.append(good + 0.5)
    for value in bad:
        for given_value in (value, [good, value]):
            for ask in (mechanism.interval, mechanism.estimate, lambda v: mechanism.estimate(v, "median-unbiased")):
                with pytest.raises(ib.ParameterError, match="value must be an answer that this mechanism can give"):
                    ask(given_value)
    for value in ("0.5", True, None, [True], 1j, [[1.0], [1.0, 2.0]]):
        with pytest.raises(ib.ParameterTypeError, match="value must be a released value"):
            mechanism.interval(value)


def test_values_of_a_box_that_cannot_have_been_released() -> None:
    box = ib.Box([0, 0], [1, 2])
    mechanism = ib.Laplace(box, scale=1.0, sensitivity=ib.L1(1))
    for value, word in (
        ([0.5, 2.5], "can give"),
        (0.5, "shape"),
        ([0.1, 0.2, 0.3], "shape"),
        ([0.5, math.nan], "give"),
    ):
        with pytest.raises(ib.ParameterError, match=word):
            mechanism.interval(value)
    free = ib.Gaussian(box, scale=1.0, sensitivity=ib.L1(1), edges="ignore")
    assert [end.tolist() for end in free.interval([9.0, -9.0])] == [[1.0, 0.0], [1.0, 0.0]]
    with pytest.raises(ib.ParameterError):
        free.interval([0.5, INF])


def test_other_arguments() -> None:
    mechanism = build("laplace", ib.Interval(0, 1), 0.1, "truncate")
    with pytest.raises(ib.ParameterError, match="how must be one of 'mle', 'median-unbiased'"):
        mechanism.estimate(0.5, "mean")
    with pytest.raises(ib.ParameterTypeError, match="how"):
        mechanism.estimate(0.5, None)  # type: ignore[arg-type]
    with pytest.raises(ib.ParameterError, match="prior must be None for 'mle'"):
        mechanism.estimate(0.5, "mle", "flat")
    assert mechanism.interval(np.zeros((0,)))[0].shape == (0,)
    assert mechanism.estimate(np.zeros((2, 0))).shape == (2, 0)


# -- releases


def test_a_release_asks_its_mechanism() -> None:
    mechanism = build("gaussian", ib.Interval(0, 12), 1.25, "truncate")
    one, many = mechanism.release(3.0), mechanism.release(np.full((2, 3), 3.0))
    assert one.interval() == mechanism.interval(one.value, 0.95)
    assert one.interval(0.5) == mechanism.interval(one.value, 0.5)
    assert one.estimate() == mechanism.estimate(one.value, "mle")
    assert one.estimate("median-unbiased") == mechanism.estimate(one.value, "median-unbiased")
    assert one.estimate("posterior-mean") == one.posterior().mean()
    assert one.estimate("posterior-median") == one.posterior().median()
    assert many.interval()[0].shape == (2, 3)
    whole = build("laplace", ib.Integers(0, 9), 1.0, "truncate").release(3)
    assert [type(end) for end in whole.interval()] == [int, int]


def test_a_release_in_a_notebook() -> None:
    mechanism = build("laplace", ib.Interval(0, 12), 1.25, "truncate")
    text = ib.Release(3.25, mechanism)._repr_html_()
    assert text.count("<tr>") == 2
    assert "<td>3.25</td>" in text
    low, high = mechanism.interval(3.25)
    assert f"<td>{low:.6g} &ndash; {high:.6g}</td>" in text
    assert "<code>Laplace(Interval(0.0, 12.0), scale=1.25, sensitivity=1.0)</code>" in text
    many = ib.Release(np.arange(9.0), mechanism)._repr_html_()
    assert many.count("&ndash;") == 5
    assert "and 4 more" in many
    box = ib.Laplace(ib.Box([0, 0], [5, 5], integer=True), scale=1.0, sensitivity=ib.L1(1))
    assert ib.Release(np.array([3, 4]), box)._repr_html_().count("<tr>") == 3
    assert "Release(3.25, Laplace(" in repr(ib.Release(3.25, mechanism))


# --- the ends of what floats can tell apart


def test_answers_so_large_that_floats_are_farther_apart_than_the_noise() -> None:
    whole = ib.Gaussian(ib.Integers(0, math.inf), scale=3.0, sensitivity=1)
    assert whole.estimate(1e18) == 10**18  # it used to search for ever
    assert whole.estimate(1e18, "median-unbiased") == 10**18
    for domain in (ib.Interval(0, math.inf), ib.Integers(0, math.inf)):
        low, high = ib.Gaussian(domain, scale=1.0, sensitivity=1).interval(1e18)
        assert 1e18 - 1024 <= low < 1e18 < high <= 1e18 + 1024
    assert whole.estimate(1e308) == int(1e308)
    real = ib.Gaussian(ib.Interval(0, math.inf), scale=3.0, sensitivity=1)
    assert real.interval(1e308) == (math.nextafter(1e308, 0), math.nextafter(1e308, math.inf))


@pytest.mark.parametrize("level", [1e-17, 1e-300, 5e-324])
def test_a_level_of_next_to_nothing(level: float) -> None:
    low, high = ib.Laplace(ib.Interval(0, 1), scale=0.1, sensitivity=0.1).interval(0.5, level)
    assert 0.5 - 1e-8 < low < 0.5 < high < 0.5 + 1e-8

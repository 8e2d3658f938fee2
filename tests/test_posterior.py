"""Posteriors: every way to compute them against high-precision quadrature and exact sums."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import inbounds as ib
from inbounds.errors import ParameterError, ParameterTypeError
from inbounds.inference.bayes import Channel, Shape, _Integrated
from inbounds.inference.panels import Panels, run
from inbounds.inference.posterior import Posterior, Prior, posterior
from tests.common import MECHANISMS as FAMILIES
from tests.common import domain_of

INF = math.inf
RTOL = 1e-10
HOLES = [(0.0, 0.03), (2.2, 2.21), (11.0, 13.0)]


@pytest.fixture(autouse=True)
def _precision() -> Any:
    with mp.workdps(25):
        yield


# --- the reference: likelihood, and integrals of it, in mpmath ---------------------------------


def cumulative(family: str, t: Any) -> Any:
    """Cdf of the noise of scale 1."""
    if family == "gaussian":
        return mp.ncdf(t)
    return mp.exp(t) / 2 if t < 0 else 1 - mp.exp(-t) / 2


def between(family: str, s: float, q: Any, low: Any, high: Any) -> Any:
    """Mass of the noise around q on [low, high], from the nearer side."""
    a, b = (mpf(low) - q) / s, (mpf(high) - q) / s
    return cumulative(family, -a) - cumulative(family, -b) if a > 0 else cumulative(family, b) - cumulative(family, a)


def likelihood(family: str, s: float, spans: Any, edges: str, x: float) -> Callable[[Any], Any]:
    """q -> density of the answer x, or its probability where it is an atom; up to a constant factor."""
    middles = [(a[1] + b[0]) / 2 for a, b in pairwise(spans)]
    cuts = [-INF, *middles, INF]

    def at(q: Any) -> Any:
        if edges == "clamp":
            for i, (lo, hi) in enumerate(spans):
                if x == lo:
                    return between(family, s, q, cuts[i], lo)
                if x == hi:
                    return between(family, s, q, hi, cuts[i + 1])
        t = (mpf(x) - q) / s
        k = mp.exp(-abs(t)) if family == "laplace" else mp.exp(-t * t / 2)
        if edges != "truncate":
            return k
        return k / mp.fsum(between(family, s, q, lo, hi) for lo, hi in spans)

    return at


class Exact:
    """Moments and probabilities of a density on spans, by quadrature with memory."""

    def __init__(self, f: Callable[[Any], Any], spans: Any, s: float, x: float) -> None:
        points = [min(max(x, lo), hi) for lo, hi in spans]
        unit = max(f(mpf(p)) for p in (*points, points[0] + s / 8)) or 1  # quadrature stops at an absolute error
        self._f = cache(lambda q: f(q) / unit)
        marks = {mpf(x)}
        self._spans = []
        for lo, hi in spans:
            near = min(max(x, lo), hi)
            low, high = max(lo, near - 60 * s), min(hi, near + 60 * s)
            self._spans.append((mpf(low), mpf(high)))
            marks |= {
                mpf(end) + sign * mpf(s) * 4**k for end in (low, high, near) for sign in (-1, 1) for k in range(-4, 3)
            }
        self._marks = sorted(marks)
        self.total = self.integral(lambda q: 1)
        self.mean = self.integral(lambda q: q) / self.total
        self.var = self.integral(lambda q: (q - self.mean) ** 2) / self.total

    def integral(self, g: Callable[[Any], Any], upto: Any = INF) -> Any:
        out = mpf(0)
        for lo, hi in self._spans:
            top = min(hi, upto)
            if lo < top:
                cuts = [lo, *(m for m in self._marks if lo < m < top), top]
                out += mp.quad(lambda q: g(q) * self._f(q), cuts)
        return out

    def cdf(self, q: Any) -> Any:
        return self.integral(lambda q: 1, mpf(q)) / self.total


def bump(q: Any) -> Any:
    return q * (3.0 - q)


SETTINGS: list[tuple[str, Any, float, str, float, Any]] = [
    *(
        (f, [(0.0, 1.0)], s, e, x, None)
        for f in FAMILIES
        for e in ("truncate", "clamp", "ignore")
        for s, x in ((0.3, 0.2), (0.02, 0.97))
    ),
    *((f, [(0.0, 1.0)], 0.25, "clamp", x, None) for f in FAMILIES for x in (0.0, 1.0)),
    *((f, [(0.0, 1.0)], 0.25, "ignore", x, None) for f in FAMILIES for x in (-2.5, 1.4)),
    *((f, [(0.0, 1.0)], s, "truncate", 0.3, None) for f in FAMILIES for s in (1e6, 1e-5)),
    ("gaussian", [(0.0, 1.0)], 1e6, "ignore", -3e6, None),
    ("gaussian", [(0.0, 1.0)], 1e12, "ignore", 2e12, None),
    ("laplace", [(0.0, 1e7)], 2.0, "truncate", 3.5, None),
    ("gaussian", [(0.0, 1e7)], 2.0, "truncate", 5e6, None),
    *(
        (f, [(0.0, INF)], 2.0, e, x, None)
        for f in FAMILIES
        for e, x in (("truncate", 0.5), ("ignore", -3.0), ("clamp", 0.0))
    ),
    *((f, [(-INF, 3.0)], 0.5, "truncate", 2.9, None) for f in FAMILIES),
    *(
        (f, HOLES, 1.0, e, x, None)
        for f in FAMILIES
        for e, x in (("truncate", 2.205), ("clamp", 2.21), ("ignore", 5.0))
    ),
    *((f, [(0.0, 3.0)], 0.4, e, 1.1, bump) for f in FAMILIES for e in ("truncate", "ignore")),
    ("gaussian", [(0.0, 3.0)], 0.1, "ignore", -1.0, bump),
    ("laplace", [(0.0, 3.0)], 0.01, "clamp", 3.0, bump),
]


def name_of(setting: Any) -> str:
    family, spans, s, edges, x, prior = setting
    return f"{family}-{edges}-{spans[0][0]:g}..{spans[-1][1]:g}-s{s:g}-x{x:g}{'-bump' if prior else ''}"


@pytest.mark.thinned(3)
@pytest.mark.parametrize("setting", SETTINGS, ids=name_of)
def test_against_quadrature(setting: Any) -> None:
    family, spans, s, edges, x, prior = setting
    f = likelihood(family, s, spans, edges, x)
    exact = Exact((lambda q: f(q) * bump(q)) if prior else f, spans, s, x)
    made = FAMILIES[family](domain_of(spans), scale=s, sensitivity=0.01, edges=edges)
    found = posterior(made, x, prior)
    size = float(mp.sqrt(exact.var))
    assert abs(found.mean() - exact.mean) <= RTOL * size
    assert abs(found.var() - exact.var) <= RTOL * exact.var
    for q in (float(exact.mean) - 1.3 * size, float(exact.mean), float(exact.mean) + 0.9 * size):
        if not spans[0][0] <= q <= spans[-1][1]:
            continue
        share = exact.cdf(q)
        assert abs(found.cdf(q) - share) <= RTOL
        if q in made.domain:
            density = exact._f(mpf(q)) / exact.total
            assert abs(found.pdf(q) - density) <= RTOL * density
            if 1e-9 < share < 1 - 1e-9:
                assert abs(found.ppf(float(share)) - q) <= 1e-9 * size + 4e-16 / float(density)
    low, high = found.interval(0.9)
    assert abs(exact.cdf(high) - exact.cdf(low) - mpf("0.9")) <= 1e-9
    assert spans[0][0] <= low < found.median() < high <= spans[-1][1]


@pytest.mark.parametrize("edges", ["ignore", "clamp"])
@pytest.mark.parametrize("family", FAMILIES)
def test_closed_forms_are_the_integrals(family: str, edges: str) -> None:
    """Both ways to the same numbers, for many answers at once."""
    made = FAMILIES[family](ib.Interval(-1, 2), scale=0.3, sensitivity=0.1, edges=edges)
    x = np.linspace(-0.99, 1.99, 41) if edges == "clamp" else np.linspace(-2.5, 3.0, 41)
    closed = posterior(made, x)
    assert not isinstance(closed._solver, _Integrated)
    slow = _Integrated(Channel(made), Prior(made.domain), [(x, x)])
    row = np.arange(x.size)
    assert np.allclose(closed.mean(), slow.mean(), rtol=0, atol=1e-12)
    assert np.allclose(closed.var(), slow.var(), rtol=1e-10)
    assert np.allclose(closed.mode(), slow.mode(), atol=1e-8)
    for p in (0.01, 0.5, 0.9):
        assert np.allclose(closed.ppf(p), slow.ppf(row, np.full(x.size, p)), atol=1e-11)
    for q in (-1.0, 0.3, 1.9):
        assert np.allclose(closed.cdf(q), slow.cdf(row, np.full(x.size, q)), atol=1e-12)
        assert np.allclose(closed.pdf(q), slow.pdf(row, np.full(x.size, q)), rtol=1e-10, atol=1e-200)


def noise_density(made: Any, t: Any) -> Any:
    return np.exp(made._noise.log_density(np.asarray(t, dtype=float)))


@pytest.mark.parametrize("x", [-0.9, 0.05, 0.55, 1.02])
@pytest.mark.parametrize("kind", ["staircase", "bounded"])
def test_other_plain_noise(kind: str, x: float) -> None:
    """Against a fine midpoint rule, whose error is second order at smooth places and first order at the few jumps."""
    if kind == "staircase":
        made: Any = ib.Staircase.calibrate(ib.Interval(0, 1), sensitivity=0.3, epsilon=2.0, edges="ignore")
    else:
        made = ib.BoundedLaplace.calibrate(ib.Interval(0, 1), sensitivity=0.1, epsilon=1.0, delta=1e-4, edges="ignore")
        if x == -0.9:
            x = -0.5  # farther away than the noise reaches nothing comes from
    q = (np.arange(1 << 20) + 0.5) / (1 << 20)
    weight = noise_density(made, q - x)
    for prior, factor in ((None, 1.0), (bump, bump(q))):
        share = weight * factor / (weight * factor).sum()
        mean = share @ q
        found = posterior(made, x, prior)
        assert found.mean() == pytest.approx(mean, abs=3e-6)
        assert found.var() == pytest.approx(share @ (q - mean) ** 2, rel=1e-4)
        through = np.cumsum(share)
        for level in (0.1, 0.5, 0.9):
            assert found.ppf(level) == pytest.approx(q[np.searchsorted(through, level)], abs=1e-5)
            assert found.cdf(level) == pytest.approx(through[np.searchsorted(q, level) - 1], abs=1e-5)
        at = np.array([0.111, 0.613, 0.907])
        k = np.searchsorted(q, at)
        assert np.allclose(found.pdf(at), share[k] * (1 << 20), rtol=1e-4, atol=1e-9)
        assert 0.0 <= found.mode() <= 1.0


def test_staircase_beyond_an_end_repeats() -> None:
    """A stair farther away the posterior is the same, for whole numbers, too."""
    for domain, width in ((ib.Interval(0, 1), 0.25), (ib.Integers(0, 9000), 20)):
        made = ib.Staircase(domain, sensitivity=width, epsilon=1.0, edges="ignore")
        step = made._noise.width
        x = np.array([-0.3 * step, -0.9 * step])
        x = np.rint(x) if domain.lattice else x
        near, far = posterior(made, x), posterior(made, x - 3 * step)
        assert np.allclose(near.mean(), far.mean(), rtol=1e-6)
        assert np.allclose(near.median(), far.median(), rtol=1e-6)


# --- whole numbers -------------------------------------------------------------------------------


def brute(made: Any, x: float, points: Any, prior: Any = None) -> Any:
    """Probabilities of the points, by definition."""
    log = made.at(points).logpmf(x)
    weight = np.exp(log - np.max(log))
    if prior is not None:
        weight = weight * prior(points)
    return weight / weight.sum()


def check_sums(found: Posterior, points: Any, share: Any, rtol: float = 1e-10) -> None:
    mean = share @ points
    var = share @ (points - mean) ** 2
    assert found.mean() == pytest.approx(mean, abs=rtol * math.sqrt(var), rel=1e-14)
    assert found.var() == pytest.approx(var, rel=rtol)
    through = np.cumsum(share)
    k = np.searchsorted(through, [0.02, 0.3, 0.5, 0.8])
    assert np.allclose(found.cdf(points[k]), through[k], atol=1e-10)
    assert np.allclose(found.cdf(points[k] + 0.5), through[k], atol=1e-10)
    assert np.allclose(found.pmf(points[k]), share[k], rtol=1e-9)
    assert found.pmf(points[k[0]] + 0.5) == 0.0
    for level, place in zip((0.02, 0.3, 0.5, 0.8), k.tolist(), strict=True):
        assert abs(found.ppf(level) - points[place]) <= (through[place] - level < 1e-11)
    assert found.mode() == points[np.argmax(share)]
    low, high = found.interval(0.9)
    assert found.cdf(high) - found.cdf(low - 1) >= 0.9


@pytest.mark.parametrize("edges", ["truncate", "clamp", "ignore"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("top", "scale"), [(30, 3.7), (9000, 5.0), (9000, 2500.0)])
def test_integers(family: str, edges: str, top: int, scale: float) -> None:
    made = FAMILIES[family](ib.Integers(0, top), scale=scale, sensitivity=1, edges=edges)
    points = np.arange(top + 1.0)
    for x in (0.0, 7.0, float(top)) if edges != "ignore" else (-2.0, 7.0):
        check_sums(posterior(made, x), points, brute(made, x, points))
    if top == 30:
        check_sums(posterior(made, 7, bumpy), points, brute(made, 7.0, points, bumpy))


def bumpy(k: Any) -> Any:
    return 1.0 + np.asarray(k) % 3


@pytest.mark.parametrize("family", FAMILIES)
def test_integers_without_bounds(family: str) -> None:
    made = FAMILIES[family](ib.Integers(0, INF), scale=4.0, sensitivity=1)
    points = np.arange(600.0)
    for x in (0.0, 3.0, 90.0):
        check_sums(posterior(made, x), points, brute(made, x, points))
        check_sums(posterior(made, x, falling), points, brute(made, x, points, falling))
    line = FAMILIES[family](ib.Integers(-INF, INF), scale=4.0, sensitivity=1, edges="ignore")
    assert posterior(line, 5).mean() == pytest.approx(5.0)
    assert posterior(line, 5, lambda k: 0.5 ** np.abs(k)).mean() < 5.0


def falling(k: Any) -> Any:
    return 0.8 ** np.asarray(k, dtype=float)


def test_answers_of_a_large_lattice() -> None:
    """Sums of a few dozen of many terms: far beyond what could be listed, against the continuous limit."""
    made = ib.Laplace(ib.Integers(0, 10**9), scale=1e5, sensitivity=1000)
    smooth = ib.Laplace(ib.Interval(-0.5, 1e9 + 0.5), scale=1e5, sensitivity=1000)
    x = np.array([0.0, 12345.0, 5e8])
    whole, real = posterior(made, x), posterior(smooth, x)
    assert np.allclose(whole.mean(), real.mean(), atol=1e-2)
    assert np.allclose(whole.std(), real.std(), rtol=1e-7)
    assert np.allclose(whole.ppf(0.3), real.ppf(0.3), atol=1.0)
    assert np.allclose(whole.cdf(5e4), real.cdf(5e4 + 0.5), atol=1e-9)


# --- priors on points ----------------------------------------------------------------------------


@pytest.mark.parametrize("edges", ["truncate", "clamp", "ignore"])
@pytest.mark.parametrize("family", FAMILIES)
def test_prior_on_points(family: str, edges: str) -> None:
    made = FAMILIES[family](ib.Interval(0, 1), scale=0.3, sensitivity=0.1, edges=edges)
    points, weights = np.array([0.0, 0.35, 0.5, 1.0]), np.array([1.0, 2.0, 5.0, 0.0])
    for x in (0.0, 0.42):
        exact = [likelihood(family, 0.3, [(0.0, 1.0)], edges, x)(mpf(float(q))) for q in points]
        share = np.array([float(v) for v in exact]) * weights
        share /= share.sum()
        found = posterior(made, x, (points[::-1].tolist(), weights[::-1].tolist()))
        assert np.allclose(found.pmf(points), share, rtol=1e-10)
        assert found.mean() == pytest.approx(share @ points, rel=1e-12)
        assert found.mode() == points[np.argmax(share)]
        assert found.ppf([0.0, 1.0]).tolist() == [0.0, 0.5]
        assert found.cdf(0.4) == pytest.approx(share[0] + share[1], rel=1e-12)
        assert found.pmf(0.4) == 0.0
        assert found.cdf(-1.0) == 0.0
        with pytest.raises(ParameterError, match="pdf"):
            found.pdf(0.5)


def spiky(q: Any) -> Any:
    """Smooth, narrow, and steep at 0.7."""
    return np.exp(-np.square((np.asarray(q) - 0.4) / 0.01)) + (np.asarray(q) > 0.7)


def test_densities_are_resolved() -> None:
    """Narrow features and jumps of a density are found and integrated."""
    prior = Prior(ib.Interval(0, 1), spiky)
    total = 0.01 * math.sqrt(math.pi) + 0.3
    assert math.exp(-prior.log_density(np.array([0.4]))[0]) == pytest.approx(total, rel=1e-10)
    made = ib.Gaussian(ib.Interval(0, 1), scale=0.5, sensitivity=0.1, edges="ignore")
    q = (np.arange(1 << 20) + 0.5) / (1 << 20)
    weight = spiky(q) * np.exp(-np.square((q - 0.1) / 0.5) / 2)
    assert posterior(made, 0.1, prior).mean() == pytest.approx(weight @ q / weight.sum(), abs=1e-6)


def test_conjugate_priors() -> None:
    """Normal beliefs and noise, exponential beliefs on a half-line: the textbook's answers."""
    made = ib.Gaussian(ib.Interval(-INF, INF), scale=2.0, sensitivity=1)
    found = posterior(made, [1.0, 30.0], lambda q: np.exp(-np.square(q - 3.0) / 18.0))
    gain = 9.0 / (9.0 + 4.0)
    assert np.allclose(found.mean(), 3.0 + gain * (np.array([1.0, 30.0]) - 3.0), rtol=1e-11)
    assert np.allclose(found.var(), gain * 4.0, rtol=1e-11)
    half = ib.Gaussian(ib.Interval(0, INF), scale=2.0, sensitivity=1, edges="ignore")
    found = posterior(half, 3.0, lambda q: np.exp(-q / 5.0))
    moved = posterior(half, 3.0 - 4.0 / 5.0)  # a tilt moves a normal density
    assert found.mean() == pytest.approx(moved.mean(), rel=1e-11)
    assert found.ppf(0.9) == pytest.approx(moved.ppf(0.9), rel=1e-11)
    cauchy = posterior(made, 50.0, lambda q: 1.0 / (1.0 + q * q))
    assert 49.0 < cauchy.mean() < 50.0


def test_a_prior_far_from_the_answer() -> None:
    """All of the prior farther away than the noise usually reaches."""
    made = ib.Laplace(ib.Interval(0, 1000), scale=0.1, sensitivity=0.1, edges="ignore")
    found = posterior(made, 900.0, lambda q: (np.asarray(q) < 10.0) * 1.0)
    assert found.mean() == pytest.approx(9.9, abs=1e-9)
    assert posterior(made, 900.0, ([5.0, 6.0], [1, 1])).mean() == pytest.approx(6.0 - math.exp(-10.0), abs=1e-7)


# --- shapes, boxes, refusals ---------------------------------------------------------------------


@pytest.mark.parametrize("edges", ["truncate", "ignore"])
def test_arrays_broadcast(edges: str) -> None:
    made = ib.Gaussian(ib.Interval(0, 1), scale=0.3, sensitivity=0.1, edges=edges)
    x = np.array([[0.1, 0.5, 0.9], [0.2, 0.3, 0.4]])
    found = posterior(made, x)
    assert found.mean().shape == found.var().shape == found.mode().shape == (2, 3)
    q = np.linspace(0, 1, 4)[:, None, None]
    assert found.cdf(q).shape == found.pdf(q).shape == (4, 2, 3)
    assert found.ppf([[0.5], [0.9]]).shape == (2, 3)
    low, high = found.interval()
    assert low.shape == high.shape == (2, 3)
    for i, value in np.ndenumerate(x):
        one = posterior(made, value)
        assert one.mean() == pytest.approx(found.mean()[i], abs=1e-14)
        assert one.cdf(0.3) == pytest.approx(found.cdf(0.3)[i], abs=1e-13)
        assert isinstance(one.mean(), float)
    many = np.random.default_rng(1).uniform(0.0, 1.0, 3000)
    assert np.allclose(posterior(made, many).mean()[:5], [posterior(made, v).mean() for v in many[:5]])
    assert posterior(made, np.empty((0, 3))).mean().shape == (0, 3)
    assert math.isnan(found.cdf(math.nan)[0, 0])
    assert math.isnan(found.ppf(1.5)[0, 0])


def test_boxes() -> None:
    made = ib.Laplace(ib.Box([0, -1], [1, 3]), scale=0.3, sensitivity=ib.L1(1))
    prior = [None, ([-1.0, 2.0], [1, 1])]
    x = np.array([[0.2, 1.0], [0.9, -0.5]])
    found = posterior(made, x, prior)
    for i in range(2):
        line = posterior(ib.Laplace(made.domain.coordinate(i), scale=0.3, sensitivity=1), x[:, i], prior[i])
        assert np.allclose(found.mean()[:, i], line.mean())
        assert np.allclose(found.interval(0.8)[1][:, i], line.interval(0.8)[1])
        assert np.allclose(found.cdf([[0.5, 0.0]])[:, i], line.cdf([0.5, 0.0][i]))
    assert found.var().shape == found.mode().shape == found.median().shape == found.std().shape == (2, 2)
    assert found.ppf([0.5, 0.5]).shape == (2, 2)
    assert "2 coordinates" in repr(found)
    whole = posterior(ib.Gaussian(ib.Box([0, 0], [9, 5], integer=True), scale=2.0, sensitivity=ib.L2(1)), [3, 4])
    assert whole.pmf([3, 4]).shape == (2,)
    assert posterior(made, x).pdf([0.5, 0.5]).shape == (2, 2)
    with pytest.raises(ParameterError, match="shape"):
        found.cdf(0.5)
    with pytest.raises(ParameterError, match="shape"):
        posterior(made, [0.1, 0.2, 0.3])
    with pytest.raises(ParameterTypeError, match="one for each coordinate"):
        posterior(made, x, bump)


def test_mechanisms_and_releases_have_posteriors() -> None:
    made = ib.Laplace(ib.Interval(0, 1), scale=0.3, sensitivity=0.1)
    release = made.release(0.4)
    assert release.posterior().mean() == made.posterior(release.value).mean() == posterior(made, release.value).mean()
    assert made.estimate(0.7, "posterior-median") == made.posterior(0.7).median()
    assert made.estimate(0.7, "posterior-mean", bump) == made.posterior(0.7, bump).mean()


BAD_PRIORS: dict[str, tuple[Any, type[Exception], str]] = {
    "word": ("normal", ParameterTypeError, "None, 'flat'"),
    "number": (3.0, ParameterTypeError, "None, 'flat'"),
    "three": (([0.1], [1.0], [2.0]), ParameterTypeError, "pair"),
    "lengths": (([0.1, 0.2], [1.0]), ParameterError, "as many"),
    "outside": (([0.1, 1.2], [1.0, 1.0]), ParameterError, "points must be in"),
    "twice": (([0.1, 0.1], [1.0, 1.0]), ParameterError, "different"),
    "negative": (([0.1, 0.2], [1.0, -1.0]), ParameterError, "not negative"),
    "zeros": (([0.1, 0.2], [0.0, 0.0]), ParameterError, "not all zero"),
    "nan": (([0.1, math.nan], [1.0, 1.0]), ParameterError, "points"),
    "too many": ((np.linspace(0, 1, 131_073).tolist(), [1.0] * 131_073), ParameterError, "at most"),
    "words": ((["a", "b"], [1.0, 1.0]), ParameterTypeError, "points"),
    "negative density": (lambda q: q - 0.5, ParameterError, "not negative"),
    "infinite density": (lambda q: np.full(np.shape(q), np.inf), ParameterError, "finite"),
    "no density": (lambda q: 0.0 * q, ParameterError, "positive somewhere"),
    "words for numbers": (lambda q: "high", ParameterTypeError, "one number for each"),
    "too few": (lambda q: q[:3], ParameterTypeError, "one number for each"),
}


@pytest.mark.parametrize("name", BAD_PRIORS)
def test_bad_priors(name: str) -> None:
    prior, kind, words = BAD_PRIORS[name]
    with pytest.raises(kind, match=words):
        Prior(ib.Interval(0, 1), prior)


def test_priors_without_an_end() -> None:
    with pytest.raises(ParameterError, match="finite integral"):
        Prior(ib.Interval(0, INF), lambda q: 1.0 / (1.0 + q))
    with pytest.raises(ParameterError, match="summed"):
        Prior(ib.Integers(0, INF), lambda k: 1.0 + 0.0 * k)
    with pytest.raises(ParameterError, match="more than"):
        Prior(ib.Integers(0, 10**7), bumpy)
    assert not Prior(ib.Interval(0, INF)).proper
    assert Prior(ib.Interval(0, INF), lambda q: np.exp(-q)).proper
    assert Prior(ib.Integers(-INF, 4), lambda k: 0.5 ** (4.0 - k)).ends[1] == 4.0
    assert Prior(ib.Interval(-INF, 4), lambda q: np.exp(q)).ends[1] == 4.0


def test_priors_are_values() -> None:
    domain = ib.Interval(0, 1)
    for belief in (None, bump, ([0.5, 0.1], [1.0, 2.0])):
        prior = Prior(domain, belief)
        again = pickle.loads(pickle.dumps(prior))
        assert again == prior
        assert hash(again) == hash(prior)
        assert Prior.of(domain, prior) is prior
        assert "Prior(Interval" in repr(prior)
    assert Prior(domain) != Prior(domain, bump)
    assert Prior(domain) != "flat"
    assert Prior(domain, "flat") == Prior(domain)
    assert "<9 points>" in repr(Prior(domain, (np.linspace(0, 1, 9).tolist(), [1.0] * 9)))
    with pytest.raises(ParameterError, match="on the domain"):
        posterior(ib.Laplace(ib.Interval(0, 2), scale=1.0, sensitivity=1), 0.5, Prior(domain))


def test_values_that_cannot_have_been_released() -> None:
    made = ib.Laplace(ib.Interval(0, 1), scale=0.3, sensitivity=0.1)
    for value, kind, words in (
        (1.5, ParameterError, "in Interval"),
        (math.nan, ParameterError, "finite"),
        ("x", ParameterTypeError, "number"),
        (True, ParameterTypeError, "number"),
    ):
        with pytest.raises(kind, match=words):
            posterior(made, value)
    whole = ib.Laplace(ib.Integers(0, 9), scale=1.0, sensitivity=1, edges="ignore")
    with pytest.raises(ParameterError, match="whole"):
        posterior(whole, 2.5)
    bounded = ib.BoundedLaplace(ib.Interval(0, 1), scale=0.1, bound=0.3, sensitivity=0.1, edges="ignore")
    with pytest.raises(ParameterError, match="prior allows"):
        posterior(bounded, 0.8, ([0.1, 0.2], [1.0, 1.0]))
    with pytest.raises(ParameterError, match="pmf"):
        posterior(made, 0.5).pmf(0.5)
    for level in (0.0, 1.0, 1.0 - 1e-13):
        with pytest.raises(ParameterError, match="level"):
            posterior(made, 0.5).interval(level)
    assert "Posterior on Interval" in repr(posterior(made, 0.5))


def test_shapes_that_do_not_broadcast() -> None:
    found = posterior(ib.Laplace(ib.Interval(0, 1), scale=0.3, sensitivity=0.1), [0.1, 0.2])
    for ask in (found.cdf, found.pdf, found.ppf):
        with pytest.raises(ParameterError, match=r"broadcasts against that of the answers, \(2,\); got 'shape \(3,\)'"):
            ask([0.1, 0.2, 0.3])


@pytest.mark.parametrize("prior", [None, ([1, 5], [1.0, 2.0])], ids=["flat", "points"])
@pytest.mark.parametrize("domain", [ib.Integers(0, 30), ib.Interval(0, 30)], ids=str)
def test_no_answers_have_no_posteriors(domain: Any, prior: Any) -> None:
    made = ib.Laplace(domain, scale=2, sensitivity=1)
    for shape in ((0,), (2, 0)):
        found = made.posterior(np.empty(shape), prior)
        for ask in (found.mean, found.var, found.std, found.median, found.mode):
            assert ask().shape == shape
        assert found.cdf(3.0).shape == found.interval()[0].shape == shape
    assert made.estimate([], "posterior-mean", prior).shape == (0,)


def one_by_one(q: Any) -> Any:
    """A density that takes what it is given to be one-dimensional."""
    return np.array([math.exp(-x) for x in q])


def test_densities_are_asked_for_a_row_of_values() -> None:
    made = ib.Laplace(ib.Interval(0, 1), scale=0.2, sensitivity=0.1)
    assert made.posterior(0.5, one_by_one).mean() == pytest.approx(made.posterior(0.5, lambda q: np.exp(-q)).mean())
    # a constant is a density, too
    assert made.posterior(0.5, lambda q: 1.0).mean() == pytest.approx(made.posterior(0.5).mean())


@pytest.mark.parametrize("bad", [-1.0, math.nan, INF])
def test_densities_are_checked_wherever_they_are_asked_for(bad: float) -> None:
    """The normalising pass never asks at an end of the domain; the mode does."""
    made = ib.Laplace(ib.Interval(0, 1), scale=0.2, sensitivity=0.1)
    found = made.posterior(0.5, lambda q: np.where(q == 1.0, bad, 1.0))
    with pytest.raises(ParameterError, match=r"prior must be a density: finite and not negative; got .* at 1.0"):
        found.mode()


# --- panels --------------------------------------------------------------------------------------


def test_runs_of_whole_numbers_are_summed() -> None:
    """Runs of any length, of functions as smooth as the panels are made for."""
    for length in (1, 5, 127, 128, 129, 1000, 4097, 65_535, 1 << 17):
        start = np.array([-3.0, 17.0])
        nodes, weights = run(start, start + length, lattice=True)
        assert np.all(weights >= 0.0)
        assert np.array_equal(nodes, np.round(nodes))
        k = np.arange(1.0, length + 1.0)
        for f in (
            lambda t: np.ones_like(t),
            lambda t: np.exp(-4.0 * t),
            lambda t: 1.0 / (1.0 - 0.5 * np.exp(-4.0 * t)),
        ):
            exact = f(k / length).sum()
            found = (weights * f((nodes - start[:, None]) / length)).sum(axis=1)
            assert np.allclose(found, exact, rtol=1e-12)


def test_panels_are_split_where_asked() -> None:
    rule = Panels([(0.0, 1.0), (2.0, 3.0)], 0.4).rule()
    assert rule.weights.sum() == pytest.approx(2.0)
    cuts = np.array([[0.1, 0.15, 2.5, 1.5], [0.4, 7.0, 2.0, 2.9]])
    removed, start, stop = rule.split(cuts)
    for row in range(2):
        kept = (rule.b - rule.a)[~removed[row]].sum() + (stop - start)[row].sum()
        assert kept == pytest.approx(2.0)
        edges = {*start[row].tolist(), *stop[row].tolist(), *rule.a.tolist(), *rule.b.tolist()}
        assert all(c in edges for c in cuts[row].tolist() if c in (0.1, 0.15, 2.5, 2.9))


def test_shapes_of_other_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Channel(ib.Staircase(ib.Interval(0, 1), sensitivity=0.5, epsilon=10.0)).shape.reach > 0.5
    bounded = ib.BoundedLaplace(ib.Interval(0, 1), scale=0.1, bound=0.3, sensitivity=0.1)
    assert Channel(bounded).shape == Shape(0.1, 0.3, (0.0, -0.3, 0.3))
    monkeypatch.setattr(ib.BoundedLaplace, "_shape", None)
    assert Channel(bounded).shape == Shape(0.1, 48.0 * 0.1)  # a kind that does not say


def test_a_prior_that_fails_is_refused() -> None:
    with pytest.raises(ib.ParameterError, match=r"Prior: prior must be a density .*; got ZeroDivisionError") as caught:
        ib.Laplace(ib.Interval(0, 1), scale=0.1, sensitivity=0.1).posterior(0.5, lambda q: 1 / 0)
    assert isinstance(caught.value.__context__, ZeroDivisionError)


@pytest.mark.parametrize("cls", [ib.Laplace, ib.Gaussian])
def test_answers_beyond_all_noise_are_refused(cls: Any) -> None:
    made = cls(ib.Integers(0, 10), scale=1.0, sensitivity=1, edges="ignore")
    made.posterior(1e60).mean()
    with pytest.raises(ib.ParameterError, match=r"value must be finite, and at most 1e\+100 in size"):
        made.posterior(1e308)


def test_it_shows_in_notebooks() -> None:
    made = ib.Laplace(ib.Interval(0, 1), scale=0.1, sensitivity=0.1)
    html = made.posterior([0.25, 0.5])._repr_html_()
    assert html.count("<tr>") == 3
    assert f"<td>{made.posterior(0.5).mean():.6g}</td>" in html
    assert "&lt;Posterior on" in html

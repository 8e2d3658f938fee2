"""The output distribution: probabilities, quantiles and moments against the 50-digit reference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import inbounds as ib
from tests import reference as ref
from tests.common import MECHANISMS as FAMILIES

INF = math.inf
RTOL = mpf("1e-10")
HOLES = [(0.0, 0.03), (2.2, 2.21), (11.0, 13.0)]


def domain_of(spans: Any, lattice: bool = False) -> Any:
    if lattice:
        return ib.Integers(*spans[0])
    return ib.Interval(*spans[0]) if len(spans) == 1 else ib.Spans(spans)


def law(
    family: str, spans: Any, scale: float, q: Any, *, lattice: bool = False, edges: str = "truncate", gap: float = 0.01
) -> Any:
    return FAMILIES[family](domain_of(spans, lattice), scale=scale, sensitivity=1 if lattice else gap, edges=edges).at(
        q
    )


def close(value: Any, exact: Any, rtol: Any = RTOL) -> bool:
    """To a relative error, for everything a float can hold."""
    if abs(exact) < mpf("1e-300"):
        return bool(0 <= value <= 1e-299)
    return bool(abs(mpf(float(value)) - exact) <= rtol * abs(exact))


def mass(family: str, scale: float, q: float, spans: Any, lo: float, hi: float, lattice: bool = False) -> Any:
    parts = [(max(lo, a), min(hi, b)) for a, b in spans if max(lo, a) <= min(hi, b)]
    return mp.fsum(ref.mass(family, scale, q, a, b, lattice=lattice, dps=30) for a, b in parts)


# --- truncated, continuous -------------------------------------------------------------------

SETTINGS = [
    ([(0.0, 1.0)], 0.3, (0.0, 0.2, 1.0)),
    ([(0.0, 1.0)], 1 / 9.0, (0.0, 1.0)),
    ([(0.0, 1.0)], 1 / 9.7, (0.0, 0.5, 1.0)),
    ([(0.0, 1.0)], 0.1, (0.0,)),
    ([(0.0, 1.0)], 1e-12, (0.0, 0.5)),
    ([(0.0, 1.0)], 1e12, (0.0, 0.7)),
    ([(1e9, 1e9 + 1.0)], 0.25, (1e9, 1e9 + 0.5)),
    ([(0.0, INF)], 2.0, (0.0, 7.0)),
    ([(-INF, 3.0)], 0.5, (3.0, -100.0)),
    ([(-INF, INF)], 1.5, (-4.0,)),
    (HOLES, 1.0, (0.0, 2.205, 12.0)),
    (HOLES, 1e6, (0.01, 13.0)),
    ([(-INF, -1.0), (0.5, 2.0)], 0.4, (-2.0, 0.5)),
]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("spans", "scale", "places"), SETTINGS)
def test_probabilities(family: str, spans: Any, scale: float, places: tuple[float, ...]) -> None:
    for q in places:
        found = law(family, spans, scale, q)
        total = ref.normaliser(family, scale, spans, q, dps=30)
        low, high = max(spans[0][0], q - 37 * scale), min(spans[-1][1], q + 37 * scale)
        for part in (0.0, 1e-6, 0.01, 0.2, 0.45, 0.5, 0.55, 0.8, 0.99, 1.0):
            x = low + part * (high - low)
            below = mass(family, scale, q, spans, -INF, x) / total
            above = mass(family, scale, q, spans, x, INF) / total
            assert close(found.cdf(x), below), (q, x)
            assert close(found.sf(x), above), (q, x)
            exact = ref.log_density(family, scale, spans, q, x, dps=30)
            if mp.isinf(exact):
                assert found.logpdf(x) == -INF
                assert found.pdf(x) == 0.0
            else:
                assert abs(found.logpdf(x) - exact) <= RTOL * max(1, abs(exact)), (q, x)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("spans", "scale", "places"), SETTINGS)
def test_moments(family: str, spans: Any, scale: float, places: tuple[float, ...]) -> None:
    for q in places:
        found = law(family, spans, scale, q)
        exact = ref.moments(family, scale, spans, q, dps=20)
        size = mp.sqrt(exact.variance)
        assert abs(found.mean() - exact.mean) <= RTOL * size + mpf(2) ** -52 * abs(exact.mean)
        assert close(found.var(), exact.variance)
        assert found.std() == pytest.approx(float(size), rel=1e-10)
        report = found.error()
        assert close(report.mae, exact.absolute_error)
        assert abs(report.bias - (exact.mean - mpf(q))) <= RTOL * size
        assert report.rmse**2 == pytest.approx(report.bias**2 + report.sd**2, rel=1e-12)
        assert report.at_lower == report.at_upper == 0.0


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("spans", "scale", "places"), SETTINGS)
def test_quantiles_invert_the_cdf(family: str, spans: Any, scale: float, places: tuple[float, ...]) -> None:
    for q in places:
        found = law(family, spans, scale, q)
        size = min(scale, spans[-1][1] - spans[0][0])
        for lo, hi in spans:
            a, b = max(lo, q - 5 * scale), min(hi, q + 5 * scale)
            if not a < b:
                continue
            x = np.linspace(a, b, 41)[1:-1]  # the ends of a hole share their cdf
            p = found.cdf(x)
            known = (p > 0.0) & (p < 1.0 - 1e-7)
            # a quantile can be no better than the float of its probability: an ulp of p over the density
            blur = 4e-16 * p / np.maximum(found.pdf(x), 1e-300)
            miss = np.abs(found.ppf(p) - x)[known]
            assert np.all(miss <= (1e-9 * size + blur + 4e-16 * np.abs(x))[known])
        assert found.ppf(0.0) == spans[0][0]
        if len(spans) == 1:
            assert found.ppf(1.0) == pytest.approx(spans[-1][1], abs=1e-9 * size)
        assert found.cdf(found.ppf(1.0)) == pytest.approx(1.0, abs=1e-15)
        assert np.all(np.diff(found.ppf(np.linspace(0.0, 1.0, 201))) >= 0.0)


@pytest.mark.parametrize("family", FAMILIES)
def test_far_tails(family: str) -> None:
    for scale in (0.01, 0.05):
        found = law(family, [(0.0, 10.0)], scale, 3.0)
        for t in (5, 20, 30, 36, 600):
            for x in (3.0 - t * scale, 3.0 + t * scale):
                if 0 < x < 10:
                    assert close(found.cdf(x), mass(family, scale, 3.0, [(0.0, 10.0)], 0.0, x))
                    assert close(found.sf(x), mass(family, scale, 3.0, [(0.0, 10.0)], x, 10.0))
        p = 10.0 ** np.arange(-300, -1, 20)
        assert np.allclose(found.cdf(found.ppf(p)), p, rtol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_densities_integrate_to_one(family: str) -> None:
    for spans, scale, q in (([(0.0, 1.0)], 0.3, 0.2), ([(0.0, 1.0), (2.1, 4.0)], 0.7, 0.9)):
        for edges in ("truncate", "clamp"):
            found = law(family, spans, scale, q, edges=edges)
            total = sum(m for _, m in found.atoms)
            for lo, hi in spans:
                cuts = [lo, q, hi] if lo < q < hi else [lo, hi]
                with mp.workdps(15):
                    total += float(mp.quad(lambda x, f=found: mpf(float(f.pdf(float(x)))), cuts))
            assert total == pytest.approx(1.0, abs=1e-9)
            assert bool(found.atoms) is (edges == "clamp")


# --- clamped and ignored ---------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_clamped_on_an_interval(family: str) -> None:
    for scale, q in ((0.3, 0.2), (2.0, 1.0), (0.05, 0.0)):
        found = law(family, [(0.0, 1.0)], scale, q, edges="clamp")
        below, above = (ref.mass(family, scale, q, *ends, dps=30) for ends in ((-INF, 0), (1, INF)))
        atoms = dict(found.atoms)
        assert close(atoms[0.0], below)
        assert close(atoms[1.0], above)
        assert (found.error().at_lower, found.error().at_upper) == (atoms[0.0], atoms[1.0])
        for x in (0.0, 0.1, 0.5, 0.999):
            assert close(found.cdf(x), ref.mass(family, scale, q, -INF, x, dps=30))
            assert close(found.sf(x), ref.mass(family, scale, q, x, INF, dps=30))
        assert found.cdf(1.0) == 1.0
        assert found.sf(1.0) == 0.0
        assert found.ppf(float(below) / 2) == 0.0
        assert found.ppf(1 - float(above) / 2) == 1.0

        def density(x: Any, s: float = scale, q: float = q) -> Any:
            return mp.exp(ref.log_density(family, s, ref.LINE, q, x, dps=20))

        with mp.workdps(25):
            cuts = [mpf(0), mpf(q), mpf(1)] if 0 < q < 1 else [mpf(0), mpf(1)]
            cuts = sorted({*cuts, *(mpf(q) + k * mpf(scale) for k in (-3, 3) if 0 < q + k * scale < 1)})
            mean = mp.quad(lambda x: x * density(x), cuts) + above
            second = (
                mp.quad(lambda x, c=mean: (x - c) ** 2 * density(x), cuts) + above * (1 - mean) ** 2 + below * mean**2
            )
            distance = mp.quad(lambda x, q=q: abs(x - q) * density(x), cuts) + above * (1 - q) + below * q
        assert abs(found.mean() - mean) <= RTOL * mp.sqrt(second)
        assert close(found.var(), second)
        assert close(found.error().mae, distance)


@pytest.mark.parametrize("family", FAMILIES)
def test_clamped_probabilities_below_and_above_the_domain(family: str) -> None:
    for spans in ([(0.0, 1.0)], [(0.0, 1.0), (1.5, 3.0)]):
        found = law(family, spans, 0.5, 0.3, edges="clamp")
        assert found.cdf(-0.5) == found.cdf(-INF) == 0.0
        assert found.sf(-0.5) == found.sf(-INF) == 1.0
        assert found.cdf(7.0) == found.cdf(INF) == 1.0
        assert found.sf(7.0) == found.sf(INF) == 0.0
    whole = law(family, [(0, 9)], 2.0, 3, lattice=True, edges="clamp")
    assert (whole.cdf(-1), whole.sf(-1), whole.cdf(9), whole.sf(9)) == (0.0, 1.0, 1.0, 0.0)


@pytest.mark.parametrize("family", FAMILIES)
def test_clamped_on_spans(family: str) -> None:
    found = law(family, [(0.0, 1.0), (1.5, 3.0)], 0.5, 0.8, edges="clamp")
    atoms = dict(found.atoms)
    cuts = {0.0: (-INF, 0.0), 1.0: (1.0, 1.25), 1.5: (1.25, 1.5), 3.0: (3.0, INF)}
    assert set(atoms) == set(cuts)
    for point, (a, b) in cuts.items():
        assert close(atoms[point], ref.mass(family, 0.5, 0.8, a, b, dps=30))
    for x, cut in ((0.5, 0.5), (1.0, 1.25), (1.2, 1.25), (1.4, 1.25), (1.5, 1.5), (2.0, 2.0)):
        assert close(found.cdf(x), ref.mass(family, 0.5, 0.8, -INF, cut, dps=30))
        assert close(found.sf(x), ref.mass(family, 0.5, 0.8, cut, INF, dps=30))
    assert found.ppf(0.5 * (found.cdf(1.0) + found.cdf(0.999999))) == 1.0


@pytest.mark.parametrize("family", FAMILIES)
def test_ignored_edges(family: str) -> None:
    found = law(family, [(0.0, 1.0)], 0.5, 0.3, edges="ignore")
    assert found.mean() == pytest.approx(0.3, abs=1e-13)
    assert found.var() == pytest.approx(0.5 if family == "laplace" else 0.25, rel=1e-11)
    for x in (-3.0, -0.2, 0.3, 1.7):
        assert close(found.cdf(x), ref.mass(family, 0.5, 0.3, -INF, x, dps=30))
        assert abs(found.logpdf(x) - ref.log_density(family, 0.5, ref.LINE, 0.3, x, dps=30)) < 1e-12
    assert found.ppf(found.cdf(-2.0)) == pytest.approx(-2.0, abs=1e-9)


# --- integers --------------------------------------------------------------------------------

WHOLE = [
    ((0, 25), (0.05, 0.4, 3.0, 40.0), (0, 3, 25)),
    ((0, 1), (0.3, 5.0), (0, 1)),
    ((0, INF), (1.0, 20.0), (0, 6)),
    ((-INF, 5), (2.0,), (5, -3)),
    ((10**9, 10**9 + 50), (0.05, 4.0), (10**9, 10**9 + 20)),
]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("ends", "scales", "places"), WHOLE)
def test_integers(family: str, ends: tuple[float, float], scales: Any, places: Any) -> None:
    for scale in scales:
        for q in places:
            found = law(family, [ends], scale, q, lattice=True)
            total = ref.mass(family, scale, q, *ends, lattice=True, dps=30)
            steps = {0, 1, 2, round(2 * scale), round(6 * scale)}
            for x in {q + sign * k for k in steps for sign in (-1, 1)} | {e for e in ends if abs(e) < INF}:
                if not ends[0] <= x <= ends[1]:
                    assert found.pmf(x) == 0.0
                    continue
                exact = ref.log_density(family, scale, [ends], q, x, lattice=True, dps=30)
                assert abs(found.logpmf(x) - exact) <= RTOL * max(1, abs(exact))
                assert close(found.cdf(x), ref.mass(family, scale, q, ends[0], x, lattice=True, dps=30) / total)
                above = ref.mass(family, scale, q, x + 1, ends[1], lattice=True, dps=30) / total
                assert close(found.sf(x), above)
                if 1e-12 < found.cdf(x) < 1 - 1e-7:
                    assert found.ppf(found.cdf(x)) == x
            exact_moments = ref.moments(family, scale, [ends], q, True, dps=20)
            size = mp.sqrt(exact_moments.variance)
            assert abs(found.mean() - exact_moments.mean) <= RTOL * size + mpf(2) ** -52 * abs(exact_moments.mean)
            assert close(found.var(), exact_moments.variance)
            assert close(found.error().mae, exact_moments.absolute_error)
            if abs(ends[0]) < INF:
                assert found.error().at_lower == found.pmf(ends[0])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scale", [70.0, 1200.0])
def test_moments_on_integers_of_large_scale(family: str, scale: float) -> None:
    for ends, q in (((0, 1), 0), ((0, 25), 3)):
        found = law(family, [ends], scale, q, lattice=True)
        exact = ref.moments(family, scale, [ends], q, True, dps=20)
        assert abs(found.mean() - exact.mean) <= RTOL * exact.mean
        assert close(found.var(), exact.variance)
        assert close(found.error().mae, exact.absolute_error)


@pytest.mark.parametrize("family", FAMILIES)
def test_probabilities_on_integers_of_large_scale(family: str) -> None:
    for ends, q in (((0, 300), 3), ((0, INF), 10**6)):
        found = law(family, [ends], 80.0, q, lattice=True)
        total = ref.mass(family, 80.0, q, *ends, lattice=True, dps=30)
        for x in (ends[0], q - 500, q - 3, q, q + 40):
            if ends[0] <= x <= ends[1]:
                assert close(found.cdf(x), ref.mass(family, 80.0, q, ends[0], x, lattice=True, dps=30) / total)


@pytest.mark.parametrize("family", FAMILIES)
def test_quantiles_on_integers_in_the_tail(family: str) -> None:
    found = law(family, [(0, 30)], 0.4, 20, lattice=True)
    for x in range(10, 20):
        if found.cdf(x) > 1e-300:
            assert found.ppf(found.cdf(x)) == x


@pytest.mark.parametrize("family", FAMILIES)
def test_clamped_integers(family: str) -> None:
    found = law(family, [(0, 9)], 2.0, 7, lattice=True, edges="clamp")
    exact = [ref.mass(family, 2, 7, x, x, lattice=True, dps=30) for x in range(10)]
    exact[0] = ref.mass(family, 2, 7, -INF, 0, lattice=True, dps=30)
    exact[9] = ref.mass(family, 2, 7, 9, INF, lattice=True, dps=30)
    assert all(close(found.pmf(x), exact[x]) for x in range(10))
    mean = mp.fsum(x * p for x, p in enumerate(exact))
    assert abs(found.mean() - mean) <= RTOL
    assert close(found.var(), mp.fsum((x - mean) ** 2 * p for x, p in enumerate(exact)))
    assert close(found.error().mae, mp.fsum(abs(x - 7) * p for x, p in enumerate(exact)))
    report = found.error()
    assert (report.at_lower, report.at_upper) == (found.pmf(0), found.pmf(9))
    assert [found.ppf(found.cdf(x)) for x in range(9)] == list(range(9))


# --- arrays and oddities ---------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("edges", ["truncate", "clamp", "ignore"])
def test_arrays_broadcast(family: str, edges: str) -> None:
    q, x, p = np.array([0.0, 0.4, 1.0]), np.array([0.1, 0.5, 0.9, 1.0]), np.array([0.01, 0.3, 0.5, 0.999])
    many = law(family, [(0.0, 1.0)], 0.3, q[:, None], edges=edges)
    for method, argument in (("cdf", x), ("sf", x), ("logpdf", x), ("pdf", x), ("ppf", p)):
        table = getattr(many, method)(argument)
        assert table.shape == (3, 4)
        for i, single in enumerate(q):
            one = getattr(law(family, [(0.0, 1.0)], 0.3, single, edges=edges), method)
            assert np.allclose(table[i], [one(v) for v in argument], rtol=1e-14, atol=0.0)
            assert np.ndim(one(argument[0])) == 0
    flat = law(family, [(0.0, 1.0)], 0.3, q, edges=edges)
    assert flat.mean().shape == flat.var().shape == flat.error().rmse.shape == flat.error().at_lower.shape == (3,)
    means = [law(family, [(0.0, 1.0)], 0.3, v, edges=edges).mean() for v in q]
    assert np.allclose(flat.mean(), means, rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("edges", ["truncate", "clamp", "ignore"])
def test_nan_and_values_outside(family: str, edges: str) -> None:
    found = law(family, [(0.0, 1.0)], 0.3, 0.5, edges=edges)
    for method in ("cdf", "sf", "logpdf", "pdf", "ppf"):
        assert math.isnan(getattr(found, method)(math.nan))
    assert math.isnan(found.ppf(-0.1))
    assert math.isnan(found.ppf(1.1))
    if edges != "ignore":
        assert found.pdf(1.5) == 0.0
        assert found.logpdf(-0.1) == -INF
    if edges == "truncate":
        assert (found.cdf(-3.0), found.cdf(2.0), found.sf(-3.0), found.sf(2.0)) == (0.0, 1.0, 1.0, 0.0)
        assert (found.cdf(-INF), found.cdf(INF)) == (0.0, 1.0)
    with pytest.raises(ib.InboundsError):
        found.logpmf(0.5)
    with pytest.raises(ib.InboundsError):
        law(family, [(0, 9)], 1.0, 3, lattice=True).logpdf(3)
    whole = law(family, [(0, 9)], 1.0, 3, lattice=True)
    assert whole.pmf(2.5) == 0.0
    assert whole.cdf(2.5) == whole.cdf(2)
    assert math.isnan(whole.pmf(math.nan))


def test_a_true_value_outside_is_refused_and_not_shown() -> None:
    mechanism = ib.Laplace(ib.Interval(0, 1), scale=1.0, sensitivity=1.0)
    with pytest.raises(ib.OutsideDomain) as caught:
        mechanism.at(1.2345)
    assert "1.2345" not in str(caught.value)


@pytest.mark.parametrize("family", FAMILIES)
def test_boxes_are_products(family: str) -> None:
    mechanism = FAMILIES[family](ib.Box([0, 1], [10, 9]), scale=2.0, sensitivity=ib.L2(1.0))
    found = mechanism.at([3.0, 8.5])
    ones = [law(family, [(0.0, 10.0)], 2.0, 3.0), law(family, [(1.0, 9.0)], 2.0, 8.5)]
    assert found.logpdf([1.0, 4.0]) == pytest.approx(ones[0].logpdf(1.0) + ones[1].logpdf(4.0), rel=1e-13)
    assert found.cdf([1.0, 4.0]) == pytest.approx(ones[0].cdf(1.0) * ones[1].cdf(4.0), rel=1e-13)
    assert np.allclose(found.ppf([0.2, 0.7]), [ones[0].ppf(0.2), ones[1].ppf(0.7)])
    assert np.allclose(found.mean(), [one.mean() for one in ones])
    assert np.allclose(found.var(), [one.var() for one in ones])
    assert np.allclose(found.error().mae, [one.error().mae for one in ones])
    assert found.logpdf([-1.0, 4.0]) == -INF


@pytest.mark.parametrize("edges", ["truncate", "ignore"])
@pytest.mark.parametrize("denoised", [False, True])
def test_one_coordinate_of_a_box_has_the_law_of_the_whole(edges: str, denoised: bool) -> None:
    box = ib.Box([2.0, -INF, -5.0], [4.0, 3.0, INF])
    made: Any = ib.Laplace(box, scale=1.5, sensitivity=ib.L1(1.0), edges=edges)
    made = made.denoised() if denoised else made
    q = np.array([[2.5, 3.0], [3.5, 2.25]])
    for i in (0, 2):
        vectors = np.zeros((2, 2, 3))
        vectors[..., 0] = 3.0  # the others do not matter
        vectors[..., i] = q
        found, whole = made._marginal(i, q), made.at(vectors).marginals[i]
        assert np.array_equal(found.cdf(2.6), whole.cdf(2.6))
        assert np.array_equal(found.mean(), whole.mean())
        assert box.contains_all(box._along(i, q))


def test_far_quantiles_of_all_integers_do_not_overflow() -> None:
    law = ib.Gaussian(ib.Integers(-math.inf, math.inf), scale=100, sensitivity=1).at(0)
    assert law.cdf(-4000) == 0.0
    assert law.cdf(0) == pytest.approx(0.5 + 0.5 * law.pmf(0))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lattice", [False, True])
@pytest.mark.parametrize("edges", ["truncate", "clamp", "ignore"])
def test_quantiles_of_zero_and_one_are_the_ends(family: str, lattice: bool, edges: str) -> None:
    bounded = law(family, [(0, 30)], 2.0, 3, lattice=lattice, edges=edges)
    ends = [-INF, INF] if edges == "ignore" else [0.0, 30.0]
    assert bounded.ppf([0.0, 1.0]).tolist() == ends
    line = law(family, [(-INF, INF)], 2.0, 3, lattice=lattice, edges=edges)
    assert line.ppf([0.0, 1.0]).tolist() == [-INF, INF]
    if not lattice:  # spans so far away that they have no probability in floats
        far = law(family, [(0.0, 1.0), (1e6, 1e6 + 1.0), (2e6, 2e6 + 1.0)], 2.0, 1e6, edges=edges)
        assert far.ppf([0.0, 1.0]).tolist() == ([-INF, INF] if edges == "ignore" else [0.0, 2e6 + 1.0])


@pytest.mark.parametrize("edges", ["clamp", "ignore"])
@pytest.mark.parametrize("domain", [ib.Interval(0, 30), ib.Integers(0, 30)], ids=str)
def test_the_ends_of_noise_that_is_cut(domain: Any, edges: str) -> None:
    cut = ib.BoundedLaplace(domain, scale=2, bound=7, sensitivity=1, edges=edges).at(3)
    assert cut.ppf([0.0, 1.0]).tolist() == [-4.0 if edges == "ignore" else 0.0, 10.0]
    stairs = ib.Staircase(domain, sensitivity=1, epsilon=1.0, edges=edges).at(3)
    assert stairs.ppf([0.0, 1.0]).tolist() == ([-INF, INF] if edges == "ignore" else [0.0, 30.0])

"""Laplace noise cut at a bound: its law, its guarantee against brute force, its draws bit by bit, and bad input."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import inbounds as ib
from inbounds.noise import bounded as noises
from inbounds.sampling import inversion, laplace
from inbounds.sampling.bounded import BoundedKernel
from inbounds.sampling.entropy import Seeded
from tests import shifted_reference as ref

INF = math.inf
ALPHA = 1e-7
LINE, WHOLE = ib.Interval(-INF, INF), ib.Integers(-INF, INF)
SPANS = ib.Spans([(0.0, 10.0), (15.0, 30.0), (30.5, 31.0)])
PROBABILITIES = np.array([1e-12, 0.001, 0.02, 0.25, 0.5, 0.61, 0.9, 0.999, 1 - 1e-9])


def reference(m: ib.BoundedLaplace) -> ref.Cut:
    return ref.Cut(m.scale, Fraction(m.bound), m.domain.lattice)


def random_cuts(count: int, seed: int) -> list[tuple[int, float, int]]:
    """(sensitivity, scale, bound) on whole numbers."""
    rng = np.random.default_rng(seed)
    return [
        (int(rng.integers(1, 7)), float(np.exp(rng.uniform(-1, 4))), int(rng.integers(1, 30))) for _ in range(count)
    ]


# --- the noise ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "scale", "bound"), random_cuts(15, 1))
def test_whole_noise_is_what_it_is_defined_to_be(m: int, scale: float, bound: int) -> None:
    i, p = ref.pmf(ref.Cut(scale, Fraction(bound), True), bound + 3)
    made = ib.BoundedLaplace(WHOLE, scale=scale, bound=bound, sensitivity=m, edges="ignore")
    law = made.at(5)
    assert np.allclose(law.pmf(5 + i), p, rtol=1e-12, atol=0)
    assert np.allclose(law.cdf(5 + i), np.cumsum(p), rtol=1e-11)
    assert np.allclose(law.sf(5 + i - 1), np.cumsum(p[::-1])[::-1], rtol=1e-11)
    assert law.mean() == 5
    assert law.var() == pytest.approx(np.sum(p * i**2), rel=1e-12)
    assert law.error().mae == pytest.approx(np.sum(p * np.abs(i)), rel=1e-12)
    x = law.ppf(PROBABILITIES)
    assert (law.cdf(x) >= PROBABILITIES).all()
    assert (law.cdf(x - 1) < PROBABILITIES).all()
    assert (np.abs(x - 5) <= bound).all()
    assert law.ppf(0.0) == 5 - bound
    assert law.cdf(law.ppf(1.0)) == 1.0


def test_long_sums_are_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are too many whole numbers to add up, an integral and its first correction."""
    part = np.array([0.0, 1.0, 5.0, 1000.0, 1e5, INF])
    for scale, bound in ((3e4, 9e5), (1e6, 2e5), (2.5e4, 4e5)):
        added = noises.CutLaplace(scale, bound, lattice=True).moments_to(part)
        with monkeypatch.context() as patch:
            patch.setattr(noises, "_TABLE", 10)
            found = noises.CutLaplace(scale, bound, lattice=True).moments_to(part)
        for a, b in zip(added, found, strict=True):
            assert np.allclose(a, b, rtol=2e-12)


@pytest.mark.parametrize(("scale", "bound"), [(1.0, 3.0), (1.0, 30.0), (1e6, 1.0), (0.01, 5.0)])
def test_real_noise_is_what_it_is_defined_to_be(scale: float, bound: float) -> None:
    m = ib.BoundedLaplace(LINE, scale=scale, bound=bound, sensitivity=0.5, edges="ignore")
    exact, law = reference(m), m.at(0.0)
    t = min(scale, bound) * np.array([0.0, 1e-6, 0.3, 0.9, 0.999])
    true = np.array([float(ref.below(exact, -Fraction(x))) for x in t])
    assert np.allclose(law.cdf(-t), true, rtol=1e-12)
    assert np.array_equal(law.sf(t), law.cdf(-t))
    assert np.allclose(law.ppf(law.cdf(-t)), -t, rtol=1e-9, atol=1e-12 * bound)
    assert law.pdf(bound * 1.000001) == 0.0
    assert law.cdf(bound) == 1.0
    b, a = ref.exactly(scale), ref.exactly(bound)
    x = a / b
    # E t^2 and E|t| of the truncated exponential
    square = b**2 * (2 - mp.exp(-x) * (x**2 + 2 * x + 2)) / -mp.expm1(-x)
    size = b * (1 - mp.exp(-x) * (x + 1)) / -mp.expm1(-x)
    assert law.var() == pytest.approx(float(square), rel=1e-12)
    assert law.error().mae == pytest.approx(float(size), rel=1e-12)


@pytest.mark.parametrize("domain", [ib.Interval(0, 3), ib.Interval(-1, INF), SPANS], ids=str)
@pytest.mark.parametrize("bound", [1.5, 40.0])
def test_clamped_laws_of_reals(domain: Any, bound: float) -> None:
    m = ib.BoundedLaplace(domain, scale=2.0, bound=bound, sensitivity=0.5)
    for q in (domain.pieces[0][0], 2.5):
        law = m.at(q)
        ends = [x for piece in domain.pieces for x in piece if math.isfinite(x)]
        knots = np.unique(np.concatenate([np.linspace(q - bound, q + bound, 2001), [q], ends]))
        over, under = knots[knots >= q], knots[knots <= q]
        mean = ref.integral(law.sf, over) - ref.integral(law.cdf, under)
        square = ref.integral(lambda x, q=q, law=law: 2 * (x - q) * law.sf(x), over)
        square += ref.integral(lambda x, q=q, law=law: 2 * (q - x) * law.cdf(x), under)
        assert law.mean() - q == pytest.approx(mean, rel=1e-8, abs=1e-9)
        assert law.error().rmse ** 2 == pytest.approx(square, rel=1e-8)
        assert ref.integral(law.pdf, knots) + sum(mass for _, mass in law.atoms) == pytest.approx(1.0, abs=1e-8)
        reached = law.ppf(PROBABILITIES)
        assert domain.contains(reached).all()
        assert (law.cdf(reached) >= PROBABILITIES * (1.0 - 1e-9) - 1e-15).all()
        assert (law.cdf(np.nextafter(reached, -INF)) <= PROBABILITIES + 1e-9).all()


# --- the guarantee ------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "scale", "bound"), random_cuts(20, 2))
def test_the_guarantee_against_all_pairs(m: int, scale: float, bound: int) -> None:
    """Pure loss and delta over all pairs within the sensitivity; plain, and clamped to wide and narrow ranges."""
    i, p = ref.pmf(ref.Cut(scale, Fraction(bound), True), bound)
    line = np.arange(-bound, bound + m + 1)
    plain = np.array([np.interp(line - q, i, p, left=0.0, right=0.0) for q in range(m + 1)])
    widths = sorted({m, m + 1, max(m, bound - 1), max(m, bound), max(m, bound + 1), m + bound + 4})
    cases = [("ignore", m, plain), *(("clamp", w, ref.clamped(i, p, 0, w)) for w in widths)]
    for edges, width, rows in cases:
        made = ib.BoundedLaplace(ib.Integers(0, width), scale=scale, bound=bound, sensitivity=m, edges=edges)
        pairs = [(a, b) for a in range(len(rows)) for b in range(len(rows)) if 0 < abs(a - b) <= m]
        first, second = (np.array([rows[pair[k]] for pair in pairs]) for k in range(2))
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = float(np.nanmax(np.log(first / second)))
        assert made.epsilon().exact
        assert made.epsilon() == (INF if math.isinf(loss) else pytest.approx(loss, rel=1e-9))
        if math.isfinite(loss):
            assert made.epsilon() >= loss * (1.0 - 1e-13)
        for epsilon in (0.0, 0.3 * m / scale, 0.9999 * m / scale, m / scale, 1.0001 * m / scale, 3.0 * m / scale, 6.0):
            true = float(np.max(np.sum(np.maximum(first - math.exp(epsilon) * second, 0.0), axis=1)))
            found = made.delta(epsilon)
            assert found.exact
            assert found == pytest.approx(true, rel=1e-8, abs=1e-13)
            assert found >= true * (1.0 - 1e-12) - 1e-15
        if math.isfinite(loss):
            terms = np.where(first > 0.0, first**3.0 * np.where(second > 0.0, second, 1.0) ** -2.0, 0.0)
            assert made.rdp(3.0) >= np.log(np.max(np.sum(terms, axis=1))) / 2.0 * (1.0 - 1e-12)
            assert made.gdp() < INF


def test_reals_against_the_definition() -> None:
    """The integral of (p - e^epsilon p')_+ at the worst shift, at 60 digits: never more than is reported."""
    rng = np.random.default_rng(4)
    for _ in range(60):
        scale, gap = (float(np.exp(rng.uniform(-2, 2))) for _ in range(2))
        bound = float(gap * np.exp(rng.uniform(-0.6, 3)))
        m = ib.BoundedLaplace(LINE, scale=scale, bound=bound, sensitivity=gap)
        exact = reference(m)
        b, d, a = ref.exactly(scale), ref.exactly(gap), ref.exactly(bound)
        for epsilon in (0.0, 0.4 * gap / scale, gap / scale * (1 - 1e-9), gap / scale, 2.0 * gap / scale):
            e = ref.exactly(epsilon)
            cut = d - a
            if e < d / b:
                cut = max(cut, (d - b * e) / 2)
            cut = Fraction(int(mp.nint(min(cut, a) * mpf(2) ** 180)), 1 << 180)
            true = ref.below(exact, cut) - mp.exp(e) * ref.below(exact, cut - Fraction(gap))
            found = mpf(float(m.delta(epsilon)))
            assert true * (1 - mpf(2) ** -100) <= found <= true * (1 + mpf(2) ** -32) + mpf(2) ** -47 * (1 + d / b)
        assert m.epsilon() == INF


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.5, 0.1, 1e-3, 1e-9, 1e-60])
def test_calibration_is_the_published_bound(epsilon: float, delta: float) -> None:
    m = ib.BoundedLaplace.calibrate(LINE, sensitivity=2.0, epsilon=epsilon, delta=delta)
    e, d = (ref.exactly(min(Fraction(x), Fraction(repr(x)))) for x in (epsilon, delta))
    published = 2 / e * mp.log(1 + mp.expm1(e) / (2 * d))
    assert m.scale == pytest.approx(2.0 / epsilon, rel=1e-11)
    assert m.bound == pytest.approx(float(published), rel=1e-8)
    assert m.delta(epsilon) <= delta
    assert m.delta(epsilon) == pytest.approx(delta, rel=1e-8)
    # at 60 digits, on either reading of the target
    b, a = ref.exactly(m.scale), ref.exactly(m.bound)
    assert 2 / b <= e
    assert mp.exp(-a / b) * mp.expm1(2 / b) / (2 * -mp.expm1(-a / b)) <= d


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 2.0, 9.0])
@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-6])
@pytest.mark.parametrize("m", [1, 4])
def test_calibration_on_whole_numbers_is_the_smallest(m: int, epsilon: float, delta: float) -> None:
    made = ib.BoundedLaplace.calibrate(WHOLE, sensitivity=m, epsilon=epsilon, delta=delta)
    assert made.delta(epsilon) <= delta
    if made.bound > 1:
        less = ib.BoundedLaplace(WHOLE, scale=made.scale, bound=made.bound - 1, sensitivity=m)
        assert less.delta(epsilon) > delta


@pytest.mark.parametrize("change", [2**35, 2**43])
def test_calibration_on_many_whole_numbers_takes_few_trials(change: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left to rounding is more than a hundred thousand steps of 1."""
    domain, tried = ib.Integers(0, 2**53), []
    first = ib.BoundedLaplace.__init__

    def counted(self: Any, *given: Any, **more: Any) -> None:
        tried.append(more["bound"])
        assert len(tried) < 100
        first(self, *given, **more)

    monkeypatch.setattr(ib.BoundedLaplace, "__init__", counted)
    made = ib.BoundedLaplace.calibrate(domain, sensitivity=change, epsilon=1e-2, delta=1e-6)
    assert made.delta(1e-2) <= 1e-6
    less = ib.BoundedLaplace(domain, scale=made.scale, bound=made.bound - 1, sensitivity=change)
    assert less.delta(1e-2) > 1e-6


def test_a_bound_that_whole_numbers_do_not_hold_is_refused() -> None:
    with pytest.raises(ib.ParameterError, match=r"bound must be a whole number in \[1, 9007199254740992\]"):
        ib.BoundedLaplace.calibrate(ib.Integers(0, 2**53), sensitivity=2**45, epsilon=1e-2, delta=1e-6)


def test_clamping_to_a_narrow_range_gives_pure_privacy() -> None:
    wide = ib.BoundedLaplace.calibrate(ib.Interval(0, 100), sensitivity=1.0, epsilon=1.0, delta=1e-6)
    narrow = ib.BoundedLaplace(ib.Interval(0, 5), scale=wide.scale, bound=wide.bound, sensitivity=1.0)
    open_ = ib.BoundedLaplace(ib.Interval(0, 5), scale=wide.scale, bound=wide.bound, sensitivity=1.0, edges="ignore")
    assert 1.0 < narrow.epsilon() < 1.001
    assert narrow.delta(1.1) == 0.0
    assert narrow.rdp(2.0) < 1.0
    assert narrow.delta(0.9) == pytest.approx(open_.delta(0.9))
    for m in (wide, open_):
        for cost in (m.epsilon(), m.rdp(2.0), m.zcdp(), m.gdp()):
            assert cost == INF
            assert cost.exact
            assert "only one of two answers" in cost.reason
        assert m.epsilon(1e-9) == INF
        assert m.epsilon(1e-6) == pytest.approx(1.0, rel=1e-6)
        assert m.epsilon(1e-2) < 1.0
    spans = ib.BoundedLaplace(SPANS, scale=1.0, bound=5.0, sensitivity=1.0)
    assert not spans.delta(0.5).exact


def test_a_bound_below_the_sensitivity() -> None:
    apart = ib.BoundedLaplace(LINE, scale=1.0, bound=1.0, sensitivity=2.5)
    assert apart.delta(3.0) == 1.0
    touching = ib.BoundedLaplace(WHOLE, scale=1.0, bound=1, sensitivity=3, edges="ignore")
    assert touching.delta(3.0) == 1.0
    near = ib.BoundedLaplace(WHOLE, scale=1.0, bound=1, sensitivity=2, edges="ignore")
    ends = math.exp(-1.0) / (1.0 + 2.0 * math.exp(-1.0))
    assert near.delta(0.0) == pytest.approx(1.0 - ends)  # one output in common


@pytest.mark.parametrize("edges", ["clamp", "ignore"])
@pytest.mark.parametrize("domain", [ib.Interval(0, 3), ib.Interval(2, INF), ib.Integers(0, 40), SPANS], ids=str)
def test_audits(domain: Any, edges: str) -> None:
    m = ib.BoundedLaplace.calibrate(domain, sensitivity=2, epsilon=0.8, delta=0.01, edges=edges)
    assert ib.audit(m, epsilon=0.8, delta=0.01).proven
    assert ib.audit(m, epsilon=0.8, delta=float(m.delta(0.8)) * 0.999).refuted
    assert ib.audit(m, epsilon=0.4, delta=float(m.delta(0.4)) * 1.001).proven
    assert ib.audit(m, epsilon=0.4, delta=float(m.delta(0.4)) * 0.999).refuted
    found = ib.audit(m, epsilon=5.0)
    assert found.refuted if math.isinf(m.epsilon()) else found.proven
    if found.refuted:
        assert found.witness.loss == INF
        assert found.to_dict()["witness"]["loss"] == "inf"


# --- draws --------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [1, 9, 400])
@pytest.mark.parametrize("scale", [0.05, 3.0, 1e5])
@pytest.mark.parametrize("domain", [LINE, WHOLE], ids=["reals", "whole"])
def test_draws_are_the_inverse_of_their_bits(domain: Any, scale: float, bound: int) -> None:
    rng = np.random.default_rng(7)
    mp.dps = 90
    size = float(bound) if domain.lattice else bound * 1.1
    m = ib.BoundedLaplace(domain, scale=scale, bound=size, sensitivity=1, edges="ignore")
    exact, g = reference(m), m.grid
    for q in (7.0,) if domain.lattice else (0.0, 2.7182818, -1234.567):
        spread = m._noise.mean_size()
        near = [round(q / g) + round(x * spread / g) for x in (0.0, 0.4, -1.0)] + [math.floor((q + size) / g) - 1]
        words = ref.awkward_words(exact, q, g, near, [52, 66, 150])
        words += [[int(w) for w in rng.integers(0, 2**64, 4, dtype=np.uint64)] for _ in range(3)]
        for each in words:
            ref.check_draw(exact, m._sampler, q, each)


def test_positions_are_within_their_margins() -> None:
    """What the fast path computes before it rounds, against 60 digits; true values far larger than the bound too."""
    rng = np.random.default_rng(12)
    for case in range(16):
        scale, bound = (float(np.exp(rng.uniform(-6, 6))) for _ in range(2))
        lattice = case % 2 == 1
        bound = float(math.ceil(bound)) if lattice else bound
        q = float(rng.integers(-(10**6), 10**6)) if lattice else float(rng.normal() * 1e5)
        step = 1.0 if lattice else 2.0 ** math.floor(math.log2(min(scale, bound)) - 24.0)
        kernel = BoundedKernel(scale, bound, step, discrete=lattice)
        exact = ref.Cut(scale, Fraction(bound), lattice)
        whole = exact.tail(Fraction(0)) + exact.tail(Fraction(int(lattice)))
        words = [int(w) for w in rng.integers(2**50, 2**64 - 2**50, 24, dtype=np.uint64)]
        work = inversion.Work(len(words))
        work.q[:], work.words[:] = q, words
        kept: list[Any] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(laplace, "round_to_cell", lambda w, f, kept=kept: kept.append((w.f + 0.0, w.v + 0.0)))
            kernel.many(work, kernel.frame, Seeded(2))
        b = ref.exactly(scale)
        for n, from_, v in zip(words, *kept[0], strict=True):
            U = Fraction(2 * n + 1, 1 << 65)
            mass = ref.exactly(min(U, 1 - U)) * whole
            if lattice:  # tails are (e^(-t/b) - e^(-(bound+1)/b)) / (1 - e^(-1/b)), and t - 1/2 is rounded
                t = -b * mp.log(mass * -mp.expm1(-1 / b) + mp.exp(-ref.exactly(bound + 1) / b)) - mpf(1) / 2
            else:
                t = -b * mp.log(mass / b + mp.exp(-ref.exactly(bound) / b))
            true = ((t if 2 * U > 1 else -t) + ref.exactly(q)) / ref.exactly(kernel.frame.step)
            assert abs(mpf(float(from_)) + mpf(float(v)) - true) <= kernel.frame.margin


CASES = {
    "interval": (ib.Interval(0, 3), "clamp", 0.7),
    "line": (LINE, "ignore", -4.3),
    "half-line": (ib.Interval(0, INF), "clamp", 0.2),
    "spans": (SPANS, "clamp", 9.0),
    "whole": (ib.Integers(0, 20), "clamp", 4),
    "all whole": (WHOLE, "ignore", 4),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("bound", [3, 14])
def test_releases_follow_the_law(name: str, bound: int) -> None:
    domain, edges, q = CASES[name]
    m = ib.BoundedLaplace(domain, scale=2.5, bound=bound, sensitivity=2, edges=edges)
    drawn = m.release(np.full(200_000, q)).value
    assert edges == "ignore" or domain.contains(drawn).all()
    assert isinstance(domain, ib.Spans) or np.max(np.abs(drawn - q)) <= bound + m.grid / 2
    assert ref.chi_square(drawn, reference(m), m, q) > ALPHA
    for scale, other in ((2.5 * 1.15, bound), (2.5, bound * 0.5 if not domain.lattice else bound // 2)):
        wrong = ib.BoundedLaplace(domain, scale=scale, bound=other, sensitivity=2, edges=edges)
        if other == bound or bound < 14:
            assert ref.chi_square(drawn, reference(wrong), m, q) < ALPHA


def test_arrays_and_single_values_take_the_same_bits() -> None:
    for domain, edges, q in CASES.values():
        m = ib.BoundedLaplace(domain, scale=2.5, bound=6, sensitivity=2, edges=edges)
        for word in np.random.default_rng(3).integers(2**50, 2**64 - 2**50, 200, dtype=np.uint64).tolist():
            one = m._sampler.one(q, ref.Words([word]))
            assert one == m._sampler.draw(np.array([q]), ref.Words([word]))[0]


def test_answers_lie_on_one_grid() -> None:
    m = ib.BoundedLaplace.calibrate(ib.Interval(-1, 1), sensitivity=0.1, epsilon=1.0, delta=1e-3)
    for q in (0.1, 0.101, 0.125, 0.126):
        k = m.release(np.full(200_000, q)).value / m.grid
        assert (k == np.round(k)).all()
        counts = np.bincount((k.astype(np.int64) & 15), minlength=16)
        assert np.max(np.abs(counts - 12_500.0)) < 6.0 * math.sqrt(12_500.0)


# --- a value like any other; bad input -----------------------------------------------------------


def test_is_a_value() -> None:
    for domain, edges, q in CASES.values():
        m = ib.BoundedLaplace.calibrate(domain, sensitivity=2, epsilon=1.3, delta=0.01, edges=edges)
        assert eval(repr(m), {**vars(ib), "inf": INF}) == m
        for twin in (pickle.loads(pickle.dumps(m)), copy.copy(m), copy.deepcopy(m)):
            assert twin == m
            assert hash(twin) == hash(m)
        assert m != ib.BoundedLaplace(domain, scale=m.scale * 2, bound=m.bound, sensitivity=2, edges=edges)
        for name in ("domain", "bound", "scale", "edges", "something_new"):
            with pytest.raises(AttributeError):
                setattr(m, name, 1.0)
        a, b, c = (m.simulate(q, size=40, seed=seed) for seed in (1, 1, 2))
        assert np.array_equal(a, b)
        assert not np.array_equal(a, c)
        assert type(m.release(q).value) is (int if domain.lattice else float)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"domain": (0, 1)}, ib.ParameterTypeError, "domain must be"),
        ({"domain": ib.Box([0], [1]), "sensitivity": ib.L1(1)}, ib.ParameterError, "Use Laplace or Gaussian for a Box"),
        ({"edges": "truncate"}, ib.ParameterError, "does not keep its guarantee"),
        ({"scale": 0.0}, ib.ParameterError, "scale must be"),
        ({"scale": math.nan}, ib.ParameterError, "scale must be"),
        ({"bound": 0.0}, ib.ParameterError, "bound must be"),
        ({"bound": math.nan}, ib.ParameterError, "bound must be"),
        ({"bound": "far"}, ib.ParameterTypeError, "bound must be"),
        ({"bound": 1.5, "domain": ib.Integers(0, 9)}, ib.ParameterError, "bound must be a whole number"),
        ({"sensitivity": 2.0}, ib.ParameterError, "capped by the domain"),
        ({"granularity": 0.3}, ib.ParameterError, "power of two"),
    ],
)
def test_bad_input(change: dict[str, Any], kind: type[Exception], message: str) -> None:
    given = {"domain": ib.Interval(0, 1), "scale": 1.0, "bound": 3.0, "sensitivity": 1.0} | change
    with pytest.raises(kind, match=message):
        ib.BoundedLaplace(given.pop("domain"), **given)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"epsilon": 0.0}, ib.ParameterError, "epsilon must be"),
        ({"epsilon": math.nan}, ib.ParameterError, "epsilon must be"),
        ({"epsilon": None}, ib.ParameterTypeError, "epsilon must be"),
        ({"delta": 0.0}, ib.ParameterError, "Without delta there is no bound"),
        ({"delta": 0.7}, ib.ParameterError, "delta must be"),
        ({"delta": math.nan}, ib.ParameterError, "delta must be"),
        ({"edges": "truncate"}, ib.ParameterError, "does not keep its guarantee"),
        ({"sensitivity": -1.0}, ib.ParameterError, "sensitivity must be"),
    ],
)
def test_bad_targets(change: dict[str, Any], kind: type[Exception], message: str) -> None:
    given = {"sensitivity": 1.0, "epsilon": 1.0, "delta": 1e-6} | change
    with pytest.raises(kind, match=message):
        ib.BoundedLaplace.calibrate(ib.Interval(0, 1), **given)


def test_docstring_examples_run() -> None:
    import doctest

    import inbounds.mechanism.bounded as module

    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0

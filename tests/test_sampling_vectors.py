"""Forced bits: every case of ``vectors/sampling.json`` and, in the long tests, a hundred thousand more, all exact.

The reference decides in ball arithmetic, from the definition, which value a bit string releases. Before the sampler is
held against it, it is held against slower ways of its own: quadrature and term-by-term sums with mpmath, a different
summation formula, scans over all cells, and the package's distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise, permutations
from random import Random
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from mpmath import mp, mpf

import inbounds as ib
from inbounds.sampling import sampler
from tests import sampling_reference as ref
from tests.common import MECHANISMS
from tests.sampling_reference import INF, Setting, answer, holds, law, points
from tests.vectors import make_sampling as make
from tests.vectors.make_sampling import BoxVector, Config, Vector

VECTORS, BOXES, GRIDS = make.load()
LONG_BLOCKS, LONG_BLOCK = 56, 1_800
NARROW_BLOCKS, NARROW_BLOCK = 24, 1_000
SLOWEST = 500  # words that no case comes near to needing

UNIT = ((0.0, 1.0),)
HOLES = ((0.0, 2.0), (5.0, 6.0), (9.0, INF))


def domain_of(config: Config) -> Any:
    if "box" in config.kind:
        lower, upper = zip(*config.pieces, strict=True)
        return ib.Box(lower, upper, integer=config.lattice)
    if config.kind == "spans":
        return ib.Spans(config.pieces)
    return (ib.Integers if config.lattice else ib.Interval)(*config.pieces[0])


@lru_cache(maxsize=32)
def sampler_of(config: Config) -> Any:
    return sampler(config.family, domain_of(config), config.scale, config.edges, granularity=config.granularity)


class Words:
    """A source that gives the bits of a case, then random ones that must not matter."""

    def __init__(self, bits: int, count: int, seed: int) -> None:
        self._words = [(bits >> shift) & make.ONES for shift in range(count - 64, -1, -64)]
        self._more = Random(seed)
        self.used = 0

    def word(self) -> int:
        self.used += 1
        assert self.used < SLOWEST, "the sampler reads on and on"
        return self._words[self.used - 1] if self.used <= len(self._words) else self._more.getrandbits(64)

    def fill(self, words: Any) -> None:
        words[...] = np.array([self.word() for _ in range(words.size)], dtype=np.uint64).reshape(words.shape)


class Many:
    """A source for many values: the i-th one reads its own first word, then the same further word again and again."""

    def __init__(self, first: Any, more: int) -> None:
        self._first = np.asarray(first, dtype=np.uint64).ravel()
        self._more = more
        self._at = 0

    def fill(self, words: Any) -> None:
        words[...] = self._first[self._at : self._at + words.size].reshape(words.shape)
        self._at += words.size

    def word(self) -> int:
        return self._more


class OneOfMany:
    """What one value of :class:`Many` reads when it is drawn alone."""

    def __init__(self, first: int, more: int) -> None:
        self._next, self._more = int(first), more

    def word(self) -> int:
        found, self._next = self._next, self._more
        return found

    def fill(self, words: Any) -> None:
        assert words.size == 1
        words[...] = self.word()


def draw(vector: Vector) -> float:
    drawing = sampler_of(vector.config)
    q = np.array([vector.case.q])
    if "box" in vector.config.kind:
        q = q[None, :]
    got = drawing.draw(q, Words(vector.case.bits, vector.case.count, 1))
    assert got.shape == q.shape
    return as_stored(got.item(), vector)


def one(vector: Vector) -> float:
    got = sampler_of(vector.config).one(vector.case.q, Words(vector.case.bits, vector.case.count, 2))
    return as_stored(got, vector)


def as_stored(got: float | int, vector: Vector) -> float:
    """The nearest float; answers that are none are whole numbers beyond 2^53 (``test_exact_values.py`` has these)."""
    assert type(got) is float or (vector.config.lattice and type(got) is int and abs(got) > 2**53)
    return float(got)


def wrong(vector: Vector, ways: tuple[Callable[[Vector], float], ...] = (draw, one)) -> list[str]:
    """What the sampler gives that the reference does not, as text."""
    found = []
    if "box" in vector.config.kind:
        ways = (draw,)
    for way in ways:
        try:
            got = way(vector).hex()  # as text: 0.0 and -0.0 differ, and -0.0 would tell from where 0 was reached
        except Exception as error:  # the other cases are worth knowing all the same
            got = f"{type(error).__name__}: {error}"
        if got != vector.value.hex():
            found.append(
                f"{way.__name__}: {got}, not {vector.value.hex()} = {vector.value!r}: {vector.mode} {vector.config} "
                f"q={vector.case.q!r} bits={vector.case.bits:#x} of {vector.case.count}"
            )
    return found


def report(found: list[str], checked: int) -> None:
    assert not found, f"{len(found)} wrong answers to {checked} cases\n" + "\n".join(found[:10])


# --- the sampler -------------------------------------------------------------------------------


@pytest.mark.thinned(5)
@pytest.mark.parametrize("shape", make.SHAPES)
@pytest.mark.parametrize("family", make.FAMILIES)
def test_committed_vectors(family: str, shape: str) -> None:
    chosen = [v for v in VECTORS if (v.config.family, v.config.shape) == (family, shape)]
    assert len(chosen) >= 50
    report([line for v in chosen for line in wrong(v)], len(chosen))


@pytest.mark.parametrize("config", [c for c in GRIDS if c.edges == "truncate"], ids=lambda c: f"{c.kind}-{c.family}")
def test_grid(config: Config) -> None:
    assert tuple(np.atleast_1d(sampler_of(config).grid)) == GRIDS[config]


@pytest.mark.parametrize("config", sorted({b.config for b in BOXES}, key=repr), ids=lambda c: f"{c.kind}-{c.family}")
def test_committed_boxes(config: Config) -> None:
    """Each coordinate reads a word of its own; the order in which a box deals them out is its affair, but fixed."""
    chosen = [b for b in BOXES if b.config == config]
    assert len(chosen) == 6

    def draws(b: BoxVector, order: tuple[int, ...]) -> bool:
        got = sampler_of(config).draw(np.array([b.q]), Many([b.first[i] for i in order], b.more))
        return [float(x).hex() for x in got[0].tolist()] == [x.hex() for x in b.values]

    orders = permutations(range(len(config.pieces)))
    assert any(all(draws(b, order) for b in chosen) for order in orders), f"in no order of the words: {config}"


BATCHES = [
    Config("laplace", "interval", ((0.0, 10.0),), 1.0, "truncate"),
    Config("laplace", "interval", ((-1.0, 1.0),), 0.1, "clamp"),
    Config("laplace", "spans", ((0.0, 1.0), (2.5, 4.0), (9.0, 11.0)), 1.5, "truncate"),
    Config("laplace", "integers", ((-5.0, INF),), 20.0, "truncate"),
    Config("gaussian", "interval", ((0.0, 1.0),), 0.3, "truncate"),
    Config("gaussian", "interval", ((0.0, INF),), 2.0, "ignore"),
    Config("gaussian", "spans", ((-INF, 0.0), (2.5, 4.0)), 1.5, "clamp"),
    Config("gaussian", "integers", ((0.0, 300.0),), 30.0, "truncate"),
    Config("gaussian", "integers", ((0.0, 1e6),), 500.0, "clamp"),
]


@pytest.mark.parametrize("config", BATCHES, ids=lambda c: f"{c.family}-{c.kind}-{c.edges}")
def test_batches_equal_single_draws(config: Config) -> None:
    """In one draw, whatever stands next to it and on either side of a chunk's border, a value is what it is alone."""
    rng = Random(7)
    (setting,) = config.settings
    n, more = 40_000, rng.getrandbits(64)
    q = np.array([make.true_value(rng, setting) for _ in range(200)])[np.array([rng.randrange(200) for _ in range(n)])]
    first = np.array([rng.getrandbits(64) for _ in range(n)], dtype=np.uint64)
    # Ends of cells and tails: at the borders of chunks, and some anywhere.
    special = [0, 16_382, 16_383, 16_384, 16_385, 32_767, 32_768, n - 1, *(rng.randrange(n) for _ in range(60))]
    for i in special:
        first[i] = make.first_word(rng, setting, float(q[i]))
    drawing = sampler_of(config)
    whole = drawing.draw(q, Many(first, more))
    alone = [drawing.one(float(x), OneOfMany(u, more)) for x, u in zip(q.tolist(), first.tolist(), strict=True)]
    assert whole.tolist() == alone
    for size in (16_383, 16_384, 16_385):
        assert np.array_equal(drawing.draw(q[:size], Many(first, more)), whole[:size])
    shaped = drawing.draw(q.reshape(8, 50, 100), Many(first, more))
    assert np.array_equal(shaped, whole.reshape(8, 50, 100))
    for i in [*special, *range(0, n, 400)]:
        assert float(whole[i]) == make.expected(setting, float(q[i]), int(first[i]), more), i
        assert whole[i] == drawing.draw(q[i : i + 1], OneOfMany(first[i], more))[0], i


@pytest.mark.parametrize("family", make.FAMILIES)
@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("edges", make.EDGES)
def test_boxes_equal_their_coordinates(family: str, integer: bool, edges: str) -> None:
    """All values read the same words here: in which order a box deals them out over many rows is its own affair."""
    rng = Random(8)
    box = ib.Box([0, -1000, -INF], [3, 1000, INF], integer=integer)
    scale, rows = 2.0, 6_000
    q = np.array([[rng.randint(0, 3), rng.randint(-1000, 1000), rng.randint(-9, 9)] for _ in range(rows)], np.float64)
    for first in (rng.getrandbits(64), rng.getrandbits(40), 2**63):
        more = rng.getrandbits(64)
        got = sampler(family, box, scale, edges).draw(q, Many(np.full(q.size, first, np.uint64), more))
        for i in range(3):
            coordinate = sampler(family, box.coordinate(i), scale, edges)
            expected = coordinate.draw(q[:, i], Many(np.full(rows, first, np.uint64), more))
            assert np.array_equal(got[:, i], expected)


@pytest.mark.long
@pytest.mark.parametrize("block", range(LONG_BLOCKS))
def test_many_vectors(block: int) -> None:
    """Settings, true values and bits at random, a block at a time: 100,800 cases in all."""
    assert LONG_BLOCKS * LONG_BLOCK >= 100_000
    checked, found = 0, []
    for vector in make.random_cases(block, LONG_BLOCK):
        # Deciding a Gaussian case exactly takes its time: there the two ways take turns.
        found += wrong(vector, (draw, one) if vector.config.family == "laplace" else ((draw, one)[checked % 2],))
        checked += 1
    assert checked == LONG_BLOCK
    report(found, checked)


@pytest.mark.parametrize(
    ("block", "count"),
    [(0, 400), (1, 400), *(pytest.param(b, NARROW_BLOCK, marks=pytest.mark.long) for b in range(2, 2 + NARROW_BLOCKS))],
)
def test_narrow_spans(block: int, count: int) -> None:
    """Many pieces within one scale, or within a 10^12th of it; 24,000 cases in the long tests."""
    assert NARROW_BLOCKS * NARROW_BLOCK >= 20_000
    found, kernels = [], set()
    for vector in make.random_cases(block, count, configs=make.narrow_spans):
        found += wrong(vector)
        kernels.add(type(sampler_of(vector.config)._kernel).__name__)
    report(found, count)
    assert kernels == {"LaplaceOnShortSpans", "GaussianOnSpans"}


# --- the cases ---------------------------------------------------------------------------------


def test_every_kind_is_covered() -> None:
    assert len(VECTORS) >= 3_000
    have = {(v.config.family, v.config.shape, v.config.edges, v.mode) for v in VECTORS}
    holes = ("hole below", "hole above")
    modes = [mode for mode in make.MODES if mode not in (*holes, "half")]  # those need a hole, or a symmetric law
    for family in make.FAMILIES:
        for edges in make.EDGES:
            for mode in modes:
                assert all((family, shape, edges, mode) in have for shape in make.SHAPES), (family, edges, mode)
            for shape in ("interval", "line", "spans", "box"):
                assert (family, shape, edges, "half") in have
        for edges in ("truncate", "clamp"):
            assert {(family, shape, edges, mode) for shape in ("spans", "unbounded spans") for mode in holes} <= have
    assert {(b.config.family, b.config.edges, b.config.lattice) for b in BOXES} == {
        (family, edges, lattice) for family in make.FAMILIES for edges in make.EDGES for lattice in (False, True)
    }


@pytest.mark.more
def test_the_file_is_what_the_script_writes() -> None:
    assert make.PATH.read_text(encoding="utf-8") == make.dump(*make.chosen_cases())
    assert make.PATH.stat().st_size < 600_000


def test_random_cases_are_a_function_of_the_seed() -> None:
    assert list(make.random_cases(3, 40)) == list(make.random_cases(3, 40))
    assert list(make.random_cases(3, 40)) != list(make.random_cases(4, 40))


def test_neighbouring_values_are_rejected() -> None:
    """Each stored value holds; the values of the two cells beside it do not, nor does one between them."""
    checked = 0
    for v in VECTORS:
        assert holds(v.case, v.value)
        grid = points(v.case.setting)
        first, last = grid.indices(v.value) or (0, -1)
        before = grid.before(first)
        beside = [] if before is None else [grid.value(before)]
        if grid.upper(last) is not None:
            after = next(k for k in (last + 1, *(int(a) for a, _ in grid.runs if a > last)) if grid.has(k))
            beside.append(grid.value(after))
        for value in beside:
            assert value != v.value
            assert not holds(v.case, value), v
            checked += 1
        assert not holds(v.case, math.nan)
        if v.case.setting.grid < 1e30 and abs(v.value) < 2**51 * v.case.setting.grid:
            assert not holds(v.case, v.value + v.case.setting.grid / 2)
    assert checked > len(VECTORS)


@pytest.mark.parametrize("slip", ["off by a cell", "wrong scale"])
def test_a_wrong_sampler_is_noticed(slip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison itself can fail: a sampler one cell off, or whose scale is wrong by 1e-12, does not pass."""
    chosen = [v for v in VECTORS if v.config.kind == "interval" and v.config.pieces == ((0.0, 10.0),)]
    assert not any(wrong(v) for v in chosen)
    if slip == "off by a cell":
        right = sampler_of

        class Off:
            def __init__(self, config: Config) -> None:
                self._inner = right(config)

            def draw(self, q: Any, source: Any) -> Any:
                return self._inner.draw(q, source) + self._inner.grid

            def one(self, q: float, source: Any) -> float:
                return float(self._inner.one(q, source) + self._inner.grid)

        monkeypatch.setitem(globals(), "sampler_of", Off)
        assert all(wrong(v) for v in chosen)
    else:
        off = [
            Config(c.family, c.kind, c.pieces, c.scale * (1 + 1e-12), c.edges, GRIDS[c][0])
            for c in (v.config for v in chosen)
        ]
        changed = [Vector(c, v.mode, v.case, v.value) for c, v in zip(off, chosen, strict=True)]
        assert any(wrong(v) for v in changed)


# --- the reference -----------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _balls() -> Iterator[None]:
    """Balls in the tests themselves are not rounded to 53 bits."""
    with ctx.workprec(512):
        yield


def near(ball: Any, value: Any, digits: int = 40) -> bool:
    """Whether all of a ball lies within 10^-digits, relatively, of a value known to more digits."""
    return bool(abs(ball / arb(mp.nstr(value, 58)) - 1) < arb(10) ** -digits)


@pytest.mark.parametrize("sigma", [6.0, 9.7, 40.0, 63.9, 64.0, 127.9, 128.0, 300.0])
def test_two_ways_to_sum_agree(sigma: float) -> None:
    s = Fraction(sigma)
    for bits in (128, 512):
        for n in (0, 1, 2, int(sigma), int(3.5 * sigma), int(12 * sigma), 10**18, INF):
            direct = ref.gaussian_sum(s, n, bits, "direct")
            closed = ref.gaussian_sum(s, n, bits, "euler-maclaurin")
            assert direct.overlaps(closed), (n, bits)
            assert direct.rad() < arb((1, 8 - bits))
            assert closed.rad() < arb((1, 8 - bits))


def test_euler_maclaurin_refuses_a_small_sigma() -> None:
    with pytest.raises(ref.Undecided):
        ref.gaussian_sum(Fraction(1), 3, 256, "euler-maclaurin")


@pytest.mark.parametrize("sigma", [0.05, 0.4, 3.0, 64.1, 200.0, 1e4, 1e9, 1e15])
def test_sums_are_sums(sigma: float) -> None:
    """Against term-by-term summation, and for all integers against the transformed theta series."""
    for n in (1, 2, 17, 400):
        terms = mp.fsum(mp.exp(-(mpf(j) ** 2) / (2 * mpf(sigma) ** 2)) for j in range(1, n + 1))
        assert near(ref.gaussian_sum(Fraction(sigma), n, 256), terms)
    # Poisson: the sum over all integers is sigma sqrt(2 pi) times the sum of exp(-2 pi^2 sigma^2 n^2).
    theta = mp.fsum(mp.exp(-2 * (mp.pi * mpf(sigma) * n) ** 2) for n in range(-80, 81))
    whole = 1 + 2 * ref.gaussian_sum(Fraction(sigma), INF, 256)
    assert near(whole, mpf(sigma) * mp.sqrt(2 * mp.pi) * theta)


def slow_weight(setting: Setting, q: float, lo: float, hi: float) -> Any:
    """The mass of [lo, hi] by quadrature or by summation, with mpmath."""

    def kernel(x: Any) -> Any:
        t = (mpf(x) - mpf(q)) / mpf(setting.scale)
        return mp.exp(-abs(t) if setting.family == "laplace" else -t * t / 2)

    far = 160 if setting.family == "laplace" else 18  # scales; beyond, less than 1e-69 is left
    lo, hi = max(lo, q - far * setting.scale), min(hi, q + far * setting.scale)
    if lo > hi:
        return mpf(0)
    if setting.lattice:
        return mp.fsum(kernel(k) for k in range(math.ceil(lo), math.floor(hi) + 1))
    cuts = sorted({lo, hi, *([q] if lo < q < hi else [])})
    steps = [mp.linspace(a, b, 2 + int((b - a) / setting.scale)) for a, b in pairwise(cuts)]
    return mp.fsum(mp.quad(kernel, step) for step in steps)


SLOW = [
    (((0.0, 10.0),), False, 1.0, 3.3, 4.7),
    (((-1.0, 2.0),), False, 300.0, 2.0, -0.9),
    (((0.0, INF),), False, 0.5, 0.25, 1.25),
    (((-INF, INF),), False, 1.0, 0.5, -6.0),
    (HOLES, False, 2.0, 5.5, 9.5),
    (HOLES, False, 2.0, 1.0, 6.0),
    (((0.0, 40.0),), True, 3.0, 7.0, 9.0),
    (((-INF, 12.0),), True, 0.7, 5.0, 3.0),
    (((0.0, INF),), True, 20.0, 5.0, 70.0),
    (((-INF, INF),), True, 3.0, 5.0, 5.0),
]


@pytest.mark.parametrize("family", make.FAMILIES)
@pytest.mark.parametrize(("pieces", "lattice", "scale", "q", "x"), SLOW)
def test_masses_are_integrals_and_sums(
    family: str, pieces: Any, lattice: bool, scale: float, q: float, x: float
) -> None:
    setting = Setting(family, pieces, lattice, scale, "truncate", 1.0)
    below, total = law(setting, q).below(int(x) if lattice else Fraction(x), 256)
    with mp.workdps(50):
        parts = [slow_weight(setting, q, lo, min(hi, x)) for lo, hi in pieces if lo <= x]
        whole = [slow_weight(setting, q, lo, hi) for lo, hi in pieces]
        expected = mp.fsum(parts) / mp.fsum(whole)
    assert near(below / total, expected, 30)


ORDINARY = [
    Config(family, kind, pieces, scale, edges)
    for kind, pieces, scale in [
        ("interval", ((0.0, 10.0),), 1.0),
        ("interval", ((-1.0, 2.0),), 30.0),
        ("interval", ((0.0, INF),), 0.5),
        ("interval", ((-INF, INF),), 3.0),
        ("spans", HOLES, 2.0),
        ("spans", ((-INF, -1.0), (0.5, 3.0)), 1.0),
        ("integers", ((0.0, 2.0),), 1.0),
        ("integers", ((-40.0, INF),), 20.0),
        ("integers", ((-INF, INF),), 300.0),
    ]
    for family in make.FAMILIES
    for edges in make.EDGES
]


@pytest.mark.parametrize("config", ORDINARY, ids=lambda c: f"{c.shape}-{c.family}-{c.edges}")
def test_reference_and_distribution_agree(config: Config) -> None:
    """To the digits of floating point: cells end where ``cdf`` says, and answers are the quantiles of ``ppf``."""
    rng = Random(9)
    (setting,) = config.settings
    grid, kind = points(setting), MECHANISMS[config.family]
    mechanism = kind(domain_of(config), scale=config.scale, sensitivity=1, edges=config.edges)
    plain = (
        mechanism
        if config.edges == "truncate"
        else kind(domain_of(config), scale=config.scale, sensitivity=1, edges="ignore")
    )
    for _ in range(12):
        q = rng.choice(config.pieces)[0] + rng.choice((0, 1))
        if not math.isfinite(q):
            q = config.pieces[0][1] if math.isfinite(config.pieces[0][1]) else 0.0
        bits = rng.getrandbits(50)
        found = answer(setting.at(q, bits, 50))
        assert found is not None
        quantile = mechanism.at(q).ppf((bits + 0.5) / 2**50)
        assert abs(found - quantile) <= (0.0 if config.lattice else setting.grid + 1e-9 * config.scale)
        first, last = grid.indices(found) or (0, -1)
        for cut in (grid.lower(first), grid.upper(last)):
            if cut is not None:
                exact = law(setting, q).floor(cut, 80) / 2.0**80
                assert abs(plain.at(q).cdf(float(cut)) - exact) <= 1e-9


@pytest.mark.thinned(7)
@pytest.mark.parametrize("family", make.FAMILIES)
@pytest.mark.parametrize("edges", make.EDGES)
@pytest.mark.parametrize(
    ("pieces", "lattice", "grid"),
    [
        (((0.0, 2.0),), False, 1.0),
        (((-0.9, 1.2),), False, 0.5),
        (((0.0, 2.0), (5.0, 6.0), (9.0, 10.5)), False, 1.0),
        (((-4.0, -1.0), (0.3, 1.9)), False, 0.25),
        (((-3.0, 4.0),), True, 1.0),
    ],
)
def test_answers_are_those_of_a_scan(family: str, edges: str, pieces: Any, lattice: bool, grid: float) -> None:
    """List the stretches of the line in order, put each where the definition says, and see where U falls."""
    rng = Random(10)
    setting = Setting(family, pieces, lattice, 0.8, edges, grid)
    q = pieces[0][0] + (1 if lattice else 0.4)
    inside = [k for k in range(-60, 61) if any(lo <= k * grid <= hi for lo, hi in pieces)]
    support = pieces if edges == "truncate" else ((-30.0, 30.0),)  # beyond, less than 2^-50

    def released(piece: tuple[float, float], y: float) -> float:
        k = round(y / grid)
        if edges == "ignore":
            return k * grid
        own = [j for j in inside if piece[0] <= j * grid <= piece[1]]
        return min(own, key=lambda j: (abs(j - k), j)) * grid

    # Cells end at odd multiples of grid / 2 and at ends of pieces only: between those any y stands for all.
    parts: list[tuple[float, Any]] = []
    with mp.workdps(25):
        for piece in support:
            if lattice:
                places = [k for k in range(-30, 31) if piece[0] <= k <= piece[1]]
                parts += [(released(piece, k), slow_weight(setting, q, k, k)) for k in places]
                continue
            middles = [(k + 0.5) * grid for k in range(-150, 150) if piece[0] < (k + 0.5) * grid < piece[1]]
            cuts = [piece[0], *middles, piece[1]]
            parts += [(released(piece, (a + b) / 2), slow_weight(setting, q, a, b)) for a, b in pairwise(cuts)]
    reached = list(zip((v for v, _ in parts), accumulate(mass for _, mass in parts), strict=True))
    total = reached[-1][1]
    seen = set()
    for _ in range(40):
        bits = rng.getrandbits(40)
        target = mpf(2 * bits + 1) / 2**41 * total
        value = next(value for value, so_far in reached if target < so_far)
        case = setting.at(q, bits, 40)
        assert answer(case) == value
        assert answer(case, guess=7) == value
        assert [x for x in {v for v, _ in parts} if holds(case, x)] == [value]
        seen.add(value)
    assert len(seen) > 2


def test_one_half_is_exact() -> None:
    """Where a law is symmetric about a true value at which a cell ends, 0.1000... is above and 0.0111... below."""
    for family in make.FAMILIES:
        for edges in make.EDGES:
            setting = Setting(family, ((0.0, 3.0),), False, 1.3, edges, 1.0)
            for count in (64, 640):
                half = 1 << (count - 1)
                assert answer(setting.at(1.5, half, count)) == 2.0
                assert answer(setting.at(1.5, half - 1, count)) == 1.0
            assert law(setting, 1.5).floor(Fraction(3, 2), 100) == 2**99
    lopsided = Setting("laplace", ((0.0, 4.0),), False, 1.3, "truncate", 1.0)
    assert not law(lopsided, 1.5).is_half(Fraction(3, 2))


def test_too_few_bits_decide_nothing() -> None:
    setting = Setting("laplace", UNIT, False, 1.0, "truncate", 2.0**-20)
    assert answer(setting.at(0.5, 3, 4)) is None
    line = Setting("gaussian", ((-INF, INF),), False, 1.0, "truncate", 2.0**-20)
    assert answer(line.at(0.0, 0, 64)) is None
    assert answer(line.at(0.0, 2**64 - 1, 64)) is None
    edge = law(setting, 0.5).floor(Fraction(1, 2) + Fraction(1, 2**21), 64)
    assert answer(setting.at(0.5, edge, 64)) is None
    assert answer(setting.at(0.5, edge - 1, 64)) == 0.5
    assert answer(setting.at(0.5, edge + 1, 64)) == 0.5 + 2.0**-20


def test_floats_coarser_than_the_grid() -> None:
    """Where floats are 4 grids apart, each takes its neighbourhood, ties to the even one."""
    setting = Setting("laplace", ((0.0, INF),), False, 1.0, "truncate", 1.0)
    grid = points(setting)
    base = 2**54
    for value in (base - 2.0, float(base), base + 4.0, base + 8.0):
        taken = [k for k in range(base - 40, base + 40) if float(k) == value]
        assert grid.indices(value) == (taken[0], taken[-1])
    assert grid.indices(0.5) is None
    assert grid.indices(-1.0) is None
    assert grid.indices(INF) is None


def test_default_grid() -> None:
    for pieces, lattice, scale, expected in [
        (((0.0, 10.0),), False, 1.0, 2.0**-24),
        (((0.0, 10.0),), False, 0.99, 2.0**-25),
        (((0.0, 0.5),), False, 8.0, 2.0**-25),
        (((0.0, INF),), False, 5.0, 2.0**-22),
        (((-INF, INF),), False, 5.0, 2.0**-22),
        (((1e9, 1e9 + 1),), False, 1.0, 2.0**-23),
        (((0.0, 1e10),), False, 1.0, 2.0**-19),
        (((0.0, 2.0**53),), False, 1e-9, 1.0),
        (((0.0, 1e-30), (1.0, 1e10)), False, 1.0, 2.0**-100),
        (((0.0, 1.0), (3.0, 3.25)), False, 1.0, 2.0**-26),
        (((0.0, 10.0),), True, 0.3, 1.0),
    ]:
        assert ref.default_grid(pieces, lattice, scale) == expected

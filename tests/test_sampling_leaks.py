"""What must not tell the true value: the low bits of an answer, other threads, other processes.

Each attack here is run on our releases and on an ordinary floating-point sampler of the same law, written in this file:
it must succeed against that one and fail against ours. A correct sampler fails a test with probability at most ALPHA.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

import inbounds as ib
from tests.common import MECHANISMS
from tests.test_entropy import fork, in_child

INF = math.inf
ALPHA = 1e-7
COUNT = 1_000_000
SCALE = 0.3

#: Neighbouring true values. 0.1245 and 0.1255 lie on two sides of 1/8, so that their last bits weigh differently; 0.125
#: has no low bits at all.
PAIRS = [(0.1, 0.101), (0.1245, 0.1255), (0.125, 0.126)]
DOMAINS: dict[str, tuple[Any, str]] = {
    "interval": (ib.Interval(-1, 1), "truncate"),
    "half-line": (ib.Interval(-1, INF), "truncate"),
    "line": (ib.Interval(-INF, INF), "truncate"),
    "spans": (ib.Spans([(-1.0, -0.5), (-0.4, 0.3), (0.35, 1.0)]), "truncate"),
    "clamped": (ib.Interval(-1, 1), "clamp"),
    "ignored": (ib.Interval(-1, 1), "ignore"),
}


def ours(family: str, kind: str = "interval") -> Any:
    domain, edges = DOMAINS[kind]
    return MECHANISMS[family](domain, scale=SCALE, sensitivity=0.1, edges=edges)


# --- the ordinary samplers --------------------------------------------------------------------


def naive_laplace(q: float, u: Any, right: Any) -> Any:
    """The textbook: q + b log u to the left, q - b log u to the right, for uniform u in (0, 1]."""
    noise = SCALE * np.log(u)
    return np.where(right, q - noise, q + noise)


def draw_laplace(q: float, count: int, rng: np.random.Generator) -> Any:
    return naive_laplace(q, 1.0 - rng.random(count), rng.random(count) < 0.5)


def draw_gaussian(q: float, count: int, rng: np.random.Generator) -> Any:
    return q + SCALE * rng.normal(size=count)


def truncated(draw: Callable[..., Any], q: float, count: int, seed: int) -> Any:
    """Draws repeated until they lie in [-1, 1]."""
    rng = np.random.default_rng(seed)
    out = draw(q, count, rng)
    while (outside := np.flatnonzero(np.abs(out) > 1.0)).size:
        out[outside] = draw(q, outside.size, rng)
    return out


NAIVE = {"laplace": draw_laplace, "gaussian": draw_gaussian}


# --- attack 1: on which bits do answers end ---------------------------------------------------


def last_bit(y: Any, grid: float) -> Any:
    """The binary place that y mod grid, the part of y beyond the grid, ends on; 1 where nothing is left."""
    rest = np.fmod(y, grid)  # exact
    mantissa, exponent = np.frexp(rest)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.log2((whole & -whole).astype(np.float64), out=np.zeros(len(y)), where=whole != 0).astype(np.int64)
    return np.where(whole != 0, exponent - 53 + lowest, 1)


def two_samples(first: Any, second: Any) -> float:
    """p-value of a chi-square test that two samples of whole numbers have one law."""
    values, where = np.unique(np.concatenate([first, second]), return_inverse=True)
    counts = np.array([np.bincount(part, minlength=len(values)) for part in (where[: len(first)], where[len(first) :])])
    common = counts.sum(axis=0) >= 20
    table = np.column_stack([counts[:, common], counts[:, ~common].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] == 1:
        return 1.0  # nothing differs
    return float(stats.chi2_contingency(table, correction=False).pvalue)


def ends_differ(first: Any, second: Any, grid: float) -> float:
    """Attack on two samples, from answers close to 0: there the last bit of an answer is that of the noise or of q."""
    return two_samples(*(last_bit(y[np.abs(y) < 2.0**-11], grid) for y in (first, second)))


@pytest.mark.parametrize("family", MECHANISMS)
def test_answers_end_alike_whatever_the_true_value(family: str) -> None:
    mechanism = ours(family)
    q1, q2 = 0.1245, 0.1255
    draws = [mechanism.release(np.full(COUNT, q)).value for q in (q1, q2)]
    assert ends_differ(*draws, mechanism.grid) == 1.0
    assert ends_differ(*draws, 1.0) > ALPHA  # all bits: those of the position on the grid
    naive = [truncated(NAIVE[family], q, COUNT, seed) for seed, q in enumerate((q1, q2))]
    assert ends_differ(*naive, mechanism.grid) < ALPHA
    assert ends_differ(*naive, 1.0) < ALPHA


@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("kind", DOMAINS)
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_answers_lie_on_one_grid_whatever_the_true_value(family: str, kind: str, pair: tuple[float, float]) -> None:
    mechanism = ours(family, kind)
    grid = mechanism.grid
    assert math.frexp(grid)[0] == 0.5
    positions = []
    for q in pair:
        single = np.array([mechanism.release(q).value for _ in range(200)])
        draws = np.concatenate([mechanism.release(np.full(200_000, q)).value, single])
        assert not np.fmod(draws, grid).any()
        positions.append((draws / grid).astype(np.int64))
    # Nor do the low bits of the position tell: the laws of the two are within exp(0.001 / 0.3) of each other. Atoms,
    # which clamping makes, are left out, being one position each.
    atoms = [k for k in (-1.0 / grid, 1.0 / grid) if kind == "clamped"]
    first, second = (k[~np.isin(k, atoms)] & 255 for k in positions)
    assert two_samples(first, second) > ALPHA
    assert len(np.unique(first)) == 256
    naive = truncated(NAIVE[family], pair[0], 10_000, 1)
    assert np.count_nonzero(np.fmod(naive, grid)) > 9_900


# --- attack 2: which answers can come out at all ----------------------------------------------


def reachable(y: Any, q: float) -> Any:
    """Whether the textbook sampler can give y for the true value q: by trying the uniforms that lead near it."""
    right = y >= q
    near = np.exp(-np.abs(y - q) / SCALE)
    step = 2.0**-53
    start = np.rint(near / step)
    found = np.zeros(y.shape, dtype=bool)
    for j in range(-6, 7):
        u = np.clip((start + j) * step, step, 1.0)
        found |= naive_laplace(q, u, right) == y
    return found


def reached(y: Any, q: float) -> tuple[int, int]:
    """How many of the answers near the true values, and out of how many."""
    close = y[np.abs(y - 0.12) < 0.1]
    return int(np.count_nonzero(reachable(close, q))), len(close)


def same_rate(first: tuple[int, int], second: tuple[int, int]) -> float:
    """p-value of equal shares."""
    table = [[hits, total - hits] for hits, total in (first, second)]
    if not np.all(np.sum(table, axis=0)):
        return 1.0
    return float(stats.chi2_contingency(table, correction=False).pvalue)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_every_answer_is_possible_for_both_true_values(pair: tuple[float, float]) -> None:
    count = 200_000
    mechanism = ours("laplace")
    draws = [mechanism.release(np.full(count, q)).value for q in pair]
    naive = [truncated(draw_laplace, q, count, seed) for seed, q in enumerate(pair)]
    for q in pair:
        assert same_rate(*(reached(y, q) for y in draws)) > ALPHA
        assert same_rate(*(reached(y, q) for y in naive)) < ALPHA
    # One answer of the textbook sampler often suffices: its own true value always remains possible, the other seldom.
    hits, total = reached(naive[0], pair[0])
    assert hits > 0.999 * total
    hits, total = reached(naive[0], pair[1])
    assert hits < 0.6 * total


@pytest.mark.parametrize("family", MECHANISMS)
def test_every_point_of_a_small_grid_comes_out(family: str) -> None:
    domain = ib.Interval(0, 1)
    mechanism = MECHANISMS[family](domain, scale=0.5, sensitivity=0.25, granularity=2.0**-6)
    for q in (0.0, 0.3, 1.0):
        assert np.unique(mechanism.release(np.full(100_000, q)).value).tolist() == [k / 64 for k in range(65)]


# --- threads and processes --------------------------------------------------------------------


@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("kind", ["interval", "spans", "line"])
def test_threads_do_not_share_noise(family: str, kind: str) -> None:
    mechanism = ours(family, kind)  # fresh: the threads also race for what it makes on first use
    threads, count = 4, 300_000
    centres = [-0.3, -0.1, 0.1, 0.25]
    drawn: dict[int, Any] = {}
    start = threading.Barrier(threads)

    def work(i: int) -> None:
        start.wait()
        arrays = mechanism.release(np.full(count, centres[i])).value
        drawn[i] = arrays, np.array([mechanism.release(centres[i]).value for _ in range(2_000)])

    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(drawn) == list(range(threads))
    for i in range(threads):
        alone = mechanism.release(np.full(count, centres[i])).value
        for draws in drawn[i]:
            assert np.all(mechanism.domain.contains(draws))
            assert not np.fmod(draws, mechanism.grid).any()
            assert stats.ks_2samp(draws, alone).pvalue > ALPHA
    for i, j in combinations(range(threads), 2):
        for first, second in zip(drawn[i], drawn[j], strict=True):
            # With shared bits the two would rise and fall together. 5.6 standard deviations.
            assert abs(np.corrcoef(first, second)[0, 1]) < 5.6 / math.sqrt(len(first))
    # The same comparison sees bits that are shared.
    shared = [mechanism.simulate(q, size=2_000, seed=1) for q in centres[:2]]
    assert np.corrcoef(*shared)[0, 1] > 5.6 / math.sqrt(2_000)


@fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from Python 3.12 on, where earlier tests left threads
@pytest.mark.parametrize("family", MECHANISMS)
def test_a_forked_child_does_not_repeat_its_parent(family: str) -> None:
    mechanism = ours(family)
    mechanism.release(0.1)  # so that words for single values are waiting

    def single() -> Any:
        return np.array([mechanism.release(0.1).value for _ in range(100)]).view(np.uint64)

    def array() -> Any:
        return mechanism.release(np.full(5_000, 0.1)).value.view(np.uint64)

    def few() -> Any:
        return np.concatenate([mechanism.release([0.1, 0.1]).value for _ in range(50)]).view(np.uint64)

    for draw in (single, array, few):
        runs = [in_child(draw).view(np.float64), in_child(draw).view(np.float64), draw().view(np.float64)]
        assert len({len(run) for run in runs}) == 1
        for first, second in combinations(runs, 2):
            # Two independent answers agree with probability below 2^-23.
            assert np.count_nonzero(first == second) <= 3
            assert abs(np.corrcoef(first, second)[0, 1]) < 5.6 / math.sqrt(len(first))

"""What noisy cells and picks say: tests of linear forms, and the coverage of the intervals made of them.

Proof page: docs/proofs/tables.md, statements 6, 8 and 9.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp
from scipy.optimize import brentq
from scipy.stats import binom

from inbounds.tables.answers import FromCells
from inbounds.tables.picking import Picker
from inbounds.tables.tails import Noise

ALPHA = 1e-7  # chance of a false alarm of each statistical test


def exact_tail(x: float, weights: Any) -> Any:
    """P(|sum of w_i Z_i| >= x) of Laplace variables with different weights, at 50 digits and more."""
    w = [abs(mp.mpf(float(weight))) for weight in weights]
    total = mp.mpf(0)
    for i, mine in enumerate(w):
        factor = mp.mpf(1)
        for j, other in enumerate(w):
            factor *= mine**2 / (mine**2 - other**2) if j != i else 1
        total += factor * mp.exp(-mp.mpf(x) / mine)
    return total


def test_laplace_tails_are_never_too_small() -> None:
    rng = np.random.default_rng(1)
    noise = Noise("laplace", 1.0, 0.0)
    for _ in range(600):
        count = int(rng.integers(2, 5))
        weights = rng.normal(size=count)
        if rng.random() < 0.6:  # nearly equal ones, where digits are lost
            weights = 1.0 + rng.random(count) * rng.choice([1e-6, 1e-3, 1e-2, 1e-1])
        x = float(rng.exponential() * 8.0 * np.max(np.abs(weights)))
        found, exact = mp.mpf(float(noise.tail(np.array(x), weights))), exact_tail(x, weights)
        assert found >= exact * (1 - mp.mpf("1e-9"))
        # Weights raised by up to 1 % each: a tail as of so much less.
        assert found <= exact_tail(x / 1.0125, weights) * (1 + mp.mpf("1e-9")) + mp.mpf("1e-12")


def test_equal_weights_have_the_tail_of_the_sum() -> None:
    noise = Noise("laplace", 2.0, 0.0)
    for x in (0.5, 3.0, 20.0):
        y = x / 2.0
        two, three = (1 + y / 2) * math.exp(-y), (1 + 5 * y / 8 + y * y / 8) * math.exp(-y)
        for weights, exact in ((np.ones(2), two), (np.array([1.0, -1.0, 1.0]), three)):
            found = float(noise.tail(np.array(x), weights))
            assert exact <= found <= exact * (1.0 + 0.01 * (1.0 + y))


def test_the_grid_of_draws_counts_for_the_hypothesis() -> None:
    coarse, fine = Noise("laplace", 1.0, 0.5), Noise("laplace", 1.0, 0.0)
    weights = np.array([0.25, 0.75])
    assert coarse.tail(np.array(3.0), weights) == fine.tail(np.array(2.75), weights)
    assert float(coarse.tail(np.array(0.2), weights)) == 1.0
    gaussian = Noise("gaussian", 2.0, 0.0)
    assert float(gaussian.tail(np.array(1.959963985 * 2.0), np.array([0.6, 0.8]))) == pytest.approx(0.05, rel=1e-8)


def test_quantiles_of_forms_are_convex() -> None:
    """From which it follows that no accepted mean is overlooked."""
    rng = np.random.default_rng(2)
    noise = Noise("laplace", 1.0, 0.0)

    def quantile(weights: Any, level: float) -> float:
        return float(brentq(lambda x: float(noise.tail(np.array(x), weights)) - level, 0.0, 300.0, xtol=1e-12))

    for _ in range(150):
        level = float(rng.choice([0.5, 0.2, 0.05, 0.01, 1e-4]))
        u, v = rng.normal(size=(2, int(rng.integers(2, 5))))
        assert quantile((u + v) / 2.0, level) <= (quantile(u, level) + quantile(v, level)) / 2.0 * (1.0 + 1e-2)


VALUES = {
    "nobody": np.zeros(0),
    "nine, low": np.array([0.0, 0.0, 0.02, 0.05, 0.1, 0.1, 0.15, 0.2, 0.3]),
    "all at the lower end": np.zeros(25),
    "half at each end": np.repeat([0.0, 1.0], 20),
    "all in the middle": np.full(30, 0.5),
    "many": np.linspace(0.0, 0.4, 500),
}


@pytest.mark.thinned(5)
@pytest.mark.parametrize("family", ["laplace", "gaussian"])
@pytest.mark.parametrize("what", ["mean", "variance", "sum"])
@pytest.mark.parametrize("name", VALUES)
def test_intervals_from_cells_cover(name: str, what: str, family: str) -> None:
    runs = 40 if what == "variance" else 120
    x = VALUES[name]
    degree = 2 if what == "variance" else 1
    cells = [(1 - x) ** 2, 2 * x * (1 - x), x**2] if degree == 2 else [1 - x, x]
    exact = np.array([cell.sum() for cell in cells])
    truth = {"mean": x.mean, "variance": x.var, "sum": x.sum}[what]() if x.size or what == "sum" else None
    rng = np.random.default_rng([len(name), degree, len(family)])
    scale, level, missed = 2.0, 0.9, 0
    for _ in range(runs):
        drawn = exact + scale * (rng.laplace(size=exact.size) if family == "laplace" else rng.normal(size=exact.size))
        found = FromCells(Noise(family, scale, 2.0**-30), tuple(drawn), degree, what)
        low, high = found.interval(level)
        most = {"mean": 1.0, "variance": 0.25, "sum": math.inf}[what]
        assert 0.0 <= low <= high <= most
        assert 0.0 <= found.value() <= most
        missed += truth is not None and not low <= truth <= high
    assert missed <= binom.isf(ALPHA, runs, 1 - level)
    if name == "many" and what != "variance":
        assert missed > 0, "at a level of 90 % some must be missed; the intervals are too long"


@pytest.mark.parametrize(("level", "epsilon"), [(Fraction(1, 2), 1.0), (Fraction(1, 4), 0.3), (Fraction(9, 10), 2.0)])
def test_a_pick_is_as_near_as_it_says(level: Fraction, epsilon: float) -> None:
    rng = np.random.default_rng(3)
    counts = rng.poisson(3.0, size=256)
    picker = Picker(level, epsilon, max(level, 1 - level), 256)
    failure, runs = 0.05, 400
    near = picker.within(failure)
    through = np.cumsum(counts)
    aim = float(level) * through[-1]
    short = np.maximum(np.maximum(through - counts - aim, aim - through), 0.0)
    far = sum(short[picker.pick(counts.tolist())] > near for _ in range(runs))
    assert far <= binom.isf(ALPHA, runs, failure)

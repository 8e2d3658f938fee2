"""Naive Bayes: sensitivities by brute force, the loss of a whole fit, the account, ranges, scikit-learn's checks."""

from __future__ import annotations

import doctest
import inspect
import itertools
import math
import pickle
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_ind
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB as PlainNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import inbounds as ib
from inbounds.learn import GaussianNB, naive_bayes, rows
from inbounds.learn.naive_bayes import EDGES, NEIGHBOURS
from inbounds.mechanism import Mechanism
from tests.common import broken

ROOT = Path(__file__).parent.parent
IRIS = load_iris(return_X_y=True)
IRIS_BOUNDS = ([4.0, 2.0, 1.0, 0.0], [8.0, 4.5, 7.0, 2.5])

# ---------------------------------------------------------------- sensitivities, by brute force

PLACES = (-1.0, -0.75, -0.3, 0.0, 0.1, 0.5, 2**-0.5, 1.0, 3.0, -math.inf)  # the last two lie outside


def totals(rows: list[tuple[float, int]], lower: float = -1.0, upper: float = 1.0) -> list[Any]:
    """Of two classes: the count, the sum of z and the sum of z² - 1/2, as fractions."""
    X = np.array([[x] for x, _ in rows]).reshape(-1, 1)
    label = np.array([k for _, k in rows], dtype=int)
    found = naive_bayes._totals(X, label, 2, np.array([lower]), np.array([upper]))
    steps = naive_bayes._STEPS
    return [(n, Fraction(int(s[0]), steps), Fraction(int(q[0]), steps) - Fraction(n, 2)) for n, s, q in found]


def farthest(pairs: list[tuple[Any, Any]]) -> list[Fraction]:
    """The largest changes, each over the classes and over all pairs."""
    return [max(abs(a[i] - b[i]) for p, q in pairs for a, b in zip(p, q, strict=True)) for i in range(3)]


def test_a_row_more_or_less_moves_one_class_by_the_stated_sensitivities() -> None:
    rows = list(itertools.product(PLACES, (0, 1)))
    pairs = []
    for have in [[], *([r] for r in rows), *map(list, itertools.combinations_with_replacement(rows, 2))]:
        before = totals(have)
        for extra in rows:
            after = totals([*have, extra])
            assert before[1 - extra[1]] == after[1 - extra[1]], "the other class does not change"
            pairs.append((before, after))
    assert farthest(pairs) == [1, 1, Fraction(1, 2)]


def test_replaced_features_move_one_class_twice_as_far() -> None:
    pairs = []
    for have in itertools.product(PLACES, repeat=2):
        for new in PLACES:
            pairs.append((totals([(have[0], 0), (have[1], 0)]), totals([(have[0], 0), (new, 0)])))
    assert farthest(pairs) == [0, 2, 1]


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=0, max_size=6),
    st.floats(-1e9, 1e9),
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e6),
)
def test_sensitivities_hold_exactly_whatever_the_numbers(
    have: list[float], x: float, lower: float, wide: float
) -> None:
    """Sums of floats can move farther than their sensitivity, by rounding; these cannot."""
    ends = (lower, lower + wide)
    before, after = (totals([(v, 0) for v in rows], *ends)[0] for rows in (have, [*have, x]))
    assert after[0] - before[0] == 1
    assert abs(after[1] - before[1]) <= 1
    assert abs(after[2] - before[2]) <= Fraction(1, 2)


def test_the_variance_itself_moves_more() -> None:
    """The claim of the proof page about releasing variances directly: U²(n-1)/n² on [0, U], by search."""
    for n in (2, 3, 4, 5):
        grid = [Fraction(i, 4) for i in range(5)]
        worst = Fraction(0)
        for rest in itertools.combinations_with_replacement(grid, n - 1):
            spread = []
            for x in grid:
                values = [*rest, x]
                mean = sum(values) / n
                spread.append(sum((v - mean) ** 2 for v in values) / n)
            worst = max(worst, max(spread) - min(spread))
        assert worst == Fraction(n - 1, n * n)
        assert worst > Fraction(1, 4 * n), "more than z², which moves by a quarter of U² over n"


# ---------------------------------------------------------------- the loss of a whole fit


class Tape:
    """Records what a fit hands to ``release`` and what comes back, or replays the answers of another fit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.true: list[Any] = []
        self.out: list[Any] = []
        self.used: list[Any] = []
        self.replay: list[Any] | None = None
        real = Mechanism.release

        def release(mechanism: Any, value: Any, *, clip: bool = False) -> ib.Release:
            self.used.append(mechanism)
            self.true.append(np.atleast_1d(np.clip(value, mechanism.domain.lower, mechanism.domain.upper)))
            found = real(mechanism, value, clip=clip) if self.replay is None else self.replay[len(self.true) - 1]
            self.out.append(found)
            return found

        monkeypatch.setattr(Mechanism, "release", release)

    def run(self, fit: Callable[[], object], replay: list[Any] | None = None) -> tuple[list[Any], list[Any], list[Any]]:
        self.true, self.out, self.used, self.replay = [], [], [], replay
        fit()
        return self.used, self.true, self.out


def log_density(mechanism: Any, true: Any, out: Any) -> float:
    """Written anew from the definitions; constants that do not depend on the true value are left out."""
    b, lower, upper = mechanism.scale, float(mechanism.domain.lower), float(mechanism.domain.upper)
    total = 0.0
    for q, y in zip(true, np.atleast_1d(out), strict=True):
        total -= abs(y - q) / b
        if mechanism.edges == "truncate":
            total -= math.log(1.0 - 0.5 * (math.exp(-(q - lower) / b) + math.exp(-(upper - q) / b)))
        # clamped, at an end: the mass beyond it is proportional to exp(-distance/b) as well
    return total


def losses(tape: Tape, model: GaussianNB, left: Any, right: Any, fits: int) -> list[float]:
    """ln p(output | left) - ln p(output | right), for outputs of fits to left."""
    found = []
    for _ in range(fits):
        used, true, out = tape.run(lambda: model.fit(*left))
        again, other, _ = tape.run(lambda: model.fit(*right), out)
        assert used == again, "mechanisms depend on what was released only"
        answers = [r.value for r in out]
        found.append(
            sum(
                log_density(m, p, y) - log_density(m, q, y)
                for m, p, q, y in zip(used, true, other, answers, strict=True)
            )
        )
    return found


def row(x: float, k: int) -> tuple[list[list[float]], list[int]]:
    return [[x]], [k]


def table(*rows: tuple[float, int]) -> tuple[Any, Any]:
    return np.array([[x] for x, _ in rows]), np.array([k for _, k in rows])


#: pairs of neighbours that come close to the whole epsilon, for each relation
NEIGHBOUR_PAIRS = {
    "add-remove": (table((0.0, 0), (1.0, 1)), table((0.0, 0), (1.0, 1), (1.0, 1))),
    "substitute": (table((0.0, 0), (1.0, 1), (1.0, 1)), table((0.0, 0), (1.0, 1), (-1.0, 0))),
    "features": (table((0.0, 0), (1.0, 1), (1.0, 1)), table((0.0, 0), (1.0, 1), (-1.0, 1))),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_no_fit_loses_more_than_epsilon(neighbours: str, edges: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = Tape(monkeypatch)
    left, right = NEIGHBOUR_PAIRS[neighbours]
    epsilon = 1.5
    model = GaussianNB(epsilon=epsilon, bounds=(-1, 1), classes=[0, 1], neighbours=neighbours, edges=edges)
    found = losses(tape, model, left, right, 100) + losses(tape, model, right, left, 100)
    assert max(found) <= epsilon + 1e-9
    assert min(found) >= -epsilon - 1e-9
    assert max(found) > 0.6 * epsilon, "the pairs are near the worst"


def test_a_scale_too_small_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, 0.6)
    tape = Tape(monkeypatch)
    model = GaussianNB(epsilon=1.5, bounds=(-1, 1), classes=[0, 1])
    assert max(losses(tape, model, *NEIGHBOUR_PAIRS["add-remove"][::-1], 100)) > 1.5


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_random_neighbours_stay_within_epsilon(neighbours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = Tape(monkeypatch)
    rng = np.random.default_rng(5)
    for _ in range(40):
        n, d = int(rng.integers(2, 8)), int(rng.integers(1, 4))
        X, y = rng.choice([-2.0, -1.0, -0.5, 0.0, 0.7, 1.0], (n, d)), rng.integers(0, 2, n)
        other, labels = X.copy(), y.copy()
        other[0] = rng.choice([-1.0, 0.0, 1.0], d)
        if neighbours == "substitute":
            labels[0] = 1 - y[0]
        right = (X[1:], y[1:]) if neighbours == "add-remove" else (other, labels)
        epsilon = float(rng.choice([0.1, 1.0, 6.0]))
        model = GaussianNB(epsilon=epsilon, bounds=(-1, 1), classes=[0, 1], neighbours=neighbours)
        found = losses(tape, model, (X, y), right, 3) + losses(tape, model, right, (X, y), 3)
        assert np.abs(found).max() <= epsilon + 1e-9


# ---------------------------------------------------------------- the account


@settings(max_examples=60)
@given(
    st.floats(1e-6, 500.0),
    st.integers(1, 5),
    st.sampled_from(NEIGHBOURS),
    st.tuples(*[st.floats(1e-3, 1e3)] * 3),
)
def test_the_parts_add_up_to_epsilon(epsilon: float, d: int, neighbours: str, split: tuple[float, ...]) -> None:
    X, y = np.zeros((4, d)), np.array([0, 0, 1, 1])
    model = GaussianNB(epsilon=epsilon, bounds=(-1, 1), neighbours=neighbours, split=split).fit(X, y)
    account = model.privacy_
    assert account.total == Fraction(repr(epsilon))
    for spending, per_class in zip(account.spendings, (1, d, d), strict=True):
        if neighbours == "features" and spending.release == "counts":
            assert (spending.mechanisms, spending.number, spending.total) == ((), 0, 0)
            continue
        assert len(spending.mechanisms) == 2
        assert spending.number == 2 * per_class
        assert spending.touched == per_class * (2 if neighbours == "substitute" else 1)
        assert spending.total == spending.touched * spending.epsilon
        for mechanism in spending.mechanisms:
            assert Fraction(float(mechanism.epsilon())) <= spending.epsilon
            assert float(mechanism.epsilon()) >= 0.999 * float(spending.epsilon)


def test_the_account_names_mechanisms_and_what_is_public() -> None:
    X, y = IRIS
    model = GaussianNB(bounds=IRIS_BOUNDS, epsilon=0.3).fit(X, y)
    counts, means, variances = model.privacy_.spendings
    assert [s.release for s in model.privacy_.spendings] == ["counts", "means", "variances"]
    assert [m.sensitivity for m in (counts.mechanisms[0], means.mechanisms[0], variances.mechanisms[0])] == [1, 1, 0.5]
    assert [s.mechanisms[0].edges for s in model.privacy_.spendings] == ["clamp", "clamp", "truncate"]
    assert counts.total == Fraction(3, 90)
    size = max(int(model.class_count_[0]), 1)
    assert means.mechanisms[0].domain == ib.Interval(-size, size)
    assert variances.mechanisms[0].domain == ib.Interval(0, size)
    assert model.privacy_.public == ("bounds", "classes: read off y")
    shown = str(model.privacy_)
    assert "pure epsilon 0.3 for neighbours 'add-remove'" in shown
    assert re.search(r"variances +12 +4 +0.5 +0.01667 +0.06667 +truncated Laplace", shown)

    model = GaussianNB(bounds=IRIS_BOUNDS, classes=[0, 1, 2], neighbours="features", edges="clamp").fit(X, y)
    assert model.privacy_.public == ("bounds", "labels of all rows", "classes")
    assert [s.mechanisms[0].sensitivity for s in model.privacy_.spendings[1:]] == [2, 1]
    assert model.privacy_.spendings[2].mechanisms[0].edges == "clamp"
    assert re.search(r"counts +0 +0 +- +0 +0 +public", str(model.privacy_))
    assert model.class_count_.tolist() == [50, 50, 50]

    model = GaussianNB(bounds=IRIS_BOUNDS, neighbours="substitute").fit(X, y)
    assert model.privacy_.spendings[0].mechanisms[0].domain == ib.Integers(0, 150)


# ---------------------------------------------------------------- what is released lies in range


@settings(max_examples=80)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-9, 1e-3, 0.5, 20.0, 500.0]),
    st.sampled_from(NEIGHBOURS),
    st.sampled_from(EDGES),
    st.booleans(),
)
def test_everything_is_always_in_range(seed: int, epsilon: float, neighbours: str, edges: str, denoise: bool) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 12)), int(rng.integers(1, 4))
    lower = rng.normal(size=d) * 10.0 ** rng.integers(-6, 6)
    upper = lower + rng.uniform(0.1, 2.0, d) * 10.0 ** rng.integers(-6, 6)
    X = lower + (upper - lower) * rng.normal(size=(n, d)) * 3.0
    y = rng.integers(0, 3, n)
    smoothing = float(rng.choice([0.0, 1e-9, 0.1]))
    model = GaussianNB(
        epsilon=epsilon,
        bounds=(lower, upper),
        classes=[0, 1, 2],
        neighbours=neighbours,
        edges=edges,
        denoise=denoise,
        var_smoothing=smoothing,
    ).fit(X, y)
    assert model.class_count_.dtype == np.int64
    assert (model.class_count_ >= 0).all()
    assert (model.theta_ >= lower).all()
    assert (model.theta_ <= upper).all()
    half = (upper - lower) / 2.0
    assert (model.var_ >= smoothing * half**2).all()
    assert (model.var_ <= half**2).all()
    assert math.isclose(model.class_prior_.sum(), 1.0)
    for at in (X, lower[None] - 1e30, np.full((1, d), np.inf)):
        p = model.predict_proba(at)
        assert np.isfinite(p).all()
        assert np.allclose(p.sum(axis=1), 1.0)
        assert (np.exp(model.predict_log_proba(at)) == p).all()
        assert (model.predict(at) == model.classes_[p.argmax(axis=1)]).all()


def test_values_outside_are_moved_to_the_bounds_first(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = Tape(monkeypatch)
    far = table((-math.inf, 0), (7.0, 0), (0.5, 1), (1e300, 1))
    near = table((-1.0, 0), (1.0, 0), (0.5, 1), (1.0, 1))
    model = GaussianNB(bounds=(-1, 1))
    _, true, out = tape.run(lambda: model.fit(*far))
    _, other, _ = tape.run(lambda: model.fit(*near), out)
    assert all((p == q).all() for p, q in zip(true, other, strict=True))


# ---------------------------------------------------------------- how good it is


def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on nothing is noisy."""

    def release(mechanism: Any, value: Any, *, clip: bool = False) -> ib.Release:
        inside = np.clip(value, mechanism.domain.lower, mechanism.domain.upper)
        return ib.Release(int(inside) if mechanism.domain.lattice else inside, mechanism)

    monkeypatch.setattr(Mechanism, "release", release)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_without_noise_it_is_gaussian_naive_bayes(neighbours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    silent(monkeypatch)
    X, y = IRIS
    model = GaussianNB(bounds=IRIS_BOUNDS, neighbours=neighbours, denoise=False, var_smoothing=0.0).fit(X, y)
    plain = PlainNB(var_smoothing=0.0).fit(X, y)
    assert (model.class_count_ == plain.class_count_).all()
    assert np.allclose(model.theta_, plain.theta_, atol=1e-6)
    assert np.allclose(model.var_, plain.var_, atol=1e-6)
    assert np.allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-4)


def test_much_epsilon_gives_nearly_the_plain_model() -> None:
    X, y = np.tile(IRIS[0], (40, 1)), np.tile(IRIS[1], 40)
    model = GaussianNB(bounds=IRIS_BOUNDS, epsilon=400.0).fit(X, y)
    plain = PlainNB().fit(X, y)
    half = (np.array(IRIS_BOUNDS[1]) - IRIS_BOUNDS[0]) / 2
    # No Laplace draw of the 27 exceeds this many scales, but for once in 10^9; a mean enters its variance doubly.
    far = math.log(27 * 1e9)
    _, mean, variance = (s.mechanisms[0].scale * far / 1900 for s in model.privacy_.spendings)
    assert np.abs(model.theta_ - plain.theta_).max() < mean * half.max()
    assert np.abs((model.var_ - plain.var_) / half**2).max() < variance + 2.5 * mean
    assert mean < 0.01
    assert variance < 0.01


def scores(fits: int, **parameters: Any) -> np.ndarray:
    X, y = IRIS
    return np.array([GaussianNB(bounds=IRIS_BOUNDS, **parameters).fit(X, y).score(X, y) for _ in range(fits)])


ALPHA = 1e-6  # the chance that a claim below passes although the two means are equal


def surely_larger(high: np.ndarray, low: np.ndarray) -> bool:
    """Whether the first mean is the larger one, at level ALPHA (Welch's test)."""
    return bool(ttest_ind(high, low, equal_var=False, alternative="greater").pvalue < ALPHA)


def test_accuracy_improves_with_epsilon() -> None:
    bad, fair, good = (scores(80, epsilon=e) for e in (0.02, 0.7, 20.0))
    assert surely_larger(fair, bad)
    assert surely_larger(good, fair)
    assert not surely_larger(bad, scores(80, epsilon=0.02)), "the test tells nothing from nothing"


def test_truncation_beats_clamping_without_further_help_and_denoising_mends_both() -> None:
    """Figure 2 of Holohan et al.: variances of 0 spoil the clamped model. Denoised there are none."""
    plain = {"epsilon": 10.0, "denoise": False, "var_smoothing": 1e-9}
    clamped = scores(100, edges="clamp", **plain)
    assert surely_larger(scores(100, edges="truncate", **plain), clamped)
    assert surely_larger(scores(100, edges="clamp", epsilon=10.0, var_smoothing=1e-9), clamped)


# ---------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"bounds": None}, "bounds must be given"),
        ({"bounds": 3.0}, "bounds must be a pair"),
        ({"bounds": (1, 2, 3)}, "bounds must be a pair"),
        ({"bounds": "01"}, "bounds must be a pair"),
        ({"bounds": ([0, 0], 1)}, "bounds[0] must be a number or 1 numbers"),
        ({"bounds": (1, [0, 0])}, "bounds[1] must be a number or 1 numbers"),
        ({"bounds": (0, None)}, "bounds[1] must be"),
        ({"bounds": (0, "a")}, "bounds[1] must be"),
        ({"bounds": (0, math.nan)}, "bounds of feature 0 must be finite"),
        ({"bounds": (0, math.inf)}, "bounds of feature 0 must be finite"),
        ({"bounds": (1, 1)}, "bounds of feature 0 must be finite, in order"),
        ({"bounds": (2, 1)}, "bounds of feature 0 must be finite, in order"),
        ({"bounds": (0, 1e61)}, "bounds of feature 0 must be finite"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"epsilon": 501}, "epsilon must be"),
        ({"epsilon": "1"}, "epsilon must be"),
        ({"epsilon": True}, "epsilon must be"),
        ({"neighbours": "bounded"}, "neighbours must be one of"),
        ({"neighbours": None}, "neighbours must be one of"),
        ({"edges": "ignore"}, "edges must be one of"),
        ({"denoise": 1}, "denoise must be True or False"),
        ({"split": (1, 1)}, "split must be"),
        ({"split": (1, 0, 1)}, "split must be"),
        ({"split": (1, math.nan, 1)}, "split must be"),
        ({"split": None}, "split must be"),
        ({"var_smoothing": -1e-9}, "var_smoothing must be"),
        ({"var_smoothing": math.nan}, "var_smoothing must be"),
        ({"priors": [0.5, 0.6]}, "priors must be 2 probabilities"),
        ({"priors": [1.0]}, "priors must be 2 probabilities"),
        ({"priors": [1.5, -0.5]}, "priors must be 2 probabilities"),
        ({"classes": "ab"}, "classes must be a sequence"),
        ({"classes": []}, "classes must be a sequence"),
        ({"classes": [0, 1, 1]}, "classes must be a sequence of labels, all different"),
        ({"classes": [[0, 1]]}, "classes must be a sequence of labels, all different"),
        ({"classes": [0, 1, "1"]}, "classes must be a sequence of labels, all different"),
        ({"classes": [0, True, 1]}, "classes must be a sequence of labels, all different"),
        ({"classes": [0, 0.5]}, "classes must be a sequence of labels"),
        ({"classes": [0, 2**53]}, "classes must be a sequence of labels"),
        ({"classes": [0, None]}, "classes must be a sequence of labels"),
    ],
)
def test_wrong_parameters_are_refused_by_name(parameters: dict[str, Any], named: str) -> None:
    model = GaussianNB(**{"bounds": (-1, 1), **parameters})
    with pytest.raises(ib.InboundsError, match=f"^GaussianNB: {re.escape(named)}") as caught:
        model.fit(np.array([[0.0], [0.987654]]), [0, 1])
    assert isinstance(caught.value, ValueError | TypeError)
    assert "0.987654" not in str(caught.value)
    assert not hasattr(model, "privacy_"), "nothing was spent"


def test_missing_bounds_say_why() -> None:
    with pytest.raises(ib.ParameterError, match="known without looking at the data"):
        GaussianNB().fit(*IRIS)


def test_nan_is_refused_by_name_when_predicting() -> None:
    model = GaussianNB(bounds=([-1], [1])).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ib.ParameterError, match="X must not hold NaN"):
        model.predict([[math.nan]])


def test_too_many_rows_are_refused_where_their_number_is_public(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naive_bayes, "_ROWS", 3)
    for neighbours in ("substitute", "features"):
        with pytest.raises(ib.ParameterError, match="X must be of at most 3 rows"):
            GaussianNB(bounds=(-1, 1), neighbours=neighbours).fit(np.zeros((4, 1)), [0, 0, 1, 1])
    many = GaussianNB(bounds=(-1, 1), classes=[0]).fit(np.zeros((9, 1)), [0] * 9)
    assert many.class_count_[0] <= 3, "their number is not public: more are not refused, and count as the most"


def test_what_a_private_estimator_does_not_offer() -> None:
    assert "random_state" not in inspect.signature(GaussianNB).parameters
    assert not hasattr(GaussianNB, "partial_fit")
    with pytest.raises(TypeError, match="sample_weight"):
        GaussianNB(bounds=(-1, 1)).fit([[0.0], [1.0]], [0, 1], sample_weight=[1, 2])  # type: ignore[call-arg]


# ---------------------------------------------------------------- labels, classes, priors


def test_labels_of_any_kind() -> None:
    X, y = IRIS
    names = np.array(["setosa", "versicolor", "virginica"])
    for labels, classes in [
        (names[y], None),
        (names[y].astype(object), names.tolist()),
        (names[y].tolist(), ["virginica", "setosa", "versicolor"]),
        (y.astype(float), None),
        (y == 0, None),
    ]:
        model = GaussianNB(bounds=IRIS_BOUNDS, epsilon=100.0, classes=classes).fit(X, labels)
        assert model.score(X, labels) > 0.8
        assert sorted(model.classes_.tolist()) == model.classes_.tolist()


def test_given_classes_need_not_occur() -> None:
    X, y = IRIS
    model = GaussianNB(bounds=IRIS_BOUNDS, epsilon=300.0, classes=[0, 1, 2, 3, 4]).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2, 3, 4]
    assert model.predict_proba(X).shape == (150, 5)
    assert model.score(X, y) > 0.5


def test_given_priors_are_used_as_they_are() -> None:
    X, y = IRIS
    model = GaussianNB(bounds=IRIS_BOUNDS, epsilon=100.0, priors=[0.0, 0.5, 0.5]).fit(X, y)
    assert model.class_prior_.tolist() == [0.0, 0.5, 0.5]
    assert 0 not in model.predict(X)
    assert (model.predict_proba(X)[:, 0] == 0.0).all()
    assert np.isneginf(model.predict_log_proba(X)[:, 0]).all()


def test_a_released_count_of_zero_is_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Mechanism.release

    def release(mechanism: Any, value: Any, *, clip: bool = False) -> ib.Release:
        return ib.Release(0, mechanism) if mechanism.domain.lattice else real(mechanism, value, clip=clip)

    monkeypatch.setattr(Mechanism, "release", release)
    model = GaussianNB(bounds=IRIS_BOUNDS).fit(*IRIS)
    assert model.class_count_.tolist() == [0, 0, 0]
    assert np.allclose(model.class_prior_, 1 / 3)
    assert np.isfinite(model.predict_proba(IRIS[0])).all()


# ---------------------------------------------------------------- scikit-learn

#: Checks of scikit-learn that a private estimator cannot pass, and why.
CANNOT_PASS = {
    "check_estimators_nan_inf": "infinite values are moved to the bounds like all others outside: an error would tell",
    "check_fit_idempotent": "two fits on the same data must differ: the noise is fresh",
    "check_estimators_empty_data_messages": "no rows are one row less than one: an error would tell",
    "check_dtype_object": "a cell that is no number makes its row missing: an error would tell",
    "check_complex_data": "so does a complex number; one of them makes all of an array complex",
    "check_classifiers_train": "a list of rows needs bounds per feature: its rows are secret, and so is their length",
    "check_supervised_y_2d": "compares the predictions of two fits",
    "check_classifier_data_not_an_array": "compares the predictions of two fits",
}


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_scikit_learn_accepts_it(neighbours: str) -> None:
    model = GaussianNB(bounds=(-10, 10), neighbours=neighbours)
    found = check_estimator(model, expected_failed_checks=CANNOT_PASS, on_skip=None, on_fail=None)
    status = Counter(r["status"] for r in found)
    assert [r["check_name"] for r in found if r["status"] == "failed"] == []
    assert {r["check_name"] for r in found if r["status"] == "xfail"} <= set(CANNOT_PASS)
    assert status["passed"] > 40


def test_noise_is_the_only_reason_for_what_it_cannot_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    silent(monkeypatch)
    found = check_estimator(GaussianNB(bounds=(-10, 10)), on_skip=None, on_fail=None)
    tell = [name for name, why in CANNOT_PASS.items() if not why.startswith("compares") and "fresh" not in why]
    assert sorted({r["check_name"] for r in found if r["status"] == "failed"}) == sorted(tell)
    features = rows.features
    monkeypatch.setattr(rows, "features", lambda what, X, n: features(what, np.array(X) if type(X) is list else X, n))
    found = check_estimator(GaussianNB(bounds=(-10, 10)), on_skip=None, on_fail=None)
    tell.remove("check_classifiers_train")
    assert sorted(r["check_name"] for r in found if r["status"] == "failed") == sorted(tell)


def test_clones_pickles_and_works_in_pipelines() -> None:
    X, y = IRIS
    model = GaussianNB(bounds=IRIS_BOUNDS, epsilon=50.0, edges="clamp", split=(1, 2, 3), priors=[0.2, 0.3, 0.5])
    assert clone(model).get_params() == model.get_params()
    model.fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    assert again.privacy_ == model.privacy_
    assert not hasattr(clone(model), "theta_")
    found = cross_val_score(make_pipeline(FunctionTransformer(), GaussianNB(bounds=IRIS_BOUNDS, epsilon=50.0)), X, y)
    assert found.mean() > 0.7


def test_fresh_noise_each_time() -> None:
    one, two = (GaussianNB(bounds=IRIS_BOUNDS).fit(*IRIS) for _ in range(2))
    assert (one.var_ != two.var_).all()


def test_missing_scikit_learn_names_the_extra() -> None:
    code = "import sys; sys.modules['sklearn'] = None\nimport inbounds.learn"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 1
    assert "MissingExtra" in run.stderr
    assert "inbounds[learn]" in run.stderr


# ---------------------------------------------------------------- documents


def test_docstring_examples_run() -> None:
    found = doctest.testmod(naive_bayes)
    assert found.attempted > 0
    assert found.failed == 0

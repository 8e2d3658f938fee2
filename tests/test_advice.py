"""Comparisons, recommendations, accuracy: against figures worked out in another way."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import inbounds as ib
from inbounds import advice
from inbounds.advice import KINDS

RANGE = ib.Integers(0, 12)


@pytest.fixture(scope="module")
def found() -> advice.Comparison:
    return ib.compare(RANGE, sensitivity=2, epsilon=1.0)


def brute(mechanism: ib.Mechanism) -> np.ndarray:
    """Mean squared error at every whole number, from the probabilities of the answers."""
    out = []
    for q in range(13):
        law = mechanism.at(float(q))
        x = (
            np.arange(-400.0, 413.0)
            if "ignore" in repr(mechanism) and "Denoised" not in repr(mechanism)
            else np.arange(13.0)
        )
        p = np.asarray(law.pmf(x))
        assert p.sum() == pytest.approx(1.0, abs=1e-9)
        out.append(float((p * (x - q) ** 2).sum()))
    return np.array(out)


def test_figures_are_those_of_the_laws(found: advice.Comparison) -> None:
    assert len(found) >= 10
    for entry in found:
        errors = brute(entry.mechanism)
        assert entry.average is not None
        assert entry.average.rmse**2 == pytest.approx(errors.mean(), rel=1e-8), entry.name
        assert entry.worst.rmse**2 == pytest.approx(errors.max(), rel=1e-8), entry.name


def test_the_best_comes_first_and_nothing_beats_the_limit(found: advice.Comparison) -> None:
    losses = [entry.loss("squared", "average") for entry in found]
    assert losses == sorted(losses)
    assert found.limit is not None
    assert found.limit.attained
    for entry in found:
        if entry.in_range:
            assert found.ratio(entry) >= 1.0 - 1e-6, entry.name
    assert found.ratio(found["optimum"]) == pytest.approx(1.0, abs=2e-6)


def test_every_mechanism_has_the_privacy_asked_for(found: advice.Comparison) -> None:
    for entry in found:
        assert entry.mechanism.epsilon() <= 1.0, entry.name


def test_in_range_is_true(found: advice.Comparison) -> None:
    for entry in found:
        drawn = np.asarray(entry.mechanism.release(np.zeros(300, dtype=int)).value)
        inside = bool(np.all((drawn >= 0) & (drawn <= 12) & (drawn == np.floor(drawn))))
        assert inside == entry.in_range, entry.name  # plain noise leaves 0..12 at once, in 300 draws at its end


def test_it_prints_exports_and_shows(found: advice.Comparison) -> None:
    text = str(found)
    assert text.splitlines()[0].split()[0] == "mechanism"
    assert all(entry.name in text for entry in found)
    assert "The limit is a mean squared loss of" in text
    loaded = json.loads(found.to_json())
    assert [e["mechanism"] for e in loaded["entries"]] == [entry.name for entry in found]
    frame = found.to_pandas()
    assert frame.loc["clamped Laplace", "rmse_average"] == found["clamped Laplace"].average.rmse
    html = found._repr_html_()
    assert html.count("<tr>") == len(found) + 1
    with pytest.raises(KeyError):
        found["no such thing"]


def test_at_a_given_value() -> None:
    here = ib.compare(ib.Interval(0, 10), sensitivity=1, epsilon=1.0, at=0.0, optimum=False)
    clamped = here["clamped Laplace"]
    assert clamped.average is None or clamped.average.rmse == clamped.worst.rmse
    # clamped at its own end: half the answers are exact, the other half is Laplace noise of scale 1, cut at 10
    exact = math.sqrt(clamped.mechanism.at(0.0).error().rmse ** 2)
    assert clamped.worst.rmse == pytest.approx(exact, rel=1e-12)
    assert clamped.worst.ends == pytest.approx(0.5 + 0.5 * math.exp(-10.0), rel=1e-9)
    assert here.limit is None


def test_widths_are_expected_widths_of_intervals() -> None:
    compared = ib.compare(ib.Integers(0, 6), sensitivity=1, epsilon=1.0, at=2, optimum=False)
    for name in ("truncated Laplace", "clamped Laplace", "truncated Gaussian"):
        entry = compared[name]
        x = np.arange(7)
        low, high = entry.mechanism.interval(x, 0.95)
        p = np.asarray(entry.mechanism.at(2.0).pmf(x))
        assert entry.worst.width == pytest.approx(float((p * (high - low)).sum()), rel=1e-9), name


@pytest.mark.parametrize(
    ("domain", "target", "missing"),
    [
        (ib.Interval(0, math.inf), {"epsilon": 1.0}, "truncated Gaussian"),
        (ib.Interval(0, 10), {"rdp": (8.0, 0.5)}, "clamped staircase"),
        (ib.Interval(0, 10), {"epsilon": 1.0, "delta": 1e-6}, "clamped staircase"),
    ],
)
def test_what_cannot_meet_the_target_is_left_out(domain: ib.Interval, target: dict[str, object], missing: str) -> None:
    compared = ib.compare(domain, sensitivity=1, optimum=False, **target)
    names = {entry.name for entry in compared}
    assert missing not in names
    assert {"clamped Laplace", "truncated Laplace"} <= names


def test_half_lines_have_no_average() -> None:
    compared = ib.compare(ib.Interval(0, math.inf), sensitivity=1, epsilon=1.0)
    assert compared.criterion == "worst"
    assert all(entry.average is None for entry in compared)
    with pytest.raises(ib.ParameterError, match="unbounded domain without a prior"):
        ib.compare(ib.Interval(0, math.inf), sensitivity=1, epsilon=1.0, criterion="average")


# --- recommendations


@pytest.mark.parametrize(("change", "epsilon"), [(1, 1.0), (12, 4.0), (4, 0.5)])
@pytest.mark.parametrize("criterion", ["average", "worst"])
def test_recommendations_are_near_the_optimum(change: int, epsilon: float, criterion: str) -> None:
    advised = ib.recommend(RANGE, sensitivity=change, epsilon=epsilon, criterion=criterion)
    assert advised.comparison.ratio(advised.entry) <= 1.05
    assert advised.mechanism.epsilon() <= epsilon
    assert advised.reason.endswith(".")


def test_it_says_clamp_where_that_is_best() -> None:
    advised = ib.recommend(ib.Integers(0, 30), sensitivity=1, epsilon=2.0, optimum=False)
    assert advised.name == "clamped Laplace"
    assert "of truncated Laplace noise" in advised.reason


def test_unbiased_means_plain_noise_and_says_so() -> None:
    advised = ib.recommend(ib.Interval(0, 10), sensitivity=1, epsilon=1.0, criterion="unbiased")
    assert advised.name.startswith("plain")
    assert "leave the domain" in advised.reason
    assert np.max(np.abs(advised.mechanism.at(np.linspace(0.0, 10.0, 11)).error().bias)) < 1e-9


def test_smooth_means_no_mass_at_the_ends() -> None:
    advised = ib.recommend(ib.Interval(0, 10), sensitivity=1, epsilon=1.0, criterion="smooth")
    assert advised.mechanism.edges == "truncate"
    assert advised.entry.worst.ends == 0.0


# --- accuracy


@pytest.mark.parametrize("measure", ["half-width", *(pytest.param(m, marks=pytest.mark.long) for m in ("rmse", "mae"))])
def test_the_smallest_epsilon_for_an_accuracy(measure: str) -> None:
    domain, wanted = ib.Interval(0, 100), 2.0
    kinds = ["clamped Laplace", "truncated Laplace"]
    reached = ib.for_accuracy(domain, sensitivity=1, error=wanted, measure=measure, kinds=kinds)
    assert reached.error <= wanted
    assert set(reached.others) | {reached.name} == set(kinds)
    assert all(e >= reached.epsilon for e in reached.others.values())
    less = ib.compare(domain, sensitivity=1, epsilon=reached.epsilon * 0.998, optimum=False)[reached.name]
    assert less.average is not None
    size = {"rmse": less.average.rmse, "mae": less.average.mae, "half-width": less.average.width / 2.0}[measure]
    assert size > wanted


def test_accuracy_that_cannot_be_had() -> None:
    with pytest.raises(ib.UnreachableTarget, match="no mechanism has rmse"):
        ib.for_accuracy(ib.Interval(0, 100), sensitivity=100, error=1e-9, kinds=["clamped Laplace"])


def test_the_tradeoff_falls_in_epsilon() -> None:
    curves = ib.tradeoff(ib.Interval(0, 100), sensitivity=1, epsilons=[0.1, 1.0, 10.0]).curves
    assert len(curves) >= 3
    for name, values in curves.items():
        assert values[0] > values[1] > values[2], name


# --- wrong use


@pytest.mark.parametrize("function", [ib.compare, ib.recommend])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"domain": (0, 1)}, "domain must be an Interval"),
        ({"sensitivity": math.nan}, "sensitivity must be"),
        ({"epsilon": None}, "exactly one of epsilon"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"loss": "cubic"}, "loss must be one of"),
        ({"criterion": "best"}, "criterion must be one of"),
        ({"optimum": "yes"}, "optimum must be True, False or None"),
    ],
)
def test_bad_input(function: object, change: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"domain": ib.Interval(0, 1), "sensitivity": 0.1, "epsilon": 1.0} | change
    with pytest.raises(ib.InboundsError, match=message):
        function(given.pop("domain"), **given)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"error": 0.0}, "error must be"),
        ({"measure": "range"}, "measure must be one of"),
        ({"kinds": ["no noise"]}, "kinds must be one of"),
        ({"level": 1.0}, "level must be"),
        ({"criterion": "smooth"}, "criterion must be one of"),
    ],
)
def test_bad_accuracy(change: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"sensitivity": 0.1, "error": 0.1} | change
    with pytest.raises(ib.InboundsError, match=message):
        ib.for_accuracy(ib.Interval(0, 1), **given)  # type: ignore[arg-type]


def test_every_kind_is_used_somewhere() -> None:
    seen: set[str] = set()
    for target in ({"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-3}):
        seen |= {entry.name for entry in ib.compare(ib.Integers(0, 8), sensitivity=1, optimum=False, **target)}
    assert seen == set(KINDS)

"""Comparisons, recommendations, accuracy: against figures worked out in another way."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import inbounds as ib
from inbounds import advice
from inbounds.advice import KINDS
from inbounds.inference.risk import risk
from inbounds.mechanism import denoised

pytestmark = pytest.mark.thinned(3)

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


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ({"epsilon": 50.0}, "optimal: epsilon must be"),
        ({"epsilon": 1.0, "delta": 1e-15}, "optimal: delta must be"),
        ({"epsilon": 0.0, "delta": 1e-3}, "optimal: epsilon must be"),
    ],
)
def test_targets_that_the_program_does_not_take(target: dict[str, float], reason: str) -> None:
    compared = ib.compare(RANGE, sensitivity=1, **target)
    assert compared.skipped["optimum"].startswith(reason)
    assert compared.limit is None
    assert compared["clamped Laplace"].average is not None


def test_small_epsilon() -> None:
    """Once it asked for 38 GB."""
    for change, epsilon in ((12, 1e-6), (1, 1e-12)):
        compared = ib.compare(RANGE, sensitivity=change, epsilon=epsilon)
        assert {"staircase, denoised", "clamped staircase, denoised"} <= {entry.name for entry in compared}


def test_what_takes_too_long_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(denoised, "_TERMS", 5000.0)
    long = ib.compare(RANGE, sensitivity=12, epsilon=0.5, optimum=False)
    assert long.skipped["staircase, denoised"].startswith("Denoised: errors on whole numbers must be sums of at most")
    assert long["plain Laplace, denoised"].average is not None
    line = ib.compare(ib.Interval(0, 10), sensitivity=1, epsilon=1e-3, optimum=False)
    assert line.skipped["staircase, denoised"].startswith("left out below epsilon 0.1")


def test_answers_that_never_occur_have_no_width() -> None:
    compared = ib.compare(ib.Integers(0, 5), sensitivity=1, epsilon=1.0, prior=([1], [1]))
    assert compared["optimum"].average.rmse == 0.0  # it always says 1
    assert compared["optimum"].average.width == 5.0
    assert compared.ratio(compared["optimum"]) == 1.0  # of a limit that is 0
    assert compared.ratio(compared["clamped Laplace"]) == math.inf


def test_the_first_stair_is_made_for_the_error_after_denoising() -> None:
    domain = ib.Interval(0, 10)
    plain = ib.Staircase.calibrate(domain, sensitivity=10, epsilon=4.0, edges="ignore")
    tuned = advice.denoised_staircase(domain, sensitivity=10, epsilon=4.0)
    assert tuned.raw.gamma < plain.gamma
    assert risk(tuned).mse < 0.95 * risk(plain.denoised()).mse
    assert tuned.epsilon() <= 4.0
    long = advice.denoised_staircase(ib.Interval(0, 100), sensitivity=10, epsilon=4.0)
    assert long.raw.gamma == plain.gamma
    used = ib.compare(domain, sensitivity=10, epsilon=4.0, optimum=False)["staircase, denoised"]
    assert used.mechanism == tuned


def test_at_is_one_true_value() -> None:
    box = ib.Box([0, 0], [10, 9])
    assert ib.compare(box, sensitivity=ib.L1(1), epsilon=1.0, at=[3.0, 4.0]).at == [3.0, 4.0]
    for domain, change, at in ((RANGE, 1, [3, 4]), (RANGE, 1, "3"), (box, ib.L1(1), 3.0), (box, ib.L1(1), [1, 2, 3])):
        with pytest.raises(ib.InboundsError, match=r"compare: at must be"):
            ib.compare(domain, sensitivity=change, epsilon=1.0, at=at)
    with pytest.raises(ib.InboundsError, match=r"for_accuracy: at must be"):
        ib.for_accuracy(RANGE, sensitivity=1, error=1.0, at=[3, 4])


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


@pytest.mark.parametrize(
    ("change", "epsilon"), [(1, 0.1), (1, 1.0), (5, 0.3), (5, 1.0), (10, 3.0), (15, 1.0), (30, 1.0), (30, 4.0)]
)
def test_recommendations_are_near_the_optimum_on_0_to_30(change: int, epsilon: float) -> None:
    for criterion in ("average", "worst"):
        advised = ib.recommend(ib.Integers(0, 30), sensitivity=change, epsilon=epsilon, criterion=criterion)
        assert advised.comparison.ratio(advised.entry) <= 1.05, criterion


def test_criteria_in_other_words() -> None:
    for said, meant in (("worst case", "worst"), ("no mass at the ends", "smooth")):
        one, two = (ib.recommend(RANGE, sensitivity=4, epsilon=0.5, criterion=c, optimum=False) for c in (said, meant))
        assert (one.name, one.reason) == (two.name, two.reason)


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


def test_accuracy_of_the_optimum() -> None:
    reached = ib.for_accuracy(RANGE, sensitivity=12, error=2.0)
    assert reached.name == "optimum"
    assert reached.epsilon == float(f"{reached.epsilon:.5g}")  # a clean decimal
    least = [math.sqrt(ib.optimal(RANGE, sensitivity=12, epsilon=f * reached.epsilon).value) for f in (0.999, 1.0)]
    assert least[1] <= 2.0 < least[0]
    assert all(e == float(f"{e:.5g}") and e > reached.epsilon for e in reached.others.values())
    assert "staircase, denoised" in reached.others
    shown = str(reached)
    assert all(f"  as much or more would be needed with {name}" in shown for name in reached.worse)
    assert reached._repr_html_().count("<tr>") == 2 + len(reached.others) + len(reached.worse)


def test_accuracy_names_what_needs_more() -> None:
    """What is only said to need as much or more does so."""
    reached = ib.for_accuracy(ib.Interval(0, 10), sensitivity=1, error=1.0)
    assert reached.error <= 1.0
    assert set(reached.others) | set(reached.worse) | {reached.name} >= {"clamped Laplace", "plain Laplace, denoised"}
    compared = ib.compare(ib.Interval(0, 10), sensitivity=1, epsilon=reached.epsilon * 0.999, optimum=False)
    assert all(entry.average.rmse > 1.0 for entry in compared if entry.in_range)


def test_the_simpler_of_equals_is_named() -> None:
    """For sensitivity 1 stairs are geometric noise."""
    reached = ib.for_accuracy(RANGE, sensitivity=1, error=1.0, kinds=["clamped staircase", "clamped Laplace"])
    assert set(reached.others.values()) == {reached.epsilon}
    assert ib.for_accuracy(RANGE, sensitivity=1, error=1.0).name == "clamped Laplace"


def test_accuracy_that_is_more_than_enough() -> None:
    """At large epsilon intervals of whole numbers are points."""
    reached = ib.for_accuracy(RANGE, sensitivity=1, error=0.5, measure="half-width", kinds="clamped Laplace")
    assert reached.error <= 0.5


def test_accuracy_that_cannot_be_had() -> None:
    with pytest.raises(ib.UnreachableTarget, match="no mechanism has rmse"):
        ib.for_accuracy(ib.Interval(0, 100), sensitivity=100, error=1e-9, kinds=["clamped Laplace"])


def test_the_tradeoff_falls_in_epsilon() -> None:
    curves = ib.tradeoff(ib.Interval(0, 100), sensitivity=1, epsilons=[0.1, 1.0, 10.0]).curves
    assert len(curves) >= 3
    for name, values in curves.items():
        assert values[0] > values[1] > values[2], name


def test_the_tradeoff_shows_in_notebooks() -> None:
    found = ib.tradeoff(RANGE, sensitivity=1, epsilons=[0.5, 1.0], kinds=["clamped Laplace", "optimum"])
    assert found._repr_html_().count("<tr>") == 3
    assert found.curves["optimum"][1] <= found.curves["clamped Laplace"][1]


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
        ({"kinds": 5}, "kinds must be a name or a sequence of names"),
        ({"kinds": []}, "kinds must be a name or a sequence of names"),
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


# --- figures under a prior, and at the worst true value


def clamped(domain: ib.Interval) -> ib.Laplace:
    return ib.Laplace.calibrate(domain, sensitivity=1, epsilon=1.0, edges="clamp")


def test_averages_follow_a_narrow_prior() -> None:
    domain = ib.Interval(0, 1000)

    def near(q: np.ndarray) -> np.ndarray:
        return (np.abs(q - 430.0) < 20.0) * 1.0

    mechanism = clamped(domain)
    average, _ = advice.figures(mechanism, prior=near)
    assert average.rmse == pytest.approx(math.sqrt(2.0), rel=1e-9)
    assert 0.0 <= average.ends < 1e-9
    low, high = mechanism.interval(430.0)
    assert average.width == pytest.approx(high - low, rel=1e-2)
    reached = ib.for_accuracy(domain, sensitivity=1, error=2.0, prior=near, kinds="clamped Laplace")
    assert reached.epsilon == pytest.approx(math.sqrt(2.0) / 2.0, rel=2e-3)


@pytest.mark.parametrize("width", [10.0, 1000.0])
def test_average_mass_at_the_ends_is_exact(width: float) -> None:
    mechanism = clamped(ib.Interval(0, width))
    average, _ = advice.figures(mechanism)
    b = mechanism.scale
    assert average.ends == pytest.approx(b * -math.expm1(-width / b) / width)
    # noise moved to an end is as far off as it went beyond: (b/2) |e^(-q/b) - e^(-(w-q)/b)|, averaged
    assert average.bias == pytest.approx(b**2 * (1.0 - 2.0 * math.exp(-width / 2 / b) + math.exp(-width / b)) / width)
    truncated, _ = advice.figures(ib.Laplace(ib.Interval(0, width), scale=b, sensitivity=1))
    assert truncated.ends == 0.0


def test_an_average_far_along_a_half_line() -> None:
    average, _ = advice.figures(clamped(ib.Interval(0, math.inf)), prior=lambda q: np.exp(-q / 1000.0))
    assert average.ends == pytest.approx(0.5 / 1001.0, rel=1e-6)


@pytest.mark.parametrize("prior", [([5.0], [1.0]), lambda q: (np.abs(q - 5.0) < 0.5) * 1.0, None])
def test_the_worst_case_is_that_of_the_domain_whatever_the_prior(prior: object) -> None:
    mechanism = clamped(ib.Interval(0, 10))
    _, worst = advice.figures(mechanism, prior=prior)
    assert worst.ends == pytest.approx(0.5 + 0.5 * math.exp(-10.0), rel=1e-9)
    widest = max(advice.figures(mechanism, at=q)[1].width for q in (0.0, 2.5, 5.0))
    assert worst.width >= 0.98 * widest


def test_the_optimum_for_the_worst_case_needs_no_prior() -> None:
    compared = ib.compare(ib.Integers(0, 10), sensitivity=1, epsilon=1.0, criterion="worst", prior=lambda q: 1.0 + q)
    assert compared.limit is not None
    assert compared.limit.attained


def test_accuracy_of_the_optimum_beyond_epsilon_16() -> None:
    reached = ib.for_accuracy(ib.Integers(0, 12), sensitivity=12, error=1e-3, kinds="optimum")
    assert 16.0 < reached.epsilon < 30.0
    with pytest.raises(ib.UnreachableTarget, match="up to 30"):
        ib.for_accuracy(ib.Integers(0, 12), sensitivity=12, error=1e-9, kinds="optimum")
    with pytest.raises(ib.ParameterError, match="kinds must be without 'optimum'"):
        ib.for_accuracy(ib.Interval(0, 12), sensitivity=12, error=1.0, kinds="optimum")


def test_what_is_shown_of_one_true_value() -> None:
    here = ib.compare(ib.Interval(0, 10), sensitivity=1, epsilon=1.0, at=2.0, level=0.999, optimum=False)
    heads = str(here).splitlines()[0]
    assert heads.split() == ["mechanism", "rmse", "mae", "|bias|", "at", "the", "ends", "99.9%", "width"]
    assert here._repr_html_().count("<th>") == 6


def test_smooth_on_whole_numbers_is_not_called_a_density() -> None:
    assert "density" not in ib.recommend(ib.Integers(0, 10), sensitivity=1, epsilon=1.0, criterion="smooth").reason

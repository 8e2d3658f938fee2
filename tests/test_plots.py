"""Pictures: something is drawn on every kind of domain, and what is drawn are the package's own numbers."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import inbounds as ib
from inbounds import plots
from inbounds.errors import MissingExtra

pytestmark = pytest.mark.thinned(3)

INF = math.inf
#: domain, sensitivity, scale, true values
SETTINGS: dict[str, tuple[Any, Any, float, Any]] = {
    "interval": (ib.Interval(0, 10), 1.0, 1.5, [0, 4.2, 9]),
    "wide interval": (ib.Interval(0, 120), 0.5, 0.8, 41.3),
    "half-line": (ib.Interval(0, INF), 1.0, 2.0, [0, 5]),
    "upper half-line": (ib.Interval(-INF, 3), 1.0, 2.0, [3]),
    "line": (ib.Interval(-INF, INF), 1.0, 2.0, [5.0]),
    "spans": (ib.Spans([(0, 4), (6, 9), (12, INF)]), 1.0, 2.0, [3.5, 6, 14]),
    "integers": (ib.Integers(0, 30), 1, 3.0, [0, 12]),
    "many integers": (ib.Integers(0, 10**6), 1, 5e4, [0, 400_000]),
    "half-line of integers": (ib.Integers(0, INF), 1, 3.0, [2]),
    "box": (ib.Box([0, 1], [10, 9]), ib.L2(4.0), 3.0, [[0, 1], [5, 8]]),
    "integer box": (ib.Box([0, -5], [10, 9], integer=True), ib.L2(4.0), 2.0, [5, 8]),
    "box of four": (ib.Box([0] * 4, [1] * 4), ib.L1(0.5), 0.5, [0.1, 0.2, 0.3, 0.4]),
    "large box": (ib.Box([0] * 8, [1] * 8), ib.Linf(0.5), 0.5, [[0.5] * 8]),
}
EDGES = ("truncate", "clamp", "ignore")


def mechanism(name: str, family: Any = ib.Laplace, edges: str = "truncate") -> Any:
    domain, sensitivity, scale, _ = SETTINGS[name]
    return family(domain, scale=scale, sensitivity=sensitivity, edges=edges)


def pixels(figure: Figure) -> Any:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].astype(float)


BAND = "#9ecae1"  # of intervals, whose lines may cover each other


def assert_drawn(figure: Any, least: int = 60, colour: str = plots.COLOURS[0]) -> None:
    """A figure with labelled axes, inside each of which a colour was used (the legend does not count)."""
    assert isinstance(figure, Figure)
    image = pixels(figure)[::-1]  # rows upwards, like the axes
    blue = np.abs(image - 255.0 * np.array(to_rgb(colour))).max(axis=-1) < 25.0
    for axes in figure.axes:
        assert axes.get_ylabel()
        assert axes.get_xlabel() or axes.get_ylabel().endswith("(pins)")
        x0, y0, x1, y1 = (int(v) for v in axes.get_window_extent().extents)
        assert blue[y0:y1, x0:x1].sum() > least


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("name", SETTINGS)
def test_a_density_is_drawn(name: str, edges: str) -> None:
    family = ib.Gaussian if len(name) % 2 else ib.Laplace
    assert_drawn(plots.density(mechanism(name, family, edges), SETTINGS[name][3], unit="days"))


@pytest.mark.thinned(4)
@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("name", SETTINGS)
def test_an_error_is_drawn(name: str, edges: str) -> None:
    family = ib.Laplace if len(name) % 2 else ib.Gaussian
    assert_drawn(plots.error(mechanism(name, family, edges)))


@pytest.mark.parametrize("name", SETTINGS)
def test_a_profile_is_drawn(name: str) -> None:
    m = mechanism(name)
    assert_drawn(plots.profile(m, epsilons=[0.0, 0.2 * m.epsilon(), 0.5 * m.epsilon()]))


@pytest.mark.parametrize("name", SETTINGS)
def test_scales_are_drawn(name: str) -> None:
    domain, sensitivity = SETTINGS[name][:2]
    assert_drawn(plots.scales(domain, sensitivity, [0.5, 1.0, 2.0]))


# ---------------------------------------------------------------- the numbers


def test_a_density_shows_the_density() -> None:
    m = mechanism("interval")
    (axes,) = plots.density(m, [4.2]).axes
    x, y = axes.lines[0].get_data()
    assert x[0] == 0.0
    assert x[-1] == 10.0
    assert 4.2 in x
    np.testing.assert_array_equal(y, m.at(4.2).pdf(x))


def test_a_density_breaks_at_holes() -> None:
    m = mechanism("spans")
    (axes,) = plots.density(m, [3.5, 14]).axes
    x, y = (np.asarray(v) for v in axes.lines[0].get_data())
    gaps = np.flatnonzero(np.isnan(x))
    assert [(x[i - 1], x[i + 1]) for i in gaps] == [(4.0, 6.0), (9.0, 12.0)]
    assert np.isnan(y[gaps]).all()


def test_clamped_noise_has_pins_of_the_right_size() -> None:
    m = mechanism("interval", edges="clamp")
    _, pins = plots.density(m, [0.0, 9.0]).axes
    heights = [line.get_ydata()[0] for line in pins.lines if len(line.get_ydata()) == 1]
    (_, lower), (_, upper) = m.at([0.0, 9.0]).atoms
    assert upper[0] < 2e-3 * lower[0]  # not to be seen
    assert heights == [*lower, upper[1]]
    assert pins.get_ylabel() == "probability of an end (pins)"


def test_there_are_no_pins_where_the_ends_are_far() -> None:
    assert len(plots.density(mechanism("wide interval", edges="clamp"), 41.3).axes) == 1


def test_the_ends_of_many_whole_numbers_are_pins() -> None:
    m = mechanism("many integers", edges="clamp")
    axes, pins = plots.density(m, [0]).axes
    assert pins.lines[0].get_ydata()[1] == m.at(0).pmf(0)
    assert axes.get_ylim()[1] < 2e-5


def test_bars_are_probabilities() -> None:
    m = mechanism("integers", ib.Gaussian, "clamp")
    (axes,) = plots.density(m, [0]).axes
    bars = axes.containers[0].patches
    where = np.array([bar.get_x() + bar.get_width() / 2.0 for bar in bars])
    np.testing.assert_allclose([bar.get_height() for bar in bars], m.at(0).pmf(np.round(where)))
    assert axes.get_ylabel() == "probability"


def test_a_profile_shows_delta_and_says_whether_it_is_exact() -> None:
    m = mechanism("integers")
    (axes,) = plots.profile(m, epsilons=[0.0, 0.1, 0.2]).axes
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [float(m.delta(e)) for e in (0.0, 0.1, 0.2)])
    assert axes.get_yscale() == "log"
    assert axes.lines[0].get_label().endswith("(exact)")
    (axes,) = plots.profile(mechanism("box", ib.Gaussian), epsilons=[0.0, 0.1]).axes
    assert axes.lines[0].get_label().endswith("(proven upper bound)")


@pytest.mark.parametrize(
    ("m", "last"),
    [
        (ib.Laplace(ib.Integers(0, 3), scale=2.0, sensitivity=1), "pure"),
        (ib.Gaussian(ib.Interval(0, 10), scale=1.0, sensitivity=1, edges="ignore"), "delta"),
    ],
)
def test_a_profile_ends_where_there_is_nothing_more_to_see(m: Any, last: str) -> None:
    (axes,) = plots.profile(m).axes
    end = axes.lines[0].get_xdata()[-1]
    if last == "pure":
        assert m.epsilon() * (1.0 - 1e-5) < end < m.epsilon()
        assert axes.lines[1].get_xdata()[0] == m.epsilon()
    else:
        assert 0.0 < m.delta(end) <= 1e-10 < m.delta(end / 2.0)


def test_error_shows_rmse_and_bias() -> None:
    m = mechanism("interval", ib.Gaussian)
    (axes,) = plots.error(m, unit="years").axes
    x = axes.lines[0].get_xdata()
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), m.at(x).error().rmse)
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), m.at(x).error().bias)
    assert (x[0], x[-1]) == (0.0, 10.0)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("true value (years)", "expected error (years)")


def test_error_on_a_box_is_that_of_each_coordinate() -> None:
    m = mechanism("box")
    second = plots.error(m).axes[1]
    x = second.lines[0].get_xdata()
    q = np.stack([np.full(x.shape, 5.0), x], axis=-1)
    np.testing.assert_allclose(second.lines[0].get_ydata(), m.at(q).error().rmse[:, 1], rtol=1e-12)


def test_scales_are_those_of_calibrate() -> None:
    domain, grid = ib.Interval(0, 10), [0.5, 2.0]
    first, second = plots.scales(domain, 1.0, grid).axes
    for axes, family, methods in ((first, ib.Laplace, ("exact", "paper")), (second, ib.Gaussian, METHODS)):
        for line, method in zip(axes.lines, methods, strict=False):
            expected = [family.calibrate(domain, sensitivity=1.0, epsilon=e, method=method).scale for e in grid]
            np.testing.assert_array_equal(line.get_ydata(), expected)
    assert [line.get_label().split(":")[0] for line in second.lines] == ["exact", "Chen and Hale", "Liu"]
    assert first.lines[1].get_label() == "Holohan et al.: 1.00 times the exact one"


METHODS = ("exact", "paper", "liu")


def test_scales_leave_out_what_cannot_be_had() -> None:
    (axes,) = plots.scales(ib.Interval(0, INF), 1.0, [1.0, 2.0]).axes
    assert axes.get_title(loc="left").startswith("Laplace")
    both = plots.scales(ib.Interval(0, INF), 1.0, [1.0], delta=1e-6).axes
    assert both[1].get_xlabel() == "ε, with δ = 1e-06"
    with pytest.raises(ib.ParameterError, match="sensitivity must be"):
        plots.scales(ib.Interval(0, 1), 5.0, [1.0])


# ---------------------------------------------------------------- figures and axes of the caller


CALLS: dict[str, Callable[..., Figure]] = {
    "density": lambda **k: plots.density(mechanism("interval"), [1.0], **k),
    "profile": lambda **k: plots.profile(mechanism("integers"), epsilons=[0.0, 0.1], **k),
    "error": lambda **k: plots.error(mechanism("interval"), **k),
    "scales": lambda **k: plots.scales(ib.Interval(0, INF), 1.0, [1.0, 2.0], **k),
}


@pytest.mark.parametrize("name", CALLS)
def test_axes_and_figures_may_be_given(name: str) -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert CALLS[name](axes=right) is figure
    assert right.lines
    assert not left.lines
    assert right.get_legend() is not None
    own = Figure()
    assert CALLS[name](figure=own) is own
    assert_drawn(own)
    with pytest.raises(ib.ParameterError, match="axes must be 1 matplotlib axes"):
        CALLS[name](axes=[left, right])


@pytest.mark.parametrize("name", CALLS)
def test_the_legend_is_not_over_the_data(name: str) -> None:
    figure = CALLS[name]()
    pixels(figure)  # places everything
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    assert legends
    for legend in legends:
        assert not any(legend.get_window_extent().overlaps(axes.get_window_extent()) for axes in figure.axes)


def test_two_profiles_share_axes() -> None:
    figure = plots.profile(mechanism("integers"), epsilons=[0.0, 0.1], label="first")
    (axes,) = figure.axes
    plots.profile(mechanism("integers", edges="clamp"), epsilons=[0.0, 0.1], label="second", axes=axes)
    assert [line.get_color() for line in axes.lines] == list(plots.COLOURS[:2])
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["first (exact)", "second (exact)"]


@pytest.mark.parametrize("call", [plots.density, plots.profile, plots.error])
def test_only_mechanisms_are_drawn(call: Any) -> None:
    more = ([1.0],) if call is plots.density else ()
    with pytest.raises(ib.ParameterTypeError, match="mechanism must be a mechanism of this package"):
        call("Laplace", *more)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: plots.answers([]), "answers: found must be a mapping from names to answers or releases"),
        (lambda: plots.answers({"a": 3.0}), "answers: found must be a mapping"),
        (lambda: plots.answers(mechanism("interval").release(3)), "answers: found must be a mapping"),
        (lambda: plots.comparison(5), r"comparison: found must be what inbounds.compare returns; got 5"),
        (lambda: plots.tradeoff(None), r"tradeoff: found must be what inbounds.tradeoff returns; got None"),
        (lambda: plots.intervals("Laplace"), "mechanism must be a mechanism of this package"),
    ],
)
def test_what_cannot_be_drawn_is_named(call: Any, words: str) -> None:
    with pytest.raises(ib.ParameterTypeError, match=words):
        call()


@pytest.mark.parametrize("epsilons", [[1.0, -1.0], [1.0, 0.0], [0.5, 1e6]])
def test_scales_name_an_epsilon_that_makes_no_sense(epsilons: Any) -> None:
    with pytest.raises(ib.ParameterError, match="epsilon must be"):
        plots.scales(ib.Interval(0, 10), 1.0, epsilons)


# ---------------------------------------------------------------- answers that are points


def table(domain: Any, count: int) -> ib.Table:
    ring = [int(1e6 * math.exp(-min(k, count - k))) + 1 for k in range(count)]
    return ib.Table(domain, [ring[count - i :] + ring[: count - i] for i in range(count)], sensitivity=1, cells=count)


POINTS: dict[str, tuple[Any, Any]] = {
    "table": (table(ib.Interval(0, 10), 20), [0, 5]),
    "table, denoised": (table(ib.Interval(0, 10), 20).denoised(), [0, 5]),
    "table on spans": (ib.Table(ib.Spans([(0, 1), (2, 4)]), [[5, 2, 1], [2, 5, 2], [1, 2, 5]], sensitivity=1), 0.5),
    "table on blocks": (table(ib.Integers(0, 99), 20), [0, 50]),
    "table on integers": (table(ib.Integers(0, 19), 20), [0, 5]),
    "table on integers, denoised": (table(ib.Integers(0, 19), 20).denoised(), [0, 5]),
    "large table": (table(ib.Interval(0, 10), 100), [0, 5]),
    "one answer": (ib.Table(ib.Interval(0, 1), [[0, 1], [0, 1]], sensitivity=0.1), 0.5),
    "integers, denoised": (mechanism("integers", edges="ignore").denoised(), [0, 5]),
    "integers, denoised to whole numbers": (mechanism("integers").denoised(integer=True), [0, 5]),
    "integers, not in order": (
        ib.Staircase.calibrate(ib.Integers(0, 30), sensitivity=5, epsilon=1.0, edges="ignore").denoised(),
        3,
    ),
    "many integers, denoised": (
        ib.Laplace(ib.Integers(0, 3000), scale=100, sensitivity=1, edges="ignore").denoised(),
        [0, 1000],
    ),
    "box, denoised": (mechanism("integer box", edges="ignore").denoised(), [5, 8]),
}


@pytest.mark.parametrize("name", POINTS)
def test_answers_that_are_points_are_drawn(name: str) -> None:
    made, values = POINTS[name]
    figure = plots.density(made, values)
    assert_drawn(figure, least=30)
    assert figure.axes[0].get_ylabel() == "probability"


@pytest.mark.parametrize("name", [name for name in POINTS if not name.startswith("box")])
def test_intervals_of_answers_that_are_points_are_drawn(name: str) -> None:
    made, _ = POINTS[name]
    figure = plots.intervals(made)
    assert_drawn(figure, colour=BAND)
    (axes,) = figure.axes
    drawn = next(line for line in axes.lines if line.get_label() == "maximum likelihood")
    x = np.asarray(drawn.get_xdata())
    x = x[~np.isnan(x)]
    assert np.asarray(made._possible(x)).all()
    assert np.asarray(drawn.get_ydata())[~np.isnan(drawn.get_xdata())] == pytest.approx(made.estimate(x))
    assert axes.get_xlim()[0] <= x[0] <= x[-1] <= axes.get_xlim()[1]


def test_stems_are_probabilities() -> None:
    for name in ("table", "table, denoised", "integers, denoised", "integers, not in order"):
        made, values = POINTS[name]
        (axes,) = plots.density(made, values).axes
        for line, q in zip(axes.lines, np.atleast_1d(values), strict=False):
            assert line.get_label() == f"true value {q}"
            assert np.sum(np.asarray(line.get_ydata())) == pytest.approx(1.0, abs=2e-3)  # what is out of view
            nearest = made.at(q).pmf(made.at(q).answers(5e-4))
            assert np.max(np.asarray(line.get_ydata())) == pytest.approx(np.max(nearest))


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("kind", ["interval", "spans", "integers", "half-line", "many integers"])
def test_intervals_are_drawn(kind: str, edges: str) -> None:
    assert_drawn(plots.intervals(mechanism(kind, edges=edges)), colour=BAND)
    if kind in ("interval", "spans"):
        assert_drawn(plots.intervals(mechanism(kind, edges=edges).denoised()), colour=BAND)


def test_a_few_true_values_at_most() -> None:
    with pytest.raises(ib.ParameterError, match="1 to 7 true values"):
        plots.density(mechanism("interval"), np.linspace(0, 10, 20))
    with pytest.raises(ib.OutsideDomain):
        plots.density(mechanism("interval"), [11.0])


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"Install inbounds\[plots\]"):
        plots.error(mechanism("interval"))


def test_pyplot_is_never_loaded() -> None:
    code = """
import sys
import inbounds as ib
from inbounds import plots
assert "matplotlib" not in sys.modules
plots.error(ib.Laplace(ib.Interval(0, 1), scale=1.0, sensitivity=0.1))
assert "matplotlib" in sys.modules and "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)

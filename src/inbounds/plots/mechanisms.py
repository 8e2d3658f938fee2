"""Pictures of one mechanism: its answers, its privacy, its error; and of scales."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from inbounds import _checks as check
from inbounds._checks import FloatArray
from inbounds.distribution import BoxDistribution, Distribution
from inbounds.domain import Box, Domain, Line
from inbounds.errors import ParameterError, UnreachableTarget
from inbounds.mechanism import Additive, Denoised, Gaussian, Laplace, Mechanism
from inbounds.mechanism.denoised import DenoisedLaw
from inbounds.mechanism.table import TableLaw
from inbounds.plots.style import (
    BARS,
    COLOURS,
    STYLES,
    TAIL,
    broken,
    check_mechanism,
    finish,
    in_a_row,
    line_of,
    name_of,
    panels_for,
    places,
    plain_ticks,
    shade,
    shown,
    tidy,
    title_of,
    where_of,
    with_unit,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEAST = 1e-12  # delta drawn


def density(
    mechanism: Mechanism, values: Any, *, unit: str = "", axes: Any = None, figure: Figure | None = None
) -> Figure:
    """The distribution of the answer for one or several true values.

    A density on intervals and spans, with the point masses of clamped noise as pins (right-hand scale); bars on whole
    numbers, stems where answers are other points; for a box one panel a coordinate. What cannot be answered is grey.

    Parameters
    ----------
    mechanism : any mechanism
    values : number or sequence of numbers; for a Box a vector or a sequence of vectors
        The true values.
    unit : str
        The unit of the answers, for the labels.
    axes : matplotlib axes, or a sequence with one for each coordinate of a Box
    figure : matplotlib figure
    """
    check_mechanism("density", mechanism)
    true = _true_values(mechanism, values)
    laws = mechanism.at(true)
    names = [f"true value {shown(q)}" for q in true]
    panels = panels_for("density", mechanism.domain, axes, figure)
    for i, panel in enumerate(panels):
        law = laws.marginals[i] if isinstance(laws, BoxDistribution) else laws
        at = true[:, i] if isinstance(laws, BoxDistribution) else true
        _draw_density(panel, mechanism, line_of(mechanism.domain, i), law, at, names, unit)
        panel.set_title(title_of(mechanism, i, len(panels)), fontsize="medium", loc="left")
    return finish(panels, given=axes is not None)


def profile(
    mechanism: Mechanism,
    *,
    epsilons: Sequence[float] | None = None,
    label: str = "",
    axes: Any = None,
    figure: Figure | None = None,
) -> Figure:
    """delta over epsilon: what the mechanism guarantees, on a logarithmic scale.

    Parameters
    ----------
    mechanism : any mechanism
    epsilons : numbers in [0, 500]
        Where to compute delta; by default 41 places up to the pure epsilon, or until delta is 1e-10.
    label : str
        The name in the legend.
    axes, figure : see :func:`density`; a second profile may be drawn on the axes of the first.
    """
    check_mechanism("profile", mechanism)
    pure = float(mechanism.epsilon())
    (panel,) = panels_for("profile", None, axes, figure)
    grid = _epsilons(mechanism, pure) if epsilons is None else check.vector("profile", "epsilons", epsilons)
    bounds = [mechanism.delta(float(e)) for e in grid]
    delta = np.array([float(b) for b in bounds])
    delta[delta <= 0.0] = np.nan
    colour = COLOURS[sum(line.get_linestyle() == "-" for line in panel.lines) % len(COLOURS)]
    kind = "exact" if all(b.exact for b in bounds) else "proven upper bound"
    panel.plot(grid, delta, color=colour, label=f"{label or name_of(mechanism)} ({kind})")
    if math.isfinite(pure) and pure <= 1.02 * float(np.max(grid)):
        panel.axvline(pure, color=colour, linestyle=":", label=f"pure ε = {pure:.4g}, where δ is 0")
    panel.set_yscale("log")
    if np.nanmin(delta, initial=1.0) < _LEAST:
        panel.set_ylim(bottom=_LEAST)
    panel.set_xlabel("ε")
    panel.set_ylabel("δ")
    panel.set_xlim(left=0.0)
    tidy(panel)
    if axes is None:
        panel.set_title(f"Privacy profile, on {where_of(mechanism.domain)}", fontsize="medium", loc="left")
    return finish([panel], given=axes is not None)


def error(
    mechanism: Mechanism | Mapping[str, Mechanism], *, unit: str = "", axes: Any = None, figure: Figure | None = None
) -> Figure:
    """The expected error over the true value, exactly.

    Parameters
    ----------
    mechanism : a mechanism, or several by name on the same one-dimensional domain
        Of one the root mean squared error and the bias are drawn, of several the root mean squared errors.
    unit, axes, figure : see :func:`density`
    """
    if isinstance(mechanism, Mapping):
        return _errors(mechanism, unit, axes, figure)
    check_mechanism("error", mechanism)
    domain = mechanism.domain
    panels = panels_for("error", domain, axes, figure)
    for i, panel in enumerate(panels):
        line = line_of(domain, i)
        at = places(line, mechanism.scale)
        found = mechanism._marginal(i, at).error()
        for (name, values), style, colour in zip(
            (("root mean squared error", found.rmse), ("bias", found.bias)), ("-", "--"), COLOURS, strict=False
        ):
            _draw_error(panel, line, at, values, label=name, linestyle=style, color=colour)
        panel.axhline(0.0, color="#999999", linewidth=0.8, zorder=1)
        _label_error(panel, line, at, "expected error", unit)
        panel.set_title(title_of(mechanism, i, len(panels)), fontsize="medium", loc="left")
    return finish(panels, given=axes is not None)


def _errors(given: Mapping[str, Mechanism], unit: str, axes: Any, figure: Figure | None) -> Figure:
    for mechanism in given.values():
        check_mechanism("error", mechanism)
    domains = {mechanism.domain for mechanism in given.values()}
    (domain,) = domains if len(domains) == 1 else (None,)
    if domain is None or isinstance(domain, Box) or len(given) > len(COLOURS):
        requirement = f"one to {len(COLOURS)} mechanisms on one and the same one-dimensional domain"
        check.refuse("error", "mechanism", requirement, sorted(map(str, given)), "")
    (panel,) = panels_for("error", None, axes, figure)
    at = places(domain, max(mechanism.scale for mechanism in given.values()))
    for k, (name, mechanism) in enumerate(given.items()):
        found: Any = mechanism.at(at)
        style: dict[str, Any] = {"color": COLOURS[k], "linestyle": STYLES[k]}
        _draw_error(panel, domain, at, found.error().rmse, label=str(name), **style)
    panel.set_ylim(bottom=0.0)
    _label_error(panel, domain, at, "root mean squared error", unit)
    if axes is None:
        panel.set_title(f"Error over the true value, on {where_of(domain)}", fontsize="medium", loc="left")
    return finish([panel], given=axes is not None)


def _draw_error(panel: Axes, line: Line, at: FloatArray, values: Any, **style: Any) -> None:
    marker = "." if line.lattice and at.size <= BARS else ""
    panel.plot(*broken(line, at, np.asarray(values)), marker=marker, **style)


def _label_error(panel: Axes, line: Line, at: FloatArray, name: str, unit: str) -> None:
    window = float(at[0]), float(at[-1])
    shade(panel, line, window)
    panel.set_xlim(*window)
    panel.set_xlabel(with_unit("true value", unit))
    panel.set_ylabel(with_unit(name, unit))
    tidy(panel)


def scales(
    domain: Domain,
    sensitivity: Any,
    epsilons: Sequence[float] | None = None,
    *,
    delta: float = 0.0,
    unit: str = "",
    axes: Any = None,
    figure: Figure | None = None,
) -> Figure:
    """The exact scale over epsilon against published ones and plain noise: one panel for Laplace, one for Gaussian.

    A method that does not cover the domain, the sensitivity or the target is left out; so is a panel without any.

    Parameters
    ----------
    domain : Interval, Spans, Integers or Box
    sensitivity : as for :meth:`inbounds.Laplace.calibrate`
    epsilons : positive numbers
        By default 13 from 0.1 to 10.
    delta : float in [0, 1)
    unit : str
    axes : matplotlib axes, or a sequence with one for each panel
    figure : matplotlib figure
    """
    grid = np.geomspace(0.1, 10.0, 13) if epsilons is None else check.vector("scales", "epsilons", epsilons)
    found = {cls: _curves(cls, domain, sensitivity, grid, delta) for cls in (Laplace, Gaussian)}
    drawn = {cls: curves for cls, curves in found.items() if curves}
    if not drawn:
        for epsilon in grid.tolist():  # says what is wrong
            Laplace.calibrate(domain, sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    panels = panels_for("scales", None, axes, figure, count=len(drawn))
    for panel, (cls, curves) in zip(panels, drawn.items(), strict=True):
        for name, values in curves.items():
            colour, style, width = _CURVES[name]
            label = name if name == "exact" else f"{name}: {_ratio(values, curves['exact'])} the exact one"
            panel.plot(grid, values, color=colour, linestyle=style, linewidth=width, label=label)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel("ε" if not delta else f"ε, with δ = {delta:g}")
        panel.set_ylabel(with_unit("scale b" if cls is Laplace else "scale σ", unit))
        panel.set_title(f"{cls.__name__} on {where_of(domain)}", fontsize="medium", loc="left")
        tidy(panel)
        plain_ticks(panel)
    return finish(panels, given=axes is not None, apart=True)


# ---------------------------------------------------------------- density


def _true_values(mechanism: Mechanism, values: Any) -> FloatArray:
    true = check.real_array("density", "values", values, requirement="a true value or several of them")
    depth = 1 if isinstance(mechanism.domain, Box) else 0
    true = true[None] if true.ndim == depth else true
    if true.ndim != depth + 1 or not 1 <= true.shape[0] <= len(COLOURS):
        check.refuse("density", "values", f"1 to {len(COLOURS)} true values", f"shape {true.shape}", "")
    return true


def _draw_density(panel: Axes, m: Mechanism, line: Line, law: Any, at: FloatArray, names: list[str], unit: str) -> None:
    edges = getattr(m, "edges", "truncate")
    inside = edges != "ignore"
    window = _window(line, law, inside)
    panel.set_xlabel(with_unit("answer", unit))
    points = _points(line, law, window)
    if points is not None:
        _draw_points(panel, line, law, points, window, names, walls=edges == "clamp" or isinstance(m, Denoised))
    else:
        x = _grid(line if inside else None, at, window)
        y = np.asarray(law.pdf(x[:, None]))
        for k, name in enumerate(names):
            panel.plot(*(broken(line, x, y[:, k]) if inside else (x, y[:, k])), color=COLOURS[k], label=name)
        panel.set_ylabel(with_unit("probability density", f"1/{unit}" if unit else ""))
    panel.set_ylim(bottom=0.0)
    panel.set_xlim(*window)
    for k, q in enumerate(at):
        panel.plot(
            [q],
            [0.0],
            marker="^",
            markersize=8,
            color=COLOURS[k],
            clip_on=False,
            zorder=5,
            transform=panel.get_xaxis_transform(),
        )
    shade(panel, line, window)
    tidy(panel)
    if points is None:
        _draw_pins(panel, line, law.atoms, window)


def _points(line: Line, law: Any, window: tuple[float, float]) -> FloatArray | None:
    """The answers in view where they are points: no more of them than there are pixels."""
    if isinstance(law, TableLaw | DenoisedLaw):
        found = law.answers(TAIL)
        return None if found is None else found[(found >= window[0]) & (found <= window[1])]
    if not line.lattice:
        return None
    first, last = math.ceil(window[0]), math.floor(window[1])
    return np.unique(np.round(np.linspace(first, last, min(last - first + 1, 4000))))


def _draw_points(
    panel: Axes, line: Line, law: Any, x: FloatArray, window: tuple[float, float], names: list[str], *, walls: bool
) -> None:
    """A bar each, or a stem where they are not whole numbers in a row; where there are too many a curve.

    walls : whether much may lie at the outermost two, which are then pins next to a curve.
    """
    panel.set_ylabel("probability")
    gap = float(np.min(np.diff(x), initial=window[1] - window[0]))
    few, row = x.size <= BARS, in_a_row(line, x)
    if walls and not few:
        ends = [float(end) for end in ((line.lower, line.upper) if row else x[[0, -1]]) if x[0] <= end <= x[-1]]
        x = x[~np.isin(x, ends)]
        _draw_pins(panel, line, [(end, law.pmf(end)) for end in ends], window)
    y = np.asarray(law.pmf(x[:, None]))
    count = len(names)
    width = 0.84 * gap / count
    for k, name in enumerate(names):
        beside = x + (k - (count - 1) / 2.0) * width
        if few and row:
            panel.bar(beside, y[:, k], width, color=COLOURS[k], label=name)
        elif few:
            panel.vlines(beside, 0.0, y[:, k], color=COLOURS[k], linewidth=1.2)
            panel.plot(beside, y[:, k], "o", markersize=3.5, color=COLOURS[k], label=name)
        else:
            panel.plot(x, y[:, k], drawstyle="steps-mid", color=COLOURS[k], label=name)


def _draw_pins(panel: Axes, line: Line, atoms: Sequence[tuple[float, Any]], window: tuple[float, float]) -> None:
    """Pins at the ends, side by side into the domain, on a scale of their own: a probability is not a density."""
    seen = [(x, np.atleast_1d(mass)) for x, mass in atoms if window[0] <= x <= window[1]]
    most = max((float(np.max(mass)) for _, mass in seen), default=0.0)
    if most < TAIL:
        return
    pins = panel.twinx()
    pins.set_ylabel("probability of an end (pins)")
    pins.spines["top"].set_visible(False)
    lower = {low for low, _ in line.pieces}
    for point, mass in seen:
        step = (0.012 if point in lower else -0.012) * (window[1] - window[0])
        visible = [(k, p) for k, p in enumerate(mass.tolist()) if p > 2e-3 * most]
        for beside, (k, p) in enumerate(visible):
            x = point + beside * step
            pins.plot([x, x], [0.0, p], color=COLOURS[k], linewidth=1.2)
            pins.plot([x], [p], marker="o", markersize=5, color=COLOURS[k], clip_on=False)
    pins.set_ylim(0.0, 1.08 * most)


def _window(line: Line, law: Distribution, inside: bool) -> tuple[float, float]:
    """The answers in view: all but a thousandth of every law, and an end of the domain that is near."""
    low, high = float(np.min(law.ppf(TAIL))), float(np.max(law.ppf(1.0 - TAIL)))
    if low == high and not line.lattice:  # a table with one answer
        low, high = line.lower, line.upper
    room = 0.35 * max(high - low, 1.0 if line.lattice else 0.0)
    pad = 0.5 if line.lattice else 0.03 * (high - low)
    ends = [float(line.lower), float(line.upper)]
    if inside:
        low = ends[0] if low - ends[0] <= room else low
        high = ends[1] if ends[1] - high <= room else high
    return low - pad, high + pad


def _grid(line: Line | None, at: FloatArray, window: tuple[float, float]) -> FloatArray:
    """Places for curves: even, with the kinks and the ends of pieces, where curves jump."""
    x = np.linspace(*window, 1201)
    more = [at[(at >= window[0]) & (at <= window[1])]]
    if line is not None:
        ends = np.array(line.pieces).ravel()
        more.append(ends[(ends >= window[0]) & (ends <= window[1])])
    x = np.unique(np.concatenate([x, *more]))
    return x if line is None else x[line.contains(x)]


# ---------------------------------------------------------------- profile, error, scales


def _epsilons(mechanism: Mechanism, pure: float) -> FloatArray:
    if pure <= 20.0:  # delta falls steeply to 0 there
        return np.append(np.linspace(0.0, 0.95 * pure, 31), pure * (1.0 - np.geomspace(0.04, 1e-6, 10)))
    last = 1.0
    while last < min(pure, 500.0) and mechanism.delta(last) > 1e-10:
        last *= 1.5
    return np.linspace(0.0, min(last, pure, 500.0), 41)


_CURVES = {
    "exact": (COLOURS[0], "-", 1.6),
    "Holohan et al.": (COLOURS[1], "--", 2.2),
    "Croft et al. (metric)": (COLOURS[1], "--", 2.2),
    "Chen and Hale": (COLOURS[1], "--", 2.2),
    "Liu": (COLOURS[3], "-.", 1.6),
    "plain noise, may leave the domain": (COLOURS[6], ":", 1.8),
}


def _curves(
    cls: type[Additive], domain: Domain, sensitivity: Any, grid: FloatArray, delta: float
) -> dict[str, FloatArray]:
    """The scale of every method that covers the setting, by name; none without the exact one."""
    paper = "Chen and Hale" if cls is Gaussian else "Holohan et al."
    if cls is Laplace and isinstance(domain, Line) and len(domain.pieces) > 1:
        paper = "Croft et al. (metric)"
    methods: dict[str, dict[str, str]] = {
        "exact": {},
        paper: {"method": "paper"},
        "Liu": {"method": "liu"},
        "plain noise, may leave the domain": {"edges": "ignore"},
    }
    found: dict[str, FloatArray] = {}
    for name, options in methods.items():
        try:
            found[name] = np.array(
                [
                    cls.calibrate(
                        domain, sensitivity=sensitivity, epsilon=float(e), delta=delta or None, **cast(Any, options)
                    ).scale
                    for e in grid
                ]
            )
        except (ParameterError, UnreachableTarget):
            if name == "exact":
                return {}
    return found


def _ratio(values: FloatArray, exact: FloatArray) -> str:
    low, high = float(np.min(values / exact)), float(np.max(values / exact))
    return f"{low:.2f} times" if high - low < 0.005 else f"{low:.2f} to {high:.2f} times"

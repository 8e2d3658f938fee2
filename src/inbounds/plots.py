"""Pictures of a mechanism: its answers, its privacy, its error; and of scales.

Every function draws on a new :class:`matplotlib.figure.Figure`, on a ``figure`` that is given, or on ``axes`` that are
given, and returns the figure. Nothing is shown and no global state is touched: save with ``figure.savefig(...)``.
matplotlib is imported when a picture is drawn; it comes with ``inbounds[plots]``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from inbounds import _checks as check
from inbounds._checks import FloatArray
from inbounds.distribution import BoxDistribution, Distribution
from inbounds.domain import Box, Domain, Line
from inbounds.errors import MissingExtra, ParameterError, ParameterTypeError, UnreachableTarget
from inbounds.mechanism import Gaussian, Laplace, Mechanism

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "density", "error", "profile", "require", "scales"]

#: Okabe and Ito's colours, which the colour-blind can tell apart; yellow left out, it is too light for lines.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")

_SIDES = 6  # coordinates of a box that are drawn
_BARS = 60  # whole numbers in view up to which each has its bar
_LEAST = 1e-12  # delta drawn
_TAIL = 5e-4  # probability left out of view on either side
_GREY, _OUTSIDE = "#ececec", "not in the domain"


def require() -> None:
    """Raise :class:`inbounds.errors.MissingExtra` unless matplotlib is installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as problem:
        raise MissingExtra("plots: matplotlib is not installed. Install inbounds[plots].") from problem


# ---------------------------------------------------------------- the four pictures


def density(
    mechanism: Mechanism, values: Any, *, unit: str = "", axes: Any = None, figure: Figure | None = None
) -> Figure:
    """The distribution of the answer for one or several true values.

    A density on intervals and spans, with the point masses of clamped noise as pins (right-hand scale); bars on whole
    numbers; for a box one panel a coordinate. What cannot be answered is grey.

    Parameters
    ----------
    mechanism : Laplace or Gaussian
    values : number or sequence of numbers; for a Box a vector or a sequence of vectors
        The true values.
    unit : str
        The unit of the answers, for the labels.
    axes : matplotlib axes, or a sequence with one for each coordinate of a Box
    figure : matplotlib figure
    """
    _check("density", mechanism)
    true = _true_values(mechanism, values)
    laws = mechanism.at(true)
    names = [f"true value {_shown(q)}" for q in true]
    panels = _panels("density", mechanism.domain, axes, figure)
    for i, panel in enumerate(panels):
        law = laws.marginals[i] if isinstance(laws, BoxDistribution) else laws
        at = true[:, i] if isinstance(laws, BoxDistribution) else true
        _draw_density(panel, mechanism, _line(mechanism.domain, i), law, at, names, unit)
        panel.set_title(_title(mechanism, i, len(panels)), fontsize="medium", loc="left")
    return _finish(panels, given=axes is not None)


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
    mechanism : Laplace or Gaussian
    epsilons : numbers in [0, 500]
        Where to compute delta; by default 41 places up to the pure epsilon, or until delta is 1e-10.
    label : str
        The name in the legend.
    axes, figure : see :func:`density`; a second profile may be drawn on the axes of the first.
    """
    _check("profile", mechanism)
    pure = float(mechanism.epsilon())
    (panel,) = _panels("profile", None, axes, figure)
    grid = _epsilons(mechanism, pure) if epsilons is None else check.vector("profile", "epsilons", epsilons)
    bounds = [mechanism.delta(float(e)) for e in grid]
    delta = np.array([float(b) for b in bounds])
    delta[delta <= 0.0] = np.nan
    colour = COLOURS[sum(line.get_linestyle() == "-" for line in panel.lines) % len(COLOURS)]
    kind = "exact" if all(b.exact for b in bounds) else "proven upper bound"
    panel.plot(grid, delta, color=colour, label=f"{label or _name(mechanism)} ({kind})")
    if math.isfinite(pure) and pure <= 1.02 * float(np.max(grid)):
        panel.axvline(pure, color=colour, linestyle=":", label=f"pure ε = {pure:.4g}, where δ is 0")
    panel.set_yscale("log")
    if np.nanmin(delta, initial=1.0) < _LEAST:
        panel.set_ylim(bottom=_LEAST)
    panel.set_xlabel("ε")
    panel.set_ylabel("δ")
    panel.set_xlim(left=0.0)
    _tidy(panel)
    if axes is None:
        panel.set_title(f"Privacy profile, on {_where(mechanism.domain)}", fontsize="medium", loc="left")
    return _finish([panel], given=axes is not None)


def error(mechanism: Mechanism, *, unit: str = "", axes: Any = None, figure: Figure | None = None) -> Figure:
    """The expected error over the true value: root mean squared error and bias, exactly; see :func:`density`."""
    _check("error", mechanism)
    domain = mechanism.domain
    box = isinstance(domain, Box)
    panels = _panels("error", domain, axes, figure)
    for i, panel in enumerate(panels):
        line = _line(domain, i)
        at = _places(line, mechanism.scale)
        law = Distribution(mechanism._family, line, mechanism.scale, mechanism.edges, at) if box else mechanism.at(at)
        found = cast(Distribution, law).error()
        marker = "." if line.lattice and at.size <= _BARS else ""
        for (name, values), style, colour in zip(
            (("root mean squared error", found.rmse), ("bias", found.bias)), ("-", "--"), COLOURS, strict=False
        ):
            x, y = _broken(line, at, np.asarray(values))
            panel.plot(x, y, linestyle=style, marker=marker, color=colour, label=name)
        panel.axhline(0.0, color="#999999", linewidth=0.8, zorder=1)
        _shade(panel, line, (float(at[0]), float(at[-1])))
        panel.set_xlim(float(at[0]), float(at[-1]))
        panel.set_xlabel(_with_unit("true value", unit))
        panel.set_ylabel(_with_unit("expected error", unit))
        panel.set_title(_title(mechanism, i, len(panels)), fontsize="medium", loc="left")
        _tidy(panel)
    return _finish(panels, given=axes is not None)


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
        Laplace.calibrate(domain, sensitivity=sensitivity, epsilon=float(grid[0]), delta=delta)  # says what is wrong
    panels = _panels("scales", None, axes, figure, count=len(drawn))
    for panel, (cls, curves) in zip(panels, drawn.items(), strict=True):
        for name, values in curves.items():
            colour, style, width = _CURVES[name]
            label = name if name == "exact" else f"{name}: {_ratio(values, curves['exact'])} the exact one"
            panel.plot(grid, values, color=colour, linestyle=style, linewidth=width, label=label)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel("ε" if not delta else f"ε, with δ = {delta:g}")
        panel.set_ylabel(_with_unit("scale b" if cls is Laplace else "scale σ", unit))
        panel.set_title(f"{cls.__name__} on {_where(domain)}", fontsize="medium", loc="left")
        _tidy(panel)
        _plain_ticks(panel)
    return _finish(panels, given=axes is not None, apart=True)


# ---------------------------------------------------------------- figures, labels, legends


def _check(what: str, mechanism: Any) -> None:
    if not isinstance(mechanism, Mechanism):
        kind = "a Laplace or Gaussian mechanism"
        check.refuse(what, "mechanism", kind, mechanism, "Laplace.calibrate makes one.", ParameterTypeError)


def _panels(what: str, domain: Domain | None, axes: Any, figure: Figure | None, count: int = 1) -> list[Axes]:
    """The axes to draw on: those given, or new ones."""
    if isinstance(domain, Box):
        count = min(domain.dimension, _SIDES)
    if axes is not None:
        given = list(np.atleast_1d(np.asarray(axes, dtype=object)).ravel())
        if len(given) != count:
            check.refuse(what, "axes", f"{count} matplotlib axes", f"{len(given)} of them", "Or pass a figure.")
        return given
    require()
    from matplotlib.figure import Figure

    columns = min(count, 3)
    rows = math.ceil(count / columns)
    if figure is None:
        wide = {1: 7.2, 2: 10.0, 3: 12.6}[columns]
        figure = Figure(figsize=(wide, 4.4 if rows == 1 else 3.4 * rows + 0.6), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in grid[count:]:
        spare.remove()
    return list(grid[:count])


def _finish(panels: Sequence[Axes], *, given: bool, apart: bool = False) -> Figure:
    """The legend outside the data: under the figure, or under each panel (``apart``); within axes that were given."""
    figure = cast("Figure", panels[0].get_figure(root=True))
    if given and figure.legends and len(figure.axes) == 1:  # a second curve on a figure of ours
        figure.legends.clear()
        given = False
    if given or apart:
        for panel in panels:
            if given:
                panel.legend(loc="best", fontsize="small", framealpha=0.9)
            else:
                panel.legend(loc="upper left", bbox_to_anchor=(0.0, -0.16), fontsize="small", frameon=False)
        return figure
    known = dict(zip(*reversed(panels[0].get_legend_handles_labels()), strict=True))
    known |= {_OUTSIDE: known.pop(_OUTSIDE)} if _OUTSIDE in known else {}  # last
    columns = min(len(known), 4) if max(map(len, known), default=0) < 28 else 1
    where: Any = "outside lower center" if figure.get_layout_engine() is not None else "lower center"
    figure.legend(known.values(), known.keys(), loc=where, ncols=columns, fontsize="small", frameon=False)
    return figure


def _tidy(panel: Axes) -> None:
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(True, color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)


def _plain_ticks(panel: Axes) -> None:
    """0.1, 1, 10 instead of powers, with 2 and 5 between where there is room."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis, (low, high) in ((panel.xaxis, panel.get_xlim()), (panel.yaxis, panel.get_ylim())):
        if high < 300.0 * low:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axis.set_minor_formatter(NullFormatter())


def _shown(q: Any) -> str:
    if np.ndim(q) == 0:
        return f"{q:.6g}"
    return "(" + ", ".join(f"{x:.4g}" for x in q[:_SIDES]) + (", …)" if len(q) > _SIDES else ")")


def _with_unit(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name


def _where(domain: Domain) -> str:
    if isinstance(domain, Box):
        return f"a box of {domain.dimension} coordinates"
    if len(domain.pieces) > 2:
        return f"{len(domain.pieces)} spans"
    pieces = [f"{'(' if math.isinf(a) else '['}{a:g}, {b:g}{')' if math.isinf(b) else ']'}" for a, b in domain.pieces]
    return ("whole numbers in " if domain.lattice else "") + " ∪ ".join(pieces)


def _name(mechanism: Mechanism) -> str:
    letter = "σ" if isinstance(mechanism, Gaussian) else "b"
    return f"{type(mechanism).__name__}, {letter} = {mechanism.scale:.4g}, {mechanism.edges}"


def _title(mechanism: Mechanism, i: int = 0, panels: int = 1) -> str:
    domain = mechanism.domain
    if isinstance(domain, Box) and panels > 1:
        left_out = f" of {domain.dimension}" if domain.dimension > panels else ""
        return f"coordinate {i + 1}{left_out}: {_where(domain.coordinate(i))}" + (
            f"\n{_name(mechanism)}" if i == 0 else "\n"
        )
    return f"{_name(mechanism)}, on {_where(domain)}"


def _shade(panel: Axes, line: Line, window: tuple[float, float]) -> None:
    """Grey over the part of the window where no answer can lie."""
    half = 0.5 if line.lattice else 0.0  # a whole number is as wide as its bar
    ends = [-math.inf, *(end for a, b in line.pieces for end in (a - half, b + half)), math.inf]
    for k, (a, b) in enumerate(pairwise(ends)):
        low, high = max(a, window[0]), min(b, window[1])
        if k % 2 == 0 and low < high:
            panel.axvspan(low, high, color=_GREY, linewidth=0.0, zorder=0, label=_OUTSIDE)


# ---------------------------------------------------------------- density


def _true_values(mechanism: Mechanism, values: Any) -> FloatArray:
    true = check.real_array("density", "values", values, requirement="a true value or several of them")
    depth = 1 if isinstance(mechanism.domain, Box) else 0
    true = true[None] if true.ndim == depth else true
    if true.ndim != depth + 1 or not 1 <= true.shape[0] <= len(COLOURS):
        check.refuse("density", "values", f"1 to {len(COLOURS)} true values", f"shape {true.shape}", "")
    return true


def _line(domain: Domain, i: int) -> Line:
    return domain.coordinate(i) if isinstance(domain, Box) else domain


def _draw_density(
    panel: Axes, m: Mechanism, line: Line, law: Distribution, at: FloatArray, names: list[str], unit: str
) -> None:
    inside = m.edges != "ignore"
    window = _window(line, law, inside)
    panel.set_xlabel(_with_unit("answer", unit))
    if line.lattice:
        _draw_bars(panel, line, law, window, names, clamped=m.edges == "clamp")
    else:
        x = _grid(line if inside else None, at, window)
        y = np.asarray(law.pdf(x[:, None]))
        for k, name in enumerate(names):
            panel.plot(*(_broken(line, x, y[:, k]) if inside else (x, y[:, k])), color=COLOURS[k], label=name)
        panel.set_ylabel(_with_unit("probability density", f"1/{unit}" if unit else ""))
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
    _shade(panel, line, window)
    _tidy(panel)
    if not line.lattice:
        _draw_pins(panel, line, law.atoms, window)


def _draw_bars(
    panel: Axes, line: Line, law: Distribution, window: tuple[float, float], names: list[str], *, clamped: bool
) -> None:
    """A bar each; where there are too many a curve, and pins at the ends if noise was moved to them."""
    first, last = math.ceil(window[0]), math.floor(window[1])
    few = last - first < _BARS
    whole = np.unique(np.round(np.linspace(first, last, min(last - first + 1, 4000))))  # no more than there are pixels
    panel.set_ylabel("probability")
    if clamped and not few:
        ends = [float(x) for x in (line.lower, line.upper) if first <= x <= last]
        whole = whole[~np.isin(whole, ends)]
        _draw_pins(panel, line, [(x, law.pmf(x)) for x in ends], window)
    y = np.asarray(law.pmf(whole[:, None]))
    count = len(names)
    width = 0.84 / count
    for k, name in enumerate(names):
        if few:
            panel.bar(whole + (k - (count - 1) / 2.0) * width, y[:, k], width, color=COLOURS[k], label=name)
        else:
            panel.plot(whole, y[:, k], drawstyle="steps-mid", color=COLOURS[k], label=name)


def _draw_pins(panel: Axes, line: Line, atoms: Sequence[tuple[float, Any]], window: tuple[float, float]) -> None:
    """Pins at the ends, side by side into the domain, on a scale of their own: a probability is not a density."""
    seen = [(x, np.atleast_1d(mass)) for x, mass in atoms if window[0] <= x <= window[1]]
    most = max((float(np.max(mass)) for _, mass in seen), default=0.0)
    if most < _TAIL:
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
    low, high = float(np.min(law.ppf(_TAIL))), float(np.max(law.ppf(1.0 - _TAIL)))
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


def _broken(line: Line, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The curve with a gap at every hole."""
    cuts = [int(np.searchsorted(x, right)) for _, (right, _) in pairwise(line.pieces)]
    cuts = [c for c in cuts if 0 < c < x.size]
    return np.insert(x, cuts, np.nan), np.insert(y, cuts, np.nan)


# ---------------------------------------------------------------- profile, error, scales


def _epsilons(mechanism: Mechanism, pure: float) -> FloatArray:
    if pure <= 20.0:  # delta falls steeply to 0 there
        return np.append(np.linspace(0.0, 0.95 * pure, 31), pure * (1.0 - np.geomspace(0.04, 1e-6, 10)))
    last = 1.0
    while last < min(pure, 500.0) and mechanism.delta(last) > 1e-10:
        last *= 1.5
    return np.linspace(0.0, min(last, pure, 500.0), 41)


def _places(line: Line, scale: float) -> FloatArray:
    """True values: even over each piece and dense near its ends; some scales far where it has none."""
    parts = []
    for low, high in line.pieces:
        a = low if math.isfinite(low) else (high - 12.0 * scale if math.isfinite(high) else -12.0 * scale)
        b = high if math.isfinite(high) else a + 12.0 * scale if math.isfinite(low) else -a if math.isinf(low) else high
        even = np.linspace(a, b, 201)
        near = np.geomspace(1e-3, 1.0, 60) * min(6.0 * scale, (b - a) / 2.0)
        parts.append(np.concatenate([even, a + near, b - near]))
    x = np.unique(np.concatenate(parts))
    return np.unique(np.round(x)) if line.lattice else x


_CURVES = {
    "exact": (COLOURS[0], "-", 1.6),
    "Holohan et al.": (COLOURS[1], "--", 2.2),
    "Croft et al. (metric)": (COLOURS[1], "--", 2.2),
    "Chen and Hale": (COLOURS[1], "--", 2.2),
    "Liu": (COLOURS[3], "-.", 1.6),
    "plain noise, may leave the domain": (COLOURS[6], ":", 1.8),
}


def _curves(
    cls: type[Mechanism], domain: Domain, sensitivity: Any, grid: FloatArray, delta: float
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

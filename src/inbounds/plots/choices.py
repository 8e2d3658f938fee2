"""Pictures for choosing: intervals over the answer, mechanisms side by side, error over epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from inbounds import _checks as check
from inbounds._checks import FloatArray
from inbounds.domain import Box, Line
from inbounds.errors import ParameterTypeError
from inbounds.mechanism import Mechanism
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
    name_of,
    panels_for,
    places,
    plain_ticks,
    shade,
    tidy,
    where_of,
    with_unit,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from inbounds.advice import Comparison, Tradeoff

_MEASURES = {
    "rmse": "root mean squared error",
    "mae": "mean absolute error",
    "half-width": "half-width of the interval",
}
_BANDS = ("#9ecae1", "#deebf7")
_MARKERS = ("o", "x", "D", "s")


def intervals(
    mechanism: Mechanism,
    *,
    level: float = 0.95,
    estimates: tuple[str, ...] = ("mle", "posterior-mean"),
    unit: str = "",
    axes: Any = None,
    figure: Figure | None = None,
) -> Figure:
    """What an answer says about the true value: the confidence interval and estimates, over the answer.

    Parameters
    ----------
    mechanism : any mechanism on a one-dimensional domain
    level : float in (0, 1)
        Of the outer band; the inner one has level 0.5.
    estimates : names, see :meth:`inbounds.Laplace.estimate`
    unit, axes, figure : see :func:`density`
    """
    check_mechanism("intervals", mechanism)
    line = mechanism.domain
    if isinstance(line, Box):
        check.refuse("intervals", "mechanism", "on a one-dimensional domain", mechanism, "Draw one coordinate's.")
    (panel,) = panels_for("intervals", None, axes, figure)
    x, points = _answers(mechanism, line)
    window = (float(x[0]), float(x[-1])) if x.size > 1 else (float(line.lower), float(line.upper))
    few = points and x.size <= BARS and not in_a_row(line, x)
    if few:  # room for the outermost
        room = 0.03 * (window[1] - window[0])
        window = window[0] - room, window[1] + room
    step: Any = "mid" if points else None
    for shown, colour in zip((level, 0.5), reversed(_BANDS), strict=True):
        if shown >= 0.5 or shown == level:
            ends = [np.asarray(end, dtype=np.float64) for end in mechanism.interval(x, shown)]
            name = f"{shown:.4g} confidence interval"
            if few:
                panel.vlines(x, ends[0], ends[1], color=colour, linewidth=4.0, label=name)
                continue
            low, high = (broken(line, x, end) for end in ends)
            panel.fill_between(low[0], low[1], high[1], step=step, color=colour, linewidth=0.0, label=name)
    for k, how in enumerate(estimates):
        found = np.asarray(mechanism.estimate(x, how), dtype=np.float64)
        label = how.replace("-", " ") if how != "mle" else "maximum likelihood"
        style: Any = {"linestyle": "", "marker": _MARKERS[k % len(_MARKERS)]} if few else {"linestyle": STYLES[k]}
        panel.plot(*broken(line, x, found), color=COLOURS[k], markersize=3.5, label=label, **style)
    panel.plot(window, window, color="#999999", linewidth=0.8, label="the answer itself")
    shade(panel, line, window)
    panel.set_xlim(*window)
    panel.set_xlabel(with_unit("answer", unit))
    panel.set_ylabel(with_unit("true value", unit))
    if axes is None:
        title = f"What an answer says: {name_of(mechanism)}, on {where_of(line)}"
        panel.set_title(title, fontsize="medium", loc="left")
    tidy(panel)
    return finish([panel], given=axes is not None)


def _answers(mechanism: Mechanism, line: Line) -> tuple[FloatArray, bool]:
    """Answers from end to end that the mechanism can give, and whether they are points."""
    x = places(line, mechanism.scale)
    law: Any = mechanism.at(x)
    own = law.answers(TAIL) if isinstance(law, TableLaw | DenoisedLaw) else None
    if own is not None:
        return own, True
    return np.unique(np.clip(x, np.min(law.ppf(0.0)), np.max(law.ppf(1.0)))), line.lattice


def comparison(found: Comparison, *, unit: str = "", axes: Any = None, figure: Figure | None = None) -> Figure:
    """Mechanisms side by side, the best on top: average and worst error, and the limit (:func:`inbounds.compare`)."""
    _check_made("comparison", found, "compare", ("criterion", "limit", "target"))
    rows = list(found)[::-1]
    height = None if figure is not None or axes is not None else 1.6 + 0.3 * len(rows)
    (panel,) = panels_for("comparison", None, axes, figure, height=height)
    key = "rmse" if found.loss == "squared" else "mae"
    y = np.arange(len(rows))
    worst = np.array([getattr(entry.worst, key) for entry in rows])
    average = np.array([math.nan if entry.average is None else getattr(entry.average, key) for entry in rows])
    panel.hlines(y, np.where(np.isnan(average), worst, average), worst, color="#bbbbbb", linewidth=2.0, zorder=1)
    if found.at is None and not np.isnan(average).all():
        panel.plot(average, y, "o", color=COLOURS[0], label="average over the domain", zorder=3)
    where = "worst true value" if found.at is None else f"true value {np.asarray(found.at).tolist()}"
    panel.plot(worst, y, "D", color=COLOURS[1], markersize=5, label=where, zorder=2)
    if found.limit is not None:
        value = math.sqrt(found.limit.value) if found.loss == "squared" else found.limit.value
        name = "the least possible" if found.limit.attained else "no mechanism has less"
        panel.axvline(value, color="black", linestyle=":", label=f"{name} ({found.criterion})")
    panel.set_yticks(y, [entry.name + ("" if entry.in_range else " (leaves the domain)") for entry in rows])
    panel.set_xscale("log")
    panel.set_xlabel(with_unit(_MEASURES[key], unit))
    tidy(panel)
    plain_ticks(panel, x=True, y=False)
    if axes is None:
        panel.set_title(f"{_privacy(found.target)}, on {where_of(found.domain)}", fontsize="medium", loc="left")
    return finish([panel], given=axes is not None)


def tradeoff(found: Tradeoff, *, unit: str = "", axes: Any = None, figure: Figure | None = None) -> Figure:
    """Error over epsilon, one curve a mechanism; see :func:`inbounds.tradeoff`."""
    _check_made("tradeoff", found, "tradeoff", ("criterion", "curves", "measure"))
    (panel,) = panels_for("tradeoff", None, axes, figure)
    for k, (name, values) in enumerate(found.curves.items()):
        style: dict[str, Any] = {"color": COLOURS[k % len(COLOURS)], "linestyle": STYLES[k % len(STYLES)]}
        panel.plot(found.epsilons, values, label=name, **style)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("ε" if not found.delta else f"ε, with δ = {found.delta:g}")
    panel.set_ylabel(with_unit(_MEASURES[found.measure], unit))
    tidy(panel)
    plain_ticks(panel)
    if axes is None:
        where = "on average over the domain" if found.criterion == "average" else "at the worst true value"
        panel.set_title(f"What ε buys {where}, on {where_of(found.domain)}", fontsize="medium", loc="left")
    return finish([panel], given=axes is not None)


def _check_made(what: str, found: object, maker: str, parts: tuple[str, ...]) -> None:
    """By its parts: what makes it is in a layer above this one."""
    if not all(hasattr(found, part) for part in parts):
        check.refuse(what, "found", f"what inbounds.{maker} returns", found, "", ParameterTypeError)


def _privacy(target: Any) -> str:
    letter = {"pure": "ε", "approx": "ε", "rho": "ρ", "mu": "μ", "rdp": "Rényi ε"}[target.kind]
    more = {"approx": f", δ = {target.other:g}", "rdp": f" of order {target.other:g}"}.get(target.kind, "")
    return f"{letter} = {target.value:g}{more}"


def _is_answer(found: object) -> bool:
    return getattr(found, "suppressed", False) or (hasattr(found, "value") and hasattr(found, "interval"))


def answers(
    found: Mapping[str, Any], *, title: str = "", level: float = 0.95, unit: str = "", axes: Any = None
) -> Figure:
    """Private answers side by side, each with its interval; suppressed ones are said to be so.

    Parameters
    ----------
    found : mapping of str to Answer or Release
        By the names of the groups.
    title : str
        What was asked.
    level : float in (0, 1)
        Of the intervals.
    unit, axes : see :func:`density`
    """
    level = check.level("answers", level)
    if not (isinstance(found, Mapping) and all(map(_is_answer, found.values()))):
        check.refuse("answers", "found", "a mapping from names to answers or releases", found, "", ParameterTypeError)
    (ax,) = panels_for("answers", None, axes, None, height=max(2.2, 0.32 * len(found) + 1.2))
    for place, answer in enumerate(found.values()):
        if getattr(answer, "suppressed", False):
            ax.annotate("suppressed", (0.01, place), xycoords=("axes fraction", "data"), va="center", style="italic")
            continue
        low, high = answer.interval(level)
        ax.plot([low, high], [place, place], color=COLOURS[0], linewidth=2.0, solid_capstyle="butt")
        ax.plot([answer.value], [place], "o", color="black", markersize=4.5)
    ax.set_yticks(range(len(found)), list(found))
    ax.set_ylim(max(len(found), 1) - 0.4, -0.6)  # the first on top, and room at both ends
    ax.set_xlabel(with_unit(f"{title or 'answer'}: answer (dot) and {100 * level:.4g} % interval", unit))
    tidy(ax)
    return cast("Figure", ax.get_figure(root=True))

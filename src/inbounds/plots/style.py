"""What all pictures share: colours, panels, legends, labels, and where the domain ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from inbounds import _checks as check
from inbounds._checks import FloatArray
from inbounds.domain import Box, Domain, Line
from inbounds.errors import MissingExtra, ParameterTypeError
from inbounds.mechanism import Additive, Denoised, Gaussian, Mechanism

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's colours, which the colour-blind can tell apart; yellow left out, it is too light for lines.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
#: For curves that must be told apart in grey too.
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)))

SIDES = 6  # coordinates of a box that are drawn
TAIL = 5e-4  # probability left out of view on either side
BARS = 60  # whole numbers in view up to which each has its bar
_GREY, _OUTSIDE = "#ececec", "not in the domain"


def require() -> None:
    """Raise :class:`inbounds.errors.MissingExtra` unless matplotlib is installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as problem:
        raise MissingExtra("plots: matplotlib is not installed. Install inbounds[plots].") from problem


def check_mechanism(what: str, mechanism: Any) -> None:
    if not isinstance(mechanism, Mechanism):
        kind = "a mechanism of this package"
        check.refuse(what, "mechanism", kind, mechanism, "Laplace.calibrate makes one.", ParameterTypeError)


def panels_for(
    what: str, domain: Domain | None, axes: Any, figure: Figure | None, count: int = 1, height: float | None = None
) -> list[Axes]:
    """The axes to draw on: those given, or new ones."""
    if isinstance(domain, Box):
        count = min(domain.dimension, SIDES)
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
        tall = height or (4.4 if rows == 1 else 3.4 * rows + 0.6)
        figure = Figure(figsize=(wide, tall), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in grid[count:]:
        spare.remove()
    return list(grid[:count])


def finish(panels: Sequence[Axes], *, given: bool, apart: bool = False) -> Figure:
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


def tidy(panel: Axes) -> None:
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(True, color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)


def plain_ticks(panel: Axes, *, x: bool = True, y: bool = True) -> None:
    """0.1, 1, 10 instead of powers, with 2 and 5 between where there is room."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis, (low, high), wanted in ((panel.xaxis, panel.get_xlim(), x), (panel.yaxis, panel.get_ylim(), y)):
        if not wanted:
            continue
        if high < 300.0 * low:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axis.set_minor_formatter(NullFormatter())


def shown(q: Any) -> str:
    if np.ndim(q) == 0:
        return f"{q:.6g}"
    return "(" + ", ".join(f"{x:.4g}" for x in q[:SIDES]) + (", …)" if len(q) > SIDES else ")")


def with_unit(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name


def where_of(domain: Domain) -> str:
    if isinstance(domain, Box):
        return f"a box of {domain.dimension} coordinates"
    if len(domain.pieces) > 2:
        return f"{len(domain.pieces)} spans"
    pieces = [f"{'(' if math.isinf(a) else '['}{a:g}, {b:g}{')' if math.isinf(b) else ']'}" for a, b in domain.pieces]
    return ("whole numbers in " if domain.lattice else "") + " ∪ ".join(pieces)


def name_of(mechanism: Mechanism) -> str:
    if isinstance(mechanism, Denoised):
        return f"{name_of(mechanism.raw)}, denoised"
    if not isinstance(mechanism, Additive):
        return type(mechanism).__name__
    letter = "σ" if isinstance(mechanism, Gaussian) else "b"
    return f"{type(mechanism).__name__}, {letter} = {mechanism.scale:.4g}, {mechanism.edges}"


def title_of(mechanism: Mechanism, i: int = 0, panels: int = 1) -> str:
    domain = mechanism.domain
    if isinstance(domain, Box) and panels > 1:
        left_out = f" of {domain.dimension}" if domain.dimension > panels else ""
        return f"coordinate {i + 1}{left_out}: {where_of(domain.coordinate(i))}" + (
            f"\n{name_of(mechanism)}" if i == 0 else "\n"
        )
    return f"{name_of(mechanism)}, on {where_of(domain)}"


def shade(panel: Axes, line: Line, window: tuple[float, float]) -> None:
    """Grey over the part of the window where no answer can lie."""
    half = 0.5 if line.lattice else 0.0  # a whole number is as wide as its bar
    ends = [-math.inf, *(end for a, b in line.pieces for end in (a - half, b + half)), math.inf]
    label = _OUTSIDE  # of the first one: a legend names it once
    for k, (a, b) in enumerate(pairwise(ends)):
        low, high = max(a, window[0]), min(b, window[1])
        if k % 2 == 0 and low < high:
            panel.axvspan(low, high, color=_GREY, linewidth=0.0, zorder=0, label=label)
            label = ""


def line_of(domain: Domain, i: int) -> Line:
    return domain.coordinate(i) if isinstance(domain, Box) else domain


def in_a_row(line: Line, x: FloatArray) -> bool:
    """Whether points are whole numbers, one next to the other."""
    return line.lattice and bool(np.all(x == np.round(x))) and x.size > 1 and float(np.min(np.diff(x))) == 1.0


def broken(line: Line, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The curve with a gap at every hole."""
    cuts = [int(np.searchsorted(x, right)) for _, (right, _) in pairwise(line.pieces)]
    cuts = [c for c in cuts if 0 < c < x.size]
    return np.insert(x, cuts, np.nan), np.insert(y, cuts, np.nan)


def places(line: Line, scale: float) -> FloatArray:
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

"""Commands that draw: one for each picture of :mod:`inbounds.plots`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from typer import Option

from inbounds import advice, plots
from inbounds.cli import output
from inbounds.cli.options import (
    LEVEL_HELP,
    Command,
    Family,
    Group,
    Json,
    Noise,
    OptionalScale,
    Question,
    Target,
    Wish,
    picture,
    point,
    with_options,
)
from inbounds.cli.program import examples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["app"]

app = typer.Typer(
    name="plot",
    cls=Group,
    help="Draw pictures, as PNG, SVG or PDF.",
    epilog=examples(
        "inbounds plot density laplace --interval 0 120 --sensitivity 4 --epsilon 1 --output density.png",
        "inbounds plot tradeoff --interval 0 120 --sensitivity 4 --unit years --output tradeoff.svg",
    ),
    no_args_is_help=True,
)

File = Annotated[Path, Option("--output", metavar="FILE", help="Write the picture to this file: .png, .svg or .pdf.")]
Unit = Annotated[str, Option(metavar="TEXT", help="The unit of the answers, as years, for the labels.")]
Delta = Annotated[float, Option(metavar="NUMBER", help="The delta beside every epsilon; 0 for pure epsilon.")]
Level = Annotated[float, Option(metavar="NUMBER", help=LEVEL_HELP)]


def _save(file: Path, as_json: bool, draw: Callable[[], Figure]) -> None:
    picture("--output", file)
    with output.working("drawing"):
        draw().savefig(file, dpi=150)
    if as_json:
        output.print_json({"format": "inbounds.picture", "version": 1, "output": str(file)})
    else:
        output.console().print(f"Picture: {file}", soft_wrap=True)


@app.command(
    cls=Command,
    epilog=examples(
        "inbounds plot density laplace --interval 0 120 --sensitivity 4 --epsilon 1 --at 2 --at 41 --output density.png"
    ),
)
@with_options
def density(
    family: Family,
    question: Question,
    noise: Noise,
    target: Target,
    file: File,
    scale: OptionalScale = None,
    at: Annotated[
        list[str] | None,
        Option(
            metavar="NUMBER", help="A true value; may be repeated. By default the ends and the middle of the domain."
        ),
    ] = None,
    unit: Unit = "",
    as_json: Json = False,
) -> None:
    """Draw the distribution of the answer for some true values."""
    mechanism = noise.mechanism(family, question, target, scale)
    true = [point(text, mechanism.domain) for text in at or ()] or [place for _, place in output.places(mechanism)]
    _save(file, as_json, lambda: plots.density(mechanism, np.array(true), unit=unit))


@app.command(
    cls=Command,
    epilog=examples("inbounds plot error laplace --interval 0 120 --sensitivity 4 --epsilon 1 --output error.svg"),
)
@with_options
def error(
    family: Family,
    question: Question,
    noise: Noise,
    target: Target,
    file: File,
    scale: OptionalScale = None,
    unit: Unit = "",
    as_json: Json = False,
) -> None:
    """Draw the expected error over the true value."""
    mechanism = noise.mechanism(family, question, target, scale)
    _save(file, as_json, lambda: plots.error(mechanism, unit=unit))


@app.command(
    cls=Command,
    epilog=examples(
        "inbounds plot intervals laplace --interval 0 120 --sensitivity 4 --epsilon 1 --unit years --output i.png"
    ),
)
@with_options
def intervals(
    family: Family,
    question: Question,
    noise: Noise,
    target: Target,
    file: File,
    scale: OptionalScale = None,
    level: Level = 0.95,
    unit: Unit = "",
    as_json: Json = False,
) -> None:
    """Draw what an answer says about the true value: confidence interval and estimates."""
    mechanism = noise.mechanism(family, question, target, scale)
    _save(file, as_json, lambda: plots.intervals(mechanism, level=level, unit=unit))


@app.command(
    cls=Command,
    epilog=examples("inbounds plot profile gaussian --interval 0 1 --sensitivity 0.5 --scale 0.9 --output p.pdf"),
)
@with_options
def profile(
    family: Family,
    question: Question,
    noise: Noise,
    target: Target,
    file: File,
    scale: OptionalScale = None,
    as_json: Json = False,
) -> None:
    """Draw what is guaranteed: delta over epsilon."""
    mechanism = noise.mechanism(family, question, target, scale)
    _save(file, as_json, lambda: plots.profile(mechanism))


@app.command(cls=Command, epilog=examples("inbounds plot scales --interval 0 1 --sensitivity 0.1 --output scales.png"))
@with_options
def scales(
    question: Question,
    file: File,
    delta: Delta = 0.0,
    unit: Unit = "",
    as_json: Json = False,
) -> None:
    """Draw the least scale over epsilon, beside published ones and plain noise."""
    given = question.read()
    _save(file, as_json, lambda: plots.scales(**given, delta=delta, unit=unit))


@app.command(
    cls=Command,
    epilog=examples("inbounds plot comparison --integers 0 30 --sensitivity 5 --epsilon 1 --output comparison.png"),
)
@with_options
def comparison(
    question: Question,
    target: Target,
    wish: Wish,
    file: File,
    unit: Unit = "",
    as_json: Json = False,
) -> None:
    """Draw all mechanisms that meet a privacy target, side by side with the least possible error."""
    _save(
        file,
        as_json,
        lambda: plots.comparison(wish.recommend(question, target).comparison, unit=unit),
    )


@app.command(
    cls=Command,
    epilog=examples("inbounds plot tradeoff --interval 0 120 --sensitivity 4 --unit years --output tradeoff.png"),
)
@with_options
def tradeoff(
    question: Question,
    file: File,
    delta: Delta = 0.0,
    measure: Annotated[
        str,
        Option(
            metavar="|".join(advice.MEASURES),
            help="The error to draw.",
            autocompletion=lambda: list(advice.MEASURES),
        ),
    ] = "rmse",
    unit: Unit = "",
    as_json: Json = False,
) -> None:
    """Draw what epsilon buys: error over epsilon for several mechanisms."""
    given = question.read()
    _save(file, as_json, lambda: advice.tradeoff(**given, delta=delta, measure=measure).plot(unit=unit))

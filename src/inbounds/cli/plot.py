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
    help="Pictures, as PNG, SVG or PDF.",
    epilog=examples(
        "inbounds plot density laplace --interval 0 120 --sensitivity 4 --epsilon 1 --output density.png",
        "inbounds plot tradeoff --interval 0 120 --sensitivity 4 --unit years --output tradeoff.svg",
    ),
    no_args_is_help=True,
)

File = Annotated[Path, Option("--output", metavar="FILE", help="Where it goes: .png, .svg or .pdf.")]
Unit = Annotated[str, Option(metavar="TEXT", help="The unit of the answers, for the labels.")]
Delta = Annotated[float, Option(metavar="NUMBER", help="0 is pure.")]
Level = Annotated[float, Option(metavar="NUMBER", help="Of the confidence interval.")]


def _save(file: Path, as_json: bool, draw: Callable[[], Figure], *, long: bool = False) -> None:
    picture("--output", file)
    with output.working("drawing", long=long):
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
        list[str] | None, Option(metavar="NUMBER", help="True values; may be repeated. The ends and the middle else.")
    ] = None,
    unit: Unit = "",
    as_json: Json = False,
) -> None:
    """The distribution of the answer for some true values."""
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
    """The expected error over the true value."""
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
    """What an answer says about the true value: confidence interval and estimates."""
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
    """Delta over epsilon: what is guaranteed."""
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
    """The least scale over epsilon, against published ones and plain noise."""
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
    """All mechanisms that meet a privacy target, side by side with the least possible error."""
    _save(
        file,
        as_json,
        lambda: plots.comparison(wish.recommend(question, target).comparison, unit=unit),
        long=wish.optimum is True,
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
            help="The error that is drawn.",
            autocompletion=lambda: list(advice.MEASURES),
        ),
    ] = "rmse",
    unit: Unit = "",
    as_json: Json = False,
) -> None:
    """What epsilon buys: error over epsilon for several mechanisms."""
    given = question.read()
    _save(file, as_json, lambda: advice.tradeoff(**given, delta=delta, measure=measure).plot(unit=unit))

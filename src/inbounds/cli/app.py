"""One function for each command; budgets and pictures have commands of their own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

import inbounds
from inbounds import _checks as check
from inbounds.calibration import METHODS
from inbounds.cli import budget, output, plot, query, release
from inbounds.cli.options import (
    Command,
    Family,
    FamilyOrRecord,
    Guarantee,
    Json,
    Noise,
    OptionalScale,
    Plain,
    Question,
    Scale,
    SecretCommand,
    Target,
    UsageError,
    Wish,
    known_family,
    picture,
    point,
    with_options,
)
from inbounds.cli.program import NEGATIVE, UNDECIDED, Program, examples

if TYPE_CHECKING:
    from inbounds.events import Event

__all__ = ["app"]

app = typer.Typer(
    name="inbounds",
    cls=Program,
    help="Differential privacy with answers that are always in range.",
    epilog=examples(
        "inbounds demo",
        "inbounds compare --integers 0 30 --sensitivity 1 --epsilon 1",
        "inbounds release laplace --interval 0 120 --sensitivity 0.5 --epsilon 0.3 < mean_age.txt",
        "inbounds query visits.csv --types age=integer --unit patient --mean age --bounds 0 120 --epsilon 0.3 "
        "--budget-epsilon 1 --explain",
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"inbounds {inbounds.__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[bool, Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Differential privacy with answers that are always in range."""


# ---------------------------------------------------------------- scales and guarantees


@app.command(
    cls=Command,
    epilog=examples(
        "inbounds calibrate laplace --interval 0 120 --sensitivity 0.5 --epsilon 1",
        "inbounds calibrate gaussian --integers 0 30 --sensitivity 1 --epsilon 1 --delta 1e-6 --edges clamp",
        "inbounds calibrate laplace --interval 0 365 --without 90 120 --sensitivity 3 --epsilon 0.5",
        "inbounds calibrate gaussian --box 0:10,1:9 --l2 4.47 --epsilon 0.1 --json",
    ),
)
@with_options
def calibrate(
    family: Family,
    question: Question,
    noise: Noise,
    target: Target,
    guarantee: Guarantee = "adjacent",
    method: Annotated[
        str,
        Option(
            metavar="|".join(METHODS),
            help="The smallest scale (exact), or a published one to compare with.",
            autocompletion=lambda: list(METHODS),
        ),
    ] = "exact",
    as_json: Json = False,
) -> None:
    """Find the least noise that certainly meets a privacy target."""
    wanted = target.read()
    with output.working("calibrating"):
        mechanism = noise.calibrate(family, question, target, guarantee=guarantee, method=method)
        known = output.facts(
            mechanism,
            epsilons=[wanted["epsilon"]] if wanted.get("delta") else [],
            alphas=[wanted["rdp"][0]] if "rdp" in wanted else [],
            rho="rho" in wanted,
            mu="mu" in wanted,
        )
    if as_json:
        output.print_json(
            {
                "format": "inbounds.calibration",
                "version": 1,
                "mechanism": output.record(mechanism),
                "target": wanted | {"guarantee": guarantee, "method": method},
                "guarantee": [fact.record() for fact in known],
                "error": output.errors(mechanism),
            }
        )
        return
    asked = output.asked(wanted, guarantee) + ("" if method == "exact" else f" (published method: {method})")
    output.print_mechanism(mechanism, known, asked=asked)


@app.command(
    cls=Command,
    epilog=examples(
        "inbounds guarantee laplace --interval 0 120 --scale 0.8 --sensitivity 0.5",
        "inbounds guarantee gaussian --interval 0 1 --scale 0.3 --sensitivity 0.1 --delta 1e-6 --epsilon 0.5 --alpha 8",
        "# what 'inbounds release --json' or 'inbounds query --json' printed needs nothing else:",
        "inbounds guarantee release.json --delta 1e-6",
    ),
)
@with_options
def guarantee(
    ctx: typer.Context,
    family: FamilyOrRecord,
    question: Question,
    noise: Noise,
    scale: OptionalScale = None,
    delta: Annotated[
        list[float] | None, Option(metavar="NUMBER", help="Show epsilon at this delta. May be repeated.")
    ] = None,
    epsilon: Annotated[
        list[float] | None, Option(metavar="NUMBER", help="Show delta at this epsilon. May be repeated.")
    ] = None,
    alpha: Annotated[
        list[float] | None, Option(metavar="NUMBER", help="Show Renyi DP of this order. May be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what a scale, or the record of a release, guarantees: epsilon, delta, Renyi, concentrated, Gaussian DP.

    A file may hold a record, or all that 'inbounds release --json' or 'inbounds query --json' printed. Several answers
    compose: their guarantee is that of releasing them one after the other about the same people.
    """
    if family.endswith(".json"):
        if scale is not None or (question, noise) != (Question(), Noise()):
            step = "It has the domain, the sensitivity and the scale: leave out their options."
            check.refuse("inbounds", "a record", "given without options for noise", Plain(family), step)
        _certify(Path(family), epsilon or (), delta or (), alpha or (), as_json)
        return
    known_family(family, or_record=True)
    if scale is None:
        raise UsageError("Missing option '--scale'", ctx=ctx)
    mechanism = noise.with_scale(family, question, scale)
    with output.working("bounding the privacy loss"):
        known = output.facts(
            mechanism, epsilons=epsilon or (), deltas=delta or (), alphas=alpha or (), rho=True, mu=True
        )
    if as_json:
        output.print_json(
            {
                "format": "inbounds.guarantee",
                "version": 1,
                "mechanism": output.record(mechanism),
                "guarantee": [fact.record() for fact in known],
                "error": output.errors(mechanism),
            }
        )
        return
    output.print_mechanism(mechanism, known)


def _certify(
    file: Path, epsilons: Sequence[float], deltas: Sequence[float], alphas: Sequence[float], as_json: bool
) -> None:
    """Recompute the guarantee of what was released from its record."""
    event = _recorded(file.read_bytes())
    found = event.guarantee()
    with output.working("recomputing the guarantee"):
        known = output.facts(found, epsilons=epsilons, deltas=deltas or (1e-6, 1e-9), alphas=alphas, rho=True, mu=True)
    if as_json:
        facts = [fact.record() for fact in known]
        record = {"format": "inbounds.guarantee", "version": 1, "event": event.to_json(), "guarantee": facts}
        output.print_json(record)
    else:
        output.print_event(event, known)


def _recorded(text: bytes) -> Event:
    """The event of a record, or of all that a command printed: several are released one after the other."""
    from inbounds import events

    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        whole = None  # which is told better below
    form = whole.get("format") if isinstance(whole, dict) else None
    if form in ("inbounds.release", "inbounds.guarantee"):
        return events.from_json(whole.get("event"))
    if form in ("inbounds.report", "inbounds.explanation"):
        parts = whole.get("answers" if form == "inbounds.report" else "plans")
        found = [events.from_json(part.get("event")) for part in parts or () if isinstance(part, dict)]
        return found[0] if len(found) == 1 else events.Composed(tuple(found))
    return events.from_json(text)


@app.command(
    cls=Command,
    epilog=examples(
        "inbounds audit laplace --interval 0 10 --scale 1 --sensitivity 1 --epsilon 1",
        "inbounds audit gaussian --interval 0 1 --scale 0.3 --sensitivity 0.1 --epsilon 1 --delta 1e-6 --plot a.png",
    ),
)
@with_options
def audit(
    family: Family,
    question: Question,
    noise: Noise,
    scale: Scale,
    epsilon: Annotated[float, Option(metavar="NUMBER", help="The epsilon that is claimed.")],
    delta: Annotated[float, Option(metavar="NUMBER", help="The delta that is claimed; 0 for pure epsilon.")] = 0.0,
    plot: Annotated[
        Path | None,
        Option(metavar="FILE", help="Draw the privacy loss and the profile to this file: .png, .svg or .pdf."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Prove a privacy claim (exit code 0), or refute it with a counterexample (1); undecided is 3."""
    from inbounds import auditing

    if plot is not None:
        picture("--plot", plot)
    mechanism = noise.with_scale(family, question, scale)
    with output.working("searching for the worst pair"):
        found = auditing.audit(mechanism, epsilon=epsilon, delta=delta)
    if plot is not None:
        found.plot().savefig(plot, dpi=150)
    if as_json:
        output.print_json(found.to_dict() | ({} if plot is None else {"plot": str(plot)}))
    else:
        output.console().print(str(found), soft_wrap=True)
        if plot is not None:
            output.console().print(f"Picture: {plot}", soft_wrap=True)
    if found.verdict != "proven":
        raise typer.Exit(NEGATIVE if found.verdict == "refuted" else UNDECIDED)


# ---------------------------------------------------------------- choosing and releasing


@app.command(
    cls=Command,
    epilog=examples(
        "inbounds compare --integers 0 30 --sensitivity 5 --epsilon 1",
        "inbounds compare --interval 0 120 --sensitivity 0.5 --epsilon 1 --delta 1e-6 --criterion worst",
        "inbounds compare --integers 0 30 --sensitivity 1 --epsilon 1 --at 0 --loss absolute",
    ),
)
@with_options
def compare(
    question: Question,
    target: Target,
    wish: Wish,
    at: Annotated[
        str | None,
        Option(
            metavar="NUMBER",
            help="Compare errors at this true value instead of over the domain. Do not use real data here.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare all mechanisms that meet a privacy target by exact error, beside the least possible; recommend one."""
    wanted, given = target.read(), question.read()
    if at is not None and wish.criterion is not None:
        step = "At one true value the average and the worst are the same."
        check.refuse("inbounds", "--criterion", "left out with --at", wish.criterion, step)
    with output.working("comparing mechanisms"):
        if at is None:
            advice = wish.recommend(question, target)
            found, chosen = advice.comparison, {"mechanism": advice.name, "reason": advice.reason}
            text = f"Recommended: {advice.name}. Reason: {advice.reason}"
        else:
            place = point(at, given["domain"])
            found = inbounds.compare(**given, **wanted, loss=wish.loss, optimum=wish.optimum, at=place)
            chosen, text = None, ""
    if as_json:
        output.print_json(found.to_dict() | {"recommended": chosen})
    else:
        output.print_comparison(found, text)


app.command("release", cls=SecretCommand, epilog=release.EXAMPLES)(release.release)
app.command("query", cls=Command, epilog=query.EXAMPLES)(query.query)
app.add_typer(budget.app)
app.add_typer(plot.app)


@app.command(cls=Command, epilog=examples("inbounds demo", "inbounds demo --output pictures --json"))
def demo(
    folder: Annotated[Path, Option("--output", metavar="FOLDER", help="Write the pictures to this folder.")] = Path(
        "build/demo"
    ),
    as_json: Json = False,
) -> None:
    """Ask questions about real people: answers in range beside what plain noise would have said, with pictures."""
    from inbounds import demo as demonstration

    if as_json:
        output.print_json(demonstration.record(folder))
    else:
        demonstration.main(folder)


@app.command(
    cls=Command,
    epilog=examples("inbounds reproduce"),
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def reproduce(ctx: typer.Context, as_json: Json = False) -> None:
    """Say where the four papers are recomputed: by 'make reproduce', in the folder reproduction/ of the repository.

    It is not part of what is installed. Nothing is computed here, and the exit code is 2.
    """
    raise UsageError(
        "The papers are not recomputed by the installed program, but in the folder reproduction/ of the repository: "
        "run 'make reproduce' there",
        ctx=ctx,
    )

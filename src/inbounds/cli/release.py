"""The command that releases an answer. It alone is told a true value, and never repeats it."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from typer import Option

from inbounds import _checks as check
from inbounds.cli import budget, output
from inbounds.cli.options import (
    LEVEL_HELP,
    Guarantee,
    Json,
    Key,
    LedgerPlace,
    Noise,
    OptionalFamily,
    OptionalScale,
    Plain,
    Question,
    ScopeName,
    Target,
    Wish,
    check_paying,
    one_of,
    open_ledger,
    open_scope,
    secret,
    with_options,
)
from inbounds.cli.program import examples, unseen
from inbounds.errors import OutsideDomain
from inbounds.mechanism import Mechanism

__all__ = ["EXAMPLES", "release"]

_VALUE = "The true value"

EXAMPLES = examples(
    "inbounds release laplace --interval 0 120 --sensitivity 0.5 --epsilon 0.3 < mean_age.txt",
    "# asks for the true value and does not show it:",
    "inbounds release --recommend --integers 0 30 --sensitivity 1 --epsilon 1",
    "inbounds release laplace --interval 0 120 --sensitivity 0.5 --epsilon 0.3 --from mean_age.txt "
    "--ledger budget.db --scope visits --key 'mean age, March'",
)


@with_options
def release(
    question: Question,
    noise: Noise,
    target: Target,
    wish: Wish,
    family: OptionalFamily = None,
    scale: OptionalScale = None,
    guarantee: Guarantee = "adjacent",
    recommend: Annotated[
        bool, Option("--recommend", help="Use the mechanism that 'inbounds compare' recommends; give no family then.")
    ] = False,
    value: Annotated[
        str | None,
        Option(
            metavar="NUMBER",
            help="The true value, for trials only: the shell's history and other users of the machine see it.",
            rich_help_panel=_VALUE,
        ),
    ] = None,
    source: Annotated[
        Path | None,
        Option(
            "--from",
            metavar="FILE",
            help="Read the true value from a file. Without this option, or with -, it is read from standard input; on "
            "a terminal you are asked for it, and what you type is not shown.",
            rich_help_panel=_VALUE,
        ),
    ] = None,
    clip: Annotated[
        bool,
        Option(
            "--clip",
            help="Move a true value outside the domain to the nearest end before noise is added.",
            rich_help_panel=_VALUE,
        ),
    ] = False,
    level: Annotated[float, Option(metavar="NUMBER", help=LEVEL_HELP)] = 0.95,
    ledger: LedgerPlace = None,
    scope: ScopeName = None,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Release one answer, always in the domain, with a confidence interval.

    The true value is read from standard input or a file and is never shown.

    With a ledger the price is recorded before the answer is drawn.
    """
    one_of("the noise", {"laplace|gaussian": family, "--recommend": recommend or None}, "For instance laplace.")
    check_paying(ledger, scope, key)
    check.number("inbounds", "--level", level, above=0.0, below=1.0, next_step="For instance 0.95.")
    with output.working("finding the mechanism"):
        mechanism = _mechanism(family, question, noise, target, wish, scale, guarantee)
        known = [] if scale is None else output.facts(mechanism, rho=True)
    if clip and len(getattr(mechanism.domain, "pieces", ())) > 1:
        step = "Near answers may land on opposite sides of a hole."
        check.refuse("inbounds", "--clip", "left out on an interval with holes", Plain("it"), step)
    event = mechanism.event()
    with open_ledger(ledger) if ledger is not None else nullcontext() as opened:
        paid = None if opened is None or scope is None else open_scope(opened, scope)
        draw = _Draw(mechanism, secret(value, source, mechanism.domain), clip)
        answer = draw() if paid is None else paid.spend(event, draw, key=key)
        account = None if paid is None else budget.record(paid) | {"key": key, "replayed": not draw.done}
    lower, upper = mechanism.interval(answer, level)
    if as_json:
        output.print_json(
            {
                "format": "inbounds.release",
                "version": 1,
                "value": answer,
                "interval": {"level": level, "lower": lower, "upper": upper},
                "mechanism": output.record(mechanism),
                "event": event.to_json(),
                "budget": account,
            }
            | ({"guarantee": [fact.record() for fact in known]} if known else {})
        )
        return
    rows = []
    for i, (shown, ends) in enumerate(output.span(mechanism, answer, lower, upper)):
        which = "" if np.ndim(answer) == 0 else f" {i + 1}"
        rows += [(f"answer{which}", shown), (f"interval{which}", f"{ends} with confidence {level:g}")]
    privacy = [output.asked(target.read(scale=scale), guarantee), *(f"{fact.name}: {fact.row()[-1]}" for fact in known)]
    rows += [*(("privacy", text) for text in privacy if text), ("mechanism", repr(mechanism))]
    if account is None:
        rows.append(("budget", "none: nothing keeps count of this release (see --ledger)"))
    else:
        again = "given before, so it cost nothing; " if account["replayed"] else ""
        left = output.amounts(account["remaining"], up=False)
        told = f"{scope}: {again}spent {output.amounts(account['spent'])}; left for one release {left}"
        rows.append(("budget", told))
    output.print_rows(rows)


@dataclass
class _Draw:
    """The draw, of what JSON has; ``done`` once data may have been touched."""

    mechanism: Mechanism
    true: Any = field(repr=False)
    clip: bool
    done: bool = False

    def __call__(self) -> Any:
        self.done = True
        try:
            with unseen():
                return output.plain(self.mechanism.release(self.true, clip=self.clip).value)
        except OutsideDomain as error:
            error.add_note("Use --clip, or give the domain that it lies in.")
            raise


def _mechanism(
    family: str | None,
    question: Question,
    noise: Noise,
    target: Target,
    wish: Wish,
    scale: float | None,
    guarantee: str,
) -> Mechanism:
    if family is None:
        if (noise, scale, guarantee) != (Noise(), None, "adjacent"):
            options, step = "--scale, --edges, --granularity and --guarantee", "The recommended mechanism has its own."
            check.refuse("inbounds", options, "left out with --recommend", Plain("some of them"), step)
        return wish.recommend(question, target).mechanism
    if wish != Wish():
        options, step = "--loss, --criterion and --optimum", "They are for --recommend."
        check.refuse("inbounds", options, "left out with a family of noise", Plain("some of them"), step)
    if scale is not None and guarantee != "adjacent":
        step = "It says which scale is looked for."
        check.refuse("inbounds", "--guarantee", "left out with --scale", guarantee, step)
    return noise.mechanism(family, question, target, scale, guarantee=guarantee)

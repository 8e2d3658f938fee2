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
    Json,
    Noise,
    OptionalFamily,
    Plain,
    Question,
    Target,
    Wish,
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

_VALUE, _BUDGET = "The true value", "Budget"

EXAMPLES = examples(
    "inbounds release laplace --interval 0 120 --sensitivity 0.5 --epsilon 0.3 < mean_age.txt",
    "# asks for the true value, and does not show it:",
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
    recommend: Annotated[
        bool, Option("--recommend", help="Use what 'inbounds compare' recommends, instead of a noise.")
    ] = False,
    value: Annotated[
        str | None,
        Option(
            metavar="NUMBER",
            help="For trials only: the shell's history and other users of the machine see it.",
            rich_help_panel=_VALUE,
        ),
    ] = None,
    source: Annotated[
        Path | None,
        Option(
            "--from",
            metavar="FILE",
            help="Read it from a file; from standard input if left out, or -. A terminal asks, and shows nothing.",
            rich_help_panel=_VALUE,
        ),
    ] = None,
    clip: Annotated[
        bool, Option("--clip", help="Move it to the nearest end of the domain first.", rich_help_panel=_VALUE)
    ] = False,
    level: Annotated[float, Option(metavar="NUMBER", help="Of the confidence interval.")] = 0.95,
    ledger: Annotated[
        str | None, Option(metavar="PATH|URL", help="Pay from a budget in this ledger.", rich_help_panel=_BUDGET)
    ] = None,
    scope: Annotated[str | None, Option(metavar="NAME[/NAME...]", help="The budget.", rich_help_panel=_BUDGET)] = None,
    key: Annotated[
        str | None,
        Option(metavar="TEXT", help="Names the request: again, it costs nothing.", rich_help_panel=_BUDGET),
    ] = None,
    as_json: Json = False,
) -> None:
    """One answer to publish, always in the domain, with a confidence interval.

    The true value is read from standard input or a file, and never shown.

    With a ledger the price is recorded before the answer is drawn.
    """
    one_of("the noise", {"laplace|gaussian": family, "--recommend": recommend or None}, "For instance laplace.")
    if (ledger is None) != (scope is None) or (ledger is None and key is not None):
        step = "For instance --ledger budget.db --scope visits."
        check.refuse("inbounds", "--ledger and --scope", "given together, --key with them", Plain("a part"), step)
    check.number("inbounds", "--level", level, above=0.0, below=1.0, next_step="For instance 0.95.")
    with output.working("finding the mechanism", long=wish.optimum is True):
        mechanism = _mechanism(family, question, noise, target, wish)
    if clip and len(getattr(mechanism.domain, "pieces", ())) > 1:
        step = "Near answers may land on opposite sides of a hole."
        check.refuse("inbounds", "--clip", "left out on an interval with holes", Plain("it"), step)
    event = mechanism.event()
    with open_ledger(ledger) if ledger is not None else nullcontext() as opened:
        paid = None if opened is None or scope is None else open_scope(opened, scope)
        draw = _Draw(mechanism, secret(value, source, mechanism.domain), clip, paid is not None)
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
        )
        return
    rows = []
    for i, (shown, ends) in enumerate(output.span(mechanism, answer, lower, upper)):
        which = "" if np.ndim(answer) == 0 else f" {i + 1}"
        rows += [(f"answer{which}", shown), (f"interval{which}", f"{ends} with confidence {level:g}")]
    rows += [("privacy", output.asked(target.read())), ("mechanism", repr(mechanism))]
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
    paid: bool
    done: bool = False

    def __call__(self) -> Any:
        self.done = True
        try:
            with unseen():
                return output.plain(self.mechanism.release(self.true, clip=self.clip).value)
        except OutsideDomain as error:
            error.add_note("Use --clip, or give the domain that it lies in.")
            if self.paid:
                error.add_note("The price is spent nevertheless: it was the data that decided this.")
            raise


def _mechanism(family: str | None, question: Question, noise: Noise, target: Target, wish: Wish) -> Mechanism:
    if family is None:
        if noise != Noise():
            step = "The recommendation has its own."
            check.refuse("inbounds", "--edges and --granularity", "left out with --recommend", Plain("them"), step)
        return wish.recommend(question, target).mechanism
    if wish != Wish():
        step = "They are for --recommend."
        check.refuse("inbounds", "--loss, --criterion and --optimum", "left out with a noise", Plain("them"), step)
    return noise.calibrate(family, question, target)

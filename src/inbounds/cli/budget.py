"""Commands about budgets in a ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from inbounds import _checks as check
from inbounds.accounting import Budget
from inbounds.cli import output
from inbounds.cli.options import (
    LEDGER_HELP,
    Command,
    Group,
    Json,
    OptionalScopePath,
    Plain,
    ScopePath,
    one_of,
    open_ledger,
    open_scope,
    writable,
)
from inbounds.cli.program import NEGATIVE, examples
from inbounds.cli.words import spoken
from inbounds.errors import LedgerCorrupt, LedgerRolledBack, ParameterError
from inbounds.ledger.record import PERIODS

if TYPE_CHECKING:
    from inbounds.ledger import Ledger, Scope

__all__ = ["app", "record"]

app = typer.Typer(
    name="budget",
    cls=Group,
    help="Budgets in a ledger: make them, see what is left, check that nothing was tampered with.",
    epilog=examples(
        "inbounds budget create budget.db visits --epsilon 3 --delta 1e-9",
        "inbounds budget show budget.db",
        "inbounds budget verify budget.db",
    ),
    no_args_is_help=True,
)

Where = Annotated[str, Argument(metavar="LEDGER", help=LEDGER_HELP)]


def record(scope: Scope) -> dict[str, Any]:
    """A scope for JSON."""
    return {
        "scope": "/".join(scope.path),
        "budget": scope.budget.to_json(),
        "renews": scope.renews,
        "spent": scope.spent(),
        "remaining": scope.remaining(),
        "unfinished": len(scope.unfinished()),
    }


def _scopes(ledger: Ledger, path: str | None) -> tuple[Scope, ...]:
    """The scope at a path and all below it; all there are without one."""
    if path is None:
        return ledger.scopes()
    top = open_scope(ledger, path).path
    return tuple(scope for scope in ledger.scopes() if scope.path[: len(top)] == top)


def _print_scopes(scopes: tuple[Scope, ...], as_json: bool) -> None:
    if as_json:
        output.print_json({"format": "inbounds.budgets", "version": 1, "scopes": [record(scope) for scope in scopes]})
    else:
        output.print_scopes(scopes)


@app.command(
    cls=Command,
    epilog=examples(
        "inbounds budget create budget.db visits --epsilon 3 --delta 1e-9",
        "# under visits, which pays as well:",
        "inbounds budget create budget.db visits/alice --epsilon 1 --renews month",
        "inbounds budget create postgresql://me@db/privacy visits --rho 0.5",
    ),
)
def create(
    where: Where,
    path: ScopePath,
    epsilon: Annotated[
        float | None, Option(metavar="NUMBER", help="The budget in epsilon; alone, or with --delta.")
    ] = None,
    delta: Annotated[float, Option(metavar="NUMBER", help="The budget in delta, with --epsilon.")] = 0.0,
    rho: Annotated[
        float | None, Option(metavar="NUMBER", help="The budget in rho, instead of epsilon and delta.")
    ] = None,
    own: Annotated[
        float, Option(metavar="SHARE", help="The share of delta that releases with a delta of their own may use.")
    ] = Budget.own,
    renews: Annotated[
        str | None,
        Option(
            metavar="|".join(PERIODS),
            help="Start a new budget every day, month or year (UTC).",
            autocompletion=lambda: list(PERIODS),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a budget, and the ledger if there is none. A budget that exists stays as it is."""
    one_of("the budget", {"--epsilon": epsilon, "--rho": rho}, "For instance --epsilon 3.")
    budget = Budget(epsilon=epsilon, delta=delta, rho=rho, own=own)
    with open_ledger(where, create=True) as ledger:
        scope = ledger.scope(path.split("/"), budget=budget, renews=renews)
        _print_scopes((scope,), as_json)


@app.command(
    cls=Command, epilog=examples("inbounds budget show budget.db", "inbounds budget show budget.db visits --json")
)
def show(where: Where, path: OptionalScopePath = None, as_json: Json = False) -> None:
    """Show what is spent and what is left: of one budget and those below it, or of all."""
    with open_ledger(where) as ledger:
        _print_scopes(_scopes(ledger, path), as_json)


@app.command(
    cls=Command,
    epilog=examples("inbounds budget history budget.db", "inbounds budget history budget.db visits --last 100"),
)
def history(
    where: Where,
    path: OptionalScopePath = None,
    last: Annotated[int, Option(metavar="COUNT", min=1, help="How many records of each budget to show.")] = 20,
    as_json: Json = False,
) -> None:
    """Show what was released, refused and given back, oldest first."""
    with open_ledger(where) as ledger:
        found = [item for scope in _scopes(ledger, path) for item in scope.history()[-last:]]
        budgets = {scope.path: scope.budget for scope in ledger.scopes()}
    if as_json:
        records = [item.to_json() for item in found]
        output.print_json({"format": "inbounds.history", "version": 1, "records": records})
    else:
        output.print_history(found, budgets)


@app.command(
    cls=Command,
    epilog=examples(
        "inbounds budget verify budget.db",
        "# keep it elsewhere, and compare later:",
        "inbounds budget verify budget.db --json > heads.json",
        "inbounds budget verify budget.db --heads heads.json",
    ),
)
def verify(
    where: Where,
    heads: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="What 'budget verify --json' printed earlier: all that was recorded then must still be there.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute everything again from the records; the exit code is 1 if something is wrong."""
    kept = None if heads is None else _heads(heads)
    with output.working("verifying"):
        try:
            with open_ledger(where) as ledger:
                found = ledger.verify(kept)
                problems = [
                    {"scope": "/".join(p.scope), "record": p.seq, "kind": p.kind, "message": p.message, "text": str(p)}
                    for p in found.problems
                ]
                records, ends, gaps = found.records, found.heads, list(found.gaps)
        except LedgerCorrupt as problem:
            kind = "rollback" if isinstance(problem, LedgerRolledBack) else "damage"
            text = spoken(str(problem))
            problems = [{"scope": "", "record": None, "kind": kind, "message": text, "text": text}]
            records = problem.records if isinstance(problem, LedgerRolledBack) else 0
            ends, gaps = {}, []
    if as_json:
        summary = {"ok": not problems, "records": records, "problems": problems, "gaps": gaps, "heads": ends}
        output.print_json({"format": "inbounds.verification", "version": 1, **summary})
    elif problems:
        counted = f"{records} records, problems found" if records else "problems found"
        lines = [f"{counted}: {len(problems)}", *(f"  {p['text']}" for p in problems)]
        lines.append("Do not spend from it: find out who changed it, and compare with a copy or an export.")
        output.console().print("\n".join(lines), soft_wrap=True)
    else:
        scopes = "1 scope" if len(ends) == 2 else f"{len(ends) - 1} scopes"  # one end is the ledger's own
        lines = [f"{records} records in {scopes}: no problem found", *(f"  {gap}" for gap in gaps)]
        output.console().print("\n".join(lines), soft_wrap=True)
    if problems:
        raise typer.Exit(NEGATIVE)


@app.command(
    cls=Command,
    epilog=examples("# where 'budget verify' says that it has 12 records:", "inbounds budget accept budget.db 12"),
)
def accept(
    where: Where,
    records: Annotated[int, Argument(metavar="RECORDS", min=0, help="How many records it has, as it was told.")],
    as_json: Json = False,
) -> None:
    """Go on from a ledger that lacks what was acknowledged, as after a restore; that is recorded for ever."""
    with open_ledger(where, create=records == 0, accept=records) as ledger:
        (*_, gap) = ledger.verify().gaps
    if as_json:
        output.print_json({"format": "inbounds.acceptance", "version": 1, "gap": gap})
    else:
        output.console().print(f"{gap[0].upper()}{gap[1:]}", soft_wrap=True)


def _heads(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_bytes())["heads"]
        if isinstance(found, dict) and all(isinstance(end, list) and len(end) == 2 for end in found.values()):
            return found
    except (ValueError, KeyError, TypeError):
        pass
    raise ParameterError(
        f"inbounds: --heads must be a file that 'inbounds budget verify --json' wrote; {file} is not. "
        "Write one while the ledger is in order, and keep it elsewhere."
    )


@app.command(
    cls=Command,
    epilog=examples(
        "inbounds budget export budget.db > ledger.json", "inbounds budget export budget.db visits --csv --output v.csv"
    ),
)
def export(
    where: Where,
    path: OptionalScopePath = None,
    csv: Annotated[bool, Option("--csv", help="Export the records as a table, instead of everything as JSON.")] = False,
    file: Annotated[
        Path | None, Option("--output", metavar="FILE", help="Write to this file instead of printing.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Export everything that is recorded, as JSON or CSV."""
    if csv and as_json and file is None:
        check.refuse("inbounds", "--csv", "written to a file with --json", Plain("no --output"), "Drop one of them.")
    if file is not None:
        writable("--output", file)
    with open_ledger(where) as ledger:
        source = ledger if path is None else open_scope(ledger, path)
        text = source.export("csv" if csv else "json")
    if file is None:
        typer.echo(text.rstrip("\n"))
        return
    file.write_text(text, encoding="utf-8")
    if as_json:
        output.print_json({"format": "inbounds.export", "version": 1, "output": str(file)})
    else:
        output.console().print(f"Written: {file}", soft_wrap=True)

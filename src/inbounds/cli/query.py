"""The command that asks questions of a table: one by options, or many from a file. It prints private answers only."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from inbounds import _checks as check
from inbounds.cli import output
from inbounds.cli.asking import Run
from inbounds.cli.options import Json, Plain, number, one_of, with_options
from inbounds.cli.program import examples, told
from inbounds.cli.questions import ASKS, SUGGESTIONS, Inquiry, read, read_file
from inbounds.cli.report import Report
from inbounds.ledger.record import PERIODS
from inbounds.query.data import NEIGHBOURS

__all__ = ["EXAMPLES", "query"]

_ENDINGS = (".csv", ".json", ".md")
_QUESTION, _ROWS = "Question (one of these)", "Rows, groups and caps"
_TABLE, _PRICE, _BUDGET, _OUTPUT = "Table", "Price (epsilon with or without delta, or rho)", "Budget", "Output"

EXAMPLES = examples(
    "inbounds query visits.parquet --unit patient --mean age --bounds 0 120 --epsilon 0.3 --budget-epsilon 1",
    "inbounds query visits.parquet --unit patient --count-units --by ward --keys A,B,C --where 'age >= 18' "
    "--epsilon 0.3 --ledger budget.db --scope visits --key 'wards, March'",
    "# the price; nothing is read or spent:",
    "inbounds query visits.csv --unit patient --quantile age 0.9 --bounds 0 120 --epsilon 0.3 --budget-epsilon 1 "
    "--explain",
    "inbounds query visits.csv --unit patient --suggest-bounds cost --epsilon 0.1 --ledger budget.db --scope visits",
    "# many questions, one price:",
    "inbounds query questions.toml --explain",
    "inbounds query questions.toml --output answers.csv",
)


def _number(help: str, panel: str, *names: str) -> Any:
    return Option(*names, metavar="NUMBER", help=help, rich_help_panel=panel)


def _column(help: str) -> Any:
    return Option(metavar="COLUMN", help=help, rich_help_panel=_QUESTION)


@dataclass(frozen=True)
class Questions:
    """One question."""

    count: Annotated[bool, Option("--count", help="How many rows.", rich_help_panel=_QUESTION)] = False
    count_units: Annotated[bool, Option("--count-units", help="How many units.", rich_help_panel=_QUESTION)] = False
    sum: Annotated[str | None, _column("The sum of a column within --bounds.")] = None
    mean: Annotated[str | None, _column("The mean.")] = None
    variance: Annotated[str | None, _column("The variance.")] = None
    std: Annotated[str | None, _column("The standard deviation.")] = None
    share: Annotated[
        str | None, Option(metavar="CONDITION", help="The share of rows that meet it.", rich_help_panel=_QUESTION)
    ] = None
    quantile: Annotated[
        tuple[str, str] | None,
        Option(metavar="COLUMN Q", help="A quantile: 0.5 is the median.", rich_help_panel=_QUESTION),
    ] = None
    median: Annotated[str | None, _column("The median.")] = None
    min: Annotated[str | None, _column("A value that few lie below.")] = None
    max: Annotated[str | None, _column("A value that few lie above.")] = None
    histogram: Annotated[str | None, _column("How many values lie between --edges.")] = None
    suggest_bounds: Annotated[str | None, _column("Find bounds that hold nearly all values, privately.")] = None
    suggest_caps: Annotated[
        bool, Option("--suggest-caps", help="Find --max-rows and --max-groups, privately.", rich_help_panel=_QUESTION)
    ] = False
    bounds: Annotated[
        tuple[str, str] | None,
        Option(
            metavar="LOWER UPPER",
            help="Public ends into which values are moved: numbers, dates or times.",
            rich_help_panel=_QUESTION,
        ),
    ] = None
    edges: Annotated[
        str | None, Option(metavar="NUMBER,...", help="Of the bins of a histogram.", rich_help_panel=_QUESTION)
    ] = None
    of: Annotated[
        str | None,
        Option(
            metavar="rows|units",
            help="What --share is a share of.",
            rich_help_panel=_QUESTION,
            autocompletion=lambda: ["rows", "units"],
        ),
    ] = None

    def read(self) -> dict[str, Any]:
        given: dict[str, Any] = {name: getattr(self, name) or None for name in (*ASKS, *SUGGESTIONS)}
        options = {f"--{name.replace('_', '-')}": value for name, value in given.items()}
        wanted = one_of("the question", options, "For instance --mean age --bounds 0 120.")[2:].replace("-", "_")
        about = given[wanted]
        found: dict[str, Any] = {"ask": wanted}
        if wanted == "quantile":
            found |= {"column": about[0], "q": number("--quantile", about[1])}
        elif isinstance(about, str):
            found["condition" if wanted == "share" else "column"] = about
        more = {"bounds": self.bounds, "edges": None if self.edges is None else _parts(self.edges), "of": self.of}
        return found | {name: value for name, value in more.items() if value is not None}


@dataclass(frozen=True)
class Rows:
    """Which rows and groups, and how much of a unit."""

    where: Annotated[
        str | None,
        Option(metavar="CONDITION", help="Only these rows, as 'age >= 18'.", rich_help_panel=_ROWS),
    ] = None
    by: Annotated[
        list[str] | None,
        Option(metavar="COLUMN", help="An answer for each group. May be repeated.", rich_help_panel=_ROWS),
    ] = None
    keys: Annotated[
        list[str] | None,
        Option(
            metavar="KEY,...",
            help="The public groups of a --by, one option for each; else they are found privately, with --delta.",
            rich_help_panel=_ROWS,
        ),
    ] = None
    max_groups: Annotated[
        int | None,
        Option(metavar="COUNT", help="The most groups in which one unit counts.", rich_help_panel=_ROWS),
    ] = None
    max_rows: Annotated[
        int | None,
        Option(
            metavar="COUNT",
            help="The most rows of a unit that count in a group; else it counts once, with its own mean.",
            rich_help_panel=_ROWS,
        ),
    ] = None
    suppress_below: Annotated[
        int | None,
        Option(metavar="COUNT", help="Hide groups with fewer units, by a private count.", rich_help_panel=_ROWS),
    ] = None

    def read(self) -> dict[str, Any]:
        found = {name: value for name, value in vars(self).items() if value is not None and value != []}
        if self.keys:
            lists = [_parts(text) for text in self.keys]
            if len(lists) != len(self.by or []):
                step = "As --by ward --keys A,B --by sex --keys f,m: all their pairs are groups."
                check.refuse("inbounds", "--keys", "given once for each --by", Plain(f"{len(lists)} of them"), step)
            found["keys"] = list(product(*lists))
        return found


@dataclass(frozen=True)
class TableOptions:
    """The table and its units."""

    unit: Annotated[
        list[str] | None,
        Option(
            metavar="COLUMN",
            help="Whose a row is: what is protected is all of one unit. May be repeated.",
            rich_help_panel=_TABLE,
        ),
    ] = None
    unit_is_row: Annotated[
        bool, Option("--unit-is-row", help="Instead: each row is a unit of its own.", rich_help_panel=_TABLE)
    ] = False
    table: Annotated[
        str | None, Option(metavar="NAME", help="The table of a database file.", rich_help_panel=_TABLE)
    ] = None
    types: Annotated[
        str | None,
        Option(
            metavar="COLUMN=TYPE,...",
            help="What columns of CSV and JSON hold: integer, number, text, boolean, date, time.",
            rich_help_panel=_TABLE,
        ),
    ] = None
    neighbours: Annotated[
        str | None,
        Option(
            metavar="|".join(NEIGHBOURS),
            help="Data that look alike differ by a unit more or less, or by one replaced.",
            rich_help_panel=_TABLE,
            autocompletion=lambda: list(NEIGHBOURS),
        ),
    ] = None
    size: Annotated[
        int | None,
        Option(metavar="COUNT", help="With substitute: the public number of units.", rich_help_panel=_TABLE),
    ] = None

    def read(self) -> dict[str, Any]:
        found = {name: value for name, value in vars(self).items() if value is not None and value != []}
        if self.types is not None:
            pairs = [part.split("=") for part in _parts(self.types)]
            if any(len(pair) != 2 for pair in pairs):
                check.refuse("inbounds", "--types", "COLUMN=TYPE,...", self.types, "As --types age=integer,ward=text.")
            found["types"] = dict(pairs)
        return found


@dataclass(frozen=True)
class Payment:
    """What the question may cost, and of what."""

    epsilon: Annotated[float | None, _number("Pure, or with delta.", _PRICE)] = None
    delta: Annotated[float | None, _number("Goes with epsilon.", _PRICE)] = None
    rho: Annotated[float | None, _number("Zero-concentrated DP.", _PRICE)] = None
    budget_epsilon: Annotated[float | None, _number("What may be spent in all.", _BUDGET)] = None
    budget_delta: Annotated[float | None, _number("Goes with it.", _BUDGET)] = None
    budget_rho: Annotated[float | None, _number("Instead of both.", _BUDGET)] = None
    renews: Annotated[
        str | None,
        Option(
            metavar="|".join(PERIODS),
            help="When it begins anew.",
            rich_help_panel=_BUDGET,
            autocompletion=lambda: list(PERIODS),
        ),
    ] = None
    ledger: Annotated[
        str | None,
        Option(
            metavar="PATH|URL",
            help="Where spending is recorded. With a budget a file is made if there is none.",
            rich_help_panel=_BUDGET,
        ),
    ] = None
    scope: Annotated[str | None, Option(metavar="NAME[/NAME...]", help="The budget.", rich_help_panel=_BUDGET)] = None
    key: Annotated[
        str | None,
        Option(metavar="TEXT", help="Names the request: again, it costs nothing.", rich_help_panel=_BUDGET),
    ] = None

    def goal(self) -> dict[str, Any]:
        return _given({"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho})

    def account(self) -> dict[str, Any]:
        amounts = {"epsilon": self.budget_epsilon, "delta": self.budget_delta, "rho": self.budget_rho}
        return _given(amounts | {"renews": self.renews, "ledger": self.ledger, "scope": self.scope})


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _parts(text: str) -> list[str]:
    """Parts between commas; one with a comma in it stands in quotation marks."""
    return [part.strip() for part in next(csv.reader([text], skipinitialspace=True), [])]


# ---------------------------------------------------------------- the command


@with_options
def query(
    sources: Annotated[
        list[str],
        Argument(
            metavar="TABLE...|FILE.toml",
            help="Parquet, CSV or JSON files, a DuckDB database with --table; or a file of questions.",
        ),
    ],
    questions: Questions,
    rows: Rows,
    table: TableOptions,
    payment: Payment,
    explain: Annotated[
        bool, Option("--explain", help="Say what would be done and what it costs: nothing is read or spent.")
    ] = False,
    sql: Annotated[bool, Option("--sql", help="The same, with the queries that the engine is given.")] = False,
    level: Annotated[float | None, _number("Of the intervals.", _OUTPUT)] = None,
    as_csv: Annotated[bool, Option("--csv", help="Print a row for each answer.", rich_help_panel=_OUTPUT)] = False,
    as_markdown: Annotated[bool, Option("--markdown", help="Print Markdown.", rich_help_panel=_OUTPUT)] = False,
    file: Annotated[
        Path | None,
        Option("--output", metavar="FILE", help="Write them as well: .csv, .json or .md.", rich_help_panel=_OUTPUT),
    ] = None,
    as_json: Json = False,
) -> None:
    """Private answers from a table, always in range, with intervals.

    One question by options, or many from a TOML file: checked, priced and paid before the table is read.
    """
    if as_json + as_csv + as_markdown > 1:
        check.refuse("inbounds", "the form", "one of --json, --csv, --markdown", Plain("several"), "Drop the others.")
    formed = as_csv or as_markdown or file is not None
    if formed and (explain or sql or questions.suggest_caps or questions.suggest_bounds is not None):
        step = "They are forms of answers; --json is there."
        check.refuse("inbounds", "--csv, --markdown and --output", "left out here", Plain("one of them"), step)
    if file is not None:
        _writable(file)
    inquiry = _inquiry(sources, questions, rows, table, payment, level)
    with ExitStack() as opened:
        ledger, scope, there = inquiry.account.look()
        opened.callback(ledger.close)
        run = Run.planned(inquiry, ledger, scope)
        if explain or sql:
            run.explain(sql=sql, as_json=as_json, there=there)
            return
        if not there:
            ledger, scope = inquiry.account.make()
            opened.callback(ledger.close)
            run = run.paid_by(scope)
        if run.suggests:
            run.suggest(as_json)
            return
        report, problem = run.answers(made=not there)
    if as_csv or as_markdown:
        typer.echo((report.csv() if as_csv else report.markdown()).rstrip("\n"))
    elif not as_json:
        report.print()
    if as_json:
        found = report.record() | ({} if file is None else {"output": str(file)})
        output.print_json(found if problem is None else found | {"error": told(problem, in_file=True)[1]})
    if file is not None:
        file.write_text(_form(file.suffix, report), encoding="utf-8")
        if not (as_json or as_csv or as_markdown):
            output.console().print(f"Written: {file}", soft_wrap=True)
    if problem is not None:
        raise typer.Exit(told(problem, in_file=True)[0]) if as_json else problem


def _inquiry(
    sources: Sequence[str],
    questions: Questions,
    rows: Rows,
    table: TableOptions,
    payment: Payment,
    level: float | None,
) -> Inquiry:
    if any(source.endswith(".toml") for source in sources):
        given = [name for group in (questions, rows, table, payment) for name, value in vars(group).items() if value]
        more = ["another file"] if len(sources) > 1 else [f"--{name.replace('_', '-')}" for name in given]
        more += ["--level"] if level is not None else []
        if more:
            step = "Write it into the file."
            check.refuse("inbounds", "a file of questions", "given by itself", Plain(f"{more[0]} with it"), step)
        return read_file(Path(sources[0]))
    document = {
        "data": {"source": list(sources)} | table.read(),
        "budget": payment.account(),
        "question": [questions.read() | rows.read() | payment.goal()],
    }
    return read(document | _given({"key": payment.key, "level": level}))


def _writable(file: Path) -> None:
    """Refuse before the work what could not be written after it."""
    if file.suffix.lower() not in _ENDINGS:
        step = "The ending sets the form."
        check.refuse("inbounds", "--output", f"a file name ending in {', '.join(_ENDINGS)}", str(file), step)
    if not file.parent.is_dir():
        check.refuse("inbounds", "--output", "in a folder that exists", str(file), f"Make {file.parent} first.")


def _form(ending: str, report: Report) -> str:
    if ending.lower() == ".json":
        return json.dumps(output.plain(report.record()), indent=2, allow_nan=False) + "\n"
    return report.csv() if ending.lower() == ".csv" else report.markdown()

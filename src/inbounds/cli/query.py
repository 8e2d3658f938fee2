"""The command that asks questions of a table: one by options, or many from a file. It prints private answers only."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from inbounds import _checks as check
from inbounds.cli import output
from inbounds.cli.asking import Run
from inbounds.cli.options import (
    BUDGET,
    Json,
    Key,
    LedgerPlace,
    Plain,
    ScopeName,
    number,
    one_of,
    with_options,
    writable,
)
from inbounds.cli.program import ALONE, examples, told
from inbounds.cli.questions import ASKS, SUGGESTIONS, Inquiry, read, read_file
from inbounds.cli.report import Report
from inbounds.errors import BudgetExceeded
from inbounds.ledger.record import PERIODS
from inbounds.tables.data import NEIGHBOURS
from inbounds.tables.per_unit import HOW

__all__ = ["EXAMPLES", "query"]

_ENDINGS = (".csv", ".json", ".md")
_QUESTION, _ROWS = "Question (one of these)", "Rows, groups and caps"
_TABLE, _PRICE, _OUTPUT = "Table", "Price (epsilon with or without delta, or rho)", "Output"

EXAMPLES = examples(
    "inbounds query visits.parquet --unit patient --mean age --bounds 0 120 --epsilon 0.3 --budget-epsilon 1",
    "inbounds query visits.parquet --unit patient --count-units --by ward --keys A,B,C --where 'age >= 18' "
    "--epsilon 0.3 --ledger budget.db --scope visits --key 'wards, March'",
    "# the price; no answer is computed, nothing is spent:",
    "inbounds query visits.csv --types age=integer --unit patient --quantile age 0.9 --bounds 0 120 --per-unit max "
    "--epsilon 0.3 --budget-epsilon 1 --explain",
    "inbounds query visits.csv --types cost=number --unit patient --suggest-bounds cost --epsilon 0.1 "
    "--ledger budget.db --scope visits",
    "# many questions in one run, from a file:",
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

    count: Annotated[
        bool, Option("--count", help="The number of rows; needs --max-rows.", rich_help_panel=_QUESTION)
    ] = False
    count_units: Annotated[
        bool, Option("--count-units", help="The number of units (people).", rich_help_panel=_QUESTION)
    ] = False
    sum: Annotated[str | None, _column("The sum of a column, with values within --bounds.")] = None
    mean: Annotated[str | None, _column("The mean of a column, within --bounds.")] = None
    variance: Annotated[str | None, _column("The variance of a column, with values within --bounds.")] = None
    std: Annotated[str | None, _column("The standard deviation of a column, with values within --bounds.")] = None
    share: Annotated[
        str | None,
        Option(metavar="CONDITION", help="The share of rows that meet a condition.", rich_help_panel=_QUESTION),
    ] = None
    quantile: Annotated[
        tuple[str, str] | None,
        Option(
            metavar="COLUMN Q",
            help="A quantile of a column, within --bounds: 0.5 is the median.",
            rich_help_panel=_QUESTION,
        ),
    ] = None
    median: Annotated[str | None, _column("The median of a column, within --bounds.")] = None
    min: Annotated[str | None, _column("A value that few values of a column lie below, within --bounds.")] = None
    max: Annotated[str | None, _column("A value that few values of a column lie above, within --bounds.")] = None
    histogram: Annotated[str | None, _column("The number of values of a column in each bin; needs --edges.")] = None
    suggest_bounds: Annotated[
        str | None, _column("Find, privately, bounds that hold nearly all values of a column.")
    ] = None
    suggest_caps: Annotated[
        bool, Option("--suggest-caps", help="Find --max-rows and --max-groups privately.", rich_help_panel=_QUESTION)
    ] = False
    bounds: Annotated[
        tuple[str, str] | None,
        Option(
            metavar="LOWER UPPER",
            help="Public bounds: values beyond them are moved to the nearest one. Numbers, dates or times.",
            rich_help_panel=_QUESTION,
        ),
    ] = None
    edges: Annotated[
        str | None,
        Option(metavar="NUMBER,...", help="The public edges of a histogram's bins.", rich_help_panel=_QUESTION),
    ] = None
    of: Annotated[
        str | None,
        Option(
            metavar="rows|units",
            help="Whether --share is a share of rows or of units.",
            rich_help_panel=_QUESTION,
            autocompletion=lambda: ["rows", "units"],
        ),
    ] = None
    per_unit: Annotated[
        str | None,
        Option(
            metavar="|".join(HOW),
            help="Which value of each unit counts, of its rows in a group. Sums, variances, quantiles and histograms "
            "need this or --max-rows; with sum, --bounds are those of a unit's sum.",
            rich_help_panel=_QUESTION,
            autocompletion=lambda: list(HOW),
        ),
    ] = None
    order: Annotated[str | None, _column("What rows are ordered by, for --per-unit first or last.")] = None

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
        more: dict[str, Any] = {name: getattr(self, name) for name in ("bounds", "of", "per_unit", "order")}
        more["edges"] = None if self.edges is None else _parts(self.edges)
        return found | {name: value for name, value in more.items() if value is not None}


@dataclass(frozen=True)
class Rows:
    """Which rows and groups, and how much of a unit."""

    where: Annotated[
        str | None,
        Option(
            metavar="CONDITION", help="Use only the rows that meet a condition, as 'age >= 18'.", rich_help_panel=_ROWS
        ),
    ] = None
    by: Annotated[
        list[str] | None,
        Option(
            metavar="COLUMN",
            help="Answer for each group of rows by this column. May be repeated.",
            rich_help_panel=_ROWS,
        ),
    ] = None
    keys: Annotated[
        list[str] | None,
        Option(
            metavar="KEY,...",
            help="The public groups of a --by: one --keys for each --by. Without it groups are found privately, which "
            "needs --delta.",
            rich_help_panel=_ROWS,
        ),
    ] = None
    max_groups: Annotated[
        int | None,
        Option(metavar="COUNT", help="The largest number of groups in which one unit counts.", rich_help_panel=_ROWS),
    ] = None
    max_rows: Annotated[
        int | None,
        Option(
            metavar="COUNT",
            help="The largest number of rows of one unit that count in a group. Without it a unit counts once: see "
            "--per-unit.",
            rich_help_panel=_ROWS,
        ),
    ] = None
    suppress_below: Annotated[
        int | None,
        Option(metavar="COUNT", help="Hide groups that have fewer units by a private count.", rich_help_panel=_ROWS),
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
            help="Column that identifies the person; everything a person has in the table is protected together. May "
            "be repeated.",
            rich_help_panel=_TABLE,
        ),
    ] = None
    unit_is_row: Annotated[
        bool, Option("--unit-is-row", help="Every row is about a different person.", rich_help_panel=_TABLE)
    ] = False
    table: Annotated[
        str | None, Option(metavar="NAME", help="The table to read from a database file.", rich_help_panel=_TABLE)
    ] = None
    types: Annotated[
        str | None,
        Option(
            metavar="COLUMN=TYPE,...",
            help="What columns of CSV and JSON files hold: integer, wide (beyond 64 bits), number, text, boolean, date "
            "or time. Nothing is guessed: other columns of CSV are text.",
            rich_help_panel=_TABLE,
        ),
    ] = None
    header: Annotated[
        bool | None,
        Option(
            "--header/--no-header",
            help="The first line of CSV files has the names of columns, which messages may show; or there is no such "
            "line, and --types names all columns in order. Without either it has them, and nothing shows them.",
            rich_help_panel=_TABLE,
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        Option(metavar="CHARACTER", help="Between the values of CSV files.  [default: ,]", rich_help_panel=_TABLE),
    ] = None
    quote: Annotated[
        str | None,
        Option(
            metavar="CHARACTER",
            help="Around values of CSV files; '' where they never stand in quotes.  [default: \"]",
            rich_help_panel=_TABLE,
        ),
    ] = None
    encoding: Annotated[
        str | None, Option(metavar="NAME", help="Of CSV files.  [default: utf-8]", rich_help_panel=_TABLE)
    ] = None
    neighbours: Annotated[
        str | None,
        Option(
            metavar="|".join(NEIGHBOURS),
            help="Hide whether any one unit is in the table (add-remove), or which one it is (substitute).",
            rich_help_panel=_TABLE,
            autocompletion=lambda: list(NEIGHBOURS),
        ),
    ] = None
    size: Annotated[
        int | None,
        Option(
            metavar="COUNT", help="The public number of units, with --neighbours substitute.", rich_help_panel=_TABLE
        ),
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
    """What the question may cost, and what pays for it."""

    epsilon: Annotated[float | None, _number("Privacy loss epsilon; alone, or with --delta.", _PRICE)] = None
    delta: Annotated[float | None, _number("Privacy loss delta, with --epsilon.", _PRICE)] = None
    rho: Annotated[float | None, _number("Zero-concentrated DP with this rho.", _PRICE)] = None
    budget_epsilon: Annotated[
        float | None,
        _number("Budget in epsilon: what may be spent in all. With --ledger it is made if it is not there.", BUDGET),
    ] = None
    budget_delta: Annotated[float | None, _number("Budget delta, with --budget-epsilon.", BUDGET)] = None
    budget_rho: Annotated[float | None, _number("Budget in rho, instead of epsilon and delta.", BUDGET)] = None
    renews: Annotated[
        str | None,
        Option(
            metavar="|".join(PERIODS),
            help="Start a new budget every day, month or year (UTC).",
            rich_help_panel=BUDGET,
            autocompletion=lambda: list(PERIODS),
        ),
    ] = None
    ledger: LedgerPlace = None
    scope: ScopeName = None
    key: Key = None

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
            help="Parquet, CSV or JSON files, or a DuckDB database with --table; or a TOML file of questions.",
        ),
    ],
    questions: Questions,
    rows: Rows,
    table: TableOptions,
    payment: Payment,
    explain: Annotated[
        bool,
        Option(
            "--explain",
            help="Say what would be done and what it costs: no answers are computed, nothing is spent.",
        ),
    ] = False,
    sql: Annotated[bool, Option("--sql", help="Explain, and show the queries that the engine would be given.")] = False,
    level: Annotated[float | None, _number("Confidence level of the intervals (default 0.95).", _OUTPUT)] = None,
    as_csv: Annotated[bool, Option("--csv", help="Print CSV, a row for each answer.", rich_help_panel=_OUTPUT)] = False,
    as_markdown: Annotated[bool, Option("--markdown", help="Print Markdown.", rich_help_panel=_OUTPUT)] = False,
    file: Annotated[
        Path | None,
        Option(
            "--output",
            metavar="FILE",
            help="Write the answers to this file as well: .csv, .json or .md.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Ask private questions of a table: answers are always in range, and have intervals.

    One question by options, or many from a TOML file: they are checked, priced and paid for before the table is read.
    """
    if as_json + as_csv + as_markdown > 1:
        check.refuse("inbounds", "the form", "one of --json, --csv, --markdown", Plain("several"), "Drop the others.")
    formed = as_csv or as_markdown or file is not None
    if formed and (explain or sql or questions.suggest_caps or questions.suggest_bounds is not None):
        step = "They are forms of answers; --json is there."
        check.refuse("inbounds", "--csv, --markdown and --output", "left out here", Plain("one of them"), step)
    if file is not None:
        writable("--output", file, _ENDINGS)
    inquiry = _inquiry(sources, questions, rows, table, payment, level)
    with ExitStack() as opened, _alone(inquiry):
        ledger, scope = inquiry.account.look()
        opened.callback(ledger.close)
        run, made = Run.planned(inquiry, scope), ""
        if explain or sql:
            run.explain(ledger, sql=sql, as_json=as_json)
            return
        if not scope.exists:
            ledger, scope = inquiry.account.make()
            opened.callback(ledger.close)
            run, made = run.paid_by(scope), f"{inquiry.account.shown(ledger)}: {scope.budget!r}"
        if run.suggests:
            run.suggest(as_json)
            return
        report, problem = run.answers(made=made)
    try:
        if as_csv or as_markdown:
            typer.echo((report.csv() if as_csv else report.markdown()).rstrip("\n"))
        elif not as_json:
            report.print()
        else:
            found = report.record() | ({} if file is None else {"output": str(file)})
            output.print_json(found if problem is None else found | {"error": told(problem, in_file=True)[1]})
    finally:  # also where whoever reads what is printed has stopped
        if file is not None:
            file.write_text(_form(file.suffix, report), encoding="utf-8")
    if file is not None and not (as_json or as_csv or as_markdown):
        output.console().print(f"Written: {file}", soft_wrap=True)
    if problem is not None:
        raise typer.Exit(told(problem, in_file=True)[0]) if as_json else problem


@contextmanager
def _alone(inquiry: Inquiry) -> Iterator[None]:
    """Without a ledger there is none to look at: a refusal says what else to do."""
    try:
        yield
    except BudgetExceeded as error:
        if inquiry.account.ledger is None:
            names = [name for name in error.shortfall if error.shortfall[name]] or ["epsilon"]
            if error.requested.get("epsilon") == math.inf:
                names = ["delta"]
            fields = [f"{name} of [budget]" if inquiry.place else f"--budget-{name}" for name in names]
            error.add_note(f"{ALONE}: ask for less, or give more {' and '.join(fields)}.")
        raise


def _inquiry(
    sources: Sequence[str],
    questions: Questions,
    rows: Rows,
    table: TableOptions,
    payment: Payment,
    level: float | None,
) -> Inquiry:
    if any(source.endswith(".toml") for source in sources):
        given = [
            name
            for group in (questions, rows, table, payment)
            for name, value in vars(group).items()
            if value or value == ""
        ]
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


def _form(ending: str, report: Report) -> str:
    if ending.lower() == ".json":
        return json.dumps(output.plain(report.record()), indent=2, allow_nan=False) + "\n"
    return report.csv() if ending.lower() == ".csv" else report.markdown()

"""What ``inbounds query`` is told, by options or in a file of questions: one form for both, checked as a whole.

:func:`read` looks at the words alone. :meth:`Asked.plan` checks them against the columns of the table, which are
public. Only then is anything made, paid or read.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from inbounds import _checks as check
from inbounds.accounting import Budget
from inbounds.cli.options import Plain, check_paying, one_of, open_ledger, open_scope
from inbounds.errors import InboundsError, ParameterError, ParameterTypeError
from inbounds.tables import ask
from inbounds.tables.aggregates import Aggregate
from inbounds.tables.conditions import constant, parse
from inbounds.tables.data import dataset
from inbounds.tables.expressions import Expression, col
from inbounds.tables.kinds import Kind, Schema

if TYPE_CHECKING:
    from inbounds.ledger import Ledger, Scope
    from inbounds.tables import Dataset, Plan, Suggestion

__all__ = ["ASKS", "SUGGESTIONS", "Account", "Asked", "Inquiry", "read", "read_file"]

#: What can be asked, and what each question needs.
ASKS: dict[str, tuple[str, ...]] = {
    "count": (),
    "count_units": (),
    "sum": ("column", "bounds"),
    "mean": ("column", "bounds"),
    "variance": ("column", "bounds"),
    "std": ("column", "bounds"),
    "share": ("condition",),
    "quantile": ("column", "q", "bounds"),
    "median": ("column", "bounds"),
    "min": ("column", "bounds"),
    "max": ("column", "bounds"),
    "histogram": ("column", "edges"),
}
#: What finds bounds and caps: an option, not part of a file, since what is asked next depends on it.
SUGGESTIONS: dict[str, tuple[str, ...]] = {"suggest_bounds": ("column",), "suggest_caps": ()}
_PICKED = ("quantile", "median", "min", "max")
_VALUED = tuple(name for name, needs in ASKS.items() if "column" in needs)
#: What questions take besides, where somebody wants it.
_MORE = {"share": ("of", "per_unit")} | dict.fromkeys(_VALUED, ("per_unit", "order"))
_GOAL = ("epsilon", "delta", "rho")
_VIEW = ("where", "by", "keys", "max_groups", "max_rows", "suppress_below")
_DATA = (
    *("source", "table", "unit", "unit_is_row", "where", "max_groups", "max_rows", "neighbours", "size"),
    *("types", "header", "delimiter", "quote", "encoding", "memory_limit", "threads"),
)
_BUDGET = ("ledger", "scope", *_GOAL, "renews")
_TOP = ("key", "level", "data", "budget", "question", "plan")
_TEXTS = (
    *("key", "table", "where", "neighbours", "memory_limit", "ledger", "scope", "renews", "name", "ask", "column"),
    *("delimiter", "quote", "encoding"),
    *("condition", "of", "per_unit", "order"),
)
_LISTS = ("keys", "bounds", "edges", "question", "plan")
_TABLES = ("data", "budget", "types")
_EXAMPLES = {
    "data": "As [data] with source and unit.",
    "budget": "As [budget] with ledger and scope, or with epsilon.",
    "source": 'As source = "visits.parquet".',
    "ask": f"One of {', '.join(ASKS)}.",
    "name": 'As name = "age by ward".',
    "column": 'As column = "age".',
    "condition": 'As condition = "age >= 65".',
    "q": "As q = 0.9, or q = [0.25, 0.5, 0.75].",
    "bounds": "As bounds = [0, 120]: public, never taken from the data.",
    "edges": "As edges = [0, 20, 40, 60].",
    "question": 'As [[question]] with name, ask = "mean", column, bounds and epsilon.',
    "--bounds": "For instance --bounds 0 120: public, never taken from the data; --suggest-bounds finds private ones.",
    "--edges": "For instance --edges 0,20,40,60.",
}


# ---------------------------------------------------------------- what was read


@dataclass(frozen=True)
class Account:
    """The budget: in a ledger, or for this run alone."""

    ledger: str | None
    path: tuple[str, ...]
    budget: Budget | None
    renews: str | None

    def look(self) -> tuple[Ledger, Scope]:
        """The ledger, and the scope as it is or would be. In a ledger nothing is made."""
        kept = self.ledger
        if kept is not None and self.budget is not None and "://" not in kept and not Path(kept).exists():
            kept = None
        ledger = open_ledger(kept or ":memory:", create=kept is None)
        if self.budget is None:
            return ledger, open_scope(ledger, "/".join(self.path))
        return ledger, self._scope(ledger, create=self.ledger is None)

    def make(self) -> tuple[Ledger, Scope]:
        ledger = open_ledger(self.ledger or ":memory:", create=True)
        return ledger, self._scope(ledger, create=True)

    def shown(self, ledger: Ledger) -> str:
        """Where it is: a file as it was given; a database as it names itself, without its password."""
        if self.ledger is None:
            return "none: see --ledger"
        return f"{ledger.place if '://' in self.ledger else self.ledger}, {'/'.join(self.path)}"

    def _scope(self, ledger: Ledger, *, create: bool) -> Scope:
        return ledger.scope(self.path, budget=self.budget, renews=self.renews, create=create)


@dataclass(frozen=True)
class Asked:
    """Questions of one plan: about the same rows and groups, paid together."""

    name: str
    place: str
    view: Mapping[str, Any]
    goal: Mapping[str, Any]
    asks: Mapping[str, Mapping[str, Any]]

    def on(self, data: Dataset) -> Dataset:
        """The rows and groups that are asked about."""
        view = self.view
        if "where" in view:
            data = data.where(view["where"])
        data = data.with_caps(max_groups=view.get("max_groups"), max_rows=view.get("max_rows"))
        if "by" not in view:
            return data
        by = [_column(text, data.schema) for text in view["by"]]
        with data.source.advising(*by):
            keys = _keys(view["keys"], [b.kind(data.schema) for b in by]) if "keys" in view else None
        return data.group_by(*by, keys=keys, suppress_below=view.get("suppress_below"))

    def plan(self, data: Dataset, level: float) -> Plan:
        """Checked against the table's columns; nothing is read."""
        with located(self.place):
            made = [(name, _question(given, data, level, bool(self.place))) for name, given in self.asks.items()]
            asks = {name or question.label: question for name, question in made}
            plan: Plan = self.on(data).plan.select(asks, **self.goal)
            return plan

    @property
    def suggests(self) -> str | None:
        """Which suggestion is asked for, if one is."""
        return next((given["ask"] for given in self.asks.values() if given["ask"] in SUGGESTIONS), None)

    def suggestion(self, data: Dataset) -> Callable[[str | None], Suggestion]:
        """What pays for the suggestion and draws it, given its key; checked before."""
        if set(self.goal) != {"epsilon"}:
            step = "Leave out --delta and --rho."
            check.refuse("inbounds", "the price of a suggestion", "given by --epsilon", Plain("more"), step)
        view, epsilon = self.on(data), self.goal["epsilon"]
        if self.suggests == "suggest_caps":
            return lambda key: view.suggest_caps(epsilon=epsilon, key=key)
        (given,) = self.asks.values()
        column = _column(given["column"], data.schema)
        with data.source.advising(column):
            kind = column.kind(data.schema)
            if not kind.numeric and kind is not Kind.BOOLEAN:  # before a ledger is made
                raise ParameterTypeError(f"suggest_bounds: column must hold numbers; {column} holds {kind}.")
        return lambda key: view.suggest_bounds(column, epsilon=epsilon, key=key)


@dataclass(frozen=True)
class Inquiry:
    """Everything that is asked in one run."""

    table: Mapping[str, Any]
    account: Account
    asked: tuple[Asked, ...]
    key: str | None
    level: float
    place: str

    def data(self, scope: Scope) -> Dataset:
        """The table; nothing but its columns is read."""
        given = dict(self.table)
        where = given.pop("where", None)
        made = replace(dataset(**given, budget=scope.budget), scope=scope)
        return made if where is None else made.where(where)

    def key_of(self, asked: Asked) -> str | None:
        """Under which a plan's answers are kept."""
        return self.key if self.key is None or not asked.name else f"{self.key}/{asked.name}"


@contextmanager
def located(place: str) -> Iterator[None]:
    """Errors say where in a file they arose."""
    try:
        yield
    except InboundsError as error:
        if place:
            error.add_note(f"In {place}.")
        raise


# ---------------------------------------------------------------- against the columns of the table


def _column(text: str, schema: Schema) -> Expression:
    """A column by its whole name, whatever is in it; else what is computed from columns."""
    return col(text) if text in schema else parse(text)


def _typed(value: Any, kind: Kind) -> Any:
    return constant(value, kind) if isinstance(value, str) else value


def _keys(keys: Sequence[Any], kinds: Sequence[Kind]) -> list[tuple[Any, ...]]:
    groups = [tuple(key) if isinstance(key, list | tuple) else (key,) for key in keys]
    return [
        tuple(_typed(part, kind) for part, kind in zip(group, kinds, strict=True))
        if len(group) == len(kinds)
        else group
        for group in groups  # those of another length are refused with the others
    ]


def _along(texts: Sequence[Any], column: Expression, data: Dataset, name: str) -> list[Any]:
    """Bounds or edges as what the column holds; of text, as what they are, so that it can be said."""
    with data.source.advising(column):
        kind = column.kind(data.schema)
        if kind is not Kind.TEXT:
            along = kind if kind.temporal else Kind.REAL
            try:
                return [_typed(text, along) for text in texts]
            except ParameterError as problem:
                said = str(problem).partition(" must be ")[2]
            raise ParameterError(f"inbounds: {name} must be {said}")
        for along in (Kind.REAL, Kind.DATE, Kind.DATETIME):
            try:
                ends = [_typed(text, along) for text in texts]
            except ParameterError:
                continue
            if along is Kind.REAL:
                return ends  # which the question refuses
            raise ParameterTypeError(
                f"inbounds: {name} must be of what {column} holds, not {along}; {column} holds {kind}."
            )
        check.refuse("inbounds", name, "numbers, dates or times", list(texts), "")


def _question(given: Mapping[str, Any], data: Dataset, level: float, in_file: bool) -> Aggregate:
    name, schema = given["ask"], data.schema
    more: dict[str, Any] = {"weight": given["weight"]} if "weight" in given else {}
    if name in ("count", "count_units"):
        made: Aggregate = getattr(ask, name)(**more)
        return made
    more |= {field: given[field] for field in ("of", "per_unit") if field in given}
    if name == "share":
        return ask.share(given["condition"], **more)
    if "order" in given:
        more["order"] = _column(given["order"], schema)
    column, field = _column(given["column"], schema), "edges" if name == "histogram" else "bounds"
    ends = _along(given[field], column, data, field if in_file else f"--{field}")
    if name == "histogram":
        return ask.histogram(column, ends, **more)
    bounds = tuple(ends)
    if name in _PICKED:
        more["level"] = level
    if name == "quantile":
        several = isinstance(given["q"], list)
        return (ask.quantiles if several else ask.quantile)(column, given["q"], bounds, **more)
    valued: Aggregate = getattr(ask, name)(column, bounds, **more)
    return valued


# ---------------------------------------------------------------- words


def read_file(file: Path) -> Inquiry:
    """The questions of a TOML file; paths in it start from its folder."""
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ParameterError(
            f'{file.name}: the file must be TOML; {problem}. Texts stand in quotes, as unit = "patient".'
        ) from None
    return read(document, file)


def read(document: Mapping[str, Any], file: Path | None = None) -> Inquiry:
    """From words to what is asked. Without a file the words came as options."""
    words = _Words(file)
    words.check(document, _TOP, "the file")
    if "data" not in document:
        words.lacks("data")
    with located(words.place("[data]")):
        table = words.table(document["data"])
    with located(words.place("[budget]")):
        account = words.account(document.get("budget", {}), key := document.get("key"))
    level = check.number(words.who, words.field("level"), document.get("level", 0.95), above=0.0, below=1.0)
    asked = [words.asked(given, i, "question") for i, given in enumerate(document.get("question", []), 1)]
    asked += [words.asked(given, i, "plan") for i, given in enumerate(document.get("plan", []), 1)]
    if file and not asked:
        words.lacks("question")
    names = [one.name for one in asked]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        check.refuse(words.who, "name", "different for each question and plan", twice[0], "It was given twice.")
    return Inquiry(table, account, tuple(asked), key, level, words.place("[data]"))


class _Words:
    """Reads the parts of a document; errors name fields of a file or options."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.who = "inbounds" if file is None else file.name

    def field(self, name: str, prefix: str = "") -> str:
        return name if self.file else f"--{prefix}{name.replace('_', '-')}"

    def place(self, part: str) -> str:
        return f"{part} of {self.file.name}" if self.file else ""

    def lacks(self, name: str, requirement: str = "given") -> NoReturn:
        field = self.field(name)
        check.refuse(self.who, field, requirement, Plain("none"), _EXAMPLES[name if self.file else field])

    def check(self, given: Any, known: Sequence[str], part: str) -> None:
        """Refuse unknown fields, and texts, lists and tables that are none."""
        if not isinstance(given, Mapping):
            check.refuse(self.who, part, "a table of fields", given, _EXAMPLES["question"], ParameterTypeError)
        for name, value in given.items():
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                advice = f"Did you mean {near[0]!r}?" if near else f"Its fields are {', '.join(known)}."
                raise ParameterError(f"{self.who}: {part} has no field {name!r}. {advice}")
            for names, kind, word in (
                (_TEXTS, str, "text in quotes"),
                (_LISTS, list | tuple, "a list, as [1, 2]" if name not in ("question", "plan") else f"[[{name}]]"),
                (_TABLES, Mapping, f"a table, as [{name}]" if name != "types" else 'as {age = "integer"}'),
            ):
                if name in names and not isinstance(value, kind):
                    check.refuse(self.who, self.field(name), word, value, "", ParameterTypeError)

    def table(self, given: Mapping[str, Any]) -> dict[str, Any]:
        self.check(given, _DATA, "[data]")
        if "source" not in given:
            self.lacks("source")
        flag = given.get("unit_is_row", False)
        if not isinstance(flag, bool):
            check.refuse(self.who, self.field("unit_is_row"), "true or false", flag, "", ParameterTypeError)
        units = {self.field("unit"): given.get("unit"), self.field("unit_is_row"): flag or None}
        step = 'As unit = "patient"' if self.file else "For instance --unit patient"
        one_of("the unit", units, f"{step}: the column that identifies the person.")
        kept = {name: value for name, value in given.items() if name not in ("source", "table", "unit", "unit_is_row")}
        if kept.get("quote") == "":
            kept["quote"] = None  # never quoted
        source = self._source(given["source"])
        made = {**kept, "source": (source, given["table"]) if "table" in given else source, "unit": given.get("unit")}
        return made | ({"where": parse(given["where"])} if "where" in given else {})

    def _source(self, source: Any) -> Any:
        several = list(source) if isinstance(source, list | tuple) else [source]
        if not several or not all(isinstance(path, str) and path for path in several):
            check.refuse(self.who, self.field("source"), "a path or several", source, _EXAMPLES["source"])
        paths = [str(self.file.parent / path) if self.file else path for path in several]
        return paths[0] if len(paths) == 1 else paths

    def account(self, given: Mapping[str, Any], key: str | None) -> Account:
        self.check(given, _BUDGET, "[budget]")
        ledger, scope = given.get("ledger"), given.get("scope")
        check_paying(ledger, scope, key, who=self.who, prefix=self.field(""))
        amounts = {name: given[name] for name in _GOAL if name in given}
        if not amounts and (ledger is None or "renews" in given):
            options = ", ".join(self.field(name, "budget-") for name in ("epsilon", "rho"))
            step = "As epsilon = 1 in [budget], and ledger and scope to keep count." if self.file else (
                "For instance --budget-epsilon 1, and --ledger budget.db --scope visits to keep count."
            )  # fmt: skip
            check.refuse(self.who, "the budget", f"given by {options}", Plain("none"), step)
        if self.file and ledger is not None and "://" not in ledger:
            ledger = str(self.file.parent / ledger)
        path = ("this run",) if scope is None else tuple(scope.split("/"))
        return Account(ledger, path, Budget(**amounts) if amounts else None, given.get("renews"))

    def asked(self, given: Any, number: int, kind: str) -> Asked:
        """A question by itself, or a plan with several."""
        name = given.get("name") if isinstance(given, Mapping) else None
        shown = f"{kind} {name!r}" if isinstance(name, str) else f"{kind} {number}"
        with located(self.place(shown)):
            if not isinstance(given, Mapping):
                self.check(given, (), f"[[{kind}]]")
            if self.file and not name:
                self.lacks("name")
            if kind == "plan":
                self.check(given, ("name", *_VIEW, *_GOAL, "question"), "[[plan]]")
                if not given.get("question"):
                    self.lacks("question")
                asks: dict[str, Mapping[str, Any]] = {}
                for one in given["question"]:
                    self.question(one, ("weight",))
                    if one.get("name") is None or one["name"] in asks:
                        self.lacks("name", "given, and different, for each question of a plan")
                    asks[one["name"]] = self.parsed(one)
            else:
                self.question(given, (*_VIEW, *_GOAL))
                asks = {name or "": self.parsed(given)}
            view = self.parsed({field: given[field] for field in _VIEW if field in given})
            if "by" in view:
                by = [view["by"]] if isinstance(view["by"], str) else view["by"]
                if not isinstance(by, list) or not by or not all(isinstance(text, str) and text for text in by):
                    check.refuse(self.who, self.field("by"), "a column or several", view["by"], 'As by = "ward".')
                view["by"] = by
            if "by" not in view and (extra := [f for f in ("keys", "suppress_below") if f in view]):
                step = 'As by = "ward".' if self.file else "For instance --by ward."
                check.refuse(self.who, self.field(extra[0]), f"given with {self.field('by')}", Plain("it alone"), step)
            goal = {field: given[field] for field in _GOAL if field in given}
            if not goal:
                step = "As epsilon = 0.3." if self.file else "For instance --epsilon 0.3."
                needed = f"given by {self.field('epsilon')} (with or without {self.field('delta')}) or "
                check.refuse(self.who, "the price", needed + self.field("rho"), Plain("none"), step)
            return Asked(name or "", self.place(shown), view, goal, asks)

    def question(self, given: Any, more: Sequence[str]) -> None:
        """Refuse what a question does not need, and what it lacks."""
        needs = ASKS if self.file else ASKS | SUGGESTIONS
        every = tuple(dict.fromkeys(field for fields in (*needs.values(), *_MORE.values()) for field in fields))
        self.check(given, ("name", "ask", *every, *more), "[[question]]")
        if "ask" not in given:
            self.lacks("ask")
        wanted = given["ask"]
        if wanted not in needs:
            near = difflib.get_close_matches(wanted, ASKS, n=1)
            step = f"Did you mean {near[0]!r}?" if near else ""
            check.refuse(self.who, "ask", f"one of {', '.join(ASKS)}", wanted, step)
        kind = f'ask = "{wanted}"' if self.file else f"--{wanted.replace('_', '-')}"
        for field in needs[wanted]:
            if field not in given:
                self.lacks(field, f"given with {kind}")
        for field in every:
            if field in given and field not in (*needs[wanted], *_MORE.get(wanted, ())):
                takes = [self.field(other) for other in needs[wanted] if self.file or other in ("bounds", "edges")]
                step = f"It takes {', '.join(takes)}." if takes else "Drop it."
                check.refuse(self.who, self.field(field), f"left out with {kind}", Plain("it"), step)

    def parsed(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {name: parse(value) if name in ("where", "condition") else value for name, value in given.items()}

"""The answers of one run, as tables, JSON, CSV or Markdown."""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table as RichTable
from rich.text import Text

from inbounds.cli import output
from inbounds.tables import Answer, Results
from inbounds.tables.answers import shown
from inbounds.tables.plan import REPLAYED

if TYPE_CHECKING:
    from inbounds.tables import Plan

__all__ = ["Reply", "Report"]


@dataclass(frozen=True)
class Reply:
    """The answers of one plan."""

    name: str
    results: Results
    key: str | None
    replayed: bool

    @classmethod
    def of(cls, name: str, plan: Plan, found: Any, key: str | None, replayed: bool) -> Reply:
        """One answer is a table with one row."""
        if isinstance(found, Answer):
            (label,) = plan.asks
            found = Results((), ((),), {label: (found,)}, plan.event, {})
        return cls(name, found, key, replayed)

    def rows(self, level: float) -> Iterator[tuple[tuple[Any, ...], dict[str, tuple[Any, Any, Any]]]]:
        """Groups, and for each question the answer and its interval; None where it is suppressed."""
        for i, key in enumerate(self.results.keys):
            found = {}
            for name, column in self.results.columns.items():
                ends = (None, None) if column[i].suppressed else column[i].interval(level)
                found[name] = (column[i].value, *ends)
            yield key, found


@dataclass(frozen=True)
class _Table:
    """What is shown for people; the first ``texts`` columns are no numbers."""

    title: str
    heads: list[str]
    rows: list[list[str]]
    texts: int

    def made(self) -> RichTable:
        return output.table(self.heads, self.rows, numbers=len(self.heads) - self.texts)


@dataclass(frozen=True)
class Report:
    """All answers, what they cost and what is left.

    ``budget`` is the scope as JSON has it; None where nothing keeps count.
    """

    replies: Sequence[Reply]
    level: float
    cost: dict[str, Any]
    spent: dict[str, Any]
    left: dict[str, Any]
    budget: dict[str, Any] | None
    made: str = ""

    @property
    def _interval(self) -> str:
        return f"{100 * self.level:g} % interval"

    def _title(self, reply: Reply, name: str) -> str:
        """Of an answer without groups."""
        return name if len(reply.results.columns) == 1 or not reply.name else f"{reply.name}: {name}"

    def tables(self, fits: Callable[[_Table], bool] = lambda table: True) -> Iterator[_Table]:
        """All answers without groups first, then a table for each plan: with its questions side by side if it fits."""
        alone = [
            [self._title(reply, name), *_words(cells)]
            for reply in self.replies
            if not reply.results.by
            for _, found in reply.rows(self.level)
            for name, cells in found.items()
        ]
        if alone:
            yield _Table("", ["question", "answer", self._interval], alone, 1)
        for reply in self.replies:
            if not reply.results.by:
                continue
            beside = self._beside(reply)
            yield beside if len(reply.results.columns) == 1 or fits(beside) else self._below(reply)

    def _beside(self, reply: Reply) -> _Table:
        heads = [*reply.results.by, *(head for name in reply.results.columns for head in (name, self._interval))]
        rows = [
            [*map(str, key), *(word for cells in found.values() for word in _words(cells))]
            for key, found in reply.rows(self.level)
        ]
        return _Table(reply.name, heads, rows, len(reply.results.by))

    def _below(self, reply: Reply) -> _Table:
        heads = [*reply.results.by, "question", "answer", self._interval]
        rows = [
            [*map(str, key), name, *_words(cells)]
            for key, found in reply.rows(self.level)
            for name, cells in found.items()
        ]
        return _Table(reply.name, heads, rows, len(reply.results.by) + 1)

    def facts(self) -> list[tuple[str, str]]:
        """What it cost, what is left, and what to know."""
        cost = output.amounts(self.cost)
        before = [reply for reply in self.replies if reply.replayed]
        if before:
            which = "all" if len(before) == len(self.replies) else f"{len(before)} of {len(self.replies)}"
            cost += f"; given before, so at no cost: {which}"
        rows = [("cost", cost)]
        left = f"spent {output.amounts(self.spent)}; left for one release {output.amounts(self.left, up=False)}"
        if self.budget is None:
            rows.append(("budget", f"of this run alone: {left}. Nothing keeps count (see --ledger)"))
        else:
            rows.append(("budget", f"{self.budget['scope']}: {left}"))
        if self.made:
            rows.append(("made", self.made))
        for reply in self.replies:
            about = f"{reply.name}: " if reply.name and len(self.replies) > 1 else ""
            rows += [("note", about + note) for note in reply.results.notes if note != REPLAYED]  # it is with the cost
            if not reply.results.keys:
                rows.append(("note", f"{about}no group has enough units to be found for certain"))
        return rows

    # ---------------------------------------------------------------- forms

    def print(self) -> None:
        out = output.console()
        found = list(self.tables(lambda table: output.width(table.made()) <= out.width))
        facts = self.facts()
        if len(self.replies) == 1 and len(found) == 1 and not self.replies[0].results.by and len(found[0].rows) == 1:
            ((_, answer, interval),) = found[0].rows
            confident = f"{interval} with confidence {self.level:g}"
            output.print_rows([("answer", answer), ("interval", confident), *facts])
            return
        for table in found:
            if table.title:
                out.print(Text(table.title, style="bold"))
            output.print_whole(table.made())
            out.print()
        output.print_rows(facts)

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "format": "inbounds.report",
            "version": 1,
            "level": self.level,
            "answers": [
                {
                    "name": reply.name or next(iter(reply.results.columns), ""),
                    "by": list(reply.results.by),
                    "rows": [
                        {
                            "group": [_plain(part) for part in key],
                            "answers": {
                                name: dict(zip(("value", "lower", "upper"), map(_plain, cells), strict=True))
                                for name, cells in found.items()
                            },
                        }
                        for key, found in reply.rows(self.level)
                    ],
                    "notes": list(reply.results.notes),
                    "key": reply.key,
                    "replayed": reply.replayed,
                    "event": reply.results.event.to_json(),
                }
                for reply in self.replies
            ],
            "cost": self.cost,
            "budget": self.budget,
        }

    def csv(self) -> str:
        """One row an answer: the plan, the question, the groups (empty where there are none), value, lower, upper."""
        by = list(dict.fromkeys(name for reply in self.replies for name in reply.results.by))
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["plan", "question", *by, "value", "lower", "upper", "level"])
        for reply in self.replies:
            for key, found in reply.rows(self.level):
                group = dict(zip(reply.results.by, key, strict=True))
                for name, cells in found.items():
                    places = [_plain(group.get(column, "")) for column in by]
                    numbers = ["" if cell is None else _plain(cell) for cell in cells]
                    writer.writerow([reply.name, name, *places, *numbers, self.level])
        return text.getvalue()

    def markdown(self) -> str:
        lines: list[str] = []
        for table in self.tables():
            lines += [f"## {_escaped(table.title)}", ""] if table.title else []
            rule = ["---"] * table.texts + ["---:"] * (len(table.heads) - table.texts)
            lines += [_line(table.heads), _line(rule), *map(_line, table.rows), ""]
        return "\n".join([*lines, *(f"- {name}: {_escaped(text)}" for name, text in self.facts())]) + "\n"


def _words(cells: tuple[Any, Any, Any]) -> tuple[str, str]:
    value, low, high = cells
    return ("suppressed", "") if value is None else (shown(value), f"{shown(low)} to {shown(high)}")


def _plain(x: Any) -> Any:
    return x.isoformat() if isinstance(x, dt.date) else x


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_escaped, cells)) + " |"

"""A small table of private answers: one row per group, one column per question."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from inbounds import _checks as check
from inbounds.errors import MissingAnswer, ParameterError
from inbounds.events import Event
from inbounds.tables.answers import Answer, shown
from inbounds.tables.kinds import extra, fits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Results"]

_SHOWN = 40  # rows that are printed
_MOST_COUNTED = 2**53  # to which float64 has every whole number


@dataclass(frozen=True, eq=False)
class Results:
    """Private answers, by group.

    Attributes
    ----------
    by : tuple of str
        What the groups are groups of; empty without groups.
    keys : tuple of tuples
        The groups.
    columns : mapping of str to tuple of Answer
        For each question, its answer for each group.
    event : Event
        The record of what was released.
    spent : dict
        What is spent of the budget, this included.
    wide : frozenset of str
        Which of ``by`` hold wide whole numbers: text in frames of Polars and Arrow, whichever groups there are.
    """

    by: tuple[str, ...]
    keys: tuple[tuple[Any, ...], ...]
    columns: Mapping[str, tuple[Answer, ...]]
    event: Event
    spent: Mapping[str, float]
    wide: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows: groups and answers by name."""
        for i, key in enumerate(self.keys):
            yield dict(zip(self.by, key, strict=True)) | {name: column[i] for name, column in self.columns.items()}

    def __getitem__(self, name: str) -> tuple[Answer, ...]:
        if name not in self.columns:
            there = ", ".join(map(repr, self.columns))
            raise MissingAnswer(f"Results: name must be that of a question; got {name!r}. There is {there}.")
        return self.columns[name]

    def at(self, *key: Any) -> dict[str, Answer]:
        """The answers of one group, by question."""
        if key not in self.keys:
            raise MissingAnswer(f"Results: key must be one of the groups; got {key!r}. Groups are listed in keys.")
        i = self.keys.index(key)
        return {name: column[i] for name, column in self.columns.items()}

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know when reading the answers; public."""
        found = dict.fromkeys(note for column in self.columns.values() for answer in column for note in answer.notes)
        return tuple(found)

    # ---------------------------------------------------------------- elsewhere

    def to_dict(self, *, level: float = 0.95) -> dict[str, list[Any]]:
        """Columns of plain values: for each question the answer, and the ends of its interval as ``name_lower``,
        ``name_upper``; None where suppressed."""
        found: dict[str, list[Any]] = {name: [key[i] for key in self.keys] for i, name in enumerate(self.by)}
        for name, column in self.columns.items():
            ends = [answer.interval(level) if not answer.suppressed else (None, None) for answer in column]
            found[name] = [answer.value for answer in column]
            found[f"{name}_lower"], found[f"{name}_upper"] = [low for low, _ in ends], [high for _, high in ends]
        return found

    def to_json(self, *, level: float = 0.95, indent: int | None = 2) -> str:
        """The same as JSON text, with the notes and what is spent; dates as text, infinite ends as null."""
        record = {
            "format": "inbounds.answers",
            "version": 1,
            "level": level,
            "rows": [
                dict(zip(self.to_dict(level=level), row, strict=True))
                for row in zip(*self.to_dict(level=level).values(), strict=True)
            ],
            "notes": list(self.notes),
            "spent": dict(self.spent),
        }
        return json.dumps(_plain(record), indent=indent, allow_nan=False)

    def to_pandas(self, *, level: float = 0.95) -> Any:
        """A pandas DataFrame."""
        return extra("pandas").DataFrame(self.to_dict(level=level))

    def to_polars(self, *, level: float = 0.95) -> Any:
        """A Polars DataFrame."""
        return extra("polars").DataFrame(self._framed(level))

    def to_arrow(self, *, level: float = 0.95) -> Any:
        """An Arrow table."""
        return extra("pyarrow").table(self._framed(level))

    def _framed(self, level: float) -> dict[str, list[Any]]:
        """The same as :meth:`to_dict`, of what frames can hold; keys that were given may be wide in any column."""
        found = self.to_dict(level=level)
        for i, name in enumerate(self.by):
            given = [key[i] for key in self.keys]
            if name in self.wide or any(type(part) is int and not fits(part) for part in given):
                found[name] = [None if part is None else str(part) for part in given]
        return found

    def _cells(self, level: float) -> list[list[str]]:
        rows = []
        for i, key in enumerate(self.keys[:_SHOWN]):
            row = [str(part) for part in key]
            for column in self.columns.values():
                answer = column[i]
                if answer.suppressed:
                    row += ["suppressed", ""]
                else:
                    low, high = answer.interval(level)
                    row += [shown(answer.value), f"{shown(low)} to {shown(high)}"]
            rows.append(row)
        return rows

    def _head(self) -> list[str]:
        return [*self.by, *(title for name in self.columns for title in (name, "95 % interval"))]

    def _foot(self) -> list[str]:
        more = [f"... and {len(self.keys) - _SHOWN} more groups"] if len(self.keys) > _SHOWN else []
        total = ", ".join(f"{name} {amount:.9g}" for name, amount in self.spent.items())
        return more + ([f"spent so far: {total}"] if total else []) + [f"note: {note}" for note in self.notes]

    def __str__(self) -> str:
        rows = [self._head(), *self._cells(0.95)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        named = len(self.by)

        def line(row: Sequence[str]) -> str:
            cells = [
                cell.ljust(width) if i < named else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            return "  ".join(cells).rstrip()

        return "\n".join([line(rows[0]), "  ".join("-" * w for w in widths), *map(line, rows[1:]), *self._foot()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(title)}</th>" for title in self._head())
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self._cells(0.95)
        )
        foot = "".join(f"<br><small>{escape(line)}</small>" for line in self._foot())
        return f"<table><tr>{head}</tr>{body}</table>{foot}"

    def plot(self, name: str | None = None, *, level: float = 0.95) -> Figure:
        """A picture of one question: the answer and its interval for each group."""
        from inbounds.plots import answers

        name = next(iter(self.columns)) if name is None else name
        labels = [", ".join(map(str, key)) or name for key in self.keys]
        return answers(dict(zip(labels, self[name], strict=True)), title=name, level=level)

    # ---------------------------------------------------------------- consistency

    def summing_to(self, total: float, name: str | None = None) -> Results:
        """The same with one column changed as little as possible so that it sums to a public or released total.

        Post-processing: it costs nothing. Counts stay whole numbers from 0 up; intervals stay as they
        were, but for reaching to the new values.

        Parameters
        ----------
        total : number
            Of which the groups are parts: each unit in one group.
        name : str, optional
            The question; the first one otherwise.
        """
        name = next(iter(self.columns)) if name is None else name
        column = self[name]
        whole = all(isinstance(answer.value, int) for answer in column)
        most = float(_MOST_COUNTED) if whole else check.LARGEST
        wanted = check.number("summing_to", "total", total, at_least=0.0, at_most=most)
        if whole and not wanted.is_integer():
            check.refuse("summing_to", "total", "a whole number for counts", total, "")
        if not column or any(a.suppressed or a.valid[0] != 0 or a.valid[1] < wanted for a in column):
            raise ParameterError(
                f"summing_to: {name!r} must have answers that may be anything from 0 to the total, none suppressed."
            )
        given = [answer.value for answer in column]
        values = _whole_parts(given, int(wanted)) if whole else _onto_simplex(np.array(given), wanted).tolist()
        changed = tuple(replace(answer, value=value) for answer, value in zip(column, values, strict=True))
        return replace(self, columns=dict(self.columns) | {name: changed})

    def as_shares(self, name: str | None = None) -> dict[tuple[Any, ...], float]:
        """What share each group has of one column: numbers from 0 to 1 that sum to 1."""
        name = next(iter(self.columns)) if name is None else name
        if not self.keys or any(answer.suppressed or answer.valid[0] != 0 for answer in self[name]):
            raise ParameterError(f"as_shares: {name!r} must have answers from 0 up, none suppressed.")
        values = np.array([float(answer.value) for answer in self[name]])
        total = float(values.sum())
        shares = values / total if total > 0.0 else np.full(values.size, 1.0 / values.size)
        return dict(zip(self.keys, shares.tolist(), strict=True))


def _onto_simplex(x: Any, total: float) -> Any:
    """The nearest point with parts of at least 0 that sum to ``total``."""
    order = np.sort(x)[::-1]
    over = (np.cumsum(order) - total) / np.arange(1, x.size + 1)
    last = int(np.flatnonzero(order >= over)[-1]) if np.any(order >= over) else 0
    return np.maximum(x - over[last], 0.0)


def _whole_parts(x: list[int], total: int) -> list[int]:
    """The same in whole numbers, exactly: the nearest point, of which the largest remainders are rounded up."""
    order = sorted(x, reverse=True)
    over = [reached - total for reached in accumulate(order)]
    kept = max(k for k, value in enumerate(order, 1) if value * k >= over[k - 1])
    parts = [divmod(max(value * kept - over[kept - 1], 0), kept) for value in x]
    missing = total - sum(whole for whole, _ in parts)
    up = set(sorted(range(len(x)), key=lambda i: -parts[i][1])[:missing])
    return [whole + (i in up) for i, (whole, _) in enumerate(parts)]


def _plain(thing: Any) -> Any:
    if isinstance(thing, dict):
        return {str(key): _plain(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [_plain(value) for value in thing]
    if isinstance(thing, float):
        return thing if math.isfinite(thing) else None
    return thing if isinstance(thing, int | str | bool | None) else str(thing)

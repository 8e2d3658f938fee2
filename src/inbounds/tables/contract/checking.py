"""A source is asked everything, and what it says is compared with what is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inbounds.errors import InboundsError, MissingExtra
from inbounds.tables.contract import cases
from inbounds.tables.contract.cases import Asked
from inbounds.tables.contract.rows import COLUMNS
from inbounds.tables.contract.sources import Maker
from inbounds.tables.source import Source

__all__ = ["Found", "check", "expected", "holds", "page"]

_BATCH = 100  # expressions in one query
YES, NO, NONE = "✓", "✗", "–"


@dataclass(frozen=True)
class Found:
    """What one source was found to do.

    Attributes
    ----------
    name : str
    marks : mapping of (str, str) to str
        For each type, question and sort of expression: passed, failed, or that the source has no such values.
    answers : int
        How many numbers were compared.
    failures : tuple of str
        What failed, in words. The rows are known, so these may show them.
    """

    name: str
    marks: dict[tuple[str, str], str]
    answers: int
    failures: tuple[str, ...] = ()


def _asked(maker: Maker) -> list[tuple[str, Asked]]:
    """All that a source can be asked, by the part of the page that it counts for."""
    there = {column.name for column in maker.columns}
    every = [("Questions", asked) for asked in cases.questions()] + [("Expressions", a) for a in cases.expressions()]
    return [(part, asked) for part, asked in every if asked.columns <= there]


def _rows() -> list[tuple[str, str]]:
    """The rows of the page."""
    rows = [("Types", column.label) for column in COLUMNS]
    rows += [("Questions", asked.name) for asked in cases.questions()]
    rows += [("Expressions", asked.name) for asked in cases.expressions()]
    return list(dict.fromkeys(rows))


def expected(maker: Maker) -> Found:
    """What is found where nothing fails."""
    there = {("Types", column.label) for column in maker.columns} | {(part, a.name) for part, a in _asked(maker)}
    marks = {row: YES if row in there else NONE for row in _rows()}
    return Found(maker.name, marks, sum(_size(asked) for _, asked in _asked(maker)))


def _size(asked: Asked) -> int:
    """How many numbers an answer has."""
    known = cases.known(asked)
    if isinstance(known, list):
        return len(known)
    return len(known["units"]) + sum(len(group) for groups in known["numbers"].values() for group in groups)


def check(maker: Maker, folder: Path, *, every: int = 1, start: int = 0) -> Found:
    """Ask a source, in an empty folder: all, or of all that there is to ask one in ``every`` from some one on."""
    found, failures = expected(maker), []
    marks, asked = dict(found.marks), _asked(maker)[start::every]

    def fails(part: str, name: str, how: str) -> None:
        marks[part, name] = NO
        failures.append(f"{part}, {name}: {how}")

    source = _opened(maker, folder / "rows", lambda how: fails("Types", COLUMNS[0].label, how))
    if source is not None:
        for column in maker.columns:
            kind = source.schema.get(column.name)
            if kind is not column.kind:
                fails("Types", column.label, f"the column {column.name!r} holds {kind}, not {column.kind}")
        for part, one, how in _wrong(asked, source):
            fails(part, one.name, f"{one.about}: {how}")
    empty = _opened(maker, folder / "empty", lambda how: fails("Types", COLUMNS[0].label, how), empty=True)
    if empty is not None:
        for part, one in asked[::10]:
            if part == "Questions" and one.name != "suggest_caps":
                answer = _told(one, empty)
                if answer != cases.nothing(one.what):
                    fails(part, one.name, f"{one.about}, without rows: got {answer}")
    return Found(maker.name, marks, sum(_size(one) for _, one in asked), tuple(failures))


def _opened(maker: Maker, folder: Path, fails: Callable[[str], None], *, empty: bool = False) -> Source | None:
    folder.mkdir(parents=True)
    try:
        return maker.open(folder, empty=empty)
    except MissingExtra:
        raise
    except Exception as error:  # of whoever writes the rows too
        fails(f"{type(error).__name__}: {error}")
    return None


def _told(asked: Asked, source: Source) -> Any:
    try:
        return cases.told(asked, source)
    except InboundsError as error:
        return f"{type(error).__name__}: {error}"


def _wrong(asked: Sequence[tuple[str, Asked]], source: Source) -> Iterator[tuple[str, Asked, str]]:
    """What a source answers otherwise than is known."""
    batch = [one for part, one in asked if part == "Expressions"]
    told: dict[str, Any] = {}
    for i in range(0, len(batch), _BATCH):
        told |= _together(batch[i : i + _BATCH], source)
    for part, one in asked:
        answer = told[one.about] if part == "Expressions" else _told(one, source)
        known = cases.known(one)
        if answer != known:
            yield part, one, f"got {answer}, known is {known}"


def _together(batch: Sequence[Asked], source: Source) -> dict[str, Any]:
    """The answers to some expressions, asked together where that works: where it fails, each half by itself."""
    try:
        return dict(zip((one.about for one in batch), cases.ask_expressions(batch, source), strict=True))
    except InboundsError as error:
        if len(batch) == 1:
            return {batch[0].about: f"{type(error).__name__}: {error}"}
    half = len(batch) // 2
    return _together(batch[:half], source) | _together(batch[half:], source)


def holds(maker: Maker, column: str, folder: Path) -> bool:
    """Whether a source holds a column all the same that it is said to lack."""
    tried = Maker(maker.name, maker.write, frozenset(c.name for c in COLUMNS) - {"row", column}, maker.odd)
    return not check(tried, folder).failures


def page(found: Sequence[Found]) -> str:
    """Tables of marks as Markdown: a column for each sort of source, a row for what there is to ask."""
    groups: dict[str, list[Found]] = {}
    for one in found:
        groups.setdefault(one.name.partition(":")[0], []).append(one)
    lines: list[str] = []
    for part in dict.fromkeys(part for part, _ in _rows()):
        lines += ["", f"## {part}", "", f"| | {' | '.join(groups)} |", f"|---|{':-:|' * len(groups)}"]
        for row in _rows():
            if row[0] == part:
                marks = (_mark({one.marks[row] for one in group}) for group in groups.values())
                lines.append(f"| {_cell(row[1])} | {' | '.join(marks)} |")
    lines += ["", "## Known answers", "", "| source | numbers compared |", "|---|---:|"]
    lines += [f"| {one.name} | {one.answers:,} |" for one in found]
    return "\n".join(lines).lstrip("\n") + "\n"


def _mark(marks: set[str]) -> str:
    return next(mark for mark in (NO, YES, NONE) if mark in marks)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<").replace("*", "\\*").replace("~", "\\~")

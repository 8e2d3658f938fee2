"""JSON, one object a line, read so that a line decides about itself only.

A line end inside a text is written ``\\n`` in JSON, so that lines are records whatever the values are. A line that is
no object, is nested too deeply or is too long is a row without values; an empty one is no row. Of a name that an object
has twice the last counts. Numbers come through in the digits they are written in; arrays and objects are no values.
Proofs are in ``docs/proofs/text-files.md``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from inbounds import _checks as check
from inbounds.tables.kinds import extra
from inbounds.tables.readers import text
from inbounds.tables.readers.base import Field

__all__ = ["JSON"]

#: So that whether a line can be read does not depend on the stack it is read on.
_DEEPEST = 100
_LONG = b"-"  # stands for a line that was too long to keep, as something that is no JSON
#: Texts and brackets. A text that nothing closes runs to the end of the line, so that no character is passed twice.
_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.?)*+"?|[\[{\]}]', re.DOTALL)
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
_NOTE = "values of the file that do not fit the types of their columns, and lines that are no JSON, count as missing"


class JSON:
    """Files of JSON, one object a line, as a :class:`~inbounds.tables.readers.base.Reader`.

    Parameters
    ----------
    paths : sequence of str
        Files, in this order. ``.gz`` and ``.zst`` are decompressed.
    types : mapping of str to str
        The columns and what they hold. Nothing else is read.
    """

    once = True  # slower than CSV

    def __init__(self, paths: Sequence[str], types: Mapping[str, str] | None) -> None:
        if not types:
            step = 'As {"age": "integer"}; nothing else is read.'
            check.refuse("Source", "types", "given for files of JSON", types, step)
        self._paths = tuple(paths)
        self.fields: Mapping[str, Field] = MappingProxyType(
            {name: Field(extra("pyarrow").binary(), kind) for name, kind in types.items()}
        )
        self.what = text.described(paths, "JSON")
        self.identity = ", ".join(paths)
        self.notes: tuple[str, ...] = (_NOTE,)
        self.names_public = True

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for path in self._paths:
            for lines in _lines(text.pieces(path, None)):
                rows = [_object(line) for line in map(_stripped, lines) if line]
                arrays = [_column([row.get(name) for row in rows]) for name in columns]
                if rows:
                    yield text.batch(columns, arrays, len(rows))

    def ready(self) -> None:
        for path in self._paths:
            next(text.pieces(path, None), None)


def _lines(pieces: Iterator[bytes]) -> Iterator[list[bytes]]:
    held, long = b"", False
    for piece in pieces:
        *lines, rest = piece.split(b"\n")
        if not lines:
            held += rest
        else:
            lines[0] = _LONG if long else held + lines[0]
            yield lines
            held, long = rest, False
        if len(held) > text.LIMIT:
            held, long = b"", True
    yield [_LONG if long else held]


def _stripped(line: bytes) -> bytes:
    """Without blanks around it; a line is too long with all of them, wherever the pieces that were read end."""
    return _LONG if len(line) > text.LIMIT else line.strip(b" \t\r")


def _object(line: bytes) -> dict[str, Any]:
    """The object on a line; an empty one if there is none."""
    characters = line.decode("utf-8", "surrogateescape")  # what is no UTF-8 stays so, see _written
    if line.count(b"[") + line.count(b"{") > _DEEPEST and _deep(characters):
        return {}
    try:
        found, end = _DECODER.raw_decode(characters)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and end == len(characters) else {}


def _deep(line: str) -> bool:
    """Whether it is nested too deeply, up to the first bracket that is."""
    now = 0
    for found in _BRACKETS.finditer(line):
        bracket = line[found.start()]
        now += (bracket in "[{") - (bracket in "]}")
        if now > _DEEPEST:
            return True
    return False


def _column(values: list[Any]) -> Any:
    arrow = extra("pyarrow")
    try:
        return arrow.array(values, arrow.string()).cast(arrow.binary())
    except (TypeError, ValueError):  # not all are texts, or are UTF-8
        return arrow.array([_written(value) for value in values], arrow.binary())


def _written(value: Any) -> bytes | None:
    """A value as text: numbers are already, truth values as true and false; None for what has no place in a column."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return (b"true" if value else b"false") if isinstance(value, bool) else None

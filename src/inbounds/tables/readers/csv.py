"""CSV, read so that a record decides about itself only.

Nothing is guessed from rows. The rules, with proofs in ``docs/proofs/text-files.md``:

- A line ends with LF or CR LF; a CR by itself is a character like any other.
- A field that begins with the quote ends with the next quote that is not doubled; between them delimiters and line ends
  are characters. After it comes a delimiter or the end of the line. In other fields the quote is a character.
- A record that is longer than one line must be well-formed throughout: no quotes in fields that do not begin with
  one, and the right number of fields. If it is not, its first line is a record by itself, without values.
- A record of the wrong number of fields, one that breaks these rules, and one of more than 16 MiB is a row without
  values. An empty field is null. An empty line is no row, unless there is one column only.

What a writer of RFC 4180 wrote is read back by the first two, whatever the values are. The third bounds what a record
by another writer can do: it ends where its line ends, unless what follows happens to complete it in the right form.

Two ways lead to the same records: :func:`_record` is the definition, and reads one at a time; :func:`_records` reads
thousands as long as all keep to RFC 4180, and stops at the first that does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from inbounds import _checks as check
from inbounds.errors import MissingColumn, ParameterError, ParameterTypeError
from inbounds.tables.kinds import extra, find
from inbounds.tables.readers import text
from inbounds.tables.readers.base import Field, changed

__all__ = ["CSV"]

_LF, _CR = 10, 13
_WINDOW = 2**22  # bytes that are read at once
_MOST_SINGLE = 4096  # records read one by one before trying many at once again
_A_ROW = "Pass header=False and types= if it is a row."
_NOTE = (
    "values of the file that do not fit the types of its columns count as missing, and so do all values of a record "
    "with the wrong number of fields"
)


class CSV:
    """Files of CSV, as a :class:`~inbounds.tables.readers.base.Reader`.

    Parameters
    ----------
    paths : sequence of str
        Files, in this order. ``.gz`` and ``.zst`` are decompressed.
    types : mapping of str to str, optional
        What columns hold; those that are left out hold text. Without a header, it names all columns in order.
    delimiter : str, optional
        One ASCII character; otherwise a tab for ``.tsv`` and a comma for all others.
    quote : str or None
        One ASCII character, or None where fields are never quoted: then every line is a record.
    header : bool, optional
        True: the first record of each file has the names of its columns. False: it has none. None: it has, but they
        are shown to nobody, for it might be a record of somebody.
    encoding : str
        Of the files, one that Python knows.
    """

    once = False

    def __init__(
        self,
        paths: Sequence[str],
        types: Mapping[str, str] | None = None,
        *,
        delimiter: str | None = None,
        quote: str | None = '"',
        header: bool | None = None,
        encoding: str = "utf-8",
    ) -> None:
        if not isinstance(header, bool | None):
            check.refuse("Source", "header", "True, False or None", header, "", ParameterTypeError)
        self._encoding = text.encoded(encoding)
        self._header = header
        mark = b"" if quote is None else _character("quote", quote)
        fixed = None if delimiter is None else _character("delimiter", delimiter)
        if header is False and not types:
            step = 'As {"name": "text", "age": "integer"}, one for each column in order.'
            check.refuse("Source", "types", "given for files without a header", types, step)
        given = dict(types or {})
        self._files: list[tuple[str, _Dialect, tuple[str, ...]]] = []
        for path in paths:
            dialect = _Dialect(fixed or (b"\t" if text.ending(path) == ".tsv" else b","), mark)
            if dialect.delimiter == mark:
                check.refuse("Source", "quote", "another character than the delimiter", quote, "")
            text.ordered(path, self._encoding)
            self._files.append((path, dialect, tuple(given) if header is False else self._first(path, dialect)))
        names = self._files[0][2]
        for path, _, others in self._files:
            if set(others) != set(names):
                check.refuse("Source", "table", "files that begin with the same names of columns", path, "")
        if unknown := [name for name in given if name not in names]:
            self._unknown(unknown[0], names, paths[0])
        self.fields: Mapping[str, Field] = MappingProxyType(
            {name: Field(extra("pyarrow").binary(), given.get(name, "text")) for name in names}
        )
        self.what = text.described(paths, "CSV")
        self.identity = ", ".join(paths)
        self.notes: tuple[str, ...] = (_NOTE,)
        self.names_public = header is not None

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for path, dialect, names in self._files:
            scan = self._scan(path, dialect)
            if self._header is not False and scan.names() != [name.encode() for name in names]:
                raise changed(path)
            yield from scan.batches(len(names), {column: names.index(column) for column in columns})

    def ready(self) -> None:
        for path, dialect, names in self._files:
            text.ordered(path, self._encoding)
            if self._header is False:
                next(text.pieces(path, self._encoding), None)
            elif self._first(path, dialect) != names:
                raise changed(path)

    def _scan(self, path: str, dialect: _Dialect) -> _Scan:
        return _Scan(partial(text.pieces, path, self._encoding), dialect)

    def _first(self, path: str, dialect: _Dialect) -> tuple[str, ...]:
        """The first record, as names of columns. No error shows them unless the user said that they are."""
        found = self._scan(path, dialect).names()
        raw = found or []
        if self._encoding is None and _looks_wide(raw):
            self._refuse(path, "a file in UTF-8", 'Pass its encoding, as encoding="utf-16".')
        try:
            names = tuple(name.decode() for name in raw)
        except UnicodeDecodeError:
            self._refuse(path, "a file whose first line is text in its encoding", 'As encoding="latin-1".')
        if any("\0" in name for name in names):
            step = 'Rename columns; or pass its encoding, as encoding="utf-16", if it is not UTF-8.'
            self._refuse(path, "a file without the character 0 in the names of its columns", step)
        if any("\r" in name for name in names):
            step = "Write its lines anew with LF; or pass header=False and types= if the first line is a row."
            self._refuse(path, "a file whose first line ends with LF or CR LF, and has no CR by itself", step)
        if found is None:
            needs = "a file whose first line has a name for each column and ends with LF or CR LF"
            step = (
                "Pass delimiter= where it is not a comma that stands between them, or quote= where it is not quoted so."
            )
            self._refuse(path, needs, f"{step} {_A_ROW}")
        if not any(names):
            self._refuse(path, "a file whose first line has names of columns")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            needs = "a file whose first line has different names of columns"
            if self._header:
                self._refuse(path, f"{needs}, and not {check.shown(twice)} more than once", "Rename columns.")
            self._refuse(path, needs, "With header=True the message shows which; with header=False types names them.")
        return names

    def _unknown(self, name: str, names: Sequence[str], path: str) -> NoReturn:
        if self._header:
            find("types", name, dict.fromkeys(names))  # type: ignore[arg-type]  # it looks at the names
        raise MissingColumn(
            f"types: the first line of the file must have the names of these columns; {name!r} is not in {path!r}. "
            "Pass delimiter= where it is not a comma that stands between them, and header=False if the file begins "
            "with a row: types then names all columns in order. With header=True the message shows the names that the "
            "file has."
        )

    def _refuse(self, path: str, requirement: str, step: str = _A_ROW) -> NoReturn:
        check.refuse("Source", "table", requirement, path, step)


def _looks_wide(names: Sequence[bytes]) -> bool:
    """Whether a first record is in UTF-16 or UTF-32: it has a mark of their byte order, or many zeros."""
    marked = any(name[:2] in (b"\xff\xfe", b"\xfe\xff") for name in names)
    return marked or 3 * sum(name.count(0) for name in names) > sum(map(len, names))


def _character(name: str, value: object) -> bytes:
    if not isinstance(value, str) or len(value) != 1 or not value.isascii() or value in "\r\n":
        kind = ParameterError if isinstance(value, str) else ParameterTypeError
        check.refuse("Source", name, "one ASCII character that ends no line", value, "", kind)
    return value.encode()


class _Dialect:
    """The delimiter, the quote or nothing, and a pattern of one field."""

    def __init__(self, delimiter: bytes, quote: bytes) -> None:
        self.delimiter, self.quote = delimiter, quote
        d, q = re.escape(delimiter), re.escape(quote)
        plain = rb"[^%s\n]*+" % d
        if quote:
            closed = rb"%s(?P<quoted>[^%s]*+(?:%s%s[^%s]*+)*+)%s" % (q, q, q, q, q, q)
            plain = rb"%s(?=%s|\r?\n)|(?!%s)%s" % (closed, d, q, plain)
            self.closed = re.compile(closed)
        self.field, self.separator = re.compile(plain), re.compile(rb"[%s\n]" % d)


def _record(dialect: _Dialect, data: bytes, start: int, width: int | None) -> tuple[int, list[bytes] | None] | None:
    """The end of the record at ``start``, and its fields, or None for those if it has no values.

    None if that is not known from ``data``, or not before :data:`LIMIT` bytes.
    """
    most = min(len(data), start + text.LIMIT)
    line = data.find(b"\n", start, most) + 1
    fields: list[bytes] = []
    at, strict = start, True
    while line and at < most:
        found = dialect.field.match(data, at, most)
        if found is None:  # something else comes after the quote, or the quote further on
            closed = dialect.closed.match(data, at, most)
            return None if closed is None or closed.end() > most - 2 else (line, None)
        at = found.end()
        if at == most:
            break
        if found.lastgroup == "quoted":
            value = found["quoted"].replace(2 * dialect.quote, dialect.quote)
            at += data[at] == _CR
        else:
            value = found[0]
            strict = strict and dialect.quote not in value
            value = value.removesuffix(b"\r") if data[at] == _LF else value
        fields.append(value)
        at += 1
        # Known before its end, which may be far away, and as far from each of the lines between.
        if at > line and not (strict and (width is None or len(fields) <= width)):
            return line, None
        if data[at - 1] == _LF:
            sound = width is None or len(fields) == width
            return (at, fields) if sound and (strict or at == line) else (line, None)
    return None


@dataclass
class _Scan:
    """The records of one file from its beginning: a position in its text, of which some is in memory."""

    opened: Callable[[int], Iterator[bytes]]  # the text from some byte on, in pieces
    dialect: _Dialect

    def __post_init__(self) -> None:
        self._go(0)

    def _go(self, begin: int) -> None:
        self.pieces = self.opened(begin)
        self.begin = begin  # of data, in the text
        self.data, self.at, self.ended = b"", 0, False

    def ahead(self, wanted: int) -> bool:
        """Whether there is more; ``wanted`` bytes of it, or all, are then in memory. The text ends with a line end."""
        if not self.ended and len(self.data) - self.at < wanted:
            kept, size = [self.data[self.at :]], len(self.data) - self.at
            last = self.data[-1:]
            while size < wanted and not self.ended:
                piece = next(self.pieces, None)
                if piece is None:
                    self.ended = True
                    piece = b"\n" if last not in b"\n" else b""
                kept.append(piece)
                size += len(piece)
                last = piece[-1:] or last
            self.begin += self.at
            self.data, self.at = b"".join(kept), 0
        return self.at < len(self.data)

    def one(self, width: int | None) -> tuple[bool, list[bytes] | None]:
        """The next record: whether it is a row, and its fields."""
        while (found := _record(self.dialect, self.data, self.at, width)) is None:
            if len(self.data) - self.at > text.LIMIT:
                self._skip(width)
                return True, None
            if self.ended:  # in quotes
                found = self.data.index(b"\n", self.at) + 1, None
                break
            self.ahead(2 * text.LIMIT)  # so much that it is not moved for each record
        end, fields = found
        line = self.data[self.at : min(end, self.at + 3)]
        self.at = end
        return width == 1 or line not in (b"\n", b"\r\n"), fields

    def _skip(self, width: int | None) -> None:
        """Go past a record that is longer than :data:`LIMIT`, by the rules of :func:`_record`."""
        start, line = self.begin + self.at, 0  # line: the length of the first one, once that is known
        fields, strict, state = 1, True, "start"
        while self.ahead(1) and not (line and not (strict and (width is None or fields <= width))):
            data, at, quote = self.data, self.at, self.dialect.quote
            character = data[at : at + 1]
            if state == "start":
                state = "quoted" if character == quote else "plain"
                self.at += state == "quoted"
            elif state == "quoted":
                closing = data.find(quote, at)
                self.at = closing + 1 or len(data)
                state = "quoted" if closing < 0 else "closed"
                line = line or self._line(start, at, self.at)
            elif state == "plain":
                found = self.dialect.separator.search(data, at)
                strict = strict and quote not in data[at : found.start() if found else len(data)]
                self.at = found.end() if found else len(data)
                state, fields = ("start", fields + 1) if found else ("plain", fields)
                if found and found[0] == b"\n":
                    if not line or (strict and fields == 1 + (width or 0)):
                        return
                    break
            elif state == "closed" and character in (quote, b"\r"):
                state = "quoted" if character == quote else "ended"
                self.at += 1
            elif state != "lost" and (
                character == b"\n" or (state == "closed" and character == self.dialect.delimiter)
            ):
                state = "plain"
            else:
                state = "lost"
                line = line or self._line(start, at, len(data))
                self.at = len(data)
                if line:
                    break
        # Its first line by itself.
        if start + line >= self.begin:
            self.at = start + line - self.begin
        else:
            self._go(start + line)

    def _line(self, start: int, low: int, high: int) -> int:
        """The length of the line from ``start`` of the text on, if it ends in this part of ``data``, or 0."""
        found = self.data.find(b"\n", low, high)
        return self.begin + found + 1 - start if found >= 0 else 0

    def names(self) -> list[bytes] | None:
        """The fields of the first record."""
        return self.one(None)[1] if self.ahead(1) else None

    def batches(self, width: int, columns: Mapping[str, int]) -> Iterator[Any]:
        """All further records as batches with some fields, by their numbers."""
        fields = list(columns.values())
        found, size, window, single = 0, 0, _WINDOW, 1
        while self.ahead(_WINDOW):
            stop = self.data.rfind(b"\n", self.at, self.at + window) + 1
            end, arrays, rows = _records(self.dialect, self.data, self.at, stop, width, fields)
            if rows:
                yield text.batch(list(columns), arrays, rows)
            if end > self.at:
                found, size, window = found + rows, size + end - self.at, min(2 * window, _WINDOW)
                self.at = end
                continue
            # The next record needs the definition. The more often that is so, the more are read one by one, and the
            # fewer are tried at once.
            single = max(1, single // 2) if found > single else min(2 * single, _MOST_SINGLE)
            window = max(1, _WINDOW // 1024, min(2 * size, _WINDOW))
            found = size = 0
            rows, arrays = self._single(single, width, fields)
            if rows:
                yield text.batch(list(columns), arrays, rows)

    def _single(self, most: int, width: int, fields: Sequence[int]) -> tuple[int, list[Any]]:
        """Up to so many records, one by one: how many are rows, and the fields asked for."""
        rows: list[list[bytes] | None] = []
        size = 0
        while len(rows) < most and size <= text.LIMIT and self.ahead(1):
            is_row, values = self.one(width)
            if is_row:
                rows.append(values)
                size += sum(map(len, values or ()))
        binary = extra("pyarrow").binary()
        columns = [[row[j] or None if row else None for row in rows] for j in fields]
        return len(rows), [extra("pyarrow").array(column, binary) for column in columns]


def _records(
    dialect: _Dialect, data: bytes, start: int, stop: int, width: int, fields: Sequence[int]
) -> tuple[int, list[Any], int]:
    """The records from ``start`` on for which RFC 4180 is enough: where they end, some fields, how many are rows.

    There nothing separates between an odd quote and the next, counted from ``start``. They end before the first quote
    that is not where RFC 4180 has it, and before the first record of several lines that :func:`_record` does not take
    as one. A line end stands before ``stop``.
    """
    raw = np.frombuffer(data, np.uint8, max(stop - start, 0), start)
    ends_line = raw == _LF
    separates = ends_line | (raw == dialect.delimiter[0])
    quotes, cut = np.zeros(0, np.int64), raw.size
    if dialect.quote and data.find(dialect.quote, start, stop) >= 0:
        is_quote = raw == dialect.quote[0]
        found = np.flatnonzero(is_quote)
        if ((found == 0) | separates[found - 1]).any():  # if none begins a field, they are characters
            quotes, cut = found, _misplaced(raw, found, separates)
            separates &= np.cumsum(is_quote, dtype=np.uint8) & 1 == 0
    at = np.flatnonzero(separates)
    last = np.flatnonzero(ends_line[at])  # the separator that ends each record, as a number into at
    last = last[at[last] < cut]
    number = np.diff(last, prepend=-1)
    begin = np.append(0, at[last] + 1)[:-1]
    sound = (number == width) & (at[last] - begin < text.LIMIT)
    row = np.ones(len(last), np.bool_)
    if width > 1:  # an empty line is no row
        length = at[last] - begin
        row = (length > 1) | ((length == 1) & (raw[begin] != _CR))
    if quotes.size:
        lines = np.diff(np.cumsum(ends_line)[at[last]], prepend=0)
        if (bad := (lines > 1) & (number != width)).any():
            row, last = row[: np.argmax(bad)], last[: np.argmax(bad)]
    if not last.size:
        return start, [], 0
    end = start + int(at[last[-1]]) + 1
    if not row.any():
        return end, [], 0
    last, number, begin, sound = (array[: len(row)][row] for array in (last, number, begin, sound))
    edges = np.append(-1, at)
    pairs = quotes[: len(quotes) // 2 * 2]
    closing = pairs[1:-1:2][np.diff(pairs)[1::2] == 1]
    arrays = []
    for field in fields:
        # Rows without values: the empty text at their beginning.
        first = np.where(sound, last - number + 1 + field, 0)
        low, high = np.where(sound, edges[first] + 1, begin), np.where(sound, edges[first + 1], begin)
        if field == width - 1:
            high -= (high > low) & (raw[high - 1] == _CR)
        if quotes.size:
            quoted = (high > low) & (raw[low % raw.size] == dialect.quote[0])
            low, high = low + quoted, high - quoted
        # Within a field, a quote that closes is one of two.
        doubled = np.flatnonzero(np.searchsorted(closing, low) < np.searchsorted(closing, high))
        arrays.append(_taken(data, start + low, start + high, doubled, dialect.quote))
    return end, arrays, len(last)


def _misplaced(raw: npt.NDArray[np.uint8], quotes: npt.NDArray[np.int64], separates: npt.NDArray[np.bool_]) -> int:
    """Where the first quote is that neither begins nor ends a field, nor is doubled; the length of ``raw`` if none is.

    A line end is the last of ``raw``, so that something comes after every quote.
    """
    opening, closing = quotes[0::2], quotes[1::2]
    right = (opening == 0) | separates[opening - 1]
    right[1:] |= opening[1:] - 1 == closing[: len(opening) - 1]
    after = closing + 1
    after += raw[after] == _CR  # then a line end, or else something that is in the wrong place
    ends = np.where(after == closing + 1, separates[after], raw[after] == _LF)
    ends[: len(opening) - 1] |= closing[: len(opening) - 1] + 1 == opening[1:]
    wrong = np.concatenate([opening[~right], closing[~ends]])
    return int(wrong.min(initial=raw.size))


def _taken(
    data: bytes, low: npt.NDArray[np.int64], high: npt.NDArray[np.int64], doubled: npt.NDArray[np.int64], quote: bytes
) -> Any:
    """Parts of ``data`` in order as binary, empty ones as null, with single quotes where they are doubled."""
    arrow = extra("pyarrow")
    edges = np.column_stack([low, high]).ravel().astype(np.int32)
    buffers = [None, arrow.py_buffer(edges), arrow.py_buffer(data)]
    parts = arrow.Array.from_buffers(arrow.binary(), len(edges) - 1, buffers)  # and what lies between them
    taken = parts.take(arrow.array(np.arange(0, len(edges), 2), mask=low == high))
    if not doubled.size:
        return taken
    compute = extra("pyarrow.compute")
    single = compute.replace_substring(taken.take(doubled), pattern=2 * quote, replacement=quote)
    mask = np.zeros(len(taken), np.bool_)
    mask[doubled] = True
    return compute.replace_with_mask(taken, mask, single)

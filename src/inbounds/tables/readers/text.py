"""Files of text: opened, decompressed, and brought to UTF-8 without failing.

What is no text in the encoding becomes bytes that are no UTF-8, so that this value alone is missing. Encodings in which
one row could change how the next is read, such as UTF-7 and ISO-2022, are refused.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from inbounds import _checks as check
from inbounds.errors import ParameterTypeError, QueryFailed
from inbounds.tables.kinds import extra

__all__ = ["LIMIT", "batch", "described", "encoded", "ending", "ordered", "pieces"]

#: The most bytes of one record. A longer one counts as a row without values, so that memory is bounded.
LIMIT = 2**24
_PIECE = 2**22
_COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
#: Encodings that start anew with each character, and in which a wrong byte takes no line end with it.
_LOCAL = re.compile(
    r"ascii|utf-(8|16|32)(-[bl]e)?|iso8859-\d+|cp\d+|koi8-[rtu]|mac-[a-z0-9]+|hp-roman8|kz1048|ptcp154|tis-620"
    r"|big5(hkscs)?|euc_(jp|kr|jis_2004|jisx0213)|gb(2312|k|18030)|johab|shift_jis(_2004|x0213)?"
)
_BROKEN = "\udcff"  # a lone surrogate: what is written for it is no UTF-8
codecs.register_error("inbounds.broken", lambda problem: (_BROKEN, getattr(problem, "end", 0)))


def ending(path: str | os.PathLike[str]) -> str:
    """The suffix of a file below those of compression, in small letters."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    while suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def described(paths: Sequence[str], word: str) -> str:
    """What files of one sort are, for people."""
    return f"a file of {word}" if len(paths) == 1 else f"{len(paths)} files of {word}"


def encoded(encoding: object) -> str | None:
    """The name of an encoding for :func:`pieces`; None for UTF-8, which is passed on byte by byte."""
    step = 'As "utf-8", "utf-16" or "latin-1"; convert files in other encodings.'
    if not isinstance(encoding, str):
        check.refuse("Source", "encoding", "the name of an encoding", encoding, step, ParameterTypeError)
    try:
        b"".decode(encoding)  # refuses those that are no encodings of text
        name = codecs.lookup(encoding).name
    except (LookupError, ValueError):
        name = ""
    if name in ("utf-8", "utf-8-sig"):
        return None
    if not _LOCAL.fullmatch(name):
        check.refuse("Source", "encoding", "an encoding without shifts, known to Python", encoding, step)
    return name


#: The marks of which an encoding without a byte order needs one.
_MARKS = {
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
}


def ordered(path: str, encoding: str | None) -> None:
    """Refuse a file without the mark that tells the byte order of its encoding; an empty one has no order."""
    marks = _MARKS.get(encoding or "")
    if marks is None:
        return
    begin = b""
    for piece in _bytes(path):
        begin += piece
        if len(begin) >= len(codecs.BOM_UTF32_LE):
            break
    if begin and not begin.startswith(marks):
        step = f'As "{encoding}-le" or "{encoding}-be"; or as "utf-8", if it is that.'
        needs = f"one that says the byte order, since {check.shown(path)} begins without a mark of it"
        check.refuse("Source", "encoding", needs, encoding, step)


def pieces(path: str, encoding: str | None, start: int = 0) -> Iterator[bytes]:
    """The text of a file as UTF-8 from some byte on, in pieces of some megabytes, without a mark of the byte order."""
    for piece in _unmarked(path, encoding):
        if start < len(piece):
            yield piece[start:]
        start = max(0, start - len(piece))


def _unmarked(path: str, encoding: str | None) -> Iterator[bytes]:
    text = _bytes(path) if encoding is None else _utf8(_bytes(path), encoding)
    begin = b""
    for piece in text:  # those of a decoder can be empty
        begin += piece
        if len(begin) >= len(codecs.BOM_UTF8):
            break
    yield begin.removeprefix(codecs.BOM_UTF8)
    yield from text


def _bytes(path: str) -> Iterator[bytes]:
    arrow = extra("pyarrow")
    failed = False
    try:
        with arrow.OSFile(path) as file:
            stream: Any = file
            for suffix in reversed(Path(path).suffixes):
                if suffix.lower() not in _COMPRESSED:
                    break
                stream = arrow.CompressedInputStream(stream, _COMPRESSED[suffix.lower()])
            while piece := stream.read(_PIECE):
                yield piece
    except (OSError, ValueError):  # of compressed data, the words may be its own
        failed = True
    if failed:
        raise QueryFailed(
            f"Source: the file {os.fspath(path)!r} could not be read to its end: it is gone, damaged or cut off. "
            "Restore it."
        )


def _utf8(raw: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("inbounds.broken")
    for piece in raw:
        yield decoder.decode(piece).encode("utf-8", "surrogatepass")
    yield decoder.decode(b"", True).encode("utf-8", "surrogatepass")


def batch(columns: Sequence[str], arrays: Sequence[Any], rows: int) -> Any:
    """A batch of columns that knows its length even if there are none."""
    arrow = extra("pyarrow")
    return arrow.record_batch([arrow.nulls(rows), *arrays], ["", *columns]).select(range(1, 1 + len(columns)))

"""Parquet files, and data sets of Arrow made of files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote_to_bytes

from inbounds import _checks as check
from inbounds.tables.bare import Bare
from inbounds.tables.kinds import extra
from inbounds.tables.readers.base import Field, changed

__all__ = ["Parquet", "own"]

_NULL = "__HIVE_DEFAULT_PARTITION__"
_FEW = 2**10  # rows of a batch that has text
_AHEAD = {"batch_readahead": 4, "fragment_readahead": 2}  # batches and files


class Parquet:
    """Files of Parquet as one table, read by Arrow: whole columns, and parts left out by whole numbers and days only.

    Columns that a file lacks are null there. Columns whose types differ between files are whole numbers or numbers,
    which become the widest of them. Parts of a path like ``year=2024`` are columns of text, but where the files have
    these columns themselves.
    """

    notes: tuple[str, ...] = ()
    once = False

    def __init__(self, paths: Sequence[str], types: Mapping[str, str] | None = None) -> None:
        """``types`` is for columns that paths name, which are text."""
        what = "a file of Parquet" if len(paths) == 1 else "files of Parquet"
        for path in paths:
            _whole(path)
        local = extra("pyarrow.fs").LocalFileSystem()
        parts = [_parquet(()).make_fragment(os.path.abspath(path), local) for path in paths]
        self._begin(parts, [_of_path(part.path) for part in parts], types or {}, what)
        self.identity = ", ".join(map(os.path.abspath, paths))

    @classmethod
    def of(cls, found: Any) -> Parquet:
        """The files of a data set of Arrow."""
        self, datasets = cls.__new__(cls), extra("pyarrow.dataset")
        parts = list(found.get_fragments())
        if not all(hasattr(part, "path") for part in parts):
            step = "Put them together as one table: pyarrow.concat_tables."
            check.refuse("Source", "table", "a data set of files, or of one table in memory", "one of tables", step)
        kinds = sorted({type(part.format).__name__.removesuffix("FileFormat") for part in parts})
        if not set(kinds) <= {"Parquet", "Ipc"}:
            step = "Pass the paths of the files, with types= for what their columns hold; write ORC as Parquet."
            check.refuse("Source", "table", "a data set of Parquet or Arrow files", ", ".join(kinds), step)
        stored = [dict(zip(s.names, s.types, strict=True)) for s in (part.physical_schema for part in parts)]
        said = {f.name: f.type for f in found.schema if (here := [s[f.name] for s in stored if f.name in s])
                and f.type not in here}  # fmt: skip
        if said:
            step = "Leave schema= out: files know their types."
            check.refuse("Source", "table", "a data set whose columns have the types of its files", said, step)
        keys = [datasets.get_partition_keys(part.partition_expression) for part in parts]
        # What they say is taken from the paths as it is: Arrow makes numbers of it where all folders look like some.
        paths = [_of_path(part.path) for part in parts]
        unsaid = sorted({name for key, path in zip(keys, paths, strict=True) for name in key if name not in path})
        if unsaid:
            step = "Name folders as year=2024, or write these columns into the files."
            check.refuse("Source", "table", "a data set whose folders say what they stand for", unsaid, step)
        texts = [
            {name: None if value is None else path[name] for name, value in key.items()}
            for key, path in zip(keys, paths, strict=True)
        ]
        self._begin(parts, texts, {}, f"a pyarrow data set of {' and '.join(kinds)} files")
        self.identity = ", ".join(os.path.abspath(part.path) for part in parts)
        return self

    def _begin(
        self, parts: list[Any], of_path: list[dict[str, bytes | None]], types: Mapping[str, str], what: str
    ) -> None:
        self.what = what
        self._found = [_state(part.path) for part in parts]
        self._fragments = [_plain(part) for part in parts]
        self._schemas = [self._schema(part) for part in self._fragments]
        stored = {name for schema in self._schemas for name in schema}
        said = {n for keys, schema in zip(of_path, self._schemas, strict=True) for n in keys if n not in schema}
        if both := sorted(stored & said):
            needs = "files that all have the columns which their paths say too, or none of them"
            check.refuse("Source", "table", needs, both, "Write the files anew, or rename the folders.")
        # What a file itself says counts, and its path is not looked at: writers that say a thing twice say the same.
        self._of_path = [{name: value for name, value in keys.items() if name not in stored} for keys in of_path]
        partitions = {name: types.get(name, "text") for keys in self._of_path for name in keys}
        wrong = {name: declared for name, declared in types.items() if name not in partitions}
        if wrong:
            check.refuse("Source", "types", "left out but for parts of paths: files know their types", wrong, "")
        found: dict[str, list[Any]] = {}
        for name, kind in (item for schema in self._schemas for item in schema.items()):
            if kind not in found.setdefault(name, []):
                found[name].append(kind)
        fields = {name: Field(_common(name, kinds)) for name, kinds in found.items()}
        fields |= {name: Field(extra("pyarrow").binary(), declared) for name, declared in partitions.items()}
        self.fields: Mapping[str, Field] = fields

    @staticmethod
    def _schema(fragment: Any) -> dict[str, Any]:
        schema = fragment.physical_schema
        twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
        if twice:
            check.refuse("Source", "table", "a file whose columns have different names", twice, "")
        own(schema.names)
        return dict(zip(schema.names, schema.types, strict=True))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        return self.matching(columns, ())

    def matching(self, columns: Sequence[str], only: Sequence[Bare]) -> Iterator[Any]:
        arrow = extra("pyarrow")
        types = [self.fields[name].arrow for name in columns]
        for fragment, keys, present in zip(self._fragments, self._of_path, self._schemas, strict=True):
            if not all(_may_hold(bare, keys, present) for bare in only):
                continue
            fragment = self._again(fragment, present)
            there = [name for name in columns if name in present]
            for batch in _read(fragment, there, present, _filter(only, present)):
                stored = dict(zip(there, batch.columns, strict=True))
                arrays = []
                for name, kind in zip(columns, types, strict=True):
                    if name not in present:
                        arrays.append(arrow.repeat(arrow.scalar(keys.get(name), kind), batch.num_rows))
                    elif stored[name].type == kind or _textual(kind):  # categories need not be repeated here
                        arrays.append(stored[name])
                    else:
                        arrays.append(stored[name].cast(kind, safe=False))
                yield arrow.RecordBatch.from_arrays(arrays, names=[f"r{i}" for i in range(len(columns))])

    def ready(self) -> None:
        for fragment, schema, found in zip(self._fragments, self._schemas, self._found, strict=True):
            if _state(fragment.path) != found:
                self._again(fragment, schema)

    def _again(self, fragment: Any, schema: Mapping[str, Any]) -> Any:
        """The file as it is now: what a fragment knows of its parts is of when it was opened."""
        try:  # the end of the file tells, and not a row
            found = fragment.format.make_fragment(fragment.path, fragment.filesystem)
            if self._schema(found) == schema:
                return found
        except Exception:  # whatever it says
            pass
        raise changed(fragment.path)


def _parquet(dictionaries: Iterable[str]) -> Any:
    """How Parquet is read; times of the oldest sort as microseconds: as nanoseconds those far away would wrap round.

    UUIDs that no Arrow has written are known for what they are from pyarrow 21 on; before, they are sixteen bytes.
    """
    datasets = extra("pyarrow.dataset")
    known = hasattr(datasets.ParquetFragmentScanOptions, "arrow_extensions_enabled")
    return datasets.ParquetFileFormat(
        coerce_int96_timestamp_unit="us",
        dictionary_columns=list(dictionaries),
        **({"arrow_extensions_enabled": True} if known else {}),
    )


def _read(fragment: Any, columns: Sequence[str], present: Mapping[str, Any], only: Any) -> Iterator[Any]:
    """Batches of these columns in this order; rows that do not meet ``only`` may be left out."""
    text = any(_textual(present[name]) and not _by_categories(present[name]) for name in columns)
    if text and type(fragment.format).__name__ == "ParquetFileFormat":
        yield from _few_at_once(fragment, columns, present, only)
        return
    stored = {f"r{i}": extra("pyarrow.dataset").field(name) for i, name in enumerate(columns)}
    yield from fragment.scanner(columns=stored, filter=only, **_AHEAD).to_batches()


def _few_at_once(fragment: Any, columns: Sequence[str], present: Mapping[str, Any], only: Any) -> Iterator[Any]:
    """The same, a file being decoded as it is read: a scanner decodes a whole part of it, and what a file stores once
    of a long text each row then has for itself."""
    first, leaves = 0, {}
    for name, kind in present.items():  # columns have the numbers of their leaves: names may have dots
        leaves[name] = first
        first += _leaves(kind)
    known = hasattr(extra("pyarrow.dataset").ParquetFragmentScanOptions, "arrow_extensions_enabled")
    with extra("pyarrow.parquet").ParquetFile(
        fragment.path,
        filesystem=fragment.filesystem,
        read_dictionary=[leaves[name] for name, kind in present.items() if _by_categories(kind)],
        coerce_int96_timestamp_unit="us",
        **({"arrow_extensions_enabled": True} if known else {}),
    ) as file:
        groups = [group.id for group in (fragment if only is None else fragment.subset(filter=only)).row_groups]
        chosen = sorted(leaves[name] for name in columns)
        for batch in file.reader.iter_batches(_FEW, row_groups=groups, column_indices=chosen, use_threads=True):
            yield batch.select([batch.schema.get_field_index(name) for name in columns])


def _leaves(kind: Any) -> int:
    """How many columns of a file hold one of Arrow."""
    kind = getattr(kind, "storage_type", kind)
    return sum(_leaves(kind.field(i).type) for i in range(kind.num_fields)) if kind.num_fields else 1


def _by_categories(kind: Any) -> bool:
    return bool(extra("pyarrow").types.is_dictionary(kind))


def _plain(fragment: Any) -> Any:
    """The file read by these rules, whatever a data set says.

    Text that was written by categories is asked for as that. Arrow would read it as text and find the categories
    again, which fails on text that is no UTF-8, and where there are more of them than the type they once had can count.
    """
    types = extra("pyarrow").types
    if type(fragment.format).__name__ != "ParquetFileFormat":
        return fragment
    found = _parquet(()).make_fragment(fragment.path, fragment.filesystem)
    if fragment.num_row_groups != found.num_row_groups:
        check.refuse("Source", "table", "a data set of whole files", "one of parts of files", "Pass the paths.")
    with found.filesystem.open_input_file(found.path) as file:
        length = int.from_bytes(file.read_at(4, file.size() - 8), "little")
    if (
        length != found.metadata.serialized_size
    ):  # what is more is a signature, of a file some columns of which are sealed
        check.refuse("Source", "table", "a file of Parquet without encrypted columns", found.path, "Write it without.")
    schema = found.physical_schema
    names = [n for n, kind in zip(schema.names, schema.types, strict=True) if types.is_dictionary(kind)]
    return _parquet(names).make_fragment(fragment.path, fragment.filesystem) if names else found


def own(names: Iterable[str]) -> None:
    """Refuse names of columns that Arrow gives to columns of its own, and then confuses with them."""
    taken = sorted({"__filename", "__fragment_index", "__batch_index", "__last_in_fragment"} & set(names))
    if taken:
        check.refuse("Source", "table", "files without columns of these names", taken, "Rename columns.")


def _of_path(path: str) -> dict[str, bytes | None]:
    """What the folders of a path say, as ``year=2024``."""
    found: dict[str, bytes | None] = {}
    for part in os.path.dirname(path).split(os.sep):
        name, equals, value = part.partition("=")
        if equals and name:
            if name in found:
                check.refuse("Source", "table", "files whose paths say each thing once", path, "")
            found[name] = None if value == _NULL else unquote_to_bytes(value)
    return found


def _may_hold(bare: Bare, keys: Mapping[str, bytes | None], present: Mapping[str, Any]) -> bool:
    """Whether a file can have rows that meet a comparison, by its path and its columns."""
    if bare.column in present:
        return True
    value = keys.get(bare.column)  # None where the file lacks the column, which is null then
    if value is None:
        return False
    if isinstance(bare.value, int) and re.fullmatch(rb"[0-9]{1,18}", value):
        return bool(bare.of(int(value)))
    return True  # the engine decides


def _filter(only: Sequence[Bare], present: Mapping[str, Any]) -> Any:
    """The comparisons for Arrow, which skips parts of a file by the ends that are stored for them.

    Of whole numbers and days only, with a constant of the column's own type: these have no values without an order.
    """
    arrow, datasets = extra("pyarrow"), extra("pyarrow.dataset")
    found = None
    for bare in only:
        kind = present.get(bare.column)
        if kind is None or not (arrow.types.is_integer(kind) or arrow.types.is_date32(kind)):
            continue
        try:
            constant = arrow.scalar(bare.value, kind)
        except (arrow.ArrowInvalid, OverflowError):  # beyond the type: nothing is left out
            continue
        compared = replace(bare, value=constant).of(datasets.field(bare.column))
        found = compared if found is None else found & compared
    return found


def _whole(path: str) -> None:
    """Refuse what is no whole file of Parquet by its first and last four bytes, which no row decides."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        first = file.read(4)
        file.seek(max(0, size - 4))
        last = file.read(4)
    if size < 12 or not first == last == b"PAR1":
        step = "Write or copy it anew; files of other sorts need the ending of theirs, as .csv."
        check.refuse("Source", "table", "a whole file of Parquet, which begins and ends with PAR1", path, step)


def _state(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _common(column: str, kinds: Sequence[Any]) -> Any:
    """The type that values of all these types fit, whatever they are."""
    arrow = extra("pyarrow")
    types = arrow.types
    some = [kind for kind in kinds if not types.is_null(kind)]
    if len(some) < 2:
        return some[0] if some else kinds[0]
    whole = [types.is_integer(kind) and kind != arrow.uint64() for kind in some]
    if all(whole):
        return arrow.int64()
    if arrow.float64() in some and all(
        is_whole or types.is_floating(k) for is_whole, k in zip(whole, some, strict=True)
    ):
        return arrow.float64()
    if all(types.is_floating(kind) for kind in some):
        return arrow.float64()
    if all(_textual(kind) for kind in some):
        return arrow.large_string()
    step = "Write the files anew with one type for each column."
    found = {column: sorted(map(str, some))}
    return check.refuse("Source", "table", "files whose columns have types that go together", found, step)


def _textual(kind: Any) -> bool:
    arrow = extra("pyarrow")
    if arrow.types.is_dictionary(kind):
        kind = kind.value_type
    return kind in (arrow.string(), arrow.large_string(), arrow.string_view())

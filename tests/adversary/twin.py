"""One question on two tables, with every draw replaced by the same one: what is seen must not differ at all.

Mechanisms hand out answers that are made of nothing but the number of the draw, and keep what they were to hide for
``loss``. So whatever else can be seen (answers, notes, texts, the ledger, warnings, errors, logs, files, calls to the
engine) is a function of public facts if the library keeps its promise, and is compared as it is.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import io
import logging
import math
import os
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import inbounds as ib
from inbounds.accounting import Price
from inbounds.errors import InboundsError, QueryFailed
from inbounds.mechanism import BoundedLaplace
from inbounds.mechanism.additive import Additive
from inbounds.mechanism.shifted import Shifted
from inbounds.sampling import entropy
from inbounds.tables import Answer, Request, Results, picking, tails
from inbounds.tables.picking import Picker
from inbounds.tables.readers import csv, frames, sqlite, text
from tests.adversary.cases import Case
from tests.adversary.formats import FORMATS
from tests.adversary.loss import Draw

#: What differs from run to run by chance or by the clock alone.
CHANCE = [
    (re.compile(r"\b(?=\d*[a-f])[0-9a-f]{16,}\b|\b[0-9a-f]{32,}\b"), "HEX"),
    (re.compile(r"(unnamed_relation|memtable|__duckdb_source|arrow_object|polars_object|pandas_object)_\w+"), r"\1"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?"), "TIME"),
    (re.compile(r"0x[0-9a-f]{6,}"), "ADDRESS"),
]


@dataclass
class Run:
    """One run: what can be seen, in order; what entered mechanisms; the exact numbers."""

    seen: list[tuple[str, str]] = field(default_factory=list)
    draws: list[Draw] = field(default_factory=list)
    tallies: list[tuple[Request, Any]] = field(default_factory=list)
    words: int = 0
    failed: str | None = None
    refused: bool = False
    spent: dict[str, Any] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    seeded: bool = False
    replayed: bool = True

    def see(self, what: str, shown: object) -> None:
        text = str(shown)
        for pattern, word in CHANCE:
            text = pattern.sub(word, text)
        self.seen.append((what, text))


# ---------------------------------------------------------------- draws that are the same on both sides


def chance(*names: object) -> float:
    """A number in [0, 1) that depends on the names alone."""
    return int.from_bytes(hashlib.sha256(repr(names).encode()).digest()[:6], "big") / 2**48


class Recorder:
    """In the place of a sampler."""

    def __init__(self, run: Run, mechanism: Any, grid: Any, shown: Sequence[Any]) -> None:
        self.run, self.mechanism, self.grid, self.shown = run, mechanism, grid, shown

    def draw(self, q: Any, source: Any = None, *, clip: bool = False) -> Any:
        self.run.seeded |= source is not None
        q = np.asarray(q)
        low, high = self._ends()
        keys = self.run.tallies[-1][1].keys if self.run.tallies else ()
        if isinstance(self.mechanism, BoundedLaplace) and q.shape == (len(keys),):
            self.run.draws.append(Draw(self.mechanism, q.tolist(), tuple(map(repr, keys))))
            passes = math.floor(1 + self.mechanism.bound) + 1  # the least that a group of one unit cannot reach
            return np.array([passes - (repr(key) not in self.shown) for key in keys], dtype=np.float64)
        if clip:  # as the sampler would: true answers are moved into the domain first
            q = np.clip(q, low, high)
        self.run.draws.append(Draw(self.mechanism, q.copy()))
        return self._answers(q.shape, low, high)

    def one(self, q: float, source: Any = None) -> float:
        return float(self.draw(np.array(q), source))

    def _ends(self) -> tuple[Any, Any]:
        domain = self.mechanism.domain
        return np.asarray(domain.lower, dtype=np.float64), np.asarray(domain.upper, dtype=np.float64)

    def _answers(self, shape: tuple[int, ...], low: Any, high: Any) -> Any:
        """Of the domain, some scales away from its lower end, 0 or its upper end, and every sixth on it."""
        count, scale = len(self.run.draws), float(self.mechanism.scale)
        size = math.prod(shape)
        away = np.array([chance(count, i) for i in range(size)]).reshape(shape)
        away = np.where(away < 1.0 / 6.0, 0.0, away * 8.0 * scale)
        start = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high - 8.0 * scale, -3.0 * scale))
        whole = getattr(self.mechanism.domain, "lattice", False) or getattr(self.mechanism.domain, "integer", False)
        found = np.clip(np.floor(start + away) if whole else start + away, low, high)
        return np.asarray(found, dtype=np.float64)


def law(pick: Callable[..., int], picker: Picker, counts: Any, shift: float) -> Any:
    """The logarithm of the chance of every cell, from the weights that the pick itself made."""
    seen: dict[str, Any] = {}

    class Numpy:
        def __getattr__(self, name: str) -> Any:
            return getattr(np, name)

        def unique(self, places: Any, **more: Any) -> Any:
            seen["places"] = places
            return np.unique(places, **more)

    with replaced((picking, "np", Numpy()), (picking, "_draw", lambda w: seen.update(weights=w) or 0),
                  (picking, "_below", lambda total: 0)):  # fmt: skip
        pick(picker, counts, shift)
    _, where, sizes = np.unique(seen["places"], return_inverse=True, return_counts=True)
    total = math.log(sum(seen["weights"]))
    logs = [math.log(w) - math.log(n) - total for w, n in zip(seen["weights"], sizes.tolist(), strict=True)]
    return np.array(logs)[where]


@contextlib.contextmanager
def replaced(*things: tuple[Any, str, Any]) -> Iterator[None]:
    """Attributes with other values, for a while."""
    kept = [(owner, name, vars(owner)[name]) for owner, name, _ in things]
    try:
        for owner, name, value in things:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in kept:
            setattr(owner, name, value)


@contextlib.contextmanager
def frozen(run: Run, shown: Sequence[Any]) -> Iterator[None]:
    """Draws that are recorded and replaced; the same bits wherever any are taken."""
    pick, answer = Picker.pick, Request.run

    def recorder(original: Any) -> Any:
        return property(lambda self: Recorder(run, self, original.func(self).grid, shown))

    def recorded(picker: Picker, counts: Any, shift: float = 0.0) -> int:
        run.draws.append(Draw((picker, shift), law(pick, picker, counts, shift), tuple(counts)))
        return int(chance(len(run.draws)) * picker.cells)

    def asked(request: Request, *given: Any, **more: Any) -> Any:
        tally = answer(request, *given, **more)
        run.tallies.append((request, tally))
        return tally

    def word(_: Any) -> int:
        run.words += 1
        return int(chance("word", run.words) * 2**64)

    with replaced(
        (Additive, "_sampler", recorder(vars(Additive)["_sampler"])),
        (Shifted, "_sampler", recorder(vars(Shifted)["_sampler"])),
        (Picker, "pick", recorded),
        (Request, "run", asked),
        (entropy._Pool, "word", word),
    ):
        yield


# ---------------------------------------------------------------- everything that can be seen


class _Log(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(level=1)
        self.lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("py4j"):  # what Python and Java tell each other on the same machine
            return
        self.lines.append(f"{record.name} {record.levelname} {record.getMessage()}")


#: Python's own reports of what a program does outside of itself; a hook cannot be taken away, so it is switched.
_heard: list[str] | None = None
_EVENTS = ("open", "os.", "shutil.", "tempfile.", "socket.", "subprocess.", "sqlite3.", "urllib.", "http.", "pathlib.")
_OTHERS = ("os.listdir", "os.scandir", "os.kill", "shutil.rmtree", "os.rmdir")  # what earlier runs left is tidied up


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _heard is not None and event.startswith(_EVENTS):
        place = str(arguments[0]) if arguments else ""
        tidied = event in _OTHERS or re.fullmatch(r".*/inbounds-spill-[\w-]+", place)
        if not tidied and not place.startswith((sys.prefix, sys.base_prefix)) and ".py" not in place:
            _heard.append(f"{event} {place}" + (f" {arguments[1:]}" if event == "os.putenv" else ""))


sys.addaudithook(_hook)


def _held(path: Path, before: bool) -> object:
    """What is in a file: of a ledger, which has random parts, its size."""
    if "ledger" in path.name:
        return path.stat().st_size
    return None if before else hashlib.sha256(path.read_bytes()).hexdigest()[:12]


@contextlib.contextmanager
def watched(run: Run, folder: Path) -> Iterator[None]:
    """What is written, warned of, logged, opened, left on disk, and asked of an engine."""
    global _heard
    lines: list[str] = []
    calls: list[str] = []
    out, err, log = io.StringIO(), io.StringIO(), _Log(lines)
    root, level = logging.getLogger(), logging.getLogger().level
    there = set(folder.rglob("*"))  # the table, and what the run of its twin left
    with warnings.catch_warnings(record=True) as warned, tempfile.TemporaryFile() as raw:
        warnings.simplefilter("always")
        root.addHandler(log)
        root.setLevel(1)
        kept = os.dup(2)
        os.dup2(raw.fileno(), 2)
        gc.disable()
        gc.freeze()  # what earlier runs and tests left behind is not tidied up in the middle of this one
        _heard = []
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), listened(calls):
                yield
        finally:
            heard, _heard = _heard, None
            gc.unfreeze()
            gc.enable()
            os.dup2(kept, 2)
            os.close(kept)
            root.setLevel(level)
            root.removeHandler(log)
            raw.seek(0)
            run.see("standard error", raw.read().decode(errors="replace") + err.getvalue())
    run.see("standard output", out.getvalue())
    run.see("warnings", [(w.category.__name__, str(w.message)) for w in warned if w.category is not ResourceWarning])
    run.see("log", lines)
    run.see("files", sorted((p.name, _held(p, p in there)) for p in folder.rglob("*") if p.is_file()))
    run.see("asked of the system", [re.sub(r"inbounds-spill-[\w-]+", "spill", line) for line in heard])
    run.see("calls of the engine", calls)
    run.see("words of randomness", run.words)


#: Where a question leaves for an engine. Taking rows from an answer is part of the call that made it.
_DOORS = {
    ("_duckdb", "DuckDBPyConnection"): (
        *("execute", "executemany", "sql", "query", "from_query", "_submit", "_bind", "from_arrow", "from_parquet"),
        *("read_csv", "read_json", "read_parquet", "register", "unregister", "table", "load_extension", "cursor"),
    ),
    ("psycopg", "Cursor"): ("execute", "executemany", "copy"),
    ("pyspark.sql.classic.dataframe", "DataFrame"): ("collect", "explain", "count", "toArrow", "toPandas", "cache"),
    ("ibis.backends.sql", "SQLBackend"): ("compile", "to_pyarrow", "to_pyarrow_batches"),
    ("polars", "LazyFrame"): ("collect",),
}


@contextlib.contextmanager
def listened(calls: list[str]) -> Iterator[None]:
    """Notes each call of an engine, and the texts it is given."""

    def noted(name: str, function: Any) -> Any:
        def call(*given: Any, **more: Any) -> Any:
            calls.append(f"{name} {[g for g in (*given[1:], *more.values()) if isinstance(g, str | int)]}")
            return function(*given, **more)

        return call

    with contextlib.ExitStack() as stack:
        for (module, owner), names in _DOORS.items():
            found = getattr(sys.modules.get(module), owner, None)
            known = {name: vars(found)[name] for name in names if found is not None and name in vars(found)}
            stack.enter_context(replaced(*((found, name, noted(f"{owner}.{name}", f)) for name, f in known.items())))
        yield


# ---------------------------------------------------------------- a run

#: Sizes of what is read at once, so small that few rows have many seams; and of what is too long.
SEAMS = (
    *((text, "_PIECE", 48), (text, "LIMIT", 200), (csv, "_WINDOW", 64), (csv, "_MOST_SINGLE", 4)),
    *((frames, "_ROWS", 3), (sqlite, "_BATCH", 3)),
)


def _panic(error: BaseException) -> bool:
    """Whether it is one of Rust's, as Polars has, which Python does not count among exceptions."""
    return type(error).__name__ == "PanicException"


def told(error: BaseException) -> str:
    """All that an error says, and those it came from."""
    texts = []
    seen: BaseException | None = error
    while seen is not None and len(texts) < 8:
        texts.append(
            f"{type(seen).__name__}: {seen} {getattr(seen, '__notes__', [])} {getattr(seen, 'engine_error', None)!r}"
        )
        seen = seen.__cause__ or seen.__context__
    return " <- ".join(texts)


def answers(found: Any, texts: bool) -> str:
    """What a result shows: its parts, and all its texts too."""
    if isinstance(found, Answer):
        ends = found.interval(0.9) if found.value is not None else None
        shown = f"{found} {found!r} {found._repr_html_()}" if texts else ""
        return f"{found.value!r} {found.valid} {found.notes} {ends} {shown}"
    if isinstance(found, Results):
        cells = [[answers(answer, False) for answer in column] for column in found.columns.values()]
        shown = f"{found} {found.to_json()} {found._repr_html_()}" if texts else ""
        return f"{found.keys!r} {found.spent} {cells} {shown}"
    return repr(found)


@contextlib.contextmanager
def brief() -> Iterator[None]:
    """Coarse intervals, and prices without the table of their guarantees: functions of draws and of the event."""
    with replaced((tails, "_POINTS", 9), (tails, "_ROUNDS", 2), (Price, "__str__", lambda price: "a price")):
        yield


def run_case(case: Case, side: str, folder: Path, shown: Sequence[Any] = ()) -> Run | None:
    """The question on one of the tables; None where the table cannot be written in this format at all.

    Of every eighth case the ledger is a file; of a few all texts are written, which takes longest.
    """
    how, run, question = FORMATS[case.format], Run(), case.question
    ledger, texts, keyed = (
        chance(name, case.columns, case.rows) < share
        for name, share in (("ledger", 0.12), ("texts", 0.03), ("key", 0.25))
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = how.write(case.columns, case.table(side), folder)
    except Exception:  # of whoever writes: there is no such table
        return None
    except BaseException as error:
        if not _panic(error):
            raise
        return None
    options = question.options() | how.options(case.columns)
    options |= {} if chance("threads", case.rows) < 0.2 else {"threads": 1}  # which starts sooner
    if ledger:
        for left in folder.glob("ledger.db*"):
            left.unlink()
        options["ledger"] = folder / "ledger.db"
    place = folder / "temporary"
    place.mkdir(exist_ok=True)
    with (
        replaced((tempfile, "tempdir", str(place)), *(SEAMS if chance("seams", case.rows) < 0.25 else ())),
        watched(run, folder),
        frozen(run, shown),
        contextlib.nullcontext() if texts else brief(),
    ):
        step = "opening"
        try:
            data = ib.dataset(table, **options)
            run.see("the data set", (repr(data), dict(data.schema), data.source.description, data.source.notes))
            step = "planning"
            view = question.view(data)
            if question.suggests:
                run.see("the answers", question.ask(view))
            else:
                plan = question.plan(view)
                run.see("the plan", (plan.explain(sql=texts), repr(plan), plan.describe(), plan.event.to_json()))
                step = "running"
                found = plan.run(key="k" if keyed else None)
                if keyed:  # once more is at no cost, and draws nothing
                    drawn, paid = len(run.draws), data.spent()
                    run.replayed = plan.run(key="k") is not None and (len(run.draws), data.spent()) == (drawn, paid)
                if isinstance(found, Results):  # of a histogram a row for each bin
                    run.groups = tuple(dict.fromkeys(repr(key[: len(question.by)]) for key in found.keys))
                run.see("the answers", answers(found, texts))
                run.see("the plan afterwards", (plan.explain(), repr(plan), repr(data), data.source.notes))
        except BaseException as error:
            if not isinstance(error, Exception) and not _panic(error):
                raise
            run.refused = isinstance(error, InboundsError) and not isinstance(error, QueryFailed) and step == "planning"
            run.failed = f"{step}: {told(error)}"
            if not isinstance(error, InboundsError):
                run.failed += "".join(traceback.format_tb(error.__traceback__)[-1:])
            run.see("an error", run.failed)
        if step != "opening":
            run.see("the budget", (data.spent(), data.remaining()))
            run.see("the ledger", data.scope.export("json"))
            run.spent = data.spent()
    return run

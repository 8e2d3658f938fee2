"""Leaks put into the library on purpose, eleven kinds of them: what the search is worth is how many it finds.

Each is a change of one or a few functions for a while, as a slip of a developer would make it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from inbounds.errors import ParameterError, QueryFailed
from inbounds.mechanism import additive
from inbounds.mechanism.additive import Additive
from inbounds.sampling import draws, entropy
from inbounds.tables import aggregates, picking
from inbounds.tables import plan as plans
from inbounds.tables.compile import Compiler
from inbounds.tables.fixed import Caps, Fixed
from inbounds.tables.measures import Squares
from inbounds.tables.parts import Cell, Cells, Found, Pick, Values
from inbounds.tables.per_unit import ORDERED, PerUnit, one_each
from inbounds.tables.picking import Picker
from inbounds.tables.plan import Plan
from inbounds.tables.request import Request, Tally
from inbounds.tables.spending import Neighbours, Spend
from tests.adversary.twin import replaced

Change = tuple[Any, str, Callable[[Any], Any]]


@dataclass(frozen=True)
class Leak:
    """A kind, a name, and what is changed: owner, attribute, and from the old function to the new one."""

    kind: str
    name: str
    changes: tuple[Change, ...]

    @contextlib.contextmanager
    def planted(self) -> Iterator[None]:
        with replaced(*((owner, name, make(vars(owner)[name])) for owner, name, make in self.changes)):
            yield


LEAKS: list[Leak] = []


def leak(kind: str, name: str, *changes: Change) -> None:
    LEAKS.append(Leak(kind, name, changes))


def after(change: Callable[..., Any]) -> Callable[[Any], Any]:
    """``change(result, self, *given)`` in the place of the result."""
    return lambda old: lambda self, *given, **more: change(old(self, *given, **more), self, *given)


def before(act: Callable[..., Any]) -> Callable[[Any], Any]:
    """``act(self, *given)`` first."""

    def make(old: Any) -> Any:
        def new(self: Any, *given: Any, **more: Any) -> Any:
            act(self, *given)
            return old(self, *given, **more)

        return new

    return make


def instead(new: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda old: new


def tallied(change: Callable[[Tally, Request], Any]) -> Change:
    """Something done with the exact numbers, where the request has them."""
    return Request, "run", after(lambda tally, request, *_: change(tally, request) or tally)


def total(tally: Tally) -> int:
    return sum(tally.units)


# ---------------------------------------------------------------- 1. a clip is forgotten


def _unclipped(low: bool = True, high: bool = True) -> Callable[..., Any]:
    def express(self: Fixed, value: Any) -> Any:
        from inbounds.tables.exact import real
        from inbounds.tables.kinds import extra

        ends = (real(self.lower if low else -1e15), real(self.upper if high else 1e15))
        steps = (value.clip(*ends) - real(self.center)) * real(1.0 / self.step)
        nw = extra("narwhals")
        return (steps.clip(real(-(2.0**52)), real(2.0**52)) + real(0.5)).floor().cast(nw.Int64)

    return express


def _twice(self: Fixed, value: Any) -> Any:
    wide = self.upper - self.lower
    return _unclipped()(replace(self, lower=self.lower - wide, upper=self.upper + wide), value)


_CERTIFY: Change = (Compiler, "_certify", instead(lambda *_: None))
CLIP = "a clip is forgotten"
leak(CLIP, "both ends", (Fixed, "express", instead(_unclipped(False, False))), _CERTIFY)
leak(CLIP, "the upper end", (Fixed, "express", instead(_unclipped(True, False))), _CERTIFY)
leak(CLIP, "the lower end", (Fixed, "express", instead(_unclipped(False, True))), _CERTIFY)
leak(CLIP, "both ends, and a check notices", (Fixed, "express", instead(_unclipped(False, False))))
leak(CLIP, "bounds twice as wide", (Fixed, "express", instead(_twice)), _CERTIFY)
leak(
    CLIP,
    "NaN as the largest number",
    (
        Compiler,
        "_row_columns",
        after(
            lambda _, self: self.row_columns.update(
                {name: made.fill_null(2**40) for name, made in self.row_columns.items()}
            )
        ),
    ),
    _CERTIFY,
)
leak(
    CLIP,
    "missing as twice the upper end",
    (
        Compiler,
        "_row_columns",
        after(
            lambda _, self: self.row_columns.update(
                {name: made.fill_null(2**33) for name, made in self.row_columns.items()}
            )
        ),
    ),
    _CERTIFY,
)
leak(
    CLIP,
    "of infinities only",
    (Fixed, "express", lambda old: lambda self, value: self_or_infinite(old, self, value)),
    _CERTIFY,
)
leak(CLIP, "of squares", (Squares, "express", instead(lambda self, x, caps: x * x)), _CERTIFY)
leak(
    CLIP, "a step of half the size", (Fixed, "express", lambda old: lambda self, value: old(self, value) * 2), _CERTIFY
)


leak(CLIP, "of the first and the last", (PerUnit, "rows", lambda old: _unlike_all_others(old)), _CERTIFY)


def _unlike_all_others(old: Any) -> Callable[..., Fixed]:
    def rows(self: PerUnit, fixed: Fixed, caps: Caps) -> Fixed:
        made, more = old(self, fixed, caps), 9.0 * (fixed.upper - fixed.lower)
        return replace(made, lower=made.lower - more, upper=made.upper + more) if self.how in ORDERED else made

    return rows


def self_or_infinite(old: Any, fixed: Fixed, value: Any) -> Any:
    from inbounds.tables.exact import integer
    from inbounds.tables.kinds import extra

    nw = extra("narwhals")
    return nw.when(value.abs() > 1e300).then(integer(2**45)).otherwise(old(fixed, value))


# ---------------------------------------------------------------- 2. a cap comes too late or not at all

CAP = "a cap is late or missing"


def _uncapped(purpose: str) -> Callable[[Any], Any]:
    return lambda old: (
        lambda self, frame, within, order, most, why: (
            frame if why == purpose else old(self, frame, within, order, most, why)
        )
    )


def _wider(purpose: str, more: Callable[[int], int]) -> Callable[[Any], Any]:
    return lambda old: (
        lambda self, frame, within, order, most, why: old(
            self, frame, within, order, more(most) if why == purpose else most, why
        )
    )


leak(CAP, "rows", (Compiler, "_keep", _uncapped("rows")), _CERTIFY)
leak(CAP, "rows, and a check notices", (Compiler, "_keep", _uncapped("rows")))
leak(CAP, "groups", (Compiler, "_keep", _uncapped("groups")))
leak(CAP, "groups of one unit", (Compiler, "_keep_groups", instead(lambda self, pairs: pairs)))
leak(
    CAP,
    "one value for each place in the order",
    (Compiler, "_units", instead(property(lambda self: _each_order(self)))),
)
leak(CAP, "one row too many", (Compiler, "_keep", _wider("rows", lambda k: k + 1)), _CERTIFY)
leak(CAP, "one group too many", (Compiler, "_keep", _wider("groups", lambda k: k + 1)))
leak(CAP, "twice the groups", (Compiler, "_keep", _wider("groups", lambda k: 2 * k)))
leak(
    CAP,
    "rows in all groups together, and not in each",
    (
        Compiler,
        "_keep",
        lambda old: (
            lambda self, f, within, *r: (
                old(self, f, self.group or within, *r) if r[-1] == "rows" and self.group else old(self, f, within, *r)
            )
        ),
    ),
    _CERTIFY,
)
leak(
    CAP,
    "groups for bins only",
    (Compiler, "_bins", lambda old: lambda self, *g: _with(self, "_keep_groups", lambda pairs: pairs, old, g)),
)
leak(CAP, "counts of rows", (Compiler, "_scalars", lambda old: lambda self: _uncapped_count(self, old)), _CERTIFY)
leak(
    CAP,
    "units are rows",
    (Compiler, "__init__", lambda old: lambda self, request, source, salt: old(self, _of_rows(request), source, salt)),
)


def _with(self: Any, name: str, value: Any, old: Any, given: Any) -> Any:
    setattr(self, name, value)
    try:
        return old(self, *given)
    finally:
        delattr(self, name)


def _each_order(self: Any) -> Any:
    orders = (column for column in self.row_columns if column.startswith("o"))
    return self._keep_groups(one_each(self.base, [*self.unit, *self.group, *orders], self.per_unit))


def _uncapped_count(self: Any, old: Any) -> Any:
    kept = self.request
    self.request = replace(kept, rows=2**20) if kept.unit is not None and kept.rows is not None else kept
    try:
        return old(self)
    finally:
        self.request = kept


def _of_rows(request: Request) -> Request:
    """The same request where every row is a unit, as if nobody had said whose they are."""
    return replace(request, unit=None, groups=None, rows=None) if request.unit and request.rows == 1 else request


# ---------------------------------------------------------------- 3. the noise is too small

NOISE = "too little noise"
leak(NOISE, "half the sensitivity of cells", (Cells, "values", lambda old: lambda self, caps: old(self, caps) / 2))
leak(
    NOISE,
    "half the scale",
    (Additive, "calibrate", lambda old: classmethod(lambda cls, *g, **m: _scaled(old.__func__(cls, *g, **m), 0.5))),
)
leak(
    NOISE,
    "nine tenths of the scale",
    (Additive, "calibrate", lambda old: classmethod(lambda cls, *g, **m: _scaled(old.__func__(cls, *g, **m), 0.9))),
)
leak(NOISE, "no share for each group", (Neighbours, "costs", instead(lambda self, spend: [(False, spend)])))
leak(
    NOISE,
    "no share for each part",
    (Spend, "portion", lambda old: lambda self, share: self if share < 1 else old(self, share)),
)
leak(
    NOISE,
    "swaps cost as much as adding",
    (Neighbours, "costs", lambda old: lambda self, spend: [(False, each) for _, each in old(self, spend)]),
)
leak(
    NOISE,
    "a pick pays for half a step",
    (Picker, "moves", lambda old: lambda self, reach: max(1, old(self, reach) // 2)),
)
leak(
    NOISE,
    "every pick of a quantile pays for one",
    (
        Pick,
        "_shares",
        instead(lambda self, quantile: [Fraction(1)] * (2 if quantile in (0, 1) or self.level is None else 4)),
    ),
)
leak(NOISE, "caps on rows are forgotten", (Caps, "values", instead(property(lambda self: 1))), _CERTIFY)
leak(
    NOISE,
    "two groups cost as one",
    (Neighbours, "costs", lambda old: lambda self, spend: old(replace(self, groups=max(1, self.groups // 2)), spend)),
)
leak(NOISE, "found groups pay half", (plans, "choose_keys", lambda old: lambda e, d, n: old(2 * e, d, n)))


def _scaled(mechanism: Any, factor: float) -> Any:
    kept = {name: getattr(mechanism, name) for name in ("sensitivity", "edges", "granularity")}
    return type(mechanism)(mechanism.domain, scale=mechanism.scale * factor, **kept)


# ---------------------------------------------------------------- 4. an exact number is written somewhere

TOLD = "an exact number is written"
_log = logging.getLogger("inbounds.tables")
leak(TOLD, "a log of units", tallied(lambda t, _: _log.info("counted %d units", total(t))))
leak(TOLD, "a log for debugging", tallied(lambda t, _: _log.debug("%s", t.numbers)))
leak(
    TOLD,
    "a logger of its own",
    tallied(lambda t, _: logging.getLogger("timing").warning("%d groups", sum(n > 0 for n in t.units))),
)
leak(TOLD, "printed", tallied(lambda t, _: print(t.units)))
leak(TOLD, "on standard error", tallied(lambda t, _: print(len(str(t.numbers)), file=sys.stderr)))
leak(TOLD, "to the file of standard error", tallied(lambda t, _: os.write(2, b"." * (total(t) + 1)) and None))
leak(TOLD, "a file", tallied(lambda t, _: Path(tempfile.gettempdir(), f"inbounds-{total(t)}").touch()))
leak(TOLD, "a file that is removed", tallied(lambda t, _: _touched(f"spill-{total(t) % 7}")))
leak(TOLD, "the environment", tallied(lambda t, _: os.environ.update(INBOUNDS_UNITS=str(total(t)))))
leak(
    TOLD,
    "a log of the largest unit",
    (Compiler, "_certify", after(lambda _, self, units, numbers: _log.info("%s", max(units, default=0)))),
)


def _touched(name: str) -> None:
    with tempfile.NamedTemporaryFile(prefix=name):
        pass


# ---------------------------------------------------------------- 5. a grid or a mechanism depends on data

GRID = "a grid depends on data"


def drawing(change: Callable[..., Any]) -> list[Change]:
    """``change(drawn, numbers, caps)`` gives the mechanism with which every kind of part draws."""

    def make(old: Any) -> Any:
        return lambda self, drawn, numbers, caps: old(self, change(drawn, numbers), numbers, caps)

    return [(kind, "draw", make) for kind in (Cell, Cells)]


def size(numbers: Mapping[str, Any]) -> int:
    return sum(abs(x) for rows in numbers.values() for row in rows for x in row)


def coarser(drawn: Any, by: float) -> Any:
    return replace(drawn, mechanism=_scaled(drawn.mechanism, by)) if hasattr(drawn.mechanism, "edges") else drawn


leak(GRID, "more noise for large sums", *drawing(lambda d, n: coarser(d, 2.0 if size(n) > 10 else 1.0)))
leak(GRID, "noise in proportion", *drawing(lambda d, n: coarser(d, 1.0 + size(n) * 1e-12)))
leak(GRID, "no noise for nobody", *drawing(lambda d, n: coarser(d, 1.0 if size(n) else 1e-9)))
leak(GRID, "less where there are many", *drawing(lambda d, n: coarser(d, 1.0 / (1 + size(n).bit_length()))))
leak(GRID, "a granularity of the data's", *drawing(lambda d, n: _grained(d, size(n))))
leak(
    GRID,
    "cells by what is there",
    (Pick, "_group", lambda old: lambda self, d, counts: old(self, d, tuple(c for c in counts if c) or counts)),
)
leak(
    GRID,
    "an aim by what is there",
    (Pick, "_shifts", lambda old: lambda self, q, p: [s + 1.0 for s in old(self, q, p)]),
    (
        Pick,
        "_group",
        lambda old: lambda self, d, counts: [[sum(counts) and x for x in row] for row in old(self, d, counts)],
    ),
)
leak(
    GRID,
    "steps by how many values there are",
    (
        Picker,
        "pick",
        lambda old: (
            lambda self, counts, shift=0.0: old(
                replace(self, epsilon=self.epsilon * (2 if sum(counts) > 1 else 1)), counts, shift
            )
        ),
    ),
)
leak(
    GRID,
    "the range by the largest cell",
    (Picker, "pick", lambda old: lambda self, counts, shift=0.0: old(self, counts, shift + 0.1 * max(counts))),
)
leak(
    GRID,
    "bounds of the answers from the data",
    (Plan, "_draw", after(lambda raw, self, *_: raw)),
    (Values, "exact", lambda old: lambda self, caps, *row: [x * (2 if x > 1 else 1) for x in old(self, caps, *row)]),
)


def _grained(drawn: Any, size: int) -> Any:
    mechanism = drawn.mechanism
    if not hasattr(mechanism, "granularity") or getattr(mechanism.domain, "lattice", True) is not False:
        return coarser(drawn, 1.0 + 1e-9 * (size % 3))
    kept = {name: getattr(mechanism, name) for name in ("scale", "sensitivity", "edges")}
    return replace(drawn, mechanism=type(mechanism)(mechanism.domain, granularity=2.0 ** -(10 + size % 3), **kept))


# ---------------------------------------------------------------- 6. a warning or a note depends on rows

WARN = "a warning or a note depends on rows"


def warned(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=2)


leak(WARN, "few units", tallied(lambda t, _: warned("few units") if total(t) < 3 else None))
leak(WARN, "an empty group", tallied(lambda t, _: warned("an empty group") if 0 in t.units else None))
leak(WARN, "a value at its bound", tallied(lambda t, r: warned("a bound is reached") if _at_end(t, r) else None))
leak(WARN, "nobody", tallied(lambda t, _: warned("no rows") if not total(t) else None))
leak(WARN, "a large number", tallied(lambda t, _: warned("large") if size(t.numbers) > 2**40 else None))


def noted(say: Callable[[Tally], bool]) -> list[Change]:
    """A note on every answer, where something holds of the exact numbers."""
    kept: dict[str, bool] = {}

    def keep(tally: Tally, _: Request) -> None:
        kept["say"] = say(tally)

    def note(found: Any, self: Any, *_: Any) -> Any:
        return (*found, "some values were moved") if kept.get("say") else found

    return [
        tallied(keep),
        *((kind, "notes", after(note)) for kind in (aggregates.Count, aggregates.Valued, aggregates.Share)),
    ]


leak(WARN, "a note for few units", *noted(lambda t: total(t) < 2))
leak(WARN, "a note for empty groups", *noted(lambda t: 0 in t.units))
leak(
    WARN,
    "a note for missing values",
    *noted(lambda t: any(row[0] < u for rows in t.numbers.values() for row, u in zip(rows, t.units, strict=True))),
)
leak(WARN, "a note for an odd number", *noted(lambda t: size(t.numbers) % 2 == 1))
leak(WARN, "a note for the largest group", *noted(lambda t: max(t.units, default=0) > 4))


def _at_end(tally: Tally, request: Request) -> bool:
    return any(
        x and x == most * u
        for name, rows in tally.numbers.items()
        for row, u in zip(rows, tally.units, strict=True)
        for x, (_, most) in zip(row, request.contribution(name), strict=True)
    )


# ---------------------------------------------------------------- 7. an early end

EARLY = "an early return"
leak(
    EARLY,
    "no draw for nobody",
    (
        Cells,
        "draw",
        lambda old: (
            lambda self, d, n, c: (
                old(self, d, n, c) if size(n) else [[0.0] * self.cells(c)] * len(next(iter(n.values())))
            )
        ),
    ),
)
leak(
    EARLY,
    "no draw of a count of nobody",
    (
        Cell,
        "draw",
        lambda old: lambda self, d, n, c: old(self, d, n, c) if size(n) else [0] * len(next(iter(n.values()))),
    ),
)
leak(
    EARLY,
    "empty groups are 0",
    (
        Cell,
        "draw",
        lambda old: (
            lambda self, d, n, c: [
                0 if not any(r[i][0] for r in n.values()) else x for i, x in enumerate(old(self, d, n, c))
            ]
        ),
    ),
)
leak(
    EARLY,
    "empty groups are left out",
    (Plan, "_answers", lambda old: old),
    (
        Cells,
        "draw",
        lambda old: (
            lambda self, d, n, c: [
                x if any(any(r[i]) for r in n.values()) else [0.0] * len(x) for i, x in enumerate(old(self, d, n, c))
            ]
        ),
    ),
)
leak(
    EARLY,
    "no pick among no values",
    (
        Pick,
        "_group",
        lambda old: (
            lambda self, d, counts: (
                old(self, d, counts) if any(counts) else [[0] * (len(p) + (c is not None)) for p, c in d.mechanism]
            )
        ),
    ),
)
leak(
    EARLY,
    "one value is picked",
    (
        Pick,
        "_group",
        lambda old: (
            lambda self, d, counts: (
                [[counts.index(1)] * (len(p) + (c is not None)) for p, c in d.mechanism]
                if sum(counts) == 1
                else old(self, d, counts)
            )
        ),
    ),
)
leak(
    EARLY,
    "an exact answer for large groups",
    (
        Cell,
        "draw",
        lambda old: (
            lambda self, d, n, c: (
                old(self, d, n, c)
                if max(map(max, next(iter(n.values()))), default=0) < 100
                else [float(r[0]) for r in next(iter(n.values()))]
            )
        ),
    ),
)
leak(
    EARLY,
    "an exact answer for one",
    (
        Cell,
        "draw",
        lambda old: (
            lambda self, d, n, c: [
                1 if next(iter(n.values()))[i][0] == 1 else x for i, x in enumerate(old(self, d, n, c))
            ]
        ),
    ),
)
leak(
    EARLY,
    "found groups without noise",
    (Found, "passing", instead(lambda self, units: [i for i, u in enumerate(units) if u >= self.threshold])),
)
leak(
    EARLY,
    "no second query for nobody",
    (
        Compiler,
        "queries",
        lambda old: (
            lambda self: (
                old(self)
                if self.engine.rows(self.base.head(1).to_native())
                else {**old(self), "": old(self)[""].head(0)}
            )
        ),
    ),
)


# ---------------------------------------------------------------- 8. an error depends on a value

ERROR = "an error depends on a value"


def fails(
    when: Callable[[Tally, Request], bool], error: type[Exception] = QueryFailed, text: str = "query: failed."
) -> Change:
    def check(tally: Tally, request: Request) -> None:
        if when(tally, request):
            raise error(text)

    return tallied(check)


leak(ERROR, "nobody", fails(lambda t, _: not total(t)))
leak(ERROR, "too few", fails(lambda t, _: 0 < total(t) < 3, ParameterError, "too few units"))
leak(ERROR, "division by nothing", tallied(lambda t, _: 1 // total(t) and None))
leak(ERROR, "overflow", fails(lambda t, _: size(t.numbers) > 2**50, OverflowError))
leak(ERROR, "an empty group", fails(lambda t, _: 0 in t.units))
leak(
    ERROR,
    "a value in its text",
    (Request, "run", after(lambda t, *_: t if total(t) % 2 == 0 else _raised(QueryFailed(f"query: {total(t)} rows.")))),
)
leak(
    ERROR, "a negative sum", fails(lambda t, _: any(x < 0 for rows in t.numbers.values() for row in rows for x in row))
)
leak(
    ERROR,
    "true answers outside the domain",
    (Cell, "draw", lambda old: lambda self, d, n, c: _checked(self, d, n, c, old)),
)
leak(
    ERROR,
    "the note on an error",
    (
        Request,
        "run",
        after(lambda t, *_: t if total(t) != 1 else _raised(_noted_error(QueryFailed("query: failed."), str(t.units)))),
    ),
)
leak(
    ERROR,
    "a type of error",
    (
        Request,
        "run",
        after(
            lambda t, *_: _raised(QueryFailed("query: failed.") if total(t) % 2 else ParameterError("query: failed."))
        )
        if False
        else after(lambda t, *_: t if total(t) < 4 else _raised(KeyError("group"))),
    ),
)


def _raised(error: Exception) -> Any:
    raise error


def _noted_error(error: Exception, text: str) -> Exception:
    error.add_note(text)
    return error


def _checked(part: Any, drawn: Any, numbers: Any, caps: Any, old: Any) -> Any:
    exact = [part.value(caps, *row) for row in zip(*(numbers[name] for name in part.measures()), strict=True)]
    if any(float(x) > 1000.0 for x in exact):
        raise QueryFailed("query: a true answer lies outside.")
    return old(part, drawn, numbers, caps)


# ---------------------------------------------------------------- 9. the engine is asked something else

ASKED = "the engine is asked something else"


def again(when: Callable[[Tally], bool]) -> Callable[[Any], Any]:
    def make(old: Any) -> Any:
        def run(self: Request, source: Any, **more: Any) -> Tally:
            tally: Tally = old(self, source, **more)
            if when(tally):
                old(self, source, **more)
            return tally

        return run

    return make


leak(ASKED, "again for large groups", (Request, "run", again(lambda t: max(t.units, default=0) > 3)))
leak(ASKED, "again for nobody", (Request, "run", again(lambda t: not total(t))))
leak(ASKED, "again for empty groups", (Request, "run", again(lambda t: 0 in t.units)))
leak(ASKED, "again for many rows", (Request, "run", again(lambda t: size(t.numbers) > 50)))
leak(ASKED, "again for one unit", (Request, "run", again(lambda t: total(t) == 1)))
leak(ASKED, "again for large numbers", (Request, "run", again(lambda t: size(t.numbers) > 2**30)))
leak(ASKED, "the number of units in the query", (Compiler, "answers", lambda old: lambda self: _counted(self, old)))
leak(ASKED, "a table of keys that are there", (Compiler, "answers", lambda old: lambda self: _limited(self, old)))
leak(ASKED, "another query by the first row", (Compiler, "queries", lambda old: lambda self: _first(self, old)))
leak(ASKED, "bits for each unit", tallied(lambda t, _: [parts_pool().word() for _ in range(total(t))] and None))


def parts_pool() -> Any:
    from inbounds.sampling.entropy import pool

    return pool


def _counted(self: Any, old: Any) -> Any:
    found = self.engine.rows(self.base.select(n=self.nw.len()).to_native())[0][0]
    self.engine.rows(self.base.head(found + 1).to_native())
    return old(self)


def _limited(self: Any, old: Any) -> Any:
    if self.group:
        for _ in self.engine.rows(self.base.select(*self.group).unique().to_native())[:4]:
            self.engine.rows(self.base.head(1).to_native())
    return old(self)


def _first(self: Any, old: Any) -> Any:
    found = old(self)
    if self.engine.rows(self.base.head(1).to_native()):
        found = {name: frame.head(2**40) for name, frame in found.items()}
    return found


# ---------------------------------------------------------------- 10. answers or the record depend on exact numbers

RECORD = "a record or an answer has more"


def recorded(what: Callable[[Tally], Any]) -> list[Change]:
    """Something of the exact numbers beside what was drawn, in the ledger."""
    kept: dict[str, Any] = {}

    def keep(tally: Tally, _: Request) -> None:
        kept["what"] = what(tally)

    return [tallied(keep), (Plan, "_draw", after(lambda raw, self: {**raw, "more": kept["what"]}))]


leak(RECORD, "the number of units", *recorded(total))
leak(RECORD, "as many zeros as groups with anybody", *recorded(lambda t: [0] * sum(u > 0 for u in t.units)))
leak(RECORD, "padding by size", *recorded(lambda t: "x" * len(str(size(t.numbers)))))
leak(RECORD, "whether there was anybody", *recorded(lambda t: total(t) > 0))
leak(RECORD, "all exact numbers", *recorded(lambda t: dict(t.numbers)))


def answered(change: Callable[[Any, Tally], Any]) -> list[Change]:
    """The valid range, the value or the level of every answer, by the exact numbers."""
    kept: dict[str, Tally] = {}

    def keep(tally: Tally, _: Request) -> None:
        kept["tally"] = tally

    def read(found: Any, *_: Any) -> Any:
        return [(suffix, change(answer, kept["tally"])) for suffix, answer in found]

    kinds = (
        aggregates.Count,
        aggregates.SumOf,
        aggregates.Moment,
        aggregates.Share,
        aggregates.Quantiles,
        aggregates.Histogram,
    )
    return [tallied(keep), *((kind, "read", after(read)) for kind in kinds if "read" in vars(kind))]


leak(
    RECORD,
    "a valid range up to the largest group",
    *answered(lambda a, t: replace(a, valid=(a.valid[0], max(t.units, default=0)))),
)
leak(
    RECORD,
    "suppressed where the exact group is small",
    *answered(lambda a, t: replace(a, value=None) if total(t) < 2 else a),
)
leak(
    RECORD,
    "moved towards the truth",
    *answered(lambda a, t: replace(a, value=a.value + 1e-9 * total(t)) if isinstance(a.value, float) else a),
)
leak(
    RECORD,
    "the last digit",
    *answered(lambda a, t: replace(a, value=a.value // 2 * 2 + total(t) % 2) if isinstance(a.value, int) else a),
)
leak(RECORD, "the price by what is there", (Plan, "_draw", lambda old: lambda self: _charged(self, old)))


def _charged(plan: Plan, old: Any) -> Any:
    raw = old(plan)
    if raw["parts"] and any(parts_of for parts_of in raw["parts"].values()):
        tally = plan._request.run(plan.data.source)
        if total(tally) > 2:
            plan.data.scope.spend(plan.event, lambda: 0)
    return raw


# ---------------------------------------------------------------- 11. the noise drawn is not the noise stated

DRAWN = "another noise than stated"


def filled(change: Callable[[Any], Any]) -> Change:
    """Something done with the random words of a large draw."""

    def make(old: Any) -> Any:
        def fill(self: Any, words: Any) -> None:
            old(self, words)
            change(words)

        return fill

    return entropy.Keystream, "fill", make


def _first_for_all(words: Any) -> None:
    words[1:] = words[:1]


def _in_pairs(words: Any) -> None:
    words[1::2] = words[: 2 * (words.size // 2) : 2]


def _exact_answers(old: Any) -> Any:
    return lambda self, q, source=None, *, clip=False: np.array(q, dtype=np.float64)


def _none_for_zero(old: Any) -> Any:
    def draw(self: Any, q: Any, source: Any = None, *, clip: bool = False) -> Any:
        drawn = old(self, q, source, clip=clip)
        return np.where(np.asarray(q) == 0.0, 0.0, drawn)

    return draw


def _sampled(factor: float) -> Callable[[Any], Any]:
    return lambda old: lambda family, domain, scale, *given, **more: old(family, domain, scale * factor, *given, **more)


leak(DRAWN, "none in one dimension", (draws.LineSampler, "draw", _exact_answers))
leak(DRAWN, "none in several", (draws._BoxSampler, "draw", _exact_answers))
leak(DRAWN, "none around 0", (draws.LineSampler, "draw", _none_for_zero))
leak(DRAWN, "half of it", (additive, "sampler", _sampled(0.5)))
leak(DRAWN, "seven tenths of it", (additive, "sampler", _sampled(0.7)))
leak(DRAWN, "the same for all groups", filled(_first_for_all))
leak(DRAWN, "the same in pairs", filled(_in_pairs))
leak(DRAWN, "the same every time", (entropy, "_key", instead(lambda: bytes(32))))
leak(DRAWN, "from a seed", (draws, "Keystream", instead(lambda: entropy.Seeded(1))))
leak(DRAWN, "always the best cell", (picking, "_draw", instead(lambda weights: weights.index(max(weights)))))
leak(DRAWN, "the first of the cells alike", (picking, "_below", lambda old: lambda total: min(old(total), total // 2)))

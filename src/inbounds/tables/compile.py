"""From a table and a frozen description to exact, bounded whole numbers per group.

The rules, which every engine follows and ``docs/proofs/bounding.md`` proves:

1. Rows where the condition is true are kept; rows without a unit, or without a group, belong to no one and are dropped.
   With public keys, so are rows of other groups.
2. **Rows.** With a cap on rows, at most ``rows`` rows of a unit are kept in each group. Without one, a unit has one
   value in each group and measure: what the measure takes of its rows (``per_unit``).
3. **Groups.** At most ``groups`` groups of a unit are kept.
4. The kept values are counted and summed as whole numbers.

Of n rows (or groups) in order, number p is kept where (p k + h) mod n < k: k of them, each with the same chance k/n as
h varies, spread over the order. h is a hash of the unit (and the group) with random coefficients. So what is kept of a
unit depends on its own rows and the coefficients alone; rows are ordered by the numbers they contribute, so that rows
whose order an engine may choose are rows that contribute the same.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any

from inbounds._cached import cached_property
from inbounds.errors import QueryFailed
from inbounds.tables.bare import necessary
from inbounds.tables.engines.embedded import Paper
from inbounds.tables.exact import integer
from inbounds.tables.expressions import Scope, calendar
from inbounds.tables.fixed import Fixed
from inbounds.tables.kinds import Kind, days, extra, fits, shielded, some
from inbounds.tables.measures import Binned, Meeting, Rows, Squares, Sum, Units, UnitsMeeting, Valued
from inbounds.tables.per_unit import PerUnit, Value, as_order, one_each
from inbounds.tables.source import Source

if TYPE_CHECKING:
    from narwhals import Expr, LazyFrame

    from inbounds.tables.request import Request

__all__ = ["Compiler", "coefficients"]

_PRIME = 2**31 - 1  # products of two residues stay below 2^62


def _encode(value: Any, kind: Kind) -> int | str:
    """A public key as the whole number or text that stands for it in a query."""
    if kind is Kind.DATE:
        return days(value)
    if kind is Kind.WIDE:
        return str(value)
    return value if kind is Kind.TEXT else int(value)


def _decode(value: Any, kind: Kind) -> Any:
    if kind is Kind.DATE:
        return dt.date(1970, 1, 1) + dt.timedelta(days=value)
    if kind is Kind.WIDE:
        return int(value)
    return bool(value) if kind is Kind.BOOLEAN else value


def coefficients(salt: bytes | None, purpose: str, count: int) -> list[int]:
    """Random residues for a hash, spread from a salt; zeros where the salt is not to be shown."""
    if salt is None:
        return [0] * count
    digests = (hashlib.sha256(salt + f"{purpose} {i}".encode()).digest() for i in range(count))
    return [int.from_bytes(digest, "big") % _PRIME for digest in digests]


class Compiler:
    """One request on one source: builds the queries, runs them, reads the answers.

    Columns inside the queries: c0, c1, ... those of the table; d0, d1, ... parts of dates; u0, u1, ... the unit; g the
    number of a public key, or g0, g1, ... the group itself; x0, x1, ... what a row contributes; o0, o1, ... what rows
    are ordered by; y0, y1, ... the numbers of all measures without bins.
    """

    def __init__(self, request: Request, source: Source, salt: bytes | None) -> None:
        self.request, self.source, self.engine, self.salt = request, source, source.engine, salt
        self.caps, self.nw = request.caps, extra("narwhals")
        schema = source.schema
        expressions = [*request.by, *(part for measure in request.measures.values() for part in measure.inputs())]
        expressions += [] if request.where is None else [request.where]
        used = set(request.unit or ()).union(*(expression.columns() for expression in expressions))
        if not used:  # a query has to name a column
            used = {some(schema)}
        self.columns = sorted(used)
        stored, made = Scope(schema, {name: f"c{i}" for i, name in enumerate(self.columns)}), calendar(expressions)
        self.scope = replace(stored, made={key: f"d{i}" for i, key in enumerate(made)})
        self.made = {self.scope.made[key]: part.narwhals(stored) for key, part in made.items()}
        self.group_kinds = [group.kind(schema) for group in request.by]
        self.parts = [f"g{i}" for i in range(len(request.by))]
        self.group = self.parts if request.keys is None else ["g"]
        self.unit = [f"u{i}" for i in range(len(request.unit or ()))]
        kinds = dict(zip(self.unit, (schema[name] for name in request.unit or ()), strict=True))
        kinds |= dict(zip(self.parts, self.group_kinds, strict=True))
        self.kinds = kinds
        self.values: dict[str, str] = {}  # a measure's column x
        self.row_columns: dict[str, Expr] = {}
        self.per_unit: dict[str, Value] = {}  # what is made of a unit's rows in a column x
        self._row_columns()
        self.condition = None if request.where is None else request.where.narwhals(self.scope)
        self.groups = [group.narwhals(self.scope) for group in request.by]

    def _row_columns(self) -> None:
        """What a row contributes, as whole numbers; measures of the same values share a column."""
        shared: dict[object, str] = {}
        orders: dict[str, str] = {}
        for name, measure in self.request.measures.items():
            order = ""
            if isinstance(measure, Valued):
                per, fixed = measure.per, measure.fixed(self.caps)
                key: object = (str(measure.expression.to_json()), fixed, per.key)
                value = measure.rows(self.scope, self.caps)
                if per.order is not None:
                    order = orders.setdefault(per.key[1], f"o{len(orders)}")
                    self.row_columns[order] = as_order(per.order, self.scope)
            elif isinstance(measure, Meeting | UnitsMeeting):
                whole = measure.whole(self.caps) if isinstance(measure, Meeting) else 1
                per, fixed = (
                    PerUnit("mean" if isinstance(measure, Meeting) else "max"),
                    Fixed(0.0, 1.0, 0.0, 1.0 / whole),
                )
                key = (str(measure.condition.to_json()), type(measure))
                condition = measure.condition.narwhals(self.scope)
                value = self.nw.when(condition).then(integer(whole)).otherwise(integer(0))
            else:
                continue
            column = self.values[name] = shared.setdefault(key, f"x{len(shared)}")
            self.row_columns[column] = value
            self.per_unit[column] = Value(per, fixed, self.caps, order)

    # From the table to the rows and units that count.

    @cached_property
    def base(self) -> LazyFrame[Any]:
        """The rows that count: unit, group, and what each contributes."""
        nw, request = self.nw, self.request
        frame = self.source.frame(self.columns, necessary(request.where, self.source.schema))
        frame = frame.with_columns(**self.made) if self.made else frame
        if self.condition is not None:
            frame = frame.filter(self.condition)
        units = (self.engine.identifier(name, self.scope.names[name]) for name in request.unit or ())
        places = [*map(nw.col, units), *self.groups]
        chosen = {
            name: place.cast(nw.Int64) if kind is Kind.BOOLEAN else place
            for (name, kind), place in zip(self.kinds.items(), places, strict=True)
        }
        present = [~nw.col(name).is_null() for name in chosen]
        # With a column of the table: of constants alone, Narwhals makes one row on Spark.
        frame = frame.select(nw.col("c0"), **chosen, **self.row_columns)
        frame = frame.filter(*present) if present else frame
        return frame if request.keys is None else self._with_keys(frame, request.keys)

    def _with_keys(self, frame: LazyFrame[Any], keys: Sequence[tuple[Any, ...]]) -> LazyFrame[Any]:
        """The rows of the public groups, with the number of the group instead of its parts."""
        if Kind.NULL in self.group_kinds:  # no row has a group
            keys = ()
        encoded = [[_encode(part, kind) for part, kind in zip(key, self.group_kinds, strict=True)] for key in keys]
        # A whole number beyond int64 is in no column of int64.
        known = [i for i, key in enumerate(encoded) if all(isinstance(part, str) or fits(part) for part in key)]
        columns: dict[str, list[Any]] = {f"k{j}": [encoded[i][j] for i in known] for j in range(len(self.parts))}
        if known:
            table = self.engine.table(frame.to_native(), columns | {"g": known})
            frame = frame.join(self._wrap(table), left_on=self.parts, right_on=list(columns), how="inner")
        else:
            frame = frame.filter(self.nw.col(self.parts[0]).is_null()).with_columns(g=integer(0))  # none are
        return frame.select(*self.unit, "g", *self.row_columns)

    def _wrap(self, native: Any) -> LazyFrame[Any]:
        frame: LazyFrame[Any] = self.nw.from_native(native).lazy()
        return frame

    def _hash(self, frame: LazyFrame[Any], columns: Sequence[str], needed: Expr, purpose: str) -> LazyFrame[Any]:
        """The frame with a column h_, a hash of some columns in [0, 2^31 - 1), where it is needed.

        A random linear form of several columns, then a random polynomial of degree 3: the hashes of any four units are
        independent.
        """
        nw, prime = self.nw, integer(_PRIME)
        *factors, c0, c1, c2, c3 = map(integer, coefficients(self.salt, purpose, len(columns) + 4))
        terms = []
        for column, factor in zip(columns, factors, strict=True):
            if self.kinds.get(column) in (Kind.TEXT, Kind.WIDE):
                salted = nw.concat_str([nw.lit(self.salt.hex() if self.salt else ""), nw.col(column)])
                frame = frame.with_columns(**{f"{column}t_": nw.when(needed).then(salted)})
                frame = self._wrap(self.engine.digest(frame.to_native(), f"{column}t_", f"{column}d_"))
                column = f"{column}d_"
            terms.append(nw.col(column) % prime * factor % prime if len(columns) > 1 else nw.col(column) % prime)
        linear = reduce(add, terms) % prime if len(terms) > 1 else terms[0]
        x = nw.col("x_")
        h = (((c3 * x + c2) % prime * x + c1) % prime * x + c0) % prime
        # Engines do no arithmetic for a null, so this is paid for where it is needed only.
        return frame.with_columns(x_=nw.when(needed).then(linear)).with_columns(h_=h)

    def _keep(
        self, frame: LazyFrame[Any], within: Sequence[str], order: Sequence[str], most: int, purpose: str
    ) -> LazyFrame[Any]:
        """At most ``most`` rows of each part, spread over the order from a start that the hash decides."""
        nw = self.nw
        columns = frame.collect_schema().names()
        place = nw.col(within[0]).cum_count().over(*within, order_by=list(order))
        frame = frame.with_columns(p_=place.cast(nw.Int64), n_=nw.len().over(*within).cast(nw.Int64))
        p, n, k = nw.col("p_"), nw.col("n_"), integer(most)
        frame = self._hash(frame, within, n > k, purpose)
        return frame.filter((n <= k) | ((p * k + nw.col("h_")) % n < k)).select(*columns)

    def _keep_groups(self, pairs: LazyFrame[Any]) -> LazyFrame[Any]:
        """At most ``groups`` groups of each unit, from one row for each unit and group."""
        request = self.request
        most = request.groups or 1
        if not request.by or (request.keys is not None and len(request.keys) <= most):
            return pairs
        return self._keep(pairs, self.unit, self.group, most, "groups")

    @cached_property
    def _rows(self) -> LazyFrame[Any]:
        """Rows, of which a unit has at most ``rows`` in each group."""
        frame, most = self.base, self.request.rows
        if self.request.unit is None or most is None or not self.row_columns:
            return frame
        return self._keep(frame, [*self.unit, *self.group], list(self.row_columns), most, "rows")

    @cached_property
    def _units(self) -> LazyFrame[Any]:
        """One row for each unit and group kept, with the unit's own value of each x."""
        return self._keep_groups(one_each(self.base, [*self.unit, *self.group], self.per_unit))

    # From rows and units to numbers.

    def _numbers(self) -> dict[str, tuple[Expr, bool]]:
        """What a row of :meth:`_rows` or :meth:`_units` adds to each number; and whether a unit's is the largest."""
        nw, numbers, one = self.nw, [], integer(1)
        for name, measure in self.request.measures.items():
            x = nw.col(self.values.get(name, ""))
            if isinstance(measure, Rows):
                numbers.append((one, False))
            elif isinstance(measure, Units):
                numbers.append((one, True))
            elif isinstance(measure, Meeting | UnitsMeeting):
                numbers.append((x, isinstance(measure, UnitsMeeting)))
            elif isinstance(measure, Sum):
                total = measure.express(x, self.caps) if isinstance(measure, Squares) else x
                numbers.append((nw.when(x.is_null()).then(integer(0)).otherwise(one), False))
                numbers.append((total.fill_null(integer(0)), False))
        return {f"y{i}": number for i, number in enumerate(numbers)}

    def _by_group(self, frame: LazyFrame[Any], *more: str) -> Any:
        """The frame grouped by group, also where there is only one."""
        if self.group:
            return frame.group_by(*self.group, *more)
        return frame.with_columns(g=integer(0)).group_by("g", *more)

    def _scalars(self) -> LazyFrame[Any]:
        """The query for the units and all numbers without bins: one row per group."""
        nw, request, numbers = self.nw, self.request, self._numbers()
        sums = {y: nw.col(y).sum().cast(nw.Int64) for y in numbers}
        frame = self._units if request.rows is None else self._rows
        if numbers:
            frame = frame.with_columns(**{y: expression for y, (expression, _) in numbers.items()})
        if request.unit is not None and request.rows is not None:
            per_unit = {y: nw.col(y).max() if largest else sums[y] for y, (_, largest) in numbers.items()}
            frame = frame.group_by(*self.unit, *self.group).agg(**per_unit or {"one": nw.len()})
            if not self.row_columns:  # rows that contribute the same: counting some of them is enough
                most = integer(request.rows)
                frame = frame.with_columns(
                    **{y: nw.when(nw.col(y) < most).then(nw.col(y)).otherwise(most) for y in sums}
                )
            frame = self._keep_groups(frame)
        found: LazyFrame[Any] = self._by_group(frame).agg(units=nw.len().cast(nw.Int64), **sums)
        if request.by and request.keys is None:
            found = found.filter(nw.col("units") >= integer(request.at_least))
        return found.select(*(self.group or ["g"]), "units", *numbers)

    def _bins(self, name: str, measure: Binned) -> LazyFrame[Any]:
        """The query for one measure with bins: one row for each group and bin with something in it."""
        nw, request, place = self.nw, self.request, [*self.unit, *self.group]
        frame = self._units if request.rows is None else self._rows
        if request.unit is not None and request.rows is not None:
            kept = self._keep_groups(self.base.group_by(*place).agg(one=nw.len())).select(*place)
            frame = frame.join(kept, on=place, how="inner") if request.by else frame
        x = nw.col(self.values[name])
        frame = frame.filter(~x.is_null()).with_columns(b=measure.express(x, self.caps))
        found: LazyFrame[Any] = self._by_group(frame, "b").agg(y=nw.len().cast(nw.Int64))
        return found.select(*(self.group or ["g"]), "b", "y")

    def queries(self) -> dict[str, LazyFrame[Any]]:
        """The queries, that for the numbers without bins under the empty name."""
        binned = {name: m for name, m in self.request.measures.items() if isinstance(m, Binned)}
        return {"": self._scalars()} | {name: self._bins(name, measure) for name, measure in binned.items()}

    def rehearse(self) -> None:
        """Build every query and, on paper that can, run it: what fails whatever the rows are fails here."""
        with self._asking():
            for frame in self.queries().values():
                if isinstance(self.engine, Paper):
                    self.engine.rows(frame.to_native())
                else:
                    frame.collect_schema()

    def text(self, paper: Paper) -> str:
        """The queries as SQL."""
        with self._asking():
            return ";\n\n".join(paper.text(frame.to_native()) for frame in self.queries().values())

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """The engine lets go of what it keeps for a question when that is over."""
        try:
            yield
        finally:
            self.engine.done()

    def multiplicities(self, caps: Sequence[int]) -> dict[str, list[int]]:
        """For each cap: the units it is the first to leave whole, by rows in their fullest group and by groups."""
        with self._asking():
            return self._multiplicities(caps)

    def _multiplicities(self, caps: Sequence[int]) -> dict[str, list[int]]:
        nw, frames = self.nw, {}
        pairs = self.base.group_by(*self.unit, *self.group).agg(n=nw.len().cast(nw.Int64))
        frames["max_rows"] = pairs.group_by(*self.unit).agg(n=nw.col("n").max()) if self.group else pairs
        if self.group:
            frames["max_groups"] = pairs.group_by(*self.unit).agg(n=nw.len().cast(nw.Int64))
        found = {}
        for name, frame in frames.items():
            place = reduce(
                add, (nw.when(nw.col("n") > integer(c)).then(integer(1)).otherwise(integer(0)) for c in caps[:-1])
            )
            query = frame.with_columns(b=place).group_by("b").agg(y=nw.len().cast(nw.Int64)).select("b", "y")
            rows = shielded("running the query", partial(self.engine.rows, query.to_native()), debug=self.source.debug)
            found[name] = [0] * len(caps)
            for cell, count in rows:
                found[name][int(cell)] = int(count)
        return found

    # From answers to Python.

    def answers(self) -> tuple[tuple[tuple[Any, ...], ...], tuple[int, ...], dict[str, tuple[tuple[int, ...], ...]]]:
        """The keys, the units of each, and the numbers of each measure for each."""
        debug = self.source.debug
        with self._asking():
            queries = shielded("building the query", self.queries, debug=debug)
            run = {
                name: shielded("running the query", partial(self.engine.rows, frame.to_native()), debug=debug)
                for name, frame in queries.items()
            }
        width = max(len(self.group), 1)
        scalars = {row[:width]: row[width:] for row in run[""]}
        places = self._places(scalars)
        numbers = len(self._numbers())
        found = [tuple(map(int, scalars.get(place, (0,) * (numbers + 1)))) for place in places]
        units = tuple(row[0] for row in found)
        answers, start = {}, 1
        for name, measure in self.request.measures.items():
            if isinstance(measure, Binned):
                cells: dict[tuple[Any, ...], list[int]] = {place: [0] * measure.bins() for place in places}
                for *place, cell, count in run[name]:
                    if tuple(place) in cells:
                        cells[tuple(place)][cell] = int(count)
                answers[name] = tuple(tuple(counts) for counts in cells.values())
            else:
                end = start + len(measure.numbers(self.caps))
                answers[name] = tuple(row[start:end] for row in found)
                start = end
        self._certify(units, answers)
        return self._keys(places), units, answers

    def _places(self, scalars: dict[tuple[Any, ...], Any]) -> list[tuple[Any, ...]]:
        """The groups as the query knows them, in the order of the answer."""
        if self.request.keys is not None:
            return [(i,) for i in range(len(self.request.keys))]
        if not self.request.by:
            return [(0,)]
        # In the order of the groups, where wide whole numbers are text in a query.
        return sorted(scalars, key=lambda place: [*map(_decode, place, self.group_kinds)])

    def _keys(self, places: Sequence[tuple[Any, ...]]) -> tuple[tuple[Any, ...], ...]:
        if self.request.keys is not None:
            return self.request.keys
        if not self.request.by:
            return ((),)
        kinds = self.group_kinds
        return tuple(tuple(_decode(part, kind) for part, kind in zip(p, kinds, strict=True)) for p in places)

    def _certify(self, units: Sequence[int], answers: dict[str, tuple[tuple[int, ...], ...]]) -> None:
        """Refuse what the rules make impossible: an overflow, or an engine that does not keep them."""
        if any(count > self.caps.limit for count in units):
            raise QueryFailed(f"query: a group has more than {self.caps.limit} units. Raise limit.")
        for name, rows in answers.items():
            contributions = self.request.contribution(name)
            for count, row in zip(units, rows, strict=True):
                for number, (least, most) in zip(row, contributions, strict=True):
                    if not count * least <= number <= count * most:
                        raise QueryFailed("query: the engine gave numbers that its own rules make impossible.")

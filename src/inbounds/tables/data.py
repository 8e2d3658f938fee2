"""A table with a unit of privacy and a budget: what users ask.

>>> import inbounds as ib
>>> import pandas as pd
>>> visits = pd.DataFrame({"patient": [1, 1, 2, 3] * 100, "age": [41.0, 41.0, 35.0, 62.0] * 100})
>>> data = ib.dataset(visits, unit="patient", budget=ib.Budget(epsilon=1))
>>> 0 <= data.mean("age", bounds=(0, 120), epsilon=0.5).value <= 120
True
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from inbounds import _checks as check
from inbounds.accounting import Budget
from inbounds.errors import ParameterError, ParameterTypeError
from inbounds.events import Event
from inbounds.ledger import Ledger, Scope
from inbounds.tables import aggregates as ask
from inbounds.tables.aggregates import Aggregate
from inbounds.tables.expressions import Column, Expression, col
from inbounds.tables.kinds import Schema
from inbounds.tables.measures import Measure, Units
from inbounds.tables.plan import Plan
from inbounds.tables.request import MOST, Request, column_names, key_to_json, public_keys
from inbounds.tables.source import Source
from inbounds.tables.spending import Goal
from inbounds.tables.suggestions import Suggestion, suggest_bounds, suggest_caps

__all__ = ["Dataset", "dataset"]

NEIGHBOURS = ("add-remove", "substitute")
_TOLD = 100  # keys that are written into the record; of more, a digest too

_Column = str | Expression


class Asks:
    """The questions, once: a :class:`Dataset` answers them, its ``plan`` makes plans of them."""

    def _asked(self, asks: Mapping[str, Aggregate], goal: Goal, key: str | None) -> Any:
        raise NotImplementedError

    def _one(self, question: Aggregate, epsilon: Any, delta: Any, rho: Any, key: str | None) -> Any:
        return self._asked({question.label: question}, Goal.of(epsilon, delta, rho), key)

    def select(
        self,
        asks: Mapping[str, Aggregate] | None = None,
        /,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        key: str | None = None,
        **named: Aggregate,
    ) -> Any:
        """Several questions in one plan, by names of your own; the budget is split by their weights.

        Those about the same values share their part of it: a mean, a sum and a variance of one column within the same
        bounds, and a count beside them, cost as much as one.

        Parameters
        ----------
        asks, **named : questions of :mod:`inbounds.ask` by name
        epsilon, delta, rho : float
            What all of it may cost: epsilon, epsilon and delta, or rho.
        key : str, optional
            The same request with the same key gives the recorded answers again and costs nothing.
        """
        if asks is not None and not isinstance(asks, Mapping):
            step = "As select(people=ask.count_units(), epsilon=0.5)."
            check.refuse("select", "asks", "questions by name", asks, step, ParameterTypeError)
        return self._asked({**(asks or {}), **named}, Goal.of(epsilon, delta, rho), key)

    def count(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        edges: str = "auto",
        key: str | None = None,
    ) -> Any:
        """The number of rows. Needs ``max_rows`` where the unit is a column."""
        return self._one(ask.count(edges=edges), epsilon, delta, rho, key)

    def count_units(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        edges: str = "auto",
        key: str | None = None,
    ) -> Any:
        """The number of units (people)."""
        return self._one(ask.count_units(edges=edges), epsilon, delta, rho, key)

    def sum(
        self,
        column: _Column,
        *,
        bounds: Any = None,
        per_unit: str | None = None,
        order: _Column | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        edges: str = "auto",
        key: str | None = None,
    ) -> Any:
        """The sum of a column, of which values are moved into the public ``bounds``.

        Where the unit is a column it has to be said what counts, here and for all that follows but :meth:`mean`:
        rows, up to ``max_rows`` of a unit; or one value of each unit, with ``per_unit``: the ``"mean"``, ``"sum"``,
        ``"min"`` or ``"max"`` of its rows in a group, or their ``"first"`` or ``"last"`` in the ``order`` of a column.
        With ``per_unit="sum"`` the bounds are those of a unit's sum.
        """
        return self._one(
            ask.sum_of(column, bounds, edges=edges, per_unit=per_unit, order=order), epsilon, delta, rho, key
        )

    def mean(
        self,
        column: _Column,
        *,
        bounds: Any = None,
        per_unit: str | None = None,
        order: _Column | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        edges: str = "auto",
        key: str | None = None,
    ) -> Any:
        """The mean of a column; always within ``bounds``.

        Where nothing else is said: the mean of the units' own means. See :meth:`sum` for ``per_unit``.
        """
        return self._one(
            ask.mean(column, bounds, edges=edges, per_unit=per_unit, order=order), epsilon, delta, rho, key
        )

    def variance(
        self,
        column: _Column,
        *,
        bounds: Any = None,
        per_unit: str | None = None,
        order: _Column | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        edges: str = "auto",
        key: str | None = None,
    ) -> Any:
        """The (population) variance of a column; between 0 and a quarter of the squared range."""
        return self._one(
            ask.variance(column, bounds, edges=edges, per_unit=per_unit, order=order), epsilon, delta, rho, key
        )

    def std(
        self,
        column: _Column,
        *,
        bounds: Any = None,
        per_unit: str | None = None,
        order: _Column | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        edges: str = "auto",
        key: str | None = None,
    ) -> Any:
        """The (population) standard deviation of a column; between 0 and half the range."""
        return self._one(ask.std(column, bounds, edges=edges, per_unit=per_unit, order=order), epsilon, delta, rho, key)

    def share(
        self,
        condition: Expression,
        *,
        of: str = "rows",
        per_unit: str | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        key: str | None = None,
    ) -> Any:
        """The share of rows (or ``of="units"``: of units with such a row) that meet a condition; between 0 and 1.

        Of rows it needs ``max_rows`` where the unit is a column, or ``per_unit="mean"``: the mean of the units' own
        shares.
        """
        return self._one(ask.share(condition, of=of, per_unit=per_unit), epsilon, delta, rho, key)

    def quantile(
        self,
        column: _Column,
        q: float,
        *,
        bounds: Any = None,
        per_unit: str | None = None,
        order: _Column | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        level: float | None = 0.95,
        key: str | None = None,
    ) -> Any:
        """A quantile of a column; always within ``bounds``.

        ``level`` is that of its interval, for which half of the budget is used; None for no interval.
        """
        return self._one(
            ask.quantile(column, q, bounds, level=level, per_unit=per_unit, order=order), epsilon, delta, rho, key
        )

    def quantiles(
        self,
        column: _Column,
        qs: Sequence[float],
        *,
        bounds: Any = None,
        per_unit: str | None = None,
        order: _Column | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        level: float | None = 0.95,
        key: str | None = None,
    ) -> Any:
        """Several quantiles of a column, in order."""
        return self._one(
            ask.quantiles(column, qs, bounds, level=level, per_unit=per_unit, order=order), epsilon, delta, rho, key
        )

    def median(
        self,
        column: _Column,
        *,
        bounds: Any = None,
        per_unit: str | None = None,
        order: _Column | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        level: float | None = 0.95,
        key: str | None = None,
    ) -> Any:
        """The median of a column; see :meth:`quantile`."""
        return self._one(
            ask.median(column, bounds, level=level, per_unit=per_unit, order=order), epsilon, delta, rho, key
        )

    def min(
        self,
        column: _Column,
        *,
        bounds: Any = None,
        per_unit: str | None = None,
        order: _Column | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        level: float | None = 0.95,
        key: str | None = None,
    ) -> Any:
        """A value that few values of a column lie below: an extreme itself cannot be told privately."""
        return self._one(
            ask.minimum(column, bounds, level=level, per_unit=per_unit, order=order), epsilon, delta, rho, key
        )

    def max(
        self,
        column: _Column,
        *,
        bounds: Any = None,
        per_unit: str | None = None,
        order: _Column | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        level: float | None = 0.95,
        key: str | None = None,
    ) -> Any:
        """A value that few values of a column lie above."""
        return self._one(
            ask.maximum(column, bounds, level=level, per_unit=per_unit, order=order), epsilon, delta, rho, key
        )

    def histogram(
        self,
        column: _Column,
        edges: Sequence[Any],
        *,
        per_unit: str | None = None,
        order: _Column | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        key: str | None = None,
    ) -> Any:
        """How many values of a column lie in each bin: whole numbers from 0 up."""
        return self._one(ask.histogram(column, edges, per_unit=per_unit, order=order), epsilon, delta, rho, key)


@dataclass(frozen=True, eq=False)
class Planner(Asks):
    """The same questions as the data, made into plans that are not run."""

    data: Dataset

    def _asked(self, asks: Mapping[str, Aggregate], goal: Goal, key: str | None) -> Plan:
        if key is not None:
            check.refuse("plan", "key", "left out: it is given to run", key, "As plan.run(key=...).")
        derived = self.data.derived
        known = {name: ask.substitute(derived) if isinstance(ask, Aggregate) else ask for name, ask in asks.items()}
        return Plan(self.data, MappingProxyType(known), goal)


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(Asks):
    """A table with a unit of privacy and a budget. Use :func:`inbounds.dataset`; frozen, its views share the budget."""

    source: Source
    scope: Scope
    unit: tuple[str, ...] | None
    neighbours: str
    size: int | None
    max_groups: int | None
    max_rows: int | None
    condition: Expression | None = None
    by: tuple[Expression, ...] = ()
    labels: tuple[str, ...] = ()
    keys: tuple[tuple[Any, ...], ...] | None = None
    suppress_below: int | None = None
    derived: Mapping[str, Expression] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of its scope in the ledger."""
        return "/".join(self.scope.path)

    @property
    def schema(self) -> Schema:
        """The columns and what they hold. Public."""
        return self.source.schema

    @property
    def plan(self) -> Planner:
        """The same questions as plans, to be explained, priced and run."""
        return Planner(self)

    def __repr__(self) -> str:
        unit = "a row" if self.unit is None else " and ".join(self.unit)
        return f"<Dataset {self.name}: {self.source.description}; the unit is {unit}; {self.scope.budget!r}>"

    # ---------------------------------------------------------------- views

    def where(self, condition: Expression) -> Dataset:
        """Only the rows that meet a condition, written with :func:`inbounds.col`."""
        if not isinstance(condition, Expression):
            step = 'Write it with ib.col, as ib.col("age") >= 18.'
            check.refuse("where", "condition", "a condition", condition, step, ParameterTypeError)
        condition = self._known(condition)
        both = condition if self.condition is None else self.condition & condition
        return replace(self, condition=both)._checked()

    def with_columns(self, **columns: Expression) -> Dataset:
        """More columns, computed from others: ``with_columns(year=ib.col("date").year())``."""
        for name, column in columns.items():
            if not isinstance(column, Expression):
                check.refuse("with_columns", name, "an expression", column, "As ib.col('a') + 1.", ParameterTypeError)
            written = self._known(column)
            with self.source.advising(written):
                written.kind(self.schema)
        known = {name: self._known(column) for name, column in columns.items()}
        return replace(self, derived=MappingProxyType({**self.derived, **known}))

    def group_by(
        self,
        *by: _Column,
        keys: Sequence[Any] | None = None,
        max_groups: int | None = None,
        suppress_below: int | None = None,
    ) -> Dataset:
        """The same questions for each group.

        Parameters
        ----------
        *by : columns or expressions
            Holding whole numbers, text, truth values or dates.
        keys : sequence, optional
            The groups, which are public: each is answered, whether there are rows or not. Tuples for several columns.
            Without them the groups of the data are found privately: those of enough units, which needs a delta.
        max_groups : int, optional
            The most groups in which one unit counts. The noise grows with it: with ``epsilon`` in proportion, with
            ``rho`` as its square root. Needed for an answer where the unit is a column and there are no ``keys``,
            unless ``dataset`` said it; with ``keys`` a unit may otherwise be in all of them.
        suppress_below : int, optional
            Do not show groups whose private number of units is below this.
        """
        if self.by:
            step = "Give them all at once, as group_by('site', 'year', keys=...)."
            check.refuse("group_by", "by", "the only groups", f"more, after {', '.join(self.labels)}", step)
        if not by or not all(isinstance(b, str | Expression) for b in by):
            check.refuse("group_by", "by", "columns or expressions", by, "", ParameterTypeError)
        groups = tuple(self._known(col(b) if isinstance(b, str) else b) for b in by)
        labels = tuple(b if isinstance(b, str) else b.name if isinstance(b, Column) else str(b) for b in by)
        if len(set(labels)) < len(labels):
            check.refuse("group_by", "by", "different columns", labels, "")
        public = None if keys is None else public_keys(keys, len(groups), "group_by")
        caps = _caps("group_by", self.unit, max_groups=max_groups)
        if suppress_below is not None:
            most = 2**40
            suppress_below = check.whole("group_by", "suppress_below", suppress_below, at_least=1, at_most=most)
        view = replace(self, by=groups, labels=labels, keys=public, suppress_below=suppress_below, **caps)
        return view._checked()

    def with_caps(self, *, max_groups: int | None = None, max_rows: int | None = None) -> Dataset:
        """The same with other caps on what one unit contributes; None keeps what was said last."""
        return replace(self, **_caps("with_caps", self.unit, max_groups=max_groups, max_rows=max_rows))

    def _checked(self) -> Dataset:
        """Itself, where what it names is there and fits."""
        with self.source.advising(self.condition, *self.by):
            self.request({}, groups=1).check(self.schema)
        return self

    def _known(self, expression: Expression) -> Expression:
        return expression.substitute(self.derived) if self.derived else expression

    def describe(self) -> dict[str, Any]:
        """What is public about the rows that are asked about, of what JSON has."""
        keys = None if self.keys is None else [key_to_json(key) for key in self.keys]
        many = keys is not None and len(keys) > _TOLD
        return {
            "data": self.name,
            "table": self.source.identity,
            "unit": "row" if self.unit is None else list(self.unit),
            "neighbours": self.neighbours,
            "size": self.size,
            "where": None if self.condition is None else self.condition.to_json(),
            "by": [group.to_json() for group in self.by],
            "keys": keys if keys is None else keys[:_TOLD],
            "groups": None if keys is None else len(keys),
            "digest": hashlib.sha256(json.dumps(keys).encode()).hexdigest() if many else None,
        }

    # ---------------------------------------------------------------- asking

    def request(self, measures: Mapping[str, Measure], **changes: Any) -> Request:
        """What the engine is asked: checked, not run."""
        given: dict[str, Any] = {
            "unit": self.unit,
            "by": self.by,
            "keys": self.keys,
            "where": self.condition,
            "groups": self.max_groups if self.by and self.unit is not None else None,
            "rows": self.max_rows if self.unit is not None else None,
        }
        if self.keys is not None and self.unit is not None and self.max_groups is None:
            given["groups"] = len(self.keys)  # a unit may be in all of them
        return Request(measures or {"n": Units()}, **given | changes)

    def _asked(self, asks: Mapping[str, Aggregate], goal: Goal, key: str | None) -> Any:
        return Planner(self)._asked(asks, goal, None).run(key=key)

    def suggest_bounds(self, column: _Column, *, epsilon: float, key: str | None = None) -> Suggestion:
        """Bounds that hold nearly all values of a column: private, paid for, and recorded like any other answer.

        Powers of two, found from a private histogram of one row of each unit. Public knowledge is better and free.
        """
        return suggest_bounds(self, self._known(col(column) if isinstance(column, str) else column), epsilon, key)

    def suggest_caps(self, *, epsilon: float, share: float = 0.95, key: str | None = None) -> Suggestion:
        """``max_rows`` and, with groups, ``max_groups`` that leave most units whole: private, paid for, recorded.

        None where there are too few units for this epsilon to tell; a tenth of it goes to how many there are.

        Parameters
        ----------
        epsilon : float
        share : float in [0.0001, 0.9999]
            Of the units that shall be left whole.
        """
        return suggest_caps(self, epsilon, share, key)

    # ---------------------------------------------------------------- the budget

    def pay(self, event: Event, draw: Callable[[], Any], key: str | None) -> tuple[Any, bool]:
        """Spend for what ``draw`` reads, or give again what is recorded, and whether it was that.

        What fails without data fails unpaid.
        """
        if key is None or not self.scope.answered(event, key=key):
            self.source.ready()
        drawn: list[Any] = []

        def once() -> Any:
            drawn.append(draw())
            return drawn[0]

        return self.scope.spend(event, once, key=key), not drawn

    def spent(self) -> dict[str, Any]:
        """What is spent of the budget."""
        return self.scope.spent()

    def remaining(self) -> dict[str, Any]:
        """What is left for one more release."""
        return self.scope.remaining()

    def history(self) -> Any:
        """The records of the ledger."""
        return self.scope.history()


def _caps(what: str, unit: object, **given: object) -> dict[str, Any]:
    """The caps that were given, checked."""
    step = "It is the most that may count of one unit."
    caps = {
        name: check.whole(what, name, cap, at_least=1, at_most=MOST[name], next_step=step)
        for name, cap in given.items()
        if cap is not None
    }
    for name, cap in caps.items():
        if unit is None and cap != 1:
            step = "Name the unit's columns, or leave the caps out."
            check.refuse(what, name, "1 where a row is the unit", cap, step)
    return caps


def dataset(
    source: Any,
    *,
    unit: str | Sequence[str] | None,
    budget: Budget | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    name: str | Sequence[str] = "default",
    renews: str | None = None,
    neighbours: str = "add-remove",
    size: int | None = None,
    max_groups: int | None = None,
    max_rows: int | None = None,
    types: Mapping[str, str] | None = None,
    delimiter: str | None = None,
    quote: str | None = '"',
    header: bool | None = None,
    encoding: str = "utf-8",
    memory_limit: str = "4GB",
    threads: int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    debug: bool = False,
) -> Dataset:
    """A table to ask questions of, privately.

    Parameters
    ----------
    source : path, list of paths, frame, relation or table
        Parquet, CSV or JSON files, or (DuckDB database, table name); a pandas, Polars or Arrow table; a DuckDB
        relation or an Ibis table of a stored table; a PySpark DataFrame. All but Spark's are evaluated by an embedded
        DuckDB.
    unit : str, sequence of str, or None
        The columns that tell whose a row is: what is protected is everything one such unit contributes. None: each row
        is a unit of its own.
    budget : Budget, optional
        What may be spent in all. Left out where the ledger has it already.
    ledger : path, postgresql URL or Ledger, optional
        Where spending is recorded. Without one the budget lives in memory and is lost when the process ends.
    name : str or sequence of str
        Of the budget in the ledger: the same name is the same budget.
    renews : {None, "day", "month", "year"}
        When the budget begins anew.
    neighbours : "add-remove" or "substitute"
        Whether data with one unit more or less are to look alike, or data with one unit replaced by another.
    size : int, optional
        With "substitute": the number of units, which is public then. Means of columns that are never null need less
        noise with it.
    max_groups, max_rows : int, optional
        How much of one unit counts: groups, and rows in each group. Without ``max_rows`` a unit has one value in each
        group: questions say which with ``per_unit``, means are of the units' own means.
    types, delimiter, quote, header, encoding, memory_limit, threads, temp_directory, debug
        See :meth:`inbounds.tables.Source.open`.
    """
    check.choice("dataset", "neighbours", neighbours, NEIGHBOURS)
    if size is not None:
        if neighbours != "substitute":
            step = 'Leave it out, or pass neighbours="substitute".'
            check.refuse("dataset", "size", "left out where units may be added and removed", size, step)
        size = check.whole("dataset", "size", size, at_least=1, at_most=2**40)
    opened = Source.open(
        source,
        types=types,
        delimiter=delimiter,
        quote=quote,
        header=header,
        encoding=encoding,
        memory_limit=memory_limit,
        threads=threads,
        temp_directory=temp_directory,
        debug=debug,
    )
    columns = None if unit is None else column_names("dataset", "unit", unit)
    if budget is None and ledger is None:
        raise ParameterError(
            "dataset: budget must be given; got None. As budget=ib.Budget(epsilon=1), or ledger= one that has it."
        )
    if budget is not None and not isinstance(budget, Budget):
        check.refuse("dataset", "budget", "a Budget", budget, "As ib.Budget(epsilon=1).", ParameterTypeError)
    Request({"n": Units()}, unit=columns).check(opened.schema)
    caps: dict[str, Any] = {"max_groups": None, "max_rows": None}
    caps |= _caps("dataset", unit, max_groups=max_groups, max_rows=max_rows)
    book = (
        ledger
        if isinstance(ledger, Ledger)
        else Ledger.open(":memory:" if ledger is None else ledger, create=budget is not None)
    )
    scope = book.scope(name, budget=budget, renews=renews)
    return Dataset(opened, scope, columns, neighbours, size, **caps)

"""Parts of a condition that a reader may use to leave out rows: comparisons of stored whole numbers and dates.

They are necessary for the condition, by three-valued logic: a row that does not meet one of them does not meet the
condition. What is read is then asked the whole condition, so a reader that uses none of them, or some, or all for only
some rows, gives the same answers. Proof page: ``docs/proofs/engines.md``, statement 6.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from inbounds.tables.expressions import Column, Compare, Expression, IsIn, Literal, Logic
from inbounds.tables.kinds import Kind, Schema, fits

__all__ = ["Bare", "necessary"]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TURNED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Bare:
    """``column op value``; the value is of the column's kind."""

    column: str
    op: str
    value: int | dt.date

    def of(self, value: Any) -> Any:
        """The comparison for a value, or for a column of an engine."""
        return _COMPARE[self.op](value, self.value)


def necessary(condition: Expression | None, schema: Schema) -> tuple[Bare, ...]:
    """The comparisons without which a condition is not met."""
    return () if condition is None else tuple(_necessary(condition, schema))


def _necessary(condition: Expression, schema: Schema) -> Iterator[Bare]:
    if isinstance(condition, Logic) and condition.op == "and":
        yield from _necessary(condition.left, schema)
        yield from _necessary(condition.right, schema)
    elif isinstance(condition, Compare) and condition.op in _TURNED:
        left, op, right = condition.left, condition.op, condition.right
        if isinstance(left, Literal):
            left, op, right = right, _TURNED[op], left
        if isinstance(left, Column) and isinstance(right, Literal) and _stored(left, right.value, schema):
            yield Bare(left.name, op, right.value)
    elif isinstance(condition, IsIn) and isinstance(condition.of, Column):
        of, values = condition.of, condition.values
        if values and all(_stored(of, value, schema) for value in values):
            yield from (Bare(of.name, ">=", min(values)), Bare(of.name, "<=", max(values)))


def _stored(column: Column, value: object, schema: Schema) -> bool:
    """Whether the comparison is one of whole numbers, or of days."""
    kind = schema[column.name]
    if kind is Kind.INTEGER:
        return type(value) is int and fits(value)
    return kind is Kind.DATE and type(value) is dt.date

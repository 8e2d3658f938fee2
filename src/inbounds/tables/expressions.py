"""Conditions and derived columns: a closed grammar, built from :func:`inbounds.col`.

>>> from inbounds.tables import col
>>> adult = (col("age") >= 18) & ~col("ward").is_in(["X", "Y"])
>>> print(adult)
(age >= 18 and not ward in ['X', 'Y'])

An expression is checked against the table's public columns before anything is read, becomes the same query on every
engine, and has a meaning in plain Python (:meth:`Expression.evaluate`) that all of them share:

* A null makes a comparison, an ``is_in`` or arithmetic null; ``&``, ``|`` and ``~`` follow SQL's three-valued logic;
  a row is kept only where the condition is true. NaN is null.
* ``+``, ``-`` and ``*`` are float64 arithmetic, also on whole numbers: nothing overflows or fails, and beyond 2^53 the
  result is the nearest float64. Whole numbers are compared exactly with whole numbers, whatever their size; other
  numbers as float64.
* Text is compared for equality only, character by character: engines disagree about order and case beyond ASCII.
* Parts of a time with a zone are those in UTC.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn

from inbounds import _checks as check
from inbounds.errors import InboundsError, ParameterError, ParameterTypeError
from inbounds.tables.exact import divide, divide_small, integer, real
from inbounds.tables.kinds import (
    DAY,
    LONGEST,
    Kind,
    Schema,
    extra,
    find,
    fits,
    fits_text,
    literal_kind,
    ordinary,
    plain,
)

if TYPE_CHECKING:
    from narwhals import Expr

__all__ = ["Expression", "Scope", "as_number", "calendar", "col", "fault", "from_json"]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_PARTS = ("year", "month", "day", "weekday", "hour")
_MISSING = ("NoneType", "NAType", "NaTType")  # of Python and pandas
_DEEPEST = 100  # far from where Python, Narwhals or an engine gives up
_MOST_PIECES = 2000  # as a query is written out


@dataclass(frozen=True)
class Scope:
    """Where an expression is compiled: the table's schema, and the name each column has inside the query.

    ``made`` has columns of the query for parts of dates that were computed before, by their JSON as text.
    """

    schema: Schema
    names: Mapping[str, str]
    made: Mapping[str, str] = field(default_factory=dict)


def as_number(expression: Expr, kind: Kind) -> Expr:
    """A plain column as float64: see :func:`inbounds.tables.kinds.to_number`."""
    nw = extra("narwhals")
    if kind.real:
        return expression
    if kind is Kind.BOOLEAN:
        expression = expression.cast(nw.Int64)
    number = expression.cast(nw.Float64)
    return number / real(1e6) if kind in (Kind.DATETIME, Kind.INSTANT) else number


_ELSEWHERE = "Compute it where the table is made, as a column of its own."


def _refused(operator: str, step: str) -> Callable[..., NoReturn]:
    """What is no part of the language, as it has no value for everything, or not the same on every engine."""

    def refuse(*_: object) -> NoReturn:
        needs = "one of == != < <= > >= & | ~ + - *"
        check.refuse("condition", "operator", needs, operator, step, ParameterTypeError)

    return refuse


class Expression:
    """A condition or a derived column. Built from :func:`inbounds.col` with operators; frozen."""

    _depth: int
    _pieces: int

    __hash__ = object.__hash__
    __array_ufunc__ = None  # so that NumPy leaves its own operators to those below

    def __post_init__(self) -> None:
        """Refuse what is too large when it is built, since engines would when they are asked."""
        parts = self._parts()
        settle = object.__setattr__
        settle(self, "_depth", 1 + max((part._depth for part in parts), default=0))
        settle(self, "_pieces", self._written(parts))
        if self._depth > _DEEPEST or self._pieces > _MOST_PIECES:
            raise ParameterError(
                f"condition: an expression must have at most {_MOST_PIECES} pieces, inside each other at most "
                f"{_DEEPEST} deep; this one has more. Use is_in for many constants, or join the pieces in pairs."
            )

    def _written(self, parts: list[Expression]) -> int:
        """Its size where it is written out as a query."""
        return 1 + sum(part._pieces for part in parts)

    def kind(self, schema: Schema) -> Kind:
        """What the expression holds; every column and type in it is checked."""
        raise NotImplementedError

    def narwhals(self, scope: Scope) -> Expr:
        """The expression in the engines' common language, in its plain form."""
        raise NotImplementedError

    def evaluate(self, row: Mapping[str, Any], schema: Schema) -> Any:
        """The plain value for one row in Python, None for null: what every engine must agree with."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """A description that :func:`inbounds.tables.from_json` turns back."""
        raise NotImplementedError

    def columns(self) -> frozenset[str]:
        """The names of the table's columns that it reads."""
        return frozenset().union(*(part.columns() for part in self._parts()))

    def substitute(self, columns: Mapping[str, Expression]) -> Expression:
        """The same with some columns replaced by expressions."""
        changed = {
            field.name: value.substitute(columns)
            for field in fields(self)  # type: ignore[arg-type]
            if isinstance(value := getattr(self, field.name), Expression)
        }
        return replace(self, **changed) if changed else self  # type: ignore[type-var]

    def _parts(self) -> list[Expression]:
        values = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return [value for value in values if isinstance(value, Expression)]

    def __bool__(self) -> NoReturn:
        raise ParameterTypeError(
            f"condition: {self} must be combined with &, | and ~, each side in parentheses; got Python's and, or, not, "
            "if or a chain of comparisons. Write (a) & (b) for a and b, and x.between(low, high) for low <= x <= high."
        )

    def __repr__(self) -> str:
        return f"<{self}>"

    def __eq__(self, other: object) -> Compare:  # type: ignore[override]
        return Compare("==", self, _operand(other))

    def __ne__(self, other: object) -> Compare:  # type: ignore[override]
        return Compare("!=", self, _operand(other))

    def __lt__(self, other: object) -> Compare:
        return Compare("<", self, _operand(other))

    def __le__(self, other: object) -> Compare:
        return Compare("<=", self, _operand(other))

    def __gt__(self, other: object) -> Compare:
        return Compare(">", self, _operand(other))

    def __ge__(self, other: object) -> Compare:
        return Compare(">=", self, _operand(other))

    def __and__(self, other: object) -> Logic:
        return Logic("and", self, _operand(other))

    def __or__(self, other: object) -> Logic:
        return Logic("or", self, _operand(other))

    def __invert__(self) -> Not:
        return Not(self)

    def __add__(self, other: object) -> Arithmetic:
        return Arithmetic("+", self, _operand(other))

    def __radd__(self, other: object) -> Arithmetic:
        return Arithmetic("+", _operand(other), self)

    def __sub__(self, other: object) -> Arithmetic:
        return Arithmetic("-", self, _operand(other))

    def __rsub__(self, other: object) -> Arithmetic:
        return Arithmetic("-", _operand(other), self)

    def __mul__(self, other: object) -> Arithmetic:
        return Arithmetic("*", self, _operand(other))

    def __rmul__(self, other: object) -> Arithmetic:
        return Arithmetic("*", _operand(other), self)

    def __neg__(self) -> Arithmetic:
        return Arithmetic("*", Literal(-1), self)

    __truediv__ = __rtruediv__ = _refused("/", "Multiply by a constant, as 0.5 for / 2.")
    __floordiv__ = __rfloordiv__ = _refused("//", _ELSEWHERE)
    __mod__ = __rmod__ = _refused("%", _ELSEWHERE)
    __pow__ = __rpow__ = _refused("**", "Multiply it by itself, as x * x.")
    __xor__ = __rxor__ = _refused("^", "Write (a & ~b) | (~a & b).")
    __abs__ = _refused("abs", _ELSEWHERE)

    def is_null(self) -> IsNull:
        """Whether there is no value; NaN counts as none. Never null itself."""
        return IsNull(self)

    def is_in(self, values: Iterable[object]) -> IsIn:
        """Whether the value is one of some constants."""
        if isinstance(values, str | bytes | Expression) or not isinstance(values, Iterable):
            check.refuse("is_in", "values", "a list of constants", values, "", ParameterTypeError)
        return IsIn(self, tuple(_literal(value).value for value in values))

    def between(self, lower: object, upper: object) -> Logic:
        """Whether the value lies in [lower, upper]."""
        return (self >= lower) & (self <= upper)

    def fill_null(self, value: object) -> FillNull:
        """The value, or a constant of the same kind where there is none."""
        return FillNull(self, _literal(value))

    def year(self) -> Part:
        """The year of a date or time, 1 to 9999."""
        return Part("year", self)

    def month(self) -> Part:
        """The month of a date or time, 1 to 12."""
        return Part("month", self)

    def day(self) -> Part:
        """The day of the month of a date or time, 1 to 31."""
        return Part("day", self)

    def weekday(self) -> Part:
        """The day of the week of a date or time, 1 (Monday) to 7 (Sunday)."""
        return Part("weekday", self)

    def hour(self) -> Part:
        """The hour of a time, 0 to 23."""
        return Part("hour", self)


def col(name: str) -> Column:
    """A column of the table, by name; the start of every condition.

    Examples
    --------
    >>> print((col("age") >= 18) & (col("visit").year() == 2024))
    (age >= 18 and year(visit) == 2024)
    """
    if not isinstance(name, str) or not name:
        check.refuse("col", "name", "the name of a column", name, "", ParameterTypeError)
    return Column(name)


def fault(expression: Expression, schema: Schema) -> Expression | None:
    """The innermost part whose kinds do not fit; None where all do."""
    for part in expression._parts():
        found = fault(part, schema)
        if found is not None:
            return found
    try:
        expression.kind(schema)
    except InboundsError:
        return expression
    return None


def calendar(expressions: Iterable[Expression]) -> Mapping[str, Expression]:
    """The years, months and days in these, by their JSON as text: deep expressions, that queries compute by themselves.

    Spark Connect cannot send a message that is much deeper.
    """
    found: dict[str, Expression] = {}
    for expression in expressions:
        if isinstance(expression, Part) and expression.part in ("year", "month", "day"):
            found[str(expression.to_json())] = expression
        found |= calendar(expression._parts())
    return found


def _literal(value: object) -> Literal:
    value = ordinary(value)
    if literal_kind(value) is Kind.OTHER:
        missing = (isinstance(value, float) and math.isnan(value)) or type(value).__name__ in _MISSING
        step = "Use is_null() for missing values." if missing else ""
        needs = "a finite number, text, a truth value, or a date or a time of the years 1 to 9999 in UTC"
        check.refuse("condition", "constant", needs, value, step, ParameterTypeError)
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ParameterError("condition: constant must be text that can be written in UTF-8.") from None
        if not fits_text(value):
            step = "Longer text in a table counts as missing."
            check.refuse("condition", "constant", f"text of {LONGEST:,} bytes at most", f"{len(value):,} letters", step)
    return Literal(value)


def _operand(value: object) -> Expression:
    return value if isinstance(value, Expression) else _literal(value)


@dataclass(frozen=True, eq=False, repr=False)
class Column(Expression):
    """A column of the table."""

    name: str

    def kind(self, schema: Schema) -> Kind:
        kind = find("col", self.name, schema)
        if kind is Kind.OTHER:
            raise ParameterTypeError(
                f"col: {self.name!r} must hold numbers, text, truth values, dates or times; it holds {kind}. "
                "Convert the column."
            )
        return kind

    def narwhals(self, scope: Scope) -> Expr:
        expression: Expr = extra("narwhals").col(scope.names[self.name])
        return expression

    def evaluate(self, row: Mapping[str, Any], schema: Schema) -> Any:
        return plain(schema[self.name], row[self.name])

    def to_json(self) -> dict[str, Any]:
        return {"column": self.name}

    def columns(self) -> frozenset[str]:
        return frozenset({self.name})

    def substitute(self, columns: Mapping[str, Expression]) -> Expression:
        return columns.get(self.name, self)

    def __str__(self) -> str:
        return self.name if self.name.isidentifier() else repr(self.name)


@dataclass(frozen=True, eq=False, repr=False)
class Literal(Expression):
    """A constant."""

    value: Any

    def kind(self, schema: Schema) -> Kind:
        return literal_kind(self.value)

    def narwhals(self, scope: Scope) -> Expr:
        nw = extra("narwhals")
        kind = literal_kind(self.value)
        value = plain(kind, self.value)
        if kind is Kind.REAL:
            return real(value)
        if kind is Kind.WIDE:
            value = str(value)
        expression: Expr = integer(value) if kind is Kind.INTEGER or kind.temporal else nw.lit(value)
        return expression

    def evaluate(self, row: Mapping[str, Any], schema: Schema) -> Any:
        return plain(literal_kind(self.value), self.value)

    def to_json(self) -> dict[str, Any]:
        if isinstance(self.value, dt.datetime):
            return {"time": self.value.isoformat()}
        if isinstance(self.value, dt.date):
            return {"date": self.value.isoformat()}
        return {"value": self.value}

    def __str__(self) -> str:
        return self.value.isoformat() if isinstance(self.value, dt.date) else repr(self.value)


def _common(left: Kind, right: Kind, same: bool) -> Kind | None:
    """In which form two kinds are compared, for equality (``same``) or order; None where they cannot be."""
    if left.numeric and right.numeric:
        if left is right is Kind.INTEGER:
            return Kind.INTEGER
        # As digits, so that ids of 64 unsigned bits are told apart; as float64 two of them may be equal.
        return Kind.REAL if left.real or right.real else Kind.WIDE
    if left is right and left in (Kind.TEXT, Kind.BOOLEAN):
        return left if same else None
    if left is right and left.temporal:
        return left
    if Kind.DATE in (left, right) and left.temporal and right.temporal:
        return Kind.DATETIME  # a date is its midnight
    return None


def _in_form(expression: Expr, kind: Kind, form: Kind) -> Expr:
    if form is Kind.REAL:
        return as_number(expression, kind)
    if form is Kind.WIDE and kind is Kind.INTEGER:
        return expression.cast(extra("narwhals").String)
    if form is Kind.DATETIME and kind is Kind.DATE:
        return expression * integer(DAY)
    return expression


def _beyond(side: Expression, other: Kind) -> bool:
    """Whether it is a constant above or below all that int64 holds, which the other side is."""
    return isinstance(side, Literal) and other is Kind.INTEGER and not fits(side.value)


def _size(text: Expr) -> Expr:
    """How many digits a whole number in digits has; negative for one below zero."""
    nw = extra("narwhals")
    length = text.str.len_chars().cast(nw.Int64)
    expression: Expr = nw.when(text.str.starts_with("-")).then(integer(1) - length).otherwise(length)
    return expression


def _less(left: Expr, right: Expr, constant: int | None) -> Expr:
    """Whether a whole number in digits is less than another; one of the two may be a known constant.

    The one of more digits is further from zero, and of as many digits the later text is. Null where one side is: then
    its size is null, and of what is joined nothing decides alone.
    """
    a, b = _size(left), _size(right)
    if constant is not None:
        return (a < b) | ((a == b) & (right < left if constant < 0 else left < right))
    zero = integer(0)
    return (a < b) | ((a == b) & (((a > zero) & (left < right)) | ((a < zero) & (right < left))))


def _value_in_form(value: Any, kind: Kind, form: Kind) -> Any:
    if value is None:
        return None
    if form is Kind.REAL:
        return float(value)
    return value * DAY if form is Kind.DATETIME and kind is Kind.DATE else value


@dataclass(frozen=True, eq=False, repr=False)
class Compare(Expression):
    """Two sides compared."""

    op: str
    left: Expression
    right: Expression

    def _form(self, schema: Schema) -> Kind:
        left, right = self.left.kind(schema), self.right.kind(schema)
        form = _common(left, right, self.op in ("==", "!="))
        if form is None:
            requirement = f"made of sides that {self.op} can compare"
            raise ParameterTypeError(f"condition: {self} must be {requirement}; it compares {left} with {right}.")
        return form

    def kind(self, schema: Schema) -> Kind:
        self._form(schema)
        return Kind.BOOLEAN

    def narwhals(self, scope: Scope) -> Expr:
        form = self._form(scope.schema)
        if form is Kind.WIDE and self.op not in ("==", "!="):
            return self._ordered(scope)
        left, right = (_in_form(s.narwhals(scope), s.kind(scope.schema), form) for s in (self.left, self.right))
        expression: Expr = _COMPARE[self.op](left, right)
        return expression

    def _ordered(self, scope: Scope) -> Expr:
        """The order of whole numbers of which one may be beyond int64."""
        sides = (self.left, self.right)
        kinds = [side.kind(scope.schema) for side in sides]
        for constant, other, kind, turned in ((*sides[::-1], kinds[0], False), (*sides, kinds[1], True)):
            if _beyond(constant, kind):
                within = (constant.value, 0) if turned else (0, constant.value)  # type: ignore[attr-defined]
                value = other.narwhals(scope)
                return value == value if _COMPARE[self.op](*within) else value != value
        left, right = (_in_form(s.narwhals(scope), kind, Kind.WIDE) for s, kind in zip(sides, kinds, strict=True))
        known = next((side.value for side in sides if isinstance(side, Literal)), None)
        less = _less(left, right, known) if self.op in ("<", ">=") else _less(right, left, known)
        return less if self.op in ("<", ">") else ~less

    def evaluate(self, row: Mapping[str, Any], schema: Schema) -> Any:
        form = self._form(schema)
        left, right = (_value_in_form(s.evaluate(row, schema), s.kind(schema), form) for s in (self.left, self.right))
        return None if left is None or right is None else _COMPARE[self.op](left, right)

    def to_json(self) -> dict[str, Any]:
        return {"op": self.op, "of": [self.left.to_json(), self.right.to_json()]}

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


def _needs_condition(part: Expression, schema: Schema, word: str) -> None:
    kind = part.kind(schema)
    if kind is not Kind.BOOLEAN:
        raise ParameterTypeError(f"condition: {part} must be a condition to be joined by {word}; it holds {kind}.")


@dataclass(frozen=True, eq=False, repr=False)
class Logic(Expression):
    """Two conditions joined by ``and`` or ``or``."""

    op: str
    left: Expression
    right: Expression

    def kind(self, schema: Schema) -> Kind:
        for part in (self.left, self.right):
            _needs_condition(part, schema, "&" if self.op == "and" else "|")
        return Kind.BOOLEAN

    def narwhals(self, scope: Scope) -> Expr:
        left, right = self.left.narwhals(scope), self.right.narwhals(scope)
        return left & right if self.op == "and" else left | right

    def evaluate(self, row: Mapping[str, Any], schema: Schema) -> Any:
        values = (self.left.evaluate(row, schema), self.right.evaluate(row, schema))
        decides = self.op == "or"  # a side that decides alone, whatever the other is
        if decides in values:
            return decides
        return None if None in values else not decides

    def to_json(self) -> dict[str, Any]:
        return {"op": self.op, "of": [self.left.to_json(), self.right.to_json()]}

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True, eq=False, repr=False)
class Not(Expression):
    """The opposite of a condition."""

    of: Expression

    def kind(self, schema: Schema) -> Kind:
        _needs_condition(self.of, schema, "~")
        return Kind.BOOLEAN

    def narwhals(self, scope: Scope) -> Expr:
        return ~self.of.narwhals(scope)

    def evaluate(self, row: Mapping[str, Any], schema: Schema) -> Any:
        value = self.of.evaluate(row, schema)
        return None if value is None else not value

    def to_json(self) -> dict[str, Any]:
        return {"op": "not", "of": [self.of.to_json()]}

    def __str__(self) -> str:
        return f"not {self.of}"


@dataclass(frozen=True, eq=False, repr=False)
class IsNull(Expression):
    """Whether a value is missing."""

    of: Expression

    def kind(self, schema: Schema) -> Kind:
        self.of.kind(schema)
        return Kind.BOOLEAN

    def narwhals(self, scope: Scope) -> Expr:
        return self.of.narwhals(scope).is_null()

    def evaluate(self, row: Mapping[str, Any], schema: Schema) -> Any:
        return self.of.evaluate(row, schema) is None

    def to_json(self) -> dict[str, Any]:
        return {"op": "is_null", "of": [self.of.to_json()]}

    def __str__(self) -> str:
        return f"{self.of} is null"


@dataclass(frozen=True, eq=False, repr=False)
class IsIn(Expression):
    """Whether a value is one of some constants; all are compared in the form of the column."""

    of: Expression
    values: tuple[Any, ...]

    def kind(self, schema: Schema) -> Kind:
        kind = self.of.kind(schema)
        for value in self.values:
            given = literal_kind(value)
            whole = kind in (Kind.INTEGER, Kind.WIDE) and given in (Kind.INTEGER, Kind.WIDE)
            if not (given is kind or whole or (kind.real and given.numeric)):
                raise ParameterTypeError(
                    f"is_in: values must be {kind}, as {self.of} is; got {value!r} ({given}). Convert the constants."
                )
        return Kind.BOOLEAN

    def _plain(self, schema: Schema) -> list[Any]:
        kind = self.of.kind(schema)
        return [plain(kind, value) for value in self.values]

    def narwhals(self, scope: Scope) -> Expr:
        kind, values = self.of.kind(scope.schema), self._plain(scope.schema)
        if kind is Kind.INTEGER:
            values = [value for value in values if fits(value)]
        if kind is Kind.WIDE:
            values = [str(value) for value in values]
        expression = self.of.narwhals(scope)
        if not values:  # an empty list has no type in some engines
            return expression != expression
        return expression.is_in(values)

    def evaluate(self, row: Mapping[str, Any], schema: Schema) -> Any:
        value = self.of.evaluate(row, schema)
        return None if value is None else value in self._plain(schema)

    def to_json(self) -> dict[str, Any]:
        return {"op": "is_in", "of": [self.of.to_json()], "values": [Literal(v).to_json() for v in self.values]}

    def __str__(self) -> str:
        shown = ", ".join(str(Literal(value)) for value in self.values[:5])
        return f"{self.of} in [{shown}{', ...' if len(self.values) > 5 else ''}]"


@dataclass(frozen=True, eq=False, repr=False)
class Arithmetic(Expression):
    """A sum, difference or product, as float64; NaN, as from inf - inf, is null."""

    op: str
    left: Expression
    right: Expression

    def kind(self, schema: Schema) -> Kind:
        for side in (self.left, self.right):
            kind = side.kind(schema)
            if not kind.numeric:
                raise ParameterTypeError(f"{self}: {side} must hold numbers for {self.op}; it holds {kind}.")
        return Kind.REAL

    def narwhals(self, scope: Scope) -> Expr:
        nw = extra("narwhals")
        result = self._with_nan(scope)
        expression: Expr = nw.when(~result.is_nan()).then(result)
        return expression

    def _with_nan(self, scope: Scope) -> Expr:
        """NaN stays NaN in what is computed from it; to look for it in every step would double the query each time."""
        sides = [
            side._with_nan(scope)
            if isinstance(side, Arithmetic)
            else as_number(side.narwhals(scope), side.kind(scope.schema))
            for side in (self.left, self.right)
        ]
        expression: Expr = _ARITHMETIC[self.op](*sides)
        return expression

    def _written(self, parts: list[Expression]) -> int:
        return 2 * (1 + sum(part._pieces // (2 if isinstance(part, Arithmetic) else 1) for part in parts))

    def evaluate(self, row: Mapping[str, Any], schema: Schema) -> Any:
        left, right = (side.evaluate(row, schema) for side in (self.left, self.right))
        if left is None or right is None:
            return None
        return plain(Kind.REAL, _ARITHMETIC[self.op](float(left), float(right)))

    def to_json(self) -> dict[str, Any]:
        return {"op": self.op, "of": [self.left.to_json(), self.right.to_json()]}

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True, eq=False, repr=False)
class Part(Expression):
    """A part of a date or time, by whole-number arithmetic: no engine's calendar or time zone is asked."""

    part: str
    of: Expression

    def kind(self, schema: Schema) -> Kind:
        kind = self.of.kind(schema)
        if not kind.temporal or (self.part == "hour" and kind is Kind.DATE):
            wanted = "times" if self.part == "hour" else "dates or times"
            raise ParameterTypeError(f"{self.part}: {self.of} must hold {wanted}; it holds {kind}.")
        return Kind.INTEGER

    def narwhals(self, scope: Scope) -> Expr:
        nw = extra("narwhals")
        if str(self.to_json()) in scope.made:
            made: Expr = nw.col(scope.made[str(self.to_json())])
            return made
        value = self.of.narwhals(scope)
        if self.part == "hour":
            return divide_small(value % integer(DAY), DAY // 24)
        days = value if self.of.kind(scope.schema) is Kind.DATE else divide(value, integer(DAY))
        if self.part == "weekday":
            return (days + integer(3)) % integer(7) + integer(1)  # 1970-01-01 was a Thursday
        # Neri and Schneider's calendar: years begin in March, so that a leap day comes last; each step is used once or
        # twice, so that the expression stays small. All numbers are below 2^52, and none is negative from year 1 on.
        quarters = (days + integer(719_468)) * integer(4) + integer(3)  # quarter days since 0000-03-01
        in_century = divide_small(quarters % integer(146_097), 4) * integer(4) + integer(3)
        in_year = in_century * integer(2_939_745)  # in units of 1 / 2^32 of a year
        day = divide_small(in_year % integer(2**32), 2_939_745 * 4)  # 0 is the first of March, 306 that of January
        month_and_day = day * integer(2141) + integer(197_913)  # in units of 1 / 2^16 of a month
        late = nw.when(day >= integer(306))
        result: Expr
        if self.part == "day":
            result = divide_small(month_and_day % integer(2**16), 2141) + integer(1)
        elif self.part == "month":
            result = divide_small(month_and_day, 2**16) - late.then(integer(12)).otherwise(integer(0))
        else:
            year = divide_small(quarters, 146_097) * integer(100) + divide_small(in_year, 2**32)
            result = year + late.then(integer(1)).otherwise(integer(0))
        return result

    def evaluate(self, row: Mapping[str, Any], schema: Schema) -> Any:
        value = self.of.evaluate(row, schema)
        if value is None:
            return None
        unit = {"days": value} if self.of.kind(schema) is Kind.DATE else {"microseconds": value}
        time = dt.datetime(1970, 1, 1) + dt.timedelta(**unit)
        return time.isoweekday() if self.part == "weekday" else getattr(time, self.part)

    def to_json(self) -> dict[str, Any]:
        return {"op": self.part, "of": [self.of.to_json()]}

    def __str__(self) -> str:
        return f"{self.part}({self.of})"


@dataclass(frozen=True, eq=False, repr=False)
class FillNull(Expression):
    """A value, or a constant where it is missing."""

    of: Expression
    value: Literal

    def kind(self, schema: Schema) -> Kind:
        kind, given = self.of.kind(schema), self.value.kind(schema)
        kind = Kind.REAL if kind is Kind.NULL else kind
        whole = kind is Kind.WIDE and given is Kind.INTEGER
        if not (given is kind or whole or (kind is Kind.REAL and given.numeric)):
            raise ParameterTypeError(f"fill_null: value must be {kind}, as {self.of} is; got {self.value} ({given}).")
        return kind

    def _filler(self, kind: Kind) -> Any:
        return plain(kind, self.value.value)

    def narwhals(self, scope: Scope) -> Expr:
        kind = self.kind(scope.schema)
        value = self._filler(kind)
        filler = real(value) if kind is Kind.REAL else Literal(str(value) if kind is Kind.WIDE else value)
        if isinstance(filler, Literal):
            filler = filler.narwhals(scope)
        return self.of.narwhals(scope).fill_null(filler)

    def evaluate(self, row: Mapping[str, Any], schema: Schema) -> Any:
        value = self.of.evaluate(row, schema)
        return self._filler(self.kind(schema)) if value is None else value

    def to_json(self) -> dict[str, Any]:
        return {"op": "fill_null", "of": [self.of.to_json(), self.value.to_json()]}

    def __str__(self) -> str:
        return f"fill_null({self.of}, {self.value})"


def from_json(description: Any) -> Expression:
    """The expression that :meth:`Expression.to_json` described; anything else is refused."""
    try:
        return _from_json(description)
    except (KeyError, TypeError, ValueError, RecursionError):
        check.refuse("from_json", "description", "what an expression's to_json gives", description, "")


def _from_json(description: Any) -> Expression:
    if "column" in description:
        return col(description["column"])
    if "op" not in description:
        return _constant(description)
    op = description["op"]
    of = [_from_json(part) for part in description["of"]]
    if op in _COMPARE:
        return Compare(op, *of)
    if op in _ARITHMETIC:
        return Arithmetic(op, *of)
    if op in ("and", "or"):
        return Logic(op, *of)
    if op in _PARTS:
        return Part(op, *of)
    if op == "is_in":
        (operand,) = of
        return IsIn(operand, tuple(_constant(value).value for value in description["values"]))
    if op == "fill_null":
        operand, value = of
        return operand.fill_null(_constant(value.to_json()).value)
    return {"not": Not, "is_null": IsNull}[op](*of)


def _constant(description: Any) -> Literal:
    if "time" in description:
        return _literal(dt.datetime.fromisoformat(description["time"]))
    if "date" in description:
        return _literal(dt.date.fromisoformat(description["date"]))
    return _literal(description["value"])

"""Conditions and derived columns as text: what people type where there is no Python.

>>> from inbounds.tables.conditions import parse
>>> print(parse("age >= 18 and ward in ['A', 'B'] and year(visit) == 2024"))
((age >= 18 and ward in ['A', 'B']) and year(visit) == 2024)

The text has Python's form and is read by Python's parser, but never run: a closed list of pieces is turned into what
:func:`inbounds.col` builds, and every other piece is refused by name.
"""

from __future__ import annotations

import ast
import datetime as dt
import difflib
import functools
import io
import keyword
import math
import re
import tokenize
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from inbounds import _checks as check
from inbounds.errors import ParameterError, ParameterTypeError
from inbounds.tables.expressions import Arithmetic, Compare, Expression, Logic, Not, _literal, col
from inbounds.tables.kinds import Kind

__all__ = ["constant", "parse"]

_LONGEST = 10_000  # characters: deeper nesting than fits in them is no danger to Python's parser
_PIECES = 200  # and so deep can an expression be
_SHOWN = 60

_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_PARTS = ("year", "month", "day", "weekday", "hour")
#: The functions, as they are written.
_FUNCTIONS = {
    **{part: f"{part}(COLUMN)" for part in _PARTS},
    "is_null": "is_null(COLUMN)",
    "fill_null": "fill_null(COLUMN, CONSTANT)",
    "between": "between(COLUMN, LOWER, UPPER)",
    "date": 'date("2024-01-31")',
    "time": 'time("2024-01-31 12:00")',
    "col": 'col("the name of a column")',
}
_ALLOWED = (
    "Allowed are columns, numbers, texts in quotes, True, False; == != < <= > >=, in [...], and, or, not, + - *; "
    + ", ".join(_FUNCTIONS.values())
    + "."
)
_WORDS: dict[type[ast.AST], str] = {
    ast.Call: "a call",
    ast.Attribute: "a dot",
    ast.Subscript: "an index",
    ast.Lambda: "a lambda",
    ast.IfExp: "an if",
    ast.NamedExpr: "an assignment",
    ast.JoinedStr: "a text that computes",
    ast.Tuple: "several values",
    ast.List: "a list",
    ast.Set: "a set",
    ast.Dict: "a dictionary",
    ast.ListComp: "a loop",
    ast.SetComp: "a loop",
    ast.DictComp: "a loop",
    ast.GeneratorExp: "a loop",
    ast.Await: "an await",
    ast.Yield: "a yield",
    ast.YieldFrom: "a yield",
    ast.Starred: "a star",
}
#: What people write who know another language, and what it is here.
_HABITS = {"=": "==", "<>": "!=", "&&": "and", "&": "and", "||": "or", "|": "or", "!": "not", "~": "not"}
_OURS = ("and", "or", "not", "in", "True", "False", "None")


def parse(text: str) -> Expression:
    """A condition or a derived column from its text.

    Columns are named as they are, or ``col("any name")`` where a name is not a plain word. Chains like
    ``0 <= age < 18`` mean what they say.
    """
    if not isinstance(text, str):
        step = "As 'age >= 18'."
        check.refuse("condition", "a condition", "text", text, step, ParameterTypeError)
    line = text.strip()
    if not line:
        raise ParameterError("condition: a condition must not be empty. As 'age >= 18'.")
    if len(line) > _LONGEST:
        raise ParameterError(f"condition: a condition must have at most {_LONGEST} characters; got {len(line)}.")
    if "\n" in line:
        line = f"({line})"  # else it would end with its first line
    found = _Reader(line).read(_tree(line))
    if not found.columns():
        step = "Name one, as in 'age >= 18'."
        check.refuse("condition", "a condition", "about a column of the table at least", line, step)
    return found


def _tree(line: str) -> ast.expr:
    place = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what Python warns of, as doubtful escapes, is refused
            tree = ast.parse(line, mode="eval").body
            words = list(tokenize.generate_tokens(io.StringIO(line).readline))
        if not any(word.type == tokenize.COMMENT for word in words):
            return tree
        advice = "What follows # would not count. Texts stand in quotes, as in ward == 'A#1'."
    except SyntaxError as error:
        place = f" at character {error.offset}" if error.offset else ""
        advice = _habit(line)
    except (ValueError, MemoryError, RecursionError, tokenize.TokenError, Warning):
        advice = _ALLOWED
    raise ParameterError(f"condition: {_short(line)!r} cannot be read{place}. {advice}")


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _habit(line: str) -> str:
    """Advice, where a text that is no Python looks like another language."""
    for word in re.findall(r"\w+|[^\w\s]+", line):
        here = _HABITS.get(word) or (word.lower() if word in ("AND", "OR", "NOT", "IN") else None)
        if here is not None:
            return f"Write {here} for {word}."
        if word.lower() in ("between", "is", "like"):
            return f"{_FUNCTIONS['between']}, and {_FUNCTIONS['is_null']} for missing values, are there. {_ALLOWED}"
        if keyword.iskeyword(word) and word not in _OURS:
            return f'Write col("{word}") for a column of that name. {_ALLOWED}'
    return _ALLOWED


class _Reader:
    """From Python's tree to an expression; whatever is not named here is refused."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._pieces = 0

    def read(self, node: ast.expr) -> Expression:
        self._pieces += 1
        if self._pieces > _PIECES:
            raise ParameterError(f"condition: a condition must have at most {_PIECES} pieces; this one has more.")
        if isinstance(node, ast.Name):
            return col(self._shown(node))  # not node.id: Python writes some letters as others
        if isinstance(node, ast.Constant):
            return _literal(self._constant(node))
        if isinstance(node, ast.BoolOp):
            word = "and" if isinstance(node.op, ast.And) else "or"
            return functools.reduce(lambda a, b: Logic(word, a, b), map(self.read, node.values))
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        self._refuse(node)

    def _unary(self, node: ast.UnaryOp) -> Expression:
        if isinstance(node.op, ast.Not):
            return Not(self.read(node.operand))
        if isinstance(node.op, ast.USub):
            constant = isinstance(node.operand, ast.Constant)
            return _literal(self._constant(node)) if constant else -self.read(node.operand)
        self._refuse(node, "Write not for ~." if isinstance(node.op, ast.Invert) else "")

    def _binary(self, node: ast.BinOp) -> Expression:
        op = _ARITHMETIC.get(type(node.op))
        if op is None:
            word = {ast.BitAnd: "Write and for &.", ast.BitOr: "Write or for |."}.get(type(node.op), "")
            self._refuse(node, word)
        return Arithmetic(op, self.read(node.left), self.read(node.right))

    def _comparison(self, node: ast.Compare) -> Expression:
        """One comparison, or a chain of them, all of which must hold."""
        sides = [node.left, *node.comparators]
        pairs = [self._compare(node, op, *sides[i : i + 2]) for i, op in enumerate(node.ops)]
        return functools.reduce(lambda a, b: Logic("and", a, b), pairs)

    def _compare(self, node: ast.Compare, op: ast.cmpop, left: ast.expr, right: ast.expr) -> Expression:
        missing = [side for side in (left, right) if isinstance(side, ast.Constant) and side.value is None]
        if missing:
            self._refuse(node, "Write is_null(COLUMN), or not is_null(COLUMN).")
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(right, ast.List | ast.Tuple | ast.Set):
                self._refuse(right, "Write the constants in brackets, as in ward in ['A', 'B'].")
            found = self.read(left).is_in([self._constant(value) for value in right.elts])
            return found if isinstance(op, ast.In) else Not(found)
        if type(op) not in _COMPARE:
            self._refuse(node, "Write == for is, and != for is not.")
        return Compare(_COMPARE[type(op)], self.read(left), self.read(right))

    def _call(self, node: ast.Call) -> Expression:
        name = self._function(node)
        if name in ("date", "time"):
            return _literal(self._constant(node))
        if name == "col":
            given = self._constant(node.args[0])
            if not isinstance(given, str):
                self._refuse(node, f"As {_FUNCTIONS['col']}.")
            return col(given)
        of = self.read(node.args[0])
        made: dict[str, Callable[[], Expression]] = {
            "is_null": of.is_null,
            "fill_null": lambda: of.fill_null(self._constant(node.args[1])),
            "between": lambda: of.between(*map(self.read, node.args[1:])),
        }
        found: Expression = made[name]() if name in made else getattr(of, name)()
        return found

    def _function(self, node: ast.Call) -> str:
        """The name of a known function, which has as many arguments as it takes."""
        if not isinstance(node.func, ast.Name):
            dotted = isinstance(node.func, ast.Attribute) and node.func.attr in _FUNCTIONS
            self._refuse(node, f"As {_FUNCTIONS[node.func.attr]}." if dotted else "")  # type: ignore[attr-defined]
        name = node.func.id
        if name not in _FUNCTIONS:
            near = difflib.get_close_matches(name.lower(), _FUNCTIONS, n=1)
            self._refuse(node, f"Did you mean {_FUNCTIONS[near[0]]}?" if near else "")
        if len(node.args) != _FUNCTIONS[name].count(",") + 1 or node.keywords:
            self._refuse(node, f"As {_FUNCTIONS[name]}.")
        return name

    def _constant(self, node: ast.expr) -> Any:
        """A number, text, truth value, date or time."""
        if isinstance(node, ast.Constant) and type(node.value) in (bool, int, float, str):
            if isinstance(node.value, float) and not math.isfinite(node.value):
                self._refuse(node, "Write a finite number.")
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._constant(node.operand)
            if type(value) in (int, float):
                return -value
        if isinstance(node, ast.Call) and self._function(node) in ("date", "time"):
            name, value = self._function(node), self._constant(node.args[0])
            if isinstance(value, str):
                return constant(value, Kind.DATE if name == "date" else Kind.DATETIME)
        self._refuse(node, "A constant stands here." if not isinstance(node, ast.Constant) else "")

    def _shown(self, node: ast.AST) -> str:
        return ast.get_source_segment(self._line, node) or ""

    def _refuse(self, node: ast.AST, advice: str = "") -> NoReturn:
        piece = _short(self._shown(node))
        word = _WORDS.get(type(node), "")
        raise ParameterError(
            f"condition: {piece!r} must not be part of a condition{f': it is {word}' if word else ''}. "
            f"{advice or _ALLOWED}"
        )


def constant(text: str, kind: Kind) -> Any:
    """A constant of a kind from its text: 12, 0.5, true, 2024-01-31, 2024-01-31 12:00 (UTC for times with a zone)."""
    try:
        if kind.numeric:
            return float(text) if kind.real and not text.strip().lstrip("+-").isdigit() else int(text)
        if kind is Kind.BOOLEAN:
            return {"true": True, "false": False}[text.strip().lower()]
        if kind is Kind.DATE:
            return dt.date.fromisoformat(text.strip())
        if kind.temporal:
            time = dt.datetime.fromisoformat(text.strip())
            return time.replace(tzinfo=dt.UTC) if kind is Kind.INSTANT and time.tzinfo is None else time
    except (ValueError, KeyError):
        check.refuse("constant", "a constant here", _CONSTANTS[kind], text, "")
    return text


_CONSTANTS = {
    Kind.INTEGER: "a whole number, as 12",
    Kind.WIDE: "a whole number, as 12",
    Kind.REAL: "a number, as 0.5",
    Kind.NULL: "a number, as 0.5",
    Kind.BOOLEAN: "true or false",
    Kind.DATE: "a date, as 2024-01-31",
    Kind.DATETIME: "a time, as 2024-01-31 12:00",
    Kind.INSTANT: "a time, as 2024-01-31 12:00+00:00",
}

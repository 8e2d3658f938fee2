"""Conditions as text: what they mean, and that nothing else gets through."""

from __future__ import annotations

import builtins
import datetime as dt
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import inbounds as ib
from inbounds.errors import InboundsError, ParameterError
from inbounds.tables import Expression, Kind, col
from inbounds.tables.conditions import constant, parse

age, ward, visit = col("age"), col("ward"), col("visit")

SAME: dict[str, Any] = {
    "age >= 18": age >= 18,
    "  age>=18\n": age >= 18,
    "age == -1.5": age == -1.5,
    "age != -3": age != -3,
    "ward == 'A'": ward == "A",
    'ward == "it\'s"': ward == "it's",
    "smoker == True": col("smoker") == True,  # noqa: E712
    "smoker": col("smoker"),
    "not smoker": ~col("smoker"),
    "age >= 18 and ward == 'A'": (age >= 18) & (ward == "A"),
    "age >= 18\n  and\n  ward == 'A'": (age >= 18) & (ward == "A"),
    "a or b or c": (col("a") | col("b")) | col("c"),
    "a and not b or c": (col("a") & ~col("b")) | col("c"),
    "a and (b or c)": col("a") & (col("b") | col("c")),
    "ward in ['A', 'B']": ward.is_in(["A", "B"]),
    "ward in ('A',)": ward.is_in(["A"]),
    "age in {1, -2, 3.5}": age.is_in([1, -2, 3.5]),
    "ward not in ['A']": ~ward.is_in(["A"]),
    "year(visit) == 2024": visit.year() == 2024,
    "month(visit) + day(visit) * weekday(visit) > hour(visit)": (
        visit.month() + visit.day() * visit.weekday() > visit.hour()
    ),
    "is_null(age)": age.is_null(),
    "not is_null(age)": ~age.is_null(),
    "fill_null(age, -1) >= 0": age.fill_null(-1) >= 0,
    "fill_null(visit, date('2024-01-31')) < date('2024-02-01')": (
        visit.fill_null(dt.date(2024, 1, 31)) < dt.date(2024, 2, 1)
    ),
    "between(age, 18, 65)": age.between(18, 65),
    "between(visit, time('2024-01-31 12:00'), time('2024-02-01'))": visit.between(
        dt.datetime(2024, 1, 31, 12), dt.datetime(2024, 2, 1)
    ),
    "visit in [date('2024-01-31')]": visit.is_in([dt.date(2024, 1, 31)]),
    "col('first name') == 'x'": col("first name") == "x",
    "age * 2 - 1": age * 2 - 1,
    "-age": -age,
    "1 - age": 1 - age,
    "ª == 1": col("ª") == 1,  # Python's own parser would make it a
    "__class__ == 1": col("__class__") == 1,
    "größe > 1": col("größe") > 1,
}


@pytest.mark.parametrize("text", SAME)
def test_a_text_is_what_col_builds(text: str) -> None:
    assert parse(text).to_json() == SAME[text].to_json()


@pytest.mark.parametrize(
    "text",
    ["18 <= x < 65", "0 < x <= y < 4", "x == 1 or y >= 2 and not x > 3", "x in [1, 2] and y not in (0,)",
     "not x == y", "x + y * 2 - 3 > -x", "1 < x == y", "between(x, 1, y)"],
)  # fmt: skip
def test_a_text_means_what_python_means_by_it(text: str) -> None:
    schema = {"x": Kind.INTEGER, "y": Kind.INTEGER}
    expression = parse(text)
    assert expression.kind(schema) is Kind.BOOLEAN
    seen = set()
    for x in range(-1, 70, 3):
        for y in range(-1, 5):
            meant = eval(text, {"between": lambda a, b, c: b <= a <= c}, {"x": x, "y": y})
            assert expression.evaluate({"x": x, "y": y}, schema) is meant
            seen.add(meant)
    assert seen == {True, False}


HOSTILE = [
    "__import__('os').system('true')", "open('secret.txt')", "eval('1')", "exec('1')", "().__class__.__bases__",
    "age.__class__", "age.__class__.__mro__[1].__subclasses__()", "getattr(age, 'x')", "age()", "age[0]", "age.b.c",
    "lambda: age", "(lambda: age)()", "[a for a in age]", "{a: 1 for a in age}", "(a for a in age)", "age if a else b",
    "(age := 1)", "f'{age}'", "f'{open(1)}' == age", "age == b'x'", "age == 1j", "age == ...", "*age", "year(*age)",
    "year(age, b=1)", "year(**age)", "await age", "(yield age)", "age; b", "import os", "age = 1", "del age", "age, b",
    "{'a': age}", "{age}", "[age]", "age ** 2 > 1", "age / 2 > 1", "age // 2 > 1", "age % 2 == 0", "age << 9999999 > 1",
    "age @ b", "age & b", "age | b", "age ^ b", "~age", "+age == 1", "age is None", "age is b", "age == None",
    "None == age", "age in b", "age in 'abc'", "age in [b]", "age in [[1]]", "age in [open('x')]", "age in [None]",
    "age == 1e999", "age == -True", "age == -'x'", "age == '\\ud800'", "age == '\\d'", "col(age) == 1", "col('') == 1",
    "col(1) == 1", "date('2024-13-01') < age", "date(2024) < age", "date('x', 'y') < age", "time('noon') < age",
    "year() == 1", "year(age, 1) == 1", "fill_null(age) == 1", "fill_null(age, b) == 1", "between(age, 1) ",
    "1 == 1", "True", "'text'", "5", "", "   ", "age >=", "age >= 18)", "(age >= 18", "age 18", "'age",
    "age # >= 18", "ward == A#1", "age >= 18 # and ward == 'A'", "age\\", "\0", "age == '\0", "class == 1",
    "age == 'x\ny'", "print", "age==1\nimport os",
    "-" * 9_000 + "age", "not " * 2_000 + "age", "(" * 4_000, "[" * 4_000, "age" + "+age" * 2_000, "age" + ".b" * 4_000,
    "age" + "[0]" * 3_000, "age or " * 1_000 + "age", "age == " + "1" * 5_000, "a" * 10_001, "age<" * 2_000 + "age",
    "year(" * 150 + "age" + ")" * 150 + " or " + "year(" * 150 + "age" + ")" * 150,
]  # fmt: skip
PLAIN = ("print",)  # a column of that name


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_nothing_else_is_read_and_nothing_is_run(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def ran(*_: Any, **__: Any) -> Any:
        raise AssertionError("the text was run")

    text = HOSTILE[number]
    for place, name in ((builtins, "eval"), (builtins, "exec"), (builtins, "open"), (os, "system")):
        monkeypatch.setattr(place, name, ran)
    if text in PLAIN:
        assert parse(text).to_json() == {"column": text}
        return
    with pytest.raises(InboundsError) as refused:
        parse(text)
    message = str(refused.value)
    assert len(message) < 900
    assert message.startswith(("condition: ", "constant: ", "col: "))


@pytest.mark.parametrize(
    ("text", "piece", "advice"),
    [
        ("age >= 18 and open('x')", "\"open('x')\"", "Allowed are columns, numbers"),
        ("age = 18", "'age = 18'", "Write == for =."),
        ("age >= 18 AND b", "character 11", "Write and for AND."),
        ("age >= 18 && b", "character 12", "Write and for &&."),
        ("age <> 18", "'age <> 18'", "Write != for <>."),
        ("(age > 1) & b", "'(age > 1) & b'", "Write and for &."),
        ("~b", "'~b'", "Write not for ~."),
        ("age is None", "'age is None'", "Write is_null(COLUMN)"),
        ("age between 1 and 2", "character 5", "between(COLUMN, LOWER, UPPER)"),
        ("visit.year() == 1", "'visit.year()'", "As year(COLUMN)."),
        ("yaer(visit) == 1", "'yaer(visit)'", "Did you mean year(COLUMN)?"),
        ("year(visit, 1) == 1", "'year(visit, 1)'", "As year(COLUMN)."),
        ("ward in wards", "'wards'", "in brackets, as in ward in ['A', 'B']"),
        ("class == 1", "'class == 1'", 'Write col("class") for a column of that name.'),
        ("visit < date('soon')", "'soon'", "must be a date, as 2024-01-31"),
        ("ward == A#1", "'ward == A#1' cannot be read.", "Texts stand in quotes"),
        ("age.b", "'age.b'", "it is a dot"),
        ("1 == 1", "'1 == 1'", "Name one, as in 'age >= 18'."),
    ],
)
def test_an_error_names_the_piece_and_what_to_write(text: str, piece: str, advice: str) -> None:
    with pytest.raises(ParameterError) as refused:
        parse(text)
    assert piece in str(refused.value)
    assert advice in str(refused.value)


def test_only_text_is_read() -> None:
    with pytest.raises(ib.ParameterTypeError, match=r"must be text; got 3"):
        parse(3)  # type: ignore[arg-type]


ALPHABET = st.sampled_from(
    ["age", "ward", " ", "(", ")", "[", "]", ",", "'A'", "1", "-", "+", "*", "==", "<", ">=", "=", "and", "or", "not",
     "in", "is", "None", "True", "year(", "date(", "'2024-01-31'", "col(", ".", "#", "\n", "lambda", ":", "\\", "é"]
)  # fmt: skip


@given(st.lists(ALPHABET, max_size=12).map(" ".join) | st.text(max_size=30))
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    try:
        found = parse(text)
    except InboundsError:
        return
    assert isinstance(found, Expression)
    assert found.columns()
    assert ib.tables.from_json(found.to_json()).to_json() == found.to_json()


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("12", Kind.INTEGER, 12),
        ("-12", Kind.INTEGER, -12),
        (str(2**70), Kind.WIDE, 2**70),
        ("12", Kind.REAL, 12),
        ("0.5", Kind.REAL, 0.5),
        ("-1e3", Kind.REAL, -1000.0),
        ("True", Kind.BOOLEAN, True),
        ("false", Kind.BOOLEAN, False),
        (" 2024-01-31 ", Kind.DATE, dt.date(2024, 1, 31)),
        ("2024-01-31 12:30", Kind.DATETIME, dt.datetime(2024, 1, 31, 12, 30)),
        ("2024-01-31", Kind.INSTANT, dt.datetime(2024, 1, 31, tzinfo=dt.UTC)),
        (" A, b", Kind.TEXT, " A, b"),
    ],
)
def test_constants_of_a_kind(text: str, kind: Kind, value: Any) -> None:
    found = constant(text, kind)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("0.5", Kind.INTEGER), ("x", Kind.REAL), ("²", Kind.REAL), ("yes", Kind.BOOLEAN), ("31.1.2024", Kind.DATE),
     ("noon", Kind.DATETIME), ("", Kind.INTEGER), ("9" * 5000, Kind.INTEGER)],
)  # fmt: skip
def test_a_constant_of_another_kind_is_refused(text: str, kind: Kind) -> None:
    with pytest.raises(ParameterError, match="constant: a constant here must be"):
        constant(text, kind)

"""No row decides whether a fit fails, warns or prints, nor how another row is read: fits with and without odd rows."""

from __future__ import annotations

import datetime
import enum
import logging
import math
import warnings
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import inbounds as ib
from inbounds.learn import GaussianNB, naive_bayes, rows
from inbounds.learn.naive_bayes import NEIGHBOURS
from inbounds.mechanism import Mechanism

pytestmark = pytest.mark.thinned(3)

BOUNDS = ([-1.0, -1.0], [1.0, 1.0])
ROWS: list[Any] = [[0.5, -0.25], [0.25, 0.75], [-1.0, 0.0], [1.0, 0.5]]
LABELS: list[Any] = [0, 1, 0, 1]
TEXTS = ["no", "yes", "no", "yes"]


class Refusing:
    """A cell that fails whatever is asked of it."""

    def fail(self, *_: object) -> Any:
        raise RuntimeError("a secret of this row")

    __float__ = __int__ = __index__ = __complex__ = __bool__ = __len__ = __str__ = __array__ = fail
    __eq__ = __lt__ = __gt__ = __le__ = __ge__ = __hash__ = fail  # type: ignore[assignment]


REFUSING = Refusing()


class Level(enum.IntEnum):
    ONE = 1


def told(X: Any, y: Any, **parameters: Any) -> tuple[Any, list[Any]]:
    """What can be seen of a fit besides its noisy numbers, and the true values that it hands to mechanisms.

    Every release gives the same answer, so that no later step can differ because of noise.
    """
    true: list[Any] = []
    records: list[logging.LogRecord] = []

    def release(mechanism: Any, value: Any, *, clip: bool = False) -> ib.Release:
        if not (clip or value in mechanism.domain):
            raise AssertionError("a true value outside would be an error")
        true.append(np.clip(value, mechanism.domain.lower, mechanism.domain.upper))
        return ib.Release(2 if mechanism.domain.lattice else np.full(np.shape(value), 0.25), mechanism)

    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    error, model = None, GaussianNB(**{"bounds": BOUNDS, "classes": [0, 1], **parameters})
    try:
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            patch.setattr(Mechanism, "release", release)
            try:
                model.fit(X, y)
            except Exception as raised:
                error = (type(raised), str(raised))
    finally:
        logging.getLogger().removeHandler(handler)
    learned = {
        name: (value.dtype, value.shape, value.tolist()) if isinstance(value, np.ndarray) else repr(value)
        for name, value in sorted(vars(model).items())
        if name.endswith("_")
    }
    return (error, [str(w.message) for w in warned], [r.getMessage() for r in records], learned), true


def assert_same(one: tuple[Any, list[Any]], other: tuple[Any, list[Any]]) -> None:
    assert one[0] == other[0]
    assert one[0][:3] == (None, [], [])
    assert [np.asarray(v).tolist() for v in one[1]] == [np.asarray(v).tolist() for v in other[1]]


def objects(values: list[Any]) -> Any:
    """An array of whatever the values are, rows too."""
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def cells(rows: list[Any]) -> Any:
    """An array of two dimensions, of whatever the cells are."""
    return np.stack([objects(row) for row in rows])


CONTAINERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "lists": (list, list),
    "arrays of objects": (cells, objects),
    "pandas": (lambda rows: pd.DataFrame(cells(rows)), lambda labels: pd.Series(objects(labels))),
    "polars": (
        lambda rows: pl.DataFrame([pl.Series(str(j), [r[j] for r in rows], dtype=pl.Object) for j in range(2)]),
        lambda labels: pl.Series(labels, dtype=pl.Object),
    ),
}

NO_NUMBER = {
    "None": None,
    "NaN": math.nan,
    "text": "odd",
    "no text": "",
    "text of a NaN": "nan",
    "bytes": b"\xff",
    "dict": {"a": 1},
    "list": [1.0],
    "array": np.array([1.0, 2.0]),
    "set": {1},
    "complex": 1j,
    "Decimal NaN": Decimal("NaN"),
    "signaling NaN": Decimal("sNaN"),
    "NA": pd.NA,
    "NaT": pd.NaT,
    "date": datetime.date(9999, 1, 1),
    "datetime64": np.datetime64("2026-01-01"),
    "type": int,
    "refusing": REFUSING,
}
NO_LABEL = {
    **NO_NUMBER,
    "another": 2,
    "negative": -1,
    "half": 0.5,
    "infinite": math.inf,
    "2**53": 2**53,
    "huge": 10**5000,
    "Decimal": Decimal("1e999999"),
    "Fraction": Fraction(1, 3),
    "bool in a list": [True],
}
NUMBERS = {
    "bool": (True, 1.0),
    "numpy bool": (np.True_, 1.0),
    "text": ("0.5", 0.5),
    "text of a bool": ("False", 0.0),
    "text of a complex": ("(0.5+0j)", 0.5),
    "bytes": (b"0.5", 0.5),
    "text with zero bytes": ("0.5\0", 0.5),
    "Decimal": (Decimal("0.5"), 0.5),
    "Fraction": (Fraction(1, 2), 0.5),
    "complex": (0.5 + 0j, 0.5),
    "array of none": (np.array(0.5), 0.5),
    "float16": (np.float16(0.5), 0.5),
    "longdouble": (np.longdouble("1e4000"), 1.0),
    "infinite": (-math.inf, -1.0),
    "text of a large": ("1e999", 1.0),
    "huge": (10**5000, 1.0),
    "huge below": (-(10**5000), -1.0),
    "huge Fraction": (Fraction(-(10**400), 3), -1.0),
    "huge Decimal": (Decimal("1e999999"), 1.0),
    "enum": (Level.ONE, 1.0),
}
ONES = {
    "bool": True,
    "float": 1.0,
    "text": "1",
    "text of a float": "1.0",
    "text of a bool": "True",
    "text in Polars": "true",
    "bytes": b"1",
    "Decimal": Decimal(1),
    "Fraction": Fraction(1),
    "complex": 1 + 0j,
    "array of none": np.array(1),
    "uint8": np.uint8(1),
    "enum": Level.ONE,
}


def named(cases: dict[str, Any]) -> Any:
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), id=name) for name, case in cases.items()]


# ---------------------------------------------------------------- a row more or less


@pytest.mark.parametrize("cell", named(NO_NUMBER))
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_feature_that_is_no_number_leaves_its_row_out(container: str, cell: Any) -> None:
    make, label = CONTAINERS[container]
    without = told(make(ROWS), label(LABELS))
    for odd in ([cell, 0.5], [0.5, cell]):
        assert_same(told(make([*ROWS, odd]), label([*LABELS, 1])), without)
        assert_same(told(make([odd, *ROWS]), label([1, *LABELS])), without)


@pytest.mark.parametrize("cell", named(NO_LABEL))
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_label_that_is_no_class_leaves_its_row_out(container: str, cell: Any) -> None:
    make, label = CONTAINERS[container]
    for row in (0, 2, 4):
        mixed = [*LABELS[:row], cell, *LABELS[row:]]
        assert_same(told(make([*ROWS[:row], [0.5, 0.5], *ROWS[row:]]), label(mixed)), told(make(ROWS), label(LABELS)))
    texts = [*TEXTS, "maybe" if isinstance(cell, str) else cell]
    same = told(make(ROWS), label(TEXTS), classes=["no", "yes"])
    assert_same(told(make([*ROWS, [0.5, 0.5]]), label(texts), classes=["no", "yes"]), same)


@pytest.mark.parametrize(("cell", "means"), named(NUMBERS))
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_number_counts_as_it_is_however_it_is_written(container: str, cell: Any, means: float) -> None:
    make, label = CONTAINERS[container]
    one, other = (told(make([*ROWS, [0.5, v]]), label([*LABELS, 1])) for v in (cell, means))
    assert_same(one, other)


@pytest.mark.parametrize("cell", named(ONES))
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_label_counts_for_its_class_however_it_is_written(container: str, cell: Any) -> None:
    make, label = CONTAINERS[container]
    X = make([*ROWS, [0.5, 0.25]])
    assert_same(told(X, label([*LABELS, cell])), told(X, label([*LABELS, 1])))
    assert_same(told(X, label([cell, *LABELS])), told(X, label([1, *LABELS])))


@pytest.mark.parametrize("odd", ["odd", b"odd", None, 0.5, 2j, 2**64, np.longdouble("1e4000"), np.timedelta64(2, "s")])
def test_one_row_changes_the_type_of_an_array_and_no_other_row(odd: Any) -> None:
    """The caller's own array: whole numbers next to a text are texts, next to 0.5 floats, next to a span spans."""
    y = np.array([*LABELS, odd])
    assert y.dtype != np.array(LABELS).dtype
    X = np.array([*ROWS, [0.5, 0.5]])
    assert_same(told(X, y), told(np.array(ROWS), np.array(LABELS)))
    whole = [[1, 0], [0, 1], [-1, 0], [1, 1]]
    odd_row = np.array([v for row in whole for v in row] + [odd, 0]).reshape(-1, 2)
    seen, true = told(odd_row, np.array([*LABELS, 7]))
    assert_same((seen, true), told(np.array(whole), np.array(LABELS)))
    assert told(odd_row, np.array([*LABELS, 1]))[0] == seen


def test_texts_are_told_apart_by_their_bytes() -> None:
    X = np.array([*ROWS, [0.5, 0.5]])
    text = {"classes": ["é", "e\u0301"]}
    same = told(X[:4], ["é", "e\u0301", "é", "e\u0301"], **text)
    for written in (["é".encode(), "e\u0301", "é", "e\u0301\0", "É"], ["é", "e\u0301".encode(), "é\0", "e\u0301", "e"]):
        assert_same(told(X, written, **text), same)


@pytest.mark.parametrize("odd", [[0.5], [0.5, 0.5, 0.5], [], None, 7, "ab", {0: 1, 1: 2}, [[0.5, 0.5], [0.5, 0.5]]])
def test_a_row_of_another_length_is_left_out(odd: Any) -> None:
    for make in (list, objects):
        for bounds in (BOUNDS, (-1, [1, 1])):
            without = told(make(ROWS), LABELS, bounds=bounds)
            assert_same(told(make([*ROWS, odd]), [*LABELS, 1], bounds=bounds), without)
            assert_same(told(make([odd, *ROWS]), [1, *LABELS], bounds=bounds), without)


def test_bounds_tell_the_length_of_rows_and_no_row_does() -> None:
    for make in (list, tuple, objects, deque):
        none = told(make([]), [])
        for row in ([0.5], [], [0.5] * 3, None):
            assert_same(told(make([row]), [1]), none)
        assert told(make([[0.5, 0.5]]), [1])[0] == none[0]
        refused = told(make([]), [], bounds=(-1, 1))
        assert refused[0][0][1].startswith("GaussianNB: bounds must be one number per feature")
        for X in ([[0.5]], [[]], ROWS, [[0.5, 0.5], [0.5] * 3], [REFUSING]):
            assert told(make(X), [1] * len(X), bounds=(-1, 1)) == refused


def stop(*_: Any) -> Any:
    raise SystemExit("a secret of this row")


def warn(*_: Any) -> Any:
    warnings.warn("a secret of this row", stacklevel=2)
    return 7


ASKED = (
    *("__float__", "__int__", "__index__", "__complex__", "__bool__", "__len__", "__iter__", "__getitem__", "__eq__"),
    *("__lt__", "__gt__", "__le__", "__ge__", "__hash__", "__str__", "__repr__", "__array__", "__abs__", "__neg__"),
    *("__class__", "__getattribute__", "as_integer_ratio", "is_nan", "utcoffset", "isoformat", "tolist", "item"),
    *("decode", "encode", "strip", "rstrip", "lower", "real", "imag", "numerator", "denominator", "__add__", "__mul__"),
)


class MetaOfItsOwn(type):
    __eq__ = __hash__ = __instancecheck__ = __subclasscheck__ = stop  # type: ignore[assignment]
    __name__ = property(stop)  # type: ignore[assignment]


def hostile(base: type, method: Callable[..., Any], *value: Any) -> Any:
    """An object whose every method, which reading may ask, is this one."""
    kind: Any = type if base is not object else MetaOfItsOwn
    body = {name: property(method) if name in ("__class__", "real", "imag") else method for name in ASKED}
    if base is np.ndarray:
        return np.array(value[0]).view(kind("Hostile", (base,), body))
    return base.__new__(kind("Hostile", (base,), body), *value)


DERIVED: list[tuple[type, tuple[Any, ...], float]] = [
    (float, (0.5,), 0.5),
    (int, (1,), 1.0),
    (str, ("0.5",), 0.5),
    (bytes, (b"0.5",), 0.5),
    (complex, (0.5,), 0.5),
    (np.float64, (0.5,), 0.5),
    (np.str_, ("0.5",), 0.5),
]
UNKNOWN: list[tuple[type, tuple[Any, ...]]] = [
    (object, ()),
    (Decimal, ("0.5",)),
    (Fraction, (1, 2)),
    (np.float32, (0.5,)),
    (np.ndarray, (0.5,)),
    (datetime.datetime, (2026, 1, 1)),
]


def fraction_of(part: Any) -> Fraction:
    found = Fraction(1, 2)
    found._numerator = part  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("method", [stop, warn])
@pytest.mark.parametrize("container", CONTAINERS)
def test_no_code_of_a_cell_runs(container: str, method: Callable[..., Any]) -> None:
    make, label = CONTAINERS[container]
    without = told(make(ROWS), label(LABELS))
    for base, value, means in DERIVED:
        cell = hostile(base, method, *value)
        assert_same(
            told(make([*ROWS, [cell, 0.5]]), label([*LABELS, 1])), told(make([*ROWS, [means, 0.5]]), [*LABELS, 1])
        )
    cells = [hostile(base, method, *value) for base, value in UNKNOWN]
    for cell in (*cells, fraction_of(hostile(int, method, 1)), fraction_of(cells[0])):
        assert_same(told(make([*ROWS, [cell, 0.5]]), label([*LABELS, 1])), without)
        assert_same(told(make([*ROWS, [0.5, 0.5]]), label([*LABELS, cell])), without)


@pytest.mark.parametrize("method", [stop, warn])
def test_no_code_of_a_label_runs(method: Callable[..., Any]) -> None:
    X = [*ROWS, [0.5, 0.25]]
    for make in (list, objects):
        for cell in (hostile(int, method, 1), hostile(str, method, "1"), hostile(float, method, 1.0)):
            assert_same(told(X, make([*LABELS, cell])), told(X, make([*LABELS, 1])))
        for cell, same in ((hostile(int, method, 7), 7), (hostile(str, method, "x"), "x")):
            one, other = (told(X, make([*LABELS, v]), classes=None) for v in (cell, same))
            assert_same(one, other)


@pytest.mark.parametrize("method", [stop, warn])
def test_no_code_of_a_row_runs(method: Callable[..., Any]) -> None:
    without = told(ROWS, LABELS)
    for make in (list, objects):
        for base in (list, tuple):
            row = hostile(base, method, (0.5, 0.25)) if base is tuple else hostile(base, method)
            if base is list:
                list.extend(row, [0.5, 0.25])
            assert_same(told(make([*ROWS, row]), [*LABELS, 1]), told([*ROWS, [0.5, 0.25]], [*LABELS, 1]))
        for row in (hostile(np.ndarray, method, [0.5, 0.25]), hostile(object, method), np.ma.array([0.5, 0.25])):
            assert_same(told(make([*ROWS, row]), [*LABELS, 1]), without)


def test_no_rows_are_one_row_less_than_one() -> None:
    one, none = told(np.array([[0.5, 0.5]]), np.array([1])), told(np.empty((0, 2)), np.array([]))
    assert one[0] == none[0]
    assert none[0][0] is None


def test_the_most_rows_are_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naive_bayes, "_ROWS", 4)
    X, y = np.array([*ROWS, [0.5, 0.5]]), np.array([*LABELS, 1])
    assert told(X, y)[0] == told(X[:4], y[:4])[0]
    assert told(X, y)[0][0] is None


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_a_replaced_row_tells_nothing_either(neighbours: str) -> None:
    for cell in NO_NUMBER.values():
        X = [*ROWS, [0.5, cell]]
        one, other = (told(x, [*LABELS, 1], neighbours=neighbours) for x in (X, [*ROWS, [0.5, 0.5]]))
        assert one[0] == other[0]
        if neighbours == "features":  # the label is public and counts: the feature as the middle of its bounds
            assert_same(one, told([*ROWS, [0.5, 0.0]], [*LABELS, 1], neighbours=neighbours))


LABELS_OF_THEIR_OWN = ("text", "no text", "bytes", "another", "negative")


@pytest.mark.parametrize("cell", named({k: v for k, v in NO_LABEL.items() if k not in LABELS_OF_THEIR_OWN}))
def test_what_is_no_label_is_no_class_where_labels_are_read_off(cell: Any) -> None:
    one = told([*ROWS, [0.5, 0.5]], [*LABELS, cell], classes=None)
    assert_same(one, told(ROWS, LABELS, classes=None))


def test_classes_read_off_are_written_as_they_occur() -> None:
    for y, classes in [
        (np.array([1, 0, 1, 0], dtype=np.int8), [0, 1]),
        ([True, False, True, False], [False, True]),
        (["b", "a", "b", "a"], ["a", "b"]),
        ([10, 9, "b", "a"], [9, 10, "a", "b"]),
        (["10", "9", "b", "9"], ["10", "9", "b"]),
        ([1, "1", True, "1.0"], [True]),
        ([2.0, None, -1.0, 0.5], [-1.0, 2.0]),
    ]:
        for order in (slice(None), slice(None, None, -1)):
            found = told(ROWS, y[order], classes=None)[0]
            assert found[0] is None
            assert found[3]["classes_"][2] == classes
    with pytest.raises(ib.ParameterError, match="y must hold labels"):
        GaussianNB(bounds=BOUNDS).fit(ROWS, [0.5, None, 0.25, math.nan])


# ---------------------------------------------------------------- tables


def masked(values: list[Any]) -> Any:
    return np.ma.MaskedArray([0 if v is None else v for v in values], [v is None for v in values])


#: columns of numbers in which one may be missing
NULLABLE: dict[str, Callable[[list[Any]], Any]] = {
    "pandas": pd.Series,
    "pandas Int64": lambda v: pd.Series(v, dtype="Int64"),
    "pandas Arrow": lambda v: pd.Series(v, dtype=pd.ArrowDtype(pa.int64())),
    "pandas category": lambda v: pd.Series(v, dtype="category"),
    "pandas decimal": lambda v: pd.Series(v, dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
    "Polars": pl.Series,
    "Polars decimal": lambda v: pl.Series(v, dtype=pl.Decimal(9, 2)),
    "Polars Int128": lambda v: pl.Series(v, dtype=pl.Int128),
    "Arrow": pa.array,
    "Arrow chunks": lambda v: pa.chunked_array([pa.array(v, pa.int8())]),
    "Arrow dictionary": lambda v: pa.array(v).dictionary_encode(),
    "masked": masked,
}


def table(column: Any) -> Any:
    """A table of two columns."""
    if isinstance(column, pd.Series):
        return pd.concat([column, column], axis=1, keys=["a", "b"])
    if isinstance(column, pl.Series):
        return pl.DataFrame({"a": column, "b": column})
    if isinstance(column, np.ndarray):
        return np.ma.column_stack([column, column])
    return pa.table({"a": column, "b": column})


@pytest.mark.parametrize("make", named(NULLABLE))
def test_a_gap_in_a_column_leaves_its_row_out(make: Callable[[list[Any]], Any]) -> None:
    numbers = [1, 0, -1, 1]
    assert_same(told(table(make([*numbers, None])), [*LABELS, 1]), told(table(make(numbers)), LABELS))
    assert_same(told([*ROWS, [0.5, 0.5]], make([*LABELS, None])), told(ROWS, make(LABELS)))


BYTES = [b"no", b"yes", b"no", b"yes"]
SOURCES: dict[str, Callable[[Any], Any]] = {
    "Arrow": lambda a: a,
    "large": lambda a: a.cast(pa.large_string(), safe=False),
    "view": lambda a: a.cast(pa.string_view(), safe=False),
    "dictionary": lambda a: pa.DictionaryArray.from_arrays(pa.array(range(len(a)), pa.int8()), a),
    "chunks": lambda a: pa.chunked_array([a[:2], a[2:]]),
    "pandas Arrow": lambda a: pd.Series(pd.array(a, dtype=pd.ArrowDtype(pa.string()))),
    "pandas str": lambda a: pd.Series(pd.arrays.ArrowStringArray(pa.chunked_array([a.cast(pa.large_string())]))),
}


@pytest.mark.parametrize("make", named(SOURCES))
def test_text_that_is_no_utf8_leaves_its_row_out(make: Callable[[Any], Any]) -> None:
    """Arrow does not look into texts of files; whoever decodes such a column fails for one row."""

    def texts(values: list[Any]) -> Any:
        stored = pa.array(values, pa.binary())
        return make(pa.Array.from_buffers(pa.string(), len(stored), stored.buffers()))

    parameters = {"classes": ["no", "yes"]}
    same = told(np.array(ROWS), texts(BYTES), **parameters)
    assert same[1][0] == 2
    assert_same(told(np.array([*ROWS, [0.5, 0.5]]), texts([*BYTES, b"\xff\xfe"]), **parameters), same)


STRINGS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "array": np.array,
    "objects": objects,
    "pandas object": lambda v: pd.Series(v, dtype=object),
    "pandas string": lambda v: pd.Series(v, dtype="string[python]"),
}


@pytest.mark.parametrize("make", named(STRINGS))
def test_text_that_no_encoding_has_leaves_its_row_out(make: Callable[[list[Any]], Any]) -> None:
    parameters = {"classes": ["no", "yes"]}
    same = told(np.array(ROWS), make(TEXTS), **parameters)
    assert_same(told(np.array([*ROWS, [0.5, 0.5]]), make([*TEXTS, "\ud800"]), **parameters), same)


def test_a_dictionary_is_looked_up_and_not_decoded() -> None:
    """Arrow cannot decode more than 2 GiB of text, nor some types: one row would decide, or none."""
    n, text = 2**17, pa.array(["a" * 2**14])
    for places in (np.zeros(n, dtype=np.int32), np.zeros(n - 1, dtype=np.int32)):
        y = pa.DictionaryArray.from_arrays(pa.array(places), text)
        for given_as in (y, pd.Series(pd.arrays.ArrowExtensionArray(y))):
            column = rows.cells(given_as)
            assert column.shape == places.shape
            assert all(cell is column[0] for cell in column)
    known = pa.array([0, 1, 0, 1, None, 2], pa.uint8())
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.int8(), pa.decimal128(3, 1)):
        numbers: list[Any] = [0, 1, None]
        texts = pa.types.is_string_view(kind) or "string" in str(kind) or pa.types.is_binary(kind)
        values = pa.array(["0", "1", None] if texts else numbers, kind)
        y = pa.DictionaryArray.from_arrays(known, values)
        X = np.array([*ROWS, [0.5, 0.5], [0.5, 0.5]])
        for labels in (y, pa.chunked_array([y[:3], y[3:]])):
            assert_same(told(X, labels), told(X[:4], LABELS))
    interval = pd.arrays.IntervalArray.from_breaks([0, 1, 2]).__arrow_array__()
    for values in (interval, pa.array([0, 1], pa.timestamp("s")), pa.array([[0], [1]])):
        y = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1], pa.int8()), values)
        found = told(np.array(ROWS), y)
        assert_same(found, told(np.array(ROWS), [None] * 4))


@pytest.mark.parametrize("dtype", [object, "str", "string[python]", "string[pyarrow]"])
def test_categories_are_looked_up(dtype: Any) -> None:
    categories = pd.Index(pd.array(["no", "yes", "other"], dtype=dtype))
    y = pd.Series(pd.Categorical.from_codes([0, 1, 0, 1, -1, 2], categories=categories))
    X, parameters = np.array([*ROWS, [0.5, 0.5], [0.5, 0.5]]), {"classes": ["no", "yes"]}
    assert_same(told(X, y, **parameters), told(X[:4], TEXTS, **parameters))


FAR = {
    "Arrow dates": lambda v: pa.array(v, pa.date32()),
    "Arrow times": lambda v: pa.array(v, pa.timestamp("s")),
    "pandas times": lambda v: pd.Series(v, dtype=pd.ArrowDtype(pa.timestamp("s"))),
    "pandas dates": lambda v: pd.Series(v, dtype=pd.ArrowDtype(pa.date32())),
    "Polars times": lambda v: pl.Series(v, dtype=pl.Int64).cast(pl.Datetime("us")),
    "Polars dates": lambda v: pl.Series(v, dtype=pl.Int32).cast(pl.Date),
    "Polars lists": lambda v: pl.Series([[x] for x in v]),
    "numpy times": lambda v: np.array(v, dtype="datetime64[s]"),
}


@pytest.mark.parametrize("make", named(FAR))
def test_a_far_date_tells_no_more_than_a_near_one(make: Callable[[list[int]], Any]) -> None:
    X = np.array(ROWS)
    one, other = (told(X, make([0, 1, 0, day])) for day in (2**31 - 1, 1))
    assert_same(one, other)


# ---------------------------------------------------------------- any rows at all

KNOWN = [*NO_LABEL.values(), *ONES.values(), *(cell for cell, _ in NUMBERS.values()), 0, 1, -0.0]
CELLS = st.one_of(
    st.sampled_from([v for v in KNOWN if v is not REFUSING]),  # which Hypothesis cannot compare
    st.floats(),
    st.integers(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.complex_numbers(),
    st.decimals(),
    st.fractions(),
)
ROW = st.tuples(st.one_of(st.lists(CELLS, max_size=3), st.lists(CELLS, min_size=2, max_size=2), CELLS), CELLS)


@settings(max_examples=100)
@given(st.lists(ROW, max_size=5), ROW, st.sampled_from(["add-remove", "substitute"]))
def test_no_row_tells_whether_it_is_there(rows: list[Any], extra: Any, neighbours: str) -> None:
    """Whatever rows hold: what is seen is the same, and one class moves by no more than the sensitivities."""
    replaced = [*rows, ([0.5, 0.5], 0)] if neighbours == "substitute" else rows
    left, right = (
        told([x for x, _ in have], [y for _, y in have], neighbours=neighbours) for have in ([*rows, extra], replaced)
    )
    assert left[0] == right[0]
    assert left[0][:3] == (None, [], [])
    moved = [np.max(np.abs(np.asarray(a) - b)) for a, b in zip(left[1], right[1], strict=True)]
    assert [m <= s for m, s in zip(moved, (1, 1, 0.5) * 2, strict=True)] == [True] * 6
    if neighbours == "add-remove":
        assert not any(moved[:3]) or not any(moved[3:]), "one class only"


# ---------------------------------------------------------------- what may be refused: no row's doing


@pytest.mark.parametrize(
    ("X", "y", "named"),
    [
        (sparse.csr_array(np.array(ROWS)), LABELS, "X must be dense; sparse input"),
        (np.array([0.5, 0.5]), [0, 1], "X must be of two dimensions"),
        (np.zeros((2, 2, 2)), [0, 1], "X must be of two dimensions"),
        ("text", [0, 1], "X must be of two dimensions"),
        (np.zeros((4, 0)), LABELS, "X must have columns"),
        (pd.DataFrame(index=range(4)), LABELS, "X must have columns"),
        (np.zeros((4, 3)), LABELS, "bounds[0] must be a number or 3 numbers"),
        (ROWS, LABELS[:3], "X and y must have as many rows as each other"),
        (ROWS, None, "y must be given: it requires y to be passed"),
        (ROWS, np.zeros((4, 2)), "y must be one label per row"),
        (ROWS, pd.DataFrame(np.zeros((4, 2))), "y must be one label per row"),
        (ROWS, {0: 1}, "y must be one label per row"),
        (ROWS, b"0101", "y must be one label per row"),
        ({0: 1}, LABELS, "X must be of two dimensions"),
        (ROWS, "0101", "y must be one label per row"),
        (ROWS, 5, "y must be one label per row"),
    ],
)
def test_what_holds_the_rows_may_be_refused(X: Any, y: Any, named: str) -> None:
    (error, *_), true = told(X, y)
    assert error is not None
    assert issubclass(error[0], ib.InboundsError)
    assert error[1].startswith(f"GaussianNB: {named}")
    assert "4" not in error[1], "the number of rows is not public"
    assert true == [], "nothing was spent"


def test_arrays_of_narrow_floats_are_refused() -> None:
    """NumPy writes 0.0999755859375 as 0.1 once a text is in the array: one row moved all others."""
    narrow: Any = np.array([[0.1, -0.25]] * 4, dtype=np.float16)
    for X, y, named in [
        (narrow, LABELS, "X"),
        (np.ma.array(narrow), LABELS, "X"),
        (ROWS, np.array(LABELS, dtype=np.float16), "y"),
    ]:
        (error, *_), true = told(X, y)
        assert error == (
            ib.ParameterTypeError,
            f"GaussianNB: {named} must be of floats of more than 16 bits; got 'float16'. Pass "
            f"{named}.astype(numpy.float64), and before rows are put together.",
        )
        assert true == []
    wide = narrow.astype(np.float64)
    for odd in (["odd", "odd"], [None, None]):
        assert_same(told(np.concatenate([wide, [odd]]), [*LABELS, 1]), told(wide, LABELS))
    column = pd.Series(narrow[:, 0])  # pandas makes objects of a column with a text, which round nothing
    longer = pd.concat([column, pd.Series(["odd"])], ignore_index=True)
    assert_same(told(table(longer), [*LABELS, 1]), told(table(column), LABELS))
    assert_same(told(list(narrow), LABELS), told(wide, LABELS))


def test_a_column_of_labels_is_taken_with_a_warning() -> None:
    for y in (np.array(LABELS).reshape(-1, 1), pd.DataFrame({"y": LABELS}), pa.table({"y": LABELS})):
        seen, true = told(ROWS, y)
        assert seen[1] == ["A column-vector y was passed when a 1d array was expected. Pass y.ravel()."]
        assert [v.tolist() for v in true] == [v.tolist() for v in told(ROWS, LABELS)[1]]


def test_names_of_columns_are_kept() -> None:
    for X in (pd.DataFrame(ROWS, columns=["a", "b"]), pl.DataFrame(ROWS, schema=["a", "b"], orient="row")):
        model = GaussianNB(bounds=BOUNDS, classes=[0, 1]).fit(X, LABELS)
        assert model.feature_names_in_.tolist() == ["a", "b"]
        assert model.predict(X).shape == (4,)
    assert not hasattr(model.fit(ROWS, LABELS), "feature_names_in_")

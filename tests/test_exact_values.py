"""A true value enters as the exact number it is, or not at all: no type and no size is rounded before the noise.

Forced bits decide: the draws of a release are replaced by given words, and the answer is held against the reference in
ball arithmetic, which takes the true value as a fraction, or against the same draw around a small value.
"""

from __future__ import annotations

import json
import math
import numbers
import signal
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import inbounds as ib
from inbounds import _exact
from inbounds.errors import ParameterError
from inbounds.sampling import draws
from tests.cli_support import run
from tests.common import MECHANISMS
from tests.sampling_reference import INF, Setting, holds, law, points

EDGES = ("truncate", "clamp", "ignore")
BITS = 192
LONG = np.finfo(np.longdouble).nmant > 52  # whether long doubles are longer than floats here
ALL, FROM_0 = ib.Integers(-INF, INF), ib.Integers(0, INF)
LINE, HALF_LINE = ib.Interval(-INF, INF), ib.Interval(0, INF)

#: Whole numbers around those that floats skip; 2^60 + 128 and 2^62 + 512 lie in the middle between two floats.
WHOLE = [
    *range(2**53 - 2, 2**53 + 3),
    2**60 + 127,
    2**60 + 128,
    2**60 + 129,
    2**62 + 511,
    2**62 + 512,
    2**62 + 513,
    2**1000 + 1,
]
REAL = [*WHOLE, Fraction(1, 3), Fraction(2**61 + 257, 2), Fraction(10**30, 7), Fraction(1, 10**400)]


def short(x: Any) -> str:
    return f"{'-' if x < 0 else ''}2^{math.log2(abs(x)):.6g}"


def short_text(text: str) -> str:
    return text[:15]


class Words:
    """A source of given bits, and of others that must not matter."""

    def __init__(self, bits: int, count: int) -> None:
        self._words = [bits >> shift & (1 << 64) - 1 for shift in range(count - 64, -1, -64)]
        self._more = Random(5)

    def word(self) -> int:
        return self._words.pop(0) if self._words else self._more.getrandbits(64)

    def fill(self, words: Any) -> None:
        words[...] = np.array([self.word() for _ in range(words.size)], dtype=np.uint64).reshape(words.shape)


class Always:
    """A source that gives one word for first ones, and another one ever after."""

    def __init__(self, first: int, more: int) -> None:
        self._first, self._more, self._begun = first, more, False

    def word(self) -> int:
        begun, self._begun = self._begun, True
        return self._more if begun else self._first

    def fill(self, words: Any) -> None:
        words[...], self._begun = self._first, True


Forced = Callable[[Any, Any, Callable[[], Any]], Any]


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> Forced:
    """``forced(mechanism, true, source)``: what ``release`` gives for the bits of the source."""

    def release(mechanism: Any, true: Any, source: Callable[[], Any]) -> Any:
        monkeypatch.setattr(draws, "pool", source())
        monkeypatch.setattr(draws, "Keystream", source)
        return mechanism.release(true).value

    return release


@pytest.fixture
def _no_hang() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise AssertionError("still running after half a minute")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def forms(x: int | Fraction) -> dict[str, Any]:
    """One number in all types that hold it."""
    found: dict[str, Any] = {"fraction": Fraction(x), "object array": np.array(x, dtype=object)}
    if Fraction(x).denominator == 1:
        found |= {"int": int(x), "decimal": Decimal(int(x))}
        found |= {name: kind(x) for name, kind in (("int64", np.int64), ("uint64", np.uint64)) if 0 <= x < 2**62}
        found |= {"array": np.array(int(x))} if abs(x) < 2**62 else {}
    if LONG and abs(x) < 2**63 and Fraction(x).denominator == 1:
        found["longdouble"] = np.longdouble(int(x) >> 32) * 2**32 + np.longdouble(int(x) & (1 << 32) - 1)
    return found


def bits_of(rng: Random) -> int:
    """Any bits; often those of a tail."""
    found = rng.getrandbits(BITS) >> rng.choice((0, 0, 0, 1, 3, 20, 70))
    return found ^ (rng.getrandbits(1) * ((1 << BITS) - 1))


def setting_of(mechanism: Any) -> Setting:
    family, domain = type(mechanism).__name__.lower(), mechanism.domain
    return Setting(family, domain.pieces, domain.lattice, mechanism.scale, mechanism.edges, mechanism.grid)


def is_right(mechanism: Any, true: Any, bits: int, answer: Any) -> bool:
    """Whether all continuations of the bits give this answer, by the reference; whole numbers to the last digit."""
    setting = setting_of(mechanism)
    true = Fraction(true)
    if not setting.lattice:
        return type(answer) is float and holds(setting.at(true, bits, BITS), answer)  # type: ignore[arg-type]
    grid, noise, k = points(setting), law(setting, true), int(answer)  # type: ignore[arg-type]
    low, high = grid.lower(k), grid.upper(k)
    return (
        type(answer) is int
        and grid.has(k)
        and (low is None or noise.compare(low, bits, BITS) in (-1, 0))
        and (high is None or noise.compare(high, bits + 1, BITS) in (0, 1))
    )


# --- the attack: who is told from whom ----------------------------------------------------------


@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("true", [2**60 + 128, 2**62 + 512, Fraction(2**61 + 256)], ids=str)
def test_neighbours_beyond_all_floats_have_answers_in_common(family: str, edges: str, true: Any) -> None:
    """Both were rounded, to two floats hundreds of scales apart: every answer told which of the two was true."""
    mechanism = MECHANISMS[family](ALL, scale=4.0, sensitivity=1, edges=edges)
    seen = [set(mechanism.release([true + step] * 300).value.tolist()) for step in (0, 1)]
    seen[0] |= {mechanism.release(true).value for _ in range(20)}
    assert len(seen[0] & seen[1]) >= 5  # fewer: below 1e-20


@pytest.mark.parametrize("family", MECHANISMS)
def test_an_answer_on_reals_says_little_about_neighbours_beyond_all_floats(family: str) -> None:
    mechanism = MECHANISMS[family](LINE, scale=4.0, sensitivity=1.0)
    seen = [set(mechanism.release([2**60 + 128 + step] * 300).value.tolist()) for step in (0, 1)]
    assert seen[0] == seen[1] == {2.0**60, 2.0**60 + 256}


@pytest.mark.parametrize("form", forms(2**53 + 1))
def test_a_value_that_is_not_in_the_domain_is_not_released(form: str) -> None:
    domain = ib.Integers(0, 2**53)
    mechanism = ib.Laplace(domain, scale=3.0, sensitivity=1)
    for x in (2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2):
        true = forms(x)[form]
        inside = x <= 2**53
        assert (true in domain) is bool(domain.contains(true)) is inside
        for given in (true, [true], np.array([true, 5], dtype=object)):
            if inside:
                assert mechanism.release(given).value is not None
                mechanism.at(given)
                continue
            for use in (mechanism.release, mechanism.at, mechanism.simulate):
                with pytest.raises(ib.OutsideDomain) as caught:
                    use(given)
                message = str(caught.value).replace(repr(domain), "")
                assert not any(digit in message for digit in "0123456789")
                assert caught.value.__context__ is None


# --- forced bits --------------------------------------------------------------------------------

LINES: dict[str, tuple[Any, list[Any], tuple[float, ...]]] = {
    "all integers": (ALL, [*WHOLE, *(-x for x in WHOLE)], (0.4, 3.0, 100.0, 6000.0)),
    "integers up": (FROM_0, WHOLE, (0.4, 3.0, 100.0, 6000.0)),
    "integers down": (ib.Integers(-INF, 3), [-x for x in WHOLE], (3.0, 100.0)),
    "line": (LINE, [*REAL, *(-x for x in REAL)], (0.2, 5.0, 300.0)),
    "half-line": (HALF_LINE, REAL, (5.0, 300.0)),
    "far interval": (ib.Interval(2.0**60, 2.0**60 + 2**20), [2**60 + 127, 2**60 + 128, 2**60 + 129], (300.0, 3e6)),
    "unit": (ib.Interval(0.0, 1.0), [Fraction(1, 3), Fraction(1, 10**400), Fraction(10**40 - 1, 10**40)], (0.1, 5.0)),
    "spans": (
        ib.Spans([(0.0, 2.0**60), (2.0**61, 2.0**62), (2.0**63, INF)]),
        [Fraction(1, 3), 2**60 - 1, 2**61 + 257, 2**1000 + 1],
        (300.0, 2.0**59),
    ),
}


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("name", LINES)
def test_forced_bits_release_what_the_exact_value_demands(forced: Forced, name: str, family: str, edges: str) -> None:
    domain, values, scales = LINES[name]
    rng = Random(f"{name}{family}{edges}")
    checked = 0
    for scale in scales:
        mechanism = MECHANISMS[family](domain, scale=scale, sensitivity=1, edges=edges)
        for true in values:
            bits = bits_of(rng)
            kinds = forms(true)
            form = rng.choice(sorted(kinds))
            answer = forced(mechanism, kinds[form], lambda bits=bits: Words(bits, BITS))
            assert is_right(mechanism, true, bits, answer), (scale, true, form, hex(bits), answer)
            many = forced(mechanism, [kinds[form]], lambda bits=bits: Words(bits, BITS))
            assert many.shape == (1,)
            assert many.tolist() == [answer]
            checked += 1
    assert checked >= 6


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("family", MECHANISMS)
def test_a_value_a_little_off_a_float_is_not_that_float(forced: Forced, family: str, edges: str) -> None:
    """Bits whose answer changes between a third and the float nearest to it, on a grid fine enough to show it."""
    third, seen = Fraction(1, 3), 0
    mechanism = MECHANISMS[family](ib.Interval(0, 1), scale=0.5, sensitivity=0.5, edges=edges, granularity=2.0**-60)
    for bits in (Random(i).getrandbits(BITS) for i in range(80)):
        exact, rounded = (forced(mechanism, q, lambda bits=bits: Words(bits, BITS)) for q in (third, 1 / 3))
        assert is_right(mechanism, third, bits, exact)
        assert is_right(mechanism, 1 / 3, bits, rounded)
        seen += exact != rounded
    assert seen >= 3


@pytest.mark.parametrize("form", forms(2**60 + 129))
def test_all_types_of_one_number_give_one_answer(forced: Forced, form: str) -> None:
    for x in (7, 2**53 + 1, 2**60 + 129):
        for domain in (ALL, FROM_0, LINE, HALF_LINE, ib.Interval(0, 2.0**61)):
            for mechanism in (MECHANISMS[f](domain, scale=5.0, sensitivity=1) for f in MECHANISMS):
                for seed in range(3):
                    bits = Random(seed).getrandbits(BITS)
                    first, same = (
                        forced(mechanism, q, lambda bits=bits: Words(bits, BITS)) for q in (x, forms(x)[form])
                    )
                    assert first == same
                    assert type(first) is type(same) is (int if domain.lattice else float)


# --- noise that is the same around every value: a far draw is a near one, moved ---------------------

SHIFTED: dict[str, Callable[..., Any]] = {
    "laplace": lambda domain: ib.Laplace(domain, scale=3.0, sensitivity=1, edges="ignore"),
    "gaussian": lambda domain: ib.Gaussian(domain, scale=3.0, sensitivity=1, edges="ignore"),
    "wide gaussian": lambda domain: ib.Gaussian(domain, scale=9000.0, sensitivity=1, edges="clamp"),
    "truncated": lambda domain: ib.Laplace(domain, scale=3.0, sensitivity=1),
    "staircase": lambda domain: ib.Staircase(domain, sensitivity=3, epsilon=0.7),
    "bounded": lambda domain: ib.BoundedLaplace(domain, scale=3.0, bound=20, sensitivity=1),
}


@pytest.mark.parametrize("name", SHIFTED)
@pytest.mark.parametrize(
    "far",
    [2**53 + 1, 2**60 + 129, -(2**62) - 513, 2**1000 + 1, -(10**400)],
    ids=short,
)
def test_far_whole_numbers_are_drawn_like_near_ones(forced: Forced, name: str, far: int) -> None:
    mechanism, rng = SHIFTED[name](ALL), Random(3)
    near = [rng.getrandbits(64) for _ in range(40)]
    for word in near:
        moved, plain = (forced(mechanism, far + q, lambda word=word: Always(word, 11)) for q in (0, -far + 5))
        assert moved - far == plain - 5
        assert type(moved) is int
    true = [far + i for i in range(40)]
    many = forced(mechanism, true, lambda: Words(sum(w << 64 * i for i, w in enumerate(reversed(near))), 64 * 40))
    again = forced(mechanism, range(40), lambda: Words(sum(w << 64 * i for i, w in enumerate(reversed(near))), 64 * 40))
    assert [a - far for a in many.tolist()] == again.tolist()
    assert many.dtype == (np.int64 if abs(far) < 2**63 - 10**6 else object)


@pytest.mark.parametrize("name", SHIFTED)
def test_far_reals_are_drawn_like_near_ones(forced: Forced, name: str) -> None:
    """Far values that are no floats, but lie on the grid, so that they can be moved by whole steps."""
    mechanism, rng = SHIFTED[name](LINE), Random(4)
    step = Fraction(mechanism.grid)
    for far in (2**60 + 128, Fraction(2**61 + 257, 2), 2**1000 + 1):
        for word in (rng.getrandbits(64) for _ in range(20)):
            moved, plain = (forced(mechanism, q, lambda word=word: Always(word, 11)) for q in (far, 0.0))
            exact = Fraction(plain) + Fraction(far)
            assert (far / step).denominator == 1
            assert moved == float(exact)


def test_halves_of_a_step_are_not_lost(forced: Forced) -> None:
    """Answers of a third and of its nearest multiple of the step differ, wherever they lie."""
    mechanism = ib.Staircase(LINE, sensitivity=1.0, epsilon=1.0, edges="ignore", granularity=1.0)
    near, far = (Fraction(offset) + Fraction(1, 3) for offset in (0, 2**60))
    for word in (Random(i).getrandbits(64) for i in range(40)):
        a, b = (forced(mechanism, q, lambda word=word: Always(word, 11)) for q in (near, far))
        assert b == float(2**60 + Fraction(a))


# --- arrays -----------------------------------------------------------------------------------------

ARRAYS: dict[str, Any] = {
    "list of types": [2**60 + 129, 0.0, Fraction(7), Decimal(2**53 + 1), np.float32(3), np.int64(2**60 + 129), 1.5e300],
    "floats beside whole numbers": [2**53 + 1, 0.0],
    "signed beside unsigned": [2**63 + 1, 2**53 + 1, 5],
    "objects": np.array([2**60 + 129, 2**1000 + 1, 3.0], dtype=object),
    "int64": np.array([2**60 + 129, 2**53 + 1, 2**53, 4]),
    "uint64": np.array([2**63 + 2049, 2**53 + 1, 4], dtype=np.uint64),
    "longdouble": np.array([2**60, 2**53, 5], dtype=np.longdouble) + 1,
    "float16": np.array([3.0, 2048.0], dtype=np.float16),
    "floats": np.array([2.0**53, 2.0**60, 2.0**800, 7.0]),
    "rows": [[2**60 + 129, 1.0], [2**53 + 1, 2]],
    "range": range(2**63 - 1, 2**63 + 2),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("domain", [ALL, FROM_0, LINE, HALF_LINE], ids=repr)
@pytest.mark.parametrize("family", MECHANISMS)
def test_an_array_is_drawn_like_its_elements(forced: Forced, name: str, domain: Any, family: str) -> None:
    given = ARRAYS[name]
    elements = np.array(given, dtype=object) if not isinstance(given, np.ndarray) else given
    mechanism = MECHANISMS[family](domain, scale=5.0, sensitivity=1)
    for word in (1 << 62, (1 << 63) + 12345, 3 << 62):
        many = forced(mechanism, given, lambda word=word: Always(word, 17))
        assert many.shape == elements.shape
        for index in np.ndindex(elements.shape):
            one = forced(mechanism, elements[index], lambda word=word: Always(word, 17))
            assert many[index] == one
            assert int(one) - int(elements[index]) in range(-60, 60) or not domain.lattice


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("integer", [False, True])
def test_a_box_is_drawn_like_its_coordinates(forced: Forced, family: str, edges: str, integer: bool) -> None:
    box = ib.Box([-INF, 0, -3], [INF, INF, 2**20], integer=integer)
    mechanism = MECHANISMS[family](box, scale=5.0, sensitivity=ib.L2(1.0), edges=edges)
    true = [2**60 + 129, 2**1000 + 1 if integer else Fraction(2**62 + 513, 3), 7 if integer else Fraction(1, 3)]
    for word in (Random(i).getrandbits(64) for i in range(15)):
        drawn = forced(mechanism, [true, [0, 1, 2]], lambda word=word: Always(word, 17))
        for i, q in enumerate(true):
            granularity = None if integer else float(mechanism.grid[i])
            alone = MECHANISMS[family](
                box.coordinate(i), scale=5.0, sensitivity=1, edges=edges, granularity=granularity
            )
            assert drawn[0, i] == forced(alone, q, lambda word=word: Always(word, 17))


def test_float_arrays_keep_to_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred thousand floats at most a handful is left to integers."""
    mechanism = ib.Laplace(LINE, scale=1.0, sensitivity=1.0)
    kernel = mechanism._sampler._kernel  # type: ignore[attr-defined]
    calls = []
    whole = kernel.settle
    monkeypatch.setattr(kernel, "settle", lambda *given: calls.append(given) or whole(*given))
    mechanism.release(np.linspace(-1e6, 1e6, 100_000))
    assert len(calls) < 20
    mechanism.release([Fraction(1, 3)])
    assert len(calls) > 0


# --- who is refused: by type and domain, never by size ------------------------------------------------

NUMBERS = [
    0,
    5,
    2**53,
    2**53 + 1,
    2**2000,
    10**400,
    -(10**5000),
    Fraction(10**400, 3),
    Decimal("1e400"),
    1e300,
    2.0**800,
]


@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.usefixtures("_no_hang")
def test_no_number_is_refused_for_its_size(family: str, edges: str) -> None:
    for domain in (LINE, ALL, HALF_LINE, FROM_0):
        mechanism = MECHANISMS[family](domain, scale=70.0, sensitivity=1, edges=edges)
        for x in NUMBERS:
            inside = (domain.lower == -INF or x >= 0) and (not domain.lattice or Fraction(x).denominator == 1)
            assert (x in domain) is inside
            for given in (x, [x]):
                if not inside:
                    with pytest.raises(ib.OutsideDomain):
                        mechanism.release(given)
                    continue
                answer = np.asarray(mechanism.release(given).value).item()
                assert type(answer) is (int if domain.lattice else float)
                assert not domain.lattice or abs(answer - int(x)) < 5000
                assert math.isfinite(answer) if not domain.lattice else True


NO_NUMBERS = [True, np.bool_(True), "9007199254740993", b"3", None, 3 + 0j, np.complex128(3), [True, 2**60], object()]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda v: f"{type(v).__name__}")
def test_what_is_no_number_is_refused_by_its_type(value: Any) -> None:
    for domain in (LINE, ALL):
        with pytest.raises(ib.ParameterTypeError) as caught:
            ib.Laplace(domain, scale=1.0, sensitivity=1).release(value)
        assert "9007199254740993" not in str(caught.value)


#: What NumPy takes for numbers.
SEEM_NUMBERS: dict[str, Any] = {
    "masked": np.ma.masked,
    "masked in a list": [3.0, np.ma.masked],
    "a hidden value": np.ma.masked_array([3.0, 7.0], [False, True]),
    "a hidden value outside": np.ma.masked_array([3.0, 999.0], [False, True]),
    "a hidden whole value": np.ma.masked_array([3, 7], [True, False]),
    "nothing hidden": np.ma.masked_array([3.0, 7.0]),
    "one number, hidden": np.ma.masked_array(3.0, True),
    "masked arrays in a list": [np.ma.masked_array([3.0, 7.0], [False, True])],
    "masked arrays in tuples": ((3.0, 7.0), np.ma.masked_array([3.0, 7.0], [False, True])),
    "bytes": b"\3\4",
    "bytearray": bytearray(b"\3\4"),
    "bytearray in a list": [bytearray(b"\3\4")],
    "memoryview": memoryview(b"\3\4"),
    "memoryview of floats": memoryview(np.array([3.0, 4.0])),
    "span": np.timedelta64(3),
    "span of seconds": np.timedelta64(3, "s"),
    "spans in a list": [np.timedelta64(3, "s")],
    "span among numbers": [3, np.timedelta64(3)],
    "array of a span": np.array(np.timedelta64(3)),
    "array of spans": np.array([3, 4], dtype="m8[s]"),
    "object array with a span": np.array([3, np.timedelta64(3)], dtype=object),
    "time": np.datetime64(3, "s"),
    "array of times": np.array([3, 4], dtype="M8[s]"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", SEEM_NUMBERS.values(), ids=SEEM_NUMBERS)
def test_what_only_looks_like_numbers_is_refused_by_its_type(value: Any) -> None:
    for domain in (ib.Interval(0, 10), ib.Integers(0, 10), ib.Spans([(0, 4), (5, 10)]), ib.Box([0, 0], [10, 10])):
        mechanism = ib.Laplace(domain, scale=1.0, sensitivity=ib.L1(1) if isinstance(domain, ib.Box) else 1)
        assert (value in domain) is False
        for use in (
            mechanism.release,
            lambda x, m=mechanism: m.release(x, clip=True),
            mechanism.at,
            mechanism.simulate,
            mechanism.interval,
            mechanism.estimate,
            domain.contains,
            domain.project,
        ):
            with pytest.raises(ib.ParameterTypeError) as caught:
                use(value)
            assert not any(digit in str(caught.value) for digit in "379")
            assert caught.value.__context__ is None


@pytest.mark.parametrize("value", [np.timedelta64(3), np.ma.masked, np.ma.masked_array(3.0, False), bytearray(b"3")])
def test_no_parameter_is_one_that_only_looks_like_a_number(value: Any) -> None:
    for make in (
        lambda: ib.Interval(value, 10),
        lambda: ib.Laplace(LINE, scale=value, sensitivity=1),
        lambda: ib.Laplace.calibrate(LINE, sensitivity=1, epsilon=value),
        lambda: ib.Box([0, value], [10, 10]),
    ):
        with pytest.raises(ib.ParameterTypeError):
            make()


def other(*_: object) -> Any:
    return 5


def refusing(*_: object) -> Any:
    raise SystemExit("a secret")


@pytest.mark.parametrize("says", [other, refusing])
@pytest.mark.parametrize("kind", [float, int, np.float64])
def test_a_number_of_a_derived_class_is_what_it_holds(forced: Forced, kind: type, says: Any) -> None:
    names = ("__float__", "__int__", "__index__", "as_integer_ratio", "__le__", "__lt__", "__ge__", "__gt__", "__ne__")
    derived = type("Derived", (kind,), dict.fromkeys((*names, "__eq__", "__hash__", "__abs__", "__floor__"), says))
    for domain in (ib.Interval(0, 4), ib.Integers(0, 4), ib.Spans([(0, 3), (3.5, 4)])):
        mechanism = ib.Laplace(domain, scale=1.0, sensitivity=1)
        assert derived(3) in domain
        assert derived(7) not in domain
        assert domain.contains([derived(3), derived(7)]).tolist() == [True, False]
        assert domain.project(derived(3)) == 3.0
        for seed in range(5):
            bits = Random(seed).getrandbits(BITS)
            answers = [
                forced(mechanism, x, lambda bits=bits: Words(bits, BITS))
                for x in (3, derived(3), [derived(3)], np.array([derived(3)], dtype=object))
            ]
            assert [np.asarray(x).item() for x in answers] == [answers[0]] * 4
        for given in (derived(7), [derived(7)]):
            with pytest.raises(ib.OutsideDomain):
                mechanism.release(given)
        assert mechanism.interval(derived(3)) == mechanism.interval(3)
    assert ib.Interval(0, derived(3)) == ib.Interval(0, 3)
    assert ib.Integers(0, derived(3)) == ib.Integers(0, 3)


@pytest.mark.parametrize("value", ["nan", "sNaN", "inf", "-inf"])
def test_decimals_that_are_no_finite_numbers_are_outside_like_floats(value: str) -> None:
    for domain in (ib.Interval(0, 9), HALF_LINE, LINE, ALL):
        mechanism = ib.Laplace(domain, scale=1.0, sensitivity=1)
        for true in (Decimal(value), [Decimal(value), 3], np.longdouble(value.lower().removeprefix("s"))):
            assert true not in domain
            for use in (mechanism.release, mechanism.at):
                with pytest.raises(ib.OutsideDomain) as caught:
                    use(true)
                assert caught.value.__context__ is None
                message = str(caught.value).replace(repr(domain), "")
                assert "inf" not in message
                assert "nan" not in message.lower()
    with pytest.raises(ib.OutsideDomain):
        ib.Laplace(ib.Interval(0, 9), scale=1.0, sensitivity=1).release([Decimal("nan")], clip=True)


def test_halves_are_no_whole_numbers_at_any_size() -> None:
    for x in (Fraction(2**60 + 1, 2), Fraction(2**61 + 1, 2), Decimal(2**60) + Decimal("0.5")):
        whole = Fraction(x).denominator == 1
        assert (x in ALL) is whole
        if not whole:
            with pytest.raises(ib.OutsideDomain):
                ib.Laplace(ALL, scale=1.0, sensitivity=1).release(x)


# --- domains --------------------------------------------------------------------------------------------


def test_clipping_is_exact(forced: Forced) -> None:
    interval = ib.Interval(0.0, 2.0**61)
    mechanism = ib.Laplace(interval, scale=500.0, sensitivity=1)

    def clipped(true: Any, bits: int) -> Any:
        return mechanism._sampler.draw(np.array([true], dtype=object), Words(bits, BITS), clip=True).tolist()[0]

    for bits in (Random(i).getrandbits(BITS) for i in range(10)):
        assert clipped(Fraction(-1, 3), bits) == clipped(0.0, bits)
        assert clipped(2**61 + 1, bits) == clipped(2**2000, bits) == clipped(2.0**61, bits)
        inside = clipped(2**60 + 129, bits)
        assert is_right(mechanism, 2**60 + 129, bits, inside)
    assert mechanism.release(2**2000, clip=True).value in interval
    assert mechanism.release([-(2**2000), Decimal("1e400")], clip=True).value.shape == (2,)


def test_projection_and_membership_are_exact() -> None:
    assert ALL.project(2**60 + 129) == 2**60 + 129
    assert ALL.project(Fraction(2**61 + 1, 2)) == 2**60  # ties go down
    assert ALL.project([2**60 + 129, 0.5]).tolist() == [2**60 + 129, 0]
    assert ib.Interval(0, 2.0**60).project(2**60 + 1) == 2**60
    assert ib.Interval(0, INF).project(Fraction(1, 3)) == Fraction(1, 3)
    assert ib.Spans([(0, 1), (2, INF)]).project([2**60 + 129, Fraction(3, 2), -1]).tolist() == [2**60 + 129, 1.0, 0.0]
    assert ib.Box([0, 0], [INF, 1], integer=True).project([2**60 + 129, 0.7]).tolist() == [2**60 + 129, 1]
    assert 2**60 + 1 not in ib.Interval(0, 2.0**60)
    assert np.array_equal(ib.Interval(0, 2.0**60).contains([2**60, 2**60 + 1]), [True, False])
    assert [2**60 + 1, 0] not in ib.Box([0, 0], [2.0**60, 1])
    assert [2**60, 0] in ib.Box([0, 0], [2.0**60, 1])
    assert Fraction(1, 3) in ib.Interval(0, 1)
    assert Fraction(2**60 + 1, 2) not in ib.Interval(0, 2.0**59)


# --- laws, intervals and estimates ------------------------------------------------------------------------


def numbers_of(found: Any) -> Any:
    return np.array([found.bias, found.sd, found.rmse, found.mae, found.at_lower, found.at_upper])


@pytest.mark.parametrize("name", SHIFTED)
@pytest.mark.parametrize("far", [2**53, 2**53 + 1, 2**60 + 129, 2**1000], ids=short)
def test_the_law_of_a_far_whole_number_is_that_of_a_near_one_moved(name: str, far: int) -> None:
    mechanism = SHIFTED[name](ALL)
    moved, near = mechanism.at(far + 1), mechanism.at(1)
    steps = [-7, 0, 1, 2, 12]
    for method in ("pmf", "logpmf", "cdf", "sf"):
        found, wanted = getattr(moved, method)([far + k for k in steps]), getattr(near, method)(steps)
        assert np.array_equal(found, wanted)
        assert getattr(moved, method)(far + 2) == getattr(near, method)(2)
    p = [1e-9, 0.2, 0.5, 0.9]
    assert [int(x) - far for x in moved.ppf(p).tolist()] == near.ppf(p).tolist()
    assert np.array_equal(numbers_of(moved.error()), numbers_of(near.error()))
    assert np.isnan(moved.pmf(math.nan))
    assert moved.cdf(INF) == 1.0


@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("edges", EDGES)
def test_laws_on_far_domains_are_those_of_near_ones_moved(family: str, edges: str) -> None:
    far, near = (
        MECHANISMS[family](ib.Interval(start, start + 2**14), scale=900.0, sensitivity=1, edges=edges, granularity=256)
        for start in (2.0**60, 0.0)
    )
    there, here = far.at([2**60 + 129, 2**60 + 1]), near.at([129, 1])
    x = [Fraction(1000, 3), 2048]
    assert there.logpdf([2**60 + k for k in x]) == pytest.approx(here.logpdf([float(k) for k in x]), rel=1e-14)
    assert np.array_equal(there.cdf([2**60 + k for k in (300, 5000)]), here.cdf([300, 5000]))
    assert numbers_of(there.error()) == pytest.approx(numbers_of(here.error()), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("family", MECHANISMS)
def test_the_divergence_of_far_neighbours_is_that_of_near_ones(family: str) -> None:
    mechanism = MECHANISMS[family](ALL, scale=2.0, sensitivity=1)
    near = mechanism.pair_rdp(0, 1, 2.0)
    assert near > 0.01
    for far in (2**53, 2**60 + 128, 2**1000):
        assert mechanism.pair_rdp(far, far + 1, 2.0) == near


@pytest.mark.parametrize("name", SHIFTED)
@pytest.mark.parametrize("far", [2**53, 2**60 + 129, -(2**62) - 513, 2**1000 + 1], ids=short)
def test_intervals_and_estimates_of_far_answers_are_those_of_near_ones_moved(name: str, far: int) -> None:
    for domain in (ALL, FROM_0 if far > 0 else ib.Integers(-INF, 0)):
        mechanism, plain = SHIFTED[name](domain), SHIFTED[name](ALL)
        for level in (0.5, 0.95, 1 - 1e-9):
            assert [end - far for end in mechanism.interval(far, level)] == list(plain.interval(0, level))
            low, high = mechanism.interval([far, far + (1 if far > 0 else -1)], level)
            assert low.tolist()[0] == mechanism.interval(far, level)[0]
            assert high.tolist()[1] == mechanism.interval(far + (1 if far > 0 else -1), level)[1]
        assert mechanism.estimate(far) == far
        assert mechanism.estimate(far, "median-unbiased") == far


def test_a_box_has_intervals_of_far_answers() -> None:
    box = ib.Laplace(ib.Box([-INF, 0], [INF, 9], integer=True), scale=3.0, sensitivity=ib.L1(1))
    far, near = box.interval([2**60 + 129, 4]), box.interval([129, 4])
    assert [(end - offset).tolist() for end, offset in zip(far, (np.array([2**60, 0]),) * 2, strict=True)] == [
        end.tolist() for end in near
    ]
    assert box.estimate([2**60 + 129, 4]).tolist() == [2**60 + 129, 4]


def test_intervals_on_reals_hold_the_exact_value() -> None:
    for family in MECHANISMS:
        for true in (2**60 + 129, 2**1000 + 1):
            mechanism = MECHANISMS[family](HALF_LINE, scale=3.0, sensitivity=1.0)
            low, high = mechanism.interval(mechanism.release(true).value, 1 - 1e-12)
            assert low <= true <= high
            assert high - low <= 4 * math.ulp(high)


# --- other members of the class ---------------------------------------------------------------------------


@pytest.mark.parametrize("family", MECHANISMS)
@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("true", [2.0**60, 2**60, 2**60 + 1])
def test_whole_answers_are_not_rounded_to_floats(family: str, edges: str, true: Any) -> None:
    """They came in steps of 256 around 2^60."""
    mechanism = MECHANISMS[family](ALL, scale=4.0, sensitivity=1, edges=edges)
    for answers in (
        [mechanism.release(true).value for _ in range(200)],
        mechanism.release([true] * 200).value.tolist(),
    ):
        assert {x % 2 for x in answers} == {0, 1}
        assert all(type(x) is int and abs(x - 2**60) < 400 for x in answers)
    small = MECHANISMS[family](ib.Integers(0, 9), scale=2.0**60, sensitivity=1, edges="ignore")
    assert {small.release(3).value % 2 for _ in range(100)} == {0, 1}  # where the noise alone is as large


def test_floats_beyond_2_to_the_700_are_not_moved() -> None:
    """They were taken as 2^700."""
    for domain in (LINE, HALF_LINE, ib.Spans([(-INF, 0), (1, INF)])):
        for family in MECHANISMS:
            for edges in EDGES:
                mechanism = MECHANISMS[family](domain, scale=3.0, sensitivity=1, edges=edges)
                assert mechanism.release(2.0**800).value == 2.0**800
                assert mechanism.release(np.array([2.0**800, 5.0])).value[0] == 2.0**800


def test_a_table_puts_values_next_to_the_end_of_a_cell_into_the_right_one() -> None:
    """A fraction just below it was rounded up to the end, into the next cell."""
    certain = ib.Table(ib.Interval(0, 2), [[1, 0], [0, 1]], sensitivity=1)
    below = 1 - Fraction(1, 10**30)
    assert certain.release(below).value == certain.points[0]
    assert certain.release([below, 1]).value.tolist() == certain.points.tolist()
    assert certain.at(below).pmf(certain.points).tolist() == [1.0, 0.0]
    assert certain.at([1, below]).pmf(certain.points[0]).tolist() == [0.0, 1.0]
    assert certain.release(1 + Fraction(1, 10**30)).value == certain.points[1]


def test_denoised_answers_are_made_of_exact_draws(forced: Forced) -> None:
    raw = ib.Laplace(ib.Interval(0, 1), scale=0.3, sensitivity=0.5, edges="ignore", granularity=2.0**-50)
    better = raw.denoised()
    for true in (Fraction(1, 3), Decimal("0.1")):
        bits = Random(2).getrandbits(BITS)
        answer = forced(raw, true, lambda bits=bits: Words(bits, BITS))
        assert is_right(raw, true, bits, answer)
        assert forced(better, true, lambda bits=bits: Words(bits, BITS)) == better._estimates(np.array([answer]))[0]
        assert better.at(true).mean() == pytest.approx(float(better.at(float(true)).mean()), rel=1e-12)
        assert better.at(true).error().rmse == pytest.approx(better.at(float(true)).error().rmse, rel=1e-12)


@pytest.mark.parametrize("given", [2**53 + 1, Fraction(1, 3), Fraction(2**60 + 1, 3), Decimal("0.3")], ids=str)
def test_a_sensitivity_that_is_no_float_is_not_taken_as_a_smaller_one(given: Any) -> None:
    if isinstance(given, Decimal):
        with pytest.raises(ib.ParameterTypeError):
            ib.L1(given)
        return
    assert Fraction(ib.Laplace(LINE, scale=1.0, sensitivity=given).sensitivity) >= given
    for made in (ib.L1(given), ib.L2(given), ib.Linf(given)):
        assert given <= Fraction(made.value) <= given * (1 + Fraction(1, 2**51))
    assert Fraction(ib.L0(1, linf=given).linf) >= given
    assert all(Fraction(x) >= given for x in ib.PerCoordinate([given, given]).values)
    assert ib.Laplace(ib.Interval(0, 1 / 3), scale=1.0, sensitivity=Fraction(1, 3)).sensitivity == 1 / 3
    assert ib.L1(0.3).value == 0.3


# --- arrays and tables of other packages --------------------------------------------------------------------

ODD = 2**60 + 129  # no float


class OfSeveralTypes:
    """An array that does not say of which type it is, as tables do not."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        return np.array([1.0, 2.0])


FOREIGN: dict[str, tuple[Callable[[], Any], list[Any] | None]] = {
    "pandas table": (lambda: pd.DataFrame({"a": [ODD, 3], "b": [0.5, 1.0]}), [[ODD, 0.5], [3, 1]]),
    "pandas table of signs": (
        lambda: pd.DataFrame({"a": np.array([2**63 + 1], "u8"), "b": np.array([1])}),
        [[2**63 + 1, 1]],
    ),
    "pandas table of one type": (lambda: pd.DataFrame({"a": [ODD], "b": [1]}), [[ODD, 1]]),
    "pandas table of floats": (lambda: pd.DataFrame({"a": [0.5], "b": [1.0]}), [[0.5, 1]]),
    "pandas table in a list": (lambda: [pd.DataFrame({"a": [ODD], "b": [0.5]})], [[[ODD, 0.5]]]),
    "Polars table": (lambda: pl.DataFrame({"a": [ODD], "b": [0.5]}), [[ODD, 0.5]]),
    "Polars table in a tuple": (lambda: (pl.DataFrame({"a": [ODD], "b": [0.5]}),), [[[ODD, 0.5]]]),
    "Arrow table": (lambda: pa.table({"a": [ODD], "b": [0.5]}), [[ODD, 0.5]]),
    "Arrow batch": (lambda: pa.record_batch({"a": [ODD], "b": [0.5]}), [[ODD, 0.5]]),
    "table without columns": (lambda: pd.DataFrame(index=range(2)), [[], []]),
    "table with text": (lambda: pd.DataFrame({"a": [1], "b": ["2"]}), None),
    "table with truth": (lambda: pd.DataFrame({"a": [1], "b": [True]}), None),
    "series": (lambda: pd.Series([ODD, 1]), [ODD, 1]),
    "series of objects": (lambda: pd.Series([ODD, 0.5, Decimal("0.1")], dtype=object), [ODD, 0.5, Fraction(1, 10)]),
    "series of Arrow": (lambda: pd.Series([ODD], dtype="int64[pyarrow]"), [ODD]),
    "series of decimals": (
        lambda: pd.Series([Decimal("0.1")], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
        [Fraction(1, 10)],
    ),
    "series with a gap": (lambda: pd.Series([ODD, None], dtype="Int64"), None),
    "series of Arrow with a gap": (lambda: pd.Series([ODD, None], dtype="int64[pyarrow]"), None),
    "floats with a gap": (lambda: pd.Series([0.5, None], dtype="Float64"), [0.5, math.nan]),
    "categories": (lambda: pd.Series([ODD, 1], dtype="category"), [ODD, 1]),
    "categories with a gap": (lambda: pd.Categorical.from_codes([0, -1], categories=[ODD]), [ODD, math.nan]),
    "sparse": (lambda: pd.Series([ODD, 0], dtype="Sparse[int64]"), [ODD, 0]),
    "index": (lambda: pd.Index([ODD, 1]), [ODD, 1]),
    "Polars with a gap": (lambda: pl.Series([ODD, None]), None),
    "Polars decimals": (lambda: pl.Series([Decimal(ODD), Decimal("0.5")]), [ODD, 0.5]),
    "Polars of 128 bits": (lambda: pl.Series([2**70 + 1, 1], dtype=pl.Int128), [2**70 + 1, 1]),
    "Polars objects": (lambda: pl.Series([ODD, 0.5], dtype=pl.Object), [ODD, 0.5]),
    "Polars spans of time": (lambda: pl.Series([1]).cast(pl.Duration), None),
    "Arrow": (lambda: pa.array([ODD, 1]), [ODD, 1]),
    "Arrow with a gap": (lambda: pa.array([ODD, None]), None),
    "Arrow chunks": (lambda: pa.chunked_array([[ODD], [1]]), [ODD, 1]),
    "Arrow dictionary with a gap": (lambda: pa.array([ODD, None]).dictionary_encode(), None),
    "Arrow union": (
        lambda: pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([ODD, 1]), pa.array([0.5, 0.5])]),
        [ODD, 0.5],
    ),
    "array without a type": (OfSeveralTypes, None),
    "array without a type in a list": (lambda: [OfSeveralTypes(), OfSeveralTypes()], None),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_arrays_and_tables_of_other_packages_are_exact_or_refused(name: str) -> None:
    """The array of a table has one type: whole numbers beside floats were rounded, and so were those beside gaps."""
    make, wanted = FOREIGN[name]
    given = make()
    if wanted is None:
        for use in (ib.Laplace(LINE, scale=1.0, sensitivity=1.0).release, LINE.contains):
            with pytest.raises(ib.ParameterTypeError, match=type(given).__name__):
                use(given)
        return
    found = _exact.array(given)
    assert found is not None
    assert found.shape == np.shape(np.array(wanted, dtype=object))
    exactly = [None if math.isnan(x) else Fraction(x) for x in found.ravel().tolist()]
    assert exactly == [None if math.isnan(x) else Fraction(x) for x in np.array(wanted, dtype=object).ravel()]


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "Polars", "Arrow"])
def test_neighbours_in_a_table_have_answers_in_common(table: Any) -> None:
    for domain in (LINE, ib.Box([0, 0], [2.0**62, 1])):
        mechanism = ib.Laplace(domain, scale=10.0, sensitivity=ib.L1(1.0) if isinstance(domain, ib.Box) else 1.0)
        seen = [
            {mechanism.release(table({"a": [true], "b": [0.5]})).value[0][0] for _ in range(200)}
            for true in (2**60 + 128, 2**60 + 129)
        ]
        assert seen[0] == seen[1]


# --- numbers that few letters make too large ----------------------------------------------------------------

FAR = ["1e-1000000000", "1e1000000000", "-3e-100001", "1e100001", "0." + "1" * 100_001]


@pytest.mark.usefixtures("_no_hang")
@pytest.mark.parametrize("text", FAR, ids=short_text)
def test_decimals_with_digits_far_from_their_point_are_refused_at_once(text: str) -> None:
    """Each was made a fraction of as many digits, which took hours."""
    far = Decimal(text)
    for domain in (ib.Interval(0, 120), LINE, ALL, ib.Spans([(0, 1), (2, 3)])):
        mechanism = ib.Laplace(domain, scale=2.0, sensitivity=1)
        assert far not in domain
        for use in (
            mechanism.release,
            mechanism.at,
            mechanism.simulate,
            domain.contains,
            domain.project,
            mechanism.interval,
            mechanism.estimate,
            *([mechanism.posterior] if domain.bounded else []),
            *([lambda v, m=mechanism: m.release(v, clip=True)] if not isinstance(domain, ib.Spans) else []),
        ):
            for given in (far, [far], [[1, far]], np.array([far, 1], dtype=object), (far, Fraction(1, 3))):
                with pytest.raises(ib.ParameterTypeError, match="more than 100,000 places before or behind") as caught:
                    use(given)
                assert text[:8] not in str(caught.value)
    box = ib.Box([0, 0], [1, 1])
    assert [far, 1] not in box
    with pytest.raises(ib.ParameterTypeError, match="100,000"):
        ib.Laplace(box, scale=2.0, sensitivity=ib.L1(1)).release([far, 1])


@pytest.mark.usefixtures("_no_hang")
def test_decimals_at_the_limit_and_nothing_in_many_places_are_numbers() -> None:
    for text in ("1e-100000", "0." + "1" * 100_000):
        assert Decimal(text) in ib.Interval(0, 120)
        assert 0 <= ib.Laplace(ib.Interval(0, 120), scale=2.0, sensitivity=1.0).release(Decimal(text)).value <= 120
    for text in ("0e-1000000000", "-0e1000000000"):
        assert _exact.exact(Decimal(text)) == 0.0
    assert Decimal("1e100000") in LINE


@pytest.mark.usefixtures("_no_hang")
@pytest.mark.parametrize("text", FAR, ids=short_text)
def test_the_command_refuses_them_too(text: str) -> None:
    done = run(f"release laplace --interval 0 120 --sensitivity 0.5 --epsilon 1 --value={text}")
    assert done.exit_code == 2
    assert "100,000 places" in " ".join(done.output.split())
    assert text[:8] not in done.output


# --- objects that lie, fail or have no end ------------------------------------------------------------------


class LyingDecimal(Decimal):
    def is_nan(self) -> bool:
        raise RuntimeError("odd")

    def as_integer_ratio(self) -> tuple[int, int]:
        return 1, 1

    adjusted = is_zero = as_tuple = is_infinite = is_nan  # type: ignore[assignment]


class LyingFraction(Fraction):
    @property
    def numerator(self) -> int:
        return 7

    def __getattribute__(self, name: str) -> Any:
        return 7 if name == "_numerator" else super().__getattribute__(name)

    def __float__(self) -> float:
        raise RuntimeError("odd")


class LyingList(list):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        raise RuntimeError("odd")

    __getitem__ = __len__ = __iter__  # type: ignore[assignment]


class LyingTuple(tuple):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return iter([99.0])


def endless() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def nested(depth: int) -> Any:
    found: Any = 1.0
    for _ in range(depth):
        found = [found]
    return found


class FailingArray:
    dtype = "float64"

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("odd")


def real_that_says(ratio: Any) -> Any:
    """An object that says it is a real number, and this of itself."""

    class Odd:
        def as_integer_ratio(self) -> Any:
            if isinstance(ratio, Exception):
                raise ratio
            return ratio

        def __float__(self) -> float:
            return 3.0

    numbers.Real.register(Odd)
    return Odd()


def half_made() -> Any:
    found = Fraction(1, 2)
    found._denominator = 0  # type: ignore[attr-defined]
    return found


@pytest.mark.usefixtures("_no_hang")
@pytest.mark.parametrize(
    "make",
    [
        endless,
        lambda: nested(100),
        lambda: nested(20_000),
        lambda: real_that_says((1, 0)),
        lambda: real_that_says((1.5, "x")),
        lambda: real_that_says(3),
        lambda: real_that_says(RuntimeError("odd")),
        lambda: real_that_says(OverflowError("odd")),
        FailingArray,
        half_made,
        lambda: object.__new__(Fraction),
    ],
    ids=range(11),
)
def test_whatever_an_object_does_the_error_has_a_name(make: Callable[[], Any]) -> None:
    for given in (make(), [make(), 1.0], (0.5, [make()])):
        for domain in (LINE, ib.Interval(0, 1)):
            mechanism = ib.Laplace(domain, scale=1.0, sensitivity=1.0)
            for use in (mechanism.release, mechanism.at, mechanism.estimate, domain.contains, domain.project):
                with pytest.raises(ib.ParameterTypeError, match="must be"):
                    use(given)
        if not isinstance(given, list | tuple):
            assert given not in LINE
        assert given not in ib.Box([0], [1])
        with pytest.raises(ib.InboundsError):
            ib.Box(given, given)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (LyingDecimal("3"), 3),
        (LyingFraction(3, 2), Fraction(3, 2)),
        (LyingList([1.0, 2.0]), [1.0, 2.0]),
        (LyingTuple([1.0, 2.0]), [1.0, 2.0]),
        ([LyingDecimal("0.5"), LyingFraction(3, 2), ODD], [0.5, 1.5, ODD]),
    ],
    ids=range(5),
)
def test_objects_of_derived_classes_are_what_they_hold(given: Any, wanted: Any) -> None:
    found = _exact.array(given)
    assert found is not None
    assert found.tolist() == wanted
    ib.Laplace(LINE, scale=1.0, sensitivity=1.0).release(given)


# --- the command line ----------------------------------------------------------------------------------------


def test_the_command_reads_and_prints_numbers_exactly() -> None:
    options = "release laplace --integers 0 inf --sensitivity 1 --epsilon 60 --edges ignore"  # hardly any noise
    for true in (2**53 + 1, 2**60 + 129, 2**200 + 1):
        assert json.loads(run(f"{options} --value {true} --json").stdout)["value"] == true
        shown = run(f"{options} --value {true}").stdout
        assert f"{true}" in shown
    wanted = "--sensitivity 1 --epsilon 1 --edges clamp"
    outside = run(f"release laplace --integers 0 9007199254740992 {wanted} --value 9007199254740993")
    assert outside.exit_code != 0
    assert "9007199254740993" not in outside.output
    at_end = run("release laplace --interval 0 0.3 --sensitivity 0.1 --epsilon 1 --value 0.3 --json")
    assert 0 <= json.loads(at_end.stdout)["value"] <= 0.3


@pytest.mark.parametrize("kind", [np.float16, np.float32], ids=str)
@pytest.mark.parametrize("upper", [0.1, 0.2, 0.3, 0.6, 1.1, 2.2, 99.9])
def test_narrow_floats_are_clipped_to_the_very_ends(kind: Any, upper: float) -> None:
    noise = ib.Laplace(ib.Interval(0, upper), scale=0.5, sensitivity=0.1)
    for value in (kind(upper), kind(500), kind("inf"), np.array([500, -1], kind)):
        assert np.all(np.asarray(noise.release(value, clip=True).value) <= upper)
    counts = ib.Laplace(ib.Integers(0, 70000), scale=2.0, sensitivity=1)
    assert counts.release(kind("inf"), clip=True).value <= 70000


@pytest.mark.parametrize(
    ("domain", "value"),
    [
        (ib.Integers(0, 10), Fraction(1, 3)),
        (ib.Integers(0, 10), 10**400),
        (ib.Integers(0, 2**53), np.uint64(2**64 - 1)),
        (ib.Integers(0, 2**53), [2**53 + 1, 1]),
        (ib.Interval(0, 1), Decimal("1e400")),
        (ib.Interval(-math.inf, math.inf), 10**400),
        (ib.Interval(0, math.inf), Fraction(10**400, 3)),
    ],
    ids=range(7),
)
def test_what_is_no_answer_is_refused_by_name(domain: Any, value: Any) -> None:
    edges = "clamp" if math.isfinite(domain.lower) else "ignore"
    for noise in (
        ib.Laplace(domain, scale=2.0, sensitivity=1, edges=edges),
        ib.Gaussian(domain, scale=2.0, sensitivity=1, edges=edges),
    ):
        for ask in (noise.interval, noise.estimate):
            with pytest.raises(ParameterError, match="an answer that this mechanism can give"):
                ask(value)

"""Exact draws from finite laws: forced bits against fractions, and statistics with a declared rate of false alarms."""

from __future__ import annotations

import pickle
import re
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import inbounds as ib
from inbounds.sampling.entropy import Seeded
from inbounds.sampling.finite import CHUNK, Finite

ALPHA = 1e-7
WORD = 2**64


class Scripted:
    """A source of given words: those of ``fill`` first, then those of ``word``; zeros when they run out."""

    def __init__(self, first: list[int], more: list[int] | None = None) -> None:
        self.first, self.more, self.asked = list(first), list(more or []), 0

    def fill(self, words: Any) -> None:
        words[:] = [self.first.pop(0) for _ in range(len(words))]

    def word(self) -> int:
        self.asked += 1
        if self.first:
            return self.first.pop(0)
        return self.more.pop(0) if self.more else 0


def digits(u: Fraction, count: int = 8) -> list[int]:
    """The first words of u in base 2^64 (rounded down)."""
    n = int(u * WORD**count)
    return [n >> 64 * (count - 1 - i) & (WORD - 1) for i in range(count)]


def inverse(weights: list[int], u: Fraction) -> int:
    """The smallest i with u < C_i / total, from the definition."""
    total = sum(weights)
    return next(i for i, c in enumerate(accumulate(weights)) if u < Fraction(c, total))


LAWS: dict[str, list[int]] = {
    "thirds": [1, 1, 1],
    "fair coin": [1, 1],
    "dyadic": [1, 2, 1, 4, 8],
    "sevenths": [2, 4, 1],
    "one outcome": [5],
    "zeros": [0, 0, 3, 0, 1, 0, 7, 0, 0],
    "zero first": [0, 1],
    "zero last": [1, 0],
    "huge": [10**400, 10**400 + 1, 1, 10**399],
    "rare": [1, 10**30, 1, 1, 10**25],
    "equal thresholds": [WORD**2, 1, 1, 1, WORD**2],
    "many": [i * i % 17 for i in range(100)],
    "beyond int64": [2**62, 2**62, 2**62, 5],
}


def forced(weights: list[int]) -> list[Fraction]:
    """Uniforms at every cdf value, and beside it at distances down to 2^-300; and near 0 and 1."""
    total = sum(weights)
    offsets = [
        Fraction(0),
        *(Fraction(s, 2**e) for e in (3, 62, 63, 64, 65, 100, 127, 128, 129, 192, 300) for s in (-1, 1)),
    ]
    edges = {Fraction(c, total) for c in accumulate(weights)} | {Fraction(0), Fraction(1)}
    return sorted({edge + off for edge in edges for off in offsets if 0 <= edge + off < 1})


@pytest.mark.parametrize("name", LAWS)
def test_forced_bits(name: str) -> None:
    weights = LAWS[name]
    law = Finite(weights)
    for u in forced(weights):
        bits = digits(u)
        # The bits are those of u rounded down to 512 binary places.
        exact = Fraction(int(u * WORD**8), WORD**8)
        expected = inverse(weights, exact)
        assert law.draw(1, Scripted(bits[:1], bits[1:])).tolist() == [expected]
        assert law.one(source=Scripted(bits)) == expected
        assert weights[expected] > 0


def test_bits_are_asked_for_only_where_they_matter() -> None:
    law = Finite([1, 1, 1])
    third = WORD // 3  # 0x5555...: the words of 1/3 go on like that
    for n, more, expected, asked in (
        (third - 1, [], 0, 0),
        (third + 1, [], 1, 0),
        (third, [third - 1], 0, 1),
        (third, [third + 1], 1, 1),
        (third, [third] * 6 + [third + 1], 1, 7),
        (third, [third] * 6 + [0], 0, 7),
        (2 * third, [2 * third, 2 * third + 1], 2, 2),
    ):
        source = Scripted([n], more)
        assert law.draw(1, source).tolist() == [expected]
        assert source.asked == asked
    coin = Scripted([WORD // 2])
    assert Finite([1, 1]).draw(1, coin).tolist() == [1]
    assert coin.asked == 0
    last = Scripted([WORD - 1])
    assert Finite([1, 0, 0]).draw(1, last).tolist() == [0]
    assert last.asked == 0


def test_outcomes_of_weight_zero_never_come_out() -> None:
    law = Finite(LAWS["zeros"])
    ends = [0, 1, WORD // 11 * 3, WORD // 11 * 4, WORD - 2, WORD - 1]
    for n in ends:
        for more in ([], [WORD - 1] * 4):
            assert LAWS["zeros"][law.draw(1, Scripted([n], more))[0]] > 0
    assert set(np.unique(law.draw(20_000)).tolist()) == {2, 4, 6}
    assert {law.one() for _ in range(500)} == {2, 4, 6}


def test_every_row_has_its_own_law() -> None:
    rows = [[1, 1, 1], [0, 0, 5], [7, 0, 0], [0, 1, 0], [1, 0, 1]]
    law = Finite(rows)
    assert (law.rows, law.outcomes) == (5, 3)
    for row, weights in enumerate(rows):
        for u in forced(weights):
            bits = digits(u)
            expected = inverse(weights, Fraction(int(u * WORD**8), WORD**8))
            assert law.draw(np.array([row]), Scripted(bits[:1], bits[1:])).tolist() == [expected]
            assert law.one(row, Scripted(bits)) == expected
    drawn = law.draw(np.array([[1, 2, 3], [3, 2, 1]]))
    assert drawn.tolist() == [[2, 0, 1], [1, 0, 2]]
    assert drawn.dtype == np.int64
    assert Finite([[3], [5]]).draw([0, 1, 1]).tolist() == [0, 0, 0]


@pytest.mark.parametrize("outcomes", [*range(1, 20), 31, 32, 33, 63, 64, 65, 300])
def test_any_number_of_outcomes(outcomes: int) -> None:
    # The bisection's first step is not a halving unless the number is a power of two.
    weights = [1 + i % 3 for i in range(outcomes)]
    law = Finite(weights)
    total = sum(weights)
    words = [0, WORD - 1]
    for c in list(accumulate(weights))[:-1]:
        words += [c * WORD // total - 1, c * WORD // total + 1]
    expected = [inverse(weights, Fraction(w, WORD)) for w in words]
    assert law.draw(len(words), Scripted(words)).tolist() == expected
    assert [law.one(source=Scripted([w])) for w in words] == expected
    assert sorted(set(expected)) == list(range(outcomes))


@given(
    st.lists(st.one_of(st.integers(0, 5), st.integers(0, 2**70)), min_size=1, max_size=9).filter(any),
    st.lists(st.integers(0, WORD - 1), min_size=4, max_size=4),
)
def test_any_law_and_any_bits(weights: list[int], bits: list[int]) -> None:
    u = sum((Fraction(w, WORD ** (i + 1)) for i, w in enumerate(bits)), Fraction(0))
    expected = inverse(weights, u)  # the words beyond the script are zeros
    law = Finite(weights)
    assert law.draw(1, Scripted(bits[:1], bits[1:])).tolist() == [expected]
    assert law.one(source=Scripted(bits)) == expected
    assert pickle.loads(pickle.dumps(law)).one(source=Scripted(bits)) == expected


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7])
def test_chunks_join(size: int) -> None:
    weights = [3, 1, 4, 1, 5]
    words = np.random.PCG64(3).random_raw(size) if size else np.empty(0, dtype=np.uint64)
    thresholds = np.array([c * WORD // 14 for c in accumulate(weights)][:-1], dtype=np.uint64)
    expected = np.searchsorted(thresholds, words, side="right")
    drawn = Finite(weights).draw(size, Seeded(3))
    assert np.array_equal(drawn, expected)
    rows = np.arange(size) % 2
    drawn = Finite([[1, 0, 0, 0, 0], weights]).draw(rows, Seeded(3))
    assert np.array_equal(drawn, np.where(rows == 1, expected, 0))


def test_shapes() -> None:
    law = Finite([1, 2])
    assert law.draw(()).shape == ()
    assert law.draw((2, 3)).shape == (2, 3)
    assert law.draw((0, 3)).shape == (0, 3)
    assert law.draw(np.int64(4)).shape == (4,)
    rows = Finite([[1, 2], [2, 1]])
    assert rows.draw(np.zeros((3, 2, 4), dtype=np.uint8)).shape == (3, 2, 4)
    assert rows.draw(1).shape == ()
    assert rows.draw([]).shape == (0,)
    assert rows.draw(np.zeros((4, 6), dtype=int)[:, ::2]).shape == (4, 3)
    assert type(law.one()) is int


def test_what_weights_may_be() -> None:
    expected = Finite([1, 2, 3]).draw(1000, Seeded(1))
    for weights in (
        (1, 2, 3),
        range(1, 4),
        np.array([1, 2, 3]),
        np.array([1, 2, 3], dtype=np.uint8),
        np.array([1, 2, 3], dtype=object),
        [np.int8(1), np.uint64(2), 3],
        [10**50, 2 * 10**50, 3 * 10**50],
    ):
        assert np.array_equal(Finite(weights).draw(1000, Seeded(1)), expected)
    # Sums beyond what the dtype holds.
    for weights in (
        np.array([200, 200], dtype=np.uint8),
        np.full(2, 2**63 - 1),
        np.full(2, 2**64 - 1, dtype=np.uint64),
    ):
        assert Finite(weights).draw(2, Scripted([WORD // 2 - 1, WORD // 2])).tolist() == [0, 1]
    wide = Finite([np.int64(2**62), np.int64(2**62), np.int64(2**62), np.int64(2**62)])
    assert wide.draw(4, Scripted([i * WORD // 4 for i in range(4)])).tolist() == [0, 1, 2, 3]
    given_ = np.array([1, 1])
    law = Finite(given_)
    given_[:] = [0, 1]  # the law is its own
    assert law.draw(1, Scripted([0])).tolist() == [0]
    assert repr(law) == "<Finite: one law on 2 outcomes>"
    assert repr(Finite([[1, 2, 3]])) == "<Finite: 1 laws on 3 outcomes>"


# --- statistics ------------------------------------------------------------------------------


def p_value(drawn: Any, weights: Any) -> float:
    expected = np.array(weights, dtype=float) / float(sum(weights)) * drawn.size
    counts = np.bincount(drawn, minlength=len(weights))
    assert expected.min() > 20
    return float(stats.chi2.sf(np.sum((counts - expected) ** 2 / expected), len(weights) - 1))


@pytest.mark.parametrize("weights", [[1, 2, 3], [1] * 40, [7, 5], [10**400, 3 * 10**400]], ids=["3", "40", "2", "huge"])
def test_draws_follow_the_law(weights: list[int]) -> None:
    count = 400_000
    rows = [weights, weights[::-1]]
    drawn = Finite(weights).draw(count)
    assert p_value(drawn, [w // weights[0] if weights[0] > 100 else w for w in weights]) > ALPHA
    which = np.arange(count) % 2
    together = Finite(rows).draw(which)
    for row in range(2):
        small = [w // weights[0] if weights[0] > 100 else w for w in rows[row]]
        assert p_value(together[which == row], small) > ALPHA


def test_the_test_rejects_a_law_that_is_wrong_by_three_percent() -> None:
    weights = [100, 200, 300]
    drawn = Finite([103, 200, 300]).draw(1_000_000)
    assert p_value(drawn, [103, 200, 300]) > ALPHA
    assert p_value(drawn, weights) < ALPHA


def test_single_draws_follow_the_law() -> None:
    law = Finite([[1, 2, 3], [3, 2, 1]])
    drawn = np.array([law.one(1) for _ in range(100_000)])
    assert p_value(drawn, [3, 2, 1]) > ALPHA
    assert p_value(drawn, [33, 20, 10]) < ALPHA


def test_draws_are_independent_of_each_other() -> None:
    drawn = Finite([1, 1, 1]).draw(300_000)
    assert p_value(3 * drawn[:-1:2] + drawn[1::2], [1] * 9) > ALPHA
    assert not np.array_equal(Finite([1, 1]).draw(100), Finite([1, 1]).draw(100))


# --- bad input -------------------------------------------------------------------------------

BAD: list[tuple[Any, type[Exception]]] = [
    ([0.5, 0.5], ib.ParameterTypeError),
    ([1, 2.0], ib.ParameterTypeError),
    (np.array([1.0, 2.0]), ib.ParameterTypeError),
    ([1, float("nan")], ib.ParameterTypeError),
    ([1, float("inf")], ib.ParameterTypeError),
    ([True, 1], ib.ParameterTypeError),
    (np.array([True, False]), ib.ParameterTypeError),
    ([1, None], ib.ParameterTypeError),
    ([1, "2"], ib.ParameterTypeError),
    ([Fraction(1, 2), Fraction(1, 2)], ib.ParameterTypeError),
    ([[1, 2], [3]], ib.ParameterTypeError),
    ("12", ib.ParameterTypeError),
    (b"12", ib.ParameterTypeError),
    (7, ib.ParameterTypeError),
    (None, ib.ParameterTypeError),
    ({0: 1}, ib.ParameterTypeError),
    ({1, 2}, ib.ParameterTypeError),
    (np.array(3), ib.ParameterError),
    ([], ib.ParameterError),
    ([[]], ib.ParameterError),
    ([[[1, 2]]], ib.ParameterError),
    (np.ones((2, 2, 2), dtype=int), ib.ParameterError),
    (np.ones((0, 3), dtype=int), ib.ParameterError),
    ([1, -1], ib.ParameterError),
    (np.array([1, -1]), ib.ParameterError),
    ([1, -(10**400)], ib.ParameterError),
    ([0, 0], ib.ParameterError),
    ([[1, 2], [0, 0]], ib.ParameterError),
    (np.zeros((2, 2), dtype=int), ib.ParameterError),
]


@pytest.mark.parametrize(("weights", "kind"), BAD, ids=lambda v: repr(v)[:30])
def test_bad_weights_are_refused(weights: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        Finite(weights)
    message = str(caught.value)
    assert re.match(r"Finite: weights.* must be .+; got ", message)
    assert len(message) < 300


def test_the_bad_row_is_named() -> None:
    with pytest.raises(ib.ParameterError, match=r"weights\[1\] must be such that one at least is positive"):
        Finite([[1, 2], [0, 0]])
    with pytest.raises(ib.ParameterTypeError, match="integers in proportion"):
        Finite([0.25, 0.75])


def test_bad_rows_are_refused_and_not_shown() -> None:
    law = Finite([[1, 2], [2, 1]])
    for which in (1234567, -1234567, [0, 1234567], np.array([1234567, 0], dtype=np.uint64), 12345.67, ["1234567"]):
        for call in (law.draw, law.one):
            with pytest.raises(ib.InboundsError) as caught:
                call(which)
            assert "12345" not in str(caught.value)
            assert "row must be whole and from 0 to 1" in str(caught.value)
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None
    for which in (True, None, 0.0, [[0, 1], [0]], [True], "0", float("nan")):
        for call in (law.draw, law.one):
            with pytest.raises(ib.ParameterTypeError):
                call(which)
    with pytest.raises(ib.ParameterError):
        Finite([1, 2]).one(1)


def test_bad_sizes_are_refused() -> None:
    law = Finite([1, 2])
    for size in (2.5, True, "3", None, [3], (2, 1.0), (2, True)):
        with pytest.raises(ib.ParameterTypeError, match="Finite: size must be"):
            law.draw(size)
    for size in (-1, (2, -1)):
        with pytest.raises(ib.ParameterError, match="Finite: size must be"):
            law.draw(size)

"""Intervals, spans, integer ranges and boxes."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inbounds as ib

INF = math.inf
DOMAINS = [
    ib.Interval(-2, 5.5),
    ib.Interval(0, INF),
    ib.Interval(-INF, INF),
    ib.Spans([(0, 1), (2.5, 4)]),
    ib.Spans([(-INF, 0), (1, 2), (3, INF)]),
    ib.Integers(-3, 9),
    ib.Integers(0, INF),
    ib.Box([0, 1], [10, 9]),
    ib.Box([0, -INF], [10, 9]),
    ib.Box([0, 1], [10, 9], integer=True),
]
every = pytest.mark.parametrize("domain", DOMAINS, ids=repr)


# --- values like any other -------------------------------------------------------------------


@every
def test_repr_evaluates_to_an_equal_domain(domain: Any) -> None:
    twin = eval(repr(domain), {**vars(ib), "inf": INF})
    assert twin == domain
    assert hash(twin) == hash(domain)


@every
def test_pickles_and_copies_are_equal(domain: Any) -> None:
    for twin in (pickle.loads(pickle.dumps(domain)), copy.copy(domain), copy.deepcopy(domain)):
        assert twin == domain
        assert hash(twin) == hash(domain)
        assert repr(twin) == repr(domain)
    assert len({domain, copy.deepcopy(domain)}) == 1


@every
def test_is_frozen(domain: Any) -> None:
    for name in ("lower", "upper", "spans", "integer", "something_new"):
        with pytest.raises(AttributeError):
            setattr(domain, name, 3.0)


def test_the_ends_of_a_box_cannot_be_written() -> None:
    box = ib.Box([0, 1], [10, 9])
    for twin in (box, copy.copy(box), copy.deepcopy(box), pickle.loads(pickle.dumps(box))):
        for ends in (twin.lower, twin.upper):
            with pytest.raises(ValueError, match="read-only"):
                ends[0] = 5.0


def test_a_box_does_not_follow_the_arrays_it_was_made_from() -> None:
    low, high = np.array([0.0, 1.0]), np.array([10.0, 9.0])
    box = ib.Box(low, high)
    low[0] = high[0] = 5.0
    assert box == ib.Box([0, 1], [10, 9])


@pytest.mark.thinned(3)
@pytest.mark.parametrize("text", ["Box([0.0], [1.0])", "Interval(0, 1)", "Spans([(0, 1), (2, 3)])"])
def test_hashes_survive_a_pickle_from_another_process(text: str) -> None:
    code = f"import pickle, sys, inbounds as ib; sys.stdout.buffer.write(pickle.dumps(ib.{text}))"
    for seed in ("1", "2"):
        made = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            timeout=60,
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed},
        ).stdout
        assert pickle.loads(made) in {eval(f"ib.{text}")}


def test_equal_domains_have_equal_hashes_also_at_negative_zero() -> None:
    for a, b in (
        (ib.Interval(-0.0, 1), ib.Interval(0.0, 1)),
        (ib.Spans([(-0.0, 1)]), ib.Spans([(0.0, 1)])),
        (ib.Box([-0.0], [1]), ib.Box([0.0], [1])),
    ):
        assert a == b
        assert hash(a) == hash(b)


def test_different_domains_differ() -> None:
    assert len(set(DOMAINS)) == len(DOMAINS)
    assert ib.Interval(0, 9) != ib.Integers(0, 9)
    assert ib.Box([0], [9]) != ib.Box([0], [9], integer=True)
    assert ib.Box([0], [9]) != ib.Interval(0, 9)
    assert ib.Box([0, 0], [9, 9]) != ib.Box([0], [9])


def test_long_reprs_are_short() -> None:
    assert len(repr(ib.Spans([(3 * i, 3 * i + 1) for i in range(100)]))) < 100
    assert len(repr(ib.Box([0] * 100, [1] * 100))) < 100


# --- parts -----------------------------------------------------------------------------------


def test_ends_and_widths() -> None:
    assert (ib.Interval(-2, 5.5).lower, ib.Interval(-2, 5.5).upper, ib.Interval(-2, 5.5).width) == (-2.0, 5.5, 7.5)
    spans = ib.Spans([(2.5, 4), (0, 1)])
    assert (spans.lower, spans.upper, spans.width) == (0.0, 4.0, 4.0)
    assert spans.pieces == spans.spans == ((0.0, 1.0), (2.5, 4.0))
    assert spans.holes == ((1.0, 2.5),)
    whole = ib.Integers(-3.0, 9)
    assert (whole.lower, whole.upper, whole.width) == (-3, 9, 12)
    assert type(whole.lower) is type(whole.upper) is int
    assert ib.Integers(-INF, 9).lower == -INF
    box = ib.Box([0, 1], [10, 9])
    assert box.dimension == 2
    assert box.width.tolist() == [10, 8]
    assert box.coordinate(1) == ib.Interval(1, 9)
    assert ib.Box([0, 1], [10, 9], integer=True).coordinate(1) == ib.Integers(1, 9)


def test_bounded_and_lattice() -> None:
    assert [d.bounded for d in DOMAINS] == [True, False, False, True, False, True, False, True, False, True]
    assert [d.lattice for d in DOMAINS] == [False] * 5 + [True, True, False, False, True]


def test_spans_can_be_given_in_several_ways() -> None:
    expected = ib.Spans([(0, 1), (3, 4)])
    assert ib.Spans([[3, 4], [0, 1]]) == expected
    assert ib.Spans((0, 1), (3, 4)) == expected
    assert ib.Spans(np.array([[0, 1], [3, 4]])) == expected
    assert ib.Spans(iter([(0, 1), (3, 4)])) == expected
    assert ib.Spans([(0, 1)]).holes == ()


# --- membership ------------------------------------------------------------------------------

STRANGE = [
    math.nan, INF, -INF, None, "3", b"3", "abc", 3 + 0j, np.complex128(3), True, False, np.bool_(True), [], [3.0],
    np.array([3.0]), np.array([3 + 0j, 4]), [3 + 0j, 4], {}, object(),
    [10**400, 3], ["3", "4"], [True, 4], [[3.0, 4.0]], [3.0, 4.0, 5.0], [math.nan, 4], [INF, 4],
]  # fmt: skip


@pytest.mark.parametrize("x", STRANGE, ids=[f"{i}-{type(x).__name__}" for i, x in enumerate(STRANGE)])
@pytest.mark.parametrize(
    "domain", [ib.Interval(0, 9), ib.Interval(-INF, INF), ib.Integers(0, 9), ib.Box([0, 0], [9, 9])], ids=repr
)
def test_what_is_no_number_is_in_no_domain(domain: Any, x: Any) -> None:
    if (
        isinstance(domain, ib.Box) or not isinstance(x, np.ndarray) or x.size > 1
    ):  # numpy reads an array of one number as that number
        assert (x in domain) is False


@pytest.mark.parametrize("x", [10**400, -(10**5000), Fraction(10**400, 3)], ids=["e400", "-e5000", "third"])
def test_no_number_is_too_large_for_a_domain_without_ends(x: Any) -> None:
    whole = Fraction(x).denominator == 1
    assert x in ib.Interval(-INF, INF)
    assert (x in ib.Integers(-INF, INF)) is whole
    assert [x, 1] in ib.Box([-INF, 0], [INF, 2])
    assert x not in ib.Interval(0, 9)
    assert (x in ib.Interval(0, INF)) is (x > 0)


def test_membership() -> None:
    assert all(x in ib.Interval(-2, 5.5) for x in (-2, 0, np.float32(1), 5.5, np.array(3.0)))
    assert not any(x in ib.Interval(-2, 5.5) for x in (np.nextafter(-2, -3), 5.6))
    spans = ib.Spans([(0, 1), (2.5, 4)])
    assert [x in spans for x in (-1, 0, 1, 1.5, 2.5, 4, 5)] == [False, True, True, False, True, True, False]
    assert [x in ib.Integers(0, 9) for x in (0, 9, 3.0, 3.5, -1, 10)] == [True, True, True, False, False, False]
    assert 2**53 + 1 not in ib.Integers(0, 2**53)
    assert [1, 9] in ib.Box([0, 1], [10, 9])
    assert [1, 9.5] not in ib.Box([0, 1], [10, 9])
    assert (1.5, 2) not in ib.Box([0, 1], [10, 9], integer=True)


def test_contains_works_elementwise() -> None:
    x = np.array([[-1.0, 0.5], [1.5, np.nan], [3.0, np.inf]])
    assert ib.Interval(0, 9).contains(x).tolist() == [[False, True], [True, False], [True, False]]
    assert ib.Spans([(0, 1), (2, 4)]).contains(x).tolist() == [[False, True], [False, False], [True, False]]
    assert ib.Integers(0, 9).contains(x).tolist() == [[False, False], [False, False], [True, False]]
    assert ib.Box([0, 0], [9, 9]).contains(x).tolist() == [False, False, False]
    assert ib.Box([0, 0], [9, 9]).contains([[1, 1], [1, 10]]).tolist() == [True, False]
    assert ib.Box([0, 0], [9, 9]).contains([1.5, 1]).shape == ()


# --- projection ------------------------------------------------------------------------------


def test_project_goes_to_the_nearest_point_and_down_at_ties() -> None:
    assert ib.Interval(0, 9).project([-4, 3.3, 12]).tolist() == [0, 3.3, 9]
    spans = ib.Spans([(0, 1), (2, 4), (8, 9)])
    given = [-1, 0.5, 1.2, 1.5, 1.51, 3.0, 5.9, 6.0, 6.1, 100]
    assert spans.project(given).tolist() == [0, 0.5, 1, 1, 2, 3, 4, 4, 8, 9]
    whole = ib.Integers(0, 9)
    assert whole.project([-3, 0.5, 1.5, 2.49, 2.51, 8.5, 9.5, 40]).tolist() == [0, 0, 1, 2, 3, 8, 9, 9]
    box = ib.Box([0, 1], [10, 9])
    assert box.project([[-5, 5], [11, 0]]).tolist() == [[0, 5], [10, 1]]
    assert ib.Box([0, 1], [10, 9], integer=True).project([2.5, 8.6]).tolist() == [2, 9]
    assert np.isnan(ib.Interval(0, 9).project(np.nan))
    assert ib.Interval(0, 9).project(INF) == 9
    assert ib.Interval(0, INF).project(-3.0) == 0


@pytest.mark.parametrize("x", [0, 1, 2**52 - 1, 2**52, 2**52 + 1, 2**53 - 1, 2**53, -(2**52) - 1, -(2**53) + 1])
def test_whole_numbers_stay_where_they_are(x: int) -> None:
    assert ib.Integers(-(2**53), 2**53).project(float(x)) == x
    assert ib.Box([-(2**53)], [2**53], integer=True).project([float(x)])[0] == x


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=8, unique=True), st.floats(-60, 60))
def test_projection_onto_spans_is_nearest(ends: list[int], x: float) -> None:
    ends = sorted(ends)[: len(ends) // 2 * 2]
    spans = ib.Spans([(ends[i], ends[i + 1]) for i in range(0, len(ends), 2)])
    found = float(spans.project(x))
    assert found in spans
    nearest = min(abs(x - min(max(x, a), b)) for a, b in spans.spans)
    assert abs(found - x) == nearest
    assert float(spans.project(found)) == found


# --- holes -----------------------------------------------------------------------------------


def test_without_takes_holes_in_any_order() -> None:
    year = ib.Interval(0, 365)
    assert year.without((90, 120)) == ib.Spans([(0, 90), (120, 365)])
    expected = ib.Spans([(0, 90), (120, 200), (210, 365)])
    assert year.without((200, 210), (90, 120)) == expected
    assert year.without((90, 120)).without((200, 210)) == expected
    assert year.without((90, 120), (200, 210)).holes == ((90.0, 120.0), (200.0, 210.0))


def test_overlapping_holes_merge() -> None:
    assert ib.Interval(0, 365).without((90, 120), (100, 130)) == ib.Spans([(0, 90), (130, 365)])
    assert ib.Interval(0, 365).without((100, 130), (90, 120)) == ib.Spans([(0, 90), (130, 365)])
    assert ib.Interval(0, 365).without((90, 120), (90, 130)) == ib.Spans([(0, 90), (130, 365)])


def test_holes_across_an_end_shorten_the_domain() -> None:
    assert ib.Interval(0, 365).without((-5, 10)) == ib.Interval(10, 365)
    assert ib.Interval(0, 365).without((300, INF)) == ib.Interval(0, 300)
    assert ib.Interval(-INF, INF).without((-1, 1)) == ib.Spans([(-INF, -1), (1, INF)])
    assert ib.Spans([(0, 1), (2, 3)]).without((-1, 1.5)) == ib.Interval(2, 3)
    assert ib.Spans([(0, 1), (2, 3), (4, 5)]).without((0.5, 4.5)) == ib.Spans([(0, 0.5), (4.5, 5)])


@given(st.lists(st.tuples(st.integers(1, 98), st.integers(1, 98)), min_size=1, max_size=5))
def test_without_removes_the_open_holes_and_nothing_else(holes: list[tuple[int, int]]) -> None:
    holes = [(min(a, b), max(a, b) + 1) for a, b in holes]
    try:
        left = ib.Interval(0, 100).without(*holes)
    except ib.ParameterError:
        return  # a hole in a hole, or a point left alone
    for x in np.arange(0, 100.5, 0.5):
        assert (float(x) in left) == (not any(a < x < b for a, b in holes))

"""Whatever is wrong is refused at once, in one wording, and true values are never shown."""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import inbounds as ib

INF, NAN = math.inf, math.nan
AGE = ib.Interval(0, 120)
COUNT = ib.Integers(0, 30)
SEASON = ib.Interval(0, 365).without((90, 120))
BOX = ib.Box([0, 1], [10, 9])
MECHANISMS = (ib.Laplace, ib.Gaussian)

WORDING = re.compile(r"^\w+: .+ must (be|lie) .+", re.DOTALL)

NOT_NUMBERS = [True, np.bool_(False), "1.0", b"1", None, 1 + 0j, [1.0], (1.0,), {}, object(), np.array([1.0])]
NOT_POSITIVE = [NAN, INF, -INF, 0, 0.0, -1, -1e-300, np.float64("nan"), np.float64(0), Fraction(-1, 3)]


def refuse(call: Callable[[], object], *words: str, kind: type[Exception] = ib.InboundsError) -> str:
    """The message of the error that ``call`` must raise; it is checked for wording and size."""
    with pytest.raises(ib.InboundsError) as caught:
        call()
    error = caught.value
    assert isinstance(error, ValueError | TypeError)
    assert isinstance(error, kind)
    message = str(error)
    assert len(message) < 400
    assert WORDING.match(message) or isinstance(error, ib.UnreachableTarget), message
    for word in words:
        assert word in message
    return message


@pytest.fixture
def _no_hang() -> Iterator[None]:
    """Turns an endless loop into a failure; far longer than any of the calls should take."""

    def stop(*_: object) -> None:
        raise AssertionError("still running after a minute")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def shown(value: object) -> str:
    without_address = re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    return f"{type(value).__name__}-{without_address}"[:40]


# --- numbers ---------------------------------------------------------------------------------


def calibrate(**given: Any) -> Callable[[], object]:
    return lambda: ib.Laplace.calibrate(AGE, **{"sensitivity": 1.0, "epsilon": 1.0, **given})


# name: (what makes the call, whether 0 is allowed, whether infinity is allowed)
NUMBERS: dict[str, tuple[Callable[[Any], object], bool, bool]] = {
    "scale": (lambda v: ib.Laplace(AGE, scale=v, sensitivity=1.0), False, False),
    "sensitivity": (lambda v: ib.Gaussian(AGE, scale=1.0, sensitivity=v), False, False),
    "calibrate sensitivity": (lambda v: calibrate(sensitivity=v)(), False, False),
    "epsilon": (lambda v: calibrate(epsilon=v)(), False, False),
    "rho": (lambda v: calibrate(epsilon=None, rho=v)(), False, False),
    "mu": (lambda v: calibrate(epsilon=None, mu=v)(), False, False),
    "alpha": (lambda v: calibrate(epsilon=None, rdp=(v, 1.0))(), False, False),
    "rdp epsilon": (lambda v: calibrate(epsilon=None, rdp=(2.0, v))(), False, False),
    "delta": (lambda v: calibrate(delta=v)(), True, False),
    "ask epsilon": (lambda v: ib.Laplace(AGE, scale=1.0, sensitivity=1.0).epsilon(v), True, False),
    "ask delta": (lambda v: ib.Laplace(AGE, scale=1.0, sensitivity=1.0).delta(v), True, False),
    "ask rdp": (lambda v: ib.Laplace(AGE, scale=1.0, sensitivity=1.0).rdp(v), False, False),
    "L1": (ib.L1, False, False),
    "L2": (ib.L2, False, False),
    "Linf": (ib.Linf, False, False),
    "L0 linf": (lambda v: ib.L0(1, linf=v), False, False),
    "L0 count": (lambda v: ib.L0(v, linf=1.0), False, False),
}


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=shown)
@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_not_a_number_is_refused(name: str, value: Any) -> None:
    if value is None and name in ("epsilon", "rho", "mu", "delta"):
        return  # None is "not given"
    message = refuse(lambda: NUMBERS[name][0](value), kind=ib.ParameterTypeError)
    assert "; got " in message


@pytest.mark.parametrize("value", NOT_POSITIVE, ids=shown)
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_out_of_range_are_refused(name: str, value: Any) -> None:
    call, zero_allowed, infinity_allowed = NUMBERS[name]
    if (value == 0 and zero_allowed) or (value == INF and infinity_allowed):
        call(value)
        return
    refuse(lambda: call(value), "; got ", kind=ib.ParameterError)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, NAN], ids=shown)
@pytest.mark.parametrize("kind", [ib.Interval, ib.Integers])
def test_ends_must_be_numbers(kind: Any, value: Any) -> None:
    refuse(lambda: kind(value, 10), "lower")
    refuse(lambda: kind(0, value), "upper")


@pytest.mark.parametrize(
    "value", [10**400, 10**5000, -(10**5000), Fraction(10**400, 3)], ids=["e400", "e5000", "-", "f"]
)
def test_numbers_too_large_for_a_float_are_refused(value: Any) -> None:
    refuse(lambda: ib.Interval(0, value))
    refuse(lambda: ib.Laplace(AGE, scale=value, sensitivity=1.0))
    refuse(lambda: ib.Laplace(AGE, scale=1.0, sensitivity=1.0).release(value))


# --- domains ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lower", "upper"), [(1, 1), (2, 1), (0.0, -0.0), (INF, INF), (-INF, -INF), (INF, -INF), (INF, 3), (3, -INF)]
)
@pytest.mark.parametrize("kind", [ib.Interval, ib.Integers, lambda a, b: ib.Box([0, a], [1, b])])
def test_reversed_or_equal_ends_are_refused(kind: Any, lower: float, upper: float) -> None:
    refuse(lambda: kind(lower, upper), "upper", "greater than lower", kind=ib.ParameterError)


def test_a_width_beyond_the_largest_number_is_refused() -> None:
    refuse(lambda: ib.Interval(-1.5e308, 1.5e308), "Rescale")
    refuse(lambda: ib.Box([0, -1.5e308], [1, 1.5e308]))


@pytest.mark.parametrize("ends", [(0.5, 3), (0, 3.5), (-(2**53) - 2, 0), (0, 2**53 + 2), (0, 2**53 + 1)])
def test_ends_of_integers_must_be_whole_and_exact(ends: tuple[float, float]) -> None:
    refuse(lambda: ib.Integers(*ends), kind=ib.ParameterError)


@pytest.mark.parametrize("domain", [(0, 1), [0, 1], None, "Interval", 5, ib.Interval, {0: 1}, range(5)], ids=shown)
@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_domain_must_be_a_domain(kind: Any, domain: Any) -> None:
    for call in (
        lambda: kind(domain, scale=1.0, sensitivity=1.0),
        lambda: kind.calibrate(domain, sensitivity=1.0, epsilon=1.0),
    ):
        refuse(call, "domain", "inbounds.Interval(0, 120)", kind=ib.ParameterTypeError)


@pytest.mark.parametrize(
    "spans",
    [
        [(0, 2), (1, 3)],
        [(0, 1), (1, 2)],
        [(0, 1), (0, 1)],
        [(0, 5), (1, 2)],
        [(2, 3), (0, 2)],
        [],
        [(0, 0)],
        [(1, 0)],
        [(0, NAN)],
        [(-INF, INF), (0, 1)],
        [(0, 1), 2],
        [(0, 1, 2)],
        [(0,)],
        ["ab"],
        "ab",
        None,
        3,
        [(0, "1")],
        [(True, 2)],
    ],
    ids=str,
)
def test_bad_spans_are_refused(spans: Any) -> None:
    refuse(lambda: ib.Spans(spans))


@pytest.mark.parametrize(
    ("holes", "words"),
    [
        ([(400, 500)], "inside the domain"),
        ([(-5, 0)], "inside the domain"),
        ([(365, 400)], "inside the domain"),
        ([(10, 20), (12, 15)], "inside another"),
        ([(10, 20), (20, 30)], "single point"),
        ([(-1, 400)], "Nothing is left"),
        ([(0, 365)], "single point"),
        ([(0, 100), (50, 365)], "single point"),
        ([(0, 10)], "single point"),
        ([(20, 10)], "in order"),
        ([(10, 10)], "in order"),
        ([(NAN, 10)], "number"),
        ([5], "pair"),
        ([(1, 2, 3)], "pair"),
        ([], "one hole"),
    ],
    ids=str,
)
def test_bad_holes_are_refused(holes: list[Any], words: str) -> None:
    refuse(lambda: ib.Interval(0, 365).without(*holes), words)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ([0, 1], [1]),
        ([], []),
        ([[0], [1]], [[2], [3]]),
        (0, 1),
        ("01", "12"),
        ([0, "a"], [1, 2]),
        ([0, NAN], [1, 2]),
        ([0, None], [1, 2]),
        ([0, True], [1, 2]),
        ([0, 1j], [1, 2]),
        ([0, [1]], [1, 2]),
        (None, [1]),
        ({0: 1}, [1]),
    ],
    ids=str,
)
def test_bad_boxes_are_refused(lower: Any, upper: Any) -> None:
    refuse(lambda: ib.Box(lower, upper), "Box")


@pytest.mark.parametrize("integer", [1, 0, None, "yes", np.bool_(True)], ids=shown)
def test_integer_is_true_or_false(integer: Any) -> None:
    refuse(lambda: ib.Box([0], [1], integer=integer), kind=ib.ParameterTypeError)


def test_an_integer_box_needs_whole_ends() -> None:
    refuse(lambda: ib.Box([0, 0.5], [3, 4], integer=True), "whole")
    refuse(lambda: ib.Box([0, 0], [3, 2.0**60], integer=True), "whole")


# --- sensitivity -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize(
    ("domain", "wide", "cap"), [(AGE, 120.5, "120.0"), (COUNT, 31, "30.0"), (SEASON, 366, "365.0")]
)
def test_sensitivity_is_capped_by_the_domain(kind: Any, domain: Any, wide: float, cap: str) -> None:
    refuse(
        lambda: kind.calibrate(domain, sensitivity=wide, epsilon=1.0), "capped by the domain", f"pass {cap}", "; got"
    )
    kind.calibrate(domain, sensitivity=float(cap), epsilon=1.0)


def test_an_l2_limit_may_pass_one_side_but_not_the_diagonal() -> None:
    assert ib.Gaussian.calibrate(BOX, sensitivity=ib.L2(12.0), epsilon=1.0).sensitivity == ib.L2(12.0)
    refuse(
        lambda: ib.Gaussian.calibrate(BOX, sensitivity=ib.L2(12.9), epsilon=1.0), "capped by the domain", "pass 12.8"
    )
    ib.Laplace(BOX, scale=1.0, sensitivity=ib.L1(18.0))
    refuse(lambda: ib.Laplace(BOX, scale=1.0, sensitivity=ib.L1(18.1)), "pass 18.0")
    ib.Laplace(BOX, scale=1.0, sensitivity=ib.Linf(9.0))
    refuse(lambda: ib.Laplace(BOX, scale=1.0, sensitivity=ib.Linf(10.1)), "pass 10.0")
    refuse(lambda: ib.Laplace(BOX, scale=1.0, sensitivity=ib.L0(1, linf=10.1)), "pass 10.0")


@pytest.mark.parametrize("value", [0.5, 1.5, 29.999, Fraction(1, 3)])
def test_sensitivity_on_integers_is_whole(value: Any) -> None:
    refuse(lambda: ib.Laplace.calibrate(COUNT, sensitivity=value, epsilon=1.0), "whole")


@pytest.mark.parametrize("limit", [ib.L1(1.5), ib.Linf(0.5), ib.L0(1, linf=1.5), [1.0, 0.5]], ids=repr)
def test_sensitivity_on_an_integer_box_is_whole(limit: Any) -> None:
    whole = ib.Box([0, 0], [5, 7], integer=True)
    refuse(lambda: ib.Laplace.calibrate(whole, sensitivity=limit, epsilon=1.0), "whole")
    ib.Laplace.calibrate(whole, sensitivity=ib.L2(2**0.5), epsilon=1.0)


@pytest.mark.parametrize(
    "limit",
    [
        1,
        1.0,
        "L2",
        None,
        True,
        [1.0],
        [1.0, 1.0, 1.0],
        [],
        [[1.0, 1.0]],
        [1.0, -1.0],
        [0.0, 0.0],
        [NAN, 1.0],
        [1.0, INF],
    ],
    ids=str,
)
def test_bad_sensitivities_of_a_box_are_refused(limit: Any) -> None:
    refuse(lambda: ib.Gaussian.calibrate(BOX, sensitivity=limit, epsilon=1.0))


@pytest.mark.parametrize("limit", [ib.L0(1, linf=1.0), ib.PerCoordinate([1.0, 2.0]), [1.0]], ids=str)
def test_vector_limits_are_refused_on_a_line(limit: Any) -> None:
    refuse(lambda: ib.Laplace.calibrate(AGE, sensitivity=limit, epsilon=1.0), "sensitivity", kind=ib.ParameterTypeError)


def test_more_coordinates_than_there_are() -> None:
    refuse(lambda: ib.Laplace(BOX, scale=1.0, sensitivity=ib.L0(3, linf=1.0)), "at most 2")
    refuse(lambda: ib.L0(1.5, linf=1.0), "whole")


# --- targets ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({}, "exactly one"),
        ({"delta": 1e-6}, "delta alone"),
        ({"epsilon": 1.0, "rho": 1.0}, "epsilon and rho"),
        ({"epsilon": 1.0, "mu": 1.0}, "exactly one"),
        ({"rho": 1.0, "rdp": (2, 1.0)}, "exactly one"),
        ({"rho": 1.0, "mu": 1.0, "epsilon": 1.0}, "exactly one"),
        ({"epsilon": 0.0}, "(0, 0)"),
        ({"epsilon": 0, "delta": 0.0}, "(0, 0)"),
        ({"epsilon": 501.0}, "500"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta"),
        ({"epsilon": 1.0, "delta": 2}, "delta"),
        ({"epsilon": 1.0, "delta": -1e-9}, "delta"),
        ({"rho": 1.0, "delta": 1e-6}, "together with epsilon"),
        ({"mu": 1.0, "delta": 0.0}, "together with epsilon"),
        ({"rdp": (2, 1.0), "delta": 1e-6}, "together with epsilon"),
        ({"rdp": 2.0}, "pair"),
        ({"rdp": (2.0,)}, "pair"),
        ({"rdp": (2.0, 1.0, 1.0)}, "pair"),
        ({"rdp": "ab"}, "pair"),
        ({"rdp": (1.0, 1.0)}, "alpha"),
        ({"rdp": (0.5, 1.0)}, "alpha"),
        ({"rdp": (INF, 1.0)}, "alpha"),
        ({"rdp": (2e6, 1.0)}, "alpha"),
        ({"rdp": (2.0, 0.0)}, "epsilon"),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", MECHANISMS)
def test_bad_targets_are_refused(kind: Any, target: dict[str, Any], words: str) -> None:
    refuse(lambda: kind.calibrate(AGE, sensitivity=1.0, **target), words)


@pytest.mark.parametrize("value", ["round", "Truncate", "", None, 1, ["truncate"]], ids=shown)
def test_unknown_words_are_refused(value: Any) -> None:
    refuse(lambda: ib.Laplace(AGE, scale=1.0, sensitivity=1.0, edges=value), "edges", "'truncate', 'clamp', 'ignore'")
    refuse(calibrate(edges=value), "edges", "'clamp'")
    refuse(calibrate(guarantee=value), "guarantee", "'metric'")
    refuse(calibrate(method=value), "method", "'paper'")


@pytest.mark.parametrize(
    ("kind", "domain", "given"),
    [
        (ib.Laplace, AGE, {"method": "liu", "epsilon": 1.0}),
        (ib.Laplace, AGE, {"method": "paper", "epsilon": 1.0, "edges": "clamp"}),
        (ib.Laplace, AGE, {"method": "paper", "rho": 1.0}),
        (ib.Laplace, COUNT, {"method": "paper", "epsilon": 1.0}),
        (ib.Laplace, ib.Interval(0, INF), {"method": "paper", "epsilon": 1.0}),
        (ib.Laplace, SEASON, {"method": "paper", "epsilon": 1.0, "delta": 1e-6}),
        (ib.Gaussian, AGE, {"method": "paper", "epsilon": 1.0, "delta": 1e-6}),
        (ib.Gaussian, AGE, {"method": "liu", "epsilon": 1.0, "delta": 1e-6}),
        (ib.Gaussian, COUNT, {"method": "paper", "epsilon": 1.0}),
        (ib.Gaussian, SEASON, {"method": "liu", "epsilon": 1.0}),
        (ib.Gaussian, ib.Interval(0, INF), {"method": "paper", "epsilon": 1.0}),
        (ib.Gaussian, AGE, {"guarantee": "metric", "epsilon": 1.0, "delta": 1e-6}),
        (ib.Laplace, AGE, {"guarantee": "metric", "rho": 1.0}),
        (ib.Laplace, AGE, {"guarantee": "metric", "method": "paper", "epsilon": 1.0}),
        (ib.Gaussian, AGE, {"guarantee": "metric", "method": "liu", "epsilon": 1.0}),
    ],
    ids=str,
)
def test_methods_and_guarantees_are_not_mixed_up(kind: Any, domain: Any, given: dict[str, Any]) -> None:
    refuse(lambda: kind.calibrate(domain, sensitivity=1, **given))


@pytest.mark.parametrize(
    ("domain", "given"),
    [
        (ib.Interval(0, INF), {"epsilon": 1.0}),
        (ib.Interval(-INF, INF), {"epsilon": 1.0, "edges": "clamp"}),
        (AGE, {"epsilon": 1.0, "edges": "ignore"}),
        (COUNT, {"epsilon": 1.0, "edges": "ignore"}),
        (ib.Integers(0, INF), {"epsilon": 1.0}),
        (ib.Integers(0, INF), {"rho": 1.0}),
        (ib.Integers(-INF, INF), {"mu": 1.0}),
        (COUNT, {"mu": 1.0, "edges": "ignore"}),
        (ib.Spans([(0, 1), (2, INF)]), {"rho": 1.0}),
        (ib.Interval(0, INF), {"epsilon": 1.0, "guarantee": "metric"}),
    ],
    ids=str,
)
def test_unreachable_targets_say_what_can_be_had(domain: Any, given: dict[str, Any]) -> None:
    message = refuse(lambda: ib.Gaussian.calibrate(domain, sensitivity=1, **given), kind=ib.UnreachableTarget)
    assert "Give" in message or "Ask" in message


@pytest.mark.usefixtures("_no_hang")
@pytest.mark.parametrize(
    ("target", "box", "edges"),
    [
        (target, box, edges)
        for box, edges in (
            (ib.Box([0, 0], [5, 7], integer=True), "ignore"),
            (ib.Box([0, 0], [5, INF], integer=True), "truncate"),
        )
        for target in ({"epsilon": 1.0, "delta": 1e-6}, {"rho": 1.0}, {"rdp": (2, 1.0)}, {"mu": 1.0})
        if edges == "truncate" or not target.keys() & {"rho", "rdp"}  # plain noise has these
    ],
    ids=str,
)
def test_integer_boxes_without_bounds_have_no_gaussian_guarantee(target: dict[str, Any], box: Any, edges: str) -> None:
    refuse(lambda: ib.Gaussian.calibrate(box, sensitivity=ib.L2(4.0), edges=edges, **target), kind=ib.UnreachableTarget)


EXTREME_TARGETS: list[dict[str, Any]] = [
    *({"epsilon": e} for e in (1e-300, 5e-324, 1e-12, 500.0)),
    {"epsilon": 500.0, "delta": 1e-300},
    {"epsilon": 1e-300, "delta": 1e-300},
    {"epsilon": 0.0, "delta": 1e-300},
    {"rdp": (1.0000001, 1e-300)},
    {"rdp": (1e6, 1e300)},
]


@pytest.mark.usefixtures("_no_hang")
@pytest.mark.parametrize("target", EXTREME_TARGETS, ids=str)
@pytest.mark.parametrize("edges", ["truncate", "clamp"])
@pytest.mark.parametrize("kind", MECHANISMS)
def test_extreme_targets_give_a_scale_or_an_error_of_ours(kind: Any, edges: str, target: dict[str, Any]) -> None:
    for domain, limit in ((ib.Interval(0, 1), 1.0), (ib.Box([0, 1], [10, 9]), ib.L1(1.0)), (ib.Integers(0, 1), 1)):
        try:
            made = kind.calibrate(domain, sensitivity=limit, edges=edges, **target)
        except ib.InboundsError:
            continue
        else:
            assert 0.0 < made.scale < INF


@pytest.mark.usefixtures("_no_hang")
@pytest.mark.parametrize("width", [5e-324, 1e-310, 1e-170, 1e-60, 1e-59, 1e59, 1e60, 1e170, 1.7e308])
@pytest.mark.parametrize("kind", MECHANISMS)
def test_extreme_widths_give_a_sound_scale_or_an_error_of_ours(kind: Any, width: float) -> None:
    for make in (lambda: (ib.Interval(0, width), width), lambda: (ib.Box([0, 0], [width, width]), ib.Linf(width))):
        try:
            domain, limit = make()
            made = kind.calibrate(domain, sensitivity=limit, epsilon=1.0)
            claimed = made.epsilon()
        except ib.InboundsError:
            continue
        else:
            assert width * 0.5 < made.scale < INF
            assert 0.0 < claimed <= 1.0


@pytest.mark.usefixtures("_no_hang")
@pytest.mark.parametrize("scale", [1e-65, 1e-30, 1e30, 1e70])
@pytest.mark.parametrize("kind", MECHANISMS)
def test_extreme_scales_answer_every_question(kind: Any, scale: float) -> None:
    for domain in (ib.Interval(0, 1), ib.Interval(0, INF), COUNT):
        made = kind(domain, scale=scale, sensitivity=1)
        for answer in (made.epsilon(), made.delta(1.0), made.rdp(2.0), made.epsilon(1e-6)):
            assert answer >= 0.0  # fails for NaN
        if scale < 1.0:
            assert made.epsilon() >= 1e29
            assert made.delta(1.0) > 0.4
        assert domain.contains(made.release([1, 1, 1]).value).all()


# --- true values -----------------------------------------------------------------------------

SECRET = 98765.4321
OUTSIDE: list[tuple[Any, Any]] = [
    (AGE, SECRET),
    (AGE, -SECRET),
    (AGE, [1.0, SECRET]),
    (AGE, np.array([[SECRET, 2.0]])),
    (AGE, Fraction(987654321, 10000)),
    (COUNT, SECRET),
    (COUNT, 98765),
    (COUNT, 7.4321),
    (COUNT, np.array([3.0, 7.4321])),
    (SEASON, 98.7654321),
    (ib.Interval(0, INF), -SECRET),
    (BOX, [1.0, SECRET]),
    (BOX, [[1.0, 2.0], [SECRET, 2.0]]),
]


@pytest.mark.parametrize(("domain", "value"), OUTSIDE, ids=str)
@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_value_outside_is_refused_and_never_shown(kind: Any, domain: Any, value: Any) -> None:
    made = kind(domain, scale=2.0, sensitivity=ib.L1(1.0))
    for use in (made.release, made.at, made.simulate):
        with pytest.raises(ib.OutsideDomain) as caught:
            use(value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        for text in (str(caught.value), repr(caught.value)):
            assert len(text) < 400
            for secret in ("98765", "98.76", "7.4321", "4321", str(value)):
                assert secret not in text
        assert repr(domain) in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        "98765.4321",
        b"98765",
        None,
        True,
        [True, 2.0],
        [[True, 2.0]],
        98765 + 4321j,
        {98765: 1},
        {98765},
        ["98765", 1],
        object(),
    ],
    ids=shown,
)
def test_a_value_of_the_wrong_type_is_not_shown_either(value: Any) -> None:
    made = ib.Laplace(AGE, scale=2.0, sensitivity=1.0)
    for use in (made.release, made.at, lambda v: made.release(v, clip=True)):
        message = refuse(lambda use=use: use(value), "value", kind=ib.ParameterTypeError)  # type: ignore[misc]
        assert "98765" not in message
        assert "4321" not in message


@pytest.mark.parametrize(
    "value", [[1.0, [2.0, 98765.4]], 98765 * 10**400, [98765 * 10**400]], ids=["ragged", "huge", "list"]
)
def test_what_numpy_cannot_read_is_not_shown(value: Any) -> None:
    with pytest.raises(ib.InboundsError) as caught:
        ib.Laplace(AGE, scale=2.0, sensitivity=1.0).release(value)
    error: BaseException | None = caught.value
    while error is not None:
        assert "98765" not in str(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("value", [1.0, [1.0], [1.0, 2.0, 3.0], [[1.0], [2.0]], []], ids=str)
def test_values_of_the_wrong_shape_are_refused(value: Any) -> None:
    made = ib.Gaussian(BOX, scale=2.0, sensitivity=ib.L2(1.0))
    refuse(lambda: made.release(value), "shape (..., 2)")
    refuse(lambda: made.at(value), "shape (..., 2)")


@pytest.mark.parametrize("kind", MECHANISMS)
def test_clip_projects(kind: Any) -> None:
    narrow = {"scale": 1e-9, "sensitivity": ib.L1(1.0)}
    assert kind(AGE, **narrow).release(1e9, clip=True).value == pytest.approx(120.0, abs=1e-6)
    assert kind(AGE, **narrow).release([-5, 41.0, 300], clip=True).value == pytest.approx([0, 41.0, 120], abs=1e-6)
    assert kind(COUNT, **narrow).release(99, clip=True).value == 30
    assert kind(COUNT, **narrow).release([-99, 7], clip=True).value.tolist() == [0, 7]
    assert kind(BOX, **narrow).release([-3.0, 50.0], clip=True).value == pytest.approx([0.0, 9.0], abs=1e-6)
    one_span = ib.Spans([(0, 1)])
    assert kind(one_span, **narrow).release(3.0, clip=True).value == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("kind", MECHANISMS)
def test_clip_is_refused_where_it_would_break_the_guarantee(kind: Any) -> None:
    made = kind(SEASON, scale=2.0, sensitivity=3.0)
    for value in (100.0, 50.0, 400.0):  # whatever the value is: the error must not tell
        refuse(lambda value=value: made.release(value, clip=True), "opposite sides of a hole")  # type: ignore[misc]


@pytest.mark.parametrize("domain", [AGE, COUNT, BOX, ib.Interval(0, INF)], ids=repr)
def test_clip_does_not_hide_nan(domain: Any) -> None:
    made = ib.Laplace(domain, scale=2.0, sensitivity=ib.L1(1.0))
    for value in (NAN, [NAN, 1.0], [1.0, NAN]):
        with pytest.raises((ib.OutsideDomain, ib.ParameterError)) as caught:
            made.release(value, clip=True)
        assert "nan" not in str(caught.value)


def test_clip_does_not_round() -> None:
    made = ib.Laplace(COUNT, scale=2.0, sensitivity=1)
    for value in (3.5, [1, 2.5]):
        with pytest.raises(ib.OutsideDomain, match="whole numbers"):
            made.release(value, clip=True)


@pytest.mark.parametrize("clip", [1, 0, None, "yes", np.bool_(True)], ids=shown)
def test_clip_is_true_or_false(clip: Any) -> None:
    refuse(lambda: ib.Laplace(AGE, scale=2.0, sensitivity=1.0).release(3.0, clip=clip), kind=ib.ParameterTypeError)


@pytest.mark.parametrize("size", [-1, 2.5, "3", None, True, (2, -1), (2.0,), [2, 2], (True,)], ids=shown)
def test_bad_sizes_are_refused(size: Any) -> None:
    refuse(lambda: ib.Laplace(AGE, scale=2.0, sensitivity=1.0).simulate(3.0, size=size), "size")


@pytest.mark.parametrize("seed", [-1, "x", 2.5], ids=shown)
def test_bad_seeds_are_refused(seed: Any) -> None:
    refuse(lambda: ib.Laplace(AGE, scale=2.0, sensitivity=1.0).simulate(3.0, seed=seed), "seed")


def test_pair_rdp_is_for_one_dimension() -> None:
    refuse(lambda: ib.Laplace(BOX, scale=2.0, sensitivity=ib.L1(1.0)).pair_rdp([1, 1], [2, 2], 2.0), "pair_rdp")
    made = ib.Laplace(AGE, scale=2.0, sensitivity=1.0)
    refuse(lambda: ib.Laplace(AGE, scale=2.0, sensitivity=1.0, edges="clamp").pair_rdp(1, 2, 2.0), "pair_rdp")
    refuse(lambda: made.pair_rdp(1, 2, 1.0), "alpha")
    with pytest.raises(ib.OutsideDomain):
        made.pair_rdp(1, NAN, 2.0)


# --- unusual, and right ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "one",
    [1, 1.0, np.int8(1), np.float32(1), np.float64(1), np.uint64(1), Fraction(1), np.array(1.0), np.longdouble(1)],
    ids=shown,
)
def test_every_kind_of_real_number_is_accepted(one: Any) -> None:
    made = ib.Laplace.calibrate(ib.Interval(0 * one, 9 * one), sensitivity=one, epsilon=one)
    assert made == ib.Laplace.calibrate(ib.Interval(0, 9), sensitivity=1.0, epsilon=1.0)
    assert type(made.scale) is type(made.sensitivity) is float
    assert made.release(one).value in made.domain
    assert made.at(one).mean() == made.at(1.0).mean()
    assert ib.Box([one, 0], [3, one]) == ib.Box([1.0, 0.0], [3.0, 1.0])
    assert ib.L2(one) == ib.L2(1.0)


@pytest.mark.parametrize(("lower", "upper", "sensitivity"), [(0.1, 0.3, 0.2), (0.7, 1.0, 0.3), (-0.1, 0.2, 0.3)])
@pytest.mark.parametrize("kind", MECHANISMS)
def test_decimals_mean_what_they_say(kind: Any, lower: float, upper: float, sensitivity: float) -> None:
    made = kind.calibrate(ib.Interval(lower, upper), sensitivity=sensitivity, epsilon=1.0)
    assert made.sensitivity == pytest.approx(sensitivity, rel=1e-15)
    assert made.epsilon() <= 1.0
    assert ib.Box([lower], [upper]).coordinate(0) == ib.Interval(lower, upper)
    made = kind.calibrate(ib.Box([lower, 0], [upper, 1]), sensitivity=[sensitivity, 1.0], epsilon=1.0)
    assert made.epsilon() <= 1.0


@pytest.mark.parametrize("unit", [1e-55, 1e-30, 1e-5, 1.0, 1e5, 1e30, 1e55])
@pytest.mark.parametrize("kind", MECHANISMS)
def test_units_do_not_matter(kind: Any, unit: float) -> None:
    plain = kind.calibrate(ib.Interval(0, 8), sensitivity=2, epsilon=1.0)
    made = kind.calibrate(ib.Interval(0, 8 * unit), sensitivity=2 * unit, epsilon=1.0)
    assert made.scale / unit == pytest.approx(plain.scale, rel=1e-9)
    assert made.epsilon() <= 1.0


def test_a_far_offset_costs_nothing() -> None:
    near = ib.Laplace.calibrate(ib.Interval(0, 1), sensitivity=0.125, epsilon=1.0)
    far = ib.Laplace.calibrate(ib.Interval(1e15, 1e15 + 1), sensitivity=0.125, epsilon=1.0)
    assert far.scale == near.scale


@pytest.mark.parametrize("kind", MECHANISMS)
def test_the_largest_integers(kind: Any) -> None:
    largest = ib.Integers(-(2**53), 2**53)
    made = kind.calibrate(largest, sensitivity=1, epsilon=1.0)
    assert made.epsilon() <= 1.0
    for value in (-(2**53), 0, 2**53 - 1, 2**53):
        assert made.release(value).value in largest
    tight = ib.Laplace(largest, scale=0.01, sensitivity=1)
    for value in (2**53 - 1, 2**52 + 1, -(2**53) + 1, 2**53):
        assert tight.release(value).value == value


def test_one_unit_of_gaussian_paper_noise_at_half_the_width() -> None:
    # the published ratio is flat in the middle of the range: its slope is 0 there
    for gap in (4.0, 5.0, 7.5, 10.0):
        assert ib.Gaussian.calibrate(ib.Interval(0, 10), sensitivity=gap, epsilon=1.0, method="paper").epsilon() <= 1.0
